/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lower/legalize_memory.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "lower/legalize_floats.h"

static vyre__val do2(vyre__lir_writer *low, vyre__lir_op op, vyre__val a,
                     vyre__val b) {
  return vyre__legalize_float_op(
      low, &(vyre__lir_inst){
               .op = (uint8_t)op, .type = VYRE_TYPE_U32, .v = {a, b, 0, 0}});
}

static vyre__val test(vyre__lir_writer *low, vyre__lir_op op, vyre__val a,
                      vyre__val b) {
  return vyre__legalize_float_op(
      low, &(vyre__lir_inst){
               .op = (uint8_t)op, .type = VYRE_TYPE_BOOL, .v = {a, b, 0, 0}});
}

static vyre__val u32(vyre__lir_writer *low, uint32_t value) {
  return vyre__lir_bits(low, VYRE_TYPE_U32, value);
}

/* Refuses an operation that cannot be made of 32-bit ones. */
static vyre__val refuse(vyre__lir_writer *low) {
  if (low->code_failed == VYRE_OK) {
    low->code_failed =
        VYRE_FAIL(low->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                  "use u32, or a device that has 64-bit integers",
                  "line %u: the target has no 64-bit integers for this "
                  "operation",
                  low->here.line);
  }
  return 0;
}

/* --- narrow elements as words ------------------------------------------------- */

typedef struct word_place {
  vyre__val index, shift; /* of the word, and of the bits in it */
} word_place;

static word_place find_word(vyre__lir_writer *low, vyre__val index,
                            unsigned unit) {
  unsigned each = unit == 1 ? 2 : 1; /* log2 of elements a word */
  vyre__val low_bits = do2(low, VYRE__LIR_AND, index, u32(low, 4 / unit - 1));
  vyre__val word = do2(low, VYRE__LIR_SHR_U, index, u32(low, each));
  vyre__val shift =
      do2(low, VYRE__LIR_SHL, low_bits, u32(low, unit == 1 ? 3 : 4));
  return (word_place){word, shift};
}

static vyre__val load_narrow(vyre__lir_writer *low, const vyre__lir_inst *inst,
                             unsigned unit) {
  word_place p = find_word(low, inst->a, unit);
  vyre__lir_inst load = *inst;
  load.a = p.index;
  vyre__val word = vyre__lir_push(low, &load);
  word = do2(low, VYRE__LIR_SHR_U, word, p.shift);
  return do2(low, VYRE__LIR_AND, word, u32(low, unit == 1 ? 0xFF : 0xFFFF));
}

/* Neighbours in the word may be somebody else's: their bits are never written. */
static void store_narrow(vyre__lir_writer *low, const vyre__lir_inst *inst,
                         unsigned unit) {
  word_place p = find_word(low, inst->a, unit);
  vyre__val mask = u32(low, unit == 1 ? 0xFF : 0xFFFF);
  vyre__val hole = do2(low, VYRE__LIR_SHL, mask, p.shift);
  vyre__val value = do2(low, VYRE__LIR_AND, inst->b, mask);
  hole = vyre__lir_do(low, VYRE__LIR_NOT, VYRE_TYPE_U32, hole, 0, 0);
  value = do2(low, VYRE__LIR_SHL, value, p.shift);
  vyre__lir_inst atomic = {.op = VYRE__LIR_ATOMIC_AND,
                           .type = VYRE_TYPE_U32,
                           .hints = inst->hints,
                           .aux = inst->aux,
                           .v = {p.index, hole, inst->c, 0}};
  vyre__lir_push(low, &atomic);
  atomic.op = VYRE__LIR_ATOMIC_OR;
  atomic.b = value;
  vyre__lir_push(low, &atomic);
  low->buffers[inst->aux].is_atomic = true;
}

/* --- u64 as pairs -------------------------------------------------------------- */

typedef struct pair {
  vyre__val lo, hi;
} pair;

static pair parts(const vyre__lir_writer *low, vyre__val v) {
  return (pair){low->code[v].a, low->code[v].b};
}

static vyre__val join(vyre__lir_writer *low, vyre__val lo, vyre__val hi) {
  return vyre__lir_push(low, &(vyre__lir_inst){.op = VYRE__LIR_PAIR,
                                               .type = VYRE_TYPE_U64,
                                               .v = {lo, hi, 0, 0}});
}

