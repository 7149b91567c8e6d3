/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Creates layouts and shares them between pipelines of a device that have the
 * same bindings and the same push-constant size. */
#include "backend/vulkan/command/descriptor_layout.h"

#include <string.h>

#include "backend/vulkan/command/submit.h"
#include "backend/vulkan/device/device.h"
#include "backend/vulkan/pipeline.h"
#include "backend/vulkan/plan.h"
#include "base/memory.h"
#include "base/status.h"

/* Describes a descriptor: a buffer as the binding plan does, the others as
 * words of the driver. */
static vyre_layout_entry entry_of(const vk_pipeline *p,
                                  const vyre__spirv_descriptor *d) {
  vyre_layout_entry entry = {
      .binding = d->binding,
      .memory_class = d->is_uniform ? VYRE_LAYOUT_UNIFORM : VYRE_LAYOUT_STORAGE,
      .read_only = d->what == VYRE__SPIRV_BLOCK,
      .element_size = 4};
  const vyre_binding_plan *plan = &p->base.plan;
  for (size_t i = 0; d->what == VYRE__SPIRV_BUFFER && i < plan->binding_count;
       i++) {
    if (plan->bindings[i].buffer_index != d->buffer) continue;
    entry.read_only = plan->bindings[i].read_only;
    entry.element_size = plan->bindings[i].element_size;
  }
  return entry;
}

/* Computes the key of the layout of @p p. */
static vyre_code make_key(const vk_pipeline *p, vk_layout *out,
                          vyre_status *st) {
  const vk_plan *plan = &p->plan;
  vyre_layout_entry *entries =
      vyre__arena_array(&out->arena, plan->descriptor_count, sizeof *entries);
  if (!entries)
    return vyre__no_memory(st, "vulkan", "descriptors", plan->descriptor_count);
  out->push_bytes = plan->push_bytes;
  out->block_binding = VYRE_NO_INDEX;
  for (uint32_t i = 0; i < plan->descriptor_count; i++) {
    entries[i] = entry_of(p, &plan->descriptors[i]);
    if (plan->descriptors[i].what == VYRE__SPIRV_BLOCK)
      out->block_binding = entries[i].binding;
  }
  return vyre_layout_fingerprint_build(entries, plan->descriptor_count,
                                       &out->arena, &out->fingerprint,
                                       vyre__status_open(st));
}

static bool matches(const vk_layout *a, const vk_layout *b) {
  return a->push_bytes == b->push_bytes &&
         a->block_binding == b->block_binding &&
         a->fingerprint.hash.low == b->fingerprint.hash.low &&
         vyre_layout_fingerprint_equal(&a->fingerprint, &b->fingerprint);
}

VkDescriptorType vk_descriptor_type(const vyre__spirv_descriptor *d) {
  /* Each tile has a block at another offset. */
  bool is_block = d->what == VYRE__SPIRV_BLOCK;
  if (d->is_uniform) {
    return is_block ? VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER_DYNAMIC
                    : VK_DESCRIPTOR_TYPE_UNIFORM_BUFFER;
  }
  return is_block ? VK_DESCRIPTOR_TYPE_STORAGE_BUFFER_DYNAMIC
                  : VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
}

static VkResult create_set_layout(vk_device *device, const vk_plan *plan,
                                  vk_layout *layout,
                                  VkDescriptorSetLayoutBinding *bindings) {
  for (uint32_t i = 0; i < plan->descriptor_count; i++) {
    const vyre__spirv_descriptor *d = &plan->descriptors[i];
    bindings[i] = (VkDescriptorSetLayoutBinding){
        .binding = d->binding,
        .descriptorType = vk_descriptor_type(d),
        .descriptorCount = 1,
        .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
  }
  const VkDescriptorSetLayoutCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
      .bindingCount = plan->descriptor_count,
      .pBindings = bindings};
  VkResult result = device->api.CreateDescriptorSetLayout(device->handle, &info,
                                                          NULL, &layout->set);
  if (result != VK_SUCCESS) layout->set = VK_NULL_HANDLE;
  return result;
}

static VkResult create_pipeline_layout(vk_device *device, vk_layout *layout) {
  const VkPushConstantRange range = {VK_SHADER_STAGE_COMPUTE_BIT, 0,
                                     layout->push_bytes};
  const VkPipelineLayoutCreateInfo info = {
      .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
      .setLayoutCount = 1,
      .pSetLayouts = &layout->set,
      .pushConstantRangeCount = layout->push_bytes ? 1 : 0,
      .pPushConstantRanges = &range};
  VkResult result = device->api.CreatePipelineLayout(device->handle, &info,
                                                     NULL, &layout->pipeline);
  if (result != VK_SUCCESS) layout->pipeline = VK_NULL_HANDLE;
  return result;
}

