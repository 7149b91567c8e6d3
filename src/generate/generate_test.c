/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests generated programs: they are valid, the same everywhere, contain
 * every operation, and have no races and no dependence on the execution
 * order. */
#include "generate/generate.h"

#include "vyre/device.h"
#include "vyre/module.h"
#include "vyre/pipeline.h"
#include "vyre/validate.h"

#include "base/hash.h"
#include "ir/builder/ir_builder_internal.h"
#include "ir/ir.h"
#include "lir/lir.h"
#include "support/check.h"
#include "support/sanitized.h"
#include "support/text.h"

enum {
  SEEDS = SANITIZED ? 300 : 2000,
  COUNTED_SEEDS = 2000, /* enough for rare features */
  GOLDEN_SEEDS = 200,
  CHECKED_SEEDS = SANITIZED ? 60 : 300,
  MAX_OUTPUTS = 32
};

static vyre_random_program *make(const vyre_random_program_options *options,
                                 vyre__generate_fault fault) {
  vyre_random_program *made = NULL;
  vyre_status st = {0};
  vyre_code code =
      vyre__generate(options, fault, (vyre_allocator){0}, &made, &st);
  if (code != VYRE_OK) {
    printf("    seed %llu\n", (unsigned long long)options->seed);
  }
  CHECK_OK(code, st);
  return made;
}

/* Growing text. */
typedef growing_text text;

static void print_into(const vyre_program *program, text *out) {
  out->length = 0;
  CHECK(vyre_program_print(program, growing_writer(out)));
}

/* --- programs --------------------------------------------------------------*/

static void check_program(const vyre_random_program_options *options, text *t) {
  vyre_random_program *made = make(options, VYRE__FAULT_NONE);
  vyre_program *program = vyre_random_program_program(made);
  vyre_status st = {0};
  vyre_module *module = NULL;
  CHECK_OK(vyre_program_validate(program, NULL, &st), st);
  print_into(program, t);
  CHECK_OK(vyre_module_parse(t->bytes, t->length, "g.vyre", (vyre_allocator){0},
                             &module, NULL, &st),
           st);
  CHECK(vyre_program_equal(vyre_module_kernel(module, 0), program));
  vyre_module_release(module);
  vyre_random_program_release(made);
}

TEST(programs_are_valid_and_read_back) {
  text t = {0};
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    check_program(&(vyre_random_program_options){.seed = seed}, &t);
    check_program(
        &(vyre_random_program_options){.seed = seed, .has_math = true}, &t);
  }
  free(t.bytes);
}

static vyre_random_program_options all_off(uint64_t seed) {
  return (vyre_random_program_options){.seed = seed,
                                       .no_f64 = true,
                                       .no_int64 = true,
                                       .no_narrow = true,
                                       .no_shared = true,
                                       .no_barriers = true,
                                       .no_grid_barriers = true,
                                       .no_atomics = true,
                                       .no_atomics64 = true,
                                       .no_out_of_range = true,
                                       .no_loops = true,
                                       .no_functions = true};
}

TEST(programs_of_every_size_are_valid) {
  static const uint32_t sizes[] = {1, 2, 5, 60, 200, 1000};
  text t = {0};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    for (uint64_t seed = 0; seed < 40; seed++) {
      vyre_random_program_options options = {.seed = seed,
                                             .statements = sizes[i]};
      options.max_invocations = 1 + (uint32_t)(seed * seed);
      check_program(&options, &t);
      options = all_off(seed);
      options.statements = sizes[i];
      check_program(&options, &t);
    }
  }
  free(t.bytes);
}

