/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Binds data to the buffers of the kernel for `vyre run`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output.h"
#include "cli/text.h"
#include "commands/run/run.h"

enum { MAX_NAMES = 64, SHOWN_NAME = 80 };

static bool takes_input(const run_buffer *b) {
  return b->binding->input_index != VYRE_NO_INDEX;
}

static bool gives_output(const run_buffer *b) {
  return b->binding->output_index != VYRE_NO_INDEX;
}

static bool is_shown(const run_buffer *b) {
  return gives_output(b) || b->binding->role == VYRE_ROLE_PERSISTENT;
}

static bool list_buffers(run_state *s, problem *wrong) {
  const vyre_binding_plan *plan =
      s->pipeline ? vyre_pipeline_bindings(s->pipeline) : &s->plan;
  size_t count;
  const vyre_buffer_decl *decls = vyre_program_buffers(s->program, &count);
  size_t space = plan->binding_count + 1;
  s->buffers = vyre_arena_alloc(&s->arena, space * sizeof *s->buffers, 0);
  s->inputs = vyre_arena_alloc(&s->arena, space * sizeof *s->inputs, 0);
  s->outputs = vyre_arena_alloc(&s->arena, space * sizeof *s->outputs, 0);
  if (!s->buffers || !s->inputs || !s->outputs) {
    return problem_no_memory(wrong, "the list of buffers");
  }
  s->input_count = plan->input_count;
  s->output_count = plan->output_count;
  for (size_t i = 0; i < plan->binding_count; i++) {
    const vyre_binding *binding = &plan->bindings[i];
    if (binding->role == VYRE_ROLE_SHARED) continue;
    s->buffers[s->buffer_count++] =
        (run_buffer){.decl = &decls[binding->buffer_index], .binding = binding};
  }
  return true;
}

static bool no_such_buffer(run_state *s, const char *flag_name,
                           const char *word, size_t length, problem *wrong) {
  const char *names[MAX_NAMES];
  char list[300] = "", shown[SHOWN_NAME];
  size_t used = 0, count = 0;
  for (; count < s->buffer_count && count < MAX_NAMES; count++) {
    names[count] = s->buffers[count].decl->name;
    if (used < sizeof list) {
      used += (size_t)snprintf(list + used, sizeof list - used, "%s%.40s",
                               count ? ", " : "", names[count]);
    }
  }
  show_into(shown, sizeof shown, word, length);
  const char *meant = nearest_word(word, length, names, count);
  problem_set(wrong, KIND_USAGE, "", "%s: kernel '%s' has no buffer '%s'",
              flag_name, vyre_program_name(s->program), shown);
  if (meant) {
    problem_fix(wrong, "did you mean %s? It has %s", meant, list);
  } else {
    problem_fix(wrong, "name one of %s", count ? list : "its buffers: none");
  }
  return false;
}

/* Splits NAME=REST and finds the buffer. */
static run_buffer *find_buffer(run_state *s, const char *flag_name,
                               const char *word, const char **rest,
                               problem *wrong) {
  const char *equals = strchr(word, '=');
  if (!equals || equals == word || !equals[1]) {
    char shown[SHOWN_NAME];
    show_into(shown, sizeof shown, word, strlen(word));
    bool set = strcmp(flag_name, "--set") == 0;
    problem_set(wrong, KIND_USAGE, "", "%s '%s' is not NAME=%s", flag_name,
                shown, set ? "SPEC" : "FILE");
    problem_fix(wrong, "write it as in %s",
                set ? "--set x=iota:1024" : "--out y=y.npy");
    return NULL;
  }
  size_t length = (size_t)(equals - word);
  *rest = equals + 1;
  for (size_t i = 0; i < s->buffer_count; i++) {
    const char *name = s->buffers[i].decl->name;
    if (strlen(name) == length && memcmp(name, word, length) == 0) {
      return &s->buffers[i];
    }
  }
  no_such_buffer(s, flag_name, word, length, wrong);
  return NULL;
}

static bool twice(const char *flag_name, const char *name, problem *wrong) {
  problem_set(wrong, KIND_USAGE, "", "%s %s is given twice", flag_name, name);
  problem_fix(wrong, "keep one %s %s=...", flag_name, name);
  return false;
}

static const char raw_prefix[] = "raw:";

static bool is_raw(const char *text) {
  return strncmp(text, raw_prefix, strlen(raw_prefix)) == 0;
}

static bool match_sets(run_state *s, problem *wrong) {
  size_t standard = strcmp(s->flags.file, "-") == 0;
  for (size_t i = 0; i < s->flags.sets.list.count; i++) {
    const char *spec;
    run_buffer *b =
        find_buffer(s, "--set", word_at(&s->flags.sets, i), &spec, wrong);
    if (!b) return false;
    if (b->spec) return twice("--set", b->decl->name, wrong);
    b->spec = spec;
    standard +=
        strcmp(is_raw(spec) ? spec + strlen(raw_prefix) : spec, "-") == 0;
    if (standard > 1) {
      return problem_set(wrong, KIND_USAGE, "read one of them from a file",
                         "standard input is used twice");
    }
  }
  return true;
}

