/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Describes a device to lowering and to the SPIR-V emitter: the features that
 * it reports, and the float modes that the probe measured. */
#include <string.h>

#include "backend/vulkan/device/device.h"
#include "backend/vulkan/device/logical_device.h"
#include "backend/vulkan/pipeline.h"
#include "backend/vulkan/plan.h"
#include "hal/float_ops.h"

/* Float operations of LIR, and the probe results that choose their mode. */
static const struct {
  uint8_t number, op;
} float_ops[] = {
    {VYRE__FLOAT_OP_F32_NEG, VYRE__LIR_FNEG},
    {VYRE__FLOAT_OP_F32_ABS, VYRE__LIR_FABS},
    {VYRE__FLOAT_OP_F32_ADD, VYRE__LIR_FADD},
    {VYRE__FLOAT_OP_F32_SUB, VYRE__LIR_FSUB},
    {VYRE__FLOAT_OP_F32_MUL, VYRE__LIR_FMUL},
    {VYRE__FLOAT_OP_F32_DIV, VYRE__LIR_FDIV},
    {VYRE__FLOAT_OP_F32_SQRT, VYRE__LIR_FSQRT},
    {VYRE__FLOAT_OP_F32_FMA, VYRE__LIR_FMA},
    {VYRE__FLOAT_OP_F32_MIN, VYRE__LIR_FMIN},
    {VYRE__FLOAT_OP_F32_MAX, VYRE__LIR_FMAX},
    {VYRE__FLOAT_OP_F32_FLOOR, VYRE__LIR_FFLOOR},
    {VYRE__FLOAT_OP_F32_CEIL, VYRE__LIR_FCEIL},
    {VYRE__FLOAT_OP_F32_TRUNC, VYRE__LIR_FTRUNC},
    {VYRE__FLOAT_OP_F32_ROUND, VYRE__LIR_FROUND},
    {VYRE__FLOAT_OP_F32_RINT, VYRE__LIR_FRINT},
    {VYRE__FLOAT_OP_F32_EQ, VYRE__LIR_FEQ},
    {VYRE__FLOAT_OP_F32_NE, VYRE__LIR_FNE},
    {VYRE__FLOAT_OP_F32_LT, VYRE__LIR_FLT},
    {VYRE__FLOAT_OP_F32_LE, VYRE__LIR_FLE},
    {VYRE__FLOAT_OP_F32_TO_U32, VYRE__LIR_F_TO_U},
    {VYRE__FLOAT_OP_F32_TO_U64, VYRE__LIR_F_TO_U},
    {VYRE__FLOAT_OP_F32_TO_I32, VYRE__LIR_F_TO_S},
    {VYRE__FLOAT_OP_F32_TO_I64, VYRE__LIR_F_TO_S},
    {VYRE__FLOAT_OP_U32_TO_F32, VYRE__LIR_U_TO_F},
    {VYRE__FLOAT_OP_U64_TO_F32, VYRE__LIR_U_TO_F},
    {VYRE__FLOAT_OP_I32_TO_F32, VYRE__LIR_S_TO_F},
    {VYRE__FLOAT_OP_I64_TO_F32, VYRE__LIR_S_TO_F},
};

uint64_t vk_float_ops_of(vyre__lir_op op) {
  uint64_t all = 0;
  for (size_t i = 0; i < sizeof float_ops / sizeof float_ops[0]; i++) {
    if (float_ops[i].op == op) all |= (uint64_t)1 << float_ops[i].number;
  }
  return all;
}

/* Chooses the arithmetic of math functions: f64 only if the probe found all f64
 * operations exact. */
static vyre__math_variant choose_math(const vk_device *device,
                                      const vyre_float_op_info *probed) {
  static const uint8_t required[] = {
      VYRE__FLOAT_OP_F64_ADD,    VYRE__FLOAT_OP_F64_SUB,
      VYRE__FLOAT_OP_F64_MUL,    VYRE__FLOAT_OP_F64_DIV,
      VYRE__FLOAT_OP_F64_SQRT,   VYRE__FLOAT_OP_F64_TO_F32,
      VYRE__FLOAT_OP_F32_TO_F64, VYRE__FLOAT_OP_F64_LT};
  if (!device->has.float64 || !device->has.int64) return VYRE__MATH_U32;
  for (size_t i = 0; i < sizeof required; i++) {
    if (probed[required[i]].mode != VYRE_FLOAT_MODE_NATIVE)
      return VYRE__MATH_U32;
  }
  return probed[VYRE__FLOAT_OP_F64_FMA].mode == VYRE_FLOAT_MODE_NATIVE
             ? VYRE__MATH_F64
             : VYRE__MATH_F64_NOFMA;
}

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
  const vyre_float_op_info *probed = pipeline->float_ops;
  const vk_features *has = &device->has;
  *out = (vyre__target){.no_f64 = !has->float64 || !has->int64,
                        .no_u64 = !has->int64,
                        .no_buffer_atomics64 = !has->buffer_atomics64,
                        .no_shared_atomics64 = !has->shared_atomics64,
                        .no_narrow = !has->storage8 || !has->storage16,
                        .math = (uint8_t)choose_math(device, probed)};
  for (size_t i = 0; i < sizeof float_ops / sizeof float_ops[0]; i++) {
    uint8_t mode = (uint8_t)probed[float_ops[i].number].mode;
    uint8_t *to = &out->f32[float_ops[i].op];
    if (mode > *to) *to = mode;
  }
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
