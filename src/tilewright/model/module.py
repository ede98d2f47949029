"""`Module`: a compiled model, ready to run, to save, and to look into."""

from __future__ import annotations

import base64
import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import ArtefactError, Code, TargetError
from tilewright.model.defaults import Defaults
from tilewright.model.endings import Ending
from tilewright.model.info import ModelMeta, TensorInfo, type_name
from tilewright.model.into import leave
from tilewright.model.spreading import Spreading
from tilewright.runtime.artefact import Artefact, Parts, damaged, open_artefact, read_artefact, save
from tilewright.runtime.codec import from_json, to_json
from tilewright.runtime.executable import Executable, MemoryUse
from tilewright.runtime.image import Image
from tilewright.runtime.meetings import MeetsOneError
from tilewright.runtime.pool import default_threads, most_threads, require_threads
from tilewright.runtime.profile import Profile
from tilewright.runtime.program import Port
from tilewright.shown import shown
from tilewright.target import Target
from tilewright.unsupported import Unsupported
from tilewright.version import __version__

if TYPE_CHECKING:
    from tilewright.graph.ir import Graph
    from tilewright.model.assemble import Assembled
    from tilewright.model.origin import Origin

__all__ = ["Module", "TensorInfo", "infos_of", "load_kept", "load_module", "parts_of"]
__all__ += ["stored_nodes", "to_keep", "tool"]

A120 = Code("A120", "`{file}` needs a Python function of the kind `{kind}`, which is not known")

KEY: Final = "key"
"""What an entry of the cache has in addition: the key by which it is found."""

Array = NDArray[Any]


