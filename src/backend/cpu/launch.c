/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs dispatches: binds the buffers, clears outputs, copies uniforms, and
 * hands the workgroups of each phase to the thread pool. Rare cases are kept
 * out of line, so that a warm dispatch of a small kernel takes well below a
 * microsecond. */
#include "backend/cpu/launch.h"

#include <string.h>
#include <xmmintrin.h>

#include "backend/cpu/cpu.h"
#include "base/attributes.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/sum.h"

/* --- floating-point state --------------------------------------------------*/

/* Kernels round to nearest and keep subnormals, whatever the thread has set.
 * The thread's state is restored afterwards. Compiled code uses SSE only, so
 * the slow access to the x87 state is not needed. */
enum { FLOAT_DEFAULT = 0x1f80, FLOAT_FLAGS = 0x3f };

static inline uint32_t float_enter(void) {
  uint32_t saved = _mm_getcsr();
  if ((saved & ~(uint32_t)FLOAT_FLAGS) != FLOAT_DEFAULT) {
    _mm_setcsr(FLOAT_DEFAULT);
  }
  return saved;
}

static inline void float_leave(uint32_t saved) {
  if (_mm_getcsr() != saved) _mm_setcsr(saved);
}

/* --- launch ----------------------------------------------------------------*/

/* Result of a job in addition to those of vyre__spmd_result. */
enum { NO_MEMORY = 100 };

/* Returns the code to run next. Optimised code may replace baseline code
 * between any two calls, because both give the same results and share nothing
 * but the buffers of the launch: its scratch memory has arbitrary contents
 * before each call, and the layout of the spill buffer is that of the LIR. */
static inline const cpu_code *code_of(const cpu_launch *l) {
  return atomic_load_explicit(&l->pipeline->code, memory_order_acquire);
}

static inline vyre__spmd_phase *phase_of(const cpu_launch *l,
                                         const cpu_code *code) {
  vyre__spmd_phase *phase;
  memcpy(&phase, &code->object.phases[l->phase], sizeof phase);
  return phase;
}

/* Returns the scratch memory of a thread number, aligned to 64 bytes, or NULL
 * without memory. */
static void *scratch_memory(const cpu_launch *l, const cpu_code *code,
                            uint32_t number) {
  cpu_thread_scratch *scratch = &l->device->thread_scratch[number];
  size_t need = (size_t)code->scratch_bytes + 63;
  if (scratch->size < need) {
    vyre_allocator allocator = l->device->base.allocator;
    vyre__resize(allocator, scratch->memory, scratch->size, 0);
    scratch->memory = vyre__resize(allocator, NULL, 0, need);
    scratch->size = scratch->memory ? need : 0;
    if (!scratch->memory) return NULL;
  }
  return (void *)(((uintptr_t)scratch->memory + 63) & ~(uintptr_t)63);
}

static inline bool is_stopped(const cpu_launch *l) {
  return atomic_load_explicit(l->block->stop, memory_order_relaxed) != 0;
}

/* Runs workgroups of the current phase. */
static inline uint32_t call_phase(const cpu_launch *l, const cpu_code *code,
                                  uint64_t first, uint64_t count,
                                  uint32_t number) {
  void *scratch = NULL;
  if (code->scratch_bytes > 0) {
    scratch = scratch_memory(l, code, number);
    if (!scratch) return NO_MEMORY;
  }
  uint32_t saved = float_enter();
  uint32_t result = phase_of(l, code)(l->block, first, count, scratch);
  float_leave(saved);
  return result;
}

/* Workgroups of a chunk: `size`, sized by time if `ns` is set, but at most
 * `max`. */
typedef struct chunk_size {
  uint64_t size, max, ns, start;
} chunk_size;

static chunk_size begin_chunks(const cpu_launch *l, bool is_baseline) {
  enum {
    CHUNKS = 1024,
    FIRST_CHUNK = 16,
    CHUNK_NS = 1000000,           /* between checks of the deadline */
    REPLACEABLE_NS = CHUNK_NS / 4 /* between looks for optimised code */
  };
  chunk_size c = {.size = UINT64_MAX, .max = UINT64_MAX};
  if (l->launch->progress) c.max = l->groups / CHUNKS + 1;
  if (l->launch->deadline_ns) c.ns = CHUNK_NS;
  if (is_baseline) c.ns = REPLACEABLE_NS;
  if (c.ns == 0) return c;
  c.size = FIRST_CHUNK;
  c.start = vyre__clock_ns();
  return c;
}

