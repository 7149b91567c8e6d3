/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_CODEGEN_LLVM_INTERNAL_H
#define VYRE_CODEGEN_LLVM_INTERNAL_H

#include <stdarg.h>

#include "codegen/llvm/llvm.h"
#include "spmd/lane_shape.h"
#include "spmd/regions.h"
#include "spmd/single_read.h"

/* --- text -------------------------------------------------------------------*/

/* Types as LLVM has them; | LL_VEC: a vector of `width` of them. */
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
  LL_CONST, /* bits of a number; in vectors: of every lane */
  LL_NAMED, /* %name, of an argument or the entry block */
} ll_kind;

typedef struct ll_op {
  uint8_t kind;
  uint32_t id;      /* LL_TEMP; LL_NAMED: number behind the name */
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
  LL_SCALAR, /* one number for all lanes */
  LL_LINEAR, /* that of lane 0, and a stride */
  LL_VECTOR,
} ll_form;

/* What stands for a value where code is being written. */
typedef struct ll_rep {
  uint8_t form;
  bool is_derived; /* made where it was asked for: a leaf, or kept elsewhere */
  uint32_t stamp; /* the copy of a piece it was made in; 0: for the workgroup */
  uint64_t stride;
  ll_op s; /* the number, or that of lane 0 */
  ll_op v; /* the vector, if there is one yet */
} ll_rep;

/* What a condition is known to be in the code that is being written. */
typedef enum ll_known { LL_UNKNOWN, LL_FALSE, LL_TRUE } ll_known;

typedef enum ll_scope_kind {
  LL_SCOPE_REGION,
  LL_SCOPE_LOOP,
  LL_SCOPE_IF, /* lanes wait at its end */
} ll_scope_kind;

/* What is around the code that is being written and that lanes leave or wait at. */
typedef struct ll_scope {
  struct ll_scope *up;
  uint8_t kind;
  uint32_t at;        /* LOOP */
  uint32_t end, step; /* labels; IF: end is where all meet again */
  bool has_live;      /* LOOP: some lanes leave it before others */
  bool has_act;       /* some lanes leave an iteration, or the piece, before
                         others */
  bool
      lanes_at_step; /* LOOP: lanes may have left this iteration by CONTINUE and
                         wait at the step */
  uint32_t check; /* label: goes to the step if a lane is live, else to end */
  bool end_used, step_used, check_used;
  ll_op live, act; /* variables that hold the masks; see masked_exits.c */
} ll_scope;

/* Which lanes are on. */
typedef struct ll_mask {
  ll_op lanes; /* i32, all ones or zeros; LL_NONE: all are on */
  ll_op bits;  /* the same as i1; LL_NONE: not made yet */
} ll_mask;

/* What the emitter asks about loops and ifs; see divergence.c. */
typedef struct ll_note {
  bool parts;      /* LOOP: it needs `live`: lanes leave in different rounds */
  bool continues;  /* LOOP: it needs `act`: some lanes wait at its step */
  bool drops;      /* IF, LOOP: lanes that are on before may be off after it */
  bool is_small;   /* IF: only operations without effect and variables in it */
  bool is_settled; /* IF: done at the begin of the row */
  bool is_leap;    /* IF: the same, with a jump at its end */
  bool is_long;    /* LOOP: it may take long; looks whether to stop */
  bool no_blend;   /* SET: nobody asks for what the lanes that are off had */
  uint8_t known;   /* ll_known in the code for full rows .. */
  uint32_t known_in;          /* .. of that piece */
  vyre__val logic_a, logic_b; /* GET: it is a && b, or a || b; 0: neither */
  bool logic_or;
  bool is_straight;     /* IF of && or ||: what is in it is done anyway .. */
  bool is_dead;         /* .. and these SETs are not needed */
  uint8_t groups;       /* LOOP: run for so many groups of sums, one after the
                       other; 0: at once. In it: the groups it is for */
  uint32_t group_start; /* LOOP: SET of its counter */
  uint32_t split; /* LOOP: where lanes first part in a round; 0: nowhere */
} ll_note;

typedef struct ll_var {
  bool is_used;
  bool is_array;   /* one element a vector of the workgroup */
  uint8_t form;    /* LL_SCALAR, LL_LINEAR, LL_VECTOR */
  bool has_shadow; /* lockstep: a scalar beside the vector */
  uint64_t stride;
  ll_op at, shadow; /* where it is; LL_NONE: nowhere yet */
  bool is_const;    /* of the workgroup: it has `bits` where code is written */
  uint64_t bits;
} ll_var;

