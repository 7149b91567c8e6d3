/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base/hash.h"

#include <assert.h>
#include <string.h>

/* Inlined, so that the library brings no run-time dependency. */
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

static void hand_on(vyre__hasher *hasher) {
  XXH3_128bits_update(state_of(hasher), hasher->pending, hasher->pending_count);
  hasher->pending_count = 0;
}

static inline void add(vyre__hasher *hasher, const void *bytes, size_t count) {
  if (count > sizeof hasher->pending - hasher->pending_count) hand_on(hasher);
  memcpy(hasher->pending + hasher->pending_count, bytes, count);
  hasher->pending_count += count;
}

void vyre__hash_bytes(vyre__hasher *hasher, const void *bytes, size_t count) {
  if (count == 0) return;
  if (count <= sizeof hasher->pending) {
    add(hasher, bytes, count);
    return;
  }
  hand_on(hasher);
  XXH3_128bits_update(state_of(hasher), bytes, count);
}

void vyre__hash_text(vyre__hasher *hasher, const char *text) {
  size_t length = strlen(text);
  vyre__hash_u64(hasher, length);
  vyre__hash_bytes(hasher, text, length);
}

void vyre__hash_u8(vyre__hasher *hasher, uint8_t value) {
  add(hasher, &value, 1);
}

void vyre__hash_u32(vyre__hasher *hasher, uint32_t value) {
  unsigned char bytes[4];
  for (int i = 0; i < 4; i++) bytes[i] = (unsigned char)(value >> (8 * i));
  add(hasher, bytes, sizeof bytes);
}

void vyre__hash_u64(vyre__hasher *hasher, uint64_t value) {
  unsigned char bytes[8];
  for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(value >> (8 * i));
  add(hasher, bytes, sizeof bytes);
}

vyre_hash128 vyre__hash_end(vyre__hasher *hasher) {
  hand_on(hasher);
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
