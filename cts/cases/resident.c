/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: state that stays in a device buffer from launch to launch. Every case
 * runs at least three launches on one buffer and reads some of them back. */
#include <stdio.h>
#include <string.h>

#include "cts/harness/cts.h"

enum { N = 21, BYTES = 4 * N, LAUNCHES = 5, OFFSET = 12 };

/* The next state depends on the last one, and `seen` is the last one. */
static const char step_text[] =
    "kernel step workgroup(4) over(state)\n"
    "uniform add : u32 @0;\n"
    "buffer state : read_write u32[] @1;\n"
    "buffer seen : write u32[] @2 output;\n"
    "{\n    let i = global_id.x;\n"
    "    if (i >= len(state)) return;\n    if (i != 2) seen[i] = state[i];\n"
    "    state[i] = state[i] * 3 + i + add;\n}\n";

typedef struct rig {
  vyre_pipeline *pipeline;
  vyre_buffer state; /* N words from OFFSET on */
  uint32_t add;
  uint32_t want[N], seen[N]; /* state now, and before the last launch */
  vyre_input in[2];
  uint64_t launches;
} rig;

static void begin(cts *c, rig *r) {
  unsigned char all[OFFSET + BYTES + 8];
  memset(r, 0, sizeof *r);
  memset(all, 0x77, sizeof all);
  r->pipeline = cts_kernel(c, step_text);
  r->add = 1 + (uint32_t)(c->seed % 100);
  for (uint32_t i = 0; i < N; i++) r->want[i] = 10 * i;
  memcpy(all + OFFSET, r->want, BYTES);
  CTS_OK(c, vyre_buffer_create(c->device, sizeof all, &r->state, &c->st));
  CTS_OK(c,
         vyre_buffer_upload(c->device, r->state, 0, all, sizeof all, &c->st));
  r->in[0] = vyre_input_bytes(&r->add, 4);
  r->in[1] = (vyre_input){.buffer = r->state, .offset = OFFSET, .size = BYTES};
}

static void advance(rig *r) {
  for (uint32_t i = 0; i < N; i++) {
    r->seen[i] = i == 2 ? 0 : r->want[i];
    r->want[i] = r->want[i] * 3 + i + r->add;
  }
  r->launches++;
}

/* Checks the state, that nothing around it has changed, and the launches. */
static void end(cts *c, rig *r) {
  unsigned char all[OFFSET + BYTES + 8];
  CTS_OK(c,
         vyre_buffer_download(c->device, r->state, 0, all, sizeof all, &c->st));
  CTS_SAME(c, "the state on the device", all + OFFSET, r->want, BYTES);
  for (size_t i = 0; i < sizeof all; i++) {
    bool is_state = i >= OFFSET && i < OFFSET + BYTES;
    CTS_CHECK(c, is_state || all[i] == 0x77);
  }
  CTS_LAUNCHED(c, r->launches);
  CTS_CHECK(c, r->launches >= 3);
  CTS_OK(c, vyre_buffer_destroy(c->device, r->state, &c->st));
}

static bool is_read_back(unsigned launch) {
  return launch % 2 == 1;
}

/* Checks what one launch reports: the state is memory of a device buffer, and
 * counts as a copy too if it was read back. */
static void check_copies(cts *c, const vyre_copy_report *copies,
                         bool is_read_back) {
  bool copies_host = !c->caps->borrows_host_memory;
  uint64_t host = copies_host ? BYTES + 4 : 0;
  CTS_U64(c, copies->device_buffer_bytes, BYTES);
  CTS_U64(c, copies->copied_bytes, host + (is_read_back ? BYTES : 0));
  if (!is_read_back || copies_host) return;
  CTS_U64(c, copies->copies, 1);
  CTS_CHECK(c, copies->first_reason == VYRE_COPY_READBACK);
  CTS_CHECK(c, strcmp(copies->first_copied, "state") == 0);
}

/* --- Single dispatches ----------------------------------------------------*/

/* Runs launches of one form, with the state read back to memory of the caller
 * on some of them. */
static void run_bytes(cts *c, bool has_fence) {
  rig r;
  begin(c, &r);
  for (unsigned i = 0; i < LAUNCHES; i++) {
    uint32_t got[N], seen[N];
    vyre_copy_report copies = {0};
    vyre_fence *fence = NULL;
    bool reads = is_read_back(i);
    vyre_output out[] = {{.data = reads ? got : NULL, .size = BYTES},
                         vyre_output_bytes(seen, BYTES)};
    vyre_dispatch_desc desc = {.inputs = r.in,
                               .input_count = 2,
                               .outputs = out,
                               .output_count = 2,
                               .is_borrowed = true,
                               .copies = &copies};
    CTS_OK(c, vyre_submit(r.pipeline, &desc, 1, has_fence ? &fence : NULL,
                          &c->st));
    if (has_fence) CTS_OK(c, vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &c->st));
    vyre_fence_release(fence);
    advance(&r);
    if (reads) CTS_SAME(c, "the state", got, r.want, BYTES);
    CTS_SAME(c, "the state before", seen, r.seen, BYTES);
    check_copies(c, &copies, reads);
  }
  end(c, &r);
}

static void dispatch(cts *c) {
  run_bytes(c, false);
}

static void fence(cts *c) {
  run_bytes(c, true);
}

typedef vyre_code (*single_form)(vyre_pipeline *, const vyre_input *, size_t,
                                 const vyre_output *, size_t,
                                 const vyre_dispatch_desc *, vyre_status *);

