/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fixtures for tests of the cache: a backend with a disk cache, over the
 * interpreter, and a directory for it. */
#ifndef VYRE_RUNTIME_CACHE_CACHE_TESTING_H
#define VYRE_RUNTIME_CACHE_CACHE_TESTING_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vyre/vyre.h"

#include "hal/backend.h"
#include "runtime/core/device.h"
#include "support/check.h"

extern const vyre__backend vyre__backend_ref;

/* The description of the backend, and counts of its calls. */
static const char *kept_description = "a device of the test";
static const char *kept_driver = "driver 1";
static const char *kept_features = "sse avx";
static size_t kept_padding;  /* extra bytes in each artifact */
static bool kept_refuses;    /* its load of a stored artifact fails */
static bool kept_saves_none; /* its artifacts are empty */
static atomic_int kept_generates;
static atomic_int kept_loads; /* of artifacts from the disk */
static atomic_int kept_saves; /* loads of artifacts that will be stored */

static inline bool kept_describe(const vyre__backend *self, uint32_t index,
                                 vyre_device_info *out) {
  (void)self;
  if (index > 0) return false;
  out->description = kept_description;
  out->driver = kept_driver;
  return true;
}

/* The artifact is the pipeline's id, which is unique. */
static inline vyre_code kept_generate(const vyre_pipeline *pipeline,
                                      const vyre__lir_kernel *kernel,
                                      vyre_arena *scratch,
                                      vyre__bytes *artifact, vyre_status *st) {
  (void)scratch;
  (void)st;
  CHECK(kernel == NULL); /* it takes programs */
  atomic_fetch_add(&kept_generates, 1);
  if (kept_saves_none) return VYRE_OK;
  vyre__bytes_put(artifact, pipeline->id, strlen(pipeline->id));
  for (size_t i = 0; i < kept_padding; i++) vyre__bytes_put(artifact, "", 1);
  return VYRE_OK;
}

static inline vyre_code kept_load(vyre_pipeline *pipeline,
                                  const vyre__code_source *source,
                                  vyre_status *st) {
  static const char extra[] = "extra";
  const char *artifact = source->artifact;
  size_t length = strlen(pipeline->id), tail = sizeof extra - 1;
  bool is_stored = source->size >= tail &&
                   memcmp(artifact + source->size - tail, extra, tail) == 0;
  bool is_own = source->size >= length &&
                memcmp(artifact, pipeline->id, length) == 0 &&
                (uintptr_t)artifact % 16 == 0;
  if ((kept_refuses && is_stored) || (!is_own && !kept_saves_none)) {
    if (st) {
      st->code = VYRE_KERNEL_COMPILE_FAILED;
      snprintf(st->message, sizeof st->message, "not of this backend");
    }
    return VYRE_KERNEL_COMPILE_FAILED;
  }
  if (source->extra) vyre__bytes_put(source->extra, extra, tail);
  atomic_fetch_add(&kept_saves, source->extra != NULL);
  atomic_fetch_add(&kept_loads, is_stored);
  return vyre__backend_ref.load(pipeline, source, st);
}

static inline void kept_write_features(const vyre_device *device,
                                       vyre__bytes *to) {
  (void)device;
  vyre__bytes_put(to, kept_features, strlen(kept_features));
}

static vyre__backend kept_backend;

/* Restores the initial state. */
static inline void kept_reset(void) {
  kept_backend = vyre__backend_ref;
  kept_backend.name = "kept";
  kept_backend.describe = kept_describe;
  kept_backend.generate = kept_generate;
  kept_backend.load = kept_load;
  kept_backend.features = kept_write_features;
  kept_backend.artifact_version = 1;
  kept_description = "a device of the test";
  kept_driver = "driver 1";
  kept_features = "sse avx";
  kept_padding = 0;
  kept_refuses = kept_saves_none = false;
  kept_generates = kept_loads = kept_saves = 0;
}

/* --- a folder ------------------------------------------------------------- */

enum { FOLDER_TEXT = 64, PATH_TEXT = 512 };

/* Creates a directory of this user. */
static inline void folder_make(char out[FOLDER_TEXT]) {
  snprintf(out, FOLDER_TEXT, "/tmp/vyre-cache-XXXXXX");
  CHECK(mkdtemp(out) != NULL);
}

/* Empties a directory, and closes its descriptor. */
static inline void folder_empty(int folder) {
  DIR *list = folder < 0 ? NULL : fdopendir(folder);
  if (!list) return;
  for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
    const char *name = entry->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
    if (unlinkat(folder, name, 0) == 0) continue;
    folder_empty(openat(folder, name, O_RDONLY | O_DIRECTORY));
    (void)unlinkat(folder, name, AT_REMOVEDIR);
  }
  closedir(list);
}

static inline void folder_remove(const char *folder) {
  (void)chmod(folder, 0700);
  folder_empty(open(folder, O_RDONLY | O_DIRECTORY));
  (void)rmdir(folder);
}

