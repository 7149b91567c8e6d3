/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "vyre/pipeline.h"

#include <stdio.h>
#include <string.h>

#include "vyre/validate.h"

#include "base/memory.h"
#include "base/status.h"
#include "driver/backend.h"
#include "ir/ir.h"

static vyre_code not_supported(vyre_status *st, const vyre_device *device,
                               const char *kernel, const char *what) {
  return VYRE_FAIL(st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED,
                   "leave it out: this version of vyre has no device that "
                   "can do it",
                   "device '%s' cannot compile kernel '%.60s': %s",
                   device->backend->name, kernel, what);
}

static vyre_code check_buffers(const vyre_device *device,
                               const vyre_program *program, vyre_status *st) {
  for (size_t i = 0; i < program->buffer_count; i++) {
    const vyre_buffer_decl *buffer = &program->buffers[i];
    if (buffer->kind == VYRE_MEMORY_PERSISTENT) {
      return not_supported(st, device, program->name,
                           "persistent buffers come with resident memory");
    }
    if (vyre__is_shared(buffer) && buffer->pipeline_live_out) {
      return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                       "write it to a buffer that is not shared",
                       "shared buffer '%.100s' is live_out, but every "
                       "workgroup has its own",
                       buffer->name);
    }
  }
  return VYRE_OK;
}

/* Everything that is wrong with the program itself, or not there yet. */
static vyre_code check_program(const vyre_device *device,
                               const vyre_program *program,
                               vyre_diagnostics *diagnostics, vyre_status *st) {
  if (program->function_count == 0) {
    return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                     "parse or build a kernel with a body",
                     "the program is a list of buffers without a body");
  }
  VYRE_TRY(vyre_program_validate(program, diagnostics, st));
  if (program->item_type != VYRE_TYPE_VOID) {
    return not_supported(st, device, program->name,
                         "it is a queue kernel, and queues come later");
  }
  return check_buffers(device, program, st);
}

static vyre_code choose_workgroup(vyre_pipeline *pipeline,
                                  const vyre_compile_options *options,
                                  vyre_status *st) {
  const uint32_t *size = pipeline->program->workgroup;
  uint32_t wanted[3];
  if (options &&
      (options->workgroup[0] | options->workgroup[1] | options->workgroup[2])) {
    for (int axis = 0; axis < 3; axis++) {
      wanted[axis] = options->workgroup[axis] ? options->workgroup[axis] : 1;
    }
    size = wanted;
  }
  uint64_t product = 1;
  for (int axis = 0; axis < 3 && product <= VYRE_MAX_INVOCATIONS; axis++) {
    product *= size[axis];
  }
  if (product > VYRE_MAX_INVOCATIONS) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, NULL,
        VYRE_NUMBERS({"most_invocations", VYRE_MAX_INVOCATIONS}),
        "use a workgroup of at most 1024 invocations",
        "a workgroup of %u x %u x %u has more than %d invocations", size[0],
        size[1], size[2], VYRE_MAX_INVOCATIONS);
  }
  memcpy(pipeline->workgroup, size, sizeof pipeline->workgroup);
  return VYRE_OK;
}

/* The end of a pipeline whose start is set; the backend's part is gone. */
static void destroy(vyre_pipeline *pipeline) {
  vyre_device *device = pipeline->device;
  vyre_arena_finish(&pipeline->arena);
  vyre_program_release(pipeline->program);
  vyre__resize(device->allocator, pipeline, device->backend->pipeline_size, 0);
  vyre_device_release(device);
}

/* Two pipelines have one id only if they are the same: a workgroup that is not
 * the program's own is part of it. */
static void name_pipeline(vyre_pipeline *pipeline) {
  const vyre_program *program = pipeline->program;
  const uint32_t *size = pipeline->workgroup;
  char hash[VYRE_HASH128_TEXT], override[40] = "";
  vyre_hash128_text(program->fingerprint, hash);
  if (memcmp(size, program->workgroup, sizeof program->workgroup) != 0) {
    (void)snprintf(override, sizeof override, ":%ux%ux%u", (unsigned)size[0],
                   (unsigned)size[1], (unsigned)size[2]);
  }
  (void)snprintf(pipeline->id, sizeof pipeline->id, "%s:%s%s",
                 pipeline->device->backend->name, hash, override);
}

static vyre_code create(vyre_device *device, vyre_program *program,
                        const vyre_compile_options *options,
                        vyre_pipeline **out, vyre_status *st) {
  size_t size = device->backend->pipeline_size;
  vyre_pipeline *pipeline = vyre__resize(device->allocator, NULL, 0, size);
  if (!pipeline) {
    return vyre__no_memory(st, "vyre_pipeline_compile", "pipelines", 1);
  }
  memset(pipeline, 0, size);
  pipeline->device = vyre_device_retain(device);
  pipeline->program = vyre_program_retain(program);
  vyre_arena_init(&pipeline->arena, device->allocator);
  atomic_init(&pipeline->references, 1);
  vyre_code code = choose_workgroup(pipeline, options, st);
  name_pipeline(pipeline);
  if (code == VYRE_OK) {
    code =
        vyre_binding_plan_build(program, &pipeline->arena, &pipeline->plan, st);
  }
  if (code == VYRE_OK) code = device->backend->pipeline_init(pipeline, st);
  if (code != VYRE_OK) {
    destroy(pipeline);
    return code;
  }
  *out = pipeline;
  return VYRE_OK;
}

vyre_code vyre_pipeline_compile(vyre_device *device, vyre_program *program,
                                const vyre_compile_options *options,
                                vyre_pipeline **out,
                                vyre_diagnostics *diagnostics,
                                vyre_status *st) {
  static const char who[] = "vyre_pipeline_compile";
  if (!out) return vyre__null_argument(st, who, "out");
  *out = NULL;
  if (!device) return vyre__null_argument(st, who, "device");
  if (!program) return vyre__null_argument(st, who, "program");
  VYRE_TRY(check_program(device, program, diagnostics, st));
  return create(device, program, options, out, st);
}

vyre_pipeline *vyre_pipeline_retain(vyre_pipeline *pipeline) {
  if (pipeline) atomic_fetch_add(&pipeline->references, 1);
  return pipeline;
}

void vyre_pipeline_release(vyre_pipeline *pipeline) {
  if (!pipeline || atomic_fetch_sub(&pipeline->references, 1) > 1) return;
  pipeline->device->backend->pipeline_finish(pipeline);
  destroy(pipeline);
}

const char *vyre_pipeline_id(const vyre_pipeline *pipeline) {
  return pipeline ? pipeline->id : "";
}

const vyre_program *vyre_pipeline_program(const vyre_pipeline *pipeline) {
  return pipeline ? pipeline->program : NULL;
}

const vyre_binding_plan *vyre_pipeline_bindings(const vyre_pipeline *pipeline) {
  return pipeline ? &pipeline->plan : NULL;
}

const uint32_t *vyre_pipeline_workgroup(const vyre_pipeline *pipeline) {
  return pipeline ? pipeline->workgroup : NULL;
}
