/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions that vyre itself has written in the kernel language: mathematics
 * (mathlib/), and float and wide arithmetic out of integers (lower/softlib).
 *
 * Their texts are part of the library. They are parsed on first use and kept for
 * the life of the process. */
#ifndef VYRE_LANG_BUILTINS_H
#define VYRE_LANG_BUILTINS_H

#include "vyre/status.h"

#include "ir/ir.h"

typedef enum vyre__builtins_kind {
  VYRE__BUILTINS_MATH,       /* with an fma of f64 */
  VYRE__BUILTINS_MATH_NOFMA, /* without */
  VYRE__BUILTINS_SOFT,
  VYRE__BUILTINS_COUNT
} vyre__builtins_kind;

/* The library as a program: its functions are those of the text; the kernel has
 * no meaning. Owned by the process. Threads: safe.
 * Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__builtins_get(vyre__builtins_kind kind, const vyre_program **out,
                             vyre_status *st);

/* The function of that name, or NULL. */
const vyre__function *vyre__builtins_find(const vyre_program *library,
                                          const char *name);

/* A program in which the functions of mathematics are calls of the library's
 * functions that use f64: what `ref` runs. *out is a new program
 * (vyre_program_release) that borrows names and buffers of @p program, or the
 * same one, retained, if it has none.
 * Errors: VYRE_OUT_OF_MEMORY. */
vyre_code vyre__link_math(vyre_program *program, vyre_allocator allocator,
                          vyre_program **out, vyre_status *st);

/* The texts (cmake/embed.cmake). */
extern const char vyre__mathlib_text[], vyre__softlib_text[];
extern const size_t vyre__mathlib_text_length, vyre__softlib_text_length;

#endif
