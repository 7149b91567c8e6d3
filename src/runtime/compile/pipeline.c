/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Pipelines after their compile: references, variants and properties. */
#include "vyre/pipeline.h"

#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "ir/ir.h"
#include "lower/trip_count.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/device.h"
#include "runtime/dispatch/prepared.h"
#include "runtime/package/package.h"
#include "runtime/tune/apply.h"

/* --- references ----------------------------------------------------------- */

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

void vyre__pipeline_destroy(vyre_pipeline *pipeline) {
  vyre_device *device = pipeline->device;
  struct vyre__pipeline_state *state = pipeline->state;
  if (state) {
    vyre__pipeline_drop_runs(pipeline);
    pthread_mutex_destroy(&state->lock);
    vyre_arena_deinit(&state->texts);
    vyre_package_release(state->package);
    vyre__resize(device->allocator, state, sizeof *state, 0);
  }
  vyre_arena_deinit(&pipeline->arena);
  vyre_program_release(pipeline->program);
  vyre__resize(device->allocator, pipeline, device->backend->pipeline_size, 0);
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
  /* Command lists of batches use this pipeline and its variants. */
  vyre__pipeline_drop_runs(pipeline);
  vyre__optimise_end(pipeline);
  vyre__tuned_free(pipeline->device->allocator,
                   atomic_load(&pipeline->state->tuned));
  vyre_pipeline *variant = atomic_load(&pipeline->state->variants);
  while (variant) {
    vyre_pipeline *next = variant->state->next_variant;
    vyre_pipeline_release(variant);
    variant = next;
  }
  const vyre__backend *backend = pipeline->device->backend;
  if (backend->pipeline_deinit) backend->pipeline_deinit(pipeline);
  vyre__pipeline_destroy(pipeline);
}

/* --- variants ------------------------------------------------------------- */

vyre_pipeline vyre__pipeline_like(const vyre_pipeline *pipeline,
                                  const uint32_t workgroup[3],
                                  uint8_t ulp_budget) {
  vyre_pipeline wanted = {.device = pipeline->device,
                          .program = pipeline->program,
                          .ulp_budget = ulp_budget,
                          .float_ops = pipeline->float_ops};
  vyre__workgroup_resolve(workgroup, pipeline->workgroup, wanted.workgroup);
  return wanted;
}

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
static vyre_code add_variant(vyre_pipeline *pipeline, vyre_pipeline *wanted,
                             vyre_tier tier, vyre_pipeline **out,
                             vyre_status *st) {
  struct vyre__pipeline_state *state = pipeline->state;
  const vyre_compile_options options = {.ulp_budget = wanted->ulp_budget,
                                        .tier = tier};
  vyre_code code = VYRE_OK;
  wanted->is_baseline = vyre__wants_baseline(pipeline->device, &options);
  pthread_mutex_lock(&state->lock);
  *out = find_variant(pipeline, wanted->workgroup, wanted->ulp_budget,
                      wanted->counts_iterations);
  if (!*out) {
    code = state->package
               ? vyre__package_load(state->package, state->package_kernel,
                                    wanted, state->may_compile, out, st)
               : vyre__pipeline_create(wanted, state->is_fresh, out, st);
    if (code == VYRE_OK) {
      (*out)->state->next_variant = atomic_load(&state->variants);
      atomic_store_explicit(&state->variants, *out, memory_order_release);
    }
  }
  pthread_mutex_unlock(&state->lock);
  VYRE_TRY(code);
  return vyre__pipeline_reach_tier(*out, tier, st);
}

/* Counter of loop iterations in compiled code: 32 bits. */
static const uint64_t max_counted_iterations = UINT32_MAX;

/* Computes the proven bound of the loop iterations of one invocation, once for each
 * pipeline. Kernels without a bound get UINT64_MAX - 1. */
static vyre_code find_iteration_bound(vyre_pipeline *pipeline, uint64_t *bound,
                                      vyre_status *st) {
  _Atomic uint64_t *cached = &pipeline->state->iteration_bound; /* bound + 1 */
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
  VYRE_CHECK_RESERVED(st, "vyre_dispatch_desc.variant", options);
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
                             uint64_t max_iterations, vyre_tier tier,
                             vyre_status *st) {
  uint64_t bound;
  VYRE_TRY(find_uncounted(variant, max_iterations, &bound, st));
  if (bound == 0) return VYRE_OK; /* the code is exact for this limit */
  vyre_pipeline wanted =
      vyre__pipeline_like(pipeline, variant->workgroup, variant->ulp_budget);
  wanted.counts_iterations = true;
  vyre_pipeline *counted;
  return add_variant(pipeline, &wanted, tier, &counted, st);
}

