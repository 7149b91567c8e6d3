/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks whether the result of a queue depends on the order of its items:
 * repeats the drain with the items of its windows permuted and its windows cut,
 * and compares the outputs. If they differ, two more pairs of runs find the
 * first window with a difference, and what happened in it. */
#include <string.h>

#include "backend/ref/queue_internal.h"
#include "base/memory.h"
#include "base/status.h"

/* Contents of memory at one time. */
typedef struct snapshot {
  unsigned char **buffers; /* NULL: not written */
  unsigned char *queue;    /* the regions `items`, `seen` and `priorities` */
  vyre__queue_state state;
} snapshot;

struct ref_queue_check {
  ref_drain *r;
  snapshot before, after;
  ref_trial trial;
  struct ref_check *checks[VYRE__QUEUE_PARTS]; /* of the caller's run */
  uint32_t buffer;                             /* first output that differs */
  uint64_t index;
  size_t byte;
};

static ref_machine *main_machine(const ref_queue_check *q) {
  return &q->r->machines[VYRE__QUEUE_PUSH];
}

static vyre_code no_memory(const ref_queue_check *q, uint64_t bytes) {
  return vyre__no_memory(main_machine(q)->st, "ref", "bytes of a check", bytes);
}

/* --- snapshots -------------------------------------------------------------*/

static size_t bytes_of(const ref_view *view) {
  return (size_t)view->length * view->stride;
}

static bool is_kept(const ref_view *view) {
  return view->is_written && !view->is_shared && view->lane_bytes == 0 &&
         bytes_of(view) > 0;
}

static size_t queue_bytes(const ref_drain *r) {
  const vyre__queue_info *info = r->info;
  return (size_t)(info->items.size + info->seen.size + info->priorities.size);
}

/* Copies the regions of the queue to @p memory, or from there. */
static void copy_queue(const ref_drain *r, unsigned char *memory, bool saves) {
  const vyre__queue_region *regions[] = {&r->info->items, &r->info->seen,
                                         &r->info->priorities};
  for (size_t i = 0; i < 3; i++) {
    const size_t size = (size_t)regions[i]->size;
    unsigned char *own = vyre__queue_memory(r->drain, *regions[i]);
    if (size > 0) memcpy(saves ? memory : own, saves ? own : memory, size);
    memory += size;
  }
}

static vyre_code save(const ref_queue_check *q, snapshot *out) {
  const ref_drain *r = q->r;
  const ref_machine *m = main_machine(q);
  const size_t count = m->program->buffer_count;
  vyre_arena *arena = r->launch.scratch;
  out->buffers = vyre__arena_filled(arena, count, sizeof *out->buffers, 0);
  out->queue = vyre_arena_alloc(arena, queue_bytes(r), 0);
  if (!out->buffers || !out->queue) return no_memory(q, queue_bytes(r));
  for (size_t i = 0; i < count; i++) {
    const size_t bytes = bytes_of(&m->views[i]);
    if (!is_kept(&m->views[i])) continue;
    out->buffers[i] = vyre_arena_alloc(arena, bytes, 0);
    if (!out->buffers[i]) return no_memory(q, bytes);
    memcpy(out->buffers[i], m->views[i].data, bytes);
  }
  copy_queue(r, out->queue, true);
  out->state = *r->state;
  return VYRE_OK;
}

static void restore(const ref_queue_check *q, const snapshot *from) {
  const ref_drain *r = q->r;
  const ref_machine *m = main_machine(q);
  for (size_t i = 0; i < m->program->buffer_count; i++) {
    if (from->buffers[i])
      memcpy(m->views[i].data, from->buffers[i], bytes_of(&m->views[i]));
  }
  copy_queue(r, from->queue, false);
  *r->state = from->state;
}

/* --- trials ------------------------------------------------------------------*/

/* Runs the queue again from its first state. */
static vyre_code run_trial(ref_queue_check *q) {
  ref_drain *r = q->r;
  vyre__queue_info info = *r->info;
  const vyre__queue_info *own = r->info;
  vyre_queue_stats ignored = {0}, *stats = r->stats;
  restore(q, &q->before);
  info.has_order_hash = true; /* logs have the sums of windows */
  r->info = &info;
  r->stats = r->drain->stats = &ignored;
  r->windows = 0;
  r->chunk.dropped = 0;
  r->chunk.has_failed = false;
  r->trial = &q->trial;
  q->trial.chunks = 0;
  vyre_code code = ref_queue_run(r);
  r->trial = NULL;
  r->info = own;
  r->stats = r->drain->stats = stats;
  return code;
}

