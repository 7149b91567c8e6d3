/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Drains work queues, one item at a time: the oracle of all other devices. */
#include <string.h>

#include "backend/ref/queue_internal.h"
#include "base/clock.h"
#include "base/status.h"
#include "ir/scalar.h"

/* --- operations of kernels -------------------------------------------------*/

uint64_t ref_queue_value(const ref_machine *m, const vyre__node *node) {
  const ref_chunk *c = m->chunk;
  if (node->op == VYRE__OP_WINDOW) return (uint32_t)c->window;
  if (node->op == VYRE__OP_ITEM_INDEX)
    return (uint32_t)(c->position + m->group_index);
  const vyre__queue_clauses *queue = m->program->queue;
  const uint32_t *at =
      c->items + m->group_index * vyre__queue_item_words(queue);
  for (uint32_t i = 0; i < node->aux; i++)
    at += vyre__is_wide(queue->fields[i].type) ? 2 : 1;
  return vyre__is_wide(node->type) ? (uint64_t)at[1] << 32 | at[0] : at[0];
}

static bool has_bit(const uint32_t *bits, uint64_t key) {
  return bits[key / 32] >> key % 32 & 1;
}

static void set_bit(uint32_t *bits, uint64_t key) {
  bits[key / 32] |= UINT32_C(1) << key % 32;
}

uint64_t ref_queue_item(const ref_machine *m) {
  const ref_chunk *c = m->chunk;
  return c->next ? c->items[m->group_index] : c->position + m->group_index;
}

uint64_t ref_queue_item_hash(const ref_machine *m) {
  const uint32_t words = vyre__queue_item_words(m->program->queue);
  const uint32_t *at = m->chunk->items + m->group_index * words;
  uint64_t hash = 0;
  for (uint32_t i = 0; i < words; i++) hash = ref_mix(hash ^ at[i]);
  return hash;
}

ref_cause ref_queue_cause(const ref_machine *m, vyre__id id) {
  const vyre__source_loc loc = vyre__source_loc_of(m->program, id);
  return (ref_cause){loc.line, loc.column, ref_queue_item(m), m->chunk->window};
}

static bool push_key(const ref_machine *m, vyre__id id, uint64_t key) {
  ref_chunk *c = m->chunk;
  if (key >= c->keys) {
    c->dropped++;
    return false;
  }
  if (c->seen && has_bit(c->seen, key)) return true;
  set_bit(c->next, key);
  if (c->pushers &&
      (c->pushers[key].window != c->window || c->pushers[key].line == 0)) {
    c->pushers[key] = ref_queue_cause(m, id);
  }
  return true;
}

bool ref_queue_push(ref_machine *m, vyre__id id, const uint64_t *values) {
  ref_chunk *c = m->chunk;
  if (c->next) return push_key(m, id, values[0]);
  if (c->pushing != m->group_index + 1) {
    c->pushing = m->group_index + 1;
    c->item_pushes = 0;
  }
  const vyre__queue_clauses *queue = m->program->queue;
  if (c->item_pushes >= c->max_pushes) {
    if (c->has_failed) return false;
    c->has_failed = true;
    c->failed_item = c->position + m->group_index;
    c->failed_node = id;
    return false;
  }
  c->item_pushes++;
  if (c->pushers) c->pushers[c->out_count] = ref_queue_cause(m, id);
  const uint32_t words = vyre__queue_item_words(queue);
  uint32_t *at = c->out + c->out_count++ * words;
  for (uint32_t i = 0; i < queue->field_count; i++) {
    *at++ = (uint32_t)values[i];
    if (vyre__is_wide(queue->fields[i].type))
      *at++ = (uint32_t)(values[i] >> 32);
  }
  return true;
}

bool ref_queue_in_window(const ref_machine *m, uint64_t key) {
  const ref_chunk *c = m->chunk;
  return key < c->keys && has_bit(c->in_window, key);
}

/* --- steps of a drain ------------------------------------------------------*/

static vyre_code run_part(ref_drain *r, int part, const uint32_t *items,
                          uint64_t count) {
  ref_machine *m = &r->machines[part];
  r->chunk.items = items;
  r->chunk.window = r->state->window;
  r->chunk.position = r->state->position;
  r->chunk.pushing = 0;
  return ref_run_items(m, count);
}

