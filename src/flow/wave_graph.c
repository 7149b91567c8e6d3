/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Creates wave graphs, and adds resources, waves and dependencies to them. */
#include <string.h>

#include "base/memory.h"
#include "base/status.h"
#include "flow/wave_internal.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/device.h"
#include "runtime/dispatch/grid.h"

/* --- lifetime ----------------------------------------------------------- */

vyre_code vyre_wave_graph_create(vyre_device *device,
                                 const vyre_wave_graph_options *options,
                                 vyre_wave_graph **out, vyre_status *st) {
  VYRE_BEGIN_OUT(st, out);
  VYRE_REQUIRE(st, device);
  if (options) VYRE_CHECK_RESERVED(st, __func__, options);
  VYRE_TRY(vyre__device_check(device, st));
  vyre_wave_graph *graph = vyre__alloc_zeroed(device->allocator, sizeof *graph);
  if (!graph) return vyre__no_memory(st, __func__, "wave graphs", 1);
  atomic_init(&graph->references, 1);
  graph->device = vyre_device_retain(device);
  if (options) graph->options = *options;
  vyre_arena_init(&graph->arena, device->allocator);
  vyre_arena_init(&graph->plan_arena, device->allocator);
  pthread_mutex_init(&graph->lock, NULL);
  *out = graph;
  return VYRE_OK;
}

vyre_wave_graph *vyre_wave_graph_retain(vyre_wave_graph *graph) {
  if (graph) atomic_fetch_add(&graph->references, 1);
  return graph;
}

void vyre_wave_graph_release(vyre_wave_graph *graph) {
  if (!graph || atomic_fetch_sub(&graph->references, 1) > 1) return;
  vyre_device *device = graph->device;
  vyre_allocator allocator = device->allocator;
  vyre__wave_unprepare(graph);
  for (size_t i = 0; i < graph->wave_count; i++)
    vyre_pipeline_release(graph->waves[i].pipeline);
  vyre__reserve_free(allocator, (void *)&graph->resources,
                     &graph->resource_capacity, sizeof *graph->resources);
  vyre__reserve_free(allocator, (void *)&graph->waves, &graph->wave_capacity,
                     sizeof *graph->waves);
  vyre__reserve_free(allocator, (void *)&graph->declared,
                     &graph->declared_capacity, sizeof *graph->declared);
  vyre_arena_deinit(&graph->arena);
  vyre_arena_deinit(&graph->plan_arena);
  pthread_mutex_destroy(&graph->lock);
  vyre__resize(allocator, graph, sizeof *graph, 0);
  vyre_device_release(device);
}

/* --- resources ---------------------------------------------------------- */

vyre_code vyre__wave_is_sealed(vyre_status *st) {
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                   "create another graph, with everything that it needs",
                   "the wave graph is sealed: nothing can be added to it");
}

const char *vyre__wave_resource_name(const vyre_wave_graph *graph,
                                     uint32_t resource) {
  return resource < graph->resource_count ? graph->resources[resource].name
                                          : "?";
}

uint32_t vyre_wave_graph_find_resource(const vyre_wave_graph *graph,
                                       const char *name) {
  for (size_t i = 0; graph && name && i < graph->resource_count; i++) {
    if (strcmp(graph->resources[i].name, name) == 0) return (uint32_t)i;
  }
  return UINT32_MAX;
}

static vyre_code check_name(const char *what, const char *name,
                            vyre_status *st) {
  size_t length = strlen(name);
  if (length > 0 && length < VYRE__WAVE_NAME) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
      VYRE_NUMBERS({"length", length}), "use a name of 1 to 63 bytes",
      "the name '%.70s' of a %s has %zu bytes", name, what, length);
}

static vyre_code check_roles(const vyre_wave_resource *desc, vyre_status *st) {
  if (desc->size == 0) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "give the resource 1 byte or more",
                     "resource '%s' has 0 bytes", desc->name);
  }
  bool has_other = desc->is_input || desc->is_output || desc->is_kept;
  if (desc->is_external && has_other) {
    return VYRE_FAIL(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
        "upload to and download from the device buffer, and set is_external "
        "only",
        "resource '%s' is external, and also an input, an output or kept",
        desc->name);
  }
  if (desc->is_kept && desc->is_input) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "set is_input or is_kept, not both",
                     "resource '%s' keeps its contents, but every run would "
                     "replace them with an input",
                     desc->name);
  }
  return VYRE_OK;
}

