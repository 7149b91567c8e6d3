/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include <string.h>
#include <xmmintrin.h>

#include "backend/cpu/cpu.h"
#include "base/attributes.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/ir.h"

/* --- floats ----------------------------------------------------------------------*/

/* Kernels round to nearest and keep subnormals, whatever the caller, or who made
 * the thread, has set; what they leave behind nobody sees. Code has only SSE
 * floats, so that the x87's state need not be touched, which takes long. */
enum { FLOAT_DEFAULT = 0x1f80, FLOAT_FLAGS = 0x3f };

static inline uint32_t float_enter(void) {
  uint32_t was = _mm_getcsr();
  if ((was & ~(uint32_t)FLOAT_FLAGS) != FLOAT_DEFAULT) {
    _mm_setcsr(FLOAT_DEFAULT);
  }
  return was;
}

static inline void float_leave(uint32_t was) {
  if (_mm_getcsr() != was) _mm_setcsr(was);
}

/* --- failures --------------------------------------------------------------------*/

VYRE__RARE
static vyre_code wrong_length(const vyre_pipeline *p, uint32_t buffer,
                              uint32_t length, const vyre__plan_buffer *b,
                              vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"elements", length}, {"least_elements", b->min},
                   {"most_elements", b->max}),
      "bind as many elements as the kernel declares",
      "'%.60s' of kernel '%.60s' has %u elements, and not %u to %u",
      p->program->buffers[buffer].name, p->program->name, length, b->min,
      b->max);
}

VYRE__RARE
static vyre_code grid_too_large(const vyre_pipeline *p, unsigned axis,
                                uint32_t groups, uint32_t most,
                                vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_TOO_LARGE, NULL,
      VYRE_NUMBERS({"workgroups", groups}, {"most_workgroups", most}),
      "use a smaller grid",
      "kernel '%.60s': %u workgroups in %c, of which ids of 32 bits allow %u",
      p->program->name, groups, "xyz"[axis], most);
}

/* --- a launch --------------------------------------------------------------------*/

/* One dispatch on its way. */
typedef struct cpu_launch {
  const cpu_pipeline *pipeline;
  const cpu_code *code; /* of all of its phases */
  cpu_device *device;
  vyre__launch *launch;
  vyre__spmd_launch *block;
  unsigned char *uniforms; /* room for UNIFORMS_ON_STACK bytes of them */
  uint64_t groups;
  size_t scratch_bytes;        /* of a thread */
  const vyre__pool_stay *stay; /* NULL: none; else floats are set, too */
  uint32_t more;               /* launches that are to come in it */
  vyre__spmd_phase *phase;
  bool clears;      /* a view begins as zero */
  bool has_copies;  /* of views that are not aligned */
  atomic_uint stop; /* set by the watch; used only with a deadline */
} cpu_launch;

/* What a job gives beside vyre__spmd_result. */
enum { NO_MEMORY = 100 };

static inline uint32_t call(const cpu_launch *l, uint64_t first, uint64_t count,
                            void *scratch) {
  uint32_t was = float_enter();
  uint32_t result = l->phase(l->block, first, count, scratch);
  float_leave(was);
  return result;
}

/* Memory of this number, aligned; NULL without. */
static void *slot_memory(const cpu_launch *l, uint32_t number) {
  cpu_slot *slot = &l->device->slots[number];
  size_t need = l->scratch_bytes + 63;
  if (slot->size < need) {
    vyre_allocator allocator = l->device->base.allocator;
    vyre__resize(allocator, slot->memory, slot->size, 0);
    slot->memory = vyre__resize(allocator, NULL, 0, need);
    slot->size = slot->memory ? need : 0;
    if (!slot->memory) return NULL;
  }
  return (void *)(((uintptr_t)slot->memory + 63) & ~(uintptr_t)63);
}

static inline bool is_stopped(const cpu_launch *l) {
  return atomic_load_explicit(l->block->stop, memory_order_relaxed) != 0;
}

/* In parts, each of which is told when it is done. Code looks at whether to stop in
 * long loops and between workgroups, but not where it runs these side by side: with
 * a deadline, parts are as large as takes a millisecond or so. */
