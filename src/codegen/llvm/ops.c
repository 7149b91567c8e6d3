/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pure operations on scalars or vectors, one line or a few each. */
#include <stddef.h>

#include "codegen/llvm/internal.h"

/* Translation of an operation. */
typedef enum translation {
  PRINT_NOT_SUPPORTED,
  PRINT_BINARY,   /* add T a, b */
  PRINT_FLOAT,    /* the same, with the flags of relaxed kernels */
  PRINT_COMPARE,  /* icmp eq T a, b */
  PRINT_SHIFT,    /* shift by a u32 */
  PRINT_DIVISION, /* inactive lanes may have any divisor */
  PRINT_CAST,     /* zext T a to U */
  PRINT_TO_INT,   /* a cast that is not defined for every float */
  PRINT_CALL,     /* call T @llvm.NAME.T(T a ..) */
  PRINT_COUNT,    /* the same with a final `false` */
  PRINT_OTHER,
} translation;

typedef struct word {
  uint8_t how;
  const char *text;
} word;

static const word words[VYRE__LIR_COUNT] = {
    [VYRE__LIR_ADD] = {PRINT_BINARY, "add"},
    [VYRE__LIR_SUB] = {PRINT_BINARY, "sub"},
    [VYRE__LIR_MUL] = {PRINT_BINARY, "mul"},
    [VYRE__LIR_AND] = {PRINT_BINARY, "and"},
    [VYRE__LIR_OR] = {PRINT_BINARY, "or"},
    [VYRE__LIR_XOR] = {PRINT_BINARY, "xor"},
    [VYRE__LIR_DIV_U] = {PRINT_DIVISION, "udiv"},
    [VYRE__LIR_DIV_S] = {PRINT_DIVISION, "sdiv"},
    [VYRE__LIR_REM_U] = {PRINT_DIVISION, "urem"},
    [VYRE__LIR_REM_S] = {PRINT_DIVISION, "srem"},
    [VYRE__LIR_SHL] = {PRINT_SHIFT, "shl"},
    [VYRE__LIR_SHR_U] = {PRINT_SHIFT, "lshr"},
    [VYRE__LIR_SHR_S] = {PRINT_SHIFT, "ashr"},
    [VYRE__LIR_CLZ] = {PRINT_COUNT, "ctlz"},
    [VYRE__LIR_CTZ] = {PRINT_COUNT, "cttz"},
    [VYRE__LIR_POPCOUNT] = {PRINT_CALL, "ctpop"},
    [VYRE__LIR_MIN_U] = {PRINT_CALL, "umin"},
    [VYRE__LIR_MIN_S] = {PRINT_CALL, "smin"},
    [VYRE__LIR_MAX_U] = {PRINT_CALL, "umax"},
    [VYRE__LIR_MAX_S] = {PRINT_CALL, "smax"},
    [VYRE__LIR_EQ] = {PRINT_COMPARE, "icmp eq"},
    [VYRE__LIR_NE] = {PRINT_COMPARE, "icmp ne"},
    [VYRE__LIR_LT_U] = {PRINT_COMPARE, "icmp ult"},
    [VYRE__LIR_LT_S] = {PRINT_COMPARE, "icmp slt"},
    [VYRE__LIR_LE_U] = {PRINT_COMPARE, "icmp ule"},
    [VYRE__LIR_LE_S] = {PRINT_COMPARE, "icmp sle"},
    [VYRE__LIR_FEQ] = {PRINT_COMPARE, "fcmp oeq"},
    [VYRE__LIR_FNE] = {PRINT_COMPARE, "fcmp une"},
    [VYRE__LIR_FLT] = {PRINT_COMPARE, "fcmp olt"},
    [VYRE__LIR_FLE] = {PRINT_COMPARE, "fcmp ole"},
    [VYRE__LIR_FADD] = {PRINT_FLOAT, "fadd"},
    [VYRE__LIR_FSUB] = {PRINT_FLOAT, "fsub"},
    [VYRE__LIR_FMUL] = {PRINT_FLOAT, "fmul"},
    [VYRE__LIR_FDIV] = {PRINT_BINARY, "fdiv"},
    [VYRE__LIR_FSQRT] = {PRINT_CALL, "sqrt"},
    [VYRE__LIR_FMA] = {PRINT_CALL, "fma"},
    [VYRE__LIR_FABS] = {PRINT_CALL, "fabs"},
    [VYRE__LIR_FFLOOR] = {PRINT_CALL, "floor"},
    [VYRE__LIR_FCEIL] = {PRINT_CALL, "ceil"},
    [VYRE__LIR_FTRUNC] = {PRINT_CALL, "trunc"},
    [VYRE__LIR_FRINT] = {PRINT_CALL, "rint"},
    [VYRE__LIR_ZEXT] = {PRINT_CAST, "zext"},
    [VYRE__LIR_SEXT] = {PRINT_CAST, "sext"},
    [VYRE__LIR_TRUNC] = {PRINT_CAST, "trunc"},
    [VYRE__LIR_BITCAST] = {PRINT_CAST, "bitcast"},
    [VYRE__LIR_U_TO_F] = {PRINT_CAST, "uitofp"},
    [VYRE__LIR_S_TO_F] = {PRINT_CAST, "sitofp"},
    [VYRE__LIR_F_TO_U] = {PRINT_TO_INT, "fptoui"},
    [VYRE__LIR_F_TO_S] = {PRINT_TO_INT, "fptosi"},
    [VYRE__LIR_F_EXTEND] = {PRINT_CAST, "fpext"},
    [VYRE__LIR_F_ROUND] = {PRINT_CAST, "fptrunc"},
    [VYRE__LIR_NOT] = {PRINT_OTHER, NULL},
    [VYRE__LIR_SELECT] = {PRINT_OTHER, NULL},
    [VYRE__LIR_AGREE] = {PRINT_OTHER, NULL},
    [VYRE__LIR_FNEG] = {PRINT_OTHER, NULL},
};

