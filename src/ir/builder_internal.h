/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Between the files of the builder. */
#ifndef VYRE_IR_BUILDER_INTERNAL_H
#define VYRE_IR_BUILDER_INTERNAL_H

#include "vyre/builder.h"

#include "base/attributes.h"
#include "ir/ir_builder.h"

typedef enum vyre__scope_kind {
  VYRE__SCOPE_KERNEL,
  VYRE__SCOPE_FUNCTION,
  VYRE__SCOPE_BLOCK,
  VYRE__SCOPE_THEN,
  VYRE__SCOPE_ELSE,
  VYRE__SCOPE_WHILE,
  VYRE__SCOPE_FOR
} vyre__scope_kind;

typedef struct vyre__scope {
  vyre__scope_kind kind;
  vyre__mark mark;
  vyre__id condition; /* of if and while */
  vyre__id then;      /* of an else */
  vyre__for loop;
} vyre__scope;

struct vyre_builder {
  vyre_allocator allocator;
  uint32_t number; /* what its handles carry */
  bool finished;
  vyre_status failure; /* the first mistake */
  vyre__ir_builder maker;
  vyre__kernel kernel;
  uint32_t function; /* of the kernel; VYRE_NO_INDEX until it begins */
  vyre_buffer_decl *buffers;
  size_t buffer_capacity;
  vyre__scope *scopes;
  size_t scope_count, scope_capacity;
  uint8_t *used; /* one a node: whether a statement or value has taken it */
  size_t used_count, used_capacity;
};

/* Remembers a mistake; does nothing if there was one before. */
void vyre__builder_fail(vyre_builder *b, const char *fix, const char *format,
                        ...) VYRE__PRINTF(3, 4);

/* Whether a value or statement can be made: no mistake yet, not finished. Begins
 * the kernel's body if nothing is begun. */
bool vyre__builder_ready(vyre_builder *b);

/* The node of a handle, for one use; 0 if that was a mistake. */
vyre__id vyre__builder_use(vyre_builder *b, vyre_value value);
/* The same for a statement: all variables in it must still be there. */
vyre__id vyre__builder_take(vyre_builder *b, vyre_value value);

/* The maker's numbers of handles; VYRE_NO_INDEX if that was a mistake. */
uint32_t vyre__builder_buffer(vyre_builder *b, vyre_build_buffer_ref buffer);
uint32_t vyre__builder_local(vyre_builder *b, vyre_variable variable);

#endif
