/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Queue kernels with vectors, structs, dimensions, tables and private arrays:
 * each gives the same outputs and the same order as a kernel of scalars over
 * the same bytes, on every device. */
#include "flow/work_queue_testing.h"

enum { NODES = 120, WIDTH = 13, HEIGHT = 9, TABLE = 16, EDGES = 3 * NODES };

#define STRUCTS \
  "struct node { first: u32; count: u32; weight: f32; tag: u16; }\n"

#define RICH                                           \
  "buffer nodes : read_write node[] @0;\n"             \
  "buffer edges : read u32x2[] @1;\n"                  \
  "buffer image : read_write u32[height, width] @2;\n" \
  "buffer colors : read_write f32x3[] @3;\n"           \
  "uniform width : u32 @4;\n"                          \
  "uniform height : u32 @5;\n"                         \
  "buffer values : read u32[] @6;\n"

#define FLAT                               \
  "buffer nodes : read_write u32[] @0;\n"  \
  "buffer edges : read u32[] @1;\n"        \
  "buffer image : read_write u32[] @2;\n"  \
  "buffer colors : read_write f32[] @3;\n" \
  "uniform width : u32 @4;\n"              \
  "uniform height : u32 @5;\n"             \
  "buffer values : read u32[] @6;\n"

/* An index of the array is unknown, so that it stays in memory. */
#define FUNCTIONS                                                          \
  "const STEPS : u32[16] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, " \
  "3};\n"                                                                  \
  "fn mixed(h: u32) -> u32 {\n"                                            \
  "    var a: u32[200];\n"                                                 \
  "    for (let k = 0u; k < 200; k++) a[k] = h * (k + 1);\n"               \
  "    a[h % 200] += 7;\n"                                                 \
  "    return a[(h >> 3) % 200] ^ STEPS[h % 16];\n"                        \
  "}\n"                                                                    \
  "fn last_of(n: node) -> u32 { return n.first + n.count; }\n"

#define FLAT_FUNCTIONS                                              \
  "fn mixed(h: u32, step: u32) -> u32 {\n"                          \
  "    let at = (h >> 3) % 200;\n"                                  \
  "    return (h * (at + 1) + (at == h % 200 ? 7u : 0u)) ^ step;\n" \
  "}\n"

static const char rich_text[] = STRUCTS FUNCTIONS
    "kernel list queue(at: u32, left: u32) pushes(6)\n" RICH
    "{\n"
    "    let n = nodes[at];\n"
    "    let h = mixed(at * 77 + left + window);\n"
    "    atomic_add(image[h % height, h % width], n.tag + 1);\n"
    "    if (item_index < len(colors))\n"
    "        colors[item_index] += f32x3(n.weight, 1.0, f32(left));\n"
    "    if (left == 0) return;\n"
    "    for (let e = n.first; e < last_of(n); e++) {\n"
    "        let edge = edges[e];\n"
    "        if (edge.y % 4 < 3) push(edge.x, left - 1);\n"
    "    }\n"
    "}\n"
    "kernel search queue(u32) once(nodes)\n" RICH
    "{\n"
    "    let h = mixed(item + window);\n"
    "    nodes[item].tag = h;\n"
    "    nodes[item].weight += 0.5;\n"
    "    atomic_max(image[item / width, item % width], window + 1);\n"
    "    for (let e = nodes[item].first; e < last_of(nodes[item]); e++)\n"
    "        push(edges[e].x);\n"
    "}\n"
    "pull {\n"
    "    for (let e = nodes[item].first; e < last_of(nodes[item]); e++) {\n"
    "        let to = edges[e];\n"
    "        if (in_window(to.x)) { push(item); break; }\n"
    "    }\n"
    "}\n"
    "kernel ranks queue(u32) set(nodes) by(nodes[item].count * 4 +\n"
    "    STEPS[values[item] % 16])\n" RICH
    "{\n"
    "    let own = values[item];\n"
    "    atomic_add(image[own % height, item % width], mixed(own));\n"
    "    if (window > 12) return;\n"
    "    for (let e = nodes[item].first; e < last_of(nodes[item]); e++)\n"
    "        if (edges[e].y > own) push(edges[e].x);\n"
    "}\n";

