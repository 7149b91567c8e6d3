/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Lowered IR (LIR): the form of a kernel that the code generators read.
 *
 * A kernel is one array of instructions in execution order. A value is named by
 * the index of the instruction that defines it. It is defined once and used
 * only later, in the same block or in blocks nested in it. The STEP block of a
 * loop also sees values that the body defined before its first CONTINUE.
 * Mutable state lives in variables (GET, SET). Marker instructions (IF, LOOP,
 * END, ...) give the array its structured control flow.
 *
 * The types are bool, u32, u64, f32 and f64: vyre_type without the signed
 * integers. After the last pass every precondition holds explicitly. No access
 * leaves its buffer, no divisor is zero, no shift amount reaches the width, and
 * the target computes every remaining float operation exactly. A code generator
 * can therefore translate one operation at a time.
 *
 * A kernel with grid barriers is cut into phases, each with its own range of
 * instructions. The host launches them in the order of `steps`, with a barrier
 * over the dispatch between two launches. Values that live across a grid
 * barrier are stored in the spill buffer. */
#ifndef VYRE_LIR_LIR_H
#define VYRE_LIR_LIR_H

#include "vyre/binding.h"
#include "vyre/status.h"

#include "ir/ir.h"

/* Hash of the sources that decide which code a kernel compiles to. The build
 * generates it. It is part of the cache key, so that code from another version
 * of the compiler is never reused. */
extern const char vyre__lowering_hash[];

typedef uint32_t vyre__val; /* instruction index; 0: no value */

typedef enum vyre__lir_op {
#define LIR(name, text, operands, flags, types, value) VYRE__LIR_##name,
#include "lir/ops.def"
#undef LIR
  VYRE__LIR_COUNT
} vyre__lir_op;

enum {
  VYRE__LIRF_0 = 0,
  VYRE__LIRF_PURE = 1,
  VYRE__LIRF_HIGH = 2,
  VYRE__LIRF_READS = 4,  /* reads a buffer */
  VYRE__LIRF_WRITES = 8, /* writes a buffer */
  VYRE__LIRF_ATOMICS = 16,
  VYRE__LIRF_CONTROL = 32,
  VYRE__LIRF_JUMPS = 64,
  VYRE__LIRF_BARRIER = 128,
  VYRE__LIRF_GRID_BARRIER = 256,
  VYRE__LIRF_WRITES_VAR = 512,
  VYRE__LIRF_PURE_HIGH = VYRE__LIRF_PURE | VYRE__LIRF_HIGH,
};

typedef struct vyre__lir_info {
  const char *name, *text;
  uint8_t operands;
  uint16_t flags; /* VYRE__LIRF_* */
} vyre__lir_info;

extern const vyre__lir_info vyre__lir_ops[VYRE__LIR_COUNT];

/* Bits in `hints` of an instruction. They never change its meaning. */
enum {
  VYRE__HINT_RARE = 1,     /* IF: hardly ever taken (in a library function) */
  VYRE__HINT_PROVEN = 2,   /* LOAD, STORE, atomics: the index was proven */
  VYRE__HINT_TEST = 4,     /* IF: the condition of its loop */
  VYRE__HINT_VERSION = 8,  /* IF: the other arm does the same, more slowly */
  VYRE__HINT_NO_WRAP = 16, /* ADD: the sum is below 2^32 */
};

typedef struct vyre__lir_inst {
  uint8_t op;   /* vyre__lir_op */
  uint8_t type; /* vyre_type of the value, or VYRE_TYPE_VOID */
  uint16_t hints;
  uint32_t aux;
  union {
    uint32_t v[4];
    struct {
      uint32_t a, b, c, d;
    };
  };
} vyre__lir_inst;

typedef struct vyre__lir_var {
  const char *name; /* name of the local variable, or its purpose */
  uint8_t type;     /* vyre_type */
} vyre__lir_var;

typedef struct vyre__lir_buffer {
  const char *name;
  uint32_t source; /* index in the program; VYRE_NO_INDEX: internal */
  uint8_t kind;    /* vyre_memory: global, shared, uniform, persistent */
  uint8_t width;   /* bytes of one LOAD or STORE: 1, 2, 4 or 8 */
  bool is_written; /* the kernel writes it, perhaps only atomically */
  bool is_atomic;  /* at least one access is atomic */
  bool needs_zero; /* shared: the kernel can read the initial zeros */
  uint32_t unit;   /* bytes of one element of the program. LEN counts these.
                    * Differs from width where elements are accessed as
                    * words. */
  uint32_t count;  /* elements (of `unit`) if the program fixes them; else 0 */
  /* shared: elements of a table, which is never written; NULL otherwise */
  const unsigned char *table;
  /* shared: each invocation has its own elements; see target.private_arrays */
  bool is_private;
} vyre__lir_buffer;

