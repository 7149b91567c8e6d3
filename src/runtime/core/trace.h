/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Traces: timed events of a context, as a file for chrome://tracing and
 * Perfetto.
 *     uint64_t start = vyre__trace_begin(context);
 *     ... the work ...
 *     vyre__trace_end(context, start, .kind = VYRE__TRACE_UPLOAD,
 *                     .device = device, .result = code,
 *                     .numbers = {{"bytes", size}});
 *
 * Begin and end are on the same thread and properly nested, as viewers require
 * it for the events of one track. Without a trace, begin costs one load and end
 * one test. */
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

/* One event. Texts and pointers may be NULL. Texts are borrowed for the call,
 * and may contain any bytes. */
typedef struct vyre__trace_event {
  vyre__trace_kind kind;
  uint64_t end_ns;  /* on vyre__clock_ns; 0: now */
  const char *name; /* shown by viewers; NULL: the kind */
  const vyre_device *device;
  const char *kernel, *label, *profile, *pipeline;
  const uint32_t *grid;                            /* three numbers */
  vyre_status_number numbers[VYRE__TRACE_NUMBERS]; /* up to the first NULL */
  vyre_code result;
} vyre__trace_event;

/* Returns the start time of an event, or 0 without a trace. */
static inline uint64_t vyre__trace_begin(const vyre_context *context) {
  return atomic_load_explicit(&context->trace, memory_order_relaxed)
             ? vyre__clock_ns()
             : 0;
}

/* Writes an event that started at @p start_ns. The context has a trace. */
void vyre__trace_write(const vyre_context *context, uint64_t start_ns,
                       const vyre__trace_event *event);

#define vyre__trace_end(context, start, ...)                      \
  do {                                                            \
    if (start) {                                                  \
      vyre__trace_write((context), (start),                       \
                        &(const vyre__trace_event){__VA_ARGS__}); \
    }                                                             \
  } while (0)

/* Names the track of the calling thread in every trace, for example "ref #1
 * queue". The text must live as long as the thread. Other threads are "host 1",
 * "host 2", ... */
void vyre__trace_name_thread(const char *name);

/* Opens the trace file of a context. A file that exists has to be empty or a
 * trace. @p from starts the message of a failure: "VYRE_TRACE: " if the
 * environment names the file, or "". */
vyre_code vyre__trace_open(vyre_context *context, const char *from,
                           const char *file, vyre_status *st);
/* Writes all pending events and closes the file. */
void vyre__trace_close(vyre_context *context);

#endif
