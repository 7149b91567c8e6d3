/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of the messages of refused calls. */
#include "runtime/recording/recording_testing.h"

TEST(a_slot_is_bound_to_one_kind_of_memory) {
  bench b = bench_open((vyre_allocator){0});
  vyre_recording *rec;
  vyre_host_buffer kept = {0};
  unsigned char byte;
  uint32_t slot;
  vyre_status st = {0};
  const vyre_slot_binding wrong[] = {
      {.size = 0},
      {.size = 4},
      {.data = &byte, .size = 1, .host_buffer = &kept}};
  CHECK_OK(vyre_recording_create(b.device, &rec, &st), st);
  CHECK_OK(vyre_recording_add_slot(rec, "x", 0, &slot, &st), st);
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    st = (vyre_status){0};
    CHECK_FAILS(vyre_recording_bind_slot(rec, slot, &wrong[i], &st), st,
                VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
    CHECK_HAS(st.message,
              i == 2 ? "slot 'x' sets 2 of data" : "slot 'x' sets 0 of data");
  }
  st = (vyre_status){0};
  const vyre_slot_binding empty = {.data = &byte};
  CHECK_OK(vyre_recording_bind_slot(rec, slot, &empty, &st), st);
  vyre_recording_release(rec);
  bench_close(&b);
}