static void run_single(cts *c, single_form form) {
  rig r;
  vyre_host_buffer got = {0}, seen = {0};
  begin(c, &r);
  for (unsigned i = 0; i < LAUNCHES; i++) {
    vyre_output out[] = {
        vyre_output_host_buffer(is_read_back(i) ? &got : NULL, 0),
        vyre_output_host_buffer(&seen, BYTES)};
    CTS_OK(c, form(r.pipeline, r.in, 2, out, 2, NULL, &c->st));
    advance(&r);
    if (is_read_back(i)) {
      CTS_U64(c, got.size, BYTES);
      CTS_SAME(c, "the state", got.data, r.want, BYTES);
    }
    CTS_SAME(c, "the state before", seen.data, r.seen, BYTES);
  }
  vyre_host_buffer_deinit(&got);
  vyre_host_buffer_deinit(&seen);
  end(c, &r);
}

static vyre_code timed_form(vyre_pipeline *pipeline, const vyre_input *in,
                            size_t in_count, const vyre_output *out,
                            size_t out_count, const vyre_dispatch_desc *config,
                            vyre_status *st) {
  vyre_timing timing;
  return vyre_dispatch_resident_timed(pipeline, in, in_count, out, out_count,
                                      config, &timing, st);
}

static void single(cts *c) {
  run_single(c, vyre_dispatch_resident);
}

static void single_timed(cts *c) {
  run_single(c, timed_form);
}

static void single_into(cts *c) {
  run_single(c, vyre_dispatch_resident_into);
}

/* A dispatch without a fence runs after queued work on the same buffer. */
static void after_queued(cts *c) {
  static const char slow_text[] =
      "kernel slow workgroup(1)\n"
      "uniform add : u32 @0;\n"
      "buffer state : read_write u32[] @1;\n"
      "{ var s = state[0];\n"
      "  for (let n = 0u; n < 200000; n++) s = s * 5 + (s >> 3) + n;\n"
      "  if (s == 7) state[1] = 0; state[0] += add; }\n";
  vyre_pipeline *slow = cts_kernel(c, slow_text);
  rig r;
  begin(c, &r);
  for (unsigned i = 0; i < 3; i++) {
    uint32_t got[N], seen[N];
    vyre_fence *fence;
    vyre_output none = {.data = NULL};
    const vyre_output out[] = {vyre_output_bytes(got, BYTES),
                               vyre_output_bytes(seen, BYTES)};
    const vyre_dispatch_desc first = {.inputs = r.in,
                                      .input_count = 2,
                                      .outputs = &none,
                                      .output_count = 1,
                                      .grid = {1, 1, 1}};
    const vyre_dispatch_desc second = {
        .inputs = r.in, .input_count = 2, .outputs = out, .output_count = 2};
    CTS_OK(c, vyre_submit(slow, &first, 1, &fence, &c->st));
    CTS_OK(c, vyre_dispatch(r.pipeline, &second, &c->st));
    r.want[0] += r.add;
    r.launches++;
    advance(&r);
    CTS_SAME(c, "the state", got, r.want, BYTES);
    CTS_SAME(c, "the state before", seen, r.seen, BYTES);
    CTS_OK(c, vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &c->st));
    vyre_fence_release(fence);
  }
  end(c, &r);
}

/* The launches of one dispatch follow each other; the last is read back. */
static void repeats(cts *c) {
  rig r;
  uint32_t got[N], seen[N];
  begin(c, &r);
  vyre_output out[] = {vyre_output_bytes(got, BYTES),
                       vyre_output_bytes(seen, BYTES)};
  vyre_dispatch_desc desc = {.inputs = r.in,
                             .input_count = 2,
                             .outputs = out,
                             .output_count = 2,
                             .has_repeat_count = true,
                             .repeat_count = 4};
  for (int i = 0; i < 2; i++) {
    CTS_OK(c, vyre_dispatch(r.pipeline, &desc, &c->st));
    for (int k = 0; k < 4; k++) advance(&r);
    CTS_SAME(c, "the state", got, r.want, BYTES);
    CTS_SAME(c, "the state before", seen, r.seen, BYTES);
  }
  end(c, &r);
}

/* --- Batches --------------------------------------------------------------*/

typedef vyre_code (*batch_form)(vyre_pipeline *, vyre_dispatch_desc *, size_t,
                                vyre_status *);

/* Every item of a batch updates the same buffer, and some read it back. */
static void run_batch(cts *c, batch_form form) {
  rig r;
  vyre_host_buffer got[LAUNCHES] = {{0}}, seen[LAUNCHES] = {{0}};
  vyre_output out[LAUNCHES][2];
  vyre_dispatch_desc items[LAUNCHES];
  begin(c, &r);
  for (unsigned i = 0; i < LAUNCHES; i++) {
    out[i][0] = vyre_output_host_buffer(is_read_back(i) ? &got[i] : NULL, 0);
    out[i][1] = vyre_output_host_buffer(&seen[i], BYTES);
    items[i] = (vyre_dispatch_desc){
        .inputs = r.in, .input_count = 2, .outputs = out[i], .output_count = 2};
  }
  for (unsigned turn = 0; turn < 4; turn++) {
    if (turn > 0) r.add++;
    CTS_OK(c, form(r.pipeline, items, LAUNCHES, &c->st));
    for (unsigned i = 0; i < LAUNCHES; i++) {
      advance(&r);
      CTS_SAME(c, "the state before an item", seen[i].data, r.seen, BYTES);
      if (is_read_back(i))
        CTS_SAME(c, "the state after an item", got[i].data, r.want, BYTES);
    }
  }
  for (unsigned i = 0; i < LAUNCHES; i++) {
    vyre_host_buffer_deinit(&got[i]);
    vyre_host_buffer_deinit(&seen[i]);
  }
  end(c, &r);
}

static void batched(cts *c) {
  run_batch(c, vyre_dispatch_resident_batched);
}

static void batched_into(cts *c) {
  run_batch(c, vyre_dispatch_resident_batched_into);
}

