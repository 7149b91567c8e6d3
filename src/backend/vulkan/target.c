/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Describes a device to lowering and to the SPIR-V emitter: the features that
 * it reports, and the float modes that the probe measured. */
#include <string.h>

#include "backend/vulkan/device/device.h"
#include "backend/vulkan/device/logical_device.h"
#include "backend/vulkan/pipeline.h"
#include "backend/vulkan/plan.h"
#include "hal/float_ops.h"
#include "hal/float_target.h"

/* Returns the widths for which a float control can be set on its own, as a
 * mask. If a control must be equal for other widths too, it is left unset,
 * because the effect on those is not known. */
static uint8_t float_widths(VkBool32 has32, VkBool32 has64,
                            VkShaderFloatControlsIndependence independence) {
  bool all = independence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL;
  bool some =
      all || independence == VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_32_BIT_ONLY;
  return (uint8_t)((has32 && some ? 32 : 0) | (has64 && all ? 64 : 0));
}

void vk_device_read_float_controls(vk_device *device) {
  VkPhysicalDeviceFloatControlsProperties f = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES};
  VkPhysicalDeviceProperties2 all = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &f};
  if (device->physical->version < VK_API_VERSION_1_2) return;
  device->instance->GetPhysicalDeviceProperties2(device->physical->handle,
                                                 &all);
  vk_features *has = &device->has;
  has->keeps_signed_zeros =
      float_widths(f.shaderSignedZeroInfNanPreserveFloat32,
                   f.shaderSignedZeroInfNanPreserveFloat64,
                   VK_SHADER_FLOAT_CONTROLS_INDEPENDENCE_ALL);
  has->keeps_subnormals =
      float_widths(f.shaderDenormPreserveFloat32, f.shaderDenormPreserveFloat64,
                   f.denormBehaviorIndependence);
  has->rounds_to_even =
      float_widths(f.shaderRoundingModeRTEFloat32,
                   f.shaderRoundingModeRTEFloat64, f.roundingModeIndependence);
}

/* Widest vector of llvmpipe, in 32-bit elements: 16 with AVX-512, otherwise 8
 * or 4. */
enum { LLVMPIPE_VECTOR = 16 };

void vk_pipeline_target(const vyre_pipeline *pipeline, vyre__target *out) {
  const vk_device *device = (const vk_device *)pipeline->device;
  const vk_features *has = &device->has;
  *out = (vyre__target){.no_f64 = !has->float64 || !has->int64,
                        .no_u64 = !has->int64,
                        .no_buffer_atomics64 = !has->buffer_atomics64,
                        .no_shared_atomics64 = !has->shared_atomics64,
                        .private_arrays = true,
                        .no_narrow = !has->storage8 || !has->storage16};
  vyre__target_set_floats(pipeline->float_ops, out);
}

vyre__spirv_target vk_spirv_target(const vyre_pipeline *pipeline) {
  const vk_device *device = (const vk_device *)pipeline->device;
  const vyre_float_op_info *probed = pipeline->float_ops;
  const vk_features *has = &device->has;
  uint32_t pushed = device->physical->properties.limits.maxPushConstantsSize;
  return (vyre__spirv_target){
      .storage8 = has->storage8,
      .storage16 = has->storage16,
      .int8 = has->int8,
      .int16 = has->int16,
      .int64 = has->int64,
      .float64 = has->float64,
      .fma64 = probed[VYRE__FLOAT_OP_F64_FMA].mode == VYRE_FLOAT_MODE_NATIVE &&
               probed[VYRE__FLOAT_OP_F64_FMA].tested > 0,
      .whole64 = probed[VYRE__FLOAT_OP_F64_RINT].mode == VYRE_FLOAT_MODE_NATIVE,
      .buffer_atomics64 = has->buffer_atomics64,
      .shared_atomics64 = has->shared_atomics64,
      .vulkan_memory_model = has->memory_model,
      .device_scope = has->device_scope,
      .zeroes_workgroup = has->zeroes_workgroup,
      .keeps_signed_zeros = has->keeps_signed_zeros,
      .keeps_subnormals = has->keeps_subnormals,
      .rounds_to_even = has->rounds_to_even,
      .push_bytes = pushed < VK_MAX_PUSH_BYTES ? pushed : VK_MAX_PUSH_BYTES,
      .max_iterations = device->max_loop_iterations,
      .drops_outside = device->physical->has_llvmpipe_bugs,
      .vector = device->physical->has_llvmpipe_bugs ? LLVMPIPE_VECTOR : 0,
      .hides_floats = device->physical->has_llvmpipe_bugs,
      .block_in_storage = !vk_uses_push_constants(pipeline)};
}
