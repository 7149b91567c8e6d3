/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lir/writer.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"

static bool is_float(unsigned type) {
  return type == VYRE_TYPE_F32 || type == VYRE_TYPE_F64;
}

enum { MOST_INSTRUCTIONS = 1 << 28 }; /* their numbers are 32 bits */

static size_t most_instructions(const vyre__lir_writer *low) {
  size_t most = low->target->max_instructions;
  return most > 0 && most < MOST_INSTRUCTIONS ? most : MOST_INSTRUCTIONS;
}

/* How many fit, with the one that is none. */
static void set_room(vyre__lir_writer *low) {
  size_t room = most_instructions(low) + 1;
  if (low->code_capacity < room) room = low->code_capacity;
  if (low->place_capacity < room) room = low->place_capacity;
  if (low->wants_facts && low->fact_at_capacity < room) {
    room = low->fact_at_capacity;
  }
  low->room = room;
}

void vyre__lir_writer_init(vyre__lir_writer *low, const vyre_program *program,
                           const vyre__target *target, vyre_allocator allocator,
                           vyre_status *st) {
  *low = (vyre__lir_writer){
      .allocator = allocator, .target = target, .program = program, .st = st};
}

void vyre__lir_restart(vyre__lir_writer *low) {
  low->count = low->var_count = low->buffer_count = low->loop_count = 0;
  low->log_count = low->fact_count = 0;
  low->nesting = low->depth = 0;
  low->access_count = low->proven_count = 0;
  low->wants_facts = low->f32_is_bits = low->adds_fuel = low->splits_u64 =
      low->shares_constants = low->no_memory = false;
  memset(low->constants, 0, sizeof low->constants);
  memset(low->closed, 0, sizeof low->closed);
  low->here = (vyre__source_loc){0, 0};
  low->uniform_buffer[0] = low->uniform_buffer[1] = VYRE_NO_INDEX;
  low->code_failed = VYRE_OK;
  low->emit = vyre__lir_simplify;
  set_room(low);
  vyre__lir_push(low, &(vyre__lir_inst){.op = VYRE__LIR_NONE});
}

void vyre__lir_writer_build(vyre__lir_writer *low) {
  vyre_allocator a = low->allocator;
  vyre__reserve_free(a, &low->code, &low->code_capacity, sizeof *low->code);
  vyre__reserve_free(a, &low->places, &low->place_capacity,
                     sizeof *low->places);
  vyre__reserve_free(a, &low->vars, &low->var_capacity, sizeof *low->vars);
  vyre__reserve_free(a, &low->current, &low->current_capacity,
                     sizeof *low->current);
  vyre__reserve_free(a, &low->buffers, &low->buffer_capacity,
                     sizeof *low->buffers);
  vyre__reserve_free(a, &low->loops, &low->loop_capacity, sizeof *low->loops);
  vyre__reserve_free(a, &low->log, &low->log_capacity, sizeof *low->log);
  vyre__lir_drop_float_ranges(low);
  low->room = 0;
}

/* Room for one more; sets no_memory if there is none. */
static bool grow(vyre__lir_writer *low, void *array, size_t *capacity,
                 size_t count, size_t size) {
  if (count < *capacity) return true;
  if (vyre__reserve(low->allocator, array, capacity, count + 1, size, false)) {
    return true;
  }
  low->no_memory = true;
  return false;
}

void vyre__lir_too_large(vyre__lir_writer *low, const char *what, uint64_t need,
                         uint64_t most) {
  if (low->code_failed != VYRE_OK) return;
  low->code_failed = VYRE_FAIL_WITH(
      low->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_OVER_BUDGET, NULL,
      VYRE_NUMBERS({"required", need}, {"most", most}),
      "make several kernels of it, or a loop of what it repeats",
      "line %u: the kernel is too large: it takes %llu %s or more, there can "
      "be %llu",
      low->here.line, (unsigned long long)need, what, (unsigned long long)most);
}

void vyre__lir_misfit(vyre__lir_writer *low, const char *what, uint64_t need,
                      uint64_t most) {
  if (low->code_failed != VYRE_OK) return;
  low->code_failed = VYRE_FAIL_WITH(
      low->st, VYRE_KERNEL_COMPILE_FAILED, VYRE_KIND_NONE, NULL,
      VYRE_NUMBERS({"required", need}, {"most", most}), VYRE__LIR_DEFECT,
      "line %u: a library function has %llu %s, there can be %llu",
      low->here.line, (unsigned long long)need, what, (unsigned long long)most);
}

/* --- instructions ------------------------------------------------------------- */

