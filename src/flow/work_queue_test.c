/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks work queues: windows, order and results against a plain computation,
 * and figures against plans. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "backend/cpu/cpu.h"
#include "flow/work_queue_testing.h"

static const vyre_allocator heap;

/* Devices that run queues, in the forms that may differ. */
static const struct {
  const char *name, *settings;
  uint32_t block;     /* items of a call; 0: as usual */
  uint64_t inline_ns; /* work that one thread runs; 1: as usual */
} devices[] = {
    {"ref", "", 0, 1},
    {"cpu", "", 0, 1},
    {"cpu", "cpu.threads=1", 0, 1},
    {"cpu", "cpu.threads=2,cpu.width=1", 1, 0},
    {"cpu", "cpu.threads=7,cpu.width=8", 3, 0},
    {"cpu", "cpu.threads=7,cpu.width=16", 512, 0},
    {"cpu", "cpu.threads=2,cpu.width=8", 0, UINT64_MAX},
    {"vulkan", "", 0, 1},
};

typedef void device_case(const queue_bench *b);

static void on_devices(device_case *run) {
  for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
    queue_bench b;
    if (!queue_open(&b, devices[i].name, devices[i].settings, heap)) continue;
    if (strcmp(devices[i].name, "cpu") == 0) {
      cpu_device *cpu = (cpu_device *)b.device;
      cpu->queue_block = devices[i].block;
      if (devices[i].inline_ns != 1) cpu->wave_inline_ns = devices[i].inline_ns;
    }
    run(&b);
    queue_close(&b);
  }
}

static bool is_vulkan(const queue_bench *b) {
  return strncmp(vyre_device_name(b->device), "vulkan", 6) == 0;
}

static vyre_queue *make(const queue_bench *b, size_t kernel,
                        vyre_queue_options options) {
  vyre_queue *queue;
  vyre_status st = {0};
  options.has_order_hash = true;
  CHECK_OK(vyre_queue_create(b->device, vyre_module_kernel(b->module, kernel),
                             &options, &queue, NULL, &st),
           st);
  return queue;
}

/* --- lists ----------------------------------------------------------------- */

enum { VISITS = 64, TREE_ITEMS = 5000 };

typedef struct tree_result {
  uint32_t visits[VISITS];
  uint64_t items, windows, hash;
} tree_result;

/* Walks the tree below @p n from the items of @p roots, level by level. */
static tree_result tree_expect(uint32_t n, const uint32_t *roots,
                               uint32_t root_count) {
  static uint32_t now[4 * TREE_ITEMS], later[4 * TREE_ITEMS];
  tree_result r = {0};
  order_hash h = {0};
  uint32_t count = root_count;
  memcpy(now, roots, root_count * sizeof *now);
  for (; count > 0; r.windows++) {
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; i++) {
      order_hash_item(&h, &now[i], 1);
      r.visits[now[i] % VISITS] += now[i] + 1;
      for (uint32_t k = 1; k <= 2; k++) {
        if (2 * now[i] + k < n) later[next++] = 2 * now[i] + k;
      }
    }
    order_hash_window(&h);
    r.items += count;
    memcpy(now, later, next * sizeof *now);
    count = next;
  }
  r.hash = h.hash;
  return r;
}

static vyre_code tree_run(vyre_queue *queue, uint32_t n, uint32_t *visits,
                          vyre_queue_stats *stats, vyre_status *st) {
  const vyre_input inputs[] = {
      vyre_input_bytes(visits, VISITS * sizeof *visits),
      vyre_input_bytes(&n, sizeof n)};
  const vyre_output outputs[] = {
      vyre_output_bytes(visits, VISITS * sizeof *visits)};
  const vyre_dispatch_desc desc = {.inputs = inputs,
                                   .input_count = 2,
                                   .outputs = outputs,
                                   .output_count = 1};
  return vyre_queue_run(queue, &desc, stats, NULL, st);
}

