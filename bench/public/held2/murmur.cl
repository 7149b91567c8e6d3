// SPDX-License-Identifier: MIT OR Apache-2.0
// hashes of texts of different length with MurmurHash3, as in HeCBench
static inline uint rotate_left(uint x, uint by) {
  return x << by | x >> (32 - by);
}

kernel __attribute__((reqd_work_group_size(256, 1, 1))) void murmur(
    global const uchar *text, global const uint *starts, global uint *hashes,
    uint count) {
  const uint i = (uint)get_global_id(0);
  if (i >= count) return;
  const uint first = starts[i];
  const uint length = starts[i + 1] - first;
  uint h = 0x9747B28Cu;
  for (uint b = 0u; b < length / 4; b++) {
    const uint at = first + b * 4;
    const uint k =
        text[at] | text[at + 1] << 8 | text[at + 2] << 16 | text[at + 3] << 24;
    h ^= rotate_left(k * 0xCC9E2D51, 15) * 0x1B873593;
    h = rotate_left(h, 13) * 5 + 0xE6546B64;
  }
  uint rest = 0u;
  const uint tail = first + (length & ~3);
  if ((length & 3) == 3) rest ^= text[tail + 2] << 16;
  if ((length & 3) >= 2) rest ^= text[tail + 1] << 8;
  if ((length & 3) >= 1) {
    rest ^= text[tail];
    h ^= rotate_left(rest * 0xCC9E2D51, 15) * 0x1B873593;
  }
  h ^= length;
  h = (h ^ h >> 16) * 0x85EBCA6B;
  h = (h ^ h >> 13) * 0xC2B2AE35;
  hashes[i] = h ^ h >> 16;
}
