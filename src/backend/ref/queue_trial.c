/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs the items of a queue in another order, with the pushes in the order of
 * the items. */
#include <string.h>

#include "backend/ref/queue_internal.h"
#include "base/memory.h"
#include "base/status.h"

static ref_order order_of(const ref_trial *t, uint64_t count) {
  if (t->canonical || count < 2) return ref_order_forward(count);
  if (t->backward) return ref_order_backward(count);
  return ref_order_make(count, t->seed + t->chunks);
}

static vyre_code run_item(ref_drain *r, int part, const uint32_t *items,
                          uint64_t i) {
  ref_machine *m = &r->machines[part];
  r->chunk.items = items + i * r->info->item_words;
  r->chunk.window = r->state->window;
  r->chunk.position = r->state->position + i;
  r->chunk.pushing = 0;
  return ref_run_items(m, 1);
}

/* Appends what the items pushed to @p out, item by item. */
static uint64_t gather(const ref_drain *r, uint64_t count, uint32_t *out,
                       uint64_t at) {
  const ref_trial *t = r->trial;
  const size_t words = r->info->item_words;
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t from = t->first[i], some = t->counts[i];
    if (some == 0) continue;
    memcpy(out + at * words, t->pushed + from * words,
           (size_t)some * words * sizeof *out);
    memcpy(t->placed + at, t->pushers + from, (size_t)some * sizeof *t->placed);
    at += some;
  }
  return at;
}

vyre_code ref_trial_run(ref_drain *r, int part, const uint32_t *items,
                        uint64_t count) {
  ref_trial *t = r->trial;
  ref_chunk *c = &r->chunk;
  const bool is_list = !c->next;
  const ref_order order = order_of(t, count);
  uint32_t *out = c->out;
  const uint64_t at = c->out_count;
  t->chunks++;
  c->pushers = is_list ? t->pushers : t->placed;
  if (is_list) {
    c->out = t->pushed;
    c->out_count = 0;
    memset(t->counts, 0, (size_t)count * sizeof *t->counts);
  }
  vyre_code code = VYRE_OK;
  for (uint64_t k = 0; k < count && code == VYRE_OK && !c->has_failed; k++) {
    const uint64_t i = ref_order_at(&order, k), before = c->out_count;
    code = run_item(r, part, items, i);
    if (!is_list) continue;
    t->first[i] = before;
    t->counts[i] = c->out_count - before;
  }
  if (is_list) {
    c->out_count = gather(r, count, out, at);
    c->out = out;
  }
  c->pushers = NULL;
  return code;
}

/* --- queues without windows --------------------------------------------------*/

/* Returns the index of the next item in a pool of @p count items. */
static uint64_t pick(const ref_trial *t, uint64_t count) {
  if (t->pool == REF_POOL_NEWEST) return count - 1;
  if (t->pool == REF_POOL_OLDEST) return 0;
  return ref_mix(t->seed + t->chunks) % count;
}

vyre_code ref_trial_pool(ref_drain *r) {
  ref_trial *t = r->trial;
  vyre__queue_state *s = r->state;
  const size_t words = r->info->item_words;
  const uint32_t pushes = r->info->pushes;
  uint64_t held = s->current + s->next;
  vyre_code code = VYRE_OK;
  for (; held > 0 && code == VYRE_OK && !r->chunk.has_failed; t->chunks++) {
    const uint64_t i = pick(t, held--);
    uint32_t *at = r->items + i * words;
    memcpy(r->list, at, words * sizeof *at);
    if (t->pool == REF_POOL_RANDOM) {
      memmove(at, r->items + held * words, words * sizeof *at);
    } else {
      memmove(at, at + words, (size_t)(held - i) * words * sizeof *at);
    }
    t->is_cut_short = pushes > r->info->capacity - held;
    if (t->is_cut_short) break;
    r->chunk.out = r->items;
    r->chunk.out_count = held;
    s->position = 0;
    code = run_item(r, VYRE__QUEUE_PUSH, r->list, 0);
    held = r->chunk.out_count;
  }
  s->current = held;
  s->next = 0;
  return code;
}

/* --- logs ----------------------------------------------------------------------*/

static uint64_t hash_bytes(const unsigned char *bytes, size_t size) {
  uint64_t hash = size;
  for (size_t i = 0; i < size; i++) hash = ref_mix(hash ^ bytes[i]);
  return hash;
}

static ref_window_log *next_entry(ref_drain *r) {
  ref_trial *t = r->trial;
  if (t->log_count == t->log_capacity) {
    const size_t capacity = t->log_capacity ? 2 * t->log_capacity : 64;
    ref_window_log *larger =
        vyre__arena_array(r->launch.scratch, capacity, sizeof *larger);
    if (!larger) return NULL;
    if (t->log_count > 0) memcpy(larger, t->log, t->log_count * sizeof *larger);
    t->log = larger;
    t->log_capacity = capacity;
  }
  return &t->log[t->log_count++];
}

static void clear_hashes(ref_drain *r) {
  for (int i = 0; i < VYRE__QUEUE_PARTS; i++) {
    ref_machine *m = &r->machines[i];
    if (!m->node_hashes) continue;
    memset(m->node_hashes, 0, m->program->node_count * sizeof(uint64_t));
  }
}

vyre_code ref_trial_window(ref_drain *r) {
  ref_trial *t = r->trial;
  ref_watch *w = r->machines[VYRE__QUEUE_PUSH].watch;
  if (r->windows + 1 == t->from) clear_hashes(r);
  if (!t->has_log) return VYRE_OK;
  ref_window_log *entry = next_entry(r);
  if (!entry)
    return vyre__no_memory(r->machines[0].st, "ref", "windows", t->log_count);
  *entry = (ref_window_log){.sums = {r->state->sums[0], r->state->sums[1]},
                            .items = r->state->position,
                            .value = hash_bytes(w->bytes, w->size),
                            .writer = w->writer};
  w->writer = (ref_cause){0};
  return VYRE_OK;
}
