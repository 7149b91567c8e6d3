/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Memory, launches and checks of workloads. */
#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

enum { PAGE = 4096 };

static void *allocate(const public_workload *w, size_t size) {
  size_t room = (size + PAGE) / PAGE * PAGE;
  void *data = aligned_alloc(PAGE, room);
  if (!data) bench_fail(w->name, "out of memory");
  return memset(data, 0, room); /* maps the pages before anything is timed */
}

void *public_add(public_workload *w, size_t size, public_check check) {
  if (w->buffer_count == PUBLIC_BUFFERS)
    bench_fail(w->name, "has no buffer left");
  public_buffer *b = &w->buffers[w->buffer_count++];
  *b = (public_buffer){.data = allocate(w, size), .size = size, .check = check};
  return b->data;
}

void *public_add_in_place(public_workload *w, size_t size, public_check check) {
  void *data = public_add(w, size, check);
  w->buffers[w->buffer_count - 1].is_reset = true;
  return data;
}

void public_fill_floats(float *to, size_t count, float low, float high,
                        uint64_t seed) {
  uint64_t state = 88172645463325252u + seed;
  for (size_t i = 0; i < count; i++) {
    float unit = (float)(bench_random(&state) >> 40) * 0x1p-24f;
    to[i] = low + (high - low) * unit;
  }
}

void public_fill_words(uint32_t *to, size_t count, uint32_t below,
                       uint64_t seed) {
  uint64_t state = 88172645463325252u + seed;
  for (size_t i = 0; i < count; i++) {
    to[i] = (uint32_t)((bench_random(&state) >> 32) * below >> 32);
  }
}

float *public_add_floats(public_workload *w, size_t count, float low,
                         float high) {
  float *data = public_add(w, count * sizeof *data, PUBLIC_INPUT);
  public_fill_floats(data, count, low, high, (uint64_t)w->buffer_count);
  return data;
}

uint32_t *public_add_words(public_workload *w, size_t count, uint32_t below) {
  uint32_t *data = public_add(w, count * sizeof *data, PUBLIC_INPUT);
  public_fill_words(data, count, below, (uint64_t)w->buffer_count);
  return data;
}

public_launch *public_add_launch(public_workload *w, const char *kernel,
                                 int buffers, uint32_t x, uint32_t y,
                                 uint32_t z) {
  if (w->launch_count == w->launch_capacity) {
    int capacity = w->launch_capacity ? 2 * w->launch_capacity : 8;
    public_launch *more = realloc(w->launches, (size_t)capacity * sizeof *more);
    if (!more) bench_fail(w->name, "out of memory");
    w->launches = more;
    w->launch_capacity = capacity;
  }
  public_launch *made = &w->launches[w->launch_count++];
  *made = (public_launch){
      .kernel = kernel, .grid = {x, y, z}, .buffer_count = buffers};
  for (int i = 0; i < PUBLIC_BUFFERS; i++) made->buffers[i] = i;
  return made;
}

void public_add_uint(public_launch *l, uint32_t value) {
  l->uniforms[l->uniform_count++].u = value;
}

void public_add_float(public_launch *l, float value) {
  l->uniforms[l->uniform_count++].f = value;
}

void public_numbers(public_workload *w, int a, int b, int c) {
  w->numbers[0] = a;
  w->numbers[1] = b;
  w->numbers[2] = c;
}

uint32_t public_groups(size_t items, uint32_t size) {
  return (uint32_t)((items + size - 1) / size);
}

void public_workload_make(public_workload *w, const public_entry *entry) {
  *w = (public_workload){.name = entry->name,
                         .file = entry->file,
                         .twin = entry->twin,
                         .tolerance = entry->tolerance};
  entry->make(w);
  public_workload_keep(w);
}

void public_workload_keep(public_workload *w) {
  for (int i = 0; i < w->buffer_count; i++) {
    public_buffer *b = &w->buffers[i];
    if (b->is_reset) b->first = memcpy(allocate(w, b->size), b->data, b->size);
  }
}

