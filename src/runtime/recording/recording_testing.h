/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Kernels and a device for tests of recordings. */
#ifndef VYRE_RUNTIME_RECORDING_RECORDING_TESTING_H
#define VYRE_RUNTIME_RECORDING_RECORDING_TESTING_H

#include "vyre/vyre.h"

#include "support/check.h"
#include "support/driver.h"

enum { ELEMENTS = 20, BYTES = 4 * ELEMENTS };

static const char recording_text[] =
    "kernel scale workgroup(8) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : write u32[] @1 output;\n"
    "uniform a : u32 @2;\n"
    "{ if (global_id.x < len(y)) y[global_id.x] = a * x[global_id.x]; }\n"
    "kernel add workgroup(8) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "{ if (global_id.x < len(y)) y[global_id.x] += x[global_id.x]; }\n"
    "kernel count workgroup(1)\n"
    "buffer n : read_write u32[2] @0;\n"
    "{ if (global_id.x == 0) { n[0] = n[0] - 1; n[1] = n[1] + 1; } }\n"
    "kernel hang workgroup(1)\n"
    "buffer n : read_write u32[2] @0;\n"
    "{ while (global_id.x == 0 && n[0] > 0) n[1] = n[1] + 1; }\n"
    "kernel refill workgroup(1)\n"
    "buffer n : read_write u32[2] @0;\n"
    "buffer m : read_write u32[2] @1;\n"
    "{ if (global_id.x == 0) { n[0] = 3; m[0] = m[0] - 1; m[1] = m[1] + 1; } "
    "}\n"
    "kernel tell workgroup(1)\n"
    "buffer n : read_write u32[1] @0;\n"
    "{ n[0] = n[0] + 1; print(\"told\", n[0]); }\n";

enum { SCALE, ADD, COUNT, HANG, REFILL, TELL, KERNELS };

typedef struct bench {
  vyre_context *context;
  vyre_device *device;
  vyre_module *module;
  vyre_pipeline *pipelines[KERNELS];
} bench;

static inline bench bench_open(vyre_allocator allocator) {
  bench b = {0};
  vyre_status st = {0};
  vyre_context_options options = {.allocator = allocator,
                                  .cache_directory = "",
                                  .trace_file = "",
                                  .faults = ""};
  CHECK_OK(vyre_context_create(&options, &b.context, &st), st);
  CHECK_OK(vyre_device_open(b.context, "ref", &b.device, &st), st);
  CHECK_OK(vyre_module_parse(recording_text, strlen(recording_text), "rec.vyre",
                             (vyre_allocator){0}, &b.module, NULL, &st),
           st);
  for (size_t i = 0; i < KERNELS; i++) {
    CHECK_OK(vyre_pipeline_compile(b.device, vyre_module_kernel(b.module, i),
                                   NULL, &b.pipelines[i], NULL, &st),
             st);
  }
  return b;
}

static inline void bench_close(bench *b) {
  for (size_t i = 0; i < KERNELS; i++) vyre_pipeline_release(b->pipelines[i]);
  vyre_device_release(b->device);
  vyre_context_release(b->context);
  vyre_module_release(b->module);
}

static inline uint32_t add_slot(vyre_recording *rec, const char *name,
                                uint64_t size) {
  uint32_t slot;
  vyre_status st = {0};
  CHECK_OK(vyre_recording_add_slot(rec, name, size, &slot, &st), st);
  return slot;
}

static inline vyre_code add_dispatch(vyre_recording *rec,
                                     vyre_pipeline *pipeline,
                                     const vyre_slot_range *in, size_t in_count,
                                     const vyre_slot_range *out,
                                     size_t out_count, vyre_status *st) {
  vyre_recorded_dispatch d = {.inputs = in,
                              .input_count = in_count,
                              .outputs = out,
                              .output_count = out_count};
  return vyre_recording_add_dispatch(rec, pipeline, &d, st);
}

