/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where answers go: stdout, and files beside it. */
#ifndef VYRE_TOOLS_CLI_OUTPUT_H
#define VYRE_TOOLS_CLI_OUTPUT_H

#include "vyre/memory.h"

#include "cli/error.h"
#include "cli/sink.h"

/* Writes all of it; false with errno set if the file descriptor takes no more.
 */
bool write_all(int descriptor, const char *data, size_t length);

/* A file to be written: a head, then a body, either of which may be empty. */
typedef struct out_file {
  const char *path;
  const char *head;
  size_t head_length;
  const void *body;
  size_t body_length;
  /* for publish_files */
  const char *target; /* the file that path leads to */
  char *temporary;
} out_file;

/* Whether publish_files could write there: what it would begin with is made, and
 * removed. What is there stays as it is. */
bool can_publish(const char *path, vyre_arena *arena, problem *wrong);

/* Publishes an answer: the files under temporary names, then stdout, then the
 * files under their own names. If anything fails before that, no file is
 * touched. Returns the exit code; frees the sink. */
int publish_files(sink *answer, out_file *files, size_t count, bool json);

/* Publishes an answer: the drawing (none if @p path is NULL) as a file
 * beside it. Returns the exit code; frees both sinks. */
int publish(sink *answer, const char *path, sink *drawing, bool json);

#endif
