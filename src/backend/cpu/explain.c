/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints why the CPU device chose a vector width and a tier. */
#include "backend/cpu/explain.h"

#include "base/print.h"

static const char *const kinds[] = {
#define VYRE__X(name, text) text,
    VYRE__COST_MAP(VYRE__X)
#undef VYRE__X
};

/* Bytes of LLVM IR per estimated instruction: measured on the kernels of the
 * public benchmark suites, see explain_test.c. */
enum { BYTES_PER_INSTRUCTION = 64 };

enum { COLUMN = 10 }; /* characters of a kind of cost */

static size_t estimated_text(const vyre__cost *cost) {
  return (size_t)cost->size * BYTES_PER_INSTRUCTION;
}

static const vyre__cost *cost_of(const cpu_choice *c, uint32_t width) {
  for (uint32_t i = 0; i < VYRE__WIDTHS; i++) {
    if (c->widths.costs[i].width == width) return &c->widths.costs[i];
  }
  return NULL;
}

/* Returns the best estimate of another width. */
static const vyre__cost *second_best(const cpu_choice *c) {
  const vyre__cost *best = NULL;
  for (uint32_t i = 0; i < VYRE__WIDTHS; i++) {
    const vyre__cost *one = &c->widths.costs[i];
    if (one->width == c->width) continue;
    if (!best || one->cycles < best->cycles) best = one;
  }
  return best;
}

/* Returns true if some width spends at least 2 % of its time on @p kind. */
static bool matters(const cpu_choice *c, unsigned kind) {
  for (uint32_t i = 0; i < VYRE__WIDTHS; i++) {
    const vyre__cost *one = &c->widths.costs[i];
    if (one->kinds[kind] > 0.02 * one->cycles) return true;
  }
  return false;
}

typedef enum reason {
  REASON_OPTION, /* the width is fixed */
  REASON_SIZE,   /* the text of the best width is too large */
  REASON_SINGLE, /* workgroups have one invocation */
  REASON_NARROW, /* a wider vector would gain too little */
  REASON_COST,
} reason;

static reason reason_of(const cpu_choice *c) {
  const vyre__cost *other = second_best(c), *own = cost_of(c, c->width);
  if (c->fixed_width > 0) return REASON_OPTION;
  if (c->width != c->widths.width) return REASON_SIZE;
  if (c->widths.is_single) return REASON_SINGLE;
  return other->cycles < own->cycles ? REASON_NARROW : REASON_COST;
}

static const char *const reason_names[] = {
    [REASON_OPTION] = "option", [REASON_SIZE] = "size",
    [REASON_SINGLE] = "single", [REASON_NARROW] = "narrower",
    [REASON_COST] = "cost",
};

/* Prints a number of at least 0 with @p decimals, in any locale. */
static void put_number(vyre__printer *out, double number, unsigned width,
                       unsigned decimals) {
  unsigned long long scale = 1, digits;
  for (unsigned i = 0; i < decimals; i++) scale *= 10;
  digits = (unsigned long long)(number * (double)scale + 0.5);
  int room = width > decimals + 1 ? (int)(width - decimals - 1) : 0;
  vyre__print(out, "%*llu.%0*llu", room, digits / scale, (int)decimals,
              digits % scale);
}

/* --- text -----------------------------------------------------------------*/

static void put_table(vyre__printer *out, const cpu_choice *c) {
  vyre__print(out, "  width   cycles");
  for (unsigned k = 0; k < VYRE__COST_KINDS; k++) {
    if (matters(c, k)) vyre__print(out, "  %*s", COLUMN, kinds[k]);
  }
  vyre__print(out, "  rows  ranges     text\n");
  for (uint32_t i = 0; i < VYRE__WIDTHS; i++) {
    const vyre__cost *one = &c->widths.costs[i];
    vyre__print(out, "  %5u%c ", (unsigned)one->width,
                one->width == c->width ? '*' : ' ');
    put_number(out, one->cycles, 7, 2);
    for (unsigned k = 0; k < VYRE__COST_KINDS; k++) {
      if (!matters(c, k)) continue;
      vyre__print(out, "  ");
      put_number(out, one->kinds[k], COLUMN, 2);
    }
    vyre__print(out, "  %4u  %6u  %3zu KiB\n", (unsigned)one->jammed_rows,
                (unsigned)one->ranges, (estimated_text(one) + 1023) / 1024);
  }
  vyre__print(out, "  estimated cycles per invocation on %s\n",
              c->device->host_cpu->cpu);
}

