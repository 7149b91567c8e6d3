/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measured times on disk: one file in the cache directory, with the checks of
 * cache entries. Format, all numbers little endian: magic, u64 count, entries,
 * hash over everything before it. An entry has eleven u64: two for the hash of
 * the program, two for the device, two for its name, one for its driver, the
 * settings, the size class, the samples with the choice in the top bit, the
 * nanoseconds. A file that is not exactly so is ignored. */
#include "runtime/tune/times.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "vyre/version.h"

#include "base/bytes.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/status.h"
#include "hal/backend.h"
#include "runtime/cache/cache.h"

enum {
  MAGIC_BYTES = 8,
  HEAD_BYTES = 16,
  HASH_BYTES = 16,
  ENTRY_WORDS = 11,
  ENTRY_BYTES = ENTRY_WORDS * 8,
  MAX_ENTRIES = 8192,
  MAX_BYTES = HEAD_BYTES + MAX_ENTRIES * ENTRY_BYTES + HASH_BYTES,
};
static const char magic[MAGIC_BYTES + 1] = "vyretim2";
static const uint64_t choice_bit = UINT64_C(1) << 63;

/* --- keys ------------------------------------------------------------------*/

static void hash_options(const vyre_device *device, vyre__hasher *hasher) {
  const vyre__option *o = device->backend->options;
  for (; o && o->name; o++) {
    if (o->type == VYRE_OPTION_PATH) continue;
    uint64_t value = vyre__device_option(device, o->name, UINT64_MAX);
    vyre__hash_bytes(hasher, &value, sizeof value);
  }
}

vyre__device_identity vyre__device_identity_of(vyre_device *device) {
  vyre_device_info info = {.description = "", .driver = ""};
  vyre__bytes features = {.allocator = device->allocator};
  vyre__device_identity out;
  vyre__hasher hasher;
  (void)device->backend->describe(device->backend, device->index, &info);
  if (device->backend->features) device->backend->features(device, &features);
  vyre__hash_begin(&hasher, "vyre.times.driver");
  vyre__hash_text(&hasher, VYRE_VERSION_STRING);
  vyre__hash_text(&hasher, device->backend->name);
  vyre__hash_text(&hasher, info.description ? info.description : "");
  vyre__hash_text(&hasher, info.driver ? info.driver : "");
  out.driver = vyre__hash_end(&hasher).low;
  vyre__hash_begin(&hasher, "vyre.times.device");
  vyre__hash_bytes(&hasher, &out.driver, sizeof out.driver);
  if (features.data) vyre__hash_bytes(&hasher, features.data, features.size);
  hash_options(device, &hasher);
  long processors = sysconf(_SC_NPROCESSORS_ONLN);
  vyre__hash_bytes(&hasher, &processors, sizeof processors);
  out.device = vyre__hash_end(&hasher);
  vyre__hash_begin(&hasher, "vyre.times.name");
  vyre__hash_text(&hasher, vyre_device_name(device));
  out.name = vyre__hash_end(&hasher);
  vyre__bytes_deinit(&features);
  return out;
}

static bool is_same(const vyre__time *a, const vyre__time *b) {
  return a->size_class == b->size_class && a->settings == b->settings &&
         vyre__hash_equal(a->program, b->program) &&
         vyre__hash_equal(a->device.device, b->device.device);
}

/* --- the table -------------------------------------------------------------*/

static void append(vyre__times *times, const vyre__time *time) {
  if (times->count == MAX_ENTRIES) { /* the oldest go */
    size_t kept = MAX_ENTRIES - MAX_ENTRIES / 8;
    memmove(times->items, times->items + (times->count - kept),
            kept * sizeof *times->items);
    times->count = kept;
  }
  if (vyre__reserve(times->allocator, &times->items, &times->capacity,
                    times->count + 1, sizeof *times->items, false)) {
    times->items[times->count++] = *time;
  }
}

const vyre__time *vyre__times_find(const vyre__times *times,
                                   const vyre__time *wanted) {
  for (size_t i = 0; i < times->count; i++) {
    if (is_same(&times->items[i], wanted)) return &times->items[i];
  }
  return NULL;
}

/* Unmarks the earlier choice for the same program, device and class. */
static void unmark_choice(vyre__times *times, vyre__time like) {
  for (size_t i = 0; i < times->count; i++) {
    like.settings = times->items[i].settings;
    if (is_same(&times->items[i], &like)) times->items[i].is_choice = false;
  }
}

