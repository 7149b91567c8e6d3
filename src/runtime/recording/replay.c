/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Running a recording: a walk over its commands, in their order. */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/print.h"
#include "base/status.h"
#include "runtime/core/trace.h"
#include "runtime/dispatch/command_list.h"
#include "runtime/recording/recording.h"

/* A loop that goes on. */
typedef struct frame {
  uint64_t rounds;     /* behind it, also those that were skipped */
  uint32_t in_stretch; /* since the host looked */
  uint32_t predicate;  /* what dispatches of the round test */
  uint64_t traced;     /* when it began; 0: there is no trace */
  size_t command;      /* that began it */
} frame;

/* One replay on its way. */
typedef struct walk {
  vyre_recording *rec;
  vyre_replay_options options;
  vyre_replay_result result;
  uint64_t deadline_ns; /* 0: none */
  frame frames[VYRE_RECORDING_DEPTH];
  uint32_t depth;
  vyre__active_replay flight;
  size_t here; /* the command that is at work: the one that failed */
  size_t held; /* slots whose buffers are */
} walk;

/* Says which command it was. */
static vyre_code name_command(vyre_code code, size_t command, vyre_status *st) {
  vyre__status_where(st, "command", command, "command %zu", command);
  return code;
}

static vyre_code timed_out(const walk *w, vyre_status *st) {
  char limit[VYRE__DURATION_TEXT];
  return VYRE_FAIL_WITH(st, VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT, NULL,
                        VYRE_NUMBERS({"timeout_ns", w->options.timeout_ns}),
                        "give the replay more time, or a loop fewer rounds",
                        "the replay was not over after %s",
                        vyre__duration(w->options.timeout_ns, limit));
}

/* --- the trace ---------------------------------------------------------------*/

/* Dispatches, uploads and downloads have events of their own: all that lies
 * inside of the replay's. */
static void trace_copy(const walk *w, uint64_t start, const vyre__command *c,
                       vyre_code code) {
  vyre__trace_end(w->rec->device->context, start, .kind = VYRE__TRACE_REPLAY,
                  .name = "copy", .device = w->rec->device, .result = code,
                  .numbers = {{"item", (uint64_t)(c - w->rec->commands)},
                              {"bytes", c->size}});
}

static void trace_loop(const walk *w, const frame *f, vyre_code code) {
  vyre__trace_end(w->rec->device->context, f->traced,
                  .kind = VYRE__TRACE_REPLAY, .name = "while",
                  .device = w->rec->device, .result = code,
                  .numbers = {{"item", f->command}, {"rounds", f->rounds}});
}

static void trace_replay(const walk *w, uint64_t start, vyre_code code) {
  const vyre_replay_result *r = &w->result;
  vyre__trace_end(w->rec->device->context, start, .kind = VYRE__TRACE_REPLAY,
                  .device = w->rec->device, .result = code,
                  .numbers = {{"commands", w->rec->command_count},
                              {"dispatches", r->dispatches},
                              {"copies", r->copies},
                              {"kept", r->skipped_uploads},
                              {"skipped", r->skipped},
                              {"recaptures", r->rebuilt}});
}

/* --- commands ----------------------------------------------------------------*/

/* One that ran to its end, and too long, is counted; and the round that it ends. */
static void count_late(walk *w, const vyre__command *c) {
  const vyre__launch *launch = &c->prepared->launch;
  if (!launch->is_complete || launch->launch_index + 1 < launch->launch_count)
    return;
  w->result.dispatches++;
  if (w->depth > 0 && c[1].kind == VYRE__COMMAND_END) w->result.iterations++;
}

static vyre_code run_dispatch(walk *w, vyre__command *c, vyre_status *st) {
  vyre__prepared *run = c->prepared;
  if (run->scratch.first) vyre_arena_reset(&run->scratch);
  if (w->deadline_ns != 0) { /* the shorter of the two counts */
    uint64_t now = vyre__clock_ns();
    if (now >= w->deadline_ns) return timed_out(w, st);
    uint64_t left = w->deadline_ns - now, own = c->desc.timeout_ns;
    run->own.timeout_ns = own != 0 && own < left ? own : left;
    run->launch.timeout_ns =
        own != 0 && own < left ? own : w->options.timeout_ns;
  }
  run->launch.is_complete = false;
  vyre_code code = vyre__prepared_execute(run, st);
  run->own.timeout_ns = run->launch.timeout_ns = c->desc.timeout_ns;
  run->launch.deadline_ns = 0;
  if (code == VYRE_OK) {
    w->result.dispatches++;
  } else if (code == VYRE_DISPATCH_FAILED) {
    count_late(w, c);
  }
  return code;
}

