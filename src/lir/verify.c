/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Verifies that a LIR kernel obeys the rules in lir.h.
 *
 * One pass over the instructions. IF, ELSE, LOOP and STEP open blocks, which
 * are numbered in that order; block 0 encloses all of them. Each block stores
 * its enclosing block, so no stack is needed. A value is visible while its
 * block is open. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "lir/print.h"
#include "lir/verify_internal.h"

typedef struct block {
  uint32_t opener; /* IF, ELSE, LOOP or STEP; 0: block 0 */
  uint32_t around; /* enclosing block of the opener */
  uint32_t loop;   /* innermost enclosing LOOP block, or itself; 0: none */
  uint32_t leaves; /* LOOP: its first CONTINUE, 0: none. Values defined after it
                    * may not exist in STEP. */
  bool is_open;    /* no END yet */
  bool in_step;    /* is a STEP block or nested in one */
  bool has_step;   /* LOOP: its STEP has begun */
} block;

enum { NOT_TAKEN = UINT32_MAX };

typedef struct grid_loop {
  uint32_t begin, end; /* step index + 1 of FOR and END_FOR */
  uint32_t outer;      /* step index + 1 of the enclosing FOR; 0: none */
  uint8_t type;        /* type in LIR */
} grid_loop;

typedef struct phase_note {
  uint32_t first, last; /* step index + 1 of the first and the last launch */
} phase_note;

typedef struct verifier {
  const vyre__lir_kernel *k;
  vyre__lir_stage stage;
  vyre_allocator allocator;
  vyre_status *st;
  uint32_t *homes; /* per instruction: its block; NOT_TAKEN: in no phase yet */
  size_t home_capacity;
  block *blocks;
  size_t block_count, block_capacity;
  grid_loop *loops;
  size_t loop_capacity;
  phase_note *phases;
  size_t phase_capacity;
  vyre__lir_phase range; /* range under verification */
  uint32_t phase; /* phase index; VYRE_NO_INDEX: host range, or none yet */
  bool is_host;
  uint32_t block; /* innermost open block */
  bool no_memory;
} verifier;

static const char *stage_name(vyre__lir_stage stage) {
  static const char *const names[] = {"build", "legalize-floats",
                                      "legalize-control"};
  return (unsigned)stage < 3 ? names[stage] : "?";
}

static vyre_code fail_instruction(const verifier *v, uint32_t number,
                                  const char *what) {
  char text[VYRE__LIR_TEXT];
  return VYRE_FAIL_WITH(v->st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE, NULL,
                        VYRE_NUMBERS({"instruction", number}), VYRE__LIR_DEFECT,
                        "invalid LIR after %s: instruction %u, '%s': %s",
                        stage_name(v->stage), number,
                        vyre__lir_text(v->k, number, text), what);
}

static vyre_code fail_table(const verifier *v, const char *thing,
                            uint32_t number, const char *what) {
  return VYRE_FAIL_WITH(v->st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE, NULL,
                        VYRE_NUMBERS({thing, number}), VYRE__LIR_DEFECT,
                        "invalid LIR after %s: %s %u: %s", stage_name(v->stage),
                        thing, number, what);
}

/* --- operands ------------------------------------------------------------- */

/* Checks a use of @p value by @p at. Returns a description of the error, or
 * NULL. */
static const char *check_use(const verifier *v, uint32_t at, vyre__val value) {
  if (value >= at) return "it uses a value that is not defined before it";
  if (value < v->range.begin) return "it uses a value of another phase";
  if (v->k->code[value].type == VYRE_TYPE_VOID) {
    return "it uses an instruction without a result";
  }
  const block *home = &v->blocks[v->homes[value]];
  if (!home->is_open) return "it uses a value whose block has ended";
  if (home->has_step && home->leaves && value > home->leaves) {
    return "a STEP uses a value that CONTINUE skips";
  }
  return NULL;
}

