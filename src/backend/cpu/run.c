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
static vyre_code out_of_fuel(const vyre_pipeline *p, const vyre__launch *launch,
                             vyre_status *st) {
  unsigned long long most = launch->max_iterations;
  return VYRE_FAIL_WITH(
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_OUT_OF_FUEL, NULL,
      VYRE_NUMBERS({"max_iterations", most}),
      "let the loop end, or raise max_iterations of the dispatch",
      "kernel '%.60s': a loop went past %llu iterations of one invocation",
      p->program->name, most);
}

VYRE__RARE
static vyre_code timed_out(const vyre_pipeline *p, const vyre__launch *launch,
                           vyre_status *st) {
  unsigned long long ns = launch->timeout_ns;
  return VYRE_FAIL_WITH(st, VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT, NULL,
                        VYRE_NUMBERS({"timeout_ns", ns}),
                        "raise the timeout, or give the kernel less to do",
                        "kernel '%.60s' ran longer than %llu ns",
                        p->program->name, ns);
}

VYRE__RARE
static vyre_code wrong_length(const vyre_pipeline *p, uint32_t buffer,
                              uint32_t length, const cpu_buffer *b,
                              vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"elements", length}, {"least_elements", b->least},
                   {"most_elements", b->most}),
      "bind as many elements as the kernel declares",
      "'%.60s' of kernel '%.60s' has %u elements, and not %u to %u",
      p->program->buffers[buffer].name, p->program->name, length, b->least,
      b->most);
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
  vyre__launch *launch;
  vyre__spmd_launch *block;
  uint64_t groups;
  unsigned char *scratch; /* of all threads */
  size_t stride;          /* of one */
  vyre__spmd_phase *phase;
  uint64_t deadline_ns;
} cpu_launch;

static uint32_t run_groups(void *self, uint64_t first, uint64_t count,
                           uint32_t thread) {
  const cpu_launch *l = self;
  if (l->deadline_ns && vyre__clock_ns() > l->deadline_ns) {
    return VYRE__SPMD_STOPPED;
  }
  uint32_t was = float_enter();
  uint32_t result =
      l->phase(l->block, first, count, l->scratch + thread * l->stride);
  float_leave(was);
  return result;
}

static vyre_code run_phase(cpu_launch *l, uint32_t phase, vyre_status *st) {
  const void *code = l->pipeline->object.phases[phase];
  memcpy(&l->phase, &code, sizeof code);
  uint32_t result = run_groups(l, 0, l->groups, 0);
  if (result == VYRE__SPMD_DONE) return VYRE_OK;
  return result == VYRE__SPMD_OUT_OF_FUEL
             ? out_of_fuel(&l->pipeline->base, l->launch, st)
             : timed_out(&l->pipeline->base, l->launch, st);
}

