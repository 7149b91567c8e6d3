/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Writes the trace file: one JSON array of events. The file always ends with
 * the closing bracket, which the next events overwrite. So the file is valid
 * even if the process is killed. */
#include "runtime/core/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/enum_name.h"
#include "base/memory.h"
#include "base/status.h"
#include "base/utf8.h"

enum {
  BUFFER_BYTES = 1 << 16,
  EVENT_BYTES = 2048, /* one event with all its fields */
  TEXT_BYTES = 160,   /* one escaped text in an event */
  NAMED_THREADS = 4096,
  MAX_FILES = 99, /* traces at the same time under one name */
};

/* Time after which the next event flushes the buffer. */
static const uint64_t flush_after_ns = 250000000;

static const char tail[] = "\n]\n";

struct vyre__trace {
  size_t size; /* bytes of the full object */
  uint64_t id; /* unique in the process */
  int fd;
  bool is_new; /* this trace created the file */
  pid_t pid;
  pthread_mutex_t lock; /* guards the fields below */
  uint64_t end;         /* offset behind the last event in the file */
  uint64_t flushed_ns;
  uint64_t event_count, dropped_count;
  uint64_t pending; /* events in the buffer */
  uint64_t named[NAMED_THREADS / 64];
  size_t used;
  char buffer[BUFFER_BYTES + sizeof tail];
  char path[]; /* with space for the suffix that open_free adds */
};

/* --- tracks --------------------------------------------------------------- */

/* Track numbers are unique in the process: a thread has the same number in
 * every trace. */
static atomic_uint last_track, last_host;
static atomic_ullong last_trace;

/* A few bytes in the static TLS block (initial-exec), so that an access does
 * not call the dynamic loader. */
static _Thread_local struct {
  uint32_t track, host;
  uint64_t named_in; /* id of the last trace that has the name */
  const char *name;  /* NULL: "host" and its number */
} self __attribute__((tls_model("initial-exec")));

static uint32_t own_track(void) {
  if (self.track == 0) {
    self.track = atomic_fetch_add(&last_track, 1) + 1;
    if (!self.name) self.host = atomic_fetch_add(&last_host, 1) + 1;
  }
  return self.track;
}

void vyre__trace_name_thread(const char *name) {
  self.name = name;
  self.track = 0;
  self.named_in = 0;
}

/* --- JSON ----------------------------------------------------------------- */

typedef struct text {
  size_t length;
  char bytes[EVENT_BYTES];
} text;

/* Appends bytes. An event always fits, because texts are cut; bytes beyond the
 * end are dropped. printf would take half of the time of an event, so it is not
 * used. */
static void put_bytes(text *out, const char *bytes, size_t length) {
  if (length > sizeof out->bytes - out->length) return;
  memcpy(out->bytes + out->length, bytes, length);
  out->length += length;
}

static void put(text *out, const char *words) {
  put_bytes(out, words, strlen(words));
}

/* Appends a number with at least @p min_digits digits. */
static void put_u64(text *out, uint64_t value, int min_digits) {
  char digits[20];
  size_t at = sizeof digits;
  for (; value > 0 || min_digits > 0; value /= 10, min_digits--) {
    digits[--at] = (char)('0' + value % 10);
  }
  put_bytes(out, digits + at, sizeof digits - at);
}

/* Appends ,"key":value */
static void put_number(text *out, const char *key, uint64_t value) {
  put(out, ",\"");
  put(out, key);
  put(out, "\":");
  put_u64(out, value, 1);
}

static void put_escape(text *out, unsigned code) {
  static const char hex[] = "0123456789abcdef";
  const char escape[] = {'\\',
                         'u',
                         hex[code >> 12],
                         hex[code >> 8 & 15],
                         hex[code >> 4 & 15],
                         hex[code & 15]};
  put_bytes(out, escape, sizeof escape);
}