static void adapt_size(chunk_size *c, uint64_t left) {
  if (c->ns == 0 || left == 0) return;
  uint64_t now = vyre__clock_ns();
  if (now - c->start < c->ns && c->size < left) c->size *= 2;
  if (now - c->start > 2 * c->ns && c->size > 1) c->size /= 2;
  c->start = now;
}

/* Estimates how long the phase still takes with baseline code: a compile of
 * optimised code that takes longer gains nothing. */
static void estimate_rest(cpu_launch *l, uint64_t chunk) {
  enum { MIN_NS = 200000 };
  uint64_t done = atomic_fetch_add(&l->groups_done, chunk) + chunk;
  uint64_t spent = vyre__clock_ns() - l->phase_ns;
  if (spent < MIN_NS) return;
  double rest = (double)spent * (double)(l->groups - done) / (double)done;
  const double most = 1e18; /* a larger one may not fit */
  atomic_store_explicit(&l->pipeline->baseline_rest_ns,
                        (uint64_t)(rest < most ? rest : most),
                        memory_order_relaxed);
}

/* Runs workgroups in chunks: to report progress, to check the deadline, and to
 * switch to optimised code between them. Compiled code itself checks `stop` in
 * long loops and between workgroups, but not between workgroups that share a
 * vector. With a deadline, a chunk is therefore sized to take about a
 * millisecond. */
VYRE__NOINLINE
static uint32_t run_chunks(cpu_launch *l, uint64_t first, uint64_t count,
                           uint32_t number) {
  bool was_baseline = cpu_is_baseline(l->pipeline, code_of(l));
  chunk_size c = begin_chunks(l, was_baseline);
  uint32_t result = VYRE__SPMD_DONE;
  while (count > 0 && result == VYRE__SPMD_DONE) {
    if (l->pipeline->before_chunk) {
      c.max = l->pipeline->chunk_groups;
      l->pipeline->before_chunk(l->pipeline, first);
    }
    const cpu_code *code = code_of(l);
    if (was_baseline && !cpu_is_baseline(l->pipeline, code)) {
      was_baseline = false;
      c = begin_chunks(l, false);
    }
    uint64_t chunk = c.size < c.max ? c.size : c.max;
    if (chunk > count) chunk = count;
    result = call_phase(l, code, first, chunk, number);
    if (result == VYRE__SPMD_DONE && l->launch->progress) {
      vyre__progress_add(l->launch, chunk);
    }
    if (was_baseline) estimate_rest(l, chunk);
    if (is_stopped(l)) return VYRE__SPMD_STOPPED;
    first += chunk;
    count -= chunk;
    adapt_size(&c, count);
  }
  return result;
}

static uint32_t run_groups(void *self, uint64_t first, uint64_t count,
                           uint32_t number) {
  cpu_launch *l = self;
  const cpu_code *code = code_of(l);
  if (is_stopped(l)) return VYRE__SPMD_STOPPED;
  return l->launch->progress || l->launch->deadline_ns ||
                 cpu_is_baseline(l->pipeline, code)
             ? run_chunks(l, first, count, number)
             : call_phase(l, code, first, count, number);
}

VYRE__RARE
static vyre_code failed(const cpu_launch *l, uint32_t result, vyre_status *st) {
  if (result == NO_MEMORY) {
    return vyre__no_memory(st, "cpu", "bytes of shared memory",
                           code_of(l)->scratch_bytes);
  }
  return result == VYRE__SPMD_OUT_OF_FUEL
             ? vyre__out_of_fuel(&l->pipeline->base, l->launch, st)
             : vyre__timed_out(&l->pipeline->base, l->launch, st);
}

/* Runs a job and measures it: adds the time of all threads together, but not
 * more than the elapsed time. */
VYRE__NOINLINE
static uint32_t run_job_timed(cpu_launch *l, const vyre__job *job) {
  uint64_t start = vyre__clock_ns(), busy = 0;
  uint32_t result = vyre__pool_run(l->device->pool, job, 1, NULL, &busy);
  uint64_t elapsed = vyre__clock_ns() - start;
  l->launch->device_ns += busy < elapsed ? busy : elapsed;
  return result;
}

