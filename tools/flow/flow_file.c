/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads flow files line by line. */
#include "flow/flow_file.h"

#include <stdio.h>
#include <string.h>

#include "cli/text.h"
#include "io/element_text.h"

enum { DEFAULT_MAX_ITERATIONS = 1000000, MAX_SHOWN = 60 };

/* A word, a number or a symbol of a line. */
typedef struct flow_token {
  const char *text;
  size_t length; /* 0: the end of the line */
  size_t at;
} flow_token;

typedef struct flow_reader {
  const input *in;
  vyre_arena *arena;
  problem *wrong;
  flow_file *out;
  size_t at, end; /* rest of the line */
  arena_list kernels, kernel_at, resources, waves, orders;
  uint32_t *names; /* hash table of resources + 1; 0: empty */
  size_t name_capacity;
  uint32_t *labels; /* the same for waves */
  size_t label_capacity;
} flow_reader;

/* --- tokens ------------------------------------------------------------------*/

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

static void skip_spaces(flow_reader *r) {
  while (r->at < r->end && is_space(r->in->text[r->at])) r->at++;
}

/* Returns the next token without taking it. A number keeps its sign, point and
 * exponent; ".." is one symbol. */
static flow_token peek(flow_reader *r) {
  const char *text = r->in->text;
  skip_spaces(r);
  size_t at = r->at, to = at;
  if (at >= r->end || text[at] == '#') return (flow_token){"", 0, at};
  if (is_letter(text[at])) {
    while (to < r->end && (is_letter(text[to]) || is_digit(text[to]))) to++;
  } else if (is_digit(text[at]) || text[at] == '-') {
    for (to++; to < r->end; to++) {
      bool has_range =
          text[to] == '.' && to + 1 < r->end && text[to + 1] == '.';
      bool is_sign = (text[to] == '-' || text[to] == '+') &&
                     (text[to - 1] == 'e' || text[to - 1] == 'E');
      if (has_range || !(is_letter(text[to]) || is_digit(text[to]) ||
                         text[to] == '.' || is_sign)) {
        break;
      }
    }
  } else {
    to += at + 1 < r->end && text[at] == '.' && text[at + 1] == '.' ? 2 : 1;
  }
  return (flow_token){text + at, to - at, at};
}

static flow_token take(flow_reader *r) {
  flow_token t = peek(r);
  r->at = t.at + t.length;
  return t;
}

static bool is(const flow_token *t, const char *text) {
  return t->length == strlen(text) && memcmp(t->text, text, t->length) == 0;
}

static bool accept(flow_reader *r, const char *symbol) {
  flow_token t = peek(r);
  if (!is(&t, symbol)) return false;
  r->at = t.at + t.length;
  return true;
}

/* Fails at a token: "expected WHAT, found ...". */
static bool expected(flow_reader *r, const flow_token *t, const char *what,
                     const char *fix) {
  char shown[MAX_SHOWN];
  if (t->length == 0) {
    problem_set(r->wrong, KIND_INPUT, fix, "the line ends where %s is expected",
                what);
  } else {
    show_into(shown, sizeof shown, t->text, t->length);
    problem_set(r->wrong, KIND_INPUT, fix, "'%s' is found where %s is expected",
                shown, what);
  }
  problem_at(r->wrong, r->in, t->at);
  return false;
}

static bool expect(flow_reader *r, const char *symbol, const char *fix) {
  if (accept(r, symbol)) return true;
  char what[16];
  flow_token t = peek(r);
  (void)snprintf(what, sizeof what, "'%s'", symbol);
  return expected(r, &t, what, fix);
}

static bool fail_at(flow_reader *r, size_t at, const char *fix,
                    const char *message, const char *name) {
  char shown[MAX_SHOWN];
  show_into(shown, sizeof shown, name, strlen(name));
  problem_set(r->wrong, KIND_INPUT, fix, message, shown);
  problem_at(r->wrong, r->in, at);
  return false;
}

