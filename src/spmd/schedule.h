/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The schedule: how one CPU thread runs the invocations of a phase.
 *
 * LIR describes one invocation. A schedule describes the loops around it: which
 * invocations share a vector, which code runs without masks because a test at
 * the start of a row or workgroup covers it, which rows run together. Passes
 * decide; the code generator emits what the schedule says.
 *
 *     LIR ─ interchange (LIR to LIR) ─ regions ─ lane shapes
 *                                                    │
 *                   codegen/llvm ◄─ passes ◄─ build ◄┘
 *
 * A schedule has two parts:
 *
 *   - a tree of nodes (vyre__sched_node). Inner nodes are loops and conditions, in
 *     execution order; leaves are ranges of LIR instructions. The tree answers
 *     "what runs when, and for which invocations".
 *   - tables with one entry per instruction, variable or buffer of the phase:
 *     regions, lane shapes, notes. They answer "what is true of this
 *     instruction wherever it runs".
 *
 * The tree of a kernel with one parallel region:
 *
 *     groups                    workgroups of the range, one after the other
 *       uniform 1..9            values that the workgroup computes once
 *       rows                    z and y; x in vectors of `width` invocations
 *         range full            vectors with all lanes active
 *           code 9..17
 *           if 17 masked
 *             code 18..22
 *         range edge            the other vectors of the row: lanes may be off
 *           ...
 *
 * Each range has its own copy of the code below it, because a range may know
 * more than another: the full range of a row that is split at `i < len(y)`
 * contains no test of it.
 *
 * To extend it: a pass is a row of VYRE__SCHEDULE_PASS_MAP and a function
 * that changes the schedule in place. A pass that finds another kind of range
 * (an interior in which max(i, 1) - 1 is linear) adds a RANGE node with a
 * condition and with `known` facts. A pass that runs instructions at another
 * place (values that depend on local_id only) moves them to a CODE leaf
 * elsewhere in the tree. A cost model walks the tree: the product of the
 * enclosing loops is how often a leaf runs, and vyre__access_kind_of says how
 * an access of a leaf touches memory. */
#ifndef VYRE_SPMD_SCHEDULE_H
#define VYRE_SPMD_SCHEDULE_H

#include "vyre/memory.h"
#include "vyre/writer.h"

#include "lir/lir.h"
#include "spmd/passes/shared_layout.h"
#include "spmd/regions.h"
#include "spmd/shape/lane_shape.h"

/* --- nodes ----------------------------------------------------------------*/

/* Kinds of nodes: X(enumerator, name in dumps). */
#define VYRE__SCHED_MAP(X)                                                     \
  X(PRIVATE, "private") /* private memory for atomics of a buffer */           \
  X(GROUPS, "groups")   /* loop over the workgroups of a call */               \
  X(FULL_GROUPS, "full-workgroups") /* if all guards hold; else: all others */ \
  X(UNIFORM, "uniform")       /* leaf: values computed once a workgroup */     \
  X(GROUP_IF, "group-if")     /* all invocations of the workgroup or none */   \
  X(GROUP_LOOP, "group-loop") /* in step for the workgroup */                  \
  X(GROUP_JUMP, "group-jump") /* break, continue or exit of the workgroup */   \
  X(BARRIER, "barrier")       /* nothing to do: one thread runs in order */    \
  X(MERGE, "merge")     /* leaf: adds the replica of a shared buffer to it */  \
  X(ROWS, "rows")       /* loop over z and y */                                \
  X(VECTORS, "vectors") /* all invocations of the workgroup in order,  \
                               * if the width does not divide rows */       \
  X(JAM, "unroll-jam")  /* a RANGE of several rows together */                 \
  X(RANGE, "range")     /* vectors of a row */                                 \
  X(PREFETCH, "prefetch") /* leaf: loads of an address chain, ahead */         \
  X(CODE, "code")         /* leaf: straight-line LIR */                        \
  X(IF, "if")                                                                  \
  X(LOOP, "loop")                                                              \
  X(ACCUMULATORS, "accumulators") /* one LOOP per group */                     \
  X(JUMP, "jump")                 /* leaf: break, continue or exit of lanes */

