/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/pipeline.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vyre/validate.h"

#include "base/memory.h"
#include "base/status.h"
#include "hal/backend.h"
#include "ir/ir.h"
#include "lower/trip_count.h"
#include "runtime/compile/device_limits.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/device.h"
#include "runtime/core/fault_injection.h"
#include "runtime/core/fence.h"
#include "runtime/core/trace.h"
#include "runtime/core/work_queue.h"
#include "runtime/dispatch/bind.h"
#include "runtime/dispatch/prepared.h"

static vyre_code not_supported(vyre_status *st, const vyre_device *device,
                               const char *kernel, const char *what) {
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                   "leave it out: this version of vyre has no device that "
                   "can do it",
                   "device '%s' cannot compile kernel '%.60s': %s",
                   device->backend->name, kernel, what);
}

static vyre_code check_buffers(const vyre_device *device,
                               const vyre_program *program, vyre_status *st) {
  for (size_t i = 0; i < program->buffer_count; i++) {
    const vyre_buffer_decl *buffer = &program->buffers[i];
    if (buffer->kind == VYRE_MEMORY_PERSISTENT) {
      /* A pipeline has no state: every form of dispatch gives what a dispatch
       * without a pipeline gives, also the second time (docs/contract.md). */
      return VYRE_FAIL(
          st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
          "leave out `persistent`, and bind one resident buffer "
          "(vyre_buffer_create) as its input and its output: it stays on "
          "the device from dispatch to dispatch",
          "device '%s' cannot compile kernel '%.60s': buffer '%.60s' is "
          "persistent, and a pipeline keeps nothing between dispatches",
          device->backend->name, program->name, buffer->name);
    }
    if (vyre__is_shared(buffer) && buffer->pipeline_live_out) {
      return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                       "write it to a buffer that is not shared",
                       "shared buffer '%.100s' is live_out, but every "
                       "workgroup has its own",
                       buffer->name);
    }
  }
  return VYRE_OK;
}

/* Everything that is wrong with the program itself, or not there yet. */
static vyre_code check_program(const vyre_device *device,
                               const vyre_program *program,
                               vyre_diagnostics *diagnostics, vyre_status *st) {
  if (program->function_count == 0) {
    return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                     "parse or build a kernel with a body",
                     "the program is a list of buffers without a body");
  }
  VYRE_TRY(vyre_program_validate(program, diagnostics, vyre__status_open(st)));
  if (program->item_type != VYRE_TYPE_VOID) {
    return not_supported(st, device, program->name,
                         "it is a queue kernel, and queues come later");
  }
  VYRE_TRY(check_buffers(device, program, st));
  return vyre__program_check_caps(device, program, st);
}

void vyre__workgroup_resolve(const uint32_t asked[3], const uint32_t own[3],
                             uint32_t out[3]) {
  bool given = asked[0] | asked[1] | asked[2];
  for (int axis = 0; axis < 3; axis++) {
    out[axis] = !given ? own[axis] : asked[axis] ? asked[axis] : 1;
  }
}

static vyre_code check_workgroup(const vyre_device *device,
                                 const uint32_t size[3], vyre_status *st) {
  const vyre_device_caps *caps = &device->caps;
  uint64_t product = 1;
  for (int axis = 0; axis < 3; axis++) {
    if (product <= caps->max_workgroup_invocations) product *= size[axis];
    if (size[axis] <= caps->max_workgroup[axis]) continue;
    if (size[axis] > caps->max_workgroup_invocations) continue; /* said below */
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"size", size[axis]}, {"most", caps->max_workgroup[axis]}),
        "use a workgroup that the device has, see vyre_device_get_caps",
        "a workgroup of %u invocations on axis %c; '%s' has at most %u",
        size[axis], "xyz"[axis], vyre_device_name(device),
        caps -> max_workgroup[axis]);
  }
  if (product <= caps->max_workgroup_invocations) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
      VYRE_NUMBERS({"most_invocations", caps->max_workgroup_invocations}),
      "use a smaller workgroup: vyre_device_get_caps and `vyre devices` "
      "say what the device has",
      "a workgroup of %u x %u x %u has more invocations than the %u of '%s'",
      size[0], size[1], size[2], caps->max_workgroup_invocations,
      vyre_device_name(device));
}

