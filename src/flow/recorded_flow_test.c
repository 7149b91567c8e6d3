/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Work queues and wave graphs as commands of recordings. */
#include "flow/work_queue_testing.h"

static const vyre_allocator heap;
static const char *const devices[] = {"ref", "cpu", "vulkan"};

/* Kernels around the queue of a search. */
static const char around_text[] =
    "kernel begin workgroup(64) over(depth)\n"
    "buffer depth : read_write u32[] @0;\n"
    "buffer roots : read_write u32[] @1;\n"
    "buffer count : read_write u32[] @2;\n"
    "uniform source : u32 @3;\n"
    "{ let i = global_id.x; if (i < len(depth)) depth[i] = 0;\n"
    "  if (i == 0) { roots[0] = source; count[0] = 1; } }\n"
    "kernel deepest workgroup(64) over(depth)\n"
    "buffer depth : read u32[] @0;\n"
    "buffer most : read_write u32[] @1;\n"
    "{ let i = global_id.x;\n"
    "  if (i < len(depth)) atomic_max(most[0], depth[i]); }\n"
    "kernel scale workgroup(32) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = 3 * x[i] + y[i]; }\n";

enum { BEGIN, DEEPEST, SCALE, AROUND };

typedef struct around {
  vyre_module *module;
  vyre_pipeline *pipelines[AROUND];
} around;

static around around_open(const queue_bench *b) {
  around a = {0};
  vyre_status st = {0};
  CHECK_OK(vyre_module_parse(around_text, strlen(around_text), "around.vyre",
                             (vyre_allocator){0}, &a.module, NULL, &st),
           st);
  for (size_t i = 0; i < AROUND; i++) {
    CHECK_OK(vyre_pipeline_compile(b->device, vyre_module_kernel(a.module, i),
                                   NULL, &a.pipelines[i], NULL, &st),
             st);
  }
  return a;
}

static void around_close(around *a) {
  for (size_t i = 0; i < AROUND; i++) vyre_pipeline_release(a->pipelines[i]);
  vyre_module_release(a->module);
}

typedef struct text_buffer {
  char text[8192];
  size_t length;
} text_buffer;

static bool append(void *self, const char *bytes, size_t count) {
  text_buffer *b = self;
  if (b->length + count >= sizeof b->text) return false;
  memcpy(b->text + b->length, bytes, count);
  b->text[b->length += count] = '\0';
  return true;
}

static uint32_t slot(vyre_recording *rec, const char *name) {
  uint32_t out;
  vyre_status st = {0};
  CHECK_OK(vyre_recording_add_slot(rec, name, 0, &out, &st), st);
  return out;
}

static void bind(vyre_recording *rec, uint32_t to, void *data, size_t size) {
  vyre_status st = {0};
  const vyre_slot_binding binding = {.data = data, .size = size};
  CHECK_OK(vyre_recording_bind_slot(rec, to, &binding, &st), st);
}

static vyre_buffer upload(const queue_bench *b, const void *data, size_t size) {
  vyre_buffer buffer;
  vyre_status st = {0};
  CHECK_OK(vyre_buffer_create(b->device, size, &buffer, &st), st);
  if (data)
    CHECK_OK(vyre_buffer_upload(b->device, buffer, 0, data, size, &st), st);
  return buffer;
}

static void bind_buffer(vyre_recording *rec, uint32_t to, vyre_buffer buffer) {
  vyre_status st = {0};
  const vyre_slot_binding binding = {.buffer = buffer};
  CHECK_OK(vyre_recording_bind_slot(rec, to, &binding, &st), st);
}

/* --- a search -------------------------------------------------------------- */

static test_graph graph;

/* Depths, and the greatest one. */
static uint32_t search(uint32_t source, uint32_t *depth) {
  memset(depth, 0, graph.vertices * sizeof *depth);
  depth[source] = 1;
  for (uint32_t level = 1;; level++) {
    bool is_empty = true;
    for (uint32_t v = 0; v < graph.vertices; v++) {
      if (depth[v] != level) continue;
      is_empty = false;
      for (uint32_t e = graph.off[v]; e < graph.off[v + 1]; e++) {
        if (depth[graph.adj[e]] == 0) depth[graph.adj[e]] = level + 1;
      }
    }
    if (is_empty) return level - 1;
  }
}

/* A recording of a whole search: one kernel clears the depths and writes the
 * first item, the queue drains, another kernel finds the greatest depth. */
typedef struct search_recording {
  vyre_recording *rec;
  vyre_queue *queue;
  vyre_queue_stats stats;
  uint32_t off, adj, depth, roots, count, source, most;
} search_recording;

