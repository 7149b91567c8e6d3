/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of command lists with a backend that runs them on ref: which dispatches
 * share a list, and a backend that reports impossible numbers. */
#include "runtime/dispatch/command_list.h"

#include "vyre/vyre.h"

#include "hal/backend.h"
#include "hal/host_plan.h"
#include "runtime/core/device.h"
#include "support/check.h"
#include "support/parse.h"

extern const vyre__backend vyre__backend_ref;

/* --- the backend ---------------------------------------------------------- */

static struct {
  unsigned calls;    /* of `execute` */
  long reported;     /* *done of lists with several commands; < 0: right */
  vyre_code code;    /* of these lists */
  bool is_reusable;  /* of the lists that it executed */
  bool loses_device; /* after the next list */
} wrapped;

static vyre_code execute(vyre__command_list *list, size_t first, size_t end,
                         size_t *done, vyre_status *st) {
  wrapped.calls++;
  if (list->count == 1 || wrapped.reported < 0) {
    vyre_code code = vyre__backend_ref.execute(list, first, end, done, st);
    list->is_reusable = wrapped.is_reusable;
    if (wrapped.loses_device) vyre__device_lose(list->device);
    return code;
  }
  *done = (size_t)wrapped.reported;
  return wrapped.code;
}

static void list_release(vyre__command_list *list) {
  (void)list;
}

static vyre__backend table;

typedef struct rig {
  vyre_context *context;
  vyre_device *device;
  vyre_module *module;
  vyre_pipeline *pipeline;
} rig;

static rig open_wrapped(bool keeps_lists) {
  static const char text[] =
      "kernel twice workgroup(4) over(y)\n"
      "buffer x : read u32[] @0;\n"
      "buffer y : write u32[] @1 output;\n"
      "{ let i = global_id.x; if (i < len(y)) y[i] = 2 * x[i]; }\n";
  const vyre_context_options options = {
      .cache_directory = "", .trace_file = "", .faults = ""};
  rig r = {0};
  vyre_status st = {0};
  memset(&wrapped, 0, sizeof wrapped);
  wrapped.reported = -1;
  table = vyre__backend_ref;
  table.name = "wrapped";
  table.execute = execute;
  table.clears_outputs = true; /* the kernel writes all of them */
  table.list_release = keeps_lists ? list_release : NULL;
  CHECK_OK(vyre_context_create(&options, &r.context, &st), st);
  CHECK_OK(vyre__device_open_given(r.context, &table, 0, NULL, &r.device, &st),
           st);
  r.module = parse_module(text);
  CHECK_OK(vyre_pipeline_compile(r.device, vyre_module_kernel(r.module, 0),
                                 NULL, &r.pipeline, NULL, &st),
           st);
  return r;
}

static void close_wrapped(rig *r) {
  vyre_pipeline_release(r->pipeline);
  vyre_module_release(r->module);
  vyre_device_release(r->device);
  vyre_context_release(r->context);
}

/* --- batches -------------------------------------------------------------- */

enum { ITEMS = 6, WORDS = 4 };

typedef struct batch {
  uint32_t x[ITEMS][WORDS], y[ITEMS][WORDS];
  vyre_input in[ITEMS];
  vyre_output out[ITEMS];
  vyre_dispatch_desc items[ITEMS];
  vyre_code results[ITEMS];
} batch;

static void make_batch(batch *b) {
  memset(b, 0, sizeof *b);
  for (uint32_t i = 0; i < ITEMS; i++) {
    for (uint32_t k = 0; k < WORDS; k++) b->x[i][k] = 10 * i + k;
    b->in[i] = vyre_input_bytes(b->x[i], sizeof b->x[i]);
    b->out[i] = vyre_output_bytes(b->y[i], sizeof b->y[i]);
    b->items[i] = (vyre_dispatch_desc){.inputs = &b->in[i],
                                       .input_count = 1,
                                       .outputs = &b->out[i],
                                       .output_count = 1,
                                       .result = &b->results[i]};
  }
}

static void check_batch(const batch *b) {
  for (uint32_t i = 0; i < ITEMS; i++) {
    CHECK(b->results[i] == VYRE_OK);
    for (uint32_t k = 0; k < WORDS; k++) {
      CHECK_U64(b->y[i][k], UINT64_C(2) * (10 * i + k));
    }
  }
}

