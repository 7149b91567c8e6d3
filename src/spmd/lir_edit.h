/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Copies a kernel with changes: a pass copies ranges of instructions in order,
 * and emits others between them.
 *
 * Running out of memory is sticky: every later call does nothing, and
 * vyre__edit_end reports it. */
#ifndef VYRE_SPMD_LIR_EDIT_H
#define VYRE_SPMD_LIR_EDIT_H

#include "vyre/memory.h"

#include "lir/lir.h"

typedef struct vyre__lir_edit {
  const vyre__lir_kernel *from;
  vyre_arena *arena;
  vyre__lir_kernel to;
  uint32_t capacity; /* instructions; `more` are added as needed */
  vyre__val *map;    /* per instruction of `from`: its copy to use now */
  uint32_t *place;   /* per instruction of `from`: index of its last copy */
  bool no_memory;
} vyre__lir_edit;

/* Begins a copy of @p from, with room for @p more loops and variables. */
void vyre__edit_begin(vyre__lir_edit *e, const vyre__lir_kernel *from,
                      uint32_t more, vyre_arena *arena);

/* Copies instructions [begin, end). Their operands are looked up in `map`,
 * where each copy then replaces its original. Set @p again for a second copy
 * of the same instructions: it gets new entries in the table of loops. */
void vyre__edit_copy(vyre__lir_edit *e, uint32_t begin, uint32_t end,
                     bool again);

/* Emits an instruction, at the source location of instruction @p like of
 * `from`. Operands are values of the copy. Returns its value. */
vyre__val vyre__edit_push(vyre__lir_edit *e, uint32_t like,
                          vyre__lir_inst inst);
vyre__val vyre__edit_const(vyre__lir_edit *e, uint32_t like, vyre_type type,
                           uint64_t bits);

uint32_t vyre__edit_var(vyre__lir_edit *e, const char *name, vyre_type type);
/* Adds a loop; its values are values of the copy. */
uint32_t vyre__edit_loop(vyre__lir_edit *e, const vyre__lir_loop *loop);

/* Marks the end of the code that was added before instruction @p at. */
static inline void vyre__edit_reach(vyre__lir_edit *e, uint32_t at) {
  if (!e->no_memory) e->place[at - 1] = e->to.count - 1;
}

/* Ends the copy; the result is in the arena. Returns NULL without memory. */
const vyre__lir_kernel *vyre__edit_end(vyre__lir_edit *e);

#endif
