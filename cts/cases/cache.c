/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Cases: pipelines from the disk cache give the same results as compiled ones.
 * A backend without a disk cache states so and compiles every time. */
#include <dirent.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cts/harness/dispatch_forms.h"

extern char **environ;

enum { PATH = 256, PROCESSES = 2, THREADS = 8, ROUNDS = 6, SIZES = 5 };

static void make_folder(cts *c, char path[PATH]) {
  const char *base = getenv("TMPDIR");
  (void)snprintf(path, PATH, "%.200s/vyre-cts-XXXXXX",
                 base && base[0] ? base : "/tmp");
  CTS_CHECK(c, mkdtemp(path) != NULL);
}

static void remove_folder(const char *path) {
  DIR *folder = opendir(path);
  char file[PATH + 256];
  for (struct dirent *entry; folder && (entry = readdir(folder));) {
    (void)snprintf(file, sizeof file, "%s/%.255s", path, entry->d_name);
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
      (void)unlink(file);
    }
  }
  if (folder) closedir(folder);
  (void)rmdir(path);
}

/* Opens a context with the cache directory @p path, on the allocator of the
 * case. Its device replaces the device of the case, which is saved in @p
 * before. */
typedef struct place {
  vyre_context *context;
  vyre_device *before;
} place;

static void enter(cts *c, const char *path, place *p) {
  vyre_context_options options = {.allocator = cts_allocator(c),
                                  .cache_directory = path,
                                  .trace_file = "",
                                  .faults = ""};
  CTS_OK(c, vyre_context_create(&options, &p->context, &c->st));
  p->before = c->device;
  CTS_OK(c, vyre_device_open(p->context, c->backend, &c->device, &c->st));
}

static void leave(cts *c, place *p) {
  vyre_device_release(c->device);
  c->device = p->before;
  vyre_context_release(p->context);
}

/* Compiles in one context and loads in the next two. */
static void from_disk(cts *c) {
  char path[PATH];
  make_folder(c, path);
  bool is_kept = c->caps->has_disk_cache;
  for (int turn = 0; turn < 3; turn++) {
    place p;
    vyre_pipeline *pipeline;
    vyre_cache_info info;
    cts_job *job = cts_memory(c, sizeof *job);
    enter(c, path, &p);
    cts_job_make(c, 0, false, job);
    /* Baseline code is not stored. */
    const vyre_compile_options optimised = {.tier = VYRE_TIER_OPTIMISED};
    CTS_OK(c, vyre_pipeline_compile(c->device, job->run.program, &optimised,
                                    &pipeline, NULL, &c->st));
    CTS_CHECK(c, vyre_pipeline_get_cache_info(pipeline, &info));
    CTS_CHECK(c, info.is_stored == (is_kept && turn == 0));
    CTS_CHECK(c, (info.not_stored[0] != '\0') == !is_kept);
    CTS_CHECK(c, (info.origin == VYRE_CACHE_DISK_HIT) == (is_kept && turn > 0));
    CTS_OK(c, vyre_dispatch(pipeline, &job->run.desc, &c->st));
    cts_job_check(c, job, "a pipeline of the cache");
    CTS_ELSEWHERE(c, c->device, 1);
    vyre_pipeline_release(pipeline);
    leave(c, &p);
  }
  remove_folder(path);
  CTS_LAUNCHED(c, 0); /* none on the device of the case */
}

/* Injects every fault while the cache is written and read. */
static void faults(cts *c) {
  char path[PATH];
  make_folder(c, path);
  for (int f = 0; f < VYRE_FAULT_COUNT; f++) {
    for (unsigned n = 1;; n += n < 64 ? 1 : n / 8) {
      char text[64];
      place p;
      vyre_pipeline *pipeline = NULL;
      cts_job *job = cts_memory(c, sizeof *job);
      vyre_status st = {0};
      vyre_compile_options size = {.workgroup = {1 + n % 64}};
      enter(c, path, &p);
      cts_job_make(c, 0, false, job);
      (void)snprintf(text, sizeof text, "%s:%u", vyre_fault_name((vyre_fault)f),
                     n);
      CTS_OK(c, vyre_context_inject_faults(p.context, text, &c->st));
      vyre_code code = vyre_pipeline_compile(c->device, job->run.program, &size,
                                             &pipeline, NULL, &st);
      if (code == VYRE_OK) code = vyre_dispatch(pipeline, &job->run.desc, &st);
      CTS_OK(c, vyre_context_inject_faults(p.context, "", &c->st));
      if (code == VYRE_OK) {
        cts_job_check(c, job, "a result");
      } else {
        CTS_CHECK(c, st.code == code && st.message[0] && st.fix[0]);
      }
      CTS_CHECK(c,
                vyre_device_is_lost(c->device) == (code == VYRE_DEVICE_LOST));
      CTS_ELSEWHERE(c, c->device, code == VYRE_OK);
      vyre_pipeline_release(pipeline);
      vyre_arena_deinit(&c->arena);
      while (c->module_count > 0) {
        vyre_module_release(c->modules[--c->module_count]);
      }
      leave(c, &p);
      if (code == VYRE_OK) break;
    }
  }
  remove_folder(path);
  CTS_LAUNCHED(c, 0);
}

/* --- Two processes with eight threads each
 * ------------------------------------ */

/* Environment variable with the cache directory that the processes share. */
#define SHARED_FOLDER   "VYRE_CTS_CACHE"
#define BY_THREADS      "shared_by_threads"
#define CASE_BY_THREADS "cache." BY_THREADS

static const char seven[] =
    "kernel seven workgroup(8) over(y)\n"
    "buffer x : read u32[] @0;\nbuffer y : write u32[] @1;\n"
    "{ if (global_id.x < len(y)) y[global_id.x] = 7 * x[global_id.x]; }\n";

