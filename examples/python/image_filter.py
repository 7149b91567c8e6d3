# SPDX-License-Identifier: MIT OR Apache-2.0
"""Image filter: a 3x3 sharpen over a picture made by another kernel."""

import sys

import numpy as np

import vyre
from vyre.notebook import png

kernels = vyre.kernel("""
// Rings around the centre: the picture to filter.
kernel rings workgroup(8, 8)
buffer picture : write f32[] @0;
uniform height : u32 @1;
uniform width : u32 @2;
{
    let x = global_id.x;
    let y = global_id.y;
    if (x < width && y < height) {
        let dx = f32(x) - 0.5 * f32(width);
        let dy = f32(y) - 0.5 * f32(height);
        picture[y * width + x] = 0.5 + 0.5 * sin(0.02 * (dx * dx + dy * dy));
    }
}

kernel sharpen workgroup(8, 8)
buffer source : read f32[] @0;
buffer result : write f32[] @1;
uniform height : u32 @2;
uniform width : u32 @3;
uniform amount : f32 @4;
{
    let x = global_id.x;
    let y = global_id.y;
    if (x < width && y < height) {
        let up = source[(max(y, 1) - 1) * width + x];
        let down = source[min(y + 1, height - 1) * width + x];
        let left = source[y * width + max(x, 1) - 1];
        let right = source[y * width + min(x + 1, width - 1)];
        let here = source[y * width + x];
        result[y * width + x] = here + amount * (4.0 * here - up - down - left - right);
    }
}
""")

height, width = 240, 320
grid = (width // 8, height // 8)
picture = kernels.rings(height, width, picture=height * width, grid=grid).reshape(height, width)
sharp = kernels.sharpen(picture, height, width, 0.5, grid=grid)

for name in ("ref", "cpu"):  # the same bytes on every device
    again = kernels.sharpen(picture, height, width, 0.5, grid=grid, device=name)
    assert again.tobytes() == sharp.tobytes()

target = sys.argv[1] if len(sys.argv) > 1 else "sharpen.png"
with open(target, "wb") as file:
    file.write(png(np.hstack([picture, sharp])))
print(f"wrote {target}: before and after, {2 * width} x {height}")
