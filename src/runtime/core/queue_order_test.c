/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of the order, the times and the threads of work with and without a
 * fence. */
#include <dirent.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/driver.h"

/* Computes y = 2 y + x; a large x takes long. */
static const char text[] =
    "kernel k workgroup(1)\n"
    "buffer x : read u32[1] @0;\n"
    "buffer y : read_write u32[1] @1;\n"
    "{\n"
    "    var n = 0u;\n"
    "    while (n < x[0]) n += 1;\n"
    "    y[0] = y[0] * 2 + n;\n"
    "}\n";

enum { LONG = 400000 };

typedef struct job {
  uint32_t x;
  vyre_input in[2];
  vyre_output out;
  vyre_dispatch_desc desc;
} job;

static void make(job *j, uint32_t rounds, vyre_buffer y) {
  *j = (job){.x = rounds};
  j->in[0] = vyre_input_bytes(&j->x, 4);
  j->in[1] = vyre_input_buffer(y);
  j->out = vyre_output_buffer(y);
  j->desc = (vyre_dispatch_desc){
      .inputs = j->in, .input_count = 2, .outputs = &j->out, .output_count = 1};
}

static uint32_t value_of(const rig *r, vyre_buffer y) {
  vyre_status st = {0};
  uint32_t value;
  CHECK_OK(vyre_buffer_download(r->device, y, 0, &value, 4, &st), st);
  return value;
}

TEST(device_buffers_see_work_in_call_order) {
  for (size_t count = 1; count <= 2; count++) {
    rig r = rig_open(text, NULL);
    vyre_status st = {0};
    vyre_buffer y;
    vyre_fence *fence;
    job slow, quick[2];
    CHECK_OK(vyre_buffer_create(r.device, 4, &y, &st), st);
    make(&slow, LONG, y);
    make(&quick[0], 1, y);
    make(&quick[1], 2, y);
    vyre_dispatch_desc items[] = {quick[0].desc, quick[1].desc};
    CHECK_OK(vyre_submit(r.pipeline, &slow.desc, 1, &fence, &st), st);
    CHECK_OK(vyre_submit(r.pipeline, items, count, NULL, &st), st);
    uint32_t want = 2 * LONG + 1;
    CHECK_U64(value_of(&r, y), count == 1 ? want : 2 * want + 2);
    CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
    vyre_fence_release(fence);
    CHECK_OK(vyre_buffer_destroy(r.device, y, &st), st);
    rig_close(&r);
  }
}

/* --- replays -------------------------------------------------------------- */

static uint32_t fixed(vyre_recording *rec, vyre_slot_binding resource) {
  vyre_status st = {0};
  uint32_t slot;
  CHECK_OK(vyre_recording_add_fixed_slot(rec, &resource, &slot, &st), st);
  return slot;
}

/* One dispatch: y = 2 y + x. */
static vyre_recording *record(const rig *r, vyre_slot_binding x,
                              vyre_slot_binding y, vyre_writer print) {
  vyre_status st = {0};
  vyre_recording *rec;
  CHECK_OK(vyre_recording_create(r->device, &rec, &st), st);
  vyre_slot_range in[] = {vyre_slot_range_all(fixed(rec, x)),
                          vyre_slot_range_all(fixed(rec, y))};
  vyre_recorded_dispatch d = {.inputs = in,
                              .input_count = 2,
                              .outputs = &in[1],
                              .output_count = 1,
                              .print = print};
  CHECK_OK(vyre_recording_add_dispatch(rec, r->pipeline, &d, &st), st);
  CHECK_OK(vyre_recording_seal(rec, &st), st);
  return rec;
}

TEST(a_replay_without_a_fence_does_not_overtake_queued_work) {
  rig r = rig_open(text, NULL);
  vyre_status st = {0};
  vyre_buffer y;
  vyre_fence *fence;
  uint32_t x = 7;
  job slow;
  CHECK_OK(vyre_buffer_create(r.device, 4, &y, &st), st);
  vyre_recording *rec =
      record(&r, (vyre_slot_binding){.data = &x, .size = 4},
             (vyre_slot_binding){.buffer = y}, (vyre_writer){0});
  make(&slow, LONG, y);
  CHECK_OK(vyre_submit(r.pipeline, &slow.desc, 1, &fence, &st), st);
  CHECK_OK(vyre_recording_replay(rec, NULL, NULL, &st), st);
  CHECK_U64(value_of(&r, y), 2 * LONG + 7);
  CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
  vyre_fence_release(fence);
  vyre_recording_release(rec);
  CHECK_OK(vyre_buffer_destroy(r.device, y, &st), st);
  rig_close(&r);
}

