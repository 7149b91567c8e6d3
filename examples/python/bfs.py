# SPDX-License-Identifier: MIT OR Apache-2.0
"""Breadth-first search on a real graph: who met whom in Zachary's karate club.

One recording repeats the step on the device until no member is reached any more.
"""

import sys

import numpy as np

import vyre
from vyre.notebook import png

# W. W. Zachary, An Information Flow Model for Conflict and Fission in Small Groups, 1977.
EDGES = """
1-2 1-3 2-3 1-4 2-4 3-4 1-5 1-6 1-7 5-7 6-7 1-8 2-8 3-8 4-8 1-9 3-9 3-10 1-11 5-11 6-11 1-12
1-13 4-13 1-14 2-14 3-14 4-14 6-17 7-17 1-18 2-18 1-20 2-20 1-22 2-22 24-26 25-26 3-28 24-28
25-28 3-29 24-30 27-30 2-31 9-31 1-32 25-32 26-32 29-32 3-33 9-33 15-33 16-33 19-33 21-33 23-33
24-33 30-33 31-33 32-33 9-34 10-34 14-34 15-34 16-34 19-34 20-34 21-34 23-34 24-34 27-34 28-34
29-34 30-34 31-34 32-34 33-34
"""
pairs = np.array([edge.split("-") for edge in EDGES.split()], "u4") - 1
pairs = np.concatenate([pairs, pairs[:, ::-1]])  # in both directions
pairs = pairs[np.lexsort(pairs.T[::-1])]
count = int(pairs.max()) + 1
offsets = np.searchsorted(pairs[:, 0], np.arange(count + 1)).astype("u4")
neighbours = np.ascontiguousarray(pairs[:, 1])

step = vyre.kernel("""
kernel step workgroup(64) over(depth)
buffer offsets : read u32[] @0;
buffer neighbours : read u32[] @1;
buffer depth : read_write u32[] @2;   // 0: not reached; otherwise 1 + distance
buffer state : read_write u32[3] @3;  // members may still be reached; level; changes
{
    let v = global_id.x;
    if (v < len(depth) && depth[v] == 0) {
        for (let e = offsets[v]; e < offsets[v + 1]; e++)
            if (atomic_load(depth[neighbours[e]]) == state[1]) {
                atomic_store(depth[v], state[1] + 1);
                atomic_add(state[2], 1);
                break;
            }
    }
}
kernel advance workgroup(1)
buffer state : read_write u32[3] @0;
{ state[0] = state[2]; state[1] = state[1] + 1; state[2] = 0; }
""")

with vyre.Recording() as search:
    slots = [search.slot(name) for name in ("offsets", "neighbours", "depth", "state")]
    with search.loop(slots[3].part(0, 4), max_iterations=count):
        search.dispatch(step.step, *slots, out=tuple(slots[2:]))
        search.dispatch(step.advance, slots[3], out=slots[3], grid=1)
depth, state = np.zeros(count, "u4"), np.array([1, 1, 0], "u4")
depth[0] = 1
search.bind(offsets=offsets, neighbours=neighbours, depth=depth, state=state)
search.replay()
print("members by distance from the instructor:", np.bincount(depth)[1:].tolist())

# Rings of members by distance, with their meetings as lines.
places = np.zeros((count, 2))
for d in np.unique(depth):
    members = np.flatnonzero(depth == d)
    angle = 2 * np.pi * np.arange(len(members)) / len(members) + d
    places[members] = 120 + 36 * (d - 1) * np.stack([np.cos(angle), np.sin(angle)], 1)
picture = np.ones((240, 240), "f4")
for a, b in pairs:
    line = places[a] + np.linspace(0, 1, 240)[:, None] * (places[b] - places[a])
    picture[tuple(line.astype(int).T)] = 0.7
for x, y in places.astype(int):
    picture[x - 2 : x + 3, y - 2 : y + 3] = 0.1
target = sys.argv[1] if len(sys.argv) > 1 else "bfs.png"
with open(target, "wb") as file:
    file.write(png(picture))
print(f"wrote {target}: {count} members, {len(pairs) // 2} meetings")
