/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measures the cost of the runtime: a repeated dispatch on a device that does
 * nothing, and the same call directly to the backend of that device. */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vyre/vyre.h"

#include "bench.h"
#include "hal/backend.h"
#include "runtime/core/device.h"

long syscall(long number, ...); /* not part of POSIX */

static const char suite[] = "dispatch";

enum {
  ROUNDS = 1001,
  REPEAT = 1000,
  MAX_BINDINGS = 8,
  ELEMENTS = 16,
  SETS = 16 /* sets of bindings; a power of 2 */
};

static void must(vyre_code code, const vyre_status *st, const char *what) {
  if (code != VYRE_OK) bench_fail(what, st->message);
}

/* --- a device that does nothing ------------------------------------------- */

static bool describe(const vyre__backend *self, uint32_t index,
                     vyre_device_info *out) {
  (void)self;
  out->description = "a device that does nothing";
  return index == 0;
}

static vyre_code device_init(vyre_device *device, vyre_status *st) {
  (void)st;
  device->caps = (vyre_device_caps){.max_workgroup = {1024, 1024, 1024},
                                    .max_workgroup_invocations = 1024,
                                    .max_buffer_bytes = SIZE_MAX / 2,
                                    .host_alignment = 1,
                                    .borrows_host_memory = true,
                                    .has_f64 = true,
                                    .has_u64 = true,
                                    .has_atomics64 = true};
  return VYRE_OK;
}

static void device_deinit(vyre_device *device) {
  (void)device;
}

static vyre_code load(vyre_pipeline *pipeline, const vyre__code_source *source,
                      vyre_status *st) {
  (void)pipeline;
  (void)source;
  (void)st;
  return VYRE_OK;
}

static void pipeline_deinit(vyre_pipeline *pipeline) {
  (void)pipeline;
}

static vyre_code run(vyre_pipeline *pipeline, vyre__launch *launch,
                     vyre_status *st) {
  (void)pipeline;
  (void)st;
  return launch->grid[0] == 0 ? VYRE_UNKNOWN : VYRE_OK;
}

static vyre_code execute(vyre__command_list *list, size_t first, size_t end,
                         size_t *done, vyre_status *st) {
  return vyre__execute_each(list, first, end, run, done, st);
}

static const vyre__backend nothing = {.abi = VYRE__BACKEND_ABI,
                                      .struct_size = sizeof(vyre__backend),
                                      .name = "nothing",
                                      .is_exact = true,
                                      .device_size = sizeof(vyre_device),
                                      .pipeline_size = sizeof(vyre_pipeline),
                                      .describe = describe,
                                      .device_init = device_init,
                                      .device_deinit = device_deinit,
                                      .load = load,
                                      .pipeline_deinit = pipeline_deinit,
                                      .execute = execute};

/* --- jobs ----------------------------------------------------------------- */

typedef struct job {
  vyre_context *context;
  vyre_device *device;
  vyre_module *module;
  vyre_pipeline *pipeline;
  uint32_t data[SETS][MAX_BINDINGS][ELEMENTS];
  vyre_input inputs[SETS][MAX_BINDINGS];
  vyre_output outputs[SETS];
  vyre_dispatch_desc descs[SETS];
  unsigned turn, sets; /* sets of bindings used in turn */
  vyre__view views[MAX_BINDINGS];
  vyre__launch launch;
  vyre__command command;
  vyre__command_list list;
} job;

/* One buffer is read and written; the others are read. */
static void open_job(job *j, unsigned bindings, bool is_resident,
                     const char *trace_file) {
  char text[1024] =
      "kernel k workgroup(64)\nbuffer b0 : read_write u32[] @0;\n";
  vyre_status st = {0};
  vyre_context_options options = {
      .cache_directory = "", .trace_file = trace_file, .faults = ""};
  for (unsigned i = 1; i < bindings; i++) {
    size_t length = strlen(text);
    (void)snprintf(text + length, sizeof text - length,
                   "buffer b%u : read u32[] @%u;\n", i, i);
  }
  size_t used = strlen(text);
  (void)snprintf(text + used, sizeof text - used,
                 "{ b0[global_id.x] += 1; }\n");
  memset(j, 0, sizeof *j);
  must(vyre_context_create(&options, &j->context, &st), &st, "context");
  must(vyre__device_open_given(j->context, &nothing, 0, NULL, &j->device, &st),
       &st, "device");
  must(vyre_module_parse(text, strlen(text), "bench", (vyre_allocator){0},
                         &j->module, NULL, &st),
       &st, "parse");
  must(vyre_pipeline_compile(j->device, vyre_module_kernel(j->module, 0), NULL,
                             &j->pipeline, NULL, &st),
       &st, "compile");
  for (int set = 0; set < SETS; set++) {
    vyre_input *inputs = j->inputs[set];
    for (unsigned i = 0; i < bindings; i++) {
      size_t size = sizeof j->data[set][i];
      inputs[i] = vyre_input_bytes(j->data[set][i], size);
      if (!is_resident) continue;
      vyre_buffer buffer;
      must(vyre_buffer_create(j->device, size, &buffer, &st), &st, "resident");
      inputs[i] = vyre_input_buffer(buffer);
    }
    j->outputs[set] = is_resident ? vyre_output_buffer(inputs[0].buffer)
                                  : vyre_output_bytes(j->data[set][0],
                                                      sizeof j->data[set][0]);
    j->descs[set] = (vyre_dispatch_desc){.inputs = inputs,
                                         .input_count = bindings,
                                         .outputs = &j->outputs[set],
                                         .output_count = 1};
  }
  j->command = (vyre__command){.launch = &j->launch};
  j->list = (vyre__command_list){
      .device = j->device, .commands = &j->command, .count = 1};
  j->launch = (vyre__launch){
      .views = j->views, .grid = {1, 1, 1}, .max_loop_iterations = UINT32_MAX};
}

