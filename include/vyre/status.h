/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/status.h
 *  Status codes, and the status that describes a failure.
 *
 *  A function that can fail returns a vyre_code and takes a vyre_status as its
 *  last argument. The code is the class of the failure. The status, which the
 *  caller owns, describes the cause, the numbers involved and a fix. It may be
 *  NULL if the code is enough. A status holds no heap memory: it needs no
 *  cleanup, and it can report that memory has run out.
 *
 *  Every call resets the status. After a failure it describes the first cause.
 *  After a success its code is VYRE_OK, and its message and fix are empty. One
 *  status can be used for any number of calls and need not be initialised.
 *  Copy it to keep a message. One exception: vyre_device_open of "auto"
 *  succeeds with the chosen device and the reason in `message`.
 *
 *      vyre_status st = {0};
 *      if (vyre_queue_plan_build(&profile, &plan, &st) != VYRE_OK)
 *        fprintf(stderr, "%s\nFix: %s\n", st.message, st.fix);
 *
 *  Threads:   a status is compatible (one thread at a time). */
#ifndef VYRE_STATUS_H
#define VYRE_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/export.h"

/** All codes: X(enumerator, stable number, name). Numbers never change and are
 *  never reused; new ones are appended to their block. 1003 is reserved. */
#define VYRE_CODE_MAP(X)                                       \
  X(VYRE_OK, 0, "ok")                                          \
  X(VYRE_DEVICE_OUT_OF_MEMORY, 1001, "device_out_of_memory")   \
  X(VYRE_UNSUPPORTED_FEATURE, 1002, "unsupported_feature")     \
  X(VYRE_KERNEL_COMPILE_FAILED, 1004, "kernel_compile_failed") \
  X(VYRE_DISPATCH_FAILED, 1005, "dispatch_failed")             \
  X(VYRE_INVALID_PROGRAM, 1006, "invalid_program")             \
  X(VYRE_COOPERATIVE_RESIDENCY_EXCEEDED, 1007,                 \
    "cooperative_residency_exceeded")                          \
  X(VYRE_DEVICE_LOST, 1008, "device_lost")                     \
  X(VYRE_PLAN_REJECTED, 1101, "plan_rejected")                 \
  X(VYRE_OUT_OF_MEMORY, 1102, "out_of_memory")                 \
  X(VYRE_INVALID_ARGUMENT, 1103, "invalid_argument")           \
  X(VYRE_NOT_RUN, 1104, "not_run")                             \
  X(VYRE_UNKNOWN, 1999, "unknown")

/** All kinds: X(enumerator, stable number, name). A kind is the exact reason
 *  within a code. JSON output uses its name. Numbers never change and are
 *  never reused. */