typedef enum vyre__sched_node_kind {
#define VYRE__X2(name, text) VYRE__SCHED_##name,
  VYRE__SCHED_MAP(VYRE__X2) VYRE__SCHED_COUNT
#undef VYRE__X2
} vyre__sched_node_kind;

typedef enum vyre__range_kind {
  VYRE__RANGE_FULL,    /* all lanes active; conditions of the range hold */
  VYRE__RANGE_EDGE,    /* lanes may be inactive; no condition is known */
  VYRE__RANGE_OUTSIDE, /* the only condition of the row fails in all lanes */
} vyre__range_kind;

/* Execution of an IF or a LOOP by the lanes of a vector. */
typedef enum vyre__sched_mode {
  VYRE__MODE_UNIFORM,   /* a branch: all active lanes agree */
  VYRE__MODE_SPECULATE, /* IF of && or ||: its code runs in any case */
  VYRE__MODE_SELECT,    /* IF: both arms run, lanes keep their results */
  VYRE__MODE_JUMP,      /* IF: the same, and its lanes leave by a jump */
  VYRE__MODE_MASKED,    /* lanes run an arm, or an iteration, under a mask */
} vyre__sched_mode;

typedef struct vyre__sched_node vyre__sched_node;
struct vyre__sched_node {
  uint8_t kind;
  uint8_t range;        /* RANGE: vyre__range_kind */
  uint8_t mode;         /* IF, LOOP: vyre__sched_mode */
  uint8_t group;        /* LOOP: bit of its accumulator group; 0: not split */
  uint32_t begin, end;  /* LIR instructions, markers included */
  uint32_t region;      /* GROUP_*, UNIFORM, ROWS, VECTORS: in regions */
  uint32_t subregion;   /* ROWS, VECTORS, RANGE, and nodes below a RANGE */
  const uint8_t *known; /* RANGE: vyre__known per value; NULL: nothing */
  uint32_t buffer;      /* PRIVATE, MERGE */
  uint32_t
      peel; /* LOOP: end of the tests at its top, if iterations that no lane
                  * leaves run without masks first; 0: not peeled */
  uint32_t wrap; /* LOOP: SET of the flag that ends it where the counter would
                  * wrap, if no peeled iteration needs it; 0: none */
  uint32_t streams; /* LOOP: loads that prefetch for later iterations */
  bool walks;       /* LOOP: lanes walk rows in it: see row_walk.c */
  const struct vyre__prefetch *prefetch; /* PREFETCH */
  struct vyre__jam *jam;                 /* JAM */
  struct vyre__row_split *split; /* ROWS: NULL before the pass range-split */
  vyre__sched_node *next;        /* in the same list; NULL: last */
  vyre__sched_node *body;        /* first node inside */
  vyre__sched_node *other; /* GROUP_IF, IF: else; GROUP_LOOP, LOOP: step */
};

/* --- tables ---------------------------------------------------------------*/

/* Knowledge about a value at compile time. */
typedef enum vyre__known {
  VYRE__UNKNOWN,
  VYRE__KNOWN_FALSE,
  VYRE__KNOWN_TRUE,
  VYRE__KNOWN_A, /* MIN, MAX, SELECT: equal to its operand a, b or c */
  VYRE__KNOWN_B,
  VYRE__KNOWN_C,
} vyre__known;

