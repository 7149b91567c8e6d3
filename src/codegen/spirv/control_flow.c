/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Emits a phase as a function. LIR control flow is already structured: every IF
 * becomes a selection, every LOOP a loop with STEP as its continue construct.
 * Code after a jump in its block is omitted. */
#include <string.h>

#include "base/memory.h"
#include "codegen/spirv/internal.h"

/* --- inputs --------------------------------------------------------------- */

static uint32_t component(spv_emitter *e, uint32_t variable, uint32_t axis) {
  uint32_t u32 = spv_uint(e, 32);
  uint32_t three = SPV_TYPE(e, SPV_OpTypeVector, u32, 3);
  uint32_t all = SPV_DO(e, SPV_OpLoad, three, variable);
  return SPV_DO(e, SPV_OpCompositeExtract, u32, all, axis);
}

static const vyre__spirv_field *field_of(const spv_emitter *e,
                                         vyre__spirv_value value,
                                         uint32_t index) {
  for (size_t i = 0; i < e->out->field_count; i++) {
    const vyre__spirv_field *f = &e->out->fields[i];
    if (f->value == value && f->index == index) return f;
  }
  return NULL; /* impossible in a verified kernel */
}

static uint32_t field_word(spv_emitter *e, vyre__spirv_value value,
                           uint32_t index, uint32_t word) {
  const vyre__spirv_field *f = field_of(e, value, index);
  if (!f) return spv_u32(e, 0);
  return spv_block_word(e, f->is_pushed, f->offset / 4 + word);
}

static uint32_t length_of(spv_emitter *e, uint32_t buffer) {
  const vyre__lir_buffer *b = &e->k->buffers[buffer];
  const spv_buffer_info *p = &e->infos[buffer];
  if (!spv_is_bound(b)) return spv_u32(e, b->count);
  return spv_block_word(e, p->is_length_pushed, p->length_at);
}

static uint32_t loop_value(spv_emitter *e, const vyre__lir_inst *inst) {
  uint32_t low = field_word(e, VYRE__SPIRV_LOOP_VALUE, inst->aux, inst->c);
  if (inst->type != VYRE_TYPE_U64) return low;
  uint32_t u64 = spv_uint(e, 64);
  uint32_t high = field_word(e, VYRE__SPIRV_LOOP_VALUE, inst->aux, 1);
  low = SPV_DO(e, SPV_OpUConvert, u64, low);
  high = SPV_DO(e, SPV_OpUConvert, u64, high);
  high = SPV_DO(e, SPV_OpShiftLeftLogical, u64, high, spv_u32(e, 32));
  return SPV_DO(e, SPV_OpBitwiseOr, u64, low, high);
}

/* Returns where the id of an input is cached, which is loaded at the begin of
 * the function. NULL for other instructions. */
static uint32_t *input_id(spv_emitter *e, const vyre__lir_inst *inst) {
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_LOCAL_ID:
      return &e->local[inst->aux];
    case VYRE__LIR_GROUP_ID:
      return &e->group[inst->aux];
    case VYRE__LIR_GRID_SIZE:
      return &e->grid[inst->aux];
    case VYRE__LIR_LEN:
      return &e->lengths[inst->aux];
    case VYRE__LIR_LOOP_VALUE:
      return &e->loop_values[2 * inst->aux + inst->c];
    case VYRE__LIR_FUEL:
      return &e->fuel;
    default:
      return NULL;
  }
}

static uint32_t load_input(spv_emitter *e, const vyre__lir_inst *inst) {
  uint32_t axis = inst->aux;
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_LOCAL_ID:
      return component(e, e->local_id, axis);
    case VYRE__LIR_GROUP_ID:
      return SPV_DO(e, SPV_OpIAdd, spv_uint(e, 32),
                    component(e, e->workgroup_id, axis),
                    field_word(e, VYRE__SPIRV_BASE, 0, axis));
    case VYRE__LIR_GRID_SIZE:
      return field_word(e, VYRE__SPIRV_GRID, 0, axis);
    case VYRE__LIR_LEN:
      return length_of(e, inst->aux);
    case VYRE__LIR_LOOP_VALUE:
      return loop_value(e, inst);
    default:
      return field_word(e, VYRE__SPIRV_FUEL, 0, 0);
  }
}

/* Returns true for a uniform at a valid constant index. All loads of it are
 * equal, and some devices would repeat a load inside a loop in every
 * iteration. */
