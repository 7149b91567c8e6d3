/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/writer.h
 *  Writer: destination of printed text. */
#ifndef VYRE_WRITER_H
#define VYRE_WRITER_H

#include <stdbool.h>
#include <stddef.h>

/** Destination of text. write() takes @p length bytes without a terminator and
 *  returns false if it fails; the printer then stops and returns false too. */
typedef struct vyre_writer {
  bool (*write)(void *self, const char *text, size_t length); /* writes text */
  void *self; /* first argument of `write` */
} vyre_writer;

#endif
