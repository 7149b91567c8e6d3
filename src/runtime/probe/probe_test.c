/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of the probe with a faulty device: ref with changed results of one
 * operation. The probe must find this operation and no other. */
#include "runtime/probe/probe.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vyre/vyre.h"

#include "hal/backend.h"
#include "ir/ir.h"
#include "runtime/core/device.h"
#include "runtime/probe/vectors.h"
#include "support/check.h"
#include "support/driver.h"
#include "support/sanitized.h"

extern const vyre__backend vyre__backend_ref;

enum { VECTORS = SANITIZED ? 1 << 14 : 1 << 15 }; /* the first is the minimum */

/* --- a faulty device ------------------------------------------------------ */

typedef enum lie {
  LAST_BIT,     /* every result is off by one unit */
  RARE_BIT,     /* one result in 256 is */
  FLUSH,        /* subnormal results are zero */
  ZERO_SIGN,    /* -0 is +0 */
  KEEP_PAYLOAD, /* a NaN is not canonical */
} lie;

static struct {
  vyre__float_op number; /* the faulty operation */
  vyre__op op;
  vyre_type of, to;
  lie how;
  vyre_float_mode last; /* the last faulty mode */
  unsigned runs;        /* dispatches so far */
  const char *driver;
} liar;

/* Returns true if the kernel has the operation. */
static bool is_concerned(const vyre_program *program) {
  for (uint32_t i = 0; i < program->node_count; i++) {
    const vyre__node *node = &program->nodes[i];
    if (node->op == liar.op && node->type == liar.to &&
        program->nodes[node->a].type == liar.of) {
      return true;
    }
  }
  return false;
}

static uint32_t change(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  switch (liar.how) {
    case LAST_BIT:
      return isfinite(value) ? bits ^ 1 : bits;
    case RARE_BIT:
      return isfinite(value) && (bits >> 4 & 255) == 7 ? bits ^ 1 : bits;
    case FLUSH:
      return fpclassify(value) == FP_SUBNORMAL ? bits & 0x80000000 : bits;
    case ZERO_SIGN:
      return bits == 0x80000000 ? 0 : bits;
    default:
      return isnan(value) ? bits | 1 : bits;
  }
}

static vyre_code lying_run(vyre_pipeline *pipeline, vyre__launch *launch,
                           vyre_status *st) {
  vyre__command command = {.launch = launch};
  vyre__command_list one = {
      .device = pipeline->device, .commands = &command, .count = 1};
  size_t done;
  vyre_code code = vyre__backend_ref.execute(&one, 0, 1, &done, st);
  const vyre_program *program = pipeline->program;
  liar.runs++;
  if (pipeline->float_ops[liar.number].mode > liar.last) return code;
  if (!is_concerned(program)) return code;
  const vyre__view *result = &launch->views[program->buffer_count - 1];
  size_t words = liar.to == VYRE_TYPE_F64 ? 2 : 1;
  for (size_t i = 0; i < result->length * words; i += words) {
    uint32_t bits;
    memcpy(&bits, result->data + 4 * i, 4);
    bits = words == 2 ? bits ^ 1 : change(bits);
    memcpy(result->data + 4 * i, &bits, 4);
  }
  return code;
}

static vyre_code lying_execute(vyre__command_list *list, size_t first,
                               size_t end, size_t *done, vyre_status *st) {
  return vyre__execute_each(list, first, end, lying_run, done, st);
}

static bool lying_describe(const vyre__backend *self, uint32_t index,
                           vyre_device_info *out) {
  (void)self;
  out->description = "a liar";
  out->driver = liar.driver;
  return index == 0;
}

static vyre__backend table;

/* Opens the device as exact, so that only the test probes it. */
static vyre_device *open_liar(bool is_exact, const char *directory,
                              vyre_context **context) {
  vyre_status st = {0};
  vyre_device *device;
  vyre_context_options options = {
      .cache_directory = directory, .trace_file = "", .faults = ""};
  table = vyre__backend_ref;
  table.name = "liar";
  table.is_exact = is_exact;
  table.describe = lying_describe;
  table.execute = lying_execute;
  CHECK_OK(vyre_context_create(&options, context, &st), st);
  CHECK_OK(vyre__device_open_given(*context, &table, 0, NULL, &device, &st),
           st);
  return device;
}

