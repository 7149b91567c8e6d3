/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Suite cpu.threads: dispatches of 1,000 to 1,000,000 elements, one after the
 * other on the same memory, with one thread, with all threads, and in C with
 * OpenMP; then the same as recordings of many launches. All threads should
 * never be slower than one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vyre/vyre.h"

#include "bench.h"
#include "machine.h"
#include "rival.h"
#include "rounds.h"

static const char suite[] = "cpu.threads";

enum { ONE, ALL, OPENMP, RIVALS };
enum { ROUNDS = 21, RUN_ELEMENTS = 2000000, MOST_LAUNCHES = 500 };
enum { STENCIL_WIDTH = 100, MAX_BINDINGS = 4 };

static const uint32_t sizes[] = {1000,  2000,  5000,   10000,
                                 20000, 50000, 100000, 1000000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void must(vyre_code code, const vyre_status *st, const char *what) {
  if (code != VYRE_OK) bench_fail(what, st->message);
}

/* A kernel on a device, bound to memory of its own. */
typedef struct side {
  vyre_context *context;
  vyre_device *device;
  vyre_module *module;
  vyre_pipeline *pipeline;
  vyre_input inputs[MAX_BINDINGS];
  vyre_output output;
  vyre_dispatch_desc desc;
  vyre_recording *recording; /* of all launches; NULL: dispatches */
  const cpu_peer *peer;      /* not NULL: runs this instead */
  cpu_kernel kernel;
  cpu_args args;
  int launches;
} side;

static void open_side(side *s, const char *file, const char *threads) {
  const vyre_compile_options how = {.tier = VYRE_TIER_OPTIMISED};
  vyre_status st = {0};
  vyre_context_options options = {.cache_directory = "",
                                  .trace_file = "",
                                  .faults = "",
                                  .backend_options = threads};
  must(vyre_context_create(&options, &s->context, &st), &st, "context");
  must(vyre_device_open(s->context, "cpu", &s->device, &st), &st, "cpu");
  char *text = cpu_text(file, "vyre");
  must(vyre_module_parse(text, strlen(text), file, vyre_allocator_heap(),
                         &s->module, NULL, &st),
       &st, file);
  free(text);
  must(vyre_pipeline_compile(s->device, vyre_module_kernel(s->module, 0), &how,
                             &s->pipeline, NULL, &st),
       &st, file);
}

static void close_side(side *s) {
  vyre_pipeline_release(s->pipeline);
  vyre_module_release(s->module);
  vyre_device_release(s->device);
  vyre_context_release(s->context);
}

static void fill(side *s, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    ((float *)s->args.buffers[0].data)[i] = (float)(i % 97) * 0.25F;
    ((float *)s->args.buffers[1].data)[i] = 1;
  }
  /* Results stay the same, however many runs. */
  s->args.scalars[0].f = 0;
  if (s->kernel != CPU_KERNEL_stencil) return;
  s->args.scalars[0].u = STENCIL_WIDTH;
  s->args.scalars[1].u = count / STENCIL_WIDTH;
}

/* Records all launches of a run. */
static void record(side *s) {
  const cpu_shape *shape = &cpu_shapes[s->kernel];
  vyre_slot_range in[MAX_BINDINGS] = {{0}}, out;
  vyre_status st = {0};
  must(vyre_recording_create(s->device, &s->recording, &st), &st, "recording");
  for (uint32_t i = 0; i < shape->buffers + shape->scalars; i++) {
    bool is_buffer = i < shape->buffers;
    const vyre_slot_binding bound = {
        .data = is_buffer ? s->args.buffers[i].data
                          : (void *)&s->args.scalars[i - shape->buffers],
        .size = is_buffer ? s->args.buffers[i].size : sizeof(cpu_scalar)};
    must(vyre_recording_add_fixed_slot(s->recording, &bound, &in[i].slot, &st),
         &st, "slot");
  }
  out = in[1];
  const vyre_recorded_dispatch d = {
      .inputs = in,
      .input_count = shape->buffers + shape->scalars,
      .outputs = &out,
      .output_count = 1,
      .grid = {s->desc.grid[0], s->desc.grid[1], s->desc.grid[2]},
      .has_repeat_count = true,
      .repeat_count = (uint32_t)s->launches,
      .require_zero_copy = true};
  must(vyre_recording_add_dispatch(s->recording, s->pipeline, &d, &st), &st,
       "recording");
  must(vyre_recording_seal(s->recording, &st), &st, "seal");
}

/* Binds x and y, which have @p count elements; the sums go to y as well. */
static void bind_side(side *s, uint32_t count, bool is_recorded) {
  const cpu_shape *shape = &cpu_shapes[s->kernel];
  cpu_buffer *b = s->args.buffers;
  size_t size = (size_t)count * sizeof(float);
  bool is_sum = s->kernel == CPU_KERNEL_reduce;
  size_t out = is_sum ? (count + 255) / 256 * sizeof(float) : size;
  b[0] = (cpu_buffer){aligned_alloc(4096, (size + 4095) / 4096 * 4096), size};
  b[1] = (cpu_buffer){aligned_alloc(4096, (size + 4095) / 4096 * 4096), out};
  if (!b[0].data || !b[1].data) bench_fail(suite, "out of memory");
  fill(s, count);
  s->inputs[0] = vyre_input_bytes(b[0].data, size);
  s->inputs[1] = vyre_input_bytes(b[1].data, out);
  for (uint32_t i = 0; i < shape->scalars; i++) {
    s->inputs[2 + i] = vyre_input_bytes(&s->args.scalars[i], 4);
  }
  s->output = vyre_output_bytes(b[1].data, out);
  s->desc = (vyre_dispatch_desc){.inputs = s->inputs,
                                 .input_count = 2 + shape->scalars,
                                 .outputs = &s->output,
                                 .output_count = 1,
                                 .is_borrowed = true,
                                 .require_zero_copy = true};
  s->launches = RUN_ELEMENTS / (int)count;
  if (s->launches > MOST_LAUNCHES) s->launches = MOST_LAUNCHES;
  if (s->kernel == CPU_KERNEL_stencil) {
    s->desc.grid[0] = (STENCIL_WIDTH + 63) / 64;
    s->desc.grid[1] = (count / STENCIL_WIDTH + 3) / 4;
  }
  s->recording = NULL;
  if (is_recorded && s->pipeline) record(s);
}

