/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Fuzzes the reader of cache entries, with raw bytes and with bytes behind a
 * valid head. An accepted entry lies within the bytes, has fields that add up
 * to the key, and gives the same bytes when it is written again. A refused
 * entry has a reason. */
#include <stdlib.h>
#include <string.h>

#include "runtime/cache/cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_key(const vyre__cache_entry *entry) {
  vyre__cache_key_field parts[VYRE__CACHE_FIELDS], a, b;
  size_t count, sum = 8;
  if (!vyre__cache_key_read(entry->key, entry->key_size, parts, &count)) {
    abort();
  }
  vyre_arena arena = {0};
  const vyre_cache_field *fields;
  if (!vyre__cache_fields(parts, count, &arena, &fields)) abort();
  for (size_t i = 0; i < count; i++) {
    sum += 16 + parts[i].name_size + parts[i].size;
    if (strlen(fields[i].name) != parts[i].name_size || !fields[i].text) {
      abort();
    }
  }
  if (sum != entry->key_size) abort();
  if (vyre__cache_key_compare(parts, count, parts, 0, &a, &b) != count) abort();
  char name[VYRE__CACHE_NAME];
  if (vyre__cache_key_name(entry->key, entry->key_size, name) &&
      !vyre__cache_is_entry(name)) {
    abort();
  }
  vyre_arena_deinit(&arena);
}

static void write_entry(const vyre__cache_key *key, const uint8_t *artifact,
                        size_t size, vyre__bytes *out) {
  vyre__bytes bytes = {0}, none = {0};
  vyre__bytes_put(&bytes, artifact, size);
  vyre__cache_entry_write(key, &bytes, &none, out);
  vyre__bytes_deinit(&bytes);
}

static void check(const uint8_t *data, size_t size) {
  vyre__cache_entry entry;
  const char *wrong = vyre__cache_entry_read(data, size, &entry);
  if (wrong) {
    if (!wrong[0] || entry.key) abort();
    return;
  }
  if (entry.key < data || entry.artifact + entry.artifact_size != data + size) {
    abort();
  }
  check_key(&entry);
  vyre__bytes again = {0};
  const vyre__cache_key key = {.bytes = entry.key, .size = entry.key_size};
  write_entry(&key, entry.artifact, entry.artifact_size, &again);
  if (again.size != size || memcmp(again.data, data, size) != 0) abort();
  vyre__bytes_deinit(&again);
}

/* Reads an entry with a valid head and arbitrary key and artifact. */
static void check_valid_head(const uint8_t *data, size_t size) {
  vyre__bytes entry = {0};
  size_t key_size = size < 2 ? 0 : (data[0] | (size_t)data[1] << 8) % size;
  const vyre__cache_key key = {.bytes = data, .size = key_size};
  write_entry(&key, data + key_size, size - key_size, &entry);
  check(entry.data, entry.size);
  vyre__bytes_deinit(&entry);
}

/* The same with another boundary between key and artifact in the head. */
static void check_split(const uint8_t *data, size_t size) {
  vyre__bytes entry = {0};
  if (size < VYRE__CACHE_HEAD) return;
  size_t key_size = (size_t)vyre__cache_load_u64(data + 16);
  size_t rest = size - VYRE__CACHE_HEAD;
  if (key_size > rest) return;
  const vyre__cache_key key = {.bytes = data + VYRE__CACHE_HEAD,
                               .size = key_size};
  write_entry(&key, key.bytes + key_size, rest - key_size, &entry);
  check(entry.data, entry.size);
  vyre__bytes_deinit(&entry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  check(data, size);
  check_valid_head(data, size);
  check_split(data, size);
  return 0;
}