static const char *check_operands(const verifier *v, uint32_t at) {
  const vyre__lir_inst *inst = &v->k->code[at];
  unsigned count = vyre__lir_ops[inst->op].operands;
  for (unsigned i = 0; i < count; i++) {
    if (inst->v[i] == 0 && vyre__verify_may_lack(inst, i)) continue;
    if (inst->v[i] == 0) return "an operand is missing";
    const char *what = check_use(v, at, inst->v[i]);
    if (what) return what;
  }
  if (inst->op != VYRE__LIR_LOOP || inst->aux >= v->k->loop_count) return NULL;
  const vyre__lir_loop *loop = &v->k->loops[inst->aux];
  if (!loop->is_counted) return NULL;
  if (loop->first == 0 || loop->bound == 0) return "it lacks first or bound";
  const char *what = check_use(v, at, loop->first);
  if (!what) what = check_use(v, at, loop->bound);
  if (what || !loop->high_var) return what;
  if (loop->first_high == 0 || loop->bound_high == 0) {
    return "it lacks the upper half of first or bound";
  }
  what = check_use(v, at, loop->first_high);
  return what ? what : check_use(v, at, loop->bound_high);
}

/* --- structure ------------------------------------------------------------ */

static block *open_block(verifier *v, uint32_t at, uint32_t around) {
  if (!vyre__reserve(v->allocator, &v->blocks, &v->block_capacity,
                     v->block_count + 1, sizeof *v->blocks, false)) {
    v->no_memory = true;
    return NULL;
  }
  const block *outside = &v->blocks[around];
  v->block = (uint32_t)v->block_count++;
  block *b = &v->blocks[v->block];
  *b = (block){.opener = at,
               .around = around,
               .loop = outside->loop,
               .in_step = outside->in_step,
               .is_open = true};
  return b;
}

static const char *close_block(verifier *v) {
  block *b = &v->blocks[v->block];
  unsigned op = v->k->code[b->opener].op;
  if (op == VYRE__LIR_LOOP) return "the LOOP has no STEP";
  if (op == VYRE__LIR_NONE) return "no open block to end";
  b->is_open = false;
  v->block = b->around;
  if (op == VYRE__LIR_STEP) { /* also the body, which encloses the STEP */
    v->blocks[v->block].is_open = false;
    v->block = v->blocks[v->block].around;
  }
  return NULL;
}

static const char *check_jump(verifier *v, uint32_t at, unsigned op) {
  const block *b = &v->blocks[v->block];
  if (b->in_step) return "a jump out of a STEP";
  if (op == VYRE__LIR_EXIT) return NULL;
  if (b->loop == 0) return "no enclosing loop";
  block *loop = &v->blocks[b->loop];
  if (op == VYRE__LIR_CONTINUE && loop->leaves == 0) loop->leaves = at;
  return NULL;
}

/* Checks control flow and jumps. */
static const char *check_structure(verifier *v, uint32_t at) {
  unsigned op = v->k->code[at].op;
  block *inside = &v->blocks[v->block];
  unsigned around = v->k->code[inside->opener].op;
  switch (op) {
    case VYRE__LIR_IF:
    case VYRE__LIR_LOOP:
      inside = open_block(v, at, v->block);
      if (inside && op == VYRE__LIR_LOOP) inside->loop = v->block;
      return NULL;
    case VYRE__LIR_ELSE:
      if (around != VYRE__LIR_IF) return "an ELSE without IF";
      inside->is_open = false;
      (void)open_block(v, at, inside->around);
      return NULL;
    case VYRE__LIR_STEP:
      if (around != VYRE__LIR_LOOP) {
        return "a STEP outside the body of a LOOP";
      }
      inside->has_step = true;
      inside = open_block(v, at, v->block);
      if (inside) inside->in_step = true;
      return NULL;
    case VYRE__LIR_END:
      return close_block(v);
    default: /* BREAK, CONTINUE, EXIT */
      return check_jump(v, at, op);
  }
}

/* --- stages --------------------------------------------------------------- */

/* Checks that the grid loop encloses all steps that launch the phase. */
static const char *check_loop_value(const verifier *v,
                                    const vyre__lir_inst *inst) {
  /* reported by check_aux */
  if (inst->aux >= v->k->grid_loop_count) return NULL;
  const grid_loop *loop = &v->loops[inst->aux];
  bool is_wide = loop->type == VYRE_TYPE_U64;
  if (inst->type != loop->type && !(is_wide && inst->type == VYRE_TYPE_U32)) {
    return "neither the type of the grid loop nor half of it";
  }
  if (inst->c > 1 || (inst->c && (!is_wide || inst->type != VYRE_TYPE_U32))) {
    return "an upper half of a value with one half";
  }
  if (v->is_host) return NULL;
  const phase_note *phase = &v->phases[v->phase];
  if (loop->begin > phase->first || loop->end < phase->last) {
    return "the phase is launched outside that grid loop";
  }
  return NULL;
}

