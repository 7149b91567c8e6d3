/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What stands for the device where the library is built without Vulkan's headers:
 * it is never there, and says why. */
#include "vyre/vulkan.h"

#include "backend/vulkan/options.h"
#include "base/status.h"
#include "hal/backend.h"

static bool describe(uint32_t index, vyre_device_info *out) {
  (void)index;
  out->note = "this library was built without the headers of Vulkan";
  out->fix = "apt-get install libvulkan-dev, and build the library again";
  return false;
}

static bool is_ready(const vyre_context *context, const char **why) {
  (void)context;
  *why = "auto: the best that is there; there is no GPU for 'vulkan'";
  return false;
}

extern const vyre__backend vyre__backend_vulkan;

const vyre__backend vyre__backend_vulkan = {
    .abi = VYRE__BACKEND_ABI,
    .struct_size = sizeof(vyre__backend),
    .name = "vulkan",
    .device_size = sizeof(vyre_device),
    .pipeline_size = sizeof(vyre_pipeline),
    .describe = describe,
    .is_ready = is_ready,
    .options =
        vk_options}; /* what is said of it is right or wrong all the same */

vyre_code vyre_device_open_external_vulkan(vyre_context *context,
                                           const vyre_vulkan_handles *vulkan,
                                           vyre_device **out, vyre_status *st) {
  vyre__status_begin(st);
  (void)context;
  (void)vulkan;
  if (!out)
    return vyre__null_argument(st, "vyre_device_open_external_vulkan", "out");
  *out = NULL;
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE,
                   "build it where the headers of Vulkan are: apt-get install "
                   "libvulkan-dev",
                   "this library was built without Vulkan");
}
