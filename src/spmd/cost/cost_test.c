/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests the cost model and the choice of the vector width on small kernels. */
#include "vyre/vyre.h"

#include "lir/lir.h"
#include "spmd/cost/vector_width.h"
#include "support/check.h"

static vyre__width_choice choose(const char *text, const char *cpu,
                                 uint32_t lanes, bool all) {
  const vyre__target target = {.math = VYRE__MATH_F64};
  const vyre__schedule_options with = {.lanes = lanes};
  const vyre__lir_kernel *kernel;
  const vyre__shared_layout *layouts;
  vyre__width_choice choice;
  vyre_module *module;
  vyre_arena arena;
  vyre_status st = {0};
  vyre_arena_init(&arena, (vyre_allocator){0});
  CHECK_OK(vyre_module_parse(text, strlen(text), "cost", (vyre_allocator){0},
                             &module, NULL, &st),
           st);
  CHECK_OK(vyre__lower(vyre_module_kernel(module, 0), &target,
                       VYRE__PASS_LEGALIZE_CONTROL, &arena, &kernel, NULL, &st),
           st);
  CHECK_OK(vyre__prepare_kernel(kernel, 0, &arena, &kernel, &layouts, &st), st);
  CHECK_OK(vyre__choose_width(kernel, &with, vyre__cost_machine_of(cpu, lanes),
                              all, &arena, &choice, &st),
           st);
  vyre_arena_deinit(&arena);
  vyre_module_release(module);
  return choice;
}

static const vyre__cost *at_width(const vyre__width_choice *c, uint32_t width) {
  for (uint32_t i = 0; i < VYRE__WIDTHS; i++) {
    if (c->costs[i].width == width) return &c->costs[i];
  }
  CHECK(false);
  return NULL;
}

static const char plain[] =
    "kernel plain workgroup(256) over(y)\n"
    "buffer x : read f32[] @0;\nbuffer y : read_write f32[] @1;\n"
    "{ let i = global_id.x; y[i] = fma(x[i], 2.0, y[i]); }\n";

static const char csr[] =
    "kernel csr workgroup(64) over(y)\n"
    "buffer starts : read u32[] @0;\nbuffer cols : read u32[] @1;\n"
    "buffer x : read f32[] @2;\nbuffer y : read_write f32[] @3;\n"
    "{ let i = global_id.x; var s = 0.0;\n"
    "  for (let k = starts[i]; k < starts[i + 1]; k++) s += x[cols[k]];\n"
    "  y[i] = s; }\n";

static const char tile[] =
    "kernel tile workgroup(16, 16)\n"
    "buffer x : read f32[] @0;\nbuffer y : read_write f32[] @1;\n"
    "shared t : f32[256];\n"
    "{ let l = local_id.y * 16 + local_id.x;\n"
    "  let i = global_id.y * 4096 + global_id.x;\n"
    "  t[l] = x[i]; barrier();\n"
    "  y[i] = t[l] + t[local_id.y * 16 + 15 - local_id.x]; }\n";

static const char chain[] =
    "kernel chain workgroup(64) over(y)\n"
    "buffer y : read_write u32[] @0;\n"
    "{ let i = global_id.x; var s = i * 2654435761u + 1;\n"
    "  for (let k = 0u; k < 256; k++) { s ^= s << 13; s ^= s >> 17;\n"
    "    s ^= s << 5; }\n"
    "  y[i] = s; }\n";

static const char divide[] =
    "kernel divide workgroup(64) over(y)\n"
    "buffer x : read u32[] @0;\nbuffer y : read_write u32[] @1;\n"
    "uniform m : u32 @2;\n"
    "{ let i = global_id.x; y[i] = x[i] % m; }\n";

static const char counter[] =
    "kernel counter workgroup(64)\n"
    "buffer x : read u32[] @0;\nbuffer n : read_write u32[1] @1;\n"
    "{ let i = global_id.x; if (i < len(x)) atomic_add(n[0], x[i]); }\n";

static const char pushes[] =
    "kernel pushes workgroup(64) over(starts)\n"
    "buffer starts : read u32[] @0;\nbuffer cols : read u32[] @1;\n"
    "buffer seen : read_write u32[] @2;\nbuffer y : read_write u32[] @3;\n"
    "{ let i = global_id.x; var s = 0u;\n"
    "  for (let k = starts[i]; k < starts[i] + (i & 7); k++)\n"
    "    s += atomic_max(seen[cols[k]], i);\n"
    "  y[i] = s; }\n";

static const char *const all_kernels[] = {plain,  csr,     tile,  chain,
                                          divide, counter, pushes};
enum { KERNELS = sizeof all_kernels / sizeof *all_kernels };

TEST(kinds_add_up_to_the_cycles) {
  for (size_t k = 0; k < KERNELS; k++) {
    const vyre__width_choice c = choose(all_kernels[k], "znver5", 16, true);
    for (uint32_t i = 0; i < VYRE__WIDTHS; i++) {
      double sum = 0;
      for (unsigned n = 0; n < VYRE__COST_KINDS; n++) {
        CHECK(c.costs[i].kinds[n] >= 0);
        sum += c.costs[i].kinds[n];
      }
      CHECK(sum > 0.99 * c.costs[i].cycles && sum < 1.01 * c.costs[i].cycles);
      CHECK(c.costs[i].size > 0);
    }
  }
}