/* Suffixes of intrinsic names. */
static const char *const suffixes[LL_TYPES] = {"i1",  "i8",  "i16", "i32",
                                               "i64", "f32", "f64", "p0"};

static void put_suffix(ll *e, unsigned type) {
  if (type & LL_VEC && e->width > 1) ll_print(e, "v%u", e->width);
  ll_print(e, "%s", suffixes[type & LL_NARROW_MASK]);
}

static ll_op call(ll *e, const char *name, unsigned type, const ll_op *args,
                  unsigned count, bool counts) {
  ll_op op = {.kind = LL_TEMP, .id = e->temps++};
  ll_print(e, " %v = call %t @llvm.%s.", type, op, type, name);
  put_suffix(e, type);
  for (unsigned i = 0; i < count; i++) {
    ll_print(e, "%s%o", i ? ", " : "(", type, args[i]);
  }
  ll_print(e, counts ? ", i1 false)\n" : ")\n");
  return op;
}

/* Returns true if inactive lanes take part in an operation. */
static bool has_idle(const ll *e, unsigned type) {
  return (type & LL_VEC) && e->width > 1 && !ll_is_all_on(e);
}

/* Inactive lanes divide by one. */
static ll_op divisor(ll *e, unsigned type, ll_op b) {
  bool wide = (type & LL_NARROW_MASK) == LL_I64;
  uint64_t ones = wide ? UINT64_MAX : UINT32_MAX;
  if (!has_idle(e, type)) return b;
  if (b.kind == LL_CONST && b.bits != ones) return b;
  return ll_def(e, "select %o, %o, %o", LL_I1 | LL_VEC, ll_mask_bits(e), type,
                b, type, ll_const(1));
}

static ll_op shift(ll *e, const char *name, unsigned type, const ll_op *args) {
  unsigned vector = type & LL_VEC;
  ll_op by = args[1];
  if ((type & LL_NARROW_MASK) == LL_I64 && by.kind != LL_CONST) {
    by = ll_def(e, "zext %o to %t", LL_I32 | vector, by, type);
  }
  ll_op op = ll_def(e, "%s %o, %v", name, type, args[0], type, by);
  /* Inactive lanes may shift by any number, and hoisted values of the
   * workgroup may be unused, so the shift count is masked. */
  if (by.kind != LL_CONST &&
      (has_idle(e, type) || !e->subregion || e->is_speculated)) {
    op = ll_def(e, "freeze %o", type, op);
  }
  return op;
}

