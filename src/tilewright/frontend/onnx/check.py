"""What a model says of its nodes against what is known of operators, before any is imported.

A node is wrong if nobody knows its operator, or if it contradicts the operator's definition:
attributes that do not exist, have another type or are missing, too few or too many inputs and
outputs. `sweep` goes over a whole model, graphs inside of nodes and functions included, so that one
error can name everything at once.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx
from onnx import defs

from tilewright.frontend.onnx.functions import LocalFunctions
from tilewright.frontend.onnx.registry import HANDLERS
from tilewright.shown import quoted

__all__ = ["Found", "below", "captured_names", "contradiction", "domain_of", "graphs_of"]
__all__ += ["left_out", "mismatch", "nested", "opsets_of", "sweep", "unknown"]


@dataclass(frozen=True)
class Found:
    """A node of a model, where it stands, and the versions of operators there."""

    proto: onnx.NodeProto
    inside: str
    opsets: Mapping[str, int]

    @property
    def name(self) -> str:
        return name_of(self.proto)


def name_of(proto: onnx.NodeProto) -> str:
    """The name of a node, or that of its first output."""
    return str(proto.name or next((o for o in proto.output if o), proto.op_type))


def domain_of(proto: onnx.NodeProto) -> str:
    """The domain of a node; that of ONNX itself is empty."""
    return "" if proto.domain == "ai.onnx" else str(proto.domain)


def opsets_of(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Versions by domain; that of ONNX itself is empty."""
    return {"" if o.domain == "ai.onnx" else o.domain: int(o.version) for o in imports}


def below(inside: str, name: str) -> str:
    """The place of what stands inside of a node."""
    return f"{inside}/{name}" if inside else name


def graphs_of(proto: onnx.NodeProto) -> Iterator[tuple[str, onnx.GraphProto]]:
    """The graphs inside of a node with the names of their attributes."""
    for attribute in proto.attribute:
        if attribute.HasField("g"):
            yield attribute.name, attribute.g
        yield from ((attribute.name, graph) for graph in attribute.graphs)


def sweep(model: onnx.ModelProto) -> Iterator[Found]:
    """All nodes of a model, whose calls lead nowhere back; those of functions for each call."""
    local = {(f.domain, f.name): f for f in model.functions}
    yield from _sweep(model.graph.node, "", opsets_of(model.opset_import), local)


def _sweep(
    nodes: Iterable[onnx.NodeProto], inside: str, opsets: Mapping[str, int], local: LocalFunctions
) -> Iterator[Found]:
    for proto in nodes:
        yield from nested(Found(proto, inside, opsets), local)


def nested(found: Found, local: LocalFunctions) -> Iterator[Found]:
    """A node, then those in graphs inside of it and in the function that it calls."""
    yield found
    proto, here = found.proto, below(found.inside, found.name)
    for name, graph in graphs_of(proto):
        yield from _sweep(graph.node, f"{here}.{name}", found.opsets, local)
    key = proto.domain, proto.op_type
    if key in local:
        own = {**found.opsets, **opsets_of(local[key].opset_import)}
        yield from _sweep(local[key].node, here, own, local)


def unknown(op: str, domain: str, opset: int, local: LocalFunctions) -> str:
    """Why nothing can be done about an operator; empty if somebody knows it."""
    if (domain, op) in HANDLERS or (domain, op) in local or _schema(op, domain, opset):
        return ""
    first = _first_opset(op, domain)
    if first is not None:
        return f"this operator came with opset {first}"
    if not domain:
        latest = defs.onnx_opset_version()
        newer = f" (it knows opsets up to {latest})" if opset > latest else ""
        return f"onnx {onnx.__version__} has no such operator{newer}"
    if domain in _domains() or any(domain == own for own, _ in local):
        return f"the domain {quoted(domain)} has no such operator that is known here"
    return f"the domain {quoted(domain)} is not known here"


