/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The hand-written Vulkan peer; raw.h explains it. Without Vulkan headers only
 * a raw_open that fails is built. */
#include "raw.h"

#if __has_include(<vulkan/vulkan.h>)

#define VK_NO_PROTOTYPES
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

#include "bench.h"

#define INSTANCE_FUNCTIONS(X)               \
  X(DestroyInstance)                        \
  X(EnumeratePhysicalDevices)               \
  X(GetPhysicalDeviceProperties)            \
  X(GetPhysicalDeviceFeatures2)             \
  X(GetPhysicalDeviceQueueFamilyProperties) \
  X(GetPhysicalDeviceMemoryProperties)      \
  X(CreateDevice)                           \
  X(GetDeviceProcAddr)

#define DEVICE_FUNCTIONS(X)      \
  X(DestroyDevice)               \
  X(GetDeviceQueue)              \
  X(CreateBuffer)                \
  X(DestroyBuffer)               \
  X(GetBufferMemoryRequirements) \
  X(AllocateMemory)              \
  X(FreeMemory)                  \
  X(BindBufferMemory)            \
  X(MapMemory)                   \
  X(CreateShaderModule)          \
  X(DestroyShaderModule)         \
  X(CreateDescriptorSetLayout)   \
  X(DestroyDescriptorSetLayout)  \
  X(CreatePipelineLayout)        \
  X(DestroyPipelineLayout)       \
  X(CreateComputePipelines)      \
  X(DestroyPipeline)             \
  X(CreateDescriptorPool)        \
  X(DestroyDescriptorPool)       \
  X(AllocateDescriptorSets)      \
  X(UpdateDescriptorSets)        \
  X(CreateCommandPool)           \
  X(DestroyCommandPool)          \
  X(AllocateCommandBuffers)      \
  X(ResetCommandPool)            \
  X(BeginCommandBuffer)          \
  X(EndCommandBuffer)            \
  X(CmdBindPipeline)             \
  X(CmdBindDescriptorSets)       \
  X(CmdPushConstants)            \
  X(CmdDispatch)                 \
  X(CmdPipelineBarrier)          \
  X(CreateFence)                 \
  X(DestroyFence)                \
  X(WaitForFences)               \
  X(ResetFences)                 \
  X(QueueSubmit)

struct raw {
  void *library;
#define X_POINTER(name) PFN_vk##name name;
  INSTANCE_FUNCTIONS(X_POINTER)
  DEVICE_FUNCTIONS(X_POINTER)
#undef X_POINTER
  VkInstance instance;
  VkPhysicalDevice physical;
  VkDevice device;
  VkQueue queue;
  uint32_t family, memory_type;
  VkPhysicalDeviceProperties properties;
  char driver[64];
};

struct raw_kernel {
  raw *r;
  VkShaderModule module;
  VkDescriptorSetLayout set_layout;
  VkPipelineLayout layout;
  VkPipeline pipeline;
  uint32_t buffers, words;
};

struct raw_buffer {
  raw *r;
  VkBuffer buffer;
  VkDeviceMemory memory;
  void *bytes;
};

struct raw_set {
  raw *r;
  VkDescriptorPool pool;
  VkDescriptorSet set;
};

struct raw_list {
  raw *r;
  VkCommandPool pool;
  VkCommandBuffer commands;
  VkFence fence;
};

static void must(VkResult result, const char *operation) {
  char text[64];
  if (result == VK_SUCCESS) return;
  (void)snprintf(text, sizeof text, "VkResult %d", (int)result);
  bench_fail(operation, text);
}

static void *allocate(size_t size) {
  void *memory = calloc(1, size);
  if (!memory) bench_fail("raw Vulkan", "out of memory");
  return memory;
}

/* --- the device ----------------------------------------------------------- */

