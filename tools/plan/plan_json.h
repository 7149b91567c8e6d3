/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* JSON output shared by the planning commands. */
#ifndef VYRE_TOOLS_PLAN_PLAN_JSON_H
#define VYRE_TOOLS_PLAN_PLAN_JSON_H

#include "vyre/placement.h"
#include "vyre/queue.h"

#include "cli/error.h"
#include "io/json_out.h"
#include "io/read_file.h"

/* Writes {"ok":true ... }
 * . */
json_out json_begin(sink *out);
void json_end(json_out *json);

void json_queue_fields(json_out *json, const vyre_queue_plan *plan);

/* Writes the totals of a placement, without its intervals. */
void json_placement_fields(json_out *json, const vyre_placement_plan *plan);

/* Refuses to draw to standard output, which carries the answer. Accepts
 * NULL. */
bool check_drawing(const char *svg_path, const char *source, problem *wrong);

/* Replaces @p wrong if the file, which the command @p name could not read, is a
 * kernel. Returns false. */
bool explain_kernel(const input *in, const char *name, problem *wrong);

/* Publishes the answer, or reports the failure. Frees the sinks. */
int finish_plan(const vyre_status *st, sink *out, const char *svg_path,
                sink *svg, bool json);

#endif
