/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The needs of modules in packages: a device that is not exact enough in an
 * operation that the module uses, or lacks a feature of it, is refused. Needs no
 * Vulkan device. */
#include <stdlib.h>
#include <string.h>

#include "backend/vulkan/device/device.h"
#include "backend/vulkan/pipeline.h"
#include "hal/float_ops.h"
#include "runtime/compile/pipeline.h"
#include "support/check.h"
#include "support/parse.h"

extern const vyre__backend vyre__backend_vulkan;

enum { LLVMPIPE, NATIVE, CORRECTED, BASIC, SOFT };

/* A device whose features and float modes the test sets. */
typedef struct fake {
  vk_device device;
  vk_physical_device physical;
  vyre_float_op_info modes[VYRE__FLOAT_OP_COUNT];
} fake;

/* Starts with the features and the modes of a target. */
static void fake_init(fake *f, uint32_t target) {
  memset(f, 0, sizeof *f);
  f->device.base.backend = &vyre__backend_vulkan;
  vk_portable.device_describe(target, &f->device.base);
  f->physical = *f->device.physical;
  f->device.physical = &f->physical;
  memcpy(f->modes, f->device.base.caps.float_ops, sizeof f->modes);
  for (int i = 0; i < VYRE__FLOAT_OP_COUNT; i++) {
    f->modes[i].operation = vyre__float_op_is_exact[i].operation;
  }
  f->device.base.caps.float_ops = f->modes;
}

/* Generates code for a target, and returns its needs. */
static vyre__bytes needs_of(const char *text, uint32_t target) {
  fake f;
  fake_init(&f, target);
  vyre_module *module = parse_module(text);
  vyre_pipeline pipeline = vyre__pipeline_request(
      &f.device.base, vyre_module_kernel(module, 0), NULL);
  vyre__bytes artifact = {.data = NULL}, needs = {.data = NULL};
  const vyre__lir_kernel *kernel;
  vyre_status st = {0};
  vyre_arena arena;
  vyre_arena_init(&arena, vyre_allocator_heap());
  CHECK_OK(vyre__pipeline_lower(&pipeline, &arena, &kernel, &st), st);
  CHECK_OK(vk_pipeline_generate(&pipeline, kernel, &arena, &artifact, &st), st);
  vk_portable.put_needs(&pipeline, kernel, &artifact, &needs);
  CHECK(!needs.failed && needs.size > 0);
  vyre__bytes_deinit(&artifact);
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
  return needs;
}

static bool meets(const fake *f, const vyre__bytes *needs,
                  char missing[VYRE__NEED_TEXT]) {
  missing[0] = '\0';
  return vk_portable.meets(&f->device.base, needs->data, needs->size, missing);
}

static const char division[] =
    "kernel k workgroup(4) buffer a : read_write f32[] @0;\n"
    "{ let i = global_id.x; if (i < len(a)) a[i] = a[i] / 3.0; }";
static const char integers[] =
    "kernel k workgroup(4) buffer a : read_write u32[] @0;\n"
    "{ let i = global_id.x; if (i < len(a)) a[i] = a[i] / 3 + 1; }";
static const char wide[] =
    "kernel k workgroup(4) buffer a : read_write f64[] @0;\n"
    "{ let i = global_id.x; if (i < len(a)) a[i] = a[i] + 3.0; }";
static const char narrow[] =
    "kernel k workgroup(4) buffer a : read_write u8[] @0;\n"
    "{ let i = global_id.x; if (i < len(a)) a[i] = a[i] + 3; }";

TEST(used_operations_must_be_exact) {
  char missing[VYRE__NEED_TEXT];
  vyre__bytes needs = needs_of(division, NATIVE);
  fake f;
  fake_init(&f, NATIVE);
  CHECK(meets(&f, &needs, missing));
  f.modes[VYRE__FLOAT_OP_F32_DIV].mode = VYRE_FLOAT_MODE_CORRECTED;
  CHECK(!meets(&f, &needs, missing));
  CHECK_HAS(missing, "'f32 /'");
  vyre__bytes_deinit(&needs);
  /* Corrected code runs on that device, but not where only soft code is right. */
  needs = needs_of(division, CORRECTED);
  CHECK(meets(&f, &needs, missing));
  f.modes[VYRE__FLOAT_OP_F32_DIV].mode = VYRE_FLOAT_MODE_SOFT;
  CHECK(!meets(&f, &needs, missing));
  vyre__bytes_deinit(&needs);
  needs = needs_of(division, SOFT);
  CHECK(meets(&f, &needs, missing));
  vyre__bytes_deinit(&needs);
}

