/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The backend table of the reference interpreter. */
#include "backend/ref/ref.h"

#include <string.h>

#include "vyre/validate.h"
#include "vyre/version.h"

#include "analyze/inline/inline.h"
#include "base/memory.h"
#include "base/status.h"
#include "ir/scalar.h"
#include "lang/builtins.h"

static bool describe(const vyre__backend *self, uint32_t index,
                     vyre_device_info *out) {
  (void)self;
  if (index > 0) return false;
  out->description = "interpreter";
  out->driver = "vyre " VYRE_VERSION_STRING;
  out->note =
      "reference interpreter: always available, checks kernels, one thread per "
      "dispatch";
  return true;
}

static vyre_code device_init(vyre_device *device, vyre_status *st) {
  (void)st;
  device->caps = (vyre_device_caps){
      .max_workgroup = {VYRE_MAX_INVOCATIONS, VYRE_MAX_INVOCATIONS,
                        VYRE_MAX_INVOCATIONS},
      .max_workgroup_invocations = VYRE_MAX_INVOCATIONS,
      .max_shared_bytes = VYRE_MAX_SHARED_BYTES,
      .max_buffer_bytes = SIZE_MAX / 2,
      .host_alignment = 1,
      .borrows_host_memory = true,
      .has_checks = true,
      .has_print = true,
      .has_f64 = true,
      .has_u64 = true,
      .has_atomics64 = true};
  return VYRE_OK;
}

static vyre_code load(vyre_pipeline *pipeline, const vyre__code_source *source,
                      vyre_status *st) {
  (void)source; /* it interprets the program */
  ref_pipeline *ref = (ref_pipeline *)pipeline;
  VYRE_TRY(vyre__plain(pipeline->program, pipeline->device->allocator,
                       &ref->plain, st));
  vyre_code code = vyre__link_math(ref->plain, pipeline->device->allocator,
                                   &ref->linked, st);
  if (code != VYRE_OK) {
    vyre_program_release(ref->plain);
    return code;
  }
  code = ref_program_info_build(ref->linked, pipeline->workgroup,
                                &pipeline->arena, &ref->info, st);
  if (code != VYRE_OK) {
    vyre_program_release(ref->linked);
    vyre_program_release(ref->plain);
  }
  return code;
}

static void pipeline_deinit(vyre_pipeline *pipeline) {
  vyre_program_release(((ref_pipeline *)pipeline)->linked);
  vyre_program_release(((ref_pipeline *)pipeline)->plain);
}

/* Copies a uniform, so that all loads of a dispatch see the same value even if
 * the caller changes its memory. */
static vyre_code copy_uniform(ref_machine *m, ref_view *view) {
  size_t bytes = (size_t)view->length * view->stride;
  unsigned char *copy = vyre_arena_alloc(m->arena, bytes, 0);
  if (!copy) return vyre__no_memory(m->st, "ref", "bytes of uniforms", bytes);
  memcpy(copy, view->data, bytes);
  view->data = copy;
  return VYRE_OK;
}

/* Stores the values of a table as elements. */
static vyre_code fill_table(ref_machine *m, const vyre__table *table,
                            ref_view *view) {
  unsigned char *bytes =
      vyre_arena_alloc(m->arena, (size_t)table->length * view->size, 8);
  if (!bytes) {
    return vyre__no_memory(m->st, "ref", "values of tables", table->length);
  }
  for (uint32_t i = 0; i < table->length; i++) {
    vyre__element_store(view->element, bytes + (size_t)i * view->size,
                        table->values[i]);
  }
  view->data = bytes;
  view->length = table->length;
  view->is_written = false;
  return VYRE_OK;
}

static vyre_code make_views(ref_machine *m) {
  const vyre_program *program = m->program;
  m->views =
      vyre__arena_array(m->arena, program->buffer_count, sizeof *m->views);
  if (!m->views) {
    return vyre__no_memory(m->st, "ref", "views", program->buffer_count);
  }
  uint64_t offset = 0;
  for (size_t i = 0; i < program->buffer_count; i++) {
    const vyre_buffer_decl *buffer = &program->buffers[i];
    const vyre__hidden *hidden = vyre__hidden_of(program, (uint32_t)i);
    const vyre__view own = {.length = buffer->count};
    const vyre__view *bound =
        hidden || vyre__is_hidden(buffer) ? &own : &m->launch->views[i];
    uint32_t stride = vyre_buffer_stride(buffer);
    bool shared = vyre__is_shared(buffer);
    m->views[i] =
        (ref_view){.data = bound->data,
                   .length = bound->length,
                   .element = buffer->element,
                   .size = vyre__is_sum(buffer->element) ? sizeof(uint64_t)
                           : vyre__is_aggregate(buffer->type)
                               ? vyre_element_size(buffer->element)
                               : stride,
                   .stride = stride,
                   .is_shared = shared,
                   .is_written = buffer->access != VYRE_ACCESS_READ &&
                                 buffer->access != VYRE_ACCESS_UNIFORM,
                   .shared_offset = offset};
    if (hidden && hidden->table) {
      VYRE_TRY(fill_table(m, hidden->table, &m->views[i]));
    }
    const uint64_t bytes = (uint64_t)bound->length * stride;
    const uint32_t *size = m->pipeline->base.workgroup;
    if (hidden && shared) m->views[i].lane_bytes = bytes;
    if (shared) {
      offset += hidden ? bytes * size[0] * size[1] * size[2] : bytes;
    }
    if (buffer->kind == VYRE_MEMORY_UNIFORM) {
      VYRE_TRY(copy_uniform(m, &m->views[i]));
    }
  }
  return VYRE_OK;
}

