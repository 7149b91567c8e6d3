/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suite cpu.dispatch: the cost of a small dispatch, including the wait,
 * compared with a call, OpenMP and PoCL. For $VYRE_BENCH_DEVICE see
 * kernels.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vyre/vyre.h"

#include "bench.h"
#include "machine.h"
#include "rival.h"
#include "rounds.h"

static const char suite[] = "cpu.dispatch";

enum { VYRE, DIRECT, GCC, CLANG, BASIC, PTHREAD, RIVALS };
enum { ELEMENTS = 256, BATCH = 1000, PIECE_ROUNDS = 10000, MAX_THREADS = 256 };

static const char *const titles[RIVALS] = {"vyre",       "a call",
                                           "OpenMP gcc", "OpenMP clang",
                                           "PoCL basic", "PoCL pthread"};

typedef struct ground {
  cpu_vyre *v;
  const cpu_peer *gcc, *clang;
  cpu_opencl *basic, *pthread;
  cpu_workload w;
  int rounds;
  uint32_t threads;
} ground;

/* Launches @p repeat times, and waits after each launch or once. */
typedef struct job {
  cpu_rival rival;
  ground *g;
  int repeat;
} job;

static bool is_there(const ground *g, int rival) {
  const void *const all[RIVALS] = {g->v,     g->gcc,   g->gcc,
                                   g->clang, g->basic, g->pthread};
  return all[rival] != NULL;
}

/* --- table -----------------------------------------------------------------*/

/* Microseconds of each rival in each round; 0: not installed. */
typedef double figures[RIVALS][CPU_MOST_ROUNDS];

static void print_head(void) {
  printf("%-27s", "microseconds");
  for (int i = 0; i < RIVALS; i++) printf(" %*s", i == 0 ? 7 : 12, titles[i]);
  printf("\n");
}

static void add_rows(const ground *g, const char *name, double limit,
                     figures f) {
  cpu_quartiles q[RIVALS];
  bool has[RIVALS];
  printf("%-27s", name);
  for (int i = 0; i < RIVALS; i++) {
    q[i] = cpu_quartiles_of(f[i], g->rounds);
    has[i] = q[i].median < 0 || q[i].median > 0;
    if (has[i]) {
      printf(" %*.*f", i == 0 ? 7 : 12, q[i].median < 10 ? 3 : 1, q[i].median);
    } else {
      printf(" %*s", i == 0 ? 7 : 12, "-");
    }
  }
  printf("\n");
  (void)fflush(stdout);
  bench_row_add(
      &(bench_result){.suite = suite,
                      .name = name,
                      .unit = "us",
                      .value = q[VYRE].median,
                      .best = q[VYRE].minimum,
                      .peer = limit > 0 ? "its limit" : "",
                      .peer_value = limit,
                      .peer_best = limit,
                      .ratio = q[VYRE].median > 0 ? limit / q[VYRE].median : 0,
                      .note = ""});
  for (int i = DIRECT; i < RIVALS; i++) {
    if (is_there(g, i) && !has[i]) continue; /* it does not support this */
    bool has_ratio = q[i].median > 0 && q[VYRE].median > 0;
    char what[96];
    (void)snprintf(what, sizeof what, "%s, against %s", name, titles[i]);
    bench_row_add(&(bench_result){
        .suite = suite,
        .name = what,
        .unit = "us",
        .value = q[VYRE].median,
        .best = q[VYRE].minimum,
        .peer = titles[i],
        .peer_value = q[i].median,
        .peer_best = q[i].minimum,
        .ratio = has_ratio ? q[i].median / q[VYRE].median : 0,
        .note = is_there(g, i) ? "" : "the peer is not installed"});
  }
}

/* Times the entries in the order of the table; one run is @p runs launches. */
static void take(ground *g, cpu_entry *entries, const int *runs, figures out) {
  g->rounds = cpu_rounds(entries, RIVALS, g->rounds);
  for (int i = 0; i < RIVALS; i++) {
    for (int r = 0; r < g->rounds; r++) {
      out[i][r] = entries[i].run ? entries[i].ns[r] / 1e3 / runs[i] : 0;
    }
  }
}

/* --- one after the other ---------------------------------------------------*/

static void run_rival(void *self) {
  const job *j = self;
  for (int i = 0; i < j->repeat; i++) j->rival.launch(j->rival.self);
}

