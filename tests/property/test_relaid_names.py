"""Handles of a schedule are names: blocks and buffers keep names of their own in any layout."""

from __future__ import annotations

from hypothesis import given, note
from hypothesis import strategies as st

from tests.examples import examples
from tests.graphs import RandomGraph
from tests.laid_out import images, layouts
from tilewright.tensor import ir as tir
from tilewright.tensor.build import func, placeholder
from tilewright.tensor.printer import print_func
from tilewright.tensor.relaid import relaid
from tilewright.tensor.visit import walk_stmts


@given(random=images(), data=st.data())
@examples(40)
def test_names_are_unique_whatever_the_layouts(random: RandomGraph, data: st.DataObject):
    node = data.draw(st.sampled_from(random.graph.nodes), label="node")
    inputs = [placeholder(f"P{k}", v.shape, v.dtype) for k, v in enumerate(node.inputs)]
    program = func("f", inputs, list(node.op.lower(inputs, ["R"])))
    made = relaid(program, {p: data.draw(layouts(p.shape)) for p in program.params})
    note(print_func(made))
    parts = list(walk_stmts(made))
    blocks = [part.name for part in parts if isinstance(part, tir.Block)]
    buffers = [part.buffer.name for part in parts if isinstance(part, tir.Alloc)]
    buffers += [param.name for param in made.params]
    assert len(set(blocks)) == len(blocks)
    assert len(set(buffers)) == len(buffers)
