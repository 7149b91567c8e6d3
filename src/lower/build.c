/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lower/build.h"

#include "analyze/walk.h"
#include "base/status.h"
#include "lower/build_internal.h"

static bool is_signed(unsigned type) {
  return type == VYRE_TYPE_I32 || type == VYRE_TYPE_I64;
}

void build_reject(build *b, vyre__id id, const char *feature) {
  vyre__lir_writer *lir = b->lir;
  if (lir->code_failed != VYRE_OK) return;
  lir->code_failed =
      VYRE_FAIL(lir->st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                "run the kernel on device 'ref', or remove the statement",
                "%s:%u: %s cannot be compiled for a device", b->program->file,
                vyre__source_loc_of(b->program, id).line, feature);
}

/* --- operations ----------------------------------------------------------- */

/* Uses lir->emit, which may represent floats as bits. */
static vyre__val constant(vyre__lir_writer *lir, vyre_type type,
                          uint64_t bits) {
  return lir->emit(lir, &(vyre__lir_inst){.op = VYRE__LIR_CONST,
                                          .type = (uint8_t)type,
                                          .c = (uint32_t)bits,
                                          .d = (uint32_t)(bits >> 32)});
}

static vyre__val sign_of_integer(vyre__lir_writer *lir, vyre_type type,
                                 vyre__val a) {
  vyre__val zero = vyre__lir_bits(lir, type, 0);
  vyre__val up = vyre__lir_do(lir, VYRE__LIR_LT_S, VYRE_TYPE_BOOL, zero, a, 0);
  vyre__val down =
      vyre__lir_do(lir, VYRE__LIR_LT_S, VYRE_TYPE_BOOL, a, zero, 0);
  up = vyre__lir_do(lir, VYRE__LIR_ZEXT, type, up, 0, 0);
  down = vyre__lir_do(lir, VYRE__LIR_ZEXT, type, down, 0, 0);
  return vyre__lir_do(lir, VYRE__LIR_SUB, type, up, down, 0);
}

static vyre__val negate(vyre__lir_writer *lir, vyre_type type, vyre__val a) {
  vyre__val zero = vyre__lir_bits(lir, type, 0);
  return vyre__lir_do(lir, VYRE__LIR_SUB, type, zero, a, 0);
}

static vyre__val bitcast(vyre__lir_writer *lir, vyre_type from, vyre_type to,
                         vyre__val a) {
  vyre_type type = vyre__lir_type(to);
  if (vyre__is_float(from)) {
    vyre_type bits = from == VYRE_TYPE_F32 ? VYRE_TYPE_U32 : VYRE_TYPE_U64;
    a = vyre__lir_do(lir, VYRE__LIR_FBITS, bits, a, 0, 0);
  }
  return vyre__is_float(to)
             ? vyre__lir_do(lir, VYRE__LIR_BITCAST, type, a, 0, 0)
             : a;
}

vyre__val vyre__build_cast(vyre__lir_writer *lir, vyre_type from, vyre_type to,
                           vyre__val a) {
  vyre_type type = vyre__lir_type(to), plain = vyre__lir_type(from);
  if (from == to) return a;
  if (to == VYRE_TYPE_BOOL) {
    vyre__val zero = vyre__lir_bits(lir, plain, 0);
    return vyre__lir_do(lir,
                        vyre__is_float(from) ? VYRE__LIR_FNE : VYRE__LIR_NE,
                        type, a, zero, 0);
  }
  if (from == VYRE_TYPE_BOOL) {
    if (!vyre__is_float(to))
      return vyre__lir_do(lir, VYRE__LIR_ZEXT, type, a, 0, 0);
    uint64_t one = to == VYRE_TYPE_F32 ? 0x3F800000 : 0x3FF0000000000000;
    vyre__val yes = constant(lir, type, one), no = constant(lir, type, 0);
    return vyre__lir_do(lir, VYRE__LIR_SELECT, type, a, yes, no);
  }
  if (vyre__is_float(from) && vyre__is_float(to)) {
    return vyre__lir_do(
        lir, to == VYRE_TYPE_F64 ? VYRE__LIR_F_EXTEND : VYRE__LIR_F_ROUND, type,
        a, 0, 0);
  }
  if (vyre__is_float(from)) {
    return vyre__lir_do(
        lir, is_signed(to) ? VYRE__LIR_SATURATE_S : VYRE__LIR_SATURATE_U, type,
        a, 0, 0);
  }
  if (vyre__is_float(to)) {
    return vyre__lir_do(lir,
                        is_signed(from) ? VYRE__LIR_S_TO_F : VYRE__LIR_U_TO_F,
                        type, a, 0, 0);
  }
  if (type == plain) return a;
  if (type == VYRE_TYPE_U32) {
    return vyre__lir_do(lir, VYRE__LIR_TRUNC, type, a, 0, 0);
  }
  return vyre__lir_do(lir, is_signed(from) ? VYRE__LIR_SEXT : VYRE__LIR_ZEXT,
                      type, a, 0, 0);
}

