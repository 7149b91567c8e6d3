/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests that lane shapes hold. Kernels run one invocation after the other and
 * record all values. Every shape is then checked, lane by lane, against the
 * values of lanes that were active together. Variables:
 * testing/random_programs.h. */
#include <inttypes.h>

#include "lir/print.h"
#include "spmd/shape/lane_shape.h"
#include "spmd/shape/lane_shape_testing.h"
#include "support/sanitized.h"
#include "testing/kernels_testing.h"
#include "testing/random_programs.h"

enum {
  SEEDS = SANITIZED ? 60 : 400,
  WIDTHS = 5,
  MAX_DEPTH = 32, /* nesting depth of loops */
  MAX_INVOCATIONS = 1024,
  MAX_EVENTS = 2000000, /* per workgroup; the rest is not checked */
};

static const uint32_t widths[WIDTHS] = {1, 4, 8, 16, 32};

/* --- recording ------------------------------------------------------------ */

/* Iterations of the enclosing loops: iteration `round` of the loop at `loop`,
 * which was entered in `parent`. */
typedef struct iterations {
  uint32_t parent, loop, iteration, depth;
  uint32_t entry; /* index in the table */
} iterations;

/* One instruction in one combination of iterations: lanes that reach it are
 * active together. */
typedef struct instance {
  uint32_t iterations, at;
  uint32_t first, last; /* events */
  uint32_t entry;       /* index in the table */
} instance;

typedef struct event {
  uint32_t next, invocation;
  uint64_t value;
} event;

typedef struct record {
  const vyre__lir_kernel *kernel;
  const vyre__lir_phase *phase; /* current phase */
  uint32_t *ends;               /* END of a LOOP: the LOOP; else 0 */
  iterations *nodes;            /* [0] is unused */
  instance *instances;          /* [0] is unused */
  event *events;                /* [0] is unused */
  uint32_t node_count, instance_count, event_count;
  uint32_t *table; /* hash table of nodes and places */
  uint32_t table_size;
  uint32_t where[MAX_INVOCATIONS]; /* current iterations of each invocation */
  bool is_full;
  vyre__regions *regions;              /* one per phase */
  vyre__lane_shapes (*shapes)[WIDTHS]; /* one per phase */
  unsigned failed;
  const char *name;
} record;

static uint64_t checked[VYRE__LANE_SHAPE_VARYING + 1], shadows, steady_loops;
static uint64_t diverging_loops, lockstep_gets;

static uint32_t hash_of(uint32_t a, uint32_t b, uint32_t c) {
  uint64_t h = a * UINT64_C(0x9E3779B97F4A7C15) ^
               b * UINT64_C(0xC2B2AE3D27D4EB4F) ^
               c * UINT64_C(0x165667B19E3779F9);
  h ^= h >> 29;
  h *= UINT64_C(0xBF58476D1CE4E5B9);
  return (uint32_t)(h >> 32);
}

/* Finds a table entry: even numbers are nodes, odd ones places. */
static uint32_t *find_entry(record *r, uint32_t a, uint32_t b, uint32_t c,
                            bool is_instance) {
  uint32_t at = hash_of(a, b, c + is_instance) & (r->table_size - 1);
  for (;; at = (at + 1) & (r->table_size - 1)) {
    uint32_t id = r->table[at];
    if (!id) return &r->table[at];
    if ((id & 1) != is_instance) continue;
    if (is_instance) {
      const instance *p = &r->instances[id >> 1];
      if (p->iterations == a && p->at == b) return &r->table[at];
    } else {
      const iterations *n = &r->nodes[id >> 1];
      if (n->parent == a && n->loop == b && n->iteration == c)
        return &r->table[at];
    }
  }
}