static ll_op other(ll *e, const vyre__lir_inst *inst, unsigned vector,
                   const ll_op *args) {
  unsigned type = ll_type(inst->type) | vector;
  bool wide = inst->type == VYRE_TYPE_U64;
  switch (inst->op) {
    case VYRE__LIR_NOT:
      return ll_def(e, "xor %o, %v", type, args[0], type,
                    ll_const(inst->type == VYRE_TYPE_BOOL ? 1
                             : wide                       ? UINT64_MAX
                                                          : UINT32_MAX));
    case VYRE__LIR_FNEG:
      return ll_def(e, "fneg %o", type, args[0]);
    case VYRE__LIR_AGREE:
      return args[0];
    default: /* SELECT */
      return ll_def(e, "select %o, %o, %o", LL_I1 | vector, args[0], type,
                    args[1], type, args[2]);
  }
}

static ll_op divide(ll *e, vyre__val v, unsigned type, const ll_op *args) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  ll_op by = divisor(e, type, args[1]), uniform = {0};
  if (e->width == 1 || type != (LL_I32 | LL_VEC) || by.kind == LL_CONST) {
    return ll_def(e, "%s %o, %v", words[inst->op].text, type, args[0], type,
                  by);
  }
  if (ll_is_scalar(e, inst->b)) uniform = ll_scalar(e, inst->b);
  return ll_divide(e, inst->op, args[0], by, uniform);
}

static ll_op print_op(ll *e, vyre__val v, unsigned vector, const ll_op *args) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  const word *w = &words[inst->op];
  unsigned type = ll_type(inst->type) | vector;
  unsigned from = ll_type_of(e, inst->a) | vector;
  ll_op op;
  switch (w->how) {
    case PRINT_BINARY:
      return ll_def(e, "%s %o, %v", w->text, type, args[0], type, args[1]);
    case PRINT_FLOAT:
      return ll_def(e, "%s%s %o, %v", w->text,
                    e->options->is_relaxed ? " contract" : "", type, args[0],
                    type, args[1]);
    case PRINT_COMPARE:
      return ll_def(e, "%s %o, %v", w->text, from, args[0], from, args[1]);
    case PRINT_DIVISION:
      return divide(e, v, type, args);
    case PRINT_SHIFT:
      return shift(e, w->text, type, args);
    case PRINT_CAST:
      if (from == type) return args[0];
      return ll_def(e, "%s %o to %t", w->text, from, args[0], type);
    case PRINT_TO_INT:
      op = ll_def(e, "%s %o to %t", w->text, from, args[0], type);
      if (!has_idle(e, type) && !e->is_speculated) return op;
      return ll_def(e, "freeze %o", type, op);
    case PRINT_CALL:
      return call(e, w->text, type, args, vyre__lir_ops[inst->op].operands,
                  false);
    case PRINT_COUNT:
      return call(e, w->text, type, args, 1, true);
    case PRINT_OTHER:
      return other(e, inst, vector, args);
    default:
      e->refused = (vyre__lir_op)inst->op;
      return args[0];
  }
}

/* Folds a constant. Floats are left to LLVM. */
static bool fold(ll *e, vyre__val v, const ll_op *args, unsigned count,
                 ll_op *out) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  uint64_t numbers[3] = {0, 0, 0};
  if (count > 3 || inst->type == VYRE_TYPE_F32 || inst->type == VYRE_TYPE_F64) {
    return false;
  }
  for (unsigned i = 0; i < count; i++) {
    uint8_t type = ll_inst(e, inst->v[i])->type;
    if (args[i].kind != LL_CONST || type == VYRE_TYPE_F32 ||
        type == VYRE_TYPE_F64) {
      return false;
    }
    numbers[i] = args[i].bits;
  }
  bool divides = inst->op >= VYRE__LIR_DIV_U && inst->op <= VYRE__LIR_REM_S;
  bool shifts = inst->op >= VYRE__LIR_SHL && inst->op <= VYRE__LIR_SHR_S;
  if (divides && (numbers[1] == 0 || numbers[1] >= UINT32_MAX)) return false;
  if (shifts && numbers[1] >= 32) return false;
  vyre__val first = inst->op == VYRE__LIR_SELECT ? inst->b : inst->a;
  *out = (ll_op){.kind = LL_CONST};
  return vyre__lir_eval((vyre__lir_op)inst->op,
                        (vyre_type)ll_inst(e, first)->type,
                        (vyre_type)inst->type, numbers, &out->bits);
}

