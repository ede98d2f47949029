"""`python -m fuzz hostile`: thousands of mutants, each of which must be refused or work.

A model ends in a module or in a `ModelError`, an artefact in a module or in an `ArtefactError`, a
cache entry in a hit or a miss: within seconds and bounded memory, and without a look at any file
outside of the model's folder. Anything else is a finding, and its mutant is kept.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fuzz.hostile.damage import damaged
from fuzz.hostile.files import mutated_artefact, mutated_kernel, weights_differ_only
from fuzz.hostile.seeds import SEEDS, write_seed
from fuzz.hostile.structure import mutated
from fuzz.hostile.trial import Limits, Outcome, attempt

if TYPE_CHECKING:
    from tilewright.model.module import Module

__all__ = ["main"]

CANARY = np.linspace(0, 1, 4096, dtype=np.float32).tobytes()
Trial = tuple[str, bytes, Callable[[], tuple[str, str]]]


def main(arguments: list[str]) -> int:
    """Run trials until their number or the time is over; 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m fuzz hostile", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="mutants (default: 1000)")
    parser.add_argument("--seconds", type=float, default=150.0, help="stop after this time")
    parser.add_argument("--seed", type=int, default=None, help="of the random numbers")
    parser.add_argument("--only", choices=("models", "artefacts", "kernels"), help="one sort")
    parser.add_argument("--model", choices=[*SEEDS, "external"], help="one model to damage")
    parser.add_argument("--keep", type=Path, default=Path("findings"), help="folder for findings")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(1 << 32)
    warnings.simplefilter("ignore")
    campaign = Campaign(random.Random(seed), options.keep, options.model)
    try:
        campaign.run(options.count, time.monotonic() + options.seconds, options.only)
    finally:
        shutil.rmtree(campaign.folder, ignore_errors=True)
    print(f"seed {seed}: {campaign.summary()}")
    return 1 if campaign.findings else 0


