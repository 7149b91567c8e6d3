# SPDX-License-Identifier: MIT OR Apache-2.0
"""Monte Carlo with reproducible streams: pi, and a histogram of the estimates.

Every invocation has a stream of its own that depends on its index and the seed
alone, so the answer does not depend on the device, the grid or the threads. The
hits are integers, so their sum does not depend on its order either.
"""

import sys

import numpy as np

import vyre
from vyre.notebook import png

dart = vyre.kernel("""
fn mix(z: u32) -> u32 {
    var x = z;
    x = (x ^ (x >> 16)) * 0x7feb352d;
    x = (x ^ (x >> 15)) * 0x846ca68b;
    return x ^ (x >> 16);
}

kernel dart workgroup(64) over(hits)
buffer hits : write u32[] @0;
uniform seed : u32 @1;
uniform samples : u32 @2;
{
    let i = global_id.x;
    if (i < len(hits)) {
        var count = 0u;
        for (let s = 0u; s < samples; s++) {
            let a = mix(mix(seed + i) + 2 * s);
            let b = mix(mix(seed + i) + 2 * s + 1);
            let x = f32(a >> 8) * 0.000000059604645;
            let y = f32(b >> 8) * 0.000000059604645;
            if (x * x + y * y < 1.0) count++;
        }
        hits[i] = count;
    }
}
""")["dart"]

streams, samples = 4096, 500
hits = dart(seed=1, samples=samples, hits=streams)
assert hits.tobytes() == dart(seed=1, samples=samples, hits=streams, device="ref").tobytes()
total = int(hits.sum(dtype="u8"))
print(f"pi is about {4 * total / (streams * samples):.5f} from {streams * samples} samples")

counts, _ = np.histogram(4 * hits / samples, bins=160, range=(2.8, 3.5))
picture = np.zeros((120, 320, 3), "f4")
for column, count in enumerate(counts):
    height = round(110 * count / counts.max())
    picture[120 - height :, 2 * column : 2 * column + 2] = (0.3, 0.5, 0.7)

target = sys.argv[1] if len(sys.argv) > 1 else "monte_carlo.png"
with open(target, "wb") as file:
    file.write(png(picture))
print(f"wrote {target}: the estimates of {streams} streams")
