/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Routers: a list of devices with a policy. */
#include <stdio.h>
#include <string.h>

#include "base/enum_name.h"
#include "hal/backend.h"
#include "runtime/core/device.h"
#include "runtime/route/router_internal.h"

enum { LIST_BYTES = 1024 };

VYRE__ENUM_NAME(vyre_route_policy_name, vyre_route_policy,
                VYRE_ROUTE_POLICY_MAP)
VYRE__ENUM_NAME(vyre_route_reason_name, vyre_route_reason,
                VYRE_ROUTE_REASON_MAP)

/* --- devices ---------------------------------------------------------------*/

static void add_device(vyre_router *router, vyre_device *device) {
  route_device *to = &router->devices[router->device_count++];
  (void)snprintf(to->name, sizeof to->name, "%s", vyre_device_name(device));
  to->identity = vyre__device_identity_of(device);
  atomic_init(&to->device, device);
  atomic_init(&to->id, vyre_device_id(device));
}

static bool has_device(const vyre_router *router, const char *name) {
  for (uint32_t i = 0; i < router->device_count; i++) {
    if (strcmp(router->devices[i].name, name) == 0) return true;
  }
  return false;
}

static vyre_code too_many(vyre_status *st) {
  return VYRE_FAIL_WITH(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                        "devices",
                        VYRE_NUMBERS({"max_devices", VYRE_ROUTER_MAX_DEVICES}),
                        "list fewer devices", "a router has at most %u devices",
                        (unsigned)VYRE_ROUTER_MAX_DEVICES);
}

/* Opens every available device. */
static vyre_code open_all(vyre_router *router, vyre_status *st) {
  vyre_device_info info;
  vyre_status first = {0}, one;
  for (size_t i = 0; vyre_context_device_info_at(router->context, i, &info);
       i++) {
    vyre_device *device;
    one = (vyre_status){0};
    if (!info.is_available) continue;
    if (router->device_count == VYRE_ROUTER_MAX_DEVICES) break;
    if (vyre_device_open(router->context, info.name, &device,
                         vyre__status_open(&one)) == VYRE_OK) {
      if (vyre_device_get_caps(device)->is_stub) {
        vyre_device_release(device);
      } else {
        add_device(router, device);
      }
    } else if (first.code == VYRE_OK) {
      first = one;
    }
  }
  if (router->device_count > 0) return VYRE_OK;
  if (st) *st = first;
  return first.code == VYRE_OK
             ? VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE,
                         VYRE_KIND_DEVICE_UNAVAILABLE,
                         "run `vyre devices` to see what is missing",
                         "vyre_router_open: no device is available")
             : first.code;
}

static vyre_code open_one(vyre_router *router, const char *name,
                          vyre_status *st) {
  vyre_device *device;
  if (router->device_count == VYRE_ROUTER_MAX_DEVICES) return too_many(st);
  VYRE_TRY(
      vyre_device_open(router->context, name, &device, vyre__status_open(st)));
  if (vyre_device_get_caps(device)->is_stub) {
    vyre_device_release(device);
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "remove the device from the list",
                     "vyre_router_open: the device '%.48s' is a stub, which "
                     "runs no kernel",
                     name);
  }
  if (has_device(router, vyre_device_name(device))) {
    vyre_device_release(device);
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "list each device once",
                     "vyre_router_open: the device '%.48s' is listed twice",
                     name);
  }
  add_device(router, device);
  if (st) st->message[0] = '\0'; /* the choice of "auto" */
  return VYRE_OK;
}

static vyre_code open_listed(vyre_router *router, const char *list,
                             vyre_status *st) {
  char text[LIST_BYTES];
  int length = snprintf(text, sizeof text, "%s", list);
  if (length < 0 || (size_t)length >= sizeof text) return too_many(st);
  char *rest = text;
  for (char *name = text; rest; name = rest) {
    rest = strchr(name, ',');
    if (rest) *rest++ = '\0';
    if (*name == '\0') {
      return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                       "write names as in \"cpu,vulkan:0\", or \"all\"",
                       "vyre_router_open: the list of devices '%.80s' has an "
                       "empty name",
                       list);
    }
    VYRE_TRY(open_one(router, name, st));
  }
  return VYRE_OK;
}

