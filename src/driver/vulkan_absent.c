/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Instead of the backend, where the library is built without it. */
#include "vyre/vulkan.h"

#include "base/status.h"

vyre_code vyre_device_open_vulkan(vyre_context *context,
                                  const vyre_vulkan *vulkan, vyre_device **out,
                                  vyre_status *st) {
  (void)context;
  (void)vulkan;
  if (!out) return vyre__null_argument(st, "vyre_device_open_vulkan", "out");
  *out = NULL;
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE,
                   "build it where the headers of Vulkan are: apt-get install "
                   "libvulkan-dev",
                   "this library was built without Vulkan");
}
