/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Data shared by the files of the router:
 *
 *   router.c     devices: opening them, and opening lost ones again
 *   route.c      programs compiled for all devices
 *   dispatch.c   one dispatch: choice, failover, shadow run
 *   choose.c     measured times, and the choice of the fastest device
 *   buffers.c    buffers of the router, with one copy per device
 *   shadow.c     comparison with a second device, and shadow files
 *
 * runtime/tune/times.h has the measured times on disk.
 *
 * A route has one candidate per device of the router, with the same index. If a
 * device is lost, its place gets a newly opened device with the next
 * generation, and a candidate of an older generation is compiled again before
 * its next dispatch. */
#ifndef VYRE_RUNTIME_ROUTE_ROUTER_INTERNAL_H
#define VYRE_RUNTIME_ROUTE_ROUTER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "vyre/router.h"

#include "base/bytes.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "runtime/core/context.h"
#include "runtime/tune/own_outputs.h"
#include "runtime/tune/times.h"

enum {
  ROUTE_CLASSES = 64, /* size classes of a route; others share an entry */
  ROUTE_SAMPLES = 5,  /* times of a candidate that are kept */
  ROUTE_WHY = 544,
  ROUTE_BINDINGS = 64, /* of a dispatch that uses router buffers */
  ROUTE_NONE = UINT32_MAX,
};

/* A device of a router. */
typedef struct route_device {
  char name[VYRE_DEVICE_NAME];
  _Atomic(vyre_device *) device; /* replaced when it is lost, under the lock */
  _Atomic uint64_t id;           /* of the device */
  atomic_uint generation;
  vyre__device_identity identity;
  uint64_t latency_ns; /* of a dispatch without work; 0: not measured */
  _Atomic uint64_t transfer_ps; /* per byte, for router buffers */
} route_device;

/* A buffer of the router. */
typedef struct route_buffer {
  uint64_t size;
  uint32_t generation; /* of the handle; odd: the buffer exists */
  uint32_t current;    /* devices with the newest contents, one bit each, and
                          ROUTE_HOST; 0 with is_zero: no device has a copy yet */
  bool is_zero;        /* never written */
  vyre_buffer copies[VYRE_ROUTER_MAX_DEVICES];
  void *host; /* copy in host memory, made before an update; or NULL */
} route_buffer;

/* Bit of route_buffer.current for the copy in host memory. */
enum { ROUTE_HOST = 1 << VYRE_ROUTER_MAX_DEVICES };

struct vyre_router {
  atomic_uint references;
  vyre_context *context; /* retained */
  vyre_allocator allocator;
  uint64_t id; /* owner of its buffers */
  vyre_route_policy policy;
  bool fails_over, snapshots_in_place, stores_times;
  uint32_t shadow_permille;
  char *shadow_folder; /* NULL: none */
  atomic_uint shadow_count, shadow_files;
  pthread_mutex_t lock; /* guards opening devices, buffers and times */
  route_device devices[VYRE_ROUTER_MAX_DEVICES];
  uint32_t device_count;
  route_buffer *buffers;
  size_t buffer_count, buffer_capacity;
  vyre__times times;
};

/* State of a candidate for one size class. */
typedef enum route_state {
  ROUTE_UNTRIED,
  ROUTE_HOPELESS, /* a trial was stopped, or cannot pay */
  ROUTE_CLOSE,    /* may be the fastest */
  ROUTE_SLOWER,   /* measured, and clearly slower */
} route_state;

typedef struct route_estimate {
  _Atomic uint8_t state; /* route_state */
  uint8_t failed_trials, retries;
  uint64_t retry_at; /* `seen` at which one that is not close is tried again */
  atomic_uint samples;
  uint64_t recent[ROUTE_SAMPLES]; /* the last times, in a ring */
  _Atomic uint64_t time_ns;       /* their median; 0: none */
} route_estimate;

/* Times of the candidates of a route for dispatches of one size. */
typedef struct route_class {
  uint32_t size_class;
  atomic_uint choice;    /* candidate; ROUTE_NONE: not known yet */
  atomic_uint countdown; /* dispatches until the next one is measured */
  atomic_flag is_measuring;
  /* Only the thread that set is_measuring uses the rest, but for atomics. */
  uint32_t turns;    /* measured dispatches of the choice */
  uint64_t seen;     /* dispatches, roughly */
  uint32_t step;     /* dispatches from one measured one to the next */
  uint64_t spent_ns; /* time of exploring beyond that of the best candidate */
  route_estimate estimates[VYRE_ROUTER_MAX_DEVICES];
} route_class;

typedef struct route_candidate {
  _Atomic(vyre_pipeline *) pipeline; /* NULL: cannot run the program */
  atomic_uint generation;
  char why[ROUTE_WHY];
} route_candidate;