static void check_tree(const tree_result *expected, const uint32_t *visits,
                       const vyre_queue_stats *stats) {
  for (uint32_t i = 0; i < VISITS; i++)
    CHECK_U64(visits[i], expected->visits[i]);
  CHECK_U64(stats->items, expected->items);
  CHECK_U64(stats->windows, expected->windows);
  CHECK_U64(stats->order_hash, expected->hash);
  CHECK_U64(stats->remaining, 0);
  CHECK_U64(stats->stop, VYRE_QUEUE_STOP_EMPTY);
}

static void check_trees(const queue_bench *b) {
  static const uint32_t roots[] = {0, 7, 7, 3, 1};
  static const uint64_t chunks[] = {0, 1, 7, 1000};
  for (size_t c = 0; c < 4; c++) {
    vyre_queue *queue =
        make(b, TREE, (vyre_queue_options){.items_per_chunk = chunks[c]});
    for (uint32_t n = 1; n < TREE_ITEMS; n = 3 * n + 1) {
      uint32_t visits[VISITS] = {0};
      vyre_queue_stats stats;
      vyre_status st = {0};
      tree_result expected = tree_expect(n, roots, 5);
      CHECK_OK(vyre_queue_fill(queue, roots, 3, &st), st);
      CHECK_OK(vyre_queue_fill(queue, roots + 3, 2, &st), st);
      CHECK_OK(tree_run(queue, n, visits, &stats, &st), st);
      check_tree(&expected, visits, &stats);
      CHECK_U64(stats.pushed, expected.items - 5);
    }
    vyre_queue_release(queue);
  }
}

TEST(a_tree_runs_window_by_window_in_order) {
  on_devices(check_trees);
}

/* Every capacity ends, or stops with all items accounted for; and the run goes
 * on with a larger queue as if it had been that large from the start. */
static void check_capacities(const queue_bench *b) {
  static const uint32_t root = 0;
  const tree_result expected = tree_expect(60, &root, 1);
  for (uint64_t capacity = 1; capacity <= 64; capacity++) {
    uint32_t visits[VISITS] = {0};
    vyre_queue_stats stats;
    vyre_status st = {0};
    uint64_t items = 0, windows = 0, stops = 0, places = capacity, pushed = 0;
    vyre_queue *queue =
        make(b, TREE, (vyre_queue_options){.capacity = capacity});
    CHECK_OK(vyre_queue_fill(queue, &root, 1, &st), st);
    for (;;) {
      vyre_code code = tree_run(queue, 60, visits, &stats, &st);
      items += stats.items;
      windows += stats.windows;
      if (code == VYRE_OK) break;
      CHECK_FAILS(code, st, VYRE_DISPATCH_FAILED, VYRE_KIND_QUEUE_FULL);
      CHECK_U64(stats.stop, VYRE_QUEUE_STOP_FULL);
      uint64_t sufficient = 0;
      CHECK(vyre_status_number_get(&st, "sufficient", &sufficient));
      CHECK(sufficient > places);
      CHECK(stats.high_water <= places);
      CHECK(stats.remaining <= places);
      pushed += stats.pushed;
      CHECK_U64(items + stats.remaining, 1 + pushed);
      CHECK_OK(vyre_queue_resize(queue, sufficient, &st), st);
      places = sufficient;
      CHECK(++stops < 64);
    }
    stats.items = items;
    stats.windows = windows;
    check_tree(&expected, visits, &stats);
    CHECK_U64(stops > 0, capacity < 31);
    vyre_queue_release(queue);
  }
}

TEST(a_full_queue_loses_nothing_and_continues) {
  on_devices(check_capacities);
}