static vyre_code queued_form(vyre_pipeline *pipeline, vyre_dispatch_desc *items,
                             size_t count, vyre_status *st) {
  vyre_fence *fence;
  vyre_code code = vyre_submit(pipeline, items, count, &fence, st);
  if (code == VYRE_OK) code = vyre_fence_wait(fence, VYRE_WAIT_FOREVER, st);
  vyre_fence_release(fence);
  return code;
}

static void batched_queued(cts *c) {
  run_batch(c, queued_form);
}

/* --- Recordings -----------------------------------------------------------*/

typedef struct recorded {
  vyre_recording *rec;
  uint32_t add, state, seen, back;
  uint32_t seen_words[N], back_words[N];
} recorded;

static uint32_t add_slot(cts *c, recorded *k, const char *name) {
  uint32_t slot;
  CTS_OK(c, vyre_recording_add_slot(k->rec, name, 0, &slot, &c->st));
  return slot;
}

static void record_begin(cts *c, recorded *k) {
  memset(k, 0, sizeof *k);
  CTS_OK(c, vyre_recording_create(c->device, &k->rec, &c->st));
  k->add = add_slot(c, k, "add");
  k->state = add_slot(c, k, "state");
  k->seen = add_slot(c, k, "seen");
  k->back = add_slot(c, k, "back");
}

static void record_step(cts *c, const recorded *k, const rig *r,
                        bool reads_back) {
  vyre_slot_range in[] = {vyre_slot_range_all(k->add),
                          vyre_slot_range_all(k->state)};
  vyre_slot_range out[] = {vyre_slot_range_all(reads_back ? k->back : k->state),
                           vyre_slot_range_all(k->seen)};
  vyre_recorded_dispatch d = {
      .inputs = in, .input_count = 2, .outputs = out, .output_count = 2};
  CTS_OK(c, vyre_recording_add_dispatch(k->rec, r->pipeline, &d, &c->st));
}

static void bind(cts *c, const recorded *k, uint32_t slot,
                 vyre_slot_binding to) {
  CTS_OK(c, vyre_recording_bind_slot(k->rec, slot, &to, &c->st));
}

static void record_end(cts *c, recorded *k, rig *r) {
  CTS_OK(c, vyre_recording_seal(k->rec, &c->st));
  bind(c, k, k->add, (vyre_slot_binding){.data = &r->add, .size = 4});
  bind(
      c, k, k->state,
      (vyre_slot_binding){.buffer = r->state, .offset = OFFSET, .size = BYTES});
  bind(c, k, k->seen,
       (vyre_slot_binding){.data = k->seen_words, .size = BYTES});
  bind(c, k, k->back,
       (vyre_slot_binding){.data = k->back_words, .size = BYTES});
}

/* Each replay runs three dispatches on the state and reads back the second. */
static void recording(cts *c) {
  rig r;
  recorded k;
  begin(c, &r);
  record_begin(c, &k);
  record_step(c, &k, &r, false);
  record_step(c, &k, &r, true);
  record_step(c, &k, &r, false);
  record_end(c, &k, &r);
  for (unsigned i = 0; i < 6; i++) {
    uint32_t second[N];
    vyre_fence *done = NULL;
    CTS_OK(c, vyre_recording_replay(k.rec, NULL, i % 2 ? &done : NULL, &c->st));
    if (done) CTS_OK(c, vyre_fence_wait(done, VYRE_WAIT_FOREVER, &c->st));
    vyre_fence_release(done);
    advance(&r);
    advance(&r);
    memcpy(second, r.want, BYTES);
    advance(&r);
    CTS_SAME(c, "the second dispatch", k.back_words, second, BYTES);
    CTS_SAME(c, "the state before", k.seen_words, r.seen, BYTES);
    r.add += 3;
  }
  vyre_recording_release(k.rec);
  end(c, &r);
}

/* A command reads host memory that the command before it reads back to. */
static void recording_reads_back_an_input(cts *c) {
  static const char copy_text[] =
      "kernel copy workgroup(4) over(y)\n"
      "buffer x : read u32[] @0;\n"
      "buffer y : write u32[] @1;\n"
      "{ let i = global_id.x; if (i < len(y)) y[i] = x[i] + 1; }\n";
  vyre_pipeline *copy = cts_kernel(c, copy_text);
  rig r;
  recorded k;
  uint32_t got[N];
  begin(c, &r);
  record_begin(c, &k);
  uint32_t last = add_slot(c, &k, "last");
  vyre_slot_range back = vyre_slot_range_all(k.back),
                  to = vyre_slot_range_all(last);
  vyre_recorded_dispatch d = {
      .inputs = &back, .input_count = 1, .outputs = &to, .output_count = 1};
  for (int i = 0; i < 2; i++) {
    record_step(c, &k, &r, true);
    CTS_OK(c, vyre_recording_add_dispatch(k.rec, copy, &d, &c->st));
  }
  record_end(c, &k, &r);
  bind(c, &k, last, (vyre_slot_binding){.data = got, .size = BYTES});
  for (unsigned turn = 0; turn < 3; turn++) {
    CTS_OK(c, vyre_recording_replay(k.rec, NULL, NULL, &c->st));
    advance(&r);
    advance(&r);
    r.launches += 2; /* the copies */
    for (uint32_t i = 0; i < N; i++)
      CTS_U64(c, got[i], (uint32_t)(r.want[i] + 1));
  }
  vyre_recording_release(k.rec);
  end(c, &r);
}

static const char count_text[] =
    "kernel count workgroup(1)\n"
    "buffer left : read_write u32[2] @0;\n"
    "{ if (global_id.x == 0) { left[0] -= 1; left[1] += 5; } }\n";

/* A loop updates the state, counts down its own flag and reads the state back
 * before it is updated again. */