static const char flat_text[] = FLAT_FUNCTIONS
    "kernel list queue(at: u32, left: u32) pushes(6)\n" FLAT
    "buffer steps : read u32[] @7;\n"
    "{\n"
    "    let g = at * 77 + left + window;\n"
    "    let h = mixed(g, steps[g % 16]);\n"
    "    atomic_add(image[h % height * width + h % width],\n"
    "               (nodes[4 * at + 3] & 0xffff) + 1);\n"
    "    if (item_index < len(colors) / 3) {\n"
    "        colors[3 * item_index] += as_f32(nodes[4 * at + 2]);\n"
    "        colors[3 * item_index + 1] += 1.0;\n"
    "        colors[3 * item_index + 2] += f32(left);\n"
    "    }\n"
    "    if (left == 0) return;\n"
    "    for (let e = nodes[4 * at];\n"
    "         e < nodes[4 * at] + nodes[4 * at + 1]; e++) {\n"
    "        if (edges[2 * e + 1] % 4 < 3) push(edges[2 * e], left - 1);\n"
    "    }\n"
    "}\n"
    "kernel search queue(u32) once(120)\n" FLAT
    "buffer steps : read u32[] @7;\n"
    "{\n"
    "    let h = mixed(item + window, steps[(item + window) % 16]);\n"
    "    let at = 4 * item;\n"
    "    nodes[at + 3] = (nodes[at + 3] & 0xffff0000) | (h & 0xffff);\n"
    "    nodes[at + 2] = as_u32(as_f32(nodes[at + 2]) + 0.5);\n"
    "    atomic_max(image[item], window + 1);\n"
    "    for (let e = nodes[at]; e < nodes[at] + nodes[at + 1]; e++)\n"
    "        push(edges[2 * e]);\n"
    "}\n"
    "pull {\n"
    "    let at = 4 * item;\n"
    "    for (let e = nodes[at]; e < nodes[at] + nodes[at + 1]; e++) {\n"
    "        if (in_window(edges[2 * e])) { push(item); break; }\n"
    "    }\n"
    "}\n"
    "kernel ranks queue(u32) set(120) by(nodes[4 * item + 1] * 4 +\n"
    "    steps[values[item] % 16])\n" FLAT
    "buffer steps : read u32[] @7;\n"
    "{\n"
    "    let own = values[item];\n"
    "    atomic_add(image[own % height * width + item % width],\n"
    "               mixed(own, steps[own % 16]));\n"
    "    if (window > 12) return;\n"
    "    let at = 4 * item;\n"
    "    for (let e = nodes[at]; e < nodes[at] + nodes[at + 1]; e++)\n"
    "        if (edges[2 * e + 1] > own) push(edges[2 * e]);\n"
    "}\n";

enum { LIST, SEARCH, RANKS, KERNELS };

/* --- memory ---------------------------------------------------------------- */

typedef struct node {
  uint32_t first, count;
  float weight;
  uint32_t tag; /* a u16 and two bytes without meaning */
} node;

typedef struct memory {
  node nodes[NODES];
  uint32_t edges[EDGES][2], image[HEIGHT * WIDTH];
  float colors[50][3];
  uint32_t width, height, values[NODES];
} memory;

/* Makes an undirected graph, as `pull` needs it: a ring with chords. */
static memory make_memory(void) {
  memory m = {.width = WIDTH, .height = HEIGHT};
  uint64_t seed = 5;
  uint32_t edge = 0;
  for (uint32_t i = 0; i < NODES; i++) {
    const uint32_t chord = NODES - 1 - i;
    const uint32_t to[3] = {(i + 1) % NODES, (i + NODES - 1) % NODES, chord};
    const uint32_t count = (i < chord ? i : chord) % 3 == 0 ? 3 : 2;
    m.nodes[i] = (node){edge, count, (float)i * 0.25f, i * 300 & 0xffff};
    m.values[i] = queue_random(&seed, 1000);
    for (uint32_t k = 0; k < count; k++, edge++) {
      m.edges[edge][0] = to[k];
      m.edges[edge][1] = queue_random(&seed, 1000);
    }
  }
  return m;
}

