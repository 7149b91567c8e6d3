/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Computes which elements of a buffer a launch overwrites, from the digits that
 * full_write.c found: numbers whose digits have the strides of this launch. */
#include <string.h>

#include "backend/cpu/plan.h"
#include "ir/ir.h"

static uint64_t uniform_value(const vyre__spmd_launch *launch, uint32_t i) {
  uint32_t value;
  memcpy(&value, launch->views[i].data, sizeof value);
  return value;
}

static uint64_t smallest(const cpu_plan *plan, uint32_t buffers, uint32_t less,
                         const vyre__spmd_launch *launch, uint64_t most) {
  for (uint32_t i = 0; i < 32 && buffers >> i != 0; i++) {
    if (!(buffers >> i & 1)) continue;
    uint64_t number = plan->buffers[i].kind == VYRE_MEMORY_UNIFORM
                          ? uniform_value(launch, i)
                          : launch->views[i].length;
    if (less) number = (uint32_t)(number - less);
    if (number < most) most = number;
  }
  return most;
}

/* Returns the number of values of a digit, from its lower limit on. */
static uint64_t values_of_digit(const cpu_plan *plan, const cpu_digit *d,
                                const vyre__spmd_launch *launch) {
  uint64_t end = d->limit;
  if (d->groups != 0) {
    uint64_t all = (uint64_t)launch->grid[d->groups - 1] * d->size;
    if (all < end) end = all;
  }
  end = smallest(plan, d->within, 0, launch, end);
  end = smallest(plan, d->less_within, d->less, launch, end);
  return end > d->low ? end - d->low : 0;
}

/* Returns the distance between two values of a digit, at most 2^32. */
static uint64_t stride_of(uint64_t factor, uint32_t by,
                          const vyre__spmd_launch *launch) {
  const uint64_t most = (uint64_t)1 << 32;
  uint64_t stride = factor;
  for (uint32_t i = 0; i < 32 && by >> i != 0; i++) {
    if (!(by >> i & 1)) continue;
    uint64_t value = uniform_value(launch, i);
    if (value == 0) return 0;
    stride = stride > most / value ? most : stride * value;
  }
  return stride < most ? stride : most;
}

/* Adds the smallest value of a digit, times its stride, to *base. An index is
 * computed modulo 2^32, so a factor from 2^31 on is negative. Returns false if
 * the number is too large. */
static bool add_base(const cpu_digit *d, const vyre__spmd_launch *launch,
                     int64_t *base) {
  const uint64_t most = (uint64_t)1 << 33; /* no sum of them overflows */
  if (d->low == 0) return true;
  bool is_negative = d->factor > INT32_MAX;
  uint32_t factor = is_negative ? 0 - d->factor : d->factor;
  uint64_t stride = stride_of(factor, d->by, launch);
  if (stride > UINT32_MAX || stride > most / d->low) return false;
  int64_t part = (int64_t)(stride * d->low);
  *base += is_negative ? -part : part;
  return true;
}

/* Adds a digit to @p c, in the order of strides. */
static void insert_digit(cpu_coverage *c, uint64_t stride, uint64_t count) {
  uint32_t at = c->outer_count++;
  for (; at > 0 && c->strides[at - 1] > stride; at--) {
    c->strides[at] = c->strides[at - 1];
    c->counts[at] = c->counts[at - 1];
  }
  c->strides[at] = stride;
  c->counts[at] = count;
}

/* Merges the digits that leave no gap between the runs below them: their stride
 * is at most the length of a run. A digit may also repeat elements. */
static void merge_runs(cpu_coverage *c, uint64_t length) {
  uint32_t merged = 0;
  while (merged < c->outer_count && c->run < length &&
         c->strides[merged] <= c->run) {
    c->run += c->strides[merged] * (c->counts[merged] - 1); /* below 2^64 */
    merged++;
  }
  if (c->run >= length) merged = c->outer_count;
  c->outer_count -= merged;
  memmove(c->strides, c->strides + merged, c->outer_count * sizeof *c->strides);
  memmove(c->counts, c->counts + merged, c->outer_count * sizeof *c->counts);
}

/* Drops outer digits that only reach elements beyond the buffer. Returns false
 * if runs are not in ascending order. */
static bool order_runs(cpu_coverage *c, uint64_t length) {
  uint64_t span = c->run;
  for (uint32_t i = 0; i < c->outer_count; i++) {
    if (c->strides[i] >= length) {
      c->outer_count = i;
      break;
    }
    if (c->strides[i] < span) return false;
    span += c->strides[i] * (c->counts[i] - 1);
  }
  return true;
}

bool cpu_find_coverage(const cpu_plan *plan, uint32_t buffer,
                       const vyre__spmd_launch *launch, cpu_coverage *out) {
  const cpu_full_write *b = &plan->full_writes[buffer];
  uint64_t length = launch->views[buffer].length;
  int64_t base = 0;
  *out = (cpu_coverage){.run = 1};
  if (!b->is_partial || length > b->max_length) return false;
  for (uint32_t i = 0; i < b->digit_count; i++) {
    const cpu_digit *d = &b->digits[i];
    uint64_t count = values_of_digit(plan, d, launch);
    if (count == 0 || !add_base(d, launch, &base)) return false;
    if (count == 1) continue;
    insert_digit(out, stride_of(d->factor, d->by, launch), count);
  }
  if (base < 0 || (uint64_t)base >= length) return false;
  out->base = (uint64_t)base;
  merge_runs(out, length);
  return order_runs(out, length);
}

bool cpu_is_fully_written(const cpu_plan *plan, uint32_t buffer,
                          const vyre__spmd_launch *launch) {
  cpu_coverage c;
  return cpu_find_coverage(plan, buffer, launch, &c) && c.base == 0 &&
         c.run >= launch->views[buffer].length;
}
