/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Allocates device memory in few large blocks, each with one buffer over all of
 * it. Ranges are cut from the first hole that is large enough; adjacent holes
 * are merged. */
#include "backend/vulkan/memory/heap.h"

#include <string.h>

#include "backend/vulkan/command/command_list.h"
#include "backend/vulkan/command/encoded_dispatch.h"
#include "backend/vulkan/command/submit.h"
#include "backend/vulkan/device/device.h"
#include "backend/vulkan/device/functions.h"
#include "backend/vulkan/memory/staging.h"
#include "base/memory.h"
#include "base/status.h"
#include "hal/launch.h"

enum { BLOCK_BYTES = 32 << 20 };

typedef struct hole {
  uint64_t offset, size;
} hole;

/* A block. Its holes are sorted and never adjacent. There is at most one hole
 * more than ranges; each allocation reserves space for one more hole, so that
 * freeing cannot fail. */
struct vk_block {
  vk_block *next;
  VkDeviceMemory memory;
  VkBuffer buffer;
  unsigned char *host;
  uint64_t size, id;
  vk_memory_kind kind;
  bool is_imported; /* the caller's memory; the block is in no list */
  hole *holes;
  size_t hole_count, hole_capacity, ranges;
};

/* --- memory types --------------------------------------------------------- */

/* Memory properties that need device features which are not enabled. */
static const VkMemoryPropertyFlags excluded_flags =
    VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT | VK_MEMORY_PROPERTY_PROTECTED_BIT |
    VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD |
    VK_MEMORY_PROPERTY_DEVICE_UNCACHED_BIT_AMD;

/* Returns the memory type in @p bits that has all @p required flags, if
 * possible also the @p preferred ones, and the largest heap. Returns UINT32_MAX
 * if no type matches. */
static uint32_t find_type(const VkPhysicalDeviceMemoryProperties *memory,
                          uint32_t bits, VkMemoryPropertyFlags required,
                          VkMemoryPropertyFlags preferred) {
  for (unsigned attempt = 0; attempt < 2; attempt++) {
    VkMemoryPropertyFlags all = attempt == 0 ? required | preferred : required;
    uint32_t best = UINT32_MAX;
    uint64_t max = 0;
    for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
      VkMemoryPropertyFlags has = memory->memoryTypes[i].propertyFlags;
      uint64_t size =
          memory->memoryHeaps[memory->memoryTypes[i].heapIndex].size;
      if (!(bits >> i & 1) || (has & all) != all || has & excluded_flags)
        continue;
      if (size <= max) continue; /* drivers list better types first */
      best = i;
      max = size;
    }
    if (best != UINT32_MAX) return best;
  }
  return UINT32_MAX;
}

static uint32_t choose_type(const vk_device *device, vk_memory_kind kind,
                            uint32_t bits) {
  const VkPhysicalDeviceMemoryProperties *memory = &device->physical->memory;
  const VkMemoryPropertyFlags own = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
                              host = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                     VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                              cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  if (kind == VK_MEMORY_KIND_HOST) return find_type(memory, bits, host, cached);
  return device->is_unified ? find_type(memory, bits, own | host, cached)
                            : find_type(memory, bits, own, 0);
}

/* --- blocks --------------------------------------------------------------- */

static void free_block(vk_device *device, vk_block *block) {
  const vk_api *api = &device->api;
  api->DestroyBuffer(device->handle, block->buffer, NULL);
  api->FreeMemory(device->handle, block->memory, NULL); /* also unmaps it */
  vyre__reserve_free(device->base.allocator, &block->holes,
                     &block->hole_capacity, sizeof *block->holes);
  vyre__resize(device->base.allocator, block, sizeof *block, 0);
}

/* Returns the memory type for an import of host memory, or UINT32_MAX. */
static uint32_t import_type(const vk_device *device, const void *host,
                            uint32_t bits) {
  const VkPhysicalDeviceMemoryProperties *memory = &device->physical->memory;
  VkMemoryHostPointerPropertiesEXT found = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT};
  if (device->api.GetMemoryHostPointerPropertiesEXT(
          device->handle,
          VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, host,
          &found) != VK_SUCCESS) {
    return UINT32_MAX;
  }
  for (uint32_t i = 0; i < memory->memoryTypeCount; i++) {
    VkMemoryPropertyFlags has = memory->memoryTypes[i].propertyFlags;
    if ((found.memoryTypeBits & bits) >> i & 1 &&
        has & VK_MEMORY_PROPERTY_HOST_COHERENT_BIT && !(has & excluded_flags)) {
      return i;
    }
  }
  return UINT32_MAX;
}

