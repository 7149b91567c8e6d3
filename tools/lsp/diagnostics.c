/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Diagnostics, code actions and formatting. */
#include <string.h>

#include "vyre/module.h"

#include "lsp/answers.h"

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

static void put_diagnostic(json_out *json, const document *doc,
                           const vyre_diagnostic *d) {
  sink text = {0};
  json_open(json, NULL, '{');
  put_range(json, "range", range_of_use(doc, d->line, d->column, d->length));
  json_u64(json, "severity", 1);
  json_text(json, "code", d->rule);
  json_text(json, "source", "vyre");
  sink_text(&text, d->message);
  sink_text(&text, "\nFix: ");
  sink_text(&text, d->fix);
  json_string(json, "message", text.data, text.length);
  sink_deinit(&text);
  if (d->note && d->note_line) {
    json_open(json, "relatedInformation", '[');
    json_open(json, NULL, '{');
    json_open(json, "location", '{');
    json_text(json, "uri", doc->uri);
    put_range(json, "range",
              range_of_use(doc, d->note_line, d->note_column, 1));
    json_close(json, '}');
    json_text(json, "message", d->note);
    json_close(json, '}');
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
    if (!d->edit || is_before(range.to, place.from) ||
        is_before(place.to, range.from)) {
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
  if (vyre_source_format(doc->text.data ? doc->text.data : "", doc->text.length,
                         doc->uri, &doc->arena, &text, &length, NULL,
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