static void check_take(const queue_bench *b) {
  static const uint32_t root = 0;
  uint32_t visits[VISITS] = {0}, rest[64];
  uint64_t count = 0;
  vyre_queue_stats stats;
  vyre_status st = {0};
  vyre_queue_state state;
  vyre_queue *queue = make(b, TREE, (vyre_queue_options){.capacity = 6});
  CHECK_OK(vyre_queue_fill(queue, &root, 1, &st), st);
  CHECK_FAILS(tree_run(queue, 60, visits, &stats, &st), st,
              VYRE_DISPATCH_FAILED, VYRE_KIND_QUEUE_FULL);
  CHECK_OK(vyre_queue_get_state(queue, &state, &st), st);
  CHECK_U64(state.window, 2);
  CHECK_U64(state.position, 2);
  CHECK_U64(state.current, 2);
  CHECK_U64(state.next, 4);
  CHECK_OK(vyre_queue_take(queue, NULL, 0, &count, &st), st);
  CHECK_U64(count, 6);
  CHECK_OK(vyre_queue_take(queue, rest, 64, &count, &st), st);
  static const uint32_t expected[] = {5, 6, 7, 8, 9, 10};
  CHECK(memcmp(rest, expected, sizeof expected) == 0);
  CHECK_OK(vyre_queue_take(queue, NULL, 0, &count, &st), st);
  CHECK_U64(count, 0);
  vyre_queue_release(queue);
}

TEST(items_can_be_taken_from_a_queue_that_stopped) {
  on_devices(check_take);
}

/* --- newest first ----------------------------------------------------------- */

/* Runs the tree in mode NEWEST. Returns the order hash; 0: the queue was
 * full. */
static uint64_t newest_hash(const queue_bench *b, uint32_t n, uint64_t capacity,
                            uint64_t depth) {
  static const uint32_t root = 0;
  uint32_t visits[VISITS] = {0};
  vyre_queue_stats stats;
  vyre_status st = {0};
  const tree_result expected = tree_expect(n, &root, 1);
  vyre_queue *queue = make(b, HEAP,
                           (vyre_queue_options){.mode = VYRE_QUEUE_MODE_NEWEST,
                                                .capacity = capacity,
                                                .max_depth = depth});
  CHECK_OK(vyre_queue_fill(queue, &root, 1, &st), st);
  const vyre_code code = tree_run(queue, n, visits, &stats, &st);
  if (code == VYRE_OK) {
    CHECK_U64(stats.items, expected.items);
    CHECK(memcmp(visits, expected.visits, sizeof visits) == 0);
  } else {
    CHECK_FAILS(code, st, VYRE_DISPATCH_FAILED, VYRE_KIND_QUEUE_FULL);
    CHECK_U64(stats.items + stats.remaining, 1 + stats.pushed);
  }
  CHECK(stats.high_water <= capacity);
  vyre_queue_release(queue);
  return code == VYRE_OK ? stats.order_hash : 0;
}

/* 255 items, paths of 8: 1 + 7 places suffice, and 9 are proven. */
static void check_newest(const queue_bench *b) {
  static uint64_t hashes[64];
  static bool has_hashes;
  for (uint64_t c = 1; c < 64; c = c < 12 ? c + 1 : 2 * c) {
    const uint64_t hash = newest_hash(b, 255, c, 0);
    if (c >= 9) CHECK(hash != 0);
    if (has_hashes) CHECK_U64(hash, hashes[c]);
    hashes[c] = hash;
  }
  has_hashes = true;
  CHECK(newest_hash(b, 255, 9, 8) != 0);
}

TEST(the_newest_items_first_respect_a_budget_in_one_order) {
  on_devices(check_newest);
}

static void check_proof(const queue_bench *b) {
  static const uint32_t root = 0;
  uint32_t visits[VISITS] = {0};
  uint64_t needed = 0;
  vyre_status st = {0};
  vyre_queue *queue = make(
      b, HEAP,
      (vyre_queue_options){
          .mode = VYRE_QUEUE_MODE_NEWEST, .capacity = 12, .max_depth = 12});
  CHECK_OK(vyre_queue_fill(queue, &root, 1, &st), st);
  CHECK_FAILS(tree_run(queue, 4095, visits, NULL, &st), st, VYRE_PLAN_REJECTED,
              VYRE_KIND_OVER_BUDGET);
  CHECK(vyre_status_number_get(&st, "needed", &needed));
  CHECK_U64(needed, 13);
  CHECK_HAS(st.message, "needs 13 items, you gave 12");
  CHECK_U64(visits[0], 0);
  CHECK_OK(vyre_queue_resize(queue, 13, &st), st);
  CHECK_OK(tree_run(queue, 4095, visits, NULL, &st), st);
  vyre_queue_release(queue);
}

