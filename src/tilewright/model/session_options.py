"""Settings of a session under the names of ONNX Runtime.

Some of them mean something here and are kept to: threads, profiling, free dimensions, where to keep
the compiled model, how loud warnings are. The others steer parts that tilewright does not have
(arenas, levels of optimisation, execution modes); they may be set, so that code written for the
other runtime goes on working, and change nothing. What could not be honoured is refused.

Entries of the configuration that begin with `tilewright.` are settings of `tilewright.compile`.
"""

from __future__ import annotations

import difflib
import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from tilewright.errors import Code, UserError
from tilewright.model.values import OrtValue

if TYPE_CHECKING:
    import onnx

__all__ = ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel", "RunOptions"]
__all__ += ["SessionOptions", "set_default_logger_severity"]

K030 = Code("K030", "a session has no setting `{name}`")
K031 = Code("K031", "a session cannot use {found} as `{name}`")
K032 = Code("K032", "a session cannot load operators of others: {found}")

WARNING, ERROR = 2, 3
"""Severities of messages, as in ONNX Runtime: verbose, info, warning, error, fatal."""

_default_severity: Final = [WARNING]


class GraphOptimizationLevel(enum.IntEnum):
    """Has no effect: compiled code is what it is."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """Has no effect: kernels follow each other, each on all threads."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """Has no effect: steps have one order."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


def set_default_logger_severity(severity: int) -> None:
    """Sessions that do not say otherwise warn only up to this severity (2: warnings, 3: errors)."""
    _default_severity[0] = int(severity)


class _Entries:
    """Settings that are pairs of texts."""

    def __init__(self) -> None:
        self._entries: dict[str, str] = {}

    def _add(self, key: str, value: str) -> None:
        self._entries[str(key)] = str(value)

    def _get(self, key: str) -> str:
        if key not in self._entries:
            raise _unknown(key, list(self._entries))
        return self._entries[key]


class SessionOptions(_Entries):
    """Settings of a session; attributes that do not exist are refused."""

    OWN: Final = ("accuracy", "cache", "layouts", "target")
    """What may follow `tilewright.` in the configuration: arguments of `tilewright.compile`."""

    _KNOWN: Final[dict[str, Any]] = {
        "enable_cpu_mem_arena": True,
        "enable_mem_pattern": True,
        "enable_mem_reuse": True,
        "enable_profiling": False,
        "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
        "execution_order": ExecutionOrder.DEFAULT,
        "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
        "inter_op_num_threads": 0,
        "intra_op_num_threads": 0,
        "log_severity_level": -1,
        "log_verbosity_level": 0,
        "logid": "",
        "optimized_model_filepath": "",
        "profile_file_prefix": "tilewright_profile",
        "use_deterministic_compute": False,
        "use_per_session_threads": True,
    }

    enable_profiling: bool
    inter_op_num_threads: int
    intra_op_num_threads: int
    log_severity_level: int
    optimized_model_filepath: str
    profile_file_prefix: str

    def __init__(self) -> None:
        super().__init__()
        self._sizes: dict[str, int] = {}
        self._sizes_of_meanings: dict[str, int] = {}
        self._weights: dict[str, OrtValue] = {}
        self.__dict__.update(self._KNOWN)

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("_"):
            super().__setattr__(name, value)
            return
        if name not in self._KNOWN:
            raise _unknown(name, list(self._KNOWN))
        if name.endswith("_num_threads") and (not isinstance(value, int) or value < 0):
            hint = "a number of threads, or 0 for the default"
            raise UserError(K031, {"name": name, "found": repr(value)}, hint=hint)
        self.__dict__[name] = value

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keep a pair; only keys that begin with `tilewright.` change something."""
        prefix, _, own = str(key).partition(".")
        if prefix == "tilewright" and own not in self.OWN:
            raise _unknown(key, [f"tilewright.{name}" for name in self.OWN])
        self._add(key, value)

    def get_session_config_entry(self, key: str) -> str:
        """The value of a key that was added."""
        return self._get(key)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Compile for one size of a symbolic dimension."""
        self._sizes[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """The same for dimensions with a meaning, such as `DATA_BATCH`."""
        self._sizes_of_meanings[denotation] = int(size)

    def add_initializer(self, name: str, ort_value: OrtValue) -> None:
        """Use this value for the weight of this name, if the model has one."""
        self._weights[name] = ort_value

    def add_external_initializers(
        self, names: Sequence[str], ort_values: Sequence[OrtValue]
    ) -> None:
        """The same for several; files of external data must be there all the same."""
        if len(names) != len(ort_values):
            found = f"{len(ort_values)} values for {len(names)} names"
            raise UserError(K031, {"name": "initializers", "found": found}, hint="one for each")
        self._weights |= dict(zip(names, ort_values, strict=True))

    def register_custom_ops_library(self, path: str) -> None:
        """Refused: such a library is made for the kernels of another runtime."""
        hint = "an operator that is an ONNX function inside of the model works as it is"
        raise UserError(K032, {"found": path}, hint=hint)

    @property
    def is_silent(self) -> bool:
        """Whether warnings are not wanted."""
        own = self.log_severity_level
        return (_default_severity[0] if own < 0 else own) >= ERROR

    def own(self, name: str, default: str) -> str:
        """The entry `tilewright.name`."""
        return self._entries.get(f"tilewright.{name}", default)

    def applied_to(self, source: Any) -> Any:
        """A model with the sizes that are given to symbolic dimensions, and the given weights."""
        if not self._sizes and not self._sizes_of_meanings and not self._weights:
            return source
        from tilewright.frontend.onnx import read_model
        from tilewright.frontend.onnx.fixed_dims import fix_dims

        copy = fix_dims(read_model(source), self._sizes, self._sizes_of_meanings)
        for weight in copy.graph.initializer:
            if weight.name in self._weights:
                weight.CopyFrom(_replaced(weight, self._weights[weight.name]))
        return copy


class RunOptions(_Entries):
    """Settings of one run: `terminate` ends a run before it begins; the others have no effect."""

    def __init__(self) -> None:
        super().__init__()
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.terminate = False

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keep a pair, which changes nothing."""
        self._add(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """The value of a key that was added."""
        return self._get(key)


def _replaced(weight: onnx.TensorProto, value: OrtValue) -> onnx.TensorProto:
    """A weight with the elements of a value, which must have its type and shape."""
    from onnx import numpy_helper

    found = value.element_type(), value.shape()
    if found != (weight.data_type, list(weight.dims)):
        facts = {"name": weight.name, "found": repr(value)}
        hint = f"the model has {list(weight.dims)} elements of type {weight.data_type} (of ONNX)"
        raise UserError(K031, facts, hint=hint)
    return numpy_helper.from_array(value.numpy(), weight.name)


def _unknown(name: str, known: list[str]) -> UserError:
    near = difflib.get_close_matches(str(name), known, n=1)
    hint = f"is `{near[0]}` meant?" if near else f"known: {', '.join(known) or 'none'}"
    return UserError(K030, {"name": name}, hint=hint)
