/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Every public function with a status parameter clears it first: a failure
 * describes this call only, and a success leaves an empty status.
 * tests/status_rule.sh checks that the table below names every such
 * function. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "plugins/proxy.h"
#include "runtime/route/router_internal.h"
#include "support/check.h"
#include "support/driver.h"

static const char text[] =
    "kernel twice workgroup(4) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : write u32[] @1;\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    if (i < len(y)) y[i] = x[i] * 2;\n"
    "}\n";

/* Objects that the calls below succeed on. */
static struct world {
  rig r;
  vyre_arena arena;
  vyre_binding_plan plan;
  uint32_t x[4], y[4];
  vyre_input input;
  vyre_output output;
  vyre_dispatch_desc desc;
  vyre_buffer resident;
  vyre_fence *fence; /* its work has finished */
  vyre_recording *open, *finished;
  uint32_t slots[2];
  char directory[64];
} w;

static bool swallow(void *self, const char *bytes, size_t length) {
  (void)self;
  (void)bytes;
  (void)length;
  return true;
}

static void record(vyre_recording **out, vyre_status *st) {
  CHECK_OK(vyre_recording_create(w.r.device, out, st), *st);
  CHECK_OK(vyre_recording_add_slot(*out, "x", 16, &w.slots[0], st), *st);
  CHECK_OK(vyre_recording_add_slot(*out, "y", 16, &w.slots[1], st), *st);
}

static vyre_recorded_dispatch recorded(vyre_slot_range places[2]) {
  places[0] = vyre_slot_range_all(w.slots[0]);
  places[1] = vyre_slot_range_all(w.slots[1]);
  return (vyre_recorded_dispatch){.inputs = &places[0],
                                  .input_count = 1,
                                  .outputs = &places[1],
                                  .output_count = 1};
}

static void world_open(void) {
  vyre_status st = {0};
  memset(&w, 0, sizeof w);
  snprintf(w.directory, sizeof w.directory, "/tmp/vyre-status-%d",
           (int)getpid());
  vyre_context_options options = {
      .cache_directory = w.directory, .trace_file = "", .faults = ""};
  w.r = rig_open_as(&options, "ref", text);
  CHECK_OK(vyre_binding_plan_build(w.r.program, &w.arena, &w.plan, &st), st);
  w.input = vyre_input_bytes(w.x, sizeof w.x);
  w.output = vyre_output_bytes(w.y, sizeof w.y);
  w.desc = (vyre_dispatch_desc){.inputs = &w.input,
                                .input_count = 1,
                                .outputs = &w.output,
                                .output_count = 1};
  CHECK_OK(vyre_buffer_create(w.r.device, 16, &w.resident, &st), st);
  CHECK_OK(vyre_submit(w.r.pipeline, &w.desc, 1, &w.fence, &st), st);
  CHECK_OK(vyre_fence_wait(w.fence, VYRE_WAIT_FOREVER, &st), st);
  record(&w.open, &st);
  record(&w.finished, &st);
  vyre_slot_range places[2];
  vyre_recorded_dispatch d = recorded(places);
  CHECK_OK(vyre_recording_add_dispatch(w.finished, w.r.pipeline, &d, &st), st);
  CHECK_OK(vyre_recording_seal(w.finished, &st), st);
  vyre_slot_binding x = {.data = w.x, .size = sizeof w.x};
  vyre_slot_binding y = {.data = w.y, .size = sizeof w.y};
  CHECK_OK(vyre_recording_bind_slot(w.finished, w.slots[0], &x, &st), st);
  CHECK_OK(vyre_recording_bind_slot(w.finished, w.slots[1], &y, &st), st);
}

static void world_close(void) {
  vyre_recording_release(w.open);
  vyre_recording_release(w.finished);
  vyre_fence_release(w.fence);
  vyre_arena_deinit(&w.arena);
  rig_close(&w.r);
  char command[96];
  snprintf(command, sizeof command, "rm -rf %s", w.directory);
  CHECK(system(command) == 0);
}

/* --- calls that succeed --------------------------------------------------- */

#define OK(name) static vyre_code ok_##name(vyre_status *st)

