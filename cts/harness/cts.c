/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Functions that run inside the process of a case: checks, launch counting,
 * leak detection. */
#include "cts/harness/cts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cts/harness/runner.h"

/* --- End of a case
 * ------------------------------------------------------------ */

static _Noreturn void end(int status) {
  fflush(stdout);
  _exit(status); /* skips clean-up: the process ends anyway */
}

void cts_fail(cts *c, const char *file, int line, const char *format, ...) {
  va_list arguments;
  (void)c;
  va_start(arguments, format);
  printf("%s:%d: ", file, line);
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
  end(CTS_EXIT_FAILED);
}

void cts_lacks(cts *c, const char *format, ...) {
  va_list arguments;
  (void)c;
  va_start(arguments, format);
  printf(CTS_LACKS_LINE);
  vprintf(format, arguments);
  printf("\n");
  va_end(arguments);
  end(CTS_EXIT_NOT_APPLICABLE);
}

void cts_ok(cts *c, vyre_code code, const char *file, int line,
            const char *call) {
  if (code == VYRE_OK) return;
  cts_fail(c, file, line, "%s: %s (%s)", call, c->st.message,
           vyre_kind_name(c->st.kind));
}

void cts_fails(cts *c, vyre_code got, vyre_code code, vyre_kind kind,
               const char *file, int line, const char *call) {
  if (got != code || c->st.code != code || c->st.kind != kind) {
    cts_fail(c, file, line, "%s: gives %s (%s) '%s', must be %s (%s)", call,
             vyre_code_name(got), vyre_kind_name(c->st.kind), c->st.message,
             vyre_code_name(code), vyre_kind_name(kind));
  }
  if (!c->st.message[0] || !c->st.fix[0]) {
    cts_fail(c, file, line, "%s: fails without a message or a fix", call);
  }
  c->st = (vyre_status){0};
}

static const char *hex(char out[32], const unsigned char *bytes, size_t count) {
  out[0] = '\0';
  for (size_t i = 0; i < count && i < 8; i++) {
    (void)snprintf(out + 3 * i, 4, "%02x ", bytes[i]);
  }
  return out;
}

void cts_same(cts *c, const char *what, const void *got, const void *want,
              size_t size, const char *file, int line) {
  const unsigned char *a = got, *b = want;
  char shown_a[32], shown_b[32];
  for (size_t i = 0; i < size; i++) {
    if (a[i] == b[i]) continue;
    size_t at = i & ~(size_t)7; /* rounded down to the largest element size */
    cts_fail(c, file, line,
             "%s: byte %zu of %zu differs; from %zu on: %smust be %s", what, i,
             size, at, hex(shown_a, a + at, size - at),
             hex(shown_b, b + at, size - at));
  }
}

/* --- Building blocks of cases
 * ------------------------------------------------- */

void *cts_memory(cts *c, size_t size) {
  void *memory = vyre_arena_alloc(&c->arena, size + 1, 64);
  CTS_CHECK(c, memory != NULL);
  memset(memory, 0, size + 1);
  return memory;
}

vyre_program *cts_program(cts *c, const char *text) {
  vyre_module *module;
  CTS_CHECK(c, c->module_count < CTS_MAX_OBJECTS);
  CTS_OK(c, vyre_module_parse(text, strlen(text), "case.vyre",
                              (vyre_allocator){0}, &module, NULL, &c->st));
  c->modules[c->module_count++] = module;
  CTS_CHECK(c, vyre_module_kernel_count(module) > 0);
  return vyre_module_kernel(module, 0);
}

vyre_pipeline *cts_compile(cts *c, vyre_program *program, unsigned needs) {
  vyre_pipeline *pipeline = NULL;
  CTS_CHECK(c, c->pipeline_count < CTS_MAX_OBJECTS);
  const vyre_compile_options options = {.tier = VYRE_TIER_OPTIMISED};
  vyre_code code = vyre_pipeline_compile(c->device, program, &options,
                                         &pipeline, NULL, &c->st);
  bool lacks_f64 = (needs & CTS_NEEDS_F64) && !c->caps->has_f64;
  bool lacks_u64 = (needs & CTS_NEEDS_U64) && !c->caps->has_u64;
  bool lacks_atomics64 = (needs & CTS_NEEDS_ATOMICS64) &&
                         !c->caps->has_atomics64 && code != VYRE_OK;
  if (lacks_f64 || lacks_u64 || lacks_atomics64) {
    CTS_FAILS(c, code, VYRE_UNSUPPORTED_FEATURE, VYRE_KIND_NOT_SUPPORTED);
    cts_lacks(c, "%s", lacks_f64 ? "f64" : lacks_u64 ? "u64" : "atomics64");
  }
  CTS_OK(c, code);
  c->pipelines[c->pipeline_count++] = pipeline;
  return pipeline;
}

