/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Makes pipelines from the code in packages. */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "runtime/compile/device_limits.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/device.h"
#include "runtime/package/package.h"

/* Returns true if the options of a code record are those of @p wanted. */
static bool has_options(const unsigned char *record,
                        const vyre_pipeline *wanted) {
  for (int axis = 0; axis < 3; axis++) {
    if (vyre__get_u32(record + VYRE__CODE_WORKGROUP + (ptrdiff_t)4 * axis) !=
        wanted->workgroup[axis]) {
      return false;
    }
  }
  return vyre__get_u32(record + VYRE__CODE_ULP) == wanted->ulp_budget &&
         vyre__get_u32(record + VYRE__CODE_COUNTS) == wanted->counts_iterations;
}

/* Reason why a package has no code for a device. */
typedef struct misfit {
  const char *target; /* target that came closest; NULL: none of the backend */
  bool has_backend;   /* there is code of the backend, with other options */
  char missing[VYRE__NEED_TEXT];
} misfit;

/* Returns true if the device can run the code. */
static bool fits(const vyre_package *package, const unsigned char *record,
                 const vyre_device *device, char missing[VYRE__NEED_TEXT]) {
  uint32_t version = vyre__get_u32(record + VYRE__CODE_VERSION);
  if (version != device->backend->artifact_version) {
    (void)snprintf(missing, VYRE__NEED_TEXT,
                   "has code version %u, and this library loads version %u",
                   (unsigned)version,
                   (unsigned)device->backend->artifact_version);
    return false;
  }
  return device->backend->portable->meets(
      device, package->texts + vyre__get_u32(record + VYRE__CODE_NEEDS),
      vyre__get_u32(record + VYRE__CODE_NEEDS_SIZE), missing);
}

/* Finds the first code that fits @p wanted and its device. Returns NULL with a
 * reason. The last reason is kept: later targets need less. */
static const unsigned char *find_code(const vyre_package *package,
                                      uint32_t kernel,
                                      const vyre_pipeline *wanted,
                                      misfit *why) {
  const vyre_device *device = wanted->device;
  const unsigned char *owner = vyre__package_kernel_at(package, kernel);
  uint32_t count = vyre__get_u32(owner + VYRE__KERNEL_COUNT);
  for (uint32_t i = 0; i < count; i++) {
    const unsigned char *record = vyre__package_code_at(package, kernel, i);
    const char *backend =
        package->texts + vyre__get_u32(record + VYRE__CODE_BACKEND);
    if (strcmp(backend, device->backend->name) != 0) continue;
    why->has_backend = true;
    if (!has_options(record, wanted)) continue;
    if (fits(package, record, device, why->missing)) return record;
    why->target = package->texts + vyre__get_u32(record + VYRE__CODE_TARGET);
  }
  return NULL;
}

static vyre_code no_code(const vyre_pipeline *wanted, const misfit *why,
                         vyre_status *st) {
  const char *kernel = wanted->program->name;
  const char *device = vyre_device_name(wanted->device);
  if (why->target) {
    return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                     "build the package again with all targets, use another "
                     "device, or set may_compile",
                     "the package has no code of kernel '%.60s' for device "
                     "'%s': '%.30s' %s",
                     kernel, device, why->target, why->missing);
  }
  if (why->has_backend) {
    const uint32_t *size = wanted->workgroup;
    return VYRE_FAIL(
        st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
        "build the package with this variant, or set may_compile",
        "the package has no code of kernel '%.60s' for a "
        "workgroup of %u x %u x %u and %u ulp%s",
        kernel, (unsigned)size[0], (unsigned)size[1], (unsigned)size[2],
        (unsigned)wanted->ulp_budget,
        wanted->counts_iterations ? " that counts iterations" : "");
  }
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                   "build the package with targets of this device, or set "
                   "may_compile",
                   "the package has no code of kernel '%.60s' for device '%s'",
                   kernel, device);
}

/* Copies the artifact to 16-aligned memory of @p arena if it is not aligned:
 * the caller chose where the bytes of the package are. */
