/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lower/legalize_memory.h"

#include "base/memory.h"
#include "base/status.h"
#include "lower/legalize_floats.h"

static vyre__val do2(vyre__lir_writer *lir, vyre__lir_op op, vyre__val a,
                     vyre__val b) {
  return vyre__legalize_float_op(
      lir, &(vyre__lir_inst){
               .op = (uint8_t)op, .type = VYRE_TYPE_U32, .v = {a, b, 0, 0}});
}

static vyre__val test(vyre__lir_writer *lir, vyre__lir_op op, vyre__val a,
                      vyre__val b) {
  return vyre__legalize_float_op(
      lir, &(vyre__lir_inst){
               .op = (uint8_t)op, .type = VYRE_TYPE_BOOL, .v = {a, b, 0, 0}});
}

static vyre__val u32(vyre__lir_writer *lir, uint32_t value) {
  return vyre__lir_bits(lir, VYRE_TYPE_U32, value);
}

/* Rejects an operation that cannot be built from 32-bit ones. */
static vyre__val reject_wide(vyre__lir_writer *lir) {
  if (lir->code_failed == VYRE_OK) {
    lir->code_failed = VYRE_FAIL(
        lir->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
        "use u32, or a device with 64-bit integers",
        "line %u: the target has no 64-bit integers for this operation",
        lir->here.line);
  }
  return 0;
}

/* --- narrow elements as words --------------------------------------------- */

typedef struct word_location {
  vyre__val index, shift; /* word index, and bit offset in the word */
} word_location;

static word_location find_word(vyre__lir_writer *lir, vyre__val index,
                               unsigned unit) {
  unsigned each = unit == 1 ? 2 : 1; /* log2 of elements per word */
  vyre__val low_bits = do2(lir, VYRE__LIR_AND, index, u32(lir, 4 / unit - 1));
  vyre__val word = do2(lir, VYRE__LIR_SHR_U, index, u32(lir, each));
  vyre__val shift =
      do2(lir, VYRE__LIR_SHL, low_bits, u32(lir, unit == 1 ? 3 : 4));
  return (word_location){word, shift};
}

static vyre__val load_narrow(vyre__lir_writer *lir, const vyre__lir_inst *inst,
                             unsigned unit) {
  word_location p = find_word(lir, inst->a, unit);
  vyre__lir_inst load = *inst;
  load.a = p.index;
  vyre__val word = vyre__lir_push(lir, &load);
  word = do2(lir, VYRE__LIR_SHR_U, word, p.shift);
  return do2(lir, VYRE__LIR_AND, word, u32(lir, unit == 1 ? 0xFF : 0xFFFF));
}

/* Stores a narrow element. Other invocations may write the neighbours in the
 * same word, so their bits must never be written. */
static void store_narrow(vyre__lir_writer *lir, const vyre__lir_inst *inst,
                         unsigned unit) {
  word_location p = find_word(lir, inst->a, unit);
  vyre__val mask = u32(lir, unit == 1 ? 0xFF : 0xFFFF);
  vyre__val hole = do2(lir, VYRE__LIR_SHL, mask, p.shift);
  vyre__val value = do2(lir, VYRE__LIR_AND, inst->b, mask);
  hole = vyre__lir_do(lir, VYRE__LIR_NOT, VYRE_TYPE_U32, hole, 0, 0);
  value = do2(lir, VYRE__LIR_SHL, value, p.shift);
  vyre__lir_inst atomic = {.op = VYRE__LIR_ATOMIC_AND,
                           .type = VYRE_TYPE_U32,
                           .hints = inst->hints,
                           .aux = inst->aux,
                           .v = {p.index, hole, inst->c, 0}};
  vyre__lir_push(lir, &atomic);
  atomic.op = VYRE__LIR_ATOMIC_OR;
  atomic.b = value;
  vyre__lir_push(lir, &atomic);
  lir->buffers[inst->aux].is_atomic = true;
}

/* --- u64 as pairs --------------------------------------------------------- */

typedef struct pair {
  vyre__val lo, hi;
} pair;

static pair halves_of(const vyre__lir_writer *lir, vyre__val v) {
  return (pair){lir->code[v].a, lir->code[v].b};
}

