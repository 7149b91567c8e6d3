/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints statements: the code of one invocation in a subregion, and the code
 * that the workgroup executes before a region. */
#include <string.h>

#include "codegen/c/internal.h"

static const char axes[] = "xyz";

void c_line(c_emitter *e) {
  if (!e->is_silent) vyre__print_repeat(&e->out, "  ", e->indent);
}

/* Prints the source line if it changed. */
void c_source_line(c_emitter *e, uint32_t at) {
  const vyre__lir_kernel *kernel = e->kernel;
  if (e->options->no_lines || !kernel->source_locs) return;
  uint32_t line = kernel->source_locs[at].line;
  if (!line || line == e->line) return;
  e->line = line;
  const char *file = kernel->program ? kernel->program->file : "";
  /* A file name must not end the comment. */
  bool is_plain = file && file[0] && !strstr(file, "*/") && !strstr(file, "/*");
  for (const char *c = file; is_plain && *c; c++) {
    is_plain = (unsigned char)*c >= ' ' && *c != 0x7f;
  }
  C_LINE(e, "/* %.200s:%u */\n", is_plain ? file : "line", (unsigned)line);
}

/* --- values --------------------------------------------------------------- */

static bool is_atomic(const c_emitter *e, uint32_t at) {
  return vyre__lir_ops[c_inst(e, at)->op].flags & VYRE__LIRF_ATOMICS;
}

/* Returns the condition operand of an access; 0: none. */
static vyre__val condition_of(const vyre__lir_inst *inst) {
  return inst->op == VYRE__LIR_ATOMIC_CAS ? inst->d : inst->c;
}

static void print_definition(c_emitter *e, uint32_t at) {
  if (!is_atomic(e, at)) {
    c_expression(e, at);
    return;
  }
  vyre__val condition = condition_of(c_inst(e, at));
  if (condition) {
    c_value(e, condition, C_CONDITION);
    C_PRINT(e, " ? ");
  }
  c_atomic(e, at);
  if (condition) C_PRINT(e, " : 0u");
}

/* Returns the next subregion if it is rare and @p v is its condition; else
 * 0. */
static uint32_t rare_of(const c_emitter *e, vyre__val v) {
  uint32_t next = c_info(e, v)->subregion + 1;
  if (next >= e->r->subregion_count || !e->r->subregions[next].is_rare ||
      e->r->subregions[next].is_empty) {
    return 0;
  }
  return c_inst(e, e->r->subregions[next].begin)->a == v ? next : 0;
}

static void print_stored(c_emitter *e, uint32_t at) {
  const vyre__inst_info *info = c_info(e, at);
  uint32_t rare = rare_of(e, at);
  bool has_name = c_note_of(e, at)->inside_uses > 0 || rare;
  if (has_name) {
    C_PRINT(e, "const %s t%u = ", c_type((vyre_type)c_inst(e, at)->type),
            (unsigned)at);
    print_definition(e, at);
    C_PRINT(e, ";\n");
    c_line(e);
  }
  C_PRINT(e, "v%u", (unsigned)at);
  c_array_index(e, info->storage);
  C_PRINT(e, " = ");
  if (has_name) {
    C_PRINT(e, "t%u", (unsigned)at);
  } else {
    print_definition(e, at);
  }
  if (rare) {
    C_PRINT(e, ";\n");
    C_LINE(e, "rare_%u |= t%u", (unsigned)rare, (unsigned)at);
  }
}

/* Returns true if the value is declared at the top of its loop, because a `goto
 * step` may skip it. */
static bool is_early(const c_emitter *e, uint32_t at) {
  uint32_t loop = c_info(e, at)->parent;
  return c_note_of(e, at)->is_early && loop &&
         c_inst(e, loop)->op == VYRE__LIR_LOOP &&
         e->step_used[loop - e->r->begin];
}

