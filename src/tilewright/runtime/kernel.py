"""A compiled kernel as a Python callable.

A call with arrays that fit runs in C at once (`_native.Kernel`); anything else comes back to
`_call_slowly`, which converts or explains. The GIL is released while a kernel runs, so an interrupt
(Ctrl-C) takes effect when the kernel ends. Calls may come from several Python threads; see
`native/pool.h` for how they share the worker threads.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from numpy.typing import NDArray

from tilewright.abi import ParamSpec
from tilewright.errors import CallError, Code
from tilewright.runtime import _native, arguments, pool
from tilewright.runtime.arrays import PackedArray
from tilewright.runtime.image import Image
from tilewright.runtime.outputs import OutputPlan
from tilewright.runtime.program import KernelCode
from tilewright.runtime.signature import Signature
from tilewright.shown import counted

__all__ = ["Kernel"]

Array = NDArray[Any]

C013 = Code("C013", "`{kernel}` stopped with an error of its own")
C014 = Code("C014", "`{kernel}` cannot get its threads from the system")
C015 = Code("C015", "`{kernel}` is called from inside a running kernel")
C016 = Code("C016", "`{kernel}` cannot get its scratch memory")
C017 = Code("C017", "`{param}` of `{kernel}` takes plain arrays, nothing is packed for it")


class Status(enum.IntEnum):
    """How a run ended: `tw_status` in native/pool.h."""

    OK = 0
    NO_MEMORY = 1
    NO_THREADS = 2
    NESTED = 3


class Kernel(_native.Kernel):
    """Call it with all arrays, or with the inputs only: outputs are then made and returned.

    A parameter that the program updates is an input that is changed in place. Arrays are plain, in
    the shapes of the program as it was written, whatever layouts its schedule has chosen.
    Scratch that depends on symbolic sizes is told by a function (`tw_scratch` in native/abi.h) at
    `scratch_address`. `report` is for whoever built the kernel to say how.
    """

    _trimmed_error = CallError  # raised without frames of this package, see native/pykernel.c

    def __init__(
        self,
        entry_address: int,
        params: tuple[ParamSpec, ...],
        size_names: tuple[str, ...] = (),
        threads: int = 1,
        shared_bytes: int = 0,
        local_bytes: int = 0,
        name: str = "kernel",
        keep_alive: object = None,
        *,
        scratch_address: int = 0,
        report: object = None,
        bound: Mapping[str, Array | PackedArray] | None = None,
    ) -> None:
        self.entry_address, self.params, self.size_names = entry_address, params, size_names
        self.threads, self.shared_bytes, self.local_bytes = threads, shared_bytes, local_bytes
        self.name, self.keep_alive = name, keep_alive
        self.scratch_address, self.report = scratch_address, report
        self._signature = Signature(name, params, bound or {})
        self._outputs = OutputPlan.of(self._signature)
        super().__init__(
            entry=entry_address,
            params=tuple(_native_param(param, size_names, bound or {}) for param in params),
            size_count=len(size_names),
            threads=threads,
            shared_bytes=shared_bytes,
            local_bytes=local_bytes,
            scratch=scratch_address,
        )
        if threads > 1:
            pool.tell_usable_cpus()

    @classmethod
    def of_code(
        cls,
        image: Image,
        code: KernelCode,
        params: tuple[ParamSpec, ...],
        size_names: tuple[str, ...],
        name: str,
        threads: int = 1,
        report: object = None,
    ) -> Kernel:
        """A function of an image, as programs have it (`runtime/program.py`), on arrays."""
        return cls(
            image.address + code.entry,
            params,
            size_names,
            threads if code.parallel else 1,
            code.shared_bytes,
            code.local_bytes,
            name,
            keep_alive=image,
            scratch_address=image.address + code.scratch if code.scratch >= 0 else 0,
            report=report,
        )

    @property
    def conversions(self) -> tuple[str, ...]:
        """What a call with plain arrays does besides running, such as `pack W and b`.

        `pack` does it ahead of time; a packed output is passed as a packed array.
        """
        return tuple(self._signature.conversions())

    def pack(self, name: str, array: object, /, **stored_along: object) -> PackedArray:
        """The stored form of `array` for parameter `name`, to pass as often as wanted.

        Arrays that a schedule stores along with it are given by name: `pack("W", w, b=bias)`; they
        are not passed any more. It may share the memory of `array`.
        """
        packed = arguments.pack(self._signature, name, array, stored_along)
        if isinstance(packed, PackedArray):
            return packed
        raise CallError(C017, {"kernel": self.name, "param": name}, hint="pass the array as it is")

    def bind(self, /, **arrays: object) -> Kernel:
        """A kernel with these parameters fixed, packed once, and no longer passed.

        An array that needs no conversion is kept, not copied: later changes to it are seen.
        """
        return Kernel(
            self.entry_address,
            self.params,
            self.size_names,
            self.threads,
            self.shared_bytes,
            self.local_bytes,
            self.name,
            self.keep_alive,
            scratch_address=self.scratch_address,
            report=self.report,
            bound=arguments.bind(self._signature, arrays),
        )

    def time(
        self, args: Sequence[object], *, repeat: int = 10, min_ns: int = 1_000_000
    ) -> list[float]:
        """Nanoseconds of one run, `repeat` samples; a sample repeats runs for at least `min_ns`.

        Arrays are packed before and not unpacked after: only the kernel itself is timed.
        """
        if repeat < 1:
            raise ValueError(f"at least one sample is needed, not {repeat}")
        prepared = arguments.prepare(self._signature, tuple(args), {})
        arguments.require_no_overlap(self._signature, prepared)
        if prepared.empty_sizes:
            arguments.require_nothing_to_do(self._signature, prepared)
            return [0.0] * repeat
        return self._time(prepared.arrays, repeat, min_ns)

    def __repr__(self) -> str:
        passed = self._signature.passed
        inputs = ", ".join(str(spec) for spec in passed if spec.is_input)
        outputs = ", ".join(str(spec) for spec in passed if spec.is_output)
        return f"<kernel {self.name}({inputs}) -> ({outputs}), {counted(self.threads, 'thread')}>"

    def _call_slowly(self, *args: object, **kwargs: object) -> Array | tuple[Array, ...] | None:
        """Called from C when the arrays do not fit as they are."""
        if self._outputs is not None and not kwargs:
            made = self._outputs.make(args)
            if made and self._try_run(self._outputs.merge(args, made)):
                return made[0] if len(made) == 1 else made
        prepared = arguments.prepare(self._signature, args, kwargs)
        if prepared.unpacked:
            arguments.require_no_overlap(self._signature, prepared)
        if prepared.empty_sizes:
            arguments.require_nothing_to_do(self._signature, prepared)
        elif not self._try_run(prepared.arrays):
            arguments.require_no_overlap(self._signature, prepared)
            raise SystemError(f"checked arrays do not fit {self!r}")
        prepared.unpack()
        made = prepared.made
        return None if not made else made[0] if len(made) == 1 else made

    def _raise_failure(self, status: int, result: int) -> NoReturn:
        """Called from C when a run failed."""
        facts: dict[str, object] = {"kernel": self.name}
        match status:
            case Status.OK:
                hint = "look into code that was written or edited by hand: only such returns errors"
                raise CallError(C013, {**facts, "code": result}, hint=hint)
            case Status.NO_MEMORY:
                needed = f"{self.shared_bytes} bytes and {self.local_bytes} for each thread"
                if self.scratch_address:
                    needed = "an amount that depends on the sizes of the arrays"
                hint = "free memory, or let less be kept at once, for example with `compute_at`"
                raise CallError(C016, {**facts, "needed": needed}, hint=hint)
            case Status.NO_THREADS:
                raise CallError(
                    C014,
                    {**facts, "needed": f"{self.threads} threads"},
                    hint="raise the limit (`ulimit -u`), or build with fewer threads",
                )
            case Status.NESTED:
                raise CallError(C015, facts, hint="let the outer kernel return first")
        raise SystemError(f"unknown status {status} of {self!r}")


def _native_param(
    param: ParamSpec, size_names: tuple[str, ...], bound: Mapping[str, Array | PackedArray]
) -> tuple[object, int, tuple[int, ...], bool, object, object]:
    """The parameter as `_native.Kernel` takes it: a symbolic size is -1 minus its number."""
    dims = tuple(d if isinstance(d, int) else -1 - size_names.index(d) for d in param.shape)
    value = bound.get(param.name)
    array = value.array if isinstance(value, PackedArray) else value
    dtype = param.dtype.numpy
    return dtype, dtype.itemsize, dims, param.is_output, param.packing, array