static vyre__val carry(vyre__lir_writer *low, vyre__val condition) {
  return vyre__lir_do(low, VYRE__LIR_ZEXT, VYRE_TYPE_U32, condition, 0, 0);
}

static vyre__val add(vyre__lir_writer *low, pair a, pair b) {
  vyre__val lo = do2(low, VYRE__LIR_ADD, a.lo, b.lo);
  vyre__val more = carry(low, test(low, VYRE__LIR_LT_U, lo, a.lo));
  vyre__val hi = do2(low, VYRE__LIR_ADD, a.hi, b.hi);
  return join(low, lo, do2(low, VYRE__LIR_ADD, hi, more));
}

static vyre__val subtract(vyre__lir_writer *low, pair a, pair b) {
  vyre__val less = carry(low, test(low, VYRE__LIR_LT_U, a.lo, b.lo));
  vyre__val lo = do2(low, VYRE__LIR_SUB, a.lo, b.lo);
  vyre__val hi = do2(low, VYRE__LIR_SUB, a.hi, b.hi);
  return join(low, lo, do2(low, VYRE__LIR_SUB, hi, less));
}

static vyre__val soft(vyre__lir_writer *low, const char *name, pair a, pair b) {
  return vyre__soft_call(low, name, a.lo, a.hi, b.lo, b.hi);
}

/* Each half by a function of its own. */
static vyre__val soft_pair(vyre__lir_writer *low, const char *lo_name,
                           const char *hi_name, pair a, pair b) {
  vyre__val lo = soft(low, lo_name, a, b), hi = soft(low, hi_name, a, b);
  return join(low, lo, hi);
}

static vyre__val multiply(vyre__lir_writer *low, pair a, pair b) {
  uint64_t x, y;
  if (vyre__lir_is_constant(low, a.hi, &x) &&
      vyre__lir_is_constant(low, b.hi, &y) && x == 0 && y == 0) {
    vyre__val lo = do2(low, VYRE__LIR_MUL, a.lo, b.lo);
    return join(low, lo, vyre__soft_call(low, "wide_mul_hi", a.lo, b.lo, 0, 0));
  }
  return soft_pair(low, "w_mul_lo", "w_mul_hi", a, b);
}

static vyre__val choose(vyre__lir_writer *low, vyre__val condition, pair yes,
                        pair no) {
  vyre__val lo = vyre__lir_do(low, VYRE__LIR_SELECT, VYRE_TYPE_U32, condition,
                              yes.lo, no.lo);
  vyre__val hi = vyre__lir_do(low, VYRE__LIR_SELECT, VYRE_TYPE_U32, condition,
                              yes.hi, no.hi);
  return join(low, lo, hi);
}

static vyre__val less(vyre__lir_writer *low, pair a, pair b, bool is_signed) {
  return soft(low, is_signed ? "w_slt" : "w_lt", a, b);
}

static vyre__val shift(vyre__lir_writer *low, vyre__lir_op op, pair a,
                       vyre__val count) {
  const char *lo = "w_shl_lo", *hi = "w_shl_hi";
  if (op == VYRE__LIR_SHR_U) lo = "w_shr_lo", hi = "w_shr_hi";
  if (op == VYRE__LIR_SHR_S) lo = "w_sar_lo", hi = "w_sar_hi";
  return soft_pair(low, lo, hi, a, (pair){count, 0});
}

static pair negate_if(vyre__lir_writer *low, vyre__val condition, pair a) {
  vyre__val zero = u32(low, 0);
  pair minus = parts(low, subtract(low, (pair){zero, zero}, a));
  return parts(low, choose(low, condition, minus, a));
}

/* Of sizes; then the sign. The divisor is not 0. */
static vyre__val divide(vyre__lir_writer *low, vyre__lir_op op, pair a,
                        pair b) {
  bool is_rem = op == VYRE__LIR_REM_U || op == VYRE__LIR_REM_S;
  const char *lo = is_rem ? "w_rem_lo" : "w_div_lo";
  const char *hi = is_rem ? "w_rem_hi" : "w_div_hi";
  bool is_signed = op == VYRE__LIR_DIV_S || op == VYRE__LIR_REM_S;
  if (!is_signed) return soft_pair(low, lo, hi, a, b);
  vyre__val zero = u32(low, 0);
  vyre__val below_a = test(low, VYRE__LIR_LT_S, a.hi, zero);
  vyre__val below_b = test(low, VYRE__LIR_LT_S, b.hi, zero);
  pair x = negate_if(low, below_a, a), y = negate_if(low, below_b, b);
  pair out = parts(low, soft_pair(low, lo, hi, x, y));
  vyre__val below = below_a;
  if (!is_rem) {
    below =
        vyre__lir_do(low, VYRE__LIR_XOR, VYRE_TYPE_BOOL, below_a, below_b, 0);
  }
  out = negate_if(low, below, out);
  return join(low, out.lo, out.hi);
}

