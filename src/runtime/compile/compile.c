/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiles programs. A compile takes these steps:
 *   check the program; find the pipeline in memory; find its artifact on disk;
 *   lower to LIR; generate the artifact; load it; store it.
 * Only the backend knows what an artifact contains. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vyre/pipeline.h"
#include "vyre/validate.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"
#include "hal/backend.h"
#include "ir/ir.h"
#include "runtime/compile/device_limits.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/device.h"
#include "runtime/core/fault_injection.h"
#include "runtime/core/fence.h"
#include "runtime/core/trace.h"
#include "runtime/core/work_queue.h"
#include "runtime/dispatch/bind.h"
#include "runtime/tune/apply.h"

/* --- checks --------------------------------------------------------------- */

static vyre_code check_buffers(const vyre_program *program, vyre_status *st) {
  for (size_t i = 0; i < program->buffer_count; i++) {
    const vyre_buffer_decl *buffer = &program->buffers[i];
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

vyre_code vyre__check_body(const vyre_program *program,
                           vyre_diagnostics *diagnostics, vyre_status *st) {
  if (program->function_count == 0) {
    return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                     "parse or build a kernel with a body",
                     "the program has buffers but no body");
  }
  return vyre_program_validate(program, diagnostics, vyre__status_open(st));
}

vyre_code vyre__check_program(const vyre_device *device,
                              const vyre_program *program,
                              vyre_diagnostics *diagnostics, vyre_status *st) {
  VYRE_TRY(vyre__check_body(program, diagnostics, st));
  if (program->item_type != VYRE_TYPE_VOID) {
    return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "create a queue for it with vyre_queue_create",
                     "device '%s' cannot dispatch kernel '%.60s': it is a "
                     "queue kernel",
                     device->backend->name, program->name);
  }
  return check_buffers(program, st);
}

/* Checks the program itself, and that the device supports all of it. */
static vyre_code check_program(const vyre_device *device,
                               const vyre_program *program,
                               vyre_diagnostics *diagnostics, vyre_status *st) {
  VYRE_TRY(vyre__check_program(device, program, diagnostics, st));
  return vyre__program_check_caps(device, program, st);
}

static vyre_code check_workgroup(const vyre_device *device,
                                 const uint32_t size[3], vyre_status *st) {
  const vyre_device_caps *caps = &device->caps;
  uint64_t product = 1;
  for (int axis = 0; axis < 3; axis++) {
    if (product <= caps->max_workgroup_invocations) product *= size[axis];
    uint32_t max = caps->max_workgroup[axis];
    if (size[axis] <= max) continue;
    if (size[axis] > caps->max_workgroup_invocations)
      continue; /* reported below */
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"size", size[axis]}, {"max", max}),
        "use a smaller workgroup; vyre_device_get_caps has the limits",
        "the workgroup has %u invocations on axis %c; '%s' allows at most %u",
        size[axis], "xyz"[axis], vyre_device_name(device), max);
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

/* --- lower, generate, load ------------------------------------------------ */

vyre_code vyre__pipeline_lower(const vyre_pipeline *pipeline, vyre_arena *arena,
                               const vyre__lir_kernel **out, vyre_status *st) {
  const vyre__backend *backend = pipeline->device->backend;
  vyre__target target;
  *out = NULL;
  if (!backend->target) return VYRE_OK;
  backend->target(pipeline, &target);
  memcpy(target.workgroup, pipeline->workgroup, sizeof target.workgroup);
  target.counts_iterations = pipeline->counts_iterations;
  return vyre__lower(pipeline->program, &target, VYRE__PASS_LEGALIZE_CONTROL,
                     arena, out, NULL, st);
}

/* Lowers the program and generates its artifact. Sets source->kernel instead if
 * the backend has no artifacts. */
static vyre_code generate(vyre_pipeline *pipeline, vyre__bytes *artifact,
                          vyre__code_source *source, vyre_status *st) {
  const vyre__backend *backend = pipeline->device->backend;
  const vyre__lir_kernel *kernel;
  if (!backend->generate) {
    return vyre__pipeline_lower(pipeline, &pipeline->arena, &source->kernel,
                                st);
  }
  vyre_arena scratch;
  vyre_arena_init(&scratch, pipeline->device->allocator);
  vyre_code code = vyre__pipeline_lower(pipeline, &scratch, &kernel, st);
  if (code == VYRE_OK) {
    code = backend->generate(pipeline, kernel, &scratch, artifact, st);
  }
  vyre_arena_deinit(&scratch);
  if (code == VYRE_OK && artifact->failed) {
    code = vyre__no_memory(st, "vyre_pipeline_compile", "bytes of code",
                           artifact->size);
  }
  source->artifact = artifact->data;
  source->size = artifact->size;
  return code;
}

