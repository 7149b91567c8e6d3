/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks porting.def: each bad line gets its diagnostic; the line after its
 * Fix compiles, and a checked run finds no race and no access out of
 * bounds. */
#include "vyre/diagnostic.h"
#include "vyre/dispatch.h"
#include "vyre/module.h"
#include "vyre/validate.h"

#include "support/check.h"

enum { TEXT = 4096, MAX_BUFFERS = 16, BYTES = 4096, MAX_ROUNDS = 12 };

typedef enum place { PLACE_BODY, PLACE_HEADER, PLACE_ITEM } place;

typedef struct row {
  place place;
  int line; /* in porting.def */
  const char *bad, *message, *fix, *good;
  const char *header, *body, *item; /* what the fix adds elsewhere */
  int edit;
  size_t count;
} row;

static const row rows[] = {
#define BODY(...)   {PLACE_BODY, __LINE__, __VA_ARGS__},
#define HEADER(...) {PLACE_HEADER, __LINE__, __VA_ARGS__},
#define ITEM(...)   {PLACE_ITEM, __LINE__, __VA_ARGS__},
#include "lang/porting.def"
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static const char *or_empty(const char *text) {
  return text ? text : "";
}

/* Makes a file with @p line in its place. */
static void write_file(char out[TEXT], const row *r, const char *line,
                       bool is_good) {
  const char *item = is_good ? or_empty(r->item) : "";
  const char *header = is_good ? or_empty(r->header) : "";
  const char *body = is_good ? or_empty(r->body) : "";
  int length = snprintf(out, TEXT,
                        "%s%s\n"
                        "kernel k workgroup(64)\n"
                        "buffer x : read f32[] @0;\n"
                        "buffer y : read_write f32[] @1;\n"
                        "buffer n : read_write u32[] @2;\n"
                        "buffer s : read_write i32[] @3;\n"
                        "uniform a : f32 @4;\n"
                        "uniform m : u32 @5;\n"
                        "shared tile : f32[64];\n"
                        "%s%s\n"
                        "{\n"
                        "    let i = global_id.x;\n"
                        "    var v = x[i];\n"
                        "    %s%s\n"
                        "}\n",
                        item, r->place == PLACE_ITEM ? line : "", header,
                        r->place == PLACE_HEADER ? line : "", body,
                        r->place == PLACE_BODY ? line : "");
  CHECK(length > 0 && length < TEXT);
}

/* Parses and validates. Returns true if the file has no error. */
static bool compile(const char *text, vyre_module **module,
                    vyre_diagnostics *found) {
  vyre_status st = {0};
  if (vyre_module_parse(text, strlen(text), "t", (vyre_allocator){0}, module,
                        found, &st)) {
    return false;
  }
  for (size_t i = 0; i < vyre_module_kernel_count(*module); i++) {
    if (vyre_program_validate(vyre_module_kernel(*module, i), found, &st)) {
      return false;
    }
  }
  return true;
}

static void print_findings(const vyre_diagnostics *found) {
  for (size_t i = 0; i < found->count; i++) {
    const vyre_diagnostic *d = &found->items[i];
    printf("      %u:%u %s\n      Fix: %s\n", d->line, d->column, d->message,
           d->fix);
  }
}

/* --- edits -----------------------------------------------------------------*/

/* Returns the offset of a position. */
static size_t offset_of(const char *text, uint32_t line, uint32_t column) {
  const char *at = text;
  for (uint32_t i = 1; i < line; i++) {
    at = strchr(at, '\n');
    CHECK(at != NULL);
    at++;
  }
  size_t offset = (size_t)(at - text) + column - 1;
  CHECK(offset <= strlen(text));
  return offset;
}

/* Applies the edits from last to first, so that positions stay valid. Returns
 * their number. */
static size_t apply_edits(char text[TEXT], const vyre_diagnostics *found) {
  size_t count = 0;
  for (size_t i = found->count; i > 0; i--) {
    const vyre_edit *edit = found->items[i - 1].edit;
    if (!edit) continue;
    size_t at = offset_of(text, edit->line, edit->column);
    size_t length = strlen(text), added = strlen(edit->text);
    CHECK(edit->line > 0 && edit->column > 0);
    CHECK(at + edit->length <= length);
    CHECK(length + added < TEXT);
    memmove(text + at + added, text + at + edit->length,
            length + 1 - at - edit->length);
    memcpy(text + at, edit->text, added);
    count++;
  }
  return count;
}

/* Applies edits until the file is valid or has none. */
static bool repair(char text[TEXT]) {
  for (int round = 0; round < MAX_ROUNDS; round++) {
    vyre_diagnostics found = {0};
    vyre_module *module = NULL;
    bool is_valid = compile(text, &module, &found);
    vyre_module_release(module);
    size_t edits = is_valid ? 0 : apply_edits(text, &found);
    vyre_diagnostics_deinit(&found);
    if (edits == 0) return is_valid;
  }
  return false;
}

/* --- a checked run ---------------------------------------------------------*/

static unsigned char memory[MAX_BUFFERS][BYTES];

static void run(const row *r, vyre_device *device, vyre_program *program) {
  vyre_status st = {0};
  vyre_pipeline *pipeline = NULL;
  CHECK_OK(vyre_pipeline_compile(device, program, NULL, &pipeline, NULL, &st),
           st);
  const vyre_binding_plan *plan = vyre_pipeline_bindings(pipeline);
  vyre_input inputs[MAX_BUFFERS];
  vyre_output outputs[MAX_BUFFERS];
  memset(memory, 0, sizeof memory);
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *b = &plan->bindings[i];
    if (b->role == VYRE_ROLE_SHARED) continue;
    CHECK(b->buffer_index < MAX_BUFFERS);
    void *data = memory[b->buffer_index];
    size_t size =
        b->has_static_byte_len
            ? b->static_byte_len
            : (size_t)64 * 4 * (b->element_size ? b->element_size : 1);
    CHECK(size <= BYTES);
    if (b->input_index != VYRE_NO_INDEX) {
      inputs[b->input_index] = (vyre_input){data, size};
    }
    if (b->output_index != VYRE_NO_INDEX) {
      outputs[b->output_index] = (vyre_output){data, size};
    }
  }
  vyre_check_report report = {0};
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = plan->input_count,
                             .outputs = outputs,
                             .output_count = plan->output_count,
                             .grid = {1, 1, 1},
                             .check = {true, true, 0, 1},
                             .report = &report};
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  if (report.count > 0) {
    printf("    porting.def:%d: %s: %s\n", r->line, r->good,
           report.findings[0].message);
  }
  CHECK(report.count == 0);
  vyre_check_report_deinit(&report);
  vyre_pipeline_release(pipeline);
}

