"""The only module that reads environment variables; every other setting is an argument.

A variable that is set but makes no sense is an error at once, never a silent default: a mistyped
thread count would otherwise show up only as strange timings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Final

from tilewright.abi import MAX_THREADS
from tilewright.errors import Code, UserError

__all__ = [
    "cache_dir",
    "cache_limit",
    "child_environment",
    "data_dir",
    "data_folders",
    "database",
    "has_plain_terminal",
    "host_target",
    "machine_model",
    "num_threads",
    "ray_auth_mode",
    "set_ray_defaults",
    "wants_colour",
]

CACHE_LIMIT: Final = 2 << 30

DATABASE: Final = "records.sqlite"
NO_DATABASE: Final = "none"

RAY_DEFAULTS: Final = {"RAY_AUTH_MODE": "token", "RAY_USAGE_STATS_ENABLED": "0"}
"""Nobody without the token runs code, and nothing is told to anybody."""

RAY_LOOPBACK: Final = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
"""With it, Ray takes 127.0.0.1 for the address of this machine, on any system. It is the only way:
`ray.init` makes a reachable address of a loopback one that it is given."""

_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

O001 = Code("O001", "environment variable `{variable}` has a value that cannot be used")


def num_threads(environment: Mapping[str, str] | None = None) -> int | None:
    """Threads asked for by TILEWRIGHT_NUM_THREADS, else by OMP_NUM_THREADS; None if by neither."""
    variables = os.environ if environment is None else environment
    own = variables.get("TILEWRIGHT_NUM_THREADS")
    if own is not None:
        return _parse_threads("TILEWRIGHT_NUM_THREADS", own, own)
    openmp = variables.get("OMP_NUM_THREADS")
    if openmp is not None:
        # OpenMP allows one number for each level of nested regions; ours is the outermost.
        return _parse_threads("OMP_NUM_THREADS", openmp, openmp.partition(",")[0])
    return None


def cache_dir(environment: Mapping[str, str] | None = None) -> Path:
    """Where compiled kernels and measured facts are kept; not necessarily there yet.

    TILEWRIGHT_CACHE_DIR, else `tilewright` under XDG_CACHE_HOME, else under `~/.cache`.
    """
    variables = os.environ if environment is None else environment
    own = variables.get("TILEWRIGHT_CACHE_DIR")
    if own is not None:
        return _parse_directory("TILEWRIGHT_CACHE_DIR", own)
    base = variables.get("XDG_CACHE_HOME", "")
    # The XDG specification says that relative paths are invalid and must be ignored.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "tilewright"


def data_dir(environment: Mapping[str, str] | None = None) -> Path:
    """Where facts about this machine are kept for long; not necessarily there yet.

    TILEWRIGHT_DATA_DIR, else `tilewright` under XDG_DATA_HOME, else under `~/.local/share`.
    """
    variables = os.environ if environment is None else environment
    own = variables.get("TILEWRIGHT_DATA_DIR")
    if own is not None:
        return _parse_directory("TILEWRIGHT_DATA_DIR", own)
    base = Path(variables.get("XDG_DATA_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".local" / "share") / "tilewright"


def database(environment: Mapping[str, str] | None = None) -> Path | None:
    """The file with records of measurements; not necessarily there yet. None: there is to be none.

    TILEWRIGHT_DATABASE, which may be `none`, else `records.sqlite` in the data folder.
    """
    variables = os.environ if environment is None else environment
    own = variables.get("TILEWRIGHT_DATABASE")
    if own is None:
        return data_dir(variables) / DATABASE
    return None if own == NO_DATABASE else _parse_file("TILEWRIGHT_DATABASE", own)


def machine_model(environment: Mapping[str, str] | None = None) -> str:
    """What costs ask, by TILEWRIGHT_MACHINE: `auto` (measured), `nominal`, or a model's path."""
    variables = os.environ if environment is None else environment
    return variables.get("TILEWRIGHT_MACHINE", "auto")


