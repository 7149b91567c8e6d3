/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests a backend that takes SPIR-V, on a Vulkan device: kernels give the
 * results of ref. Its memory is hidden from the library, and a launch has few
 * workgroups, so that grids are cut. Skipped without a Vulkan 1.2 device. */
#if __has_include(<vulkan/vulkan_core.h>)

#include <pthread.h>

#include "vyre/vyre.h"

#include "codegen/spirv/spirv_vulkan_testing.h"
#include "support/check.h"

/* Memory that drivers hold until the process ends is not a leak of vyre. */
/* The name is the sanitizer's. NOLINTBEGIN(bugprone-reserved-identifier) */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) {
  /* NOLINTEND(bugprone-reserved-identifier) */
  return "leak:libvulkan\nleak:libLLVM\nleak:<unknown module>\n";
}

static vk_runner runner;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* --- the backend -----------------------------------------------------------*/

static bool describe(const vyre_backend *table, uint32_t index,
                     vyre_device_info *out) {
  (void)table;
  out->description = runner.properties.deviceName;
  out->driver = "test of SPIR-V";
  return index == 0;
}

static uint32_t max_groups_x;

static vyre_code device_open(const vyre_backend *table, uint32_t index,
                             const vyre_backend_option_value *options,
                             vyre_backend_device *out, vyre_status *st) {
  (void)table, (void)index, (void)options, (void)st;
  out->caps = (vyre_device_caps){.max_workgroup = {256, 256, 64},
                                 .max_workgroup_invocations = 256,
                                 .max_shared_bytes = 16 << 10,
                                 .max_buffer_bytes = 64 << 20,
                                 .has_f64 = runner.features.shaderFloat64,
                                 .has_u64 = runner.features.shaderInt64};
  out->max_groups[0] = max_groups_x;
  out->offset_alignment =
      (uint32_t)runner.properties.limits.minStorageBufferOffsetAlignment;
  out->spirv = (vyre_spirv_features){
      .has_storage8 = runner.v12.storageBuffer8BitAccess,
      .has_storage16 = runner.v11.storageBuffer16BitAccess,
      .has_int8 = runner.v12.shaderInt8,
      .has_int16 = runner.features.shaderInt16,
      .block_in_storage = max_groups_x % 2 == 1};
  return VYRE_OK;
}

typedef struct spirv_kernel {
  vyre__spirv_module module;
  vyre__spirv_descriptor descriptors[VK_MAX];
  vk_job job;
} spirv_kernel;

static vyre_code kernel_load(void *device, const vyre_backend_kernel *from,
                             void **out, vyre_status *st) {
  (void)device, (void)st;
  spirv_kernel *kernel = calloc(1, sizeof *kernel);
  CHECK(kernel && from->form == VYRE_BACKEND_FORM_SPIRV);
  CHECK(from->binding_count <= VK_MAX && from->code_bytes % 4 == 0);
  for (size_t i = 0; i < from->binding_count; i++) {
    kernel->descriptors[i].binding = from->bindings[i].binding;
    kernel->descriptors[i].is_uniform = from->bindings[i].is_uniform;
  }
  kernel->module =
      (vyre__spirv_module){.words = from->code,
                           .word_count = from->code_bytes / 4,
                           .entry_points = from->phase_count,
                           .push_bytes = from->push_bytes,
                           .descriptors = kernel->descriptors,
                           .descriptor_count = from->binding_count};
  kernel->job.r = &runner;
  kernel->job.m = &kernel->module;
  pthread_mutex_lock(&lock);
  vk_make_layout(&kernel->job);
  vk_make_pipelines(&kernel->job);
  pthread_mutex_unlock(&lock);
  *out = kernel;
  return VYRE_OK;
}

static void kernel_unload(void *device, void *self) {
  (void)device;
  spirv_kernel *kernel = self;
  vk_job *j = &kernel->job;
  for (uint32_t i = 0; i < kernel->module.entry_points; i++) {
    runner.DestroyPipeline(runner.device, j->pipelines[i], NULL);
  }
  runner.DestroyShaderModule(runner.device, j->shader, NULL);
  runner.DestroyPipelineLayout(runner.device, j->layout, NULL);
  runner.DestroyDescriptorSetLayout(runner.device, j->set_layout, NULL);
  free(kernel);
}