/* Finds the first output that differs from those of the caller's run. */
static bool differs(ref_queue_check *q) {
  const ref_machine *m = main_machine(q);
  for (uint32_t b = 0; b < m->program->buffer_count; b++) {
    const unsigned char *expected = q->after.buffers[b],
                        *got = m->views[b].data;
    if (!expected || memcmp(expected, got, bytes_of(&m->views[b])) == 0)
      continue;
    size_t at = 0;
    while (expected[at] == got[at]) at++;
    q->buffer = b;
    q->byte = at;
    q->index = at / m->views[b].stride;
    return true;
  }
  return false;
}

static vyre_code make_trial(ref_queue_check *q) {
  const vyre__queue_info *info = q->r->info;
  vyre_arena *arena = q->r->launch.scratch;
  ref_trial *t = &q->trial;
  const size_t count = (size_t)info->capacity + 1;
  t->pushed = vyre__arena_array(arena, count, 4 * (size_t)info->item_words);
  t->pushers = vyre__arena_filled(arena, count, sizeof *t->pushers, 0);
  t->placed = vyre__arena_filled(arena, count, sizeof *t->placed, 0);
  t->first = vyre__arena_array(arena, count, sizeof *t->first);
  t->counts = vyre__arena_array(arena, count, sizeof *t->counts);
  if (t->pushed && t->pushers && t->placed && t->first && t->counts)
    return VYRE_OK;
  return no_memory(q, count * sizeof *t->placed);
}

/* Chooses an order: backwards first, which finds the most, then random ones,
 * every other one with cut windows. */
static void choose(ref_queue_check *q, uint32_t number) {
  ref_trial *t = &q->trial;
  t->seed = ref_mix(q->r->launch.check.seed + number);
  t->canonical = false;
  t->backward = number == 0;
  t->cuts = number % 2 == 1;
  t->pool = REF_POOL_NONE;
  if (q->r->info->kind == VYRE__QUEUE_ANY)
    t->pool = (ref_pool)(REF_POOL_NEWEST + number % 3);
}

/* --- the first window with a difference ------------------------------------- */

/* Place and kind of a difference. */
typedef struct difference {
  bool has_window;
  uint64_t window;
  ref_cause effect; /* the push or the write */
  bool is_push;
} difference;

static void watch(const ref_queue_check *q, ref_watch *w) {
  const ref_view *view = &main_machine(q)->views[q->buffer];
  *w = (ref_watch){.bytes = view->data + q->index * view->stride,
                   .size = view->stride};
}

static void set_watch(const ref_queue_check *q, ref_watch *w) {
  for (int i = 0; i < VYRE__QUEUE_PARTS; i++) q->r->machines[i].watch = w;
}

/* Runs with a log of windows, which *log and *count receive. */
static vyre_code run_logged(ref_queue_check *q, ref_window_log **log,
                            size_t *count) {
  ref_watch w;
  ref_trial *t = &q->trial;
  watch(q, &w);
  set_watch(q, &w);
  t->has_log = true;
  t->log = NULL;
  t->log_count = t->log_capacity = 0;
  vyre_code code = run_trial(q);
  t->has_log = false;
  set_watch(q, NULL);
  *log = t->log;
  *count = t->log_count;
  return code;
}

static bool same_items(const ref_window_log *a, const ref_window_log *b) {
  return a->items == b->items && a->sums[0] == b->sums[0] &&
         a->sums[1] == b->sums[1];
}

/* Finds the first window in which two runs differ: in the items that it pushed,
 * or in the value that it wrote. */
static void compare_logs(const ref_window_log *a, size_t a_count,
                         const ref_window_log *b, size_t b_count,
                         difference *out) {
  const size_t least = a_count < b_count ? a_count : b_count;
  for (size_t i = 0; i <= least; i++) {
    const bool ends = i == least;
    if (ends && a_count == b_count) return;
    if (ends || !same_items(&a[i], &b[i])) {
      out->has_window = out->is_push = i > 0;
      out->window = i - 1;
      return;
    }
    if (a[i].value == b[i].value) continue;
    out->has_window = true;
    out->window = i;
    out->effect = b[i].writer.line ? b[i].writer : a[i].writer;
    return;
  }
}

/* --- what happened in that window --------------------------------------------*/

/* Pushes and atomics of one window, in one run. */
typedef struct detail {
  uint64_t *hashes[VYRE__QUEUE_PARTS];
  uint32_t *items;
  ref_cause *pushers;
  uint64_t count;
} detail;

static vyre_code allocate_hashes(const ref_queue_check *q, detail *d) {
  for (int i = 0; i < VYRE__QUEUE_PARTS; i++) {
    ref_machine *m = &q->r->machines[i];
    if (!m->program) continue;
    d->hashes[i] = vyre__arena_filled(
        q->r->launch.scratch, m->program->node_count, sizeof(uint64_t), 0);
    if (!d->hashes[i]) return no_memory(q, m->program->node_count);
    m->node_hashes = d->hashes[i];
  }
  return VYRE_OK;
}

