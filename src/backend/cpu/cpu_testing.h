/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Helpers shared by the tests of the CPU device. */
#ifndef VYRE_BACKEND_CPU_CPU_TESTING_H
#define VYRE_BACKEND_CPU_CPU_TESTING_H

#include <stdlib.h>
#include <string.h>

#include "vyre/vyre.h"

#include "support/check.h"
#include "support/parse.h"
#include "support/text.h"

/* --- a device, a kernel and one buffer -------------------------------------*/

typedef struct rig {
  test_heap heap;
  vyre_context *context;
  vyre_device *device;
  vyre_module *module;
  vyre_pipeline *pipeline;
} rig;

static inline vyre_context_options plain_options(rig *r) {
  return (vyre_context_options){.allocator = {test_heap_resize, &r->heap},
                                .cache_directory = "",
                                .trace_file = "",
                                .faults = ""};
}

static inline void rig_begin(rig *r, const vyre_context_options *options,
                             const char *text) {
  vyre_status st = {0};
  CHECK_OK(vyre_context_create(options, &r->context, &st), st);
  CHECK_OK(vyre_device_open(r->context, "cpu", &r->device, &st), st);
  r->module = parse_module(text);
}

/* Compiles optimised code. */
static inline void rig_compile(rig *r) {
  vyre_status st = {0};
  const vyre_compile_options options = {.tier = VYRE_TIER_OPTIMISED};
  CHECK_OK(vyre_pipeline_compile(r->device, vyre_module_kernel(r->module, 0),
                                 &options, &r->pipeline, NULL, &st),
           st);
}

static inline void rig_open(rig *r, const char *text) {
  *r = (rig){.heap = {.left = -1}};
  vyre_context_options options = plain_options(r);
  rig_begin(r, &options, text);
  rig_compile(r);
}

static inline void rig_close(rig *r) {
  vyre_pipeline_release(r->pipeline);
  vyre_module_release(r->module);
  vyre_device_release(r->device);
  vyre_context_release(r->context);
  CHECK_U64(r->heap.live_bytes, 0);
}

/* Runs the kernel with its data in place. */
static inline vyre_code run_in_place(rig *r, void *data, size_t size,
                                     vyre_dispatch_desc *desc,
                                     vyre_status *st) {
  vyre_input in[] = {vyre_input_bytes(data, size)};
  vyre_output out[] = {vyre_output_bytes(data, size)};
  desc->inputs = in;
  desc->outputs = out;
  desc->input_count = desc->output_count = 1;
  vyre_code code = vyre_dispatch(r->pipeline, desc, st);
  desc->inputs = NULL;
  desc->outputs = NULL;
  return code;
}

#endif
