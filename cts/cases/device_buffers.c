/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: device buffers. */
#include <stdio.h>

#include "cts/harness/saxpy.h"

/* Uploads and downloads whole buffers, ranges and many ranges at once; no
 * kernel runs. */
static void transfers(cts *c) {
  enum { SIZE = 1003 };
  unsigned char *in = cts_memory(c, SIZE), *out = cts_memory(c, SIZE);
  uint64_t state = c->seed, size;
  vyre_buffer a, b;
  for (int i = 0; i < SIZE; i++) in[i] = (unsigned char)cts_random(&state);
  CTS_OK(c, vyre_buffer_create(c->device, SIZE, &a, &c->st));
  CTS_OK(c, vyre_buffer_create(c->device, SIZE, &b, &c->st));
  CTS_OK(c, vyre_buffer_size(c->device, a, &size, &c->st));
  CTS_U64(c, size, SIZE);
  memset(out, 7, SIZE);
  CTS_OK(c, vyre_buffer_download(c->device, a, 0, out, SIZE, &c->st));
  /* New buffers are zeroed. */
  for (int i = 0; i < SIZE; i++) CTS_CHECK(c, out[i] == 0);
  CTS_OK(c, vyre_buffer_upload(c->device, a, 0, in, SIZE, &c->st));
  CTS_OK(c, vyre_buffer_upload(c->device, a, 501, in, 2, &c->st));
  CTS_OK(c, vyre_buffer_upload(c->device, a, SIZE, NULL, 0, &c->st));
  CTS_OK(c, vyre_buffer_download(c->device, a, 499, out, 6, &c->st));
  unsigned char part[6] = {in[499], in[500], in[0], in[1], in[503], in[504]};
  CTS_SAME(c, "a part", out, part, 6);
  vyre_transfer up[] = {{a, 0, in, SIZE}, {b, 1, in + 1, SIZE - 1}};
  CTS_OK(c, vyre_buffer_upload_many(c->device, up, 2, &c->st));
  unsigned char *second = cts_memory(c, SIZE);
  vyre_transfer down[] = {{a, 0, out, SIZE}, {b, 0, second, SIZE}};
  CTS_OK(c, vyre_buffer_download_many(c->device, down, 2, &c->st));
  CTS_SAME(c, "many, the first", out, in, SIZE);
  CTS_CHECK(c, second[0] == 0);
  CTS_SAME(c, "many, the second", second + 1, in + 1, SIZE - 1);
  vyre_counters counters;
  vyre_counters_read(c->device, &counters);
  CTS_U64(c, counters.live_device_buffers, 2);
  CTS_U64(c, counters.live_device_buffer_bytes, UINT64_C(2) * SIZE);
  CTS_OK(c, vyre_buffer_destroy(c->device, a, &c->st));
  CTS_OK(c, vyre_buffer_destroy(c->device, b, &c->st));
  vyre_counters_read(c->device, &counters);
  CTS_U64(c, counters.live_device_buffers, 0);
  CTS_U64(c, counters.live_device_buffer_bytes, 0);
  CTS_LAUNCHED(c, 0);
}

static void empty(cts *c) {
  vyre_buffer none;
  uint64_t size = 9;
  CTS_OK(c, vyre_buffer_create(c->device, 0, &none, &c->st));
  CTS_OK(c, vyre_buffer_size(c->device, none, &size, &c->st));
  CTS_U64(c, size, 0);
  CTS_OK(c, vyre_buffer_upload(c->device, none, 0, NULL, 0, &c->st));
  CTS_OK(c, vyre_buffer_destroy(c->device, none, &c->st));
  CTS_LAUNCHED(c, 0);
}

/* A reused allocation is a different buffer and starts as zeros. */
static void used_again(cts *c) {
  vyre_buffer first, second;
  uint32_t word = 0xffffffff;
  CTS_OK(c, vyre_buffer_create(c->device, 4, &first, &c->st));
  CTS_OK(c, vyre_buffer_upload(c->device, first, 0, &word, 4, &c->st));
  CTS_OK(c, vyre_buffer_destroy(c->device, first, &c->st));
  CTS_OK(c, vyre_buffer_create(c->device, 4, &second, &c->st));
  CTS_CHECK(c, first.id != second.id);
  CTS_OK(c, vyre_buffer_download(c->device, second, 0, &word, 4, &c->st));
  CTS_U64(c, word, 0);
  CTS_FAILS(c, vyre_buffer_download(c->device, first, 0, &word, 4, &c->st),
            VYRE_INVALID_ARGUMENT, VYRE_KIND_STALE_HANDLE);
  CTS_OK(c, vyre_buffer_destroy(c->device, second, &c->st));
  CTS_LAUNCHED(c, 0);
}

