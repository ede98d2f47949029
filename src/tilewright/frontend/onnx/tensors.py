"""Tensors of a model file: what they claim is compared with what they hold, then they are arrays.

A tensor says its type and its dimensions, and holds its elements as bytes, in a list, or in another
file. Nothing is allocated by what it says alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from tilewright.errors import Code, ModelError
from tilewright.frontend.onnx.limits import MAX_RANK, memory_bytes
from tilewright.graph.folding import MAX_ELEMENTS
from tilewright.shown import shown

__all__ = ["array_of", "bytes_of", "is_external", "is_type", "problem_of", "sparse_problem_of"]

M002 = Code("M002", "{place} is not well formed: {problem}")

DEFERRED: Final = 1 << 20
"""Bytes beyond which `problem_of` does not look at the content, which would copy it."""

_BITS: Final[Mapping[int, int]] = {
    int(TensorProto.DataType.Value(name)): bits
    for bits, names in (
        (2, "UINT2 INT2"),
        (4, "UINT4 INT4 FLOAT4E2M1"),
        (6, "FLOAT6E2M3 FLOAT6E3M2"),
        (8, "UINT8 INT8 BOOL FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ FLOAT8E8M0"),
        (16, "UINT16 INT16 FLOAT16 BFLOAT16"),
        (32, "FLOAT INT32 UINT32"),
        (64, "DOUBLE INT64 UINT64 COMPLEX64"),
        (128, "COMPLEX128"),
    )
    for name in names.split()
    if name in TensorProto.DataType.keys()  # noqa: SIM118  (an enum of protobuf, not a mapping)
}
_LISTS: Final = ("float_data", "int32_data", "string_data", "int64_data", "double_data")
_LISTS_ALL: Final = (*_LISTS, "uint64_data")
_LIST_OF: Final[Mapping[int, str]] = {
    TensorProto.FLOAT: "float_data",
    TensorProto.COMPLEX64: "float_data",
    TensorProto.DOUBLE: "double_data",
    TensorProto.COMPLEX128: "double_data",
    TensorProto.INT64: "int64_data",
    TensorProto.UINT32: "uint64_data",
    TensorProto.UINT64: "uint64_data",
    TensorProto.STRING: "string_data",
}
"""The list that holds the elements of a type; `int32_data` for all others."""


def is_type(number: int) -> bool:
    """Whether a number stands for an element type."""
    return number in _BITS or number == TensorProto.STRING


def is_external(tensor: onnx.TensorProto) -> bool:
    """Whether its elements are in another file."""
    return bool(tensor.data_location == TensorProto.EXTERNAL)


def bytes_of(tensor: onnx.TensorProto) -> int:
    """Bytes of the elements, by type and dimensions; zero for strings."""
    count: int = math.prod(tensor.dims)
    return -(-count * _BITS.get(tensor.data_type, 0) // 8)


def problem_of(tensor: onnx.TensorProto, *, deep: bool = False) -> str:
    """What contradicts itself in a tensor; empty if nothing does.

    The content of a large one is left to `array_of`, unless `deep`.
    """
    return _form_problem(tensor) or _content_problem(tensor, deep=deep)


def _form_problem(tensor: onnx.TensorProto) -> str:
    kind, dims = tensor.data_type, list(tensor.dims)
    if not is_type(kind):
        return f"its element type is number {kind}, which has no meaning"
    if len(dims) > MAX_RANK:
        return f"it has {len(dims)} dimensions, and {MAX_RANK} are the most"
    if min(dims, default=0) < 0:
        return f"a dimension is {min(dims)}"
    if tensor.HasField("segment"):
        return "it is one of several segments, which no exporter writes"
    if not _is_possible(dims) or bytes_of(tensor) > memory_bytes():
        return f"its dimensions {dims} ask for more elements than fit into memory"
    return ""


def _is_possible(dims: Sequence[int]) -> bool:
    """Whether an array can have these dimensions: beside one that is zero the others count, too."""
    return math.prod(d for d in dims if d) <= MAX_ELEMENTS


def _content_problem(tensor: onnx.TensorProto, *, deep: bool) -> str:
    given = [name for name in _LISTS_ALL if len(getattr(tensor, name))]
    has_bytes, kind = tensor.HasField("raw_data"), tensor.data_type
    if is_external(tensor):
        if given or (has_bytes and tensor.raw_data):
            return "it has data of its own beside those in another file"
        return "strings cannot be in another file" if kind == TensorProto.STRING else ""
    if has_bytes and given:
        return f"it holds its elements twice, as bytes and in `{given[0]}`"
    if has_bytes:
        if kind == TensorProto.STRING:
            return "strings cannot be bytes"
        expected = bytes_of(tensor)
        if expected <= DEFERRED or deep:
            found = len(tensor.raw_data)
            if found != expected:
                return f"it holds {found} bytes, and its dimensions ask for {expected}"
        return ""
    wanted = _LIST_OF.get(kind, "int32_data")
    others = [name for name in given if name != wanted]
    if others:
        return f"it holds its elements in `{others[0]}`, and its type asks for `{wanted}`"
    found, expected = len(getattr(tensor, wanted)), _listed(tensor)
    return "" if found == expected else f"it holds {found} elements of {expected}"


def _listed(tensor: onnx.TensorProto) -> int:
    """Entries of the list: complex numbers take two, of the narrowest ones several share one."""
    count: int = math.prod(tensor.dims)
    kind = tensor.data_type
    if kind in (TensorProto.COMPLEX64, TensorProto.COMPLEX128):
        return count * 2
    return -(-count * _BITS[kind] // 8) if _BITS.get(kind) in (2, 4) else count


def sparse_problem_of(tensor: onnx.SparseTensorProto) -> str:
    """The same for a sparse tensor, whose places must lie inside of its dimensions."""
    dims = list(tensor.dims)
    for part in (tensor.values, tensor.indices):
        problem = problem_of(part, deep=True)
        if problem:
            return problem
    if len(dims) > MAX_RANK or min(dims, default=0) < 0 or not _is_possible(dims):
        return f"its dimensions {dims[:MAX_RANK]} have no meaning"
    dense = math.prod(dims) * _BITS.get(tensor.values.data_type, 64) // 8
    if dense > memory_bytes():
        return f"its dimensions {dims} ask for more elements than fit into memory"
    if is_external(tensor.values) or is_external(tensor.indices):
        return "its parts are in another file"
    if tensor.indices.data_type != TensorProto.INT64:
        return "its places are not of type int64"
    if not dims:
        return "it has no dimensions"
    if len(tensor.values.dims) != 1:
        return f"its values have {len(tensor.values.dims)} dimensions, not one"
    places, count = numpy_helper.to_array(tensor.indices), tensor.values.dims[0]
    linear = places.ndim == 1
    ends = np.array([math.prod(dims)] if linear else dims, np.int64)
    if places.shape not in ((count,), (count, len(dims))):
        return f"its places have the shape {list(places.shape)}"
    if places.size and ((places < 0).any() or (places >= ends).any()):
        return "a place lies outside of its dimensions"
    return ""


def array_of(tensor: onnx.TensorProto) -> NDArray[Any]:
    """The elements as an array (M002 if they are not what the tensor says)."""
    problem = problem_of(tensor, deep=True)
    if is_external(tensor):  # whoever reads a model fills in what lies elsewhere: nothing else may
        problem = "its elements are in another file, which was not read"
    if problem:
        facts = {"place": f"the tensor `{shown(tensor.name)}`", "problem": problem}
        raise ModelError(M002, facts, hint="export the model again; the file may be damaged")
    return np.asarray(numpy_helper.to_array(tensor))
