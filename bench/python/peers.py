# SPDX-License-Identifier: MIT OR Apache-2.0
"""Peers of the suite python. Each class makes callables that compute
y = a * x + y ("saxpy") and o = exp(-x * x) * sin(x) ("wave") in place, in the
form that its manual recommends. A callable has finished when it returns. A
constructor raises ImportError, or whatever the package raises, where the peer
cannot run.
"""

import os

import numpy as np

A = np.float32(2.0)


class NumPy:
    version = np.__version__

    def saxpy(self, x, y):
        t = np.empty_like(x)

        def run():
            np.multiply(x, A, out=t)
            np.add(t, y, out=y)

        return run

    def wave(self, x, o):
        t, s = np.empty_like(x), np.empty_like(x)

        def run():
            np.multiply(x, x, out=t)
            np.negative(t, out=t)
            np.exp(t, out=t)
            np.sin(x, out=s)
            np.multiply(t, s, out=o)

        return run


class Numba:
    def __init__(self, parallel=False):
        import numba

        self.version = numba.__version__
        span = numba.prange if parallel else range

        @numba.njit(parallel=parallel)
        def saxpy(x, y, a):
            for i in span(x.size):
                y[i] = a * x[i] + y[i]

        @numba.njit(parallel=parallel)
        def wave(x, o):
            for i in span(x.size):
                o[i] = np.exp(-x[i] * x[i]) * np.sin(x[i])

        self._saxpy, self._wave = saxpy, wave

    def saxpy(self, x, y):
        f = self._saxpy
        f(x, y.copy(), A)
        return lambda: f(x, y, A)

    def wave(self, x, o):
        f = self._wave
        f(x, o)
        return lambda: f(x, o)


class NumbaParallel(Numba):
    def __init__(self):
        super().__init__(parallel=True)


class NumExpr:
    def __init__(self):
        import numexpr

        self.version = numexpr.__version__
        numexpr.set_num_threads(os.cpu_count())
        self._evaluate = numexpr.evaluate

    def saxpy(self, x, y):
        evaluate, a = self._evaluate, A
        return lambda: evaluate("a * x + y", {"a": a, "x": x, "y": y}, out=y)

    def wave(self, x, o):
        evaluate = self._evaluate
        return lambda: evaluate("exp(-x * x) * sin(x)", {"x": x}, out=o)


class Jax:
    """Arrays of JAX are immutable: a call makes a new one, or donates its input."""

    def __init__(self):
        os.environ.setdefault("JAX_PLATFORMS", "cpu")
        import jax

        self.version = jax.__version__
        self._jax = jax

    def saxpy(self, x, y):
        jax = self._jax
        f = jax.jit(lambda x, y: A * x + y, donate_argnums=1)
        on_device = jax.device_put(x)
        state = [jax.device_put(y)]

        def run():
            state[0] = f(on_device, state[0])
            state[0].block_until_ready()

        run.result = lambda: np.asarray(state[0])
        return run

    def wave(self, x, o):
        jax = self._jax
        f = jax.jit(lambda x: jax.numpy.exp(-x * x) * jax.numpy.sin(x))
        on_device = jax.device_put(x)
        state = [None]

        def run():
            state[0] = f(on_device)
            state[0].block_until_ready()

        run.result = lambda: np.asarray(state[0])
        return run


OPENCL = """
kernel void saxpy(global const float *x, global float *y, float a) {
  size_t i = get_global_id(0);
  y[i] = fma(a, x[i], y[i]);
}
kernel void wave(global const float *x, global float *o) {
  size_t i = get_global_id(0);
  o[i] = exp(-x[i] * x[i]) * sin(x[i]);
}
"""


class OpenCL:
    def __init__(self):
        import pyopencl as cl

        self.version = cl.VERSION_TEXT
        platform = next(p for p in cl.get_platforms() if "Portable" in p.name)
        self._cl = cl
        self._context = cl.Context(platform.get_devices())
        self._queue = cl.CommandQueue(self._context)
        program = cl.Program(self._context, OPENCL).build()
        self._saxpy, self._wave = cl.Kernel(program, "saxpy"), cl.Kernel(program, "wave")

    def _memory(self, array):
        flags = self._cl.mem_flags
        return self._cl.Buffer(self._context, flags.READ_WRITE | flags.USE_HOST_PTR, hostbuf=array)

    def saxpy(self, x, y):
        q, k, mx, my, size = self._queue, self._saxpy, self._memory(x), self._memory(y), (x.size,)

        def run():
            k(q, size, None, mx, my, A)
            q.finish()

        run.result = lambda: self._cl.enqueue_map_buffer(
            q, my, self._cl.map_flags.READ, 0, y.shape, y.dtype
        )[0]
        return run

    def wave(self, x, o):
        q, k, mx, mo, size = self._queue, self._wave, self._memory(x), self._memory(o), (x.size,)

        def run():
            k(q, size, None, mx, mo)
            q.finish()

        run.result = lambda: self._cl.enqueue_map_buffer(
            q, mo, self._cl.map_flags.READ, 0, o.shape, o.dtype
        )[0]
        return run