static const char *open_instance(raw *r) {
  PFN_vkGetInstanceProcAddr get = NULL;
  r->library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!r->library) return "libvulkan.so.1 is missing (Debian: libvulkan1)";
  void *symbol = dlsym(r->library, "vkGetInstanceProcAddr");
  memcpy(&get, &symbol, sizeof symbol);
  PFN_vkCreateInstance create =
      get ? (PFN_vkCreateInstance)get(NULL, "vkCreateInstance") : NULL;
  const VkApplicationInfo application = {
      .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
      .apiVersion = VK_API_VERSION_1_2};
  const VkInstanceCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
      .pApplicationInfo = &application};
  if (!create || create(&info, NULL, &r->instance) != VK_SUCCESS) {
    return "no instance: a driver is missing (Debian: mesa-vulkan-drivers)";
  }
#define X_LOAD(name)                                    \
  r->name = (PFN_vk##name)get(r->instance, "vk" #name); \
  if (!r->name) return "the loader has no vk" #name;
  INSTANCE_FUNCTIONS(X_LOAD)
#undef X_LOAD
  return NULL;
}

/* Returns a queue family that supports compute, or VK_QUEUE_FAMILY_IGNORED. */
static uint32_t find_family(const raw *r, VkPhysicalDevice physical) {
  VkQueueFamilyProperties families[16];
  uint32_t count = 16;
  r->GetPhysicalDeviceQueueFamilyProperties(physical, &count, families);
  for (uint32_t i = 0; i < count; i++) {
    if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) return i;
  }
  return VK_QUEUE_FAMILY_IGNORED;
}

static const char *choose(raw *r, uint32_t index) {
  VkPhysicalDevice found[16];
  uint32_t count = 16;
  VkResult result = r->EnumeratePhysicalDevices(r->instance, &count, found);
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) count = 0;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t family = find_family(r, found[i]);
    if (family == VK_QUEUE_FAMILY_IGNORED || index-- > 0) continue;
    r->physical = found[i];
    r->family = family;
    r->GetPhysicalDeviceProperties(found[i], &r->properties);
    return NULL;
  }
  return "no driver has a suitable device (Debian: mesa-vulkan-drivers)";
}

/* Chooses host-coherent memory: device-local if possible. On CPUs all types are
 * equal. */
static void choose_memory(raw *r) {
  VkPhysicalDeviceMemoryProperties m;
  const VkMemoryPropertyFlags needed = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                       VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  const VkMemoryPropertyFlags wanted =
      needed | VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  r->GetPhysicalDeviceMemoryProperties(r->physical, &m);
  for (int turn = 0; turn < 2; turn++) {
    VkMemoryPropertyFlags flags = turn == 0 ? wanted : needed;
    for (uint32_t i = 0; i < m.memoryTypeCount; i++) {
      if ((m.memoryTypes[i].propertyFlags & flags) != flags) continue;
      r->memory_type = i;
      return;
    }
  }
}

static const char *open_device(raw *r) {
  VkPhysicalDevice8BitStorageFeatures bytes = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES};
  VkPhysicalDeviceFeatures2 has = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &bytes};
  r->GetPhysicalDeviceFeatures2(r->physical, &has);
  bytes = (VkPhysicalDevice8BitStorageFeatures){
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_8BIT_STORAGE_FEATURES,
      .storageBuffer8BitAccess = bytes.storageBuffer8BitAccess};
  const float priority = 1;
  const VkDeviceQueueCreateInfo queue = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
      .queueFamilyIndex = r->family,
      .queueCount = 1,
      .pQueuePriorities = &priority};
  const VkDeviceCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
      .pNext = &bytes,
      .queueCreateInfoCount = 1,
      .pQueueCreateInfos = &queue};
  if (r->CreateDevice(r->physical, &info, NULL, &r->device) != VK_SUCCESS) {
    return "the device cannot be opened";
  }
#define X_LOAD(name)                                                   \
  r->name = (PFN_vk##name)r->GetDeviceProcAddr(r->device, "vk" #name); \
  if (!r->name) return "the driver has no vk" #name;
  DEVICE_FUNCTIONS(X_LOAD)
#undef X_LOAD
  r->GetDeviceQueue(r->device, r->family, 0, &r->queue);
  choose_memory(r);
  return NULL;
}

