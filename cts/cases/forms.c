/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: every dispatch form gives the bits of vyre_device_run_program, which
 * are checked too. */
#include <stdio.h>

#include "cts/harness/saxpy.h"

typedef struct rig {
  vyre_program *program;
  vyre_pipeline *pipeline;
  saxpy_data d;
  saxpy_result got;
  saxpy_result want; /* result of the reference run, which is checked */
  uint64_t launches; /* launches so far */
} rig;

/* Performs the reference run on random data: one launch. */
static void begin(cts *c, rig *r) {
  memset(r, 0, sizeof *r);
  r->program = cts_program(c, saxpy_text);
  saxpy_make(&r->d, c->seed, &r->want);
  saxpy_result right = saxpy_expect(&r->d, 1);
  CTS_OK(c, vyre_device_run_program(c->device, r->program, &r->d.desc, &c->st));
  CTS_LAUNCHED(c, 1);
  r->launches = 1;
  CTS_SAME(c, "the reference run", &r->want, &right, sizeof right);
  saxpy_make(&r->d, c->seed, &r->got);
  r->pipeline = cts_compile(c, r->program, 0);
}

static void launched(cts *c, rig *r, uint64_t more) {
  CTS_LAUNCHED(c, r->launches += more);
}

static void same(cts *c, const rig *r, const char *form) {
  CTS_SAME(c, form, &r->got, &r->want, sizeof r->want);
}

static void device_dispatch(cts *c) {
  rig r;
  begin(c, &r);
  CTS_OK(c, vyre_device_run_program(c->device, r.program, &r.d.desc, &c->st));
  launched(c, &r, 1);
  same(c, &r, "vyre_device_run_program again");
}

static void dispatch(cts *c) {
  rig r;
  begin(c, &r);
  for (int i = 0; i < 3; i++) {
    memset(&r.got, i, sizeof r.got);
    CTS_OK(c, vyre_dispatch(r.pipeline, &r.d.desc, &c->st));
    same(c, &r, "vyre_dispatch");
  }
  launched(c, &r, 3);
}

static void submit_one(cts *c) {
  rig r;
  begin(c, &r);
  vyre_code result = VYRE_NOT_RUN;
  r.d.desc.result = &result;
  CTS_OK(c, vyre_submit(r.pipeline, &r.d.desc, 1, NULL, &c->st));
  CTS_CHECK(c, result == VYRE_OK);
  launched(c, &r, 1);
  same(c, &r, "vyre_submit");
}

static void submit_none(cts *c) {
  rig r;
  begin(c, &r);
  vyre_fence *fence;
  CTS_OK(c, vyre_submit(r.pipeline, NULL, 0, NULL, &c->st));
  CTS_OK(c, vyre_submit(r.pipeline, NULL, 0, &fence, &c->st));
  CTS_OK(c, vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &c->st));
  vyre_fence_release(fence);
  launched(c, &r, 0);
}

static void in_place(cts *c) {
  rig r;
  begin(c, &r);
  r.d.out[0] = vyre_output_bytes(r.d.y, SAXPY_BYTES);
  CTS_OK(c, vyre_dispatch(r.pipeline, &r.d.desc, &c->st));
  launched(c, &r, 1);
  memcpy(r.got.y, r.d.y, SAXPY_BYTES);
  same(c, &r, "one place for input and output");
}

static void unaligned(cts *c) {
  rig r;
  begin(c, &r);
  unsigned char *x = cts_memory(c, SAXPY_BYTES + 1);
  unsigned char *y = cts_memory(c, SAXPY_BYTES + 3);
  unsigned char *z = cts_memory(c, SAXPY_SUMS + 1);
  memcpy(x + 1, r.d.x, SAXPY_BYTES);
  memcpy(y + 3, r.d.y, SAXPY_BYTES);
  r.d.in[0].data = x + 1;
  r.d.in[1].data = y + 3;
  r.d.out[0].data = y + 3;
  r.d.out[1].data = z + 1;
  CTS_OK(c, vyre_dispatch(r.pipeline, &r.d.desc, &c->st));
  launched(c, &r, 1);
  memcpy(r.got.y, y + 3, SAXPY_BYTES);
  memcpy(r.got.z, z + 1, SAXPY_SUMS);
  same(c, &r, "memory at odd addresses");
}

