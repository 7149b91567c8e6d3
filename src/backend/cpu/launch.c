/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs dispatches: binds the buffers, clears outputs, copies uniforms, and
 * hands the workgroups of each phase to the thread pool. Rare cases are kept
 * out of line, so that a warm dispatch of a small kernel takes well below a
 * microsecond. */
#include <string.h>
#include <xmmintrin.h>

#include "backend/cpu/cpu.h"
#include "base/attributes.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/ir.h"

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

/* --- failures --------------------------------------------------------------*/

VYRE__RARE
static vyre_code wrong_length(const vyre_pipeline *p, uint32_t buffer,
                              uint32_t length, const vyre__plan_buffer *b,
                              vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"elements", length}, {"min_elements", b->min},
                   {"max_elements", b->max}),
      "bind as many elements as the kernel declares",
      "buffer '%.60s' of kernel '%.60s' has %u elements; expected %u to %u",
      p->program->buffers[buffer].name, p->program->name, length, b->min,
      b->max);
}

VYRE__RARE
static vyre_code grid_too_large(const vyre_pipeline *p, unsigned axis,
                                uint32_t groups, uint32_t max,
                                vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_TOO_LARGE, NULL,
      VYRE_NUMBERS({"workgroups", groups}, {"max_workgroups", max}),
      "use a smaller grid",
      "kernel '%.60s': %u workgroups in %c; 32-bit ids allow %u",
      p->program->name, groups, "xyz"[axis], max);
}

/* --- launch ----------------------------------------------------------------*/

/* State of one launch. */
typedef struct cpu_launch {
  const cpu_pipeline *pipeline;
  const cpu_code *code; /* the same for all phases of the launch */
  cpu_device *device;
  vyre__launch *launch;
  vyre__spmd_launch *block;
  unsigned char *uniforms; /* UNIFORMS_ON_STACK bytes for copies of uniforms */
  uint64_t groups;
  size_t scratch_bytes;              /* per thread */
  const vyre__pool_session *session; /* of a batch, which also has set the
                                        floating-point state; or NULL */
  uint32_t upcoming; /* launches after this one in the session */
  vyre__spmd_phase *phase;
  bool clears;      /* some output must start as zero */
  bool has_copies;  /* some buffer was copied to aligned memory */
  atomic_uint stop; /* set when the deadline passes; used only with one */
} cpu_launch;

/* Result of a job in addition to those of vyre__spmd_result. */
enum { NO_MEMORY = 100 };

static inline uint32_t call_phase(const cpu_launch *l, uint64_t first,
                                  uint64_t count, void *scratch) {
  uint32_t saved = float_enter();
  uint32_t result = l->phase(l->block, first, count, scratch);
  float_leave(saved);
  return result;
}

/* Returns the scratch memory of a thread number, aligned to 64 bytes, or NULL
 * without memory. */