static const char *check_host(const verifier *v, const vyre__lir_inst *inst) {
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_LOAD:
      if (inst->aux < v->k->buffer_count &&
          v->k->buffers[inst->aux].kind == VYRE_MEMORY_UNIFORM) {
        return NULL;
      }
      return "the host range loads from a buffer that is not uniform";
    case VYRE__LIR_LOCAL_ID:
    case VYRE__LIR_GROUP_ID:
    case VYRE__LIR_FUEL:
      return "the host range cannot read it";
    default:
      if (vyre__lir_ops[inst->op].flags & VYRE__LIRF_PURE) return NULL;
      return "not allowed in the host range";
  }
}

static const char *check_stage(const verifier *v, const vyre__lir_inst *inst) {
  unsigned flags = vyre__lir_ops[inst->op].flags;
  /* Fast path: variables, values, memory and control flow occur in all
   * stages. */
  if (inst->op >= VYRE__LIR_GET && inst->op <= VYRE__LIR_EXIT && !v->is_host) {
    return NULL;
  }
  if (v->stage >= VYRE__STAGE_FLOATS && (flags & VYRE__LIRF_HIGH)) {
    return "not allowed after the pass legalize-floats";
  }
  if (v->stage < VYRE__STAGE_CONTROL) {
    if (inst->op == VYRE__LIR_LOOP_VALUE) {
      return "grid loops exist only after the pass legalize-control";
    }
    return NULL;
  }
  if (inst->op == VYRE__LIR_GRID_BARRIER || inst->op == VYRE__LIR_TICK) {
    return "not allowed after the pass legalize-control";
  }
  if (inst->op == VYRE__LIR_BARRIER && !v->k->has_barrier) {
    return "a barrier, but has_barrier is false";
  }
  if ((inst->op == VYRE__LIR_FUEL || inst->op == VYRE__LIR_OUT_OF_FUEL) &&
      !v->k->has_fuel) {
    return "fuel, but has_fuel is false";
  }
  if (inst->op == VYRE__LIR_LOOP_VALUE) return check_loop_value(v, inst);
  return v->is_host ? check_host(v, inst) : NULL;
}

/* --- a range of instructions
 * --------------------------------------------------- */

static const char *check_inst(verifier *v, uint32_t at) {
  const vyre__lir_inst *inst = &v->k->code[at];
  if (inst->op >= VYRE__LIR_COUNT) return "unknown operation";
  if (inst->type != VYRE_TYPE_VOID && !vyre__verify_type(inst->type)) {
    return "invalid type of a value";
  }
  if (v->homes[at] != NOT_TAKEN) return "it belongs to two phases";
  v->homes[at] = v->block;
  const char *what = check_operands(v, at);
  if (!what) what = check_stage(v, inst);
  if (!what) what = vyre__verify_types(v->k, inst);
  if (what) return what;
  const unsigned moves = VYRE__LIRF_CONTROL | VYRE__LIRF_JUMPS;
  return vyre__lir_ops[inst->op].flags & moves ? check_structure(v, at) : NULL;
}

static vyre_code no_memory(const verifier *v) {
  return vyre__no_memory(v->st, "the verifier of LIR", "instructions",
                         v->k->count);
}

static vyre_code check_range(verifier *v, vyre__lir_phase range) {
  v->range = range;
  v->block = 0;
  v->block_count = 1;
  v->blocks[0] = (block){.is_open = true};
  for (uint32_t i = range.begin; i < range.end && !v->no_memory; i++) {
    const char *what = check_inst(v, i);
    if (what) return fail_instruction(v, i, what);
  }
  if (v->no_memory) return no_memory(v);
  if (v->block == 0) return VYRE_OK;
  return fail_instruction(v, v->blocks[v->block].opener, "it has no END");
}

/* --- host schedule
 * --------------------------------------------------------------- */

