/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: invalid calls. Each fails before anything runs, with a status that has
 * names and numbers. */
#include <stdio.h>
#include <string.h>

#include "cts/harness/saxpy.h"

/* Valid arguments, one of which each case makes invalid. */
typedef struct call {
  saxpy_data d;
  saxpy_result got;
  vyre_pipeline *pipeline;
  vyre_buffer good, small, freed, foreign; /* 1024 and 8 bytes */
  vyre_host_buffer slot;
  vyre_buffer kept;
  vyre_compile_options variant;
  uint32_t shared[2 * SAXPY_COUNT + 8];
} call;

static void too_few_inputs(call *b) {
  b->d.desc.input_count = 2;
}
static void too_many_inputs(call *b) {
  b->d.desc.input_count = 4;
}
static void no_inputs(call *b) {
  b->d.desc.inputs = NULL;
}
static void too_few_outputs(call *b) {
  b->d.desc.output_count = 1;
}
static void too_many_outputs(call *b) {
  b->d.desc.output_count = 3;
}
static void no_outputs(call *b) {
  b->d.desc.outputs = NULL;
}
static void short_uniform(call *b) {
  b->d.in[2].size = 3;
}
static void long_uniform(call *b) {
  b->d.in[2].size = 8;
}
static void half_an_element(call *b) {
  b->d.in[0].size = 6;
}
static void null_input(call *b) {
  b->d.in[0].data = NULL;
}
static void null_output(call *b) {
  b->d.out[1].data = NULL;
}
static void short_output(call *b) {
  b->d.out[1].size = 12;
}
static void long_output(call *b) {
  b->d.out[1].size = 20;
}
static void other_size(call *b) {
  b->d.out[0].size = SAXPY_BYTES - 4;
}
static void two_inputs(call *b) {
  b->d.in[0].buffer = b->good;
}
static void two_places(call *b) {
  b->d.out[1].host_buffer = &b->slot;
}
static void three_places(call *b) {
  b->d.out[1].host_buffer = &b->slot;
  b->d.out[1].new_buffer = &b->kept;
}
static void no_place(call *b) {
  b->d.out[1] = (vyre_output){.data = NULL};
}
static void freed_input(call *b) {
  b->d.in[0] = vyre_input_buffer(b->freed);
}
static void freed_output(call *b) {
  b->d.out[1] = vyre_output_buffer(b->freed);
}
static void foreign_input(call *b) {
  b->d.in[0] = vyre_input_buffer(b->foreign);
}
static void foreign_output(call *b) {
  b->d.out[1] = vyre_output_buffer(b->foreign);
}
static void made_up_handle(call *b) {
  b->d.in[0] = vyre_input_buffer(b->good);
  b->d.in[0].buffer.id ^= (uint64_t)1 << 40;
}
static void range_outside(call *b) {
  b->d.in[0] = (vyre_input){.buffer = b->good, .offset = 1000, .size = 40};
}
static void offset_outside(call *b) {
  b->d.in[0] = (vyre_input){.buffer = b->good, .offset = 1028};
}
static void odd_offset(call *b) {
  b->d.in[0] = (vyre_input){.buffer = b->good, .offset = 2, .size = 8};
}
static void small_device_output(call *b) {
  b->d.out[1] = vyre_output_buffer(b->small);
}
static void outputs_overlap(call *b) {
  b->d.out[1].data = b->got.y;
}
static void output_on_input(call *b) {
  b->d.out[1].data = b->d.x;
}
static void output_near_its_input(call *b) {
  memcpy(b->shared, b->d.y, SAXPY_BYTES);
  b->d.in[1].data = b->shared;
  b->d.out[0].data = b->shared + 1;
}
static void device_buffer_overlap(call *b) {
  b->d.in[0] =
      (vyre_input){.buffer = b->good, .offset = 0, .size = SAXPY_BYTES};
  b->d.out[1] = (vyre_output){.buffer = b->good, .offset = 16};
}
static void one_slot_twice(call *b) {
  b->d.out[0] = vyre_output_host_buffer(&b->slot, 0);
  b->d.out[1] = vyre_output_host_buffer(&b->slot, 0);
}
static void one_handle_twice(call *b) {
  b->d.out[0] = vyre_output_new_buffer(&b->kept, 0);
  b->d.out[1] = vyre_output_new_buffer(&b->kept, 0);
}
static void output_too_large(call *b) {
  b->d.desc.max_output_bytes = SAXPY_BYTES + SAXPY_SUMS - 1;
}
static void zero_repeat_count(call *b) {
  b->d.desc.has_repeat_count = true;
}
static void variant_not_compiled(call *b) {
  b->variant = (vyre_compile_options){.workgroup = {4}};
  b->d.desc.variant = &b->variant;
}
static void budget_not_prepared(call *b) {
  b->variant = (vyre_compile_options){.ulp_budget = 2};
  b->d.desc.variant = &b->variant;
}
static void zero_copy(call *b) {
  b->d.desc.require_zero_copy = true;
}
static void grid_too_large(call *b) {
  b->d.desc.grid[0] = UINT32_MAX;
}
static void check_without_report(call *b) {
  b->d.desc.check.out_of_bounds = true;
}