typedef struct sharer {
  cts *c;
  vyre_context *context;
  vyre_program *program;
  unsigned number;
  uint64_t launches;
  char wrong[400];
} sharer;

static void *share(void *self) {
  sharer *s = self;
  vyre_status st = {0};
  for (unsigned i = 0; i < ROUNDS && !s->wrong[0]; i++) {
    vyre_compile_options size = {.workgroup = {1 + (i + s->number) % SIZES}};
    uint32_t x[3] = {1, 2, 3}, y[3] = {0};
    vyre_input in = vyre_input_bytes(x, sizeof x);
    vyre_output out = vyre_output_bytes(y, sizeof y);
    vyre_dispatch_desc desc = {
        .inputs = &in, .input_count = 1, .outputs = &out, .output_count = 1};
    vyre_device *device = NULL;
    vyre_pipeline *pipeline = NULL;
    vyre_cache_pruned pruned;
    vyre_code code = vyre_device_open(s->context, s->c->backend, &device, &st);
    if (code == VYRE_OK) {
      code = vyre_pipeline_compile(device, s->program, &size, &pipeline, NULL,
                                   &st);
    }
    if (code == VYRE_OK) code = vyre_dispatch(pipeline, &desc, &st);
    if (code == VYRE_OK && s->number == 0 && i % 3 == 2) {
      vyre_cache_prune_options all = {.remove_all = true};
      code = vyre_cache_prune(s->context, &all, &pruned, &st);
    }
    vyre_counters counters = {0};
    if (device) vyre_counters_read(device, &counters);
    s->launches += counters.launches;
    vyre_pipeline_release(pipeline);
    vyre_device_release(device);
    if (code != VYRE_OK || y[0] != 7 || y[2] != 21) {
      (void)snprintf(s->wrong, sizeof s->wrong, "round %u: %s", i,
                     st.code ? st.message : "the result is wrong");
    }
  }
  return NULL;
}

/* Runs eight threads, each with its own devices; one of them removes entries
 * that the others write. The directory is new, or that of the case that started
 * this process. */
static void by_threads(cts *c) {
  static sharer all[THREADS];
  pthread_t threads[THREADS];
  char own[PATH];
  const char *path = getenv(SHARED_FOLDER);
  place p;
  vyre_program *program = cts_program(c, seven);
  if (!path) make_folder(c, own);
  enter(c, path ? path : own, &p);
  for (unsigned i = 0; i < THREADS; i++) {
    all[i] = (sharer){c, p.context, program, i, 0, ""};
    CTS_CHECK(c, pthread_create(&threads[i], NULL, share, &all[i]) == 0);
  }
  for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (unsigned i = 0; i < THREADS; i++) {
    CTS_U64(c, all[i].launches, all[i].wrong[0] ? all[i].launches : ROUNDS);
    c->elsewhere += all[i].launches;
    if (!all[i].wrong[0]) continue;
    cts_fail(c, __FILE__, __LINE__, "thread %u, %s", i, all[i].wrong);
  }
  leave(c, &p);
  if (!path) remove_folder(own);
  CTS_LAUNCHED(c, 0); /* all launches were on devices of the threads */
}

static pid_t start(const cts *c, const char *path) {
  char seed[24];
  static const char again[] = CASE_BY_THREADS;
  const char *words[] = {"vyre", "conform", "--backend", c->backend, "--seed",
                         seed,   "--case",  again,       NULL};
  pid_t pid;
  (void)snprintf(seed, sizeof seed, "%llu", (unsigned long long)c->seed);
  if (setenv(SHARED_FOLDER, path, 1) != 0) return -1;
  return posix_spawn(&pid, "/proc/self/exe", NULL, NULL,
                     (char *const *)(uintptr_t)words, environ) == 0
             ? pid
             : -1;
}

static void by_processes(cts *c) {
  char path[PATH];
  pid_t children[PROCESSES];
  bool fine = true;
  make_folder(c, path);
  for (int i = 0; i < PROCESSES; i++) {
    children[i] = start(c, path);
    CTS_CHECK(c, children[i] > 0);
  }
  for (int i = 0; i < PROCESSES; i++) {
    int status = 0;
    if (waitpid(children[i], &status, 0) < 0 || status != 0) fine = false;
  }
  CTS_CHECK(c, fine);
  /* Remaining entries are valid and none is half written; missing entries can
   * be stored again, each once. */
  place p;
  vyre_arena arena = {0};
  vyre_cache_listing list;
  enter(c, path, &p);
  vyre_program *program = cts_program(c, seven);
  for (unsigned i = 0; i < SIZES; i++) {
    vyre_compile_options size = {.workgroup = {1 + i},
                                 .tier = VYRE_TIER_OPTIMISED};
    vyre_pipeline *pipeline;
    CTS_OK(c, vyre_pipeline_compile(c->device, program, &size, &pipeline, NULL,
                                    &c->st));
    vyre_pipeline_release(pipeline);
  }
  CTS_OK(c, vyre_cache_list(p.context, &arena, &list, &c->st));
  CTS_CHECK(c, list.is_enabled);
  CTS_U64(c, list.corrupt_count, 0);
  CTS_U64(c, list.leftover_count, 0);
  CTS_U64(c, list.entry_count, c->caps->has_disk_cache ? SIZES : 0);
  vyre_arena_deinit(&arena);
  leave(c, &p);
  remove_folder(path);
  CTS_LAUNCHED(c, 0);
}

static const cts_entry entries[] = {
    {"from_disk", from_disk},
    {"faults", faults},
    {BY_THREADS, by_threads},
    {"shared_by_two_processes", by_processes},
};

CTS_LIST(cache, "pipelines from disk");