OK(vyre_barrier_plan_build) {
  vyre_barrier_scratch scratch = {0};
  vyre_barrier_plan out;
  vyre_code code =
      vyre_barrier_plan_build(1, NULL, 0, &scratch, &w.arena, &out, st);
  vyre_barrier_scratch_deinit(&scratch);
  return code;
}
OK(vyre_program_write_binary) {
  const uint8_t *bytes;
  size_t length;
  return vyre_program_write_binary(w.r.program, &w.arena, &bytes, &length, st);
}
OK(vyre_program_write_binary_with_source) {
  const uint8_t *bytes;
  size_t length;
  return vyre_program_write_binary_with_source(w.r.program, "text", 4, &w.arena,
                                               &bytes, &length, st);
}
OK(vyre_program_read_binary) {
  const uint8_t *bytes;
  size_t length;
  vyre_program *out;
  CHECK(vyre_program_write_binary(w.r.program, &w.arena, &bytes, &length,
                                  NULL) == VYRE_OK);
  vyre_code code =
      vyre_program_read_binary(bytes, length, (vyre_allocator){0}, &out, st);
  vyre_program_release(out);
  return code;
}
OK(vyre_binding_plan_build) {
  vyre_binding_plan out;
  return vyre_binding_plan_build(w.r.program, &w.arena, &out, st);
}
OK(vyre_binding_plan_build_for) {
  vyre_binding_plan out;
  vyre_input_extent extent = {.byte_len = 16};
  return vyre_binding_plan_build_for(w.r.program, &extent, 1, &w.arena, &out,
                                     st);
}
OK(vyre_binding_plan_validate) {
  vyre_input_extent extent = {.byte_len = 16};
  return vyre_binding_plan_validate(&w.plan, &extent, 1, st);
}
OK(vyre_binding_fingerprint_build) {
  vyre_binding_fingerprint out;
  return vyre_binding_fingerprint_build(&w.plan, &w.arena, &out, st);
}
OK(vyre_layout_fingerprint_from_plan) {
  vyre_layout_fingerprint out;
  return vyre_layout_fingerprint_from_plan(&w.plan, &w.arena, &out, st);
}
OK(vyre_layout_fingerprint_build) {
  vyre_layout_fingerprint out;
  return vyre_layout_fingerprint_build(NULL, 0, &w.arena, &out, st);
}
OK(vyre_builder_create) {
  vyre_builder *out;
  vyre_code code = vyre_builder_create("k", (vyre_allocator){0}, &out, st);
  vyre_builder_release(out);
  return code;
}
OK(vyre_builder_build) {
  vyre_builder *b;
  vyre_program *out;
  CHECK(vyre_builder_create("k", (vyre_allocator){0}, &b, NULL) == VYRE_OK);
  vyre_code code = vyre_builder_build(b, &out, st);
  vyre_program_release(out);
  vyre_builder_release(b);
  return code;
}
OK(vyre_cache_explain) {
  vyre_cache_explanation out;
  return vyre_cache_explain(w.r.device, w.r.program, NULL, &w.arena, &out, st);
}
OK(vyre_cache_get_location) {
  vyre_cache_location out;
  return vyre_cache_get_location(w.r.context, &w.arena, &out, st);
}
OK(vyre_cache_list) {
  vyre_cache_listing out;
  return vyre_cache_list(w.r.context, &w.arena, &out, st);
}
OK(vyre_cache_prune) {
  vyre_cache_pruned out;
  return vyre_cache_prune(w.r.context, NULL, &out, st);
}
OK(vyre_capture_plan_build) {
  vyre_capture_plan out;
  return vyre_capture_plan_build(&w.plan, &out, st);
}
OK(vyre_context_create) {
  vyre_context *out;
  vyre_context_options options = {
      .cache_directory = "", .trace_file = "", .faults = ""};
  vyre_code code = vyre_context_create(&options, &out, st);
  vyre_context_release(out);
  return code;
}
OK(vyre_backend_register) {
  static const vyre_backend proxy = PROXY_TABLE("proxy", 10);
  vyre_context *context;
  vyre_code code = vyre_context_create(NULL, &context, st);
  if (code == VYRE_OK) code = vyre_backend_register(context, &proxy, st);
  vyre_context_release(context);
  return code;
}
OK(vyre_context_inject_faults) {
  return vyre_context_inject_faults(w.r.context, "", st);
}
OK(vyre_device_open) {
  vyre_device *out;
  vyre_code code = vyre_device_open(w.r.context, "ref", &out, st);
  vyre_device_release(out);
  return code;
}
OK(vyre_device_preload) {
  return vyre_device_preload(w.r.context, "ref", st);
}
OK(vyre_device_choose) {
  char name[VYRE_DEVICE_NAME];
  return vyre_device_choose(w.r.context, "ref", name, st);
}
OK(vyre_device_probe) {
  size_t count;
  return vyre_device_probe(w.r.device, NULL, 0, &count, st);
}
OK(vyre_dispatch) {
  return vyre_dispatch(w.r.pipeline, &w.desc, st);
}
OK(vyre_submit) {
  return vyre_submit(w.r.pipeline, &w.desc, 1, NULL, st);
}
OK(vyre_device_run_program) {
  return vyre_device_run_program(w.r.device, w.r.program, &w.desc, st);
}
OK(vyre_dispatch_grid) {
  uint32_t out[3];
  return vyre_dispatch_grid(w.r.pipeline, &w.desc, out, st);
}
OK(vyre_host_buffers_replace) {
  vyre_output_stats stats = {0};
  return vyre_host_buffers_replace(NULL, 0, NULL, 0, &stats, st);
}
OK(vyre_dlpack_import) {
  int64_t shape[1] = {4};
  DLManagedTensorVersioned tensor = {
      .version = {1, 0},
      .dl_tensor = {.data = w.x,
                    .device = {.device_type = kDLCPU},
                    .ndim = 1,
                    .dtype = {kDLUInt, 32, 1},
                    .shape = shape}};
  vyre_buffer out;
  vyre_code code = vyre_dlpack_import(w.r.device, &tensor, NULL, &out, st);
  CHECK(vyre_buffer_destroy(w.r.device, out, NULL) == VYRE_OK);
  return code;
}
OK(vyre_dlpack_import_unversioned) {
  int64_t shape[1] = {4};
  DLManagedTensor tensor = {.dl_tensor = {.data = w.x,
                                          .device = {.device_type = kDLCPU},
                                          .ndim = 1,
                                          .dtype = {kDLUInt, 32, 1},
                                          .shape = shape}};
  vyre_buffer out;
  vyre_code code =
      vyre_dlpack_import_unversioned(w.r.device, &tensor, NULL, &out, st);
  CHECK(vyre_buffer_destroy(w.r.device, out, NULL) == VYRE_OK);
  return code;
}
OK(vyre_dlpack_export) {
  const int64_t shape[1] = {4};
  DLManagedTensorVersioned *out;
  vyre_code code = vyre_dlpack_export(w.r.device, w.resident, VYRE_ELEMENT_U32,
                                      shape, 1, 0, &out, st);
  out->deleter(out);
  return code;
}
OK(vyre_dlpack_export_unversioned) {
  const int64_t shape[1] = {4};
  DLManagedTensor *out;
  vyre_code code = vyre_dlpack_export_unversioned(
      w.r.device, w.resident, VYRE_ELEMENT_U32, shape, 1, &out, st);
  out->deleter(out);
  return code;
}
OK(vyre_program_emit) {
  return vyre_program_emit(w.r.program, &(vyre_emit_options){0},
                           (vyre_writer){swallow, NULL}, NULL, st);
}
OK(vyre_program_accesses) {
  const vyre_access_info *out;
  size_t count;
  return vyre_program_accesses(w.r.program, &w.arena, &out, &count, st);
}
OK(vyre_program_values) {
  const vyre_value_info *out;
  size_t count;
  return vyre_program_values(w.r.program, &w.arena, &out, &count, st);
}
OK(vyre_source_index_build) {
  vyre_source_index out;
  return vyre_source_index_build("const A = 1;", 12, &w.arena, &out, st);
}
OK(vyre_source_index_build_with) {
  vyre_source_index out;
  return vyre_source_index_build_with("", 0, "", NULL, &w.arena, &out, st);
}
OK(vyre_fence_wait) {
  return vyre_fence_wait(w.fence, VYRE_WAIT_FOREVER, st);
}
OK(vyre_fence_wait_any) {
  size_t out;
  return vyre_fence_wait_any(&w.fence, 1, VYRE_WAIT_FOREVER, &out, st);
}
static void do_nothing(void *self, vyre_fence *fence) {
  (void)self;
  (void)fence;
}
OK(vyre_fence_set_callback) {
  vyre_fence *fence;
  CHECK(vyre_submit(w.r.pipeline, &w.desc, 1, &fence, NULL) == VYRE_OK);
  vyre_code code = vyre_fence_set_callback(fence, do_nothing, NULL, st);
  CHECK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, NULL) == VYRE_OK);
  vyre_fence_release(fence);
  return code;
}
OK(vyre_fence_fd) {
  int out;
  return vyre_fence_fd(w.fence, &out, st);
}
OK(vyre_detail_form_fresh) {
  vyre_dispatch_desc desc = w.desc;
  return vyre_detail_form_fresh(w.r.pipeline, &desc, 1, st);
}
#define BINDINGS w.r.pipeline, &w.input, 1, &w.output, 1, NULL
OK(vyre_dispatch_owned) {
  return vyre_dispatch_owned(BINDINGS, st);
}
OK(vyre_dispatch_borrowed) {
  return vyre_dispatch_borrowed(BINDINGS, st);
}
OK(vyre_dispatch_borrowed_timed) {
  vyre_timing timing;
  return vyre_dispatch_borrowed_timed(BINDINGS, &timing, st);
}
OK(vyre_dispatch_borrowed_into) {
  return vyre_dispatch_borrowed_into(BINDINGS, st);
}
OK(vyre_dispatch_borrowed_batched) {
  vyre_dispatch_desc desc = w.desc;
  return vyre_dispatch_borrowed_batched(w.r.pipeline, &desc, 1, st);
}
OK(vyre_dispatch_borrowed_batched_into) {
  vyre_dispatch_desc desc = w.desc;
  return vyre_dispatch_borrowed_batched_into(w.r.pipeline, &desc, 1, st);
}
OK(vyre_dispatch_resident) {
  return vyre_dispatch_resident(BINDINGS, st);
}
OK(vyre_dispatch_resident_timed) {
  vyre_timing timing;
  return vyre_dispatch_resident_timed(BINDINGS, &timing, st);
}
OK(vyre_dispatch_resident_into) {
  return vyre_dispatch_resident_into(BINDINGS, st);
}
OK(vyre_dispatch_to_buffers) {
  const vyre_input resources[] = {w.input, {.size = 16}};
  vyre_buffer handle;
  vyre_code code = vyre_dispatch_to_buffers(w.r.pipeline, resources, 2, &handle,
                                            1, NULL, st);
  CHECK(vyre_buffer_destroy(w.r.device, handle, NULL) == VYRE_OK);
  return code;
}
OK(vyre_dispatch_resident_batched) {
  vyre_dispatch_desc desc = w.desc;
  return vyre_dispatch_resident_batched(w.r.pipeline, &desc, 1, st);
}
OK(vyre_dispatch_resident_batched_into) {
  vyre_dispatch_desc desc = w.desc;
  return vyre_dispatch_resident_batched_into(w.r.pipeline, &desc, 1, st);
}
OK(vyre_dispatch_rows_into) {
  vyre_dispatch_desc item = {0};
  vyre_buffer_row row = {{{0}}};
  return vyre_dispatch_rows_into(w.r.pipeline, &row, 0, NULL, 0, NULL, &item,
                                 st);
}
OK(vyre_frontier_wave_bytes) {
  const vyre_frontier_wave wave = {1, 1, 1};
  uint64_t out;
  return vyre_frontier_wave_bytes(&wave, &out, st);
}
static const vyre_frontier_wave wave = {1, 1, 1};
static const vyre_frontier_desc waves = {
    .waves = &wave, .wave_count = 1, .budget_bytes = 100};
