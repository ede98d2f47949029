"""U: processes that build and measure."""

from __future__ import annotations

from tilewright.explain.example import example

__all__ = ["EXAMPLES"]

EXAMPLES = (
    example(
        "U030",
        """Candidates are built and run in processes of their own, so that whatever they do costs
        one trial. Such a process could not be started, or ended before it was ready: there are too
        many processes, too little memory, or an installation that cannot be imported from another
        process. No candidate is to blame.""",
        given="""
        import sys

        from tilewright.tuning.measure.limits import Limits
        from tilewright.tuning.measure.process import Process

        module = "tilewright.tuning.measure.worker"
        """,
        wrong="""
        sys.executable = "/nowhere/python"  # as where Python has been moved
        Process(module, Limits())
        """,
        right="Process(module, Limits()).close()",
        alone=True,
    ),
)
