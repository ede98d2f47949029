"""`InferenceSession` in the shape of ONNX Runtime's: change one import, keep the rest.

    import tilewright as ort

    session = ort.InferenceSession("model.onnx")
    session.run(None, {"x": x})

A path may be an ONNX file or one that `Module.save` wrote; its first bytes say which of both it is.
Where a thing means nothing here (execution providers, arenas), it is accepted and has no effect.
"""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tilewright.errors import CallError, Code, TilewrightWarning
from tilewright.model.binding import IOBinding
from tilewright.model.compiler import AUTO, compile_model
from tilewright.model.info import ModelMeta, TensorInfo
from tilewright.model.module import Module, load_module
from tilewright.model.session_options import RunOptions, SessionOptions
from tilewright.model.trace_file import TraceFile
from tilewright.model.values import OrtValue
from tilewright.runtime.artefact import MAGIC, is_artefact
from tilewright.runtime.feeds import by_name, unknown_port
from tilewright.shown import shown

if TYPE_CHECKING:
    import onnx

__all__ = [
    "InferenceSession",
    "NodeArg",
    "get_all_providers",
    "get_available_providers",
    "get_device",
]

C032 = Code("C032", "the run of `{model}` was asked to end before it began")
C033 = Code("C033", "a session cannot be made from {found}")

PROVIDER: Final = "CPUExecutionProvider"
_SWITCH: Final = {"on": True, "1": True, "off": False, "0": False}
"""Values of the entry `tilewright.cache`; any other is a folder."""

Callback = Callable[[list[Any], Any, str], None]


def get_available_providers() -> list[str]:
    """Where models run: on this processor."""
    return [PROVIDER]


get_all_providers = get_available_providers


def get_device() -> str:
    """What models run on."""
    return "CPU"


class NodeArg:
    """An input or output as ONNX Runtime describes it; a dimension is a number or a name."""

    __slots__ = ("name", "shape", "type")

    def __init__(self, info: TensorInfo) -> None:
        self.name, self.type = info.name, info.type
        self.shape: list[int | str] = list(info.shape)

    def __repr__(self) -> str:
        return f"NodeArg(name={self.name!r}, type={self.type!r}, shape={self.shape})"