/* Counts the files, and copies the path of the last one. */
static inline size_t folder_count(const char *folder, char *name) {
  size_t count = 0;
  DIR *list = opendir(folder);
  if (!list) return 0;
  for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
      continue;
    }
    count++;
    if (name) snprintf(name, PATH_TEXT, "%.200s/%s", folder, entry->d_name);
  }
  closedir(list);
  return count;
}

/* --- compiling ------------------------------------------------------------ */

static const char kept_kernel[] =
    "kernel twice workgroup(64) over(y)\n"
    "buffer y : read_write u32[] @0;\n"
    "{ let i = global_id.x; if (i < len(y)) y[i] = y[i] * 2; }\n";

typedef struct kept_rig {
  vyre_context *context;
  vyre_device *device;
  vyre_module *module;
  vyre_program *program;
} kept_rig;

static inline vyre_program *kept_parse(vyre_module **module, const char *text) {
  vyre_status st = {0};
  CHECK_OK(vyre_module_parse(text, strlen(text), "kept.vyre",
                             (vyre_allocator){0}, module, NULL, &st),
           st);
  return vyre_module_kernel(*module, 0);
}

/* A device of its own, as another process has: only files are shared. */
static inline kept_rig kept_open_sized(const char *folder, const char *text,
                                       uint64_t bytes) {
  kept_rig r = {0};
  vyre_status st = {0};
  vyre_context_options options = {.cache_directory = folder,
                                  .cache_bytes = bytes,
                                  .trace_file = "",
                                  .faults = ""};
  CHECK_OK(vyre_context_create(&options, &r.context, &st), st);
  CHECK_OK(vyre__device_open_given(r.context, &kept_backend, 0, NULL, &r.device,
                                   &st),
           st);
  r.program = kept_parse(&r.module, text);
  return r;
}

static inline kept_rig kept_open(const char *folder) {
  return kept_open_sized(folder, kept_kernel, 0);
}

static inline void kept_close(kept_rig *r) {
  vyre_device_release(r->device);
  vyre_context_release(r->context);
  vyre_module_release(r->module);
}

/* It must run as the kernel says, wherever it came from. */
static inline void kept_check_runs(vyre_pipeline *pipeline) {
  uint32_t y[3] = {1, 20, 300};
  const vyre_input inputs[] = {{.data = y, .size = sizeof y}};
  const vyre_output outputs[] = {{.data = y, .size = sizeof y}};
  const vyre_dispatch_desc desc = {.inputs = inputs,
                                   .input_count = 1,
                                   .outputs = outputs,
                                   .output_count = 1};
  vyre_status st = {0};
  CHECK_OK(vyre_dispatch(pipeline, &desc, &st), st);
  CHECK(y[0] == 2 && y[1] == 40 && y[2] == 600);
}

/* Compiles once in a context of its own and says what the cache did; texts that
 * tests look at are copied. */
typedef struct kept_result {
  vyre_cache_info info;
  char reason[256], field[64], wanted[256], found[256], not_stored[256];
  vyre_counters counters;
} kept_result;

static inline void kept_copy(char *to, size_t size, const char *text) {
  snprintf(to, size, "%s", text ? text : "");
}

static inline kept_result kept_compile_with(
    kept_rig *r, const vyre_compile_options *options) {
  kept_result out = {0};
  vyre_status st = {0};
  vyre_pipeline *pipeline;
  CHECK_OK(vyre_pipeline_compile(r->device, r->program, options, &pipeline,
                                 NULL, &st),
           st);
  CHECK(vyre_pipeline_get_cache_info(pipeline, &out.info));
  kept_copy(out.reason, sizeof out.reason, out.info.reason);
  kept_copy(out.field, sizeof out.field, out.info.field);
  kept_copy(out.wanted, sizeof out.wanted, out.info.wanted);
  kept_copy(out.found, sizeof out.found, out.info.found);
  kept_copy(out.not_stored, sizeof out.not_stored, out.info.not_stored);
  vyre_counters_read(r->device, &out.counters);
  kept_check_runs(pipeline);
  vyre_pipeline_release(pipeline);
  return out;
}

static inline kept_result kept_compile(const char *folder) {
  kept_rig r = kept_open(folder);
  kept_result out = kept_compile_with(&r, NULL);
  kept_close(&r);
  return out;
}

/* --- other processes ------------------------------------------------------ */

/* Runs @p work in a child process without root privileges, and returns its exit
 * code. A failed check in the child ends it with 1. */
static inline int in_process(void (*work)(void), bool is_plain) {
  fflush(stdout);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    if (is_plain && geteuid() == 0 &&
        (setgid(65534) != 0 || setuid(65534) != 0)) {
      _exit(2);
    }
    if (setjmp(test_escape) != 0) {
      fflush(stdout);
      _exit(1);
    }
    work();
    fflush(stdout);
    _exit(0);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

#endif