void public_workload_free(public_workload *w) {
  for (int i = 0; i < w->buffer_count; i++) {
    free(w->buffers[i].data);
    free(w->buffers[i].first);
    free(w->buffers[i].want);
  }
  free(w->launches);
}

void public_workload_reset(public_workload *w) {
  for (int i = 0; i < w->buffer_count; i++) {
    public_buffer *b = &w->buffers[i];
    if (b->is_reset) memcpy(b->data, b->first, b->size);
  }
}

/* A rival that computes nothing must not pass with the results of another. */
void public_workload_clear(public_workload *w) {
  for (int i = 0; i < w->buffer_count; i++) {
    public_buffer *b = &w->buffers[i];
    if (b->check != PUBLIC_INPUT && !b->is_reset) memset(b->data, 0, b->size);
  }
  public_workload_reset(w);
}

void public_workload_expect(public_workload *w) {
  for (int i = 0; i < w->buffer_count; i++) {
    public_buffer *b = &w->buffers[i];
    if (b->check == PUBLIC_INPUT) continue;
    if (!b->want) b->want = allocate(w, b->size);
    memcpy(b->want, b->data, b->size);
  }
}

/* --- checks ----------------------------------------------------------------*/

static char problem[160];

static const char *differ(int buffer, size_t at, double got, double want) {
  (void)snprintf(problem, sizeof problem,
                 "element %zu of buffer %d is %.9g, not %.9g", at, buffer, got,
                 want);
  return problem;
}

static const char *check_floats(const public_workload *w, int index) {
  const public_buffer *b = &w->buffers[index];
  const float *got = b->data, *want = b->want;
  size_t count = b->size / sizeof *got;
  double squares = 0;
  for (size_t i = 0; i < count; i++) {
    squares += (double)want[i] * (double)want[i];
  }
  double typical = sqrt(squares / (double)count);
  for (size_t i = 0; i < count; i++) {
    double limit = w->tolerance * (fabs((double)want[i]) + typical);
    bool is_near = fabs((double)got[i] - (double)want[i]) <= limit;
    if (!is_near) return differ(index, i, (double)got[i], (double)want[i]);
  }
  return NULL;
}

/* Another rounding moves the edges of objects. */
static const char *check_pixels(const public_buffer *b, int index) {
  const uint8_t *got = b->data, *want = b->want;
  size_t wrong = 0, last = 0;
  for (size_t i = 0; i < b->size; i++) {
    if (abs(got[i] - want[i]) <= 1) continue;
    wrong++;
    last = i;
  }
  if (wrong <= b->size / 100) return NULL;
  return differ(index, last, got[last], want[last]);
}

static const char *check_bits(const public_buffer *b, int index) {
  const uint8_t *got = b->data, *want = b->want;
  size_t at = 0;
  while (at < b->size && got[at] == want[at]) at++;
  if (at == b->size) return NULL;
  (void)snprintf(problem, sizeof problem,
                 "byte %zu of buffer %d is 0x%02x, not 0x%02x", at, index,
                 got[at], want[at]);
  return problem;
}

static int compare_words(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* Leaves the buffer and the expected result sorted. */
static const char *check_set(const public_buffer *b, int index) {
  qsort(b->data, b->size / 4, 4, compare_words);
  qsort(b->want, b->size / 4, 4, compare_words);
  return check_bits(b, index);
}

const char *public_workload_check(const public_workload *w, bool is_exact) {
  for (int i = 0; i < w->buffer_count; i++) {
    const public_buffer *b = &w->buffers[i];
    const char *found = NULL;
    if (b->check == PUBLIC_INPUT) continue;
    if (b->check == PUBLIC_SET) {
      found = check_set(b, i);
    } else if (is_exact || b->check == PUBLIC_BITS) {
      found = check_bits(b, i);
    } else if (b->check == PUBLIC_FLOATS) {
      found = check_floats(w, i);
    } else {
      found = check_pixels(b, i);
    }
    if (found) return found;
  }
  return NULL;
}