static bool is_known(const spv_emitter *e, const vyre__lir_inst *inst) {
  if (inst->op != VYRE__LIR_LOAD) return false;
  const vyre__lir_buffer *b = &e->k->buffers[inst->aux];
  return b->kind == VYRE_MEMORY_UNIFORM && !b->is_written &&
         !inst->v[vyre__lir_ops[VYRE__LIR_LOAD].operands - 1u] &&
         e->k->code[inst->a].op == VYRE__LIR_CONST &&
         vyre__lir_const(&e->k->code[inst->a]) < spv_elements(b);
}

static const spv_known *find_known(const spv_emitter *e,
                                   const vyre__lir_inst *inst) {
  if (!is_known(e, inst)) return NULL;
  uint64_t index = vyre__lir_const(&e->k->code[inst->a]);
  for (size_t i = 0; i < e->known_count; i++) {
    const spv_known *known = &e->known[i];
    if (known->buffer == inst->aux && known->index == index) return known;
  }
  return NULL;
}

/* --- start of a function -------------------------------------------------- */

static spv_open *push_open(spv_emitter *e, const spv_open *open) {
  if (!vyre__reserve(e->allocator, &e->open, &e->open_capacity,
                     e->open_count + 1, sizeof *e->open, false)) {
    e->no_memory = true;
    return NULL;
  }
  e->open[e->open_count] = *open;
  return &e->open[e->open_count++];
}

/* Marks all IFs between a BREAK and its loop. */
static void mark_break(spv_emitter *e) {
  for (size_t i = e->open_count; i-- > 0 && e->open[i].op != VYRE__LIR_LOOP;) {
    e->ids[e->open[i].header] |=
        e->open[i].op == VYRE__LIR_IF ? SPV_IF_BREAKS : SPV_ELSE_BREAKS;
  }
}

/* Finds IFs with an ELSE and IFs that lead to a BREAK. The ids of IFs store the
 * result. */
static void find_elses(spv_emitter *e, vyre__lir_phase range) {
  e->open_count = 0;
  for (uint32_t at = range.begin; at < range.end && !e->no_memory; at++) {
    unsigned op = e->k->code[at].op;
    if (op == VYRE__LIR_IF || op == VYRE__LIR_LOOP) {
      e->ids[at] = 0;
      (void)push_open(e, &(spv_open){.op = (uint8_t)op, .header = at});
    } else if (op == VYRE__LIR_ELSE) {
      spv_open *top = &e->open[e->open_count - 1];
      e->ids[top->header] |= SPV_IF_ELSE;
      top->op = VYRE__LIR_ELSE;
    } else if (op == VYRE__LIR_BREAK) {
      mark_break(e);
    } else if (op == VYRE__LIR_END) {
      e->open_count--;
    }
  }
}

static void declare_vars(spv_emitter *e, vyre__lir_phase range) {
  memset(e->vars, 0, e->k->var_count * sizeof *e->vars);
  for (uint32_t at = range.begin; at < range.end; at++) {
    const vyre__lir_inst *inst = &e->k->code[at];
    if (inst->op != VYRE__LIR_GET && inst->op != VYRE__LIR_SET) continue;
    uint32_t *id = &e->vars[inst->aux];
    if (*id) continue;
    const vyre__lir_var *var = &e->k->vars[inst->aux];
    if ((var->type == VYRE_TYPE_U64 && !e->target->int64) ||
        (var->type == VYRE_TYPE_F64 && !e->target->float64)) {
      spv_reject(e, at, "such variables");
    }
    uint32_t type =
        spv_pointer(e, SPV_STORAGE_Function, spv_type_of(e, var->type));
    *id = SPV_DO(e, SPV_OpVariable, type, SPV_STORAGE_Function);
    spv_name(e, *id, var->name);
  }
}

static void load_inputs(spv_emitter *e, vyre__lir_phase range) {
  memset(e->local, 0, sizeof e->local);
  memset(e->group, 0, sizeof e->group);
  memset(e->grid, 0, sizeof e->grid);
  e->fuel = 0;
  memset(e->lengths, 0, e->k->buffer_count * sizeof *e->lengths);
  memset(e->loop_values, 0,
         2 * (size_t)e->k->grid_loop_count * sizeof *e->loop_values);
  for (uint32_t at = range.begin; at < range.end; at++) {
    const vyre__lir_inst *inst = &e->k->code[at];
    uint32_t *place = input_id(e, inst);
    if (!place) continue;
    if (inst->type == VYRE_TYPE_U64 && !e->target->int64) {
      spv_reject(e, at, "64-bit integers");
      continue;
    }
    if (!*place) *place = load_input(e, inst);
    e->ids[at] = *place;
  }
}