/* What the backend runs by itself from there on, if it does; then goes on at *at. */
static vyre_code run_part(walk *w, size_t *at, bool *is_taken,
                          vyre_status *st) {
  vyre_recording *rec = w->rec;
  vyre__part_result part = {0};
  vyre_code code = VYRE_OK;
  if (w->deadline_ns == 0 && rec->device->backend->command_list_run &&
      vyre__takes_command_lists(rec->device)) {
    code = vyre__recording_run_part(rec, *at, &part, st);
  }
  w->result.dispatches += part.dispatches;
  w->result.copies += part.copies;
  *is_taken = part.is_taken;
  if (part.is_taken) w->here = *at = part.end;
  return code;
}

/* Dispatches that follow each other, as many as the backend takes at once. Barriers
 * between them are kept: one comes after the other. Goes on at *at. */
static vyre_code run_dispatches(walk *w, size_t *at, vyre_status *st) {
  vyre_recording *rec = w->rec;
  vyre__prepared *runs[VYRE__MAX_COMMAND_LIST];
  uint32_t places[VYRE__MAX_COMMAND_LIST];
  size_t count = 0, end = *at, done, most = vyre__command_list_max(rec->device);
  bool may_stretch =
      w->deadline_ns == 0 && vyre__takes_command_lists(rec->device);
  for (; may_stretch && end < rec->command_count && count < most; end++) {
    const vyre__command *c = &rec->commands[end];
    if (c->kind == VYRE__COMMAND_BARRIER) continue;
    if (c->kind != VYRE__COMMAND_DISPATCH || !vyre__prepared_fits(c->prepared))
      break;
    if (c->prepared->scratch.first) vyre_arena_reset(&c->prepared->scratch);
    places[count] = (uint32_t)end;
    runs[count++] = c->prepared;
  }
  if (count < 2) return run_dispatch(w, &rec->commands[(*at)++], st);
  vyre_code code = vyre__command_list_run(runs, count, false, &done, st);
  w->result.dispatches += done;
  *at = done < count ? places[done] : end;
  w->here = *at;
  return code;
}

/* Between two buffers, of which one only the device sees. */
static vyre_code copy_hidden(vyre_device *device, const vyre__command *c,
                             unsigned char *bounce, vyre_status *st) {
  for (uint64_t at = 0; at < c->size; at += VYRE__BOUNCE) {
    uint64_t left = c->size - at;
    size_t part = left < VYRE__BOUNCE ? (size_t)left : VYRE__BOUNCE;
    VYRE_TRY(vyre__buffer_read(device, c->source.buffer, c->source.offset + at,
                               bounce, part, st));
    VYRE_TRY(vyre__buffer_write(device, c->target.buffer, c->target.offset + at,
                                bounce, part, st));
  }
  return VYRE_OK;
}

static vyre_code copy_bytes(const walk *w, vyre__command *c, vyre_status *st) {
  vyre_device *device = w->rec->device;
  size_t size = (size_t)c->size;
  VYRE_TRY(vyre__device_check(device, st));
  if (w->deadline_ns != 0 && vyre__clock_ns() >= w->deadline_ns) {
    return timed_out(w, st);
  }
  if (c->is_upload) {
    VYRE_TRY(vyre__buffer_write(device, c->target.buffer, c->target.offset,
                                c->source.host, size, st));
    if (!c->is_uploaded) { /* who asks to keep inputs may look just now */
      pthread_mutex_lock(&w->rec->first->lock);
      c->is_uploaded = true;
      pthread_mutex_unlock(&w->rec->first->lock);
    }
  } else if (c->source.buffer && !c->target.buffer) {
    VYRE_TRY(vyre__buffer_read(device, c->source.buffer, c->source.offset,
                               c->target.host, size, st));
  } else if (size > 0 && c->source.host && c->target.host) {
    memmove(c->target.host, c->source.host, size);
  } else if (size > 0) {
    VYRE_TRY(copy_hidden(device, c, w->rec->staging, st));
  }
  return VYRE_OK;
}