#define VYRE_KIND_MAP(X)                                                      \
  X(VYRE_KIND_NONE, 0, "none")                                                \
  X(VYRE_KIND_INVALID_ARGUMENT, 1, "invalid_argument")                        \
  X(VYRE_KIND_INVALID_PROGRAM, 2, "invalid_program")                          \
  X(VYRE_KIND_STORAGE_RESERVE_FAILED, 3, "storage_reserve_failed")            \
  X(VYRE_KIND_BYTE_COUNT_OVERFLOW, 4, "byte_count_overflow")                  \
  X(VYRE_KIND_ZERO_CAPACITY, 20, "zero_capacity")                             \
  X(VYRE_KIND_ZERO_ENTRY_BYTES, 21, "zero_entry_bytes")                       \
  X(VYRE_KIND_ZERO_DRAIN_CHUNK, 22, "zero_drain_chunk")                       \
  X(VYRE_KIND_INITIAL_ITEMS_EXCEED_CAPACITY, 23,                              \
    "initial_items_exceed_capacity")                                          \
  X(VYRE_KIND_HOST_PARTICIPATION_REJECTED, 24, "host_participation_rejected") \
  X(VYRE_KIND_OVER_BUDGET, 25, "over_budget")                                 \
  X(VYRE_KIND_INVALID_WAVE, 40, "invalid_wave")                               \
  X(VYRE_KIND_SELF_DEPENDENCY, 41, "self_dependency")                         \
  X(VYRE_KIND_CYCLE, 42, "cycle")                                             \
  X(VYRE_KIND_GROUP_OVER_BUDGET, 43, "group_over_budget")                     \
  X(VYRE_KIND_INVALID_INTERVAL, 60, "invalid_interval")                       \
  X(VYRE_KIND_DEVICE_UNAVAILABLE, 80, "device_unavailable")                   \
  X(VYRE_KIND_NOT_SUPPORTED, 81, "not_supported")                             \
  X(VYRE_KIND_BINDING_MISMATCH, 82, "binding_mismatch")                       \
  X(VYRE_KIND_GRID_TOO_LARGE, 83, "grid_too_large")                           \
  X(VYRE_KIND_OUT_OF_FUEL, 84, "out_of_fuel")                                 \
  X(VYRE_KIND_TIMED_OUT, 85, "timed_out")                                     \
  X(VYRE_KIND_WRITER_REFUSED, 86, "writer_refused")                           \
  X(VYRE_KIND_STALE_HANDLE, 87, "stale_handle")                               \
  X(VYRE_KIND_FOREIGN_HANDLE, 88, "foreign_handle")                           \
  X(VYRE_KIND_INJECTED_FAULT, 89, "injected_fault")                           \
  X(VYRE_KIND_VARIANT_NOT_COMPILED, 90, "variant_not_compiled")               \
  X(VYRE_KIND_COPY_NEEDED, 91, "copy_needed")                                 \
  X(VYRE_KIND_OUTPUT_TOO_LARGE, 92, "output_too_large")                       \
  X(VYRE_KIND_ZERO_REPEAT_COUNT, 93, "zero_repeat_count")                     \
  X(VYRE_KIND_DEVICE_LOST, 94, "device_lost")                                 \
  X(VYRE_KIND_READ_ONLY, 95, "read_only")                                     \
  X(VYRE_KIND_UNBOUND_SLOT, 96, "unbound_slot")                               \
  X(VYRE_KIND_UNSAFE_REPLAY, 97, "unsafe_replay")                             \
  X(VYRE_KIND_MAX_ITERATIONS_REACHED, 98, "max_iterations_reached")           \
  X(VYRE_KIND_TENSOR_REFUSED, 99, "tensor_refused")                           \
  X(VYRE_KIND_RESOURCE_BUSY, 100, "resource_busy")                            \
  X(VYRE_KIND_GRID_REQUIRED, 101, "grid_required")                            \
  X(VYRE_KIND_QUEUE_FULL, 102, "queue_full")                                  \
  X(VYRE_KIND_PUSHES_EXCEEDED, 103, "pushes_exceeded")                        \
  X(VYRE_KIND_QUEUE_LOST, 104, "queue_lost")                                  \
  X(VYRE_KIND_CANCELLED, 105, "cancelled")

/** Class of a failure. */
typedef enum vyre_code {
#define VYRE_X(name, number, text) name = (number),
  VYRE_CODE_MAP(VYRE_X)
#undef VYRE_X
} vyre_code;

/** Exact reason of a failure. */
typedef enum vyre_kind {
#define VYRE_X(name, number, text) name = (number),
  VYRE_KIND_MAP(VYRE_X)
#undef VYRE_X
} vyre_kind;

/** Named number of a failure. JSON output uses the name. */
typedef struct vyre_status_number {
  const char *name; /* static storage */
  uint64_t value;   /* value */
} vyre_status_number;

/** Maximum number of numbers of a failure: four describe the cause, two its
 *  position (`item`, `command`). */
enum { VYRE_STATUS_MAX_NUMBERS = 6 };

/** Description of a failure. */
typedef struct vyre_status {
  vyre_code code;        /* class of the failure */
  vyre_kind kind;        /* exact reason */
  int32_t native_code;   /* error code of the device API; 0 if not applicable */
  uint32_t number_count; /* entries of `numbers` in use */
  vyre_status_number numbers[VYRE_STATUS_MAX_NUMBERS]; /* named numbers */
  /* Quantity or argument at fault, or NULL; static storage. */
  const char *field;
  const char *file; /* source file of vyre that reported it; static storage */
  int line;         /* line in `file` */
  /* One sentence with names and numbers; after a success, empty or a note. */
  char message[320];
  /* Instruction that resolves the failure; never empty on failure. */
  char fix[192];
  uint64_t reserved[2]; /* zero; for future fields */
} vyre_status;

VYRE_BEGIN

/** Returns the name of a code ("invalid_program"), or "?" for an unknown
 *  value. Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_code_name(vyre_code code);

/** Returns the name of a kind ("zero_capacity"), or "?" for an unknown value.
 *  Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_kind_name(vyre_kind kind);

/** Looks up a named number of a failure. Stores it in *out and returns true,
 *  or returns false and leaves *out unchanged.
 *  Ownership: borrows all arguments.
 *  Threads:   as the status.
 *  Blocks:    never.
 *  Errors:    none. */
VYRE_API bool vyre_status_number_get(const vyre_status *st, const char *name,
                                     uint64_t *out);

VYRE_END

#endif