vyre_pipeline *cts_kernel(cts *c, const char *text) {
  return cts_compile(c, cts_program(c, text), 0);
}

vyre_device *cts_ref(cts *c) {
  vyre_context *own;
  vyre_context_options options = {
      .cache_directory = "", .trace_file = "", .faults = ""};
  if (c->ref) return c->ref;
  CTS_OK(c, vyre_context_create(&options, &own, &c->st));
  CTS_OK(c, vyre_device_open(own, "ref", &c->ref, &c->st));
  vyre_context_release(own);
  return c->ref;
}

void cts_oracle(cts *c, vyre_program *program, const vyre_dispatch_desc *desc) {
  CTS_OK(c, vyre_device_run_program(cts_ref(c), program, desc, &c->st));
}

static uint64_t launches_of(const vyre_device *device) {
  vyre_counters counters;
  vyre_counters_read(device, &counters);
  return counters.launches;
}

static void check_launches(cts *c, const vyre_device *device, uint64_t count,
                           const char *file, int line) {
  uint64_t got = launches_of(device);
  if (got == count) return;
  cts_fail(c, file, line, "%llu kernels were launched on '%s', must be %llu",
           (unsigned long long)got, vyre_device_name(device),
           (unsigned long long)count);
}

void cts_launched(cts *c, uint64_t count, const char *file, int line) {
  c->launches = count;
  if (count == 0) c->launches_are_0 = true;
  check_launches(c, c->device, count, file, line);
}

void cts_elsewhere(cts *c, const vyre_device *device, uint64_t count,
                   const char *file, int line) {
  check_launches(c, device, count, file, line);
  c->elsewhere += count;
}

