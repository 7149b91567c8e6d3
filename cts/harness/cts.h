/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Conformance suite: checks that every backend behaves the same. Each case runs
 * in its own process (runner.h) with its own device and stops at the first
 * failed check. At its end the suite checks the launch counter of the device,
 * and that all memory was freed. */
#ifndef VYRE_CTS_HARNESS_CTS_H
#define VYRE_CTS_HARNESS_CTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/vyre.h"

#define CTS_PRINTF(text, first) __attribute__((format(printf, text, first)))

enum { CTS_NAME = 192, CTS_MAX_OBJECTS = 64 };

/* State of one case. */
typedef struct cts {
  const char *backend, *name;
  uint64_t seed;         /* seed of random data */
  vyre_context *context; /* counts the memory that the case uses */
  vyre_device *device;   /* device under test */
  const vyre_device_caps *caps;
  vyre_device *ref; /* reference device, opened by cts_ref */
  vyre_arena arena; /* freed at the end of the case */
  vyre_status st;   /* status of the last call; reset by CTS_OK and CTS_FAILS */

  uint64_t launches;  /* launches that the case expects */
  uint64_t elsewhere; /* launches on other devices; see cts_elsewhere */
  /* The case expects no launch: without this, a case that runs nothing
   * fails. */
  bool launches_are_0;
  atomic_llong live_bytes;

  vyre_pipeline *pipelines[CTS_MAX_OBJECTS]; /* released at the end */
  size_t pipeline_count;
  vyre_module *modules[CTS_MAX_OBJECTS];
  size_t module_count;
} cts;

/* Group of cases, which are numbered from 0. */
typedef struct cts_area {
  const char *name, *about;
  size_t (*count)(void);
  void (*label)(size_t index, char *out, size_t size);
  void (*run)(cts *c, size_t index);
} cts_area;

typedef struct cts_suite {
  const cts_area *const *areas;
  size_t area_count;
  /* Runs a random program. @p words is "SEED" or "SEED:size=3:no-f64", with the
   * flags of `vyre generate`. */
  void (*program)(cts *c, const char *words);
} cts_suite;

extern const cts_suite cts_all;

/* --- Areas that are a table of cases
 * ------------------------------------------ */

typedef struct cts_entry {
  const char *name;
  void (*run)(cts *c);
} cts_entry;

/* Defines area_<name> from `static const cts_entry entries[]`. */
#define CTS_LIST(area, text)                                             \
  static size_t area##_count(void) {                                     \
    return sizeof entries / sizeof *entries;                             \
  }                                                                      \
  static void area##_label(size_t index, char *out, size_t size) {       \
    (void)snprintf(out, size, "%s", entries[index].name);                \
  }                                                                      \
  static void area##_run(cts *c, size_t index) {                         \
    entries[index].run(c);                                               \
  }                                                                      \
  const cts_area area_##area = {#area, text, area##_count, area##_label, \
                                area##_run}

extern const cts_area area_forms, area_buffers, area_resident, area_ops,
    area_casts, area_ids, area_atomics, area_elements, area_memory,
    area_control, area_geometric_loops, area_barriers, area_shapes,
    area_options, area_errors, area_fences, area_threads, area_faults,
    area_bits, area_recordings, area_cache;

/* --- Checks: the first failed check ends the case
 * ----------------------------- */

_Noreturn void cts_fail(cts *c, const char *file, int line, const char *format,
                        ...) CTS_PRINTF(4, 5);
/* Ends a case that does not apply to the device, because the device lacks the
 * feature named by the text ("f64"). The case must have checked first that the
 * device rejects the feature correctly. */
_Noreturn void cts_lacks(cts *c, const char *format, ...) CTS_PRINTF(2, 3);

