/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "io/read_json.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#include "cli/text.h"

enum { SHOWN_TOKEN = 72 };

static const char *describe(const token *t, char buffer[SHOWN_TOKEN]) {
  static const char *const words[] = {
      [TOKEN_NULL] = "null",          [TOKEN_OBJECT] = "an object",
      [TOKEN_OBJECT_END] = "missing", [TOKEN_ARRAY] = "a list",
      [TOKEN_ARRAY_END] = "missing",
  };
  char text[SHOWN_TOKEN - 4];
  switch (t->type) {
    case TOKEN_BOOL:
      return t->truth ? "true" : "false";
    case TOKEN_NUMBER:
      show_into(buffer, SHOWN_TOKEN, t->text, t->length);
      return buffer;
    case TOKEN_KEY:
    case TOKEN_STRING:
      show_into(text, sizeof text, t->text, t->length);
      snprintf(buffer, SHOWN_TOKEN, "\"%s\"", text);
      return buffer;
    default:
      return words[t->type];
  }
}

bool json_is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool fail_at(json_reader *reader, size_t offset, const char *fix,
                    const char *message) {
  problem_set(reader->wrong, KIND_INPUT, fix, "%s", message);
  problem_at(reader->wrong, reader->in, offset);
  return false;
}

/* Returns the first byte of the token after @p end, past spaces and one
 * comma or colon. */
static size_t token_after(const input *in, size_t end) {
  bool separated = false;
  while (end < in->length) {
    char c = in->text[end];
    bool separator = !separated && (c == ',' || c == ':');
    if (!separator && !json_is_space(c)) break;
    separated = separated || separator;
    end++;
  }
  return end;
}

static size_t token_start(const json_reader *reader) {
  return token_after(reader->in, reader->before);
}

bool json_fail(json_reader *reader, const char *fix, const char *format, ...) {
  char message[sizeof reader->wrong->message];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message, sizeof message, format, arguments);
  va_end(arguments);
  return fail_at(reader, token_start(reader), fix, message);
}

bool json_unexpected(json_reader *reader, const token *t, const char *name,
                     const char *wanted) {
  char text[SHOWN_TOKEN];
  json_fail(reader, "", "%s is %s, not %s", name, describe(t, text), wanted);
  problem_fix(reader->wrong, "make %s %s", name, wanted);
  return false;
}

bool json_number(json_reader *reader, const token *t, const char *name,
                 uint64_t max, uint64_t *out) {
  if (t->type == TOKEN_NUMBER && parse_u64(t->text, t->length, out) &&
      *out <= max) {
    return true;
  }
  char wanted[64];
  snprintf(wanted, sizeof wanted, "an integer from 0 to %" PRIu64, max);
  json_unexpected(reader, t, name, wanted);
  if (t->type == TOKEN_NUMBER) {
    problem_fix(reader->wrong,
                "write decimal digits without sign, point or exponent, at most "
                "%" PRIu64,
                max);
  }
  return false;
}

bool json_truth(json_reader *reader, const token *t, const char *name,
                bool *out) {
  if (t->type != TOKEN_BOOL) {
    return json_unexpected(reader, t, name, "true or false");
  }
  *out = t->truth;
  return true;
}

bool json_choice(json_reader *reader, const token *t, const char *name,
                 const char *const *names, size_t count, size_t *out) {
  char list[160] = "";
  for (size_t i = 0; i < count; i++) {
    if (t->type == TOKEN_STRING && strlen(names[i]) == t->length &&
        memcmp(names[i], t->text, t->length) == 0) {
      *out = i;
      return true;
    }
    size_t used = strlen(list);
    snprintf(list + used, sizeof list - used, "%s%s",
             i == 0           ? ""
             : i + 1 == count ? " or "
                              : ", ",
             names[i]);
  }
  char text[SHOWN_TOKEN];
  json_fail(reader, "", "%s is %s, which is not a valid name", name,
            describe(t, text));
  const char *meant = t->type == TOKEN_STRING
                          ? nearest_word(t->text, t->length, names, count)
                          : NULL;
  if (meant) {
    problem_fix(reader->wrong, "did you mean \"%s\"? It can be %s", meant,
                list);
  } else {
    problem_fix(reader->wrong, "write %s, in double quotes", list);
  }
  return false;
}