static vyre_code buffer_create(void *device, uint64_t bytes, void **out,
                               void **host, vyre_status *st) {
  (void)device, (void)host, (void)st;
  vk_memory *memory = malloc(sizeof *memory);
  CHECK(memory);
  *memory = vk_make(&runner, (size_t)bytes);
  memset(memory->bytes, 0, (size_t)bytes);
  *out = memory;
  return VYRE_OK;
}

static void buffer_destroy(void *device, void *self) {
  (void)device;
  vk_memory *memory = self;
  runner.DestroyBuffer(runner.device, memory->buffer, NULL);
  runner.FreeMemory(runner.device, memory->memory, NULL);
  free(memory);
}

static vyre_code buffer_write(void *device, void *buffer, uint64_t offset,
                              const void *data, size_t bytes, vyre_status *st) {
  (void)device, (void)st;
  memcpy(((vk_memory *)buffer)->bytes + offset, data, bytes);
  return VYRE_OK;
}

static vyre_code buffer_read(void *device, void *buffer, uint64_t offset,
                             void *data, size_t bytes, vyre_status *st) {
  (void)device, (void)st;
  memcpy(data, ((vk_memory *)buffer)->bytes + offset, bytes);
  return VYRE_OK;
}

static void make_set(vk_job *j, const vyre_backend_launch *launch) {
  const VkDescriptorPoolSize sizes[2] = {
      {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, VK_MAX},
      {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, VK_MAX}};
  const VkDescriptorPoolCreateInfo pool = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
      .maxSets = 1,
      .poolSizeCount = 2,
      .pPoolSizes = sizes};
  VK_CHECK(runner.CreateDescriptorPool(runner.device, &pool, NULL, &j->pool));
  const VkDescriptorSetAllocateInfo set = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
      .descriptorPool = j->pool,
      .descriptorSetCount = 1,
      .pSetLayouts = &j->set_layout};
  VK_CHECK(runner.AllocateDescriptorSets(runner.device, &set, &j->set));
  for (size_t i = 0; i < j->m->descriptor_count; i++) {
    const vyre_backend_memory *m = &launch->memory[i];
    CHECK(m->buffer && !m->host);
    VkDeviceSize size = (m->bytes + 3) / 4 * 4;
    const VkDescriptorBufferInfo info = {((vk_memory *)m->buffer)->buffer,
                                         m->offset, size > 8 ? size : 8};
    const VkWriteDescriptorSet write = {
        .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
        .dstSet = j->set,
        .dstBinding = j->m->descriptors[i].binding,
        .descriptorCount = 1,
        .descriptorType = j->m->descriptors[i].is_uniform
                              ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER
                              : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .pBufferInfo = &info};
    runner.UpdateDescriptorSets(runner.device, 1, &write, 0, NULL);
  }
}

static unsigned launches;

static vyre_code launch_one(void *device, void *self,
                            vyre_backend_launch *launch, vyre_status *st) {
  (void)device, (void)st;
  vk_runner *r = &runner;
  vk_job *j = &((spirv_kernel *)self)->job;
  pthread_mutex_lock(&lock);
  launches++;
  make_set(j, launch);
  const VkCommandBufferBeginInfo begin = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  VK_CHECK(r->ResetCommandPool(r->device, r->pool, 0));
  VK_CHECK(r->BeginCommandBuffer(r->commands, &begin));
  r->CmdBindPipeline(r->commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                     j->pipelines[launch->phase]);
  r->CmdBindDescriptorSets(r->commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                           j->layout, 0, 1, &j->set, 0, NULL);
  if (launch->argument_bytes) {
    r->CmdPushConstants(r->commands, j->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                        (uint32_t)launch->argument_bytes, launch->arguments);
  }
  r->CmdDispatch(r->commands, launch->groups[0], launch->groups[1],
                 launch->groups[2]);
  VK_CHECK(r->EndCommandBuffer(r->commands));
  const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &r->commands};
  VK_CHECK(r->QueueSubmit(r->queue, 1, &submit, VK_NULL_HANDLE));
  VK_CHECK(r->QueueWaitIdle(r->queue));
  r->DestroyDescriptorPool(r->device, j->pool, NULL);
  pthread_mutex_unlock(&lock);
  return VYRE_OK;
}

