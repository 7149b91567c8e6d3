/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/device.h
 *  Devices: what compiles and runs kernels. */
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

/** An opened device. Threads: safe. */
typedef struct vyre_device vyre_device;

/** How a device does one operation on floats. All forms give the same bits; an
 *  operation of f64 that is not native is wrong there, and not used. */
typedef struct vyre_float_op_info {
  const char *operation; /* "f32 fma", "u32 to f32", ...; static storage */
  vyre_float_mode mode;  /* VYRE_FLOAT_MODE_NATIVE: right as it is */
  uint64_t tested; /* vectors that went through it; 0: it was not tested, as the
                      device is exact by definition or does not have it */
  uint64_t wrong;  /* of them, with the device's own operation */
} vyre_float_op_info;

/** What a device can do. */
typedef struct vyre_device_caps {
  uint32_t max_workgroup[3];
  uint32_t max_workgroup_invocations;
  uint64_t max_shared_bytes; /* of a workgroup */
  uint64_t max_buffer_bytes;
  uint64_t host_alignment;  /* of memory that it takes without a copy; 1: any */
  bool borrows_host_memory; /* host bytes are bound where they are */
  bool has_device_time;     /* vyre_timing.device_ns */
  bool has_checks;          /* vyre_check_options, and fuel round by round */
  bool has_print;           /* print(...) in kernels */
  bool has_f64;
  bool has_u64;
  bool has_atomics64; /* atomics on u64 and i64, in buffers and shared memory;
                         without, a kernel may have atomic_add whose result is
                         not used, and other ones are refused */
  const vyre_float_op_info *float_ops; /* of every operation; the device's */
  size_t float_op_count;
  bool is_stub;        /* a stand-in: a dispatch succeeds, and no kernel ran */
  bool has_disk_cache; /* the cache on disk has files of it */
  bool imports_host_memory; /* vyre_buffer_import takes it, though dispatches
                               do not bind it where it is */
  const char *details; /* for people: lines of "what: ...", such as limits and
                           features of its API. NULL: none; the device's */
} vyre_device_caps;

enum { VYRE_DEVICE_NAME = 48 };

/** A device that is there, or a backend that has none and why. Texts that are
 *  pointers are static storage. */
typedef struct vyre_device_info {
  char name
      [VYRE_DEVICE_NAME];  /* opens it: "ref", "vulkan:1"; the same as long as
                                  the machine is */
  const char *backend;     /* "ref" */
  uint32_t index;          /* among those of its backend */
  bool is_available;       /* else `note` says what was looked for */
  const char *description; /* "interpreter", the maker's name of the device */
  const char *driver;      /* and its version; part of the cache's key */
  const char *note; /* for people: what it is good for; why it is missing,
                              and what to install */
  const char *fix;  /* what to do about what `note` says; "": nothing */
} vyre_device_info;

/** What can be chosen of a backend's devices when they are opened: in
 *  vyre_context_options.backend_options, or $VYRE_OPTIONS, "BACKEND.NAME=NUMBER",
 *  or "=auto", which is as if it were not there. Texts are static storage. */
typedef struct vyre_device_option {
  const char *name;  /* "threads" */
  uint64_t min, max; /* numbers that it takes */
  const char *help;  /* for people */
} vyre_device_option;

VYRE_BEGIN

/** Opens a device: "auto" takes the best there is, a name takes that one or fails,
 *  "name:index" one of several of a backend. "cpu" compiles for this machine.
 *  "ref", the reference, is an interpreter: always available, and slow. What
 *  "auto" takes does not change while the process lives.
 *
 *  "auto" falls back to "ref" if nothing better can be used, for instance if
 *  "cpu" finds no LLVM 19 to compile with. A program that depends on speed finds
 *  out in one of three ways: vyre_device_name and vyre_device_selection_reason say what was
 *  chosen and why; on success the message of @p st says the same; and the option
 *  "ref.fallback=0" (vyre_context_options.backend_options, $VYRE_OPTIONS) makes
 *  "auto" fail instead.
 *  @p context may be NULL: the process's own.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_device_release). On failure
 *             *out is NULL. Retains the context.
 *  Lifetime:  @p name is borrowed for the call.
 *  Threads:   safe.          Blocks: on the allocator and the device's driver.
 *  Errors:    VYRE_UNSUPPORTED_FEATURE (device_unavailable) for a name that is
 *             not there, and for "auto" if only "ref" is left and may not be
 *             taken; VYRE_OUT_OF_MEMORY; those of vyre_context_create. */
