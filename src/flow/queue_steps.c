/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compiles the kernels between the chunks of a queue. */
#include <string.h>

#include "vyre/module.h"

#include "base/status.h"
#include "flow/queue_internal.h"
#include "runtime/core/device.h"

extern const char vyre__queue_steps_text[];
extern const size_t vyre__queue_steps_text_length;

static vyre_code compile(vyre_queue *queue, const vyre_module *module,
                         vyre_status *st) {
  static const char *const names[VYRE__QUEUE_STEPS][2] = {
#define X(name, list, set) {list, set},
      VYRE__QUEUE_STEP_MAP(X)
#undef X
  };
  const vyre_compile_options options = {.tier = VYRE_TIER_OPTIMISED};
  const bool is_set = vyre__queue_is_set(&queue->info);
  for (int i = 0; i < VYRE__QUEUE_STEPS; i++) {
    const char *name = names[i][is_set];
    if (!name) continue;
    VYRE_TRY(vyre_pipeline_compile(
        queue->device, vyre_module_find(module, name), &options,
        &queue->steps[i], NULL, vyre__status_open(st)));
  }
  return VYRE_OK;
}

vyre_code vyre__queue_compile_steps(vyre_queue *queue, vyre_status *st) {
  vyre_module *module;
  if (!queue->device->backend->needs_queue_steps) return VYRE_OK;
  VYRE_TRY(vyre_module_parse(
      vyre__queue_steps_text, vyre__queue_steps_text_length, "queue_steps.vyre",
      queue->device->allocator, &module, NULL, vyre__status_open(st)));
  vyre_code code = compile(queue, module, st);
  vyre_module_release(module);
  return code;
}
