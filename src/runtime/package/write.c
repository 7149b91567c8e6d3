/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiles programs for portable targets, and writes a package. */
#include <string.h>

#include "vyre/binary.h"
#include "vyre/validate.h"

#include "base/memory.h"
#include "base/status.h"
#include "hal/float_ops.h"
#include "ir/ir.h"
#include "runtime/compile/pipeline.h"
#include "runtime/core/context.h"
#include "runtime/package/package.h"

typedef struct writer {
  vyre_context *context;
  const vyre_package_options *options;
  vyre__bytes kernels, codes, texts, data; /* offsets in data are relative */
  uint32_t kernel_count, code_count;
  vyre_arena arena; /* binary forms of programs */
  vyre_status *st;
} writer;

/* --- parts ---------------------------------------------------------------- */

/* Appends bytes to the texts, and returns their offset. */
static uint32_t put_text(writer *w, const void *bytes, size_t size) {
  uint32_t at = (uint32_t)w->texts.size;
  vyre__bytes_put(&w->texts, bytes, size);
  return at;
}

/* Appends data at an aligned offset. Returns the offset. */
static uint64_t put_data(writer *w, const void *bytes, size_t size) {
  static const unsigned char zeros[VYRE__PACKAGE_ALIGNMENT];
  size_t over = w->data.size % VYRE__PACKAGE_ALIGNMENT;
  if (over > 0) {
    vyre__bytes_put(&w->data, zeros, VYRE__PACKAGE_ALIGNMENT - over);
  }
  uint64_t at = w->data.size;
  vyre__bytes_put(&w->data, bytes, size);
  return at;
}

/* Returns the offset of the data with this checksum and size among the codes of
 * the current kernel, or UINT64_MAX: different targets may give the same
 * code. */
static uint64_t find_data(const writer *w, uint32_t first, size_t size,
                          const unsigned char sum[16]) {
  for (uint32_t i = first; i < w->code_count; i++) {
    const unsigned char *record =
        w->codes.data + (size_t)i * VYRE__PACKAGE_CODE;
    if (vyre__get_u64(record + VYRE__CODE_SIZE) == size &&
        memcmp(record + VYRE__CODE_CHECKSUM, sum, 16) == 0) {
      return vyre__get_u64(record + VYRE__CODE_AT);
    }
  }
  return UINT64_MAX;
}

/* Appends code of the current kernel, whose codes begin at @p first. */
static void put_code(writer *w, uint32_t first, const vyre_pipeline *pipeline,
                     const char *target, const vyre__bytes *artifact,
                     const vyre__bytes *needs) {
  const vyre__backend *backend = pipeline->device->backend;
  unsigned char record[VYRE__PACKAGE_CODE] = {0};
  vyre__put_u32(record + VYRE__CODE_BACKEND,
                put_text(w, backend->name, strlen(backend->name) + 1));
  vyre__put_u32(record + VYRE__CODE_TARGET,
                put_text(w, target, strlen(target) + 1));
  vyre__put_u32(record + VYRE__CODE_VERSION, backend->artifact_version);
  for (int axis = 0; axis < 3; axis++) {
    vyre__put_u32(record + VYRE__CODE_WORKGROUP + (ptrdiff_t)4 * axis,
                  pipeline->workgroup[axis]);
  }
  vyre__put_u32(record + VYRE__CODE_ULP, pipeline->ulp_budget);
  vyre__put_u32(record + VYRE__CODE_COUNTS, pipeline->counts_iterations);
  vyre__put_u32(record + VYRE__CODE_NEEDS,
                put_text(w, needs->data, needs->size));
  vyre__put_u32(record + VYRE__CODE_NEEDS_SIZE, (uint32_t)needs->size);
  unsigned char *sum = record + VYRE__CODE_CHECKSUM;
  vyre__package_sum_data(artifact->data, artifact->size, sum);
  uint64_t at = find_data(w, first, artifact->size, sum);
  if (at == UINT64_MAX) at = put_data(w, artifact->data, artifact->size);
  vyre__put_u64(record + VYRE__CODE_AT, at);
  vyre__put_u64(record + VYRE__CODE_SIZE, artifact->size);
  vyre__bytes_put(&w->codes, record, sizeof record);
  w->code_count++;
}

