"""Kernels of another architecture, run under qemu-user: their results, and how many instructions.

A C program around the object code reads the arrays, calls the kernel and writes its results. What a
call takes is what a second call adds, counted by a plugin. Debian has both parts: qemu-user and
gcc-aarch64-linux-gnu.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tilewright.abi import ALIGNMENT, ParamSpec
from tilewright.pipeline import Compiled, Pipeline
from tilewright.schedule import Trace
from tilewright.target import Target
from tilewright.tensor import ir as tir

__all__ = ["Ran", "missing", "run_foreign"]

TOOLS = {
    "aarch64": ("qemu-aarch64", "aarch64-linux-gnu-gcc"),
    "riscv64": ("qemu-riscv64", "riscv64-linux-gnu-gcc"),
}

PROGRAM = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct context {{ int32_t thread, threads; void *barrier, *shared, *local, *team; }};

extern int32_t {symbol}(void *const *, const int64_t *, struct context *);

static const size_t bytes[] = {{ {sizes} }};
static const int is_read[] = {{ {reads} }}, is_output[] = {{ {outputs} }};

static void *memory(size_t size)
{{
    size_t whole = (size / {align} + 2) * {align};
    void *found = aligned_alloc({align}, whole);
    if (!found) exit(3);
    return found;
}}

int main(int count, char **words)
{{
    enum {{ N = sizeof bytes / sizeof *bytes }};
    void *buffers[N];
    int64_t sizes[] = {{ {values} 0 }};
    struct context context = {{ 0, 1, 0, memory({shared}), memory({local}), 0 }};
    if (count < 2) return 2;
    for (int n = 0; n < N; n++) {{
        buffers[n] = memory(bytes[n]);
        if (is_read[n] && fread(buffers[n], 1, bytes[n], stdin) != bytes[n]) return 4;
    }}
    for (int call = atoi(words[1]); call > 0; call--)
        if ({symbol}(buffers, sizes, &context)) return 5;
    for (int n = 0; n < N; n++)
        if (is_output[n]) fwrite(buffers[n], 1, bytes[n], stdout);
    return 0;
}}
"""

PLUGIN = r"""
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stddef.h>

/* The few parts of QEMU's plugin interface that counting needs (docs/devel/tcg-plugins.rst). */
typedef uint64_t qemu_plugin_id_t;
struct qemu_plugin_tb;
typedef void (*tb_callback)(qemu_plugin_id_t, struct qemu_plugin_tb *);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, tb_callback);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
void qemu_plugin_register_vcpu_tb_exec_inline(struct qemu_plugin_tb *, int, void *, uint64_t);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;
static uint64_t instructions;

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(block);
    qemu_plugin_register_vcpu_tb_exec_inline(block, 0, &instructions, count);
}

static void ended(qemu_plugin_id_t id, void *data)
{
    (void)id, (void)data;
    fprintf(stderr, "instructions %" PRIu64 "\n", instructions);
}

__attribute__((visibility("default")))
int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int count, char **words)
{
    (void)info, (void)count, (void)words;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
"""


@dataclass(frozen=True)
class Ran:
    """Results of a kernel by name, and the instructions of one call."""

    results: dict[str, np.ndarray]
    instructions: int


def missing(arch: str) -> str:
    """What is not there that an architecture needs; nothing if it can run."""
    tools = (*TOOLS[arch], "gcc")
    return ", ".join(tool for tool in tools if shutil.which(tool) is None)


@functools.cache
def _plugin() -> Path:
    """The shared library of the plugin, built once in a process."""
    folder = Path(tempfile.mkdtemp(prefix="tilewright-plugin"))
    (folder / "count.c").write_text(PLUGIN)
    library = folder / "count.so"
    _checked(["gcc", "-O2", "-shared", "-fPIC", "-o", str(library), str(folder / "count.c")])
    return library