/* Atomics on a buffer that wait until the range is done: see privatize_atomics.c. */
typedef struct ll_delay {
  uint8_t op; /* vyre__lir_op of all of them */
  bool is_refused, is_on;
  uint32_t elements; /* that there is room for */
  uint64_t times;    /* that an invocation does it, about */
  uint32_t twin;     /* shared: the part of the phase in which every other lane
                        has an array of its own; 0: none */
} ll_delay;

typedef struct ll {
  const vyre__lir_kernel *kernel;
  const vyre__emit_llvm_options *options;
  vyre_allocator allocator;
  vyre_arena *arena;
  vyre_status *st;
  uint32_t width;
  bool no_memory;
  vyre__lir_op refused; /* operation without a spelling */

  ll_text entry, body; /* of the function that is being written */
  ll_text *to;
  char vectors[LL_TYPES][20]; /* "<8 x i32>" */
  uint32_t temps, labels;
  bool is_open; /* the block has no end yet */

  uint32_t phase;
  vyre__regions r;
  vyre__lane_shapes shapes;
  ll_rep *reps;
  ll_note *notes;
  ll_var *vars;
  ll_op *kept;     /* per instruction of the phase: its array; LL_NONE: none */
  vyre__val *undo; /* values with something that does not outlive its block */
  uint32_t undo_count;
  ll_op done;       /* array of masks */
  bool *piece_acts; /* per piece: some lanes are done with it before others */
  uint64_t scratch_bytes;            /* of all phases the most */
  uint64_t scratch_used, stack_used; /* of this phase */
  bool *buffer_used;
  bool *decides; /* per instruction: spmd/single_read.h */
  /* By type of memory: functions that are called, see lane_loop.c. */
  bool loads_lanes[LL_TYPES], stores_lanes[LL_TYPES];
  ll_delay *delays; /* of each buffer */
  bool *any_nan;    /* buffers: nobody can tell NaNs apart in there */

  uint32_t piece;         /* 0: the workgroup's own code */
  uint32_t stamp, stamps; /* of the copy of a piece; 0: the workgroup */
  ll_op vector_index;     /* of the vector in the workgroup, i32 */
  struct ll_row **rows;   /* of each piece; NULL: it is not done by rows */
  struct ll_jam **jams;   /* of each piece; NULL: a row at a time */
  struct ll_jam *jam;     /* rows that are being written side by side */
  uint8_t group_now;      /* bit of the group of sums; 0: all */
  bool has_rows;          /* x is counted along rows */
  bool is_fused;          /* rows go through workgroups side by side */
  bool overlaps;          /* vectors of a row may begin anywhere, and overlap */
  vyre__val fused_x;      /* what x is then */
  ll_op row_first;        /* number of the row's first vector, i32 */
  ll_op x;                /* i32, of lane 0 */
  ll_op group[3], local[3];
  uint8_t local_form[3];
  ll_op iota; /* 0, 1, 2 .. of i32 */
  ll_mask mask;
  ll_scope *scope;
  bool is_full;             /* notes' `known` holds .. */
  bool is_opposite;         /* .. or does not, in any lane */
  bool is_speculated;       /* perhaps no lane is on */
  bool no_copies;           /* for lanes that are all on */
  uint32_t copies;          /* how often the code around is written */
  bool has_whole, is_whole; /* see full_workgroups.c */
  uint64_t unseen; /* rounds of an invocation in which nobody looks at `stop` */
  bool unrolls; /* rounds of a loop of the workgroup are written one by one */
  uint32_t stop_label, fuel_label;
  uint32_t next_group; /* label */
  bool uses_stop, uses_fuel_exit, uses_next;
  ll_scope *group_scope; /* loops of the workgroup */
} ll;

/* --- text.c ---------------------------------------------------------------*/

/* Formats: %t type, %o type and operand (type, op), %v operand alone (type, op),
 * %b label, %u, %s, %l (uint64_t, decimal). */
void ll_print(ll *e, const char *format, ...);
void ll_vprint(ll *e, const char *format, va_list args);
/* A line that makes a value. */
ll_op ll_def(ll *e, const char *format, ...);
/* A line that does something. */
void ll_do(ll *e, const char *format, ...);
/* A line of the entry block: @p name with a number. */
ll_op ll_alloca(ll *e, unsigned type, uint64_t count, unsigned align);

