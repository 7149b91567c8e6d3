/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random queue kernels: one order hash and the same outputs on `ref`, on `cpu`
 * with other widths, threads, blocks and limits of narrow windows, and on
 * `vulkan` with other numbers of windows per submission. */
#include <stdarg.h>

#include "backend/cpu/cpu.h"
#include "flow/work_queue_testing.h"

enum { PROGRAMS = 30, WORDS = 211, KEYS = 300, ROOTS = 6, TEXT = 4096 };

/* --- programs ---------------------------------------------------------------- */

typedef struct program_text {
  char bytes[TEXT];
  size_t length;
  uint64_t seed;
  bool is_set, is_any, has_by;
  uint32_t item_words;
} program_text;

static void put(program_text *t, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int n =
      vsnprintf(t->bytes + t->length, TEXT - t->length, format, arguments);
  va_end(arguments);
  CHECK(n >= 0 && (size_t)n < TEXT - t->length);
  t->length += (size_t)n;
}

static uint32_t pick(program_text *t, uint32_t below) {
  return queue_random(&t->seed, below);
}

/* An item of a list: its depth, then fields of other types. */
static const char *const types[] = {"u32", "i32", "u64", "f32", "i64", "f64"};
enum { MAX_FIELDS = 4 };

static void put_head(program_text *t, uint32_t *fields, uint32_t count) {
  static const char *const sets[] = {"set(n)", "once(n)",
                                     "set(n) by(cost[item])",
                                     "set(n) by(cost[item] / 3)"};
  if (t->is_set) {
    const uint32_t kind = pick(t, t->has_by ? 4 : 2);
    t->has_by = kind >= 2;
    put(t, "kernel k queue(u32) %s\n", sets[kind]);
    t->item_words = 1;
  } else {
    put(t, "kernel k queue(left: u32");
    t->item_words = 1;
    for (uint32_t i = 0; i < count; i++) {
      fields[i] = pick(t, 6);
      t->item_words += 1 + (fields[i] == 2 || fields[i] >= 4);
      put(t, ", f%u: %s", i, types[fields[i]]);
    }
    put(t, ")%s pushes(%u)\n", t->is_any ? " any" : "", 1 + pick(t, 5));
  }
  put(t,
      "buffer cost : read u32[] @0;\n"
      "buffer x : read_write u32[] @1;\n"
      "buffer y : read_write u32[] @2;\n"
      "uniform n : u32 @3;\n");
}

static void put_hash(program_text *t, const uint32_t *fields, uint32_t count) {
  if (t->is_set) {
    put(t, "  var h = item * 0x9e3779b1 + %uu;\n", pick(t, 1000));
  } else {
    put(t, "  var h = left * 0x9e3779b1 + %uu;\n", pick(t, 1000));
    for (uint32_t i = 0; i < count; i++) {
      static const char *const words[] = {
          "f%u",         "u32(f%u)", "u32(f%u) ^ u32(f%u >> 32)",
          "as_u32(f%u)", "u32(f%u)", "u32(as_u64(f%u) >> 20)"};
      put(t, "  h = (h ^ (");
      put(t, words[fields[i]], i, i);
      put(t, ")) * 0x85ebca6b;\n");
    }
  }
  put(t, "  h ^= h >> 15;\n");
  if (!t->is_any && pick(t, 2)) put(t, "  h += window * 77 + item_index;\n");
}

static void put_effects(program_text *t) {
  static const char *const effects[] = {
      "  atomic_add(x[h %% len(x)], h);\n",
      "  atomic_xor(x[(h >> 8) %% len(x)], h | 1);\n",
      "  if ((h & 8) != 0) atomic_max(y[h %% len(y)], h >> 4);\n",
      ("  for (let i = 0u; i < (h & 7); i++) atomic_add(y[(h + i) %% len(y)], "
       "i);\n")};
  const uint32_t kind = pick(t, 4); /* one kind of atomic for each buffer */
  put(t, effects[kind]);
  if (t->is_any || kind >= 2) return;
  if (pick(t, 2)) put(t, "  if (item_index < len(y)) y[item_index] = h;\n");
}