static bool same_file(const run_state *s, const run_buffer *b) {
  for (size_t i = 0; i < s->buffer_count; i++) {
    const run_buffer *other = &s->buffers[i];
    if (other != b && other->path &&
        (strcmp(other->path, b->path) == 0 ||
         is_same_file(other->path, b->path))) {
      return true;
    }
  }
  return false;
}

/* Refuses an output that would replace the kernel or the trace of this run. */
static bool is_file_free(const run_state *s, const run_buffer *b,
                         problem *wrong) {
  vyre_trace_info info;
  const char *trace = vyre_context_get_trace_info(s->context, &info)
                          ? info.file
                          : getenv("VYRE_TRACE");
  if (!is_other_file("--out", b->path, s->flags.file, wrong)) return false;
  if (!trace || !trace[0] || !is_same_file(b->path, trace)) return true;
  return problem_set(wrong, KIND_USAGE, "give each its own file",
                     "--out %s and the trace both go to '%.200s'",
                     b->decl->name, b->path);
}

/* Parses FILE, FILE:SHAPE or raw:FILE into `b`. Returns the path of the file,
   or NULL with a problem. */
static const char *parse_path(run_state *s, run_buffer *b, const char *text,
                              problem *wrong) {
  size_t length;
  b->is_raw = is_raw(text);
  if (b->is_raw) {
    text += strlen(raw_prefix);
    length = strlen(text);
    if (length == 0) {
      problem_set(wrong, KIND_USAGE, "", "--out %s=raw: has no file name",
                  b->decl->name);
      problem_fix(wrong, "write --out %s=raw:FILE", b->decl->name);
      return NULL;
    }
  } else {
    if (!image_split_shape(text, &length, &b->shape, wrong)) return NULL;
    const char *unknown = image_unknown_format(text, length);
    if (unknown) {
      problem_set(wrong, KIND_USAGE, "", "--out %s: cannot write %s files",
                  b->decl->name, unknown);
      problem_fix(wrong,
                  "name a .png, .ppm, .pgm or .npy file, or write --out "
                  "%s=raw:%.*s for raw bytes",
                  b->decl->name, (int)(length < 200 ? length : 200), text);
      return NULL;
    }
    b->format = image_format_of(text, length);
  }
  char *path = vyre_arena_alloc(&s->arena, length + 1, 1);
  if (!path) {
    problem_no_memory(wrong, "a file name");
    return NULL;
  }
  memcpy(path, text, length);
  path[length] = '\0';
  b->path = path;
  return path;
}

static bool match_outs(run_state *s, problem *wrong) {
  for (size_t i = 0; i < s->flags.outs.list.count; i++) {
    const char *path;
    run_buffer *b =
        find_buffer(s, "--out", word_at(&s->flags.outs, i), &path, wrong);
    if (!b) return false;
    if (b->path) return twice("--out", b->decl->name, wrong);
    path = parse_path(s, b, path, wrong);
    if (!path) return false;
    if (!is_shown(b)) {
      return problem_set(wrong, KIND_USAGE, "leave it out",
                         "--out %s: the kernel does not write this buffer",
                         b->decl->name);
    }
    if (same_file(s, b)) {
      return problem_set(wrong, KIND_USAGE, "give each buffer its own file",
                         "--out %s: two buffers go to '%.200s'", b->decl->name,
                         path);
    }
    if (s->flags.json && strcmp(path, "-") == 0) {
      return problem_set(wrong, KIND_USAGE, "name a file, or remove --json",
                         "--out %s=- and --json both want standard output",
                         b->decl->name);
    }
    if (!is_file_free(s, b, wrong)) return false;
    /* Checked before the run, which may take long. */
    if (strcmp(path, "-") != 0 && !can_publish(path, &s->arena, wrong)) {
      return false;
    }
  }
  return true;
}

static bool read_inputs(run_state *s, problem *wrong) {
  for (size_t i = 0; i < s->buffer_count; i++) {
    run_buffer *b = &s->buffers[i];
    if (!takes_input(b)) continue;
    const char *name = b->decl->name;
    bool uniform = b->decl->access == VYRE_ACCESS_UNIFORM;
    if (!b->spec) {
      problem_set(wrong, KIND_USAGE, "", "%s '%s' has no data",
                  uniform ? "uniform" : "buffer", name);
      if (uniform) {
        problem_fix(wrong, "add --set %s=VALUE", name);
      } else {
        problem_fix(wrong, "add --set %s=FILE, or --set %s=zeros:%u", name,
                    name, b->decl->count ? b->decl->count : 1024);
      }
      return false;
    }
    if (!data_read(b->spec, b->decl, &s->arena, &b->in, wrong)) return false;
    b->count = b->in.count;
    s->inputs[b->binding->input_index] =
        (vyre_input){b->in.bytes, b->in.length};
  }
  return true;
}