static void *scratch_memory(const cpu_launch *l, uint32_t number) {
  cpu_thread_scratch *scratch = &l->device->thread_scratch[number];
  size_t need = l->scratch_bytes + 63;
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

/* Runs workgroups in chunks, to report progress and to check the deadline
 * between them. Compiled code itself checks `stop` in long loops and between
 * workgroups, but not between workgroups that share a vector. With a deadline,
 * a chunk is therefore sized to take about a millisecond. */
VYRE__NOINLINE
static uint32_t run_chunks(const cpu_launch *l, uint64_t first, uint64_t count,
                           void *scratch) {
  enum { CHUNKS = 1024, FIRST_CHUNK = 16, CHUNK_NS = 1000000 };
  bool has_deadline = l->launch->deadline_ns != 0,
       has_progress = l->launch->progress;
  uint64_t max = has_progress ? l->groups / CHUNKS + 1 : UINT64_MAX;
  uint64_t size = has_deadline ? FIRST_CHUNK : UINT64_MAX, start = 0;
  uint32_t result = VYRE__SPMD_DONE;
  if (has_deadline) start = vyre__clock_ns();
  while (count > 0 && result == VYRE__SPMD_DONE) {
    uint64_t chunk = size < max ? size : max;
    if (chunk > count) chunk = count;
    result = call_phase(l, first, chunk, scratch);
    if (result == VYRE__SPMD_DONE && has_progress) {
      vyre__progress_add(l->launch, chunk);
    }
    if (is_stopped(l)) return VYRE__SPMD_STOPPED;
    first += chunk;
    count -= chunk;
    if (!has_deadline || count == 0) continue;
    uint64_t now = vyre__clock_ns();
    if (now - start < CHUNK_NS && size < count) size *= 2;
    if (now - start > 2 * (uint64_t)CHUNK_NS && size > 1) size /= 2;
    start = now;
  }
  return result;
}

static uint32_t run_groups(void *self, uint64_t first, uint64_t count,
                           uint32_t number) {
  const cpu_launch *l = self;
  void *scratch = NULL;
  if (is_stopped(l)) return VYRE__SPMD_STOPPED;
  if (l->scratch_bytes > 0) {
    scratch = scratch_memory(l, number);
    if (!scratch) return NO_MEMORY;
  }
  return l->launch->progress || l->launch->deadline_ns
             ? run_chunks(l, first, count, scratch)
             : call_phase(l, first, count, scratch);
}

VYRE__RARE
static vyre_code failed(const cpu_launch *l, uint32_t result, vyre_status *st) {
  if (result == NO_MEMORY) {
    return vyre__no_memory(st, "cpu", "bytes of shared memory",
                           l->scratch_bytes);
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

/* Clears outputs with all threads if they are large, because the first write to
 * fresh memory is slow. */
static void clear(cpu_launch *l) {
  const cpu_plan *plan = &l->pipeline->plan;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    if (!plan->buffers[i].is_bound || !l->launch->views[i].begins_zero ||
        cpu_is_fully_written(plan, i, l->block)) {
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

static vyre_code run_phase(cpu_launch *l, uint32_t phase, vyre_status *st) {
  memcpy(&l->phase, &l->code->object.phases[phase], sizeof l->phase);
  uint32_t result;
  vyre__job job = {.run = run_groups,
                   .self = l,
                   .count = l->groups,
                   .cost = &l->pipeline->costs[phase]};
  if (l->groups == 1 && l->scratch_bytes == 0 && !l->launch->is_timed &&
      !l->launch->progress) {
    result =
        l->session ? l->phase(l->block, 0, 1, NULL) : call_phase(l, 0, 1, NULL);
  } else {
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
  uint32_t phase;
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
  if (l->launch->progress) {
    uint64_t runs = 0;
    VYRE_TRY(run_host_schedule(l, &with_copies, values, &runs, st));
    bool is_known =
        runs <= MAX_COUNTED && (runs == 0 || l->groups <= UINT64_MAX / runs);
    vyre__progress_begin(l->launch, is_known ? l->groups * runs : 0);
  }
  return run_host_schedule(l, &with_copies, values, NULL, st);
}

/* Allocates the spill buffer: values that live across grid barriers. */
static vyre_code bind_spill_buffer(cpu_launch *l, vyre_status *st) {
  const cpu_plan *plan = &l->pipeline->plan;
  uint64_t invocations = (uint64_t)plan->workgroup[0] * plan->workgroup[1] *
                         plan->workgroup[2],
           max =
               plan->spill_words ? UINT32_MAX / plan->spill_words : UINT64_MAX;
  if (l->groups > max / invocations) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_TOO_LARGE, NULL,
        VYRE_NUMBERS({"workgroups", l->groups}, {"max_invocations", max}),
        "use a smaller grid, or keep fewer values across grid_barrier()",
        "kernel '%.60s': %llu workgroups of %llu invocations keep %u words "
        "each across grid barriers, which is more than 32 bits can index",
        l->pipeline->base.program->name, (unsigned long long)l->groups,
        (unsigned long long)invocations, plan->spill_words);
  }
  uint32_t words = (uint32_t)(l->groups * invocations * plan->spill_words);
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

/* Binds buffers one by one, with all checks. The buffers of the program come
 * first, then those that lowering added. */
VYRE__NOINLINE
static vyre_code bind_checked(cpu_launch *l, vyre_status *st) {
  const vyre_pipeline *p = &l->pipeline->base;
  const cpu_plan *plan = &l->pipeline->plan;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    const vyre__plan_buffer *b = &plan->buffers[i];
    if (!b->is_bound) { /* in scratch memory, except for the spill buffer */
      l->block->views[i] = (vyre__spmd_view){0};
      if (i == plan->spill_buffer) VYRE_TRY(bind_spill_buffer(l, st));
      continue;
    }
    const vyre__view *view = &l->launch->views[i];
    if (view->length < b->min || view->length > b->max) {
      return wrong_length(p, i, view->length, b, st);
    }
    l->block->views[i] =
        (vyre__spmd_view){.data = view->data, .length = view->length};
    l->clears |= view->begins_zero;
    if ((uintptr_t)view->data % b->aligned) VYRE_TRY(copy_in(l, i, st));
  }
  return VYRE_OK;
}

/* Binds the buffers of a usual kernel: all bound, aligned and of a valid
 * length. */
static vyre_code bind(cpu_launch *l, vyre_status *st) {
  const cpu_plan *plan = &l->pipeline->plan;
  const vyre__plan_buffer *b = plan->buffers, *end = b + plan->buffer_count;
  const vyre__view *view = l->launch->views;
  vyre__spmd_view *to = l->block->views;
  bool clears = false, is_unusual = false;
  for (; b < end; b++, view++, to++) {
    if (!b->is_bound) return bind_checked(l, st); /* it may have no view */
    *to = (vyre__spmd_view){.data = view->data, .length = view->length};
    is_unusual |= (view->length < b->min) | (view->length > b->max) |
                  (((uintptr_t)view->data & (b->aligned - 1u)) != 0);
    clears |= view->begins_zero;
  }
  l->clears = clears;
  return is_unusual ? bind_checked(l, st) : VYRE_OK;
}

enum { VIEWS_ON_STACK = 24, UNIFORMS_ON_STACK = 128 };

typedef struct stack_block {
  _Alignas(16) unsigned char bytes[sizeof(vyre__spmd_launch) +
                                   VIEWS_ON_STACK * sizeof(vyre__spmd_view)];
  _Alignas(16) unsigned char uniforms[UNIFORMS_ON_STACK];
} stack_block;

/* Copies the uniforms to memory that belongs to this launch. Bounds checks are
 * removed on the assumption that all loads of a uniform return the same value
 * (analyze/symbolic.c), but the caller may change its memory at any time. The
 * copies are on the stack or in the launch's scratch arena, which a warm
 * dispatch reuses. */
static inline vyre_code copy_uniforms(cpu_launch *l, vyre_status *st) {
  const cpu_pipeline *p = l->pipeline;
  unsigned char *to = l->uniforms;
  if (p->uniform_bytes > UNIFORMS_ON_STACK) {
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

VYRE__NOINLINE
static vyre_code check_grid(const cpu_launch *l, vyre_status *st) {
  const uint32_t *max = l->pipeline->plan.max_groups;
  unsigned axis = 0;
  while (axis < 2 && l->launch->grid[axis] <= max[axis]) axis++;
  return grid_too_large(&l->pipeline->base, axis, l->launch->grid[axis],
                        max[axis], st);
}

static vyre_code fill_block(cpu_launch *l, vyre_status *st) {
  const cpu_plan *plan = &l->pipeline->plan;
  const vyre__launch *launch = l->launch;
  const uint32_t *grid = launch->grid, *max = plan->max_groups;
  if (plan->buffer_count > VIEWS_ON_STACK) {
    l->block = vyre_arena_alloc(
        launch->scratch,
        sizeof *l->block + plan->buffer_count * sizeof(vyre__spmd_view), 16);
    if (!l->block) {
      return vyre__no_memory(st, "cpu", "buffers", plan->buffer_count);
    }
  }
  if (grid[0] > max[0] || grid[1] > max[1] || grid[2] > max[2]) {
    return check_grid(l, st);
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

static vyre_code run_all(cpu_launch *l, vyre_status *st) {
  const cpu_plan *plan = &l->pipeline->plan;
  vyre_code code;
  if (l->clears) clear(l);
  if (plan->step_count == 1) {
    if (l->launch->progress) vyre__progress_begin(l->launch, l->groups);
    code = run_phase(l, plan->steps[0].phase, st);
  } else {
    code = run_steps(l, st);
  }
  if (l->has_copies) copy_out(l);
  return code;
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
  const cpu_pipeline *own = (const cpu_pipeline *)launch->pipeline;
  const cpu_code *code = atomic_load_explicit(&own->code, memory_order_acquire);
  launch->device_ns = 0;
  return (cpu_launch){.pipeline = own,
                      .code = code,
                      .device = (cpu_device *)own->base.device,
                      .launch = launch,
                      .block = (vyre__spmd_launch *)(void *)stack->bytes,
                      .uniforms = stack->uniforms,
                      .groups = 1,
                      .scratch_bytes = (size_t)code->scratch_bytes};
}

vyre_code cpu_run(vyre_pipeline *pipeline, vyre__launch *launch,
                  vyre_status *st) {
  stack_block stack;
  cpu_launch l = begin(launch, &stack);
  (void)pipeline;
  VYRE_TRY(fill_block(&l, st));
  l.block->stop = &never;
  return launch->deadline_ns ? run_with_deadline(&l, st) : run_all(&l, st);
}

vyre_code cpu_run_batch(vyre_device *device, vyre__launch *first, size_t *done,
                        vyre_status *st) {
  stack_block stack;
  vyre__pool_session session;
  uint32_t upcoming = 0;
  vyre_code code = VYRE_OK;
  for (const vyre__launch *at = first->next; at; at = at->next) upcoming++;
  vyre__pool_enter(((cpu_device *)device)->pool, &session);
  uint32_t saved = float_enter();
  *done = 0;
  for (vyre__launch *at = first; at; at = at->next, upcoming--) {
    if (at->next) { /* the kernel has evicted these lines from the cache */
      __builtin_prefetch(at->next->views);
      __builtin_prefetch((const char *)at->next->views + 64);
    }
    cpu_launch l = begin(at, &stack);
    l.session = &session;
    l.upcoming = upcoming;
    code = fill_block(&l, st);
    if (code != VYRE_OK) break;
    l.block->stop = &never;
    code = run_all(&l, st);
    if (code != VYRE_OK) break;
    ++*done;
  }
  float_leave(saved);
  vyre__pool_leave(&session);
  return code;
}
