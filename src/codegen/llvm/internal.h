/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_CODEGEN_LLVM_INTERNAL_H
#define VYRE_CODEGEN_LLVM_INTERNAL_H

#include <stdarg.h>

#include "codegen/llvm/llvm.h"
#include "spmd/lane_shape.h"
#include "spmd/regions.h"
#include "spmd/single_read.h"

/* --- text -------------------------------------------------------------------*/

/* Types of LLVM. LL_VEC makes a vector of `width` elements. */
enum {
  LL_I1,
  LL_I8,
  LL_I16,
  LL_I32,
  LL_I64,
  LL_F32,
  LL_F64,
  LL_PTR,
  LL_TYPES,
  LL_VEC = 16,
  LL_NARROW_MASK = 15,
};

typedef enum ll_kind {
  LL_NONE,
  LL_TEMP,  /* %vN */
  LL_CONST, /* bits of a constant; in vectors: of every lane */
  LL_NAMED, /* %name: an argument, or a value of the entry block */
} ll_kind;

typedef struct ll_op {
  uint8_t kind;
  uint32_t id;      /* LL_TEMP: its number; LL_NAMED: number after the name */
  uint64_t bits;    /* LL_CONST */
  const char *name; /* LL_NAMED */
} ll_op;

typedef struct ll_text {
  char *bytes;
  size_t length, capacity;
} ll_text;

/* --- what is known while a phase is written --------------------------------------*/

typedef enum ll_form {
  LL_ABSENT,
  LL_SCALAR, /* one scalar for all lanes */
  LL_LINEAR, /* the scalar of lane 0 and a stride */
  LL_VECTOR,
} ll_form;

/* Representation of a value at the current position in the code. */
typedef struct ll_rep {
  uint8_t form;
  bool
      is_derived; /* materialised at its use: a leaf, or a value stored elsewhere */
  uint32_t stamp; /* copy of the subregion that computed it; 0: the workgroup */
  uint64_t stride;
  ll_op s; /* the scalar, or that of lane 0 */
  ll_op v; /* the vector, if it was built */
} ll_rep;

/* Compile-time knowledge about a condition at the current position. */
typedef enum ll_known { LL_UNKNOWN, LL_FALSE, LL_TRUE } ll_known;

typedef enum ll_scope_kind {
  LL_SCOPE_REGION,
  LL_SCOPE_LOOP,
  LL_SCOPE_IF, /* lanes wait at its end */
} ll_scope_kind;

/* An enclosing construct that lanes leave or wait at. */
typedef struct ll_scope {
  struct ll_scope *up;
  uint8_t kind;
  uint32_t at;        /* LOOP */
  uint32_t end, step; /* labels; IF: end is the join */
  bool has_live;      /* LOOP: lanes leave it in different iterations */
  bool
      has_act; /* lanes leave an iteration, or the subregion, at different points */
  bool
      lanes_at_step; /* LOOP: lanes may have left this iteration by CONTINUE and
                         wait at the step */
  uint32_t
      check; /* label that continues at the step if a lane is live, else at the end */
  bool end_used, step_used, check_used;
  ll_op live, act; /* allocas of the masks; see masked_exits.c */
} ll_scope;

/* The active lanes. */
typedef struct ll_mask {
  ll_op lanes; /* i32, all ones or zeros; LL_NONE: all lanes */
  ll_op bits;  /* the same as i1; LL_NONE: not computed yet */
} ll_mask;