static const vyre_backend table = {.abi = VYRE_BACKEND_ABI,
                                   .struct_size = sizeof(vyre_backend),
                                   .name = "spirv",
                                   .form = VYRE_BACKEND_FORM_SPIRV,
                                   .is_exact = true, /* kernels have integers */
                                   .describe = describe,
                                   .device_open = device_open,
                                   .kernel_load = kernel_load,
                                   .kernel_unload = kernel_unload,
                                   .buffer_create = buffer_create,
                                   .buffer_destroy = buffer_destroy,
                                   .buffer_write = buffer_write,
                                   .buffer_read = buffer_read,
                                   .launch = launch_one};

/* --- kernels ---------------------------------------------------------------*/

/* Each has x, y of N elements and a uniform. */
static const char *const kernels[] = {
    "kernel k workgroup(8) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "uniform a : u32 @2;\n"
    "{\n    let i = global_id.x;\n"
    "    if (i < len(y)) y[i] = y[i] * 3u + a * x[i] + workgroup_id.x;\n}\n",
    "kernel k workgroup(8) over(y)\n" /* shared memory */
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "uniform a : u32 @2;\n"
    "shared t : u32[8];\n"
    "{\n    let i = global_id.x;\n"
    "    if (i < len(x)) t[local_id.x] = x[i];\n"
    "    barrier();\n"
    "    if (i < len(y)) y[i] = t[7u - local_id.x] + a;\n}\n",
    "kernel k workgroup(8) over(y)\n" /* phases, and values across them */
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "uniform a : u32 @2;\n"
    "{\n    let i = global_id.x;\n"
    "    var v = 0u;\n"
    "    if (i < len(x)) v = x[i] * 7u;\n"
    "    for (let r = 0u; r < a; r += 1u) {\n"
    "        if (i < len(y)) y[i] += v + r;\n"
    "        grid_barrier();\n"
    "        if (i + 1u < len(y)) v += y[i + 1u];\n"
    "        grid_barrier();\n"
    "    }\n}\n",
    "kernel k workgroup(8) over(y)\n" /* loops with fuel */
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "uniform a : u32 @2;\n"
    "{\n    let i = global_id.x;\n"
    "    var n = 0u;\n"
    "    if (i < len(x)) { while (n < x[i] % 50u) n += 1u; }\n"
    "    if (i < len(y)) y[i] = n + a;\n}\n"};

enum { KERNELS = sizeof kernels / sizeof kernels[0], N = 75 };

typedef struct data {
  uint32_t x[N], y[N], a;
} data;

static data fill(void) {
  data d = {.a = 3};
  for (uint32_t i = 0; i < N; i++) {
    d.x[i] = i * 2654435761u;
    d.y[i] = i + 5;
  }
  return d;
}

static vyre_code run(vyre_pipeline *pipeline, data *d, uint64_t fuel,
                     vyre_status *st) {
  const vyre_input inputs[] = {vyre_input_bytes(d->x, sizeof d->x),
                               vyre_input_bytes(d->y, sizeof d->y),
                               vyre_input_bytes(&d->a, sizeof d->a)};
  const vyre_output out = vyre_output_bytes(d->y, sizeof d->y);
  const vyre_dispatch_desc desc = {.inputs = inputs,
                                   .input_count = 3,
                                   .outputs = &out,
                                   .output_count = 1,
                                   .max_loop_iterations = fuel};
  return vyre_dispatch(pipeline, &desc, st);
}

static vyre_pipeline *compile(vyre_device *device, const char *text) {
  vyre_module *module;
  vyre_pipeline *pipeline;
  vyre_status st = {0};
  CHECK_OK(vyre_module_parse(text, strlen(text), "k", (vyre_allocator){0},
                             &module, NULL, &st),
           st);
  CHECK_OK(vyre_pipeline_compile(device, vyre_module_kernel(module, 0), NULL,
                                 &pipeline, NULL, &st),
           st);
  vyre_module_release(module);
  return pipeline;
}

static void compare(vyre_device *spirv, vyre_device *ref, const char *text) {
  vyre_status st = {0};
  vyre_pipeline *a = compile(spirv, text), *b = compile(ref, text);
  data got = fill(), want = fill();
  CHECK_OK(run(a, &got, 0, &st), st);
  CHECK_OK(run(b, &want, 0, &st), st);
  CHECK(memcmp(&got, &want, sizeof got) == 0);
  vyre_pipeline_release(a);
  vyre_pipeline_release(b);
}

