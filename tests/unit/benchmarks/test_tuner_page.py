"""The page of the tuner: tables of any kinds of runs, and curves that are files without scripts."""

from __future__ import annotations

import json
import sys
from xml.etree import ElementTree as ET

import pytest

from scripts import tuner_page
from scripts.tuner_curves import COLOURS, by_task, chart
from scripts.tuner_page import charts, kind_of, page, pictures_of

ABOUT = {
    "commit": "abc123",
    "when": "2026-01-02T03:04:05+00:00",
    "machine": {"cpu": "A CPU", "target": {"cpu": "znver4"}},
    "threads": 1,
}


def about(what):
    command = f"python -m benchmarks tuner {what} --out /home/me/{what}.json"
    return {"what": what, "command": command, **ABOUT}


def curve(task, way, seed, *best):
    return {"task": task, "way": way, "seed": seed, "best": list(best), "seconds": 2.0}


def way(of_draft, of_baseline, reached):
    return {
        "of_draft": of_draft,
        "of_baseline": of_baseline,
        "by_task": {"C2": of_draft},
        "trials_to_baseline": {"C2": reached},
        "soon": int(reached <= 2),
    }


WAYS = about("search") | {
    "tasks": {"C2": {"points": 560_000_000_000, "variants": 6}},
    "curves": [
        curve("C2", "random", 0, None, 1.25, 1.25),
        curve("C2", "random", 1, 2.0, 1.0, 1.0),
        curve("C2", "evolution", 0, 1.25, 0.8, 0.8),
        curve("C2", "evolution", 1, 1.25, 1.0),
    ],
    "summary": {
        "baseline": "random",
        "soon": 2,
        "ways": {"random": way(0.9, 1.0, 4.0), "evolution": way(1.125, 1.25, 2.0)},
    },
}
SEARCH = json.loads(json.dumps(WAYS).replace("random", "anywhere").replace("evolution", "rounds"))
TRANSFER = about("transfer") | {
    "curves": [curve("C7", "alone", 0, 1.0, 0.9), curve("C7", "history", 0, 0.9, 0.9)],
    "summary": {"tasks": {"C7": {"alone": 40.0, "history": 8.0, "fewer": 5.0}}, "fewer": 5.0},
}
RIVALS = about("rivals") | {
    "versions": {"apache-tvm": "0.27"},
    "rows": [
        {
            "task": "C2",
            "seconds": 241.6,
            "ratio": 1.75,
            "peak_gflops": 66.6,
            "noisy": True,
            "tuners": {
                "tilewright": {"gflops": 105.04, "trials": 900, "seconds": 180.4},
                "tvm": {"gflops": 60.0, "form": "nhwc"},
            },
            "forms": {"nhwc": {"trials": 96}, "nchw": {"trials": 80}},
        },
        {
            "task": "C6",
            "seconds": 240.0,
            "ratio": None,
            "peak_gflops": None,
            "noisy": False,
            "tuners": {
                "tilewright": {"gflops": 100.0, "trials": 900, "seconds": 240.0},
                "tvm": {"gflops": None, "form": ""},
            },
            "forms": {"nhwc": {"trials": 96}},
        },
    ],
}
MODELS = about("models") | {
    "models": [
        {
            "model": "resnet18",
            "before_ms": 15.0,
            "floor_ms": 10.0,
            "now_ms": 12.0,
            "gain": 1.25,
            "trials": 900,
            "failures": 3,
            "seconds": 207.3,
            "joint": True,
        }
    ]
}
JOINT = about("joint") | {
    "items": [
        {
            "name": "C2",
            "kind": "layer",
            "budget_s": 240.0,
            "ms": {"draft": 1.2, "loops": 1.1, "joint": 1.0},
            "ratio": 1.1,
            "searches": {"loops": {"seconds": 244.4}, "joint": {"seconds": 246.0}},
            "noisy": False,
            "changes": [{"value": "y", "draft": "direct nchw → nchw", "tuned": ""}] * 8,
        },
        {
            "name": "resnet18",
            "kind": "network",
            "budget_s": 240.0,
            "ms": {"draft": 15.0, "loops": 14.0, "joint": 14.0},
            "ratio": 1.0,
            "searches": {"loops": {"seconds": 241.0}, "joint": {"seconds": 242.0}},
            "noisy": False,
            "changes": [],
        },
    ],
    "summary": {"layer": {"ratio": 1.1}, "network": {"ratio": 1.0}},
}
OVERHEAD = about("overhead") | {
    "tasks": [
        {
            "task": "C3",
            "trials": 64,
            "trials_per_second": 11.53,
            "measuring": 0.604,
            "ranked_per_second": 94000.0,
        }
    ]
}
FAULTS = about("faults") | {
    "task": "128x3072x768",
    "speed_of_undisturbed": 0.98,
    "records_behind_each_kill": [1] * 10,
    "kills_in_the_middle": 10,
    "outcomes": {"ok": 75, "crash": 25},
    "problems": [],
}
RUNS = [SEARCH, WAYS, TRANSFER, RIVALS, MODELS, JOINT, OVERHEAD, FAULTS]
LINES = {
    "search": [
        "3 trials, means of 2 seeds; 1 thread.",
        "| anywhere | 0.900 | 1.000 | – |",
        "| rounds | 1.125 | 1.250 | 1 of 1 |",
        "| C2 | 5.6e+11 | 6 | 0.900 | 1.125 (2) |",
        "![Best so far over trials, by task](tuning-curves.svg)",
    ],
    "ways": ["| evolution | 1.125 | 1.250 | 1 of 1 |", "(tuning-curves-ways.svg)"],
    "transfer": ["| C7 | 40 | 8 | 5.0 |", "(tuning-curves-transfer.svg)"],
    "rivals": [
        "1 thread; apache-tvm 0.27.",
        "| C2 ~ | 105.0 | 60.0 | nhwc | 1.75 | 67 | 180 | 242 | 900 | 96 + 80 |",
        "| C6 | 100.0 | – | – | – | – | 240 | 240 | 900 | 96 |",
        "| **geometric mean** |  |  |  | **1.75** |",
    ],
    "models": ["| resnet18 | 15.00 | 12.00 | 1.250 | 1.50 | 900 | 3 | 207 |", "**1.250**"],
    "joint": [
        "| C2 | 1.200 | 1.100 | 1.000 | 1.100 | 244 | 246 |",
        "| **networks, geometric mean** |  |  |  | **1.000** |",
        "| C2 | y | direct nchw → nchw | – |",
        "| C2 | 2 more |  |  |",
        "| resnet18 | nothing |  |  |",
    ],
    "overhead": ["| C3 | 64 | 11.5 | 60 | 94,000 |"],
    "faults": ["killed 10 times", "0.980 of the speed", "25 crash, 75 ok", "database: none."],
}


