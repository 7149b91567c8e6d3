/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef VYRE_BASE_ENUM_NAME_H
#define VYRE_BASE_ENUM_NAME_H

/* Defines `const char *function(type)`, which returns the text of a value from
 * MAP, a list of X(NAME, "text") or X(NAME, "text", more) whose values count
 * up from 0. It returns "?" for all other values. */
#define VYRE__ENUM_NAME(function, type, MAP)                         \
  const char *function(type value) {                                 \
    static const char *const texts[] = {MAP(VYRE__ENUM_TEXT)};       \
    const unsigned count = (unsigned)(sizeof texts / sizeof *texts); \
    return (unsigned)value < count ? texts[value] : "?";             \
  }

/* An entry of a table of such texts. */
#define VYRE__ENUM_TEXT(name, text, ...) [name] = (text),

#endif
