/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks of a dispatch: bindings, sizes, options and limits. */
#ifndef VYRE_RUNTIME_DISPATCH_BIND_H
#define VYRE_RUNTIME_DISPATCH_BIND_H

#include "runtime/dispatch/prepared.h"

/* Fills the binding tables of pipeline->state from its plan. */
vyre_code vyre__binding_infos_build(vyre_pipeline *pipeline, vyre_status *st);

/* Checks the numbers of inputs and outputs, without reading the lists. */
vyre_code vyre__check_counts(const vyre_binding_plan *plan,
                             const vyre_dispatch_desc *desc, vyre_status *st);
/* Checks bindings that are not cached, and caches what it finds in @p
 * prepared. */
vyre_code vyre__prepared_check_again(vyre__prepared *prepared, vyre_status *st);
/* Resolves the bindings of prepared->desc: the lengths of all buffers, and the
 * bytes that return to the host. Host pointers are not read, and may be NULL. */
vyre_code vyre__prepared_resolve(vyre__prepared *prepared, vyre_status *st);
/* Fills in the readbacks of the launch. Those into a host buffer have no memory
 * before it is allocated. */
void vyre__prepared_set_readbacks(vyre__prepared *prepared);
/* Checks the options of the descriptor against the device. */
vyre_code vyre__prepared_check_options(const vyre__prepared *prepared,
                                       vyre_status *st);
/* Reports a repeat_count of 0. */
vyre_code vyre__zero_repeat_count(const vyre_device *device, vyre_status *st);
/* Checks max_output_bytes and require_zero_copy. */
vyre_code vyre__prepared_check_limits(const vyre__prepared *prepared,
                                      vyre_status *st);

/* Returns the reason why the device must copy host bytes at @p data, or
 * VYRE_COPY_NONE. */
static inline vyre_copy_reason vyre__host_reason(const vyre_device *device,
                                                 const void *data) {
  uint64_t alignment = device->caps.host_alignment;
  if (!device->caps.borrows_host_memory) return VYRE_COPY_DEVICE_MEMORY;
  if (alignment > 1 && (uintptr_t)data % alignment) return VYRE_COPY_ALIGNMENT;
  return VYRE_COPY_NONE;
}

#endif