static const struct {
  const char *name;
  void (*spoil)(call *b);
  vyre_code code;
  vyre_kind kind;
  const char *numbers[3]; /* numbers that the status must have */
  const char *word;       /* word that the message must contain */
} bad[] = {
#define MISMATCH VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH
#define PROGRAM  VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM
#define ARGUMENT VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT
    {"too_few_inputs", too_few_inputs, PROGRAM, {NULL}, "2"},
    {"too_many_inputs", too_many_inputs, PROGRAM, {NULL}, "4"},
    {"no_inputs", no_inputs, ARGUMENT, {NULL}, "inputs"},
    {"too_few_outputs",
     too_few_outputs,
     MISMATCH,
     {"expected_outputs", "received_outputs"},
     "1"},
    {"too_many_outputs",
     too_many_outputs,
     MISMATCH,
     {"expected_outputs", "received_outputs"},
     "3"},
    {"no_outputs", no_outputs, ARGUMENT, {NULL}, "outputs"},
    {"short_uniform", short_uniform, PROGRAM, {NULL}, "'a'"},
    {"long_uniform", long_uniform, PROGRAM, {NULL}, "'a'"},
    {"half_an_element", half_an_element, PROGRAM, {NULL}, "'x'"},
    {"null_input", null_input, ARGUMENT, {NULL}, "'x'"},
    {"null_output", null_output, ARGUMENT, {NULL}, "'z'"},
    {"short_output",
     short_output,
     MISMATCH,
     {"output_index", "expected_bytes", "received_bytes"},
     "'z'"},
    {"long_output",
     long_output,
     MISMATCH,
     {"output_index", "expected_bytes", "received_bytes"},
     "'z'"},
    {"input_output_of_two_sizes",
     other_size,
     MISMATCH,
     {"expected_bytes", "received_bytes"},
     "'y'"},
    {"input_twice", two_inputs, MISMATCH, {NULL}, "'x'"},
    {"output_twice", two_places, MISMATCH, {NULL}, "'z'"},
    {"output_three_times", three_places, MISMATCH, {NULL}, "host_buffer"},
    {"output_nowhere", no_place, MISMATCH, {NULL}, "'z'"},
    {"freed_input",
     freed_input,
     VYRE_INVALID_ARGUMENT,
     VYRE_KIND_STALE_HANDLE,
     {"device_buffer"},
     ""},
    {"freed_output",
     freed_output,
     VYRE_INVALID_ARGUMENT,
     VYRE_KIND_STALE_HANDLE,
     {"device_buffer"},
     ""},
    {"foreign_input",
     foreign_input,
     VYRE_INVALID_ARGUMENT,
     VYRE_KIND_FOREIGN_HANDLE,
     {"owner", "device"},
     ""},
    {"foreign_output",
     foreign_output,
     VYRE_INVALID_ARGUMENT,
     VYRE_KIND_FOREIGN_HANDLE,
     {"owner", "device"},
     ""},
    {"made_up_handle",
     made_up_handle,
     VYRE_INVALID_ARGUMENT,
     VYRE_KIND_STALE_HANDLE,
     {"device_buffer"},
     ""},
    {"range_outside",
     range_outside,
     MISMATCH,
     {"offset", "size", "buffer_bytes"},
     "'x'"},
    {"offset_outside",
     offset_outside,
     MISMATCH,
     {"offset", "buffer_bytes"},
     "'x'"},
    {"odd_offset", odd_offset, MISMATCH, {"offset", "alignment"}, "'x'"},
    {"small_device_output",
     small_device_output,
     MISMATCH,
     {"expected_bytes", "received_bytes"},
     "'z'"},
    {"outputs_overlap", outputs_overlap, MISMATCH, {NULL}, "'y'"},
    {"output_on_an_input", output_on_input, MISMATCH, {NULL}, "'x'"},
    {"output_near_its_input", output_near_its_input, MISMATCH, {NULL}, "'y'"},
    {"device_buffer_overlap", device_buffer_overlap, MISMATCH, {NULL}, "'x'"},
    {"one_slot_twice",
     one_slot_twice,
     MISMATCH,
     {"output_index", "other_output"},
     "the same host buffer"},
    {"one_handle_twice",
     one_handle_twice,
     MISMATCH,
     {"output_index", "other_output"},
     "the same handle"},
    {"output_too_large",
     output_too_large,
     VYRE_INVALID_ARGUMENT,
     VYRE_KIND_OUTPUT_TOO_LARGE,
     {"output_bytes", "max_output_bytes"},
     "164"},
    {"zero_repeat_count",
     zero_repeat_count,
     VYRE_INVALID_ARGUMENT,
     VYRE_KIND_ZERO_REPEAT_COUNT,
     {NULL},
     "repeat_count is 0"},
    {"variant_not_prepared",
     variant_not_compiled,
     VYRE_INVALID_ARGUMENT,
     VYRE_KIND_VARIANT_NOT_COMPILED,
     {NULL},
     "4 x 1 x 1"},
    {"budget_not_prepared",
     budget_not_prepared,
     VYRE_INVALID_ARGUMENT,
     VYRE_KIND_VARIANT_NOT_COMPILED,
     {NULL},
     "2 ulp"},
    {"copy_not_allowed",
     zero_copy,
     VYRE_INVALID_ARGUMENT,
     VYRE_KIND_COPY_NEEDED,
     {"copied_bytes", "copies"},
     "copied"},
    {"grid_too_large",
     grid_too_large,
     VYRE_INVALID_ARGUMENT,
     VYRE_KIND_GRID_TOO_LARGE,
     {"grid", "workgroup"},
     "4294967295"},
    {"check_without_report", check_without_report, ARGUMENT, {NULL}, "report"},
};