static void free_layout(vk_device *device, vk_layout *layout) {
  if (layout->pipeline)
    device->api.DestroyPipelineLayout(device->handle, layout->pipeline, NULL);
  if (layout->set)
    device->api.DestroyDescriptorSetLayout(device->handle, layout->set, NULL);
  vyre_arena_deinit(&layout->arena);
  vyre__resize(device->base.allocator, layout, sizeof *layout, 0);
}

/* Creates the Vulkan objects of a layout that has its key. */
static vyre_code create_objects(vk_device *device, const vk_plan *plan,
                                vk_layout *layout, vyre_status *st) {
  VkDescriptorSetLayoutBinding *bindings = vyre__arena_array(
      &layout->arena, plan->descriptor_count, sizeof *bindings);
  if (!bindings)
    return vyre__no_memory(st, "vulkan", "descriptors", plan->descriptor_count);
  VkResult result = create_set_layout(device, plan, layout, bindings);
  if (result == VK_SUCCESS) result = create_pipeline_layout(device, layout);
  return result == VK_SUCCESS
             ? VYRE_OK
             : vk_failed(device, result, "layout creation", st);
}

/* Puts the layout into the list of the device, or returns an equal one that is
 * there. */
static vyre_code find_or_add(vk_device *device, const vk_plan *plan,
                             vk_layout *layout, vk_layout **out,
                             vyre_status *st) {
  *out = device->layouts;
  while (*out && !matches(*out, layout)) *out = (*out)->next;
  if (*out) {
    (*out)->references++;
    atomic_fetch_add(&device->counters.layouts_shared, 1);
    return VYRE_OK;
  }
  VYRE_TRY(create_objects(device, plan, layout, st));
  layout->next = device->layouts;
  *out = device->layouts = layout;
  atomic_fetch_add(&device->counters.layouts_made, 1);
  return VYRE_OK;
}

vyre_code vk_layout_acquire(vk_device *device, const vk_pipeline *pipeline,
                            vk_layout **out, vyre_status *st) {
  vk_layout *made = vyre__alloc_zeroed(device->base.allocator, sizeof *made);
  *out = NULL;
  if (!made) return vyre__no_memory(st, "vulkan", "layouts", 1);
  made->references = 1;
  made->count = pipeline->plan.descriptor_count;
  vyre_arena_init(&made->arena, device->base.allocator);
  vyre_code code = make_key(pipeline, made, st);
  if (code == VYRE_OK) {
    pthread_mutex_lock(&device->layout_lock);
    code = find_or_add(device, &pipeline->plan, made, out, st);
    pthread_mutex_unlock(&device->layout_lock);
  }
  if (code != VYRE_OK) *out = NULL;
  if (*out != made) free_layout(device, made);
  return code;
}

void vk_layout_release(vk_device *device, vk_layout *layout) {
  if (!layout) return;
  pthread_mutex_lock(&device->layout_lock);
  bool is_last = --layout->references == 0;
  if (is_last) {
    vk_layout **at = &device->layouts;
    while (*at != layout) at = &(*at)->next;
    *at = layout->next;
  }
  pthread_mutex_unlock(&device->layout_lock);
  if (is_last) free_layout(device, layout);
}

vyre_code vk_find_uniforms(vk_pipeline *own, vyre_status *st) {
  const vk_plan *plan = &own->plan;
  size_t count = plan->buffer_count + (size_t)1;
  uint8_t *uses = vyre__arena_array(&own->base.arena, count, 1);
  if (!uses) return vyre__no_memory(st, "vulkan", "buffers", count);
  memset(uses, 0, count);
  own->has_encoded_uniforms = false;
  for (uint32_t i = 0; i < plan->host_count; i++) {
    if (plan->host[i].op != VYRE__LIR_LOAD) continue;
    uses[plan->host[i].aux] |= VK_UNIFORM_ENCODED;
    own->has_encoded_uniforms = true;
  }
  for (uint32_t i = 0; i < plan->field_count; i++) {
    const vyre__spirv_field *f = &plan->fields[i];
    if (f->value != VYRE__SPIRV_UNIFORM) continue;
    uses[f->index] |= f->is_pushed ? VK_UNIFORM_ENCODED : VK_UNIFORM_IN_BLOCK;
    own->has_encoded_uniforms |= f->is_pushed;
  }
  own->uniform_uses = uses;
  return VYRE_OK;
}
