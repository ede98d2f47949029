"""`Module`: a compiled model, ready to run, to save, and to look into."""

from __future__ import annotations

import base64
import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from tilewright.errors import ArtefactError, Code
from tilewright.model.info import ModelMeta, TensorInfo, type_name
from tilewright.runtime.artefact import Artefact, Parts, open_artefact, save
from tilewright.runtime.codec import from_json, to_json
from tilewright.runtime.executable import Executable, MemoryUse
from tilewright.runtime.image import Image
from tilewright.runtime.profile import Profile
from tilewright.runtime.program import Port
from tilewright.target import Target
from tilewright.unsupported import Unsupported
from tilewright.version import __version__

if TYPE_CHECKING:
    from tilewright.graph.ir import Graph
    from tilewright.model.assemble import Assembled

__all__ = ["Module", "TensorInfo", "infos_of", "load_module", "parts_of", "stored_nodes"]

A120 = Code("A120", "`{file}` needs a Python function of the kind `{kind}`, which is not known")

Array = NDArray[Any]


class Module:
    """`run` takes arrays by name and gives a list of arrays; threads may call it at once.

    `by_reference` are the nodes that run on the ONNX reference implementation.
    """

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

    @classmethod
    def of(cls, made: Assembled, parts: Parts, threads: int, graph: Graph) -> Module:
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
        return infos_of(self.executable.program.outputs)

    @property
    def meta(self) -> ModelMeta:
        """What the author of the model wrote about it."""
        parts = self._artefact
        extra = parts.extra if isinstance(parts, Parts) else parts.metadata["extra"]
        return ModelMeta.from_dict(extra.get("meta", {}))

    def run(self, feeds: Mapping[str, object]) -> list[Array]:
        """The outputs for these inputs, in order."""
        return self.executable.run(feeds)

    def run_into(self, feeds: Mapping[str, object], outputs: Mapping[str, object]) -> None:
        """Run and leave results in these arrays, by output name; others are not kept."""
        self.executable.run_into(feeds, outputs)

    def run_async(self, feeds: Mapping[str, object]) -> Future[list[Array]]:
        """`run` in the background; the arrays must not change before the result is there."""
        return background().submit(self.run, feeds)

    def profile(self, feeds: Mapping[str, object]) -> Profile:
        """Run once and note how long each kernel takes."""
        return self.executable.profile(feeds)

    def run_profiled(self, feeds: Mapping[str, object]) -> tuple[list[Array], Profile]:
        """`run` and `profile` in one."""
        return self.executable.run_profiled(feeds)

    def memory(self) -> MemoryUse:
        """Bytes of weights, code, arenas and scratch; calls under way are included."""
        return self.executable.memory()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the module to a file, which `tilewright.load` reads without compiling anything."""
        parts = self._artefact
        save(path, parts if isinstance(parts, Parts) else _parts_again(parts))

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, ports)) for ports in (self.inputs, self.outputs))
        return f"<module {self.name}({inputs}) -> ({outputs}), {self.threads} threads>"


def load_module(
    path: str | os.PathLike[str], threads: int | None = None, *, verify: bool = False
) -> Module:
    """The module in a file; its weights stay in the file and are mapped.

    `threads` may only be the number that the module was compiled for. `verify` reads all weights
    and compares them with their checksum.
    """
    artefact = open_artefact(path, verify=verify)
    extra = artefact.metadata["extra"]
    functions = [_function(Path(path), f["kind"], f["payload"]) for f in extra["functions"]]
    executable = Executable(
        from_json(artefact.program_json),
        artefact.image,
        artefact.weights,
        functions,
        threads=extra["threads"] if threads is None else threads,
        is_verified=True,  # by `from_json`
    )
    return Module(executable, artefact, stored_nodes(extra))


def parts_of(
    made: Assembled,
    target: Target,
    threads: int,
    by_reference: Iterable[Unsupported],
    meta: ModelMeta | None = None,
) -> Parts:
    """What is written to a file."""
    functions = [
        {"kind": f.kind, "payload": base64.b64encode(f.payload).decode(), "title": f.title}
        for f in made.functions
    ]
    extra = {
        "functions": functions,
        "by_reference": [node.to_dict() for node in by_reference],
        "threads": threads,
        "meta": (meta or ModelMeta()).to_dict(),
    }
    return Parts(to_json(made.program), made.code, [made.weights], target, _tool(), extra)


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
    return Parts(program, code, weights, data["target"], data["tool"], data["extra"])


def _tool() -> str:
    return f"tilewright {__version__}"


def _onnx_function(payload: bytes) -> Callable[..., Sequence[Array]]:
    from tilewright.frontend.onnx.reference import host_function

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
