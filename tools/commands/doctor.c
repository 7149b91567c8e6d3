/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre doctor`: tests the installation and suggests fixes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vyre/cache.h"
#include "vyre/version.h"

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/text.h"
#include "commands/device_smoke.h"
#include "commands/device_text.h"
#include "plan/plan_json.h"

enum { MAX_DEVICES = 64, MAX_NUMBERS = 256 };

typedef struct finding {
  device_entry entry;
  device_trial trial;
  vyre_float_op_info
      *numbers; /* result of --probe; NULL: not probed, or failed */
  size_t number_count;
  vyre_status st; /* why the probe failed */
} finding;

typedef struct report {
  bool is_probed;
  vyre_context
      *context; /* context of all devices; NULL: it could not be created */
  vyre_status context_st; /* why not */
  finding found[MAX_DEVICES];
  size_t count;
  vyre_device *chosen; /* device that "auto" opens; NULL: no device opens */
  vyre_status st;      /* why not */
  vyre_arena arena;    /* holds the texts about the cache */
  vyre_cache_location cache;
  vyre_cache_listing kept;
  vyre_status cache_st; /* why the cache could not be inspected */
} report;

/* --- collecting
 * -------------------------------------------------------------- */

static bool probe(finding *f) {
  f->numbers = malloc(MAX_NUMBERS * sizeof *f->numbers);
  if (!f->numbers) return false;
  if (vyre_device_probe(f->entry.device, f->numbers, MAX_NUMBERS,
                        &f->number_count, &f->st) != VYRE_OK) {
    free(f->numbers);
    f->numbers = NULL;
  } else if (f->number_count > MAX_NUMBERS) {
    f->number_count = MAX_NUMBERS;
  }
  return true;
}

/* A stub device has no floats to test. */
static bool runs(const finding *f) {
  return f->entry.device && !vyre_device_get_caps(f->entry.device)->is_stub;
}

static bool look(report *r, problem *wrong) {
  (void)!vyre_context_create(NULL, &r->context, &r->context_st);
  for (; r->count < MAX_DEVICES; r->count++) {
    finding *f = &r->found[r->count];
    if (!device_entry_open(r->context, r->count, &f->entry)) break;
    if (runs(f)) device_try(f->entry.info.name, &f->trial);
    if (r->is_probed && runs(f) && !probe(f)) {
      return problem_no_memory(wrong, "the results of a probe");
    }
  }
  (void)!vyre_device_open(r->context, "auto", &r->chosen, &r->st);
  if (vyre_cache_get_location(r->context, &r->arena, &r->cache, &r->cache_st) ==
          VYRE_OK &&
      r->cache.exists) {
    (void)!vyre_cache_list(r->context, &r->arena, &r->kept, &r->cache_st);
  }
  return true;
}

static void finish(report *r) {
  for (size_t i = 0; i < r->count; i++) {
    device_entry_deinit(&r->found[i].entry);
    free(r->found[i].numbers);
  }
  vyre_device_release(r->chosen);
  vyre_context_release(r->context);
  vyre_arena_deinit(&r->arena);
  free(r);
}

/* --- printing
 * ---------------------------------------------------------------- */

static void put_numbers(const finding *f, sink *out) {
  const vyre_device_caps *caps = vyre_device_get_caps(f->entry.device);
  sink_text(out, "    floats: ");
  if (f->st.code != VYRE_OK) {
    sink_format(out, "the probe failed: %s\n    Fix: %s\n", f->st.message,
                f->st.fix);
    return;
  }
  const vyre_float_op_info *classes = f->numbers ? f->numbers : caps->float_ops;
  size_t count = f->numbers ? f->number_count : caps->float_op_count;
  put_number_summary(classes, count, out);
  sink_text(out, f->numbers ? "\n"
                 : runs(f)  ? "; --probe tests them\n"
                            : "; not tested: the device runs nothing\n");
  for (size_t i = 0; f->numbers && i < count; i++) {
    sink_format(out, "      %-12s %-7s %llu tested, %llu wrong\n",
                classes[i].operation, number_form_name(classes[i].mode),
                (unsigned long long)classes[i].tested,
                (unsigned long long)classes[i].wrong);
  }
}

static void put_finding(const finding *f, sink *out) {
  const vyre_device_info *info = &f->entry.info;
  sink_format(out, "  %s: ", f->entry.info.name);
  if (!info->is_available) {
    sink_format(out, "not available: %.500s\n", info->note);
    put_device_fix(info, out);
  } else if (!f->entry.device) {
    sink_format(out, "found, but does not open: %s\n    Fix: %s\n",
                f->entry.st.message, f->entry.st.fix);
  } else {
    sink_text(out, device_trial_is_good(&f->trial) ? "works: " : "opens: ");
    put_device_title(info, out);
    sink_text(out, "\n");
    put_device_origin(&f->entry, "    ", out);
    put_device_fix(info, out);
    put_trial(&f->trial, out);
    put_numbers(f, out);
  }
}

static const char *cache_state(const report *r) {
  if (r->cache_st.code != VYRE_OK) return "unknown";
  return !r->cache.is_enabled    ? "off"
         : r->cache.is_read_only ? "read only"
         : r->cache.exists       ? "ready"
                                 : "not created yet";
}

/* Returns the first corrupt entry, or NULL. */
static const vyre_cache_entry *first_corrupt(const vyre_cache_listing *all) {
  size_t i = 0;
  while (i < all->entry_count && all->entries[i].is_valid) i++;
  return i < all->entry_count ? &all->entries[i] : NULL;
}

static void put_damage(const vyre_cache_listing *all, sink *out) {
  const vyre_cache_entry *entry = first_corrupt(all);
  if (!entry) return;
  sink_format(
      out,
      "  %llu of %llu entries are unusable, the first is %s: %s\n  Fix: run "
      "'vyre cache prune'; remove folders that are not empty by hand\n",
      (unsigned long long)all->corrupt_count,
      (unsigned long long)all->entry_count, entry->name, entry->problem);
}

static void put_cache(const report *r, sink *out) {
  const vyre_cache_location *cache = &r->cache;
  sink_text(out, "cache\n  ");
  if (cache->directory && cache->directory[0]) {
    show_bytes(out, cache->directory, strlen(cache->directory));
    sink_text(out, ": ");
  }
  sink_text(out, cache_state(r));
  const vyre_status *st = &r->cache_st;
  bool is_known = st->code == VYRE_OK;
  const char *reason = is_known ? cache->reason : st->message;
  const char *fix = is_known ? cache->fix : st->fix;
  if (reason[0]) sink_format(out, ": %s", reason);
  if (fix[0]) sink_format(out, "\n  Fix: %s", fix);
  sink_text(out, "\n");
  put_damage(&r->kept, out);
}

static void put_report(const report *r, sink *out) {
  sink_format(out, "vyre %s\ndevices\n", vyre_version_string());
  for (size_t i = 0; i < r->count; i++) put_finding(&r->found[i], out);
  put_refused_backends(r->context, "  ", out);
  if (r->chosen) {
    const char *reason = vyre_device_selection_reason(r->chosen);
    if (strncmp(reason, "auto: ", 6) == 0) reason += 6;
    sink_format(out, "  auto takes %s: %s\n", vyre_device_name(r->chosen),
                reason);
  } else {
    sink_format(out, "  auto finds no device: %s\n  Fix: %s\n", r->st.message,
                r->st.fix);
  }
  put_cache(r, out);
  vyre_trace_info trace;
  sink_text(out, "trace\n  ");
  if (vyre_context_get_trace_info(r->context, &trace)) {
    show_bytes(out, trace.file, strlen(trace.file));
  } else if (r->context) {
    sink_text(out, "off: VYRE_TRACE names no file");
  } else {
    sink_format(out, "unknown: %s\n  Fix: %s", r->context_st.message,
                r->context_st.fix);
  }
  sink_text(out, "\n");
}

/* Returns true if a device works and no test failed; the exit status depends
 * on it. */
static bool is_well(const report *r) {
  bool works = r->chosen != NULL;
  for (size_t i = 0; i < r->count; i++) {
    const finding *f = &r->found[i];
    bool is_chosen = r->chosen && strcmp(vyre_device_name(r->chosen),
                                         f->entry.info.name) == 0;
    works = works && f->st.code == VYRE_OK && !f->trial.is_wrong &&
            (!is_chosen || device_trial_is_good(&f->trial));
  }
  return works;
}

static void put_report_json(const report *r, sink *out) {
  json_out json = {.out = out};
  json_open(&json, NULL, '{');
  json_bool(&json, "ok", is_well(r));
  json_text(&json, "version", vyre_version_string());
  json_open(&json, "devices", '[');
  for (size_t i = 0; i < r->count; i++) {
    const finding *f = &r->found[i];
    json_open(&json, NULL, '{');
    json_device(&json, "device", &f->entry);
    json_trial(&json, "trial", &f->trial);
    if (f->numbers) {
      json_numbers(&json, "probe", f->numbers, f->number_count);
    } else if (f->st.code != VYRE_OK) {
      json_text(&json, "probe_error", f->st.message);
    }
    json_close(&json, '}');
  }
  json_close(&json, ']');
  json_backends(&json, r->context);
  if (r->chosen) {
    json_text(&json, "auto", vyre_device_name(r->chosen));
    json_text(&json, "reason", vyre_device_selection_reason(r->chosen));
  } else {
    json_null(&json, "auto");
    json_text(&json, "error", r->st.message);
    json_text(&json, "fix", r->st.fix);
  }
  json_open(&json, "cache", '{');
  json_text(&json, "state", cache_state(r));
  if (r->cache_st.code != VYRE_OK) {
    json_text(&json, "error", r->cache_st.message);
    json_text(&json, "fix", r->cache_st.fix);
  } else {
    json_text(&json, "directory", r->cache.directory);
    json_text(&json, "reason", r->cache.reason);
    json_text(&json, "fix", r->cache.fix);
    json_u64(&json, "max_bytes", r->cache.max_bytes);
    json_u64(&json, "entries", r->kept.entry_count);
    json_u64(&json, "corrupt", r->kept.corrupt_count);
    const vyre_cache_entry *entry = first_corrupt(&r->kept);
    if (entry) {
      json_text(&json, "first_corrupt", entry->name);
      json_text(&json, "problem", entry->problem);
    }
  }
  json_close(&json, '}');
  vyre_trace_info trace;
  json_open(&json, "trace", '{');
  json_bool(&json, "on", vyre_context_get_trace_info(r->context, &trace));
  if (trace.file) json_text(&json, "file", trace.file);
  if (!r->context) {
    json_text(&json, "error", r->context_st.message);
    json_text(&json, "fix", r->context_st.fix);
  }
  json_close(&json, '}');
  json_end(&json);
}

int cmd_doctor(int count, char **words, bool json) {
  problem wrong = {0};
  sink out = {0};
  report *r = calloc(1, sizeof *r);
  if (!r) {
    problem_no_memory(&wrong, "the report");
    return problem_report(&wrong, json);
  }
  flag flags[] = {FLAG("--probe", &r->is_probed)};
  arguments spec = {.command = "doctor", .flags = flags, .flag_count = 1};
  if (!args_read(&spec, count, words, &wrong) || !look(r, &wrong)) {
    finish(r);
    return problem_report(&wrong, json);
  }
  if (json) {
    put_report_json(r, &out);
  } else {
    put_report(r, &out);
  }
  bool works = is_well(r);
  finish(r);
  int code = publish(&out, NULL, NULL, json);
  return code == EXIT_FINE && !works ? EXIT_DEVICE : code;
}