enum { BAD = sizeof bad / sizeof *bad };

/* --- The same invalid call through every dispatch form
 * ------------------------ */

static vyre_code by_dispatch(cts *c, call *b) {
  return vyre_dispatch(b->pipeline, &b->d.desc, &c->st);
}

static vyre_code by_device(cts *c, call *b) {
  return vyre_device_run_program(c->device, cts_program(c, saxpy_text),
                                 &b->d.desc, &c->st);
}

static vyre_code by_fence(cts *c, call *b) {
  vyre_fence *fence = NULL;
  vyre_code code = vyre_submit(b->pipeline, &b->d.desc, 1, &fence, &c->st);
  CTS_CHECK(c, !fence);
  return code;
}

/* Submits the invalid item second in a batch: the first one must not run
 * either. */
static vyre_code in_batch(cts *c, call *b,
                          vyre_code (*form)(vyre_pipeline *,
                                            vyre_dispatch_desc *, size_t,
                                            vyre_status *)) {
  vyre_code results[2] = {VYRE_OK, VYRE_OK};
  vyre_dispatch_desc items[2];
  saxpy_data good;
  static saxpy_result unused;
  uint64_t item = 9;
  saxpy_make(&good, 5, &unused);
  items[0] = good.desc;
  items[1] = b->d.desc;
  for (int i = 0; i < 2; i++) items[i].result = &results[i];
  vyre_code code = form(b->pipeline, items, 2, &c->st);
  CTS_CHECK(c, vyre_status_number_get(&c->st, "item", &item) && item == 1);
  CTS_CHECK(c, results[0] == VYRE_NOT_RUN && results[1] == VYRE_NOT_RUN);
  return code;
}

