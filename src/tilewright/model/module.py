"""`Module`: a compiled model, ready to run, to save, and to look into."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from tilewright.dtypes import DType
from tilewright.errors import ArtefactError, Code
from tilewright.runtime.artefact import Artefact, Parts, open_artefact, save
from tilewright.runtime.codec import from_json, to_json
from tilewright.runtime.executable import Executable
from tilewright.runtime.image import Image
from tilewright.runtime.program import Port
from tilewright.target import Target

if TYPE_CHECKING:
    from tilewright.graph.ir import Graph
    from tilewright.model.assemble import Assembled

__all__ = ["Module", "TensorInfo", "load_module", "parts_of"]

A120 = Code("A120", "`{file}` needs a Python function of the kind `{kind}`, which is not known")

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output: a symbolic dimension is its name, or an expression as text."""

    name: str
    dtype: DType
    shape: tuple[int | str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype.name}[{', '.join(map(str, self.shape))}]"


class Module:
    """`run` takes arrays by name and gives a list of arrays; several threads may call it at once."""

    def __init__(
        self,
        executable: Executable,
        artefact: Artefact | Parts,
        by_reference: Mapping[str, str],
        graph: Graph | None = None,
    ) -> None:
        self.executable = executable
        self.by_reference = dict(by_reference)
        self.graph = graph
        self._artefact = artefact

    @classmethod
    def of(cls, made: Assembled, parts: Parts, threads: int, graph: Graph) -> Module:
        """The module of a fresh compilation."""
        functions = [f.function for f in made.functions]
        image = Image.from_bytes(made.code)
        executable = Executable(made.program, image, made.weights, functions, threads=threads)
        return cls(executable, parts, parts.extra["by_reference"], graph)

    @property
    def name(self) -> str:
        return self.executable.program.name

    @property
    def threads(self) -> int:
        return self.executable.threads

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        return _infos(self.executable.program.inputs)

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        return _infos(self.executable.program.outputs)

    def run(self, feeds: Mapping[str, object]) -> list[Array]:
        """The outputs for these inputs, in order."""
        return self.executable.run(feeds)

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

    `threads` may only be the number that the module was compiled for. `verify` reads all weights and
    compares them with their checksum.
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
    )
    return Module(executable, artefact, extra["by_reference"])


def parts_of(made: Assembled, target: Target, threads: int, by_reference: Mapping[str, str]) -> Parts:
    """What is written to a file."""
    functions = [
        {"kind": f.kind, "payload": base64.b64encode(f.payload).decode(), "title": f.title}
        for f in made.functions
    ]
    extra = {"functions": functions, "by_reference": dict(by_reference), "threads": threads}
    return Parts(to_json(made.program), made.code, [made.weights], target, _tool(), extra)


def _parts_again(artefact: Artefact) -> Parts:
    data = artefact.metadata
    weights = [np.frombuffer(artefact.weights, np.uint8)]
    target = Target.from_dict(data["target"])
    code = bytes(artefact.image.bytes)
    return Parts(artefact.program_json, code, weights, target, data["tool"], data["extra"])


def _tool() -> str:
    import tilewright

    return f"tilewright {tilewright.__version__}"


def _onnx_function(payload: bytes) -> Callable[..., Sequence[Array]]:
    from tilewright.frontend.onnx.reference import host_function

    return host_function(payload)


_FUNCTIONS: Final = {"onnx": _onnx_function}
"""How Python functions are made from what is stored, by kind."""


def _function(path: Path, kind: str, payload: str) -> Callable[..., Sequence[Array]]:
    if kind not in _FUNCTIONS:
        hint = "compile the model again with this version"
        raise ArtefactError(A120, {"file": path.name, "kind": kind}, hint=hint)
    return _FUNCTIONS[kind](base64.b64decode(payload))


def _infos(ports: Sequence[Port]) -> tuple[TensorInfo, ...]:
    return tuple(TensorInfo(p.name, p.dtype, p.shown) for p in ports)