static void host_memory(cts *c) {
  rig r;
  begin(c, &r);
  void *x, *y, *z, *a;
  CTS_OK(c, vyre_host_alloc(c->device, SAXPY_BYTES, &x, &c->st));
  CTS_OK(c, vyre_host_alloc(c->device, SAXPY_BYTES, &y, &c->st));
  CTS_OK(c, vyre_host_alloc(c->device, SAXPY_SUMS, &z, &c->st));
  CTS_OK(c, vyre_host_alloc(c->device, 4, &a, &c->st));
  memcpy(x, r.d.x, SAXPY_BYTES);
  memcpy(y, r.d.y, SAXPY_BYTES);
  memcpy(a, &r.d.a, 4);
  r.d.in[0].data = x;
  r.d.in[1].data = r.d.out[0].data = y;
  r.d.in[2].data = a;
  r.d.out[1].data = z;
  vyre_copy_report copies;
  r.d.desc.copies = &copies;
  /* Nothing may be copied, if the device can use host memory at all. */
  r.d.desc.require_zero_copy = c->caps->borrows_host_memory;
  CTS_OK(c, vyre_dispatch(r.pipeline, &r.d.desc, &c->st));
  launched(c, &r, 1);
  CTS_CHECK(c, !c->caps->borrows_host_memory || copies.copied_bytes == 0);
  memcpy(r.got.y, y, SAXPY_BYTES);
  memcpy(r.got.z, z, SAXPY_SUMS);
  same(c, &r, "memory of vyre_host_alloc");
  vyre_host_free(c->device, x, SAXPY_BYTES);
  vyre_host_free(c->device, y, SAXPY_BYTES);
  vyre_host_free(c->device, z, SAXPY_SUMS);
  vyre_host_free(c->device, a, 4);
}

static void slots(cts *c) {
  rig r;
  begin(c, &r);
  vyre_host_buffer y = {0}, z = {0};
  vyre_output_stats stats = {0};
  r.d.out[0] = vyre_output_host_buffer(&y, 0);
  r.d.out[1] = vyre_output_host_buffer(&z, 0);
  r.d.desc.output_stats = &stats;
  void *first = NULL;
  for (int i = 0; i < 3; i++) {
    CTS_OK(c, vyre_dispatch(r.pipeline, &r.d.desc, &c->st));
    CTS_U64(c, y.size, SAXPY_BYTES);
    CTS_U64(c, z.size, SAXPY_SUMS);
    if (i == 0) first = y.data;
    CTS_CHECK(c, y.data == first);
    memcpy(r.got.y, y.data, SAXPY_BYTES);
    memcpy(r.got.z, z.data, SAXPY_SUMS);
    same(c, &r, "slots");
    memset(y.data, 0xff, SAXPY_BYTES);
    memset(z.data, 0xff, SAXPY_SUMS);
  }
  launched(c, &r, 3);
  CTS_U64(c, stats.filled, 6);
  CTS_U64(c, stats.reused, 4);
  CTS_U64(c, stats.appended, 2);
  vyre_host_buffer_deinit(&y);
  vyre_host_buffer_deinit(&z);
}

/* Each dispatch has its own data and must match the reference run. */
enum { ITEMS = 20 };

typedef struct batch {
  saxpy_data d[ITEMS];
  saxpy_result got[ITEMS];
  vyre_dispatch_desc items[ITEMS];
  vyre_code results[ITEMS];
} batch;

static batch *make_batch(cts *c) {
  batch *b = cts_memory(c, sizeof *b);
  for (int i = 0; i < ITEMS; i++) {
    saxpy_make(&b->d[i], c->seed + (uint64_t)i, &b->got[i]);
    b->items[i] = b->d[i].desc;
    b->items[i].result = &b->results[i];
  }
  return b;
}

