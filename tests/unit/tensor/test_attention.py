"""`attend`: the meaning of attention, stage by stage, and what does not fit together."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.dtypes import boolean
from tilewright.tensor import library
from tilewright.tensor.build import Tensor, func, placeholder, size
from tilewright.tensor.interpret import interpret
from tilewright.tensor.verify import verify


def operands(queries: int = 3, keys: int = 4, heads: int = 2) -> list[Tensor]:
    lengths = {"Q": queries, "K": keys, "V": keys}
    return [placeholder(name, (1, heads, length, 2)) for name, length in lengths.items()]


def run(inputs: list[Tensor], result: Tensor, arrays: list[np.ndarray]) -> np.ndarray:
    return interpret(verify(func("attention", inputs, [result])), arrays)[result.buffer.name]


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def softmax(x: np.ndarray) -> np.ndarray:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def test_queries_keys_and_values_in_one_tensor():
    """Digits take one index of a dimension: no slice is copied."""
    qkv = placeholder("X", (1, 3, 3, 2, 4))
    layouts = ("bs0hd", "bs1hd", "bs2hd", "bshd")
    result = library.attend(qkv, qkv, qkv, layouts=layouts)
    array = random(1, 3, 3, 2, 4)
    q, k, v = (array[:, :, n].transpose(0, 2, 1, 3) for n in range(3))
    expected = (softmax(q @ k.swapaxes(2, 3) / 2) @ v).transpose(0, 2, 1, 3)
    assert np.allclose(run([qkv], result, [array]), expected, atol=1e-6)


def test_scale_and_causal_offset():
    q, k, v = operands()
    result = library.attend(q, k, v, scale=3.0, causal=True, offset=1)
    arrays = [random(1, 2, 3, 2), random(1, 2, 4, 2), random(1, 2, 4, 2)]
    scores = 3 * arrays[0] @ arrays[1].swapaxes(2, 3)
    seen = np.arange(4) <= np.arange(3)[:, None] + 1
    expected = softmax(np.where(seen, scores, -np.inf)) @ arrays[2]
    assert np.allclose(run([q, k, v], result, arrays), expected, atol=1e-5)


def test_a_boolean_mask_says_which_keys_take_part():
    q, k, v = operands()
    mask = placeholder("A", (4,), boolean)
    arrays = [random(1, 2, 3, 2), random(1, 2, 4, 2), random(1, 2, 4, 2)]
    only = np.array([False, False, True, False])
    found = run([q, k, v, mask], library.attend(q, k, v, mask), [*arrays, only])
    assert np.allclose(found, np.repeat(arrays[2][:, :, 2:3], 3, axis=2))


@pytest.mark.parametrize("layout", ["bhs", "bhss", "bhsdx", "b0sd"])
def test_layouts_name_every_dimension(layout):
    q, k, v = operands()
    with pytest.raises(ValueError, match="does not name the 4 dimensions of `Q`"):
        library.attend(q, k, v, layouts=(layout, "bhsd", "bhsd", "bhsd"))


@pytest.mark.parametrize("shape", [(3,), (2, 4), (5, 1, 1, 4)])
def test_masks_fit_the_scores(shape):
    q, k, v = operands()
    with pytest.raises(ValueError, match="the mask `A` has a dimension of"):
        library.attend(q, k, v, placeholder("A", shape))


def test_a_mask_has_at_most_four_dimensions():
    q, k, v = operands()
    with pytest.raises(ValueError, match="more than four dimensions"):
        library.attend(q, k, v, placeholder("A", (1, 1, 1, 1, 4)))


def test_heads_are_shared_evenly():
    q, (_, k, v) = operands(heads=4)[0], operands(heads=3)
    with pytest.raises(ValueError, match="4 heads of queries cannot share 3 heads of keys"):
        library.attend(q, k, v)


def test_the_number_of_features_is_known():
    q = placeholder("Q", (1, 2, 3, size("d")))
    with pytest.raises(ValueError, match="must be known"):
        library.attend(q, q, q)
