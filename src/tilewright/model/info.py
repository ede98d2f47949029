"""What callers may ask about a model: inputs and outputs, and what its author wrote about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from tilewright.dtypes import DTYPES, DType
from tilewright.shown import shown

if TYPE_CHECKING:
    import onnx

__all__ = ["ModelMeta", "TensorInfo", "element_type", "type_name"]

_ELEMENTS: Final = {
    "f64": ("double", 11), "f32": ("float", 1), "f16": ("float16", 10), "bf16": ("bfloat16", 16),
    "i64": ("int64", 7), "i32": ("int32", 6), "i16": ("int16", 5), "i8": ("int8", 3),
    "u64": ("uint64", 13), "u32": ("uint32", 12), "u16": ("uint16", 4), "u8": ("uint8", 2),
    "bool": ("bool", 9),
    "f8e4m3fn": ("float8e4m3fn", 17), "f8e4m3fnuz": ("float8e4m3fnuz", 18),
    "f8e5m2": ("float8e5m2", 19), "f8e5m2fnuz": ("float8e5m2fnuz", 20),
    "u4": ("uint4", 21), "i4": ("int4", 22), "f4e2m1": ("float4e2m1", 23),
    "f8e8m0": ("float8e8m0", 24), "u2": ("uint2", 25), "i2": ("int2", 26),
    "f6e2m3": ("float6e2m3", 27), "f6e3m2": ("float6e3m2", 28),
}  # fmt: skip
"""The name and the number that ONNX has for an element type."""


def type_name(dtype: DType) -> str:
    """The type of a tensor as the ONNX world writes it: `tensor(float)`."""
    return f"tensor({_ELEMENTS[dtype.name][0]})"


def element_type(dtype: DType) -> int:
    """The number of an element type in ONNX's `TensorProto.DataType`."""
    return _ELEMENTS[dtype.name][1]


def dtype_of_number(number: int) -> DType | None:
    """The inverse of `element_type`; None for types that no array of ours has."""
    return next((DTYPES[name] for name, (_, n) in _ELEMENTS.items() if n == number), None)


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output: a symbolic dimension is its name, or an expression as text.

    `type` is what the ONNX world calls it, `tensor(float)` for example. Only models that run by
    reference as a whole have others than tensors (sequences, optionals, strings): no `dtype` then.
    """

    name: str
    dtype: DType | None
    shape: tuple[int | str, ...]
    type: str

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; ValueError if it is none of its results."""
        match data:
            case {"name": str() as name, "dtype": str() | None as dtype, "type": str() as kind}:
                shape = tuple(data["shape"])
                if all(type(dim) in (int, str) for dim in shape):
                    return cls(name, DTYPES[dtype] if dtype is not None else None, shape, kind)
        raise ValueError("no description of a tensor")

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        dtype = self.dtype.name if self.dtype is not None else None
        return {"name": self.name, "dtype": dtype, "shape": list(self.shape), "type": self.type}

    @property
    def exact(self) -> str:
        """Name and type for programs: with all characters of the names, whatever these are."""
        return self._text(str)

    def __str__(self) -> str:
        return self._text(shown)

    def _text(self, written: Callable[[object], str]) -> str:
        if self.dtype is None:
            return f"{written(self.name)}: {written(self.type)}"
        return f"{written(self.name)}: {self.dtype.name}[{', '.join(map(written, self.shape))}]"


@dataclass(frozen=True, slots=True)
class ModelMeta:
    """What the author of a model wrote about it, under the names that ONNX Runtime gives."""

    producer_name: str = ""
    graph_name: str = ""
    domain: str = ""
    description: str = ""
    graph_description: str = ""
    version: int = 0
    custom_metadata_map: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, model: onnx.ModelProto) -> Self:
        """What an ONNX model says."""
        return cls(
            model.producer_name,
            model.graph.name,
            model.domain,
            model.doc_string,
            model.graph.doc_string,
            int(model.model_version),
            {entry.key: entry.value for entry in model.metadata_props},
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; what is missing or of another kind is left out."""
        plain = cls()
        known = {
            name: data[name]
            for name, default in asdict(plain).items()
            if isinstance(data.get(name), type(default))
        }
        return cls(**known)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)
