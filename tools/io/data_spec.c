/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "io/data_spec.h"

#include <stdio.h>
#include <string.h>

#include "vyre/program.h"

#include "cli/text.h"
#include "io/element_text.h"
#include "io/image.h"
#include "io/npy.h"

enum { SHOWN = 60 };

/* A parsed SPEC. */
typedef struct data_spec {
  const char *text; /* the whole text */
  const vyre_buffer_decl *buffer;
  vyre_arena *arena;
  buffer_data *out;
  problem *wrong;
} data_spec;

static bool bad_spec(data_spec *s, const char *form, const char *why) {
  char shown[SHOWN];
  show_into(shown, sizeof shown, s->text, strlen(s->text));
  problem_set(s->wrong, KIND_USAGE, "", "--set %s: '%s': %s", s->buffer->name,
              shown, why);
  problem_fix(s->wrong, "write --set %s=%s", s->buffer->name, form);
  return false;
}

/* Returns the number of scalars of an element. */
static uint32_t parts_of(const vyre_buffer_decl *buffer) {
  return vyre_buffer_stride(buffer) / (uint32_t)element_bytes(buffer->element);
}

/* Allocates @p count elements and checks both limits. */
static unsigned char *space(data_spec *s, uint64_t count) {
  size_t size = vyre_buffer_stride(s->buffer);
  if (count > UINT32_MAX || count > INPUT_LIMIT / size) {
    problem_set(s->wrong, KIND_INPUT, "use fewer elements",
                "buffer '%s': %llu elements of %zu bytes exceed 2 GiB or "
                "4294967295 elements",
                s->buffer->name, (unsigned long long)count, size);
    return NULL;
  }
  size_t length = (size_t)count * size;
  unsigned char *bytes = vyre_arena_alloc(s->arena, length ? length : 1, 16);
  if (!bytes) {
    problem_no_memory(s->wrong, "the elements of a buffer");
    return NULL;
  }
  s->out->bytes = bytes;
  s->out->length = length;
  s->out->count = count;
  return bytes;
}

static bool read_count(data_spec *s, const char *text, const char *form,
                       uint64_t *count) {
  if (parse_u64(text, strlen(text), count)) return true;
  if (is_too_large(text, strlen(text), UINT32_MAX)) {
    return bad_spec(
        s, form,
        "the number of elements is too large; the maximum is 4294967295");
  }
  return bad_spec(s, form, "the number of elements is not an integer");
}

static bool make_zeros(data_spec *s, const char *rest) {
  uint64_t count;
  if (!read_count(s, rest, "zeros:1024", &count)) return false;
  unsigned char *bytes = space(s, count);
  if (bytes) memset(bytes, 0, s->out->length);
  return bytes != NULL;
}

static bool make_iota(data_spec *s, const char *rest) {
  uint64_t count;
  if (!read_count(s, rest, "iota:1024", &count)) return false;
  unsigned char *bytes = space(s, count);
  if (!bytes) return false;
  size_t size = element_bytes(s->buffer->element);
  for (uint64_t i = 0; i < count * parts_of(s->buffer); i++) {
    element_iota(s->buffer->element, i, bytes + i * size);
  }
  return true;
}

static bool make_fill(data_spec *s, const char *rest) {
  unsigned char value[LARGEST_ELEMENT];
  uint64_t count;
  const char *colon = strchr(rest, ':');
  if (!colon)
    return bad_spec(s, "fill:1:1024", "the value and the count are missing");
  if (!element_parse(s->buffer->element, rest, (size_t)(colon - rest), value)) {
    char why[64];
    snprintf(why, sizeof why, "the value is no %s",
             vyre_element_name(s->buffer->element));
    return bad_spec(s, "fill:1:1024", why);
  }
  if (!read_count(s, colon + 1, "fill:1:1024", &count)) return false;
  unsigned char *bytes = space(s, count);
  if (!bytes) return false;
  size_t size = element_bytes(s->buffer->element);
  for (uint64_t i = 0; i < count * parts_of(s->buffer); i++) {
    memcpy(bytes + i * size, value, size);
  }
  return true;
}

static bool make_random(data_spec *s, const char *rest) {
  uint64_t seed, count;
  const char *colon = strchr(rest, ':');
  if (colon && is_too_large(rest, (size_t)(colon - rest), UINT64_MAX)) {
    return bad_spec(
        s, "random:1:1024",
        "the seed is too large; the maximum is 18446744073709551615");
  }
  if (!colon || !parse_u64(rest, (size_t)(colon - rest), &seed)) {
    return bad_spec(s, "random:1:1024", "the seed is not an integer");
  }
  if (!read_count(s, colon + 1, "random:1:1024", &count)) return false;
  unsigned char *bytes = space(s, count);
  if (!bytes) return false;
  size_t size = element_bytes(s->buffer->element);
  for (uint64_t i = 0; i < count * parts_of(s->buffer); i++) {
    element_random(s->buffer->element, seed, i, bytes + i * size);
  }
  return true;
}

