/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pipelines: compiling a program for a device, variants, and the optimised tier
 * that replaces a baseline tier in the background. */
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
                               const char *kernel, const char *reason) {
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                   "remove it from the kernel: no device of this version "
                   "supports it",
                   "device '%s' cannot compile kernel '%.60s': %s",
                   device->backend->name, kernel, reason);
}

static vyre_code check_buffers(const vyre_device *device,
                               const vyre_program *program, vyre_status *st) {
  for (size_t i = 0; i < program->buffer_count; i++) {
    const vyre_buffer_decl *buffer = &program->buffers[i];
    if (buffer->kind == VYRE_MEMORY_PERSISTENT) {
      /* A pipeline has no state: every dispatch of it gives the same results,
       * however often it runs (docs/reference/contract.md). */
      return VYRE_FAIL(
          st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
          "remove `persistent`, and bind one device buffer "
          "(vyre_buffer_create) as its input and its output: it stays on "
          "the device between dispatches",
          "device '%s' cannot compile kernel '%.60s': buffer '%.60s' is "
          "persistent, but a pipeline has no state between dispatches",
          device->backend->name, program->name, buffer->name);
    }
    if (vyre__is_shared(buffer) && buffer->pipeline_live_out) {
      return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                       "write the result to a buffer that is not shared",
                       "shared buffer '%.100s' is live_out, but each "
                       "workgroup has its own copy",
                       buffer->name);
    }
  }
  return VYRE_OK;
}

/* Checks the program itself, and that this version supports all of it. */
static vyre_code check_program(const vyre_device *device,
                               const vyre_program *program,
                               vyre_diagnostics *diagnostics, vyre_status *st) {
  if (program->function_count == 0) {
    return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                     "parse or build a kernel with a body",
                     "the program has buffers but no body");
  }
  VYRE_TRY(vyre_program_validate(program, diagnostics, vyre__status_open(st)));
  if (program->item_type != VYRE_TYPE_VOID) {
    return not_supported(
        st, device, program->name,
        "it is a queue kernel, and this version does not run queues");
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
    if (size[axis] > caps->max_workgroup_invocations)
      continue; /* reported below */
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"size", size[axis]}, {"max", caps->max_workgroup[axis]}),
        "use a smaller workgroup; vyre_device_get_caps has the limits",
        "the workgroup has %u invocations on axis %c; '%s' allows at most %u",
        size[axis], "xyz"[axis], vyre_device_name(device),
        caps -> max_workgroup[axis]);
  }
  if (product <= caps->max_workgroup_invocations) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
      VYRE_NUMBERS({"max_invocations", caps->max_workgroup_invocations}),
      "use a smaller workgroup; `vyre devices` lists the limits",
      "a workgroup of %u x %u x %u is too large; '%s' allows at most %u "
      "invocations",
      size[0], size[1], size[2], vyre_device_name(device),
      caps->max_workgroup_invocations);
}

/* --- creation ------------------------------------------------------------- */

void vyre__pipeline_drop_runs(vyre_pipeline *pipeline) {
  for (int i = 0; i < VYRE__PREPARED_PER_PIPELINE; i++) {
    vyre__prepared *prepared = pipeline->state->runs[i].run; /* idle */
    pipeline->state->runs[i].run = NULL;
    if (prepared) vyre__prepared_free(prepared);
  }
  vyre__prepared *spare = atomic_exchange(&pipeline->state->spare, NULL);
  while (spare) {
    vyre__prepared *next = spare->next_spare;
    vyre__prepared_free(spare);
    spare = next;
  }
}

/* Frees a pipeline after pipeline_deinit, or if pipeline_init was not
 * called. */
