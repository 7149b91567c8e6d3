/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Executes wave graphs: lists whose commands come in groups of independent
 * launches. The launches are prepared once, and all groups run in one region of
 * the thread pool, with the fixed parts of the plan. Groups with a launch that
 * needs the steps of launch.c, such as a grid barrier, run one launch after the
 * other between two regions. */
#include <string.h>

#include "backend/cpu/launch.h"
#include "backend/cpu/threads/pool_region.h"
#include "base/memory.h"
#include "base/status.h"

enum {
  CLEAR_BYTES = 65536, /* clears of at least twice as much are shared */
  /* Guess of the time of a group that never ran: bytes and invocations in a
   * nanosecond. */
  BYTES_PER_NS = 16,
  INVOCATIONS_PER_NS = 2
};

/* Workgroups of a wave, or bytes to clear before it. */
typedef struct wave_entry {
  uint32_t wave;
  unsigned char *clear;  /* NULL: workgroups */
  uint64_t first, count; /* clear: `count` bytes */
} wave_entry;

typedef struct cpu_wave {
  cpu_launch launch;
  bool is_ordered; /* needs launch.c */
  bool is_cleared; /* an output must start as zero */
} cpu_wave;

/* Groups first_group to end_group - 1, all of one kind. */
typedef struct wave_segment {
  bool is_ordered;
  uint32_t first_command, end_command;
  uint32_t group_count;
  vyre__region region;
} wave_segment;

typedef struct cpu_waves {
  cpu_device *device;
  vyre_arena arena;
  uint64_t version; /* of the list that this is for; 0: empty */
  cpu_wave *waves;
  uint32_t wave_count;
  wave_entry *entries;
  uint32_t entry_count, entry_max;
  vyre__region_part *parts;
  uint32_t part_count, part_max;
  vyre__region_step *steps;
  uint32_t step_count, step_max;
  wave_segment *segments;
  uint32_t segment_count;
  atomic_uint stop;         /* set by the deadline */
  atomic_uint failed;       /* first wave that failed, plus 1 */
  vyre__command_loop *loop; /* of the list that runs; or NULL */
} cpu_waves;

uint32_t cpu_wave_threads(const vyre_device *device) {
  uint32_t threads = vyre__pool_threads(((const cpu_device *)device)->pool);
  return threads < VYRE__REGION_THREADS ? threads : VYRE__REGION_THREADS;
}

/* --- preparing ------------------------------------------------------------ */

static vyre_code no_memory(size_t count, vyre_status *st) {
  return vyre__no_memory(st, "cpu", "waves", count);
}

/* Returns true if the bytes of a uniform can change while the graph runs. */
static bool has_device_uniform(const cpu_pipeline *p,
                               const vyre__launch *launch) {
  for (uint32_t i = 0; i < p->uniform_count; i++) {
    if (launch->views[p->uniforms[i].buffer].buffer) return true;
  }
  return false;
}

static vyre_code fill_wave(cpu_waves *w, cpu_wave *wave, vyre__launch *launch,
                           vyre_status *st) {
  const cpu_pipeline *p = (const cpu_pipeline *)launch->pipeline;
  size_t views = p->plan.buffer_count < CPU_VIEWS_ON_STACK
                     ? p->plan.buffer_count
                     : CPU_VIEWS_ON_STACK;
  size_t uniforms = p->uniform_bytes < CPU_UNIFORMS_ON_STACK
                        ? (size_t)p->uniform_bytes
                        : CPU_UNIFORMS_ON_STACK;
  size_t size = sizeof(vyre__spmd_launch) + views * sizeof(vyre__spmd_view);
  size = (size + 15) / 16 * 16;
  unsigned char *memory = vyre_arena_alloc(&w->arena, size + uniforms, 64);
  if (!memory) return no_memory(w->wave_count, st);
  VYRE_TRY(cpu_launch_fill(&wave->launch, launch,
                           (vyre__spmd_launch *)(void *)memory, memory + size,
                           &w->stop, st));
  wave->is_ordered = p->plan.step_count != 1 || p->sum_count > 0 ||
                     wave->launch.has_copies || launch->readback_count > 0 ||
                     has_device_uniform(p, launch);
  if (wave->is_ordered) return VYRE_OK;
  wave->launch.phase = p->plan.steps[0].phase;
  wave->is_cleared =
      wave->launch.clears && !cpu_launch_clears_nothing(&wave->launch);
  return VYRE_OK;
}