TEST(unused_operations_do_not_matter) {
  char missing[VYRE__NEED_TEXT];
  vyre__bytes needs = needs_of(division, NATIVE);
  fake f;
  fake_init(&f, NATIVE);
  /* A stored NaN is replaced by the canonical one, after x != x. */
  for (int i = 0; i < VYRE__FLOAT_OP_COUNT; i++) {
    if (i == VYRE__FLOAT_OP_F32_DIV || i == VYRE__FLOAT_OP_F32_NE) continue;
    f.modes[i].mode = VYRE_FLOAT_MODE_SOFT;
  }
  CHECK(meets(&f, &needs, missing));
  vyre__bytes_deinit(&needs);
  needs = needs_of(integers, NATIVE);
  f.modes[VYRE__FLOAT_OP_F32_DIV].mode = VYRE_FLOAT_MODE_SOFT;
  CHECK(meets(&f, &needs, missing));
  vyre__bytes_deinit(&needs);
}

TEST(soft_code_runs_everywhere) {
  char missing[VYRE__NEED_TEXT];
  vyre__bytes needs = needs_of(division, SOFT);
  fake f;
  fake_init(&f, SOFT); /* no features, all operations soft */
  f.device.has = (vk_features){.storage8 = false};
  CHECK(meets(&f, &needs, missing));
  vyre__bytes_deinit(&needs);
}

TEST(used_features_must_exist) {
  char missing[VYRE__NEED_TEXT];
  vyre__bytes needs = needs_of(wide, NATIVE);
  fake f;
  fake_init(&f, NATIVE);
  CHECK(meets(&f, &needs, missing));
  f.device.has.float64 = false;
  CHECK(!meets(&f, &needs, missing));
  CHECK_HAS(missing, "64-bit floats");
  f.device.has.float64 = true;
  f.modes[VYRE__FLOAT_OP_F64_ADD].mode = VYRE_FLOAT_MODE_SOFT;
  CHECK(!meets(&f, &needs, missing));
  vyre__bytes_deinit(&needs);
  needs = needs_of(narrow, NATIVE);
  CHECK(meets(&f, &needs, missing));
  f.device.has.storage8 = false;
  CHECK(!meets(&f, &needs, missing));
  CHECK_HAS(missing, "8-bit storage");
  vyre__bytes_deinit(&needs);
  needs = needs_of(narrow, BASIC);
  CHECK(meets(&f, &needs, missing));
  vyre__bytes_deinit(&needs);
}

TEST(llvmpipe_has_code_of_its_own) {
  char missing[VYRE__NEED_TEXT];
  vyre__bytes its = needs_of(integers, LLVMPIPE);
  vyre__bytes other = needs_of(integers, NATIVE);
  fake f;
  fake_init(&f, LLVMPIPE);
  f.device.has.device_scope = true;
  CHECK(meets(&f, &its, missing));
  CHECK(!meets(&f, &other, missing));
  f.physical.has_llvmpipe_bugs = false;
  CHECK(!meets(&f, &its, missing));
  CHECK_HAS(missing, "llvmpipe");
  CHECK(meets(&f, &other, missing));
  vyre__bytes_deinit(&its);
  vyre__bytes_deinit(&other);
}

TEST(damaged_needs_are_refused) {
  char missing[VYRE__NEED_TEXT];
  vyre__bytes needs = needs_of(integers, NATIVE);
  fake f;
  fake_init(&f, NATIVE);
  for (size_t size = 0; size < needs.size; size++) {
    vyre__bytes part = needs;
    part.size = size;
    CHECK(!meets(&f, &part, missing) && missing[0]);
  }
  needs.data[0]++; /* another version */
  CHECK(!meets(&f, &needs, missing));
  vyre__bytes_deinit(&needs);
}

TEST_MAIN(TEST_ENTRY(used_operations_must_be_exact),
          TEST_ENTRY(unused_operations_do_not_matter),
          TEST_ENTRY(soft_code_runs_everywhere),
          TEST_ENTRY(used_features_must_exist),
          TEST_ENTRY(llvmpipe_has_code_of_its_own),
          TEST_ENTRY(damaged_needs_are_refused))
