/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Counts the work of a kernel: adds counters to its text, runs it once and
 * reads the counters of every invocation.
 *
 * The text is that of vyre_program_print: one statement per line, braces around
 * every block, no comments. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "commands/bench/bench.h"

enum {
  MAX_FUNCTIONS = 64,
  MATH_COST = 16, /* operations that a math function counts as */
  MAX_COUNTED = 1 << 26,
};

static const uint64_t COUNT_TIMEOUT_NS = 10000000000u;

typedef struct cost {
  uint64_t operations, bytes;
} cost;

/* A function of the file. Its copy NAME_vyre_bench returns the operations of a
 * call. */
typedef struct function {
  const char *name;
  size_t length;
} function;

typedef struct counter {
  const vyre_buffer_decl *decls;
  size_t decl_count;
  function functions[MAX_FUNCTIONS];
  size_t function_count;
  bool is_lower_bound; /* a call was not counted */
  sink *out;
} counter;

static bool is_name(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

static bool is_word(const char *text, size_t length, const char *word) {
  return strlen(word) == length && memcmp(text, word, length) == 0;
}

static bool is_in(const char *text, size_t length, const char *const *words) {
  for (; *words; words++) {
    if (is_word(text, length, *words)) return true;
  }
  return false;
}

static bool starts_with(const char *at, const char *end, const char *word) {
  size_t length = strlen(word);
  return (size_t)(end - at) >= length && memcmp(at, word, length) == 0;
}

static uint64_t call_cost(const char *name, size_t length) {
  static const char *const simple[] = {
      "abs",     "sign",     "min",    "max",        "floor",   "ceil",
      "trunc",   "round",    "rint",   "sqrt",       "select",  "clz",
      "ctz",     "popcount", "clamp",  "saturate",   "step",    "reverse",
      "rotate",  "extract",  "insert", "mul_high",   "add_sat", "sub_sat",
      "dot4_u8", "dot4_i8",  "mix",    "smoothstep", "fract",   "u32",
      "i32",     "u64",      "i64",    "f32",        "f64",     NULL};
  static const char *const functions[] = {
      "exp",  "exp2",  "exp10", "expm1", "log",   "log2",  "log10", "log1p",
      "sin",  "cos",   "tan",   "asin",  "acos",  "atan",  "sinh",  "cosh",
      "tanh", "rsqrt", "cbrt",  "pow",   "atan2", "hypot", NULL};
  if (is_in(name, length, simple)) return 1;
  if (is_in(name, length, functions)) return MATH_COST;
  if (is_word(name, length, "fma")) return 2;
  return length > 7 && memcmp(name, "atomic_", 7) == 0 ? 1 : 0;
}

static bool is_function(const counter *c, const char *name, size_t length) {
  for (size_t i = 0; i < c->function_count; i++) {
    const function *f = &c->functions[i];
    if (f->length == length && memcmp(f->name, name, length) == 0) return true;
  }
  return false;
}

/* Returns the bytes of one access; 0 for shared memory. */
static uint64_t access_bytes(const counter *c, const char *name,
                             size_t length) {
  for (size_t i = 0; i < c->decl_count; i++) {
    const vyre_buffer_decl *d = &c->decls[i];
    if (!is_word(name, length, d->name)) continue;
    bool is_counted =
        d->kind != VYRE_MEMORY_SHARED && d->access != VYRE_ACCESS_UNIFORM;
    if (!is_counted) return 0;
    uint32_t size = vyre_element_size(d->element);
    return size ? size : 1;
  }
  return 0;
}

/* Returns the length of a binary operator at @p at, or 0. */
static size_t operator_length(const char *at, bool has_left) {
  static const char *const two[] = {
      "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", NULL};
  for (size_t i = 0; two[i]; i++) {
    if (memcmp(at, two[i], 2) == 0) return 2;
  }
  if (!has_left) return 0; /* a sign */
  return strchr("+-*/%&|^<>", *at) ? 1 : 0;
}

/* Returns the end of a name, an id such as global_id.x, or a number. */
static const char *skip_word(const char *at, const char *end) {
  const char *start = at;
  bool is_decimal = isdigit((unsigned char)*at) && at[1] != 'x' && at[1] != 'b';
  for (; at < end; at++) {
    bool is_exponent =
        is_decimal && at > start && at[-1] == 'e' && (*at == '-' || *at == '+');
    if (!is_name(*at) && *at != '.' && !is_exponent) break;
  }
  return at;
}

/* Counts the operations and accesses of an expression or statement. Index
 * computations do not count, but accesses in them do. */
static cost count_text(const counter *c, const char *at, const char *end) {
  cost sum = {0};
  int depth = 0; /* of brackets */
  bool has_left = false;
  while (at < end) {
    if (is_name(*at)) {
      const char *start = at;
      at = skip_word(at, end);
      size_t length = (size_t)(at - start);
      if (at < end && *at == '(' && depth == 0) {
        sum.operations += call_cost(start, length);
      }
      if (at < end && *at == '[') sum.bytes += access_bytes(c, start, length);
      has_left = true;
      continue;
    }
    size_t length = at + 1 < end ? operator_length(at, has_left) : 0;
    if (length > 0 && depth == 0) sum.operations++;
    if (*at == '[') depth++;
    if (*at == ']') depth--;
    if (*at != ' ') has_left = *at == ')' || *at == ']';
    at += length > 0 ? length : 1;
  }
  return sum;
}

static void put_cost(const counter *c, cost add) {
  if (add.operations > 0) {
    sink_format(c->out, "vyre_bench_ops = vyre_bench_ops + %lluul;\n",
                (unsigned long long)add.operations);
  }
  if (add.bytes > 0) {
    sink_format(c->out, "vyre_bench_bytes = vyre_bench_bytes + %lluul;\n",
                (unsigned long long)add.bytes);
  }
}

/* Returns the end of the arguments that start at the parenthesis @p at. */
static const char *skip_arguments(const char *at, const char *end) {
  int depth = 0;
  for (; at < end; at++) {
    if (*at == '(') depth++;
    if (*at == ')' && --depth == 0) return at + 1;
  }
  return end;
}

static bool has_atomic(const char *at, const char *end) {
  for (; at < end; at++) {
    if (starts_with(at, end, "atomic_")) return true;
  }
  return false;
}

/* Counts the operations of the functions that a line calls. Functions have no
 * side effects, so that calling a copy changes nothing. */
static void put_calls(counter *c, const char *at, const char *end) {
  while (at < end) {
    if (!is_name(*at)) {
      at++;
      continue;
    }
    const char *name = at;
    at = skip_word(at, end);
    size_t length = (size_t)(at - name);
    if (at == end || *at != '(' || !is_function(c, name, length)) continue;
    const char *stop = skip_arguments(at, end);
    if (has_atomic(at, stop)) {
      c->is_lower_bound = true;
      continue;
    }
    sink_text(c->out, "vyre_bench_ops = vyre_bench_ops + ");
    sink_bytes(c->out, name, length);
    sink_text(c->out, "_vyre_bench");
    sink_bytes(c->out, at, (size_t)(stop - at));
    sink_text(c->out, ";\n");
  }
}

static void put_result(const counter *c) {
  sink_text(c->out,
            "vyre_bench_counts[vyre_bench_at * 2u] = vyre_bench_ops;\n"
            "vyre_bench_counts[vyre_bench_at * 2u + 1u] = vyre_bench_bytes;\n");
}

static void put_text(const counter *c, const char *at, const char *end) {
  sink_bytes(c->out, at, (size_t)(end - at));
  sink_text(c->out, "\n");
}

/* Writes the counters of a line. The body of a function accesses no buffers. */
static void put_counters(counter *c, const char *at, const char *end) {
  put_cost(c, count_text(c, at, end));
  put_calls(c, at, end);
}

/* Copies one line of a body with its counters. */
static void put_line(counter *c, const char *at, const char *end,
                     bool in_function) {
  bool is_loop =
      starts_with(at, end, "for (") || starts_with(at, end, "while (");
  bool is_return = starts_with(at, end, "return");
  /* A loop counts its head in every iteration; an else has no place before
   * it. */
  bool is_after = is_loop || starts_with(at, end, "} else");
  if (!is_after) put_counters(c, at, end);
  if (is_return && in_function) {
    sink_text(c->out, "return vyre_bench_ops;\n");
    return;
  }
  if (is_return) put_result(c);
  put_text(c, at, end);
  if (is_after) put_counters(c, at, end);
}

static void put_body_start(const counter *c) {
  sink_text(
      c->out,
      "{\nvar vyre_bench_ops = 0ul;\nvar vyre_bench_bytes = 0ul;\n"
      "let vyre_bench_at = ((workgroup_id.z * grid_size.y + workgroup_id.y) * "
      "grid_size.x + workgroup_id.x) * (workgroup_size.x * workgroup_size.y * "
      "workgroup_size.z) + (local_id.z * workgroup_size.y + local_id.y) * "
      "workgroup_size.x + local_id.x;\n");
}

/* Returns the end of the line at @p text. */
static const char *line_end(const char *text, const char *stop) {
  const char *end = memchr(text, '\n', (size_t)(stop - text));
  return end ? end : stop;
}

static void find_functions(counter *c, const char *text, const char *stop) {
  for (; text < stop; text = line_end(text, stop) + 1) {
    if (!starts_with(text, stop, "fn ")) continue;
    if (c->function_count == MAX_FUNCTIONS) {
      c->is_lower_bound = true;
      return;
    }
    const char *name = text + strlen("fn ");
    c->functions[c->function_count++] = (function){
        .name = name, .length = (size_t)(skip_word(name, stop) - name)};
  }
}

/* Writes the head of the copy of a function: "fn NAME_vyre_bench(...) -> u64
 * {". */
static void put_function_head(const counter *c, const char *at,
                              const char *end) {
  const char *name = at + strlen("fn "), *stop = skip_word(name, end);
  sink_text(c->out, "fn ");
  sink_bytes(c->out, name, (size_t)(stop - name));
  sink_text(c->out, "_vyre_bench");
  sink_bytes(c->out, stop, (size_t)(skip_arguments(stop, end) - stop));
  sink_text(c->out, " -> u64 {\nvar vyre_bench_ops = 0ul;\n");
}

/* Writes the copy of the function at @p text. Returns its end. */
static const char *put_function(counter *c, const char *text,
                                const char *stop) {
  put_function_head(c, text, line_end(text, stop));
  for (;;) {
    text = line_end(text, stop) + 1;
    if (text >= stop || *text == '}') break;
    const char *at = text, *end = line_end(text, stop);
    while (*at == ' ') at++;
    put_line(c, at, end, true);
  }
  sink_text(c->out, "}\n");
  return text;
}

/* Writes the body of a kernel after its opening brace. */
static void put_body(counter *c, const char *text, const char *stop) {
  put_body_start(c);
  for (; text < stop && *text != '}'; text = line_end(text, stop) + 1) {
    const char *at = text;
    while (*at == ' ') at++;
    put_line(c, at, line_end(text, stop), false);
  }
  put_result(c);
  sink_text(c->out, "}\n");
}

/* Writes the text of a program with counters. */
static void instrument(counter *c, const char *text, size_t length,
                       uint32_t binding) {
  const char *stop = text + length;
  find_functions(c, text, stop);
  for (const char *at = text; at < stop; at = line_end(at, stop) + 1) {
    if (starts_with(at, stop, "fn ")) at = put_function(c, at, stop);
  }
  for (; text < stop; text = line_end(text, stop) + 1) {
    const char *end = line_end(text, stop);
    if (*text == '{') {
      sink_format(c->out, "buffer vyre_bench_counts : write u64[] @%u;\n",
                  (unsigned)binding);
      put_body(c, end + 1, stop);
      return;
    }
    put_text(c, text, end);
  }
}

static uint32_t free_binding(const counter *c) {
  uint32_t binding = 0;
  for (size_t i = 0; i < c->decl_count; i++) {
    const vyre_buffer_decl *d = &c->decls[i];
    if (d->kind != VYRE_MEMORY_SHARED && d->binding >= binding) {
      binding = d->binding + 1;
    }
  }
  return binding;
}

/* Sums the counters. Vectors execute as many operations as their longest
 * invocation. */
static void sum_counts(bench_state *s, const uint64_t *values,
                       uint64_t invocations) {
  uint64_t width = s->resources.has_width ? s->resources.width : 1;
  double executed = 0;
  for (uint64_t first = 0; first < invocations; first += width) {
    uint64_t max = 0, count = invocations - first;
    if (count > width) count = width;
    for (uint64_t i = first; i < first + count; i++) {
      s->counts.operations += (double)values[2 * i];
      s->counts.bytes += (double)values[2 * i + 1];
      if (values[2 * i] > max) max = values[2 * i];
    }
    executed += (double)(max * count);
  }
  s->counts.divergence =
      s->counts.operations > 0 ? executed / s->counts.operations : 1;
}

static vyre_code dispatch(bench_state *s, vyre_pipeline *pipeline,
                          uint64_t *values, size_t size, vyre_status *st) {
  run_state *r = &s->run;
  vyre_output *outputs =
      vyre_arena_alloc(&r->arena, (r->output_count + 1) * sizeof *outputs, 0);
  if (!outputs) return VYRE_OUT_OF_MEMORY;
  if (r->output_count > 0) {
    memcpy(outputs, r->outputs, r->output_count * sizeof *outputs);
  }
  outputs[r->output_count] = vyre_output_bytes(values, size);
  vyre_dispatch_desc desc = {.inputs = r->inputs,
                             .input_count = r->input_count,
                             .outputs = outputs,
                             .output_count = r->output_count + 1,
                             .is_borrowed = true,
                             .timeout_ns = COUNT_TIMEOUT_NS};
  memcpy(desc.grid, r->grid, sizeof desc.grid);
  return vyre_dispatch(pipeline, &desc, st);
}

/* Compiles the text with counters and runs it. */
static vyre_code count_with(bench_state *s, const sink *text, uint64_t *values,
                            size_t size, vyre_status *st) {
  vyre_module *module = NULL;
  vyre_pipeline *pipeline = NULL;
  /* It runs once, counting: baseline code is ready sooner. */
  vyre_compile_options options = {.tier = VYRE_TIER_BASELINE};
  memcpy(options.workgroup, s->run.flags.workgroup, sizeof options.workgroup);
  vyre_code code = vyre_module_parse(text->data, text->length, "counted kernel",
                                     vyre_allocator_heap(), &module, NULL, st);
  if (code == VYRE_OK) {
    code = vyre_pipeline_compile(s->run.device, vyre_module_kernel(module, 0),
                                 &options, &pipeline, NULL, st);
  }
  if (code == VYRE_OK) code = dispatch(s, pipeline, values, size, st);
  vyre_pipeline_release(pipeline);
  vyre_module_release(module);
  return code;
}

static void give_up(bench_state *s, const char *why) {
  size_t length = strlen(why);
  if (length >= sizeof s->counts.why_not) length = sizeof s->counts.why_not - 1;
  memcpy(s->counts.why_not, why, length);
  s->counts.why_not[length] = '\0';
}

void bench_count(bench_state *s) {
  uint64_t extent[3];
  run_extent(&s->run, extent);
  double invocations =
      (double)extent[0] * (double)extent[1] * (double)extent[2];
  if (invocations > MAX_COUNTED) {
    give_up(s, "the grid has more than 67108864 invocations");
    return;
  }
  sink plain = {0}, text = {0};
  counter c = {.out = &text};
  vyre_status st = {0};
  c.decls = vyre_program_buffers(s->run.program, &c.decl_count);
  size_t size = (size_t)invocations * 2 * sizeof(uint64_t);
  uint64_t *values = malloc(size ? size : 1);
  if (values && vyre_program_print(s->run.program, sink_writer(&plain)) &&
      !plain.failed) {
    instrument(&c, plain.data, plain.length, free_binding(&c));
    if (count_with(s, &text, values, size, &st) == VYRE_OK) {
      s->counts.is_known = true;
      s->counts.is_lower_bound = c.is_lower_bound;
      sum_counts(s, values, (uint64_t)invocations);
    } else {
      give_up(s, st.message);
    }
  } else {
    give_up(s, "out of memory");
  }
  free(values);
  sink_deinit(&plain);
  sink_deinit(&text);
}
