/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Routes: a program compiled for every device of a router. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "hal/launch.h"
#include "runtime/route/router_internal.h"

/* Hashes a program and the options that change its code. */
static vyre_hash128 hash_of(const vyre_program *program,
                            const vyre_compile_options *options) {
  vyre_hash128 fingerprint = vyre_program_fingerprint(program);
  vyre__hasher hasher;
  vyre__hash_begin(&hasher, "vyre route");
  vyre__hash_bytes(&hasher, &fingerprint, sizeof fingerprint);
  for (int i = 0; i < 3; i++) {
    vyre__hash_u32(&hasher, options ? options->workgroup[i] : 0);
  }
  vyre__hash_u8(&hasher, options ? options->ulp_budget : 0);
  return vyre__hash_end(&hasher);
}

static vyre_code compile_on(vyre_route *route, uint32_t index,
                            vyre_pipeline **out, vyre_diagnostics *diagnostics,
                            vyre_status *st) {
  vyre_device *device;
  *out = NULL;
  VYRE_TRY(vyre__router_device(route->router, index, &device, st));
  vyre_code code = vyre_pipeline_compile(
      device, route->program, route->has_options ? &route->options : NULL, out,
      diagnostics, vyre__status_open(st));
  vyre_device_release(device);
  return code;
}

/* Compiles for all devices. Keeps the first failure in @p st, and returns it if
 * no device can run the program. */
static vyre_code compile_all(vyre_route *route, vyre_diagnostics *diagnostics,
                             vyre_status *st) {
  vyre_router *router = route->router;
  vyre_status first = {0}, one;
  uint32_t count = 0;
  for (uint32_t i = 0; i < router->device_count; i++) {
    route_candidate *c = &route->candidates[i];
    vyre_pipeline *pipeline;
    one = (vyre_status){0};
    vyre_code code = compile_on(route, i, &pipeline, diagnostics, &one);
    diagnostics = NULL; /* those of the first device */
    atomic_init(&c->generation, atomic_load(&router->devices[i].generation));
    atomic_init(&c->pipeline, pipeline);
    if (code == VYRE_OK) {
      if (count++ == 0) route->first = i;
      continue;
    }
    (void)snprintf(c->why, sizeof c->why, "%s Fix: %s", one.message, one.fix);
    if (first.code == VYRE_OK) first = one;
    if (code == VYRE_INVALID_PROGRAM ||
        (router->policy == VYRE_ROUTE_FIXED && i == 0)) {
      count = 0;
      break;
    }
  }
  route->only = count == 1 ? route->first : ROUTE_NONE;
  if (count > 0) return VYRE_OK;
  if (st) *st = first;
  return first.code;
}

vyre_code vyre_router_compile(vyre_router *router, vyre_program *program,
                              const vyre_compile_options *options,
                              vyre_route **out, vyre_diagnostics *diagnostics,
                              vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE_BOTH(st, router, program);
  if (options) VYRE_CHECK_RESERVED(st, __func__, options);
  vyre_route *route = vyre__alloc_zeroed(router->allocator, sizeof *route);
  if (!route) return vyre__no_memory(st, __func__, "routes", 1);
  route->router = vyre__router_retain(router);
  route->program = vyre_program_retain(program);
  route->has_options = options != NULL;
  if (options) route->options = *options;
  route->fingerprint = hash_of(program, options);
  pthread_mutex_init(&route->lock, NULL);
  vyre_code code = compile_all(route, diagnostics, st);
  if (code != VYRE_OK) {
    vyre_route_release(route);
    return code;
  }
  const vyre_binding_plan *plan = vyre__route_plan(route);
  route->input_count = plan->input_count;
  route->output_count = plan->output_count;
  *out = route;
  return VYRE_OK;
}

/* Stores the times of a route in its router. */
static void keep_times(vyre_route *route) {
  vyre_router *router = route->router;
  for (uint32_t c = 0; c < ROUTE_CLASSES; c++) {
    const route_class *of = atomic_load(&route->classes[c]);
    for (uint32_t i = 0; of && i < router->device_count; i++) {
      const route_estimate *e = &of->estimates[i];
      if (e->state == ROUTE_UNTRIED) continue;
      vyre__route_time_add(router, route->fingerprint, i, of->size_class,
                           e->state == ROUTE_HOPELESS ? 0 : e->samples,
                           atomic_load(&e->time_ns));
    }
  }
}