/* splitmix64 generator */
uint64_t cts_random(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

/* --- Names ---------------------------------------------------------------- */

bool cts_case_name(const cts_suite *suite, size_t index, char out[CTS_NAME]) {
  for (size_t i = 0; i < suite->area_count; i++) {
    const cts_area *area = suite->areas[i];
    size_t count = area->count();
    if (index >= count) {
      index -= count;
      continue;
    }
    char label[CTS_NAME / 2];
    area->label(index, label, sizeof label);
    (void)snprintf(out, CTS_NAME, "%s.%s", area->name, label);
    return true;
  }
  return false;
}

static bool find(const cts_suite *suite, const char *name,
                 const cts_area **area, size_t *index) {
  for (size_t i = 0; i < suite->area_count; i++) {
    size_t length = strlen(suite->areas[i]->name);
    *area = suite->areas[i];
    if (strncmp((*area)->name, name, length) != 0 || name[length] != '.') {
      continue;
    }
    size_t count = (*area)->count();
    for (*index = 0; *index < count; ++*index) {
      char label[CTS_NAME / 2];
      (*area)->label(*index, label, sizeof label);
      if (strcmp(label, name + length + 1) == 0) return true;
    }
  }
  return false;
}

/* --- One case ------------------------------------------------------------- */

static void *count_resize(void *self, void *ptr, size_t old_size,
                          size_t new_size) {
  atomic_llong *live = self;
  if (new_size == 0) {
    if (ptr) atomic_fetch_sub(live, (long long)old_size);
    free(ptr);
    return NULL;
  }
  void *grown = realloc(ptr, new_size);
  if (!grown) return NULL;
  atomic_fetch_add(live, (long long)new_size - (long long)old_size);
  return grown;
}

vyre_allocator cts_allocator(cts *c) {
  return (vyre_allocator){count_resize, &c->live_bytes};
}

/* Opens the device once with the cache directory of the environment. The probe
 * results are then on disk, and the device of each case need not be probed
 * again. */
static void recall_numbers(cts *c) {
  const vyre_context_options options = {.trace_file = "", .faults = ""};
  vyre_context *context = NULL;
  vyre_device *device = NULL;
  if (vyre_context_create(&options, &context, NULL) != VYRE_OK) return;
  (void)!vyre_device_open(context, c->backend, &device, NULL);
  vyre_device_release(device);
  vyre_context_release(context);
}

static void begin(cts *c) {
  recall_numbers(c);
  vyre_context_options options = {.allocator = cts_allocator(c),
                                  .cache_directory = "",
                                  .trace_file = "",
                                  .faults = ""};
  CTS_OK(c, vyre_context_create(&options, &c->context, &c->st));
  CTS_OK(c, vyre_device_open(c->context, c->backend, &c->device, &c->st));
  c->caps = vyre_device_get_caps(c->device);
  const char *name = vyre_device_name(c->device);
  size_t length = strlen(name); /* "name" and "name:0" are the same device */
  bool is_asked =
      strncmp(name, c->backend, length) == 0 &&
      (!c->backend[length] || strcmp(c->backend + length, ":0") == 0);
  if (!is_asked && strcmp(c->backend, "auto") != 0) {
    cts_fail(c, __FILE__, __LINE__, "'%s' was asked for, '%s' was opened",
             c->backend, name);
  }
}

enum { PATIENCE_MS = 1000 };

/* Checks launches and leaks at the end of every case. */
static void finish(cts *c, char device[CTS_NAME]) {
  (void)snprintf(device, CTS_NAME, "%s", vyre_device_name(c->device));
  uint64_t launched = launches_of(c->device);
  if (launched != c->launches) {
    cts_fail(c, __FILE__, __LINE__,
             "%llu kernels were launched on '%s', the case says %llu",
             (unsigned long long)launched, device,
             (unsigned long long)c->launches);
  }
  if (launched == 0 && !c->launches_are_0) {
    cts_fail(c, __FILE__, __LINE__,
             "no kernel was launched, and the case does not say that it needs "
             "none");
  }
  for (size_t i = 0; i < c->pipeline_count; i++) {
    vyre_pipeline_release(c->pipelines[i]);
  }
  for (size_t i = 0; i < c->module_count; i++) {
    vyre_module_release(c->modules[i]);
  }
  vyre_device_release(c->ref);
  vyre_device_release(c->device);
  vyre_context_release(c->context);
  vyre_arena_deinit(&c->arena);
  /* Submitted work may hold the last memory and release it a moment later. */
  long long left = atomic_load(&c->live_bytes);
  for (int i = 0; left != 0 && i < PATIENCE_MS; i++) {
    nanosleep(&(struct timespec){0, 1000000}, NULL);
    left = atomic_load(&c->live_bytes);
  }
  if (left != 0) {
    printf("%s:%d: %lld bytes were not given back when all was released\n",
           __FILE__, __LINE__, left);
    end(CTS_EXIT_LEAKED);
  }
}

bool cts_has_case(const cts_suite *suite, const char *name) {
  const cts_area *area;
  size_t index;
  return (suite->program && strncmp(name, "programs.", 9) == 0) ||
         strcmp(name, CTS_SERVE) == 0 || find(suite, name, &area, &index);
}

int cts_run_case(const cts_suite *suite, const char *backend, const char *name,
                 uint64_t seed) {
  static cts c; /* static: threads of a failed case may still use it */
  char device[CTS_NAME];
  const cts_area *area;
  size_t index;
  bool is_program = suite->program && strncmp(name, "programs.", 9) == 0;
  if (strcmp(name, CTS_SERVE) == 0) return cts_serve(suite, backend, seed);
  c.backend = backend;
  c.name = name;
  c.seed = seed;
  if (!is_program && !find(suite, name, &area, &index)) {
    cts_fail(&c, __FILE__, __LINE__, "unknown case '%s'", name);
  }
  begin(&c);
  if (is_program) {
    suite->program(&c, name + 9);
  } else {
    area->run(&c, index);
  }
  uint64_t launches = c.launches + c.elsewhere;
  finish(&c, device);
  printf(CTS_LAST_LINE "\n", (unsigned long long)launches, device);
  fflush(stdout);
  return 0;
}
