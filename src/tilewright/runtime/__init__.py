"""Running compiled kernels: thread pool, scratch memory, timing, and the checks of a call.

Depends on nothing of the compiler, so that an artefact runs where the compiler is not installed.
"""

from __future__ import annotations

import atexit

from tilewright.abi import Packing, ParamSpec
from tilewright.runtime import _native
from tilewright.runtime._native import return_memory
from tilewright.runtime.arrays import PackedArray, empty
from tilewright.runtime.executable import Executable
from tilewright.runtime.kernel import Kernel
from tilewright.runtime.pool import count_workers, default_threads, shut_down

__all__ = ["Executable", "Kernel", "PackedArray", "Packing", "ParamSpec"]
__all__ += ["count_workers", "default_threads", "empty", "return_memory", "shut_down"]

atexit.register(_native.shut_down)
