/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_CODEGEN_LLVM_INTERNAL_H
#define VYRE_CODEGEN_LLVM_INTERNAL_H

#include <stdarg.h>

#include "codegen/llvm/llvm.h"
#include "spmd/passes/narrow.h"
#include "spmd/passes/single_read.h"
#include "spmd/schedule.h"

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
  uint64_t bits;    /* LL_CONST; LL_TEMP: active lanes of a mask and
                     * LL_LANES_KNOWN, if they are known */
  const char *name; /* LL_NAMED */
} ll_op;

#define LL_LANES_KNOWN (UINT64_C(1) << 63)

typedef struct ll_text {
  char *bytes;
  size_t length, capacity;
} ll_text;

/* --- what is known while a phase is written --------------------------------------*/

typedef enum ll_form {
  LL_ABSENT = VYRE__AS_NONE,
  LL_SCALAR = VYRE__AS_SCALAR,
  LL_LINEAR = VYRE__AS_LINEAR,
  LL_VECTOR = VYRE__AS_VECTOR,
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
  ll_op n; /* VECTOR: the vector of narrow integers (spmd/passes/narrow.h) */
  uint8_t n_bytes;
} ll_rep;

/* Compile-time knowledge about a condition at the current position. */
typedef enum ll_known {
  LL_UNKNOWN = VYRE__UNKNOWN,
  LL_FALSE = VYRE__KNOWN_FALSE,
  LL_TRUE = VYRE__KNOWN_TRUE,
} ll_known;

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

/* Memory of a variable; s->vars says in which form. */
typedef struct ll_var {
  ll_op at, shadow; /* its alloca; LL_NONE: none yet */
  bool is_const; /* workgroup variable: holds `bits` at the current position */
  uint64_t bits;
} ll_var;

enum { LL_MAX_WALKS = 4 };

/* A load whose lanes walk along rows: see row_walk.c. */
typedef struct ll_walk {
  uint32_t at;
  ll_op first, block; /* allocas */
} ll_walk;