uint32_t ll_label(ll *e);
void ll_place(ll *e, uint32_t label); /* begins a block; ends the one before */
void ll_br(ll *e, uint32_t label);
void ll_cond(ll *e, ll_op condition, uint32_t yes, uint32_t no);
void ll_hope(ll *e, ll_op condition, uint32_t yes,
             uint32_t no); /* mostly yes */

static inline ll_op ll_const(uint64_t bits) {
  return (ll_op){.kind = LL_CONST, .bits = bits};
}
static inline ll_op ll_name(const char *name, uint32_t id) {
  return (ll_op){.kind = LL_NAMED, .name = name, .id = id};
}
static inline bool ll_is(ll_op op, uint64_t bits) {
  return op.kind == LL_CONST && op.bits == bits;
}

unsigned ll_type(unsigned vyre_type_of); /* of a vyre_type, scalar */
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

/* What stands for @p v here; loads it if it was kept. */
ll_rep *ll_value(ll *e, vyre__val v);
bool ll_is_scalar(ll *e, vyre__val v); /* the same for all active lanes */
ll_op ll_scalar(ll *e, vyre__val v);   /* of uniform ones, or that of lane 0 */
ll_op ll_vector(ll *e, vyre__val v);
ll_known ll_known_of(ll *e, vyre__val v);
void ll_give(ll *e, vyre__val v, uint8_t form, ll_op op);
/* Makes what instruction @p v gives, and keeps it if that is asked for. */
void ll_pure(ll *e, vyre__val v);
/* What lanes agree about becomes one number. */
void ll_agree(ll *e, vyre__val v);
void ll_keep(ll *e, vyre__val v);
/* Around code that what follows does not see. */
static inline uint32_t ll_enter(const ll *e) {
  return e->undo_count;
}
void ll_leave(ll *e, uint32_t mark);
/* An element of an array that has one a vector of the workgroup. */
ll_op ll_element(ll *e, ll_op array, unsigned type);
void ll_get(ll *e, vyre__val v);
void ll_set(ll *e, uint32_t at);
void ll_place_var(ll *e, uint32_t var); /* an array, if it has no place yet */
ll_op ll_splat(ll *e, unsigned type, ll_op scalar);

/* --- masks -----------------------------------------------------------------------*/

ll_op ll_mask_bits(ll *e); /* of the current mask, <W x i1>; LL_NONE if full */
ll_op ll_mask_vector(ll *e); /* of the current mask, i32; ones if full */
static inline void ll_set_mask(ll *e, ll_op lanes) {
  e->mask = (ll_mask){.lanes = lanes};
}
static inline bool ll_is_all_on(const ll *e) {
  return e->mask.lanes.kind == LL_NONE;
}
ll_op ll_any(ll *e, ll_op mask); /* i1 */
ll_op ll_all(ll *e, ll_op mask);
ll_op ll_and(ll *e, ll_op a, ll_op b); /* masks; LL_NONE is full */
ll_op ll_and_not(ll *e, ll_op a, ll_op b);
ll_op ll_widen(ll *e, ll_op bits); /* i1 to a mask */
/* Where bool @p v holds, or does not. */
ll_op ll_mask_of(ll *e, vyre__val v, bool is_not);
ll_op ll_lanes(ll *e, ll_op mask); /* a number with a bit a lane, i32 */

/* The lanes that do an access with condition @p c (0: none): LL_NONE if all. */
ll_op ll_active(ll *e, vyre__val c);

/* Whether @p c is @p want in every lane, all being on: an i1 if that can be told
 * from lane 0, else LL_NONE. */
ll_op ll_test(ll *e, vyre__val c, bool want);

/* --- lane_loop.c -------------------------------------------------------------------*/

typedef struct ll_lane_loop {
  ll_op left, lane; /* lane: i32, of this round */
  uint32_t head, end;
  bool stays; /* it is to be a loop, even if all lanes are on */
} ll_lane_loop;

ll_lane_loop ll_open_lanes(ll *e, ll_op active);
void ll_close_lanes(ll *e, const ll_lane_loop *l);
/* An array on the stack with an element a lane; scalar types. */
ll_op ll_spill(ll *e, unsigned type, ll_op vector);
/* The functions that loads and stores lane by lane call, once a file. */
void ll_lane_functions(ll *e);
ll_op ll_from_lane(ll *e, const ll_lane_loop *l, unsigned type, ll_op array);
void ll_to_lane(ll *e, const ll_lane_loop *l, unsigned type, ll_op array,
                ll_op value);

