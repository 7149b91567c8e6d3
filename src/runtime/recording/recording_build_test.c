/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks how recordings are built: which commands are accepted, what is
 * planned and printed, and how much memory is allocated. */
#include "runtime/recording/recording.h"
#include "runtime/recording/recording_testing.h"

static const vyre_allocator heap;

/* --- memory --------------------------------------------------------------- */

/* Records the sizes of all allocations. */
typedef struct logging_heap {
  size_t count, sizes[64];
  bool is_logging;
} logging_heap;

static void *logging_resize(void *self, void *ptr, size_t old_size,
                            size_t new_size) {
  logging_heap *log = self;
  if (log->is_logging && new_size > 0 && log->count < 64) {
    log->sizes[log->count++] = new_size;
  }
  vyre_allocator real = vyre_allocator_heap();
  return real.resize(real.self, ptr, old_size, new_size);
}

TEST(sealing_allocates_what_the_capture_plans_say) {
  vyre_status st = {0};
  logging_heap log = {0};
  bench b = bench_open((vyre_allocator){logging_resize, &log});
  enum { DISPATCHES = 5 };
  static const int kernels[DISPATCHES] = {SCALE, ADD, SCALE, COUNT, ADD};
  vyre_recording *rec;
  CHECK_OK(vyre_recording_create(b.device, &rec, &st), st);
  vyre_slot_range p = vyre_slot_range_all(add_slot(rec, "p", 0));
  vyre_slot_range same[] = {p, p, p};
  vyre_capture_plan want = {.resident_input_replay_safe = true};
  for (int i = 0; i < DISPATCHES; i++) {
    vyre_capture_plan plan;
    const vyre_binding_plan *bindings =
        vyre_pipeline_bindings(b.pipelines[kernels[i]]);
    CHECK_OK(vyre_capture_plan_build(bindings, &plan, &st), st);
    CHECK_OK(
        add_dispatch(rec, b.pipelines[kernels[i]], same, bindings->input_count,
                     same, bindings->output_count, &st),
        st);
    want.input_device_capacity += plan.input_device_capacity;
    want.output_device_capacity += plan.output_device_capacity;
    want.output_readback_capacity += plan.output_readback_capacity;
    want.kernel_pointer_capacity += plan.kernel_pointer_capacity;
    want.kernel_argument_capacity += plan.kernel_argument_capacity;
    want.resident_input_replay_safe &= plan.resident_input_replay_safe;
  }
  log.is_logging = true;
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  log.is_logging = false;
  size_t entries = want.input_device_capacity *
                       (sizeof(vyre_slot_range) + sizeof(vyre_input)) +
                   want.output_readback_capacity *
                       (sizeof(vyre_slot_range) + sizeof(vyre_output)) +
                   want.kernel_argument_capacity * sizeof(vyre__argument);
  /* two arrays from slots to commands, the tables, two arrays with the memory
   * of the slots, and a prepared dispatch for each command */
  CHECK_U64(log.count, 5 + DISPATCHES);
  CHECK_U64(log.sizes[2], entries);
  vyre_capture_plan got;
  vyre_recording_capacities(rec, &got);
  CHECK_U64(got.input_device_capacity, want.input_device_capacity);
  CHECK_U64(got.output_device_capacity, want.output_device_capacity);
  CHECK_U64(got.output_readback_capacity, want.output_readback_capacity);
  CHECK_U64(got.kernel_pointer_capacity, want.kernel_pointer_capacity);
  CHECK_U64(got.kernel_argument_capacity, want.kernel_argument_capacity);
  CHECK(got.resident_input_replay_safe == want.resident_input_replay_safe);
  vyre_recording_release(rec);
  bench_close(&b);
}

/* Records more dispatches than a pipeline has prepared dispatches. */
TEST(a_recording_does_not_use_the_prepared_dispatches_of_its_pipeline) {
  enum { RECORDED = 12 };
  vyre_status st = {0};
  test_heap counted = {.left = -1};
  bench b = bench_open(test_heap_allocator(&counted));
  vyre_recording *rec;
  CHECK_OK(vyre_recording_create(b.device, &rec, &st), st);
  vyre_slot_range n = vyre_slot_range_all(add_slot(rec, "n", 8));
  for (int i = 0; i < RECORDED; i++) {
    CHECK_OK(add_dispatch(rec, b.pipelines[COUNT], &n, 1, &n, 1, &st), st);
  }
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  uint32_t words[2] = {100, 0};
  vyre_input in = vyre_input_bytes(words, 8);
  vyre_output out = vyre_output_bytes(words, 8);
  vyre_dispatch_desc desc = {
      .inputs = &in, .input_count = 1, .outputs = &out, .output_count = 1};
  CHECK_OK(vyre_dispatch(b.pipelines[COUNT], &desc, &st), st);
  size_t calls = counted.calls;
  CHECK_OK(vyre_dispatch(b.pipelines[COUNT], &desc, &st), st);
  CHECK_U64(counted.calls, calls);
  CHECK_U64(words[1], 2);
  vyre_recording_release(rec);
  bench_close(&b);
  CHECK_U64(counted.live_bytes, 0);
}

