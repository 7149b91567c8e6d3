/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads MiniMalloc's CSV: a header with the columns id, lower, upper, size
 * and optionally offset in any order, then one interval per line, live from
 * lower up to but not including upper. Fields may be quoted (RFC 4180);
 * lines end with LF or CRLF. */
#include <stdio.h>
#include <string.h>

#include "cli/text.h"
#include "plan/read_plan.h"

enum { COLUMN_ID, COLUMN_LOWER, COLUMN_UPPER, COLUMN_SIZE, COLUMN_OFFSET };
enum { COLUMNS = 5, REQUIRED_COLUMNS = 4 };

static const char *const column_names[COLUMNS] = {"id", "lower", "upper",
                                                  "size", "offset"};

typedef struct csv_field {
  const char *text; /* without quotes */
  size_t length;
  size_t start; /* offset in the input */
} csv_field;

typedef struct csv_reader {
  const input *in;
  vyre_arena *arena;
  problem *wrong;
  size_t at;
  size_t columns[COLUMNS]; /* columns in the order of the header */
  size_t column_count;
} csv_reader;

enum { SHOWN_FIELD = 64 };

static bool fail_at(csv_reader *csv, size_t offset, const char *fix,
                    const char *message) {
  problem_set(csv->wrong, KIND_INPUT, fix, "%s", message);
  problem_at(csv->wrong, csv->in, offset);
  return false;
}

/* Returns the length of the line end at the reader: 0, 1, or 2 for CRLF. */
static size_t line_end(const csv_reader *csv) {
  const input *in = csv->in;
  if (csv->at >= in->length) return 0;
  if (in->text[csv->at] == '\n') return 1;
  bool pair = csv->at + 1 < in->length && in->text[csv->at] == '\r' &&
              in->text[csv->at + 1] == '\n';
  return pair ? 2 : 0;
}

static bool field_ends(const csv_reader *csv) {
  return csv->at >= csv->in->length || csv->in->text[csv->at] == ',' ||
         line_end(csv) > 0;
}

/* Returns the position of the closing quote for one opened before @p at;
 * in->length if it is missing. */
static size_t closing_quote(const input *in, size_t at) {
  while (at < in->length) {
    if (in->text[at] != '"') {
      at++;
    } else if (at + 1 < in->length && in->text[at + 1] == '"') {
      at += 2;
    } else {
      return at;
    }
  }
  return in->length;
}

static bool read_quoted(csv_reader *csv, csv_field *out) {
  const input *in = csv->in;
  size_t from = csv->at + 1;
  size_t end = closing_quote(in, from);
  if (end >= in->length) {
    return fail_at(csv, csv->at, "close the quotes",
                   "a quoted field is not terminated");
  }
  char *copy = vyre_arena_alloc(csv->arena, end - from + 1, 1);
  if (!copy) return problem_no_memory(csv->wrong, "a field");
  out->text = copy;
  for (size_t i = from; i < end; i++) {
    if (in->text[i] == '"') i++; /* the second of a pair */
    *copy++ = in->text[i];
  }
  out->length = (size_t)(copy - out->text);
  csv->at = end + 1;
  return field_ends(csv) ||
         fail_at(csv, csv->at, "put a comma after it",
                 "text follows the closing quote of a field");
}

static bool read_field(csv_reader *csv, csv_field *out) {
  const input *in = csv->in;
  *out = (csv_field){.text = in->text + csv->at, .start = csv->at};
  if (csv->at < in->length && in->text[csv->at] == '"') {
    if (!read_quoted(csv, out)) return false;
  } else {
    while (!field_ends(csv) && in->text[csv->at] != '"') csv->at++;
    out->length = csv->at - out->start;
    if (!field_ends(csv)) {
      return fail_at(csv, csv->at,
                     "quote the whole field and double the quotes in it",
                     "a quote is inside an unquoted field");
    }
  }
  size_t bad = find_unprintable(out->text, out->length);
  if (bad == out->length) return true;
  uint32_t code_point;
  bool control = utf8_next(out->text + bad, out->length - bad, &code_point) > 0;
  return fail_at(csv, out->start,
                 control ? "remove control characters from fields"
                         : "save the file as UTF-8",
                 control ? "a field has a control character"
                         : "a field is not valid UTF-8");
}