/* --- compiling ------------------------------------------------------------ */

/* Compiles @p pipeline, whose device describes a target, and appends the
 * code. */
static vyre_code compile(writer *w, uint32_t first,
                         const vyre_pipeline *pipeline, const char *target) {
  const vyre__backend *backend = pipeline->device->backend;
  vyre_allocator allocator = w->context->allocator;
  vyre__bytes artifact = {.allocator = allocator};
  vyre__bytes needs = {.allocator = allocator};
  const vyre__lir_kernel *kernel;
  vyre_arena scratch;
  vyre_arena_init(&scratch, allocator);
  vyre_code code = vyre__pipeline_lower(pipeline, &scratch, &kernel, w->st);
  if (code == VYRE_OK) {
    code = backend->generate(pipeline, kernel, &scratch, &artifact, w->st);
  }
  if (code == VYRE_OK && !artifact.failed) {
    backend->portable->put_needs(pipeline, kernel, &artifact, &needs);
  }
  vyre_arena_deinit(&scratch);
  if (code == VYRE_OK && (artifact.failed || needs.failed)) {
    code = vyre__no_memory(w->st, "vyre_package_write", "bytes of code",
                           artifact.size);
  }
  if (code == VYRE_OK) {
    put_code(w, first, pipeline, target, &artifact, &needs);
    if (w->codes.failed) { /* later codes would look for this one */
      code =
          vyre__no_memory(w->st, "vyre_package_write", "codes", w->code_count);
    }
  }
  vyre__bytes_deinit(&artifact);
  vyre__bytes_deinit(&needs);
  return code;
}

/* Compiles the exact code and all variants of a program for @p device. */
static vyre_code compile_variants(writer *w, uint32_t first,
                                  vyre_program *program, vyre_device *device,
                                  const char *target) {
  static const vyre_compile_options exact = {{0}, 0};
  for (size_t i = 0; i <= w->options->variant_count; i++) {
    const vyre_compile_options *options =
        i > 0 ? &w->options->variants[i - 1] : &exact;
    vyre_pipeline pipeline = vyre__pipeline_request(device, program, options);
    pipeline.is_baseline = false;
    pipeline.counts_iterations = options->counts_iterations;
    VYRE_TRY(compile(w, first, &pipeline, target));
  }
  return VYRE_OK;
}

/* Compiles a program for a target. */
static vyre_code compile_target(writer *w, uint32_t first,
                                vyre_program *program,
                                vyre__package_target target) {
  const vyre__backend *backend = target.backend;
  vyre_device *device =
      vyre__alloc_zeroed(w->context->allocator, backend->device_size);
  if (!device) {
    return vyre__no_memory(w->st, "vyre_package_write", "devices", 1);
  }
  device->backend = backend;
  device->context = w->context;
  device->allocator = w->context->allocator;
  device->caps.float_ops = vyre__float_op_is_exact;
  device->caps.float_op_count = VYRE__FLOAT_OP_COUNT;
  backend->portable->device_describe(target.index, device);
  vyre_code code = vyre__check_program(device, program, NULL, w->st);
  if (code == VYRE_OK) {
    code = compile_variants(w, first, program, device,
                            backend->portable->targets[target.index]);
  }
  vyre__resize(w->context->allocator, device, backend->device_size, 0);
  return code;
}

/* Codes of one kernel while its targets are compiled. */
typedef struct progress {
  const vyre__backend *backend; /* of the last target */
  bool has_code;                /* for a target of this backend */
  vyre_code failure;            /* of the first target that was left out */
  vyre_status reason;
} progress;

