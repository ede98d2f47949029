"""Models that are compiled for the values of some inputs, when these are first seen.

Axes, shapes and scales that are inputs of a model decide what there is to compile. Callers give the
same few again and again: each is compiled for once, and the last ones are kept. Where values keep
changing, compiling for them would never end; what is new then runs as the model is without them,
parts of it by reference, and one warning says so.
"""

from __future__ import annotations

import os
import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tilewright.errors import ModelError, TilewrightWarning, UserError
from tilewright.model.compilation import Unsettled, warn_of_reference
from tilewright.model.compile_arguments import K020
from tilewright.model.defaults import defaults_of
from tilewright.model.given import Key, Reader
from tilewright.model.info import ModelMeta, TensorInfo
from tilewright.model.into import leave
from tilewright.model.module import Module
from tilewright.model.sources import Source
from tilewright.model.versions import KEPT_BYTES
from tilewright.model.whole import info_of, inputs_of, outputs_of
from tilewright.runtime import default_threads
from tilewright.runtime.executable import MemoryUse
from tilewright.runtime.feeds import Feeds, by_name
from tilewright.runtime.profile import Profile
from tilewright.shown import listed, quoted
from tilewright.unsupported import Unsupported

if TYPE_CHECKING:
    import onnx

    from tilewright.frontend.onnx.settled import Settled

__all__ = ["SettledModule", "settled_values"]

KEPT: Final = 32
"""Compiled versions of a model that are kept, the last ones used."""
FREE: Final = (4, 16)
"""Versions that are compiled whatever happens: few of a large model, more of a small one."""
FREE_NODES: Final = 2048
"""Nodes of all these versions together, within these bounds."""
RUNS_EACH: Final = 16
"""Runs of what is kept that pay for a version beyond these."""
MOST: Final = 64
"""Versions that are ever compiled."""


class _Version:
    """The model for some values; `lock` is held while it is compiled.

    `sequences` are the lengths of its outputs if some are no tensors. `only` is the one key that
    it serves if it is for certain sizes of sequences: who waited for it with another, in which
    these do not count, has to ask again.
    """

    __slots__ = ("lock", "module", "only", "sequences")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.module: Module | None = None
        self.only: Key | None = None
        self.sequences: Sequence[int | None] = ()

    def restored(self, results: list[Any]) -> list[Any]:
        """Results as the outputs of the model declare them."""
        if not self.sequences:
            return results
        from tilewright.frontend.onnx.settled import restored

        return restored(results, self.sequences)