/* Records that the copies on a device are gone. The caller holds the lock. */
static void forget_copies(vyre_router *router, uint32_t index) {
  for (size_t i = 0; i < router->buffer_count; i++) {
    router->buffers[i].current &= ~(1u << index);
    router->buffers[i].copies[index] = (vyre_buffer){0, 0};
  }
}

void vyre__route_buffers_lost(vyre_router *router, uint32_t index) {
  pthread_mutex_lock(&router->lock);
  /* Another thread may have opened the device again. */
  if (vyre_device_is_lost(atomic_load(&router->devices[index].device))) {
    forget_copies(router, index);
  }
  pthread_mutex_unlock(&router->lock);
}

vyre_code vyre__router_revive(vyre_router *router, uint32_t index,
                              vyre_status *st) {
  route_device *entry = &router->devices[index];
  vyre_device *old = atomic_load(&entry->device), *new;
  if (!vyre_device_is_lost(old)) return VYRE_OK;
  VYRE_TRY(vyre_device_open(router->context, entry->name, &new,
                            vyre__status_open(st)));
  forget_copies(router, index);
  atomic_store(&entry->device, new);
  atomic_store(&entry->id, vyre_device_id(new));
  atomic_fetch_add(&entry->generation, 1);
  vyre_device_release(old);
  return VYRE_OK;
}

vyre_code vyre__router_device(vyre_router *router, uint32_t index,
                              vyre_device **out, vyre_status *st) {
  route_device *entry = &router->devices[index];
  pthread_mutex_lock(&router->lock);
  vyre_code code = vyre__router_revive(router, index, st);
  *out =
      code == VYRE_OK ? vyre_device_retain(atomic_load(&entry->device)) : NULL;
  pthread_mutex_unlock(&router->lock);
  return code;
}

vyre_device *vyre_router_device_at(vyre_router *router, size_t index) {
  if (!router || index >= router->device_count) return NULL;
  return atomic_load(&router->devices[index].device);
}

/* --- times -----------------------------------------------------------------*/

static void identities_of(const vyre_router *router,
                          vyre__device_identity *out) {
  for (uint32_t i = 0; i < router->device_count; i++) {
    out[i] = router->devices[i].identity;
  }
}

void vyre__route_times_load(vyre_router *router) {
  vyre__device_identity devices[VYRE_ROUTER_MAX_DEVICES];
  if (!router->stores_times) return;
  identities_of(router, devices);
  vyre__times_load(&router->times, devices, router->device_count);
}

static vyre__time time_of(const vyre_router *router, vyre_hash128 program,
                          uint32_t device, uint32_t size_class) {
  return (vyre__time){.program = program,
                      .device = router->devices[device].identity,
                      .size_class = size_class};
}

const vyre__time *vyre__route_time(const vyre_router *router,
                                   vyre_hash128 program, uint32_t device,
                                   uint32_t size_class) {
  const vyre__time wanted = time_of(router, program, device, size_class);
  return vyre__times_find(&router->times, &wanted);
}

void vyre__route_time_add(vyre_router *router, vyre_hash128 program,
                          uint32_t device, uint32_t size_class,
                          uint32_t samples, uint64_t time_ns) {
  vyre__time time = time_of(router, program, device, size_class);
  time.samples = samples;
  time.time_ns = time_ns;
  vyre__times_add(&router->times, &time);
}

static vyre_code save_times(vyre_router *router, vyre_status *st) {
  if (!router->stores_times) return VYRE_OK;
  vyre__device_identity devices[VYRE_ROUTER_MAX_DEVICES];
  identities_of(router, devices);
  pthread_mutex_lock(&router->lock);
  vyre_code code =
      vyre__times_save(&router->times, devices, router->device_count, st);
  pthread_mutex_unlock(&router->lock);
  return code;
}

vyre_code vyre_router_save(vyre_router *router, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, router);
  return save_times(router, st);
}

/* --- life ------------------------------------------------------------------*/