static void run_direct(void *self) {
  const job *j = self;
  for (int i = 0; i < j->repeat; i++) j->g->gcc->saxpy_alone(&j->g->w.args);
}

static void run_enqueue(void *self) {
  const job *j = self;
  for (int i = 0; i < j->repeat; i++) cpu_opencl_enqueue(j->rival.self);
  cpu_opencl_finish(j->rival.self);
}

/* A separate y for each item: a batch must not write the same memory twice. */
typedef struct batch {
  vyre_pipeline *pipeline;
  vyre_dispatch_desc items[BATCH];
  vyre_input inputs[BATCH][3];
  vyre_output outputs[BATCH];
  float y[BATCH][ELEMENTS];
} batch;

static void run_batch(void *self) {
  batch *b = *(batch **)self;
  vyre_status st;
  st.code = VYRE_OK;
  if (vyre_dispatch_borrowed_batched_into(b->pipeline, b->items, BATCH, &st) !=
      VYRE_OK) {
    bench_fail("batch", st.message);
  }
}

static batch *make_batch(const ground *g) {
  batch *b = calloc(1, sizeof *b);
  if (!b) bench_fail("batch", "out of memory");
  b->pipeline = cpu_vyre_pipeline(g->v);
  for (int i = 0; i < BATCH; i++) {
    size_t size = sizeof b->y[i];
    b->inputs[i][0] = vyre_input_bytes(g->w.args.buffers[0].data, size);
    b->inputs[i][1] = vyre_input_bytes(b->y[i], size);
    b->inputs[i][2] = vyre_input_bytes(&g->w.args.scalars[0], 4);
    b->outputs[i] = vyre_output_bytes(b->y[i], size);
    b->items[i] = (vyre_dispatch_desc){.inputs = b->inputs[i],
                                       .input_count = 3,
                                       .outputs = &b->outputs[i],
                                       .output_count = 1,
                                       .require_zero_copy = true};
  }
  return b;
}

static uint32_t slot_of(vyre_recording *rec, void *data, size_t size) {
  vyre_status st = {0};
  vyre_slot_binding resource = {.data = data, .size = size};
  uint32_t slot;
  if (vyre_recording_add_fixed_slot(rec, &resource, &slot, &st) != VYRE_OK) {
    bench_fail("replay", st.message);
  }
  return slot;
}

/* Records the same launches as the batch. */
static vyre_recording *make_recording(const ground *g, batch *b) {
  vyre_recording *rec;
  vyre_status st = {0};
  size_t size = sizeof b->y[0];
  vyre_code code = vyre_recording_create(cpu_vyre_device(g->v), &rec, &st);
  if (code != VYRE_OK) bench_fail("replay", st.message);
  uint32_t x = slot_of(rec, g->w.args.buffers[0].data, size);
  uint32_t a = slot_of(rec, (void *)(uintptr_t)&g->w.args.scalars[0], 4);
  for (int i = 0; i < BATCH && code == VYRE_OK; i++) {
    vyre_slot_range y = vyre_slot_range_all(slot_of(rec, b->y[i], size));
    vyre_slot_range in[] = {vyre_slot_range_all(x), y, vyre_slot_range_all(a)};
    vyre_recorded_dispatch d = {
        .inputs = in, .input_count = 3, .outputs = &y, .output_count = 1};
    code = vyre_recording_add_dispatch(rec, b->pipeline, &d, &st);
  }
  if (code == VYRE_OK) code = vyre_recording_seal(rec, &st);
  if (code != VYRE_OK) bench_fail("replay", st.message);
  return rec;
}

static void run_replay(void *self) {
  vyre_status st;
  st.code = VYRE_OK;
  if (vyre_recording_replay(*(vyre_recording **)self, NULL, NULL, &st) !=
      VYRE_OK) {
    bench_fail("replay", st.message);
  }
}

/* A batch uses more memory than the nearest caches hold. After a round of the
 * others and a pause, it takes about twenty runs to reach its full speed. Both
 * are reported: the first run, and the speed it settles at. */
static void set_warm(cpu_entry *entries, int warm, int timed) {
  for (int i = 0; i < RIVALS; i++) {
    entries[i].warm = warm;
    entries[i].timed = timed;
  }
}