static const char *copy(flow_reader *r, const char *text, size_t length) {
  char *to = vyre_arena_alloc(r->arena, length + 1, 1);
  if (!to) {
    problem_no_memory(r->wrong, "the flow file");
    return NULL;
  }
  memcpy(to, text, length);
  to[length] = '\0';
  return to;
}

/* Takes an identifier of at most FLOW_MAX_NAME bytes. Returns NULL after a
 * failure. */
static const char *take_name(flow_reader *r, const char *what, size_t *at) {
  flow_token t = peek(r);
  *at = t.at;
  if (t.length == 0 || !is_letter(t.text[0])) {
    expected(r, &t, what, "write a name of letters, digits and _");
    return NULL;
  }
  if (t.length > FLOW_MAX_NAME) {
    expected(r, &t, "a name of at most 63 bytes", "use a shorter name");
    return NULL;
  }
  r->at = t.at + t.length;
  return copy(r, t.text, t.length);
}

static bool take_number(flow_reader *r, const char *what, uint64_t min,
                        uint64_t max, uint64_t *out) {
  flow_token t = peek(r);
  if (t.length == 0 || !parse_u64(t.text, t.length, out) || *out < min ||
      *out > max) {
    return expected(r, &t, what, "write a whole number in this range");
  }
  r->at = t.at + t.length;
  return true;
}

/* Takes the rest of the line without the spaces around it. */
static const char *take_rest(flow_reader *r, const char *what, size_t *at) {
  skip_spaces(r);
  *at = r->at;
  size_t end = r->end;
  while (end > r->at && is_space(r->in->text[end - 1])) end--;
  flow_token none = {"", 0, r->at};
  if (end == r->at) {
    expected(r, &none, what, "write it at the end of the line");
    return NULL;
  }
  const char *text = r->in->text + r->at;
  size_t length = end - r->at;
  r->at = r->end;
  if (memchr(text, '\0', length)) {
    expected(r, &none, what, "remove the byte 0 from the line");
    return NULL;
  }
  return copy(r, text, length);
}

/* --- names -------------------------------------------------------------------*/

static size_t hash_of(const char *name) {
  uint64_t hash = UINT64_C(14695981039346656037);
  for (; *name; name++)
    hash = (hash ^ (unsigned char)*name) * UINT64_C(1099511628211);
  return (size_t)(hash ^ hash >> 32);
}

static const char *name_of(const flow_reader *r, bool is_wave, uint32_t index) {
  return is_wave ? ((const flow_wave *)r->waves.items)[index].label
                 : ((const flow_resource *)r->resources.items)[index].name;
}

/* Returns the index of a resource or wave, or UINT32_MAX. */
static uint32_t find(const flow_reader *r, bool is_wave, const char *name) {
  const uint32_t *table = is_wave ? r->labels : r->names;
  size_t capacity = is_wave ? r->label_capacity : r->name_capacity;
  if (capacity == 0) return UINT32_MAX;
  for (size_t at = hash_of(name) & (capacity - 1); table[at];
       at = (at + 1) & (capacity - 1)) {
    if (strcmp(name_of(r, is_wave, table[at] - 1), name) == 0)
      return table[at] - 1;
  }
  return UINT32_MAX;
}

static void put(uint32_t *table, size_t capacity, const char *name,
                uint32_t index) {
  size_t at = hash_of(name) & (capacity - 1);
  while (table[at]) at = (at + 1) & (capacity - 1);
  table[at] = index + 1;
}

/* Adds the last resource or wave to its table, which is at most half full. */
static bool add_name(flow_reader *r, bool is_wave) {
  uint32_t **table = is_wave ? &r->labels : &r->names;
  size_t *capacity = is_wave ? &r->label_capacity : &r->name_capacity;
  size_t count = is_wave ? r->waves.count : r->resources.count;
  if (2 * count > *capacity) {
    size_t grown = *capacity ? 2 * *capacity : 64;
    uint32_t *bigger =
        vyre_arena_alloc(r->arena, grown * sizeof *bigger, sizeof *bigger);
    if (!bigger) return problem_no_memory(r->wrong, "the flow file");
    memset(bigger, 0, grown * sizeof *bigger);
    for (uint32_t i = 0; i + 1 < count; i++)
      put(bigger, grown, name_of(r, is_wave, i), i);
    *table = bigger;
    *capacity = grown;
  }
  uint32_t last = (uint32_t)count - 1;
  put(*table, *capacity, name_of(r, is_wave, last), last);
  return true;
}

