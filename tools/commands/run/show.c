/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Shows the results of a run: tables, JSON and files. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vyre/cache.h"

#include "cli/output.h"
#include "commands/device_text.h"
#include "commands/run/run.h"
#include "io/element_text.h"
#include "io/npy.h"
#include "plan/plan_json.h"

enum {
  WHOLE = 128, /* longest output that is printed in full */
  CUT = 64,    /* values printed of longer ones */
  WIDTH = 79,
  WIDEST = 32
};

void run_extent(const run_state *s, uint64_t out[3]) {
  const uint32_t *workgroup = vyre_pipeline_workgroup(s->pipeline);
  for (int i = 0; i < 3; i++)
    out[i] = workgroup ? (uint64_t)s->grid[i] * workgroup[i] : 0;
}

static uint64_t invocations(const run_state *s) {
  uint64_t extent[3];
  run_extent(s, extent);
  return extent[0] * extent[1] * extent[2];
}

/* "256", "16x16", "4x4x2" */
static void put_extent(const uint32_t extent[3], sink *out) {
  sink_u64(out, extent[0]);
  if (extent[1] > 1 || extent[2] > 1) sink_format(out, "x%u", extent[1]);
  if (extent[2] > 1) sink_format(out, "x%u", extent[2]);
}

static void tell_checked(const run_state *s, sink *out) {
  unsigned orders = s->report.schedules;
  sink_text(out, "checked: no race, no out-of-bounds access");
  if (orders == 0) {
    sink_text(out, "; order dependence was not checked\n");
    return;
  }
  sink_format(out, ", the same in %u other order%s\n", orders,
              orders == 1 ? "" : "s");
}

static bool has_run(const run_state *s) {
  return !vyre_device_get_caps(s->device)->is_stub;
}

void run_tell(const run_state *s, sink *out) {
  if (s->queue) {
    run_tell_queue(s, out);
    if (s->flags.check && s->report.count == 0) tell_checked(s, out);
    return;
  }
  const char *kernel = vyre_program_name(s->program);
  const char *device = vyre_device_name(s->device);
  if (has_run(s)) {
    sink_format(out, "ran %.255s on %s", kernel, device);
    put_device_among(s->context, s->device, out);
    sink_text(out, ": grid ");
  } else {
    sink_format(out, "%s is a stub: %.255s was bound but not run: grid ",
                device, kernel);
  }
  put_extent(s->grid, out);
  sink_text(out, ", workgroup ");
  put_extent(vyre_pipeline_workgroup(s->pipeline), out);
  uint64_t count = invocations(s);
  sink_format(out, ", %llu invocation%s\n", (unsigned long long)count,
              count == 1 ? "" : "s");
  if (s->flags.check && s->report.count == 0) tell_checked(s, out);
  if (s->flags.time) {
    vyre_cache_info cache;
    bool is_kept = vyre_pipeline_get_cache_info(s->pipeline, &cache) &&
                   cache.origin == VYRE_CACHE_DISK_HIT;
    sink_format(out, "%s %.3f ms, ran %.3f ms\n",
                is_kept ? "from the cache in" : "compiled in",
                (double)s->on.compile_ns / 1e6,
                (double)s->timing.wall_ns / 1e6);
  }
  if (s->flags.replay > 0) {
    double ratio = (double)s->plain_ns / (double)s->replay_ns;
    sink_format(out,
                "replayed %llu times: %.3f us a replay, %.3f us a dispatch: "
                "%.2fx, %s\n",
                (unsigned long long)s->flags.replay, (double)s->replay_ns / 1e3,
                (double)s->plain_ns / 1e3, ratio,
                ratio > 1.02 ? "a gain" : "no gain");
  }
  vyre_trace_info trace;
  if (vyre_context_get_trace_info(s->context, &trace)) {
    sink_format(out, "traced to %.900s\n", trace.file);
  }
}

/* --- findings of --check -----------------------------------------------------*/

void run_tell_findings(const run_state *s, sink *out) {
  const input *in = &s->file.in;
  vyre_check_report_print(&s->report, in->label,
                          s->file.module ? in->text : NULL, in->length,
                          sink_writer(out));
  sink_text(out, "no output was written\n");
}

static void put_ids(json_out *json, const char *key, const uint32_t ids[3]) {
  json_open(json, key, '[');
  for (int i = 0; i < 3; i++) json_u64(json, NULL, ids[i]);
  json_close(json, ']');
}

