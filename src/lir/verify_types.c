/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Verifies the types and the `aux` field of each instruction by the rules in
 * the column `types` of ops.def. */
#include "lir/verify_internal.h"

/* Sets of types. */
enum {
  NO = 0,
  B = 1 << VYRE_TYPE_BOOL,
  U32 = 1 << VYRE_TYPE_U32,
  U64 = 1 << VYRE_TYPE_U64,
  F32 = 1 << VYRE_TYPE_F32,
  F64 = 1 << VYRE_TYPE_F64,
  INT = U32 | U64,
  BITS = B | INT,
  FLOAT = F32 | F64,
  ANY = BITS | FLOAT,
};

/* Required equalities. */
enum {
  AB = 1,     /* b has the type of a */
  AC = 2,     /* c has the type of a */
  BC = 4,     /* c has the type of b */
  RA = 8,     /* the result has the type of a */
  RB = 16,    /* the result has the type of b */
  WIDTH = 32, /* the result has the width of a */
  WIDER = 64, /* the result is wider than a */
};

/* Meaning of aux, and further checks. */
enum {
  PLAIN,
  AXIS,
  BUFFER,
  GRID_LOOP,
  VARIABLE,
  LOOP,
  LOOP_NUMBER,
  ACCESS,
  BITS_FIT,
  FUNCTION,
};

typedef struct row {
  uint8_t operands[3]; /* sets of types of a, b, c; NO: no operand */
  uint8_t result;
  uint8_t agree, aux;
} row;

#define UNARY(set)         {{set, NO, NO}, set, RA, PLAIN}
#define BINARY(set)        {{set, set, NO}, set, AB | RA, PLAIN}
#define TERNARY(set)       {{set, set, set}, set, AB | AC | RA, PLAIN}
#define COMPARE(set)       {{set, set, NO}, B, AB, PLAIN}
#define SHIFT              {{INT, U32, NO}, INT, RA, PLAIN}
#define CONVERT(from, to)  {{from, NO, NO}, to, 0, PLAIN}
#define SPECIAL(set, kind) {{NO, NO, NO}, set, 0, kind}
#define MARKER             {{NO, NO, NO}, NO, 0, PLAIN}
#define ATOMIC             {{U32, INT, B}, INT, RB, ACCESS}
#define ATOMIC2            {{U32, INT, INT}, INT, BC | RB, ACCESS}
#define READ               {{U32, B, NO}, INT, 0, ACCESS}
#define WRITE              {{U32, INT, B}, NO, 0, ACCESS}
#define ASSIGN             {{ANY, NO, NO}, NO, 0, VARIABLE}
#define CHOOSE             {{B, ANY, ANY}, ANY, BC | RB, PLAIN}
#define EXTEND             {{B | U32, NO, NO}, INT, WIDER, PLAIN}
#define REINTERPRET        {{INT | FLOAT, NO, NO}, INT | FLOAT, WIDTH, PLAIN}
#define BITS_OF            {{FLOAT, NO, NO}, INT, WIDTH, PLAIN}
#define BRANCH             {{B, NO, NO}, NO, 0, PLAIN}
#define COUNT              {{U32, B, NO}, NO, 0, LOOP_NUMBER}
#define JOIN               {{U32, U32, NO}, U64, 0, PLAIN}
#define CALL               {{F32, F32, NO}, F32, 0, FUNCTION}

