/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Compares every dispatch form with vyre_device_run_program: the results are
 * the same bits, on fixed and on random programs. Under every injected fault a
 * form returns a status and leaks nothing, and the device works or reports
 * that it is lost. */
#include "vyre/vyre.h"

#include "support/check.h"

enum { MAX_BINDINGS = 64, ITEMS = 3, RANDOM_PROGRAMS = 50 };

static const char text[] =
    /* an input, an input_output, an output of a declared size, a uniform */
    "kernel mixed workgroup(8) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "buffer z : read_write u32[4] @2 output;\n"
    "uniform a : u32 @3;\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    if (i >= len(y)) return;\n"
    "    y[i] = a * x[i] + y[i];\n"
    "    atomic_add(z[i % 4], y[i]);\n"
    "}\n"
    /* an output that is sized at run time */
    "kernel sized workgroup(4) over(y)\n"
    "buffer x : read f32[] @0;\n"
    "buffer y : write f32[] @1 output;\n"
    "{ if (global_id.x < len(y)) y[global_id.x] = sqrt(x[global_id.x]); }\n"
    /* row of a megakernel */
    "kernel mega workgroup(1)\n"
    "buffer control : read_write u32[4] @0;\n"
    "buffer ring : read_write u32[] @1;\n"
    "buffer notes : read_write u32[] @2;\n"
    "buffer io : read_write u32[] @3;\n"
    "{\n"
    "    if (global_id.x > 0) return;\n"
    "    for (let k = 0u; k < len(ring); k++) {\n"
    "        notes[k % len(notes)] = notes[k % len(notes)] ^ ring[k];\n"
    "        io[k % len(io)] = io[k % len(io)] + ring[k] * 7;\n"
    "        ring[k] = 0;\n"
    "    }\n"
    "    control[0] = control[0] + len(ring);\n"
    "}\n";

enum { KERNELS = 3, RUN_TIME_BYTES = 80 };

/* Program with its data and expected results. */
typedef struct job {
  vyre_program *program;
  const vyre_input *inputs; /* host memory */
  size_t input_count;
  size_t sizes[MAX_BINDINGS]; /* bytes of the outputs */
  size_t output_count, total;
  vyre_dispatch_desc config;
  unsigned char *want;
} job;

/* Device whose allocations are counted. */
typedef struct stand {
  test_heap heap, slots;
  vyre_context *context;
  vyre_device *device;
  vyre_pipeline *pipeline;
  unsigned char *got;       /* outputs of ITEMS items */
  size_t items;             /* items that the form filled */
  size_t host_buffer_bytes; /* bytes in host buffers after the form returned */
} stand;

static void stand_open(stand *s, const job *j) {
  vyre_status st = {0};
  *s = (stand){.heap = {.left = -1}, .slots = {.left = -1}};
  vyre_context_options options = {.allocator = test_heap_allocator(&s->heap),
                                  .cache_directory = "",
                                  .trace_file = "",
                                  .faults = ""};
  CHECK_OK(vyre_context_create(&options, &s->context, &st), st);
  CHECK_OK(vyre_device_open(s->context, "ref", &s->device, &st), st);
  CHECK_OK(vyre_pipeline_compile(s->device, j->program, NULL, &s->pipeline,
                                 NULL, &st),
           st);
  s->got = calloc(ITEMS, j->total + 1);
  CHECK(s->got);
}

static void stand_close(stand *s) {
  free(s->got);
  vyre_pipeline_release(s->pipeline);
  vyre_device_release(s->device);
  vyre_context_release(s->context);
  CHECK_U64(s->heap.live_bytes, 0);
  CHECK_U64(s->slots.live_bytes, 0);
}

/* --- bindings ------------------------------------------------------------- */

typedef struct bindings {
  vyre_host_buffer slots[MAX_BINDINGS];
  vyre_output outputs[MAX_BINDINGS];
  vyre_buffer device_buffers[MAX_BINDINGS];
  vyre_input inputs[MAX_BINDINGS];
} bindings;

static void bind_host_buffers(stand *s, const job *j, bindings *b) {
  for (size_t i = 0; i < j->output_count; i++) {
    b->slots[i] =
        (vyre_host_buffer){.allocator = test_heap_allocator(&s->slots)};
    b->outputs[i] = vyre_output_host_buffer(&b->slots[i], j->sizes[i]);
  }
}

static void bind_bytes(const job *j, bindings *b, unsigned char *to) {
  for (size_t i = 0; i < j->output_count; i++) {
    b->outputs[i] = vyre_output_bytes(to, j->sizes[i]);
    to += j->sizes[i];
  }
}

