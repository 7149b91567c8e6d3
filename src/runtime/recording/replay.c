/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Replays a recording: runs its commands in order, on the calling thread or on
 * the device's queue. */
#include <string.h>

#include "base/clock.h"
#include "base/print.h"
#include "base/status.h"
#include "runtime/core/device.h"
#include "runtime/core/fence.h"
#include "runtime/core/trace.h"
#include "runtime/core/work_queue.h"
#include "runtime/dispatch/command_list.h"
#include "runtime/dispatch/prepared.h"
#include "runtime/memory/device_buffer.h"
#include "runtime/recording/recording.h"

/* Loop whose iterations run now. */
typedef struct loop_state {
  uint64_t iterations;  /* completed, including skipped ones */
  uint32_t since_check; /* iterations since the host read the flag */
  uint32_t predicate;   /* flag value; dispatches run if it is not 0 */
  uint64_t trace_start; /* start time; 0 without a trace */
  size_t command;       /* index of the command that begins the loop */
} loop_state;

/* State of one replay. */
typedef struct running_replay {
  vyre_recording *rec;
  vyre_replay_options options;
  vyre_replay_result result;
  uint64_t deadline_ns; /* 0 without a timeout */
  loop_state loops[VYRE_RECORDING_DEPTH];
  uint32_t depth;
  vyre__active_replay active;
  size_t at_command; /* current command, named in error messages */
  size_t held;       /* slots whose buffers were acquired */
} running_replay;

/* Adds the command to the status of a failure. */
static vyre_code name_command(vyre_code code, size_t command, vyre_status *st) {
  vyre__status_where(st, "command", command, "command %zu", command);
  return code;
}

static vyre_code timed_out(const running_replay *replay, vyre_status *st) {
  char limit[VYRE__DURATION_TEXT];
  return VYRE_FAIL_WITH(
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT, NULL,
      VYRE_NUMBERS({"timeout_ns", replay->options.timeout_ns}),
      "raise timeout_ns, or lower max_iterations of a loop",
      "the replay did not end within %s",
      vyre__duration(replay->options.timeout_ns, limit));
}

/* --- tracing ------------------------------------------------------------ */

/* Records a copy. Dispatches, uploads and downloads record their own events,
 * inside the event of the replay. */
static void trace_copy(const running_replay *replay, uint64_t start,
                       const vyre__recorded_command *c, vyre_code code) {
  vyre__trace_end(replay->rec->device->context, start,
                  .kind = VYRE__TRACE_REPLAY, .name = "copy",
                  .device = replay->rec->device, .result = code,
                  .numbers = {{"item", (uint64_t)(c - replay->rec->commands)},
                              {"bytes", c->size}});
}

static void trace_loop(const running_replay *replay, const loop_state *state,
                       vyre_code code) {
  vyre__trace_end(
      replay->rec->device->context, state->trace_start,
      .kind = VYRE__TRACE_REPLAY, .name = "while",
      .device = replay->rec->device, .result = code,
      .numbers = {{"item", state->command}, {"iterations", state->iterations}});
}

static void trace_replay(const running_replay *replay, uint64_t start,
                         vyre_code code) {
  const vyre_replay_result *r = &replay->result;
  vyre__trace_end(replay->rec->device->context, start,
                  .kind = VYRE__TRACE_REPLAY, .device = replay->rec->device,
                  .result = code,
                  .numbers = {{"commands", replay->rec->command_count},
                              {"dispatches", r->dispatches},
                              {"copies", r->copies},
                              {"kept", r->skipped_uploads},
                              {"skipped", r->skipped},
                              {"rebuilt", r->rebuilt}});
}

/* --- commands ----------------------------------------------------------- */

/* Counts a dispatch that completed after its deadline, and the loop iteration
 * that it completes. */
static void count_timed_out(running_replay *replay,
                            const vyre__recorded_command *c) {
  const vyre__launch *launch = &c->prepared->launch;
  if (!launch->is_complete || launch->launch_index + 1 < launch->launch_count)
    return;
  replay->result.dispatches++;
  if (replay->depth > 0 && c[1].kind == VYRE__RECORDED_END)
    replay->result.iterations++;
}

