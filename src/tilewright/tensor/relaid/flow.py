"""Which blocks of a program write and read each buffer, found in one walk over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.tensor import ir as tir
from tilewright.tensor.analysis.structure import is_in_order
from tilewright.tensor.stored import Layout
from tilewright.tensor.visit import walk, walk_stmts

__all__ = ["Flow", "Layouts"]

Layouts = Mapping[tir.Buffer, Layout]


@dataclass(frozen=True)
class Flow:
    """The parameters and blocks of a program in order, and the blocks at both ends of a buffer."""

    params: tuple[tir.Buffer, ...]
    blocks: tuple[tir.Block, ...]
    _writers: Mapping[tir.Buffer, Sequence[tir.Block]]
    _readers: Mapping[tir.Buffer, Sequence[tir.Block]]

    @classmethod
    def of(cls, func: tir.Func) -> Flow:
        """What a program does with its buffers."""
        blocks = tuple(stmt for stmt in walk_stmts(func) if isinstance(stmt, tir.Block))
        writers: dict[tir.Buffer, list[tir.Block]] = {}
        readers: dict[tir.Buffer, list[tir.Block]] = {}
        for block in blocks:
            for ends, regions in ((writers, block.writes), (readers, block.reads)):
                for buffer in dict.fromkeys(region.buffer for region in regions):
                    ends.setdefault(buffer, []).append(block)
        return cls(func.params, blocks, writers, readers)

    def writers(self, buffer: tir.Buffer) -> Sequence[tir.Block]:
        """The blocks that write a buffer, in order."""
        return self._writers.get(buffer, ())

    def readers(self, buffer: tir.Buffer) -> Sequence[tir.Block]:
        """The blocks that read a buffer, in order; sums read what they write."""
        return self._readers.get(buffer, ())

    def source(self, buffer: tir.Buffer) -> tir.Buffer:
        """What a buffer is made of element by element, over all stages; itself if of nothing.

        A sum of one term reads nothing but itself and parameters.
        """
        for block in self.writers(buffer):
            if not isinstance(block.body, tir.Store):
                continue
            loads = {part.buffer: part for part in walk(block.body) if isinstance(part, tir.Load)}
            for source, load in loads.items():
                same = source.shape == buffer.shape and is_in_order(load.indices, block.iters)
                if same and source is not buffer and source not in self.params:
                    return self.source(source)
        return buffer

    def result_layout(self, buffer: tir.Buffer, layouts: Layouts) -> Layout:
        """The layout of the parameter that a buffer becomes element by element."""
        found = (layout for param, layout in layouts.items() if self.source(param) is buffer)
        return next(found, ())