/* Grid barriers: what the host does between phases. */
static vyre_code run_steps(cpu_launch *l, vyre_status *st) {
  const cpu_plan *plan = &l->pipeline->plan;
  uint64_t *values = vyre__arena_array(
      l->launch->scratch, 2 * (size_t)plan->loop_count + plan->host_count,
      sizeof *values);
  if (!values) return vyre__no_memory(st, "cpu", "loops", plan->loop_count);
  uint64_t *bounds = values + plan->loop_count;
  uint64_t *host = bounds + plan->loop_count;
  memset(values, 0, plan->loop_count * sizeof *values);
  l->block->loop_values = values;
  for (uint32_t at = 0; at < plan->step_count;) {
    const cpu_step *s = &plan->steps[at];
    if (s->kind == VYRE__STEP_RUN) {
      VYRE_TRY(run_phase(l, s->phase, st));
      at++;
      continue;
    }
    bool begins = s->kind == VYRE__STEP_FOR;
    const cpu_step *head = begins ? s : &plan->steps[s->mate];
    if (begins) {
      uint32_t was = float_enter();
      cpu_host_run(plan, l->block, host);
      float_leave(was);
      values[s->loop] = host[head->first];
      bounds[s->loop] = host[head->bound];
    }
    bool more = (begins || cpu_loop_advance(head, &values[s->loop])) &&
                cpu_loop_goes_on(head, values[s->loop], bounds[s->loop]);
    at = begins == more ? at + 1 : s->mate + 1;
  }
  return VYRE_OK;
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

/* Buffers of the kernel are those of the program, then hidden ones. */
static vyre_code bind(cpu_launch *l, vyre_status *st) {
  const vyre_pipeline *p = &l->pipeline->base;
  const cpu_plan *plan = &l->pipeline->plan;
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    const cpu_buffer *b = &plan->buffers[i];
    if (b->is_hidden) {
      VYRE_TRY(bind_hidden(l, st));
      continue;
    }
    const vyre__view *view = &l->launch->views[i];
    if (view->length < b->least || view->length > b->most) {
      return wrong_length(p, i, view->length, b, st);
    }
    bool is_shared = b->kind == VYRE_MEMORY_SHARED;
    l->block->views[i] =
        (vyre__spmd_view){.data = is_shared ? NULL : view->data,
                          .length = is_shared ? 0 : view->length};
  }
  return VYRE_OK;
}

enum { VIEWS_ON_STACK = 24 };

typedef struct stack_block {
  _Alignas(16) unsigned char bytes[sizeof(vyre__spmd_launch) +
                                   VIEWS_ON_STACK * sizeof(vyre__spmd_view)];
} stack_block;

static vyre_code make_scratch(cpu_launch *l, uint32_t threads,
                              vyre_status *st) {
  l->stride = ((size_t)l->pipeline->plan.scratch_bytes + 63) & ~(size_t)63;
  if (l->stride == 0) return VYRE_OK;
  if (l->stride > SIZE_MAX / 2 / threads) {
    return vyre__no_memory(st, "cpu", "bytes of shared memory", l->stride);
  }
  l->scratch = vyre_arena_alloc(l->launch->scratch, l->stride * threads, 64);
  return l->scratch ? VYRE_OK
                    : vyre__no_memory(st, "cpu", "bytes of shared memory",
                                      l->stride * threads);
}

static const atomic_uint never; /* what stops a launch without a deadline */

vyre_code cpu_run(vyre_pipeline *pipeline, vyre__launch *launch,
                  vyre_status *st) {
  const cpu_pipeline *own = (const cpu_pipeline *)pipeline;
  const cpu_plan *plan = &own->plan;
  stack_block few;
  cpu_launch l = {.pipeline = own,
                  .launch = launch,
                  .block = (vyre__spmd_launch *)(void *)few.bytes,
                  .groups = 1,
                  .deadline_ns = launch->deadline_ns};
  if (plan->buffer_count > VIEWS_ON_STACK) {
    l.block = vyre_arena_alloc(
        launch->scratch,
        sizeof *l.block + plan->buffer_count * sizeof(vyre__spmd_view), 16);
    if (!l.block) {
      return vyre__no_memory(st, "cpu", "buffers", plan->buffer_count);
    }
  }
  for (unsigned axis = 0; axis < 3; axis++) {
    uint32_t groups = launch->grid[axis];
    l.block->grid[axis] = groups;
    l.groups *= groups;
    if (groups > plan->most_groups[axis]) {
      return grid_too_large(pipeline, axis, groups, plan->most_groups[axis],
                            st);
    }
  }
  l.block->fuel = launch->max_iterations < UINT32_MAX
                      ? (uint32_t)launch->max_iterations
                      : UINT32_MAX;
  l.block->loop_values = NULL;
  l.block->stop = &never;
  VYRE_TRY(bind(&l, st));
  VYRE_TRY(make_scratch(&l, 1, st));
  if (plan->step_count == 1) return run_phase(&l, plan->steps[0].phase, st);
  return run_steps(&l, st);
}
