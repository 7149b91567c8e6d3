/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Counters. Each device has its own, so that dispatches on different devices
 * share no cache line. Reading sums them up. */
#include "vyre/counters.h"

#include <stdio.h>
#include <string.h>

#include "runtime/core/counters.h"
#include "runtime/core/device.h"
#include "runtime/dispatch/prepared.h"

/* Guards the list of open devices. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static vyre_device *first;
static vyre_counters closed; /* sums over closed devices */

static void add_counters(vyre_counters *to, const vyre__atomic_counters *from) {
#define VYRE_X4(field, metric, labels, help) \
  to->field += atomic_load_explicit(&from->field, memory_order_relaxed);
  VYRE_COUNTER_MAP(VYRE_X4)
#undef VYRE_X4
}

static void add(vyre_counters *to, const vyre_device *device) {
  struct vyre__device_state *state = device->state;
  pthread_mutex_lock(&state->prepared_lock);
  add_counters(to, &state->counters);
  for (const vyre__prepared *prepared = state->first_prepared; prepared;
       prepared = prepared->next) {
    add_counters(to, &prepared->counters);
  }
  pthread_mutex_unlock(&state->prepared_lock);
}

void vyre__counters_enter_run(vyre__prepared *prepared) {
  struct vyre__device_state *state = prepared->pipeline->device->state;
  pthread_mutex_lock(&state->prepared_lock);
  prepared->next = state->first_prepared;
  if (prepared->next) prepared->next->previous = prepared;
  state->first_prepared = prepared;
  pthread_mutex_unlock(&state->prepared_lock);
}

void vyre__counters_leave_run(vyre__prepared *prepared) {
  struct vyre__device_state *state = prepared->pipeline->device->state;
  pthread_mutex_lock(&state->prepared_lock);
#define VYRE_X4(field, metric, labels, help) \
  VYRE__COUNT(                               \
      prepared->pipeline->device, field,     \
      atomic_load_explicit(&prepared->counters.field, memory_order_relaxed));
  VYRE_COUNTER_MAP(VYRE_X4)
#undef VYRE_X4
  if (prepared->next) prepared->next->previous = prepared->previous;
  if (prepared->previous) {
    prepared->previous->next = prepared->next;
  } else {
    state->first_prepared = prepared->next;
  }
  pthread_mutex_unlock(&state->prepared_lock);
}

void vyre__counters_enter(vyre_device *device) {
  pthread_mutex_lock(&lock);
  device->state->next = first;
  if (first) first->state->previous = device;
  first = device;
  pthread_mutex_unlock(&lock);
}

void vyre__devices_lock(void) {
  pthread_mutex_lock(&lock);
}

void vyre__devices_unlock(void) {
  pthread_mutex_unlock(&lock);
}

void vyre__devices_after_fork(void) {
  pthread_mutex_init(&lock, NULL);
  for (vyre_device *at = first; at; at = at->state->next) {
    pthread_mutex_init(&at->state->replay_lock, NULL);
    pthread_cond_init(&at->state->replay_ended, NULL);
    at->state->active_replays = NULL;
  }
}

void vyre__counters_leave(vyre_device *device) {
  struct vyre__device_state *state = device->state;
  pthread_mutex_lock(&lock);
  add(&closed, device);
  if (state->next) state->next->state->previous = state->previous;
  if (state->previous) {
    state->previous->state->next = state->next;
  } else {
    first = state->next;
  }
  pthread_mutex_unlock(&lock);
}

void vyre__counters_retained(uint64_t device, uint64_t change) {
  pthread_mutex_lock(&lock);
  const vyre_device *at = first;
  while (at && at->state->id != device) at = at->state->next;
  if (at) {
    VYRE__COUNT(at, host_buffer_retained_capacity_bytes, change);
  } else {
    closed.host_buffer_retained_capacity_bytes += change;
  }
  pthread_mutex_unlock(&lock);
}

void vyre__counters_clear(vyre_device *device) {
#define VYRE_X4(field, metric, labels, help) \
  atomic_store(&device->state->counters.field, 0);
  VYRE_COUNTER_MAP(VYRE_X4)
#undef VYRE_X4
}

void vyre_counters_read(const vyre_device *device, vyre_counters *out) {
  if (!out) return;
  *out = (vyre_counters){0};
  if (device) {
    add(out, device);
    return;
  }
  pthread_mutex_lock(&lock);
  *out = closed;
  for (const vyre_device *at = first; at; at = at->state->next) add(out, at);
  pthread_mutex_unlock(&lock);
}

/* --- text format ---------------------------------------------------------- */

typedef struct metric {
  const char *name, *labels, *help;
  size_t offset;
} metric;

static const metric metrics[] = {
#define VYRE_X4(field, name, labels, help) \
  {name, labels, help, offsetof(vyre_counters, field)},
    VYRE_COUNTER_MAP(VYRE_X4)
#undef VYRE_X4
};

enum { METRIC_COUNT = sizeof metrics / sizeof metrics[0], MAX_PRINTED = 64 };

typedef struct row {
  char name[48];
  uint64_t id;
  vyre_counters counters;
} row;

static bool put(vyre_writer writer, const char *text) {
  return writer.write(writer.self, text, strlen(text));
}

static bool print_head(vyre_writer writer, const metric *m) {
  char line[256];
  size_t length = strlen(m->name);
  bool grows = length > 6 && strcmp(m->name + length - 6, "_total") == 0;
  (void)snprintf(line, sizeof line,
                 "# HELP vyre_driver_%s %s\n# TYPE vyre_driver_%s %s\n",
                 m->name, m->help, m->name, grows ? "counter" : "gauge");
  return put(writer, line);
}

static bool print_row(vyre_writer writer, const metric *m, const row *r) {
  char line[256];
  uint64_t value;
  memcpy(&value, (const char *)&r->counters + m->offset, sizeof value);
  (void)snprintf(line, sizeof line,
                 "vyre_driver_%s{device=\"%.47s\",id=\"%llu\"%s%s} %llu\n",
                 m->name, r->name, (unsigned long long)r->id,
                 m->labels[0] ? "," : "", m->labels, (unsigned long long)value);
  return put(writer, line);
}

/* Collects one row per open device, and one for all closed ones: no sum ever
 * falls. */
static size_t collect(row *rows) {
  size_t count = 1;
  pthread_mutex_lock(&lock);
  rows[0] = (row){.name = "closed", .counters = closed};
  for (const vyre_device *at = first; at; at = at->state->next) {
    if (count < MAX_PRINTED) {
      rows[count] = (row){.id = at->state->id};
      memcpy(rows[count].name, at->state->name, sizeof at->state->name);
      add(&rows[count++].counters, at);
    } else { /* more devices than rows: keep the sums correct */
      add(&rows[0].counters, at);
    }
  }
  pthread_mutex_unlock(&lock);
  return count;
}

bool vyre_counters_print(vyre_writer writer) {
  if (!writer.write) return false;
  row rows[MAX_PRINTED];
  size_t count = collect(rows);
  for (size_t i = 0; i < METRIC_COUNT; i++) {
    bool is_new = i == 0 || strcmp(metrics[i].name, metrics[i - 1].name) != 0;
    if (is_new && !print_head(writer, &metrics[i])) return false;
    for (size_t k = 0; k < count; k++) {
      if (!print_row(writer, &metrics[i], &rows[k])) return false;
    }
  }
  return true;
}