/* Runs items of the current window, and counts them. */
static vyre_code run_chunk(ref_drain *r, int part, const uint32_t *items,
                           uint64_t count) {
  vyre__queue_state *s = r->state;
  VYRE_TRY(r->trial ? ref_trial_run(r, part, items, count)
                    : run_part(r, part, items, count));
  for (uint64_t i = 0; r->info->has_order_hash && i < count; i++) {
    vyre__queue_sum(s->sums, s->position + i, items + i * r->info->item_words,
                    r->info->item_words);
  }
  s->position += count;
  s->current -= count;
  r->stats->items += count;
  r->stats->chunks++;
  return VYRE_OK;
}

static void note_held(ref_drain *r, uint64_t held) {
  if (held > r->stats->high_water) r->stats->high_water = held;
}

static void begin_checked_window(ref_drain *r) {
  for (int i = 0; i < VYRE__QUEUE_PARTS; i++) {
    if (r->machines[i].check) ref_check_window(&r->machines[i]);
  }
}

/* Returns the number of items of the next chunk; 0: none fits. */
static uint64_t chunk_size(const ref_drain *r, uint64_t held) {
  const uint64_t left = r->state->current;
  const uint64_t count = vyre__queue_chunk(r->info, held, left);
  ref_trial *t = r->trial;
  if (!t || !t->cuts || count == 0) return count;
  return 1 + ref_mix(t->seed + ++t->chunks) % count;
}

static vyre_code end_window(ref_drain *r) {
  vyre__queue_state *s = r->state;
  if (r->trial) VYRE_TRY(ref_trial_window(r));
  begin_checked_window(r);
  if (r->info->has_order_hash) vyre__queue_fold(s, s->position);
  s->last_items = s->position;
  s->position = 0;
  s->window++;
  r->stats->windows++;
  r->stats->narrow_windows++;
  r->windows++;
  return VYRE_OK;
}

/* Returns true if the drain must end before the next chunk. */
static bool must_stop(ref_drain *r) {
  vyre__drain *d = r->drain;
  if (r->state->position == 0 && r->windows >= d->max_windows) {
    d->stop = VYRE_QUEUE_STOP_MAX_WINDOWS;
    return true;
  }
  /* sets with further bodies are at rest between windows only */
  if (r->state->position > 0 && (r->info->has_by || r->info->has_pull))
    return false;
  if (atomic_load(d->is_cancelled)) {
    d->stop = VYRE_QUEUE_STOP_CANCELLED;
    return true;
  }
  if (d->stop_ns && vyre__clock_ns() >= d->stop_ns) {
    d->stop = VYRE_QUEUE_STOP_TIMEOUT;
    return true;
  }
  return false;
}

static bool has_failed(ref_drain *r) {
  if (!r->chunk.has_failed) return false;
  r->drain->stop = VYRE_QUEUE_STOP_PUSHES;
  r->drain->failed_item = r->chunk.failed_item;
  r->drain->failed_line =
      vyre__source_loc_of(r->machines[0].program, r->chunk.failed_node).line;
  return true;
}

/* --- lists of items --------------------------------------------------------*/

/* Brings the queue to rest: the current window is at @p now, the next one at
 * @p later; one of them is `items`. */
static void rest(const ref_drain *r, const uint32_t *now,
                 const uint32_t *later) {
  const size_t words = r->info->item_words;
  const size_t current = (size_t)r->state->current * words;
  const size_t next = (size_t)r->state->next * words;
  const bool is_first = now >= r->items && later == r->list;
  if (is_first) memmove(r->items, now, current * sizeof *now);
  memmove(r->items + current, later, next * sizeof *later);
  if (!is_first) memcpy(r->items, now, current * sizeof *now);
}

