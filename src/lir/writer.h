/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How passes write instructions: a growing array, folding on the way, and the
 * value that each variable has where that is known.
 *
 * Memory runs out quietly: everything then gives 0 and `no_memory` is set, which
 * whoever began looks at once, at the end. So does a kernel that grows beyond
 * what the target takes, with `code_failed`.
 *
 * Calls that write are never arguments of one call side by side: C does not say
 * which of them comes first, and numbers of values would depend on the compiler
 * that built vyre. */
#ifndef VYRE_LIR_WRITER_H
#define VYRE_LIR_WRITER_H

#include "lir/float_range.h"
#include "lir/lir.h"

/* A variable got another value: what it was before. */
typedef struct vyre__set_log {
  uint32_t var;
  vyre__val before;
} vyre__set_log;

/* A constant that what follows can use. */
typedef struct vyre__lir_constant {
  vyre__val value;  /* 0: none */
  uint32_t nesting; /* of the block that it is in */
} vyre__lir_constant;

enum {
  VYRE__LIR_CONSTANTS = 256, /* a power of two */
  VYRE__LIR_NESTED = 16,     /* deeper than that they are not shared */
};

typedef struct vyre__lir_writer {
  vyre_allocator allocator;
  const vyre__target *target;
  const vyre_program *program; /* of the user */
  vyre__lir_inst *code;
  size_t count, code_capacity;
  vyre__source_loc *places;
  size_t place_capacity;
  size_t room; /* instructions for which all arrays have room */
  vyre__lir_var *vars;
  size_t var_count, var_capacity;
  vyre__val *current; /* per variable: its value, or 0: GET it */
  size_t current_capacity;
  vyre__lir_buffer *buffers;
  size_t buffer_count, buffer_capacity;
  vyre__lir_loop *loops;
  size_t loop_count, loop_capacity;
  vyre__set_log *log;
  size_t log_count, log_capacity;
  uint32_t nesting;  /* of blocks: outside of all, nothing is taken back */
  uint32_t *fact_at; /* per instruction: its fact; only while wanted */
  size_t fact_at_capacity;
  vyre__float_range
      *facts; /* of floats of which something is known; [0]: nothing */
  size_t fact_count, fact_capacity;
  bool wants_facts;
  bool f32_is_bits;      /* variables of f32 are u32, as values are */
  bool shares_constants; /* those of blocks that are open are used again: half
                            of all values would be constants for `tidy` */
  vyre__lir_constant constants[VYRE__LIR_CONSTANTS]; /* by their bits */
  vyre__val closed[VYRE__LIR_NESTED]; /* per nesting: where such a block ended
                                         last, or an arm of it */
  bool adds_fuel; /* rounds of some loops are counted, in this variable */
  uint32_t fuel_var;
  bool splits_u64; /* u64 variables become two; values become PAIRs */

  vyre__source_loc here;      /* of what is written next */
  uint32_t uniform_buffer[2]; /* for 4 and 8 bytes; VYRE_NO_INDEX: not yet */
  uint32_t workgroup[3];
  uint32_t access_count, proven_count;
  uint32_t depth;                     /* of library functions in which we are */
  uint8_t expanding[VYRE__LIR_COUNT]; /* their own operations are native */
  bool no_memory;
  vyre_code code_failed; /* something that cannot be lowered */
  vyre_status *st;

  /* What happens to an operation: vyre__lir_simplify, or a pass that expands. */
  vyre__val (*emit)(struct vyre__lir_writer *low, const vyre__lir_inst *inst);
} vyre__lir_writer;

void vyre__lir_writer_init(vyre__lir_writer *low, const vyre_program *program,
                           const vyre__target *target, vyre_allocator allocator,
                           vyre_status *st);
void vyre__lir_writer_build(vyre__lir_writer *low); /* frees what it grew */

/* Empty, or empty again with the memory that it has: to be written from its
 * first instruction on. */