static vyre__val join(vyre__lir_writer *lir, vyre__val lo, vyre__val hi) {
  return vyre__lir_push(lir, &(vyre__lir_inst){.op = VYRE__LIR_PAIR,
                                               .type = VYRE_TYPE_U64,
                                               .v = {lo, hi, 0, 0}});
}

static vyre__val carry(vyre__lir_writer *lir, vyre__val condition) {
  return vyre__lir_do(lir, VYRE__LIR_ZEXT, VYRE_TYPE_U32, condition, 0, 0);
}

static vyre__val add(vyre__lir_writer *lir, pair a, pair b) {
  vyre__val lo = do2(lir, VYRE__LIR_ADD, a.lo, b.lo);
  vyre__val more = carry(lir, test(lir, VYRE__LIR_LT_U, lo, a.lo));
  vyre__val hi = do2(lir, VYRE__LIR_ADD, a.hi, b.hi);
  return join(lir, lo, do2(lir, VYRE__LIR_ADD, hi, more));
}

static vyre__val subtract(vyre__lir_writer *lir, pair a, pair b) {
  vyre__val less = carry(lir, test(lir, VYRE__LIR_LT_U, a.lo, b.lo));
  vyre__val lo = do2(lir, VYRE__LIR_SUB, a.lo, b.lo);
  vyre__val hi = do2(lir, VYRE__LIR_SUB, a.hi, b.hi);
  return join(lir, lo, do2(lir, VYRE__LIR_SUB, hi, less));
}

static vyre__val soft(vyre__lir_writer *lir, const char *name, pair a, pair b) {
  return vyre__soft_call(lir, name, a.lo, a.hi, b.lo, b.hi);
}

/* Computes each half with its own softlib function. */
static vyre__val soft_pair(vyre__lir_writer *lir, const char *lo_name,
                           const char *hi_name, pair a, pair b) {
  vyre__val lo = soft(lir, lo_name, a, b), hi = soft(lir, hi_name, a, b);
  return join(lir, lo, hi);
}

static vyre__val multiply(vyre__lir_writer *lir, pair a, pair b) {
  uint64_t x, y;
  if (vyre__lir_is_constant(lir, a.hi, &x) &&
      vyre__lir_is_constant(lir, b.hi, &y) && x == 0 && y == 0) {
    vyre__val lo = do2(lir, VYRE__LIR_MUL, a.lo, b.lo);
    return join(lir, lo, vyre__soft_call(lir, "wide_mul_hi", a.lo, b.lo, 0, 0));
  }
  return soft_pair(lir, "w_mul_lo", "w_mul_hi", a, b);
}

static vyre__val choose(vyre__lir_writer *lir, vyre__val condition, pair yes,
                        pair no) {
  vyre__val lo = vyre__lir_do(lir, VYRE__LIR_SELECT, VYRE_TYPE_U32, condition,
                              yes.lo, no.lo);
  vyre__val hi = vyre__lir_do(lir, VYRE__LIR_SELECT, VYRE_TYPE_U32, condition,
                              yes.hi, no.hi);
  return join(lir, lo, hi);
}

static vyre__val less(vyre__lir_writer *lir, pair a, pair b, bool is_signed) {
  return soft(lir, is_signed ? "w_slt" : "w_lt", a, b);
}

static vyre__val shift(vyre__lir_writer *lir, vyre__lir_op op, pair a,
                       vyre__val count) {
  const char *lo = "w_shl_lo", *hi = "w_shl_hi";
  if (op == VYRE__LIR_SHR_U) lo = "w_shr_lo", hi = "w_shr_hi";
  if (op == VYRE__LIR_SHR_S) lo = "w_sar_lo", hi = "w_sar_hi";
  return soft_pair(lir, lo, hi, a, (pair){count, 0});
}

static pair negate_if(vyre__lir_writer *lir, vyre__val condition, pair a) {
  vyre__val zero = u32(lir, 0);
  pair minus = halves_of(lir, subtract(lir, (pair){zero, zero}, a));
  return halves_of(lir, choose(lir, condition, minus, a));
}