struct vyre_route {
  vyre_router *router;   /* retained */
  vyre_program *program; /* retained */
  vyre_compile_options options;
  bool has_options;
  vyre_hash128 fingerprint;
  size_t input_count, output_count; /* of the program */
  uint32_t only;  /* the one candidate that can run it; or ROUTE_NONE */
  uint32_t first; /* first candidate that can run it */
  route_candidate candidates[VYRE_ROUTER_MAX_DEVICES];
  _Atomic(route_class *) recent; /* of the last dispatch; NULL: none yet */
  _Atomic(route_class *) classes[ROUTE_CLASSES];
  pthread_mutex_t lock;     /* guards compiling again and `replaced` */
  atomic_uint running;      /* dispatches, if the router fails over */
  vyre_pipeline **replaced; /* pipelines of lost devices: a dispatch of another
                               thread may still use them */
  size_t replaced_count, replaced_capacity;
};

/* Returns true if a dispatch has the number of inputs and outputs that the
 * program has. The lists of another one are not read. */
static inline bool route_counts_fit(const vyre_route *route,
                                    const vyre_dispatch_desc *desc) {
  return desc->input_count == route->input_count &&
         desc->output_count == route->output_count && !desc->resources &&
         (desc->inputs || desc->input_count == 0) &&
         (desc->outputs || desc->output_count == 0);
}

/* Properties of the bindings of a dispatch that limit the choice. */
typedef struct route_bindings {
  uint64_t bytes;
  uint64_t owner; /* device that owns a device buffer; 0: none */
  bool has_router_buffers;
  bool can_repeat; /* can run a second time with other memory */
} route_bindings;

/* --- router.c --------------------------------------------------------------*/

/* Returns the device at @p index, retained. Opens a lost one again. */
vyre_code vyre__router_device(vyre_router *router, uint32_t index,
                              vyre_device **out, vyre_status *st);
/* Opens a device again if it is lost. The caller holds the lock. */
vyre_code vyre__router_revive(vyre_router *router, uint32_t index,
                              vyre_status *st);
vyre_router *vyre__router_retain(vyre_router *router);

/* --- route.c ---------------------------------------------------------------*/

/* Frees the pipelines of lost devices if no dispatch is running. */
void vyre__route_free_replaced(vyre_route *route);
/* Returns the binding plan of the program. */
const vyre_binding_plan *vyre__route_plan(const vyre_route *route);
/* Returns the pipeline of a candidate, compiled again if its device was lost.
 * It lives as long as the route. */
vyre_code vyre__route_pipeline(vyre_route *route, uint32_t index,
                               vyre_pipeline **out, vyre_status *st);

/* --- choose.c --------------------------------------------------------------*/

/* Returns what the bindings of a dispatch say about its devices: the bytes that
 * each would transfer, the owner of device buffers, and whether the dispatch can
 * be repeated. */
route_bindings vyre__route_summarize(vyre_route *route,
                                     const vyre_dispatch_desc *desc);
/* Returns the entry of a size class, or NULL without memory. */
route_class *vyre__route_class_find(vyre_route *route, uint32_t size_class);
static inline route_class *vyre__route_class_of(
    vyre_route *route, const route_bindings *bindings,
    const vyre_dispatch_desc *desc) {
  uint32_t size_class = vyre__size_class(bindings->bytes, desc->grid);
  route_class *recent =
      atomic_load_explicit(&route->recent, memory_order_acquire);
  if (recent && recent->size_class == size_class) return recent;
  return vyre__route_class_find(route, size_class);
}
/* Adds a measured time of a candidate. */
void vyre__route_measured(vyre_route *route, route_class *of, uint32_t index,
                          uint64_t ns);
/* Selects the candidate for a measured dispatch, after trial runs of candidates
 * without a measurement. Sets *is_exploring if another candidate is known to be
 * faster and this dispatch serves to measure. */
uint32_t vyre__route_explore(vyre_route *route, route_class *of,
                             const vyre_dispatch_desc *desc,
                             const route_bindings *bindings,
                             bool *is_exploring);
/* Returns true if exploring may take @p ns more: all of it stays below the
 * bound. */
bool vyre__route_may_spend(const route_class *of, uint64_t best, uint64_t ns);
/* Adds the time of a dispatch that served to explore. */
void vyre__route_spent(const vyre_route *route, route_class *of, uint64_t ns);
/* Returns the fastest candidate. Counts transfers of router buffers. */
uint32_t vyre__route_fastest(vyre_route *route, const route_class *of,
                             const vyre_dispatch_desc *desc);
/* Measures the latency of all devices, unless it is stored. */
void vyre__router_measure_latency(vyre_router *router);

/* --- buffers.c -------------------------------------------------------------*/

/* Returns true if @p buffer belongs to a router. */
static inline bool route_owns(vyre_buffer buffer) {
  return buffer.owner >> 63 != 0;
}