static vyre_code keep_pushes(const ref_queue_check *q, detail *d) {
  const ref_drain *r = q->r;
  const bool is_set = ref_queue_is_set(r->info);
  const size_t words = r->info->item_words;
  d->count = is_set ? r->drain->keys : r->state->current;
  d->items = vyre__arena_array(r->launch.scratch, (size_t)d->count,
                               words * sizeof *d->items);
  d->pushers = vyre__arena_array(r->launch.scratch, (size_t)d->count,
                                 sizeof *d->pushers);
  if (!d->items || !d->pushers) return no_memory(q, d->count);
  if (!is_set && d->count > 0)
    memcpy(d->items, r->items, (size_t)d->count * words * sizeof *d->items);
  if (d->count > 0)
    memcpy(d->pushers, q->trial.placed, (size_t)d->count * sizeof *d->pushers);
  return VYRE_OK;
}

/* Runs up to the end of a window; without windows, to the end. */
static vyre_code run_detail(ref_queue_check *q, const difference *found,
                            detail *d) {
  vyre__drain *drain = q->r->drain;
  const uint64_t max_windows = drain->max_windows;
  memset(q->trial.placed, 0,
         ((size_t)q->r->info->capacity + 1) * sizeof *q->trial.placed);
  VYRE_TRY(allocate_hashes(q, d));
  q->trial.from = found->has_window ? found->window : 0;
  if (found->has_window) drain->max_windows = found->window + 1;
  vyre_code code = run_trial(q);
  drain->max_windows = max_windows;
  for (int i = 0; i < VYRE__QUEUE_PARTS; i++)
    q->r->machines[i].node_hashes = NULL;
  return code == VYRE_OK ? keep_pushes(q, d) : code;
}

/* Finds the first push that one of two runs made alone. */
static void compare_pushes(const ref_queue_check *q, const detail *a,
                           const detail *b, difference *out) {
  const size_t words = q->r->info->item_words;
  const bool is_set = ref_queue_is_set(q->r->info);
  const uint64_t window = q->before.state.window + out->window;
  const uint64_t least = a->count < b->count ? a->count : b->count;
  for (uint64_t i = 0; i < least; i++) {
    const ref_cause *x = &a->pushers[i], *y = &b->pushers[i];
    const bool in_a = x->line && x->window == window;
    const bool in_b = y->line && y->window == window;
    if (is_set ? in_a == in_b
               : memcmp(a->items + i * words, b->items + i * words,
                        words * sizeof *a->items) == 0) {
      continue;
    }
    out->effect = is_set && in_a ? *x : *y;
    return;
  }
  if (a->count > least) out->effect = a->pushers[least];
  if (b->count > least) out->effect = b->pushers[least];
}

/* Returns how likely an atomic is the cause; 0: not at all. */
static int suspicion(const ref_queue_check *q, const ref_machine *m,
                     vyre__id id, uint64_t a, uint64_t b) {
  const vyre__node *node = &m->nodes[id];
  if (!(vyre__ops[node->op].flags & VYRE__OPF_ATOMICS)) return 0;
  const bool swaps =
      node->op == VYRE__OP_ATOMIC_EXCHANGE || node->op == VYRE__OP_ATOMIC_CAS;
  const bool is_output = node->a == q->buffer;
  const bool is_used = !m->pipeline->info.is_ignored[id];
  if (is_used && a != b) return 2 + is_output + 2 * swaps;
  return swaps && is_output && b != 0;
}

/* Returns the place of the atomic that is the likely cause; line 0: none is. */
static ref_cause suspect(const ref_queue_check *q, const detail *a,
                         const detail *b) {
  ref_cause cause = {0};
  int most = 0;
  for (int i = 0; i < VYRE__QUEUE_PARTS; i++) {
    const ref_machine *m = &q->r->machines[i];
    if (!m->program) continue;
    for (vyre__id id = 1; id < m->program->node_count; id++) {
      const int now = suspicion(q, m, id, a->hashes[i][id], b->hashes[i][id]);
      if (now <= most) continue;
      const vyre__source_loc loc = vyre__source_loc_of(m->program, id);
      most = now;
      cause = (ref_cause){.line = loc.line, .column = loc.column};
    }
  }
  return cause;
}

/* --- reporting ---------------------------------------------------------------*/

static bool has_race(const vyre_check_report *report) {
  for (size_t i = 0; i < report->count; i++) {
    if (report->findings[i].kind == VYRE_FINDING_RACE) return true;
  }
  return false;
}

