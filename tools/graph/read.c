/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads Matrix Market files and edge lists. The text is cut at line ends into
 * parts, which threads read at the same time. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/text.h"
#include "graph/graph.h"

enum { MAX_PARTS = 16, PROGRESS_LINES = 1 << 16 };

/* Lines of one part of the text. Its edges go to [first, first + count) of the
 * edge list. */
typedef struct text_part {
  const char *at, *end;
  uint64_t first, count;
  uint32_t max_vertex; /* largest number of a vertex, counted from 0 */
  bool has_vertex;
  const char *error_at; /* NULL: no error */
  problem wrong;
} text_part;

typedef struct text_read {
  const input *in;
  const graph_options *options;
  edge_list *out;
  text_part parts[MAX_PARTS];
  uint64_t done;
  /* Matrix Market: the size of the matrix; 0 for an edge list. */
  bool is_matrix, has_values;
  uint32_t rows, columns;
} text_read;

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == ',';
}

static const char *skip_blanks(const char *at, const char *end) {
  while (at < end && is_blank(*at)) at++;
  return at;
}

static const char *line_end(const char *at, const char *end) {
  const char *newline = memchr(at, '\n', (size_t)(end - at));
  return newline ? newline : end;
}

/* Copies the word at @p at for a message. */
static void show_word(const char *at, const char *end, char out[48]) {
  const char *stop = at;
  while (stop < end && !is_blank(*stop) && *stop != '\n') stop++;
  show_into(out, 48, at, (size_t)(stop - at));
}

static bool fail_at(text_part *part, const char *at, const char *fix,
                    const char *what, const char *end) {
  char word[48];
  show_word(at, end, word);
  part->error_at = at;
  if (!word[0]) {
    return problem_set(&part->wrong, KIND_INPUT, fix,
                       "the line ends where %s is expected", what);
  }
  return problem_set(&part->wrong, KIND_INPUT, fix, "'%s' is not %s", word,
                     what);
}

static bool ends_word(const char *at, const char *end) {
  return at == end || is_blank(*at) || *at == '\n';
}

#define VERTEX_FIX                                                 \
  "write each edge as two whole numbers, such as '0 1'; comments " \
  "start with # or %"

/* Reads digits. Values above 2^32-1 fail. */
static inline bool read_digits(const char **at, const char *end,
                               uint32_t *out) {
  const char *p = *at;
  uint64_t value = 0;
  while (p < end && (unsigned char)(*p - '0') < 10 && value <= UINT32_MAX) {
    value = value * 10 + (uint64_t)(*p++ - '0');
  }
  if (p == *at || value > UINT32_MAX) return false;
  *at = p;
  *out = (uint32_t)value;
  return true;
}

/* Fails with the reason why the word at @p at does not name a vertex. */
static bool bad_vertex(text_part *part, const char *at, const char *end) {
  size_t digits = 0;
  while (at + digits < end && isdigit((unsigned char)at[digits])) digits++;
  if (digits > 0 && ends_word(at + digits, end)) {
    return fail_at(part, at, "renumber the vertices from 0",
                   "a vertex number that is at most 4294967293", end);
  }
  return fail_at(part, at, VERTEX_FIX, "a vertex number", end);
}

static inline bool read_vertex(text_read *r, text_part *part, uint32_t limit,
                               uint32_t *out) {
  const char *at = part->at = skip_blanks(part->at, part->end);
  if (!read_digits(&part->at, part->end, out) ||
      !ends_word(part->at, part->end)) {
    return bad_vertex(part, at, part->end);
  }
  bool is_one_based = r->is_matrix || r->options->is_one_based;
  if (is_one_based && *out == 0) {
    return fail_at(part, at,
                   r->is_matrix ? "number rows and columns from 1"
                                : "leave out --one-based",
                   "a vertex number that is at least 1", part->end);
  }
  *out -= is_one_based;
  if (!r->is_matrix && *out < GRAPH_MAX_VERTICES) return true;
  if (r->is_matrix && *out < limit) return true;
  return r->is_matrix
             ? fail_at(part, at, "correct the entry or the line with the sizes",
                       "inside the size of the matrix", part->end)
             : bad_vertex(part, at, part->end);
}

