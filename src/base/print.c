/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/print.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void emit(vyre__printer *out, const char *text, size_t length) {
  if (out->ok) out->ok = out->writer.write(out->writer.self, text, length);
}

void vyre__print(vyre__printer *out, const char *format, ...) {
  char buffer[512];
  va_list arguments;
  if (!out->ok) return;
  va_start(arguments, format);
  int wanted = vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  if (wanted < 0) return;
  size_t length = (size_t)wanted;
  if (length >= sizeof buffer) length = sizeof buffer - 1;
  emit(out, buffer, length);
}

void vyre__print_repeat(vyre__printer *out, const char *glyph, unsigned count) {
  size_t length = strlen(glyph);
  while (count-- > 0) emit(out, glyph, length);
}

const char *vyre__figure(uint64_t value, char buffer[VYRE__FIGURE_TEXT]) {
  char digits[24];
  int length =
      snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
  char *to = buffer;
  for (int i = 0; i < length; i++) {
    if (i > 0 && (length - i) % 3 == 0) *to++ = ',';
    *to++ = digits[i];
  }
  *to = '\0';
  return buffer;
}

const char *vyre__duration(uint64_t ns, char buffer[VYRE__DURATION_TEXT]) {
  static const struct {
    uint64_t ns;
    const char *name;
  } units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}, {1, "ns"}};
  size_t i = 0;
  while (units[i].ns > 1 && ns < units[i].ns) i++;
  unsigned long long integer = ns / units[i].ns;
  unsigned part = units[i].ns == 1
                      ? 0
                      : (unsigned)(ns % units[i].ns / (units[i].ns / 1000));
  int digits = 3;
  while (part > 0 && part % 10 == 0) {
    part /= 10;
    digits--;
  }
  if (part == 0) {
    (void)snprintf(buffer, VYRE__DURATION_TEXT, "%llu %s", integer,
                   units[i].name);
  } else {
    (void)snprintf(buffer, VYRE__DURATION_TEXT, "%llu.%0*u %s", integer, digits,
                   part, units[i].name);
  }
  return buffer;
}

void vyre__print_figure(vyre__printer *out, const char *label, uint64_t value,
                        const char *unit) {
  char figure[VYRE__FIGURE_TEXT];
  vyre__print(out, "  %-26s %26s%s%s\n", label, vyre__figure(value, figure),
              unit[0] ? " " : "", unit);
}

void vyre__print_word(vyre__printer *out, const char *label, const char *text) {
  vyre__print(out, "  %-26s %26s\n", label, text);
}