static void count_compile(const vyre_pipeline *pipeline) {
  const vyre_device *device = pipeline->device;
  uint64_t points = vyre__count_grid_barriers(pipeline->program);
  VYRE__COUNT(device, compiles, 1);
  if (points == 0) return;
  VYRE__COUNT(device, grid_sync_splits, 1);
  VYRE__COUNT(device, grid_sync_segments, points + 1);
  VYRE__COUNT(device, grid_sync_points, points);
}

/* Loads the artifact that was found on disk. If the backend rejects it,
 * restores the pipeline and returns false. */
static bool load_entry(vyre_pipeline *pipeline,
                       const vyre__cache_entry *entry) {
  const vyre__backend *backend = pipeline->device->backend;
  vyre__arena_mark before = vyre__arena_here(&pipeline->arena);
  vyre_status st = {0};
  const vyre__code_source source = {.artifact = entry->artifact,
                                    .size = entry->artifact_size};
  bool is_loaded = backend->load(pipeline, &source, &st) == VYRE_OK;
  if (!is_loaded) {
    vyre__arena_rewind(&pipeline->arena, before);
    pipeline->host_plan = NULL;
    memset((unsigned char *)pipeline + sizeof *pipeline, 0,
           backend->pipeline_size - sizeof *pipeline);
  }
  vyre__cache_loaded(pipeline, is_loaded ? NULL : st.message);
  return is_loaded;
}

/* Notes that optimised code will replace the code of this pipeline, and that
 * the cache waits for it. */
static void mark_baseline(vyre_pipeline *pipeline,
                          const vyre__cache_lookup *lookup) {
  if (lookup->may_store) {
    pipeline->state->note.info.not_stored =
        "the optimised code will be stored once it is compiled";
  }
  atomic_store(&pipeline->state->is_baseline, true);
}

/* Generates, loads and stores the code of a pipeline. Baseline code is not
 * stored: the optimised code that replaces it is. */
static vyre_code compile_code(vyre_pipeline *pipeline,
                              vyre__cache_lookup *lookup, vyre_status *st) {
  vyre_device *device = pipeline->device;
  vyre__bytes artifact = {.allocator = device->allocator};
  vyre__bytes extra = {.allocator = device->allocator};
  bool is_replacement = pipeline->state->is_replacement;
  if (!is_replacement && vyre__fault(device->context, VYRE_FAULT_COMPILE)) {
    return vyre__fault_status(VYRE_FAULT_COMPILE, st);
  }
  vyre__code_source source = {.extra = lookup->may_store ? &extra : NULL};
  vyre_code code = generate(pipeline, &artifact, &source, st);
  if (code == VYRE_OK) code = device->backend->load(pipeline, &source, st);
  if (code == VYRE_OK) {
    if (!is_replacement) count_compile(pipeline);
    if (pipeline->is_baseline) {
      mark_baseline(pipeline, lookup);
    } else {
      vyre__cache_store(pipeline, lookup, &artifact, &extra);
    }
  }
  vyre__bytes_deinit(&artifact);
  vyre__bytes_deinit(&extra);
  return code;
}

static vyre_code find_or_compile_code(vyre_pipeline *pipeline,
                                      vyre_status *st) {
  vyre__cache_lookup lookup;
  vyre_code code = VYRE_OK;
  if (!vyre__cache_begin(pipeline, &lookup) ||
      !load_entry(pipeline, &lookup.file.entry)) {
    code = compile_code(pipeline, &lookup, st);
  }
  vyre__cache_end(&lookup);
  return code;
}

/* --- pipelines ------------------------------------------------------------ */

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
  static const uint32_t none[VYRE__TUNABLES];
  bool is_tuned = memcmp(pipeline->tuned, none, sizeof none) != 0;
  (void)snprintf(pipeline->id, sizeof pipeline->id, "%s:%s%s%s%s%s",
                 vyre_device_name(pipeline->device), hash, override, budget,
                 pipeline->counts_iterations ? ":counted" : "",
                 is_tuned ? ":tuned" : "");
}

