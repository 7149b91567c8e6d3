/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measures dispatches, and chooses the fastest device.
 *
 * For each size class of a route:
 *
 *   1. The first candidate runs the first dispatches, which are timed.
 *   2. Every other candidate is tried once: it runs the same dispatch with
 *      outputs of its own, and is stopped after TRIAL times the best time. A
 *      candidate that does not finish is tried once more, and is then hopeless.
 *      One whose launch alone takes far longer than the whole dispatch is not
 *      tried.
 *   3. Candidates within CLOSE times the best run whole dispatches until each
 *      has ROUTE_SAMPLES times.
 *   4. The candidate with the lowest median is the choice. One dispatch of
 *      INTERVAL is timed, and one timed dispatch of RETRY goes to the next best
 *      candidate, so that the choice follows the machine.
 *
 * Trials, and what measured dispatches take longer than the best candidate
 * would, are counted. They stop at 5 % of the time of the dispatches so far,
 * rounded up to whole thousands, and go on later. A candidate that is hopeless
 * or clearly slower is tried again after AGAIN dispatches, and then after four
 * times as many each, in case the machine was busy. */
#include <stdlib.h>
#include <string.h>

#include "vyre/module.h"

#include "runtime/route/router_internal.h"

enum {
  TRIAL = 4,
  CLOSE_PERCENT = 200, /* of the best time */
  INTERVAL = 64,
  RETRY = 32,
  AGAIN = 64, /* dispatches until a slow candidate is tried again */
  MAX_RETRIES = 5,
  MIN_TRIAL_NS = 20000,
  LATENCY_RUNS = 5,
  WARM_SAMPLES = 3, /* of the first candidate: a first dispatch is slow */
};

/* --- sizes -----------------------------------------------------------------*/

static void look_at(vyre_router *router, route_bindings *out,
                    vyre_buffer buffer, uint64_t size) {
  if (buffer.owner == 0) {
    out->bytes += size;
    return;
  }
  out->bytes += size ? size : vyre__route_buffer_size(router, buffer);
  if (route_owns(buffer)) {
    out->has_router_buffers = true;
  } else {
    out->owner = buffer.owner;
  }
}

