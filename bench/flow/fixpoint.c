/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suite flow.fixpoint: reaching definitions of a flow graph, by the queue kernel of
 * examples/dataflow on all processors, against worklists in C on one thread: first
 * in, first out, and the lowest node first.
 *
 * The graph is like that of a large program: nodes lead to the next one, and one
 * in four also branches ahead or back. $VYRE_BENCH_SCALE is the logarithm of the
 * number of nodes (default 20). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vyre/vyre.h"

#include "bench.h"
#include "cpu/machine.h"
#include "cpu/rounds.h"
#include "flow/flow.h"
#include "graph/graph.h"

static const char suite[] = "flow.fixpoint";

enum { ROUNDS = 15, MAX_TEXT = 16384, VARIABLES = 64, PLACES = 4 };

/* --- the program --------------------------------------------------------------*/

typedef struct program {
  flow_program p;
  uint32_t *first, *next, *gen, *kill, *all;
  uint32_t edges;
  size_t fact_bytes;
} program;

static void *pages(uint64_t bytes) {
  void *memory = graph_pages(bytes);
  if (!memory) bench_fail(suite, "no memory");
  return memory;
}

/* Adds the edges that leave node @p v. */
static void add_edges(program *to, uint32_t v, uint64_t dice) {
  const uint32_t n = to->p.nodes;
  const uint32_t distance = 2 + (uint32_t)(dice >> 8) % 60;
  if (v + 1 < n) to->next[to->edges++] = v + 1;
  if (dice % 4 != 0) return;
  if (dice >> 40 & 1) {
    if (v + distance < n) to->next[to->edges++] = v + distance;
  } else if (v > 8 * distance) {
    to->next[to->edges++] = v - 8 * distance;
  }
}

/* Every second node defines one of 64 variables, in one of four places. */
static void add_definition(program *to, uint32_t v, uint64_t dice) {
  const uint32_t bit = (uint32_t)(dice >> 20) % VARIABLES * PLACES;
  const size_t word = (size_t)v * FLOW_FACT_WORDS + bit / 32;
  if ((dice >> 50 & 1) == 0) return;
  to->gen[word] = UINT32_C(1) << (bit % 32 + (uint32_t)(dice >> 30) % PLACES);
  to->kill[word] = UINT32_C(15) << bit % 32;
}

static void make_program(program *to, uint32_t nodes) {
  *to = (program){.p = {.nodes = nodes},
                  .fact_bytes = (size_t)nodes * FLOW_FACT_WORDS * 4};
  to->first = pages((nodes + 1ull) * 4);
  to->next = pages(nodes * 8ull);
  to->all = pages(nodes * 4ull);
  to->gen = pages(to->fact_bytes);
  to->kill = pages(to->fact_bytes);
  for (uint32_t v = 0; v < nodes; v++) {
    const uint64_t dice = graph_mix(v);
    to->first[v] = to->edges;
    to->all[v] = v;
    add_edges(to, v, dice);
    add_definition(to, v, dice);
  }
  to->first[nodes] = to->edges;
  to->p.offsets = to->first;
  to->p.targets = to->next;
  to->p.gen = to->gen;
  to->p.kill = to->kill;
}

static void free_program(program *p) {
  graph_pages_free(p->first, (p->p.nodes + 1ull) * 4);
  graph_pages_free(p->next, p->p.nodes * 8ull);
  graph_pages_free(p->all, p->p.nodes * 4ull);
  graph_pages_free(p->gen, p->fact_bytes);
  graph_pages_free(p->kill, p->fact_bytes);
}

/* --- entries ------------------------------------------------------------------*/

enum { FIRST, NEXT, GEN, KILL, REACHING, NODES, BINDINGS };

typedef struct ours {
  const program *program;
  vyre_module *module;
  vyre_queue *queue;
  vyre_buffer buffers[NODES];
  vyre_input inputs[BINDINGS];
  uint32_t *reaching;
  vyre_queue_stats stats;
} ours;

static void run_ours(void *self) {
  ours *o = self;
  vyre_status st = {0};
  const vyre_dispatch_desc desc = {.resources = o->inputs,
                                   .resource_count = BINDINGS};
  memset(o->reaching, 0, o->program->fact_bytes);
  if (vyre_queue_fill(o->queue, o->program->all, o->program->p.nodes, &st) !=
          VYRE_OK ||
      vyre_queue_run(o->queue, &desc, &o->stats, NULL, &st) != VYRE_OK) {
    bench_fail(suite, st.message);
  }
}

typedef struct theirs {
  void (*run)(const flow_program *p, uint32_t *in);
  const flow_program *p;
  uint32_t *in;
} theirs;

static void run_theirs(void *self) {
  const theirs *t = self;
  t->run(t->p, t->in);
}