static void load_all_known(spv_emitter *e, vyre__lir_phase range) {
  e->known_count = 0;
  for (uint32_t at = range.begin; at < range.end; at++) {
    const vyre__lir_inst *inst = &e->k->code[at];
    if (!is_known(e, inst)) continue;
    const spv_known *known = find_known(e, inst);
    if (!known) {
      if (e->known_count == SPV_MAX_KNOWN) continue; /* loaded at its use */
      spv_known *made = &e->known[e->known_count];
      const vyre__lir_inst *index = &e->k->code[inst->a];
      *made = (spv_known){.buffer = inst->aux, .index = vyre__lir_const(index)};
      e->ids[inst->a] = spv_const(e, index->type, made->index);
      made->id = spv_access(e, at);
      e->known_count++;
      known = made;
    }
    e->ids[at] = known->id;
  }
}

/* --- control flow --------------------------------------------------------- */

static uint32_t path_now(const spv_emitter *e) {
  return e->open_count ? e->open[e->open_count - 1].path : 0;
}

/* Returns the condition of an IF. Fuel tests are disabled if the module runs
 * without counting. */
static uint32_t condition_of(spv_emitter *e, uint32_t at) {
  uint32_t condition = e->ids[e->k->code[at].a];
  if (!e->counts_fuel || e->k->code[at + 1].op != VYRE__LIR_OUT_OF_FUEL) {
    return condition;
  }
  return SPV_DO(e, SPV_OpLogicalAnd, spv_bool(e), condition, e->counts_fuel);
}

/* Returns the condition of an access that a test implies, or 0. If an access
 * that gives 0 out of bounds returns another value, it was in bounds. */
static uint32_t condition_behind(const vyre__lir_kernel *k, uint32_t at) {
  const vyre__lir_inst *test = &k->code[at];
  bool is_equal = test->op == VYRE__LIR_EQ;
  if (!is_equal && test->op != VYRE__LIR_NE) return 0;
  const vyre__lir_inst *value = &k->code[test->a], *with = &k->code[test->b];
  if (with->op != VYRE__LIR_CONST || value->op < VYRE__LIR_LOAD ||
      value->op > VYRE__LIR_ATOMIC_CAS ||
      is_equal == (vyre__lir_const(with) == 0)) {
    return 0;
  }
  return value->v[vyre__lir_ops[value->op].operands - 1u];
}

static void begin_if(spv_emitter *e, uint32_t at) {
  bool has_else = e->ids[at] & SPV_IF_ELSE;
  uint32_t condition = condition_of(e, at), before = path_now(e);
  uint32_t path = 0, other_path = 0, test = e->k->code[at].a;
  if (before && e->ids[at] & SPV_IF_BREAKS) {
    path = spv_path(e, condition, true, before);
  }
  if (before && e->ids[at] & SPV_ELSE_BREAKS) {
    other_path = spv_path(e, condition, false, before);
  }
  uint32_t merge = spv_id(e), then = spv_id(e);
  uint32_t other = has_else ? spv_id(e) : merge;
  SPV_PUT(e, SPV_CODE, SPV_OpSelectionMerge, merge, 0);
  SPV_PUT(e, SPV_CODE, SPV_OpBranchConditional, condition, then, other);
  (void)push_open(e, &(spv_open){.op = VYRE__LIR_IF,
                                 .path = path,
                                 .other_path = other_path,
                                 .holds = {test, condition_behind(e->k, test)},
                                 .is_merge_reached = !has_else,
                                 .merge = merge,
                                 .other = other});
  spv_begin_block(e, then);
}

static void begin_loop(spv_emitter *e, uint32_t at) {
  uint32_t header = spv_id(e), body = spv_id(e);
  uint32_t step = spv_id(e), merge = spv_id(e);
  spv_open loop = {
      .op = VYRE__LIR_LOOP, .merge = merge, .header = header, .other = step};
  spv_enter_checked(e, at, &loop);
  (void)push_open(e, &loop);
  spv_branch(e, header);
  spv_begin_block(e, header);
  SPV_PUT(e, SPV_CODE, SPV_OpLoopMerge, merge, step, 0);
  spv_branch(e, body);
  spv_begin_block(e, body);
}

static void to_else(spv_emitter *e, spv_open *open) {
  if (!e->is_dead) {
    open->is_merge_reached = true;
    spv_branch(e, open->merge);
  }
  open->op = VYRE__LIR_ELSE;
  open->path = open->other_path;
  spv_begin_block(e, open->other);
}

