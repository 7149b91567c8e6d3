// SPDX-License-Identifier: MIT OR Apache-2.0
// assigns points to the nearest of a few centres, as in Rodinia
kernel __attribute__((reqd_work_group_size(256, 1, 1))) void kmeans(
    global const float *feature, global const float *clusters,
    global int *membership, uint npoints, uint nclusters, uint nfeatures) {
  const uint point = (uint)get_global_id(0);
  if (point >= npoints) return;
  int index = -1;
  float best = INFINITY;
  for (uint i = 0u; i < nclusters; i++) {
    float dist = 0.0f;
    for (uint l = 0u; l < nfeatures; l++) {
      const float diff =
          feature[l * npoints + point] - clusters[i * nfeatures + l];
      dist += diff * diff;
    }
    if (dist < best) {
      best = dist;
      index = (int)(i);
    }
  }
  membership[point] = index;
}
