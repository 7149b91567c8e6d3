/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suite flow.queue: device work queues on all processors, against the same
 * walks in plain C on one thread. Results are checked before times are taken.
 *
 * $VYRE_BENCH_SCALE is the logarithm of the items of the trees (default 24). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vyre/vyre.h"

#include "bench.h"

static const char suite[] = "flow.queue";

enum { ROUNDS = 7 };

static const char text[] =
    "kernel ordered queue(u32)\n"
    "buffer depth : read_write u32[] @0;\n"
    "uniform n : u32 @1;\n"
    "{ if (2 * item + 1 < n) push(2 * item + 1);\n"
    "  if (2 * item + 2 < n) push(2 * item + 2); }\n"
    "kernel unordered queue(u32) any\n"
    "buffer depth : read_write u32[] @0;\n"
    "uniform n : u32 @1;\n"
    "{ if (2 * item + 1 < n) push(2 * item + 1);\n"
    "  if (2 * item + 2 < n) push(2 * item + 2); }\n"
    "kernel path queue(u32) once(depth)\n"
    "buffer depth : read_write u32[] @0;\n"
    "uniform n : u32 @1;\n"
    "{ depth[item] = window; if (item + 1 < n) push(item + 1); }\n"
    /* as many items as n has, as a forest of n / 2^20 trees */
    "kernel forest queue(node: u32, tree: u32) any\n"
    "buffer depth : read_write u32[] @0;\n"
    "uniform n : u32 @1;\n"
    "{ if (node == 0 && tree + 1 < n) push(0, tree + 1);\n"
    "  if (2 * node + 1 < 1048575) push(2 * node + 1, tree);\n"
    "  if (2 * node + 2 < 1048575) push(2 * node + 2, tree); }\n"
    "kernel sum queue(u32) any\n"
    "buffer depth : read_write u32[] @0;\n"
    "uniform n : u32 @1;\n"
    "{ atomic_add(depth[0], item);\n"
    "  if (2 * item + 1 < n) push(2 * item + 1);\n"
    "  if (2 * item + 2 < n) push(2 * item + 2); }\n";

enum { ORDERED, UNORDERED, PATH, FOREST, SUM };

typedef struct ours {
  vyre_queue *queue;
  uint32_t n, *depth;
  size_t depth_count;
  vyre_queue_stats stats;
} ours;

static bool run_ours(void *self) {
  static const uint32_t root[2];
  ours *o = self;
  vyre_status st = {0};
  const vyre_input in[] = {
      vyre_input_bytes(o->depth, o->depth_count * sizeof *o->depth),
      vyre_input_bytes(&o->n, sizeof o->n)};
  const vyre_output out =
      vyre_output_bytes(o->depth, o->depth_count * sizeof *o->depth);
  const vyre_dispatch_desc desc = {
      .inputs = in, .input_count = 2, .outputs = &out, .output_count = 1};
  return vyre_queue_fill(o->queue, root, 1, &st) == VYRE_OK &&
         vyre_queue_run(o->queue, &desc, &o->stats, NULL, &st) == VYRE_OK;
}

/* --- plain C ---------------------------------------------------------------------*/

typedef struct walk {
  uint32_t *now, *later;
  uint32_t n;
  uint64_t items;
} walk;

static bool walk_tree(void *self) {
  walk *w = self;
  uint32_t *now = w->now, *later = w->later;
  uint64_t count = 1;
  w->items = 0;
  now[0] = 0;
  while (count > 0) {
    uint64_t next = 0;
    for (uint64_t i = 0; i < count; i++) {
      const uint32_t item = now[i];
      if (2 * item + 1 < w->n) later[next++] = 2 * item + 1;
      if (2 * item + 2 < w->n) later[next++] = 2 * item + 2;
    }
    w->items += count;
    uint32_t *swapped = now;
    now = later;
    later = swapped;
    count = next;
  }
  return true;
}

/* --- rows ------------------------------------------------------------------------*/

static vyre_queue *make(vyre_device *device, const vyre_module *module,
                        size_t kernel, const vyre_queue_options *options) {
  vyre_queue *queue;
  vyre_status st = {0};
  if (vyre_queue_create(device, vyre_module_kernel(module, kernel), options,
                        &queue, NULL, &st) != VYRE_OK) {
    bench_fail(suite, st.message);
  }
  return queue;
}

static void expect(const ours *o, uint64_t items) {
  if (o->stats.items == items) return;
  bench_fail(suite, "a queue ran another number of items than plain C");
}

/* Compares two jobs; the row has items per second. */
static void row(const char *name, double items, const char *unit, bench_job a,
                const char *peer, bench_job b, int rounds) {
  if (strcmp(unit, "s") == 0) items = 1e9; /* of a run, not of an item */
  bench_times own, other;
  bench_pair(a, b, rounds, 1, &own, &other);
  const bool is_rate = strcmp(unit, "M/s") == 0;
  const double scale = is_rate ? 1e3 : 1;
  const bench_result result = {
      .suite = suite,
      .name = name,
      .unit = unit,
      .value = is_rate ? items * scale / own.median : own.median / items,
      .best = is_rate ? items * scale / own.minimum : own.minimum / items,
      .peer = peer,
      .peer_value = !b.run    ? 0
                    : is_rate ? items * scale / other.median
                              : other.median / items,
      .peer_best = !b.run    ? 0
                   : is_rate ? items * scale / other.minimum
                             : other.minimum / items,
      .ratio = b.run ? other.median / own.median : 0,
      .note = ""};
  bench_row_show(&result);
}

