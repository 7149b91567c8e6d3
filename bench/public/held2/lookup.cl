// SPDX-License-Identifier: MIT OR Apache-2.0
// cross sections of materials at random energies, like XSBench
kernel __attribute__((reqd_work_group_size(256, 1, 1))) void lookup(
    global const float *grid, global const float *sections,
    global const uint *nuclides, global const float *amounts,
    global const float *energies, global const uint *materials,
    global float *result, uint count, uint points, uint slots) {
  const uint i = (uint)get_global_id(0);
  if (i >= count) return;
  const float energy = energies[i];
  const uint material = materials[i];
  uint low = 0u;
  uint high = points - 1;
  while (high - low > 1) {
    const uint middle = low + (high - low) / 2;
    if (grid[middle] > energy) {
      high = middle;
    } else {
      low = middle;
    }
  }
  const float f = (grid[low + 1] - energy) / (grid[low + 1] - grid[low]);
  float total = 0.0f;
  float elastic = 0.0f;
  float absorbed = 0.0f;
  float fission = 0.0f;
  float fresh = 0.0f;
  for (uint k = 0u; k < slots; k++) {
    const float amount = amounts[material * slots + k];
    if (amount == 0.0f) break;
    const uint at = (nuclides[material * slots + k] * points + low) * 5;
    total +=
        amount * (sections[at + 5] - f * (sections[at + 5] - sections[at]));
    elastic +=
        amount * (sections[at + 6] - f * (sections[at + 6] - sections[at + 1]));
    absorbed +=
        amount * (sections[at + 7] - f * (sections[at + 7] - sections[at + 2]));
    fission +=
        amount * (sections[at + 8] - f * (sections[at + 8] - sections[at + 3]));
    fresh +=
        amount * (sections[at + 9] - f * (sections[at + 9] - sections[at + 4]));
  }
  result[i * 5] = total;
  result[i * 5 + 1] = elastic;
  result[i * 5 + 2] = absorbed;
  result[i * 5 + 3] = fission;
  result[i * 5 + 4] = fresh;
}
