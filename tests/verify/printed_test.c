/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The numbers of ref and of printed C: every variant of a function and every form
 * of an operation gives the right bits, and the same ones. `make verify-math` and
 * `make verify-ops` do this for all arguments; here are those that could go wrong,
 * and a few million others. */
#include "support/printed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vyre/device.h"
#include "vyre/dispatch.h"
#include "vyre/pipeline.h"

#include "support/check.h"
#include "verify/items.h"
#include "verify/key.h"

/* Functions or operations, compiled. */
typedef struct family {
  const char *name;
  const item *items;
  size_t count;
  const char *level;
  vyre_module *module;
  printed printed[OPS_ITEMS][VARIANTS];
} family;

static family math = {.name = "math",
                      .items = math_items,
                      .count = MATH_ITEMS,
                      .level = "-O2 -march=native"};
static family ops = {
    .name = "ops", .items = ops_items, .count = OPS_ITEMS, .level = "-O1"};

static char folder[256]; /* for printed C and what is compiled from it */
static block *blocks;    /* one */

static void remove_folder(void) {
  char command[300];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (system(command) != 0) fprintf(stderr, "%s stays\n", folder);
  vyre_module_release(math.module);
  vyre_module_release(ops.module);
  free(blocks);
}

static void make_folder(void) {
  if (folder[0]) return;
  const char *parent = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%.200s/vyre-numbers-XXXXXX",
           parent && parent[0] ? parent : "/tmp");
  CHECK(mkdtemp(folder));
  blocks = aligned_alloc(64, sizeof *blocks);
  CHECK(blocks);
  CHECK(atexit(remove_folder) == 0);
}

static vyre_program *kernel_of(const family *f, const item *it) {
  char kernel[64];
  snprintf(kernel, sizeof kernel, "%s_all", it->name);
  vyre_program *program = vyre_module_find(f->module, kernel);
  CHECK(program);
  return program;
}

/* One shared object for each variant, with all kernels. */
static void load_variant(family *f, int v) {
  char path[512], files[32], object[32];
  snprintf(files, sizeof files, "%s%d-*.c", f->name, v);
  snprintf(object, sizeof object, "%s%d.so", f->name, v);
  for (size_t i = 0; i < f->count; i++) {
    printed_text text = {0};
    vyre_program *program = kernel_of(f, &f->items[i]);
    vyre_math form = f == &math ? (vyre_math)v : VYRE_MATH_F64;
    vyre_float_mode numbers =
        f == &math ? VYRE_FLOAT_MODE_NATIVE : (vyre_float_mode)v;
    snprintf(path, sizeof path, "%s/%s%d-%s.c", folder, f->name, v,
             f->items[i].name);
    CHECK(printed_print(program, form, numbers, &text));
    CHECK(printed_write(path, text.bytes));
    free(text.bytes);
  }
  CHECK(printed_compile(folder, files, object, f->level));
  snprintf(path, sizeof path, "%s/%s", folder, object);
  for (size_t i = 0; i < f->count; i++) {
    const char *name = vyre_program_name(kernel_of(f, &f->items[i]));
    CHECK(printed_load(path, name, &f->printed[i][v]));
  }
}

static void load(family *f) {
  make_folder();
  if (f->module) return;
  char path[512];
  snprintf(path, sizeof path, VYRE_TESTS_DIR "/verify/%s.vyre", f->name);
  f->module = printed_module(path);
  CHECK(f->module);
  for (int v = 0; v < VARIANTS; v++) load_variant(f, v);
}

static void run_printed(const family *f, size_t index, block *k) {
  const item *it = &f->items[index];
  for (int v = 0; v < VARIANTS; v++) {
    void *data[4];
    for (unsigned a = 0; a < it->arguments; a++) data[a] = k->in[a];
    data[it->arguments] = k->got[v];
    CHECK(f->printed[index][v].run);
    CHECK(printed_run(&f->printed[index][v], data, it->arguments + 1u, BLOCK));
  }
}

static vyre_pipeline *open_ref(const family *f, const item *it) {
  vyre_device *device = NULL;
  vyre_pipeline *pipeline = NULL;
  vyre_status st = {0};
  CHECK_OK(vyre_device_open(NULL, "ref", &device, &st), st);
  CHECK_OK(vyre_pipeline_compile(device, kernel_of(f, it), NULL, &pipeline,
                                 NULL, &st),
           st);
  vyre_device_release(device);
  return pipeline;
}