TEST(a_warm_replay_allocates_nothing) {
  vyre_status st = {0};
  test_heap counted = {.left = -1};
  bench b = bench_open(test_heap_allocator(&counted));
  chain c = chain_make(&b, true);
  chain_data d;
  chain_data_make(&b, &d);
  chain_bind(&c, &d);
  size_t calls = 0;
  for (int i = 0; i < 20; i++) {
    CHECK_OK(vyre_recording_replay(c.rec, NULL, NULL, &st), st);
    if (i == 0) calls = counted.calls;
  }
  CHECK_U64(counted.calls, calls);
  bind_bytes(c.rec, c.a, &d.host[0], 4); /* binding again allocates nothing */
  CHECK_OK(vyre_recording_replay(c.rec, NULL, NULL, &st), st);
  CHECK_U64(counted.calls, calls);
  vyre_recording_release(c.rec);
  bench_close(&b);
  CHECK_U64(counted.live_bytes, 0);
}

/* --- recording ------------------------------------------------------------ */

TEST(bad_commands_are_refused_when_they_are_recorded) {
  bench b = bench_open(heap), other = bench_open(heap);
  vyre_recording *rec;
  vyre_status st = {0};
  CHECK_OK(vyre_recording_create(b.device, &rec, &st), st);
  uint32_t s = add_slot(rec, "s", 16), again;
  vyre_slot_range p = vyre_slot_range_all(s), none = vyre_slot_range_all(9);
  vyre_slot_range two[] = {p, p};
  vyre_recorded_dispatch zero = {.inputs = &p,
                                 .input_count = 1,
                                 .outputs = &p,
                                 .output_count = 1,
                                 .has_repeat_count = true};
  vyre_compile_options options = {.workgroup = {4}};
  vyre_recorded_dispatch variant = zero;
  variant.has_repeat_count = false;
  variant.variant = &options;
  char long_name[80];
  memset(long_name, 'x', 79);
  long_name[79] = 0;
#define REFUSED(call, kind)                               \
  do {                                                    \
    st = (vyre_status){0};                                \
    CHECK_FAILS(call, st, VYRE_INVALID_ARGUMENT, (kind)); \
  } while (0)
  REFUSED(vyre_recording_add_slot(rec, "s", 0, &again, &st),
          VYRE_KIND_INVALID_ARGUMENT);
  REFUSED(vyre_recording_add_slot(rec, "", 0, &again, &st),
          VYRE_KIND_INVALID_ARGUMENT);
  REFUSED(vyre_recording_add_slot(rec, long_name, 0, &again, &st),
          VYRE_KIND_INVALID_ARGUMENT);
  REFUSED(add_dispatch(rec, b.pipelines[COUNT], two, 2, &p, 1, &st),
          VYRE_KIND_BINDING_MISMATCH);
  REFUSED(add_dispatch(rec, b.pipelines[COUNT], &p, 1, two, 2, &st),
          VYRE_KIND_BINDING_MISMATCH);
  REFUSED(add_dispatch(rec, b.pipelines[COUNT], &none, 1, &p, 1, &st),
          VYRE_KIND_INVALID_ARGUMENT);
  REFUSED(add_dispatch(rec, other.pipelines[COUNT], &p, 1, &p, 1, &st),
          VYRE_KIND_FOREIGN_HANDLE);
  REFUSED(vyre_recording_add_dispatch(rec, b.pipelines[COUNT], &zero, &st),
          VYRE_KIND_ZERO_REPEAT_COUNT);
  REFUSED(vyre_recording_add_dispatch(rec, b.pipelines[COUNT], &variant, &st),
          VYRE_KIND_VARIANT_NOT_COMPILED);
  REFUSED(vyre_recording_add_copy(rec, (vyre_slot_range){s, 0, 4},
                                  (vyre_slot_range){s, 8, 8}, &st),
          VYRE_KIND_BINDING_MISMATCH);
  REFUSED(vyre_recording_add_copy(rec, (vyre_slot_range){s, 0, 8},
                                  (vyre_slot_range){s, 4, 0}, &st),
          VYRE_KIND_BINDING_MISMATCH);
  REFUSED(
      vyre_recording_add_copy(rec, (vyre_slot_range){s, 8, UINT64_MAX}, p, &st),
      VYRE_KIND_BINDING_MISMATCH);
  REFUSED(vyre_recording_begin_while(rec, p, 0, 1, &st),
          VYRE_KIND_ZERO_REPEAT_COUNT);
  REFUSED(
      vyre_recording_begin_while(rec, (vyre_slot_range){s, 2, 0}, 1, 1, &st),
      VYRE_KIND_BINDING_MISMATCH);
  REFUSED(vyre_recording_end_while(rec, &st), VYRE_KIND_INVALID_ARGUMENT);
  REFUSED(vyre_recording_replay(rec, NULL, NULL, &st),
          VYRE_KIND_INVALID_ARGUMENT);
  for (int i = 0; i < VYRE_RECORDING_DEPTH; i++) {
    st = (vyre_status){0};
    CHECK_OK(vyre_recording_begin_while(rec, p, 1, 1, &st), st);
  }
  REFUSED(vyre_recording_begin_while(rec, p, 1, 1, &st),
          VYRE_KIND_INVALID_ARGUMENT);
  REFUSED(vyre_recording_seal(rec, &st), VYRE_KIND_INVALID_ARGUMENT);
  for (int i = 0; i < VYRE_RECORDING_DEPTH; i++) {
    st = (vyre_status){0};
    CHECK_OK(vyre_recording_end_while(rec, &st), st);
  }
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  REFUSED(vyre_recording_seal(rec, &st), VYRE_KIND_INVALID_ARGUMENT);
  REFUSED(vyre_recording_add_barrier(rec, &st), VYRE_KIND_INVALID_ARGUMENT);
  REFUSED(vyre_recording_add_slot(rec, "t", 0, &again, &st),
          VYRE_KIND_INVALID_ARGUMENT);
  CHECK_U64(vyre_recording_find_slot(rec, "s"), s);
  CHECK_U64(vyre_recording_find_slot(rec, "t"), VYRE_NO_SLOT);
  vyre_recording_release(rec);
  bench_close(&b);
  bench_close(&other);
}