/* Reads a weight in a form that read_digits does not take: with a fraction or an
 * exponent. Returns false if it is not a whole number after scaling. */
static bool read_real(text_part *part, uint32_t scale, uint32_t *out) {
  char word[48];
  size_t length = 0;
  while (part->at + length < part->end && length + 1 < sizeof word &&
         !ends_word(part->at + length, part->end)) {
    word[length] = part->at[length];
    length++;
  }
  word[length] = '\0';
  char *end;
  if (strspn(word, "0123456789.eE+-") != length) return false;
  double value = strtod(word, &end);
  if (length == 0 || *end || !ends_word(part->at + length, part->end))
    return false;
  const double scaled = scale ? value * scale : value;
  const double whole = rint(scaled);
  if (!(whole >= 0 && whole <= UINT32_MAX) || (!scale && whole != scaled) ||
      signbit(value)) {
    return false;
  }
  *out = (uint32_t)whole;
  part->at += length;
  return true;
}

/* Reads a weight: a whole number from 0 on, or any number from 0 on with a scale
 * above 1. */
static bool read_weight(text_part *part, uint32_t scale, uint32_t *out) {
  const char *at = part->at = skip_blanks(part->at, part->end);
  if (scale <= 1 && read_digits(&part->at, part->end, out) &&
      ends_word(part->at, part->end)) {
    return true;
  }
  part->at = at;
  if (read_real(part, scale > 1 ? scale : 0, out)) return true;
  if (at < part->end && *at == '-') {
    return fail_at(part, at, "shortest paths need weights of 0 or more",
                   "a weight of at least 0", part->end);
  }
  return fail_at(part, at,
                 scale > 1 ? "use a smaller --scale, so that all weights are "
                             "at most 4294967295"
                           : "add --scale 1000 to multiply and round the "
                             "weights, or make them whole numbers",
                 scale > 1 ? "a weight from 0 to 4294967295 after --scale"
                           : "a whole weight from 0 to 4294967295",
                 part->end);
}

static void note_vertex(text_part *part, uint32_t v) {
  if (v > part->max_vertex) part->max_vertex = v;
  part->has_vertex = true;
}

/* Reads one edge. The weight is 1 if the line has none. */
static inline bool read_edge(text_read *r, text_part *part) {
  edge_list *out = r->out;
  uint64_t index = part->first + part->count;
  uint32_t from = 0, to = 0;
  if (!read_vertex(r, part, r->rows, &from) ||
      !read_vertex(r, part, r->columns, &to)) {
    return false;
  }
  if (out->weights) {
    const char *next = skip_blanks(part->at, part->end);
    out->weights[index] = 1;
    bool has_weight = next < part->end && *next != '\n';
    if ((has_weight || r->has_values) &&
        !read_weight(part, r->options->scale, &out->weights[index])) {
      return false;
    }
  }
  out->from[index] = from;
  out->to[index] = to;
  note_vertex(part, from);
  note_vertex(part, to);
  part->count++;
  return true;
}

static void tell_progress(text_read *r, uint64_t bytes) {
  uint64_t done = __atomic_add_fetch(&r->done, bytes, __ATOMIC_RELAXED);
  if (r->options->bar) progress_set(r->options->bar, done, r->in->length);
}

static bool is_comment(const char *at, const char *end) {
  return *at == '#' || *at == '%' ||
         (*at == '/' && at + 1 < end && at[1] == '/');
}

static void read_part(void *self, uint32_t index, uint32_t parts) {
  text_read *r = self;
  text_part *part = &r->parts[index];
  const char *told = part->at;
  (void)parts;
  for (uint64_t line = 1; part->at < part->end; line++) {
    part->at = skip_blanks(part->at, part->end);
    if (part->at == part->end) break;
    if (*part->at != '\n' && !is_comment(part->at, part->end) &&
        !read_edge(r, part)) {
      return;
    }
    part->at = line_end(part->at, part->end);
    if (part->at < part->end) part->at++;
    if (line % PROGRESS_LINES == 0) {
      tell_progress(r, (uint64_t)(part->at - told));
      told = part->at;
    }
  }
}

