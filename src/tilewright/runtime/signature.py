"""The parameters of a kernel as a caller sees them: which are passed, which are fixed or made.

Callers pass plain arrays, the kernel sees stored ones. Where the two differ (`ParamSpec.packing`),
inputs are packed before the run and outputs unpacked after it, unless a `PackedArray` is passed.
Several plain arrays may be stored in one: `passed` has one entry for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from tilewright.abi import Guest, ParamSpec
from tilewright.errors import CallError, Code
from tilewright.runtime.arrays import PackedArray

__all__ = ["Signature", "Stored", "plain_spec"]

Stored = NDArray[Any] | PackedArray

C001 = Code("C001", "`{kernel}` is called with a wrong number of arrays")
C010 = Code("C010", "`{kernel}` cannot take an array called `{param}`")
C018 = Code("C018", "`{param}` of `{kernel}` is stored in one piece with `{others}`")


@dataclass(frozen=True)
class Signature:
    """Parameters of one kernel; `bound` holds the arrays that are fixed and no longer passed."""

    kernel: str
    params: tuple[ParamSpec, ...]
    bound: Mapping[str, Stored] = field(default_factory=dict)

    @cached_property
    def free(self) -> tuple[ParamSpec, ...]:
        """Parameters that are not bound."""
        return tuple(param for param in self.params if param.name not in self.bound)

    @cached_property
    def inputs(self) -> tuple[ParamSpec, ...]:
        """Free parameters that cannot be made."""
        return tuple(param for param in self.free if param.is_input)

    @cached_property
    def passed(self) -> tuple[ParamSpec, ...]:
        """The plain arrays that a caller passes, in order; guests are at their own places."""
        found: list[tuple[str, ParamSpec]] = [(p.name, plain_spec(p)) for p in self.params]
        guests = [(guest, param) for param in self.params for guest in _guests(param)]
        for guest, host in sorted(guests, key=lambda pair: pair[0].place):
            spec = ParamSpec(guest.name, host.dtype, guest.shape)
            found.insert(guest.place, (host.name, spec))
        return tuple(spec for owner, spec in found if owner not in self.bound)

    def conversions(self) -> Iterator[str]:
        """What is done to plain arrays around a run."""
        for param in self.free:
            if param.packing is not None and param.is_input:
                yield "pack " + " and ".join([param.name, *(g.name for g in _guests(param))])
            if param.packing is not None and param.is_output:
                yield f"unpack {param.name}"

    def match(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Arrays by name: all of them, or all but the outputs that can be made."""
        values = (*args, *kwargs.values())
        packed = [p for p in self.free if any(_is_packed_for(p, value) for value in values)]
        along = {guest.name for param in packed for guest in _guests(param)}
        free = tuple(spec for spec in self.passed if spec.name not in along)
        inputs = tuple(spec for spec in free if spec.is_input)
        places = inputs if len(args) <= len(inputs) else free
        given = dict(zip((spec.name for spec in places), args, strict=False))
        for name, value in kwargs.items():
            if name in given or all(spec.name != name for spec in free):
                raise self._unknown(name, given)
            given[name] = value
        if len(args) <= len(free) and set(given) in (_names(inputs), _names(free)):
            return given
        expected = f"{len(free)} arrays: {_list(free)}"
        if len(inputs) < len(free):
            made = f"{len(inputs)} inputs: {_list(inputs)} (outputs are then made and returned)"
            expected = f"{made}; or {expected}"
        found = f"{len(args)} positional" + "".join(f", `{name}`" for name in kwargs)
        updated = tuple(spec for spec in free if spec.is_updated and spec.name not in given)
        hint = "pass the arrays in this order, or by name"
        if updated:
            hint = f"pass {_list(updated)} as well: the kernel changes it in place"
        raise self.error(C001, {"expected": expected, "found": found}, hint)

    def find(self, name: str, given: Mapping[str, object]) -> ParamSpec:
        """The free parameter in which an array is stored, all of whose arrays must be given."""
        for param in self.free:
            names = [param.name, *(guest.name for guest in _guests(param))]
            if name not in names:
                continue
            if isinstance(given.get(param.name), PackedArray):
                if name != param.name:
                    raise self._unknown(name, {})
                return param
            if not all(other in given for other in names):
                others = "`, `".join(other for other in names if other != name)
                missing = "`, `".join(other for other in names if other not in given)
                hint = f"give `{missing}` at the same time"
                raise self.error(C018, {"param": name, "others": others}, hint)
            return param
        raise self._unknown(name, {})

    def _unknown(self, name: str, given: Mapping[str, object]) -> CallError:
        owner = {guest.name: param.name for param in self.params for guest in _guests(param)}
        reason = "there is no such parameter"
        if name in given:
            reason = "it is passed twice"
        elif owner.get(name, name) in self.bound:
            reason = "it is bound already"
        elif name in owner:
            reason = f"it is part of the packed array for `{owner[name]}`"
        return self.error(
            C010, {"param": name, "reason": reason}, f"pass {_list(self.passed)}, each once"
        )

    def error(self, code: Code, facts: Mapping[str, object], hint: str = "") -> CallError:
        """An error of this kernel."""
        return CallError(code, {"kernel": self.kernel, **facts}, hint=hint)


def plain_spec(param: ParamSpec) -> ParamSpec:
    """The parameter as callers see it."""
    if param.packing is None:
        return param
    shape = param.packing.logical_shape
    return ParamSpec(param.name, param.dtype, shape, param.is_output, None, param.is_updated)


def _guests(param: ParamSpec) -> tuple[Guest, ...]:
    return () if param.packing is None else param.packing.guests


def _is_packed_for(param: ParamSpec, value: object) -> bool:
    return isinstance(value, PackedArray) and value.packing == param.packing


def _list(params: tuple[ParamSpec, ...]) -> str:
    return ", ".join(f"`{param.name}`" for param in params) or "nothing"


def _names(params: tuple[ParamSpec, ...]) -> set[str]:
    return {param.name for param in params}
