// SPDX-License-Identifier: MIT OR Apache-2.0
// median of 3 x 3 pixels, as in HeCBench
static inline uint middle(uint a, uint b, uint c) {
  return max(min(a, b), min(max(a, b), c));
}

static inline uint least(uint a, uint b, uint c) {
  return min(a, min(b, c));
}

static inline uint most(uint a, uint b, uint c) {
  return max(a, max(b, c));
}

kernel __attribute__((reqd_work_group_size(16, 16, 1))) void median(
    global const uchar *from, global uchar *to, int width, int height) {
  const int x = (int)((uint)get_global_id(0));
  const int y = (int)((uint)get_global_id(1));
  if (x >= width || y >= height) return;
  const int l = max(x - 1, 0);
  const int r = min(x + 1, width - 1);
  const int u = max(y - 1, 0) * width;
  const int c = y * width;
  const int d = min(y + 1, height - 1) * width;
  const uint a0 = from[u + l];
  const uint a1 = from[u + x];
  const uint a2 = from[u + r];
  const uint b0 = from[c + l];
  const uint b1 = from[c + x];
  const uint b2 = from[c + r];
  const uint c0 = from[d + l];
  const uint c1 = from[d + x];
  const uint c2 = from[d + r];
  const uint low =
      most(least(a0, a1, a2), least(b0, b1, b2), least(c0, c1, c2));
  const uint mid =
      middle(middle(a0, a1, a2), middle(b0, b1, b2), middle(c0, c1, c2));
  const uint high = least(most(a0, a1, a2), most(b0, b1, b2), most(c0, c1, c2));
  to[c + x] = middle(low, mid, high);
}