static vyre_code submit_all(vyre_pipeline *pipeline, vyre_dispatch_desc *items,
                            size_t count, vyre_status *st) {
  return vyre_submit(pipeline, items, count, NULL, st);
}

static vyre_code submit_later(vyre_pipeline *pipeline,
                              vyre_dispatch_desc *items, size_t count,
                              vyre_status *st) {
  vyre_fence *fence = NULL;
  vyre_code code = vyre_submit(pipeline, items, count, &fence, st);
  return fence ? VYRE_UNKNOWN : code;
}

#define BATCH(door, form)                  \
  static vyre_code door(cts *c, call *b) { \
    return in_batch(c, b, form);           \
  }
BATCH(by_batch, submit_all)
BATCH(by_batch_fence, submit_later)
BATCH(by_borrowed_batched, vyre_dispatch_borrowed_batched)
BATCH(by_borrowed_batched_into, vyre_dispatch_borrowed_batched_into)
BATCH(by_resident_batched, vyre_dispatch_resident_batched)
BATCH(by_resident_batched_into, vyre_dispatch_resident_batched_into)

#define SINGLE(form)                                                     \
  static vyre_code by_##form(cts *c, call *b) {                          \
    const vyre_dispatch_desc *d = &b->d.desc;                            \
    return vyre_dispatch_##form(b->pipeline, d->inputs, d->input_count,  \
                                d->outputs, d->output_count, d, &c->st); \
  }
#define TIMED(form)                                                      \
  static vyre_code by_##form(cts *c, call *b) {                          \
    const vyre_dispatch_desc *d = &b->d.desc;                            \
    vyre_timing timing;                                                  \
    return vyre_dispatch_##form(b->pipeline, d->inputs, d->input_count,  \
                                d->outputs, d->output_count, d, &timing, \
                                &c->st);                                 \
  }
SINGLE(owned)
SINGLE(borrowed)
TIMED(borrowed_timed)
SINGLE(borrowed_into)
SINGLE(resident)
TIMED(resident_timed)
SINGLE(resident_into)

/* Leaves the outputs in device buffers. */
static vyre_code by_to_buffers(cts *c, call *b) {
  const vyre_dispatch_desc *d = &b->d.desc;
  vyre_buffer buffers[2] = {{1, 1}, {1, 1}};
  const vyre_input resources[] = {b->d.in[0], b->d.in[1], {0}, b->d.in[2]};
  vyre_code code = vyre_dispatch_to_buffers(b->pipeline, resources, 4, buffers,
                                            2, d, &c->st);
  for (size_t i = 0; i < 2; i++) {
    CTS_CHECK(c, buffers[i].owner == 0 && buffers[i].id == 0);
  }
  return code;
}

static vyre_code by_rows(cts *c, call *b) {
  const vyre_buffer_row row = {{b->d.in[0], b->d.in[1], {0}, b->d.in[2]}};
  vyre_dispatch_desc items[1];
  return vyre_dispatch_rows_into(b->pipeline, &row, 1, b->d.desc.outputs,
                                 b->d.desc.output_count, &b->d.desc, items,
                                 &c->st);
}

/* Records the same bindings with fixed slots. */
static vyre_code record(cts *c, const call *b, vyre_recording *rec) {
  vyre_slot_range in[4] = {{0}}, out[4] = {{0}};
  const vyre_dispatch_desc *d = &b->d.desc;
  vyre_code code = VYRE_OK;
  for (size_t i = 0; i < 3 && code == VYRE_OK; i++) {
    const vyre_input *from = &b->d.in[i];
    vyre_slot_binding r = {.data = (void *)(uintptr_t)from->data,
                           .size = from->size,
                           .buffer = from->buffer,
                           .offset = from->offset};
    code = vyre_recording_add_fixed_slot(rec, &r, &in[i].slot, &c->st);
  }
  for (size_t i = 0; i < 2 && code == VYRE_OK; i++) {
    const vyre_output *to = &b->d.out[i];
    vyre_slot_binding r = {.data = to->data,
                           .size = to->size,
                           .buffer = to->buffer,
                           .offset = to->offset,
                           .host_buffer = to->host_buffer};
    code = vyre_recording_add_fixed_slot(rec, &r, &out[i].slot, &c->st);
  }
  vyre_recorded_dispatch made = {.inputs = d->inputs ? in : NULL,
                                 .input_count = d->input_count,
                                 .outputs = d->outputs ? out : NULL,
                                 .output_count = d->output_count,
                                 .grid = {d->grid[0], d->grid[1], d->grid[2]},
                                 .variant = d->variant,
                                 .has_repeat_count = d->has_repeat_count,
                                 .repeat_count = d->repeat_count,
                                 .require_zero_copy = d->require_zero_copy};
  if (code == VYRE_OK) {
    code = vyre_recording_add_dispatch(rec, b->pipeline, &made, &c->st);
  }
  return code == VYRE_OK ? vyre_recording_seal(rec, &c->st) : code;
}

