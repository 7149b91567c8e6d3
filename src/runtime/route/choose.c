/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measures dispatches, and chooses the fastest device.
 *
 * For each size class of a route:
 *
 *   1. The first candidate runs the first dispatch, which is timed.
 *   2. Every other candidate is tried once: it runs the same dispatch with
 *      outputs of its own, and is stopped after TRIAL times the best time. A
 *      candidate that does not finish is tried once more, and is then hopeless.
 *      One whose launch alone takes longer than the whole dispatch is not
 *      tried.
 *   3. Candidates within CLOSE times the best run whole dispatches until each
 *      has ROUTE_SAMPLES times.
 *   4. The candidate with the lowest median is the choice. One dispatch of
 *      INTERVAL is timed, and one timed dispatch of RETRY goes to the next best
 *      candidate, so that the choice follows the machine.
 *
 * Trials take at most TRIAL times the best time each, so that the search costs
 * at most a few per cent of 1000 dispatches. */
#include <stdlib.h>
#include <string.h>

#include "vyre/module.h"

#include "runtime/route/router_internal.h"

enum {
  TRIAL = 4,
  CLOSE_PERCENT = 200, /* of the best time */
  INTERVAL = 64,
  RETRY = 32,
  MIN_TRIAL_NS = 20000,
  LATENCY_RUNS = 5,
};

/* --- sizes -----------------------------------------------------------------*/

static void look_at(route_bindings *out, vyre_buffer buffer, size_t size) {
  out->bytes += size;
  if (buffer.owner == 0) return;
  if (route_owns(buffer)) {
    out->has_router_buffers = true;
  } else {
    out->owner = buffer.owner;
  }
  out->can_try = false;
}

static bool overlaps(const vyre_input *in, const vyre_output *out) {
  if (in->buffer.owner || out->buffer.owner) {
    return in->buffer.owner == out->buffer.owner &&
           in->buffer.id == out->buffer.id;
  }
  const char *a = in->data, *b = out->data;
  if (out->host_buffer) b = out->host_buffer->data;
  return a && b && a < b + out->size + (out->size == 0) &&
         b < a + in->size + (in->size == 0);
}

route_bindings vyre__route_summarize(const vyre_route *route,
                                     const vyre_dispatch_desc *desc) {
  (void)route;
  route_bindings out = {.can_try = !desc->print.write && !desc->check.races &&
                                   !desc->check.out_of_bounds &&
                                   desc->check.schedules == 0 &&
                                   desc->repeat_count <= 1};
  for (size_t i = 0; i < desc->input_count; i++) {
    look_at(&out, desc->inputs[i].buffer, desc->inputs[i].size);
  }
  for (size_t i = 0; i < desc->output_count; i++) {
    const vyre_output *o = &desc->outputs[i];
    look_at(&out, o->buffer, o->size);
    if (o->new_buffer) out.can_try = false;
    for (size_t k = 0; k < desc->input_count && !out.has_in_place; k++) {
      out.has_in_place = overlaps(&desc->inputs[k], o);
    }
  }
  return out;
}

uint32_t vyre__route_size_class(const route_bindings *bindings,
                                const vyre_dispatch_desc *desc) {
  return vyre__size_class(bindings->bytes, desc->grid);
}

/* Returns the lowest time of all candidates, or 0. */
static uint64_t best_time(const vyre_route *route, const route_class *of) {
  uint64_t best = 0;
  for (uint32_t i = 0; i < route->router->device_count; i++) {
    uint64_t ns =
        atomic_load_explicit(&of->estimates[i].time_ns, memory_order_relaxed);
    if (ns && (best == 0 || ns < best)) best = ns;
  }
  return best;
}

/* Separates candidates that may be the fastest from the others. */
static void classify(const vyre_route *route, route_class *of) {
  uint64_t best = best_time(route, of);
  for (uint32_t i = 0; i < route->router->device_count; i++) {
    route_estimate *e = &of->estimates[i];
    uint64_t ns = atomic_load(&e->time_ns);
    if (ns == 0) continue;
    e->state = ns * 100 <= best * CLOSE_PERCENT ? ROUTE_CLOSE : ROUTE_SLOWER;
  }
}