static void put(vyre__times *times, const vyre__time *time) {
  if (time->is_choice) unmark_choice(times, *time);
  for (size_t i = 0; i < times->count; i++) {
    if (!is_same(&times->items[i], time)) continue;
    times->items[i] = *time;
    return;
  }
  append(times, time);
}

void vyre__times_add(vyre__times *times, const vyre__time *time) {
  vyre__time added = *time;
  added.is_new = true;
  put(times, &added);
  times->is_changed = true;
}

void vyre__times_deinit(vyre__times *times) {
  vyre__reserve_free(times->allocator, &times->items, &times->capacity,
                     sizeof *times->items);
  times->count = 0;
}

/* --- reading ---------------------------------------------------------------*/

static void hash_file(const unsigned char *bytes, size_t size,
                      unsigned char out[HASH_BYTES]) {
  vyre_hash128 hash = vyre__hash_of("vyre times", bytes, size);
  vyre__cache_store_u64(out, hash.low);
  vyre__cache_store_u64(out + 8, hash.high);
}

static vyre__time read_entry(const unsigned char *from) {
  uint64_t w[ENTRY_WORDS];
  for (int i = 0; i < ENTRY_WORDS; i++) {
    w[i] = vyre__cache_load_u64(from + 8 * (size_t)i);
  }
  return (vyre__time){.program = {.low = w[0], .high = w[1]},
                      .device = {.device = {.low = w[2], .high = w[3]},
                                 .name = {.low = w[4], .high = w[5]},
                                 .driver = w[6]},
                      .settings = w[7],
                      .size_class = (uint32_t)w[8],
                      .samples = (uint32_t)w[9],
                      .time_ns = w[10],
                      .is_choice = (w[9] & choice_bit) != 0};
}

/* Returns true if a device of this name has another driver by now. */
static bool is_outdated(const vyre__device_identity *devices, size_t count,
                        const vyre__time *time) {
  for (size_t i = 0; i < count; i++) {
    if (vyre__hash_equal(devices[i].name, time->device.name)) {
      return devices[i].driver != time->device.driver;
    }
  }
  return false;
}

static void parse(vyre__times *times, const unsigned char *bytes, size_t size,
                  const vyre__device_identity *devices, size_t device_count) {
  unsigned char hash[HASH_BYTES];
  if (size < HEAD_BYTES + sizeof hash ||
      memcmp(bytes, magic, MAGIC_BYTES) != 0) {
    return;
  }
  uint64_t count = vyre__cache_load_u64(bytes + MAGIC_BYTES);
  if (count > MAX_ENTRIES ||
      size != HEAD_BYTES + count * ENTRY_BYTES + sizeof hash) {
    return;
  }
  hash_file(bytes, size - sizeof hash, hash);
  if (memcmp(bytes + size - sizeof hash, hash, sizeof hash) != 0) return;
  for (uint64_t i = 0; i < count; i++) {
    vyre__time time = read_entry(bytes + HEAD_BYTES + i * ENTRY_BYTES);
    if (!is_outdated(devices, device_count, &time)) append(times, &time);
  }
}

void vyre__times_load(vyre__times *times, const vyre__device_identity *devices,
                      size_t device_count) {
  vyre__cache_refusal why;
  int folder = vyre__cache_open(&times->context->cache, false, &why);
  if (folder < 0) return;
  if (faccessat(folder, times->file, R_OK, 0) == 0) {
    unsigned char *bytes = vyre__resize(times->allocator, NULL, 0, MAX_BYTES);
    size_t size = 0;
    if (bytes &&
        vyre__cache_file_bytes(folder, times->file, bytes, MAX_BYTES, &size)) {
      parse(times, bytes, size, devices, device_count);
    }
    vyre__resize(times->allocator, bytes, MAX_BYTES, 0);
  }
  close(folder);
}

/* --- writing ---------------------------------------------------------------*/

static void write_entry(vyre__bytes *to, const vyre__time *t) {
  const uint64_t w[ENTRY_WORDS] = {t->program.low,
                                   t->program.high,
                                   t->device.device.low,
                                   t->device.device.high,
                                   t->device.name.low,
                                   t->device.name.high,
                                   t->device.driver,
                                   t->settings,
                                   t->size_class,
                                   t->samples | (t->is_choice ? choice_bit : 0),
                                   t->time_ns};
  unsigned char bytes[ENTRY_BYTES];
  for (int i = 0; i < ENTRY_WORDS; i++) {
    vyre__cache_store_u64(bytes + 8 * (size_t)i, w[i]);
  }
  vyre__bytes_put(to, bytes, sizeof bytes);
}