static void put_finding(json_out *json, const vyre_finding *f) {
  json_open(json, NULL, '{');
  json_text(json, "rule", vyre_finding_name(f->kind));
  if (f->file) json_text(json, "file", f->file);
  json_u64(json, "line", f->line);
  json_u64(json, "column", f->column);
  json_u64(json, "length", 1);
  json_text(json, "message", f->message);
  json_text(json, "fix", f->fix);
  if (f->buffer) json_text(json, "buffer", f->buffer);
  char index[24];
  int length =
      snprintf(index, sizeof index, "%s%llu", f->index_is_negative ? "-" : "",
               (unsigned long long)f->index);
  json_raw(json, "index", index, (size_t)length);
  put_ids(json, "invocation", f->invocation);
  if (f->other_line) {
    json_open(json, "other", '{');
    if (f->other_file) json_text(json, "file", f->other_file);
    json_u64(json, "line", f->other_line);
    json_u64(json, "column", f->other_column);
    put_ids(json, "invocation", f->other_invocation);
    json_close(json, '}');
  }
  json_u64(json, "count", f->count);
  json_close(json, '}');
}

/* --- tables ------------------------------------------------------------------*/

static uint64_t shown_count(const run_state *s, const run_buffer *b) {
  return s->flags.values || b->count <= WHOLE ? b->count : CUT;
}

/* Writes scalars that lie one after the other: 1, or (1, 2, 3). */
static void put_scalars(vyre_element element, const unsigned char *from,
                        size_t bytes, sink *out) {
  const size_t size = element_bytes(element);
  if (bytes > size) sink_text(out, "(");
  for (size_t at = 0; at < bytes; at += size) {
    if (at > 0) sink_text(out, ", ");
    element_format(element, from + at, out);
  }
  if (bytes > size) sink_text(out, ")");
}

/* Writes {position: (1, 2, 3), mass: 1}. */
static void put_struct(const vyre_struct *s, const unsigned char *from,
                       sink *out) {
  sink_text(out, "{");
  for (size_t i = 0; i < s->field_count; i++) {
    const vyre_struct_field *f = &s->fields[i];
    const vyre_buffer_decl one = {.element = f->element,
                                  .type = f->structure ? 0 : f->type};
    sink_format(out, "%s%.255s: ", i ? ", " : "", f->name);
    if (f->structure) {
      put_struct(f->structure, from + f->offset, out);
    } else {
      put_scalars(f->element, from + f->offset, vyre_buffer_stride(&one), out);
    }
  }
  sink_text(out, "}");
}

static void put_element(const run_buffer *b, uint64_t index, sink *out) {
  const size_t stride = vyre_buffer_stride(b->decl);
  const unsigned char *from = b->out + index * stride;
  if (b->decl->structure) {
    put_struct(b->decl->structure, from, out);
  } else {
    put_scalars(b->decl->element, from, stride, out);
  }
}

/* Column widths of values and of indices. */
static void measure(const run_buffer *b, uint64_t shown, size_t *value,
                    size_t *index) {
  sink text = {0};
  *value = 1;
  for (uint64_t i = 0; i < shown; i++) {
    text.length = 0;
    put_element(b, i, &text);
    if (text.length > *value) *value = text.length;
  }
  text.length = 0;
  sink_u64(&text, shown ? shown - 1 : 0);
  *index = text.length;
  sink_deinit(&text);
}

/* Returns the values per line: a row of a two-dimensional grid if it fits,
 * otherwise a round number. */
static size_t columns_of(const run_state *s, const run_buffer *b, size_t value,
                         size_t index) {
  uint64_t extent[3];
  size_t fit = index + 4 < WIDTH ? (WIDTH - 4 - index) / (value + 2) : 0;
  size_t columns = WIDEST;
  if (fit == 0) return 1;
  run_extent(s, extent);
  if (extent[1] > 1 && extent[0] <= fit && b->count % extent[0] == 0) {
    return (size_t)extent[0];
  }
  while (columns > 1 && columns > fit) columns /= 2;
  return columns;
}

static void put_padded(const sink *text, size_t width, sink *out) {
  for (size_t i = text->length; i < width; i++) sink_bytes(out, " ", 1);
  sink_bytes(out, text->data, text->length);
}

static void put_table(const run_state *s, const run_buffer *b, sink *out) {
  uint64_t shown = shown_count(s, b);
  size_t value, index;
  sink text = {0};
  measure(b, shown, &value, &index);
  size_t columns = columns_of(s, b, value, index);
  sink_format(out, "%s: %s[%llu]\n", b->decl->name,
              b->decl->structure ? b->decl->structure->name
                                 : vyre_element_name(b->decl->element),
              (unsigned long long)b->count);
  for (uint64_t i = 0; i < shown; i++) {
    if (i % columns == 0) {
      text.length = 0;
      sink_u64(&text, i);
      sink_text(out, i ? "\n  " : "  ");
      put_padded(&text, index, out);
      sink_text(out, ":");
    }
    text.length = 0;
    put_element(b, i, &text);
    put_padded(&text, value + 2, out);
  }
  if (shown) sink_text(out, "\n");
  if (shown < b->count) {
    sink_format(
        out, "  ... %llu more; use --out %s=%s.npy or --values for all\n",
        (unsigned long long)(b->count - shown), b->decl->name, b->decl->name);
  }
  if (text.failed) out->failed = true;
  sink_deinit(&text);
}

