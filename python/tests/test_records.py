# SPDX-License-Identifier: MIT OR Apache-2.0
"""Structs of kernels are records of NumPy, and shapes are those of the kernel."""

import pickle

import numpy as np
import pytest

import vyre

TEXT = """
struct inner { a : u8; b : f16x2; }
struct particle { position : f32x3; mass : f32; kind : u8; part : inner; }
kernel heavier workgroup(64) over(p)
buffer p : read_write particle[] @0;
uniform by : f32 @1;
{ let i = global_id.x; if (i < len(p)) p[i].mass += by; }
kernel fill_all workgroup(64) over(o)
buffer o : write particle[] @0;
uniform one : particle @1;
{ let i = global_id.x; if (i < len(o)) o[i] = one; }
kernel masses workgroup(64) over(o)
buffer p : read particle[] @0;
buffer o : write f32[] @1;
{ let i = global_id.x; if (i < len(o)) o[i] = p[i].mass + p[i].part.b.y; }
"""
TRANSPOSE = """
kernel transposed workgroup(8, 8)
buffer x : read f32[h, w] @0;
buffer o : write f32[w, h] @1;
uniform h : u32 @2;
uniform w : u32 @3;
{ let c = global_id.x; let r = global_id.y; o[c, r] = x[r, c]; }
kernel rows workgroup(64)
buffer x : read_write f32x2[, 3] @0;
{ let i = global_id.x; x[i, 1] = f32x2(7.0); }
"""


def same(a, b):
    """True for equal records. NumPy does not copy the bytes between fields."""
    return a.dtype == b.dtype and np.array_equal(a, b)


@pytest.fixture(scope="module")
def kernels():
    return vyre.kernel(TEXT)


@pytest.fixture
def particles(kernels):
    array = np.zeros(5, kernels.heavier.dtype("p"))
    array["mass"], array["position"][:, 1], array["kind"] = np.arange(5), 3, 200
    array["part"]["b"] = (0.5, 0.25)
    return array


def test_the_layout_is_that_of_numpy(kernels, particles):
    inner = np.dtype([("a", "u1"), ("b", "f2", 2)], align=True)
    fields = [("position", "f4", 3), ("mass", "f4"), ("kind", "u1"), ("part", inner)]
    assert kernels.heavier.dtype("p") == np.dtype(fields, align=True) == particles.dtype
    assert kernels.heavier.params[0].dtype == "particle" and kernels.heavier.dtype("by") == np.float32
    with pytest.raises(KeyError, match="Fix: "):
        kernels.heavier.dtype("q")


def test_records_in_and_out(kernels, particles, device):
    r = kernels.heavier(particles, 1.5, device=device)
    want = particles.copy()
    want["mass"] += np.float32(1.5)
    assert same(r, want)
    assert particles["mass"][1] == 1, "an argument was changed"
    two = kernels.heavier(particles.reshape(5, 1), 1.5, device=device)
    assert same(two, want.reshape(5, 1))
    assert np.array_equal(kernels.masses(particles, device=device), particles["mass"] + np.float32(0.25))
    out, stats = particles.copy(), {}
    assert kernels.heavier(out, by=1.5, out=out, device=device, stats=stats) is out
    assert same(out, want)
    assert device == "vulkan" or stats["copied_bytes"] == 0


def test_buffers_of_records(kernels, particles, device):
    b = vyre.Buffer.of(particles, device)
    assert b.dtype == particles.dtype and b.nbytes == particles.nbytes
    assert "mass" in repr(b) and b[2:4].numpy()["mass"].tolist() == [2, 3]
    r = kernels.heavier(b, 2.0, device=device)
    assert isinstance(r, vyre.Buffer) and r.numpy()["mass"].tolist() == [2, 3, 4, 5, 6]
    assert same(pickle.loads(pickle.dumps(r)).numpy(), r.numpy())
    with pytest.raises(TypeError, match="Fix: "):
        kernels.heavier(vyre.Buffer(100, "u1", device=device), 1.0, device=device)
    if device != "vulkan":
        view = np.asarray(memoryview(b))
        assert view.dtype == particles.dtype and np.shares_memory(view, np.asarray(b))
        with pytest.raises(BufferError, match="Fix: "):
            np.from_dlpack(b)