/* Facts about an instruction, mostly about ifs and loops (divergence.c). */
typedef struct vyre__sched_note {
  bool parts;      /* LOOP: needs `live`; lanes leave in different iterations */
  bool continues;  /* LOOP: needs `act`; lanes wait at its step */
  bool drops;      /* IF, LOOP: lanes active before may be inactive after */
  bool is_small;   /* IF: pure operations and variables only */
  bool is_hoisted; /* IF: evaluated at the start of the row */
  bool is_leap;    /* IF: the same, with a jump at its end */
  bool is_long;    /* LOOP: may run long; polls `stop` */
  bool is_row_load;  /* LOAD: the start of the row loads it */
  uint16_t ahead;    /* LOAD: bytes after it that are prefetched; 0: none */
  bool no_blend;     /* SET: the old value of inactive lanes is never read */
  uint32_t known_in; /* last subregion whose full range knows the value */
  vyre__val logic_a, logic_b; /* GET: equals a && b, or a || b; 0: neither */
  bool logic_or;
  bool
      is_straight; /* IF of && or ||: its contents are executed unconditionally .. */
  bool is_dead; /* .. and these SETs are dropped */
  uint8_t
      groups; /* LOOP: number of accumulator groups, run one after the other; 0: one. Inside it: the groups that need the instruction */
  uint32_t group_start; /* LOOP: SET of its counter */
  uint32_t split;       /* LOOP: first divergence in an iteration; 0: none */
  uint32_t together; /* LOAD, STORE: first access of its group, which the code
                      * generator merges: see interleave.c; 0: none */
  uint32_t together_last; /* first access of a group: the last one */
  uint32_t walk; /* LOAD: LOOP in which each lane walks a row; 0: none */
} vyre__sched_note;

/* Representation of a value or variable. */
typedef enum vyre__lane_form {
  VYRE__AS_NONE,
  VYRE__AS_SCALAR, /* one scalar for all lanes */
  VYRE__AS_LINEAR, /* the scalar of lane 0 and a stride */
  VYRE__AS_VECTOR,
} vyre__lane_form;

typedef struct vyre__sched_var {
  bool is_array;   /* one element per vector of the workgroup */
  uint8_t form;    /* vyre__lane_form */
  bool has_shadow; /* lockstep: keeps a scalar in addition to the vector */
  uint64_t stride;
} vyre__sched_var;

/* A comparison, or a condition that is uniform in the row. */
typedef struct vyre__row_condition {
  vyre__val v;    /* the bool */
  bool want;      /* its expected value */
  bool is_same;   /* uniform in the row: holds everywhere or nowhere */
  bool clips;     /* invocations for which it fails have nothing to do */
  bool in_loops;  /* a bounds check in a loop, for all iterations */
  bool is_clamp;  /* v is a MIN or MAX that equals its linear operand */
  bool by_group;  /* can be evaluated at the start of the workgroup */
  bool is_proven; /* it was: holds in this copy of the row */
} vyre__row_condition;

enum { VYRE__MAX_CONDITIONS = 32 };

/* Split of the rows of a subregion: see range_split.c. */
typedef struct vyre__row_split {
  uint32_t subregion;
  uint32_t effects_from; /* at top level: no side effect precedes it */
  uint8_t *shapes;       /* per value: how it changes along the row */
  uint8_t *known;        /* per value: vyre__known where all conditions hold */
  bool has_loop_ranges;
  bool is_jammed;      /* the rows have a JAM */
  bool has_loads;      /* its start loads elements: is_row_load */
  bool limit_is_point; /* .. equal to `limit` */
  vyre__val limit;     /* only invocations whose number is below this value do
                        * something: see row_limit.c; 0: none */
  vyre__row_condition conditions[VYRE__MAX_CONDITIONS];
  uint32_t count;
} vyre__row_split;

enum { VYRE__WALK_PARTS = 6 };

/* Terms of the index of a load in a loop that lanes share. The others do not
 * change in the loop: see row_walk.c. */
typedef struct vyre__walk {
  vyre__val parts[VYRE__WALK_PARTS];
  bool is_negative[VYRE__WALK_PARTS];
  uint32_t count;
  int32_t slope; /* growth of their sum in an iteration */
} vyre__walk;

enum { VYRE__MAX_JAMMED_ROWS = 4 };

/* Rows that run together: see unroll_jam.c. */
typedef struct vyre__jam {
  uint32_t subregion;
  uint32_t rows;
  bool *is_common; /* per instruction: shared by all rows */
} vyre__jam;

