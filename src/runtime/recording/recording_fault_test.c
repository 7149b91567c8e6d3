/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Checks recordings on the queue, from many threads, and under injected
 * faults. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "runtime/recording/recording_testing.h"

static const vyre_allocator heap;

static vyre_code try_bind(vyre_recording *rec, uint32_t slot,
                          vyre_slot_binding resource, vyre_status *st) {
  return vyre_recording_bind_slot(rec, slot, &resource, st);
}

static vyre_code try_buffers(const bench *b, chain_data *d, vyre_status *st) {
  vyre_code code = vyre_buffer_create(b->device, BYTES, &d->x, st);
  if (code == VYRE_OK) {
    code = vyre_buffer_create(b->device, BYTES, &d->y, st);
  }
  if (code == VYRE_OK) {
    code = vyre_buffer_create(b->device, BYTES, &d->sum, st);
  }
  return code;
}

/* Records, binds, replays, binds again, and replays with a fence. */
static vyre_code scenario(const bench *b, chain_data *d, vyre_status *st) {
  chain c = {0};
  *d = (chain_data){.a = 3, .host = {5, 6, 7}};
  vyre_fence *fence = NULL;
  vyre_code code = try_buffers(b, d, st);
  if (code == VYRE_OK) code = chain_record(b, true, &c, st);
  vyre_slot_binding bound[] = {{.data = d->host, .size = BYTES},
                               {.buffer = d->x},
                               {.data = &d->a, .size = 4},
                               {.buffer = d->y},
                               {.buffer = d->sum},
                               {.data = d->back, .size = BYTES}};
  for (uint32_t i = 0; i < 6 && code == VYRE_OK; i++) {
    code = try_bind(c.rec, i, bound[i], st);
  }
  if (code == VYRE_OK) code = vyre_recording_replay(c.rec, NULL, NULL, st);
  if (code == VYRE_OK) {
    code = try_bind(c.rec, c.a,
                    (vyre_slot_binding){.data = &d->host[0], .size = 4}, st);
  }
  if (code == VYRE_OK) code = vyre_recording_replay(c.rec, NULL, &fence, st);
  if (code == VYRE_OK) code = vyre_fence_wait(fence, VYRE_WAIT_FOREVER, st);
  /* A failed wait does not mean that the work has ended: it must end before d
   * does. */
  while (fence && !vyre_fence_is_done(fence)) {
  }
  vyre_fence_release(fence);
  vyre_recording_release(c.rec);
  for (int i = 0; i < 3; i++) {
    vyre_buffer r = i == 0 ? d->x : i == 1 ? d->y : d->sum;
    if (r.owner) (void)!vyre_buffer_destroy(b->device, r, NULL);
  }
  return code;
}

TEST(every_fault_of_a_replay_returns_a_status) {
  static const struct {
    const char *name;
    vyre_code code;
    int max_hits; /* number of times that the fault can hit */
  } faults[] = {
      {"allocation", VYRE_OUT_OF_MEMORY, 100},
      {"compile", VYRE_OK, 0}, /* a replay compiles nothing */
      {"submit", VYRE_DISPATCH_FAILED, 4},
      {"upload", VYRE_DEVICE_OUT_OF_MEMORY, 2},
      {"download", VYRE_DEVICE_OUT_OF_MEMORY, 2},
      {"wait", VYRE_DISPATCH_FAILED, 1},
      {"device_lost", VYRE_DEVICE_LOST, 4},
  };
  for (size_t k = 0; k < sizeof faults / sizeof *faults; k++) {
    int hits = 0;
    for (int n = 1;; n++) {
      vyre_status st = {0}, none = {0};
      test_heap counted = {.left = -1};
      bench b = bench_open(test_heap_allocator(&counted));
      char text[32];
      chain_data d;
      snprintf(text, sizeof text, "%s:%d", faults[k].name, n);
      CHECK_OK(vyre_context_inject_faults(b.context, text, &none), none);
      vyre_code code = scenario(&b, &d, &st);
      bool is_lost = vyre_device_is_lost(b.device);
      CHECK_OK(vyre_context_inject_faults(b.context, "", &none), none);
      if (code != VYRE_OK) {
        hits++;
        CHECK(code == faults[k].code ||
              (k == 0 && code == VYRE_DEVICE_OUT_OF_MEMORY));
        CHECK(st.code == code && st.message[0] && st.fix[0]);
        CHECK(is_lost == (faults[k].code == VYRE_DEVICE_LOST));
      }
      if (!is_lost) { /* the device still works */
        st = (vyre_status){0};
        CHECK_OK(scenario(&b, &d, &st), st);
        CHECK_U64(d.back[1], 48); /* (3 + 5) * 6 */
      } else {
        CHECK(scenario(&b, &d, NULL) == VYRE_DEVICE_LOST);
      }
      bench_close(&b);
      CHECK_U64(counted.live_bytes, 0);
      if (code == VYRE_OK) break;
    }
    CHECK(hits > 0 || faults[k].max_hits == 0);
    if (k > 0) CHECK_U64(hits, faults[k].max_hits);
  }
}

