/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measures packages, as part of suite `runtime`: the time from an open package
 * to a pipeline that is ready, against a hit of the cache on disk, and against
 * opening a shared library with the same kernel in C. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vyre/vyre.h"

#include "bench.h"

static const char suite[] = "runtime";

enum { ROUNDS = 51, REPEAT = 100, TEXT = 1 << 16, PATH = 320 };

typedef struct job {
  const char *folder; /* of the cache, and of the shared library */
  vyre_program *program;
  vyre_device *device;
  vyre_package *package;
  char *bytes; /* the package */
  size_t size;
  char library[PATH];
} job;

static void must(vyre_code code, const vyre_status *st, const char *what) {
  if (code != VYRE_OK) bench_fail(what, st->message);
}

static const vyre_compile_options optimised = {.tier = VYRE_TIER_OPTIMISED};

/* --- jobs ------------------------------------------------------------------*/

static bool load(void *self) {
  const job *j = self;
  vyre_pipeline *pipeline;
  bool fine = vyre_pipeline_load(j->device, j->package, NULL, NULL, &pipeline,
                                 NULL) == VYRE_OK;
  vyre_pipeline_release(pipeline);
  return fine;
}

static bool open_and_load(void *self) {
  job j = *(const job *)self;
  bool fine = vyre_package_open(j.bytes, j.size, vyre_allocator_heap(),
                                &j.package, NULL) == VYRE_OK &&
              load(&j);
  vyre_package_release(j.package);
  return fine;
}

static bool open_library(void *self) {
  const job *j = self;
  void *library = dlopen(j->library, RTLD_NOW | RTLD_LOCAL);
  return library && dlclose(library) == 0;
}

/* Opens a device in a new context, which has nothing in memory. */
static bool with_device(const job *j, bool compiles) {
  const vyre_context_options options = {
      .cache_directory = j->folder, .trace_file = "", .faults = ""};
  vyre_context *context = NULL;
  vyre_device *device = NULL;
  vyre_pipeline *pipeline = NULL;
  vyre_cache_info info;
  bool fine = vyre_context_create(&options, &context, NULL) == VYRE_OK &&
              vyre_device_open(context, "cpu", &device, NULL) == VYRE_OK;
  if (fine && compiles) {
    fine = vyre_pipeline_compile(device, j->program, &optimised, &pipeline,
                                 NULL, NULL) == VYRE_OK &&
           vyre_pipeline_get_cache_info(pipeline, &info) &&
           info.result == VYRE_CACHE_DISK_HIT;
  }
  vyre_pipeline_release(pipeline);
  vyre_device_release(device);
  vyre_context_release(context);
  return fine;
}

static bool compile_from_disk(void *self) {
  return with_device(self, true);
}

static bool open_only(void *self) {
  return with_device(self, false);
}

/* --- setup -----------------------------------------------------------------*/

static bool keep(void *self, const char *bytes, size_t size) {
  job *j = self;
  char *grown = realloc(j->bytes, j->size + size);
  if (!grown) return false;
  memcpy(grown + j->size, bytes, size);
  j->bytes = grown;
  j->size += size;
  return true;
}

static void make_package(job *j) {
  vyre_status st = {0};
  must(vyre_package_write(NULL, &j->program, 1, NULL, (vyre_writer){keep, j},
                          &st),
       &st, "a package");
  must(vyre_package_open(j->bytes, j->size, vyre_allocator_heap(), &j->package,
                         &st),
       &st, "a package");
}

/* Puts the kernel into the cache on disk. */
static void fill_cache(const job *j) {
  const vyre_context_options options = {
      .cache_directory = j->folder, .trace_file = "", .faults = ""};
  vyre_status st = {0};
  vyre_context *context;
  vyre_device *device;
  vyre_pipeline *pipeline;
  must(vyre_context_create(&options, &context, &st), &st, "a context");
  must(vyre_device_open(context, "cpu", &device, &st), &st, "cpu");
  must(vyre_pipeline_compile(device, j->program, &optimised, &pipeline, NULL,
                             &st),
       &st, "a kernel");
  vyre_pipeline_release(pipeline);
  vyre_device_release(device);
  vyre_context_release(context);
}

/* Compiles the kernel as C to a shared library. Returns false without a C
 * compiler. */
static bool make_library(job *j, const char *path) {
  char command[5 * PATH];
  snprintf(j->library, sizeof j->library, "%s/kernel.so", j->folder);
  snprintf(command, sizeof command,
           "'%s' emit '%s' --to c -o '%s/kernel.c' && cc -O2 -shared -fPIC "
           "-o '%s' '%s/kernel.c' -lm 2>/dev/null",
           VYRE_COMMAND, path, j->folder, j->library, j->folder);
  return system(command) == 0;
}

/* --- rows ------------------------------------------------------------------*/

static void add(const char *kernel, const char *what, bench_times ours,
                const char *peer, bench_times theirs) {
  static char names[16][96];
  static int used;
  if (used == 16) bench_fail("packages", "too many rows");
  char *name = names[used++];
  snprintf(name, sizeof names[0], "cpu: %s %s", kernel, what);
  bench_row_times(suite, name, "us", 1e-3, ours, peer, theirs);
}

static void measure(job *j, const char *kernel, const char *path) {
  bench_times ours, theirs, whole;
  const bench_job disk = {compile_from_disk, j}, part = {open_only, j};
  make_package(j);
  fill_cache(j);
  theirs = bench_difference(disk, part, ROUNDS, 1, &whole);
  bench_pair((bench_job){load, j}, (bench_job){0}, ROUNDS, REPEAT, &ours,
             &whole);
  add(kernel, "from an open package", ours, "cache on disk", theirs);
  if (make_library(j, path)) {
    bench_pair((bench_job){open_and_load, j}, (bench_job){open_library, j},
               ROUNDS, REPEAT, &ours, &theirs);
    add(kernel, "opened and loaded", ours, "dlopen", theirs);
  }
  vyre_package_release(j->package);
  free(j->bytes);
}

void bench_package(void) {
  static char text[TEXT];
  static const char *const kernels[] = {"saxpy", "matmul_tiled", "softmax"};
  for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
    char path[PATH], folder[] = "/tmp/vyre-bench-XXXXXX", command[64];
    vyre_status st = {0};
    vyre_module *module;
    snprintf(path, sizeof path, "%s/%s.vyre", VYRE_EXAMPLES, kernels[i]);
    FILE *file = fopen(path, "rb");
    if (!file || !mkdtemp(folder)) bench_fail(path, "cannot be read");
    size_t length = fread(text, 1, sizeof text, file);
    fclose(file);
    must(vyre_module_parse(text, length, kernels[i], vyre_allocator_heap(),
                           &module, NULL, &st),
         &st, path);
    job j = {.folder = folder, .program = vyre_module_kernel(module, 0)};
    must(vyre_device_open(NULL, "cpu", &j.device, &st), &st, "cpu");
    measure(&j, kernels[i], path);
    vyre_device_release(j.device);
    vyre_module_release(module);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0) bench_fail(folder, "cannot be removed");
  }
}