enum { VYRE__MAX_PREFETCH_STEPS = 24 };

/* Address chain of an access: see prefetch.c. */
typedef struct vyre__prefetch {
  uint32_t at;                              /* the access */
  uint32_t steps[VYRE__MAX_PREFETCH_STEPS]; /* instructions, in order */
  uint32_t count;
  uint32_t distance; /* invocations ahead */
  bool has_x;
} vyre__prefetch;

/* Atomics of a buffer: see privatize_atomics.c. */
typedef struct vyre__privatised {
  uint8_t op;        /* vyre__lir_op that all of them share */
  bool is_refused;   /* other accesses, or other operations */
  bool is_on;        /* a thread applies them to private memory */
  uint32_t elements; /* elements that fit */
  uint64_t times;    /* estimated executions per invocation */
  uint32_t replica;  /* shared memory: region in which odd lanes use a replica;
                      * 0: none */
} vyre__privatised;

/* --- schedules ------------------------------------------------------------*/

typedef struct vyre__schedule_options {
  uint32_t width;  /* invocations per vector: 1, 4, 8, 16 or 32 */
  uint32_t lanes;  /* 32-bit lanes of a vector register: 4, 8 or 16 */
  bool is_compact; /* small code: no copy for full workgroups */
  uint32_t off;    /* passes that do not run: vyre__pass_is_off */
} vyre__schedule_options;

typedef struct vyre__schedule {
  const vyre__lir_kernel *kernel;
  uint32_t phase;
  uint32_t width, lanes;
  bool is_compact;
  uint32_t off;
  vyre_arena *arena;
  vyre_status *st;

  vyre__regions r;
  vyre__lane_shapes shapes;
  bool *decides; /* per instruction of the kernel: spmd/passes/single_read.h */

  vyre__sched_note *notes; /* per instruction of the phase */
  vyre__sched_var *vars;   /* per variable of the kernel */
  bool *any_nan;     /* per buffer: NaN payloads in it are never observed */
  bool *lanes_leave; /* per subregion: lanes leave it at different points */
  uint64_t unpolled; /* iterations of an invocation without a poll of `stop` */

  /* Rows of invocations along x. */
  bool has_rows;     /* x counts along rows; otherwise VECTORS */
  bool is_fused;     /* rows span adjacent workgroups */
  bool overlaps;     /* vectors of a row may start anywhere and overlap */
  vyre__val fused_x; /* x of a fused row: global_id.x */

  vyre__privatised *privatised; /* per buffer; NULL before the pass */
  vyre__row_split **splits;     /* per subregion; NULL: not run by rows */

  vyre__sched_node *root; /* GROUPS, or PRIVATE nodes around it */
} vyre__schedule;

/* Passes in execution order: X(enumerator, name, description). */
#define VYRE__SCHEDULE_PASS_MAP(X)                                            \
  X(BUILD, "build", "loops over workgroups, rows and vectors around LIR")     \
  X(RANGE_SPLIT, "range-split",                                               \
    "rows split into a range where guards and bounds checks hold, and edges") \
  X(LOOP_RANGE, "loop-range",                                                 \
    "bounds checks in loops tested once a row, for all iterations")           \
  X(UNROLL_JAM, "unroll-jam", "rows that share loads run together")           \
  X(ACCUMULATOR_SPLIT, "accumulator-split",                                   \
    "loops with more accumulators than registers run once per group")         \
  X(PRIVATIZE_ATOMICS, "privatize-atomics",                                   \
    "atomics applied to private memory of the thread, or to a replica")       \
  X(LOOP_PEEL, "loop-peel",                                                   \
    "iterations that no lane leaves run without masks")                       \
  X(ROW_LOADS, "row-loads",                                                   \
    "elements that all invocations of a row load are loaded once")            \
  X(ROW_LIMIT, "row-limit", "rows after the last one with work skipped")      \
  X(SPECULATE, "speculate",                                                   \
    "small ifs whose accesses are safe in all lanes run without a branch")    \
  X(ROW_WALK, "row-walk", "rows that lanes walk along are loaded in blocks")  \
  X(INTERLEAVE, "interleave", "accesses to the fields of structures merged")  \
  X(PREFETCH, "prefetch",                                                     \
    "indirect accesses of later invocations, and streams, prefetched")        \
  X(FULL_WORKGROUPS, "full-workgroups",                                       \
    "workgroups in which all guards hold run code without them")