TEST(a_failure_says_which_command_it_was) {
  vyre_status st = {0};
  bench b = bench_open(heap);
  chain c;
  chain_data d = {.a = 1};
  CHECK_OK(chain_record(&b, true, &c, &st), st);
  CHECK_OK(try_buffers(&b, &d, &st), st);
  bind_bytes(c.rec, c.host, d.host, BYTES);
  bind_bytes(c.rec, c.a, &d.a, 4);
  bind_bytes(c.rec, c.back, d.back, BYTES);
  bind_buffer(c.rec, c.x, d.x);
  bind_buffer(c.rec, c.y, d.y);
  bind_buffer(c.rec, c.sum, d.sum);
  vyre_replay_result r;
  vyre_replay_options options = {.result = &r};
  CHECK_OK(vyre_context_inject_faults(b.context, "submit:2", &st), st);
  CHECK_FAILS(vyre_recording_replay(c.rec, &options, NULL, &st), st,
              VYRE_DISPATCH_FAILED, VYRE_KIND_INJECTED_FAULT);
  CHECK_U64(status_number(&st, "command"), 2);
  CHECK_U64(r.dispatches, 1);
  CHECK_U64(r.copies, 1);
  vyre_recording_release(c.rec);
  bench_close(&b);
}

/* --- the queue ------------------------------------------------------------ */

/* Submits slow work first, so that the following replays stay in the queue. */
static vyre_fence *submit_hang(const bench *b) {
  static uint32_t hang[2];
  vyre_status st = {0};
  vyre_fence *fence;
  hang[0] = 1;
  vyre_input in = vyre_input_bytes(hang, 8);
  vyre_output out = vyre_output_bytes(hang, 8);
  vyre_dispatch_desc slow = {.inputs = &in,
                             .input_count = 1,
                             .outputs = &out,
                             .output_count = 1,
                             .timeout_ns = 50000000};
  CHECK_OK(vyre_submit(b->pipelines[HANG], &slow, 1, &fence, &st), st);
  return fence;
}

TEST(replays_with_a_fence_run_in_order_and_hold_their_buffers) {
  vyre_status st = {0};
  bench b = bench_open(heap);
  chain c;
  chain_data d = {.a = 1};
  for (uint32_t i = 0; i < ELEMENTS; i++) d.host[i] = i;
  CHECK_OK(chain_record(&b, true, &c, &st), st);
  CHECK_OK(try_buffers(&b, &d, &st), st);
  bind_bytes(c.rec, c.host, d.host, BYTES);
  bind_bytes(c.rec, c.a, &d.a, 4);
  bind_bytes(c.rec, c.back, d.back, BYTES);
  bind_buffer(c.rec, c.x, d.x);
  bind_buffer(c.rec, c.y, d.y);
  bind_buffer(c.rec, c.sum, d.sum);
  vyre_fence *first = submit_hang(&b), *fences[4];
  vyre_replay_result results[4];
  for (int i = 0; i < 4; i++) {
    vyre_replay_options options = {.result = &results[i]};
    CHECK_OK(vyre_recording_replay(c.rec, &options, &fences[i], &st), st);
  }
  bind_buffer(c.rec, c.sum, d.sum); /* the same binding, then another */
  bind_buffer(c.rec, c.sum, d.x);
  /* Frees the buffer during the replays, which still hold it. */
  CHECK_OK(vyre_buffer_destroy(b.device, d.y, &st), st);
  vyre_recording_release(c.rec);
  CHECK_OK(vyre_fence_wait(fences[3], VYRE_WAIT_FOREVER, &st), st);
  for (int i = 0; i < 4; i++) {
    CHECK(vyre_fence_is_done(fences[i]));
    CHECK_U64(results[i].dispatches, 2);
    vyre_fence_release(fences[i]);
  }
  vyre_fence_release(first);
  for (uint32_t i = 0; i < ELEMENTS; i++) CHECK(d.back[i] == 4 * i);
  vyre_counters counters;
  vyre_counters_read(b.device, &counters);
  CHECK_U64(counters.live_device_buffers, 2);
  bench_close(&b);
}