/* Divides magnitudes, then applies the sign. The divisor is not 0. */
static vyre__val divide(vyre__lir_writer *lir, vyre__lir_op op, pair a,
                        pair b) {
  bool is_rem = op == VYRE__LIR_REM_U || op == VYRE__LIR_REM_S;
  const char *lo = is_rem ? "w_rem_lo" : "w_div_lo";
  const char *hi = is_rem ? "w_rem_hi" : "w_div_hi";
  bool is_signed = op == VYRE__LIR_DIV_S || op == VYRE__LIR_REM_S;
  if (!is_signed) return soft_pair(lir, lo, hi, a, b);
  vyre__val zero = u32(lir, 0);
  vyre__val below_a = test(lir, VYRE__LIR_LT_S, a.hi, zero);
  vyre__val below_b = test(lir, VYRE__LIR_LT_S, b.hi, zero);
  pair x = negate_if(lir, below_a, a), y = negate_if(lir, below_b, b);
  pair out = halves_of(lir, soft_pair(lir, lo, hi, x, y));
  vyre__val below = below_a;
  if (!is_rem) {
    below =
        vyre__lir_do(lir, VYRE__LIR_XOR, VYRE_TYPE_BOOL, below_a, below_b, 0);
  }
  out = negate_if(lir, below, out);
  return join(lir, out.lo, out.hi);
}

static vyre__val count_bits(vyre__lir_writer *lir, vyre__lir_op op, pair a) {
  vyre__val zero = u32(lir, 0), out;
  vyre__val lo = vyre__lir_do(lir, op, VYRE_TYPE_U32, a.lo, 0, 0);
  vyre__val hi = vyre__lir_do(lir, op, VYRE_TYPE_U32, a.hi, 0, 0);
  if (op == VYRE__LIR_POPCOUNT) {
    out = do2(lir, VYRE__LIR_ADD, lo, hi);
  } else {
    bool leading = op == VYRE__LIR_CLZ;
    vyre__val first = leading ? a.hi : a.lo, near = leading ? hi : lo;
    vyre__val far = do2(lir, VYRE__LIR_ADD, leading ? lo : hi, u32(lir, 32));
    vyre__val none = test(lir, VYRE__LIR_EQ, first, zero);
    out = vyre__lir_do(lir, VYRE__LIR_SELECT, VYRE_TYPE_U32, none, far, near);
  }
  return join(lir, out, zero);
}

/* Applies the operation to each half; NOT ignores b. */
static vyre__val halves(vyre__lir_writer *lir, vyre__lir_op op, pair a,
                        pair b) {
  vyre__val lo = do2(lir, op, a.lo, b.lo), hi = do2(lir, op, a.hi, b.hi);
  return join(lir, lo, hi);
}

static vyre__val from_float(vyre__lir_writer *lir, vyre__lir_op op,
                            vyre__val a) {
  vyre_type type = vyre__lir_type_of(lir, a);
  bool is_signed = op == VYRE__LIR_F_TO_S;
  if (type == VYRE_TYPE_F64) {
    return reject_wide(lir);
  }
  if (type == VYRE_TYPE_F32) {
    a = vyre__lir_do(lir, VYRE__LIR_BITCAST, VYRE_TYPE_U32, a, 0, 0);
  }
  return soft_pair(lir, is_signed ? "w_from_f32_signed_lo" : "w_from_f32_lo",
                   is_signed ? "w_from_f32_signed_hi" : "w_from_f32_hi",
                   (pair){a, 0}, (pair){0, 0});
}