static inline uint32_t run_job(cpu_launch *l, const vyre__job *job) {
  if (l->launch->is_timed) return run_job_timed(l, job);
  if (l->session) return vyre__pool_run_in(l->session, job, l->upcoming);
  return vyre__pool_run(l->device->pool, job, 1, NULL, NULL);
}

/* --- clearing outputs ------------------------------------------------------*/

enum { CLEAR_CHUNK = 64 << 10 };

typedef struct clear_range {
  unsigned char *data;
  size_t size;
} clear_range;

static uint32_t clear_chunks(void *self, uint64_t first, uint64_t count,
                             uint32_t number) {
  const clear_range *range = self;
  size_t at = (size_t)first * CLEAR_CHUNK, size = (size_t)count * CLEAR_CHUNK;
  (void)number;
  if (size > range->size - at) size = range->size - at;
  memset(range->data + at, 0, size);
  return 0;
}

enum {
  MIN_RUN_BYTES = 128
}; /* shorter runs are faster to clear with the rest */

/* Clears the elements between the runs of @p c. */
static void clear_gaps(unsigned char *data, uint64_t length, size_t width,
                       const cpu_coverage *c) {
  uint64_t k[CPU_DIGITS] = {0}, start = c->base, end = 0;
  uint32_t digit = 0;
  while (digit < c->outer_count + 1 && start < length) {
    memset(data + end * width, 0, (size_t)(start - end) * width);
    end = c->run < length - start ? start + c->run : length;
    for (digit = 0; digit < c->outer_count; digit++) {
      start += c->strides[digit];
      if (++k[digit] < c->counts[digit]) break;
      start -= c->strides[digit] * c->counts[digit];
      k[digit] = 0;
    }
    if (digit == c->outer_count) break;
  }
  memset(data + end * width, 0, (size_t)(length - end) * width);
}

/* Clears the elements of buffer @p i that the launch does not overwrite, if they
 * are few. Returns false if there are too many. */
static bool clear_rest(const cpu_launch *l, uint32_t i) {
  const cpu_plan *plan = &l->pipeline->plan;
  const vyre__spmd_view *view = &l->block->views[i];
  uint64_t length = view->length, covered;
  size_t width = plan->buffers[i].width;
  cpu_coverage c;
  if (!cpu_find_coverage(plan, i, l->block, &c)) return false;
  covered = c.run < length - c.base ? c.run : length - c.base;
  if (covered == length) return true;
  if (c.run < MIN_RUN_BYTES / width) return false;
  for (uint32_t d = 0; d < c.outer_count && covered < length; d++) {
    covered *= c.counts[d] < length ? c.counts[d] : length;
  }
  if (covered < length - length / 4) return false;
  clear_gaps(view->data, length, width, &c);
  return true;
}

/* Clears outputs with all threads if they are large, because the first write to
 * fresh memory is slow. */
static void clear(cpu_launch *l) {
  const cpu_plan *plan = &l->pipeline->plan;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    if (!plan->buffers[i].is_bound || !l->launch->views[i].begins_zero ||
        clear_rest(l, i)) {
      continue;
    }
    clear_range range = {
        l->block->views[i].data,
        (size_t)l->block->views[i].length * plan->buffers[i].width};
    vyre__job job = {.run = clear_chunks,
                     .self = &range,
                     .count = (range.size + CLEAR_CHUNK - 1) / CLEAR_CHUNK,
                     .cost = &l->device->clear_cost};
    (void)run_job(l, &job);
  }
}

/* Runs the only workgroup of a launch without the pool. */
static inline uint32_t run_group(const cpu_launch *l, const cpu_code *code) {
  if (!l->session) return call_phase(l, code, 0, 1, 0);
  return phase_of(l, code)(l->block, 0, 1, NULL);
}

/* Returns the smallest range of workgroups to give to another thread, so that
 * at most as many threads take part as the pipeline was tuned for. */
static inline uint64_t min_range(const cpu_launch *l) {
  uint32_t threads = vyre__tuned(&l->pipeline->base, CPU_TUNES_THREADS, 0);
  return threads ? (l->groups - 1) / threads + 1 : 0;
}

