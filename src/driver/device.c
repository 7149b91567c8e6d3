/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/device.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "driver/backend.h"

#define BACKEND(name) extern const vyre__backend vyre__backend_##name;
#include "driver/backends.def"
#undef BACKEND

static const vyre__backend *const backends[] = {
#define BACKEND(name) &vyre__backend_##name,
#include "driver/backends.def"
#undef BACKEND
};

#define BACKEND(name) " " #name
static const char unavailable_fix[] =
    "open \"auto\", or a device that is there:"
#include "driver/backends.def"
    ;
#undef BACKEND

enum { BACKEND_COUNT = sizeof backends / sizeof backends[0] };

const char *vyre_device_list(size_t index) {
  return index < BACKEND_COUNT ? backends[index]->name : NULL;
}

static const vyre__backend *find(const char *name) {
  if (strcmp(name, "auto") == 0) return backends[0];
  for (size_t i = 0; i < BACKEND_COUNT; i++) {
    if (strcmp(name, backends[i]->name) == 0) return backends[i];
  }
  return NULL;
}

static vyre_code create(const vyre__backend *backend, vyre_allocator allocator,
                        vyre_device **out, vyre_status *st) {
  size_t size = backend->device_size;
  vyre_device *device = vyre__resize(allocator, NULL, 0, size);
  if (!device) return vyre__no_memory(st, "vyre_device_open", "devices", 1);
  memset(device, 0, size);
  device->backend = backend;
  device->allocator = allocator;
  atomic_init(&device->references, 1);
  vyre_code code = backend->device_init(device, st);
  if (code != VYRE_OK) {
    vyre__resize(allocator, device, size, 0);
    return code;
  }
  *out = device;
  return VYRE_OK;
}

vyre_code vyre_device_open(const char *name, vyre_allocator allocator,
                           vyre_device **out, vyre_status *st) {
  if (!out) return vyre__null_argument(st, "vyre_device_open", "out");
  *out = NULL;
  if (!name) return vyre__null_argument(st, "vyre_device_open", "name");
  const vyre__backend *backend = find(name);
  if (!backend) {
    const vyre__failure failure = {.code = VYRE_UNSUPPORTED_FEATURE,
                                   .kind = VYRE_KIND_DEVICE_UNAVAILABLE,
                                   .fix = unavailable_fix,
                                   .file = __FILE__,
                                   .line = __LINE__};
    vyre__fail(st, &failure, "there is no device '%.100s'", name);
    return failure.code;
  }
  return create(backend, allocator, out, st);
}

vyre_device *vyre_device_retain(vyre_device *device) {
  if (device) atomic_fetch_add(&device->references, 1);
  return device;
}

void vyre_device_release(vyre_device *device) {
  if (!device || atomic_fetch_sub(&device->references, 1) > 1) return;
  const vyre__backend *backend = device->backend;
  backend->device_finish(device);
  vyre__resize(device->allocator, device, backend->device_size, 0);
}

const char *vyre_device_name(const vyre_device *device) {
  return device ? device->backend->name : "";
}
