"""The report of a small network: what is gathered, and that the page says it to everybody."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from tests.unit.report.models import REFUSED, THREADS, network, planned, report_of, trials
from tilewright.graph.structure import graph_key
from tilewright.layouts.show import ConversionRow
from tilewright.records import Database, model_record
from tilewright.report.page import page_of
from tilewright.target import Target

VOID = {"meta", "link", "line", "circle", "rect", "path", "br"}


@pytest.fixture(scope="module")
def model():
    return planned(network())


@pytest.fixture(scope="module")
def report(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "records.sqlite"
    with Database(path) as database:
        database.add(trials(model))
    return report_of(model, path)


@pytest.fixture(scope="module")
def page(report):
    return page_of(report)


class Reader(HTMLParser):
    """Elements in order, texts, and whether all that was opened is closed."""

    def __init__(self, page):
        super().__init__()
        self.names, self.open, self.texts, self.attributes = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += attrs
        if tag not in VOID or not self.get_starttag_text().endswith("/>"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_times_are_those_of_the_records(report):
    first, second, *_, last = report.kernels
    assert (first.drafted_ns, first.best_ns, first.best) == (1e4, 1e4, None)
    assert (second.drafted_ns, second.best_ns, second.gain) == (2e4, 1e4, 2.0)
    assert second.best.time_ns == 1e4
    assert not last.is_measured
    assert last not in report.measured
    assert report.before_ns - report.after_ns == pytest.approx(1e4)
    assert report.trials == 12 * (len(report.kernels) - 1)
    assert sum(map(report.share, report.kernels)) == pytest.approx(1)


def test_work_is_that_of_the_graph(report):
    convolution = report.kernels[1]
    assert convolution.flops == 2 * 16 * 16 * 16 * 16 * 9
    assert convolution.moved_bytes > 16 * 16 * 16 * 4 * 2


def test_each_search_has_a_curve_from_the_draft_down(report):
    measured = len(report.kernels) - 1
    lengths = {by: len(curve) for by, curve in report.curves.items()}
    assert lengths == {"evolution": 6 * measured + 1, "random": 3 * measured + 1}
    assert report.curves["evolution"][0] == report.curves["random"][-1] == report.before_ns
    assert report.curves["evolution"][-1] == pytest.approx(report.after_ns)
    assert all(a >= b for a, b in pairwise(report.curves["evolution"]))


def test_failures_are_counted_with_their_reasons(report):
    assert {(f.outcome, f.detail, f.count) for f in report.failures} == {("build", REFUSED, 3)}


def test_sites_know_their_kernels(report):
    rows = {row.site: row for row in report.layouts.sites}
    kernels = {rows[site].value: number for site, number in report.places.items()}
    assert sorted(kernels.values()) == list(range(len(report.kernels)))
    convolutions = [k for site, k in report.places.items() if rows[site].computes == "conv 3×3"]
    assert convolutions == [1]


def test_roofs_grow_with_the_distance_to_memory(report):
    rates = [rate for _, rate in report.roofs.bandwidths]
    assert rates == sorted(rates, reverse=True)
    assert report.roofs.gflops > 1


def test_the_data_are_json(report):
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert data["threads"] == THREADS
    assert data["kernels"][1]["gain"] == 2.0
    assert data["kernels"][1]["points"] == {"C": ["scattered.ScatteredPoint", {"vectors": 2}]}
    assert data["kernels"][-1]["drafted_ns"] is None


def test_the_page_is_well_formed_and_has_every_part(page):
    reader = Reader(page)
    assert reader.open == []
    assert reader.names.count("h1") == 1
    titles = re.findall("<h2>(.*?)</h2>", page)
    assert titles == [
        "Tuning curves",
        "Roofline",
        "Kernels",
        "Algorithms and layouts",
        "What failed, and why",
    ]
    assert "2.00×" in page
    assert "conv 3×3" in page
    assert "ScatteredPoint(vectors=2)" in page


def test_conversions_stand_in_the_chain_with_their_reasons(report):
    row = ConversionRow("v<1>", ("1", "8"), "nhwc", "nchw", 1, (2,), "it reads <nchw> only", 7e4)
    changed = replace(report, layouts=replace(report.layouts, conversions=(row,)))
    page = page_of(changed)
    assert "1 conversion between layouts" in page
    assert "v&lt;1&gt;: it reads &lt;nchw&gt; only" in page
    assert "70,000 cycles predicted" in page
    assert page.count("box convert") == 1


def test_names_of_strangers_are_text(page):
    reader = Reader(page)
    assert "script" not in reader.names
    text = "".join(reader.texts)
    assert "relu<script>alert(1)</script>&\\x1b[31m\\u202e" in text
    assert REFUSED in text
    assert "\x1b" not in page
    assert "\u202e" not in page


def test_the_page_loads_nothing(page):
    reader = Reader(page)
    wanted = [value for name, value in reader.attributes if name in {"src", "href", "xlink:href"}]
    assert wanted == ["data:,"]
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src &#x27;none&#x27;" in page


def test_a_model_without_records_gives_a_page_that_says_so(model, tmp_path):
    page = page_of(report_of(model, tmp_path / "missing.sqlite"))
    assert "Nothing was measured yet" in page
    assert "tilewright tune net.onnx" in page
    assert "Algorithms and layouts" in page
    assert "Tuning curves" not in page


def test_records_of_other_thread_counts_are_not_mixed_in(model, tmp_path):
    path = tmp_path / "records.sqlite"
    with Database(path) as database:
        database.add(r for r in trials(model, 4))
        assert len(database) > 0
    other = report_of(model, path)
    assert other.trials == 4 * (len(other.kernels) - 1)
    with Database(path) as database:
        database.add(replace(r, threads=THREADS + 1) for r in trials(model, 8))
    assert report_of(model, path).trials == other.trials


@pytest.mark.parametrize(("time_ns", "said"), [(8e5, "times as fast, measured"), (2e6, "is kept")])
def test_the_head_has_the_latency_of_the_model_where_it_was_measured(
    model, tmp_path, time_ns, said
):
    structure = graph_key(model.chosen.graph)
    whole = model_record(structure, Target.host(), THREADS, time_ns=time_ns, reference_ns=1e6)
    with Database(tmp_path / "records.sqlite") as database:
        database.add([*trials(model, 4), whole])
    report = report_of(model, tmp_path / "records.sqlite")
    assert report.verdict == whole
    assert report.to_dict()["model_after_ns"] == time_ns
    page = page_of(report)
    assert "model, before → after" in page
    assert said in page