static void print_value(c_emitter *e, uint32_t at) {
  const vyre__inst_info *info = c_info(e, at);
  const c_note *note = c_note_of(e, at);
  bool agrees = info->storage == VYRE__STORAGE_BROADCAST;
  bool is_stored = agrees || info->storage >= VYRE__STORAGE_ARRAY;
  bool has_effect = is_atomic(e, at);
  if (note->form != C_NAMED || note->global) return;
  if (info->is_leaf && !agrees) return;
  if (!is_stored && c_known_of(e, at) != C_UNKNOWN) return;
  bool is_used = note->used_before &&
                 (info->storage == VYRE__STORAGE_UNIFORM || info->uses);
  if (!is_stored && !is_used && !has_effect) return;
  c_source_line(e, at);
  c_line(e);
  if (agrees || is_early(e, at)) {
    C_PRINT(e, "v%u = ", (unsigned)at);
    print_definition(e, at);
  } else if (is_stored) {
    print_stored(e, at);
  } else if (has_effect && !is_used) {
    if (condition_of(c_inst(e, at))) {
      C_PRINT(e, "if (");
      c_value(e, condition_of(c_inst(e, at)), C_TOP);
      C_PRINT(e, ") ");
    }
    c_atomic(e, at);
  } else {
    C_PRINT(e, "const %s v%u = ", c_type((vyre_type)c_inst(e, at)->type),
            (unsigned)at);
    print_definition(e, at);
  }
  C_PRINT(e, ";\n");
}

static void print_set(c_emitter *e, uint32_t at) {
  const vyre__lir_inst *inst = c_inst(e, at);
  const vyre__lir_inst *value = c_inst(e, inst->a);
  bool local = e->r->var_storage[inst->aux] == VYRE__STORAGE_LOCAL;
  if (value->op == VYRE__LIR_GET && value->aux == inst->aux &&
      c_note_of(e, inst->a)->form == C_ALIAS) {
    return; /* it already has that value */
  }
  c_source_line(e, at);
  c_line(e);
  if (local && e->var_declared[inst->aux] == at) {
    C_PRINT(e, "%s ", c_type((vyre_type)e->kernel->vars[inst->aux].type));
  }
  c_variable(e, inst->aux);
  C_PRINT(e, " = ");
  c_value(e, inst->a, C_TOP);
  C_PRINT(e, ";\n");
}

static void print_store(c_emitter *e, uint32_t at) {
  const vyre__lir_inst *inst = c_inst(e, at);
  uint8_t width = e->kernel->buffers[inst->aux].width;
  c_source_line(e, at);
  c_line(e);
  if (inst->c && c_known_of(e, inst->c) != C_TRUE) {
    C_PRINT(e, "if (");
    c_value(e, inst->c, C_TOP);
    C_PRINT(e, ") ");
  }
  c_index(e, at);
  C_PRINT(e, " = ");
  if (width < 4) C_PRINT(e, width == 1 ? "(uint8_t)" : "(uint16_t)");
  c_value(e, inst->b, width < 4 ? C_UNARY : C_TOP);
  C_PRINT(e, ";\n");
}

/* --- control -------------------------------------------------------------- */

static uint32_t loop_of(const c_emitter *e, uint32_t at) {
  uint32_t open = c_info(e, at)->parent;
  while (open && c_inst(e, open)->op != VYRE__LIR_LOOP) {
    open = c_info(e, open)->parent;
  }
  return open;
}

/* Labels are visible in the full function, so the second copy needs other
 * names. */
static const char *label_end(const c_emitter *e) {
  return e->is_full ? "_full" : "";
}

/* Ends this subregion for the invocation. */
static void leave_subregion(c_emitter *e, uint32_t at) {
  if (c_info(e, at)->sets_done) {
    C_LINE(e, "done");
    c_array_index(e, e->r->done_storage);
    C_PRINT(e, " = 1;\n");
  }
  uint32_t loop = loop_of(e, at);
  c_line(e);
  if (loop && c_info(e, loop)->subregion) {
    e->used.next = true;
    C_PRINT(e, "goto next_%u%s;\n", (unsigned)e->subregion, label_end(e));
  } else {
    C_PRINT(e, "continue;\n");
  }
}

