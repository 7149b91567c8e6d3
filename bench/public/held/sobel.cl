// SPDX-License-Identifier: MIT OR Apache-2.0
// edges of a grey image
kernel __attribute__((reqd_work_group_size(16, 16, 1))) void sobel(
    global const uchar *src, global uchar *dst, int width, int height) {
  const int x = (int)((uint)get_global_id(0));
  const int y = (int)((uint)get_global_id(1));
  if (x < 1 || y < 1 || x >= width - 1 || y >= height - 1) return;
  const int at = y * width + x;
  const int nw = (int)(src[at - width - 1]);
  const int n = (int)(src[at - width]);
  const int ne = (int)(src[at - width + 1]);
  const int w = (int)(src[at - 1]);
  const int e = (int)(src[at + 1]);
  const int sw = (int)(src[at + width - 1]);
  const int s = (int)(src[at + width]);
  const int se = (int)(src[at + width + 1]);
  const int gx = ne + 2 * e + se - nw - 2 * w - sw;
  const int gy = sw + 2 * s + se - nw - 2 * n - ne;
  const float length = sqrt((float)(gx * gx + gy * gy));
  dst[at] = (uint)(min(length, 255.0f));
}