static vyre_code run_phase(cpu_launch *l, uint32_t phase, vyre_status *st) {
  const cpu_code *code = code_of(l);
  uint32_t result;
  l->phase = phase;
  if (l->groups == 1 && code->scratch_bytes == 0 && !l->launch->is_timed &&
      !l->launch->progress) {
    result = run_group(l, code);
  } else {
    if (cpu_is_baseline(l->pipeline, code)) {
      atomic_store(&l->groups_done, 0);
      l->phase_ns = vyre__clock_ns();
    }
    vyre__job job = {.run = run_groups,
                     .self = l,
                     .count = l->groups,
                     .min_items = min_range(l),
                     .cost = &l->pipeline->costs[phase]};
    result = run_job(l, &job);
  }
  return result == VYRE__SPMD_DONE ? VYRE_OK : failed(l, result, st);
}

enum { MAX_COUNTED = 1 << 20 }; /* phases counted in advance, for progress */

/* Runs the host schedule of a kernel with grid barriers: its phases, and the
 * loops around them. With @p runs, counts the phases instead; loop bounds do
 * not depend on their results. The stop flag is checked at every step, because
 * there may be very many short phases, and iterations without a phase. */
static vyre_code run_host_schedule(cpu_launch *l,
                                   const vyre__launch *with_copies,
                                   uint64_t *values, uint64_t *runs,
                                   vyre_status *st) {
  vyre__host_schedule schedule =
      vyre__host_schedule_begin(&l->pipeline->plan.base, with_copies, values);
  uint32_t phase, spill = l->pipeline->plan.spill_buffer;
  if (!runs && spill != VYRE_NO_INDEX) {
    const uint32_t *group = l->pipeline->plan.workgroup;
    schedule.spill = (const uint32_t *)l->block->views[spill].data;
    schedule.invocations = l->groups * group[0] * group[1] * group[2];
  }
  for (;;) {
    vyre__host_step step = vyre__host_schedule_step(&schedule, &phase);
    if (step == VYRE__HOST_STEP_END) return VYRE_OK;
    if (is_stopped(l)) return failed(l, VYRE__SPMD_STOPPED, st);
    if (step == VYRE__HOST_STEP_LOOP) continue;
    if (!runs) VYRE_TRY(run_phase(l, phase, st));
    if (runs && ++*runs > MAX_COUNTED) return VYRE_OK;
  }
}

/* Makes @p out a copy of the launch that points to the copied uniforms. Bounds
 * of grid loops must be computed from the same values that the kernel reads. */
static vyre_code with_copied_uniforms(const cpu_launch *l, vyre__launch *out,
                                      vyre_status *st) {
  const cpu_pipeline *p = l->pipeline;
  size_t count = p->base.program->buffer_count;
  *out = *l->launch;
  if (p->uniform_count == 0) return VYRE_OK;
  vyre__view *views =
      vyre__arena_array(l->launch->scratch, count, sizeof *views);
  if (!views) return vyre__no_memory(st, "cpu", "buffers", count);
  memcpy(views, l->launch->views, count * sizeof *views);
  for (uint32_t i = 0; i < p->uniform_count; i++) {
    uint32_t buffer = p->uniforms[i].buffer;
    views[buffer].data = l->block->views[buffer].data;
    views[buffer].length = l->block->views[buffer].length;
  }
  out->views = views;
  return VYRE_OK;
}

static vyre_code run_steps(cpu_launch *l, vyre_status *st) {
  const cpu_plan *plan = &l->pipeline->plan;
  uint64_t *values =
      vyre__arena_array(l->launch->scratch,
                        vyre__host_schedule_size(&plan->base), sizeof *values);
  if (!values) return vyre__no_memory(st, "cpu", "loops", plan->loop_count);
  l->block->loop_values = values;
  vyre__launch with_copies;
  VYRE_TRY(with_copied_uniforms(l, &with_copies, st));
  uint64_t runs = 0;
  if (l->launch->progress) {
    VYRE_TRY(run_host_schedule(l, &with_copies, values, &runs, st));
    bool is_known =
        runs <= MAX_COUNTED && (runs == 0 || l->groups <= UINT64_MAX / runs);
    if (!is_known) runs = 0;
    vyre__progress_begin(l->launch, l->groups * runs);
  }
  VYRE_TRY(run_host_schedule(l, &with_copies, values, NULL, st));
  vyre__progress_end(l->launch, l->groups * runs);
  return VYRE_OK;
}

