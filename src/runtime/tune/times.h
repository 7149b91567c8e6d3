/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measured times: a table in memory, and its file in the cache directory.
 *
 * Routers store the times of programs on devices. vyre_tune stores the times of
 * one program on one device with several settings, in a file of its own. */
#ifndef VYRE_RUNTIME_TUNE_TIMES_H
#define VYRE_RUNTIME_TUNE_TIMES_H

#include "vyre/dispatch.h"
#include "vyre/hash.h"
#include "vyre/status.h"

#include "runtime/core/context.h"

/* Everything besides the program that a time depends on. */
typedef struct vyre__device_identity {
  vyre_hash128 device; /* driver, features, options, number of processors */
  vyre_hash128 name;
  uint64_t driver; /* hash of the driver and of the version of vyre */
} vyre__device_identity;

vyre__device_identity vyre__device_identity_of(vyre_device *device);

/* A time on disk or in memory. */
typedef struct vyre__time {
  vyre_hash128 program;
  vyre__device_identity device;
  uint64_t settings; /* 0: as compiled (settings.h) */
  uint32_t size_class;
  uint32_t samples; /* 0: the device is hopeless */
  uint64_t time_ns;
  bool is_choice; /* of vyre_tune, for this program, device and class */
  bool is_new;    /* added since the file was read */
} vyre__time;

typedef struct vyre__times {
  vyre_context *context; /* whose cache directory has the file; not retained */
  vyre_allocator allocator;
  const char *file; /* VYRE__TIMES_OF_... */
  vyre__time *items;
  size_t count, capacity;
  bool is_changed;
} vyre__times;

#define VYRE__TIMES_OF_ROUTERS VYRE__CACHE_TIMES "2"
#define VYRE__TIMES_OF_TUNING  VYRE__CACHE_TIMES "tune-2"

/* Adds the times of the file. A file that is not well formed is ignored.
 * Forgets times that another driver of one of @p devices has measured. */
void vyre__times_load(vyre__times *times, const vyre__device_identity *devices,
                      size_t device_count);
/* Stores the times that were added, with those that other processes have stored
 * since. Does nothing if the cache is off.
 * Errors: VYRE_UNKNOWN if the file cannot be written, with the reason. */
vyre_code vyre__times_save(vyre__times *times,
                           const vyre__device_identity *devices,
                           size_t device_count, vyre_status *st);
/* Returns the time of the same program, device, settings and class, or NULL. */
const vyre__time *vyre__times_find(const vyre__times *times,
                                   const vyre__time *wanted);
/* Adds or replaces a time. Drops it without memory. */
void vyre__times_add(vyre__times *times, const vyre__time *time);
/* Removes the times of a program on a device, in memory and in the file.
 * Returns their number in *count. Errors: as vyre__times_save. */
vyre_code vyre__times_forget(vyre__times *times, vyre_hash128 program,
                             const vyre__device_identity *device,
                             uint64_t *count, vyre_status *st);
void vyre__times_deinit(vyre__times *times);

/* Returns the class of a dispatch that binds @p bytes: their power of two, and
 * that of the grid, if one is given. */
static inline uint32_t vyre__size_class(uint64_t bytes,
                                        const uint32_t grid[3]) {
  uint32_t sum = 0;
  for (int i = 0; i < 3; i++) {
    sum += grid[i] ? 32 - (uint32_t)__builtin_clz(grid[i]) : 0;
  }
  return (bytes ? 64 - (uint32_t)__builtin_clzll(bytes) : 0) << 8 | sum;
}

#endif
