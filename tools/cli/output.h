/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Publishes results: standard output and files. */
#ifndef VYRE_TOOLS_CLI_OUTPUT_H
#define VYRE_TOOLS_CLI_OUTPUT_H

#include "vyre/memory.h"

#include "cli/error.h"
#include "cli/sink.h"

/* Writes all bytes. Returns false and sets errno on failure. */
bool write_all(int descriptor, const char *data, size_t length);

/* A file to write: a head, then a body. Both may be empty. */
typedef struct out_file {
  const char *path;
  const char *head;
  size_t head_length;
  const void *body;
  size_t body_length;
  /* temporary name, set by publish_files */
  const char *target; /* path with links resolved */
  char *temporary;
} out_file;

/* Returns true if both paths name the same regular file, or would once it is
 * created. */
bool is_same_file(const char *path, const char *other);

/* Refuses an output @p path, of flag @p name, that is the input file. "-" is
 * never a file. */
bool is_other_file(const char *name, const char *path, const char *input,
                   problem *wrong);

/* Checks that publish_files can write to @p path by creating and removing a
 * temporary file. An existing file is not touched. */
bool can_publish(const char *path, vyre_arena *arena, problem *wrong);

/* Publishes a result in three steps: files under temporary names, stdout,
 * then rename. If a step fails, no file is replaced. Returns the exit code
 * and frees the sink. */
int publish_files(sink *answer, out_file *files, size_t count, bool json);

/* Publishes a result and a drawing, which goes to @p path; NULL: no drawing.
 * Returns the exit code and frees both sinks. */
int publish(sink *answer, const char *path, sink *drawing, bool json);

#endif
