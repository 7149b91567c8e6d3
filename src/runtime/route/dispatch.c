/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One routed dispatch: selects a device, runs it there, and on request runs it
 * again on another device. */
#include "base/attributes.h"
#include "runtime/dispatch/bind.h"
#include "runtime/route/router_internal.h"

/* A dispatch while it is routed. */
typedef struct routed {
  vyre_route *route;
  const vyre_dispatch_desc *desc;
  route_bindings bindings;
  route_class *of; /* NULL: times are not used */
  uint32_t index;  /* selected candidate */
  vyre_route_reason reason;
  bool is_measured;
  route_snapshot snapshot;
  bool is_gone;      /* the device could not be opened or compiled for again */
  bool has_snapshot; /* of memory that the dispatch updates in place */
  uint32_t torn;     /* router buffer without a copy of its contents before the
                        dispatch, or ROUTE_NONE */
} routed;

/* --- selecting -------------------------------------------------------------*/

static uint32_t device_of(const vyre_router *router, uint64_t owner) {
  for (uint32_t i = 0; i < router->device_count; i++) {
    if (atomic_load(&router->devices[i].id) == owner) return i;
  }
  return ROUTE_NONE;
}

static void select_by_time(routed *r) {
  r->reason = VYRE_ROUTE_BY_TIME;
  r->index = atomic_load_explicit(&r->of->choice, memory_order_relaxed);
  uint32_t left = atomic_load_explicit(&r->of->countdown, memory_order_relaxed);
  if (left > 0 && r->index != ROUTE_NONE) {
    atomic_store_explicit(&r->of->countdown, left - 1, memory_order_relaxed);
    if (r->bindings.has_router_buffers) {
      r->index = vyre__route_fastest(r->route, r->of, r->desc);
    }
    return;
  }
  /* One thread measures; the others use what is known. */
  if (atomic_flag_test_and_set(&r->of->is_measuring)) {
    r->index = vyre__route_fastest(r->route, r->of, r->desc);
    return;
  }
  bool is_exploring;
  r->is_measured = true;
  r->index = vyre__route_explore(r->route, r->of, r->desc, &r->bindings,
                                 &is_exploring);
  if (is_exploring) r->reason = VYRE_ROUTE_TO_MEASURE;
}

static vyre_code select_device(routed *r, vyre_status *st) {
  vyre_route *route = r->route;
  r->index = route->first;
  if (r->bindings.owner) {
    r->index = device_of(route->router, r->bindings.owner);
    r->reason = VYRE_ROUTE_BY_BUFFER;
    if (r->index != ROUTE_NONE) return VYRE_OK;
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_FOREIGN_HANDLE, NULL,
        VYRE_NUMBERS({"owner", r->bindings.owner}),
        "use buffers of vyre_router_buffer_create, or of a device from "
        "vyre_router_device_at",
        "a buffer of the dispatch belongs to device %llu, which is not a "
        "device of this router",
        (unsigned long long)r->bindings.owner);
  }
  if (route->only != ROUTE_NONE) {
    r->reason = VYRE_ROUTE_ONLY_ONE;
  } else if (route->router->policy == VYRE_ROUTE_FASTEST) {
    r->of = vyre__route_class_of(route, &r->bindings, r->desc);
    r->reason = VYRE_ROUTE_BY_ABILITY;
    if (r->of) select_by_time(r);
  } else {
    r->reason = route->router->policy == VYRE_ROUTE_FIXED
                    ? VYRE_ROUTE_BY_ORDER
                    : VYRE_ROUTE_BY_ABILITY;
  }
  return VYRE_OK;
}

/* --- running ---------------------------------------------------------------*/

/* Runs the dispatch with buffers of the router. */
VYRE__NOINLINE
static vyre_code run_bound(routed *r, uint32_t index,
                           const vyre_dispatch_desc *desc,
                           vyre_pipeline *pipeline, vyre_status *st) {
  route_bound bound;
  vyre_router *router = r->route->router;
  VYRE_TRY(vyre__route_bind(router, vyre_pipeline_bindings(pipeline), desc,
                            index, &bound, st));
  if (router->fails_over && router->snapshots_in_place) {
    VYRE_TRY(vyre__route_bound_keep(router, &bound, index, st));
  }
  vyre_code code = vyre_dispatch(pipeline, &bound.desc, vyre__status_open(st));
  if (code == VYRE_OK) {
    vyre__route_bound_done(router, &bound, index);
  } else {
    r->torn = vyre__route_bound_failed(router, &bound, index);
  }
  return code;
}