#define OPERATION(name, text, op, of, to, operands, expression) \
  {text, VYRE__OP_##op, VYRE_TYPE_##of, VYRE_TYPE_##to},
static const struct {
  const char *text;
  vyre__op op;
  vyre_type of, to;
} operations[] = {VYRE__FLOAT_OP_MAP(OPERATION)};

static void lie_about(vyre__float_op number, lie how, vyre_float_mode last) {
  liar.number = number;
  liar.op = operations[number].op;
  liar.of = operations[number].of;
  liar.to = operations[number].to;
  liar.how = how;
  liar.last = last;
  liar.driver = "1.0";
}

/* --- float modes ---------------------------------------------------------- */

TEST(the_reference_has_no_wrong_operation) {
  vyre_status st = {0};
  vyre__probe_result result;
  vyre_device *device;
  CHECK_OK(vyre_device_open(NULL, "ref", &device, &st), st);
  CHECK_OK(vyre__probe_run(device, VECTORS, &result, &st), st);
  const vyre_device_caps *caps = vyre_device_get_caps(device);
  CHECK_U64(caps->float_op_count, VYRE__FLOAT_OP_COUNT);
  for (int i = 0; i < VYRE__FLOAT_OP_COUNT; i++) {
    const vyre_float_op_info *c = &result.float_ops[i];
    if (c->wrong > 0) printf("    %s\n", c->operation);
    CHECK(c->mode == VYRE_FLOAT_MODE_NATIVE && c->wrong == 0);
    CHECK_U64(c->tested, VECTORS);
    CHECK_TEXT(c->operation, operations[i].text);
    CHECK(caps->float_ops[i].mode == VYRE_FLOAT_MODE_NATIVE);
    CHECK_U64(caps->float_ops[i].tested, 0); /* by definition */
  }
  vyre_device_release(device);
}

TEST(one_wrong_operation_is_found_and_no_other) {
  static const struct {
    vyre__float_op number;
    lie how;
  } cases[] = {{VYRE__FLOAT_OP_F32_FMA, LAST_BIT},
               {VYRE__FLOAT_OP_F32_FMA, RARE_BIT},
               {VYRE__FLOAT_OP_F32_DIV, RARE_BIT},
               {VYRE__FLOAT_OP_F32_SQRT, RARE_BIT},
               {VYRE__FLOAT_OP_F32_ADD, FLUSH},
               {VYRE__FLOAT_OP_F32_SUB, FLUSH},
               {VYRE__FLOAT_OP_F32_MUL, FLUSH},
               {VYRE__FLOAT_OP_F32_DIV, FLUSH},
               {VYRE__FLOAT_OP_F32_FMA, FLUSH},
               {VYRE__FLOAT_OP_F32_COPY, FLUSH},
               {VYRE__FLOAT_OP_F32_MIN, ZERO_SIGN},
               {VYRE__FLOAT_OP_F32_MAX, ZERO_SIGN},
               {VYRE__FLOAT_OP_F32_CEIL, ZERO_SIGN},
               {VYRE__FLOAT_OP_F32_RINT, ZERO_SIGN},
               {VYRE__FLOAT_OP_F32_NEG, KEEP_PAYLOAD},
               {VYRE__FLOAT_OP_F64_TO_F32, FLUSH},
               {VYRE__FLOAT_OP_U64_TO_F32, RARE_BIT},
               {VYRE__FLOAT_OP_I32_TO_F32, RARE_BIT}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    vyre_status st = {0};
    vyre_context *context;
    vyre__probe_result result;
    lie_about(cases[i].number, cases[i].how, VYRE_FLOAT_MODE_NATIVE);
    vyre_device *device = open_liar(true, "", &context);
    CHECK_OK(vyre__probe_run(device, VECTORS, &result, &st), st);
    for (int k = 0; k < VYRE__FLOAT_OP_COUNT; k++) {
      const vyre_float_op_info *c = &result.float_ops[k];
      bool is_it = k == (int)cases[i].number;
      if ((c->wrong > 0) != is_it) {
        printf("    case %zu: %s: %llu wrong\n", i, c->operation,
               (unsigned long long)c->wrong);
      }
      CHECK((c->wrong > 0) == is_it);
      bool has_forms = operations[k].of != VYRE_TYPE_F64;
      vyre_float_mode next =
          has_forms ? VYRE_FLOAT_MODE_CORRECTED : VYRE_FLOAT_MODE_SOFT;
      CHECK(c->mode == (is_it ? next : VYRE_FLOAT_MODE_NATIVE));
    }
    vyre_device_release(device);
    vyre_context_release(context);
  }
}

TEST(an_operation_that_is_wrong_when_corrected_becomes_soft) {
  vyre_status st = {0};
  vyre_context *context;
  vyre__probe_result result;
  lie_about(VYRE__FLOAT_OP_F32_DIV, LAST_BIT, VYRE_FLOAT_MODE_CORRECTED);
  vyre_device *device = open_liar(true, "", &context);
  CHECK_OK(vyre__probe_run(device, VECTORS, &result, &st), st);
  CHECK(result.float_ops[VYRE__FLOAT_OP_F32_DIV].mode == VYRE_FLOAT_MODE_SOFT);
  CHECK(result.float_ops[VYRE__FLOAT_OP_F32_MUL].mode ==
        VYRE_FLOAT_MODE_NATIVE);
  vyre_device_release(device);
  vyre_context_release(context);
}

TEST(an_operation_that_is_wrong_in_all_modes_is_an_error) {
  vyre_status st = {0};
  vyre_context *context;
  vyre__probe_result result;
  lie_about(VYRE__FLOAT_OP_F32_DIV, LAST_BIT, VYRE_FLOAT_MODE_SOFT);
  vyre_device *device = open_liar(true, "", &context);
  CHECK_FAILS(vyre__probe_run(device, VECTORS, &result, &st), st,
              VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
  CHECK_HAS(st.message, "'f32 /'");
  CHECK(status_number(&st, "wrong") > VECTORS / 2);
  vyre_device_release(device);
  vyre_context_release(context);
}

TEST(a_wrong_f64_operation_has_no_other_mode) {
  vyre_status st = {0};
  vyre_context *context;
  vyre__probe_result result;
  lie_about(VYRE__FLOAT_OP_F64_FMA, LAST_BIT, VYRE_FLOAT_MODE_SOFT);
  vyre_device *device = open_liar(true, "", &context);
  CHECK_OK(vyre__probe_run(device, VECTORS, &result, &st), st);
  CHECK(result.float_ops[VYRE__FLOAT_OP_F64_FMA].mode == VYRE_FLOAT_MODE_SOFT);
  CHECK(result.float_ops[VYRE__FLOAT_OP_F64_MUL].mode ==
        VYRE_FLOAT_MODE_NATIVE);
  vyre_device_release(device);
  vyre_context_release(context);
}

TEST(missing_types_are_not_tested) {
  vyre_status st = {0};
  vyre_context *context;
  vyre__probe_result result;
  lie_about(VYRE__FLOAT_OP_F32_FMA, LAST_BIT, VYRE_FLOAT_MODE_NATIVE);
  vyre_device *device = open_liar(true, "", &context);
  device->caps.has_f64 = device->caps.has_u64 = false;
  CHECK_OK(vyre__probe_run(device, VECTORS, &result, &st), st);
  CHECK_U64(result.float_ops[VYRE__FLOAT_OP_F64_ADD].tested, 0);
  CHECK_U64(result.float_ops[VYRE__FLOAT_OP_F32_TO_F64].tested, 0);
  CHECK_U64(result.float_ops[VYRE__FLOAT_OP_U64_TO_F32].tested, 0);
  CHECK_U64(result.float_ops[VYRE__FLOAT_OP_U32_TO_F32].tested, VECTORS);
  vyre_device_release(device);
  vyre_context_release(context);
}

TEST(a_probe_on_demand_changes_nothing) {
  vyre_status st = {0};
  vyre_context *context;
  vyre_float_op_info all[VYRE__FLOAT_OP_COUNT];
  size_t count = 0;
  lie_about(VYRE__FLOAT_OP_F32_NEG, KEEP_PAYLOAD, VYRE_FLOAT_MODE_NATIVE);
  vyre_device *device = open_liar(true, "", &context);
  CHECK_OK(vyre_device_probe(device, all, VYRE__FLOAT_OP_COUNT, &count, &st),
           st);
  CHECK_U64(count, VYRE__FLOAT_OP_COUNT);
  CHECK(all[VYRE__FLOAT_OP_F32_NEG].mode == VYRE_FLOAT_MODE_CORRECTED);
  CHECK_U64(all[VYRE__FLOAT_OP_F32_NEG].tested, VYRE__PROBE_VECTORS);
  const vyre_device_caps *caps = vyre_device_get_caps(device);
  CHECK(caps->float_ops[VYRE__FLOAT_OP_F32_NEG].mode == VYRE_FLOAT_MODE_NATIVE);
  CHECK_FAILS(vyre_device_probe(device, NULL, 3, &count, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK_U64(count, 0);
  vyre_device_release(device);
  vyre_context_release(context);
}

/* --- stored results ------------------------------------------------------- */

static char folder[64];
static const vyre__cache files = {.path = folder};

static void make_folder(void) {
  snprintf(folder, sizeof folder, "/tmp/vyre-probe-XXXXXX");
  CHECK(mkdtemp(folder));
}

static void remove_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  CHECK(system(command) == 0);
}

TEST(a_device_is_probed_when_it_is_opened_first) {
  vyre_context *context;
  vyre_counters counters;
  make_folder();
  lie_about(VYRE__FLOAT_OP_F32_FMA, LAST_BIT, VYRE_FLOAT_MODE_NATIVE);
  liar.driver = "opened first";
  liar.runs = 0;
  vyre_device *device = open_liar(false, folder, &context);
  unsigned runs = liar.runs;
  CHECK(runs > 0);
  const vyre_device_caps *caps = vyre_device_get_caps(device);
  CHECK(caps->float_ops[VYRE__FLOAT_OP_F32_FMA].mode ==
        VYRE_FLOAT_MODE_CORRECTED);
  CHECK(caps->float_ops[VYRE__FLOAT_OP_F32_ADD].mode == VYRE_FLOAT_MODE_NATIVE);
  vyre_counters_read(device, &counters);
  CHECK(counters.launches == 0 && counters.compiles == 0);
  vyre_device_release(device);
  vyre_context_release(context);

  device = open_liar(false, folder, &context); /* this process knows it */
  CHECK_U64(liar.runs, runs);
  caps = vyre_device_get_caps(device);
  CHECK(caps->float_ops[VYRE__FLOAT_OP_F32_FMA].mode ==
        VYRE_FLOAT_MODE_CORRECTED);
  CHECK(caps->float_ops[VYRE__FLOAT_OP_F32_FMA].wrong > 0);

  /* ... and a file stores them for the next one. */
  char key[VYRE__PROBE_KEY];
  vyre_float_op_info classes[VYRE__FLOAT_OP_COUNT];
  size_t length = vyre__probe_key(device, key);
  CHECK(vyre__probe_load(&files, key, length, classes));
  CHECK(classes[VYRE__FLOAT_OP_F32_FMA].mode == VYRE_FLOAT_MODE_CORRECTED);
  vyre_device_release(device);
  vyre_context_release(context);

  liar.driver = "another version"; /* may do it right */
  liar.last = VYRE_FLOAT_MODE_NATIVE;
  liar.how = ZERO_SIGN;
  device = open_liar(false, folder, &context);
  CHECK(liar.runs > runs);
  vyre_device_release(device);
  vyre_context_release(context);
  remove_folder();
}

/* Returns the only file of the directory. */
static void find_file(char out[160]) {
  char command[160];
  snprintf(command, sizeof command, "ls %s/probe-*", folder);
  FILE *list = popen(command, "r");
  CHECK(list && fgets(out, 160, list));
  pclose(list);
  out[strcspn(out, "\n")] = '\0';
}

static void write_byte(const char *path, long at, int byte) {
  FILE *file = fopen(path, "r+");
  CHECK(file && fseek(file, at, SEEK_SET) == 0);
  CHECK(fputc(byte, file) == byte && fclose(file) == 0);
}

TEST(a_result_file_must_be_fully_valid) {
  static const char key[] = "probe 1\n4 test\n", other[] = "probe 1\n4 tesu\n";
  vyre_float_op_info classes[VYRE__FLOAT_OP_COUNT], read[VYRE__FLOAT_OP_COUNT];
  char path[160];
  struct stat about;
  make_folder();
  memcpy(classes, vyre__float_op_is_exact, sizeof classes);
  classes[VYRE__FLOAT_OP_F32_DIV].mode = VYRE_FLOAT_MODE_SOFT;
  classes[VYRE__FLOAT_OP_F32_DIV].wrong = 7;
  CHECK(!vyre__probe_load(&files, key, sizeof key - 1, read));
  CHECK(vyre__probe_save(&files, key, sizeof key - 1, classes));
  CHECK(vyre__probe_load(&files, key, sizeof key - 1, read));
  for (int i = 0; i < VYRE__FLOAT_OP_COUNT; i++) {
    CHECK(read[i].mode == classes[i].mode && read[i].wrong == classes[i].wrong);
    CHECK_TEXT(read[i].operation, classes[i].operation);
  }
  CHECK(!vyre__probe_load(&files, other, sizeof other - 1, read));
  find_file(path);
  CHECK(stat(path, &about) == 0 && (about.st_mode & 077) == 0);
  for (long at = 0; at < about.st_size; at++) { /* every byte counts */
    FILE *file = fopen(path, "r");
    CHECK(file && fseek(file, at, SEEK_SET) == 0);
    int byte = fgetc(file);
    fclose(file);
    write_byte(path, at, byte ^ 1);
    if (vyre__probe_load(&files, key, sizeof key - 1, read)) {
      printf("    byte %ld\n", at);
      CHECK(!"a changed byte is believed");
    }
    write_byte(path, at, byte);
  }
  CHECK(vyre__probe_load(&files, key, sizeof key - 1, read));
  CHECK(truncate(path, about.st_size - 1) == 0);
  CHECK(!vyre__probe_load(&files, key, sizeof key - 1, read));
  CHECK(vyre__probe_save(&files, key, sizeof key - 1, classes)); /* replaced */
  CHECK(vyre__probe_load(&files, key, sizeof key - 1, read));
  remove_folder();
}

TEST(directories_of_others_and_links_are_not_used) {
  static const char key[] = "probe 1\n4 link\n";
  vyre_float_op_info read[VYRE__FLOAT_OP_COUNT];
  char path[160], link[200], moved[200];
  make_folder();
  CHECK(vyre__probe_save(&files, key, sizeof key - 1, vyre__float_op_is_exact));
  CHECK(chmod(folder, 0755) == 0); /* others may look */
  CHECK(!vyre__probe_load(&files, key, sizeof key - 1, read));
  CHECK(
      !vyre__probe_save(&files, key, sizeof key - 1, vyre__float_op_is_exact));
  CHECK(chmod(folder, 0700) == 0);
  find_file(path);
  snprintf(moved, sizeof moved, "%s/elsewhere", folder);
  CHECK(rename(path, moved) == 0 && symlink(moved, path) == 0);
  CHECK(!vyre__probe_load(&files, key, sizeof key - 1, read));
  snprintf(link, sizeof link, "%s-link", folder);
  CHECK(symlink(folder, link) == 0);
  vyre__cache linked = {.path = link};
  CHECK(
      !vyre__probe_save(&linked, key, sizeof key - 1, vyre__float_op_is_exact));
  CHECK(unlink(link) == 0);
  vyre__cache off = {.path = folder, .off = "it was not asked for", .fix = ""};
  CHECK(!vyre__probe_save(&off, key, sizeof key - 1, vyre__float_op_is_exact));
  remove_folder();
}

static const char *features;

static void tell_features(const vyre_device *device, vyre__bytes *to) {
  (void)device;
  vyre__bytes_put(to, features, strlen(features));
}

TEST(other_features_are_another_device) {
  static char keys[3][VYRE__PROBE_KEY];
  static char much[VYRE__PROBE_KEY];
  vyre_context *context;
  lie_about(VYRE__FLOAT_OP_F32_FMA, LAST_BIT, VYRE_FLOAT_MODE_NATIVE);
  vyre_device *device = open_liar(true, "", &context);
  table.features = tell_features;
  features = "fma";
  size_t first = vyre__probe_key(device, keys[0]);
  features = "avx";
  size_t second = vyre__probe_key(device, keys[1]);
  CHECK(first > 0 && first == second);
  CHECK(memcmp(keys[0], keys[1], first) != 0);
  memset(much, 'x', sizeof much - 1); /* too many to be held: not remembered */
  features = much;
  CHECK_U64(vyre__probe_key(device, keys[2]), 0);
  vyre_device_release(device);
  vyre_context_release(context);
}

TEST(a_result_file_that_others_can_write_is_ignored) {
  static const char key[] = "probe 1\n4 mode\n";
  vyre_float_op_info read[VYRE__FLOAT_OP_COUNT];
  char path[160];
  make_folder();
  CHECK(vyre__probe_save(&files, key, sizeof key - 1, vyre__float_op_is_exact));
  find_file(path);
  CHECK(chmod(path, 0620) == 0);
  CHECK(!vyre__probe_load(&files, key, sizeof key - 1, read));
  CHECK(vyre__probe_save(&files, key, sizeof key - 1, vyre__float_op_is_exact));
  CHECK(vyre__probe_load(&files, key, sizeof key - 1, read));
  remove_folder();
}

TEST(probe_files_are_listed_and_pruned_with_the_cache) {
  static const char key[] = "probe 1\n5 prune\n";
  vyre_float_op_info read[VYRE__FLOAT_OP_COUNT];
  vyre_status st = {0};
  vyre_context *context;
  vyre_cache_listing listing;
  vyre_cache_pruned pruned;
  vyre_arena arena;
  char path[160], left[200];
  struct stat about;
  make_folder();
  CHECK(vyre__probe_save(&files, key, sizeof key - 1, vyre__float_op_is_exact));
  find_file(path);
  CHECK(stat(path, &about) == 0);
  snprintf(left, sizeof left, "%s/.probe-77-0",
           folder); /* as of old versions */
  FILE *file = fopen(left, "w");
  CHECK(file && fclose(file) == 0);
  struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
  CHECK(utimensat(AT_FDCWD, left, old, 0) == 0);
  vyre_arena_init(&arena, vyre_allocator_heap());
  vyre_context_options options = {
      .cache_directory = folder, .trace_file = "", .faults = ""};
  CHECK_OK(vyre_context_create(&options, &context, &st), st);
  CHECK_OK(vyre_cache_list(context, &arena, &listing, &st), st);
  CHECK_U64(listing.entry_count, 0);
  CHECK_U64(listing.probe_count, 1);
  CHECK_U64(listing.leftover_count, 1);
  CHECK_U64(listing.bytes, (uint64_t)about.st_size);
  CHECK_OK(vyre_cache_prune(context, NULL, &pruned, &st), st);
  CHECK(access(left, F_OK) != 0);
  CHECK(vyre__probe_load(&files, key, sizeof key - 1, read));
  vyre_cache_prune_options all = {.remove_all = true};
  CHECK_OK(vyre_cache_prune(context, &all, &pruned, &st), st);
  CHECK_U64(pruned.removed_count, 1);
  CHECK_U64(pruned.left_bytes, 0);
  CHECK(!vyre__probe_load(&files, key, sizeof key - 1, read));
  vyre_context_release(context);
  vyre_arena_deinit(&arena);
  remove_folder();
}

/* The first device is probed before any result is stored. */
TEST(the_first_probe_creates_the_directory) {
  static const char key[] = "probe 1\n4 made\n";
  vyre_float_op_info read[VYRE__FLOAT_OP_COUNT];
  char below[200];
  struct stat about;
  make_folder();
  snprintf(below, sizeof below, "%s/a/b", folder);
  vyre__cache made = {.path = below};
  CHECK(!vyre__probe_load(&made, key, sizeof key - 1, read));
  CHECK(stat(below, &about) != 0); /* looking makes nothing */
  CHECK(vyre__probe_save(&made, key, sizeof key - 1, vyre__float_op_is_exact));
  CHECK(stat(below, &about) == 0 && (about.st_mode & 0777) == 0700);
  CHECK(vyre__probe_load(&made, key, sizeof key - 1, read));
  remove_folder();
}

/* --- vectors -------------------------------------------------------------- */

TEST(vectors_reach_the_edge_cases) {
  vyre__vectors v = vyre__vectors_make(VYRE_TYPE_F32, 0);
  unsigned kinds[5] = {0}, sums_tie = 0, cancels = 0, halves = 0, large = 0;
  for (int i = 0; i < VECTORS; i++) {
    uint64_t bits[3];
    float f[3];
    vyre__vectors_next(&v, bits);
    for (int k = 0; k < 3; k++) {
      uint32_t low = (uint32_t)bits[k];
      CHECK(bits[k] == low);
      memcpy(&f[k], &low, sizeof f[k]);
    }
    int kind = fpclassify(f[0]);
    kinds[0] += kind == FP_NAN;
    kinds[1] += kind == FP_INFINITE;
    kinds[2] += kind == FP_ZERO;
    kinds[3] += kind == FP_SUBNORMAL;
    kinds[4] += kind == FP_NORMAL;
    double sum = (double)f[0] + (double)f[1];
    double unit = fabs(sum - (double)(float)sum);
    int exponent;
    (void)frexp(sum, &exponent);
    sums_tie += isfinite(sum) && unit > 0 && unit == ldexp(1, exponent - 25);
    double product = (double)f[0] * (double)f[1];
    cancels += product != 0 && isfinite(product) &&
               fabs(product + (double)f[2]) < fabs(product) * 1e-6;
    halves += fabs(f[0]) < 1e6f && f[0] - floorf(f[0]) == 0.5f;
    large += fabs(f[0]) > 4e9f && isfinite(f[0]);
  }
  for (int i = 0; i < 5; i++) CHECK(kinds[i] > VECTORS / 500);
  CHECK(sums_tie > 50);
  CHECK(cancels > VECTORS / 50);
  CHECK(halves > 50);
  CHECK(large > VECTORS / 50);
}

TEST_MAIN(TEST_ENTRY(the_reference_has_no_wrong_operation),
          TEST_ENTRY(one_wrong_operation_is_found_and_no_other),
          TEST_ENTRY(an_operation_that_is_wrong_when_corrected_becomes_soft),
          TEST_ENTRY(an_operation_that_is_wrong_in_all_modes_is_an_error),
          TEST_ENTRY(a_wrong_f64_operation_has_no_other_mode),
          TEST_ENTRY(missing_types_are_not_tested),
          TEST_ENTRY(a_probe_on_demand_changes_nothing),
          TEST_ENTRY(a_device_is_probed_when_it_is_opened_first),
          TEST_ENTRY(a_result_file_must_be_fully_valid),
          TEST_ENTRY(directories_of_others_and_links_are_not_used),
          TEST_ENTRY(other_features_are_another_device),
          TEST_ENTRY(a_result_file_that_others_can_write_is_ignored),
          TEST_ENTRY(probe_files_are_listed_and_pruned_with_the_cache),
          TEST_ENTRY(the_first_probe_creates_the_directory),
          TEST_ENTRY(vectors_reach_the_edge_cases))
