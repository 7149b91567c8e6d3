/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs programs on devices and compares every byte with the oracle. */
#include <stdlib.h>
#include <string.h>

#include "vyre/vyre.h"

#include "program.h"

enum { MAX_TARGETS = 8 };

typedef struct compiled {
  vyre_module *module;
  vyre_pipeline *pipelines[MAX_TARGETS];
} compiled;

static void release(compiled *c) {
  for (int i = 0; i < MAX_TARGETS; i++) vyre_pipeline_release(c->pipelines[i]);
  vyre_module_release(c->module);
}

/* Compiles for one target. After the code of the baseline tier, the device makes
 * the optimised code in the background and changes to it at any time; a test of
 * the baseline must not depend on when. So that compile is made to fail. One of
 * the program before may still be due, and be the first to count: then the one
 * that failed is made again. */
static vyre_code compile_for(const cf_target *target, vyre_program *program,
                             vyre_pipeline **out, vyre_status *st) {
  vyre_compile_options options = {
      .tier = target->is_quick ? VYRE_TIER_BASELINE : VYRE_TIER_OPTIMISED};
  for (;;) {
    if (target->context) {
      const char *faults = target->is_quick ? "compile:2+" : "";
      vyre_code code = vyre_context_inject_faults(target->context, faults, st);
      if (code != VYRE_OK) return code;
    }
    *st = (vyre_status){0};
    vyre_code code =
        vyre_pipeline_compile(target->device, program, &options, out, NULL, st);
    if (code == VYRE_OK || st->kind != VYRE_KIND_INJECTED_FAULT) return code;
  }
}

static cf_verdict compile(const cf_program *p, const cf_target *targets,
                          size_t count, compiled *c, cf_counts *counts,
                          cf_difference *out) {
  vyre_status st = {0};
  char *text = cf_print(p);
  vyre_code code =
      vyre_module_parse(text, strlen(text), "control_flow.vyre",
                        (vyre_allocator){0}, &c->module, NULL, &st);
  free(text);
  for (size_t i = 0; code == VYRE_OK && i < count; i++) {
    code = compile_for(&targets[i], vyre_module_kernel(c->module, 0),
                       &c->pipelines[i], &st);
    counts->compiles++;
    if (code == VYRE_UNSUPPORTED_FEATURE) { /* left out, and counted */
      if (counts->unsupported++ == 0) {
        (void)snprintf(counts->why, sizeof counts->why, "%s, %s: %s", p->name,
                       targets[i].name, st.message);
      }
      code = VYRE_OK;
    }
    if (code != VYRE_OK) {
      (void)snprintf(out->message, sizeof out->message, "%s: %s",
                     targets[i].name, st.message);
      return CF_REFUSED;
    }
  }
  if (code == VYRE_OK) return CF_SAME;
  (void)snprintf(out->message, sizeof out->message, "not a program: %s",
                 st.message);
  return CF_REFUSED;
}

/* The outputs of a program in the order of their bindings. */
typedef struct part {
  const char *name;
  const uint32_t *want;
  uint32_t *got;
  size_t count;
} part;

static size_t list_parts(const cf_program *p, const cf_memory *want,
                         const cf_memory *got, part parts[4]) {
  size_t count = 0, total = cf_total(p);
  parts[count++] = (part){"out", want->out, got->out, total * p->slot_count};
  if (p->has_pass)
    parts[count++] = (part){"pass", want->pass, got->pass, total};
  if (p->has_wide)
    parts[count++] = (part){"wide", want->wide, got->wide, total};
  if (p->has_count) {
    parts[count++] = (part){"count", want->count, got->count, CF_COUNTERS};
  }
  return count;
}

static void tell(const cf_program *p, const cf_target *target,
                 const cf_run *run, const part *which, size_t at,
                 cf_difference *out) {
  char where[80] = "";
  if (which->count != CF_COUNTERS) {
    size_t total = cf_total(p), own = at, slot = 0;
    if (strcmp(which->name, "out") == 0) {
      own = p->is_interleaved ? at % total : at / p->slot_count;
      slot = p->is_interleaved ? at / total : at % p->slot_count;
    }
    (void)snprintf(where, sizeof where, " (invocation %zu, store %zu)", own,
                   slot);
  }
  (void)snprintf(
      out->message, sizeof out->message,
      "%s: %s[%zu]%s is %u, expected %u\n    uniforms "
      "%u,%u,%u,%u,%u,%u,%u,%u, data pattern %u, seed %llu, grid %u,%u,%u",
      target->name, which->name, at, where, (unsigned)which->got[at],
      (unsigned)which->want[at], (unsigned)run->uniforms[0],
      (unsigned)run->uniforms[1], (unsigned)run->uniforms[2],
      (unsigned)run->uniforms[3], (unsigned)run->uniforms[4],
      (unsigned)run->uniforms[5], (unsigned)run->uniforms[6],
      (unsigned)run->uniforms[7], (unsigned)run->pattern,
      (unsigned long long)run->seed, (unsigned)p->grid[0], (unsigned)p->grid[1],
      (unsigned)p->grid[2]);
}

