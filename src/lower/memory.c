/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lower/memory.h"

#include "base/status.h"
#include "lower/numbers.h"

static vyre__val do2(vyre__low *low, vyre__low_op op, vyre__val a,
                     vyre__val b) {
  return vyre__numbers_emit(
      low, &(vyre__low_inst){
               .op = (uint8_t)op, .type = VYRE_TYPE_U32, .v = {a, b, 0, 0}});
}

static vyre__val test(vyre__low *low, vyre__low_op op, vyre__val a,
                      vyre__val b) {
  return vyre__numbers_emit(
      low, &(vyre__low_inst){
               .op = (uint8_t)op, .type = VYRE_TYPE_BOOL, .v = {a, b, 0, 0}});
}

static vyre__val u32(vyre__low *low, uint32_t value) {
  return vyre__low_bits(low, VYRE_TYPE_U32, value);
}

static vyre__val refuse(vyre__low *low, const char *what) {
  if (low->code_failed == VYRE_OK) {
    low->code_failed =
        VYRE_FAIL(low->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                  "use u32, or a device that has 64-bit integers",
                  "line %u: the target has no %s", low->here.line, what);
  }
  return 0;
}

/* --- narrow elements as words ------------------------------------------------- */

typedef struct word_place {
  vyre__val index, shift; /* of the word, and of the bits in it */
} word_place;

static word_place find_word(vyre__low *low, vyre__val index, unsigned unit) {
  unsigned each = unit == 1 ? 2 : 1; /* log2 of elements a word */
  vyre__val low_bits = do2(low, VYRE__LOW_AND, index, u32(low, 4 / unit - 1));
  vyre__val word = do2(low, VYRE__LOW_SHR_U, index, u32(low, each));
  vyre__val shift =
      do2(low, VYRE__LOW_SHL, low_bits, u32(low, unit == 1 ? 3 : 4));
  return (word_place){word, shift};
}

static vyre__val load_narrow(vyre__low *low, const vyre__low_inst *inst,
                             unsigned unit) {
  word_place p = find_word(low, inst->a, unit);
  vyre__low_inst load = *inst;
  load.a = p.index;
  vyre__val word = vyre__low_push(low, &load);
  word = do2(low, VYRE__LOW_SHR_U, word, p.shift);
  return do2(low, VYRE__LOW_AND, word, u32(low, unit == 1 ? 0xFF : 0xFFFF));
}

/* Neighbours in the word may be somebody else's: their bits are never written. */
static void store_narrow(vyre__low *low, const vyre__low_inst *inst,
                         unsigned unit) {
  word_place p = find_word(low, inst->a, unit);
  vyre__val mask = u32(low, unit == 1 ? 0xFF : 0xFFFF);
  vyre__val hole = do2(low, VYRE__LOW_SHL, mask, p.shift);
  vyre__val value = do2(low, VYRE__LOW_AND, inst->b, mask);
  hole = vyre__low_do(low, VYRE__LOW_NOT, VYRE_TYPE_U32, hole, 0, 0);
  value = do2(low, VYRE__LOW_SHL, value, p.shift);
  vyre__low_inst atomic = {.op = VYRE__LOW_ATOMIC_AND,
                           .type = VYRE_TYPE_U32,
                           .hints = inst->hints,
                           .aux = inst->aux,
                           .v = {p.index, hole, inst->c, 0}};
  vyre__low_push(low, &atomic);
  atomic.op = VYRE__LOW_ATOMIC_OR;
  atomic.b = value;
  vyre__low_push(low, &atomic);
  low->buffers[inst->aux].is_atomic = true;
}

/* --- u64 as pairs -------------------------------------------------------------- */

typedef struct pair {
  vyre__val lo, hi;
} pair;

static pair parts(const vyre__low *low, vyre__val v) {
  return (pair){low->code[v].a, low->code[v].b};
}

static vyre__val join(vyre__low *low, vyre__val lo, vyre__val hi) {
  return vyre__low_push(low, &(vyre__low_inst){.op = VYRE__LOW_PAIR,
                                               .type = VYRE_TYPE_U64,
                                               .v = {lo, hi, 0, 0}});
}

static vyre__val carry(vyre__low *low, vyre__val condition) {
  return vyre__low_do(low, VYRE__LOW_ZEXT, VYRE_TYPE_U32, condition, 0, 0);
}

static vyre__val add(vyre__low *low, pair a, pair b) {
  vyre__val lo = do2(low, VYRE__LOW_ADD, a.lo, b.lo);
  vyre__val more = carry(low, test(low, VYRE__LOW_LT_U, lo, a.lo));
  vyre__val hi = do2(low, VYRE__LOW_ADD, a.hi, b.hi);
  return join(low, lo, do2(low, VYRE__LOW_ADD, hi, more));
}