/* Replays after a queued replay that uploads: with a fence and without. */
TEST(uploads_are_skipped_after_a_queued_replay) {
  for (int is_later = 0; is_later < 2; is_later++) {
    vyre_status st = {0};
    bench b = bench_open(heap);
    chain c;
    chain_data d = {.a = 3};
    for (uint32_t i = 0; i < ELEMENTS; i++) d.host[i] = i + 1;
    CHECK_OK(chain_record(&b, false, &c, &st), st);
    CHECK_OK(try_buffers(&b, &d, &st), st);
    bind_bytes(c.rec, c.host, d.host, BYTES);
    bind_bytes(c.rec, c.a, &d.a, 4);
    bind_bytes(c.rec, c.back, d.back, BYTES);
    bind_buffer(c.rec, c.x, d.x);
    bind_buffer(c.rec, c.y, d.y);
    vyre_fence *first = submit_hang(&b), *fences[2] = {NULL, NULL};
    vyre_replay_result results[2];
    vyre_replay_options once = {.result = &results[0]};
    vyre_replay_options keep = {.skip_uploads = true, .result = &results[1]};
    CHECK_OK(vyre_recording_replay(c.rec, &once, &fences[0], &st), st);
    CHECK_OK(
        vyre_recording_replay(c.rec, &keep, is_later ? &fences[1] : NULL, &st),
        st);
    if (is_later)
      CHECK_OK(vyre_fence_wait(fences[1], VYRE_WAIT_FOREVER, &st), st);
    /* The work has ended by now; its fences signal a moment later. */
    CHECK_OK(vyre_fence_wait(fences[0], VYRE_WAIT_FOREVER, &st), st);
    CHECK(vyre_fence_is_done(first));
    CHECK_U64(results[0].skipped_uploads, 0);
    CHECK_U64(results[0].copies, 2);
    CHECK_U64(results[1].skipped_uploads, 1);
    CHECK_U64(results[1].copies, 1);
    for (uint32_t i = 0; i < ELEMENTS; i++)
      CHECK_U64(d.back[i], 3 * ((uint64_t)i + 1));
    vyre_fence_release(first);
    vyre_fence_release(fences[0]);
    vyre_fence_release(fences[1]);
    vyre_recording_release(c.rec);
    bench_close(&b);
  }
}

/* --- threads -------------------------------------------------------------- */

enum { THREADS = 8, TURNS = 50 };

typedef struct job {
  bench *b;
  vyre_recording *shared, *own;
  uint32_t own_count[2];
  bool is_good;
} job;

static vyre_recording *counter_record(const bench *b, uint32_t *words) {
  vyre_status st = {0};
  vyre_recording *rec;
  if (vyre_recording_create(b->device, &rec, &st) != VYRE_OK) return NULL;
  uint32_t slot;
  vyre_code code = vyre_recording_add_slot(rec, "n", 8, &slot, &st);
  vyre_slot_range p = vyre_slot_range_all(0);
  if (code == VYRE_OK) {
    code = add_dispatch(rec, b->pipelines[COUNT], &p, 1, &p, 1, &st);
  }
  if (code == VYRE_OK) code = vyre_recording_seal(rec, &st);
  if (code == VYRE_OK) {
    code = try_bind(rec, 0, (vyre_slot_binding){.data = words, .size = 8}, &st);
  }
  if (code == VYRE_OK) return rec;
  vyre_recording_release(rec);
  return NULL;
}

