/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "analyze/effects.h"

#include "support/analysis.h"
#include "support/check.h"

typedef struct survey {
  vyre_module *module;
  vyre_arena arena;
  vyre__effects effects;
} survey;

static survey survey_text(const char *text) {
  survey s = {.module = parse_module(text)};
  vyre_status st = {0};
  CHECK_OK(vyre__effects_build(vyre_module_kernel(s.module, 0), &s.arena,
                               &s.effects, &st),
           st);
  return s;
}

static void survey_deinit(survey *s) {
  vyre_arena_deinit(&s->arena);
  vyre_module_release(s->module);
}

TEST(roles_of_buffers_are_derived) {
  survey s = survey_text(kernel_text("atomic_add(tile[l], x[i]);\ny[i] = 1;"));
  const uint8_t *buffers = s.effects.buffers;
  CHECK_U64(buffers[0], VYRE__OPF_READS);
  CHECK_U64(buffers[1], VYRE__OPF_WRITES);
  CHECK_U64(buffers[2], 0);
  CHECK_U64(buffers[3], VYRE__OPF_ATOMICS);
  CHECK(!(s.effects.functions[0].flags & VYRE__OPF_BARRIER));
  CHECK(s.effects.functions[0].has_id);
  survey_deinit(&s);
}

TEST(counts_loops_and_effects) {
  survey s = survey_text(kernel_text(
      "for (let a = 0u; a < n; a++) {\nwhile (y[i] > a) { y[i] -= 1; }\n"
      "barrier();\n}\nfor (let b = 0u; b < n; b++) { print(b); }\n"
      "grid_barrier();"));
  const vyre__function_effects *kernel = &s.effects.functions[0];
  CHECK_U64(kernel->loops, 3);
  CHECK_U64(kernel->loop_depth, 2);
  CHECK(kernel->flags & VYRE__OPF_BARRIER);
  CHECK(kernel->flags & VYRE__OPF_GRID_BARRIER);
  CHECK(kernel->flags & VYRE__OPF_PRINTS);
  CHECK(!(kernel->flags & VYRE__OPF_ATOMICS));
  CHECK(!kernel->has_uniform);
  CHECK_U64(kernel->inlined_nodes, kernel->nodes);
  survey_deinit(&s);
}

TEST(orders_callees_before_callers) {
  char text[20000];
  snprintf(text, sizeof text,
           "fn a(v: u32) -> u32 { return b(v) + c(v); }\n"
           "fn b(v: u32) -> u32 { return c(v) * workgroup_id.x; }\n"
           "fn c(v: u32) -> u32 { return v; }\n%s",
           kernel_text("y[i] = a(n) + b(n);"));
  survey s = survey_text(text);
  const vyre_program *program = vyre_module_kernel(s.module, 0);
  uint32_t place[4] = {0};
  CHECK_U64(program->function_count, 4);
  for (uint32_t i = 0; i < 4; i++) place[s.effects.order[i]] = i;
  CHECK_U64(place[0], 3); /* the kernel comes last */
  uint64_t whole = 0;
  for (uint32_t f = 0; f < 4; f++) {
    const vyre__function_effects *e = &s.effects.functions[f];
    bool is_c = strcmp(program->functions[f].name, "c") == 0;
    CHECK(is_c == (e->inlined_nodes == e->nodes));
    CHECK(is_c != e->has_workgroup_id);
    if (f > 0 && is_c) CHECK_U64(place[f], 0);
    whole += e->nodes;
  }
  CHECK(s.effects.functions[0].inlined_nodes > whole);
  survey_deinit(&s);
}

static vyre_code sweep_scenario(vyre_allocator allocator, vyre_status *st) {
  vyre_module *module = parse_module(kernel_text("y[i] = n;"));
  vyre_arena arena;
  vyre__effects effects;
  vyre_arena_init(&arena, allocator);
  vyre_code code =
      vyre__effects_build(vyre_module_kernel(module, 0), &arena, &effects, st);
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
  return code;
}

TEST(survives_running_out_of_memory) {
  CHECK(sweep_allocations(sweep_scenario) > 0);
}

TEST_MAIN(TEST_ENTRY(roles_of_buffers_are_derived),
          TEST_ENTRY(counts_loops_and_effects),
          TEST_ENTRY(orders_callees_before_callers),
          TEST_ENTRY(survives_running_out_of_memory))
