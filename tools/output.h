/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where answers go: stdout, and a drawing beside it. */
#ifndef VYRE_TOOLS_OUTPUT_H
#define VYRE_TOOLS_OUTPUT_H

#include "problem.h"
#include "sink.h"

/* Writes all of it; false with errno set if the file descriptor takes no more.
 */
bool write_all(int descriptor, const char *data, size_t length);

/* Publishes an answer: the drawing (none if @p path is NULL) under a temporary
 * name, then stdout, then the drawing under its own name. Either both are there
 * in the end or the drawing is not. Returns the exit code; frees both sinks. */
int publish(sink *answer, const char *path, sink *drawing, bool json);

#endif