OK(vyre_frontier_plan_build) {
  vyre_barrier_scratch scratch = {0};
  vyre_frontier_plan out;
  vyre_code code =
      vyre_frontier_plan_build(&waves, &scratch, &w.arena, &out, st);
  vyre_barrier_scratch_deinit(&scratch);
  return code;
}
OK(vyre_frontier_intervals) {
  vyre_barrier_scratch scratch = {0};
  vyre_frontier_plan plan;
  const vyre_interval *out;
  CHECK(vyre_frontier_plan_build(&waves, &scratch, &w.arena, &plan, NULL) ==
        VYRE_OK);
  vyre_barrier_scratch_deinit(&scratch);
  return vyre_frontier_intervals(&plan, &waves, 1, &w.arena, &out, st);
}
OK(vyre_random_program_create) {
  vyre_random_program *out;
  vyre_code code =
      vyre_random_program_create(NULL, (vyre_allocator){0}, &out, st);
  vyre_random_program_release(out);
  return code;
}
OK(vyre_module_parse) {
  vyre_module *out;
  vyre_code code = vyre_module_parse(text, sizeof text - 1, NULL,
                                     (vyre_allocator){0}, &out, NULL, st);
  vyre_module_release(out);
  return code;
}
OK(vyre_module_parse_with) {
  const vyre_module_options options = {.defines = NULL};
  vyre_module *out;
  vyre_code code = vyre_module_parse_with(text, sizeof text - 1, NULL, &options,
                                          (vyre_allocator){0}, &out, NULL, st);
  vyre_module_release(out);
  return code;
}
OK(vyre_sum_merge) {
  unsigned char sums[2][96] = {{0}};
  return vyre_sum_merge(VYRE_ELEMENT_SUM_F32, sums[0], sums[1], 1, st);
}
OK(vyre_source_format) {
  const char *out;
  size_t length;
  return vyre_source_format(text, sizeof text - 1, NULL, &w.arena, &out,
                            &length, NULL, st);
}
OK(vyre_source_format_with) {
  const char *out;
  size_t length;
  return vyre_source_format_with(text, sizeof text - 1, NULL, NULL, &w.arena,
                                 &out, &length, NULL, st);
}
OK(vyre_pipeline_compile) {
  vyre_pipeline *out;
  vyre_code code =
      vyre_pipeline_compile(w.r.device, w.r.program, NULL, &out, NULL, st);
  vyre_pipeline_release(out);
  return code;
}
typedef struct package_file {
  char bytes[1 << 16];
  size_t length;
} package_file;