VYRE__NOINLINE
static uint32_t run_parts(const cpu_launch *l, uint64_t first, uint64_t count,
                          void *scratch) {
  enum { PARTS = 1024, FEW = 16, LOOK_NS = 1000000 };
  bool is_watched = l->launch->deadline_ns != 0, tells = l->launch->progress;
  uint64_t most = tells ? l->groups / PARTS + 1 : UINT64_MAX;
  uint64_t size = is_watched ? FEW : UINT64_MAX, start = 0;
  uint32_t result = VYRE__SPMD_DONE;
  if (is_watched) start = vyre__clock_ns();
  while (count > 0 && result == VYRE__SPMD_DONE) {
    uint64_t part = size < most ? size : most;
    if (part > count) part = count;
    result = call(l, first, part, scratch);
    if (result == VYRE__SPMD_DONE && tells) {
      vyre__progress_add(l->launch, part);
    }
    if (is_stopped(l)) return VYRE__SPMD_STOPPED;
    first += part;
    count -= part;
    if (!is_watched || count == 0) continue;
    uint64_t now = vyre__clock_ns();
    if (now - start < LOOK_NS && size < count) size *= 2;
    if (now - start > 2 * (uint64_t)LOOK_NS && size > 1) size /= 2;
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
    scratch = slot_memory(l, number);
    if (!scratch) return NO_MEMORY;
  }
  return l->launch->progress || l->launch->deadline_ns
             ? run_parts(l, first, count, scratch)
             : call(l, first, count, scratch);
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

/* The time in which code ran: that of all threads, and not more than went by. */
VYRE__NOINLINE
static uint32_t share_timed(cpu_launch *l, const vyre__job *job) {
  uint64_t start = vyre__clock_ns(), busy = 0;
  uint32_t result = vyre__pool_run(l->device->pool, job, 1, NULL, &busy);
  uint64_t went_by = vyre__clock_ns() - start;
  l->launch->device_ns += busy < went_by ? busy : went_by;
  return result;
}

static inline uint32_t share(cpu_launch *l, const vyre__job *job) {
  if (l->launch->is_timed) return share_timed(l, job);
  if (l->stay) return vyre__pool_run_in(l->stay, job, l->more);
  return vyre__pool_run(l->device->pool, job, 1, NULL, NULL);
}

/* --- outputs that begin as zero --------------------------------------------------*/

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

/* By all threads, where it is much: fresh memory is also made there. */
static void clear(cpu_launch *l) {
  const cpu_plan *plan = &l->pipeline->plan;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    if (!plan->buffers[i].is_bound || !l->launch->views[i].begins_zero ||
        cpu_is_whole(plan, i, l->block)) {
      continue;
    }
    clear_range range = {
        l->block->views[i].data,
        (size_t)l->block->views[i].length * plan->buffers[i].width};
    vyre__job job = {.run = clear_chunks,
                     .self = &range,
                     .count = (range.size + CLEAR_CHUNK - 1) / CLEAR_CHUNK,
                     .cost = &l->device->clear_cost};
    (void)share(l, &job);
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
    result = l->stay ? l->phase(l->block, 0, 1, NULL) : call(l, 0, 1, NULL);
  } else {
    result = share(l, &job);
  }
  return result == VYRE__SPMD_DONE ? VYRE_OK : failed(l, result, st);
}

enum { MOST_TOLD = 1 << 20 }; /* phases that are counted before they run */

/* Grid barriers: what the host does between phases. With @p runs, it is only
 * counted how many there are: bounds of loops do not depend on what they do. There
 * may be very many that are short, and rounds in which nothing is run. */
static vyre_code walk_steps(cpu_launch *l, const vyre__launch *seen,
                            uint64_t *values, uint64_t *runs, vyre_status *st) {
  vyre__host_schedule walk =
      vyre__host_schedule_begin(&l->pipeline->plan.base, seen, values);
  uint32_t phase;
  for (;;) {
    vyre__host_step walked = vyre__host_schedule_step(&walk, &phase);
    if (walked == VYRE__HOST_STEP_END) return VYRE_OK;
    if (is_stopped(l)) return failed(l, VYRE__SPMD_STOPPED, st);
    if (walked == VYRE__HOST_STEP_LOOP) continue;
    if (!runs) VYRE_TRY(run_phase(l, phase, st));
    if (runs && ++*runs > MOST_TOLD) return VYRE_OK;
  }
}

