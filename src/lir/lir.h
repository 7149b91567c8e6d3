/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The lowered kernel: what emitters spell.
 *
 * One array of instructions, in the order in which they happen. A value is the
 * number of the instruction that makes it; it is made once, and used only after
 * it, in the same block or in blocks inside of that; the STEP of a loop also sees
 * what its body made before the first CONTINUE. What changes is in variables
 * (GET, SET). Control flow is structured by markers in the array.
 *
 * Types are bool, u32, u64, f32 and f64 (vyre_type without the signed ones).
 * After the last pass everything is explicit: no access leaves its buffer, no
 * division is by zero, no shift is too far, every float operation is one that
 * the target does right. An emitter spells one operation at a time.
 *
 * A kernel with grid barriers is several phases, each a run of instructions of
 * its own; the host runs them as `steps` says, with a barrier of the whole
 * dispatch between two. What lives across goes through a hidden buffer. */
#ifndef VYRE_LIR_LIR_H
#define VYRE_LIR_LIR_H

#include "vyre/binding.h"
#include "vyre/status.h"

#include "ir/ir.h"

/* Hash of the sources that decide what code a kernel becomes, made by the build. Part
 * of the cache's key, so that code of another version of the compiler is not used. */
extern const char vyre__lowering_hash[];

typedef uint32_t vyre__val; /* number of an instruction; 0: none */

typedef enum vyre__lir_op {
#define LOW(name, text, operands, flags) VYRE__LIR_##name,
#include "lir/ops.def"
#undef LOW
  VYRE__LIR_COUNT
} vyre__lir_op;