/* Moves the edges of all parts together. */
static void join_parts(text_read *r, uint32_t parts) {
  edge_list *out = r->out;
  uint32_t max = 0;
  bool has_vertex = false;
  for (uint32_t i = 0; i < parts; i++) {
    const text_part *part = &r->parts[i];
    memmove(out->from + out->count, out->from + part->first, part->count * 4);
    memmove(out->to + out->count, out->to + part->first, part->count * 4);
    if (out->weights) {
      memmove(out->weights + out->count, out->weights + part->first,
              part->count * 4);
    }
    out->count += part->count;
    if (part->max_vertex > max) max = part->max_vertex;
    has_vertex |= part->has_vertex;
  }
  out->vertices = has_vertex ? max + 1 : 0;
}

/* Reads all lines from @p start on. An edge has at least four bytes, but for
 * the last one. */
static bool read_lines(text_read *r, size_t start, problem *wrong) {
  const char *text = r->in->text, *end = text + r->in->length;
  uint32_t parts = graph_threads(r->options);
  uint64_t length = r->in->length - start;
  if (length < 1 << 16) parts = 1;
  if (!graph_fits(r->in->length, r->options, wrong) ||
      !edges_reserve(r->out, length / 4 + 2 * (uint64_t)parts,
                     r->options->needs_weights, wrong)) {
    return false;
  }
  const char *at = text + start;
  for (uint32_t i = 0; i < parts; i++) {
    const char *stop = text + start + length * (i + 1) / parts;
    if (stop < at) stop = at;
    stop = i + 1 == parts ? end : line_end(stop, end);
    if (stop < end) stop++;
    r->parts[i] = (text_part){.at = at, .end = stop};
    r->parts[i].first =
        (uint64_t)(at - text - (ptrdiff_t)start) / 4 + 2 * (uint64_t)i;
    at = stop;
  }
  graph_parallel(parts, read_part, r);
  for (uint32_t i = 0; i < parts; i++) {
    const text_part *part = &r->parts[i];
    if (!part->error_at) continue;
    *wrong = part->wrong;
    problem_at(wrong, r->in, (size_t)(part->error_at - text));
    return false;
  }
  join_parts(r, parts);
  return true;
}

/* --- Matrix Market ------------------------------------------------------------*/

static const char banner[] = "%%MatrixMarket";

/* Returns the next word of the line at *at. */
static size_t next_word(const char **at, const char *end) {
  *at = skip_blanks(*at, end);
  size_t length = 0;
  while (!ends_word(*at + length, end)) length++;
  return length;
}

static bool word_is(const char *at, size_t length, const char *word) {
  return strlen(word) == length && strncasecmp(at, word, length) == 0;
}

static bool bad_header(text_read *r, const char *at, const char *what,
                       const char *fix, problem *wrong) {
  text_part part = {.wrong = {.kind = NULL}};
  fail_at(&part, at, fix, what, r->in->text + r->in->length);
  *wrong = part.wrong;
  problem_at(wrong, r->in, (size_t)(at - r->in->text));
  return false;
}

/* Reads "%%MatrixMarket matrix coordinate pattern symmetric". */
static bool read_banner(text_read *r, const char *end, problem *wrong) {
  const char *at = r->in->text + strlen(banner);
  size_t length = next_word(&at, end);
  if (!word_is(at, length, "matrix")) {
    return bad_header(r, at, "the word 'matrix'",
                      "use a file that holds a matrix", wrong);
  }
  at += length;
  length = next_word(&at, end);
  if (!word_is(at, length, "coordinate")) {
    return bad_header(r, at, "the word 'coordinate'",
                      "write the matrix as a list of its entries", wrong);
  }
  at += length;
  length = next_word(&at, end);
  if (!word_is(at, length, "pattern") && !word_is(at, length, "integer") &&
      !word_is(at, length, "real")) {
    return bad_header(r, at, "pattern, integer or real",
                      "write values of one of these types, or none", wrong);
  }
  r->has_values = !word_is(at, length, "pattern");
  at += length;
  length = next_word(&at, end);
  r->out->is_symmetric = !word_is(at, length, "general");
  if (r->out->is_symmetric && !word_is(at, length, "symmetric") &&
      !word_is(at, length, "skew-symmetric")) {
    return bad_header(r, at, "general, symmetric or skew-symmetric",
                      "write one of these words", wrong);
  }
  return true;
}