raw *raw_open(uint32_t index, const char **reason) {
  raw *r = allocate(sizeof *r);
  *reason = open_instance(r);
  if (!*reason) *reason = choose(r, index);
  if (!*reason) *reason = open_device(r);
  if (!*reason) {
    uint32_t version = r->properties.driverVersion;
    (void)snprintf(r->driver, sizeof r->driver, "driver %u.%u.%u",
                   VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version),
                   VK_API_VERSION_PATCH(version));
    return r;
  }
  raw_close(r);
  return NULL;
}

void raw_close(raw *r) {
  if (!r) return;
  if (r->device && r->DestroyDevice) r->DestroyDevice(r->device, NULL);
  if (r->instance && r->DestroyInstance) r->DestroyInstance(r->instance, NULL);
  if (r->library) (void)dlclose(r->library);
  free(r);
}

const char *raw_name(const raw *r) {
  return r->properties.deviceName;
}

const char *raw_driver(const raw *r) {
  return r->driver;
}

bool raw_is_software(const raw *r) {
  return r->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
}

/* --- memory --------------------------------------------------------------- */

raw_buffer *raw_buffer_create(raw *r, size_t size) {
  raw_buffer *b = allocate(sizeof *b);
  b->r = r;
  const VkBufferCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
      .size = (size + 3) / 4 * 4,
      .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT};
  VkMemoryRequirements needs;
  must(r->CreateBuffer(r->device, &info, NULL, &b->buffer), "buffer");
  r->GetBufferMemoryRequirements(r->device, b->buffer, &needs);
  const VkMemoryAllocateInfo allocation = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
      .allocationSize = needs.size,
      .memoryTypeIndex = r->memory_type};
  must(r->AllocateMemory(r->device, &allocation, NULL, &b->memory), "memory");
  must(r->BindBufferMemory(r->device, b->buffer, b->memory, 0), "memory");
  must(r->MapMemory(r->device, b->memory, 0, VK_WHOLE_SIZE, 0, &b->bytes),
       "memory");
  return b;
}

void raw_buffer_free(raw_buffer *b) {
  if (!b) return;
  b->r->DestroyBuffer(b->r->device, b->buffer, NULL);
  b->r->FreeMemory(b->r->device, b->memory, NULL);
  free(b);
}

void *raw_buffer_bytes(const raw_buffer *b) {
  return b->bytes;
}

/* --- kernels -------------------------------------------------------------- */

static uint32_t *read_words(const char *name, size_t *size) {
  char path[1024];
  (void)snprintf(path, sizeof path, "%s/vulkan/%s.spv", VYRE_BENCH_PEERS, name);
  FILE *file = fopen(path, "rb");
  if (!file) return NULL;
  enum { ROOM = 1 << 18 };
  uint32_t *words = allocate(ROOM);
  *size = fread(words, 1, ROOM, file);
  (void)fclose(file);
  if (*size == 0 || *size == ROOM || *size % 4 != 0)
    bench_fail(path, "is not a SPIR-V module");
  return words;
}

static void make_layout(raw_kernel *k) {
  VkDescriptorSetLayoutBinding bindings[RAW_BUFFERS];
  for (uint32_t i = 0; i < k->buffers; i++) {
    bindings[i] = (VkDescriptorSetLayoutBinding){
        .binding = i,
        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .descriptorCount = 1,
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
  }
  const VkDescriptorSetLayoutCreateInfo sets = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
      .bindingCount = k->buffers,
      .pBindings = bindings};
  raw *r = k->r;
  must(r->CreateDescriptorSetLayout(r->device, &sets, NULL, &k->set_layout),
       "layout");
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                     k->words * 4};
  const VkPipelineLayoutCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
      .setLayoutCount = 1,
      .pSetLayouts = &k->set_layout,
      .pushConstantRangeCount = k->words > 0,
      .pPushConstantRanges = &range};
  must(r->CreatePipelineLayout(r->device, &info, NULL, &k->layout), "layout");
}