route_bindings vyre__route_summarize(vyre_route *route,
                                     const vyre_dispatch_desc *desc) {
  route_bindings out = {
      .can_repeat = !desc->print.write && !desc->check.races &&
                    !desc->check.out_of_bounds && desc->check.schedules == 0 &&
                    desc->repeat_count <= 1};
  for (size_t i = 0; i < desc->input_count; i++) {
    look_at(route->router, &out, desc->inputs[i].buffer, desc->inputs[i].size);
  }
  for (size_t i = 0; i < desc->output_count; i++) {
    const vyre_output *o = &desc->outputs[i];
    look_at(route->router, &out, o->buffer, o->size);
  }
  return out;
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

/* Puts off the next trial of a candidate that is not close: each time four
 * times as long as before. */
static void try_later(const route_class *of, route_estimate *e) {
  e->retry_at = of->seen + ((uint64_t)AGAIN << 2 * e->retries);
  if (e->retries < MAX_RETRIES) e->retries++;
}

/* Returns the lowest of the last times. The median of a few may be that of
 * dispatches that were interrupted. */
static uint64_t lowest_time(const route_estimate *e) {
  uint32_t count = e->samples < ROUTE_SAMPLES ? e->samples : ROUTE_SAMPLES;
  uint64_t lowest = UINT64_MAX;
  for (uint32_t i = 0; i < count; i++) {
    if (e->recent[i] < lowest) lowest = e->recent[i];
  }
  return lowest;
}

/* Separates candidates that may be the fastest from the others. */
static void classify(const vyre_route *route, route_class *of) {
  uint64_t best = best_time(route, of);
  for (uint32_t i = 0; i < route->router->device_count; i++) {
    route_estimate *e = &of->estimates[i];
    if (atomic_load(&e->time_ns) == 0) continue;
    bool is_close = lowest_time(e) * 100 <= best * CLOSE_PERCENT;
    if (!is_close && e->state != ROUTE_SLOWER) try_later(of, e);
    e->state = is_close ? ROUTE_CLOSE : ROUTE_SLOWER;
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
    e->retry_at = 1000;
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
  of->step = 1;
  read_stored(route, of);
  return of;
}

route_class *vyre__route_class_find(vyre_route *route, uint32_t size_class) {
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
    if (of->size_class == size_class) {
      atomic_store_explicit(&route->recent, of, memory_order_release);
      return of;
    }
  }
  return atomic_load(&route->classes[start]); /* all are in use: share one */
}

/* --- estimates -------------------------------------------------------------*/

static int compare_times(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static uint64_t median_of(route_estimate *e) {
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

/* Returns the time that exploring may still take: 5 % of the dispatches so far,
 * rounded up to whole thousands. */
static uint64_t budget_left(const route_class *of, uint64_t best) {
  uint64_t total = (of->seen / 1000 + 1) * 1000 / 20 * best;
  return total > of->spent_ns ? total - of->spent_ns : 0;
}

bool vyre__route_may_spend(const route_class *of, uint64_t best, uint64_t ns) {
  return ns <= budget_left(of, best);
}

void vyre__route_spent(const vyre_route *route, route_class *of, uint64_t ns) {
  uint64_t best = best_time(route, of);
  of->spent_ns += ns > best ? ns - best : 0;
}

static void give_up(const route_class *of, route_estimate *e) {
  e->state = ROUTE_HOPELESS;
  try_later(of, e);
}

/* Runs a candidate twice: the first run includes work that later ones do not
 * repeat, such as the allocation of device memory. */
static vyre_code run_twice(vyre_route *route, uint32_t index,
                           const vyre_dispatch_desc *desc, uint64_t max,
                           uint64_t *ns) {
  vyre__bytes outputs = {.allocator = route->router->allocator};
  vyre_code code = VYRE_OK;
  for (int run = 0; run < 2 && code == VYRE_OK; run++) {
    code = vyre__route_try(route, index, desc, max, &outputs, ns, NULL);
  }
  vyre__bytes_deinit(&outputs);
  return code;
}

/* Tries a candidate. One that fails is tried once more, with twice the time:
 * another process may have interrupted it. Waits if the time is used up. */
static void try_candidate(vyre_route *route, route_class *of, uint32_t index,
                          const vyre_dispatch_desc *desc, uint64_t best) {
  route_estimate *e = &of->estimates[index];
  uint64_t latency = route->router->devices[index].latency_ns, ns = 0;
  bool is_second = e->failed_trials % 2 == 1;
  uint64_t max = best * TRIAL * (1 + is_second), left = budget_left(of, best);
  if (latency > best * TRIAL / 2) {
    e->failed_trials++;
    give_up(of, e);
    return;
  }
  if (max < MIN_TRIAL_NS) max = MIN_TRIAL_NS;
  if (max > left / 2) max = left / 2; /* for two runs */
  if (max < best || max < 2 * latency) return;
  uint64_t start = vyre__clock_ns();
  vyre_code code = run_twice(route, index, desc, max, &ns);
  of->spent_ns += vyre__clock_ns() - start;
  if (code == VYRE_OK) {
    if (e->state != ROUTE_UNTRIED) e->samples = 0; /* of a busy machine */
    e->state = ROUTE_CLOSE;
    vyre__route_measured(route, of, index, ns);
    return;
  }
  e->failed_trials++;
  if (is_second) give_up(of, e);
}

static void try_all(vyre_route *route, route_class *of,
                    const vyre_dispatch_desc *desc, uint64_t best) {
  for (uint32_t i = 0; i < route->router->device_count; i++) {
    route_estimate *e = &of->estimates[i];
    bool is_again = (e->state == ROUTE_HOPELESS || e->state == ROUTE_SLOWER) &&
                    of->seen >= e->retry_at;
    if ((e->state == ROUTE_UNTRIED || is_again) &&
        atomic_load(&route->candidates[i].pipeline)) {
      if (is_again) try_later(of, e);
      try_candidate(route, of, i, desc, best);
    }
  }
}

/* Returns a candidate that needs a measured dispatch, or ROUTE_NONE. Sets *next
 * to the best one besides @p fastest. */
static uint32_t find_unmeasured(vyre_route *route, const route_class *of,
                                const route_bindings *bindings,
                                uint32_t fastest, uint32_t *next) {
  *next = ROUTE_NONE;
  for (uint32_t i = 0; i < route->router->device_count; i++) {
    const route_estimate *e = &of->estimates[i];
    bool is_new = e->state == ROUTE_UNTRIED && !bindings->can_repeat &&
                  atomic_load(&route->candidates[i].pipeline);
    if (is_new || (e->state == ROUTE_CLOSE && e->samples < ROUTE_SAMPLES)) {
      return i;
    }
    if (i == fastest || e->state != ROUTE_CLOSE) continue;
    if (*next == ROUTE_NONE ||
        atomic_load(&e->time_ns) < atomic_load(&of->estimates[*next].time_ns)) {
      *next = i;
    }
  }
  return ROUTE_NONE;
}

/* Returns true if only the first candidate was measured, and only once or
 * twice. */
static bool is_warming_up(const vyre_route *route, const route_class *of) {
  for (uint32_t i = 0; i < route->router->device_count; i++) {
    if (i != route->first && of->estimates[i].samples > 0) return false;
  }
  return of->estimates[route->first].samples < WARM_SAMPLES;
}

uint32_t vyre__route_explore(vyre_route *route, route_class *of,
                             const vyre_dispatch_desc *desc,
                             const route_bindings *bindings,
                             bool *is_exploring) {
  uint64_t best = best_time(route, of);
  *is_exploring = true;
  of->seen += of->step;
  of->step = 1;
  if (best == 0 || is_warming_up(route, of)) return route->first;
  if (bindings->can_repeat) try_all(route, of, desc, best);
  uint32_t fastest = vyre__route_fastest(route, of, desc), next;
  uint32_t unmeasured = find_unmeasured(route, of, bindings, fastest, &next);
  bool may_spend = vyre__route_may_spend(of, best, best);
  if (unmeasured == fastest || (unmeasured != ROUTE_NONE && may_spend)) {
    return unmeasured;
  }
  of->turns++;
  *is_exploring = false;
  of->step = INTERVAL;
  atomic_store(&of->choice, fastest);
  atomic_store(&of->countdown, INTERVAL);
  if (next == ROUTE_NONE || of->turns % RETRY != 0 || !may_spend) {
    return fastest;
  }
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