/* One dispatch of one pipeline. */
static vyre_code dispatch(const cf_program *p, const cf_target *target,
                          vyre_pipeline *pipeline, const uint32_t *data,
                          const cf_run *run, const part *parts, size_t count,
                          vyre_status *st) {
  vyre_input inputs[1 + CF_UNIFORMS];
  vyre_output outputs[4];
  size_t input_count = 0;
  inputs[input_count++] =
      vyre_input_bytes(data, (size_t)(cf_total(p) - p->missing) * 4);
  if (p->has_array) {
    inputs[input_count++] =
        vyre_input_bytes(run->uniforms, sizeof run->uniforms);
  } else {
    for (uint32_t i = 0; i < p->uniform_count; i++) {
      inputs[input_count++] = vyre_input_bytes(&run->uniforms[i], 4);
    }
  }
  for (size_t i = 0; i < count; i++) {
    memset(parts[i].got, 0xA5, parts[i].count * 4);
    outputs[i] = vyre_output_bytes(parts[i].got, parts[i].count * 4);
  }
  vyre_check_report report = {0};
  vyre_dispatch_desc desc = {.inputs = inputs,
                             .input_count = input_count,
                             .outputs = outputs,
                             .output_count = count,
                             .timeout_ns = 20000000000u,
                             .report = &report};
  memcpy(desc.grid, p->grid, sizeof desc.grid);
  desc.check.races = target->has_races;
  vyre_code code = vyre_dispatch(pipeline, &desc, st);
  if (code == VYRE_OK && report.count > 0) {
    code = VYRE_INVALID_PROGRAM;
    (void)snprintf(st->message, sizeof st->message, "%s",
                   report.findings[0].message);
  }
  vyre_check_report_deinit(&report);
  return code;
}

static cf_verdict compare(const cf_program *p, const cf_target *target,
                          const cf_run *run, const part *parts, size_t count,
                          cf_difference *out) {
  for (size_t i = 0; i < count; i++) {
    if (memcmp(parts[i].want, parts[i].got, parts[i].count * 4) == 0) continue;
    size_t at = 0;
    while (parts[i].want[at] == parts[i].got[at]) at++;
    tell(p, target, run, &parts[i], at, out);
    return CF_DIFFERS;
  }
  return CF_SAME;
}

static cf_verdict run_one(const cf_program *p, const cf_target *targets,
                          size_t target_count, const compiled *c,
                          const cf_run *run, cf_counts *counts,
                          cf_difference *out) {
  cf_memory want, got;
  cf_memory_begin(p, &want);
  cf_verdict verdict = CF_SAME;
  cf_outcome outcome = cf_interpret(p, run, &want);
  if (outcome != CF_RAN) {
    counts->skipped++;
    cf_memory_end(&want);
    if (outcome == CF_TOO_LONG) return CF_SAME;
    (void)snprintf(out->message, sizeof out->message,
                   "invocations wait at different barriers");
    return CF_REFUSED;
  }
  cf_memory_begin(p, &got);
  part parts[4];
  size_t part_count = list_parts(p, &want, &got, parts);
  uint32_t length = cf_total(p) - p->missing;
  uint32_t *data = malloc(((size_t)length + 1) * 4);
  if (!data) abort();
  for (uint32_t i = 0; i < length; i++) data[i] = cf_data_at(p, run, i);
  for (size_t i = 0; i < target_count && verdict == CF_SAME; i++) {
    if (!c->pipelines[i]) continue;
    vyre_status st = {0};
    counts->dispatches++;
    if (dispatch(p, &targets[i], c->pipelines[i], data, run, parts, part_count,
                 &st) != VYRE_OK) {
      (void)snprintf(out->message, sizeof out->message,
                     "%s: the dispatch failed: %s", targets[i].name,
                     st.message);
      verdict = CF_DIFFERS;
    } else {
      verdict = compare(p, &targets[i], run, parts, part_count, out);
    }
  }
  free(data);
  cf_memory_end(&want);
  cf_memory_end(&got);
  return verdict;
}

cf_verdict cf_compare_all(const cf_program *p, const cf_target *targets,
                          size_t target_count, int only, cf_counts *counts,
                          cf_difference *out) {
  compiled c = {0};
  if (target_count > MAX_TARGETS) abort();
  cf_verdict verdict = compile(p, targets, target_count, &c, counts, out);
  counts->programs++;
  for (uint32_t i = 0; i < p->run_count && verdict == CF_SAME; i++) {
    if (only >= 0 && i != (uint32_t)only) continue;
    verdict = run_one(p, targets, target_count, &c, &p->runs[i], counts, out);
    out->run = i;
  }
  release(&c);
  return verdict;
}
