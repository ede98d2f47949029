"""A1: files of compiled models that cannot be used."""

from __future__ import annotations

from tilewright.explain.example import example

__all__ = ["EXAMPLES"]

GIVEN = """
import tempfile
from pathlib import Path

from tilewright.runtime.artefact import Parts, open_artefact, save

parts = Parts(program={}, code=b"", weights=[], target=tw.Target.host(), tool="0.1.0")
"""

RIGHT = """
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder, "model.tw")
    save(file, parts)
    open_artefact(file)
"""

EXAMPLES = (
    example(
        "A101",
        """The system refuses memory for machine code: there is not enough of it, or a policy
        forbids code that was not installed. The second is common on hardened servers and can
        be lifted for one process.""",
        given="""
        import resource

        from tilewright.runtime.image import Image

        _, highest = resource.getrlimit(resource.RLIMIT_AS)
        """,
        wrong="""
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, highest))
        Image.from_bytes(bytes(4 << 30))
        """,
        right="Image.from_bytes(bytes(4 << 10))",
        alone=True,
    ),
    example(
        "A110",
        """The file is something else, or was changed by a program that takes it for text. Compiled
        models usually end in `.tw`; a model in another form has to be compiled first.""",
        given=GIVEN,
        wrong="""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model.tw")
            file.write_text("not a model")
            open_artefact(file)
        """,
        right=RIGHT,
    ),
    example(
        "A111",
        """Bytes of the file are missing or have changed since it was written, most often because
        a copy was interrupted. Everything is compared with checksums by every load, weights with
        fast ones unless one asks for cryptographic ones.""",
        given=GIVEN,
        wrong="""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model.tw")
            save(file, parts)
            file.write_bytes(file.read_bytes()[:100])
            open_artefact(file)
        """,
        right=RIGHT,
    ),
    example(
        "A112",
        """The form of the file, or the way in which kernels are called, is not the one of this
        version. Compile the model again: nothing is converted.""",
        given=GIVEN,
        wrong="""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model.tw")
            save(file, parts)
            content = file.read_bytes()
            file.write_bytes(content[:8] + b"\\x63" + content[9:])  # of a later format
            open_artefact(file)
        """,
        right=RIGHT,
    ),
    example(
        "A113",
        """The machine code in the file uses instructions that this processor does not have. It is
        refused before any of it is loaded. Compile for what all your machines have in common.""",
        given=f"""{GIVEN}
import dataclasses
""",
        wrong="""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "model.tw")
            save(file, dataclasses.replace(parts, target=tw.Target.named("riscv64")))
            open_artefact(file)
        """,
        right=RIGHT,
    ),
)