/* Those of the innermost loop that has any. */
typedef struct ll_walks {
  struct ll_walks *up;
  uint32_t loop, count;
  ll_walk of[LL_MAX_WALKS];
} ll_walks;

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
  vyre__schedule *s; /* of the phase */
  ll_rep *reps;
  ll_var *vars;
  ll_op *kept;      /* per instruction of the phase: its array; LL_NONE: none */
  ll_op *row_loads; /* per instruction of the phase: alloca of the element that
                     * the start of the row loaded; LL_NONE: not loaded */
  ll_op *spans;     /* per instruction of the phase: what a group has loaded, or
                     * stores: interleave.c */
  vyre__val *undo;  /* values with a representation that ends with its block */
  uint32_t undo_count;
  ll_op done;                        /* array of masks */
  uint64_t scratch_bytes;            /* maximum over all phases */
  uint64_t scratch_used, stack_used; /* of this phase */
  bool *buffer_used;
  vyre__narrow *narrow; /* per instruction of the phase */
  /* Per type: helper functions for memory accesses, see lane_loop.c. */
  bool loads_lanes[LL_TYPES], stores_lanes[LL_TYPES];
  bool loads_rows;        /* row_walk.c */
  ll_walks *walks;        /* in the current loop, or NULL */
  vyre__privatised *owns; /* per buffer */

  uint32_t subregion;            /* 0: code of the workgroup */
  uint32_t stamp, stamps;        /* copy of the subregion; 0: the workgroup */
  ll_op vector_index;            /* index of the vector in the workgroup, i32 */
  const vyre__sched_node *range; /* current RANGE; NULL: start of a row */
  vyre__row_split *row;          /* whose range is being computed; else NULL */
  struct ll_jam *jam;            /* rows in the current unroll-and-jam */
  uint8_t group_now;             /* bit of the accumulator group; 0: all */
  ll_op row_first;               /* index of the row's first vector, i32 */
  ll_op x;                       /* i32, of lane 0 */
  ll_op group[3], local[3];
  uint8_t local_form[3];
  ll_op iota; /* 0, 1, 2 .. of i32 */
  ll_mask mask;
  ll_scope *scope;
  bool is_speculated; /* possibly no lane is active */
  bool no_copies;     /* all lanes are active */
  uint32_t copies;    /* number of copies of the surrounding code */
  bool is_full_group; /* see full_workgroups.c */
  bool unrolls;       /* loops of the workgroup are unrolled completely */
  bool has_versions;  /* spmd/passes/uniform_versions.c */
  uint32_t stop_label, fuel_label;
  uint32_t next_group; /* label */
  bool uses_stop, uses_fuel_exit, uses_next;
  bool uses_sums;        /* in any phase: functions of sums.c are declared */
  ll_scope *group_scope; /* loops of the workgroup */
  ll_op rounds;          /* iterations until `stop` is polled; LL_NONE: none */
  vyre__val parts_test;  /* test of the innermost loop in parts; 0: none */
  ll_op parts_limit;     /* where its current part ends */
  uint32_t unused_set;   /* SET that peeled iterations leave out; 0: none */
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
void ll_branch_likely(ll *e, ll_op condition, uint32_t yes,
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
unsigned ll_storage_type(unsigned type); /* bool as i32 */

/* --- values.c ---------------------------------------------------------------*/

static inline const vyre__lir_inst *ll_inst(const ll *e, vyre__val v) {
  return &e->kernel->code[v];
}
static inline vyre__inst_info *ll_role(const ll *e, vyre__val v) {
  return vyre__inst_info_of(&e->s->r, v);
}
static inline vyre__sched_note *ll_note_of(const ll *e, vyre__val v) {
  return &e->s->notes[v - e->s->r.begin];
}
static inline vyre__lane_shape ll_shape(const ll *e, vyre__val v) {
  return vyre__lane_shape_of(&e->s->shapes, v);
}
unsigned ll_type_of(const ll *e, vyre__val v);

/* Returns the representation of @p v here; loads it if it is stored. */
ll_rep *ll_value(ll *e, vyre__val v);
bool ll_is_scalar(ll *e, vyre__val v); /* scalar that all active lanes share */
ll_op ll_scalar(ll *e,
                vyre__val v); /* scalar of a uniform value, or of lane 0 */
ll_op ll_vector(ll *e, vyre__val v);
/* Returns the vector of the lowest @p bytes of @p v. */
ll_op ll_narrow_vector(ll *e, vyre__val v, unsigned bytes);
void ll_give_narrow(ll *e, vyre__val v, unsigned bytes, ll_op op);
/* Gives @p v the representation of @p operand. */
void ll_give_operand(ll *e, vyre__val v, vyre__val operand);
static inline const vyre__narrow *ll_narrow_of(const ll *e, vyre__val v) {
  return &e->narrow[v - e->s->r.begin];
}
ll_known ll_known_of(ll *e, vyre__val v);
void ll_give(ll *e, vyre__val v, uint8_t form, ll_op op);
/* Emits instruction @p v, and stores its value if other subregions need it. */
void ll_pure(ll *e, vyre__val v);
/* Replaces the vector of a uniform value by a scalar. */
void ll_agree(ll *e, vyre__val v);
void ll_store_live(ll *e, vyre__val v);
/* Delimit code whose values are not visible afterwards. */
static inline uint32_t ll_enter(const ll *e) {
  return e->undo_count;
}
void ll_leave(ll *e, uint32_t mark);
/* Returns the address of an element in an array with one element per vector
 * of the workgroup. */
ll_op ll_element(ll *e, ll_op array, unsigned type);
void ll_get(ll *e, vyre__val v);
/* Loads a variable that is one scalar for all lanes. */
ll_op ll_scalar_var(ll *e, uint32_t var);
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
/* Returns true if the active lanes of a mask are known: one bit per lane. */
bool ll_lanes_known(const ll *e, ll_op mask, uint32_t *lanes);
/* Returns mask @p op with the note that @p lanes are active. */
ll_op ll_with_lanes(const ll *e, ll_op op, uint64_t lanes);

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

/* --- lane_by_lane.c ----------------------------------------------------------------*/

/* Elements that lanes access at a constant distance. */
typedef struct ll_lanes_at {
  uint32_t buffer;
  unsigned type; /* of an element, in memory */
  unsigned align;
  ll_op index; /* of lane 0, i32 */
  int32_t stride;
  uint32_t lanes; /* those that access their elements, one bit each */
} ll_lanes_at;

/* Loads the elements of the lanes, which are inside the buffer; others get 0.
 * With a constant index in a shared array, lanes outside it get 0. */
ll_op ll_load_each(ll *e, const ll_lanes_at *at);
/* Stores to the elements of the lanes, which are inside the buffer. */
void ll_store_each(ll *e, const ll_lanes_at *at, ll_op value);

/* --- sums.c --------------------------------------------------------------*/

/* Emits the strips of SUM_ADD instructions, cleared before a range of
 * workgroups, and added to their sums after it. */
void ll_open_strips(ll *e);
void ll_close_strips(ll *e);
void ll_sum_add(ll *e, vyre__val v);
/* Declares the functions of the runtime, once per file. */
void ll_sum_functions(ll *e);

/* --- memory.c, atomic.c --------------------------------------------------*/

void ll_load(ll *e, vyre__val v);
/* Emits LOAD @p v, whose index is uniform and inside the buffer, without a
 * check. */
ll_op ll_load_one(ll *e, vyre__val v);
void ll_store(ll *e, uint32_t at);
void ll_atomic(ll *e, vyre__val v);
/* Returns the base pointer of a buffer. Code for full workgroups has its own
 * shared memory. */
ll_op ll_base(ll *e, uint32_t buffer);
ll_op ll_replica(
    const ll *e,
    uint32_t buffer); /* replica of a shared array: privatize_atomics.c */
uint64_t ll_replica_elements(const ll *e, uint32_t buffer);
ll_op ll_address(ll *e, uint32_t buffer, ll_op index); /* scalar */
/* Returns true if condition @p c of access @p at is nothing but its bounds
 * check. */
bool ll_is_bounds_check(const ll *e, uint32_t at, vyre__val c);
const char *ll_atomic_name(uint8_t op);
/* Emits the value that a plain read-modify-write stores, for scalars or
 * vectors. */
ll_op ll_combine(ll *e, uint8_t op, unsigned type, ll_op old, ll_op value);

/* --- gather.c ---------------------------------------------------------------*/

/* Loads the elements of all lanes, which are inside the buffer or at index 0 of
 * a buffer that has it. */
ll_op ll_gather_all(ll *e, uint32_t at, ll_op indices);
/* Returns true if the machine loads the elements of active lanes only. */
bool ll_has_masked_gather(const ll *e, uint32_t at);
/* Loads elements of active lanes; the others get zero. */
ll_op ll_gather_some(ll *e, uint32_t at, ll_op indices, ll_op active);
/* Stores to the elements of all lanes, which are inside the buffer. */
void ll_scatter_all(ll *e, uint32_t at, ll_op indices, ll_op value);
/* Stores to the elements of the active lanes, which are inside the buffer. */
void ll_scatter_some(ll *e, uint32_t at, ll_op indices, ll_op value,
                     ll_op active);

/* --- row_walk.c -------------------------------------------------------------*/

/* Around a loop in which lanes walk along rows. */
void ll_open_walks(ll *e, const vyre__sched_node *loop, ll_walks *walks);
void ll_close_walks(ll *e);
/* Loads from a block of the rows, or by @p otherwise near the end of a buffer.
 * Returns false if lanes do not walk along rows at LOAD @p v. */
bool ll_load_walk(ll *e, vyre__val v, ll_op active,
                  ll_op (*otherwise)(ll *e, vyre__val v, ll_op active),
                  ll_op *out);
/* Emits the function that loads blocks, if it is used. */
void ll_row_function(ll *e);

/* --- interleave.c -----------------------------------------------------------*/

/* Emit an access together with others of its group; a store of @p value is
 * emitted with the last one. Return false if the access is not in a group. */
bool ll_load_together(ll *e, vyre__val v, ll_op *out);
bool ll_store_together(ll *e, uint32_t at, ll_op value);

/* --- lane_pattern.c -------------------------------------------------------*/

/* Load, or store, lanes at known distances. Return false if they are not known,
 * or if the elements between them may not be accessed. */
bool ll_load_pattern(ll *e, vyre__val v, ll_op active, ll_op *out);
bool ll_store_pattern(ll *e, uint32_t at, ll_op value, ll_op active);

/* --- privatize_atomics.c ------------------------------------------------------------------*/

/* Around the code of a range of workgroups: %qN is the private memory of
 * buffer N, %wN is true if it is used. */
void ll_open_private(ll *e);
void ll_close_private(ll *e);
/* Ends an iteration over the rows of @p subregion: continues with the next one
 * or at @p end. */
void ll_again(ll *e, uint32_t subregion, ll_op condition, uint32_t head,
              uint32_t end);

/* --- division.c ------------------------------------------------------------------*/

/* Emits DIV or REM @p op of vectors of u32. @p uniform: the divisor, if all
 * lanes share it; LL_NONE otherwise. */
ll_op ll_divide(ll *e, uint8_t op, ll_op a, ll_op b, ll_op uniform);

/* --- prefetch.c ------------------------------------------------------------------*/

/* Prefetches the address of an access of a later invocation. */
void ll_prefetch(ll *e, const vyre__prefetch *p);

/* --- masked_exits.c -------------------------------------------------------------------*/

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

void ll_nodes(ll *e, const vyre__sched_node *first);
void ll_code(ll *e, uint32_t begin, uint32_t end);
void ll_instruction(ll *e, uint32_t at);
void ll_open_long(ll *e, ll_op *counter, uint32_t *outer);
void ll_close_long(ll *e, ll_op counter, uint32_t head, uint32_t outer);

/* Makes the counter of iterations between two polls of `stop`. */
void ll_open_rounds(ll *e);
/* Polls `stop`, and continues at @p again. */
void ll_poll(ll *e, uint32_t again);

/* --- loop_parts.c ------------------------------------------------------------------*/

typedef struct ll_parts {
  vyre__val test; /* of the loop around it */
  ll_op limit;    /* .. and its limit */
  ll_op bound;
  uint32_t outer; /* label */
} ll_parts;

/* Begins a loop that polls `stop` between parts. Returns false if the loop at
 * @p node has to count its iterations. */
bool ll_open_parts(ll *e, const vyre__sched_node *node, ll_parts *parts);
/* Emits the test of the loop in a part. */
void ll_test_part(ll *e, uint32_t at);
void ll_close_parts(ll *e, const vyre__sched_node *node, const ll_parts *parts);

/* --- loop_peel.c -------------------------------------------------------------------*/

/* Emits the peeled iterations, which no lane leaves, before the loop itself. */
void ll_peeled_iterations(ll *e, const vyre__sched_node *loop);

/* --- file.c ---------------------------------------------------------------------*/

/* Allocates memory of the workgroup, on the stack up to a limit. @p name:
 * NULL for none. */
ll_op ll_array(ll *e, unsigned type, uint64_t count, const char *name,
               uint32_t number);
void ll_clear_arrays(ll *e); /* at the start of a workgroup */

/* Returns true for code of workgroups that are not full: few of them run, and
 * their code should be short. */
static inline bool ll_is_spare(const ll *e) {
  const vyre__sched_node *node = vyre__sched_groups(e->s)->body;
  return !e->is_full_group && node && node->kind == VYRE__SCHED_FULL_GROUPS;
}

/* --- regions.c -----------------------------------------------------------------*/

void ll_group_nodes(ll *e, const vyre__sched_node *first);
void ll_run_range(ll *e, const vyre__sched_node *range, ll_op mask);
/* Emits the values of a UNIFORM leaf. */
void ll_hoist(ll *e, const vyre__sched_node *leaf);
/* Emits rows of @p count invocations from x = @p first, for all y and z. */
void ll_run_rows(ll *e, const vyre__sched_node *rows, ll_op first, ll_op count);
/* Starts the row at local[1] and local[2]. */
void ll_begin_row(ll *e);
/* Stores in e->vector_index the index, in the workgroup, of the vector that starts at
 * @p x of the current row. */
void ll_set_vector_index(ll *e, ll_op x);
/* Returns true if @p v is the x coordinate of fused rows. */
bool ll_is_x(const ll *e, vyre__val v);
void ll_give_x(ll *e, vyre__val v);
void ll_clear_done(ll *e);
ll_op ll_opaque(ll *e, ll_op op);
uint32_t ll_vector_count(const ll *e); /* vectors per workgroup */

/* --- rows.c --------------------------------------------------------------------*/

void ll_run_row(ll *e, const vyre__sched_node *rows, ll_op first, ll_op count);
/* Returns true if the start of the row loaded LOAD @p v for this code. */
bool ll_is_row_load(const ll *e, vyre__val v);
void ll_give_row_load(ll *e, vyre__val v);
/* Emits an i1 that is true if the conditions of @p row that depend only on the
 * workgroup hold for every invocation of the row. */
ll_op ll_row_is_full(ll *e, vyre__row_split *row);

/* --- full_workgroups.c ------------------------------------------------------------------*/

/* Emits one workgroup. */
void ll_run_group(ll *e);

/* A range of a row. */
typedef struct ll_interval {
  ll_op from,
      to; /* i64, counted from the start of the row; `to` is exclusive */
} ll_interval;

/* Emits the range that row local[1] and the next ones of JAM @p jam have in
 * common, jammed. *done: that range. Returns true if parts of the rows
 * remain. */
bool ll_run_together(ll *e, const vyre__sched_node *rows,
                     const vyre__sched_node *jam, ll_op first, ll_op count,
                     ll_interval *done);
/* Does the same as ll_run_row, except for a range that is done already. */
void ll_run_rest(ll *e, const vyre__sched_node *rows, ll_op first, ll_op count,
                 ll_interval done);

/* Emits @p v, which is uniform or linear, at the start of the row. */
void ll_emit_at_row_start(ll *e, vyre__val v);

/* --- loop_range.c ------------------------------------------------------------------*/

/* Emits the range of a row of @p count invocations in which @p condition holds in
 * every iteration of the loops around it. */
ll_interval ll_loop_condition_range(ll *e, vyre__row_split *row,
                                    const vyre__row_condition *condition,
                                    ll_op count);

/* --- unroll_jam.c --------------------------------------------------------------------*/

typedef struct ll_jam ll_jam;

/* Allocates the state that each jammed row has separately, such as its values and
 * variables. Returns NULL if out of memory. */
ll_jam *ll_make_jam(ll *e, const vyre__jam *plan);
/* Delimit the code of one vector of each row; e->jam is set before. */
void ll_begin_jam(ll *e);
void ll_end_jam(ll *e);
/* Emits instruction @p at for every row, or once if rows share it. */
void ll_each_row(ll *e, uint32_t at, void (*make)(ll *e, uint32_t at));
/* Does the part of ll_leave for jammed rows: discards, in every row, what was
 * derived for @p v since ll_enter. */
void ll_forget_rows(ll *e, vyre__val v);

#endif
