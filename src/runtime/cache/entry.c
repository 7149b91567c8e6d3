/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Format of a cache file: head, key, artifact. */
#include <string.h>

#include "base/hash.h"
#include "runtime/cache/cache.h"

enum {
  MAGIC = 8,
  VERSION_AT = 8,
  KEY_AT = 16,
  ARTIFACT_AT = 24,
  SIZE_AT = 32,
  ZERO_AT = 40,
  ALIGNMENT = 16 /* alignment of the artifact */
};

/* Detects text conversions, like the magic number of PNG. */
static const unsigned char magic[MAGIC] = {0x89, 'V',  'Y',  'C',
                                           '\r', '\n', 0x1a, '\n'};

static uint64_t padded(uint64_t size) {
  return (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void checksum(const unsigned char *bytes, size_t size,
                     unsigned char out[16]) {
  vyre__hasher hasher;
  vyre__hash_begin(&hasher, "vyre.cache.entry");
  vyre__hash_bytes(&hasher, bytes, VYRE__CACHE_CHECKSUM_AT);
  vyre__hash_bytes(&hasher, bytes + VYRE__CACHE_HEAD, size - VYRE__CACHE_HEAD);
  vyre_hash128 sum = vyre__hash_end(&hasher);
  vyre__cache_store_u64(out, sum.low);
  vyre__cache_store_u64(out + 8, sum.high);
}

const char *vyre__cache_head_read(const unsigned char *head, uint64_t size) {
  if (size < VYRE__CACHE_HEAD) return "it is shorter than its head";
  if (memcmp(head, magic, MAGIC) != 0) return "it is not a cache entry";
  if (vyre__cache_load_u64(head + VERSION_AT) != VYRE__CACHE_VERSION) {
    return "it has another format version";
  }
  uint64_t key = vyre__cache_load_u64(head + KEY_AT);
  uint64_t artifact = vyre__cache_load_u64(head + ARTIFACT_AT);
  if (vyre__cache_load_u64(head + SIZE_AT) != size) {
    return "its size is wrong";
  }
  uint64_t rest = size - VYRE__CACHE_HEAD;
  if (key > rest || padded(key) > rest || artifact != rest - padded(key) ||
      vyre__cache_load_u64(head + ZERO_AT) != 0) {
    return "its sizes do not add up";
  }
  return NULL;
}

const char *vyre__cache_entry_read(const unsigned char *bytes, size_t size,
                                   vyre__cache_entry *out) {
  unsigned char sum[16];
  *out = (vyre__cache_entry){0};
  const char *wrong = vyre__cache_head_read(bytes, size);
  if (wrong) return wrong;
  checksum(bytes, size, sum);
  if (memcmp(sum, bytes + VYRE__CACHE_CHECKSUM_AT, sizeof sum) != 0) {
    return "its checksum is wrong";
  }
  size_t key = (size_t)vyre__cache_load_u64(bytes + KEY_AT);
  size_t end = (size_t)padded(key);
  vyre__cache_key_field parts[VYRE__CACHE_FIELDS];
  size_t count;
  bool is_valid =
      vyre__cache_key_read(bytes + VYRE__CACHE_HEAD, key, parts, &count);
  for (size_t i = key; i < end; i++) {
    is_valid = is_valid && bytes[VYRE__CACHE_HEAD + i] == 0;
  }
  if (!is_valid) return "its key is invalid";
  *out = (vyre__cache_entry){
      .key = bytes + VYRE__CACHE_HEAD,
      .key_size = key,
      .artifact = bytes + VYRE__CACHE_HEAD + end,
      .artifact_size = (size_t)vyre__cache_load_u64(bytes + ARTIFACT_AT)};
  return NULL;
}

void vyre__cache_entry_write(const vyre__cache_key *key,
                             const vyre__bytes *artifact,
                             const vyre__bytes *extra, vyre__bytes *to) {
  static const unsigned char zeros[VYRE__CACHE_HEAD];
  vyre__bytes_put(to, zeros, VYRE__CACHE_HEAD);
  vyre__bytes_put(to, key->bytes, key->size);
  vyre__bytes_put(to, zeros, (size_t)padded(key->size) - key->size);
  vyre__bytes_put(to, artifact->data, artifact->size);
  vyre__bytes_put(to, extra->data, extra->size);
  if (to->failed) return;
  unsigned char *head = to->data;
  memcpy(head, magic, MAGIC);
  vyre__cache_store_u64(head + VERSION_AT, VYRE__CACHE_VERSION);
  vyre__cache_store_u64(head + KEY_AT, key->size);
  vyre__cache_store_u64(head + ARTIFACT_AT, artifact->size + extra->size);
  vyre__cache_store_u64(head + SIZE_AT, to->size);
  vyre__cache_store_u64(head + ZERO_AT, 0);
  checksum(head, to->size, head + VYRE__CACHE_CHECKSUM_AT);
}