class Warp:
    def __init__(self):
        import warp as wp

        wp.config.quiet = True
        wp.init()
        self.version = wp.config.version
        self._wp = wp
        import warp_kernels

        self._kernels = warp_kernels

    def saxpy(self, x, y):
        wp, k = self._wp, self._kernels.saxpy
        wx, wy = wp.from_numpy(x, device="cpu"), wp.from_numpy(y, device="cpu")
        a = float(A)

        def run():
            wp.launch(k, dim=x.size, inputs=[wx, wy, a], device="cpu")

        run.result = wy.numpy
        return run

    def wave(self, x, o):
        wp, k = self._wp, self._kernels.wave
        wx, wo = wp.from_numpy(x, device="cpu"), wp.from_numpy(o, device="cpu")

        def run():
            wp.launch(k, dim=x.size, inputs=[wx, wo], device="cpu")

        run.result = wo.numpy
        return run


class Taichi:
    def __init__(self):
        os.environ.setdefault("TI_LOG_LEVEL", "error")
        import taichi as ti

        ti.init(arch=ti.cpu, log_level=ti.ERROR, fast_math=False)
        self.version = ".".join(map(str, ti.__version__))
        self._ti = ti
        import taichi_kernels

        self._kernels = taichi_kernels

    def _memory(self, array):
        made = self._ti.ndarray(self._ti.f32, shape=array.shape)
        made.from_numpy(array)
        return made

    def saxpy(self, x, y):
        ti, k, mx, my, a = self._ti, self._kernels.saxpy, self._memory(x), self._memory(y), float(A)

        def run():
            k(mx, my, a)
            ti.sync()

        run.result = my.to_numpy
        return run

    def wave(self, x, o):
        ti, k, mx, mo = self._ti, self._kernels.wave, self._memory(x), self._memory(o)

        def run():
            k(mx, mo)
            ti.sync()

        run.result = mo.to_numpy
        return run


WGSL = """
@group(0) @binding(0) var<storage, read> x : array<f32>;
@group(0) @binding(1) var<storage, read_write> y : array<f32>;
@compute @workgroup_size(256)
fn saxpy(@builtin(global_invocation_id) id : vec3<u32>, @builtin(num_workgroups) n : vec3<u32>) {
  let i = id.x + id.y * n.x * 256u;
  if (i < arrayLength(&y)) { y[i] = fma(2.0, x[i], y[i]); }
}
@compute @workgroup_size(256)
fn wave(@builtin(global_invocation_id) id : vec3<u32>, @builtin(num_workgroups) n : vec3<u32>) {
  let i = id.x + id.y * n.x * 256u;
  if (i < arrayLength(&y)) { y[i] = exp(-x[i] * x[i]) * sin(x[i]); }
}
"""


class Wgpu:
    def __init__(self):
        import wgpu

        self.version = wgpu.__version__
        self._wgpu = wgpu
        adapter = wgpu.gpu.request_adapter_sync(power_preference="high-performance")
        self.version += f" on {adapter.info['device']}"
        self._device = adapter.request_device_sync(
            required_limits={"max-storage-buffer-binding-size": 1 << 27}
        )

    def _make(self, name, x, y):
        usage, device = self._wgpu.BufferUsage, self._device
        every = usage.STORAGE | usage.COPY_SRC | usage.COPY_DST
        bx = device.create_buffer_with_data(data=x, usage=every)
        by = device.create_buffer_with_data(data=y, usage=every)
        pipeline = device.create_compute_pipeline(
            layout="auto",
            compute={"module": device.create_shader_module(code=WGSL), "entry_point": name},
        )
        group = device.create_bind_group(
            layout=pipeline.get_bind_group_layout(0),
            entries=[
                {"binding": 0, "resource": {"buffer": bx, "offset": 0, "size": bx.size}},
                {"binding": 1, "resource": {"buffer": by, "offset": 0, "size": by.size}},
            ],
        )
        groups = (x.size + 255) // 256
        grid = (min(groups, 32768), (groups + 32767) // 32768)

        def run():
            encoder = device.create_command_encoder()
            work = encoder.begin_compute_pass()
            work.set_pipeline(pipeline)
            work.set_bind_group(0, group)
            work.dispatch_workgroups(*grid)
            work.end()
            device.queue.submit([encoder.finish()])
            device.queue.read_buffer(by, 0, 4)  # waits

        run.result = lambda: np.frombuffer(device.queue.read_buffer(by), "f4")
        return run

    def saxpy(self, x, y):
        return self._make("saxpy", x, y)

    def wave(self, x, o):
        return self._make("wave", x, o)


PEERS = {
    "NumPy": NumPy,
    "numba": Numba,
    "numba parallel": NumbaParallel,
    "numexpr": NumExpr,
    "jax": Jax,
    "PyOpenCL on PoCL": OpenCL,
    "warp": Warp,
    "taichi": Taichi,
    "wgpu": Wgpu,
}
