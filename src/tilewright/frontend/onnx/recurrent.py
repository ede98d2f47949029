"""Recurrent layers: LSTM, GRU, RNN.

The products with the inputs of all time steps are one matrix product in front; a loop over time is
left with one product of the hidden state, and the gates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.dtypes import i64
from tilewright.frontend.onnx.gates import Gate, activations
from tilewright.frontend.onnx.node import OnnxNode
from tilewright.frontend.onnx.registry import onnx_op
from tilewright.graph import Builder, Value
from tilewright.graph.loops import Outside, Turn, loop
from tilewright.graph.sizes import dims_equal, product, tidy
from tilewright.tensor import ir as tir
from tilewright.tensor.build import select

__all__ = ["INPUTS", "Cell", "Layer", "lstm_layer"]

INPUTS = 8
"""Inputs of an LSTM; the others have fewer."""
COPIES = 8
"""Time steps up to which a loop becomes copies of its body."""

Cell = Callable[[Builder, Value, Sequence[Value], Outside], list[Value]]
"""Builds one time step: products of the inputs, and states → new states, the hidden one first."""


@dataclass(frozen=True)
class Layer:
    """What the layers have in common: inputs (time, batch, features), weights of each direction."""

    b: Builder
    node: OnnxNode
    x: Value
    w: Value
    r: Value
    bias: Value | None
    lengths: Value | None
    gates: int

    @property
    def directions(self) -> int:
        return 2 if self.node.string("direction", "forward") == "bidirectional" else 1

    @property
    def hidden(self) -> tir.Expr:
        return self.r.shape[-1]

    def part(self, value: Value, number: int, b: Builder | None = None) -> Value:
        """One of the pieces, as wide as the hidden state, of the last dimension."""
        start = self.hidden * number
        shape = [*value.shape[:-1], self.hidden]
        return (b or self.b).remap(value, shape, lambda *o: [*o[:-1], o[-1] + start])

    def parts(self, value: Value, count: int, b: Builder) -> list[Value]:
        """All pieces of the last dimension."""
        return [self.part(value, number, b) for number in range(count)]

    def of_direction(self, value: Value, direction: int) -> Value:
        """What weights, or states, one direction has."""
        if self.directions == 1:
            return self.b.reshape(value, value.shape[1:])
        return self.b.remap(value, value.shape[1:], lambda *o: [tir.Const(direction), *o])

    def biases(self, direction: int) -> tuple[list[Value], list[Value]]:
        """Those of the input and of the hidden state, one for each gate; none if there are none."""
        if self.bias is None:
            return [], []
        parts = self.parts(self.of_direction(self.bias, direction), 2 * self.gates, self.b)
        return parts[: self.gates], parts[self.gates :]

    def products(self, direction: int, bias: Sequence[Value]) -> Value:
        """Inputs times weights for all time steps: (time, batch, gates·hidden)."""
        b, x = self.b, self.x
        rows = b.reshape(x, (product(x.shape[:-1]), x.shape[-1]))
        found = b.contract("mk", "nk", "mn", rows, self.of_direction(self.w, direction))
        if bias:
            found = b.map(lambda v, c: v + c, found, b.concat(list(bias), 0))
        return b.reshape(found, (*x.shape[:-1], found.shape[-1]))

    def recurrence(self, b: Builder, state: Value, weights: Value, outside: Outside) -> Value:
        """The hidden state times its weights, which are those of one direction."""
        return _recurrence(b, state, outside(weights))

    def run(
        self,
        initial: Sequence[Value | None],
        hoisted: Callable[[int], Value],
        cell: Callable[[int], Cell],
    ) -> list[Value]:
        """The hidden states of all time steps, then the last states, as ONNX arranges them."""
        first = 1 if self.node.string("direction", "forward") == "reverse" else 0
        ways = [
            self._one_way(
                [self._state(value, d) for value in initial],
                hoisted(d),
                cell(d),
                backward=bool(d or first),
            )
            for d in range(self.directions)
        ]
        finals = zip(*(states for states, _ in ways), strict=True)
        last = [self._joined(column, 0) for column in finals]
        if self.node.int("layout"):
            last = [self.b.transpose(v, (1, 0, 2)) for v in last]
        if not self.node.wants(0):
            return [last[0], *last]  # nobody reads the first one
        whole = self._joined([y for _, y in ways if y is not None], 1)
        return [self.b.transpose(whole, (2, 0, 1, 3)) if self.node.int("layout") else whole, *last]

    def _joined(self, values: Sequence[Value], axis: int) -> Value:
        """Directions along a new dimension."""
        wide = [self.b.reshape(v, [*v.shape[:axis], 1, *v.shape[axis:]]) for v in values]
        return self.b.concat(wide, axis)

    def _state(self, value: Value | None, direction: int) -> Value:
        if value is None:
            zero = self.b.constant(0, dtype=self.x.dtype)
            return self.b.expand(zero, (self.x.shape[1], self.hidden))
        if self.node.int("layout"):
            value = self.b.transpose(value, (1, 0, 2))
        # Its batch is that of the inputs, whatever it is called.
        return self.b.expand(self.of_direction(value, direction), (self.x.shape[1], self.hidden))

    def _one_way(
        self, states: Sequence[Value], inputs: Value, cell: Cell, *, backward: bool
    ) -> tuple[list[Value], Value | None]:
        time = self.x.shape[0]
        wants_all = self.node.wants(0)

        def body(b: Builder, step: Value, before: Sequence[Value], outside: Outside) -> Turn:
            places = b.integers(step)
            assert places is not None, "iterations have numbers that are known inside"
            place = tidy(time - 1 - places[0]) if backward else places[0]
            whole = outside(inputs)
            here = b.remap(whole, whole.shape[1:], lambda *o: [place, *o])
            after = cell(b, here, before, outside)
            shown = after[0]
            if self.lengths is not None:
                held = outside(self.lengths)
                after = [_while(b, place, held, v, u) for v, u in zip(after, before, strict=True)]
                shown = _while(b, place, held, shown)
            return Turn(after, [shown] if wants_all else [])

        found = loop(self.b, body, self.b.sizes([time]), states, copies=COPIES)
        finals, stacked = found[: len(states)], found[len(states) :]
        if not stacked:
            return finals, None
        whole = stacked[0]
        if backward:
            whole = self.b.remap(whole, whole.shape, lambda t, *o: [time - 1 - t, *o])
        return finals, whole


def _while(
    b: Builder, place: tir.Expr, lengths: Value, new: Value, old: Value | None = None
) -> Value:
    """`new` within a sequence, `old` (zero) behind its end."""
    if old is None:
        return b.map(lambda n, v: select(place < n.to(i64), v, 0), lengths, new)
    return b.map(lambda n, v, u: select(place < n.to(i64), v, u), lengths, new, old)


def _layer(
    b: Builder, node: OnnxNode, inputs: Sequence[Value | None], gates: int
) -> tuple[Layer, list[Value | None]]:
    """What all layers take, and the rest: initial states and, of an LSTM, its peepholes."""
    left_out: list[Value | None] = [None] * (INPUTS - len(inputs))
    x, w, r, bias, lengths, *others = [*inputs, *left_out]
    assert x is not None, "the operator's definition asks for it"
    assert w is not None, "likewise"
    assert r is not None, "likewise"
    if node.int("layout"):
        x = b.transpose(x, (1, 0, 2))
    if lengths is not None:
        known = b.integers(lengths)
        if known is not None and all(dims_equal(n, x.shape[0]) for n in known):
            lengths = None
        else:
            lengths = b.reshape(b.expand(lengths, (x.shape[1],)), (x.shape[1], 1))
    return Layer(b, node, x, w, r, bias, lengths, gates), others


def _recurrence(b: Builder, state: Value, weights: Value) -> Value:
    """The hidden state times its weights."""
    return b.contract("mk", "nk", "mn", state, weights)


@onnx_op("RNN")
def rnn(b: Builder, node: OnnxNode, *inputs: Value | None) -> Sequence[Value]:
    """The new state is f(x·W + h·R + bias)."""
    layer, (initial, *_) = _layer(b, node, inputs, 1)
    functions = activations(node, ["Tanh"], layer.directions)

    def cell(direction: int) -> Cell:
        weights, (f,) = layer.of_direction(layer.r, direction), functions[direction]

        def step(b: Builder, here: Value, states: Sequence[Value], outside: Outside) -> list[Value]:
            found = _recurrence(b, states[0], outside(weights))
            return [b.map(lambda u, v: f(u + v), here, found)]

        return step

    return layer.run([initial], lambda d: layer.products(d, _summed(b, *layer.biases(d))), cell)


def _summed(b: Builder, first: Sequence[Value], second: Sequence[Value]) -> list[Value]:
    return [b.map(lambda p, q: p + q, u, v) for u, v in zip(first, second, strict=True)]


@onnx_op("GRU")
def gru(b: Builder, node: OnnxNode, *inputs: Value | None) -> Sequence[Value]:
    """Update and reset gates; the reset comes before or after the product with the hidden state."""
    layer, (initial, *_) = _layer(b, node, inputs, 3)
    functions = activations(node, ["Sigmoid", "Tanh"], layer.directions)
    after = bool(node.int("linear_before_reset"))

    def hoisted(direction: int) -> Value:
        own, hidden = layer.biases(direction)
        if after and own:  # the last bias of the hidden state meets the reset gate
            return layer.products(direction, [*_summed(b, own[:2], hidden[:2]), own[2]])
        return layer.products(direction, _summed(b, own, hidden))

    def cell(direction: int) -> Cell:
        weights, (f, g) = layer.of_direction(layer.r, direction), functions[direction]
        hidden = layer.biases(direction)[1]
        make = _gru_after if after else _gru_before
        return make(layer, weights, hidden[2] if hidden else None, f, g)

    return layer.run([initial], hoisted, cell)


def _gru_after(layer: Layer, weights: Value, bias: Value | None, f: Gate, g: Gate) -> Cell:
    """The candidate is g(xh + reset·(h·Rh + bias)): one product for all gates."""

    def step(b: Builder, here: Value, states: Sequence[Value], outside: Outside) -> list[Value]:
        (h,) = states
        found = _recurrence(b, h, outside(weights))
        x, s = layer.parts(here, 3, b), layer.parts(found, 3, b)
        last = s[2] if bias is None else b.map(lambda v, c: v + c, s[2], outside(bias))

        def blend(*args: tir.Expr) -> tir.Expr:
            xz, xr, xh, sz, sr, sh, old = args
            z = f(xz + sz)
            return (1 - z) * g(xh + f(xr + sr) * sh) + z * old

        return [b.map(blend, *x, s[0], s[1], last, h)]

    return step


def _gru_before(layer: Layer, weights: Value, bias: Value | None, f: Gate, g: Gate) -> Cell:
    """The candidate is g(xh + (reset·h)·Rh): a product for the gates, one for what is reset."""
    rows = layer.hidden
    gates = layer.b.remap(weights, (rows * 2, rows), lambda n, k: [n, k])
    rest = layer.b.remap(weights, (rows, rows), lambda n, k: [n + rows * 2, k])

    def step(b: Builder, here: Value, states: Sequence[Value], outside: Outside) -> list[Value]:
        (h,) = states
        x, s = layer.parts(here, 3, b), layer.parts(_recurrence(b, h, outside(gates)), 2, b)
        reset = b.map(lambda xr, sr, h: f(xr + sr) * h, x[1], s[1], h)
        new = _recurrence(b, reset, outside(rest))

        def blend(*args: tir.Expr) -> tir.Expr:
            xz, sz, xh, sh, old = args
            z = f(xz + sz)
            return (1 - z) * g(xh + sh) + z * old

        return [b.map(blend, x[0], s[0], x[2], new, h)]

    return step


@onnx_op("LSTM")
def lstm(b: Builder, node: OnnxNode, *inputs: Value | None) -> Sequence[Value]:
    """Input, output, forget and cell gates; gates may see the cell through peepholes."""
    layer, (initial_h, initial_c, peepholes) = _layer(b, node, inputs, 4)
    return lstm_layer(layer, initial_h, initial_c, peepholes)


def lstm_layer(
    layer: Layer, initial_h: Value | None, initial_c: Value | None, peepholes: Value | None
) -> list[Value]:
    """The results of an LSTM whose products are those of `layer`."""
    b = layer.b
    functions = activations(layer.node, ["Sigmoid", "Tanh", "Tanh"], layer.directions)

    def cell(direction: int) -> Cell:
        weights = layer.of_direction(layer.r, direction)
        holes = None if peepholes is None else layer.of_direction(peepholes, direction)
        return _lstm_cell(layer, weights, holes, functions[direction])

    hoisted = lambda d: layer.products(d, _summed(b, *layer.biases(d)))  # noqa: E731
    return layer.run([initial_h, initial_c], hoisted, cell)


def _lstm_cell(
    layer: Layer, weights: Value, peepholes: Value | None, functions: Sequence[Gate]
) -> Cell:
    f, g, h = functions
    couples = bool(layer.node.int("input_forget"))

    def step(b: Builder, here: Value, states: Sequence[Value], outside: Outside) -> list[Value]:
        hidden, cell = states
        found = layer.recurrence(b, hidden, weights, outside)
        x, s = layer.parts(here, 4, b), layer.parts(found, 4, b)
        sums = [b.map(lambda u, v: u + v, p, q) for p, q in zip(x, s, strict=True)]
        seen = layer.parts(outside(peepholes), 3, b) if peepholes is not None else None
        if seen is not None:
            for gate, hole in ((0, seen[0]), (2, seen[2])):
                sums[gate] = b.map(lambda v, p, c: v + p * c, sums[gate], hole, cell)

        def new_cell(i: tir.Expr, f_: tir.Expr, c_: tir.Expr, old: tir.Expr) -> tir.Expr:
            gate = f(i)
            forget = 1 - gate if couples else f(f_)
            return forget * old + gate * g(c_)

        new = b.map(new_cell, sums[0], sums[2], sums[3], cell)
        if seen is not None:
            sums[1] = b.map(lambda v, p, c: v + p * c, sums[1], seen[1], new)
        return [b.map(lambda o, c: f(o) * h(c), sums[1], new), new]

    return step