static void run_loop(cts *c, bool reads_back, uint32_t interval) {
  rig r;
  recorded k;
  vyre_buffer left;
  vyre_pipeline *count = cts_kernel(c, count_text);
  begin(c, &r);
  record_begin(c, &k);
  uint32_t flag = add_slot(c, &k, "left");
  vyre_slot_range range = vyre_slot_range_all(flag);
  vyre_recorded_dispatch d = {
      .inputs = &range, .input_count = 1, .outputs = &range, .output_count = 1};
  CTS_OK(c, vyre_recording_begin_while(k.rec, range, 100, interval, &c->st));
  record_step(c, &k, &r, reads_back);
  CTS_OK(c, vyre_recording_add_dispatch(k.rec, count, &d, &c->st));
  record_step(c, &k, &r, false);
  CTS_OK(c, vyre_recording_end_while(k.rec, &c->st));
  CTS_OK(c, vyre_buffer_create(c->device, 8, &left, &c->st));
  record_end(c, &k, &r);
  bind(c, &k, flag, (vyre_slot_binding){.buffer = left});
  uint32_t back[N] = {0};
  for (uint32_t turn = 1; turn <= 3; turn++) {
    uint32_t words[2] = {3 + turn, 0};
    CTS_OK(c, vyre_buffer_upload(c->device, left, 0, words, 8, &c->st));
    CTS_OK(c, vyre_recording_replay(k.rec, NULL, NULL, &c->st));
    for (uint32_t i = 0; i < 3 + turn; i++) {
      advance(&r);
      memcpy(back, r.want, BYTES);
      advance(&r);
      r.launches++; /* the counting kernel */
    }
    if (reads_back) CTS_SAME(c, "the state", k.back_words, back, BYTES);
    CTS_OK(c, vyre_buffer_download(c->device, left, 0, words, 8, &c->st));
    CTS_U64(c, words[1], UINT64_C(5) * (3 + turn));
  }
  vyre_recording_release(k.rec);
  CTS_OK(c, vyre_buffer_destroy(c->device, left, &c->st));
  end(c, &r);
}

static void loop(cts *c) {
  run_loop(c, false, 4);
}

static void loop_reads_back(cts *c) {
  run_loop(c, true, 4);
}

static void loop_checked_each_time(cts *c) {
  run_loop(c, true, 0);
}

/* --- Outputs that the kernel only writes ----------------------------------*/

/* An output in a device buffer starts with zeros in every launch, and can be
 * read back too. */
static void written_only(cts *c) {
  rig r;
  vyre_buffer log, kept;
  unsigned char filled[BYTES];
  uint32_t got[N];
  begin(c, &r);
  CTS_OK(c, vyre_buffer_create(c->device, BYTES, &log, &c->st));
  memset(filled, 0xff, sizeof filled);
  for (unsigned i = 0; i < LAUNCHES; i++) {
    CTS_OK(c, vyre_buffer_upload(c->device, log, 0, filled, BYTES, &c->st));
    bool is_new = i == 3;
    vyre_output out[] = {{.data = NULL},
                         {.buffer = is_new ? (vyre_buffer){0} : log,
                          .new_buffer = is_new ? &kept : NULL,
                          .data = is_read_back(i) ? got : NULL,
                          .size = BYTES}};
    vyre_dispatch_desc desc = {
        .inputs = r.in, .input_count = 2, .outputs = out, .output_count = 2};
    CTS_OK(c, vyre_dispatch(r.pipeline, &desc, &c->st));
    advance(&r);
    if (is_read_back(i)) CTS_SAME(c, "the log", got, r.seen, BYTES);
    vyre_buffer from = is_new ? kept : log;
    CTS_OK(c, vyre_buffer_download(c->device, from, 0, got, BYTES, &c->st));
    CTS_SAME(c, "the log on the device", got, r.seen, BYTES);
    if (is_new) CTS_OK(c, vyre_buffer_destroy(c->device, kept, &c->st));
  }
  CTS_OK(c, vyre_buffer_destroy(c->device, log, &c->st));
  end(c, &r);
}

/* --- Resources: all buffers in one list -----------------------------------*/

/* A megakernel with a fixed order of buffers. The debug log is only written. */
static const char mega_text[] =
    "kernel mega workgroup(2)\n"
    "buffer control : read_write u32[4] @0;\n"
    "buffer ring : read_write u32[8] @1;\n"
    "buffer debug_log : write u32[8] @2 output;\n"
    "buffer io : read u32[] @3;\n"
    "{\n    let i = global_id.x;\n"
    "    if (i >= 8) return;\n    if (i % 2 == 0) debug_log[i] = ring[i] + 1;\n"
    "    ring[i] = ring[i] * 5 + io[i % len(io)];\n"
    "    if (i == 0) control[0] += 1;\n}\n";

typedef struct mega {
  vyre_pipeline *pipeline;
  vyre_buffer buffers[VYRE_ROW_RESOURCES];
  uint32_t control[4], ring[8], log[8], io[3];
} mega;

static void mega_begin(cts *c, mega *m) {
  static const uint64_t sizes[] = {16, 32, 32, 12};
  memset(m, 0, sizeof *m);
  m->pipeline = cts_kernel(c, mega_text);
  for (uint32_t i = 0; i < 3; i++) m->io[i] = i + 7;
  for (int i = 0; i < VYRE_ROW_RESOURCES; i++) {
    CTS_OK(c, vyre_buffer_create(c->device, sizes[i], &m->buffers[i], &c->st));
  }
  CTS_OK(c, vyre_buffer_upload(c->device, m->buffers[VYRE_ROW_IO_QUEUE], 0,
                               m->io, sizeof m->io, &c->st));
}

static void mega_advance(mega *m) {
  for (uint32_t i = 0; i < 8; i++) {
    m->log[i] = i % 2 == 0 ? m->ring[i] + 1 : 0;
    m->ring[i] = m->ring[i] * 5 + m->io[i % 3];
  }
  m->control[0]++;
}

