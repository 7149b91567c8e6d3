/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs every kernel of tests/check with all checks on, and compares the
 * findings with the comments in the file:
 *
 *     // expect: race 12 against 9      (in either order)
 *     // expect: order 10
 *     // expect: bounds 7
 *     // expect: reject V100            (rejected by validation)
 *     // expect: nothing
 *     // length: 60                     (of buffers without a count; else 64)
 *
 * Inputs count from 0, input_outputs are 0, uniforms are 64. */
#include "support/check.h"

#include <dirent.h>

#include "vyre/diagnostic.h"
#include "vyre/dispatch.h"
#include "vyre/module.h"

#include "support/parse.h"

enum { MAX_EXPECTED = 8, MAX_BUFFERS = 8, MAX_BYTES = 4096 };

typedef struct expectation {
  char kind[16]; /* "race", "order", "bounds", "reject", "nothing" */
  char rule[8];
  unsigned line, other;
  bool met;
} expectation;

typedef struct fault {
  char text[16384];
  size_t length;
  expectation expected[MAX_EXPECTED];
  int count;
  unsigned elements;
} fault;

static void read_fault(const char *path, fault *f) {
  FILE *file = fopen(path, "rb");
  CHECK(file != NULL);
  f->length = fread(f->text, 1, sizeof f->text - 1, file);
  (void)fclose(file);
  f->text[f->length] = '\0';
  f->count = 0;
  f->elements = 64;
  for (const char *line = f->text; line; line = strchr(line, '\n')) {
    if (*line == '\n') line++;
    expectation e = {0};
    (void)sscanf(line, "// length: %u", &f->elements);
    if (sscanf(line, "// expect: %15s %u against %u", e.kind, &e.line,
               &e.other) < 1) {
      continue;
    }
    (void)sscanf(line, "// expect: reject %7s", e.rule);
    CHECK(f->count < MAX_EXPECTED);
    f->expected[f->count++] = e;
  }
  CHECK(f->count > 0);
}

/* --- one dispatch with memory for everything -------------------------------*/

static unsigned char memory[MAX_BUFFERS][MAX_BYTES];

static void prepare(const vyre_binding *b, unsigned elements, size_t *size) {
  unsigned char *bytes = memory[b->buffer_index];
  uint32_t element = b->element_size ? b->element_size : 1;
  *size =
      b->has_static_byte_len ? b->static_byte_len : (size_t)elements * element;
  CHECK(b->buffer_index < MAX_BUFFERS && *size <= MAX_BYTES);
  memset(bytes, 0, MAX_BYTES);
  for (uint32_t i = 0; i < *size / element && element == 4; i++) {
    uint32_t value = b->role == VYRE_ROLE_UNIFORM ? 64 : i;
    if (b->role == VYRE_ROLE_INPUT_OUTPUT) value = 0;
    memcpy(bytes + (size_t)i * 4, &value, 4);
  }
}

static void dispatch(vyre_pipeline *pipeline, const fault *f,
                     vyre_check_report *report) {
  const vyre_binding_plan *plan = vyre_pipeline_bindings(pipeline);
  vyre_input inputs[MAX_BUFFERS];
  vyre_output outputs[MAX_BUFFERS];
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->role == VYRE_ROLE_SHARED) continue;
    size_t size;
    prepare(b, f->elements, &size);
    void *data = memory[b->buffer_index];
    if (b->input_index != VYRE_NO_INDEX) {
      inputs[b->input_index] = (vyre_input){data, size};
    }
    if (b->output_index != VYRE_NO_INDEX) {
      outputs[b->output_index] = (vyre_output){data, size};
    }
  }
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = plan->input_count,
                             .outputs = outputs,
                             .output_count = plan->output_count,
                             .check = {true, true, 8, 1},
                             .report = report};
  vyre_status st = {0};
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
}

/* --- findings and expectations ---------------------------------------------*/

static bool fits(const expectation *e, const vyre_finding *f) {
  switch (f->kind) {
    case VYRE_FINDING_RACE:
      return strcmp(e->kind, "race") == 0 &&
             ((e->line == f->line && e->other == f->other_line) ||
              (e->line == f->other_line && e->other == f->line));
    case VYRE_FINDING_OUT_OF_BOUNDS:
      return strcmp(e->kind, "bounds") == 0 && e->line == f->line;
    default:
      return strcmp(e->kind, "order") == 0 && e->line == f->line;
  }
}

