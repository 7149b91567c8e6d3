/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A command list: launches and copies between device buffers that a backend
 * executes in order, in one call. A backend may encode a list once and execute
 * it many times. */
#ifndef VYRE_HAL_COMMAND_LIST_H
#define VYRE_HAL_COMMAND_LIST_H

#include "hal/launch.h"

/* Launches in one command list: the default, for which the prepared dispatches
 * still are in the CPU cache when the list ends, and the limit for
 * vyre__backend.max_batch. */
enum { VYRE__COMMAND_LIST = 32, VYRE__MAX_COMMAND_LIST = 1024 };

typedef struct vyre__command_list_item {
  vyre__launch *launch; /* NULL: a copy */
  vyre__buffer *from, *to;
  uint64_t from_offset, to_offset, size;
} vyre__command_list_item;

/* First member of every backend's command list. It has no loops, and binds no
 * host memory that changes between two of its items. */
typedef struct vyre__command_list {
  vyre_device *device;
  const vyre__command_list_item *items;
  size_t count;
  bool is_changed;  /* bindings may differ from those of the last execution */
  bool is_reusable; /* set by the backend: executing the list again reads no
                       launch; only the bytes in bound memory change */
} vyre__command_list;

/* A command list that repeats while the u32 at `offset` of `flag` is not 0. */
typedef struct vyre__command_list_loop {
  const vyre__buffer *flag;
  uint64_t offset, max_iterations;
  uint64_t iterations; /* executed */
  bool is_taken;      /* false: the backend cannot test this flag on the device,
                          and has executed nothing */
  bool is_unfinished; /* the flag was not 0 after the last iteration */
} vyre__command_list_loop;

#endif
