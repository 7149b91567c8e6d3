/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For tests: runs a module on a Vulkan device in the simplest way, using only
 * the module's description of its interface. Every buffer is host memory, and
 * every launch is waited for. */
#ifndef VYRE_CODEGEN_SPIRV_SPIRV_VULKAN_TESTING_H
#define VYRE_CODEGEN_SPIRV_SPIRV_VULKAN_TESTING_H

#include <dlfcn.h>

#include "backend/vulkan/device/functions.h"
#include "codegen/spirv/spirv.h"
#include "support/check.h"
#include "testing/lir_interp.h"

#define VK_CALLS(X)    \
  VK_INSTANCE_CALLS(X) \
  VK_DEVICE_CALLS(X)

typedef struct vk_runner {
  void *library;
#define X(name) PFN_vk##name name;
  VK_CALLS(X)
#undef X
  VkInstance instance;
  VkPhysicalDevice physical;
  VkDevice device;
  VkQueue queue;
  VkCommandPool pool;
  VkCommandBuffer commands;
  uint32_t memory_type; /* host-visible */
  VkPhysicalDeviceProperties properties;
  VkPhysicalDeviceVulkan11Features v11;
  VkPhysicalDeviceVulkan12Features v12;
  VkPhysicalDeviceFeatures features;
} vk_runner;

#define VK_CHECK(call)                                  \
  do {                                                  \
    VkResult result_ = (call);                          \
    if (result_ != VK_SUCCESS) {                        \
      printf("    %s gives %d\n", #call, (int)result_); \
      test_fail(__FILE__, __LINE__);                    \
    }                                                   \
  } while (0)

/* --- the device ----------------------------------------------------------- */

/* Chooses a software device if possible, so that tests are reproducible. */
static inline bool vk_choose(vk_runner *r) {
  VkPhysicalDevice found[16];
  uint32_t count = 16;
  VkResult result = r->EnumeratePhysicalDevices(r->instance, &count, found);
  if ((result != VK_SUCCESS && result != VK_INCOMPLETE) || count == 0) {
    return false;
  }
  for (uint32_t i = count; i-- > 0;) {
    VkPhysicalDeviceProperties p;
    r->GetPhysicalDeviceProperties(found[i], &p);
    bool is_better =
        i == count - 1 || p.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
    if (p.apiVersion < VK_API_VERSION_1_2 || !is_better) continue;
    r->physical = found[i];
    r->properties = p;
  }
  return r->physical != NULL;
}

static inline bool vk_load_instance(vk_runner *r) {
  PFN_vkGetInstanceProcAddr get;
  void *symbol = dlsym(r->library, "vkGetInstanceProcAddr");
  if (!symbol) return false;
  memcpy(&get, &symbol, sizeof get);
  PFN_vkCreateInstance create =
      (PFN_vkCreateInstance)get(NULL, "vkCreateInstance");
  const VkApplicationInfo about = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                   .apiVersion = VK_API_VERSION_1_2};
  const VkInstanceCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
      .pApplicationInfo = &about};
  if (!create || create(&info, NULL, &r->instance) != VK_SUCCESS) return false;
#define X(name)                                         \
  r->name = (PFN_vk##name)get(r->instance, "vk" #name); \
  if (!r->name) return false;
  VK_CALLS(X)
#undef X
  return true;
}

/* Enables all features of the device. */
static inline void vk_create_device(vk_runner *r) {
  const float one = 1;
  r->v12 = (VkPhysicalDeviceVulkan12Features){
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES};
  r->v11 = (VkPhysicalDeviceVulkan11Features){
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
      .pNext = &r->v12};
  VkPhysicalDeviceFeatures2 all = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &r->v11};
  r->GetPhysicalDeviceFeatures2(r->physical, &all);
  all.features.robustBufferAccess = VK_FALSE; /* no help from the device */
  r->features = all.features;
  const VkDeviceQueueCreateInfo queue = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
      .queueCount = 1,
      .pQueuePriorities = &one};
  const VkDeviceCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
      .pNext = &all,
      .queueCreateInfoCount = 1,
      .pQueueCreateInfos = &queue};
  VK_CHECK(r->CreateDevice(r->physical, &info, NULL, &r->device));
  r->GetDeviceQueue(r->device, 0, 0, &r->queue);
  const VkCommandPoolCreateInfo pool = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO};
  VK_CHECK(r->CreateCommandPool(r->device, &pool, NULL, &r->pool));
  const VkCommandBufferAllocateInfo commands = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
      .commandPool = r->pool,
      .commandBufferCount = 1};
  VK_CHECK(r->AllocateCommandBuffers(r->device, &commands, &r->commands));
}

