/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "diag/diagnostics.h"

#include <string.h>

#include "base/memory.h"
#include "base/print.h"
#include "base/status.h"
#include "base/utf8.h"

/* --- collecting ------------------------------------------------------------*/

static int compare_places(uint32_t line_a, uint32_t column_a, uint32_t line_b,
                          uint32_t column_b) {
  if (line_a != line_b) return line_a < line_b ? -1 : 1;
  if (column_a != column_b) return column_a < column_b ? -1 : 1;
  return 0;
}

bool vyre__diagnostics_wants(const vyre_diagnostics *diagnostics, uint32_t line,
                             uint32_t column) {
  if (diagnostics->count < VYRE__MAX_FINDINGS) return true;
  const vyre_diagnostic *last = &diagnostics->items[diagnostics->count - 1];
  return compare_places(line, column, last->line, last->column) < 0;
}

static const char *copy(vyre_arena *arena, const char *text) {
  return text ? vyre__arena_text(arena, text) : NULL;
}

static bool copy_texts(vyre_arena *arena, vyre_diagnostic *item) {
  const char *other = item->note;
  item->message = copy(arena, item->message);
  item->fix = copy(arena, item->fix);
  item->note = copy(arena, other);
  return item->message && item->fix && (item->note || !other);
}

static bool copy_edit(vyre_arena *arena, vyre_diagnostic *item) {
  if (!item->edit) return true;
  vyre_edit *edit = vyre_arena_alloc(arena, sizeof *edit, 0);
  if (!edit) return false;
  *edit = *item->edit;
  edit->text = copy(arena, edit->text);
  item->edit = edit;
  return edit->text != NULL;
}

static bool copy_files(vyre_arena *arena, vyre_diagnostic *item) {
  if (!item->files) return true;
  const vyre_diagnostic_files from = *item->files;
  vyre_diagnostic_files *files = vyre_arena_alloc(arena, sizeof *files, 0);
  if (!files) return false;
  *files = (vyre_diagnostic_files){.file = copy(arena, from.file),
                                   .text = copy(arena, from.text),
                                   .note_file = copy(arena, from.note_file),
                                   .note_text = copy(arena, from.note_text)};
  item->files = files;
  return (files->file || !from.file) && (files->text || !from.text) &&
         (files->note_file || !from.note_file) &&
         (files->note_text || !from.note_text);
}

static const char *file_of(const vyre_diagnostic *item) {
  return item->files && item->files->file ? item->files->file : "";
}

/* Compares positions: those in the parsed file come first. */
static int compare(const vyre_diagnostic *a, const vyre_diagnostic *b) {
  const int order = strcmp(file_of(a), file_of(b));
  if (order != 0) return order;
  return compare_places(a->line, a->column, b->line, b->column);
}

static bool reserve(vyre_diagnostics *diagnostics) {
  if (diagnostics->capacity > 0) return true;
  diagnostics->items = vyre__arena_array(
      &diagnostics->arena, VYRE__MAX_FINDINGS, sizeof *diagnostics->items);
  if (!diagnostics->items) return false;
  diagnostics->capacity = VYRE__MAX_FINDINGS;
  return true;
}

bool vyre__diagnostics_add(vyre_diagnostics *diagnostics,
                           const vyre_diagnostic *finding) {
  if (!vyre__diagnostics_wants(diagnostics, finding->line, finding->column)) {
    diagnostics->dropped++;
    return true;
  }
  if (!reserve(diagnostics)) return false;
  size_t at = diagnostics->count;
  for (; at > 0; at--) {
    const vyre_diagnostic *before = &diagnostics->items[at - 1];
    int order = compare(before, finding);
    if (order < 0) break;
    if (order == 0 && strcmp(before->rule, finding->rule) == 0) return true;
    if (order == 0) break;
  }
  vyre_diagnostic item = *finding;
  if (item.length == 0) item.length = 1;
  if (!copy_texts(&diagnostics->arena, &item) ||
      !copy_edit(&diagnostics->arena, &item) ||
      !copy_files(&diagnostics->arena, &item)) {
    return false;
  }
  if (diagnostics->count == VYRE__MAX_FINDINGS) {
    diagnostics->count--;
    diagnostics->dropped++;
  }
  vyre_diagnostic *items = diagnostics->items;
  memmove(items + at + 1, items + at,
          (diagnostics->count - at) * sizeof *items);
  items[at] = item;
  diagnostics->count++;
  return true;
}

