// SPDX-License-Identifier: MIT OR Apache-2.0
// many messages of 64 bytes: one block, and one of padding
#define T (64u)
uint rotr(uint x, uint n) {
  return (x >> n) | (x << (32 - n));
}

uint big(uint x) {
  return (x << 24) | ((x << 8) & 0xFF0000) | ((x >> 8) & 0xFF00) | (x >> 24);
}

kernel __attribute__((reqd_work_group_size(T, 1, 1))) void sha256(
    global const uint *messages, global uint *digests, global const uint *k,
    uint count) {
  local uint w[16 * T];
  const uint t = (uint)get_local_id(0);
  const uint id = (uint)get_global_id(0);
  if (id >= count) return;
  uint h0 = 0x6a09e667u;
  uint h1 = 0xbb67ae85u;
  uint h2 = 0x3c6ef372u;
  uint h3 = 0xa54ff53au;
  uint h4 = 0x510e527fu;
  uint h5 = 0x9b05688cu;
  uint h6 = 0x1f83d9abu;
  uint h7 = 0x5be0cd19u;
  for (uint block = 0u; block < 2; block++) {
    for (uint i = 0u; i < 16; i++) {
      if (block == 0) {
        w[i * T + t] = big(messages[id * 16 + i]);
      } else {
        w[i * T + t] = (i == 0 ? 0x80000000u : (i == 15 ? 512u : 0u));
      }
    }
    uint a = h0;
    uint b = h1;
    uint c = h2;
    uint d = h3;
    uint e = h4;
    uint f = h5;
    uint g = h6;
    uint h = h7;
    for (uint i = 0u; i < 64; i++) {
      const uint x = (i & 15) * T + t;
      if (i >= 16) {
        const uint w1 = w[((i + 1) & 15) * T + t];
        const uint w14 = w[((i + 14) & 15) * T + t];
        const uint s0 = rotr(w1, 7) ^ rotr(w1, 18) ^ (w1 >> 3);
        const uint s1 = rotr(w14, 17) ^ rotr(w14, 19) ^ (w14 >> 10);
        w[x] += s0 + w[((i + 9) & 15) * T + t] + s1;
      }
      const uint t1 = h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) +
                      ((e & f) ^ (~e & g)) + k[i] + w[x];
      const uint t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) +
                      ((a & b) ^ (a & c) ^ (b & c));
      h = g;
      g = f;
      f = e;
      e = d + t1;
      d = c;
      c = b;
      b = a;
      a = t1 + t2;
    }
    h0 += a;
    h1 += b;
    h2 += c;
    h3 += d;
    h4 += e;
    h5 += f;
    h6 += g;
    h7 += h;
  }
  digests[id * 8] = big(h0);
  digests[id * 8 + 1] = big(h1);
  digests[id * 8 + 2] = big(h2);
  digests[id * 8 + 3] = big(h3);
  digests[id * 8 + 4] = big(h4);
  digests[id * 8 + 5] = big(h5);
  digests[id * 8 + 6] = big(h6);
  digests[id * 8 + 7] = big(h7);
}