/* --- memory.c, atomic.c --------------------------------------------------*/

void ll_load(ll *e, vyre__val v);
void ll_store(ll *e, uint32_t at);
void ll_atomic(ll *e, vyre__val v);
/* Where it is, a pointer; whole workgroups have shared memory of their own. */
ll_op ll_base(ll *e, uint32_t buffer);
ll_op ll_twin(const ll *e,
              uint32_t buffer); /* of a shared array: privatize_atomics.c */
uint64_t ll_twin_elements(const ll *e, uint32_t buffer);
ll_op ll_address(ll *e, uint32_t buffer, ll_op index); /* scalar */
const char *ll_atomic_name(uint8_t op);
bool ll_atomic_commutes(uint8_t op); /* order does not show in memory */
/* What a plain operation on memory leaves there: numbers, or vectors. */
ll_op ll_combine(ll *e, uint8_t op, unsigned type, ll_op old, ll_op value);
uint64_t ll_atomic_identity(uint8_t op, unsigned bytes); /* changes nothing */

/* --- privatize_atomics.c ------------------------------------------------------------------*/

/* Finds buffers whose atomics can wait until a range is done. Around the range's
 * code, then: %qN is the memory for buffer N, %wN whether it is to be used. */
vyre_code ll_find_delays(ll *e);
void ll_open_delays(ll *e);
void ll_close_delays(ll *e);
bool ll_is_bulky(const ll *e, uint32_t piece); /* it is not to be repeated */
/* Ends a round of a row of @p piece: the next one, or @p end. */
void ll_again(ll *e, uint32_t piece, ll_op condition, uint32_t head,
              uint32_t end);

/* --- prefetch.c ------------------------------------------------------------------*/

/* At the begin of a piece's code. */
void ll_look_ahead(ll *e, uint32_t piece);

/* --- interchange.c -------------------------------------------------------------------*/

/* Takes loops with atomics out of the loop over invocations: another kernel, for
 * all that comes after. */
vyre_code ll_turn_loops(ll *e, uint32_t phase);
/* Whether the LOOP at @p loop loads what lies side by side for its rounds, and not
 * for invocations. */
bool ll_runs_along(const vyre__lir_kernel *kernel, uint32_t loop);

/* --- divergence.c -------------------------------------------------------------------*/

vyre_code ll_plan(ll *e);
/* Whether bool @p v is a && b (or a || b, where is_or is set), as an operation or
 * by a variable. */
bool ll_logic(const ll *e, vyre__val v, vyre__val *a, vyre__val *b,
              bool *is_or);
/* The same where both have been made before it. */
bool ll_operation(const ll *e, vyre__val v, vyre__val *a, vyre__val *b,
                  bool *is_or);
/* What STORE @p at stores. */
vyre__val ll_stored(const ll *e, uint32_t at);
/* Whether rows can go through workgroups side by side; sets fused_x. */
bool ll_find_fusion(ll *e);

/* --- masked_exits.c -------------------------------------------------------------------*/

/* Finds which loops, ifs and pieces some lanes leave before others. */
void ll_find_exits(ll *e);
/* Takes the lanes that are on out of all that jump @p at leaves, and branches to
 * where other lanes wait or the jump leads. */
void ll_exit_all(ll *e, uint32_t at);
/* Removes the lanes that are on, as ll_exit_all does, but emits no branch: other
 * lanes continue here. */
void ll_exit_some(ll *e, uint32_t at);
/* Returns the label where execution resumes when no lane is on. */
uint32_t ll_resume(ll *e);
/* Returns the scope of the innermost loop, or that of the piece. */
ll_scope *ll_iteration(const ll *e);
ll_op ll_load_mask(ll *e, ll_op at);
void ll_store_mask(ll *e, ll_op mask, ll_op at);

/* --- control_flow.c -------------------------------------------------------------------*/

void ll_block(ll *e, uint32_t begin, uint32_t end);
void ll_instruction(ll *e, uint32_t at);
void ll_open_long(ll *e, ll_op *counter, uint32_t *outer);
void ll_close_long(ll *e, ll_op counter, uint32_t head, uint32_t outer);

/* --- loop_peel.c -------------------------------------------------------------------*/

/* Rounds of a loop that no lane leaves, before the loop itself. */
void ll_steady_rounds(ll *e, uint32_t loop);

/* --- file.c ---------------------------------------------------------------------*/

/* Memory of the workgroup: on the stack as long as that is not too much. @p name:
 * NULL for none. */
