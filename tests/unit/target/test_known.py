"""The table of processors, and which of its rows stands for one that it does not list."""

from __future__ import annotations

import pytest

from tilewright.target.isa import AARCH64, X86
from tilewright.target.known import KNOWN, SAME_CORE, closest, find, level_of

PROCESSORS = [row for row in KNOWN.values() if row.vendor]


@pytest.mark.parametrize("row", PROCESSORS, ids=lambda row: row.cpu)
def test_an_unlisted_processor_of_equal_features_takes_a_core_of_its_vendor(row):
    found = closest(row.arch, row.features, row.vendor)
    assert found.vendor == row.vendor
    assert found.features == row.features


@pytest.mark.parametrize(
    ("arch", "features", "vendor", "row"),
    [
        (X86, KNOWN["sapphirerapids"].features, "intel", "emeraldrapids"),
        (X86, KNOWN["graniterapids"].features | {"avxvnniint8"}, "intel", "graniterapids"),
        (X86, KNOWN["sapphirerapids"].features - {"amx-int8"}, "intel", "emeraldrapids"),
        (X86, KNOWN["znver5"].features | {"avx512fp16"}, "amd", "znver5"),
        (X86, KNOWN["x86-64-v3"].features, "amd", "znver3"),
        (X86, KNOWN["x86-64-v3"].features, "intel", "skylake"),
        (AARCH64, KNOWN["neoverse-v2"].features, "arm", "neoverse-v2"),
        (AARCH64, KNOWN["apple-m4"].features, "apple", "apple-m4"),
    ],
)
def test_the_newest_of_the_closest_rows_is_taken(arch, features, vendor, row):
    assert closest(arch, features, vendor).cpu == row


def test_features_that_do_not_change_code_do_not_count():
    features = KNOWN["znver4"].features
    assert closest(X86, features | {"clzero", "wbnoinvd", "rdpru"}, "amd").cpu == "znver4"


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_an_unknown_vendor_takes_its_level(level):
    row = KNOWN[level]
    assert level_of(X86, row.features) is row
    assert closest(X86, row.features, "") is row
    assert closest(X86, row.features, "somebody") is row


@pytest.mark.parametrize("name", SAME_CORE)
def test_a_name_for_the_same_core_leads_to_a_row(name):
    assert find(name) is KNOWN[SAME_CORE[name]]
    assert name not in KNOWN


def test_a_name_that_nobody_has_leads_nowhere():
    assert find("pentium-9") is None
