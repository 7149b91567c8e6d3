/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre run --replay N`: measures N dispatches and N replays of the same
 * work in alternation. */
#include <stdlib.h>
#include <string.h>

#include "vyre/recording.h"

#include "cli/stopwatch.h"
#include "commands/run/run.h"

/* A slot must be bound to an address even if it has no bytes. */
static unsigned char nowhere[1];

/* Adds a slot for each input and output, bound to the memory of the
 * dispatch. */
static vyre_code record_in(const run_state *s, vyre_recording *rec,
                           vyre_slot_range *in, vyre_slot_range *out,
                           vyre_status *st) {
  vyre_code code = VYRE_OK;
  for (size_t i = 0; i < s->input_count && code == VYRE_OK; i++) {
    const vyre_slot_binding bytes = {
        .data =
            s->inputs[i].data ? (void *)(uintptr_t)s->inputs[i].data : nowhere,
        .size = s->inputs[i].size,
        .is_read_only = true};
    uint32_t slot;
    code = vyre_recording_add_fixed_slot(rec, &bytes, &slot, st);
    if (code == VYRE_OK) in[i] = vyre_slot_range_all(slot);
  }
  for (size_t i = 0; i < s->output_count && code == VYRE_OK; i++) {
    const vyre_slot_binding bytes = {
        .data = s->outputs[i].data ? s->outputs[i].data : nowhere,
        .size = s->outputs[i].size};
    uint32_t slot;
    code = vyre_recording_add_fixed_slot(rec, &bytes, &slot, st);
    if (code == VYRE_OK) out[i] = vyre_slot_range_all(slot);
  }
  if (code != VYRE_OK) return code;
  vyre_recorded_dispatch d = {.inputs = in,
                              .input_count = s->input_count,
                              .outputs = out,
                              .output_count = s->output_count,
                              .max_loop_iterations = s->flags.max_iterations};
  memcpy(d.grid, s->flags.grid, sizeof d.grid);
  code = vyre_recording_add_dispatch(rec, s->pipeline, &d, st);
  return code == VYRE_OK ? vyre_recording_seal(rec, st) : code;
}

static int by_size(const void *a, const void *b) {
  uint64_t x, y;
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  return (x > y) - (x < y);
}

static uint64_t median(uint64_t *times, size_t count) {
  qsort(times, count, sizeof *times, by_size);
  return times[count / 2];
}

/* Both run once to warm up, then alternate, so that disturbances affect both
 * equally. */
static vyre_code measure(run_state *s, vyre_recording *rec, uint64_t *plain,
                         uint64_t *replays, vyre_status *st) {
  vyre_dispatch_desc desc = {.inputs = s->inputs,
                             .input_count = s->input_count,
                             .outputs = s->outputs,
                             .output_count = s->output_count,
                             .is_borrowed = true,
                             .max_loop_iterations = s->flags.max_iterations,
                             .timeout_ns = s->flags.timeout_ns};
  vyre_replay_options how = {.timeout_ns = s->flags.timeout_ns};
  memcpy(desc.grid, s->flags.grid, sizeof desc.grid);
  for (uint64_t i = 0; i <= s->flags.replay; i++) {
    uint64_t start = stopwatch_ns();
    vyre_code code = vyre_dispatch(s->pipeline, &desc, st);
    if (code != VYRE_OK) return code;
    uint64_t between = stopwatch_ns();
    code = vyre_recording_replay(rec, &how, NULL, st);
    if (code != VYRE_OK) return code;
    if (i == 0) continue;
    plain[i - 1] = between - start;
    replays[i - 1] = stopwatch_ns() - between;
  }
  s->plain_ns = median(plain, (size_t)s->flags.replay);
  s->replay_ns = median(replays, (size_t)s->flags.replay);
  return VYRE_OK;
}

bool run_replay(run_state *s, problem *wrong) {
  vyre_status st = {0};
  if (s->flags.replay == 0) return true;
  if (!run_refuse_persistent(s, "--replay", wrong)) return false;
  size_t places = s->input_count + s->output_count + 1;
  size_t count = (size_t)s->flags.replay;
  vyre_slot_range *in = vyre_arena_alloc(&s->arena, places * sizeof *in, 0);
  uint64_t *times = vyre_arena_alloc(&s->arena, 2 * count * sizeof *times, 0);
  if (!in || !times) {
    return problem_set(wrong, KIND_INPUT, "ask for fewer replays",
                       "out of memory for the times of %zu replays", count);
  }
  vyre_recording *rec = NULL;
  vyre_code code = vyre_recording_create(s->device, &rec, &st);
  if (code == VYRE_OK) {
    code = record_in(s, rec, in, in + s->input_count, &st);
  }
  if (code == VYRE_OK) code = measure(s, rec, times, times + count, &st);
  vyre_recording_release(rec);
  return code == VYRE_OK || problem_from_status(wrong, &st);
}