/* --- making one ----------------------------------------------------------- */

void vyre__pipeline_drop_runs(vyre_pipeline *pipeline) {
  for (int i = 0; i < VYRE__PREPARED_PER_PIPELINE; i++) {
    vyre__prepared *run = pipeline->state->runs[i].run; /* nobody uses it */
    pipeline->state->runs[i].run = NULL;
    if (run) vyre__prepared_free(run);
  }
  vyre__prepared *spare = atomic_exchange(&pipeline->state->spare, NULL);
  while (spare) {
    vyre__prepared *next = spare->next_spare;
    vyre__prepared_free(spare);
    spare = next;
  }
}

/* The end of a pipeline whose start is set; the backend's part is gone. */
static void destroy(vyre_pipeline *pipeline) {
  vyre_device *device = pipeline->device;
  struct vyre__pipeline_state *inside = pipeline->state;
  if (inside) {
    vyre__pipeline_drop_runs(pipeline);
    pthread_mutex_destroy(&inside->lock);
    vyre_arena_deinit(&inside->texts);
    vyre__resize(device->allocator, inside, sizeof *inside, 0);
  }
  vyre_arena_deinit(&pipeline->arena);
  vyre_program_release(pipeline->program);
  vyre__resize(device->allocator, pipeline, device->backend->pipeline_size, 0);
}

/* Two pipelines have one id only if they are the same: what is not the
 * program's own is part of it. */
static void name_pipeline(vyre_pipeline *pipeline) {
  const vyre_program *program = pipeline->program;
  const uint32_t *size = pipeline->workgroup;
  char hash[VYRE_HASH128_TEXT], override[40] = "", budget[16] = "";
  vyre_hash128_text(program->fingerprint, hash);
  if (memcmp(size, program->workgroup, sizeof program->workgroup) != 0) {
    (void)snprintf(override, sizeof override, ":%ux%ux%u", (unsigned)size[0],
                   (unsigned)size[1], (unsigned)size[2]);
  }
  if (pipeline->ulp_budget > 0) {
    (void)snprintf(budget, sizeof budget, ":%uulp",
                   (unsigned)pipeline->ulp_budget);
  }
  (void)snprintf(pipeline->id, sizeof pipeline->id, "%s:%s%s%s%s",
                 vyre_device_name(pipeline->device), hash, override, budget,
                 pipeline->counts_iterations ? ":counted" : "");
}

static vyre_code make_inside(vyre_pipeline *pipeline, vyre_status *st) {
  struct vyre__pipeline_state *inside =
      vyre__resize(pipeline->device->allocator, NULL, 0, sizeof *inside);
  if (!inside)
    return vyre__no_memory(st, "vyre_pipeline_compile", "pipelines", 1);
  memset(inside, 0, sizeof *inside);
  atomic_init(&inside->references, 1);
  pthread_mutex_init(&inside->lock, NULL);
  vyre_arena_init(&inside->texts, pipeline->device->allocator);
  pipeline->state = inside;
  return VYRE_OK;
}

/* As they stand in the text: one in a loop is one. */
static uint64_t count_grid_barriers(const vyre_program *program) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < program->node_count; i++) {
    count += program->nodes[i].op == VYRE__OP_GRID_BARRIER;
  }
  return count;
}

static vyre_code build(vyre_pipeline *pipeline, vyre_status *st) {
  vyre_device *device = pipeline->device;
  if (vyre__fault(device->context, VYRE_FAULT_COMPILE)) {
    return vyre__fault_status(VYRE_FAULT_COMPILE, st);
  }
  VYRE_TRY(device->backend->pipeline_init(pipeline, st));
  VYRE__COUNT(device, compiles, 1);
  uint64_t points = count_grid_barriers(pipeline->program);
  if (points > 0) {
    VYRE__COUNT(device, grid_sync_splits, 1);
    VYRE__COUNT(device, grid_sync_segments, points + 1);
    VYRE__COUNT(device, grid_sync_points, points);
  }
  return VYRE_OK;
}

