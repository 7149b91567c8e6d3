/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Measured times on disk: one file in the cache directory, with the checks of
 * cache entries. Format, all numbers little endian: magic, u64 count, entries,
 * hash over everything before it. An entry is five u64 for the hashes of
 * program and device, two for the name of the device, u64 size class, u64
 * samples, u64 nanoseconds. A file that is not exactly so is ignored. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "runtime/cache/cache.h"
#include "runtime/route/router_internal.h"

enum {
  MAGIC_BYTES = 8,
  HEAD_BYTES = 16,
  ENTRY_WORDS = 9,
  ENTRY_BYTES = ENTRY_WORDS * 8,
  MAX_ENTRIES = 8192,
  MAX_BYTES = HEAD_BYTES + MAX_ENTRIES * ENTRY_BYTES + 16,
};
static const char magic[MAGIC_BYTES + 1] = "vyretim1";
static const char file_name[] = VYRE__CACHE_TIMES "1";

static bool is_same_hash(vyre_hash128 a, vyre_hash128 b) {
  return a.low == b.low && a.high == b.high;
}

static bool is_same_time(const route_time *a, const route_time *b) {
  return a->size_class == b->size_class &&
         is_same_hash(a->program, b->program) &&
         is_same_hash(a->device, b->device);
}

/* Adds a time, or replaces the one of the same key. The oldest goes if there
 * are too many. */
static void put(vyre_router *router, route_times *times,
                const route_time *time) {
  for (size_t i = 0; i < times->count; i++) {
    if (!is_same_time(&times->items[i], time)) continue;
    times->items[i] = *time;
    return;
  }
  if (times->count == MAX_ENTRIES) {
    memmove(times->items, times->items + 1,
            (times->count - 1) * sizeof *times->items);
    times->count--;
  }
  if (!vyre__reserve(router->allocator, &times->items, &times->capacity,
                     times->count + 1, sizeof *times->items, false)) {
    return;
  }
  times->items[times->count++] = *time;
}

const route_time *vyre__route_times_find(const vyre_router *router,
                                         vyre_hash128 program, uint32_t device,
                                         uint32_t size_class) {
  const route_time wanted = {.program = program,
                             .device = router->devices[device].identity,
                             .size_class = size_class};
  for (size_t i = 0; i < router->times.count; i++) {
    if (is_same_time(&router->times.items[i], &wanted)) {
      return &router->times.items[i];
    }
  }
  return NULL;
}

void vyre__route_times_add(vyre_router *router, vyre_hash128 program,
                           uint32_t device, uint32_t size_class,
                           uint32_t samples, uint64_t time_ns) {
  const route_time time = {.program = program,
                           .device = router->devices[device].identity,
                           .device_name = router->devices[device].name_hash,
                           .size_class = size_class,
                           .samples = samples,
                           .time_ns = time_ns};
  put(router, &router->times, &time);
  router->times.is_changed = true;
}

void vyre__route_times_deinit(vyre_router *router) {
  vyre__reserve_free(router->allocator, &router->times.items,
                     &router->times.capacity, sizeof *router->times.items);
}

/* --- the file --------------------------------------------------------------*/

static void hash_file(const unsigned char *bytes, size_t size,
                      unsigned char out[16]) {
  vyre__hasher hasher;
  vyre__hash_begin(&hasher, "vyre times");
  vyre__hash_bytes(&hasher, bytes, size);
  vyre_hash128 hash = vyre__hash_end(&hasher);
  vyre__cache_store_u64(out, hash.low);
  vyre__cache_store_u64(out + 8, hash.high);
}

static route_time read_entry(const unsigned char *from) {
  uint64_t w[ENTRY_WORDS];
  for (int i = 0; i < ENTRY_WORDS; i++) {
    w[i] = vyre__cache_load_u64(from + 8 * (size_t)i);
  }
  return (route_time){.program = {.low = w[0], .high = w[1]},
                      .device = {.low = w[2], .high = w[3]},
                      .device_name = {.low = w[4], .high = w[5]},
                      .size_class = (uint32_t)w[6],
                      .samples = (uint32_t)w[7],
                      .time_ns = w[8]};
}