void vyre__lir_expect(vyre__lir_writer *low, size_t count) {
  vyre_allocator a = low->allocator;
  bool fine = vyre__reserve(a, &low->code, &low->code_capacity, count,
                            sizeof *low->code, true) &&
              vyre__reserve(a, &low->places, &low->place_capacity, count,
                            sizeof *low->places, true) &&
              (!low->wants_facts ||
               vyre__reserve(a, &low->fact_at, &low->fact_at_capacity, count,
                             sizeof *low->fact_at, true));
  if (!fine) low->no_memory = true;
  set_room(low);
}

static bool make_room(vyre__lir_writer *low) {
  size_t n = low->count, most = most_instructions(low);
  if (low->no_memory || low->code_failed != VYRE_OK) return false;
  if (n > most) {
    vyre__lir_too_large(low, "instructions", n, most);
    return false;
  }
  if (!grow(low, &low->code, &low->code_capacity, n, sizeof *low->code) ||
      !grow(low, &low->places, &low->place_capacity, n, sizeof *low->places) ||
      (low->wants_facts && !grow(low, &low->fact_at, &low->fact_at_capacity, n,
                                 sizeof *low->fact_at))) {
    return false;
  }
  set_room(low);
  return true;
}

void vyre__lir_want_float_ranges(vyre__lir_writer *low) {
  if (!grow(low, &low->facts, &low->fact_capacity, 0, sizeof *low->facts) ||
      !grow(low, &low->fact_at, &low->fact_at_capacity, low->count,
            sizeof *low->fact_at)) {
    return;
  }
  low->facts[0] = vyre__float_range_any();
  low->fact_count = 1;
  memset(low->fact_at, 0, low->count * sizeof *low->fact_at);
  low->wants_facts = true;
  set_room(low);
}

void vyre__lir_drop_float_ranges(vyre__lir_writer *low) {
  low->wants_facts = false;
  vyre__reserve_free(low->allocator, &low->fact_at, &low->fact_at_capacity,
                     sizeof *low->fact_at);
  vyre__reserve_free(low->allocator, &low->facts, &low->fact_capacity,
                     sizeof *low->facts);
  low->fact_count = 0;
}

void vyre__lir_set_float_range(vyre__lir_writer *low, vyre__val v,
                               vyre__float_range fact) {
  if (!low->wants_facts || low->no_memory) return;
  low->fact_at[v] = 0;
  if (vyre__float_range_is_any(fact) ||
      !grow(low, &low->facts, &low->fact_capacity, low->fact_count,
            sizeof *low->facts)) {
    return;
  }
  low->fact_at[v] = (uint32_t)low->fact_count;
  low->facts[low->fact_count++] = fact;
}

/* Most floats are loads and sums of them: nothing is known, and that is kept
 * once for all. */
static void note_fact(vyre__lir_writer *low, vyre__val v) {
  const vyre__lir_inst *inst = &low->code[v];
  unsigned count = vyre__lir_ops[inst->op].operands;
  vyre__float_range operands[3];
  low->fact_at[v] = 0;
  if (!is_float(inst->type) || count > 3) return;
  for (unsigned k = 0; k < count; k++) {
    operands[k] = low->facts[low->fact_at[inst->v[k]]];
  }
  vyre__lir_set_float_range(
      low, v,
      vyre__float_range_of(inst, vyre__lir_type_of(low, count ? inst->a : 0),
                           operands));
}

/* Where a constant is, if it is there. */
static vyre__lir_constant *place_of(vyre__lir_writer *low,
                                    const vyre__lir_inst *inst) {
  uint32_t h = (inst->c ^ inst->d ^ inst->type) * UINT32_C(0x9E3779B1);
  return &low->constants[h >> 16 & (VYRE__LIR_CONSTANTS - 1)];
}

/* Whether all blocks around are still open. */
static bool is_in_sight(const vyre__lir_writer *low,
                        const vyre__lir_constant *c) {
  for (uint32_t n = 1; n <= c->nesting; n++) {
    if (low->closed[n] > c->value) return false;
  }
  return true;
}

static vyre__val find_constant(vyre__lir_writer *low,
                               const vyre__lir_inst *inst) {
  const vyre__lir_constant *place = place_of(low, inst);
  const vyre__lir_inst *there = &low->code[place->value];
  bool is_same = place->value && there->c == inst->c && there->d == inst->d &&
                 there->type == inst->type && is_in_sight(low, place);
  return is_same ? place->value : 0;
}

/* Of a block what was made so far is not in sight any more. */
static void close_block(vyre__lir_writer *low) {
  if (low->nesting < VYRE__LIR_NESTED) {
    low->closed[low->nesting] = (vyre__val)low->count;
  }
}

