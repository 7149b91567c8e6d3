/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checked runs of queue kernels: planted order dependences are found, with
 * their line, and similar kernels without one give no finding. */
#include "vyre/vyre.h"

#include "support/check.h"

enum { VERTICES = 64, FIRST_ITEMS = 8 };

/* Every kernel has these buffers. The line of a dependence ends with a mark. */
#define BUFFERS                                                      \
  "buffer off : read u32[] @0; buffer adj : read u32[] @1; "         \
  "buffer x : read_write u32[] @2; buffer y : read_write u32[] @3; " \
  "uniform n : u32 @4;\n"
#define LIST(body) "kernel k queue(u32) pushes(8)\n" BUFFERS "{\n" body "}\n"
#define ANY(body)  "kernel k queue(u32) any pushes(8)\n" BUFFERS "{\n" body "}\n"
#define SET(body)  "kernel k queue(u32) set(n)\n" BUFFERS "{\n" body "}\n"
#define ONCE(body) "kernel k queue(u32) once(n)\n" BUFFERS "{\n" body "}\n"
#define BY(e, body) \
  "kernel k queue(u32) set(n) by(" e ")\n" BUFFERS "{\n" body "}\n"
#define EDGES "for (let e = off[item]; e < off[item + 1]; e++) {\n"
#define TREE                                    \
  "if (2 * item + 9 < n) push(2 * item + 8);\n" \
  "if (2 * item + 9 < n) push(2 * item + 9);\n"
#define MARK " //!\n"

static const char *const planted[] = {
    /* lists */
    LIST("let at = atomic_add(x[0], 1);" MARK "y[at] = item;\n" TREE),
    LIST("y[item] = atomic_exchange(x[item % 4], item);" MARK TREE),
    LIST("atomic_exchange(x[item % 4], item);" MARK TREE),
    LIST("x[item % 4] = item;" MARK TREE),
    LIST("x[item] = item + 1;\n y[item] = x[item ^ 1];" MARK TREE),
    LIST("y[item] = window;\n"
         "if (atomic_exchange(x[item % 5], item + 1) == 0) push(item + "
         "8);" MARK),
    LIST("y[item] = item_index;\n"
         "if (item < 8) push(8 + atomic_add(x[0], 1));" MARK),
    LIST("y[item] = atomic_max(x[0], item & 5);" MARK TREE),
    LIST("atomic_max(x[0], item);\n y[item] = x[0];" MARK TREE),
    LIST("atomic_add(x[0], 1);\n y[item] = atomic_load(x[0]);" MARK TREE),
    LIST("if (item % 2 == 0) atomic_add(x[0], 3); else atomic_xor(x[0], "
         "item);" MARK TREE),
    LIST("if (item % 2 == 0) atomic_max(x[0], item); else atomic_min(x[0], "
         "3);" MARK TREE),
    /* sets */
    ONCE("y[item] = window;\n" EDGES
         "let p = atomic_compare_exchange(x[adj[e]], 0, item + 1);" MARK
         "push(adj[e]); }\n"),
    ONCE("y[item] = atomic_add(x[0], 1);" MARK EDGES "push(adj[e]); }\n"),
    SET("if (window > 4) return;\n" EDGES "atomic_store(x[adj[e]], item);" MARK
        "push(adj[e]); }\n"),
    SET("if (window > 4) return;\n" EDGES
        "if (atomic_add(x[adj[e]], 1) == 2) atomic_store(y[adj[e]], item);" MARK
        "push(adj[e]); }\n"),
    BY("item / 8",
       "if (window > 9) return;\n" EDGES
       "atomic_exchange(y[adj[e]], item);" MARK "push(adj[e]); }\n"),
    /* any order */
    ANY("y[item] = atomic_add(x[0], 1);" MARK TREE),
    ANY("atomic_exchange(x[item % 4], item);" MARK TREE),
    ANY("atomic_add(y[item], 1);\n"
        "if (atomic_compare_exchange(x[item % 5], 0, item + 1) == 0) "
        "{" MARK TREE "}\n"),
};

