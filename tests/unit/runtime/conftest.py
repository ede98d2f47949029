"""Kernels in C, compiled once for each test process."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tilewright.dtypes import dtype_of
from tilewright.runtime import Kernel, ParamSpec

HERE = Path(__file__).parent
NATIVE = HERE.parents[2] / "src/tilewright/runtime/native"


def params(text: str) -> tuple[ParamSpec, ...]:
    """`"x: f32[N, 4]; -> y: f32[N]"` as parameters; an arrow marks an output."""
    specs = []
    for part in text.split(";"):
        is_output = "->" in part
        name, _, rest = part.replace("->", "").strip().partition(":")
        dtype, _, extents = rest.strip().rstrip("]").partition("[")
        shape = tuple(
            int(d) if d.isdigit() else d for d in extents.replace(" ", "").split(",") if d
        )
        specs.append(ParamSpec(name, dtype_of(dtype), shape, is_output))
    return tuple(specs)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = shutil.which("gcc") or shutil.which("cc")
    assert compiler is not None, "these tests need a C compiler"
    target = tmp_path_factory.mktemp("kernels") / "kernels.so"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]
    command = [compiler, *flags, f"-I{NATIVE}", HERE / "kernels.c", "-o", target]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(target))


@pytest.fixture(scope="session")
def make_kernel(library: ctypes.CDLL) -> Callable[..., Kernel]:
    """`make_kernel("add", "x: f32[N]; …", threads=2)`; sizes in order of first appearance."""

    def make(entry: str, text: str | tuple[ParamSpec, ...], **options: object) -> Kernel:
        specs = params(text) if isinstance(text, str) else text
        sizes = tuple(dict.fromkeys(d for spec in specs for d in spec.shape if isinstance(d, str)))
        address = ctypes.cast(getattr(library, entry), ctypes.c_void_p).value
        return Kernel(address, specs, sizes, name=entry, keep_alive=library, **options)

    return make


@pytest.fixture
def add(make_kernel):
    return make_kernel("add", "x: f32[N]; y: f32[N]; -> z: f32[N]")


@pytest.fixture
def matmul(make_kernel):
    return make_kernel("matmul", "a: f32[M, K]; b: f32[K, N]; -> c: f32[M, N]")


@pytest.fixture(scope="session")
def entry(library: ctypes.CDLL) -> Callable[[str], int]:
    """The address of a function of kernels.c."""

    def find(name: str) -> int:
        address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        assert address is not None
        return address

    return find