vyre__val vyre__lir_push(vyre__lir_writer *low, const vyre__lir_inst *inst) {
  size_t n = low->count;
  bool is_shared = inst->op == VYRE__LIR_CONST && low->shares_constants;
  vyre__val same = is_shared && n > 0 ? find_constant(low, inst) : 0;
  if (same) return same;
  vyre__lir_inst copy = *inst; /* it may lie in the array */
  if (low->no_memory || (n >= low->room && !make_room(low))) return 0;
  low->code[n] = copy;
  low->places[n] = low->here;
  low->count++;
  if (low->wants_facts) note_fact(low, (vyre__val)n);
  if (is_shared && low->nesting < VYRE__LIR_NESTED) {
    *place_of(low, &copy) = (vyre__lir_constant){(vyre__val)n, low->nesting};
  }
  return (vyre__val)n;
}

vyre__val vyre__lir_bits(vyre__lir_writer *low, vyre_type type, uint64_t bits) {
  return vyre__lir_push(low, &(vyre__lir_inst){.op = VYRE__LIR_CONST,
                                               .type = (uint8_t)type,
                                               .c = (uint32_t)bits,
                                               .d = (uint32_t)(bits >> 32)});
}

uint32_t vyre__lir_new_var(vyre__lir_writer *low, const char *name,
                           vyre_type type) {
  if (!grow(low, &low->vars, &low->var_capacity, low->var_count,
            sizeof *low->vars) ||
      !grow(low, &low->current, &low->current_capacity, low->var_count,
            sizeof *low->current)) {
    return 0;
  }
  if (type == VYRE_TYPE_F32 && low->f32_is_bits) type = VYRE_TYPE_U32;
  low->vars[low->var_count] = (vyre__lir_var){name, (uint8_t)type};
  low->current[low->var_count] = 0;
  return (uint32_t)low->var_count++;
}

uint32_t vyre__lir_new_buffer(vyre__lir_writer *low,
                              const vyre__lir_buffer *buffer) {
  if (!grow(low, &low->buffers, &low->buffer_capacity, low->buffer_count,
            sizeof *low->buffers)) {
    return 0;
  }
  low->buffers[low->buffer_count] = *buffer;
  return (uint32_t)low->buffer_count++;
}

/* --- folding ---------------------------------------------------------------- */

static uint64_t ones(unsigned type) {
  if (type == VYRE_TYPE_BOOL) return 1;
  return type == VYRE_TYPE_U32 ? UINT32_MAX : UINT64_MAX;
}

/* All operands known. Float arithmetic is left to the target: only bits move. */
static vyre__val fold_known(vyre__lir_writer *low, const vyre__lir_inst *inst) {
  const vyre__lir_info *info = &vyre__lir_ops[inst->op];
  uint64_t args[3] = {0, 0, 0}, out;
  if (info->operands == 0 || info->operands > 3 ||
      (info->flags & VYRE__LIRF_PURE_HIGH) != VYRE__LIRF_PURE) {
    return 0;
  }
  for (unsigned i = 0; i < info->operands; i++) {
    if (!vyre__lir_is_constant(low, inst->v[i], &args[i])) return 0;
  }
  vyre_type from = vyre__lir_type_of(low, inst->a);
  bool moves = inst->op == VYRE__LIR_BITCAST || inst->op == VYRE__LIR_SELECT ||
               inst->op == VYRE__LIR_FNEG || inst->op == VYRE__LIR_FABS;
  if ((is_float(from) || is_float(inst->type)) && !moves) return 0;
  if (!vyre__lir_eval((vyre__lir_op)inst->op, from, (vyre_type)inst->type, args,
                      &out)) {
    return 0;
  }
  return vyre__lir_bits(low, (vyre_type)inst->type, out);
}