static vyre_code by_recording(cts *c, call *b) {
  vyre_recording *rec;
  CTS_OK(c, vyre_recording_create(c->device, &rec, &c->st));
  vyre_code code = record(c, b, rec);
  if (code == VYRE_OK) code = vyre_recording_replay(rec, NULL, NULL, &c->st);
  vyre_recording_release(rec);
  return code;
}

/* Errors that a dispatch form cannot express. */
enum {
  COUNT = 1 << 0,   /* a wrong or zero number of inputs */
  OUTPUT = 1 << 1,  /* an invalid destination of an output */
  VARIANT = 1 << 2, /* a variant that was not compiled */
  /* Features that recordings lack: output limits, checks, new buffers; they
   * also accept slots that are too long. */
  EXTRAS = 1 << 3
};

static const struct {
  const char *name;
  vyre_code (*knock)(cts *c, call *b);
  unsigned without;
  bool is_recording; /* reports slot names instead of bindings */
} doors[] = {
    {"vyre_dispatch", by_dispatch, 0, false},
    /* This form compiles the variant, so that it exists. */
    {"vyre_device_run_program", by_device, VARIANT, false},
    {"vyre_submit, fence", by_fence, 0, false},
    {"vyre_submit, batch", by_batch, 0, false},
    {"vyre_submit, batch, fence", by_batch_fence, 0, false},
    {"owned", by_owned, 0, false},
    {"borrowed", by_borrowed, 0, false},
    {"borrowed_timed", by_borrowed_timed, 0, false},
    {"borrowed_into", by_borrowed_into, 0, false},
    {"borrowed_batched", by_borrowed_batched, 0, false},
    {"borrowed_batched_into", by_borrowed_batched_into, 0, false},
    {"resident", by_resident, 0, false},
    {"resident_timed", by_resident_timed, 0, false},
    {"resident_into", by_resident_into, 0, false},
    {"to_buffers", by_to_buffers, COUNT | OUTPUT, false},
    {"resident_batched", by_resident_batched, 0, false},
    {"resident_batched_into", by_resident_batched_into, 0, false},
    {"rows_into", by_rows, COUNT | OUTPUT, false},
    {"recording", by_recording, EXTRAS, true},
};

enum { DOORS = sizeof doors / sizeof *doors };

/* Returns the kind of error of a call. */
static unsigned how(const call *b, const call *good) {
  const vyre_dispatch_desc *d = &b->d.desc;
  unsigned form = 0;
  if (d->input_count != 3 || !d->inputs) form |= COUNT;
  if (d->output_count != 2 || !d->outputs) form |= OUTPUT;
  if (memcmp(b->d.out, good->d.out, sizeof b->d.out) != 0) form |= OUTPUT;
  if (d->variant) form |= VARIANT;
  if (d->max_output_bytes || d->check.out_of_bounds || b->d.out[1].new_buffer) {
    form |= EXTRAS;
  }
  if (b->d.in[2].size > 4 || b->d.out[1].size > SAXPY_SUMS) form |= EXTRAS;
  /* Outputs that stay on the device are neither read back nor copied. */
  if (d->max_output_bytes || d->require_zero_copy) form |= OUTPUT;
  return form;
}

