# SPDX-License-Identifier: MIT OR Apache-2.0
"""Fixtures of all tests."""

import os

import numpy as np
import pytest

os.environ.setdefault("VYRE_CACHE_DIR", "")

import vyre  # noqa: E402

SAXPY = """
kernel saxpy workgroup(256) over(y)
buffer x : read f32[] @0;
buffer y : read_write f32[] @1;
uniform a : f32 @2;
{ let i = global_id.x; if (i < len(y)) y[i] = fma(a, x[i], y[i]); }
"""


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long under a sanitizer")


@pytest.fixture(scope="session")
def saxpy():
    return vyre.kernel(SAXPY)["saxpy"]


@pytest.fixture
def xy():
    return np.arange(1000, dtype="f4"), np.full(1000, 10, "f4")


def available(name):
    return any(d["backend"] == name and d["is_available"] for d in vyre.devices())


@pytest.fixture(params=["cpu", "ref", "vulkan"])
def device(request):
    if not available(request.param):
        pytest.skip(f"no device {request.param}")
    return request.param