static void *add_item(flow_reader *r, arena_list *list, size_t size) {
  if (list->count >= FLOW_MAX_ITEMS) {
    problem_set(r->wrong, KIND_INPUT, "split the graph",
                "the file has more than %d resources, waves or orders",
                FLOW_MAX_ITEMS);
    problem_at(r->wrong, r->in, r->at);
    return NULL;
  }
  void *item = list_add(list, size, r->arena);
  if (!item) problem_no_memory(r->wrong, "the flow file");
  return item;
}

/* Finds a resource or wave that must exist. */
static bool find_known(flow_reader *r, bool is_wave, const char *name,
                       size_t at, uint32_t *out) {
  *out = find(r, is_wave, name);
  if (*out != UINT32_MAX) return true;
  return is_wave ? fail_at(r, at, "write the wave before this line",
                           "no wave is called '%s'", name)
                 : fail_at(r, at,
                           "add a line such as 'resource NAME : f32[100]' "
                           "before this one",
                           "no resource is called '%s'", name);
}

/* --- resources ---------------------------------------------------------------*/

static bool take_element(flow_reader *r, vyre_element *out) {
  static const char *const names[] = {
#define X(name, text, bytes) text,
      VYRE_ELEMENT_MAP(X)
#undef X
  };
  flow_token t = peek(r);
  for (int i = 0; i < VYRE_ELEMENT_COUNT; i++) {
    if (!is(&t, names[i])) continue;
    *out = (vyre_element)i;
    r->at = t.at + t.length;
    return true;
  }
  return expected(r, &t, "an element type",
                  "use one of bool u8 i8 u16 i16 u32 i32 u64 i64 f16 bf16 f32 "
                  "f64 bytes");
}

static bool take_roles(flow_reader *r, flow_resource *out) {
  for (;;) {
    size_t at;
    if (accept(r, "output")) {
      out->is_output = true;
    } else if (accept(r, "kept")) {
      out->is_kept = true;
    } else if (accept(r, "input")) {
      out->is_input = true;
      flow_token t = peek(r);
      if (t.length == 0 || is(&t, "output")) continue;
      out->spec = take_rest(r, "the data of the input", &at);
      return out->spec != NULL;
    } else {
      break;
    }
  }
  flow_token t = peek(r);
  return t.length == 0 ||
         expected(r, &t, "input, output, kept or the end of the line",
                  "end the line, or write a # before a comment");
}

static bool read_resource(flow_reader *r) {
  static const char fix[] =
      "write, for example, 'resource x : f32[1024] input'";
  flow_resource resource = {0};
  resource.name = take_name(r, "the name of a resource", &resource.at);
  if (!resource.name) return false;
  if (find(r, false, resource.name) != UINT32_MAX)
    return fail_at(r, resource.at, "use another name",
                   "the file already has a resource '%s'", resource.name);
  if (!expect(r, ":", fix) || !take_element(r, &resource.element) ||
      !expect(r, "[", fix) ||
      !take_number(r, "a number of elements from 1 to 2^40", 1,
                   UINT64_C(1) << 40, &resource.count) ||
      !expect(r, "]", fix) || !take_roles(r, &resource)) {
    return false;
  }
  if (resource.is_input && resource.is_kept)
    return fail_at(r, resource.at, "remove 'input' or 'kept'",
                   "resource '%s' is an input, which every run replaces, and "
                   "kept",
                   resource.name);
  resource.size = resource.count * element_bytes(resource.element);
  flow_resource *item = add_item(r, &r->resources, sizeof *item);
  if (!item) return false;
  *item = resource;
  return add_name(r, false);
}