static void make_call(cts *c, call *b, vyre_device *other) {
  memset(b, 0, sizeof *b);
  saxpy_make(&b->d, c->seed, &b->got);
  b->pipeline = cts_kernel(c, saxpy_text);
  CTS_OK(c, vyre_buffer_create(c->device, 1024, &b->good, &c->st));
  CTS_OK(c, vyre_buffer_create(c->device, 8, &b->small, &c->st));
  CTS_OK(c, vyre_buffer_create(c->device, 1024, &b->freed, &c->st));
  CTS_OK(c, vyre_buffer_destroy(c->device, b->freed, &c->st));
  CTS_OK(c, vyre_buffer_create(other, 1024, &b->foreign, &c->st));
}

/* Checks code, kind, message and numbers. */
static void check_refusal(cts *c, size_t index, vyre_code code,
                          bool is_recording) {
  if (is_recording) { /* recordings.c checks the messages of recordings */
    CTS_CHECK(c, code == VYRE_INVALID_ARGUMENT || code == VYRE_INVALID_PROGRAM);
    CTS_FAILS(c, code, c->st.code, c->st.kind);
    return;
  }
  if (!strstr(c->st.message, bad[index].word)) {
    cts_fail(c, __FILE__, __LINE__, "'%s' does not name %s", c->st.message,
             bad[index].word);
  }
  for (int i = 0; i < 3 && bad[index].numbers[i]; i++) {
    uint64_t value;
    if (vyre_status_number_get(&c->st, bad[index].numbers[i], &value)) continue;
    cts_fail(c, __FILE__, __LINE__, "the status has no number '%s'",
             bad[index].numbers[i]);
  }
  CTS_FAILS(c, code, bad[index].code, bad[index].kind);
}

/* Returns false if the form cannot express the error. */
static bool try_door(cts *c, size_t index, unsigned door) {
  call *b = cts_memory(c, sizeof *b), *before = cts_memory(c, sizeof *b);
  vyre_device *other;
  vyre_counters counters;
  CTS_OK(c, vyre_device_open(c->context, c->backend, &other, &c->st));
  make_call(c, b, other);
  memcpy(before, b, sizeof *b);
  bad[index].spoil(b);
  bool says = !(how(b, before) & doors[door].without);
  memcpy(before, b, sizeof *b);
  if (says) {
    vyre_code code = doors[door].knock(c, b);
    if (code == VYRE_OK) {
      cts_fail(c, __FILE__, __LINE__, "%s accepts it", doors[door].name);
    }
    check_refusal(c, index, code, doors[door].is_recording);
    CTS_SAME(c, "what the call was made from", b, before, sizeof *b);
    vyre_counters_read(c->device, &counters);
    CTS_U64(c, counters.launches, 0);
    vyre_counters_read(other, &counters);
    CTS_U64(c, counters.launches, 0);
  }
  vyre_device_release(other);
  return says;
}

static void run_bad(cts *c, size_t index) {
  unsigned tried = 0;
  for (unsigned door = 0; door < DOORS; door++) {
    tried += try_door(c, index, door);
  }
  CTS_CHECK(c, tried >= DOORS - 3);
  CTS_LAUNCHED(c, 0);
}

/* --- Other calls
 * -------------------------------------------------------------- */