/* --- the table -------------------------------------------------------------*/

TEST(each_line_gets_its_message_and_fix) {
  char text[TEXT];
  size_t wrong = 0;
  for (size_t i = 0; i < ROWS; i++) {
    const row *r = &rows[i];
    vyre_diagnostics found = {0};
    vyre_module *module = NULL;
    write_file(text, r, r->bad, false);
    bool is_valid = compile(text, &module, &found);
    bool good = !is_valid && found.count == (r->count ? r->count : 1) &&
                strcmp(found.items[0].message, r->message) == 0 &&
                strcmp(found.items[0].fix, r->fix) == 0;
    if (!good) {
      printf("    porting.def:%d: %s\n", r->line, r->bad);
      print_findings(&found);
    }
    wrong += !good;
    vyre_module_release(module);
    vyre_diagnostics_deinit(&found);
  }
  CHECK_U64(wrong, 0);
}

TEST(each_fixed_line_compiles_and_runs_without_findings) {
  char text[TEXT];
  size_t wrong = 0;
  vyre_status st = {0};
  vyre_device *device = NULL;
  CHECK_OK(vyre_device_open(NULL, "ref", &device, &st), st);
  for (size_t i = 0; i < ROWS; i++) {
    const row *r = &rows[i];
    vyre_diagnostics found = {0};
    vyre_module *module = NULL;
    write_file(text, r, r->good, true);
    bool is_valid = compile(text, &module, &found);
    if (!is_valid) {
      printf("    porting.def:%d: %s\n", r->line, r->good);
      print_findings(&found);
    } else {
      run(r, device, vyre_module_find(module, "k"));
    }
    wrong += !is_valid;
    vyre_module_release(module);
    vyre_diagnostics_deinit(&found);
  }
  vyre_device_release(device);
  CHECK_U64(wrong, 0);
}

TEST(edits_make_the_fixed_line) {
  char text[TEXT], good[TEXT];
  size_t count = 0, wrong = 0;
  for (size_t i = 0; i < ROWS; i++) {
    const row *r = &rows[i];
    write_file(text, r, r->bad, false);
    write_file(good, r, r->good, false);
    bool is_valid = repair(text);
    bool is_good = is_valid && strcmp(text, good) == 0;
    count += is_good;
    if (is_good != (r->edit != 0)) {
      printf("    porting.def:%d: %s, edited: %s\n", r->line, r->bad,
             is_valid ? text : "(no valid file)");
    }
    wrong += is_good != (r->edit != 0);
  }
  CHECK_U64(wrong, 0);
  CHECK(count * 2 > ROWS);
}

TEST_MAIN(TEST_ENTRY(each_line_gets_its_message_and_fix),
          TEST_ENTRY(each_fixed_line_compiles_and_runs_without_findings),
          TEST_ENTRY(edits_make_the_fixed_line))