/* Appends a JSON string. Cuts a long text between two characters. */
static void put_string(text *out, const char *value) {
  size_t left = strlen(value), start;
  put(out, "\"");
  start = out->length;
  while (left > 0 && out->length - start < TEXT_BYTES) {
    size_t step = vyre__utf8_step(value, left);
    unsigned char c = (unsigned char)*value;
    if (step == 0) {
      put_escape(out, c < 0x20 || c == 0x7F ? c : 0xFFFD);
      step = 1;
    } else {
      if (c == '"' || c == '\\') put(out, "\\");
      put_bytes(out, value, step);
    }
    value += step;
    left -= step;
  }
  put(out, left > 0 ? "...\"" : "\"");
}

/* The start of every trace file; a later event has a comma for the bracket. */
static const char first_bytes[] = "[\n{\"ph\":\"M\",\"name\":\"";

static void put_name(text *out, const vyre__trace *trace, const char *kind,
                     uint32_t track, const char *name) {
  put(out, ",\n{\"ph\":\"M\",\"name\":\"");
  put(out, kind);
  put(out, "\"");
  put_number(out, "pid", (uint64_t)trace->pid);
  put_number(out, "tid", track);
  put(out, ",\"args\":{\"name\":");
  put_string(out, name);
  put(out, "}}");
}

static const char *const kinds[] = {VYRE__TRACE_MAP(VYRE__ENUM_TEXT)};

/* Appends ,"key":microseconds */
static void put_time(text *out, const char *key, uint64_t ns) {
  put_number(out, key, ns / 1000);
  put(out, ".");
  put_u64(out, ns % 1000, 3);
}

static void put_argument(text *out, const char *name, const char *value) {
  if (!value) return;
  put(out, ",\"");
  put(out, name);
  put(out, "\":");
  put_string(out, value);
}

static void put_grid(text *out, const uint32_t *grid) {
  put(out, ",\"grid\":[");
  for (int axis = 0; axis < 3; axis++) {
    if (axis > 0) put(out, ",");
    put_u64(out, grid[axis], 1);
  }
  put(out, "]");
}

static void put_event(text *out, const vyre__trace *trace, uint32_t track,
                      uint64_t start, uint64_t end,
                      const vyre__trace_event *event) {
  put(out, ",\n{\"ph\":\"X\",\"cat\":\"");
  put(out, kinds[event->kind]);
  put(out, "\",\"name\":");
  put_string(out, event->name ? event->name : kinds[event->kind]);
  put_time(out, "ts", start);
  put_time(out, "dur", end > start ? end - start : 0);
  put_number(out, "pid", (uint64_t)trace->pid);
  put_number(out, "tid", track);
  put(out, ",\"args\":{\"result\":\"");
  put(out, vyre_code_name(event->result));
  put(out, "\"");
  put_argument(out, "kernel", event->kernel);
  put_argument(out, "label", event->label);
  put_argument(out, "profile", event->profile);
  put_argument(out, "pipeline", event->pipeline);
  if (event->device) {
    put_argument(out, "device", vyre_device_name(event->device));
    put_number(out, "device_id", vyre_device_id(event->device));
  }
  if (event->grid) put_grid(out, event->grid);
  for (int i = 0; i < VYRE__TRACE_NUMBERS && event->numbers[i].name; i++) {
    put_number(out, event->numbers[i].name, event->numbers[i].value);
  }
  put(out, "}}");
}

/* --- the file ------------------------------------------------------------- */

/* Writes all bytes, or returns false. */
static bool write_out(const vyre__trace *trace, const char *bytes, size_t size,
                      uint64_t offset) {
  while (size > 0) {
    ssize_t done = pwrite(trace->fd, bytes, size, (off_t)offset);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    bytes += done;
    size -= (size_t)done;
    offset += (uint64_t)done;
  }
  return true;
}

/* Writes the buffer to the file; the lock is held. If that fails, it counts the
 * dropped events and restores the end of the file, so that later events may
 * succeed. */