static const char *const correct[] = {
    LIST("atomic_add(x[0], 1);\n atomic_add(y[item % 4], item);\n" TREE),
    LIST("y[item_index] = item;\n" TREE),
    LIST("x[2 * item_index] = item;\n x[2 * item_index + 1] = window;\n" TREE),
    LIST("atomic_xor(x[0], item * 0x9e3779b1);\n" TREE),
    LIST("atomic_and(x[item % 4], ~item);\n" TREE),
    LIST("let seen = atomic_add(x[0], 1);\n"
         "if (seen < 1000) atomic_add(y[0], 1);\n" TREE),
    LIST("atomic_add(x[(window + 1) % 2], 1);\n"
         "atomic_max(y[0], atomic_load(x[window % 2]));\n" TREE),
    LIST(
        "for (let k = 0u; k < item % 4; k++) { if (window < 3) push(item + k); "
        "}\n y[item_index % 64] = item;\n"),
    LIST("if (item >= 8) atomic_add(y[item], x[(item - 8) / 2]);\n"
         "if (item < 8) x[item] = item + 1;\n"
         "if (window == 0) { push(2 * item + 8); push(2 * item + 9); }\n"),
    LIST("if (window < 4) { push(item + 1); push(item + 2); }\n"
         "atomic_max(x[item], item_index);\n"),
    /* sets */
    ONCE("x[item] = window;\n" EDGES "push(adj[e]); }\n"),
    ONCE("y[item] = window;\n" EDGES
         "atomic_max(x[adj[e]], item + 1);\n push(adj[e]); }\n"),
    ONCE(EDGES "let p = atomic_compare_exchange(x[adj[e]], 0, window + 1);\n"
               "push(adj[e]); }\n"),
    SET("atomic_max(y[item], window);\n" EDGES
        "if (atomic_exchange(x[adj[e]], 1) == 0) push(adj[e]); }\n"),
    SET("let l = atomic_load(x[item]) + (item < 8 ? item + 1 : 0u);\n" EDGES
        "if (atomic_max(x[adj[e]], min(l, 40)) < min(l, 40)) push(adj[e]); "
        "}\n"),
    SET("let bits = atomic_load(x[item]) | (1u << (item & 31));\n" EDGES
        "if ((atomic_or(x[adj[e]], bits) & bits) != bits) push(adj[e]); }\n"),
    BY("x[item] / 4", "let d = atomic_load(x[item]);\n" EDGES
                      "let to = d + 1 + (adj[e] ^ item) % 7;\n"
                      "if (atomic_min(x[adj[e]], to) > to) push(adj[e]); }\n"),
    /* any order */
    ANY("atomic_add(x[item % 4], item);\n" TREE),
    ANY("atomic_max(y[0], item);\n atomic_min(x[item], 5);\n" TREE),
    ANY("let last = atomic_add(x[1], 2);\n x[item + 2] = item;\n" TREE),
};

/* Returns the line with the mark, or 0. */
static uint32_t marked_line(const char *text) {
  const char *mark = strstr(text, "//!");
  uint32_t line = 1;
  if (!mark) return 0;
  for (const char *c = text; c < mark; c++) line += *c == '\n';
  return line;
}

/* A ring with chords. */
static void make_graph(uint32_t *off, uint32_t *adj) {
  uint32_t at = 0;
  for (uint32_t v = 0; v < VERTICES; v++) {
    const uint32_t to[] = {(v + 1) % VERTICES, (v * 5 + 3) % VERTICES,
                           (v + VERTICES - 7) % VERTICES};
    off[v] = at;
    for (uint32_t k = 0; k < 3; k++) adj[at++] = to[k];
  }
  off[VERTICES] = at;
}

typedef struct checked {
  vyre_device *device;
  vyre_check_report report;
  uint32_t x[4 * VERTICES], y[4 * VERTICES];
  vyre_queue_stats stats;
} checked;

static void run_checked(checked *c, const char *text, uint32_t schedules) {
  static const uint32_t roots[FIRST_ITEMS] = {0, 1, 2, 3, 4, 5, 6, 7};
  static uint32_t off[VERTICES + 1], adj[3 * VERTICES];
  const uint32_t n = VERTICES;
  vyre_status st = {0};
  vyre_diagnostics messages = {0};
  vyre_module *module;
  vyre_queue *queue;
  make_graph(off, adj);
  memset(c->x, strstr(text, "by(x") ? 0x7f : 0, sizeof c->x);
  for (uint32_t i = 0; i < FIRST_ITEMS; i++)
    if (c->x[i]) c->x[i] = 0;
  memset(c->y, 0, sizeof c->y);
  vyre_code code =
      vyre_module_parse(text, strlen(text), "k.vyre", (vyre_allocator){0},
                        &module, &messages, &st);
  if (code != VYRE_OK) (void)fprintf(stderr, "%s%s\n", text, st.message);
  CHECK_OK(code, st);
  const vyre_queue_options options = {.capacity =
                                          strstr(text, "(n)") ? n : 4096};
  CHECK_OK(vyre_queue_create(c->device, vyre_module_kernel(module, 0), &options,
                             &queue, NULL, &st),
           st);
  CHECK_OK(vyre_queue_fill(queue, roots, FIRST_ITEMS, &st), st);
  const vyre_input in[] = {
      vyre_input_bytes(off, sizeof off), vyre_input_bytes(adj, sizeof adj),
      vyre_input_bytes(c->x, sizeof c->x), vyre_input_bytes(c->y, sizeof c->y),
      vyre_input_bytes(&n, sizeof n)};
  const vyre_output out[] = {vyre_output_bytes(c->x, sizeof c->x),
                             vyre_output_bytes(c->y, sizeof c->y)};
  const vyre_dispatch_desc desc = {
      .inputs = in,
      .input_count = 5,
      .outputs = out,
      .output_count = 2,
      .check = {.out_of_bounds = true, .races = true, .schedules = schedules},
      .report = &c->report};
  CHECK_OK(vyre_queue_run(queue, &desc, &c->stats, NULL, &st), st);
  vyre_queue_release(queue);
  vyre_module_release(module);
  vyre_diagnostics_deinit(&messages);
}