vyre_code vyre__pipeline_count(vyre_pipeline *pipeline, uint64_t max_iterations,
                               vyre_tier tier, vyre_status *st) {
  return add_counted(pipeline, pipeline, max_iterations, tier, st);
}

vyre_code vyre_pipeline_add_variant(vyre_pipeline *pipeline,
                                    const vyre_compile_options *options,
                                    vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE_BOTH(st, pipeline, options);
  VYRE_TRY(vyre__check_compile_options(__func__, options, st));
  VYRE_TRY(vyre__device_check(pipeline->device, st));
  if (options->timeout_ns != 0) {
    return vyre__compile_within(pipeline->device, pipeline->program, pipeline,
                                options, NULL, st);
  }
  vyre_pipeline wanted =
      vyre__pipeline_like(pipeline, options->workgroup, options->ulp_budget);
  vyre_pipeline *variant;
  VYRE_TRY(add_variant(pipeline, &wanted, options->tier, &variant, st));
  if (!options->counts_iterations) return VYRE_OK;
  return add_counted(pipeline, variant, 1, options->tier, st);
}

vyre_code vyre__check_compile_options(const char *function,
                                      const vyre_compile_options *options,
                                      vyre_status *st) {
  VYRE_CHECK_RESERVED(st, function, options);
  if ((unsigned)options->tier <= VYRE_TIER_OPTIMISED) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "tier",
      VYRE_NUMBERS({"tier", (unsigned)options->tier},
                   {"max", VYRE_TIER_OPTIMISED}),
      "set it to a value of vyre_tier",
      "%s: vyre_compile_options.tier is %u; the largest value is %d", function,
      (unsigned)options->tier, VYRE_TIER_OPTIMISED);
}

vyre_code vyre__refuse_compile_timeout(const char *function,
                                       const vyre_compile_options *options,
                                       vyre_status *st) {
  if (options->timeout_ns == 0) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "timeout_ns",
      VYRE_NUMBERS({"timeout_ns", options->timeout_ns}),
      "set it to 0: only compiles for a device have a time limit",
      "%s: vyre_compile_options.timeout_ns is %llu; a package has no limit",
      function, (unsigned long long)options->timeout_ns);
}

/* --- properties ----------------------------------------------------------- */

void vyre__workgroup_resolve(const uint32_t asked[3], const uint32_t own[3],
                             uint32_t out[3]) {
  bool given = asked[0] | asked[1] | asked[2];
  for (int axis = 0; axis < 3; axis++) {
    out[axis] = !given ? own[axis] : asked[axis] ? asked[axis] : 1;
  }
}

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

uint64_t vyre__count_grid_barriers(const vyre_program *program) {
  uint64_t count = 0;
  for (uint32_t i = 0; i < program->node_count; i++) {
    count += program->nodes[i].op == VYRE__OP_GRID_BARRIER;
  }
  return count;
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
  out->grid_barriers = (uint32_t)vyre__count_grid_barriers(program);
  if (backend->pipeline_describe) backend->pipeline_describe(pipeline, out);
  return true;
}

vyre_code vyre_pipeline_print(vyre_pipeline *pipeline, const char *form,
                              vyre_writer writer, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE_BOTH(st, pipeline, form);
  VYRE_REQUIRE(st, writer.write);
  const vyre__backend *backend = pipeline->device->backend;
  if (!backend->pipeline_print) {
    return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "use a device that compiles kernels, such as 'cpu'",
                     "device '%s' cannot print code",
                     vyre_device_name(pipeline->device));
  }
  if (pipeline->state->package) {
    return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "compile the program with vyre_pipeline_compile to print "
                     "its code",
                     "pipeline '%s' was loaded from a package, which holds no "
                     "code that can be printed",
                     pipeline->id);
  }
  /* Baseline code will be replaced, so it is not the code of the pipeline. */
  VYRE_TRY(vyre__optimise_now(pipeline, st));
  vyre_arena scratch;
  const vyre__lir_kernel *kernel;
  vyre_arena_init(&scratch, pipeline->device->allocator);
  vyre_code code = vyre__pipeline_lower(pipeline, &scratch, &kernel, st);
  if (code == VYRE_OK) {
    code =
        backend->pipeline_print(pipeline, kernel, &scratch, form, writer, st);
  }
  vyre_arena_deinit(&scratch);
  return code;
}