/* Uploads the inputs again: a dispatch updates device buffers in place. Empties
 * the host buffers after a failure, like a form does. */
static vyre_code upload_again(const stand *s, const job *j, bindings *b,
                              vyre_status *st) {
  vyre_code code = VYRE_OK;
  for (size_t i = 0; i < j->input_count && code == VYRE_OK; i++) {
    if (!b->device_buffers[i].owner) continue;
    code = vyre_buffer_upload(s->device, b->device_buffers[i], 0,
                              j->inputs[i].data, j->inputs[i].size, st);
  }
  for (size_t i = 0; i < j->output_count && code != VYRE_OK; i++) {
    vyre_host_buffer_deinit(&b->slots[i]);
  }
  return code;
}

/* Uploads every second input, or all of them, to device buffers. */
static vyre_code bind_device_buffers(const stand *s, const job *j, bindings *b,
                                     bool all, vyre_status *st) {
  for (size_t i = 0; i < j->input_count; i++) {
    b->inputs[i] = j->inputs[i];
    if (!all && i % 2 == 1) continue;
    vyre_code code = vyre_buffer_create(s->device, j->inputs[i].size,
                                        &b->device_buffers[i], st);
    if (code == VYRE_OK) {
      code = vyre_buffer_upload(s->device, b->device_buffers[i], 0,
                                j->inputs[i].data, j->inputs[i].size, st);
    }
    if (code != VYRE_OK) return code;
    b->inputs[i] = vyre_input_buffer(b->device_buffers[i]);
  }
  return VYRE_OK;
}

static void unbind(const stand *s, bindings *b) {
  for (size_t i = 0; i < MAX_BINDINGS; i++) {
    vyre_host_buffer_deinit(&b->slots[i]);
    if (b->device_buffers[i].owner) {
      (void)!vyre_buffer_destroy(s->device, b->device_buffers[i], NULL);
    }
  }
}

/* Copies the contents of the host buffers to the results of item @p item. */
static void collect(stand *s, const job *j, const bindings *b, size_t item) {
  unsigned char *to = s->got + item * j->total;
  for (size_t i = 0; i < j->output_count; i++) {
    CHECK_U64(b->slots[i].size, j->sizes[i]);
    if (j->sizes[i] > 0) memcpy(to, b->slots[i].data, j->sizes[i]);
    to += j->sizes[i];
  }
  if (s->items <= item) s->items = item + 1;
}

static vyre_dispatch_desc describe(const job *j, const bindings *b,
                                   const vyre_input *inputs) {
  vyre_dispatch_desc desc = j->config;
  desc.inputs = inputs;
  desc.input_count = j->input_count;
  desc.outputs = b->outputs;
  desc.output_count = j->output_count;
  return desc;
}

/* --- the forms ------------------------------------------------------------ */

typedef vyre_code (*single_form)(vyre_pipeline *, const vyre_input *, size_t,
                                 const vyre_output *, size_t,
                                 const vyre_dispatch_desc *, vyre_status *);
typedef vyre_code (*timed_form)(vyre_pipeline *, const vyre_input *, size_t,
                                const vyre_output *, size_t,
                                const vyre_dispatch_desc *, vyre_timing *,
                                vyre_status *);
typedef vyre_code (*batch_form)(vyre_pipeline *, vyre_dispatch_desc *, size_t,
                                vyre_status *);

static vyre_code run_single(stand *s, const job *j, single_form form,
                            timed_form timed, bool is_resident,
                            vyre_status *st) {
  static bindings b;
  b = (bindings){0};
  vyre_code code = VYRE_OK;
  const vyre_input *inputs = j->inputs;
  vyre_timing timing = {0};
  bind_host_buffers(s, j, &b);
  if (is_resident) {
    code = bind_device_buffers(s, j, &b, false, st);
    inputs = b.inputs;
  }
  for (int turn = 0; turn < 2 && code == VYRE_OK; turn++) {
    code = form ? form(s->pipeline, inputs, j->input_count, b.outputs,
                       j->output_count, &j->config, st)
                : timed(s->pipeline, inputs, j->input_count, b.outputs,
                        j->output_count, &j->config, &timing, st);
    if (code == VYRE_OK) {
      collect(s, j, &b, (size_t)turn);
      code = upload_again(s, j, &b, st);
    }
  }
  if (code == VYRE_OK && timed) CHECK(timing.wall_ns > 0);
  s->host_buffer_bytes = s->slots.live_bytes;
  unbind(s, &b);
  return code;
}

