"""Inputs that must be known before a model can be a graph: what of them, and which they are.

Axes, shapes, scales and the like are inputs of operators, and a model may hand them through from
its own inputs. A graph cannot wait for them, so such a model is compiled for their values once
these are there. Tensors of any rank, sequences and optionals need less: ranks, a length, whether
there is something at all.

Which inputs matter is read off the model: a walk along its nodes says on which inputs each value
depends (`Shape` depends on none), and `PARAMETERS` says where operators ask for what must be known.
"""

from __future__ import annotations

import hashlib
from collections import ChainMap
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from tilewright.frontend.onnx.check import domain_of, graphs_of
from tilewright.frontend.onnx.node import dtype_of_onnx
from tilewright.frontend.onnx.registry import Declined
from tilewright.frontend.onnx.scope import Item, Tensors
from tilewright.graph import Value
from tilewright.unsupported import Unsupported

__all__ = ["MAX_ELEMENTS", "NOTHING", "TOLD", "Dims", "Form", "Needs", "Settled", "bound"]
__all__ += [
    "defaulted_inputs",
    "element_type",
    "length_of",
    "named_parts",
    "needs_of",
    "open_inputs",
]
__all__ += ["open_inputs", "parameters", "part_name", "restored", "without_defaults"]

MAX_ELEMENTS: Final = 64
"""Elements of an input whose values a model may be compiled for."""

OPTIONAL_SINCE: Final = 4
"""The IR version since which a weight that is an input, too, is the default of that input."""

NOTHING: Final = -1
"""The length of an optional output without a value."""

Array = NDArray[Any]
Dims = tuple[int | None, ...]
"""The dimensions of a tensor, as far as they are known."""
Form = Dims | list[Dims] | None
"""What is known of an input that is no tensor of known rank: a tensor, a sequence, or nothing."""
Origins = ChainMap[str, frozenset[str]]
"""The inputs behind each name, those of graphs inside in front."""

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

_STANDARD: Final[Mapping[str, tuple[int, ...]]] = {
    **{f"Reduce{name}": (1,) for name in _REDUCTIONS},
    "AffineGrid": (1,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "CumProd": (1,),
    "CumSum": (1,),
    "DFT": (1, 2),
    "Dropout": (2,),
    "DynamicSlice": (1, 2, 3),
    "Expand": (1,),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1, 2, 3, 4),
    "NonMaxSuppression": (2, 3, 4),
    "OneHot": (1,),
    "Pad": (1, 3),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "STFT": (1, 3),
    "SequenceAt": (1,),
    "SequenceErase": (1,),
    "SequenceInsert": (2,),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "SplitToSequence": (1,),
    "Squeeze": (1,),
    "Tile": (1, 2),
    "TopK": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
    "If": (0,),
    "Loop": (0, 1),
}
_CONTRIB: Final[Mapping[str, tuple[int, ...]]] = {
    "ConvTransposeWithDynamicPads": (2,),
    "CropAndResize": (3,),
    "ExpandDims": (1,),
    "Pad": (1,),
}
PARAMETERS: Final[Mapping[tuple[str, str], tuple[int, ...]]] = {
    **{("", name): places for name, places in _STANDARD.items()},
    **{("com.microsoft", name): places for name, places in _CONTRIB.items()},
}
"""Where operators, by domain and name, ask for what must be known before they run."""

SOMETIMES: Final = frozenset(
    {"ConstantOfShape", "DFT", "Dropout", "DynamicSlice", "If", "Loop", "MaxUnpool"}
    | {"MelWeightMatrix", "NonMaxSuppression", "STFT", "Slice"}
)
"""Operators that can wait for their parameters, but not always."""

TOLD: Final = frozenset({"Expand", "Pad", "Reshape", "Tile"})
"""Operators that can do without them, for whatever comes, but are faster with them."""

SHAPE_ONLY: Final = ("Shape", "Size", "OptionalHasElement", "SequenceLength")
"""Operators whose results follow from shapes, whatever the elements are."""


@dataclass(frozen=True)
class Needs:
    """Inputs whose `values` must be known, and those of which the `forms` must."""

    values: tuple[str, ...] = ()
    forms: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.values, *self.forms)


