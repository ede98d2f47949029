"""A model by value: its nodes one after another, each in the first way that takes its inputs.

1. By the meaning of its graph, if it has a handler and tensors for inputs (`understood`); texts
   and complex numbers have numbers that stand for them if they are only moved (`coded`).
2. As the function of the model that it calls.
3. By an operator of our own for texts, maps, branches and loops, or by that of the ONNX reference
   implementation, whose operators are made for an evaluator with this face.
4. As the function by which ONNX defines the operator.

The evaluator of the reference implementation itself hands no operators of ours to functions, asks
for all inputs and attributes of these, and lets `SequenceMap` see nothing around it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import onnx
from onnx import defs, helper, numpy_helper
from onnx.reference import ops as standard
from onnx.reference.op_run import OpRun
from onnx.reference.ops import aionnx_preview, aionnx_preview_training, aionnxml

from tilewright.frontend.onnx.check import domain_of, opsets_of
from tilewright.frontend.onnx.functions import CalledNodes, LocalFunctions, body_of
from tilewright.frontend.onnx.reference.coded import Codes, is_moved
from tilewright.frontend.onnx.reference.control import Held, If, Inside, SequenceMap
from tilewright.frontend.onnx.reference.operators import OPERATORS
from tilewright.frontend.onnx.reference.understood import Understood, is_understood
from tilewright.frontend.onnx.sparse import with_dense
from tilewright.shown import quoted

__all__ = ["Evaluator", "evaluator_of", "is_known"]

Way = Callable[[Sequence[Any], Mapping[str, Any]], Sequence[Any]]
"""How a node runs: on its inputs, with the values around it by name."""

CONTROL: Final[Mapping[str, Callable[[onnx.NodeProto, Inside], Way]]] = {
    "Identity": Held,
    "If": If,
    "Optional": Held,
    "SequenceMap": SequenceMap,
}

_LOADERS: Final[Mapping[str, Callable[..., Any]]] = {
    "": standard.load_op,
    "ai.onnx.ml": aionnxml.load_op,
    "ai.onnx.preview": aionnx_preview.load_op,
    "ai.onnx.preview.training": aionnx_preview_training.load_op,
}
"""Where the reference implementation has the operators of a domain."""


def evaluator_of(model: onnx.ModelProto) -> Evaluator:
    """The evaluator of a model."""
    dense = with_dense(model)
    return Evaluator(dense.graph, opsets_of(dense.opset_import), dense.functions)


def is_known(proto: onnx.NodeProto, opsets: Mapping[str, int], *, declined: bool = False) -> bool:
    """Whether something can run a node that calls no function of its model.

    A handler that has `declined` a node knows nothing else of it.
    """
    if domain_of(proto) == "" and proto.op_type in CONTROL:
        return True
    if is_understood(proto) and not declined:
        return True
    operator = _operator(proto, opsets)
    if operator is None:
        return _has_body(proto, opsets)
    if any(attribute.ref_attr_name for attribute in proto.attribute):
        return True  # what it is made of, a call tells
    try:
        operator(proto, Evaluator(onnx.GraphProto(), opsets).parameters())
    except Exception:  # noqa: BLE001  (whatever it raises, it cannot take the node)
        return False
    return True


class Evaluator:
    """A graph whose nodes run one after another.

    Operators of the reference implementation make one of each graph inside of them, with the
    arguments of `__init__`, and ask it for names and results.
    """

    has_linked_attribute = False
    """Functions have the attributes of their calls before they run."""

    def __init__(
        self,
        graph: onnx.GraphProto,
        opsets: Mapping[str, int],
        functions: Iterable[onnx.FunctionProto] | None = None,
        verbose: int = 0,  # noqa: ARG002  (given by those operators)
        new_ops: object = None,  # noqa: ARG002
    ) -> None:
        self.proto_, self.opsets = graph, {"": 1, **opsets}
        self.local: LocalFunctions = {(f.domain, f.name): f for f in functions or ()}
        self.nodes: Sequence[onnx.NodeProto] = graph.node
        self.input_names = [info.name for info in graph.input]
        self.output_names = [info.name for info in graph.output]
        self._ways: dict[int, Way] = {}

    @cached_property
    def weights(self) -> dict[str, Any]:
        """The constants of the graph, and nothing for inputs that nodes leave out."""
        held = {t.name: numpy_helper.to_array(t) for t in self.proto_.initializer}
        return {"": None, **held}

    def run(
        self,
        names: Sequence[str] | None,
        feeds: Mapping[str, Any],
        attributes: object = None,  # noqa: ARG002  (given by operators of the reference)
    ) -> list[Any]:
        """The outputs, or values of these names; `feeds` are inputs and what lies around."""
        values = {**self.weights, **feeds}
        for place, node in enumerate(self.nodes):
            found = self._way(place)([values[name] for name in node.input], values)
            values.update(zip(node.output, found, strict=False))
        return [values[name] for name in names or self.output_names]

    def inside(self, graph: onnx.GraphProto) -> Evaluator:
        """The evaluator of a graph in one of the nodes."""
        return Evaluator(graph, self.opsets, self.local.values())

    def called(self, call: onnx.NodeProto, body: onnx.FunctionProto) -> Way:
        """A function with the attributes of a call; inputs that are left out are nothing."""
        nodes = list(CalledNodes(call, body, body.node))
        made = {name for node in nodes for name in node.output} | set(body.input)
        wanted = [name for name in body.output if name in made]  # a call may want fewer
        graph = helper.make_graph(
            nodes, body.name, [], [onnx.ValueInfoProto(name=name) for name in wanted]
        )
        opsets = {**self.opsets, **opsets_of(body.opset_import)}
        inner = Evaluator(graph, opsets, self.local.values())

        def run(given: Sequence[Any], _around: Mapping[str, Any]) -> Sequence[Any]:
            feeds = {**dict.fromkeys(body.input), **dict(zip(body.input, given, strict=False))}
            found = dict(zip(wanted, inner.run(None, feeds), strict=True))
            return [found.get(name) for name in body.output]

        return run

    def _way(self, place: int) -> Way:
        """How a node runs; found once."""
        if place not in self._ways:
            node = self.nodes[place]
            other = _lazy(lambda: self._other(node))
            meant = Understood(node, self.opsets) if is_understood(node) else None
            self._ways[place] = other if meant is None else _first(meant, other)
        return self._ways[place]

    def _other(self, node: onnx.NodeProto) -> Way:
        """The way of a node that does not run by the meaning of a graph."""
        local = self.local.get((node.domain, node.op_type))
        if local is not None:
            return self.called(node, local)
        if domain_of(node) == "" and node.op_type in CONTROL:
            return CONTROL[node.op_type](node, self.inside)
        operator = _operator(node, self.opsets)
        if operator is not None:
            return _operated(operator(node, self.parameters()))
        if _has_body(node, self.opsets):
            return self._defined(node)
        raise NotImplementedError(f"nothing runs {quoted(node.op_type)} of such inputs")

    def _defined(self, node: onnx.NodeProto) -> Way:
        """The function by which ONNX defines an operator, for the types of its inputs."""

        def run(given: Sequence[Any], around: Mapping[str, Any]) -> Sequence[Any]:
            types = [_type(value) for value in given]
            domain = domain_of(node)
            body = body_of(node, domain, self.opsets.get(domain, 1), types)
            if body is None:
                raise NotImplementedError(f"nothing runs {quoted(node.op_type)} of such inputs")
            return self.called(node, body)(given, around)

        return run

    def parameters(self) -> dict[str, Any]:
        """What operators of the reference implementation are told."""
        return {
            "log": lambda *_: None,
            "opsets": self.opsets,
            "verbose": 0,
            "new_ops": None,
            "existing_functions": dict(self.local),
            "evaluator_cls": Evaluator,
        }


def _lazy(make: Callable[[], Way]) -> Way:
    """A way that is looked for when it is first needed."""
    made: list[Way] = []

    def run(given: Sequence[Any], around: Mapping[str, Any]) -> Sequence[Any]:
        if not made:
            made.append(make())
        return made[0](given, around)

    return run


def _first(meant: Understood, other: Way) -> Way:
    """By meaning, or another way where there is none."""

    def run(given: Sequence[Any], around: Mapping[str, Any]) -> Sequence[Any]:
        found: Sequence[Any] | None = meant.results(given)
        if found is None and is_moved(meant.proto):
            found = _moved(meant, given)
        if found is not None:
            return found
        try:
            return other(given, around)
        except NotImplementedError:
            if meant.problem is not None:
                raise meant.problem from None
            raise

    return run


def _moved(meant: Understood, given: Sequence[Any]) -> Sequence[Any] | None:
    """What a node gives that moves elements which are no numbers."""
    codes = Codes.of(given)
    if codes is None:
        return None
    found = meant.results(codes.inputs(given))
    return None if found is None else codes.outputs(meant.proto, meant.opsets, given, found)


def _operated(operator: OpRun) -> Way:
    """An operator with the face of the reference implementation."""

    def run(given: Sequence[Any], around: Mapping[str, Any]) -> Sequence[Any]:
        context = {"context": dict(around)} if operator.need_context() else {}
        found: Sequence[Any] = operator.run(*given, **context)
        return found

    return run


def _operator(node: onnx.NodeProto, opsets: Mapping[str, int]) -> type[OpRun] | None:
    """The class of an operator; None if there is none, or a function instead."""
    domain = domain_of(node)
    own = OPERATORS.get((domain, node.op_type))
    if own is not None:
        return own
    if domain not in _LOADERS:
        return None
    try:
        found = _LOADERS[domain](domain, node.op_type, opsets.get(domain, 1), evaluator_cls=_Body)
    except Exception:  # noqa: BLE001  (it raises whatever it likes for what it does not know)
        return None
    return found if isinstance(found, type) else None


class _Body:
    """Stands for functions while operators are looked for: they are none."""

    def __init__(self, *_: object) -> None: ...


def _has_body(node: onnx.NodeProto, opsets: Mapping[str, int]) -> bool:
    domain = domain_of(node)
    try:
        schema = defs.get_schema(node.op_type, opsets.get(domain, 1), domain)
    except defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def _type(value: Any) -> onnx.TypeProto:
    """The type of a value, as functions that depend on it ask for it."""
    if value is None:
        return onnx.TypeProto()
    if isinstance(value, list):
        first = _type(value[0]) if value else helper.make_tensor_type_proto(1, None)
        return helper.make_sequence_type_proto(first)
    if value.dtype.kind in "OUST":
        return helper.make_tensor_type_proto(onnx.TensorProto.STRING, value.shape)
    return helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
