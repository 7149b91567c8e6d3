#!/usr/bin/env python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Draws docs/images/benchmarks.svg from docs/explanation/benchmarks.csv.

Rows are "group,label,ratio": how many times as fast as its peer vyre is. Bars
start at 1 on a logarithmic axis, so that a loss points to the left.
"""
import csv
import math
import os

os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
ROW, LEFT, SCALE, TOP = 24, 430, 110, 70
STYLE = """
text{font-family:'Inter','Segoe UI','Helvetica Neue',Arial,sans-serif;font-size:13px;fill:#3b4252}
.title{font-size:19px;font-weight:600;fill:#1f2430}
.group{font-weight:600;fill:#1f2430}
.end{text-anchor:end}.middle{text-anchor:middle}
.win{fill:#4b9b69}.loss{fill:#d0743c}
.grid{stroke:#e1e5eb}.one{stroke:#6b7482;stroke-width:1.4}
"""


def x_of(ratio):
    return LEFT + 60 + SCALE * math.log2(ratio)


def main():
    with open("docs/explanation/benchmarks.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    lines, y, group = [], TOP, None
    for row in rows:
        if row["group"] != group:
            group = row["group"]
            y += ROW + 6
            lines.append(f'<text class="group" x="24" y="{y}">{group}</text>')
        y += ROW
        ratio = float(row["ratio"])
        start, end = sorted((x_of(1), x_of(ratio)))
        kind = "win" if ratio >= 1 else "loss"
        lines.append(f'<text class="end" x="{LEFT - 8}" y="{y}">{row["label"]}</text>')
        lines.append(f'<rect class="{kind}" x="{start:.1f}" y="{y - 12}" '
                     f'width="{max(end - start, 1.5):.1f}" height="15"/>')
        lines.append(f'<text x="{end + 6:.1f}" y="{y}">{row["ratio"]}x</text>')
    height, width = y + 30, int(x_of(32)) + 40
    grid = []
    for ratio in (0.75, 1, 2, 4, 8, 16, 32):
        kind = "one" if ratio == 1 else "grid"
        at = f"{x_of(ratio):.1f}"
        grid.append(f'<path class="{kind}" d="M{at} {TOP + 8}V{height - 14}"/>')
        grid.append(f'<text class="middle" x="{at}" y="{TOP}">{ratio:g}x</text>')
    with open("docs/images/benchmarks.svg", "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
                   f'height="{height}" viewBox="0 0 {width} {height}">\n'
                   f'<style>{STYLE}</style>\n'
                   f'<rect width="{width}" height="{height}" fill="#fff"/>\n'
                   '<text class="title" x="24" y="36">'
                   'Speed of vyre, relative to its peer in the same run</text>\n'
                   + "\n".join(grid + lines) + "\n</svg>\n")


main()