static vyre__val subtract(vyre__low *low, pair a, pair b) {
  vyre__val less = carry(low, test(low, VYRE__LOW_LT_U, a.lo, b.lo));
  vyre__val lo = do2(low, VYRE__LOW_SUB, a.lo, b.lo);
  vyre__val hi = do2(low, VYRE__LOW_SUB, a.hi, b.hi);
  return join(low, lo, do2(low, VYRE__LOW_SUB, hi, less));
}

static vyre__val soft(vyre__low *low, const char *name, pair a, pair b) {
  return vyre__soft_call(low, name, a.lo, a.hi, b.lo, b.hi);
}

/* Each half by a function of its own. */
static vyre__val soft_pair(vyre__low *low, const char *lo_name,
                           const char *hi_name, pair a, pair b) {
  vyre__val lo = soft(low, lo_name, a, b), hi = soft(low, hi_name, a, b);
  return join(low, lo, hi);
}

static vyre__val multiply(vyre__low *low, pair a, pair b) {
  uint64_t x, y;
  if (vyre__low_known(low, a.hi, &x) && vyre__low_known(low, b.hi, &y) &&
      x == 0 && y == 0) {
    vyre__val lo = do2(low, VYRE__LOW_MUL, a.lo, b.lo);
    return join(low, lo, vyre__soft_call(low, "wide_mul_hi", a.lo, b.lo, 0, 0));
  }
  return soft_pair(low, "w_mul_lo", "w_mul_hi", a, b);
}

static vyre__val choose(vyre__low *low, vyre__val condition, pair yes,
                        pair no) {
  vyre__val lo = vyre__low_do(low, VYRE__LOW_SELECT, VYRE_TYPE_U32, condition,
                              yes.lo, no.lo);
  vyre__val hi = vyre__low_do(low, VYRE__LOW_SELECT, VYRE_TYPE_U32, condition,
                              yes.hi, no.hi);
  return join(low, lo, hi);
}

static vyre__val less(vyre__low *low, pair a, pair b, bool is_signed) {
  return soft(low, is_signed ? "w_slt" : "w_lt", a, b);
}

static vyre__val shift(vyre__low *low, vyre__low_op op, pair a,
                       vyre__val count) {
  const char *lo = "w_shl_lo", *hi = "w_shl_hi";
  if (op == VYRE__LOW_SHR_U) lo = "w_shr_lo", hi = "w_shr_hi";
  if (op == VYRE__LOW_SHR_S) lo = "w_sar_lo", hi = "w_sar_hi";
  return soft_pair(low, lo, hi, a, (pair){count, 0});
}

static pair negate_if(vyre__low *low, vyre__val condition, pair a) {
  vyre__val zero = u32(low, 0);
  pair minus = parts(low, subtract(low, (pair){zero, zero}, a));
  return parts(low, choose(low, condition, minus, a));
}

/* Of sizes; then the sign. The divisor is not 0. */
static vyre__val divide(vyre__low *low, vyre__low_op op, pair a, pair b) {
  bool is_rem = op == VYRE__LOW_REM_U || op == VYRE__LOW_REM_S;
  const char *lo = is_rem ? "w_rem_lo" : "w_div_lo";
  const char *hi = is_rem ? "w_rem_hi" : "w_div_hi";
  bool is_signed = op == VYRE__LOW_DIV_S || op == VYRE__LOW_REM_S;
  if (!is_signed) return soft_pair(low, lo, hi, a, b);
  vyre__val zero = u32(low, 0);
  vyre__val below_a = test(low, VYRE__LOW_LT_S, a.hi, zero);
  vyre__val below_b = test(low, VYRE__LOW_LT_S, b.hi, zero);
  pair x = negate_if(low, below_a, a), y = negate_if(low, below_b, b);
  pair out = parts(low, soft_pair(low, lo, hi, x, y));
  vyre__val below = below_a;
  if (!is_rem) {
    below =
        vyre__low_do(low, VYRE__LOW_XOR, VYRE_TYPE_BOOL, below_a, below_b, 0);
  }
  out = negate_if(low, below, out);
  return join(low, out.lo, out.hi);
}

