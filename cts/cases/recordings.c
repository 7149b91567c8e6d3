/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: recordings with slots, copies, loops and replays. Checks results only;
 * backends may replay in any way. */
#include <stdio.h>
#include <string.h>

#include "cts/harness/cts.h"

enum { N = 20, BYTES = 4 * N };

static const char scale_text[] =
    "kernel scale workgroup(8) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : write u32[] @1 output;\n"
    "uniform a : u32 @2;\n"
    "{ if (global_id.x < len(y)) y[global_id.x] = a * x[global_id.x]; }\n";
static const char add_text[] =
    "kernel add workgroup(8) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : read_write u32[] @1;\n"
    "{ if (global_id.x < len(y)) y[global_id.x] += x[global_id.x]; }\n";
static const char count_text[] =
    "kernel count workgroup(1)\n"
    "buffer n : read_write u32[2] @0;\n"
    "{ if (global_id.x == 0) { n[0] = n[0] - 1; n[1] = n[1] + 1; } }\n";
static const char refill_text[] =
    "kernel refill workgroup(1)\n"
    "buffer n : read_write u32[2] @0;\n"
    "buffer m : read_write u32[2] @1;\n"
    "{ if (global_id.x == 0) { n[0] = 3; m[0] = m[0] - 1; m[1] = m[1] + 1; } "
    "}\n";

static uint32_t add_slot(cts *c, vyre_recording *rec, const char *name) {
  uint32_t slot;
  CTS_OK(c, vyre_recording_add_slot(rec, name, 0, &slot, &c->st));
  return slot;
}

static void add_dispatch(cts *c, vyre_recording *rec, vyre_pipeline *pipeline,
                         const vyre_slot_range *in, size_t ins,
                         const vyre_slot_range *out, size_t outs) {
  vyre_recorded_dispatch d = {
      .inputs = in, .input_count = ins, .outputs = out, .output_count = outs};
  CTS_OK(c, vyre_recording_add_dispatch(rec, pipeline, &d, &c->st));
}

static void bind(cts *c, vyre_recording *rec, uint32_t slot,
                 vyre_slot_binding to) {
  CTS_OK(c, vyre_recording_bind_slot(rec, slot, &to, &c->st));
}

static vyre_slot_binding bytes(void *data, size_t size) {
  return (vyre_slot_binding){.data = data, .size = size};
}

/* Records: upload host to x; y = a x; sum += y; download sum (or y) to back. */
typedef struct chain {
  vyre_recording *rec;
  uint32_t host, x, a, y, sum, back;
  uint32_t in[N], factor, got[N];
  vyre_buffer rx, ry, rsum;
} chain;

static void chain_make(cts *c, bool has_sum, chain *k) {
  memset(k, 0, sizeof *k);
  k->factor = 3;
  for (uint32_t i = 0; i < N; i++) k->in[i] = i + 1;
  CTS_OK(c, vyre_buffer_create(c->device, BYTES, &k->rx, &c->st));
  CTS_OK(c, vyre_buffer_create(c->device, BYTES, &k->ry, &c->st));
  CTS_OK(c, vyre_buffer_create(c->device, BYTES, &k->rsum, &c->st));
  CTS_OK(c, vyre_recording_create(c->device, &k->rec, &c->st));
  k->host = add_slot(c, k->rec, "host");
  k->x = add_slot(c, k->rec, "x");
  k->a = add_slot(c, k->rec, "a");
  k->y = add_slot(c, k->rec, "y");
  k->sum = add_slot(c, k->rec, "sum");
  k->back = add_slot(c, k->rec, "back");
  vyre_slot_range x = vyre_slot_range_all(k->x), y = vyre_slot_range_all(k->y),
                  sum = vyre_slot_range_all(k->sum);
  vyre_slot_range scale_in[] = {x, vyre_slot_range_all(k->a)},
                  add_in[] = {y, sum};
  CTS_OK(c, vyre_recording_add_copy(k->rec, vyre_slot_range_all(k->host), x,
                                    &c->st));
  add_dispatch(c, k->rec, cts_kernel(c, scale_text), scale_in, 2, &y, 1);
  if (has_sum) {
    add_dispatch(c, k->rec, cts_kernel(c, add_text), add_in, 2, &sum, 1);
  }
  CTS_OK(c, vyre_recording_add_copy(k->rec, has_sum ? sum : y,
                                    vyre_slot_range_all(k->back), &c->st));
  CTS_OK(c, vyre_recording_seal(k->rec, &c->st));
  bind(c, k->rec, k->host, bytes(k->in, BYTES));
  bind(c, k->rec, k->x, (vyre_slot_binding){.buffer = k->rx});
  bind(c, k->rec, k->a, bytes(&k->factor, 4));
  bind(c, k->rec, k->y, (vyre_slot_binding){.buffer = k->ry});
  bind(c, k->rec, k->sum, (vyre_slot_binding){.buffer = k->rsum});
  bind(c, k->rec, k->back, bytes(k->got, BYTES));
}

