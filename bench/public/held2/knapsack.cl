// SPDX-License-Identifier: MIT OR Apache-2.0
// one item of the knapsack problem for all capacities
kernel __attribute__((reqd_work_group_size(256, 1, 1))) void knapsack(
    global const uint *from, global uint *to, uint capacity, uint weight,
    uint value) {
  const uint c = (uint)get_global_id(0);
  if (c > capacity) return;
  uint best = from[c];
  if (c >= weight) best = max(best, from[c - weight] + value);
  to[c] = best;
}
