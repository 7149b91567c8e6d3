/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/hash.h"

#include <assert.h>
#include <string.h>

/* Inlined, so that the library has no run-time dependency on xxhash. */
#define XXH_INLINE_ALL
#include <xxhash.h>

static_assert(sizeof(XXH3_state_t) <= VYRE__HASHER_BYTES, "state must fit");
static_assert(_Alignof(XXH3_state_t) <= 64, "state must be aligned");

static XXH3_state_t *state_of(vyre__hasher *hasher) {
  return (XXH3_state_t *)(void *)hasher->state;
}

void vyre__hash_begin(vyre__hasher *hasher, const char *domain) {
  hasher->pending_count = 0;
  XXH3_128bits_reset(state_of(hasher));
  vyre__hash_text(hasher, domain);
}

void vyre__hash_hand_on(vyre__hasher *hasher) {
  XXH3_128bits_update(state_of(hasher), hasher->pending, hasher->pending_count);
  hasher->pending_count = 0;
}

void vyre__hash_bytes(vyre__hasher *hasher, const void *bytes, size_t count) {
  if (count == 0) return;
  if (count <= sizeof hasher->pending) {
    memcpy(vyre__hash_reserve(hasher, count), bytes, count);
    return;
  }
  vyre__hash_hand_on(hasher);
  XXH3_128bits_update(state_of(hasher), bytes, count);
}

void vyre__hash_text(vyre__hasher *hasher, const char *text) {
  size_t length = strlen(text);
  vyre__hash_u64(hasher, length);
  vyre__hash_bytes(hasher, text, length);
}

vyre_hash128 vyre__hash_end(vyre__hasher *hasher) {
  vyre__hash_hand_on(hasher);
  XXH128_hash_t digest = XXH3_128bits_digest(state_of(hasher));
  return (vyre_hash128){.high = digest.high64, .low = digest.low64};
}

void vyre_hash128_text(vyre_hash128 hash, char out[VYRE_HASH128_TEXT]) {
  static const char digits[] = "0123456789abcdef";
  for (int i = 0; i < 16; i++) {
    out[i] = digits[(hash.high >> (60 - 4 * i)) & 15];
    out[16 + i] = digits[(hash.low >> (60 - 4 * i)) & 15];
  }
  out[32] = '\0';
}

vyre_hash128 vyre__hash_of(const char *domain, const void *bytes,
                           size_t count) {
  vyre__hasher hasher;
  vyre__hash_begin(&hasher, domain);
  vyre__hash_bytes(&hasher, bytes, count);
  return vyre__hash_end(&hasher);
}