static uint32_t node_of(record *r, uint32_t parent, uint32_t loop,
                        uint32_t iteration) {
  uint32_t *entry = find_entry(r, parent, loop, iteration, false);
  if (!*entry) {
    CHECK(r->nodes[parent].depth < MAX_DEPTH);
    uint32_t id = r->node_count++;
    r->nodes[id] =
        (iterations){parent, loop, iteration, r->nodes[parent].depth + 1,
                     (uint32_t)(entry - r->table)};
    *entry = id << 1;
  }
  return *entry >> 1;
}

static void note(record *r, uint32_t node, uint32_t at, uint32_t invocation,
                 uint64_t value) {
  uint32_t *entry = find_entry(r, node, at, 0, true);
  uint32_t id = r->event_count++;
  r->events[id] = (event){0, invocation, value};
  if (!*entry) {
    uint32_t instance_of = r->instance_count++;
    r->instances[instance_of] =
        (instance){node, at, id, id, (uint32_t)(entry - r->table)};
    *entry = instance_of << 1 | 1;
    return;
  }
  instance *p = &r->instances[*entry >> 1];
  r->events[p->last].next = id;
  p->last = id;
}

static void check_group(record *r);

/* Checks all records of the workgroup and clears them. */
static void end_group(record *r) {
  check_group(r);
  for (uint32_t i = 1; i < r->node_count; i++) r->table[r->nodes[i].entry] = 0;
  for (uint32_t i = 1; i < r->instance_count; i++)
    r->table[r->instances[i].entry] = 0;
}

static void begin_group(record *r, uint32_t at) {
  end_group(r);
  memset(r->where, 0, sizeof r->where);
  r->node_count = r->instance_count = r->event_count = 1;
  r->is_full = false;
  for (uint32_t i = 0; i < r->kernel->phase_count; i++) {
    if (r->kernel->phases[i].begin == at) r->phase = &r->kernel->phases[i];
  }
}

static void observe(void *self, uint32_t invocation, uint32_t at,
                    uint64_t value) {
  record *r = self;
  bool is_first = false;
  for (uint32_t i = 0; i < r->kernel->phase_count; i++) {
    is_first |= r->kernel->phases[i].begin == at;
  }
  if (is_first && invocation == 0) begin_group(r, at);
  if (r->is_full || r->event_count + MAX_DEPTH + 2 > MAX_EVENTS) {
    r->is_full = true;
    return;
  }
  uint32_t *node = &r->where[invocation];
  uint8_t op = r->kernel->code[at].op;
  if (op == VYRE__LIR_LOOP) {
    *node = node_of(r, *node, at, 0);
  } else if (op == VYRE__LIR_END && r->ends[at]) {
    iterations here = r->nodes[*node];
    *node = node_of(r, here.parent, here.loop, here.iteration + 1);
  } else if (op == VYRE__LIR_BREAK || op == VYRE__LIR_EXIT) {
    bool is_exit = op == VYRE__LIR_EXIT;
    do { /* the record of a LOOP is how it was left */
      iterations here = r->nodes[*node];
      if (!*node) break;
      note(r, here.parent, here.loop, invocation,
           here.iteration * 2ull + is_exit);
      *node = here.parent;
    } while (is_exit);
  } else if (op == VYRE__LIR_IF || op == VYRE__LIR_SET ||
             r->kernel->code[at].type != VYRE_TYPE_VOID) {
    note(r, *node, at, invocation, value);
  }
}

/* --- checking shapes ------------------------------------------------------ */

static void report(record *r, const instance *p, uint32_t width,
                   vyre__lane_shape s, const event *e, const char *problem) {
  static const char *const kinds[] = {"constant", "group", "vector", "linear",
                                      "varying"};
  char text[VYRE__LIR_TEXT];
  if (r->failed++ > 8) return;
  printf("    %s, width %u, instruction %u, '%s': claimed %s", r->name, width,
         p->at, vyre__lir_text(r->kernel, p->at, text), kinds[s.kind]);
  printf(" %" PRId64 " @%u, but %s: invocation %u has %" PRIu64 "\n",
         (int64_t)s.stride, s.aligned, problem, e->invocation, e->value);
}