static vyre_buffer_row mega_row(const mega *m) {
  vyre_buffer_row row;
  for (int i = 0; i < VYRE_ROW_RESOURCES; i++) {
    row.resources[i] = vyre_input_buffer(m->buffers[i]);
  }
  return row;
}

static void mega_end(cts *c, mega *m) {
  uint32_t got[8];
  CTS_OK(c, vyre_buffer_download(c->device, m->buffers[VYRE_ROW_CONTROL], 0,
                                 got, 16, &c->st));
  CTS_SAME(c, "control", got, m->control, 16);
  CTS_OK(c, vyre_buffer_download(c->device, m->buffers[VYRE_ROW_RING], 0, got,
                                 32, &c->st));
  CTS_SAME(c, "ring", got, m->ring, 32);
  CTS_OK(c, vyre_buffer_download(c->device, m->buffers[VYRE_ROW_DEBUG_LOG], 0,
                                 got, 32, &c->st));
  CTS_SAME(c, "debug log", got, m->log, 32);
  for (int i = 0; i < VYRE_ROW_RESOURCES; i++) {
    CTS_OK(c, vyre_buffer_destroy(c->device, m->buffers[i], &c->st));
  }
}

/* Every row updates the same four buffers, and some rows are read back. */
static void rows(cts *c) {
  enum { ROWS = 4, OUTS = 3 };
  mega m;
  vyre_buffer_row row[ROWS];
  vyre_dispatch_desc items[ROWS];
  vyre_host_buffer ring[ROWS] = {{0}}, log[ROWS] = {{0}};
  vyre_output out[ROWS * OUTS] = {{0}};
  const vyre_dispatch_desc config = {.grid = {4, 1, 1}};
  mega_begin(c, &m);
  for (unsigned i = 0; i < ROWS; i++) {
    row[i] = mega_row(&m);
    if (!is_read_back(i)) continue;
    out[i * OUTS + 1] = vyre_output_host_buffer(&ring[i], 0);
    out[i * OUTS + 2] = vyre_output_host_buffer(&log[i], 0);
  }
  for (unsigned turn = 0; turn < 4; turn++) {
    CTS_OK(c, vyre_dispatch_rows_into(m.pipeline, row, ROWS, out, OUTS, &config,
                                      items, &c->st));
    for (unsigned i = 0; i < ROWS; i++) {
      mega_advance(&m);
      if (!is_read_back(i)) continue;
      CTS_SAME(c, "ring", ring[i].data, m.ring, 32);
      CTS_SAME(c, "debug log", log[i].data, m.log, 32);
    }
    /* and without any readback */
    CTS_OK(c, vyre_dispatch_rows_into(m.pipeline, row, ROWS, NULL, 0, &config,
                                      items, &c->st));
    for (unsigned i = 0; i < ROWS; i++) mega_advance(&m);
  }
  for (unsigned i = 0; i < ROWS; i++) {
    vyre_host_buffer_deinit(&ring[i]);
    vyre_host_buffer_deinit(&log[i]);
  }
  CTS_LAUNCHED(c, UINT64_C(8) * ROWS);
  mega_end(c, &m);
}

/* The outputs stay on the device: those of the resources, in output order. */
static void to_buffers(cts *c) {
  mega m;
  vyre_buffer out[3];
  mega_begin(c, &m);
  vyre_buffer_row row = mega_row(&m);
  const vyre_dispatch_desc config = {.grid = {4, 1, 1}};
  for (int i = 0; i < 3; i++) {
    memset(out, 0xff, sizeof out);
    CTS_OK(c, vyre_dispatch_to_buffers(m.pipeline, row.resources, 4, out, 3,
                                       &config, &c->st));
    mega_advance(&m);
    for (int k = 0; k < 3; k++) {
      CTS_CHECK(c, out[k].owner == m.buffers[k].owner);
      CTS_U64(c, out[k].id, m.buffers[k].id);
    }
  }
  /* A zeroed resource of an output, and host memory of an input_output, become
   * new buffers. */
  uint32_t got[8], ring[8];
  memcpy(ring, m.ring, sizeof ring);
  row.resources[VYRE_ROW_RING] = vyre_input_bytes(ring, sizeof ring);
  row.resources[VYRE_ROW_DEBUG_LOG] = (vyre_input){0};
  mega next = m;
  mega_advance(&next);
  CTS_OK(c, vyre_dispatch_to_buffers(m.pipeline, row.resources, 4, out, 3,
                                     &config, &c->st));
  CTS_SAME(c, "the host input", ring, m.ring, sizeof ring);
  CTS_OK(c, vyre_buffer_download(c->device, out[1], 0, got, 32, &c->st));
  CTS_SAME(c, "the new ring", got, next.ring, 32);
  CTS_OK(c, vyre_buffer_download(c->device, out[2], 0, got, 32, &c->st));
  CTS_SAME(c, "the new log", got, next.log, 32);
  CTS_OK(c, vyre_buffer_destroy(c->device, out[1], &c->st));
  CTS_OK(c, vyre_buffer_destroy(c->device, out[2], &c->st));
  m.control[0]++;
  CTS_LAUNCHED(c, 4);
  mega_end(c, &m);
}

/* --- Persistent buffers ---------------------------------------------------*/

static const char keep_text[] =
    "kernel keep workgroup(4) over(total)\n"
    "buffer x : read u32[] @0;\n"
    "buffer total : persistent read_write u32[] @1;\n"
    "buffer runs : persistent read_write u32[1] @2 live_out;\n"
    "buffer y : write u32[] @3 output;\n"
    "{\n    let i = global_id.x;\n"
    "    if (i >= len(total)) return;\n"
    "    total[i] += x[i];\n    y[i] = total[i] * 2;\n"
    "    if (i == 0) runs[0] += 1;\n}\n";

