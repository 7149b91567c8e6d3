/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks that every entry point rejects a descriptor with a reserved word set.
 * A program that was built for a newer library sets a field there; the older
 * library must refuse it instead of ignoring the field. */

#include "support/check.h"
#include "support/driver.h"

static const char text[] =
    "kernel copy workgroup(4) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : write u32[] @1;\n"
    "{\n"
    "    let i = global_id.x;\n"
    "    if (i < len(y)) y[i] = x[i];\n"
    "}\n";

/* Calls @p call once for every word of object.reserved, with only that word
 * set. */
#define REJECTS(object, call)                                             \
  do {                                                                    \
    size_t words_ = sizeof(object).reserved / sizeof(object).reserved[0]; \
    for (size_t i_ = 0; i_ < words_; i_++) {                              \
      vyre_status st = {0};                                               \
      (object).reserved[i_] = 7;                                          \
      CHECK_FAILS(call, st, VYRE_INVALID_ARGUMENT,                        \
                  VYRE_KIND_INVALID_ARGUMENT);                            \
      CHECK(st.field &&strcmp(st.field, "reserved") == 0);                \
      CHECK_U64(status_number(&st, "index"), i_);                         \
      CHECK_U64(status_number(&st, "value"), 7);                          \
      (object).reserved[i_] = 0;                                          \
    }                                                                     \
  } while (0)

static bool discard(void *self, const char *bytes, size_t length) {
  (void)self, (void)bytes, (void)length;
  return true;
}

TEST(planners_reject_reserved_words) {
  vyre_arena arena = {0};
  vyre_queue_profile queue = {
      .queue_capacity = 4, .entry_bytes = 4, .budget_bytes = 1024};
  vyre_queue_plan queue_plan;
  REJECTS(queue, vyre_queue_plan_build(&queue, &queue_plan, &st));
  vyre_queue_drain_plan drain;
  REJECTS(queue, vyre_queue_drain_plan_build(&queue, 1, &drain, &st));
  vyre_queue_expansion_profile expansion = {
      .initial_items = 1, .entry_bytes = 4, .budget_bytes = 1024};
  vyre_queue_expansion_plan expanded;
  REJECTS(expansion,
          vyre_queue_expansion_plan_build(&expansion, &expanded, &st));

  vyre_frontier_wave wave = {1, 1, 1};
  vyre_frontier_desc frontier = {
      .waves = &wave, .wave_count = 1, .budget_bytes = 1024};
  vyre_barrier_scratch scratch = {0};
  vyre_frontier_plan plan;
  REJECTS(frontier,
          vyre_frontier_plan_build(&frontier, &scratch, &arena, &plan, &st));
  const vyre_interval *intervals;
  CHECK(vyre_frontier_plan_build(&frontier, &scratch, &arena, &plan, NULL) ==
        VYRE_OK);
  REJECTS(frontier, vyre_frontier_intervals(&plan, &frontier, 1, &arena,
                                            &intervals, &st));

  vyre_placement_options placement = {0};
  vyre_placement_scratch working = {0};
  vyre_placement_plan placed;
  REJECTS(placement, vyre_placement_plan_build(NULL, 0, &placement, &working,
                                               &arena, &placed, &st));
  vyre_barrier_scratch_deinit(&scratch);
  vyre_placement_scratch_deinit(&working);
  vyre_arena_deinit(&arena);
}