static void destroy(vyre_pipeline *pipeline) {
  vyre_device *device = pipeline->device;
  struct vyre__pipeline_state *state = pipeline->state;
  if (state) {
    vyre__pipeline_drop_runs(pipeline);
    pthread_mutex_destroy(&state->lock);
    vyre_arena_deinit(&state->texts);
    vyre__resize(device->allocator, state, sizeof *state, 0);
  }
  vyre_arena_deinit(&pipeline->arena);
  vyre_program_release(pipeline->program);
  vyre__resize(device->allocator, pipeline, device->backend->pipeline_size, 0);
}

/* Builds an id that is unique for a device, a program and its options. */
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

static vyre_code create_state(vyre_pipeline *pipeline, vyre_status *st) {
  struct vyre__pipeline_state *state =
      vyre__resize(pipeline->device->allocator, NULL, 0, sizeof *state);
  if (!state)
    return vyre__no_memory(st, "vyre_pipeline_compile", "pipelines", 1);
  memset(state, 0, sizeof *state);
  atomic_init(&state->references, 1);
  pthread_mutex_init(&state->lock, NULL);
  vyre_arena_init(&state->texts, pipeline->device->allocator);
  pipeline->state = state;
  return VYRE_OK;
}

/* Counts the grid barriers in the source: one in a loop counts once. */
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
  VYRE_TRY(create_state(pipeline, st));
  VYRE_TRY(check_workgroup(device, pipeline->workgroup, st));
  name_pipeline(pipeline);
  VYRE_TRY(vyre_binding_plan_build(pipeline->program, &pipeline->arena,
                                   &pipeline->plan, vyre__status_open(st)));
  VYRE_TRY(vyre__binding_infos_build(pipeline, st));
  vyre__cache_lookup lookup;
  if (is_fresh) {
    pipeline->state->is_fresh = true;
    vyre__cache_skip(pipeline);
    return build(pipeline, st);
  }
  if (vyre__cache_load(pipeline, &lookup)) {
    vyre__cache_end(pipeline, &lookup, false);
    return VYRE_OK;
  }
  vyre_code code = build(pipeline, st);
  vyre__cache_end(pipeline, &lookup, code == VYRE_OK && !pipeline->is_baseline);
  if (pipeline->is_baseline) {
    pipeline->state->note.not_stored =
        "the optimised code will be stored once it is compiled";
    atomic_store(&pipeline->state->needs_optimised, true);
  }
  return code;
}

enum {
  FRESH = 1,  /* neither read nor write the cache on disk */
  COUNTS = 2, /* vyre_pipeline.counts_iterations */
};

