"""Conversions between element types; see `tir.Cast` for what they mean.

Float to integer is in `to_integer.py`.
`bf16` and smaller floats go through `f32` in both directions, as they do in ml_dtypes; `f64` to
`f16` rounds once. Integers of less than eight bits are the last bits of a byte.
"""

from __future__ import annotations

from tilewright.dtypes import DType, Kind, f16, f32, f64, i32
from tilewright.llvm import small_floats
from tilewright.llvm.spelling import element_type, is_narrow, literal, value_type
from tilewright.llvm.to_integer import to_integer
from tilewright.llvm.writer import Value, Writer
from tilewright.target import Target

__all__ = ["Casts"]

# Halves are converted by one instruction where the processor has it, else by integer arithmetic.
_HALF_FEATURES = {
    "x86_64": {"f16c"},
    "aarch64": {"neon"},
    "riscv64": {"zfhmin", "zvfhmin"},
}


class Casts:
    """Conversions written through one writer, for one target."""

    def __init__(self, writer: Writer, target: Target) -> None:
        self._writer = writer
        self._gives_least = target.arch == "x86_64"
        self._has_half = target.features >= _HALF_FEATURES[target.arch]

    def cast(self, value: Value, source: DType, to: DType) -> Value:
        """`value`, which has dtype `source`, as `to`; both have the same number of lanes."""
        if source == to:
            return value
        if source.is_small and source.is_integer:
            value, source = self._whole(value, source), source.computed
            return self.cast(value, source, to)
        if to.is_small and to.is_integer:
            return self._to_bits(value, source, to)
        if to.is_bool:
            return self._to_bool(value, source)
        if is_narrow(to):
            return self._to_narrow(value, source, to)
        if is_narrow(source):
            return self.cast(self.widen(value, source), f32.vector(source.lanes), to)
        if source.is_float and to.is_integer:
            return to_integer(self._writer, value, source, to, gives_least=self._gives_least)
        return self._writer.convert(_operation(source, to), value, element_type(to))

    def _whole(self, value: Value, source: DType) -> Value:
        """A stored integer as one of eight bits; what else is in the byte does not matter."""
        w, sign = self._writer, 1 << (source.bits - 1)
        low = w.binary("and", value, 2 * sign - 1)
        return w.binary("sub", w.binary("xor", low, sign), sign) if source.is_signed else low

    def _to_bits(self, value: Value, source: DType, to: DType) -> Value:
        """The last bits of a whole number."""
        wide = i32 if source.is_float else to.computed
        whole = self.cast(value, source, wide.vector(source.lanes))
        return self._writer.binary(
            "and", self._writer.convert("trunc", whole, "i8"), ~(-1 << to.bits)
        )

    def _to_bool(self, value: Value, source: DType) -> Value:
        if source.is_small:
            value, source = self.widen(value, source), source.computed
        if is_narrow(source):
            return self._writer.compare("icmp ne", self._writer.binary("and", value, 0x7FFF), 0)
        zero = Value(literal(0, source), value.type)
        return self._writer.compare("fcmp une" if source.is_float else "icmp ne", value, zero)

    def _to_narrow(self, value: Value, source: DType, to: DType) -> Value:
        if source.is_bool:
            one, zero = (Value(literal(x, to), value_type(to)) for x in (1.0, 0.0))
            return self._writer.select(value, one, zero)
        if source.scalar == f64 and to.scalar == f16:
            return self.narrow(self._to_odd(value), to)
        return self.narrow(self.cast(value, source, f32.vector(source.lanes)), to)

    def widen(self, value: Value, source: DType) -> Value:
        """A stored float as `f32`; exact."""
        w = self._writer
        if source.is_small:
            return small_floats.widen(w, value, source)
        if source.kind is Kind.BFLOAT:
            bits = w.binary("shl", w.convert("zext", value, "i32"), 16)
            return w.convert("bitcast", bits, "float")
        if self._has_half:
            return w.convert("fpext", w.convert("bitcast", value, "half"), "float")
        return self._widen_half(value, source.lanes)

    def narrow(self, value: Value, to: DType) -> Value:
        """An `f32` rounded to nearest even into a stored float; NaN stays NaN."""
        w = self._writer
        if to.is_small:
            return small_floats.narrow(w, value, to)
        if to.kind is Kind.BFLOAT:
            return self._narrow_brain(value)
        if self._has_half:
            return w.convert("bitcast", w.convert("fptrunc", value, "half"), "i16")
        return self._narrow_half(value, to.lanes)

    def _narrow_brain(self, value: Value) -> Value:
        w = self._writer
        bits = w.convert("bitcast", value, "i32")
        top = w.binary("lshr", bits, 16)
        # Adding just under half, or half where the result would be odd, rounds ties to even.
        raised = w.binary("add", w.binary("add", bits, 0x7FFF), w.binary("and", top, 1))
        is_nan = w.compare("fcmp uno", value, value)
        chosen = w.select(is_nan, w.binary("or", top, 0x40), w.binary("lshr", raised, 16))
        return w.convert("trunc", chosen, "i16")

    def _widen_half(self, value: Value, lanes: int) -> Value:
        w = self._writer
        wide = w.convert("zext", value, "i32")
        shifted = w.binary("shl", w.binary("and", wide, 0x7FFF), 13)
        # Multiplying by 2**112 mends the exponent and normalises subnormal numbers.
        scale = Value(literal(2.0**112, f32.vector(lanes)), "")
        scaled = w.binary("fmul", w.convert("bitcast", shifted, "float"), scale)
        is_special = w.compare("icmp uge", shifted, 0x7C00 << 13)
        special = w.binary("or", shifted, 0x7F800000)
        magnitude = w.select(is_special, special, w.convert("bitcast", scaled, "i32"))
        sign = w.binary("shl", w.binary("and", wide, 0x8000), 16)
        return w.convert("bitcast", w.binary("or", magnitude, sign), "float")

    def _narrow_half(self, value: Value, lanes: int) -> Value:
        w = self._writer
        bits = w.convert("bitcast", value, "i32")
        size = w.binary("and", bits, 0x7FFFFFFF)
        odd = w.binary("and", w.binary("lshr", size, 13), 1)
        raised = w.binary("add", w.binary("add", size, 0xFFF - (112 << 23)), odd)
        # Below 2**-14 adding 0.5 leaves the rounded subnormal in the last bits of the sum.
        half = Value(literal(0.5, f32.vector(lanes)), "")
        total = w.binary("fadd", w.convert("bitcast", size, "float"), half)
        subnormal = w.binary("sub", w.convert("bitcast", total, "i32"), 0x3F000000)
        is_small = w.compare("icmp ult", size, 0x38800000)
        finite = w.select(is_small, subnormal, w.binary("lshr", raised, 13))
        infinity = Value(literal(0x7C00, i32.vector(lanes)), bits.type)
        bounded = w.select(w.compare("icmp uge", size, 0x47800000), infinity, finite)
        quiet = w.binary("and", w.binary("or", w.binary("lshr", size, 13), 0x7E00), 0x7FFF)
        result = w.select(w.compare("fcmp uno", value, value), quiet, bounded)
        sign = w.binary("and", w.binary("lshr", bits, 16), 0x8000)
        return w.convert("trunc", w.binary("or", result, sign), "i16")

    def _to_odd(self, value: Value) -> Value:
        """`f64` to `f32` toward zero, last bit set if inexact: rounding once more is then exact."""
        w = self._writer
        nearest = w.convert("fptrunc", value, "float")
        back = w.convert("fpext", nearest, "double")
        bits = w.convert("bitcast", nearest, "i32")
        positive = w.compare("fcmp ogt", value, Value("zeroinitializer", value.type))
        above = w.compare("fcmp ogt", back, value)
        below = w.compare("fcmp olt", back, value)
        outward = w.select(positive, above, below)
        toward_zero = w.select(outward, w.binary("sub", bits, 1), bits)
        inexact = w.compare("fcmp one", back, value)
        sticky = w.select(inexact, w.binary("or", toward_zero, 1), bits)
        return w.convert("bitcast", sticky, "float")


def _operation(source: DType, to: DType) -> str:
    """The instruction between two types, but for narrow floats, bools, and floats to integers."""
    if source.is_float and to.is_float:
        return "fptrunc" if to.bits < source.bits else "fpext"
    if to.is_float:
        return "sitofp" if source.is_signed else "uitofp"
    if to.bits <= source.bits:
        return "trunc"
    return "sext" if source.is_signed else "zext"