static bool append_package(void *self, const char *bytes, size_t length) {
  package_file *to = self;
  if (length > sizeof to->bytes - to->length) return false;
  memcpy(to->bytes + to->length, bytes, length);
  to->length += length;
  return true;
}

/* Writes a package of the program, once. */
static const package_file *written_package(void) {
  static package_file file;
  const vyre_package_options options = {.targets = "x86-64-v2"};
  vyre_status st = {0};
  if (file.length > 0) return &file;
  CHECK_OK(vyre_package_write(NULL, &w.r.program, 1, &options,
                              (vyre_writer){append_package, &file}, &st),
           st);
  return &file;
}

static vyre_package *opened_package(void) {
  vyre_package *package;
  vyre_status st = {0};
  const package_file *file = written_package();
  CHECK_OK(vyre_package_open(file->bytes, file->length, (vyre_allocator){0},
                             &package, &st),
           st);
  return package;
}
OK(vyre_package_write) {
  package_file file = {.length = 0};
  return vyre_package_write(NULL, NULL, 0, NULL,
                            (vyre_writer){append_package, &file}, st);
}
OK(vyre_package_open) {
  const package_file *file = written_package();
  vyre_package *out;
  vyre_code code = vyre_package_open(file->bytes, file->length,
                                     (vyre_allocator){0}, &out, st);
  vyre_package_release(out);
  return code;
}
OK(vyre_package_open_file) {
  const package_file *from = written_package();
  char path[96];
  vyre_package *out;
  snprintf(path, sizeof path, "/tmp/vyre-status-%d.vpk", (int)getpid());
  FILE *file = fopen(path, "wb");
  CHECK(file && fwrite(from->bytes, 1, from->length, file) == from->length);
  CHECK(fclose(file) == 0);
  vyre_code code = vyre_package_open_file(path, (vyre_allocator){0}, &out, st);
  vyre_package_release(out);
  CHECK(remove(path) == 0);
  return code;
}
OK(vyre_package_read_program) {
  vyre_package *package = opened_package();
  vyre_program *out;
  vyre_code code = vyre_package_read_program(package, NULL, &out, st);
  vyre_program_release(out);
  vyre_package_release(package);
  return code;
}
OK(vyre_pipeline_load) {
  vyre_package *package = opened_package();
  vyre_pipeline *out;
  vyre_code code =
      vyre_pipeline_load(w.r.device, package, NULL, NULL, &out, st);
  vyre_pipeline_release(out);
  vyre_package_release(package);
  return code;
}
OK(vyre_pipeline_compile_async) {
  vyre_fence *out;
  vyre_code code =
      vyre_pipeline_compile_async(w.r.device, w.r.program, NULL, &out, st);
  CHECK(vyre_fence_wait(out, VYRE_WAIT_FOREVER, NULL) == VYRE_OK);
  vyre_fence_release(out);
  return code;
}
OK(vyre_pipeline_add_variant) {
  const vyre_compile_options options = {.workgroup = {8, 1, 1}};
  return vyre_pipeline_add_variant(w.r.pipeline, &options, st);
}
OK(vyre_placement_plan_build) {
  const vyre_interval interval = {.size = 4, .alignment = 4};
  vyre_placement_scratch scratch = {0};
  vyre_placement_plan out;
  vyre_code code = vyre_placement_plan_build(&interval, 1, NULL, &scratch,
                                             &w.arena, &out, st);
  vyre_placement_scratch_deinit(&scratch);
  return code;
}
OK(vyre_program_create) {
  const vyre_program_desc desc = {.workgroup = {1, 1, 1}};
  vyre_program *out;
  vyre_code code = vyre_program_create(&desc, (vyre_allocator){0}, &out, st);
  vyre_program_release(out);
  return code;
}
static const vyre_queue_profile profile = {
    .queue_capacity = 4, .entry_bytes = 4, .budget_bytes = 100};
