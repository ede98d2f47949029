"""The report as one HTML page, from its head to the failures: no script, nothing to load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

from tilewright.records.kinds import MOST_TIME
from tilewright.report.chain import chain, layout_colours
from tilewright.report.curves import COLOURS, curves_chart, kernel_chart
from tilewright.report.data import Report
from tilewright.report.kernels import Kernel
from tilewright.report.markup import Child, Markup, element, joined
from tilewright.report.roofline import roofline_chart, with_operations
from tilewright.report.style import STYLE
from tilewright.shown import counted, shown, time_text

__all__ = ["page_of"]

WIDE: Final = (1040, 360)
NARROW: Final = (370, 300)
"""Pixels of charts, for screens and for phones: text has its size on both."""
MOST_TILES: Final = 12
MOST_FAILURES: Final = 100
GAINED: Final = 1.005

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""What the page may load: nothing."""


def page_of(report: Report) -> str:
    """The whole page."""
    title = f"{shown(report.about.model)}: tuning"
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", Markup(STYLE)),
    )
    parts: list[Markup | None] = [_head(report)]
    if report.measured:
        parts += [_curves(report), _roofline(report), _table(report)]
    else:
        parts.append(_nothing(report))
    parts.append(_chain(report))
    if report.failures:
        parts.append(_failures(report))
    main = element("main", *parts, _foot(report))
    return f"<!doctype html>\n{element('html', head, element('body', main), lang='en')}\n"


def _head(report: Report) -> Markup:
    threads = counted(report.about.threads, "thread")
    lines = [element("h1", shown(report.about.model))]
    lines.append(element("p", f"{report.about.cpu}, {threads}", class_="quiet"))
    if not report.measured:
        return element("header", *lines)
    before, after = (time_text(time / 1e9) for time in (report.before_ns, report.after_ns))
    known = len(report.measured)
    of_all = f"{len(report.kernels) - known} without times" if known < len(report.kernels) else ""
    better = sum(kernel.best is not None for kernel in report.measured)
    failed = sum(kernel.failures for kernel in report.kernels)
    cards = [
        *_whole(report),
        _card("kernels of a run, before", before, "as drafted"),
        _card("after", after, "with the best records"),
        _card("gain", _gain(report.gain), "times as fast"),
        _card("kernels that gained", f"{better} of {known}", of_all),
        _card("trials", f"{report.trials:,}", f"{failed:,} failed"),
    ]
    return element("header", *lines, element("dl", *cards, class_="cards"))


def _whole(report: Report) -> list[Markup]:
    """The model's latency, where it was measured: what counts in the end."""
    verdict = report.verdict
    if verdict is None:
        return []
    times = (time_text(time / 1e9) for time in (verdict.reference_ns, verdict.time_ns))
    kept = "slower: the draft is kept" if verdict.time_ns > MOST_TIME * verdict.reference_ns else ""
    note = joined(_gain(verdict.gain), " ", kept or "times as fast, measured")
    return [_card("model, before → after", " → ".join(times), note)]


def _card(title: str, value: Child, note: str) -> Markup:
    content = element("dd", value, element("small", note))
    return element("div", element("dt", title), content, class_="card")


def _gain(gain: float) -> Markup:
    return element("span", f"{gain:.2f}×", class_="good" if gain >= GAINED else None)


def _nothing(report: Report) -> Markup:
    command = element("code", f"tilewright tune {shown(report.about.model)}")
    about = joined(
        "There are no records of its kernels for this machine and as many threads in ",
        element("code", str(report.about.database)),
        ". ",
        command,
        " measures some.",
    )
    return element("section", element("h2", "Nothing was measured yet"), element("p", about))


def _curves(report: Report) -> Markup:
    order = list(report.curves)
    legend = [
        element("li", _stroke(place), f"{by}, {time_text(curve[-1] / 1e9)}")
        for place, (by, curve) in enumerate(report.curves.items())
    ]
    tiles = [_tile(kernel, order) for kernel in report.measured]
    shown_tiles, rest = tiles[:MOST_TILES], tiles[MOST_TILES:]
    more = element(
        "details",
        element("summary", f"{counted(len(rest), 'kernel')} more"),
        element("ul", *rest, class_="tiles"),
    )
    return element(
        "section",
        element("h2", "Tuning curves"),
        _about("The best so far over measured trials: all kernels that a run calls, together."),
        element("ul", *legend, class_="legend"),
        _both(lambda width, height: curves_chart(report, width, height)),
        _about(
            "Each kernel: a dot is a trial, by its time over that of the draft (dashed), and a "
            "red stroke one that failed; the line is the best so far."
        ),
        element("ul", *shown_tiles, class_="tiles"),
        more if rest else None,
    )


def _stroke(place: int) -> Markup:
    line = element("line", x1=1, y1=6, x2=21, y2=6, class_=f"curve s{place % COLOURS}")
    return element("svg", line, width=22, height=12, aria_hidden="true")


def _tile(kernel: Kernel, order: list[str]) -> Markup:
    title = joined(element("b", kernel.number), " ", _gain(kernel.gain), f" {shown(kernel.label)}")
    return element("li", element("div", title, title=kernel.label), kernel_chart(kernel, order))