TEST(programs_reject_reserved_words) {
  vyre_buffer_decl buffer = {.name = "x", .element = VYRE_ELEMENT_U32};
  vyre_program_desc desc = {
      .buffers = &buffer, .buffer_count = 1, .workgroup = {1, 1, 1}};
  vyre_program *program;
  REJECTS(desc, vyre_program_create(&desc, (vyre_allocator){0}, &program, &st));
  REJECTS(buffer,
          vyre_program_create(&desc, (vyre_allocator){0}, &program, &st));

  vyre_builder *b;
  CHECK(vyre_builder_create("k", (vyre_allocator){0}, &b, NULL) == VYRE_OK);
  buffer.reserved[0] = 1;
  vyre_build_buffer_ref none = vyre_build_declare(b, &buffer);
  CHECK(none.id == 0 && none.builder == 0);
  vyre_status failure = {0};
  CHECK_FAILS(vyre_builder_build(b, &program, &failure), failure,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_HAS(failure.message, "vyre_build_declare: reserved word 0 is 1");
  vyre_builder_release(b);

  vyre_random_program_options options = {0};
  vyre_random_program *generated;
  REJECTS(options, vyre_random_program_create(&options, (vyre_allocator){0},
                                              &generated, &st));
}

TEST(compiles_reject_reserved_words) {
  rig r = rig_open(text, NULL);
  vyre_program *program = (vyre_program *)vyre_pipeline_program(r.pipeline);
  vyre_compile_options options = {0};
  vyre_pipeline *pipeline;
  REJECTS(options, vyre_pipeline_compile(r.device, program, &options, &pipeline,
                                         NULL, &st));
  vyre_fence *fence;
  REJECTS(options, vyre_pipeline_compile_async(r.device, program, &options,
                                               &fence, &st));
  REJECTS(options, vyre_pipeline_add_variant(r.pipeline, &options, &st));
  vyre_arena arena = {0};
  vyre_cache_explanation explanation;
  REJECTS(options, vyre_cache_explain(r.device, program, &options, &arena,
                                      &explanation, &st));
  vyre_arena_deinit(&arena);
  vyre_emit_options emit = {0};
  vyre_writer writer = {discard, NULL};
  REJECTS(emit, vyre_program_emit(program, &emit, writer, NULL, &st));
  rig_close(&r);
}

/* Also after a dispatch with the same variant has succeeded. */
TEST(dispatches_reject_reserved_words_of_a_variant) {
  rig r = rig_open(text, NULL);
  uint32_t memory[4] = {0}, result[4];
  vyre_compile_options variant = {.workgroup = {32, 1, 1}};
  vyre_input input = vyre_input_bytes(memory, sizeof memory);
  vyre_output output = vyre_output_bytes(result, sizeof result);
  const vyre_dispatch_desc desc = {.inputs = &input,
                                   .input_count = 1,
                                   .outputs = &output,
                                   .output_count = 1,
                                   .variant = &variant};
  vyre_status good = {0};
  CHECK_OK(vyre_pipeline_add_variant(r.pipeline, &variant, &good), good);
  REJECTS(variant, vyre_dispatch(r.pipeline, &desc, &st));
  CHECK_OK(vyre_dispatch(r.pipeline, &desc, &good), good);
  REJECTS(variant, vyre_dispatch(r.pipeline, &desc, &st));
  rig_close(&r);
}

TEST(contexts_reject_reserved_words) {
  vyre_context_options options = {0};
  vyre_context *context;
  REJECTS(options, vyre_context_create(&options, &context, &st));
  vyre_cache_prune_options prune = {0};
  vyre_cache_pruned pruned;
  REJECTS(prune, vyre_cache_prune(NULL, &prune, &pruned, &st));
}

TEST(recordings_reject_reserved_words) {
  rig r = rig_open(text, NULL);
  vyre_recording *rec;
  uint32_t memory[4] = {0}, slot, other;
  CHECK(vyre_recording_create(r.device, &rec, NULL) == VYRE_OK);
  CHECK(vyre_recording_add_slot(rec, "x", 0, &slot, NULL) == VYRE_OK);
  vyre_slot_binding binding = {.data = memory, .size = sizeof memory};
  REJECTS(binding, vyre_recording_bind_slot(rec, slot, &binding, &st));
  REJECTS(binding, vyre_recording_add_fixed_slot(rec, &binding, &other, &st));
  vyre_slot_range range = vyre_slot_range_all(slot);
  vyre_recorded_dispatch dispatch = {
      .inputs = &range, .input_count = 1, .outputs = &range, .output_count = 1};
  REJECTS(dispatch,
          vyre_recording_add_dispatch(rec, r.pipeline, &dispatch, &st));
  CHECK(vyre_recording_seal(rec, NULL) == VYRE_OK);
  vyre_replay_options replay = {0};
  REJECTS(replay, vyre_recording_replay(rec, &replay, NULL, &st));
  vyre_recording_release(rec);
  rig_close(&r);
}

typedef struct file {
  char bytes[1 << 16];
  size_t length;
} file;

static bool append(void *self, const char *bytes, size_t length) {
  file *to = self;
  if (length > sizeof to->bytes - to->length) return false;
  memcpy(to->bytes + to->length, bytes, length);
  to->length += length;
  return true;
}

TEST(packages_reject_reserved_words) {
  static file written;
  rig r = rig_open(text, NULL);
  vyre_program *program = (vyre_program *)vyre_pipeline_program(r.pipeline);
  vyre_compile_options variant = {0};
  vyre_package_options options = {
      .targets = "x86-64-v2", .variants = &variant, .variant_count = 1};
  const vyre_writer writer = {append, &written};
  REJECTS(options,
          vyre_package_write(NULL, &program, 1, &options, writer, &st));
  REJECTS(variant,
          vyre_package_write(NULL, &program, 1, &options, writer, &st));
  vyre_status good = {0};
  vyre_package *package;
  CHECK_OK(vyre_package_write(NULL, &program, 1, &options, writer, &good),
           good);
  CHECK_OK(vyre_package_open(written.bytes, written.length,
                             vyre_allocator_heap(), &package, &good),
           good);
  vyre_load_options load = {.may_compile = true};
  vyre_pipeline *pipeline;
  REJECTS(load,
          vyre_pipeline_load(r.device, package, NULL, &load, &pipeline, &st));
  REJECTS(load.compile,
          vyre_pipeline_load(r.device, package, NULL, &load, &pipeline, &st));
  vyre_package_release(package);
  rig_close(&r);
}

TEST_MAIN(TEST_ENTRY(planners_reject_reserved_words),
          TEST_ENTRY(programs_reject_reserved_words),
          TEST_ENTRY(compiles_reject_reserved_words),
          TEST_ENTRY(dispatches_reject_reserved_words_of_a_variant),
          TEST_ENTRY(contexts_reject_reserved_words),
          TEST_ENTRY(recordings_reject_reserved_words),
          TEST_ENTRY(packages_reject_reserved_words))