typedef struct keeper {
  vyre_pipeline *pipeline;
  vyre_buffer total, runs;
  uint32_t x[N], y[N], want[N], want_y[N], count;
  vyre_input resources[4];
} keeper;

static void keeper_begin(cts *c, keeper *k) {
  memset(k, 0, sizeof *k);
  k->pipeline = cts_kernel(c, keep_text);
  for (uint32_t i = 0; i < N; i++) k->x[i] = 3 * i + 1;
  CTS_OK(c, vyre_buffer_create(c->device, BYTES, &k->total, &c->st));
  CTS_OK(c, vyre_buffer_create(c->device, 4, &k->runs, &c->st));
  k->resources[0] = vyre_input_bytes(k->x, BYTES);
  k->resources[1] = vyre_input_buffer(k->total);
  k->resources[2] = vyre_input_buffer(k->runs);
}

static void keeper_advance(keeper *k) {
  for (uint32_t i = 0; i < N; i++) {
    k->want[i] += k->x[i];
    k->want_y[i] = 2 * k->want[i];
  }
  k->count++;
}

static void keeper_end(cts *c, keeper *k) {
  uint32_t got[N];
  CTS_OK(c, vyre_buffer_download(c->device, k->total, 0, got, BYTES, &c->st));
  CTS_SAME(c, "total", got, k->want, BYTES);
  CTS_OK(c, vyre_buffer_download(c->device, k->runs, 0, got, 4, &c->st));
  CTS_U64(c, got[0], k->count);
  CTS_OK(c, vyre_buffer_destroy(c->device, k->total, &c->st));
  CTS_OK(c, vyre_buffer_destroy(c->device, k->runs, &c->st));
  CTS_LAUNCHED(c, k->count);
}

static vyre_dispatch_desc keeper_desc(const keeper *k, const vyre_output *out) {
  return (vyre_dispatch_desc){.resources = k->resources,
                              .resource_count = 4,
                              .outputs = out,
                              .output_count = 2};
}

/* Single dispatches, then batches; the live_out buffer is read back on some. */
static void persistent(cts *c) {
  enum { ITEMS = 4 };
  keeper k;
  uint32_t count[ITEMS], y[ITEMS][N];
  vyre_output out[ITEMS][2];
  vyre_dispatch_desc items[ITEMS];
  keeper_begin(c, &k);
  for (unsigned i = 0; i < ITEMS; i++) {
    out[i][0] = vyre_output_bytes(is_read_back(i) ? &count[i] : NULL, 4);
    out[i][1] = vyre_output_bytes(y[i], BYTES);
    items[i] = keeper_desc(&k, out[i]);
    CTS_OK(c, vyre_dispatch(k.pipeline, &items[i], &c->st));
    keeper_advance(&k);
    CTS_SAME(c, "y", y[i], k.want_y, BYTES);
    if (is_read_back(i)) CTS_U64(c, count[i], k.count);
  }
  for (unsigned turn = 0; turn < 3; turn++) {
    CTS_OK(c, vyre_submit(k.pipeline, items, ITEMS, NULL, &c->st));
    for (unsigned i = 0; i < ITEMS; i++) {
      keeper_advance(&k);
      CTS_SAME(c, "y of an item", y[i], k.want_y, BYTES);
      if (is_read_back(i)) CTS_U64(c, count[i], k.count);
    }
  }
  keeper_end(c, &k);
}

static void persistent_refused(cts *c) {
  keeper k;
  uint32_t y[N];
  keeper_begin(c, &k);
  const vyre_output out[] = {{.data = NULL}, vyre_output_bytes(y, BYTES)};
  vyre_dispatch_desc desc = keeper_desc(&k, out), other = desc;
#define REFUSED(desc)                                     \
  CTS_FAILS(c, vyre_dispatch(k.pipeline, (desc), &c->st), \
            VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH)
  k.resources[1] = (vyre_input){0}; /* no handle */
  REFUSED(&desc);
  k.resources[1] = vyre_input_bytes(k.x, BYTES); /* host memory */
  REFUSED(&desc);
  k.resources[1] = k.resources[2]; /* bound twice */
  REFUSED(&desc);
  k.resources[1] = vyre_input_buffer(k.total);
  k.resources[2].offset = 4; /* too short */
  REFUSED(&desc);
  k.resources[2].offset = 0;
  other.resource_count = 3;
  REFUSED(&other);
  other = (vyre_dispatch_desc){.inputs = k.resources,
                               .input_count = 1,
                               .outputs = out,
                               .output_count = 2};
  REFUSED(&other);
  other.resources = k.resources;
  other.resource_count = 4;
  REFUSED(&other); /* both lists */
  vyre_output twice[] = {{.buffer = k.runs}, out[1]};
  other = keeper_desc(&k, twice);
  REFUSED(&other); /* the resource is the buffer of the output */
#undef REFUSED
  for (int i = 0; i < 3; i++) {
    CTS_OK(c, vyre_dispatch(k.pipeline, &desc, &c->st));
    keeper_advance(&k);
    CTS_SAME(c, "y", y, k.want_y, BYTES);
  }
  keeper_end(c, &k);
}

/* Persistent buffers are ranges of one device buffer. Nothing around them
 * changes, and they count as memory of a device buffer. */
