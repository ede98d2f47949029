"""Nodes that run on the ONNX reference implementation: each is a segment, or the end of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Final

import numpy as np
import onnx
from onnx import numpy_helper, shape_inference
from onnx.helper import make_node, make_value_info

from tilewright.errors import CallError
from tilewright.frontend.onnx.check import domain_of
from tilewright.frontend.onnx.registry import Declined, Unknown
from tilewright.frontend.onnx.scope import Item, Stacked, Tensors
from tilewright.frontend.onnx.segments import (
    Opaque,
    Place,
    Segment,
    following,
    fresh_name,
    renamed,
)
from tilewright.frontend.onnx.types import SizeNames, tensor_type, type_proto
from tilewright.graph import Builder, TensorType, Value
from tilewright.graph.ir import Array
from tilewright.graph.ops.host import C302, Host
from tilewright.shown import shown
from tilewright.tensor import ir as tir
from tilewright.unsupported import Unsupported

if TYPE_CHECKING:
    from tilewright.frontend.onnx.reference.evaluator import Evaluator

__all__ = ["KIND", "Referred", "host_function", "opaque_constant", "reference_node"]
__all__ += ["told_as_call_error"]

KIND = "onnx"
MAX_SHOWN: Final = 1024
"""Elements of a constant that shape inference is shown."""
_fresh_numbers = count()


@dataclass(frozen=True)
class Referred:
    """What became of a node: its results, and the nodes that `ran` for them with it.

    `copied_bytes` are those of nodes that run somewhere else, too.
    """

    results: Sequence[Item]
    ran: Mapping[Place, Unsupported]
    copied_bytes: int


def reference_node(
    b: Builder,
    node: onnx.NodeProto,
    inputs: Sequence[Item],
    opsets: Mapping[str, int],
    captured: Mapping[str, Item],
    declared: Mapping[str, onnx.ValueInfoProto],
    note: tuple[Place, Unsupported],
) -> Referred:
    """A node as a Python function, together with the segments that its inputs need.

    Its result types come from ONNX's shape inference, and ranks that this does not know from what
    the model has `declared`; without a rank, a result is opaque, and so is one that is no tensor of
    numbers. `captured` are the values that graphs inside of the node read by name.
    """
    given, around = _operands(inputs), _operands(captured.values())
    operands = [operand for operand in (*given, *around) if operand is not None]
    parts = [operand.segment for operand in operands]
    if any(part.opsets and part.opsets != opsets for part in parts):
        raise Unknown("nodes of different opsets would run together")
    proto = renamed(node, {n: o.name for n, o in zip(captured, around, strict=True) if o})
    proto.input[:] = [operand.name if operand is not None else "" for operand in given]
    proto.output[:] = [fresh_name() if name else "" for name in node.output]
    kinds = _result_kinds(b, proto, operands, opsets, node.output, declared)
    noted = {note[0]: _with_form(note[1], [kind for kind, known in kinds.values() if not known])}
    segment = following(proto, tuple(parts), opsets, noted)
    tensors = [(name, proto_, kind) for name, (proto_, kind) in kinds.items() if kind is not None]
    values: dict[str, Item] = {
        name: Opaque(name, _without_names(proto_), segment)
        for name, (proto_, kind) in kinds.items()
        if kind is None
    }
    if not tensors:
        return Referred([values.get(name) for name in proto.output], {}, 0)
    whole = segment.collected()
    read = [make_value_info(name, type_proto(v)) for name, v in whole.tensors.items()]
    given_back = [make_value_info(name, proto_) for name, proto_, _ in tensors]
    payload = whole.model(read, given_back).SerializeToString()
    types = tuple(kind for *_, kind in tensors)
    op = Host(KIND, payload, node.op_type, types, host_function(payload))
    made = b.add_all(op, *whole.tensors.values(), fold=False)
    values |= {name: value for (name, *_), value in zip(tensors, made, strict=True)}
    copied = len(payload) if len(whole.nodes) > 1 else 0
    return Referred([values.get(name) for name in proto.output], whole.notes, copied)


def _with_form(node: Unsupported, opaque: Sequence[onnx.TypeProto]) -> Unsupported:
    """A node with what is not known of its results, and why it has no other way."""
    if not opaque:
        return node
    kind = opaque[0]
    which = (kind.WhichOneof("value") or "tensor_type").removesuffix("_type")
    what = f"a result of {shown(node.op)} is a {which}"
    if which == "tensor":
        what = f"the rank of a result of {shown(node.op)} is not known"
    if kind.tensor_type.elem_type == onnx.TensorProto.STRING:
        what = f"a result of {shown(node.op)} is of strings"
    return replace(node, reason=f"{what}: {node.reason}")


def opaque_constant(tensor: onnx.TensorProto) -> Opaque:
    """Weights of a type that no graph has: strings, complex numbers."""
    own = onnx.TensorProto()
    own.CopyFrom(tensor)
    own.name = fresh_name()
    kind = onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
    return Opaque(own.name, kind, Segment(weights={own.name: own}))


def _operands(items: Iterable[Item]) -> list[Opaque | None]:
    """Inputs of a node as values of segments; one that it reads twice is one value."""
    made: dict[int, Opaque | None] = {}
    return [made.setdefault(id(item), None if item is None else _operand(item)) for item in items]


def _operand(item: Item) -> Opaque:
    """An input of a node as a value of a segment; sequences are put together there."""
    match item:
        case Opaque():
            return item
        case Value():
            name = fresh_name()
            return Opaque(name, type_proto(item), Segment(tensors={name: item}))
        case Tensors(items=items):
            parts = [_operand(part) for part in items]
            op = "SequenceConstruct" if parts else "SequenceEmpty"
            return _sequence(make_node(op, [part.name for part in parts], [""]), parts)
        case Stacked(stack=stack):
            whole = _operand(stack)
            pieces = make_node("SplitToSequence", [whole.name], [""], keepdims=0)
            return _sequence(pieces, [whole])
    raise Unknown("a sequence that a loop appends to")


def _sequence(proto: onnx.NodeProto, parts: Sequence[Opaque]) -> Opaque:
    proto.output[0] = fresh_name()
    kind = onnx.TypeProto()
    element = parts[0].kind.tensor_type.elem_type if parts else onnx.TensorProto.FLOAT
    kind.sequence_type.elem_type.tensor_type.elem_type = element
    return Opaque(proto.output[0], kind, following(proto, tuple(p.segment for p in parts)))


def host_function(payload: bytes) -> Callable[..., Sequence[Array]]:
    """The function of a stored node; the evaluator is made when it is first needed."""
    made: list[Evaluator] = []

    def run(*arrays: Array) -> Sequence[Array]:
        from tilewright.frontend.onnx.reference.evaluator import evaluator_of

        with told_as_call_error():
            if not made:
                made.append(evaluator_of(onnx.load_model_from_string(payload)))
            evaluator = made[0]
            feeds = dict(zip(evaluator.input_names, arrays, strict=True))
            return [np.asarray(a) for a in evaluator.run(None, feeds)]

    return run


@contextmanager
def told_as_call_error() -> Iterator[None]:
    """Say as C302 what the reference implementation stumbles over while it runs."""
    try:
        yield
    except Exception as problem:  # it raises whatever NumPy does
        reason = f"the ONNX reference implementation failed ({type(problem).__name__}: {problem})"
        hint = "the model was not made for such inputs"
        if isinstance(problem, ImportError):
            hint = "install what is missing; `tilewright[reference]` has all that operators need"
        raise CallError(C302, {"problem": shown(reason, 400)}, hint=hint) from problem


def _spell_defaults(proto: onnx.NodeProto, opset: int) -> None:
    """Attributes that are left out, as the operator declares them.

    Shape inference may take another default than the one that holds: STFT's is an example.
    """
    try:
        schema = onnx.defs.get_schema(proto.op_type, opset, proto.domain)
    except onnx.defs.SchemaError:
        return  # ONNX does not know the operator, nor its shapes
    given = {attribute.name for attribute in proto.attribute}
    for name, declared in schema.attributes.items():
        if name not in given and declared.default_value.type:
            proto.attribute.append(declared.default_value)


def _result_kinds(
    b: Builder,
    proto: onnx.NodeProto,
    operands: Sequence[Opaque],
    opsets: Mapping[str, int],
    names: Sequence[str],
    declared: Mapping[str, onnx.ValueInfoProto],
) -> dict[str, tuple[onnx.TypeProto, TensorType | None]]:
    """The types of results by name, and as tensors of a graph; `names` are those in the model."""
    sizes = SizeNames()
    inferred = _inferred(b, proto, operands, opsets, sizes)
    pairs = zip(proto.output, names, strict=True)
    return {
        name: (inferred[name], _tensor_type(inferred[name], declared.get(own), sizes))
        for name, own in pairs
        if name
    }


def _inferred(
    b: Builder,
    proto: onnx.NodeProto,
    operands: Sequence[Opaque],
    opsets: Mapping[str, int],
    names: SizeNames,
) -> dict[str, onnx.TypeProto]:
    """What ONNX's shape inference says of the results; constants are shown to it."""
    probe = onnx.NodeProto()
    probe.CopyFrom(proto)
    _spell_defaults(probe, opsets.get(domain_of(proto), 1))
    infos: dict[str, onnx.ValueInfoProto] = {}
    weights: dict[str, onnx.TensorProto] = {}
    for operand in operands:
        value = operand.segment.tensors.get(operand.name)
        kind = operand.kind if value is None else type_proto(value, names)
        held = None if value is None else b.contents(value)
        infos[operand.name] = make_value_info(operand.name, kind)
        if held is not None and held.dtype != object and held.size <= MAX_SHOWN:
            weights[operand.name] = numpy_helper.from_array(held, operand.name)
    outputs = [onnx.ValueInfoProto(name=name) for name in proto.output if name]
    graph = onnx.GraphProto(
        name="node",
        node=[probe],
        input=infos.values(),
        output=outputs,
        initializer=weights.values(),
    )
    imports = [onnx.OperatorSetIdProto(domain=d, version=v) for d, v in opsets.items()]
    model = onnx.ModelProto(ir_version=onnx.IR_VERSION, graph=graph, opset_import=imports)
    inferred = shape_inference.infer_shapes(model, data_prop=True)
    return {info.name: info.type for info in inferred.graph.output}


def _tensor_type(
    kind: onnx.TypeProto, declared: onnx.ValueInfoProto | None, names: SizeNames
) -> TensorType | None:
    """The type of a result if it is a tensor of numbers of known rank.

    Of what is declared only the rank counts: sizes need not be those of every run.
    """

    def fresh() -> tir.Var:
        return tir.Var(f"u{next(_fresh_numbers)}")

    try:
        found = tensor_type(kind, names, fresh)
        if found is not None or declared is None:
            return found
        said = tensor_type(declared.type, SizeNames(), fresh)
    except Declined:
        return None
    inferred = kind.tensor_type.elem_type
    if said is None or (inferred and inferred != declared.type.tensor_type.elem_type):
        return None
    return TensorType(said.dtype, tuple(fresh() for _ in said.shape))


def _without_names(kind: onnx.TypeProto) -> onnx.TypeProto:
    """A type without the names of its sizes, which mean nothing to other nodes."""
    own = onnx.TypeProto()
    own.CopyFrom(kind)
    for dim in own.tensor_type.shape.dim if own.HasField("tensor_type") else ():
        if dim.HasField("dim_param"):
            dim.Clear()
    return own