static bool make_values(data_spec *s, const char *rest) {
  uint64_t count = 1;
  for (const char *c = rest; *c; c++) count += *c == ',';
  const uint32_t parts = parts_of(s->buffer);
  if (count % parts != 0) {
    char why[80];
    snprintf(why, sizeof why,
             "%llu values do not fill elements of %u components",
             (unsigned long long)count, parts);
    return bad_spec(s, "values:1,2,3,4,5,6,7,8,9,10,11,12", why);
  }
  unsigned char *bytes = space(s, count / parts);
  if (!bytes) return false;
  size_t size = element_bytes(s->buffer->element);
  unsigned char value[LARGEST_ELEMENT];
  for (uint64_t i = 0; i < count; i++) {
    size_t length = strcspn(rest, ",");
    if (!element_parse(s->buffer->element, rest, length, value)) {
      char why[64];
      snprintf(why, sizeof why, "value %llu is no %s",
               (unsigned long long)i + 1,
               vyre_element_name(s->buffer->element));
      return bad_spec(s, "values:1,2,3", why);
    }
    memcpy(bytes + i * size, value, size);
    rest += length + 1;
  }
  return true;
}

static bool make_text(data_spec *s, const char *rest) {
  vyre_element element = s->buffer->element;
  if (element != VYRE_ELEMENT_U8 && element != VYRE_ELEMENT_BYTES) {
    char why[80];
    snprintf(why, sizeof why, "text: needs a buffer of u8 or bytes, not %s",
             vyre_element_name(element));
    return bad_spec(s, "values:1,2,3", why);
  }
  unsigned char *bytes = space(s, strlen(rest));
  if (bytes) memcpy(bytes, rest, s->out->length);
  return bytes != NULL;
}

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), tail = strlen(end);
  return length >= tail && strcmp(text + length - tail, end) == 0;
}

static bool read_raw(data_spec *s) {
  buffer_data *out = s->out;
  size_t size = vyre_buffer_stride(s->buffer);
  out->bytes = (const unsigned char *)out->file.text;
  out->length = out->file.length;
  out->count = out->length / size;
  if (out->length % size == 0) return true;
  s->wrong->file = out->file.label;
  problem_set(s->wrong, KIND_INPUT, "",
              "buffer '%s': %zu bytes are not a multiple of the %s element "
              "size, %zu bytes",
              s->buffer->name, out->length,
              vyre_element_name(s->buffer->element), size);
  problem_fix(s->wrong, "give it %zu or %zu bytes", out->length / size * size,
              (out->length / size + 1) * size);
  return false;
}

/* A scalar that is neither a value nor a file was most likely meant as a
 * value. */
static bool no_such_value(data_spec *s) {
  char shown[SHOWN];
  show_into(shown, sizeof shown, s->text, strlen(s->text));
  *s->wrong = (problem){0};
  problem_set(s->wrong, KIND_USAGE, "",
              "uniform '%s' is one %s; '%s' is neither such a value nor a file",
              s->buffer->name, vyre_element_name(s->buffer->element), shown);
  problem_fix(s->wrong, "write a value, such as --set %s=1", s->buffer->name);
  return false;
}

static bool is_scalar(const vyre_buffer_decl *buffer) {
  return buffer->access == VYRE_ACCESS_UNIFORM && buffer->count == 1 &&
         !buffer->type;
}

/* 1.5x has a period but is not a file name. */
static bool looks_like_file(const char *text) {
  bool number = strchr("+-0123456789", text[0]) != NULL;
  return strchr(text, '/') || (strchr(text, '.') && !number);
}

static bool cannot_read(data_spec *s) {
  if (is_scalar(s->buffer) && !looks_like_file(s->text)) {
    return no_such_value(s);
  }
  char said[sizeof s->wrong->message];
  memcpy(said, s->wrong->message, sizeof said);
  snprintf(s->wrong->message, sizeof s->wrong->message, "buffer '%s': %.500s",
           s->buffer->name, said);
  problem_fix(s->wrong,
              "name a file that can be read, or write zeros:N, iota:N, "
              "fill:V:N, random:SEED:N or values:V,V,...");
  return false;
}

static bool read_npy(data_spec *s) {
  buffer_data *out = s->out;
  if (!npy_read(&out->file, s->buffer, &out->bytes, &out->count, s->wrong)) {
    return false;
  }
  const uint32_t parts = parts_of(s->buffer);
  out->length = (size_t)out->count * element_bytes(s->buffer->element);
  if (out->count % parts != 0) {
    s->wrong->file = out->file.label;
    problem_set(
        s->wrong, KIND_INPUT, "save an array of whole elements",
        "buffer '%s': %llu values do not fill elements of %u components",
        s->buffer->name, (unsigned long long)out->count, parts);
    return false;
  }
  out->count /= parts;
  return true;
}