OK(vyre_queue_plan_build) {
  vyre_queue_plan out;
  return vyre_queue_plan_build(&profile, &out, st);
}
OK(vyre_queue_drain_plan_build) {
  vyre_queue_drain_plan out;
  return vyre_queue_drain_plan_build(&profile, 2, &out, st);
}
OK(vyre_queue_expansion_plan_build) {
  const vyre_queue_expansion_profile wanted = {
      .expansion_items = 4, .entry_bytes = 4, .budget_bytes = 100};
  vyre_queue_expansion_plan out;
  return vyre_queue_expansion_plan_build(&wanted, &out, st);
}
OK(vyre_recording_create) {
  vyre_recording *out;
  vyre_code code = vyre_recording_create(w.r.device, &out, st);
  vyre_recording_release(out);
  return code;
}
OK(vyre_recording_add_slot) {
  vyre_recording *rec;
  uint32_t out;
  CHECK(vyre_recording_create(w.r.device, &rec, NULL) == VYRE_OK);
  vyre_code code = vyre_recording_add_slot(rec, "z", 16, &out, st);
  vyre_recording_release(rec);
  return code;
}
OK(vyre_recording_add_fixed_slot) {
  vyre_slot_binding resource = {.data = w.x, .size = sizeof w.x};
  uint32_t out;
  return vyre_recording_add_fixed_slot(w.open, &resource, &out, st);
}
OK(vyre_recording_add_dispatch) {
  vyre_slot_range places[2];
  vyre_recorded_dispatch d = recorded(places);
  return vyre_recording_add_dispatch(w.open, w.r.pipeline, &d, st);
}
OK(vyre_recording_add_copy) {
  return vyre_recording_add_copy(w.open, vyre_slot_range_all(w.slots[0]),
                                 vyre_slot_range_all(w.slots[1]), st);
}
OK(vyre_recording_add_barrier) {
  return vyre_recording_add_barrier(w.open, st);
}
OK(vyre_recording_begin_while) {
  return vyre_recording_begin_while(w.open, vyre_slot_range_all(w.slots[0]), 1,
                                    0, st);
}
OK(vyre_recording_end_while) {
  return vyre_recording_end_while(w.open, st);
}
OK(vyre_recording_seal) {
  vyre_recording *rec;
  CHECK(vyre_recording_create(w.r.device, &rec, NULL) == VYRE_OK);
  vyre_code code = vyre_recording_seal(rec, st);
  vyre_recording_release(rec);
  return code;
}
OK(vyre_recording_bind_slot) {
  vyre_slot_binding resource = {.data = w.x, .size = sizeof w.x};
  return vyre_recording_bind_slot(w.finished, w.slots[0], &resource, st);
}
#include "runtime/core/status_queue_testing.h"
#include "runtime/core/status_router_testing.h"
#include "runtime/core/status_wave_testing.h"
OK(vyre_recording_replay) {
  return vyre_recording_replay(w.finished, NULL, NULL, st);
}
OK(vyre_buffer_create) {
  vyre_buffer out;
  vyre_code code = vyre_buffer_create(w.r.device, 16, &out, st);
  CHECK(vyre_buffer_destroy(w.r.device, out, NULL) == VYRE_OK);
  return code;
}
OK(vyre_buffer_create_aligned) {
  vyre_buffer out;
  vyre_code code = vyre_buffer_create_aligned(w.r.device, 5, 512, &out, st);
  if (code != VYRE_OK) return code;
  vyre_status destroyed = {0};
  return vyre_buffer_destroy(w.r.device, out, &destroyed);
}

OK(vyre_buffer_import) {
  vyre_buffer out;
  vyre_code code = vyre_buffer_import(w.r.device, w.x, sizeof w.x, &out, st);
  CHECK(vyre_buffer_destroy(w.r.device, out, NULL) == VYRE_OK);
  return code;
}
OK(vyre_buffer_destroy) {
  vyre_buffer out;
  CHECK(vyre_buffer_create(w.r.device, 16, &out, NULL) == VYRE_OK);
  return vyre_buffer_destroy(w.r.device, out, st);
}
OK(vyre_buffer_size) {
  uint64_t out;
  return vyre_buffer_size(w.r.device, w.resident, &out, st);
}
OK(vyre_buffer_map) {
  void *address;
  return vyre_buffer_map(w.r.device, w.resident, &address, st);
}
OK(vyre_buffer_upload) {
  return vyre_buffer_upload(w.r.device, w.resident, 0, w.x, 16, st);
}
OK(vyre_buffer_download) {
  return vyre_buffer_download(w.r.device, w.resident, 0, w.x, 16, st);
}
OK(vyre_buffer_upload_many) {
  return vyre_buffer_upload_many(w.r.device, NULL, 0, st);
}
OK(vyre_buffer_download_many) {
  return vyre_buffer_download_many(w.r.device, NULL, 0, st);
}
OK(vyre_host_alloc) {
  void *out;
  vyre_code code = vyre_host_alloc(w.r.device, 16, &out, st);
  vyre_host_free(w.r.device, out, 16);
  return code;
}
OK(vyre_program_validate) {
  return vyre_program_validate(w.r.program, NULL, st);
}
OK(vyre_program_prove_order) {
  vyre_order_proof proof;
  return vyre_program_prove_order(w.r.program, &proof, NULL, st);
}

/* --- calls that fail ------------------------------------------------------ */

#define HEAP   ((vyre_allocator){0})
#define HANDLE ((vyre_buffer){0})
#define PLACE  ((vyre_slot_range){0})
#define WRITER ((vyre_writer){0})

/* CALL(function, failing arguments): a function that ok_function calls with
 * success. FAIL(function, arguments): a function that fails on the devices of
 * every machine. */