static VkBufferUsageFlags usage_of(const vk_device *device) {
  return VK_BUFFER_USAGE_STORAGE_BUFFER_BIT |
         VK_BUFFER_USAGE_UNIFORM_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
         VK_BUFFER_USAGE_TRANSFER_DST_BIT |
         VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT |
         (device->has.conditional
              ? VK_BUFFER_USAGE_CONDITIONAL_RENDERING_BIT_EXT
              : 0);
}

bool vk_can_import(const vk_device *device) {
  const VkPhysicalDeviceExternalBufferInfo asked = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_BUFFER_INFO,
      .usage = usage_of(device),
      .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT};
  VkExternalBufferProperties found = {
      .sType = VK_STRUCTURE_TYPE_EXTERNAL_BUFFER_PROPERTIES};
  device->instance->GetPhysicalDeviceExternalBufferProperties(
      device->physical->handle, &asked, &found);
  VkExternalMemoryFeatureFlags features =
      found.externalMemoryProperties.externalMemoryFeatures;
  return features & VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT &&
         !(features & VK_EXTERNAL_MEMORY_FEATURE_DEDICATED_ONLY_BIT);
}

/* Creates the buffer and the memory of a block. @p host: memory to import, or
 * NULL. */
static VkResult init_block(vk_device *device, vk_block *block, void *host) {
  const vk_api *api = &device->api;
  const VkExternalMemoryBufferCreateInfo external = {
      .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_BUFFER_CREATE_INFO,
      .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT};
  const VkBufferCreateInfo buffer = {
      .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
      .pNext = host ? &external : NULL,
      .size = block->size,
      .usage = usage_of(device)};
  VkResult result =
      api->CreateBuffer(device->handle, &buffer, NULL, &block->buffer);
  if (result != VK_SUCCESS) {
    block->buffer = VK_NULL_HANDLE;
    return result;
  }
  VkMemoryRequirements need;
  api->GetBufferMemoryRequirements(device->handle, block->buffer, &need);
  const VkImportMemoryHostPointerInfoEXT import = {
      .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
      .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT,
      .pHostPointer = host};
  uint32_t type = host ? import_type(device, host, need.memoryTypeBits)
                       : choose_type(device, block->kind, need.memoryTypeBits);
  /* Imported memory cannot grow to the required size. */
  if (host && need.size > block->size) type = UINT32_MAX;
  if (type == UINT32_MAX) {
    return host ? VK_ERROR_INVALID_EXTERNAL_HANDLE
                : VK_ERROR_OUT_OF_DEVICE_MEMORY;
  }
  const VkMemoryAllocateInfo memory = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
      .pNext = host ? &import : NULL,
      .allocationSize = host ? block->size : need.size,
      .memoryTypeIndex = type};
  result = api->AllocateMemory(device->handle, &memory, NULL, &block->memory);
  if (result != VK_SUCCESS) {
    block->memory = VK_NULL_HANDLE;
    return result;
  }
  result =
      api->BindBufferMemory(device->handle, block->buffer, block->memory, 0);
  if (result != VK_SUCCESS || host) return result;
  if (block->kind == VK_MEMORY_KIND_DEVICE && !device->is_unified)
    return result;
  void *mapped = NULL;
  result = api->MapMemory(device->handle, block->memory, 0, VK_WHOLE_SIZE, 0,
                          &mapped);
  block->host = mapped;
  return result;
}

static uint32_t heap_index(const vk_device *device, vk_memory_kind kind) {
  uint32_t type = device->heap.type[kind];
  return device->physical->memory.memoryTypes[type].heapIndex;
}

uint64_t vk_heap_bytes(const vk_device *device, vk_memory_kind kind) {
  return device->physical->memory.memoryHeaps[heap_index(device, kind)].size;
}

bool vk_budget_read(const vk_device *device, vk_memory_kind kind,
                    vk_budget *out) {
  uint32_t at = heap_index(device, kind);
  *out = (vk_budget){0};
  if (!device->has.budget) return false;
  VkPhysicalDeviceMemoryBudgetPropertiesEXT budget = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT};
  VkPhysicalDeviceMemoryProperties2 all = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_PROPERTIES_2,
      .pNext = &budget};
  device->instance->GetPhysicalDeviceMemoryProperties2(device->physical->handle,
                                                       &all);
  out->max = budget.heapBudget[at];
  out->used = budget.heapUsage[at];
  return out->max > 0; /* 0 stands for an unknown budget */
}