/* --- waves -------------------------------------------------------------------*/

/* Reads "[FIRST..END]", which may be left out. */
static bool take_range(flow_reader *r, flow_argument *out) {
  const flow_resource *resource =
      (const flow_resource *)r->resources.items + out->resource;
  static const char fix[] = "write a range of elements such as x[0..100]";
  uint64_t end;
  out->count = resource->count;
  if (!accept(r, "[")) return true;
  if (!take_number(r, "the first element of a range", 0, resource->count,
                   &out->first) ||
      !expect(r, "..", fix) ||
      !take_number(r, "the end of a range inside the resource", out->first + 1,
                   resource->count, &end)) {
    return false;
  }
  out->count = end - out->first;
  return expect(r, "]", fix);
}

static bool take_argument(flow_reader *r, flow_argument *out) {
  flow_token t = peek(r);
  *out = (flow_argument){.at = t.at};
  bool is_value = t.length > 0 && (is_digit(t.text[0]) || t.text[0] == '-');
  if (is_value || is(&t, "true") || is(&t, "false")) {
    r->at = t.at + t.length;
    out->constant = copy(r, t.text, t.length);
    return out->constant != NULL;
  }
  const char *name = take_name(r, "a resource or a value", &out->at);
  return name && find_known(r, false, name, out->at, &out->resource) &&
         take_range(r, out);
}

static bool take_arguments(flow_reader *r, flow_wave *wave) {
  static const char fix[] = "write, for example, 'wave add(x, y, 2.5)'";
  arena_list list = {0};
  if (!expect(r, "(", fix)) return false;
  if (!accept(r, ")")) {
    do {
      flow_argument argument;
      if (!take_argument(r, &argument)) return false;
      flow_argument *item = add_item(r, &list, sizeof *item);
      if (!item) return false;
      *item = argument;
    } while (accept(r, ","));
    if (!expect(r, ")", fix)) return false;
  }
  wave->arguments = list.items;
  wave->argument_count = list.count;
  return true;
}

static bool take_grid(flow_reader *r, flow_wave *wave) {
  for (int i = 0; i < 3; i++) {
    uint64_t number;
    flow_token t = peek(r);
    if (i > 0 && t.length == 0) {
      wave->grid[i] = 1;
      continue;
    }
    if (!take_number(r, "a number of workgroups", 1, UINT32_MAX, &number))
      return false;
    wave->grid[i] = (uint32_t)number;
  }
  return true;
}

static bool at_end(flow_reader *r) {
  flow_token t = peek(r);
  return t.length == 0 || expected(r, &t, "the end of the line",
                                   "end the line, or write a # before a "
                                   "comment");
}

static bool read_wave(flow_reader *r) {
  flow_wave wave = {0};
  wave.kernel = take_name(r, "the name of a kernel", &wave.at);
  if (!wave.kernel) return false;
  wave.label = wave.kernel;
  bool has_label = accept(r, "=");
  if (has_label) {
    size_t at;
    wave.kernel = take_name(r, "the name of a kernel", &at);
    if (!wave.kernel) return false;
    if (find(r, true, wave.label) != UINT32_MAX)
      return fail_at(r, wave.at, "use another name",
                     "the file already has a wave '%s'", wave.label);
  }
  if (!take_arguments(r, &wave)) return false;
  if (accept(r, "grid") && !take_grid(r, &wave)) return false;
  if (!at_end(r)) return false;
  flow_wave *item = add_item(r, &r->waves, sizeof *item);
  if (!item) return false;
  *item = wave;
  return add_name(r, true);
}

/* --- other lines -------------------------------------------------------------*/

static bool read_kernels(flow_reader *r) {
  size_t at;
  const char *path = take_rest(r, "the path of a kernel file", &at);
  if (!path) return false;
  const char **item = add_item(r, &r->kernels, sizeof *item);
  size_t *position = item ? add_item(r, &r->kernel_at, sizeof *position) : NULL;
  if (!position) return false;
  *item = path;
  *position = at;
  return true;
}