/* --- narrow integers ---------------------------------------------------------------*/

static bool compares(uint8_t op) {
  return op >= VYRE__LIR_EQ && op <= VYRE__LIR_LE_S;
}

/* Emits an operation on vectors of 8- or 16-bit integers. */
static void narrow_pure(ll *e, vyre__val v, const vyre__narrow *n) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  const word *w = &words[inst->op];
  unsigned type = ll_memory_type(n->op_bytes) | LL_VEC;
  if (n->same) {
    ll_give_narrow(e, v, n->bytes, ll_narrow_vector(e, n->same, n->op_bytes));
    return;
  }
  bool selects = inst->op == VYRE__LIR_SELECT;
  ll_op args[2] = {
      ll_narrow_vector(e, selects ? inst->b : inst->a, n->op_bytes),
      ll_narrow_vector(e, selects ? inst->c : inst->b, n->op_bytes)};
  ll_op op;
  if (selects) {
    op = ll_def(e, "select %o, %o, %o", LL_I1 | LL_VEC, ll_vector(e, inst->a),
                type, args[0], type, args[1]);
  } else if (w->how == PRINT_CALL) {
    op = call(e, w->text, type, args, 2, false);
  } else {
    op = ll_def(e, "%s %o, %v", w->text, type, args[0], type, args[1]);
  }
  if (compares(inst->op)) {
    ll_give(e, v, LL_VECTOR, op);
  } else {
    ll_give_narrow(e, v, n->bytes, op);
  }
}

/* --- linear values ---------------------------------------------------------------*/

void ll_give_operand(ll *e, vyre__val v, vyre__val operand) {
  ll_rep rep = *ll_value(e, operand);
  if (rep.form == LL_VECTOR) rep.v = ll_vector(e, operand);
  ll_give(e, v, rep.form, rep.form == LL_VECTOR ? rep.v : rep.s);
  e->reps[v - e->s->r.begin].stride = rep.stride;
}

/* Returns true in code that knows the result of clamps: the full range of a
 * row, and the computation of that range. */
static bool knows_clamps(const ll *e) {
  if (e->row) return true;
  return e->range && e->range->range == VYRE__RANGE_FULL && e->range->known;
}

/* Returns the operand that equals @p v in the range of this code, or 0. */
static vyre__val known_operand(const ll *e, vyre__val v) {
  if (e->row || !knows_clamps(e)) return 0;
  uint8_t known = e->range->known[v - e->s->r.begin];
  return known >= VYRE__KNOWN_A ? ll_inst(e, v)->v[known - VYRE__KNOWN_A] : 0;
}

/* Returns the factor by which @p inst multiplies its operand @p *of; 0: it does
 * not, or the factor is not known here. */
static uint64_t factor_of(ll *e, const vyre__lir_inst *inst, vyre__val *of) {
  const ll_rep *a = ll_value(e, inst->a), *b = ll_value(e, inst->b);
  bool is_left = a->form == LL_SCALAR && a->s.kind == LL_CONST;
  bool is_right = b->form == LL_SCALAR && b->s.kind == LL_CONST;
  *of = is_right ? inst->a : inst->b;
  if (inst->op == VYRE__LIR_SHL) {
    return is_right ? UINT64_C(1) << (b->s.bits & 31) : 0;
  }
  if (inst->op != VYRE__LIR_MUL || (!is_left && !is_right)) return 0;
  return is_right ? b->s.bits : a->s.bits;
}