static vyre_code run_batch(stand *s, const job *j, batch_form form,
                           bool is_resident, vyre_status *st) {
  static bindings b[ITEMS];
  memset(b, 0, sizeof b);
  vyre_code code = VYRE_OK, results[ITEMS];
  vyre_dispatch_desc items[ITEMS];
  for (size_t i = 0; i < ITEMS && code == VYRE_OK; i++) {
    bind_host_buffers(s, j, &b[i]);
    if (is_resident) code = bind_device_buffers(s, j, &b[i], i == 1, st);
    items[i] = describe(j, &b[i], is_resident ? b[i].inputs : j->inputs);
    items[i].result = &results[i];
  }
  for (int turn = 0; turn < 2 && code == VYRE_OK; turn++) {
    code = form(s->pipeline, items, ITEMS, st);
    for (size_t i = 0; i < ITEMS && code == VYRE_OK; i++) {
      CHECK(results[i] == VYRE_OK);
      collect(s, j, &b[i], i);
    }
    vyre_code uploaded = VYRE_OK;
    for (size_t i = 0; i < ITEMS && code == VYRE_OK; i++) {
      vyre_code one = upload_again(s, j, &b[i], uploaded ? NULL : st);
      if (one != VYRE_OK) uploaded = one;
    }
    for (size_t i = 0; i < ITEMS && uploaded != VYRE_OK; i++) {
      for (size_t k = 0; k < j->output_count; k++)
        vyre_host_buffer_deinit(&b[i].slots[k]);
    }
    if (code == VYRE_OK) code = uploaded;
  }
  s->host_buffer_bytes = s->slots.live_bytes;
  for (size_t i = 0; i < ITEMS; i++) unbind(s, &b[i]);
  return code;
}

#define SINGLE(name, is_resident)                                         \
  static vyre_code run_##name(stand *s, const job *j, vyre_status *st) {  \
    return run_single(s, j, vyre_dispatch_##name, NULL, is_resident, st); \
  }
#define TIMED(name, is_resident)                                          \
  static vyre_code run_##name(stand *s, const job *j, vyre_status *st) {  \
    return run_single(s, j, NULL, vyre_dispatch_##name, is_resident, st); \
  }
#define BATCH(name, is_resident)                                         \
  static vyre_code run_##name(stand *s, const job *j, vyre_status *st) { \
    return run_batch(s, j, vyre_dispatch_##name, is_resident, st);       \
  }

SINGLE(owned, false)
SINGLE(borrowed, false)
TIMED(borrowed_timed, false)
SINGLE(borrowed_into, false)
BATCH(borrowed_batched, false)
BATCH(borrowed_batched_into, false)
SINGLE(resident, true)
TIMED(resident_timed, true)
SINGLE(resident_into, true)
BATCH(resident_batched, true)
BATCH(resident_batched_into, true)

static vyre_code run_device(stand *s, const job *j, vyre_status *st) {
  static bindings b;
  b = (bindings){0};
  bind_bytes(j, &b, s->got);
  vyre_dispatch_desc desc = describe(j, &b, j->inputs);
  s->items = 1;
  return vyre_device_run_program(s->device, j->program, &desc, st);
}

static vyre_code run_descriptor(stand *s, const job *j, vyre_status *st) {
  static bindings b;
  b = (bindings){0};
  bind_bytes(j, &b, s->got);
  vyre_dispatch_desc desc = describe(j, &b, j->inputs);
  s->items = 1;
  return vyre_dispatch(s->pipeline, &desc, st);
}

/* Returns the memory of all bindings in the order of their numbers. The first
 * output without an input is @p there. Returns the number. */
static size_t resources_of(const stand *s, const job *j, const bindings *b,
                           vyre_buffer there, vyre_input *out) {
  const vyre_binding_plan *plan = vyre_pipeline_bindings(s->pipeline);
  size_t count = 0;
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *binding = &plan->bindings[i];
    if (binding->role == VYRE_ROLE_SHARED) continue;
    vyre_input *to = &out[count++];
    CHECK(count <= MAX_BINDINGS);
    if (binding->input_index != VYRE_NO_INDEX) {
      *to = b->inputs[binding->input_index];
      continue;
    }
    *to = (vyre_input){.size = j->sizes[binding->output_index]};
    to->buffer = there;
    there = (vyre_buffer){0};
  }
  return count;
}