/* Allocates the spill buffer: values that live across grid barriers. */
static vyre_code bind_spill_buffer(cpu_launch *l, vyre_status *st) {
  const cpu_plan *plan = &l->pipeline->plan;
  uint32_t words;
  VYRE_TRY(vyre__spill_size(l->launch, plan->workgroup, l->groups, UINT32_MAX,
                            &words, st));
  unsigned char *memory =
      vyre_arena_alloc(l->launch->scratch, (size_t)words * 4, 64);
  if (!memory) {
    return vyre__no_memory(st, "cpu", "words across grid barriers", words);
  }
  l->block->views[plan->spill_buffer] =
      (vyre__spmd_view){.data = memory, .length = words};
  return VYRE_OK;
}

/* Copies a buffer to aligned memory; copy_out copies it back after the
 * launch. An atomic access must not cross a cache line (aligns_atomics in
 * the table). */
static vyre_code copy_in(cpu_launch *l, uint32_t buffer, vyre_status *st) {
  const vyre__view *view = &l->launch->views[buffer];
  size_t size = (size_t)view->length * l->pipeline->plan.buffers[buffer].unit;
  unsigned char *copy = vyre_arena_alloc(l->launch->scratch, size, 64);
  if (!copy) return vyre__no_memory(st, "cpu", "bytes of atomics", size);
  memcpy(copy, view->data, size);
  l->block->views[buffer].data = copy;
  l->has_copies = true;
  return VYRE_OK;
}

VYRE__NOINLINE
static void copy_out(const cpu_launch *l) {
  const cpu_plan *plan = &l->pipeline->plan;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    const vyre__plan_buffer *b = &plan->buffers[i];
    const vyre__view *view = &l->launch->views[i];
    if (!b->is_bound || !((uintptr_t)view->data % b->aligned)) continue;
    memcpy(view->data, l->block->views[i].data, (size_t)view->length * b->unit);
  }
}

/* Binds buffers that need memory of the launch. The buffers of the program come
 * first, then those that lowering added. */
VYRE__NOINLINE
static vyre_code bind_with_memory(cpu_launch *l, vyre_status *st) {
  const cpu_plan *plan = &l->pipeline->plan;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    const vyre__plan_buffer *b = &plan->buffers[i];
    if (!b->is_bound) { /* in scratch memory, except for the spill buffer */
      l->block->views[i] = (vyre__spmd_view){0};
      if (i == plan->spill_buffer) VYRE_TRY(bind_spill_buffer(l, st));
      continue;
    }
    const vyre__view *view = &l->launch->views[i];
    l->block->views[i] =
        (vyre__spmd_view){.data = view->data, .length = view->length};
    l->clears |= view->begins_zero;
    if ((uintptr_t)view->data % b->aligned) VYRE_TRY(copy_in(l, i, st));
  }
  return VYRE_OK;
}

/* Binds the buffers of a usual kernel: all bound and aligned. */
static vyre_code bind(cpu_launch *l, vyre_status *st) {
  const cpu_plan *plan = &l->pipeline->plan;
  const vyre__plan_buffer *b = plan->buffers, *end = b + plan->buffer_count;
  const vyre__view *view = l->launch->views;
  vyre__spmd_view *to = l->block->views;
  bool clears = false, is_unusual = false;
  for (; b < end; b++, view++, to++) {
    if (!b->is_bound) return bind_with_memory(l, st); /* it may have no view */
    *to = (vyre__spmd_view){.data = view->data, .length = view->length};
    is_unusual |= ((uintptr_t)view->data & (b->aligned - 1u)) != 0;
    clears |= view->begins_zero;
  }
  l->clears = clears;
  return is_unusual ? bind_with_memory(l, st) : VYRE_OK;
}

typedef struct stack_block {
  _Alignas(
      16) unsigned char bytes[sizeof(vyre__spmd_launch) +
                              CPU_VIEWS_ON_STACK * sizeof(vyre__spmd_view)];
  _Alignas(16) unsigned char uniforms[CPU_UNIFORMS_ON_STACK];
} stack_block;

/* Copies the uniforms to memory that belongs to this launch. Bounds checks are
 * removed on the assumption that all loads of a uniform return the same value
 * (analyze/symbolic.c), but the caller may change its memory at any time. The
 * copies are on the stack or in the launch's scratch arena, which a warm
 * dispatch reuses. */