static vyre_code drain_windows(ref_drain *r) {
  const uint32_t words = r->info->item_words;
  vyre__queue_state *s = r->state;
  uint32_t *now = r->items, *later = r->list, *first = now;
  memcpy(later, now + s->current * words, (size_t)s->next * words * 4);
  vyre_code code = VYRE_OK;
  while (code == VYRE_OK) {
    if (s->current == 0) {
      if (s->position > 0) {
        code = end_window(r);
        if (code != VYRE_OK) break;
      }
      if (s->next == 0) break;
      uint32_t *swapped = now;
      now = first = later;
      later = swapped;
      s->current = s->next;
      s->next = 0;
    }
    if (must_stop(r)) break;
    const uint64_t count = chunk_size(r, s->current + s->next);
    if (count == 0) {
      r->drain->stop = VYRE_QUEUE_STOP_FULL;
      break;
    }
    r->chunk.out = later;
    r->chunk.out_count = s->next;
    code = run_chunk(r, VYRE__QUEUE_PUSH, first, count);
    if (code != VYRE_OK || has_failed(r)) break;
    first += count * words;
    r->stats->pushed += r->chunk.out_count - s->next;
    s->next = r->chunk.out_count;
    note_held(r, s->current + s->next);
  }
  if (code == VYRE_OK) rest(r, first, later);
  return code;
}

static vyre_code drain_newest(ref_drain *r) {
  const uint32_t words = r->info->item_words;
  vyre__queue_state *s = r->state;
  vyre_code code = VYRE_OK;
  while (code == VYRE_OK && s->current > 0 && !must_stop(r)) {
    const uint64_t count = vyre__queue_newest(r->info, s->current);
    if (count == 0) {
      r->drain->stop = VYRE_QUEUE_STOP_FULL;
      break;
    }
    const uint64_t held = s->current - count;
    memcpy(r->list, r->items + held * words, (size_t)count * words * 4);
    r->chunk.out = r->items;
    r->chunk.out_count = held;
    code = run_chunk(r, VYRE__QUEUE_PUSH, r->list, count);
    if (code != VYRE_OK || has_failed(r)) break;
    r->stats->pushed += r->chunk.out_count - held;
    s->current = r->chunk.out_count;
    note_held(r, s->current);
    code = end_window(r);
  }
  return code;
}

/* --- sets ------------------------------------------------------------------*/

static size_t bit_words(uint64_t keys) {
  return (size_t)((keys + 31) / 32);
}

/* Moves the keys of a bit set to a list. Returns their number. */
static uint64_t take_keys(uint32_t *bits, uint64_t keys, uint32_t *to) {
  uint64_t count = 0;
  for (uint64_t key = 0; key < keys; key++) {
    if (has_bit(bits, key)) to[count++] = (uint32_t)key;
  }
  memset(bits, 0, bit_words(keys) * sizeof *bits);
  return count;
}

/* Evaluates `by` for keys, and adds them to those that are pending. */
static vyre_code add_pending(ref_drain *r, const uint32_t *keys,
                             uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    uint32_t priority = 0;
    r->chunk.next = NULL;
    r->chunk.out = &priority;
    r->chunk.out_count = 0;
    VYRE_TRY(run_part(r, VYRE__QUEUE_BY, &keys[i], 1));
    r->priorities[keys[i]] = priority;
    set_bit(r->pending, keys[i]);
    if (r->state->window > 0 && priority < r->state->priority)
      r->stats->priority_fell++;
  }
  r->chunk.next = r->next;
  return VYRE_OK;
}

/* Makes the pending keys with the lowest priority the current window, and the
 * others the next one. */
static void select_window(ref_drain *r) {
  const uint64_t keys = r->drain->keys;
  uint32_t lowest = UINT32_MAX;
  uint64_t current = 0, next = 0;
  for (uint64_t key = 0; key < keys; key++) {
    if (has_bit(r->pending, key) && r->priorities[key] < lowest)
      lowest = r->priorities[key];
  }
  for (uint64_t key = 0; key < keys; key++) {
    if (!has_bit(r->pending, key)) continue;
    if (r->priorities[key] == lowest) {
      r->items[current++] = (uint32_t)key;
    } else {
      r->list[next++] = (uint32_t)key;
    }
  }
  for (uint64_t i = 0; i < current; i++)
    r->pending[r->items[i] / 32] &= ~(UINT32_C(1) << r->items[i] % 32);
  memcpy(r->items + current, r->list, (size_t)next * sizeof *r->items);
  r->state->priority = lowest;
  r->state->current = current;
  r->state->next = next;
}

