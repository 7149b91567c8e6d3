/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Between the files of the printer. */
#ifndef VYRE_LANG_PRINT_INTERNAL_H
#define VYRE_LANG_PRINT_INTERNAL_H

#include "base/print.h"
#include "ir/ir.h"

/* --- names -----------------------------------------------------------------
 * Names as they are printed. A name stays as it is where that can be parsed
 * again: an identifier that nothing else in sight has. */

typedef struct vyre__symbol_name {
  const char *text;
  uint32_t open; /* how many things in sight have it */
} vyre__symbol_name;

/* A printed name: text, then if `marks` is not 0 that many _ and the number. */
typedef struct vyre__shown {
  const char *text;
  uint32_t symbol; /* of a name that is shown as it is; else VYRE_NO_INDEX */
  uint32_t number;
  uint8_t marks;
} vyre__shown;

typedef struct vyre__names {
  vyre_arena arena;
  vyre__symbol_name *symbols;
  uint32_t *slots; /* open addressing: symbol + 1, or 0 */
  uint32_t symbol_count, slot_count;
  vyre__shown kernel;
  vyre__shown *functions;
  vyre__shown *locals; /* of the function that is printed */
} vyre__names;

bool vyre__names_init(vyre__names *names, const vyre_program *program);
void vyre__names_deinit(vyre__names *names);
/* The buffers come in sight, for the kernel's body, or go. */
void vyre__names_buffers(vyre__names *names, const vyre_program *program,
                         bool open);
/* Room for the locals of a function; parameters are not declared yet. */
bool vyre__names_function(vyre__names *names, const vyre__function *function);
/* A declaration comes in sight, and goes. */
void vyre__names_open(vyre__names *names, const vyre__function *function,
                      uint32_t local);
void vyre__names_close(vyre__names *names, uint32_t from, uint32_t to);

void vyre__print_name(vyre__printer *out, const vyre__shown *name);

/* --- literals --------------------------------------------------------------*/

void vyre__print_literal(vyre__printer *out, const vyre__node *node);
/* Quoted, with escapes. */
void vyre__print_text(vyre__printer *out, const char *text, size_t length);

#endif