/* LIR operation for unsigned integers, signed integers and floats; NONE if it
 * takes more than one. swap: the operands are exchanged. */
typedef struct row {
  uint8_t u, s, f;
  bool swap;
} row;

#define ROW(u, s, f)     {VYRE__LIR_##u, VYRE__LIR_##s, VYRE__LIR_##f, false}
#define SWAPPED(u, s, f) {VYRE__LIR_##u, VYRE__LIR_##s, VYRE__LIR_##f, true}

static const row rows[VYRE__OP_COUNT] = {
    [VYRE__OP_NEG] = ROW(NONE, NONE, FNEG),
    [VYRE__OP_NOT] = ROW(NOT, NOT, NONE),
    [VYRE__OP_BIT_NOT] = ROW(NOT, NOT, NONE),
    [VYRE__OP_ABS] = ROW(NONE, NONE, FABS),
    [VYRE__OP_SIGN] = ROW(NONE, NONE, FSIGN),
    [VYRE__OP_FLOOR] = ROW(NONE, NONE, FFLOOR),
    [VYRE__OP_CEIL] = ROW(NONE, NONE, FCEIL),
    [VYRE__OP_TRUNC] = ROW(NONE, NONE, FTRUNC),
    [VYRE__OP_ROUND] = ROW(NONE, NONE, FROUND),
    [VYRE__OP_RINT] = ROW(NONE, NONE, FRINT),
    [VYRE__OP_SQRT] = ROW(NONE, NONE, FSQRT),
    [VYRE__OP_CLZ] = ROW(CLZ, CLZ, NONE),
    [VYRE__OP_CTZ] = ROW(CTZ, CTZ, NONE),
    [VYRE__OP_POPCOUNT] = ROW(POPCOUNT, POPCOUNT, NONE),
    [VYRE__OP_ADD] = ROW(ADD, ADD, FADD),
    [VYRE__OP_SUB] = ROW(SUB, SUB, FSUB),
    [VYRE__OP_MUL] = ROW(MUL, MUL, FMUL),
    [VYRE__OP_DIV] = ROW(TOTAL_DIV_U, TOTAL_DIV_S, FDIV),
    [VYRE__OP_REM] = ROW(TOTAL_REM_U, TOTAL_REM_S, NONE),
    [VYRE__OP_AND] = ROW(AND, AND, NONE),
    [VYRE__OP_OR] = ROW(OR, OR, NONE),
    [VYRE__OP_XOR] = ROW(XOR, XOR, NONE),
    [VYRE__OP_SHL] = ROW(TOTAL_SHL, TOTAL_SHL, NONE),
    [VYRE__OP_SHR] = ROW(TOTAL_SHR_U, TOTAL_SHR_S, NONE),
    [VYRE__OP_MIN] = ROW(MIN_U, MIN_S, FMIN),
    [VYRE__OP_MAX] = ROW(MAX_U, MAX_S, FMAX),
    [VYRE__OP_EQ] = ROW(EQ, EQ, FEQ),
    [VYRE__OP_NE] = ROW(NE, NE, FNE),
    [VYRE__OP_LT] = ROW(LT_U, LT_S, FLT),
    [VYRE__OP_LE] = ROW(LE_U, LE_S, FLE),
    [VYRE__OP_GT] = SWAPPED(LT_U, LT_S, FLT),
    [VYRE__OP_GE] = SWAPPED(LE_U, LE_S, FLE),
    [VYRE__OP_ATOMIC_ADD] = ROW(ATOMIC_ADD, ATOMIC_ADD, NONE),
    [VYRE__OP_ATOMIC_MIN] = ROW(ATOMIC_MIN_U, ATOMIC_MIN_S, NONE),
    [VYRE__OP_ATOMIC_MAX] = ROW(ATOMIC_MAX_U, ATOMIC_MAX_S, NONE),
    [VYRE__OP_ATOMIC_AND] = ROW(ATOMIC_AND, ATOMIC_AND, NONE),
    [VYRE__OP_ATOMIC_OR] = ROW(ATOMIC_OR, ATOMIC_OR, NONE),
    [VYRE__OP_ATOMIC_XOR] = ROW(ATOMIC_XOR, ATOMIC_XOR, NONE),
    [VYRE__OP_ATOMIC_EXCHANGE] = ROW(ATOMIC_EXCHANGE, ATOMIC_EXCHANGE, NONE),
    [VYRE__OP_ATOMIC_CAS] = ROW(ATOMIC_CAS, ATOMIC_CAS, NONE),
};