/* Fails if no target of the last backend supported the kernel. */
static vyre_code finish_backend(const writer *w, const progress *p) {
  if (!p->backend || p->has_code || p->failure == VYRE_OK) return VYRE_OK;
  if (w->st) *w->st = p->reason;
  return p->failure;
}

/* Leaves out a target that does not support the kernel, unless it was named.
 * Only the first @p count codes stay. */
static vyre_code leave_out(writer *w, progress *p, vyre_code code,
                           const vyre_status *reason, bool is_named,
                           uint32_t count) {
  if (code != VYRE_UNSUPPORTED_FEATURE || is_named) {
    if (w->st) *w->st = *reason;
    return code;
  }
  w->code_count = count;
  w->codes.size = (size_t)count * VYRE__PACKAGE_CODE;
  if (p->failure == VYRE_OK) {
    p->failure = code;
    p->reason = *reason;
  }
  return VYRE_OK;
}

/* Compiles a program for all selected targets. */
static vyre_code compile_all(writer *w, uint32_t first, vyre_program *program) {
  progress p = {.backend = NULL};
  vyre__package_target target;
  vyre_status *out = w->st;
  for (size_t i = 0; vyre__package_target_at(i, &target); i++) {
    vyre__package_choice choice =
        vyre__package_selects(w->options->targets, &target);
    if (choice == VYRE__TARGET_UNUSED) continue;
    if (!p.backend || target.backend != p.backend) {
      VYRE_TRY(finish_backend(w, &p));
      p = (progress){.backend = target.backend};
    }
    vyre_status reason = {0};
    uint32_t count = w->code_count;
    w->st = &reason;
    vyre_code code = compile_target(w, first, program, target);
    w->st = out;
    if (code == VYRE_OK) {
      p.has_code = true;
    } else {
      VYRE_TRY(
          leave_out(w, &p, code, &reason, choice == VYRE__TARGET_NAMED, count));
    }
  }
  return finish_backend(w, &p);
}

static vyre_code put_kernel(writer *w, vyre_program *program) {
  const uint8_t *bytes;
  size_t size;
  uint32_t first = w->code_count;
  unsigned char record[VYRE__PACKAGE_KERNEL] = {0};
  VYRE_TRY(vyre_program_write_binary(program, &w->arena, &bytes, &size,
                                     vyre__status_open(w->st)));
  uint32_t name = put_text(w, program->name, strlen(program->name) + 1);
  VYRE_TRY(compile_all(w, first, program));
  vyre__put_u32(record + VYRE__KERNEL_NAME, name);
  vyre__put_u32(record + VYRE__KERNEL_FIRST, first);
  vyre__put_u32(record + VYRE__KERNEL_COUNT, w->code_count - first);
  vyre__put_u64(record + VYRE__KERNEL_AT, put_data(w, bytes, size));
  vyre__put_u64(record + VYRE__KERNEL_SIZE, size);
  vyre__package_sum_data(bytes, size, record + VYRE__KERNEL_CHECKSUM);
  unsigned char *hash = record + VYRE__KERNEL_FINGERPRINT;
  vyre__put_u64(hash, program->fingerprint.low);
  vyre__put_u64(hash + 8, program->fingerprint.high);
  vyre__bytes_put(&w->kernels, record, sizeof record);
  w->kernel_count++;
  return VYRE_OK;
}

/* --- the file ------------------------------------------------------------- */

/* Moves the offsets of data behind the index. */
static void move_data(writer *w, uint64_t by) {
  for (uint32_t i = 0; i < w->kernel_count; i++) {
    unsigned char *at =
        w->kernels.data + (size_t)i * VYRE__PACKAGE_KERNEL + VYRE__KERNEL_AT;
    vyre__put_u64(at, vyre__get_u64(at) + by);
  }
  for (uint32_t i = 0; i < w->code_count; i++) {
    unsigned char *at =
        w->codes.data + (size_t)i * VYRE__PACKAGE_CODE + VYRE__CODE_AT;
    vyre__put_u64(at, vyre__get_u64(at) + by);
  }
}

