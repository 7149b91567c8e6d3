/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints values as C expressions, one operation at a time. */
#include "codegen/c/internal.h"

/* Precedences of C. Compilers warn about arithmetic inside bit operations and
 * shifts without parentheses, so these demand C_UNARY of their operands. */
enum {
  P_SELECT = 3,
  P_LOGIC_OR = 4,
  P_LOGIC_AND = 5,
  P_OR = 6,
  P_XOR = 7,
  P_AND = 8,
  P_EQUAL = C_CONDITION,
  P_LESS = 10,
  P_SHIFT = 11,
  P_ADD = 12,
  P_MUL = 13,
};

static const char axes[] = "xyz";

static vyre_type type_of(const c_emitter *e, vyre__val v) {
  return (vyre_type)c_inst(e, v)->type;
}

static bool is_wide(const c_emitter *e, vyre__val v) {
  return type_of(e, v) == VYRE_TYPE_U64 || type_of(e, v) == VYRE_TYPE_F64;
}

static const char *helper(c_emitter *e, c_helper which, const char *name) {
  e->helpers[which] |= e->is_last;
  return name;
}

/* --- literals ------------------------------------------------------------- */

static void print_exact(c_emitter *e, bool negative, unsigned lead,
                        uint64_t digits, int width, int exponent, bool wide) {
  while (width > 1 && (digits & 15) == 0) {
    digits >>= 4;
    width--;
  }
  C_PRINT(e, "%s0x%u.%0*llxp%+d%s", negative ? "-" : "", lead, width,
          (unsigned long long)digits, exponent, wide ? "" : "f");
}

/* Prints small integers in decimal, all other floats in exact hexadecimal. */
static void print_float(c_emitter *e, uint64_t bits, bool wide) {
  int mantissa = wide ? 52 : 23;
  uint64_t limit = wide ? 2047 : 255;
  uint64_t field = bits >> mantissa & limit;
  uint64_t fraction = bits & (((uint64_t)1 << mantissa) - 1);
  bool negative = bits >> (wide ? 63 : 31);
  int bias = wide ? 1023 : 127;
  int exponent = (int)field - bias;
  if (field == limit) {
    const char *name =
        wide ? helper(e, C_F64, "vyre_f64") : helper(e, C_F32, "vyre_f32");
    C_PRINT(e, wide ? "%s(0x%016llXull)" : "%s(0x%08llXu)", name,
            (unsigned long long)bits);
  } else if (field == 0 && fraction == 0) {
    C_PRINT(e, "%s0.0%s", negative ? "-" : "", wide ? "" : "f");
  } else if (exponent >= 0 && exponent <= 16 &&
             (fraction << exponent & (((uint64_t)1 << mantissa) - 1)) == 0) {
    uint64_t integer =
        (fraction | (uint64_t)1 << mantissa) >> (mantissa - exponent);
    C_PRINT(e, "%s%llu.0%s", negative ? "-" : "", (unsigned long long)integer,
            wide ? "" : "f");
  } else {
    print_exact(e, negative, field != 0, wide ? fraction : fraction << 1,
                wide ? 13 : 6, field ? exponent : 1 - bias, wide);
  }
}

static void print_const(c_emitter *e, const vyre__lir_inst *inst) {
  uint64_t bits = vyre__lir_const(inst);
  unsigned long long number = bits;
  switch ((vyre_type)inst->type) {
    case VYRE_TYPE_BOOL:
      C_PRINT(e, "%s", bits ? "true" : "false");
      break;
    case VYRE_TYPE_F32:
    case VYRE_TYPE_F64:
      print_float(e, bits, inst->type == VYRE_TYPE_F64);
      break;
    default: {
      bool wide = inst->type == VYRE_TYPE_U64;
      C_PRINT(e, number < 100000 ? "%llu%s" : "0x%llX%s", number,
              wide ? "ull" : "u");
    }
  }
}

/* --- names ---------------------------------------------------------------- */