static void record_search(const queue_bench *b, const around *a,
                          search_recording *s) {
  vyre_status st = {0};
  const vyre_queue_options options = {.capacity = graph.vertices,
                                      .has_order_hash = true};
  CHECK_OK(vyre_queue_create(b->device, vyre_module_kernel(b->module, BFS),
                             &options, &s->queue, NULL, &st),
           st);
  CHECK_OK(vyre_recording_create(b->device, &s->rec, &st), st);
  s->off = slot(s->rec, "off");
  s->adj = slot(s->rec, "adj");
  s->depth = slot(s->rec, "depth");
  s->roots = slot(s->rec, "roots");
  s->count = slot(s->rec, "count");
  s->source = slot(s->rec, "source");
  s->most = slot(s->rec, "most");
  const vyre_slot_range begin[] = {
      vyre_slot_range_all(s->depth), vyre_slot_range_all(s->roots),
      vyre_slot_range_all(s->count), vyre_slot_range_all(s->source)};
  const vyre_recorded_dispatch first = {.resources = begin,
                                        .resource_count = 4};
  CHECK_OK(
      vyre_recording_add_dispatch(s->rec, a->pipelines[BEGIN], &first, &st),
      st);
  const vyre_slot_range resources[] = {vyre_slot_range_all(s->off),
                                       vyre_slot_range_all(s->adj),
                                       vyre_slot_range_all(s->depth)};
  const vyre_recorded_queue run = {.resources = resources,
                                   .resource_count = 3,
                                   .items = &begin[1],
                                   .count = &begin[2],
                                   .stats = &s->stats};
  CHECK_OK(vyre_recording_add_queue(s->rec, s->queue, &run, &st), st);
  const vyre_slot_range end[] = {vyre_slot_range_all(s->depth),
                                 vyre_slot_range_all(s->most)};
  const vyre_recorded_dispatch last = {.resources = end, .resource_count = 2};
  CHECK_OK(
      vyre_recording_add_dispatch(s->rec, a->pipelines[DEEPEST], &last, &st),
      st);
  CHECK_OK(vyre_recording_seal(s->rec, &st), st);
}

/* Replays the search from several vertices: each replay is one call of the
 * host, and the queue makes no more submissions than its plan says. */
static void check_search(const queue_bench *b) {
  static uint32_t expected[GRAPH_VERTICES], got[GRAPH_VERTICES];
  around a = around_open(b);
  search_recording s = {0};
  vyre_status st = {0};
  uint32_t source = 0;
  graph_make(&graph, GRAPH_VERTICES, 6000, 4);
  record_search(b, &a, &s);
  const size_t size = graph.vertices * sizeof *got;
  const vyre_buffer off = upload(b, graph.off, size + 4);
  const vyre_buffer adj = upload(b, graph.adj, graph.edges * sizeof *graph.adj);
  const vyre_buffer depth = upload(b, NULL, size), roots = upload(b, NULL, 40);
  const vyre_buffer count = upload(b, NULL, 4), most = upload(b, NULL, 4);
  bind_buffer(s.rec, s.off, off);
  bind_buffer(s.rec, s.adj, adj);
  bind_buffer(s.rec, s.depth, depth);
  bind_buffer(s.rec, s.roots, roots);
  bind_buffer(s.rec, s.count, count);
  bind_buffer(s.rec, s.most, most);
  bind(s.rec, s.source, &source, sizeof source);
  for (uint32_t k = 0; k < 4; k++) {
    uint32_t deepest = 0, found = 0;
    vyre_replay_result result;
    vyre_fence *fence = NULL;
    const vyre_replay_options options = {.result = &result};
    source = 700 * k;
    deepest = search(source, expected);
    CHECK_OK(vyre_buffer_upload(b->device, most, 0, &found, 4, &st), st);
    CHECK_OK(
        vyre_recording_replay(s.rec, &options, k == 3 ? &fence : NULL, &st),
        st);
    if (fence) CHECK_OK(vyre_fence_wait(fence, UINT64_MAX, &st), st);
    vyre_fence_release(fence);
    CHECK_OK(vyre_buffer_download(b->device, depth, 0, got, size, &st), st);
    CHECK_OK(vyre_buffer_download(b->device, most, 0, &found, 4, &st), st);
    CHECK(memcmp(got, expected, size) == 0);
    CHECK_U64(found, deepest);
    CHECK_U64(result.queues, 1);
    CHECK_U64(result.dispatches, 2);
    CHECK_U64(s.stats.windows, deepest);
    const uint64_t most_submissions = vyre_queue_max_submissions(
        vyre_queue_get_plan(s.queue), s.stats.chunks);
    CHECK(s.stats.submissions <= most_submissions);
    CHECK(s.stats.waits <= most_submissions);
  }
  text_buffer text = {.length = 0};
  CHECK(vyre_recording_print(s.rec, (vyre_writer){append, &text}));
  CHECK(strstr(text.text,
               "barrier, as 'depth' is written\n    1  queue bfs: "
               "once, mode windows, 3000 places, "));
  CHECK(strstr(text.text, " items='roots'[0 + 40] count='count'[0 + 4]\n"));
  vyre_recording_release(s.rec);
  vyre_queue_release(s.queue);
  const vyre_buffer all[] = {off, adj, depth, roots, count, most};
  for (size_t i = 0; i < 6; i++)
    CHECK_OK(vyre_buffer_destroy(b->device, all[i], &st), st);
  around_close(&a);
}