/* Consumes the comma after a field or the end of the line; *more is true for
 * a comma. */
static void next_field(csv_reader *csv, bool *more) {
  *more = csv->at < csv->in->length && csv->in->text[csv->at] == ',';
  csv->at += *more ? 1 : line_end(csv);
}

static bool unknown_column(csv_reader *csv, const csv_field *field) {
  char text[SHOWN_FIELD], message[128];
  show_into(text, sizeof text, field->text, field->length);
  snprintf(message, sizeof message, "unknown column '%s'", text);
  const char *meant =
      nearest_word(field->text, field->length, column_names, COLUMNS);
  fail_at(csv, field->start,
          "start with a header that names id, lower, upper, size and, if "
          "present, offset",
          message);
  if (meant) problem_fix(csv->wrong, "did you mean '%s'?", meant);
  return false;
}

static bool add_column(csv_reader *csv, const csv_field *field) {
  size_t column = 0;
  while (column < COLUMNS &&
         (strlen(column_names[column]) != field->length ||
          memcmp(column_names[column], field->text, field->length) != 0)) {
    column++;
  }
  if (column == COLUMNS) return unknown_column(csv, field);
  for (size_t i = 0; i < csv->column_count; i++) {
    if (csv->columns[i] != column) continue;
    char message[64];
    snprintf(message, sizeof message, "the header names '%s' twice",
             column_names[column]);
    return fail_at(csv, field->start, "keep one of the two", message);
  }
  csv->columns[csv->column_count++] = column;
  return true;
}

static bool read_header(csv_reader *csv) {
  if (csv->in->length - csv->at == 0) {
    return fail_at(csv, 0, "provide a JSON object or a CSV table",
                   "the input is empty");
  }
  bool more = true;
  while (more) {
    csv_field field;
    if (!read_field(csv, &field) || !add_column(csv, &field)) return false;
    next_field(csv, &more);
  }
  bool seen[COLUMNS] = {false};
  for (size_t i = 0; i < csv->column_count; i++) seen[csv->columns[i]] = true;
  for (size_t i = 0; i < REQUIRED_COLUMNS; i++) {
    if (seen[i]) continue;
    char message[64];
    snprintf(message, sizeof message, "the header has no column '%s'",
             column_names[i]);
    return fail_at(csv, 0, "name the columns id, lower, upper and size",
                   message);
  }
  return true;
}

static bool read_number(csv_reader *csv, const csv_field *field, size_t column,
                        uint64_t *out) {
  if (parse_u64(field->text, field->length, out)) return true;
  char text[SHOWN_FIELD], message[192];
  show_into(text, sizeof text, field->text, field->length);
  snprintf(message, sizeof message,
           "%s is '%s'; expected an integer from 0 to 18446744073709551615",
           column_names[column], text);
  return fail_at(csv, field->start,
                 "write decimal digits without sign, point or spaces", message);
}

static bool read_fields(csv_reader *csv, csv_field fields[COLUMNS]) {
  bool more = true;
  for (size_t i = 0; i < csv->column_count; i++) {
    char message[96];
    snprintf(message, sizeof message,
             "the line has %zu fields; the header has %zu", i,
             csv->column_count);
    if (!more) {
      return fail_at(csv, fields[csv->columns[0]].start,
                     "give every line the same fields as the header", message);
    }
    if (!read_field(csv, &fields[csv->columns[i]])) return false;
    next_field(csv, &more);
  }
  if (!more) return true;
  char message[96];
  snprintf(message, sizeof message, "the line has more than %zu fields",
           csv->column_count);
  return fail_at(csv, csv->at - 1,
                 "give every line the same fields as the header", message);
}