class SettledModule(Module):
    """A module that compiles itself for the values of some inputs (`settled`).

    `by_reference` are the nodes that run so in any version that was made.
    """

    def __init__(self, source: Unsettled) -> None:  # no executable: each version has its own
        self.source = source
        self.graph = None
        self.defaults = defaults_of(source.model)
        self.by_reference: tuple[Unsupported, ...] = ()
        self._reader = Reader(source.model, source.needs)
        self._versions: OrderedDict[Key, _Version] = OrderedDict()
        self._general = _Version()
        self._lock = threading.Lock()
        self._compiled = self._hits = 0
        self._is_told = False
        self._has_general = True
        self._outputs: tuple[TensorInfo, ...] | None = None
        least, most = FREE
        self._free = min(max(FREE_NODES // max(len(source.model.graph.node), 1), least), most)
        _alive.add(self)
        if not source.needs.names:  # only outputs are no tensors: nothing to wait for
            self.version({})

    @property
    def name(self) -> str:
        return self._reader.model

    @property
    def threads(self) -> int:
        wish = self.source.how.threads
        return default_threads() if wish is None else wish

    @property
    def settled(self) -> tuple[str, ...]:
        """The inputs for whose values, or forms, the model is compiled."""
        return self.source.needs.names

    @property
    def inputs(self) -> tuple[TensorInfo, ...]:
        return tuple(map(info_of, inputs_of(self.source.model)))

    @property
    def outputs(self) -> tuple[TensorInfo, ...]:
        if self._outputs is None:  # what ONNX infers takes a while
            self._outputs = tuple(map(info_of, outputs_of(self.source.model)))
        return self._outputs

    @property
    def meta(self) -> ModelMeta:
        return ModelMeta.of(self.source.model)

    @property
    def kernels(self) -> int:
        """Those of all versions."""
        return sum(module.kernels for module in self._modules())

    @property
    def lengths(self) -> None:
        return None

    def run(self, feeds: Feeds) -> list[Any]:
        """The outputs for these inputs, in order; new values are compiled for first."""
        if self.defaults is not None and self.defaults.are_given(feeds):
            return self.defaults.version(feeds).run(feeds)
        version, module, rest = self._version(feeds)
        return version.restored(module.run(rest))

    def run_into(self, feeds: Feeds, outputs: Mapping[str, object]) -> None:
        """Run and leave results in these arrays, by output name; others are not kept."""
        if self.defaults is not None and self.defaults.are_given(feeds):
            self.defaults.version(feeds).run_into(feeds, outputs)
            return
        version, module, rest = self._version(feeds)
        if not version.sequences:
            module.run_into(rest, outputs)
            return
        names = [info.name for info in self.outputs]
        results = version.restored(module.run(rest))
        leave(self.name, dict(zip(names, results, strict=True)), outputs)

    def profile(self, feeds: Feeds) -> Profile:
        """Run once and note how long each kernel takes."""
        return self.run_profiled(feeds)[1]

    def run_profiled(self, feeds: Feeds) -> tuple[list[Any], Profile]:
        """`run` and `profile` in one."""
        if self.defaults is not None and self.defaults.are_given(feeds):
            return self.defaults.version(feeds).run_profiled(feeds)
        version, module, rest = self._version(feeds)
        results, profile = module.run_profiled(rest)
        return version.restored(results), profile

    def version(self, feeds: Mapping[str, object]) -> Module:
        """The module for the values among these feeds, compiled now if it is new.

        It takes the other inputs, the tensors of a sequence one by one.
        """
        return self._version(feeds)[1]

    def memory(self) -> MemoryUse:
        """The bytes of all versions, and of the model itself among the weights."""
        used = [module.memory() for module in self._modules()]
        return MemoryUse(
            sum(use.frames for use in used),
            sum(use.arena_bytes for use in used),
            sum(use.scratch_bytes for use in used),
            sum(use.weights_bytes for use in used) + self.source.model.ByteSize(),
            sum(use.image_bytes for use in used),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file; whoever loads it compiles it for the values that come."""
        from tilewright.model.settled_file import save_settled

        save_settled(path, self.source)

    def _modules(self) -> list[Module]:
        with self._lock:
            versions = [*self._versions.values(), self._general]
        return [version.module for version in versions if version.module is not None]

    def _version(self, given: Feeds) -> tuple[_Version, Module, Mapping[str, object]]:
        """The version for these feeds, its module, and what that takes of them."""
        feeds = by_name(self.name, self._reader.names, given)
        while True:
            key = self._reader.key(feeds)
            version, module = self._found(key, feeds)
            if version.only is None or version.only == key:
                break  # else sizes of sequences have become part of the keys meanwhile
        if version is self._general:
            return version, module, feeds
        return version, module, self._rest(module, feeds)

    def _found(self, key: Key | None, feeds: Mapping[str, object]) -> tuple[_Version, Module]:
        """The version for a key, made now if it is new; the general one if there is no key."""
        with self._lock:
            version = None if key is None else self._versions.get(key)
            if key is not None and version is not None:
                self._versions.move_to_end(key)
                self._hits += 1
        if version is not None and version.module is not None:
            return version, version.module
        if version is None:
            self._reader.require_known(feeds)
            version = self._general if key is None else self._new_version(key)
        if version is self._general:
            is_news = key is not None and self._is_news()
            try:
                module = self._made(version, lambda: (self.source.compiled(None), None))
            except ModelError:
                if key is None:
                    raise
                self._has_general = False  # nothing runs without these values, so all are compiled
                version = self._new_version(key)
            else:
                if is_news and module.by_reference:
                    self._tell()
                return version, module
        try:
            return version, self._made(version, lambda: self._compile(feeds))
        except BaseException:
            with self._lock:
                if key is not None and self._versions.get(key) is version:
                    del self._versions[key]
                    self._compiled -= 1
            raise

    def _rest(self, module: Module, feeds: Mapping[str, object]) -> Mapping[str, object]:
        """What a version takes of the feeds; as a whole by reference, it takes sequences."""
        reader = self._reader
        return reader.rest(feeds, flat=bool(reader.forms) and module.lengths is not None)

    def _new_version(self, key: Key) -> _Version:
        """A version to be compiled, or the general one if there are too many."""
        with self._lock:
            if key in self._versions:  # another thread was here first
                return self._versions[key]
            is_many = self._compiled >= min(MOST, self._free + self._hits // RUNS_EACH)
            if is_many and self._has_general:
                return self._general
            self._compiled += 1
            version = self._versions[key] = _Version()
            return version

    def _made(self, version: _Version, compile_: Callable[[], tuple[Module, Key | None]]) -> Module:
        """The module of a version; whoever asks for it meanwhile waits."""
        with version.lock:
            if version.module is None:
                module, version.only = compile_()
                self._note(module)
                if version.only is not None:
                    self._move(version, version.only)
                lengths = module.lengths or ()
                version.sequences = lengths if any(n is not None for n in lengths) else ()
                version.module = module
                self._drop_old()
            return version.module

    def _move(self, version: _Version, key: Key) -> None:
        """Keep a version under its own key, and under no other."""
        with self._lock:
            for old in [k for k, v in self._versions.items() if v is version and k != key]:
                del self._versions[old]
            self._versions.setdefault(key, version)

    def _drop_old(self) -> None:
        with self._lock:
            modules = [version.module for version in self._versions.values()]
            kept = [m.memory().weights_bytes if m is not None else 0 for m in modules]
            while len(kept) > 1 and (len(kept) > KEPT or sum(kept) > KEPT_BYTES):
                self._versions.popitem(last=False)
                del kept[0]

    def _compile(self, feeds: Mapping[str, object]) -> tuple[Module, Key | None]:
        """The model for these values; with sizes of sequences, too, if ranks are not enough.

        And the key of these sizes, if it is for no others.
        """
        reader = self._reader
        exact = reader.exact  # another thread may change that at any time
        module = self.source.compiled(reader.settled(feeds, exact=exact))
        if reader.forms and not exact and module.by_reference:
            closer = self.source.compiled(reader.settled(feeds, exact=True))
            if not closer.by_reference:
                module, reader.exact, exact = closer, True, True
        return module, reader.key(feeds) if reader.forms and exact else None

    def _note(self, module: Module) -> None:
        with self._lock:
            new = [node for node in module.by_reference if node not in self.by_reference]
            self.by_reference = (*self.by_reference, *new)
            is_told = self._is_told
        if not is_told:
            warn_of_reference(new)

    def _is_news(self) -> bool:
        """Whether nobody has been told yet that values keep changing; somebody is to be now."""
        with self._lock:
            is_news, self._is_told = not self._is_told, True
        return is_news

    def _tell(self) -> None:
        names = " and ".join(map(quoted, self.settled))
        text = (
            f"{quoted(self.name)} was compiled for {self._compiled} values of {names}, which keep "
            "changing: new ones run on the ONNX reference implementation, which is slow. Pass the "
            "same values again, or make them constants of the model"
        )
        warnings.warn(TilewrightWarning(text), stacklevel=5)

    def after_fork(self) -> None:
        """In a new process, where no thread is left that could give back a lock."""
        self._lock = threading.Lock()
        self._general.lock = threading.Lock()
        for key, version in list(self._versions.items()):
            version.lock = threading.Lock()
            if version.module is None:
                del self._versions[key]


_alive: weakref.WeakSet[SettledModule] = weakref.WeakSet()


def _after_fork() -> None:
    for module in list(_alive):
        module.after_fork()


os.register_at_fork(after_in_child=_after_fork)


def settled_values(model: Source, given: Mapping[str, object]) -> tuple[onnx.ModelProto, Settled]:
    """The model that was read, and values of some of its inputs; raises if they do not fit."""
    from tilewright.frontend.onnx import read_model
    from tilewright.frontend.onnx.settled import Needs

    proto = read_model(model)
    names = [info.name for info in inputs_of(proto)]
    for name in given:
        if name not in names:
            facts = {"argument": "settled", "found": f"a value of {quoted(name)}"}
            raise UserError(K020, facts, hint=f"inputs of the model: {listed(names)}")
    return proto, Reader(proto, Needs(tuple(given))).settled(given)