/* Takes over the stored times. */
static void read_stored(vyre_route *route, route_class *of) {
  vyre_router *router = route->router;
  pthread_mutex_lock(&router->lock);
  for (uint32_t i = 0; i < router->device_count; i++) {
    const vyre__time *time =
        vyre__route_time(router, route->fingerprint, i, of->size_class);
    if (!time) continue;
    route_estimate *e = &of->estimates[i];
    e->state = time->samples == 0 ? ROUTE_HOPELESS : ROUTE_CLOSE;
    e->samples = time->samples;
    atomic_init(&e->time_ns, time->time_ns);
    for (int k = 0; k < ROUTE_SAMPLES; k++) e->recent[k] = time->time_ns;
  }
  classify(route, of);
  pthread_mutex_unlock(&router->lock);
}

static route_class *make_class(vyre_route *route, uint32_t size_class) {
  route_class *of =
      vyre__alloc_zeroed(route->router->allocator, sizeof(route_class));
  if (!of) return NULL;
  of->size_class = size_class;
  atomic_init(&of->choice, ROUTE_NONE);
  atomic_flag_clear(&of->is_measuring);
  read_stored(route, of);
  return of;
}

route_class *vyre__route_class_of(vyre_route *route, uint32_t size_class) {
  uint32_t start = (size_class ^ size_class >> 8) % ROUTE_CLASSES;
  for (uint32_t i = 0; i < ROUTE_CLASSES; i++) {
    _Atomic(route_class *) *place =
        &route->classes[(start + i) % ROUTE_CLASSES];
    route_class *of = atomic_load_explicit(place, memory_order_acquire);
    if (!of) {
      route_class *made = make_class(route, size_class);
      if (!made) return NULL;
      if (atomic_compare_exchange_strong(place, &of, made)) return made;
      vyre__resize(route->router->allocator, made, sizeof *made, 0);
    }
    if (of->size_class == size_class) return of;
  }
  return atomic_load(&route->classes[start]); /* all are in use: share one */
}

/* --- estimates -------------------------------------------------------------*/

