"""Operators that the reference implementation gets wrong, as ONNX says they are.

An oracle that is mended is still one; a row in `fuzz.known` would leave such models without any.
Some it knows only as they became later; in others it mixes up groups. `Loop` and `SequenceInsert`
are those that tilewright runs by reference, which graphs of this generator seldom need: most are
compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_conv_transpose import ConvTranspose as AnyConvTranspose
from onnx.reference.ops.op_gemm import Gemm_7 as AnyGemm
from onnx.reference.ops.op_grid_sample import GridSample as AnyGridSample
from onnx.reference.ops.op_reduce_log_sum_exp import ReduceLogSumExp_1 as ReduceLogSumExp1
from onnx.reference.ops.op_reduce_log_sum_exp import ReduceLogSumExp_18 as AnyReduceLogSumExp
from onnx.reference.ops.op_slice import Slice_10 as AnySlice
from onnx.reference.ops.op_stft import STFT as AnySTFT  # noqa: N811  (no constant)
from onnx.reference.ops.op_tfidf_vectorizer import TfIdfVectorizer as AnyTfIdfVectorizer

from fuzz.case import Array
from tilewright.frontend.onnx.reference.loops import Loop
from tilewright.frontend.onnx.reference.sequences import SequenceInsert

__all__ = ["mended"]


def mended(opset: int) -> list[type]:
    """Classes for `ReferenceEvaluator` that stand in for its own at an opset."""
    rowwise = [Hardmax, LogSoftmax, Softmax] if opset < 13 else []
    renamed = [GridSample] if opset < 20 else []
    tested = [BatchNormalization] if opset < 14 else []
    stepping = [Slice] if opset >= 10 else []
    infinite = [ReduceLogSumExp if opset >= 18 else EarlyReduceLogSumExp]
    always = [ConvTranspose, Gemm, Loop, LpNormalization, STFT, SequenceInsert, TfIdfVectorizer]
    return [*always, *stepping, *infinite, *renamed, *rowwise, *tested]


class BatchNormalization(OpRun):  # type: ignore[misc]  # onnx has no types
    """Before opset 14 one result is that of a network in use: a momentum is no wish to train."""

    def _run(
        self,
        x: Any,
        scale: Any,
        bias: Any,
        mean: Any,
        variance: Any,
        epsilon: float = 1e-5,
        momentum: float = 0.9,  # noqa: ARG002  (attributes come by name, wanted or not)
        spatial: int = 1,  # noqa: ARG002  (likewise)
    ) -> tuple[Any]:
        shape = (-1, *(1 for _ in x.shape[2:]))
        scale, bias, mean, variance = (v.reshape(shape) for v in (scale, bias, mean, variance))
        return ((scale * (x - mean) / np.sqrt(variance + epsilon) + bias).astype(x.dtype),)


class GridSample(AnyGridSample):  # type: ignore[misc]  # onnx has no types
    """Before opset 20, two modes have other names."""

    def _run(
        self,
        x: Any,
        grid: Any,
        mode: str = "bilinear",
        padding_mode: str = "zeros",
        align_corners: int = 0,
    ) -> tuple[Any]:
        found = super()._run(x, grid, mode.removeprefix("bi"), padding_mode, align_corners)
        return (found[0],)


class Gemm(AnyGemm):  # type: ignore[misc]  # onnx has no types
    """Integers wrap, as far as nothing scales them: floats would not hold them."""

    def _run(
        self,
        a: Any,
        b: Any,
        c: Any = None,
        alpha: float = 1.0,
        beta: float = 1.0,
        transA: int = 0,  # noqa: N803  (names of attributes)
        transB: int = 0,  # noqa: N803
    ) -> tuple[Any]:
        if a.dtype.kind not in "iu" or alpha != 1 or beta != 1:
            return (super()._run(a, b, c, alpha, beta, transA, transB)[0],)
        found = (a.T if transA else a) @ (b.T if transB else b)
        return (np.asarray(found if c is None else found + c).astype(a.dtype),)


class ConvTranspose(AnyConvTranspose):  # type: ignore[misc]  # onnx has no types
    """Groups one by one: each has filters, channels and biases of its own."""

    def _run(
        self,
        x: Any,
        weights: Any,
        bias: Any = None,
        auto_pad: Any = None,
        dilations: Any = None,
        group: int = 1,
        kernel_shape: Any = None,
        output_padding: Any = None,
        output_shape: Any = None,
        pads: Any = None,
        strides: Any = None,
    ) -> tuple[Any]:
        how = (auto_pad, dilations, 1, kernel_shape, output_padding, output_shape, pads, strides)
        biases = [None] * group if bias is None else np.split(bias, group)
        parts = zip(np.split(x, group, 1), np.split(weights, group), biases, strict=True)
        found = [super(ConvTranspose, self)._run(*part, *how)[0] for part in parts]
        return (np.concatenate(found, 1),)


class LpNormalization(OpRun):  # type: ignore[misc]  # onnx has no types
    """A norm is made of sizes, without their signs."""

    def _run(self, x: Any, axis: int = -1, p: int = 2) -> tuple[Any]:
        norm = np.power(np.power(np.abs(x), p).sum(axis=axis, keepdims=True), 1.0 / p)
        return (np.where(norm == 0, 0, x / norm).astype(x.dtype),)


class ReduceLogSumExp(AnyReduceLogSumExp):  # type: ignore[misc]  # onnx has no types
    """Infinitely many, or nothing at all, has a logarithm as well."""

    def _run(
        self, data: Any, axes: Any = None, keepdims: int = 1, noop_with_empty_axes: int = 0
    ) -> tuple[Any]:
        (found,) = super()._run(data, axes, keepdims, noop_with_empty_axes)
        if not data.size:
            return (found,)
        along = self.handle_axes(axes, noop_with_empty_axes)
        top = data.max(axis=along, keepdims=bool(keepdims))
        return (np.where(np.isinf(top), top, found).astype(data.dtype),)


class EarlyReduceLogSumExp(ReduceLogSumExp1):  # type: ignore[misc]  # onnx has no types
    """The same before opset 18, when axes were an attribute."""

    def _run(
        self,
        data: Any,
        axes: Any = None,
        keepdims: int = 1,
        noop_with_empty_axes: int = 0,  # noqa: ARG002  (attributes come by name, wanted or not)
    ) -> tuple[Any]:
        (found,) = super()._run(data, axes, keepdims)
        if not data.size:
            return (found,)
        along = None if axes is None else tuple(axes)
        top = data.max(axis=along, keepdims=bool(keepdims))
        return (np.where(np.isinf(top), top, found).astype(data.dtype),)


EarlyReduceLogSumExp.__name__ = "ReduceLogSumExp"  # by which the evaluator finds it


class STFT(AnySTFT):  # type: ignore[misc]  # onnx has no types
    """A signal of real numbers may do without a dimension for their parts."""

    def _run(
        self,
        signal: Any,
        step: Any,
        window: Any = None,
        length: Any = None,
        onesided: int = 1,
    ) -> tuple[Any]:
        parts = signal[..., None] if signal.ndim == 2 else signal
        return (super()._run(parts, step, window, length, onesided=onesided)[0],)


class Slice(AnySlice):  # type: ignore[misc]  # onnx has no types
    """A start before the first element is the first element, also for steps backwards."""

    def _run(
        self, data: Any, starts: Any, ends: Any, axes: Any = None, steps: Any = None
    ) -> tuple[Any]:
        if steps is not None:
            along = np.arange(len(starts)) if axes is None else axes
            first = -np.array(data.shape)[along]
            starts = np.where(steps < 0, np.maximum(starts, first), starts)
        return (super()._run(data, starts, ends, axes, steps)[0],)


class TfIdfVectorizer(AnyTfIdfVectorizer):  # type: ignore[misc]  # onnx has no types
    """Weights belong to sequences, whatever columns these are counted in."""

    def __init__(self, onnx_node: Any, run_params: Any) -> None:
        super().__init__(onnx_node, run_params)
        given: list[float] | None = self.weights
        if given:
            held = dict(zip(self.ngram_indexes_, given, strict=True))
            self.weights_ = [held.get(column, 0.0) for column in range(self.output_size_)]


def _rows(x: Array, axis: int) -> Array:
    """Before opset 13: the dimensions from the axis on are one, and so are those before it."""
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"axis {axis} of {x.ndim} dimensions")
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(int(np.prod(x.shape[:axis])), -1)


def _logarithms(rows: Array) -> Array:
    below = rows - rows.max(1, keepdims=True)
    return np.asarray(below - np.log(np.exp(below).sum(1, keepdims=True)))


class Hardmax(OpRun):  # type: ignore[misc]  # onnx has no types
    """One at the first of the greatest elements of a row."""

    def _run(self, x: Any, axis: int = 1) -> tuple[Any]:
        rows = _rows(x, axis)
        found = np.zeros_like(rows)
        found[np.arange(len(rows)), rows.argmax(1)] = 1
        return (found.reshape(x.shape),)


class LogSoftmax(OpRun):  # type: ignore[misc]  # onnx has no types
    """The logarithm of `Softmax`."""

    def _run(self, x: Any, axis: int = 1) -> tuple[Any]:
        return (_logarithms(_rows(x, axis)).reshape(x.shape).astype(x.dtype),)


class Softmax(OpRun):  # type: ignore[misc]  # onnx has no types
    """Powers of e that add up to one in a row."""

    def _run(self, x: Any, axis: int = 1) -> tuple[Any]:
        rows = _rows(x, axis)
        powers = np.exp(rows - rows.max(1, keepdims=True))
        return ((powers / powers.sum(1, keepdims=True)).reshape(x.shape).astype(x.dtype),)
