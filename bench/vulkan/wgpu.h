/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* wgpu-native through its package for Python, in a process of its own that is told
 * what to time. What Python takes is in its figures. */
#ifndef VYRE_BENCH_VULKAN_WGPU_H
#define VYRE_BENCH_VULKAN_WGPU_H

typedef struct wgpu_peer wgpu_peer;

/* NULL if it is not there; *why then says so. */
wgpu_peer *wgpu_start(const char **why);
void wgpu_stop(wgpu_peer *p); /* NULL is fine */
const char *wgpu_version(const wgpu_peer *p);

/* Nanoseconds of @p count dispatches of saxpy with 256 elements: each with a
 * submission and a wait, or all in one. */
double wgpu_each(wgpu_peer *p, int count);
double wgpu_batch(wgpu_peer *p, int count);

#endif