TEST(a_fault_is_armed_once) {
  rig r = rig_open("kernel k workgroup(1) { }", NULL);
  vyre_status st = {0};
  CHECK_FAILS(
      vyre_context_inject_faults(r.context, "wait:1,submit:1,submit:2", &st),
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_HAS(st.message, "'submit' is armed twice: submit:1 and submit:2");
  st = (vyre_status){0};
  vyre_dispatch_desc desc = {.grid = {1, 1, 1}};
  CHECK_OK(vyre_dispatch(r.pipeline, &desc, &st), st); /* no fault is armed */
  rig_close(&r);
}

TEST(an_injected_allocation_failure_is_named) {
  rig r = rig_open("kernel k workgroup(1) { }", NULL);
  for (int n = 1;; n++) {
    char order[32];
    vyre_status st = {0};
    vyre_buffer buffer;
    snprintf(order, sizeof order, "allocation:%d", n);
    CHECK_OK(vyre_context_inject_faults(r.context, order, &st), st);
    vyre_code code = vyre_buffer_create(r.device, 64, &buffer, &st);
    if (code == VYRE_OK) {
      CHECK(n > 2);
      break;
    }
    CHECK(code == (n == 2 ? VYRE_DEVICE_OUT_OF_MEMORY : VYRE_OUT_OF_MEMORY));
    CHECK_HAS(st.message, ": the fault 'allocation' was injected here");
    CHECK_HAS(st.fix, "disarm it");
  }
  vyre_status st = {0};
  vyre_recording *rec;
  CHECK_OK(vyre_context_inject_faults(r.context, "allocation:1", &st), st);
  CHECK_FAILS(vyre_recording_create(r.device, &rec, &st), st,
              VYRE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED);
  CHECK_HAS(st.message, "the fault 'allocation' was injected here");
  rig_close(&r);
}

/* An injected fault is not blamed for a later failure. */
TEST(a_real_allocation_failure_does_not_mention_faults) {
  test_heap heap = {.left = -1};
  rig r = rig_open("kernel k workgroup(1) { }", &heap);
  vyre_status st = {0};
  vyre_recording *rec;
  CHECK_OK(vyre_context_inject_faults(r.context, "allocation:1", &st), st);
  CHECK(vyre_recording_create(r.device, &rec, NULL) == VYRE_OUT_OF_MEMORY);
  heap.left = 0;
  CHECK_FAILS(vyre_recording_create(r.device, &rec, &st), st,
              VYRE_OUT_OF_MEMORY, VYRE_KIND_STORAGE_RESERVE_FAILED);
  CHECK(!strstr(st.message, "fault"));
  CHECK_HAS(st.fix, "free memory");
  heap.left = -1;
  rig_close(&r);
}

TEST(a_wait_for_no_fence_is_refused) {
  vyre_fence *fences[1] = {NULL};
  vyre_status st = {0};
  size_t which;
  CHECK_FAILS(vyre_fence_wait_any(fences, 0, 0, &which, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_HAS(st.message, "count is 0");
}

TEST(device_names_are_exact_and_safe_to_print) {
  static const struct {
    const char *name, *shown;
  } cases[] = {{"ref:00", "'ref:00'"},
               {"ref:01", "'ref:01'"},
               {"re\nf", "'re?f'"},
               {"\x1b[2J", "'?[2J'"},
               {"\xff", "'?'"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_device *device;
    vyre_status st = {0};
    CHECK_FAILS(vyre_device_open(NULL, cases[i].name, &device, &st), st,
                VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_DEVICE_UNAVAILABLE);
    CHECK_HAS(st.message, cases[i].shown);
  }
  vyre_device *device;
  vyre_status st = {0};
  CHECK_OK(vyre_device_open(NULL, "ref:0", &device, &st), st);
  vyre_device_release(device);
}

/* x is read and y written; both stay on the host. */
TEST(a_slot_bound_as_read_only_is_not_called_imported) {
  bench b = bench_open((vyre_allocator){0});
  uint32_t data[3][ELEMENTS] = {{0}}, slots[3];
  static const char *const names[] = {"x", "a", "y"};
  vyre_recording *rec;
  vyre_status st = {0};
  CHECK_OK(vyre_recording_create(b.device, &rec, &st), st);
  for (int i = 0; i < 3; i++) {
    CHECK_OK(vyre_recording_add_slot(rec, names[i], 0, &slots[i], &st), st);
  }
  vyre_slot_range in[] = {vyre_slot_range_all(slots[0]),
                          vyre_slot_range_all(slots[1])};
  vyre_slot_range out[] = {vyre_slot_range_all(slots[2])};
  vyre_recorded_dispatch d = {
      .inputs = in, .input_count = 2, .outputs = out, .output_count = 1};
  CHECK_OK(vyre_recording_add_dispatch(rec, b.pipelines[SCALE], &d, &st), st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  for (int i = 0; i < 3; i++) {
    vyre_slot_binding bytes = {
        .data = data[i], .size = i == 1 ? 4 : BYTES, .is_read_only = i == 2};
    CHECK_OK(vyre_recording_bind_slot(rec, slots[i], &bytes, &st), st);
  }
  CHECK_FAILS(vyre_recording_replay(rec, NULL, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_READ_ONLY);
  CHECK_HAS(st.message,
            "slot 'y' is written by a command, but was bound as read-only");
  vyre_recording_release(rec);
  bench_close(&b);
}

TEST(invalid_output_memory_is_described) {
  rig r = rig_open(
      "kernel k workgroup(1) over(y)\nbuffer y : read_write u32[] @0;\n"
      "buffer z : write u32[] @1 output;\n{ z[0] = y[0]; }",
      NULL);
  uint32_t y[8] = {0}, z[4];
  static const struct {
    size_t at, bytes;
    const char *says;
  } cases[] = {
      {0, 7,
       "'z' has 7 bytes, which is not a multiple of its element size; 4 would"},
      {1, 16, "the input and the output of buffer 'y' overlap"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_status st = {0};
    vyre_input in = vyre_input_bytes(y, 16);
    vyre_output out[] = {vyre_output_bytes(y + cases[i].at, 16),
                         vyre_output_bytes(z, cases[i].bytes)};
    vyre_dispatch_desc desc = {
        .inputs = &in, .input_count = 1, .outputs = out, .output_count = 2};
    CHECK_FAILS(vyre_dispatch(r.pipeline, &desc, &st), st,
                VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
    CHECK_HAS(st.message, cases[i].says);
  }
  rig_close(&r);
}

/* If one transfer of several is invalid, it is named, and none is executed. */
TEST(the_failing_transfer_of_several_is_named) {
  rig r = rig_open("kernel k workgroup(1) { }", NULL);
  rig other = rig_open("kernel k workgroup(1) { }", NULL);
  vyre_status st = {0};
  vyre_buffer good, dead, foreign;
  uint32_t words[2] = {7, 8}, back = 9;
  CHECK_OK(vyre_buffer_create(r.device, 4, &good, &st), st);
  CHECK_OK(vyre_buffer_create(r.device, 4, &dead, &st), st);
  CHECK_OK(vyre_buffer_destroy(r.device, dead, &st), st);
  CHECK_OK(vyre_buffer_create(other.device, 4, &foreign, &st), st);
  const struct {
    vyre_transfer wrong;
    vyre_kind kind;
    const char *fault;
  } cases[] = {
      {{good, 1, words, 4}, VYRE_KIND_INVALID_ARGUMENT, ""},
      {{good, 0, NULL, 4}, VYRE_KIND_INVALID_ARGUMENT, ""},
      {{dead, 0, words, 4}, VYRE_KIND_STALE_HANDLE, ""},
      {{{0}, 0, words, 4}, VYRE_KIND_STALE_HANDLE, ""},
      {{foreign, 0, words, 4}, VYRE_KIND_FOREIGN_HANDLE, ""},
      {{good, 0, words, 4}, VYRE_KIND_INJECTED_FAULT, "upload:2,download:2"}};
  for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
    const vyre_transfer list[] = {{good, 0, words + 1, 0}, cases[i / 2].wrong};
    st = (vyre_status){0};
    CHECK_OK(vyre_context_inject_faults(r.context, cases[i / 2].fault, &st),
             st);
    vyre_code code = i % 2 ? vyre_buffer_upload_many(r.device, list, 2, &st)
                           : vyre_buffer_download_many(r.device, list, 2, &st);
    CHECK(code != VYRE_OK && st.kind == cases[i / 2].kind);
    CHECK_U64(status_number(&st, "item"), 1);
    CHECK_HAS(st.message, "transfer 1");
    st = (vyre_status){0};
    CHECK_OK(vyre_buffer_download(r.device, good, 0, &back, 4, &st), st);
    CHECK_U64(back, 0);
  }
  rig_close(&other);
  rig_close(&r);
}

/* A replay and its dispatch have timeouts: the message names the shorter
 * one. */
TEST(a_timeout_is_reported_as_it_was_passed) {
  static const struct {
    uint64_t replay_ns, own_ns, says_ns;
    int kernel;
  } cases[] = {{30000000, 0, 30000000, COUNT},
               {UINT64_C(60000000000), 20000000, 20000000, COUNT},
               {0, 20000000, 20000000, COUNT},
               {30000000, 0, 30000000, HANG},
               {UINT64_C(60000000000), 20000000, 20000000, HANG}};
  bench b = bench_open((vyre_allocator){0});
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    uint32_t n[2] = {1, 0};
    vyre_recording *rec;
    vyre_status st = {0};
    CHECK_OK(vyre_recording_create(b.device, &rec, &st), st);
    vyre_slot_range place = vyre_slot_range_all(add_slot(rec, "n", 0));
    vyre_recorded_dispatch d = {.inputs = &place,
                                .input_count = 1,
                                .outputs = &place,
                                .output_count = 1,
                                .has_repeat_count = true,
                                .repeat_count = UINT32_MAX,
                                .timeout_ns = cases[i].own_ns};
    CHECK_OK(
        vyre_recording_add_dispatch(rec, b.pipelines[cases[i].kernel], &d, &st),
        st);
    CHECK_OK(vyre_recording_seal(rec, &st), st);
    bind_bytes(rec, place.slot, n, sizeof n);
    vyre_replay_options options = {.timeout_ns = cases[i].replay_ns};
    CHECK_FAILS(vyre_recording_replay(rec, &options, NULL, &st), st,
                VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT);
    CHECK_U64(status_number(&st, "timeout_ns"), cases[i].says_ns);
    vyre_recording_release(rec);
  }
  bench_close(&b);
}

TEST_MAIN(TEST_ENTRY(a_slot_is_bound_to_one_kind_of_memory),
          TEST_ENTRY(a_fault_is_armed_once),
          TEST_ENTRY(an_injected_allocation_failure_is_named),
          TEST_ENTRY(a_real_allocation_failure_does_not_mention_faults),
          TEST_ENTRY(a_wait_for_no_fence_is_refused),
          TEST_ENTRY(device_names_are_exact_and_safe_to_print),
          TEST_ENTRY(a_slot_bound_as_read_only_is_not_called_imported),
          TEST_ENTRY(the_failing_transfer_of_several_is_named),
          TEST_ENTRY(a_timeout_is_reported_as_it_was_passed),
          TEST_ENTRY(invalid_output_memory_is_described))
