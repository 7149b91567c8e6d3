/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by the files of the public program builder. */
#ifndef VYRE_IR_BUILDER_INTERNAL_H
#define VYRE_IR_BUILDER_INTERNAL_H

#include "vyre/builder.h"

#include "base/attributes.h"
#include "ir/builder/ir_builder.h"

typedef enum vyre__scope_kind {
  VYRE__SCOPE_KERNEL,
  VYRE__SCOPE_FUNCTION,
  VYRE__SCOPE_BLOCK,
  VYRE__SCOPE_THEN,
  VYRE__SCOPE_ELSE,
  VYRE__SCOPE_WHILE,
  VYRE__SCOPE_DO,
  VYRE__SCOPE_FOR,
  VYRE__SCOPE_GEOMETRIC_FOR,
  VYRE__SCOPE_SWITCH, /* before the first label */
  VYRE__SCOPE_ARM     /* in a switch, after a label */
} vyre__scope_kind;

typedef struct vyre__scope {
  vyre__scope_kind kind;
  vyre__mark mark;
  vyre__id condition; /* of an if or while */
  vyre__id then;      /* first body of an if with else */
  union {
    vyre__for loop;
    vyre__do do_loop;
    vyre__geometric geometric;
    vyre__switch choice;
  };
} vyre__scope;

struct vyre_builder {
  vyre_allocator allocator;
  uint32_t number; /* stored in every handle */
  bool finished;
  vyre_status failure; /* the first error */
  vyre__ir_builder ir;
  vyre__kernel kernel;
  vyre__queue_clauses queue; /* kernel.queue, if it is a queue kernel */
  vyre__queue_field fields[VYRE__MAX_QUEUE_FIELDS];
  /* index of the kernel; VYRE_NO_INDEX before its first statement */
  uint32_t function;
  vyre_buffer_decl *buffers;
  size_t buffer_capacity;
  vyre__scope *scopes;
  size_t scope_count, scope_capacity;
  uint8_t *used; /* per node: true once a statement or value uses it */
  size_t used_count, used_capacity;
};

/* Records an error, unless there was one before. */
void vyre__builder_fail(vyre_builder *b, const char *fix, const char *format,
                        ...) VYRE__PRINTF(3, 4);

/* Returns true if a value or statement can be added: no error so far, and not
 * built yet. Opens the body of the kernel if no body is open. */
bool vyre__builder_ready(vyre_builder *b);

/* Returns the node of a handle and marks it as used; 0 after an error. */
vyre__id vyre__builder_use(vyre_builder *b, vyre_value value);
/* Like vyre__builder_use, for a statement: all variables of the value must
 * still be in scope. */
vyre__id vyre__builder_take(vyre_builder *b, vyre_value value);

/* Return the IR builder's index of a handle; VYRE_NO_INDEX after an error. */
uint32_t vyre__builder_buffer(vyre_builder *b, vyre_build_buffer_ref buffer);
uint32_t vyre__builder_local(vyre_builder *b, vyre_variable variable);

#endif
