/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads what a module needs of a device, and removes float modes that a device
 * does not support. */
#include <string.h>

#include "codegen/spirv/internal.h"
#include "codegen/spirv/spirv.h"

/* Returns the words of the instruction at @p at, or 0 at the end of the module
 * or if it does not fit in. */
static size_t size_at(const uint32_t *words, size_t count, size_t at) {
  size_t size = at < count ? words[at] >> 16 : 0;
  return size <= count - at ? size : 0;
}

static uint16_t op_at(const uint32_t *words, size_t at) {
  return (uint16_t)words[at];
}

static void add_capability(vyre__spirv_target *uses, uint32_t capability) {
  switch (capability) {
    case SPV_CAPABILITY_Float64:
      uses->float64 = true;
      break;
    case SPV_CAPABILITY_Int64:
      uses->int64 = true;
      break;
    case SPV_CAPABILITY_Int64Atomics:
      uses->buffer_atomics64 = uses->shared_atomics64 = true;
      break;
    case SPV_CAPABILITY_Int16:
      uses->int16 = true;
      break;
    case SPV_CAPABILITY_Int8:
      uses->int8 = true;
      break;
    case SPV_CAPABILITY_StorageBuffer16BitAccess:
      uses->storage16 = true;
      break;
    case SPV_CAPABILITY_StorageBuffer8BitAccess:
      uses->storage8 = true;
      break;
    case SPV_CAPABILITY_VulkanMemoryModel:
      uses->vulkan_memory_model = true;
      break;
    case SPV_CAPABILITY_VulkanMemoryModelDeviceScope:
      uses->device_scope = true;
      break;
    default:
      break;
  }
}

void vyre__spirv_capabilities(const uint32_t *words, size_t count,
                              vyre__spirv_target *uses) {
  size_t size;
  *uses = (vyre__spirv_target){0};
  for (size_t at = SPV_HEADER; (size = size_at(words, count, at)) > 0;
       at += size) {
    if (op_at(words, at) != SPV_OpCapability || size < 2) return;
    add_capability(uses, words[at + 1]);
  }
}

/* --- float modes ---------------------------------------------------------- */

/* Returns the widths of a float mode that the target supports, by its capability
 * or its execution mode. Sets *is_mode if it is one. */
static uint8_t widths_of(const vyre__spirv_target *target, uint32_t number,
                         bool *is_mode) {
  *is_mode = true;
  switch (number) {
    case SPV_CAPABILITY_DenormPreserve:
    case SPV_EXECUTION_MODE_DenormPreserve:
      return target->keeps_subnormals;
    case SPV_CAPABILITY_SignedZeroInfNanPreserve:
    case SPV_EXECUTION_MODE_SignedZeroInfNanPreserve:
      return target->keeps_signed_zeros;
    case SPV_CAPABILITY_RoundingModeRTE:
    case SPV_EXECUTION_MODE_RoundingModeRTE:
      return target->rounds_to_even;
    default:
      *is_mode = false;
      return 0;
  }
}

/* Returns the widths of the float types of a module. */
static uint8_t widths_in(const uint32_t *words, size_t count) {
  uint8_t widths = 0;
  size_t size;
  for (size_t at = SPV_HEADER; (size = size_at(words, count, at)) > 0;
       at += size) {
    if (op_at(words, at) == SPV_OpTypeFloat && size == 3) {
      widths |= (uint8_t)words[at + 2];
    }
    if (op_at(words, at) == SPV_OpFunction) break;
  }
  return widths;
}

static bool is_extension(const uint32_t *words, size_t at, size_t size,
                         const char *name) {
  size_t bytes = (size - 1) * 4;
  return op_at(words, at) == SPV_OpExtension && strlen(name) < bytes &&
         memcmp(words + at + 1, name, strlen(name) + 1) == 0;
}

/* Returns true if the instruction asks for a float mode that the device
 * lacks. @p used: widths of the float types of the module. */
static bool is_surplus(const uint32_t *words, size_t at, size_t size,
                       const vyre__spirv_target *target, uint8_t used) {
  bool is_mode = false;
  uint8_t widths;
  if (op_at(words, at) == SPV_OpCapability && size == 2) {
    widths = widths_of(target, words[at + 1], &is_mode);
    return is_mode && !(widths & used);
  }
  if (op_at(words, at) == SPV_OpExecutionMode && size == 4) {
    widths = widths_of(target, words[at + 2], &is_mode);
    return is_mode && !(widths & words[at + 3]);
  }
  widths = target->keeps_subnormals | target->keeps_signed_zeros |
           target->rounds_to_even;
  return !(widths & used) &&
         is_extension(words, at, size, "SPV_KHR_float_controls");
}

size_t vyre__spirv_limit_float_modes(uint32_t *words, size_t count,
                                     const vyre__spirv_target *target) {
  uint8_t used = widths_in(words, count);
  size_t to = SPV_HEADER, at = SPV_HEADER, size;
  for (; (size = size_at(words, count, at)) > 0; at += size) {
    if (op_at(words, at) == SPV_OpFunction) break;
    if (is_surplus(words, at, size, target, used)) continue;
    memmove(words + to, words + at, size * sizeof *words);
    to += size;
  }
  memmove(words + to, words + at, (count - at) * sizeof *words);
  return to + (count - at);
}
