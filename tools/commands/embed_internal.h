/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What `vyre embed` is made of: names that C and C++ take, and the functions of
 * one kernel. */
#ifndef VYRE_TOOLS_COMMANDS_EMBED_INTERNAL_H
#define VYRE_TOOLS_COMMANDS_EMBED_INTERNAL_H

#include "vyre/binding.h"

#include "cli/error.h"
#include "cli/sink.h"
#include "io/read_file.h"

enum { MOST_NAME = 320 };

/* Names that are taken already. */
typedef struct name_set {
  vyre_arena *arena;
  arena_list list; /* of const char * */
} name_set;

/* @p prefix and @p name as one identifier that is taken in none of the sets. For
 * a parameter it is no word of C or C++ and no macro either; a function always has
 * one of @p endings behind it, which no name of the C library has. Names that begin
 * as those of others get k_ before them. It is taken in @p own then, with each of
 * @p endings (which end with NULL) behind it too. Lives in the arena; NULL without
 * memory. */
const char *unique_name(name_set *own, const name_set *other,
                        const char *prefix, const char *name, bool is_parameter,
                        const char *const *endings);

/* Whether it can begin a name. */
bool is_identifier(const char *text);

typedef struct embedded {
  const vyre_program *program;
  const char *function; /* what its names in C begin with */
  bool is_text;         /* else the binary form, which is larger */
  size_t bytes;         /* of either */
} embedded;

/* Writes all that belongs to one kernel. @p taken has names of files. */
bool embed_kernel(embedded *kernel, const name_set *taken, vyre_arena *arena,
                  sink *out, problem *wrong);

#endif
