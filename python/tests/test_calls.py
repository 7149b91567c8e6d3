# SPDX-License-Identifier: MIT OR Apache-2.0
"""Calls of kernels: results, arguments, errors."""

import array
import ctypes
import gc
import pickle
import sys

import numpy as np
import pytest

import vyre


def expected(a, x, y):
    """fma of numbers whose products and sums are exact in f64."""
    return (np.float64(a) * x.astype("f8") + y.astype("f8")).astype("f4")


def test_a_call_returns_a_new_array(saxpy, xy, device):
    x, y = xy
    before = y.copy()
    r = saxpy(x, y, a=2.0, device=device)
    assert np.array_equal(r, expected(2, x, y))
    assert np.array_equal(y, before) and r.dtype == np.float32


def test_out_is_written_in_place(saxpy, xy, device):
    x, y = xy
    want = expected(3, x, y)
    r = saxpy(x, y, 3, out=y, device=device)
    assert r is y and np.array_equal(y, want)


def test_arguments_by_name_and_shapes(saxpy, xy):
    x, y = xy
    r = saxpy(y=y.reshape(10, 100), x=x, a=np.float32(2))
    assert r.shape == (10, 100)
    assert np.array_equal(r.ravel(), expected(2, x, y))


KERNELS = """
kernel square workgroup(64)
buffer x : read f32[] @0;
buffer o : write f32[] @1;
{ let i = global_id.x; if (i < len(o)) o[i] = x[i] * x[i]; }
kernel pair workgroup(64)
buffer a : read i32[] @0;
buffer b : read i32[] @1;
buffer s : write i32[] @2;
buffer d : write i32[4] @3;
{ let i = global_id.x; if (i < len(s)) s[i] = a[i] + b[i]; if (i < 4) d[i] = a[i] - b[i]; }
kernel fill workgroup(8)
buffer o : write u64[] @0;
uniform v : u64 @1;
{ let i = global_id.x; if (i < len(o)) o[i] = v; }
kernel count workgroup(1)
buffer total : persistent read_write u32[1] @0;
{ atomic_add(total[0], 1); }
kernel endless workgroup(1)
buffer o : write u32[1] @0;
uniform n : u32 @1;
{ var x = 1u; for (let i = 0u; i < n; i++) { for (let j = 0u; j < n; j++) { x = (x ^ (x >> 7u)) * 1664525u + j; } } o[0] = x; }
"""


@pytest.fixture(scope="module")
def kernels():
    return vyre.kernel(KERNELS)


def test_a_new_output_has_the_shape_of_the_inputs(kernels):
    r = kernels.square(np.full((3, 4), 3, "f4"))
    assert r.shape == (3, 4) and (r == 9).all()


def test_several_outputs(kernels):
    a, b = np.arange(10, dtype="i4"), np.ones(10, "i4")
    s, d = kernels.pair(a, b)
    assert np.array_equal(s, a + b) and np.array_equal(d, (a - b)[:4])
    into = np.empty(10, "i4")
    s, d = kernels.pair(a, b, out=(into, None))
    assert s is into and np.array_equal(d, (a - b)[:4])


def test_an_unknown_length_is_refused_and_can_be_given(kernels):
    with pytest.raises(ValueError, match="length of output 'o' is not known.*\nFix: pass out="):
        kernels.fill(v=7)
    assert np.array_equal(kernels.fill(v=7, o=5), np.full(5, 7, "u8"))
    with pytest.raises(ValueError, match="different lengths"):
        kernels.pair(np.zeros(3, "i4"), np.zeros(4, "i4"))


def test_grid_and_stats(kernels):
    stats = {}
    x = np.arange(100, dtype="f4")
    out = np.zeros(100, "f4")
    kernels.square(x, out=out, grid=1, stats=stats)
    assert (out[64:] == 0).all() and out[63] == 63 * 63
    assert stats["copies"] == 0 and stats["copied_bytes"] == 0 and stats["borrowed_bytes"] == 800


@pytest.mark.parametrize("form", ["bytearray", "array", "ctypes", "memoryview", "memmap"])
def test_other_objects_with_the_buffer_protocol(kernels, form, tmp_path):
    values = np.arange(8, dtype="f4")
    made = {
        "array": lambda: array.array("f", values),
        "ctypes": lambda: (ctypes.c_float * 8)(*values),
        "memoryview": lambda: memoryview(values),
        "memmap": lambda: np.memmap(tmp_path / "m", "f4", "w+", shape=8),
        "bytearray": lambda: None,
    }[form]()
    if form == "bytearray":
        with pytest.raises(TypeError, match="takes float32"):
            kernels.square(bytearray(values.tobytes()))
        return
    if form == "memmap":
        made[:] = values
    assert np.array_equal(kernels.square(made), values * values)