/* An unreachable step still branches back: SPIR-V requires the back edge. */
static void to_step(spv_emitter *e, spv_open *open) {
  if (!e->is_dead) {
    open->is_other_reached = true;
    spv_branch(e, open->other);
  }
  open->op = VYRE__LIR_STEP;
  spv_begin_block(e, open->other);
  if (open->is_other_reached) return;
  spv_branch(e, open->header);
}

static void end_construct(spv_emitter *e) {
  spv_open open = e->open[--e->open_count];
  if (open.op == VYRE__LIR_STEP && open.visit && !open.is_merge_reached &&
      !e->is_dead) {
    spv_end_endless(e, &open);
    return;
  }
  if (open.op == VYRE__LIR_STEP) {
    if (!e->is_dead) spv_branch(e, open.header);
  } else if (!e->is_dead) {
    open.is_merge_reached = true;
    spv_branch(e, open.merge);
  }
  spv_begin_block(e, open.merge);
  if (open.is_merge_reached) {
    if (open.visit) spv_check_left(e, &open);
    return;
  }
  spv_put_alone(e, SPV_CODE, SPV_OpUnreachable);
  e->is_dead = true;
}

static void jump(spv_emitter *e, unsigned op) {
  size_t at = e->open_count;
  if (op == VYRE__LIR_EXIT) {
    spv_put_alone(e, SPV_CODE, SPV_OpReturn);
    e->is_dead = true;
    return;
  }
  while (at > 1 && e->open[at - 1].op != VYRE__LIR_LOOP) at--;
  if (at == 0) return; /* impossible in a verified kernel */
  spv_open *loop = &e->open[at - 1];
  if (op == VYRE__LIR_BREAK) {
    if (loop->visit) {
      SPV_PUT(e, SPV_CODE, SPV_OpStore, loop->left, path_now(e));
    }
    loop->is_merge_reached = true;
    spv_branch(e, loop->merge);
  } else {
    loop->is_other_reached = true;
    spv_branch(e, loop->other);
  }
}

/* Skips unreachable code. Only the end of the unreachable block matters.
 * Returns true if the instruction was skipped. */
static bool skip(spv_emitter *e, unsigned op) {
  if (!e->is_dead) return false;
  if (op == VYRE__LIR_IF || op == VYRE__LIR_LOOP) {
    e->skipped++;
    return true;
  }
  bool is_end =
      op == VYRE__LIR_ELSE || op == VYRE__LIR_STEP || op == VYRE__LIR_END;
  if (!is_end) return true;
  if (e->skipped == 0) return false;
  e->skipped -= op == VYRE__LIR_END;
  return true;
}

static void instruction(spv_emitter *e, uint32_t at);

/* Emits further copies of the body and the step. */
static void unroll(spv_emitter *e, uint32_t loop) {
  spv_extent extent = spv_extent_of(e, loop);
  for (uint32_t i = 1; i < extent.copies && !e->is_dead; i++) {
    for (uint32_t at = loop + 1; at < extent.end; at++) {
      if (at != extent.step) instruction(e, at);
    }
  }
}

static void control(spv_emitter *e, uint32_t at) {
  spv_open *top = e->open_count ? &e->open[e->open_count - 1] : NULL;
  switch ((vyre__lir_op)e->k->code[at].op) {
    case VYRE__LIR_IF:
      begin_if(e, at);
      break;
    case VYRE__LIR_LOOP:
      begin_loop(e, at);
      unroll(e, at);
      break;
    case VYRE__LIR_ELSE:
      if (top) to_else(e, top);
      break;
    case VYRE__LIR_STEP:
      if (top) to_step(e, top);
      break;
    default:
      if (top) end_construct(e);
      break;
  }
}

/* --- instructions --------------------------------------------------------- */

static void put_line(spv_emitter *e, uint32_t at) {
  const vyre__lir_kernel *k = e->k;
  if (!e->target->lines || !k->source_locs || !k->source_locs[at].line ||
      k->source_locs[at].line == e->line) {
    return;
  }
  e->line = k->source_locs[at].line;
  SPV_PUT(e, SPV_CODE, SPV_OpLine, e->file, e->line, k->source_locs[at].column);
}

