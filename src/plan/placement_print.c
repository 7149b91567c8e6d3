/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/placement.h"

#include "base/enum_name.h"
#include "base/print.h"

/* Number of intervals listed at the start and at the end; those between are
 * counted in one line. */
enum { LISTED_HEAD = 32, LISTED_TAIL = 8 };

VYRE__ENUM_NAME(vyre_placement_method_name, vyre_placement_method,
                VYRE_PLACEMENT_METHOD_MAP)

/* Returns the number of intervals to skip at @p index; 0 to show it. */
static size_t skip(size_t count, size_t index) {
  if (index != LISTED_HEAD || count <= LISTED_HEAD + LISTED_TAIL + 1) return 0;
  return count - (LISTED_HEAD + LISTED_TAIL);
}

static int digits(uint64_t value) {
  int count = 1;
  for (; value >= 10; value /= 10) count++;
  return count;
}

/* Column widths of the rows that are shown. */
typedef struct widths {
  int first, last, size, offset;
} widths;

static void widen(int *width, uint64_t value) {
  if (digits(value) > *width) *width = digits(value);
}

static widths measure(const vyre_placement_plan *plan,
                      const vyre_interval *intervals) {
  widths w = {.first = 5, .last = 4, .size = 4, .offset = 6};
  for (size_t i = 0; i < plan->interval_count; i++) {
    i += skip(plan->interval_count, i);
    widen(&w.first, intervals[i].first_group);
    widen(&w.last, intervals[i].last_group);
    widen(&w.size, intervals[i].size);
    widen(&w.offset, plan->offsets[i]);
  }
  return w;
}

static void print_rows(vyre__printer *out, const vyre_placement_plan *plan,
                       const vyre_interval *intervals) {
  widths w = measure(plan, intervals);
  vyre__print(out, "\n  %10s  %*s..%-*s  %*s  %*s\n", "interval", w.first,
              "first", w.last, "last", w.size, "size", w.offset, "offset");
  for (size_t i = 0; i < plan->interval_count && out->ok; i++) {
    size_t skipped = skip(plan->interval_count, i);
    if (skipped > 0) {
      vyre__print(out, "  %10s  (%zu more intervals)\n", "...", skipped);
      i += skipped - 1;
      continue;
    }
    const vyre_interval *interval = &intervals[i];
    vyre__print(out, "  %10zu  %*llu..%-*llu  %*llu  %*llu\n", i, w.first,
                (unsigned long long)interval->first_group, w.last,
                (unsigned long long)interval->last_group, w.size,
                (unsigned long long)interval->size, w.offset,
                (unsigned long long)plan->offsets[i]);
  }
}

bool vyre_placement_plan_print(const vyre_placement_plan *plan,
                               const vyre_interval *intervals,
                               vyre_writer writer) {
  if (!plan) return false;
  vyre__printer out = vyre__printer_make(writer);
  vyre__print(&out, "placement\n");
  vyre__print_figure(&out, "intervals", plan->interval_count, "");
  vyre__print_figure(&out, "placed_bytes", plan->placed_bytes, "bytes");
  vyre__print_figure(&out, "lower_bound_bytes", plan->lower_bound_bytes,
                     "bytes");
  vyre__print_figure(&out, "gap_bytes", plan->gap_bytes, "bytes");
  vyre__print_word(&out, "optimal", plan->is_optimal ? "yes" : "not proven");
  vyre__print_word(&out, "method", vyre_placement_method_name(plan->method));
  vyre__print_figure(&out, "search_nodes", plan->search_nodes, "");
  if (plan->interval_count > 0) print_rows(&out, plan, intervals);
  return out.ok;
}
