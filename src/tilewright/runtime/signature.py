"""The parameters of a kernel as a caller sees them: which are passed, which are fixed or made.

This is the slow, explaining side of a call. The fast side, in C, only knows that something does not
fit; here every array is looked at again, converted if that is harmless (copied into plain order,
packed), or refused with an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.abi import ParamSpec
from tilewright.errors import CallError, Code
from tilewright.runtime.arrays import PackedArray, empty
from tilewright.runtime.checks import Checker, Sizes, is_plain

__all__ = ["Arguments", "Signature"]

Array = NDArray[Any]

C001 = Code("C001", "`{kernel}` is called with a wrong number of arrays")
C009 = Code("C009", "output `{param}` of `{kernel}` overlaps `{other}`")
C010 = Code("C010", "`{kernel}` cannot take an array called `{param}`")
C011 = Code("C011", "size `{size}` of `{kernel}` cannot be told from the inputs")


@dataclass(slots=True)
class Arguments:
    """What a call needs, in parameter order, and the outputs made for the caller."""

    arrays: tuple[Array | PackedArray, ...]
    made: tuple[Array, ...]


@dataclass(frozen=True)
class Signature:
    """Parameters of one kernel; `bound` holds the arrays that are fixed and no longer passed."""

    kernel: str
    params: tuple[ParamSpec, ...]
    bound: Mapping[str, Array | PackedArray] = field(default_factory=dict)

    @cached_property
    def free(self) -> tuple[ParamSpec, ...]:
        """Parameters that a caller passes."""
        return tuple(param for param in self.params if param.name not in self.bound)

    @cached_property
    def inputs(self) -> tuple[ParamSpec, ...]:
        """Free parameters that a kernel only reads."""
        return tuple(param for param in self.free if not param.is_output)

    def find(self, name: str) -> ParamSpec:
        """The free parameter of this name."""
        for param in self.free:
            if param.name == name:
                return param
        raise self._unknown(name, {})

    def prepare(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Arguments:
        """Check and convert the arrays of a call; make the outputs if none is given.

        Whether outputs overlap other arrays is left to the fast side and `require_no_overlap`.
        """
        given = self._match(args, kwargs)
        sizes = self._bound_sizes()
        arrays = {
            param.name: self._convert(param, given[param.name], sizes)
            for param in self.free
            if param.name in given
        }
        missing = [param for param in self.free if param.name not in given]
        made = {param.name: self._make(param, sizes) for param in missing}
        arrays |= made
        return Arguments(tuple(arrays[param.name] for param in self.free), tuple(made.values()))

    def convert(self, param: ParamSpec, value: object) -> Array | PackedArray:
        """`value` as the kernel reads it: checked, in plain order, packed if need be."""
        return self._convert(param, value, self._bound_sizes())

    def require_no_overlap(self, arguments: Arguments) -> None:
        """No output shares memory with another array."""
        arrays = dict(self.bound)
        arrays |= {
            param.name: array for param, array in zip(self.free, arguments.arrays, strict=True)
        }
        ranges = {name: _address_range(value) for name, value in arrays.items()}
        for param in self.params:
            start, end = ranges[param.name]
            for other, (other_start, other_end) in ranges.items():
                meets = start < other_end and other_start < end
                if param.is_output and meets and other != param.name:
                    raise self._error(
                        C009,
                        {"param": param.name, "other": other},
                        f"pass an output with memory of its own, or a copy of `{other}`",
                    )

    def _match(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Arrays by parameter: all of them, or only the inputs."""
        free, inputs = self.free, self.inputs
        places = inputs if len(args) <= len(inputs) else free
        given = dict(zip((param.name for param in places), args, strict=False))
        for name, value in kwargs.items():
            if name in given or all(param.name != name for param in free):
                raise self._unknown(name, given)
            given[name] = value
        if len(args) <= len(free) and set(given) in (_names(inputs), _names(free)):
            return given
        expected = f"{len(free)} arrays: {_list(free)}"
        if len(inputs) < len(free):
            made = f"{len(inputs)} inputs: {_list(inputs)} (outputs are then made and returned)"
            expected = f"{made}; or {expected}"
        found = f"{len(args)} positional" + "".join(f", `{name}`" for name in kwargs)
        raise self._error(C001, {"expected": expected, "found": found})

    def _convert(self, param: ParamSpec, value: object, sizes: Sizes) -> Array | PackedArray:
        checker = Checker(self.kernel, param)
        if isinstance(value, PackedArray):
            checker.require_packing(value)
            packed = value.array
        else:
            array = checker.as_array(value)
            shape = param.shape if param.packing is None else param.packing.logical_shape
            checker.require_fit(array, shape, sizes)
            if param.is_output:
                checker.require_usable_output(array)
            array = _in_plain_order(array, param)
            if param.packing is None:
                return array
            packed = param.packing.pack(array)
        assert param.packing is not None
        checker.require_fit(packed, param.shape, sizes)
        return PackedArray(_in_plain_order(packed, param), param.packing)

    def _make(self, param: ParamSpec, sizes: Sizes) -> Array:
        unknown = [d for d in param.shape if isinstance(d, str) and d not in sizes.values]
        if unknown:
            raise self._error(
                C011,
                {"size": unknown[0], "needed by": f"output {param}"},
                f"pass the output `{param.name}`, too",
            )
        shape = tuple(sizes.values[d] if isinstance(d, str) else d for d in param.shape)
        return empty(shape, param.dtype)

    def _bound_sizes(self) -> Sizes:
        sizes = Sizes()
        for param in self.params:
            value = self.bound.get(param.name)
            if value is not None:
                array = value.array if isinstance(value, PackedArray) else value
                Checker(self.kernel, param).require_fit(array, param.shape, sizes)
        return sizes

    def _unknown(self, name: str, given: Mapping[str, object]) -> CallError:
        reason = "there is no such parameter"
        if name in given:
            reason = "it is passed twice"
        elif name in self.bound:
            reason = "it is bound already"
        return self._error(
            C010, {"param": name, "reason": reason}, f"pass {_list(self.free)}, each once"
        )

    def _error(self, code: Code, facts: Mapping[str, object], hint: str = "") -> CallError:
        return CallError(code, {"kernel": self.kernel, **facts}, hint=hint)


def _in_plain_order(array: Array, param: ParamSpec) -> Array:
    """The array itself if it can be used as it is; a copy in C order otherwise."""
    if not is_plain(array):
        array = np.require(array, requirements=["C", "A"])
    # Equal types may be different objects (`longlong` and `int64`); the C side knows only ours.
    return array if array.dtype is param.dtype.numpy else array.view(param.dtype.numpy)


def _address_range(value: Array | PackedArray) -> tuple[int, int]:
    array = value.array if isinstance(value, PackedArray) else value
    start = array.__array_interface__["data"][0]
    return (start, start + array.nbytes) if array.nbytes else (0, 0)


def _list(params: tuple[ParamSpec, ...]) -> str:
    return ", ".join(f"`{param.name}`" for param in params) or "nothing"


def _names(params: tuple[ParamSpec, ...]) -> set[str]:
    return {param.name for param in params}