/* Rewrites operations with a u64 result. */
static vyre__val wide_value(vyre__lir_writer *lir, const vyre__lir_inst *inst) {
  vyre__lir_op op = (vyre__lir_op)inst->op;
  pair a = halves_of(lir, inst->a), b = halves_of(lir, inst->b);
  vyre__val first;
  switch (op) {
    case VYRE__LIR_CONST:
      first = u32(lir, inst->c);
      return join(lir, first, u32(lir, inst->d));
    case VYRE__LIR_ADD:
      return add(lir, a, b);
    case VYRE__LIR_SUB:
      return subtract(lir, a, b);
    case VYRE__LIR_MUL:
      return multiply(lir, a, b);
    case VYRE__LIR_DIV_U:
    case VYRE__LIR_DIV_S:
    case VYRE__LIR_REM_U:
    case VYRE__LIR_REM_S:
      return divide(lir, op, a, b);
    case VYRE__LIR_AND:
    case VYRE__LIR_OR:
    case VYRE__LIR_XOR:
      return halves(lir, op, a, b);
    case VYRE__LIR_NOT:
      return halves(lir, op, a, (pair){0, 0});
    case VYRE__LIR_SHL:
    case VYRE__LIR_SHR_U:
    case VYRE__LIR_SHR_S:
      return shift(lir, op, a, inst->b);
    case VYRE__LIR_CLZ:
    case VYRE__LIR_CTZ:
    case VYRE__LIR_POPCOUNT:
      return count_bits(lir, op, a);
    case VYRE__LIR_MIN_U:
    case VYRE__LIR_MIN_S:
      return choose(lir, less(lir, a, b, op == VYRE__LIR_MIN_S), a, b);
    case VYRE__LIR_MAX_U:
    case VYRE__LIR_MAX_S:
      return choose(lir, less(lir, a, b, op == VYRE__LIR_MAX_S), b, a);
    case VYRE__LIR_SELECT:
      return choose(lir, inst->a, b, halves_of(lir, inst->c));
    case VYRE__LIR_ZEXT:
      first = inst->a;
      if (vyre__lir_type_of(lir, first) == VYRE_TYPE_BOOL) {
        first = vyre__lir_do(lir, op, VYRE_TYPE_U32, first, 0, 0);
      }
      return join(lir, first, u32(lir, 0));
    case VYRE__LIR_SEXT:
      return join(lir, inst->a,
                  do2(lir, VYRE__LIR_SHR_S, inst->a, u32(lir, 31)));
    case VYRE__LIR_F_TO_U:
    case VYRE__LIR_F_TO_S:
      return from_float(lir, op, inst->a);
    default:
      return reject_wide(lir);
  }
}

/* Rewrites operations on u64 with another result. */
static vyre__val wide_operand(vyre__lir_writer *lir,
                              const vyre__lir_inst *inst) {
  vyre__lir_op op = (vyre__lir_op)inst->op;
  pair a = halves_of(lir, inst->a), b = halves_of(lir, inst->b);
  vyre__val x, y;
  switch (op) {
    case VYRE__LIR_EQ:
    case VYRE__LIR_NE:
      x = test(lir, op, a.lo, b.lo);
      y = test(lir, op, a.hi, b.hi);
      return vyre__lir_do(lir,
                          op == VYRE__LIR_EQ ? VYRE__LIR_AND : VYRE__LIR_OR,
                          VYRE_TYPE_BOOL, x, y, 0);
    case VYRE__LIR_LT_U:
    case VYRE__LIR_LT_S:
      return less(lir, a, b, op == VYRE__LIR_LT_S);
    case VYRE__LIR_LE_U:
    case VYRE__LIR_LE_S:
      x = less(lir, b, a, op == VYRE__LIR_LE_S);
      return vyre__lir_do(lir, VYRE__LIR_NOT, VYRE_TYPE_BOOL, x, 0, 0);
    case VYRE__LIR_TRUNC:
      return a.lo;
    case VYRE__LIR_U_TO_F:
    case VYRE__LIR_S_TO_F:
      if (inst->type == VYRE_TYPE_F64) {
        return reject_wide(lir);
      }
      x = vyre__soft_call(
          lir, op == VYRE__LIR_U_TO_F ? "w_to_f32" : "w_to_f32_signed", a.lo,
          a.hi, 0, 0);
      return vyre__lir_do(lir, VYRE__LIR_BITCAST, VYRE_TYPE_F32, x, 0, 0);
    default:
      return reject_wide(lir);
  }
}

/* --- 8-byte elements as two words ----------------------------------------- */

/* Returns true if the buffer is accessed in words of 4 bytes. These are all
 * buffers of 8-byte elements if the target has no 64-bit integers, else those
 * with atomics that the target lacks. */
static bool is_word_accessed(const vyre__target *target,
                             const vyre__lir_buffer *buffer) {
  if (buffer->width != 8) return false;
  if (target->no_u64) return true;
  return buffer->is_atomic &&
         (buffer->kind == VYRE_MEMORY_SHARED ? target->no_shared_atomics64
                                             : target->no_buffer_atomics64);
}