static bool write_file(const vyre__times *times, char why[VYRE__CACHE_REASON]) {
  vyre__cache_refusal refusal;
  unsigned char count[8], hash[HASH_BYTES];
  vyre__bytes bytes = {.allocator = times->allocator};
  vyre__bytes_put(&bytes, magic, MAGIC_BYTES);
  vyre__cache_store_u64(count, times->count);
  vyre__bytes_put(&bytes, count, sizeof count);
  for (size_t i = 0; i < times->count; i++) {
    write_entry(&bytes, &times->items[i]);
  }
  if (!bytes.failed) hash_file(bytes.data, bytes.size, hash);
  vyre__bytes_put(&bytes, hash, sizeof hash);
  int folder = vyre__cache_open(&times->context->cache, true, &refusal);
  bool is_ok =
      folder >= 0 && !bytes.failed &&
      vyre__cache_file_write(folder, times->file, bytes.data, bytes.size, why);
  if (folder < 0) {
    (void)snprintf(why, VYRE__CACHE_REASON, "%s", refusal.reason);
  } else {
    close(folder);
  }
  if (bytes.failed) (void)snprintf(why, VYRE__CACHE_REASON, "out of memory");
  vyre__bytes_deinit(&bytes);
  return is_ok;
}

static vyre_code not_stored(const char *why, vyre_status *st) {
  return VYRE_FAIL(st, VYRE_UNKNOWN, VYRE_KIND_NONE,
                   "make the cache directory writable, or disable the disk "
                   "cache with VYRE_CACHE_DIR=",
                   "the measured times were not stored: %.180s", why);
}

enum { MAX_LOCK_MS = 2000 };

/* Locks the cache directory against other processes and contexts that store
 * times. Returns a descriptor to close, or -1. A process that keeps the lock
 * for too long, or a file system without locks, is ignored: then only a time
 * may get lost. */
static int lock_file(const vyre__times *times) {
  const struct timespec pause = {.tv_nsec = 1000000};
  vyre__cache_refusal why;
  int folder = vyre__cache_open(&times->context->cache, true, &why);
  for (int i = 0; folder >= 0 && i < MAX_LOCK_MS; i++) {
    if (flock(folder, LOCK_EX | LOCK_NB) == 0) break;
    if (errno != EWOULDBLOCK && errno != EINTR) break;
    (void)nanosleep(&pause, NULL);
  }
  return folder;
}

static void unlock_file(int folder) {
  if (folder >= 0) close(folder);
}

vyre_code vyre__times_save(vyre__times *times,
                           const vyre__device_identity *devices,
                           size_t device_count, vyre_status *st) {
  if (!times->is_changed || !times->context->cache.path) return VYRE_OK;
  char why[VYRE__CACHE_REASON] = "";
  /* Another process may have stored times in the meantime. */
  vyre__times all = {.context = times->context,
                     .allocator = times->allocator,
                     .file = times->file};
  int folder = lock_file(times);
  vyre__times_load(&all, devices, device_count);
  for (size_t i = 0; i < times->count; i++) {
    if (times->items[i].is_new) put(&all, &times->items[i]);
  }
  bool is_ok = write_file(&all, why);
  unlock_file(folder);
  vyre__times_deinit(&all);
  times->is_changed = !is_ok;
  return is_ok ? VYRE_OK : not_stored(why, st);
}

static uint64_t drop(vyre__times *times, vyre_hash128 program,
                     const vyre__device_identity *device) {
  size_t kept = 0;
  for (size_t i = 0; i < times->count; i++) {
    const vyre__time *t = &times->items[i];
    if (vyre__hash_equal(t->program, program) &&
        vyre__hash_equal(t->device.name, device->name)) {
      continue;
    }
    times->items[kept++] = *t;
  }
  uint64_t dropped = times->count - kept;
  times->count = kept;
  return dropped;
}

vyre_code vyre__times_forget(vyre__times *times, vyre_hash128 program,
                             const vyre__device_identity *device,
                             uint64_t *count, vyre_status *st) {
  char why[VYRE__CACHE_REASON] = "";
  vyre__times all = {.context = times->context,
                     .allocator = times->allocator,
                     .file = times->file};
  *count = drop(times, program, device);
  if (!times->context->cache.path) return VYRE_OK;
  int folder = lock_file(times);
  vyre__times_load(&all, NULL, 0);
  uint64_t stored = drop(&all, program, device);
  if (stored > *count) *count = stored;
  bool is_ok = stored == 0 || write_file(&all, why);
  unlock_file(folder);
  vyre__times_deinit(&all);
  return is_ok ? VYRE_OK : not_stored(why, st);
}