static uint64_t mask_of(const record *r, uint32_t at) {
  switch (r->kernel->code[at].type) {
    case VYRE_TYPE_U64:
    case VYRE_TYPE_F64:
      return UINT64_MAX;
    default:
      return UINT32_MAX;
  }
}

static uint64_t base_of(const event *e, vyre__lane_shape s, uint32_t width,
                        uint64_t mask) {
  uint64_t stride = s.kind == VYRE__LANE_SHAPE_LINEAR ? s.stride : 0;
  return (e->value - stride * (e->invocation % width)) & mask;
}

static bool is_aligned(uint64_t base, unsigned aligned, uint64_t mask) {
  return aligned >= 64 ? base == 0
                       : ((base & mask) & ((UINT64_C(1) << aligned) - 1)) == 0;
}

/* Compares a lane with the first recorded lane of its vector, in @p bases. */
static bool agrees(const event *e, uint64_t base, uint32_t width,
                   uint64_t *bases, uint32_t *stamps, uint32_t stamp) {
  uint32_t vector = e->invocation / width;
  if (stamps[vector] != stamp) {
    stamps[vector] = stamp;
    bases[vector] = base;
  }
  return bases[vector] == base;
}

static void check_instance(record *r, const instance *p,
                           const vyre__lane_shapes *s) {
  static uint64_t bases[MAX_INVOCATIONS];
  static uint32_t stamps[MAX_INVOCATIONS], stamp;
  const vyre__lir_inst *inst = &r->kernel->code[p->at];
  uint32_t width = s->width;
  uint64_t mask = mask_of(r, p->at);
  stamp++;
  if (inst->op == VYRE__LIR_SET) return;
  if (inst->op == VYRE__LIR_LOOP || inst->op == VYRE__LIR_IF) {
    bool diverges = s->parts_lanes[p->at - s->begin];
    if (inst->op == VYRE__LIR_LOOP)
      *(diverges ? &diverging_loops : &steady_loops) += 1;
    for (uint32_t i = p->first; i && !diverges; i = r->events[i].next) {
      const event *e = &r->events[i];
      if (agrees(e, e->value, width, bases, stamps, stamp)) continue;
      report(r, p, width, (vyre__lane_shape){0}, e, "lanes diverge");
      return;
    }
    return;
  }
  vyre__lane_shape claim = vyre__lane_shape_of(s, p->at);
  bool is_integer = inst->type == VYRE_TYPE_U32 || inst->type == VYRE_TYPE_U64;
  checked[claim.kind]++;
  if (claim.kind == VYRE__LANE_SHAPE_VARYING) return;
  for (uint32_t i = p->first; i; i = r->events[i].next) {
    const event *e = &r->events[i];
    const event *first = &r->events[p->first];
    uint64_t base = base_of(e, claim, width, mask);
    const char *problem = NULL;
    if (claim.kind == VYRE__LANE_SHAPE_CONSTANT && e->value != claim.stride) {
      problem = "another number";
    } else if (claim.kind == VYRE__LANE_SHAPE_GROUP &&
               e->value != first->value) {
      problem = "invocations differ";
    } else if (!agrees(e, base, width, bases, stamps, stamp)) {
      problem = "lanes differ";
    } else if (is_integer && !is_aligned(base, claim.aligned, mask)) {
      problem = "not aligned";
    }
    if (!problem) continue;
    report(r, p, width, claim, e, problem);
    return;
  }
}

/* --- variables as scalars ----------------------------------------------------
 *
 * A GET that is not VARYING must find the value of its lanes in the scalar of
 * the vector: the value of the last SET by any lane of the vector, in the order
 * in which a vector executes. */

static record *sorting;

static int compare_numbers(uint32_t a, uint32_t b) {
  return a < b ? -1 : a > b;
}