/* Host memory: only the queued replay itself can delay the other one. */
TEST(a_replay_without_a_fence_runs_after_queued_replays_of_its_recording) {
  rig r = rig_open(text, NULL);
  vyre_status st = {0};
  vyre_fence *fences[2];
  uint32_t x = LONG, y = 0;
  vyre_recording *rec =
      record(&r, (vyre_slot_binding){.data = &x, .size = 4},
             (vyre_slot_binding){.data = &y, .size = 4}, (vyre_writer){0});
  for (int i = 0; i < 2; i++) {
    CHECK_OK(vyre_recording_replay(rec, NULL, &fences[i], &st), st);
  }
  CHECK_OK(vyre_recording_replay(rec, NULL, NULL, &st), st);
  CHECK_U64(y, UINT64_C(7) * LONG);
  for (int i = 0; i < 2; i++) {
    CHECK(vyre_fence_is_done(fences[i]));
    vyre_fence_release(fences[i]);
  }
  vyre_recording_release(rec);
  rig_close(&r);
}

/* Callback of a replay of @p outer. It queues the same recording again, which
 * waits for the running replay, and then makes calls that must not wait for the
 * queue. */
typedef struct nested {
  rig rig;
  vyre_recording *outer, *inner;
  job job;
  bool is_replay, was_called;
  vyre_fence *queued;
  vyre_code codes[2];
} nested;

static bool ask_inside(void *self, const char *bytes, size_t length) {
  nested *n = self;
  (void)bytes, (void)length;
  if (n->was_called) return true;
  n->was_called = true;
  n->codes[0] = vyre_recording_replay(n->outer, NULL, &n->queued, NULL);
  n->codes[1] = n->is_replay
                    ? vyre_recording_replay(n->inner, NULL, NULL, NULL)
                    : vyre_dispatch(n->rig.pipeline, &n->job.desc, NULL);
  return true;
}

TEST(a_callback_of_a_replay_does_not_deadlock_with_queued_work) {
  static const char telling[] =
      "kernel k workgroup(1)\n"
      "buffer x : read u32[1] @0;\n"
      "buffer y : read_write u32[1] @1;\n"
      "{ y[0] = y[0] * 2 + x[0]; print(\"y\", y[0]); }\n";
  for (int is_replay = 0; is_replay < 2; is_replay++) {
    nested n = {.rig = rig_open(telling, NULL), .is_replay = is_replay == 1};
    vyre_status st = {0};
    vyre_buffer y, z;
    uint32_t x = 1;
    CHECK_OK(vyre_buffer_create(n.rig.device, 4, &y, &st), st);
    CHECK_OK(vyre_buffer_create(n.rig.device, 4, &z, &st), st);
    vyre_slot_binding one = {.data = &x, .size = 4};
    n.outer = record(&n.rig, one, (vyre_slot_binding){.buffer = y},
                     (vyre_writer){ask_inside, &n});
    n.inner =
        record(&n.rig, one, (vyre_slot_binding){.buffer = z}, (vyre_writer){0});
    make(&n.job, 1, z);
    (void)alarm(60); /* ends a deadlock */
    CHECK_OK(vyre_recording_replay(n.outer, NULL, NULL, &st), st);
    CHECK(n.was_called && n.codes[0] == VYRE_OK && n.codes[1] == VYRE_OK);
    CHECK_OK(vyre_fence_wait(n.queued, VYRE_WAIT_FOREVER, &st), st);
    (void)alarm(0);
    CHECK_U64(value_of(&n.rig, y), 3); /* two replays */
    CHECK_U64(value_of(&n.rig, z), 1);
    vyre_fence_release(n.queued);
    vyre_recording_release(n.outer);
    vyre_recording_release(n.inner);
    CHECK_OK(vyre_buffer_destroy(n.rig.device, y, &st), st);
    CHECK_OK(vyre_buffer_destroy(n.rig.device, z, &st), st);
    rig_close(&n.rig);
  }
}

/* --- callbacks and times -------------------------------------------------- */

typedef struct follow_up {
  vyre_pipeline *pipeline;
  job job;
  vyre_code code;
} follow_up;

static void dispatch_more(void *self, vyre_fence *fence) {
  follow_up *f = self;
  (void)fence;
  f->code = vyre_dispatch(f->pipeline, &f->job.desc, NULL);
}

/* The queue thread must not wait for itself. */
TEST(a_callback_may_dispatch) {
  rig r = rig_open(text, NULL);
  vyre_status st = {0};
  vyre_buffer y;
  vyre_fence *fence, *last;
  job slow, other;
  follow_up f = {.pipeline = r.pipeline, .code = VYRE_UNKNOWN};
  CHECK_OK(vyre_buffer_create(r.device, 4, &y, &st), st);
  make(&slow, LONG, y);
  make(&other, 5, y);
  make(&f.job, 3, y);
  CHECK_OK(vyre_submit(r.pipeline, &slow.desc, 1, &fence, &st), st);
  CHECK_OK(vyre_fence_set_callback(fence, dispatch_more, &f, &st), st);
  CHECK_OK(vyre_submit(r.pipeline, &other.desc, 1, &last, &st), st);
  CHECK_OK(vyre_fence_wait(last, VYRE_WAIT_FOREVER, &st), st);
  CHECK(f.code == VYRE_OK);
  CHECK_U64(value_of(&r, y), 2 * (2 * LONG + 3) + 5);
  vyre_fence_release(fence);
  vyre_fence_release(last);
  CHECK_OK(vyre_buffer_destroy(r.device, y, &st), st);
  rig_close(&r);
}

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