#define CTS_CHECK(c, condition)                                            \
  do {                                                                     \
    if (!(condition)) cts_fail((c), __FILE__, __LINE__, "%s", #condition); \
  } while (0)

#define CTS_U64(c, got, want)                                             \
  do {                                                                    \
    uint64_t got_ = (got), want_ = (want);                                \
    if (got_ != want_) {                                                  \
      cts_fail((c), __FILE__, __LINE__, "%s is %llu, must be %llu", #got, \
               (unsigned long long)got_, (unsigned long long)want_);      \
    }                                                                     \
  } while (0)

#define CTS_OK(c, call) cts_ok((c), (call), __FILE__, __LINE__, #call)
#define CTS_FAILS(c, call, code, kind) \
  cts_fails((c), (call), (code), (kind), __FILE__, __LINE__, #call)

void cts_ok(cts *c, vyre_code code, const char *file, int line,
            const char *call);
/* Checks the code and the kind of a failure, and that it has a message and a
 * fix. Resets the status. */
void cts_fails(cts *c, vyre_code got, vyre_code code, vyre_kind kind,
               const char *file, int line, const char *call);

/* Compares memory byte by byte. */
#define CTS_SAME(c, what, got, want, size) \
  cts_same((c), (what), (got), (want), (size), __FILE__, __LINE__)
void cts_same(cts *c, const char *what, const void *got, const void *want,
              size_t size, const char *file, int line);

/* --- Building blocks of cases
 * ------------------------------------------------- */

/* Returns the first kernel of a text. Owned by the case. */
vyre_program *cts_program(cts *c, const char *text);
/* Features that a program needs and a device may lack. CTS_NEEDS_ATOMICS64:
 * more than atomic_add with an unused result. */
enum {
  CTS_NEEDS_U64 = 1,
  CTS_NEEDS_F64 = 2,
  CTS_NEEDS_ATOMICS64 = 4,
};
/* Compiles a program for the device under test. The case owns the pipeline. If
 * the device lacks a feature of @p needs, it must reject the program as
 * unsupported, and the case ends. A device without 64-bit atomics may still
 * support some of them. */
vyre_pipeline *cts_compile(cts *c, vyre_program *program, unsigned needs);
vyre_pipeline *cts_kernel(cts *c, const char *text);
/* Returns the reference device. Its launches do not count for the case. */
vyre_device *cts_ref(cts *c);
/* Runs @p program on the reference device. */
void cts_oracle(cts *c, vyre_program *program, const vyre_dispatch_desc *desc);

/* Returns an allocator that counts memory, to find leaks. */
vyre_allocator cts_allocator(cts *c);

/* Returns zeroed memory that is freed at the end of the case. */
void *cts_memory(cts *c, size_t size);

/* Checks that exactly @p count kernels were launched since the case began. */
#define CTS_LAUNCHED(c, count) cts_launched((c), (count), __FILE__, __LINE__)
void cts_launched(cts *c, uint64_t count, const char *file, int line);

/* Checks the launches of @p device, which the case opened and is about to
 * release, and counts them for the case. Threads: one at a time. */
#define CTS_ELSEWHERE(c, device, count) \
  cts_elsewhere((c), (device), (count), __FILE__, __LINE__)
void cts_elsewhere(cts *c, const vyre_device *device, uint64_t count,
                   const char *file, int line);

/* Returns the next random number; equal seeds give equal numbers. */
uint64_t cts_random(uint64_t *state);

/* Returns true when the suite has a case called @p name. */
bool cts_has_case(const cts_suite *suite, const char *name);

/* Runs one case in this process. Returns 0 if it passes. Otherwise prints the
 * reason on standard output and exits with CTS_EXIT_FAILED, or with
 * CTS_EXIT_NOT_APPLICABLE if the device lacks a feature. With the name "-" the
 * process becomes a server (runner.h), which runs each requested case in a
 * child process. */
int cts_run_case(const cts_suite *suite, const char *backend, const char *name,
                 uint64_t seed);

/* Stores the name of case @p index of all areas; returns false after the last.
 */
bool cts_case_name(const cts_suite *suite, size_t index, char out[CTS_NAME]);

#endif