static inline void bind_bytes(vyre_recording *rec, uint32_t slot, void *data,
                              size_t size) {
  vyre_status st = {0};
  vyre_slot_binding r = {.data = data, .size = size};
  CHECK_OK(vyre_recording_bind_slot(rec, slot, &r, &st), st);
}

static inline void bind_buffer(vyre_recording *rec, uint32_t slot,
                               vyre_buffer buffer) {
  vyre_status st = {0};
  vyre_slot_binding r = {.buffer = buffer};
  CHECK_OK(vyre_recording_bind_slot(rec, slot, &r, &st), st);
}

static inline vyre_buffer create_buffer(vyre_device *device, size_t size) {
  vyre_buffer made;
  vyre_status st = {0};
  CHECK_OK(vyre_buffer_create(device, size, &made, &st), st);
  return made;
}

/* upload host -> x; y = a x; sum += y; download sum -> back. */
typedef struct chain {
  vyre_recording *rec;
  uint32_t host, x, a, y, sum, back;
} chain;

static inline vyre_code chain_record(const bench *b, bool has_sum, chain *out,
                                     vyre_status *st) {
  chain c = {0};
  vyre_code code = vyre_recording_create(b->device, &c.rec, st);
  struct {
    const char *name;
    uint32_t *slot;
  } slots[] = {{"host", &c.host}, {"x", &c.x},     {"a", &c.a},
               {"y", &c.y},       {"sum", &c.sum}, {"back", &c.back}};
  for (size_t i = 0; i < 6 && code == VYRE_OK; i++) {
    code = vyre_recording_add_slot(c.rec, slots[i].name, 0, slots[i].slot, st);
  }
  vyre_slot_range x = vyre_slot_range_all(c.x), y = vyre_slot_range_all(c.y),
                  sum = vyre_slot_range_all(c.sum);
  vyre_slot_range scale_in[] = {x, vyre_slot_range_all(c.a)},
                  add_in[] = {y, sum};
  if (code == VYRE_OK) {
    code = vyre_recording_add_copy(c.rec, vyre_slot_range_all(c.host), x, st);
  }
  if (code == VYRE_OK) {
    code = add_dispatch(c.rec, b->pipelines[SCALE], scale_in, 2, &y, 1, st);
  }
  if (code == VYRE_OK && has_sum) {
    code = add_dispatch(c.rec, b->pipelines[ADD], add_in, 2, &sum, 1, st);
  }
  if (code == VYRE_OK) {
    code = vyre_recording_add_copy(c.rec, has_sum ? sum : y,
                                   vyre_slot_range_all(c.back), st);
  }
  if (code == VYRE_OK) code = vyre_recording_seal(c.rec, st);
  if (code != VYRE_OK) vyre_recording_release(c.rec);
  if (code == VYRE_OK) *out = c;
  return code;
}

/* --- recording with its data -------------------------------------------- */

typedef struct chain_data {
  uint32_t host[ELEMENTS], a, back[ELEMENTS];
  vyre_buffer x, y, sum;
} chain_data;

static inline void chain_data_make(const bench *b, chain_data *d) {
  *d = (chain_data){.a = 3};
  for (uint32_t i = 0; i < ELEMENTS; i++) d->host[i] = i + 1;
  d->x = create_buffer(b->device, BYTES);
  d->y = create_buffer(b->device, BYTES);
  d->sum = create_buffer(b->device, BYTES);
}

static inline void chain_bind(const chain *c, chain_data *d) {
  bind_bytes(c->rec, c->host, d->host, BYTES);
  bind_bytes(c->rec, c->a, &d->a, 4);
  bind_bytes(c->rec, c->back, d->back, BYTES);
  bind_buffer(c->rec, c->x, d->x);
  bind_buffer(c->rec, c->y, d->y);
  bind_buffer(c->rec, c->sum, d->sum);
}

static inline chain chain_make(const bench *b, bool has_sum) {
  chain c;
  vyre_status st = {0};
  CHECK_OK(chain_record(b, has_sum, &c, &st), st);
  return c;
}

#endif
