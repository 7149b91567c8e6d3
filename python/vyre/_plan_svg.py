# SPDX-License-Identifier: MIT OR Apache-2.0
"""Drawings of plans."""

from __future__ import annotations

import html
from typing import Any

_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#9d755d", "#72b7b2")
_STYLE = "font:11px sans-serif"


def placement_svg(plan: Any, width: int = 480, height: int = 240) -> str:
    """Draws the intervals of a placement: groups to the right, bytes upwards."""
    groups = int(plan.intervals[:, 3].max()) + 1 if len(plan.intervals) else 1
    total = max(plan.placed_bytes, 1)
    boxes = []
    for i, (row, offset) in enumerate(zip(plan.intervals, plan.offsets)):
        size, first, last = int(row[0]), int(row[2]), int(row[3])
        x = width * first / groups
        w = width * (last - first + 1) / groups
        h = height * size / total
        y = height - height * (int(offset) + size) / total
        boxes.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" '
            f'fill="{_COLOURS[i % len(_COLOURS)]}" stroke="white">'
            f"<title>{i}: {size} bytes at {int(offset)}</title></rect>"
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height + 18}" '
        f'style="{_STYLE}">{"".join(boxes)}<text x="0" y="{height + 14}">'
        f"{plan.placed_bytes} bytes, lower bound {plan.lower_bound_bytes}</text></svg>"
    )


def frontier_svg(plan: Any, width: int = 480, row: int = 16) -> str:
    """Draws the groups of a plan: one row for each, with its number of waves."""
    offsets = plan.barriers.group_offsets
    widths = [int(b - a) for a, b in zip(offsets[:-1], offsets[1:])]
    shown = widths[:40]
    most = max(shown, default=1)
    bars = "".join(
        f'<rect x="40" y="{i * row}" width="{(width - 90) * n / most:.1f}" '
        f'height="{row - 3}" fill="{_COLOURS[0]}"/><text x="0" y="{i * row + 11}">{i}</text>'
        f'<text x="{45 + (width - 90) * n / most:.1f}" y="{i * row + 11}">{n}</text>'
        for i, n in enumerate(shown)
    )
    more = len(widths) - len(shown)
    end = f'<text x="0" y="{len(shown) * row + 12}">and {more} more groups</text>' if more else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
        f'height="{len(shown) * row + 18}" style="{_STYLE}">{bars}{end}</svg>'
    )


def graph_svg(plan: Any, width: int = 480, row: int = 20, height: int = 160) -> str:
    """Draws a wave graph: above, the waves of each group in a column; below, the
    memory, groups to the right and bytes upwards."""
    offsets = [int(n) for n in plan.barriers.group_offsets]
    groups = list(zip(offsets[:-1], offsets[1:]))[:40]
    rows = min(max((b - a for a, b in groups), default=0), 12)
    step = width / max(len(groups), 1)
    parts = []
    for x, (a, b) in enumerate(groups):
        for y in range(min(b - a, rows)):
            wave = int(plan.barriers.waves[a + y])
            label = plan.labels[wave]
            text = f"{label} and {b - a - rows} more" if y == rows - 1 and b - a > rows else label
            parts.append(_box(x * step, y * row, step, row, wave, f"wave {wave}: {text}", label))
    top = rows * row + 12
    total = max(plan.placed_bytes, 1)
    for i, (interval, offset) in enumerate(zip(plan.intervals, plan.offsets)):
        size, first, last = int(interval[0]), int(interval[2]), int(interval[3])
        if size and first < len(groups):
            h = height * size / total
            y = top + height - height * int(offset) / total - h
            w = (min(last, len(groups) - 1) - first + 1) * step
            name = plan.names[i]
            parts.append(_box(first * step, y, w, h, i, f"{name}: {size} bytes at {int(offset)}", name))
    end = f"{len(offsets) - 1} groups; {plan.placed_bytes} bytes, {plan.separate_bytes} without sharing"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top + height + 18}" '
        f'style="{_STYLE}">{"".join(parts)}<text x="0" y="{top + height + 14}">{end}</text></svg>'
    )


def _box(x: float, y: float, w: float, h: float, index: int, title: str, label: str) -> str:
    colour = _COLOURS[index % len(_COLOURS)]
    text = html.escape(label if len(label) * 7 < w and h > 12 else "")
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" fill="{colour}" stroke="white">'
        f'<title>{html.escape(title)}</title></rect><text x="{x + 3:.1f}" y="{y + 13:.1f}" fill="white">{text}</text>'
    )
