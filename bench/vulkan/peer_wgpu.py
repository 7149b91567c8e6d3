# SPDX-License-Identifier: MIT OR Apache-2.0
# wgpu-native as a benchmark peer. Prints "ready VERSION", then answers each line
# "each N" or "batch N" with the nanoseconds of N dispatches of saxpy.
import struct
import sys
import time

try:
    import wgpu
except ImportError as error:
    print(f"its Python package cannot be loaded: {error}")
    sys.exit(0)

SAXPY = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> a: f32;
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < arrayLength(&y)) { y[id.x] = fma(a, x[id.x], y[id.x]); }
}
"""
ELEMENTS = 256


def find_vulkan_adapter():
    found = wgpu.gpu.enumerate_adapters_sync()
    for adapter in found:
        if adapter.info["backend_type"] == "Vulkan":
            return adapter
    return None


def main():
    adapter = find_vulkan_adapter()
    if adapter is None:
        print("it finds no Vulkan device")
        return
    device = adapter.request_device_sync()
    usage = wgpu.BufferUsage
    storage = usage.STORAGE | usage.COPY_DST | usage.COPY_SRC
    x = device.create_buffer_with_data(data=bytes(4 * ELEMENTS), usage=storage)
    y = device.create_buffer_with_data(data=bytes(4 * ELEMENTS), usage=storage)
    a = device.create_buffer_with_data(data=struct.pack("<f", 0.37), usage=usage.UNIFORM)
    pipeline = device.create_compute_pipeline(
        layout="auto",
        compute={"module": device.create_shader_module(code=SAXPY), "entry_point": "main"},
    )
    group = device.create_bind_group(
        layout=pipeline.get_bind_group_layout(0),
        entries=[{"binding": i, "resource": {"buffer": b, "offset": 0, "size": b.size}} for i, b in enumerate((x, y, a))],
    )

    def submit(count):
        encoder = device.create_command_encoder()
        commands = encoder.begin_compute_pass()
        commands.set_pipeline(pipeline)
        for _ in range(count):
            commands.set_bind_group(0, group)
            commands.dispatch_workgroups(1)
        commands.end()
        device.queue.submit([encoder.finish()])
        device._poll_wait()  # the public function fails in version 0.32

    submit(1)
    device_name = adapter.info["device"]
    print(f"ready wgpu {wgpu.__version__} on {device_name}", flush=True)
    for line in sys.stdin:
        command, count = line.split()
        start = time.perf_counter_ns()
        if command == "batch":
            submit(int(count))
        else:
            for _ in range(int(count)):
                submit(1)
        print(time.perf_counter_ns() - start, flush=True)


main()
