"""The checks of one array against its parameter, each with the error that explains it.

An error names the kernel and the parameter, what was expected, what was found, and a remedy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tilewright.abi import ParamSpec, Shape
from tilewright.dtypes import dtype_of
from tilewright.errors import CallError, Code
from tilewright.runtime.arrays import NotAnArrayError, PackedArray, as_array
from tilewright.shown import quoted, shown

__all__ = ["Checker", "Sizes", "is_plain"]

Array = NDArray[Any]

C002 = Code("C002", "`{param}` of `{kernel}` is not an array that a kernel can use")
C003 = Code("C003", "`{param}` of `{kernel}` has the wrong element type")
C004 = Code("C004", "`{param}` of `{kernel}` has the wrong number of dimensions")
C005 = Code("C005", "`{param}` of `{kernel}` has the wrong shape")
C006 = Code("C006", "`{param}` of `{kernel}` disagrees with another array about size `{size}`")
C007 = Code("C007", "output `{param}` of `{kernel}` is read-only")
C008 = Code("C008", "output `{param}` of `{kernel}` is not stored in plain order")
C012 = Code("C012", "`{param}` of `{kernel}` is packed in another way than the kernel reads")


@dataclass(slots=True)
class Sizes:
    """Values of the symbolic sizes so far, and the parameter that told each."""

    values: dict[str, int] = field(default_factory=dict)
    told_by: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checker:
    """Checks for one parameter of one kernel."""

    kernel: str
    param: ParamSpec

    def as_array(self, value: object) -> Array:
        """`value` as a NumPy array; outputs must not be copied on the way."""
        try:
            return as_array(value, shares_memory=self.param.is_output)
        except NotAnArrayError as error:
            raise self._error(
                C002,
                {"expected": f"an array, {self.param}", "found": error},
                "pass an array in the memory of this process, for example "
                f"`np.asarray(value, dtype={_numpy_name(self.param)})`",
            ) from None

    def require_fit(self, array: Array, shape: Shape, sizes: Sizes) -> None:
        """Element type and shape are right; symbolic sizes agree with those told before."""
        if array.dtype != self.param.dtype.numpy:
            raise self._misfit(C003, array, shape, hint=_dtype_hint(self.param, array))
        if array.ndim != len(shape):
            hint = "add or remove dimensions with `reshape`"
            raise self._misfit(C004, array, shape, hint=hint)
        for axis, (expected, found) in enumerate(zip(shape, array.shape, strict=True)):
            if isinstance(expected, str):
                self._require_same_size(array, shape, axis, sizes)
            elif expected != found:
                wrong = f"{axis}, which has {found} instead of {expected}"
                hint = "the kernel is compiled for this extent: pass such an array or build another"
                raise self._misfit(C005, array, shape, {"axis": wrong}, hint=hint)

    def _require_same_size(self, array: Array, shape: Shape, axis: int, sizes: Sizes) -> None:
        size, found = str(shape[axis]), array.shape[axis]
        value = sizes.values.setdefault(size, found)
        teller = sizes.told_by.setdefault(size, self.param.name)
        if value != found:
            told = f"{value} by {quoted(teller)}, {found} by {quoted(self.param.name)}"
            hint = f"make all extents called {quoted(size)} equal"
            raise self._misfit(C006, array, shape, {"size": size, "told": told}, hint=hint)

    def require_usable_output(self, array: Array) -> None:
        """An output can be written, and lies in memory as the kernel expects."""
        if not array.flags.writeable:
            raise self._error(
                C007,
                {"found": "an array whose `flags.writeable` is False"},
                "pass a writable array, or leave the outputs out and take what is returned",
            )
        if not is_plain(array):
            skewed = "" if array.flags.aligned else ", not aligned"
            raise self._error(
                C008,
                {
                    "expected": f"C order, aligned to {array.itemsize} bytes",
                    "found": f"strides {array.strides} for shape {array.shape}{skewed}",
                },
                "pass `np.empty(...)` of this shape and copy the result where it belongs",
            )

    def require_packing(self, value: PackedArray) -> None:
        """A packed array has the packing that the kernel reads."""
        if self.param.packing is None or value.packing != self.param.packing:
            expected = "a plain array" if self.param.packing is None else self.param.packing
            raise self._error(
                C012,
                {"expected": expected, "found": value.packing},
                "pack the plain array with the `pack` method of this kernel",
            )

    def _misfit(
        self,
        code: Code,
        array: Array,
        shape: Shape,
        facts: Mapping[str, object] | None = None,
        *,
        hint: str,
    ) -> CallError:
        expected = f"{self.param.dtype.name}{_show(shape)}"
        found = f"{_name_of(array.dtype)}{_show(array.shape)}"
        return self._error(code, {"expected": expected, "found": found, **(facts or {})}, hint)

    def _error(self, code: Code, facts: Mapping[str, object], hint: str) -> CallError:
        return CallError(
            code, {"kernel": self.kernel, "param": self.param.name, **facts}, hint=hint
        )


def is_plain(array: Array) -> bool:
    """Contiguous in C order, and aligned to its elements."""
    return array.flags.c_contiguous and array.flags.aligned


def _dtype_hint(param: ParamSpec, array: Array) -> str:
    name = _numpy_name(param)
    size, (library, _, kind) = param.dtype.size_bytes, name.partition(".")
    if library == "ml_dtypes" and array.dtype in (f"u{size}", f"V{size}"):
        return f"if these are the bits of {kind}, pass `array.view({name})`"
    if param.is_output:
        return f"pass an output of type `{name}`"
    return f"convert it with `array.astype({name})`: kernels convert no values"


def _numpy_name(param: ParamSpec) -> str:
    kind = param.dtype.numpy
    return f"{'np' if kind.isbuiltin == 1 else 'ml_dtypes'}.{kind.name}"


def _name_of(dtype: np.dtype[Any]) -> str:
    try:
        return dtype_of(dtype).name
    except TypeError:  # no element type of ours
        return str(dtype)


def _show(shape: Shape) -> str:
    return f"[{', '.join(map(shown, shape))}]"
