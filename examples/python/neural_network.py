# SPDX-License-Identifier: MIT OR Apache-2.0
"""A small neural network that learns a spiral, with the same hash on every device."""

import hashlib
import sys

import numpy as np

import vyre
from vyre.notebook import png

kernels = vyre.kernel("""
const H : u32 = 24;

kernel forward workgroup(64) over(guess)
buffer points : read f32[] @0;
buffer weights : read f32[] @1;
buffer guess : write f32[] @2;
{
    let i = global_id.x;
    if (i < len(guess)) {
        var sum = weights[4 * H];
        for (let h = 0u; h < H; h++) {
            let z = weights[4 * h] * points[2 * i] + weights[4 * h + 1] * points[2 * i + 1];
            sum = fma(weights[4 * h + 3], tanh(z + weights[4 * h + 2]), sum);
        }
        guess[i] = tanh(sum);
    }
}

// One invocation per hidden unit adds up the gradients of its four weights.
kernel learn workgroup(32) over(points)
buffer points : read f32[] @0;
buffer labels : read f32[] @1;
buffer guess : read f32[] @2;
buffer weights : read_write f32[] @3;
uniform rate : f32 @4;
{
    let h = global_id.x;
    if (h <= H) {
        var g0 = 0.0; var g1 = 0.0; var g2 = 0.0; var g3 = 0.0;
        for (let i = 0u; i < len(labels); i++) {
            let x = points[2 * i]; let y = points[2 * i + 1];
            let slope = (guess[i] - labels[i]) * (1.0 - guess[i] * guess[i]);
            let t = tanh(weights[4 * h] * x + weights[4 * h + 1] * y + weights[4 * h + 2]);
            let back = slope * weights[4 * h + 3] * (1.0 - t * t);
            g0 += back * x; g1 += back * y; g2 += back; g3 += slope * (h < H ? t : 1.0);
        }
        if (h == H) { weights[4 * H] -= rate * g3; return; }
        weights[4 * h] -= rate * g0; weights[4 * h + 1] -= rate * g1;
        weights[4 * h + 2] -= rate * g2; weights[4 * h + 3] -= rate * g3;
    }
}
""")

t = np.linspace(0.2, 1, 60).repeat(2)
sign = np.tile([1, -1], 60)
points = np.stack([t * sign * np.cos(6 * t), t * sign * np.sin(6 * t)], 1).astype("f4")
labels = sign.astype("f4")
start = np.random.default_rng(3).normal(0, 1.5, 97).astype("f4")

def train(device, steps):
    w = start.copy()
    for _ in range(steps):
        guess = kernels.forward(points, w, guess=len(labels), device=device)
        kernels.learn(points, labels, guess, w, 0.02, out=w, device=device, grid=1)
    return w


for name in ("cpu", "ref"):
    print(name, hashlib.sha256(train(name, 20).tobytes()).hexdigest()[:16])
weights = train("cpu", 3000)
right = (np.sign(kernels.forward(points, weights, guess=120)) == labels).mean()
axis = np.linspace(-1.2, 1.2, 160, dtype="f4")
plane = np.ascontiguousarray(np.stack(np.meshgrid(axis, axis), -1))
picture = kernels.forward(plane, weights, guess=160 * 160).reshape(160, 160)
target = sys.argv[1] if len(sys.argv) > 1 else "neural_network.png"
with open(target, "wb") as file:
    file.write(png(0.5 + 0.5 * picture))
print(f"{right:.0%} of the points are right; wrote {target}")