static void write_entry(vyre__bytes *to, const route_time *t) {
  const uint64_t w[ENTRY_WORDS] = {
      t->program.low, t->program.high,    t->device.low,
      t->device.high, t->device_name.low, t->device_name.high,
      t->size_class,  t->samples,         t->time_ns};
  unsigned char bytes[ENTRY_BYTES];
  for (int i = 0; i < ENTRY_WORDS; i++) {
    vyre__cache_store_u64(bytes + 8 * (size_t)i, w[i]);
  }
  vyre__bytes_put(to, bytes, sizeof bytes);
}

/* Returns true if the entry belongs to an older driver or another device of
 * this name. */
static bool is_outdated(const vyre_router *router, const route_time *time) {
  for (uint32_t i = 0; i < router->device_count; i++) {
    const route_device *d = &router->devices[i];
    if (is_same_hash(d->name_hash, time->device_name)) {
      return !is_same_hash(d->identity, time->device);
    }
  }
  return false;
}

static void parse(vyre_router *router, const unsigned char *bytes, size_t size,
                  route_times *out) {
  unsigned char hash[16];
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
    route_time time = read_entry(bytes + HEAD_BYTES + i * ENTRY_BYTES);
    if (!is_outdated(router, &time)) put(router, out, &time);
  }
}

static void load(vyre_router *router, route_times *out) {
  vyre__cache_refusal why;
  int folder = vyre__cache_open(&router->context->cache, false, &why);
  if (folder < 0) return;
  unsigned char *bytes = vyre__resize(router->allocator, NULL, 0, MAX_BYTES);
  size_t size = 0;
  if (bytes &&
      vyre__cache_file_bytes(folder, file_name, bytes, MAX_BYTES, &size)) {
    parse(router, bytes, size, out);
  }
  close(folder);
  vyre__resize(router->allocator, bytes, MAX_BYTES, 0);
}

void vyre__route_times_load(vyre_router *router) {
  if (router->stores_times) load(router, &router->times);
}

static bool write_file(vyre_router *router, const route_times *times,
                       char why[VYRE__CACHE_REASON]) {
  vyre__cache_refusal refusal;
  unsigned char count[8], hash[16];
  vyre__bytes bytes = {.allocator = router->allocator};
  vyre__bytes_put(&bytes, magic, MAGIC_BYTES);
  vyre__cache_store_u64(count, times->count);
  vyre__bytes_put(&bytes, count, sizeof count);
  for (size_t i = 0; i < times->count; i++) {
    write_entry(&bytes, &times->items[i]);
  }
  if (!bytes.failed) hash_file(bytes.data, bytes.size, hash);
  vyre__bytes_put(&bytes, hash, sizeof hash);
  int folder = vyre__cache_open(&router->context->cache, true, &refusal);
  bool is_ok =
      folder >= 0 && !bytes.failed &&
      vyre__cache_file_write(folder, file_name, bytes.data, bytes.size, why);
  if (folder < 0) {
    (void)snprintf(why, VYRE__CACHE_REASON, "%s", refusal.reason);
  } else {
    close(folder);
  }
  if (bytes.failed) (void)snprintf(why, VYRE__CACHE_REASON, "out of memory");
  vyre__bytes_deinit(&bytes);
  return is_ok;
}

vyre_code vyre__route_times_save(vyre_router *router, vyre_status *st) {
  if (!router->stores_times || !router->context->cache.path) return VYRE_OK;
  char why[VYRE__CACHE_REASON] = "";
  bool is_ok = true;
  pthread_mutex_lock(&router->lock);
  if (router->times.is_changed) {
    /* Another process may have stored times in the meantime. */
    route_times all = {0};
    load(router, &all);
    for (size_t i = 0; i < router->times.count; i++) {
      put(router, &all, &router->times.items[i]);
    }
    is_ok = write_file(router, &all, why);
    router->times.is_changed = !is_ok;
    vyre__reserve_free(router->allocator, &all.items, &all.capacity,
                       sizeof *all.items);
  }
  pthread_mutex_unlock(&router->lock);
  if (is_ok) return VYRE_OK;
  return VYRE_FAIL(st, VYRE_UNKNOWN, VYRE_KIND_NONE,
                   "make the cache directory writable, or set "
                   "ignores_stored_times",
                   "the measured times were not stored: %.180s", why);
}

vyre_code vyre_router_save(vyre_router *router, vyre_status *st) {
  vyre__status_begin(st);
  VYRE_REQUIRE(st, router);
  return vyre__route_times_save(router, st);
}
