/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Parts of `vyre embed`: identifiers that C and C++ accept, and the
 * functions of one kernel. */
#ifndef VYRE_TOOLS_COMMANDS_EMBED_INTERNAL_H
#define VYRE_TOOLS_COMMANDS_EMBED_INTERNAL_H

#include "vyre/binding.h"

#include "cli/error.h"
#include "cli/sink.h"
#include "io/read_file.h"

enum { MAX_NAME = 320 };

/* A set of names in use. */
typedef struct name_set {
  vyre_arena *arena;
  arena_list list; /* const char * */
} name_set;

/* Returns @p prefix and @p name as one identifier that is unused in all
 * sets, and adds it, with each of @p endings (terminated by NULL), to @p
 * own. A parameter is never a keyword or macro of C or C++; a function
 * always has an ending, which no name of the C library has. Names in
 * reserved name spaces get the prefix k_. The result lives in the arena;
 * NULL if memory runs out. */
const char *unique_name(name_set *own, const name_set *other,
                        const char *prefix, const char *name, bool is_parameter,
                        const char *const *endings);

/* Returns true if the character can start an identifier. */
bool is_identifier(const char *text);

typedef struct embedded {
  const vyre_program *program;
  const char *function; /* prefix of its names in C */
  /* Prefix of the package that has its code; NULL: it is compiled when it
   * runs. */
  const char *package;
  bool may_compile; /* if the package has no code for a device */
  bool is_text;     /* otherwise the binary form, which is larger */
  size_t bytes;     /* length of that form */
} embedded;

/* Writes the elements of an array of bytes, and closes it. */
void put_bytes(const uint8_t *bytes, size_t length, sink *out);

/* A struct of the file and its name in C. */
typedef struct named_struct {
  const char *name, *c_name;
} named_struct;

typedef struct struct_list {
  arena_list list; /* named_struct */
} struct_list;

/* Returns the C type of an element that is a scalar. */
const char *c_element_type(vyre_element element);
/* Returns the number of components of a vector type. */
unsigned vector_length(vyre_element element, uint16_t type);
/* Returns the name of a struct in C, or NULL. */
const char *struct_name(const struct_list *list, const vyre_struct *of);
/* Writes the structs of the buffers of a program that the list does not have.
 * Returns false if memory runs out. */
bool embed_structs(struct_list *list, name_set *taken, const char *prefix,
                   const vyre_program *program, vyre_arena *arena, sink *out);

/* Writes the code of one kernel. @p taken has the names used at file scope. */
bool embed_kernel(embedded *kernel, const name_set *taken,
                  const struct_list *structs, vyre_arena *arena, sink *out,
                  problem *wrong);

#endif