static vyre_code create_state(vyre_pipeline *pipeline, vyre_status *st) {
  struct vyre__pipeline_state *state =
      vyre__alloc_zeroed(pipeline->device->allocator, sizeof *state);
  if (!state)
    return vyre__no_memory(st, "vyre_pipeline_compile", "pipelines", 1);
  atomic_init(&state->references, 1);
  pthread_mutex_init(&state->lock, NULL);
  vyre_arena_init(&state->texts, pipeline->device->allocator);
  pipeline->state = state;
  return VYRE_OK;
}

/* Conditions of a compile besides its inputs. */
typedef struct compile_mode {
  bool is_fresh;                 /* without the cache on disk */
  bool is_replacement;           /* of baseline code */
  const vyre__code_source *code; /* from a package; NULL: find or compile it */
} compile_mode;

/* Loads code from a package. */
static vyre_code load_given(vyre_pipeline *pipeline,
                            const vyre__code_source *source, vyre_status *st) {
  static const char reason[] = "the code came from a package";
  pipeline->state->note.info = (vyre_cache_info){.result = VYRE_CACHE_OFF,
                                                 .reason = reason,
                                                 .entry = "",
                                                 .not_stored = reason};
  return pipeline->device->backend->load(pipeline, source, st);
}

static vyre_code init(vyre_pipeline *pipeline, compile_mode mode,
                      vyre_status *st) {
  VYRE_TRY(create_state(pipeline, st));
  pipeline->state->is_fresh = mode.is_fresh;
  pipeline->state->is_replacement = mode.is_replacement;
  VYRE_TRY(check_workgroup(pipeline->device, pipeline->workgroup, st));
  name_pipeline(pipeline);
  VYRE_TRY(vyre_binding_plan_build(pipeline->program, &pipeline->arena,
                                   &pipeline->plan, vyre__status_open(st)));
  VYRE_TRY(vyre__binding_infos_build(pipeline, st));
  vyre__device_buffers_prefer(pipeline->device, &pipeline->plan);
  if (mode.code) return load_given(pipeline, mode.code, st);
  uint64_t start = vyre__clock_ns();
  vyre_code code = find_or_compile_code(pipeline, st);
  pipeline->state->compile_ns = vyre__clock_ns() - start;
  return code;
}

/* Creates a pipeline that does not retain its device. */
static vyre_code create(const vyre_pipeline *wanted, compile_mode mode,
                        vyre_pipeline **out, vyre_status *st) {
  vyre_device *device = wanted->device;
  size_t size = device->backend->pipeline_size;
  vyre_pipeline *pipeline = vyre__alloc_zeroed(device->allocator, size);
  if (!pipeline) {
    return vyre__no_memory(st, "vyre_pipeline_compile", "pipelines", 1);
  }
  *pipeline = *wanted;
  vyre_program_retain(wanted->program);
  vyre_arena_init(&pipeline->arena, device->allocator);
  uint64_t start = vyre__trace_begin(device->context);
  if (!mode.is_replacement) atomic_fetch_add(&device->state->compiling, 1);
  vyre_code code = init(pipeline, mode, st);
  if (!mode.is_replacement) atomic_fetch_sub(&device->state->compiling, 1);
  vyre__trace_end(device->context, start, .kind = VYRE__TRACE_COMPILE,
                  .name = wanted->program->name, .pipeline = pipeline->id,
                  .device = device, .result = code);
  if (code != VYRE_OK) {
    vyre__pipeline_destroy(pipeline);
    return code;
  }
  *out = pipeline;
  return VYRE_OK;
}

vyre_code vyre__pipeline_create(const vyre_pipeline *wanted, bool is_fresh,
                                vyre_pipeline **out, vyre_status *st) {
  const compile_mode mode = {.is_fresh = is_fresh};
  VYRE_TRY(create(wanted, mode, out, st));
  vyre_device_retain(wanted->device);
  return VYRE_OK;
}

vyre_code vyre__pipeline_create_from(const vyre_pipeline *wanted,
                                     const vyre__code_source *code,
                                     vyre_pipeline **out, vyre_status *st) {
  const compile_mode mode = {.code = code};
  VYRE_TRY(vyre__program_check_caps(wanted->device, wanted->program, st));
  VYRE_TRY(create(wanted, mode, out, st));
  vyre_device_retain(wanted->device);
  return VYRE_OK;
}