static void flush(vyre__trace *trace) {
  size_t size = trace->used;
  /* A forked child must not write to the file of its parent. */
  bool is_ours = getpid() == trace->pid;
  if (size == 0) return;
  memcpy(trace->buffer + size, tail, sizeof tail - 1);
  size_t full_size = size + sizeof tail - 1;
  if (is_ours && !vyre__kills_process(trace->end + full_size) &&
      write_out(trace, trace->buffer, full_size, trace->end)) {
    trace->end += size;
  } else {
    trace->dropped_count += trace->pending;
    uint64_t end = trace->end + sizeof tail - 1;
    if (is_ours && !vyre__kills_process(end)) {
      (void)write_out(trace, tail, sizeof tail - 1, trace->end);
      (void)!ftruncate(trace->fd, (off_t)end);
    }
  }
  trace->used = 0;
  trace->pending = 0;
}

/* Appends an event to the buffer; the lock is held. */
static void append(vyre__trace *trace, const text *event) {
  if (event->length > BUFFER_BYTES - trace->used) flush(trace);
  memcpy(trace->buffer + trace->used, event->bytes, event->length);
  trace->used += event->length;
}

/* Writes the name of a thread before its first event; the lock is held. */
static void name_thread(vyre__trace *trace, uint32_t track) {
  text line;
  line.length = 0;
  if (self.named_in == trace->id) return;
  self.named_in = trace->id;
  if (track < NAMED_THREADS) {
    uint64_t bit = UINT64_C(1) << track % 64;
    if (trace->named[track / 64] & bit) return;
    trace->named[track / 64] |= bit;
  }
  char host[24];
  (void)snprintf(host, sizeof host, "host %u", self.host);
  put_name(&line, trace, "thread_name", track, self.name ? self.name : host);
  append(trace, &line);
}

void vyre__trace_write(const vyre_context *context, uint64_t start_ns,
                       const vyre__trace_event *event) {
  vyre__trace *trace = atomic_load(&context->trace);
  uint64_t end = event->end_ns ? event->end_ns : vyre__clock_ns();
  uint32_t track = own_track();
  text line;
  line.length = 0;
  put_event(&line, trace, track, start_ns, end, event);
  pthread_mutex_lock(&trace->lock);
  name_thread(trace, track);
  append(trace, &line);
  trace->event_count++;
  trace->pending++;
  if (end > trace->flushed_ns + flush_after_ns) {
    flush(trace);
    trace->flushed_ns = end;
  }
  pthread_mutex_unlock(&trace->lock);
}

/* --- open and close ------------------------------------------------------- */

/* Replaces %p in @p file by the process id. Returns the full length, and writes
 * at most @p capacity bytes. */
static size_t expand(const char *file, pid_t pid, char *out, size_t capacity) {
  size_t length = 0;
  for (const char *at = file; *at; at++) {
    char digits[24] = {*at, '\0'};
    if (at[0] == '%' && at[1] == 'p') {
      (void)snprintf(digits, sizeof digits, "%ld", (long)pid);
      at++;
    }
    for (const char *c = digits; *c; c++, length++) {
      if (length < capacity) out[length] = *c;
    }
  }
  if (length < capacity) out[length] = '\0';
  return length;
}

/* Files that this process has closed. A new trace with the same file continues
 * it: the default context may be created and destroyed many times. */
enum { MAX_WRITTEN = 8 };

static struct written {
  pid_t pid;
  dev_t device;
  ino_t file;
  uint64_t end; /* offset of the tail */
} written[MAX_WRITTEN];
static unsigned written_count; /* the oldest is overwritten */
static pthread_mutex_t written_lock = PTHREAD_MUTEX_INITIALIZER;

