// SPDX-License-Identifier: MIT OR Apache-2.0
// convolution of small images with 3 x 3 weights and padding, then a ReLU
kernel __attribute__((reqd_work_group_size(16, 16, 1))) void conv2d(
    global const float *input, global const float *weights,
    global const float *bias, global float *output_map, uint channels,
    uint width, uint height) {
  const uint x = (uint)get_global_id(0);
  const uint y = (uint)get_global_id(1);
  const uint out = (uint)get_group_id(2);
  if (x >= width || y >= height) return;
  float sum = bias[out];
  for (uint c = 0u; c < channels; c++) {
    for (uint ky = 0u; ky < 3; ky++) {
      for (uint kx = 0u; kx < 3; kx++) {
        const int ix = (int)(x + kx) - 1;
        const int iy = (int)(y + ky) - 1;
        if (ix >= 0 && iy >= 0 && ix < (int)width && iy < (int)height) {
          const float value = input[(c * height + (uint)iy) * width + (uint)ix];
          sum += value * weights[((out * channels + c) * 3 + ky) * 3 + kx];
        }
      }
    }
  }
  output_map[(out * height + y) * width + x] = max(sum, 0.0f);
}