/* Drops the initial keys that are not below N. */
static void drop_keys(ref_drain *r) {
  uint64_t kept = 0;
  for (uint64_t i = 0; i < r->state->current; i++) {
    if (r->items[i] < r->drain->keys) {
      r->items[kept++] = r->items[i];
    } else {
      r->stats->dropped_keys++;
    }
  }
  r->state->current = kept;
}

/* Rebuilds the bit sets of a queue at rest. */
static vyre_code begin_set(ref_drain *r) {
  vyre__queue_state *s = r->state;
  const bool is_fresh = s->window == 0 && s->position == 0 && s->seen == 0;
  const size_t bytes = bit_words(r->drain->keys) * sizeof(uint32_t);
  memset(r->next, 0, bytes);
  memset(r->pending, 0, bytes);
  if (is_fresh) {
    drop_keys(r);
    if (r->seen) memset(r->seen, 0, bytes);
    for (uint64_t i = 0; r->seen && i < s->current; i++)
      set_bit(r->seen, r->items[i]);
    s->seen = s->current;
  }
  if (!r->info->has_by) {
    for (uint64_t i = 0; i < s->next; i++)
      set_bit(r->next, r->items[s->current + i]);
    return VYRE_OK;
  }
  const uint64_t held = s->current + s->next;
  if (is_fresh) {
    VYRE_TRY(add_pending(r, r->items, held));
  } else {
    for (uint64_t i = 0; i < held; i++) set_bit(r->pending, r->items[i]);
  }
  if (held > 0) select_window(r);
  return VYRE_OK;
}

/* Runs `pull` for the keys that are in no window. */
static vyre_code run_pull(ref_drain *r, const uint32_t *items) {
  const uint64_t keys = r->drain->keys, count = r->state->position;
  uint64_t unseen = 0;
  memset(r->in_window, 0, bit_words(keys) * sizeof *r->in_window);
  for (uint64_t i = 0; i < count; i++) set_bit(r->in_window, items[i]);
  for (uint64_t key = 0; key < keys; key++) {
    if (!has_bit(r->seen, key)) r->list[unseen++] = (uint32_t)key;
  }
  r->stats->pull_windows++;
  return r->trial ? ref_trial_run(r, VYRE__QUEUE_PULL, r->list, unseen)
                  : run_part(r, VYRE__QUEUE_PULL, r->list, unseen);
}

/* Ends a window of a set, and begins the next one. */
static vyre_code next_set(ref_drain *r) {
  vyre__queue_state *s = r->state;
  const uint64_t keys = r->drain->keys;
  const uint64_t count = take_keys(r->next, keys, r->list);
  VYRE_TRY(end_window(r));
  r->stats->pushed += count;
  r->stats->dropped_keys += r->chunk.dropped;
  r->chunk.dropped = 0;
  s->seen += r->seen ? count : 0;
  for (uint64_t i = 0; r->seen && i < count; i++) set_bit(r->seen, r->list[i]);
  if (!r->info->has_by) {
    memcpy(r->items, r->list, (size_t)count * sizeof *r->items);
    s->current = count;
    s->next = 0;
  } else {
    VYRE_TRY(add_pending(r, r->list, count));
    select_window(r);
  }
  note_held(r, s->current + s->next);
  return VYRE_OK;
}

static vyre_code drain_set(ref_drain *r) {
  vyre__queue_state *s = r->state;
  const uint32_t *first = r->items;
  VYRE_TRY(begin_set(r));
  while (s->current > 0 && !must_stop(r)) {
    if (s->position == 0)
      s->is_pulling = vyre__queue_pulls(r->info, s, r->drain->keys);
    const uint64_t count = chunk_size(r, 0);
    VYRE_TRY(run_chunk(r, s->is_pulling ? VYRE__QUEUE_VISIT : VYRE__QUEUE_PUSH,
                       first, count));
    first += count;
    if (s->current > 0) continue;
    if (s->is_pulling) VYRE_TRY(run_pull(r, r->items));
    VYRE_TRY(next_set(r));
    first = r->items;
  }
  if (r->info->has_by || s->current == 0) return VYRE_OK;
  memmove(r->items, first, (size_t)s->current * sizeof *first);
  s->next = take_keys(r->next, r->drain->keys, r->items + s->current);
  r->stats->dropped_keys += r->chunk.dropped;
  return VYRE_OK;
}