static inline vyre_code copy_uniforms(cpu_launch *l, vyre_status *st) {
  const cpu_pipeline *p = l->pipeline;
  unsigned char *to = l->uniforms;
  if (p->uniform_bytes > CPU_UNIFORMS_ON_STACK) {
    to = vyre_arena_alloc(l->launch->scratch, (size_t)p->uniform_bytes, 16);
    if (!to) {
      return vyre__no_memory(st, "cpu", "bytes of uniforms", p->uniform_bytes);
    }
  }
  const cpu_uniform *u = p->uniforms, *end = u + p->uniform_count;
  for (; u < end; u++) {
    vyre__spmd_view *view = &l->block->views[u->buffer];
    unsigned char *copy = to + u->at;
    if (u->size == sizeof(uint32_t)) { /* the usual size: avoids a call */
      memcpy(copy, view->data, sizeof(uint32_t));
    } else {
      memcpy(copy, view->data, (size_t)u->size);
    }
    view->data = copy;
    view->length = u->length;
  }
  return VYRE_OK;
}

static vyre_code fill_block(cpu_launch *l, vyre_status *st) {
  const cpu_plan *plan = &l->pipeline->plan;
  const vyre__launch *launch = l->launch;
  const uint32_t *grid = launch->grid;
  if (plan->buffer_count > CPU_VIEWS_ON_STACK) {
    l->block = vyre_arena_alloc(
        launch->scratch,
        sizeof *l->block + plan->buffer_count * sizeof(vyre__spmd_view), 16);
    if (!l->block) {
      return vyre__no_memory(st, "cpu", "buffers", plan->buffer_count);
    }
  }
  memcpy(l->block->grid, grid, sizeof l->block->grid);
  l->groups = (uint64_t)grid[0] * grid[1] * grid[2];
  l->block->fuel = launch->max_loop_iterations < UINT32_MAX
                       ? (uint32_t)launch->max_loop_iterations
                       : UINT32_MAX;
  l->block->loop_values = NULL;
  VYRE_TRY(bind(l, st));
  return l->pipeline->uniform_count > 0 ? copy_uniforms(l, st) : VYRE_OK;
}

/* Restores the normal form of the exact sums that the kernel changed. */
VYRE__NOINLINE
static void settle_sums(const cpu_launch *l) {
  const cpu_pipeline *p = l->pipeline;
  for (uint32_t i = 0; i < p->sum_count; i++) {
    const vyre_buffer_decl *buffer = &p->base.program->buffers[p->sums[i]];
    const vyre__spmd_view *view = &l->block->views[p->sums[i]];
    const size_t stride = vyre_element_size(buffer->element);
    for (size_t k = 0; k < view->length; k++) {
      vyre__sum_settle(buffer->element,
                       (unsigned char *)view->data + k * stride);
    }
  }
}

static vyre_code run_any(cpu_launch *l, vyre_status *st) {
  const cpu_plan *plan = &l->pipeline->plan;
  vyre_code code;
  if (l->clears) clear(l);
  if (plan->step_count == 1) {
    if (l->launch->progress) vyre__progress_begin(l->launch, l->groups);
    code = run_phase(l, plan->steps[0].phase, st);
  } else {
    code = run_steps(l, st);
  }
  if (l->pipeline->sum_count > 0) settle_sums(l);
  if (l->has_copies) copy_out(l);
  if (l->launch->readback_count > 0) vyre__launch_read_back(l->launch);
  return code;
}

/* Runs a launch with baseline code, and counts it for cpu_optimise_is_due. */
VYRE__NOINLINE
static vyre_code run_baseline(cpu_launch *l, vyre_status *st) {
  cpu_pipeline *p = l->pipeline;
  uint64_t start = vyre__clock_ns();
  atomic_fetch_add(&l->device->baseline_launches, 1);
  atomic_fetch_add(&l->device->baseline_running, 1);
  vyre_code code = run_any(l, st);
  atomic_store(&p->baseline_rest_ns, 0);
  atomic_fetch_add(&p->baseline_ns, vyre__clock_ns() - start);
  atomic_fetch_sub(&l->device->baseline_running, 1);
  return code;
}

static inline vyre_code run_all(cpu_launch *l, vyre_status *st) {
  return cpu_is_baseline(l->pipeline, code_of(l)) ? run_baseline(l, st)
                                                  : run_any(l, st);
}