static const char *describe(const ref_queue_check *q, const difference *d) {
  ref_machine *m = main_machine(q);
  const char *name = m->program->buffers[q->buffer].name;
  const bool is_set = ref_queue_is_set(q->r->info);
  if (!d->has_window) {
    return ref_finding_text(
        m, "'%.100s'[%llu] depends on the order in which items run", name,
        (unsigned long long)q->index);
  }
  return ref_finding_text(
      m,
      "'%.100s'[%llu] depends on the order in which the items of window %llu "
      "run: %s %llu %s at line %u",
      name, (unsigned long long)q->index,
      (unsigned long long)q->before.state.window + d->window,
      is_set ? "key" : "item", (unsigned long long)d->effect.item,
      d->is_push ? "pushes another item" : "writes another value",
      d->effect.line);
}

static void report(const ref_queue_check *q, const difference *d,
                   ref_cause cause) {
  ref_machine *m = main_machine(q);
  if (!cause.line && has_race(m->launch->report)) return; /* it explains this */
  m->check = q->checks[VYRE__QUEUE_PUSH];
  vyre_finding *f = ref_finding(m, VYRE_FINDING_ORDER_DEPENDENCE, 0, 0);
  m->check = NULL;
  if (!f) return;
  const ref_cause at = cause.line ? cause : d->effect;
  f->line = at.line;
  f->column = at.column;
  if (cause.line && d->effect.line != cause.line) {
    f->other_line = d->effect.line;
    f->other_column = d->effect.column;
  }
  f->buffer = m->program->buffers[q->buffer].name;
  f->index = q->index;
  f->length = (uint32_t)m->views[q->buffer].length;
  f->invocation[0] = (uint32_t)d->effect.item;
  f->message = describe(q, d);
  f->fix =
      "let no output and no push depend on which item comes first: use a "
      "commutative atomic, such as atomic_min, and not its result";
}

/* Finds out why the last trial differs. */
static vyre_code blame(ref_queue_check *q) {
  ref_trial *t = &q->trial;
  const ref_trial other = *t;
  difference found = {0};
  detail a = {0}, b = {0};
  if (!t->pool) {
    ref_window_log *one, *two;
    size_t one_count, two_count;
    t->canonical = true;
    t->cuts = false;
    VYRE_TRY(run_logged(q, &one, &one_count));
    *t = other;
    VYRE_TRY(run_logged(q, &two, &two_count));
    compare_logs(one, one_count, two, two_count, &found);
  }
  *t = other;
  VYRE_TRY(run_detail(q, &found, &b));
  t->canonical = true;
  t->cuts = false;
  t->pool = REF_POOL_NONE;
  VYRE_TRY(run_detail(q, &found, &a));
  if (found.is_push) compare_pushes(q, &a, &b, &found);
  report(q, &found, suspect(q, &a, &b));
  return VYRE_OK;
}

/* --- entry points --------------------------------------------------------------*/

vyre_code ref_queue_check_begin(ref_drain *r, ref_queue_check **out) {
  *out = NULL;
  if (r->launch.check.schedules == 0) return VYRE_OK;
  ref_queue_check *q = vyre__arena_filled(r->launch.scratch, 1, sizeof *q, 0);
  if (!q) return vyre__no_memory(r->machines[0].st, "ref", "checks", 1);
  q->r = r;
  VYRE_TRY(make_trial(q));
  VYRE_TRY(save(q, &q->before));
  *out = q;
  return VYRE_OK;
}

/* Repeats the drain until a result differs. */
static vyre_code compare_orders(ref_queue_check *q) {
  ref_drain *r = q->r;
  for (uint32_t i = 0; i < r->launch.check.schedules; i++) {
    choose(q, i);
    q->trial.is_cut_short = false;
    VYRE_TRY(run_trial(q));
    if (q->trial.is_cut_short) continue;
    r->launch.report->schedules++;
    if (differs(q)) return blame(q);
  }
  return VYRE_OK;
}

vyre_code ref_queue_check_end(ref_queue_check *q) {
  ref_drain *r = q->r;
  vyre__drain *drain = r->drain;
  const vyre_queue_stop stop = drain->stop;
  const bool has_windows = r->info->kind != VYRE__QUEUE_ANY;
  /* A stopped run is not checked: another order stops after other items. */
  if (stop != VYRE_QUEUE_STOP_EMPTY &&
      !(stop == VYRE_QUEUE_STOP_MAX_WINDOWS && has_windows)) {
    return VYRE_OK;
  }
  VYRE_TRY(save(q, &q->after));
  for (int i = 0; i < VYRE__QUEUE_PARTS; i++) {
    q->checks[i] = r->machines[i].check;
    r->machines[i].check = NULL;
  }
  const uint64_t stop_ns = drain->stop_ns;
  drain->stop_ns = 0; /* kill_ns still limits each item */
  vyre_code code = compare_orders(q);
  drain->stop_ns = stop_ns;
  drain->stop = stop;
  restore(q, &q->after);
  for (int i = 0; i < VYRE__QUEUE_PARTS; i++)
    r->machines[i].check = q->checks[i];
  return code;
}