/* A descriptor whose router buffers are replaced by those of a device. */
typedef struct route_bound {
  vyre_dispatch_desc desc;
  vyre_input inputs[ROUTE_BINDINGS];
  vyre_output outputs[ROUTE_BINDINGS];
  uint32_t written[2 * ROUTE_BINDINGS]; /* buffers that become current there */
  uint32_t written_count;
  uint32_t updated[ROUTE_BINDINGS]; /* those of them that it also reads */
  uint32_t updated_count;
} route_bound;

/* Makes @p out a copy of @p desc for device @p index, and copies the newest
 * contents of its inputs there. @p plan: of the program. */
vyre_code vyre__route_bind(vyre_router *router, const vyre_binding_plan *plan,
                           const vyre_dispatch_desc *desc, uint32_t index,
                           route_bound *out, vyre_status *st);
/* Records that a dispatch on device @p index wrote its outputs. */
void vyre__route_bound_done(vyre_router *router, const route_bound *bound,
                            uint32_t index);
/* Records that a dispatch on device @p index failed: the contents of what it
 * writes there are unspecified, and another copy becomes the newest. Returns a
 * buffer that it reads and updates without another copy, or ROUTE_NONE. */
uint32_t vyre__route_bound_failed(vyre_router *router, const route_bound *bound,
                                  uint32_t index);
/* Copies the buffers that @p bound updates in place to host memory. */
vyre_code vyre__route_bound_keep(vyre_router *router, const route_bound *bound,
                                 uint32_t index, vyre_status *st);
/* Copies the contents of a device or router buffer to host memory. @p size: 0
 * for all. Sets *out to the number of bytes. */
vyre_code vyre__route_fetch(vyre_router *router, vyre_buffer buffer,
                            uint64_t offset, uint64_t size, vyre__bytes *to,
                            uint64_t *out, vyre_status *st);
/* Returns the size of a device or router buffer, or 0. */
uint64_t vyre__route_buffer_size(vyre_router *router, vyre_buffer buffer);
/* Returns bytes of inputs whose newest contents are not on device @p index. */
uint64_t vyre__route_missing_bytes(vyre_router *router,
                                   const vyre_dispatch_desc *desc,
                                   uint32_t index);
/* Records that the copies of a lost device are gone. */
void vyre__route_buffers_lost(vyre_router *router, uint32_t index);
/* Fails if the newest contents of a buffer of @p desc are lost. */
vyre_code vyre__route_buffers_check(vyre_router *router,
                                    const vyre_route *route,
                                    const vyre_dispatch_desc *desc,
                                    vyre_status *st);
void vyre__route_buffers_deinit(vyre_router *router);

/* --- shadow.c --------------------------------------------------------------*/

/* Copies of memory that a dispatch changes. */
typedef struct route_snapshot {
  vyre_allocator allocator;
  vyre_input *inputs;   /* all inputs; those that are copied refer to copies */
  vyre_output *outputs; /* with the size of their memory; or NULL */
  size_t input_count, output_count;
  vyre__bytes bytes;
} route_snapshot;

/* Returns the name of a binding that @p desc updates in place in host memory,
 * or NULL. */
const char *vyre__route_in_place(const vyre_route *route,
                                 const vyre_dispatch_desc *desc);
/* Copies the inputs that @p desc updates in place; with @p has_buffers also
 * all device and router buffers, so that the copies run on any device. */
vyre_code vyre__route_snapshot(vyre_route *route,
                               const vyre_dispatch_desc *desc, bool has_buffers,
                               route_snapshot *out, vyre_status *st);
void vyre__route_snapshot_deinit(route_snapshot *snapshot);

/* Runs @p desc on a candidate with outputs of its own, at most @p timeout_ns
 * long (0: no limit). @p out gets the bytes of the outputs one after the other.
 * *ns gets the time. */
vyre_code vyre__route_try(vyre_route *route, uint32_t index,
                          const vyre_dispatch_desc *desc, uint64_t timeout_ns,
                          vyre__bytes *out, uint64_t *ns, vyre_status *st);
/* Runs a dispatch, which has finished on candidate @p ran, on another one, and
 * compares the outputs. */
vyre_code vyre__route_shadow(vyre_route *route, uint32_t ran,
                             const vyre_dispatch_desc *desc,
                             const route_snapshot *inputs,
                             vyre_route_report *report, vyre_status *st);

/* Writes the contents of a shadow file. Returns false without memory. */
bool vyre__shadow_write(const vyre_route *route, const vyre_dispatch_desc *desc,
                        vyre__bytes *to);

/* --- router.c: times -------------------------------------------------------*/

/* Returns the time of a program on a device, or NULL. */
const vyre__time *vyre__route_time(const vyre_router *router,
                                   vyre_hash128 program, uint32_t device,
                                   uint32_t size_class);
/* Adds or replaces a time. */
void vyre__route_time_add(vyre_router *router, vyre_hash128 program,
                          uint32_t device, uint32_t size_class,
                          uint32_t samples, uint64_t time_ns);
/* Reads the stored times. */
void vyre__route_times_load(vyre_router *router);

#endif
