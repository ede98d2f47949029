"""`python -m benchmarks.models make|list [names] [--dynamic] [--exporter dynamo|script]`."""

from __future__ import annotations

import argparse
import sys
import traceback
from pathlib import Path

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


def _line(model: Model, folder: Path, choice: Choice) -> str:
    path = file_of(model, folder, choice)
    state = f"{path.stat().st_size / 1e6:8.1f} MB" if path.exists() else "   not made"
    sizes = ", ".join(f"{name}={size}" for name, size in model.sizes[0].items())
    return f"{model.name:<22}{model.family:<10}{state}  {sizes}"


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.models",
        description="Make the ONNX files of the benchmark models, or show which there are.",
        epilog="example: python -m benchmarks.models make resnet18 text --dynamic",
    )
    parser.add_argument("do", choices=["make", "list"])
    parser.add_argument("names", nargs="*", help="models or families; all of them without")
    parser.add_argument("--dynamic", action="store_true", help="leave batch, length, ... open")
    parser.add_argument(
        "--exporter", choices=EXPORTERS, default="", help="of torch; default: the best"
    )
    parser.add_argument("--models", type=Path, default=default_folder(), metavar="DIR")
    return parser.parse_intermixed_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
