/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Tests of fences and of work that outlives its submission. */
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/driver.h"
#include "support/sanitized.h"

/* Counts n up to a limit, so that a test chooses the run time. */
static const char text[] =
    "kernel k workgroup(1)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : write u32[] @1;\n"
    "{\n"
    "    var n = 0u;\n"
    "    while (n < x[0]) n += 1;\n"
    "    y[0] = n + x[1];\n"
    "}\n";

enum { SHORT = 10, LONG = 3000000, ENDLESS = 4000000000u };

typedef struct job {
  uint32_t x[2], y;
  vyre_input in;
  vyre_output out;
  vyre_dispatch_desc desc;
} job;

static void make(job *j, uint32_t rounds, uint32_t add) {
  *j = (job){.x = {rounds, add}};
  j->in = vyre_input_bytes(j->x, 8);
  j->out = vyre_output_bytes(&j->y, 4);
  j->desc = (vyre_dispatch_desc){.inputs = &j->in,
                                 .input_count = 1,
                                 .outputs = &j->out,
                                 .output_count = 1};
}

TEST(owned_inputs_may_change_after_the_call) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  job slow, j;
  make(&slow, LONG, 0);
  make(&j, SHORT, 5);
  vyre_copy_report copies = {0};
  j.desc.copies = &copies;
  vyre_fence *first, *second;
  CHECK_OK(vyre_submit(r.pipeline, &slow.desc, 1, &first, &st), st);
  CHECK_OK(vyre_submit(r.pipeline, &j.desc, 1, &second, &st), st);
  memset(j.x, 0xff, sizeof j.x);
  CHECK_OK(vyre_fence_wait(second, VYRE_WAIT_FOREVER, &st), st);
  CHECK(vyre_fence_is_done(first)); /* they run in order */
  CHECK_U64(slow.y, LONG);
  CHECK_U64(j.y, SHORT + 5);
  CHECK_U64(copies.copied_bytes, 8);
  CHECK_TEXT(vyre_copy_reason_name(copies.first_reason), "owned_input");
  vyre_fence_release(first);
  vyre_fence_release(second);
  rig_close(&r);
}

TEST(borrowed_inputs_are_not_copied) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  job j;
  make(&j, SHORT, 5);
  vyre_copy_report copies = {0};
  j.desc.copies = &copies;
  j.desc.require_zero_copy = true;
  vyre_fence *fence;
  CHECK_FAILS(vyre_submit(r.pipeline, &j.desc, 1, &fence, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_COPY_NEEDED);
  CHECK(!fence);
  j.desc.is_borrowed = true;
  st = (vyre_status){0};
  CHECK_OK(vyre_submit(r.pipeline, &j.desc, 1, &fence, &st), st);
  CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
  CHECK_U64(copies.copied_bytes, 0);
  CHECK_U64(copies.borrowed_bytes, 8 + 4);
  vyre_fence_release(fence);
  rig_close(&r);
}

TEST(a_timed_out_wait_does_not_stop_the_work) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  job j;
  make(&j, LONG, 1);
  vyre_fence *fence;
  CHECK_OK(vyre_submit(r.pipeline, &j.desc, 1, &fence, &st), st);
  CHECK_FAILS(vyre_fence_wait(fence, 1000, &st), st, VYRE_DISPATCH_FAILED,
              VYRE_KIND_TIMED_OUT);
  CHECK_U64(status_number(&st, "timeout_ns"), 1000);
  st = (vyre_status){0};
  CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
  CHECK_OK(vyre_fence_wait(fence, 0, &st), st); /* a second wait succeeds too */
  CHECK_U64(j.y, LONG + 1);
  vyre_fence_release(fence);
  rig_close(&r);
}

TEST(a_dispatch_that_takes_too_long_fails) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  job j, after;
  make(&j, ENDLESS, 1);
  make(&after, SHORT, 1);
  j.desc.timeout_ns = 2000000;
  vyre_fence *fences[2];
  CHECK_OK(vyre_submit(r.pipeline, &j.desc, 1, &fences[0], &st), st);
  CHECK_OK(vyre_submit(r.pipeline, &after.desc, 1, &fences[1], &st), st);
  CHECK_FAILS(vyre_fence_wait(fences[0], VYRE_WAIT_FOREVER, &st), st,
              VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT);
  st = (vyre_status){0};
  CHECK_OK(vyre_fence_wait(fences[1], VYRE_WAIT_FOREVER, &st), st);
  CHECK_U64(after.y, SHORT + 1); /* the device works as before */
  for (int i = 0; i < 2; i++) vyre_fence_release(fences[i]);
  rig_close(&r);
}