/* Facts about loops and ifs that the emitter needs; see divergence.c. */
typedef struct ll_note {
  bool parts;      /* LOOP: needs `live`; lanes leave in different iterations */
  bool continues;  /* LOOP: needs `act`; lanes wait at its step */
  bool drops;      /* IF, LOOP: lanes active before may be inactive after */
  bool is_small;   /* IF: contains pure operations and variables only */
  bool is_settled; /* IF: evaluated at the start of the row */
  bool is_leap;    /* IF: the same, with a jump at its end */
  bool is_long;    /* LOOP: may run long; polls `stop` */
  bool no_blend;   /* SET: the old value of inactive lanes is never read */
  uint8_t known;   /* ll_known in the code for full rows .. */
  uint32_t known_in;          /* .. of that subregion */
  vyre__val logic_a, logic_b; /* GET: equals a && b, or a || b; 0: neither */
  bool logic_or;
  bool
      is_straight; /* IF of && or ||: its contents are executed unconditionally .. */
  bool is_dead; /* .. and these SETs are dropped */
  uint8_t
      groups; /* LOOP: number of accumulator groups, run one after the other; 0: one. Inside it: the groups that need the instruction */
  uint32_t group_start; /* LOOP: SET of its counter */
  uint32_t split;       /* LOOP: first divergence in an iteration; 0: none */
} ll_note;

typedef struct ll_var {
  bool is_used;
  bool is_array;   /* one element per vector of the workgroup */
  uint8_t form;    /* LL_SCALAR, LL_LINEAR, LL_VECTOR */
  bool has_shadow; /* lockstep: keeps a scalar in addition to the vector */
  uint64_t stride;
  ll_op at, shadow; /* its alloca; LL_NONE: none yet */
  bool is_const; /* workgroup variable: holds `bits` at the current position */
  uint64_t bits;
} ll_var;

/* Privatised atomics of a buffer: see privatize_atomics.c. */
typedef struct ll_delay {
  uint8_t op; /* vyre__lir_op that all of them share */
  bool is_refused, is_on;
  uint32_t elements; /* elements that fit */
  uint64_t times;    /* estimated executions per invocation */
  uint32_t
      twin; /* shared memory: the region in which odd lanes use a replica; 0: none */
} ll_delay;

typedef struct ll {
  const vyre__lir_kernel *kernel;
  const vyre__emit_llvm_options *options;
  vyre_allocator allocator;
  vyre_arena *arena;
  vyre_status *st;
  uint32_t width;
  bool no_memory;
  vyre__lir_op refused; /* first operation without a translation */

  ll_text entry, body; /* of the current function */
  ll_text *to;
  char vectors[LL_TYPES][20]; /* "<8 x i32>" */
  uint32_t temps, labels;
  bool is_open; /* the current block has no terminator yet */

  uint32_t phase;
  vyre__regions r;
  vyre__lane_shapes shapes;
  ll_rep *reps;
  ll_note *notes;
  ll_var *vars;
  ll_op *kept;     /* per instruction of the phase: its array; LL_NONE: none */
  vyre__val *undo; /* values with a representation that ends with its block */
  uint32_t undo_count;
  ll_op done;       /* array of masks */
  bool *piece_acts; /* per subregion: lanes leave it at different points */
  uint64_t scratch_bytes;            /* maximum over all phases */
  uint64_t scratch_used, stack_used; /* of this phase */
  bool *buffer_used;
  bool *decides; /* per instruction: spmd/single_read.h */
  /* Per type: helper functions for memory accesses, see lane_loop.c. */
  bool loads_lanes[LL_TYPES], stores_lanes[LL_TYPES];
  ll_delay *delays; /* per buffer */
  bool *any_nan;    /* per buffer: NaN payloads in it are never observed */

  uint32_t piece;         /* 0: code of the workgroup */
  uint32_t stamp, stamps; /* copy of the subregion; 0: the workgroup */
  ll_op vector_index;     /* index of the vector in the workgroup, i32 */
  struct ll_row **rows;   /* per subregion; NULL: not executed by rows */
  struct ll_jam **jams;   /* per subregion; NULL: one row at a time */
  struct ll_jam *jam;     /* rows in the current unroll-and-jam */
  uint8_t group_now;      /* bit of the accumulator group; 0: all */
  bool has_rows;          /* x counts along rows */
  bool is_fused;          /* rows span adjacent workgroups */
  bool overlaps;          /* vectors of a row may start anywhere and overlap */
  vyre__val fused_x;      /* x in that case */
  ll_op row_first;        /* index of the row's first vector, i32 */
  ll_op x;                /* i32, of lane 0 */
  ll_op group[3], local[3];
  uint8_t local_form[3];
  ll_op iota; /* 0, 1, 2 .. of i32 */
  ll_mask mask;
  ll_scope *scope;
  bool is_full;             /* `known` of the notes holds .. */
  bool is_opposite;         /* .. or holds in no lane */
  bool is_speculated;       /* possibly no lane is active */
  bool no_copies;           /* all lanes are active */
  uint32_t copies;          /* number of copies of the surrounding code */
  bool has_whole, is_whole; /* see full_workgroups.c */
  uint64_t unseen; /* iterations of an invocation without a poll of `stop` */
  bool unrolls;    /* loops of the workgroup are unrolled completely */
  uint32_t stop_label, fuel_label;
  uint32_t next_group; /* label */
  bool uses_stop, uses_fuel_exit, uses_next;
  ll_scope *group_scope; /* loops of the workgroup */
} ll;