def contradiction(proto: onnx.NodeProto, opset: int) -> str:
    """What a node has against the definition of its operator; empty if they agree."""
    definition = _definition(proto.op_type, domain_of(proto), opset)
    if definition is None:
        return ""
    if definition.is_plainly(proto):
        return ""
    problems = [*_attribute_problems(proto, definition)]
    for what, names, (least, most) in (
        ("input", proto.input, definition.inputs),
        ("output", proto.output, definition.outputs),
    ):
        count = max((k + 1 for k, name in enumerate(names) if name), default=0)
        if count > most or len(names) < least:
            limits = f"{least}" if least == most else f"{least} to {most}"
            expected = f"at least {least}" if most >= _MANY else limits
            problems.append(f"{len(names)} {what}s, where {expected} are expected")
    given = {k for k, name in enumerate(proto.input) if name}
    missing = left_out(proto, opset, given)
    if missing and len(proto.input) >= definition.inputs[0]:
        problems.append(missing)
    return "; ".join(problems)


def left_out(proto: onnx.NodeProto, opset: int, given: Container[int]) -> str:
    """Which input is not `given`, though the operator needs it; empty if all are.

    An optional that holds nothing is an input as well, of operators that take optionals.
    """
    definition = _definition(proto.op_type, domain_of(proto), opset)
    if definition is None:
        return ""
    for position, name in definition.required.items():
        named = position < len(proto.input) and proto.input[position]
        if position not in given and not (named and definition.takes_optional(position)):
            return f"the input `{name}` is left out"
    if definition.repeats:
        repeated = proto.input[len(definition.takes) - 1 :]
        return "one of the inputs that repeat is left out" if not all(repeated) else ""
    return ""


def mismatch(proto: onnx.NodeProto, opset: int, types: Sequence[str]) -> str:
    """What the element types of inputs have against the operator; empty if they fit.

    `types` are names of ONNX, empty where there is no input or it is no tensor. Kernels take more
    than the operator's definition says; only its sorts (floats, integers, bools) must be right,
    and integers may stand where floats do.
    """
    domain, first = domain_of(proto), dict[str, tuple[str, str]]()
    definition = _definition(proto.op_type, domain, opset)
    newest = _definition(proto.op_type, domain, _MANY)
    for position, kind in enumerate(types):
        if definition is None or newest is None or not kind:
            continue
        name, letter = quoted(proto.input[position]), definition.letter(position)
        allowed = _sorts(newest.allowed(position))
        if allowed and not {_sort(f"tensor({kind})"), *_stand_in(kind)} & allowed:
            return f"{name} is of type {kind}, which it does not take"
        other, known = first.setdefault(letter, (name, kind))
        if letter and known != kind:
            return f"{other} is of type {known} and {name} of {kind}, and must be alike"
    return ""


@functools.cache
def _sort(kind: str) -> str:
    """The sort of a type such as `tensor(float16)`."""
    found = re.fullmatch(r"tensor\((b?float|double|u?int|bool)\w*\)", kind)
    return (
        {"bfloat": "float", "double": "float", "uint": "int"}.get(found[1], found[1])
        if found
        else kind
    )


@functools.cache
def _sorts(kinds: frozenset[str]) -> frozenset[str]:
    return frozenset(map(_sort, kinds))


def _stand_in(kind: str) -> tuple[str, ...]:
    return ("float",) if "int" in kind else ()


_MANY = 2**31 - 1

_CHANGED = {"MeanVarianceNormalization": 9}
"""Operators that had other attributes before the first opset of which ONNX knows them."""


@dataclass(frozen=True)
class _Definition:
    """An operator: its attributes with type and need, how many inputs and outputs it has."""

    attributes: Mapping[str, tuple[int, bool]]
    inputs: tuple[int, int]
    outputs: tuple[int, int]
    required: Mapping[int, str]
    """Inputs by position that cannot be left out."""
    letters: tuple[str, ...] = ()
    """What stands for the type of each input: those with one letter have one type."""
    takes: tuple[frozenset[str], ...] = ()
    """Types that each input may have."""
    repeats: bool = False
    """Whether inputs behind the last are like it."""

    def is_plainly(self, proto: onnx.NodeProto) -> bool:
        """Whether a node without attributes is all right; False if one has to look closer."""
        if proto.attribute or self.needs_attributes or not all(proto.input):
            return False
        (fewest, most), (least, greatest) = self.inputs, self.outputs
        given = len(proto.input)
        are_enough = max(fewest, self.first_optional) <= given <= most
        return are_enough and least <= len(proto.output) <= greatest

    @functools.cached_property
    def needs_attributes(self) -> bool:
        return any(required for _, required in self.attributes.values())

    @functools.cached_property
    def first_optional(self) -> int:
        """Behind all inputs that cannot be left out."""
        return max(self.required, default=-1) + 1

    def letter(self, position: int) -> str:
        """What stands for the type of an input; empty if nothing does."""
        if position < len(self.letters):
            return self.letters[position]
        return self.letters[-1] if self.letters and self.repeats else ""

    def allowed(self, position: int) -> frozenset[str]:
        """The types that an input may have; empty if nothing says so."""
        if position < len(self.takes):
            return self.takes[position]
        return self.takes[-1] if self.takes and self.repeats else frozenset()

    def takes_optional(self, position: int) -> bool:
        """Whether an input may be an optional, which may hold nothing."""
        return any(kind.startswith("optional(") for kind in self.allowed(position))