TEST(wait_any_returns_the_first_finished_fence) {
  vyre_status st = {0};
  rig a = rig_open(text, NULL), b = rig_open(text, NULL);
  job slow, quick;
  make(&slow, LONG, 0);
  make(&quick, SHORT, 0);
  vyre_fence *fences[2];
  size_t which = 9;
  CHECK_OK(vyre_submit(a.pipeline, &slow.desc, 1, &fences[0], &st), st);
  CHECK_OK(vyre_submit(b.pipeline, &quick.desc, 1, &fences[1], &st), st);
  CHECK_OK(vyre_fence_wait_any(fences, 2, VYRE_WAIT_FOREVER, &which, &st), st);
  CHECK_U64(which, 1);
  CHECK_FAILS(vyre_fence_wait_any(fences, 1, 1000, &which, &st), st,
              VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT);
  st = (vyre_status){0};
  CHECK_OK(vyre_fence_wait(fences[0], VYRE_WAIT_FOREVER, &st), st);
  CHECK_OK(vyre_fence_wait_any(fences, 2, 0, &which, &st), st);
  CHECK_OK(vyre_context_inject_faults(a.context, "wait:1", &st), st);
  CHECK_FAILS(vyre_fence_wait_any(fences, 2, 0, &which, &st), st,
              VYRE_DISPATCH_FAILED, VYRE_KIND_INJECTED_FAULT);
  st = (vyre_status){0};
  CHECK_OK(vyre_fence_wait_any(fences, 2, 0, &which, &st), st);
  CHECK_U64(which, 0);
  CHECK(vyre_fence_wait_any(fences, 0, 0, &which, &st) ==
        VYRE_INVALID_ARGUMENT);
  for (int i = 0; i < 2; i++) vyre_fence_release(fences[i]);
  rig_close(&a);
  rig_close(&b);
}

static void count_call(void *self, vyre_fence *fence) {
  CHECK(vyre_fence_is_done(fence));
  __atomic_fetch_add((int *)self, 1, __ATOMIC_SEQ_CST);
}

TEST(a_callback_is_called_once) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  for (int late = 0; late < 2; late++) {
    job j, next;
    int calls = 0;
    make(&j, late ? SHORT : LONG, 0);
    vyre_fence *fence, *last;
    CHECK_OK(vyre_submit(r.pipeline, &j.desc, 1, &fence, &st), st);
    if (late) CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
    CHECK_OK(vyre_fence_set_callback(fence, count_call, &calls, &st), st);
    CHECK(vyre_fence_set_callback(fence, count_call, &calls, NULL) ==
          VYRE_INVALID_ARGUMENT);
    make(&next, SHORT, 0); /* runs after the callback of the first */
    CHECK_OK(vyre_submit(r.pipeline, &next.desc, 1, &last, &st), st);
    CHECK_OK(vyre_fence_wait(last, VYRE_WAIT_FOREVER, &st), st);
    CHECK_U64((unsigned)__atomic_load_n(&calls, __ATOMIC_SEQ_CST), 1);
    vyre_fence_release(fence);
    vyre_fence_release(last);
  }
  rig_close(&r);
}

TEST(a_fence_has_a_descriptor_for_an_event_loop) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  for (int late = 0; late < 2; late++) {
    job j;
    make(&j, late ? SHORT : LONG, 0);
    vyre_fence *fence;
    int fd, again;
    CHECK_OK(vyre_submit(r.pipeline, &j.desc, 1, &fence, &st), st);
    if (late) CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
    CHECK_OK(vyre_fence_fd(fence, &fd, &st), st);
    CHECK_OK(vyre_fence_fd(fence, &again, &st), st);
    CHECK(fd >= 0 && fd == again);
    struct pollfd event = {.fd = fd, .events = POLLIN};
    CHECK(poll(&event, 1, 60000) == 1 && event.revents & POLLIN);
    CHECK(vyre_fence_is_done(fence));
    vyre_fence_release(fence);
  }
  rig_close(&r);
}

