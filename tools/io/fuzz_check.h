/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks that the fuzz targets of all input formats share. */
#ifndef VYRE_TOOLS_IO_FUZZ_CHECK_H
#define VYRE_TOOLS_IO_FUZZ_CHECK_H

#include <stdlib.h>
#include <string.h>

#include "io/read_json.h"
#include "plan/read_plan.h"
#include "plan/svg.h"

#define MUST(condition)        \
  do {                         \
    if (!(condition)) abort(); \
  } while (0)

static inline bool any_token(json_reader *reader, const token *t) {
  (void)reader;
  (void)t;
  return true;
}

/* Checks that the text is valid JSON. */
static inline void must_be_json(const sink *text, vyre_arena *arena) {
  problem wrong = {0};
  input in = {.label = "answer", .text = text->data, .length = text->length};
  json_reader reader = {
      .in = &in, .arena = arena, .wrong = &wrong, .handle = any_token};
  MUST(json_read(&reader));
}

/* Checks that an error has a kind, a message, a fix and a position. */
static inline void must_be_told(const problem *wrong, const input *in,
                                vyre_arena *arena) {
  MUST(wrong->kind && wrong->message[0] && wrong->fix[0]);
  if (in && strcmp(wrong->kind, KIND_INPUT) == 0) {
    MUST(wrong->line >= 1 && wrong->column >= 1);
    MUST(wrong->line <= in->length + 1 && wrong->column <= in->length + 1);
  }
  sink text = {0};
  problem_text(wrong, &text);
  for (size_t i = 0; i < text.length; i++) {
    MUST((unsigned char)text.data[i] >= 0x20 || text.data[i] == '\n');
  }
  text.length = 0;
  problem_json(wrong, &text);
  must_be_json(&text, arena);
  sink_deinit(&text);
}

static inline void status_must_be_told(const vyre_status *st,
                                       vyre_arena *arena) {
  problem wrong = {0};
  problem_from_status(&wrong, st);
  must_be_told(&wrong, NULL, arena);
}

static inline uint64_t rounded(const vyre_interval *interval) {
  uint64_t unit = interval->alignment ? interval->alignment : 1;
  uint64_t rest = interval->size % unit;
  return rest ? interval->size + (unit - rest) : interval->size;
}

/* Checks that live intervals do not overlap, offsets are aligned and the
 * totals are right. */
static inline void must_be_placed(const vyre_interval *intervals, size_t count,
                                  const vyre_placement_plan *plan) {
  uint64_t top = 0;
  MUST(plan->interval_count == count);
  for (size_t i = 0; i < count; i++) {
    const vyre_interval *a = &intervals[i];
    uint64_t end = plan->offsets[i] + rounded(a);
    if (a->size == 0) continue;
    MUST(end > plan->offsets[i]);
    MUST(plan->offsets[i] % (a->alignment ? a->alignment : 1) == 0);
    if (end > top) top = end;
    for (size_t j = 0; j < i; j++) {
      const vyre_interval *b = &intervals[j];
      if (b->size == 0 || a->first_group > b->last_group ||
          b->first_group > a->last_group) {
        continue;
      }
      MUST(plan->offsets[j] + rounded(b) <= plan->offsets[i] ||
           end <= plan->offsets[j]);
    }
  }
  MUST(plan->placed_bytes == top);
  MUST(plan->lower_bound_bytes <= plan->placed_bytes);
  MUST(plan->gap_bytes == plan->placed_bytes - plan->lower_bound_bytes);
}

enum { MAX_PLACED = 300 };

/* Places and draws the input, without the search, which may take long. */
static inline void check_place(const place_input *in, vyre_arena *arena) {
  if (in->count > MAX_PLACED) return;
  vyre_placement_options options = {.heuristic_steps = 20000,
                                    .no_search = true};
  vyre_placement_scratch scratch = {0};
  vyre_placement_plan plan;
  vyre_status st = {0};
  if (vyre_placement_plan_build(in->intervals, in->count, &options, &scratch,
                                arena, &plan, &st) == VYRE_OK) {
    must_be_placed(in->intervals, in->count, &plan);
    sink drawing = {0};
    svg_place(in, &plan, &drawing);
    vyre_placement_plan_print(&plan, in->intervals, sink_writer(&drawing));
    sink_deinit(&drawing);
  } else {
    status_must_be_told(&st, arena);
  }
  vyre_placement_scratch_deinit(&scratch);
}

#endif