TEST(the_width_that_is_chosen_has_a_low_estimate) {
  static const uint32_t lanes[] = {4, 8, 16};
  for (size_t k = 0; k < KERNELS; k++) {
    for (size_t l = 0; l < 3; l++) {
      const vyre__width_choice c = choose(all_kernels[k], NULL, lanes[l], true);
      for (uint32_t i = 0; i < VYRE__WIDTHS; i++) {
        CHECK(0.95 * at_width(&c, c.width)->cycles <= c.costs[i].cycles);
      }
    }
  }
}

/* Widths that are not estimated could not have been chosen. */
TEST(a_choice_with_few_estimates_is_the_same) {
  uint32_t left_out = 0;
  for (size_t k = 0; k < KERNELS; k++) {
    const vyre__width_choice some = choose(all_kernels[k], "znver5", 16, false);
    const vyre__width_choice every = choose(all_kernels[k], "znver5", 16, true);
    CHECK_U64(some.width, every.width);
    for (uint32_t i = 0; i < VYRE__WIDTHS; i++) {
      CHECK(every.costs[i].width);
      left_out += !some.costs[i].width;
    }
  }
  CHECK(left_out > 0);
}

TEST(straight_code_takes_several_registers) {
  const vyre__width_choice c = choose(plain, "znver5", 16, true);
  CHECK(c.width >= 16);
  CHECK(at_width(&c, 1)->cycles > 6 * at_width(&c, 16)->cycles);
  CHECK(at_width(&c, 16)->kinds[VYRE__COST_GATHER] == 0);
}

TEST(rows_of_other_lengths_are_not_vectors) {
  const vyre__width_choice c = choose(csr, "znver5", 16, true);
  CHECK_U64(c.width, 1);
  CHECK(at_width(&c, 16)->kinds[VYRE__COST_GATHER] > 0);
  CHECK(at_width(&c, 16)->kinds[VYRE__COST_DIVERGENCE] > 0);
  CHECK_U64(choose(pushes, "znver5", 16, false).width, 1);
}

/* At width 32, a vector would span two rows of the tile. */
TEST(a_vector_is_not_longer_than_a_row_of_a_tile) {
  const vyre__width_choice c = choose(tile, "znver5", 16, true);
  CHECK_U64(c.width, 16);
  CHECK(at_width(&c, 32)->cycles > 1.2 * at_width(&c, 16)->cycles);
}

/* Two registers hide the latency of a chain that one register waits for. */
TEST(a_chain_of_operations_takes_its_latency) {
  const vyre__width_choice c = choose(chain, "znver5", 16, true);
  CHECK_U64(c.width, 32);
  CHECK(at_width(&c, 16)->kinds[VYRE__COST_LATENCY] > 0);
}

TEST(integers_are_divided_in_vectors) {
  const vyre__width_choice c = choose(divide, "znver5", 16, true);
  CHECK(c.width >= 16);
  CHECK(at_width(&c, 1)->kinds[VYRE__COST_DIVISION] >
        4 * at_width(&c, 16)->kinds[VYRE__COST_DIVISION]);
}

TEST(atomics_on_one_element_are_combined) {
  const vyre__width_choice c = choose(counter, "znver5", 16, true);
  CHECK(at_width(&c, 1)->kinds[VYRE__COST_ATOMIC] >
        4 * at_width(&c, 16)->kinds[VYRE__COST_ATOMIC]);
}

TEST(every_processor_has_costs) {
  static const struct {
    const char *name;
    uint32_t lanes;
    const char *want;
  } cases[] = {{"znver5", 16, "znver5"},
               {"znver4", 16, "znver4"},
               {"emeraldrapids", 16, "sapphirerapids"},
               {"znver3", 8, "haswell"},
               {"no-such-processor", 8, "haswell"},
               {"no-such-processor", 4, "x86-64-v2"},
               {NULL, 16, "sapphirerapids"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const vyre__cost_machine *m =
        vyre__cost_machine_of(cases[i].name, cases[i].lanes);
    CHECK_TEXT(m->name, cases[i].want);
    for (unsigned k = 0; k < VYRE__CLASS_COUNT_ALL; k++) {
      CHECK(m->scalar[k] > 0);
      CHECK(m->vector[k] > 0 || k == VYRE__CLASS_DIVIDE_WIDE);
    }
    CHECK(m->wide > 0 && m->load > 0 && m->store > 0 && m->gather > 0);
    CHECK(m->scatter > 0 && m->lane > 0 && m->atomic > 0);
    CHECK(m->simple_latency > 0 && m->gather_latency > 0);
  }
}

TEST_MAIN(TEST_ENTRY(kinds_add_up_to_the_cycles),
          TEST_ENTRY(the_width_that_is_chosen_has_a_low_estimate),
          TEST_ENTRY(a_choice_with_few_estimates_is_the_same),
          TEST_ENTRY(straight_code_takes_several_registers),
          TEST_ENTRY(rows_of_other_lengths_are_not_vectors),
          TEST_ENTRY(a_vector_is_not_longer_than_a_row_of_a_tile),
          TEST_ENTRY(a_chain_of_operations_takes_its_latency),
          TEST_ENTRY(integers_are_divided_in_vectors),
          TEST_ENTRY(atomics_on_one_element_are_combined),
          TEST_ENTRY(every_processor_has_costs))