TEST(all_handles_may_be_released_before_the_work_ends) {
  vyre_status st = {0};
  test_heap heap = {.left = -1};
  rig r = rig_open(text, NULL);
  job j;
  make(&j, LONG, 2);
  vyre_buffer y;
  CHECK_OK(vyre_buffer_create(r.device, 4, &y, &st), st);
  j.out = vyre_output_buffer(y);
  vyre_fence *fence;
  CHECK_OK(vyre_submit(r.pipeline, &j.desc, 1, &fence, &st), st);
  CHECK_OK(vyre_buffer_destroy(r.device, y, &st), st);
  rig_close(&r);
  CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
  vyre_fence_release(fence);
  /* Release the fence too: the work must release all that it used. */
  r = rig_open(text, &heap);
  make(&j, SHORT, 2);
  j.desc.is_borrowed = true;
  CHECK_OK(vyre_submit(r.pipeline, &j.desc, 1, &fence, &st), st);
  CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
  vyre_fence_release(fence);
  rig_close(&r);
}

TEST(compiles_in_the_background) {
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  vyre_fence *fence, *bad;
  vyre_compile_options huge = {.workgroup = {4096}};
  CHECK_OK(vyre_pipeline_compile_async(r.device, r.program, NULL, &fence, &st),
           st);
  CHECK_OK(vyre_pipeline_compile_async(r.device, r.program, &huge, &bad, &st),
           st);
  CHECK_FAILS(vyre_fence_wait(bad, VYRE_WAIT_FOREVER, &st), st,
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CHECK(!vyre_fence_pipeline(bad));
  st = (vyre_status){0};
  CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
  vyre_pipeline *pipeline = vyre_fence_pipeline(fence);
  vyre_fence_release(fence);
  vyre_fence_release(bad);
  CHECK(pipeline);
  job j;
  make(&j, SHORT, 1);
  CHECK_OK(vyre_dispatch(pipeline, &j.desc, &st), st);
  CHECK_U64(j.y, SHORT + 1);
  vyre_pipeline_release(pipeline);
  rig_close(&r);
}

/* Many threads use one device. ThreadSanitizer finds data races here. */
enum { THREADS = 8, ROUNDS = 40 };

static void *churn(void *self) {
  rig *r = self;
  vyre_status st = {0};
  for (uint32_t i = 0; i < ROUNDS && st.code == VYRE_OK; i++) {
    job j;
    vyre_buffer y;
    vyre_fence *fence = NULL;
    vyre_pipeline *own = NULL;
    make(&j, SHORT + i, 3);
    vyre_code code = vyre_buffer_create(r->device, 4, &y, &st);
    if (code == VYRE_OK && i % 3 == 0) {
      code =
          vyre_pipeline_compile(r->device, r->program, NULL, &own, NULL, &st);
    }
    if (code == VYRE_OK && i % 5 == 0) {
      vyre_compile_options other = {.workgroup = {1 + i % 4}};
      code = vyre_pipeline_add_variant(r->pipeline, &other, &st);
    }
    j.out = vyre_output_buffer(y);
    vyre_pipeline *with = own ? own : r->pipeline;
    if (code == VYRE_OK && i % 2 == 0) {
      code = vyre_dispatch(with, &j.desc, &st);
    } else if (code == VYRE_OK) {
      code = vyre_submit(with, &j.desc, 1, &fence, &st);
    }
    if (fence) code = vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st);
    if (code == VYRE_OK) {
      code = vyre_buffer_download(r->device, y, 0, &j.y, 4, &st);
    }
    if (code == VYRE_OK && j.y != SHORT + i + 3) st.code = VYRE_UNKNOWN;
    if (code == VYRE_OK) (void)!vyre_buffer_destroy(r->device, y, &st);
    vyre_fence_release(fence);
    vyre_pipeline_release(own);
  }
  return (void *)(uintptr_t)st.code;
}

TEST(many_threads_submit_wait_and_compile) {
  rig r = rig_open(text, NULL);
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++) {
    CHECK(pthread_create(&threads[i], NULL, churn, &r) == 0);
  }
  uintptr_t failed = 0;
  for (int i = 0; i < THREADS; i++) {
    void *result;
    pthread_join(threads[i], &result);
    failed += (uintptr_t)result;
  }
  CHECK_U64(failed, 0);
  vyre_counters counters;
  vyre_counters_read(r.device, &counters);
  CHECK_U64(counters.launches, (uint64_t)THREADS * ROUNDS);
  CHECK_U64(counters.live_device_buffers, 0);
  rig_close(&r);
}

/* Uses fences of the parent in a forked child: @p pending was not done at the
 * fork, @p done was. Returns 0, or a number for the failure. */
