// SPDX-License-Identifier: MIT OR Apache-2.0
// keeps the elements above a limit: counters in shared memory, one global atomic a workgroup
#define T (256u)

kernel __attribute__((reqd_work_group_size(T, 1, 1))) void compact(
    global const uint *data, global uint *kept, global uint *total, uint count,
    uint limit) {
  local uint found[1];
  local uint start[1];
  const uint i = (uint)get_global_id(0);
  uint place = 0u;
  uint value = 0u;
  bool is_kept = false;
  if (i < count) {
    value = data[i];
    is_kept = value > limit;
  }
  if ((uint)get_local_id(0) == 0) found[0] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (is_kept) place = atomic_add(&found[0], 1);
  barrier(CLK_LOCAL_MEM_FENCE);
  if ((uint)get_local_id(0) == 0) start[0] = atomic_add(&total[0], found[0]);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (is_kept) kept[start[0] + place] = value;
}