static vyre__val count_bits(vyre__low *low, vyre__low_op op, pair a) {
  vyre__val zero = u32(low, 0), out;
  vyre__val lo = vyre__low_do(low, op, VYRE_TYPE_U32, a.lo, 0, 0);
  vyre__val hi = vyre__low_do(low, op, VYRE_TYPE_U32, a.hi, 0, 0);
  if (op == VYRE__LOW_POPCOUNT) {
    out = do2(low, VYRE__LOW_ADD, lo, hi);
  } else {
    bool leading = op == VYRE__LOW_CLZ;
    vyre__val first = leading ? a.hi : a.lo, near = leading ? hi : lo;
    vyre__val far = do2(low, VYRE__LOW_ADD, leading ? lo : hi, u32(low, 32));
    vyre__val none = test(low, VYRE__LOW_EQ, first, zero);
    out = vyre__low_do(low, VYRE__LOW_SELECT, VYRE_TYPE_U32, none, far, near);
  }
  return join(low, out, zero);
}

/* The same to each half; NOT takes no b. */
static vyre__val halves(vyre__low *low, vyre__low_op op, pair a, pair b) {
  vyre__val lo = do2(low, op, a.lo, b.lo), hi = do2(low, op, a.hi, b.hi);
  return join(low, lo, hi);
}

static vyre__val from_float(vyre__low *low, vyre__low_op op, vyre__val a) {
  vyre_type type = vyre__low_type_of(low, a);
  bool is_signed = op == VYRE__LOW_F_TO_S;
  if (type == VYRE_TYPE_F64) {
    return refuse(low, "64-bit integers for this operation");
  }
  if (type == VYRE_TYPE_F32) {
    a = vyre__low_do(low, VYRE__LOW_BITCAST, VYRE_TYPE_U32, a, 0, 0);
  }
  return soft_pair(low, is_signed ? "w_from_f32_signed_lo" : "w_from_f32_lo",
                   is_signed ? "w_from_f32_signed_hi" : "w_from_f32_hi",
                   (pair){a, 0}, (pair){0, 0});
}

/* Operations that give a u64. */
static vyre__val wide_value(vyre__low *low, const vyre__low_inst *inst) {
  vyre__low_op op = (vyre__low_op)inst->op;
  pair a = parts(low, inst->a), b = parts(low, inst->b);
  vyre__val first;
  switch (op) {
    case VYRE__LOW_CONST:
      first = u32(low, inst->c);
      return join(low, first, u32(low, inst->d));
    case VYRE__LOW_ADD:
      return add(low, a, b);
    case VYRE__LOW_SUB:
      return subtract(low, a, b);
    case VYRE__LOW_MUL:
      return multiply(low, a, b);
    case VYRE__LOW_DIV_U:
    case VYRE__LOW_DIV_S:
    case VYRE__LOW_REM_U:
    case VYRE__LOW_REM_S:
      return divide(low, op, a, b);
    case VYRE__LOW_AND:
    case VYRE__LOW_OR:
    case VYRE__LOW_XOR:
      return halves(low, op, a, b);
    case VYRE__LOW_NOT:
      return halves(low, op, a, (pair){0, 0});
    case VYRE__LOW_SHL:
    case VYRE__LOW_SHR_U:
    case VYRE__LOW_SHR_S:
      return shift(low, op, a, inst->b);
    case VYRE__LOW_CLZ:
    case VYRE__LOW_CTZ:
    case VYRE__LOW_POPCOUNT:
      return count_bits(low, op, a);
    case VYRE__LOW_MIN_U:
    case VYRE__LOW_MIN_S:
      return choose(low, less(low, a, b, op == VYRE__LOW_MIN_S), a, b);
    case VYRE__LOW_MAX_U:
    case VYRE__LOW_MAX_S:
      return choose(low, less(low, a, b, op == VYRE__LOW_MAX_S), b, a);
    case VYRE__LOW_SELECT:
      return choose(low, inst->a, b, parts(low, inst->c));
    case VYRE__LOW_ZEXT:
      first = inst->a;
      if (vyre__low_type_of(low, first) == VYRE_TYPE_BOOL) {
        first = vyre__low_do(low, op, VYRE_TYPE_U32, first, 0, 0);
      }
      return join(low, first, u32(low, 0));
    case VYRE__LOW_SEXT:
      return join(low, inst->a,
                  do2(low, VYRE__LOW_SHR_S, inst->a, u32(low, 31)));
    case VYRE__LOW_F_TO_U:
    case VYRE__LOW_F_TO_S:
      return from_float(low, op, inst->a);
    default:
      return refuse(low, "64-bit integers for this operation");
  }
}