static void run_ref(vyre_pipeline *pipeline, const item *it, block *k,
                    void *out) {
  vyre_input in[3];
  for (unsigned a = 0; a < it->arguments; a++) {
    in[a] = (vyre_input){k->in[a], (size_t)BLOCK * it->in_bytes};
  }
  vyre_output output = {out, (size_t)BLOCK * it->out_bytes};
  vyre_dispatch_desc desc = {.inputs = in,
                             .input_count = it->arguments,
                             .outputs = &output,
                             .output_count = 1,
                             .grid = {1, 1, 1}};
  vyre_status st = {0};
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
}

/* Compares with k->want, and tells the first that differs. */
static void compare(const item *it, const block *k, const void *got,
                    const char *who, unsigned count) {
  if (memcmp(got, k->want, (size_t)count * it->out_bytes) == 0) return;
  for (unsigned i = 0; i < count; i++) {
    uint64_t is = element(got, it->out_bytes, i);
    uint64_t want = element(k->want, it->out_bytes, i);
    if (is == want) continue;
    printf("    %s, %s:", it->name, who);
    for (unsigned a = 0; a < it->arguments; a++) {
      printf(" %llx", (unsigned long long)element(k->in[a], it->in_bytes, i));
    }
    printf(" gives %llx, not %llx\n", (unsigned long long)is,
           (unsigned long long)want);
    CHECK(is == want);
  }
}

static void compare_all(const family *f, size_t index, const block *k,
                        unsigned count) {
  const char *const *names = f == &math ? math_names : form_names;
  for (int v = 0; v < VARIANTS; v++) {
    compare(&f->items[index], k, k->got[v], names[v], count);
  }
}

/* --- known results ----------------------------------------------------------- */

/* The arguments and results of one function in a file of them; they go through
 * ref and all variants a block at a time. Returns how many there were. */
static unsigned run_known(size_t index, FILE *file, bool is_special) {
  const item *it = &math_items[index];
  static unsigned char from_ref[BLOCK * 8];
  vyre_pipeline *ref = open_ref(&math, it);
  block *k = blocks;
  unsigned n = 0, total = 0;
  char line[128];
  bool more = true;
  while (more) {
    more = fgets(line, sizeof line, file) != NULL;
    char name[16] = "", y[16] = "-";
    unsigned x = 0, result = 0;
    int fields = 0;
    if (more && is_special) {
      fields = sscanf(line, "%15s %x %15s %x", name, &x, y, &result);
      if (strcmp(name, it->name) != 0) continue;
      CHECK(fields == 4);
    } else if (more) {
      CHECK(sscanf(line, "%x %x", &x, &result) == 2);
    }
    if (more) {
      ((uint32_t *)k->in[0])[n] = x;
      ((uint32_t *)k->in[1])[n] = (uint32_t)strtoul(y, NULL, 16);
      ((uint32_t *)k->want)[n++] = result;
    }
    if (n == 0 || (more && n < BLOCK)) continue;
    run_printed(&math, index, k);
    compare_all(&math, index, k, n);
    run_ref(ref, it, k, from_ref);
    compare(it, k, from_ref, "ref", n);
    total += n;
    n = 0;
  }
  vyre_pipeline_release(ref);
  return total;
}

TEST(hard_arguments) {
  load(&math);
  unsigned total = 0;
  for (size_t i = 0; i < MATH_ITEMS; i++) {
    char path[512];
    if (math_items[i].arguments != 1) continue;
    snprintf(path, sizeof path, VYRE_TESTS_DIR "/verify/hard/%s.txt",
             math_items[i].name);
    FILE *file = fopen(path, "r");
    CHECK(file);
    unsigned count = run_known(i, file, false);
    fclose(file);
    CHECK(count > 80);
    total += count;
  }
  CHECK_U64(total, 9915);
}

TEST(special_values) {
  load(&math);
  for (size_t i = 0; i < MATH_ITEMS; i++) {
    FILE *file = fopen(VYRE_TESTS_DIR "/verify/special.txt", "r");
    CHECK(file);
    unsigned count = run_known(i, file, true);
    fclose(file);
    CHECK_U64(count, math_items[i].arguments == 1 ? 64 : 400);
  }
}

/* --- many results ------------------------------------------------------------- */

/* All variants alike, and as ref now and then. */
TEST(variants_of_functions) {
  load(&math);
  static unsigned char from_ref[BLOCK * 8];
  for (size_t i = 0; i < MATH_ITEMS; i++) {
    const item *it = &math_items[i];
    uint64_t all = item_inputs(it);
    uint64_t stride = it->inputs == INPUT_ALL ? 2003 : 2039;
    vyre_pipeline *ref = open_ref(&math, it);
    unsigned turn = 0;
    for (uint64_t at = 0; at < all; at += BLOCK * stride) {
      fill_block(it, at, stride, blocks);
      run_printed(&math, i, blocks);
      memcpy(blocks->want, blocks->got[0], sizeof blocks->want);
      compare_all(&math, i, blocks, BLOCK);
      if (turn++ % 64 != 0) continue;
      run_ref(ref, it, blocks, from_ref);
      compare(it, blocks, from_ref, "ref", BLOCK);
    }
    vyre_pipeline_release(ref);
  }
}

