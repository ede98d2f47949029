"""What callers hand over to a model that is compiled for some of its inputs.

`Reader.key` is on the path of every run: arrays that fit are known by their bytes, and nothing is
checked, because only what was checked once has been compiled for. `Reader.settled` checks and
explains.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tilewright.abi import ParamSpec
from tilewright.errors import CallError
from tilewright.runtime.checks import C002, Sizes
from tilewright.runtime.feeds import missing_input, read_array, unknown_port
from tilewright.shown import quoted

if TYPE_CHECKING:
    import onnx

    from tilewright.dtypes import DType
    from tilewright.frontend.onnx.settled import Dims, Form, Needs, Settled

__all__ = ["Key", "Reader"]

Array = NDArray[Any]
Key = tuple[Hashable, ...]


@dataclass(frozen=True)
class _Input:
    """An input as the model declares it; `shape` is None where the rank is not known."""

    name: str
    dtype: DType
    shape: tuple[int | str, ...] | None
    proto: onnx.TypeProto

    @classmethod
    def of(cls, info: onnx.ValueInfoProto) -> _Input:
        from tilewright.frontend.onnx.named_sizes import dims_of
        from tilewright.frontend.onnx.node import dtype_of_onnx
        from tilewright.frontend.onnx.settled import element_type

        tensor = info.type.tensor_type
        shape = None
        if info.type.WhichOneof("value") == "tensor_type" and tensor.HasField("shape"):
            shape = dims_of(info)
        return cls(info.name, dtype_of_onnx(element_type(info.type) or 0), shape, info.type)

    def read(self, model: str, value: object) -> Array:
        """The value as an array that fits; raises `CallError`."""
        given = self.shape if self.shape is not None else tuple(np.shape(value))  # type: ignore[call-overload]
        shape = tuple(d if isinstance(d, int) else f"{d}_{k}" for k, d in enumerate(given))
        spec = ParamSpec(self.name, self.dtype, shape)
        return np.array(read_array(model, spec, value, Sizes()))


class Reader:
    """The inputs of one model; `exact` forms have sizes, others only ranks and sizes of one."""

    def __init__(self, model: onnx.ModelProto, needs: Needs) -> None:
        from tilewright.frontend.onnx.settled import MAX_ELEMENTS, open_inputs

        infos = {info.name: info for info in open_inputs(model)}
        self.model = str(model.graph.name) or "model"
        self.names = tuple(infos)
        self.values = tuple(_Input.of(infos[name]) for name in needs.values)
        self.forms = tuple(_Input.of(infos[name]) for name in needs.forms)
        self.exact = False
        self._most = MAX_ELEMENTS
        self._settled = frozenset(needs.values)
        self._types = [(own.name, own.dtype.numpy) for own in self.values]

    def key(self, feeds: Mapping[str, object]) -> Key | None:
        """What is settled by these feeds, equal for equal ones; None if it is too much."""
        parts: list[Hashable] = []
        for name, dtype in self._types:
            value = feeds.get(name)
            if type(value) is not np.ndarray or value.dtype is not dtype:
                return self._slow_key(feeds)
            if value.size > self._most:
                return None
            parts.append((value.shape, value.tobytes()))
        if not self.forms:
            return tuple(parts)
        return self._slow_key(feeds)

    def _slow_key(self, feeds: Mapping[str, object]) -> Key | None:
        settled = self.settled(feeds)
        arrays = settled.values.values()
        if any(array.size > self._most for array in arrays):
            return None
        forms = [tuple(f) if isinstance(f, list) else (f,) for f in settled.forms.values()]
        return *((a.shape, a.tobytes()) for a in arrays), *forms

    def settled(self, feeds: Mapping[str, object], *, exact: bool | None = None) -> Settled:
        """What these feeds tell of the inputs that must be known; raises `CallError`.

        `exact` says whether the sizes of forms do; None for what holds now.
        """
        from tilewright.frontend.onnx.settled import Settled

        for own in (*self.values, *self.forms):
            if own.name not in feeds:
                raise missing_input(self.model, own.name, _type(own))
        values = {i.name: i.read(self.model, feeds[i.name]) for i in self.values}
        sized = self.exact if exact is None else exact
        forms = {i.name: self._form(i, i.proto, feeds[i.name], sized) for i in self.forms}
        return Settled(values, forms, apart=self._apart(values))

    def _apart(self, values: Mapping[str, Array]) -> frozenset[str]:
        """The names of sizes that these values have different ones of."""
        named: dict[str, set[int]] = {}
        for own in self.values:
            for dim, extent in zip(own.shape or (), values[own.name].shape, strict=False):
                if isinstance(dim, str):
                    named.setdefault(dim, set()).add(extent)
        return frozenset(name for name, extents in named.items() if len(extents) > 1)

    def require_known(self, feeds: Mapping[str, object]) -> None:
        """Refuse names that no input has."""
        for name in feeds:
            if name not in self.names:
                raise unknown_port(self.model, "input", name, self.names)

    def rest(self, feeds: Mapping[str, object], *, flat: bool) -> dict[str, object]:
        """The inputs whose values are not settled; the tensors of a sequence by themselves."""
        left = {name: value for name, value in feeds.items() if name not in self._settled}
        if not flat:
            return left
        from tilewright.frontend.onnx.settled import part_name

        for own in self.forms:
            value = left[own.name]
            if value is None:
                del left[own.name]
            elif _is_sequence(own.proto):
                del left[own.name]
                items: list[object] = list(value)  # type: ignore[call-overload]
                left |= {part_name(own.name, k): item for k, item in enumerate(items)}
        return left

    def _form(self, own: _Input, kind: onnx.TypeProto, value: object, exact: bool) -> Form:  # noqa: FBT001
        match kind.WhichOneof("value"):
            case "optional_type":
                inner = kind.optional_type.elem_type
                return None if value is None else self._form(own, inner, value, exact)
            case "sequence_type":
                if not isinstance(value, list | tuple):
                    raise _not(own, self.model, "a list of arrays", value)
                return [self._dims(own, item, exact) for item in value]
        return self._dims(own, value, exact)

    def _dims(self, own: _Input, value: object, exact: bool) -> Dims:  # noqa: FBT001
        """Sizes, or only those of one, which are broadcast."""
        if value is None:
            raise _not(own, self.model, "an array", value)
        try:
            shape = np.shape(value)  # type: ignore[call-overload]
        except ValueError:  # lists of different lengths
            raise _not(own, self.model, "an array", value) from None
        return tuple(size if exact or size == 1 else None for size in shape)


def _is_sequence(kind: onnx.TypeProto) -> bool:
    if kind.WhichOneof("value") == "optional_type":
        return _is_sequence(kind.optional_type.elem_type)
    return bool(kind.WhichOneof("value") == "sequence_type")


def _not(own: _Input, model: str, expected: str, value: object) -> CallError:
    facts = {
        "kernel": model,
        "param": own.name,
        "expected": expected,
        "found": type(value).__name__,
    }
    return CallError(C002, facts, hint=f"{quoted(own.name)} is {_type(own)}")


def _type(own: _Input) -> str:
    from tilewright.model.whole import onnx_type_name

    return onnx_type_name(own.proto)
