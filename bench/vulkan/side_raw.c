/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs workloads with hand-written Vulkan and GLSL. Commands are recorded for
 * every launch, as an uncached dispatch of vyre does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "side.h"

enum { PASSES = 3, MAX_GROUPS = 65535 };

typedef struct raw_side {
  raw *r;
  cpu_workload *w;
  raw_kernel *kernel;
  raw_buffer *buffers[CPU_BUFFERS], *partial[PASSES];
  raw_set *sets[PASSES];
  raw_dispatch passes[PASSES];
  size_t pass_count;
  raw_list *list;
} raw_side;

/* Splits a long x axis into rows, because a device may have a limit of 65,535
 * workgroups per axis. */
static void set_grid(raw_dispatch *d, const uint32_t *grid) {
  memcpy(d->grid, grid, sizeof d->grid);
  if (grid[0] <= MAX_GROUPS) return;
  d->grid[1] = (grid[0] + MAX_GROUPS - 1) / MAX_GROUPS;
  d->grid[0] = (grid[0] + d->grid[1] - 1) / d->grid[1];
}

static void bind_single(raw_side *s) {
  const cpu_workload *w = s->w;
  const cpu_shape *shape = &cpu_shapes[w->kernel];
  raw_range ranges[CPU_BUFFERS];
  raw_dispatch *d = &s->passes[0];
  *d = (raw_dispatch){.kernel = s->kernel};
  for (uint32_t i = 0; i < shape->buffers; i++) {
    ranges[i] = (raw_range){.buffer = s->buffers[i]};
  }
  for (uint32_t i = 0; i < shape->scalars; i++) {
    d->words[i] = w->args.scalars[i].u;
  }
  for (uint32_t i = 0; i < w->length_count; i++) {
    d->words[shape->scalars + i] = w->lengths[i].u;
  }
  d->set = s->sets[0] = raw_set_create(s->kernel, ranges);
  set_grid(d, w->grid);
  s->pass_count = 1;
}

static void bind_reduce(raw_side *s) {
  uint32_t left = (uint32_t)(s->w->args.buffers[0].size / 4);
  raw_buffer *from = s->buffers[0];
  s->pass_count = 0;
  while (left > 1) {
    size_t pass = s->pass_count++;
    uint32_t sums = (left + 255) / 256, grid[3] = {sums, 1, 1};
    if (pass == PASSES) bench_fail(s->w->name, "needs too many passes");
    if (sums > 1) s->partial[pass] = raw_buffer_create(s->r, (size_t)sums * 4);
    raw_buffer *to = sums > 1 ? s->partial[pass] : s->buffers[1];
    const raw_range ranges[2] = {{.buffer = from}, {.buffer = to}};
    s->sets[pass] = raw_set_create(s->kernel, ranges);
    s->passes[pass] = (raw_dispatch){.kernel = s->kernel,
                                     .set = s->sets[pass],
                                     .words = {left},
                                     .waits = pass > 0};
    set_grid(&s->passes[pass], grid);
    from = to;
    left = sums;
  }
}

static void upload(void *self, uint32_t mask) {
  const raw_side *s = self;
  for (uint32_t i = 0; i < cpu_shapes[s->w->kernel].buffers; i++) {
    cpu_buffer b = s->w->args.buffers[i];
    if (!(mask >> i & 1)) continue;
    memcpy(raw_buffer_bytes(s->buffers[i]), b.data, b.size);
  }
}

static bool bind(void *self, cpu_workload *w, bool is_plain) {
  raw_side *s = self;
  const cpu_shape *shape = &cpu_shapes[w->kernel];
  char name[64];
  uint32_t words = shape->scalars + w->length_count;
  s->w = w;
  (void)snprintf(name, sizeof name, "%s%s", shape->file,
                 is_plain ? "_plain" : "");
  if (w->kernel == CPU_KERNEL_reduce) words = 1;
  s->kernel = raw_kernel_create(s->r, name, shape->buffers, words);
  if (!s->kernel) return false;
  for (uint32_t i = 0; i < shape->buffers; i++) {
    s->buffers[i] = raw_buffer_create(s->r, w->args.buffers[i].size);
  }
  if (w->kernel == CPU_KERNEL_reduce) {
    bind_reduce(s);
  } else {
    bind_single(s);
  }
  s->list = raw_list_create(s->r);
  upload(s, UINT32_MAX);
  return true;
}

static void launch(void *self) {
  const raw_side *s = self;
  raw_record(s->list, s->passes, s->pass_count);
  raw_run(s->list);
}

static void fetch(void *self) {
  const raw_side *s = self;
  const cpu_shape *shape = &cpu_shapes[s->w->kernel];
  for (uint32_t i = 0; i < shape->buffers; i++) {
    cpu_buffer b = s->w->args.buffers[i];
    if (!(shape->written >> i & 1)) continue;
    memcpy(b.data, raw_buffer_bytes(s->buffers[i]), b.size);
  }
}

static void unbind(void *self) {
  raw_side *s = self;
  raw *r = s->r;
  raw_list_free(s->list);
  for (int i = 0; i < PASSES; i++) {
    raw_set_free(s->sets[i]);
    raw_buffer_free(s->partial[i]);
  }
  for (int i = 0; i < CPU_BUFFERS; i++) raw_buffer_free(s->buffers[i]);
  raw_kernel_free(s->kernel);
  *s = (raw_side){.r = r};
}

vulkan_side vulkan_side_raw(raw *r, const char *name) {
  raw_side *s = calloc(1, sizeof *s);
  if (!s) bench_fail(name, "out of memory");
  s->r = r;
  return (vulkan_side){name, s, bind, upload, launch, fetch, unbind};
}
