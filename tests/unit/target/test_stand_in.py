"""A named target stands for the machine, if that can run its code."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.expect import raises_code
from tilewright.target import Target
from tilewright.target.host import stand_in


def znver4():
    return replace(Target.named("znver4"), name="host", cores=2, frequency_ghz=3.7)


def test_a_named_target_stands_for_the_machine():
    lower = stand_in("x86-64-v2", znver4())
    named = Target.named("x86-64-v2")
    assert (lower.name, lower.cores, lower.frequency_ghz) == ("host", 2, 3.7)
    assert (lower.features, lower.core, lower.caches) == (named.features, named.core, named.caches)


def test_the_machine_without_some_of_its_features_stands_for_it():
    narrow = stand_in("host,-avx512f", znver4())
    assert (narrow.cpu, narrow.vector_bytes, narrow.name) == ("znver4", 32, "host")


@pytest.mark.parametrize("name", ["sapphirerapids", "aarch64", "x86-64-v9", "host,-sse9", ""])
def test_what_cannot_run_here_does_not_stand_for_the_machine(name):
    with raises_code("O001", facts={"variable": "TILEWRIGHT_TARGET", "found": repr(name)}):
        stand_in(name, znver4())


PRINT_HOST = """
from tilewright.target import Target
from tilewright.target.host import present, this_machine
host = Target.host()
assert present() == (this_machine().arch, this_machine().code_features)
print(host.cpu, host.vector_bytes, Target.named("host") is host)
"""


@pytest.mark.skipif(Target.host().arch != "x86_64", reason="the level is one of x86-64")
def test_the_variable_is_obeyed_by_whatever_asks_for_the_host():
    environment = {**os.environ, "TILEWRIGHT_TARGET": "x86-64"}
    command = [sys.executable, "-c", PRINT_HOST]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["x86-64", "16", "True"]