/* A LOOP. is_counted is true if it comes from a `for` statement. */
typedef struct vyre__lir_loop {
  bool is_counted;
  uint8_t kind; /* vyre__loop */
  bool is_signed;
  uint32_t var;           /* loop variable */
  vyre__val first, bound; /* values defined before the loop */
  uint64_t step;
  uint64_t max_trips; /* UINT64_MAX: unknown */
  /* Upper halves of a 64-bit loop variable that was split in two, for a loop
   * around a grid barrier. Such a loop stays counted because the host runs it.
   * Other loops over a split variable are not counted. high_var 0: not
   * split. */
  uint32_t high_var;
  vyre__val first_high, bound_high;
} vyre__lir_loop;

/* A phase: instructions [begin, end). It is a complete kernel body. */
typedef struct vyre__lir_phase {
  uint32_t begin, end;
} vyre__lir_phase;

/* Host schedule, in order. FOR and END_FOR enclose steps. The phases inside
 * read the variable of loop k as LOOP_VALUE k. */
typedef enum vyre__lir_step_kind {
  VYRE__STEP_RUN,
  VYRE__STEP_FOR,
  VYRE__STEP_END_FOR,
} vyre__lir_step_kind;

typedef struct vyre__lir_step {
  uint8_t kind;
  uint8_t loop_kind;      /* FOR: vyre__loop */
  uint8_t type;           /* FOR: vyre_type in the program, may be signed */
  uint32_t phase;         /* RUN: index of the phase */
  uint32_t loop;          /* FOR, END_FOR: index of the grid loop */
  uint32_t left_flag;     /* FOR: see vyre__lir_kernel.alive_flag */
  vyre__val first, bound; /* FOR: values defined in the host range */
  uint64_t step;
} vyre__lir_step;

/* State of an invocation in the current iteration of a grid loop. */
typedef enum vyre__loop_state {
  VYRE__LOOP_RUNS,
  VYRE__LOOP_CONTINUED, /* it waits for the next iteration */
  VYRE__LOOP_LEFT,
} vyre__loop_state;

typedef struct vyre__lir_kernel {
  const char *name;
  const vyre_program *program; /* borrowed: names, buffers, source locations */
  uint32_t workgroup[3];
  vyre__lir_inst *code;          /* code[0] is VYRE__LIR_NONE */
  vyre__source_loc *source_locs; /* one per instruction */
  uint32_t count;
  vyre__lir_var *vars;
  uint32_t var_count;
  vyre__lir_buffer
      *buffers; /* buffers of the program in its order, then internal ones */
  uint32_t buffer_count;
  vyre__lir_loop *loops;
  uint32_t loop_count;

  vyre__lir_phase host;    /* Computes the bounds of grid loops from constants,
                            * len, uniforms and LOOP_VALUE of enclosing loops.
                            * Evaluated at the start of each FOR. Empty without
                            * grid loops. */
  vyre__lir_phase *phases; /* exactly one without grid barriers */
  uint32_t phase_count;
  vyre__lir_step *steps;
  uint32_t step_count;
  uint32_t grid_loop_count;
  uint32_t spill_buffer; /* buffer for values that live across grid barriers, or
                          * VYRE_NO_INDEX */
  uint32_t spill_words;  /* u32 words of it per invocation */
  /* Number + 1 of the spill word that becomes 0 when the invocation returns, or
   * 0 without such a word. The left_flag of a grid loop is the number + 1 of a
   * word with a vyre__loop_state. */
  uint32_t alive_flag;
  bool has_barrier, has_fuel;
  uint32_t access_count, proven_count; /* accesses in the program, and those
                                        * whose index is proven */
} vyre__lir_kernel;

/* --- limits of a launch ------------------------------------------------------
 *
 * LIR indices are u32, and index scaling is not checked for overflow. The
 * following launches must therefore be rejected before any code runs: buffers
 * that need larger indices, grids whose ids exceed 32 bits, and buffers with
 * fewer elements than the program declares (bounds proofs rely on that number).
 * The code that binds the buffers does the check: the runtime, the LIR
 * interpreter, or the generated C. All of them take the limits from the
 * functions below. */