static void print_jump(c_emitter *e, uint32_t at) {
  uint8_t op = c_inst(e, at)->op;
  c_source_line(e, at);
  if (op == VYRE__LIR_BREAK) {
    C_LINE(e, "break;\n");
    return;
  }
  uint32_t loop = op == VYRE__LIR_CONTINUE ? loop_of(e, at) : 0;
  if (!loop || !c_info(e, loop)->subregion) {
    leave_subregion(e, at);
    return;
  }
  uint32_t step = c_info(e, loop)->mate;
  bool is_bare = c_info(e, step)->mate == step + 1;
  c_line(e);
  if (is_bare) {
    C_PRINT(e, "continue;\n");
  } else {
    e->step_used[loop - e->r->begin] = true;
    C_PRINT(e, "goto step_%u%s;\n", (unsigned)loop, label_end(e));
  }
}

static void declare_early(c_emitter *e, uint32_t loop) {
  if (!e->step_used[loop - e->r->begin]) return;
  for (uint32_t at = loop + 1; at < c_info(e, loop)->mate; at++) {
    const c_note *note = c_note_of(e, at);
    if (c_info(e, at)->parent != loop || !c_info(e, at)->is_needed) continue;
    if (!note->is_early || !note->used_before) continue;
    vyre_type type = (vyre_type)c_inst(e, at)->type;
    C_LINE(e, "%s v%u = %s;\n", c_type(type), (unsigned)at, c_zero(type));
  }
}

static void open_if(c_emitter *e, vyre__val condition, bool is_else) {
  c_line(e);
  if (c_known_of(e, condition) == (is_else ? C_FALSE : C_TRUE)) {
    C_PRINT(e, "{\n");
  } else {
    C_PRINT(e, is_else ? "if (!" : "if (");
    c_value(e, condition, is_else ? C_UNARY : C_TOP);
    C_PRINT(e, ") {\n");
  }
  e->indent++;
}

static void print_marker(c_emitter *e, uint32_t at) {
  const vyre__lir_inst *inst = c_inst(e, at);
  switch (inst->op) {
    case VYRE__LIR_IF:
      c_source_line(e, at);
      open_if(e, inst->a, false);
      break;
    case VYRE__LIR_LOOP:
      c_source_line(e, at);
      C_LINE(e, "for (;;) {\n");
      e->indent++;
      declare_early(e, at);
      break;
    case VYRE__LIR_STEP: {
      uint32_t loop = c_info(e, at)->parent;
      if (e->step_used[loop - e->r->begin]) {
        C_PRINT(e, "step_%u%s:;\n", (unsigned)loop, label_end(e));
      }
      break;
    }
    case VYRE__LIR_ELSE:
      e->indent--;
      C_LINE(e, "} else {\n");
      e->indent++;
      break;
    default: /* END */
      e->indent--;
      C_LINE(e, "}\n");
  }
}

static void print_statement(c_emitter *e, uint32_t at) {
  const vyre__inst_info *info = c_info(e, at);
  uint8_t op = c_inst(e, at)->op;
  uint16_t flags = vyre__lir_ops[op].flags;
  if (!info->is_needed || c_home(e, at) != e->subregion) return;
  if (flags & VYRE__LIRF_CONTROL) {
    print_marker(e, at);
  } else if (flags & VYRE__LIRF_JUMPS) {
    print_jump(e, at);
  } else if (op == VYRE__LIR_SET) {
    print_set(e, at);
  } else if (op == VYRE__LIR_STORE) {
    print_store(e, at);
  } else if (op == VYRE__LIR_OUT_OF_FUEL) {
    c_source_line(e, at);
    C_LINE(e, "return 1; /* out of fuel */\n");
  } else {
    print_value(e, at);
  }
}

/* --- subregions ----------------------------------------------------------- */

/* Reopens, outermost first, the IFs that are open where the subregion
 * begins. */
static void reopen(c_emitter *e, uint32_t open) {
  if (!open || !c_info(e, open)->subregion) return;
  reopen(e, c_info(e, open)->parent);
  bool is_else = c_inst(e, open)->op == VYRE__LIR_ELSE;
  uint32_t begin = c_info(e, vyre__end_of(e->r, open))->mate;
  open_if(e, c_inst(e, begin)->a, is_else);
}