static void on_devices(void (*run)(const queue_bench *b)) {
  for (size_t i = 0; i < sizeof devices / sizeof devices[0]; i++) {
    queue_bench b;
    if (!queue_open(&b, devices[i], "", heap)) continue;
    run(&b);
    queue_close(&b);
  }
}

TEST(a_recording_has_a_whole_search) {
  on_devices(check_search);
}

/* --- host memory, failures, loops ------------------------------------------ */

enum { VISITS = 8 };

/* A tree walk on host memory, with items of the host. */
typedef struct walk {
  vyre_recording *rec;
  vyre_queue *queue;
  vyre_queue_stats stats;
  uint32_t visits[VISITS], n, root, more;
} walk;

static void record_walk(const queue_bench *b, walk *w, uint64_t capacity,
                        bool repeats) {
  vyre_status st = {0};
  const vyre_queue_options options = {.capacity = capacity};
  CHECK_OK(vyre_queue_create(b->device, vyre_module_kernel(b->module, TREE),
                             &options, &w->queue, NULL, &st),
           st);
  CHECK_OK(vyre_recording_create(b->device, &w->rec, &st), st);
  const uint32_t visits = slot(w->rec, "visits"), n = slot(w->rec, "n"),
                 root = slot(w->rec, "root"), more = slot(w->rec, "more");
  const vyre_slot_range in[] = {vyre_slot_range_all(visits),
                                vyre_slot_range_all(n)};
  const vyre_slot_range items = vyre_slot_range_all(root);
  const vyre_recorded_queue run = {.inputs = in,
                                   .input_count = 2,
                                   .outputs = in,
                                   .output_count = 1,
                                   .items = &items,
                                   .stats = &w->stats};
  if (repeats)
    CHECK_OK(vyre_recording_begin_while(w->rec, vyre_slot_range_all(more), 3, 1,
                                        &st),
             st);
  CHECK_OK(vyre_recording_add_queue(w->rec, w->queue, &run, &st), st);
  if (repeats) CHECK_OK(vyre_recording_end_while(w->rec, &st), st);
  CHECK_OK(vyre_recording_seal(w->rec, &st), st);
  bind(w->rec, visits, w->visits, sizeof w->visits);
  bind(w->rec, n, &w->n, sizeof w->n);
  bind(w->rec, root, &w->root, sizeof w->root);
  bind(w->rec, more, &w->more, sizeof w->more);
}

static void walk_close(walk *w) {
  vyre_recording_release(w->rec);
  vyre_queue_release(w->queue);
}

static uint32_t sum(const walk *w) {
  uint32_t total = 0;
  for (size_t i = 0; i < VISITS; i++) total += w->visits[i];
  return total;
}

/* A replay whose queue is full fails and names the command; with a larger queue,
 * the next replay begins again. */
static void check_full(const queue_bench *b) {
  walk w = {.n = 60};
  vyre_status st = {0};
  uint64_t command = 99;
  record_walk(b, &w, 6, false);
  CHECK_FAILS(vyre_recording_replay(w.rec, NULL, NULL, &st), st,
              VYRE_DISPATCH_FAILED, VYRE_KIND_QUEUE_FULL);
  CHECK(vyre_status_number_get(&st, "command", &command));
  CHECK_U64(command, 0);
  CHECK_U64(w.stats.remaining, 6);
  CHECK_OK(vyre_queue_resize(w.queue, 64, &st), st);
  for (uint32_t i = 0; i < 2; i++) {
    memset(w.visits, 0, sizeof w.visits);
    CHECK_OK(vyre_recording_replay(w.rec, NULL, NULL, &st), st);
    CHECK_U64(w.stats.items, 60);
    CHECK_U64(sum(&w), 60 * 61 / 2);
  }
  w.n = 0x7fffffff; /* takes far longer than the limit */
  const vyre_replay_options soon = {.timeout_ns = 1000000};
  CHECK_OK(vyre_queue_resize(w.queue, 1 << 22, &st), st);
  CHECK(vyre_recording_replay(w.rec, &soon, NULL, &st) == VYRE_DISPATCH_FAILED);
  CHECK(st.kind == VYRE_KIND_TIMED_OUT || st.kind == VYRE_KIND_QUEUE_FULL);
  w.n = 60;
  CHECK_OK(vyre_recording_replay(w.rec, NULL, NULL, &st), st);
  CHECK_U64(w.stats.items, 60);
  walk_close(&w);
}