static vyre_context *open_both(vyre_device **spirv, vyre_device **ref) {
  const vyre_backend *const tables[] = {&table, NULL};
  const vyre_context_options options = {.cache_directory = "",
                                        .trace_file = "",
                                        .faults = "",
                                        .backend_options = "",
                                        .backend_path = "",
                                        .backends = tables};
  vyre_context *context;
  vyre_status st = {0};
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  CHECK_OK(vyre_device_open(context, "spirv", spirv, &st), st);
  CHECK_OK(vyre_device_open(context, "ref", ref, &st), st);
  return context;
}

TEST(kernels_give_the_results_of_ref) {
  static const uint32_t limits[] = {0, 1, 4};
  for (size_t i = 0; i < 3; i++) {
    max_groups_x = limits[i];
    vyre_device *spirv, *ref;
    vyre_context *context = open_both(&spirv, &ref);
    for (size_t k = 0; k < KERNELS; k++) compare(spirv, ref, kernels[k]);
    vyre_device_release(spirv);
    vyre_device_release(ref);
    vyre_context_release(context);
  }
}

TEST(a_grid_is_cut_at_the_limit_of_the_device) {
  enum { GROUPS = (N + 7) / 8 };
  vyre_device *spirv, *ref;
  max_groups_x = 4;
  vyre_context *context = open_both(&spirv, &ref);
  launches = 0;
  compare(spirv, ref, kernels[0]);
  CHECK_U64(launches, (GROUPS + 3) / 4);
  vyre_device_release(spirv);
  vyre_device_release(ref);
  vyre_context_release(context);
}

TEST(fuel_and_device_buffers_work) {
  vyre_device *spirv, *ref;
  vyre_buffer buffer;
  vyre_status st = {0};
  data d = fill(), want = fill();
  max_groups_x = 0;
  vyre_context *context = open_both(&spirv, &ref);
  vyre_pipeline *loop = compile(spirv, kernels[3]);
  CHECK_FAILS(run(loop, &d, 10, &st), st, VYRE_DISPATCH_FAILED,
              VYRE_KIND_OUT_OF_FUEL);
  d = fill();
  CHECK_OK(run(loop, &d, 50, &st), st);
  vyre_pipeline *add = compile(spirv, kernels[0]),
                *on_ref = compile(ref, kernels[0]);
  d = fill();
  CHECK_OK(vyre_buffer_create(spirv, sizeof d.y + 4, &buffer, &st), st);
  /* At an offset that descriptors cannot have. */
  CHECK_OK(vyre_buffer_upload(spirv, buffer, 4, d.y, sizeof d.y, &st), st);
  const vyre_input inputs[] = {vyre_input_bytes(d.x, sizeof d.x),
                               {.buffer = buffer, .offset = 4},
                               vyre_input_bytes(&d.a, sizeof d.a)};
  const vyre_output out = {.buffer = buffer, .offset = 4};
  const vyre_dispatch_desc desc = {
      .inputs = inputs, .input_count = 3, .outputs = &out, .output_count = 1};
  for (int i = 0; i < 3; i++) {
    CHECK_OK(vyre_dispatch(add, &desc, &st), st);
    CHECK_OK(run(on_ref, &want, 0, &st), st);
  }
  CHECK_OK(vyre_buffer_download(spirv, buffer, 4, d.y, sizeof d.y, &st), st);
  CHECK(memcmp(d.y, want.y, sizeof d.y) == 0);
  vyre_pipeline_release(on_ref);
  vyre_pipeline_release(add);
  vyre_pipeline_release(loop);
  vyre_device_release(spirv);
  vyre_device_release(ref);
  vyre_context_release(context);
}

static const test_case all_cases[] = {
    TEST_ENTRY(kernels_give_the_results_of_ref),
    TEST_ENTRY(a_grid_is_cut_at_the_limit_of_the_device),
    TEST_ENTRY(fuel_and_device_buffers_work)};

int main(int argc, char **argv) {
  setenv("MESA_SHADER_CACHE_DISABLE", "true", 1);
  if (!vk_open(&runner)) {
    printf("skipped: no Vulkan 1.2 device\n");
    return 77;
  }
  int code = run_tests(all_cases, sizeof all_cases / sizeof all_cases[0],
                       argc > 1 ? argv[1] : NULL);
  vk_close(&runner);
  return code;
}

#else

#include <stdio.h>

int main(void) {
  printf("skipped: no Vulkan headers\n");
  return 77;
}

#endif
