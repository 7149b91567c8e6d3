// SPDX-License-Identifier: MIT OR Apache-2.0
// histogram of the products of all pairs of points, as in Parboil
#define T    (256u)
#define BINS (20u)

kernel __attribute__((reqd_work_group_size(T, 1, 1))) void tpacf(
    global const float *points, global const float *limits, global uint *bins,
    uint count) {
  local float sx[T];
  local float sy[T];
  local float sz[T];
  local uint histogram[BINS];
  const uint t = (uint)get_local_id(0);
  if (t < BINS) histogram[t] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  const uint i = (uint)get_global_id(0);
  const float x = points[i * 3];
  const float y = points[i * 3 + 1];
  const float z = points[i * 3 + 2];
  for (uint tile = 0u; tile < count; tile += T) {
    sx[t] = points[(tile + t) * 3];
    sy[t] = points[(tile + t) * 3 + 1];
    sz[t] = points[(tile + t) * 3 + 2];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (uint k = 0u; k < T; k++) {
      if (tile + k > i && i < count) {
        const float dot = x * sx[k] + y * sy[k] + z * sz[k];
        uint low = 0u;
        uint high = BINS;
        while (high > low + 1) {
          const uint middle = (low + high) / 2;
          if (dot >= limits[middle]) {
            low = middle;
          } else {
            high = middle;
          }
        }
        atomic_add(&histogram[low], 1);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t < BINS) atomic_add(&bins[t], histogram[t]);
}