static vyre_code run_copy(walk *w, vyre__command *c, vyre_status *st) {
  if (c->is_upload && w->options.skip_uploads) {
    w->result.skipped_uploads++;
    return VYRE_OK;
  }
  uint64_t start = vyre__trace_begin(w->rec->device->context);
  vyre_code code = copy_bytes(w, c, st);
  trace_copy(w, start, c, code);
  if (code == VYRE_OK) w->result.copies++;
  return code;
}

/* The predicate of the next round. */
static vyre_code read_flag(const walk *w, const vyre__command *loop,
                           uint32_t *out, vyre_status *st) {
  if (loop->source.host) {
    memcpy(out, loop->source.host, sizeof *out);
    return VYRE_OK;
  }
  return vyre__buffer_read(w->rec->device, loop->source.buffer,
                           loop->source.offset, out, sizeof *out, st);
}

static bool is_skipping(const walk *w) {
  return w->depth > 0 && w->frames[w->depth - 1].predicate == 0;
}

static vyre_code exhausted(const vyre__command *loop, size_t begin,
                           vyre_status *st) {
  return VYRE_FAIL_WITH(
      st, VYRE_DISPATCH_FAILED, VYRE_KIND_MAX_ITERATIONS_REACHED, NULL,
      VYRE_NUMBERS({"max_rounds", loop->max_iterations}, {"command", begin}),
      "allow more rounds, or leave max_is_error false and look at reached_max",
      "the loop that command %zu begins did not end in %llu rounds", begin,
      (unsigned long long)loop->max_iterations);
}

/* Stretches of a loop whose flag the device tests, each of which the host waits for:
 * what comes out, and is counted, is what rounds one by one would give. Unless it
 * *is_over then, the host goes on with it, *rounds being behind it. */
static vyre_code run_loop(walk *w, const vyre__command *loop, size_t begin,
                          uint64_t *rounds, bool *is_over, vyre_status *st) {
  vyre_device *device = w->rec->device;
  uint64_t left = loop->max_iterations;
  vyre__command_list_loop part = {.flag = loop->source.buffer,
                                  .offset = loop->source.offset,
                                  .is_unfinished = true};
  *is_over = false;
  *rounds = 0;
  if (!device->backend->command_list_loop || !part.flag ||
      w->deadline_ns != 0 || loop->check_interval < 2 ||
      loop->body_dispatches == 0 || !vyre__takes_command_lists(device)) {
    return VYRE_OK;
  }
  while (left > 0 && part.is_unfinished) {
    part.max_iterations =
        left < loop->check_interval ? left : loop->check_interval;
    part.iterations = 0;
    part.is_taken = false;
    vyre_code code = vyre__recording_run_loop(w->rec, begin, &part, st);
    w->result.iterations += part.iterations;
    w->result.dispatches += part.iterations * loop->body_dispatches;
    if (code != VYRE_OK) return code;
    if (!part.is_taken) return VYRE_OK;
    *rounds += part.max_iterations;
    w->result.skipped +=
        (part.max_iterations - part.iterations) * loop->body_dispatches;
    w->result.flag_reads++;
    left -= part.max_iterations;
  }
  *is_over = true;
  if (!part.is_unfinished) return VYRE_OK;
  w->result.reached_max = true;
  return w->options.fail_at_max ? exhausted(loop, begin, st) : VYRE_OK;
}

/* Returns where it goes on in *at. */
static vyre_code begin_loop(walk *w, const vyre__command *loop, size_t *at,
                            vyre_status *st) {
  frame made = {0};
  if (is_skipping(w)) {
    w->result.skipped += loop->body_dispatches;
    *at = loop->match + 1;
    return VYRE_OK;
  }
  VYRE_TRY(read_flag(w, loop, &made.predicate, st));
  w->result.flag_reads++;
  if (made.predicate == 0) {
    *at = loop->match + 1;
    return VYRE_OK;
  }
  bool is_over;
  VYRE_TRY(run_loop(w, loop, *at, &made.rounds, &is_over, st));
  if (is_over) {
    *at = loop->match + 1;
    return VYRE_OK;
  }
  made.traced = vyre__trace_begin(w->rec->device->context);
  made.command = *at;
  w->frames[w->depth++] = made;
  ++*at;
  return VYRE_OK;
}

