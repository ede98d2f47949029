"""What a model may ask for before it is refused: bounds that keep a stranger's file harmless.

They are far beyond what exporters write, and in proportion to the file wherever work can be: a
model of ten nodes must not make a compiler import a million. SECURITY.md explains each of them.
"""

from __future__ import annotations

import os
from typing import Final

__all__ = ["COPIED_BASE", "COPIED_FACTOR"]
__all__ += ["MAX_ATTRIBUTES", "MAX_COPIES", "MAX_DEPTH", "MAX_EDGES", "MAX_EXPANDED", "MAX_FILE"]
__all__ += ["MAX_LISTED", "MAX_NAME", "MAX_OPAQUE", "MAX_NODES", "MAX_REPEATED"]
__all__ += ["MAX_RANK", "MEMORY_BASE", "MEMORY_FACTOR", "SPARE_NODES", "memory_bound"]
__all__ += ["memory_bytes"]

MAX_FILE: Final = (1 << 31) - 1
"""Bytes of a model without its external data; no protobuf message can be larger."""
MAX_NODES: Final = 1 << 20
"""Nodes of all graphs and functions of a file together."""
MAX_ATTRIBUTES: Final = 1 << 10
"""Attributes of a node."""
MAX_EDGES: Final = 1 << 16
"""Inputs and outputs of a node."""
MAX_LISTED: Final = 1 << 20
"""Entries of any other list of a model, a graph or a function: weights, values, functions, …"""
MAX_EXPANDED: Final = 1 << 16
"""Nodes after every call of a function of the model is replaced by its body; files that have more
nodes than that without any call may."""
MAX_DEPTH: Final = 32
"""Graphs inside of graphs, and functions that call functions, on one way."""
MAX_NAME: Final = 1 << 12
"""Characters of a name."""
MAX_RANK: Final = 32
"""Dimensions of a tensor."""
MAX_COPIES: Final = 16
"""How often all nodes may be imported, on average: branches and loops import their graphs again."""
MAX_REPEATED: Final = 8192
"""Imports of nodes that have been imported before, in all: a few seconds."""
SPARE_NODES: Final = 4096
"""Imports on top of that, for small models."""
COPIED_BASE: Final = 16 << 20
COPIED_FACTOR: Final = 16
"""Bytes that calls of functions may copy (their bodies and what they hand over), and nodes on the
reference implementation that run in several places; and more for each byte of the model."""

MAX_OPAQUE: Final = 4096
"""Nodes whose results have no form before a run, and fall back with what reads them; a model with
more of them falls back as a whole, which costs less than to infer the type of each."""

MEMORY_BASE: Final = 512 << 20
MEMORY_FACTOR: Final = 256
"""Bytes of memory that a compilation may take beyond what its process had before, and more for each
byte of the model and of its external files. Data take a few times their size; what needs the
factor are messages of two bytes each, of which protobuf alone makes two hundred."""


def memory_bound(size: int) -> int:
    """What refusing or compiling a model takes at most; `size` is that of its files in bytes."""
    return MEMORY_BASE + MEMORY_FACTOR * size


def memory_bytes() -> int:
    """Bytes of memory that this machine has: no weights can be larger."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
