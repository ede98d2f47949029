"""The two views of the kernel ABI, Python and C, say the same."""

from __future__ import annotations

from tilewright import abi
from tilewright.dtypes import f32
from tilewright.runtime import _native


def test_constants_agree_with_the_header():
    facts = _native.describe_abi()
    assert facts["version"] == abi.ABI_VERSION
    assert facts["max_threads"] == abi.MAX_THREADS
    assert facts["alignment"] == abi.ALIGNMENT


def test_context_agrees_with_the_header():
    facts = _native.describe_abi()
    assert facts["size"] == abi.CONTEXT_SIZE_BYTES
    for index, (name, field) in enumerate(abi.CONTEXT.items()):
        assert field.index == index
        assert field.offset == facts[name]


def test_param_spec_reads_like_a_declaration():
    assert str(abi.ParamSpec("x", f32, ("N", 4))) == "x: f32[N, 4]"