static const char *check_bound(const verifier *v, vyre__val value,
                               unsigned type) {
  const vyre__lir_kernel *k = v->k;
  if (value < k->host.begin || value >= k->host.end) {
    return "a bound is not defined in the host range";
  }
  return k->code[value].type == type ? NULL : "a bound has the wrong type";
}

static const char *check_for(verifier *v, uint32_t at, uint32_t outer) {
  const vyre__lir_step *s = &v->k->steps[at];
  if (s->loop >= v->k->grid_loop_count) return "unknown grid loop";
  grid_loop *loop = &v->loops[s->loop];
  if (loop->begin) return "its grid loop already has a FOR";
  if (s->loop_kind > VYRE__LOOP_GE) return "unknown kind";
  if (s->type < VYRE_TYPE_U32 || s->type > VYRE_TYPE_I64) {
    return "its variable is not an integer";
  }
  if (s->step == 0) return "its step is 0";
  if (s->left_flag > v->k->spill_words)
    return "its flag is outside the spill words";
  unsigned type = vyre__lir_type((vyre_type)s->type);
  *loop = (grid_loop){at + 1, 0, outer, (uint8_t)type};
  const char *what = check_bound(v, s->first, type);
  return what ? what : check_bound(v, s->bound, type);
}

/* Checks one step. *open is the index + 1 of the innermost open FOR. */
static const char *check_step(verifier *v, uint32_t at, uint32_t *open) {
  const vyre__lir_step *s = &v->k->steps[at];
  const char *what;
  switch (s->kind) {
    case VYRE__STEP_RUN:
      if (s->phase >= v->k->phase_count) return "unknown phase";
      if (!v->phases[s->phase].first) v->phases[s->phase].first = at + 1;
      v->phases[s->phase].last = at + 1;
      return NULL;
    case VYRE__STEP_FOR:
      what = check_for(v, at, *open);
      *open = at + 1;
      return what;
    case VYRE__STEP_END_FOR:
      if (*open == 0) return "no open FOR to end";
      if (v->k->steps[*open - 1].loop != s->loop) {
        return "it does not end the innermost open grid loop";
      }
      v->loops[s->loop].end = at + 1;
      *open = v->loops[s->loop].outer;
      return NULL;
    default:
      return "unknown kind";
  }
}

static vyre_code check_steps(verifier *v) {
  const vyre__lir_kernel *k = v->k;
  uint32_t open = 0;
  if (k->phase_count == 0) return fail_table(v, "kernel", 0, "no phase");
  for (uint32_t i = 0; i < k->step_count; i++) {
    const char *what = check_step(v, i, &open);
    if (what) return fail_table(v, "step", i, what);
  }
  if (open) return fail_table(v, "step", open - 1, "the FOR has no END_FOR");
  for (uint32_t i = 0; i < k->grid_loop_count; i++) {
    if (!v->loops[i].begin) return fail_table(v, "grid loop", i, "no FOR");
  }
  for (uint32_t i = 0; i < k->phase_count; i++) {
    if (!v->phases[i].first) return fail_table(v, "phase", i, "never run");
  }
  return VYRE_OK;
}

static bool is_inside(const vyre__lir_kernel *k, vyre__lir_phase range) {
  return range.begin <= range.end && range.end <= k->count &&
         (range.begin >= 1 || range.begin == range.end);
}

static vyre_code check_phases(verifier *v) {
  const vyre__lir_kernel *k = v->k;
  VYRE_TRY(check_steps(v));
  if (!is_inside(k, k->host)) {
    return fail_table(v, "host range", 0, "outside the instruction array");
  }
  v->is_host = true;
  VYRE_TRY(check_range(v, k->host));
  v->is_host = false;
  for (uint32_t i = 0; i < k->phase_count; i++) {
    if (!is_inside(k, k->phases[i])) {
      return fail_table(v, "phase", i, "outside the instruction array");
    }
    v->phase = i;
    VYRE_TRY(check_range(v, k->phases[i]));
  }
  return VYRE_OK;
}

/* --- the kernel ----------------------------------------------------------- */

