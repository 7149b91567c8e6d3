/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What somebody may have meant. */
#ifndef VYRE_LANG_SUGGEST_H
#define VYRE_LANG_SUGGEST_H

#include <stdbool.h>
#include <stddef.h>

/* The nearest of the candidates so far. */
typedef struct vyre__guess {
  const char *name; /* as written */
  size_t length;
  const char *best; /* NULL: nothing is near */
  size_t best_length;
  unsigned distance;
} vyre__guess;

vyre__guess vyre__guess_begin(const char *name, size_t length);
void vyre__guess_try(vyre__guess *guess, const char *candidate, size_t length);
void vyre__guess_try_all(vyre__guess *guess, const char *const *candidates,
                         size_t count);

/* What a word of C, OpenCL, CUDA, GLSL or HLSL is called here, or NULL: a
 * sentence for a Fix. */
const char *vyre__foreign_word(const char *name, size_t length);
/* The type that a type of those languages is called here ("u32"), or NULL. */
const char *vyre__foreign_type(const char *name, size_t length);

#endif
