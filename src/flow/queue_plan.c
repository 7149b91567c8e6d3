/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Plans work queues: capacity, mode, chunks, and the place of every byte. */
#include "vyre/queue.h"

#include "analyze/queue/queue.h"
#include "base/checked_math.h"
#include "base/print.h"
#include "base/status.h"
#include "flow/queue_internal.h"
#include "ir/queue.h"

enum { ALIGNMENT = 256, DEFAULT_CAPACITY = 1 << 20, NEWEST_ITEMS = 65536 };

/* Largest number of items or keys, and of items of a chunk: positions fit in 31
 * bits on every device. */
static const uint64_t max_items = INT32_MAX;

const char *vyre_queue_mode_name(vyre_queue_mode mode) {
  static const char *const names[VYRE_QUEUE_MODE_COUNT] = {
#define X(name, text) text,
      VYRE_QUEUE_MODE_MAP(X)
#undef X
  };
  return (unsigned)mode < VYRE_QUEUE_MODE_COUNT ? names[mode] : "?";
}

const char *vyre_queue_stop_name(vyre_queue_stop stop) {
  static const char *const names[VYRE_QUEUE_STOP_COUNT] = {
#define X(name, text) text,
      VYRE_QUEUE_STOP_MAP(X)
#undef X
  };
  return (unsigned)stop < VYRE_QUEUE_STOP_COUNT ? names[stop] : "?";
}

/* --- memory --------------------------------------------------------------- */

/* Adds a region. Returns false if the sum does not fit in 64 bits. */
static bool place(vyre__queue_info *info, vyre__queue_region *region,
                  uint64_t size) {
  const uint64_t at = info->memory_bytes;
  region->offset = at;
  region->size = size;
  if (size > UINT64_MAX - ALIGNMENT) return false;
  size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  info->memory_bytes = at + size;
  return info->memory_bytes >= at;
}

/* Places all memory for the capacity of @p info. */
static bool lay_out(const vyre_device *device, const vyre__queue_info *options,
                    uint64_t capacity, vyre__queue_info *info) {
  *info = *options;
  info->capacity = capacity;
  device->backend->queue_plan(device, info);
  const uint64_t entries = vyre__queue_is_set(info) ? 2 * capacity : capacity;
  const uint64_t words = info->item_words * entries; /* below 2^37 */
  const bool is_once = info->kind == VYRE__QUEUE_ONCE;
  const uint64_t hidden = device->backend->takes_queue_programs
                              ? 0
                              : VYRE__HIDDEN_COUNT * ALIGNMENT;
  return place(info, &info->hidden, hidden) &&
         place(info, &info->items, words * 4) &&
         place(info, &info->seen, is_once ? (capacity + 31) / 32 * 4 : 0) &&
         place(info, &info->priorities, info->has_by ? capacity * 4 : 0) &&
         place(info, &info->work, info->work_bytes);
}

/* Returns the largest capacity whose memory fits into @p budget, or 0. */
static uint64_t fit(const vyre_device *device, const vyre__queue_info *options,
                    uint64_t budget) {
  uint64_t low = 0, high = max_items;
  while (low < high) {
    const uint64_t middle = low + (high - low + 1) / 2;
    vyre__queue_info info;
    const bool fits =
        lay_out(device, options, middle, &info) && info.memory_bytes <= budget;
    if (fits) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return low;
}

/* --- options -------------------------------------------------------------- */

static vyre_code check_mode(const vyre_program *program, vyre_queue_mode mode,
                            vyre_status *st) {
  if ((unsigned)mode >= VYRE_QUEUE_MODE_COUNT) {
    return VYRE_FAIL_WITH(
        st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, "mode",
        VYRE_NUMBERS({"mode", (unsigned)mode},
                     {"max", VYRE_QUEUE_MODE_COUNT - 1}),
        "set it to a value of vyre_queue_mode",
        "vyre_queue_options.mode is %u; the largest value is %d",
        (unsigned)mode, VYRE_QUEUE_MODE_COUNT - 1);
  }
  const bool is_any = program->queue->kind == VYRE__QUEUE_ANY;
  if (is_any || mode == VYRE_QUEUE_MODE_AUTO ||
      mode == VYRE_QUEUE_MODE_WINDOWS) {
    return VYRE_OK;
  }
  return VYRE_FAIL(
      st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
      "declare the queue as `any`, if the results do not depend on the order, "
      "or use mode 'windows'",
      "mode '%s' changes the order of items, which the queue of kernel "
      "'%.60s' defines",
      vyre_queue_mode_name(mode), program->name);
}

static vyre_code no_keys(const vyre_program *program, vyre_status *st) {
  return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                   "set capacity to the largest number of keys of a run",
                   "the number of keys of queue kernel '%.60s' is known in a "
                   "run only, and vyre_queue_options.capacity is 0",
                   program->name);
}

static vyre_code too_many(uint64_t capacity, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_PLAN_REJECTED, VYRE_KIND_OVER_BUDGET, NULL,
      VYRE_NUMBERS({"capacity", capacity}, {"max", max_items}),
      "use a smaller capacity, or mode 'newest', which holds few items",
      "a queue with %llu places; the maximum is %llu",
      (unsigned long long)capacity, (unsigned long long)max_items);
}

