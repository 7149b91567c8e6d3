/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre plan bindings` */
#include <string.h>

#include "vyre/binary.h"
#include "vyre/binding.h"
#include "vyre/capture.h"
#include "vyre/emit.h"

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/kernel_file.h"
#include "plan/plan_json.h"
#include "plan/read_plan.h"

typedef struct bindings_answer {
  vyre_binding_plan plan;
  vyre_binding_fingerprint fingerprint;
  vyre_layout_fingerprint layout;
  vyre_capture_plan capture;
  vyre_emit_report lowered; /* 0 phases: no body, or only ref can run it */
} bindings_answer;

static bool drop_text(void *self, const char *text, size_t length) {
  (void)self, (void)text, (void)length;
  return true;
}

/* Size of the spill buffer of a kernel with grid barriers. A kernel that
 * cannot be lowered (it prints) has none; only `ref` runs it. */
static void find_spill_size(const vyre_program *program, bindings_answer *a) {
  vyre_status ignored = {0};
  if (!vyre_program_has_body(program)) return;
  if (vyre_program_emit(program, &(vyre_emit_options){0},
                        (vyre_writer){drop_text, NULL}, &a->lowered,
                        &ignored) != VYRE_OK) {
    a->lowered = (vyre_emit_report){0};
  }
}

static vyre_code build(const vyre_program *program, const bindings_input *in,
                       vyre_arena *arena, bindings_answer *a, vyre_status *st) {
  vyre_code code =
      in->has_lengths
          ? vyre_binding_plan_build_for(program, in->lengths, in->length_count,
                                        arena, &a->plan, st)
          : vyre_binding_plan_build(program, arena, &a->plan, st);
  if (code == VYRE_OK) {
    code = vyre_binding_fingerprint_build(&a->plan, arena, &a->fingerprint, st);
  }
  if (code == VYRE_OK) {
    code = vyre_layout_fingerprint_from_plan(&a->plan, arena, &a->layout, st);
  }
  if (code == VYRE_OK) {
    code = vyre_capture_plan_build(&a->plan, &a->capture, st);
  }
  return code;
}

static void put_number_or_null(json_out *json, const char *key, bool there,
                               uint64_t value) {
  if (there) {
    json_u64(json, key, value);
  } else {
    json_null(json, key);
  }
}

static void put_binding(json_out *json, const vyre_binding *b) {
  json_open(json, NULL, '{');
  json_text(json, "name", b->name);
  put_number_or_null(json, "binding", b->role != VYRE_ROLE_SHARED, b->binding);
  json_u64(json, "buffer_index", b->buffer_index);
  json_text(json, "role", vyre_role_name(b->role));
  json_u64(json, "element_size", b->element_size);
  json_u64(json, "preferred_alignment", b->preferred_alignment);
  json_u64(json, "element_count", b->element_count);
  put_number_or_null(json, "static_byte_len", b->has_static_byte_len,
                     b->static_byte_len);
  put_number_or_null(json, "input_index", b->input_index != VYRE_NO_INDEX,
                     b->input_index);
  put_number_or_null(json, "output_index", b->output_index != VYRE_NO_INDEX,
                     b->output_index);
  json_bool(json, "read_only", b->read_only);
  put_number_or_null(json, "coalesce_axis", b->has_coalesce_axis,
                     b->coalesce_axis);
  json_text(json, "cache_locality", vyre_locality_name(b->cache_locality));
  json_close(json, '}');
}

static void put_indices(json_out *json, const char *key,
                        const uint32_t *indices, size_t count) {
  json_open(json, key, '[');
  for (size_t i = 0; i < count; i++) json_u64(json, NULL, indices[i]);
  json_close(json, ']');
}

static void put_hash(json_out *json, vyre_hash128 hash) {
  char text[VYRE_HASH128_TEXT];
  vyre_hash128_text(hash, text);
  json_text(json, "hash", text);
}

static void put_fingerprint(json_out *json, const vyre_binding_fingerprint *f) {
  json_open(json, "fingerprint", '{');
  put_hash(json, f->hash);
  json_open(json, "slots", '[');
  for (size_t i = 0; i < f->entry_count; i++) {
    json_open(json, NULL, '{');
    json_u64(json, "binding", f->entries[i].binding);
    json_text(json, "role", vyre_role_name(f->entries[i].role));
    json_u64(json, "element_size", f->entries[i].element_size);
    json_close(json, '}');
  }
  json_close(json, ']');
  json_close(json, '}');
}

static void put_layout(json_out *json, const vyre_layout_fingerprint *f) {
  json_open(json, "layout_fingerprint", '{');
  put_hash(json, f->hash);
  json_open(json, "slots", '[');
  for (size_t i = 0; i < f->entry_count; i++) {
    const vyre_layout_entry *slot = &f->entries[i];
    json_open(json, NULL, '{');
    json_u64(json, "group", slot->group);
    json_u64(json, "binding", slot->binding);
    json_text(json, "class", vyre_layout_class_name(slot->memory_class));
    json_bool(json, "read_only", slot->read_only);
    json_u64(json, "element_size", slot->element_size);
    json_close(json, '}');
  }
  json_close(json, ']');
  json_close(json, '}');
}

static void put_capture(json_out *json, const vyre_capture_plan *c) {
  json_open(json, "capture", '{');
  json_u64(json, "input_device_capacity", c->input_device_capacity);
  json_u64(json, "output_device_capacity", c->output_device_capacity);
  json_u64(json, "output_readback_capacity", c->output_readback_capacity);
  json_u64(json, "kernel_pointer_capacity", c->kernel_pointer_capacity);
  json_u64(json, "kernel_argument_capacity", c->kernel_argument_capacity);
  json_bool(json, "resident_input_replay_safe", c->resident_input_replay_safe);
  json_close(json, '}');
}

static void put_json(const bindings_answer *a, sink *out) {
  const vyre_binding_plan *plan = &a->plan;
  json_out json = json_begin(out);
  json_open(&json, "bindings", '[');
  for (size_t i = 0; i < plan->binding_count; i++) {
    put_binding(&json, &plan->bindings[i]);
  }
  json_close(&json, ']');
  if (a->lowered.phases > 1) {
    json_open(&json, "spill", '{');
    json_text(&json, "name", "grid_barrier");
    json_u64(&json, "bytes_per_invocation", a->lowered.spill_bytes);
    json_u64(&json, "phases", a->lowered.phases);
    json_close(&json, '}');
  }
  put_indices(&json, "input_indices", plan->input_indices, plan->input_count);
  put_indices(&json, "output_indices", plan->output_indices,
              plan->output_count);
  put_indices(&json, "shared_indices", plan->shared_indices,
              plan->shared_count);
  put_fingerprint(&json, &a->fingerprint);
  put_layout(&json, &a->layout);
  put_capture(&json, &a->capture);
  json_end(&json);
}

static void put_text(const bindings_answer *a, sink *out) {
  char hash[VYRE_HASH128_TEXT];
  vyre_binding_plan_print(&a->plan, sink_writer(out));
  if (a->lowered.phases > 1) {
    sink_format(out,
                "\nspill: grid_barrier keeps %u bytes per invocation across %u "
                "phases\n",
                a->lowered.spill_bytes, a->lowered.phases);
  }
  sink_text(out, "\n");
  vyre_capture_plan_print(&a->capture, sink_writer(out));
  sink_text(out, "\nfingerprints\n");
  vyre_hash128_text(a->fingerprint.hash, hash);
  sink_format(out, "  %-20s %s\n", "binding set", hash);
  vyre_hash128_text(a->layout.hash, hash);
  sink_format(out, "  %-20s %s\n", "device layout", hash);
}

static bool read_flags(int count, char **words, const char **file,
                       const char **kernel, problem *wrong) {
  flag flags[] = {FLAG("--kernel", kernel)};
  arguments spec = {.command = "plan bindings",
                    .flags = flags,
                    .flag_count = 1,
                    .operand = file};
  return args_read(&spec, count, words, wrong);
}

static bool ends_with(const char *text, const char *end) {
  size_t length = strlen(text), tail = strlen(end);
  return length >= tail && strcmp(text + length - tail, end) == 0;
}

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Returns true for a kernel file: by its name, by its first character, which
 * is neither a brace nor a space, or because it is in binary form. */
static bool is_kernel(const input *in) {
  if (ends_with(in->label, ".vyre")) return true;
  if (ends_with(in->label, ".json")) return false;
  if (vyre_program_is_binary(in->text, in->length)) return true;
  size_t at = 0;
  while (at < in->length && is_blank(in->text[at])) at++;
  return at < in->length &&
         (in->text[at] == '/' || (in->text[at] >= 'a' && in->text[at] <= 'z'));
}

static int plan_program(const vyre_program *program,
                        const bindings_input *bindings, vyre_arena *arena,
                        vyre_status *st, bool json) {
  bindings_answer a = {.plan = {0}};
  sink out = {0};
  if (program && build(program, bindings, arena, &a, st) == VYRE_OK) {
    find_spill_size(program, &a);
    if (json) {
      put_json(&a, &out);
    } else {
      put_text(&a, &out);
    }
  }
  return finish_plan(st, &out, NULL, NULL, json);
}

/* Replaces @p wrong if the file is the input of another planner. */
static void explain_plan(const input *in, vyre_arena *arena, problem *wrong) {
  problem ignored = {0};
  vyre_frontier_desc waves;
  place_input intervals;
  const char *name =
      read_frontier_json(in, arena, &waves, &ignored) ? "frontier" : NULL;
  ignored = (problem){0};
  if (!name && read_place_json(in, arena, &intervals, &ignored)) name = "place";
  if (!name) return;
  *wrong = (problem){.file = in->label};
  problem_set(wrong, KIND_INPUT, "",
              "this is input of `vyre plan %s`; `vyre plan bindings` takes a "
              "kernel, or bindings in JSON",
              name);
  problem_fix(wrong, "run `vyre plan %s` for this file", name);
}

static int plan_json_file(const input *in, vyre_arena *arena, bool json) {
  problem wrong = {0};
  vyre_status st = {0};
  bindings_input bindings;
  vyre_program *program = NULL;
  if (!read_bindings_json(in, arena, &bindings, &wrong)) {
    explain_plan(in, arena, &wrong);
    return problem_report(&wrong, json);
  }
  if (vyre_program_create(&bindings.program, vyre_allocator_heap(), &program,
                          &st) != VYRE_OK) {
    program = NULL;
  }
  int code = plan_program(program, &bindings, arena, &st, json);
  vyre_program_release(program);
  return code;
}

/* Takes ownership of the input. */
static int plan_kernel(input *in, const char *name, vyre_arena *arena,
                       bool json) {
  problem wrong = {0};
  vyre_status st = {0};
  bindings_input none = {.has_lengths = false};
  kernel_file file = {.program = NULL};
  vyre_program *program = NULL;
  if (kernel_file_parse(in, &file, &wrong)) {
    program = kernel_file_choose(&file, name, &wrong);
  }
  int code = program ? plan_program(program, &none, arena, &st, json)
                     : kernel_file_report(&file, &wrong, json);
  kernel_file_deinit(&file);
  return code;
}

static int no_kernels(const input *in, bool json) {
  problem wrong = {.file = in->label};
  problem_set(&wrong, KIND_USAGE, "leave -k out",
              "-k needs a kernel file, but this is JSON");
  return problem_report(&wrong, json);
}

int plan_bindings(int count, char **words, bool json) {
  const char *file = NULL, *kernel = NULL;
  problem wrong = {0};
  vyre_arena arena = {0};
  input in = {0};
  int code;
  if (!read_flags(count, words, &file, &kernel, &wrong) ||
      !read_json_or(file, KERNEL_LIMIT, &in, &wrong)) {
    code = problem_report(&wrong, json);
  } else if (is_kernel(&in)) {
    code = plan_kernel(&in, kernel, &arena, json);
  } else if (kernel) {
    code = no_kernels(&in, json);
  } else {
    code = plan_json_file(&in, &arena, json);
  }
  input_deinit(&in);
  vyre_arena_deinit(&arena);
  return code;
}