/* --- text.c ---------------------------------------------------------------*/

/* Formats: %t type, %o type and operand (type, op), %v operand alone (type,
 * op), %b label, %u, %s, %l (uint64_t, decimal). */
void ll_print(ll *e, const char *format, ...);
void ll_vprint(ll *e, const char *format, va_list args);
/* Emits an instruction with a result. */
ll_op ll_def(ll *e, const char *format, ...);
/* Emits an instruction without a result. */
void ll_do(ll *e, const char *format, ...);
/* Emits a line of the entry block that defines @p name with a number. */
ll_op ll_alloca(ll *e, unsigned type, uint64_t count, unsigned align);

uint32_t ll_label(ll *e);
void ll_place(
    ll *e, uint32_t label); /* starts a block and terminates the one before */
void ll_br(ll *e, uint32_t label);
void ll_cond(ll *e, ll_op condition, uint32_t yes, uint32_t no);
void ll_hope(ll *e, ll_op condition, uint32_t yes,
             uint32_t no); /* likely true */

static inline ll_op ll_const(uint64_t bits) {
  return (ll_op){.kind = LL_CONST, .bits = bits};
}
static inline ll_op ll_name(const char *name, uint32_t id) {
  return (ll_op){.kind = LL_NAMED, .name = name, .id = id};
}
static inline bool ll_is(ll_op op, uint64_t bits) {
  return op.kind == LL_CONST && op.bits == bits;
}

unsigned ll_type(unsigned vyre_type_of); /* scalar type of a vyre_type */
unsigned ll_memory_type(unsigned width); /* i8 .. i64 */
unsigned ll_bytes(unsigned type);
unsigned ll_kept_type(unsigned type); /* bool as i32 */

/* --- values.c ---------------------------------------------------------------*/

static inline const vyre__lir_inst *ll_inst(const ll *e, vyre__val v) {
  return &e->kernel->code[v];
}
static inline vyre__inst_info *ll_role(const ll *e, vyre__val v) {
  return vyre__inst_info_of(&e->r, v);
}
static inline ll_note *ll_note_of(const ll *e, vyre__val v) {
  return &e->notes[v - e->r.begin];
}
static inline vyre__lane_shape ll_shape(const ll *e, vyre__val v) {
  return vyre__lane_shape_of(&e->shapes, v);
}
unsigned ll_type_of(const ll *e, vyre__val v);

/* Returns the representation of @p v here; loads it if it is stored. */
ll_rep *ll_value(ll *e, vyre__val v);
bool ll_is_scalar(ll *e, vyre__val v); /* scalar that all active lanes share */
ll_op ll_scalar(ll *e,
                vyre__val v); /* scalar of a uniform value, or of lane 0 */
ll_op ll_vector(ll *e, vyre__val v);
ll_known ll_known_of(ll *e, vyre__val v);
void ll_give(ll *e, vyre__val v, uint8_t form, ll_op op);
/* Emits instruction @p v, and stores its value if other subregions need it. */
void ll_pure(ll *e, vyre__val v);
/* Replaces the vector of a uniform value by a scalar. */
void ll_agree(ll *e, vyre__val v);
void ll_keep(ll *e, vyre__val v);
/* Delimit code whose values are not visible afterwards. */
static inline uint32_t ll_enter(const ll *e) {
  return e->undo_count;
}
void ll_leave(ll *e, uint32_t mark);
/* Returns the address of an element in an array with one element per vector
 * of the workgroup. */
