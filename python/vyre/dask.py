# SPDX-License-Identifier: MIT OR Apache-2.0
"""Kernels on Dask arrays.

A result does not depend on the worker or the device that computed a block: every
device gives the same bits. Retried, duplicated and speculative tasks are therefore
safe, and `verify` can compare workers with each other.

Workers choose their device by $VYRE_DEVICE, by the configuration key "vyre.device"
of Dask, or by assign(client, devices). A kernel travels as its binary form, about 1 kB, and is
compiled once per worker; workers on one machine share the disk cache.
"""

from __future__ import annotations

import functools
import hashlib
import math
import sys
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np

import vyre
from vyre import _support, sums
from vyre.errors import VyreError

__all__ = ["Mismatch", "assign", "map_blocks", "map_overlap", "mean", "sum", "verify"]

_DEVICES = ("vulkan", "cpu", "ref")
_assigned: str | None = None  # device of this worker


class Mismatch(VyreError):
    """Two devices gave different bytes for one block."""


def _device() -> str | None:
    import dask

    name = _assigned or dask.config.get("vyre.device", None)
    return str(name) if name else None


class _Assign:
    """Gives each worker a device, also when it is started again."""

    name = "vyre-assign"

    def __init__(self, devices: Sequence[str]) -> None:
        self.devices = tuple(devices)

    def setup(self, worker: Any) -> None:
        global _assigned
        digits = "".join(c for c in str(worker.name) if c.isdigit())
        number = int(digits) if digits else int(hashlib.blake2b(str(worker.name).encode()).hexdigest(), 16)
        _assigned = self.devices[number % len(self.devices)]

    def teardown(self, worker: Any) -> None:
        pass


def assign(client: Any, devices: Sequence[str]) -> dict[str, str]:
    """Gives the workers of a client the devices in turn, by the numbers in their
    names. Workers that start later get one too. Returns the device of each."""
    for name in devices:
        vyre.choose_device(name)  # raises for an unknown name
    register = getattr(client, "register_plugin", None) or client.register_worker_plugin
    register(_plugin(devices), name=_Assign.name)
    found: dict[str, str] = client.run(_assigned_device)
    return found


def _plugin(devices: Sequence[str]) -> Any:
    from . import _dask_plugin

    return _dask_plugin.Assign(devices)


def _assigned_device() -> str | None:
    return _assigned


def run_block(
    kernel: Any, *blocks: Any, options: dict[str, Any] | None = None, device: str | None = None
) -> Any:
    """Runs a kernel on NumPy blocks, on the device of this worker."""
    whole = [np.ascontiguousarray(b) if isinstance(b, np.ndarray) else b for b in blocks]
    return kernel(*whole, device=device or _device(), **(options or {}))


def digest(array: Any) -> str:
    """Returns a hash of the type, shape and bytes of an array."""
    a = np.ascontiguousarray(array)
    h = hashlib.blake2b(digest_size=16)
    h.update(f"{a.dtype.str}{a.shape}".encode())
    h.update(a.tobytes())
    return h.hexdigest()


def _verified(
    kernel: Any,
    *blocks: Any,
    options: dict[str, Any] | None,
    share: float,
    others: Sequence[str],
    block_id: tuple[int, ...] | None = None,
) -> Any:
    """Runs a block; a sampled share of the blocks also runs elsewhere. The choice
    depends on the block alone, so a retry repeats it."""
    result = run_block(kernel, *blocks, options=options)
    sample = _sample(f"{kernel.fingerprint}{block_id}".encode())
    if sample < share * 2**64:
        found = _run_again(functools.partial(_block_job, kernel, blocks, options), result, others, sample)
        if found:
            raise _mismatch(kernel, block_id, result, *found)
    return result