static void instruction(spv_emitter *e, uint32_t at) {
  const vyre__lir_inst *inst = &e->k->code[at];
  unsigned flags = vyre__lir_ops[inst->op].flags;
  if (skip(e, inst->op) || input_id(e, inst) || find_known(e, inst)) return;
  if (e->is_opaque[at] && e->ids[at]) return; /* emitted already */
  if (e->is_delayed[at]) {
    e->ids[at] = 0; /* resets the id of the previous copy of the body */
    return;
  }
  spv_emit_delayed(e, at);
  bool is_marker = (flags & VYRE__LIRF_CONTROL) && inst->op != VYRE__LIR_IF;
  if (!is_marker && inst->op != VYRE__LIR_CONST) put_line(e, at);
  if (flags & VYRE__LIRF_CONTROL) {
    control(e, at);
  } else if (flags & VYRE__LIRF_JUMPS) {
    jump(e, inst->op);
  } else if (inst->op == VYRE__LIR_GET) {
    e->ids[at] =
        SPV_DO(e, SPV_OpLoad, spv_type_of(e, inst->type), e->vars[inst->aux]);
  } else if (inst->op == VYRE__LIR_SET) {
    SPV_PUT(e, SPV_CODE, SPV_OpStore, e->vars[inst->aux], e->ids[inst->a]);
  } else if (inst->op == VYRE__LIR_BARRIER) {
    spv_barrier(e, at);
  } else if (inst->op == VYRE__LIR_OUT_OF_FUEL) {
    spv_set_status(e, VYRE__SPIRV_OUT_OF_FUEL);
  } else if (inst->op >= VYRE__LIR_LOAD && inst->op <= VYRE__LIR_ATOMIC_CAS) {
    e->ids[at] = spv_access(e, at);
  } else {
    e->ids[at] = spv_pure(e, at);
  }
}

/* Ends the surplus lanes of a partly filled vector. The width is computed from
 * an opaque value, or a compiler would conclude that no lane is surplus. */
static void exit_surplus_lanes(spv_emitter *e) {
  uint32_t gone = spv_id(e), here = spv_id(e);
  uint32_t width = SPV_DO(e, SPV_OpIMul, spv_uint(e, 32),
                          spv_u32(e, e->k->workgroup[0]), e->one);
  uint32_t is_one = SPV_DO(e, SPV_OpULessThan, spv_bool(e),
                           component(e, e->local_id, 0), width);
  SPV_PUT(e, SPV_CODE, SPV_OpSelectionMerge, here, 0);
  SPV_PUT(e, SPV_CODE, SPV_OpBranchConditional, is_one, here, gone);
  spv_begin_block(e, gone);
  spv_put_alone(e, SPV_CODE, SPV_OpReturn);
  spv_begin_block(e, here);
}

uint32_t spv_phase(spv_emitter *e, uint32_t phase) {
  vyre__lir_phase range = e->k->phases[phase];
  uint32_t function = spv_id(e), none = spv_void(e);
  find_elses(e, range);
  spv_find_order(e, range);
  if (!e->function_type) {
    e->function_type = SPV_TYPE(e, SPV_OpTypeFunction, none);
  }
  SPV_PUT(e, SPV_CODE, SPV_OpFunction, none, function, 0, e->function_type);
  spv_begin_block(e, spv_id(e));
  e->open_count = 0;
  e->skipped = 0;
  declare_vars(e, range);
  e->one = e->none = e->visits = 0;
  if (e->is_checked[phase]) spv_declare_left(e, range);
  load_inputs(e, range);
  load_all_known(e, range);
  if (e->visits || e->has_opaque || e->has_private || e->leaves) {
    e->one = field_word(e, VYRE__SPIRV_ONE, 0, 0);
  }
  if (e->visits) {
    e->all = SPV_DO(e, SPV_OpISub, spv_uint(e, 32), spv_u32(e, 0), e->one);
    SPV_PUT(e, SPV_CODE, SPV_OpStore, e->visits, e->one);
  }
  if (e->has_private) {
    e->index_zero =
        SPV_DO(e, SPV_OpISub, spv_uint(e, 32), e->one, spv_u32(e, 1));
  }
  if (e->has_opaque) spv_make_constants_opaque(e, range);
  if (e->leaves) exit_surplus_lanes(e);
  spv_zero_shared(e);
  for (uint32_t at = range.begin;
       at < range.end && !e->no_memory && e->failed == VYRE_OK; at++) {
    instruction(e, at);
  }
  if (!e->is_dead) spv_put_alone(e, SPV_CODE, SPV_OpReturn);
  spv_put_alone(e, SPV_CODE, SPV_OpFunctionEnd);
  return function;
}
