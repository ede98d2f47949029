"""What is tried: a mutant of a model, an artefact, a kernel or a cache, made of its number.

A workshop prepares what is damaged once; its workers, forks of it, have a folder each, in which the
mutant lies between what an attacker would like to reach: a file outside, links, a pipe.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from fuzz.hostile.damage import damaged
from fuzz.hostile.exchange import exchanging
from fuzz.hostile.feeds import anything, would_be_long, zeros
from fuzz.hostile.files import mutated_artefact, mutated_kernel
from fuzz.hostile.nodes import random_node
from fuzz.hostile.places import PLACES, put_in_place
from fuzz.hostile.seeds import SEEDS, wide_seed, write_seed
from fuzz.hostile.structure import mutated
from fuzz.hostile.trial import Limits, Outcome, attempt, only_a_run_follows

if TYPE_CHECKING:
    import onnx

    from tilewright.model.module import Module

__all__ = ["SORTS", "Tried", "Workshop"]

CANARY: Final = np.linspace(0, 1, 4096, dtype=np.float32).tobytes()
SORTS: Final = {"models": 16, "nodes": 6, "artefacts": 6, "kernels": 2, "caches": 1}
"""What is damaged, and how often among all."""
RACES: Final = 0.1
"""The part of models with external data whose files are exchanged while they are read."""
GUARDS: Final = (1, 2)
"""Forbidden pages behind the end of every buffer, or in front of it."""

Action = Callable[[], tuple[str, str]]
Feed = Callable[["Module"], dict[str, np.ndarray] | None]


@dataclass(frozen=True)
class Tried:
    """A mutant and what became of it."""

    kind: str
    content: bytes
    outcome: Outcome

    @property
    def suffix(self) -> str:
        return ".tw" if self.kind.startswith("artefact") else ".onnx"


class Workshop:
    """Models that are right, with what becomes of them: material for mutants."""

    def __init__(self, only: str | None = None, model: str | None = None) -> None:
        from tilewright.runtime.cache import default_caches
        from tilewright.target import Target

        self.sorts = [only] if only else [s for s, weight in SORTS.items() for _ in range(weight)]
        every = [*SEEDS, "external"]
        if only == "nodes":
            every = every[:1]  # nothing is made of them; a trial begins where one was compiled
        self.names = [model] if model else every
        self.folder = Path(tempfile.mkdtemp(prefix="hostile-"))
        self.caches = default_caches(self.folder / "cache")
        self.target = Target.host()
        self.seeds: dict[str, onnx.ModelProto] = {}
        self.artefacts: list[bytes] = []
        self._places: dict[int, Path] = {}
        inside = self._inside()
        for name in self.names:
            self.seeds[name] = write_seed(name, inside)
            self._keep_artefact(_written(inside, self.seeds[name].SerializeToString()))
        if only in (None, "artefacts"):
            wide = _written(inside, wide_seed().SerializeToString())
            self._keep_artefact(wide, small=True)
        entries = self.caches.kernels.entries()
        self.kernels = [(entry.key, entry.path.read_bytes()) for entry in entries]

    def _keep_artefact(self, path: Path, *, small: bool = False) -> None:
        from tilewright.errors import ArtefactError

        file = path.with_suffix(".tw")
        try:
            self._module(path, small=small).save(file)
        except ArtefactError:
            return  # it is compiled when it runs
        self.artefacts.append(file.read_bytes())

    def _inside(self) -> Path:
        """The folder of this process, with bait around and inside."""
        found = self._places.get(os.getpid())
        if found is not None:
            return found
        around = Path(tempfile.mkdtemp(prefix="worker-", dir=self.folder))
        inside = self._places[os.getpid()] = around / "models"
        inside.mkdir()
        (around / "canary.bin").write_bytes(CANARY)
        (inside / "link.bin").symlink_to("../canary.bin")
        (inside / "up").symlink_to("..")
        (inside / "round").symlink_to("round")
        (inside / "zero").symlink_to("/dev/zero")
        (inside / "folder").mkdir()
        os.mkfifo(inside / "pipe")
        write_seed("external", inside)
        return inside

    def _module(self, path: Path, *, small: bool = False) -> Module:
        from tilewright.errors import ArtefactError
        from tilewright.model.compiler import compile_parts

        try:
            how = self.target, 1, self.caches, lambda _: None
            return compile_parts(path, *how, small=small).module()
        except ArtefactError as error:
            raise AssertionError("a model is refused as if it were an artefact") from error

    def tried(self, number: int) -> Tried:
        """The mutant of a number, tried in a process of its own."""
        rng = random.Random(number)
        makers = {"models": self._model, "nodes": self._node, "artefacts": self._artefact}
        makers |= {"kernels": self._kernel, "caches": self._cache}
        kind, content, action = makers[rng.choice(self.sorts)](rng)
        allowed = [self._inside(), self.folder / "cache"]
        most = 1 << 41 if kind.startswith("cache") else 1 << 26  # a huge file without a block
        limits = Limits(memory_bytes=_memory_bound(len(content)), file_bytes=most)
        return Tried(kind, content, attempt(action, allowed, limits))

    def _model(self, rng: random.Random) -> tuple[str, bytes, Action]:
        name = rng.choice(self.names)
        model = self.seeds[name]
        if rng.random() < 0.35:
            kind, content = damaged(rng, model.SerializeToString())
        else:
            kind, content = mutated(rng, model)
        path = _written(self._inside(), content)
        if name == "external" and rng.random() < RACES:
            return "exchanged files", content, lambda: self._try_exchanged(path)
        return kind, content, lambda: self._try_model(path, zeros)

    def _node(self, rng: random.Random) -> tuple[str, bytes, Action]:
        """One node, in a run whose memory lies between pages that nobody may touch."""
        content = random_node(rng).SerializeToString()
        path = _written(self._inside(), content)
        guard = rng.choice(GUARDS)

        def action() -> tuple[str, str]:
            from tilewright.runtime import _native

            _native.guard_memory(guard)  # in a process that ends with the trial
            return self._try_model(path, lambda module: anything(module, rng))

        return "node", content, action

    def _try_model(self, path: Path, fed: Feed) -> tuple[str, str]:
        module = self._module(path)
        only_a_run_follows()
        feeds = fed(module)
        if feeds is None or module.by_reference or would_be_long(module):
            return "compiled", ""
        from tilewright.errors import ArtefactError, CallError

        try:
            module.run(feeds)
        except CallError as error:
            return "ran", error.code.id
        except ArtefactError as error:
            raise AssertionError("a run says that its program is wrong, not its inputs") from error
        return "ran", ""

    def _try_exchanged(self, path: Path) -> tuple[str, str]:
        """A model, while somebody exchanges the file beside it for others and for links."""
        from tilewright.frontend.onnx import read_model

        with exchanging(path.parent / "weights.bin", path.parent.parent / "canary.bin"):
            for tensor in read_model(path).graph.initializer:
                if len(tensor.raw_data) >= 16 and tensor.raw_data in CANARY:
                    raise AssertionError("a file outside of the folder was read")
            self._module(path)
        return "compiled", ""

    def _artefact(self, rng: random.Random) -> tuple[str, bytes, Action]:
        original = rng.choice(self.artefacts)
        kind, content = mutated_artefact(rng, original)
        path = self._inside() / "model.tw"
        path.write_bytes(content)
        whole = kind == "artefact signed" or content == original

        def action() -> tuple[str, str]:
            from tilewright.model.module import load_module

            load_module(path)
            if not whole:
                raise AssertionError("a damaged file was loaded")
            return "loaded", ""

        return kind, content, action

    def _kernel(self, rng: random.Random) -> tuple[str, bytes, Action]:
        from tilewright.model.kernel_store import decode

        key, original = rng.choice(self.kernels)
        kind, content = mutated_kernel(rng, key, original)

        def action() -> tuple[str, str]:
            try:
                decode(content, key)
            except ValueError:
                return "missed", ""
            if kind != "kernel signed" and content != original:
                raise AssertionError("a damaged kernel was taken")
            return "loaded", ""

        return kind, content, action

    def _cache(self, rng: random.Random) -> tuple[str, bytes, Action]:
        """Something else in place of entries of a cache: a model is compiled all the same."""
        name = rng.choice([name for name in self.names if name in SEEDS])
        path = _written(self._inside(), content := self.seeds[name].SerializeToString())
        what = rng.choice(list(PLACES))
        own = random.Random(rng.random())
        folder = self._inside() / "cache"

        def action() -> tuple[str, str]:
            import tilewright as tw

            shutil.rmtree(folder, ignore_errors=True)
            wanted = _results(tw.compile(path, cache=folder, threads=1))
            _wait_for_writers()
            put_in_place(what, own, folder)
            found = _results(tw.compile(path, cache=folder, threads=1))
            _wait_for_writers()
            if found != wanted:
                raise AssertionError("results are not the same")
            return "compiled", ""

        return f"cache {what}", content, action


def _memory_bound(size: int) -> int:
    from tilewright.frontend.onnx.limits import memory_bound

    return memory_bound(size)


def _written(folder: Path, content: bytes) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(content)
    return path


def _wait_for_writers() -> None:
    """Compiled models are written by threads of their own."""
    import threading

    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()


def _results(module: Module) -> list[bytes]:
    feeds = zeros(module)
    if feeds is None or module.by_reference:
        return []
    arrays = [np.asarray(array) for array in module.run(feeds)]
    return [repr(a.tolist()).encode() if a.dtype == object else a.tobytes() for a in arrays]