static void make(cts *c, vyre_buffer *out, const void *data, uint64_t offset,
                 uint64_t more) {
  CTS_OK(c, vyre_buffer_create(c->device, SAXPY_BYTES + offset + more, out,
                               &c->st));
  CTS_OK(c, vyre_buffer_upload(c->device, *out, offset, data, SAXPY_BYTES,
                               &c->st));
}

/* Runs one mix of host memory and device buffers. Bits of @p mix: 0: input x is a
 * device buffer; 1: input y is; 2-3: output y is 0 host memory, 1 a device buffer,
 * 2 in place, 3 a new buffer; 4: output z is a device buffer. Skips "in place"
 * without a device buffer as input. */
static void mixture(cts *c, unsigned mix, vyre_pipeline *pipeline) {
  saxpy_data d;
  saxpy_result got;
  saxpy_make(&d, c->seed + mix, &got);
  saxpy_result want = saxpy_expect(&d, 1);
  vyre_buffer x = {0}, y = {0}, to = {0}, z = {0};
  unsigned where = mix >> 2 & 3;
  /* In place needs a device buffer as input. */
  if (where == 2 && !(mix & 2)) return;
  if (mix & 1) {
    make(c, &x, d.x, 8, 4);
    d.in[0] = (vyre_input){.buffer = x, .offset = 8, .size = SAXPY_BYTES};
  }
  if (mix & 2) {
    make(c, &y, d.y, 0, 0);
    d.in[1] = vyre_input_buffer(y);
  }
  if (where == 1) {
    uint32_t old[SAXPY_COUNT];
    memset(old, 0xee, sizeof old); /* its contents must come from the input */
    make(c, &to, old, 0, 0);
    d.out[0] = vyre_output_buffer(to);
  } else if (where == 2) {
    d.out[0] = (vyre_output){.data = NULL}; /* in place */
  } else if (where == 3) {
    d.out[0] = vyre_output_new_buffer(&to, 0);
  }
  if (mix & 16) {
    CTS_OK(c, vyre_buffer_create(c->device, 100, &z, &c->st));
    unsigned char ones[100];
    memset(ones, 0xff, sizeof ones);
    CTS_OK(c, vyre_buffer_upload(c->device, z, 0, ones, 100, &c->st));
    d.out[1] = (vyre_output){.buffer = z, .offset = 40};
  }
  CTS_OK(c, vyre_dispatch(pipeline, &d.desc, &c->st));
  vyre_buffer from = where == 2 ? y : to;
  if (where > 0) {
    CTS_OK(c, vyre_buffer_download(c->device, from, 0, got.y, SAXPY_BYTES,
                                   &c->st));
  }
  if (mix & 16) {
    unsigned char all[100];
    CTS_OK(c, vyre_buffer_download(c->device, z, 0, all, 100, &c->st));
    memcpy(got.z, all + 40, SAXPY_SUMS);
    for (int i = 0; i < 100; i++) { /* only the bound range is written */
      CTS_CHECK(c, (i >= 40 && i < 56) || all[i] == 0xff);
    }
  }
  CTS_SAME(c, "a mixture", &got, &want, sizeof want);
  if (where == 0 && mix & 2) { /* updated in place, and read back */
    uint32_t state[SAXPY_COUNT];
    CTS_OK(c,
           vyre_buffer_download(c->device, y, 0, state, SAXPY_BYTES, &c->st));
    CTS_SAME(c, "the resident input_output", state, want.y, SAXPY_BYTES);
  }
  if (where & 1 && mix & 2) { /* the input is unchanged */
    uint32_t still[SAXPY_COUNT];
    CTS_OK(c,
           vyre_buffer_download(c->device, y, 0, still, SAXPY_BYTES, &c->st));
    CTS_SAME(c, "the resident input", still, d.y, SAXPY_BYTES);
  }
  vyre_buffer all[] = {x, y, to, z};
  for (int i = 0; i < 4; i++) {
    if (all[i].owner) CTS_OK(c, vyre_buffer_destroy(c->device, all[i], &c->st));
  }
}

static void mixtures(cts *c) {
  vyre_pipeline *pipeline = cts_kernel(c, saxpy_text);
  unsigned count = 0;
  for (unsigned mix = 0; mix < 32; mix++) {
    mixture(c, mix, pipeline);
    count += !((mix >> 2 & 3) == 2 && !(mix & 2));
  }
  CTS_LAUNCHED(c, count);
}