static void print_leaf(c_emitter *e, const vyre__lir_inst *inst) {
  uint32_t aux = inst->aux;
  switch (inst->op) {
    case VYRE__LIR_LOCAL_ID:
      if (e->kernel->workgroup[aux] == 1 || e->is_host) {
        C_PRINT(e, "0u");
      } else {
        C_PRINT(e, "local_%c", axes[aux]);
      }
      break;
    case VYRE__LIR_GROUP_ID:
      e->used.group[aux] = true;
      C_PRINT(e, "group_%c", axes[aux]);
      break;
    case VYRE__LIR_GRID_SIZE:
      e->used.grid[aux] = true;
      C_PRINT(e, "grid_%c", axes[aux]);
      break;
    case VYRE__LIR_LEN:
      if (e->data_index[aux] == VYRE_NO_INDEX) {
        C_PRINT(e, "%uu", (unsigned)e->kernel->buffers[aux].count);
        break;
      }
      e->len_used[aux] = true;
      C_PRINT(e, "len_%s", e->buffer_names[aux]);
      break;
    case VYRE__LIR_LOOP_VALUE:
      if (!e->is_host) e->loop_used[aux] = true;
      C_PRINT(e, "%s%s%u%s",
              inst->type == VYRE_TYPE_U64 ? ""
              : inst->c                   ? "(uint32_t)("
                                          : "(uint32_t)",
              e->is_host ? "loop_at_" : "loop_", (unsigned)aux,
              inst->c ? " >> 32)" : "");
      break;
    case VYRE__LIR_FUEL:
      e->used.fuel = true;
      C_PRINT(e, "fuel");
      break;
    default:
      print_const(e, inst);
  }
}

/* Prints the index of the invocation's element in a value array. */
void c_array_index(c_emitter *e, uint8_t storage) {
  const uint32_t *size = e->kernel->workgroup;
  if (storage == VYRE__STORAGE_ARRAY) {
    C_PRINT(e, size[0] > VYRE__STRIP ? "[local_x - strip]" : "[local_x]");
  } else if (size[2] > 1) {
    C_PRINT(e, "[(local_z * %uu + local_y) * %uu + local_x]", (unsigned)size[1],
            (unsigned)size[0]);
  } else if (size[1] > 1) {
    C_PRINT(e, "[local_y * %uu + local_x]", (unsigned)size[0]);
  } else {
    C_PRINT(e, "[local_x]");
  }
}

void c_variable(c_emitter *e, uint32_t var) {
  C_PRINT(e, "%s", e->var_names[var]);
  uint8_t storage = e->r->var_storage[var];
  if (storage >= VYRE__STORAGE_ARRAY) c_array_index(e, storage);
}

/* Recognises group_id * workgroup_size + local_id. It fits 32 bits by the
 * limits of a launch. */
bool c_is_global_id(const c_emitter *e, vyre__val v, unsigned *axis) {
  const vyre__lir_inst *add = c_inst(e, v);
  if (add->op != VYRE__LIR_ADD || add->type != VYRE_TYPE_U32) return false;
  const vyre__lir_inst *scaled = c_inst(e, add->a), *local = c_inst(e, add->b);
  if (scaled->op == VYRE__LIR_LOCAL_ID) {
    const vyre__lir_inst *swap = scaled;
    scaled = local;
    local = swap;
  }
  if (local->op != VYRE__LIR_LOCAL_ID) return false;
  *axis = local->aux;
  uint32_t size = e->kernel->workgroup[*axis];
  if (size == 1) return false;
  bool shifts = scaled->op == VYRE__LIR_SHL;
  if (!shifts && scaled->op != VYRE__LIR_MUL) return false;
  const vyre__lir_inst *group = c_inst(e, scaled->a);
  const vyre__lir_inst *factor = c_inst(e, scaled->b);
  if (!shifts && group->op == VYRE__LIR_CONST) {
    const vyre__lir_inst *swap = group;
    group = factor;
    factor = swap;
  }
  if (group->op != VYRE__LIR_GROUP_ID || group->aux != *axis) return false;
  if (factor->op != VYRE__LIR_CONST) return false;
  uint64_t number = vyre__lir_const(factor);
  return shifts ? number < 32 && size == (uint32_t)1 << number : number == size;
}

/* --- operations ----------------------------------------------------------- */

typedef struct infix {
  const char *text;
  uint8_t level; /* 0: not an infix operator */
  bool is_signed;
  const char *opposite; /* of a comparison whose negation is one; or NULL */
} infix;