static vyre_code choose_capacity(const vyre_device *device,
                                 const vyre_program *program,
                                 const vyre_queue_options *options,
                                 const vyre__queue_info *info, uint64_t *out,
                                 vyre_status *st) {
  const vyre__queue_clauses *queue = program->queue;
  *out = options->capacity;
  if (*out == 0 && queue->bound_kind == VYRE__BOUND_CONSTANT) {
    *out = queue->bound;
  } else if (*out == 0 && options->budget_bytes) {
    *out = fit(device, info, options->budget_bytes);
    if (*out == 0) *out = 1; /* the plan reports how much that needs */
  } else if (*out == 0 && vyre__queue_is_set(info)) {
    return no_keys(program, st);
  } else if (*out == 0) {
    *out = DEFAULT_CAPACITY;
  }
  return *out <= max_items ? VYRE_OK : too_many(*out, st);
}

/* --- plan ----------------------------------------------------------------- */

static vyre_code fill_plan(const vyre__queue_info *info,
                           const vyre_queue_options *options,
                           vyre_queue_run_plan *plan, vyre_status *st) {
  const uint32_t item_bytes = info->item_words * 4;
  const vyre_queue_profile profile = {
      .queue_capacity = info->capacity,
      .entry_bytes = item_bytes,
      .control_bytes = info->memory_bytes - info->capacity * item_bytes,
      .budget_bytes =
          options->budget_bytes ? options->budget_bytes : UINT64_MAX};
  *plan = (vyre_queue_run_plan){.mode = info->mode,
                                .kind = (vyre_queue_kind)info->kind,
                                .capacity = info->capacity,
                                .item_bytes = item_bytes,
                                .pushes = info->pushes,
                                .max_depth = info->max_depth,
                                .memory_bytes = info->memory_bytes,
                                .first_batch = info->first_batch,
                                .max_batch = info->max_batch,
                                .threads = info->threads};
  return vyre_queue_drain_plan_build(&profile, info->items_per_chunk,
                                     &plan->drain, vyre__status_open(st));
}

vyre_code vyre__queue_plan(const vyre_device *device,
                           const vyre_program *program,
                           const vyre_queue_options *options,
                           vyre__queue_info *info, vyre_queue_run_plan *plan,
                           vyre_status *st) {
  VYRE_TRY(check_mode(program, options->mode, st));
  vyre__queue_info wanted = {
      .kind = program->queue->kind,
      .mode = options->mode,
      .item_words = vyre__queue_item_words(program->queue),
      .max_depth = options->max_depth,
      .items_per_chunk = options->items_per_chunk < max_items
                             ? options->items_per_chunk
                             : max_items,
      .check_interval = options->check_interval,
      .has_by = program->queue->by != 0,
      .has_pull = program->queue->pull != 0,
      .has_order_hash = options->has_order_hash};
  if (!vyre__queue_is_set(&wanted)) {
    (void)vyre__queue_pushes(program, &wanted.pushes, NULL);
    if (wanted.kind != VYRE__QUEUE_ANY) wanted.mode = VYRE_QUEUE_MODE_WINDOWS;
  } else {
    wanted.mode = VYRE_QUEUE_MODE_WINDOWS;
  }
  /* The order of NEWEST depends on it, so it is the same on every device. */
  if (wanted.mode == VYRE_QUEUE_MODE_NEWEST &&
      (wanted.items_per_chunk == 0 || wanted.items_per_chunk > NEWEST_ITEMS)) {
    wanted.items_per_chunk = NEWEST_ITEMS;
  }
  uint64_t capacity;
  VYRE_TRY(choose_capacity(device, program, options, &wanted, &capacity, st));
  if (!lay_out(device, &wanted, capacity, info)) return too_many(capacity, st);
  return fill_plan(info, options, plan, st);
}

uint64_t vyre_queue_max_submissions(const vyre_queue_run_plan *plan,
                                    uint64_t chunks) {
  if (!plan) return 0;
  if (plan->first_batch == 0) return 1;
  /* one more than needed: the last one may find the queue empty */
  uint64_t count = 1, covered = 0, batch = plan->first_batch;
  while (batch < plan->max_batch && covered + batch <= chunks) {
    covered += batch;
    batch = 4 * batch < plan->max_batch ? 4 * batch : plan->max_batch;
    count++;
  }
  if (covered + batch <= chunks) count += (chunks - covered) / batch;
  return count;
}

bool vyre_queue_run_plan_print(const vyre_queue_run_plan *plan,
                               vyre_writer writer) {
  vyre__printer out = vyre__printer_make(writer);
  if (!plan) return false;
  const vyre_queue_plan *queue = &plan->drain.queue;
  vyre__print(&out, "queue: %s, mode %s\n", vyre_queue_kind_name(plan->kind),
              vyre_queue_mode_name(plan->mode));
  vyre__print_figure(&out, "capacity", plan->capacity, "items");
  vyre__print_figure(&out, "item_bytes", plan->item_bytes, "B");
  if (plan->pushes > 0)
    vyre__print_figure(&out, "pushes_per_item", plan->pushes, "items");
  if (plan->max_depth > 0)
    vyre__print_figure(&out, "max_depth", plan->max_depth, "items");
  vyre__print_figure(&out, "items_per_chunk", plan->drain.items_per_chunk,
                     "items");
  vyre__print_figure(&out, "queue_bytes", queue->queue_bytes, "B");
  vyre__print_figure(&out, "control_bytes", queue->control_bytes, "B");
  vyre__print_figure(&out, "memory_bytes", plan->memory_bytes, "B");
  if (plan->threads > 0) vyre__print_figure(&out, "threads", plan->threads, "");
  if (plan->first_batch == 0) {
    vyre__print_word(&out, "submissions", "1, with 1 wait");
  } else {
    vyre__print_figure(&out, "first_batch", plan->first_batch, "chunks");
    vyre__print_figure(&out, "max_batch", plan->max_batch, "chunks");
  }
  return out.ok;
}