def test_what_does_not_fit_is_refused(saxpy, xy):
    x, y = xy
    cases = [
        (TypeError, "'x' takes float32, not float64", lambda: saxpy(x.astype("f8"), y, a=1)),
        (TypeError, "do not follow each other", lambda: saxpy(x[::2], y[::2], a=1)),
        (TypeError, "do not follow each other", lambda: saxpy(x[::-1], y, a=1)),
        (TypeError, "big endian", lambda: saxpy(x.astype(">f4"), y, a=1)),
        (TypeError, "masked array", lambda: saxpy(np.ma.array(x), y, a=1)),
        (TypeError, "misses 'a'", lambda: saxpy(x, y)),
        (TypeError, "takes 3 inputs, not 4", lambda: saxpy(x, y, 1, 2)),
        (TypeError, "given twice", lambda: saxpy(x, y, 1, a=2)),
        (TypeError, "no buffer called 'b'", lambda: saxpy(x, y, 1, b=2)),
        (TypeError, "takes a number", lambda: saxpy(x, y, "1")),
        (TypeError, "takes an array, not", lambda: saxpy(1.0, y, 1)),
        (TypeError, "takes an array, not", lambda: saxpy([1.0], y, 1)),
        (OverflowError, "does not fit into 'a'", lambda: saxpy(x, y, 1e300)),
        (ValueError, "grid", lambda: saxpy(x, y, 1, grid=(1, 2, 3, 4))),
        (ValueError, "timeout", lambda: saxpy(x, y, 1, timeout=-1)),
        (TypeError, "a device is a name", lambda: saxpy(x, y, 1, device=3)),
        (vyre.Unsupported, "no device", lambda: saxpy(x, y, 1, device="abacus")),
    ]
    for kind, message, call in cases:
        with pytest.raises(kind, match=message) as caught:
            call()
        assert "Fix: " in str(caught.value), message


def test_a_read_only_output_is_refused_before_anything_runs(saxpy, xy):
    x, y = xy
    y.setflags(write=False)
    with pytest.raises(ValueError, match="read-only"):
        saxpy(x, y, a=1, out=y)
    assert (y == 10).all()
    assert saxpy(x, y, a=1)[1] == 11  # a read-only input is fine


def test_integer_uniforms_check_their_range(kernels):
    with pytest.raises(OverflowError, match="u64"):
        kernels.fill(v=-1, o=1)
    with pytest.raises(OverflowError):
        kernels.fill(v=2**64, o=1)
    assert kernels.fill(v=2**64 - 1, o=1)[0] == 2**64 - 1
    with pytest.raises(TypeError, match="takes an integer"):
        kernels.fill(v=1.5, o=1)


def test_overlap_with_written_memory_is_refused(saxpy):
    memory = np.zeros(101, "f4")
    with pytest.raises(vyre.InvalidArgument, match="overlap"):
        saxpy(memory[:100], memory[1:], a=1, out=memory[1:])


def test_errors_carry_numbers_and_pickle_whole():
    with pytest.raises(vyre.PlanRejected) as caught:
        vyre.plan.queue(9, 8, 16, 0, 1 << 20)
    error = caught.value
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is vyre.PlanRejected and str(again) == str(error)
    assert error.numbers and again.numbers == error.numbers and error.fix == again.fix
    assert again.kind == error.kind == "initial_items_exceed_capacity"


def test_mistakes_in_kernels_show_source_and_fix():
    with pytest.raises(vyre.InvalidProgram) as caught:
        vyre.kernel("kernel k workgroup(1)\nbuffer o : write f32[] @0;\n{ o[0] = 1u; }\n")
    text = str(caught.value)
    assert "o[0] = 1u" in text and "^" in text and "Fix:" in text
    assert caught.value.findings[0]["line"] == 3


def test_kernels_pickle_with_source_and_name():
    k = vyre.kernel(KERNELS)["square"]
    again = pickle.loads(pickle.dumps(k))
    assert again == k and again.name == "square" and again.text == k.text
    assert hash(again) == hash(k) and again.fingerprint == k.fingerprint


def test_the_binary_form_has_the_source(tmp_path):
    racy = "kernel r workgroup(4)\nbuffer o : write u32[] @0;\n{ o[0] = global_id.x; }"
    k = vyre.kernel(racy, "racy.vyre")["r"]
    data = k.to_bytes()
    again = vyre.from_bytes(data)
    assert again == k and again.text == racy and again.file == "racy.vyre"
    path = tmp_path / "racy.bin"
    path.write_bytes(data)
    with pytest.raises(vyre.CheckFailed) as caught:
        vyre.check(vyre.load(path).r, o=4)
    assert "racy.vyre:3" in str(caught.value) and "o[0] = global_id.x" in str(caught.value)
    with pytest.raises(vyre.InvalidProgram, match="checksum"):
        vyre.from_bytes(data[:-1] + b"?")
    with pytest.raises(vyre.InvalidProgram, match="(?s)Fix:"):
        vyre.from_bytes(b"")


def test_half_and_bfloat16_uniforms():
    k = vyre.kernel(
        "kernel k workgroup(1)\nbuffer o : write f32[2] @0;\nuniform h : f16 @1;\nuniform b : bf16 @2;\n"
        "{ o[0] = h; o[1] = b; }"
    )["k"]
    assert list(k(h=1.5, b=3.0)) == [1.5, 3.0]
    with pytest.raises(OverflowError):
        k(h=1e6, b=0)