static vyre_code init(vyre_pipeline *pipeline, bool is_fresh, vyre_status *st) {
  vyre_device *device = pipeline->device;
  VYRE_TRY(make_inside(pipeline, st));
  VYRE_TRY(check_workgroup(device, pipeline->workgroup, st));
  name_pipeline(pipeline);
  VYRE_TRY(vyre_binding_plan_build(pipeline->program, &pipeline->arena,
                                   &pipeline->plan, vyre__status_open(st)));
  VYRE_TRY(vyre__binding_infos_build(pipeline, st));
  vyre__cache_try tried;
  if (is_fresh) {
    pipeline->state->is_fresh = true;
    vyre__cache_skip(pipeline);
    return build(pipeline, st);
  }
  if (vyre__cache_load(pipeline, &tried)) {
    vyre__cache_end(pipeline, &tried, false);
    return VYRE_OK;
  }
  vyre_code code = build(pipeline, st);
  vyre__cache_end(pipeline, &tried, code == VYRE_OK && !pipeline->is_baseline);
  if (pipeline->is_baseline) {
    pipeline->state->note.not_stored = "the full code will be, once it is made";
    atomic_store(&pipeline->state->wants_full, true);
  }
  return code;
}

enum {
  FRESH = 1,  /* neither read nor write the cache on disk */
  COUNTS = 2, /* vyre_pipeline.counts_rounds */
};

static vyre_code create(vyre_device *device, vyre_program *program,
                        const vyre_compile_options *options,
                        const vyre_float_op_info *numbers, unsigned flags,
                        vyre_pipeline **out, vyre_status *st) {
  bool is_fresh = (flags & FRESH) != 0;
  size_t size = device->backend->pipeline_size;
  vyre_pipeline *pipeline = vyre__resize(device->allocator, NULL, 0, size);
  if (!pipeline) {
    return vyre__no_memory(st, "vyre_pipeline_compile", "pipelines", 1);
  }
  memset(pipeline, 0, size);
  pipeline->device = vyre_device_retain(device);
  pipeline->program = vyre_program_retain(program);
  vyre_arena_init(&pipeline->arena, device->allocator);
  vyre__workgroup_resolve(options->workgroup, program->workgroup,
                          pipeline->workgroup);
  pipeline->ulp_budget = options->ulp_budget;
  pipeline->counts_iterations = (flags & COUNTS) != 0;
  pipeline->is_baseline = options->is_baseline && !is_fresh &&
                          device->backend->pipeline_replace_code != NULL;
  pipeline->float_ops = numbers;
  uint64_t start = vyre__trace_begin(device->context);
  vyre_code code = init(pipeline, is_fresh, st);
  vyre__trace_end(device->context, start, .kind = VYRE__TRACE_COMPILE,
                  .name = program->name, .pipeline = pipeline->id,
                  .device = device, .result = code);
  if (code != VYRE_OK) {
    destroy(pipeline);
    vyre_device_release(device);
    return code;
  }
  *out = pipeline;
  return VYRE_OK;
}

/* --- full code for quick -------------------------------------------------- */

/* One after the other, as many as can work at the same time. */
static vyre__queue **compiler_of(vyre_device *device) {
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  uint32_t most = processors < 1                 ? 1
                  : processors > VYRE__COMPILERS ? VYRE__COMPILERS
                                                 : (uint32_t)processors;
  uint32_t turn = atomic_fetch_add(&device->state->compiles_begun, 1);
  return &device->state->compile_queues[turn % most];
}

typedef struct full_work {
  vyre_fence fence;
  vyre_pipeline *quick; /* retained */
} full_work;

/* Goes through the cache, which then has it. What fails leaves the quick
 * code. */
static vyre_code make_full(vyre_fence *fence, vyre_status *st) {
  vyre_pipeline *quick = ((full_work *)fence)->quick, *full;
  vyre_compile_options options = {.ulp_budget = quick->ulp_budget};
  memcpy(options.workgroup, quick->workgroup, sizeof options.workgroup);
  VYRE_TRY(create(quick->device, quick->program, &options, quick->float_ops, 0,
                  &full, st));
  quick->device->backend->pipeline_replace_code(quick, full);
  vyre_pipeline_release(full);
  return VYRE_OK;
}

static void make_full_finish(vyre_fence *fence) {
  vyre_pipeline_release(((full_work *)fence)->quick);
}

