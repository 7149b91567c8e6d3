/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by the files that implement analyze/share_subgroups.h. */
#ifndef VYRE_ANALYZE_SHARE_SUBGROUPS_INTERNAL_H
#define VYRE_ANALYZE_SHARE_SUBGROUPS_INTERNAL_H

#include "analyze/share_subgroups.h"
#include "analyze/uniformity.h"
#include "ir/builder/ir_builder.h"

enum { SHARE_COPIES = 2 };

typedef struct sharer {
  const vyre_program *program;
  vyre__uniformity facts;
  vyre__ir_builder builder;
  vyre_arena scratch;
  vyre__kernel kernel;
  uint32_t *locals;             /* in the result, per local */
  uint8_t *has;                 /* per node: SHARE_* */
  uint32_t first_hidden, shift; /* buffers from first_hidden on move by shift */
  /* Shared memory with an element per invocation, of 4 and of 8 bytes, and of
   * one flag. There are two copies, which exchanges use in turn, so that most of
   * them need one barrier. */
  uint32_t words[2][SHARE_COPIES], flag;
  bool is_clean[2][SHARE_COPIES]; /* a barrier followed all its loads */
  uint32_t number; /* local: the number of the invocation in the workgroup */
  uint32_t unique;
  struct share_scope *scope; /* of the statement; NULL without guards */
  uint32_t whole_loops;      /* loops around the statement, inside one without
                           operations of subgroups */
  bool no_memory;
  char message[200]; /* first error */
} sharer;

enum {
  SHARE_EXCHANGE = 1, /* contains an operation of a subgroup or a barrier */
  SHARE_JUMP = 2,     /* contains a jump out of itself */
  SHARE_RETURN = 4,   /* contains a return */
  SHARE_EFFECT = 8,   /* contains an atomic */
};

/* Statements that a jump may leave. */
typedef enum share_kind {
  SHARE_KERNEL,
  SHARE_IF,
  SHARE_LOOP,
  SHARE_BODY
} share_kind;

typedef struct share_scope {
  struct share_scope *outer;
  uint32_t guard; /* local: this invocation takes part */
  share_kind kind;
} share_scope;

static inline const vyre__node *share_node(const sharer *s, vyre__id id) {
  return &s->program->nodes[id];
}

/* Adds a local of the result and returns its number. */
uint32_t share_local(sharer *s, const char *name, bool is_mutable,
                     vyre__id value);
vyre__id share_get(sharer *s, uint32_t local);
void share_set(sharer *s, uint32_t local, vyre__id value);
vyre__id share_literal(sharer *s, vyre_type type, uint64_t bits);
void share_barrier(sharer *s);
/* Notes that any copy of the shared memory may have been read since the last
 * barrier. */
void share_forget(sharer *s);
/* Ends the block from @p mark on and adds it under a condition. */
void share_if(sharer *s, vyre__id condition, vyre__mark mark);

/* Copies a value without operations of subgroups. */
vyre__id share_value(sharer *s, vyre__id id);
/* Copies a statement that has none. */
void share_statement(sharer *s, vyre__id id);
/* Copies the operation of a subgroup, or the uniform(), in a `let` for given
 * operands. */
vyre__id share_exchange(sharer *s, const vyre__node *node,
                        const vyre__id operands[2]);
/* Returns whether @p local holds for any invocation of the workgroup. */
vyre__id share_any(sharer *s, uint32_t local);

/* Copies the body of the kernel with guards. */
void share_masked(sharer *s);
/* Copies a jump out of the statements that have guards. */
void share_jump(sharer *s, vyre__op op);

#endif