TEST(a_full_queue_fails_a_replay_and_the_next_one_works) {
  on_devices(check_full);
}

static void check_loop(const queue_bench *b) {
  walk w = {.n = 10, .more = 1};
  vyre_status st = {0};
  vyre_replay_result result;
  const vyre_replay_options options = {.result = &result};
  record_walk(b, &w, 16, true);
  CHECK_OK(vyre_recording_replay(w.rec, &options, NULL, &st), st);
  CHECK_U64(result.queues, 3);
  CHECK(result.reached_max);
  CHECK_U64(sum(&w), 3ULL * 55);
  w.more = 0;
  CHECK_OK(vyre_recording_replay(w.rec, &options, NULL, &st), st);
  CHECK_U64(result.queues, 0);
  walk_close(&w);
}

TEST(a_loop_runs_a_queue_in_every_iteration) {
  on_devices(check_loop);
}

static vyre_code add(const queue_bench *b, vyre_queue *queue,
                     const vyre_recorded_queue *desc, vyre_status *st) {
  vyre_recording *rec;
  vyre_status made = {0};
  CHECK_OK(vyre_recording_create(b->device, &rec, &made), made);
  (void)slot(rec, "a");
  vyre_code code = vyre_recording_add_queue(rec, queue, desc, st);
  vyre_recording_release(rec);
  return code;
}