/* Nobody waits for it; without memory or a thread it stays as it is. */
static void make_full_later(vyre_pipeline *pipeline) {
  vyre_device *device = pipeline->device;
  vyre_fence *fence;
  if (!atomic_exchange(&pipeline->state->wants_full, false)) return;
  if (vyre__fence_make(device->context, sizeof(full_work), &fence, NULL) !=
      VYRE_OK) {
    return;
  }
  ((full_work *)fence)->quick = vyre_pipeline_retain(pipeline);
  fence->work = make_full;
  fence->cleanup = make_full_finish;
  if (vyre__queue_push(device, compiler_of(device), fence, NULL) == VYRE_OK) {
    vyre_fence_release(fence);
    return;
  }
  make_full_finish(fence);
  vyre__fence_discard(fence);
}

static vyre_code compile_or_share(vyre_device *device, vyre_program *program,
                                  const vyre_compile_options *options,
                                  vyre_pipeline **out,
                                  vyre_diagnostics *diagnostics,
                                  vyre_status *st) {
  uint32_t size[3];
  vyre__workgroup_resolve(options->workgroup, program->workgroup, size);
  *out = vyre__table_find(&(vyre__cache_subject){device, program, size,
                                                 options->ulp_budget, false});
  if (*out) return VYRE_OK; /* and the program is valid: it was then */
  VYRE_TRY(check_program(device, program, diagnostics, st));
  VYRE_TRY(
      create(device, program, options, device->caps.float_ops, 0, out, st));
  *out = vyre__table_share(*out);
  make_full_later(*out);
  return VYRE_OK;
}

vyre_code vyre_pipeline_compile(vyre_device *device, vyre_program *program,
                                const vyre_compile_options *options,
                                vyre_pipeline **out,
                                vyre_diagnostics *diagnostics,
                                vyre_status *st) {
  vyre__status_begin(st);
  static const char who[] = "vyre_pipeline_compile";
  static const vyre_compile_options defaults = {{0}, 0};
  if (!out) return vyre__null_argument(st, who, "out");
  *out = NULL;
  if (!device) return vyre__null_argument(st, who, "device");
  if (!program) return vyre__null_argument(st, who, "program");
  VYRE_TRY(vyre__device_check(device, st));
  if (!options) options = &defaults;
  VYRE_TRY(compile_or_share(device, program, options, out, diagnostics, st));
  if (!options->counts_iterations) return VYRE_OK;
  vyre_code code = vyre__pipeline_count(*out, 1, st);
  if (code != VYRE_OK) {
    vyre_pipeline_release(*out);
    *out = NULL;
  }
  return code;
}

vyre_code vyre__pipeline_compile_fresh(vyre_device *device,
                                       vyre_program *program,
                                       const vyre_compile_options *options,
                                       vyre_pipeline **out, vyre_status *st) {
  static const vyre_compile_options defaults = {{0}, 0};
  *out = NULL;
  VYRE_TRY(vyre__device_check(device, st));
  VYRE_TRY(check_program(device, program, NULL, st));
  return create(device, program, options ? options : &defaults,
                device->caps.float_ops, FRESH, out, st);
}

vyre_code vyre__pipeline_compile_as(vyre_device *device, vyre_program *program,
                                    const vyre_float_op_info *numbers,
                                    vyre_pipeline **out, vyre_status *st) {
  static const vyre_compile_options defaults = {{0}, 0};
  *out = NULL;
  return create(device, program, &defaults, numbers, FRESH, out, st);
}

vyre_pipeline *vyre_pipeline_retain(vyre_pipeline *pipeline) {
  if (pipeline) atomic_fetch_add(&pipeline->state->references, 1);
  return pipeline;
}

void vyre_pipeline_release(vyre_pipeline *pipeline) {
  if (!pipeline || !vyre__table_release(pipeline)) return;
  vyre_device *device = pipeline->device;
  vyre__pipeline_free(pipeline);
  vyre_device_release(device);
}

void vyre__pipeline_free(vyre_pipeline *pipeline) {
  vyre_pipeline *variant = atomic_load(&pipeline->state->variants);
  while (variant) {
    vyre_pipeline *next = variant->state->next_variant;
    vyre_pipeline_release(variant);
    variant = next;
  }
  pipeline->device->backend->pipeline_deinit(pipeline);
  destroy(pipeline);
}

