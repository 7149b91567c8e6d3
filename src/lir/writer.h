/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* LIR writer: appends instructions to a growing array for the passes. It folds
 * constants and tracks the known value of each variable.
 *
 * Errors are sticky. If memory runs out, `no_memory` is set and every later
 * call returns 0; the pass checks it once at the end. If a kernel exceeds the
 * limits of the target, `code_failed` is set in the same way.
 *
 * Two writing calls must never be arguments of one call. C leaves their order
 * open, so instruction indices would depend on the compiler that built vyre. */
#ifndef VYRE_LIR_WRITER_H
#define VYRE_LIR_WRITER_H

#include "lir/float_range.h"
#include "lir/lir.h"

/* Undo entry for one variable: its known value before a SET. */
typedef struct vyre__set_log {
  uint32_t var;
  vyre__val before;
} vyre__set_log;

/* A constant that later instructions can reuse. */
typedef struct vyre__lir_constant {
  vyre__val value;  /* 0: empty */
  uint32_t nesting; /* nesting depth of its block */
} vyre__lir_constant;

enum {
  VYRE__LIR_CONSTANTS = 256, /* power of two */
  VYRE__LIR_NESTED = 16,     /* no sharing in deeper blocks */
};

typedef struct vyre__lir_writer {
  vyre_allocator allocator;
  const vyre__target *target;
  const vyre_program *program; /* program of the user */
  vyre__lir_inst *code;
  size_t count, code_capacity;
  vyre__source_loc *source_locs;
  size_t source_loc_capacity;
  size_t inst_capacity; /* instructions that fit all arrays */
  vyre__lir_var *vars;
  size_t var_count, var_capacity;
  vyre__val *current; /* per variable: its known value; 0: unknown, emit a
                       * GET */
  size_t current_capacity;
  vyre__lir_buffer *buffers;
  size_t buffer_count, buffer_capacity;
  vyre__lir_loop *loops;
  size_t loop_count, loop_capacity;
  vyre__set_log *log;
  size_t log_count, log_capacity;
  uint32_t nesting; /* depth of open blocks; at 0 no undo entry is needed */
  uint32_t *
      float_range_of; /* per instruction: index in facts; only if wants_facts */
  size_t float_range_of_capacity;
  vyre__float_range *float_ranges; /* ranges of floats; [0]: unknown */
  size_t float_range_count, float_range_capacity;
  bool tracks_float_ranges;
  bool f32_is_bits;      /* f32 variables and values are stored as u32 */
  bool shares_constants; /* Reuses constants of open blocks. Otherwise half of
                          * all values that cse-dce sees would be constants. */
  vyre__lir_constant constants[VYRE__LIR_CONSTANTS]; /* hash table, by bits */
  vyre__val closed[VYRE__LIR_NESTED]; /* per nesting depth: end of the last
                                       * closed block or arm */
  bool adds_fuel;                     /* counts loop iterations in fuel_var */
  uint32_t fuel_var;
  bool splits_u64; /* u64 variables become two u32; values become PAIRs */

  vyre__source_loc here;      /* source location of the next instruction */
  uint32_t uniform_buffer[2]; /* for 4 and 8 bytes; VYRE_NO_INDEX: none yet */
  uint32_t workgroup[3];
  vyre_arena *tables; /* holds the elements of tables; lives as the kernel */
  uint32_t access_count, proven_count;
  uint32_t call_depth;                /* nesting depth of library functions
                                       * being expanded */
  uint8_t expanding[VYRE__LIR_COUNT]; /* operations of those functions, taken as
                                       * native */
  bool no_memory;
  vyre_code code_failed; /* error code of a kernel that cannot be lowered */
  vyre_status *st;

  /* Handles one operation: vyre__lir_simplify, or a pass that expands it. */
  vyre__val (*emit)(struct vyre__lir_writer *lir, const vyre__lir_inst *inst);
} vyre__lir_writer;

void vyre__lir_writer_init(vyre__lir_writer *lir, const vyre_program *program,
                           const vyre__target *target, vyre_allocator allocator,
                           vyre_status *st);
void vyre__lir_writer_deinit(vyre__lir_writer *lir); /* frees all arrays */