#define CALLS(CALL, FAIL)                                                    \
  CALL(vyre_barrier_plan_build, 1, NULL, 0, NULL, NULL, NULL, st)            \
  CALL(vyre_program_write_binary, NULL, NULL, NULL, NULL, st)                \
  CALL(vyre_program_write_binary_with_source, NULL, "text", 4, NULL, NULL,   \
       NULL, st)                                                             \
  CALL(vyre_program_read_binary, NULL, 0, HEAP, NULL, st)                    \
  CALL(vyre_binding_plan_build, NULL, NULL, NULL, st)                        \
  CALL(vyre_binding_plan_build_for, NULL, NULL, 0, NULL, NULL, st)           \
  CALL(vyre_binding_plan_validate, NULL, NULL, 0, st)                        \
  CALL(vyre_binding_fingerprint_build, NULL, NULL, NULL, st)                 \
  CALL(vyre_layout_fingerprint_from_plan, NULL, NULL, NULL, st)              \
  CALL(vyre_layout_fingerprint_build, NULL, 1, NULL, NULL, st)               \
  CALL(vyre_builder_create, NULL, HEAP, NULL, st)                            \
  CALL(vyre_builder_build, NULL, NULL, st)                                   \
  CALL(vyre_cache_explain, NULL, NULL, NULL, NULL, NULL, st)                 \
  CALL(vyre_cache_get_location, NULL, NULL, NULL, st)                        \
  CALL(vyre_cache_list, NULL, NULL, NULL, st)                                \
  CALL(vyre_cache_prune, NULL, NULL, NULL, st)                               \
  CALL(vyre_capture_plan_build, NULL, NULL, st)                              \
  CALL(vyre_backend_register, NULL, NULL, st)                                \
  CALL(vyre_context_create, NULL, NULL, st)                                  \
  CALL(vyre_context_inject_faults, w.r.context, "nonsense", st)              \
  CALL(vyre_device_open, NULL, "ref", NULL, st)                              \
  CALL(vyre_device_preload, w.r.context, "nonsense", st)                     \
  CALL(vyre_device_choose, w.r.context, "nonsense", NULL, st)                \
  CALL(vyre_device_probe, NULL, NULL, 0, NULL, st)                           \
  CALL(vyre_dispatch, NULL, NULL, st)                                        \
  CALL(vyre_submit, NULL, NULL, 0, NULL, st)                                 \
  CALL(vyre_device_run_program, NULL, NULL, NULL, st)                        \
  CALL(vyre_dispatch_grid, NULL, NULL, NULL, st)                             \
  CALL(vyre_host_buffers_replace, NULL, 1, NULL, 1, NULL, st)                \
  CALL(vyre_dlpack_import, NULL, NULL, NULL, NULL, st)                       \
  CALL(vyre_dlpack_import_unversioned, NULL, NULL, NULL, NULL, st)           \
  CALL(vyre_dlpack_export, NULL, HANDLE, VYRE_ELEMENT_U32, NULL, 0, 0, NULL, \
       st)                                                                   \
  CALL(vyre_dlpack_export_unversioned, NULL, HANDLE, VYRE_ELEMENT_U32, NULL, \
       0, NULL, st)                                                          \
  CALL(vyre_program_emit, NULL, NULL, WRITER, NULL, st)                      \
  CALL(vyre_program_accesses, NULL, NULL, NULL, NULL, st)                    \
  CALL(vyre_program_values, NULL, NULL, NULL, NULL, st)                      \
  CALL(vyre_source_index_build, NULL, 0, NULL, NULL, st)                     \
  CALL(vyre_source_index_build_with, NULL, 0, NULL, NULL, NULL, NULL, st)    \
  CALL(vyre_fence_wait, NULL, 0, st)                                         \
  CALL(vyre_fence_wait_any, NULL, 0, 0, NULL, st)                            \
  CALL(vyre_fence_set_callback, NULL, NULL, NULL, st)                        \
  CALL(vyre_fence_fd, NULL, NULL, st)                                        \
  CALL(vyre_detail_form_fresh, NULL, NULL, 0, st)                            \
  CALL(vyre_dispatch_owned, NULL, NULL, 0, NULL, 0, NULL, st)                \
  CALL(vyre_dispatch_borrowed, NULL, NULL, 0, NULL, 0, NULL, st)             \
  CALL(vyre_dispatch_borrowed_timed, NULL, NULL, 0, NULL, 0, NULL, NULL, st) \
  CALL(vyre_dispatch_borrowed_into, NULL, NULL, 0, NULL, 0, NULL, st)        \
  CALL(vyre_dispatch_borrowed_batched, NULL, NULL, 0, st)                    \
  CALL(vyre_dispatch_borrowed_batched_into, NULL, NULL, 0, st)               \
  CALL(vyre_dispatch_resident, NULL, NULL, 0, NULL, 0, NULL, st)             \
  CALL(vyre_dispatch_resident_timed, NULL, NULL, 0, NULL, 0, NULL, NULL, st) \
  CALL(vyre_dispatch_resident_into, NULL, NULL, 0, NULL, 0, NULL, st)        \
  CALL(vyre_dispatch_to_buffers, NULL, NULL, 0, NULL, 0, NULL, st)           \
  CALL(vyre_dispatch_resident_batched, NULL, NULL, 0, st)                    \
  CALL(vyre_dispatch_resident_batched_into, NULL, NULL, 0, st)               \
  CALL(vyre_dispatch_rows_into, NULL, NULL, 0, NULL, 0, NULL, NULL, st)      \
  CALL(vyre_frontier_wave_bytes, NULL, NULL, st)                             \
  CALL(vyre_frontier_plan_build, NULL, NULL, NULL, NULL, st)                 \
  CALL(vyre_frontier_intervals, NULL, NULL, 0, NULL, NULL, st)               \
  CALL(vyre_random_program_create, NULL, HEAP, NULL, st)                     \
  CALL(vyre_module_parse, NULL, 0, NULL, HEAP, NULL, NULL, st)               \
  CALL(vyre_module_parse_with, NULL, 0, NULL, NULL, HEAP, NULL, NULL, st)    \
  CALL(vyre_sum_merge, VYRE_ELEMENT_SUM_F32, NULL, NULL, 1, st)              \
  CALL(vyre_source_format, NULL, 0, NULL, NULL, NULL, NULL, NULL, st)        \
  CALL(vyre_source_format_with, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, \
       st)                                                                   \
  CALL(vyre_pipeline_compile, NULL, NULL, NULL, NULL, NULL, st)              \
  CALL(vyre_pipeline_compile_async, NULL, NULL, NULL, NULL, st)              \
  CALL(vyre_pipeline_add_variant, NULL, NULL, st)                            \
  CALL(vyre_package_write, NULL, NULL, 1, NULL, WRITER, st)                  \
  CALL(vyre_package_open, NULL, 0, HEAP, NULL, st)                           \
  CALL(vyre_package_open_file, NULL, HEAP, NULL, st)                         \
  CALL(vyre_package_read_program, NULL, NULL, NULL, st)                      \
  CALL(vyre_pipeline_load, NULL, NULL, NULL, NULL, NULL, st)                 \
  FAIL(vyre_pipeline_print, w.r.pipeline, "asm", WRITER, st)                 \
  CALL(vyre_placement_plan_build, NULL, 1, NULL, NULL, NULL, NULL, st)       \
  CALL(vyre_program_create, NULL, HEAP, NULL, st)                            \
  CALL(vyre_queue_plan_build, NULL, NULL, st)                                \
  CALL(vyre_queue_drain_plan_build, NULL, 0, NULL, st)                       \
  CALL(vyre_queue_expansion_plan_build, NULL, NULL, st)                      \
  CALL(vyre_recording_create, NULL, NULL, st)                                \
  CALL(vyre_recording_add_slot, NULL, NULL, 0, NULL, st)                     \
  CALL(vyre_recording_add_fixed_slot, NULL, NULL, NULL, st)                  \
  CALL(vyre_recording_add_dispatch, NULL, NULL, NULL, st)                    \
  CALL(vyre_recording_add_copy, NULL, PLACE, PLACE, st)                      \
  CALL(vyre_recording_add_barrier, NULL, st)                                 \
  CALL(vyre_recording_add_queue, NULL, NULL, NULL, st)                       \
  CALL(vyre_recording_add_wave_graph, NULL, NULL, NULL, st)                  \
  CALL(vyre_recording_begin_while, NULL, PLACE, 0, 0, st)                    \
  CALL(vyre_recording_end_while, NULL, st)                                   \
  CALL(vyre_recording_seal, NULL, st)                                        \
  CALL(vyre_recording_bind_slot, NULL, 0, NULL, st)                          \
  CALL(vyre_wave_graph_create, NULL, NULL, NULL, st)                         \
  CALL(vyre_wave_graph_add_resource, NULL, NULL, NULL, st)                   \
  CALL(vyre_wave_graph_add_wave, NULL, NULL, NULL, NULL, st)                 \
  CALL(vyre_wave_graph_add_dependency, NULL, 0, 0, st)                       \
  CALL(vyre_wave_graph_repeat, NULL, 0, 0, 0, 0, st)                         \
  CALL(vyre_wave_graph_plan, NULL, NULL, st)                                 \
  CALL(vyre_wave_graph_seal, NULL, st)                                       \
  CALL(vyre_wave_graph_run, NULL, NULL, NULL, st)                            \
  CALL(vyre_queue_create, NULL, NULL, NULL, NULL, NULL, st)                  \
  CALL(vyre_queue_fill, NULL, NULL, 0, st)                                   \
  CALL(vyre_queue_fill_from_buffer, NULL, w.resident, 0, 0, st)              \
  CALL(vyre_queue_get_state, NULL, NULL, st)                                 \
  CALL(vyre_queue_resize, NULL, 0, st)                                       \
  CALL(vyre_queue_run, NULL, NULL, NULL, NULL, st)                           \
  CALL(vyre_queue_take, NULL, NULL, 0, NULL, st)                             \
  CALL(vyre_router_open, NULL, NULL, NULL, st)                               \
  CALL(vyre_router_save, NULL, st)                                           \
  CALL(vyre_router_compile, NULL, NULL, NULL, NULL, NULL, st)                \
  CALL(vyre_shadow_replay, NULL, NULL, 0, (vyre_writer){0}, NULL, st)        \
  CALL(vyre_route_dispatch, NULL, NULL, NULL, st)                            \
  CALL(vyre_router_buffer_create, NULL, 0, NULL, st)                         \
  CALL(vyre_router_buffer_destroy, NULL, HANDLE, st)                         \
  CALL(vyre_router_buffer_upload, NULL, HANDLE, 0, NULL, 0, st)              \
  CALL(vyre_router_buffer_download, NULL, HANDLE, 0, NULL, 0, st)            \
  CALL(vyre_recording_replay, NULL, NULL, NULL, st)                          \
  CALL(vyre_buffer_create, NULL, 0, NULL, st)                                \
  CALL(vyre_buffer_create_aligned, NULL, 0, 0, NULL, st)                     \
  CALL(vyre_buffer_import, NULL, NULL, 0, NULL, st)                          \
  CALL(vyre_buffer_destroy, w.r.device, HANDLE, st)                          \
  CALL(vyre_buffer_size, w.r.device, HANDLE, NULL, st)                       \
  CALL(vyre_buffer_map, w.r.device, HANDLE, NULL, st)                        \
  CALL(vyre_buffer_upload, w.r.device, HANDLE, 0, NULL, 0, st)               \
  CALL(vyre_buffer_download, w.r.device, HANDLE, 0, NULL, 0, st)             \
  CALL(vyre_buffer_upload_many, NULL, NULL, 0, st)                           \
  CALL(vyre_buffer_download_many, NULL, NULL, 0, st)                         \
  CALL(vyre_host_alloc, NULL, 0, NULL, st)                                   \
  CALL(vyre_program_validate, NULL, NULL, st)                                \
  CALL(vyre_program_prove_order, NULL, NULL, NULL, st)                       \
  CALL(vyre_tune, NULL, NULL, NULL, NULL, NULL, st)                          \
  CALL(vyre_tune_forget, NULL, NULL, NULL, st)                               \
  FAIL(vyre_device_open_external_vulkan, NULL, NULL, NULL, st)

