/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `vyre plan`: finds the subject. */
#include "cli/group.h"

static const group_member subjects[] = {
    {"queue", plan_queue},       {"expansion", plan_expansion},
    {"frontier", plan_frontier}, {"place", plan_place},
    {"bindings", plan_bindings},
};

int plan_command(int count, char **words, bool json) {
  return group_run("plan", subjects, sizeof subjects / sizeof subjects[0],
                   count, words, json);
}
