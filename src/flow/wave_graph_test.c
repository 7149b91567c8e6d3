/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks wave graphs: results against a plain computation, and reports against
 * plans. */
#include "backend/cpu/cpu.h"
#include "flow/wave_testing.h"

static const vyre_allocator heap;

/* --- results --------------------------------------------------------------- */

static void check_result(const vyre_wave_plan *plan,
                         const vyre_wave_result *result) {
  CHECK_U64(result->submissions, plan->submissions);
  CHECK_U64(result->barriers, plan->barriers);
  CHECK_U64(result->groups, plan->frontier.barriers.group_count);
  CHECK_U64(result->waves, plan->frontier.barriers.wave_count);
  CHECK_U64(result->allocated_bytes, plan->placement.placed_bytes);
  CHECK_U64(result->readback_bytes, plan->readback_bytes);
  CHECK_U64(result->readbacks, 1);
  CHECK_U64(result->waits, 1);
  CHECK_U64(result->iterations, 1);
}

static void check_outputs(const random_graph *g, uint64_t seed,
                          const random_data *got, const random_data *expected) {
  for (uint32_t r = 0; r < g->resources; r++) {
    if (!random_is_output(g, r)) continue;
    for (uint32_t k = 0; k < g->elements; k++) {
      if (got->values[r][k] == expected->values[r][k]) continue;
      fprintf(stderr, "graph %llu, resource %u, element %u\n",
              (unsigned long long)seed, r, k);
      CHECK_U64(got->values[r][k], expected->values[r][k]);
      return;
    }
  }
}

/* Runs a random graph twice, with different inputs. */
static void check_random(const wave_bench *b, uint64_t seed,
                         const vyre_wave_graph_options *options) {
  static random_data got, expected;
  random_graph g = random_graph_make(seed);
  vyre_status st = {0};
  vyre_wave_graph *graph;
  const vyre_wave_plan *plan;
  CHECK_OK(random_graph_build(b, &g, options, &graph, &st), st);
  CHECK_OK(vyre_wave_graph_plan(graph, &plan, &st), st);
  for (uint64_t run = 0; run < 3; run++) {
    vyre_wave_result result;
    random_data_fill(&got, &g, seed + run);
    random_data_fill(&expected, &g, seed + run);
    random_graph_expect(&g, expected.at);
    CHECK_OK(random_graph_run(graph, &g, got.at, &result, NULL, &st), st);
    check_result(plan, &result);
    check_outputs(&g, seed, &got, &expected);
  }
  vyre_wave_graph_release(graph);
}

static uint64_t graph_count(uint64_t otherwise) {
  const char *text = getenv("VYRE_TEST_GRAPHS");
  return text ? strtoull(text, NULL, 10) : otherwise;
}

static void check_device(const char *name, const char *settings,
                         uint64_t graphs, bool is_shared) {
  static const vyre_wave_graph_options apart = {.is_separate = true};
  wave_bench b;
  if (!wave_open(&b, name, settings, heap)) return;
  if (is_shared) ((cpu_device *)b.device)->wave_inline_ns = 0;
  for (uint64_t i = 0; i < graph_count(graphs); i++)
    check_random(&b, i, i % 5 == 4 ? &apart : NULL);
  wave_close(&b);
}

TEST(random_graphs_give_the_plain_result_on_ref) {
  check_device("ref", "", 40, false);
}

TEST(random_graphs_give_the_plain_result_on_cpu) {
  check_device("cpu", "cpu.threads=1", 60, false);
  check_device("cpu", "cpu.threads=2,cpu.width=8", 60, false);
  check_device("cpu", "cpu.threads=7,cpu.width=1", 60, false);
  check_device("cpu", "cpu.threads=2,cpu.width=16", 60, true);
  check_device("cpu", "cpu.threads=7", 30, true);
}

TEST(random_graphs_give_the_plain_result_on_vulkan) {
  check_device("vulkan", "", 15, false);
}