static const row rows[VYRE__LIR_COUNT] = {
/* `types` is an initializer. NOLINTBEGIN(bugprone-macro-parentheses) */
#define LIR(name, text, operands, flags, types, value) \
  [VYRE__LIR_##name] = types,
#include "lir/ops.def"
#undef LIR
    /* NOLINTEND(bugprone-macro-parentheses) */
};

static unsigned width_of(unsigned type) {
  if (type == VYRE_TYPE_BOOL) return 1;
  return type == VYRE_TYPE_U64 || type == VYRE_TYPE_F64 ? 64 : 32;
}

static bool has(unsigned set, unsigned type) {
  return type < 8 && (set >> type & 1) != 0;
}

bool vyre__verify_type(unsigned type) {
  return has(ANY, type);
}

/* Returns the operand index of an access condition; 4 without one. */
static unsigned condition_of(const vyre__lir_inst *inst) {
  return rows[inst->op].aux == ACCESS ? vyre__lir_ops[inst->op].operands - 1u
                                      : 4;
}

bool vyre__verify_may_lack(const vyre__lir_inst *inst, unsigned operand) {
  return operand == condition_of(inst) || inst->op == VYRE__LIR_TICK ||
         (inst->op == VYRE__LIR_MATH && operand == 1);
}

static unsigned type_of(const vyre__lir_kernel *k, vyre__val v) {
  return k->code[v].type;
}

static const char *check_access(const vyre__lir_kernel *k,
                                const vyre__lir_inst *inst) {
  if (inst->aux >= k->buffer_count) return "unknown buffer";
  const vyre__lir_buffer *b = &k->buffers[inst->aux];
  unsigned type = b->width == 8 ? VYRE_TYPE_U64 : VYRE_TYPE_U32;
  unsigned flags = vyre__lir_ops[inst->op].flags;
  vyre__val condition = inst->v[condition_of(inst)];
  if (condition && type_of(k, condition) != VYRE_TYPE_BOOL) {
    return "its condition is not a bool";
  }
  if (inst->op == VYRE__LIR_LOAD) {
    return inst->type == type ? NULL
                              : "its type is not that of the buffer's elements";
  }
  if (type_of(k, inst->b) != type) {
    return "the value's type is not that of the buffer's elements";
  }
  if (b->kind == VYRE_MEMORY_UNIFORM) return "it writes to a uniform buffer";
  if (!b->is_written) return "it writes to a buffer, but is_written is false";
  if (!(flags & VYRE__LIRF_ATOMICS)) return NULL;
  if (!b->is_atomic)
    return "it is atomic, but is_atomic of the buffer is false";
  if (b->width < 4) return "it is atomic on elements of less than 4 bytes";
  return NULL;
}

static const char *check_loop(const vyre__lir_kernel *k,
                              const vyre__lir_inst *inst) {
  if (inst->aux >= k->loop_count) return "unknown loop";
  const vyre__lir_loop *loop = &k->loops[inst->aux];
  if (!loop->is_counted) return NULL;
  if (loop->var >= k->var_count) return "unknown variable";
  unsigned type = k->vars[loop->var].type;
  if (!has(INT, type)) return "its variable is not an integer";
  if (loop->kind > VYRE__LOOP_GE) return "unknown kind";
  if (loop->step == 0) return "its step is 0";
  /* first and bound were checked as operands: they are earlier instructions. */
  if (type_of(k, loop->first) != type || type_of(k, loop->bound) != type) {
    return "first or bound does not have the variable's type";
  }
  if (!loop->high_var) return NULL;
  if (loop->high_var >= k->var_count)
    return "unknown variable for its upper half";
  if (type != VYRE_TYPE_U32 || k->vars[loop->high_var].type != type ||
      type_of(k, loop->first_high) != type ||
      type_of(k, loop->bound_high) != type) {
    return "one of its halves is not u32";
  }
  return NULL;
}

static const char *check_bits(const vyre__lir_inst *inst) {
  uint64_t bits = vyre__lir_const(inst);
  unsigned width = width_of(inst->type);
  return width == 64 || bits >> width == 0 ? NULL
                                           : "more bits than its type has";
}

static const char *check_function(const vyre__lir_inst *inst) {
  if (!vyre__op_is_math(inst->aux)) return "aux is not a math function";
  bool binary = vyre__ops[inst->aux].form == VYRE__FORM_BINARY;
  if (binary != (inst->b != 0)) return "wrong number of operands";
  return NULL;
}

static const char *check_aux(const vyre__lir_kernel *k,
                             const vyre__lir_inst *inst) {
  unsigned type = inst->op == VYRE__LIR_SET ? type_of(k, inst->a) : inst->type;
  switch (rows[inst->op].aux) {
    case AXIS:
      return inst->aux < 3 ? NULL : "unknown axis";
    case BUFFER:
      return inst->aux < k->buffer_count ? NULL : "unknown buffer";
    case GRID_LOOP:
      return inst->aux < k->grid_loop_count ? NULL : "unknown grid loop";
    case VARIABLE:
      if (inst->aux >= k->var_count) return "unknown variable";
      return k->vars[inst->aux].type == type ? NULL
                                             : "not the type of the variable";
    case LOOP_NUMBER:
      return inst->aux < k->loop_count ? NULL : "unknown loop";
    case LOOP:
      return check_loop(k, inst);
    case ACCESS:
      return check_access(k, inst);
    case BITS_FIT:
      return check_bits(inst);
    case FUNCTION:
      return check_function(inst);
    default:
      return NULL;
  }
}

static const char *check_agreement(const vyre__lir_kernel *k,
                                   const vyre__lir_inst *inst, unsigned agree) {
  unsigned a = type_of(k, inst->a), result = inst->type;
  if ((agree & AB) && type_of(k, inst->b) != a) {
    return "the operands have different types";
  }
  if ((agree & AC) && type_of(k, inst->c) != a) {
    return "the operands have different types";
  }
  if ((agree & BC) && type_of(k, inst->c) != type_of(k, inst->b)) {
    return "the values have different types";
  }
  if ((agree & RA) && result != a) return "its type is not the operand's";
  if ((agree & RB) && result != type_of(k, inst->b)) {
    return "its type is not the operand's";
  }
  if ((agree & WIDTH) && width_of(result) != width_of(a)) {
    return "its width is not the operand's";
  }
  if ((agree & WIDER) && width_of(result) <= width_of(a)) {
    return "it is not wider than the operand";
  }
  return NULL;
}

const char *vyre__verify_types(const vyre__lir_kernel *k,
                               const vyre__lir_inst *inst) {
  const row *r = &rows[inst->op];
  if (inst->op == VYRE__LIR_NONE) return "operation without a type rule";
  if (r->result == NO ? inst->type != VYRE_TYPE_VOID
                      : !has(r->result, inst->type)) {
    return "invalid result type of the operation";
  }
  for (unsigned i = 0; i < 3 && i < vyre__lir_ops[inst->op].operands; i++) {
    if (inst->v[i] && !has(r->operands[i], type_of(k, inst->v[i]))) {
      return i == 0   ? "wrong type of the first operand"
             : i == 1 ? "wrong type of the second operand"
                      : "wrong type of the third operand";
    }
  }
  const char *wrong = r->agree ? check_agreement(k, inst, r->agree) : NULL;
  return wrong || r->aux == PLAIN ? wrong : check_aux(k, inst);
}
