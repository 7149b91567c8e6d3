// SPDX-License-Identifier: MIT OR Apache-2.0
kernel __attribute__((reqd_work_group_size(32, 8, 1))) void life(
    global const uchar *now, global uchar *then, uint width, uint height) {
  const uint x = (uint)get_global_id(0);
  const uint y = (uint)get_global_id(1);
  if (x >= width || y >= height) return;
  const uint l = (x == 0 ? width - 1 : x - 1);
  const uint r = (x == width - 1 ? 0u : x + 1);
  const uint u = (y == 0 ? height - 1 : y - 1) * width;
  const uint d = (y == height - 1 ? 0u : y + 1) * width;
  const uint c = y * width;
  const uint n = now[u + l] + now[u + x] + now[u + r] + now[c + l] +
                 now[c + r] + now[d + l] + now[d + x] + now[d + r];
  then[c + x] = (uint)(n == 3 || (n == 2 && now[c + x] == 1));
}
