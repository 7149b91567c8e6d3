/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The targets of packages: the levels of the x86-64 psABI. The needs of code are
 * the name of its level. */
#include <stdio.h>
#include <string.h>

#include "backend/cpu/cpu.h"

static const char *const targets[] = {"x86-64-v4", "x86-64-v3", "x86-64-v2",
                                      NULL};

static void device_describe(uint32_t index, vyre_device *device) {
  ((cpu_device *)device)->host_cpu = vyre__host_cpu_portable(index);
}

static void put_needs(const vyre_pipeline *pipeline,
                      const vyre__lir_kernel *kernel,
                      const vyre__bytes *artifact, vyre__bytes *to) {
  const cpu_device *device = (const cpu_device *)pipeline->device;
  (void)kernel;
  (void)artifact;
  vyre__bytes_put(to, device->host_cpu->cpu, strlen(device->host_cpu->cpu));
}

static bool meets(const vyre_device *device, const void *needs, size_t size,
                  char missing[VYRE__NEED_TEXT]) {
  const cpu_device *own = (const cpu_device *)device;
  for (uint32_t i = 0; targets[i]; i++) {
    if (strlen(targets[i]) != size || memcmp(targets[i], needs, size) != 0) {
      continue;
    }
    size_t length;
    const char *lacks = vyre__host_cpu_lacks(own->host_cpu, i, &length);
    if (!lacks) return true;
    (void)snprintf(missing, VYRE__NEED_TEXT, "needs %.*s", (int)length, lacks);
    return false;
  }
  (void)snprintf(missing, VYRE__NEED_TEXT, "needs an unknown processor level");
  return false;
}

const vyre__portable cpu_portable = {.targets = targets,
                                     .device_describe = device_describe,
                                     .put_needs = put_needs,
                                     .meets = meets};
