/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Bytes of an input, and where in them something stands. */
#ifndef VYRE_TOOLS_IO_READ_FILE_H
#define VYRE_TOOLS_IO_READ_FILE_H

#include "vyre/memory.h"

#include "cli/error.h"

/* Most bytes of an input. */
#define INPUT_LIMIT ((size_t)2 << 30)

typedef struct input {
  const char *label; /* how messages call it */
  const char *text;
  size_t length;
  size_t capacity; /* bytes to free; 0: the text is somebody else's */
} input;

/* Reads a file, or standard input if @p path is "-". End it with input_finish,
 * after a failure too. */
bool read_input(const char *path, input *out, problem *wrong);
/* The same, but of at most @p limit bytes if it does not begin as JSON. */
bool read_json_or(const char *path, size_t limit, input *out, problem *wrong);
/* The same, of at most @p limit bytes. */
bool read_input_up_to(const char *path, size_t limit, input *out,
                      problem *wrong);
void input_finish(input *in);

/* Sets the place of @p wrong to a byte of @p in. */
void problem_at(problem *wrong, const input *in, size_t offset);

/* An array that grows in an arena. Growing leaves the old copy behind, at most
 * as much again as the array itself. */
typedef struct arena_list {
  void *items;
  size_t count, capacity;
} arena_list;

/* Room for one more item, whose address it returns; NULL without memory. */
void *list_add(arena_list *list, size_t item_size, vyre_arena *arena);

#endif
