"""The page in a real browser: it loads, asks nobody for anything, and is light or dark."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
import zlib

import pytest

from tests.unit.report.models import network, planned, report_of, trials
from tilewright.records import Database
from tilewright.report.page import page_of

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="there is no chromium")

QUIET = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"]
QUIET += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
QUIET += ["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr"]
IMAGE = "https://example.org/x.png"
OF_PAGES = 101845102
"""How chromium's log marks requests of pages: the hash of `blink_resource_loader`."""
WIDTH = '<script>document.title = "width " + document.documentElement.scrollWidth</script>'


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("browser")
    model = planned(network())
    with Database(path / "records.sqlite") as database:
        database.add(trials(model))
    page = page_of(report_of(model, path / "records.sqlite"))
    (path / "page.html").write_text(page, encoding="utf-8")
    without_policy = re.sub('<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    (path / "asking.html").write_text(without_policy.replace("</body>", f"{WIDTH}</body>"))
    for name, text in (("foreign", page), ("open", without_policy)):
        foreign = text.replace("</main>", f'<img src="{IMAGE}"></main>')
        (path / f"{name}.html").write_text(foreign, encoding="utf-8")
    return path


def browse(folder, page, *options):
    command = [BROWSER, *QUIET, f"--user-data-dir={folder / 'profile'}", *options]
    where = (folder / page).as_uri()
    done = subprocess.run(
        [*command, where], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def asked_for(log):
    """What the page asked the network for; the browser itself asks for more."""
    lines = log.read_text(encoding="utf-8").splitlines()
    own = (line for line in lines if f'"traffic_annotation":{OF_PAGES},' in line)
    return sorted({url for line in own for url in re.findall('"url":"(http[^"]*)"', line)})


def corner(path):
    """The colour of the first pixel; no filter of PNG changes it."""
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    at, packed = 8, b""
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        if data[at + 4 : at + 8] == b"IDAT":
            packed += data[at + 8 : at + 8 + size]
        at += size + 12
    return tuple(zlib.decompress(packed)[1:4])


@pytest.mark.parametrize(("scheme", "paper"), [(1, (255, 255, 255)), (0, (0x14, 0x17, 0x1B))])
def test_the_page_is_light_or_dark_and_has_nothing_to_complain_of(folder, scheme, paper):
    shot, log = folder / f"{scheme}.png", folder / f"{scheme}.json"
    wishes = f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={shot}"
    _, complaints = browse(folder, "page.html", *wishes, f"--log-net-log={log}")
    assert complaints == []
    assert corner(shot) == paper
    assert asked_for(log) == []


def test_what_is_not_of_the_page_is_not_loaded(folder):
    log = folder / "foreign.json"
    _, complaints = browse(folder, "foreign.html", "--dump-dom", f"--log-net-log={log}")
    assert any("Content Security Policy" in line for line in complaints)
    assert asked_for(log) == []
    browse(folder, "open.html", "--dump-dom", f"--log-net-log={log}")
    assert asked_for(log) == [IMAGE]


@pytest.mark.parametrize("width", [400, 1200])
def test_the_page_is_as_wide_as_the_screen(folder, width):
    text, complaints = browse(folder, "asking.html", f"--window-size={width},900", "--dump-dom")
    assert complaints == []
    found = re.search(r"<title>width (\d+)</title>", text)
    assert found is not None
    assert int(found[1]) <= max(width, 500)  # some builds have no narrower window
