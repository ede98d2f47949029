"""`python -m fuzz graphs`: random models of this package's own generator."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from functools import partial
from itertools import count

from benchmarks.command_line import names_among
from fuzz.campaign import Campaign
from fuzz.command_line import add_common, finish, limits_of
from fuzz.generate import OLDEST, generate
from fuzz.rules import RULES

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """0 if nothing is unexplained, 1 if there are findings."""
    options = _parser().parse_args(arguments)
    kinds = {"aliases": options.aliases, "ones": options.ones}
    make = partial(generate, ops=options.ops, opset=options.opset, **kinds)
    campaign = Campaign(make, options.workers, limits_of(options))
    numbers: Iterator[int] = count(options.seed)
    if options.count is not None:
        numbers = iter(range(options.seed, options.seed + options.count))
    return finish(campaign, campaign.run(numbers, options.seconds), options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fuzz graphs",
        description="Random valid ONNX models over the operator schemas of the onnx package, "
        "compared with onnxruntime and the ONNX reference.",
        epilog="example: python -m fuzz graphs --count 500 --seed 1000 --ops Conv,MaxPool; "
        "exit code 0: nothing unexplained, 1: findings, 2: wrong usage",
    )
    add_common(parser)
    parser.add_argument("--seed", type=int, default=0, help="number of the first graph (default 0)")
    parser.add_argument(
        "--ops", type=names_among(sorted(RULES)), metavar="A,B", help="only these operators"
    )
    parser.add_argument("--opset", type=int, help=f"one opset (default: any from {OLDEST} on)")
    parser.add_argument(
        "--aliases", action="store_true", help="only graphs whose sizes have several names"
    )
    parser.add_argument(
        "--ones", action="store_true", help="run every named size at 1, alone and together"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