/* Returns the maximum number of elements (of `unit`) of a bound buffer. It is
 * lower if elements are accessed in halves: two indices per element. */
uint32_t vyre__lir_max_elements(const vyre__lir_buffer *buffer);

/* Returns true if a buffer of @p elements may be bound: neither more than the
 * maximum nor fewer than the program declares. */
bool vyre__lir_buffer_fits(const vyre__lir_buffer *buffer, uint64_t elements);

/* Returns the maximum number of workgroups in @p axis, so that global ids fit
 * 32 bits if the kernel uses them. UINT32_MAX: no limit. */
uint32_t vyre__lir_max_groups(const vyre__lir_kernel *kernel, unsigned axis);

static inline uint32_t vyre__lir_group_size(const vyre__lir_kernel *k) {
  return k->workgroup[0] * k->workgroup[1] * k->workgroup[2];
}

/* Returns the maximum number of invocations of a dispatch, as limited by the
 * spill buffer. */
static inline uint64_t vyre__lir_max_invocations(const vyre__lir_kernel *k) {
  if (k->spill_buffer == VYRE_NO_INDEX || k->spill_words == 0)
    return UINT64_MAX;
  return UINT32_MAX / k->spill_words;
}

/* Returns true if the bytes of @p buffer may change while the kernel runs,
 * through its own invocations or other threads. This holds for all memory of
 * the caller, `read` buffers included. It does not hold for uniforms, which
 * each launch copies, nor for the spill buffer, where each invocation has its
 * own words (analyze/racy_guards.h). Shared memory changes only if invocations
 * of a workgroup run concurrently, which depends on the code generator. */
static inline bool vyre__lir_may_change(const vyre__lir_kernel *k,
                                        uint32_t buffer) {
  uint8_t kind = k->buffers[buffer].kind;
  return kind != VYRE_MEMORY_SHARED && kind != VYRE_MEMORY_UNIFORM &&
         buffer != k->spill_buffer;
}

static inline vyre_type vyre__lir_type(vyre_type type) {
  if (type == VYRE_TYPE_I32) return VYRE_TYPE_U32;
  if (type == VYRE_TYPE_I64) return VYRE_TYPE_U64;
  return type;
}

static inline uint64_t vyre__lir_const(const vyre__lir_inst *inst) {
  return (uint64_t)inst->d << 32 | inst->c;
}

/* Returns the value of LOOP_VALUE while the grid loop's variable is @p
 * value. */
static inline uint64_t vyre__lir_loop_value(const vyre__lir_inst *inst,
                                            uint64_t value) {
  if (inst->type == VYRE_TYPE_U64) return value;
  return (uint32_t)(inst->c ? value >> 32 : value);
}

/* Evaluates a pure operation that is not HIGH, on bits in the encoding of ir.h.
 * @p from is the type of the first operand (for SELECT, of the second). Returns
 * false for any other operation. Float operations must run between
 * vyre__float_begin and vyre__float_end. */
bool vyre__lir_eval(vyre__lir_op op, vyre_type from, vyre_type type,
                    const uint64_t args[3], uint64_t *out);

/* Prints a kernel as text. Returns false if the writer failed. */
bool vyre__lir_print(const vyre__lir_kernel *kernel, vyre_writer writer);

/* Fix line for invalid LIR. The cause is a bug in the compiler, not an error in
 * the program. */
#define VYRE__LIR_DEFECT                                                   \
  "report it as a defect of vyre, with what `vyre emit FILE --to lowered " \
  "--dump-after PASS` prints"

/* Checks all rules at the top of this file. @p stage states how far lowering
 * has come, that is, if HIGH operations and GRID_BARRIER are still allowed.
 * Errors: VYRE_KERNEL_COMPILE_FAILED naming the instruction;
 * VYRE_OUT_OF_MEMORY. */
typedef enum vyre__lir_stage {
  VYRE__STAGE_BUILD,   /* as built from the program */
  VYRE__STAGE_FLOATS,  /* only operations of the target */
  VYRE__STAGE_CONTROL, /* with phases, fuel checks and zeroing code */
} vyre__lir_stage;
vyre_code vyre__lir_verify(const vyre__lir_kernel *kernel,
                           vyre__lir_stage stage, vyre_allocator allocator,
                           vyre_status *st);

