/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "lsp/document.h"

#include <string.h>

#include "vyre/module.h"
#include "vyre/validate.h"

#include "cli/text.h"
#include "lsp/imports.h"

/* --- text ------------------------------------------------------------------*/

static void forget(document *doc) {
  vyre_module_release(doc->module);
  vyre_diagnostics_deinit(&doc->found);
  vyre_arena_deinit(&doc->arena);
  doc->module = NULL;
  doc->index = (vyre_source_index){.symbols = NULL};
  doc->lines = NULL;
  doc->path = NULL;
  doc->kernels = NULL;
  doc->kernel_count = 0;
  doc->line_count = 0;
  doc->is_analysed = false;
  doc->is_valid = false;
}

void document_deinit(document *doc) {
  forget(doc);
  sink_deinit(&doc->text);
  vyre_allocator heap = vyre_allocator_heap();
  if (doc->uri) heap.resize(heap.self, doc->uri, strlen(doc->uri) + 1, 0);
  doc->uri = NULL;
}

void document_refresh(document *doc) {
  forget(doc);
  doc->is_dirty = true;
}

void document_set(document *doc, const char *text, size_t length) {
  forget(doc);
  doc->is_dirty = true;
  doc->text.length = 0;
  doc->text.failed = false;
  sink_bytes(&doc->text, text, length);
}

void document_change(document *doc, lsp_position from, lsp_position to,
                     const char *text, size_t length) {
  size_t start = document_offset(doc, from), end = document_offset(doc, to);
  if (end < start) end = start;
  sink changed = {0};
  sink_bytes(&changed, doc->text.data, start);
  sink_bytes(&changed, text, length);
  sink_bytes(&changed, doc->text.data + end, doc->text.length - end);
  forget(doc);
  doc->is_dirty = true;
  sink_deinit(&doc->text);
  doc->text = changed;
}

/* A place in a line, so that conversions in the order of the text take time in
 * proportion to the text, also in one long line. */
struct last_place {
  uint32_t line, units;
  size_t at;
};

/* --- positions -------------------------------------------------------------*/

/* Finds the lines. Lines end with \n, \r\n or \r, as in the protocol; the
 * library counts \n only, so \r alone does not end a line here either. */
static bool find_lines(document *doc) {
  if (doc->lines) return true;
  const char *text = doc->text.data ? doc->text.data : "";
  size_t count = 1;
  for (size_t i = 0; i < doc->text.length; i++) count += text[i] == '\n';
  doc->last = vyre_arena_alloc(&doc->arena, sizeof *doc->last, 0);
  uint32_t *lines =
      vyre_arena_alloc(&doc->arena, (count + 1) * sizeof *lines, 0);
  if (!doc->last || !lines) return false;
  *doc->last = (struct last_place){.line = UINT32_MAX};
  doc->lines = lines;
  doc->line_count = 0;
  doc->lines[doc->line_count++] = 0;
  for (size_t i = 0; i < doc->text.length; i++) {
    if (text[i] == '\n') doc->lines[doc->line_count++] = (uint32_t)(i + 1);
  }
  doc->lines[doc->line_count] = (uint32_t)doc->text.length;
  return true;
}

/* Returns the end of a line without its line end. */
static size_t line_end(const document *doc, uint32_t line) {
  size_t end = doc->lines[line + 1];
  const size_t start = doc->lines[line];
  if (end > start && doc->text.data[end - 1] == '\n') end--;
  if (end > start && doc->text.data[end - 1] == '\r') end--;
  return end;
}

/* Returns the bytes of the character at @p at; 1 for invalid bytes. */
static size_t step(const document *doc, size_t at, size_t end,
                   uint32_t *units) {
  uint32_t code_point = 0;
  size_t size = utf8_next(doc->text.data + at, end - at, &code_point);
  *units = size == 4 ? 2 : 1;
  return size ? size : 1;
}

lsp_position document_position(const document *doc, uint32_t line,
                               uint32_t column) {
  lsp_position out = {0, 0};
  if (line == 0 || !doc->lines) return out;
  out.line = line - 1 < doc->line_count ? line - 1 : doc->line_count - 1;
  const size_t start = doc->lines[out.line], end = doc->lines[out.line + 1];
  const size_t wanted = start + (column ? column - 1 : 0);
  const size_t stop = wanted < end ? wanted : end;
  struct last_place *last = doc->last;
  if (last->line != out.line || last->at > stop) {
    *last = (struct last_place){.line = out.line, .at = start};
  }
  while (last->at < stop) {
    uint32_t units;
    last->at += step(doc, last->at, end, &units);
    last->units += units;
  }
  out.character = last->units;
  return out;
}

