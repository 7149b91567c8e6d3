/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre cache`: lists, explains, verifies and prunes cached kernels. */
#include "vyre/cache.h"

#include <string.h>
#include <time.h>

#include "vyre/validate.h"

#include "cli/commands.h"
#include "cli/compile_flags.h"
#include "cli/kernel_file.h"
#include "cli/output.h"
#include "cli/text.h"
#include "plan/plan_json.h"

/* --- texts -------------------------------------------------------------------*/

static void put_shown(sink *out, const char *text) {
  show_bytes(out, text, strlen(text));
}

/* Formats a time as "2026-05-04 03:02:01" (UTC); "?" if it has no date. */
static void put_time(sink *out, int64_t seconds) {
  time_t moment = (time_t)seconds;
  struct tm parts;
  char text[40] = "?";
  if (gmtime_r(&moment, &parts)) {
    (void)strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  }
  sink_text(out, text);
}

static const char *field_text(const vyre_cache_entry *entry, const char *name) {
  for (size_t i = 0; i < entry->field_count; i++) {
    if (strcmp(entry->fields[i].name, name) == 0) return entry->fields[i].text;
  }
  return "?";
}

static void put_fields(sink *out, const vyre_cache_field *fields,
                       size_t count) {
  for (size_t i = 0; i < count; i++) {
    sink_format(out, "  %-12s ", fields[i].name);
    put_shown(out, fields[i].text);
    sink_text(out, "\n");
  }
}

static void json_fields(json_out *json, const vyre_cache_field *fields,
                        size_t count) {
  json_open(json, "key", '{');
  for (size_t i = 0; i < count; i++) {
    json_text(json, fields[i].name, fields[i].text);
  }
  json_close(json, '}');
}

/* --- the directory -----------------------------------------------------------*/

static void put_off(sink *out, const vyre_cache_listing *all) {
  sink_text(out, "the cache is off: ");
  if (all->directory[0]) {
    put_shown(out, all->directory);
    sink_text(out, ": ");
  }
  sink_format(out, "%s\nFix: %s\n", all->reason, all->fix);
}

static void put_head(sink *out, const vyre_cache_listing *all) {
  put_shown(out, all->directory);
  sink_format(out, ": %llu %s, %llu of %llu bytes\n",
              (unsigned long long)all->entry_count,
              all->entry_count == 1 ? "entry" : "entries",
              (unsigned long long)all->bytes,
              (unsigned long long)all->max_bytes);
}

static void json_head(json_out *json, const vyre_cache_listing *all) {
  json_bool(json, "on", all->is_enabled);
  json_text(json, "directory", all->directory);
  if (!all->is_enabled) {
    json_text(json, "reason", all->reason);
    json_text(json, "fix", all->fix);
  }
  json_u64(json, "max_bytes", all->max_bytes);
  json_u64(json, "bytes", all->bytes);
}

static void json_entries(json_out *json, const vyre_cache_listing *all) {
  json_open(json, "entries", '[');
  for (size_t i = 0; i < all->entry_count; i++) {
    const vyre_cache_entry *entry = &all->entries[i];
    json_open(json, NULL, '{');
    json_text(json, "file", entry->name);
    json_u64(json, "bytes", entry->bytes);
    json_u64(json, "used",
             entry->last_used < 0 ? 0 : (uint64_t)entry->last_used);
    json_bool(json, "sound", entry->is_valid);
    if (entry->is_valid) {
      json_u64(json, "artifact_bytes", entry->artifact_bytes);
      json_fields(json, entry->fields, entry->field_count);
    } else {
      json_text(json, "problem", entry->problem);
    }
    json_close(json, '}');
  }
  json_close(json, ']');
  json_u64(json, "corrupt", all->corrupt_count);
  json_u64(json, "leftovers", all->leftover_count);
}

/* --- list and verify ---------------------------------------------------------*/

static void put_entry(sink *out, const vyre_cache_entry *entry) {
  sink_text(out, "  ");
  put_time(out, entry->last_used);
  sink_format(out, "  %10llu bytes  ", (unsigned long long)entry->bytes);
  if (entry->is_valid) {
    put_shown(out, field_text(entry, "kernel"));
    sink_text(out, " on ");
    put_shown(out, field_text(entry, "backend"));
    sink_text(out, " (");
    put_shown(out, field_text(entry, "device"));
    sink_text(out, "), workgroup ");
    put_shown(out, field_text(entry, "workgroup"));
  } else {
    sink_format(out, "corrupt: %s", entry->problem);
  }
  sink_format(out, "\n    %s\n", entry->name);
}

static void put_corrupt(sink *out, const vyre_cache_listing *all) {
  for (size_t i = 0; i < all->entry_count; i++) {
    const vyre_cache_entry *entry = &all->entries[i];
    if (entry->is_valid) continue;
    sink_format(out, "  %s: %s\n", entry->name, entry->problem);
  }
  if (all->leftover_count > 0) {
    sink_format(out, "  %llu unfinished file%s\n",
                (unsigned long long)all->leftover_count,
                all->leftover_count == 1 ? "" : "s");
  }
  if (all->corrupt_count > 0) {
    sink_format(out,
                "%llu corrupt; corrupt entries are never used\nFix: run 'vyre "
                "cache prune', and remove by hand what remains\n",
                (unsigned long long)all->corrupt_count);
  } else {
    sink_text(out, "all are sound\n");
  }
}

/* Lists the cache that the environment selects. */
static bool read_all(vyre_arena *arena, vyre_cache_listing *all,
                     problem *wrong) {
  vyre_status st = {0};
  return vyre_cache_list(NULL, arena, all, &st) == VYRE_OK ||
         problem_from_status(wrong, &st);
}

static int show(const char *command, int count, char **words, bool verifies,
                bool json) {
  problem wrong = {0};
  vyre_arena arena = {0};
  vyre_cache_listing all = {0};
  sink out = {0};
  arguments spec = {.command = command};
  if (!args_read(&spec, count, words, &wrong) ||
      !read_all(&arena, &all, &wrong)) {
    vyre_arena_deinit(&arena);
    return problem_report(&wrong, json);
  }
  if (json) {
    json_out answer = {.out = &out};
    json_open(&answer, NULL, '{');
    json_bool(&answer, "ok",
              !verifies || (all.is_enabled && all.corrupt_count == 0));
    json_head(&answer, &all);
    json_entries(&answer, &all);
    json_end(&answer);
  } else if (!all.is_enabled) {
    put_off(&out, &all);
  } else {
    put_head(&out, &all);
    for (size_t i = 0; !verifies && i < all.entry_count; i++) {
      put_entry(&out, &all.entries[i]);
    }
    if (verifies) put_corrupt(&out, &all);
  }
  bool is_wrong = verifies && (!all.is_enabled || all.corrupt_count > 0);
  vyre_arena_deinit(&arena);
  int code = publish(&out, NULL, NULL, json);
  return code == EXIT_FINE && is_wrong ? EXIT_WRONG : code;
}

int cache_list(int count, char **words, bool json) {
  return show("cache list", count, words, false, json);
}

int cache_verify(int count, char **words, bool json) {
  return show("cache verify", count, words, true, json);
}

/* --- prune -------------------------------------------------------------------*/

static bool read_prune(int count, char **words,
                       vyre_cache_prune_options *options, problem *wrong) {
  flag flags[] = {FLAG("--all", &options->remove_all),
                  FLAG("--bytes", &options->max_bytes)};
  arguments spec = {.command = "cache prune", .flags = flags, .flag_count = 2};
  if (!args_read(&spec, count, words, wrong)) return false;
  if (flags[1].given && options->max_bytes == 0) {
    return problem_set(wrong, KIND_USAGE, "write --all to remove all entries",
                       "--bytes is 0");
  }
  if (flags[0].given && flags[1].given) {
    return problem_set(wrong, KIND_USAGE, "drop one of them",
                       "--all and --bytes exclude each other");
  }
  return true;
}

int cache_prune(int count, char **words, bool json) {
  problem wrong = {0};
  vyre_status st = {0};
  vyre_arena arena = {0};
  vyre_cache_prune_options options = {0};
  vyre_cache_pruned done = {0};
  vyre_cache_listing all = {0};
  sink out = {0};
  if (!read_prune(count, words, &options, &wrong) ||
      !read_all(&arena, &all, &wrong) ||
      (vyre_cache_prune(NULL, &options, &done, &st) != VYRE_OK &&
       !problem_from_status(&wrong, &st))) {
    vyre_arena_deinit(&arena);
    return problem_report(&wrong, json);
  }
  if (json) {
    json_out answer = {.out = &out};
    json_open(&answer, NULL, '{');
    json_bool(&answer, "ok", all.is_enabled);
    all.bytes = done.left_bytes;
    json_head(&answer, &all);
    json_u64(&answer, "removed", done.removed_count);
    json_u64(&answer, "removed_bytes", done.removed_bytes);
    json_u64(&answer, "left", done.left_count);
    json_end(&answer);
  } else if (!all.is_enabled) {
    put_off(&out, &all);
  } else {
    put_shown(&out, all.directory);
    sink_format(&out, ": removed %llu (%llu bytes), left %llu (%llu bytes)\n",
                (unsigned long long)done.removed_count,
                (unsigned long long)done.removed_bytes,
                (unsigned long long)done.left_count,
                (unsigned long long)done.left_bytes);
  }
  bool is_on = all.is_enabled;
  vyre_arena_deinit(&arena);
  int code = publish(&out, NULL, NULL, json);
  return code == EXIT_FINE && !is_on ? EXIT_WRONG : code;
}

/* --- explain -----------------------------------------------------------------*/

static void put_explanation(sink *out, const char *kernel, const char *device,
                            const vyre_cache_explanation *e) {
  const vyre_cache_info *info = &e->info;
  put_shown(out, kernel);
  sink_format(out, " on %s: %s: %s\n", device,
              vyre_cache_result_name(info->result), info->reason);
  if (info->field) {
    sink_format(out, "  %s is ", info->field);
    put_shown(out, info->wanted);
    sink_text(out, ", and was ");
    put_shown(out, info->found);
    sink_text(out, "\n");
  }
  if (info->entry[0]) sink_format(out, "file: %s\n", info->entry);
  sink_text(out, "key:\n");
  put_fields(out, e->fields, e->field_count);
}

static void json_explanation(sink *out, const char *kernel, const char *device,
                             const vyre_cache_explanation *e) {
  const vyre_cache_info *info = &e->info;
  json_out json = json_begin(out);
  json_text(&json, "kernel", kernel);
  json_text(&json, "device", device);
  json_text(&json, "result", vyre_cache_result_name(info->result));
  json_text(&json, "reason", info->reason);
  json_bool(&json, "rejected", info->is_rejected);
  if (info->field) {
    json_text(&json, "field", info->field);
    json_text(&json, "wanted", info->wanted);
    json_text(&json, "found", info->found);
  }
  if (info->entry[0]) json_text(&json, "file", info->entry);
  json_fields(&json, e->fields, e->field_count);
  json_end(&json);
}

/* Returns false with diagnostics in the file, or with a problem. */
static bool explain(const compile_flags *f, kernel_file *file,
                    vyre_program *program, bool json, sink *out,
                    problem *wrong) {
  vyre_status st = {0};
  vyre_arena arena = {0};
  vyre_device *device = NULL;
  vyre_cache_explanation e;
  bool fine = vyre_program_validate(program, &file->findings, &st) == VYRE_OK &&
              vyre_device_open(NULL, f->backend, &device, &st) == VYRE_OK &&
              vyre_cache_explain(device, program, &f->options, &arena, &e,
                                 &st) == VYRE_OK;
  if (fine) {
    (json ? json_explanation : put_explanation)(out, vyre_program_name(program),
                                                vyre_device_name(device), &e);
  } else if (file->findings.count == 0) {
    wrong->file = file->in.label;
    problem_from_status(wrong, &st);
  }
  vyre_device_release(device);
  vyre_arena_deinit(&arena);
  return fine;
}

int cache_explain(int count, char **words, bool json) {
  return compile_command("cache explain", count, words, json, explain);
}