/* --- loops ----------------------------------------------------------------- */

static const char *const devices[] = {"ref", "cpu", "vulkan"};

static vyre_wave_graph *graph_of(const wave_bench *b) {
  vyre_wave_graph *graph;
  vyre_status st = {0};
  CHECK_OK(vyre_wave_graph_create(b->device, NULL, &graph, &st), st);
  return graph;
}

static uint32_t resource_of(vyre_wave_graph *graph, vyre_wave_resource desc) {
  uint32_t id;
  vyre_status st = {0};
  CHECK_OK(vyre_wave_graph_add_resource(graph, &desc, &id, &st), st);
  return id;
}

static void add_wave(const wave_bench *b, vyre_wave_graph *graph,
                     uint32_t kernel, uint32_t count, const uint32_t *r) {
  vyre_wave_binding bindings[4] = {0};
  for (uint32_t i = 0; i < count; i++) bindings[i].resource = r[i];
  vyre_wave_desc desc = {.bindings = bindings, .binding_count = count};
  uint32_t id;
  vyre_status st = {0};
  CHECK_OK(
      vyre_wave_graph_add_wave(graph, b->pipelines[kernel], &desc, &id, &st),
      st);
}

/* n[0] counts down while y grows by 3 x + 1. */
static void check_loop(const wave_bench *b, uint32_t turns, uint64_t max) {
  vyre_wave_graph *graph = graph_of(b);
  uint32_t n = resource_of(
      graph, (vyre_wave_resource){
                 .name = "n", .size = 8, .is_input = true, .is_output = true});
  uint32_t x = resource_of(
      graph, (vyre_wave_resource){.name = "x", .size = 400, .is_input = true});
  uint32_t t =
      resource_of(graph, (vyre_wave_resource){.name = "t", .size = 400});
  uint32_t y = resource_of(
      graph, (vyre_wave_resource){.name = "y", .size = 400, .is_output = true});
  add_wave(b, graph, DOWN, 1, (uint32_t[]){n});
  add_wave(b, graph, PART, 2, (uint32_t[]){x, t});
  add_wave(b, graph, ADD, 2, (uint32_t[]){t, y});
  vyre_status st = {0};
  CHECK_OK(vyre_wave_graph_repeat(graph, n, 0, max, 0, &st), st);
  CHECK_OK(vyre_wave_graph_seal(graph, &st), st);
  for (uint32_t run = 0; run < 3; run++) {
    uint32_t flag[2] = {turns, 0}, hx[100], hy[100];
    for (uint32_t i = 0; i < 100; i++) hx[i] = i * 17 + run;
    vyre_wave_result result;
    vyre_wave_input in[] = {{n, flag, 8}, {x, hx, 400}};
    vyre_wave_output out[] = {{n, flag, 8}, {y, hy, 400}};
    vyre_wave_run r = {.inputs = in,
                       .input_count = 2,
                       .outputs = out,
                       .output_count = 2,
                       .result = &result};
    CHECK_OK(vyre_wave_graph_run(graph, &r, NULL, &st), st);
    uint64_t expected = turns < max ? turns : max;
    CHECK_U64(result.iterations, expected);
    CHECK_U64(result.reached_max, turns > max);
    CHECK_U64(result.waves, 3 * expected);
    CHECK_U64(flag[1], expected);
    for (uint32_t i = 0; i < 100; i++) {
      uint32_t part = i % 3 == 0 ? hx[i] + 7 : 0;
      CHECK_U64(hy[i], (uint32_t)expected * (3 * (uint64_t)part + 1));
    }
  }
  vyre_wave_graph_release(graph);
}

TEST(a_graph_repeats_until_the_flag_falls) {
  for (size_t i = 0; i < 3; i++) {
    for (int is_shared = 0; is_shared < 2; is_shared++) {
      wave_bench b;
      if (!wave_open(&b, devices[i], "", heap)) continue;
      if (i == 1 && is_shared) ((cpu_device *)b.device)->wave_inline_ns = 0;
      check_loop(&b, 0, 5);
      check_loop(&b, 1, 5);
      check_loop(&b, 37, 100);
      check_loop(&b, 9, 4);
      wave_close(&b);
    }
  }
}

