"""Convolutions: what rows mean, where they are from, and the layers that engines are given."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest

from benchmarks import kinds, numbers
from benchmarks.convolutions import CONVOLUTIONS, FAMILIES, OPS, TAGS, Convolution
from benchmarks.numbers import CONVOLUTION_TOLERANCE, TOLERANCE, error_of, inputs, reference
from benchmarks.workloads import Workload, select

SMALL = {
    "conv1d": (9, 3, 2, 3, 2, 1),
    "conv2d": (5, 3, 2, 3, 1, 1),
    "conv3d": (3, 4, 2, 3, 3, 1, 1),
    "dilated": (9, 3, 4, 3, 2, 1),
    "grouped": (6, 8, 12, 3, 1, 0),
    "depthwise": (6, 3, 3, 2, 1),
    "transposed": (3, 2, 3, 4, 2, 1),
}


def small(op):
    return Workload("conv", op, SMALL[op])


@pytest.mark.parametrize("op", OPS)
def test_the_layer_of_a_convolution_means_the_reference(op, tmp_path):
    ort = pytest.importorskip("onnxruntime")
    workload = kinds.with_file(small(op), tmp_path)
    arrays = inputs(workload)
    (found,) = ort.InferenceSession(workload.path).run(None, kinds.feeds(workload, arrays))
    expected = reference(workload, arrays)
    assert expected.shape == workload.result_shape
    assert error_of(found, expected) <= TOLERANCE
    assert kinds.error_of(workload, [found], expected) == error_of(found, expected)


@pytest.mark.parametrize("op", ["dilated", "grouped"])
def test_windows_have_gaps_and_groups_see_their_own_channels(op):
    """The reference against its definition, element by element."""
    conv = Convolution.of(op, SMALL[op])
    arrays = inputs(small(op))
    x = np.pad(arrays["x"][0].astype("f8"), [(0, 0), *[(conv.padding,) * 2] * 2])
    expected = np.zeros(conv.result_shape)
    seen, per_group = conv.channels // conv.groups, conv.filters // conv.groups
    for f, i, j in np.ndindex(*conv.result_shape[1:]):
        total = float(arrays["b"][f])
        for c, r, s in np.ndindex(seen, conv.kernel, conv.kernel):
            at = i * conv.stride + r * conv.dilation, j * conv.stride + s * conv.dilation
            total += x[f // per_group * seen + c, *at] * float(arrays["w"][f, c, r, s])
        expected[0, f, i, j] = max(total, 0)
    np.testing.assert_allclose(conv.reference(arrays), expected, rtol=1e-12, atol=1e-12)


def test_layers_are_measured_once_and_know_their_families():
    assert len(set(CONVOLUTIONS)) == len(CONVOLUTIONS) == 54
    assert set(chain.from_iterable(FAMILIES.values())) == set(CONVOLUTIONS)
    assert {len(FAMILIES[name]) for name in ("C1D", "C2D", "C3D", "DIL", "GRP", "DEP", "T2D")} == {
        4
    }
    pointwise = Workload("conv", "conv2d", (56, 64, 64, 1, 1, 0))
    assert pointwise.families == ("resnet18", "resnet50-1x1", "C2D", "DIL")
    assert Workload("matmul", "matmul", (56, 64, 64)).families == ()


def test_layers_with_a_name_say_it():
    assert [w.name for w in select(["conv"], "(C1")] == [
        "conv2d 224x3x64x7x2x3 (C1)",
        "conv2d 14x256x512x3x2x1 (C10)",
        "conv2d 14x256x512x1x2x0 (C11)",
        "conv2d 7x512x512x3x1x1 (C12)",
    ]
    assert sorted(TAGS.values()) == sorted(
        [*(f"C{i}" for i in range(1, 13)), *(f"D{i}" for i in range(1, 10))]
    )


@pytest.mark.parametrize(
    ("op", "shape", "mega"),
    [
        ("conv2d", (224, 3, 64, 7, 2, 3), 236.0),
        ("conv2d", (56, 64, 64, 3, 1, 1), 231.2),
        ("conv2d", (14, 256, 512, 1, 2, 0), 12.8),
        ("grouped", (14, 256, 256, 3, 1, 1), 57.8),
        ("dilated", (7, 512, 512, 3, 1, 1), 118.0),
        ("depthwise", (112, 32, 3, 1, 1), 7.2),
        ("transposed", (4, 512, 256, 4, 2, 1), 67.1),
    ],
)
def test_operations_are_counted(op, shape, mega):
    assert Convolution.of(op, shape).flops / 1e6 == pytest.approx(mega, abs=0.05)


def test_convolutions_may_round_more():
    assert numbers.tolerance(small("conv2d")) == CONVOLUTION_TOLERANCE > TOLERANCE
    assert kinds.tolerance(Workload("matmul", "matmul", (3, 4, 5))) == TOLERANCE


def test_what_is_no_convolution_has_no_file(tmp_path):
    workload = Workload("matmul", "matmul", (3, 4, 5))
    assert kinds.with_file(workload, tmp_path) is workload
    assert not list(tmp_path.iterdir())