static bool compare(fault *f, const vyre_check_report *report) {
  bool good = true;
  for (size_t i = 0; i < report->count; i++) {
    const vyre_finding *finding = &report->findings[i];
    bool known = false;
    for (int k = 0; k < f->count; k++) {
      if (!fits(&f->expected[k], finding)) continue;
      f->expected[k].met = known = true;
    }
    good = good && finding->message[0] && finding->fix[0] && finding->buffer[0];
    if (known) continue;
    printf("    not expected: %s at %u:%u against %u:%u: %s\n",
           vyre_finding_name(finding->kind), finding->line, finding->column,
           finding->other_line, finding->other_column, finding->message);
    good = false;
  }
  for (int k = 0; k < f->count; k++) {
    const expectation *e = &f->expected[k];
    if (e->met || strcmp(e->kind, "nothing") == 0) continue;
    printf("    not found: %s %u %u\n", e->kind, e->line, e->other);
    good = false;
  }
  return good;
}

static bool check_fault(const char *path, fault *f) {
  vyre_module *module = NULL;
  vyre_device *device = NULL;
  vyre_pipeline *pipeline = NULL;
  vyre_check_report report = {0};
  vyre_diagnostics diagnostics = {0};
  vyre_status st = {0};
  CHECK_OK(vyre_module_parse(f->text, f->length, path, (vyre_allocator){0},
                             &module, NULL, &st),
           st);
  CHECK_OK(vyre_device_open(NULL, "ref", &device, &st), st);
  vyre_code code = vyre_pipeline_compile(device, vyre_module_kernel(module, 0),
                                         NULL, &pipeline, &diagnostics, &st);
  bool good;
  if (strcmp(f->expected[0].kind, "reject") == 0) {
    good = code == VYRE_INVALID_PROGRAM && diagnostics.count == 1 &&
           strcmp(diagnostics.items[0].rule, f->expected[0].rule) == 0;
    if (!good) printf("    %s: %s\n", vyre_code_name(code), st.message);
  } else {
    CHECK_OK(code, st);
    dispatch(pipeline, f, &report);
    good = compare(f, &report);
  }
  vyre_diagnostics_deinit(&diagnostics);
  vyre_check_report_deinit(&report);
  vyre_pipeline_release(pipeline);
  vyre_device_release(device);
  vyre_module_release(module);
  return good;
}

TEST(planted_faults_are_found) {
  static fault f;
  int files = 0, faults = 0, bad = 0;
  DIR *folder = opendir(VYRE_TESTS_DIR "/check");
  CHECK(folder != NULL);
  for (struct dirent *item = readdir(folder); item; item = readdir(folder)) {
    char path[1024];
    if (!strstr(item->d_name, ".vyre")) continue;
    snprintf(path, sizeof path, "%s/check/%s", VYRE_TESTS_DIR, item->d_name);
    read_fault(path, &f);
    files++;
    faults += strcmp(f.expected[0].kind, "nothing") != 0;
    if (check_fault(path, &f)) continue;
    printf("    in %s\n", item->d_name);
    bad++;
  }
  (void)closedir(folder);
  printf("    %d kernels, %d with a fault\n", files, faults);
  CHECK_U64(bad, 0);
  CHECK(faults >= 30 && files - faults >= 8);
}

/* Runs an example of `vyre explain` and returns the findings by name. */
static void run_example(const char *text, const char *only, size_t *others,
                        size_t *found) {
  static fault f;
  vyre_device *device = NULL;
  vyre_pipeline *pipeline = NULL;
  vyre_check_report report = {0};
  vyre_status st = {0};
  f.elements = 64;
  vyre_module *module = parse_module(text);
  CHECK_OK(vyre_device_open(NULL, "ref", &device, &st), st);
  CHECK_OK(vyre_pipeline_compile(device, vyre_module_kernel(module, 0), NULL,
                                 &pipeline, NULL, &st),
           st);
  dispatch(pipeline, &f, &report);
  *others = *found = 0;
  for (size_t i = 0; i < report.count; i++) {
    bool same = strcmp(vyre_finding_name(report.findings[i].kind), only) == 0;
    ++*(same ? found : others);
  }
  vyre_check_report_deinit(&report);
  vyre_pipeline_release(pipeline);
  vyre_device_release(device);
  vyre_module_release(module);
}

TEST(every_finding_is_explained_by_two_examples) {
  for (int kind = 0; kind < VYRE_FINDING_COUNT; kind++) {
    const char *name = vyre_finding_name((vyre_finding_kind)kind);
    const vyre_rule *rule = vyre_rule_find(name);
    size_t others, found;
    CHECK(rule != NULL);
    run_example(rule->bad_example, name, &others, &found);
    CHECK(found > 0);
    CHECK_U64(others, 0);
    run_example(rule->good_example, name, &others, &found);
    CHECK_U64(found + others, 0);
  }
}

TEST_MAIN(TEST_ENTRY(planted_faults_are_found),
          TEST_ENTRY(every_finding_is_explained_by_two_examples))