void vyre_route_release(vyre_route *route) {
  if (!route) return;
  vyre_router *router = route->router;
  if (router->policy == VYRE_ROUTE_FASTEST) keep_times(route);
  for (uint32_t i = 0; i < router->device_count; i++) {
    vyre_pipeline_release(atomic_load(&route->candidates[i].pipeline));
  }
  for (size_t i = 0; i < route->replaced_count; i++) {
    vyre_pipeline_release(route->replaced[i]);
  }
  vyre__reserve_free(router->allocator, &route->replaced,
                     &route->replaced_capacity, sizeof *route->replaced);
  for (uint32_t c = 0; c < ROUTE_CLASSES; c++) {
    route_class *of = atomic_load(&route->classes[c]);
    if (of) vyre__resize(router->allocator, of, sizeof *of, 0);
  }
  vyre_program_release(route->program);
  pthread_mutex_destroy(&route->lock);
  vyre__resize(router->allocator, route, sizeof *route, 0);
  vyre_router_release(router);
}

/* Compiles a candidate for the device that replaced a lost one. */
static vyre_code compile_again(vyre_route *route, uint32_t index,
                               vyre_status *st) {
  route_candidate *c = &route->candidates[index];
  vyre_pipeline *old = atomic_load(&c->pipeline), *new;
  if (!vyre__reserve(route->router->allocator, &route->replaced,
                     &route->replaced_capacity, route->replaced_count + 1,
                     sizeof *route->replaced, false)) {
    return vyre__no_memory(st, "vyre_route_dispatch", "pipelines",
                           route->replaced_count + 1);
  }
  VYRE_TRY(compile_on(route, index, &new, NULL, st));
  route->replaced[route->replaced_count++] = old;
  atomic_store(&c->pipeline, new);
  atomic_store(&c->generation,
               atomic_load(&route->router->devices[index].generation));
  return VYRE_OK;
}

/* Returns true if the pipeline of a candidate can run. The pipeline retains its
 * device, which another thread may be replacing. */
static bool is_current(route_candidate *c, route_device *device,
                       const vyre_pipeline *pipeline) {
  return !vyre_device_is_lost(pipeline->device) &&
         atomic_load_explicit(&c->generation, memory_order_relaxed) ==
             atomic_load_explicit(&device->generation, memory_order_relaxed);
}

void vyre__route_free_replaced(vyre_route *route) {
  pthread_mutex_lock(&route->lock);
  if (atomic_load(&route->running) == 0) {
    while (route->replaced_count > 0) {
      vyre_pipeline_release(route->replaced[--route->replaced_count]);
    }
  }
  pthread_mutex_unlock(&route->lock);
}

const vyre_binding_plan *vyre__route_plan(const vyre_route *route) {
  return vyre_pipeline_bindings(
      atomic_load(&route->candidates[route->first].pipeline));
}

vyre_code vyre__route_pipeline(vyre_route *route, uint32_t index,
                               vyre_pipeline **out, vyre_status *st) {
  route_candidate *c = &route->candidates[index];
  route_device *device = &route->router->devices[index];
  *out = atomic_load_explicit(&c->pipeline, memory_order_acquire);
  if (!*out) {
    return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "use a device for which vyre_route_candidate_at reports "
                     "can_run",
                     "the device '%.48s' cannot run this program: %.200s",
                     device->name, c->why);
  }
  if (is_current(c, device, *out)) return VYRE_OK;
  pthread_mutex_lock(&route->lock);
  vyre_code code = VYRE_OK;
  if (!is_current(c, device, atomic_load(&c->pipeline))) {
    code = compile_again(route, index, st);
  }
  *out = atomic_load(&c->pipeline);
  pthread_mutex_unlock(&route->lock);
  return code;
}

bool vyre_route_candidate_at(vyre_route *route, const vyre_dispatch_desc *desc,
                             size_t index, vyre_route_candidate *out) {
  if (!out) return false;
  *out = (vyre_route_candidate){.why = ""};
  if (!route || !desc || index >= route->router->device_count) return false;
  const route_candidate *c = &route->candidates[index];
  out->device = route->router->devices[index].name;
  out->can_run = atomic_load(&c->pipeline) != NULL;
  out->why = c->why;
  out->is_choice = index == route->first;
  if (route->router->policy != VYRE_ROUTE_FASTEST) return true;
  if (!route_counts_fit(route, desc)) return true;
  route_bindings bindings = vyre__route_summarize(route, desc);
  route_class *of = vyre__route_class_of(route, &bindings, desc);
  if (!of) return true;
  const route_estimate *e = &of->estimates[index];
  out->is_choice = index == vyre__route_fastest(route, of, desc);
  out->is_hopeless = e->state == ROUTE_HOPELESS;
  out->samples = e->samples;
  out->time_ns = atomic_load(&e->time_ns);
  return true;
}
