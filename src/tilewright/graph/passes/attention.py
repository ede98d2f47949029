"""Attention is recognised: two products with a softmax between them become one `Attend`.

Before:  s = contract(bhmd,bhnd->bhmn) q, k;  l = map(s · 0.125 + mask);  p = softmax l
         y = contract(bhmn,bhnd->bhmd) p, v;  t = transpose(0, 2, 1, 3) y
After:   t = attend(bshd, bshd, bshd -> bshd) q′, k′, v′, mask

where q′, k′, v′ are what transposes, reshapes, repetitions of heads and cuts made q, k, v of.
Scales may stand before or behind the product; masks are split into parts, and a causal one becomes
an attribute.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.errors import GraphError
from tilewright.graph.ir import Node, Value
from tilewright.graph.ops import Contract, Map, Reduce, Remap, Reshape, Transpose, axis
from tilewright.graph.ops.attend import Attend
from tilewright.graph.passes.logits import Logits, find_logits, fitted, literal_body, unscaled
from tilewright.graph.passes.masks import Masks
from tilewright.graph.passes.rewrite import Rewriter
from tilewright.graph.passes.views import View, in_order, view_of
from tilewright.graph.sizes import fixed, same_shape, tidy
from tilewright.tensor import ir as tir

__all__ = ["find_attention"]

NAMES = {2: "mn", 3: "hmn", 4: "bhmn", 5: "bbhmn"}
"""Names for the dimensions of scores, by their number: batch, heads, queries, keys."""


def find_attention(b: Rewriter, node: Node, inputs: tuple[Value, ...]) -> Value | None:
    """A rule: see the picture above."""
    match node.op:
        case Contract():
            return _from_product(b, node.op, inputs)
        case Transpose(order=order):
            return _absorbed(b, order, inputs[0])
    return None


def _absorbed(b: Rewriter, order: tuple[int, ...], x: Value) -> Value | None:
    """A transpose of the result is another layout of it."""
    found = b.made_by(x, Attend)
    if found is None or not b.is_read_once(x):
        return None
    op, node = found
    layout = "".join(op.layouts[3][d] for d in order)
    return b.add(replace(op, layouts=(*op.layouts[:3], layout)), *node.inputs)


@dataclass(frozen=True)
class _Softmax:
    """What goes into a softmax over the last dimension; rows of NaN become zero if `guarded`."""

    logits: Value
    guarded: bool


def _softmax(b: Rewriter, value: Value) -> _Softmax | None:
    """exp(x - max x) · (1 / Σ …), and behind it perhaps a test for NaN."""
    found = b.made_by(value, Map)
    if found is None:
        return None
    inner = _tested_for_nan(b, found[1])
    if inner is not None:
        below = _softmax(b, inner)
        return None if below is None else replace(below, guarded=True)
    power, share = _factors(found[1])
    total = None if share is None else _reciprocal_of(b, share)
    folded = None if total is None else b.made_by(total, Reduce)
    if power is None or folded is None or folded[0] != Reduce(tir.Fold.ADD, (value.rank - 1,)):
        return None
    if folded[1].inputs[0] is not power:
        return None
    exponential = b.made_by(power, Map)
    if exponential is None or not _is_exponential(exponential[0].body):
        return None
    logits, top = exponential[1].inputs
    peak = b.made_by(top, Reduce)
    if peak is None or peak[0] != Reduce(tir.Fold.MAX, (value.rank - 1,)):
        return None
    return _Softmax(logits, guarded=False) if peak[1].inputs[0] is logits else None


def _factors(node: Node) -> tuple[Value | None, Value | None]:
    """The operands of a map that is a product of two, the larger one first."""
    body = node.op.body if isinstance(node.op, Map) else None
    if isinstance(body, tir.Cast):
        body = body.value
    if not isinstance(body, tir.Mul) or len(node.inputs) != 2:
        return None, None
    if not isinstance(body.a, tir.Var) or not isinstance(body.b, tir.Var):
        return None, None
    first, second = node.inputs
    return (first, second) if same_shape(first.shape, node.output.shape) else (second, first)


def _reciprocal_of(b: Rewriter, value: Value) -> Value | None:
    found = b.made_by(value, Map)
    body = None if found is None else found[0].body
    if found is None or not isinstance(body, tir.Div) or not isinstance(body.b, tir.Var):
        return None
    is_one = isinstance(body.a, tir.Const) and body.a.value == 1
    return found[1].inputs[0] if is_one else None


def _is_exponential(body: tir.Expr) -> bool:
    if not isinstance(body, tir.Call) or body.name not in {"exp", "exp_bounded"}:
        return False
    (difference,) = body.args
    if not isinstance(difference, tir.Sub):
        return False
    first, second = difference.a, difference.b
    return isinstance(first, tir.Var) and isinstance(second, tir.Var) and first.name == "arg0"


def _tested_for_nan(b: Rewriter, node: Node) -> Value | None:
    """What a map gives, with 0 in place of NaN; None if it is another map."""
    body = literal_body(b, node)
    if not isinstance(body, tir.Select) or not isinstance(body.if_false, tir.Var):
        return None
    if not isinstance(body.if_true, tir.Const) or body.if_true.value != 0:
        return None
    kept = node.inputs[int(body.if_false.name.removeprefix("arg"))]
    if not isinstance(body.cond, tir.Var):
        return kept if _is_nan_test(body.cond) else None
    test = b.made_by(node.inputs[int(body.cond.name.removeprefix("arg"))], Map)
    found = test is not None and _is_nan_test(test[0].body) and test[1].inputs[0] is kept
    return kept if found else None


def _is_nan_test(expr: tir.Expr) -> bool:
    return isinstance(expr, tir.Ne) and expr.a is expr.b


def _from_product(b: Rewriter, op: Contract, inputs: tuple[Value, ...]) -> Value | None:
    """The second product: weights times values."""
    weights, values = inputs
    softmax = _softmax(b, weights) if b.is_read_once(weights) else None
    logits = None if softmax is None else find_logits(b, softmax.logits)
    names = NAMES.get(weights.rank)
    if softmax is None or logits is None or names is None:
        return None
    key = op.left[-1]
    if key in op.result or key not in op.right or op.left[-2] in op.right:
        return None
    letters = dict(zip(op.left, names, strict=True)) | {key: "n"}
    feature = [c for c in op.right if c not in op.left]
    if len(feature) != 1 or set(op.result) != set(op.left[:-1]) | set(feature):
        return None
    letters[feature[0]] = "d"
    return _attention(b, op, logits, softmax, values, letters)


def _attention(
    b: Rewriter,
    op: Contract,
    logits: Logits,
    softmax: _Softmax,
    values: Value,
    letters: dict[str, str],
) -> Value | None:
    operands = _operands(b, logits, NAMES.get(logits.scores.output.rank))
    if operands is None:
        return None
    (q, q_layout), (k, k_layout), factor = operands
    v, v_layout = _arranged(b, values, [_side(letters[c], "n") for c in op.right])
    if v_layout is None:
        return None
    scores = logits.scores.output.shape
    masks = Masks(b, scores)
    for mask, space in logits.masks:
        fits = fitted(b, mask, space, scores)
        if fits is None:
            return None
        masks.add(fits, alone=len(logits.masks) == 1)
    result = [_side(letters[c], "m") for c in op.result]
    layout = "".join(dict.fromkeys(result))
    whole = "".join(c for c in "bhsd" if c not in layout) + layout
    attend = Attend(
        (q_layout, k_layout, v_layout, whole),
        logits.scale * factor,
        masks.causal is not None,
        tir.Const(0) if masks.causal is None else masks.causal,
        logits.softcap,
        "nan" if softmax.guarded else None,
    )
    try:
        y = b.add(attend, q, k, v, *masks.kept)
    except GraphError:
        return None  # shapes of which only a run knows that they fit
    (kind,) = op.infer([softmax.logits.type, values.type])
    return b.reshape(y, kind.shape)


def _operands(
    b: Rewriter, logits: Logits, names: str | None
) -> tuple[tuple[Value, str], tuple[Value, str], float] | None:
    """Queries and keys with their layouts, and the factor that was taken from both."""
    op, node = logits.scores.op, logits.scores
    if names is None or not isinstance(op, Contract):
        return None
    letters = dict(zip(op.result, names, strict=True))
    summed = [c for c in op.left if c in op.right and c not in op.result]
    if len(summed) != 1:
        return None
    letters[summed[0]] = "d"
    sides = {op.left: node.inputs[0], op.right: node.inputs[1]}
    query, key = op.result[-2], op.result[-1]
    left, right = (op.left, op.right) if query in op.left else (op.right, op.left)
    if query in right or key in left or key not in right or left == right:
        return None
    q, first = unscaled(b, sides[left])
    k, second = unscaled(b, sides[right])
    q, q_layout = _arranged(b, q, [_side(letters[c], "m") for c in left])
    k, k_layout = _arranged(b, k, [_side(letters[c], "n") for c in right])
    if q_layout is None or k_layout is None:
        return None
    return (q, q_layout), (k, k_layout), first * second


def _side(name: str, position: str) -> str:
    """Queries (`m`) and keys (`n`) are both positions of their own operand."""
    return "s" if name == position else name


def _arranged(b: Rewriter, value: Value, letters: list[str]) -> tuple[Value, str | None]:
    """An operand as it is stored, with its layout; None if it has dimensions that do not fit."""
    if set(letters) - set("bhsd"):
        return value, None
    for view in (view_of(b, value), View.plain(value)):
        found = in_order(b, view, letters, "bhsd")
        if found is not None:
            return _out_of_slice(b, *found) or found
    return value, None


def _out_of_slice(b: Rewriter, value: Value, layout: str) -> tuple[Value, str] | None:
    """Heads that are cut out of a product of several operands, where they lie in it."""
    shaped = b.made_by(value, Reshape)
    cut = None if shaped is None else b.made_by(shaped[1].inputs[0], Remap)
    if cut is None or cut[0].inside != tir.TRUE:
        return None
    op, (source,) = cut[0], cut[1].inputs
    last = len(op.shape) - 1
    whole, width = fixed(source.shape[-1]), fixed(op.shape[-1])
    same = [p is axis(d) for d, p in enumerate(op.indices[:-1])]
    start = fixed(tidy(op.indices[-1] - axis(last)))
    if not all(same) or start is None or not whole or not width or source.rank != last + 1:
        return None
    aligned = whole % width == 0 and start % width == 0 and whole // width <= 10
    if not aligned or not same_shape(op.shape[:-1], value.shape[:last]):
        return None
    packed = b.reshape(source, [*source.shape[:-1], whole // width, *value.shape[last:]])
    return packed, f"{layout[:last]}{start // width}{layout[last:]}"