#define FAILING(name, ...)                         \
  static vyre_code fails_##name(vyre_status *st) { \
    return name(__VA_ARGS__);                      \
  }
CALLS(FAILING, FAILING)

static const struct call {
  const char *name;
  vyre_code (*fails)(vyre_status *st);
  vyre_code (*succeeds)(vyre_status *st);
} calls[] = {
#define BOTH(name, ...)         {#name, fails_##name, ok_##name},
#define ONLY_FAILING(name, ...) {#name, fails_##name, NULL},
    CALLS(BOTH, ONLY_FAILING)};

/* --- the rule ------------------------------------------------------------- */

/* Fills a status with an earlier failure, in every byte of its texts. */
static vyre_status old_failure(void) {
  vyre_status st;
  memset(&st, '#', sizeof st);
  st.code = VYRE_OUT_OF_MEMORY;
  st.kind = VYRE_KIND_STORAGE_RESERVE_FAILED;
  st.native_code = -7;
  st.number_count = VYRE_STATUS_MAX_NUMBERS;
  for (int i = 0; i < VYRE_STATUS_MAX_NUMBERS; i++) {
    st.numbers[i] = (vyre_status_number){"#old", 7};
  }
  st.field = st.file = "#old";
  st.line = 7;
  st.message[sizeof st.message - 1] = st.fix[sizeof st.fix - 1] = '\0';
  return st;
}