/* Returns the buffer in over(...) if its size is known, otherwise NULL. */
static const run_buffer *over_buffer(const run_state *s) {
  uint32_t over = vyre_program_grid_buffer(s->program);
  for (size_t i = 0; i < s->buffer_count; i++) {
    const run_buffer *b = &s->buffers[i];
    if (b->binding->buffer_index == over && b->count > 0) return b;
  }
  return NULL;
}

/* Finds the size of an output without a size of its own: that of the buffer in
 * over(...), otherwise that of the largest input. Returns false if both are
 * missing. */
static bool default_count(const run_state *s, uint64_t *count) {
  const run_buffer *over = over_buffer(s);
  bool found = false;
  *count = over ? over->count : 0;
  if (over) return true;
  for (size_t i = 0; i < s->buffer_count; i++) {
    const run_buffer *b = &s->buffers[i];
    if (b->decl->access == VYRE_ACCESS_UNIFORM || !takes_input(b)) continue;
    if (b->count > *count) *count = b->count;
    found = true;
  }
  return found;
}

/* Returns the value of a uniform of type u32, or 0. */
static uint32_t uniform_value(const run_state *s, uint32_t buffer) {
  uint32_t value = 0;
  for (size_t i = 0; i < s->buffer_count; i++) {
    const run_buffer *b = &s->buffers[i];
    if (b->binding->buffer_index != buffer || b->in.length < sizeof value) {
      continue;
    }
    memcpy(&value, b->in.bytes, sizeof value);
  }
  return value;
}

/* Returns the product of the dimensions of a buffer; 0 if it has none, or the
 * first is absent. */
static uint64_t dimensions_product(const run_state *s,
                                   const vyre_buffer_decl *decl) {
  uint64_t product = decl->dimension_count > 0;
  for (unsigned i = 0; i < decl->dimension_count; i++) {
    const uint32_t size = decl->dimensions[i];
    product *=
        decl->dimension_uniforms >> i & 1 ? uniform_value(s, size) : size;
    if (product > UINT32_MAX) return UINT32_MAX;
  }
  return product;
}

static bool size_output(run_state *s, run_buffer *b, problem *wrong) {
  const char *name = b->decl->name;
  if (takes_input(b)) return true;
  if (b->spec) {
    if (strncmp(b->spec, "zeros:", 6) != 0) {
      problem_set(wrong, KIND_USAGE, "",
                  "--set %s: this buffer is an output; it starts as zeros and "
                  "takes no data",
                  name);
      problem_fix(wrong,
                  b->decl->count ? "leave --set %s out"
                                 : "write --set %s=zeros:N to set its size",
                  name);
      return false;
    }
    if (!data_read(b->spec, b->decl, &s->arena, &b->in, wrong)) return false;
    b->count = b->in.count;
    return true;
  }
  b->count = b->decl->count;
  if (!b->count) b->count = dimensions_product(s, b->decl);
  if (b->count) return true;
  b->is_sized_by_others = true;
  if (default_count(s, &b->count)) return true;
  problem_set(wrong, KIND_USAGE, "", "the size of '%s' is unknown", name);
  problem_fix(wrong, "add --set %s=zeros:N", name);
  return false;
}

/* Outputs that take their size from other buffers come last. */
static bool size_outputs(run_state *s, problem *wrong) {
  for (int pass = 0; pass < 2; pass++) {
    for (size_t i = 0; i < s->buffer_count; i++) {
      run_buffer *b = &s->buffers[i];
      bool has_size = b->spec || b->decl->count > 0;
      if (!gives_output(b) || b->out || has_size != (pass == 0)) continue;
      if (!size_output(s, b, wrong)) return false;
    }
  }
  return true;
}

static bool make_outputs(run_state *s, problem *wrong) {
  if (!size_outputs(s, wrong)) return false;
  for (size_t i = 0; i < s->buffer_count; i++) {
    run_buffer *b = &s->buffers[i];
    if (!gives_output(b) || b->out) {
      if (gives_output(b))
        s->outputs[b->binding->output_index] =
            (vyre_output){b->out, b->out_length};
      continue;
    }
    buffer_data memory;
    if (!data_zeros(b->decl, b->count, &s->arena, &memory, wrong)) return false;
    b->out = (unsigned char *)memory.bytes;
    b->out_length = memory.length;
    s->outputs[b->binding->output_index] = (vyre_output){b->out, b->out_length};
  }
  return true;
}

bool run_bind(run_state *s, problem *wrong) {
  return list_buffers(s, wrong) && match_sets(s, wrong) &&
         match_outs(s, wrong) && read_inputs(s, wrong) &&
         run_read_persistent(s, wrong) && make_outputs(s, wrong);
}
