"""`Module`: a compiled model, ready to run, to save, and to look into."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.dtypes import DType
from tilewright.graph.ir import Array, Graph
from tilewright.model.assemble import Assembled
from tilewright.runtime.executable import Executable
from tilewright.runtime.image import Image
from tilewright.runtime.program import Port
from tilewright.target import Target

__all__ = ["Module", "TensorInfo"]


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output: a symbolic dimension is its name, or an expression as text."""

    name: str
    dtype: DType
    shape: tuple[int | str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype.name}[{', '.join(map(str, self.shape))}]"


class Module:
    """`run` takes arrays by name and gives a list of arrays; it may be called from several threads."""

    def __init__(
        self,
        executable: Executable,
        target: Target,
        parts: Assembled | None = None,
        graph: Graph | None = None,
    ) -> None:
        self.executable, self.target = executable, target
        self.parts, self.graph = parts, graph

    @classmethod
    def of(cls, parts: Assembled, target: Target, threads: int, graph: Graph) -> Module:
        """The module of a fresh compilation."""
        functions = [f.function for f in parts.functions]
        image = Image.from_bytes(parts.code)
        executable = Executable(parts.program, image, parts.weights, functions, threads=threads)
        return cls(executable, target, parts, graph)

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

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, ports)) for ports in (self.inputs, self.outputs))
        return f"<module {self.name}({inputs}) -> ({outputs}), {self.threads} threads>"


def _infos(ports: Sequence[Port]) -> tuple[TensorInfo, ...]:
    return tuple(TensorInfo(p.name, p.dtype, p.shown) for p in ports)