/* Empties the writer for a new kernel. Keeps its memory. */
void vyre__lir_restart(vyre__lir_writer *lir);

/* Reserves memory for @p count instructions. */
void vyre__lir_expect(vyre__lir_writer *lir, size_t count);

/* Starts tracking float ranges. Must be called before anything is written. */
void vyre__lir_track_float_ranges(vyre__lir_writer *lir);
void vyre__lir_drop_float_ranges(vyre__lir_writer *lir);

static inline vyre__float_range vyre__lir_float_range(
    const vyre__lir_writer *lir, vyre__val v) {
  return lir->tracks_float_ranges ? lir->float_ranges[lir->float_range_of[v]]
                                  : vyre__float_range_any();
}

/* Replaces the computed range of a value. */
void vyre__lir_set_float_range(vyre__lir_writer *lir, vyre__val v,
                               vyre__float_range fact);

/* Copies buffers, variables and loops of @p from. Returns false without
 * memory. */
bool vyre__lir_copy_tables(vyre__lir_writer *lir, const vyre__lir_writer *from);

/* Appends an instruction unchanged. */
vyre__val vyre__lir_push(vyre__lir_writer *lir, const vyre__lir_inst *inst);

/* Folds an instruction if possible, otherwise appends it. */
vyre__val vyre__lir_simplify(vyre__lir_writer *lir, const vyre__lir_inst *inst);

vyre__val vyre__lir_bits(vyre__lir_writer *lir, vyre_type type, uint64_t bits);
uint32_t vyre__lir_new_var(vyre__lir_writer *lir, const char *name,
                           vyre_type type);
uint32_t vyre__lir_new_buffer(vyre__lir_writer *lir,
                              const vyre__lir_buffer *buffer);

/* Emits one operation through lir->emit. @p type is the type of the result. */
static inline vyre__val vyre__lir_do(vyre__lir_writer *lir, vyre__lir_op op,
                                     vyre_type type, vyre__val a, vyre__val b,
                                     vyre__val c) {
  return lir->emit(
      lir, &(vyre__lir_inst){
               .op = (uint8_t)op, .type = (uint8_t)type, .v = {a, b, c, 0}});
}

static inline vyre_type vyre__lir_type_of(const vyre__lir_writer *lir,
                                          vyre__val v) {
  return (vyre_type)lir->code[v].type;
}

/* Returns true and the bits if a value is a constant. */
static inline bool vyre__lir_is_constant(const vyre__lir_writer *lir,
                                         vyre__val v, uint64_t *bits) {
  const vyre__lir_inst *inst = &lir->code[v];
  if (inst->op != VYRE__LIR_CONST) return false;
  *bits = vyre__lir_const(inst);
  return true;
}

/* Reads, writes and invalidates variables, and tracks their known values. */
vyre__val vyre__lir_get(vyre__lir_writer *lir, uint32_t var);
void vyre__lir_set(vyre__lir_writer *lir, uint32_t var, vyre__val value);
void vyre__lir_invalidate(vyre__lir_writer *lir, uint32_t var);

/* Fails because the kernel exceeds a limit. Only the first failure is
 * reported. */
void vyre__lir_too_large(vyre__lir_writer *lir, const char *unit, uint64_t need,
                         uint64_t max);

/* Fails because a library function exceeds a limit, which is a bug in vyre. */
void vyre__lir_library_too_large(vyre__lir_writer *lir, const char *unit,
                                 uint64_t need, uint64_t max);

/* Control flow. `begin` is the result of vyre__lir_if or
 * vyre__lir_loop_begin. */
size_t vyre__lir_if(vyre__lir_writer *lir, vyre__val condition, uint16_t hints);
void vyre__lir_else(vyre__lir_writer *lir, size_t begin);
uint32_t vyre__lir_new_loop(vyre__lir_writer *lir, const vyre__lir_loop *loop);
size_t vyre__lir_loop_begin(vyre__lir_writer *lir, uint32_t loop);
void vyre__lir_to_step(vyre__lir_writer *lir);
void vyre__lir_end(vyre__lir_writer *lir, size_t begin);
/* Appends an operation without operands. */
void vyre__lir_plain(vyre__lir_writer *lir, vyre__lir_op op);

#endif