@pytest.mark.parametrize("run", RUNS, ids=kind_of)
def test_a_page_of_one_run(run):
    text = page([run])
    for line in LINES[kind_of(run)]:
        assert line in text
    assert text.count("\n## ") == 1
    assert "commit abc123, 2026-01-02, A CPU (znver4)." in text
    assert "/home" not in text


def test_all_runs_are_on_one_page_in_an_order_of_its_own():
    text = page([*reversed(RUNS), SEARCH])
    titles = [line for line in text.splitlines() if line.startswith("## ")]
    assert titles == [f"## {title}" for title in tuner_page.TITLES.values()]
    assert text == page([SEARCH, *RUNS])


def test_kinds_without_a_run_keep_their_part():
    """Whole runs take hours, and are made one by one."""
    every = page([SEARCH, *RUNS])
    later = dict(MODELS, when="2026-02-03T00:00:00+00:00")
    found = page([later], every)
    assert found != every
    assert page([MODELS], found) == every
    assert page([], every) == every


def test_each_run_with_curves_has_a_file():
    more = dict(SEARCH)
    runs = [SEARCH, MODELS, TRANSFER, more]
    names = ["tuning-curves.svg", "tuning-curves-transfer.svg", "tuning-curves-2.svg"]
    assert list(pictures_of(runs).values()) == names
    found = charts(runs)
    assert list(found) == names
    assert found["tuning-curves.svg"] == found["tuning-curves-2.svg"]
    assert all(f"({name})" in page(runs) for name in names)


def test_curves_are_means_with_bands_over_seeds():
    speeds = by_task(SEARCH["curves"])["C2"]
    assert speeds["anywhere"].tolist() == [[0.0, 0.8, 0.8], [0.5, 1.0, 1.0]]
    assert speeds["rounds"].tolist() == [[0.8, 1.25, 1.25], [0.8, 1.0, 1.0]]
    root = ET.fromstring(chart(SEARCH["curves"], "a <label>"))
    tags = [element.tag.rpartition("}")[2] for element in root.iter()]
    assert not {"script", "image", "foreignObject", "a"} & set(tags)
    titles = [element.text for element in root.iter() if element.tag.endswith("title")]
    assert titles == ["a <label>", "anywhere: 0.900 of the draft", "rounds: 1.125 of the draft"]
    classes = [element.get("class") for element in root.iter() if element.get("class")]
    assert classes.count("band b0") == classes.count("band b1") == 1
    assert "prefers-color-scheme:dark" in "".join(root.itertext())


def test_one_seed_has_no_band_and_many_ways_have_dashes():
    ways = [f"way {k}" for k in range(COLOURS + 2)]
    text = chart([curve("C1", name, 0, 1.5, 0.5) for name in ways], "many")
    assert 'class="band' not in text
    assert text.count('class="curve s1 dashed"') == 2  # in the legend and in the chart
    assert text == chart([curve("C1", name, 0, 1.5, 0.5) for name in ways], "many")


def test_the_command_writes_the_page_and_its_pictures(tmp_path, monkeypatch, capsys):
    files = []
    for run in (SEARCH, MODELS):
        files.append(tmp_path / f"{run['what']}.json")
        files[-1].write_text(json.dumps(run), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["tuner_page", *map(str, files), "--docs", str(tmp_path)])
    tuner_page.main()
    assert (tmp_path / "tuning-results.md").read_text(encoding="utf-8") == page([SEARCH, MODELS])
    assert (tmp_path / "tuning-curves.svg").read_text(encoding="utf-8").startswith("<svg ")
    assert "tuning-results.md" in capsys.readouterr().out