typedef enum vyre__schedule_pass {
#define VYRE__X3(name, text, about) VYRE__SCHEDULE_##name,
  VYRE__SCHEDULE_PASS_MAP(VYRE__X3) VYRE__SCHEDULE_COUNT
#undef VYRE__X3
} vyre__schedule_pass;

/* Passes over LIR that run before the schedule is built, and the choice of
 * narrow integers: X(enumerator, name). */
#define VYRE__PREPARE_PASS_MAP(X)         \
  X(PERIODIC, "periodic")                 \
  X(STRIDE_LOOPS, "stride-loops")         \
  X(SHARED_LAYOUT, "shared-layout")       \
  X(INTERCHANGE, "interchange")           \
  X(UNIFORM_VERSIONS, "uniform-versions") \
  X(LOOP_CHECKS, "loop-checks")           \
  X(NARROW, "narrow")

/* Numbers of the passes that can be disabled. `build` always runs. */
typedef enum vyre__optional_pass {
#define VYRE__X4(name, text, about) VYRE__OPTIONAL_##name,
  VYRE__SCHEDULE_PASS_MAP(VYRE__X4)
#undef VYRE__X4
#define VYRE__X5(name, text) VYRE__OPTIONAL_##name,
      VYRE__PREPARE_PASS_MAP(VYRE__X5)
#undef VYRE__X5
          VYRE__OPTIONAL_COUNT
} vyre__optional_pass;

/* Returns true if bit @p pass is set in @p off. Without range-split, loop-range
 * has no effect either. */
static inline bool vyre__pass_is_off(uint32_t off, vyre__optional_pass pass) {
  return pass != VYRE__OPTIONAL_BUILD && off >> pass & 1;
}

/* Builds the schedule of @p phase of @p kernel, which must be fully lowered
 * and interchanged, and runs the passes up to and including @p last. *out lives
 * in @p arena. Errors: VYRE_OUT_OF_MEMORY; those of vyre__regions_build. */
vyre_code vyre__schedule_make(const vyre__lir_kernel *kernel, uint32_t phase,
                              const vyre__schedule_options *options,
                              vyre__schedule_pass last, vyre_arena *arena,
                              vyre__schedule *out, vyre_status *st);

/* Prints a schedule. Returns false if the writer failed. */
bool vyre__schedule_print(const vyre__schedule *s, vyre_writer writer);

/* Checks that the tree runs every reachable instruction of the phase once in
 * each invocation. Errors: VYRE_KERNEL_COMPILE_FAILED naming the node;
 * VYRE_OUT_OF_MEMORY. */
vyre_code vyre__schedule_verify(const vyre__schedule *s);

/* Fix line for an invalid schedule, which is a bug in the compiler. */
#define VYRE__SCHEDULE_DEFECT                                               \
  "report it as a defect of vyre, with what `vyre emit FILE --to schedule " \
  "--dump-after PASS` prints"

/* --- questions about instructions -----------------------------------------*/

/* Returns true if bool @p v is a && b (or a || b, then is_or is set), as an
 * operation or through a variable. */
bool vyre__sched_logic(const vyre__schedule *s, vyre__val v, vyre__val *a,
                       vyre__val *b, bool *is_or);
/* Does the same if both operands were computed before. */
bool vyre__sched_operation(const vyre__schedule *s, vyre__val v, vyre__val *a,
                           vyre__val *b, bool *is_or);
/* Finds the terms of the index of LOAD @p at that lanes share in the LOOP at
 * @p loop. Returns false if lanes do not walk along rows. */
