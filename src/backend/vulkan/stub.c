/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Stands in for the Vulkan backend if the library was built without Vulkan
 * headers. The device is never available; its texts say why. */
#include "vyre/vulkan.h"

#include "backend/vulkan/options.h"
#include "base/status.h"
#include "hal/backend.h"

static bool describe(const vyre__backend *self, uint32_t index,
                     vyre_device_info *out) {
  (void)self;
  (void)index;
  out->note = "this library was built without Vulkan headers";
  out->fix = "apt-get install libvulkan-dev, then build the library again";
  return false;
}

static bool is_ready(const vyre_context *context, const char **why) {
  (void)context;
  *why = "auto: best available device; no GPU for 'vulkan'";
  return false;
}

extern const vyre__backend vyre__backend_vulkan;

const vyre__backend vyre__backend_vulkan = {
    .abi = VYRE__BACKEND_ABI,
    .struct_size = sizeof(vyre__backend),
    .name = "vulkan",
    .precedence = 300,
    .device_size = sizeof(vyre_device),
    .pipeline_size = sizeof(vyre_pipeline),
    .describe = describe,
    .is_ready = is_ready,
    .options = vk_options}; /* options are still checked */

vyre_code vyre_device_open_external_vulkan(vyre_context *context,
                                           const vyre_vulkan_handles *vulkan,
                                           vyre_device **out, vyre_status *st) {
  vyre__status_begin(st);
  (void)context;
  (void)vulkan;
  VYRE_REQUIRE(st, out);
  *out = NULL;
  return VYRE_FAIL(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE,
      "apt-get install libvulkan-dev, then build the library again",
      "this library was built without Vulkan");
}