static void hash_generated(vyre__hasher *hasher,
                           const vyre_random_program *made, text *t) {
  size_t count;
  print_into(vyre_random_program_program(made), t);
  vyre__hash_bytes(hasher, t->bytes, t->length);
  for (int i = 0; i < 3; i++) {
    vyre__hash_u32(hasher, vyre_random_program_grid(made)[i]);
  }
  const vyre_input *inputs = vyre_random_program_inputs(made, &count);
  for (size_t i = 0; i < count; i++) {
    vyre__hash_u64(hasher, inputs[i].size);
    vyre__hash_bytes(hasher, inputs[i].data, inputs[i].size);
  }
  const vyre_output *outputs = vyre_random_program_outputs(made, &count);
  for (size_t i = 0; i < count; i++) vyre__hash_u64(hasher, outputs[i].size);
}

/* Changes whenever the generator changes. */
#define GOLDEN "c63b3babf538dcfdee7cf27fa4e3f586"

TEST(same_seed_same_bytes) {
  char hashes[2][VYRE_HASH128_TEXT];
  text t = {0};
  for (int round = 0; round < 2; round++) {
    vyre__hasher hasher;
    vyre__hash_begin(&hasher, "generate_test");
    for (uint64_t seed = 0; seed < GOLDEN_SEEDS; seed++) {
      vyre_random_program *made =
          make(&(vyre_random_program_options){.seed = seed}, VYRE__FAULT_NONE);
      hash_generated(&hasher, made, &t);
      vyre_random_program_release(made);
    }
    vyre_hash128_text(vyre__hash_end(&hasher), hashes[round]);
  }
  free(t.bytes);
  CHECK_TEXT(hashes[1], hashes[0]);
  CHECK_TEXT(hashes[0], GOLDEN);
}