bool vyre__walk_find(const vyre__schedule *s, uint32_t at, uint32_t loop,
                     vyre__walk *walk);
/* Returns the constant part of the index of access @p at: the number of a field
 * in a structure. */
uint32_t vyre__field_of(const vyre__schedule *s, uint32_t at);
/* Returns the value that STORE @p at stores. */
vyre__val vyre__sched_stored(const vyre__schedule *s, uint32_t at);

/* Return how a value changes along a row: not at all, or by one per
 * invocation. */
bool vyre__row_is_uniform(const vyre__schedule *s, vyre__row_split *row,
                          vyre__val v);
bool vyre__row_is_linear(const vyre__schedule *s, vyre__row_split *row,
                         vyre__val v);
/* Returns true if a value changes by one per invocation where all conditions of
 * the row hold, but not elsewhere: max(i, 1) - 1. */
bool vyre__row_is_clamped(const vyre__schedule *s, vyre__row_split *row,
                          vyre__val v);
/* Returns the operand that equals @p v where all conditions of the row hold, or
 * 0. */
vyre__val vyre__row_operand(const vyre__schedule *s, const vyre__row_split *row,
                            vyre__val v);
/* Finds the conditions of @p row that can be evaluated at the start of the
 * workgroup. Returns true if there are any. */
bool vyre__row_by_group(const vyre__schedule *s, vyre__row_split *row);
/* Returns the loop whose counter GET @p get reads in its body, where it is
 * below the bound; 0: none. */
uint32_t vyre__counter_loop(const vyre__schedule *s, uint32_t get);

/* A comparison of an index with a bound that is uniform in the row, in the
 * form low <= index < top. The other end is that of the type. */
typedef struct vyre__index_limit {
  vyre__val index, bound; /* index 0: not such a comparison */
  bool is_top;            /* the bound is the top */
  bool one_more;          /* the end is bound + 1 */
  bool is_signed;
} vyre__index_limit;

/* Returns the limit that comparison @p v sets if it equals @p want. */
vyre__index_limit vyre__index_limit_of(const vyre__schedule *s,
                                       vyre__row_split *row, vyre__val v,
                                       bool want);

typedef enum vyre__exit_kind {
  VYRE__EXIT_CONTINUE,
  VYRE__EXIT_BREAK,
  VYRE__EXIT_RETURN,
} vyre__exit_kind;

/* Returns what the jump at @p at leaves: an iteration, a loop, or the
 * subregion. */
vyre__exit_kind vyre__exit_kind_of(const vyre__schedule *s, uint32_t at);

/* Returns the rows of a workgroup that have something to do, if the value of
 * row->limit is @p limit: from *first to before *end. */
void vyre__row_limits(const vyre__schedule *s, const vyre__row_split *row,
                      uint64_t limit, uint32_t *first, uint32_t *end);

/* Returns the initial value of the loop counter that GET @p v reads; 0: not a
 * counter. */
vyre__val vyre__counter_first(const vyre__schedule *s, vyre__val v);

/* Returns the loop over workgroups. */
static inline vyre__sched_node *vyre__sched_groups(const vyre__schedule *s) {
  vyre__sched_node *node = s->root;
  while (node->kind == VYRE__SCHED_PRIVATE) node = node->body;
  return node;
}

/* Returns true if the result of several operations @p op in memory is
 * independent of their order. */
bool vyre__atomic_commutes(uint8_t op);
/* Returns the identity element of @p op. */
uint64_t vyre__atomic_identity(uint8_t op, unsigned bytes);
/* Returns true if atomics of @p subregion are applied to private memory. */
bool vyre__has_private_atomics(const vyre__schedule *s, uint32_t subregion);

