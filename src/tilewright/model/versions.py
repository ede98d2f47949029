"""Versions of a model that are compiled when a run first asks for them: the last few are kept.

Threads that ask for the same one wait for whoever compiles it; those that find theirs do not.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from tilewright.model.module import Module

__all__ = ["KEPT_BYTES", "Versions"]

KEPT_BYTES: Final = 1 << 30
"""Bytes of the weights of all versions that are kept, unless a single one has more."""

K = TypeVar("K", bound=Hashable)


class Versions(Generic[K]):
    """Modules by what they are for; None for what cannot be compiled, which is kept as well."""

    def __init__(self) -> None:
        self._made: OrderedDict[K, Module | None] = OrderedDict()
        self.after_fork()
        _alive.add(self)

    def get(self, key: K, make: Callable[[], Module | None], most: int) -> Module | None:
        """The version for a key, made now if it is new; `most` are kept, the last ones used."""
        found = self._known(key)
        if found:
            return found[0]
        with self._compiling:
            found = self._known(key)  # another thread may have been here
            if found:
                return found[0]
            made = make()
            with self._lock:
                self._made[key] = made
                self._drop_old(most)
            return made

    def _drop_old(self, most: int) -> None:
        kept = [0 if m is None else m.memory().weights_bytes for m in self._made.values()]
        while len(kept) > 1 and (len(kept) > most or sum(kept) > KEPT_BYTES):
            self._made.popitem(last=False)
            del kept[0]

    def _known(self, key: K) -> tuple[()] | tuple[Module | None]:
        with self._lock:
            if key not in self._made:
                return ()
            self._made.move_to_end(key)
            return (self._made[key],)

    def after_fork(self) -> None:
        """In a new process no thread is left that could give back a lock."""
        self._lock, self._compiling = threading.Lock(), threading.Lock()


_alive: weakref.WeakSet[Versions[Any]] = weakref.WeakSet()


def _after_fork() -> None:
    for versions in list(_alive):
        versions.after_fork()


os.register_at_fork(after_in_child=_after_fork)