/* Splits a u64 into words. It is a PAIR only if the target has no u64. */
static pair split_words(vyre__lir_writer *lir, vyre__val v) {
  if (lir->splits_u64) return halves_of(lir, v);
  vyre__val lo = vyre__lir_do(lir, VYRE__LIR_TRUNC, VYRE_TYPE_U32, v, 0, 0);
  vyre__val hi =
      vyre__lir_do(lir, VYRE__LIR_SHR_U, VYRE_TYPE_U64, v, u32(lir, 32), 0);
  hi = vyre__lir_do(lir, VYRE__LIR_TRUNC, VYRE_TYPE_U32, hi, 0, 0);
  return (pair){lo, hi};
}

static vyre__val join_words(vyre__lir_writer *lir, vyre__val lo, vyre__val hi) {
  if (lir->splits_u64) return join(lir, lo, hi);
  lo = vyre__lir_do(lir, VYRE__LIR_ZEXT, VYRE_TYPE_U64, lo, 0, 0);
  hi = vyre__lir_do(lir, VYRE__LIR_ZEXT, VYRE_TYPE_U64, hi, 0, 0);
  hi = vyre__lir_do(lir, VYRE__LIR_SHL, VYRE_TYPE_U64, hi, u32(lir, 32), 0);
  return vyre__lir_do(lir, VYRE__LIR_OR, VYRE_TYPE_U64, hi, lo, 0);
}

/* Emulates a 64-bit atomic_add whose result is not used, at word @p at of a
 * buffer that is accessed in words. The old low word shows if this add carries.
 * The carry is added to the high word together with the high word of the value.
 *
 * The memory is exact when all adds have finished. Adds to a low word have one
 * total order, in which the word passes 2^32 once for each carry, and the sums
 * of both words do not depend on the order. Between two adds the words may be
 * inconsistent. Only another unsynchronised access to the element could observe
 * that. A plain access would be a race, in which the element is unspecified
 * anyway. An atomic access is another such add, which ignores the high word and
 * has no result: check_atomics rejects all others. So no access needs a check
 * here. The rule for a kernel is: all its 64-bit atomics on memory without
 * native ones are atomic_add with unused results, or set flags of exact sums
 * (is_flag). */
static void add_by_words(vyre__lir_writer *lir, const vyre__lir_inst *inst,
                         vyre__val at, vyre__val next) {
  pair value = split_words(lir, inst->b);
  vyre__lir_inst word = *inst;
  word.type = VYRE_TYPE_U32;
  word.a = at;
  word.b = value.lo;
  vyre__val old = vyre__lir_push(lir, &word);
  vyre__val sum = do2(lir, VYRE__LIR_ADD, old, value.lo);
  vyre__val more = carry(lir, test(lir, VYRE__LIR_LT_U, sum, value.lo));
  word.a = next;
  word.b = do2(lir, VYRE__LIR_ADD, value.hi, more);
  /* Most adds use small numbers and do not carry; the second atomic is skipped
   * then. */
  vyre__val changes = test(lir, VYRE__LIR_NE, word.b, u32(lir, 0));
  word.c = inst->c ? vyre__lir_do(lir, VYRE__LIR_AND, VYRE_TYPE_BOOL, inst->c,
                                  changes, 0)
                   : changes;
  vyre__lir_push(lir, &word);
}

/* Returns true for an atomic that sets flags of an exact sum (ir/sum.h). No
 * other operation changes that word, so its halves may change one after the
 * other. */
static bool is_flag(const vyre__lir_buffer *buffer,
                    const vyre__lir_inst *inst) {
  return inst->op == VYRE__LIR_ATOMIC_OR && buffer->width == 8 &&
         (buffer->unit == vyre_element_size(VYRE_ELEMENT_SUM_F32) ||
          buffer->unit == vyre_element_size(VYRE_ELEMENT_SUM_F64));
}

/* Emulates a 64-bit atomic_or for which is_flag holds: one atomic for each word.
 * A word that does not change is skipped. */