bool json_name(json_reader *reader, const token *t, const char *name,
               const char **out, size_t *out_length) {
  if (t->type != TOKEN_STRING) {
    return json_unexpected(reader, t, name, "a string");
  }
  size_t bad = find_unprintable(t->text, t->length);
  if (bad < t->length) {
    uint32_t code_point;
    bool control = utf8_next(t->text + bad, t->length - bad, &code_point) > 0;
    json_fail(reader,
              control ? "remove control characters from names"
                      : "save the file as UTF-8",
              control ? "%s has a control character" : "%s is not valid UTF-8",
              name);
    return false;
  }
  char *copy = vyre_arena_alloc(reader->arena, t->length + 1, 1);
  if (!copy) return problem_no_memory(reader->wrong, "a name");
  memcpy(copy, t->text, t->length);
  copy[t->length] = '\0';
  *out = copy;
  *out_length = t->length;
  return true;
}

bool json_key(json_reader *reader, const token *t, const key_set *keys,
              uint32_t *seen, size_t *out) {
  for (size_t i = 0; i < keys->count; i++) {
    if (strlen(keys->names[i]) != t->length ||
        memcmp(keys->names[i], t->text, t->length) != 0) {
      continue;
    }
    if (*seen & (1u << i)) {
      return json_fail(reader, "keep one of the two",
                       "%s has the key \"%s\" twice", keys->where,
                       keys->names[i]);
    }
    *seen |= 1u << i;
    *out = i;
    return true;
  }
  char text[SHOWN_TOKEN];
  const char *meant =
      nearest_word(t->text, t->length, keys->names, keys->count);
  json_fail(reader, "remove the key", "%s is not a key of %s",
            describe(t, text), keys->where);
  if (meant) problem_fix(reader->wrong, "did you mean \"%s\"?", meant);
  return false;
}

bool json_keys_complete(json_reader *reader, const key_set *keys,
                        uint32_t seen) {
  for (size_t i = 0; i < keys->count; i++) {
    if (!(keys->required & ~seen & (1u << i))) continue;
    json_fail(reader, "", "%s has no key \"%s\"", keys->where, keys->names[i]);
    problem_fix(reader->wrong, "add \"%s\" to it", keys->names[i]);
    return false;
  }
  return true;
}

/* --- between YAJL and the handler ------------------------------------------*/

static void advance(json_reader *reader) {
  reader->before = reader->end;
  reader->end = yajl_get_bytes_consumed(reader->parser);
}

static int pass(void *self, token t) {
  json_reader *reader = self;
  advance(reader);
  return reader->handle(reader, &t);
}

/* YAJL silently replaces an unpaired surrogate by '?'. This checks the
 * escapes in the text of the string. */
static bool surrogates_are_paired(const char *text, size_t length) {
  bool open = false; /* a high surrogate precedes */
  for (size_t at = 0; at < length; at++) {
    bool escape = text[at] == '\\' && at + 1 < length;
    bool first = false, second = false;
    if (escape && text[at + 1] == 'u' && at + 3 < length &&
        (text[at + 2] == 'd' || text[at + 2] == 'D')) {
      first = strchr("89abAB", text[at + 3]) != NULL;
      second = strchr("cdefCDEF", text[at + 3]) != NULL;
    }
    if (open != second) return false;
    open = first;
    at += escape ? (text[at + 1] == 'u' ? 5 : 1) : 0;
  }
  return !open;
}

static int pass_text(json_reader *reader, token_type type,
                     const unsigned char *text, size_t length) {
  token t = {.type = type, .text = (const char *)text, .length = length};
  const input *in = reader->in;
  advance(reader);
  bool inside = t.text >= in->text && t.text <= in->text + in->length;
  size_t start = inside ? 0 : token_start(reader) + 1;
  if (!inside && reader->end > start && reader->end <= in->length &&
      !surrogates_are_paired(in->text + start, reader->end - start - 1)) {
    return json_fail(
        reader,
        "write both \\u escapes of the surrogate pair, or the character itself",
        "a string has an unpaired surrogate");
  }
  return reader->handle(reader, &t);
}

static int on_null(void *self) {
  return pass(self, (token){.type = TOKEN_NULL});
}

static int on_bool(void *self, int truth) {
  return pass(self, (token){.type = TOKEN_BOOL, .truth = truth != 0});
}

static int on_number(void *self, const char *text, size_t length) {
  return pass(self,
              (token){.type = TOKEN_NUMBER, .text = text, .length = length});
}

static int on_string(void *self, const unsigned char *text, size_t length) {
  return pass_text(self, TOKEN_STRING, text, length);
}

static int on_key(void *self, const unsigned char *text, size_t length) {
  return pass_text(self, TOKEN_KEY, text, length);
}