static void check_batch(cts *c, const batch *b, const char *form) {
  for (int i = 0; i < ITEMS; i++) {
    saxpy_result want = saxpy_expect(&b->d[i], 1);
    CTS_CHECK(c, b->results[i] == VYRE_OK);
    CTS_SAME(c, form, &b->got[i], &want, sizeof want);
  }
}

static void batch_waits(cts *c) {
  rig r;
  begin(c, &r);
  batch *b = make_batch(c);
  CTS_OK(c, vyre_submit(r.pipeline, b->items, ITEMS, NULL, &c->st));
  launched(c, &r, ITEMS);
  check_batch(c, b, "a batch");
}

static void batch_fence(cts *c) {
  rig r;
  begin(c, &r);
  batch *b = make_batch(c);
  vyre_fence *fence;
  CTS_OK(c, vyre_submit(r.pipeline, b->items, ITEMS, &fence, &c->st));
  /* The descriptors have been read and the inputs copied, so both may change.
   */
  memset(b->items, 0xff, sizeof b->items);
  saxpy_data *kept = cts_memory(c, sizeof b->d);
  memcpy(kept, b->d, sizeof b->d);
  for (int i = 0; i < ITEMS; i++) {
    memset(b->d[i].x, 0xff, sizeof b->d[i].x);
    memset(b->d[i].y, 0xff, sizeof b->d[i].y);
    memset(b->d[i].in, 0xff, sizeof b->d[i].in);
    memset(b->d[i].out, 0xff, sizeof b->d[i].out);
    b->d[i].a = 0;
  }
  CTS_OK(c, vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &c->st));
  vyre_fence_release(fence);
  launched(c, &r, ITEMS);
  memcpy(b->d, kept, sizeof b->d);
  check_batch(c, b, "a batch with a fence");
}

/* Doubles x into y, which starts with zeros: a batch of such dispatches can be
 * one submission. */
static const char double_text[] =
    "kernel twice workgroup(8) over(y)\n"
    "buffer x : read u32[] @0;\n"
    "buffer y : write u32[] @1 output;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = 2 * x[i]; }\n";

enum { DOUBLES = 3, DOUBLE_WORDS = 9 };

typedef struct doubles {
  uint32_t x[DOUBLES][DOUBLE_WORDS], y[DOUBLES][DOUBLE_WORDS];
  vyre_input in[DOUBLES];
  vyre_output out[DOUBLES];
  vyre_dispatch_desc items[DOUBLES];
} doubles;

static void make_doubles(doubles *d) {
  memset(d, 0, sizeof *d);
  for (int i = 0; i < DOUBLES; i++) {
    d->in[i] = vyre_input_bytes(d->x[i], sizeof d->x[i]);
    d->out[i] = vyre_output_bytes(d->y[i], sizeof d->y[i]);
    d->items[i] = (vyre_dispatch_desc){.inputs = &d->in[i],
                                       .input_count = 1,
                                       .outputs = &d->out[i],
                                       .output_count = 1};
  }
}

static void set_doubles(doubles *d, uint32_t first) {
  for (uint32_t i = 0; i < DOUBLES; i++) {
    for (uint32_t k = 0; k < DOUBLE_WORDS; k++) d->x[i][k] = first + 10 * i + k;
    memset(d->y[i], 0xa5, sizeof d->y[i]);
  }
}

/* Checks the first @p count items after set_doubles; the others did not run. */
static void check_doubles(cts *c, const doubles *d, uint32_t first,
                          uint32_t count) {
  for (uint32_t i = 0; i < DOUBLES; i++) {
    for (uint32_t k = 0; k < DOUBLE_WORDS; k++) {
      uint32_t want = i < count ? 2 * (first + 10 * i + k) : 0xa5a5a5a5;
      CTS_U64(c, d->y[i][k], want);
    }
  }
}