static void unbind_side(side *s) {
  vyre_recording_release(s->recording);
  free(s->args.buffers[0].data);
  free(s->args.buffers[1].data);
}

static void run_side(void *self) {
  side *s = self;
  vyre_status st = {0};
  if (s->recording) {
    must(vyre_recording_replay(s->recording, NULL, NULL, &st), &st, "replay");
    return;
  }
  for (int i = 0; i < s->launches; i++) {
    if (s->peer) {
      s->peer->run[s->kernel](&s->args);
    } else if (vyre_dispatch(s->pipeline, &s->desc, &st) != VYRE_OK) {
      bench_fail(suite, st.message);
    }
  }
}

static void add_row(const char *kernel, uint32_t count, const cpu_entry *ours,
                    const cpu_entry *peer, int rounds, double us[RIVALS],
                    int rival) {
  char name[96];
  cpu_quartiles ratio = cpu_paired(ours, peer, rounds);
  (void)snprintf(name, sizeof name, "%s of %u, against %s", kernel, count,
                 peer->name);
  bench_row_add(&(bench_result){.suite = suite,
                                .name = name,
                                .unit = "us",
                                .value = us[ALL],
                                .best = us[ALL],
                                .peer = peer->name,
                                .peer_value = us[rival],
                                .peer_best = us[rival],
                                .ratio = ratio.median,
                                .ratio_low = ratio.low,
                                .ratio_high = ratio.high,
                                .note = ""});
  printf(" %8.2f", ratio.median);
}

static void measure(side sides[RIVALS], const char *kernel, uint32_t count,
                    bool is_recorded) {
  static cpu_entry entries[RIVALS];
  static const char *const names[] = {"one thread", "all threads",
                                      "OpenMP gcc"};
  double us[RIVALS] = {0};
  for (int i = 0; i < RIVALS; i++) {
    bind_side(&sides[i], count, is_recorded);
    bool is_there = i != OPENMP || sides[i].peer;
    entries[i] = (cpu_entry){.name = names[i],
                             .run = is_there ? run_side : NULL,
                             .self = &sides[i],
                             .warm = 1,
                             .timed = 3};
  }
  int rounds = cpu_rounds(entries, RIVALS, cpu_round_count(ROUNDS));
  char name[64];
  (void)snprintf(name, sizeof name, "%s%s", kernel,
                 is_recorded ? ", recorded" : "");
  printf("%-18s %8u", name, count);
  for (int i = 0; i < RIVALS; i++) {
    us[i] = cpu_quartiles_of(entries[i].ns, rounds).median / 1e3 /
            sides[i].launches;
    printf(" %12.3f", entries[i].run ? us[i] : 0);
  }
  add_row(name, count, &entries[ALL], &entries[ONE], rounds, us, ONE);
  if (entries[OPENMP].run) {
    add_row(name, count, &entries[ALL], &entries[OPENMP], rounds, us, OPENMP);
  }
  printf("\n");
  (void)fflush(stdout);
  for (int i = 0; i < RIVALS; i++) unbind_side(&sides[i]);
}

void bench_cpu_threads(void) {
  static const struct {
    const char *file;
    cpu_kernel kernel;
  } kernels[] = {{"saxpy", CPU_KERNEL_saxpy},
                 {"reduce", CPU_KERNEL_reduce},
                 {"exp", CPU_KERNEL_exp},
                 {"stencil", CPU_KERNEL_stencil}};
  if (strcmp(cpu_device_name(), "cpu") != 0) return;
  cpu_machine_print(suite, "cpu");
  const cpu_peer *gcc = cpu_peer_load("gcc");
  if (!gcc) cpu_missing(suite, "OpenMP gcc", cpu_peer_missing);
  printf("%-18s %8s %12s %12s %12s %8s %8s\n", "us", "elements", "one thread",
         "all threads", "OpenMP gcc", "speed-up", "/OpenMP");
  for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++) {
    side sides[RIVALS] = {{.kernel = kernels[k].kernel},
                          {.kernel = kernels[k].kernel},
                          {.kernel = kernels[k].kernel, .peer = gcc}};
    open_side(&sides[ONE], kernels[k].file, "cpu.threads=1");
    open_side(&sides[ALL], kernels[k].file, "");
    for (int i = 0; i < 2 * SIZES; i++) {
      measure(sides, kernels[k].file, sizes[i % SIZES], i >= SIZES);
    }
    close_side(&sides[ONE]);
    close_side(&sides[ALL]);
  }
}
