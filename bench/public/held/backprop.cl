// SPDX-License-Identifier: MIT OR Apache-2.0
// forward pass and weight update of one layer, as in Rodinia
#define H (16u)

kernel __attribute__((reqd_work_group_size(H, H, 1))) void layer_forward(
    global const float *inputs, global const float *weights,
    global float *partial, uint hid) {
  local float node[H];
  local float matrix[H * H];
  const uint tx = (uint)get_local_id(0);
  const uint ty = (uint)get_local_id(1);
  const uint by = (uint)get_group_id(1);
  const uint index = (hid + 1) * H * by + (hid + 1) * ty + tx + 1 + (hid + 1);
  if (tx == 0) node[ty] = inputs[H * by + ty + 1];
  barrier(CLK_LOCAL_MEM_FENCE);
  matrix[ty * H + tx] = weights[index];
  barrier(CLK_LOCAL_MEM_FENCE);
  matrix[ty * H + tx] = matrix[ty * H + tx] * node[ty];
  barrier(CLK_LOCAL_MEM_FENCE);
  uint power = 2u;
  while (power <= H) {
    if (ty % power == 0)
      matrix[ty * H + tx] += matrix[(ty + power / 2) * H + tx];
    barrier(CLK_LOCAL_MEM_FENCE);
    power *= 2;
  }
  if (tx == 0) partial[by * hid + ty] = matrix[ty];
}

kernel __attribute__((reqd_work_group_size(H, H, 1))) void adjust_weights(
    global const float *delta, global const float *ly, global float *w,
    global float *oldw, uint hid) {
  const uint tx = (uint)get_local_id(0);
  const uint ty = (uint)get_local_id(1);
  const uint by = (uint)get_group_id(1);
  const uint index = (hid + 1) * H * by + (hid + 1) * ty + tx + 1 + (hid + 1);
  const uint y = H * by + ty + 1;
  const uint x = tx + 1;
  const float change = 0.3f * delta[x] * ly[y] + 0.3f * oldw[index];
  w[index] += change;
  oldw[index] = change;
}
