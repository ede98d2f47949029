"""The arrays of one call, made ready for the kernel.

This is the slow, explaining side of a call. The fast side, in C, only knows that something does not
fit; here every array is looked at again, converted if that is harmless (copied into plain order,
packed), or refused with an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tilewright.abi import ParamSpec, Shape
from tilewright.errors import Code
from tilewright.runtime.arrays import PackedArray, empty
from tilewright.runtime.checks import Checker, Sizes, is_plain
from tilewright.runtime.signature import Signature, Stored, plain_spec

__all__ = ["Arguments", "bind", "pack", "prepare"]
__all__ += ["require_no_overlap", "require_nothing_to_do"]

Array = NDArray[Any]

C009 = Code("C009", "output `{param}` of `{kernel}` overlaps `{other}`")
C011 = Code("C011", "size `{size}` of `{kernel}` cannot be told from the inputs")
C019 = Code("C019", "output `{param}` of `{kernel}` is packed and cannot be bound to a plain array")
C020 = Code("C020", "`{kernel}` is given arrays without elements, but `{param}` has some")


@dataclass(slots=True)
class Arguments:
    """What a call needs, in parameter order, and where results go that have to be unpacked."""

    arrays: tuple[Stored, ...]
    made: tuple[Array, ...]
    unpacked: Mapping[str, tuple[PackedArray, Array]]
    """By parameter: what the kernel writes, and the plain array of the caller."""
    empty_sizes: tuple[str, ...]
    """Symbolic sizes that are zero: kernels are compiled for sizes of at least one."""

    def unpack(self) -> None:
        """Bring results where the caller expects them."""
        for stored, plain in self.unpacked.values():
            plain[...] = stored.unpack()


def prepare(
    signature: Signature, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> Arguments:
    """Check and convert the arrays of a call; make the outputs if none is given.

    Whether outputs overlap other arrays is left to the fast side and `require_no_overlap`.
    """
    given = signature.match(args, kwargs)
    convert = _Conversion.of(signature)
    arrays: dict[str, Stored] = {}
    plain: dict[str, Array] = {}
    for param in signature.free:
        if param.name not in given:
            continue
        if _is_unpacked(param, given[param.name]):
            plain[param.name] = convert.plain(plain_spec(param), given[param.name])
        else:
            arrays[param.name] = convert.stored(param, given)
    missing = [param for param in signature.free if param.name not in given]
    made = {param.name: convert.made(param, plain_spec(param).shape) for param in missing}
    plain |= made
    unpacked = {
        param.name: (convert.memory_for(param, plain[param.name]), plain[param.name])
        for param in signature.free
        if param.name in plain and param.packing is not None
    }
    arrays |= plain | {name: stored for name, (stored, _) in unpacked.items()}
    return Arguments(
        tuple(arrays[param.name] for param in signature.free),
        tuple(made.values()),
        unpacked,
        tuple(size for size, value in convert.sizes.values.items() if value == 0),
    )


def pack(
    signature: Signature, name: str, array: object, stored_along: Mapping[str, object]
) -> Stored:
    """What the kernel sees of the arrays of one parameter."""
    given = {name: array, **stored_along}
    return _Conversion.of(signature).stored(signature.find(name, given), given)


def bind(signature: Signature, arrays: Mapping[str, object]) -> dict[str, Stored]:
    """The arrays that are bound, and these as well."""
    bound = dict(signature.bound)
    owners = {signature.find(name, arrays).name for name in arrays}
    for param in signature.params:
        if param.name not in owners:
            continue
        if _is_unpacked(param, arrays[param.name]):
            hint = f'bind `kernel.pack("{param.name}", array)` and unpack it after the call'
            raise signature.error(C019, {"param": param.name}, hint)
        so_far = Signature(signature.kernel, signature.params, bound)
        bound[param.name] = _Conversion.of(so_far).stored(param, arrays)
    return bound


def require_no_overlap(signature: Signature, arguments: Arguments) -> None:
    """No output shares memory with another array."""
    arrays = _by_name(signature, arguments)
    arrays += [(name, plain) for name, (_, plain) in arguments.unpacked.items()]
    ranges = [(name, _address_range(_plain(array))) for name, array in arrays]
    outputs = {param.name for param in signature.params if param.is_output}
    for name, (start, end) in ranges:
        for other, (other_start, other_end) in ranges:
            meets = start < other_end and other_start < end
            if name in outputs and meets and other != name:
                raise signature.error(
                    C009,
                    {"param": name, "other": other},
                    f"pass an output with memory of its own, or a copy of `{other}`",
                )


def require_nothing_to_do(signature: Signature, arguments: Arguments) -> None:
    """Where a size is zero, all outputs are without elements: nothing has to run."""
    for name, array in _by_name(signature, arguments):
        param = next(param for param in signature.params if param.name == name)
        if param.is_output and _plain(array).size:
            sizes = "`, `".join(arguments.empty_sizes)
            facts = {"param": name, "found": f"size `{sizes}` is 0"}
            hint = "sizes of a kernel are at least 1: leave the call out"
            raise signature.error(C020, facts, hint)


@dataclass(frozen=True, slots=True)
class _Conversion:
    """Turns what callers pass into what the kernel sees, and learns the sizes on the way."""

    signature: Signature
    sizes: Sizes

    @classmethod
    def of(cls, signature: Signature) -> Self:
        """A conversion that knows the sizes of the bound arrays."""
        found = cls(signature, Sizes())
        for param in signature.params:
            value = signature.bound.get(param.name)
            if value is not None:
                found.check(param).require_fit(_plain(value), param.shape, found.sizes)
        return found

    def check(self, param: ParamSpec) -> Checker:
        return Checker(self.signature.kernel, param)

    def stored(self, param: ParamSpec, given: Mapping[str, object]) -> Stored:
        """What the kernel sees of one parameter."""
        value = given[param.name]
        if isinstance(value, PackedArray):
            self.check(param).require_packing(value)
            if param.is_output:
                self.check(param).require_usable_output(value.array)
            return self._packed(param, value.array)
        array = self.plain(plain_spec(param), value)
        if param.packing is None:
            return array
        specs = [ParamSpec(g.name, param.dtype, g.shape) for g in param.packing.guests]
        guests = [self.plain(spec, given[spec.name]) for spec in specs]
        return self._packed(param, param.packing.pack(array, *guests))

    def plain(self, spec: ParamSpec, value: object) -> Array:
        """An array as it is passed or packed."""
        array = self.check(spec).as_array(value)
        self.check(spec).require_fit(array, spec.shape, self.sizes)
        if spec.is_output:
            self.check(spec).require_usable_output(array)
        return _in_plain_order(array, spec)

    def memory_for(self, param: ParamSpec, plain: Array) -> PackedArray:
        """What is unpacked into `plain` after the run; it has its content if that counts."""
        assert param.packing is not None
        if param.is_updated:
            return self._packed(param, param.packing.pack(plain))
        return PackedArray(self.made(param, param.shape), param.packing)

    def made(self, param: ParamSpec, shape: Shape) -> Array:
        """An array of the sizes of this call."""
        known = self.sizes.values
        for size in shape:
            if isinstance(size, str) and size not in known:
                facts = {"size": size, "needed by": f"output {param}"}
                hint = f"pass the output `{param.name}`, too"
                raise self.signature.error(C011, facts, hint)
        return empty(tuple(known[d] if isinstance(d, str) else d for d in shape), param.dtype)

    def _packed(self, param: ParamSpec, array: Array) -> PackedArray:
        assert param.packing is not None
        self.check(param).require_fit(array, param.shape, self.sizes)
        return PackedArray(_in_plain_order(array, param), param.packing)


def _by_name(signature: Signature, arguments: Arguments) -> list[tuple[str, Stored]]:
    """All arrays that the kernel sees."""
    free = zip(signature.free, arguments.arrays, strict=True)
    return [*signature.bound.items(), *((param.name, array) for param, array in free)]


def _is_unpacked(param: ParamSpec, value: object) -> bool:
    """Whether an output has to be unpacked into what the caller passes for it."""
    return param.is_output and param.packing is not None and not isinstance(value, PackedArray)


def _in_plain_order(array: Array, param: ParamSpec) -> Array:
    """The array itself if it can be used as it is; a copy in C order otherwise."""
    if not is_plain(array):
        array = np.require(array, requirements=["C", "A"])
    # Equal types may be different objects (`longlong` and `int64`); the C side knows only ours.
    return array if array.dtype is param.dtype.numpy else array.view(param.dtype.numpy)


def _plain(value: Stored) -> Array:
    return value.array if isinstance(value, PackedArray) else value


def _address_range(array: Array) -> tuple[int, int]:
    start = array.__array_interface__["data"][0]
    return (start, start + array.nbytes) if array.nbytes else (0, 0)