/* --- in the background ---------------------------------------------------- */

typedef struct compile_work {
  vyre_fence fence;
  vyre_device *device;
  vyre_program *program;
  vyre_compile_options options;
} compile_work;

static vyre_code compile(vyre_fence *fence, vyre_status *st) {
  compile_work *work = (compile_work *)fence;
  return vyre_pipeline_compile(work->device, work->program, &work->options,
                               &fence->pipeline, NULL, vyre__status_open(st));
}

static void compile_finish(vyre_fence *fence) {
  compile_work *work = (compile_work *)fence;
  vyre_program_release(work->program);
  vyre_device_release(work->device);
}

static void compile_forget(vyre_fence *fence) {
  vyre_pipeline_release(fence->pipeline);
}

vyre_code vyre_pipeline_compile_async(vyre_device *device,
                                      vyre_program *program,
                                      const vyre_compile_options *options,
                                      vyre_fence **out, vyre_status *st) {
  vyre__status_begin(st);
  static const char who[] = "vyre_pipeline_compile_async";
  if (!out) return vyre__null_argument(st, who, "fence");
  *out = NULL;
  if (!device) return vyre__null_argument(st, who, "device");
  if (!program) return vyre__null_argument(st, who, "program");
  vyre_fence *fence;
  VYRE_TRY(vyre__fence_make(device->context, sizeof(compile_work), &fence, st));
  compile_work *work = (compile_work *)fence;
  if (options) work->options = *options;
  work->device = vyre_device_retain(device);
  work->program = vyre_program_retain(program);
  fence->work = compile;
  fence->cleanup = compile_finish;
  fence->on_free = compile_forget;
  vyre_code code = vyre__queue_push(device, compiler_of(device), fence, st);
  if (code != VYRE_OK) {
    compile_finish(fence);
    vyre__fence_discard(fence);
    return code;
  }
  *out = fence;
  return VYRE_OK;
}

/* --- variants ------------------------------------------------------------- */

static vyre_pipeline *find_variant(vyre_pipeline *pipeline,
                                   const uint32_t workgroup[3],
                                   uint8_t ulp_budget, bool counts_rounds) {
  vyre_pipeline *at = pipeline;
  vyre_pipeline *next =
      atomic_load_explicit(&pipeline->state->variants, memory_order_acquire);
  for (; at; at = next, next = at ? at->state->next_variant : NULL) {
    if (at->ulp_budget == ulp_budget &&
        at->counts_iterations == counts_rounds &&
        memcmp(at->workgroup, workgroup, sizeof at->workgroup) == 0) {
      return at;
    }
  }
  return NULL;
}

/* Compiles a variant and adds it to those of @p pipeline, unless it is
 * there. */
static vyre_code add_variant(vyre_pipeline *pipeline,
                             const vyre_compile_options *options,
                             bool counts_rounds, vyre_pipeline **out,
                             vyre_status *st) {
  struct vyre__pipeline_state *inside = pipeline->state;
  vyre_code code = VYRE_OK;
  pthread_mutex_lock(&inside->lock);
  *out = find_variant(pipeline, options->workgroup, options->ulp_budget,
                      counts_rounds);
  if (!*out) {
    code = create(
        pipeline->device, pipeline->program, options, pipeline->float_ops,
        (counts_rounds ? COUNTS : 0) | (inside->is_fresh ? FRESH : 0), out, st);
    if (code == VYRE_OK) {
      (*out)->state->next_variant = atomic_load(&inside->variants);
      atomic_store_explicit(&inside->variants, *out, memory_order_release);
    }
  }
  pthread_mutex_unlock(&inside->lock);
  return code;
}

/* Counter of loop iterations in compiled code: 32 bits. */
static const uint64_t max_counted_iterations = UINT32_MAX;

/* Computes the proven bound of the loop iterations of one invocation, once for each
 * pipeline. Kernels without a bound get UINT64_MAX - 1. */
