// SPDX-License-Identifier: MIT OR Apache-2.0
// AES with 128 bits in electronic codebook mode: tables in shared memory, as in HeCBench
#define T (256u)

static inline uint rotate_left(uint x, uint by) {
  return x << by | x >> (32 - by);
}

kernel __attribute__((reqd_work_group_size(T, 1, 1))) void aes(
    global const uint *text, global const uint *keys, global const uint *table,
    global const uchar *sbox, global uint *cipher) {
  local uint te[256];
  local uint sb[256];
  const uint i = (uint)get_global_id(0);
  te[(uint)get_local_id(0)] = table[(uint)get_local_id(0)];
  sb[(uint)get_local_id(0)] = sbox[(uint)get_local_id(0)];
  barrier(CLK_LOCAL_MEM_FENCE);
  uint a = text[i * 4] ^ keys[0];
  uint b = text[i * 4 + 1] ^ keys[1];
  uint c = text[i * 4 + 2] ^ keys[2];
  uint d = text[i * 4 + 3] ^ keys[3];
  for (uint r = 4u; r < 40; r += 4) {
    const uint e = te[a & 255] ^ rotate_left(te[b >> 8 & 255], 8) ^
                   rotate_left(te[c >> 16 & 255], 16) ^
                   rotate_left(te[d >> 24], 24);
    const uint f = te[b & 255] ^ rotate_left(te[c >> 8 & 255], 8) ^
                   rotate_left(te[d >> 16 & 255], 16) ^
                   rotate_left(te[a >> 24], 24);
    const uint g = te[c & 255] ^ rotate_left(te[d >> 8 & 255], 8) ^
                   rotate_left(te[a >> 16 & 255], 16) ^
                   rotate_left(te[b >> 24], 24);
    const uint h = te[d & 255] ^ rotate_left(te[a >> 8 & 255], 8) ^
                   rotate_left(te[b >> 16 & 255], 16) ^
                   rotate_left(te[c >> 24], 24);
    a = e ^ keys[r];
    b = f ^ keys[r + 1];
    c = g ^ keys[r + 2];
    d = h ^ keys[r + 3];
  }
  cipher[i * 4] = (sb[a & 255] | sb[b >> 8 & 255] << 8 |
                   sb[c >> 16 & 255] << 16 | sb[d >> 24] << 24) ^
                  keys[40];
  cipher[i * 4 + 1] = (sb[b & 255] | sb[c >> 8 & 255] << 8 |
                       sb[d >> 16 & 255] << 16 | sb[a >> 24] << 24) ^
                      keys[41];
  cipher[i * 4 + 2] = (sb[c & 255] | sb[d >> 8 & 255] << 8 |
                       sb[a >> 16 & 255] << 16 | sb[b >> 24] << 24) ^
                      keys[42];
  cipher[i * 4 + 3] = (sb[d & 255] | sb[a >> 8 & 255] << 8 |
                       sb[b >> 16 & 255] << 16 | sb[c >> 24] << 24) ^
                      keys[43];
}