static void set_flags(vyre__lir_writer *lir, const vyre__lir_inst *inst,
                      vyre__val at, vyre__val next) {
  const pair value = split_words(lir, inst->b);
  const vyre__val parts[2] = {value.lo, value.hi}, indices[2] = {at, next};
  for (int i = 0; i < 2; i++) {
    vyre__lir_inst word = *inst;
    const vyre__val changes = test(lir, VYRE__LIR_NE, parts[i], u32(lir, 0));
    word.type = VYRE_TYPE_U32;
    word.a = indices[i];
    word.b = parts[i];
    word.c = inst->c ? vyre__lir_do(lir, VYRE__LIR_AND, VYRE_TYPE_BOOL, inst->c,
                                    changes, 0)
                     : changes;
    vyre__lir_push(lir, &word);
  }
}

/* Accesses an 8-byte element as two words. Twice an index that is in bounds
 * fits 32 bits, because larger buffers are rejected: below if the program fixes
 * the length, else when the buffer is bound (vyre__lir_buffer_fits). If the
 * access is not proven, the index may have any value, but then nothing is
 * accessed. */
static vyre__val access_wide(vyre__lir_writer *lir,
                             const vyre__lir_inst *inst) {
  vyre__lir_inst word = *inst;
  vyre__val one = u32(lir, 1);
  word.a = do2(lir, VYRE__LIR_SHL, inst->a, one);
  vyre__val next = do2(lir, VYRE__LIR_OR, word.a, one);
  if (inst->op == VYRE__LIR_LOAD) {
    word.type = VYRE_TYPE_U32;
    vyre__val lo = vyre__lir_push(lir, &word);
    word.a = next;
    return join_words(lir, lo, vyre__lir_push(lir, &word));
  }
  if (inst->op == VYRE__LIR_ATOMIC_OR) {
    set_flags(lir, inst, word.a, next);
    return 0;
  }
  if (inst->op != VYRE__LIR_STORE) {
    add_by_words(lir, inst, word.a, next);
    return 0;
  }
  pair value = split_words(lir, inst->b);
  word.b = value.lo;
  vyre__lir_push(lir, &word);
  word.a = next;
  word.b = value.hi;
  return vyre__lir_push(lir, &word);
}

/* Returns an array that is true for each instruction of @p from whose value is
 * used. NULL without memory. */
static bool *find_uses(const vyre__lir_writer *from, vyre_arena *scratch) {
  bool *is_used = vyre__arena_filled(scratch, from->count, sizeof *is_used, 0);
  if (!is_used) return NULL;
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
         is_word_accessed(target, &from->buffers[inst->aux]);
}

/* Returns the name of an atomic operation in the language. */
static const char *source_name(vyre__lir_op op) {
  switch (op) {
    case VYRE__LIR_ATOMIC_MIN_U:
    case VYRE__LIR_ATOMIC_MIN_S:
      return vyre__ops[VYRE__OP_ATOMIC_MIN].text;
    case VYRE__LIR_ATOMIC_MAX_U:
    case VYRE__LIR_ATOMIC_MAX_S:
      return vyre__ops[VYRE__OP_ATOMIC_MAX].text;
    case VYRE__LIR_ATOMIC_CAS:
      return vyre__ops[VYRE__OP_ATOMIC_CAS].text;
    default:
      return vyre__lir_ops[op].text;
  }
}

#define ATOMICS64_DEVICE \
  "use u32, or a device with 64-bit atomics: `vyre devices` lists features"

static void reject_atomic(vyre__lir_writer *lir, const vyre__lir_inst *inst,
                          uint32_t line) {
  if (inst->op == VYRE__LIR_ATOMIC_ADD) {
    lir->code_failed = VYRE_FAIL(
        lir->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
        "do not use the result of atomic_add(), " ATOMICS64_DEVICE,
        "line %u: the target has no 64-bit atomics: it runs atomic_add() only "
        "if the result is not used, and here it is used",
        line);
    return;
  }
  lir->code_failed =
      VYRE_FAIL(lir->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                ATOMICS64_DEVICE,
                "line %u: the target has no 64-bit atomics: it cannot run "
                "%s(), only atomic_add() whose result is not used",
                line, source_name((vyre__lir_op)inst->op));
}

