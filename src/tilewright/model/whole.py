"""Models that have no graph: they run on the ONNX reference implementation as a whole.

If all inputs and outputs are tensors of known rank, the model is a program with one step of Python,
which can be saved and loaded like any other. What else there is (sequences, optionals, strings)
stays a `WholeModule`, with the face of a module.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from tilewright.errors import ArtefactError, Code
from tilewright.model.defaults import defaults_of
from tilewright.model.info import ModelMeta, TensorInfo, type_name
from tilewright.model.into import leave
from tilewright.model.module import Module
from tilewright.runtime.executable import MemoryUse
from tilewright.runtime.feeds import Feeds, by_name
from tilewright.runtime.profile import Event, Profile
from tilewright.unsupported import Unsupported

if TYPE_CHECKING:
    import onnx

    from tilewright.dtypes import DType
    from tilewright.frontend.onnx.reference.whole import WholeModel
    from tilewright.graph.ir import Graph, TensorType

__all__ = ["WholeModule", "host_graph", "info_of", "inputs_of"]
__all__ += ["onnx_type_name", "outputs_of", "reason_of"]

A121 = Code("A121", "`{model}` cannot be saved: {reason}")


def reason_of(problem: object, nodes: Sequence[Unsupported] = ()) -> tuple[Unsupported, ...]:
    """That all runs by reference, and why, then the nodes that are the reason."""
    whole = Unsupported("the model", "", "", 0, (), f"runs as a whole, because {problem}")
    return whole, *(node for node in nodes if node.op)


def host_graph(model: onnx.ModelProto, apart: Collection[str] = ()) -> Graph | None:
    """A graph of one node, the model itself; None if there is more than tensors of known rank.

    Sizes whose names are in `apart` may differ.
    """
    from tilewright.frontend.onnx.reference.nodes import KIND, host_function
    from tilewright.graph import Builder
    from tilewright.graph.ops.host import Host

    inputs = [(i.name, _tensor(i, apart)) for i in inputs_of(model)]
    outputs = [(o.name, _tensor(o)) for o in outputs_of(model)]
    kinds = [kind for _, kind in (*inputs, *outputs)]
    if not outputs or None in kinds:
        return None
    builder = Builder(model.graph.name or "model")
    sizes: dict[str, Any] = {}
    given = [builder.input(n, k.dtype, _shared(k, sizes)) for n, k in inputs if k is not None]
    results = tuple(kind for _, kind in outputs if kind is not None)
    payload = _without_weights_as_inputs(model).SerializeToString()
    op = Host(KIND, payload, builder.name, results, host_function(payload))
    builder.label = builder.name
    made = builder.add_all(op, *given, fold=False)
    return builder.graph(list(made), [name for name, _ in outputs])


def _without_weights_as_inputs(model: onnx.ModelProto) -> onnx.ModelProto:
    inputs = inputs_of(model)
    if len(inputs) == len(model.graph.input):
        return model
    own = type(model)()
    own.CopyFrom(model)
    del own.graph.input[:]
    own.graph.input.extend(inputs)
    return own


def _shared(kind: TensorType, sizes: dict[str, Any]) -> list[Any]:
    """The dimensions of an input: those of one name are one size."""
    from tilewright.tensor import ir as tir

    return [sizes.setdefault(d.name, d) if isinstance(d, tir.Var) else d for d in kind.shape]


def inputs_of(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs that callers give."""
    from tilewright.frontend.onnx.settled import open_inputs

    return open_inputs(model)