/* Refuses allocations beyond the budget: the driver would move memory out of
 * the device, or fail another process. */
static vyre_code check_budget(const vk_device *device, vk_memory_kind kind,
                              uint64_t size, vyre_status *st) {
  vk_budget budget;
  if (!vk_budget_read(device, kind, &budget)) return VYRE_OK;
  uint64_t left = budget.used < budget.max ? budget.max - budget.used : 0;
  if (size <= left) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_DEVICE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED,
      "memory budget",
      VYRE_NUMBERS({"requested_bytes", size}, {"used_bytes", budget.used},
                   {"budget_bytes", budget.max}),
      "free device buffers and pipelines, close other programs that use the "
      "device, or split the data",
      "device '%s' has %llu bytes left of its memory budget of %llu; %llu are "
      "needed",
      vyre_device_name(&device->base), (unsigned long long)left,
      (unsigned long long)budget.max, (unsigned long long)size);
}

static vyre_code block_failed(vk_device *device, VkResult result,
                              vk_memory_kind kind, uint64_t size,
                              vyre_status *st) {
  if (result != VK_ERROR_OUT_OF_DEVICE_MEMORY &&
      result != VK_ERROR_TOO_MANY_OBJECTS) {
    return vk_failed(device, result, "memory allocation", st);
  }
  uint64_t heap = vk_heap_bytes(device, kind);
  vyre_code code = VYRE_FAIL_WITH(
      st, VYRE_DEVICE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED, NULL,
      VYRE_NUMBERS({"requested_bytes", size}, {"heap_bytes", heap},
                   {"result", (uint64_t)(uint32_t)result}),
      "free device buffers and pipelines, or split the data",
      "device '%s' has no memory for %llu bytes in its heap of %llu: VkResult "
      "%d",
      vyre_device_name(&device->base), (unsigned long long)size,
      (unsigned long long)heap, (int)result);
  if (st) st->native_code = (int)result;
  return code;
}

static vyre_code import_failed(vk_device *device, VkResult result,
                               uint64_t size, vyre_status *st) {
  if (result != VK_ERROR_INVALID_EXTERNAL_HANDLE &&
      result != VK_ERROR_MEMORY_MAP_FAILED) {
    return vk_failed(device, result, "import of host memory", st);
  }
  vyre_code code = VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_NOT_SUPPORTED, NULL,
      VYRE_NUMBERS({"size", size}, {"result", (uint64_t)(uint32_t)result}),
      "import memory of vyre_host_alloc, or upload to a device buffer",
      "the driver of device '%s' cannot import these %llu bytes of host "
      "memory: VkResult %d",
      vyre_device_name(&device->base), (unsigned long long)size, (int)result);
  if (st) st->native_code = (int)result;
  return code;
}

/* Creates a block. The caller holds the lock of the heap. */
static vyre_code create_block(vk_device *device, vk_memory_kind kind,
                              uint64_t size, void *host, vk_block **out,
                              vyre_status *st) {
  vyre_allocator allocator = device->base.allocator;
  if (!host) VYRE_TRY(check_budget(device, kind, size, st));
  vk_block *block = vyre__resize(allocator, NULL, 0, sizeof *block);
  if (!block) return vyre__no_memory(st, "vulkan", "blocks of memory", 1);
  *block = (vk_block){.size = size,
                      .kind = kind,
                      .is_imported = host != NULL,
                      .id = ++device->heap.last_id};
  if (!vyre__reserve(allocator, &block->holes, &block->hole_capacity, 8,
                     sizeof *block->holes, false)) {
    free_block(device, block);
    return vyre__no_memory(st, "vulkan", "blocks of memory", 1);
  }
  VkResult result = init_block(device, block, host);
  if (result != VK_SUCCESS) {
    free_block(device, block);
    return host ? import_failed(device, result, size, st)
                : block_failed(device, result, kind, size, st);
  }
  block->holes[0] = (hole){0, size};
  block->hole_count = 1;
  atomic_fetch_add(&device->counters.device_blocks, 1);
  *out = block;
  return VYRE_OK;
}

/* --- ranges --------------------------------------------------------------- */