/* Submits the first items of a batch that was submitted before. */
static void batch_prefix(cts *c) {
  static const uint32_t counts[] = {3, 3, 3, 2, 3, 3, 2, 2, 3};
  vyre_pipeline *pipeline = cts_kernel(c, double_text);
  doubles d;
  uint64_t launches = 0;
  make_doubles(&d);
  for (uint32_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    set_doubles(&d, 100 * i);
    CTS_OK(c, vyre_submit(pipeline, d.items, counts[i], NULL, &c->st));
    check_doubles(c, &d, 100 * i, counts[i]);
    CTS_LAUNCHED(c, launches += counts[i]);
  }
}

static const char slow_text[] =
    "kernel slow workgroup(1) over(n)\n"
    "buffer n : read_write u32[] @0;\n"
    "{ let i = global_id.x; var v = n[i];\n"
    "  while (v < 20000) v += 1;\n"
    "  n[i] = v; }\n";

/* Changes the inputs of a batch between its submission and its execution. The
 * same batch ran before, without a copy of its inputs. */
static void batch_fence_again(cts *c) {
  vyre_pipeline *pipeline = cts_kernel(c, double_text);
  vyre_pipeline *slow = cts_kernel(c, slow_text);
  uint32_t n[20] = {0};
  const vyre_input in = vyre_input_bytes(n, sizeof n);
  const vyre_output out = vyre_output_bytes(n, sizeof n);
  const vyre_dispatch_desc first = {
      .inputs = &in, .input_count = 1, .outputs = &out, .output_count = 1};
  vyre_fence *fences[2];
  doubles d;
  make_doubles(&d);
  for (uint32_t i = 0; i < 3; i++) {
    set_doubles(&d, i);
    CTS_OK(c, vyre_submit(pipeline, d.items, DOUBLES, NULL, &c->st));
    check_doubles(c, &d, i, DOUBLES);
  }
  set_doubles(&d, 50);
  CTS_OK(c, vyre_submit(slow, &first, 1, &fences[0], &c->st));
  CTS_OK(c, vyre_submit(pipeline, d.items, DOUBLES, &fences[1], &c->st));
  memset(d.x, 0xff, sizeof d.x);
  for (int i = 0; i < 2; i++) {
    CTS_OK(c, vyre_fence_wait(fences[i], VYRE_WAIT_FOREVER, &c->st));
    vyre_fence_release(fences[i]);
  }
  check_doubles(c, &d, 50, DOUBLES);
  /* The copies are gone: the next batch binds the caller's memory again. */
  set_doubles(&d, 70);
  CTS_OK(c, vyre_submit(pipeline, d.items, DOUBLES, NULL, &c->st));
  check_doubles(c, &d, 70, DOUBLES);
  CTS_LAUNCHED(c, 5 * DOUBLES + 1);
}

static void batch_borrowed(cts *c) {
  rig r;
  begin(c, &r);
  batch *b = make_batch(c);
  vyre_fence *fence;
  for (int i = 0; i < ITEMS; i++) b->items[i].is_borrowed = true;
  CTS_OK(c, vyre_submit(r.pipeline, b->items, ITEMS, &fence, &c->st));
  CTS_OK(c, vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &c->st));
  vyre_fence_release(fence);
  launched(c, &r, ITEMS);
  check_batch(c, b, "a batch of borrowed inputs");
}

static void fence(cts *c) {
  rig r;
  begin(c, &r);
  vyre_fence *done;
  CTS_OK(c, vyre_submit(r.pipeline, &r.d.desc, 1, &done, &c->st));
  CTS_OK(c, vyre_fence_wait(done, VYRE_WAIT_FOREVER, &c->st));
  CTS_CHECK(c, vyre_fence_is_done(done));
  vyre_fence_release(done);
  launched(c, &r, 1);
  same(c, &r, "vyre_submit with a fence");
}