vyre__lir_op build_operation(vyre__op op, unsigned type) {
  const row *r = &rows[op];
  uint8_t found = vyre__is_float(type) ? r->f : is_signed(type) ? r->s : r->u;
  return (vyre__lir_op)found;
}

/* Builds a math function; @p b is 0 for a function of one operand. */
static vyre__val math(vyre__lir_writer *lir, const vyre__node *node,
                      vyre_type type, vyre__val a, vyre__val b) {
  return lir->emit(lir, &(vyre__lir_inst){.op = VYRE__LIR_MATH,
                                          .type = (uint8_t)type,
                                          .aux = node->op,
                                          .a = a,
                                          .b = b});
}

static vyre__val unary(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *lir = b->lir;
  vyre_type from = (vyre_type)node_of(b, node->a)->type;
  vyre_type type = vyre__lir_type((vyre_type)node->type);
  if (node->op == VYRE__OP_UNIFORM) return build_uniform(b, id);
  vyre__val a = build_value(b, node->a);
  vyre__lir_op op = build_operation((vyre__op)node->op, from);
  if (op != VYRE__LIR_NONE) return vyre__lir_do(lir, op, type, a, 0, 0);
  if (vyre__op_is_math(node->op)) return math(lir, node, type, a, 0);
  if (vyre__op_is_soft(node->op)) return build_function1(lir, node, a);
  switch ((vyre__op)node->op) {
    case VYRE__OP_NEG:
      return negate(lir, type, a);
    case VYRE__OP_ABS:
      return vyre__lir_do(lir, VYRE__LIR_MAX_S, type, a, negate(lir, type, a),
                          0);
    case VYRE__OP_SIGN:
      return sign_of_integer(lir, type, a);
    case VYRE__OP_CAST:
      return vyre__build_cast(lir, from, (vyre_type)node->type, a);
    case VYRE__OP_BITCAST:
      return bitcast(lir, from, (vyre_type)node->type, a);
    default: /* PUSH */
      build_reject(b, id, vyre__ops[node->op].text);
      return vyre__lir_bits(lir, type, 0);
  }
}

/* Returns true for an element of a uniform at a valid constant index. Reading
 * it never fails. */
static bool is_uniform_element(const build *b, const vyre__node *node) {
  if (node->op != VYRE__OP_LOAD) return false;
  const vyre_buffer_decl *decl = &b->program->buffers[node->a];
  const vyre__node *index = node_of(b, node->b);
  return decl->kind == VYRE_MEMORY_UNIFORM && index->op == VYRE__OP_LITERAL &&
         vyre__literal(index) < decl->count;
}

/* Returns true if evaluating an expression early is cheap and has no effect: it
 * reads only uniforms and is small. */
static bool is_cheap(const build *b, vyre__id id, unsigned budget) {
  const vyre__node *node = node_of(b, id);
  if (is_uniform_element(b, node)) return true;
  if (budget == 0 || vyre__ops[node->op].flags || node->op == VYRE__OP_CALL ||
      vyre__op_is_math(node->op)) {
    return false;
  }
  uint32_t count = vyre__child_count(b->program, id);
  for (uint32_t i = 0; i < count; i++) {
    if (!is_cheap(b, vyre__child(b->program, id, i), budget - 1)) return false;
  }
  return true;
}

/* Builds && and ||. The right side is evaluated only if needed, unless it is
 * cheap and has no effect. Proofs about it hold only under that condition. */
static vyre__val logical(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *lir = b->lir;
  bool is_and = node->op == VYRE__OP_LAND;
  vyre__val a = build_value(b, node->a);
  uint64_t known;
  if (vyre__lir_is_constant(lir, a, &known)) {
    return (known != 0) == is_and ? build_value(b, node->b) : a;
  }
  if (is_cheap(b, node->b, 4)) {
    return vyre__lir_do(lir, is_and ? VYRE__LIR_AND : VYRE__LIR_OR,
                        VYRE_TYPE_BOOL, a, build_value(b, node->b), 0);
  }
  uint32_t var = vyre__lir_new_var(lir, "both", VYRE_TYPE_BOOL);
  vyre__lir_set(lir, var, a);
  if (!is_and) a = vyre__lir_do(lir, VYRE__LIR_NOT, VYRE_TYPE_BOOL, a, 0, 0);
  size_t begin = vyre__lir_if(lir, build_guard(b, id, a), 0);
  vyre__lir_set(lir, var, build_value(b, node->b));
  vyre__lir_end(lir, begin);
  return vyre__lir_get(lir, var);
}