static vyre__val count_bits(vyre__lir_writer *low, vyre__lir_op op, pair a) {
  vyre__val zero = u32(low, 0), out;
  vyre__val lo = vyre__lir_do(low, op, VYRE_TYPE_U32, a.lo, 0, 0);
  vyre__val hi = vyre__lir_do(low, op, VYRE_TYPE_U32, a.hi, 0, 0);
  if (op == VYRE__LIR_POPCOUNT) {
    out = do2(low, VYRE__LIR_ADD, lo, hi);
  } else {
    bool leading = op == VYRE__LIR_CLZ;
    vyre__val first = leading ? a.hi : a.lo, near = leading ? hi : lo;
    vyre__val far = do2(low, VYRE__LIR_ADD, leading ? lo : hi, u32(low, 32));
    vyre__val none = test(low, VYRE__LIR_EQ, first, zero);
    out = vyre__lir_do(low, VYRE__LIR_SELECT, VYRE_TYPE_U32, none, far, near);
  }
  return join(low, out, zero);
}

/* The same to each half; NOT takes no b. */
static vyre__val halves(vyre__lir_writer *low, vyre__lir_op op, pair a,
                        pair b) {
  vyre__val lo = do2(low, op, a.lo, b.lo), hi = do2(low, op, a.hi, b.hi);
  return join(low, lo, hi);
}

static vyre__val from_float(vyre__lir_writer *low, vyre__lir_op op,
                            vyre__val a) {
  vyre_type type = vyre__lir_type_of(low, a);
  bool is_signed = op == VYRE__LIR_F_TO_S;
  if (type == VYRE_TYPE_F64) {
    return refuse(low);
  }
  if (type == VYRE_TYPE_F32) {
    a = vyre__lir_do(low, VYRE__LIR_BITCAST, VYRE_TYPE_U32, a, 0, 0);
  }
  return soft_pair(low, is_signed ? "w_from_f32_signed_lo" : "w_from_f32_lo",
                   is_signed ? "w_from_f32_signed_hi" : "w_from_f32_hi",
                   (pair){a, 0}, (pair){0, 0});
}

/* Operations that give a u64. */
static vyre__val wide_value(vyre__lir_writer *low, const vyre__lir_inst *inst) {
  vyre__lir_op op = (vyre__lir_op)inst->op;
  pair a = parts(low, inst->a), b = parts(low, inst->b);
  vyre__val first;
  switch (op) {
    case VYRE__LIR_CONST:
      first = u32(low, inst->c);
      return join(low, first, u32(low, inst->d));
    case VYRE__LIR_ADD:
      return add(low, a, b);
    case VYRE__LIR_SUB:
      return subtract(low, a, b);
    case VYRE__LIR_MUL:
      return multiply(low, a, b);
    case VYRE__LIR_DIV_U:
    case VYRE__LIR_DIV_S:
    case VYRE__LIR_REM_U:
    case VYRE__LIR_REM_S:
      return divide(low, op, a, b);
    case VYRE__LIR_AND:
    case VYRE__LIR_OR:
    case VYRE__LIR_XOR:
      return halves(low, op, a, b);
    case VYRE__LIR_NOT:
      return halves(low, op, a, (pair){0, 0});
    case VYRE__LIR_SHL:
    case VYRE__LIR_SHR_U:
    case VYRE__LIR_SHR_S:
      return shift(low, op, a, inst->b);
    case VYRE__LIR_CLZ:
    case VYRE__LIR_CTZ:
    case VYRE__LIR_POPCOUNT:
      return count_bits(low, op, a);
    case VYRE__LIR_MIN_U:
    case VYRE__LIR_MIN_S:
      return choose(low, less(low, a, b, op == VYRE__LIR_MIN_S), a, b);
    case VYRE__LIR_MAX_U:
    case VYRE__LIR_MAX_S:
      return choose(low, less(low, a, b, op == VYRE__LIR_MAX_S), b, a);
    case VYRE__LIR_SELECT:
      return choose(low, inst->a, b, parts(low, inst->c));
    case VYRE__LIR_ZEXT:
      first = inst->a;
      if (vyre__lir_type_of(low, first) == VYRE_TYPE_BOOL) {
        first = vyre__lir_do(low, op, VYRE_TYPE_U32, first, 0, 0);
      }
      return join(low, first, u32(low, 0));
    case VYRE__LIR_SEXT:
      return join(low, inst->a,
                  do2(low, VYRE__LIR_SHR_S, inst->a, u32(low, 31)));
    case VYRE__LIR_F_TO_U:
    case VYRE__LIR_F_TO_S:
      return from_float(low, op, inst->a);
    default:
      return refuse(low);
  }
}

