// SPDX-License-Identifier: MIT OR Apache-2.0
// The kernels of the suite in OpenCL C. OpenCL C has no len(), so lengths are arguments.

kernel void saxpy(global const float *x, global float *y, float a, uint n) {
  uint i = get_global_id(0);
  if (i < n) y[i] = fma(a, x[i], y[i]);
}

kernel void mandelbrot(global uint *steps, uint width, uint limit, float left,
                       float top, float scale, uint height) {
  uint px = get_global_id(0), py = get_global_id(1);
  if (px >= width || py >= height) return;
  float cx = fma((float)px, scale, left), cy = fma((float)py, scale, top);
  float x = 0, y = 0, xx = 0, yy = 0;
  uint n = 0;
  while (n < limit && xx + yy <= 4) {
    y = fma(x + x, y, cy);
    x = xx - yy + cx;
    xx = x * x;
    yy = y * y;
    n++;
  }
  steps[py * width + px] = n;
}

#define REDUCE_SIZE 256
kernel __attribute__((reqd_work_group_size(REDUCE_SIZE, 1, 1))) void reduce(
    global const float *x, global float *sums, uint n) {
  local float part[REDUCE_SIZE];
  uint i = get_local_id(0);
  part[i] = get_global_id(0) < n ? x[get_global_id(0)] : 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint half_size = REDUCE_SIZE / 2; half_size > 0; half_size /= 2) {
    if (i < half_size) part[i] += part[i + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (i == 0) sums[get_group_id(0)] = part[0];
}

#define SOFTMAX_SIZE 64
kernel __attribute__((reqd_work_group_size(SOFTMAX_SIZE, 1, 1))) void softmax(
    global const float *x, global float *y, uint width) {
  local float part[SOFTMAX_SIZE];
  uint i = get_local_id(0), row = get_group_id(0) * width;
  float most = -INFINITY;
  for (uint k = i; k < width; k += SOFTMAX_SIZE) most = fmax(most, x[row + k]);
  part[i] = most;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint half_size = SOFTMAX_SIZE / 2; half_size > 0; half_size /= 2) {
    if (i < half_size) part[i] = fmax(part[i], part[i + half_size]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  most = part[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0;
  for (uint k = i; k < width; k += SOFTMAX_SIZE) {
    float e = exp(x[row + k] - most);
    y[row + k] = e;
    sum += e;
  }
  part[i] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint half_size = SOFTMAX_SIZE / 2; half_size > 0; half_size /= 2) {
    if (i < half_size) part[i] += part[i + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  float share = 1 / part[0];
  for (uint k = i; k < width; k += SOFTMAX_SIZE) y[row + k] *= share;
}

kernel void matmul_naive(global const float *a, global const float *b,
                         global float *c, uint n) {
  uint row = get_global_id(1), column = get_global_id(0);
  if (row >= n || column >= n) return;
  float sum = 0;
  for (uint k = 0; k < n; k++) {
    sum = fma(a[row * n + k], b[k * n + column], sum);
  }
  c[row * n + column] = sum;
}

#define TILE 16
kernel __attribute__((reqd_work_group_size(TILE, TILE, 1))) void matmul_tiled(
    global const float *a, global const float *b, global float *c, uint n) {
  local float tile_a[TILE * TILE], tile_b[TILE * TILE];
  uint row = get_global_id(1), column = get_global_id(0);
  uint x = get_local_id(0), y = get_local_id(1), here = y * TILE + x;
  float sum = 0;
  for (uint first = 0; first < n; first += TILE) {
    tile_a[here] = row < n && first + x < n ? a[row * n + first + x] : 0;
    tile_b[here] = column < n && first + y < n ? b[(first + y) * n + column] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < TILE; k++) {
      sum = fma(tile_a[y * TILE + k], tile_b[k * TILE + x], sum);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (row < n && column < n) c[row * n + column] = sum;
}

#define SIDE  64
#define DEPTH 16
#define EACH  8
kernel __attribute__((reqd_work_group_size(SIDE, SIDE / EACH, 1))) void
matmul_blocked(global const float *a, global const float *b, global float *c,
               uint n) {
  local float tile_a[SIDE * DEPTH], tile_b[DEPTH * SIDE];
  uint x = get_local_id(0), y = get_local_id(1), here = y * SIDE + x;
  uint column = get_group_id(0) * SIDE + x, top = get_group_id(1) * SIDE;
  uint row = top + y * EACH;
  float sums[EACH] = {0};
  for (uint first = 0; first < n; first += DEPTH) {
    for (uint part = 0; part < 2; part++) {
      uint i = here + part * (SIDE * EACH);
      uint a_row = top + i / DEPTH, a_column = first + i % DEPTH;
      uint b_row = first + i / SIDE;
      tile_a[i] = a_row < n && a_column < n ? a[a_row * n + a_column] : 0;
      tile_b[i] = b_row < n && column < n ? b[b_row * n + column] : 0;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0; k < DEPTH; k++) {
      float v = tile_b[k * SIDE + x];
#pragma unroll
      for (uint e = 0; e < EACH; e++) {
        sums[e] = fma(tile_a[(y * EACH + e) * DEPTH + k], v, sums[e]);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (column >= n) return;
#pragma unroll
  for (uint e = 0; e < EACH; e++) {
    if (row + e < n) c[(row + e) * n + column] = sums[e];
  }
}

kernel void stencil(global const float *heat, global float *next, uint width,
                    uint height) {
  uint x = get_global_id(0), y = get_global_id(1);
  if (x > 0 && x + 1 < width && y > 0 && y + 1 < height) {
    uint i = y * width + x;
    next[i] = 0.2f * (heat[i] + heat[i - 1] + heat[i + 1] + heat[i - width] +
                      heat[i + width]);
  }
}

#define BINS       256
#define BYTES_EACH 64
kernel __attribute__((reqd_work_group_size(BINS, 1, 1))) void histogram(
    global const uchar *data, global volatile uint *bins, uint n) {
  local volatile uint mine[BINS];
  mine[get_local_id(0)] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  uint first = get_group_id(0) * (BINS * BYTES_EACH) + get_local_id(0);
  for (uint k = 0; k < BYTES_EACH; k++) {
    uint i = first + k * BINS;
    if (i < n) atomic_inc(&mine[data[i]]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(&bins[get_local_id(0)], mine[get_local_id(0)]);
}

kernel void bfs(global const uint *starts, global const uint *targets,
                global const uint *frontier, global volatile uint *distance,
                global uint *next, global volatile uint *count, uint depth,
                uint n) {
  uint i = get_global_id(0);
  if (i >= n) return;
  uint end = starts[frontier[i] + 1];
  for (uint edge = starts[frontier[i]]; edge < end; edge++) {
    uint target = targets[edge];
    if (distance[target] == UINT_MAX &&
        atomic_cmpxchg(&distance[target], UINT_MAX, depth + 1) == UINT_MAX) {
      next[atomic_inc(count)] = target;
    }
  }
}

kernel void match(global const uchar *text, global const uchar *pattern,
                  global volatile uint *count, uint n, uint size) {
  uint place = get_global_id(0);
  if (size > n || place > n - size) return;
  uint same = 0;
  while (same < size && text[place + same] == pattern[same]) same++;
  if (same == size) atomic_inc(count);
}

kernel void exponential(global const float *x, global float *y, uint n) {
  uint i = get_global_id(0);
  if (i < n) y[i] = exp(x[i]);
}

kernel void pieces(global uint *out, uint rounds) {
  uint seed = get_global_id(0) + 1;
  for (uint i = 0; i < rounds; i++) {
    seed ^= seed << 13;
    seed ^= seed >> 17;
    seed ^= seed << 5;
  }
  out[get_global_id(0)] = seed;
}