static vyre_code end_loop(walk *w, const vyre__command *loop, size_t begin,
                          size_t *at, vyre_status *st) {
  frame *f = &w->frames[w->depth - 1];
  f->rounds++;
  f->in_stretch++;
  if (f->predicate != 0) {
    w->result.iterations++;
    VYRE_TRY(read_flag(w, loop, &f->predicate, st));
  }
  if (w->deadline_ns != 0 && vyre__clock_ns() >= w->deadline_ns) {
    return timed_out(w, st);
  }
  bool is_last = f->rounds == loop->max_iterations;
  bool looks = is_last || f->in_stretch == loop->check_interval;
  if (looks) {
    w->result.flag_reads++;
    f->in_stretch = 0;
  }
  if (is_last && f->predicate != 0) {
    w->result.reached_max = true;
    if (w->options.fail_at_max) return exhausted(loop, begin, st);
  }
  if (is_last || (looks && f->predicate == 0)) {
    trace_loop(w, f, VYRE_OK);
    w->depth--;
    ++*at;
  } else {
    *at = begin + 1;
  }
  return VYRE_OK;
}

static vyre_code step(walk *w, size_t *at, vyre_status *st) {
  vyre__command *c = &w->rec->commands[*at];
  bool is_work =
      c->kind == VYRE__COMMAND_DISPATCH || c->kind == VYRE__COMMAND_COPY;
  if (is_work && !is_skipping(w)) {
    bool is_taken;
    vyre_code code = run_part(w, at, &is_taken, st);
    if (is_taken || code != VYRE_OK) return code;
  }
  switch (c->kind) {
    case VYRE__COMMAND_WHILE:
      return begin_loop(w, c, at, st);
    case VYRE__COMMAND_END:
      return end_loop(w, &w->rec->commands[c->match], c->match, at, st);
    case VYRE__COMMAND_DISPATCH:
      if (!is_skipping(w)) return run_dispatches(w, at, st);
      ++*at;
      w->result.skipped++;
      return VYRE_OK;
    case VYRE__COMMAND_COPY:
      ++*at;
      return is_skipping(w) ? VYRE_OK : run_copy(w, c, st);
    default: /* one after the other: a barrier is kept already */
      ++*at;
      return VYRE_OK;
  }
}

/* Held and ready; it is this thread's turn. */
static vyre_code run_all(walk *w, vyre_status *st) {
  vyre_recording *rec = w->rec;
  bool is_timed = w->options.result || w->options.timeout_ns;
  uint64_t start = is_timed ? vyre__clock_ns() : 0;
  if (w->options.timeout_ns) {
    w->deadline_ns = start + w->options.timeout_ns;
    if (w->deadline_ns < start) w->deadline_ns = UINT64_MAX;
  }
  vyre_code code = VYRE_OK;
  for (size_t at = 0; at < rec->command_count && code == VYRE_OK;) {
    w->here = at;
    code = step(w, &at, st);
    code = name_command(code, w->here, st);
  }
  while (w->depth > 0) trace_loop(w, &w->frames[--w->depth], code);
  if (w->options.result) {
    w->result.wall_ns = vyre__clock_ns() - start;
    *w->options.result = w->result;
  }
  VYRE__COUNT(rec->device, replays, 1);
  return code;
}

/* --- asking for it -----------------------------------------------------------*/

/* Everything that can be refused, and the hold on what is bound, which the caller
 * ends in any case. Whether inputs are there to be kept is asked when those before
 * it are over, which they are if it @p is_next. */
static vyre_code begin(walk *w, bool is_next, vyre_status *st) {
  vyre_recording *rec = w->rec;
  VYRE_TRY(vyre__device_check(rec->device, st));
  VYRE_TRY(vyre__recording_acquire(rec, &w->held, st));
  vyre_code code = vyre__recording_prepare(rec, &w->result.rebuilt, st);
  if (w->result.rebuilt > 0) {
    VYRE__COUNT(rec->device, recaptures, w->result.rebuilt);
  }
  if (code == VYRE_OK && w->options.skip_uploads) {
    code = vyre__recording_may_keep(rec, st);
    if (code == VYRE_OK && is_next) {
      code = vyre__recording_was_uploaded(rec, st);
    }
  }
  return code;
}

/* Takes the copy that is bound just now, and what it needs. */
static vyre_code enter(walk *w, bool is_queued, vyre_status *st) {
  vyre_recording *home = w->rec;
  pthread_mutex_lock(&home->lock);
  w->rec = home->current;
  bool is_next = w->rec->users++ == 0;
  if (is_queued) w->rec->pending++;
  vyre_code code = begin(w, is_next, st);
  pthread_mutex_unlock(&home->lock);
  return code;
}