static vyre_code run_to_buffers(stand *s, const job *j, vyre_status *st) {
  static bindings b;
  static vyre_buffer handles[MAX_BINDINGS];
  static vyre_input resources[MAX_BINDINGS];
  const vyre_binding_plan *plan = vyre_pipeline_bindings(s->pipeline);
  b = (bindings){0};
  memset(handles, 0, sizeof handles);
  vyre_code code = bind_device_buffers(s, j, &b, false, st);
  /* The first output without an input goes to an existing buffer. */
  vyre_buffer there = {0};
  for (size_t i = 0; i < plan->binding_count && !there.owner; i++) {
    uint32_t output = plan->bindings[i].output_index;
    if (code != VYRE_OK || plan->bindings[i].role != VYRE_ROLE_OUTPUT) continue;
    code = vyre_buffer_create(s->device, j->sizes[output], &there, st);
  }
  if (code == VYRE_OK) {
    code = vyre_dispatch_to_buffers(s->pipeline, resources,
                                    resources_of(s, j, &b, there, resources),
                                    handles, j->output_count, &j->config, st);
    for (size_t i = 0; i < j->output_count; i++) {
      CHECK((handles[i].owner != 0) == (code == VYRE_OK));
    }
  }
  unsigned char *to = s->got;
  for (size_t i = 0; i < j->output_count && code == VYRE_OK; i++) {
    code = vyre_buffer_download(s->device, handles[i], 0, to, j->sizes[i], st);
    to += j->sizes[i];
  }
  s->items = 1;
  for (size_t i = 0; i < j->output_count; i++) {
    bool exists = handles[i].id == there.id;
    for (size_t k = 0; k < MAX_BINDINGS; k++) {
      exists |= handles[i].id == b.device_buffers[k].id;
    }
    if (handles[i].owner && !exists) {
      (void)!vyre_buffer_destroy(s->device, handles[i], NULL);
    }
  }
  if (there.owner) (void)!vyre_buffer_destroy(s->device, there, NULL);
  unbind(s, &b);
  return code;
}

static vyre_code run_rows(stand *s, const job *j, vyre_status *st) {
  static bindings b[ITEMS];
  static vyre_buffer_row rows[ITEMS];
  static vyre_input resources[MAX_BINDINGS];
  static vyre_output outputs[ITEMS * MAX_BINDINGS];
  vyre_dispatch_desc items[ITEMS];
  memset(b, 0, sizeof b);
  vyre_code code = VYRE_OK;
  for (size_t i = 0; i < ITEMS && code == VYRE_OK; i++) {
    bind_host_buffers(s, j, &b[i]);
    code = bind_device_buffers(s, j, &b[i], i == 0, st);
    CHECK_U64(resources_of(s, j, &b[i], (vyre_buffer){0}, resources),
              VYRE_ROW_RESOURCES);
    memcpy(rows[i].resources, resources, sizeof rows[i].resources);
    memcpy(outputs + i * j->output_count, b[i].outputs,
           j->output_count * sizeof *outputs);
  }
  if (code == VYRE_OK) {
    code = vyre_dispatch_rows_into(s->pipeline, rows, ITEMS, outputs,
                                   j->output_count, &j->config, items, st);
  }
  for (size_t i = 0; i < ITEMS && code == VYRE_OK; i++) {
    CHECK(items[i].resources == rows[i].resources); /* bound directly */
    collect(s, j, &b[i], i);
  }
  for (size_t i = 0; i < ITEMS; i++) unbind(s, &b[i]);
  return code;
}

static vyre_code run_fence(stand *s, const job *j, bool is_borrowed,
                           vyre_status *st) {
  static bindings b;
  b = (bindings){0};
  bind_bytes(j, &b, s->got);
  vyre_dispatch_desc desc = describe(j, &b, j->inputs);
  desc.is_borrowed = is_borrowed;
  vyre_fence *fence;
  vyre_code code = vyre_submit(s->pipeline, &desc, 1, &fence, st);
  if (code != VYRE_OK) return code;
  code = vyre_fence_wait(fence, VYRE_WAIT_FOREVER, st);
  /* A failed wait does not mean that the work has ended: it writes to
   * s->got. */
  while (!vyre_fence_is_done(fence)) {
  }
  vyre_fence_release(fence);
  s->items = 1;
  return code;
}

static vyre_code run_fence_owned(stand *s, const job *j, vyre_status *st) {
  return run_fence(s, j, false, st);
}

static vyre_code run_fence_borrowed(stand *s, const job *j, vyre_status *st) {
  return run_fence(s, j, true, st);
}