TEST(options_are_checked) {
  vyre_random_program *made;
  vyre_status st = {0};
  CHECK_FAILS(vyre_random_program_create(
                  &(vyre_random_program_options){.statements = 1001},
                  (vyre_allocator){0}, &made, &st),
              st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK(made == NULL);
  st = (vyre_status){0};
  CHECK_FAILS(vyre_random_program_create(
                  &(vyre_random_program_options){.max_invocations = 65537},
                  (vyre_allocator){0}, &made, &st),
              st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  st = (vyre_status){0};
  CHECK_FAILS(vyre_random_program_create(NULL, (vyre_allocator){0}, NULL, &st),
              st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  st = (vyre_status){0};
  CHECK_OK(vyre_random_program_create(NULL, (vyre_allocator){0}, &made, &st),
           st);
  vyre_random_program_release(made);
  vyre_random_program_release(NULL);
}

static vyre_code generate_scenario(vyre_allocator allocator, vyre_status *st) {
  vyre_random_program_options options = {.seed = 5, .statements = 8};
  vyre_random_program *made;
  vyre_code code = vyre_random_program_create(&options, allocator, &made, st);
  if (code != VYRE_OK) CHECK(made == NULL);
  vyre_random_program_release(made);
  return code;
}

TEST(memory_failures_are_reported) {
  CHECK(sweep_allocations(generate_scenario) > 10);
}

/* --- coverage --------------------------------------------------------------*/

/* Counts of each feature. */
typedef struct census {
  uint32_t ops[VYRE__OP_COUNT][VYRE_TYPE_COUNT]; /* by operand type */
  uint32_t casts[VYRE_TYPE_COUNT][VYRE_TYPE_COUNT];
  uint32_t bitcasts[VYRE_TYPE_COUNT][VYRE_TYPE_COUNT];
  uint32_t loads[VYRE_MEMORY_COUNT][VYRE_ELEMENT_COUNT];
  uint32_t stores[VYRE_MEMORY_COUNT][VYRE_ELEMENT_COUNT];
  uint32_t atomics[VYRE_MEMORY_COUNT][VYRE__OP_COUNT][VYRE_ELEMENT_COUNT];
  uint32_t ids[VYRE__OP_COUNT][3], loops[4][VYRE_TYPE_COUNT];
  uint32_t empty_inputs, shapes[3];
} census;

static void count_memory(census *c, const vyre_program *p,
                         const vyre__node *node) {
  const vyre_buffer_decl *b = &p->buffers[node->a];
  uint8_t flags = vyre__ops[node->op].flags;
  if (flags & VYRE__OPF_READS) c->loads[b->kind][b->element]++;
  if (flags & VYRE__OPF_WRITES) c->stores[b->kind][b->element]++;
  if (flags & VYRE__OPF_ATOMICS) c->atomics[b->kind][node->op][b->element]++;
}

static void count_nodes(census *c, const vyre_program *p) {
  for (uint32_t i = 1; i < p->node_count; i++) {
    const vyre__node *node = &p->nodes[i];
    unsigned type = node->type;
    switch ((vyre__form)vyre__ops[node->op].form) {
      case VYRE__FORM_LOAD:
      case VYRE__FORM_STORE:
      case VYRE__FORM_ATOMIC:
      case VYRE__FORM_ATOMIC2:
        count_memory(c, p, node);
        break;
      case VYRE__FORM_AXIS:
        c->ids[node->op][node->aux]++;
        break;
      case VYRE__FORM_FOR:
        c->loops[node->aux][p->nodes[p->lists[node->b]].type]++;
        break;
      case VYRE__FORM_UNARY:
        if (node->op == VYRE__OP_CAST) c->casts[p->nodes[node->a].type][type]++;
        if (node->op == VYRE__OP_BITCAST) {
          c->bitcasts[p->nodes[node->a].type][type]++;
        }
        break;
      case VYRE__FORM_BINARY:
        type = p->nodes[node->a].type;
        break;
      default:
        break;
    }
    c->ops[node->op][type]++;
  }
}

static census *count_all(void) {
  census *c = calloc(1, sizeof *c);
  CHECK(c);
  for (uint64_t seed = 0; seed < COUNTED_SEEDS; seed++) {
    vyre_random_program_options options = {.seed = seed, .has_math = seed % 2};
    vyre_random_program *made = make(&options, VYRE__FAULT_NONE);
    vyre_program *program = vyre_random_program_program(made);
    size_t count;
    count_nodes(c, program);
    const vyre_input *inputs = vyre_random_program_inputs(made, &count);
    for (size_t i = 0; i < count; i++) c->empty_inputs += inputs[i].size == 0;
    for (int i = 0; i < 3; i++) {
      c->shapes[i] += vyre_program_workgroup(program)[i] > 1;
    }
    vyre_random_program_release(made);
  }
  return c;
}

/* Checks that a feature occurs often enough. */
static bool enough(const char *what, const char *kind, const char *type,
                   uint32_t count, uint32_t min) {
  if (getenv("GENERATE_TEST_TELL")) {
    printf("    %s %s %s: %u\n", what, kind, type, count);
  }
  if (count >= min) return true;
  printf("    %s %s %s: only %u times\n", what, kind, type, count);
  return false;
}

static bool enough_operations(const census *c) {
  bool good = true;
  for (int op = VYRE__OP_NEG; op < VYRE__OP_COUNT; op++) {
    const vyre__op_info *info = &vyre__ops[op];
    bool is_value = info->form == VYRE__FORM_UNARY ||
                    info->form == VYRE__FORM_BINARY ||
                    info->form == VYRE__FORM_TERNARY;
    if (!is_value || info->rule == VYRE__RULE_NONE) continue;
    bool is_queue =
        info->rule == VYRE__RULE_PUSH || info->rule == VYRE__RULE_QUEUE_KEY;
    if (is_queue || vyre__op_is_workgroup((unsigned)op) ||
        vyre__op_is_subgroup((unsigned)op)) {
      continue;
    }
    if (op >= VYRE__OP_CLAMP && op <= VYRE__OP_STEP) continue; /* replaced */
    for (int t = VYRE_TYPE_BOOL; t < VYRE_TYPE_COUNT; t++) {
      if (!vyre__rule_takes((vyre__rule)info->rule, (unsigned)t)) continue;
      good &= enough("operation", info->name, vyre_type_name((vyre_type)t),
                     c->ops[op][t], 20);
    }
  }
  return good;
}

static bool enough_conversions(const census *c) {
  bool good = true;
  for (vyre_type a = VYRE_TYPE_BOOL; a < VYRE_TYPE_COUNT; a++) {
    for (vyre_type b = VYRE_TYPE_BOOL; b < VYRE_TYPE_COUNT; b++) {
      bool wide_a =
          a == VYRE_TYPE_U64 || a == VYRE_TYPE_I64 || a == VYRE_TYPE_F64;
      bool wide_b =
          b == VYRE_TYPE_U64 || b == VYRE_TYPE_I64 || b == VYRE_TYPE_F64;
      good &= enough("cast", vyre_type_name(a), vyre_type_name(b),
                     c->casts[a][b], 20);
      if (a == b || wide_a != wide_b) continue;
      if (a == VYRE_TYPE_BOOL || b == VYRE_TYPE_BOOL) continue;
      good &= enough("bitcast", vyre_type_name(a), vyre_type_name(b),
                     c->bitcasts[a][b], 20);
    }
  }
  return good;
}

static bool enough_memory(const census *c) {
  bool good = true;
  for (vyre_memory m = VYRE_MEMORY_GLOBAL; m <= VYRE_MEMORY_UNIFORM; m++) {
    for (vyre_element e = VYRE_ELEMENT_BOOL; e < VYRE_ELEMENT_SUM_F32; e++) {
      bool is_bytes = e == VYRE_ELEMENT_BYTES; /* global memory only */
      if (is_bytes && m != VYRE_MEMORY_GLOBAL) continue;
      const char *kind = vyre_memory_name(m), *name = vyre_element_name(e);
      good &= enough("load", kind, name, c->loads[m][e], 20);
      if (m == VYRE_MEMORY_UNIFORM) continue;
      good &= enough("store", kind, name, c->stores[m][e], 20);
    }
  }
  return good;
}

static bool enough_atomics(const census *c) {
  static const vyre_element elements[] = {VYRE_ELEMENT_U32, VYRE_ELEMENT_I32,
                                          VYRE_ELEMENT_U64, VYRE_ELEMENT_I64};
  bool good = true;
  for (vyre_memory m = VYRE_MEMORY_GLOBAL; m <= VYRE_MEMORY_SHARED; m++) {
    for (int op = VYRE__OP_ATOMIC_ADD; op <= VYRE__OP_ATOMIC_CAS; op++) {
      for (int e = 0; e < 4; e++) {
        good &= enough(vyre_memory_name(m), vyre__ops[op].name,
                       vyre_element_name(elements[e]),
                       c->atomics[m][op][elements[e]], 5);
      }
    }
  }
  return good;
}

static bool enough_statements(const census *c) {
  static const uint8_t ops[] = {
      VYRE__OP_LITERAL, VYRE__OP_CALL,    VYRE__OP_LEN,
      VYRE__OP_BLOCK,   VYRE__OP_LET,     VYRE__OP_ASSIGN,
      VYRE__OP_STORE,   VYRE__OP_IF,      VYRE__OP_FOR,
      VYRE__OP_WHILE,   VYRE__OP_BREAK,   VYRE__OP_CONTINUE,
      VYRE__OP_RETURN,  VYRE__OP_BARRIER, VYRE__OP_GRID_BARRIER,
      VYRE__OP_EVAL};
  static const char *const axes[] = {"x", "y", "z"};
  bool good = true;
  for (size_t i = 0; i < sizeof ops; i++) {
    uint32_t sum = 0;
    for (int t = 0; t < VYRE_TYPE_COUNT; t++) sum += c->ops[ops[i]][t];
    good &= enough("statement", vyre__ops[ops[i]].name, "", sum, 200);
  }
  for (int axis = 0; axis < 3; axis++) {
    for (int op = VYRE__OP_GLOBAL_ID; op <= VYRE__OP_GRID_SIZE; op++) {
      good &=
          enough("id", vyre__ops[op].name, axes[axis], c->ids[op][axis], 100);
    }
    good &= enough("workgroup", "above 1 on", axes[axis], c->shapes[axis], 100);
  }
  for (int way = 0; way < 4; way++) {
    for (vyre_type t = VYRE_TYPE_U32; t <= VYRE_TYPE_I64; t++) {
      good &= enough("for", &"<\0<=\0>\0>="[way < 2 ? 2 * way : 3 * way - 1],
                     vyre_type_name(t), c -> loops[way][t], 20);
    }
  }
  return good && enough("input", "that is", "empty", c->empty_inputs, 20);
}

TEST(every_operation_on_every_type_is_generated) {
  census *c = count_all();
  bool good = enough_operations(c);
  good &= enough_conversions(c);
  good &= enough_memory(c);
  good &= enough_atomics(c);
  good &= enough_statements(c);
  free(c);
  CHECK(good);
}

/* Checks that options exclude features. */
TEST(options_leave_things_out) {
  census *c = calloc(1, sizeof *c);
  CHECK(c);
  for (uint64_t seed = 0; seed < 200; seed++) {
    vyre_random_program_options options = all_off(seed);
    vyre_random_program *made = make(&options, VYRE__FAULT_NONE);
    count_nodes(c, vyre_random_program_program(made));
    vyre_random_program_release(made);
  }
  static const vyre_type types[] = {VYRE_TYPE_U64, VYRE_TYPE_I64,
                                    VYRE_TYPE_F64};
  static const uint8_t ops[] = {
      VYRE__OP_CALL,    VYRE__OP_FOR,          VYRE__OP_WHILE, VYRE__OP_BARRIER,
      VYRE__OP_UNIFORM, VYRE__OP_GRID_BARRIER, VYRE__OP_EVAL,  VYRE__OP_EXP};
  for (int op = 0; op < VYRE__OP_COUNT; op++) {
    for (int t = 0; t < 3; t++) CHECK_U64(c->ops[op][types[t]], 0);
  }
  for (size_t i = 0; i < sizeof ops; i++) {
    for (int t = 0; t < VYRE_TYPE_COUNT; t++) CHECK_U64(c->ops[ops[i]][t], 0);
  }
  for (int e = 0; e < VYRE_ELEMENT_COUNT; e++) {
    uint32_t size = vyre_element_size((vyre_element)e);
    if (e != VYRE_ELEMENT_BOOL && size < 4) {
      CHECK_U64(c->loads[VYRE_MEMORY_GLOBAL][e], 0);
    }
    CHECK_U64(c->loads[VYRE_MEMORY_SHARED][e], 0);
  }
  free(c);
}

/* --- running ---------------------------------------------------------------*/

/* Runs a program under a check and counts the findings of each kind. Stores
 * the hash of the outputs in @p hash unless it is NULL. */
static void run_checked(vyre_device *device, const vyre_random_program *made,
                        bool bounds, size_t found[VYRE_FINDING_COUNT]) {
  vyre_pipeline *pipeline = NULL;
  vyre_check_report report = {0};
  vyre_status st = {0};
  vyre_output outputs[MAX_OUTPUTS];
  vyre_dispatch_desc desc = {
      .max_loop_iterations = 20000, /* far below the default */
      .check = {.out_of_bounds = bounds,
                .races = true,
                .schedules = 3,
                .seed = 1},
      .report = &report};
  CHECK_OK(vyre_pipeline_compile(device, vyre_random_program_program(made),
                                 NULL, &pipeline, NULL, &st),
           st);
  desc.inputs = vyre_random_program_inputs(made, &desc.input_count);
  const vyre_output *sizes =
      vyre_random_program_outputs(made, &desc.output_count);
  CHECK(desc.output_count <= MAX_OUTPUTS);
  for (size_t i = 0; i < desc.output_count; i++) {
    outputs[i] = (vyre_output){malloc(sizes[i].size + 1), sizes[i].size};
  }
  desc.outputs = outputs;
  memcpy(desc.grid, vyre_random_program_grid(made), sizeof desc.grid);
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  for (size_t i = 0; i < report.count; i++) found[report.findings[i].kind]++;
  for (size_t i = 0; i < desc.output_count; i++) free(outputs[i].data);
  vyre_check_report_deinit(&report);
  vyre_pipeline_release(pipeline);
}

static vyre_device *open_ref(void) {
  vyre_device *device;
  vyre_status st = {0};
  CHECK_OK(vyre_device_open(NULL, "ref", &device, &st), st);
  return device;
}

/* Returns how many of @p seeds seeds have such a finding. */
static uint32_t faulty_seeds(vyre__generate_fault fault, bool bounds,
                             vyre_finding_kind kind, uint64_t seeds) {
  vyre_device *device = open_ref();
  uint32_t faulty = 0;
  for (uint64_t seed = 0; seed < seeds; seed++) {
    vyre_random_program_options options = {.seed = seed,
                                           .no_out_of_range = bounds};
    size_t found[VYRE_FINDING_COUNT] = {0};
    vyre_random_program *made = make(&options, fault);
    run_checked(device, made, bounds, found);
    vyre_random_program_release(made);
    if (found[kind] && fault == VYRE__FAULT_NONE) {
      printf("    seed %llu: %s\n", (unsigned long long)seed,
             vyre_finding_name(kind));
    }
    faulty += found[kind] > 0;
  }
  vyre_device_release(device);
  return faulty;
}

/* Counts the 64-bit atomics of a program, and those that are an atomic_add. */
static void count_atomics64(const vyre_program *p, unsigned *all,
                            unsigned *adds) {
  for (uint32_t i = 1; i < p->node_count; i++) {
    const vyre__node *node = &p->nodes[i];
    bool is_wide = node->type == VYRE_TYPE_U64 || node->type == VYRE_TYPE_I64;
    if (!is_wide || !(vyre__ops[node->op].flags & VYRE__OPF_ATOMICS)) continue;
    ++*all;
    *adds += node->op == VYRE__OP_ATOMIC_ADD;
  }
}

/* A device without 64-bit atomics runs such programs: lowering rejects none. */
TEST(only_add64_leaves_adds_without_a_result) {
  const vyre__target target = {.math = VYRE__MATH_F64,
                               .no_buffer_atomics64 = true,
                               .no_shared_atomics64 = true};
  unsigned all = 0, adds = 0;
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    vyre_random_program_options options = {.seed = seed, .only_add64 = true};
    vyre_random_program *made = make(&options, VYRE__FAULT_NONE);
    const vyre__lir_kernel *kernel;
    vyre_status st = {0};
    vyre_arena arena;
    vyre_arena_init(&arena, (vyre_allocator){0});
    CHECK_OK(
        vyre__lower(vyre_random_program_program(made), &target,
                    VYRE__PASS_LEGALIZE_CONTROL, &arena, &kernel, NULL, &st),
        st);
    count_atomics64(vyre_random_program_program(made), &all, &adds);
    vyre_arena_deinit(&arena);
    vyre_random_program_release(made);
  }
  CHECK_U64(adds, all);
  CHECK(adds > SEEDS / 10);
}

/* Checks that the options are used as passed. */
static void check_unfitted(const vyre_random_program_options *o) {
  CHECK_U64(o->seed, 3);
  CHECK_U64(o->max_invocations, 0);
  CHECK(o->no_loops && !o->no_f64 && !o->no_int64 && !o->no_atomics64);
  CHECK(!o->only_add64);
}

TEST(options_fit_what_a_device_has) {
  const vyre_device_caps rich = {.max_workgroup = {1024, 1024, 64},
                                 .max_workgroup_invocations = 1024,
                                 .has_f64 = true,
                                 .has_u64 = true,
                                 .has_atomics64 = true};
  vyre_random_program_options options = {.seed = 3, .no_loops = true};
  vyre_random_program_options_fit(&options, &rich);
  check_unfitted(&options);
  vyre_random_program_options_fit(NULL, &rich);
  vyre_random_program_options_fit(&options, NULL);
  check_unfitted(&options);

  vyre_device_caps poor = {.max_workgroup = {128, 128, 64},
                           .max_workgroup_invocations = 128};
  vyre_random_program_options_fit(&options, &poor);
  CHECK(options.no_f64 && options.no_int64 && options.no_atomics64);
  CHECK(options.only_add64 && options.no_loops && !options.no_narrow);
  CHECK_U64(options.max_invocations, 0); /* no limit is larger */

  static const uint32_t limits[][4] = {
      {100, 100, 100, 100}, {16, 1, 1, 16}, {128, 2, 64, 128}, {1, 1, 1, 1}};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    memcpy(poor.max_workgroup, limits[i], sizeof poor.max_workgroup);
    poor.max_workgroup_invocations = limits[i][3];
    for (uint64_t seed = 0; seed < 100; seed++) {
      options = (vyre_random_program_options){.seed = seed, .statements = 1};
      vyre_random_program_options_fit(&options, &poor);
      vyre_random_program *made = make(&options, VYRE__FAULT_NONE);
      const uint32_t *w =
          vyre_program_workgroup(vyre_random_program_program(made));
      for (int k = 0; k < 3; k++) CHECK(w[k] <= poor.max_workgroup[k]);
      CHECK(w[0] * w[1] * w[2] <= poor.max_workgroup_invocations);
      vyre_random_program_release(made);
    }
  }
}

TEST(programs_are_deterministic) {
  CHECK_U64(
      faulty_seeds(VYRE__FAULT_NONE, false, VYRE_FINDING_RACE, CHECKED_SEEDS),
      0);
  CHECK_U64(faulty_seeds(VYRE__FAULT_NONE, false, VYRE_FINDING_ORDER_DEPENDENCE,
                         CHECKED_SEEDS),
            0);
}

TEST(accesses_can_be_kept_in_range) {
  CHECK_U64(
      faulty_seeds(VYRE__FAULT_NONE, true, VYRE_FINDING_OUT_OF_BOUNDS, 100), 0);
}

/* Proves that the checks above can fail. */
TEST(planted_faults_are_found) {
  CHECK(faulty_seeds(VYRE__FAULT_OWNERSHIP, false, VYRE_FINDING_RACE, 50) > 25);
  CHECK(faulty_seeds(VYRE__FAULT_BARRIER, false, VYRE_FINDING_RACE, 50) > 5);
  CHECK(faulty_seeds(VYRE__FAULT_ORDER, false, VYRE_FINDING_ORDER_DEPENDENCE,
                     400) > 3);
}

TEST_MAIN(TEST_ENTRY(programs_are_valid_and_read_back),
          TEST_ENTRY(programs_of_every_size_are_valid),
          TEST_ENTRY(same_seed_same_bytes), TEST_ENTRY(options_are_checked),
          TEST_ENTRY(memory_failures_are_reported),
          TEST_ENTRY(every_operation_on_every_type_is_generated),
          TEST_ENTRY(options_leave_things_out),
          TEST_ENTRY(only_add64_leaves_adds_without_a_result),
          TEST_ENTRY(options_fit_what_a_device_has),
          TEST_ENTRY(programs_are_deterministic),
          TEST_ENTRY(accesses_can_be_kept_in_range),
          TEST_ENTRY(planted_faults_are_found))
