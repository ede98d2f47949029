"""No number of an attribute makes an import large: each of the node tests with huge ones.

A list as long as an attribute says is made in no time, and takes all the memory there is.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Iterator
from typing import Any, Final

import onnx
import pytest

from fuzz.hostile.trial import Limits, attempt
from tests.onnx.node_cases import node_cases

HUGE: Final = (1 << 31, 1 << 40, -(1 << 31))
MEMORY: Final = 256 << 20
LARGEST: Final = 200_000
"""Bytes of a model; what its weights pay for is another matter."""


def altered(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.ModelProto]]:
    """The model with a huge number in the place of another, for each attribute that has any."""
    kinds = onnx.AttributeProto
    for k, node in enumerate(model.graph.node):
        for j, attribute in enumerate(node.attribute):
            for number in HUGE:
                own = onnx.ModelProto()
                own.CopyFrom(model)
                changed = own.graph.node[k].attribute[j]
                if attribute.type == kinds.INT:
                    changed.i = number
                elif attribute.type == kinds.INTS and attribute.ints:
                    changed.ints[0] = number
                elif attribute.type == kinds.FLOAT:
                    changed.f = float(number)
                else:
                    continue
                yield f"{node.op_type}: {attribute.name} = {number}", own


def models() -> dict[str, onnx.ModelProto]:
    """Each attribute of each operator once."""
    small = (case.model for case in node_cases() if case.model.ByteSize() < LARGEST)
    return {name: own for model in small for name, own in altered(model)}


@pytest.mark.slow
def test_numbers_of_attributes() -> None:
    command = [sys.executable, "-m", "tests.memory.test_huge_attributes"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=900)
    ends: dict[str, dict[str, Any]] = json.loads(done.stdout)
    assert len(ends) > 500
    wrong = {
        name: end
        for name, end in ends.items()
        if end["kind"] not in ("compiled", "refused")
        or end["cpu_s"] > 5.0
        or end["memory_bytes"] > MEMORY
    }
    assert wrong == {}


def main() -> None:
    """Import models, each in a process of its own, and print their ends as JSON."""
    from tilewright.frontend.onnx import import_model
    from tilewright.frontend.onnx.registry import Unknown
    from tilewright.graph.folding import TooLarge

    warnings.simplefilter("ignore")
    found = {}
    for name, model in models().items():

        def action(model: onnx.ModelProto = model) -> tuple[str, str]:
            try:
                import_model(model)
            except (Unknown, TooLarge):
                return "refused", ""
            return "compiled", ""

        found[name] = vars(attempt(action, [], Limits(memory_bytes=1 << 40)))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