def test_a_timeout_ends_a_kernel(kernels):
    with pytest.raises(vyre.TimedOut) as caught:
        kernels.endless(n=60_000, timeout=0.05, device="cpu")
    assert isinstance(caught.value, TimeoutError) and isinstance(caught.value, vyre.DispatchFailed)


def test_persistent_buffers_keep_state(kernels, device):
    b = vyre.Buffer(1, "u4", device=device)
    for _ in range(3):
        kernels["count"](b, grid=5, device=device)
    assert b.numpy()[0] == 15
    with pytest.raises(TypeError, match="takes a vyre.Buffer"):
        kernels["count"](np.zeros(1, "u4"))


def test_check_finds_races_and_raises_with_carets():
    k = vyre.kernel("kernel r workgroup(4)\nbuffer o : write u32[] @0;\n{ o[0] = global_id.x; }")["r"]
    with pytest.raises(vyre.CheckFailed) as caught:
        vyre.check(k, o=4)
    assert isinstance(caught.value, AssertionError) and "^" in str(caught.value)
    assert caught.value.findings[0]["kind"] == "race"
    assert pickle.loads(pickle.dumps(caught.value)).findings == caught.value.findings


def test_launches_and_emit(saxpy, xy):
    x, y = xy
    launch = saxpy.on("ref", workgroup=64)
    assert np.array_equal(launch(x, y, a=2), saxpy(x, y, a=2))
    assert "saxpy" in saxpy.emit("c") and "OpEntryPoint" in saxpy.emit("spirv-text")
    with pytest.raises(ValueError, match="unknown form"):
        saxpy.emit("cobol")


def test_calls_leak_nothing(saxpy, kernels, xy):
    x, y = xy

    def run(n):
        for _ in range(n):
            saxpy(x, y, a=2, out=y)
            kernels.square(x)
            for bad in (lambda: saxpy(x, y), lambda: saxpy(x[::2], y, a=1)):
                with pytest.raises(TypeError):
                    bad()

    run(50)
    gc.collect()
    before = len(gc.get_objects()), sys.getrefcount(x), sys.getrefcount(None)
    run(200)
    gc.collect()
    after = len(gc.get_objects()), sys.getrefcount(x), sys.getrefcount(None)
    assert after[1] == before[1]
    assert abs(after[0] - before[0]) < 50 and abs(after[2] - before[2]) < 100


def test_faults_raise_and_the_next_call_works(saxpy, xy):
    x, y = xy
    want = saxpy(x, y, a=2)
    for fault, kind in [("submit:1", vyre.DispatchFailed), ("compile:1", vyre.CompileFailed)]:
        vyre._vyre.inject_faults(fault)
        fresh = vyre.kernel(KERNELS.replace("square", "sq" + fault[:3]))
        with pytest.raises(kind):
            fresh["sq" + fault[:3]](x)
        vyre._vyre.inject_faults("")
        assert np.array_equal(fresh["sq" + fault[:3]](x), x * x)
    assert np.array_equal(saxpy(x, y, a=2), want)


def test_kernels_describe_themselves(saxpy):
    import inspect

    assert str(inspect.signature(saxpy)).startswith("(x: 'f32[]', y: 'f32[]', a: 'f32', *, out=None")
    assert saxpy.__name__ == saxpy.name == "saxpy"
    assert vyre.Kernel.from_bytes(saxpy.to_bytes()) == saxpy
    assert repr(saxpy.on("ref")) == "<vyre.Launch saxpy on ref>"


def test_every_refusal_has_a_fix(saxpy, xy):
    x, y = xy
    cases = {
        'pass "lowered", "c"': lambda: saxpy.emit("ptx"),
        'or "soft"': lambda: saxpy.emit("c", float_mode="exact"),
        "decode bytes": lambda: vyre.kernel(b"kernel"),
        "number of seconds": lambda: saxpy(x, y, a=1, timeout="1"),
        "0 or more": lambda: vyre.check(saxpy, x, y, a=1, schedules=-1),
        "Buffer.of": lambda: vyre.Buffer.from_dlpack(3),
    }
    for fix, call in cases.items():
        with pytest.raises((TypeError, ValueError)) as caught:
            call()
        assert fix in str(caught.value).split("Fix: ")[1]
def test_load_reads_imports(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "far.vyre").write_text("const FAR = 0.5;\n")
    (tmp_path / "part.vyre").write_text("fn twice(x: f32) -> f32 { return x * 2.0; }\n")
    main = tmp_path / "main.vyre"
    main.write_text(
        'import "part.vyre" as part;\nimport "far.vyre";\n'
        "kernel k workgroup(4) over(y)\nbuffer y : read_write f32[] @0;\n"
        "{ y[global_id.x] = part.twice(y[global_id.x]) + FAR; }\n"
    )
    k = vyre.load(main, [tmp_path / "lib"]).k
    assert k(np.ones(4, "f4")).tolist() == [2.5] * 4
    with pytest.raises(vyre.InvalidProgram, match="cannot read"):
        vyre.load(main)
    with pytest.raises(vyre.InvalidProgram, match="need a function"):
        vyre.kernel(main.read_text())