vyre_code vyre_wave_graph_add_resource(vyre_wave_graph *graph,
                                       const vyre_wave_resource *desc,
                                       uint32_t *out, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, out);
  *out = UINT32_MAX;
  VYRE_REQUIRE_BOTH(st, graph, desc);
  VYRE_CHECK_RESERVED(st, __func__, desc);
  if (graph->is_sealed) return vyre__wave_is_sealed(st);
  if (!desc->name) return vyre__null_argument(st, __func__, "desc->name");
  VYRE_TRY(check_name("resource", desc->name, st));
  VYRE_TRY(check_roles(desc, st));
  if (vyre_wave_graph_find_resource(graph, desc->name) != UINT32_MAX) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "use another name, or find the existing resource with "
                     "vyre_wave_graph_find_resource",
                     "the graph already has a resource '%s'", desc->name);
  }
  if (graph->resource_count >= UINT32_MAX - 1 ||
      !vyre__reserve(graph->device->allocator, (void *)&graph->resources,
                     &graph->resource_capacity, graph->resource_count + 1,
                     sizeof *graph->resources, false)) {
    return vyre__no_memory(st, __func__, "resources",
                           graph->resource_count + 1);
  }
  vyre__wave_resource *resource = &graph->resources[graph->resource_count];
  *resource = (vyre__wave_resource){.size = desc->size,
                                    .is_input = desc->is_input,
                                    .is_output = desc->is_output,
                                    .is_external = desc->is_external,
                                    .is_kept = desc->is_kept};
  memcpy(resource->name, desc->name, strlen(desc->name) + 1);
  *out = (uint32_t)graph->resource_count++;
  graph->has_plan = false;
  return VYRE_OK;
}

/* --- waves -------------------------------------------------------------- */

static vyre_code check_pipeline(const vyre_wave_graph *graph,
                                const vyre_pipeline *pipeline,
                                const vyre_wave_desc *desc, vyre_status *st) {
  size_t expected = pipeline->state->resource_count;
  if (pipeline->device != graph->device) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_FOREIGN_HANDLE, NULL,
        VYRE_NUMBERS({"pipeline_device", pipeline->device->state->id},
                     {"device", graph->device->state->id}),
        "compile the program for the device of the graph",
        "pipeline '%s' belongs to device %llu, the wave graph to device %llu",
        pipeline->id, (unsigned long long)pipeline->device->state->id,
        (unsigned long long)graph->device->state->id);
  }
  if (desc->binding_count != expected) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"expected_bindings", expected},
                     {"received_bindings", desc->binding_count}),
        "pass one binding for each buffer that is not shared, in order of the "
        "binding numbers",
        "kernel '%.60s' has %zu buffers, but the wave has %zu bindings",
        vyre_program_name(pipeline->program), expected, desc->binding_count);
  }
  if (!desc->bindings && expected > 0)
    return vyre__null_argument(st, "vyre_wave_graph_add_wave",
                               "desc->bindings");
  return VYRE_OK;
}

static vyre_code wrong_range(const vyre_wave_graph *graph,
                             const vyre_wave_binding *b,
                             const vyre__binding_info *info, uint64_t needed,
                             vyre_status *st) {
  const vyre__wave_resource *resource = &graph->resources[b->resource];
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"offset", b->offset}, {"size", needed},
                   {"resource_bytes", resource->size},
                   {"element_bytes", info->element}),
      "use a range inside the resource, of whole elements, and of the size "
      "that the kernel declares, if it declares one",
      "buffer '%.60s' needs %llu bytes at offset %llu of resource '%s', which "
      "has %llu bytes; its elements have %u bytes",
      info->binding->name, (unsigned long long)needed,
      (unsigned long long)b->offset, resource->name,
      (unsigned long long)resource->size, info->element);
}

static vyre_code use_range(vyre_wave_graph *graph, const vyre_wave_binding *b,
                           const vyre__binding_info *info, vyre__wave_use *use,
                           vyre_status *st) {
  if (b->resource >= graph->resource_count) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"resource", b->resource},
                     {"resources", graph->resource_count}),
        "pass a number from vyre_wave_graph_add_resource",
        "buffer '%.60s' names resource %u, but the graph has %zu resources",
        info->binding->name, b->resource, graph->resource_count);
  }
  uint64_t total = graph->resources[b->resource].size, size = b->size;
  if (b->offset > total) return wrong_range(graph, b, info, size, st);
  if (info->is_static && size == 0) size = info->static_bytes;
  if (size == 0) size = total - b->offset;
  if (size > total - b->offset || size % info->element != 0 ||
      (b->offset & info->mask) != 0 ||
      (info->is_static && size != info->static_bytes)) {
    return wrong_range(graph, b, info, size, st);
  }
  *use = (vyre__wave_use){
      .resource = b->resource,
      .offset = b->offset,
      .size = size,
      .reads = info->has_contents,
      .writes = info->output != VYRE_NO_INDEX || info->is_written};
  return VYRE_OK;
}