/* Items that all use one variant share a list, like those that use none. */
TEST(the_items_of_a_variant_share_a_list) {
  static const struct {
    unsigned variants; /* mask of the items that use the variant */
    unsigned calls[2]; /* without and with kept lists */
  } cases[] = {{0, {1, 1}},
               {63, {1, 1}},
               {62, {1, 1}}, /* the first item has the pipeline itself */
               {31, {1, 2}},
               {3, {1, 2}}};
  for (int keeps_lists = 0; keeps_lists < 2; keeps_lists++) {
    rig r = open_wrapped(keeps_lists);
    vyre_status st = {0};
    const vyre_compile_options options = {.workgroup = {8, 1, 1}};
    CHECK_OK(vyre_pipeline_add_variant(r.pipeline, &options, &st), st);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
      batch b;
      make_batch(&b);
      for (uint32_t k = 0; k < ITEMS; k++) {
        if (cases[i].variants >> k & 1) b.items[k].variant = &options;
      }
      for (int run = 0; run < 3; run++) {
        memset(b.y, 0, sizeof b.y);
        wrapped.calls = 0;
        CHECK_OK(vyre_submit(r.pipeline, b.items, ITEMS, NULL, &st), st);
        CHECK_U64(wrapped.calls, cases[i].calls[keeps_lists]);
        check_batch(&b);
      }
    }
    close_wrapped(&r);
  }
}

/* A backend that executes nothing, or more than it got, ends the batch. */
TEST(an_impossible_number_of_commands_is_a_failure) {
  static const long reported[] = {0, ITEMS + 1};
  for (int i = 0; i < 4; i++) {
    rig r = open_wrapped(i / 2);
    vyre_status st = {0};
    vyre_counters counters;
    batch b;
    make_batch(&b);
    wrapped.reported = reported[i % 2];
    CHECK_FAILS(vyre_submit(r.pipeline, b.items, ITEMS, NULL, &st), st,
                VYRE_DISPATCH_FAILED, VYRE_KIND_NONE);
    CHECK_HAS(st.message, "backend 'wrapped' reported success after");
    CHECK_U64(status_number(&st, "done"), (uint64_t)reported[i % 2]);
    CHECK_U64(status_number(&st, "commands"), ITEMS);
    CHECK_U64(status_number(&st, "item"), 0);
    CHECK_U64(wrapped.calls, 1);
    CHECK(b.results[0] == VYRE_DISPATCH_FAILED);
    CHECK(b.results[1] == VYRE_NOT_RUN);
    vyre_counters_read(r.device, &counters);
    CHECK_U64(counters.failures, 1);
    CHECK_U64(counters.launches, 0);
    close_wrapped(&r);
  }
}

/* A failure belongs to a command of the list, whatever the number. */
TEST(a_failed_list_names_one_of_its_commands) {
  rig r = open_wrapped(true);
  vyre_status st = {0};
  batch b;
  make_batch(&b);
  wrapped.reported = ITEMS;
  wrapped.code = VYRE_DISPATCH_FAILED;
  CHECK(vyre_submit(r.pipeline, b.items, ITEMS, NULL, &st) ==
        VYRE_DISPATCH_FAILED);
  CHECK(b.results[ITEMS - 1] == VYRE_DISPATCH_FAILED);
  close_wrapped(&r);
}

/* --- recordings ----------------------------------------------------------- */

static vyre_recording *record(const rig *r, batch *b, uint32_t dispatches) {
  vyre_recording *rec;
  vyre_status st = {0};
  uint32_t slots[2];
  const vyre_slot_binding x = {.data = b->x[0], .size = sizeof b->x[0]},
                          y = {.data = b->y[0], .size = sizeof b->y[0]};
  CHECK_OK(vyre_recording_create(r->device, &rec, &st), st);
  CHECK_OK(vyre_recording_add_fixed_slot(rec, &x, &slots[0], &st), st);
  CHECK_OK(vyre_recording_add_fixed_slot(rec, &y, &slots[1], &st), st);
  const vyre_slot_range in = vyre_slot_range_all(slots[0]),
                        out = vyre_slot_range_all(slots[1]);
  const vyre_recorded_dispatch dispatch = {
      .inputs = &in, .input_count = 1, .outputs = &out, .output_count = 1};
  for (uint32_t i = 0; i < dispatches; i++) {
    CHECK_OK(vyre_recording_add_dispatch(rec, r->pipeline, &dispatch, &st), st);
  }
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  return rec;
}

