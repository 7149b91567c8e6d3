/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suites vulkan.dispatch and vulkan.replay: the cost of running a small kernel
 * and waiting for it, against hand-written Vulkan and wgpu. The kernel is saxpy
 * with 256 elements; every driver executes its product and sum natively. Data
 * is in device memory unless a row says otherwise. VYRE_BENCH_VULKAN as in
 * kernels.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "cpu/machine.h"
#include "cpu/rounds.h"
#include "side.h"
#include "wgpu.h"

enum { VYRE, RAW, WGPU, RIVALS };
enum { ELEMENTS = 256, BYTES = 4 * ELEMENTS, BATCH = 1000, REPEAT = 100 };

static const char *const titles[RIVALS] = {"vyre", "raw Vulkan", "wgpu"};

typedef struct ours {
  vyre_pipeline *pipeline;
  vyre_buffer x, y[BATCH];
  vyre_input inputs[BATCH][3];
  vyre_output outputs[BATCH];
  vyre_dispatch_desc items[BATCH];
  vyre_recording *one, *many;
  uint32_t slot; /* of y in `one` */
  float a;
  float host_x[ELEMENTS], host_y[ELEMENTS];
} ours;

typedef struct theirs {
  raw_kernel *kernel;
  raw_buffer *x, *y;
  raw_set *sets[BATCH];
  raw_dispatch items[BATCH];
  raw_list *fresh, *one, *many;
  float host_x[ELEMENTS], host_y[ELEMENTS];
} theirs;

typedef struct bench {
  vulkan_devices g;
  ours o;
  theirs t;
  wgpu_peer *wgpu;
  const char *suite;
  bool turn;
  int rounds, asked, met;
  cpu_entry entries[RIVALS];
} bench;

/* --- vyre ----------------------------------------------------------------- */

static vyre_buffer create_buffer(const bench *g) {
  vyre_status st = {0};
  vyre_buffer made;
  vulkan_check(vyre_buffer_create(g->g.device, BYTES, &made, &st), &st,
               "device buffer");
  return made;
}

static uint32_t add_slot(bench *g, vyre_recording *rec, const char *name,
                         const vyre_slot_binding *bound) {
  vyre_status st = {0};
  uint32_t slot;
  if (name) {
    vulkan_check(vyre_recording_add_slot(rec, name, 0, &slot, &st), &st, name);
    vulkan_check(vyre_recording_bind_slot(rec, slot, bound, &st), &st, name);
  } else {
    vulkan_check(vyre_recording_add_fixed_slot(rec, bound, &slot, &st), &st,
                 g->suite);
  }
  return slot;
}

/* Records the first @p count items. */
static vyre_recording *record(bench *g, size_t count) {
  vyre_status st = {0};
  vyre_recording *rec;
  ours *o = &g->o;
  vulkan_check(vyre_recording_create(g->g.device, &rec, &st), &st, g->suite);
  vyre_slot_range x = vyre_slot_range_all(
      add_slot(g, rec, NULL, &(vyre_slot_binding){.buffer = o->x}));
  vyre_slot_range a = vyre_slot_range_all(add_slot(
      g, rec, NULL,
      &(vyre_slot_binding){.data = &o->a, .size = 4, .is_read_only = true}));
  for (size_t i = 0; i < count; i++) {
    const vyre_slot_binding bound = {.buffer = o->y[i]};
    uint32_t slot = add_slot(g, rec, count == 1 ? "y" : NULL, &bound);
    vyre_slot_range y = vyre_slot_range_all(slot), in[] = {x, y, a};
    vyre_recorded_dispatch d = {.inputs = in,
                                .input_count = 3,
                                .outputs = &y,
                                .output_count = 1,
                                .grid = {1}};
    if (count == 1) o->slot = slot;
    vulkan_check(vyre_recording_add_dispatch(rec, o->pipeline, &d, &st), &st,
                 g->suite);
  }
  vulkan_check(vyre_recording_seal(rec, &st), &st, g->suite);
  return rec;
}

static void create_ours(bench *g) {
  ours *o = &g->o;
  o->a = 0.37f;
  o->pipeline = vulkan_compile(g->g.device, "saxpy", true);
  o->x = create_buffer(g);
  for (int i = 0; i < BATCH; i++) {
    o->y[i] = create_buffer(g);
    o->inputs[i][0] = vyre_input_buffer(o->x);
    o->inputs[i][1] = vyre_input_buffer(o->y[i]);
    o->inputs[i][2] = vyre_input_bytes(&o->a, 4);
    o->outputs[i] = vyre_output_buffer(o->y[i]);
    o->items[i] = (vyre_dispatch_desc){.inputs = o->inputs[i],
                                       .input_count = 3,
                                       .outputs = &o->outputs[i],
                                       .output_count = 1,
                                       .grid = {1}};
  }
  o->one = record(g, 1);
  o->many = record(g, BATCH);
}

