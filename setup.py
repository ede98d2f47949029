"""Declares the C extension; everything else about the package is in pyproject.toml."""

from pathlib import Path

from setuptools import Extension, setup

NATIVE = Path("src/tilewright/runtime/native")

setup(
    ext_modules=[
        Extension(
            "tilewright.runtime._native",
            sources=sorted(str(path) for path in NATIVE.glob("*.c")),
            depends=sorted(str(path) for path in NATIVE.glob("*.h")),
            define_macros=[("Py_LIMITED_API", "0x030B0000"), ("_GNU_SOURCE", None)],
            extra_compile_args=[
                "-std=c11",
                "-O2",
                "-fvisibility=hidden",
                "-pthread",
                "-Wall",
                "-Wextra",
            ],
            extra_link_args=["-pthread"],
            py_limited_api=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