/* The device is lost after the first of two lists. The second one fails before
 * it reaches the backend, which is not a failed launch. */
TEST(a_repeated_list_on_a_lost_device_is_not_a_failed_launch) {
  rig r = open_wrapped(false);
  vyre_status st = {0};
  vyre_counters counters;
  batch b;
  make_batch(&b);
  vyre_recording *rec = record(&r, &b, 2 * VYRE__MAX_SHORT_LIST);
  wrapped.is_reusable = true;
  for (int i = 0; i < 3; i++) {
    wrapped.calls = 0;
    CHECK_OK(vyre_recording_replay(rec, NULL, NULL, &st), st);
    CHECK_U64(wrapped.calls, 2);
  }
  wrapped.calls = 0;
  wrapped.loses_device = true;
  CHECK(vyre_recording_replay(rec, NULL, NULL, &st) == VYRE_DEVICE_LOST);
  CHECK_U64(wrapped.calls, 1);
  vyre_counters_read(r.device, &counters);
  CHECK_U64(counters.failures, 0);
  CHECK_U64(counters.launches, UINT64_C(7) * VYRE__MAX_SHORT_LIST);
  vyre_recording_release(rec);
  close_wrapped(&r);
}

/* --- limits of a launch --------------------------------------------------- */

/* Gives the pipeline a host plan that allows at most WORDS elements. */
static void limit_lengths(rig *r) {
  static const vyre__plan_buffer buffers[] = {
      {.max = WORDS, .unit = 4, .width = 4, .is_bound = 1},
      {.max = WORDS, .unit = 4, .width = 4, .is_bound = 1},
      {.max = 0, .min = 1}}; /* not bound: it has no view */
  static const vyre__host_plan plan = {.buffers = buffers, .buffer_count = 3};
  r->pipeline->host_plan = &plan;
}