class Module:
    """`run` takes arrays by name and gives a list of arrays; threads may call it at once.

    `by_reference` are the nodes that run on the ONNX reference implementation. `defaults` are
    inputs that may be left out: a run that gives some is one of another version of the model. So
    is one in which a size of one meets another, if the model has sizes that meet (`spreading`).
    """

    defaults: Defaults | None = None
    spreading: Spreading | None = None

    def __init__(
        self,
        executable: Executable,
        artefact: Artefact | Parts,
        by_reference: Iterable[Unsupported],
        graph: Graph | None = None,
    ) -> None:
        self.executable = executable
        self.by_reference = tuple(by_reference)
        self.graph = graph
        self._artefact = artefact
        defaults = [TensorInfo.from_dict(data) for data in self._extra.get("defaults", ())]
        self.defaults = Defaults(executable.program.name, defaults) if defaults else None
        self.spreading = Spreading() if executable.meetings.checks else None
        endings = self._extra.get("endings", {})
        self._endings = {name: Ending.from_dict(data) for name, data in endings.items()}
        if not self._endings.keys() <= {port.name for port in executable.program.outputs}:
            raise ValueError("an ending of an output that there is not")

    @classmethod
    def of(cls, made: Assembled, parts: Parts, threads: int | None, graph: Graph) -> Module:
        """The module of a fresh compilation."""
        functions = [f.function for f in made.functions]
        image = Image.from_bytes(made.code)
        executable = Executable(made.program, image, made.weights, functions, threads=threads)
        return cls(executable, parts, stored_nodes(parts.extra), graph)

    @property
    def name(self) -> str:
        return self.executable.program.name

    @property
    def threads(self) -> int:
        return self.executable.threads

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        return infos_of(self.executable.program.inputs)

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        infos = infos_of(self.executable.program.outputs)
        if not self._endings:
            return infos
        types = {name: ending.type for name, ending in self._endings.items()}
        return tuple(
            TensorInfo(i.name, None, i.shape, types[i.name]) if i.name in types else i
            for i in infos
        )

    @property
    def kernels(self) -> int:
        """How many kernels there are."""
        return len(self.executable.program.kernels)

    @property
    def meta(self) -> ModelMeta:
        """What the author of the model wrote about it."""
        return ModelMeta.from_dict(self._extra.get("meta", {}))

    @property
    def settled(self) -> tuple[str, ...]:
        """The inputs for whose values the model is compiled when it runs: none, mostly."""
        return ()

    @property
    def overridable(self) -> tuple[TensorInfo, ...]:
        """Inputs that may be given, and have a default: none, mostly."""
        defaults = self.defaults
        return () if defaults is None or defaults.origin is None else defaults.infos

    @property
    def lengths(self) -> Sequence[int | None] | None:
        """Of outputs that are sequences, if it was compiled for some values; see `Imported`."""
        found: Sequence[int | None] | None = self._extra.get("lengths")
        return found

    @property
    def _extra(self) -> Mapping[str, Any]:
        parts = self._artefact
        return parts.extra if isinstance(parts, Parts) else parts.metadata["extra"]

    def run(self, feeds: Mapping[str, object]) -> list[Array]:
        """The outputs for these inputs, in order."""
        if self.defaults is not None and self.defaults.are_given(feeds):
            return self.defaults.version(feeds).run(feeds)
        try:
            found = self.executable.run(feeds)
        except MeetsOneError as problem:
            met = problem
        else:
            return self._ended(found) if self._endings else found
        return self._spread(met).run(feeds)

    def remember(self, origin: Callable[[], Origin]) -> None:
        """Keep where the model came from, if there may be other versions of it."""
        versions = [v for v in (self.defaults, self.spreading) if v is not None]
        found = origin() if versions else None
        for one in versions:
            one.origin = found

    def _spread(self, met: MeetsOneError) -> Module:
        """The version for a run that ended so; raises what it ended with if there is none."""
        if self.spreading is None:
            raise met
        return self.spreading.version(met)

    def _ended(self, results: list[Array]) -> list[Array]:
        """With texts and maps where the model has them."""
        found: list[Any] = list(results)
        for k, port in enumerate(self.executable.program.outputs):
            if port.name in self._endings:
                found[k] = self._endings[port.name].apply(results[k], self.name, port.name)
        return found

    def run_into(self, feeds: Mapping[str, object], outputs: Mapping[str, object]) -> None:
        """Run and leave results in these arrays, by output name; others are not kept.

        Texts need an array of objects, and maps have no place in any.
        """
        if self.defaults is not None and self.defaults.are_given(feeds):
            self.defaults.version(feeds).run_into(feeds, outputs)
            return
        if self._endings.keys().isdisjoint(outputs):
            try:
                self.executable.run_into(feeds, outputs)
            except MeetsOneError as problem:
                met = problem
            else:
                return
            self._spread(met).run_into(feeds, outputs)
            return
        names = [port.name for port in self.executable.program.outputs]
        leave(self.name, dict(zip(names, self.run(feeds), strict=True)), outputs)

    def run_async(self, feeds: Mapping[str, object]) -> Future[list[Array]]:
        """`run` in the background; the arrays must not change before the result is there."""
        return background().submit(self.run, feeds)

    def profile(self, feeds: Mapping[str, object]) -> Profile:
        """Run once and note how long each kernel takes."""
        return self.run_profiled(feeds)[1]

    def run_profiled(self, feeds: Mapping[str, object]) -> tuple[list[Array], Profile]:
        """`run` and `profile` in one."""
        if self.defaults is not None and self.defaults.are_given(feeds):
            return self.defaults.version(feeds).run_profiled(feeds)
        try:
            found, profile = self.executable.run_profiled(feeds)
        except MeetsOneError as problem:
            met = problem
        else:
            return (self._ended(found) if self._endings else found), profile
        return self._spread(met).run_profiled(feeds)

    def memory(self) -> MemoryUse:
        """Bytes of weights, code, arenas and scratch; calls under way are included."""
        return self.executable.memory()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the module to a file, which `tilewright.load` reads without compiling anything."""
        parts = self._artefact
        save(path, parts if isinstance(parts, Parts) else _parts_again(parts))

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, ports)) for ports in (self.inputs, self.outputs))
        return f"<module {shown(self.name)}({inputs}) -> ({outputs}), {self.threads} threads>"


def load_module(
    path: str | os.PathLike[str], threads: int | None = None, *, verify: bool | None = None
) -> Module:
    """The module in a file; its weights stay in the file and are mapped.

    `threads` is the number that each run uses (default: what this process may use), however many
    the machine has that compiled it. A file that has changed since it was written is refused
    (A111): all of it is compared with checksums, weights with fast ones. `verify=True` takes
    cryptographic ones for them, too; `verify=False` leaves weights unread, for storage that is
    checked elsewhere.
    """
    if threads is not None:
        require_threads(threads, most_threads())
    artefact = open_artefact(path, verify=verify, threads=threads or default_threads())
    return _checked(Path(path), artefact, threads)


def _checked(path: Path, artefact: Artefact, threads: int | None) -> Module:
    try:
        return _loaded(path, artefact, threads)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, TargetError):
        # Its checksums fit, so that something else than tilewright wrote it.
        damaged(path, "the metadata do not say what they should")


def to_keep(parts: Parts, key: str) -> Parts:
    """What the cache keeps of a model: it says by which key it is to be found."""
    return replace(parts, extra={**parts.extra, KEY: key})


def load_kept(file: BinaryIO, threads: int | None, key: str) -> Module:
    """The module in an entry of the cache; ValueError if it belongs to another key."""
    path = Path(key)
    artefact = read_artefact(file, path)
    if artefact.metadata["extra"].get(KEY) != key:
        raise ValueError("an entry of the cache lies in the place of another one")
    artefact.check(threads or default_threads())
    return _checked(path, artefact, threads)


def _loaded(path: Path, artefact: Artefact, threads: int | None) -> Module:
    extra = artefact.metadata["extra"]
    if "settled" in extra:
        from tilewright.model.settled_file import load_settled

        return load_settled(artefact, threads)
    _require_sound(extra)
    functions = [_function(path, f["kind"], f["payload"]) for f in extra["functions"]]
    executable = Executable(
        from_json(artefact.program_json),
        artefact.image,
        artefact.weights,
        functions,
        threads=threads,
        is_verified=True,  # by `from_json`
    )
    return Module(executable, artefact, stored_nodes(extra))


def _require_sound(extra: Mapping[str, Any]) -> None:
    """What is only looked at later has the form that it should have; ValueError if not."""
    lengths = extra.get("lengths")
    if not isinstance(extra.get("meta", {}), dict):
        raise TypeError("what is said about the model is no dictionary")
    if lengths is not None and not all(n is None or type(n) is int for n in lengths):
        raise ValueError("lengths of outputs are numbers")


def parts_of(
    made: Assembled,
    target: Target,
    by_reference: Iterable[Unsupported],
    meta: ModelMeta | None = None,
    lengths: Sequence[int | None] | None = None,
    endings: Mapping[str, Ending] | None = None,
    defaults: Iterable[TensorInfo] = (),
) -> Parts:
    """What is written to a file."""
    functions = [
        {"kind": f.kind, "payload": base64.b64encode(f.payload).decode(), "title": f.title}
        for f in made.functions
    ]
    extra: dict[str, Any] = {
        "functions": functions,
        "by_reference": [node.to_dict() for node in by_reference],
        "meta": (meta or ModelMeta()).to_dict(),
    }
    if lengths is not None:
        extra["lengths"] = list(lengths)
    if endings:
        extra["endings"] = {name: ending.to_dict() for name, ending in endings.items()}
    shown = [info.to_dict() for info in defaults]
    if shown:
        extra["defaults"] = shown
    return Parts(to_json(made.program), made.code, [made.weights], target, tool(), extra)


def stored_nodes(extra: Mapping[str, Any]) -> tuple[Unsupported, ...]:
    """The nodes that run by reference, of what is written to a file."""
    return tuple(map(Unsupported.from_dict, extra["by_reference"]))


@functools.cache
def background() -> ThreadPoolExecutor:
    """Threads for runs that nobody waits for: one runs while the other hands over its result."""
    return ThreadPoolExecutor(2, thread_name_prefix="tilewright-run")


os.register_at_fork(after_in_child=background.cache_clear)


def _parts_again(artefact: Artefact) -> Parts:
    data = artefact.metadata
    weights = [np.frombuffer(artefact.weights, np.uint8)]
    code = bytes(artefact.image.bytes)
    program = artefact.program_json
    extra = {name: value for name, value in data["extra"].items() if name != KEY}
    return Parts(program, code, weights, data["target"], data["tool"], extra)


def tool() -> str:
    """This compiler, for files."""
    return f"tilewright {__version__}"


def _onnx_function(payload: bytes) -> Callable[..., Sequence[Array]]:
    from tilewright.frontend.onnx.reference.nodes import host_function

    return host_function(payload)


def _failing_function(payload: bytes) -> Callable[..., Sequence[Array]]:
    from tilewright.graph.ops.host import failing

    return failing(payload.decode())


_FUNCTIONS: Final = {"onnx": _onnx_function, "fail": _failing_function}
"""How Python functions are made from what is stored, by kind."""


def _function(path: Path, kind: str, payload: str) -> Callable[..., Sequence[Array]]:
    if kind not in _FUNCTIONS:
        hint = "compile the model again with this version"
        raise ArtefactError(A120, {"file": path.name, "kind": kind}, hint=hint)
    return _FUNCTIONS[kind](base64.b64decode(payload))


def infos_of(ports: Sequence[Port]) -> tuple[TensorInfo, ...]:
    """What callers see of inputs or outputs."""
    return tuple(TensorInfo(p.name, p.dtype, p.shown, type_name(p.dtype)) for p in ports)
