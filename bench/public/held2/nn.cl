// SPDX-License-Identifier: MIT OR Apache-2.0
// distances of places to one place, as in Rodinia
kernel __attribute__((reqd_work_group_size(256, 1, 1))) void nn(
    global const float *places, global float *distance, uint count,
    float latitude, float longitude) {
  const uint i = (uint)get_global_id(0);
  if (i < count) {
    const float dy = latitude - places[2 * i];
    const float dx = longitude - places[2 * i + 1];
    distance[i] = sqrt(dy * dy + dx * dx);
  }
}