/* --- runs ------------------------------------------------------------------ */

typedef struct outcome {
  memory after;
  vyre_queue_stats stats;
} outcome;

static vyre_code run_queue(vyre_queue *queue, size_t kernel, bool is_flat,
                           outcome *o, vyre_status *st) {
  static const uint32_t steps[TABLE] = {3, 1, 4, 1, 5, 9, 2, 6,
                                        5, 3, 5, 8, 9, 7, 9, 3};
  static const uint32_t roots[] = {0, 9, 17, 7, 44, 8};
  memory *m = &o->after;
  *m = make_memory();
  CHECK_OK(vyre_queue_fill(queue, roots, kernel == LIST ? 3 : 6, st), *st);
  const vyre_input in[] = {vyre_input_bytes(m->nodes, sizeof m->nodes),
                           vyre_input_bytes(m->edges, sizeof m->edges),
                           vyre_input_bytes(m->image, sizeof m->image),
                           vyre_input_bytes(m->colors, sizeof m->colors),
                           vyre_input_bytes(&m->width, 4),
                           vyre_input_bytes(&m->height, 4),
                           vyre_input_bytes(m->values, sizeof m->values),
                           vyre_input_bytes(steps, sizeof steps)};
  const vyre_output out[] = {vyre_output_bytes(m->nodes, sizeof m->nodes),
                             vyre_output_bytes(m->image, sizeof m->image),
                             vyre_output_bytes(m->colors, sizeof m->colors)};
  const vyre_dispatch_desc desc = {.inputs = in,
                                   .input_count = is_flat ? 8 : 7,
                                   .outputs = out,
                                   .output_count = 3};
  return vyre_queue_run(queue, &desc, &o->stats, NULL, st);
}

/* Runs a kernel of a file. Only kernels with `by` may be refused. */
static bool run_kernel(vyre_device *device, size_t kernel, bool is_flat,
                       uint64_t chunk, outcome *o) {
  const char *text = is_flat ? flat_text : rich_text;
  vyre_status st = {0};
  vyre_module *module;
  vyre_queue *queue;
  CHECK_OK(vyre_module_parse(text, strlen(text), "types.vyre",
                             (vyre_allocator){0}, &module, NULL, &st),
           st);
  const vyre_queue_options options = {
      .capacity = kernel == LIST ? 50000 : NODES,
      .items_per_chunk = chunk,
      .has_order_hash = true};
  vyre_code code = vyre_queue_create(device, vyre_module_kernel(module, kernel),
                                     &options, &queue, NULL, &st);
  vyre_module_release(module); /* the queue retains its kernel */
  if (code == VYRE_UNSUPPORTED_FEATURE && kernel == RANKS) return false;
  CHECK_OK(code, st);
  CHECK_OK(run_queue(queue, kernel, is_flat, o, &st), st);
  vyre_queue_release(queue);
  return true;
}

static bool same_bytes(const void *a, const void *b, size_t size) {
  return memcmp(a, b, size) == 0;
}

static bool same(const outcome *a, const outcome *b) {
  return same_bytes(&a->after, &b->after, sizeof a->after) &&
         a->stats.items == b->stats.items &&
         a->stats.windows == b->stats.windows &&
         a->stats.pushed == b->stats.pushed &&
         a->stats.order_hash == b->stats.order_hash;
}

static const struct {
  const char *name, *settings;
  uint64_t chunk;
} devices[] = {{"ref", "", 0},
               {"cpu", "", 0},
               {"cpu", "cpu.threads=1,cpu.width=1", 0},
               {"cpu", "cpu.threads=2,cpu.width=8", 7},
               {"cpu", "cpu.threads=7,cpu.width=16", 0},
               {"vulkan", "", 0},
               {"vulkan", "vulkan.queue_windows=1", 7}};

enum { DEVICES = sizeof devices / sizeof devices[0] };

