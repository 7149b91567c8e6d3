/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Implements print(...): one line for each active lane, in the order of lanes.
 * Texts and values are printed in sequence, with a space between two values. */
#include "base/print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/ref/ref.h"
#include "base/status.h"
#include "ir/scalar.h"

enum { NUMBER_TEXT = 48 };

/* Replaces the decimal point of the locale, which may be any text, by a dot. */
static void plain_point(char *text) {
  char *to = text;
  for (const char *from = text; *from; from++) {
    if (strchr("0123456789+-einfa", *from)) {
      *to++ = *from;
    } else if (to > text && to[-1] != '.') {
      *to++ = '.';
    }
  }
  *to = '\0';
}

/* Prints the shortest decimal number that converts back to the same value. */
static void print_float(vyre__printer *out, double value, bool wide) {
  char text[NUMBER_TEXT];
  if (value != value) {
    vyre__print(out, "nan"); /* without a sign */
    return;
  }
  for (int digits = 1; digits <= (wide ? 17 : 9); digits++) {
    (void)snprintf(text, sizeof text, "%.*g", digits, value);
    double back = wide ? strtod(text, NULL) : strtof(text, NULL);
    if (back == value) break;
  }
  plain_point(text);
  vyre__print(out, "%s", text);
}

static void print_value(vyre__printer *out, vyre_type type, uint64_t value) {
  switch (type) {
    case VYRE_TYPE_BOOL:
      vyre__print(out, value ? "true" : "false");
      return;
    case VYRE_TYPE_I32:
      vyre__print(out, "%d", vyre__i32(value));
      return;
    case VYRE_TYPE_I64:
      vyre__print(out, "%lld", (long long)vyre__i64(value));
      return;
    case VYRE_TYPE_F32:
      print_float(out, vyre__f32(value), false);
      return;
    case VYRE_TYPE_F64:
      print_float(out, vyre__f64(value), true);
      return;
    default:
      vyre__print(out, "%llu", (unsigned long long)value);
      return;
  }
}

static void print_text(vyre__printer *out, const ref_machine *m,
                       const vyre__node *node) {
  const char *text = m->program->texts + node->a;
  if (out->ok && node->b > 0) {
    out->ok = out->writer.write(out->writer.self, text, node->b);
  }
}

/* @p base: first vector of the arguments; texts have one as well, unused. */
static void print_lane(vyre__printer *out, const ref_machine *m,
                       const vyre__node *node, const uint64_t *base,
                       uint32_t lane) {
  const uint32_t *list = m->program->lists + node->a;
  bool after_value = false;
  for (uint32_t k = 0; k < node->b; k++) {
    const vyre__node *item = &m->nodes[list[k]];
    bool is_text = item->op == VYRE__OP_TEXT;
    if (is_text) {
      print_text(out, m, item);
    } else {
      if (after_value) vyre__print(out, " ");
      print_value(out, item->type, base[(size_t)k * m->lanes + lane]);
    }
    after_value = !is_text;
  }
  vyre__print(out, "\n");
}

void ref_print(ref_machine *m, vyre__id id, const ref_mask *mask) {
  const vyre__node *node = &m->nodes[id];
  const uint32_t *list = m->program->lists + node->a;
  uint32_t top = m->top;
  const uint64_t *base = m->temporaries + (size_t)top * m->lanes;
  for (uint32_t k = 0; k < node->b; k++) {
    const uint64_t *value = NULL;
    if (m->nodes[list[k]].op != VYRE__OP_TEXT) {
      value = ref_eval(m, list[k], mask);
    }
    m->top = top + k;
    uint64_t *kept = ref_push(m);
    if (value && value != kept) memcpy(kept, value, m->lanes * sizeof *kept);
  }
  m->top = top;
  vyre__printer out = vyre__printer_make(m->launch->print);
  if (!out.ok) return; /* no writer is set */
  for (uint32_t i = 0; i < m->lanes && out.ok; i++) {
    if (mask->lane[i]) print_lane(&out, m, node, base, i);
  }
  if (out.ok) return;
  ref_fail(
      m, VYRE_FAIL(m->st, VYRE_DISPATCH_FAILED, VYRE_KIND_WRITER_REFUSED,
                   "free space at the destination of print(...), or remove it",
                   "kernel '%.60s': the writer took no more text at line %u",
                   m->program->name, vyre__source_loc_of(m->program, id).line));
}