/* --- entry points ----------------------------------------------------------*/

void ref_queue_plan(const vyre_device *device, vyre__queue_info *info) {
  (void)device;
  const uint64_t list = info->capacity * info->item_words * 4;
  const uint64_t bits = (info->capacity + 31) / 32 * 4;
  if (info->mode != VYRE_QUEUE_MODE_NEWEST)
    info->mode = VYRE_QUEUE_MODE_WINDOWS;
  if (info->items_per_chunk == 0) info->items_per_chunk = INT32_MAX;
  if (info->items_per_chunk > info->capacity && info->capacity > 0)
    info->items_per_chunk = info->capacity;
  info->work_bytes = ref_queue_is_set(info) ? list + 3 * bits : list;
}

static vyre_code begin_machines(ref_drain *r, vyre_status *st) {
  const vyre__drain *d = r->drain;
  for (int i = 0; i < VYRE__QUEUE_PARTS; i++) {
    ref_machine *m = &r->machines[i];
    if (!d->parts[i]) continue;
    m->arena = d->launch->scratch;
    m->st = st;
    m->chunk = &r->chunk;
    VYRE_TRY(ref_machine_begin(m, d->parts[i], &r->launch));
    VYRE_TRY(ref_prepare(m));
    const vyre_check_options *check = &r->launch.check;
    if (!check->out_of_bounds && !check->races && !check->schedules) continue;
    m->check = ref_check_make(m, st);
    if (!m->check) return VYRE_OUT_OF_MEMORY;
  }
  return VYRE_OK;
}

vyre_code ref_queue_run(ref_drain *r) {
  const bool is_newest = r->info->mode == VYRE_QUEUE_MODE_NEWEST;
  vyre_code code = r->trial && r->trial->pool  ? ref_trial_pool(r)
                   : ref_queue_is_set(r->info) ? drain_set(r)
                   : is_newest                 ? drain_newest(r)
                                               : drain_windows(r);
  for (int i = 0; i < VYRE__QUEUE_PARTS && code == VYRE_OK; i++) {
    if (r->drain->parts[i]) ref_settle_sums(&r->machines[i]);
  }
  return code;
}

vyre_code ref_queue_drain(vyre__drain *drain, vyre_status *st) {
  const vyre__queue_info *info = drain->info;
  ref_drain r = {.drain = drain,
                 .info = info,
                 .state = drain->state,
                 .stats = drain->stats,
                 .launch = *drain->launch,
                 .items = vyre__queue_memory(drain, info->items),
                 .list = vyre__queue_memory(drain, info->work)};
  r.launch.grid[0] = r.launch.grid[1] = r.launch.grid[2] = 1;
  r.launch.grid[0] = UINT32_MAX; /* an id is the position in the chunk */
  r.launch.deadline_ns = drain->kill_ns;
  r.launch.timeout_ns = drain->timeout_ns;
  r.chunk.max_pushes =
      ref_queue_is_set(info) ? 1 : info->pushes; /* 1: of `by` */
  if (ref_queue_is_set(info)) {
    const size_t words = bit_words(info->capacity);
    r.next = r.list + (size_t)info->capacity;
    r.in_window = r.next + words;
    r.pending = r.in_window + words;
    if (info->kind == VYRE__QUEUE_ONCE)
      r.seen = vyre__queue_memory(drain, info->seen);
    r.priorities = vyre__queue_memory(drain, info->priorities);
    r.chunk.next = r.next;
    r.chunk.seen = r.seen;
    r.chunk.in_window = r.in_window;
    r.chunk.keys = drain->keys;
  }
  drain->stop = VYRE_QUEUE_STOP_EMPTY;
  drain->stats->submissions++;
  drain->stats->waits++;
  fenv_t saved;
  vyre__float_begin(&saved);
  ref_queue_check *check = NULL;
  vyre_code code = begin_machines(&r, st);
  if (code == VYRE_OK) code = ref_queue_check_begin(&r, &check);
  if (code == VYRE_OK) code = ref_queue_run(&r);
  if (code == VYRE_OK && check) code = ref_queue_check_end(check);
  vyre__float_end(&saved);
  if (code == VYRE_OK) vyre__launch_read_back(&r.launch);
  return code;
}