def cache_limit(environment: Mapping[str, str] | None = None) -> int:
    """Bytes that the cache of compiled models may take, by TILEWRIGHT_CACHE_SIZE; 0: no cache."""
    variables = os.environ if environment is None else environment
    value = variables.get("TILEWRIGHT_CACHE_SIZE")
    if value is None:
        return CACHE_LIMIT
    form = re.fullmatch("([0-9]{1,15})([KMGT]?)(i?B)?", value.strip(), flags=re.ASCII)
    if form is not None:
        return int(form[1]) * _UNITS[form[2]]
    raise UserError(
        O001,
        {
            "variable": "TILEWRIGHT_CACHE_SIZE",
            "expected": "a number of bytes, or of K, M, G or T (powers of 1024); 0 for no cache",
            "found": repr(value),
        },
        hint="set TILEWRIGHT_CACHE_SIZE to a size such as 2G, or unset it for the default",
    )


def data_folders(environment: Mapping[str, str] | None = None) -> list[Path]:
    """Folders outside of a model's own in which its data may lie, by TILEWRIGHT_DATA_FOLDERS."""
    variables = os.environ if environment is None else environment
    named = variables.get("TILEWRIGHT_DATA_FOLDERS", "")
    found = (_parse_directory("TILEWRIGHT_DATA_FOLDERS", n) for n in named.split(os.pathsep) if n)
    return [Path(os.path.realpath(folder)) for folder in found]


def host_target(environment: Mapping[str, str] | None = None) -> str | None:
    """The target that stands for this machine, by TILEWRIGHT_TARGET; None: the machine itself."""
    variables = os.environ if environment is None else environment
    return variables.get("TILEWRIGHT_TARGET")


def wants_colour(environment: Mapping[str, str] | None = None) -> bool:
    """Whether terminals may be written to in colours: not with NO_COLOR (no-color.org)."""
    variables = os.environ if environment is None else environment
    return not variables.get("NO_COLOR")


def has_plain_terminal(environment: Mapping[str, str] | None = None) -> bool:
    """Whether the terminal, by TERM, cannot move its cursor."""
    variables = os.environ if environment is None else environment
    return variables.get("TERM", "") in {"", "dumb"}


def ray_auth_mode(environment: Mapping[str, str] | None = None) -> str:
    """How processes of Ray know each other, by its own RAY_AUTH_MODE; `token` unless it is set."""
    variables = os.environ if environment is None else environment
    return variables.get("RAY_AUTH_MODE", RAY_DEFAULTS["RAY_AUTH_MODE"]).lower()


def set_ray_defaults(
    environment: MutableMapping[str, str] | None = None, *, is_loopback: bool
) -> None:
    """Set what Ray reads from the environment, once, when it is imported; tokens may be set off."""
    variables = os.environ if environment is None else environment
    for variable, value in RAY_DEFAULTS.items():
        variables.setdefault(variable, value)
    if is_loopback:
        variables.update(RAY_LOOPBACK)


def child_environment(
    package_folder: Path, environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Variables for a process of our own that is to import the package from the same folder."""
    variables = os.environ if environment is None else environment
    paths = [str(package_folder), *filter(None, [variables.get("PYTHONPATH")])]
    return {**variables, "PYTHONPATH": os.pathsep.join(paths)}


def _parse_threads(variable: str, value: str, number: str) -> int:
    digits = number.strip()
    if re.fullmatch("[0-9]{1,9}", digits) and 1 <= int(digits) <= MAX_THREADS:
        return int(digits)
    raise UserError(
        O001,
        {
            "variable": variable,
            "expected": f"a whole number between 1 and {MAX_THREADS}",
            "found": repr(value),
        },
        hint=f"set {variable} to the number of threads, or unset it for the default",
    )


def _parse_directory(variable: str, value: str) -> Path:
    path = Path(value).expanduser()
    if value and path.is_absolute() and not (path.exists() and not path.is_dir()):
        return path
    raise UserError(
        O001,
        {
            "variable": variable,
            "expected": "an absolute path that is a directory or does not exist yet",
            "found": repr(value),
        },
        hint=f"set {variable} to such a path, or unset it for the default",
    )


def _parse_file(variable: str, value: str) -> Path:
    path = Path(value).expanduser()
    if value and path.is_absolute() and not path.is_dir():
        return path
    raise UserError(
        O001,
        {
            "variable": variable,
            "expected": "an absolute path that is a file or does not exist yet, or `none`",
            "found": repr(value),
        },
        hint=f"set {variable} to such a path, or unset it for the default",
    )