def _mismatch(kernel: Any, block_id: Any, result: Any, again: Any, here: str, there: str) -> Mismatch:
    a, b = np.ascontiguousarray(result).ravel(), np.ascontiguousarray(again).ravel()
    fix = "run the kernel with vyre.check; if it is free of races, one of the devices is broken"
    start = f"block {block_id} of kernel '{kernel.name}' differs between {here} and {there}: "
    if (a.dtype, np.shape(result)) != (b.dtype, np.shape(again)):
        return Mismatch(
            f"{start}one is {a.dtype}{list(np.shape(result))}, the other {b.dtype}{list(np.shape(again))}",
            code="mismatch", kind="mismatch", fix=fix,
        )  # fmt: skip
    differ = (a.view("u1") != b.view("u1")).reshape(a.size, a.itemsize).any(axis=1)
    at = int(np.argmax(differ))
    return Mismatch(
        f"{start}element {at} is {a[at]!r} and {b[at]!r}; {int(differ.sum())} of {a.size} differ",
        code="mismatch", kind="mismatch", fix=fix, numbers={"element": at, "count": int(differ.sum())},
    )  # fmt: skip


# --- running a block a second time ---------------------------------------------------


def _sample(key: bytes) -> int:
    """Returns a number below 2**64 that depends on the key alone."""
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little")


def _block_job(kernel: Any, blocks: Any, options: Any, device: str | None) -> Any:
    return run_block(kernel, *blocks, options=options, device=device)


def _sum_job(block: Any, axis: Any, device: str | None) -> Any:
    return sum_block(block, axis, device)


def _mine() -> str:
    """Returns the name of the device of this worker."""
    return vyre.device(_device() or vyre._vyre.default_device().name).name


def _kind(name: str) -> str:
    return name.split(":")[0]


def _other_device(others: Sequence[str]) -> str | None:
    """Returns a device of another kind than that of this worker, if it works."""
    mine = _kind(_mine())
    for name in others:
        if _kind(name) == mine:
            continue
        try:
            vyre.device(name)
        except VyreError:
            continue
        return name
    return None


def _compare(job: Any, device: str | None, expected: str) -> tuple[str, Any]:
    """Runs a job. Returns its device, and its result if that is not the expected one."""
    again = job(device)
    return device or _mine(), None if digest(again) == expected else again


def _run_again(
    job: Any, result: Any, others: Sequence[str], sample: int
) -> tuple[Any, str, str] | None:
    """Runs a job on another worker with another kind of device. Without such a
    worker, another one uses a second device; without any, this process does.
    Returns nothing if the bytes are the same, else the other result and both places."""
    expected, me = digest(result), _worker()
    found = _ask_worker(me, job, expected, others, sample) if me else None
    if found is None:
        other = _other_device(others)
        if other is None:
            return None
        found = *_compare(job, other, expected), ""
    device, again, where = found
    if again is None:
        return None
    return again, f"'{_mine()}'{_of(me.address if me and where else '')}", f"'{device}'{_of(where)}"


def _of(address: str) -> str:
    return f" of worker {address}" if address else ""


def _worker() -> Any:
    """Returns the Dask worker that runs this task, or None."""
    distributed = sys.modules.get("distributed")
    try:
        return distributed.get_worker() if distributed else None
    except ValueError:
        return None


_known: dict[str, str] = {}  # workers by address, which a worker keeps, and their devices


def _partners(client: Any, me: Any, others: Sequence[str]) -> tuple[list[str], str | None]:
    """Returns the workers that can check this one, and the device that they must
    use: None if it is their own."""
    there = [a for a in client.nthreads() if a != me.address]
    unknown = [a for a in there if a not in _known]
    if unknown:
        _known.update(client.run(_mine, workers=unknown, on_error="ignore"))
    wanted = {_kind(name) for name in others} - {_kind(_mine())}
    good = sorted(a for a in there if _kind(_known.get(a, "")) in wanted)
    return (good, None) if good else (sorted(there), _other_device(others))


def _ask_worker(
    me: Any, job: Any, expected: str, others: Sequence[str], sample: int
) -> tuple[str, Any, str] | None:
    """Has another worker compare a job. Returns None if there is none. The job is one
    object: Dask would call a tuple that begins with a kernel."""
    import distributed

    with distributed.worker_client() as client:  # others use the thread meanwhile
        for attempt in range(_ATTEMPTS):
            partners, device = _partners(client, me, others)
            if not partners:
                return None
            address = partners[(sample + attempt) % len(partners)]
            future = client.submit(
                _compare, job, device, expected, workers=[address], pure=False, key=f"vyre-verify-{uuid.uuid4()}"
            )
            found = _outcome(client, future, address)
            if found:
                return found[0], found[1], address
            future.cancel()
    return None