static vyre_code find_iteration_bound(vyre_pipeline *pipeline, uint64_t *bound,
                                      vyre_status *st) {
  _Atomic uint64_t *cached = &pipeline->state->rounds; /* bound + 1 */
  uint64_t above = atomic_load_explicit(cached, memory_order_relaxed);
  if (above == 0) {
    uint64_t found;
    VYRE_TRY(vyre__trip_count_bound(pipeline->program, pipeline->workgroup,
                                    &found, st));
    above = found < UINT64_MAX ? found + 1 : UINT64_MAX;
    atomic_store_explicit(cached, above, memory_order_relaxed);
  }
  *bound = above - 1;
  return VYRE_OK;
}

/* Sets *bound to the number of iterations that the kernel is proven to need, if that
 * is above @p max_iterations and the code of @p pipeline does not count; else to 0,
 * as the code is exact for this limit. */
static vyre_code find_uncounted(vyre_pipeline *pipeline,
                                uint64_t max_iterations, uint64_t *bound,
                                vyre_status *st) {
  *bound = 0;
  if (max_iterations == 0 || max_iterations >= VYRE__UNCOUNTED_ITERATIONS) {
    return VYRE_OK;
  }
  if (pipeline->device->backend->counts_iterations) return VYRE_OK;
  uint64_t found;
  VYRE_TRY(find_iteration_bound(pipeline, &found, st));
  if (found <= VYRE__UNCOUNTED_ITERATIONS && found > max_iterations) {
    *bound = found;
  }
  return VYRE_OK;
}

/* Refuses a limit that compiled code cannot count up to, unless the kernel is proven
 * to stay below what the code counts: then no invocation can run out. */
static vyre_code check_countable(vyre_pipeline *pipeline,
                                 uint64_t max_iterations, vyre_status *st) {
  uint64_t bound;
  if (max_iterations <= max_counted_iterations ||
      pipeline->device->backend->counts_iterations) {
    return VYRE_OK;
  }
  VYRE_TRY(find_iteration_bound(pipeline, &bound, st));
  if (bound <= max_counted_iterations) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, NULL,
      VYRE_NUMBERS({"max_iterations", max_iterations},
                   {"device_max_iterations", max_counted_iterations}),
      "lower max_loop_iterations to 4294967295, or run the kernel on device "
      "'ref'",
      "kernel '%.60s': max_loop_iterations is %llu, but device '%s' counts at "
      "most %llu loop iterations of one invocation",
      pipeline->program->name, (unsigned long long)max_iterations,
      vyre_device_name(pipeline->device),
      (unsigned long long)max_counted_iterations);
}

static vyre_code variant_of(vyre_pipeline *pipeline,
                            const vyre_compile_options *options,
                            vyre_pipeline **out, vyre_status *st) {
  *out = pipeline;
  if (!options) return VYRE_OK;
  uint32_t size[3];
  vyre__workgroup_resolve(options->workgroup, pipeline->workgroup, size);
  *out = find_variant(pipeline, size, options->ulp_budget, false);
  if (*out) return VYRE_OK;
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_VARIANT_NOT_COMPILED,
                   "call vyre_pipeline_add_variant with these options before",
                   "pipeline '%s' was not prepared for a workgroup of "
                   "%u x %u x %u and %u ulp",
                   pipeline->id, size[0], size[1], size[2],
                   options->ulp_budget);
}

vyre_code vyre__pipeline_variant(vyre_pipeline *pipeline,
                                 const vyre_dispatch_desc *desc,
                                 vyre_pipeline **out, vyre_status *st) {
  VYRE_TRY(variant_of(pipeline, desc->variant, out, st));
  VYRE_TRY(check_countable(*out, desc->max_loop_iterations, st));
  uint64_t bound;
  VYRE_TRY(find_uncounted(*out, desc->max_loop_iterations, &bound, st));
  if (bound == 0) return VYRE_OK;
  const vyre_pipeline *uncounted = *out;
  *out =
      find_variant(pipeline, uncounted->workgroup, uncounted->ulp_budget, true);
  if (*out) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_VARIANT_NOT_COMPILED, NULL,
      VYRE_NUMBERS({"max_iterations", desc->max_loop_iterations},
                   {"bound", bound}),
      "call vyre_pipeline_add_variant with counts_iterations set, once, before "
      "the "
      "dispatch",
      "pipeline '%s' does not count loop iterations: it needs at most %llu of "
      "them, and max_iterations is %llu",
      uncounted->id, (unsigned long long)bound,
      (unsigned long long)desc->max_loop_iterations);
}