/* Makes @p out a copy of the launch whose uniforms are those that the kernel
 * reads: bounds of grid loops are computed from them, too. */
static vyre_code see_uniforms(const cpu_launch *l, vyre__launch *out,
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
  vyre__launch seen;
  VYRE_TRY(see_uniforms(l, &seen, st));
  if (l->launch->progress) {
    uint64_t runs = 0;
    VYRE_TRY(walk_steps(l, &seen, values, &runs, st));
    bool is_known =
        runs <= MOST_TOLD && (runs == 0 || l->groups <= UINT64_MAX / runs);
    vyre__progress_begin(l->launch, is_known ? l->groups * runs : 0);
  }
  return walk_steps(l, &seen, values, NULL, st);
}

static vyre_code bind_hidden(cpu_launch *l, vyre_status *st) {
  const cpu_plan *plan = &l->pipeline->plan;
  uint64_t invocations = (uint64_t)plan->workgroup[0] * plan->workgroup[1] *
                         plan->workgroup[2],
           most = plan->hidden_words ? UINT32_MAX / plan->hidden_words
                                     : UINT64_MAX;
  if (l->groups > most / invocations) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_TOO_LARGE, NULL,
        VYRE_NUMBERS({"workgroups", l->groups}, {"most_invocations", most}),
        "use a smaller grid, or keep less across grid_barrier()",
        "kernel '%.60s': %llu workgroups of %llu invocations keep %u words "
        "each across grid barriers, which is more than 32 bits can index",
        l->pipeline->base.program->name, (unsigned long long)l->groups,
        (unsigned long long)invocations, plan->hidden_words);
  }
  uint32_t words = (uint32_t)(l->groups * invocations * plan->hidden_words);
  unsigned char *memory =
      vyre_arena_alloc(l->launch->scratch, (size_t)words * 4, 64);
  if (!memory) {
    return vyre__no_memory(st, "cpu", "words across grid barriers", words);
  }
  l->block->views[plan->hidden] =
      (vyre__spmd_view){.data = memory, .length = words};
  return VYRE_OK;
}

/* Atomics are for elements that no two lines of the cache share: what begins
 * within one is copied, and back when all is done (aligns_atomics). */
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