/* Compares by that order: instructions in program order, iterations in
 * execution order. */
static int compare_instances(uint32_t a, uint32_t at_a, uint32_t b,
                             uint32_t at_b) {
  const iterations *nodes = sorting->nodes;
  while (nodes[a].depth > nodes[b].depth) {
    at_a = nodes[a].loop;
    a = nodes[a].parent;
  }
  while (nodes[b].depth > nodes[a].depth) {
    at_b = nodes[b].loop;
    b = nodes[b].parent;
  }
  while (a != b) {
    if (nodes[a].parent == nodes[b].parent && nodes[a].loop == nodes[b].loop) {
      return compare_numbers(nodes[a].iteration, nodes[b].iteration);
    }
    at_a = nodes[a].loop;
    at_b = nodes[b].loop;
    a = nodes[a].parent;
    b = nodes[b].parent;
  }
  return compare_numbers(at_a, at_b);
}

static int by_var_and_order(const void *a, const void *b) {
  const instance *p = &sorting->instances[*(const uint32_t *)a];
  const instance *q = &sorting->instances[*(const uint32_t *)b];
  uint32_t v = sorting->kernel->code[p->at].aux;
  uint32_t w = sorting->kernel->code[q->at].aux;
  if (v != w) return v < w ? -1 : 1;
  return compare_instances(p->iterations, p->at, q->iterations, q->at);
}

static const event *event_in(const record *r, const instance *p,
                             uint32_t vector, uint32_t width) {
  for (uint32_t i = p->first; i; i = r->events[i].next) {
    if (r->events[i].invocation / width == vector) return &r->events[i];
  }
  return NULL;
}