static int compare_times(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static uint64_t median_of(const route_estimate *e) {
  uint64_t sorted[ROUTE_SAMPLES];
  size_t count = e->samples < ROUTE_SAMPLES ? e->samples : ROUTE_SAMPLES;
  memcpy(sorted, e->recent, sizeof sorted);
  qsort(sorted, count, sizeof *sorted, compare_times);
  return count ? sorted[count / 2] : 0;
}

void vyre__route_measured(vyre_route *route, route_class *of, uint32_t index,
                          uint64_t ns) {
  route_estimate *e = &of->estimates[index];
  e->recent[e->samples % ROUTE_SAMPLES] = ns + (ns == 0);
  e->samples++;
  atomic_store(&e->time_ns, median_of(e));
  classify(route, of);
  if (e->samples % ROUTE_SAMPLES != 0) return;
  pthread_mutex_lock(&route->router->lock);
  vyre__route_time_add(route->router, route->fingerprint, index, of->size_class,
                       e->samples, atomic_load(&e->time_ns));
  pthread_mutex_unlock(&route->router->lock);
}

uint32_t vyre__route_fastest(vyre_route *route, const route_class *of,
                             const vyre_dispatch_desc *desc) {
  vyre_router *router = route->router;
  uint32_t best = route->first;
  double lowest = 0;
  bool is_known = false;
  for (uint32_t i = 0; i < router->device_count; i++) {
    double ns = (double)atomic_load(&of->estimates[i].time_ns);
    if (ns <= 0 || !atomic_load(&route->candidates[i].pipeline)) continue;
    ns += (double)vyre__route_missing_bytes(router, desc, i) *
          (double)atomic_load(&router->devices[i].transfer_ps) * 1e-3;
    if (is_known && ns >= lowest) continue;
    is_known = true;
    lowest = ns;
    best = i;
  }
  return best;
}

/* --- exploring -------------------------------------------------------------*/

/* Tries a candidate for the first time. A candidate that fails is tried once
 * more, with twice the time: another process may have interrupted it. */
static void try_candidate(vyre_route *route, route_class *of, uint32_t index,
                          const vyre_dispatch_desc *desc, uint64_t best) {
  route_estimate *e = &of->estimates[index];
  uint64_t latency = route->router->devices[index].latency_ns, ns = 0;
  bool is_second = e->failed_trials > 0;
  uint64_t max = best * TRIAL * (1 + is_second);
  if (max < MIN_TRIAL_NS) max = MIN_TRIAL_NS;
  if (latency > best * TRIAL / 2) {
    e->state = ROUTE_HOPELESS;
    return;
  }
  /* The first run includes work that later ones do not repeat, such as the
   * allocation of device memory. */
  for (int run = 0; run < 2; run++) {
    vyre__bytes outputs = {.allocator = route->router->allocator};
    vyre_code code =
        vyre__route_try(route, index, desc, max, &outputs, &ns, NULL);
    vyre__bytes_deinit(&outputs);
    if (code == VYRE_OK) continue;
    e->failed_trials++;
    if (is_second) e->state = ROUTE_HOPELESS;
    return;
  }
  e->state = ROUTE_CLOSE;
  vyre__route_measured(route, of, index, ns);
}

uint32_t vyre__route_explore(vyre_route *route, route_class *of,
                             const vyre_dispatch_desc *desc,
                             const route_bindings *bindings,
                             bool *is_exploring) {
  uint32_t count = route->router->device_count;
  uint64_t best = best_time(route, of);
  *is_exploring = true;
  if (best == 0) return route->first;
  for (uint32_t i = 0; i < count && bindings->can_try; i++) {
    if (of->estimates[i].state == ROUTE_UNTRIED &&
        atomic_load(&route->candidates[i].pipeline)) {
      try_candidate(route, of, i, desc, best);
    }
  }
  uint32_t fastest = vyre__route_fastest(route, of, desc), next = ROUTE_NONE;
  for (uint32_t i = 0; i < count; i++) {
    const route_estimate *e = &of->estimates[i];
    bool is_new = e->state == ROUTE_UNTRIED && !bindings->can_try &&
                  atomic_load(&route->candidates[i].pipeline);
    if (is_new || (e->state == ROUTE_CLOSE && e->samples < ROUTE_SAMPLES)) {
      return i;
    }
    if (i == fastest || e->state != ROUTE_CLOSE) continue;
    if (next == ROUTE_NONE ||
        atomic_load(&e->time_ns) < atomic_load(&of->estimates[next].time_ns)) {
      next = i;
    }
  }
  of->turns++;
  *is_exploring = false;
  atomic_store(&of->choice, fastest);
  atomic_store(&of->countdown, INTERVAL);
  if (next == ROUTE_NONE || of->turns % RETRY != 0) return fastest;
  *is_exploring = true;
  return next;
}

/* --- latency ---------------------------------------------------------------*/

static const char latency_text[] =
    "kernel vyre_latency workgroup(64)\n"
    "buffer y : write u32[64] @0;\n"
    "{ y[global_id.x] = global_id.x; }\n";

/* Measures the shortest of a few dispatches on one device. */
static uint64_t latency_on(vyre_device *device, vyre_program *program) {
  vyre_pipeline *pipeline;
  uint32_t y[64];
  vyre_output output = vyre_output_bytes(y, sizeof y);
  vyre_dispatch_desc desc = {
      .outputs = &output, .output_count = 1, .grid = {1, 1, 1}};
  uint64_t best = 0;
  if (vyre_pipeline_compile(device, program, NULL, &pipeline, NULL, NULL) !=
      VYRE_OK) {
    return 0;
  }
  for (int i = 0; i < LATENCY_RUNS; i++) {
    uint64_t start = vyre__clock_ns();
    if (vyre_dispatch(pipeline, &desc, NULL) != VYRE_OK) break;
    uint64_t ns = vyre__clock_ns() - start;
    if (best == 0 || ns < best) best = ns;
  }
  vyre_pipeline_release(pipeline);
  return best;
}

void vyre__router_measure_latency(vyre_router *router) {
  vyre_module *module;
  if (vyre_module_parse(latency_text, sizeof latency_text - 1, "latency.vyre",
                        router->allocator, &module, NULL, NULL) != VYRE_OK) {
    return;
  }
  vyre_program *program = vyre_module_kernel(module, 0);
  vyre_hash128 key = vyre_program_fingerprint(program);
  for (uint32_t i = 0; i < router->device_count; i++) {
    route_device *device = &router->devices[i];
    const vyre__time *stored = vyre__route_time(router, key, i, 0);
    device->latency_ns =
        stored ? stored->time_ns
               : latency_on(atomic_load(&device->device), program);
    if (!stored && device->latency_ns) {
      vyre__route_time_add(router, key, i, 0, LATENCY_RUNS, device->latency_ns);
    }
  }
  vyre_module_release(module);
}
