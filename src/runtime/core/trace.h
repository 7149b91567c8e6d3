/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What happened when, as a file for chrome://tracing and Perfetto.
 *
 *     uint64_t start = vyre__trace_begin(context);
 *     ... the work ...
 *     vyre__trace_end(context, start, .kind = VYRE__TRACE_UPLOAD,
 *                     .device = device, .result = code,
 *                     .numbers = {{"bytes", size}});
 *
 * Both ends are on one thread, and what begins later ends earlier: events of a
 * track then lie inside of each other or apart, as viewers want them. Without a
 * trace, the begin is a load and the end a test. */
#ifndef VYRE_RUNTIME_CORE_TRACE_H
#define VYRE_RUNTIME_CORE_TRACE_H

#include "base/clock.h"
#include "runtime/core/context.h"

typedef struct vyre__trace vyre__trace;

/* X(enumerator, name): the category of an event. */
#define VYRE__TRACE_MAP(X)            \
  X(VYRE__TRACE_COMPILE, "compile")   \
  X(VYRE__TRACE_UPLOAD, "upload")     \
  X(VYRE__TRACE_SUBMIT, "submit")     \
  X(VYRE__TRACE_DISPATCH, "dispatch") \
  X(VYRE__TRACE_WAIT, "wait")         \
  X(VYRE__TRACE_DOWNLOAD, "download") \
  X(VYRE__TRACE_REPLAY, "replay")

typedef enum vyre__trace_kind {
#define VYRE_X2(name, text) name,
  VYRE__TRACE_MAP(VYRE_X2) VYRE__TRACE_COUNT
#undef VYRE_X2
} vyre__trace_kind;

enum { VYRE__TRACE_NUMBERS = 6 };

/* Texts and pointers that are NULL are left out. Texts are borrowed for the call
 * and may hold any bytes. */
typedef struct vyre__trace_event {
  vyre__trace_kind kind;
  uint32_t track;   /* of vyre__trace_track; 0: the calling thread's */
  uint64_t end_ns;  /* of vyre__clock_ns; 0: now */
  const char *name; /* what a viewer shows; NULL: the kind */
  const vyre_device *device;
  const char *kernel, *label, *profile, *pipeline;
  const uint32_t *grid;                            /* three */
  vyre_status_number numbers[VYRE__TRACE_NUMBERS]; /* up to the first NULL */
  vyre_code result;
} vyre__trace_event;

/* When it began; 0 if there is no trace. */
static inline uint64_t vyre__trace_begin(const vyre_context *context) {
  return atomic_load_explicit(&context->trace, memory_order_relaxed)
             ? vyre__clock_ns()
             : 0;
}

void vyre__trace_write(const vyre_context *context, uint64_t start_ns,
                       const vyre__trace_event *event);

#define vyre__trace_end(context, start, ...)                      \
  do {                                                            \
    if (start) {                                                  \
      vyre__trace_write((context), (start),                       \
                        &(const vyre__trace_event){__VA_ARGS__}); \
    }                                                             \
  } while (0)

/* Names the calling thread's track from now on, in every trace: "ref #1 queue".
 * The text must live as long as the thread. Threads of the caller are "host 1",
 * "host 2", ... */
void vyre__trace_name_thread(const char *name);

/* A track that is no thread's, for times that a device measured: its events must
 * not overlap but by nesting. 0 if there is no trace. */
uint32_t vyre__trace_track(const vyre_context *context, const char *name);

/* Opens the file of a context that has none yet. */
vyre_code vyre__trace_open(vyre_context *context, const char *file,
                           vyre_status *st);
/* Writes what is left and ends the file. */
void vyre__trace_close(vyre_context *context);

#endif
