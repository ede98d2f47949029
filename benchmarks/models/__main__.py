"""`python -m benchmarks.models make|list|check|memory [names] [--dynamic] [--exporter …]`."""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

from benchmarks.command_line import thread_counts
from benchmarks.models.make import Choice, NotMade, default_folder, file_of, make
from benchmarks.models.registry import MODELS, find
from benchmarks.models.spec import EXPORTERS, Model


def main(arguments: list[str]) -> int:
    options = _parse(arguments)
    try:
        models = find(options.names) if options.names else list(MODELS.values())
    except LookupError as problem:
        print(problem, file=sys.stderr)
        return 2
    choice = Choice(options.dynamic, options.exporter)
    if options.do == "list":
        print(*(_line(model, options.models, choice) for model in models), sep="\n")
        return 0
    if options.do == "memory":
        return _memory(models, options)
    if options.do == "check":
        return _check(models, options.models, options.threads)
    made = [_make(model, options.models, choice) for model in models]
    print(f"{sum(made)} of {len(made)} models in {options.models}")
    return 0 if all(made) else 1


def _make(model: Model, folder: Path, choice: Choice) -> bool:
    try:
        make(model, folder, choice, lambda text: print(text, flush=True))
    except NotMade as reason:
        print(f"skipped {reason}")
        return False
    except Exception:  # noqa: BLE001 (exporters fail in every way; the next model may work)
        traceback.print_exc()
        print(f"failed {model.name}")
        return False
    return True


def _check(models: list[Model], folder: Path, threads: list[int]) -> int:
    """Every file that is there; the exit code is 1 if one is wrong."""
    from benchmarks.models.check import check, choices_of

    good = total = 0
    for model in models:
        for choice in choices_of(model):
            if not file_of(model, folder, choice).exists():
                continue
            for verdict in check(model, folder, choice, threads):
                print(verdict, flush=True)
                good, total = good + verdict.is_good, total + 1
    print(f"{good} of {total} are right")
    return 0 if good == total else 1


def _memory(models: list[Model], options: argparse.Namespace) -> int:
    """What processes hold; the exit code is 1 if something could not be measured."""
    from benchmarks.models.held import measure, table, write

    rows = []
    for model in models:
        path = file_of(model, options.models, Choice(options.dynamic, options.exporter))
        if not path.exists():
            print(f"there is no {path.name}: `python -m benchmarks.models make {model.name}`")
            continue
        rows += [measure(model, path, threads) for threads in options.threads]
        if options.out:
            write(options.out, sys.argv[1:], rows)
    print(table(rows))
    return 0 if rows and all(row.is_complete for row in rows) else 1


def _line(model: Model, folder: Path, choice: Choice) -> str:
    path = file_of(model, folder, choice)
    state = f"{path.stat().st_size / 1e6:8.1f} MB" if path.exists() else "   not made"
    sizes = ", ".join(f"{name}={size}" for name, size in model.sizes[0].items())
    return f"{model.name:<22}{model.family:<10}{state}  {sizes}"


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.models",
        description="Make the ONNX files of the benchmark models, show which there are, check what "
        "tilewright gives for all files that there are, or measure the memory that processes hold.",
        epilog="example: python -m benchmarks.models make resnet18 text --dynamic",
    )
    parser.add_argument("do", choices=["make", "list", "check", "memory"])
    parser.add_argument("names", nargs="*", help="models or families; all of them without")
    parser.add_argument("--dynamic", action="store_true", help="leave batch, length, ... open")
    parser.add_argument(
        "--exporter", choices=EXPORTERS, default="", help="of torch; default: the best"
    )
    parser.add_argument(
        "--threads", type=thread_counts, default=[1, 2], metavar="1,2", help="for check and memory"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="for memory: figures as JSON")
    parser.add_argument("--models", type=Path, default=default_folder(), metavar="DIR")
    return parser.parse_intermixed_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