raw_kernel *raw_kernel_create(raw *r, const char *name, uint32_t buffers,
                              uint32_t words) {
  size_t size = 0;
  uint32_t *code = read_words(name, &size);
  if (!code) return NULL;
  raw_kernel *k = allocate(sizeof *k);
  *k = (raw_kernel){.r = r, .buffers = buffers, .words = words};
  const VkShaderModuleCreateInfo module = {
      .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
      .codeSize = size,
      .pCode = code};
  must(r->CreateShaderModule(r->device, &module, NULL, &k->module), name);
  make_layout(k);
  const VkComputePipelineCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
      .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .module = k->module,
                .pName = "main"},
      .layout = k->layout};
  must(r->CreateComputePipelines(r->device, VK_NULL_HANDLE, 1, &info, NULL,
                                 &k->pipeline),
       name);
  free(code);
  return k;
}

void raw_kernel_free(raw_kernel *k) {
  if (!k) return;
  raw *r = k->r;
  r->DestroyPipeline(r->device, k->pipeline, NULL);
  r->DestroyPipelineLayout(r->device, k->layout, NULL);
  r->DestroyDescriptorSetLayout(r->device, k->set_layout, NULL);
  r->DestroyShaderModule(r->device, k->module, NULL);
  free(k);
}

raw_set *raw_set_create(raw_kernel *k, const raw_range *ranges) {
  raw *r = k->r;
  raw_set *s = allocate(sizeof *s);
  s->r = r;
  const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                     k->buffers};
  const VkDescriptorPoolCreateInfo pool = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
      .maxSets = 1,
      .poolSizeCount = 1,
      .pPoolSizes = &size};
  must(r->CreateDescriptorPool(r->device, &pool, NULL, &s->pool), "pool");
  const VkDescriptorSetAllocateInfo info = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
      .descriptorPool = s->pool,
      .descriptorSetCount = 1,
      .pSetLayouts = &k->set_layout};
  must(r->AllocateDescriptorSets(r->device, &info, &s->set), "set");
  VkDescriptorBufferInfo infos[RAW_BUFFERS];
  VkWriteDescriptorSet writes[RAW_BUFFERS];
  for (uint32_t i = 0; i < k->buffers; i++) {
    infos[i] = (VkDescriptorBufferInfo){
        ranges[i].buffer->buffer, ranges[i].offset,
        ranges[i].size ? ranges[i].size : VK_WHOLE_SIZE};
    writes[i] = (VkWriteDescriptorSet){
        .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
        .dstSet = s->set,
        .dstBinding = i,
        .descriptorCount = 1,
        .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
        .pBufferInfo = &infos[i]};
  }
  r->UpdateDescriptorSets(r->device, k->buffers, writes, 0, NULL);
  return s;
}

void raw_set_free(raw_set *s) {
  if (!s) return;
  s->r->DestroyDescriptorPool(s->r->device, s->pool, NULL);
  free(s);
}

/* --- running -------------------------------------------------------------- */

raw_list *raw_list_create(raw *r) {
  raw_list *l = allocate(sizeof *l);
  l->r = r;
  const VkCommandPoolCreateInfo pool = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
      .queueFamilyIndex = r->family};
  must(r->CreateCommandPool(r->device, &pool, NULL, &l->pool), "commands");
  const VkCommandBufferAllocateInfo info = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
      .commandPool = l->pool,
      .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
      .commandBufferCount = 1};
  must(r->AllocateCommandBuffers(r->device, &info, &l->commands), "commands");
  const VkFenceCreateInfo fence = {.sType =
                                       VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  must(r->CreateFence(r->device, &fence, NULL, &l->fence), "fence");
  return l;
}

