/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Readers of planner inputs. Each is a function of bytes: it fills *out,
 * whose arrays live in @p arena, or sets the problem. */
#ifndef VYRE_TOOLS_PLAN_READ_PLAN_H
#define VYRE_TOOLS_PLAN_READ_PLAN_H

#include "vyre/binding.h"
#include "vyre/frontier.h"
#include "vyre/placement.h"
#include "vyre/program.h"

#include "io/read_file.h"

bool read_frontier_json(const input *in, vyre_arena *arena,
                        vyre_frontier_desc *out, problem *wrong);

/* Name of an interval in a file. */
typedef struct interval_id {
  const char *text; /* NULL: unnamed; its position is used */
  size_t length;
  bool number; /* written as a number in JSON */
} interval_id;

typedef struct place_input {
  const vyre_interval *intervals;
  const interval_id *ids;
  size_t count;
} place_input;

bool read_place_json(const input *in, vyre_arena *arena, place_input *out,
                     problem *wrong);
bool read_place_csv(const input *in, vyre_arena *arena, place_input *out,
                    problem *wrong);

/* Reads JSON if the first character other than white space is a brace or
 * bracket, otherwise CSV. */
bool read_place(const input *in, vyre_arena *arena, place_input *out,
                problem *wrong);

/* Writes rows `id,lower,upper,size,offset`, or the first four columns
 * without offsets. Returns false if an upper end exceeds 64 bits. */
bool write_place_csv(const place_input *in, const uint64_t *offsets, sink *out,
                     problem *wrong);

typedef struct bindings_input {
  vyre_program_desc program;
  bool has_lengths;
  const vyre_input_extent *lengths;
  size_t length_count;
} bindings_input;

bool read_bindings_json(const input *in, vyre_arena *arena, bindings_input *out,
                        problem *wrong);

#endif