static void *replay_many(void *self) {
  job *j = self;
  j->own = counter_record(j->b, j->own_count);
  j->is_good = j->own != NULL;
  for (int i = 0; i < TURNS && j->is_good; i++) {
    vyre_fence *fence = NULL;
    bool is_later = i % 5 == 0;
    vyre_code code = vyre_recording_replay(
        j->shared, &(vyre_replay_options){.wait_for_conflicts = true},
        is_later ? &fence : NULL, NULL);
    if (code == VYRE_OK) {
      code = vyre_recording_replay(j->own, NULL, NULL, NULL);
    }
    if (code == VYRE_OK && fence) {
      code = vyre_fence_wait(fence, VYRE_WAIT_FOREVER, NULL);
    }
    vyre_fence_release(fence);
    j->is_good = code == VYRE_OK;
  }
  vyre_recording_release(j->own);
  return NULL;
}

/* Each replay adds one. Concurrent replays would lose updates. */
TEST(replays_of_one_recording_run_one_after_the_other) {
  bench b = bench_open(heap);
  uint32_t words[2] = {0};
  vyre_recording *shared = counter_record(&b, words);
  CHECK(shared);
  pthread_t threads[THREADS];
  static job jobs[THREADS];
  for (int i = 0; i < THREADS; i++) {
    jobs[i] = (job){.b = &b, .shared = shared};
    CHECK(pthread_create(&threads[i], NULL, replay_many, &jobs[i]) == 0);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) {
    CHECK(jobs[i].is_good);
    CHECK_U64(jobs[i].own_count[1], TURNS);
  }
  CHECK(words[1] == THREADS * TURNS);
  vyre_recording_release(shared);
  bench_close(&b);
}

/* A slow writer that detects concurrent replays. */
typedef struct crowd {
  vyre_recording *rec;
  atomic_int inside, max_inside;
} crowd;

static bool write_slowly(void *self, const char *bytes, size_t length) {
  crowd *c = self;
  (void)bytes, (void)length;
  int now = atomic_fetch_add(&c->inside, 1) + 1;
  if (now > atomic_load(&c->max_inside)) atomic_store(&c->max_inside, now);
  (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  atomic_fetch_sub(&c->inside, 1);
  return true;
}

static void *replay_crowd(void *self) {
  const crowd *c = self;
  for (int i = 0; i < 3; i++) {
    vyre_fence *fence = NULL;
    bool is_later = i == 1;
    if (vyre_recording_replay(
            c->rec, &(vyre_replay_options){.wait_for_conflicts = true},
            is_later ? &fence : NULL, NULL) != VYRE_OK) {
      break;
    }
    if (fence) (void)!vyre_fence_wait(fence, VYRE_WAIT_FOREVER, NULL);
    vyre_fence_release(fence);
  }
  return NULL;
}

TEST(no_two_replays_of_one_recording_run_at_once) {
  vyre_status st = {0};
  bench b = bench_open(heap);
  crowd c = {0};
  uint32_t word = 0, slot;
  CHECK_OK(vyre_recording_create(b.device, &c.rec, &st), st);
  vyre_slot_binding r = {.data = &word, .size = 4};
  CHECK_OK(vyre_recording_add_fixed_slot(c.rec, &r, &slot, &st), st);
  vyre_slot_range p = vyre_slot_range_all(slot);
  vyre_recorded_dispatch d = {.inputs = &p,
                              .input_count = 1,
                              .outputs = &p,
                              .output_count = 1,
                              .print = {write_slowly, &c}};
  CHECK_OK(vyre_recording_add_dispatch(c.rec, b.pipelines[TELL], &d, &st), st);
  CHECK_OK(vyre_recording_seal(c.rec, &st), st);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) {
    CHECK(pthread_create(&threads[i], NULL, replay_crowd, &c) == 0);
  }
  for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  CHECK_U64(word, 12);
  CHECK_U64((unsigned)atomic_load(&c.max_inside), 1);
  vyre_recording_release(c.rec);
  bench_close(&b);
}

TEST_MAIN(TEST_ENTRY(no_two_replays_of_one_recording_run_at_once),
          TEST_ENTRY(every_fault_of_a_replay_returns_a_status),
          TEST_ENTRY(a_failure_says_which_command_it_was),
          TEST_ENTRY(replays_with_a_fence_run_in_order_and_hold_their_buffers),
          TEST_ENTRY(uploads_are_skipped_after_a_queued_replay),
          TEST_ENTRY(replays_of_one_recording_run_one_after_the_other))