static vyre_code create(vyre_device *device, vyre_program *program,
                        const vyre_compile_options *options,
                        const vyre_float_op_info *float_ops, unsigned flags,
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
  pipeline->float_ops = float_ops;
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

/* --- the optimised tier --------------------------------------------------- */

/* Returns the next compile queue in turn. Uses as many queues as there are
 * processors. */
static vyre__queue **next_compile_queue(vyre_device *device) {
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  uint32_t queues = processors < 1                 ? 1
                    : processors > VYRE__COMPILERS ? VYRE__COMPILERS
                                                   : (uint32_t)processors;
  uint32_t turn = atomic_fetch_add(&device->state->compiles_begun, 1);
  return &device->state->compile_queues[turn % queues];
}

typedef struct optimise_work {
  vyre_fence fence;
  vyre_pipeline *baseline; /* retained */
} optimise_work;

/* Compiles the optimised tier through the cache, and moves its code to the
 * baseline pipeline. After a failure, the baseline tier stays. */
static vyre_code optimise(vyre_fence *fence, vyre_status *st) {
  vyre_pipeline *baseline = ((optimise_work *)fence)->baseline, *full;
  vyre_compile_options options = {.ulp_budget = baseline->ulp_budget};
  memcpy(options.workgroup, baseline->workgroup, sizeof options.workgroup);
  VYRE_TRY(create(baseline->device, baseline->program, &options,
                  baseline->float_ops, 0, &full, st));
  baseline->device->backend->pipeline_replace_code(baseline, full);
  vyre_pipeline_release(full);
  return VYRE_OK;
}

static void optimise_cleanup(vyre_fence *fence) {
  vyre_pipeline_release(((optimise_work *)fence)->baseline);
}

/* Queues the compile of the optimised tier. No caller waits for it; without
 * memory or a thread, the baseline tier stays. */
static void queue_optimise(vyre_pipeline *pipeline) {
  vyre_device *device = pipeline->device;
  vyre_fence *fence;
  if (!atomic_exchange(&pipeline->state->needs_optimised, false)) return;
  if (vyre__fence_make(device->context, sizeof(optimise_work), &fence, NULL) !=
      VYRE_OK) {
    return;
  }
  ((optimise_work *)fence)->baseline = vyre_pipeline_retain(pipeline);
  fence->work = optimise;
  fence->cleanup = optimise_cleanup;
  if (vyre__queue_push(device, next_compile_queue(device), fence, NULL) ==
      VYRE_OK) {
    vyre_fence_release(fence);
    return;
  }
  optimise_cleanup(fence);
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
  if (*out) return VYRE_OK; /* the program was validated before */
  VYRE_TRY(check_program(device, program, diagnostics, st));
  VYRE_TRY(
      create(device, program, options, device->caps.float_ops, 0, out, st));
  *out = vyre__table_share(*out);
  queue_optimise(*out);
  return VYRE_OK;
}

vyre_code vyre_pipeline_compile(vyre_device *device, vyre_program *program,
                                const vyre_compile_options *options,
                                vyre_pipeline **out,
                                vyre_diagnostics *diagnostics,
                                vyre_status *st) {
  vyre__status_begin(st);
  static const char function[] = "vyre_pipeline_compile";
  static const vyre_compile_options defaults = {{0}, 0};
  if (!out) return vyre__null_argument(st, function, "out");
  *out = NULL;
  if (!device) return vyre__null_argument(st, function, "device");
  if (!program) return vyre__null_argument(st, function, "program");
  VYRE_TRY(vyre__device_check(device, st));
  if (!options) options = &defaults;
  VYRE_CHECK_RESERVED(st, function, options);
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
                                    const vyre_float_op_info *float_ops,
                                    vyre_pipeline **out, vyre_status *st) {
  static const vyre_compile_options defaults = {{0}, 0};
  *out = NULL;
  return create(device, program, &defaults, float_ops, FRESH, out, st);
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

/* --- asynchronous compiles ------------------------------------------------ */

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

static void compile_cleanup(vyre_fence *fence) {
  compile_work *work = (compile_work *)fence;
  vyre_program_release(work->program);
  vyre_device_release(work->device);
}

static void compile_on_free(vyre_fence *fence) {
  vyre_pipeline_release(fence->pipeline);
}

vyre_code vyre_pipeline_compile_async(vyre_device *device,
                                      vyre_program *program,
                                      const vyre_compile_options *options,
                                      vyre_fence **out, vyre_status *st) {
  vyre__status_begin(st);
  static const char function[] = "vyre_pipeline_compile_async";
  if (!out) return vyre__null_argument(st, function, "fence");
  *out = NULL;
  if (!device) return vyre__null_argument(st, function, "device");
  if (!program) return vyre__null_argument(st, function, "program");
  if (options) VYRE_CHECK_RESERVED(st, function, options);
  vyre_fence *fence;
  VYRE_TRY(vyre__fence_make(device->context, sizeof(compile_work), &fence, st));
  compile_work *work = (compile_work *)fence;
  if (options) work->options = *options;
  work->device = vyre_device_retain(device);
  work->program = vyre_program_retain(program);
  fence->work = compile;
  fence->cleanup = compile_cleanup;
  fence->on_free = compile_on_free;
  vyre_code code =
      vyre__queue_push(device, next_compile_queue(device), fence, st);
  if (code != VYRE_OK) {
    compile_cleanup(fence);
    vyre__fence_discard(fence);
    return code;
  }
  *out = fence;
  return VYRE_OK;
}

/* --- variants ------------------------------------------------------------- */

static vyre_pipeline *find_variant(vyre_pipeline *pipeline,
                                   const uint32_t workgroup[3],
                                   uint8_t ulp_budget, bool counts_iterations) {
  vyre_pipeline *at = pipeline;
  vyre_pipeline *next =
      atomic_load_explicit(&pipeline->state->variants, memory_order_acquire);
  for (; at; at = next, next = at ? at->state->next_variant : NULL) {
    if (at->ulp_budget == ulp_budget &&
        at->counts_iterations == counts_iterations &&
        memcmp(at->workgroup, workgroup, sizeof at->workgroup) == 0) {
      return at;
    }
  }
  return NULL;
}

/* Compiles a variant and adds it to @p pipeline, unless it exists. */
static vyre_code add_variant(vyre_pipeline *pipeline,
                             const vyre_compile_options *options,
                             bool counts_iterations, vyre_pipeline **out,
                             vyre_status *st) {
  struct vyre__pipeline_state *state = pipeline->state;
  vyre_code code = VYRE_OK;
  pthread_mutex_lock(&state->lock);
  *out = find_variant(pipeline, options->workgroup, options->ulp_budget,
                      counts_iterations);
  if (!*out) {
    code = create(
        pipeline->device, pipeline->program, options, pipeline->float_ops,
        (counts_iterations ? COUNTS : 0) | (state->is_fresh ? FRESH : 0), out,
        st);
    if (code == VYRE_OK) {
      (*out)->state->next_variant = atomic_load(&state->variants);
      atomic_store_explicit(&state->variants, *out, memory_order_release);
    }
  }
  pthread_mutex_unlock(&state->lock);
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
                   "call vyre_pipeline_add_variant with these options first",
                   "pipeline '%s' has no variant for a workgroup of "
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
      "the dispatch",
      "pipeline '%s' does not count loop iterations: it needs at most %llu of "
      "them, and max_loop_iterations is %llu",
      uncounted->id, (unsigned long long)bound,
      (unsigned long long)desc->max_loop_iterations);
}

/* Adds a variant like @p variant that counts iterations, if a limit of
 * @p max_iterations needs it. */
static vyre_code add_counted(vyre_pipeline *pipeline, vyre_pipeline *variant,
                             uint64_t max_iterations, vyre_status *st) {
  uint64_t bound;
  VYRE_TRY(find_uncounted(variant, max_iterations, &bound, st));
  if (bound == 0) return VYRE_OK; /* the code is exact for this limit */
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
  static const char function[] = "vyre_pipeline_add_variant";
  if (!pipeline) return vyre__null_argument(st, function, "pipeline");
  if (!options) return vyre__null_argument(st, function, "options");
  VYRE_CHECK_RESERVED(st, function, options);
  VYRE_TRY(vyre__device_check(pipeline->device, st));
  vyre_compile_options wanted = *options;
  wanted.is_baseline = false; /* a variant always has the optimised tier */
  vyre__workgroup_resolve(options->workgroup, pipeline->workgroup,
                          wanted.workgroup);
  vyre_pipeline *variant;
  VYRE_TRY(add_variant(pipeline, &wanted, false, &variant, st));
  if (!options->counts_iterations) return VYRE_OK;
  return add_counted(pipeline, variant, 1, st);
}

/* --- properties ----------------------------------------------------------- */

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
  static const char function[] = "vyre_pipeline_print";
  if (!pipeline) return vyre__null_argument(st, function, "pipeline");
  if (!form) return vyre__null_argument(st, function, "form");
  if (!writer.write) return vyre__null_argument(st, function, "writer.write");
  const vyre__backend *backend = pipeline->device->backend;
  if (backend->pipeline_print) {
    return backend->pipeline_print(pipeline, form, writer, st);
  }
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                   "use a device that compiles kernels, such as 'cpu'",
                   "device '%s' cannot print code",
                   vyre_device_name(pipeline->device));
}