vyre_code vyre__pipeline_create_replacement(const vyre_pipeline *wanted,
                                            bool is_fresh, vyre_pipeline **out,
                                            vyre_status *st) {
  const compile_mode mode = {.is_fresh = is_fresh, .is_replacement = true};
  return create(wanted, mode, out, st);
}

bool vyre__wants_baseline(const vyre_device *device,
                          const vyre_compile_options *options) {
  return device->backend->pipeline_replace_code &&
         (options->tier == VYRE_TIER_BASELINE ||
          (options->tier == VYRE_TIER_AUTO && options->ulp_budget == 0));
}

vyre_code vyre__pipeline_reach_tier(vyre_pipeline *pipeline, vyre_tier tier,
                                    vyre_status *st) {
  if (tier == VYRE_TIER_OPTIMISED) return vyre__optimise_now(pipeline, st);
  if (tier == VYRE_TIER_AUTO) vyre__optimise_later(pipeline);
  return VYRE_OK;
}

vyre_pipeline vyre__pipeline_request(vyre_device *device, vyre_program *program,
                                     const vyre_compile_options *options) {
  static const vyre_compile_options defaults = {{0}, 0};
  if (!options) options = &defaults;
  vyre_pipeline wanted = {.device = device,
                          .program = program,
                          .ulp_budget = options->ulp_budget,
                          .is_baseline = vyre__wants_baseline(device, options),
                          .ignores_tuning = options->ignores_tuning,
                          .float_ops = device->caps.float_ops};
  vyre__workgroup_resolve(options->workgroup, program->workgroup,
                          wanted.workgroup);
  return wanted;
}

/* --- queues --------------------------------------------------------------- */

/* Returns the next of at most @p max queues in turn. */
static vyre__queue **next_queue(vyre_device *device, vyre__queue **queues,
                                long max) {
  uint32_t count = max < 1                 ? 1
                   : max > VYRE__COMPILERS ? VYRE__COMPILERS
                                           : (uint32_t)max;
  uint32_t turn = atomic_fetch_add(&device->state->compiles_begun, 1);
  return &queues[turn % count];
}

/* Uses half of the processors, as the others run dispatches. */
vyre__queue **vyre__next_optimise_queue(vyre_device *device) {
  return next_queue(device, device->state->optimise_queues,
                    sysconf(_SC_NPROCESSORS_ONLN) / 2);
}

/* Queues a compile. Frees @p fence if that fails. */
static vyre_code queue_compile(vyre_device *device, vyre_fence *fence,
                               vyre_status *st) {
  vyre__queue **queue = next_queue(device, device->state->compile_queues,
                                   sysconf(_SC_NPROCESSORS_ONLN));
  vyre_code code = vyre__queue_push(device, queue, fence, st);
  if (code == VYRE_OK) return VYRE_OK;
  fence->cleanup(fence);
  vyre__fence_discard(fence);
  return code;
}

/* --- compiling ------------------------------------------------------------ */

static vyre_code compile_or_share(const vyre_pipeline *wanted,
                                  vyre_pipeline **out,
                                  vyre_diagnostics *diagnostics,
                                  vyre_status *st) {
  *out = vyre__table_find(wanted);
  if (*out) return VYRE_OK; /* the program was validated before */
  VYRE_TRY(check_program(wanted->device, wanted->program, diagnostics, st));
  VYRE_TRY(vyre__pipeline_create(wanted, false, out, st));
  *out = vyre__table_share(*out);
  return VYRE_OK;
}

/* Compiles what the options ask for besides the pipeline itself. */
static vyre_code complete(vyre_pipeline *pipeline,
                          const vyre_compile_options *options,
                          vyre_status *st) {
  vyre_tier tier = options ? options->tier : VYRE_TIER_AUTO;
  VYRE_TRY(vyre__pipeline_reach_tier(pipeline, tier, st));
  VYRE_TRY(vyre__tuned_attach(pipeline, tier, st));
  if (!options || !options->counts_iterations) return VYRE_OK;
  return vyre__pipeline_count(pipeline, 1, options->tier, st);
}