TEST(a_budget_that_is_too_small_is_refused_with_the_proof) {
  on_devices(check_proof);
}

/* --- ends ------------------------------------------------------------------- */

static vyre_code one_run(vyre_queue *queue, uint32_t *x,
                         vyre_queue_stats *stats, vyre_status *st) {
  const vyre_input in = vyre_input_bytes(x, 4);
  const vyre_output out = vyre_output_bytes(x, 4);
  const vyre_dispatch_desc desc = {
      .inputs = &in, .input_count = 1, .outputs = &out, .output_count = 1};
  return vyre_queue_run(queue, &desc, stats, NULL, st);
}

static void check_excess(const queue_bench *b) {
  static const uint32_t roots[] = {10, 11};
  uint32_t x = 0;
  uint64_t value = 0;
  vyre_status st = {0};
  vyre_queue_stats stats;
  vyre_queue *queue = make(b, GREEDY, (vyre_queue_options){.capacity = 1000});
  CHECK_OK(vyre_queue_fill(queue, roots, 2, &st), st);
  CHECK_FAILS(one_run(queue, &x, &stats, &st), st, VYRE_DISPATCH_FAILED,
              VYRE_KIND_PUSHES_EXCEEDED);
  CHECK(vyre_status_number_get(&st, "line", &value));
  CHECK_U64(value, greedy_line());
  CHECK(vyre_status_number_get(&st, "item", &value));
  CHECK_U64(value, 1);
  CHECK(vyre_status_number_get(&st, "window", &value));
  CHECK_U64(value, 2);
  CHECK_FAILS(one_run(queue, &x, NULL, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_QUEUE_LOST);
  static const uint32_t later = 50;
  CHECK_OK(vyre_queue_fill(queue, &later, 1, &st), st);
  CHECK_OK(one_run(queue, &x, &stats, &st), st);
  CHECK_U64(stats.items, 51);
  vyre_queue_release(queue);
}

TEST(too_many_pushes_name_the_item_and_the_line) {
  on_devices(check_excess);
}

static void check_windows(const queue_bench *b) {
  static const uint32_t root = 1;
  uint32_t x = 0;
  uint64_t items = 0;
  vyre_status st = {0};
  vyre_queue_stats stats;
  vyre_queue *queue =
      make(b, GREEDY, (vyre_queue_options){.capacity = 100, .max_windows = 5});
  static const uint32_t far = 20;
  (void)root;
  CHECK_OK(vyre_queue_fill(queue, &far, 1, &st), st);
  for (uint32_t run = 0; run < 17; run++) {
    CHECK_OK(one_run(queue, &x, &stats, &st), st);
    CHECK_U64(stats.windows, run < 16 ? 5 : 1);
    CHECK_U64(stats.remaining, run < 16);
    CHECK_U64(stats.stop,
              run < 16 ? VYRE_QUEUE_STOP_MAX_WINDOWS : VYRE_QUEUE_STOP_EMPTY);
    items += stats.items;
  }
  CHECK_U64(items, 81);
  CHECK_U64(x, 81);
  vyre_queue_release(queue);
}

TEST(a_run_can_go_on_after_some_windows) {
  on_devices(check_windows);
}

static void check_timeout(const queue_bench *b) {
  uint32_t x = 0;
  static const uint32_t endless = 10, hanging = 1;
  vyre_status st = {0};
  vyre_queue_stats stats;
  vyre_queue *queue = make(
      b, HANG, (vyre_queue_options){.capacity = 100, .timeout_ns = 30000000});
  CHECK_OK(vyre_queue_fill(queue, &endless, 1, &st), st);
  CHECK_FAILS(one_run(queue, &x, &stats, &st), st, VYRE_DISPATCH_FAILED,
              VYRE_KIND_TIMED_OUT);
  CHECK_U64(stats.stop, VYRE_QUEUE_STOP_TIMEOUT);
  CHECK_U64(stats.remaining, 1);
  CHECK(stats.windows > 0);
  CHECK_OK(vyre_queue_fill(queue, &hanging, 1, &st), st);
  /* Vulkan cannot stop a kernel; the driver ends its loop. */
  CHECK_FAILS(one_run(queue, &x, &stats, &st), st, VYRE_DISPATCH_FAILED,
              is_vulkan(b) ? VYRE_KIND_OUT_OF_FUEL : VYRE_KIND_TIMED_OUT);
  CHECK_FAILS(one_run(queue, &x, &stats, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_QUEUE_LOST);
  vyre_queue_release(queue);
}

TEST(a_timeout_keeps_the_items_unless_a_chunk_hangs) {
  on_devices(check_timeout);
}

static void check_fence(const queue_bench *b) {
  static const uint32_t root = 0;
  uint32_t visits[VISITS] = {0}, n = 500;
  const tree_result expected = tree_expect(n, &root, 1);
  vyre_status st = {0};
  vyre_queue_stats stats;
  vyre_fence *fence;
  const vyre_input inputs[] = {vyre_input_bytes(visits, sizeof visits),
                               vyre_input_bytes(&n, sizeof n)};
  const vyre_output out = vyre_output_bytes(visits, sizeof visits);
  const vyre_dispatch_desc desc = {
      .inputs = inputs, .input_count = 2, .outputs = &out, .output_count = 1};
  vyre_queue *queue = make(b, TREE, (vyre_queue_options){.capacity = 1000});
  CHECK_OK(vyre_queue_fill(queue, &root, 1, &st), st);
  CHECK_OK(vyre_queue_run(queue, &desc, &stats, &fence, &st), st);
  n = 0; /* was copied */
  CHECK_OK(vyre_fence_wait(fence, UINT64_MAX, &st), st);
  vyre_fence_release(fence);
  check_tree(&expected, visits, &stats);
  CHECK(stats.submissions <=
        vyre_queue_max_submissions(vyre_queue_get_plan(queue), stats.chunks));
  CHECK_U64(stats.waits, stats.submissions);
  CHECK_U64(stats.plan_bytes, vyre_queue_get_plan(queue)->memory_bytes);
  vyre_queue_release(queue);
}

TEST(a_run_with_a_fence_copies_its_inputs) {
  on_devices(check_fence);
}

typedef struct canceller {
  vyre_queue *queue;
  atomic_bool has_ended; /* the run */
} canceller;

/* Cancels every 20 ms: a run forgets what came before it. */
static void *cancel_often(void *self) {
  canceller *c = self;
  const struct timespec wait = {.tv_nsec = 20000000};
  while (!atomic_load(&c->has_ended)) {
    (void)nanosleep(&wait, NULL);
    vyre_queue_cancel(c->queue);
  }
  return NULL;
}

static void check_cancel(const queue_bench *b) {
  static const uint32_t endless = 10;
  uint32_t x = 0;
  uint64_t windows = 0;
  vyre_status st = {0};
  vyre_queue_stats stats;
  pthread_t thread;
  vyre_queue *queue = make(b, HANG, (vyre_queue_options){.capacity = 100});
  CHECK_OK(vyre_queue_fill(queue, &endless, 1, &st), st);
  /* a run may be cancelled before its first window */
  for (uint32_t run = 0; run < 2 || (windows == 0 && run < 100); run++) {
    canceller c = {.queue = queue};
    CHECK(pthread_create(&thread, NULL, cancel_often, &c) == 0);
    const vyre_code code = one_run(queue, &x, &stats, &st);
    atomic_store(&c.has_ended, true);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_FAILS(code, st, VYRE_DISPATCH_FAILED, VYRE_KIND_CANCELLED);
    CHECK_U64(stats.stop, VYRE_QUEUE_STOP_CANCELLED);
    CHECK_U64(stats.remaining, 1);
    windows += stats.windows;
  }
  CHECK(windows > 0);
  vyre_queue_release(queue);
}

TEST(another_thread_cancels_a_run_which_can_continue) {
  on_devices(check_cancel);
}

TEST(an_injected_fault_leaves_the_items_as_they_were) {
  static const char *const names[] = {"ref", "cpu"};
  for (size_t i = 0; i < 2; i++) {
    static const uint32_t far = 90;
    uint32_t x = 0;
    vyre_status st = {0};
    vyre_queue_stats stats;
    queue_bench b;
    if (!queue_open(&b, names[i], "", heap)) continue;
    vyre_queue *queue = make(&b, GREEDY, (vyre_queue_options){.capacity = 10});
    CHECK_OK(vyre_queue_fill(queue, &far, 1, &st), st);
    CHECK_OK(vyre_context_inject_faults(b.context, "submit:1", &st), st);
    CHECK_FAILS(one_run(queue, &x, &stats, &st), st, VYRE_DISPATCH_FAILED,
                VYRE_KIND_INJECTED_FAULT);
    CHECK_U64(stats.remaining, 1);
    CHECK_OK(one_run(queue, &x, &stats, &st), st);
    CHECK_U64(stats.items, 11);
    vyre_queue_release(queue);
    queue_close(&b);
  }
}

/* --- items with fields ------------------------------------------------------ */

enum { TWIGS_MAX = 200000, LOG = 97 };

typedef struct twig {
  uint64_t id;
  uint32_t depth;
} twig;

static void check_twigs(const queue_bench *b) {
  twig *now = malloc(TWIGS_MAX * sizeof *now);
  twig *later = malloc(TWIGS_MAX * sizeof *later);
  uint32_t expected[LOG] = {0}, log[LOG] = {0}, depths = 0;
  uint32_t roots[3 * 5], count = 5;
  order_hash h = {0};
  uint64_t items = 0;
  for (size_t i = 0; i < count; i++) {
    now[i] = (twig){(uint64_t)i << 33 | i * 77, 9};
    roots[3 * i] = (uint32_t)now[i].id;
    roots[3 * i + 1] = (uint32_t)(now[i].id >> 32);
    roots[3 * i + 2] = 9;
  }
  for (uint32_t window = 0; count > 0; window++) {
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; i++) {
      const twig t = now[i];
      const uint32_t low = (uint32_t)t.id, high = (uint32_t)(t.id >> 32);
      const uint32_t words[] = {low, high, t.depth};
      const uint32_t hash = (low ^ high ^ window) * 0x9e3779b1u;
      order_hash_item(&h, words, 3);
      expected[(i * 7 + window) % LOG] += low;
      if (t.depth == 0) continue;
      for (uint32_t k = 0; k < (hash >> 13) % 6; k++) {
        if (k == 3 && t.depth % 2 == 1) continue;
        later[next++] = (twig){t.id * 5 + k, t.depth - 1};
      }
    }
    order_hash_window(&h);
    items += count;
    memcpy(now, later, next * sizeof *now);
    count = next;
  }
  CHECK(items > 1000);
  vyre_queue *queue = make(b, TWIGS, (vyre_queue_options){.capacity = 1 << 20});
  vyre_status st = {0};
  vyre_queue_stats stats;
  const vyre_input inputs[] = {vyre_input_bytes(log, sizeof log),
                               vyre_input_bytes(&depths, sizeof depths)};
  const vyre_output outputs[] = {vyre_output_bytes(log, sizeof log)};
  const vyre_dispatch_desc desc = {.inputs = inputs,
                                   .input_count = 2,
                                   .outputs = outputs,
                                   .output_count = 1};
  CHECK_OK(vyre_queue_fill(queue, roots, 5, &st), st);
  CHECK_OK(vyre_queue_run(queue, &desc, &stats, NULL, &st), st);
  CHECK(memcmp(log, expected, sizeof log) == 0);
  CHECK_U64(stats.items, items);
  CHECK_U64(stats.order_hash, h.hash);
  vyre_queue_release(queue);
  free(now);
  free(later);
}

TEST(items_have_fields_and_pushes_keep_their_order) {
  on_devices(check_twigs);
}

/* --- sets -------------------------------------------------------------------*/

static test_graph graph;

/* Runs a kernel over the graph from one vertex. */
static vyre_code graph_run(vyre_queue *queue, uint32_t *values, bool has_n,
                           vyre_queue_stats *stats, vyre_status *st) {
  const size_t size = graph.vertices * sizeof *values;
  const vyre_input inputs[] = {
      vyre_input_bytes(graph.off, size + sizeof *values),
      vyre_input_bytes(graph.adj, graph.edges * sizeof *graph.adj),
      vyre_input_bytes(values, size),
      vyre_input_bytes(&graph.vertices, sizeof graph.vertices)};
  const vyre_output outputs[] = {vyre_output_bytes(values, size)};
  const vyre_dispatch_desc desc = {.inputs = inputs,
                                   .input_count = has_n ? 4 : 3,
                                   .outputs = outputs,
                                   .output_count = 1};
  return vyre_queue_run(queue, &desc, stats, NULL, st);
}

/* Plain breadth-first search: depths, and the hash of ascending windows. */
static uint64_t bfs_expect(uint32_t source, uint32_t *depth) {
  order_hash h = {0};
  memset(depth, 0, graph.vertices * sizeof *depth);
  depth[source] = 1;
  for (uint32_t level = 1;; level++) {
    bool is_empty = true;
    for (uint32_t v = 0; v < graph.vertices; v++) {
      if (depth[v] != level) continue;
      is_empty = false;
      order_hash_item(&h, &v, 1);
      for (uint32_t e = graph.off[v]; e < graph.off[v + 1]; e++) {
        if (depth[graph.adj[e]] == 0) depth[graph.adj[e]] = level + 1;
      }
    }
    if (is_empty) return h.hash;
    order_hash_window(&h);
  }
}

static void check_bfs(const queue_bench *b) {
  static uint32_t got[GRAPH_VERTICES], expected[GRAPH_VERTICES];
  static const uint32_t degrees[] = {0, 2, 3000, 12000, 24000};
  uint64_t pulls = 0;
  for (size_t c = 0; c < 5; c++) {
    graph_make(&graph, c == 0 ? 1 : GRAPH_VERTICES, degrees[c], 11 * c);
    vyre_queue *queue =
        make(b, BFS,
             (vyre_queue_options){.capacity = graph.vertices,
                                  .items_per_chunk = c == 3 ? 10 : 0});
    for (uint32_t k = 0; k < 3; k++) {
      uint32_t source = graph.vertices * k / 3;
      vyre_queue_stats stats;
      vyre_status st = {0};
      uint64_t hash = bfs_expect(source, expected);
      memset(got, 0, sizeof got);
      CHECK_OK(vyre_queue_fill(queue, &source, 1, &st), st);
      CHECK_OK(graph_run(queue, got, false, &stats, &st), st);
      CHECK(memcmp(got, expected, graph.vertices * sizeof *got) == 0);
      CHECK_U64(stats.order_hash, hash);
      pulls += stats.pull_windows;
    }
    vyre_queue_release(queue);
  }
  CHECK(pulls > 0 || is_vulkan(b));
}

TEST(a_search_visits_each_key_once_in_ascending_windows) {
  on_devices(check_bfs);
}

static void check_labels(const queue_bench *b) {
  static uint32_t got[GRAPH_VERTICES], expected[GRAPH_VERTICES],
      all[GRAPH_VERTICES];
  for (uint64_t c = 0; c < 3; c++) {
    vyre_queue_stats stats;
    vyre_status st = {0};
    graph_make(&graph, GRAPH_VERTICES, 2000 + 3000 * (uint32_t)c, c);
    for (uint32_t v = 0; v < GRAPH_VERTICES; v++)
      got[v] = expected[v] = all[v] = v;
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t v = 0; v < graph.vertices; v++) {
        for (uint32_t e = graph.off[v]; e < graph.off[v + 1]; e++) {
          uint32_t to = graph.adj[e];
          if (expected[to] <= expected[v]) continue;
          expected[to] = expected[v];
          changed = true;
        }
      }
    }
    vyre_queue *queue =
        make(b, LABELS, (vyre_queue_options){.capacity = graph.vertices});
    CHECK_OK(vyre_queue_fill(queue, all, graph.vertices, &st), st);
    CHECK_OK(graph_run(queue, got, true, &stats, &st), st);
    CHECK(memcmp(got, expected, sizeof got) == 0);
    CHECK(stats.items >= graph.vertices);
    vyre_queue_release(queue);
  }
}