static vyre__val binary(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *lir = b->lir;
  if (node->op == VYRE__OP_LAND || node->op == VYRE__OP_LOR) {
    return logical(b, id);
  }
  unsigned from = node_of(b, node->a)->type;
  vyre_type type = vyre__lir_type((vyre_type)node->type);
  vyre__val a = build_value(b, node->a), c = build_value(b, node->b);
  if (vyre__op_is_math(node->op)) return math(lir, node, type, a, c);
  if (vyre__op_is_soft(node->op)) {
    return build_function2(lir, node, (vyre_type)from, a, c);
  }
  bool swap = rows[node->op].swap;
  return vyre__lir_do(lir, build_operation((vyre__op)node->op, from), type,
                      swap ? c : a, swap ? a : c, 0);
}

/* Builds c ? x : y. Only the selected side is evaluated, unless both are cheap
 * and have no effect. */
static vyre__val conditional(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *lir = b->lir;
  vyre_type type = vyre__lir_type((vyre_type)node->type);
  vyre__val a = build_value(b, node->a);
  uint64_t known;
  if (vyre__lir_is_constant(lir, a, &known)) {
    return build_value(b, known ? node->b : node->c);
  }
  if (is_cheap(b, node->b, 4) && is_cheap(b, node->c, 4)) {
    vyre__val x = build_value(b, node->b), y = build_value(b, node->c);
    return vyre__lir_do(lir, VYRE__LIR_SELECT, type, a, x, y);
  }
  uint32_t var = vyre__lir_new_var(lir, "chosen", type);
  vyre__lir_set(lir, var, constant(lir, type, 0));
  size_t begin = vyre__lir_if(lir, build_guard(b, id, a), 0);
  vyre__lir_set(lir, var, build_value(b, node->b));
  vyre__lir_else(lir, begin);
  vyre__lir_set(lir, var, build_value(b, node->c));
  vyre__lir_end(lir, begin);
  return vyre__lir_get(lir, var);
}

static vyre__val ternary(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  if (node->op == VYRE__OP_COND) return conditional(b, id);
  vyre_type type = vyre__lir_type((vyre_type)node->type);
  vyre__val a = build_value(b, node->a);
  uint64_t known;
  /* Libraries select by constants. The other operand has no effect, so it is
   * not built. */
  if (b->is_library && node->op == VYRE__OP_SELECT &&
      vyre__lir_is_constant(b->lir, a, &known)) {
    return build_value(b, known ? node->b : node->c);
  }
  vyre__val second = build_value(b, node->b);
  if (node->op == VYRE__OP_INSERT) {
    const vyre__node *range = node_of(b, node->c);
    vyre__val from = build_value(b, range->a), n = build_value(b, range->b);
    return build_insert(b->lir, type, a, second, from, n);
  }
  vyre__val third = build_value(b, node->c);
  if (node->op >= VYRE__OP_CLAMP && node->op <= VYRE__OP_FRACT) {
    return build_function3(b->lir, node, a, second, third);
  }
  return vyre__lir_do(
      b->lir, node->op == VYRE__OP_FMA ? VYRE__LIR_FMA : VYRE__LIR_SELECT, type,
      a, second, third);
}

static vyre__val axis_value(build *b, const vyre__node *node) {
  vyre__lir_writer *lir = b->lir;
  unsigned axis = node->aux;
  vyre__lir_inst inst = {.type = VYRE_TYPE_U32, .aux = axis};
  if (node->op == VYRE__OP_WORKGROUP_SIZE) {
    return vyre__lir_bits(lir, VYRE_TYPE_U32, lir->workgroup[axis]);
  }
  if (node->op == VYRE__OP_WORKGROUP_ID || node->op == VYRE__OP_GRID_SIZE) {
    inst.op = node->op == VYRE__OP_GRID_SIZE ? VYRE__LIR_GRID_SIZE
                                             : VYRE__LIR_GROUP_ID;
    return lir->emit(lir, &inst);
  }
  vyre__val local;
  inst.op = VYRE__LIR_LOCAL_ID;
  if (lir->workgroup[axis] == 1) {
    local = vyre__lir_bits(lir, VYRE_TYPE_U32, 0);
  } else {
    local = lir->emit(lir, &inst);
  }
  if (node->op == VYRE__OP_LOCAL_ID) return local;
  inst.op = VYRE__LIR_GROUP_ID;
  vyre__val size = vyre__lir_bits(lir, VYRE_TYPE_U32, lir->workgroup[axis]);
  vyre__val first = vyre__lir_do(lir, VYRE__LIR_MUL, VYRE_TYPE_U32,
                                 lir->emit(lir, &inst), size, 0);
  return vyre__lir_do(lir, VYRE__LIR_ADD, VYRE_TYPE_U32, first, local, 0);
}