/* --- steps ---------------------------------------------------------------- */

static void add_entry(cpu_waves *w, uint32_t thread, const wave_entry *entry,
                      vyre__region_step *step) {
  bool is_new = w->part_count == step->first_part ||
                w->parts[w->part_count - 1].thread != thread;
  if (is_new) {
    w->parts[w->part_count++] =
        (vyre__region_part){thread, w->entry_count, w->entry_count};
    step->end_part = w->part_count;
  }
  w->entries[w->entry_count++] = *entry;
  w->parts[w->part_count - 1].end = w->entry_count;
}

static vyre__region_step *begin_step(cpu_waves *w) {
  vyre__region_step *step = &w->steps[w->step_count++];
  *step = (vyre__region_step){.first_part = w->part_count,
                              .end_part = w->part_count};
  return step;
}

/* Adds the clears of a group, in front of it: each thread clears one range of
 * every output. */
static void add_clears(cpu_waves *w, const vyre__wave_groups *groups,
                       uint32_t first, uint32_t end) {
  vyre__region_step *step = begin_step(w);
  uint64_t total = 0;
  for (uint32_t t = 0; t < groups->threads; t++) {
    for (uint32_t i = first; i < end; i++) {
      const cpu_launch *l = &w->waves[i].launch;
      const cpu_plan *plan = &l->pipeline->plan;
      if (!w->waves[i].is_cleared) continue;
      for (uint32_t b = 0; b < plan->buffer_count; b++) {
        if (!plan->buffers[b].is_bound || !l->launch->views[b].begins_zero)
          continue;
        uint64_t bytes =
            (uint64_t)l->block->views[b].length * plan->buffers[b].width;
        uint64_t parts = bytes / 2 < CLEAR_BYTES ? 1 : groups->threads;
        uint64_t at = t < parts ? bytes / parts * t : bytes;
        uint64_t to = t + 1 < parts ? bytes / parts * (t + 1) : bytes;
        const wave_entry entry = {
            .wave = i, .clear = l->block->views[b].data + at, .count = to - at};
        if (to == at) continue;
        add_entry(w, t, &entry, step);
        total += to - at;
      }
    }
  }
  step->ns = total / BYTES_PER_NS;
}

/* Guesses the time of a wave, from earlier launches of its kernel or from its
 * size. */
static uint64_t guess_ns(const cpu_launch *l) {
  const cpu_plan *plan = &l->pipeline->plan;
  uint64_t cost =
      atomic_load_explicit(&l->pipeline->costs[l->phase], memory_order_relaxed);
  if (cost > 0) return cost * l->groups / 1000;
  uint64_t bytes = 0, invocations = l->groups * plan->workgroup[0] *
                                    plan->workgroup[1] * plan->workgroup[2];
  for (uint32_t i = 0; i < plan->buffer_count; i++) {
    if (plan->buffers[i].is_bound)
      bytes += (uint64_t)l->block->views[i].length * plan->buffers[i].width;
  }
  return bytes / BYTES_PER_NS + invocations / INVOCATIONS_PER_NS;
}