def _roofline(report: Report) -> Markup | None:
    if not with_operations(report):
        return None
    return element(
        "section",
        element("h2", "Roofline"),
        _about(
            "What each kernel reaches before (hollow) and after (full), below what the machine's "
            "model allows: its multiply-adds, and the bandwidth of each level of memory. Larger "
            "dots take more of the time. Winograd counts as the direct convolution that it stands "
            "for, and may be above the roof."
        ),
        _both(lambda width, height: roofline_chart(report, width, height)),
    )


def _table(report: Report) -> Markup:
    names = ["share", "gain", "draft", "best", "runs", "GFLOP/s", "GB/s", "trials", "failed"]
    head = element(
        "tr",
        element("th", "kernel"),
        element("th", "operators", class_="text"),
        *(element("th", name) for name in names),
    )
    rows = [_row(report, kernel) for kernel in report.measured]
    table = element("table", element("thead", head), element("tbody", *rows))
    return element(
        "section",
        element("h2", "Kernels"),
        _about("Times are of one run; the share is that of all runs, as drafted."),
        element("div", table, class_="scroll"),
    )


def _row(report: Report, kernel: Kernel) -> Markup:
    rate = f"{kernel.flops / kernel.best_ns:.1f}" if kernel.flops else "–"
    cells: list[Child] = [
        f"{report.share(kernel):.1%}",
        _gain(kernel.gain),
        time_text(kernel.drafted_ns / 1e9),
        time_text(kernel.best_ns / 1e9),
        kernel.runs,
        rate,
        f"{kernel.moved_bytes / kernel.best_ns:.1f}",
        len(kernel.trials),
        kernel.failures,
    ]
    label = joined(shown(kernel.label), _decisions(kernel))
    first = element("td", kernel.number), element("td", label, class_="text")
    return element("tr", *first, *(element("td", cell) for cell in cells))


def _decisions(kernel: Kernel) -> Markup | None:
    """The points of the best record, which a reader may want to see."""
    if kernel.best is None:
        return None
    lines = []
    for block, point in kernel.best.points.items():
        lines.append(element("p", element("code", f"{block}: {_point(point)}")))
    if not lines:
        return None
    return element("details", element("summary", "decisions"), *lines)


def _point(point: object) -> str:
    match point:
        case [str(kind), dict(values)]:
            return f"{kind}({', '.join(f'{name}={value}' for name, value in values.items())})"
    return str(point)


def _chain(report: Report) -> Markup:
    colours = {name: number for name, number in layout_colours(report).items() if number >= 0}
    legend = [
        element("li", element("i", class_=f"l{number}"), name) for name, number in colours.items()
    ]
    count = len(report.layouts.conversions)
    return element(
        "section",
        element("h2", "Algorithms and layouts"),
        _about(
            f"{counted(len(report.layouts.sites), 'site')} from the first to the last, with "
            f"{counted(count, 'conversion') if count else 'no conversions'} between layouts. "
            "Lines to the left join what is not next to each other; dashed boxes are views, "
            "which copy nothing."
        ),
        element("ul", *legend, class_="legend") if legend else None,
        chain(report),
    )


def _failures(report: Report) -> Markup:
    head = element(
        "tr",
        element("th", "kernel"),
        element("th", "trials"),
        element("th", "what", class_="word"),
        element("th", "why", class_="text"),
    )
    rows = [
        element(
            "tr",
            element("td", failure.kernel),
            element("td", failure.count),
            element("td", failure.outcome, class_="word"),
            element("td", shown(failure.detail, 300) or "–", class_="text"),
        )
        for failure in report.failures[:MOST_FAILURES]
    ]
    rest = len(report.failures) - len(rows)
    more = element("p", f"and {rest} more", class_="quiet") if rest else None
    table = element("table", element("thead", head), element("tbody", *rows))
    return element(
        "section",
        element("h2", "What failed, and why"),
        _about(f"{_kinds(report)}. None of these is tried again."),
        element("div", table, class_="scroll"),
        more,
    )


def _kinds(report: Report) -> str:
    """How many failed, in all and of each kind."""
    counts: Counter[str] = Counter()
    for failure in report.failures:
        counts[failure.outcome] += failure.count
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in counts.most_common())
    return f"{sum(counts.values()):,} of {counted(report.trials, 'trial')} failed: {kinds}"


def _foot(report: Report) -> Markup:
    return element(
        "footer",
        f"tilewright {report.version}, {report.written}; records for ",
        element("code", report.target),
        " in ",
        element("code", str(report.about.database)),
    )


def _about(text: str) -> Markup:
    return element("p", text, class_="about")


def _both(chart: Callable[[int, int], Markup]) -> Markup:
    """A chart in two sizes, of which the style shows one."""
    wide, narrow = (
        chart(*size).replace('class="chart"', f'class="{name}"', 1)
        for size, name in ((WIDE, "wide"), (NARROW, "narrow"))
    )
    return joined(Markup(wide), Markup(narrow))