/* Returns false without a loader or a Vulkan 1.2 device. */
static inline bool vk_open(vk_runner *r) {
  memset(r, 0, sizeof *r);
  r->library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!r->library || !vk_load_instance(r) || !vk_choose(r)) return false;
  vk_create_device(r);
  VkPhysicalDeviceMemoryProperties memory;
  r->GetPhysicalDeviceMemoryProperties(r->physical, &memory);
  const VkMemoryPropertyFlags want = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                     VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  for (r->memory_type = 0; r->memory_type < memory.memoryTypeCount;
       r->memory_type++) {
    if ((memory.memoryTypes[r->memory_type].propertyFlags & want) == want) {
      return true;
    }
  }
  return false;
}

static inline void vk_close(vk_runner *r) {
  r->DestroyCommandPool(r->device, r->pool, NULL);
  r->DestroyDevice(r->device, NULL);
  r->DestroyInstance(r->instance, NULL);
}

/* --- a module ------------------------------------------------------------- */

typedef struct vk_memory {
  VkBuffer buffer;
  VkDeviceMemory memory;
  uint8_t *bytes;
  size_t size; /* full words, plus a guard */
} vk_memory;

enum { VK_GUARD = 64, VK_POISON = 0xA5, VK_MAX = 80 };

typedef struct vk_job {
  vk_runner *r;
  const vyre__spirv_module *m;
  const vyre__lir_kernel *k;
  vyre__lir_binding *bound; /* one per buffer of the kernel */
  uint32_t grid[3];
  uint32_t fuel;
  uint32_t max_groups; /* per launch, in x; 0: all */
  uint64_t loop_values[16], loop_bounds[16];
  vk_memory memory[VK_MAX]; /* one per descriptor */
  VkDescriptorSetLayout set_layout;
  VkPipelineLayout layout;
  VkShaderModule shader;
  VkPipeline pipelines[32];
  VkDescriptorPool pool;
  VkDescriptorSet set;
  bool is_out_of_fuel, is_cut;
} vk_job;

static inline vk_memory vk_make(vk_runner *r, size_t size) {
  vk_memory m = {.size = (size + 3) / 4 * 4 + VK_GUARD};
  const VkBufferCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
      .size = m.size,
      .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
               VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT};
  VK_CHECK(r->CreateBuffer(r->device, &info, NULL, &m.buffer));
  VkMemoryRequirements need;
  r->GetBufferMemoryRequirements(r->device, m.buffer, &need);
  const VkMemoryAllocateInfo allocate = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
      .allocationSize = need.size,
      .memoryTypeIndex = r->memory_type};
  VK_CHECK(r->AllocateMemory(r->device, &allocate, NULL, &m.memory));
  VK_CHECK(r->BindBufferMemory(r->device, m.buffer, m.memory, 0));
  void *bytes = NULL;
  VK_CHECK(r->MapMemory(r->device, m.memory, 0, VK_WHOLE_SIZE, 0, &bytes));
  m.bytes = bytes;
  memset(m.bytes, VK_POISON, m.size);
  return m;
}

static inline size_t vk_bytes(const vk_job *j,
                              const vyre__spirv_descriptor *d) {
  if (d->what == VYRE__SPIRV_STATUS) return 4;
  if (d->what == VYRE__SPIRV_BLOCK) return j->m->block_bytes;
  return (size_t)j->bound[d->buffer].length * j->k->buffers[d->buffer].unit;
}

static inline void vk_make_memory(vk_job *j) {
  CHECK(j->m->descriptor_count <= VK_MAX);
  for (size_t i = 0; i < j->m->descriptor_count; i++) {
    const vyre__spirv_descriptor *d = &j->m->descriptors[i];
    size_t size = vk_bytes(j, d);
    j->memory[i] = vk_make(j->r, size);
    if (d->what == VYRE__SPIRV_STATUS) memset(j->memory[i].bytes, 0, 4);
    if (d->what == VYRE__SPIRV_BUFFER && size) {
      memcpy(j->memory[i].bytes, j->bound[d->buffer].data, size);
    }
  }
}

