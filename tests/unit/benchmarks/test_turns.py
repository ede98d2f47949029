"""Who goes on after the trial rounds, and what becomes of a result that turns wrong."""

from __future__ import annotations

from benchmarks.turns import FAR_BEHIND, Settings, compete
from benchmarks.workloads import Workload

SETTINGS = Settings(rounds=5, trial_rounds=2, turn_seconds=0.001)
WORKLOAD = Workload("matmul", "matmul", (3, 4, 5))


class Engine:
    """Answers as a process would; `times` are those of its variants."""

    def __init__(self, name, *times, peer=True, after="ok"):
        self.name, self.hello, self.after = name, {"peer": peer}, after
        self.times = {f"way-{i}": time for i, time in enumerate(times)}

    def ask(self, do, **details):
        match do:
            case "load":
                facts = {"state": "ok", "error": 0.0, "prepare_ms": 1.0, "flops": 0}
                return {"variants": dict.fromkeys(self.times, facts)}
            case "turn":
                seconds = self.times[details["variant"]]
                return {"min": seconds, "median": seconds, "count": 3}
            case "check":
                return {"state": self.after, "error": 0.5}
            case "unload":
                return {}


def outcomes(*engines):
    return compete({engine.name: engine for engine in engines}, WORKLOAD, None, SETTINGS)


def test_the_fastest_variant_goes_on():
    found = outcomes(Engine("one", 3.0, 2.0, 4.0))["one"]
    assert (found.variant, found.min_s) == ("way-1", 2.0)
    assert len(found.turn_medians_s) == SETTINGS.rounds


def test_a_peer_far_behind_rests_after_the_trial_rounds():
    found = outcomes(
        Engine("fast", 1.0),
        Engine("near", FAR_BEHIND),
        Engine("far", FAR_BEHIND + 1),
        Engine("subject", 100.0, peer=False),
    )
    assert {name: len(outcome.turn_medians_s) for name, outcome in found.items()} == {
        "fast": SETTINGS.rounds,
        "near": SETTINGS.rounds,
        "far": SETTINGS.trial_rounds,
        "subject": SETTINGS.rounds,
    }
    assert found["far"].state == "ok"
    assert found["far"].min_s == FAR_BEHIND + 1


def test_who_is_quick_goes_on_however_far_behind():
    found = outcomes(Engine("fast", 1e-6), Engine("far", 9e-4))
    assert {len(outcome.turn_medians_s) for outcome in found.values()} == {SETTINGS.rounds}


def test_without_peers_nobody_rests():
    (found,) = outcomes(Engine("subject", 100.0, peer=False)).values()
    assert len(found.turn_medians_s) == SETTINGS.rounds


def test_a_result_that_is_wrong_after_its_turns_is_wrong():
    found = outcomes(Engine("one", 1.0, after="wrong"))["one"]
    assert found.state == "wrong"
    assert found.why == "relative error 5.00e-01 after its turns"