static vyre_code record(const job *j, stand *s, vyre_recording *rec,
                        vyre_status *st) {
  vyre_slot_range in[MAX_BINDINGS], out[MAX_BINDINGS];
  vyre_code code = VYRE_OK;
  unsigned char *to = s->got;
  for (size_t i = 0; i < j->input_count && code == VYRE_OK; i++) {
    /* The recording does not write inputs. */
    vyre_slot_binding r = {.data = (void *)(uintptr_t)j->inputs[i].data,
                           .size = j->inputs[i].size,
                           .is_read_only = true};
    code = vyre_recording_add_fixed_slot(rec, &r, &in[i].slot, st);
    in[i].offset = in[i].size = 0;
  }
  for (size_t i = 0; i < j->output_count && code == VYRE_OK; i++) {
    vyre_slot_binding r = {.data = to, .size = j->sizes[i]};
    code = vyre_recording_add_fixed_slot(rec, &r, &out[i].slot, st);
    out[i].offset = out[i].size = 0;
    to += j->sizes[i];
  }
  vyre_recorded_dispatch d = {
      .inputs = in,
      .input_count = j->input_count,
      .outputs = out,
      .output_count = j->output_count,
      .grid = {j->config.grid[0], j->config.grid[1], j->config.grid[2]}};
  if (code == VYRE_OK) {
    code = vyre_recording_add_dispatch(rec, s->pipeline, &d, st);
  }
  return code == VYRE_OK ? vyre_recording_seal(rec, st) : code;
}

static vyre_code run_recording(stand *s, const job *j, vyre_status *st) {
  vyre_recording *rec;
  vyre_code code = vyre_recording_create(s->device, &rec, st);
  if (code != VYRE_OK) return code;
  code = record(j, s, rec, st);
  for (int turn = 0; turn < 2 && code == VYRE_OK; turn++) {
    code = vyre_recording_replay(rec, NULL, NULL, st);
  }
  vyre_recording_release(rec);
  s->items = 1;
  return code;
}

/* Faults that a form can meet. */
enum {
  A = 1 << VYRE_FAULT_ALLOCATION,
  C = 1 << VYRE_FAULT_COMPILE,
  S = 1 << VYRE_FAULT_SUBMIT,
  U = 1 << VYRE_FAULT_UPLOAD,
  D = 1 << VYRE_FAULT_DOWNLOAD,
  W = 1 << VYRE_FAULT_WAIT,
  L = 1 << VYRE_FAULT_DEVICE_LOST,
  SLOTS = 1 << VYRE_FAULT_COUNT, /* allocations of host buffers */
  FRESH = SLOTS << 1,            /* a failure leaves no output */
  ROWS = FRESH << 1              /* accepts programs with four inputs */
};

static const struct {
  const char *name;
  vyre_code (*run)(stand *s, const job *j, vyre_status *st);
  unsigned traits;
} forms[] = {
    {"vyre_device_run_program", run_device, A | C | S | L},
    {"vyre_dispatch", run_descriptor, A | S | L},
    {"owned", run_owned, A | S | L | SLOTS | FRESH},
    {"borrowed", run_borrowed, A | S | L | SLOTS | FRESH},
    {"borrowed_timed", run_borrowed_timed, A | S | L | SLOTS | FRESH},
    {"borrowed_into", run_borrowed_into, A | S | L | SLOTS},
    {"borrowed_batched", run_borrowed_batched, A | S | L | SLOTS | FRESH},
    {"borrowed_batched_into", run_borrowed_batched_into, A | S | L | SLOTS},
    {"resident", run_resident, A | S | U | L | SLOTS | FRESH},
    {"resident_timed", run_resident_timed, A | S | U | L | SLOTS | FRESH},
    {"resident_into", run_resident_into, A | S | U | L | SLOTS},
    {"to_buffers", run_to_buffers, A | S | U | D | L},
    {"resident_batched", run_resident_batched, A | S | U | L | SLOTS | FRESH},
    {"resident_batched_into", run_resident_batched_into, A | S | U | L | SLOTS},
    {"rows_into", run_rows, A | S | U | L | SLOTS | ROWS},
    {"vyre_submit, fence", run_fence_owned, A | S | W | L},
    {"vyre_submit, fence, borrowed", run_fence_borrowed, A | S | W | L},
    {"vyre_recording_replay", run_recording, A | S | L},
};

enum { FORMS = sizeof forms / sizeof *forms };

/* --- programs ----------------------------------------------------------- */

static bool is_for(size_t form, const job *j) {
  size_t count, resources = 0;
  const vyre_buffer_decl *buffers = vyre_program_buffers(j->program, &count);
  for (size_t i = 0; i < count; i++) {
    resources += buffers[i].kind != VYRE_MEMORY_SHARED &&
                 buffers[i].access != VYRE_ACCESS_WORKGROUP;
  }
  return !(forms[form].traits & ROWS) || resources == VYRE_ROW_RESOURCES;
}

