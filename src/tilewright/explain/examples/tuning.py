"""U: tuning."""

from __future__ import annotations

from tilewright.explain.example import example

__all__ = ["EXAMPLES"]

PRODUCT = """
        import tempfile

        from tilewright.tensor import library

        product = library.matmul(16, 16, 16)
        database = f"{tempfile.mkdtemp()}/records.sqlite"
        """

EXAMPLES = (
    example(
        "U010",
        """Cost models learn by LightGBM, which is no dependency of the compiler itself. Install
        the extra, or take the analytic order, which needs nothing: `make_model` does so by itself
        where LightGBM is missing.""",
        given="""
        import sys

        from tilewright.tuning.cost_model.boosted import Boosted, make_model
        from tilewright.tuning.cost_model.model import Samples
        from tilewright.tuning.features.scaling import Features

        sys.modules["lightgbm"] = None  # as where it is not installed
        rows = Features(("tile",), np.arange(16.0).reshape(16, 1))
        samples = Samples(rows, np.arange(1.0, 17.0))
        """,
        wrong="Boosted().fit([samples])",
        right="make_model().fit([samples])",
        alone=True,
    ),
    example(
        "U011",
        """A cost model is a JSON file that `save` writes. This one is something else, was damaged
        or was written by another version. Nothing is lost: models are learned again from what was
        measured.""",
        given="""
        import tempfile
        from pathlib import Path

        from tilewright.tuning.cost_model.boosted import Boosted
        from tilewright.tuning.cost_model.files import load, save

        path = Path(tempfile.mkdtemp()) / "model.json"
        path.write_text("{}")
        """,
        wrong="load(path)",
        right="""
        save(Boosted(), path)
        model = load(path)
        """,
    ),
    example(
        "U020",
        """Nothing in the model can be made faster by measuring: it has no kernel with a choice, or
        it runs on the reference implementation as a whole.""",
        given="""
        import tempfile

        from onnx import TensorProto, helper

        def model(op):
            kind = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [4, 4]) for n in "xy"]
            node = helper.make_node(op, ["x"], ["y"])
            graph = helper.make_graph([node], "one", kind[:1], kind[1:])
            opset = [helper.make_opsetid("", 17)]
            return helper.make_model(graph, opset_imports=opset, ir_version=8)

        database = f"{tempfile.mkdtemp()}/records.sqlite"
        """,
        wrong='tw.tune(model("Identity"), trials=1, database=database)',
        right='tw.tune(model("Softmax"), trials=1, database=database)',
        alone=True,
    ),
    example(
        "U021",
        """A search ends after so many trials, or after so many seconds, and there is at least one
        of them. Without either it takes ten minutes.""",
        given=PRODUCT,
        wrong="tw.tune(product, trials=0, database=database)",
        right="tw.tune(product, trials=1, database=database)",
        alone=True,
    ),
    example(
        "U022",
        """Trials run on this machine, which cannot execute what is compiled for the target. Tune
        on such a machine; records are files that can be carried (`tilewright db export`).""",
        given=PRODUCT,
        wrong='tw.tune(product, trials=1, database=database, target="aarch64")',
        right="tw.tune(product, trials=1, database=database)",
        alone=True,
    ),
    example(
        "U023",
        """TILEWRIGHT_DATABASE says that there is to be no database, and a search has to keep what
        it finds.""",
        given=f"""{PRODUCT}
        import os

        os.environ["TILEWRIGHT_DATABASE"] = "none"
        """,
        wrong="tw.tune(product, trials=1)",
        right="tw.tune(product, trials=1, database=database)",
        alone=True,
    ),
    example(
        "U040",
        """A search is asked for by a name that no strategy has. `evolution` and `annealing` follow
        a cost model; `random`, `grid` and `genetic` do not, and are there to compare with.""",
        given="""
        from types import SimpleNamespace

        from tilewright.tuning.search import strategy_named

        space = SimpleNamespace(lengths=(4, 3), size=12)
        rng = np.random.default_rng(0)
        """,
        wrong='strategy_named("evolutoin", space, rng)',
        right='strategy_named("evolution", space, rng)',
    ),
    example(
        "U041",
        """A budget of time is a number of seconds, or numbers with the units `h`, `m` and `s`, the
        largest first and without spaces. It is more than nothing.""",
        given="from tilewright.tuning.budget import parse_budget",
        wrong='parse_budget("10 minutes")',
        right="""
        seconds = parse_budget("10m")
        longer = parse_budget("1h30m")
        """,
    ),
)