static void leave(const walk *w, bool is_queued) {
  vyre_recording *rec = w->rec;
  vyre__recording_drop(rec, w->held);
  pthread_mutex_lock(&rec->first->lock);
  rec->users--;
  if (is_queued) rec->pending--;
  pthread_mutex_unlock(&rec->first->lock);
}

/* When it is this one's turn; nobody else runs these commands. */
static vyre_code fly(walk *w, bool is_queued, vyre_status *st) {
  vyre_recording *rec = w->rec;
  vyre_code code = VYRE_OK;
  VYRE_TRY(vyre__active_replay_begin(&w->flight, rec, is_queued,
                                     w->options.wait_for_conflicts, st));
  vyre__replay_scope turn; /* of a callback; the queue has its own thread */
  if (!is_queued) vyre__replay_scope_begin(&turn, rec->device);
  if (w->options.skip_uploads) {
    pthread_mutex_lock(&rec->first->lock);
    code = vyre__recording_was_uploaded(rec, st);
    pthread_mutex_unlock(&rec->first->lock);
  }
  if (code == VYRE_OK) code = run_all(w, st);
  if (!is_queued) vyre__replay_scope_end(&turn);
  vyre__active_replay_end(&w->flight);
  return code;
}

/* Whether what is queued matters: the same replay, or whoever writes a buffer that
 * is bound. */
static bool meets_queue(vyre_recording *home) {
  pthread_mutex_lock(&home->lock);
  const vyre_recording *rec = home->current;
  bool meets = false;
  for (const vyre_recording *c = home; c; c = c->next_instance) {
    meets = meets || c->pending > 0;
  }
  for (size_t i = 0; i < rec->slot_count && !meets; i++) {
    meets = rec->slots[i].buffer != NULL;
  }
  pthread_mutex_unlock(&home->lock);
  return meets;
}

static vyre_code replay_now(walk *w, vyre_status *st) {
  vyre_device *device = w->rec->device;
  uint64_t start = vyre__trace_begin(device->context);
  /* Before it is this one's turn, which queued replays would wait for. */
  if (vyre__device_is_busy(device) && meets_queue(w->rec)) {
    vyre__queue_wait(device);
  }
  vyre_code code = enter(w, false, st);
  if (code == VYRE_OK) code = fly(w, false, st);
  leave(w, false);
  trace_replay(w, start, code);
  return code;
}

typedef struct replay_work {
  vyre_fence fence;
  walk walk;
} replay_work;

static vyre_code replay_work_run(vyre_fence *fence, vyre_status *st) {
  walk *w = &((replay_work *)fence)->walk;
  uint64_t start = vyre__trace_begin(w->rec->device->context);
  vyre_code code = fly(w, true, st);
  trace_replay(w, start, code);
  return code;
}

static void replay_work_finish(vyre_fence *fence) {
  const walk *w = &((replay_work *)fence)->walk;
  vyre_recording *home = w->rec->first;
  leave(w, true);
  vyre_recording_release(home);
}

static vyre_code replay_later(walk *w, vyre_fence **out, vyre_status *st) {
  vyre_device *device = w->rec->device;
  vyre_fence *fence;
  VYRE_TRY(vyre__fence_make(device->context, sizeof(replay_work), &fence, st));
  vyre_code code = enter(w, true, st);
  if (code != VYRE_OK) {
    leave(w, true);
    vyre__fence_discard(fence);
    return code;
  }
  ((replay_work *)fence)->walk = *w;
  vyre_recording_retain(w->rec->first);
  fence->work = replay_work_run;
  fence->cleanup = replay_work_finish;
  *out = fence;
  code = vyre__queue_push(device, &device->state->queue, fence, st);
  if (code != VYRE_OK) {
    *out = NULL;
    replay_work_finish(fence);
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
    return vyre__null_argument(st, "vyre_recording_replay", "recording");
  }
  if (!rec->is_sealed) {
    return VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT,
                     "call vyre_recording_seal first",
                     "the recording is not finished");
  }
  walk w = {.rec = rec};
  if (options) w.options = *options;
  if (w.options.result) *w.options.result = (vyre_replay_result){0};
  if (!fence) return replay_now(&w, st);
  uint64_t start = vyre__trace_begin(rec->device->context);
  vyre_code code = replay_later(&w, fence, st);
  vyre__trace_end(rec->device->context, start, .kind = VYRE__TRACE_SUBMIT,
                  .name = "submit replay", .device = rec->device,
                  .result = code,
                  .numbers = {{"commands", rec->command_count}});
  return code;
}