ll_op ll_element(ll *e, ll_op array, unsigned type);
void ll_get(ll *e, vyre__val v);
void ll_set(ll *e, uint32_t at);
void ll_place_var(ll *e,
                  uint32_t var); /* allocates its array, if it has none */
ll_op ll_splat(ll *e, unsigned type, ll_op scalar);

/* --- masks -----------------------------------------------------------------------*/

ll_op ll_mask_bits(ll *e);   /* current mask as <W x i1>; LL_NONE if full */
ll_op ll_mask_vector(ll *e); /* current mask as i32; all ones if full */
static inline void ll_set_mask(ll *e, ll_op lanes) {
  e->mask = (ll_mask){.lanes = lanes};
}
static inline bool ll_is_all_on(const ll *e) {
  return e->mask.lanes.kind == LL_NONE;
}
ll_op ll_any(ll *e, ll_op mask); /* i1 */
ll_op ll_all(ll *e, ll_op mask);
ll_op ll_and(ll *e, ll_op a, ll_op b); /* masks; LL_NONE is the full mask */
ll_op ll_and_not(ll *e, ll_op a, ll_op b);
ll_op ll_widen(ll *e, ll_op bits); /* converts i1 to a mask */
/* Returns the mask of the lanes in which bool @p v is true, or false. */
ll_op ll_mask_of(ll *e, vyre__val v, bool is_not);
ll_op ll_lanes(ll *e, ll_op mask); /* i32 with one bit per lane */

/* Returns the lanes that perform an access with condition @p c (0: none);
 * LL_NONE if all do. */
ll_op ll_active(ll *e, vyre__val c);

/* Returns an i1 that is true if @p c equals @p want in every lane, with all
 * lanes active. LL_NONE if lane 0 alone does not decide that. */
ll_op ll_test(ll *e, vyre__val c, bool want);

/* --- lane_loop.c -------------------------------------------------------------------*/

typedef struct ll_lane_loop {
  ll_op left, lane; /* lane: i32, of this iteration */
  uint32_t head, end;
  bool stays; /* emit a loop even if all lanes are active */
} ll_lane_loop;

ll_lane_loop ll_open_lanes(ll *e, ll_op active);
void ll_close_lanes(ll *e, const ll_lane_loop *l);
/* Allocates a stack array with one element per lane; scalar types only. */
ll_op ll_spill(ll *e, unsigned type, ll_op vector);
/* Emits the helper functions for lane-by-lane loads and stores, once per
 * file. */
void ll_lane_functions(ll *e);
ll_op ll_from_lane(ll *e, const ll_lane_loop *l, unsigned type, ll_op array);
void ll_to_lane(ll *e, const ll_lane_loop *l, unsigned type, ll_op array,
                ll_op value);

/* --- memory.c, atomic.c --------------------------------------------------*/

void ll_load(ll *e, vyre__val v);
void ll_store(ll *e, uint32_t at);
void ll_atomic(ll *e, vyre__val v);
/* Returns the base pointer of a buffer. Code for full workgroups has its own
 * shared memory. */
ll_op ll_base(ll *e, uint32_t buffer);
ll_op ll_twin(
    const ll *e,
    uint32_t buffer); /* replica of a shared array: privatize_atomics.c */
uint64_t ll_twin_elements(const ll *e, uint32_t buffer);
ll_op ll_address(ll *e, uint32_t buffer, ll_op index); /* scalar */
const char *ll_atomic_name(uint8_t op);
bool ll_atomic_commutes(
    uint8_t
        op); /* commutes: the result in memory is independent of the order */
/* Emits the value that a plain read-modify-write stores, for scalars or
 * vectors. */
ll_op ll_combine(ll *e, uint8_t op, unsigned type, ll_op old, ll_op value);
uint64_t ll_atomic_identity(uint8_t op,
                            unsigned bytes); /* the identity element */

/* --- privatize_atomics.c ------------------------------------------------------------------*/