static void close_job(job *j) {
  vyre_pipeline_release(j->pipeline);
  vyre_device_release(j->device);
  vyre_context_release(j->context);
  vyre_module_release(j->module);
}

static bool run_dispatch(void *self) {
  job *j = self;
  vyre_status st;
  st.code = VYRE_OK;
  return vyre_dispatch(j->pipeline, &j->descs[0], &st) == VYRE_OK;
}

/* All bindings differ from those of the last dispatch. */
static bool run_others(void *self) {
  job *j = self;
  vyre_status st;
  st.code = VYRE_OK;
  const vyre_dispatch_desc *desc = &j->descs[j->turn++ & (j->sets - 1)];
  return vyre_dispatch(j->pipeline, desc, &st) == VYRE_OK;
}

static bool run_table(void *self) {
  job *j = self;
  vyre_status st;
  st.code = VYRE_OK;
  size_t done;
  return j->device->backend->execute(&j->list, 0, 1, &done, &st) == VYRE_OK;
}

/* --- instructions --------------------------------------------------------- */

/* Opens a counter of the instructions of this thread in user mode. Returns -1
 * where that is not allowed. */
static int open_counter(void) {
  struct perf_event_attr about;
  memset(&about, 0, sizeof about);
  about.type = PERF_TYPE_HARDWARE;
  about.size = sizeof about;
  about.config = PERF_COUNT_HW_INSTRUCTIONS;
  about.exclude_kernel = 1;
  about.exclude_hv = 1;
  return (int)syscall(SYS_perf_event_open, &about, 0, -1, -1, 0);
}

static double instructions(int counter, bench_job what) {
  uint64_t before = 0, after = 0;
  bool good = read(counter, &before, sizeof before) == sizeof before;
  for (int i = 0; i < REPEAT; i++) good = what.run(what.self) && good;
  good = read(counter, &after, sizeof after) == sizeof after && good;
  if (!good) bench_fail("instructions", "cannot be counted");
  return (double)(after - before) / REPEAT;
}

/* --- rows ----------------------------------------------------------------- */

static void measure(unsigned bindings, bool is_resident, unsigned sets,
                    const char *trace_file) {
  static job j;
  static char names[40][64];
  static unsigned used;
  bench_times ours, table;
  const char *turns = sets == 1   ? ""
                      : sets == 2 ? ", two in turn"
                                  : ", others each time";
  open_job(&j, bindings, is_resident, trace_file);
  j.sets = sets;
  bench_job mine = {sets > 1 ? run_others : run_dispatch, &j};
  bench_job direct = {run_table, &j};
  bench_pair(mine, direct, ROUNDS, trace_file[0] ? 100 : REPEAT, &ours, &table);
  char *name = names[used++];
  (void)snprintf(name, sizeof names[0], "over the table: %u %s%s%s", bindings,
                 is_resident ? "resident" : "host", turns,
                 trace_file[0] ? ", traced" : "");
  ours.median -= table.median;
  ours.minimum -= table.minimum;
  bench_row_times(suite, name, "ns", 1, ours, "", (bench_times){0});
  int counter = trace_file[0] ? -1 : open_counter();
  if (counter >= 0) {
    char *second = names[used++];
    (void)snprintf(second, sizeof names[0], "instructions: %u %s%s", bindings,
                   is_resident ? "resident" : "host", turns);
    bench_row_figure(
        suite, second, "",
        instructions(counter, mine) - instructions(counter, direct), "", 0);
    close(counter);
  }
  close_job(&j);
}

void bench_dispatch(void) {
  static const unsigned bindings[] = {1, 3, 8}, sets[] = {1, 2, SETS};
  for (int s = 0; s < 3; s++) {
    for (int i = 0; i < 3; i++) measure(bindings[i], false, sets[s], "");
    for (int i = 0; i < 3; i++) measure(bindings[i], true, sets[s], "");
  }
  char file[] = "/tmp/vyre-bench-XXXXXX"; /* a trace is a regular file */
  int made = mkstemp(file);
  if (made < 0) bench_fail("trace", "no file can be made in /tmp");
  close(made);
  measure(1, false, 1, file);
  unlink(file);
}