static vyre_code run_dispatch(running_replay *replay, vyre__recorded_command *c,
                              vyre_status *st) {
  vyre__prepared *prepared = c->prepared;
  if (prepared->scratch.first) vyre_arena_reset(&prepared->scratch);
  if (replay->deadline_ns != 0) { /* the earlier of both deadlines applies */
    uint64_t now = vyre__clock_ns();
    if (now >= replay->deadline_ns) return timed_out(replay, st);
    uint64_t left = replay->deadline_ns - now, own = c->desc.timeout_ns;
    prepared->own.timeout_ns = own != 0 && own < left ? own : left;
    prepared->launch.timeout_ns =
        own != 0 && own < left ? own : replay->options.timeout_ns;
  }
  prepared->launch.is_complete = false;
  vyre_code code = vyre__prepared_execute(prepared, st);
  prepared->own.timeout_ns = prepared->launch.timeout_ns = c->desc.timeout_ns;
  prepared->launch.deadline_ns = 0;
  if (code == VYRE_OK) {
    replay->result.dispatches++;
  } else if (code == VYRE_DISPATCH_FAILED) {
    count_timed_out(replay, c);
  }
  return code;
}

/* Copies between two buffers of which at least one is invisible to the host. */
static vyre_code copy_staged(vyre_device *device,
                             const vyre__recorded_command *c,
                             unsigned char *staging, vyre_status *st) {
  for (uint64_t at = 0; at < c->size; at += VYRE__STAGING_BYTES) {
    uint64_t left = c->size - at;
    size_t chunk =
        left < VYRE__STAGING_BYTES ? (size_t)left : VYRE__STAGING_BYTES;
    VYRE_TRY(vyre__buffer_read(device, c->source.buffer, c->source.offset + at,
                               staging, chunk, st));
    VYRE_TRY(vyre__buffer_write(device, c->target.buffer, c->target.offset + at,
                                staging, chunk, st));
  }
  return VYRE_OK;
}

/* Runs an upload, and remembers the bindings that it was done for. */
static vyre_code upload(const vyre_recording *rec,
                        const vyre__recorded_command *c, vyre_status *st) {
  vyre_code code =
      vyre__buffer_write(rec->device, c->target.buffer, c->target.offset,
                         c->source.host, (size_t)c->size, st);
  vyre__recorded_command *last = &rec->first->commands[c - rec->commands];
  bool is_done = code == VYRE_OK;
  pthread_mutex_lock(&rec->first->lock);
  last->uploaded_from = is_done ? rec->slots[c->from.slot].version : 0;
  last->uploaded_to = is_done ? rec->slots[c->to.slot].version : 0;
  pthread_mutex_unlock(&rec->first->lock);
  return code;
}

static vyre_code copy_bytes(const running_replay *replay,
                            const vyre__recorded_command *c, vyre_status *st) {
  vyre_device *device = replay->rec->device;
  size_t size = (size_t)c->size;
  VYRE_TRY(vyre__device_check(device, st));
  if (replay->deadline_ns != 0 && vyre__clock_ns() >= replay->deadline_ns) {
    return timed_out(replay, st);
  }
  if (c->is_upload) {
    return upload(replay->rec, c, st);
  } else if (c->source.buffer && !c->target.buffer) {
    VYRE_TRY(vyre__buffer_read(device, c->source.buffer, c->source.offset,
                               c->target.host, size, st));
  } else if (size > 0 && c->source.host && c->target.host) {
    memmove(c->target.host, c->source.host, size);
  } else if (size > 0) {
    VYRE_TRY(copy_staged(device, c, replay->rec->staging, st));
  }
  return VYRE_OK;
}

