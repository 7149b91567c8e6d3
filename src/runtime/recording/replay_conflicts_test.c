/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks concurrent replays: which of them run, wait or are refused. Also
 * checks slots that are bound during replays. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/memory/device_buffer.h"
#include "runtime/recording/recording_testing.h"
#include "support/sanitized.h"

static const vyre_allocator heap;

static void nap(void) {
  nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* A replay on another thread that its print callback delays until it is
 * released. The kernel adds one to n. */
typedef struct held {
  vyre_recording *rec;
  uint32_t slot;
  pthread_t thread;
  atomic_bool has_begun, may_end, is_over;
  vyre_code code;
} held;

/* Waits at most ten seconds. */
static bool hold_up(void *self, const char *bytes, size_t length) {
  held *h = self;
  (void)bytes, (void)length;
  atomic_store(&h->has_begun, true);
  for (int i = 0; i < 10000 && !atomic_load(&h->may_end); i++) nap();
  return true;
}

static bool drop_text(void *self, const char *bytes, size_t length) {
  (void)self, (void)bytes, (void)length;
  return true;
}

/* Records a dispatch that adds one to slot 'n'. */
static vyre_recording *record(const bench *b, vyre_writer print) {
  vyre_status st = {0};
  vyre_recording *rec;
  CHECK_OK(vyre_recording_create(b->device, &rec, &st), st);
  vyre_slot_range n = vyre_slot_range_all(add_slot(rec, "n", 4));
  vyre_recorded_dispatch d = {.inputs = &n,
                              .input_count = 1,
                              .outputs = &n,
                              .output_count = 1,
                              .print = print};
  CHECK_OK(vyre_recording_add_dispatch(rec, b->pipelines[TELL], &d, &st), st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  return rec;
}

/* Records a copy from slot 'from' to slot 'to'. */
static vyre_recording *record_copy(const bench *b, vyre_slot_binding from,
                                   vyre_slot_binding to) {
  vyre_status st = {0};
  vyre_recording *rec;
  CHECK_OK(vyre_recording_create(b->device, &rec, &st), st);
  vyre_slot_range in = vyre_slot_range_all(add_slot(rec, "from", 4)),
                  out = vyre_slot_range_all(add_slot(rec, "to", 4));
  CHECK_OK(vyre_recording_add_copy(rec, in, out, &st), st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  CHECK_OK(vyre_recording_bind_slot(rec, in.slot, &from, &st), st);
  CHECK_OK(vyre_recording_bind_slot(rec, out.slot, &to, &st), st);
  return rec;
}

static void *run_held(void *self) {
  held *h = self;
  vyre_status st = {0};
  h->code = vyre_recording_replay(h->rec, NULL, NULL, &st);
  atomic_store(&h->is_over, true);
  return NULL;
}

static void begin_held(held *h) {
  CHECK(pthread_create(&h->thread, NULL, run_held, h) == 0);
  while (!atomic_load(&h->has_begun)) nap();
}

static void end_held(held *h) {
  atomic_store(&h->may_end, true);
  CHECK(pthread_join(h->thread, NULL) == 0);
  CHECK(h->code == VYRE_OK);
}

static uint32_t value_of(const bench *b, vyre_buffer n) {
  vyre_status st = {0};
  uint32_t value;
  CHECK_OK(vyre_buffer_download(b->device, n, 0, &value, 4, &st), st);
  return value;
}

/* --- forks -------------------------------------------------------------- */

/* Replays in a forked child while @p held, whose thread exists in the parent
 * only, was not done. Returns 0, or a number for the failure. */
static int replay_in_child(const bench *b, held *h, vyre_recording *idle,
                           vyre_fence *pending) {
  vyre_status st = {0};
  vyre_fence *fence = NULL;
  const vyre_replay_options waits = {.wait_for_conflicts = true};
  if (vyre_recording_replay(h->rec, &waits, NULL, &st) != VYRE_DEVICE_LOST ||
      !st.fix[0]) {
    return 1;
  }
  if (vyre_recording_replay(h->rec, NULL, &fence, &st) != VYRE_DEVICE_LOST ||
      fence) {
    return 2;
  }
  if (vyre_fence_wait(pending, VYRE_WAIT_FOREVER, &st) != VYRE_DEVICE_LOST)
    return 3;
  /* It writes the same memory, and ran in the parent before. */
  if (vyre_recording_replay(idle, &waits, NULL, &st) != VYRE_OK) return 4;
  /* Other memory for the recording that was running. */
  const vyre_slot_binding mine = {.buffer = create_buffer(b->device, 4)};
  if (vyre_recording_bind_slot(h->rec, 0, &mine, &st) != VYRE_OK) return 5;
  atomic_store(&h->may_end, true);
  if (vyre_recording_replay(h->rec, NULL, NULL, &st) != VYRE_OK) return 6;
  if (value_of(b, mine.buffer) != 1) return 7;
  vyre_fence_release(pending);
  return 0;
}

TEST(a_replay_of_the_parent_does_not_block_a_forked_child) {
  if (THREAD_SANITIZED) return; /* it cannot fork a process with threads */
  bench b = bench_open(heap);
  held h = {0};
  vyre_status st = {0};
  vyre_fence *pending;
  int status = -1;
  const vyre_slot_binding n = {.buffer = create_buffer(b.device, 4)};
  h.rec = record(&b, (vyre_writer){hold_up, &h});
  vyre_recording *idle = record(&b, (vyre_writer){drop_text, NULL});
  CHECK_OK(vyre_recording_bind_slot(idle, 0, &n, &st), st);
  CHECK_OK(vyre_recording_replay(idle, NULL, NULL, &st), st);
  CHECK_OK(vyre_recording_bind_slot(h.rec, 0, &n, &st), st);
  begin_held(&h);
  CHECK_OK(vyre_recording_replay(h.rec, NULL, &pending, &st), st);
  (void)fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    (void)alarm(20);
    _exit(replay_in_child(&b, &h, idle, pending));
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK_U64(WEXITSTATUS(status), 0);
  end_held(&h);
  CHECK_OK(vyre_fence_wait(pending, VYRE_WAIT_FOREVER, &st), st);
  vyre_fence_release(pending);
  CHECK_U64(value_of(&b, n.buffer), 3);
  vyre_recording_release(h.rec);
  vyre_recording_release(idle);
  bench_close(&b);
}

/* --- conflicts ---------------------------------------------------------- */

/* A replay on another thread writes device buffer `mine`, or host memory. A
 * second replay uses the memory of the case. */
TEST(a_replay_that_shares_written_memory_is_refused_by_name) {
  static const struct {
    const char *name;
    bool is_host; /* memory that the other replay writes */
    /* 0: `mine`; 1 and 2: other buffers; -1: the same recording */
    int from, to;
    const char *slot; /* slot named in the message; NULL: no conflict */
  } cases[] = {{"the same recording", false, -1, -1, "n"},
               {"writes it", false, 1, 0, "to"},
               {"reads it", false, 0, 1, "from"},
               {"uses other buffers", false, 1, 2, NULL},
               {"the same, of the host", true, -1, -1, "n"},
               {"writes it on the host", true, 1, 0, "to"},
               {"reads it on the host", true, 0, 1, "from"},
               {"other bytes of the host", true, 1, 2, NULL}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    bench b = bench_open(heap);
    held h = {0};
    vyre_status st = {0};
    uint32_t words[3] = {0};
    vyre_buffer buffers[3];
    vyre_slot_binding all[3];
    for (int k = 0; k < 3; k++) {
      buffers[k] = create_buffer(b.device, 4);
      all[k] = cases[i].is_host
                   ? (vyre_slot_binding){.data = &words[k], .size = 4}
                   : (vyre_slot_binding){.buffer = buffers[k]};
    }
    h.rec = record(&b, (vyre_writer){hold_up, &h});
    CHECK_OK(vyre_recording_bind_slot(h.rec, 0, &all[0], &st), st);
    vyre_recording *other =
        cases[i].from < 0
            ? vyre_recording_retain(h.rec)
            : record_copy(&b, all[cases[i].from], all[cases[i].to]);
    begin_held(&h);
    vyre_code code = vyre_recording_replay(other, NULL, NULL, &st);
    if (cases[i].slot) {
      char text[80];
      uint64_t resident = 0;
      CHECK(code == VYRE_INVALID_ARGUMENT);
      CHECK(st.kind == VYRE_KIND_RESOURCE_BUSY);
      (void)snprintf(text, sizeof text, "slot '%s'", cases[i].slot);
      CHECK_HAS(st.message, text);
      CHECK(vyre_status_number_get(&st, "device_buffer", &resident) ==
            !cases[i].is_host);
      if (!cases[i].is_host) CHECK_U64(resident, buffers[0].id);
    } else {
      CHECK_OK(code, st);
    }
    CHECK(!atomic_load(&h.is_over)); /* the call did not wait */
    end_held(&h);
    st = (vyre_status){0};
    CHECK_OK(vyre_recording_replay(other, NULL, NULL, &st), st);
    vyre_recording_release(other);
    vyre_recording_release(h.rec);
    bench_close(&b);
  }
}

/* --- waiting ------------------------------------------------------------ */

typedef struct waiter {
  vyre_recording *rec;
  atomic_bool is_over;
  vyre_code code;
} waiter;

static void *run_waiter(void *self) {
  waiter *w = self;
  w->code = vyre_recording_replay(
      w->rec, &(vyre_replay_options){.wait_for_conflicts = true}, NULL, NULL);
  atomic_store(&w->is_over, true);
  return NULL;
}

TEST(a_replay_may_wait_for_conflicts) {
  bench b = bench_open(heap);
  vyre_buffer n = create_buffer(b.device, 4);
  held h = {0};
  h.rec = record(&b, (vyre_writer){hold_up, &h});
  bind_buffer(h.rec, 0, n);
  vyre_recording *other = record(&b, (vyre_writer){drop_text, NULL});
  bind_buffer(other, 0, n);
  waiter w[2] = {{.rec = h.rec}, {.rec = other}};
  pthread_t threads[2];
  begin_held(&h);
  for (int i = 0; i < 2; i++) {
    CHECK(pthread_create(&threads[i], NULL, run_waiter, &w[i]) == 0);
  }
  for (int i = 0; i < 20; i++) nap();
  CHECK(!atomic_load(&w[0].is_over) && !atomic_load(&w[1].is_over));
  end_held(&h);
  for (int i = 0; i < 2; i++) {
    CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(w[i].code == VYRE_OK);
  }
  CHECK_U64(value_of(&b, n), 3);
  vyre_recording_release(h.rec);
  vyre_recording_release(other);
  bench_close(&b);
}

/* Queued replays run after the replays that were active when they were
 * submitted. */
TEST(a_replay_with_a_fence_is_never_refused_and_runs_later) {
  bench b = bench_open(heap);
  vyre_buffer n = create_buffer(b.device, 4), got = create_buffer(b.device, 4);
  vyre_status st = {0};
  held h = {0};
  vyre_fence *fences[2];
  h.rec = record(&b, (vyre_writer){hold_up, &h});
  bind_buffer(h.rec, 0, n);
  vyre_recording *reader = record_copy(&b, (vyre_slot_binding){.buffer = n},
                                       (vyre_slot_binding){.buffer = got});
  begin_held(&h);
  CHECK_OK(vyre_recording_replay(h.rec, NULL, &fences[0], &st), st);
  CHECK_OK(vyre_recording_replay(reader, NULL, &fences[1], &st), st);
  for (int i = 0; i < 20; i++) nap();
  CHECK(!vyre_fence_is_done(fences[0]) && !vyre_fence_is_done(fences[1]));
  end_held(&h);
  for (int i = 0; i < 2; i++) {
    CHECK_OK(vyre_fence_wait(fences[i], VYRE_WAIT_FOREVER, &st), st);
    vyre_fence_release(fences[i]);
  }
  CHECK_U64(value_of(&b, n), 2);
  CHECK_U64(value_of(&b, got), 2); /* results of both */
  vyre_recording_release(h.rec);
  vyre_recording_release(reader);
  bench_close(&b);
}

/* --- binding slots during replays --------------------------------------- */

TEST(one_recording_runs_twice_at_once_with_other_memory) {
  bench b = bench_open(heap);
  vyre_buffer first = create_buffer(b.device, 4),
              second = create_buffer(b.device, 4);
  vyre_status st = {0};
  vyre_replay_result result;
  vyre_replay_options options = {.result = &result};
  held h = {0};
  h.rec = record(&b, (vyre_writer){hold_up, &h});
  bind_buffer(h.rec, 0, first);
  begin_held(&h);
  atomic_store(&h.has_begun, false);
  bind_buffer(h.rec, 0, second);
  /* The second replay releases the first, so both are active at once. */
  waiter w = {.rec = h.rec};
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, run_waiter, &w) == 0);
  while (!atomic_load(&h.has_begun)) nap();
  CHECK(!atomic_load(&h.is_over) && !atomic_load(&w.is_over));
  end_held(&h);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(w.code == VYRE_OK);
  CHECK_U64(value_of(&b, first), 1);
  CHECK_U64(value_of(&b, second), 1);
  /* The second binding is still current, and nothing is prepared again. */
  CHECK_OK(vyre_recording_replay(h.rec, &options, NULL, &st), st);
  CHECK_U64(result.rebuilt, 0);
  CHECK_U64(value_of(&b, second), 2);
  vyre_recording_release(h.rec);
  bench_close(&b);
}

TEST(queued_replays_keep_the_memory_they_were_submitted_with) {
  enum { MAX_COUNT = 8, ROUNDS = 3 };
  bench b = bench_open(heap);
  vyre_buffer n[MAX_COUNT + 1];
  vyre_status st = {0};
  vyre_replay_result results[MAX_COUNT] = {0};
  held h = {0};
  for (int i = 0; i <= MAX_COUNT; i++) n[i] = create_buffer(b.device, 4);
  vyre_recording *stopper = record(&b, (vyre_writer){hold_up, &h});
  vyre_recording *rec = record(&b, (vyre_writer){drop_text, NULL});
  bind_buffer(stopper, 0, n[MAX_COUNT]);
  for (int round = 0; round < ROUNDS; round++) {
    vyre_fence *stop, *fences[MAX_COUNT];
    atomic_store(&h.may_end, false);
    CHECK_OK(vyre_recording_replay(stopper, NULL, &stop, &st), st);
    for (int i = 0; i < MAX_COUNT; i++) {
      bind_buffer(rec, 0, n[i]);
      CHECK_OK(vyre_recording_replay(
                   rec, &(vyre_replay_options){.result = &results[i]},
                   &fences[i], &st),
               st);
    }
    CHECK_FAILS(vyre_recording_bind_slot(
                    rec, 0, &(vyre_slot_binding){.buffer = n[MAX_COUNT]}, &st),
                st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
    st = (vyre_status){0};
    atomic_store(&h.may_end, true);
    CHECK_OK(vyre_fence_wait(stop, VYRE_WAIT_FOREVER, &st), st);
    vyre_fence_release(stop);
    for (int i = 0; i < MAX_COUNT; i++) {
      CHECK_OK(vyre_fence_wait(fences[i], VYRE_WAIT_FOREVER, &st), st);
      vyre_fence_release(fences[i]);
      CHECK_U64(value_of(&b, n[i]), (uint64_t)round + 1);
      /* From the second iteration on every binding has an instance. The first
       * bind switches to the instance used last, whose replays have ended; the
       * last bind finds the instance of the first. */
      uint64_t rebuilt = round > 0 && (i == 0 || i == MAX_COUNT - 1);
      CHECK_U64(results[i].rebuilt, round > 0 ? rebuilt : i > 0);
    }
  }
  vyre_recording_release(rec);
  vyre_recording_release(stopper);
  bench_close(&b);
}

static vyre_fence *queue(vyre_recording *rec, const vyre_replay_options *o) {
  vyre_status st = {0};
  vyre_fence *fence;
  CHECK_OK(vyre_recording_replay(rec, o, &fence, &st), st);
  return fence;
}

static void finish(vyre_fence *fence) {
  vyre_status st = {0};
  CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
  vyre_fence_release(fence);
}

/* Uploads of a pending replay count for the replays behind it, also if those
 * have other bindings; those that another upload overwrites do not. */
TEST(a_queued_replay_may_skip_the_uploads_of_the_one_before) {
  bench b = bench_open(heap);
  vyre_status st = {0};
  held h = {0};
  vyre_buffer n = create_buffer(b.device, 4);
  vyre_recording *stopper = record(&b, (vyre_writer){hold_up, &h});
  bind_buffer(stopper, 0, n);
  chain c = chain_make(&b, false);
  chain_data d;
  chain_data_make(&b, &d);
  uint32_t others[ELEMENTS] = {50}, seven = 7;
  vyre_replay_result r = {0}, again = {0};
  const vyre_replay_options keep = {.skip_uploads = true, .result = &r},
                            keep_again = {.skip_uploads = true,
                                          .result = &again};
  for (int round = 0; round < 3; round++) { /* later: idle instances, too */
    atomic_store(&h.may_end, false);
    chain_bind(&c, &d);
    vyre_fence *fences[6] = {queue(stopper, NULL), queue(c.rec, NULL)};
    bind_buffer(c.rec, c.y, d.sum); /* another instance */
    bind_bytes(c.rec, c.a, &seven, 4);
    fences[2] = queue(c.rec, &keep);
    fences[3] = queue(c.rec, &keep_again); /* the same instance */
    bind_bytes(c.rec, c.host, others, BYTES);
    fences[4] = queue(c.rec, NULL);
    bind_bytes(c.rec, c.host, d.host, BYTES); /* x has `others` by then */
    fences[5] = queue(c.rec, &keep);
    atomic_store(&h.may_end, true);
    for (int i = 0; i < 5; i++) finish(fences[i]);
    CHECK_U64(again.skipped_uploads, 1);
    CHECK_U64(d.back[0], 350); /* 7 * 50, by replay 4 */
    CHECK_FAILS(vyre_fence_wait(fences[5], VYRE_WAIT_FOREVER, &st), st,
                VYRE_INVALID_ARGUMENT, VYRE_KIND_UNSAFE_REPLAY);
    CHECK_HAS(st.message, "was not uploaded");
    st = (vyre_status){0};
    vyre_fence_release(fences[5]);
  }
  vyre_recording_release(c.rec);
  vyre_recording_release(stopper);
  bench_close(&b);
}

/* Binding the same memory again takes no further instance. */
TEST(binding_the_same_memory_again_needs_no_instance) {
  enum { TIMES = 12 };
  for (int is_read_only = 0; is_read_only < 2; is_read_only++) {
    bench b = bench_open(heap);
    uint32_t word = 7;
    vyre__imported_memory memory = {
        .data = &word, .size = 4, .is_read_only = is_read_only};
    vyre_buffer stop = create_buffer(b.device, 4),
                got = create_buffer(b.device, 4), from;
    vyre_status st = {0};
    held h = {0};
    vyre_fence *fences[TIMES + 1];
    CHECK_OK(vyre__device_buffer_import(b.device, &memory, &from, &st), st);
    vyre_recording *stopper = record(&b, (vyre_writer){hold_up, &h});
    vyre_recording *rec = record_copy(&b, (vyre_slot_binding){.buffer = from},
                                      (vyre_slot_binding){.buffer = got});
    bind_buffer(stopper, 0, stop);
    CHECK_OK(vyre_recording_replay(stopper, NULL, &fences[TIMES], &st), st);
    for (int i = 0; i < TIMES; i++) {
      bind_buffer(rec, 0, from);
      CHECK_OK(vyre_recording_replay(rec, NULL, &fences[i], &st), st);
    }
    atomic_store(&h.may_end, true);
    for (int i = 0; i <= TIMES; i++) {
      CHECK_OK(vyre_fence_wait(fences[i], VYRE_WAIT_FOREVER, &st), st);
      vyre_fence_release(fences[i]);
    }
    CHECK_U64(value_of(&b, got), 7);
    vyre_recording_release(rec);
    vyre_recording_release(stopper);
    bench_close(&b);
  }
}

TEST(a_bind_without_memory_changes_nothing) {
  for (long left = 0;; left++) {
    test_heap memory = {.left = -1};
    bench b = bench_open((vyre_allocator){test_heap_resize, &memory});
    vyre_buffer first = create_buffer(b.device, 4),
                second = create_buffer(b.device, 4);
    vyre_status st = {0};
    held h = {0};
    h.rec = record(&b, (vyre_writer){hold_up, &h});
    bind_buffer(h.rec, 0, first);
    begin_held(&h);
    memory.left = left;
    vyre_slot_binding r = {.buffer = second};
    vyre_code code = vyre_recording_bind_slot(h.rec, 0, &r, &st);
    memory.left = -1;
    end_held(&h);
    CHECK(code == VYRE_OK || code == VYRE_OUT_OF_MEMORY);
    CHECK(code == VYRE_OK || st.fix[0]);
    st = (vyre_status){0};
    CHECK_OK(vyre_recording_replay(h.rec, NULL, NULL, &st), st);
    CHECK_U64(value_of(&b, first), code == VYRE_OK ? 1 : 2);
    CHECK_U64(value_of(&b, second), code == VYRE_OK ? 1 : 0);
    vyre_recording_release(h.rec);
    bench_close(&b);
    CHECK_U64(memory.live_bytes, 0);
    if (code == VYRE_OK) break;
  }
}

/* Refused with and without pending replays, even for the same memory. */
TEST(a_fixed_slot_is_never_bound) {
  bench b = bench_open(heap);
  vyre_buffer n[] = {create_buffer(b.device, 4), create_buffer(b.device, 4)};
  vyre_status st = {0};
  held h = {0};
  vyre_slot_range range = {0};
  vyre_recorded_dispatch d = {.inputs = &range,
                              .input_count = 1,
                              .outputs = &range,
                              .output_count = 1,
                              .print = {hold_up, &h}};
  CHECK_OK(vyre_recording_create(b.device, &h.rec, &st), st);
  CHECK_OK(vyre_recording_add_fixed_slot(
               h.rec, &(vyre_slot_binding){.buffer = n[0]}, &range.slot, &st),
           st);
  CHECK_OK(vyre_recording_add_dispatch(h.rec, b.pipelines[TELL], &d, &st), st);
  CHECK_OK(vyre_recording_seal(h.rec, &st), st);
  for (int is_held = 0; is_held < 2; is_held++) {
    if (is_held) begin_held(&h);
    for (int i = 0; i < 2; i++) {
      vyre_slot_binding r = {.buffer = n[i]};
      CHECK_FAILS(vyre_recording_bind_slot(h.rec, range.slot, &r, &st), st,
                  VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
      CHECK_HAS(st.message, "is fixed");
      st = (vyre_status){0};
    }
  }
  end_held(&h);
  vyre_recording_release(h.rec);
  bench_close(&b);
}

/* A freed buffer is refused, bound or not, even while a replay holds it. */
TEST(a_freed_buffer_is_not_bound_again_while_a_replay_has_it) {
  bench b = bench_open(heap);
  vyre_buffer n = create_buffer(b.device, 4);
  vyre_slot_binding r = {.buffer = n};
  vyre_status st = {0};
  held h = {0};
  h.rec = record(&b, (vyre_writer){hold_up, &h});
  bind_buffer(h.rec, 0, n);
  begin_held(&h);
  CHECK_OK(vyre_recording_bind_slot(h.rec, 0, &r, &st), st);
  CHECK_OK(vyre_buffer_destroy(b.device, n, &st), st);
  CHECK_FAILS(vyre_recording_bind_slot(h.rec, 0, &r, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_STALE_HANDLE);
  end_held(&h);
  vyre_recording_release(h.rec);
  bench_close(&b);
}

TEST_MAIN(TEST_ENTRY(a_replay_of_the_parent_does_not_block_a_forked_child),
          TEST_ENTRY(a_replay_that_shares_written_memory_is_refused_by_name),
          TEST_ENTRY(a_replay_may_wait_for_conflicts),
          TEST_ENTRY(a_replay_with_a_fence_is_never_refused_and_runs_later),
          TEST_ENTRY(one_recording_runs_twice_at_once_with_other_memory),
          TEST_ENTRY(queued_replays_keep_the_memory_they_were_submitted_with),
          TEST_ENTRY(a_queued_replay_may_skip_the_uploads_of_the_one_before),
          TEST_ENTRY(binding_the_same_memory_again_needs_no_instance),
          TEST_ENTRY(a_bind_without_memory_changes_nothing),
          TEST_ENTRY(a_fixed_slot_is_never_bound),
          TEST_ENTRY(a_freed_buffer_is_not_bound_again_while_a_replay_has_it))