/* Copies a line of a file. */
static const char *copy_line(vyre_arena *arena, const vyre__source_file *file,
                             uint32_t line) {
  const char *at = file->text ? file->text : "", *end = at + file->length;
  for (uint32_t i = 1; at && i < line; i++) {
    at = memchr(at, '\n', (size_t)(end - at));
    if (at) at++;
  }
  if (!at) at = end;
  const char *stop = memchr(at, '\n', (size_t)(end - at));
  const size_t length = (size_t)((stop ? stop : end) - at);
  char *out = vyre_arena_alloc(arena, length + 1, 1);
  if (!out) return NULL;
  if (length > 0) memcpy(out, at, length);
  out[length] = '\0';
  return out;
}

bool vyre__diagnostics_locate(vyre_diagnostics *diagnostics,
                              const vyre__source_files *files) {
  vyre_arena *arena = &diagnostics->arena;
  for (size_t i = 0; i < diagnostics->count; i++) {
    vyre_diagnostic *item = &diagnostics->items[i];
    const vyre__source_file *at = vyre__source_file_of(files, &item->line);
    const vyre__source_file *note =
        item->note ? vyre__source_file_of(files, &item->note_line) : NULL;
    if (!at && !note) continue;
    vyre_diagnostic_files *own = vyre_arena_alloc(arena, sizeof *own, 0);
    if (!own) return false;
    *own = (vyre_diagnostic_files){
        .file = at ? copy(arena, at->name) : NULL,
        .text = at ? copy_line(arena, at, item->line) : NULL,
        .note_file = note ? copy(arena, note->name) : NULL,
        .note_text = note ? copy_line(arena, note, item->note_line) : NULL};
    if ((at && (!own->file || !own->text)) ||
        (note && (!own->note_file || !own->note_text))) {
      return false;
    }
    item->files = own;
    if (!item->edit || !at) continue;
    vyre_edit *edit = vyre_arena_alloc(arena, sizeof *edit, 0);
    if (!edit) return false;
    *edit = *item->edit;
    (void)vyre__source_file_of(files, &edit->line);
    item->edit = edit;
  }
  return true;
}

void vyre_diagnostics_deinit(vyre_diagnostics *diagnostics) {
  if (!diagnostics) return;
  vyre_arena_deinit(&diagnostics->arena);
  *diagnostics =
      (vyre_diagnostics){.arena.allocator = diagnostics->arena.allocator};
}

vyre_code vyre__diagnostics_fail(const vyre_diagnostics *diagnostics,
                                 const char *file, vyre_status *st) {
  if (diagnostics->count == 0) {
    return VYRE_FAIL(st, VYRE_INVALID_PROGRAM, VYRE_KIND_INVALID_PROGRAM,
                     "correct the errors that were reported before",
                     "the program is invalid");
  }
  const vyre_diagnostic *first = &diagnostics->items[0];
  vyre__failure failure = {.code = VYRE_INVALID_PROGRAM,
                           .kind = VYRE_KIND_INVALID_PROGRAM,
                           .fix = first->fix,
                           .file = __FILE__,
                           .line = __LINE__};
  const char *label = file && *file ? file : "kernel";
  if (first->files && first->files->file) label = first->files->file;
  if (first->line == 0) { /* no source */
    vyre__fail(st, &failure, "%s: %s [%s]", label, first->message, first->rule);
    return VYRE_INVALID_PROGRAM;
  }
  vyre__fail(st, &failure, "%s:%u:%u: %s [%s]", label, (unsigned)first->line,
             (unsigned)first->column, first->message, first->rule);
  return VYRE_INVALID_PROGRAM;
}

/* --- printing --------------------------------------------------------------*/

enum {
  WINDOW = 100, /* bytes of a source line that are shown */
  BEFORE = 40,  /* of these, bytes before the caret in a longer line */
};

typedef struct source_line {
  const char *text;
  size_t length;
} source_line;

static source_line find_line(const char *source, size_t length, uint32_t line) {
  const char *at = source, *end = source + length;
  for (uint32_t i = 1; at && i < line; i++) {
    at = memchr(at, '\n', (size_t)(end - at));
    if (at) at++;
  }
  if (!at) return (source_line){NULL, 0};
  const char *stop = memchr(at, '\n', (size_t)(end - at));
  size_t size = (size_t)((stop ? stop : end) - at);
  if (size > 0 && at[size - 1] == '\r') size--;
  return (source_line){at, size};
}

static bool is_tail(char c) {
  return ((unsigned char)c & 0xC0) == 0x80;
}

/* Prints text that is safe for terminals: each unprintable character becomes
 * one question mark, one column wide. */