def test_uniforms_of_records(kernels, particles):
    record = ((1, 2, 3), 4.5, 6, (7, (0.5, 1)))
    as_dict = dict(position=(1, 2, 3), mass=4.5, kind=6, part=dict(a=7, b=[0.5, 1]))
    want = np.array([record] * 3, particles.dtype)
    for given in (record, as_dict, want[0], want[:1], want[1].reshape(())):
        assert same(kernels.fill_all(given, o=3), want)
    wrong = {
        "a float for an integer": ((1, 2, 3), 4.5, 6.5, (7, (0.5, 1))),
        "too few fields": ((1, 2, 3), 4.5, 6),
        "too few numbers": ((1, 2), 4.5, 6, (7, (0.5, 1))),
        "no record": 3,
        "a name too many": {**as_dict, "other": 1},
        "another record": np.zeros((), [("a", "f4")]),
    }
    for name, given in wrong.items():
        with pytest.raises(TypeError, match="(?s)Fix: "):
            kernels.fill_all(given, o=3)
            pytest.fail(name)
    for kind, half in ((256, 0.5), (-1, 0.5), (0, 1e9)):
        with pytest.raises(OverflowError, match="(?s)'one\\.(kind|part\\.b)'.*Fix: "):
            kernels.fill_all(((1, 2, 3), 4.5, kind, (7, (half, 1))), o=3)


def test_other_records_are_refused(kernels, particles):
    packed = np.dtype([("position", "f4", 3), ("mass", "f4"), ("kind", "u1"), ("part", [("a", "u1"), ("b", "f2", 2)])])
    big = particles.dtype.newbyteorder(">")
    for other in (particles.astype(packed), particles.astype(big), particles.view("u1"), np.zeros(9, "f4"), [1, 2]):
        with pytest.raises(TypeError, match=r'(?s)struct particle.*Fix: .*Kernel.dtype\("p"\)'):
            kernels.heavier(other, 1.0)
    for gaps in (particles[::2], particles[::2].view(np.recarray), particles[::-1]):
        with pytest.raises(TypeError, match="ascontiguousarray"):
            kernels.heavier(gaps, 1.0)
    with pytest.raises(ValueError, match="read-only"):
        kernels.heavier(particles, 1.0, out=np.frombuffer(particles.tobytes(), particles.dtype))
    with pytest.raises(TypeError, match="masked"):
        kernels.heavier(np.ma.array(np.zeros(3, particles.dtype)), 1.0)
    assert same(kernels.heavier(memoryview(particles), 1.0), kernels.heavier(particles.view(np.recarray), 1.0))


def test_graphs_and_recordings_of_records(kernels, particles, device):
    want = kernels.heavier(particles, 3.0)
    with vyre.WaveGraph(device) as graph:
        m = graph.memory("m", 5, particles.dtype, input=True, output=True)
        graph.wave(kernels.heavier, m, 3.0)
        floats = graph.memory("floats", 30, "f4")
        with pytest.raises(TypeError, match="struct particle.*float32"):
            graph.wave(kernels.heavier, floats, 3.0)
    assert same(graph.run(m=particles), want)
    many = np.zeros(1000, particles.dtype)  # more than one workgroup
    with vyre.WaveGraph(device) as graph:
        m = graph.memory("m", 1000, particles.dtype, input=True, output=True)
        graph.wave(kernels.heavier, m, 3.0)
    assert np.all(graph.run(m=many)["mass"] == 3)
    with vyre.Recording(device) as recording:
        p, by = recording.slot("p"), recording.slot("by")
        recording.dispatch(kernels.heavier, p, by, out=p)
    array = particles.copy()
    recording.replay(p=array, by=np.float32([3]))
    assert same(array, want)


def test_extents_follow_from_the_arrays(device):
    k = vyre.kernel(TRANSPOSE)["transposed"]
    x = np.arange(12, dtype="f4").reshape(3, 4)
    for given in ({}, {"h": 3}, {"h": 3, "w": 4}):
        assert np.array_equal(k(x, **given, grid=1, device=device), x.T)
    assert np.array_equal(k(x, h=2, grid=1, device=device), x[:2].T)
    assert np.array_equal(k(x.ravel(), 4, 3, grid=1, device=device), x.reshape(4, 3).T)
    with pytest.raises(TypeError, match="misses 'h'"):
        k(x.ravel(), grid=1, device=device)


def test_other_shapes_are_refused():
    kernels = vyre.kernel(TRANSPOSE)
    x = np.arange(12, dtype="f4").reshape(3, 4)
    for given, shape in (((4, 3), "(4, 3)"), ((3, 3), "(3, 3)"), ((4, 4), "(4, 4)")):
        with pytest.raises(ValueError) as caught:
            kernels.transposed(x, *given, grid=1)
        assert f"'x' has the shape (3, 4), and kernel 'transposed' reads it as {shape}" in str(caught.value)
        assert "Fix: " in str(caught.value)
    with pytest.raises(ValueError, match="'o' has the shape"):
        kernels.transposed(x, grid=1, out=np.empty((3, 4), "f4"))
    assert kernels.rows(np.zeros((5, 3, 2), "f4")[:4], grid=1).shape == (4, 3, 2)
    with pytest.raises(ValueError, match="reads it as"):
        kernels.rows(np.zeros((3, 4, 2), "f4"), grid=1)
