"""A model whose file stores what its large weights are made of, instead of these.

Winograd weights are the constants that grow. What makes and packs them is a graph like any other:
its inputs are stored, each result is a constant with the layout that a kernel wants, and it is
compiled for the same target, so that loading needs no compiler (`runtime/expansion.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.abi import ALIGNMENT
from tilewright.graph.ir import Array, Graph, Node, TensorType, Value, array_type
from tilewright.model.assemble import Assembled, assemble
from tilewright.model.kernel_store import KernelStore
from tilewright.model.weights import Derived, Form, Weights
from tilewright.runtime.expansion import MAX_GROWTH, Expansion
from tilewright.runtime.program import KernelCode, Program
from tilewright.schedule.source import DRAFT, ScheduleSource
from tilewright.target import Target
from tilewright.tensor.stored import Layout, misfit

__all__ = ["with_small_weights"]


def with_small_weights(
    made: Assembled,
    target: Target,
    threads: int,
    store: KernelStore | None = None,
    schedules: ScheduleSource = DRAFT,
) -> Assembled:
    """The same model with an expansion of its weights; as it is if none of them grow."""
    forms = made.constants.forms
    growing = [form for form in forms if _grows(form)]
    if not growing:
        return made
    made_later = set(growing)
    stored, copied = Weights(), list[tuple[int, int, int]]()
    for form in forms:
        if form not in made_later and form.size_bytes:
            at, size = stored.place(form.constant, form.packing, form.guests)
            copied.append((at, form.offset, size))
    graph, sources = _graph_of(growing)
    places = [stored.place(array)[0] for array in sources]
    apart = assemble(graph, target, threads, store, schedules=schedules)
    code = made.code + bytes(-len(made.code) % ALIGNMENT)
    expansion = Expansion(
        _moved(apart.program, len(code)),
        made.constants.size_bytes,
        tuple(copied),
        tuple(places),
        tuple(form.offset for form in growing),
    )
    return replace(made, code=code + apart.code, constants=stored, expansion=expansion)


def _grows(form: Form) -> bool:
    """Whether a constant is made of fewer bytes, by something that can be a kernel."""
    constant = form.constant
    if not isinstance(constant, Derived) or form.guests:
        return False
    held = sum(array.nbytes for array in constant.sources)
    fits = misfit(constant.value.shape, _layout(form)) is None
    return fits and held < form.size_bytes <= MAX_GROWTH * held


def _layout(form: Form) -> Layout:
    return () if form.packing is None else form.packing.steps


def _graph_of(forms: Sequence[Form]) -> tuple[Graph, list[Array]]:
    """The graph that makes these constants, and the arrays that it takes."""
    inputs: dict[int, tuple[Value, Array]] = {}
    nodes: list[Node] = []
    for k, form in enumerate(forms):
        constant = form.constant
        assert isinstance(constant, Derived)
        for array in constant.sources:
            value = Value(f"stored{len(inputs)}", array_type(array))
            inputs.setdefault(id(array), (value, array))
        given = tuple(inputs[id(array)][0] for array in constant.sources)
        kind = TensorType(constant.value.dtype, constant.value.shape, _layout(form))
        nodes.append(Node(constant.op, given, (Value(f"made{k}", kind),), constant.value.name))
    values, arrays = zip(*inputs.values(), strict=True)
    outputs = tuple(node.output for node in nodes)
    return Graph("weights", values, outputs, tuple(nodes)), list(arrays)


def _moved(program: Program, by: int) -> Program:
    """A program whose machine code lies so many bytes behind other code."""
    return replace(program, kernels=tuple(_moved_kernel(k, by) for k in program.kernels))


def _moved_kernel(kernel: KernelCode, by: int) -> KernelCode:
    scratch = kernel.scratch if kernel.scratch < 0 else kernel.scratch + by
    return replace(kernel, entry=kernel.entry + by, scratch=scratch)