static int wait_in_child(vyre_fence *pending, vyre_fence *done, int fd) {
  vyre_status st = {0};
  size_t first = 7;
  if (vyre_fence_wait(pending, VYRE_WAIT_FOREVER, &st) != VYRE_DEVICE_LOST ||
      st.kind != VYRE_KIND_DEVICE_LOST)
    return 10;
  if (vyre_fence_wait(pending, 0, &st) != VYRE_DEVICE_LOST) return 11;
  if (!vyre_fence_is_done(pending)) return 12;
  if (vyre_fence_wait_any(&pending, 1, VYRE_WAIT_FOREVER, &first, &st) !=
          VYRE_OK ||
      first != 0)
    return 13;
  if (vyre_fence_fd(pending, &fd, &st) != VYRE_DEVICE_LOST || fd != -1)
    return 14;
  if (vyre_fence_set_callback(pending, count_call, &first, &st) !=
      VYRE_DEVICE_LOST)
    return 15;
  if (vyre_fence_pipeline(pending)) return 16;
  if (vyre_fence_wait(done, VYRE_WAIT_FOREVER, &st) != VYRE_OK) return 17;
  return 0;
}

/* Submits and compiles in a forked child, on the parent's device. The work that
 * the parent has queued does not run there. Returns 0, or a number for the
 * failure. */
static int work_in_child(rig *r, vyre_buffer x) {
  vyre_status st = {0};
  vyre_fence *fence;
  job j;
  make(&j, SHORT, 1);
  j.in = vyre_input_buffer(x);
  if (vyre_dispatch(r->pipeline, &j.desc, &st) != VYRE_OK || j.y != 7) return 1;
  for (int i = 0; i < 2; i++) {
    make(&j, SHORT, 2);
    if (vyre_submit(r->pipeline, &j.desc, 1, &fence, &st) != VYRE_OK ||
        vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st) != VYRE_OK ||
        j.y != SHORT + 2) {
      return 2;
    }
    vyre_fence_release(fence);
  }
  const vyre_compile_options other = {.workgroup = {2, 1, 1}};
  if (vyre_pipeline_compile_async(r->device, r->program, &other, &fence, &st) !=
          VYRE_OK ||
      vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st) != VYRE_OK) {
    return 3;
  }
  vyre_fence_release(fence);
  rig_close(r);
  return 0;
}

TEST(a_forked_child_has_its_own_queue) {
  if (THREAD_SANITIZED) return; /* it cannot fork a process with threads */
  vyre_status st = {0};
  rig r = rig_open(text, NULL);
  vyre_buffer x;
  vyre_fence *fence;
  job slow, quick;
  make(&slow, LONG, 0);
  CHECK_OK(vyre_buffer_create(r.device, 8, &x, &st), st);
  CHECK_OK(vyre_buffer_upload(r.device, x, 0, (uint32_t[2]){3, 4}, 8, &st), st);
  /* All compile threads have started. */
  for (uint32_t i = 0; i < 8; i++) {
    const vyre_compile_options other = {.workgroup = {3 + i, 1, 1}};
    CHECK_OK(
        vyre_pipeline_compile_async(r.device, r.program, &other, &fence, &st),
        st);
    CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
    vyre_fence_release(fence);
  }
  make(&quick, SHORT, 0);
  vyre_fence *done;
  CHECK_OK(vyre_submit(r.pipeline, &quick.desc, 1, &done, &st), st);
  CHECK_OK(vyre_fence_wait(done, VYRE_WAIT_FOREVER, &st), st);
  CHECK_OK(vyre_submit(r.pipeline, &slow.desc, 1, &fence, &st), st);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    int failure = wait_in_child(fence, done, -1);
    _exit(failure ? failure : work_in_child(&r, x));
  }
  vyre_fence_release(done);
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK_U64(WEXITSTATUS(status), 0);
  CHECK_OK(vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &st), st);
  CHECK_U64(slow.y, LONG);
  vyre_fence_release(fence);
  rig_close(&r);
}

TEST_MAIN(TEST_ENTRY(owned_inputs_may_change_after_the_call),
          TEST_ENTRY(borrowed_inputs_are_not_copied),
          TEST_ENTRY(a_timed_out_wait_does_not_stop_the_work),
          TEST_ENTRY(a_dispatch_that_takes_too_long_fails),
          TEST_ENTRY(wait_any_returns_the_first_finished_fence),
          TEST_ENTRY(a_callback_is_called_once),
          TEST_ENTRY(a_fence_has_a_descriptor_for_an_event_loop),
          TEST_ENTRY(all_handles_may_be_released_before_the_work_ends),
          TEST_ENTRY(compiles_in_the_background),
          TEST_ENTRY(a_forked_child_has_its_own_queue),
          TEST_ENTRY(many_threads_submit_wait_and_compile))
