"""Findings as Python text: small models that anybody can read, build and run again.

A file of `tests/fuzz_found` is a call of `kept` with the nodes, the inputs of each run and what was
expected. It depends on nothing that changes: neither on the generator nor on an oracle.
"""

from __future__ import annotations

import runpy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, helper, numpy_helper

from fuzz.case import Array, Case, Setting
from fuzz.compare import spread
from fuzz.engines import ORACLES, Results
from fuzz.judge import Verdict
from fuzz.values import number_of, numpy_type

__all__ = [
    "Kept",
    "array",
    "function",
    "graph",
    "kept",
    "node",
    "read_kept",
    "tensor",
    "write_kept",
]


@dataclass(frozen=True)
class Kept:
    """A case, and what each run must give; None where the text does not say."""

    case: Case
    expected: Results | None


def array(values: Any, kind: str, shape: Sequence[int]) -> Array:
    """An array of an ONNX element type by name, such as FLOAT16."""
    if kind == "STRING":
        return np.array(values, object).reshape(shape)
    dtype = numpy_type(getattr(onnx.TensorProto, kind))
    wide = np.array(values) if dtype.kind in "iub" else np.array(values, np.float64)
    return wide.astype(dtype).reshape(shape)


def node(op: str, inputs: str, outputs: str, *, domain: str = "", **attributes: Any) -> Any:
    """A node; names of values between spaces, `-` for one that is left out."""
    names = [[("" if n == "-" else n) for n in side.split()] for side in (inputs, outputs)]
    return helper.make_node(op, *names, domain=domain or None, **attributes)


def graph(nodes: Sequence[Any], inputs: Mapping[str, str], outputs: Mapping[str, str]) -> Any:
    """The body of a branch or a loop."""
    sides = [[_info(n, t) for n, t in side.items()] for side in (inputs, outputs)]
    return helper.make_graph(list(nodes), "body", *sides)


def function(
    domain: str,
    name: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    nodes: Sequence[Any],
    imports: Sequence[tuple[str, int]],
) -> Any:
    """A local function."""
    opsets = [helper.make_opsetid(d, v) for d, v in imports]
    return helper.make_function(domain, name, list(inputs), list(outputs), list(nodes), opsets)


def tensor(values: Any, kind: str, shape: Sequence[int]) -> Any:
    """An array as an attribute."""
    return numpy_helper.from_array(array(values, kind, shape))


def kept(
    nodes: Sequence[Any],
    *,
    opset: int,
    inputs: Mapping[str, str],
    outputs: Mapping[str, str],
    runs: Sequence[Mapping[str, Array]],
    constants: Mapping[str, Array] | None = None,
    expected: Sequence[Sequence[Array]] | None = None,
    setting: Setting | None = None,
    functions: Sequence[Any] = (),
) -> Kept:
    """The case of a file. Types are written as `FLOAT[n,3]`, or `FLOAT` for any shape."""
    made = helper.make_graph(
        list(nodes),
        "found",
        [_info(n, t) for n, t in inputs.items()],
        [_info(n, t) for n, t in outputs.items()],
        [numpy_helper.from_array(a, n) for n, a in (constants or {}).items()],
    )
    domains = sorted({n.domain for n in nodes} - {""})
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    model = helper.make_model(made, opset_imports=imports, ir_version=13, functions=functions)
    return Kept(
        Case(model, runs, setting or Setting()), [list(r) for r in expected] if expected else None
    )


def read_kept(path: Path) -> Kept:
    """What a file says; it has one name, `FOUND`."""
    found = runpy.run_path(str(path))["FOUND"]
    assert isinstance(found, Kept)
    return found


def write_kept(path: Path, case: Case, verdict: Verdict) -> None:
    """Write a case as a file, with what an oracle expects where rounding leaves no doubt."""
    path.write_text(text_of(case, verdict), encoding="utf-8")


def text_of(case: Case, verdict: Verdict) -> str:
    """The text of a file."""
    model = case.model
    expected = _expected(case)
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    lines = [
        "FOUND = kept(",
        "    [",
        *(f"        {_node(n)}," for n in model.graph.node),
        "    ],",
        f"    opset={model.opset_import[0].version},",
        f"    inputs={_types(model.graph.input)},",
        f"    outputs={_types(model.graph.output)},",
        f"    constants={_arrays(constants)},",
        f"    runs=[{', '.join(_arrays(feeds) for feeds in case.runs)}],",
    ]
    if expected is not None:
        rows = [f"[{', '.join(_array(np.asarray(a)) for a in run)}]" for run in expected]
        lines.append(f"    expected=[{', '.join(rows)}],")
    if case.setting != Setting():
        lines.append(f"    setting={case.setting!r},")
    if model.functions:
        lines.append(f"    functions=[{', '.join(map(_function, model.functions))}],")
    return "\n".join([*_head(case, verdict, "\n".join(lines)), *lines, ")", ""])