def outputs_of(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The outputs with what ONNX's shape inference knows of them."""
    from onnx import shape_inference

    try:
        return list(shape_inference.infer_shapes(model).graph.output)
    except Exception:  # noqa: BLE001  (what it cannot infer is not known, whatever it raises)
        return list(model.graph.output)


def _tensor(info: onnx.ValueInfoProto, apart: Collection[str] = ()) -> TensorType | None:
    """The type of a tensor, whose sizes without a name are its own; None for anything else."""
    from tilewright.frontend.onnx.named_sizes import dims_of
    from tilewright.frontend.onnx.node import dtype_of_onnx
    from tilewright.frontend.onnx.registry import Declined
    from tilewright.graph import TensorType
    from tilewright.tensor import ir as tir

    kind = info.type.tensor_type
    if info.type.WhichOneof("value") != "tensor_type" or not kind.HasField("shape"):
        return None
    try:
        dtype = dtype_of_onnx(kind.elem_type)
    except Declined:
        return None
    dims = [tir.Const(d) if isinstance(d, int) else tir.Var(d) for d in dims_of(info, apart)]
    return TensorType(dtype, tuple(dims))


class WholeModule(Module):
    """A module over the reference implementation, for values that no array can hold."""

    def __init__(self, model: WholeModel) -> None:  # no executable: there is no program
        self.model = model
        self.graph = None
        self.defaults = defaults_of(model.model)
        self.by_reference = reason_of(model.reason, model.nodes)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def threads(self) -> int:
        return 1

    @property
    def kernels(self) -> int:
        return 0

    @property
    def lengths(self) -> None:
        return None

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        return tuple(map(info_of, inputs_of(self.model.model)))

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        return tuple(map(info_of, self.model.model.graph.output))

    @property
    def meta(self) -> ModelMeta:
        return ModelMeta.of(self.model.model)

    def run(self, feeds: Feeds) -> list[Any]:
        """The outputs for these inputs, in order; a sequence is a list of arrays."""
        if self.defaults is not None and self.defaults.are_given(feeds):
            return self.defaults.version(feeds).run(feeds)
        return self.model.run(by_name(self.name, list(self.model.inputs), feeds))

    def run_into(self, feeds: Feeds, outputs: Mapping[str, object]) -> None:
        """Run and copy results into these arrays."""
        names = [info.name for info in self.outputs]
        leave(self.name, dict(zip(names, self.run(feeds), strict=True)), outputs)

    def profile(self, feeds: Feeds) -> Profile:
        """Run once; the model is one step."""
        return self.run_profiled(feeds)[1]

    def run_profiled(self, feeds: Feeds) -> tuple[list[Any], Profile]:
        """`run` and `profile` in one."""
        import time

        start = time.perf_counter_ns()
        outputs = self.run(feeds)
        event = Event(0, self.name, "host", 0, time.perf_counter_ns() - start)
        return outputs, Profile(self.name, (event,))

    def memory(self) -> MemoryUse:
        """The bytes of the model; what the reference implementation takes is not known."""
        return MemoryUse(0, 0, 0, self.model.model.ByteSize(), 0)

    def save(self, path: str | os.PathLike[str]) -> NoReturn:  # noqa: ARG002
        """Refused: a file holds tensors only."""
        facts = {"model": self.name, "reason": self.model.reason}
        raise ArtefactError(A121, facts, hint="keep the ONNX file, and compile it where it runs")


def info_of(info: onnx.ValueInfoProto) -> TensorInfo:
    """What callers see of an input or output."""
    from tilewright.frontend.onnx.named_sizes import dims_of

    kind = _tensor(info)
    dtype: DType | None = kind.dtype if kind is not None else None
    name = type_name(dtype) if dtype is not None else onnx_type_name(info.type)
    return TensorInfo(info.name, dtype, dims_of(info), name)


def onnx_type_name(proto: onnx.TypeProto) -> str:
    """`seq(tensor(float))` and the like."""
    from onnx import TensorProto

    which = proto.WhichOneof("value")
    if which == "sequence_type":
        return f"seq({onnx_type_name(proto.sequence_type.elem_type)})"
    if which == "optional_type":
        return f"optional({onnx_type_name(proto.optional_type.elem_type)})"
    if which == "tensor_type":
        return f"tensor({TensorProto.DataType.Name(proto.tensor_type.elem_type).lower()})"
    return str(which or "unknown").removesuffix("_type")