static void null_arguments(cts *c) {
  vyre_device *device;
  vyre_pipeline *pipeline;
  vyre_buffer handle;
  vyre_fence *fence;
  size_t which;
  vyre_program *program = cts_program(c, saxpy_text);
  vyre_pipeline *good = cts_compile(c, program, 0);
  vyre_dispatch_desc desc = {0};
#define BAD_CALL(call) \
  CTS_FAILS(c, call, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT)
  BAD_CALL(vyre_device_open(c->context, NULL, &device, &c->st));
  BAD_CALL(vyre_device_open(c->context, c->backend, NULL, &c->st));
  BAD_CALL(vyre_pipeline_compile(NULL, program, NULL, &pipeline, NULL, &c->st));
  BAD_CALL(
      vyre_pipeline_compile(c->device, NULL, NULL, &pipeline, NULL, &c->st));
  BAD_CALL(vyre_pipeline_compile(c->device, program, NULL, NULL, NULL, &c->st));
  BAD_CALL(vyre_pipeline_add_variant(good, NULL, &c->st));
  BAD_CALL(vyre_pipeline_compile_async(c->device, NULL, NULL, &fence, &c->st));
  BAD_CALL(vyre_dispatch(NULL, &desc, &c->st));
  BAD_CALL(vyre_dispatch(good, NULL, &c->st));
  BAD_CALL(vyre_submit(good, NULL, 1, NULL, &c->st));
  BAD_CALL(vyre_submit(NULL, &desc, 1, &fence, &c->st));
  BAD_CALL(vyre_device_run_program(NULL, program, &desc, &c->st));
  BAD_CALL(vyre_buffer_create(NULL, 4, &handle, &c->st));
  BAD_CALL(vyre_buffer_create(c->device, 4, NULL, &c->st));
  BAD_CALL(vyre_buffer_import(c->device, NULL, 4, &handle, &c->st));
  BAD_CALL(vyre_fence_wait(NULL, 0, &c->st));
  BAD_CALL(vyre_fence_wait_any(NULL, 0, 0, &which, &c->st));
#undef BAD_CALL
  CTS_LAUNCHED(c, 0);
}

static void unknown_device(cts *c) {
  char name[64];
  vyre_device *device;
  (void)snprintf(name, sizeof name, "%.40s:63", c->backend);
  CTS_FAILS(c, vyre_device_open(c->context, name, &device, &c->st),
            VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE);
  CTS_CHECK(c, !device);
  CTS_FAILS(c, vyre_device_open(c->context, "no such", &device, &c->st),
            VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE);
  CTS_LAUNCHED(c, 0);
}

