"""The paths of the compiler as ordered tables of named stages: start reading here.

    MODEL_STAGES   model.py    an ONNX model → graph → … → plan → kernels → link → module
    KERNEL_STAGES  kernel.py   a tensor program → scheduled → lowered → LLVM → object or callable

`tw.compile` walks the first, `tw.build` the second, and each kernel of a model the second as well.
Every stage prints (`tilewright show … --until STAGE`).
"""

from tilewright.pipeline.kernel import KERNEL_STAGES, Compiled, Pipeline, code_of
from tilewright.pipeline.model import MODEL_STAGES, ModelPipeline
from tilewright.pipeline.stage import Artefact, Observer, Progress, Report, Stage, Tell, dump_to

__all__ = ["KERNEL_STAGES", "MODEL_STAGES", "Artefact", "Compiled", "ModelPipeline", "Observer"]
__all__ += ["Pipeline", "Progress", "Report", "Stage", "Tell", "code_of", "dump_to"]
