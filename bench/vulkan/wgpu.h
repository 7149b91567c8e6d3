/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Runs wgpu-native as a peer, through its Python package and in a separate
 * process. Its figures include the cost of Python. */
#ifndef VYRE_BENCH_VULKAN_WGPU_H
#define VYRE_BENCH_VULKAN_WGPU_H

typedef struct wgpu_peer wgpu_peer;

/* Returns NULL on failure and sets *reason. */
wgpu_peer *wgpu_start(const char **reason);
void wgpu_stop(wgpu_peer *p); /* accepts NULL */
const char *wgpu_version(const wgpu_peer *p);

/* Return the nanoseconds of @p count dispatches of saxpy with 256 elements:
 * `each` submits and waits per dispatch, `batch` submits once. */
double wgpu_each(wgpu_peer *p, int count);
double wgpu_batch(wgpu_peer *p, int count);

#endif