def run_foreign(
    func: tir.Func,
    target: Target,
    arrays: Mapping[str, np.ndarray],
    constants: Sequence[str] = (),
    trace: Trace | str = "draft",
) -> Ran:
    """Compile a program for another machine and run it; constants are packed ahead."""
    made = Pipeline(target, 1, trace, constants).compiled(func)
    qemu, gcc = TOOLS[target.arch]
    with tempfile.TemporaryDirectory(prefix="tilewright-foreign") as name:
        folder, program = Path(name), Path(name, "program")
        (folder / "kernel.o").write_bytes(made.code)
        (folder / "main.c").write_text(_program(made, arrays))
        parts = [str(folder / "main.c"), str(folder / "kernel.o")]
        _checked([gcc, "-O1", "-static", "-o", str(program), *parts, "-lm"])
        fed = _fed(made, arrays)
        command = [qemu, "-cpu", "max", "-plugin", str(_plugin()), str(program)]
        first, second = (_checked([*command, calls], fed) for calls in ("1", "2"))
        counts = [int(run.stderr.split()[-1]) for run in (first, second)]
        return Ran(_results(made, arrays, first.stdout), counts[1] - counts[0])


def _checked(command: list[str], fed: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run(command, input=fed, capture_output=True, timeout=300, check=False)
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}: {done.stderr!r}"
    return done


def _values(made: Compiled, arrays: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Sizes by name, as arrays tell them."""
    found: dict[str, int] = {}
    for spec in made.interface.params:
        if spec.name in arrays:
            pairs = zip(spec.shape, arrays[spec.name].shape, strict=False)
            found |= {dim: size for dim, size in pairs if isinstance(dim, str)}
    return found


def _shapes(made: Compiled, arrays: Mapping[str, np.ndarray]) -> list[tuple[int, ...]]:
    """Of the memory of each parameter."""
    known = _values(made, arrays)
    return [
        tuple(known[dim] if isinstance(dim, str) else dim for dim in spec.shape)
        for spec in made.interface.params
    ]


def _is_read(spec: ParamSpec) -> bool:
    return spec.is_updated or not spec.is_output


def _program(made: Compiled, arrays: Mapping[str, np.ndarray]) -> str:
    interface, known = made.interface, _values(made, arrays)
    assert interface.has_known_scratch, "scratch of symbolic sizes is told by the runtime alone"
    assert not interface.parallel, "kernels of one thread need no team"
    shapes = _shapes(made, arrays)
    sizes = [
        int(np.prod(shape, dtype=np.int64)) * spec.dtype.size_bytes
        for shape, spec in zip(shapes, interface.params, strict=True)
    ]
    values = [str(known[interface.size_names[k]]) for k in range(len(interface.size_order))]
    return PROGRAM.format(
        symbol=interface.symbol,
        sizes=", ".join(map(str, sizes)),
        reads=", ".join(str(int(_is_read(spec))) for spec in interface.params),
        outputs=", ".join(str(int(spec.is_output)) for spec in interface.params),
        values="".join(f"{value}, " for value in values),
        align=ALIGNMENT,
        shared=interface.shared_bytes,
        local=interface.local_bytes,
    )


def _fed(made: Compiled, arrays: Mapping[str, np.ndarray]) -> bytes:
    packings = made.interface.packings
    parts = []
    for number, spec in enumerate(made.interface.params):
        if _is_read(spec):
            array, packing = arrays[spec.name], packings.get(number)
            parts.append((array if packing is None else packing.pack(array)).tobytes())
    return b"".join(parts)


def _results(
    made: Compiled, arrays: Mapping[str, np.ndarray], data: bytes
) -> dict[str, np.ndarray]:
    found, place = {}, 0
    for spec, shape in zip(made.interface.params, _shapes(made, arrays), strict=True):
        if spec.is_output:
            array = np.frombuffer(data, spec.dtype.numpy, int(np.prod(shape)), place)
            found[spec.name], place = array.reshape(shape), place + array.nbytes
    return found