/* --- JSON --------------------------------------------------------------------*/

/* An element of several scalars is a list. */
static void put_json_element(json_out *json, const run_buffer *b,
                             uint64_t index) {
  const size_t size = element_bytes(b->decl->element);
  const size_t stride = vyre_buffer_stride(b->decl);
  const unsigned char *from = b->out + index * stride;
  if (stride > size) json_open(json, NULL, '[');
  for (size_t at = 0; at < stride; at += size) {
    sink text = {0};
    element_json(b->decl->element, from + at, &text);
    json_raw(json, NULL, text.data, text.length);
    if (text.failed) json->out->failed = true;
    sink_deinit(&text);
  }
  if (stride > size) json_close(json, ']');
}

static void put_output(json_out *json, const run_state *s,
                       const run_buffer *b) {
  vyre_element element = b->decl->element;
  json_open(json, NULL, '{');
  json_text(json, "name", b->decl->name);
  json_text(json, "element", vyre_element_name(element));
  json_u64(json, "count", b->count);
  if (b->path) json_text(json, "file", b->path);
  if (b->format != IMAGE_NONE) {
    json_u64(json, "width", b->shape.width);
    json_u64(json, "height", b->shape.height);
    json_u64(json, "channels", b->shape.channels);
  }
  if (s->flags.values || (!b->path && b->count <= WHOLE)) {
    json_open(json, "values", '[');
    for (uint64_t i = 0; i < b->count; i++) put_json_element(json, b, i);
    json_close(json, ']');
  }
  json_close(json, '}');
}

static void put_check(json_out *json, const run_state *s) {
  json_open(json, "check", '{');
  json_u64(json, "schedules", s->report.schedules);
  json_open(json, "findings", '[');
  for (size_t i = 0; i < s->report.count; i++) {
    put_finding(json, &s->report.findings[i]);
  }
  json_close(json, ']');
  json_u64(json, "dropped", s->report.dropped);
  json_close(json, '}');
}

static void put_json(const run_state *s, sink *out) {
  json_out json = {.out = out};
  json_open(&json, NULL, '{');
  json_bool(&json, "ok", s->report.count == 0);
  json_text(&json, "file", s->file.in.label);
  json_text(&json, "kernel", vyre_program_name(s->program));
  json_text(&json, "device", vyre_device_name(s->device));
  json_text(&json, "reason",
            s->on.why_ref[0] ? s->on.why_ref
                             : vyre_device_selection_reason(s->device));
  json_bool(&json, "ran", has_run(s));
  if (s->queue) {
    run_put_queue(s, &json);
  } else {
    put_ids(&json, "grid", s->grid);
    put_ids(&json, "workgroup", vyre_pipeline_workgroup(s->pipeline));
    json_u64(&json, "invocations", invocations(s));
  }
  if (s->flags.time) {
    json_open(&json, "time", '{');
    json_u64(&json, "compile_ns", s->on.compile_ns);
    json_u64(&json, "run_ns", s->timing.wall_ns);
    json_close(&json, '}');
  }
  if (s->flags.replay > 0) {
    json_open(&json, "replay", '{');
    json_u64(&json, "count", s->flags.replay);
    json_u64(&json, "replay_ns", s->replay_ns);
    json_u64(&json, "dispatch_ns", s->plain_ns);
    json_close(&json, '}');
  }
  if (s->flags.check) put_check(&json, s);
  vyre_trace_info trace;
  if (vyre_context_get_trace_info(s->context, &trace)) {
    json_text(&json, "trace", trace.file);
  }
  json_printed(&json, &s->printed, s->printed_dropped);
  json_open(&json, "outputs", '[');
  for (size_t i = 0; s->report.count == 0 && i < s->buffer_count; i++) {
    if (s->buffers[i].out) put_output(&json, s, &s->buffers[i]);
  }
  json_close(&json, ']');
  json_end(&json);
}

/* --- files -------------------------------------------------------------------*/

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), tail = strlen(end);
  return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Fills @p file; its head goes into @p head. */
static bool fill_file(const run_buffer *b, sink *head, out_file *file,
                      problem *wrong) {
  *file = (out_file){.path = b->path};
  if (b->format != IMAGE_NONE) {
    if (!image_put(b->format, &b->shape, b->decl, b->out, head, wrong)) {
      return false;
    }
  } else {
    if (!b->is_raw && ends_with(b->path, ".npy")) {
      npy_put_rows(
          b->decl->element, b->count,
          vyre_buffer_stride(b->decl) / element_bytes(b->decl->element), head);
    }
    file->body = b->out;
    file->body_length = b->out_length;
  }
  if (head->failed) return problem_no_memory(wrong, "an output file");
  file->head = head->data;
  file->head_length = head->length;
  return true;
}