_ATTEMPTS = 10  # workers that end while they compare a block


def _outcome(client: Any, future: Any, address: str) -> Any:
    """Returns the result of a task that only one worker can run, or None if that
    worker ends. Its failure is no failure of the block."""
    import distributed

    wait: Any = distributed.wait  # without types
    while True:
        try:
            wait([future], timeout=2)
            if future.status == "finished":
                return future.result(timeout=10)
            if future.status == "cancelled" or isinstance(future.exception(), distributed.KilledWorker):
                return None
            break
        except (TimeoutError, distributed.TimeoutError, distributed.CancelledError):
            if address not in client.nthreads():
                return None
    return future.result()  # raises the error of the job


def map_blocks(
    kernel: Any,
    *arrays: Any,
    dtype: Any = None,
    verify: float = 0.0,
    verify_devices: Sequence[str] = _DEVICES,
    chunks: Any = None,
    **options: Any,
) -> Any:
    """Applies a kernel to the blocks of Dask arrays. The options are those of a
    call of the kernel; `verify` is the share of blocks that also run on a worker
    with another kind of device, whose bytes must be the same."""
    import dask.array

    da: Any = dask.array

    if dtype is None:
        outputs = [p for p in kernel.params if p.is_output]
        if len(outputs) != 1:
            raise TypeError(
                f"kernel '{kernel.name}' has {len(outputs)} outputs\n"
                "Fix: use a kernel with one output, or call it in a function for da.map_blocks"
            )
        dtype = _support.dtype_of(outputs[0].dtype)
    extra: dict[str, Any] = {} if chunks is None else {"chunks": chunks}
    if verify:
        return da.map_blocks(
            _verified_block, *arrays, kernel=kernel, options=options, share=float(verify),
            others=tuple(verify_devices), dtype=dtype, **extra,
        )  # fmt: skip
    return da.map_blocks(_plain_block, *arrays, kernel=kernel, options=options, dtype=dtype, **extra)


def _plain_block(*blocks: Any, kernel: Any, options: dict[str, Any]) -> Any:
    return run_block(kernel, *blocks, options=options)


def _verified_block(
    *blocks: Any,
    kernel: Any,
    options: dict[str, Any],
    share: float,
    others: tuple[str, ...],
    block_id: Any = None,
) -> Any:
    return _verified(
        kernel, *blocks, options=options, share=share, others=others, block_id=block_id
    )


def map_overlap(
    kernel: Any,
    array: Any,
    depth: Any,
    boundary: Any = "none",
    dtype: Any = None,
    verify: float = 0.0,
    verify_devices: Sequence[str] = _DEVICES,
    size: Sequence[str] = (),
    **options: Any,
) -> Any:
    """Applies a kernel to blocks with `depth` elements of their neighbours; the
    output of each block has its shape. `size` names uniforms that receive the
    extents of the block, first axis first."""
    import dask.array

    da: Any = dask.array

    if dtype is None:
        dtype = array.dtype
    return da.map_overlap(
        _overlap_block, array, depth=depth, boundary=boundary, dtype=dtype, kernel=kernel,
        options=options, share=float(verify), others=tuple(verify_devices), size=tuple(size),
    )  # fmt: skip


def _overlap_block(
    block: Any,
    *,
    kernel: Any,
    options: dict[str, Any],
    share: float,
    others: tuple[str, ...],
    size: tuple[str, ...],
    block_id: Any = None,
) -> Any:
    own = {**options, **dict(zip(size, block.shape))}
    return _verified(kernel, block, options=own, share=share, others=others, block_id=block_id)


def verify(client: Any, kernel: Any, *blocks: Any, **options: Any) -> dict[str, str]:
    """Runs a kernel on every worker of a distributed client and returns the hash
    of each. Raises Mismatch if they differ."""
    hashes: dict[str, str] = client.run(_hash_block, kernel, blocks, options)
    if len(set(hashes.values())) > 1:
        raise Mismatch(
            f"workers disagree about kernel '{kernel.name}': {hashes}",
            code="mismatch",
            kind="mismatch",
            fix="compare the workers' devices with vyre.device().reason",
        )
    return hashes


