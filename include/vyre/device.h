/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/device.h
 *  Devices: compile and run kernels. */
#ifndef VYRE_DEVICE_H
#define VYRE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/context.h"
#include "vyre/emit.h"
#include "vyre/export.h"
#include "vyre/memory.h"
#include "vyre/status.h"

/** Open device. Reference counted. Threads: safe. */
typedef struct vyre_device vyre_device;

/** Probe result for one floating-point operation of a device. All float modes
 *  give the same bits. Of the f64 operations, fma and rint have a replacement
 *  where the device gets them wrong. The others have none: the mode is then
 *  VYRE_FLOAT_MODE_SOFT, but kernels still use the native operation. */
typedef struct vyre_float_op_info {
  const char *operation; /* "f32 fma", "u32 to f32"; static storage */
  vyre_float_mode mode;  /* VYRE_FLOAT_MODE_NATIVE: the device is exact */
  /* Number of tested inputs; 0 if the device is exact by definition or does
   * not have the operation. */
  uint64_t tested;
  uint64_t wrong;       /* inputs for which the native operation is wrong */
  uint64_t reserved[2]; /* zero; for future fields */
} vyre_float_op_info;

/** Capabilities and limits of a device. */
typedef struct vyre_device_caps {
  uint32_t max_workgroup[3];          /* maximum workgroup size in x, y and z */
  uint32_t max_workgroup_invocations; /* maximum of x * y * z */
  uint64_t max_shared_bytes;          /* maximum shared memory of a workgroup */
  uint64_t max_buffer_bytes;          /* maximum size of one buffer */
  /* Alignment of host memory that is used without a copy; 1: any. */
  uint64_t host_alignment;
  bool borrows_host_memory; /* dispatches use host memory directly */
  bool has_device_time;     /* vyre_timing.device_ns is measured */
  /* Supports vyre_check_options, and counts fuel in every loop iteration. */
  bool has_checks;
  bool has_print; /* supports print(...) in kernels */
  bool has_f64;   /* supports f64 */
  bool has_u64;   /* supports u64 and i64 */
  /* Supports all atomics on u64 and i64. Without it, only atomic_add with an
   * unused result is accepted. */
  bool has_atomics64;
  /* One entry per operation; owned by the device. */
  const vyre_float_op_info *float_ops;
  size_t float_op_count; /* entries of `float_ops` */
  bool is_stub;          /* dispatches succeed without running the kernel */
  bool has_disk_cache;   /* compiled code can be stored in the disk cache */
  /* vyre_buffer_import works, although dispatches do not use host memory
   * directly. */
  bool imports_host_memory;
  /* More limits and features, one "name: value" per line, for display; owned
   * by the device; may be NULL. */
  const char *details;
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_device_caps;

/** Size of vyre_device_info.name, with the terminator. */
enum { VYRE_DEVICE_NAME = 48 };

/** Device that can be opened, or a backend without a device and the reason.
 *  Pointers refer to static storage. */
typedef struct vyre_device_info {
  /* Name to open the device with: "ref", "vulkan:1". Stable while the
   * hardware and its drivers do not change. */
  char name[VYRE_DEVICE_NAME];
  const char *backend; /* "ref" */
  uint32_t index;      /* index among the devices of the backend */
  bool is_available;   /* false: `note` states what is missing */
  /* "interpreter", or the product name of the device. */
  const char *description;
  const char *driver; /* driver and its version; part of the cache key */
  /* Purpose of the device, or the reason why it is not available. */
  const char *note;
  /* Instruction that makes it available; "" if none is needed. */
  const char *fix;
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_device_info;

/** Types of backend options: X(enumerator, name). */
#define VYRE_OPTION_TYPE_MAP(X)   \
  X(VYRE_OPTION_NUMBER, "number") \
  X(VYRE_OPTION_ENUM, "enum")     \
  X(VYRE_OPTION_PATH, "path")     \
  X(VYRE_OPTION_SET, "set")

/** Type of the value of a backend option. */
typedef enum vyre_option_type {
#define VYRE_X(enumerator, name) enumerator,
  VYRE_OPTION_TYPE_MAP(VYRE_X)
#undef VYRE_X
} vyre_option_type;

/** Option of a backend, read when one of its devices is opened. Set it with
 *  vyre_context_options.backend_options or $VYRE_OPTIONS, as
 *  "BACKEND.NAME=VALUE". "BACKEND.NAME=auto" selects the default. Strings are
 *  static storage. */
typedef struct vyre_device_option {
  const char *name;      /* "threads" */
  uint64_t min, max;     /* valid numbers; of a path: 0 */
  const char *help;      /* description */
  vyre_option_type type; /* of the value */
  /* VYRE_OPTION_ENUM: names of the values from min to max, separated by
   * spaces. A value may be written as its name or as its number.
   * VYRE_OPTION_NUMBER: the only valid numbers, separated by spaces; NULL: all
   * from min to max. VYRE_OPTION_PATH: NULL. VYRE_OPTION_SET: names of the
   * bits from the lowest on; a value is several names separated by '+', "all",
   * or the number of these bits. */
  const char *values;
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_device_option;

VYRE_BEGIN

/** Opens a device. @p name is "auto" for the best available device, a backend
 *  ("cpu", "vulkan", "ref"), or "backend:index" for one of several. "cpu"
 *  compiles for the host CPU. "ref" is the reference interpreter: always
 *  available, and slow. The choice of "auto" does not change during the life
 *  of the process.
 *
 *  "auto" falls back to "ref" if no other device can be used, for example if
 *  "cpu" finds no LLVM 19. A program that depends on speed can detect this in
 *  three ways. vyre_device_name and vyre_device_selection_reason return the
 *  choice and its reason. On success the message of @p st states both. The
 *  option "ref.fallback=0" makes "auto" fail instead.
 *
 *  @p context may be NULL for the default context.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_device_release). On
 *             failure *out is NULL. Retains the context.
 *  Lifetime:  @p name is borrowed for the call.
 *  Threads:   safe.
 *  Blocks:    on the allocator and the driver of the device.
 *  Errors:    VYRE_UNSUPPORTED_FEATURE (device_unavailable) if the device does
 *             not exist, or for "auto" if only "ref" is left and
 *             "ref.fallback" is 0; VYRE_OUT_OF_MEMORY; those of
 *             vyre_context_create. */
VYRE_API VYRE_NODISCARD vyre_code vyre_device_open(vyre_context *context,
                                                   const char *name,
                                                   vyre_device **out,
                                                   vyre_status *st);

/** Stores the name of the device that vyre_device_open would open for @p name
 *  in @p out, without opening it. For "auto", the choice is the same as that of
 *  vyre_device_open. @p context may be NULL for the default context.
 *  Ownership: fills @p out; "" on failure.
 *  Threads:   safe.
 *  Blocks:    on drivers, in the first call.
 *  Errors:    those of vyre_device_open for a device that does not exist. */
VYRE_API VYRE_NODISCARD vyre_code vyre_device_choose(vyre_context *context,
                                                     const char *name,
                                                     char out[VYRE_DEVICE_NAME],
                                                     vyre_status *st);

/** Loads the libraries that device @p name needs, without opening it: LLVM for
 *  "cpu". Starts no thread, so a process can call it before fork() and share
 *  the loaded libraries with its children. They stay loaded until the process
 *  exits. Succeeds for devices that need no library. @p context may be NULL
 *  for the default context.
 *  Ownership: borrows all arguments.
 *  Threads:   safe.
 *  Blocks:    on files.
 *  Errors:    VYRE_UNSUPPORTED_FEATURE (device_unavailable) if the device or a
 *             library does not exist; those of vyre_context_create. */
VYRE_API VYRE_NODISCARD vyre_code vyre_device_preload(vyre_context *context,
                                                      const char *name,
                                                      vyre_status *st);

/** Adds a reference, which needs one more vyre_device_release. Returns @p
 *  device.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_device *vyre_device_retain(vyre_device *device);

/** Drops a reference. The last release closes the device and frees its
 *  buffers. Pipelines and fences hold a reference to their device; device
 *  buffers do not. Accepts NULL.
 *  Threads:   safe.
 *  Blocks:    until submitted work and compiles that have begun have finished.
 *  Errors:    none. */
VYRE_API void vyre_device_release(vyre_device *device);

/** Returns the name that opens this device ("ref"), even if "auto" chose it.
 *  Owned by the device.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_device_name(const vyre_device *device);

/** Returns the reason why this device was opened: "asked for by name", with
 *  the number of devices if the name stands for the first of several; or the
 *  reason for the choice of "auto", such as "auto: 'cpu' has no LLVM 19 to
 *  compile with; apt-get install libllvm19". Owned by the device.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_device_selection_reason(const vyre_device *device);

/** Returns the capabilities and limits of @p device. Owned by the device.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const vyre_device_caps *vyre_device_get_caps(
    const vyre_device *device);

/** Returns a number that identifies the device in this process, and is the
 *  owner of its buffers. Starts at 1 and is never reused.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API uint64_t vyre_device_id(const vyre_device *device);

/** Returns true when the device is lost. All operations on it then fail with
 *  VYRE_DEVICE_LOST until it is opened again.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_device_is_lost(const vyre_device *device);

/** Tests every floating-point operation against exact arithmetic, with a
 *  million edge cases and random inputs each. A device that is not exact by
 *  definition is probed when it is opened for the first time, and
 *  vyre_device_get_caps has the results. This function repeats the probe and
 *  does not change them. Stores the first @p capacity results in @p out and the
 *  number of all results in *count.
 *  Ownership: borrows all arguments.
 *  Threads:   safe.
 *  Blocks:    for about a second.
 *  Errors:    VYRE_INVALID_ARGUMENT for a NULL argument;
 *             VYRE_UNSUPPORTED_FEATURE if an operation is wrong in every float
 *             mode; those of vyre_pipeline_compile and vyre_dispatch. */
VYRE_API VYRE_NODISCARD vyre_code vyre_device_probe(vyre_device *device,
                                                    vyre_float_op_info *out,
                                                    size_t capacity,
                                                    size_t *count,
                                                    vyre_status *st);

/** Fills *out with entry @p index of the device list of @p context: available
 *  devices in the order in which "auto" prefers them, then backends without a
 *  device. Returns false after the last entry. @p context may be NULL for the
 *  default context.
 *  Ownership: fills *out. Texts live as long as the context.
 *  Threads:   safe.
 *  Blocks:    on drivers, in the first call.
 *  Errors:    none. */
VYRE_API bool vyre_context_device_info_at(vyre_context *context, size_t index,
                                          vyre_device_info *out);

/** Fills *out with option @p index of @p backend ("cpu") in @p context, which
 *  may be NULL for the default context. Returns false after the last option and
 *  for an unknown backend.
 *  Ownership: fills *out. Texts live as long as the context.
 *  Threads:   safe.
 *  Blocks:    on files, if it creates the default context.
 *  Errors:    none. */
VYRE_API bool vyre_context_device_option_at(vyre_context *context,
                                            const char *backend, size_t index,
                                            vyre_device_option *out);

/** As vyre_context_device_info_at, for the backends of the library only: needs
 *  no context.
 *  Ownership: fills *out.
 *  Threads:   safe.
 *  Blocks:    on drivers, in the first call.
 *  Errors:    none. */
VYRE_API bool vyre_device_info_at(size_t index, vyre_device_info *out);

/** As vyre_context_device_option_at, for the backends of the library only.
 *  Ownership: fills *out.
 *  Threads:   safe.
 *  Blocks:    never.
 *  Errors:    none. */
VYRE_API bool vyre_device_option_at(const char *backend, size_t index,
                                    vyre_device_option *out);

VYRE_END

#endif