TEST(wrong_ranges_of_a_queue_are_refused) {
  queue_bench b, other;
  vyre_queue *queue;
  vyre_status st = {0};
  const vyre_slot_range a = {0}, none = {.slot = 7};
  const vyre_slot_range two[] = {a, a}, bad[] = {a, none};
  CHECK(queue_open(&b, "cpu", "", heap) && queue_open(&other, "ref", "", heap));
  CHECK_OK(vyre_queue_create(b.device, vyre_module_kernel(b.module, TREE), NULL,
                             &queue, NULL, &st),
           st);
  vyre_recorded_queue d = {
      .inputs = two, .input_count = 1, .outputs = two, .output_count = 1};
  CHECK_FAILS(add(&b, queue, &d, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_BINDING_MISMATCH);
  CHECK(strstr(st.message, "queue kernel 'tree' has 2 inputs, but 1"));
  d.input_count = 2;
  d.inputs = bad;
  CHECK_FAILS(add(&b, queue, &d, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_INVALID_ARGUMENT);
  d.inputs = two;
  d.count = &a;
  CHECK_FAILS(add(&b, queue, &d, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_INVALID_ARGUMENT);
  const vyre_slot_range no_slot = {.slot = VYRE_NO_SLOT};
  d.items = &a;
  d.count = &no_slot;
  CHECK_FAILS(add(&b, queue, &d, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_INVALID_ARGUMENT);
  d.items = &no_slot;
  d.count = NULL;
  CHECK_FAILS(add(&b, queue, &d, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_INVALID_ARGUMENT);
  d.items = NULL;
  CHECK_OK(add(&b, queue, &d, &st), st);
  CHECK_FAILS(add(&other, queue, &d, &st), st, VYRE_INVALID_ARGUMENT,
              VYRE_KIND_FOREIGN_HANDLE);
  vyre_queue_release(queue);
  queue_close(&b);
  queue_close(&other);
}

/* --- wave graphs ------------------------------------------------------------ */

enum { ELEMENTS = 1000 };

/* y = 3 x + e, twice: the external resource e is a device buffer. */
static vyre_wave_graph *make_waves(const queue_bench *b, const around *a) {
  vyre_wave_graph *graph_of;
  vyre_status st = {0};
  uint32_t x, e, wave;
  const uint64_t size = ELEMENTS * sizeof(uint32_t);
  CHECK_OK(vyre_wave_graph_create(b->device, NULL, &graph_of, &st), st);
  const vyre_wave_resource in = {
      .name = "x", .size = size, .is_input = true, .is_output = true};
  const vyre_wave_resource ext = {
      .name = "e", .size = size, .is_external = true};
  CHECK_OK(vyre_wave_graph_add_resource(graph_of, &in, &x, &st), st);
  CHECK_OK(vyre_wave_graph_add_resource(graph_of, &ext, &e, &st), st);
  const vyre_wave_binding forth[] = {{.resource = x}, {.resource = e}};
  const vyre_wave_binding back[] = {{.resource = e}, {.resource = x}};
  vyre_wave_desc desc = {.bindings = forth, .binding_count = 2};
  CHECK_OK(vyre_wave_graph_add_wave(graph_of, a->pipelines[SCALE], &desc, &wave,
                                    &st),
           st);
  desc.bindings = back;
  CHECK_OK(vyre_wave_graph_add_wave(graph_of, a->pipelines[SCALE], &desc, &wave,
                                    &st),
           st);
  CHECK_OK(vyre_wave_graph_seal(graph_of, &st), st);
  return graph_of;
}

static void check_waves(const queue_bench *b) {
  static uint32_t x[ELEMENTS], e[ELEMENTS], got_e[ELEMENTS], got_x[ELEMENTS];
  around a = around_open(b);
  vyre_status st = {0};
  vyre_wave_graph *waves = make_waves(b, &a);
  vyre_recording *rec;
  vyre_wave_result result;
  CHECK_OK(vyre_recording_create(b->device, &rec, &st), st);
  const uint32_t xs = slot(rec, "x"), ys = slot(rec, "y"), es = slot(rec, "e");
  const vyre_recorded_wave_io in = {0, vyre_slot_range_all(xs)},
                              out = {0, vyre_slot_range_all(ys)},
                              ext = {1, vyre_slot_range_all(es)};
  vyre_recorded_wave_graph desc = {.inputs = &in,
                                   .input_count = 1,
                                   .outputs = &out,
                                   .output_count = 1,
                                   .result = &result};
  CHECK_FAILS(vyre_recording_add_wave_graph(rec, waves, &desc, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  CHECK(strstr(st.message, "'e' (number 1 of 2) has 0 ranges as external"));
  desc.externals = &ext;
  desc.external_count = 1;
  CHECK_OK(vyre_recording_add_wave_graph(rec, waves, &desc, &st), st);
  CHECK_OK(vyre_recording_add_wave_graph(rec, waves, &desc, &st), st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  for (uint32_t i = 0; i < ELEMENTS; i++) {
    x[i] = 7 * i;
    e[i] = i * i;
  }
  const vyre_buffer external = upload(b, e, sizeof e);
  bind(rec, xs, x, sizeof x);
  bind(rec, ys, got_x, sizeof got_x);
  bind(rec, es, got_e, sizeof got_e);
  CHECK_FAILS(vyre_recording_replay(rec, NULL, NULL, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  bind_buffer(rec, es, external);
  vyre_replay_result replay;
  const vyre_replay_options options = {.result = &replay};
  CHECK_OK(vyre_recording_replay(rec, &options, NULL, &st), st);
  CHECK_U64(replay.wave_graphs, 2);
  CHECK_U64(result.waves, 2);
  CHECK_U64(result.barriers, 1);
  CHECK_OK(vyre_buffer_download(b->device, external, 0, got_e, sizeof e, &st),
           st);
  for (uint32_t i = 0; i < ELEMENTS; i++) {
    const uint32_t once = 3 * x[i] + e[i], twice = 3 * x[i] + once;
    CHECK_U64(got_e[i], twice);
    CHECK_U64(got_x[i], 3 * twice + x[i]);
  }
  text_buffer text = {.length = 0};
  CHECK(vyre_recording_print(rec, (vyre_writer){append, &text}));
  CHECK(strstr(text.text, "wave graph: 2 waves in 2 groups, 1 barriers, "));
  CHECK(strstr(text.text, "barrier, as 'y' is written"));
  vyre_recording_release(rec);
  vyre_wave_graph_release(waves);
  CHECK_OK(vyre_buffer_destroy(b->device, external, &st), st);
  around_close(&a);
}

TEST(a_recording_runs_wave_graphs) {
  on_devices(check_waves);
}

TEST_MAIN(TEST_ENTRY(a_recording_has_a_whole_search),
          TEST_ENTRY(a_full_queue_fails_a_replay_and_the_next_one_works),
          TEST_ENTRY(a_loop_runs_a_queue_in_every_iteration),
          TEST_ENTRY(wrong_ranges_of_a_queue_are_refused),
          TEST_ENTRY(a_recording_runs_wave_graphs))
