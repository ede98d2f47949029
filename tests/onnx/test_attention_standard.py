"""`Attention` of the standard against its text: sizes of nothing, types, masks, and scores."""

from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import tilewright
from tests.expect import raises_code
from tests.onnx.small_models import check_node, close, one_node, run
from tilewright.frontend.onnx import import_model

BATCH, SHARED, GROUP, WIDTH, VALUES = 2, 2, 3, 4, 3
HEADS = SHARED * GROUP
MODES = ("products", "capped", "masked", "shares")


def split(x, heads):
    """[batch, positions, features] → [batch, heads, positions, features of a head]."""
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def formula(q, k, v, mask=None, past_key=None, past_value=None, lengths=None, **options):
    """All stages of the scores, and the result, as the text of the operator has them, in f64."""
    flat, dtype = q.ndim == 3, q.dtype
    if flat:
        q, k, v = split(q, HEADS), split(k, SHARED), split(v, SHARED)
    past = 0 if past_key is None else past_key.shape[2]
    if past_key is not None:
        k, v = np.concatenate([past_key, k], 2), np.concatenate([past_value, v], 2)
    present = k, v
    q, k, v = (x.astype(np.float64) for x in (q, k, v))
    k, v = (np.repeat(x, GROUP, 1) for x in (k, v))
    queries, keys = q.shape[2], k.shape[2]
    scores = {"products": q @ k.transpose(0, 1, 3, 2) * options.get("scale", WIDTH**-0.5)}
    cap = options.get("softcap", 0)
    scores["capped"] = np.tanh(scores["products"] / cap) * cap if cap else scores["products"]
    first = np.full(len(q), past) if lengths is None else lengths - queries
    ahead = np.arange(keys) - np.arange(queries)[:, None] - first[:, None, None]
    seen = ahead <= 0 if options.get("is_causal") else np.ones(ahead.shape, bool)
    if lengths is not None:
        seen = seen & (np.arange(keys) < lengths[:, None, None])
    masked = np.where(seen[:, None], scores["capped"], -np.inf)
    if mask is not None:
        added = np.where(mask, 0, -np.inf) if mask.dtype == bool else mask.astype(np.float64)
        if added.shape[-1] > 1 or options["opset"] >= 24:
            lacks = [(0, 0)] * (added.ndim - 1) + [(0, keys - added.shape[-1])]
            added = np.pad(added, lacks, constant_values=-np.inf)
        masked = masked + added
    scores["masked"] = masked
    top = masked.max(-1, keepdims=True, initial=-np.inf)
    with np.errstate(invalid="ignore"):
        powers = np.where(np.isneginf(top), 0, np.exp(masked - top))
    scores["shares"] = powers / np.where(np.isneginf(top), 1, powers.sum(-1, keepdims=True))
    y = scores["shares"] @ v
    y = y.transpose(0, 2, 1, 3).reshape(len(q), queries, -1) if flat else y
    return y.astype(dtype), *present, {k: s.astype(dtype) for k, s in scores.items()}


def operands(rng, queries, keys, *, flat=False, dtypes=(np.float32, np.float32)):
    sizes = ((HEADS, queries, WIDTH), (SHARED, keys, WIDTH), (SHARED, keys, VALUES))
    shapes = [(BATCH, s, h * d) if flat else (BATCH, h, s, d) for h, s, d in sizes]
    kinds = (dtypes[0], *dtypes)
    return [rng.standard_normal(s).astype(t) for s, t in zip(shapes, kinds, strict=True)]


def heads_of(flat):
    return {"q_num_heads": HEADS, "kv_num_heads": SHARED} if flat else {}