/* Ways in which an access touches memory, for the active lanes of a vector. */
typedef enum vyre__access_kind {
  VYRE__ACCESS_NONE,        /* not an access */
  VYRE__ACCESS_UNIFORM,     /* one element */
  VYRE__ACCESS_CONTIGUOUS,  /* adjacent elements */
  VYRE__ACCESS_STRIDED,     /* elements at a constant distance */
  VYRE__ACCESS_INTERLEAVED, /* the same, merged with others: interleave.c */
  VYRE__ACCESS_SHUFFLED,    /* at other known distances: lane_offsets.h */
  VYRE__ACCESS_GATHER,      /* any elements */
  VYRE__ACCESS_ATOMIC,
} vyre__access_kind;

/* Returns how instruction @p at accesses memory. */
vyre__access_kind vyre__access_kind_of(const vyre__schedule *s, uint32_t at);

/* --- before the schedule --------------------------------------------------*/

/* Turns remainders that are neighbours at the end of a row, such as
 * (x + 1) % width, into choices. Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__unwrap_neighbours(const vyre__lir_kernel *kernel,
                                  vyre_arena *arena,
                                  const vyre__lir_kernel **out,
                                  vyre_status *st);

/* Stride loops: turns `for (i = local_id.x; i < n; i += 128)` into a loop of
 * the workgroup, in all phases; call it before vyre__interchange_loops. *out is
 * @p kernel, or a copy in @p arena.
 * Errors: VYRE_OUT_OF_MEMORY; those of vyre__regions_build. */
vyre_code vyre__interchange_stride_loops(const vyre__lir_kernel *kernel,
                                         vyre_arena *arena,
                                         const vyre__lir_kernel **out,
                                         vyre_status *st);

/* Loop interchange: moves loops with atomics out of the loop over invocations,
 * in all phases. *out is @p kernel, or a copy in @p arena.
 * Errors: VYRE_OUT_OF_MEMORY; those of vyre__regions_build. */
vyre_code vyre__interchange_loops(const vyre__lir_kernel *kernel,
                                  vyre_arena *arena,
                                  const vyre__lir_kernel **out,
                                  vyre_status *st);

/* Uniform versions: emits code whose indices depend on a number of the
 * workgroup several times, for small powers of two, for multiples of @p width,
 * and for others, in all phases; call it after vyre__interchange_loops. *out is
 * @p kernel, or a copy in @p arena.
 * Errors: VYRE_OUT_OF_MEMORY; those of vyre__regions_build. */
vyre_code vyre__version_uniforms(const vyre__lir_kernel *kernel, uint32_t width,
                                 vyre_arena *arena,
                                 const vyre__lir_kernel **out, vyre_status *st);

/* Loop checks: bounds checks of signed indices become one comparison, and, at
 * @p width 1, those in loops over a part of a buffer become one test before the
 * loop. Call it last. *out is @p kernel, or a copy in @p arena.
 * Errors: VYRE_OUT_OF_MEMORY; those of vyre__regions_build. */
vyre_code vyre__simplify_checks(const vyre__lir_kernel *kernel, uint32_t width,
                                vyre_arena *arena, const vyre__lir_kernel **out,
                                vyre_status *st);

/* Returns true if loads in the LOOP at @p loop are contiguous over its
 * iterations, not over invocations. */
bool vyre__loop_is_contiguous(const vyre__lir_kernel *kernel, uint32_t loop);

/* Runs the passes before the schedule that do not depend on the width: stride
 * loops, shared layouts, loop interchange. *layouts: of the shared buffers, or
 * NULL. @p off: vyre__pass_is_off. *out is @p kernel, or a copy in @p arena.
 * Errors: VYRE_OUT_OF_MEMORY; those of vyre__regions_build. */
vyre_code vyre__prepare_kernel(const vyre__lir_kernel *kernel, uint32_t off,
                               vyre_arena *arena, const vyre__lir_kernel **out,
                               const vyre__shared_layout **layouts,
                               vyre_status *st);

/* Runs the passes that depend on the width: vyre__version_uniforms and
 * vyre__simplify_checks, if @p options do not disable them. */
vyre_code vyre__make_versions(const vyre__lir_kernel *kernel,
                              const vyre__schedule_options *options,
                              vyre_arena *arena, const vyre__lir_kernel **out,
                              vyre_status *st);

#endif