/* Returns `lane` or `subgroup_id`, from the number of the invocation. */
static vyre__val lane_value(build *b, vyre__op op) {
  vyre__lir_writer *lir = b->lir;
  const vyre_type u32 = VYRE_TYPE_U32;
  vyre__val number = 0;
  for (unsigned axis = 3; axis-- > 0;) {
    const uint32_t size = lir->workgroup[axis];
    if (number) {
      number = vyre__lir_do(lir, VYRE__LIR_MUL, u32, number,
                            vyre__lir_bits(lir, u32, size), 0);
    }
    if (size == 1) continue;
    vyre__val id = lir->emit(
        lir,
        &(vyre__lir_inst){.op = VYRE__LIR_LOCAL_ID, .type = u32, .aux = axis});
    number = number ? vyre__lir_do(lir, VYRE__LIR_ADD, u32, number, id, 0) : id;
  }
  if (op == VYRE__OP_LANE) {
    return vyre__lir_do(lir, VYRE__LIR_AND, u32, number,
                        vyre__lir_bits(lir, u32, VYRE__SUBGROUP - 1), 0);
  }
  return vyre__lir_do(lir, VYRE__LIR_SHR_U, u32, number,
                      vyre__lir_bits(lir, u32, VYRE__SUBGROUP_SHIFT), 0);
}

/* Expands a call inside a library. Calls of the program are inlined already. */
static vyre__val call(build *b, const vyre__node *node) {
  vyre__val arguments[VYRE__BUILD_ARGUMENTS];
  if (node->c > VYRE__BUILD_ARGUMENTS) {
    vyre__lir_library_too_large(b->lir, "arguments of one call", node->c,
                                VYRE__BUILD_ARGUMENTS);
    return 0;
  }
  for (uint32_t i = 0; i < node->c; i++) {
    arguments[i] = build_value(b, b->program->lists[node->b + i]);
  }
  return vyre__build_call(b->lir, b->program, &b->program->functions[node->a],
                          arguments, node->c);
}

vyre__val build_value(build *b, vyre__id id) {
  const vyre__node *node = node_of(b, id);
  vyre__lir_writer *lir = b->lir;
  if (lir->no_memory) return 0;
  lir->here = b->is_library ? lir->here : vyre__source_loc_of(b->program, id);
  switch ((vyre__form)vyre__ops[node->op].form) {
    case VYRE__FORM_LITERAL:
      return constant(lir, vyre__lir_type((vyre_type)node->type),
                      vyre__literal(node));
    case VYRE__FORM_LOCAL:
      if (!b->function->locals[node->a].is_mutable) return b->values[node->a];
      return vyre__lir_get(lir, b->values[node->a] - 1);
    case VYRE__FORM_CALL:
      return call(b, node);
    case VYRE__FORM_LOAD:
      return build_load(b, id);
    case VYRE__FORM_BUFFER:
      if (lir->buffers[node->a].count) {
        return vyre__lir_bits(lir, VYRE_TYPE_U32, lir->buffers[node->a].count);
      }
      return lir->emit(
          lir, &(vyre__lir_inst){
                   .op = VYRE__LIR_LEN, .type = VYRE_TYPE_U32, .aux = node->a});
    case VYRE__FORM_AXIS:
      return axis_value(b, node);
    case VYRE__FORM_NULLARY:
      if (vyre__op_is_lane(node->op)) return lane_value(b, node->op);
      build_reject(b, id, vyre__ops[node->op].text);
      return vyre__lir_bits(lir, VYRE_TYPE_U32, 0);
    case VYRE__FORM_UNARY:
      return unary(b, id);
    case VYRE__FORM_BINARY:
      return binary(b, id);
    case VYRE__FORM_TERNARY:
      return ternary(b, id);
    case VYRE__FORM_ATOMIC:
    case VYRE__FORM_ATOMIC2:
      return build_atomic(b, id);
    default:
      build_reject(b, id, vyre__ops[node->op].text);
      return vyre__lir_bits(lir, vyre__lir_type((vyre_type)node->type), 0);
  }
}