static void persistent_ranges(cts *c) {
  enum { RUNS_AT = 4, AFTER = OFFSET + BYTES, WHOLE = AFTER + 8 };
  keeper k;
  vyre_buffer memory;
  unsigned char all[WHOLE], want[WHOLE];
  uint32_t y[N], count;
  keeper_begin(c, &k);
  memset(want, 0x55, sizeof want);
  memset(want + RUNS_AT, 0, 4);
  memset(want + OFFSET, 0, BYTES);
  CTS_OK(c, vyre_buffer_create(c->device, WHOLE, &memory, &c->st));
  CTS_OK(c, vyre_buffer_upload(c->device, memory, 0, want, WHOLE, &c->st));
  k.resources[1] =
      (vyre_input){.buffer = memory, .offset = OFFSET, .size = BYTES};
  k.resources[2] = (vyre_input){.buffer = memory, .offset = RUNS_AT, .size = 4};
  for (unsigned i = 0; i < LAUNCHES; i++) {
    vyre_copy_report copies = {0};
    const vyre_output out[] = {
        vyre_output_bytes(is_read_back(i) ? &count : NULL, 4),
        vyre_output_bytes(y, BYTES)};
    vyre_dispatch_desc desc = keeper_desc(&k, out);
    desc.copies = &copies;
    CTS_OK(c, vyre_dispatch(k.pipeline, &desc, &c->st));
    keeper_advance(&k);
    CTS_SAME(c, "y", y, k.want_y, BYTES);
    if (is_read_back(i)) CTS_U64(c, count, k.count);
    CTS_U64(c, copies.device_buffer_bytes, BYTES + 4);
    memcpy(want + OFFSET, k.want, BYTES);
    memcpy(want + RUNS_AT, &k.count, 4);
    CTS_OK(c, vyre_buffer_download(c->device, memory, 0, all, WHOLE, &c->st));
    CTS_SAME(c, "the buffer", all, want, WHOLE);
  }
  CTS_OK(c, vyre_buffer_destroy(c->device, memory, &c->st));
  CTS_OK(c, vyre_buffer_upload(c->device, k.total, 0, k.want, BYTES, &c->st));
  CTS_OK(c, vyre_buffer_upload(c->device, k.runs, 0, &k.count, 4, &c->st));
  keeper_end(c, &k);
}

static const char table_text[] =
    "kernel lookup workgroup(4) over(y)\n"
    "buffer table : persistent read u32[8] @0;\n"
    "buffer state : persistent read_write u32[] @1;\n"
    "buffer y : write u32[] @2;\n"
    "{ let i = global_id.x; if (i >= len(y) || i >= len(state)) return;\n"
    "  state[i] += table[i % 8]; y[i] = state[i]; }\n";

/* A persistent buffer that is read must have its declared size, whole elements
 * and no bytes that the dispatch writes. */
static void persistent_overlaps(cts *c) {
  vyre_pipeline *pipeline = cts_kernel(c, table_text);
  vyre_buffer memory;
  uint32_t words[24], y[8];
  for (uint32_t i = 0; i < 24; i++) words[i] = i + 1;
  CTS_OK(c, vyre_buffer_create(c->device, sizeof words, &memory, &c->st));
  CTS_OK(c,
         vyre_buffer_upload(c->device, memory, 0, words, sizeof words, &c->st));
  vyre_output out = vyre_output_bytes(y, sizeof y);
  vyre_input resources[] = {{.buffer = memory, .size = 32},
                            {.buffer = memory, .offset = 32, .size = 32},
                            {0}};
  const vyre_dispatch_desc desc = {.resources = resources,
                                   .resource_count = 3,
                                   .outputs = &out,
                                   .output_count = 1};
#define REFUSED()                                                             \
  CTS_FAILS(c, vyre_dispatch(pipeline, &desc, &c->st), VYRE_INVALID_ARGUMENT, \
            VYRE_KIND_BINDING_MISMATCH)
  resources[0].offset = 16; /* overlaps the written state */
  REFUSED();
  resources[0].offset = 64;
  out = (vyre_output){.buffer = memory, .offset = 80, .size = 16};
  REFUSED(); /* overlaps the output */
  out = (vyre_output){.buffer = memory, .offset = 48, .size = 16};
  REFUSED(); /* the output overlaps the state */
  out = vyre_output_bytes(y, sizeof y);
  resources[0].size = 28; /* shorter than declared */
  REFUSED();
  resources[0].size = 32;
  resources[1].size = 30; /* half an element */
  REFUSED();
  resources[1].size = 32;
#undef REFUSED
  for (uint32_t n = 1; n <= 3; n++) {
    CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
    for (uint32_t i = 0; i < 8; i++) CTS_U64(c, y[i], (i + 9) + n * (i + 17));
  }
  CTS_OK(c, vyre_buffer_destroy(c->device, memory, &c->st));
  CTS_LAUNCHED(c, 3);
}