void raw_list_free(raw_list *l) {
  if (!l) return;
  l->r->DestroyFence(l->r->device, l->fence, NULL);
  l->r->DestroyCommandPool(l->r->device, l->pool, NULL);
  free(l);
}

static void barrier(const raw_list *l, VkPipelineStageFlags stage,
                    VkAccessFlags access) {
  const VkMemoryBarrier memory = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                  .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                  .dstAccessMask = access};
  l->r->CmdPipelineBarrier(l->commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                           stage, 0, 1, &memory, 0, NULL, 0, NULL);
}

void raw_record(raw_list *l, const raw_dispatch *items, size_t count) {
  raw *r = l->r;
  const VkCommandBufferBeginInfo begin = {
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  VkPipeline bound = VK_NULL_HANDLE;
  must(r->ResetCommandPool(r->device, l->pool, 0), "record");
  must(r->BeginCommandBuffer(l->commands, &begin), "record");
  for (size_t i = 0; i < count; i++) {
    const raw_dispatch *d = &items[i];
    const raw_kernel *k = d->kernel;
    if (d->waits) {
      barrier(l, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
              VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT);
    }
    if (k->pipeline != bound) {
      r->CmdBindPipeline(l->commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                         k->pipeline);
      bound = k->pipeline;
    }
    r->CmdBindDescriptorSets(l->commands, VK_PIPELINE_BIND_POINT_COMPUTE,
                             k->layout, 0, 1, &d->set->set, 0, NULL);
    if (k->words > 0) {
      r->CmdPushConstants(l->commands, k->layout, VK_SHADER_STAGE_COMPUTE_BIT,
                          0, k->words * 4, d->words);
    }
    r->CmdDispatch(l->commands, d->grid[0], d->grid[1], d->grid[2]);
  }
  barrier(l, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
  must(r->EndCommandBuffer(l->commands), "record");
}

void raw_run(raw_list *l) {
  raw *r = l->r;
  const VkSubmitInfo submit = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .commandBufferCount = 1,
                               .pCommandBuffers = &l->commands};
  must(r->QueueSubmit(r->queue, 1, &submit, l->fence), "submit");
  must(r->WaitForFences(r->device, 1, &l->fence, VK_TRUE, UINT64_MAX), "wait");
  must(r->ResetFences(r->device, 1, &l->fence), "wait");
}

#else /* without Vulkan headers */

raw *raw_open(uint32_t index, const char **reason) {
  (void)index;
  *reason =
      "the benchmark was built without vulkan/vulkan.h (Debian: libvulkan-dev)";
  return NULL;
}

void raw_close(raw *r) {
  (void)r;
}

const char *raw_name(const raw *r) {
  (void)r;
  return "";
}

const char *raw_driver(const raw *r) {
  (void)r;
  return "";
}

bool raw_is_software(const raw *r) {
  (void)r;
  return false;
}

raw_kernel *raw_kernel_create(raw *r, const char *name, uint32_t buffers,
                              uint32_t words) {
  (void)r, (void)name, (void)buffers, (void)words;
  return NULL;
}

void raw_kernel_free(raw_kernel *k) {
  (void)k;
}

raw_buffer *raw_buffer_create(raw *r, size_t size) {
  (void)r, (void)size;
  return NULL;
}

void raw_buffer_free(raw_buffer *b) {
  (void)b;
}

void *raw_buffer_bytes(const raw_buffer *b) {
  (void)b;
  return NULL;
}

raw_set *raw_set_create(raw_kernel *k, const raw_range *ranges) {
  (void)k, (void)ranges;
  return NULL;
}

void raw_set_free(raw_set *s) {
  (void)s;
}

raw_list *raw_list_create(raw *r) {
  (void)r;
  return NULL;
}

void raw_list_free(raw_list *l) {
  (void)l;
}

void raw_record(raw_list *l, const raw_dispatch *items, size_t count) {
  (void)l, (void)items, (void)count;
}

void raw_run(raw_list *l) {
  (void)l;
}

#endif