static void put_reason(vyre__printer *out, const cpu_choice *c) {
  const vyre__cost *own = cost_of(c, c->width), *other = second_best(c);
  double percent = 100 * (other->cycles / own->cycles - 1);
  unsigned rounded = (unsigned)((percent < 0 ? -percent : percent) + 0.5);
  vyre__print(out, "  width      %u: ", (unsigned)c->width);
  switch (reason_of(c)) {
    case REASON_OPTION:
      vyre__print(
          out,
          "set by the option cpu.width, or by tuning; the estimate is %u\n",
          (unsigned)c->widths.width);
      break;
    case REASON_SIZE:
      vyre__print(out,
                  "code of width %u is too large, or needs too much stack\n",
                  (unsigned)c->widths.width);
      break;
    case REASON_SINGLE:
      vyre__print(out, "workgroups of one invocation have no lanes\n");
      break;
    case REASON_NARROW:
      vyre__print(out, "width %u is only %u %% better, which is not enough\n",
                  (unsigned)other->width, rounded);
      break;
    default:
      vyre__print(out, "the lowest estimate; width %u is %u %% worse\n",
                  (unsigned)other->width, rounded);
  }
}

static void put_rest(vyre__printer *out, const cpu_choice *c) {
  const vyre__cost *own = cost_of(c, c->width);
  vyre__print(
      out,
      "  tier       %s: %zu KiB of LLVM IR; the limit of optimised code "
      "is %zu KiB\n",
      c->is_baseline ? "baseline" : "optimised", (c->text + 1023) / 1024,
      c->max_text / 1024);
  if (own->jammed_rows > 1) {
    vyre__print(out, "  unrolling  %u rows run together and share loads\n",
                (unsigned)own->jammed_rows);
  } else {
    vyre__print(out, "  unrolling  rows run one by one\n");
  }
  vyre__print(out, "  splitting  %u range%s of rows with code of %s own%s\n",
              (unsigned)own->ranges, own->ranges == 1 ? "" : "s",
              own->ranges == 1 ? "its" : "their",
              c->is_compact ? "; no copies for full workgroups, because the "
                              "code is large"
                            : "");
}

/* --- JSON -----------------------------------------------------------------*/

static void put_json(vyre__printer *out, const cpu_choice *c) {
  vyre__print(out,
              "{\"width\":%u,\"reason\":\"%s\",\"processor\":\"%s\","
              "\"tier\":\"%s\",\"text_bytes\":%zu,\"max_text_bytes\":%zu,"
              "\"is_compact\":%s,\"widths\":[",
              (unsigned)c->width, reason_names[reason_of(c)],
              c->device->host_cpu->cpu,
              c->is_baseline ? "baseline" : "optimised", c->text, c->max_text,
              c->is_compact ? "true" : "false");
  for (uint32_t i = 0; i < VYRE__WIDTHS; i++) {
    const vyre__cost *one = &c->widths.costs[i];
    vyre__print(out,
                "%s{\"width\":%u,\"jammed_rows\":%u,\"ranges\":%u,"
                "\"estimated_text_bytes\":%zu,\"cycles\":",
                i ? "," : "", (unsigned)one->width, (unsigned)one->jammed_rows,
                (unsigned)one->ranges, estimated_text(one));
    put_number(out, one->cycles, 0, 4);
    vyre__print(out, ",\"kinds\":{");
    for (unsigned k = 0; k < VYRE__COST_KINDS; k++) {
      vyre__print(out, "%s\"%s\":", k ? "," : "", kinds[k]);
      put_number(out, one->kinds[k], 0, 4);
    }
    vyre__print(out, "}}");
  }
  vyre__print(out, "]}");
}

bool cpu_explain(const cpu_choice *choice, bool json, vyre_writer writer) {
  vyre__printer out = vyre__printer_make(writer);
  if (json) {
    put_json(&out, choice);
    return out.ok;
  }
  put_table(&out, choice);
  put_reason(&out, choice);
  put_rest(&out, choice);
  return out.ok;
}
