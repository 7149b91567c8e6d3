/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The targets of packages: sets of features and float modes that many devices
 * have.
 *
 * The needs of a module are read from its code, not from its target: the
 * features of its capabilities, and for each float operation in it the highest
 * mode that the probe may have found. A module gives the same bits on every
 * device that is exact in the modes that it was compiled in, or in lower
 * ones. */
#include <stdio.h>
#include <string.h>

#include "backend/vulkan/device/device.h"
#include "backend/vulkan/device/instance.h"
#include "backend/vulkan/pipeline.h"
#include "backend/vulkan/plan.h"
#include "hal/float_ops.h"
#include "hal/float_target.h"

/* --- float modes ---------------------------------------------------------- */

enum {
  NATIVE = VYRE_FLOAT_MODE_NATIVE,
  CORRECTED = VYRE_FLOAT_MODE_CORRECTED,
  SOFT = VYRE_FLOAT_MODE_SOFT
};

#define IS_F64(of, to) \
  (VYRE_TYPE_##of == VYRE_TYPE_F64 || VYRE_TYPE_##to == VYRE_TYPE_F64)
#define IS(op, other) (VYRE__FLOAT_OP_##op == VYRE__FLOAT_OP_##other)
#define MODE(mode)    {"", (vyre_float_mode)(mode), 1, 0},

/* clang-format off */
#define ALL_NATIVE(op, text, o, of, to, n, e) MODE(NATIVE)
#define MOSTLY_NATIVE(op, text, o, of, to, n, e) \
  MODE(IS(op, F32_FMA) ? CORRECTED : IS(op, F64_FMA) ? SOFT : NATIVE)
#define ALL_CORRECTED(op, text, o, of, to, n, e) \
  MODE(IS(op, F64_FMA) || IS(op, F64_RINT) ? SOFT \
       : IS_F64(of, to) ? NATIVE : CORRECTED)
#define ALL_SOFT(op, text, o, of, to, n, e) MODE(SOFT)
/* clang-format on */

static const vyre_float_op_info all_native[] = {VYRE__FLOAT_OP_MAP(ALL_NATIVE)};
static const vyre_float_op_info mostly_native[] = {
    VYRE__FLOAT_OP_MAP(MOSTLY_NATIVE)};
static const vyre_float_op_info all_corrected[] = {
    VYRE__FLOAT_OP_MAP(ALL_CORRECTED)};
static const vyre_float_op_info all_soft[] = {VYRE__FLOAT_OP_MAP(ALL_SOFT)};

/* --- targets -------------------------------------------------------------- */

enum { LLVMPIPE, ALL_FEATURES, CORRECTED_FLOATS, BASIC, SOFT_FLOATS };

static const char *const targets[] = {
    [LLVMPIPE] = "vulkan-llvmpipe",          [ALL_FEATURES] = "vulkan-native",
    [CORRECTED_FLOATS] = "vulkan-corrected", [BASIC] = "vulkan-basic",
    [SOFT_FLOATS] = "vulkan-soft",           NULL};

static const vyre_float_op_info *const modes[] = {
    [LLVMPIPE] = mostly_native,
    [ALL_FEATURES] = all_native,
    [CORRECTED_FLOATS] = all_corrected,
    [BASIC] = all_corrected,
    [SOFT_FLOATS] = all_soft};

static const vk_physical_device any_device = {
    .properties.limits.maxPushConstantsSize = VYRE__SPIRV_PUSH_BYTES};
static const vk_physical_device llvmpipe_device = {
    .properties.limits.maxPushConstantsSize = VYRE__SPIRV_PUSH_BYTES,
    .has_llvmpipe_bugs = true};

/* All targets ask for all float modes; vk_pipeline_load removes those that the
 * device lacks. */
static void device_describe(uint32_t index, vyre_device *device) {
  vk_device *own = (vk_device *)device;
  bool is_wide = index <= CORRECTED_FLOATS;
  bool is_llvmpipe = index == LLVMPIPE;
  own->physical = is_llvmpipe ? &llvmpipe_device : &any_device;
  own->max_loop_iterations = is_llvmpipe ? VK_LLVMPIPE_MAX_ITERATIONS : 0;
  own->uses_push_constants = !is_llvmpipe;
  own->has = (vk_features){.storage8 = is_wide,
                           .storage16 = is_wide,
                           .int8 = is_wide,
                           .int16 = is_wide,
                           .int64 = is_wide,
                           .float64 = is_wide,
                           .buffer_atomics64 = is_wide,
                           .shared_atomics64 = is_wide,
                           .memory_model = is_wide,
                           .device_scope = is_wide && !is_llvmpipe,
                           .keeps_signed_zeros = 32 | 64,
                           .keeps_subnormals = 32 | 64,
                           .rounds_to_even = 32 | 64};
  device->caps.float_ops = modes[index];
  device->caps.float_op_count = VYRE__FLOAT_OP_COUNT;
}

/* --- needs ---------------------------------------------------------------- */

/* Needs as bytes: a head, then for each float operation the highest mode that
 * the device may need. */
enum {
  NEEDS_VERSION = 1,
  VERSION_AT = 0,
  LLVMPIPE_AT = 1, /* made for llvmpipe */
  PUSH_AT = 2,     /* words of push constants */
  FEATURES_AT = 4, /* two bytes, a bit for each feature */
  MODES_AT = 6,
  NEEDS_SIZE = MODES_AT + VYRE__FLOAT_OP_COUNT
};

/* X(field of vyre__spirv_target, field of vk_features, name) */
#define FEATURE_MAP(X)                                     \
  X(storage8, storage8, "8-bit storage")                   \
  X(storage16, storage16, "16-bit storage")                \
  X(int8, int8, "8-bit integers")                          \
  X(int16, int16, "16-bit integers")                       \
  X(int64, int64, "64-bit integers")                       \
  X(float64, float64, "64-bit floats")                     \
  X(buffer_atomics64, buffer_atomics64, "64-bit atomics")  \
  X(shared_atomics64, shared_atomics64, "64-bit atomics")  \
  X(vulkan_memory_model, memory_model, "the memory model") \
  X(device_scope, device_scope, "the memory scope 'device'")

static const char *const feature_names[] = {
#define NAME(field, feature, name) (name),
    FEATURE_MAP(NAME)
#undef NAME
};
enum { FEATURES = sizeof feature_names / sizeof *feature_names };

static uint16_t features_of_module(const vyre__spirv_target *uses) {
  uint16_t all = 0;
  unsigned bit = 0;
#define ADD(field, feature, name) \
  all |= (uint16_t)((uint16_t)uses->field << bit++);
  FEATURE_MAP(ADD)
#undef ADD
  return all;
}

static uint16_t features_of_device(const vk_features *has) {
  uint16_t all = 0;
  unsigned bit = 0;
#define ADD(field, feature, name) \
  all |= (uint16_t)((uint16_t)has->feature << bit++);
  FEATURE_MAP(ADD)
#undef ADD
  return all;
}

/* Returns the probe results that an instruction relies on, as a mask. Every use
 * of 64-bit floats relies on those that decide if the device has them. */
static uint64_t float_ops_of(const vyre__lir_inst *inst,
                             const vyre__spirv_target *target) {
  uint64_t all = vyre__float_ops_of((vyre__lir_op)inst->op);
  if (inst->type != VYRE_TYPE_F64) return all;
  for (int i = VYRE__FLOAT_OP_F64_ADD; i <= VYRE__FLOAT_OP_F32_TO_F64; i++) {
    if (i == VYRE__FLOAT_OP_F64_FMA || i == VYRE__FLOAT_OP_F64_RINT) continue;
    all |= (uint64_t)1 << i;
  }
  if (inst->op == VYRE__LIR_FMA && target->fma64) {
    all |= (uint64_t)1 << VYRE__FLOAT_OP_F64_FMA;
  }
  if (target->whole64) all |= (uint64_t)1 << VYRE__FLOAT_OP_F64_RINT;
  return all;
}

static void put_needs(const vyre_pipeline *pipeline,
                      const vyre__lir_kernel *kernel,
                      const vyre__bytes *artifact, vyre__bytes *to) {
  const vk_device *device = (const vk_device *)pipeline->device;
  vyre__spirv_target target = vk_spirv_target(pipeline), uses;
  unsigned char needs[NEEDS_SIZE] = {NEEDS_VERSION};
  vk_plan plan;
  const void *cache;
  size_t cache_size;
  vyre_arena arena;
  vyre_arena_init(&arena, to->allocator);
  if (vk_artifact_read(artifact->data, artifact->size, &arena, &plan, &cache,
                       &cache_size, NULL) != VYRE_OK) {
    to->failed = true; /* valid bytes were just written: memory is exhausted */
    vyre_arena_deinit(&arena);
    return;
  }
  vyre__spirv_capabilities(plan.words, plan.word_count, &uses);
  uint16_t features = features_of_module(&uses);
  needs[LLVMPIPE_AT] = device->physical->has_llvmpipe_bugs;
  needs[PUSH_AT] = (unsigned char)(plan.push_bytes / 4);
  needs[FEATURES_AT] = (unsigned char)features;
  needs[FEATURES_AT + 1] = (unsigned char)(features >> 8);
  uint64_t used = 0;
  for (uint32_t i = 0; i < kernel->count; i++) {
    used |= float_ops_of(&kernel->code[i], &target);
  }
  for (int i = 0; i < VYRE__FLOAT_OP_COUNT; i++) {
    bool is_used = used >> i & 1;
    needs[MODES_AT + i] = (unsigned char)(is_used ? pipeline->float_ops[i].mode
                                                  : VYRE_FLOAT_MODE_SOFT);
  }
  vyre__bytes_put(to, needs, sizeof needs);
  vyre_arena_deinit(&arena);
}

/* Returns the first feature that @p device lacks, or NULL. */
static const char *find_feature(const vk_device *device,
                                const unsigned char *needs, size_t size) {
  if (size != NEEDS_SIZE || needs[VERSION_AT] != NEEDS_VERSION) {
    return "something that this version does not know";
  }
  if (needs[LLVMPIPE_AT] != device->physical->has_llvmpipe_bugs) {
    return needs[LLVMPIPE_AT] ? "Mesa's llvmpipe"
                              : "a driver other than Mesa's llvmpipe";
  }
  if (4u * needs[PUSH_AT] >
      device->physical->properties.limits.maxPushConstantsSize) {
    return "more push constants";
  }
  unsigned features = needs[FEATURES_AT] | (unsigned)needs[FEATURES_AT + 1]
                                               << 8;
  unsigned lacking = features & ~(unsigned)features_of_device(&device->has);
  for (unsigned i = 0; i < FEATURES; i++) {
    if (lacking >> i & 1) return feature_names[i];
  }
  return lacking ? "something that this version does not know" : NULL;
}

/* Returns the first float operation in which @p device is not exact enough, or
 * NULL. */
static const char *find_float_op(const vk_device *device,
                                 const unsigned char *needs) {
  for (int i = 0; i < VYRE__FLOAT_OP_COUNT; i++) {
    const vyre_float_op_info *op = &device->base.caps.float_ops[i];
    if ((unsigned)op->mode > needs[MODES_AT + i]) return op->operation;
  }
  return NULL;
}

static bool meets(const vyre_device *device, const void *needs, size_t size,
                  char missing[VYRE__NEED_TEXT]) {
  const vk_device *own = (const vk_device *)device;
  const char *feature = find_feature(own, needs, size);
  const char *op = feature ? NULL : find_float_op(own, needs);
  if (feature) (void)snprintf(missing, VYRE__NEED_TEXT, "needs %s", feature);
  if (op) {
    (void)snprintf(missing, VYRE__NEED_TEXT, "needs exact results of '%s'", op);
  }
  return !feature && !op;
}

const vyre__portable vk_portable = {.targets = targets,
                                    .device_describe = device_describe,
                                    .put_needs = put_needs,
                                    .meets = meets};
