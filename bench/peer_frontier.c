/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A plain C implementation of frontier planning, for comparison. */
#include "peer_frontier.h"

#include <stdlib.h>
#include <string.h>

static bool group_push(peer_group *group, size_t wave) {
  if (group->count == group->capacity) {
    size_t capacity = group->capacity ? group->capacity * 2 : 4;
    size_t *grown = realloc(group->waves, capacity * sizeof *grown);
    if (!grown) return false;
    group->waves = grown;
    group->capacity = capacity;
  }
  group->waves[group->count++] = wave;
  return true;
}

static bool plan_push(peer_plan *plan, peer_group group) {
  if (plan->count == plan->capacity) {
    size_t capacity = plan->capacity ? plan->capacity * 2 : 4;
    peer_group *grown = realloc(plan->groups, capacity * sizeof *grown);
    if (!grown) return false;
    plan->groups = grown;
    plan->capacity = capacity;
  }
  plan->groups[plan->count++] = group;
  return true;
}

void peer_plan_free(peer_plan *plan) {
  for (size_t i = 0; i < plan->count; i++) free(plan->groups[i].waves);
  free(plan->groups);
  *plan = (peer_plan){0};
}

size_t peer_plan_bytes(const peer_plan *plan) {
  size_t bytes = plan->capacity * sizeof *plan->groups;
  for (size_t i = 0; i < plan->count; i++) {
    bytes += plan->groups[i].capacity * sizeof(size_t);
  }
  return bytes;
}

void peer_scratch_free(peer_scratch *s) {
  free(s->outgoing);
  free(s->indegree);
  free(s->offsets);
  free(s->targets);
  *s = (peer_scratch){0};
}

static bool scratch_fit(peer_scratch *s, size_t waves, size_t deps) {
  if (s->waves >= waves && s->deps >= deps) return true;
  peer_scratch_free(s);
  s->outgoing = malloc(waves * sizeof(size_t));
  s->indegree = malloc(waves * sizeof(size_t));
  s->offsets = malloc((waves + 1) * sizeof(size_t));
  s->targets = malloc(deps * sizeof(size_t) + 1);
  s->waves = waves;
  s->deps = deps;
  return s->outgoing && s->indegree && s->offsets && s->targets;
}

static bool rows(const vyre_frontier_desc *desc, peer_scratch *s) {
  size_t n = desc->wave_count;
  memset(s->outgoing, 0, n * sizeof(size_t));
  memset(s->indegree, 0, n * sizeof(size_t));
  for (size_t i = 0; i < desc->dependency_count; i++) {
    size_t before = desc->dependencies[i].before;
    size_t after = desc->dependencies[i].after;
    if (before >= n || after >= n || before == after) return false;
    s->outgoing[before]++;
    s->indegree[after]++;
  }
  s->offsets[0] = 0;
  for (size_t w = 0; w < n; w++) {
    s->offsets[w + 1] = s->offsets[w] + s->outgoing[w];
  }
  for (size_t w = 0; w < n; w++) s->outgoing[w] = s->offsets[w];
  for (size_t i = 0; i < desc->dependency_count; i++) {
    size_t before = desc->dependencies[i].before;
    s->targets[s->outgoing[before]++] = desc->dependencies[i].after;
  }
  return true;
}

static bool layers(const vyre_frontier_desc *desc, peer_scratch *s,
                   peer_plan *out) {
  size_t scheduled = 0;
  peer_group ready = {0};
  for (size_t w = 0; w < desc->wave_count; w++) {
    if (s->indegree[w] == 0 && !group_push(&ready, w)) {
      free(ready.waves);
      return false;
    }
  }
  while (ready.count > 0) {
    peer_group next = {0};
    scheduled += ready.count;
    for (size_t i = 0; i < ready.count; i++) {
      size_t w = ready.waves[i];
      for (size_t j = s->offsets[w]; j < s->offsets[w + 1]; j++) {
        size_t target = s->targets[j];
        if (--s->indegree[target] == 0 && !group_push(&next, target)) {
          free(next.waves);
          free(ready.waves);
          return false;
        }
      }
    }
    if (!plan_push(out, ready)) {
      free(next.waves);
      free(ready.waves);
      return false;
    }
    ready = next;
  }
  free(ready.waves);
  return scheduled == desc->wave_count;
}

static uint64_t fused(const vyre_frontier_wave *wave) {
  return wave->frontier_bytes + 4 * wave->scratch_bytes + wave->output_bytes;
}

static bool split(const vyre_frontier_desc *desc, const peer_plan *from,
                  peer_plan *out) {
  uint64_t budget = desc->budget_bytes - desc->resident_graph_bytes;
  for (size_t g = 0; g < from->count; g++) {
    peer_group current = {0};
    uint64_t bytes = 0;
    for (size_t i = 0; i < from->groups[g].count; i++) {
      size_t w = from->groups[g].waves[i];
      uint64_t wave = fused(&desc->waves[w]);
      bool ok = wave <= budget;
      if (ok && current.count > 0 && bytes + wave > budget) {
        ok = plan_push(out, current);
        if (ok) current = (peer_group){0};
        bytes = 0;
      }
      if (!ok || !group_push(&current, w)) {
        free(current.waves);
        return false;
      }
      bytes += wave;
    }
    if (current.count > 0 && !plan_push(out, current)) {
      free(current.waves);
      return false;
    }
  }
  return true;
}

static void peaks(const vyre_frontier_desc *desc, peer_plan *out) {
  for (size_t g = 0; g < out->count; g++) {
    uint64_t frontier = 0, scratch = 0, output = 0;
    const peer_group *group = &out->groups[g];
    for (size_t i = 0; i < group->count; i++) {
      const vyre_frontier_wave *wave = &desc->waves[group->waves[i]];
      frontier += wave->frontier_bytes;
      scratch += wave->scratch_bytes;
      output += wave->output_bytes;
    }
    if (group->count > out->widest) out->widest = group->count;
    if (frontier > out->peak_frontier) out->peak_frontier = frontier;
    if (scratch > out->peak_scratch) out->peak_scratch = scratch;
    if (output > out->peak_output) out->peak_output = output;
  }
}

bool peer_frontier(const vyre_frontier_desc *desc, peer_scratch *scratch,
                   peer_plan *out) {
  peer_plan unsplit = {0};
  *out = (peer_plan){0};
  bool ok = scratch_fit(scratch, desc->wave_count, desc->dependency_count) &&
            rows(desc, scratch) && layers(desc, scratch, &unsplit) &&
            split(desc, &unsplit, out);
  if (ok) peaks(desc, out);
  peer_plan_free(&unsplit);
  return ok;
}