/* Saves the initial contents of outputs, for further runs. */
static vyre_code save_initial(ref_machine *m, const unsigned char ***out) {
  size_t count = m->program->buffer_count;
  const unsigned char **initial = (const unsigned char **)vyre__arena_array(
      m->arena, count, sizeof *initial);
  if (!initial) return vyre__no_memory(m->st, "ref", "views", count);
  for (size_t i = 0; i < count; i++) {
    const ref_view *view = &m->views[i];
    size_t bytes = (size_t)view->length * view->stride;
    initial[i] = NULL;
    if (view->is_shared || !view->is_written) continue;
    unsigned char *copy = vyre_arena_alloc(m->arena, bytes, 0);
    if (!copy) return vyre__no_memory(m->st, "ref", "bytes of outputs", bytes);
    if (bytes > 0) memcpy(copy, view->data, bytes);
    initial[i] = copy;
  }
  m->node_hashes =
      vyre__arena_filled(m->arena, m->program->node_count, sizeof(uint64_t), 0);
  if (!m->node_hashes) {
    return vyre__no_memory(m->st, "ref", "nodes", m->program->node_count);
  }
  *out = initial;
  return VYRE_OK;
}

vyre_code ref_machine_begin(ref_machine *m, vyre_pipeline *pipeline,
                            vyre__launch *launch) {
  const ref_pipeline *own = (const ref_pipeline *)pipeline;
  m->pipeline = own;
  m->program = own->linked;
  m->nodes = own->linked->nodes;
  m->launch = launch;
  return make_views(m);
}

static vyre_code run(ref_machine *m) {
  const vyre_check_options *check = &m->launch->check;
  const unsigned char **initial = NULL;
  VYRE_TRY(make_views(m));
  if (check->out_of_bounds || check->races || check->schedules > 0) {
    VYRE_TRY(ref_check_grid(m));
    m->check = ref_check_make(m, m->st);
    if (!m->check) return VYRE_OUT_OF_MEMORY;
  }
  if (check->schedules > 0) VYRE_TRY(save_initial(m, &initial));
  VYRE_TRY(ref_run(m));
  return initial ? ref_check_order(m, initial) : VYRE_OK;
}

static vyre_code run_launch(vyre_pipeline *pipeline, vyre__launch *launch,
                            vyre_status *st) {
  ref_machine m = {.pipeline = (const ref_pipeline *)pipeline,
                   .program = ((const ref_pipeline *)pipeline)->linked,
                   .nodes = ((const ref_pipeline *)pipeline)->linked->nodes,
                   .launch = launch,
                   .arena = launch->scratch,
                   .st = st};
  /* A caller that flushes subnormals must not change the results of a
   * kernel. */
  fenv_t saved;
  vyre__float_begin(&saved);
  vyre_code code = run(&m);
  vyre__float_end(&saved);
  if (code == VYRE_OK) vyre__launch_read_back(launch);
  return code;
}

static vyre_code execute(vyre__command_list *list, size_t first, size_t end,
                         size_t *done, vyre_status *st) {
  return vyre__execute_each(list, first, end, run_launch, done, st);
}

/* Every dispatch is one launch: with grid barriers, all frames are kept at the
 * same time. */
static void pipeline_describe(const vyre_pipeline *pipeline,
                              vyre_pipeline_resources *out) {
  const ref_pipeline *own = (const ref_pipeline *)pipeline;
  const uint32_t *size = pipeline->workgroup;
  uint64_t frame = sizeof(uint64_t) * (uint64_t)ref_frame_vectors(own);
  uint64_t stack = sizeof(uint64_t) * (uint64_t)own->info.temporary_vectors;
  uint64_t invocations = (uint64_t)size[0] * size[1] * size[2];
  out->has_launches = true;
  out->phase_count = 1;
  out->spill_buffer_count = own->info.has_grid_barrier;
  out->spill_bytes = own->info.has_grid_barrier ? frame : 0;
  if (!own->info.has_grid_barrier) stack += frame;
  out->scratch_bytes = invocations * stack + own->info.shared_bytes;
}

/* Read by vyre_device_open before a device of this backend exists. */
static const vyre__option options[] = {
    {"fallback", 0, 1, "1: auto may take ref if nothing better can be used"},
    {0}};

extern const vyre__backend vyre__backend_ref;

const vyre__backend vyre__backend_ref = {.abi = VYRE__BACKEND_ABI,
                                         .struct_size = sizeof(vyre__backend),
                                         .name = "ref",
                                         .precedence = 100,
                                         .is_exact = true,
                                         .counts_iterations = true,
                                         .device_size = sizeof(vyre_device),
                                         .pipeline_size = sizeof(ref_pipeline),
                                         .describe = describe,
                                         .device_init = device_init,
                                         .load = load,
                                         .pipeline_deinit = pipeline_deinit,
                                         .execute = execute,
                                         .options = options,
                                         .pipeline_describe = pipeline_describe,
                                         .queue_plan = ref_queue_plan,
                                         .queue_drain = ref_queue_drain,
                                         .takes_queue_programs = true};
