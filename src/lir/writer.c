/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lir/writer.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"

enum { MAX_INSTRUCTIONS = 1 << 28 }; /* instruction indices have 32 bits */

static size_t max_instructions(const vyre__lir_writer *lir) {
  size_t max = lir->target->max_instructions;
  return max > 0 && max < MAX_INSTRUCTIONS ? max : MAX_INSTRUCTIONS;
}

/* Updates lir->inst_capacity: the instructions that fit all arrays. */
static void update_capacity(vyre__lir_writer *lir) {
  size_t capacity = max_instructions(lir) + 1;
  if (lir->code_capacity < capacity) capacity = lir->code_capacity;
  if (lir->source_loc_capacity < capacity) capacity = lir->source_loc_capacity;
  if (lir->tracks_float_ranges && lir->float_range_of_capacity < capacity) {
    capacity = lir->float_range_of_capacity;
  }
  lir->inst_capacity = capacity;
}

void vyre__lir_writer_init(vyre__lir_writer *lir, const vyre_program *program,
                           const vyre__target *target, vyre_allocator allocator,
                           vyre_status *st) {
  *lir = (vyre__lir_writer){
      .allocator = allocator, .target = target, .program = program, .st = st};
}

void vyre__lir_restart(vyre__lir_writer *lir) {
  lir->count = lir->var_count = lir->buffer_count = lir->loop_count = 0;
  lir->log_count = lir->float_range_count = 0;
  lir->nesting = lir->call_depth = 0;
  lir->access_count = lir->proven_count = 0;
  lir->tracks_float_ranges = lir->f32_is_bits = lir->adds_fuel =
      lir->splits_u64 = lir->shares_constants = lir->no_memory = false;
  memset(lir->constants, 0, sizeof lir->constants);
  memset(lir->closed, 0, sizeof lir->closed);
  lir->here = (vyre__source_loc){0, 0};
  lir->uniform_buffer[0] = lir->uniform_buffer[1] = VYRE_NO_INDEX;
  lir->code_failed = VYRE_OK;
  lir->emit = vyre__lir_simplify;
  update_capacity(lir);
  vyre__lir_push(lir, &(vyre__lir_inst){.op = VYRE__LIR_NONE});
}

void vyre__lir_writer_deinit(vyre__lir_writer *lir) {
  vyre_allocator a = lir->allocator;
  vyre__reserve_free(a, &lir->code, &lir->code_capacity, sizeof *lir->code);
  vyre__reserve_free(a, &lir->source_locs, &lir->source_loc_capacity,
                     sizeof *lir->source_locs);
  vyre__reserve_free(a, &lir->vars, &lir->var_capacity, sizeof *lir->vars);
  vyre__reserve_free(a, &lir->current, &lir->current_capacity,
                     sizeof *lir->current);
  vyre__reserve_free(a, &lir->buffers, &lir->buffer_capacity,
                     sizeof *lir->buffers);
  vyre__reserve_free(a, &lir->loops, &lir->loop_capacity, sizeof *lir->loops);
  vyre__reserve_free(a, &lir->log, &lir->log_capacity, sizeof *lir->log);
  vyre__lir_drop_float_ranges(lir);
  lir->inst_capacity = 0;
}

/* Ensures capacity for one more element; sets no_memory on failure. */
static bool grow(vyre__lir_writer *lir, void *array, size_t *capacity,
                 size_t count, size_t size) {
  if (count < *capacity) return true;
  if (vyre__reserve(lir->allocator, array, capacity, count + 1, size, false)) {
    return true;
  }
  lir->no_memory = true;
  return false;
}

void vyre__lir_too_large(vyre__lir_writer *lir, const char *unit, uint64_t need,
                         uint64_t max) {
  if (lir->code_failed != VYRE_OK) return;
  lir->code_failed = VYRE_FAIL_WITH(
      lir->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_OVER_BUDGET, NULL,
      VYRE_NUMBERS({"required", need}, {"max", max}),
      "split it into several kernels, or write repeated code as a loop",
      "line %u: the kernel is too large: it needs %llu %s or more, the limit "
      "is %llu",
      lir->here.line, (unsigned long long)need, unit, (unsigned long long)max);
}