/* Operations on u64 that give something else. */
static vyre__val wide_operand(vyre__lir_writer *low,
                              const vyre__lir_inst *inst) {
  vyre__lir_op op = (vyre__lir_op)inst->op;
  pair a = parts(low, inst->a), b = parts(low, inst->b);
  vyre__val x, y;
  switch (op) {
    case VYRE__LIR_EQ:
    case VYRE__LIR_NE:
      x = test(low, op, a.lo, b.lo);
      y = test(low, op, a.hi, b.hi);
      return vyre__lir_do(low,
                          op == VYRE__LIR_EQ ? VYRE__LIR_AND : VYRE__LIR_OR,
                          VYRE_TYPE_BOOL, x, y, 0);
    case VYRE__LIR_LT_U:
    case VYRE__LIR_LT_S:
      return less(low, a, b, op == VYRE__LIR_LT_S);
    case VYRE__LIR_LE_U:
    case VYRE__LIR_LE_S:
      x = less(low, b, a, op == VYRE__LIR_LE_S);
      return vyre__lir_do(low, VYRE__LIR_NOT, VYRE_TYPE_BOOL, x, 0, 0);
    case VYRE__LIR_TRUNC:
      return a.lo;
    case VYRE__LIR_U_TO_F:
    case VYRE__LIR_S_TO_F:
      if (inst->type == VYRE_TYPE_F64) {
        return refuse(low);
      }
      x = vyre__soft_call(
          low, op == VYRE__LIR_U_TO_F ? "w_to_f32" : "w_to_f32_signed", a.lo,
          a.hi, 0, 0);
      return vyre__lir_do(low, VYRE__LIR_BITCAST, VYRE_TYPE_F32, x, 0, 0);
    default:
      return refuse(low);
  }
}

/* --- 8-byte elements as two words ----------------------------------------------- */

/* Whether the buffer is accessed by words of 4 bytes: all of 8-byte elements if the
 * target has no 64-bit integers, else those with atomics that the target lacks. */
static bool is_by_words(const vyre__target *target,
                        const vyre__lir_buffer *buffer) {
  if (buffer->unit != 8) return false;
  if (target->no_u64) return true;
  return buffer->is_atomic &&
         (buffer->kind == VYRE_MEMORY_SHARED ? target->no_shared_atomics64
                                             : target->no_buffer_atomics64);
}

/* The words of a u64, which is a PAIR only if the target has no u64. */
static pair take_apart(vyre__lir_writer *low, vyre__val v) {
  if (low->splits_u64) return parts(low, v);
  vyre__val lo = vyre__lir_do(low, VYRE__LIR_TRUNC, VYRE_TYPE_U32, v, 0, 0);
  vyre__val hi =
      vyre__lir_do(low, VYRE__LIR_SHR_U, VYRE_TYPE_U64, v, u32(low, 32), 0);
  hi = vyre__lir_do(low, VYRE__LIR_TRUNC, VYRE_TYPE_U32, hi, 0, 0);
  return (pair){lo, hi};
}

static vyre__val put_together(vyre__lir_writer *low, vyre__val lo,
                              vyre__val hi) {
  if (low->splits_u64) return join(low, lo, hi);
  lo = vyre__lir_do(low, VYRE__LIR_ZEXT, VYRE_TYPE_U64, lo, 0, 0);
  hi = vyre__lir_do(low, VYRE__LIR_ZEXT, VYRE_TYPE_U64, hi, 0, 0);
  hi = vyre__lir_do(low, VYRE__LIR_SHL, VYRE_TYPE_U64, hi, u32(low, 32), 0);
  return vyre__lir_do(low, VYRE__LIR_OR, VYRE_TYPE_U64, hi, lo, 0);
}