/* Finds buffers whose atomics can be privatised for a range of workgroups.
 * Around the code of the range: %qN is the private memory of buffer N, %wN
 * is true if it is used. */
vyre_code ll_find_delays(ll *e);
void ll_open_delays(ll *e);
void ll_close_delays(ll *e);
bool ll_is_bulky(const ll *e, uint32_t piece); /* must not be executed twice */
/* Ends an iteration over the rows of @p piece: continues with the next one
 * or at @p end. */
void ll_again(ll *e, uint32_t piece, ll_op condition, uint32_t head,
              uint32_t end);

/* --- prefetch.c ------------------------------------------------------------------*/

/* Emits prefetches at the start of a subregion. */
void ll_look_ahead(ll *e, uint32_t piece);

/* --- interchange.c -------------------------------------------------------------------*/

/* Moves loops with atomics out of the loop over invocations. Replaces the
 * kernel for the rest of the compilation. */
vyre_code ll_turn_loops(ll *e, uint32_t phase);
/* Returns true if loads in the LOOP at @p loop are contiguous over its
 * iterations, not over invocations. */
bool ll_runs_along(const vyre__lir_kernel *kernel, uint32_t loop);

/* --- divergence.c -------------------------------------------------------------------*/

vyre_code ll_plan(ll *e);
/* Returns true if bool @p v is a && b (or a || b, then is_or is set), as an
 * operation or through a variable. */
bool ll_logic(const ll *e, vyre__val v, vyre__val *a, vyre__val *b,
              bool *is_or);
/* Does the same if both operands were computed before. */
bool ll_operation(const ll *e, vyre__val v, vyre__val *a, vyre__val *b,
                  bool *is_or);
/* Returns the value that STORE @p at stores. */
vyre__val ll_stored(const ll *e, uint32_t at);
/* Checks whether rows can span adjacent workgroups; sets fused_x. */
bool ll_find_fusion(ll *e);

/* --- masked_exits.c -------------------------------------------------------------------*/

/* Finds the loops, ifs and subregions that lanes leave at different points. */
void ll_find_exits(ll *e);
/* Removes the active lanes from all scopes that jump @p at leaves, and
 * branches to where other lanes wait or the jump leads. */
void ll_exit_all(ll *e, uint32_t at);
/* Removes the active lanes like ll_exit_all, but emits no branch: other
 * lanes continue here. */
void ll_exit_some(ll *e, uint32_t at);
/* Returns the label where execution resumes when no lane is active. */
uint32_t ll_resume(ll *e);
/* Returns the scope of the innermost loop, or that of the subregion. */
ll_scope *ll_iteration(const ll *e);
ll_op ll_load_mask(ll *e, ll_op at);
void ll_store_mask(ll *e, ll_op mask, ll_op at);

/* --- control_flow.c -------------------------------------------------------------------*/

void ll_block(ll *e, uint32_t begin, uint32_t end);
void ll_instruction(ll *e, uint32_t at);
void ll_open_long(ll *e, ll_op *counter, uint32_t *outer);
void ll_close_long(ll *e, ll_op counter, uint32_t head, uint32_t outer);

/* --- loop_peel.c -------------------------------------------------------------------*/

/* Emits the peeled iterations, which no lane leaves, before the loop itself. */
void ll_steady_rounds(ll *e, uint32_t loop);

/* --- file.c ---------------------------------------------------------------------*/

/* Allocates memory of the workgroup, on the stack up to a limit. @p name:
 * NULL for none. */
ll_op ll_array(ll *e, unsigned type, uint64_t count, const char *name,
               uint32_t number);
void ll_clear_arrays(ll *e); /* at the start of a workgroup */

/* --- regions.c -----------------------------------------------------------------*/