TEST(aggregates_and_arrays_give_what_scalars_give) {
  static outcome expected[KERNELS];
  for (size_t i = 0; i < DEVICES; i++) {
    queue_bench b;
    if (!queue_open(&b, devices[i].name, devices[i].settings,
                    (vyre_allocator){0})) {
      continue;
    }
    for (size_t kernel = 0; kernel < KERNELS; kernel++) {
      static outcome flat, rich;
      if (!run_kernel(b.device, kernel, true, devices[i].chunk, &flat))
        continue;
      CHECK(run_kernel(b.device, kernel, false, devices[i].chunk, &rich));
      CHECK(flat.stats.items > 15 && flat.stats.windows > 3);
      if (i == 0) expected[kernel] = flat;
      if (!same(&expected[kernel], &flat) || !same(&flat, &rich)) {
        (void)fprintf(stderr, "kernel %zu on %s %s\n", kernel, devices[i].name,
                      devices[i].settings);
        test_fail(__FILE__, __LINE__);
      }
    }
    queue_close(&b);
  }
}

static const char dimensions_text[] =
    "kernel k queue(u32)\n"
    "buffer image : read_write u32[height, width] @0;\n"
    "uniform width : u32 @1;\n"
    "uniform height : u32 @2;\n"
    "{ image[item, item] = 1; if (item < 3) push(item + 1); }\n";

/* The memory of a buffer with dimensions is checked as in a dispatch. */
TEST(dimensions_above_the_memory_are_refused) {
  for (size_t i = 0; i < DEVICES; i++) {
    queue_bench b;
    static outcome o;
    vyre_status st = {0};
    vyre_module *module;
    vyre_queue *queue;
    const vyre_queue_options options = {.capacity = 100};
    if (!queue_open(&b, devices[i].name, "", (vyre_allocator){0})) continue;
    CHECK_OK(
        vyre_module_parse(dimensions_text, strlen(dimensions_text), "k.vyre",
                          (vyre_allocator){0}, &module, NULL, &st),
        st);
    CHECK_OK(vyre_queue_create(b.device, vyre_module_kernel(module, 0),
                               &options, &queue, NULL, &st),
             st);
    static const uint32_t root = 0;
    uint32_t image[20] = {0}, width = 5, height = 5;
    const vyre_input in[] = {vyre_input_bytes(image, sizeof image),
                             vyre_input_bytes(&width, 4),
                             vyre_input_bytes(&height, 4)};
    const vyre_output out = vyre_output_bytes(image, sizeof image);
    const vyre_dispatch_desc desc = {
        .inputs = in, .input_count = 3, .outputs = &out, .output_count = 1};
    CHECK_OK(vyre_queue_fill(queue, &root, 1, &st), st);
    CHECK(vyre_queue_run(queue, &desc, &o.stats, NULL, &st) ==
          VYRE_INVALID_ARGUMENT);
    height = 4;
    CHECK_OK(vyre_queue_run(queue, &desc, &o.stats, NULL, &st), st);
    CHECK(image[0] == 1 && image[6] == 1 && image[12] == 1 && image[18] == 1);
    vyre_queue_release(queue);
    vyre_module_release(module);
    queue_close(&b);
  }
}

/* `pull` is checked in a program that is inlined for that, too. */
TEST(a_pull_over_structs_pushes_its_own_key_only) {
  static const char text[] =
      STRUCTS "kernel k queue(u32) once(nodes)\n" RICH
              "{ push(nodes[item].first); }\n"
              "pull { if (in_window(nodes[item].first)) push(item + 1); }\n";
  vyre_module *module;
  vyre_status st = {0};
  CHECK_OK(vyre_module_parse(text, strlen(text), "k.vyre", (vyre_allocator){0},
                             &module, NULL, &st),
           st);
  CHECK_FAILS(vyre_program_validate(vyre_module_kernel(module, 0), NULL, &st),
              st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM);
  CHECK_HAS(st.message, "V114");
  vyre_module_release(module);
}

TEST_MAIN(TEST_ENTRY(aggregates_and_arrays_give_what_scalars_give),
          TEST_ENTRY(dimensions_above_the_memory_are_refused),
          TEST_ENTRY(a_pull_over_structs_pushes_its_own_key_only))