class InferenceSession:
    """A model that is compiled, or found in the cache, when the session is made."""

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes | onnx.ModelProto,
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,  # noqa: ARG002
        **_kwargs: Any,
    ) -> None:
        self._options = sess_options or SessionOptions()
        self._warn_of(providers or ())
        start_ns = time.perf_counter_ns()
        with self._silence():
            self._module = self._open(path_or_bytes)
        module = self._module
        if module.spreading is not None:
            module.spreading.is_silent = self._options.is_silent
        self._outputs = [info.name for info in module.outputs]
        self._inputs = [info.name for info in module.inputs]
        self._trace: TraceFile | None = None
        if self._options.enable_profiling:
            self._trace = TraceFile(self._options.profile_file_prefix, start_ns)
        if self._options.optimized_model_filepath:
            module.save(self._options.optimized_model_filepath)

    @property
    def module(self) -> Module:
        """The compiled model behind the session."""
        return self._module

    def run(
        self,
        output_names: Iterable[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """The outputs of these names, in their order; all of them for None."""
        if run_options is not None:
            self._require_wanted(run_options)
        names = list(output_names) if output_names is not None else []
        for name in names:
            self.require_output(name)
        given = by_name(self._module.name, self._inputs, input_feed)
        feeds = {name: _plain(value) for name, value in given.items()}
        results = self._run(feeds)
        if not names:
            return results
        found = dict(zip(self._outputs, results, strict=True))
        return [found[name] for name in names]

    def run_async(
        self,
        output_names: Iterable[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callback,
        user_data: Any = None,
        run_options: RunOptions | None = None,
    ) -> Future[None]:
        """Run in the background, then call `callback(results, user_data, error)`.

        `error` is an empty text if all went well; without results otherwise.
        """
        from tilewright.model.module import background

        def work() -> None:
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as problem:  # noqa: BLE001  (it is handed to the callback)
                results, error = [], str(problem)
            callback(results, user_data, error)

        return background().submit(work)

    def run_with_ort_values(
        self,
        output_names: Iterable[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """`run` on values instead of arrays."""
        return [OrtValue(r) for r in self.run(output_names, input_dict_ort_values, run_options)]

    def io_binding(self) -> IOBinding:
        """Inputs and outputs to be named once."""
        return IOBinding(self)

    def run_with_iobinding(
        self, iobinding: IOBinding, run_options: RunOptions | None = None
    ) -> None:
        """Run with what is bound."""
        if run_options is not None:
            self._require_wanted(run_options)
        iobinding.run()

    def run_into(self, feeds: Mapping[str, Any], outputs: Mapping[str, Any]) -> None:
        """Run and leave results in these arrays, by output name."""
        self._module.run_into(feeds, outputs)

    def get_inputs(self) -> list[NodeArg]:
        return [NodeArg(info) for info in self._module.inputs]

    def get_outputs(self) -> list[NodeArg]:
        return [NodeArg(info) for info in self._module.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """Weights that are inputs, too: a run may give others. A compiled file has none."""
        return [NodeArg(info) for info in self._module.overridable]

    def get_modelmeta(self) -> ModelMeta:
        return self._module.meta

    def get_session_options(self) -> SessionOptions:
        return self._options

    def get_providers(self) -> list[str]:
        return [PROVIDER]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {PROVIDER: {}}

    def set_providers(
        self,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,  # noqa: ARG002
    ) -> None:
        """Accepted; models run on this processor whatever is asked for."""
        self._warn_of(providers or ())

    def disable_fallback(self) -> None:
        """Nothing to disable."""

    def enable_fallback(self) -> None:
        """Nothing to enable."""

    def end_profiling(self) -> str:
        """Write what was noted since the session was made; the name of the file, a Chrome trace."""
        if self._trace is None:
            return ""
        trace, self._trace = self._trace, None
        return trace.write()

    def get_profiling_start_time_ns(self) -> int:
        """When the times of a trace begin; 0 if nothing is noted."""
        return self._trace.start_ns if self._trace is not None else 0

    def require_output(self, name: str) -> None:
        """Refuse a name that no output has."""
        if name not in self._outputs:
            raise self._unknown("output", name, self._outputs)

    def require_input(self, name: str) -> None:
        """Refuse a name that no input has."""
        others = (info.name for info in self._module.overridable)
        if name not in self._inputs and name not in others:
            raise self._unknown("input", name, self._inputs)

    def __repr__(self) -> str:
        return f"<session of {self._module!r}>"

    def _run(self, feeds: Mapping[str, Any]) -> list[Any]:
        if self._trace is None:
            return self._module.run(feeds)
        start_ns = time.perf_counter_ns()
        results, profile = self._module.run_profiled(feeds)
        self._trace.add(profile, start_ns, time.perf_counter_ns())
        return results

    def _open(self, source: Any) -> Module:
        options = self._options
        threads = options.intra_op_num_threads or None
        if isinstance(source, str | os.PathLike) and is_artefact(source):
            return load_module(source, threads=threads)
        if isinstance(source, bytearray | memoryview):
            source = bytes(source)
        if not isinstance(source, str | os.PathLike | bytes) and not hasattr(source, "graph"):
            hint = "give a path, or the bytes of an ONNX file"
            raise CallError(C033, {"found": f"a value of type {type(source).__name__}"}, hint=hint)
        if isinstance(source, bytes) and source[: len(MAGIC)] == MAGIC:
            raise CallError(C033, {"found": "the bytes of a compiled model"}, hint="give its path")
        cache = options.own("cache", "on")
        return compile_model(
            options.applied_to(source),
            target=options.own("target", "host"),
            threads=threads,
            accuracy=options.own("accuracy", "default"),
            layouts=options.own("layouts", AUTO),
            cache=_SWITCH[cache] if cache in _SWITCH else Path(cache),
        )

    def _require_wanted(self, options: RunOptions) -> None:
        if options.terminate:
            hint = "set `terminate` to False to run"
            raise CallError(C032, {"model": self._module.name}, hint=hint)

    def _unknown(self, kind: str, name: str, names: list[str]) -> CallError:
        return unknown_port(self._module.name, kind, name, names)

    def _warn_of(self, providers: Iterable[str | tuple[str, Any]]) -> None:
        names = [p if isinstance(p, str) else p[0] for p in providers]
        others = [name for name in names if name != PROVIDER]
        if others and not self._options.is_silent:
            text = f"models run on this processor; not used: {', '.join(map(shown, others))}"
            warnings.warn(TilewrightWarning(text), stacklevel=3)

    @contextlib.contextmanager
    def _silence(self) -> Iterator[None]:
        with warnings.catch_warnings():
            if self._options.is_silent:
                warnings.simplefilter("ignore", TilewrightWarning)
            yield


def _plain(value: Any) -> Any:
    return value.numpy() if isinstance(value, OrtValue) else value