static inline void vk_make_layout(vk_job *j) {
  VkDescriptorSetLayoutBinding bindings[VK_MAX];
  size_t count = j->m->descriptor_count;
  for (size_t i = 0; i < count; i++) {
    const vyre__spirv_descriptor *d = &j->m->descriptors[i];
    bindings[i] = (VkDescriptorSetLayoutBinding){
        .binding = d->binding,
        .descriptorType = d->is_uniform ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER
                                        : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .descriptorCount = 1,
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
  }
  const VkDescriptorSetLayoutCreateInfo set = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
      .bindingCount = (uint32_t)count,
      .pBindings = bindings};
  VK_CHECK(j->r->CreateDescriptorSetLayout(j->r->device, &set, NULL,
                                           &j->set_layout));
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                     j->m->push_bytes};
  const VkPipelineLayoutCreateInfo layout = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
      .setLayoutCount = 1,
      .pSetLayouts = &j->set_layout,
      .pushConstantRangeCount = j->m->push_bytes ? 1 : 0,
      .pPushConstantRanges = &range};
  VK_CHECK(j->r->CreatePipelineLayout(j->r->device, &layout, NULL, &j->layout));
}

static inline void vk_make_pipelines(vk_job *j) {
  const VkShaderModuleCreateInfo shader = {
      .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
      .codeSize = j->m->word_count * 4,
      .pCode = j->m->words};
  VK_CHECK(j->r->CreateShaderModule(j->r->device, &shader, NULL, &j->shader));
  /* The maximum fuel needs no counting. */
  static const VkBool32 no = VK_FALSE;
  static const VkSpecializationMapEntry entry = {VYRE__SPIRV_COUNTS_FUEL, 0,
                                                 sizeof no};
  static const VkSpecializationInfo constants = {1, &entry, sizeof no, &no};
  bool skips = j->m->may_skip_fuel && j->fuel == UINT32_MAX;
  CHECK(j->m->entry_points <= 32);
  for (uint32_t i = 0; i < j->m->entry_points; i++) {
    char name[24];
    snprintf(name, sizeof name, "phase%u", (unsigned)i);
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                  .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                  .module = j->shader,
                  .pName = name,
                  .pSpecializationInfo = skips ? &constants : NULL},
        .layout = j->layout};
    VK_CHECK(j->r->CreateComputePipelines(j->r->device, VK_NULL_HANDLE, 1,
                                          &info, NULL, &j->pipelines[i]));
  }
}

static inline void vk_make_set(vk_job *j) {
  const VkDescriptorPoolSize sizes[2] = {
      {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, VK_MAX},
      {VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER, 1}};
  const VkDescriptorPoolCreateInfo pool = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
      .maxSets = 1,
      .poolSizeCount = 2,
      .pPoolSizes = sizes};
  VK_CHECK(j->r->CreateDescriptorPool(j->r->device, &pool, NULL, &j->pool));
  const VkDescriptorSetAllocateInfo set = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
      .descriptorPool = j->pool,
      .descriptorSetCount = 1,
      .pSetLayouts = &j->set_layout};
  VK_CHECK(j->r->AllocateDescriptorSets(j->r->device, &set, &j->set));
  for (size_t i = 0; i < j->m->descriptor_count; i++) {
    const vyre__spirv_descriptor *d = &j->m->descriptors[i];
    size_t range = j->memory[i].size - VK_GUARD;
    /* An empty range is not allowed: a word that the kernel must not access. */
    const VkDescriptorBufferInfo info = {j->memory[i].buffer, 0,
                                         range ? range : 4};
    const VkWriteDescriptorSet write = {
        .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
        .dstSet = j->set,
        .dstBinding = d->binding,
        .descriptorCount = 1,
        .descriptorType = d->is_uniform ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER
                                        : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .pBufferInfo = &info};
    j->r->UpdateDescriptorSets(j->r->device, 1, &write, 0, NULL);
  }
}

/* --- a launch ------------------------------------------------------------- */

static inline void vk_fill(vk_job *j, const uint32_t base[3], uint8_t *push) {
  uint8_t *block = NULL;
  for (size_t i = 0; i < j->m->descriptor_count; i++) {
    if (j->m->descriptors[i].what == VYRE__SPIRV_BLOCK) {
      block = j->memory[i].bytes;
    }
  }
  for (size_t i = 0; i < j->m->field_count; i++) {
    const vyre__spirv_field *f = &j->m->fields[i];
    CHECK(f->is_pushed || block);
    uint8_t *to = (f->is_pushed ? push : block) + f->offset;
    const vyre__lir_binding *b = &j->bound[f->index];
    size_t bytes;
    switch ((vyre__spirv_value)f->value) {
      case VYRE__SPIRV_BASE:
        memcpy(to, base, f->size);
        break;
      case VYRE__SPIRV_GRID:
        memcpy(to, j->grid, f->size);
        break;
      case VYRE__SPIRV_FUEL:
        memcpy(to, &j->fuel, f->size);
        break;
      case VYRE__SPIRV_ONE:
        memcpy(to, &(uint32_t){1}, f->size);
        break;
      case VYRE__SPIRV_LOOP_VALUE:
        memcpy(to, &j->loop_values[f->index], f->size);
        break;
      case VYRE__SPIRV_LENGTH:
        memcpy(to, &b->length, f->size);
        break;
      case VYRE__SPIRV_UNIFORM:
        bytes = (size_t)b->length * j->k->buffers[f->index].unit;
        memset(to, 0, f->size);
        memcpy(to, b->data, bytes < f->size ? bytes : f->size);
        break;
    }
  }
}