def _schema(op: str, domain: str, opset: int) -> defs.OpSchema | None:
    try:
        return defs.get_schema(op, opset, domain)
    except defs.SchemaError:
        return None


@functools.lru_cache(maxsize=4096)  # names are those of files
def _definition(op: str, domain: str, opset: int) -> _Definition | None:
    """What an operator is at an opset; before its own, what it is there: some exporters are early.

    None if no opset has it, or it was another one before.
    """
    if not domain and opset < _CHANGED.get(op, 0):
        return None
    schema = _schema(op, domain, opset) or _schema(op, domain, _first_opset(op, domain) or opset)
    if schema is None:
        return None
    attributes = {
        name: (int(attribute.type.value), bool(attribute.required))
        for name, attribute in schema.attributes.items()
    }
    inputs, outputs = (schema.min_input, schema.max_input), (schema.min_output, schema.max_output)
    single = defs.OpSchema.FormalParameterOption.Single
    required = {k: i.name for k, i in enumerate(schema.inputs) if i.option == single}
    known = {constraint.type_param_str for constraint in schema.type_constraints}
    variadic = defs.OpSchema.FormalParameterOption.Variadic
    letters = tuple(
        i.type_str if i.type_str in known and (i.option != variadic or i.is_homogeneous) else ""
        for i in schema.inputs
    )
    repeats = bool(schema.inputs) and schema.inputs[-1].option == variadic
    takes = tuple(frozenset(i.types) for i in schema.inputs)
    return _Definition(attributes, inputs, outputs, required, letters, takes, repeats)


def _attribute_problems(proto: onnx.NodeProto, definition: _Definition) -> Iterator[str]:
    given = {a.name: a for a in proto.attribute}
    for name, attribute in given.items():
        if name not in definition.attributes:
            yield f"the attribute {quoted(name)} does not exist"
            continue
        kind, _ = definition.attributes[name]
        if attribute.type != kind:
            found, expected = map(_type_name, (attribute.type, kind))
            yield f"the attribute `{name}` is of type {found}, not {expected}"
    for name, (_, required) in definition.attributes.items():
        if required and name not in given:
            yield f"the attribute `{name}` is missing"


def _type_name(kind: int) -> str:
    return str(onnx.AttributeProto.AttributeType.Name(kind)).lower()


def _first_opset(op: str, domain: str) -> int | None:
    return _first_opsets().get((domain, op))


@functools.cache
def _first_opsets() -> Mapping[tuple[str, str], int]:
    """When each operator came; all schemas at once, because looking for one takes milliseconds."""
    found: dict[tuple[str, str], int] = {}
    for schema in defs.get_all_schemas_with_history():
        key = schema.domain, schema.name
        found[key] = min(found.get(key, schema.since_version), schema.since_version)
    return found


@functools.cache
def _domains() -> frozenset[str]:
    defined = {schema.domain for schema in defs.get_all_schemas()}
    return frozenset(defined | {domain for domain, _ in HANDLERS})


def captured_names(node: onnx.NodeProto) -> Iterator[str]:
    """The names that graphs inside of a node read from around it, each once."""
    free: dict[str, None] = {}
    for _, graph in graphs_of(node):
        own = {i.name for i in (*graph.input, *graph.initializer)}
        own |= {tensor.values.name for tensor in graph.sparse_initializer}
        for inner in graph.node:
            read = (*inner.input, *captured_names(inner))
            free.update(dict.fromkeys(n for n in read if n and n not in own))
            own.update(inner.output)
        free.update(dict.fromkeys(o.name for o in graph.output if o.name not in own))
    yield from free