static vyre_code run_copy(running_replay *replay, vyre__recorded_command *c,
                          vyre_status *st) {
  if (c->is_upload && replay->options.skip_uploads) {
    replay->result.skipped_uploads++;
    return VYRE_OK;
  }
  uint64_t start = vyre__trace_begin(replay->rec->device->context);
  vyre_code code = copy_bytes(replay, c, st);
  trace_copy(replay, start, c, code);
  if (code == VYRE_OK) replay->result.copies++;
  return code;
}

static vyre_code run_step(running_replay *replay,
                          const vyre__recorded_command *c, vyre_status *st) {
  const vyre__step_limit limit = {replay->deadline_ns,
                                  replay->options.timeout_ns};
  VYRE_TRY(vyre__device_check(replay->rec->device, st));
  if (replay->deadline_ns != 0 && vyre__clock_ns() >= replay->deadline_ns)
    return timed_out(replay, st);
  return c->step->run(c->step, c->memory, limit, &replay->result, st);
}

/* Reads the flag that decides on the next iteration. */
static vyre_code read_flag(const running_replay *replay,
                           const vyre__recorded_command *loop, uint32_t *out,
                           vyre_status *st) {
  if (loop->source.host) {
    memcpy(out, loop->source.host, sizeof *out);
    return VYRE_OK;
  }
  return vyre__buffer_read(replay->rec->device, loop->source.buffer,
                           loop->source.offset, out, sizeof *out, st);
}

static bool is_skipping(const running_replay *replay) {
  return replay->depth > 0 && replay->loops[replay->depth - 1].predicate == 0;
}

static vyre_code reached_max(const vyre__recorded_command *loop,
                             size_t begin_command, vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_MAX_ITERATIONS_REACHED, NULL,
      VYRE_NUMBERS({"max_iterations", loop->max_iterations},
                   {"command", begin_command}),
      "raise max_iterations, or set fail_at_max to false and read reached_max",
      "the loop that begins at command %zu did not end after %llu iterations",
      begin_command, (unsigned long long)loop->max_iterations);
}

/* Runs a loop on the device in batches of check_interval iterations, if the
 * backend supports that. Results and counters are the same as for single
 * iterations. If *has_ended is false, the host continues after *iterations. */
static vyre_code run_loop(running_replay *replay,
                          const vyre__recorded_command *loop,
                          size_t begin_command, uint64_t *iterations,
                          bool *has_ended, vyre_status *st) {
  vyre_device *device = replay->rec->device;
  uint64_t left = loop->max_iterations;
  vyre__command_loop on_device = {.is_unfinished = true};
  *has_ended = false;
  *iterations = 0;
  if (!vyre__takes_commands(device, VYRE__COMMAND_LOOP) ||
      !loop->source.buffer || replay->deadline_ns != 0 ||
      loop->check_interval < 2 || loop->body_dispatches == 0 ||
      !vyre__takes_command_lists(device)) {
    return VYRE_OK;
  }
  while (left > 0 && on_device.is_unfinished) {
    uint64_t count = left < loop->check_interval ? left : loop->check_interval;
    bool is_taken;
    vyre_code code = vyre__recording_run_loop(replay->rec, begin_command, count,
                                              &on_device, &is_taken, st);
    replay->result.iterations += on_device.iterations;
    replay->result.dispatches += on_device.iterations * loop->body_dispatches;
    if (code != VYRE_OK) return code;
    if (!is_taken) return VYRE_OK;
    *iterations += count;
    replay->result.skipped +=
        (count - on_device.iterations) * loop->body_dispatches;
    replay->result.flag_reads++;
    left -= count;
  }
  *has_ended = true;
  if (!on_device.is_unfinished) return VYRE_OK;
  replay->result.reached_max = true;
  return replay->options.fail_at_max ? reached_max(loop, begin_command, st)
                                     : VYRE_OK;
}