/* Returns the last SET before @p get by a lane of the vector. */
static const event *set_before(const record *r, const uint32_t *sets,
                               uint32_t count, const instance *get,
                               uint32_t vector, uint32_t width) {
  uint32_t var = r->kernel->code[get->at].aux, low = 0, high = count;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    const instance *p = &r->instances[sets[middle]];
    uint32_t its = r->kernel->code[p->at].aux;
    bool is_before =
        its < var ||
        (its == var &&
         compare_instances(p->iterations, p->at, get->iterations, get->at) < 0);
    if (is_before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  while (low-- > 0) {
    const instance *p = &r->instances[sets[low]];
    if (r->kernel->code[p->at].aux != var) return NULL;
    const event *e = event_in(r, p, vector, width);
    if (e) return e;
  }
  return NULL;
}

static void check_get(record *r, const uint32_t *sets, uint32_t count,
                      const instance *p, const vyre__lane_shapes *s) {
  vyre__lane_shape claim = vyre__lane_shape_of(s, p->at);
  uint32_t width = s->width, last = UINT32_MAX;
  uint64_t mask = mask_of(r, p->at), want = 0;
  if (claim.kind == VYRE__LANE_SHAPE_VARYING) return;
  lockstep_gets += s->vars[r->kernel->code[p->at].aux].is_lockstep;
  for (uint32_t i = p->first; i; i = r->events[i].next) {
    const event *e = &r->events[i];
    uint32_t vector = e->invocation / width;
    if (vector != last) {
      const event *set = set_before(r, sets, count, p, vector, width);
      last = vector;
      if (!set) {
        report(r, p, width, claim, e, "no SET before it");
        return;
      }
      want = base_of(set, claim, width, mask);
      shadows++;
    }
    if (base_of(e, claim, width, mask) == want) continue;
    report(r, p, width, claim, e, "the scalar is another lane's");
    return;
  }
}

static void check_gets(record *r, const vyre__lane_shapes *s) {
  uint32_t count = 0;
  uint32_t *sets = malloc(r->instance_count * sizeof *sets + 1);
  CHECK(sets);
  for (uint32_t i = 1; i < r->instance_count; i++) {
    if (r->kernel->code[r->instances[i].at].op == VYRE__LIR_SET)
      sets[count++] = i;
  }
  sorting = r;
  qsort(sets, count, sizeof *sets, by_var_and_order);
  for (size_t w = 0; w < WIDTHS; w++) {
    for (uint32_t i = 1; i < r->instance_count; i++) {
      const instance *p = &r->instances[i];
      if (r->kernel->code[p->at].op != VYRE__LIR_GET) continue;
      check_get(r, sets, count, p, &s[w]);
    }
  }
  free(sets);
}

static void check_group(record *r) {
  if (!r->phase || r->is_full) return;
  const vyre__lane_shapes *s = r->shapes[r->phase - r->kernel->phases];
  for (size_t w = 0; w < WIDTHS; w++) {
    for (uint32_t i = 1; i < r->instance_count; i++) {
      check_instance(r, &r->instances[i], &s[w]);
    }
  }
  check_gets(r, s);
}

/* Checks that one scalar has one meaning: @p at and later GETs agree. */
static void check_scalar(record *r, const vyre__regions *regions,
                         const vyre__lane_shapes *s, uint32_t at) {
  const vyre__lir_inst *code = r->kernel->code;
  vyre__lane_shape a = vyre__lane_shape_of(s, at);
  if (a.kind == VYRE__LANE_SHAPE_VARYING) return;
  for (uint32_t i = at + 1; i < regions->end; i++) {
    if (code[i].op != VYRE__LIR_GET || code[i].aux != code[at].aux) continue;
    vyre__lane_shape b = vyre__lane_shape_of(s, i);
    if (b.kind == VYRE__LANE_SHAPE_VARYING) continue;
    if (!vyre__inst_info_of(regions, i)->is_needed) continue;
    CHECK(vyre__lane_shape_is_uniform(a) == vyre__lane_shape_is_uniform(b));
    CHECK(vyre__lane_shape_is_uniform(a) || a.stride == b.stride);
    return;
  }
}

/* Checks that shapes of variables agree with those of their GETs. */
static void check_vars(record *r, const vyre__regions *regions,
                       const vyre__lane_shapes *s) {
  for (uint32_t at = regions->begin; at < regions->end; at++) {
    const vyre__lir_inst *inst = &r->kernel->code[at];
    const vyre__inst_info *info = vyre__inst_info_of(regions, at);
    if (inst->op != VYRE__LIR_GET || !info->is_needed) continue;
    const vyre__lane_shape_var *var = &s->vars[inst->aux];
    vyre__lane_shape got = vyre__lane_shape_of(s, at);
    bool is_varying = var->shape.kind == VYRE__LANE_SHAPE_VARYING;
    CHECK(is_varying || got.kind <= var->shape.kind);
    CHECK(is_varying || got.kind != VYRE__LANE_SHAPE_LINEAR ||
          got.stride == var->shape.stride);
    CHECK(is_varying || (got.kind == VYRE__LANE_SHAPE_LINEAR) ==
                            (var->shape.kind == VYRE__LANE_SHAPE_LINEAR));
    CHECK(!var->is_lockstep || is_varying);
    check_scalar(r, regions, s, at);
    CHECK(!is_varying || got.kind == VYRE__LANE_SHAPE_VARYING ||
          var->is_lockstep);
  }
}

/* --- running kernels ------------------------------------------------------ */

static void find_shapes(record *r, vyre_arena *arena) {
  const vyre__lir_kernel *k = r->kernel;
  vyre_status st = {0};
  uint32_t open[256], depth = 0;
  r->ends = calloc(k->count + 1, sizeof *r->ends);
  r->regions = calloc(k->phase_count, sizeof *r->regions);
  r->shapes = calloc(k->phase_count, sizeof *r->shapes);
  CHECK(r->ends && r->regions && r->shapes);
  for (uint32_t at = 1; at < k->count; at++) {
    uint8_t op = k->code[at].op;
    CHECK(depth < 255);
    if (op == VYRE__LIR_IF || op == VYRE__LIR_LOOP) open[depth++] = at;
    if (op != VYRE__LIR_END) continue;
    CHECK(depth > 0);
    depth--;
    if (k->code[open[depth]].op == VYRE__LIR_LOOP) r->ends[at] = open[depth];
  }
  for (uint32_t i = 0; i < k->phase_count; i++) {
    CHECK_OK(
        vyre__regions_build(k, k->phases[i], false, arena, &r->regions[i], &st),
        st);
    for (size_t w = 0; w < WIDTHS; w++) {
      CHECK_OK(vyre__lane_shapes_find(&r->regions[i], widths[w], arena,
                                      &r->shapes[i][w], &st),
               st);
      check_vars(r, &r->regions[i], &r->shapes[i][w]);
    }
  }
}

/* Runs a kernel and checks all shapes. Returns the number of violations. */
static unsigned check_shapes(job *j, void *self) {
  static event *events;
  static instance *instances;
  static iterations *nodes;
  static uint32_t *table;
  enum { TABLE = 1 << 22 };
  (void)self;
  if (!events) {
    events = malloc(MAX_EVENTS * sizeof *events);
    instances = malloc(MAX_EVENTS * sizeof *instances);
    nodes = malloc(MAX_EVENTS * sizeof *nodes);
    table = calloc(TABLE, sizeof *table);
  }
  CHECK(events && instances && nodes && table);
  vyre_arena arena;
  vyre_arena_init(&arena, (vyre_allocator){0});
  vyre_status st = {0};
  record r = {.nodes = nodes,
              .instances = instances,
              .events = events,
              .table = table,
              .table_size = TABLE,
              .name = j->name};
  nodes[0] = (iterations){0};
  CHECK_OK(vyre__lower(j->program, NULL, VYRE__PASS_LEGALIZE_CONTROL, &arena,
                       &r.kernel, NULL, &st),
           st);
  CHECK(vyre__lir_group_size(r.kernel) <= MAX_INVOCATIONS);
  find_shapes(&r, &arena);
  vyre__lir_binding buffers[MAX_BUFFERS] = {{0}};
  bind_all(j, NULL, buffers);
  vyre__lir_launch launch = {.buffers = buffers,
                             .grid = {j->grid[0], j->grid[1], j->grid[2]},
                             .fuel = UINT32_MAX,
                             .poison = 0xA5,
                             .max_instructions = UINT64_C(1000000000),
                             .observe = observe,
                             .observer = &r};
  CHECK_OK(vyre__lir_interpret(r.kernel, &launch, (vyre_allocator){0}, &st),
           st);
  end_group(&r);
  unbind_all(buffers);
  free(r.ends);
  free(r.regions);
  free(r.shapes);
  vyre_arena_deinit(&arena);
  return r.failed;
}

/* Checks a kernel with small numbers as data, in a grid of *self workgroups. */
static unsigned check_kernel_shapes(vyre_program *program, const char *name,
                                    void *self) {
  const uint32_t *groups = self;
  uint64_t seed = 12345;
  vyre_arena arena;
  vyre_binding_plan plan;
  vyre_status st = {0};
  job j = {.name = name, .program = program};
  vyre_arena_init(&arena, (vyre_allocator){0});
  CHECK_OK(vyre_binding_plan_build(program, &arena, &plan, &st), st);
  for (size_t i = 0; i < plan.binding_count; i++) {
    const vyre_binding *b = &plan.bindings[i];
    size_t element = b->element_size ? b->element_size : 1;
    size_t size =
        b->has_static_byte_len ? (size_t)b->static_byte_len : 1500 * element;
    if (strcmp(b->name, "pattern") == 0) size = 5;
    if (b->input_index != VYRE_NO_INDEX) {
      uint8_t *data = vyre_arena_alloc(&arena, size + 1, 0);
      fill(data, size, program->buffers[b->buffer_index].element, &seed);
      for (size_t n = 0; element == 1 && n < size; n++) data[n] %= 2;
      j.inputs[b->input_index] = (vyre_input){data, size};
    }
    if (b->output_index != VYRE_NO_INDEX)
      j.outputs[b->output_index].size = size;
  }
  j.input_count = plan.input_count;
  j.output_count = plan.output_count;
  j.grid[0] = *groups;
  j.grid[1] = program->workgroup[1] > 1 ? 2 : 1;
  j.grid[2] = 1;
  run_ref(&j);
  unsigned failed = check_shapes(&j, NULL);
  job_deinit(&j);
  vyre_arena_deinit(&arena);
  return failed;
}

TEST(shapes_hold_in_examples) {
  uint32_t groups = 3;
  CHECK_U64(each_example(check_kernel_shapes, &groups), 0);
}

TEST(shapes_hold_in_benchmarks) {
  unsigned failed = 0;
  uint32_t groups = 3;
  for (size_t i = 0; i < KERNEL_TEXTS; i++) {
    failed += each_kernel(kernel_texts[i].text, strlen(kernel_texts[i].text),
                          kernel_texts[i].name, check_kernel_shapes, &groups);
  }
  CHECK_U64(failed, 0);
}

static unsigned check_small(const char *size, const char *body) {
  char text[SHAPE_TEXT];
  uint32_t groups = 2;
  shape_kernel(text, size, body);
  return each_kernel(text, strlen(text), body, check_kernel_shapes, &groups);
}

TEST(shapes_hold_in_small_kernels) {
  unsigned failed = 0;
  for (size_t i = 0; i < VALUE_CASES; i++) {
    char body[512];
    snprintf(body, sizeof body, "if (n > 100000) { z[0] = 1; } y[i] = %s;",
             value_cases[i].value);
    failed += check_small(value_cases[i].size, body);
  }
  for (size_t i = 0; i < FLOW_CASES; i++) {
    failed += check_small(flow_cases[i].size, flow_cases[i].body);
  }
  CHECK_U64(failed, 0);
}

/* --- random programs ------------------------------------------------------ */

static vyre_random_program_options options_of(uint64_t seed, void *self) {
  static const uint32_t sizes[] = {24, 8, 60, 24, 120};
  (void)self;
  return (vyre_random_program_options){.seed = seed,
                                       .statements = sizes[seed % 5],
                                       .max_invocations = seed % 3 ? 200 : 512,
                                       .has_math = seed % 16 == 3};
}

TEST(shapes_hold_in_random_programs) {
  const program_test test = {
      .check = check_shapes, .options = options_of, .count = SEEDS};
  CHECK_U64(check_random_programs(&test), 0);
}

/* Must be last: checks that every kind of shape occurred. */
TEST(all_kinds_of_shapes_were_checked) {
  printf("    %" PRIu64 " constant, %" PRIu64 " group, %" PRIu64
         " vector, %" PRIu64 " linear, %" PRIu64 " varying; loops: %" PRIu64
         " steady, %" PRIu64 " parted; gets: %" PRIu64 " scalars, %" PRIu64
         " lockstep\n",
         checked[0], checked[1], checked[2], checked[3], checked[4],
         steady_loops, diverging_loops, shadows, lockstep_gets);
  for (size_t i = 0; i < 5; i++) CHECK(checked[i] > 1000);
  CHECK(steady_loops > 100 && diverging_loops > 100);
  CHECK(shadows > 1000 && lockstep_gets > 100);
}

TEST_MAIN(TEST_ENTRY(shapes_hold_in_examples),
          TEST_ENTRY(shapes_hold_in_benchmarks),
          TEST_ENTRY(shapes_hold_in_small_kernels),
          TEST_ENTRY(shapes_hold_in_random_programs),
          TEST_ENTRY(all_kinds_of_shapes_were_checked))