@dataclass(frozen=True)
class Settled:
    """What is known of inputs: contents, or forms.

    `ones` are sizes that are one. If the model `spreads`, any others that meet may be one, too.
    `flipped` are guards whose condition is otherwise than usual, and sizes whose names are in
    `apart` differ. If it is `whole`, it runs on the reference implementation as it is.
    """

    values: Mapping[str, Array] = field(default_factory=dict)
    forms: Mapping[str, Form] = field(default_factory=dict)
    ones: frozenset[str] = frozenset()
    spreads: bool = False
    flipped: frozenset[str] = frozenset()
    apart: frozenset[str] = frozenset()
    whole: bool = False

    def digest(self) -> str:
        """The same for equal ones, and for no others."""
        facts = [(n, v.dtype.str, v.shape, v.tobytes()) for n, v in sorted(self.values.items())]
        forms = sorted(self.forms.items(), key=lambda item: item[0])
        sizes = sorted(self.ones), self.spreads, sorted(self.flipped), sorted(self.apart)
        text = repr((facts, forms, *sizes, self.whole))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def parameters(node: onnx.NodeProto) -> list[str]:
    """The inputs of a node that must be known before it runs."""
    places = PARAMETERS.get((domain_of(node), node.op_type), ())
    return [node.input[k] for k in places if k < len(node.input) and node.input[k]]


