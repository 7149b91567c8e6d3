/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The registry of backends, and the selection of a device by its name. */
#ifndef VYRE_RUNTIME_CORE_REGISTRY_H
#define VYRE_RUNTIME_CORE_REGISTRY_H

#include "vyre/backend.h"

#include "hal/backend.h"
#include "runtime/core/context.h"

enum { VYRE__DEVICE_REASON = 160 };

/* A registry: up to VYRE_MAX_BACKENDS backends in any order. Tests pass their
 * own. */
typedef struct vyre__backends {
  const vyre__backend *const *list;
  size_t count;
} vyre__backends;

/* Memory for a list of backends. */
typedef struct vyre__backend_list {
  const vyre__backend *items[VYRE_MAX_BACKENDS];
  size_t count;
} vyre__backend_list;

/* Returns the backends of this build. */
vyre__backends vyre__built_in_backends(void);
/* Returns the backends of @p context: those of this build, then those that were
 * registered. The result points into @p storage. */
vyre__backends vyre__context_backends(const vyre_context *context,
                                      vyre__backend_list *storage);
/* Returns the backend of that name, or NULL. */
const vyre__backend *vyre__backend_find(vyre__backends of, const char *name,
                                        size_t size);

/* Implements vyre_context_device_info_at over the registry @p of. */
bool vyre__device_list_of(vyre__backends of, size_t index,
                          vyre_device_info *out);

/* A selected device, and the reason for its selection. */
typedef struct vyre__device_choice {
  const vyre__backend *backend;
  uint32_t index;
  const void *given; /* external handles for device_init; or NULL */
  char reason[VYRE__DEVICE_REASON];
  const char *missing;     /* reason why the named device does not exist */
  const char *fix;         /* fix for `missing`; "": the general one */
  const char *passed_over; /* auto: reason why a better backend is not ready, or
                              NULL */
  const char *excluded;    /* auto: backend that an option excludes, or NULL */
} vyre__device_choice;

/* Selects the device @p name, or the best one for "auto".
 * Errors: VYRE_UNSUPPORTED_FEATURE (device_unavailable). */
vyre_code vyre__device_choose(vyre__backends of, const vyre_context *context,
                              const char *name, vyre__device_choice *out,
                              vyre_status *st);
/* Checks that a table has the layout that this library expects.
 * Errors: VYRE_UNSUPPORTED_FEATURE. */
vyre_code vyre__backend_check_abi(const vyre__backend *backend,
                                  vyre_status *st);
/* Returns a reason without the prefix "auto: ". */
const char *vyre__reason_without_auto(const char *reason);
/* Writes "backend", or "backend:index" for a later device. */
void vyre__device_put_name(const vyre__backend *backend, uint32_t index,
                           char out[VYRE_DEVICE_NAME]);

#endif