ll_op ll_array(ll *e, unsigned type, uint64_t count, const char *name,
               uint32_t number);
void ll_clear_arrays(ll *e); /* where a workgroup begins */

/* --- regions.c -----------------------------------------------------------------*/

void ll_parts(ll *e, uint32_t first);
void ll_run_piece(ll *e, uint32_t index, ll_op mask);
/* What is the same for the workgroup, of a run. */
void ll_hoist(ll *e, const vyre__region *run);
/* Rows of @p count invocations from x = @p first on, for all y and z. */
void ll_run_rows(ll *e, uint32_t piece, ll_op first, ll_op count);
/* The row at local[1] and local[2] begins. */
void ll_begin_row(ll *e);
/* Finds the number of the vector that begins at @p x of its row. */
void ll_count_vectors(ll *e, ll_op x);
/* Whether @p v is the coordinate x of fused rows. */
bool ll_is_x(const ll *e, vyre__val v);
void ll_give_x(ll *e, vyre__val v);
void ll_clear_done(ll *e);
ll_op ll_opaque(ll *e, ll_op op);
uint32_t ll_vector_count(const ll *e); /* vectors a workgroup */

/* --- rows.c --------------------------------------------------------------------*/

typedef struct ll_row ll_row;

/* Looks for conditions of @p piece that hold in a stretch of a row. */
vyre_code ll_plan_row(ll *e, uint32_t piece, ll_row **out);
void ll_run_row(ll *e, ll_row *row, ll_op first, ll_op count);
/* Finds which conditions of @p row can be told where the workgroup begins; whether
 * there are any. */
bool ll_row_is_told(ll *e, ll_row *row);
/* Whether those hold in all of the row: an i1. */
ll_op ll_row_is_whole(ll *e, ll_row *row);

/* --- full_workgroups.c ------------------------------------------------------------------*/

/* Whether whole workgroups get code of their own. */
void ll_plan_whole(ll *e);
void ll_run_group(ll *e);

/* A stretch of a row. */
typedef struct ll_stretch {
  ll_op from, to; /* i64, from the begin of the row on; to: not with it */
} ll_stretch;

/* What rows local[1] and the next of @p jam have in common, side by side. *done:
 * that stretch. Whether something of them is left. */
bool ll_run_together(ll *e, ll_row *row, struct ll_jam *jam, ll_op first,
                     ll_op count, ll_stretch *done);
/* As ll_run_row, but for a stretch that is done already. */
void ll_run_rest(ll *e, ll_row *row, ll_op first, ll_op count, ll_stretch done);

/* How a value goes along a row: it does not change; it counts with x. */
bool ll_row_same(ll *e, ll_row *row, vyre__val v);
bool ll_row_counts(ll *e, ll_row *row, vyre__val v);
/* Makes @p v, which is the same or counts, where the row begins. */
void ll_make_ahead(ll *e, vyre__val v);

/* --- loop_range.c ------------------------------------------------------------------*/

/* Whether it can be told at the begin of a row where @p check, of an access at
 * @p at in a loop, holds in all rounds. */
bool ll_reaches(ll *e, ll_row *row, vyre__val check, uint32_t at);
/* The stretch where it does, of a row of @p count. */
ll_stretch ll_reach(ll *e, ll_row *row, vyre__val check, ll_op count);

/* --- accumulator_split.c ------------------------------------------------------------------*/

/* Looks for loops with more sums than fit into registers. */
void ll_plan_splits(ll *e);
/* Whether @p at is not for the sums that are being written. */
bool ll_is_other_group(const ll *e, uint32_t at);

/* --- unroll_jam.c --------------------------------------------------------------------*/

typedef struct ll_jam ll_jam;

/* Looks whether rows of @p piece are run side by side; *out is NULL if not. */
vyre_code ll_plan_jam(ll *e, uint32_t piece, ll_jam **out);
uint32_t ll_jam_rows(const ll_jam *jam); /* NULL: 1 */
/* Around the code of a vector of each row; e->jam is set before. */
void ll_begin_jam(ll *e);
void ll_end_jam(ll *e);
/* Makes instruction @p at for every row, or once. */
void ll_each_row(ll *e, uint32_t at, void (*make)(ll *e, uint32_t at));
/* What ll_leave forgets, in all rows. */
void ll_forget_rows(ll *e, vyre__val v);

/* --- vector_width.c ------------------------------------------------------------------*/

uint32_t ll_choose_width(const vyre__lir_kernel *kernel, uint32_t lanes);

#endif
