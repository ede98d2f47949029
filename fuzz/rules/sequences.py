"""Sequences, optional values and texts: what goes through them comes back as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from onnx import TensorProto, helper

from fuzz.grow import Growth, Value, require

__all__ = ["RULES", "TEXTS"]

KINDS: Final = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.INT64)
WORDS: Final = ("", "a", "tile", "Wright", "ö", "A b", "a,b,,c", "the", "of tile  the", "x1y22")
PATTERNS: Final = (r"[a-z]*", r"\w+", r"[A-Z].*", r"(tile|a)", r".*\d+.*", r"a?b?", r"\S*\s\S*")


def _number(g: Growth, number: int) -> Value:
    return g.parameter(np.array(number, np.int64))


def _back(g: Growth, sequence: Value, axis: int) -> None:
    """A tensor of a sequence: one of its parts, all of them, or how many there are."""
    counts = [len(parts) for parts in sequence.arrays]
    match g.draw.choice(("at", "at", "all", "length")):
        case "at":
            require(min(counts), "an empty sequence")
            g.add("SequenceAt", [sequence, _number(g, g.draw.randrange(-min(counts), min(counts)))])
        case "all":
            require(min(counts), "an empty sequence")
            g.add("ConcatFromSequence", [sequence], axis=axis)
        case _:
            g.add("SequenceLength", [sequence])


def built(g: Growth, op: str) -> None:
    """Tensors that go through a sequence and come back, also side by side."""
    x = g.pick([t for t in g.types(op) if t != TensorProto.STRING], low=1)
    parts = [x, *(g.like(x) for _ in range(g.draw.randint(0, 2)))]
    made = g.add_hidden(op, parts)
    if g.draw.random() < 0.3:
        made = g.add_hidden("SequenceInsert", [made, g.like(x)])
    if g.draw.random() < 0.2:
        g.add("ConcatFromSequence", [made], axis=g.draw.randint(0, x.rank), new_axis=1)
    else:
        _back(g, made, g.draw.randrange(x.rank))


def empty(g: Growth, op: str) -> None:
    """Nothing at first: how long that is, or tensors that are put into it."""
    x = g.pick(KINDS, low=1, high=3)
    kind = None if x.type == TensorProto.FLOAT and g.draw.random() < 0.5 else x.type
    made = g.add_hidden(op, [], dtype=kind)
    for _ in range(g.draw.randint(0, 2)):
        place = _number(g, 0) if g.draw.random() < 0.5 else None
        made = g.add_hidden("SequenceInsert", [made, g.like(x), place])
    _back(g, made, g.draw.randrange(x.rank))


def split(g: Growth, op: str) -> None:
    """Pieces of one size, of sizes that are given, or single ones with or without their axis."""
    x = g.pick(KINDS, low=1, high=4, where=lambda v: v.all(lambda a: a.size))
    axis = g.draw.randrange(x.rank)
    extent = g.dims_of(x)[axis]
    given = None
    match g.draw.choice(("none", "equal", "listed")):
        case "equal":
            given = _number(g, g.draw.randint(1, 4))
        case "listed":
            require(isinstance(extent, int), "a size that varies")
            first = g.draw.randint(0, int(extent))
            given = g.parameter(np.array([first, int(extent) - first], np.int64))
    whole = given is not None or g.draw.random() < 0.5
    made = g.add_hidden(op, [x, given], axis=axis, keepdims=None if whole else 0)
    _back(g, made, axis if whole else 0)


def erased(g: Growth, op: str) -> None:
    x = g.pick(KINDS, low=1, high=3)
    parts = [x, *(g.like(x) for _ in range(g.draw.randint(1, 3)))]
    made = g.add_hidden("SequenceConstruct", parts)
    place = _number(g, g.draw.randrange(-len(parts), len(parts)))
    made = g.add_hidden(op, [made, place if g.draw.random() < 0.7 else None])
    _back(g, made, g.draw.randrange(x.rank))


def mapped(g: Growth, op: str) -> None:
    """A small graph for every part."""
    x = g.pick(KINDS, low=1, high=3)
    parts = [x, *(g.like(x) for _ in range(g.draw.randint(0, 2)))]
    made = g.add_hidden("SequenceConstruct", parts)
    part, seen = g.name("b"), g.name("b")
    body = helper.make_graph(
        [helper.make_node(g.draw.choice(("Abs", "Neg", "Identity")), [part], [seen])],
        "body",
        [helper.make_tensor_value_info(part, x.type, None)],
        [helper.make_tensor_value_info(seen, x.type, None)],
    )
    _back(g, g.add_hidden(op, [made], body=body), g.draw.randrange(x.rank))


def optional(g: Growth, op: str) -> None:
    """A tensor that is there: asked for, or asked whether it is."""
    made = g.add_hidden(op, [g.pick(KINDS)])
    g.add(g.draw.choice(("OptionalGetElement", "OptionalHasElement")), [made])


def _texts(g: Growth, shape: Sequence[int]) -> Value:
    count = int(np.prod(shape))
    words = [g.draw.choice(WORDS) for _ in range(count)]
    return g.new(
        TensorProto.STRING, list(shape), make=lambda _: np.array(words, object).reshape(shape)
    )


def _shape(g: Growth, low: int = 0) -> list[int]:
    return [g.draw.choice((1, 2, 3)) for _ in range(g.draw.randint(low, 2))]


def string_concat(g: Growth, op: str) -> None:
    shape = _shape(g)
    g.add(op, [_texts(g, shape), _texts(g, shape[g.draw.randint(0, len(shape)) :])])


def string_split(g: Growth, op: str) -> None:
    drawn = {"delimiter": g.draw.choice((",", " ", "e", ""))} if g.draw.random() < 0.7 else {}
    most = {"maxsplit": g.draw.randint(1, 2)} if g.draw.random() < 0.3 else {}
    g.add(op, [_texts(g, _shape(g))], 2, **drawn, **most)


def string_normalizer(g: Growth, op: str) -> None:
    shape = g.draw.choice(([g.draw.randint(1, 5)], [1, g.draw.randint(1, 5)]))
    drawn = {"case_change_action": g.draw.choice(("LOWER", "UPPER", "NONE"))}
    stopped = {"stopwords": ["the", "a"]} if g.draw.random() < 0.6 else {}
    g.add(op, [_texts(g, shape)], is_case_sensitive=g.draw.randint(0, 1), **drawn, **stopped)


def regex(g: Growth, op: str) -> None:
    g.add(op, [_texts(g, _shape(g))], pattern=g.draw.choice(PATTERNS))


def tf_idf(g: Growth, op: str) -> None:
    """Counts of single numbers and of pairs, with skips between them."""
    rng = np.random.default_rng(g.draw.getrandbits(63))
    shape = g.draw.choice(((6,), (2, 7)))
    x = g.new(TensorProto.INT64, list(shape), make=lambda s: rng.integers(0, 5, s))
    singles = [int(v) for v in rng.permutation(5)[:3]]
    pairs = [int(v) for v in rng.integers(0, 5, 4)]
    require(pairs[:2] != pairs[2:], "a pair twice")
    order = [int(v) for v in rng.permutation(5)]
    weighted = {"weights": [0.5, 2.0, 1.0, 0.25, 3.0]} if g.draw.random() < 0.5 else {}
    g.add(
        op,
        [x],
        mode=g.draw.choice(("TF", "IDF", "TFIDF")),
        min_gram_length=g.draw.randint(1, 2),
        max_gram_length=2,
        max_skip_count=g.draw.randint(0, 2),
        ngram_counts=[0, len(singles)],
        ngram_indexes=order,
        pool_int64s=[*singles, *pairs],
        **weighted,
    )


RULES: Final = {
    "Optional": optional,
    "RegexFullMatch": regex,
    "SequenceConstruct": built,
    "SequenceEmpty": empty,
    "SequenceErase": erased,
    "SequenceMap": mapped,
    "SplitToSequence": split,
    "StringConcat": string_concat,
    "StringNormalizer": string_normalizer,
    "StringSplit": string_split,
    "TfIdfVectorizer": tf_idf,
}

TEXTS: Final = ("RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit")
