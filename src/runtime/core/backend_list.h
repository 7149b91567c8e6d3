/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The backends of a context that are not built in: registered tables, and
 * shared objects with those that were refused. */
#ifndef VYRE_RUNTIME_CORE_BACKEND_LIST_H
#define VYRE_RUNTIME_CORE_BACKEND_LIST_H

#include "vyre/backend.h"

#include "runtime/core/context.h"

/* Entries live as long as the context. */
typedef struct vyre__backend_entry {
  _Atomic(struct vyre__backend_entry *) next;
  struct vyre__backend *backend; /* NULL: refused */
  char name[VYRE_BACKEND_NAME];  /* "" if it is not known */
  vyre_status status;            /* why it was refused */
  size_t origin_size;            /* with the terminator */
  char origin[];                 /* "registered", or a path */
} vyre__backend_entry;

void vyre__backend_list_init(vyre_context *context);
void vyre__backend_list_deinit(vyre_context *context);

/* Adds the backend of @p table, from the file @p origin or NULL.
 * Errors: those of vyre_backend_register. */
vyre_code vyre__backend_list_add(vyre_context *context,
                                 const vyre_backend *table, const char *origin,
                                 vyre_status *st);
/* Records that @p origin was refused. Does nothing if memory is exhausted. */
void vyre__backend_list_refuse(vyre_context *context, const char *origin,
                               const vyre_status *why);

/* Loads the shared objects that @p paths names, files or folders separated by
 * colons, and records those that are refused. NULL: none. */
void vyre__plugin_files_load(vyre_context *context, const char *paths);

#endif