static void put_pushes(program_text *t, const uint32_t *fields,
                       uint32_t count) {
  const char *item[] = {"h + k",
                        "i32(h) - i32(k)",
                        "u64(h) << 9 | u64(k)",
                        "f32(h & 0xffff) * 0.5",
                        "i64(h) * -3l",
                        "f64(h) * 0.25"};
  if (t->is_set) {
    put(t, "  if (window >= %uu) return;\n", 4 + pick(t, 20));
    put(t,
        "  for (let k = 0u; k < (h >> 3) %% 4; k++) push((h + k * %uu) %% (n "
        "+ 3));\n",
        1 + pick(t, 97));
    return;
  }
  put(t, "  if (left == 0) return;\n");
  if (pick(t, 3) == 0) {
    put(t, "  if ((h & 3) == 1) return;\n");
  }
  put(t, "  for (let k = 0u; k < (h >> 5) %% 3; k++) {\n");
  if (pick(t, 2)) put(t, "    if (k == 1 && (h & 16) != 0) continue;\n");
  put(t, "    push(left - 1");
  for (uint32_t i = 0; i < count; i++) put(t, ", %s", item[fields[i]]);
  put(t, ");\n    if (false) break;\n  }\n");
}

static program_text make_program(uint64_t number, bool has_by) {
  program_text t = {.seed = number * 7919 + 1};
  uint32_t fields[MAX_FIELDS] = {0};
  const uint32_t kind = pick(&t, 4);
  t.is_set = kind >= 2;
  t.is_any = kind == 1;
  t.has_by = has_by;
  const uint32_t count = t.is_set ? 0 : pick(&t, MAX_FIELDS);
  put_head(&t, fields, count);
  put(&t, "{\n");
  put_hash(&t, fields, count);
  put_effects(&t);
  put_pushes(&t, fields, count);
  put(&t, "}\n");
  return t;
}

/* --- runs -------------------------------------------------------------------- */

typedef struct outcome {
  uint32_t x[WORDS], y[WORDS];
  vyre_queue_stats stats;
  vyre_code code;
} outcome;

static void fill_roots(const program_text *t, vyre_queue *queue) {
  uint32_t words[ROOTS * 2 * (MAX_FIELDS + 1)];
  uint64_t seed = t->seed;
  vyre_status st = {0};
  for (uint32_t i = 0; i < ROOTS; i++) {
    uint32_t *item = words + (size_t)i * t->item_words;
    for (uint32_t w = 0; w < t->item_words; w++)
      item[w] = queue_random(&seed, 1 << 20);
    item[0] = t->is_set ? queue_random(&seed, KEYS) : 14 + i;
  }
  CHECK_OK(vyre_queue_fill(queue, words, ROOTS, &st), st);
}

static outcome run(vyre_device *device, const program_text *t,
                   uint64_t items_per_chunk) {
  static uint32_t cost[KEYS + 3];
  const uint32_t n = KEYS;
  outcome o = {.code = VYRE_OK};
  vyre_status st = {0};
  vyre_module *module;
  vyre_queue *queue;
  for (uint32_t i = 0; i < KEYS + 3; i++) cost[i] = i * 31 % 17;
  const vyre_code code =
      vyre_module_parse(t->bytes, t->length, "random.vyre", (vyre_allocator){0},
                        &module, NULL, &st);
  if (code != VYRE_OK) (void)fprintf(stderr, "%s", t->bytes);
  CHECK_OK(code, st);
  const vyre_queue_options options = {.capacity = t->is_set ? KEYS : 1 << 16,
                                      .items_per_chunk = items_per_chunk,
                                      .has_order_hash = true};
  CHECK_OK(vyre_queue_create(device, vyre_module_kernel(module, 0), &options,
                             &queue, NULL, &st),
           st);
  fill_roots(t, queue);
  const vyre_input in[] = {
      vyre_input_bytes(cost, sizeof cost), vyre_input_bytes(o.x, sizeof o.x),
      vyre_input_bytes(o.y, sizeof o.y), vyre_input_bytes(&n, sizeof n)};
  const vyre_output out[] = {vyre_output_bytes(o.x, sizeof o.x),
                             vyre_output_bytes(o.y, sizeof o.y)};
  const vyre_dispatch_desc desc = {
      .inputs = in, .input_count = 4, .outputs = out, .output_count = 2};
  o.code = vyre_queue_run(queue, &desc, &o.stats, NULL, &st);
  const uint64_t most =
      vyre_queue_max_submissions(vyre_queue_get_plan(queue), o.stats.chunks);
  /* bringing a list to rest can take one more */
  CHECK(o.stats.narrow_windows <= o.stats.windows);
  CHECK(o.stats.submissions <= most + 1 && o.stats.waits <= most + 1);
  vyre_queue_release(queue);
  vyre_module_release(module);
  return o;
}