static void chain_end(cts *c, chain *k) {
  vyre_recording_release(k->rec);
  CTS_OK(c, vyre_buffer_destroy(c->device, k->rx, &c->st));
  CTS_OK(c, vyre_buffer_destroy(c->device, k->ry, &c->st));
  CTS_OK(c, vyre_buffer_destroy(c->device, k->rsum, &c->st));
}

/* Each replay adds to the sum, so that every upload and dispatch has a visible
 * effect. */
static void replays_add_up(cts *c) {
  chain k;
  chain_make(c, true, &k);
  vyre_replay_result r;
  vyre_replay_options options = {.result = &r};
  for (uint32_t turn = 1; turn <= 3; turn++) {
    CTS_OK(c, vyre_recording_replay(k.rec, &options, NULL, &c->st));
    for (uint32_t i = 0; i < N; i++)
      CTS_CHECK(c, k.got[i] == 3 * turn * (i + 1));
    CTS_U64(c, r.dispatches, 2);
    CTS_U64(c, r.copies, 2);
  }
  CTS_LAUNCHED(c, 6);
  chain_end(c, &k);
}

static void rebinding(cts *c) {
  chain k;
  chain_make(c, true, &k);
  vyre_replay_result r;
  vyre_replay_options options = {.result = &r};
  CTS_OK(c, vyre_recording_replay(k.rec, &options, NULL, &c->st));
  uint32_t other[N];
  for (uint32_t i = 0; i < N; i++) other[i] = 100 + i;
  bind(c, k.rec, k.host,
       bytes(other, BYTES)); /* slot of a copy: no dispatch is rebuilt */
  CTS_OK(c, vyre_recording_replay(k.rec, &options, NULL, &c->st));
  CTS_U64(c, r.rebuilt, 0);
  vyre_buffer sum;
  CTS_OK(c, vyre_buffer_create(c->device, BYTES, &sum, &c->st));
  bind(c, k.rec, k.sum,
       (vyre_slot_binding){.buffer = sum}); /* slot of one dispatch */
  CTS_OK(c, vyre_recording_replay(k.rec, &options, NULL, &c->st));
  CTS_U64(c, r.rebuilt, 1);
  for (uint32_t i = 0; i < N; i++) CTS_CHECK(c, k.got[i] == 3 * (100 + i));
  CTS_LAUNCHED(c, 6);
  CTS_OK(c, vyre_buffer_destroy(c->device, sum, &c->st));
  chain_end(c, &k);
}

/* A destroyed buffer is rejected with the name of its slot, and nothing runs.
 */
static void stale(cts *c) {
  chain k;
  uint64_t slot = 99;
  chain_make(c, true, &k);
  CTS_OK(c, vyre_buffer_destroy(c->device, k.ry, &c->st));
  vyre_code code = vyre_recording_replay(k.rec, NULL, NULL, &c->st);
  CTS_CHECK(c, strstr(c->st.message, "'y'") != NULL);
  CTS_CHECK(c, vyre_status_number_get(&c->st, "slot", &slot) && slot == k.y);
  CTS_FAILS(c, code, VYRE_INVALID_ARGUMENT, VYRE_KIND_STALE_HANDLE);
  CTS_CHECK(c, k.got[0] == 0);
  /* A new buffer may reuse its memory, but is a different buffer. */
  CTS_OK(c, vyre_buffer_create(c->device, BYTES, &k.ry, &c->st));
  CTS_FAILS(c, vyre_recording_replay(k.rec, NULL, NULL, &c->st),
            VYRE_INVALID_ARGUMENT, VYRE_KIND_STALE_HANDLE);
  CTS_LAUNCHED(c, 0);
  bind(c, k.rec, k.y, (vyre_slot_binding){.buffer = k.ry});
  CTS_OK(c, vyre_recording_replay(k.rec, NULL, NULL, &c->st));
  CTS_U64(c, k.got[1], 6);
  CTS_LAUNCHED(c, 2);
  chain_end(c, &k);
}

