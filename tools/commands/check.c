/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre check` */
#include <string.h>
#include <unistd.h>

#include "vyre/emit.h"
#include "vyre/validate.h"

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/kernel_file.h"
#include "cli/output.h"

/* Results go to stdout, diagnostics to stderr. */
typedef struct check_state {
  sink out, errors;
  json_out json;
  bool as_json, fine, accesses;
  int code;
} check_state;

/* Validates the kernels of a parsed file. A failure without a diagnostic
 * becomes a problem. */
static bool validate(kernel_file *file, problem *wrong) {
  bool fine = true;
  for (size_t i = 0; i < kernel_file_count(file); i++) {
    vyre_status st = {0};
    size_t before = file->findings.count + file->findings.dropped;
    vyre_code code =
        vyre_program_validate(kernel_file_at(file, i), &file->findings, &st);
    if (code == VYRE_OK) continue;
    fine = false;
    if (file->findings.count + file->findings.dropped == before) {
      wrong->file = file->in.label;
      return problem_from_status(wrong, &st);
    }
  }
  return fine;
}

/* The accesses of one kernel. */
typedef struct access_list {
  const vyre_program *program;
  const vyre_buffer_decl *buffers;
  const vyre_access_info *items;
  size_t count, proven;
} access_list;

static bool find_accesses(const kernel_file *file, vyre_arena *arena,
                          access_list **out, problem *wrong) {
  size_t count = kernel_file_count(file), buffers;
  *out = vyre_arena_alloc(arena, count * sizeof **out + 1, 0);
  if (!*out) return problem_no_memory(wrong, "the accesses");
  for (size_t i = 0; i < count; i++) {
    access_list *list = &(*out)[i];
    vyre_status st = {0};
    *list = (access_list){.program = kernel_file_at(file, i)};
    list->buffers = vyre_program_buffers(list->program, &buffers);
    if (vyre_program_accesses(list->program, arena, &list->items, &list->count,
                              &st) != VYRE_OK) {
      wrong->file = file->in.label;
      return problem_from_status(wrong, &st);
    }
    for (size_t k = 0; k < list->count; k++) {
      list->proven += list->items[k].is_proven;
    }
  }
  return true;
}

static const char *kind_of(const vyre_access_info *access) {
  if (access->is_atomic) return "atomic";
  return access->is_store ? "store" : "load";
}

/* Prints a table of the kernels, then each access that is not proven. */
static void put_accesses_text(sink *out, const kernel_file *file,
                              const access_list *lists) {
  size_t count = kernel_file_count(file), width = strlen("kernel");
  for (size_t i = 0; i < count; i++) {
    size_t length = strlen(vyre_program_name(lists[i].program));
    if (length > width) width = length;
  }
  if (width > 60) width = 60;
  sink_format(out, "  %-*s  accesses  proven\n", (int)width, "kernel");
  for (size_t i = 0; i < count; i++) {
    sink_format(out, "  %-*.200s  %8zu  %6zu\n", (int)width,
                vyre_program_name(lists[i].program), lists[i].count,
                lists[i].proven);
  }
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < lists[i].count; k++) {
      const vyre_access_info *a = &lists[i].items[k];
      if (a->is_proven) continue;
      sink_format(out, "%.400s:%u:%u: %s of '%.200s'",
                  a->file ? a->file : file->in.label, (unsigned)a->line,
                  (unsigned)a->column, kind_of(a),
                  lists[i].buffers[a->buffer].name);
      sink_format(out, ": index in %s, length %s: %s\n", a->index, a->length,
                  a->reason);
    }
  }
}

static void put_accesses_json(json_out *json, const kernel_file *file,
                              const access_list *lists) {
  json_open(json, "accesses", '[');
  for (size_t i = 0; i < kernel_file_count(file); i++) {
    json_open(json, NULL, '{');
    json_text(json, "kernel", vyre_program_name(lists[i].program));
    json_u64(json, "accesses", lists[i].count);
    json_u64(json, "proven", lists[i].proven);
    json_open(json, "not_proven", '[');
    for (size_t k = 0; k < lists[i].count; k++) {
      const vyre_access_info *a = &lists[i].items[k];
      if (a->is_proven) continue;
      json_open(json, NULL, '{');
      json_text(json, "buffer", lists[i].buffers[a->buffer].name);
      json_text(json, "kind", kind_of(a));
      if (a->file) json_text(json, "file", a->file);
      json_u64(json, "line", a->line);
      json_u64(json, "column", a->column);
      json_text(json, "index", a->index);
      json_text(json, "length", a->length);
      json_text(json, "reason", a->reason);
      json_close(json, '}');
    }
    json_close(json, ']');
    json_close(json, '}');
  }
  json_close(json, ']');
}

/* --- order of queue kernels ------------------------------------------------*/

typedef struct order_proof {
  vyre_order_proof result;
  vyre_diagnostics findings;
} order_proof;

static bool prove_orders(const kernel_file *file, vyre_arena *arena,
                         order_proof **out, problem *wrong) {
  const size_t count = kernel_file_count(file);
  order_proof *proofs = vyre_arena_alloc(arena, count * sizeof *proofs + 1, 0);
  if (!proofs) return problem_no_memory(wrong, "the proofs");
  memset(proofs, 0, count * sizeof *proofs);
  *out = proofs;
  for (size_t i = 0; i < count; i++) {
    vyre_status st = {0};
    if (vyre_program_prove_order(kernel_file_at(file, i), &proofs[i].result,
                                 &proofs[i].findings, &st) != VYRE_OK) {
      wrong->file = file->in.label;
      return problem_from_status(wrong, &st);
    }
  }
  return true;
}

/* Prints a line for each queue kernel, and what stands against a proof. */
static void put_proofs_text(sink *out, const kernel_file *file,
                            const order_proof *proofs) {
  for (size_t i = 0; i < kernel_file_count(file); i++) {
    if (!proofs[i].result.is_queue) continue;
    sink_format(out, "  %.200s: deterministic: %s\n",
                vyre_program_name(kernel_file_at(file, i)),
                proofs[i].result.is_proven ? "proven" : "not proven");
    vyre_diagnostics_print(&proofs[i].findings, file->in.label, file->in.text,
                           file->in.length, sink_writer(out));
  }
}

static void put_proofs_json(json_out *json, const kernel_file *file,
                            const order_proof *proofs) {
  bool any = false;
  for (size_t i = 0; i < kernel_file_count(file); i++) {
    any = any || proofs[i].result.is_queue;
  }
  if (!any) return;
  json_open(json, "orders", '[');
  for (size_t i = 0; i < kernel_file_count(file); i++) {
    if (!proofs[i].result.is_queue) continue;
    json_open(json, NULL, '{');
    json_text(json, "kernel", vyre_program_name(kernel_file_at(file, i)));
    json_bool(json, "deterministic", proofs[i].result.is_proven);
    json_findings(json, &proofs[i].findings);
    json_close(json, '}');
  }
  json_close(json, ']');
}

static void put_kernels(json_out *json, const kernel_file *file) {
  json_open(json, "kernels", '[');
  for (size_t i = 0; i < kernel_file_count(file); i++) {
    json_text(json, NULL, vyre_program_name(kernel_file_at(file, i)));
  }
  json_close(json, ']');
}

static void tell_json(check_state *s, const char *path, const kernel_file *file,
                      const access_list *lists, const order_proof *proofs,
                      const problem *wrong, bool fine) {
  json_open(&s->json, NULL, '{');
  json_text(&s->json, "file", file->in.label ? file->in.label : path);
  json_bool(&s->json, "ok", fine);
  put_kernels(&s->json, file);
  if (lists && fine) put_accesses_json(&s->json, file, lists);
  if (fine) put_proofs_json(&s->json, file, proofs);
  json_findings(&s->json, &file->findings);
  if (wrong->kind) {
    json_text(&s->json, "error", wrong->message);
    json_text(&s->json, "fix", wrong->fix);
  }
  json_close(&s->json, '}');
}

static void tell_text(check_state *s, const kernel_file *file,
                      const access_list *lists, const order_proof *proofs,
                      const problem *wrong, bool fine) {
  if (wrong->kind) {
    problem_text(wrong, &s->errors);
    return;
  }
  if (!fine) {
    vyre_diagnostics_print(&file->findings, file->in.label, file->in.text,
                           file->in.length, sink_writer(&s->errors));
    return;
  }
  size_t count = kernel_file_count(file);
  sink_format(&s->out, "%.800s: %zu kernel%s", file->in.label, count,
              count == 1 ? "" : "s");
  for (size_t i = 0; i < count; i++) {
    sink_text(&s->out, i ? ", " : ": ");
    sink_text(&s->out, vyre_program_name(kernel_file_at(file, i)));
  }
  sink_text(&s->out, "\n");
  if (lists && count > 0) put_accesses_text(&s->out, file, lists);
  put_proofs_text(&s->out, file, proofs);
}

static void check_file(check_state *s, const char *path) {
  kernel_file file = {.program = NULL};
  problem wrong = {0};
  vyre_arena arena = {0};
  access_list *lists = NULL;
  bool fine = kernel_file_read(path, &file, &wrong) &&
              kernel_file_has_any(&file, &wrong) && validate(&file, &wrong);
  if (fine && s->accesses) fine = find_accesses(&file, &arena, &lists, &wrong);
  order_proof *proofs = NULL;
  fine = fine && prove_orders(&file, &arena, &proofs, &wrong);
  if (!fine) s->fine = false;
  if (s->as_json) {
    tell_json(s, path, &file, lists, proofs, &wrong, fine);
  } else {
    tell_text(s, &file, lists, proofs, &wrong, fine);
  }
  for (size_t i = 0; proofs && i < kernel_file_count(&file); i++) {
    vyre_diagnostics_deinit(&proofs[i].findings);
  }
  vyre_arena_deinit(&arena);
  kernel_file_deinit(&file);
}

/* "ok" covers all files and comes first, so the files are collected
 * separately. */
static int answer_json(check_state *s) {
  sink out = {.failed = s->out.failed};
  json_out json = {.out = &out};
  json_open(&json, NULL, '{');
  json_bool(&json, "ok", s->fine);
  json_open(&json, "files", '[');
  json_raw(&json, NULL, s->out.data, s->out.length);
  json_close(&json, ']');
  json_close(&json, '}');
  sink_text(&out, "\n");
  return publish(&out, NULL, NULL, true);
}

int cmd_check(int count, char **words, bool json) {
  vyre_arena arena = {0};
  problem wrong = {0};
  word_list files = {.arena = &arena};
  check_state s = {.as_json = json, .fine = true};
  flag flags[] = {FLAG("--accesses", &s.accesses)};
  arguments spec = {
      .command = "check", .flags = flags, .flag_count = 1, .operands = &files};
  int code;
  s.json.out = &s.out;
  if (!args_read(&spec, count, words, &wrong)) {
    code = problem_report(&wrong, json);
  } else {
    for (size_t i = 0; i < files.list.count; i++) {
      check_file(&s, word_at(&files, i));
    }
    write_all(STDERR_FILENO, s.errors.data, s.errors.length);
    code = json ? answer_json(&s) : publish(&s.out, NULL, NULL, false);
    if (code == EXIT_FINE && !s.fine) code = EXIT_WRONG;
  }
  sink_deinit(&s.out);
  sink_deinit(&s.errors);
  vyre_arena_deinit(&arena);
  return code;
}