static vyre_code check_options(const vyre_router_options *options,
                               vyre_status *st) {
  VYRE_CHECK_RESERVED(st, "vyre_router_open", options);
  if ((unsigned)options->policy >= VYRE_ROUTE_POLICY_COUNT) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "policy",
        VYRE_NUMBERS({"policy", (uint64_t)options->policy}),
        "use a value of vyre_route_policy",
        "vyre_router_open: %u is not a policy", (unsigned)options->policy);
  }
  if (options->shadow_permille > 1000) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
        "shadow_permille",
        VYRE_NUMBERS({"shadow_permille", options->shadow_permille},
                     {"max", 1000}),
        "use a share from 0 to 1000",
        "vyre_router_open: shadow_permille is %u; the maximum is 1000",
        (unsigned)options->shadow_permille);
  }
  return VYRE_OK;
}

static vyre_code init(vyre_router *router, const vyre_router_options *options,
                      vyre_status *st) {
  router->policy = options->policy;
  router->fails_over = options->fails_over;
  router->snapshots_in_place = options->snapshots_in_place;
  router->shadow_permille = options->shadow_permille;
  router->stores_times = !options->ignores_stored_times;
  if (options->shadow_folder) {
    size_t size = strlen(options->shadow_folder) + 1;
    router->shadow_folder = vyre__resize(router->allocator, NULL, 0, size);
    if (!router->shadow_folder) {
      return vyre__no_memory(st, "vyre_router_open", "bytes", size);
    }
    memcpy(router->shadow_folder, options->shadow_folder, size);
  }
  const char *list = options->devices;
  VYRE_TRY(!list || strcmp(list, "all") == 0 ? open_all(router, st)
                                             : open_listed(router, list, st));
  if (router->policy == VYRE_ROUTE_FASTEST) {
    vyre__route_times_load(router);
    vyre__router_measure_latency(router);
  }
  return VYRE_OK;
}

vyre_code vyre_router_open(vyre_context *context,
                           const vyre_router_options *options,
                           vyre_router **out, vyre_status *st) {
  vyre__status_begin(st);
  static const vyre_router_options zeroed = {0};
  static _Atomic uint64_t last_id = 0;
  VYRE_REQUIRE(st, out);
  *out = NULL;
  if (!options) options = &zeroed;
  VYRE_TRY(check_options(options, st));
  VYRE_TRY(vyre__context_acquire(&context, st));
  vyre_router *router =
      vyre__alloc_zeroed(context->allocator, sizeof(vyre_router));
  if (!router) {
    vyre_context_release(context);
    return vyre__no_memory(st, "vyre_router_open", "routers", 1);
  }
  router->context = context;
  router->allocator = context->allocator;
  router->times = (vyre__times){.context = context,
                                .allocator = context->allocator,
                                .file = VYRE__TIMES_OF_ROUTERS};
  router->id = UINT64_C(1) << 63 | (atomic_fetch_add(&last_id, 1) + 1);
  atomic_init(&router->references, 1);
  pthread_mutex_init(&router->lock, NULL);
  vyre_code code = init(router, options, st);
  if (code != VYRE_OK) {
    vyre_router_release(router);
    return code;
  }
  *out = router;
  return VYRE_OK;
}

vyre_router *vyre__router_retain(vyre_router *router) {
  atomic_fetch_add(&router->references, 1);
  return router;
}

void vyre_router_release(vyre_router *router) {
  if (!router || atomic_fetch_sub(&router->references, 1) != 1) return;
  (void)save_times(router, NULL);
  vyre__route_buffers_deinit(router);
  vyre__times_deinit(&router->times);
  for (uint32_t i = 0; i < router->device_count; i++) {
    vyre_device_release(atomic_load(&router->devices[i].device));
  }
  if (router->shadow_folder) {
    vyre__resize(router->allocator, router->shadow_folder,
                 strlen(router->shadow_folder) + 1, 0);
  }
  pthread_mutex_destroy(&router->lock);
  vyre_context *context = router->context;
  vyre__resize(router->allocator, router, sizeof *router, 0);
  vyre_context_release(context);
}
