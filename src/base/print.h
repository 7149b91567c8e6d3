/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Formatted text: printf into a writer, numbers with digit separators, and
 * tables with aligned columns. */
#ifndef VYRE_BASE_PRINT_H
#define VYRE_BASE_PRINT_H

#include <stdint.h>

#include "vyre/writer.h"

#include "base/attributes.h"

/* Writer that remembers its first error and discards all later output. A
 * caller checks `ok` once, at the end. */
typedef struct vyre__printer {
  vyre_writer writer;
  bool ok;
} vyre__printer;

static inline vyre__printer vyre__printer_make(vyre_writer writer) {
  return (vyre__printer){writer, writer.write != 0};
}

/* Formats and writes at most 511 bytes per call. */
void vyre__print(vyre__printer *out, const char *format, ...)
    VYRE__PRINTF(2, 3);

/* Writes @p glyph @p count times. */
void vyre__print_repeat(vyre__printer *out, const char *glyph, unsigned count);

enum { VYRE__FIGURE_TEXT = 32 };

/* Formats 1234567 as "1,234,567". Returns @p buffer. */
const char *vyre__figure(uint64_t value, char buffer[VYRE__FIGURE_TEXT]);

enum { VYRE__DURATION_TEXT = 32 };

/* Formats nanoseconds in the largest unit that is not above the value, with
 * up to three decimals: "2 s", "250 ms", "1.5 us". Further digits are cut
 * off. Returns @p buffer. */
const char *vyre__duration(uint64_t ns, char buffer[VYRE__DURATION_TEXT]);

/* Writes one line of a two-column table: "  label  1,234,567 unit". */
void vyre__print_figure(vyre__printer *out, const char *label, uint64_t value,
                        const char *unit);

/* Writes one line of a two-column table: "  label  text". */
void vyre__print_word(vyre__printer *out, const char *label, const char *text);

#endif
