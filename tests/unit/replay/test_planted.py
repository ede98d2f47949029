"""A change of a recipe is seen, where it is and nowhere else."""

from __future__ import annotations

from replay.compare import compare, report
from replay.record import record

NAMES = ("programs/add-256x512", "programs/row_sum-128x128")


def test_a_planted_change_of_a_recipe_is_found(tmp_path, monkeypatch):
    from tilewright.schedule import draft

    before, after = tmp_path / "before", tmp_path / "after"
    first = record(before, NAMES, ["x86-64-v3"], workers=1)

    def change(context, block):
        context.schedule.split(context.schedule.loops(block)[-1], [None, 4])

    monkeypatch.setattr(draft, "schedule_elementwise", change)
    second = record(after, NAMES, ["x86-64-v3"], workers=1)
    found = compare(first, second)
    assert {record.rpartition("/")[0] for record, _, _ in found.differing} == {NAMES[0]}
    assert {stage for _, _, stage in found.first_stages()} == {"trace"}
    text, is_null = report(before, after, diffs=1)
    assert not is_null
    assert "programs/add-256x512/threads=1 for x86-64-v3, trace:" in text
