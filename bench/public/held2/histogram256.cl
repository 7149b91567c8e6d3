// SPDX-License-Identifier: MIT OR Apache-2.0
// histogram of bytes with counters in shared memory, as in the CUDA samples
#define T (256u)

kernel __attribute__((reqd_work_group_size(T, 1, 1))) void histogram256(
    global const uint *data, global uint *bins, uint count) {
  local uint counters[T];
  const uint t = (uint)get_local_id(0);
  counters[t] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  uint i = (uint)get_global_id(0);
  while (i < count) {
    const uint word = data[i];
    atomic_add(&counters[word & 0xFF], 1);
    atomic_add(&counters[word >> 8 & 0xFF], 1);
    atomic_add(&counters[word >> 16 & 0xFF], 1);
    atomic_add(&counters[word >> 24], 1);
    i += T * (uint)get_num_groups(0);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(&bins[t], counters[t]);
}