TEST(a_set_reaches_the_least_fixpoint) {
  on_devices(check_labels);
}

static void check_sssp(const queue_bench *b) {
  static uint32_t got[GRAPH_VERTICES], expected[GRAPH_VERTICES];
  const uint32_t far = UINT32_MAX / 2;
  for (uint64_t c = 0; c < 3; c++) {
    vyre_queue_stats stats;
    vyre_status st = {0};
    uint32_t source = 5;
    graph_make(&graph, GRAPH_VERTICES, 6000 + 6000 * (uint32_t)c, c);
    for (uint32_t v = 0; v < GRAPH_VERTICES; v++)
      got[v] = expected[v] = v == source ? 0 : far;
    for (bool changed = true; changed;) {
      changed = false;
      for (uint32_t v = 0; v < graph.vertices; v++) {
        if (expected[v] == far) continue;
        for (uint32_t e = graph.off[v]; e < graph.off[v + 1]; e++) {
          uint32_t to = graph.adj[e];
          uint32_t length = expected[v] + 1 + (to ^ v) % 19;
          if (expected[to] <= length) continue;
          expected[to] = length;
          changed = true;
        }
      }
    }
    vyre_queue_options options = {.capacity = graph.vertices};
    if (is_vulkan(b)) {
      vyre_queue *none;
      CHECK_FAILS(
          vyre_queue_create(b->device, vyre_module_kernel(b->module, SSSP),
                            &options, &none, NULL, &st),
          st, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
      return;
    }
    vyre_queue *queue = make(b, SSSP, options);
    CHECK_OK(vyre_queue_fill(queue, &source, 1, &st), st);
    CHECK_OK(graph_run(queue, got, false, &stats, &st), st);
    CHECK(memcmp(got, expected, sizeof got) == 0);
    CHECK_U64(stats.priority_fell, 0);
    CHECK(stats.items < UINT64_C(3) * graph.vertices);
    vyre_queue_release(queue);
  }
}

TEST(priorities_settle_the_nearest_keys_first) {
  on_devices(check_sssp);
}

TEST_MAIN(TEST_ENTRY(a_tree_runs_window_by_window_in_order),
          TEST_ENTRY(a_full_queue_loses_nothing_and_continues),
          TEST_ENTRY(items_can_be_taken_from_a_queue_that_stopped),
          TEST_ENTRY(the_newest_items_first_respect_a_budget_in_one_order),
          TEST_ENTRY(a_budget_that_is_too_small_is_refused_with_the_proof),
          TEST_ENTRY(too_many_pushes_name_the_item_and_the_line),
          TEST_ENTRY(a_run_can_go_on_after_some_windows),
          TEST_ENTRY(a_timeout_keeps_the_items_unless_a_chunk_hangs),
          TEST_ENTRY(a_run_with_a_fence_copies_its_inputs),
          TEST_ENTRY(another_thread_cancels_a_run_which_can_continue),
          TEST_ENTRY(an_injected_fault_leaves_the_items_as_they_were),
          TEST_ENTRY(a_search_visits_each_key_once_in_ascending_windows),
          TEST_ENTRY(a_set_reaches_the_least_fixpoint),
          TEST_ENTRY(priorities_settle_the_nearest_keys_first),
          TEST_ENTRY(items_have_fields_and_pushes_keep_their_order))