static inline void vk_launch(vk_job *j, uint32_t phase, const uint32_t base[3],
                             const uint32_t groups[3]) {
  vk_runner *r = j->r;
  uint8_t push[256];
  CHECK(j->m->push_bytes <= sizeof push);
  vk_fill(j, base, push);
  const VkCommandBufferBeginInfo begin = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  VK_CHECK(r->ResetCommandPool(r->device, r->pool, 0));
  VK_CHECK(r->BeginCommandBuffer(r->commands, &begin));
  r->CmdBindPipeline(r->commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                     j->pipelines[phase]);
  r->CmdBindDescriptorSets(r->commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                           j->layout, 0, 1, &j->set, 0, NULL);
  if (j->m->push_bytes) {
    r->CmdPushConstants(r->commands, j->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0,
                        j->m->push_bytes, push);
  }
  r->CmdDispatch(r->commands, groups[0], groups[1], groups[2]);
  VK_CHECK(r->EndCommandBuffer(r->commands));
  const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &r->commands};
  VK_CHECK(r->QueueSubmit(r->queue, 1, &submit, VK_NULL_HANDLE));
  VK_CHECK(r->QueueWaitIdle(r->queue));
}

/* Launches at most most_groups in x at a time, the last ones first. */
static inline void vk_run_phase(vk_job *j, uint32_t phase) {
  uint32_t each = j->max_groups ? j->max_groups : j->grid[0];
  uint32_t launches = each ? (j->grid[0] + each - 1) / each : 0;
  for (uint32_t i = launches; i-- > 0;) {
    uint32_t base[3] = {i * each, 0, 0};
    uint32_t left = j->grid[0] - base[0];
    const uint32_t groups[3] = {left < each ? left : each, j->grid[1],
                                j->grid[2]};
    vk_launch(j, phase, base, groups);
  }
}

/* --- host schedule -------------------------------------------------------- */

static inline uint64_t vk_host_value(const vk_job *j, const uint64_t *values,
                                     uint32_t at) {
  const vyre__lir_kernel *k = j->k;
  const vyre__lir_inst *inst = &k->code[at];
  uint64_t args[3] = {0, 0, 0}, out = 0;
  if (inst->op == VYRE__LIR_CONST) return vyre__lir_const(inst);
  if (inst->op == VYRE__LIR_LEN) return j->bound[inst->aux].length;
  if (inst->op == VYRE__LIR_LOOP_VALUE) {
    return vyre__lir_loop_value(inst, j->loop_values[inst->aux]);
  }
  for (unsigned i = 0; i < vyre__lir_ops[inst->op].operands && i < 3; i++) {
    if (inst->v[i]) args[i] = values[inst->v[i] - k->host.begin];
  }
  if (inst->op == VYRE__LIR_LOAD) {
    unsigned width = k->buffers[inst->aux].width;
    if (inst->b && !args[1]) return 0;
    memcpy(&out, (const char *)j->bound[inst->aux].data + args[0] * width,
           width);
    return out;
  }
  vyre__val first = inst->op == VYRE__LIR_SELECT ? inst->b : inst->a;
  CHECK(vyre__lir_eval((vyre__lir_op)inst->op, (vyre_type)k->code[first].type,
                       (vyre_type)inst->type, args, &out));
  return out;
}

static inline void vk_enter_loop(vk_job *j, const vyre__lir_step *s) {
  const vyre__lir_phase host = j->k->host;
  uint64_t *values = calloc((size_t)(host.end - host.begin) + 1, 8);
  CHECK(values && s->loop < 16);
  for (uint32_t at = host.begin; at < host.end; at++) {
    values[at - host.begin] = vk_host_value(j, values, at);
  }
  j->loop_values[s->loop] = values[s->first - host.begin];
  j->loop_bounds[s->loop] = values[s->bound - host.begin];
  free(values);
}

static inline __int128 vk_number(const vyre__lir_step *s, uint64_t bits) {
  if (s->type == VYRE_TYPE_I32) return (int32_t)(uint32_t)bits;
  if (s->type == VYRE_TYPE_I64) return (int64_t)bits;
  return s->type == VYRE_TYPE_U32 ? (__int128)(uint32_t)bits : (__int128)bits;
}

