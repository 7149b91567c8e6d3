/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "runtime/dispatch/dimensions.h"

#include <stdio.h>
#include <string.h>

#include "base/attributes.h"
#include "base/checked_math.h"
#include "base/status.h"
#include "ir/ir.h"

bool vyre__has_dimensions(const vyre_program *program) {
  for (size_t i = 0; i < program->buffer_count; i++) {
    if (program->buffers[i].dimension_uniforms) return true;
  }
  return false;
}

VYRE__RARE
static vyre_code too_small(const vyre_buffer_decl *b, const uint32_t *sizes,
                           uint64_t product, uint32_t length, vyre_status *st) {
  char text[64];
  int at = 0;
  for (unsigned i = 0; i < b->dimension_count; i++) {
    at += snprintf(text + at, sizeof text - (size_t)at, "%s%u", i ? " x " : "",
                   sizes[i]);
  }
  return VYRE_FAIL_WITH(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH, NULL,
      VYRE_NUMBERS({"expected_elements", product},
                   {"received_elements", length}),
      "bind at least as many elements, or set the uniforms of its dimensions "
      "to smaller values",
      "buffer '%.100s' has %s elements by its dimensions, but %u are bound",
      b->name, text, length);
}

VYRE__RARE
static vyre_code resident(const vyre_buffer_decl *b,
                          const vyre_buffer_decl *uniform, vyre_status *st) {
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH,
                   "pass it in host memory: dimensions are checked before the "
                   "start",
                   "uniform '%.100s' is a dimension of buffer '%.100s', and is "
                   "bound to a device buffer",
                   uniform->name, b->name);
}

static vyre_code check_buffer(const vyre__prepared *prepared, size_t index,
                              vyre_status *st) {
  const vyre_program *program = prepared->pipeline->program;
  const vyre_buffer_decl *b = &program->buffers[index];
  uint32_t sizes[VYRE_MAX_DIMENSIONS];
  uint64_t product = 1;
  bool overflows = false;
  for (unsigned i = 0; i < b->dimension_count; i++) {
    const uint32_t at = b->dimensions[i];
    sizes[i] = at;
    if (b->dimension_uniforms >> i & 1) {
      const vyre__view *view = &prepared->views[at];
      if (view->buffer) return resident(b, &program->buffers[at], st);
      sizes[i] = 0;
      if (view->data && view->length > 0) memcpy(&sizes[i], view->data, 4);
    } else if (at == 0) {
      return VYRE_OK; /* the whole rows in the memory */
    }
    overflows |= !vyre__mul_u64(product, sizes[i], &product);
  }
  if (overflows) product = UINT64_MAX;
  const uint32_t length = prepared->views[index].length;
  if (product <= length) return VYRE_OK;
  return too_small(b, sizes, product, length, st);
}

vyre_code vyre__check_dimensions(const vyre__prepared *prepared,
                                 vyre_status *st) {
  const vyre_program *program = prepared->pipeline->program;
  for (size_t i = 0; i < program->buffer_count; i++) {
    if (!program->buffers[i].dimension_uniforms) continue;
    VYRE_TRY(check_buffer(prepared, i, st));
  }
  return VYRE_OK;
}
