/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "runtime/tune/own_outputs.h"

#include "base/memory.h"
#include "base/status.h"

uint64_t vyre__output_size(const vyre_binding_plan *plan,
                           const vyre_dispatch_desc *desc, size_t index) {
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->output_index != index) continue;
    if (b->has_static_byte_len) return b->static_byte_len;
    if (desc->outputs[index].size == 0 && b->input_index < desc->input_count) {
      return desc->inputs[b->input_index].size;
    }
  }
  return desc->outputs[index].size;
}

vyre_code vyre__own_outputs(const char *function, const vyre_binding_plan *plan,
                            const vyre_dispatch_desc *desc,
                            vyre_output outputs[VYRE__OWN_OUTPUTS],
                            vyre__bytes *bytes, vyre_status *st) {
  if (desc->output_count > VYRE__OWN_OUTPUTS) {
    return VYRE_FAIL_WITH(
        st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED, NULL,
        VYRE_NUMBERS({"outputs", desc->output_count},
                     {"max", VYRE__OWN_OUTPUTS}),
        "use fewer outputs", "%s: %zu outputs are more than the maximum of %d",
        function, desc->output_count, VYRE__OWN_OUTPUTS);
  }
  size_t total = 0, at = 0;
  for (size_t i = 0; i < desc->output_count; i++) {
    total += (size_t)(vyre__output_size(plan, desc, i) + 63) / 64 * 64;
  }
  if (!vyre__reserve(bytes->allocator, &bytes->data, &bytes->capacity,
                     total + 1, 1, true)) {
    return vyre__no_memory(st, function, "bytes of outputs", total);
  }
  bytes->size = total;
  for (size_t i = 0; i < desc->output_count; i++) {
    size_t size = (size_t)vyre__output_size(plan, desc, i);
    outputs[i] = vyre_output_bytes(bytes->data + at, size);
    at += (size + 63) / 64 * 64;
  }
  return VYRE_OK;
}
