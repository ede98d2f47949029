"""`Growth`: a graph while it is being made, with the values of everything in it.

Rules (`fuzz.rules`) pick values that an operator can use and add nodes. A node is evaluated for the
inputs of all runs at once: what the oracle refuses is not added, so that rules need to be right
only most of the time, and can look at shapes and values to keep results well defined.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper

from fuzz.aliases import Dim, Sizes, declared, meeting, named
from fuzz.case import Array
from fuzz.stepwise import evaluate_node, free_names
from fuzz.values import NARROW, TYPES, number_of, random_array

__all__ = ["DOMAINS", "IR_VERSION", "Dim", "Growth", "Reject", "Value"]
__all__ += ["imports", "require", "tensor_of"]

SIZES: Final = (1, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9, 12, 16, 17)
MAX_ELEMENTS: Final = 3000
DOMAINS: Final = {"com.microsoft": 1}
"""Domains besides that of ONNX, and their versions. Operators are named `domain.Operator`."""

IR_VERSION: Final = 13
"""The newest that onnxruntime reads."""

FAVOURITE: Final = onnx.TensorProto.FLOAT
SCHEMA_TYPES: Final = {f"tensor({onnx.TensorProto.DataType.Name(t).lower()})": t for t in TYPES}


class Reject(Exception):  # noqa: N818  (a rule gave up; nothing is wrong)
    """This node cannot be made here; another one is tried."""


def require(holds: object, why: str = "") -> None:
    """Give up unless something holds."""
    if not holds:
        raise Reject(why)


@dataclass(eq=False)
class Value:
    """A tensor: its name, and what it is in each run."""

    name: str
    arrays: list[Array]
    is_constant: bool = False
    uses: int = 0

    @property
    def type(self) -> int:
        return number_of(self.arrays[0].dtype)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.arrays[0].dtype

    @property
    def rank(self) -> int:
        return self.arrays[0].ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the first run."""
        return self.arrays[0].shape

    def all(self, holds: Callable[[Array], object]) -> bool:
        """Whether something holds in every run."""
        return all(holds(array) for array in self.arrays)