static infix infix_of(const vyre__lir_inst *inst) {
  static const infix infixes[VYRE__LIR_COUNT] = {
      [VYRE__LIR_ADD] = {"+", P_ADD},
      [VYRE__LIR_FADD] = {"+", P_ADD},
      [VYRE__LIR_SUB] = {"-", P_ADD},
      [VYRE__LIR_FSUB] = {"-", P_ADD},
      [VYRE__LIR_MUL] = {"*", P_MUL},
      [VYRE__LIR_FMUL] = {"*", P_MUL},
      [VYRE__LIR_DIV_U] = {"/", P_MUL},
      [VYRE__LIR_FDIV] = {"/", P_MUL},
      [VYRE__LIR_REM_U] = {"%", P_MUL},
      [VYRE__LIR_AND] = {"&", P_AND},
      [VYRE__LIR_OR] = {"|", P_OR},
      [VYRE__LIR_XOR] = {"^", P_XOR},
      [VYRE__LIR_SHL] = {"<<", P_SHIFT},
      [VYRE__LIR_SHR_U] = {">>", P_SHIFT},
      [VYRE__LIR_EQ] = {"==", P_EQUAL, false, "!="},
      [VYRE__LIR_FEQ] = {"==", P_EQUAL, false, "!="},
      [VYRE__LIR_NE] = {"!=", P_EQUAL, false, "=="},
      [VYRE__LIR_FNE] = {"!=", P_EQUAL, false, "=="},
      [VYRE__LIR_LT_U] = {"<", P_LESS, false, ">="},
      [VYRE__LIR_LT_S] = {"<", P_LESS, true, ">="},
      [VYRE__LIR_FLT] = {"<", P_LESS},
      [VYRE__LIR_LE_U] = {"<=", P_LESS, false, ">"},
      [VYRE__LIR_LE_S] = {"<=", P_LESS, true, ">"},
      [VYRE__LIR_FLE] = {"<=", P_LESS},
  };
  bool is_bool = inst->type == VYRE_TYPE_BOOL;
  if (inst->op == VYRE__LIR_XOR && is_bool) return infixes[VYRE__LIR_NE];
  return infixes[inst->op];
}

/* Returns the operator of the opposite comparison if @p inst is NOT of a folded
 * comparison of integers, or of an equality of floats; else NULL. */
static const char *opposite(const c_emitter *e, const vyre__lir_inst *inst) {
  const vyre__lir_inst *of = c_inst(e, inst->a);
  if (inst->op != VYRE__LIR_NOT || inst->type != VYRE_TYPE_BOOL) return NULL;
  if (c_info(e, inst->a)->is_leaf || c_home(e, inst->a) != e->subregion)
    return NULL;
  if (c_note_of(e, inst->a)->form != C_FOLDED) return NULL;
  return infix_of(of).opposite;
}

static void print_infix(c_emitter *e, const vyre__lir_inst *inst, infix how,
                        const char *text) {
  int left = how.level, right = how.level + 1;
  if (how.level >= P_OR && how.level <= P_AND) {
    bool chain = c_inst(e, inst->a)->op == inst->op;
    left = chain ? how.level : C_UNARY;
    right = C_UNARY;
  } else if (how.level == P_SHIFT) {
    left = right = C_UNARY;
  } else if (how.level <= P_LESS) {
    left = right = P_ADD;
  }
  const char *cast = "";
  if (how.is_signed) {
    cast = is_wide(e, inst->a) ? "(int64_t)" : "(int32_t)";
    left = right = C_UNARY;
  }
  C_PRINT(e, "%s", cast);
  c_value(e, inst->a, left);
  /* Compilers assume that a call on the right has effects and warn about & and
   * | of bools; && and || are printed then. */
  bool is_bool = inst->type == VYRE_TYPE_BOOL;
  bool calls = is_bool && how.level >= P_OR && how.level <= P_AND &&
               c_note_of(e, inst->b)->form == C_FOLDED &&
               c_note_of(e, inst->b)->has_call;
  C_PRINT(e, " %s%s %s", text, calls ? text : "", cast);
  c_value(e, inst->b, right);
}

/* Prints namesuffix(a, b, c) with the present operands. */
static void print_call(c_emitter *e, const char *name, const char *suffix,
                       const vyre__lir_inst *inst) {
  vyre__val operands[4];
  uint32_t count = vyre__lir_operands(inst, operands);
  C_PRINT(e, "%s%s(", name, suffix);
  for (uint32_t i = 0; i < count; i++) {
    if (i) C_PRINT(e, ", ");
    c_value(e, operands[i], C_TOP);
  }
  C_PRINT(e, ")");
}

