/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Names and values of a file, collected while it is parsed. */
#ifndef VYRE_LANG_SOURCE_INDEX_H
#define VYRE_LANG_SOURCE_INDEX_H

#include "vyre/source.h"

#include "lang/parse/parse.h"

/* A name inside a kernel or fn. */
typedef struct vyre__indexed_name {
  uint32_t symbol;
  uint8_t kind; /* vyre_symbol_kind */
  vyre__token name;
  const char *type; /* in the arena */
  uint32_t end;     /* offset where its scope ends */
  bool is_member; /* a field of a struct: only after a dot, or before a colon */
} vyre__indexed_name;

typedef struct vyre__name_index {
  vyre_arena *arena;
  vyre_allocator allocator;
  void *names; /* array of vyre__indexed_name */
  size_t count, capacity;
  bool no_memory;
} vyre__name_index;

/* Adds a binding that was made. Returns its number. */
uint32_t vyre__index_bind(vyre__parser *p, const vyre__token *name,
                          const vyre__binding *binding);
/* Ends the scope of a binding. */
void vyre__index_unbind(vyre__parser *p, const vyre__binding *binding);

#endif
