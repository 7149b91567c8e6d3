/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Diagnostics, code actions and formatting. */
#include <string.h>

#include "vyre/module.h"

#include "lsp/answers.h"
#include "lsp/imports.h"

void put_range(json_out *json, const char *key, lsp_range range) {
  json_open(json, key, '{');
  json_open(json, "start", '{');
  json_u64(json, "line", range.from.line);
  json_u64(json, "character", range.from.character);
  json_close(json, '}');
  json_open(json, "end", '{');
  json_u64(json, "line", range.to.line);
  json_u64(json, "character", range.to.character);
  json_close(json, '}');
  json_close(json, '}');
}

lsp_range range_of_use(const document *doc, uint32_t line, uint32_t column,
                       uint32_t length) {
  const size_t start = document_offset_at(doc, line, column);
  lsp_range range = {document_position(doc, line, column), {0, 0}};
  size_t end = start + length;
  if (end > doc->text.length) end = doc->text.length;
  range.to = document_position_at(doc, end);
  return range;
}

/* Writes a place in another file, or in the document if @p file is NULL. */
static void put_related(json_out *json, const document *doc, const char *file,
                        uint32_t line, uint32_t column, const char *message) {
  json_open(json, NULL, '{');
  json_open(json, "location", '{');
  if (file) {
    const lsp_position at = {line - 1, column - 1};
    put_file_uri(json, "uri", file);
    put_range(json, "range", (lsp_range){at, at});
  } else {
    json_text(json, "uri", doc->uri);
    put_range(json, "range", range_of_use(doc, line, column, 1));
  }
  json_close(json, '}');
  json_text(json, "message", message);
  json_close(json, '}');
}

/* Returns the range of a diagnostic; for one in an imported file, the line that
 * imports it. */
static lsp_range range_of(const document *doc, const vyre_diagnostic *d) {
  const char *file = d->files ? d->files->file : NULL;
  if (!file) return range_of_use(doc, d->line, d->column, d->length);
  return range_of_use(doc, document_import_line(doc, file), 1,
                      (uint32_t)strlen("import"));
}

static void put_diagnostic(json_out *json, const document *doc,
                           const vyre_diagnostic *d) {
  sink text = {0};
  const char *file = d->files ? d->files->file : NULL;
  const char *note_file = d->files ? d->files->note_file : NULL;
  json_open(json, NULL, '{');
  put_range(json, "range", range_of(doc, d));
  json_u64(json, "severity", 1);
  json_text(json, "code", d->rule);
  json_text(json, "source", "vyre");
  if (file) {
    sink_format(&text, "%s:%u:%u: ", file, (unsigned)d->line,
                (unsigned)d->column);
  }
  sink_text(&text, d->message);
  sink_text(&text, "\nFix: ");
  sink_text(&text, d->fix);
  json_string(json, "message", text.data, text.length);
  sink_deinit(&text);
  if (file || (d->note && d->note_line)) {
    json_open(json, "relatedInformation", '[');
    if (file) put_related(json, doc, file, d->line, d->column, d->message);
    if (d->note && d->note_line) {
      put_related(json, doc, note_file, d->note_line, d->note_column, d->note);
    }
    json_close(json, ']');
  }
  json_close(json, '}');
}

void answer_diagnostics(json_out *json, document *doc) {
  document_analyse(doc);
  json_open(json, "diagnostics", '[');
  for (size_t i = 0; i < doc->found.count; i++) {
    put_diagnostic(json, doc, &doc->found.items[i]);
  }
  json_close(json, ']');
}

/* --- code actions ----------------------------------------------------------*/

static bool is_before(lsp_position a, lsp_position b) {
  return a.line != b.line ? a.line < b.line : a.character < b.character;
}

static void put_edit(json_out *json, const document *doc,
                     const vyre_edit *edit) {
  json_open(json, NULL, '{');
  put_range(json, "range",
            range_of_use(doc, edit->line, edit->column, edit->length));
  json_text(json, "newText", edit->text);
  json_close(json, '}');
}

static void open_edits(json_out *json, const document *doc) {
  json_open(json, "edit", '{');
  json_open(json, "changes", '{');
  json_text(json, NULL, doc->uri);
  sink_text(json->out, ":[");
  json->comma = false;
}

static void close_edits(json_out *json) {
  json_close(json, ']');
  json_close(json, '}');
  json_close(json, '}');
}

void answer_code_actions(json_out *json, document *doc, lsp_range range) {
  document_analyse(doc);
  json_open(json, "result", '[');
  for (size_t i = 0; i < doc->found.count; i++) {
    const vyre_diagnostic *d = &doc->found.items[i];
    const lsp_range place = range_of_use(doc, d->line, d->column, d->length);
    if (!d->edit || (d->files && d->files->file) ||
        is_before(range.to, place.from) || is_before(place.to, range.from)) {
      continue;
    }
    json_open(json, NULL, '{');
    json_text(json, "title", d->fix);
    json_text(json, "kind", "quickfix");
    json_bool(json, "isPreferred", true);
    json_open(json, "diagnostics", '[');
    put_diagnostic(json, doc, d);
    json_close(json, ']');
    open_edits(json, doc);
    put_edit(json, doc, d->edit);
    close_edits(json);
    json_close(json, '}');
  }
  json_close(json, ']');
}

/* --- formatting ------------------------------------------------------------*/

void answer_formatting(json_out *json, document *doc) {
  const char *text;
  size_t length;
  vyre_status st = {0};
  document_analyse(doc);
  const vyre_module_options options = document_options(doc);
  if (vyre_source_format_with(doc->text.data ? doc->text.data : "",
                              doc->text.length, document_path(doc), &options,
                              &doc->arena, &text, &length, NULL,
                              &st) != VYRE_OK) {
    json_null(json, "result");
    return;
  }
  json_open(json, "result", '[');
  if (length != doc->text.length || memcmp(text, doc->text.data, length) != 0) {
    json_open(json, NULL, '{');
    put_range(json, "range",
              (lsp_range){{0, 0}, document_position_at(doc, doc->text.length)});
    json_string(json, "newText", text, length);
    json_close(json, '}');
  }
  json_close(json, ']');
}