/* Returns true for `if (false) { exit }` in the code for full rows. */
static bool is_impossible(const c_emitter *e, uint32_t at) {
  const vyre__lir_inst *inst = c_inst(e, at);
  return inst->op == VYRE__LIR_IF && c_known_of(e, inst->a) == C_FALSE &&
         c_inst(e, at + 1)->op == VYRE__LIR_EXIT &&
         c_inst(e, at + 2)->op == VYRE__LIR_END;
}

static void print_body(c_emitter *e, const vyre__subregion *subregion) {
  unsigned indent = e->indent;
  if (subregion->tests_done) {
    C_LINE(e, "if (done");
    c_array_index(e, e->r->done_storage);
    C_PRINT(e, ") continue;\n");
  }
  reopen(e, c_info(e, subregion->begin)->parent);
  for (uint32_t at = subregion->begin; at < subregion->end; at++) {
    if (is_impossible(e, at)) {
      at += 2;
    } else {
      print_statement(e, at);
    }
  }
  while (e->indent > indent) {
    e->indent--;
    C_LINE(e, "}\n");
  }
}

/* Declares global ids, rematerialised values and variables. */
static void declare_locals(c_emitter *e, const vyre__subregion *subregion) {
  const vyre__lir_kernel *kernel = e->kernel;
  for (unsigned i = 0; i < 3; i++) {
    if (!e->used.global[i]) continue;
    e->used.group[i] = true;
    C_LINE(e, "const uint32_t global_%c = group_%c * %uu + local_%c;\n",
           axes[i], axes[i], (unsigned)kernel->workgroup[i], axes[i]);
  }
  for (uint32_t i = 0; i < subregion->remat_count; i++) {
    vyre__val v = e->r->remats[subregion->first_remat + i];
    if (c_note_of(e, v)->used_in != e->subregion + 1) continue;
    C_LINE(e, "const %s v%u = ", c_type((vyre_type)c_inst(e, v)->type),
           (unsigned)v);
    c_expression(e, v);
    C_PRINT(e, ";\n");
  }
  for (uint32_t at = subregion->begin; at < subregion->end; at++) {
    uint8_t op = c_inst(e, at)->op;
    if (op != VYRE__LIR_GET && op != VYRE__LIR_SET) continue;
    uint32_t var = c_inst(e, at)->aux;
    if (!c_info(e, at)->is_needed || e->var_declared[var]) continue;
    if (e->r->var_storage[var] != VYRE__STORAGE_LOCAL) continue;
    if (e->var_subregion[var] == e->subregion) continue;
    e->var_subregion[var] = e->subregion;
    vyre_type type = (vyre_type)kernel->vars[var].type;
    C_LINE(e, "%s %s = %s;\n", c_type(type), e->var_names[var], c_zero(type));
  }
}

void c_subregion(c_emitter *e, uint32_t index) {
  const vyre__subregion *subregion = &e->r->subregions[index];
  bool was_silent = e->is_silent;
  uint32_t line = e->line;
  e->subregion = index;
  memset(e->used.global, 0, sizeof e->used.global);
  e->used.next = false;
  e->is_silent = true;
  for (uint32_t i = 0; i < subregion->remat_count; i++) {
    c_note_of(e, e->r->remats[subregion->first_remat + i])->used_in = 0;
  }
  print_body(e, subregion);
  for (uint32_t i = subregion->remat_count; i-- > 0;) {
    vyre__val v = e->r->remats[subregion->first_remat + i];
    if (c_note_of(e, v)->used_in == index + 1) c_expression(e, v);
  }
  e->is_silent = was_silent;
  e->line = line;
  for (uint32_t i = 0; i < e->kernel->var_count; i++) e->var_subregion[i] = 0;
  declare_locals(e, subregion);
  print_body(e, subregion);
  if (e->used.next) {
    C_PRINT(e, "next_%u%s:;\n", (unsigned)index, label_end(e));
  }
  e->subregion = 0;
}

void c_hoisted(c_emitter *e, const vyre__region *region) {
  for (uint32_t at = region->begin; at < region->end; at++) {
    if (e->is_host && e->host_levels[at - e->r->begin] != e->host_level) {
      continue;
    }
    if (c_info(e, at)->storage == VYRE__STORAGE_UNIFORM) print_statement(e, at);
  }
}
