/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* For tests: SPIR-V targets, and options of random programs for them. */
#ifndef VYRE_CODEGEN_SPIRV_SPIRV_TARGETS_TESTING_H
#define VYRE_CODEGEN_SPIRV_SPIRV_TARGETS_TESTING_H

#include "vyre/random_program.h"

#include "codegen/spirv/spirv.h"
#include "support/check.h"

typedef struct spirv_target {
  const char *name;
  vyre__target low;
  vyre__spirv_target spirv;
} spirv_target;

/* Features of software devices; their fma rounds twice. */
#define SPIRV_EVERYTHING                                            \
  .storage8 = true, .storage16 = true, .int8 = true, .int16 = true, \
  .int64 = true, .float64 = true, .buffer_atomics64 = true,         \
  .shared_atomics64 = true

#define SPIRV_FIXED_FMA                                  \
  .f32 = {[VYRE__LIR_FMA] = VYRE__FLOAT_MODE_CORRECTED}, \
  .math = VYRE__MATH_F64_NOFMA

static const spirv_target spirv_targets[] = {
    {"all features",
     {SPIRV_FIXED_FMA},
     {SPIRV_EVERYTHING, .vulkan_memory_model = true, .device_scope = true,
      .block_in_storage = true, .max_iterations = 1, .drops_outside = true,
      .vector = 16, .hides_floats = true}},
    {"the least of Vulkan 1.1",
     {.f32 = {[VYRE__LIR_FMA] = VYRE__FLOAT_MODE_SOFT},
      .math = VYRE__MATH_U32,
      .no_f64 = true,
      .no_u64 = true,
      .no_narrow = true},
     {.block_in_storage = true,
      .max_iterations = 1,
      .vector = 16,
      .hides_floats = true}},
    {"soft numbers",
     {.f32_as_bits = true, .math = VYRE__MATH_U32, .no_f64 = true},
     {SPIRV_EVERYTHING, .block_in_storage = true, .names = true}},
    {"few push constants, uniforms bound",
     {SPIRV_FIXED_FMA},
     {SPIRV_EVERYTHING, .binds_uniforms = true, .push_bytes = 32,
      .max_iterations = 100, .vector = 16, .hides_floats = true}},
    {"narrow words in shared memory, a block in a buffer",
     {SPIRV_FIXED_FMA},
     {.storage8 = true,
      .storage16 = true,
      .int64 = true,
      .float64 = true,
      .buffer_atomics64 = true,
      .shared_atomics64 = true,
      .hides_floats = true,
      .push_bytes = 16,
      .names = true,
      .lines = true}},
    {"no 64-bit atomics",
     {SPIRV_FIXED_FMA, .no_buffer_atomics64 = true,
      .no_shared_atomics64 = true},
     {.storage8 = true,
      .storage16 = true,
      .int8 = true,
      .int16 = true,
      .int64 = true,
      .float64 = true,
      .block_in_storage = true,
      .hides_floats = true}},
};
enum { SPIRV_TARGETS = sizeof spirv_targets / sizeof spirv_targets[0] };

/* Options of the random program of a seed, for spirv_targets[seed %
 * SPIRV_TARGETS]. It avoids math functions of uniform memory on software
 * devices that take too long to compile them. */
static inline vyre_random_program_options spirv_options(uint64_t seed,
                                                        void *self) {
  const spirv_target *target = &spirv_targets[seed % SPIRV_TARGETS];
  (void)self;
  return (vyre_random_program_options){
      .seed = seed,
      .max_invocations = 300,
      .no_f64 = target->low.no_f64,
      .only_add64 = target->low.no_u64 || target->low.no_buffer_atomics64,
      .has_math = seed % 4 == 3 && target->spirv.block_in_storage};
}

#endif