static void free_ours(ours *o) {
  vyre_recording_release(o->one);
  vyre_recording_release(o->many);
  vyre_pipeline_release(o->pipeline); /* buffers are freed with the device */
}

static void submit(bench *g, size_t count) {
  vyre_status st;
  st.code = VYRE_OK;
  vulkan_check(vyre_submit(g->o.pipeline, g->o.items, count, NULL, &st), &st,
               g->suite);
}

static void replay(bench *g, vyre_recording *rec) {
  vyre_status st;
  st.code = VYRE_OK;
  vulkan_check(vyre_recording_replay(rec, NULL, NULL, &st), &st, g->suite);
}

static void vyre_each(void *self) {
  for (int i = 0; i < REPEAT; i++) submit(self, 1);
}

static void vyre_batch(void *self) {
  submit(self, BATCH);
}

static void vyre_host(void *self) {
  bench *g = self;
  ours *o = &g->o;
  vyre_input in[] = {vyre_input_bytes(o->host_x, BYTES),
                     vyre_input_bytes(o->host_y, BYTES),
                     vyre_input_bytes(&o->a, 4)};
  vyre_output out[] = {vyre_output_bytes(o->host_y, BYTES)};
  const vyre_dispatch_desc d = {.grid = {1}};
  vyre_status st;
  st.code = VYRE_OK;
  for (int i = 0; i < REPEAT; i++) {
    vulkan_check(
        vyre_dispatch_borrowed_into(o->pipeline, in, 3, out, 1, &d, &st), &st,
        g->suite);
  }
}

static void vyre_replay_one(void *self) {
  bench *g = self;
  for (int i = 0; i < REPEAT; i++) replay(g, g->o.one);
}

static void vyre_replay_many(void *self) {
  bench *g = self;
  replay(g, g->o.many);
}

static void vyre_rebound(void *self) {
  bench *g = self;
  vyre_status st = {0};
  for (int i = 0; i < REPEAT; i++) {
    g->turn = !g->turn;
    const vyre_slot_binding y = {.buffer = g->o.y[g->turn]};
    vulkan_check(vyre_recording_bind_slot(g->o.one, g->o.slot, &y, &st), &st,
                 g->suite);
    replay(g, g->o.one);
  }
}

/* --- hand-written Vulkan -------------------------------------------------- */

static bool create_theirs(bench *g) {
  theirs *t = &g->t;
  raw *r = g->g.r;
  const union {
    float f;
    uint32_t u;
  } a = {0.37f};
  t->kernel = raw_kernel_create(r, "saxpy_plain", 2, 2);
  if (!t->kernel) return false;
  t->x = raw_buffer_create(r, BYTES);
  t->y = raw_buffer_create(r, (size_t)BYTES * BATCH);
  for (size_t i = 0; i < BATCH; i++) {
    const raw_range ranges[] = {{.buffer = t->x}, {t->y, i * BYTES, BYTES}};
    t->sets[i] = raw_set_create(t->kernel, ranges);
    t->items[i] = (raw_dispatch){.kernel = t->kernel,
                                 .set = t->sets[i],
                                 .words = {a.u, ELEMENTS},
                                 .grid = {1, 1, 1}};
  }
  t->fresh = raw_list_create(r);
  t->one = raw_list_create(r);
  t->many = raw_list_create(r);
  raw_record(t->one, t->items, 1);
  raw_record(t->many, t->items, BATCH);
  return true;
}

static void free_theirs(theirs *t) {
  raw_list_free(t->fresh);
  raw_list_free(t->one);
  raw_list_free(t->many);
  for (int i = 0; i < BATCH; i++) raw_set_free(t->sets[i]);
  raw_buffer_free(t->x);
  raw_buffer_free(t->y);
  raw_kernel_free(t->kernel);
}

static void raw_each(void *self) {
  bench *g = self;
  for (int i = 0; i < REPEAT; i++) {
    raw_record(g->t.fresh, g->t.items, 1);
    raw_run(g->t.fresh);
  }
}

static void raw_batch(void *self) {
  bench *g = self;
  raw_record(g->t.fresh, g->t.items, BATCH);
  raw_run(g->t.fresh);
}