TEST(wall_time_starts_with_the_call) {
  rig r = rig_open(text, NULL);
  vyre_status st = {0};
  vyre_buffer y;
  vyre_fence *first, *second;
  vyre_timing slow_time = {0}, time = {0};
  job slow, quick;
  CHECK_OK(vyre_buffer_create(r.device, 4, &y, &st), st);
  make(&slow, LONG, y);
  make(&quick, 1, y);
  slow.desc.timing = &slow_time;
  quick.desc.timing = &time;
  CHECK_OK(vyre_submit(r.pipeline, &slow.desc, 1, &first, &st), st);
  uint64_t called = now();
  CHECK_OK(vyre_submit(r.pipeline, &quick.desc, 1, &second, &st), st);
  uint64_t returned = now();
  CHECK_OK(vyre_fence_wait(first, VYRE_WAIT_FOREVER, &st), st);
  uint64_t waited = now() - returned; /* before it started */
  CHECK_OK(vyre_fence_wait(second, VYRE_WAIT_FOREVER, &st), st);
  CHECK(time.wall_ns <= now() - called);
  /* The first dispatch ended a little before its fence, so compare with half of
   * the time. */
  CHECK(time.wall_ns >= waited / 2 && time.enqueue_ns >= waited / 2);
  CHECK_U64(time.enqueue_ns + time.wait_ns, time.wall_ns);
  CHECK(slow_time.wall_ns > 0);
  vyre_fence_release(first);
  vyre_fence_release(second);
  /* The same with a caller that waits for the dispatch. */
  CHECK_OK(vyre_submit(r.pipeline, &slow.desc, 1, &first, &st), st);
  called = now();
  CHECK_OK(vyre_dispatch(r.pipeline, &quick.desc, &st), st);
  uint64_t took = now() - called;
  CHECK(time.wall_ns <= took && time.wall_ns >= took / 2);
  CHECK_OK(vyre_fence_wait(first, VYRE_WAIT_FOREVER, &st), st);
  vyre_fence_release(first);
  CHECK_OK(vyre_buffer_destroy(r.device, y, &st), st);
  rig_close(&r);
}

/* Counts the threads of this process that do not block SIGTERM. */
static int takers(void) {
  int count = 0;
  DIR *tasks = opendir("/proc/self/task");
  CHECK(tasks);
  for (struct dirent *e; (e = readdir(tasks));) {
    char path[300], line[256];
    unsigned long long blocked = 0;
    if (e->d_name[0] == '.') continue;
    (void)snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
    FILE *file = fopen(path, "r");
    if (!file) continue;
    while (fgets(line, sizeof line, file)) {
      if (strncmp(line, "SigBlk:", 7) == 0) {
        blocked = strtoull(line + 7, NULL, 16);
      }
    }
    (void)fclose(file);
    count += !(blocked >> (SIGTERM - 1) & 1);
  }
  closedir(tasks);
  return count;
}

TEST(threads_of_a_device_block_signals) {
  rig r = rig_open(text, NULL);
  vyre_status st = {0};
  int before = takers();
  CHECK(before >= 1);
  vyre_fence *fences[2];
  vyre_buffer y;
  job j;
  CHECK_OK(vyre_buffer_create(r.device, 4, &y, &st), st);
  make(&j, 1, y);
  CHECK_OK(vyre_submit(r.pipeline, &j.desc, 1, &fences[0], &st), st);
  CHECK_OK(
      vyre_pipeline_compile_async(r.device, r.program, NULL, &fences[1], &st),
      st);
  for (int i = 0; i < 2; i++) {
    CHECK_OK(vyre_fence_wait(fences[i], VYRE_WAIT_FOREVER, &st), st);
    vyre_fence_release(fences[i]);
  }
  CHECK_U64((unsigned)takers(), (unsigned)before);
  sigset_t mask;
  CHECK(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0);
  CHECK(!sigismember(&mask, SIGTERM)); /* the mask of the caller is unchanged */
  CHECK_OK(vyre_buffer_destroy(r.device, y, &st), st);
  rig_close(&r);
}

TEST_MAIN(
    TEST_ENTRY(device_buffers_see_work_in_call_order),
    TEST_ENTRY(a_replay_without_a_fence_does_not_overtake_queued_work),
    TEST_ENTRY(
        a_replay_without_a_fence_runs_after_queued_replays_of_its_recording),
    TEST_ENTRY(a_callback_of_a_replay_does_not_deadlock_with_queued_work),
    TEST_ENTRY(a_callback_may_dispatch),
    TEST_ENTRY(wall_time_starts_with_the_call),
    TEST_ENTRY(threads_of_a_device_block_signals))