/* Rejects 64-bit atomics that two 32-bit ones cannot emulate. */
static void check_atomics(vyre__lir_writer *lir, const vyre__lir_writer *from,
                          vyre_arena *scratch) {
  bool *is_used = NULL;
  for (size_t i = 1; i < from->count; i++) {
    const vyre__lir_inst *inst = &from->code[i];
    if (!is_wide_atomic(from, lir->target, inst)) continue;
    if (!is_used) is_used = find_uses(from, scratch);
    if (!is_used) {
      lir->no_memory = true;
      return;
    }
    const bool is_fine = inst->op == VYRE__LIR_ATOMIC_ADD ||
                         is_flag(&from->buffers[inst->aux], inst);
    if (is_fine && !is_used[i]) continue;
    reject_atomic(lir, inst, from->source_locs[i].line);
    return;
  }
}

static void reject_buffer(vyre__lir_writer *lir, size_t index) {
  const vyre__lir_buffer *buffer = &lir->buffers[index];
  uint64_t max = UINT32_MAX / 2;
  if (lir->code_failed != VYRE_OK) return;
  lir->code_failed = VYRE_FAIL_WITH(
      lir->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_OVER_BUDGET, NULL,
      VYRE_NUMBERS({"elements", buffer->count}, {"max_elements", max}),
      "make it smaller, or use a device with 64-bit integers",
      "buffer '%.60s' has %u elements of 8 bytes; the target can index %u",
      buffer->name, (unsigned)buffer->count, (unsigned)max);
}

/* --- the pass ------------------------------------------------------------- */

static bool is_access(unsigned op) {
  return op >= VYRE__LIR_LOAD && op <= VYRE__LIR_ATOMIC_CAS;
}

static vyre__val memory_emit(vyre__lir_writer *lir,
                             const vyre__lir_inst *given) {
  vyre__lir_inst inst = *given;
  const vyre__lir_info *info = &vyre__lir_ops[inst.op];
  if (lir->no_memory || lir->code_failed != VYRE_OK) return 0;
  if (info->flags & VYRE__LIRF_HIGH) return vyre__legalize_float_op(lir, &inst);
  if (is_access(inst.op)) {
    unsigned unit = lir->buffers[inst.aux].width;
    if (is_word_accessed(lir->target, &lir->buffers[inst.aux])) {
      return access_wide(lir, &inst);
    }
    if (lir->target->no_narrow && unit < 4) {
      if (inst.op == VYRE__LIR_LOAD) return load_narrow(lir, &inst, unit);
      store_narrow(lir, &inst, unit);
      return 0;
    }
    return vyre__lir_push(lir, &inst);
  }
  if (lir->target->no_u64) {
    if (inst.type == VYRE_TYPE_U64) return wide_value(lir, &inst);
    unsigned k = inst.op == VYRE__LIR_SELECT ? 1 : 0;
    if (info->operands > k &&
        vyre__lir_type_of(lir, inst.v[k]) == VYRE_TYPE_U64) {
      return wide_operand(lir, &inst);
    }
  }
  return vyre__legalize_float_op(lir, &inst);
}

bool vyre__legalize_memory_is_needed(const vyre__target *target,
                                     const vyre__lir_writer *lir) {
  bool by_words = false;
  for (size_t i = 0; i < lir->buffer_count; i++) {
    by_words |= is_word_accessed(target, &lir->buffers[i]);
  }
  return target->no_u64 || target->no_narrow || by_words;
}

void vyre__legalize_memory(vyre__lir_writer *lir, const vyre__lir_writer *from,
                           vyre_arena *scratch) {
  lir->emit = memory_emit;
  lir->shares_constants = true;
  lir->splits_u64 = lir->target->no_u64;
  check_atomics(lir, from, scratch);
  if (lir->no_memory || lir->code_failed != VYRE_OK) return;
  vyre__lir_rewrite(lir, from, scratch);
  for (size_t i = 0; i < lir->buffer_count && !lir->no_memory; i++) {
    vyre__lir_buffer *buffer = &lir->buffers[i];
    if (is_word_accessed(lir->target, buffer) ||
        (lir->target->no_narrow && buffer->width < 4)) {
      buffer->width = 4;
    }
    if (!vyre__lir_buffer_fits(buffer, buffer->count)) reject_buffer(lir, i);
  }
}