static void add_group(cpu_waves *w, const vyre__wave_groups *groups,
                      uint32_t group) {
  uint32_t first = group > 0 ? groups->ends[group - 1] : 0;
  uint32_t end = groups->ends[group];
  bool is_cleared = false;
  uint64_t ns = 0;
  for (uint32_t i = first; i < end; i++) {
    is_cleared |= w->waves[i].is_cleared;
    ns += guess_ns(&w->waves[i].launch);
  }
  if (is_cleared) add_clears(w, groups, first, end);
  vyre__region_step *step = begin_step(w);
  step->ns = ns;
  uint32_t part = group > 0 ? groups->part_ends[group - 1] : 0;
  for (; part < groups->part_ends[group]; part++) {
    const vyre__wave_part *p = &groups->parts[part];
    const wave_entry entry = {
        .wave = p->command, .first = p->first, .count = p->count};
    add_entry(w, p->thread, &entry, step);
  }
}

static bool is_ordered_group(const cpu_waves *w,
                             const vyre__wave_groups *groups, uint32_t group) {
  uint32_t i = group > 0 ? groups->ends[group - 1] : 0;
  for (; i < groups->ends[group]; i++) {
    if (w->waves[i].is_ordered) return true;
  }
  return false;
}

static uint32_t run_entries(void *self, uint32_t first, uint32_t end,
                            uint32_t number);

static void add_segments(cpu_waves *w, const vyre__wave_groups *groups) {
  for (uint32_t g = 0; g < groups->count;) {
    bool is_ordered = is_ordered_group(w, groups, g);
    wave_segment *s = &w->segments[w->segment_count++];
    uint32_t step = w->step_count, begin = g;
    *s = (wave_segment){.is_ordered = is_ordered,
                        .first_command = g > 0 ? groups->ends[g - 1] : 0};
    for (; g < groups->count && is_ordered_group(w, groups, g) == is_ordered;
         g++) {
      if (!is_ordered) add_group(w, groups, g);
    }
    s->group_count = g - begin;
    s->end_command = groups->ends[g - 1];
    s->region = (vyre__region){.run = run_entries,
                               .self = w,
                               .steps = w->steps + step,
                               .step_count = w->step_count - step,
                               .threads = groups->threads,
                               .parts = w->parts,
                               .inline_ns = w->device->wave_inline_ns};
  }
}

/* Returns the most entries that all steps can have. */
static uint64_t max_entries(const cpu_waves *w,
                            const vyre__wave_groups *groups) {
  uint64_t count = groups->part_ends[groups->count - 1];
  for (uint32_t i = 0; i < w->wave_count; i++) {
    if (w->waves[i].is_cleared)
      count += (uint64_t)groups->threads *
               w->waves[i].launch.pipeline->plan.buffer_count;
  }
  return count;
}

static vyre_code prepare(cpu_waves *w, const vyre__command *commands,
                         size_t count, const vyre__wave_groups *groups,
                         vyre_status *st) {
  vyre_arena_reset(&w->arena);
  w->version = 0;
  w->entry_count = w->part_count = w->step_count = w->segment_count = 0;
  w->wave_count = (uint32_t)count;
  w->waves = vyre__arena_filled(&w->arena, count, sizeof *w->waves, 0);
  if (!w->waves) return no_memory(count, st);
  for (size_t i = 0; i < count; i++)
    VYRE_TRY(fill_wave(w, &w->waves[i], commands[i].launch, st));
  uint64_t most = max_entries(w, groups);
  if (most > UINT32_MAX) return no_memory(SIZE_MAX, st);
  w->entries = vyre__arena_array(&w->arena, most, sizeof *w->entries);
  w->parts = vyre__arena_array(&w->arena, most, sizeof *w->parts);
  w->steps =
      vyre__arena_array(&w->arena, 2 * (size_t)groups->count, sizeof *w->steps);
  w->segments =
      vyre__arena_array(&w->arena, groups->count, sizeof *w->segments);
  if (!w->entries || !w->parts || !w->steps || !w->segments)
    return no_memory(most, st);
  add_segments(w, groups);
  return VYRE_OK;
}

/* --- running -------------------------------------------------------------- */