static bool alloc_from_block(vk_device *device, vk_block *block, uint64_t size,
                             vk_range *out) {
  for (size_t i = 0; i < block->hole_count; i++) {
    hole *h = &block->holes[i];
    if (h->size < size) continue;
    if (!vyre__reserve(device->base.allocator, &block->holes,
                       &block->hole_capacity, block->ranges + 3,
                       sizeof *block->holes, false)) {
      return false;
    }
    h = &block->holes[i];
    *out = (vk_range){.block = block,
                      .buffer = block->buffer,
                      .offset = h->offset,
                      .size = size,
                      .id = block->id,
                      .host = block->host ? block->host + h->offset : NULL};
    h->offset += size;
    h->size -= size;
    if (h->size == 0) {
      block->hole_count--;
      memmove(h, h + 1, (block->hole_count - i) * sizeof *h);
    }
    block->ranges++;
    return true;
  }
  return false;
}

static vyre_code alloc_locked(vk_device *device, vk_memory_kind kind,
                              uint64_t size, vk_range *out, vyre_status *st) {
  vk_heap *heap = &device->heap;
  for (vk_block *b = heap->blocks[kind]; b; b = b->next) {
    if (alloc_from_block(device, b, size, out)) return VYRE_OK;
  }
  vk_block *block = NULL;
  uint64_t bytes = size > BLOCK_BYTES / 2 ? size : BLOCK_BYTES;
  vyre_code code =
      create_block(device, kind, bytes, NULL, &block, bytes > size ? NULL : st);
  if (code != VYRE_OK && bytes > size) { /* retry with the exact size */
    VYRE_TRY(create_block(device, kind, size, NULL, &block, st));
  } else if (code != VYRE_OK) {
    return code;
  }
  if (!block) return vyre__no_memory(st, "vulkan", "blocks of memory", 1);
  block->next = heap->blocks[kind];
  heap->blocks[kind] = block;
  return alloc_from_block(device, block, size, out)
             ? VYRE_OK
             : vyre__no_memory(st, "vulkan", "ranges of memory", 1);
}

static vyre_code try_alloc(vk_device *device, vk_memory_kind kind,
                           uint64_t size, vk_range *out, vyre_status *st) {
  pthread_mutex_lock(&device->heap.lock);
  vyre_code code = alloc_locked(device, kind, size, out, st);
  pthread_mutex_unlock(&device->heap.lock);
  return code;
}

/* Frees blocks without ranges. Returns false if no block was empty. */
static bool free_empty_blocks(vk_device *device) {
  vk_heap *heap = &device->heap;
  vk_block *empty = NULL;
  pthread_mutex_lock(&heap->lock);
  for (unsigned i = 0; i < VK_MEMORY_KIND_COUNT; i++) {
    for (vk_block **at = &heap->blocks[i]; *at;) {
      vk_block *block = *at;
      if (block->ranges > 0) {
        at = &block->next;
        continue;
      }
      *at = block->next;
      block->next = empty;
      empty = block;
    }
  }
  pthread_mutex_unlock(&heap->lock);
  if (!empty) return false;
  vk_staging_ring_wait(device);
  while (empty) {
    vk_block *block = empty;
    empty = block->next;
    free_block(device, block);
  }
  return true;
}

vyre_code vk_range_alloc(vk_device *device, vk_memory_kind kind, uint64_t size,
                         vk_range *out, vyre_status *st) {
  uint64_t a = device->heap.alignment, heap = vk_heap_bytes(device, kind);
  uint64_t max =
      device->max_block_bytes < heap ? device->max_block_bytes : heap;
  *out = (vk_range){0};
  if (size > max || a > max - size) {
    return VYRE_FAIL_WITH(
        st, VYRE_DEVICE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED, NULL,
        VYRE_NUMBERS({"requested_bytes", size}, {"max_bytes", max}),
        "split the data, or use several device buffers",
        "an allocation of %llu bytes is needed; device '%s' allows at most "
        "%llu",
        (unsigned long long)size, vyre_device_name(&device->base),
        (unsigned long long)max);
  }
  size = size == 0 ? a : (size + a - 1) / a * a;
  vyre_code code = try_alloc(device, kind, size, out, st);
  if (code != VYRE_DEVICE_OUT_OF_MEMORY) return code;
  /* Idle dispatches, encodings and empty blocks may hold the memory that is
   * needed now. */
  bool has_dispatches = vk_dispatches_free_idle(device),
       has_lists = vk_command_lists_trim(device, 0),
       has_blocks = free_empty_blocks(device);
  if (!has_dispatches && !has_lists && !has_blocks) return code;
  if (st) *st = (vyre_status){0};
  return try_alloc(device, kind, size, out, st);
}