static void record_file(const vyre__trace *trace) {
  struct stat about;
  if (trace->pid != getpid() || fstat(trace->fd, &about) != 0) {
    return;
  }
  pthread_mutex_lock(&written_lock);
  unsigned at = 0;
  while (at < MAX_WRITTEN && (written[at].device != about.st_dev ||
                              written[at].file != about.st_ino)) {
    at++;
  }
  if (at == MAX_WRITTEN) at = written_count++ % MAX_WRITTEN;
  written[at] =
      (struct written){trace->pid, about.st_dev, about.st_ino, trace->end};
  pthread_mutex_unlock(&written_lock);
}

/* Returns the offset at which to continue a file that this process closed and
 * that is unchanged since; otherwise 0. */
static uint64_t find_file_end(pid_t pid, const struct stat *about) {
  uint64_t end = 0;
  pthread_mutex_lock(&written_lock);
  for (unsigned i = 0; i < MAX_WRITTEN; i++) {
    const struct written *w = &written[i];
    if (w->pid == pid && w->device == about->st_dev &&
        w->file == about->st_ino &&
        (uint64_t)about->st_size == w->end + sizeof tail - 1) {
      end = w->end;
    }
  }
  pthread_mutex_unlock(&written_lock);
  return end;
}

/* Result of open_free for a pipe, a terminal or a device. The trace overwrites
 * the end of its file, and a pipe without a reader would block the program. */
enum { NO_PLAIN_FILE = -1, NO_TRACE_FILE = -2 };

/* Returns true if the file is empty or starts like a trace, which may have been
 * cut off. Other files, such as the source of a kernel, are not overwritten. */
static bool is_trace_or_empty(int fd) {
  char start[sizeof first_bytes - 1];
  ssize_t size = pread(fd, start, sizeof start, 0);
  return size >= 0 && memcmp(start, first_bytes, (size_t)size) == 0;
}

/* Opens a file for reading and writing, and creates it if necessary. Does not wait for a
 * reader of a named pipe. */
static int open_or_create(const char *path, bool *is_new) {
  const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
  int fd = open(path, flags | O_EXCL, 0666);
  *is_new = fd >= 0;
  return fd < 0 && errno == EEXIST ? open(path, flags, 0666) : fd;
}

/* Opens the file, or the first "file.N" that no other trace has locked. Returns
 * 0, an errno value, NO_PLAIN_FILE or NO_TRACE_FILE. */
static int open_free(vyre__trace *trace) {
  size_t length = strlen(trace->path);
  for (int n = 1; n <= MAX_FILES; n++) {
    struct stat about;
    if (n > 1) (void)snprintf(trace->path + length, 8, ".%d", n);
    int fd = open_or_create(trace->path, &trace->is_new);
    if (fd < 0) return errno == ENXIO ? NO_PLAIN_FILE : errno;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) {
      close(fd);
      return NO_PLAIN_FILE;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      close(fd);
      continue;
    }
    /* Read again: the size may have changed before the lock. */
    if (fstat(fd, &about) == 0) {
      trace->end = find_file_end(trace->pid, &about);
      if (!is_trace_or_empty(fd)) {
        close(fd);
        return NO_TRACE_FILE;
      }
    }
    if (trace->end == 0 && ftruncate(fd, 0) != 0) {
      int error = errno;
      close(fd);
      return error;
    }
    trace->fd = fd;
    return 0;
  }
  return EBUSY;
}

/* Writes the first event, which shows early if the file cannot be written.
 * Returns 0 or an errno value. */
static int write_head(vyre__trace *trace) {
  text line;
  line.length = 0;
  errno = EFBIG; /* for a write that is not attempted */
  put_name(&line, trace, "process_name", 0, "vyre");
  if (trace->end == 0) line.bytes[0] = '['; /* replaces the comma */
  append(trace, &line);
  pthread_mutex_lock(&trace->lock);
  trace->pending = 1;
  flush(trace);
  pthread_mutex_unlock(&trace->lock);
  return trace->dropped_count == 0 ? 0 : errno ? errno : EIO;
}