/* b is known: x op constant. */
static vyre__val fold_right(vyre__lir_writer *low, const vyre__lir_inst *inst,
                            uint64_t b) {
  unsigned type = vyre__lir_type_of(low, inst->a);
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

/* One operand, made by an operation that this one undoes. */
static vyre__val fold_unary(const vyre__lir_writer *low,
                            const vyre__lir_inst *inst) {
  const vyre__lir_inst *a = &low->code[inst->a];
  switch ((vyre__lir_op)inst->op) {
    case VYRE__LIR_BITCAST:
      if (a->type == inst->type) return inst->a;
      if (a->op == VYRE__LIR_BITCAST && low->code[a->a].type == inst->type) {
        return a->a;
      }
      return 0;
    case VYRE__LIR_NOT:
      return a->op == VYRE__LIR_NOT ? a->a : 0;
    case VYRE__LIR_TRUNC:
      if ((a->op == VYRE__LIR_ZEXT || a->op == VYRE__LIR_SEXT) &&
          low->code[a->a].type == inst->type) {
        return a->a;
      }
      return 0;
    default:
      return 0;
  }
}

vyre__val vyre__lir_simplify(vyre__lir_writer *low,
                             const vyre__lir_inst *given) {
  vyre__lir_inst inst = *given;
  const vyre__lir_info *info = &vyre__lir_ops[inst.op];
  if (low->no_memory) return 0;
  if (!(info->flags & VYRE__LIRF_PURE) || info->operands == 0) {
    return vyre__lir_push(low, &inst);
  }
  uint64_t bits;
  vyre__val known = fold_known(low, &inst);
  if (known) return known;
  if (inst.op == VYRE__LIR_SELECT) {
    if (vyre__lir_is_constant(low, inst.a, &bits))
      return bits ? inst.b : inst.c;
    if (inst.b == inst.c) return inst.b;
  }
  if (info->operands == 2) {
    if (is_commutative((vyre__lir_op)inst.op) &&
        vyre__lir_is_constant(low, inst.a, &bits)) {
      vyre__val a = inst.a; /* constants on the right */
      inst.a = inst.b;
      inst.b = a;
    }
    if (vyre__lir_is_constant(low, inst.b, &bits))
      known = fold_right(low, &inst, bits);
  } else if (info->operands == 1) {
    known = fold_unary(low, &inst);
  }
  if (known) return known;
  if (inst.op == VYRE__LIR_FNE && inst.a == inst.b &&
      vyre__lir_float_range(low, inst.a).nan == VYRE__NAN_NEVER) {
    return vyre__lir_bits(low, VYRE_TYPE_BOOL, 0);
  }
  return vyre__lir_push(low, &inst);
}

/* --- variables and control flow ---------------------------------------------- */

static void remember(vyre__lir_writer *low, uint32_t var, vyre__val value) {
  if (low->nesting == 0) {
    low->current[var] = value;
    return;
  }
  if (!grow(low, &low->log, &low->log_capacity, low->log_count,
            sizeof *low->log)) {
    return;
  }
  low->log[low->log_count++] = (vyre__set_log){var, low->current[var]};
  low->current[var] = value;
}

vyre__val vyre__lir_get(vyre__lir_writer *low, uint32_t var) {
  if (low->no_memory) return 0;
  if (low->current[var]) return low->current[var];
  vyre__val value = vyre__lir_push(
      low, &(vyre__lir_inst){
               .op = VYRE__LIR_GET, .type = low->vars[var].type, .aux = var});
  if (!low->no_memory) remember(low, var, value);
  return value;
}

void vyre__lir_set(vyre__lir_writer *low, uint32_t var, vyre__val value) {
  if (low->no_memory) return;
  vyre__lir_push(
      low, &(vyre__lir_inst){.op = VYRE__LIR_SET, .aux = var, .a = value});
  if (!low->no_memory) remember(low, var, value);
}

void vyre__lir_forget(vyre__lir_writer *low, uint32_t var) {
  if (!low->no_memory) remember(low, var, 0);
}

size_t vyre__lir_if(vyre__lir_writer *low, vyre__val condition,
                    uint16_t hints) {
  vyre__lir_push(low, &(vyre__lir_inst){
                          .op = VYRE__LIR_IF, .hints = hints, .a = condition});
  low->nesting++;
  return low->log_count;
}

void vyre__lir_else(vyre__lir_writer *low, size_t begin) {
  vyre__lir_plain(low, VYRE__LIR_ELSE);
  close_block(low);
  for (size_t i = low->log_count; i > begin; i--) {
    low->current[low->log[i - 1].var] = low->log[i - 1].before;
  }
}

uint32_t vyre__lir_new_loop(vyre__lir_writer *low, const vyre__lir_loop *loop) {
  if (low->loop_count >= low->loop_capacity &&
      !vyre__reserve(low->allocator, &low->loops, &low->loop_capacity,
                     low->loop_count + 1, sizeof *low->loops, false)) {
    low->no_memory = true;
    return 0;
  }
  low->loops[low->loop_count] = *loop;
  return (uint32_t)low->loop_count++;
}

size_t vyre__lir_loop_begin(vyre__lir_writer *low, uint32_t loop) {
  vyre__lir_push(low, &(vyre__lir_inst){.op = VYRE__LIR_LOOP, .aux = loop});
  low->nesting++;
  return low->log_count;
}

/* CONTINUE comes here too, so what the body set in variables is not what they
 * are here; nothing is forgotten for it, since STEP reads no variable that the
 * body sets: it counts by the value that the round began with. */
void vyre__lir_to_step(vyre__lir_writer *low) {
  vyre__lir_plain(low, VYRE__LIR_STEP);
  close_block(low);
}

void vyre__lir_end(vyre__lir_writer *low, size_t begin) {
  vyre__lir_plain(low, VYRE__LIR_END);
  for (size_t i = begin; i < low->log_count; i++) {
    low->current[low->log[i].var] = 0;
  }
  close_block(low);
  if (--low->nesting == 0) low->log_count = 0;
}

void vyre__lir_plain(vyre__lir_writer *low, vyre__lir_op op) {
  vyre__lir_push(low, &(vyre__lir_inst){.op = (uint8_t)op});
}
