"""Which part of the package may import which; see ARCHITECTURE.md for the reasons."""

from __future__ import annotations

import ast

from tests.meta.source_files import sources

BASE = frozenset(
    {"errors", "unsupported", "shown", "files", "folders"}
    | {"dtypes", "options", "abi", "target", "version"}
)
TENSOR = BASE | {"tensor"}
INTRIN = TENSOR | {"intrin"}
SCHEDULE = INTRIN | {"schedule"}
RECORDS = SCHEDULE | {"records"}
LLVM = TENSOR | {"lower", "llvm"}
LAYOUTS = SCHEDULE | {"graph", "layouts"}
PATH = RECORDS | LLVM | LAYOUTS | {"frontend", "ukernel", "runtime", "calibration"}
PATH = PATH | {"build", "pipeline", "model"}
ALL = PATH | {
    "feeds",
    "tuning",
    "dataset",
    "report",
    "cli",
    "contest",
    "backend",
    "explain",
    "testing",
    "",
}

MAY_IMPORT: dict[str, frozenset[str]] = {
    **dict.fromkeys(BASE, BASE),
    "tensor": TENSOR,
    "intrin": INTRIN,
    "schedule": SCHEDULE,
    "records": RECORDS,  # what was measured, and never what measures
    "lower": INTRIN | {"lower"},
    "llvm": LLVM,
    "runtime": BASE | {"runtime"},
    "graph": TENSOR | {"graph"},
    "frontend": TENSOR | {"graph", "frontend"},  # operators are written as scalar expressions
    "layouts": LAYOUTS,
    "model": PATH,
    "ukernel": SCHEDULE | {"ukernel"},
    "calibration": PATH,
    "build": PATH,
    "pipeline": PATH,
    "": PATH | {"tuning"},  # tilewright/__init__.py, the public face
    "contest": BASE | {"contest", ""},  # engines of others beside our own face
    "backend": BASE | {"backend", ""},  # the face under the names of ONNX
    "testing": PATH | {"testing"},
    "report": PATH | {"report"},  # what was measured, and the plan that it is about
    "tuning": ALL - {"cli"},
    "dataset": ALL - {"cli"},
    "feeds": PATH | {"feeds"},
    "explain": BASE | {"explain"},
    "cli": ALL,
    "__main__": frozenset({"cli"}),
}


def test_every_part_of_the_package_has_a_layer():
    unknown = {source.part for source in sources()} - MAY_IMPORT.keys()
    assert not unknown, f"give these a row in MAY_IMPORT: {sorted(unknown)}"


def test_imports_respect_the_layers():
    wrong = [
        f"{source.at(line)}: {source.part or 'the package'} may not import {module}"
        for source in sources()
        for line, module in source.imports()
        if (part := _part_of(module)) is not None and part not in MAY_IMPORT[source.part]
    ]
    assert not wrong, "\n".join(wrong)


def _part_of(module: str) -> str | None:
    """The part of the package that an import reaches; None outside of the package."""
    package, _, rest = module.partition(".")
    if package != "tilewright":
        return None
    part = rest.split(".", maxsplit=1)[0]
    return part if part in MAY_IMPORT else ""  # `from tilewright import build`: the face itself


def test_only_the_llvm_layer_needs_llvmlite_at_import():
    """A compiled artefact must run where llvmlite is not installed."""
    wrong = [
        source.at(node.lineno)
        for source in sources()
        if source.part != "llvm"
        for node in source.tree.body
        if any(name.split(".")[0] == "llvmlite" for name in _imported_by(node))
    ]
    assert not wrong, "\n".join(wrong)


def _imported_by(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else []
