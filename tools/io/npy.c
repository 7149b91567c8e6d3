/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "io/npy.h"

#include <stdio.h>
#include <string.h>

#include "cli/text.h"
#include "io/element_text.h"

static const char magic[] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

/* Returns NumPy's name of an element type, without the byte order. */
static const char *const type_codes[VYRE_ELEMENT_COUNT] = {
    [VYRE_ELEMENT_BOOL] = "b1",     [VYRE_ELEMENT_U8] = "u1",
    [VYRE_ELEMENT_I8] = "i1",       [VYRE_ELEMENT_U16] = "u2",
    [VYRE_ELEMENT_I16] = "i2",      [VYRE_ELEMENT_U32] = "u4",
    [VYRE_ELEMENT_I32] = "i4",      [VYRE_ELEMENT_U64] = "u8",
    [VYRE_ELEMENT_I64] = "i8",      [VYRE_ELEMENT_F16] = "f2",
    [VYRE_ELEMENT_BF16] = "V2",     [VYRE_ELEMENT_F32] = "f4",
    [VYRE_ELEMENT_F64] = "f8",      [VYRE_ELEMENT_BYTES] = "u1",
    [VYRE_ELEMENT_SUM_F32] = "V96", [VYRE_ELEMENT_SUM_F64] = "V576",
};

/* Contents of the header. */
typedef struct npy_header {
  const char *type; /* offset of the data in the file */
  size_t type_length;
  bool fortran;
  uint64_t count; /* product of the shape */
  size_t dimensions;
} npy_header;

/* Position in the header. */
typedef struct npy_reader {
  const input *in;
  const char *buffer; /* for messages */
  size_t at, end;
  problem *wrong;
} npy_reader;

bool is_npy(const char *text, size_t length) {
  return length >= sizeof magic && memcmp(text, magic, sizeof magic) == 0;
}

static bool bad(npy_reader *r, const char *what) {
  if (r->wrong->kind) return false;
  problem_set(r->wrong, KIND_INPUT, "write the file with numpy.save",
              "buffer '%s': %s (byte %zu of the file)", r->buffer, what, r->at);
  r->wrong->file = r->in->label;
  return false;
}

static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n';
}

static void skip_spaces(npy_reader *r) {
  /* strchr would match the terminating zero too. */
  while (r->at < r->end && is_space(r->in->text[r->at])) r->at++;
}

static bool take(npy_reader *r, char c) {
  skip_spaces(r);
  if (r->at >= r->end || r->in->text[r->at] != c) return false;
  r->at++;
  return true;
}

static bool take_word(npy_reader *r, const char *word) {
  size_t length = strlen(word);
  skip_spaces(r);
  if (r->end - r->at < length ||
      memcmp(r->in->text + r->at, word, length) != 0) {
    return false;
  }
  r->at += length;
  return true;
}

/* Parses 'text' or "text", without escapes. */
static bool read_quoted(npy_reader *r, const char **text, size_t *length) {
  char quote = '\'';
  if (!take(r, quote)) {
    quote = '"';
    if (!take(r, quote)) return bad(r, "a quoted word is missing");
  }
  *text = r->in->text + r->at;
  const char *end = memchr(*text, quote, r->end - r->at);
  if (!end) return bad(r, "a quoted word is not terminated");
  *length = (size_t)(end - *text);
  r->at += *length + 1;
  return true;
}

static bool read_dimension(npy_reader *r, npy_header *h) {
  size_t begin = r->at;
  while (r->at < r->end && r->in->text[r->at] >= '0' &&
         r->in->text[r->at] <= '9') {
    r->at++;
  }
  uint64_t size;
  if (!parse_u64(r->in->text + begin, r->at - begin, &size)) {
    return bad(r, "an extent of the shape is missing or too large");
  }
  take(r, 'L'); /* Python 2 appended L to long integers. */
  if (size && h->count > UINT64_MAX / size) {
    return bad(r, "the shape has too many elements");
  }
  h->count *= size;
  h->dimensions++;
  return true;
}

/* Parses (), (3,) or (2, 3). */
static bool read_shape(npy_reader *r, npy_header *h) {
  h->count = 1;
  if (!take(r, '(')) return bad(r, "the shape is not a tuple");
  while (!take(r, ')')) {
    if (!read_dimension(r, h)) return false;
    if (take(r, ',')) {
      skip_spaces(r);
      continue;
    }
    if (!take(r, ')')) return bad(r, "the shape is not terminated");
    /* In Python, (3) is a number, not a tuple. */
    return h->dimensions > 1 || bad(r, "the shape is not a tuple");
  }
  return true;
}

enum { KEY_TYPE, KEY_ORDER, KEY_SHAPE, KEYS };
static const char *const key_names[KEYS] = {"descr", "fortran_order", "shape"};

static bool read_entry(npy_reader *r, bool seen[KEYS], npy_header *h) {
  const char *key;
  size_t length;
  int which = 0;
  if (!read_quoted(r, &key, &length)) return false;
  while (which < KEYS && (strlen(key_names[which]) != length ||
                          memcmp(key_names[which], key, length) != 0)) {
    which++;
  }
  if (which == KEYS) return bad(r, "the header has an unknown key");
  if (seen[which]) return bad(r, "the header has a key twice");
  seen[which] = true;
  if (!take(r, ':')) return bad(r, "a colon is missing");
  if (which == KEY_TYPE) return read_quoted(r, &h->type, &h->type_length);
  if (which == KEY_SHAPE) return read_shape(r, h);
  h->fortran = take_word(r, "True");
  return h->fortran || take_word(r, "False") ||
         bad(r, "fortran_order is neither True nor False");
}

