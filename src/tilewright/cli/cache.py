"""`tilewright cache`: what compiled models and kernels are kept, and how to be rid of them."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tilewright import options
from tilewright.cli.models import add_command, bytes_text
from tilewright.cli.output import say, say_json, screen_width
from tilewright.cli.table import aligned, fitted
from tilewright.errors import ArtefactError
from tilewright.model.module import ABOUT
from tilewright.runtime.artefact import open_artefact
from tilewright.runtime.cache import Cache, default_caches
from tilewright.shown import in_line, shown

__all__ = ["add_to"]

_EXAMPLES = """\
examples:
  tilewright cache list             compiled models, the last used one first
  tilewright cache size             bytes, entries and limits
  tilewright cache prune            remove what is beyond the limit, and debris
  tilewright cache clear            remove everything
  tilewright cache dir              where it is

TILEWRIGHT_CACHE_DIR names another folder, TILEWRIGHT_CACHE_SIZE another limit
(2G; 0 for no cache).
exit codes: 0 done, 1 a setting cannot be used, 2 wrong arguments
"""

HOST = "host"
"""The name of a target that is the machine at hand: its processor says more."""

_ACTIONS = ("list", "size", "clear", "prune", "dir")


def add_to(commands: Any) -> None:
    """Add the command's parser."""
    parser = add_command(commands, "cache", "look at the compile cache, or empty it", _EXAMPLES)
    parser.add_argument("action", choices=_ACTIONS, help="what to do")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Do it, and say what was done."""
    caches = default_caches()._asdict()
    match arguments.action:
        case "dir":
            facts: Any = {"path": str(options.cache_dir())}
            text = in_line(facts["path"])
        case "list":
            facts = _listed(caches["models"])
            text = _list_text(facts)
        case "size":
            facts = {name: _size(cache) for name, cache in caches.items()}
            text = _size_text(facts)
        case action:
            change = Cache.clear if action == "clear" else Cache.prune
            facts = {name: change(cache) for name, cache in caches.items()}
            removed = ", ".join(f"{count} {name}" for name, count in facts.items())
            text = f"removed: {removed}"
    if arguments.json:
        say_json(facts)
    else:
        say(text)
    return 0


def _listed(cache: Cache) -> list[dict[str, Any]]:
    now = time.time()
    return [
        {
            **_described(entry.path),
            "key": entry.key,
            "size_bytes": entry.size_bytes,
            "used": datetime.fromtimestamp(entry.used, tz=UTC).isoformat(timespec="seconds"),
            "age_s": max(0, round(now - entry.used)),
        }
        for entry in reversed(cache.entries())
    ]


def _described(path: Path) -> dict[str, Any]:
    """What the file of a model says about it; empty where it cannot be read."""
    try:
        artefact = open_artefact(path, verify=False)
        extra, target = artefact.metadata["extra"], artefact.metadata["target"]
        about = extra.get(ABOUT, {})
        return {
            "model": str(artefact.program_json["name"]),
            "file": str(about.get("file", "")),
            "target": str(target["cpu"] if target["name"] == HOST else target["name"]),
            "accuracy": str(about.get("accuracy", "")),
            "layouts": str(about.get("layouts", "")),
        }
    except (ArtefactError, OSError, LookupError, TypeError, ValueError, AttributeError):
        texts = dict.fromkeys(("model", "target", "accuracy", "layouts"), "")
        return {**texts, "file": "(unreadable)"}


def _list_text(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "no compiled models"
    lines = [["model", "target", "accuracy", "size", "unused for", "key"]]
    for row in rows:
        about = [shown(row["file"] or row["model"]), row["target"], row["accuracy"] or "?"]
        numbers = [bytes_text(row["size_bytes"]), _age(row["age_s"])]
        lines.append([*about, *numbers, row["key"][:8]])
    return fitted(lines, 3, {"model": 16, "target": 8}, ["key", "accuracy"], screen_width())


def _age(seconds: int) -> str:
    """`3 h` for a person: the greatest unit that there is one of."""
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def _size(cache: Cache) -> dict[str, int]:
    entries = cache.entries()
    total = sum(entry.size_bytes for entry in entries)
    return {"entries": len(entries), "size_bytes": total, "limit_bytes": cache.limit}


def _size_text(facts: dict[str, dict[str, int]]) -> str:
    lines = [["", "entries", "size", "limit"]]
    for name, row in facts.items():
        sizes = bytes_text(row["size_bytes"]), bytes_text(row["limit_bytes"])
        lines.append([name, str(row["entries"]), *sizes])
    return aligned(lines)