/* As the host, and as ref now and then. */
TEST(forms_of_operations) {
  load(&ops);
  static unsigned char from_ref[BLOCK * 8];
  for (size_t i = 0; i < OPS_ITEMS; i++) {
    const item *it = &ops_items[i];
    uint64_t all = item_inputs(it);
    uint64_t stride = all == 65536 ? 1 : it->inputs == INPUT_ALL ? 2003 : 509;
    vyre_pipeline *ref = open_ref(&ops, it);
    unsigned turn = 0;
    for (uint64_t at = 0; at < all; at += BLOCK * stride) {
      fill_block(it, at, stride, blocks);
      it->want(blocks);
      run_printed(&ops, i, blocks);
      compare_all(&ops, i, blocks, BLOCK);
      if (turn++ % 64 != 0) continue;
      run_ref(ref, it, blocks, from_ref);
      compare(it, blocks, from_ref, "ref", BLOCK);
    }
    vyre_pipeline_release(ref);
  }
}

/* --- the key of the log --------------------------------------------------------- */

/* Checks whether changing any byte of [from, to) changes the key. Tests a
 * sample of the bytes to save time. */
static void check_key(const char *kernel, char *text, const char *from,
                      const char *to, bool changes) {
  uint64_t key = key_hash(1, text, kernel);
  CHECK(from && to && from < to);
  for (char *at = text + (from - text); at < to; at += 1 + (to - from) / 97) {
    char was = *at;
    if (was == '\n' || was == ' ') continue;
    *at = was == '7' ? '8' : '7';
    if ((key_hash(1, text, kernel) != key) != changes) {
      printf("    %s, at byte %ld of: %.60s\n", changes ? "same" : "another",
             (long)(at - from), from);
      test_fail(__FILE__, __LINE__);
    }
    *at = was;
  }
}

/* Lines that were swept stay good as long as what computes is the same. */
TEST(key_covers_what_computes) {
  static const char *const names[] = {"sin", "exp", "atan2"};
  load(&math);
  for (size_t n = 0; n < sizeof names / sizeof names[0]; n++) {
    printed_text text = {0};
    char kernel[32], phase[64], host[128], launch[64];
    snprintf(kernel, sizeof kernel, "%.20s_all", names[n]);
    snprintf(phase, sizeof phase, "int %s_phase0(", kernel);
    snprintf(host, sizeof host, "int %s(const %s_launch *launch) {", kernel,
             kernel);
    snprintf(launch, sizeof launch, "} %s_launch;", kernel);
    vyre_program *program = vyre_module_find(math.module, kernel);
    CHECK(printed_print(program, VYRE_MATH_F64, VYRE_FLOAT_MODE_NATIVE, &text));
    check_key(kernel, text.bytes, text.bytes + 3, strstr(text.bytes, "*/"),
              false);
    char *code = key_strip(text.bytes);
    CHECK(code && key_hash(1, code, kernel) == key_hash(1, text.bytes, kernel));
    const char *prototype = strstr(code, phase);
    CHECK(prototype);
    const char *body = strstr(prototype + 1, phase);
    const char *table = strstr(code, "\nconst uint64_t ");
    const char *all = strstr(code, host);
    const char *helper = strstr(code, "static inline");
    const char *pragma = strstr(code, "#if FLT_EVAL");
    const char *data = strstr(code, "  void *data[");
    const char *warnings = strstr(code, "#if defined(__GNUC__) \n#pragma");
    const char *ignored = strstr(code, "#pragma GCC diagnostic ignored ");
    CHECK(body && table && all && helper && pragma && data);
    CHECK(warnings && ignored && pragma < warnings);
    check_key(kernel, code, body + strlen(phase), table - 3, true);
    check_key(kernel, code, helper, strstr(helper, "\n}\n"), true);
    check_key(kernel, code, pragma, warnings, true);
    check_key(kernel, code, ignored + strlen("#pragma GCC diagnostic ignored "),
              strchr(ignored, '\n'), false);
    check_key(kernel, code, data, strstr(data, launch), false);
    check_key(kernel, code, all + strlen(host), code + strlen(code) - 2, false);
    free(code);
    free(text.bytes);
  }
}

TEST_MAIN(TEST_ENTRY(key_covers_what_computes), TEST_ENTRY(hard_arguments),
          TEST_ENTRY(special_values), TEST_ENTRY(variants_of_functions),
          TEST_ENTRY(forms_of_operations))
