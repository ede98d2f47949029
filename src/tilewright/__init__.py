"""tilewright: a tensor compiler that is fast at once.

Models:

    module = tw.compile("model.onnx")
    outputs = module.run({"x": x})

Tensor programs:

    A, B = tw.placeholder("A", (m, k)), tw.placeholder("B", (k, n))
    r = tw.reduce_axis(k)
    C = tw.compute("C", (m, n), lambda i, j: tw.sum_over(A[i, r] * B[r, j], r))
    kernel = tw.build(tw.func("matmul", [A, B], [C]))
"""

from tilewright.build import build
from tilewright.dtypes import (
    DType,
    bf16,
    boolean,
    f16,
    f32,
    f64,
    i8,
    i16,
    i32,
    i64,
    u8,
    u16,
    u32,
    u64,
)
from tilewright.errors import TilewrightError, TilewrightWarning, UserError
from tilewright.model.binding import IOBinding
from tilewright.model.compiler import compile_model as compile  # noqa: A004  (the word of the field)
from tilewright.model.info import ModelMeta as ModelMetadata
from tilewright.model.module import Module
from tilewright.model.module import load_module as load
from tilewright.model.process import (
    disable_telemetry_events,
    enable_telemetry_events,
    get_build_info,
    get_version_string,
    set_default_logger_verbosity,
    set_seed,
)
from tilewright.model.session import (
    InferenceSession,
    NodeArg,
    get_all_providers,
    get_available_providers,
    get_device,
)
from tilewright.model.session_options import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    RunOptions,
    SessionOptions,
    set_default_logger_severity,
)
from tilewright.model.values import OrtDevice, OrtValue
from tilewright.pipeline import Pipeline
from tilewright.runtime import Kernel
from tilewright.schedule import Schedule, Step, Trace
from tilewright.target import Target
from tilewright.tensor.build import (
    Tensor,
    call,
    compute,
    func,
    max_over,
    min_over,
    placeholder,
    product_over,
    reduce_axis,
    select,
    size,
    sum_over,
)
from tilewright.tensor.interpret import interpret
from tilewright.tensor.ir import Func
from tilewright.tensor.parser import parse
from tilewright.tuning.api import tune
from tilewright.version import __version__

__all__ = [
    "__version__",
    "DType",
    "ExecutionMode",
    "ExecutionOrder",
    "Func",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "Kernel",
    "ModelMetadata",
    "Module",
    "NodeArg",
    "OrtDevice",
    "OrtValue",
    "Pipeline",
    "RunOptions",
    "Schedule",
    "SessionOptions",
    "Step",
    "Target",
    "Tensor",
    "TilewrightError",
    "TilewrightWarning",
    "Trace",
    "UserError",
    "bf16",
    "boolean",
    "build",
    "call",
    "compile",
    "compute",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "f16",
    "f32",
    "f64",
    "func",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "i16",
    "i32",
    "i64",
    "i8",
    "interpret",
    "load",
    "max_over",
    "min_over",
    "parse",
    "placeholder",
    "product_over",
    "reduce_axis",
    "select",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_seed",
    "size",
    "sum_over",
    "tune",
    "u16",
    "u32",
    "u64",
    "u8",
]
