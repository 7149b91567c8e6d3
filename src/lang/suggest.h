/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suggestions for misspelled names. */
#ifndef VYRE_LANG_SUGGEST_H
#define VYRE_LANG_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

/* Best candidate so far. */
typedef struct vyre__guess {
  const char *name; /* as written */
  size_t length;
  const char *best; /* NULL: no similar name */
  size_t best_length;
  unsigned distance;
} vyre__guess;

vyre__guess vyre__guess_begin(const char *name, size_t length);
void vyre__guess_try(vyre__guess *guess, const char *candidate, size_t length);
void vyre__guess_try_all(vyre__guess *guess, const char *const *candidates,
                         size_t count);

#endif
