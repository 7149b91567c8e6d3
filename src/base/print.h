/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Text for people: formatted pieces into a writer, figures with separators, and
 * tables whose columns line up. */
#ifndef VYRE_BASE_PRINT_H
#define VYRE_BASE_PRINT_H

#include "vyre/writer.h"

#include "base/attributes.h"

/* A writer that remembers its first refusal and swallows what comes after, so
 * that a printer checks once, at its end. */
typedef struct vyre__printer {
  vyre_writer writer;
  bool ok;
} vyre__printer;

static inline vyre__printer vyre__printer_make(vyre_writer writer) {
  return (vyre__printer){writer, writer.write != 0};
}

/* Up to 511 bytes a call. */
void vyre__print(vyre__printer *out, const char *format, ...)
    VYRE__PRINTF(2, 3);

/* @p count times @p glyph. */
void vyre__print_repeat(vyre__printer *out, const char *glyph, unsigned count);

enum { VYRE__FIGURE_TEXT = 32 };

/* 1234567 as "1,234,567". Returns @p buffer. */
const char *vyre__figure(uint64_t value, char buffer[VYRE__FIGURE_TEXT]);

enum { VYRE__DURATION_TEXT = 32 };

/* Nanoseconds in the largest unit that is below them, with up to three decimals:
 * "2 s", "250 ms", "1.5 us". Digits behind those are dropped. Returns @p buffer. */
const char *vyre__duration(uint64_t ns, char buffer[VYRE__DURATION_TEXT]);

/* "  label  1,234,567 unit": a line of a two-column table of figures. */
void vyre__print_figure(vyre__printer *out, const char *label, uint64_t value,
                        const char *unit);

/* "  label  text": the same for words. */
void vyre__print_word(vyre__printer *out, const char *label, const char *text);

#endif