/* Records dispatches whose memory is one list of slots. */
static void recorded_resources(cts *c) {
  keeper k;
  vyre_recording *rec;
  uint32_t slots[5], count = 0, y[N];
  static const char *const names[] = {"x", "total", "runs", "y", "back"};
  keeper_begin(c, &k);
  CTS_OK(c, vyre_recording_create(c->device, &rec, &c->st));
  for (int i = 0; i < 5; i++) {
    CTS_OK(c, vyre_recording_add_slot(rec, names[i], 0, &slots[i], &c->st));
  }
  vyre_slot_range resources[4];
  for (int i = 0; i < 4; i++) resources[i] = vyre_slot_range_all(slots[i]);
  resources[3].slot = VYRE_NO_SLOT;
  const vyre_slot_range none = {.slot = VYRE_NO_SLOT};
  for (int i = 0; i < 3; i++) {
    const vyre_slot_range out[] = {
        i == 1 ? vyre_slot_range_all(slots[4]) : none,
        vyre_slot_range_all(slots[3])};
    vyre_recorded_dispatch d = {.resources = resources,
                                .resource_count = 4,
                                .outputs = out,
                                .output_count = 2};
    CTS_OK(c, vyre_recording_add_dispatch(rec, k.pipeline, &d, &c->st));
  }
  vyre_recorded_dispatch bad = {.inputs = resources, .input_count = 1};
  CTS_FAILS(c, vyre_recording_add_dispatch(rec, k.pipeline, &bad, &c->st),
            VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  CTS_OK(c, vyre_recording_seal(rec, &c->st));
  const vyre_slot_binding bindings[] = {{.data = k.x, .size = BYTES},
                                        {.buffer = k.total},
                                        {.buffer = k.runs},
                                        {.data = y, .size = BYTES},
                                        {.data = &count, .size = 4}};
  for (int i = 0; i < 5; i++) {
    CTS_OK(c, vyre_recording_bind_slot(rec, slots[i], &bindings[i], &c->st));
  }
  for (int i = 0; i < 4; i++) {
    CTS_OK(c, vyre_recording_replay(rec, NULL, NULL, &c->st));
    for (int n = 0; n < 3; n++) keeper_advance(&k);
    CTS_SAME(c, "y", y, k.want_y, BYTES);
    CTS_U64(c, count, k.count - 1);
  }
  vyre_recording_release(rec);
  keeper_end(c, &k);
}

/* --- Refusals -------------------------------------------------------------*/

static void refuse(cts *c, rig *r, const vyre_output *out) {
  vyre_dispatch_desc desc = {
      .inputs = r->in, .input_count = 2, .outputs = out, .output_count = 2};
  CTS_FAILS(c, vyre_dispatch(r->pipeline, &desc, &c->st), VYRE_INVALID_ARGUMENT,
            VYRE_KIND_BINDING_MISMATCH);
}

/* The same bytes must not be bound twice if one of both writes them. A readback
 * has the size of the output, and its memory overlaps nothing. */
static void refused(cts *c) {
  rig r;
  uint32_t got[N + 1], seen[N];
  begin(c, &r);
  vyre_output state = vyre_output_bytes(got, BYTES);
  vyre_output log = vyre_output_bytes(seen, BYTES);
  vyre_output twice = {.buffer = r.state, .offset = OFFSET + 8, .size = BYTES};
  refuse(c, &r, (vyre_output[]){state, twice});
  refuse(c, &r, (vyre_output[]){vyre_output_bytes(got, BYTES + 4), log});
  refuse(c, &r, (vyre_output[]){vyre_output_bytes(got, 0), log});
  refuse(c, &r, (vyre_output[]){state, vyre_output_bytes(got + 1, BYTES)});
  vyre_dispatch_desc desc = {.inputs = r.in,
                             .input_count = 2,
                             .outputs = (vyre_output[]){state, log},
                             .output_count = 2,
                             .require_zero_copy = true};
  CTS_FAILS(c, vyre_dispatch(r.pipeline, &desc, &c->st), VYRE_INVALID_ARGUMENT,
            VYRE_KIND_COPY_NEEDED);
  desc.require_zero_copy = false;
  for (int i = 0; i < 3; i++) {
    CTS_OK(c, vyre_dispatch(r.pipeline, &desc, &c->st));
    advance(&r);
    CTS_SAME(c, "the state", got, r.want, BYTES);
  }
  end(c, &r);
}

static const char spin_text[] =
    "kernel spin workgroup(1)\n"
    "buffer n : read_write u32[4] @0;\n"
    "{ var v = n[0]; while (v != 7) v += 2; n[1] = v; n[2] += 1; }\n";

/* After a dispatch that failed, the contents of its buffers are unspecified,
 * but the buffers can be used. */
static void failed(cts *c) {
  vyre_pipeline *pipeline = cts_kernel(c, spin_text);
  vyre_buffer n;
  uint32_t words[4] = {0}, got[4];
  CTS_OK(c, vyre_buffer_create(c->device, sizeof words, &n, &c->st));
  vyre_input in = vyre_input_buffer(n);
  vyre_output out = vyre_output_bytes(got, sizeof got);
  vyre_dispatch_desc desc = {.inputs = &in,
                             .input_count = 1,
                             .outputs = &out,
                             .output_count = 1,
                             .grid = {1, 1, 1},
                             .max_loop_iterations = 1000};
  CTS_FAILS(c, vyre_dispatch(pipeline, &desc, &c->st), VYRE_DISPATCH_FAILED,
            VYRE_KIND_OUT_OF_FUEL);
  words[0] = 7;
  CTS_OK(c, vyre_buffer_upload(c->device, n, 0, words, sizeof words, &c->st));
  for (uint32_t i = 1; i <= 3; i++) {
    CTS_OK(c, vyre_dispatch(pipeline, &desc, &c->st));
    CTS_U64(c, got[2], i);
    CTS_U64(c, got[1], 7);
  }
  CTS_OK(c, vyre_buffer_destroy(c->device, n, &c->st));
  CTS_LAUNCHED(c, 3);
}

static const cts_entry entries[] = {
    {"dispatch", dispatch},
    {"fence", fence},
    {"single", single},
    {"single_timed", single_timed},
    {"single_into", single_into},
    {"after_queued", after_queued},
    {"repeats", repeats},
    {"batched", batched},
    {"batched_into", batched_into},
    {"batched_queued", batched_queued},
    {"recording", recording},
    {"recording_reads_back_an_input", recording_reads_back_an_input},
    {"loop", loop},
    {"loop_reads_back", loop_reads_back},
    {"loop_checked_each_time", loop_checked_each_time},
    {"written_only", written_only},
    {"rows", rows},
    {"to_buffers", to_buffers},
    {"persistent", persistent},
    {"persistent_refused", persistent_refused},
    {"persistent_ranges", persistent_ranges},
    {"persistent_overlaps", persistent_overlaps},
    {"recorded_resources", recorded_resources},
    {"refused", refused},
    {"failed", failed},
};

CTS_LIST(resident, "state in device buffers");