def _head(case: Case, verdict: Verdict, body: str) -> list[str]:
    """What stands above the call: where it comes from, and what it uses."""
    used = [n for n in ("array", "function", "graph", "kept", "node", "tensor") if f"{n}(" in body]
    return [
        f'"""{_quoted(verdict)}\n\nFrom {case.origin or "a model"}.\n"""',
        "",
        "from __future__ import annotations",
        "",
        *(["from fuzz.case import Setting"] if "Setting(" in body else []),
        f"from fuzz.kept import {', '.join(used)}",
        "",
    ]


def _quoted(verdict: Verdict) -> str:
    text = f"{verdict.kind}: {verdict.detail}".replace("\\", "/").replace('"""', "'''")
    words, lines = text.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > 90:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def _expected(case: Case) -> Results | None:
    """By the first oracle that runs it; nothing if rounding changes results much."""
    for run in reversed(ORACLES.values()):
        try:
            found = run(case.model, case.runs)
        except Exception:  # noqa: BLE001  (another one may run it)
            continue
        moved = spread(case)
        far = moved is None or any(
            a is None or (np.size(a) and np.max(a) > 0.1) for r in moved for a in r
        )
        return None if far else found
    return None


def _info(name: str, text: str) -> Any:
    kind, _, rest = text.partition("[")
    dims: list[Any] | None = None
    if rest:
        dims = [_dim(d) for d in rest.rstrip("]").split(",") if d]
    return helper.make_tensor_value_info(name, getattr(onnx.TensorProto, kind), dims)


def _dim(text: str) -> int | str | None:
    return None if text == "?" else int(text) if text.isdigit() else text


def _types(infos: Sequence[Any]) -> str:
    return repr({info.name: _type(info.type.tensor_type) for info in infos})


def _type(proto: Any) -> str:
    name = str(onnx.TensorProto.DataType.Name(proto.elem_type))
    if not proto.HasField("shape"):
        return name
    dims = [
        d.dim_param or (str(d.dim_value) if d.HasField("dim_value") else "?")
        for d in proto.shape.dim
    ]
    return f"{name}[{','.join(dims)}]"


def _arrays(values: Mapping[str, Array]) -> str:
    return "{" + ", ".join(f"{n!r}: {_array(a)}" for n, a in values.items()) + "}"


def _array(value: Array, call: str = "array") -> str:
    value = np.asarray(value)
    kind = onnx.TensorProto.DataType.Name(number_of(value.dtype))
    flat = value.reshape(-1)
    values = flat.tolist() if flat.dtype.kind in "iubOUf" else flat.astype(np.float64).tolist()
    if len(values) > 1 and len({repr(v) for v in values}) == 1:
        listed = f"[{_literal(values[0])}] * {len(values)}"
    else:
        listed = "[" + ", ".join(map(_literal, values)) + "]"
    return f"{call}({listed}, {kind!r}, {value.shape})"


def _literal(value: Any) -> str:
    if isinstance(value, float) and not np.isfinite(value):
        return f"float({str(value)!r})"
    if not isinstance(value, int | float | str | bool):
        value = int(value)
    return repr(value)


def _node(proto: Any) -> str:
    names = [" ".join(n or "-" for n in side) for side in (proto.input, proto.output)]
    parts = [repr(proto.op_type), *map(repr, names)]
    if proto.domain:
        parts.append(f"domain={proto.domain!r}")
    plain = {a.name: _attribute(a) for a in proto.attribute}
    return f"node({', '.join([*parts, *(f'{n}={t}' for n, t in plain.items())])})"


def _attribute(proto: Any) -> str:
    if proto.type == AttributeProto.TENSOR:
        return _array(numpy_helper.to_array(proto.t), "tensor")
    if proto.type == AttributeProto.GRAPH:
        nodes = ", ".join(map(_node, proto.g.node))
        return f"graph([{nodes}], {_types(proto.g.input)}, {_types(proto.g.output)})"
    value = helper.get_attribute_value(proto)
    if isinstance(value, bytes):
        return repr(value.decode())
    if isinstance(value, float):
        return _literal(float(np.float32(value)))
    items = (
        [v.decode() if isinstance(v, bytes) else v for v in value]
        if hasattr(value, "__iter__")
        else value
    )
    return repr(items)


def _function(proto: Any) -> str:
    nodes = ", ".join(map(_node, proto.node))
    imports = ", ".join(f"({o.domain!r}, {o.version})" for o in proto.opset_import)
    head = f"{proto.domain!r}, {proto.name!r}, {list(proto.input)}, {list(proto.output)}"
    return f"function({head}, [{nodes}], [{imports}])"