static uint32_t run_entries(void *self, uint32_t first, uint32_t end,
                            uint32_t number) {
  cpu_waves *w = self;
  for (uint32_t i = first; i < end; i++) {
    const wave_entry *e = &w->entries[i];
    if (e->clear) {
      memset(e->clear, 0, (size_t)e->count);
      continue;
    }
    uint32_t result =
        cpu_launch_run(&w->waves[e->wave].launch, e->first, e->count, number);
    if (result == VYRE__SPMD_DONE) continue;
    uint32_t none = 0;
    atomic_compare_exchange_strong(&w->failed, &none, e->wave + 1);
    return result;
  }
  return 0;
}

static bool flag_is_set(const vyre__command_loop *loop) {
  uint32_t flag;
  memcpy(&flag, loop->flag->host + loop->offset, sizeof flag);
  return flag != 0;
}

/* Ends an iteration. Returns true if another one follows. */
static bool loop_again(void *self) {
  vyre__command_loop *loop = ((cpu_waves *)self)->loop;
  loop->iterations++;
  loop->is_unfinished = flag_is_set(loop);
  return loop->is_unfinished && loop->iterations < loop->max_iterations;
}

/* Runs a segment. @p again: as in a region. *done is the number of commands
 * that succeeded, if one fails. */
static vyre_code run_segment(cpu_waves *w, wave_segment *s,
                             bool (*again)(void *),
                             const vyre__command *commands,
                             vyre__wave_groups *groups, size_t *done,
                             vyre_status *st) {
  if (s->is_ordered) {
    for (uint32_t i = s->first_command; i < s->end_command; i++) {
      vyre_code code = cpu_launch_execute(commands[i].launch, st);
      *done = i;
      if (code != VYRE_OK) return code;
    }
    return VYRE_OK;
  }
  vyre__pool_session session;
  vyre__pool_enter(w->device->pool, &session);
  s->region.again = again;
  uint32_t result = vyre__pool_run_region(&session, &s->region);
  vyre__pool_leave(&session);
  groups->inline_groups += s->region.inline_steps;
  groups->steals += s->region.steals;
  if (result == 0) return VYRE_OK;
  uint32_t failed = atomic_load(&w->failed);
  if (failed == 0) failed = s->first_command + 1;
  *done = failed - 1;
  return cpu_launch_failed(&w->waves[failed - 1].launch, result, st);
}

static vyre_code run_once(cpu_waves *w, const vyre__command *commands,
                          vyre__wave_groups *groups, size_t *done,
                          vyre_status *st) {
  for (uint32_t i = 0; i < w->segment_count; i++)
    VYRE_TRY(run_segment(w, &w->segments[i], NULL, commands, groups, done, st));
  groups->barriers += groups->count - 1;
  *done = w->wave_count;
  return VYRE_OK;
}

static vyre_code run_loop(cpu_waves *w, const vyre__command *commands,
                          vyre__wave_groups *groups, size_t *done,
                          vyre_status *st) {
  vyre__command_loop *loop = w->loop;
  loop->is_unfinished = flag_is_set(loop);
  if (!loop->is_unfinished) return VYRE_OK;
  if (w->segment_count == 1 && !w->segments[0].is_ordered) {
    uint64_t before = loop->iterations;
    VYRE_TRY(run_segment(w, &w->segments[0], loop_again, commands, groups, done,
                         st));
    groups->barriers += (loop->iterations - before) * (groups->count - 1);
    return VYRE_OK;
  }
  do {
    VYRE_TRY(run_once(w, commands, groups, done, st));
  } while (loop_again(w));
  return VYRE_OK;
}

/* Returns true if a pipeline still has baseline code, which launch.c counts and
 * measures. */
static bool is_baseline(const vyre__command *commands, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const cpu_pipeline *p = (const cpu_pipeline *)commands[i].launch->pipeline;
    if (cpu_is_baseline(p,
                        atomic_load_explicit(&p->code, memory_order_acquire))) {
      return true;
    }
  }
  return false;
}