def _hash_block(kernel: Any, blocks: tuple[Any, ...], options: dict[str, Any]) -> str:
    return digest(run_block(kernel, *blocks, options=options))


# --- reductions -------------------------------------------------------------------


def sum(
    array: Any,
    axis: Any = None,
    *,
    keepdims: bool = False,
    verify: float = 0.0,
    verify_devices: Sequence[str] = _DEVICES,
    split_every: Any = None,
) -> Any:
    """Returns the exact sums of float32 or float64 along the axes, each rounded
    once. The bits do not depend on the chunks. A share `verify` of the blocks is
    added up by a second worker."""
    import dask.array

    da: Any = dask.array
    if array.dtype not in (np.dtype("f4"), np.dtype("f8")):
        raise TypeError(f"exact sums take float32 or float64, not {array.dtype}\nFix: convert the array with .astype('f8')")
    return da.reduction(
        array,
        chunk=functools.partial(_sum_chunk, share=float(verify), others=tuple(verify_devices)),
        combine=_sum_combine,
        aggregate=_sum_aggregate,
        axis=axis,
        keepdims=keepdims,
        dtype=array.dtype,
        split_every=split_every,
        meta=np.empty((0,) * array.ndim, array.dtype),
    )


def mean(array: Any, axis: Any = None, *, keepdims: bool = False, **options: Any) -> Any:
    """Returns the exact sums, rounded, divided by the number of elements."""
    axes = range(array.ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    count = math.prod(array.shape[n] for n in axes)
    return sum(array, axis, keepdims=keepdims, **options) / array.dtype.type(count)


def sum_block(block: Any, axis: Any, device: str | None = None) -> Any:
    """Adds up a block on the device of this worker, without rounding."""
    return sums.accumulate(block, axis, keepdims=True, device=device or _device())


def _sum_chunk(
    block: Any, axis: Any, keepdims: bool, share: float, others: tuple[str, ...], computing_meta: bool = False
) -> Any:
    if computing_meta:  # Dask looks for the final dtype here
        return np.empty((0,) * block.ndim, block.dtype)
    axis = tuple(axis) if isinstance(axis, (tuple, list)) else axis
    result = sum_block(block, axis)
    if not share:
        return result
    sample = _sample(np.ascontiguousarray(block).tobytes())
    found = _run_again(functools.partial(_sum_job, block, axis), result, others, sample) if sample < share * 2**64 else None
    if not found:
        return result
    again, here, there = found
    at = int(np.argmax(result.reshape(-1) != again.reshape(-1)))
    raise Mismatch(
        f"the sum of a block differs between {here} and {there}: element {at} is "
        f"{sums.round(result).reshape(-1)[at]!r} and {sums.round(again).reshape(-1)[at]!r}",
        code="mismatch", kind="mismatch", fix="one of the devices is broken: compare the workers with vyre.dask.verify",
        numbers={"element": at},
    )  # fmt: skip


def _merged(parts: Any, axis: Any) -> Any:
    """Merges an array of sums along axes, which keep one element."""
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    first = np.moveaxis(parts, axes, range(len(axes)))
    rest = first.shape[len(axes) :]
    rows = np.ascontiguousarray(first).reshape(-1, *rest)
    total = sums.merge(*rows) if len(rows) else sums.zeros(rest, parts.dtype)
    return total.reshape([1 if n in {a % parts.ndim for a in axes} else parts.shape[n] for n in range(parts.ndim)])


def _sum_combine(parts: Any, axis: Any, keepdims: bool, computing_meta: bool = False) -> Any:
    return parts if computing_meta else _merged(parts, axis)


def _sum_aggregate(parts: Any, axis: Any, keepdims: bool, computing_meta: bool = False) -> Any:
    if computing_meta:
        return parts.sum(axis, keepdims=keepdims)
    result = np.asarray(sums.round(_merged(parts, axis)))
    return result if keepdims else result.squeeze(tuple(axis) if isinstance(axis, (tuple, list)) else axis)