static void put_head(const writer *w, uint64_t data_at, vyre__bytes *to) {
  unsigned char *head = to->data;
  memcpy(head, vyre__package_magic, sizeof vyre__package_magic);
  vyre__put_u32(head + VYRE__HEAD_VERSION, VYRE__PACKAGE_VERSION);
  vyre__put_u32(head + VYRE__HEAD_KERNELS, w->kernel_count);
  vyre__put_u32(head + VYRE__HEAD_CODES, w->code_count);
  vyre__put_u32(head + VYRE__HEAD_TEXT, (uint32_t)w->texts.size);
  vyre__put_u64(head + VYRE__HEAD_SIZE, to->size);
  vyre__put_u64(head + VYRE__HEAD_DATA, data_at);
  vyre__package_sum_index(head, (size_t)data_at,
                          head + VYRE__PACKAGE_CHECKSUM_AT);
}

static vyre_code check_sizes(const writer *w) {
  if (w->texts.size <= VYRE__PACKAGE_MAX_TEXT &&
      w->kernel_count <= VYRE__PACKAGE_MAX_KERNELS &&
      w->code_count <= VYRE__PACKAGE_MAX_CODES) {
    return VYRE_OK;
  }
  return VYRE_FAIL_WITH(
      w->st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "count",
      VYRE_NUMBERS({"kernels", w->kernel_count},
                   {"max_kernels", VYRE__PACKAGE_MAX_KERNELS},
                   {"codes", w->code_count},
                   {"max_codes", VYRE__PACKAGE_MAX_CODES}),
      "write several packages",
      "vyre_package_write: %u kernels with %u codes do not fit in one package",
      (unsigned)w->kernel_count, (unsigned)w->code_count);
}

static vyre_code put_file(writer *w, vyre__bytes *file, vyre_writer to) {
  static const unsigned char zeros[VYRE__PACKAGE_HEAD];
  size_t index =
      VYRE__PACKAGE_HEAD + w->kernels.size + w->codes.size + w->texts.size;
  size_t data_at = (index + VYRE__PACKAGE_ALIGNMENT - 1) /
                   VYRE__PACKAGE_ALIGNMENT * VYRE__PACKAGE_ALIGNMENT;
  VYRE_TRY(check_sizes(w));
  bool failed =
      w->kernels.failed || w->codes.failed || w->texts.failed || w->data.failed;
  if (!failed) {
    move_data(w, data_at);
    vyre__bytes_put(file, zeros, VYRE__PACKAGE_HEAD);
    vyre__bytes_put(file, w->kernels.data, w->kernels.size);
    vyre__bytes_put(file, w->codes.data, w->codes.size);
    vyre__bytes_put(file, w->texts.data, w->texts.size);
    vyre__bytes_put(file, zeros, data_at - index);
    vyre__bytes_put(file, w->data.data, w->data.size);
  }
  if (failed || file->failed) {
    return vyre__no_memory(w->st, "vyre_package_write", "bytes", w->data.size);
  }
  put_head(w, data_at, file);
  if (to.write(to.self, (const char *)file->data, file->size)) return VYRE_OK;
  return VYRE_FAIL(w->st, VYRE_INVALID_ARGUMENT, VYRE_KIND_WRITER_REFUSED,
                   "free space at the destination of the package",
                   "the writer refused a package of %zu bytes", file->size);
}

/* --- the public function -------------------------------------------------- */

/* A queue has code of its own, which depends on its plan. */
static vyre_code refuse_queue(const vyre_program *program, vyre_status *st) {
  if (program->item_type == VYRE_TYPE_VOID) return VYRE_OK;
  return VYRE_FAIL_WITH(
      st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, "programs", NULL,
      "move the queue kernel to a file of its own, and embed that without "
      "--aot: vyre_queue_create compiles it on the device",
      "kernel '%.100s' is a queue kernel, and a package has code for "
      "dispatches only",
      program->name);
}