/* The kernels with words of 64 bits. */
static void parse(ours *o) {
  static char text[MAX_TEXT];
  static const vyre_define defines[] = {{.name = "bits", .value = "u64"},
                                        {.name = "WORDS", .value = "4"}};
  const vyre_module_options options = {.defines = defines, .define_count = 2};
  vyre_status st = {0};
  FILE *file = fopen(VYRE_EXAMPLES "/dataflow/reaching.vyre", "r");
  size_t length = file ? fread(text, 1, sizeof text, file) : 0;
  if (!file || fclose(file) != 0) bench_fail(suite, "no kernel file");
  if (vyre_module_parse_with(text, length, "reaching.vyre", &options,
                             vyre_allocator_heap(), &o->module, NULL,
                             &st) != VYRE_OK) {
    bench_fail(suite, st.message);
  }
}

static void prepare(ours *o, const program *p, vyre_device *device) {
  vyre_status st = {0};
  *o = (ours){.program = p, .reaching = pages(p->fact_bytes)};
  void *const memory[NODES] = {p->first, p->next, p->gen, p->kill, o->reaching};
  const uint64_t sizes[NODES] = {(p->p.nodes + 1ull) * 4, p->edges * 4ull,
                                 p->fact_bytes, p->fact_bytes, p->fact_bytes};
  parse(o);
  for (int i = 0; i < NODES; i++) {
    if (vyre_buffer_import(device, memory[i], sizes[i], &o->buffers[i], &st) !=
        VYRE_OK) {
      bench_fail(suite, st.message);
    }
    o->inputs[i] = vyre_input_buffer(o->buffers[i]);
  }
  o->inputs[NODES] = vyre_input_bytes(&p->p.nodes, sizeof p->p.nodes);
  const vyre_queue_options options = {.capacity = p->p.nodes};
  if (vyre_queue_create(device, vyre_module_kernel(o->module, 0), &options,
                        &o->queue, NULL, &st) != VYRE_OK) {
    bench_fail(suite, st.message);
  }
}

static void release(ours *o, vyre_device *device) {
  vyre_queue_release(o->queue);
  for (int i = 0; i < NODES; i++)
    (void)vyre_buffer_destroy(device, o->buffers[i], NULL);
  vyre_module_release(o->module);
  graph_pages_free(o->reaching, o->program->fact_bytes);
}

/* --- the suite ----------------------------------------------------------------*/

/* Measures the queue and the worklists of all peers, and compares with the best
 * peer of each kind. */
static void measure(ours *o, const flow_peers *peers) {
  enum { KINDS = 2, MAX_ENTRIES = 1 + KINDS * FLOW_MAX_PEERS };
  static const char *const names[KINDS] = {"first in, first out",
                                           "lowest node first"};
  static const double bars[KINDS] = {3.0, 1.0};
  const program *p = o->program;
  cpu_entry entries[MAX_ENTRIES] = {
      {.name = "vyre", .run = run_ours, .self = o, .warm = 1, .timed = 1}};
  theirs others[MAX_ENTRIES];
  int count = 1;
  for (int kind = 0; kind < KINDS; kind++) {
    for (int i = 0; i < peers->count; i++, count++) {
      others[count] = (theirs){kind == 0 ? peers->peers[i]->fixpoint_fifo
                                         : peers->peers[i]->fixpoint_lowest,
                               &p->p, pages(p->fact_bytes)};
      entries[count] = (cpu_entry){.name = peers->names[i],
                                   .run = run_theirs,
                                   .self = &others[count],
                                   .warm = 1,
                                   .timed = 1};
    }
  }
  const int rounds = cpu_rounds(entries, count, cpu_round_count(ROUNDS));
  for (int i = 1; i < count; i++) {
    if (memcmp(o->reaching, others[i].in, p->fact_bytes) != 0)
      bench_fail(suite, "vyre and the peer have different results");
    graph_pages_free(others[i].in, p->fact_bytes);
  }
  for (int kind = 0; kind < KINDS && count > 1; kind++) {
    flow_row(suite, names[kind], entries, &entries[1 + kind * peers->count],
             peers->count, rounds, bars[kind]);
  }
}

void bench_flow_fixpoint(void) {
  vyre_status st = {0};
  vyre_context *context;
  vyre_device *device;
  const vyre_context_options options = {
      .backend_options = cpu_is_alone() ? "cpu.threads=1" : NULL};
  flow_peers peers = flow_peers_open(suite);
  program p;
  ours mine;
  if (vyre_context_create(&options, &context, &st) != VYRE_OK ||
      vyre_device_open(context, "cpu", &device, &st) != VYRE_OK) {
    bench_fail(suite, st.message);
  }
  make_program(&p, UINT32_C(1) << flow_scale());
  prepare(&mine, &p, device);
  printf("%s: 2^%d nodes, %u edges, load %.1f; ratio above 1: vyre is faster\n",
         suite, flow_scale(), p.edges, flow_load());
  measure(&mine, &peers);
  printf("  %llu visits in %llu windows\n",
         (unsigned long long)mine.stats.items,
         (unsigned long long)mine.stats.windows);
  release(&mine, device);
  free_program(&p);
  vyre_device_release(device);
  vyre_context_release(context);
}