void ll_parts(ll *e, uint32_t first);
void ll_run_piece(ll *e, uint32_t index, ll_op mask);
/* Emits the uniform values of a parallel region. */
void ll_hoist(ll *e, const vyre__region *run);
/* Emits rows of @p count invocations from x = @p first, for all y and z. */
void ll_run_rows(ll *e, uint32_t piece, ll_op first, ll_op count);
/* Starts the row at local[1] and local[2]. */
void ll_begin_row(ll *e);
/* Returns the index of the vector that starts at @p x of its row. */
void ll_count_vectors(ll *e, ll_op x);
/* Returns true if @p v is the x coordinate of fused rows. */
bool ll_is_x(const ll *e, vyre__val v);
void ll_give_x(ll *e, vyre__val v);
void ll_clear_done(ll *e);
ll_op ll_opaque(ll *e, ll_op op);
uint32_t ll_vector_count(const ll *e); /* vectors per workgroup */

/* --- rows.c --------------------------------------------------------------------*/

typedef struct ll_row ll_row;

/* Finds conditions of @p piece that hold in one range of a row. */
vyre_code ll_plan_row(ll *e, uint32_t piece, ll_row **out);
void ll_run_row(ll *e, ll_row *row, ll_op first, ll_op count);
/* Finds the conditions of @p row that can be evaluated at the start of the
 * workgroup. Returns true if there are any. */
bool ll_row_is_told(ll *e, ll_row *row);
/* Returns an i1: those conditions hold in the whole row. */
ll_op ll_row_is_whole(ll *e, ll_row *row);

/* --- full_workgroups.c ------------------------------------------------------------------*/

/* Returns true if full workgroups get their own code. */
void ll_plan_whole(ll *e);
void ll_run_group(ll *e);

/* A range of a row. */
typedef struct ll_stretch {
  ll_op from,
      to; /* i64, counted from the start of the row; `to` is exclusive */
} ll_stretch;

/* Emits the range that row local[1] and the next ones of @p jam have in
 * common, jammed. *done: that range. Returns true if parts of the rows
 * remain. */
bool ll_run_together(ll *e, ll_row *row, struct ll_jam *jam, ll_op first,
                     ll_op count, ll_stretch *done);
/* Does the same as ll_run_row, except for a range that is done already. */
void ll_run_rest(ll *e, ll_row *row, ll_op first, ll_op count, ll_stretch done);

/* Returns how a value changes along a row: not at all, or linearly with x. */
bool ll_row_same(ll *e, ll_row *row, vyre__val v);
bool ll_row_counts(ll *e, ll_row *row, vyre__val v);
/* Emits @p v, which is uniform or linear, at the start of the row. */
void ll_make_ahead(ll *e, vyre__val v);

/* --- loop_range.c ------------------------------------------------------------------*/

/* Returns true if the start of a row can decide where @p check, of an access
 * at @p at in a loop, holds in all iterations. */
bool ll_reaches(ll *e, ll_row *row, vyre__val check, uint32_t at);
/* Returns that range of a row of @p count invocations. */
ll_stretch ll_reach(ll *e, ll_row *row, vyre__val check, ll_op count);

/* --- accumulator_split.c ------------------------------------------------------------------*/

/* Finds loops with more accumulators than fit into registers. */
void ll_plan_splits(ll *e);
/* Returns true if @p at does not belong to the current accumulator group. */
bool ll_is_other_group(const ll *e, uint32_t at);

/* --- unroll_jam.c --------------------------------------------------------------------*/

typedef struct ll_jam ll_jam;

/* Decides whether rows of @p piece are jammed; *out is NULL if not. */
vyre_code ll_plan_jam(ll *e, uint32_t piece, ll_jam **out);
uint32_t ll_jam_rows(const ll_jam *jam); /* NULL: 1 */
/* Delimit the code of one vector of each row; e->jam is set before. */
void ll_begin_jam(ll *e);
void ll_end_jam(ll *e);
/* Emits instruction @p at for every row, or once if rows share it. */
void ll_each_row(ll *e, uint32_t at, void (*make)(ll *e, uint32_t at));
/* Does the part of ll_leave for jammed rows: discards, in every row, what was
 * derived for @p v since ll_enter. */
void ll_forget_rows(ll *e, vyre__val v);

/* --- vector_width.c ------------------------------------------------------------------*/

uint32_t ll_choose_width(const vyre__lir_kernel *kernel, uint32_t lanes);

#endif