/* Adds a range to the holes of its block. */
static void add_hole(vk_block *block, uint64_t offset, uint64_t size) {
  size_t at = 0, end = block->hole_count; /* the first hole behind the range */
  while (at < end) {
    size_t middle = at + (end - at) / 2;
    if (block->holes[middle].offset < offset) {
      at = middle + 1;
    } else {
      end = middle;
    }
  }
  hole *before = at > 0 ? &block->holes[at - 1] : NULL;
  hole *after = at < block->hole_count ? &block->holes[at] : NULL;
  bool joins_before = before && before->offset + before->size == offset;
  bool joins_after = after && offset + size == after->offset;
  if (joins_before && joins_after) {
    before->size += size + after->size;
    block->hole_count--;
    memmove(after, after + 1, (block->hole_count - at) * sizeof *after);
  } else if (joins_before) {
    before->size += size;
  } else if (joins_after) {
    after->offset -= size;
    after->size += size;
  } else {
    memmove(&block->holes[at + 1], &block->holes[at],
            (block->hole_count - at) * sizeof *block->holes);
    block->holes[at] = (hole){offset, size};
    block->hole_count++;
  }
  block->ranges--;
}

/* Returns true if a block is to be freed: it is empty, and it is large,
 * imported, or not the only empty one. One empty block of the usual size is
 * kept for reuse. */
static bool should_free(const vk_heap *heap, const vk_block *block) {
  if (block->ranges > 0) return false;
  if (block->is_imported || block->size > BLOCK_BYTES) return true;
  for (const vk_block *b = heap->blocks[block->kind]; b; b = b->next) {
    if (b != block && b->ranges == 0) return true;
  }
  return false;
}

void vk_range_free(vk_device *device, vk_range *range) {
  vk_block *block = range->block;
  if (!block) return;
  vk_heap *heap = &device->heap;
  pthread_mutex_lock(&heap->lock);
  add_hole(block, range->offset, range->size);
  bool is_freed = should_free(heap, block);
  if (is_freed) {
    vk_block **at = &heap->blocks[block->kind];
    while (*at && *at != block) at = &(*at)->next;
    if (*at) *at = block->next; /* imported blocks are in no list */
  }
  pthread_mutex_unlock(&heap->lock);
  if (is_freed) {
    vk_staging_ring_wait(device); /* copies to it may be in flight */
    free_block(device, block);
  }
  *range = (vk_range){0};
}

/* --- the heap ------------------------------------------------------------- */

vyre_code vk_heap_init(vk_device *device, vyre_status *st) {
  const VkPhysicalDeviceLimits *limits = &device->physical->properties.limits;
  vk_heap *heap = &device->heap;
  pthread_mutex_init(&heap->lock, NULL);
  vk_staging_ring_init(device);
  heap->alignment = limits->minStorageBufferOffsetAlignment;
  if (heap->alignment < limits->minUniformBufferOffsetAlignment) {
    heap->alignment = limits->minUniformBufferOffsetAlignment;
  }
  if (heap->alignment < 64) heap->alignment = 64;
  for (unsigned i = 0; i < VK_MEMORY_KIND_COUNT; i++) {
    heap->type[i] = choose_type(device, (vk_memory_kind)i, UINT32_MAX);
  }
  if (heap->type[VK_MEMORY_KIND_DEVICE] == UINT32_MAX ||
      heap->type[VK_MEMORY_KIND_HOST] == UINT32_MAX) {
    return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "use another device, or update this one's driver",
                     "device '%s' has no host-visible memory",
                     vyre_device_name(&device->base));
  }
  return VYRE_OK;
}

vyre_code vk_dummy_range_create(vk_device *device, vyre_status *st) {
  vk_heap *heap = &device->heap;
  vyre_code code = VYRE_OK;
  pthread_mutex_lock(&heap->lock);
  if (!device->dummy.block) {
    code = alloc_locked(device, VK_MEMORY_KIND_DEVICE, heap->alignment,
                        &device->dummy, st);
  }
  pthread_mutex_unlock(&heap->lock);
  return code;
}

