/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parser: switch. */
#include "lang/parse/parse.h"

static bool is_label(const vyre__parser *p) {
  return vyre__p_is(p, VYRE__T_CASE) || vyre__p_is(p, VYRE__T_DEFAULT);
}

/* Reads case value: or default: */
static void read_label(vyre__parser *p, vyre__switch *s) {
  vyre__token first = p->now.token;
  bool is_case = vyre__p_is(p, VYRE__T_CASE);
  vyre__p_advance(p);
  vyre__id value = is_case ? vyre__p_operators(p, 1) : 0;
  vyre__p_mark(p, &first);
  if (!is_case) vyre__switch_default(&p->ir, s);
  if (!p->now.panic) vyre__switch_label(&p->ir, s, value);
  (void)vyre__p_expect(p, VYRE__T_COLON, "after the label");
  if (p->now.panic) vyre__p_recover(p, first.start);
}

/* Reads the statements of an arm, after its labels. */
static void read_arm(vyre__parser *p, vyre__switch *s) {
  vyre__ir_builder *m = &p->ir;
  size_t scope = p->binding_count, errors = m->error_count;
  vyre__switch_arm_begin(m, s);
  while (!is_label(p) && !vyre__p_ends_block(p) && !m->out_of_memory &&
         !p->out_of_memory) {
    vyre__p_statement(p);
  }
  if (is_label(p) && m->error_count == errors &&
      !vyre__switch_arm_leaves(m, s)) {
    vyre__p_error(p, vyre__p_span(&p->now.token), "V091",
                  "write break; before this label",
                  "control does not fall through to the next label");
  }
  vyre__switch_arm_end(m, s);
  vyre__p_unbind(p, scope);
}

/* Reports statements before the first label and skips them. */
static void skip_to_label(vyre__parser *p) {
  if (is_label(p) || vyre__p_ends_block(p)) return;
  (void)vyre__p_expected(p, "case or default", "write a label: case 1:");
  while (!is_label(p) && !vyre__p_ends_block(p)) vyre__p_advance(p);
  p->now.panic = false;
}

vyre__id vyre__p_switch(vyre__parser *p) {
  vyre__ir_builder *m = &p->ir;
  vyre__token first = p->now.token;
  vyre__switch s;
  vyre__p_advance(p);
  vyre__id value = vyre__p_condition(p, "switch");
  vyre__source_span span = vyre__p_since(p, &first);
  if (p->now.panic) vyre__p_skip_head(p);
  m->place = span.place;
  m->length = span.length;
  vyre__switch_begin(m, &s, value);
  vyre__token open = p->now.token;
  if (vyre__p_expect(p, VYRE__T_LBRACE, "and the cases of the switch")) {
    skip_to_label(p);
    while (is_label(p) && !m->out_of_memory && !p->out_of_memory) {
      while (is_label(p)) read_label(p, &s);
      read_arm(p, &s);
    }
    if (!vyre__p_close(p, VYRE__T_RBRACE, &open)) p->lost = p->now.panic = true;
  }
  return vyre__switch_end(m, &s);
}