/* --- kernels with needs of their own --------------------------------------- */

/* A grid barrier, a uniform that an earlier wave writes, and atomics. */
static void check_special(const wave_bench *b) {
  vyre_wave_graph *graph = graph_of(b);
  uint32_t x = resource_of(
      graph, (vyre_wave_resource){.name = "x", .size = 400, .is_input = true});
  uint32_t y =
      resource_of(graph, (vyre_wave_resource){.name = "y", .size = 400});
  uint32_t z = resource_of(
      graph, (vyre_wave_resource){.name = "z", .size = 400, .is_output = true});
  uint32_t n = resource_of(
      graph, (vyre_wave_resource){.name = "n", .size = 12, .is_output = true});
  uint32_t s = resource_of(
      graph, (vyre_wave_resource){.name = "s", .size = 400, .is_output = true});
  add_wave(b, graph, TWO_PHASES, 3, (uint32_t[]){x, y, z});
  add_wave(b, graph, COUNT, 2, (uint32_t[]){z, n});
  vyre_wave_binding scale[] = {{.resource = z},
                               {.resource = s},
                               {.resource = n, .offset = 4, .size = 4}};
  vyre_wave_desc desc = {.bindings = scale, .binding_count = 3};
  uint32_t id;
  vyre_status st = {0};
  CHECK_OK(
      vyre_wave_graph_add_wave(graph, b->pipelines[SCALE], &desc, &id, &st),
      st);
  CHECK_OK(vyre_wave_graph_seal(graph, &st), st);
  for (uint32_t run = 0; run < 3; run++) {
    uint32_t hx[100], hz[100], hn[3], hs[100], counts[3] = {0};
    for (uint32_t i = 0; i < 100; i++) hx[i] = i * i + 31 * run;
    vyre_wave_input in = {x, hx, 400};
    vyre_wave_output out[] = {{z, hz, 400}, {n, hn, 12}, {s, hs, 400}};
    vyre_wave_run r = {
        .inputs = &in, .input_count = 1, .outputs = out, .output_count = 3};
    CHECK_OK(vyre_wave_graph_run(graph, &r, NULL, &st), st);
    for (uint32_t i = 0; i < 100; i++) {
      uint32_t want = 3 * (hx[99 - i] + 5);
      CHECK_U64(hz[i], want);
      counts[want % 3]++;
    }
    for (uint32_t i = 0; i < 3; i++) CHECK_U64(hn[i], counts[i]);
    for (uint32_t i = 0; i < 100; i++)
      CHECK_U64(hs[i], (uint64_t)counts[1] * hz[i]);
  }
  vyre_wave_graph_release(graph);
}

TEST(waves_have_grid_barriers_atomics_and_uniforms_of_other_waves) {
  for (size_t i = 0; i < 3; i++) {
    wave_bench b;
    if (!wave_open(&b, devices[i], "", heap)) continue;
    check_special(&b);
    wave_close(&b);
  }
}

/* --- external and kept resources ------------------------------------------- */