static checked open_ref(void) {
  checked c = {0};
  vyre_status st = {0};
  CHECK_OK(vyre_device_open(NULL, "ref", &c.device, &st), st);
  return c;
}

static void close_ref(checked *c) {
  vyre_check_report_deinit(&c->report);
  vyre_device_release(c->device);
}

static void show(const checked *c, const char *text) {
  (void)fprintf(stderr, "%s", text);
  for (size_t i = 0; i < c->report.count; i++) {
    const vyre_finding *f = &c->report.findings[i];
    (void)fprintf(stderr, "line %u, %u: %s\n", f->line, f->other_line,
                  f->message);
  }
}

TEST(planted_order_dependences_are_found_with_their_line) {
  checked c = open_ref();
  CHECK_U64(sizeof planted / sizeof planted[0], 20);
  for (size_t i = 0; i < sizeof planted / sizeof planted[0]; i++) {
    bool is_found = false;
    run_checked(&c, planted[i], 8);
    for (size_t k = 0; k < c.report.count; k++) {
      const vyre_finding *f = &c.report.findings[k];
      const uint32_t line = marked_line(planted[i]);
      is_found = is_found || f->line == line ||
                 (f->kind == VYRE_FINDING_RACE && f->other_line == line);
    }
    if (!is_found) show(&c, planted[i]);
    CHECK(is_found);
  }
  close_ref(&c);
}

TEST(correct_kernels_that_look_similar_give_no_finding) {
  checked c = open_ref();
  CHECK_U64(sizeof correct / sizeof correct[0], 20);
  for (size_t i = 0; i < sizeof correct / sizeof correct[0]; i++) {
    run_checked(&c, correct[i], 8);
    if (c.report.count > 0) show(&c, correct[i]);
    CHECK_U64(c.report.count, 0);
    CHECK(c.report.schedules > 0);
  }
  close_ref(&c);
}

/* A check changes neither the results nor the figures of a run. */
TEST(a_check_leaves_the_results_of_the_first_run) {
  static const char text[] = LIST("y[atomic_add(x[0], 1)] = item;\n" TREE);
  checked plain = open_ref(), with = open_ref();
  run_checked(&plain, text, 0);
  run_checked(&with, text, 8);
  CHECK(with.report.count > 0);
  CHECK(memcmp(plain.x, with.x, sizeof plain.x) == 0);
  CHECK(memcmp(plain.y, with.y, sizeof plain.y) == 0);
  CHECK_U64(plain.stats.items, with.stats.items);
  CHECK_U64(plain.stats.windows, with.stats.windows);
  CHECK_U64(plain.stats.chunks, with.stats.chunks);
  close_ref(&plain);
  close_ref(&with);
}

TEST(a_finding_names_window_item_and_line) {
  static const char text[] =
      "kernel k queue(u32) once(n)\n" BUFFERS "{ y[item] = window;\n" EDGES
      "  if (window == 1 && atomic_exchange(x[adj[e]], item) > 0) continue;\n"
      "  push(adj[e]); } }\n";
  static const char late[] =
      LIST("if (window == 2) atomic_store(x[0], item);\n" TREE);
  checked c = open_ref();
  run_checked(&c, late, 8);
  CHECK_U64(c.report.count, 1);
  CHECK(
      strstr(c.report.findings[0].message, "the items of window 2 run: item "));
  CHECK(strstr(c.report.findings[0].message, "writes another value at line 4"));
  CHECK_U64(c.report.findings[0].line, 4);
  run_checked(&c, text, 8);
  CHECK_U64(c.report.count, 1);
  CHECK(
      strstr(c.report.findings[0].message, "the items of window 1 run: key "));
  CHECK_U64(c.report.findings[0].line, 5);
  close_ref(&c);
}

TEST(accesses_outside_a_buffer_name_the_item) {
  static const char text[] = LIST("y[item + 250] = 1;\n" TREE);
  checked c = open_ref();
  run_checked(&c, text, 2);
  CHECK(c.report.count > 0);
  CHECK_U64(c.report.findings[0].kind, VYRE_FINDING_OUT_OF_BOUNDS);
  CHECK_HAS(c.report.findings[0].message,
            "item 6 of window 0 uses index 256 of 'y', which has 256 elements: "
            "the store is dropped");
  close_ref(&c);
}

TEST_MAIN(TEST_ENTRY(planted_order_dependences_are_found_with_their_line),
          TEST_ENTRY(correct_kernels_that_look_similar_give_no_finding),
          TEST_ENTRY(a_check_leaves_the_results_of_the_first_run),
          TEST_ENTRY(a_finding_names_window_item_and_line),
          TEST_ENTRY(accesses_outside_a_buffer_name_the_item))
