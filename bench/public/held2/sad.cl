// SPDX-License-Identifier: MIT OR Apache-2.0
// sums of absolute differences of 4 x 4 blocks in a search window, as in Parboil
#define RANGE (16)
#define SIDE  (33u)  // 2 * RANGE + 1

kernel __attribute__((reqd_work_group_size(64, 1, 1))) void sad(
    global const uchar *current, global const uchar *reference,
    global ushort *sums, int width, int height) {
  const uint position = (uint)get_global_id(0);
  if (position >= SIDE * SIDE) return;
  const uint across = (uint)width / 4;
  const int x0 = (int)((uint)get_group_id(1) % across) * 4;
  const int y0 = (int)((uint)get_group_id(1) / across) * 4;
  const int dx = (int)(position % SIDE) - RANGE;
  const int dy = (int)(position / SIDE) - RANGE;
  uint sum = 0u;
  for (int y = 0; y < 4; y++) {
    for (int x = 0; x < 4; x++) {
      const int rx = min(max(x0 + x + dx, 0), width - 1);
      const int ry = min(max(y0 + y + dy, 0), height - 1);
      const int a = (int)(current[(y0 + y) * width + x0 + x]);
      const int b = (int)(reference[ry * width + rx]);
      sum += (uint)(abs(a - b));
    }
  }
  sums[(uint)get_group_id(1) * SIDE * SIDE + position] = sum;
}