/* Finds the representation of a value that is linear here, but not everywhere:
 * without clamps, or where a number of the workgroup is a constant. */
static uint8_t form_here(ll *e, vyre__val v, uint64_t *stride) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  unsigned count = vyre__lir_ops[inst->op].operands;
  uint64_t strides[3] = {0};
  bool is_scalar = true;
  bool adds = inst->op == VYRE__LIR_ADD || inst->op == VYRE__LIR_SUB;
  bool multiplies = inst->op == VYRE__LIR_MUL || inst->op == VYRE__LIR_SHL;
  if (count > 3 || !(knows_clamps(e) || adds || multiplies)) return LL_VECTOR;
  for (unsigned i = 0; i < count; i++) {
    const ll_rep *rep = ll_value(e, inst->v[i]);
    if (rep->form == LL_VECTOR) return LL_VECTOR;
    if (rep->form == LL_LINEAR) strides[i] = rep->stride, is_scalar = false;
  }
  if (is_scalar) return LL_SCALAR;
  if (inst->type != VYRE_TYPE_U32) return LL_VECTOR;
  if (multiplies) {
    vyre__val of;
    uint64_t factor = factor_of(e, inst, &of);
    if (!factor) return LL_VECTOR;
    *stride = factor * ll_value(e, of)->stride;
  } else if (adds) {
    *stride = inst->op == VYRE__LIR_ADD ? strides[0] + strides[1]
                                        : strides[0] - strides[1];
  } else {
    return LL_VECTOR;
  }
  *stride &= UINT32_MAX;
  return *stride ? LL_LINEAR : LL_SCALAR;
}

void ll_pure(ll *e, vyre__val v) {
  const vyre__lir_inst *inst = ll_inst(e, v);
  unsigned count = vyre__lir_ops[inst->op].operands;
  ll_op args[4] = {{0}};
  uint8_t kind = ll_shape(e, v).kind;
  uint64_t stride = 0;
  if (known_operand(e, v)) {
    ll_give_operand(e, v, known_operand(e, v));
    return;
  }
  if (e->width > 1 && e->subregion && kind == VYRE__LANE_SHAPE_VARYING) {
    uint8_t form = form_here(e, v, &stride);
    if (form == LL_SCALAR) kind = VYRE__LANE_SHAPE_VECTOR;
    if (form == LL_LINEAR) kind = VYRE__LANE_SHAPE_LINEAR;
  }
  bool is_scalar =
      e->width == 1 || !e->subregion || kind < VYRE__LANE_SHAPE_LINEAR;
  bool is_linear = !is_scalar && kind == VYRE__LANE_SHAPE_LINEAR;
  bool has_vector = false;
  for (unsigned i = 0; i < count; i++) {
    has_vector |= ll_value(e, inst->v[i])->form == LL_VECTOR;
  }
  if (has_vector && e->width > 1) is_scalar = is_linear = false;
  if (!is_scalar && !is_linear && ll_narrow_of(e, v)->op_bytes) {
    narrow_pure(e, v, ll_narrow_of(e, v));
    return;
  }
  for (unsigned i = 0; i < count; i++) {
    args[i] = is_scalar || is_linear ? ll_scalar(e, inst->v[i])
                                     : ll_vector(e, inst->v[i]);
  }
  unsigned vector = is_scalar || is_linear ? 0 : LL_VEC;
  ll_op op;
  if (vector || !fold(e, v, args, count, &op)) {
    op = print_op(e, v, vector, args);
  }
  ll_give(e, v, is_scalar ? LL_SCALAR : is_linear ? LL_LINEAR : LL_VECTOR, op);
  if (stride) e->reps[v - e->s->r.begin].stride = stride;
}

void ll_agree(ll *e, vyre__val v) {
  const ll_rep *rep = ll_value(e, v);
  if (rep->form != LL_VECTOR || e->width == 1) return;
  if (ll_shape(e, v).kind >= VYRE__LANE_SHAPE_LINEAR) return;
  ll_give(e, v, LL_SCALAR, ll_scalar(e, v));
}
