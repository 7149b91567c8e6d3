/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Drains work queues: memory, threads, and calls of kernels. */
#include <string.h>

#include "backend/cpu/queue_drain.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/status.h"

enum {
  BLOCK_ITEMS = 512,
  PUSHED_WORDS = 16384, /* pushed words of a block: they fit into the cache */
  WAKE_NS = 100000,     /* the first shared step counts as this long */
  TICKS_SHIFT = 8,      /* fraction bits of item_ticks */
  MEASURED_ITEMS = 16,  /* fewer items are not measured */
  LIST_SHARE = 64       /* one key in so many fits into a list */
};

static uint64_t aligned(uint64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

/* --- plan -----------------------------------------------------------------*/

/* Returns the largest number of items of a call. */
static uint32_t block_items_of(const vyre__queue_info *info,
                               const cpu_device *device) {
  uint64_t items = device->queue_block ? device->queue_block : BLOCK_ITEMS;
  if (queue_is_set(info)) return BLOCK_ITEMS; /* sets have shorter calls */
  const uint64_t words = (uint64_t)info->pushes * info->item_words;
  if (words > 0 && items > PUSHED_WORDS / words) items = PUSHED_WORDS / words;
  return items > 0 ? (uint32_t)items : 1;
}

static uint32_t list_limit_of(const vyre__queue_info *info) {
  const uint64_t limit = info->capacity / LIST_SHARE;
  return limit < 64 ? 64 : (uint32_t)limit;
}

/* Returns the bytes of the arrays of one thread. */
static uint64_t thread_bytes(const vyre__queue_info *info,
                             uint32_t block_items) {
  const uint64_t words = (uint64_t)block_items * info->item_words;
  uint64_t pushed = words * info->pushes;
  if (queue_is_set(info)) {
    const uint32_t limit = list_limit_of(info);
    pushed = limit > block_items ? limit : block_items;
  }
  return aligned(words * 4) + aligned(pushed * 4) + aligned(block_items * 4ul);
}

void cpu_queue_plan(const vyre_device *device, vyre__queue_info *info) {
  const cpu_device *own = (const cpu_device *)device;
  info->threads = cpu_wave_threads(device);
  if (info->mode != VYRE_QUEUE_MODE_NEWEST)
    info->mode = VYRE_QUEUE_MODE_WINDOWS;
  const uint32_t block_items = block_items_of(info, own);
  uint64_t bytes = 0;
  if (queue_is_set(info)) {
    queue_set_plan(info, &bytes);
  } else {
    queue_list_plan(info, info->threads, &bytes, block_items);
  }
  if (info->items_per_chunk == 0 || info->items_per_chunk > info->capacity)
    info->items_per_chunk = info->capacity > 0 ? info->capacity : 1;
  bytes +=
      info->threads * (sizeof(queue_thread) + thread_bytes(info, block_items));
  info->work_bytes = bytes + sizeof(cpu_queue) + 256;
}

/* --- calls of kernels -----------------------------------------------------*/

static inline void bind(const cpu_launch *l, uint32_t buffer, const void *data,
                        uint64_t length) {
  l->block->views[buffer].data = (unsigned char *)(uintptr_t)data;
  l->block->views[buffer].length = (uint32_t)length;
}

void queue_sum_items(const cpu_queue *q, queue_thread *t, const uint32_t *items,
                     uint32_t count, uint64_t position) {
  const uint32_t words = q->info->item_words;
  if (!q->info->has_order_hash) return;
  for (uint32_t i = 0; i < count; i++)
    vyre__queue_sum(t->sums, position + i, items + (size_t)i * words, words);
}

bool queue_call(cpu_queue *q, queue_thread *t, int part, const uint32_t *items,
                uint32_t count, uint64_t position, uint32_t number) {
  cpu_launch *l = &t->launches[part];
  const uint32_t first = q->drain->first_hidden;
  const uint32_t words = q->info->item_words;
  const bool is_by = part == VYRE__QUEUE_BY;
  const bool has_places = is_by || !queue_is_set(q->info);
  const uint64_t places =
      is_by ? count : (uint64_t)count * q->info->pushes * words;
  t->place[VYRE__PLACE_WINDOW] = (uint32_t)q->state->window;
  t->place[VYRE__PLACE_FIRST] = (uint32_t)position;
  t->place[VYRE__PLACE_COUNT] = count;
  bind(l, first + VYRE__HIDDEN_ITEMS, items, (uint64_t)count * words);
  if (has_places) {
    bind(l, first + VYRE__HIDDEN_PUSHED, t->pushed, places);
    bind(l, first + VYRE__HIDDEN_COUNTS, t->counts, count);
  } else {
    bind(l, first + VYRE__HIDDEN_NEXT, q->next,
         queue_bit_words(q->drain->keys));
    bind(l, first + VYRE__HIDDEN_WINDOW, q->bits,
         queue_bit_words(q->drain->keys));
  }
  const uint32_t groups = (count + VYRE__QUEUE_GROUP - 1) / VYRE__QUEUE_GROUP;
  const uint32_t result = cpu_launch_call(l, 0, groups, number);
  if (result == VYRE__SPMD_DONE) return true;
  uint32_t none = 0;
  if (atomic_compare_exchange_strong(&q->result, &none, result)) q->failed = l;
  return false;
}

/* --- steps ----------------------------------------------------------------*/

bool queue_is_narrow(const cpu_queue *q, uint64_t items) {
  if (q->thread_count == 1) return true;
  if (q->inline_ticks == UINT64_MAX) return true;
  if (q->inline_ticks == 0) return false;
  if (q->item_ticks == 0) return items <= 64;
  return (items * q->item_ticks) >> TICKS_SHIFT <= q->inline_ticks;
}

void queue_measure(cpu_queue *q, uint64_t items, uint64_t ticks) {
  if (items < MEASURED_ITEMS) return;
  const uint64_t each = (ticks << TICKS_SHIFT) / items + 1;
  q->item_ticks = q->item_ticks ? (3 * q->item_ticks + each) / 4 : each;
}

/* Runs blocks of a thread's own, then those of others. */
static uint32_t run_share(void *self, uint32_t first, uint32_t end,
                          uint32_t number) {
  cpu_queue *q = self;
  for (uint32_t share = first; share < end; share++) {
    queue_thread *own = &q->threads[share];
    for (uint32_t k = 0; k < q->thread_count; k++) {
      queue_thread *from = &q->threads[(share + k) % q->thread_count];
      for (;;) {
        if (atomic_load_explicit(&from->next, memory_order_relaxed) >=
            from->end) {
          break;
        }
        const uint32_t at =
            atomic_fetch_add_explicit(&from->next, 1, memory_order_relaxed);
        if (at >= from->end) break;
        own->steals += k > 0;
        if (atomic_load_explicit(&q->result, memory_order_relaxed)) continue;
        q->run_block(q, own, q->order ? q->order[at] : at, number);
      }
    }
  }
  return 0;
}

void queue_open(cpu_queue *q, queue_run_block *run, uint32_t count,
                uint64_t work) {
  q->run_block = run;
  if (!q->order) { /* the same thread gets the same bits in every step */
    for (uint32_t i = 0; i < q->thread_count; i++) {
      queue_thread *t = &q->threads[i];
      atomic_store_explicit(&t->next,
                            (uint32_t)((uint64_t)count * i / q->thread_count),
                            memory_order_relaxed);
      t->end = (uint32_t)((uint64_t)count * (i + 1) / q->thread_count);
    }
  }
  (void)work;
  q->step.ns = WAKE_NS;
}

void queue_run_inline(cpu_queue *q, queue_run_block *run, uint32_t count,
                      uint32_t number) {
  for (uint32_t i = 0; i < count; i++) {
    run(q, &q->threads[0], i, number);
    if (atomic_load_explicit(&q->result, memory_order_relaxed)) return;
  }
}

bool queue_must_stop(cpu_queue *q) {
  vyre__drain *d = q->drain;
  if (q->state->position == 0 && q->windows >= d->max_windows) {
    d->stop = VYRE_QUEUE_STOP_MAX_WINDOWS;
    return true;
  }
  const uint64_t interval =
      q->info->check_interval ? q->info->check_interval : 16;
  if (atomic_load_explicit(d->is_cancelled, memory_order_relaxed)) {
    d->stop = VYRE_QUEUE_STOP_CANCELLED;
    return true;
  }
  /* reading the clock takes as long as a window of few items */
  if (!q->was_wide && q->chunks % interval != 0) return false;
  if (d->stop_ns && vyre__clock_ns() >= d->stop_ns) {
    d->stop = VYRE_QUEUE_STOP_TIMEOUT;
    return true;
  }
  return false;
}

void queue_end_window(cpu_queue *q, bool is_narrow) {
  vyre__queue_state *s = q->state;
  if (q->info->has_order_hash) vyre__queue_fold(s, s->position);
  s->last_items = s->position;
  s->position = 0;
  s->window++;
  q->stats->windows++;
  q->stats->narrow_windows += is_narrow;
  q->was_wide = !is_narrow;
  q->windows++;
}

bool queue_collect(cpu_queue *q) {
  uint64_t lowest = UINT64_MAX;
  for (uint32_t i = 0; i < q->thread_count; i++) {
    queue_thread *t = &q->threads[i];
    q->state->sums[0] += t->sums[0];
    q->state->sums[1] += t->sums[1];
    t->sums[0] = t->sums[1] = 0;
    if (t->failed_item >= lowest) continue;
    lowest = t->failed_item;
    q->drain->failed_item = lowest;
    q->drain->failed_line = q->drain->push_lines[t->failed_site];
  }
  if (lowest == UINT64_MAX) return false;
  q->drain->stop = VYRE_QUEUE_STOP_PUSHES;
  return true;
}

static bool again(void *self) {
  cpu_queue *q = self;
  /* the thread number of this callback: any that no other thread uses now */
  return q->advance(q, q->number);
}

/* --- begin and end --------------------------------------------------------*/

/* Prepares the launch with which thread @p t runs program @p part of the queue. */
static vyre_code fill_launch(cpu_queue *q, queue_thread *t, int part,
                             vyre_status *st) {
  vyre__drain *d = q->drain;
  const cpu_pipeline *p = (const cpu_pipeline *)d->parts[part];
  const size_t size = sizeof(vyre__spmd_launch) +
                      p->plan.buffer_count * sizeof(vyre__spmd_view);
  unsigned char *memory = vyre_arena_alloc(
      d->launch->scratch,
      (size_t)(aligned(size) + aligned(CPU_UNIFORMS_ON_STACK)), 64);
  if (!memory) return vyre__no_memory(st, "cpu", "launches", 1);
  vyre__launch *launch =
      vyre_arena_alloc(d->launch->scratch, sizeof *launch, 0);
  if (!launch) return vyre__no_memory(st, "cpu", "launches", 1);
  *launch = *d->launch;
  launch->pipeline = d->parts[part];
  launch->grid[0] = INT32_MAX;
  launch->grid[1] = launch->grid[2] = 1;
  launch->deadline_ns = 0;
  launch->timeout_ns = d->timeout_ns;
  VYRE_TRY(cpu_launch_fill(&t->launches[part], launch,
                           (vyre__spmd_launch *)(void *)memory,
                           memory + aligned(size), &q->stop, st));
  cpu_launch *l = &t->launches[part];
  l->phase = p->plan.steps[0].phase;
  const uint32_t first = d->first_hidden;
  bind(l, first + VYRE__HIDDEN_PLACE, t->place, VYRE__PLACE_WORDS);
  if (queue_is_set(q->info)) {
    const size_t words = queue_bit_words(d->keys);
    bind(l, first + VYRE__HIDDEN_PUSHED, t->pushed, q->list_limit);
    bind(l, first + VYRE__HIDDEN_COUNTS, t->counts_of_set, VYRE__COUNT_WORDS);
    bind(l, first + VYRE__HIDDEN_SEEN, q->seen, q->seen ? words : 0);
  }
  return VYRE_OK;
}

static vyre_code begin_threads(cpu_queue *q, unsigned char *work,
                               vyre_status *st) {
  const vyre__queue_info *info = q->info;
  const uint64_t words = (uint64_t)q->block_items * info->item_words;
  const uint64_t each = thread_bytes(info, q->block_items);
  for (uint32_t i = 0; i < q->thread_count; i++) {
    queue_thread *t = &q->threads[i];
    unsigned char *at = work + i * each;
    memset(t, 0, sizeof *t);
    t->gathered = (uint32_t *)(void *)at;
    t->counts = (uint32_t *)(void *)(at + aligned(words * 4));
    t->pushed = (uint32_t *)(void *)(at + aligned(words * 4) +
                                     aligned(q->block_items * 4ul));
    t->failed_item = UINT64_MAX;
    t->place[VYRE__PLACE_KEYS] = (uint32_t)q->drain->keys;
    t->place[VYRE__PLACE_LIMIT] = q->list_limit;
    for (int part = 0; part < VYRE__QUEUE_PARTS; part++) {
      if (q->drain->parts[part]) VYRE_TRY(fill_launch(q, t, part, st));
    }
    q->parts[i] = (vyre__region_part){i, i, i + 1};
  }
  return VYRE_OK;
}

/* Aligns memory for atomics, and clears outputs, once for all launches. */
static vyre_code prepare_views(vyre__drain *d, vyre__view *views,
                               vyre_status *st) {
  const vyre_program *program = d->launch->pipeline->program;
  for (uint32_t i = 0; i < program->buffer_count; i++) {
    vyre__view *view = &views[i];
    *view = d->launch->views[i];
    const size_t stride = vyre_buffer_stride(&program->buffers[i]);
    const size_t bytes = (size_t)view->length * stride;
    if (i >= d->first_hidden || bytes == 0) continue;
    if (view->begins_zero) memset(view->data, 0, bytes);
    view->begins_zero = false;
    const size_t scalar = stride & ~(stride - 1); /* a power of two */
    if ((uintptr_t)view->data % (scalar < 8 ? scalar : 8) == 0) continue;
    unsigned char *copy = vyre_arena_alloc(d->launch->scratch, bytes, 64);
    if (!copy) return vyre__no_memory(st, "cpu", "bytes of atomics", bytes);
    memcpy(copy, view->data, bytes);
    view->data = copy;
  }
  return VYRE_OK;
}

static void return_views(const vyre__drain *d, const vyre__view *from) {
  const vyre_program *program = d->launch->pipeline->program;
  for (uint32_t i = 0; i < d->first_hidden; i++) {
    const vyre__view *to = &d->launch->views[i];
    const size_t stride = vyre_buffer_stride(&program->buffers[i]);
    const vyre_access access = program->buffers[i].access;
    if (to->data == from[i].data || access == VYRE_ACCESS_READ ||
        access == VYRE_ACCESS_UNIFORM) {
      continue;
    }
    memcpy(to->data, from[i].data, (size_t)to->length * stride);
  }
}

static vyre_code run(cpu_queue *q, vyre_status *st) {
  vyre__deadline entry;
  vyre__pool_session session;
  const uint64_t kill = q->drain->kill_ns;
  if (kill) {
    VYRE_TRY(
        vyre__deadline_begin(q->device->deadlines, &entry, kill, &q->stop, st));
  }
  vyre__pool_enter(q->device->pool, &session);
  q->number = session.number;
  if (queue_is_set(q->info)) queue_set_first(q);
  if (q->advance(q, session.number)) {
    q->region = (vyre__region){.run = run_share,
                               .again = again,
                               .self = q,
                               .steps = &q->step,
                               .step_count = 1,
                               .threads = q->thread_count,
                               .parts = q->parts,
                               .runs = 5};
    q->step.first_part = 0;
    q->step.end_part = q->thread_count;
    (void)vyre__pool_run_region(&session, &q->region);
    q->stats->steals += q->region.steals;
  }
  vyre__pool_leave(&session);
  if (kill) (void)vyre__deadline_end(q->device->deadlines, &entry);
  for (uint32_t i = 0; i < q->thread_count; i++) {
    q->stats->steals += q->threads[i].steals;
    q->stats->dropped_keys += q->threads[i].counts_of_set[VYRE__COUNT_DROPPED];
  }
  const uint32_t result = atomic_load(&q->result);
  return result ? cpu_launch_failed(q->failed, result, st) : VYRE_OK;
}

vyre_code cpu_queue_drain(vyre__drain *drain, vyre_status *st) {
  const vyre__queue_info *info = drain->info;
  cpu_device *device = (cpu_device *)drain->launch->pipeline->device;
  unsigned char *work = vyre__queue_memory(drain, info->work);
  cpu_queue *q = (cpu_queue *)(void *)work;
  const size_t views = drain->launch->pipeline->program->buffer_count;
  vyre__view *own =
      vyre__arena_array(drain->launch->scratch, views, sizeof *own);
  if (!own) return vyre__no_memory(st, "cpu", "views", views);
  memset(q, 0, sizeof *q);
  q->drain = drain;
  q->info = info;
  q->state = drain->state;
  q->stats = drain->stats;
  q->device = device;
  q->thread_count = info->threads;
  q->block_items = block_items_of(info, device);
  q->list_limit = list_limit_of(info);
  q->inline_ticks = device->wave_inline_ns == UINT64_MAX
                        ? UINT64_MAX
                        : vyre__pool_ticks_of(device->wave_inline_ns);
  work += aligned(sizeof *q);
  q->threads = (queue_thread *)(void *)work;
  work += q->thread_count * sizeof *q->threads;
  unsigned char *rest =
      work + q->thread_count * thread_bytes(info, q->block_items);
  drain->stop = VYRE_QUEUE_STOP_EMPTY;
  drain->stats->submissions++;
  drain->stats->waits++;
  const vyre__view *given = drain->launch->views;
  VYRE_TRY(prepare_views(drain, own, st));
  drain->launch->views = own;
  if (queue_is_set(info)) {
    queue_set_begin(q, rest);
  } else {
    queue_list_begin(q, rest);
  }
  vyre_code code = begin_threads(q, work, st);
  if (code == VYRE_OK) code = run(q, st);
  drain->launch->views = given;
  return_views(drain, own);
  if (code != VYRE_OK) return code;
  if (queue_is_set(info)) {
    queue_set_end(q);
  } else {
    queue_list_end(q);
  }
  vyre__launch_read_back(drain->launch);
  return VYRE_OK;
}