static void check_too_long(vyre_code code, const vyre_status *st) {
  CHECK_FAILS(code, *st, VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  CHECK_U64(status_number(st, "elements"), WORDS + 1);
  CHECK_U64(status_number(st, "max_elements"), WORDS);
}

/* The runtime checks the limits of the backend whenever bindings change, and
 * the backend sees valid launches only. */
TEST(lengths_are_checked_before_the_backend_is_called) {
  uint32_t longer[WORDS + 1] = {0};
  for (int keeps_lists = 0; keeps_lists < 2; keeps_lists++) {
    rig r = open_wrapped(keeps_lists);
    vyre_status st = {0};
    batch b;
    make_batch(&b);
    limit_lengths(&r);
    CHECK_OK(vyre_submit(r.pipeline, b.items, ITEMS, NULL, &st), st);
    check_batch(&b);
    wrapped.calls = 0;
    b.in[3] = vyre_input_bytes(longer, sizeof longer);
    check_too_long(vyre_dispatch(r.pipeline, &b.items[3], &st), &st);
    check_too_long(vyre_submit(r.pipeline, b.items, ITEMS, NULL, &st), &st);
    CHECK_U64(status_number(&st, "item"), 3);
    CHECK_U64(wrapped.calls, 0);
    close_wrapped(&r);
  }
}

/* A slot that is bound to other memory between two replays is checked again. */
TEST(a_replay_with_a_new_binding_checks_the_lengths) {
  uint32_t longer[WORDS + 1] = {0};
  rig r = open_wrapped(true);
  vyre_status st = {0};
  vyre_recording *rec;
  uint32_t slots[2];
  batch b;
  make_batch(&b);
  limit_lengths(&r);
  const vyre_slot_binding x = {.data = b.x[0], .size = sizeof b.x[0]},
                          more = {.data = longer, .size = sizeof longer},
                          y = {.data = b.y[0], .size = sizeof b.y[0]};
  CHECK_OK(vyre_recording_create(r.device, &rec, &st), st);
  CHECK_OK(vyre_recording_add_slot(rec, "x", 0, &slots[0], &st), st);
  CHECK_OK(vyre_recording_add_fixed_slot(rec, &y, &slots[1], &st), st);
  const vyre_slot_range in = vyre_slot_range_all(slots[0]),
                        out = vyre_slot_range_all(slots[1]);
  const vyre_recorded_dispatch dispatch = {
      .inputs = &in, .input_count = 1, .outputs = &out, .output_count = 1};
  CHECK_OK(vyre_recording_add_dispatch(rec, r.pipeline, &dispatch, &st), st);
  CHECK_OK(vyre_recording_bind_slot(rec, slots[0], &x, &st), st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  CHECK_OK(vyre_recording_replay(rec, NULL, NULL, &st), st);
  CHECK_OK(vyre_recording_bind_slot(rec, slots[0], &more, &st), st);
  wrapped.calls = 0;
  check_too_long(vyre_recording_replay(rec, NULL, NULL, &st), &st);
  CHECK_U64(wrapped.calls, 0);
  CHECK_OK(vyre_recording_bind_slot(rec, slots[0], &x, &st), st);
  CHECK_OK(vyre_recording_replay(rec, NULL, NULL, &st), st);
  vyre_recording_release(rec);
  close_wrapped(&r);
}

/* --- kinds of commands ---------------------------------------------------- */

/* A backend only sees the kinds of commands that its table names. */
TEST(commands_that_the_backend_does_not_execute_are_refused) {
  static const struct {
    vyre__command_kind kind;
    const char *text;
  } cases[] = {{VYRE__COMMAND_COPY, "does not execute copies"},
               {VYRE__COMMAND_LOOP, "does not execute loops"},
               {VYRE__COMMAND_INDIRECT_LAUNCH, "indirect launches"},
               {VYRE__COMMAND_QUEUE_STEP, "steps of a work queue"}};
  rig r = open_wrapped(true);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_status st = {0};
    vyre__prepared prepared = {0};
    vyre__command command = {.kind = cases[i].kind, .launch = &prepared.launch};
    vyre__command_list list = {
        .device = r.device, .commands = &command, .count = 1};
    size_t done = 1;
    CHECK_FAILS(vyre__command_list_execute(&list, &done, &st), st,
                VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
    CHECK_HAS(st.message, "'wrapped'");
    CHECK_HAS(st.message, cases[i].text);
    CHECK_U64(done, 0);
    CHECK_U64(wrapped.calls, 0);
  }
  close_wrapped(&r);
}

/* A writable view of device memory is updated in place: each launch reads what
 * the last one wrote, in one list and in its next executions. */
TEST(device_memory_is_updated_in_place) {
  static const char text[] =
      "kernel count workgroup(1)\n"
      "buffer y : read_write u32[1] @0;\n"
      "{ y[0] = y[0] + 1; }\n";
  rig r = open_wrapped(true);
  vyre_status st = {0};
  uint32_t value = 5;
  vyre_module *module = parse_module(text);
  vyre_pipeline *pipeline;
  CHECK_OK(vyre_pipeline_compile(r.device, vyre_module_kernel(module, 0), NULL,
                                 &pipeline, NULL, &st),
           st);
  vyre__buffer memory = {.size = sizeof value, .host = (unsigned char *)&value};
  const vyre__view view = {.data = memory.host, .length = 1, .buffer = &memory};
  vyre_arena scratch;
  vyre_arena_init(&scratch, (vyre_allocator){0});
  vyre__launch launch = {.pipeline = pipeline,
                         .views = &view,
                         .grid = {1, 1, 1},
                         .max_loop_iterations = 1,
                         .scratch = &scratch};
  vyre__command commands[2] = {{.launch = &launch}, {.launch = &launch}};
  vyre__command_list list = {
      .device = r.device, .commands = commands, .count = 2, .version = 1};
  for (uint32_t i = 1; i <= 3; i++) {
    size_t done;
    CHECK_OK(r.device->backend->execute(&list, 0, 2, &done, &st), st);
    CHECK_U64(done, 2);
    CHECK_U64(value, 5 + 2 * i);
    vyre_arena_reset(&scratch);
  }
  vyre_arena_deinit(&scratch);
  vyre_pipeline_release(pipeline);
  vyre_module_release(module);
  close_wrapped(&r);
}

TEST_MAIN(TEST_ENTRY(the_items_of_a_variant_share_a_list),
          TEST_ENTRY(an_impossible_number_of_commands_is_a_failure),
          TEST_ENTRY(a_failed_list_names_one_of_its_commands),
          TEST_ENTRY(a_repeated_list_on_a_lost_device_is_not_a_failed_launch),
          TEST_ENTRY(lengths_are_checked_before_the_backend_is_called),
          TEST_ENTRY(a_replay_with_a_new_binding_checks_the_lengths),
          TEST_ENTRY(commands_that_the_backend_does_not_execute_are_refused),
          TEST_ENTRY(device_memory_is_updated_in_place))
