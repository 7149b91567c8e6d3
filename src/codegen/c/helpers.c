/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints the helper functions at the top of a generated file. */
#include "codegen/c/internal.h"

static const char *const plain_helpers[C_PLAIN_HELPERS] = {
    [C_F32] =
        "static inline float vyre_f32(uint32_t bits) {\n"
        "  float value;\n"
        "  memcpy(&value, &bits, sizeof value);\n"
        "  return value;\n"
        "}\n",
    [C_BITS32] =
        "static inline uint32_t vyre_bits32(float value) {\n"
        "  uint32_t bits;\n"
        "  memcpy(&bits, &value, sizeof bits);\n"
        "  return bits;\n"
        "}\n",
    [C_F64] =
        "static inline double vyre_f64(uint64_t bits) {\n"
        "  double value;\n"
        "  memcpy(&value, &bits, sizeof value);\n"
        "  return value;\n"
        "}\n",
    [C_BITS64] =
        "static inline uint64_t vyre_bits64(double value) {\n"
        "  uint64_t bits;\n"
        "  memcpy(&bits, &value, sizeof bits);\n"
        "  return bits;\n"
        "}\n",
    [C_CLZ32] =
        "static inline uint32_t vyre_clz32(uint32_t a) {\n"
        "#if defined(__GNUC__)\n"
        "  return a ? (uint32_t)__builtin_clz(a) : 32u;\n"
        "#else\n"
        "  uint32_t n = 32;\n"
        "  for (; a; a >>= 1) n--;\n"
        "  return n;\n"
        "#endif\n"
        "}\n",
    [C_CLZ64] =
        "static inline uint64_t vyre_clz64(uint64_t a) {\n"
        "#if defined(__GNUC__)\n"
        "  return a ? (uint64_t)__builtin_clzll(a) : 64u;\n"
        "#else\n"
        "  uint64_t n = 64;\n"
        "  for (; a; a >>= 1) n--;\n"
        "  return n;\n"
        "#endif\n"
        "}\n",
    [C_CTZ32] =
        "static inline uint32_t vyre_ctz32(uint32_t a) {\n"
        "#if defined(__GNUC__)\n"
        "  return a ? (uint32_t)__builtin_ctz(a) : 32u;\n"
        "#else\n"
        "  uint32_t n = 0;\n"
        "  for (; n < 32 && !(a >> n & 1u); n++) continue;\n"
        "  return n;\n"
        "#endif\n"
        "}\n",
    [C_CTZ64] =
        "static inline uint64_t vyre_ctz64(uint64_t a) {\n"
        "#if defined(__GNUC__)\n"
        "  return a ? (uint64_t)__builtin_ctzll(a) : 64u;\n"
        "#else\n"
        "  uint64_t n = 0;\n"
        "  for (; n < 64 && !(a >> n & 1u); n++) continue;\n"
        "  return n;\n"
        "#endif\n"
        "}\n",
    [C_POPCOUNT32] =
        "static inline uint32_t vyre_popcount32(uint32_t a) {\n"
        "  a -= a >> 1 & 0x55555555u;\n"
        "  a = (a & 0x33333333u) + (a >> 2 & 0x33333333u);\n"
        "  return ((a + (a >> 4)) & 0x0F0F0F0Fu) * 0x01010101u >> 24;\n"
        "}\n",
    [C_POPCOUNT64] =
        "static inline uint64_t vyre_popcount64(uint64_t a) {\n"
        "  a -= a >> 1 & 0x5555555555555555ull;\n"
        "  a = (a & 0x3333333333333333ull) + (a >> 2 & "
        "0x3333333333333333ull);\n"
        "  a = (a + (a >> 4)) & 0x0F0F0F0F0F0F0F0Full;\n"
        "  return a * 0x0101010101010101ull >> 56;\n"
        "}\n",
    /* All known compilers implement >> of a negative number as an arithmetic
     * shift. */
    [C_SAR32] =
        "static inline uint32_t vyre_sar32(uint32_t a, uint32_t by) {\n"
        "  return (uint32_t)((int32_t)a >> by);\n"
        "}\n",
    [C_SAR64] =
        "static inline uint64_t vyre_sar64(uint64_t a, uint32_t by) {\n"
        "  return (uint64_t)((int64_t)a >> by);\n"
        "}\n",
};

static void print_min_max(c_emitter *e) {
  for (unsigned i = C_MIN_U32; i <= C_MAX_S64; i++) {
    if (!e->helpers[i]) continue;
    unsigned at = i - C_MIN_U32;
    bool is_max = at >= 4, is_signed = at & 2;
    const char *bits = at & 1 ? "64" : "32";
    C_PRINT(
        e, "static inline uint%s_t vyre_%s_%c%s(uint%s_t a, uint%s_t b) {\n",
        bits, is_max ? "max" : "min", is_signed ? 's' : 'u', bits, bits, bits);
    C_PRINT(e, "  return (%sint%s_t)%c %c (%sint%s_t)%c ? a : b;\n}\n\n",
            is_signed ? "" : "u", bits, 'a', is_max ? '>' : '<',
            is_signed ? "" : "u", bits, 'b');
  }
}

