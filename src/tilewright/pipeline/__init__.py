"""The paths of the compiler as ordered tables of named stages: start reading here.

`KERNEL_STAGES` (`kernel.py`) leads from a tensor program to a kernel, one `Pipeline` for both
`tw.build` and the kernels of models.
"""

from tilewright.pipeline.kernel import KERNEL_STAGES, Compiled, Pipeline, Report
from tilewright.pipeline.stage import Artefact, Observer, Stage, dump_to

__all__ = ["KERNEL_STAGES", "Artefact", "Compiled", "Observer", "Pipeline"]
__all__ += ["Report", "Stage", "dump_to"]
