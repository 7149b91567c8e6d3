/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Files of a program with imports. Its line numbers go through the parsed file
 * and then through the imported ones. */
#ifndef VYRE_BASE_SOURCE_FILES_H
#define VYRE_BASE_SOURCE_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "vyre/memory.h"

typedef struct vyre__source_file {
  const char *name;
  const char *text;
  size_t length;
  uint32_t first_line; /* line number of its first line */
} vyre__source_file;

typedef struct vyre__source_files {
  const vyre__source_file *items; /* [0] is the parsed file; ascending lines */
  size_t count;
} vyre__source_files;

/* Returns the imported file of a line, and sets the line to its number in that file.
 * Returns NULL for a line of the parsed file. @p files may be NULL. */
const vyre__source_file *vyre__source_file_of(const vyre__source_files *files,
                                              uint32_t *line);

/* Copies the files, with the text of imported ones. Returns NULL if memory is
 * exhausted. */
const vyre__source_files *vyre__source_files_copy(
    const vyre__source_files *files, vyre_arena *arena);

#endif