static void print_cast(c_emitter *e, const char *casts,
                       const vyre__lir_inst *inst) {
  C_PRINT(e, "%s", casts);
  c_value(e, inst->a, C_UNARY);
}

/* Prints the operation as a call of a function of math.h or of a helper.
 * Returns false if it is not one. */
static bool print_function(c_emitter *e, const vyre__lir_inst *inst) {
  static const struct {
    const char *name; /* without the suffix for its type */
    uint8_t helper;   /* for 32 bits, the next one is for 64; 0: math.h */
  } functions[VYRE__LIR_COUNT] = {
      [VYRE__LIR_FSQRT] = {"sqrt"},
      [VYRE__LIR_FMA] = {"fma"},
      [VYRE__LIR_FABS] = {"fabs"},
      [VYRE__LIR_FFLOOR] = {"floor"},
      [VYRE__LIR_FCEIL] = {"ceil"},
      [VYRE__LIR_FTRUNC] = {"trunc"},
      [VYRE__LIR_FRINT] = {"rint"},
      [VYRE__LIR_FROUND] = {"round"},
      [VYRE__LIR_CLZ] = {"vyre_clz", C_CLZ32},
      [VYRE__LIR_CTZ] = {"vyre_ctz", C_CTZ32},
      [VYRE__LIR_POPCOUNT] = {"vyre_popcount", C_POPCOUNT32},
      [VYRE__LIR_SHR_S] = {"vyre_sar", C_SAR32},
      [VYRE__LIR_MIN_U] = {"vyre_min_u", C_MIN_U32},
      [VYRE__LIR_MIN_S] = {"vyre_min_s", C_MIN_S32},
      [VYRE__LIR_MAX_U] = {"vyre_max_u", C_MAX_U32},
      [VYRE__LIR_MAX_S] = {"vyre_max_s", C_MAX_S32},
      [VYRE__LIR_FMIN] = {"vyre_min_f", C_MIN_F32},
      [VYRE__LIR_FMAX] = {"vyre_max_f", C_MAX_F32},
  };
  const char *name = functions[inst->op].name;
  uint8_t helper = functions[inst->op].helper;
  bool wide = is_wide(e, inst->a);
  if (!name) return false;
  if (helper) {
    e->helpers[helper + wide] |= e->is_last;
    print_call(e, name, wide ? "64" : "32", inst);
  } else {
    e->uses_math |= e->is_last;
    print_call(e, name, wide ? "" : "f", inst);
  }
  return true;
}

static void print_bitcast(c_emitter *e, const vyre__lir_inst *inst) {
  vyre_type from = type_of(e, inst->a);
  if (from == inst->type) {
    c_value(e, inst->a, C_PRIMARY);
  } else if (from == VYRE_TYPE_F32) {
    print_call(e, helper(e, C_BITS32, "vyre_bits32"), "", inst);
  } else if (from == VYRE_TYPE_F64) {
    print_call(e, helper(e, C_BITS64, "vyre_bits64"), "", inst);
  } else if (from == VYRE_TYPE_U32) {
    print_call(e, helper(e, C_F32, "vyre_f32"), "", inst);
  } else {
    print_call(e, helper(e, C_F64, "vyre_f64"), "", inst);
  }
}

/* --- memory --------------------------------------------------------------- */

/* Prints buffer[index] of a load, store or atomic. A global id is computed in
 * 64 bits, so that compilers see consecutive addresses. */
void c_index(c_emitter *e, vyre__val memory) {
  const vyre__lir_inst *inst = c_inst(e, memory);
  e->data_used[inst->aux] = true;
  C_PRINT(e, "%s[", e->buffer_names[inst->aux]);
  uint8_t global = c_note_of(e, inst->a)->global;
  if (global) {
    e->used.first[global - 1] = true;
    C_PRINT(e, "first_%c + local_%c", axes[global - 1], axes[global - 1]);
  } else {
    c_value(e, inst->a, C_TOP);
  }
  C_PRINT(e, "]");
}