void vyre__lir_library_too_large(vyre__lir_writer *lir, const char *unit,
                                 uint64_t need, uint64_t max) {
  if (lir->code_failed != VYRE_OK) return;
  lir->code_failed = VYRE_FAIL_WITH(
      lir->st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE, NULL,
      VYRE_NUMBERS({"required", need}, {"max", max}), VYRE__LIR_DEFECT,
      "line %u: a library function has %llu %s, the limit is %llu",
      lir->here.line, (unsigned long long)need, unit, (unsigned long long)max);
}

/* --- instructions --------------------------------------------------------- */

void vyre__lir_expect(vyre__lir_writer *lir, size_t count) {
  vyre_allocator a = lir->allocator;
  bool fine =
      vyre__reserve(a, &lir->code, &lir->code_capacity, count,
                    sizeof *lir->code, true) &&
      vyre__reserve(a, &lir->source_locs, &lir->source_loc_capacity, count,
                    sizeof *lir->source_locs, true) &&
      (!lir->tracks_float_ranges ||
       vyre__reserve(a, &lir->float_range_of, &lir->float_range_of_capacity,
                     count, sizeof *lir->float_range_of, true));
  if (!fine) lir->no_memory = true;
  update_capacity(lir);
}

static bool ensure_capacity(vyre__lir_writer *lir) {
  size_t n = lir->count, max = max_instructions(lir);
  if (lir->no_memory || lir->code_failed != VYRE_OK) return false;
  if (n > max) {
    vyre__lir_too_large(lir, "instructions", n, max);
    return false;
  }
  if (!grow(lir, &lir->code, &lir->code_capacity, n, sizeof *lir->code) ||
      !grow(lir, &lir->source_locs, &lir->source_loc_capacity, n,
            sizeof *lir->source_locs) ||
      (lir->tracks_float_ranges &&
       !grow(lir, &lir->float_range_of, &lir->float_range_of_capacity, n,
             sizeof *lir->float_range_of))) {
    return false;
  }
  update_capacity(lir);
  return true;
}

void vyre__lir_track_float_ranges(vyre__lir_writer *lir) {
  if (!grow(lir, &lir->float_ranges, &lir->float_range_capacity, 0,
            sizeof *lir->float_ranges) ||
      !grow(lir, &lir->float_range_of, &lir->float_range_of_capacity,
            lir->count, sizeof *lir->float_range_of)) {
    return;
  }
  lir->float_ranges[0] = vyre__float_range_any();
  lir->float_range_count = 1;
  memset(lir->float_range_of, 0, lir->count * sizeof *lir->float_range_of);
  lir->tracks_float_ranges = true;
  update_capacity(lir);
}

void vyre__lir_drop_float_ranges(vyre__lir_writer *lir) {
  lir->tracks_float_ranges = false;
  vyre__reserve_free(lir->allocator, &lir->float_range_of,
                     &lir->float_range_of_capacity,
                     sizeof *lir->float_range_of);
  vyre__reserve_free(lir->allocator, &lir->float_ranges,
                     &lir->float_range_capacity, sizeof *lir->float_ranges);
  lir->float_range_count = 0;
}

void vyre__lir_set_float_range(vyre__lir_writer *lir, vyre__val v,
                               vyre__float_range fact) {
  if (!lir->tracks_float_ranges || lir->no_memory) return;
  lir->float_range_of[v] = 0;
  if (vyre__float_range_is_any(fact) ||
      !grow(lir, &lir->float_ranges, &lir->float_range_capacity,
            lir->float_range_count, sizeof *lir->float_ranges)) {
    return;
  }
  lir->float_range_of[v] = (uint32_t)lir->float_range_count;
  lir->float_ranges[lir->float_range_count++] = fact;
}

/* Computes the range of a new value. Most floats are loads and sums of them.
 * Nothing is known about these, and all share entry 0. */
static void compute_float_range(vyre__lir_writer *lir, vyre__val v) {
  const vyre__lir_inst *inst = &lir->code[v];
  unsigned count = vyre__lir_ops[inst->op].operands;
  vyre__float_range operands[3];
  lir->float_range_of[v] = 0;
  if (!vyre__is_float(inst->type) || count > 3) return;
  for (unsigned k = 0; k < count; k++) {
    operands[k] = lir->float_ranges[lir->float_range_of[inst->v[k]]];
  }
  vyre__lir_set_float_range(
      lir, v,
      vyre__float_range_of(inst, vyre__lir_type_of(lir, count ? inst->a : 0),
                           operands));
}