static vyre_code align(const unsigned char **data, size_t size,
                       vyre_arena *arena, vyre_status *st) {
  if ((uintptr_t)*data % VYRE__PACKAGE_ALIGNMENT == 0) return VYRE_OK;
  unsigned char *copy =
      vyre_arena_alloc(arena, size + 1, VYRE__PACKAGE_ALIGNMENT);
  if (!copy) return vyre__no_memory(st, "vyre_pipeline_load", "bytes", size);
  memcpy(copy, *data, size);
  *data = copy;
  return VYRE_OK;
}

static vyre_code load_code(const vyre_package *package,
                           const unsigned char *record,
                           const vyre_pipeline *wanted, vyre_pipeline **out,
                           vyre_status *st) {
  const unsigned char *data;
  size_t size;
  VYRE_TRY(vyre__package_artifact(package, record, &data, &size, st));
  vyre_arena arena;
  vyre_arena_init(&arena, wanted->device->allocator);
  vyre_code code = align(&data, size, &arena, st);
  if (code == VYRE_OK) {
    const vyre__code_source source = {.artifact = data, .size = size};
    code = vyre__pipeline_create_from(wanted, &source, out, st);
  }
  vyre_arena_deinit(&arena);
  return code;
}

/* Returns true if the backend of @p device runs programs, and so needs no code
 * of a package. */
static bool runs_programs(const vyre_device *device) {
  return !device->backend->generate;
}

vyre_code vyre__package_load(vyre_package *package, uint32_t kernel,
                             const vyre_pipeline *wanted, bool may_compile,
                             vyre_pipeline **out, vyre_status *st) {
  misfit why = {0};
  if (runs_programs(wanted->device)) may_compile = true;
  const unsigned char *record = wanted->device->backend->portable
                                    ? find_code(package, kernel, wanted, &why)
                                    : NULL;
  if (!record && !may_compile) return no_code(wanted, &why, st);
  if (record) {
    VYRE_TRY(load_code(package, record, wanted, out, st));
  } else {
    VYRE_TRY(vyre__check_program(wanted->device, wanted->program, NULL, st));
    VYRE_TRY(vyre__program_check_caps(wanted->device, wanted->program, st));
    VYRE_TRY(vyre__pipeline_create(wanted, false, out, st));
  }
  struct vyre__pipeline_state *state = (*out)->state;
  state->package = record ? vyre_package_retain(package) : NULL;
  state->package_kernel = kernel;
  state->may_compile = may_compile;
  return VYRE_OK;
}

static vyre_code load(vyre_device *device, vyre_package *package,
                      uint32_t kernel, const vyre_load_options *options,
                      vyre_pipeline **out, vyre_status *st) {
  vyre_program *program;
  VYRE_TRY(vyre__package_program(package, kernel, &program, st));
  vyre_pipeline wanted =
      vyre__pipeline_request(device, program, &options->compile);
  wanted.is_baseline = false;
  vyre_code code = vyre__package_load(package, kernel, &wanted,
                                      options->may_compile, out, st);
  vyre_program_release(program);
  if (code == VYRE_OK && options->compile.counts_iterations) {
    code = vyre__pipeline_count(*out, 1, VYRE_TIER_OPTIMISED, st);
    if (code != VYRE_OK) {
      vyre_pipeline_release(*out);
      *out = NULL;
    }
  }
  return code;
}

vyre_code vyre_pipeline_load(vyre_device *device, vyre_package *package,
                             const char *name, const vyre_load_options *options,
                             vyre_pipeline **out, vyre_status *st) {
  vyre__status_begin(st);
  static const vyre_load_options defaults = {.may_compile = false};
  VYRE_REQUIRE(st, out);
  *out = NULL;
  VYRE_REQUIRE(st, device);
  VYRE_REQUIRE(st, package);
  VYRE_TRY(vyre__device_check(device, st));
  if (options) {
    VYRE_CHECK_RESERVED(st, __func__, options);
    VYRE_TRY(vyre__check_compile_options(__func__, &options->compile, st));
    VYRE_TRY(vyre__refuse_compile_timeout(__func__, &options->compile, st));
  }
  uint32_t kernel;
  VYRE_TRY(vyre__package_find(package, name, &kernel, st));
  return load(device, package, kernel, options ? options : &defaults, out, st);
}