static void print_load(c_emitter *e, vyre__val v) {
  const vyre__lir_inst *inst = c_inst(e, v);
  uint8_t width = e->kernel->buffers[inst->aux].width;
  bool asks = inst->b && c_known_of(e, inst->b) != C_TRUE;
  bool is_single = c_is_single_read(e, v);
  if (asks) {
    c_value(e, inst->b, C_CONDITION);
    C_PRINT(e, " ? ");
  } else if (width < 4 && !is_single) {
    C_PRINT(e, "(uint32_t)");
  }
  if (is_single) {
    unsigned which = width == 8 ? 3 : width == 4 ? 2 : width == 2;
    e->helpers[C_LOAD8 + which] |= e->is_last;
    C_PRINT(e, "vyre_load%u(&", 8u * width);
  }
  c_index(e, v);
  if (is_single) C_PRINT(e, ")");
  if (asks) C_PRINT(e, " : 0u");
}

void c_atomic(c_emitter *e, vyre__val v) {
  const vyre__lir_inst *inst = c_inst(e, v);
  const vyre__lir_buffer *buffer = &e->kernel->buffers[inst->aux];
  unsigned which = inst->op - VYRE__LIR_ATOMIC_ADD;
  bool wide = buffer->width == 8, shared = buffer->kind == VYRE_MEMORY_SHARED;
  e->helpers[C_ATOMICS + 4 * which + 2u * wide + shared] |= e->is_last;
  C_PRINT(e, "vyre_%s_%s%s(&", shared ? "plain" : "atomic",
          c_atomic_name(which), wide ? "64" : "32");
  c_index(e, v);
  C_PRINT(e, ", ");
  c_value(e, inst->b, C_TOP);
  if (inst->op == VYRE__LIR_ATOMIC_CAS) {
    C_PRINT(e, ", ");
    c_value(e, inst->c, C_TOP);
  }
  C_PRINT(e, ")");
}

/* --- entry points --------------------------------------------------------- */

static int level_of(const c_emitter *e, vyre__val v) {
  const vyre__lir_inst *inst = c_inst(e, v);
  infix how = infix_of(inst);
  if (how.level) return how.level;
  switch (inst->op) {
    case VYRE__LIR_SELECT:
      return P_SELECT;
    case VYRE__LIR_LOAD:
      if (inst->b) return P_SELECT;
      if (c_is_single_read(e, v)) return C_PRIMARY;
      return e->kernel->buffers[inst->aux].width < 4 ? C_UNARY : C_PRIMARY;
    case VYRE__LIR_NOT:
      if (opposite(e, inst)) return infix_of(c_inst(e, inst->a)).level;
      return C_UNARY;
    case VYRE__LIR_CONST:
    case VYRE__LIR_FNEG:
    case VYRE__LIR_DIV_S:
    case VYRE__LIR_REM_S:
    case VYRE__LIR_LOOP_VALUE:
      return C_UNARY;
    default:
      return inst->op >= VYRE__LIR_ZEXT && inst->op <= VYRE__LIR_F_ROUND &&
                     inst->op != VYRE__LIR_BITCAST
                 ? C_UNARY
                 : C_PRIMARY;
  }
}

static void print_conversion(c_emitter *e, const vyre__lir_inst *inst) {
  bool wide = inst->type == VYRE_TYPE_U64;
  bool from_wide = is_wide(e, inst->a);
  const char *name = c_type((vyre_type)inst->type);
  switch (inst->op) {
    case VYRE__LIR_SEXT:
      print_cast(e, "(uint64_t)(int64_t)(int32_t)", inst);
      break;
    case VYRE__LIR_S_TO_F:
      C_PRINT(e, "(%s)", name);
      print_cast(e, from_wide ? "(int64_t)" : "(int32_t)", inst);
      break;
    case VYRE__LIR_F_TO_S:
      print_cast(e, wide ? "(uint64_t)(int64_t)" : "(uint32_t)(int32_t)", inst);
      break;
    default:
      C_PRINT(e, "(%s)", name);
      c_value(e, inst->a, C_UNARY);
  }
}

