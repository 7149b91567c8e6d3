# SPDX-License-Identifier: MIT OR Apache-2.0
"""n-body: a disc of particles, as an animation.

All state stays on the device in Buffers; one recording makes one step.
"""

import sys

import numpy as np

import vyre
from vyre.notebook import animation

kernels = vyre.kernel("""
kernel accelerate workgroup(64) over(vx)
buffer x : read f32[] @0;
buffer y : read f32[] @1;
buffer vx : read_write f32[] @2;
buffer vy : read_write f32[] @3;
{
    let i = global_id.x;
    if (i < len(vx)) {
        var ax = 0.0;
        var ay = 0.0;
        for (let j = 0u; j < len(x); j++) {
            let dx = x[j] - x[i];
            let dy = y[j] - y[i];
            let near = 1.0 / sqrt(dx * dx + dy * dy + 0.001);
            ax = fma(dx, near * near * near, ax);
            ay = fma(dy, near * near * near, ay);
        }
        vx[i] = fma(ax, 0.00002, vx[i]);
        vy[i] = fma(ay, 0.00002, vy[i]);
    }
}
kernel move workgroup(64) over(x)
buffer vx : read f32[] @0;
buffer vy : read f32[] @1;
buffer x : read_write f32[] @2;
buffer y : read_write f32[] @3;
{
    let i = global_id.x;
    if (i < len(x)) {
        x[i] = fma(vx[i], 0.05, x[i]);
        y[i] = fma(vy[i], 0.05, y[i]);
    }
}
""")

rng = np.random.default_rng(7)
n = 512
angle, radius = rng.uniform(0, 2 * np.pi, n), np.sqrt(rng.uniform(0.01, 1, n))
state = {
    "x": radius * np.cos(angle),
    "y": radius * np.sin(angle),
    "vx": -0.1 * radius * np.sin(angle),
    "vy": 0.1 * radius * np.cos(angle),
}
state = {name: vyre.Buffer.of(values.astype("f4")) for name, values in state.items()}

with vyre.Recording() as step:
    x, y, vx, vy = (step.slot(name) for name in ("x", "y", "vx", "vy"))
    step.dispatch(kernels.accelerate, x, y, vx, vy, out=(vx, vy))
    step.dispatch(kernels.move, vx, vy, x, y, out=(x, y))
step.bind(**state)

frames = []
for frame in range(24):
    xs, ys = (np.clip((state[k].numpy() + 1.5) / 3 * 159, 0, 159).astype(int) for k in "xy")
    frames.append(np.zeros((160, 160), "f4"))
    np.add.at(frames[-1], (ys, xs), 0.5)
    for _ in range(8):
        step.replay()

target = sys.argv[1] if len(sys.argv) > 1 else "nbody.png"
with open(target, "wb") as file:
    file.write(animation(frames))
print(f"wrote {target}: {n} bodies, {len(frames)} frames")
