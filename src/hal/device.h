/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The device that a backend and the runtime share, and the runtime functions
 * that a backend may call with it. The runtime defines them, so that a backend
 * depends on src/hal only. */
#ifndef VYRE_HAL_DEVICE_H
#define VYRE_HAL_DEVICE_H

#include "vyre/device.h"

typedef struct vyre__backend vyre__backend;

/* First member of every backend's device. */
struct vyre_device {
  const vyre__backend *backend;
  vyre_context *context;            /* retained */
  vyre_allocator allocator;         /* the context's; a backend uses it too */
  uint32_t index;                   /* among the devices of the backend */
  vyre_device_caps caps;            /* filled by device_init */
  const void *external;             /* handles of vyre__device_open_given; NULL
                                       outside device_init */
  struct vyre__device_state *state; /* private to the runtime */
};

/* Returns the value of option "<backend>.<key>" in the device's context.
 * Returns @p otherwise if the option is missing or "auto". The context has
 * checked the range. device_init reads options; an option that changes code is
 * part of `features`. */
uint64_t vyre__device_option(const vyre_device *device, const char *key,
                             uint64_t otherwise);

/* Returns the text of that option, which has no terminator, and its size.
 * Returns NULL if the option is missing or "auto". */
const char *vyre__device_option_text(const vyre_device *device, const char *key,
                                     size_t *size);

/* Returns the path of the LLVM library that @p context was created with, or
 * NULL: the backend searches for it. Lives as long as the context. */
const char *vyre__context_llvm(const vyre_context *context);
/* Returns what names that path: "VYRE_LLVM" or "the option cpu.llvm". */
const char *vyre__context_llvm_source(const vyre_context *context);

/* Returns an environment variable that names a file to load or read. Returns
 * NULL if it is not set, or if the process has more privileges than its caller
 * (setuid). */
const char *vyre__environment(const char *variable);

/* Marks the device as lost: every later call on it fails. Any thread. */
void vyre__device_lose(vyre_device *device);
/* Fills @p st with VYRE_DEVICE_LOST for a device that is marked, and returns
 * it. */
vyre_code vyre__device_lost(const vyre_device *device, vyre_status *st);
/* Marks a device of the parent process as invalid after fork. Called in the
 * child, which has one thread; takes no locks. */
void vyre__device_leave(vyre_device *device);

/* Opens device @p index of @p backend over handles that the caller owns.
 * device_init finds @p given in device->external.
 * Errors: those of
 * vyre_device_open. */
vyre_code vyre__device_open_given(vyre_context *context,
                                  const vyre__backend *backend, uint32_t index,
                                  const void *given, vyre_device **out,
                                  vyre_status *st);

#endif
