"""A whole model, ready to run.

`run` with arrays that fit goes to native code at once (`_native.Program`); anything else comes back
to `_run_slowly`, which converts or explains. Calls may come from several Python threads: each takes
a frame (memory of its own), and all share the one pool of worker threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tilewright.abi import ALIGNMENT, ParamSpec
from tilewright.dtypes import DType, dtype_of, u8
from tilewright.errors import ArtefactError, CallError
from tilewright.runtime import _native, pool
from tilewright.runtime.arrays import empty
from tilewright.runtime.failures import A204, C025, WRONGLY, Outcome, failure
from tilewright.runtime.feeds import FeedReader, Feeds
from tilewright.runtime.meetings import GuardError, Meetings, Wanted
from tilewright.runtime.profile import Profile
from tilewright.runtime.program import Host, Operand, Port, Program
from tilewright.runtime.sizes import extents
from tilewright.runtime.tables import encode
from tilewright.runtime.verify import verify
from tilewright.shown import counted, quoted, shown

__all__ = ["Executable", "Image", "MemoryUse"]

Array = NDArray[Any]
T = TypeVar("T")
HostFunction = Callable[..., Sequence[Array]]


class Image(Protocol):
    """Machine code in the memory of this process."""

    @property
    def address(self) -> int:
        """Where it begins; the offsets of kernels count from here."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes that an executable holds; arenas and scratch are those of all its frames."""

    frames: int
    arena_bytes: int
    scratch_bytes: int
    weights_bytes: int
    image_bytes: int


class Executable(_native.Program):
    """A program with its machine code, weights and the Python functions that it uses.

    It is verified first, unless whoever read it has done so (`is_verified`).
    """

    _trimmed_error = CallError  # raised without frames of this package, see native/pykernel.h

    def __init__(
        self,
        program: Program,
        image: Image,
        weights: object = b"",
        functions: Sequence[HostFunction] = (),
        *,
        threads: int | None = None,
        is_verified: bool = False,
    ) -> None:
        self.program, self.image, self.functions = program, image, tuple(functions)
        self.threads = pool.default_threads() if threads is None else threads
        pool.require_threads(self.threads, pool.most_threads())
        self.weights = _aligned(weights)
        self.meetings = Meetings(program)
        self._reader = FeedReader(program, self.meetings)
        if not is_verified:
            verify(program)
        self._require_functions()
        self._require_code()
        super().__init__(
            tables=encode(program, image.address),
            segments=program.segments,
            threads=self.threads,
            weights=self.weights,
            inputs=_native_ports(program.inputs, is_output=False),
            outputs=_native_ports(program.outputs, is_output=True),
        )
        if self.threads > 1:
            pool.tell_usable_cpus()

    def profile(self, feeds: Feeds) -> Profile:
        """Run once and note when each step began and ended on the first thread."""
        return self.run_profiled(feeds)[1]

    def run_profiled(self, feeds: Feeds) -> tuple[list[Array], Profile]:
        """`run` and `profile` in one."""
        answer = self._require_fit(self._try_profile(self._reader.read(feeds)))
        return answer[0], Profile.of(self.program, *answer[1:])

    def memory(self) -> MemoryUse:
        """What the executable holds now; frames of calls under way are included."""
        frames, arena, scratch = self._memory()
        code = getattr(self.image, "bytes", b"")
        return MemoryUse(frames, arena, scratch, self.weights.nbytes, len(code))

    def __repr__(self) -> str:
        inputs = ", ".join(map(_show, self.program.inputs))
        outputs = ", ".join(map(_show, self.program.outputs))
        threads = counted(self.threads, "thread")
        return f"<model {shown(self.program.name)}({inputs}) -> ({outputs}), {threads}>"

    def _run_slowly(self, feeds: Feeds) -> list[Array]:
        """Called from C when the feeds do not fit as they are."""
        return self._require_fit(self._try_run(self._reader.read(feeds)))

    def _run_into_slowly(self, feeds: Feeds, outputs: Mapping[str, object]) -> None:
        """The same with arrays to write to."""
        self._require_fit(self._try_run_into(*self._reader.read_both(feeds, outputs)))

    def _require_functions(self) -> None:
        used = [step.function for step in self.program.steps if isinstance(step, Host)]
        if used and max(used) >= len(self.functions):
            given = f"{len(self.functions)} functions are given"
            raise ValueError(f"{quoted(self.program.name)} uses function {max(used)}, and {given}")

    def _require_code(self) -> None:
        code = getattr(self.image, "bytes", None)
        for kernel in self.program.kernels:
            if code is not None and max(kernel.entry, kernel.scratch) >= len(code):
                problem = f"kernel {quoted(kernel.name)} is not in the machine code"
                facts = {"model": self.program.name, "problem": problem}
                raise ArtefactError(A204, facts, hint=WRONGLY)

    def _require_fit(self, answer: T | None) -> T:
        if answer is None:
            raise SystemError(f"checked arrays do not fit {self!r}")
        return answer

    def _run_host(
        self, number: int, memories: tuple[object, ...], sizes: tuple[int, ...]
    ) -> tuple[tuple[Array, ...], tuple[int, ...]]:
        """Called from C at a step of Python."""
        step = self.program.steps[number]
        assert isinstance(step, Host)
        pairs = zip(step.inputs, memories, strict=True)
        arrays = [self._seen(step, operand, memory, sizes) for operand, memory in pairs]
        results = [np.asarray(r) for r in self.functions[step.function](*arrays)]
        if len(results) != len(step.outputs):
            wrong = f"{len(results)} arrays instead of {len(step.outputs)}"
            raise SystemError(f"the function of step {quoted(step.label)} returned {wrong}")
        for result, operand in zip(results, step.outputs, strict=True):
            if result.ndim != len(operand.dims):
                problem = self._unlike(step, f"of {result.ndim} dimensions", len(operand.dims))
                raise GuardError.of(problem, Wanted(whole=True))
        told = {size: results[k].shape[axis] for size, k, axis in step.defines}
        known = [told.get(number, size) for number, size in enumerate(sizes)]
        made = zip(results, step.outputs, strict=True)
        kept = tuple(self._as_said(step, result, operand, known) for result, operand in made)
        return kept, tuple(told[size] for size, _, _ in step.defines)

    def _seen(self, step: Host, operand: Operand, memory: object, sizes: Sequence[int]) -> Array:
        """Memory as an array that a function can take."""
        shape = extents(operand.dims, sizes)
        try:
            return np.ndarray(shape, operand.dtype.numpy, memory)  # type: ignore[arg-type]
        except ValueError:  # also without elements, if the other extents are too large together
            problem = f"{quoted(step.label)} would read an array of shape {list(shape)}"
            facts = {"model": self.program.name, "problem": problem}
            raise CallError(C025, facts, hint="pass smaller arrays") from None

    def _as_said(self, step: Host, result: Array, said: Operand, sizes: Sequence[int]) -> Array:
        """A result with the shape and the type that are said of it, in plain order."""
        shape = extents(said.dims, sizes)
        if result.shape != shape:
            raise self._unlike(step, f"of shape {list(result.shape)}", list(shape))
        if result.dtype != said.dtype.numpy:
            if not _converts(result.dtype, said.dtype):
                raise self._unlike(step, f"of type {result.dtype}", said.dtype.name)
            with np.errstate(all="ignore"):
                result = result.astype(said.dtype.numpy)
        return _in_plain_order(result)

    def _unlike(self, step: Host, found: str, said: object) -> CallError:
        problem = f"{quoted(step.label)} gives a result {found}, where the model says {said}"
        facts = {"model": self.program.name, "problem": problem}
        return CallError(C025, facts, hint="export the model with types that fit its results")

    def _raise_failure(
        self, outcome: int, which: int, value: int, sizes: tuple[int, ...]
    ) -> NoReturn:
        """Called from C when a run failed."""
        if outcome == Outcome.BAD_SIZE:
            self.meetings.require_made_for(which, sizes)
        raise failure(self.program, self.threads, outcome, which, value, sizes)