static vyre_code run_on(routed *r, uint32_t index,
                        const vyre_dispatch_desc *desc, vyre_status *st) {
  vyre_pipeline *pipeline;
  vyre_code code = vyre__route_pipeline(r->route, index, &pipeline, st);
  if (code != VYRE_OK) {
    r->is_gone = atomic_load(&r->route->candidates[index].pipeline) != NULL;
    return code;
  }
  if (r->bindings.has_router_buffers) {
    return run_bound(r, index, desc, pipeline, st);
  }
  return vyre_dispatch(pipeline, desc, vyre__status_open(st));
}

static vyre_code run_measured(routed *r, vyre_status *st) {
  uint64_t start = vyre__clock_ns();
  vyre_code code = run_on(r, r->index, r->desc, st);
  uint64_t ns = vyre__clock_ns() - start;
  if (code != VYRE_OK) return code;
  vyre__route_measured(r->route, r->of, r->index, ns);
  if (r->reason == VYRE_ROUTE_TO_MEASURE)
    vyre__route_spent(r->route, r->of, ns);
  return VYRE_OK;
}

/* --- failover --------------------------------------------------------------*/

/* Returns true if a dispatch that failed with @p code may succeed on another
 * device. */
static bool is_device_failure(const routed *r, uint32_t index, vyre_code code) {
  vyre_router *router = r->route->router;
  if (code == VYRE_OK) return false;
  if (r->is_gone || code == VYRE_DEVICE_OUT_OF_MEMORY ||
      code == VYRE_OUT_OF_MEMORY) {
    return true;
  }
  pthread_mutex_lock(&router->lock);
  bool is_lost =
      vyre_device_is_lost(atomic_load(&router->devices[index].device));
  pthread_mutex_unlock(&router->lock);
  return is_lost || code == VYRE_DEVICE_LOST;
}

static bool is_buffer(const routed *r, vyre_buffer buffer, uint32_t torn) {
  if (torn == ROUTE_NONE) return buffer.owner == r->bindings.owner;
  return route_owns(buffer) && (uint32_t)buffer.id == torn;
}

/* Returns the name of a binding with a buffer of the device, or with router
 * buffer @p torn. */
static const char *buffer_name(const routed *r, uint32_t torn) {
  const vyre_dispatch_desc *d = r->desc;
  const vyre_binding_plan *plan = vyre__route_plan(r->route);
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if ((b->input_index < d->input_count &&
         is_buffer(r, d->inputs[b->input_index].buffer, torn)) ||
        (b->output_index < d->output_count &&
         is_buffer(r, d->outputs[b->output_index].buffer, torn))) {
      return b->name;
    }
  }
  return "?";
}

/* Fails with @p st, which describes the failure of the device, and the reason
 * why the dispatch does not run again. */
static vyre_code check_repeatable(const routed *r, vyre_code code,
                                  vyre_status *st) {
  const char *device = r->route->router->devices[r->index].name, *name = NULL;
  if (r->bindings.owner) {
    vyre__status_begin(st);
    return VYRE_FAIL_WITH(
        st, code, VYRE_KIND_DEVICE_LOST, NULL,
        VYRE_NUMBERS({"owner", r->bindings.owner}),
        "use buffers of vyre_router_buffer_create, which live on every device",
        "the device '%.48s' failed, and '%.60s' is a buffer of that device: "
        "the dispatch was not run again",
        device, buffer_name(r, ROUTE_NONE));
  }
  if (!r->has_snapshot) name = vyre__route_in_place(r->route, r->desc);
  if (!name && r->torn != ROUTE_NONE) name = buffer_name(r, r->torn);
  if (!name) return VYRE_OK;
  vyre__status_begin(st);
  return VYRE_FAIL(
      st, code, VYRE_KIND_DEVICE_LOST,
      "set snapshots_in_place, or use other memory for the output",
      "the device '%.48s' failed while it updated '%.60s' in place: "
      "the dispatch was not run again",
      device, name);
}

/* Runs the dispatch on the other devices, in order, until one succeeds. */
VYRE__NOINLINE
static vyre_code fail_over(routed *r, vyre_code code, vyre_route_report *report,
                           vyre_status *st) {
  vyre_router *router = r->route->router;
  uint32_t failed = r->index;
  report->failed_device = router->devices[failed].name;
  report->failed_code = code;
  report->failed_attempts = 1;
  VYRE_TRY(check_repeatable(r, code, st));
  vyre__route_buffers_lost(router, failed);
  vyre_dispatch_desc again = *r->desc;
  if (r->has_snapshot) again.inputs = r->snapshot.inputs;
  for (uint32_t i = 0; i < router->device_count; i++) {
    if (i == failed || !atomic_load(&r->route->candidates[i].pipeline)) {
      continue;
    }
    vyre__status_begin(st);
    VYRE_TRY(vyre__route_buffers_check(router, r->route, &again, st));
    r->torn = ROUTE_NONE;
    r->is_gone = false;
    code = run_on(r, i, &again, st);
    if (!is_device_failure(r, i, code)) {
      r->index = i;
      r->reason = VYRE_ROUTE_FAILED_OVER;
      return code;
    }
    report->failed_attempts++;
    r->index = i;
    VYRE_TRY(check_repeatable(r, code, st));
    vyre__route_buffers_lost(router, i);
  }
  return code;
}

