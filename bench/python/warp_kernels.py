# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kernels of the peer warp, which reads their source from a file."""

import warp as wp


@wp.kernel
def saxpy(x: wp.array(dtype=wp.float32), y: wp.array(dtype=wp.float32), a: wp.float32):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.kernel
def wave(x: wp.array(dtype=wp.float32), o: wp.array(dtype=wp.float32)):
    i = wp.tid()
    o[i] = wp.exp(-x[i] * x[i]) * wp.sin(x[i])
