"""ONNX's own backend interface over `compile`, as its conformance tests and tools expect it.

from tilewright import backend
outputs = backend.run_model(onnx.load("model.onnx"), [x])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import onnx
from onnx import defs, helper
from onnx.backend.base import Backend, BackendRep, DeviceType, namedtupledict
from onnx.backend.base import Device as OnnxDevice

import tilewright
from tilewright.errors import Code, ModelError, TilewrightError

__all__ = ["CompiledModel", "TilewrightBackend"]
__all__ += ["is_compatible", "prepare", "run_model", "run_node", "supports_device"]

M010 = Code("M010", "`{device}` is not a device of this backend")
M011 = Code("M011", "{found} inputs are given to a model that takes {expected}")

TOLERANCES: Final = ("rtol", "atol")
"""What ONNX's test runner hands to `prepare` as well: how it will compare results."""


class CompiledModel(BackendRep):  # type: ignore[misc]
    """A compiled model behind the interface of a backend."""

    def __init__(self, module: tilewright.Module) -> None:
        self.module = module

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """The outputs as a named tuple; inputs by name, in order, or a single one."""
        names = [info.name for info in self.module.inputs]
        if isinstance(inputs, Mapping):
            feeds = dict(inputs)
        else:
            given = inputs if isinstance(inputs, list | tuple) else [inputs]
            if len(given) != len(names):
                facts = {"found": len(given), "expected": len(names)}
                raise ModelError(M011, facts, hint=f"in this order: {', '.join(names)}")
            feeds = dict(zip(names, given, strict=True))
        found = self.module.run(feeds)
        outputs = [info.name for info in self.module.outputs]
        make = namedtupledict("Outputs", outputs)
        result: tuple[Any, ...] = make(*found)
        return result


class TilewrightBackend(Backend):  # type: ignore[misc]
    """Everything runs on the CPU; options are those of `compile`."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **options: Any) -> bool:
        """Whether a model can be compiled."""
        try:
            cls.prepare(model, device, **options)
        except TilewrightError:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **options: Any) -> CompiledModel:
        """Compile a model; by default nothing is kept on the disk."""
        if not cls.supports_device(device):
            raise ModelError(M010, {"device": device}, hint='the only device is "CPU"')
        given = {name: value for name, value in options.items() if name not in TOLERANCES}
        return CompiledModel(tilewright.compile(model, **{"cache": False, **given}))

    @classmethod
    def run_model(
        cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **options: Any
    ) -> tuple[Any, ...]:
        """Compile a model and run it once."""
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, ...]] | None = None,  # noqa: ARG003  (types are inferred)
        opset_version: int | None = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        """Run one node on arrays; the types of its outputs follow from them."""
        names = [name for name in node.input if name]
        given = [inputs[n] for n in names] if isinstance(inputs, Mapping) else list(inputs)
        arrays = dict(zip(names, map(np.asarray, given), strict=True))
        graph = helper.make_graph(
            [node],
            "node",
            [_info(name, array) for name, array in arrays.items()],
            [onnx.ValueInfoProto(name=name) for name in node.output if name],
        )
        version = opset_version or defs.onnx_opset_version()
        imports = [helper.make_opsetid("", version)]
        if node.domain:
            imports.append(helper.make_opsetid(node.domain, _newest(node)))
        model = helper.make_model(graph, opset_imports=imports)
        return cls.run_model(model, arrays, device, **options)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether a device is the CPU; names that ONNX does not know are not."""
        try:
            return bool(OnnxDevice(device).type == DeviceType.CPU)
        except (AttributeError, ValueError):
            return False


def _info(name: str, array: np.ndarray[Any, Any]) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, kind, list(array.shape))


def _newest(node: onnx.NodeProto) -> int:
    """The version of its domain that brought an operator as it is now; 1 if nobody knows it."""
    try:
        return int(defs.get_schema(node.op_type, domain=node.domain).since_version)
    except defs.SchemaError:
        return 1


is_compatible = TilewrightBackend.is_compatible
prepare = TilewrightBackend.prepare
run_model = TilewrightBackend.run_model
run_node = TilewrightBackend.run_node
supports_device = TilewrightBackend.supports_device
