/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the answers of the subcommands share. */
#ifndef VYRE_TOOLS_PLAN_PLAN_JSON_H
#define VYRE_TOOLS_PLAN_PLAN_JSON_H

#include "vyre/placement.h"
#include "vyre/queue.h"

#include "cli/error.h"
#include "io/json_out.h"

/* {"ok":true ... }\n */
json_out json_begin(sink *out);
void json_end(json_out *json);

void json_queue_fields(json_out *json, const vyre_queue_plan *plan);

/* The figures of a placement, without its intervals. */
void json_placement_fields(json_out *json, const vyre_placement_plan *plan);

/* Refuses a drawing on standard output, which is the answer's. NULL is fine. */
bool check_drawing(const char *svg_path, problem *wrong);

/* Publishes the answer, or reports the failure. Frees the sinks. */
int finish_plan(const vyre_status *st, sink *out, const char *svg_path,
                sink *svg, bool json);

#endif