VYRE__NOINLINE
static vyre_code run_with_deadline(cpu_launch *l, vyre_status *st) {
  vyre__deadline entry;
  l->block->stop = &l->stop;
  VYRE_TRY(vyre__deadline_begin(l->device->deadlines, &entry,
                                l->launch->deadline_ns, &l->stop, st));
  vyre_code code = run_all(l, st);
  (void)vyre__deadline_end(l->device->deadlines, &entry);
  return code;
}

static const atomic_uint never; /* stop flag of a launch without a deadline */

static inline cpu_launch begin(vyre__launch *launch, stack_block *stack) {
  cpu_pipeline *own = (cpu_pipeline *)launch->pipeline;
  launch->device_ns = 0;
  return (cpu_launch){.pipeline = own,
                      .device = (cpu_device *)own->base.device,
                      .launch = launch,
                      .block = (vyre__spmd_launch *)(void *)stack->bytes,
                      .uniforms = stack->uniforms,
                      .groups = 1};
}

static inline vyre_code run_one(vyre__launch *launch, vyre_status *st) {
  stack_block stack;
  cpu_launch l = begin(launch, &stack);
  VYRE_TRY(fill_block(&l, st));
  l.block->stop = &never;
  return launch->deadline_ns ? run_with_deadline(&l, st) : run_all(&l, st);
}

VYRE__NOINLINE
static vyre_code run_several(const vyre__command_list *list, size_t first,
                             size_t end, size_t *done, vyre_status *st) {
  const vyre__command *commands = list->commands;
  stack_block stack;
  vyre__pool_session session;
  vyre_code code = VYRE_OK;
  vyre__pool_enter(((cpu_device *)list->device)->pool, &session);
  uint32_t saved = float_enter();
  size_t at = first;
  for (; at < end; at++) {
    if (at + 1 < end) { /* the kernel has evicted these lines from the cache */
      const vyre__view *next = commands[at + 1].launch->views;
      __builtin_prefetch(next);
      __builtin_prefetch((const char *)next + 64);
    }
    cpu_launch l = begin(commands[at].launch, &stack);
    l.session = &session;
    l.upcoming = (uint32_t)(end - at - 1);
    code = fill_block(&l, st);
    if (code != VYRE_OK) break;
    l.block->stop = &never;
    code = run_all(&l, st);
    if (code != VYRE_OK) break;
  }
  *done = at - first;
  float_leave(saved);
  vyre__pool_leave(&session);
  return code;
}

vyre_code cpu_execute(vyre__command_list *list, size_t first, size_t end,
                      size_t *done, vyre_status *st) {
  if (list->groups) return cpu_execute_groups(list, done, st);
  if (end - first > 1) return run_several(list, first, end, done, st);
  vyre_code code = run_one(list->commands[first].launch, st);
  *done = code == VYRE_OK;
  return code;
}

/* --- wave graphs ----------------------------------------------------------*/

vyre_code cpu_launch_fill(cpu_launch *l, vyre__launch *launch,
                          vyre__spmd_launch *block, unsigned char *uniforms,
                          const atomic_uint *stop, vyre_status *st) {
  stack_block unused;
  *l = begin(launch, &unused);
  l->block = block;
  l->uniforms = uniforms;
  VYRE_TRY(fill_block(l, st));
  l->block->stop = stop;
  return VYRE_OK;
}

bool cpu_launch_clears_nothing(const cpu_launch *l) {
  const cpu_plan *plan = &l->pipeline->plan;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    cpu_coverage c;
    if (!plan->buffers[i].is_bound || !l->launch->views[i].begins_zero)
      continue;
    uint64_t length = l->block->views[i].length, covered;
    if (!cpu_find_coverage(plan, i, l->block, &c)) return false;
    covered = c.run < length - c.base ? c.run : length - c.base;
    if (covered != length) return false;
  }
  return true;
}

uint32_t cpu_launch_run(cpu_launch *l, uint64_t first, uint64_t count,
                        uint32_t number) {
  return run_groups(l, first, count, number);
}

uint32_t cpu_launch_call(const cpu_launch *l, uint64_t first, uint64_t count,
                         uint32_t number) {
  return call_phase(l, code_of(l), first, count, number);
}

vyre_code cpu_launch_failed(const cpu_launch *l, uint32_t result,
                            vyre_status *st) {
  return failed(l, result, st);
}

vyre_code cpu_launch_execute(vyre__launch *launch, vyre_status *st) {
  return run_one(launch, st);
}