@dataclass
class Growth:
    """The graph so far. `sizes` are the symbolic dimensions, by name, for each run.

    With `aliases` there are several names for a size, and sizes of different names are broadcast.
    With `ones` sizes are one in some runs, and ranks may differ from run to run.
    """

    draw: random.Random
    opset: int
    sizes: Sizes
    runs: int
    flavour: str = "plain"
    has_texts: bool = True
    aliases: bool = False
    ones: bool = False
    values: list[Value] = field(default_factory=list)
    inputs: list[tuple[Value, list[Dim | None]]] = field(default_factory=list)
    constants: list[Value] = field(default_factory=list)
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    hidden: list[Value] = field(default_factory=list)
    rejected: list[str] = field(default_factory=list)
    names: int = 0

    # What the schemas say -----------------------------------------------------------------------

    def schema(self, op: str, domain: str = "") -> onnx.defs.OpSchema:
        """What ONNX says about an operator at the opset of this graph."""
        try:
            return defs.get_schema(op, self.opset, domain)
        except defs.SchemaError as problem:
            raise Reject(str(problem)) from problem

    def types(self, op: str, place: int | str = 0) -> tuple[int, ...]:
        """The element types that an input (or a type variable) of an operator may have."""
        schema = self.schema(op)
        name = place
        if isinstance(place, int):
            name = schema.inputs[min(place, len(schema.inputs) - 1)].type_str
        texts = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
        found = [SCHEMA_TYPES.get(text) for text in texts.get(str(name), [str(name)])]
        hidden = None if self.has_texts else onnx.TensorProto.STRING
        return tuple(t for t in found if t not in (None, hidden))

    def choose_type(self, types: Sequence[int]) -> int:
        """One of them: mostly f32, rarely a type that is only stored."""
        require(types, "no known type")
        if FAVOURITE in types and self.draw.random() < 0.5:
            return int(FAVOURITE)
        stored = {*NARROW, onnx.TensorProto.STRING}
        common = [t for t in types if t not in stored]
        return self.draw.choice(common if common and self.draw.random() < 0.93 else list(types))

    # Shapes -------------------------------------------------------------------------------------

    def dim(self) -> Dim:
        """A random size: rarely zero, now and then symbolic."""
        chance = self.draw.random()
        if chance < 0.02:
            return 0
        if self.sizes and chance < (0.55 if self.aliases or self.ones else 0.3):
            return self.draw.choice(sorted(self.sizes))
        return self.draw.choice(SIZES)

    def dims(self, low: int = 0, high: int = 5) -> list[Dim]:
        """A random shape of a rank within limits; not too many elements in any run."""
        ranks = [r for r in (0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5) if low <= r <= high]
        dims = [self.dim() for _ in range(self.draw.choice(ranks or [low]))]
        while any(np.prod(self.shape(dims, r)) > MAX_ELEMENTS for r in range(self.runs)):
            at = max(range(len(dims)), key=lambda k: self.largest(dims[k]))
            dims[at] = self.draw.choice((1, 2, 3))
        return dims

    def largest(self, dim: Dim) -> int:
        return max(self.extent(dim, run) for run in range(self.runs))

    def extent(self, dim: Dim, run: int) -> int:
        return self.sizes[dim][run] if isinstance(dim, str) else dim

    def shape(self, dims: Iterable[Dim], run: int) -> tuple[int, ...]:
        """Numbers for a run."""
        return tuple(self.extent(dim, run) for dim in dims)

    def dims_of(self, value: Value) -> list[Dim]:
        """The shape of a value in terms of symbolic sizes; gives up if they do not tell it."""
        require(len({a.ndim for a in value.arrays}) == 1, "ranks differ")
        return [self.dim_of([a.shape[k] for a in value.arrays]) for k in range(value.rank)]

    def dim_of(self, extents: Sequence[int]) -> Dim:
        """The number or the symbol that is so large in each run."""
        if len(set(extents)) == 1:
            return extents[0]
        for name, sizes in self.sizes.items():
            if list(extents) == sizes:
                return name
        require(self.aliases, "a size without a name")
        return named(self.sizes, extents)

    def meeting(self, dim: Dim, ones: float = 0.25, *, one_way: bool = False) -> Dim:
        """A size that goes together with another one where an operator broadcasts."""
        if self.draw.random() < ones:
            return 1
        if not self.aliases or self.draw.random() < 0.4:
            return dim
        return meeting(self.draw, self.sizes, dim, self.runs, one_way=one_way)

    # Values -------------------------------------------------------------------------------------

    def pick(
        self,
        types: Sequence[int],
        low: int = 0,
        high: int = 5,
        where: Callable[[Value], object] = lambda _: True,
    ) -> Value:
        """A value of one of these types and of a rank within limits: an earlier or a new one."""
        fitting = [
            v
            for v in self.values
            if v.type in types and v.all(lambda a: low <= a.ndim <= high) and where(v)
        ]
        if fitting and self.draw.random() < 0.8:
            fresh = [v for v in fitting if not v.uses and not v.is_constant]
            return self.draw.choice(fresh if fresh and self.draw.random() < 0.7 else fitting)
        made = self.new(self.choose_type(types), self.dims(low, high))
        require(where(made), "a new value does not fit either")
        return made

    def new(
        self,
        elem_type: int,
        dims: Sequence[Dim],
        *,
        make: Callable[[tuple[int, ...]], Array] | None = None,
        constant: float = 0.3,
        keeps_numbers: bool = False,
    ) -> Value:
        """A new input, or a constant with this probability; `make` gives values for a shape.

        Sizes that are numbers are declared as such if an operator has to know them.
        """
        fixed = not any(isinstance(d, str) for d in dims)
        filled = make or (lambda s: random_array(self.draw, elem_type, s, self.flavour))
        narrow = elem_type in NARROW
        if fixed and (narrow or self.draw.random() < constant):
            return self._constant(filled(self.shape(dims, 0)))
        require(not narrow, "types that are only stored are no inputs")
        value = Value(self.name("x"), [filled(self.shape(dims, r)) for r in range(self.runs)])
        shape: list[Dim | None] = list(dims)
        if self.aliases:
            numbers = 0.0 if keeps_numbers else 0.1
            shape = declared(self.draw, self.sizes, dims, self.runs, numbers)
        self.inputs.append((value, shape))
        self.values.append(value)
        return value

    def parameter(self, array: Array, *, always_constant: bool = False) -> Value:
        """Axes, shapes and the like: nearly always constants, now and then inputs."""
        array = np.asarray(array)
        if always_constant or self.draw.random() < 0.9:
            return self._constant(array)
        value = Value(self.name("p"), [array] * self.runs)
        self.inputs.append((value, list(array.shape)))
        return value

    def told(self, numbers: Sequence[int]) -> Value:
        """A shape and the like that may be data: now and then the greatest of some rows."""
        array = np.array(numbers, np.int64)
        if not array.size or self.draw.random() < 0.85:
            return self.parameter(array)
        less = [self.draw.randint(0, 3) for _ in range(self.draw.choice((1, 2)))]
        rows = Value(self.name("p"), [np.stack([array, *(array - n for n in less)])] * self.runs)
        self.inputs.append((rows, [None, len(array)]))
        if self.opset < 18:
            return self.add_hidden("ReduceMax", [rows], axes=[0], keepdims=0)
        first = self._constant(np.array([0]))
        return self.add_hidden("ReduceMax", [rows, first], keepdims=0)

    def like(
        self,
        value: Value,
        *,
        make: Callable[[tuple[int, ...]], Array] | None = None,
        elem_type: int | None = None,
    ) -> Value:
        """A value of the same shape: mostly an earlier one, if values need not be special."""
        wanted = value.type if elem_type is None else elem_type
        same = [
            v
            for v in self.values
            if v.type == wanted and [a.shape for a in v.arrays] == [a.shape for a in value.arrays]
        ]
        if same and make is None and self.draw.random() < 0.6:
            return self.draw.choice(same)
        return self.new(wanted, self.dims_of(value), make=make)

    def broadcast(
        self,
        value: Value,
        *,
        one_way: bool = False,
        make: Callable[[tuple[int, ...]], Array] | None = None,
        elem_type: int | None = None,
    ) -> Value:
        """A value whose shape goes together with that of another one, in some way."""
        if self.draw.random() < 0.45:
            return self.like(value, make=make, elem_type=elem_type)
        dims = self.dims_of(value)
        kept = dims[self.draw.randint(0, len(dims)) :]
        kept = [self.meeting(d, one_way=one_way) for d in kept]
        if not one_way and len(kept) == len(dims) and len(dims) < 5 and self.draw.random() < 0.2:
            kept = [self.draw.choice((1, 2, 3)), *kept]
        wanted = value.type if elem_type is None else elem_type
        return self.new(wanted, kept, make=make, constant=0.5)

    def _constant(self, array: Array) -> Value:
        value = Value(self.name("c"), [array] * self.runs, is_constant=True)
        self.constants.append(value)
        return value

    def name(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    # Nodes --------------------------------------------------------------------------------------

    def add(
        self,
        op: str,
        inputs: Sequence[Value | None],
        outputs: int | Sequence[bool] = 1,
        /,
        **attributes: Any,
    ) -> list[Value]:
        """A node and its results, or `Reject`; `outputs` may leave some of them out."""
        node, made = self._made(op, inputs, outputs, attributes)
        for value in made:
            require(_is_fine(value), "not a tensor, or too large")
        self.nodes.append(node)
        self.values.extend(made)
        return made

    def add_hidden(self, op: str, inputs: Sequence[Value | None], **attributes: Any) -> Value:
        """A node whose one result is offered to no other rule: it may be a sequence."""
        node, made = self._made(op, inputs, 1, attributes)
        self.nodes.append(node)
        self.hidden.extend(made)
        return made[0]

    def _made(
        self,
        op: str,
        inputs: Sequence[Value | None],
        outputs: int | Sequence[bool],
        attributes: Mapping[str, Any],
    ) -> tuple[onnx.NodeProto, list[Value]]:
        kept = [True] * outputs if isinstance(outputs, int) else list(outputs)
        names = [self.name("v") if keep else "" for keep in kept]
        given = [value.name if value else "" for value in inputs]
        while given and not given[-1]:
            given.pop()
        drawn = {name: value for name, value in attributes.items() if value is not None}
        domain, _, operator = op.rpartition(".")
        node = helper.make_node(operator, given, names, domain=domain or None, **drawn)
        results = self.evaluate(node)
        for used in inputs:
            if used is not None:
                used.uses += 1
        present = [name for name in names if name]
        return node, [Value(n, [run[k] for run in results]) for k, n in enumerate(present)]

    def evaluate(self, node: onnx.NodeProto) -> list[list[Any]]:
        """The results of a node in each run, or `Reject`."""
        known = {v.name: v for v in (*self.values, *self.constants, *self.hidden)}
        known.update({v.name: v for v, _ in self.inputs})
        names = [n for n in (*node.input, *free_names(node)) if n]
        model = helper.make_model(
            helper.make_graph([], "opset", [], []),
            opset_imports=imports(self.opset, [node]),
            ir_version=IR_VERSION,
        )
        found = []
        for run in range(self.runs):
            values = {n: known[n].arrays[run] for n in names}
            try:
                found.append(evaluate_node(model, node, values))
            except Exception as problem:
                raise Reject(f"{node.op_type}: {type(problem).__name__}: {problem}") from problem
        return found

    def attempt(self, rule: Callable[[Growth, str], None], op: str) -> bool:
        """Let a rule add its nodes; if it gives up, everything is as before."""
        lists: tuple[list[Any], ...] = (
            self.values, self.inputs, self.constants, self.nodes, self.hidden,
        )  # fmt: skip
        lengths, sizes = [len(entries) for entries in lists], dict(self.sizes)
        try:
            rule(self, op)
        except (Reject, IndexError) as reason:
            if isinstance(reason, IndexError) and not self.ones:  # axes that not every run has
                raise
            for entries, length in zip(lists, lengths, strict=True):
                del entries[length:]
            self.sizes = sizes
            self.rejected.append(str(reason))
            return False
        return True


def _is_fine(value: Value) -> bool:
    """Whether later nodes can use a result."""
    first = value.arrays[0]
    if not all(isinstance(a, np.ndarray | np.generic) for a in value.arrays):
        return False
    value.arrays = [np.asarray(a) for a in value.arrays]
    return (
        all(
            a.dtype == first.dtype and a.size <= 4 * MAX_ELEMENTS and a.ndim <= 6
            for a in value.arrays
        )
        and number_of(first.dtype) in TYPES
    )


def imports(opset: int, nodes: Iterable[onnx.NodeProto]) -> list[onnx.OperatorSetIdProto]:
    """The versions of what nodes are made of."""
    others = sorted({node.domain for node in nodes} & DOMAINS.keys())
    known = [("", opset), *((domain, DOMAINS[domain]) for domain in others)]
    return [helper.make_opsetid(domain, version) for domain, version in known]


def tensor_of(value: Value) -> onnx.TensorProto:
    """A constant as a model stores it."""
    return numpy_helper.from_array(value.arrays[0], value.name)
