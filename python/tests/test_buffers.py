# SPDX-License-Identifier: MIT OR Apache-2.0
"""Device buffers."""

import pickle

import numpy as np
import pytest

import vyre


def test_a_call_changes_a_buffer_only_as_out(saxpy, xy, device):
    x, y = xy
    bx, by = vyre.Buffer.of(x, device), vyre.Buffer.of(y, device)
    r = saxpy(bx, by, a=2, device=device)
    assert isinstance(r, vyre.Buffer)
    assert np.array_equal(by.numpy(), y)
    assert np.array_equal(r.numpy(), saxpy(x, y, a=2))
    host = np.empty_like(y)
    saxpy(bx, by, a=2, out=host, device=device)
    assert np.array_equal(by.numpy(), y) and np.array_equal(host, r.numpy())
    assert saxpy(bx, by, a=2, out=by, device=device) is by
    assert np.array_equal(by.numpy(), host)


def test_views_of_host_memory_do_not_copy():
    b = vyre.Buffer.of(np.arange(6, dtype="i4").reshape(2, 3), "cpu")
    view = np.asarray(b)
    view[1, 2] = 99
    assert b.numpy()[1, 2] == 99 and view.base is not None
    assert memoryview(b).shape == (2, 3)
    again = np.from_dlpack(b)
    assert again[1, 2] == 99 and again.ctypes.data == view.ctypes.data
    del b
    assert view[1, 2] == 99


def test_views_elsewhere_are_refused():
    if not any(d["backend"] == "vulkan" and d["is_available"] for d in vyre.devices()):
        pytest.skip("no Vulkan device")
    b = vyre.Buffer.of(np.arange(6, dtype="i4"), "vulkan")
    with pytest.raises(BufferError, match="numpy"):
        memoryview(b)
    with pytest.raises(BufferError):
        b.__dlpack__()
    assert list(np.array(b)) == list(range(6))


def test_slices_share_memory(saxpy, device):
    b = vyre.Buffer.of(np.arange(16, dtype="f4"), device)
    part = b[4:8]
    assert part.shape == (4,) and list(part.numpy()) == [4, 5, 6, 7]
    saxpy(np.ones(4, "f4"), part, a=10, out=part, device=device)
    assert list(b.numpy()[3:9]) == [3, 14, 15, 16, 17, 8]
    with pytest.raises(ValueError, match="step"):
        b[::2]
    with pytest.raises(TypeError, match="first axis"):
        b[1]


def test_dlpack_in(saxpy):
    x = np.arange(8, dtype="f4")
    b = vyre.Buffer.from_dlpack(x, "cpu")
    x[0] = 5
    assert b.numpy()[0] == 5


def test_wrong_devices_and_sizes_are_refused(saxpy, xy):
    x, y = xy
    b = vyre.Buffer.of(y, "ref")
    with pytest.raises(ValueError, match="on device 'ref'"):
        saxpy(x, b, a=1, device="cpu")
    with pytest.raises(ValueError, match="bytes"):
        b.upload(np.zeros(3, "f4"))
    with pytest.raises(ValueError):
        vyre.Buffer((1 << 62, 1 << 62))
    with pytest.raises(ValueError):
        vyre.Buffer(-1)
    with pytest.raises(TypeError, match="dtype"):
        vyre.Buffer(4, "c8")


def test_buffers_pickle_by_value():
    b = vyre.Buffer.of(np.arange(5, dtype="u2"), "ref")
    again = pickle.loads(pickle.dumps(b))
    assert np.array_equal(again.numpy(), b.numpy()) and again.device.name == "ref"


@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8"])
def test_all_types_keep_their_bytes(dtype, device):
    values = np.frombuffer(np.arange(64, dtype="u1").tobytes(), dtype)
    if dtype == "?":
        values = values != 0
    assert np.array_equal(vyre.Buffer.of(values, device).numpy(), values)