static void print_clean(vyre__printer *out, const char *text, size_t length) {
  char buffer[WINDOW];
  size_t count = 0;
  for (size_t at = 0; at < length;) {
    size_t step = vyre__utf8_step(text + at, length - at);
    if (count + 4 > sizeof buffer) {
      vyre__print(out, "%.*s", (int)count, buffer);
      count = 0;
    }
    if (step > 0) {
      memcpy(buffer + count, text + at, step);
      count += step;
    } else if (!is_tail(text[at])) {
      buffer[count++] = text[at] == '\t' ? ' ' : '?';
    }
    at += step > 0 ? step : 1;
  }
  vyre__print(out, "%.*s", (int)count, buffer);
}

/* Returns the columns of some bytes: one per character. */
static unsigned columns_of(const char *text, size_t length) {
  unsigned columns = 0;
  for (size_t i = 0; i < length; i++) columns += !is_tail(text[i]);
  return columns;
}

/* Prints a source line and a marker below it. */
static void print_excerpt(vyre__printer *out, source_line line, uint32_t number,
                          uint32_t column, uint32_t length) {
  size_t at = column > 0 ? column - 1 : 0;
  if (at > line.length) at = line.length;
  size_t from = 0;
  if (line.length > WINDOW && at > BEFORE) from = at - BEFORE;
  while (from > 0 && is_tail(line.text[from])) from--;
  size_t to = line.length - from > WINDOW ? from + WINDOW : line.length;
  while (to < line.length && to > at && is_tail(line.text[to])) to--;
  size_t marked = to - at < length ? to - at : length;
  vyre__print(out, "%6u | %s", (unsigned)number, from > 0 ? "..." : "");
  print_clean(out, line.text + from, to - from);
  vyre__print(out, "%s\n%6s | %s", to < line.length ? "..." : "", "",
              from > 0 ? "   " : "");
  vyre__print_repeat(out, " ", columns_of(line.text + from, at - from));
  unsigned columns = columns_of(line.text + at, marked);
  vyre__print(out, "^");
  if (columns > 1) vyre__print_repeat(out, "~", columns - 1);
  vyre__print(out, "\n");
}

static void print_location(vyre__printer *out, const char *file, uint32_t line,
                           uint32_t column) {
  if (!file || !*file) file = "kernel";
  print_clean(out, file, strlen(file));
  vyre__print(out, ":");
  if (line > 0) vyre__print(out, "%u:%u:", (unsigned)line, (unsigned)column);
}

/* Returns the line of a position: of the source, or of an imported file. */
static source_line line_of(const char *source, size_t length, uint32_t line,
                           const char *file, const char *text) {
  if (file) return (source_line){text, text ? strlen(text) : 0};
  if (!source || line == 0) return (source_line){NULL, 0};
  return find_line(source, length, line);
}

static void print_item(vyre__printer *out, const vyre_diagnostic *item,
                       const char *file, const char *source, size_t length) {
  static const vyre_diagnostic_files none;
  const vyre_diagnostic_files *files = item->files ? item->files : &none;
  print_location(out, files->file ? files->file : file, item->line,
                 item->column);
  /* the only rule that no program has to keep */
  const bool is_note = strcmp(item->rule, "order_unproven") == 0;
  vyre__print(out, " %s: %s [%s]\n", is_note ? "note" : "error", item->message,
              item->rule);
  source_line line =
      line_of(source, length, item->line, files->file, files->text);
  if (line.text) {
    print_excerpt(out, line, item->line, item->column, item->length);
  }
  vyre__print(out, "  Fix: %s\n", item->fix);
  if (!item->note) return;
  print_location(out, files->note_file ? files->note_file : file,
                 item->note_line, item->note_column);
  vyre__print(out, " note: %s\n", item->note);
  line = line_of(source, length, item->note_line, files->note_file,
                 files->note_text);
  if (line.text) {
    print_excerpt(out, line, item->note_line, item->note_column, 1);
  }
}

bool vyre_diagnostics_print(const vyre_diagnostics *diagnostics,
                            const char *file, const char *source,
                            size_t source_length, vyre_writer writer) {
  vyre__printer out = vyre__printer_make(writer);
  for (size_t i = 0; i < diagnostics->count; i++) {
    print_item(&out, &diagnostics->items[i], file, source, source_length);
  }
  if (diagnostics->dropped > 0) {
    vyre__print(&out, "%s: and %zu more\n", file && *file ? file : "kernel",
                diagnostics->dropped);
  }
  return out.ok;
}