/* Buffers of the kernel are those of the program, then hidden ones. */
VYRE__NOINLINE
static vyre_code bind_other(cpu_launch *l, vyre_status *st) {
  const vyre_pipeline *p = &l->pipeline->base;
  const cpu_plan *plan = &l->pipeline->plan;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    const vyre__plan_buffer *b = &plan->buffers[i];
    if (!b->is_bound) { /* in the scratch, but for one */
      l->block->views[i] = (vyre__spmd_view){0};
      if (i == plan->hidden) VYRE_TRY(bind_hidden(l, st));
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

/* What nearly all are: every buffer is bound, and as long as it may be. */
static vyre_code bind(cpu_launch *l, vyre_status *st) {
  const cpu_plan *plan = &l->pipeline->plan;
  const vyre__plan_buffer *b = plan->buffers, *end = b + plan->buffer_count;
  const vyre__view *view = l->launch->views;
  vyre__spmd_view *to = l->block->views;
  bool clears = false, is_other = false;
  for (; b < end; b++, view++, to++) {
    if (!b->is_bound) return bind_other(l, st); /* there may be no such view */
    *to = (vyre__spmd_view){.data = view->data, .length = view->length};
    is_other |= (view->length < b->min) | (view->length > b->max) |
                (((uintptr_t)view->data & (b->aligned - 1u)) != 0);
    clears |= view->begins_zero;
  }
  l->clears = clears;
  return is_other ? bind_other(l, st) : VYRE_OK;
}

enum { VIEWS_ON_STACK = 24, UNIFORMS_ON_STACK = 128 };

typedef struct stack_block {
  _Alignas(16) unsigned char bytes[sizeof(vyre__spmd_launch) +
                                   VIEWS_ON_STACK * sizeof(vyre__spmd_view)];
  _Alignas(16) unsigned char uniforms[UNIFORMS_ON_STACK];
} stack_block;

/* Copies the uniforms to memory that only this launch has. Checks of indices are
 * left out because all loads of a uniform agree (analyze/symbolic.c), and memory
 * of the caller may change at any time. Uniforms are small: the copies are on the
 * stack, or in the scratch memory of the launch, which a warm dispatch has. */
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
    if (u->size == sizeof(uint32_t)) { /* nearly all: no call */
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
  const uint32_t *most = l->pipeline->plan.most_groups;
  unsigned axis = 0;
  while (axis < 2 && l->launch->grid[axis] <= most[axis]) axis++;
  return grid_too_large(&l->pipeline->base, axis, l->launch->grid[axis],
                        most[axis], st);
}

static vyre_code fill_block(cpu_launch *l, vyre_status *st) {
  const cpu_plan *plan = &l->pipeline->plan;
  const vyre__launch *launch = l->launch;
  const uint32_t *grid = launch->grid, *most = plan->most_groups;
  if (plan->buffer_count > VIEWS_ON_STACK) {
    l->block = vyre_arena_alloc(
        launch->scratch,
        sizeof *l->block + plan->buffer_count * sizeof(vyre__spmd_view), 16);
    if (!l->block) {
      return vyre__no_memory(st, "cpu", "buffers", plan->buffer_count);
    }
  }
  if (grid[0] > most[0] || grid[1] > most[1] || grid[2] > most[2]) {
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
static vyre_code run_watched(cpu_launch *l, vyre_status *st) {
  vyre__deadline entry;
  l->block->stop = &l->stop;
  VYRE_TRY(vyre__deadline_begin(l->device->watch, &entry,
                                l->launch->deadline_ns, &l->stop, st));
  vyre_code code = run_all(l, st);
  (void)vyre__deadline_end(l->device->watch, &entry);
  return code;
}

static const atomic_uint never; /* what stops a launch without a deadline */

static inline cpu_launch begin(vyre__launch *launch, stack_block *few) {
  const cpu_pipeline *own = (const cpu_pipeline *)launch->pipeline;
  const cpu_code *code = atomic_load_explicit(&own->code, memory_order_acquire);
  launch->device_ns = 0;
  return (cpu_launch){.pipeline = own,
                      .code = code,
                      .device = (cpu_device *)own->base.device,
                      .launch = launch,
                      .block = (vyre__spmd_launch *)(void *)few->bytes,
                      .uniforms = few->uniforms,
                      .groups = 1,
                      .scratch_bytes = (size_t)code->scratch_bytes};
}

vyre_code cpu_run(vyre_pipeline *pipeline, vyre__launch *launch,
                  vyre_status *st) {
  stack_block few;
  cpu_launch l = begin(launch, &few);
  (void)pipeline;
  VYRE_TRY(fill_block(&l, st));
  l.block->stop = &never;
  return launch->deadline_ns ? run_watched(&l, st) : run_all(&l, st);
}

vyre_code cpu_run_many(vyre_device *device, vyre__launch *first, size_t *done,
                       vyre_status *st) {
  stack_block few;
  vyre__pool_stay stay;
  uint32_t more = 0;
  vyre_code code = VYRE_OK;
  for (const vyre__launch *at = first->next; at; at = at->next) more++;
  vyre__pool_enter(((cpu_device *)device)->pool, &stay);
  uint32_t was = float_enter();
  *done = 0;
  for (vyre__launch *at = first; at; at = at->next, more--) {
    if (at->next) { /* this one's memory has taken their place near by */
      __builtin_prefetch(at->next->views);
      __builtin_prefetch((const char *)at->next->views + 64);
    }
    cpu_launch l = begin(at, &few);
    l.stay = &stay;
    l.more = more;
    code = fill_block(&l, st);
    if (code != VYRE_OK) break;
    l.block->stop = &never;
    code = run_all(&l, st);
    if (code != VYRE_OK) break;
    ++*done;
  }
  float_leave(was);
  vyre__pool_leave(&stay);
  return code;
}
