/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Content hashes over a defined byte stream. Numbers are hashed in little
 * endian and texts with their length first. So different contents give
 * different streams, and all machines compute the same hash. */
#ifndef VYRE_BASE_HASH_H
#define VYRE_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vyre/hash.h"

enum { VYRE__HASHER_BYTES = 576, VYRE__HASHER_PENDING = 256 };

/* Incremental hash. `state` is storage for the state of xxhash, so that this
 * header need not include its header. */
typedef struct vyre__hasher {
  _Alignas(64) unsigned char state[VYRE__HASHER_BYTES];
  /* Bytes not yet passed to xxhash. Collecting them is faster: xxhash spends
   * much time on each call, and most values are small. */
  size_t pending_count;
  unsigned char pending[VYRE__HASHER_PENDING];
} vyre__hasher;

/* Starts a hash. @p domain separates streams of different meaning and is
 * hashed too. */
void vyre__hash_begin(vyre__hasher *hasher, const char *domain);
void vyre__hash_bytes(vyre__hasher *hasher, const void *bytes, size_t count);
void vyre__hash_text(vyre__hasher *hasher, const char *text);
vyre_hash128 vyre__hash_end(vyre__hasher *hasher);

/* Returns the hash of one byte string. */
vyre_hash128 vyre__hash_of(const char *domain, const void *bytes, size_t count);

static inline bool vyre__hash_equal(vyre_hash128 a, vyre_hash128 b) {
  return a.low == b.low && a.high == b.high;
}

/* passes pending bytes to xxhash */
void vyre__hash_hand_on(vyre__hasher *hasher);

/* Returns space for @p count more bytes, at most sizeof hasher->pending. */
static inline unsigned char *vyre__hash_reserve(vyre__hasher *hasher,
                                                size_t count) {
  if (count > sizeof hasher->pending - hasher->pending_count) {
    vyre__hash_hand_on(hasher);
  }
  unsigned char *space = hasher->pending + hasher->pending_count;
  hasher->pending_count += count;
  return space;
}

static inline void vyre__hash_u8(vyre__hasher *hasher, uint8_t value) {
  *vyre__hash_reserve(hasher, 1) = value;
}

static inline void vyre__hash_u32(vyre__hasher *hasher, uint32_t value) {
  unsigned char *bytes = vyre__hash_reserve(hasher, 4);
  for (int i = 0; i < 4; i++) bytes[i] = (unsigned char)(value >> (8 * i));
}

static inline void vyre__hash_u64(vyre__hasher *hasher, uint64_t value) {
  unsigned char *bytes = vyre__hash_reserve(hasher, 8);
  for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)(value >> (8 * i));
}

#endif