VYRE_API VYRE_NODISCARD vyre_code vyre_device_open(vyre_context *context,
                                                   const char *name,
                                                   vyre_device **out,
                                                   vyre_status *st);

/** Loads what the device @p name needs to compile and run, as far as that can be
 *  without opening it: for "cpu", LLVM. No thread is started, so that a process
 *  that is about to fork() can have its children find it loaded. It stays until
 *  the process ends. A device that needs nothing is fine as it is.
 *  @p context may be NULL: the process's own.
 *  Ownership: borrows all.  Threads: safe.  Blocks: on files.
 *  Errors:    VYRE_UNSUPPORTED_FEATURE (device_unavailable) for a name, or a
 *             library, that is not there; those of vyre_context_create. */
VYRE_API VYRE_NODISCARD vyre_code vyre_device_preload(vyre_context *context,
                                                      const char *name,
                                                      vyre_status *st);

/** Keeps a device: one more vyre_device_release is due. Returns it.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_device *vyre_device_retain(vyre_device *device);

/** Lets go of a device; the last one closes it. Pipelines and fences keep
 *  theirs; resident buffers do not, and end with it. NULL is fine.
 *  Threads: safe.  Blocks: until work that was submitted is over.
 *  Errors: none. */
VYRE_API void vyre_device_release(vyre_device *device);

/** The name that opens this device ("ref"), also if "auto" chose it. The
 *  device's.  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_device_name(const vyre_device *device);

/** Returns why this device was opened: "asked for by name", with the number of
 *  devices if the name stands for the first of several, or the reason for the
 *  choice of "auto", such as "auto: 'cpu' has no LLVM 19 to compile with;
 *  apt-get install libllvm19". The device's.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_device_selection_reason(const vyre_device *device);

/** What it can do; the device's.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const vyre_device_caps *vyre_device_get_caps(
    const vyre_device *device);

/** A number of its own in this process; the owner of its resident buffers. From
 *  1, never used again.  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API uint64_t vyre_device_id(const vyre_device *device);

/** Whether it is lost: all it is asked fails with VYRE_DEVICE_LOST, until it is
 *  opened anew.  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_device_is_lost(const vyre_device *device);

/** Tests every operation on floats now: a million edges and random numbers
 *  each, against exact arithmetic. A device that is not exact by definition is
 *  tested when it is opened first, and vyre_device_get_caps has the result;
 *  this does it again and changes nothing. The first @p room classes are put to
 *  @p out; *count says how many there are.
 *  Ownership: borrows all.  Threads: safe.  Blocks: until it is over: a second.
 *  Errors:    VYRE_INVALID_ARGUMENT for a NULL; VYRE_UNSUPPORTED_FEATURE if an
 *             operation is wrong in every form; those of compiling and
 *             dispatching. */
VYRE_API VYRE_NODISCARD vyre_code vyre_device_probe(vyre_device *device,
                                                    vyre_float_op_info *out,
                                                    size_t room, size_t *count,
                                                    vyre_status *st);

/** Describes device @p index of all there are, best first, and after them the
 *  backends without one. False beyond the last.
 *  Ownership: fills *out.  Threads: safe.
 *  Blocks: on drivers, the first time.  Errors: none. */
VYRE_API bool vyre_device_info_at(size_t index, vyre_device_info *out);

/** Describes option @p index of backend @p backend ("cpu"). False beyond the last,
 *  and for a backend that is none.
 *  Ownership: fills *out.  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API bool vyre_device_option_at(const char *backend, size_t index,
                                    vyre_device_option *out);

VYRE_END

#endif