static void raw_host(void *self) {
  bench *g = self;
  theirs *t = &g->t;
  for (int i = 0; i < REPEAT; i++) {
    memcpy(raw_buffer_bytes(t->x), t->host_x, BYTES);
    memcpy(raw_buffer_bytes(t->y), t->host_y, BYTES);
    raw_record(t->fresh, t->items, 1);
    raw_run(t->fresh);
    memcpy(t->host_y, raw_buffer_bytes(t->y), BYTES);
  }
}

static void raw_replay_one(void *self) {
  bench *g = self;
  for (int i = 0; i < REPEAT; i++) raw_run(g->t.one);
}

static void raw_replay_many(void *self) {
  bench *g = self;
  raw_run(g->t.many);
}

static void raw_rebound(void *self) {
  bench *g = self;
  for (int i = 0; i < REPEAT; i++) {
    g->turn = !g->turn;
    raw_record(g->t.fresh, &g->t.items[g->turn], 1);
    raw_run(g->t.fresh);
  }
}

/* --- wgpu ----------------------------------------------------------------- */

static void run_wgpu_each(void *self) {
  bench *g = self;
  (void)wgpu_each(g->wgpu, REPEAT);
}

static void run_wgpu_batch(void *self) {
  bench *g = self;
  (void)wgpu_batch(g->wgpu, BATCH);
}

/* --- rows ----------------------------------------------------------------- */

/* One row: the same work for all rivals. */
typedef struct row {
  const char *name;
  void (*run[RIVALS])(void *self); /* NULL: not supported */
  int runs;                        /* dispatches per run */
  double max_ratio; /* limit on the time relative to raw Vulkan; 0: none */
} row;

static void add_peer(const bench *g, const row *r, int peer, const char *note) {
  char name[96];
  const cpu_entry *e = g->entries;
  cpu_quartiles mine = cpu_quartiles_of(e[VYRE].ns, g->rounds);
  cpu_quartiles their = {0}, ratio = {0};
  if (e[peer].run) {
    their = cpu_quartiles_of(e[peer].ns, g->rounds);
    ratio = cpu_paired(&e[VYRE], &e[peer], g->rounds);
  }
  (void)snprintf(name, sizeof name, "%s%s%s", r->name,
                 peer == RAW ? "" : ", against ",
                 peer == RAW ? "" : titles[peer]);
  double scale = 1e-3 / r->runs;
  bench_row_add(&(bench_result){.suite = g->suite,
                                .name = name,
                                .unit = "us",
                                .value = mine.median * scale,
                                .best = mine.minimum * scale,
                                .peer = titles[peer],
                                .peer_value = their.median * scale,
                                .peer_best = their.minimum * scale,
                                .ratio = ratio.median,
                                .ratio_low = ratio.low,
                                .ratio_high = ratio.high,
                                .note = note});
}

static void print_row(const bench *g, const row *r, const char *note) {
  const cpu_entry *e = g->entries;
  double scale = 1e-3 / r->runs;
  cpu_quartiles q[RIVALS] = {{0}};
  printf("%-34s", r->name);
  for (int i = 0; i < RIVALS; i++) {
    if (!e[i].run) {
      printf(" %10s", "-");
      continue;
    }
    q[i] = cpu_quartiles_of(e[i].ns, g->rounds);
    printf(" %10.3f", q[i].median * scale);
  }
  printf(" %7.2fx %7.2fx  %s\n",
         cpu_paired(&e[VYRE], &e[RAW], g->rounds).median,
         q[RAW].minimum / q[VYRE].minimum, note);
  (void)fflush(stdout);
}

static void run_row(bench *g, const row *r) {
  char note[64] = "no bar";
  for (int i = 0; i < RIVALS; i++) {
    bool is_available = r->run[i] && (i != WGPU || g->wgpu);
    g->entries[i] = (cpu_entry){.name = titles[i],
                                .run = is_available ? r->run[i] : NULL,
                                .self = g,
                                .warm = 1,
                                .timed = 5};
  }
  g->rounds = cpu_rounds(g->entries, RIVALS, cpu_round_count(15));
  if (r->max_ratio > 0) {
    double ratio =
        cpu_paired(&g->entries[VYRE], &g->entries[RAW], g->rounds).median;
    bool is_met = ratio * r->max_ratio >= 1;
    g->asked++;
    g->met += is_met;
    (void)snprintf(note, sizeof note, "%s: at most %.2fx raw",
                   is_met ? "met" : "not met", r->max_ratio);
  }
  print_row(g, r, note);
  add_peer(g, r, RAW, note);
  if (r->run[WGPU])
    add_peer(g, r, WGPU,
             g->wgpu ? "includes the cost of Python" : "the peer is missing");
}