/* @p wanted is the shape in the spec; zero: any shape. */
static bool read_picture(data_spec *s, bool png, const image_shape *wanted) {
  buffer_data *out = s->out;
  image_target target = {s->buffer, *wanted, strrchr(s->text, ':')};
  image made;
  if (!(png ? png_read : pnm_read)(&out->file, &target, s->arena, &made,
                                   s->wrong)) {
    return false;
  }
  if (!image_to_elements(&made, s->buffer, &out->file, s->arena, &out->bytes,
                         &out->count, s->wrong)) {
    return false;
  }
  out->length = (size_t)out->count * element_bytes(s->buffer->element);
  out->shape = made.shape;
  out->bits = made.bits;
  return true;
}

static bool unknown_picture(data_spec *s, const char *path, const char *end) {
  s->wrong->file = path;
  problem_set(s->wrong, KIND_INPUT, "", "buffer '%s': cannot read %s files",
              s->buffer->name, end);
  problem_fix(s->wrong,
              "convert it to PNG, PGM or PPM, or write --set %s=raw:%.150s for "
              "the bytes of the file",
              s->buffer->name, path);
  return false;
}

static bool make_raw(data_spec *s, const char *rest) {
  s->text = rest;
  return read_input(rest, &s->out->file, s->wrong) ? read_raw(s)
                                                   : cannot_read(s);
}

/* The file name tells the format; for standard input, the first bytes do. */
static bool read_data_file(data_spec *s) {
  image_shape shape;
  size_t length;
  const char *path = s->text;
  if (!image_split_shape(path, &length, &shape, s->wrong)) return false;
  image_format format = image_format_of(path, length);
  if (path[length]) {
    char *copy = vyre_arena_alloc(s->arena, length + 1, 1);
    if (!copy) return problem_no_memory(s->wrong, "a file name");
    memcpy(copy, path, length);
    copy[length] = '\0';
    path = copy;
  }
  const char *unknown = image_unknown_format(path, length);
  if (unknown) return unknown_picture(s, path, unknown);
  if (!read_input(path, &s->out->file, s->wrong)) return cannot_read(s);
  const input *in = &s->out->file;
  bool standard = strcmp(path, "-") == 0;
  if (standard ? is_npy(in->text, in->length) : ends_with(path, ".npy")) {
    return read_npy(s);
  }
  if (standard ? is_png(in->text, in->length) : format == IMAGE_PNG) {
    return read_picture(s, true, &shape);
  }
  if (standard ? is_pnm(in->text, in->length) : format != IMAGE_NONE) {
    return read_picture(s, false, &shape);
  }
  return read_raw(s);
}

static const struct {
  const char *prefix;
  bool (*make)(data_spec *s, const char *rest);
} makers[] = {
    {"zeros:", make_zeros},   {"iota:", make_iota},     {"fill:", make_fill},
    {"random:", make_random}, {"values:", make_values}, {"text:", make_text},
    {"raw:", make_raw},
};

enum { MAKERS = sizeof makers / sizeof makers[0] };

static bool make(data_spec *s) {
  for (size_t i = 0; i < MAKERS; i++) {
    size_t length = strlen(makers[i].prefix);
    if (strncmp(s->text, makers[i].prefix, length) == 0) {
      return makers[i].make(s, s->text + length);
    }
  }
  unsigned char value[LARGEST_ELEMENT];
  if (is_scalar(s->buffer) &&
      element_parse(s->buffer->element, s->text, strlen(s->text), value)) {
    unsigned char *bytes = space(s, 1);
    if (bytes) memcpy(bytes, value, s->out->length);
    return bytes != NULL;
  }
  return read_data_file(s);
}

bool data_read(const char *spec, const vyre_buffer_decl *buffer,
               vyre_arena *arena, buffer_data *out, problem *wrong) {
  *out = (buffer_data){0};
  data_spec s = {spec, buffer, arena, out, wrong};
  if (!make(&s)) return false;
  if (!buffer->count || buffer->count == out->count) return true;
  wrong->file = out->file.label;
  if (is_scalar(buffer)) {
    problem_set(wrong, KIND_INPUT, "",
                "uniform '%s' is one %s, but %llu values are given",
                buffer->name, vyre_element_name(buffer->element),
                (unsigned long long)out->count);
    problem_fix(wrong, "write one value, such as --set %s=1", buffer->name);
    return false;
  }
  problem_set(wrong, KIND_INPUT, "",
              "buffer '%s' is declared with %u element%s, but %llu %s given",
              buffer->name, buffer->count, buffer->count == 1 ? "" : "s",
              (unsigned long long)out->count, out->count == 1 ? "is" : "are");
  problem_fix(wrong,
              "give it %u element%s, or declare the buffer without a count",
              buffer->count, buffer->count == 1 ? "" : "s");
  return false;
}

bool data_zeros(const vyre_buffer_decl *buffer, uint64_t count,
                vyre_arena *arena, buffer_data *out, problem *wrong) {
  *out = (buffer_data){0};
  data_spec s = {"zeros", buffer, arena, out, wrong};
  unsigned char *bytes = space(&s, count);
  if (bytes) memset(bytes, 0, out->length);
  return bytes != NULL;
}

void data_deinit(buffer_data *data) {
  input_deinit(&data->file);
  *data = (buffer_data){0};
}