/* Computes the expected results with vyre_device_run_program. */
static void run_reference(job *j) {
  vyre_status st = {0};
  vyre_device *device;
  static bindings b;
  b = (bindings){0};
  for (size_t i = 0; i < j->output_count; i++) j->total += j->sizes[i];
  j->want = calloc(1, j->total + 1);
  CHECK(j->want);
  bind_bytes(j, &b, j->want);
  vyre_dispatch_desc desc = describe(j, &b, j->inputs);
  CHECK_OK(vyre_device_open(NULL, "ref", &device, &st), st);
  CHECK_OK(vyre_device_run_program(device, j->program, &desc, &st), st);
  vyre_device_release(device);
}

static void check_bits(const stand *s, const job *j, const char *form) {
  CHECK(s->items > 0);
  for (size_t i = 0; i < s->items; i++) {
    if (memcmp(s->got + i * j->total, j->want, j->total) == 0) continue;
    printf("    %s: item %zu differs\n", form, i);
    CHECK(!"the same bits");
  }
}

typedef struct kernels {
  vyre_module *module;
  uint32_t words[KERNELS][4][20];
  vyre_input inputs[KERNELS][4];
  job jobs[KERNELS];
} kernels;

static void kernels_make(kernels *k) {
  vyre_status st = {0};
  *k = (kernels){0};
  CHECK_OK(vyre_module_parse(text, strlen(text), "forms.vyre",
                             (vyre_allocator){0}, &k->module, NULL, &st),
           st);
  for (size_t n = 0; n < KERNELS; n++) {
    job *j = &k->jobs[n];
    j->program = vyre_module_kernel(k->module, n);
    j->inputs = k->inputs[n];
    vyre_arena arena = {0};
    vyre_binding_plan plan;
    CHECK_OK(vyre_binding_plan_build(j->program, &arena, &plan, &st), st);
    for (size_t i = 0; i < plan.binding_count; i++) {
      const vyre_binding *b = &plan.bindings[i];
      size_t size =
          b->has_static_byte_len ? (size_t)b->static_byte_len : RUN_TIME_BYTES;
      uint32_t *words = k->words[n][i];
      for (uint32_t w = 0; w < 20; w++) {
        float f = (float)(w + i) * 1.25f;
        memcpy(&words[w], &f, 4);
      }
      if (b->input_index != VYRE_NO_INDEX) {
        k->inputs[n][b->input_index] = vyre_input_bytes(words, size);
      }
      if (b->output_index != VYRE_NO_INDEX) j->sizes[b->output_index] = size;
    }
    j->input_count = plan.input_count;
    j->output_count = plan.output_count;
    vyre_arena_deinit(&arena);
    run_reference(j);
  }
}

static void kernels_free(kernels *k) {
  for (size_t n = 0; n < KERNELS; n++) free(k->jobs[n].want);
  vyre_module_release(k->module);
}

/* --- same bits ---------------------------------------------------------- */

TEST(every_form_gives_the_bits_of_the_reference_run) {
  static kernels k;
  kernels_make(&k);
  size_t rows = 0;
  for (size_t n = 0; n < KERNELS; n++) {
    for (size_t f = 0; f < FORMS; f++) {
      if (!is_for(f, &k.jobs[n])) continue;
      rows += (forms[f].traits & ROWS) != 0;
      vyre_status st = {0};
      stand s;
      stand_open(&s, &k.jobs[n]);
      CHECK_OK(forms[f].run(&s, &k.jobs[n], &st), st);
      check_bits(&s, &k.jobs[n], forms[f].name);
      stand_close(&s);
    }
  }
  CHECK(rows > 0);
  kernels_free(&k);
}

TEST(every_form_gives_the_bits_of_random_programs) {
  size_t runs = 0, rows = 0, outputs = 0;
  for (uint64_t seed = 0; seed < RANDOM_PROGRAMS; seed++) {
    vyre_status st = {0};
    vyre_random_program *g;
    vyre_random_program_options options = {.seed = seed, .max_invocations = 64};
    CHECK_OK(vyre_random_program_create(&options, (vyre_allocator){0}, &g, &st),
             st);
    job j = {.program = vyre_random_program_program(g)};
    j.inputs = vyre_random_program_inputs(g, &j.input_count);
    const vyre_output *sizes = vyre_random_program_outputs(g, &j.output_count);
    CHECK(j.input_count <= MAX_BINDINGS && j.output_count <= MAX_BINDINGS);
    for (size_t i = 0; i < j.output_count; i++) j.sizes[i] = sizes[i].size;
    memcpy(j.config.grid, vyre_random_program_grid(g), sizeof j.config.grid);
    run_reference(&j);
    outputs += j.total;
    for (size_t f = 0; f < FORMS; f++) {
      if (!is_for(f, &j)) continue;
      stand s;
      stand_open(&s, &j);
      CHECK_OK(forms[f].run(&s, &j, &st), st);
      check_bits(&s, &j, forms[f].name);
      stand_close(&s);
      runs++;
      rows += (forms[f].traits & ROWS) != 0;
    }
    free(j.want);
    vyre_random_program_release(g);
  }
  printf("    %zu runs, %zu of rows, %zu bytes of outputs a form\n", runs, rows,
         outputs);
  CHECK(runs / RANDOM_PROGRAMS >= FORMS - 1 && outputs > 1000);
}