static void compare(const program_text *t, const outcome *expected,
                    const outcome *got, const char *device) {
  const bool same =
      got->code == expected->code &&
      memcmp(got->x, expected->x, sizeof got->x) == 0 &&
      memcmp(got->y, expected->y, sizeof got->y) == 0 &&
      got->stats.items == expected->stats.items &&
      got->stats.windows == expected->stats.windows &&
      got->stats.dropped_keys == expected->stats.dropped_keys &&
      (t->is_any || got->stats.order_hash == expected->stats.order_hash);
  if (!same) (void)fprintf(stderr, "differs on %s:\n%s", device, t->bytes);
  CHECK(same);
}

/* --- devices ------------------------------------------------------------------ */

static const struct {
  const char *name, *settings;
  uint32_t block;     /* items of a call; 0: as usual */
  uint64_t inline_ns; /* work that one thread runs; 1: as usual */
  uint64_t chunk;
} forms[] = {
    {"cpu", "", 0, 1, 0},
    {"cpu", "cpu.threads=1,cpu.width=1", 1, 0, 0},
    {"cpu", "cpu.threads=2,cpu.width=8", 3, 0, 0},
    {"cpu", "cpu.threads=7,cpu.width=16", 512, 0, 5},
    {"cpu", "cpu.threads=7,cpu.width=1", 3, UINT64_MAX, 0},
    {"vulkan", "vulkan.queue_windows=1", 0, 1, 0},
    {"vulkan", "vulkan.queue_windows=16", 0, 1, 7},
    {"vulkan", "vulkan.queue_windows=256", 0, 1, 0},
};

enum { FORMS = sizeof forms / sizeof forms[0] };

static bool open_form(size_t i, vyre_context **context, vyre_device **device) {
  vyre_status st = {0};
  const vyre_context_options options = {.cache_directory = "",
                                        .trace_file = "",
                                        .faults = "",
                                        .backend_options = forms[i].settings};
  CHECK_OK(vyre_context_create(&options, context, &st), st);
  if (vyre_device_open(*context, forms[i].name, device, &st) != VYRE_OK) {
    vyre_context_release(*context);
    return false;
  }
  if (strcmp(forms[i].name, "cpu") == 0) {
    cpu_device *cpu = (cpu_device *)*device;
    cpu->queue_block = forms[i].block;
    if (forms[i].inline_ns != 1) cpu->wave_inline_ns = forms[i].inline_ns;
  }
  return true;
}

TEST(random_queues_give_the_same_on_every_device) {
  static program_text programs[PROGRAMS];
  static outcome expected[PROGRAMS];
  vyre_status st = {0};
  vyre_device *ref;
  uint64_t items = 0;
  CHECK_OK(vyre_device_open(NULL, "ref", &ref, &st), st);
  for (size_t p = 0; p < PROGRAMS; p++) {
    programs[p] = make_program(p, true);
    expected[p] = run(ref, &programs[p], 0);
    items += expected[p].stats.items;
  }
  vyre_device_release(ref);
  CHECK(items > 100 * (uint64_t)PROGRAMS);
  for (size_t i = 0; i < FORMS; i++) {
    vyre_context *context;
    vyre_device *device;
    if (!open_form(i, &context, &device)) continue;
    for (size_t p = 0; p < PROGRAMS; p++) {
      /* a queue that is full stops elsewhere with other chunks */
      if (expected[p].code != VYRE_OK) continue;
      if (programs[p].has_by && strcmp(forms[i].name, "vulkan") == 0) continue;
      const outcome got = run(device, &programs[p], forms[i].chunk);
      compare(&programs[p], &expected[p], &got, forms[i].name);
    }
    vyre_device_release(device);
    vyre_context_release(context);
  }
}

TEST_MAIN(TEST_ENTRY(random_queues_give_the_same_on_every_device))