/* Adds the counting form of @p variant to the variants of @p pipeline, if a
 * limit of @p max_iterations needs it. */
static vyre_code add_counted(vyre_pipeline *pipeline, vyre_pipeline *variant,
                             uint64_t max_iterations, vyre_status *st) {
  uint64_t bound;
  VYRE_TRY(find_uncounted(variant, max_iterations, &bound, st));
  if (bound == 0) return VYRE_OK; /* its code counts, or has no loops */
  vyre_compile_options same = {.ulp_budget = variant->ulp_budget};
  memcpy(same.workgroup, variant->workgroup, sizeof same.workgroup);
  vyre_pipeline *counted;
  return add_variant(pipeline, &same, true, &counted, st);
}

vyre_code vyre__pipeline_count(vyre_pipeline *pipeline, uint64_t max_iterations,
                               vyre_status *st) {
  return add_counted(pipeline, pipeline, max_iterations, st);
}

vyre_code vyre_pipeline_add_variant(vyre_pipeline *pipeline,
                                    const vyre_compile_options *options,
                                    vyre_status *st) {
  vyre__status_begin(st);
  static const char who[] = "vyre_pipeline_add_variant";
  if (!pipeline) return vyre__null_argument(st, who, "pipeline");
  if (!options) return vyre__null_argument(st, who, "options");
  VYRE_TRY(vyre__device_check(pipeline->device, st));
  vyre_compile_options wanted = *options;
  wanted.is_baseline = false; /* this call may take its time */
  vyre__workgroup_resolve(options->workgroup, pipeline->workgroup,
                          wanted.workgroup);
  vyre_pipeline *variant;
  VYRE_TRY(add_variant(pipeline, &wanted, false, &variant, st));
  if (!options->counts_iterations) return VYRE_OK;
  return add_counted(pipeline, variant, 1, st);
}

/* --- what it is ----------------------------------------------------------- */

const char *vyre_pipeline_id(const vyre_pipeline *pipeline) {
  return pipeline ? pipeline->id : "";
}

const vyre_program *vyre_pipeline_program(const vyre_pipeline *pipeline) {
  return pipeline ? pipeline->program : NULL;
}

const vyre_binding_plan *vyre_pipeline_bindings(const vyre_pipeline *pipeline) {
  return pipeline ? &pipeline->plan : NULL;
}

const uint32_t *vyre_pipeline_workgroup(const vyre_pipeline *pipeline) {
  return pipeline ? pipeline->workgroup : NULL;
}

bool vyre_pipeline_get_resources(const vyre_pipeline *pipeline,
                                 vyre_pipeline_resources *out) {
  if (!out) return false;
  *out = (vyre_pipeline_resources){0};
  if (!pipeline) return false;
  const vyre_program *program = pipeline->program;
  const vyre__backend *backend = pipeline->device->backend;
  memcpy(out->workgroup, pipeline->workgroup, sizeof out->workgroup);
  if (program->over != VYRE_NO_INDEX) {
    out->grid_buffer = program->buffers[program->over].name;
  }
  for (size_t i = 0; i < pipeline->plan.binding_count; i++) {
    const vyre_binding *b = &pipeline->plan.bindings[i];
    if (b->role != VYRE_ROLE_SHARED) continue;
    out->shared_count++;
    out->shared_bytes += b->static_byte_len;
  }
  out->grid_barriers = (uint32_t)count_grid_barriers(program);
  if (backend->pipeline_describe) backend->pipeline_describe(pipeline, out);
  return true;
}

vyre_code vyre_pipeline_print(vyre_pipeline *pipeline, const char *form,
                              vyre_writer writer, vyre_status *st) {
  vyre__status_begin(st);
  static const char who[] = "vyre_pipeline_print";
  if (!pipeline) return vyre__null_argument(st, who, "pipeline");
  if (!form) return vyre__null_argument(st, who, "form");
  if (!writer.write) return vyre__null_argument(st, who, "writer.write");
  const vyre__backend *backend = pipeline->device->backend;
  if (backend->pipeline_print) {
    return backend->pipeline_print(pipeline, form, writer, st);
  }
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                   "ask a device that compiles, such as 'cpu'",
                   "device '%s' has no code to show",
                   vyre_device_name(pipeline->device));
}