static void bench_trees(vyre_device *device, const vyre_module *module,
                        uint32_t n) {
  uint32_t depth = 0;
  const vyre_queue_options wide = {.capacity = n};
  const vyre_queue_options narrow = {
      .mode = VYRE_QUEUE_MODE_NEWEST, .capacity = n / 50, .max_depth = 32};
  const vyre_queue_options windows = {.mode = VYRE_QUEUE_MODE_WINDOWS,
                                      .capacity = n};
  ours ordered = {make(device, module, ORDERED, &wide), n, &depth, 1, {0}};
  ours any = {make(device, module, UNORDERED, &windows), n, &depth, 1, {0}};
  ours newest = {make(device, module, UNORDERED, &narrow), n, &depth, 1, {0}};
  walk plain = {.now = malloc(n * sizeof(uint32_t)),
                .later = malloc(n * sizeof(uint32_t)),
                .n = n};
  if (!plain.now || !plain.later) bench_fail(suite, "no memory");
  (void)walk_tree(&plain);
  if (!run_ours(&ordered) || !run_ours(&any) || !run_ours(&newest))
    bench_fail(suite, "a queue failed");
  expect(&ordered, plain.items);
  expect(&any, plain.items);
  expect(&newest, plain.items);
  const double items = (double)plain.items;
  row("tree, ordered", items, "M/s", (bench_job){run_ours, &ordered},
      "C, 1 thread", (bench_job){walk_tree, &plain}, ROUNDS);
  row("tree, ordered", items, "M/s", (bench_job){run_ours, &ordered},
      "any, windows", (bench_job){run_ours, &any}, ROUNDS);
  row("tree, 1/50 of the items held", items, "M/s",
      (bench_job){run_ours, &newest}, "oldest first",
      (bench_job){run_ours, &ordered}, ROUNDS);
  vyre_queue_release(ordered.queue);
  vyre_queue_release(any.queue);
  vyre_queue_release(newest.queue);
  free(plain.now);
  free(plain.later);
}

static void bench_path(vyre_device *device, const vyre_module *module) {
  enum { LEVELS = 1000000 };
  const vyre_queue_options options = {.capacity = LEVELS};
  ours o = {make(device, module, PATH, &options),
            LEVELS,
            calloc(LEVELS, sizeof(uint32_t)),
            LEVELS,
            {0}};
  if (!o.depth || !run_ours(&o)) bench_fail(suite, "a queue failed");
  expect(&o, LEVELS);
  if (o.depth[LEVELS - 1] != LEVELS - 1) bench_fail(suite, "wrong depths");
  row("path, per level", LEVELS, "ns", (bench_job){run_ours, &o}, "",
      (bench_job){NULL, NULL}, ROUNDS);
  vyre_queue_release(o.queue);
  free(o.depth);
}

static void bench_forest(vyre_device *device, const vyre_module *module) {
  enum { TREES = 954, NODES = 1048575 };
  uint32_t depth = 0;
  const vyre_queue_options options = {.mode = VYRE_QUEUE_MODE_NEWEST,
                                      .capacity = 65536,
                                      .max_depth = TREES + 20};
  ours o = {make(device, module, FOREST, &options), TREES, &depth, 1, {0}};
  if (!run_ours(&o)) bench_fail(suite, "a queue failed");
  expect(&o, (uint64_t)TREES * NODES);
  row("forest of 954 trees, 65536 places", (double)TREES * NODES, "M/s",
      (bench_job){run_ours, &o}, "", (bench_job){NULL, NULL}, 3);
  vyre_queue_release(o.queue);
}

/* One tree of 1e9 items, with a sum of all items. */
static void bench_billion(vyre_device *device, const vyre_module *module) {
  enum { ITEMS = 1000000000 };
  const uint64_t all = (uint64_t)ITEMS * (ITEMS - 1) / 2;
  uint32_t sum = 0;
  const vyre_queue_options options = {
      .mode = VYRE_QUEUE_MODE_NEWEST, .capacity = 65536, .max_depth = 30};
  ours o = {make(device, module, SUM, &options), ITEMS, &sum, 1, {0}};
  if (!run_ours(&o)) bench_fail(suite, "a queue failed");
  expect(&o, ITEMS);
  if (sum != (uint32_t)all) bench_fail(suite, "a wrong sum of items");
  row("tree of 1e9 items, 65536 places", 1e9, "s", (bench_job){run_ours, &o},
      "", (bench_job){NULL, NULL}, 3);
  vyre_queue_release(o.queue);
}

void bench_flow_queue(void) {
  vyre_status st = {0};
  vyre_device *device;
  vyre_module *module;
  const char *scale = getenv("VYRE_BENCH_SCALE");
  const int bits = scale ? atoi(scale) : 24;
  if (vyre_device_open(NULL, "cpu", &device, &st) != VYRE_OK ||
      vyre_module_parse(text, strlen(text), "queue.vyre", (vyre_allocator){0},
                        &module, NULL, &st) != VYRE_OK) {
    bench_fail(suite, st.message);
  }
  bench_trees(device, module, UINT32_C(1) << (bits > 26 ? 26 : bits));
  bench_path(device, module);
  if (bits >= 24) {
    bench_forest(device, module);
    bench_billion(device, module);
  }
  vyre_module_release(module);
  vyre_device_release(device);
}