void vyre__lir_restart(vyre__lir_writer *low);

/* Room for that many instructions at once. */
void vyre__lir_expect(vyre__lir_writer *low, size_t count);

/* From here on facts of floats are kept; before anything is written. */
void vyre__lir_want_float_ranges(vyre__lir_writer *low);
void vyre__lir_drop_float_ranges(vyre__lir_writer *low);

static inline vyre__float_range vyre__lir_float_range(
    const vyre__lir_writer *low, vyre__val v) {
  return low->wants_facts ? low->facts[low->fact_at[v]]
                          : vyre__float_range_any();
}

/* What is known of a value that was written, instead of what its operation
 * says. */
void vyre__lir_set_float_range(vyre__lir_writer *low, vyre__val v,
                               vyre__float_range fact);

/* Buffers, variables and loops of another one. False without memory. */
bool vyre__lir_copy_tables(vyre__lir_writer *low, const vyre__lir_writer *from);

/* Appends as it is. */
vyre__val vyre__lir_push(vyre__lir_writer *low, const vyre__lir_inst *inst);

/* Folds what is known and appends the rest. */
vyre__val vyre__lir_simplify(vyre__lir_writer *low, const vyre__lir_inst *inst);

vyre__val vyre__lir_bits(vyre__lir_writer *low, vyre_type type, uint64_t bits);
uint32_t vyre__lir_new_var(vyre__lir_writer *low, const char *name,
                           vyre_type type);
uint32_t vyre__lir_new_buffer(vyre__lir_writer *low,
                              const vyre__lir_buffer *buffer);

/* One operation through low->emit. Types of operands are known; @p type is that
 * of the result. */
static inline vyre__val vyre__lir_do(vyre__lir_writer *low, vyre__lir_op op,
                                     vyre_type type, vyre__val a, vyre__val b,
                                     vyre__val c) {
  return low->emit(
      low, &(vyre__lir_inst){
               .op = (uint8_t)op, .type = (uint8_t)type, .v = {a, b, c, 0}});
}

static inline vyre_type vyre__lir_type_of(const vyre__lir_writer *low,
                                          vyre__val v) {
  return (vyre_type)low->code[v].type;
}

/* Whether a value is a constant, and which. */
static inline bool vyre__lir_is_constant(const vyre__lir_writer *low,
                                         vyre__val v, uint64_t *bits) {
  const vyre__lir_inst *inst = &low->code[v];
  if (inst->op != VYRE__LIR_CONST) return false;
  *bits = vyre__lir_const(inst);
  return true;
}

/* Reading and writing variables keeps track of what they hold. */
vyre__val vyre__lir_get(vyre__lir_writer *low, uint32_t var);
void vyre__lir_set(vyre__lir_writer *low, uint32_t var, vyre__val value);
void vyre__lir_forget(vyre__lir_writer *low, uint32_t var);

/* What the kernel needs and cannot have; the first one counts. */
void vyre__lir_too_large(vyre__lir_writer *low, const char *what, uint64_t need,
                         uint64_t most);

/* The same of a library function, which is ours. */
void vyre__lir_misfit(vyre__lir_writer *low, const char *what, uint64_t need,
                      uint64_t most);

/* Control flow; `begin` is what if_begin gave. */
size_t vyre__lir_if(vyre__lir_writer *low, vyre__val condition, uint16_t hints);
void vyre__lir_else(vyre__lir_writer *low, size_t begin);
uint32_t vyre__lir_new_loop(vyre__lir_writer *low, const vyre__lir_loop *loop);
size_t vyre__lir_loop_begin(vyre__lir_writer *low, uint32_t loop);
void vyre__lir_to_step(vyre__lir_writer *low);
void vyre__lir_end(vyre__lir_writer *low, size_t begin);
void vyre__lir_plain(vyre__lir_writer *low, vyre__lir_op op); /* no operands */

#endif