/* Begins a loop. Then *at is the next command. */
static vyre_code begin_loop(running_replay *replay,
                            const vyre__recorded_command *loop, size_t *at,
                            vyre_status *st) {
  loop_state started = {0};
  if (is_skipping(replay)) {
    replay->result.skipped += loop->body_dispatches;
    *at = loop->match + 1;
    return VYRE_OK;
  }
  VYRE_TRY(read_flag(replay, loop, &started.predicate, st));
  replay->result.flag_reads++;
  if (started.predicate == 0) {
    *at = loop->match + 1;
    return VYRE_OK;
  }
  bool has_ended;
  VYRE_TRY(run_loop(replay, loop, *at, &started.iterations, &has_ended, st));
  if (has_ended) {
    *at = loop->match + 1;
    return VYRE_OK;
  }
  started.trace_start = vyre__trace_begin(replay->rec->device->context);
  started.command = *at;
  replay->loops[replay->depth++] = started;
  ++*at;
  return VYRE_OK;
}

static vyre_code end_loop(running_replay *replay,
                          const vyre__recorded_command *loop,
                          size_t begin_command, size_t *at, vyre_status *st) {
  loop_state *state = &replay->loops[replay->depth - 1];
  state->iterations++;
  state->since_check++;
  if (state->predicate != 0) {
    replay->result.iterations++;
    VYRE_TRY(read_flag(replay, loop, &state->predicate, st));
  }
  if (replay->deadline_ns != 0 && vyre__clock_ns() >= replay->deadline_ns) {
    return timed_out(replay, st);
  }
  bool is_last = state->iterations == loop->max_iterations;
  bool is_checked = is_last || state->since_check == loop->check_interval;
  if (is_checked) {
    replay->result.flag_reads++;
    state->since_check = 0;
  }
  if (is_last && state->predicate != 0) {
    replay->result.reached_max = true;
    if (replay->options.fail_at_max)
      return reached_max(loop, begin_command, st);
  }
  if (is_last || (is_checked && state->predicate == 0)) {
    trace_loop(replay, state, VYRE_OK);
    replay->depth--;
    ++*at;
  } else {
    *at = begin_command + 1;
  }
  return VYRE_OK;
}

static vyre_code run_command(running_replay *replay, size_t *at,
                             vyre_status *st) {
  vyre__recorded_command *c = &replay->rec->commands[*at];
  bool is_work =
      c->kind == VYRE__RECORDED_DISPATCH || c->kind == VYRE__RECORDED_COPY;
  if (is_work && !is_skipping(replay) && replay->deadline_ns == 0 &&
      vyre__takes_command_lists(replay->rec->device)) {
    bool is_taken;
    vyre_code code = vyre__recording_run_list(replay->rec, at, &replay->result,
                                              &is_taken, st);
    replay->at_command = *at;
    if (is_taken) return code;
  }
  switch (c->kind) {
    case VYRE__RECORDED_WHILE:
      return begin_loop(replay, c, at, st);
    case VYRE__RECORDED_END:
      return end_loop(replay, &replay->rec->commands[c->match], c->match, at,
                      st);
    case VYRE__RECORDED_DISPATCH:
      ++*at;
      if (!is_skipping(replay)) return run_dispatch(replay, c, st);
      replay->result.skipped++;
      return VYRE_OK;
    case VYRE__RECORDED_STEP:
      ++*at;
      if (!is_skipping(replay)) return run_step(replay, c, st);
      replay->result.skipped++;
      return VYRE_OK;
    case VYRE__RECORDED_COPY:
      ++*at;
      return is_skipping(replay) ? VYRE_OK : run_copy(replay, c, st);
    default: /* commands run one after the other, so barriers need no action */
      ++*at;
      return VYRE_OK;
  }
}

/* Runs all commands. Buffers are acquired, commands are ready, and no
 * conflicting replay is active. */
static vyre_code run_all(running_replay *replay, vyre_status *st) {
  vyre_recording *rec = replay->rec;
  bool is_timed = replay->options.result || replay->options.timeout_ns;
  uint64_t start = is_timed ? vyre__clock_ns() : 0;
  if (replay->options.timeout_ns) {
    replay->deadline_ns = start + replay->options.timeout_ns;
    if (replay->deadline_ns < start) replay->deadline_ns = UINT64_MAX;
  }
  vyre_code code = VYRE_OK;
  for (size_t at = 0; at < rec->command_count && code == VYRE_OK;) {
    replay->at_command = at;
    code = run_command(replay, &at, st);
    code = name_command(code, replay->at_command, st);
  }
  while (replay->depth > 0)
    trace_loop(replay, &replay->loops[--replay->depth], code);
  if (replay->options.result) {
    replay->result.wall_ns = vyre__clock_ns() - start;
    *replay->options.result = replay->result;
  }
  VYRE__COUNT(rec->device, replays, 1);
  return code;
}

