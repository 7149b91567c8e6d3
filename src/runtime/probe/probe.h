/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What a device really does with floats: edges and random numbers through each
 * operation, held against exact arithmetic.
 *
 * An operation that is right as it is has the form native. If not, it is tried
 * again in the next form, which the backend compiles if a pipeline's numbers ask
 * for it, and so on to soft, which is right on anything that can count. f64 has
 * no other forms: what is wrong there is called soft and is not to be used.
 *
 * What was found is remembered in the process, and in the cache directory, if it
 * is there: a device is probed once for each version of its driver. */
#ifndef VYRE_RUNTIME_PROBE_PROBE_H
#define VYRE_RUNTIME_PROBE_PROBE_H

#include "runtime/runtime.h"

/* X(enumerator, name, operation, of, to, operands, expression): the type of
 * operands and of the result, and the text that is compiled. A result that is a
 * bool is stored as u32. */
#define VYRE__FLOAT_OP_MAP(X)                               \
  X(F32_COPY, "f32 copy", CAST, F32, F32, 1, "f32(x)")      \
  X(F32_NEG, "f32 negate", NEG, F32, F32, 1, "-x")          \
  X(F32_ABS, "f32 abs", ABS, F32, F32, 1, "abs(x)")         \
  X(F32_SIGN, "f32 sign", SIGN, F32, F32, 1, "sign(x)")     \
  X(F32_ADD, "f32 +", ADD, F32, F32, 2, "x + y")            \
  X(F32_SUB, "f32 -", SUB, F32, F32, 2, "x - y")            \
  X(F32_MUL, "f32 *", MUL, F32, F32, 2, "x * y")            \
  X(F32_DIV, "f32 /", DIV, F32, F32, 2, "x / y")            \
  X(F32_SQRT, "f32 sqrt", SQRT, F32, F32, 1, "sqrt(x)")     \
  X(F32_FMA, "f32 fma", FMA, F32, F32, 3, "fma(x, y, z)")   \
  X(F32_MIN, "f32 min", MIN, F32, F32, 2, "min(x, y)")      \
  X(F32_MAX, "f32 max", MAX, F32, F32, 2, "max(x, y)")      \
  X(F32_FLOOR, "f32 floor", FLOOR, F32, F32, 1, "floor(x)") \
  X(F32_CEIL, "f32 ceil", CEIL, F32, F32, 1, "ceil(x)")     \
  X(F32_TRUNC, "f32 trunc", TRUNC, F32, F32, 1, "trunc(x)") \
  X(F32_ROUND, "f32 round", ROUND, F32, F32, 1, "round(x)") \
  X(F32_RINT, "f32 rint", RINT, F32, F32, 1, "rint(x)")     \
  X(F32_EQ, "f32 ==", EQ, F32, BOOL, 2, "x == y")           \
  X(F32_NE, "f32 !=", NE, F32, BOOL, 2, "x != y")           \
  X(F32_LT, "f32 <", LT, F32, BOOL, 2, "x < y")             \
  X(F32_LE, "f32 <=", LE, F32, BOOL, 2, "x <= y")           \
  X(F32_TO_U32, "f32 to u32", CAST, F32, U32, 1, "u32(x)")  \
  X(F32_TO_I32, "f32 to i32", CAST, F32, I32, 1, "i32(x)")  \
  X(F32_TO_U64, "f32 to u64", CAST, F32, U64, 1, "u64(x)")  \
  X(F32_TO_I64, "f32 to i64", CAST, F32, I64, 1, "i64(x)")  \
  X(U32_TO_F32, "u32 to f32", CAST, U32, F32, 1, "f32(x)")  \
  X(I32_TO_F32, "i32 to f32", CAST, I32, F32, 1, "f32(x)")  \
  X(U64_TO_F32, "u64 to f32", CAST, U64, F32, 1, "f32(x)")  \
  X(I64_TO_F32, "i64 to f32", CAST, I64, F32, 1, "f32(x)")  \
  X(F64_ADD, "f64 +", ADD, F64, F64, 2, "x + y")            \
  X(F64_SUB, "f64 -", SUB, F64, F64, 2, "x - y")            \
  X(F64_MUL, "f64 *", MUL, F64, F64, 2, "x * y")            \
  X(F64_DIV, "f64 /", DIV, F64, F64, 2, "x / y")            \
  X(F64_SQRT, "f64 sqrt", SQRT, F64, F64, 1, "sqrt(x)")     \
  X(F64_FMA, "f64 fma", FMA, F64, F64, 3, "fma(x, y, z)")   \
  X(F64_RINT, "f64 rint", RINT, F64, F64, 1, "rint(x)")     \
  X(F64_LT, "f64 <", LT, F64, BOOL, 2, "x < y")             \
  X(F64_TO_F32, "f64 to f32", CAST, F64, F32, 1, "f32(x)")  \
  X(F32_TO_F64, "f32 to f64", CAST, F32, F64, 1, "f64(x)")

/* Index of an operation in a pipeline's numbers and a device's capabilities. */
typedef enum vyre__float_op {
#define VYRE__X7(name, text, op, of, to, operands, expression) \
  VYRE__FLOAT_OP_##name,
  VYRE__FLOAT_OP_MAP(VYRE__X7) VYRE__FLOAT_OP_COUNT
#undef VYRE__X7
} vyre__float_op;

/* All native, and never tested: what a device has that is exact by definition. */
extern const vyre_float_op_info vyre__float_op_is_exact[VYRE__FLOAT_OP_COUNT];

typedef struct vyre__probe_result {
  vyre_float_op_info classes[VYRE__FLOAT_OP_COUNT];
  bool is_remembered; /* by the process or a file: nothing was run */
} vyre__probe_result;

/* A second for all on an interpreter, of which more than half is the oracle. */
enum { VYRE__PROBE_VECTORS = 1 << 20 };

/* Runs it, @p vectors for each operation (0: VYRE__PROBE_VECTORS). What the
 * device does not have (f64, u64) is not tested. Nothing is remembered.
 * Errors: VYRE_UNSUPPORTED_FEATURE for an operation that is wrong in all forms;
 * those of compiling and dispatching. */
vyre_code vyre__probe_run(vyre_device *device, uint32_t vectors,
                          vyre__probe_result *out, vyre_status *st);

/* The same, or what is remembered of an earlier one; is remembered then. */
vyre_code vyre__probe_find(vyre_device *device, vyre__probe_result *out,
                           vyre_status *st);

/* --- results_file.c ------------------------------------------------------------*/

/* What a result belongs to: backend, device, driver, features (with the options
 * that change code), and what the library tests. Returns its length, 0 if it has
 * no room in @p key. */
enum { VYRE__PROBE_KEY = 4096 };
size_t vyre__probe_key(vyre_device *device, char key[VYRE__PROBE_KEY]);

/* A file "probe-<hash>" in the directory of the cache, where that is used. True if
 * there is one for this key and all of it is right. */
bool vyre__probe_load(const vyre__cache *cache, const char *key,
                      size_t key_length, vyre_float_op_info *classes);
/* Writes it whole or not at all. False: it is not there; nobody needs to know. */
bool vyre__probe_save(const vyre__cache *cache, const char *key,
                      size_t key_length, const vyre_float_op_info *classes);

#endif