void vk_heap_deinit(vk_device *device) {
  vk_heap *heap = &device->heap;
  vk_range_free(device, &device->dummy);
  vk_staging_ring_deinit(device);
  for (unsigned i = 0; i < VK_MEMORY_KIND_COUNT; i++) {
    while (heap->blocks[i]) {
      vk_block *block = heap->blocks[i];
      heap->blocks[i] = block->next;
      free_block(device, block);
    }
  }
  pthread_mutex_destroy(&heap->lock);
}

/* --- device buffers ------------------------------------------------------- */

static vyre_code clear(vk_device *device, const vk_range *range,
                       vyre_status *st) {
  if (!range->host) return vk_fill(device, range, 0, range->size, st);
  memset(range->host, 0, (size_t)range->size);
  return VYRE_OK;
}

/* Imports host memory in full pages. The rest of the last page is mapped, but
 * never accessed. */
static vyre_code import(vk_device *device, vk_buffer *buffer, vyre_status *st) {
  enum { PAGE = 4096 };
  vk_block *block = NULL;
  uint64_t a = device->base.caps.host_alignment;
  uint64_t size = (buffer->base.size + a - 1) / a * a;
  if (buffer->base.size == 0 || (a > PAGE && size != buffer->base.size)) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"size", buffer->base.size}, {"alignment", a}),
        "import a multiple of the alignment",
        "%llu bytes cannot be imported: device '%s' imports multiples of %llu",
        (unsigned long long)buffer->base.size, vyre_device_name(&device->base),
        (unsigned long long)a);
  }
  pthread_mutex_lock(&device->heap.lock);
  vyre_code code = create_block(device, VK_MEMORY_KIND_DEVICE, size,
                                buffer->base.host, &block, st);
  if (code == VYRE_OK &&
      !(block && alloc_from_block(device, block, size, &buffer->range))) {
    code = vyre__no_memory(st, "vulkan", "ranges of memory", 1);
    if (block) free_block(device, block);
  }
  pthread_mutex_unlock(&device->heap.lock);
  return code;
}

/* Allocates the range of a buffer at its preferred alignment. */
static vyre_code alloc_aligned(vk_device *device, vk_buffer *to,
                               vyre_status *st) {
  uint64_t alignment = to->base.alignment, size = to->base.size;
  bool is_larger = alignment > device->heap.alignment;
  uint64_t extra = is_larger ? alignment : 0;
  VYRE_TRY(vk_range_alloc(device, VK_MEMORY_KIND_DEVICE, size + extra,
                          &to->range, st));
  if (!is_larger) return VYRE_OK;
  uint64_t at = to->range.host ? (uintptr_t)to->range.host : to->range.offset;
  to->lead = -at & (alignment - 1);
  to->range.offset += to->lead;
  to->range.size -= to->lead;
  if (to->range.host) to->range.host += to->lead;
  return VYRE_OK;
}

static void free_aligned(vk_device *device, vk_buffer *buffer) {
  buffer->range.offset -= buffer->lead;
  buffer->range.size += buffer->lead;
  vk_range_free(device, &buffer->range);
}

vyre_code vk_buffer_init(vyre_device *device, vyre__buffer *buffer,
                         vyre_status *st) {
  vk_device *own = (vk_device *)device;
  vk_buffer *to = (vk_buffer *)buffer;
  if (buffer->is_imported) return import(own, to, st);
  VYRE_TRY(alloc_aligned(own, to, st));
  vyre_code code = clear(own, &to->range, st);
  if (code != VYRE_OK) {
    free_aligned(own, to);
    return code;
  }
  buffer->host = to->range.host;
  return VYRE_OK;
}

void vk_buffer_deinit(vyre_device *device, vyre__buffer *buffer) {
  free_aligned((vk_device *)device, (vk_buffer *)buffer);
}

vyre_code vk_buffer_write(vyre_device *device, vyre__buffer *buffer,
                          uint64_t offset, const void *data, size_t size,
                          vyre_status *st) {
  if (buffer->host) {
    memmove(buffer->host + offset, data, size);
    return VYRE_OK;
  }
  return vk_upload((vk_device *)device, &((vk_buffer *)buffer)->range, offset,
                   data, size, st);
}

vyre_code vk_buffer_read(vyre_device *device, vyre__buffer *buffer,
                         uint64_t offset, void *data, size_t size,
                         vyre_status *st) {
  if (buffer->host) {
    memmove(data, buffer->host + offset, size);
    return VYRE_OK;
  }
  return vk_download((vk_device *)device, &((vk_buffer *)buffer)->range, offset,
                     data, size, st);
}