/* --- faults --------------------------------------------------------------- */

/* Arms the @p n-th fault of kind @p fault. VYRE_FAULT_COUNT stands for
 * allocations of host buffers. */
static void arm(stand *s, int fault, int n) {
  vyre_status st = {0};
  if (fault == VYRE_FAULT_COUNT) {
    s->slots.left = n - 1;
    s->slots.once = true;
    return;
  }
  char order[40];
  snprintf(order, sizeof order, "%s:%d", vyre_fault_name((vyre_fault)fault), n);
  CHECK_OK(vyre_context_inject_faults(s->context, order, &st), st);
}

static void check_failure(const stand *s, size_t form, int fault,
                          vyre_code code, const vyre_status *st) {
  static const vyre_code codes[VYRE_FAULT_COUNT + 1] = {
      [VYRE_FAULT_ALLOCATION] = VYRE_OUT_OF_MEMORY,
      [VYRE_FAULT_COMPILE] = VYRE_KERNEL_COMPILE_FAILED,
      [VYRE_FAULT_SUBMIT] = VYRE_DISPATCH_FAILED,
      [VYRE_FAULT_UPLOAD] = VYRE_DEVICE_OUT_OF_MEMORY,
      [VYRE_FAULT_DOWNLOAD] = VYRE_DEVICE_OUT_OF_MEMORY,
      [VYRE_FAULT_WAIT] = VYRE_DISPATCH_FAILED,
      [VYRE_FAULT_DEVICE_LOST] = VYRE_DEVICE_LOST,
      [VYRE_FAULT_COUNT] = VYRE_OUT_OF_MEMORY};
  bool is_memory = fault == VYRE_FAULT_ALLOCATION &&
                   /* allocation of a device buffer */
                   code == VYRE_DEVICE_OUT_OF_MEMORY;
  CHECK(code == codes[fault] || is_memory);
  CHECK(st->code == code && st->message[0] && st->fix[0]);
  CHECK(vyre_device_is_lost(s->device) == (fault == VYRE_FAULT_DEVICE_LOST));
  if (forms[form].traits & FRESH) CHECK_U64(s->host_buffer_bytes, 0);
}

/* Checks that the device works, or that all calls fail because it is lost. */
static void check_after(stand *s, const job *j, size_t form) {
  vyre_status st = {0};
  s->slots.left = -1;
  CHECK_OK(vyre_context_inject_faults(s->context, "", &st), st);
  memset(s->got, 0xab, ITEMS * j->total);
  s->items = 0;
  vyre_code code = forms[form].run(s, j, &st);
  if (vyre_device_is_lost(s->device)) {
    CHECK(code == VYRE_DEVICE_LOST && st.kind == VYRE_KIND_DEVICE_LOST);
    return;
  }
  CHECK_OK(code, st);
  check_bits(s, j, forms[form].name);
}

/* Injects the n-th fault, for n = 1, 2 and so on, until the form succeeds. */
static size_t sweep(const job *j, size_t form, int fault) {
  for (int n = 1; n < 10000; n++) {
    stand s;
    vyre_status st = {0};
    stand_open(&s, j);
    arm(&s, fault, n);
    vyre_code code = forms[form].run(&s, j, &st);
    if (code == VYRE_OK) {
      check_bits(&s, j, forms[form].name);
    } else {
      check_failure(&s, form, fault, code, &st);
    }
    check_after(&s, j, form);
    stand_close(&s);
    if (code == VYRE_OK) return (size_t)n - 1;
  }
  CHECK(!"the sweep ended without a success");
  return 0;
}