static void refusals(cts *c) {
  chain k;
  vyre_device *other;
  vyre_buffer foreign;
  chain_make(c, true, &k);
  CTS_OK(c, vyre_device_open(c->context, c->backend, &other, &c->st));
  CTS_OK(c, vyre_buffer_create(other, BYTES, &foreign, &c->st));
  vyre_slot_binding wrong = {.buffer = foreign};
  CTS_FAILS(c, vyre_recording_bind_slot(k.rec, k.y, &wrong, &c->st),
            VYRE_INVALID_ARGUMENT, VYRE_KIND_FOREIGN_HANDLE);
  wrong = (vyre_slot_binding){.buffer = k.ry, .offset = BYTES - 4, .size = 8};
  CTS_FAILS(c, vyre_recording_bind_slot(k.rec, k.y, &wrong, &c->st),
            VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  CTS_FAILS(c, vyre_recording_bind_slot(k.rec, 77, &wrong, &c->st),
            VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT);
  CTS_OK(c, vyre_recording_bind_slot(k.rec, k.y, NULL, &c->st));
  CTS_FAILS(c, vyre_recording_replay(k.rec, NULL, NULL, &c->st),
            VYRE_INVALID_ARGUMENT, VYRE_KIND_UNBOUND_SLOT);
  /* The memory of x, which is now written. */
  bind(c, k.rec, k.y, (vyre_slot_binding){.buffer = k.rx});
  CTS_FAILS(c, vyre_recording_replay(k.rec, NULL, NULL, &c->st),
            VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  bind(c, k.rec, k.y,
       (vyre_slot_binding){.buffer = k.ry, .is_read_only = true});
  CTS_FAILS(c, vyre_recording_replay(k.rec, NULL, NULL, &c->st),
            VYRE_INVALID_ARGUMENT, VYRE_KIND_READ_ONLY);
  bind(c, k.rec, k.y, (vyre_slot_binding){.buffer = k.ry});
  bind(c, k.rec, k.back, bytes(k.got, BYTES / 2)); /* sizes of a copy differ */
  CTS_FAILS(c, vyre_recording_replay(k.rec, NULL, NULL, &c->st),
            VYRE_INVALID_ARGUMENT, VYRE_KIND_BINDING_MISMATCH);
  CTS_LAUNCHED(c, 0);
  vyre_device_release(other);
  chain_end(c, &k);
}

/* skip_uploads works only where the capture plan allows it. */
static void kept_inputs(cts *c) {
  chain safe, unsafe;
  vyre_replay_result r;
  vyre_replay_options keep = {.skip_uploads = true, .result = &r};
  chain_make(c, false, &safe);
  chain_make(c, true, &unsafe);
  CTS_FAILS(c, vyre_recording_replay(safe.rec, &keep, NULL, &c->st),
            VYRE_INVALID_ARGUMENT,
            VYRE_KIND_UNSAFE_REPLAY); /* nothing was uploaded yet */
  CTS_OK(c, vyre_recording_replay(safe.rec, NULL, NULL, &c->st));
  safe.in[0] = 100;
  CTS_OK(c, vyre_recording_replay(safe.rec, &keep, NULL, &c->st));
  CTS_U64(c, r.skipped_uploads, 1);
  CTS_U64(c, safe.got[0], 3);
  CTS_OK(c, vyre_recording_replay(safe.rec, NULL, NULL, &c->st));
  CTS_U64(c, safe.got[0], 300);
  CTS_OK(c, vyre_recording_replay(unsafe.rec, NULL, NULL, &c->st));
  CTS_FAILS(c, vyre_recording_replay(unsafe.rec, &keep, NULL, &c->st),
            VYRE_INVALID_ARGUMENT, VYRE_KIND_UNSAFE_REPLAY);
  CTS_LAUNCHED(c, 5);
  chain_end(c, &safe);
  chain_end(c, &unsafe);
}

/* Replays with a fence run in order and retain what they use. */
static void fences(cts *c) {
  chain k;
  vyre_fence *done[4];
  chain_make(c, true, &k);
  for (int i = 0; i < 4; i++) {
    CTS_OK(c, vyre_recording_replay(k.rec, NULL, &done[i], &c->st));
  }
  CTS_OK(c, vyre_buffer_destroy(c->device, k.ry, &c->st));
  vyre_recording_release(k.rec);
  k.rec = NULL;
  for (int i = 0; i < 4; i++) {
    CTS_OK(c, vyre_fence_wait(done[i], VYRE_WAIT_FOREVER, &c->st));
    vyre_fence_release(done[i]);
  }
  for (uint32_t i = 0; i < N; i++) CTS_CHECK(c, k.got[i] == 12 * (i + 1));
  CTS_LAUNCHED(c, 8);
  CTS_OK(c, vyre_buffer_create(c->device, BYTES, &k.ry, &c->st));
  chain_end(c, &k);
}

/* Records while (n[0]) n[0]--, with the flag on the host and on the device. */
static void loops(cts *c) {
  static const struct {
    uint32_t flag, max, check_interval, iterations;
    bool reached;
  } table[] = {{5, 100, 1, 5, false}, {5, 100, 4, 5, false},
               {8, 100, 4, 8, false}, {5, 5, 1, 5, false},
               {5, 4, 1, 4, true},    {5, 7, 4, 5, false},
               {0, 9, 4, 0, false},   {100, 3, 8, 3, true}};
  vyre_pipeline *count = cts_kernel(c, count_text);
  uint64_t launches = 0;
  for (size_t i = 0; i < 2 * (sizeof table / sizeof *table); i++) {
    bool is_there = i % 2 == 1;
    uint32_t n[2] = {table[i / 2].flag, 0};
    vyre_recording *rec;
    vyre_buffer there = {0, 0};
    CTS_OK(c, vyre_recording_create(c->device, &rec, &c->st));
    vyre_slot_range p = vyre_slot_range_all(add_slot(c, rec, "n"));
    CTS_OK(c, vyre_recording_begin_while(rec, p, table[i / 2].max,
                                         table[i / 2].check_interval, &c->st));
    add_dispatch(c, rec, count, &p, 1, &p, 1);
    CTS_OK(c, vyre_recording_end_while(rec, &c->st));
    CTS_OK(c, vyre_recording_seal(rec, &c->st));
    if (is_there) {
      CTS_OK(c, vyre_buffer_create(c->device, 8, &there, &c->st));
      CTS_OK(c, vyre_buffer_upload(c->device, there, 0, n, 8, &c->st));
      bind(c, rec, p.slot, (vyre_slot_binding){.buffer = there});
    } else {
      bind(c, rec, p.slot, bytes(n, 8));
    }
    vyre_replay_result r;
    vyre_replay_options options = {.result = &r};
    CTS_OK(c, vyre_recording_replay(rec, &options, NULL, &c->st));
    if (is_there) {
      CTS_OK(c, vyre_buffer_download(c->device, there, 0, n, 8, &c->st));
      CTS_OK(c, vyre_buffer_destroy(c->device, there, &c->st));
    }
    CTS_U64(c, n[1], table[i / 2].iterations);
    CTS_U64(c, r.iterations, table[i / 2].iterations);
    CTS_CHECK(c, r.reached_max == table[i / 2].reached);
    launches += table[i / 2].iterations;
    vyre_recording_release(rec);
  }
  CTS_LAUNCHED(c, launches);
}

/* Records while (m[0]) { n[0] = 3, m[0]--; while (n[0]) n[0]--; }. */
static void loops_in_loops(cts *c) {
  vyre_recording *rec;
  CTS_OK(c, vyre_recording_create(c->device, &rec, &c->st));
  uint32_t n = add_slot(c, rec, "n"), m = add_slot(c, rec, "m");
  vyre_slot_range both[] = {{n, 8, 0}, {m, 0, 0}};
  CTS_OK(c, vyre_recording_begin_while(rec, both[1], 10, 3, &c->st));
  add_dispatch(c, rec, cts_kernel(c, refill_text), both, 2, both, 2);
  CTS_OK(c, vyre_recording_begin_while(rec, both[0], 10, 2, &c->st));
  add_dispatch(c, rec, cts_kernel(c, count_text), both, 1, both, 1);
  CTS_OK(c, vyre_recording_end_while(rec, &c->st));
  CTS_OK(c, vyre_recording_end_while(rec, &c->st));
  CTS_OK(c, vyre_recording_seal(rec, &c->st));
  uint32_t inner[4] = {77, 78, 0, 0}, outer[2] = {4, 0};
  bind(c, rec, n, bytes(inner, 16));
  bind(c, rec, m, bytes(outer, 8));
  CTS_OK(c, vyre_recording_replay(rec, NULL, NULL, &c->st));
  CTS_U64(c, outer[1], 4);
  CTS_U64(c, inner[3], 12);
  CTS_CHECK(c, inner[0] == 77 && inner[1] == 78);
  CTS_LAUNCHED(c, 16);
  vyre_recording_release(rec);
}

static const cts_entry entries[] = {
    {"replays_add_up", replays_add_up},
    {"rebinding", rebinding},
    {"stale", stale},
    {"refusals", refusals},
    {"kept_inputs", kept_inputs},
    {"fences", fences},
    {"loops", loops},
    {"loops_in_loops", loops_in_loops},
};

CTS_LIST(recordings, "recordings and replays");