vyre_code vyre_pipeline_compile(vyre_device *device, vyre_program *program,
                                const vyre_compile_options *options,
                                vyre_pipeline **out,
                                vyre_diagnostics *diagnostics,
                                vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE_BOTH(st, device, program);
  VYRE_TRY(vyre__device_check(device, st));
  if (options) VYRE_TRY(vyre__check_compile_options(__func__, options, st));
  if (options && options->timeout_ns != 0) {
    /* An abandoned compile cannot use @p diagnostics. */
    VYRE_TRY(check_program(device, program, diagnostics, st));
    return vyre__compile_within(device, program, NULL, options, out, st);
  }
  vyre_pipeline wanted = vyre__pipeline_request(device, program, options);
  VYRE_TRY(compile_or_share(&wanted, out, diagnostics, st));
  vyre_code code = complete(*out, options, st);
  if (code != VYRE_OK) {
    vyre_pipeline_release(*out);
    *out = NULL;
  }
  return code;
}

vyre_code vyre__pipeline_compile_tuned(vyre_device *device,
                                       vyre_program *program,
                                       const vyre__settings *settings,
                                       vyre_tier tier, vyre_pipeline **out,
                                       vyre_status *st) {
  const vyre_compile_options options = {
      .workgroup = {settings->workgroup}, .tier = tier, .ignores_tuning = true};
  *out = NULL;
  VYRE_TRY(vyre__device_check(device, st));
  vyre_pipeline wanted = vyre__pipeline_request(device, program, &options);
  memcpy(wanted.tuned, settings->tuned, sizeof wanted.tuned);
  VYRE_TRY(compile_or_share(&wanted, out, NULL, st));
  vyre_code code = vyre__pipeline_reach_tier(*out, tier, st);
  if (code == VYRE_OK) return VYRE_OK;
  vyre_pipeline_release(*out);
  *out = NULL;
  return code;
}

vyre_code vyre__pipeline_compile_part(vyre_device *device,
                                      vyre_program *program,
                                      const vyre_compile_options *options,
                                      vyre_pipeline **out, vyre_status *st) {
  vyre_compile_options own = *options;
  memset(own.workgroup, 0, sizeof own.workgroup);
  vyre_pipeline wanted = vyre__pipeline_request(device, program, &own);
  *out = vyre__table_find(&wanted);
  if (!*out) {
    VYRE_TRY(vyre__program_check_caps(device, program, st));
    VYRE_TRY(vyre__pipeline_create(&wanted, false, out, st));
    *out = vyre__table_share(*out);
  }
  vyre_code code = complete(*out, &own, st);
  if (code == VYRE_OK) return VYRE_OK;
  vyre_pipeline_release(*out);
  *out = NULL;
  return code;
}

vyre_code vyre__pipeline_compile_fresh(vyre_device *device,
                                       vyre_program *program,
                                       const vyre_compile_options *options,
                                       vyre_pipeline **out, vyre_status *st) {
  *out = NULL;
  VYRE_TRY(vyre__device_check(device, st));
  VYRE_TRY(check_program(device, program, NULL, st));
  vyre_pipeline wanted = vyre__pipeline_request(device, program, options);
  wanted.is_baseline = false;
  return vyre__pipeline_create(&wanted, true, out, st);
}

vyre_code vyre__pipeline_compile_as(vyre_device *device, vyre_program *program,
                                    const vyre_float_op_info *float_ops,
                                    vyre_pipeline **out, vyre_status *st) {
  *out = NULL;
  vyre_pipeline wanted = vyre__pipeline_request(device, program, NULL);
  wanted.is_baseline = false;
  wanted.float_ops = float_ops;
  return vyre__pipeline_create(&wanted, true, out, st);
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
  if (!out) return vyre__null_argument(st, __func__, "fence");
  *out = NULL;
  VYRE_REQUIRE_BOTH(st, device, program);
  if (options) VYRE_TRY(vyre__check_compile_options(__func__, options, st));
  vyre_fence *fence;
  VYRE_TRY(vyre__fence_make(device->context, sizeof(compile_work), &fence, st));
  compile_work *work = (compile_work *)fence;
  if (options) work->options = *options;
  work->device = vyre_device_retain(device);
  work->program = vyre_program_retain(program);
  fence->work = compile;
  fence->cleanup = compile_cleanup;
  fence->on_free = compile_on_free;
  VYRE_TRY(queue_compile(device, fence, st));
  *out = fence;
  return VYRE_OK;
}