TEST(ranges_beyond_a_declared_slot_are_refused_by_the_seal) {
  bench b = bench_open(heap);
  static const struct {
    uint64_t size;
    vyre_slot_range range;
  } cases[] = {{4, {0, 0, 0}},
               {16, {0, 12, 0}},
               {16, {0, 0, 12}},
               {16, {0, 2, 0}},
               {16, {0, UINT64_MAX - 7, 0}}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_status st = {0};
    vyre_recording *rec;
    CHECK_OK(vyre_recording_create(b.device, &rec, &st), st);
    (void)add_slot(rec, "counter", cases[i].size);
    CHECK_OK(add_dispatch(rec, b.pipelines[COUNT], &cases[i].range, 1,
                          &cases[i].range, 1, &st),
             st);
    CHECK_FAILS(vyre_recording_seal(rec, &st), st, VYRE_INVALID_ARGUMENT,
                VYRE_KIND_BINDING_MISMATCH);
    CHECK_HAS(st.message, "'counter'");
    vyre_recording_release(rec);
  }
  bench_close(&b);
}

TEST(fixed_slots_and_ranges_are_bound_once) {
  vyre_status st = {0};
  bench b = bench_open(heap);
  vyre_recording *rec;
  CHECK_OK(vyre_recording_create(b.device, &rec, &st), st);
  vyre_buffer ring = create_buffer(b.device, 64);
  uint32_t fixed, words[8] = {0};
  vyre_slot_binding r = {.buffer = ring, .offset = 16, .size = 32};
  CHECK_OK(vyre_recording_add_fixed_slot(rec, &r, &fixed, &st), st);
  vyre_slot_range first = {fixed, 0, 8}, second = {fixed, 24, 0};
  CHECK_OK(add_dispatch(rec, b.pipelines[COUNT], &first, 1, &first, 1, &st),
           st);
  CHECK_OK(add_dispatch(rec, b.pipelines[COUNT], &second, 1, &second, 1, &st),
           st);
  CHECK_OK(
      vyre_recording_add_copy(rec, first, (vyre_slot_range){fixed, 8, 0}, &st),
      st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  CHECK_OK(vyre_recording_replay(rec, NULL, NULL, &st), st);
  CHECK_OK(vyre_buffer_download(b.device, ring, 16, words, 32, &st), st);
  CHECK(words[0] == UINT32_MAX && words[1] == 1);
  CHECK(words[2] == UINT32_MAX && words[3] == 1); /* the binding was copied */
  CHECK(words[4] == 0 && words[5] == 0);
  CHECK(words[6] == UINT32_MAX && words[7] == 1);
  CHECK_FAILS(vyre_recording_bind_slot(rec, fixed, &r, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  vyre_recording_release(rec);
  bench_close(&b);
}

/* Checks that the printed list has the barriers, grids and ranges of the
 * replay. */
TEST(the_print_shows_the_plan) {
  vyre_status st = {0};
  bench b = bench_open(heap);
  chain c = chain_make(&b, true);
  chain_data d;
  chain_data_make(&b, &d);
  chain_bind(&c, &d);
  static char page[8192];
  memory_text memory = {page, sizeof page, 0};
  CHECK(vyre_recording_print(c.rec, (vyre_writer){memory_write, &memory}));
  CHECK_HAS(page, "    1  dispatch scale grid inferred x='x' y='y' a='a'\n");
  CHECK_OK(vyre_recording_replay(c.rec, NULL, NULL, &st), st);
  memory.length = 0;
  CHECK(vyre_recording_print(c.rec, (vyre_writer){memory_write, &memory}));
  CHECK_HAS(page, "recording on ref: 6 slots, 4 commands\n");
  CHECK_HAS(page, "  slot 'host': 80 bytes of host memory, read\n");
  CHECK_HAS(page,
            "    0  upload 'host'[0 + 80] -> 'x'[0 + 80]\n"
            "       barrier, as 'x' is written\n"
            "    1  dispatch scale grid 3x1x1 x='x'[0 + 80] y='y'[0 + 80] "
            "a='a'[0 + 4]\n"
            "       barrier, as 'y' is written\n"
            "    2  dispatch add grid 3x1x1 x='y'[0 + 80] y='sum'[0 + 80]\n"
            "       barrier, as 'sum' is written\n"
            "    3  download 'sum'[0 + 80] -> 'back'[0 + 80]\n"
            "capture\n");
  CHECK_HAS(page, "resident_input_replay_safe                         no\n");
  memory.length = 0;
  memory.capacity = 100; /* a writer that fails */
  CHECK(!vyre_recording_print(c.rec, (vyre_writer){memory_write, &memory}));
  CHECK(!vyre_recording_print(NULL, (vyre_writer){memory_write, &memory}));
  vyre_recording_release(c.rec);
  bench_close(&b);
}

TEST(commands_without_shared_bytes_need_no_barrier) {
  vyre_status st = {0};
  bench b = bench_open(heap);
  vyre_recording *rec;
  CHECK_OK(vyre_recording_create(b.device, &rec, &st), st);
  uint32_t s = add_slot(rec, "s", 0), t = add_slot(rec, "t", 0);
  vyre_slot_range low = {s, 0, 8}, high = {s, 8, 8},
                  all = vyre_slot_range_all(t);
  struct {
    vyre_slot_range range;
    bool needs;
  } cases[] = {{low, false}, {high, false}, {all, false},
               {high, true}, {low, false},  {low, true}};
  for (size_t i = 0; i < 6; i++) {
    CHECK_OK(add_dispatch(rec, b.pipelines[COUNT], &cases[i].range, 1,
                          &cases[i].range, 1, &st),
             st);
  }
  CHECK_OK(vyre_recording_add_barrier(rec, &st), st);
  CHECK_OK(add_dispatch(rec, b.pipelines[COUNT], &low, 1, &low, 1, &st), st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  for (size_t i = 0; i < 6; i++) {
    CHECK(rec->commands[i].needs_barrier == cases[i].needs);
  }
  CHECK(!rec->commands[7].needs_barrier); /* a barrier was placed */
  vyre_recording_release(rec);
  bench_close(&b);
}

TEST_MAIN(TEST_ENTRY(
              a_recording_does_not_use_the_prepared_dispatches_of_its_pipeline),
          TEST_ENTRY(sealing_allocates_what_the_capture_plans_say),
          TEST_ENTRY(a_warm_replay_allocates_nothing),
          TEST_ENTRY(bad_commands_are_refused_when_they_are_recorded),
          TEST_ENTRY(ranges_beyond_a_declared_slot_are_refused_by_the_seal),
          TEST_ENTRY(fixed_slots_and_ranges_are_bound_once),
          TEST_ENTRY(the_print_shows_the_plan),
          TEST_ENTRY(commands_without_shared_bytes_need_no_barrier))
