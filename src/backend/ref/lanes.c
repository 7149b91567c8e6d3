/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pure operations, one loop over the lanes each. ir/scalar.h defines their
 * results. */
#include "backend/ref/ref.h"
#include "ir/scalar_ops.h"

/* Lanes are independent, even where the result overwrites an operand, so the
 * compiler may vectorise the loops. */
#if defined(__GNUC__) && !defined(__clang__)
#define INDEPENDENT _Pragma("GCC ivdep")
#else
#define INDEPENDENT
#endif

#define LANES(type, name, value)                                 \
  case VYRE__OP_##name:                                          \
    INDEPENDENT                                                  \
    for (uint32_t i = 0; i < n; i++) {                           \
      const word x = vyre__##type(a[i]), y = vyre__##type(b[i]); \
      const word z = vyre__##type(c[i]);                         \
      (void)x, (void)y, (void)z;                                 \
      out[i] = (value);                                          \
    }                                                            \
    return;

#define LANES_OF(NAME, C, type)                                        \
  static void lanes_##NAME(vyre__op op, uint32_t n, const uint64_t *a, \
                           const uint64_t *b, const uint64_t *c,       \
                           uint64_t *out) {                            \
    typedef C word;                                                    \
    switch (op) {                                                      \
      default:                                                         \
        return;                                                        \
        VYRE__##NAME##_OPS(LANES)                                      \
    }                                                                  \
  }
VYRE__SCALAR_TYPES(LANES_OF)

/* Common casts. Returns false for others. */
static bool lanes_cast(vyre_type from, vyre_type to, uint32_t n,
                       const uint64_t *a, uint64_t *out) {
  bool narrow = to == VYRE_TYPE_U32 || to == VYRE_TYPE_I32;
  if (narrow && from != VYRE_TYPE_F32 && from != VYRE_TYPE_F64) {
    for (uint32_t i = 0; i < n; i++) out[i] = (uint32_t)a[i];
    return true;
  }
  if (from == VYRE_TYPE_F32 && to == VYRE_TYPE_U32) {
    for (uint32_t i = 0; i < n; i++) {
      out[i] = vyre__f32_to_u32(vyre__f32(a[i]));
    }
    return true;
  }
  if (from == VYRE_TYPE_F32 && to == VYRE_TYPE_I32) {
    for (uint32_t i = 0; i < n; i++) {
      out[i] = vyre__of_i32(vyre__f32_to_i32(vyre__f32(a[i])));
    }
    return true;
  }
  if (to == VYRE_TYPE_F32 && from == VYRE_TYPE_U32) {
    for (uint32_t i = 0; i < n; i++)
      out[i] = vyre__of_f32((float)vyre__u32(a[i]));
    return true;
  }
  if (to == VYRE_TYPE_F32 && from == VYRE_TYPE_I32) {
    for (uint32_t i = 0; i < n; i++) {
      out[i] = vyre__of_f32((float)vyre__i32(a[i]));
    }
    return true;
  }
  return false;
}

/* Rare casts, and bitcasts. */
static void convert(vyre__op op, vyre_type from, vyre_type to, uint32_t n,
                    const uint64_t *a, uint64_t *out) {
  for (uint32_t i = 0; i < n; i++) {
    const uint64_t args[3] = {a[i]};
    bool is_ok = vyre__scalar_apply(op, from, to, args, &out[i]);
    assert(is_ok);
    (void)is_ok;
  }
}

static void lanes_select(uint32_t n, const uint64_t *a, const uint64_t *b,
                         const uint64_t *c, uint64_t *out) {
  INDEPENDENT
  for (uint32_t i = 0; i < n; i++) out[i] = a[i] ? b[i] : c[i];
}

void ref_lanes(vyre__op op, vyre_type operand, vyre_type result, uint32_t n,
               const uint64_t *const args[3], uint64_t *out) {
  /* The loops read three operands, even if the operation has fewer. */
  const uint64_t *a = args[0];
  const uint64_t *b = args[1] ? args[1] : a, *c = args[2] ? args[2] : a;
  if (op == VYRE__OP_SELECT) {
    lanes_select(n, a, b, c, out);
    return;
  }
  if (op == VYRE__OP_CAST && lanes_cast(operand, result, n, a, out)) return;
  if (op == VYRE__OP_CAST || op == VYRE__OP_BITCAST) {
    convert(op, operand, result, n, a, out);
    return;
  }
  switch (operand) {
#define LANES_TYPE(NAME, C, type)      \
  case VYRE_TYPE_##NAME:               \
    lanes_##NAME(op, n, a, b, c, out); \
    break;
    VYRE__SCALAR_TYPES(LANES_TYPE)
    default: /* no other type has values */
      break;
  }
}