static bool has_old(const vyre_status *st) {
  bool found = strchr(st->message, '#') || strchr(st->fix, '#');
  for (uint32_t i = 0; i < st->number_count; i++) {
    found = found || strcmp(st->numbers[i].name, "#old") == 0;
  }
  return found || st->native_code == -7 || (st->field && st->field[0] == '#') ||
         (st->file && st->file[0] == '#');
}

static bool is_empty(const vyre_status *st) {
  return st->code == VYRE_OK && st->kind == VYRE_KIND_NONE &&
         st->native_code == 0 && st->number_count == 0 && !st->field &&
         !st->file && st->line == 0 && !st->message[0] && !st->fix[0];
}

enum { CALLS_COUNT = sizeof calls / sizeof calls[0] };

TEST(a_failure_describes_its_own_call) {
  world_open();
  for (size_t i = 0; i < CALLS_COUNT; i++) {
    vyre_status st = old_failure();
    vyre_code code = calls[i].fails(&st);
    bool good = code != VYRE_OK && st.code == code && st.message[0] &&
                st.fix[0] && !has_old(&st);
    if (!good) printf("    %s: %s\n", calls[i].name, st.message);
    CHECK(good);
    CHECK_U64(calls[i].fails(NULL), code);
  }
  world_close();
}

TEST(a_success_clears_an_earlier_failure) {
  world_open();
  for (size_t i = 0; i < CALLS_COUNT; i++) {
    if (!calls[i].succeeds) continue;
    vyre_status st = old_failure();
    vyre_code code = calls[i].succeeds(&st);
    bool good = code == VYRE_OK && is_empty(&st);
    if (!good) printf("    %s: %s\n", calls[i].name, st.message);
    CHECK(good);
    good = calls[i].succeeds(NULL) == VYRE_OK;
    if (!good) printf("    %s without a status\n", calls[i].name);
    CHECK(good);
  }
  world_close();
}

/* A wait times out and succeeds later; then a call with an invalid argument
 * fails. */
TEST(the_next_call_clears_a_timed_out_wait) {
  static const char endless[] =
      "kernel k workgroup(1) buffer y : write u32[1] @0; {\n"
      "    var n = 0u; while (n < 30000u) { n++; }\n"
      "    y[0] = n;\n}\n";
  rig r = rig_open(endless, NULL);
  uint32_t y = 0;
  vyre_output output = vyre_output_bytes(&y, sizeof y);
  vyre_dispatch_desc desc = {.outputs = &output, .output_count = 1};
  vyre_fence *fence;
  vyre_status st = {0};
  CHECK_OK(vyre_submit(r.pipeline, &desc, 1, &fence, &st), st);
  bool is_late = vyre_fence_wait(fence, 0, &st) != VYRE_OK;
  if (is_late) CHECK(st.kind == VYRE_KIND_TIMED_OUT);
  CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
  vyre_fence_release(fence);
  desc.output_count = 0;
  CHECK_FAILS(vyre_dispatch(r.pipeline, &desc, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_BINDING_MISMATCH);
  CHECK(!strstr(st.message, "ns"));
  rig_close(&r);
}

/* A call reports its first failure, also if the library calls one of its own
 * public functions with the same status. */
TEST(the_first_cause_inside_a_call_is_kept) {
  static const char races[] =
      "kernel k workgroup(4) buffer y : write u32[] @0; {\n"
      "    if (local_id.x == 0) { barrier(); }\n}\n";
  vyre_module *module = NULL;
  vyre_status st = old_failure(), validated;
  rig r = rig_open(text, NULL);
  CHECK_OK(vyre_module_parse(races, sizeof races - 1, "races.vyre", HEAP,
                             &module, NULL, &st),
           st);
  vyre_program *program = vyre_module_kernel(module, 0);
  CHECK(vyre_program_validate(program, NULL, &validated) ==
        VYRE_INVALID_PROGRAM);
  vyre_pipeline *pipeline;
  CHECK(vyre_pipeline_compile(r.device, program, NULL, &pipeline, NULL, &st) ==
        VYRE_INVALID_PROGRAM);
  CHECK_TEXT(st.message, validated.message);
  CHECK(vyre_program_emit(program, &(vyre_emit_options){0},
                          (vyre_writer){swallow, NULL}, NULL,
                          &st) == VYRE_INVALID_PROGRAM);
  CHECK_TEXT(st.message, validated.message);
  vyre_fence *fence;
  CHECK_OK(vyre_pipeline_compile_async(r.device, program, NULL, &fence, &st),
           st);
  CHECK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st) == VYRE_INVALID_PROGRAM);
  CHECK_TEXT(st.message, validated.message);
  vyre_fence_release(fence);
  vyre_context_options options = {
      .cache_directory = "", .trace_file = "", .faults = "nonsense"};
  vyre_context *context;
  CHECK_FAILS(vyre_context_create(&options, &context, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK(strstr(st.message, "nonsense"));
  vyre_module_release(module);
  rig_close(&r);
}

TEST_MAIN(TEST_ENTRY(a_failure_describes_its_own_call),
          TEST_ENTRY(a_success_clears_an_earlier_failure),
          TEST_ENTRY(the_next_call_clears_a_timed_out_wait),
          TEST_ENTRY(the_first_cause_inside_a_call_is_kept))
