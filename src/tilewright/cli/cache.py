"""`tilewright cache`: what compiled models and kernels are kept, and how to be rid of them."""

from __future__ import annotations

import argparse
import time
from typing import Any

from tilewright import options
from tilewright.cli.models import add_command, aligned, bytes_text
from tilewright.cli.output import say, say_json
from tilewright.runtime.cache import Cache, default_caches
from tilewright.shown import in_line, shown

__all__ = ["add_to"]

_EXAMPLES = """\
examples:
  tilewright cache list             compiled models, the last used one first
  tilewright cache size             bytes, entries and limits
  tilewright cache prune            remove what is beyond the limit and left by dead processes
  tilewright cache clear            remove everything
  tilewright cache dir              where it is

TILEWRIGHT_CACHE_DIR names another folder, TILEWRIGHT_CACHE_SIZE another limit (2G; 0 for no cache).
exit codes: 0 done, 1 a setting cannot be used, 2 wrong arguments
"""

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
    return [
        {
            "key": entry.key,
            "bytes": entry.size_bytes,
            "used": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.used)),
            "model": _name(entry.path),
        }
        for entry in reversed(cache.entries())
    ]


def _name(path: Any) -> str:
    """The model in a file, if it can be read."""
    from tilewright.errors import ArtefactError
    from tilewright.runtime.artefact import open_artefact

    try:
        return str(open_artefact(path, verify=False).program_json["name"])
    except (ArtefactError, OSError, KeyError, TypeError):
        return "(unreadable)"


def _list_text(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "no compiled models"
    lines = [["model", "key", "used", "size"]]
    lines += [[shown(r["model"]), r["key"][:12], r["used"], bytes_text(r["bytes"])] for r in rows]
    return aligned(lines, left=3)


def _size(cache: Cache) -> dict[str, int]:
    entries = cache.entries()
    total = sum(entry.size_bytes for entry in entries)
    return {"entries": len(entries), "bytes": total, "limit": cache.limit}


def _size_text(facts: dict[str, dict[str, int]]) -> str:
    lines = [["", "entries", "size", "limit"]]
    for name, row in facts.items():
        sizes = bytes_text(row["bytes"]), bytes_text(row["limit"])
        lines.append([name, str(row["entries"]), *sizes])
    return aligned(lines)