static bool read_dict(npy_reader *r, npy_header *h) {
  bool seen[KEYS] = {false};
  if (!take(r, '{')) return bad(r, "the header is not a dictionary");
  while (!take(r, '}')) {
    if (!read_entry(r, seen, h)) return false;
    if (take(r, ',')) continue;
    if (!take(r, '}')) return bad(r, "the header is not terminated");
    break;
  }
  for (int i = 0; i < KEYS; i++) {
    if (!seen[i]) return bad(r, "the header lacks a key");
  }
  skip_spaces(r);
  return r->at == r->end || bad(r, "text follows the header");
}

/* Parses magic, version and length. Leaves r at the dictionary and r->end
 * after it. */
static bool read_preamble(npy_reader *r) {
  const unsigned char *text = (const unsigned char *)r->in->text;
  size_t length = r->in->length;
  if (!is_npy(r->in->text, length)) {
    return bad(r, "the file does not start like a .npy file");
  }
  r->at = sizeof magic;
  if (length < 10) return bad(r, "the file is cut short");
  if (text[6] < 1 || text[6] > 3) {
    return bad(r, "the format version is not 1, 2 or 3");
  }
  size_t size = text[8] | (size_t)text[9] << 8;
  r->at = 10;
  if (text[6] > 1) {
    if (length < 12) return bad(r, "the file is cut short");
    size |= (size_t)text[10] << 16 | (size_t)text[11] << 24;
    r->at = 12;
  }
  if (size > NPY_LONGEST_HEADER) {
    r->wrong->file = r->in->label;
    return problem_set(
        r->wrong, KIND_INPUT, "write the file with numpy.save",
        "buffer '%s': the header has %zu bytes; the maximum is %d", r->buffer,
        size, (int)NPY_LONGEST_HEADER);
  }
  if (size > length - r->at) return bad(r, "the header is truncated");
  r->end = r->at + size;
  return true;
}

/* Compares the type in the file with the declared one. */
static bool check_type(npy_reader *r, const npy_header *h,
                       vyre_element element) {
  char shown[24], wanted[8];
  const char *code = type_codes[element];
  const size_t length = strlen(code);
  bool single = code[1] == '1' || code[0] == 'V';
  snprintf(wanted, sizeof wanted, "%c%s", code[1] == '1' ? '|' : '<', code);
  if (h->type_length == length + 1 && memcmp(h->type + 1, code, length) == 0 &&
      (h->type[0] == '<' || (single && h->type[0] == '|'))) {
    return true;
  }
  show_into(shown, sizeof shown, h->type, h->type_length);
  r->wrong->file = r->in->label;
  if (h->type_length == length + 1 && h->type[0] == '>' &&
      memcmp(h->type + 1, code, length) == 0) {
    problem_set(r->wrong, KIND_INPUT, "",
                "buffer '%s' is %s, little endian ('%s'); the file is big "
                "endian ('%s')",
                r->buffer, vyre_element_name(element), wanted, shown);
    problem_fix(r->wrong, "save x.astype('%s')", wanted);
    return false;
  }
  problem_set(r->wrong, KIND_INPUT, "",
              "buffer '%s' is %s ('%s'); the file holds '%s'", r->buffer,
              vyre_element_name(element), wanted, shown);
  problem_fix(r->wrong,
              "save x.astype('%s'), or change the declaration of the buffer",
              wanted);
  return false;
}

static bool check_size(npy_reader *r, const npy_header *h, size_t size) {
  size_t there = r->in->length - r->end;
  if (h->count <= SIZE_MAX / size && h->count * size == there) return true;
  r->wrong->file = r->in->label;
  return problem_set(r->wrong, KIND_INPUT, "write the file with numpy.save",
                     "buffer '%s': the header declares %llu elements of %zu "
                     "bytes, but %zu bytes follow",
                     r->buffer, (unsigned long long)h->count, size, there);
}

bool npy_read(const input *in, const vyre_buffer_decl *buffer,
              const unsigned char **data, uint64_t *count, problem *wrong) {
  npy_reader r = {.in = in, .buffer = buffer->name, .wrong = wrong};
  npy_header h = {.count = 0};
  if (!read_preamble(&r) || !read_dict(&r, &h) ||
      !check_type(&r, &h, buffer->element)) {
    return false;
  }
  if (h.fortran && h.dimensions > 1) {
    wrong->file = in->label;
    return problem_set(wrong, KIND_INPUT, "save numpy.ascontiguousarray(x)",
                       "buffer '%s' is read in C order; the file is in "
                       "Fortran order",
                       buffer->name);
  }
  if (!check_size(&r, &h, element_bytes(buffer->element))) return false;
  *data = (const unsigned char *)in->text + r.end;
  *count = h.count;
  return true;
}

void npy_put_header(vyre_element element, uint64_t count, sink *out) {
  npy_put_rows(element, count, 1, out);
}

void npy_put_rows(vyre_element element, uint64_t count, size_t parts,
                  sink *out) {
  char text[118]; /* padded with the ten bytes before it to a multiple of 64 */
  char more[24] = "";
  const char *code = type_codes[element];
  if (parts > 1) snprintf(more, sizeof more, " %zu", parts);
  memset(text, ' ', sizeof text);
  int length = snprintf(text, sizeof text,
                        "{'descr': '%c%s', 'fortran_order': False, 'shape': "
                        "(%llu,%s), }",
                        code[1] == '1' ? '|' : '<', code,
                        (unsigned long long)count, more);
  text[length] = ' '; /* overwrites the terminator */
  text[sizeof text - 1] = '\n';
  sink_bytes(out, magic, sizeof magic);
  sink_bytes(out, "\1\0v\0", 4);
  sink_bytes(out, text, sizeof text);
}