static int on_object(void *self) {
  return pass(self, (token){.type = TOKEN_OBJECT});
}

static int on_object_end(void *self) {
  return pass(self, (token){.type = TOKEN_OBJECT_END});
}

static int on_array(void *self) {
  return pass(self, (token){.type = TOKEN_ARRAY});
}

static int on_array_end(void *self) {
  return pass(self, (token){.type = TOKEN_ARRAY_END});
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_bool,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_map_key = on_key,
    .yajl_start_map = on_object,
    .yajl_end_map = on_object_end,
    .yajl_start_array = on_array,
    .yajl_end_array = on_array_end,
};

/* YAJL does not check its allocations. On failure, jump out of YAJL; the
 * arena owns its memory and frees it. */
typedef union arena_cell {
  size_t size;
  max_align_t align;
} arena_cell;

static void *parser_alloc(void *self, size_t size) {
  json_reader *reader = self;
  arena_cell *cell = NULL;
  if (size <= SIZE_MAX - sizeof *cell) {
    cell = vyre_arena_alloc(reader->arena, size + sizeof *cell, 0);
  }
  if (!cell) longjmp(*(jmp_buf *)reader->escape, 1);
  cell->size = size;
  return cell + 1;
}

static void *parser_realloc(void *self, void *old, size_t size) {
  void *grown = parser_alloc(self, size);
  if (!old) return grown;
  size_t old_size = ((arena_cell *)old - 1)->size;
  memcpy(grown, old, old_size < size ? old_size : size);
  return grown;
}

static void parser_free(void *self, void *old) {
  (void)self;
  (void)old;
}

/* An error of YAJL is positioned after the last token; an invalid byte in a
 * string is the last byte consumed. */
static size_t bad_place(const json_reader *reader, bool lexical) {
  const input *in = reader->in;
  size_t place = token_after(in, reader->end);
  size_t taken = yajl_get_bytes_consumed(reader->parser);
  bool string = place < in->length && in->text[place] == '"';
  return lexical && string && taken > place + 1 ? taken - 1 : place;
}

/* Reports YAJL's message without its prefix "parse error: ". */
static bool no_json(json_reader *reader) {
  const char *words = (const char *)yajl_get_error(reader->parser, 0, NULL, 0);
  const char *colon = strchr(words, ':');
  const char *from = colon ? colon + 1 + strspn(colon + 1, " ") : words;
  char said[200], message[256];
  show_into(said, sizeof said, from, strcspn(from, "\n"));
  size_t length = strlen(said);
  while (length && strchr(". ", said[length - 1])) said[--length] = '\0';
  if (strstr(said, "premature EOF")) {
    return fail_at(reader, reader->in->length,
                   "complete the JSON text; an object or array is not closed",
                   "invalid JSON: the text is truncated");
  }
  snprintf(message, sizeof message, "this is not JSON: %s", said);
  return fail_at(reader, bad_place(reader, strncmp(words, "lexical", 7) == 0),
                 "correct the JSON text at this position", message);
}

static bool starts_well(json_reader *reader) {
  const input *in = reader->in;
  if (in->length >= 3 && memcmp(in->text, "\xEF\xBB\xBF", 3) == 0) {
    return fail_at(reader, 0, "save the file as UTF-8 without it",
                   "the text starts with a byte order mark");
  }
  for (size_t at = 0; at < in->length; at++) {
    if (!json_is_space(in->text[at])) return true;
  }
  return fail_at(reader, 0, "give it a JSON object", "the input is empty");
}

static bool parse(json_reader *reader) {
  yajl_alloc_funcs memory = {parser_alloc, parser_realloc, parser_free, reader};
  reader->parser = yajl_alloc(&callbacks, &memory, reader);
  if (!reader->parser) return problem_no_memory(reader->wrong, "the parser");
  yajl_status status =
      yajl_parse(reader->parser, (const unsigned char *)reader->in->text,
                 reader->in->length);
  if (status == yajl_status_ok) status = yajl_complete_parse(reader->parser);
  if (status == yajl_status_error) return no_json(reader);
  return status == yajl_status_ok;
}

bool json_read(json_reader *reader) {
  jmp_buf escape;
  if (!starts_well(reader)) return false;
  reader->escape = &escape;
  if (setjmp(escape) != 0) {
    return problem_no_memory(reader->wrong, "the parser");
  }
  bool fine = parse(reader);
  reader->escape = NULL;
  return fine;
}