lsp_position document_position_at(const document *doc, size_t offset) {
  uint32_t lo = 0, hi = doc->line_count;
  if (!doc->lines) return (lsp_position){0, 0};
  while (lo + 1 < hi) {
    const uint32_t middle = lo + (hi - lo) / 2;
    if (doc->lines[middle] <= offset) {
      lo = middle;
    } else {
      hi = middle;
    }
  }
  return document_position(doc, lo + 1,
                           (uint32_t)(offset - doc->lines[lo]) + 1);
}

size_t document_offset(document *doc, lsp_position position) {
  if (!find_lines(doc)) return 0;
  if (position.line >= doc->line_count) return doc->text.length;
  const size_t end = line_end(doc, position.line);
  size_t at = doc->lines[position.line];
  for (uint32_t units = 0; at < end && units < position.character;) {
    uint32_t more;
    const size_t size = step(doc, at, end, &more);
    if (units + more > position.character) break; /* inside a pair */
    units += more;
    at += size;
  }
  return at;
}

size_t document_offset_at(const document *doc, uint32_t line, uint32_t column) {
  if (!doc->lines || line == 0 || line > doc->line_count) return 0;
  const size_t offset =
      doc->lines[line - 1] + (size_t)(column ? column - 1 : 0);
  return offset < doc->text.length ? offset : doc->text.length;
}

static bool is_word_byte(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z');
}

bool document_word_at(const document *doc, size_t offset, size_t *start,
                      size_t *length) {
  const char *text = doc->text.data;
  size_t from = offset, end = offset;
  while (from > 0 && is_word_byte(text[from - 1])) from--;
  while (end < doc->text.length && is_word_byte(text[end])) end++;
  *start = from;
  *length = end - from;
  return end > from;
}

const vyre_symbol_use *document_use_at(const document *doc, size_t offset) {
  size_t lo = 0, hi = doc->index.use_count;
  const vyre_symbol_use *found = NULL;
  while (lo < hi) {
    const size_t middle = lo + (hi - lo) / 2;
    const vyre_symbol_use *use = &doc->index.uses[middle];
    if (document_offset_at(doc, use->line, use->column) <= offset) {
      found = use;
      lo = middle + 1;
    } else {
      hi = middle;
    }
  }
  if (!found) return NULL;
  const size_t start = document_offset_at(doc, found->line, found->column);
  return offset <= start + found->length ? found : NULL;
}

/* --- analysis --------------------------------------------------------------*/

static void analyse_kernel(document *doc, vyre_program *program) {
  vyre_status st = {0};
  kernel_facts *facts = &doc->kernels[doc->kernel_count++];
  *facts = (kernel_facts){.name = vyre_program_name(program)};
  facts->buffers = vyre_program_buffers(program, &facts->buffer_count);
  if (vyre_program_validate(program, &doc->found, &st) != VYRE_OK) {
    doc->is_valid = false;
    return;
  }
  if (vyre_program_queue(program, &(vyre_queue_clauses){0},
                         (vyre_queue_field[32]){{0}})) {
    return; /* has several bodies, which have no facts of their own */
  }
  if (vyre_program_accesses(program, &doc->arena, &facts->accesses,
                            &facts->access_count, &st) != VYRE_OK ||
      vyre_program_values(program, &doc->arena, &facts->values,
                          &facts->value_count, &st) != VYRE_OK) {
    facts->access_count = facts->value_count = 0;
  }
}

void document_analyse(document *doc) {
  if (doc->is_analysed) return;
  vyre_status st = {0};
  const char *text = doc->text.data ? doc->text.data : "";
  doc->is_analysed = true;
  if (!find_lines(doc)) return;
  const vyre_module_options options = document_options(doc);
  const char *path = document_path(doc);
  if (vyre_source_index_build_with(text, doc->text.length, path, &options,
                                   &doc->arena, &doc->index, &st) != VYRE_OK) {
    doc->index = (vyre_source_index){.symbols = NULL};
  }
  doc->is_valid = vyre_module_parse_with(text, doc->text.length, path, &options,
                                         (vyre_allocator){0}, &doc->module,
                                         &doc->found, &st) == VYRE_OK;
  const size_t count = vyre_module_kernel_count(doc->module);
  doc->kernels =
      vyre_arena_alloc(&doc->arena, (count + 1) * sizeof *doc->kernels, 0);
  for (size_t i = 0; doc->kernels && i < count; i++) {
    analyse_kernel(doc, vyre_module_kernel(doc->module, i));
  }
}