static void tell_file(const run_buffer *b, const out_file *file, sink *out) {
  char shape[IMAGE_SHAPE_TEXT];
  sink_format(out, "wrote %.600s: %s, ", b->path, b->decl->name);
  if (b->format != IMAGE_NONE) {
    image_shape_text(&b->shape, shape);
    sink_format(out, "%s, ", shape);
  }
  sink_format(out, "%s[%llu], %zu bytes\n", vyre_element_name(b->decl->element),
              (unsigned long long)b->count,
              file->head_length + file->body_length);
}

/* An image file contains its shape, which may differ from what the kernel
 * expects. */
static void tell_pictures(const run_state *s, sink *out) {
  for (size_t i = 0; i < s->buffer_count; i++) {
    const run_buffer *b = &s->buffers[i];
    char shape[IMAGE_SHAPE_TEXT];
    if (!b->in.shape.width) continue;
    image_shape_text(&b->in.shape, shape);
    sink_format(out, "read %.600s: %s, %s of %u bits, %s[%llu]\n",
                b->in.file.label, b->decl->name, shape, b->in.bits,
                vyre_element_name(b->decl->element),
                (unsigned long long)b->count);
  }
}

/* Everything to publish, once it is complete. */
typedef struct run_answer {
  sink out, told, drawing;
  sink wrote; /* messages printed after the files were written */
  out_file *files;
  sink *heads;
  size_t file_count;
  bool taken; /* an output goes to stdout unchanged by other text */
} run_answer;

static void gather_drawing(const run_state *s, run_answer *a) {
  run_draw_queue(s, &a->drawing);
  if (a->drawing.failed) a->out.failed = true;
  a->files[a->file_count++] = (out_file){.path = s->flags.svg,
                                         .head = a->drawing.data,
                                         .head_length = a->drawing.length};
}

static bool gather_files(run_state *s, run_answer *a, problem *wrong) {
  size_t space = s->output_count + 2;
  a->files = vyre_arena_alloc(&s->arena, space * sizeof *a->files, 0);
  a->heads = vyre_arena_alloc(&s->arena, space * sizeof *a->heads, 0);
  if (!a->files || !a->heads) return problem_no_memory(wrong, "the outputs");
  memset(a->heads, 0, space * sizeof *a->heads);
  for (size_t i = 0; i < s->buffer_count; i++) {
    run_buffer *b = &s->buffers[i];
    if (!b->path) continue;
    if (strcmp(b->path, "-") == 0) {
      sink_bytes(&a->out, (const char *)b->out, b->out_length);
      a->taken = true;
      continue;
    }
    size_t n = a->file_count++;
    if (!fill_file(b, &a->heads[n], &a->files[n], wrong)) return false;
    tell_file(b, &a->files[n], &a->wrote);
  }
  if (s->flags.svg) gather_drawing(s, a);
  return true;
}

static void gather_tables(const run_state *s, run_answer *a) {
  bool first = true;
  if (s->flags.json) {
    put_json(s, &a->out);
    return;
  }
  for (size_t i = 0; !a->taken && i < s->buffer_count; i++) {
    const run_buffer *b = &s->buffers[i];
    if (!b->out || b->path) continue;
    if (!first) sink_text(&a->out, "\n");
    put_table(s, b, &a->out);
    first = false;
  }
}

/* Publishes the results. Returns the exit code. */
static int put_answer(const run_state *s, run_answer *a) {
  bool quiet = s->flags.json;
  if (!quiet) write_all(STDERR_FILENO, a->told.data, a->told.length);
  int code = publish_files(&a->out, a->files, a->file_count, quiet);
  if (code == EXIT_FINE && !quiet) {
    write_all(STDERR_FILENO, a->wrote.data, a->wrote.length);
  }
  return code;
}

int run_publish(run_state *s) {
  run_answer a = {.taken = false};
  problem wrong = {0};
  int code;
  tell_pictures(s, &a.told);
  run_tell(s, &a.told);
  if (s->report.count > 0) {
    run_tell_findings(s, &a.told);
    if (s->flags.json) put_json(s, &a.out);
    code = put_answer(s, &a);
    if (code == EXIT_FINE) code = EXIT_WRONG;
  } else if (gather_files(s, &a, &wrong)) {
    gather_tables(s, &a);
    code = put_answer(s, &a);
  } else {
    code = problem_report(&wrong, s->flags.json);
  }
  for (size_t i = 0; a.heads && i < s->output_count; i++) {
    sink_deinit(&a.heads[i]);
  }
  sink_deinit(&a.out);
  sink_deinit(&a.told);
  sink_deinit(&a.drawing);
  sink_deinit(&a.wrote);
  return code;
}