static void bench_small(ground *g) {
  static figures f;
  static cpu_entry entries[RIVALS];
  cpu_rival rivals[RIVALS] = {
      [VYRE] = cpu_vyre_rival(g->v, titles[VYRE]),
      [GCC] = cpu_peer_rival(g->gcc, titles[GCC]),
      [CLANG] = cpu_peer_rival(g->clang, titles[CLANG]),
      [BASIC] = cpu_opencl_rival(g->basic, titles[BASIC]),
      [PTHREAD] = cpu_opencl_rival(g->pthread, titles[PTHREAD])};
  job jobs[RIVALS];
  int runs[RIVALS];
  cpu_workload_make_saxpy(&g->w, ELEMENTS);
  for (int i = 0; i < RIVALS; i++) {
    runs[i] = i < BASIC ? 2000 : 200;
    jobs[i] = (job){rivals[i], g, runs[i]};
    entries[i] = (cpu_entry){.self = &jobs[i], .warm = 1, .timed = 5};
    if (!is_there(g, i)) continue;
    entries[i].run = i == DIRECT ? run_direct : run_rival;
    if (i != DIRECT) rivals[i].bind(rivals[i].self, &g->w);
  }
  take(g, entries, runs, f);
  add_rows(g, "256 elements, with the wait", 0.2, f);

  batch *b = g->v ? make_batch(g) : NULL;
  for (int i = 0; i < RIVALS; i++) {
    jobs[i].repeat = runs[i] = BATCH;
  }
  entries[VYRE].self = (void *)&b;
  if (b) entries[VYRE].run = run_batch;
  for (int i = BASIC; i <= PTHREAD; i++) {
    if (is_there(g, i)) entries[i].run = run_enqueue;
  }
  set_warm(entries, 0, 1);
  take(g, entries, runs, f);
  add_rows(g, "of a batch, after a pause", 0, f);
  set_warm(entries, 25, 11);
  take(g, entries, runs, f);
  add_rows(g, "each of a batch of 1000", 0.1, f);
  vyre_recording *rec = b ? make_recording(g, b) : NULL;
  entries[VYRE].self = (void *)&rec;
  if (rec) entries[VYRE].run = run_replay;
  take(g, entries, runs, f);
  add_rows(g, "each of a replay of 1000", 0.1, f);
  vyre_recording_release(rec);
  free(b);
  for (int i = 0; i < RIVALS; i++) {
    if (is_there(g, i) && i != DIRECT) rivals[i].unbind(rivals[i].self);
  }
  cpu_workload_free(&g->w);
}

/* --- on all cores ----------------------------------------------------------*/

enum { LAUNCHES = 50 };

typedef struct pieces_job {
  const ground *g;
  const cpu_peer *peer;
  cpu_opencl *cl;
  uint32_t count; /* number of items */
  uint32_t out[MAX_THREADS];
} pieces_job;

static void pieces_vyre(void *self) {
  pieces_job *j = self;
  uint32_t rounds = PIECE_ROUNDS;
  vyre_input in[] = {vyre_input_bytes(j->out, (size_t)j->count * 4),
                     vyre_input_bytes(&rounds, 4)};
  vyre_output out[] = {vyre_output_bytes(j->out, (size_t)j->count * 4)};
  vyre_dispatch_desc d = {.grid = {j->count}, .require_zero_copy = true};
  vyre_status st;
  st.code = VYRE_OK;
  for (int i = 0; i < LAUNCHES; i++) {
    if (vyre_dispatch_borrowed_into(cpu_vyre_pipeline(j->g->v), in, 2, out, 1,
                                    &d, &st) != VYRE_OK) {
      bench_fail("pieces", st.message);
    }
  }
}

static void pieces_openmp(void *self) {
  pieces_job *j = self;
  for (int i = 0; i < LAUNCHES; i++) {
    j->peer->pieces(j->out, (int)j->count, PIECE_ROUNDS);
  }
}

static void pieces_alone(void *self) {
  pieces_job *j = self;
  for (int i = 0; i < LAUNCHES; i++) {
    j->peer->pieces_alone(j->out, (int)j->count, PIECE_ROUNDS);
  }
}

static void pieces_opencl(void *self) {
  pieces_job *j = self;
  for (int i = 0; i < LAUNCHES; i++) {
    cpu_opencl_enqueue(j->cl);
    cpu_opencl_finish(j->cl);
  }
}

/* As many items as cores take as long as one item; the difference is the
 * launch. The single item is run by vyre for vyre, and in C for the peers. */