TEST(every_form_under_every_fault_ends_in_a_status) {
  static kernels k;
  kernels_make(&k);
  size_t failures = 0;
  for (size_t f = 0; f < FORMS; f++) {
    for (int fault = 0; fault <= VYRE_FAULT_COUNT; fault++) {
      size_t hits = 0;
      for (size_t n = 0; n < KERNELS; n++) {
        if (is_for(f, &k.jobs[n])) hits += sweep(&k.jobs[n], f, fault);
      }
      bool is_met = (forms[f].traits & 1u << fault) != 0;
      if ((hits > 0) != is_met) {
        printf("    %s, %s: %zu hits\n", forms[f].name,
               vyre_fault_name((vyre_fault)fault), hits);
      }
      CHECK((hits > 0) == is_met);
      failures += hits;
    }
  }
  printf("    %d forms x %d faults, %zu failures\n", (int)FORMS,
         VYRE_FAULT_COUNT + 1, failures);
  kernels_free(&k);
}

/* --- differences between the forms -------------------------------------- */

TEST(into_keeps_allocations_and_the_others_do_not) {
  static kernels k;
  kernels_make(&k);
  const job *j = &k.jobs[0];
  stand s;
  vyre_status st = {0};
  stand_open(&s, j);
  static bindings b;
  b = (bindings){0};
  bind_host_buffers(&s, j, &b);
  size_t calls[3];
  for (int i = 0; i < 3; i++) {
    CHECK_OK(vyre_dispatch_borrowed_into(s.pipeline, j->inputs, j->input_count,
                                         b.outputs, j->output_count, NULL, &st),
             st);
    calls[i] = s.slots.calls;
  }
  CHECK_U64(calls[0], j->output_count);
  CHECK_U64(calls[2], calls[0]);
  CHECK_OK(vyre_dispatch_borrowed(s.pipeline, j->inputs, j->input_count,
                                  b.outputs, j->output_count, NULL, &st),
           st);
  CHECK_U64(s.slots.calls, calls[2] + j->output_count);
  unbind(&s, &b);
  stand_close(&s);
  kernels_free(&k);
}

TEST(bad_calls_of_forms_are_refused) {
  static kernels k;
  kernels_make(&k);
  const job *j = &k.jobs[2];
  stand s;
  stand_open(&s, j);
  static bindings b;
  b = (bindings){0};
  bind_host_buffers(&s, j, &b);
  vyre_dispatch_desc items[1];
  vyre_buffer_row row;
  vyre_buffer handles[4];
  vyre_timing timing;
  memcpy(row.resources, j->inputs, sizeof row.resources);
#define REFUSED(call)                                                     \
  do {                                                                    \
    vyre_status st = {0};                                                 \
    CHECK((call) == VYRE_INVALID_ARGUMENT && st.message[0] && st.fix[0]); \
  } while (0)
  REFUSED(vyre_dispatch_owned(NULL, j->inputs, 4, b.outputs, 4, NULL, &st));
  REFUSED(vyre_dispatch_borrowed(s.pipeline, NULL, 4, b.outputs, 4, NULL, &st));
  REFUSED(vyre_dispatch_borrowed_into(s.pipeline, j->inputs, 4, NULL, 4, NULL,
                                      &st));
  REFUSED(vyre_dispatch_borrowed_timed(s.pipeline, j->inputs, 4, b.outputs, 3,
                                       NULL, &timing, &st));
  REFUSED(vyre_dispatch_borrowed_batched(s.pipeline, NULL, 1, &st));
  REFUSED(vyre_dispatch_resident_batched_into(s.pipeline, NULL, 1, &st));
  REFUSED(vyre_dispatch_to_buffers(s.pipeline, NULL, 4, handles, 4, NULL, &st));
  REFUSED(vyre_dispatch_to_buffers(s.pipeline, j->inputs, 3, handles, 4, NULL,
                                   &st));
  REFUSED(vyre_dispatch_to_buffers(s.pipeline, j->inputs, 4, handles, 3, NULL,
                                   &st));
  REFUSED(
      vyre_dispatch_to_buffers(s.pipeline, j->inputs, 4, NULL, 4, NULL, &st));
  REFUSED(vyre_dispatch_rows_into(s.pipeline, NULL, 1, b.outputs, 4, NULL,
                                  items, &st));
  REFUSED(vyre_dispatch_rows_into(s.pipeline, &row, 1, b.outputs, 4, NULL, NULL,
                                  &st));
  REFUSED(
      vyre_dispatch_rows_into(s.pipeline, &row, 1, NULL, 4, NULL, items, &st));
  unbind(&s, &b);
  stand_close(&s);
  kernels_free(&k);
}

TEST_MAIN(TEST_ENTRY(every_form_gives_the_bits_of_the_reference_run),
          TEST_ENTRY(every_form_gives_the_bits_of_random_programs),
          TEST_ENTRY(every_form_under_every_fault_ends_in_a_status),
          TEST_ENTRY(into_keeps_allocations_and_the_others_do_not),
          TEST_ENTRY(bad_calls_of_forms_are_refused))
