/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/** @file vyre/router.h
 *  Router: runs dispatches on one of several devices. Every device gives the
 *  same bits, so the choice of a device never changes a result.
 *
 *      vyre_router_options options = {.policy = VYRE_ROUTE_FASTEST,
 *                                     .fails_over = true};
 *      vyre_code code = vyre_router_open(NULL, &options, &router, &st);
 *      code = vyre_router_compile(router, program, NULL, &route, NULL, &st);
 *      code = vyre_route_dispatch(route, &desc, &report, &st);
 *
 *  The policy "fastest" measures dispatches. Times are kept per program,
 *  device and size class, and are stored in the cache directory of the
 *  context, so that the next process need not measure again. See
 *  docs/how-to/route-work.md.
 */
#ifndef VYRE_ROUTER_H
#define VYRE_ROUTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/buffer.h"
#include "vyre/context.h"
#include "vyre/device.h"
#include "vyre/diagnostic.h"
#include "vyre/dispatch.h"
#include "vyre/export.h"
#include "vyre/pipeline.h"
#include "vyre/program.h"
#include "vyre/status.h"

/** Devices with a common policy. */
typedef struct vyre_router vyre_router;

/** A program that is compiled for the devices of a router. */
typedef struct vyre_route vyre_route;

/** Maximum number of devices of a router. */
enum { VYRE_ROUTER_MAX_DEVICES = 16 };

/** Policies: X(enumerator, name). */
#define VYRE_ROUTE_POLICY_MAP(X)                                            \
  X(VYRE_ROUTE_FIXED, "fixed")     /* the first device of the list */       \
  X(VYRE_ROUTE_CAPABLE, "capable") /* the first that can run the program */ \
  X(VYRE_ROUTE_FASTEST, "fastest") /* the one that took the shortest time */

/** Rule by which a router selects a device. */
typedef enum vyre_route_policy {
#define VYRE_X2(name, text) name,
  VYRE_ROUTE_POLICY_MAP(VYRE_X2) VYRE_ROUTE_POLICY_COUNT
#undef VYRE_X2
} vyre_route_policy;

/** Options of a router. Zeroed: all devices, policy "fixed", no failover, no
 *  shadow runs. */
typedef struct vyre_router_options {
  /* Names of devices, separated by commas and in order of preference:
   * "vulkan:0,cpu". NULL or "all": every available device, best first. */
  const char *devices;
  vyre_route_policy policy;
  /* Runs a dispatch again on the next device if its device is lost or out of
   * memory. */
  bool fails_over;
  /* Copies memory that a dispatch updates in place before the dispatch, so
   * that it can run again. */
  bool snapshots_in_place;
  /* Share of dispatches, of 1000, that also run on a second device, whose
   * results are compared. */
  uint32_t shadow_permille;
  /* Existing folder for files that show a difference (vyre_shadow_replay);
   * NULL: none is written. */
  const char *shadow_folder;
  /* Neither reads nor writes the stored times. */
  bool ignores_stored_times;
  uint64_t reserved[6]; /* zero; for future fields */
} vyre_router_options;

/** Reasons for the device of a dispatch: X(enumerator, name). */
#define VYRE_ROUTE_REASON_MAP(X)                                            \
  X(VYRE_ROUTE_BY_ORDER, "order")       /* the first of the list */         \
  X(VYRE_ROUTE_BY_ABILITY, "ability")   /* the first that can run it */     \
  X(VYRE_ROUTE_ONLY_ONE, "only_one")    /* no other device can run it */    \
  X(VYRE_ROUTE_BY_TIME, "time")         /* measured to be the fastest */    \
  X(VYRE_ROUTE_TO_MEASURE, "measuring") /* to measure this device */        \
  X(VYRE_ROUTE_BY_BUFFER, "buffer")     /* owns a buffer of the dispatch */ \
  X(VYRE_ROUTE_FAILED_OVER, "failover") /* another device failed */

/** Reason for the device of a dispatch. */
typedef enum vyre_route_reason {
#define VYRE_X2(name, text) name,
  VYRE_ROUTE_REASON_MAP(VYRE_X2) VYRE_ROUTE_REASON_COUNT
#undef VYRE_X2
} vyre_route_reason;