/* --- the target ----------------------------------------------------------- */

typedef enum vyre__form_of_op {
  VYRE__FLOAT_MODE_NATIVE,    /* the native result is exact */
  VYRE__FLOAT_MODE_CORRECTED, /* extra operations correct the native result */
  VYRE__FLOAT_MODE_SOFT,      /* u32 arithmetic only */
} vyre__form_of_op;

typedef enum vyre__math_variant {
  VYRE__MATH_F64,       /* f64 arithmetic, including fma */
  VYRE__MATH_F64_NOFMA, /* f64 arithmetic without fma */
  VYRE__MATH_U32,       /* integers only */
} vyre__math_variant;

/* Capabilities of a device. Zeroed: every operation is native. */
typedef struct vyre__target {
  uint8_t f32[VYRE__LIR_COUNT]; /* vyre__form_of_op of each float operation */
  uint8_t math;                 /* vyre__math_variant of the math functions */
  bool no_f64, no_u64; /* no_f64: kernels with f64 are rejected; no_u64: u64 is
                        * split into two u32 */
  /* Missing 64-bit atomics in buffers and in shared memory. no_u64 implies
   * both. An atomic_add with an unused result then becomes two 32-bit atomics;
   * every other 64-bit atomic is rejected. */
  bool no_buffer_atomics64, no_shared_atomics64;
  bool has_subgroups; /* Has EXCHANGE and BALLOT. Otherwise they become accesses
                       * to shared memory. */
  bool has_sum_strips; /* Has SUM_ADD, and settles changed sums at the end of a
                           * launch. Otherwise the kernel does both. */
  bool no_narrow;      /* no 8- and 16-bit memory access: loads access words,
                           * stores use an atomic and plus an atomic or */
  bool private_arrays; /* Code has memory of one invocation. Otherwise the
                           * arrays of all invocations of a workgroup are one
                           * array in shared memory. */
  bool f32_as_bits;    /* f32 values are u32 everywhere; every float mode is
                           * SOFT */
  bool counts_iterations; /* Counts every loop iteration, even in kernels with a
                           * proven small trip count (lower/trip_count.h). */
  uint32_t workgroup[3];  /* workgroup size; x of 0: the program's */
  uint32_t max_instructions; /* limit during lowering; 0: 2^28 */
} vyre__target;

/* --- lowering ------------------------------------------------------------- */

/* The passes in execution order. The result of each pass can be printed.
 * `legalize-floats` runs while instructions are built, unless the result of
 * `build` is wanted. */
#define VYRE__PASS_MAP(X)                                                     \
  X(INLINE, "inline", "functions inlined; still a program")                   \
  X(BUILD, "build", "instructions, checks only where an index is not proven") \
  X(LEGALIZE_FLOATS, "legalize-floats",                                       \
    "total integer division, NaN rule, float modes, math functions")          \
  X(LEGALIZE_MEMORY, "legalize-memory",                                       \
    "narrow elements as words, 64-bit integers as pairs")                     \
  X(CSE_DCE, "cse-dce", "common subexpressions and dead code removed")        \
  X(LEGALIZE_CONTROL, "legalize-control",                                     \
    "loop fuel, zeroed shared memory, grid barriers split into phases")

typedef enum vyre__pass {
#define VYRE__X3(name, text, about) VYRE__PASS_##name,
  VYRE__PASS_MAP(VYRE__X3) VYRE__PASS_COUNT
#undef VYRE__X3
} vyre__pass;

/* Lowers @p program (valid, with a body) for @p target, up to and including
 * pass @p last. *out lives in @p arena and borrows the program. For
 * PASS_INLINE, *inlined is the only result; release it with
 * vyre_program_release. It is NULL for all other passes.
 * Errors: VYRE_UNSUPPORTED_FEATURE for print, push, f64 on a target without it,
 * or more instructions than the target allows; VYRE_OUT_OF_MEMORY;
 * VYRE_KERNEL_COMPILE_FAILED if a pass produced a kernel that fails
 * verification. */
vyre_code vyre__lower(const vyre_program *program, const vyre__target *target,
                      vyre__pass last, vyre_arena *arena,
                      const vyre__lir_kernel **out, vyre_program **inlined,
                      vyre_status *st);

#endif
