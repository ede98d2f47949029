"""The calling convention of compiled kernels, as the compiler sees it.

    int32 kernel(void *const *buffers, const int64 *sizes, context *)

Every thread of a call runs the kernel once with its own context. `runtime/native/abi.h` is the C
view of the same facts; a test compares the two. A change here makes old artefacts unusable and must
raise `ABI_VERSION`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from tilewright.dtypes import DType
from tilewright.shown import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["ABI_VERSION", "ALIGNMENT", "CONTEXT", "CONTEXT_SIZE_BYTES", "MAX_THREADS"]
__all__ += ["ContextField", "Guest", "Packing", "ParamSpec", "Shape"]

ABI_VERSION: Final = 1
MAX_THREADS: Final = 1024
ALIGNMENT: Final = 64
"""Bytes, of scratch memory and of arrays made by the runtime; arrays of callers may have less."""


@dataclass(frozen=True, slots=True)
class ContextField:
    """One member of the context structure."""

    index: int
    offset: int
    type: str


CONTEXT: Final = {
    "thread": ContextField(0, 0, "i32"),
    "threads": ContextField(1, 4, "i32"),
    "barrier": ContextField(2, 8, "ptr"),
    "shared": ContextField(3, 16, "ptr"),
    "local": ContextField(4, 24, "ptr"),
    "team": ContextField(5, 32, "ptr"),
}
"""Members of the context by name, in order. `barrier` is `void (context *)`: all threads meet."""

CONTEXT_SIZE_BYTES: Final = 40

Shape = tuple[int | str, ...]
"""Extents; a string names a symbolic size that is told by the arrays of each call."""


@dataclass(frozen=True, slots=True)
class Guest:
    """A plain array that is stored in the memory of another parameter.

    `place` is its number among all that callers pass, guests included.
    """

    name: str
    shape: Shape
    place: int


class Packing(Protocol):
    """How plain arrays become the stored form that a kernel reads and writes, and back."""

    @property
    def logical_shape(self) -> Shape:
        """Shape of the plain array."""

    @property
    def guests(self) -> tuple[Guest, ...]:
        """Further arrays that are stored along, in the order in which `pack` wants them."""

    def pack(self, array: NDArray[Any], /, *guests: NDArray[Any]) -> NDArray[np.generic]:
        """The stored form, of the shape and element type of the parameter."""

    def unpack(self, array: NDArray[Any], /) -> NDArray[np.generic]:
        """The plain array of a stored one, without its guests; a view where that is possible."""


@dataclass(frozen=True, slots=True)
class ParamSpec:
    """One array parameter of a kernel; `shape` is that of the memory which the kernel sees.

    An output is updated if its content before the call matters, because the kernel reads it or
    leaves a part of it alone; any other output may be made for the caller.
    """

    name: str
    dtype: DType
    shape: Shape
    is_output: bool = False
    packing: Packing | None = None
    is_updated: bool = False

    @property
    def is_input(self) -> bool:
        """Whether callers must pass it."""
        return self.is_updated or not self.is_output

    def __str__(self) -> str:
        return f"{shown(self.name)}: {self.dtype.name}[{', '.join(map(shown, self.shape))}]"