/* Returns the hash table entry for a constant. */
static vyre__lir_constant *constant_entry(vyre__lir_writer *lir,
                                          const vyre__lir_inst *inst) {
  uint32_t h = (inst->c ^ inst->d ^ inst->type) * UINT32_C(0x9E3779B1);
  return &lir->constants[h >> 16 & (VYRE__LIR_CONSTANTS - 1)];
}

/* Returns true if all blocks around the constant are still open. */
static bool is_visible(const vyre__lir_writer *lir,
                       const vyre__lir_constant *c) {
  for (uint32_t n = 1; n <= c->nesting; n++) {
    if (lir->closed[n] > c->value) return false;
  }
  return true;
}

static vyre__val find_constant(vyre__lir_writer *lir,
                               const vyre__lir_inst *inst) {
  const vyre__lir_constant *entry = constant_entry(lir, inst);
  const vyre__lir_inst *found = &lir->code[entry->value];
  bool is_same = entry->value && found->c == inst->c && found->d == inst->d &&
                 found->type == inst->type && is_visible(lir, entry);
  return is_same ? entry->value : 0;
}

/* Marks the constants of the current block as no longer usable. */
static void close_block(vyre__lir_writer *lir) {
  if (lir->nesting < VYRE__LIR_NESTED) {
    lir->closed[lir->nesting] = (vyre__val)lir->count;
  }
}

vyre__val vyre__lir_push(vyre__lir_writer *lir, const vyre__lir_inst *inst) {
  size_t n = lir->count;
  bool is_shared = inst->op == VYRE__LIR_CONST && lir->shares_constants;
  vyre__val same = is_shared && n > 0 ? find_constant(lir, inst) : 0;
  if (same) return same;
  vyre__lir_inst copy = *inst; /* *inst may lie in lir->code */
  if (lir->no_memory || (n >= lir->inst_capacity && !ensure_capacity(lir)))
    return 0;
  lir->code[n] = copy;
  lir->source_locs[n] = lir->here;
  lir->count++;
  if (lir->tracks_float_ranges) compute_float_range(lir, (vyre__val)n);
  if (is_shared && lir->nesting < VYRE__LIR_NESTED) {
    *constant_entry(lir, &copy) =
        (vyre__lir_constant){(vyre__val)n, lir->nesting};
  }
  return (vyre__val)n;
}

vyre__val vyre__lir_bits(vyre__lir_writer *lir, vyre_type type, uint64_t bits) {
  return vyre__lir_push(lir, &(vyre__lir_inst){.op = VYRE__LIR_CONST,
                                               .type = (uint8_t)type,
                                               .c = (uint32_t)bits,
                                               .d = (uint32_t)(bits >> 32)});
}

uint32_t vyre__lir_new_var(vyre__lir_writer *lir, const char *name,
                           vyre_type type) {
  if (!grow(lir, &lir->vars, &lir->var_capacity, lir->var_count,
            sizeof *lir->vars) ||
      !grow(lir, &lir->current, &lir->current_capacity, lir->var_count,
            sizeof *lir->current)) {
    return 0;
  }
  if (type == VYRE_TYPE_F32 && lir->f32_is_bits) type = VYRE_TYPE_U32;
  lir->vars[lir->var_count] = (vyre__lir_var){name, (uint8_t)type};
  lir->current[lir->var_count] = 0;
  return (uint32_t)lir->var_count++;
}

uint32_t vyre__lir_new_buffer(vyre__lir_writer *lir,
                              const vyre__lir_buffer *buffer) {
  if (!grow(lir, &lir->buffers, &lir->buffer_capacity, lir->buffer_count,
            sizeof *lir->buffers)) {
    return 0;
  }
  lir->buffers[lir->buffer_count] = *buffer;
  return (uint32_t)lir->buffer_count++;
}

/* --- folding -------------------------------------------------------------- */

static uint64_t ones(unsigned type) {
  if (type == VYRE_TYPE_BOOL) return 1;
  return type == VYRE_TYPE_U32 ? UINT32_MAX : UINT64_MAX;
}

/* Folds an operation on constants. Float arithmetic is left to the target; only
 * operations that move float bits are folded. */