/* Operations on u64 that give something else. */
static vyre__val wide_operand(vyre__low *low, const vyre__low_inst *inst) {
  vyre__low_op op = (vyre__low_op)inst->op;
  pair a = parts(low, inst->a), b = parts(low, inst->b);
  vyre__val x, y;
  switch (op) {
    case VYRE__LOW_EQ:
    case VYRE__LOW_NE:
      x = test(low, op, a.lo, b.lo);
      y = test(low, op, a.hi, b.hi);
      return vyre__low_do(low,
                          op == VYRE__LOW_EQ ? VYRE__LOW_AND : VYRE__LOW_OR,
                          VYRE_TYPE_BOOL, x, y, 0);
    case VYRE__LOW_LT_U:
    case VYRE__LOW_LT_S:
      return less(low, a, b, op == VYRE__LOW_LT_S);
    case VYRE__LOW_LE_U:
    case VYRE__LOW_LE_S:
      x = less(low, b, a, op == VYRE__LOW_LE_S);
      return vyre__low_do(low, VYRE__LOW_NOT, VYRE_TYPE_BOOL, x, 0, 0);
    case VYRE__LOW_TRUNC:
      return a.lo;
    case VYRE__LOW_U_TO_F:
    case VYRE__LOW_S_TO_F:
      if (inst->type == VYRE_TYPE_F64) {
        return refuse(low, "64-bit integers for this operation");
      }
      x = vyre__soft_call(
          low, op == VYRE__LOW_U_TO_F ? "w_to_f32" : "w_to_f32_signed", a.lo,
          a.hi, 0, 0);
      return vyre__low_do(low, VYRE__LOW_BITCAST, VYRE_TYPE_F32, x, 0, 0);
    default:
      return refuse(low, "64-bit integers for this operation");
  }
}

/* Twice an index that is in bounds still is 32 bits: a buffer of so many elements
 * that it would not be is refused, here where the program fixes its length, and
 * else by who binds it (vyre__low_buffer_fits). Where the access is not proven,
 * the index may be anything, but then nothing is touched. */
static vyre__val access_wide(vyre__low *low, const vyre__low_inst *inst) {
  vyre__low_inst part = *inst;
  vyre__val one = u32(low, 1);
  part.a = do2(low, VYRE__LOW_SHL, inst->a, one);
  vyre__val next = do2(low, VYRE__LOW_OR, part.a, one);
  if (inst->op == VYRE__LOW_LOAD) {
    part.type = VYRE_TYPE_U32;
    vyre__val lo = vyre__low_push(low, &part);
    part.a = next;
    return join(low, lo, vyre__low_push(low, &part));
  }
  if (inst->op != VYRE__LOW_STORE) return refuse(low, "64-bit atomics");
  pair value = parts(low, inst->b);
  part.b = value.lo;
  vyre__low_push(low, &part);
  part.a = next;
  part.b = value.hi;
  return vyre__low_push(low, &part);
}

static void refuse_buffer(vyre__low *low, size_t index) {
  const vyre__low_buffer *buffer = &low->buffers[index];
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
  return op >= VYRE__LOW_LOAD && op <= VYRE__LOW_ATOMIC_CAS;
}

static vyre__val memory_emit(vyre__low *low, const vyre__low_inst *given) {
  vyre__low_inst inst = *given;
  const vyre__low_info *info = &vyre__low_ops[inst.op];
  if (low->no_memory || low->code_failed != VYRE_OK) return 0;
  if (info->flags & VYRE__LOWF_HIGH) return vyre__numbers_emit(low, &inst);
  if (is_access(inst.op)) {
    unsigned unit = low->buffers[inst.aux].unit;
    if (low->target->no_u64 && unit == 8) return access_wide(low, &inst);
    if (low->target->no_narrow && unit < 4) {
      if (inst.op == VYRE__LOW_LOAD) return load_narrow(low, &inst, unit);
      store_narrow(low, &inst, unit);
      return 0;
    }
    return vyre__low_push(low, &inst);
  }
  if (low->target->no_u64) {
    if (inst.type == VYRE_TYPE_U64) return wide_value(low, &inst);
    unsigned k = inst.op == VYRE__LOW_SELECT ? 1 : 0;
    if (info->operands > k &&
        vyre__low_type_of(low, inst.v[k]) == VYRE_TYPE_U64) {
      return wide_operand(low, &inst);
    }
  }
  return vyre__numbers_emit(low, &inst);
}

void vyre__memory_pass(vyre__low *low, const vyre__low *from,
                       vyre_arena *scratch) {
  low->emit = memory_emit;
  low->shares_constants = true;
  low->splits_u64 = low->target->no_u64;
  vyre__low_rewrite(low, from, scratch);
  for (size_t i = 0; i < low->buffer_count && !low->no_memory; i++) {
    vyre__low_buffer *buffer = &low->buffers[i];
    if ((low->target->no_u64 && buffer->width == 8) ||
        (low->target->no_narrow && buffer->width < 4)) {
      buffer->width = 4;
    }
    if (!vyre__low_buffer_fits(buffer, buffer->count)) refuse_buffer(low, i);
  }
}