def open_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs that callers give: those that are no weights."""
    weights = {tensor.name for tensor in model.graph.initializer}
    weights |= {tensor.values.name for tensor in model.graph.sparse_initializer}
    return [info for info in model.graph.input if info.name not in weights]


def defaulted_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """The inputs that callers may give and need not: weights that are listed as inputs, too.

    Before IR version 4 all weights had to be listed so, and were constants all the same.
    """
    if model.ir_version < OPTIONAL_SINCE:
        return []
    needed = {info.name for info in open_inputs(model)}
    return [info for info in model.graph.input if info.name not in needed]


def without_defaults(model: onnx.ModelProto, names: Collection[str]) -> onnx.ModelProto:
    """A model in which these inputs have to be given."""
    own = onnx.ModelProto()
    own.CopyFrom(model)
    kept = [tensor for tensor in model.graph.initializer if tensor.name not in names]
    sparse = [s for s in model.graph.sparse_initializer if s.values.name not in names]
    del own.graph.initializer[:], own.graph.sparse_initializer[:]
    own.graph.initializer.extend(kept)
    own.graph.sparse_initializer.extend(sparse)
    return own


def needs_of(
    model: onnx.ModelProto,
    obstacles: Sequence[Unsupported],
    known: Collection[str] = (),
    *,
    waits: bool = False,
) -> Needs | None:
    """What must be known of a model that is no graph as it is; None if nothing would help.

    `obstacles` are the nodes that were in the way: some operators can wait for parameters
    otherwise. `known` are inputs whose values are settled already. One that merely `waits` for
    shapes is compiled for those that are inputs or little else, and not for, say, the greatest of
    the lengths of any number of texts.
    """
    failing = {node.op for node in obstacles if node.op}
    if not failing:  # what has no form, or cannot be planned, are branches and loops
        failing = {"If", "Loop"}
    inputs = [info for info in open_inputs(model) if info.name not in known]
    outputs = [o for o in model.graph.output if o.type.WhichOneof("value")]
    if any(element_type(info.type) is None for info in (*inputs, *outputs)):
        return None  # elements that no graph has
    forms = [info.name for info in inputs if not _has_rank(info.type)]
    few = _is_shape if waits else _is_small
    small = {info.name for info in inputs if few(info.type)}
    wanted = set(_Walk(model, failing).wanted(small))
    values = tuple(info.name for info in inputs if info.name in wanted)
    needs = Needs(values, tuple(name for name in forms if name not in wanted))
    plain = all(o.type.WhichOneof("value") == "tensor_type" for o in outputs)
    return needs if needs.names or not plain else None


class _Walk:
    """Follows values along the nodes of a model: a name stands for the inputs behind its value."""

    def __init__(self, model: onnx.ModelProto, failing: Collection[str]) -> None:
        self.model, self.failing = model, failing
        self.functions = {(f.domain, f.name): f for f in model.functions}
        self.asked: list[frozenset[str]] = []

    def wanted(self, small: Collection[str]) -> Iterable[str]:
        """The inputs that parameters depend on, where all of these are `small`."""
        graph = self.model.graph
        origins = {info.name: frozenset({info.name}) for info in graph.input}
        origins |= {tensor.name: frozenset[str]() for tensor in graph.initializer}
        self._graph(graph.node, ChainMap(origins))
        few = frozenset(small)
        return (name for found in self.asked if found <= few for name in found)

    def _graph(self, nodes: Iterable[onnx.NodeProto], origins: Origins) -> Origins:
        for node in nodes:
            found = self._node(node, origins)
            origins.update((name, found) for name in node.output)
        return origins

    def _node(self, node: onnx.NodeProto, origins: Origins) -> frozenset[str]:
        domain = domain_of(node)
        given = [origins.get(name, frozenset[str]()) for name in node.input]
        if self._asks(domain, node.op_type):
            asked = (origins.get(name, frozenset[str]()) for name in parameters(node))
            self.asked += [found for found in asked if found]
        found = frozenset[str]().union(*given)
        for _, graph in graphs_of(node):
            inner = origins.new_child({info.name: found for info in graph.input})
            inner.update((tensor.name, frozenset[str]()) for tensor in graph.initializer)
            inner = self._graph(graph.node, inner)
            found = found.union(*(inner.get(o.name, found) for o in graph.output))
        body = self.functions.get((domain, node.op_type))
        if body is not None:
            inner = self._graph(body.node, ChainMap(dict(zip(body.input, given, strict=False))))
            found = found.union(*(inner.get(name, found) for name in body.output))
        return frozenset() if not domain and node.op_type in SHAPE_ONLY else found

    def _asks(self, domain: str, operator: str) -> bool:
        if (domain, operator) not in PARAMETERS:
            return False
        return bool(domain) or operator not in SOMETIMES or operator in self.failing


def element_type(kind: onnx.TypeProto) -> int | None:
    """The type of the elements, of a sequence or an optional, too; None if no graph has such."""
    match kind.WhichOneof("value"):
        case "sequence_type":
            return element_type(kind.sequence_type.elem_type)
        case "optional_type":
            return element_type(kind.optional_type.elem_type)
        case "tensor_type":
            number = int(kind.tensor_type.elem_type)
            try:
                dtype_of_onnx(number)
            except Declined:
                return None
            return number
    return None


def _has_rank(kind: onnx.TypeProto) -> bool:
    if kind.WhichOneof("value") != "tensor_type":
        return False
    return bool(kind.tensor_type.HasField("shape"))


def _is_small(kind: onnx.TypeProto) -> bool:
    """Whether a tensor has few elements, or may have: a vector of any length, a tensor of any rank.

    Values that turn out to have more are not compiled for.
    """
    if kind.WhichOneof("value") != "tensor_type":
        return False
    tensor = kind.tensor_type
    if not tensor.HasField("shape"):
        return True
    known = [int(d.dim_value) for d in tensor.shape.dim if d.HasField("dim_value")]
    if len(known) < len(tensor.shape.dim):
        return len(tensor.shape.dim) <= 1
    return int(np.prod(known)) <= MAX_ELEMENTS


def _is_shape(kind: onnx.TypeProto) -> bool:
    """Whether a tensor is a number, or a vector of a known few of them."""
    dims = kind.tensor_type.shape.dim
    return _is_small(kind) and len(dims) <= 1 and all(d.HasField("dim_value") for d in dims)


def bound(model: onnx.ModelProto, values: Mapping[str, Array]) -> onnx.ModelProto:
    """A model with some of its inputs as weights, for whoever runs it by reference."""
    own = onnx.ModelProto()
    own.CopyFrom(model)
    kept = [info for info in model.graph.input if info.name not in values]
    del own.graph.input[:]
    own.graph.input.extend(kept)
    own.graph.initializer.extend(numpy_helper.from_array(v, n) for n, v in values.items())
    return own


def part_name(name: str, number: int) -> str:
    """The input or output of a graph that is a tensor of a sequence."""
    return f"{name}[{number}]"


def named_parts(name: str, item: Item) -> Iterator[tuple[str, Value]]:
    """The tensors of an output with names of their own."""
    if isinstance(item, Tensors):
        yield from ((part_name(name, k), value) for k, value in enumerate(item.items))
    elif isinstance(item, Value):
        yield name, item


def length_of(item: Item) -> int | None:
    """How many tensors an output is; None for a tensor itself, NOTHING if it has no value."""
    return len(item.items) if isinstance(item, Tensors) else NOTHING if item is None else None


def restored(results: Sequence[Any], lengths: Sequence[int | None]) -> list[Any]:
    """Results as the outputs declare them: the tensors of a sequence become a list."""
    left = iter(results)
    return [_value(left, length) for length in lengths]


def _value(results: Iterator[Any], length: int | None) -> Any:
    if length is None:
        return next(results)
    return None if length == NOTHING else [next(results) for _ in range(length)]