static vyre__val fold_known(vyre__lir_writer *lir, const vyre__lir_inst *inst) {
  const vyre__lir_info *info = &vyre__lir_ops[inst->op];
  uint64_t args[3] = {0, 0, 0}, out;
  if (info->operands == 0 || info->operands > 3 ||
      (info->flags & VYRE__LIRF_PURE_HIGH) != VYRE__LIRF_PURE) {
    return 0;
  }
  for (unsigned i = 0; i < info->operands; i++) {
    if (!vyre__lir_is_constant(lir, inst->v[i], &args[i])) return 0;
  }
  vyre_type from = vyre__lir_type_of(lir, inst->a);
  bool moves = inst->op == VYRE__LIR_BITCAST || inst->op == VYRE__LIR_SELECT ||
               inst->op == VYRE__LIR_FNEG || inst->op == VYRE__LIR_FABS;
  if ((vyre__is_float(from) || vyre__is_float(inst->type)) && !moves) return 0;
  if (!vyre__lir_eval((vyre__lir_op)inst->op, from, (vyre_type)inst->type, args,
                      &out)) {
    return 0;
  }
  return vyre__lir_bits(lir, (vyre_type)inst->type, out);
}

/* Folds `x op constant`. */
static vyre__val fold_right(vyre__lir_writer *lir, const vyre__lir_inst *inst,
                            uint64_t b) {
  unsigned type = vyre__lir_type_of(lir, inst->a);
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_ADD:
    case VYRE__LIR_SUB:
    case VYRE__LIR_SHL:
    case VYRE__LIR_SHR_U:
    case VYRE__LIR_SHR_S:
      return b == 0 ? inst->a : 0;
    case VYRE__LIR_OR:
    case VYRE__LIR_XOR:
      if (b == 0) return inst->a;
      return inst->op == VYRE__LIR_OR && b == ones(type) ? inst->b : 0;
    case VYRE__LIR_AND:
      if (b == 0) return inst->b;
      return b == ones(type) ? inst->a : 0;
    case VYRE__LIR_MUL:
      if (b == 0) return inst->b;
      return b == 1 ? inst->a : 0;
    case VYRE__LIR_DIV_U:
    case VYRE__LIR_DIV_S:
      return b == 1 ? inst->a : 0;
    default:
      return 0;
  }
}

static bool is_commutative(vyre__lir_op op) {
  return op == VYRE__LIR_ADD || op == VYRE__LIR_MUL || op == VYRE__LIR_AND ||
         op == VYRE__LIR_OR || op == VYRE__LIR_XOR;
}

/* Folds an operation that undoes the one before it. */
static vyre__val fold_unary(const vyre__lir_writer *lir,
                            const vyre__lir_inst *inst) {
  const vyre__lir_inst *a = &lir->code[inst->a];
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_BITCAST:
      if (a->type == inst->type) return inst->a;
      if (a->op == VYRE__LIR_BITCAST && lir->code[a->a].type == inst->type) {
        return a->a;
      }
      return 0;
    case VYRE__LIR_NOT:
      return a->op == VYRE__LIR_NOT ? a->a : 0;
    case VYRE__LIR_TRUNC:
      if ((a->op == VYRE__LIR_ZEXT || a->op == VYRE__LIR_SEXT) &&
          lir->code[a->a].type == inst->type) {
        return a->a;
      }
      return 0;
    default:
      return 0;
  }
}

vyre__val vyre__lir_simplify(vyre__lir_writer *lir,
                             const vyre__lir_inst *given) {
  vyre__lir_inst inst = *given;
  const vyre__lir_info *info = &vyre__lir_ops[inst.op];
  if (lir->no_memory) return 0;
  if (!(info->flags & VYRE__LIRF_PURE) || info->operands == 0) {
    return vyre__lir_push(lir, &inst);
  }
  uint64_t bits;
  vyre__val known = fold_known(lir, &inst);
  if (known) return known;
  if (inst.op == VYRE__LIR_SELECT) {
    if (vyre__lir_is_constant(lir, inst.a, &bits))
      return bits ? inst.b : inst.c;
    if (inst.b == inst.c) return inst.b;
  }
  if (info->operands == 2) {
    if (is_commutative((vyre__lir_op)inst.op) &&
        vyre__lir_is_constant(lir, inst.a, &bits)) {
      vyre__val a = inst.a; /* constants go to the right */
      inst.a = inst.b;
      inst.b = a;
    }
    if (vyre__lir_is_constant(lir, inst.b, &bits))
      known = fold_right(lir, &inst, bits);
  } else if (info->operands == 1) {
    known = fold_unary(lir, &inst);
  }
  if (known) return known;
  if (inst.op == VYRE__LIR_FNE && inst.a == inst.b &&
      vyre__lir_float_range(lir, inst.a).nan == VYRE__NAN_NEVER) {
    return vyre__lir_bits(lir, VYRE_TYPE_BOOL, 0);
  }
  return vyre__lir_push(lir, &inst);
}

