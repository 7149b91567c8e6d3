# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kernels of the peer taichi, which reads their source from a file."""

import taichi as ti


@ti.kernel
def saxpy(x: ti.types.ndarray(ti.f32, ndim=1), y: ti.types.ndarray(ti.f32, ndim=1), a: ti.f32):
    for i in x:
        y[i] = a * x[i] + y[i]


@ti.kernel
def wave(x: ti.types.ndarray(ti.f32, ndim=1), o: ti.types.ndarray(ti.f32, ndim=1)):
    for i in x:
        o[i] = ti.exp(-x[i] * x[i]) * ti.sin(x[i])