/* One pipeline creates a buffer that another one reads. */
static void kept_feeds_the_next(cts *c) {
  saxpy_data d;
  saxpy_result got;
  saxpy_make(&d, c->seed, &got);
  saxpy_result want = saxpy_expect(&d, 1);
  vyre_buffer y;
  d.out[0] = vyre_output_new_buffer(&y, 0);
  CTS_OK(c, vyre_dispatch(cts_kernel(c, saxpy_text), &d.desc, &c->st));
  vyre_pipeline *next =
      cts_kernel(c,
                 "kernel twice workgroup(16) over(r)\n"
                 "buffer a : read u32[] @0;\n"
                 "buffer r : write u32[] @1;\n"
                 "{\n    r[global_id.x] = a[global_id.x] * 2;\n}\n");
  vyre_input in = vyre_input_buffer(y);
  vyre_output out = vyre_output_bytes(got.y, SAXPY_BYTES);
  vyre_dispatch_desc desc = {
      .inputs = &in, .input_count = 1, .outputs = &out, .output_count = 1};
  CTS_OK(c, vyre_dispatch(next, &desc, &c->st));
  CTS_LAUNCHED(c, 2);
  for (int i = 0; i < SAXPY_COUNT; i++) want.y[i] *= 2;
  CTS_SAME(c, "the second pipeline", got.y, want.y, SAXPY_BYTES);
  CTS_OK(c, vyre_buffer_destroy(c->device, y, &c->st));
}

/* Imports host memory as a buffer: kernels and the host see the same bytes. */
static void imported(cts *c) {
  saxpy_data d;
  saxpy_result got;
  vyre_buffer y = {0};
  void *memory;
  saxpy_make(&d, c->seed, &got);
  saxpy_result want = saxpy_expect(&d, 2);
  CTS_OK(c, vyre_host_alloc(c->device, SAXPY_BYTES, &memory, &c->st));
  memcpy(memory, d.y, SAXPY_BYTES);
  vyre_code code =
      vyre_buffer_import(c->device, memory, SAXPY_BYTES, &y, &c->st);
  if (!c->caps->borrows_host_memory && !c->caps->imports_host_memory) {
    CTS_FAILS(c, code, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
    cts_lacks(c, "host-memory");
  }
  CTS_OK(c, code);
  vyre_pipeline *pipeline = cts_kernel(c, saxpy_text);
  d.in[1] = vyre_input_buffer(y);
  d.out[0] = vyre_output_buffer(y);
  for (int i = 0; i < 2; i++) {
    CTS_OK(c, vyre_dispatch(pipeline, &d.desc, &c->st));
  }
  CTS_LAUNCHED(c, 2);
  CTS_SAME(c, "imported memory", memory, want.y, SAXPY_BYTES);
  CTS_OK(c, vyre_buffer_destroy(c->device, y, &c->st));
  CTS_OK(c, vyre_buffer_import(c->device, memory, 0, &y, &c->st));
  CTS_OK(c, vyre_buffer_destroy(c->device, y, &c->st));
  vyre_host_free(c->device, memory, SAXPY_BYTES);
}

/* Destroys a buffer while a dispatch uses it: the handle is invalid, the work
 * continues. */
static void freed_in_use(cts *c) {
  saxpy_data d;
  saxpy_result got;
  vyre_buffer x;
  vyre_fence *fence;
  saxpy_make(&d, c->seed, &got);
  saxpy_result want = saxpy_expect(&d, 1);
  make(c, &x, d.x, 0, 0);
  d.in[0] = vyre_input_buffer(x);
  vyre_pipeline *pipeline = cts_kernel(c, saxpy_text);
  CTS_OK(c, vyre_submit(pipeline, &d.desc, 1, &fence, &c->st));
  CTS_OK(c, vyre_buffer_destroy(c->device, x, &c->st));
  CTS_FAILS(c, vyre_buffer_destroy(c->device, x, &c->st), VYRE_INVALID_ARGUMENT,
            VYRE_KIND_STALE_HANDLE);
  CTS_OK(c, vyre_fence_wait(fence, VYRE_WAIT_FOREVER, &c->st));
  vyre_fence_release(fence);
  CTS_LAUNCHED(c, 1);
  CTS_SAME(c, "what was submitted", &got, &want, sizeof want);
}

static void many(cts *c) {
  enum { COUNT = 600 };
  vyre_buffer *all = cts_memory(c, COUNT * sizeof *all);
  for (uint32_t i = 0; i < COUNT; i++) {
    CTS_OK(c, vyre_buffer_create(c->device, 4, &all[i], &c->st));
    CTS_OK(c, vyre_buffer_upload(c->device, all[i], 0, &i, 4, &c->st));
  }
  for (uint32_t i = 0; i < COUNT; i += 2) {
    CTS_OK(c, vyre_buffer_destroy(c->device, all[i], &c->st));
  }
  for (uint32_t i = 1; i < COUNT; i += 2) {
    uint32_t got;
    CTS_OK(c, vyre_buffer_download(c->device, all[i], 0, &got, 4, &c->st));
    CTS_U64(c, got, i);
  }
  CTS_LAUNCHED(c, 0); /* closing the device frees the rest */
}

static const cts_entry entries[] = {
    {"transfers", transfers},
    {"empty", empty},
    {"used_again", used_again},
    {"mixtures", mixtures},
    {"kept_feeds_the_next", kept_feeds_the_next},
    {"imported", imported},
    {"freed_in_use", freed_in_use},
    {"many", many},
};

CTS_LIST(buffers, "device buffers");
