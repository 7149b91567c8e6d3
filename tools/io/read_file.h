/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Input files and positions in them. */
#ifndef VYRE_TOOLS_IO_READ_FILE_H
#define VYRE_TOOLS_IO_READ_FILE_H

#include "vyre/memory.h"

#include "cli/error.h"

/* Largest input in bytes. */
#define INPUT_LIMIT ((size_t)2 << 30)

typedef struct input {
  const char *label; /* name in messages */
  const char *text;
  size_t length;
  size_t capacity; /* bytes to free; 0: the text is borrowed */
} input;

/* Reads a file, or standard input if @p path is "-". input_finish releases
 * @p out, after a failure too. */
bool read_input(const char *path, input *out, problem *wrong);
/* Does the same, with at most @p limit bytes unless the text starts as JSON. */
bool read_json_or(const char *path, size_t limit, input *out, problem *wrong);
/* Does the same, with at most @p limit bytes. */
bool read_input_up_to(const char *path, size_t limit, input *out,
                      problem *wrong);
void input_deinit(input *in);

/* Sets the position of @p wrong to a byte of @p in. */
void problem_at(problem *wrong, const input *in, size_t offset);

/* Growable array in an arena. Growing abandons the old copy, so that at most
 * half of the memory is wasted. */
typedef struct arena_list {
  void *items;
  size_t count, capacity;
} arena_list;

/* Appends an item and returns its address; NULL if memory runs out. */
void *list_add(arena_list *list, size_t item_size, vyre_arena *arena);

#endif
