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
    int order = compare_places(before->line, before->column, finding->line,
                               finding->column);
    if (order < 0) break;
    if (order == 0 && strcmp(before->rule, finding->rule) == 0) return true;
    if (order == 0) break;
  }
  vyre_diagnostic item = *finding;
  if (item.length == 0) item.length = 1;
  if (!copy_texts(&diagnostics->arena, &item) ||
      !copy_edit(&diagnostics->arena, &item)) {
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

static void print_item(vyre__printer *out, const vyre_diagnostic *item,
                       const char *file, const char *source, size_t length) {
  source_line none = {NULL, 0};
  print_location(out, file, item->line, item->column);
  /* the only rule that no program has to keep */
  const bool is_note = strcmp(item->rule, "order_unproven") == 0;
  vyre__print(out, " %s: %s [%s]\n", is_note ? "note" : "error", item->message,
              item->rule);
  source_line line =
      source && item->line ? find_line(source, length, item->line) : none;
  if (line.text) {
    print_excerpt(out, line, item->line, item->column, item->length);
  }
  vyre__print(out, "  Fix: %s\n", item->fix);
  if (!item->note) return;
  print_location(out, file, item->note_line, item->note_column);
  vyre__print(out, " note: %s\n", item->note);
  line = source && item->note_line ? find_line(source, length, item->note_line)
                                   : none;
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