class Campaign:
    """Trials over all seeds; `tally` counts them by kind and end."""

    def __init__(self, rng: random.Random, keep: Path, model: str | None = None) -> None:
        self.rng, self.keep, self.limits = rng, keep, Limits()
        self.folder = Path(tempfile.mkdtemp(prefix="hostile-"))
        self.inside = self.folder / "models"
        self.names = [model] if model else [*SEEDS, "external"]
        self.tally: collections.Counter[tuple[str, str]] = collections.Counter()
        self.slowest, self.largest = 0.0, 0
        self.findings: list[tuple[str, Outcome]] = []
        self._prepare()

    def _prepare(self) -> None:
        from tilewright.runtime.cache import default_caches
        from tilewright.target import Target

        self.inside.mkdir()
        (self.folder / "canary.bin").write_bytes(CANARY)
        (self.inside / "link.bin").symlink_to("../canary.bin")
        (self.inside / "folder").mkdir()
        os.mkfifo(self.inside / "pipe")
        self.caches = default_caches(self.folder / "cache")
        self.target = Target.host()
        self.seeds = {name: write_seed(name, self.inside) for name in self.names}
        self.artefacts = []
        for name, model in self.seeds.items():
            made = self._module(self._written(model.SerializeToString()))
            if name != "lists":
                made.save(self.folder / "model.tw")
                self.artefacts.append((self.folder / "model.tw").read_bytes())
        self.kernels = [entry.path.read_bytes() for entry in self.caches.kernels.entries()]

    def _written(self, content: bytes) -> Path:
        path = self.inside / "model.onnx"
        path.write_bytes(content)
        return path

    def _module(self, path: Path) -> Module:
        from tilewright.model.compiler import compile_parts

        return compile_parts(path, self.target, 1, self.caches, lambda _: None).module()

    def run(self, count: int, end: float, only: str | None) -> None:
        """Trials one after another."""
        for number, (kind, content, action) in enumerate(self._trials(only)):
            if number >= count or time.monotonic() > end:
                return
            outcome = attempt(action, [self.inside, self.folder / "cache"], self.limits)
            self.tally[kind, f"{outcome.kind} {outcome.code}".strip()] += 1
            self.slowest = max(self.slowest, outcome.cpu_s)
            self.largest = max(self.largest, outcome.memory_bytes)
            if not outcome.is_good:
                self._found(kind, content, outcome)

    def _trials(self, only: str | None) -> Iterator[Trial]:
        makers = {"models": self._model, "artefacts": self._artefact, "kernels": self._kernel}
        weights = {"models": 8, "artefacts": 3, "kernels": 1}
        names = [only] if only else [n for n, weight in weights.items() for _ in range(weight)]
        while True:
            yield makers[self.rng.choice(names)]()

    def _model(self) -> Trial:
        name = self.rng.choice(self.names)
        model = self.seeds[name]
        if self.rng.random() < 0.35:
            kind, content = damaged(self.rng, model.SerializeToString())
        else:
            kind, content = mutated(self.rng, model)
        path = self._written(content)
        return kind, content, lambda: self._try_model(path)

    def _try_model(self, path: Path) -> tuple[str, str]:
        module = self._module(path)
        feeds = _feeds(module)
        if feeds is None or module.by_reference:
            return "compiled", ""
        from tilewright.errors import CallError

        try:
            module.run(feeds)
        except CallError as error:
            return "ran", error.code.id
        return "ran", ""

    def _artefact(self) -> Trial:
        original = self.rng.choice(self.artefacts)
        kind, content = mutated_artefact(self.rng, original)
        path = self.inside / "model.tw"
        path.write_bytes(content)
        whole = kind == "artefact signed" or weights_differ_only(original, content)

        def action() -> tuple[str, str]:
            from tilewright.model.module import load_module

            load_module(path)
            if not whole:
                raise AssertionError("a damaged file was loaded")
            return "loaded", ""

        return kind, content, action

    def _kernel(self) -> Trial:
        from tilewright.model.kernel_store import _read

        original = self.rng.choice(self.kernels)
        kind, content = mutated_kernel(self.rng, original)
        path = self.inside / "model.kernel"
        path.write_bytes(content)

        def action() -> tuple[str, str]:
            try:
                _read(path)
            except ValueError:
                return "missed", ""
            if kind != "kernel signed" and content != original:
                raise AssertionError("a damaged kernel was taken")
            return "loaded", ""

        return kind, content, action

    def _found(self, kind: str, content: bytes, outcome: Outcome) -> None:
        self.findings.append((kind, outcome))
        self.keep.mkdir(parents=True, exist_ok=True)
        suffix = ".tw" if kind.startswith("artefact") else ".onnx"
        name = f"{len(list(self.keep.iterdir())):03d}-{outcome.kind.replace(' ', '-')}"
        (self.keep / f"{name}{suffix}").write_bytes(content)
        note = f"{kind}: {outcome.kind} {outcome.code}, {outcome.cpu_s:.1f} s, "
        note += f"{outcome.memory_bytes >> 20} MB, {outcome.touched}\n{outcome.text}\n"
        (self.keep / f"{name}.txt").write_text(note, encoding="utf-8")
        print(f"{name}: {note.splitlines()[0]}", file=sys.stderr)

    def summary(self) -> str:
        """Counts by kind and by end, the slowest and the largest trial."""
        ends: collections.Counter[str] = collections.Counter()
        kinds: collections.Counter[str] = collections.Counter()
        for (kind, end), count in self.tally.items():
            kinds[kind] += count
            ends[end] += count
        lines = [f"{sum(ends.values())} mutants, {len(self.findings)} findings"]
        lines.append("  by kind: " + ", ".join(f"{k} {n}" for k, n in kinds.most_common()))
        lines.append("  by end: " + ", ".join(f"{k} {n}" for k, n in ends.most_common()))
        lines.append(f"  at most {self.slowest:.2f} s and {self.largest >> 20} MB")
        return "\n".join(lines)


def _feeds(module: Module) -> dict[str, np.ndarray] | None:
    """Zeros for all inputs, symbolic dimensions of size 2; None if they are too large."""
    feeds = {}
    for info in module.inputs:
        if info.dtype is None or info.shape is None:
            return None
        shape = [d if isinstance(d, int) and d >= 0 else 2 for d in info.shape]
        if np.prod([float(d) for d in shape]) > 1e6:
            return None
        feeds[info.name] = np.zeros(shape, info.dtype.numpy)
    return feeds