static vyre_code check_programs(vyre_program *const *programs, size_t count,
                                vyre_status *st) {
  for (size_t i = 0; i < count; i++) {
    if (!programs[i]) {
      return vyre__null_argument(st, "vyre_package_write", "programs");
    }
    VYRE_TRY(refuse_queue(programs[i], st));
    for (size_t k = 0; k < i; k++) {
      if (strcmp(programs[i]->name, programs[k]->name) != 0) continue;
      return VYRE_FAIL_WITH(
          st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "programs",
          VYRE_NUMBERS({"first", k}, {"second", i}),
          "rename one of them, or write two packages",
          "vyre_package_write: two kernels are named '%.100s'",
          programs[i]->name);
    }
  }
  return VYRE_OK;
}

static vyre_code check_variants(const vyre_package_options *options,
                                vyre_status *st) {
  if (!options->variants && options->variant_count > 0) {
    return vyre__null_argument(st, "vyre_package_write", "variants");
  }
  for (size_t i = 0; i < options->variant_count; i++) {
    const vyre_compile_options *variant = &options->variants[i];
    uint64_t product = 1;
    VYRE_TRY(vyre__check_compile_options("vyre_package_write", variant, st));
    VYRE_TRY(vyre__refuse_compile_timeout("vyre_package_write", variant, st));
    for (int axis = 0; axis < 3; axis++) {
      uint32_t size = variant->workgroup[axis];
      product *= size > 0 ? size : 1;
      if (product <= VYRE_MAX_INVOCATIONS) continue;
      return VYRE_FAIL_WITH(
          st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "workgroup",
          VYRE_NUMBERS({"max_invocations", VYRE_MAX_INVOCATIONS}),
          "use a variant of at most 1024 invocations",
          "a variant of %u x %u x %u invocations is larger than %d",
          (unsigned)variant->workgroup[0], (unsigned)variant->workgroup[1],
          (unsigned)variant->workgroup[2], VYRE_MAX_INVOCATIONS);
    }
  }
  return VYRE_OK;
}

static vyre_code write_all(writer *w, vyre_program *const *programs,
                           size_t count, vyre_writer to) {
  for (size_t i = 0; i < count; i++) VYRE_TRY(put_kernel(w, programs[i]));
  vyre__bytes file = {.allocator = w->context->allocator};
  vyre_code code = put_file(w, &file, to);
  vyre__bytes_deinit(&file);
  return code;
}

vyre_code vyre_package_write(vyre_context *context,
                             vyre_program *const *programs, size_t count,
                             const vyre_package_options *options,
                             vyre_writer to, vyre_status *st) {
  vyre__status_begin(st);
  static const vyre_package_options defaults = {.targets = NULL};
  VYRE_REQUIRE_ARRAY(st, programs, count);
  if (!to.write) return vyre__null_argument(st, __func__, "writer");
  if (!options) options = &defaults;
  VYRE_CHECK_RESERVED(st, __func__, options);
  VYRE_TRY(check_programs(programs, count, st));
  VYRE_TRY(check_variants(options, st));
  VYRE_TRY(vyre__package_check_targets(options->targets, st));
  VYRE_TRY(vyre__context_acquire(&context, st));
  vyre_allocator allocator = context->allocator;
  writer w = {.context = context,
              .options = options,
              .kernels = {.allocator = allocator},
              .codes = {.allocator = allocator},
              .texts = {.allocator = allocator},
              .data = {.allocator = allocator},
              .st = st};
  vyre_arena_init(&w.arena, allocator);
  vyre_code code = write_all(&w, programs, count, to);
  vyre_arena_deinit(&w.arena);
  vyre__bytes_deinit(&w.kernels);
  vyre__bytes_deinit(&w.codes);
  vyre__bytes_deinit(&w.texts);
  vyre__bytes_deinit(&w.data);
  vyre_context_release(context);
  return code;
}