CASES = {
    "plain": {},
    "capped": {"softcap": 1.5, "scale": 0.5},
    "causal": {"is_causal": 1},
    "mask": {"mask": (5, 7)},
    "short mask": {"mask": (HEADS, 5, 4), "is_causal": 1},
    "cache": {"past": 3, "is_causal": 1, "softcap": 2.0},
    "lengths": {"lengths": [0, 6], "is_causal": 1},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("flat", [False, True])
def test_scores_of_every_stage(rng, case, flat):
    options = dict(CASES[case])
    q, k, v = operands(rng, 5, 7, flat=flat)
    mask = rng.random(options["mask"]) < 0.6 if options.get("mask") else None
    options.pop("mask", None)
    past = [None, None]
    if count := options.pop("past", 0):
        past = operands(rng, 1, count)[1:]
    lengths = np.array(options.pop("lengths")) if "lengths" in options else None
    inputs = [q, k, v, mask, *past, lengths]
    y, key, value, scores = formula(*inputs, opset=24, **options)
    for mode, name in enumerate(MODES):
        attributes = {**options, **heads_of(flat), "qk_matmul_output_mode": mode}
        model, feeds = one_node("Attention", inputs, opset=24, outputs=4, attributes=attributes)
        if lengths is not None:  # a cache that is updated outside has no new one
            model.graph.node[0].output[1:3] = ["", ""]
            del model.graph.output[1:3]
        wanted = [y, key, value, scores[name]] if lengths is None else [y, scores[name]]
        for found, expected in zip(run(model, feeds), wanted, strict=True):
            close(found, expected, f"{case}, {name}")


def test_scores_are_native(rng):
    q, k, v = operands(rng, 5, 7)
    mask = rng.random((BATCH, 1, 5, 7)) < 0.6
    attributes = {"qk_matmul_output_mode": 3, "softmax_precision": TensorProto.FLOAT}
    model, feeds = one_node(
        "Attention", [q, k, v, mask], opset=24, outputs=4, attributes=attributes
    )
    del model.graph.node[0].output[1:3]
    model.graph.node[0].output[1:1] = ["", ""]
    del model.graph.output[1:3]
    assert not import_model(model).by_reference
    y, *_, scores = formula(q, k, v, mask, opset=24)
    found = tilewright.compile(model, threads=1, cache=False).run(feeds)
    for a, b in zip(found, (y, scores["shares"]), strict=True):
        close(a, b)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("masked", ["", "mask", "lengths"])
@pytest.mark.parametrize("flat", [False, True])
def test_no_keys(rng, symbolic, masked, flat):
    """Queries that have nothing to see give zero, whatever their memory held before."""
    q, k, v = operands(rng, 3, 0, flat=flat)
    inputs = [q, k, v]
    inputs += [np.zeros((3, 0), bool)] if masked == "mask" else [None]
    inputs += [None, None, np.zeros(BATCH, np.int64)] if masked == "lengths" else []
    model, feeds = one_node("Attention", inputs, opset=24, attributes=heads_of(flat))
    if symbolic:
        for info in model.graph.input[1:]:
            for dim in info.type.tensor_type.shape.dim:
                if dim.dim_value == 0 and dim.WhichOneof("value"):
                    dim.dim_param = "keys"
    module = tilewright.compile(model, threads=1, cache=False)
    for _ in range(2):
        (found,) = module.run(feeds)
        assert not found.any()
        found[:] = np.nan


KINDS = (np.float16, np.float32, np.float64, ml_dtypes.bfloat16)


@pytest.mark.parametrize("kinds", [p for p in product(KINDS, KINDS) if p[0] is not p[1]])
def test_values_of_another_type(rng, kinds):
    """The result is of the type of the queries, the cache of values of their own."""
    q, k, v = operands(rng, 2, 3, dtypes=kinds)
    y, key, value, _ = formula(q, k, v, opset=24)
    check_node("Attention", [q, k, v], opset=24, outputs=3, expected=[y, key, value])


def test_values_of_another_type_are_compiled(rng):
    for kinds in ((np.float16, np.float64), (np.float64, np.float32)):
        q, k, v = operands(rng, 2, 3, dtypes=kinds)
        model, feeds = one_node("Attention", [q, k, v], opset=24)
        (found,) = tilewright.compile(model, threads=1, cache=False).run(feeds)
        close(found, formula(q, k, v, opset=24)[0])


@pytest.mark.parametrize("opset", [23, 24])
@pytest.mark.parametrize("scores", [False, True])
def test_masks_that_are_shorter_than_keys(rng, opset, scores):
    """What a mask lacks is masked; before opset 24 a single column stands for all keys."""
    q, k, v = operands(rng, 5, 7)
    for entries, symbolic, is_bool in product((1, 3, 7), (False, True), (False, True)):
        mask = rng.random((5, entries)) < 0.7 if is_bool else rng.standard_normal((5, entries))
        mask = mask if is_bool else mask.astype(np.float32)
        model, feeds = one_node("Attention", [q, k, v, mask], opset=opset, outputs=3 + scores)
        if symbolic:
            kind = helper.np_dtype_to_tensor_dtype(mask.dtype)
            given = helper.make_tensor_value_info("in3", kind, [5, "entries"])
            model.graph.input[3].CopyFrom(given)
        found = run(model, feeds)
        close(found[0], formula(q, k, v, mask, opset=opset)[0], f"{entries}, {symbolic}")


@pytest.mark.parametrize("unknown", [(0,), (1,), (2,), (3,), (0, 1, 2, 3)])
@pytest.mark.parametrize("scores", [False, True])
def test_sizes_that_are_not_known(rng, unknown, scores):
    """Whatever is symbolic: heads, which may be shared, and features as well."""
    q, k, v = operands(rng, 5, 7)
    y, key, value, stages = formula(q, k, v, opset=24)
    model, feeds = one_node("Attention", [q, k, v], opset=24, outputs=3 + scores)
    for number, info in enumerate(model.graph.input):
        for place in unknown:
            info.type.tensor_type.shape.dim[place].dim_param = f"n{number}{place}"
    wanted = [y, key, value, stages["products"]]
    for found, expected in zip(run(model, feeds), wanted[: 3 + scores], strict=True):
        close(found, expected)


@pytest.mark.parametrize("outputs", [3, 4])
def test_operands_that_do_not_fit(rng, outputs):
    q, k, v = operands(rng, 5, 6)
    masks = rng.standard_normal((4, 6)).astype(np.float32)
    for inputs in ([q, k, v[:, :1]], [q, k, v[:, :, :4]], [q[:1], k, v], [q, k, v, masks]):
        model, _ = one_node("Attention", inputs, opset=24, outputs=outputs)
        with raises_code("M004"):
            import_model(model)