/* --- variables and control flow ------------------------------------------- */

static void set_current(vyre__lir_writer *lir, uint32_t var, vyre__val value) {
  if (lir->nesting == 0) {
    lir->current[var] = value;
    return;
  }
  if (!grow(lir, &lir->log, &lir->log_capacity, lir->log_count,
            sizeof *lir->log)) {
    return;
  }
  lir->log[lir->log_count++] = (vyre__set_log){var, lir->current[var]};
  lir->current[var] = value;
}

vyre__val vyre__lir_get(vyre__lir_writer *lir, uint32_t var) {
  if (lir->no_memory) return 0;
  if (lir->current[var]) return lir->current[var];
  vyre__val value = vyre__lir_push(
      lir, &(vyre__lir_inst){
               .op = VYRE__LIR_GET, .type = lir->vars[var].type, .aux = var});
  if (!lir->no_memory) set_current(lir, var, value);
  return value;
}

void vyre__lir_set(vyre__lir_writer *lir, uint32_t var, vyre__val value) {
  if (lir->no_memory) return;
  vyre__lir_push(
      lir, &(vyre__lir_inst){.op = VYRE__LIR_SET, .aux = var, .a = value});
  if (!lir->no_memory) set_current(lir, var, value);
}

void vyre__lir_invalidate(vyre__lir_writer *lir, uint32_t var) {
  if (!lir->no_memory) set_current(lir, var, 0);
}

size_t vyre__lir_if(vyre__lir_writer *lir, vyre__val condition,
                    uint16_t hints) {
  vyre__lir_push(lir, &(vyre__lir_inst){
                          .op = VYRE__LIR_IF, .hints = hints, .a = condition});
  lir->nesting++;
  return lir->log_count;
}

void vyre__lir_else(vyre__lir_writer *lir, size_t begin) {
  vyre__lir_plain(lir, VYRE__LIR_ELSE);
  close_block(lir);
  for (size_t i = lir->log_count; i > begin; i--) {
    lir->current[lir->log[i - 1].var] = lir->log[i - 1].before;
  }
}

uint32_t vyre__lir_new_loop(vyre__lir_writer *lir, const vyre__lir_loop *loop) {
  if (lir->loop_count >= lir->loop_capacity &&
      !vyre__reserve(lir->allocator, &lir->loops, &lir->loop_capacity,
                     lir->loop_count + 1, sizeof *lir->loops, false)) {
    lir->no_memory = true;
    return 0;
  }
  lir->loops[lir->loop_count] = *loop;
  return (uint32_t)lir->loop_count++;
}

size_t vyre__lir_loop_begin(vyre__lir_writer *lir, uint32_t loop) {
  vyre__lir_push(lir, &(vyre__lir_inst){.op = VYRE__LIR_LOOP, .aux = loop});
  lir->nesting++;
  return lir->log_count;
}

/* CONTINUE also jumps to STEP, so lir->current may be wrong there for a
 * variable that the body sets. It is kept all the same: STEP reads no such
 * variable, it counts from the value at the start of the iteration. */
void vyre__lir_to_step(vyre__lir_writer *lir) {
  vyre__lir_plain(lir, VYRE__LIR_STEP);
  close_block(lir);
}

void vyre__lir_end(vyre__lir_writer *lir, size_t begin) {
  vyre__lir_plain(lir, VYRE__LIR_END);
  for (size_t i = begin; i < lir->log_count; i++) {
    lir->current[lir->log[i].var] = 0;
  }
  close_block(lir);
  if (--lir->nesting == 0) lir->log_count = 0;
}

void vyre__lir_plain(vyre__lir_writer *lir, vyre__lir_op op) {
  vyre__lir_push(lir, &(vyre__lir_inst){.op = (uint8_t)op});
}
