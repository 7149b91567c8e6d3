/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: fences and asynchronous work. */
#include <poll.h>
#include <stdio.h>

#include "cts/harness/saxpy.h"

/* Kernel of adjustable duration: every workgroup runs a[0] iterations and adds
 * a[1]. Some devices kill an invocation that runs too long, so long work uses
 * many workgroups. */
static const char count_text[] =
    "kernel count workgroup(1)\n"
    "buffer a : read u32[] @0;\n"
    "buffer r : write u32[] @1;\n"
    "{\n    var n = 0u;\n    while (n < a[0]) n += 1;\n"
    "    r[global_id.x] = n + a[1];\n}\n";

/* Numbers of workgroups; each runs ROUNDS iterations, except for SHORT. */
enum { ROUNDS = 50000, SHORT = 0, LONG = 40, ENDLESS = 100000 };

typedef struct job {
  uint32_t a[2], r;
  vyre_input in;
  vyre_output out;
  vyre_dispatch_desc desc;
} job;

static uint32_t rounds_of(uint32_t groups) {
  return groups == SHORT ? 10 : ROUNDS;
}

static void make(job *j, uint32_t groups, uint32_t more) {
  memset(j, 0, sizeof *j);
  j->a[0] = rounds_of(groups);
  j->a[1] = more;
  j->in = vyre_input_bytes(j->a, 8);
  j->out = vyre_output_bytes(&j->r, 4);
  j->desc = (vyre_dispatch_desc){.inputs = &j->in,
                                 .input_count = 1,
                                 .outputs = &j->out,
                                 .output_count = 1,
                                 .grid = {groups == SHORT ? 1 : groups, 1, 1}};
}

static void wait_and_poll(cts *c) {
  vyre_pipeline *pipeline = cts_kernel(c, count_text);
  job j;
  vyre_fence *fence;
  make(&j, LONG, 3);
  CTS_OK(c, vyre_submit(pipeline, &j.desc, 1, &fence, &c->st));
  CTS_OK(c, vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &c->st));
  CTS_CHECK(c, vyre_fence_is_done(fence));
  CTS_U64(c, j.r, rounds_of(LONG) + 3);
  /* A second wait gives the same result. */
  CTS_OK(c, vyre_fence_wait(fence, 0, &c->st));
  vyre_fence_retain(fence);
  vyre_fence_release(fence);
  CTS_OK(c, vyre_fence_wait(fence, 0, &c->st));
  vyre_fence_release(fence);
  CTS_LAUNCHED(c, 1);
}

/* Skips devices that finish within a microsecond. */
static void wait_with_timeout(cts *c) {
  vyre_pipeline *pipeline = cts_kernel(c, count_text);
  job j;
  vyre_fence *fence;
  make(&j, ENDLESS, 0);
  j.desc.timeout_ns = 300000000;
  CTS_OK(c, vyre_submit(pipeline, &j.desc, 1, &fence, &c->st));
  uint64_t timeout = 0;
  vyre_code code = vyre_fence_wait(fence, 1000, &c->st);
  CTS_CHECK(c, vyre_status_number_get(&c->st, "timeout_ns", &timeout));
  CTS_U64(c, timeout, 1000);
  CTS_FAILS(c, code, VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT);
  /* The work continues and ends by its own limit. */
  CTS_FAILS(c, vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &c->st),
            VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT);
  CTS_FAILS(c, vyre_fence_wait(fence, 0, &c->st), VYRE_DISPATCH_FAILED,
            VYRE_KIND_TIMED_OUT);
  vyre_fence_release(fence);
  make(&j, SHORT, 1); /* the device still works */
  CTS_OK(c, vyre_dispatch(pipeline, &j.desc, &c->st));
  CTS_U64(c, j.r, rounds_of(SHORT) + 1);
  CTS_LAUNCHED(c, 1);
}