enum {
  VYRE__LIRF_PURE = 1,
  VYRE__LIRF_HIGH = 2,
  VYRE__LIRF_READS = 4,  /* a buffer */
  VYRE__LIRF_WRITES = 8, /* a buffer */
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

/* Bits in `hints` of an instruction: they never change a meaning. */
enum {
  VYRE__HINT_RARE = 1,   /* IF: hardly ever taken (of a library function) */
  VYRE__HINT_PROVEN = 2, /* LOAD, STORE, atomics: needed no check */
  VYRE__HINT_TEST = 4,   /* IF: the test of its loop */
};

typedef struct vyre__lir_inst {
  uint8_t op;   /* vyre__lir_op */
  uint8_t type; /* vyre_type of the value; VOID if there is none */
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
  const char *name; /* of the local it comes from, or what it is for */
  uint8_t type;     /* vyre_type */
} vyre__lir_var;

typedef struct vyre__lir_buffer {
  const char *name;
  uint32_t source; /* index in the program, or VYRE_NO_INDEX: hidden */
  uint8_t kind;    /* vyre_memory: global, shared, uniform, persistent */
  uint8_t width;   /* bytes that LOAD and STORE touch: 1, 2, 4 or 8 */
  uint8_t unit;    /* bytes of an element as the program counts them: LEN is
                       in these; other than width where words are accessed */
  bool is_written; /* somewhere in the kernel, atomically too */
  bool is_atomic;  /* some access is atomic */
  bool needs_zero; /* shared: zeros at the start of a phase are seen */
  uint32_t count;  /* elements (of `unit`) where the program fixes it; else 0 */
} vyre__lir_buffer;

/* A LOOP that comes from a `for`. Others have is_counted false. */
typedef struct vyre__lir_loop {
  bool is_counted;
  uint8_t kind; /* vyre__loop */
  bool is_signed;
  uint32_t var;           /* its variable */
  vyre__val first, bound; /* values made before the loop */
  uint64_t step;
  uint64_t max_trips; /* UINT64_MAX: not known */
  /* The upper halves, of a loop around a grid barrier whose 64-bit variable
   * became two: such a loop stays counted, because the host runs it. Other loops
   * over a split variable are not counted. high_var of 0: not split. */
  uint32_t high_var;
  vyre__val first_high, bound_high;
} vyre__lir_loop;

/* A phase: instructions [begin, end), a kernel body of its own. */
typedef struct vyre__lir_phase {
  uint32_t begin, end;
} vyre__lir_phase;

/* What the host does, in order. FOR .. END_FOR enclose steps; the variable of
 * loop k is LOOP_VALUE k in the phases inside. */
typedef enum vyre__lir_step_kind {
  VYRE__STEP_RUN,
  VYRE__STEP_FOR,
  VYRE__STEP_END_FOR,
} vyre__lir_step_kind;

typedef struct vyre__lir_step {
  uint8_t kind;
  uint8_t loop_kind;      /* FOR: vyre__loop */
  uint8_t type;           /* FOR: vyre_type of the program, signed ones too */
  uint32_t phase;         /* RUN */
  uint32_t loop;          /* FOR, END_FOR: number of the loop */
  vyre__val first, bound; /* FOR: values of the host range */
  uint64_t step;
} vyre__lir_step;

typedef struct vyre__lir_kernel {
  const char *name;
  const vyre_program *program; /* borrowed: names, buffers, places */
  uint32_t workgroup[3];
  vyre__lir_inst *code;          /* [0] is NONE */
  vyre__source_loc *source_locs; /* one an instruction */
  uint32_t count;
  vyre__lir_var *vars;
  uint32_t var_count;
  vyre__lir_buffer
      *buffers; /* those of the program in its order, then hidden */
  uint32_t buffer_count;
  vyre__lir_loop *loops;
  uint32_t loop_count;

  vyre__lir_phase host;    /* computes bounds of grid loops from constants, len,
                           uniforms and LOOP_VALUE of loops around; run at the
                           start of each FOR; empty if there are none */
  vyre__lir_phase *phases; /* one, without grid barriers */
  uint32_t phase_count;
  vyre__lir_step *steps;
  uint32_t step_count;
  uint32_t grid_loop_count;
  uint32_t spill_buffer; /* buffer that keeps what lives across grid barriers,
                            or VYRE_NO_INDEX */
  uint32_t spill_words;  /* u32 words of it an invocation; in all, see
                            vyre__lir_spill_words */
  bool has_barrier, has_fuel;
  uint32_t access_count, proven_count; /* of the program's accesses */
} vyre__lir_kernel;

/* --- for who launches a kernel ------------------------------------------------
 *
 * Indices in a lowered kernel are u32 and are not looked at again where they are
 * scaled, so memory that needs larger ones is refused before anything runs, and
 * so are grids whose ids would not fit, and buffers with fewer elements than the
 * program says: accesses were proven against that. It is done by who binds the
 * buffers (a driver, the interpreter, the program that an emitter writes), and
 * all of them take the limits from here. */

/* How many elements (of `unit`) can be bound there at most. Those of 8 bytes that
 * are accessed by halves have twice as many places. */
uint32_t vyre__lir_max_elements(const vyre__lir_buffer *buffer);

/* Whether that many can: not fewer than the program fixes either. */
bool vyre__lir_buffer_fits(const vyre__lir_buffer *buffer, uint64_t elements);

/* How many workgroups the grid may have in that axis, so that ids have 32 bits
 * if the kernel asks for them; UINT32_MAX: any number. */
uint32_t vyre__lir_max_groups(const vyre__lir_kernel *kernel, unsigned axis);

static inline uint32_t vyre__lir_group_size(const vyre__lir_kernel *k) {
  return k->workgroup[0] * k->workgroup[1] * k->workgroup[2];
}

/* How many u32 words the hidden buffer has for that many invocations, all of the
 * dispatch; 0 if there is none. False: more than can be indexed. */
bool vyre__lir_spill_words(const vyre__lir_kernel *kernel, uint64_t invocations,
                           uint64_t *words);

/* How many invocations a dispatch may have for that. */
static inline uint64_t vyre__lir_max_invocations(const vyre__lir_kernel *k) {
  if (k->spill_buffer == VYRE_NO_INDEX || k->spill_words == 0)
    return UINT64_MAX;
  return UINT32_MAX / k->spill_words;
}

/* Returns true if the bytes of @p buffer may change while the kernel runs, by its own
 * invocations or by others: all memory of the caller, `read` buffers too. A launch
 * has its own copy of uniforms, and an invocation has its part of the hidden buffer
 * for itself (analyze/racy_guards.h). Shared memory changes only where invocations of a
 * workgroup run at the same time, which is for the emitter to know. */
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

/* What LOOP_VALUE gives where the variable of the grid loop is @p value. */
static inline uint64_t vyre__lir_loop_value(const vyre__lir_inst *inst,
                                            uint64_t value) {
  if (inst->type == VYRE_TYPE_U64) return value;
  return (uint32_t)(inst->c ? value >> 32 : value);
}

/* What a pure operation that is not HIGH gives: bits as ir.h has them. @p from
 * is the type of the first operand (of the second for SELECT). False if @p op is
 * no such operation. Floats: between vyre__float_begin and _end. */
bool vyre__lir_eval(vyre__lir_op op, vyre_type from, vyre_type type,
                    const uint64_t args[3], uint64_t *out);

/* Text of a kernel, for people. False if the writer refused. */
bool vyre__lir_print(const vyre__lir_kernel *kernel, vyre_writer writer);

/* What to do about a kernel that is not as it should be: it is not the
 * program's fault. */
#define VYRE__LIR_DEFECT                                                   \
  "report it as a defect of vyre, with what `vyre emit FILE --to lowered " \
  "--dump-after PASS` prints"

/* Whether everything that the comment above promises holds. @p stage says how
 * far it has come: HIGH operations and GRID_BARRIER may remain or not.
 * Errors: VYRE_KERNEL_COMPILE_FAILED naming the instruction;
 * VYRE_OUT_OF_MEMORY. */
typedef enum vyre__lir_stage {
  VYRE__STAGE_BUILD,   /* as built from the program */
  VYRE__STAGE_FLOATS,  /* every operation is the target's */
  VYRE__STAGE_CONTROL, /* phases, fuel, zeros */
} vyre__lir_stage;
vyre_code vyre__lir_verify(const vyre__lir_kernel *kernel,
                           vyre__lir_stage stage, vyre_allocator allocator,
                           vyre_status *st);

/* --- the target ------------------------------------------------------------- */

typedef enum vyre__form_of_op {
  VYRE__FLOAT_MODE_NATIVE,    /* right as it is */
  VYRE__FLOAT_MODE_CORRECTED, /* a short sequence makes it right */
  VYRE__FLOAT_MODE_SOFT,      /* u32 arithmetic only */
} vyre__form_of_op;

typedef enum vyre__math_variant {
  VYRE__MATH_F64,       /* f64 arithmetic, its fma too */
  VYRE__MATH_F64_NOFMA, /* f64 arithmetic without fma */
  VYRE__MATH_U32,       /* integers only */
} vyre__math_variant;

/* What a device can do. Zeroed: everything, natively. */
typedef struct vyre__target {
  uint8_t f32[VYRE__LIR_COUNT]; /* vyre__form_of_op of each float operation */
  uint8_t math;                 /* vyre__math_variant */
  bool no_f64, no_u64; /* f64 then is refused, u64 is split in two u32 */
  /* 64-bit atomics that are missing in buffers, in shared memory; no_u64 implies
   * both. An atomic_add whose result is not used is then two 32-bit atomics; other
   * ones are refused. */
  bool no_buffer_atomics64, no_shared_atomics64;
  bool no_narrow;   /* no 8- and 16-bit memory access: words, and stores by
                           atomic and, or */
  bool f32_as_bits; /* f32 values are u32 everywhere; all forms are SOFT */
  bool
      counts_iterations; /* count every loop iteration, also in a kernel that is
                            proven to take few (lower/trip_count.h) */
  uint32_t workgroup[3]; /* x of 0: the program's */
  uint32_t max_instructions; /* that a kernel may have on the way; 0: 2^28 */
} vyre__target;

/* --- lowering ---------------------------------------------------------------- */

/* The passes in their order; each leaves a kernel that can be printed. Unless
 * the result of `build` is to be printed, `legalize-floats` rewrites each instruction
 * while it is built. */
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

/* Lowers @p program (valid, with a body) for @p target, up to and with pass
 * @p last. *out lives in @p arena and borrows the program. For PASS_INLINE
 * nothing is made but *inlined (vyre_program_release), which is NULL otherwise.
 * Errors: VYRE_UNSUPPORTED_FEATURE for print, push, f64 on a target without, or
 * more instructions than the target takes; VYRE_OUT_OF_MEMORY;
 * VYRE_KERNEL_COMPILE_FAILED if a pass left a kernel that does not verify. */
vyre_code vyre__lower(const vyre_program *program, const vyre__target *target,
                      vyre__pass last, vyre_arena *arena,
                      const vyre__lir_kernel **out, vyre_program **inlined,
                      vyre_status *st);

#endif