static void large_workgroup(cts *c) {
  vyre_pipeline *pipeline;
  uint32_t max = c->caps->max_workgroup_invocations;
  vyre_compile_options options = {.workgroup = {max, 2}};
  uint64_t value = 0;
  vyre_code code = vyre_pipeline_compile(c->device, cts_program(c, saxpy_text),
                                         &options, &pipeline, NULL, &c->st);
  CTS_CHECK(c, !pipeline);
  CTS_CHECK(c, vyre_status_number_get(&c->st, "max_invocations", &value));
  CTS_U64(c, value, max);
  CTS_FAILS(c, code, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CTS_LAUNCHED(c, 0);
}

static void invalid_program(cts *c) {
  vyre_pipeline *pipeline;
  vyre_diagnostics findings = {0};
  vyre_program *program =
      cts_program(c,
                  "kernel k workgroup(8)\nbuffer r : write u32[] @0;\n"
                  "{\n    if (local_id.x < 3) barrier();\n    r[0] = 1;\n}\n");
  CTS_FAILS(c,
            vyre_pipeline_compile(c->device, program, NULL, &pipeline,
                                  &findings, &c->st),
            VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
  CTS_CHECK(c, !pipeline && findings.count == 1);
  vyre_diagnostics_deinit(&findings);
  CTS_LAUNCHED(c, 0);
}

static void handles(cts *c) {
  vyre_device *other;
  vyre_buffer a, none = {0, 0};
  uint64_t size;
  uint32_t word = 7;
  CTS_OK(c, vyre_device_open(c->context, c->backend, &other, &c->st));
  CTS_OK(c, vyre_buffer_create(c->device, 8, &a, &c->st));
  CTS_FAILS(c, vyre_buffer_size(other, a, &size, &c->st), VYRE_INVALID_ARGUMENT,
            VYRE_KIND_FOREIGN_HANDLE);
  CTS_FAILS(c, vyre_buffer_destroy(other, a, &c->st), VYRE_INVALID_ARGUMENT,
            VYRE_KIND_FOREIGN_HANDLE);
  CTS_FAILS(c, vyre_buffer_size(c->device, none, &size, &c->st),
            VYRE_INVALID_ARGUMENT, VYRE_KIND_STALE_HANDLE);
  CTS_FAILS(c, vyre_buffer_upload(c->device, a, 6, &word, 4, &c->st),
            VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CTS_FAILS(c, vyre_buffer_download(c->device, a, UINT64_MAX, &word, 4, &c->st),
            VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CTS_FAILS(c, vyre_buffer_upload(c->device, a, 0, NULL, 4, &c->st),
            VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  /* One transfer of many is invalid: none runs, and the status names it. */
  uint32_t words[2] = {1, 2};
  uint64_t item = 0;
  vyre_transfer up[] = {{a, 0, &words[0], 4}, {a, 8, &words[1], 4}};
  vyre_code code = vyre_buffer_upload_many(c->device, up, 2, &c->st);
  CTS_CHECK(c, vyre_status_number_get(&c->st, "item", &item) && item == 1);
  CTS_FAILS(c, code, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CTS_OK(c, vyre_buffer_download(c->device, a, 0, &word, 4, &c->st));
  CTS_U64(c, word, 0);
  if (c->caps->max_buffer_bytes < UINT64_MAX) {
    CTS_FAILS(c,
              vyre_buffer_create(c->device, c->caps->max_buffer_bytes + 1, &a,
                                 &c->st),
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
    CTS_CHECK(c, a.owner == 0 && a.id == 0);
  }
  vyre_device_release(other);
  CTS_LAUNCHED(c, 0);
}

/* Every call resets its status, after a failure and after a success. */
static void status_starts_afresh(cts *c) {
  vyre_status st = {0};
  vyre_device *device;
  CTS_CHECK(c, vyre_device_open(c->context, NULL, &device, &st) ==
                   VYRE_INVALID_ARGUMENT);
  CTS_CHECK(c, vyre_device_open(c->context, "no such", &device, &st) ==
                   VYRE_UNSUPPORTED_FEATURE);
  CTS_CHECK(c, st.code == VYRE_UNSUPPORTED_FEATURE &&
                   st.kind == VYRE_KIND_DEVICE_UNAVAILABLE &&
                   strstr(st.message, "no such"));
  CTS_CHECK(c, vyre_device_preload(c->context, "ref", &st) == VYRE_OK);
  CTS_CHECK(c, st.code == VYRE_OK && !st.message[0] && !st.fix[0]);
  CTS_CHECK(c, vyre_device_open(c->context, NULL, &device, NULL) ==
                   VYRE_INVALID_ARGUMENT); /* the status may be NULL */
  CTS_LAUNCHED(c, 0);
}

/* Without a grid, only one-dimensional workgroups can cover the data. */
static void grid_required(cts *c) {
  uint32_t y[16] = {0};
  vyre_output output = vyre_output_bytes(y, sizeof y);
  vyre_dispatch_desc desc = {.outputs = &output, .output_count = 1};
  vyre_pipeline *pipeline;
  vyre_program *program = cts_program(
      c,
      "kernel k workgroup(2, 2) over(y)\nbuffer y : write u32[] @0;\n"
      "{ y[global_id.y * 4 + global_id.x] = 1; }\n");
  CTS_OK(c, vyre_pipeline_compile(c->device, program, NULL, &pipeline, NULL,
                                  &c->st));
  CTS_FAILS(c, vyre_dispatch(pipeline, &desc, &c->st), VYRE_INVALID_ARGUMENT,
            VYRE_KIND_GRID_REQUIRED);
  CTS_FAILS(c, vyre_submit(pipeline, &desc, 1, NULL, &c->st),
            VYRE_INVALID_ARGUMENT, VYRE_KIND_GRID_REQUIRED);
  vyre_pipeline_release(pipeline);
  CTS_LAUNCHED(c, 0);
}

static const cts_entry others[] = {
    {"null_arguments", null_arguments},
    {"unknown_device", unknown_device},
    {"large_workgroup", large_workgroup},
    {"invalid_program", invalid_program},
    {"handles", handles},
    {"status_starts_afresh", status_starts_afresh},
    {"grid_required", grid_required},
};

static size_t errors_count(void) {
  return BAD + sizeof others / sizeof *others;
}

static void errors_label(size_t index, char *out, size_t size) {
  (void)snprintf(out, size, "%s",
                 index < BAD ? bad[index].name : others[index - BAD].name);
}

static void errors_run(cts *c, size_t index) {
  if (index < BAD) {
    run_bad(c, index);
  } else {
    others[index - BAD].run(c);
  }
}

const cts_area area_errors = {"errors", "invalid calls are rejected",
                              errors_count, errors_label, errors_run};