/* --- starting a replay -------------------------------------------------- */

/* Acquires the bound buffers, prepares the commands and makes all checks. The
 * caller releases the buffers in any case. Completed uploads are checked only
 * if no replay is pending; otherwise the check is repeated when the replay
 * runs. */
static vyre_code prepare_replay(running_replay *replay, bool is_only_user,
                                vyre_status *st) {
  vyre_recording *rec = replay->rec;
  VYRE_TRY(vyre__device_check(rec->device, st));
  VYRE_TRY(vyre__recording_acquire_buffers(rec, &replay->held, st));
  vyre_code code = vyre__recording_prepare(rec, &replay->result.rebuilt, st);
  if (replay->result.rebuilt > 0) {
    VYRE__COUNT(rec->device, rebuilds, replay->result.rebuilt);
  }
  if (code == VYRE_OK && replay->options.skip_uploads) {
    code = vyre__recording_may_skip_uploads(rec, st);
    if (code == VYRE_OK && is_only_user) {
      code = vyre__recording_check_uploaded(rec, st);
    }
  }
  return code;
}

/* Refuses an instance that ran in the parent process at the fork: its state is
 * that of an unfinished replay, which never ends here. */
static vyre_code check_process(vyre_recording *rec, vyre_status *st) {
  unsigned generation = vyre__process_generation();
  if (rec->users == 0) rec->generation = generation;
  if (rec->generation == generation) return VYRE_OK;
  return VYRE_FAIL(st, VYRE_DEVICE_LOST, VYRE_KIND_DEVICE_LOST,
                   "create the recording again in the child process, or wait "
                   "for its replays before the fork",
                   "a replay of the recording was not done at the fork; it "
                   "belongs to the parent process");
}

/* Registers the replay as a user of the current instance and prepares it. */
static vyre_code acquire(running_replay *replay, bool is_queued,
                         vyre_status *st) {
  vyre_recording *first = replay->rec;
  pthread_mutex_lock(&first->lock);
  replay->rec = first->current;
  bool is_only_user = true;
  for (const vyre_recording *c = first; c; c = c->next_instance)
    is_only_user = is_only_user && c->users == 0;
  vyre_code code = check_process(replay->rec, st);
  replay->rec->users++;
  if (is_queued) replay->rec->pending++;
  if (code == VYRE_OK) code = prepare_replay(replay, is_only_user, st);
  pthread_mutex_unlock(&first->lock);
  return code;
}

static void release(const running_replay *replay, bool is_queued) {
  vyre_recording *rec = replay->rec;
  vyre__recording_release_buffers(rec, replay->held);
  pthread_mutex_lock(&rec->first->lock);
  rec->users--;
  if (is_queued) rec->pending--;
  pthread_mutex_unlock(&rec->first->lock);
}

/* Runs the replay after conflicting replays have ended. */
static vyre_code run_active(running_replay *replay, bool is_queued,
                            vyre_status *st) {
  vyre_recording *rec = replay->rec;
  vyre_code code = VYRE_OK;
  VYRE_TRY(vyre__active_replay_begin(&replay->active, rec, is_queued,
                                     replay->options.wait_for_conflicts, st));
  vyre__replay_scope scope; /* for callbacks; the queue has its own thread */
  if (!is_queued) vyre__replay_scope_begin(&scope, rec->device);
  if (replay->options.skip_uploads) {
    pthread_mutex_lock(&rec->first->lock);
    code = vyre__recording_check_uploaded(rec, st);
    pthread_mutex_unlock(&rec->first->lock);
  }
  if (code == VYRE_OK) code = run_all(replay, st);
  if (!is_queued) vyre__replay_scope_end(&scope);
  vyre__active_replay_end(&replay->active);
  return code;
}