static bool read_row(csv_reader *csv, arena_list *intervals, arena_list *ids) {
  csv_field fields[COLUMNS] = {{0}};
  uint64_t numbers[COLUMNS] = {0};
  if (!read_fields(csv, fields)) return false;
  for (size_t i = COLUMN_LOWER; i < REQUIRED_COLUMNS; i++) {
    if (!read_number(csv, &fields[i], i, &numbers[i])) return false;
  }
  if (numbers[COLUMN_UPPER] <= numbers[COLUMN_LOWER]) {
    return fail_at(csv, fields[COLUMN_UPPER].start,
                   "make upper (exclusive) larger than lower",
                   "upper is not greater than lower");
  }
  vyre_interval *interval = list_add(intervals, sizeof *interval, csv->arena);
  interval_id *id = list_add(ids, sizeof *id, csv->arena);
  if (!interval || !id) return problem_no_memory(csv->wrong, "the intervals");
  *interval = (vyre_interval){.size = numbers[COLUMN_SIZE],
                              .alignment = 1,
                              .first_group = numbers[COLUMN_LOWER],
                              .last_group = numbers[COLUMN_UPPER] - 1};
  *id = (interval_id){fields[COLUMN_ID].text, fields[COLUMN_ID].length, false};
  return true;
}

/* Returns true if only line ends are left. */
static bool at_end(const csv_reader *csv) {
  csv_reader rest = *csv;
  size_t taken;
  while ((taken = line_end(&rest)) > 0) rest.at += taken;
  return rest.at >= rest.in->length;
}

bool read_place_csv(const input *in, vyre_arena *arena, place_input *out,
                    problem *wrong) {
  csv_reader csv = {.in = in, .arena = arena, .wrong = wrong};
  arena_list intervals = {0}, ids = {0};
  *out = (place_input){0};
  /* Spreadsheets write a byte order mark first. */
  if (in->length >= 3 && memcmp(in->text, "\xEF\xBB\xBF", 3) == 0) csv.at = 3;
  if (!read_header(&csv)) return false;
  while (csv.at < in->length) {
    if (line_end(&csv) > 0) {
      if (at_end(&csv)) break;
      return fail_at(&csv, csv.at, "remove the empty line",
                     "an empty line separates intervals");
    }
    if (!read_row(&csv, &intervals, &ids)) return false;
  }
  *out = (place_input){intervals.items, ids.items, intervals.count};
  return true;
}

static void put_id(const interval_id *id, size_t index, sink *out) {
  if (!id->text) {
    sink_u64(out, index);
    return;
  }
  bool quote = false;
  for (size_t i = 0; i < id->length; i++) {
    quote = quote || strchr("\",", id->text[i]) || id->text[i] == ' ';
  }
  if (!quote) {
    sink_bytes(out, id->text, id->length);
    return;
  }
  sink_text(out, "\"");
  for (size_t i = 0; i < id->length; i++) {
    if (id->text[i] == '"') sink_text(out, "\"");
    sink_bytes(out, id->text + i, 1);
  }
  sink_text(out, "\"");
}

bool write_place_csv(const place_input *in, const uint64_t *offsets, sink *out,
                     problem *wrong) {
  sink_text(out,
            offsets ? "id,lower,upper,size,offset\n" : "id,lower,upper,size\n");
  for (size_t i = 0; i < in->count; i++) {
    const vyre_interval *interval = &in->intervals[i];
    if (interval->last_group == UINT64_MAX) {
      return problem_set(wrong, KIND_INPUT,
                         "use --json, or end the interval one group earlier",
                         "intervals[%zu] ends in group 18446744073709551615; "
                         "its upper end in CSV exceeds 64 bits",
                         i);
    }
    put_id(&in->ids[i], i, out);
    uint64_t cells[] = {interval->first_group, interval->last_group + 1,
                        interval->size, offsets ? offsets[i] : 0};
    for (size_t cell = 0; cell < (offsets ? 4u : 3u); cell++) {
      sink_text(out, ",");
      sink_u64(out, cells[cell]);
    }
    sink_text(out, "\n");
  }
  return true;
}