/* Reads the line "ROWS COLUMNS ENTRIES". */
static bool read_sizes(text_read *r, const char *at, const char *end,
                       uint64_t *entries, problem *wrong) {
  uint64_t sizes[3];
  for (int i = 0; i < 3; i++) {
    size_t length = next_word(&at, end);
    if (!parse_u64(at, length, &sizes[i])) {
      return bad_header(r, at, "a number of rows, columns or entries",
                        "write a line such as '4 4 6' after the comments",
                        wrong);
    }
    if (i < 2 && sizes[i] > GRAPH_MAX_VERTICES) {
      return bad_header(r, at, "a size of at most 4294967294",
                        "use a smaller graph", wrong);
    }
    at += length;
  }
  r->rows = (uint32_t)sizes[0];
  r->columns = (uint32_t)sizes[1];
  *entries = sizes[2];
  if (sizes[0] == sizes[1]) return true;
  problem_at(wrong, r->in, (size_t)(at - r->in->text));
  return problem_set(
      wrong, KIND_INPUT,
      "use a square matrix: entry (i, j) is an edge from vertex i to vertex j",
      "the matrix has %u rows and %u columns", r->rows, r->columns);
}

static bool read_matrix(text_read *r, problem *wrong) {
  const char *text = r->in->text, *end = text + r->in->length;
  const char *at = line_end(text, end);
  uint64_t entries = 0;
  r->is_matrix = true;
  if (!read_banner(r, at, wrong)) return false;
  for (;;) { /* comments */
    if (at < end) at++;
    const char *first = skip_blanks(at, end);
    if (first == end || (*first != '%' && *first != '\n')) break;
    at = line_end(first, end);
  }
  const char *sizes = at;
  at = line_end(at, end);
  if (!read_sizes(r, sizes, at, &entries, wrong) ||
      !read_lines(r, (size_t)(at - text), wrong)) {
    return false;
  }
  r->out->vertices = r->rows;
  if (r->out->count == entries) return true;
  problem_at(wrong, r->in, (size_t)(sizes - text));
  return problem_set(wrong, KIND_INPUT,
                     r->out->count < entries
                         ? "get the whole file; it may have been cut off"
                         : "correct the number, or remove the surplus entries",
                     "the line announces %llu entries, and the file has %llu",
                     (unsigned long long)entries,
                     (unsigned long long)r->out->count);
}

/* --- all formats ----------------------------------------------------------------*/

/* Names the program that unpacks the input, if it is compressed. */
static const char *unpacker_of(const input *in) {
  static const struct {
    const char *magic, *program;
    size_t length;
  } kinds[] = {{"\x1f\x8b", "zcat", 2},
               {"BZh", "bzcat", 3},
               {"\xfd"
                "7zXZ",
                "xzcat", 5},
               {"\x28\xb5\x2f\xfd", "zstdcat", 4}};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    if (in->length >= kinds[i].length &&
        memcmp(in->text, kinds[i].magic, kinds[i].length) == 0) {
      return kinds[i].program;
    }
  }
  return NULL;
}

bool edges_read(const input *in, const graph_options *options, edge_list *out,
                problem *wrong) {
  text_read r = {.in = in, .options = options, .out = out};
  *out = (edge_list){0};
  const char *unpacker = unpacker_of(in);
  if (unpacker) {
    problem_at(wrong, in, 0);
    problem_set(wrong, KIND_INPUT, "", "the input is compressed");
    problem_fix(
        wrong, "unpack it on the way, as in: %s FILE | vyre graph components -",
        unpacker);
    return false;
  }
  if (in->length >= strlen(banner) &&
      strncasecmp(in->text, banner, strlen(banner)) == 0) {
    return read_matrix(&r, wrong);
  }
  return read_lines(&r, 0, wrong);
}