/* A NaN operand loses, and -0 is less than +0. */
static void print_float_min_max(c_emitter *e) {
  for (unsigned i = C_MIN_F32; i <= C_MAX_F64; i++) {
    if (!e->helpers[i]) continue;
    bool wide = (i - C_MIN_F32) & 1, is_max = i >= C_MAX_F32;
    const char *type = wide ? "double" : "float", *bits = wide ? "64" : "32";
    C_PRINT(e, "static inline %s vyre_%s_f%s(%s a, %s b) {\n", type,
            is_max ? "max" : "min", bits, type, type);
    C_PRINT(e,
            "  const %s same = vyre_f%s(vyre_bits%s(a) %c vyre_bits%s(b));\n",
            type, bits, bits, is_max ? '&' : '|', bits);
    C_PRINT(e, "  const %s other = a %c b ? a : b;\n", type,
            is_max ? '>' : '<');
    C_PRINT(e, "  return b != b ? a : a == b ? same : other;\n}\n\n");
  }
}

/* Prints loads that are executed once. Another thread may write the memory, and
 * the checked value must be the value that is used. */
static void print_loads(c_emitter *e) {
  for (unsigned i = C_LOAD8; i <= C_LOAD64; i++) {
    if (!e->helpers[i]) continue;
    unsigned bits = 8u << (i - C_LOAD8);
    C_PRINT(e,
            "/* Reads memory once, even if another thread writes it. */\n"
            "static inline uint%u_t vyre_load%u(const uint%u_t *at) {\n",
            bits < 32 ? 32 : bits, bits, bits);
    /* If 64 bits are two words, an atomic load would need a library. */
    C_PRINT(e, "#if defined(__GNUC__)%s\n",
            bits == 64 ? " && __SIZEOF_POINTER__ >= 8" : "");
    C_PRINT(e,
            "  return __atomic_load_n(at, __ATOMIC_RELAXED);\n"
            "#else\n"
            "  return *(const volatile uint%u_t *)at;\n"
            "#endif\n"
            "}\n\n",
            bits);
  }
}

/* Prints the new value, computed from `old` and the operands. */
static void print_new_value(c_emitter *e, unsigned which, const char *bits) {
  static const char *const plain[] = {
      [0] = "old + value", [5] = "old & value",
      [6] = "old | value", [7] = "old ^ value",
      [8] = "value",       [9] = "old == expected ? value : old"};
  if (which >= 1 && which <= 4) {
    const char *sign = which == 1 || which == 3 ? "u" : "";
    C_PRINT(e, "(%sint%s_t)value %c (%sint%s_t)old ? value : old", sign, bits,
            which <= 2 ? '<' : '>', sign, bits);
  } else {
    C_PRINT(e, "%s", plain[which]);
  }
}

static void print_atomic_body(c_emitter *e, unsigned which, const char *bits) {
  static const char *const builtin[] = {[0] = "fetch_add",
                                        [5] = "fetch_and",
                                        [6] = "fetch_or",
                                        [7] = "fetch_xor",
                                        [8] = "exchange_n"};
  if (which == 9) {
    C_PRINT(e,
            "  __atomic_compare_exchange_n(at, &expected, value, 0, "
            "__ATOMIC_RELAXED,\n"
            "                              __ATOMIC_RELAXED);\n"
            "  return expected;\n");
  } else if (which >= 1 && which <= 4) {
    C_PRINT(e, "  uint%s_t old = __atomic_load_n(at, __ATOMIC_RELAXED);\n",
            bits);
    C_PRINT(e, "  while (!__atomic_compare_exchange_n(at, &old, ");
    print_new_value(e, which, bits);
    C_PRINT(e,
            ", 0,\n"
            "                                      __ATOMIC_RELAXED, "
            "__ATOMIC_RELAXED)) {\n  }\n  return old;\n");
  } else {
    C_PRINT(e, "  return __atomic_%s(at, value, __ATOMIC_RELAXED);\n",
            builtin[which]);
  }
}

/* Prints atomics. Workgroups on other threads access global memory, but not
 * shared memory. */
static void print_atomics(c_emitter *e) {
  for (unsigned i = C_ATOMICS; i < C_HELPERS; i++) {
    if (!e->helpers[i]) continue;
    unsigned which = (i - C_ATOMICS) / 4;
    bool wide = (i - C_ATOMICS) & 2, shared = (i - C_ATOMICS) & 1;
    const char *bits = wide ? "64" : "32";
    C_PRINT(e, "static inline uint%s_t vyre_%s_%s%s(uint%s_t *at, ", bits,
            shared ? "plain" : "atomic", c_atomic_name(which), bits, bits);
    if (which == 9) C_PRINT(e, "uint%s_t expected, ", bits);
    C_PRINT(e, "uint%s_t value) {\n", bits);
    if (shared) {
      C_PRINT(e, "  const uint%s_t old = *at;\n  *at = ", bits);
      print_new_value(e, which, bits);
      C_PRINT(e, ";\n  return old;\n");
    } else {
      print_atomic_body(e, which, bits);
    }
    C_PRINT(e, "}\n\n");
  }
}

void c_print_helpers(c_emitter *e) {
  for (unsigned i = C_MIN_F32; i <= C_MAX_F64; i++) {
    if (!e->helpers[i]) continue;
    bool wide = (i - C_MIN_F32) & 1;
    e->helpers[wide ? C_F64 : C_F32] = true;
    e->helpers[wide ? C_BITS64 : C_BITS32] = true;
  }
  for (unsigned i = 0; i < C_PLAIN_HELPERS; i++) {
    if (e->helpers[i] && plain_helpers[i]) C_PRINT(e, "%s\n", plain_helpers[i]);
  }
  print_min_max(e);
  print_float_min_max(e);
  print_loads(e);
  print_atomics(e);
}