/* Prints a / b or a % b of signed numbers. */
static void print_signed_division(c_emitter *e, const vyre__lir_inst *inst) {
  bool wide = inst->type == VYRE_TYPE_U64;
  const char *cast = wide ? "(int64_t)" : "(int32_t)";
  C_PRINT(e, "(%s)(%s", wide ? "uint64_t" : "uint32_t", cast);
  c_value(e, inst->a, C_UNARY);
  C_PRINT(e, " %c %s", inst->op == VYRE__LIR_DIV_S ? '/' : '%', cast);
  c_value(e, inst->b, C_UNARY);
  C_PRINT(e, ")");
}

static void print_operation(c_emitter *e, vyre__val v) {
  const vyre__lir_inst *inst = c_inst(e, v);
  switch (inst->op) {
    case VYRE__LIR_SELECT:
      c_value(e, inst->a, C_CONDITION);
      C_PRINT(e, " ? ");
      c_value(e, inst->b, P_LOGIC_OR);
      C_PRINT(e, " : ");
      c_value(e, inst->c, P_LOGIC_OR);
      break;
    case VYRE__LIR_NOT:
      print_cast(e, inst->type == VYRE_TYPE_BOOL ? "!" : "~", inst);
      break;
    case VYRE__LIR_AGREE:
      C_PRINT(e, "(");
      c_value(e, inst->a, C_TOP);
      C_PRINT(e, ")");
      break;
    case VYRE__LIR_FNEG:
      C_PRINT(e, "-");
      c_value(e, inst->a, C_UNARY + 1);
      break;
    case VYRE__LIR_DIV_S:
    case VYRE__LIR_REM_S:
      print_signed_division(e, inst);
      break;
    case VYRE__LIR_BITCAST:
      print_bitcast(e, inst);
      break;
    case VYRE__LIR_GET:
      c_variable(e, inst->aux);
      break;
    case VYRE__LIR_LOAD:
      print_load(e, v);
      break;
    default:
      print_conversion(e, inst);
  }
}

void c_expression(c_emitter *e, vyre__val v) {
  const vyre__lir_inst *inst = c_inst(e, v);
  infix how = infix_of(inst);
  const char *turned = opposite(e, inst);
  if (c_info(e, v)->is_leaf) {
    print_leaf(e, inst);
  } else if (how.level) {
    print_infix(e, inst, how, how.text);
  } else if (turned) {
    const vyre__lir_inst *of = c_inst(e, inst->a);
    print_infix(e, of, infix_of(of), turned);
  } else if (!print_function(e, inst)) {
    print_operation(e, v);
  }
}

static bool is_negative(const vyre__lir_inst *inst) {
  return (inst->type == VYRE_TYPE_F32 && inst->c >> 31) ||
         (inst->type == VYRE_TYPE_F64 && inst->d >> 31);
}

void c_value(c_emitter *e, vyre__val v, int min_level) {
  const vyre__lir_inst *inst = c_inst(e, v);
  const vyre__inst_info *info = c_info(e, v);
  c_note *note = c_note_of(e, v);
  uint32_t home = c_home(e, v);
  bool named = note->form == C_NAMED;
  if (info->is_leaf && info->storage != VYRE__STORAGE_BROADCAST) {
    bool paren =
        min_level > C_UNARY && inst->op == VYRE__LIR_CONST && is_negative(inst);
    if (paren) C_PRINT(e, "(");
    print_leaf(e, inst);
    if (paren) C_PRINT(e, ")");
  } else if (c_known_of(e, v) != C_UNKNOWN) {
    C_PRINT(e, "%s", c_known_of(e, v) == C_TRUE ? "true" : "false");
  } else if (note->global) {
    e->used.global[note->global - 1] = true;
    C_PRINT(e, "global_%c", axes[note->global - 1]);
  } else if (note->form == C_ALIAS && (home == e->subregion || !home)) {
    c_variable(e, inst->aux);
  } else if (home == e->subregion && !named) {
    bool paren = level_of(e, v) < min_level;
    if (paren) C_PRINT(e, "(");
    c_expression(e, v);
    if (paren) C_PRINT(e, ")");
  } else {
    bool is_array = info->storage >= VYRE__STORAGE_ARRAY;
    note->used_in = e->subregion + 1;
    note->used_now |= home == e->subregion || !home;
    C_PRINT(e, "%c%u", is_array && home == e->subregion ? 't' : 'v',
            (unsigned)v);
    if (is_array && home != e->subregion) c_array_index(e, info->storage);
  }
}