static const char *check_buffer(const vyre__lir_buffer *b) {
  bool width = b->width == 1 || b->width == 2 || b->width == 4 || b->width == 8;
  if (!width) return "its width is not 1, 2, 4 or 8";
  if (b->unit == 0 || (b->unit % b->width != 0 && b->width % b->unit != 0)) {
    return "its unit is neither a multiple nor a part of its width";
  }
  if (!b->name) return "it has no name";
  if (b->kind >= VYRE_MEMORY_COUNT) return "unknown kind";
  if (b->needs_zero && b->kind != VYRE_MEMORY_SHARED) {
    return "needs_zero, but not shared";
  }
  if (b->kind == VYRE_MEMORY_SHARED && b->count == 0) {
    return "shared, but without a size";
  }
  if (b->is_atomic && !b->is_written) return "is_atomic, but not is_written";
  return NULL;
}

static vyre_code check_tables(const verifier *v) {
  const vyre__lir_kernel *k = v->k;
  if (k->count == 0 || k->code[0].op != VYRE__LIR_NONE) {
    return fail_table(v, "kernel", 0, "the first instruction is not NONE");
  }
  for (uint32_t i = 0; i < 3; i++) {
    if (!k->workgroup[i]) return fail_table(v, "workgroup axis", i, "of 0");
  }
  for (uint32_t i = 0; i < k->buffer_count; i++) {
    const char *what = check_buffer(&k->buffers[i]);
    if (what) return fail_table(v, "buffer", i, what);
  }
  for (uint32_t i = 0; i < k->var_count; i++) {
    if (!vyre__verify_type(k->vars[i].type)) {
      return fail_table(v, "variable", i, "invalid type of a value");
    }
  }
  if (v->stage < VYRE__STAGE_CONTROL || k->spill_buffer == VYRE_NO_INDEX) {
    return VYRE_OK;
  }
  if (k->spill_buffer >= k->buffer_count || k->spill_words == 0 ||
      k->buffers[k->spill_buffer].source != VYRE_NO_INDEX ||
      k->buffers[k->spill_buffer].kind != VYRE_MEMORY_GLOBAL) {
    return fail_table(v, "buffer", k->spill_buffer,
                      "cannot be the spill buffer");
  }
  if (k->alive_flag > k->spill_words) {
    return fail_table(v, "spill word", k->alive_flag,
                      "cannot be the flag of live invocations");
  }
  return VYRE_OK;
}

static bool reserve(verifier *v) {
  const vyre__lir_kernel *k = v->k;
  size_t loops = (size_t)k->grid_loop_count + 1;
  size_t phases = (size_t)k->phase_count + 1;
  size_t homes = (size_t)k->count + 1;
  if (!vyre__reserve(v->allocator, &v->homes, &v->home_capacity, homes,
                     sizeof *v->homes, true) ||
      !vyre__reserve(v->allocator, &v->blocks, &v->block_capacity, 8,
                     sizeof *v->blocks, false) ||
      !vyre__reserve(v->allocator, &v->loops, &v->loop_capacity, loops,
                     sizeof *v->loops, true) ||
      !vyre__reserve(v->allocator, &v->phases, &v->phase_capacity, phases,
                     sizeof *v->phases, true)) {
    return false;
  }
  memset(v->homes, 0xFF, homes * sizeof *v->homes);
  memset(v->loops, 0, loops * sizeof *v->loops);
  memset(v->phases, 0, phases * sizeof *v->phases);
  return true;
}

vyre_code vyre__lir_verify(const vyre__lir_kernel *kernel,
                           vyre__lir_stage stage, vyre_allocator allocator,
                           vyre_status *st) {
  verifier v = {.k = kernel,
                .stage = stage,
                .allocator = allocator,
                .st = st,
                .phase = VYRE_NO_INDEX};
  VYRE_TRY(check_tables(&v));
  vyre_code code;
  if (!reserve(&v)) {
    code = no_memory(&v);
  } else if (stage >= VYRE__STAGE_CONTROL) {
    code = check_phases(&v);
  } else {
    code = check_range(&v, (vyre__lir_phase){1, kernel->count});
  }
  vyre__reserve_free(allocator, &v.homes, &v.home_capacity, sizeof *v.homes);
  vyre__reserve_free(allocator, &v.blocks, &v.block_capacity, sizeof *v.blocks);
  vyre__reserve_free(allocator, &v.loops, &v.loop_capacity, sizeof *v.loops);
  vyre__reserve_free(allocator, &v.phases, &v.phase_capacity, sizeof *v.phases);
  return code;
}