/* Fails because the file cannot be written. Uses the local names `from`, `file`
 * and `st`. */
#define NOT_WRITABLE(fix, why)                                          \
  VYRE_FAIL(st, VYRE_INVALID_ARGUMENT, VYRE_KIND_INVALID_ARGUMENT, fix, \
            "%sthe trace cannot be written to '%.140s': %s", from, file, why)

static vyre_code too_large(const char *from, const char *file,
                           vyre_status *st) {
  struct rlimit limit;
  char why[100];
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return NOT_WRITABLE("write to a file system that allows larger files",
                        "the file system does not allow a file of that size");
  }
  (void)snprintf(why, sizeof why,
                 "the limit on the size of a file is %llu bytes (RLIMIT_FSIZE)",
                 (unsigned long long)limit.rlim_cur);
  return NOT_WRITABLE(
      "start the process from a shell whose `ulimit -f` is unlimited", why);
}

static vyre_code not_writable(const char *from, const char *file, int error,
                              vyre_status *st) {
  char why[80] = "";
  if (error == EFBIG) return too_large(from, file, st);
  if (error == NO_PLAIN_FILE) {
    return NOT_WRITABLE(
        "name a regular file",
        "it is a pipe, a socket or a device, not a regular file");
  }
  if (error == NO_TRACE_FILE) {
    return NOT_WRITABLE("name another file", "it exists and is not a trace");
  }
  (void)!strerror_r(error, why, sizeof why);
  if (error == EISDIR) {
    return NOT_WRITABLE("name a file in that directory", why);
  }
  return NOT_WRITABLE("name a file in an existing, writable directory", why);
}

static void destroy(vyre_context *context, vyre__trace *trace) {
  pthread_mutex_destroy(&trace->lock);
  vyre__resize(context->base_allocator, trace, trace->size, 0);
}

vyre_code vyre__trace_open(vyre_context *context, const char *from,
                           const char *file, vyre_status *st) {
  pid_t pid = getpid();
  size_t path_size = expand(file, pid, NULL, 0) + 8;
  size_t size = sizeof(vyre__trace) + path_size;
  vyre__trace *trace = vyre__alloc_zeroed(context->base_allocator, size);
  if (!trace) return vyre__no_memory(st, "vyre_context_create", "traces", 1);
  trace->size = size;
  trace->pid = pid;
  trace->id = atomic_fetch_add(&last_trace, 1) + 1;
  trace->flushed_ns = vyre__clock_ns();
  pthread_mutex_init(&trace->lock, NULL);
  (void)expand(file, pid, trace->path, path_size);
  int error = open_free(trace);
  if (error == 0) {
    error = write_head(trace);
    if (error != 0) {
      if (trace->is_new) (void)unlink(trace->path);
      close(trace->fd);
    }
  }
  if (error != 0) {
    destroy(context, trace);
    return not_writable(from, file, error, st);
  }
  atomic_store(&context->trace, trace);
  return VYRE_OK;
}

void vyre__trace_close(vyre_context *context) {
  vyre__trace *trace = atomic_load(&context->trace);
  if (!trace) return;
  pthread_mutex_lock(&trace->lock);
  flush(trace);
  pthread_mutex_unlock(&trace->lock);
  record_file(trace);
  close(trace->fd);
  atomic_store(&context->trace, NULL);
  destroy(context, trace);
}

bool vyre_context_get_trace_info(const vyre_context *context,
                                 vyre_trace_info *out) {
  if (!out) return false;
  *out = (vyre_trace_info){0};
  vyre__trace *trace = context ? atomic_load(&context->trace) : NULL;
  if (!trace) return false;
  pthread_mutex_lock(&trace->lock);
  flush(trace);
  out->file = trace->path;
  out->event_count = trace->event_count;
  out->dropped_count = trace->dropped_count;
  pthread_mutex_unlock(&trace->lock);
  return true;
}