/* Runs the waves one after the other, each with all threads. */
static vyre_code run_ordered(vyre__command_loop *loop,
                             const vyre__command *commands, size_t count,
                             vyre__wave_groups *groups, size_t *done,
                             vyre_status *st) {
  do {
    if (loop) {
      loop->is_unfinished = flag_is_set(loop);
      if (!loop->is_unfinished || loop->iterations == loop->max_iterations)
        return VYRE_OK;
    }
    for (*done = 0; *done < count; ++*done)
      VYRE_TRY(cpu_launch_execute(commands[*done].launch, st));
    groups->barriers += groups->count - 1;
    if (loop) loop->iterations++;
  } while (loop);
  return VYRE_OK;
}

static cpu_waves *get_waves(vyre__command_list *list) {
  if (list->encoded) return list->encoded;
  cpu_waves *w = vyre__alloc_zeroed(list->device->allocator, sizeof *w);
  if (!w) return NULL;
  w->device = (cpu_device *)list->device;
  vyre_arena_init(&w->arena, list->device->allocator);
  return list->encoded = w;
}

void cpu_wave_release(vyre__command_list *list) {
  cpu_waves *w = list->encoded;
  vyre_arena_deinit(&w->arena);
  vyre__resize(list->device->allocator, w, sizeof *w, 0);
  list->encoded = NULL;
}

static void set_deadline(const vyre__command *commands, size_t count,
                         uint64_t deadline_ns, uint64_t timeout_ns) {
  for (size_t i = 0; i < count; i++) {
    commands[i].launch->deadline_ns = deadline_ns;
    commands[i].launch->timeout_ns = timeout_ns;
  }
}

static vyre_code run_prepared(cpu_waves *w, const vyre__command *commands,
                              vyre__wave_groups *groups, size_t *done,
                              vyre_status *st) {
  vyre__deadline entry;
  atomic_store(&w->stop, 0);
  atomic_store(&w->failed, 0);
  if (groups->deadline_ns) {
    VYRE_TRY(vyre__deadline_begin(w->device->deadlines, &entry,
                                  groups->deadline_ns, &w->stop, st));
  }
  vyre_code code =
      (w->loop ? run_loop : run_once)(w, commands, groups, done, st);
  if (groups->deadline_ns)
    (void)vyre__deadline_end(w->device->deadlines, &entry);
  return code;
}

static vyre_code execute(vyre__command_list *list, vyre__command_loop *loop,
                         size_t *done, vyre_status *st) {
  const vyre__command *commands = list->commands + (loop != NULL);
  size_t count = list->count - (loop != NULL);
  vyre__wave_groups *groups = list->groups;
  bool was_reusable = list->is_reusable;
  cpu_waves *w = list->encoded;
  const bool is_prepared =
      was_reusable && w && w->version == list->version; /* optimised code */
  list->is_reusable = false;
  if (!is_prepared && is_baseline(commands, count))
    return run_ordered(loop, commands, count, groups, done, st);
  w = get_waves(list);
  if (!w) return no_memory(count, st);
  if (!is_prepared) {
    VYRE_TRY(prepare(w, commands, count, groups, st));
    w->version = list->version;
  }
  w->loop = loop;
  VYRE_TRY(run_prepared(w, commands, groups, done, st));
  list->is_reusable = true;
  return VYRE_OK;
}

vyre_code cpu_execute_groups(vyre__command_list *list, size_t *done,
                             vyre_status *st) {
  bool is_loop = list->commands[0].kind == VYRE__COMMAND_LOOP;
  const vyre__command *commands = list->commands + is_loop;
  vyre__wave_groups *groups = list->groups;
  vyre__command_loop *loop = is_loop ? &list->commands[0].loop : NULL;
  *done = 0;
  groups->submissions++;
  groups->waits++;
  if (groups->deadline_ns) {
    set_deadline(commands, list->count - is_loop, groups->deadline_ns,
                 groups->timeout_ns);
  }
  vyre_code code = execute(list, loop, done, st);
  if (groups->deadline_ns) set_deadline(commands, list->count - is_loop, 0, 0);
  if (code == VYRE_OK) {
    *done = list->count;
  } else {
    *done += is_loop;
  }
  return code;
}