static void in_order(cts *c) {
  vyre_pipeline *pipeline = cts_kernel(c, count_text);
  enum { COUNT = 6 };
  job jobs[COUNT];
  vyre_fence *fences[COUNT];
  for (uint32_t i = 0; i < COUNT; i++) {
    make(&jobs[i], i == 0 ? LONG : SHORT, i);
    CTS_OK(c, vyre_submit(pipeline, &jobs[i].desc, 1, &fences[i], &c->st));
  }
  CTS_OK(c, vyre_fence_wait(fences[COUNT - 1], VYRE_WAIT_FOREVER, &c->st));
  for (uint32_t i = 0; i < COUNT; i++) {
    CTS_CHECK(c, vyre_fence_is_done(fences[i]));
    CTS_U64(c, jobs[i].r, rounds_of(i == 0 ? LONG : SHORT) + i);
    vyre_fence_release(fences[i]);
  }
  CTS_LAUNCHED(c, COUNT);
}

static void any_of_several(cts *c) {
  vyre_pipeline *pipeline = cts_kernel(c, count_text);
  job first, second;
  vyre_fence *fences[2];
  size_t which = 9;
  make(&first, SHORT, 0);
  make(&second, LONG, 0);
  CTS_OK(c, vyre_submit(pipeline, &first.desc, 1, &fences[1], &c->st));
  CTS_OK(c,
         vyre_fence_wait_any(&fences[1], 1, VYRE_WAIT_FOREVER, &which, &c->st));
  CTS_U64(c, which, 0);
  CTS_OK(c, vyre_submit(pipeline, &second.desc, 1, &fences[0], &c->st));
  CTS_OK(c, vyre_fence_wait_any(fences, 2, VYRE_WAIT_FOREVER, &which, &c->st));
  CTS_CHECK(c, which == 1 || vyre_fence_is_done(fences[0]));
  CTS_OK(c, vyre_fence_wait(fences[0], VYRE_WAIT_FOREVER, &c->st));
  CTS_OK(c, vyre_fence_wait_any(fences, 2, 0, &which, &c->st));
  CTS_U64(c, which, 0); /* the first fence that is done */
  for (int i = 0; i < 2; i++) vyre_fence_release(fences[i]);
  CTS_LAUNCHED(c, 2);
}

static void any_times_out(cts *c) {
  vyre_pipeline *pipeline = cts_kernel(c, count_text);
  job j;
  vyre_fence *fence;
  size_t which;
  make(&j, ENDLESS, 0);
  j.desc.timeout_ns = 200000000;
  CTS_OK(c, vyre_submit(pipeline, &j.desc, 1, &fence, &c->st));
  CTS_FAILS(c, vyre_fence_wait_any(&fence, 1, 1000, &which, &c->st),
            VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT);
  /* vyre_fence_wait reports the failure. */
  CTS_OK(c, vyre_fence_wait_any(&fence, 1, VYRE_WAIT_FOREVER, &which, &c->st));
  CTS_FAILS(c, vyre_fence_wait(fence, 0, &c->st), VYRE_DISPATCH_FAILED,
            VYRE_KIND_TIMED_OUT);
  vyre_fence_release(fence);
  CTS_LAUNCHED(c, 0);
}

static void count_call(void *self, vyre_fence *fence) {
  if (vyre_fence_is_done(fence)) atomic_fetch_add((atomic_int *)self, 1);
}

static void callback(cts *c) {
  vyre_pipeline *pipeline = cts_kernel(c, count_text);
  for (int late = 0; late < 2; late++) {
    job j, last;
    vyre_fence *fence, *after;
    atomic_int calls;
    atomic_init(&calls, 0);
    make(&j, late ? SHORT : LONG, 0);
    make(&last, SHORT, 0);
    CTS_OK(c, vyre_submit(pipeline, &j.desc, 1, &fence, &c->st));
    if (late) CTS_OK(c, vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &c->st));
    CTS_OK(c, vyre_fence_set_callback(fence, count_call, &calls, &c->st));
    CTS_FAILS(c, vyre_fence_set_callback(fence, count_call, &calls, &c->st),
              VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
    /* Later work finishes later, so the callback has been called. */
    CTS_OK(c, vyre_submit(pipeline, &last.desc, 1, &after, &c->st));
    CTS_OK(c, vyre_fence_wait(after, VYRE_WAIT_FOREVER, &c->st));
    CTS_U64(c, (uint64_t)atomic_load(&calls), 1);
    vyre_fence_release(fence);
    vyre_fence_release(after);
  }
  CTS_LAUNCHED(c, 4);
}