static void check_external(const wave_bench *b) {
  vyre_wave_graph *graph = graph_of(b);
  uint32_t x = resource_of(
      graph,
      (vyre_wave_resource){.name = "x", .size = 80, .is_external = true});
  uint32_t total = resource_of(
      graph,
      (vyre_wave_resource){
          .name = "total", .size = 80, .is_kept = true, .is_output = true});
  add_wave(b, graph, ADD, 2, (uint32_t[]){x, total});
  vyre_status st = {0};
  CHECK_OK(vyre_wave_graph_seal(graph, &st), st);
  vyre_buffer buffers[2];
  uint32_t host[2][40], got[20], expected[20] = {0};
  for (uint32_t k = 0; k < 2; k++) {
    for (uint32_t i = 0; i < 40; i++) host[k][i] = 100 * k + i;
    CHECK_OK(vyre_buffer_create(b->device, 160, &buffers[k], &st), st);
    CHECK_OK(vyre_buffer_upload(b->device, buffers[k], 0, host[k], 160, &st),
             st);
  }
  for (uint32_t run = 0; run < 6; run++) {
    uint32_t k = run % 2, at = run == 3 ? 20 : 0;
    vyre_wave_external e = {x, buffers[k], 4 * (uint64_t)at};
    vyre_wave_output out = {total, got, 80};
    vyre_wave_run r = {.externals = &e,
                       .external_count = 1,
                       .outputs = &out,
                       .output_count = 1};
    CHECK_OK(vyre_wave_graph_run(graph, &r, NULL, &st), st);
    for (uint32_t i = 0; i < 20; i++) {
      expected[i] += 3 * host[k][at + i] + 1;
      CHECK_U64(got[i], expected[i]);
    }
  }
  CHECK_OK(vyre_buffer_destroy(b->device, buffers[1], &st), st);
  vyre_wave_external stale = {x, buffers[1], 0};
  vyre_wave_output out = {total, got, 80};
  vyre_wave_run r = {.externals = &stale,
                     .external_count = 1,
                     .outputs = &out,
                     .output_count = 1};
  CHECK_FAILS(vyre_wave_graph_run(graph, &r, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_STALE_HANDLE);
  stale.buffer = buffers[0];
  CHECK_OK(vyre_wave_graph_run(graph, &r, NULL, &st), st);
  CHECK_OK(vyre_buffer_destroy(b->device, buffers[0], &st), st);
  vyre_wave_graph_release(graph);
}

TEST(external_buffers_change_between_runs_and_kept_ones_stay) {
  for (size_t i = 0; i < 3; i++) {
    wave_bench b;
    if (!wave_open(&b, devices[i], "", heap)) continue;
    check_external(&b);
    wave_close(&b);
  }
}

/* --- plans ----------------------------------------------------------------- */

/* 40 waves in a row, each reads what the one before wrote. */
static vyre_code chain_plan(const wave_bench *b, uint64_t budget,
                            vyre_wave_graph **graph,
                            const vyre_wave_plan **plan, vyre_status *st) {
  const vyre_wave_graph_options options = {.budget_bytes = budget};
  char name[8];
  CHECK_OK(vyre_wave_graph_create(b->device, &options, graph, st), *st);
  for (uint32_t i = 0; i < 41; i++) {
    (void)snprintf(name, sizeof name, "r%u", i % 100);
    (void)resource_of(*graph, (vyre_wave_resource){.name = name,
                                                   .size = 1024,
                                                   .is_input = i == 0,
                                                   .is_output = i == 40});
  }
  for (uint32_t i = 0; i < 40; i++)
    add_wave(b, *graph, PART, 2, (uint32_t[]){i, i + 1});
  return vyre_wave_graph_plan(*graph, plan, st);
}

TEST(resources_of_a_chain_share_two_places) {
  wave_bench b;
  vyre_wave_graph *graph;
  const vyre_wave_plan *plan;
  vyre_status st = {0};
  CHECK(wave_open(&b, "ref", "", heap));
  CHECK_OK(chain_plan(&b, 0, &graph, &plan, &st), st);
  CHECK_U64(plan->placement.placed_bytes, 2048);
  CHECK_U64(plan->separate_bytes, UINT64_C(41) * 1024);
  CHECK_U64(plan->readback_bytes, 1024);
  CHECK_U64(plan->frontier.amortized_readback_bytes, 1024);
  CHECK_U64(plan->frontier.barriers.group_count, 40);
  CHECK_U64(plan->submissions, 1);
  vyre_wave_graph_release(graph);
  CHECK_OK(chain_plan(&b, 2048, &graph, &plan, &st), st);
  vyre_wave_graph_release(graph);
  CHECK_FAILS(chain_plan(&b, 2047, &graph, &plan, &st), st, VYRE_PLAN_REJECTED,
              VYRE_KIND_GROUP_OVER_BUDGET);
  CHECK_U64(status_number(&st, "smallest_budget_bytes"), 2048);
  vyre_wave_graph_release(graph);
  wave_close(&b);
}

TEST(parts_of_the_map_cover_every_workgroup_once) {
  wave_bench b;
  vyre_status st = {0};
  if (!wave_open(&b, "cpu", "cpu.threads=3", heap)) return;
  for (uint64_t seed = 0; seed < 30; seed++) {
    random_graph g = random_graph_make(seed);
    vyre_wave_graph *graph;
    const vyre_wave_plan *plan;
    CHECK_OK(random_graph_build(&b, &g, NULL, &graph, &st), st);
    CHECK_OK(vyre_wave_graph_plan(graph, &plan, &st), st);
    const vyre_barrier_plan *groups = &plan->frontier.barriers;
    uint64_t next[MAX_WAVES] = {0};
    for (size_t i = 0; i < groups->group_count; i++) {
      uint32_t thread = 0;
      for (uint32_t k = plan->part_offsets[i]; k < plan->part_offsets[i + 1];
           k++) {
        const vyre_wave_share *part = &plan->parts[k];
        CHECK(part->thread >= thread && part->thread < 3);
        thread = part->thread;
        CHECK_U64(part->first_group, next[part->wave]);
        next[part->wave] += part->group_count;
      }
    }
    for (uint32_t i = 0; i < g.waves; i++) {
      /* mix and add cover the resource, part too: the grid is that of the
       * largest buffer */
      CHECK_U64(next[i], (g.elements + 31) / 32);
    }
    vyre_wave_graph_release(graph);
  }
  wave_close(&b);
}

TEST(declared_dependencies_must_order_what_conflicts) {
  static const vyre_wave_graph_options declared = {.declared_only = true};
  wave_bench b;
  vyre_wave_graph *graph;
  const vyre_wave_plan *plan;
  vyre_status st = {0};
  CHECK(wave_open(&b, "ref", "", heap));
  CHECK_OK(vyre_wave_graph_create(b.device, &declared, &graph, &st), st);
  uint32_t x = resource_of(
      graph, (vyre_wave_resource){.name = "x", .size = 80, .is_input = true});
  uint32_t y = resource_of(
      graph, (vyre_wave_resource){.name = "y", .size = 80, .is_output = true});
  uint32_t t =
      resource_of(graph, (vyre_wave_resource){.name = "t", .size = 80});
  add_wave(&b, graph, ADD, 2,
           (uint32_t[]){t, y}); /* the consumer comes first */
  add_wave(&b, graph, PART, 2, (uint32_t[]){x, t});
  CHECK_FAILS(vyre_wave_graph_plan(graph, &plan, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_WAVE);
  CHECK_HAS(st.message, "'t'");
  CHECK_OK(vyre_wave_graph_add_dependency(graph, 1, 0, &st), st);
  CHECK_OK(vyre_wave_graph_plan(graph, &plan, &st), st);
  CHECK_U64(plan->frontier.barriers.waves[0], 1);
  CHECK_OK(vyre_wave_graph_add_dependency(graph, 0, 1, &st), st);
  CHECK_FAILS(vyre_wave_graph_plan(graph, &plan, &st), st, VYRE_PLAN_REJECTED,
              VYRE_KIND_CYCLE);
  vyre_wave_graph_release(graph);
  wave_close(&b);
}

/* --- failures -------------------------------------------------------------- */

/* Every operation of a run fails once; then the next run is right. */
TEST(a_run_after_a_fault_is_right) {
  static const char *const faults[] = {"submit:1", "upload:1", "download:1",
                                       "wait:1", "upload:2"};
  static random_data got, expected;
  for (size_t d = 0; d < 3; d++) {
    wave_bench b;
    vyre_status st = {0};
    if (!wave_open(&b, devices[d], "", heap)) continue;
    random_graph g = random_graph_make(3);
    vyre_wave_graph *graph;
    CHECK_OK(random_graph_build(&b, &g, NULL, &graph, &st), st);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
      CHECK_OK(vyre_context_inject_faults(b.context, faults[i], &st), st);
      random_data_fill(&got, &g, i);
      vyre_code code = random_graph_run(graph, &g, got.at, NULL, NULL, &st);
      bool may_pass = i >= 3; /* ref and cpu have no waits */
      CHECK(may_pass || code != VYRE_OK);
      if (code != VYRE_OK) CHECK(st.kind == VYRE_KIND_INJECTED_FAULT);
      CHECK_OK(vyre_context_inject_faults(b.context, "", &st), st);
      random_data_fill(&got, &g, i);
      random_data_fill(&expected, &g, i);
      random_graph_expect(&g, expected.at);
      CHECK_OK(random_graph_run(graph, &g, got.at, NULL, NULL, &st), st);
      check_outputs(&g, i, &got, &expected);
    }
    CHECK_OK(vyre_context_inject_faults(b.context, "device_lost:1", &st), st);
    CHECK(random_graph_run(graph, &g, got.at, NULL, NULL, &st) ==
          VYRE_DEVICE_LOST);
    CHECK(random_graph_run(graph, &g, got.at, NULL, NULL, &st) ==
          VYRE_DEVICE_LOST);
    vyre_wave_graph_release(graph);
    wave_close(&b);
  }
}

/* Builds and runs a graph with a fence. */
static vyre_code allocating(const wave_bench *b, vyre_status *st) {
  static random_data data;
  random_graph g = random_graph_make(11);
  vyre_wave_graph *graph = NULL;
  vyre_fence *fence = NULL;
  random_data_fill(&data, &g, 1);
  vyre_code code = random_graph_build(b, &g, NULL, &graph, st);
  if (code == VYRE_OK)
    code = random_graph_run(graph, &g, data.at, NULL, NULL, st);
  if (code == VYRE_OK)
    code = random_graph_run(graph, &g, data.at, NULL, &fence, st);
  if (code == VYRE_OK) code = vyre_fence_wait(fence, VYRE_WAIT_FOREVER, st);
  while (fence && !vyre_fence_is_done(fence)) {
  }
  vyre_fence_release(fence);
  vyre_wave_graph_release(graph);
  return code;
}

TEST(every_failed_allocation_is_reported_and_leaks_nothing) {
  for (size_t d = 0; d < 2; d++) {
    test_heap counted = {.left = -1};
    wave_bench b;
    vyre_status st = {0};
    if (!wave_open(&b, devices[d], "", test_heap_allocator(&counted))) continue;
    CHECK_OK(allocating(&b, &st), st);
    for (long n = 0;; n++) {
      size_t live = counted.live_bytes;
      counted.left = n;
      vyre_code code = allocating(&b, &st);
      counted.left = -1;
      CHECK(counted.live_bytes <= live + 65536); /* spare memory of pipelines */
      if (code == VYRE_OK) break;
      CHECK(code == VYRE_OUT_OF_MEMORY || code == VYRE_DEVICE_OUT_OF_MEMORY);
      CHECK(st.message[0] && st.fix[0]);
    }
    CHECK_OK(allocating(&b, &st), st);
    wave_close(&b);
    CHECK_U64(counted.live_bytes, 0);
  }
}

TEST(a_timeout_ends_a_run_and_the_next_one_works) {
  for (size_t d = 0; d < 2; d++) {
    wave_bench b;
    vyre_status st = {0};
    if (!wave_open(&b, devices[d], "", heap)) continue;
    vyre_wave_graph *graph = graph_of(&b);
    uint32_t n = resource_of(
        graph,
        (vyre_wave_resource){
            .name = "n", .size = 8, .is_input = true, .is_output = true});
    add_wave(&b, graph, DOWN, 1, &n);
    add_wave(&b, graph, HANG, 1, &n);
    CHECK_OK(vyre_wave_graph_seal(graph, &st), st);
    uint32_t data[2] = {5, 0};
    vyre_wave_input in = {n, data, 8};
    vyre_wave_output out = {n, data, 8};
    vyre_wave_run run = {.inputs = &in,
                         .input_count = 1,
                         .outputs = &out,
                         .output_count = 1,
                         .timeout_ns = 20000000};
    CHECK_FAILS(vyre_wave_graph_run(graph, &run, NULL, &st), st,
                VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT);
    CHECK_U64(status_number(&st, "wave"), 1);
    data[0] = 1;
    data[1] = 0;
    run.timeout_ns = 10000000000;
    CHECK_OK(vyre_wave_graph_run(graph, &run, NULL, &st), st);
    CHECK_U64(data[0], 0);
    CHECK_U64(data[1], 1);
    vyre_wave_graph_release(graph);
    wave_close(&b);
  }
}

TEST(wrong_memory_of_a_run_is_refused_by_name) {
  wave_bench b;
  vyre_status st = {0};
  CHECK(wave_open(&b, "ref", "", heap));
  vyre_wave_graph *graph = graph_of(&b);
  uint32_t x = resource_of(
      graph, (vyre_wave_resource){.name = "x", .size = 80, .is_input = true});
  uint32_t y = resource_of(
      graph, (vyre_wave_resource){.name = "y", .size = 80, .is_output = true});
  add_wave(&b, graph, PART, 2, (uint32_t[]){x, y});
  uint32_t data[20] = {0};
  vyre_wave_input in[] = {{x, data, 80}, {x, data, 80}};
  vyre_wave_output out = {y, data, 80};
  vyre_wave_run run = {
      .inputs = in, .input_count = 1, .outputs = &out, .output_count = 1};
  CHECK_FAILS(vyre_wave_graph_run(graph, &run, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_OK(vyre_wave_graph_seal(graph, &st), st);
  run.input_count = 0;
  CHECK_FAILS(vyre_wave_graph_run(graph, &run, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  CHECK_HAS(st.message, "'x'");
  run.input_count = 2;
  CHECK_FAILS(vyre_wave_graph_run(graph, &run, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  CHECK_HAS(st.message, "twice");
  run.input_count = 1;
  out.size = 76;
  CHECK_FAILS(vyre_wave_graph_run(graph, &run, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  CHECK_U64(status_number(&st, "expected_bytes"), 80);
  out.size = 80;
  out.resource = 77;
  CHECK_FAILS(vyre_wave_graph_run(graph, &run, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  out.resource = y;
  CHECK_OK(vyre_wave_graph_run(graph, &run, NULL, &st), st);
  vyre_wave_graph_release(graph);
  wave_close(&b);
}

TEST_MAIN(
    TEST_ENTRY(random_graphs_give_the_plain_result_on_ref),
    TEST_ENTRY(random_graphs_give_the_plain_result_on_cpu),
    TEST_ENTRY(random_graphs_give_the_plain_result_on_vulkan),
    TEST_ENTRY(a_graph_repeats_until_the_flag_falls),
    TEST_ENTRY(waves_have_grid_barriers_atomics_and_uniforms_of_other_waves),
    TEST_ENTRY(external_buffers_change_between_runs_and_kept_ones_stay),
    TEST_ENTRY(resources_of_a_chain_share_two_places),
    TEST_ENTRY(parts_of_the_map_cover_every_workgroup_once),
    TEST_ENTRY(declared_dependencies_must_order_what_conflicts),
    TEST_ENTRY(a_run_after_a_fault_is_right),
    TEST_ENTRY(every_failed_allocation_is_reported_and_leaks_nothing),
    TEST_ENTRY(a_timeout_ends_a_run_and_the_next_one_works),
    TEST_ENTRY(wrong_memory_of_a_run_is_refused_by_name))