/* Checks that both give the same bits, before anything is timed. */
static void compare(bench *g) {
  static uint32_t mine[ELEMENTS];
  vyre_status st = {0};
  float *x = raw_buffer_bytes(g->t.x), *y = raw_buffer_bytes(g->t.y);
  for (int i = 0; i < ELEMENTS; i++) {
    x[i] = (float)(i + 1) / 3;
    y[i] = 1 / (float)(i + 1);
  }
  vulkan_check(vyre_buffer_upload(g->g.device, g->o.x, 0, x, BYTES, &st), &st,
               g->suite);
  vulkan_check(vyre_buffer_upload(g->g.device, g->o.y[0], 0, y, BYTES, &st),
               &st, g->suite);
  memcpy(g->o.host_x, x, BYTES);
  memcpy(g->o.host_y, y, BYTES);
  memcpy(g->t.host_x, x, BYTES);
  memcpy(g->t.host_y, y, BYTES);
  submit(g, 1);
  replay(g, g->o.one);
  raw_record(g->t.fresh, g->t.items, 1);
  raw_run(g->t.fresh);
  raw_run(g->t.one);
  vulkan_check(
      vyre_buffer_download(g->g.device, g->o.y[0], 0, mine, BYTES, &st), &st,
      g->suite);
  const void *by_hand = y; /* compare bits, not values */
  if (memcmp(mine, by_hand, BYTES) != 0)
    bench_fail(g->suite, "vyre and raw Vulkan differ");
}

/* --- the suites ----------------------------------------------------------- */

static bench *open_bench(const char *suite) {
  const char *reason;
  bench *g = calloc(1, sizeof *g);
  if (!g) bench_fail(suite, "out of memory");
  g->suite = suite;
  if (!vulkan_open(&g->g, suite)) {
    free(g);
    return NULL;
  }
  if (!create_theirs(g)) {
    cpu_missing(suite, titles[RAW], vulkan_no_modules);
    vulkan_close(&g->g);
    free(g);
    return NULL;
  }
  create_ours(g);
  compare(g);
  g->wgpu = wgpu_start(&reason);
  vulkan_print(&g->g, suite);
  if (g->wgpu) {
    printf("%.90s\n", wgpu_version(g->wgpu));
  } else {
    cpu_missing(suite, titles[WGPU], reason);
  }
  printf(
      "saxpy of %d elements, wait included; ratio of medians round by round, "
      "and of best times\n\n%-34s",
      ELEMENTS, "microseconds");
  for (int i = 0; i < RIVALS; i++) printf(" %10s", titles[i]);
  printf(" %8s %8s\n", "ratio", "of best");
  return g;
}

static void close_bench(bench *g) {
  printf("%d of %d bars are met\n\n", g->met, g->asked);
  wgpu_stop(g->wgpu);
  free_ours(&g->o);
  free_theirs(&g->t);
  vulkan_close(&g->g);
  free(g);
}

void bench_vulkan_dispatch(void) {
  static const row rows[] = {
      {"one, with the wait",
       {vyre_each, raw_each, run_wgpu_each},
       REPEAT,
       1.10},
      {"one, bytes of the host", {vyre_host, raw_host, NULL}, REPEAT, 0},
      {"each of 1000 in one submission",
       {vyre_batch, raw_batch, run_wgpu_batch},
       BATCH,
       1.05}};
  bench *g = open_bench("vulkan.dispatch");
  if (!g) return;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    run_row(g, &rows[i]);
  close_bench(g);
}

void bench_vulkan_replay(void) {
  static const row rows[] = {
      {"one, recorded before",
       {vyre_replay_one, raw_replay_one, run_wgpu_each},
       REPEAT,
       1.05},
      {"each of 1000, recorded before",
       {vyre_replay_many, raw_replay_many, run_wgpu_batch},
       BATCH,
       1.05},
      {"one, bound again each time",
       {vyre_rebound, raw_rebound, NULL},
       REPEAT,
       0},
      {"a replay, against recording it",
       {vyre_replay_one, raw_each, NULL},
       REPEAT,
       0},
      {"a dispatch, against raw replay",
       {vyre_each, raw_replay_one, NULL},
       REPEAT,
       0}};
  bench *g = open_bench("vulkan.replay");
  if (!g) return;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    run_row(g, &rows[i]);
  close_bench(g);
}