def _aligned(weights: object) -> Array:
    """The bytes of the weights on a boundary of 64, copied if they are not."""
    if isinstance(weights, np.ndarray):  # also of types that memory views do not know
        array: Array = np.ascontiguousarray(weights).reshape(-1).view(np.uint8)
    else:
        array = np.frombuffer(memoryview(weights).cast("B"), np.uint8)  # type: ignore[arg-type]
    if array.__array_interface__["data"][0] % ALIGNMENT == 0:
        return array
    copy = empty(array.shape, u8)
    copy[:] = array
    return copy


def _native_ports(
    ports: tuple[Port, ...], *, is_output: bool
) -> tuple[tuple[object, ...], tuple[str, ...], tuple[int, ...]]:
    specs = [
        (port.dtype.numpy, port.dtype.numpy.itemsize, port.dims, is_output, None, None)
        for port in ports
    ]
    return tuple(specs), tuple(p.name for p in ports), tuple(p.buffer for p in ports)


def _converts(found: np.dtype[Any], said: DType) -> bool:
    """Whether numbers of one type may become those of another: floats floats, integers integers."""
    try:
        kind = dtype_of(found)
    except TypeError:  # texts, and what else there is
        return False
    return kind.is_float == said.is_float or bool(np.can_cast(found, said.numpy, "same_kind"))


def _in_plain_order(array: Array) -> Array:
    return np.require(array, requirements=["C", "A"])


def _show(port: Port) -> str:
    return str(ParamSpec(port.name, port.dtype, port.shown))