/* Emulates a 64-bit atomic_add whose result is not used, at word @p at of a buffer
 * by words. The old low word tells whether this add carries, and the carry goes to
 * the high word with the high word of the value.
 *
 * The memory is exact when all adds are done: the adds to a low word have one total
 * order, in which the word passes 2^32 once for each carry, and the sums of both
 * words do not depend on the order. In between, the two words may not belong
 * together. Only another access to the element without synchronisation could see
 * that. If it is plain, it is a race, in which the element is unspecified anyway.
 * If it is atomic, it is another such add, which does not look at the high word and
 * has no result: check_atomics refuses all others. So no access needs a check here,
 * and the rule for a kernel is: all its 64-bit atomics on memory for which the
 * target lacks them are atomic_add, and their results are not used. */
static void add_by_words(vyre__lir_writer *low, const vyre__lir_inst *inst,
                         vyre__val at, vyre__val next) {
  pair value = take_apart(low, inst->b);
  vyre__lir_inst word = *inst;
  word.type = VYRE_TYPE_U32;
  word.a = at;
  word.b = value.lo;
  vyre__val old = vyre__lir_push(low, &word);
  vyre__val sum = do2(low, VYRE__LIR_ADD, old, value.lo);
  vyre__val more = carry(low, test(low, VYRE__LIR_LT_U, sum, value.lo));
  word.a = next;
  word.b = do2(low, VYRE__LIR_ADD, value.hi, more);
  /* Most adds are of small numbers and do not carry: then that is all. */
  vyre__val changes = test(low, VYRE__LIR_NE, word.b, u32(low, 0));
  word.c = inst->c ? vyre__lir_do(low, VYRE__LIR_AND, VYRE_TYPE_BOOL, inst->c,
                                  changes, 0)
                   : changes;
  vyre__lir_push(low, &word);
}

/* Twice an index that is in bounds still is 32 bits: a buffer of so many elements
 * that it would not be is refused, here where the program fixes its length, and
 * else by who binds it (vyre__lir_buffer_fits). Where the access is not proven,
 * the index may be anything, but then nothing is touched. */
static vyre__val access_wide(vyre__lir_writer *low,
                             const vyre__lir_inst *inst) {
  vyre__lir_inst part = *inst;
  vyre__val one = u32(low, 1);
  part.a = do2(low, VYRE__LIR_SHL, inst->a, one);
  vyre__val next = do2(low, VYRE__LIR_OR, part.a, one);
  if (inst->op == VYRE__LIR_LOAD) {
    part.type = VYRE_TYPE_U32;
    vyre__val lo = vyre__lir_push(low, &part);
    part.a = next;
    return put_together(low, lo, vyre__lir_push(low, &part));
  }
  if (inst->op != VYRE__LIR_STORE) {
    add_by_words(low, inst, part.a, next);
    return 0;
  }
  pair value = take_apart(low, inst->b);
  part.b = value.lo;
  vyre__lir_push(low, &part);
  part.a = next;
  part.b = value.hi;
  return vyre__lir_push(low, &part);
}

/* Per instruction of @p from: whether its value is used. NULL without memory. */
static bool *find_uses(const vyre__lir_writer *from, vyre_arena *scratch) {
  bool *is_used = vyre__arena_array(scratch, from->count, sizeof *is_used);
  if (!is_used) return NULL;
  memset(is_used, 0, from->count * sizeof *is_used);
  for (size_t i = 1; i < from->count; i++) {
    const vyre__lir_inst *inst = &from->code[i];
    unsigned operands = vyre__lir_ops[inst->op].operands;
    for (unsigned k = 0; k < operands; k++) is_used[inst->v[k]] = true;
  }
  return is_used;
}

static bool is_wide_atomic(const vyre__lir_writer *from,
                           const vyre__target *target,
                           const vyre__lir_inst *inst) {
  return (vyre__lir_ops[inst->op].flags & VYRE__LIRF_ATOMICS) &&
         is_by_words(target, &from->buffers[inst->aux]);
}

