/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The conformance suite: what every backend has to do, as cases.
 *
 * A case runs in a process of its own (run.h), on a device that was opened for
 * it. It ends there if anything is not as it must be, and at its end the suite
 * looks at what no case can forget: that as many kernels ran on that device as
 * the case says, and that all memory came back. */
#ifndef VYRE_CTS_HARNESS_CTS_H
#define VYRE_CTS_HARNESS_CTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/vyre.h"

#define CTS_PRINTF(text, first) __attribute__((format(printf, text, first)))

enum { CTS_NAME = 192, CTS_MOST_KEPT = 64 };

/* What a case works with. */
typedef struct cts {
  const char *backend, *name;
  uint64_t seed;         /* of random data */
  vyre_context *context; /* counts its memory */
  vyre_device *device;   /* under test */
  const vyre_device_caps *caps;
  vyre_device *ref; /* the oracle: opened by cts_ref */
  vyre_arena arena; /* lives as long as the case */
  vyre_status st;   /* of the last call; CTS_OK and CTS_FAILS see to it */

  uint64_t launches;   /* that the case says it made */
  uint64_t elsewhere;  /* on other devices of the backend, see cts_elsewhere */
  bool launches_are_0; /* it says so: a case that runs nothing is suspicious */
  atomic_llong live_bytes;

  vyre_pipeline *pipelines[CTS_MOST_KEPT]; /* released at the end */
  size_t pipeline_count;
  vyre_module *modules[CTS_MOST_KEPT];
  size_t module_count;
} cts;

/* A part of the suite. Cases are counted from 0. */
typedef struct cts_area {
  const char *name, *about;
  size_t (*count)(void);
  void (*label)(size_t index, char *out, size_t size);
  void (*run)(cts *c, size_t index);
} cts_area;

typedef struct cts_suite {
  const cts_area *const *areas;
  size_t area_count;
  /* Random programs: @p words is "SEED", or "SEED:size=3:no-f64" with words as
   * `vyre generate` has flags. */
  void (*program)(cts *c, const char *words);
} cts_suite;

extern const cts_suite cts_all;

/* --- an area that is a list --------------------------------------------------- */

typedef struct cts_entry {
  const char *name;
  void (*run)(cts *c);
} cts_entry;

/* Defines area_<name> out of `static const cts_entry entries[]`. */
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

extern const cts_area area_forms, area_residents, area_ops, area_casts,
    area_ids, area_atomics, area_elements, area_memory, area_control,
    area_barriers, area_shapes, area_options, area_errors, area_fences,
    area_threads, area_faults, area_bits, area_recordings, area_cache;

/* --- checks: a case ends at the first that does not hold ------------------------- */

_Noreturn void cts_fail(cts *c, const char *file, int line, const char *format,
                        ...) CTS_PRINTF(4, 5);
/* Ends a case that does not apply to the device, because its capabilities or its
 * limits lack what the text names in a few words: "f64". What the case asked of the
 * device must have been refused before, in the right way. */
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
/* With a message and a remedy; makes the status ready for the next call. */
void cts_fails(cts *c, vyre_code got, vyre_code code, vyre_kind kind,
               const char *file, int line, const char *call);

/* Byte for byte. */
#define CTS_SAME(c, what, got, want, size) \
  cts_same((c), (what), (got), (want), (size), __FILE__, __LINE__)
void cts_same(cts *c, const char *what, const void *got, const void *want,
              size_t size, const char *file, int line);

/* --- what cases are made of ----------------------------------------------------- */

/* The first kernel of a text; the case's. */
vyre_program *cts_program(cts *c, const char *text);
/* What a program needs that a device may lack; CTS_NEEDS_ATOMICS64: more than
 * atomic_add whose result is not used. */
enum {
  CTS_NEEDS_U64 = 1,
  CTS_NEEDS_F64 = 2,
  CTS_NEEDS_ATOMICS64 = 4,
};
/* Compiles a program for the device. The pipeline belongs to the case. A device
 * that lacks something of @p needs has to refuse it as unsupported, and the case
 * ends. A device without 64-bit atomics may still have some of them. */
vyre_pipeline *cts_compile(cts *c, vyre_program *program, unsigned needs);
vyre_pipeline *cts_kernel(cts *c, const char *text);
/* The oracle, which the case did not ask how many kernels it ran. */
vyre_device *cts_ref(cts *c);
/* Runs @p program on ref. */
void cts_oracle(cts *c, vyre_program *program, const vyre_dispatch_desc *desc);

/* Counts what the case must give back. */
vyre_allocator cts_allocator(cts *c);

/* Memory of the case, zeroed. */
void *cts_memory(cts *c, size_t size);

/* That many kernels were launched, in all, since the case began. */
#define CTS_LAUNCHED(c, count) cts_launched((c), (count), __FILE__, __LINE__)
void cts_launched(cts *c, uint64_t count, const char *file, int line);

/* That many kernels were launched on @p device, which the case opened and is about
 * to release; they count for the case. Threads: not two at once. */
#define CTS_ELSEWHERE(c, device, count) \
  cts_elsewhere((c), (device), (count), __FILE__, __LINE__)
void cts_elsewhere(cts *c, const vyre_device *device, uint64_t count,
                   const char *file, int line);

/* The same numbers for the same seed. */
uint64_t cts_random(uint64_t *state);

/* Whether cts_run_case has one of that name. */
bool cts_has_case(const cts_suite *suite, const char *name);

/* Runs one case in this process: 0 if it is as it must be; else it says on
 * standard output what is not, and ends the process with 1, or with 77 if the
 * device cannot. With "-" for a name it is a server (run.h): it runs none itself,
 * but each that it is asked for in a process of its own. */
int cts_run_case(const cts_suite *suite, const char *backend, const char *name,
                 uint64_t seed);

/* Name of case @p index of all areas; false beyond the last. */
bool cts_case_name(const cts_suite *suite, size_t index, char out[CTS_NAME]);

#endif