static void descriptor(cts *c) {
  vyre_pipeline *pipeline = cts_kernel(c, count_text);
  for (int late = 0; late < 2; late++) {
    job j;
    vyre_fence *fence;
    int fd, again;
    make(&j, late ? SHORT : LONG, 0);
    CTS_OK(c, vyre_submit(pipeline, &j.desc, 1, &fence, &c->st));
    if (late) CTS_OK(c, vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &c->st));
    CTS_OK(c, vyre_fence_fd(fence, &fd, &c->st));
    CTS_OK(c, vyre_fence_fd(fence, &again, &c->st));
    CTS_CHECK(c, fd >= 0 && fd == again);
    struct pollfd event = {.fd = fd, .events = POLLIN};
    CTS_CHECK(c, poll(&event, 1, 60000) == 1 && event.revents & POLLIN);
    CTS_CHECK(c, vyre_fence_is_done(fence));
    vyre_fence_release(fence);
  }
  CTS_LAUNCHED(c, 2);
}

/* Releases everything before the work has finished; the results must arrive. */
static void handles_go_first(cts *c) {
  job j;
  vyre_fence *fence;
  vyre_device *device;
  vyre_pipeline *pipeline;
  vyre_program *program = cts_program(c, count_text);
  CTS_OK(c, vyre_device_open(c->context, c->backend, &device, &c->st));
  CTS_OK(c,
         vyre_pipeline_compile(device, program, NULL, &pipeline, NULL, &c->st));
  make(&j, LONG, 4);
  CTS_OK(c, vyre_submit(pipeline, &j.desc, 1, &fence, &c->st));
  vyre_pipeline_release(pipeline);
  vyre_device_release(device);
  CTS_OK(c, vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &c->st));
  vyre_fence_release(fence);
  CTS_U64(c, j.r, rounds_of(LONG) + 4);
  make(&j, SHORT, 4);
  CTS_OK(c, vyre_dispatch(cts_compile(c, program, 0), &j.desc, &c->st));
  CTS_LAUNCHED(c, 1); /* on the device that is still open */
}

static void failure_in_a_batch(cts *c) {
  vyre_pipeline *pipeline = cts_kernel(c, count_text);
  enum { COUNT = 4, BAD = 2 };
  job jobs[COUNT];
  vyre_dispatch_desc items[COUNT];
  vyre_code results[COUNT];
  vyre_fence *fence;
  for (uint32_t i = 0; i < COUNT; i++) {
    make(&jobs[i], i == BAD ? ENDLESS : SHORT, i);
    items[i] = jobs[i].desc;
    items[i].result = &results[i];
    if (i == BAD) items[i].timeout_ns = 2000000;
  }
  CTS_OK(c, vyre_submit(pipeline, items, COUNT, &fence, &c->st));
  uint64_t item = 9;
  vyre_code code = vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &c->st);
  CTS_CHECK(c, vyre_status_number_get(&c->st, "item", &item));
  CTS_U64(c, item, BAD);
  CTS_FAILS(c, code, VYRE_DISPATCH_FAILED, VYRE_KIND_TIMED_OUT);
  CTS_CHECK(c, results[0] == VYRE_OK && results[1] == VYRE_OK);
  CTS_CHECK(c, results[2] == VYRE_DISPATCH_FAILED);
  CTS_CHECK(c, results[3] == VYRE_NOT_RUN && jobs[3].r == 0);
  CTS_U64(c, jobs[1].r, rounds_of(SHORT) + 1);
  vyre_fence_release(fence);
  CTS_LAUNCHED(c, BAD);
}

static const cts_entry entries[] = {
    {"wait_and_poll", wait_and_poll},
    {"wait_with_timeout", wait_with_timeout},
    {"in_order", in_order},
    {"any_of_several", any_of_several},
    {"any_times_out", any_times_out},
    {"callback", callback},
    {"descriptor", descriptor},
    {"handles_go_first", handles_go_first},
    {"failure_in_a_batch", failure_in_a_batch},
};

CTS_LIST(fences, "fences and asynchronous work");