/** Outcome of a routed dispatch. */
typedef struct vyre_route_report {
  const char *device; /* device that ran it; owned by the router */
  vyre_route_reason reason;
  /* Failed attempts on other devices, and the first of them. */
  uint32_t failed_attempts;
  const char *failed_device; /* owned by the router; NULL: none */
  vyre_code failed_code;
  bool is_shadowed;          /* the results of a second device were compared */
  bool is_different;         /* and differ */
  const char *shadow_device; /* owned by the router; NULL: none */
  /* If they differ: the first difference. */
  const char *output;   /* name of the output; owned by the route */
  uint64_t element;     /* index of its first element that differs */
  bool has_file;        /* `shadow_folder` has a new file */
  char file[64];        /* its name */
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_route_report;

/** One device of a route, for a dispatch of a given size. */
typedef struct vyre_route_candidate {
  const char *device; /* owned by the router */
  bool can_run;       /* the program was compiled for it */
  bool is_choice;     /* the next dispatch of this size would run on it */
  bool is_hopeless;   /* not measured to the end, because it is far slower */
  uint32_t samples;   /* times that were measured or stored */
  uint64_t time_ns;   /* their median; 0: none */
  /* Reason why it cannot run the program; owned by the route; "" if it can. */
  const char *why;
  uint64_t reserved[4]; /* zero; for future fields */
} vyre_route_candidate;

VYRE_BEGIN

/** Returns the name of a policy or of a reason, or "?" for an unknown value.
 *  Static storage.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API const char *vyre_route_policy_name(vyre_route_policy policy);
VYRE_API const char *vyre_route_reason_name(vyre_route_reason reason);

/** Opens a router. "all" omits devices that do not open; a device that is
 *  named must open. @p context may be NULL for the default context, @p options
 *  NULL for a zeroed struct.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_router_release). On
 *             failure *out is NULL.
 *  Lifetime:  the options are borrowed for the call.
 *  Threads:   safe.
 *  Blocks:    as vyre_device_open. With the policy "fastest", the first router
 *             on a machine also times a small kernel on each device.
 *  Errors:    VYRE_INVALID_ARGUMENT for an unknown policy, too many devices, a
 *             device that is listed twice or a share above 1000; those of
 *             vyre_device_open. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_router_open(vyre_context *context, const vyre_router_options *options,
                 vyre_router **out, vyre_status *st);

/** Closes a router after the last of its routes is released. Stores the
 *  measured times first. Accepts NULL.
 *  Threads:   safe.
 *  Blocks:    as vyre_device_release, and on files.
 *  Errors:    none; see vyre_router_save. */
VYRE_API void vyre_router_release(vyre_router *router);

/** Stores the times that were measured so far in the cache directory. Does
 *  nothing if the cache is off or the router ignores stored times.
 *  Threads:   safe.
 *  Blocks:    on files.
 *  Errors:    VYRE_UNKNOWN if the file cannot be written, with the reason. */
VYRE_API VYRE_NODISCARD vyre_code vyre_router_save(vyre_router *router,
                                                   vyre_status *st);

/** Returns device @p index of the router in order of preference, or NULL past
 *  the last. A device that was lost is replaced by a new one when the next
 *  dispatch needs it. Owned by the router; valid until then.
 *  Threads: safe.  Blocks: never.  Errors: none. */
VYRE_API vyre_device *vyre_router_device_at(vyre_router *router, size_t index);

/** Compiles @p program for every device of the router that can run it. With
 *  the policy "fixed" the first device must be able to. @p options and @p
 *  diagnostics may be NULL.
 *  Ownership: on VYRE_OK the caller owns *out (vyre_route_release). On failure
 *             *out is NULL. Retains the router and the program.
 *  Threads:   safe.
 *  Blocks:    while the devices compile.
 *  Errors:    those of vyre_pipeline_compile on the first device that was
 *             asked, if no device can run the program. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_router_compile(vyre_router *router, vyre_program *program,
                    const vyre_compile_options *options, vyre_route **out,
                    vyre_diagnostics *diagnostics, vyre_status *st);

/** Releases a route. No dispatch of it may be running. Accepts NULL.
 *  Threads: safe.  Blocks: as vyre_pipeline_release.  Errors: none. */
VYRE_API void vyre_route_release(vyre_route *route);

/** Runs the program of a route once, on the device that the policy selects,
 *  and waits for it. Buffers of the descriptor are device buffers of one
 *  device, which then runs it, or buffers of the router, which may run on any.
 *  @p report may be NULL.
 *
 *  Failover: a dispatch does not run again if it uses a device buffer of the
 *  failed device, if it updates memory in place without a snapshot
 *  (snapshots_in_place), or if the newest contents of a router buffer are
 *  lost. The status then names the buffer.
 *  Ownership: borrows all arguments.
 *  Threads:   safe; the report is compatible.
 *  Blocks:    as vyre_dispatch.
 *  Errors:    those of vyre_dispatch. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_route_dispatch(vyre_route *route, const vyre_dispatch_desc *desc,
                    vyre_route_report *report, vyre_status *st);

/** Fills *out with device @p index of a route, for dispatches of the size of
 *  @p desc. Returns false past the last device.
 *  Ownership: fills *out.
 *  Threads:   safe.
 *  Blocks:    never.
 *  Errors:    none. */
VYRE_API bool vyre_route_candidate_at(vyre_route *route,
                                      const vyre_dispatch_desc *desc,
                                      size_t index, vyre_route_candidate *out);

/** Creates a buffer of @p size zero bytes that every device of the router can
 *  use. The router copies its contents to the device that runs a dispatch, if
 *  another device has the newest ones.
 *  Ownership: the caller owns *out (vyre_router_buffer_destroy; releasing the
 *             router frees it too). On failure *out is zeroed.
 *  Threads:   safe. Dispatches and transfers that write a buffer must not
 *             overlap with others that use it.
 *  Blocks:    never; memory of a device is allocated when it is needed.
 *  Errors:    VYRE_OUT_OF_MEMORY. */
VYRE_API VYRE_NODISCARD vyre_code vyre_router_buffer_create(vyre_router *router,
                                                            uint64_t size,
                                                            vyre_buffer *out,
                                                            vyre_status *st);

/** Destroys a buffer of the router. No dispatch may be using it.
 *  Threads:   safe.
 *  Blocks:    never.
 *  Errors:    VYRE_INVALID_ARGUMENT (stale_handle, foreign_handle). */
VYRE_API vyre_code vyre_router_buffer_destroy(vyre_router *router,
                                              vyre_buffer buffer,
                                              vyre_status *st);

/** Copy bytes between host memory and a buffer of the router.
 *  Lifetime:  @p data is borrowed for the call.
 *  Threads:   as vyre_router_buffer_create.
 *  Blocks:    until the copy has finished.
 *  Errors:    those of vyre_buffer_upload; VYRE_DEVICE_LOST if the device with
 *             the newest contents is lost. */
VYRE_API VYRE_NODISCARD vyre_code vyre_router_buffer_upload(
    vyre_router *router, vyre_buffer buffer, uint64_t offset, const void *data,
    size_t size, vyre_status *st);
VYRE_API VYRE_NODISCARD vyre_code vyre_router_buffer_download(
    vyre_router *router, vyre_buffer buffer, uint64_t offset, void *data,
    size_t size, vyre_status *st);

/** Runs the dispatch of a shadow file again on the devices of @p router, and
 *  compares the results. @p text receives one line per device: its name and a
 *  hash of all outputs. *is_same is false if they differ.
 *  Ownership: borrows all arguments.
 *  Threads:   safe.
 *  Blocks:    while the kernel runs on every device.
 *  Errors:    VYRE_INVALID_ARGUMENT for a file that cannot be read or is
 *             corrupt; those of vyre_pipeline_compile and vyre_dispatch. */
VYRE_API VYRE_NODISCARD vyre_code
vyre_shadow_replay(vyre_router *router, const void *bytes, size_t size,
                   vyre_writer text, bool *is_same, vyre_status *st);

VYRE_END

#endif