/* Refuses 64-bit atomics that two 32-bit ones cannot stand for. */
static void check_atomics(vyre__lir_writer *low, const vyre__lir_writer *from,
                          vyre_arena *scratch) {
  bool *is_used = NULL;
  for (size_t i = 1; i < from->count; i++) {
    const vyre__lir_inst *inst = &from->code[i];
    if (!is_wide_atomic(from, low->target, inst)) continue;
    if (!is_used) is_used = find_uses(from, scratch);
    if (!is_used) {
      low->no_memory = true;
      return;
    }
    if (inst->op == VYRE__LIR_ATOMIC_ADD && !is_used[i]) continue;
    low->code_failed = VYRE_FAIL(
        low->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
        "use u32, do not use the result of atomic_add, or take a device that "
        "has 64-bit atomics: `vyre devices` lists what each has",
        "line %u: the target has no 64-bit atomics; of these it runs only "
        "atomic_add whose result is not used, and this is %s",
        from->places[i].line,
        inst->op == VYRE__LIR_ATOMIC_ADD ? "one whose result is used"
                                         : "another one");
    return;
  }
}

static void refuse_buffer(vyre__lir_writer *low, size_t index) {
  const vyre__lir_buffer *buffer = &low->buffers[index];
  uint64_t most = UINT32_MAX / 2;
  if (low->code_failed != VYRE_OK) return;
  low->code_failed = VYRE_FAIL_WITH(
      low->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_OVER_BUDGET, NULL,
      VYRE_NUMBERS({"elements", buffer->count}, {"most_elements", most}),
      "make it smaller, or use a device that has 64-bit integers",
      "'%.60s' has %u elements of 8 bytes, of which the target can index %u",
      buffer->name, (unsigned)buffer->count, (unsigned)most);
}

/* --- the pass ------------------------------------------------------------------- */

static bool is_access(unsigned op) {
  return op >= VYRE__LIR_LOAD && op <= VYRE__LIR_ATOMIC_CAS;
}

static vyre__val memory_emit(vyre__lir_writer *low,
                             const vyre__lir_inst *given) {
  vyre__lir_inst inst = *given;
  const vyre__lir_info *info = &vyre__lir_ops[inst.op];
  if (low->no_memory || low->code_failed != VYRE_OK) return 0;
  if (info->flags & VYRE__LIRF_HIGH) return vyre__legalize_float_op(low, &inst);
  if (is_access(inst.op)) {
    unsigned unit = low->buffers[inst.aux].unit;
    if (is_by_words(low->target, &low->buffers[inst.aux])) {
      return access_wide(low, &inst);
    }
    if (low->target->no_narrow && unit < 4) {
      if (inst.op == VYRE__LIR_LOAD) return load_narrow(low, &inst, unit);
      store_narrow(low, &inst, unit);
      return 0;
    }
    return vyre__lir_push(low, &inst);
  }
  if (low->target->no_u64) {
    if (inst.type == VYRE_TYPE_U64) return wide_value(low, &inst);
    unsigned k = inst.op == VYRE__LIR_SELECT ? 1 : 0;
    if (info->operands > k &&
        vyre__lir_type_of(low, inst.v[k]) == VYRE_TYPE_U64) {
      return wide_operand(low, &inst);
    }
  }
  return vyre__legalize_float_op(low, &inst);
}

bool vyre__legalize_memory_is_needed(const vyre__target *target,
                                     const vyre__lir_writer *low) {
  bool by_words = false;
  for (size_t i = 0; i < low->buffer_count; i++) {
    by_words |= is_by_words(target, &low->buffers[i]);
  }
  return target->no_u64 || target->no_narrow || by_words;
}

void vyre__legalize_memory(vyre__lir_writer *low, const vyre__lir_writer *from,
                           vyre_arena *scratch) {
  low->emit = memory_emit;
  low->shares_constants = true;
  low->splits_u64 = low->target->no_u64;
  check_atomics(low, from, scratch);
  if (low->no_memory || low->code_failed != VYRE_OK) return;
  vyre__lir_rewrite(low, from, scratch);
  for (size_t i = 0; i < low->buffer_count && !low->no_memory; i++) {
    vyre__lir_buffer *buffer = &low->buffers[i];
    if (is_by_words(low->target, buffer) ||
        (low->target->no_narrow && buffer->width < 4)) {
      buffer->width = 4;
    }
    if (!vyre__lir_buffer_fits(buffer, buffer->count)) refuse_buffer(low, i);
  }
}
