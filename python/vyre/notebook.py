# SPDX-License-Identifier: MIT OR Apache-2.0
"""Notebooks: the cell magic %%vyre, and displays of kernels, devices and errors.

    %load_ext vyre

    %%vyre
    kernel square workgroup(64)
    ...
"""

from __future__ import annotations

import html
import time
from typing import Any

import numpy as np

from . import Device, Kernel, errors, kernel


def _table(rows: list[tuple[Any, ...]], head: tuple[str, ...]) -> str:
    cells = "".join(f"<th>{html.escape(h)}</th>" for h in head)
    lines = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(c))}</td>" for c in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{cells}</tr>{lines}</table>"


def kernel_html(k: Kernel) -> str:
    """Returns a table of the buffers of a kernel."""
    rows: list[tuple[Any, ...]] = [(p.name, p.role, p.dtype, p.length or "any", p.access) for p in k.params]
    title = f"<b>{html.escape(k.name)}</b> <code>{k.fingerprint[:12]}</code>"
    return title + _table(rows, ("buffer", "role", "type", "count", "access"))


def device_html(d: Device) -> str:
    """Returns a table of the capabilities of a device."""
    rows: list[tuple[Any, ...]] = [(name, value) for name, value in d.caps.items() if name != "details"]
    return f"<b>{html.escape(d.name)}</b>: {html.escape(d.reason)}" + _table(rows, ("", ""))


def error_html(error: errors.VyreError) -> str:
    """Returns an error with its source lines and carets."""
    lines: list[str] = []
    for line in str(error).splitlines():
        text = html.escape(line)
        words = line.replace("|", "").strip()
        if words and not words.strip("^~"):
            text = f'<b style="color:#b00">{text}</b>'
        elif words.startswith("Fix:"):
            text = f'<span style="color:#070">{text}</span>'
        elif ": error: " in line or not lines:
            text = f"<b>{text}</b>"
        lines.append(text)
    return "<pre>" + "\n".join(lines) + "</pre>"


class _Shown:
    """Error that a notebook displays without a Python traceback."""

    def __init__(self, error: errors.VyreError) -> None:
        self.error = error

    def __repr__(self) -> str:
        return str(self.error)

    def _repr_html_(self) -> str:
        return error_html(self.error)


def image_html(array: Any, scale: int = 1) -> str:
    """Returns an array of shape (h, w) or (h, w, 3 or 4) as a picture. Floats are
    taken as 0 to 1."""
    import base64

    data = base64.b64encode(png(array)).decode()
    height, width = np.shape(array)[:2]
    return (
        f'<img width="{width * scale}" height="{height * scale}" '
        f'style="image-rendering:pixelated" src="data:image/png;base64,{data}">'
    )


def _rows(array: Any) -> tuple[int, int, int, bytes]:
    """Returns width, height, colour type and the rows of a PNG file."""
    pixels = np.asarray(array)
    if pixels.dtype.kind == "f":
        pixels = np.clip(np.nan_to_num(pixels) * 255 + 0.5, 0, 255)
    pixels = np.ascontiguousarray(pixels, "u1")
    channels = 1 if pixels.ndim == 2 else pixels.shape[2]
    colour = {1: 0, 3: 2, 4: 6}.get(channels)
    if colour is None or pixels.ndim not in (2, 3):
        raise ValueError(
            f"a picture has the shape (h, w), (h, w, 3) or (h, w, 4), not {pixels.shape}\n"
            "Fix: reshape the array"
        )
    height, width = pixels.shape[:2]
    rows = np.zeros((height, width * channels + 1), "u1")
    rows[:, 1:] = pixels.reshape(height, -1)
    return width, height, colour, rows.tobytes()


def _chunk(name: bytes, data: bytes) -> bytes:
    import struct
    import zlib

    body = name + data
    return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))


def _header(width: int, height: int, colour: int) -> bytes:
    import struct

    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0))


def png(array: Any) -> bytes:
    """Encodes an array as a PNG file."""
    import zlib

    width, height, colour, rows = _rows(array)
    return _header(width, height, colour) + _chunk(b"IDAT", zlib.compress(rows, 6)) + _chunk(b"IEND", b"")


def animation(frames: Any, fps: int = 12) -> bytes:
    """Encodes arrays of one shape as an animated PNG file, which repeats forever.
    Programs without animations show the first frame."""
    import struct
    import zlib

    made = [_rows(frame) for frame in frames]
    if not made or any(row[:3] != made[0][:3] for row in made):
        raise ValueError("an animation has frames of one shape\nFix: pass a list of arrays of the same shape")
    width, height, colour, _ = made[0]
    data = _header(width, height, colour) + _chunk(b"acTL", struct.pack(">II", len(made), 0))
    number = 0
    for at, (_, _, _, rows) in enumerate(made):
        data += _chunk(b"fcTL", struct.pack(">IIIIIHHBB", number, width, height, 0, 0, 1, fps, 0, 0))
        number += 1
        packed = zlib.compress(rows, 6)
        if at == 0:
            data += _chunk(b"IDAT", packed)
        else:
            data += _chunk(b"fdAT", struct.pack(">I", number) + packed)
            number += 1
    return data + _chunk(b"IEND", b"")


class Image:
    """Array that notebooks display as a picture."""

    def __init__(self, array: Any, scale: int = 1) -> None:
        self.array = np.asarray(array)
        self.scale = scale

    def _repr_html_(self) -> str:
        return image_html(self.array, self.scale)


class Timing(dict[str, float]):
    """Times of a call in microseconds."""

    def _repr_html_(self) -> str:
        return _table([(name, f"{value:.2f}") for name, value in self.items()], ("time", "us"))


def timing(k: Any, *args: Any, repeat: int = 20, **options: Any) -> Timing:
    """Runs a kernel repeatedly and returns the smallest and the median time in
    microseconds."""
    k(*args, **options)
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        k(*args, **options)
        times.append((time.perf_counter() - start) * 1e6)
    return Timing(min_us=min(times), median_us=float(np.median(times)))


def register(shell: Any) -> None:
    """Adds the magic and the displays to an IPython shell."""

    def magic(line: str, cell: str) -> None:
        """Compiles the kernels of a cell and defines their names."""
        kernels = kernel(cell, line.strip() or "<cell>")
        shell.user_ns.update(kernels)

    shell.register_magic_function(magic, "cell", "vyre")
    formatter = shell.display_formatter.formatters["text/html"]
    formatter.for_type(Kernel, kernel_html)
    formatter.for_type(Device, device_html)
    formatter.for_type(errors.VyreError, error_html)

    def show(shell: Any, kind: Any, value: Any, trace: Any, tb_offset: Any = None) -> None:
        from IPython.display import display

        display(_Shown(value))

    shell.set_custom_exc((errors.InvalidProgram, errors.CheckFailed), show)