static bool read_budget(flow_reader *r) {
  flow_token t = peek(r);
  uint64_t value = 0;
  if (!parse_bytes(t.text, t.length, &value) || value == 0) {
    return expected(r, &t, "a number of bytes above 0",
                    "write, for example, 'budget 65536' or 'budget 64K'");
  }
  r->at = t.at + t.length;
  r->out->budget = value;
  return at_end(r);
}

static bool read_order(flow_reader *r) {
  size_t at, other;
  flow_order order;
  const char *before = take_name(r, "the name of a wave", &at);
  if (!before || !find_known(r, true, before, at, &order.before)) return false;
  if (!expect(r, "before", "write 'order FIRST before SECOND'")) return false;
  const char *after = take_name(r, "the name of a wave", &other);
  if (!after || !find_known(r, true, after, other, &order.after)) return false;
  if (!at_end(r)) return false;
  flow_order *item = add_item(r, &r->orders, sizeof *item);
  if (!item) return false;
  *item = order;
  return true;
}

static bool read_repeat(flow_reader *r, size_t line_at) {
  static const char fix[] = "write, for example, 'repeat while n[0] max 100'";
  flow_file *out = r->out;
  size_t at;
  uint64_t index = 0;
  if (out->repeats)
    return fail_at(r, line_at, "keep one of the two lines",
                   "the file has a second line '%s'", "repeat");
  if (!expect(r, "while", fix)) return false;
  const char *name = take_name(r, "the name of a resource", &at);
  if (!name || !find_known(r, false, name, at, &out->flag)) return false;
  const flow_resource *flag =
      (const flow_resource *)r->resources.items + out->flag;
  if (flag->element != VYRE_ELEMENT_U32)
    return fail_at(r, at, "use a resource of u32",
                   "the flag '%s' does not have elements u32", name);
  if (accept(r, "[") &&
      (!take_number(r, "an element of the flag", 0, flag->count - 1, &index) ||
       !expect(r, "]", fix))) {
    return false;
  }
  out->max_iterations = DEFAULT_MAX_ITERATIONS;
  if (accept(r, "max") && !take_number(r, "a number of iterations above 0", 1,
                                       UINT64_MAX, &out->max_iterations)) {
    return false;
  }
  out->flag_offset = 4 * index;
  out->repeats = true;
  return at_end(r);
}

static bool read_line(flow_reader *r) {
  flow_token t = take(r);
  if (t.length == 0) return true;
  if (is(&t, "resource")) return read_resource(r);
  if (is(&t, "wave")) return read_wave(r);
  if (is(&t, "kernels")) return read_kernels(r);
  if (is(&t, "budget")) return read_budget(r);
  if (is(&t, "order")) return read_order(r);
  if (is(&t, "repeat")) return read_repeat(r, t.at);
  return expected(r, &t, "the first word of a line",
                  "begin the line with kernels, resource, wave, order, repeat "
                  "or budget");
}

bool flow_file_read(const input *in, vyre_arena *arena, flow_file *out,
                    problem *wrong) {
  flow_reader r = {.in = in, .arena = arena, .wrong = wrong, .out = out};
  *out = (flow_file){0};
  for (size_t line = 0; line < in->length;) {
    const char *end = memchr(in->text + line, '\n', in->length - line);
    r.at = line;
    r.end = end ? (size_t)(end - in->text) : in->length;
    line = r.end + 1;
    if (!read_line(&r)) return false;
  }
  if (r.waves.count == 0) {
    problem_set(wrong, KIND_INPUT, "add a line such as 'wave add(x, y)'",
                "the file has no wave");
    problem_at(wrong, in, in->length);
    return false;
  }
  out->kernels = r.kernels.items;
  out->kernel_at = r.kernel_at.items;
  out->kernel_count = r.kernels.count;
  out->resources = r.resources.items;
  out->resource_count = r.resources.count;
  out->waves = r.waves.items;
  out->wave_count = r.waves.count;
  out->orders = r.orders.items;
  out->order_count = r.orders.count;
  return true;
}