/* Returns true if the loop continues with @p value, which may not fit its
 * type. */
static inline bool vk_goes_on(const vk_job *j, const vyre__lir_step *s,
                              __int128 value) {
  __int128 bound = vk_number(s, j->loop_bounds[s->loop]);
  if (vk_number(s, (uint64_t)value) != value) return false;
  switch ((vyre__loop)s->loop_kind) {
    case VYRE__LOOP_LT:
      return value < bound;
    case VYRE__LOOP_LE:
      return value <= bound;
    case VYRE__LOOP_GT:
      return value > bound;
    default:
      return value >= bound;
  }
}

/* Runs steps [at, ...) up to the END_FOR of loop @p until. Returns its
 * index. */
static inline uint32_t vk_run_steps(vk_job *j, uint32_t at, uint32_t until) {
  const vyre__lir_kernel *k = j->k;
  while (at < k->step_count) {
    const vyre__lir_step *s = &k->steps[at];
    if (s->kind == VYRE__STEP_RUN) {
      vk_run_phase(j, s->phase);
      at++;
      continue;
    }
    if (s->kind == VYRE__STEP_END_FOR) {
      CHECK(s->loop == until);
      return at;
    }
    uint32_t end = at + 1;
    for (; k->steps[end].kind != VYRE__STEP_END_FOR ||
           k->steps[end].loop != s->loop;
         end++) {
    }
    bool down = s->loop_kind == VYRE__LOOP_GT || s->loop_kind == VYRE__LOOP_GE;
    vk_enter_loop(j, s);
    __int128 value = vk_number(s, j->loop_values[s->loop]);
    while (vk_goes_on(j, s, value)) {
      bool narrow = s->type == VYRE_TYPE_U32 || s->type == VYRE_TYPE_I32;
      j->loop_values[s->loop] =
          narrow ? (uint32_t)(uint64_t)value : (uint64_t)value;
      (void)vk_run_steps(j, at + 1, s->loop);
      value += down ? -(__int128)s->step : (__int128)s->step;
    }
    at = end + 1;
  }
  return at;
}

/* --- entry point ---------------------------------------------------------- */

/* Copies written buffers back, and checks that nothing else was written. */
static inline void vk_take_results(vk_job *j) {
  for (size_t i = 0; i < j->m->descriptor_count; i++) {
    const vyre__spirv_descriptor *d = &j->m->descriptors[i];
    const vk_memory *m = &j->memory[i];
    size_t size = vk_bytes(j, d);
    for (size_t n = size; n < m->size; n++) CHECK(m->bytes[n] == VK_POISON);
    if (d->what == VYRE__SPIRV_STATUS) {
      uint32_t word;
      memcpy(&word, m->bytes, 4);
      CHECK(word <= VYRE__SPIRV_CUT);
      j->is_out_of_fuel = word == VYRE__SPIRV_OUT_OF_FUEL;
      j->is_cut = word == VYRE__SPIRV_CUT;
    }
    if (d->what != VYRE__SPIRV_BUFFER || size == 0) continue;
    if (!d->is_written) {
      CHECK(memcmp(m->bytes, j->bound[d->buffer].data, size) == 0);
    }
    memcpy(j->bound[d->buffer].data, m->bytes, size);
  }
}

static inline void vk_free_job(vk_job *j) {
  vk_runner *r = j->r;
  for (uint32_t i = 0; i < j->m->entry_points; i++) {
    r->DestroyPipeline(r->device, j->pipelines[i], NULL);
  }
  r->DestroyShaderModule(r->device, j->shader, NULL);
  r->DestroyDescriptorPool(r->device, j->pool, NULL);
  r->DestroyPipelineLayout(r->device, j->layout, NULL);
  r->DestroyDescriptorSetLayout(r->device, j->set_layout, NULL);
  for (size_t i = 0; i < j->m->descriptor_count; i++) {
    r->DestroyBuffer(r->device, j->memory[i].buffer, NULL);
    r->FreeMemory(r->device, j->memory[i].memory, NULL);
  }
}

/* Runs the dispatch that @p j describes (the fields up to most_groups). The
 * memory of `bound` then holds the results. */
static inline void vk_run(vk_job *j) {
  vk_make_memory(j);
  vk_make_layout(j);
  vk_make_pipelines(j);
  vk_make_set(j);
  (void)vk_run_steps(j, 0, VYRE_NO_INDEX);
  vk_take_results(j);
  vk_free_job(j);
}

#endif