/* Runs a batch whose items pass data through a device buffer. */
static void batch_chain(cts *c) {
  rig r;
  begin(c, &r);
  vyre_buffer y;
  enum { STEPS = 5 };
  vyre_dispatch_desc items[STEPS];
  saxpy_result want = saxpy_expect(&r.d, STEPS);
  uint32_t z[STEPS][4];
  vyre_output out[STEPS][2];
  CTS_OK(c, vyre_buffer_create(c->device, SAXPY_BYTES, &y, &c->st));
  CTS_OK(c, vyre_buffer_upload(c->device, y, 0, r.d.y, SAXPY_BYTES, &c->st));
  r.d.in[1] = vyre_input_buffer(y);
  for (int i = 0; i < STEPS; i++) {
    items[i] = r.d.desc;
    items[i].outputs = out[i];
    out[i][0] = vyre_output_buffer(y);
    out[i][1] = vyre_output_bytes(z[i], SAXPY_SUMS);
  }
  CTS_OK(c, vyre_submit(r.pipeline, items, STEPS, NULL, &c->st));
  launched(c, &r, STEPS);
  CTS_OK(c,
         vyre_buffer_download(c->device, y, 0, r.got.y, SAXPY_BYTES, &c->st));
  CTS_SAME(c, "a chain in a batch", r.got.y, want.y, SAXPY_BYTES);
  CTS_OK(c, vyre_buffer_destroy(c->device, y, &c->st));
}

static void iterations(cts *c) {
  rig r;
  begin(c, &r);
  r.want = saxpy_expect(&r.d, 6);
  r.d.desc.has_repeat_count = true;
  r.d.desc.repeat_count = 6;
  CTS_OK(c, vyre_dispatch(r.pipeline, &r.d.desc, &c->st));
  launched(c, &r, 6);
  same(c, &r, "six iterations");
}

static void variants(cts *c) {
  static const uint32_t sizes[] = {1, 3, 32, 64};
  rig r;
  begin(c, &r);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    vyre_compile_options other = {.workgroup = {sizes[i]}};
    CTS_OK(c, vyre_pipeline_add_variant(r.pipeline, &other, &c->st));
    r.d.desc.variant = &other;
    uint32_t grid[3];
    CTS_OK(c, vyre_dispatch_grid(r.pipeline, &r.d.desc, grid, &c->st));
    CTS_U64(c, grid[0], (SAXPY_COUNT + sizes[i] - 1) / sizes[i]);
    memset(&r.got, 0xa5, sizeof r.got);
    CTS_OK(c, vyre_dispatch(r.pipeline, &r.d.desc, &c->st));
    same(c, &r, "a variant");
  }
  launched(c, &r, sizeof sizes / sizeof *sizes);
}

static void compile_async(cts *c) {
  rig r;
  begin(c, &r);
  vyre_fence *done;
  CTS_OK(c, vyre_pipeline_compile_async(c->device, r.program, NULL, &done,
                                        &c->st));
  CTS_OK(c, vyre_fence_wait(done, VYRE_WAIT_FOREVER, &c->st));
  vyre_pipeline *made = vyre_fence_pipeline(done);
  CTS_CHECK(c, made != NULL);
  CTS_CHECK(c,
            strcmp(vyre_pipeline_id(made), vyre_pipeline_id(r.pipeline)) == 0);
  CTS_OK(c, vyre_dispatch(made, &r.d.desc, &c->st));
  vyre_pipeline_release(made);
  vyre_fence_release(done);
  launched(c, &r, 1);
  same(c, &r, "a pipeline that was compiled in the background");
}

static const cts_entry entries[] = {
    {"device_dispatch", device_dispatch},
    {"dispatch", dispatch},
    {"submit_one", submit_one},
    {"submit_none", submit_none},
    {"in_place", in_place},
    {"unaligned", unaligned},
    {"host_memory", host_memory},
    {"slots", slots},
    {"batch", batch_waits},
    {"batch_fence", batch_fence},
    {"batch_prefix", batch_prefix},
    {"batch_fence_again", batch_fence_again},
    {"batch_borrowed", batch_borrowed},
    {"fence", fence},
    {"batch_chain", batch_chain},
    {"iterations", iterations},
    {"variants", variants},
    {"compile_async", compile_async},
};

CTS_LIST(forms, "dispatch forms");
