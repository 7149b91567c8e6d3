/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "plan/capture.h"

#include "support/check.h"
#include "support/text.h"

static vyre_binding binding(uint32_t slot, vyre_role role, uint32_t input,
                            uint32_t output) {
  return (vyre_binding){.name = "generated",
                        .binding = slot,
                        .buffer_index = slot,
                        .role = role,
                        .element_size = 4,
                        .preferred_alignment = 4,
                        .element_count = 16,
                        .has_static_byte_len = true,
                        .static_byte_len = 64,
                        .input_index = input,
                        .output_index = output};
}

static void check_plan(const vyre_binding *bindings, size_t count,
                       vyre_capture_plan want) {
  vyre_binding_plan plan = {.bindings = bindings, .binding_count = count};
  vyre_capture_plan got;
  vyre_status st = {0};
  CHECK_OK(vyre_capture_plan_build(&plan, &got, &st), st);
  CHECK_U64(got.input_device_capacity, want.input_device_capacity);
  CHECK_U64(got.output_device_capacity, want.output_device_capacity);
  CHECK_U64(got.output_readback_capacity, want.output_readback_capacity);
  CHECK_U64(got.kernel_pointer_capacity, want.kernel_pointer_capacity);
  CHECK_U64(got.kernel_argument_capacity, want.kernel_argument_capacity);
  CHECK_U64(got.resident_input_replay_safe, want.resident_input_replay_safe);
}

TEST(device_and_readback_tables_are_counted_apart) {
  vyre_binding bindings[] = {
      binding(0, VYRE_ROLE_INPUT, 0, VYRE_NO_INDEX),
      binding(1, VYRE_ROLE_SHARED, VYRE_NO_INDEX, VYRE_NO_INDEX),
      binding(2, VYRE_ROLE_OUTPUT, VYRE_NO_INDEX, 0),
      binding(3, VYRE_ROLE_INPUT_OUTPUT, 1, 1)};
  check_plan(bindings, 4, (vyre_capture_plan){2, 1, 2, 3, 4, false});
}

TEST(nothing_bound_still_takes_the_launch_block) {
  check_plan(NULL, 0, (vyre_capture_plan){0, 0, 0, 0, 1, true});
}

TEST(persistent_buffers_are_device_buffers_without_input) {
  vyre_binding bindings[] = {
      binding(0, VYRE_ROLE_PERSISTENT, VYRE_NO_INDEX, VYRE_NO_INDEX),
      binding(1, VYRE_ROLE_UNIFORM, 0, VYRE_NO_INDEX)};
  check_plan(bindings, 2, (vyre_capture_plan){1, 1, 0, 2, 3, true});
}

/* A live-out input is observed but not written by the kernel. Replay is safe
 * only if nothing else writes it, which the plan cannot know. */
TEST(an_input_that_is_observed_is_not_safe_to_replay) {
  vyre_binding bindings[] = {binding(0, VYRE_ROLE_INPUT, 0, 0)};
  check_plan(bindings, 1, (vyre_capture_plan){1, 0, 1, 1, 2, false});
}

/* The seed's generated plans, with its generator and its first state. */
TEST(generated_plans_count_in_any_order) {
  uint64_t state = 0x9e3779b97f4a7c15u;
  for (int i = 0; i < 768; i++) {
    vyre_binding bindings[96];
    uint32_t count = 1 + (uint32_t)(lcg_next(&state) % 96);
    uint32_t inputs = 0, outputs = 0;
    vyre_capture_plan want = {.resident_input_replay_safe = true};
    for (uint32_t slot = 0; slot < count; slot++) {
      switch (lcg_next(&state) % 4) {
        case 0:
          bindings[slot] =
              binding(slot, VYRE_ROLE_INPUT, inputs++, VYRE_NO_INDEX);
          want.input_device_capacity++;
          break;
        case 1:
          bindings[slot] =
              binding(slot, VYRE_ROLE_OUTPUT, VYRE_NO_INDEX, outputs++);
          want.output_device_capacity++;
          want.output_readback_capacity++;
          break;
        case 2:
          bindings[slot] =
              binding(slot, VYRE_ROLE_INPUT_OUTPUT, inputs++, outputs++);
          want.input_device_capacity++;
          want.output_readback_capacity++;
          want.resident_input_replay_safe = false;
          break;
        default:
          bindings[slot] =
              binding(slot, VYRE_ROLE_SHARED, VYRE_NO_INDEX, VYRE_NO_INDEX);
          continue;
      }
      want.kernel_pointer_capacity++;
    }
    want.kernel_argument_capacity = want.kernel_pointer_capacity + 1;
    check_plan(bindings, count, want);
  }
}

TEST(a_table_that_cannot_be_counted_is_named) {
  static const char *const labels[] = {
      "kernel pointer table", "input device table", "output device table",
      "output readback table", "kernel argument table"};
  for (size_t i = 0; i < 5; i++) {
    size_t capacity = SIZE_MAX;
    vyre_status st = {0};
    CHECK_FAILS(vyre__capture_count(&capacity, labels[i], &st), st,
                VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
    CHECK_HAS(st.message, "graph capture binding plan");
    CHECK_HAS(st.message, labels[i]);
    CHECK_HAS(st.fix, "record a smaller graph shape");
    CHECK(capacity == SIZE_MAX);
  }
}

TEST(null_arguments_are_a_status) {
  vyre_capture_plan plan;
  vyre_status st = {0}, st2 = {0};
  CHECK_FAILS(vyre_capture_plan_build(NULL, &plan, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_FAILS(vyre_capture_plan_build(&(vyre_binding_plan){0}, NULL, &st2), st2,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
}

TEST(the_printer_shows_every_field) {
  vyre_capture_plan plan = {1, 2, 3, 4, 5, true};
  text_buffer text = {0};
  CHECK(vyre_capture_plan_print(&plan, text_writer(&text)));
  CHECK_TEXT(
      text.bytes,
      "capture\n"
      "  input_device_capacity                               1 buffers\n"
      "  output_device_capacity                              2 buffers\n"
      "  output_readback_capacity                            3 buffers\n"
      "  kernel_pointer_capacity                             4 pointers\n"
      "  kernel_argument_capacity                            5 "
      "arguments\n"
      "  resident_input_replay_safe                        yes\n");
  CHECK(!vyre_capture_plan_print(&plan, refusing_writer()));
}

TEST_MAIN(TEST_ENTRY(device_and_readback_tables_are_counted_apart),
          TEST_ENTRY(nothing_bound_still_takes_the_launch_block),
          TEST_ENTRY(persistent_buffers_are_device_buffers_without_input),
          TEST_ENTRY(an_input_that_is_observed_is_not_safe_to_replay),
          TEST_ENTRY(generated_plans_count_in_any_order),
          TEST_ENTRY(a_table_that_cannot_be_counted_is_named),
          TEST_ENTRY(null_arguments_are_a_status),
          TEST_ENTRY(the_printer_shows_every_field))