static vyre_code use_constant(vyre_wave_graph *graph,
                              const vyre_wave_binding *b,
                              const vyre__binding_info *info,
                              vyre__wave_use *use, vyre_status *st) {
  uint64_t size = b->size ? b->size : info->static_bytes;
  if (info->output != VYRE_NO_INDEX || info->is_persistent) {
    return VYRE_FAIL(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH,
        "bind a resource to the buffer",
        "buffer '%.60s' of kernel '%.60s' is written, or "
        "persistent, and cannot have constant bytes",
        info->binding->name,
        vyre_program_name(graph->waves[graph->wave_count].pipeline->program));
  }
  if ((info->is_static && size != info->static_bytes) ||
      size % info->element != 0 || size > SIZE_MAX) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
        VYRE_NUMBERS({"expected_bytes", info->static_bytes},
                     {"received_bytes", size}),
        "give the size that the kernel declares, or whole elements",
        "buffer '%.60s' has %llu constant bytes; the kernel declares %llu (0: "
        "any), in elements of %u",
        info->binding->name, (unsigned long long)size,
        (unsigned long long)info->static_bytes, info->element);
  }
  void *copy = vyre_arena_alloc(&graph->arena, (size_t)size, 64);
  if (!copy) {
    return vyre__no_memory(st, "vyre_wave_graph_add_wave", "constant bytes",
                           size);
  }
  if (size > 0) memcpy(copy, b->data, (size_t)size);
  *use = (vyre__wave_use){
      .resource = UINT32_MAX, .size = size, .data = copy, .reads = true};
  return VYRE_OK;
}

static vyre_code add_uses(vyre_wave_graph *graph, vyre__wave *wave,
                          const vyre_wave_desc *desc, vyre_status *st) {
  wave->use_count = desc->binding_count;
  wave->uses =
      vyre__arena_array(&graph->arena, wave->use_count, sizeof *wave->uses);
  if (!wave->uses) {
    return vyre__no_memory(st, "vyre_wave_graph_add_wave", "bindings",
                           wave->use_count);
  }
  for (size_t i = 0; i < wave->use_count; i++) {
    const vyre__binding_info *info = wave->pipeline->state->resources[i];
    const vyre_wave_binding *b = &desc->bindings[i];
    VYRE_TRY(b->data ? use_constant(graph, b, info, &wave->uses[i], st)
                     : use_range(graph, b, info, &wave->uses[i], st));
  }
  return VYRE_OK;
}

/* Weight of an invocation, in bytes: a wave of few long invocations is as much
 * work as one that moves many bytes. */
enum { INVOCATION_WEIGHT = 4 };

vyre_code vyre__wave_measure(vyre__wave *wave, vyre_status *st) {
  const vyre_pipeline *pipeline = wave->pipeline;
  const struct vyre__pipeline_state *state = pipeline->state;
  vyre_arena arena;
  vyre_arena_init(&arena, pipeline->device->allocator);
  size_t count = pipeline->program->buffer_count;
  vyre__view *views = vyre__arena_filled(&arena, count, sizeof *views, 0);
  vyre_code code = VYRE_OK;
  if (!views)
    code = vyre__no_memory(st, "vyre_wave_graph_add_wave", "buffers", count);
  uint64_t bytes = 0;
  for (size_t i = 0; i < wave->use_count && code == VYRE_OK; i++) {
    const vyre__binding_info *info = state->resources[i];
    uint64_t length = vyre__elements_in(info, wave->uses[i].size);
    views[info->buffer].length =
        length < UINT32_MAX ? (uint32_t)length : UINT32_MAX;
    bytes += wave->uses[i].size;
  }
  if (code == VYRE_OK) {
    code = vyre__grid_infer(pipeline, wave->given_grid, views, wave->grid, st);
  }
  vyre_arena_deinit(&arena);
  VYRE_TRY(code);
  wave->workgroups = (uint64_t)wave->grid[0] * wave->grid[1] * wave->grid[2];
  uint64_t invocations = wave->workgroups * pipeline->workgroup[0] *
                         pipeline->workgroup[1] * pipeline->workgroup[2];
  wave->weight = bytes + INVOCATION_WEIGHT * invocations + 1;
  return VYRE_OK;
}

static void prefer_alignments(vyre_wave_graph *graph, const vyre__wave *wave) {
  for (size_t i = 0; i < wave->use_count; i++) {
    const vyre_binding *b = wave->pipeline->state->resources[i]->binding;
    if (wave->uses[i].resource == UINT32_MAX) continue;
    vyre__wave_resource *resource = &graph->resources[wave->uses[i].resource];
    if (b->preferred_alignment > resource->alignment)
      resource->alignment = b->preferred_alignment;
  }
}

