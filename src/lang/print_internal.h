/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Declarations shared by the files of the printer. */
#ifndef VYRE_LANG_PRINT_INTERNAL_H
#define VYRE_LANG_PRINT_INTERNAL_H

#include "base/print.h"
#include "ir/ir.h"

/* --- names -----------------------------------------------------------------
 * A printed name equals the original where that parses: it is an identifier,
 * and no other visible thing has it. */

typedef struct vyre__symbol_name {
  const char *text;
  uint32_t open; /* number of visible things with this name */
} vyre__symbol_name;

/* Printed name: the text, and if `marks` is not 0 that many _ and the number.
 */
typedef struct vyre__shown {
  const char *text;
  uint32_t symbol; /* of a name printed unchanged; otherwise VYRE_NO_INDEX */
  uint32_t number;
  uint8_t marks;
} vyre__shown;

typedef struct vyre__names {
  vyre_arena arena;
  vyre__symbol_name *symbols;
  uint32_t *slots; /* open addressing: symbol + 1, or 0 */
  uint32_t symbol_count, slot_count;
  vyre__shown kernel;
  vyre__shown *functions, *tables;
  vyre__shown *locals; /* of the function being printed */
} vyre__names;

bool vyre__names_init(vyre__names *names, const vyre_program *program);
void vyre__names_deinit(vyre__names *names);
/* Makes the buffers visible for the kernel's body, or hides them. */
void vyre__names_buffers(vyre__names *names, const vyre_program *program,
                         bool open);
/* Reserves space for the locals of a function; parameters are not declared
 * yet. */
bool vyre__names_function(vyre__names *names, const vyre__function *function);
/* Makes a declaration visible, or hides it. */
void vyre__names_open(vyre__names *names, const vyre__function *function,
                      uint32_t local);
void vyre__names_close(vyre__names *names, uint32_t from, uint32_t to);

void vyre__print_name(vyre__printer *out, const vyre__shown *name);

/* --- literals --------------------------------------------------------------*/

void vyre__print_literal(vyre__printer *out, const vyre__node *node);
/* Prints a text in quotes, with escapes. */
void vyre__print_text(vyre__printer *out, const char *text, size_t length);

#endif