/* Returns true if queued work must complete first: a replay of the same
 * recording is pending, or a device buffer is bound, which queued work may
 * write. */
static bool conflicts_with_queue(vyre_recording *first) {
  pthread_mutex_lock(&first->lock);
  const vyre_recording *rec = first->current;
  bool conflicts = false;
  for (const vyre_recording *c = first; c; c = c->next_instance) {
    conflicts = conflicts || c->pending > 0;
  }
  for (size_t i = 0; i < rec->slot_count && !conflicts; i++) {
    conflicts = rec->slots[i].buffer != NULL;
  }
  pthread_mutex_unlock(&first->lock);
  return conflicts;
}

static vyre_code replay_now(running_replay *replay, vyre_status *st) {
  vyre_device *device = replay->rec->device;
  uint64_t start = vyre__trace_begin(device->context);
  /* Wait before the replay becomes active: queued replays may wait for it. */
  if (vyre__device_is_busy(device) && conflicts_with_queue(replay->rec)) {
    vyre__queue_wait(device);
  }
  vyre_code code = acquire(replay, false, st);
  if (code == VYRE_OK) code = run_active(replay, false, st);
  release(replay, false);
  trace_replay(replay, start, code);
  return code;
}

typedef struct replay_work {
  vyre_fence fence;
  running_replay replay;
} replay_work;

static vyre_code replay_work_run(vyre_fence *fence, vyre_status *st) {
  running_replay *replay = &((replay_work *)fence)->replay;
  uint64_t start = vyre__trace_begin(replay->rec->device->context);
  vyre_code code = run_active(replay, true, st);
  trace_replay(replay, start, code);
  return code;
}

static void replay_work_cleanup(vyre_fence *fence) {
  const running_replay *replay = &((replay_work *)fence)->replay;
  vyre_recording *first = replay->rec->first;
  release(replay, true);
  vyre_recording_release(first);
}

static vyre_code replay_later(running_replay *replay, vyre_fence **out,
                              vyre_status *st) {
  vyre_device *device = replay->rec->device;
  vyre_fence *fence;
  VYRE_TRY(vyre__fence_make(device->context, sizeof(replay_work), &fence, st));
  vyre_code code = acquire(replay, true, st);
  if (code != VYRE_OK) {
    release(replay, true);
    vyre__fence_discard(fence);
    return code;
  }
  ((replay_work *)fence)->replay = *replay;
  vyre_recording_retain(replay->rec->first);
  fence->work = replay_work_run;
  fence->cleanup = replay_work_cleanup;
  *out = fence;
  code = vyre__queue_push(device, &device->state->queue, fence, st);
  if (code != VYRE_OK) {
    *out = NULL;
    replay_work_cleanup(fence);
    vyre__fence_discard(fence);
  }
  return code;
}

vyre_code vyre_recording_replay(vyre_recording *rec,
                                const vyre_replay_options *options,
                                vyre_fence **fence, vyre_status *st) {
  vyre__status_begin(st);
  if (fence) *fence = NULL;
  if (!rec) {
    return vyre__null_argument(st, __func__, "recording");
  }
  if (!rec->is_sealed) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "call vyre_recording_seal first",
                     "the recording is not sealed");
  }
  if (options) VYRE_CHECK_RESERVED(st, __func__, options);
  running_replay replay = {.rec = rec};
  if (options) replay.options = *options;
  if (replay.options.result) *replay.options.result = (vyre_replay_result){0};
  if (!fence) return replay_now(&replay, st);
  uint64_t start = vyre__trace_begin(rec->device->context);
  vyre_code code = replay_later(&replay, fence, st);
  vyre__trace_end(rec->device->context, start, .kind = VYRE__TRACE_SUBMIT,
                  .name = "submit replay", .device = rec->device,
                  .result = code,
                  .numbers = {{"commands", rec->command_count}});
  return code;
}
