// SPDX-License-Identifier: MIT OR Apache-2.0
kernel __attribute__((reqd_work_group_size(64, 4, 1))) void life_guard(
    global const uchar *now, global uchar *then, uint width, uint height) {
  const uint x = (uint)get_global_id(0);
  const uint y = (uint)get_global_id(1);
  const uint c = y * width + x;
  if (x > 0 && x < width - 1 && y > 0 && y < height - 1) {
    const uint n = now[c - width - 1] + now[c - width] + now[c - width + 1] +
                   now[c - 1] + now[c + 1] + now[c + width - 1] +
                   now[c + width] + now[c + width + 1];
    then[c] = (uint)(n == 3 || (n == 2 && now[c] == 1));
  } else if (x < width && y < height) {
    const uint l = (x + width - 1) % width;
    const uint r = (x + 1) % width;
    const uint u = (y + height - 1) % height * width;
    const uint d = (y + 1) % height * width;
    const uint o = y * width;
    const uint n = now[u + l] + now[u + x] + now[u + r] + now[o + l] +
                   now[o + r] + now[d + l] + now[d + x] + now[d + r];
    then[c] = (uint)(n == 3 || (n == 2 && now[c] == 1));
  }
}