/* --- the dispatch ----------------------------------------------------------*/

static bool is_shadowed(vyre_router *router) {
  uint32_t share = router->shadow_permille;
  if (share == 0) return false;
  uint32_t n = atomic_fetch_add(&router->shadow_count, 1) % 1000;
  return n * share / 1000 != (n + 1) * share / 1000;
}

/* Copies memory that a second run needs: for failover what is updated in place
 * in host memory, for a shadow run also the buffers. */
static vyre_code take_snapshot(routed *r, bool *has_shadow, vyre_status *st) {
  const vyre_router *router = r->route->router;
  bool is_needed = router->fails_over && router->snapshots_in_place &&
                   !r->bindings.owner &&
                   vyre__route_in_place(r->route, r->desc) != NULL;
  if (!is_needed && !*has_shadow) return VYRE_OK;
  vyre_code code =
      vyre__route_snapshot(r->route, r->desc, *has_shadow, &r->snapshot, st);
  r->has_snapshot = code == VYRE_OK && r->snapshot.inputs;
  if (code == VYRE_OK || is_needed) return code;
  *has_shadow = false; /* a dispatch does not fail because of its shadow */
  vyre__status_begin(st);
  return VYRE_OK;
}

/* Makes the snapshot refer to the buffers again that it was copied from: a
 * repeated dispatch must update these. */
static void restore_buffers(routed *r) {
  for (size_t i = 0; r->has_snapshot && i < r->desc->input_count; i++) {
    if (r->desc->inputs[i].buffer.owner) {
      r->snapshot.inputs[i] = r->desc->inputs[i];
    }
  }
}

/* Runs a dispatch that may fail over or has a shadow run. */
VYRE__NOINLINE
static vyre_code run_guarded(routed *r, bool has_shadow,
                             vyre_route_report *report, vyre_status *st) {
  vyre_route *route = r->route;
  bool fails_over = route->router->fails_over;
  if (fails_over) atomic_fetch_add(&route->running, 1);
  has_shadow = has_shadow && r->bindings.can_repeat;
  vyre_code code = take_snapshot(r, &has_shadow, st);
  if (code == VYRE_OK) {
    code =
        r->is_measured ? run_measured(r, st) : run_on(r, r->index, r->desc, st);
    if (fails_over && is_device_failure(r, r->index, code)) {
      restore_buffers(r);
      has_shadow = false;
      code = fail_over(r, code, report, st);
    }
  }
  if (code == VYRE_OK && has_shadow) {
    code =
        vyre__route_shadow(route, r->index, r->desc, &r->snapshot, report, st);
  }
  vyre__route_snapshot_deinit(&r->snapshot);
  if (fails_over && atomic_fetch_sub(&route->running, 1) == 1 &&
      report->failed_attempts > 0) {
    vyre__route_free_replaced(route);
  }
  return code;
}

vyre_code vyre_route_dispatch(vyre_route *route, const vyre_dispatch_desc *desc,
                              vyre_route_report *report, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE_BOTH(st, route, desc);
  if (desc->resources || desc->output_buffers) {
    return VYRE_FAIL(
        st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
        "set inputs and outputs, or dispatch the pipeline of one device",
        "a routed dispatch sets %s",
        desc->resources ? "resources" : "output_buffers");
  }
  vyre_route_report unused, *to = report ? report : &unused;
  VYRE_REQUIRE_ARRAY(st, desc->inputs, desc->input_count);
  VYRE_REQUIRE_ARRAY(st, desc->outputs, desc->output_count);
  if (!route_counts_fit(route, desc)) {
    return vyre__check_counts(vyre__route_plan(route), desc, st);
  }
  routed r; /* zeroing all of it would take a third of the time */
  r.route = route;
  r.desc = desc;
  r.bindings = vyre__route_summarize(route, desc);
  r.of = NULL;
  r.is_measured = r.is_gone = r.has_snapshot = false;
  r.snapshot.inputs = NULL;
  r.torn = ROUTE_NONE;
  VYRE_TRY(select_device(&r, st));
  bool has_shadow = is_shadowed(route->router);
  vyre_code code;
  if (has_shadow || route->router->fails_over) {
    *to = (vyre_route_report){0};
    code = run_guarded(&r, has_shadow, to, st);
  } else {
    if (report) *report = (vyre_route_report){0};
    code = r.is_measured ? run_measured(&r, st) : run_on(&r, r.index, desc, st);
  }
  if (r.is_measured) atomic_flag_clear(&r.of->is_measuring);
  if (report) {
    report->device = route->router->devices[r.index].name;
    report->reason = r.reason;
  }
  return code;
}