static vyre_code fill_wave(vyre_wave_graph *graph, vyre__wave *wave,
                           const vyre_wave_desc *desc, vyre_status *st) {
  vyre_arena *arena = &graph->arena;
  vyre__arena_mark mark = vyre__arena_here(arena);
  vyre_code code = add_uses(graph, wave, desc, st);
  if (code == VYRE_OK)
    code = vyre__grid_check_given(wave->pipeline, wave->given_grid, st);
  if (code == VYRE_OK) code = vyre__wave_measure(wave, st);
  if (code != VYRE_OK) vyre__arena_rewind(arena, mark);
  return code;
}

vyre_code vyre_wave_graph_add_wave(vyre_wave_graph *graph,
                                   vyre_pipeline *pipeline,
                                   const vyre_wave_desc *desc, uint32_t *out,
                                   vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, out);
  *out = UINT32_MAX;
  VYRE_REQUIRE_BOTH(st, graph, pipeline);
  VYRE_REQUIRE(st, desc);
  VYRE_CHECK_RESERVED(st, __func__, desc);
  if (graph->is_sealed) return vyre__wave_is_sealed(st);
  VYRE_TRY(check_pipeline(graph, pipeline, desc, st));
  const char *label =
      desc->label ? desc->label : vyre_program_name(pipeline->program);
  if (desc->label) VYRE_TRY(check_name("wave", label, st));
  if (graph->wave_count >= VYRE_MAX_WAVES ||
      !vyre__reserve(graph->device->allocator, (void *)&graph->waves,
                     &graph->wave_capacity, graph->wave_count + 1,
                     sizeof *graph->waves, false)) {
    return vyre__no_memory(st, __func__, "waves", graph->wave_count + 1);
  }
  vyre__wave *wave = &graph->waves[graph->wave_count];
  *wave =
      (vyre__wave){.pipeline = pipeline,
                   .given_grid = {desc->grid[0], desc->grid[1], desc->grid[2]}};
  for (size_t i = 0; i + 1 < VYRE__WAVE_NAME && label[i]; i++)
    wave->label[i] = label[i];
  VYRE_TRY(fill_wave(graph, wave, desc, st));
  vyre_pipeline_retain(pipeline);
  prefer_alignments(graph, wave);
  *out = (uint32_t)graph->wave_count++;
  graph->has_plan = false;
  return VYRE_OK;
}

vyre_code vyre_wave_graph_add_dependency(vyre_wave_graph *graph,
                                         uint32_t before, uint32_t after,
                                         vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, graph);
  if (graph->is_sealed) return vyre__wave_is_sealed(st);
  uint32_t larger = before > after ? before : after;
  if (larger >= graph->wave_count) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_WAVE, NULL,
        VYRE_NUMBERS({"wave", larger}, {"waves", graph->wave_count}),
        "pass numbers from vyre_wave_graph_add_wave",
        "the dependency names wave %u, but the graph has %zu waves", larger,
        graph->wave_count);
  }
  if (!vyre__reserve(graph->device->allocator, (void *)&graph->declared,
                     &graph->declared_capacity, graph->declared_count + 1,
                     sizeof *graph->declared, false)) {
    return vyre__no_memory(st, __func__, "dependencies",
                           graph->declared_count + 1);
  }
  graph->declared[graph->declared_count++] =
      (vyre_wave_dependency){before, after};
  graph->has_plan = false;
  return VYRE_OK;
}

vyre_code vyre_wave_graph_repeat(vyre_wave_graph *graph, uint32_t flag,
                                 uint64_t offset, uint64_t max_iterations,
                                 uint32_t check_interval, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, graph);
  if (graph->is_sealed) return vyre__wave_is_sealed(st);
  if (flag >= graph->resource_count || offset % 4 != 0 ||
      graph->resources[flag].size < 4 ||
      offset > graph->resources[flag].size - 4) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"flag", flag}, {"resources", graph->resource_count},
                     {"offset", offset}),
        "name a resource, and an offset that is a multiple of 4 and at least 4 "
        "bytes before its end",
        "the flag is at offset %llu of resource %u ('%s'); the graph has %zu "
        "resources",
        (unsigned long long)offset, flag, vyre__wave_resource_name(graph, flag),
        graph->resource_count);
  }
  if (max_iterations == 0 || graph->loop.is_set) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"max_iterations", max_iterations}),
        "call vyre_wave_graph_repeat once, with a maximum of 1 or more",
        "the graph already repeats, or its maximum number of iterations is 0");
  }
  graph->loop = (vyre__wave_loop){.is_set = true,
                                  .flag = flag,
                                  .offset = offset,
                                  .max_iterations = max_iterations,
                                  .check_interval = check_interval};
  graph->has_plan = false;
  return VYRE_OK;
}