static void bench_all_cores(ground *g) {
  enum { ONE_VYRE, ONE_C, ALL_VYRE, ALL_GCC, ALL_CLANG, ALL_PTHREAD, JOBS };
  static figures f;
  static cpu_entry entries[JOBS];
  static pieces_job jobs[JOBS];
  static const int all[RIVALS] = {ALL_VYRE,  -1, ALL_GCC,
                                  ALL_CLANG, -1, ALL_PTHREAD};
  void (*const run[JOBS])(void *) = {pieces_vyre,   pieces_alone,
                                     pieces_vyre,   pieces_openmp,
                                     pieces_openmp, pieces_opencl};
  for (int i = 0; i < JOBS; i++) {
    jobs[i] = (pieces_job){.g = g,
                           .peer = i == ALL_CLANG ? g->clang : g->gcc,
                           .cl = g->pthread,
                           .count = i < ALL_VYRE ? 1 : g->threads};
    bool there = i == ONE_VYRE || i == ALL_VYRE ? g->v != NULL
                 : i == ALL_PTHREAD             ? g->pthread != NULL
                                                : jobs[i].peer != NULL;
    entries[i] = (cpu_entry){
        .run = there ? run[i] : NULL, .self = &jobs[i], .warm = 1, .timed = 5};
  }
  if (g->v) cpu_vyre_compile(g->v, "pieces");
  if (g->pthread) {
    cpu_opencl_bind_pieces(g->pthread, jobs[ALL_PTHREAD].out, g->threads,
                           PIECE_ROUNDS);
  }
  g->rounds = cpu_rounds(entries, JOBS, g->rounds);
  for (int i = 0; i < RIVALS; i++) {
    for (int r = 0; r < g->rounds; r++) {
      int base = i == VYRE ? ONE_VYRE : ONE_C;
      bool has = all[i] >= 0 && entries[all[i]].run && entries[base].run;
      f[i][r] =
          has ? (entries[all[i]].ns[r] - entries[base].ns[r]) / 1e3 / LAUNCHES
              : 0;
    }
  }
  add_rows(g, "on all cores, over its work", 1, f);
  if (g->v) {
    cpu_rival rival = cpu_vyre_rival(g->v, titles[VYRE]);
    rival.unbind(rival.self);
  }
  if (g->pthread) {
    cpu_rival rival = cpu_opencl_rival(g->pthread, titles[PTHREAD]);
    rival.unbind(rival.self);
  }
}

/* Returns false if the device is not available: nothing can be compared
 * then. */
static bool open_ground(ground *g, const char *device) {
  const char *why = NULL;
  vyre_status st = {0};
  if (strcmp(device, "none") != 0) {
    g->v = cpu_vyre_open(device, cpu_is_alone(), 0, &st);
    if (!g->v) cpu_missing(suite, device, st.message);
    if (!g->v) return false;
  }
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  g->threads = processors < 1             ? 1
               : processors > MAX_THREADS ? MAX_THREADS
                                          : (uint32_t)processors;
  g->gcc = cpu_peer_load("gcc");
  g->clang = cpu_peer_load("clang");
  if (!g->gcc) cpu_missing(suite, titles[GCC], cpu_peer_missing);
  if (!g->clang) cpu_missing(suite, titles[CLANG], cpu_peer_missing);
  if (g->gcc && cpu_is_alone()) g->gcc->threads(1);
  if (g->clang && cpu_is_alone()) g->clang->threads(1);
  g->basic = cpu_opencl_open("basic", &why);
  if (!g->basic) cpu_missing(suite, titles[BASIC], why);
  g->pthread = cpu_opencl_open("pthread", &why);
  if (!g->pthread) cpu_missing(suite, titles[PTHREAD], why);
  return true;
}

void bench_cpu_dispatch(void) {
  const char *device = cpu_device_name();
  ground *g = calloc(1, sizeof *g);
  if (!g) bench_fail(suite, "out of memory");
  g->rounds = cpu_round_count(15);
  if (open_ground(g, device)) {
    cpu_machine_print(suite, device);
    cpu_peers_print();
    if (cpu_is_alone()) printf("one thread each, by processor time\n");
    printf("medians of at most %d rounds of many launches back to back\n\n",
           g->rounds);
    print_head();
    bench_small(g);
    if (!cpu_is_alone()) bench_all_cores(g);
    printf("\n");
  }
  cpu_vyre_close(g->v);
  free(g);
}
