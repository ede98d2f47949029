"""P: texts of programs, and of the LLVM stage."""

from __future__ import annotations

from tilewright.explain.example import example

__all__ = ["EXAMPLES"]


def _copy(statement: str = "C[vi] = A[vi]", head: str = "A: f32[8], C: f32[8]") -> str:
    """A text with one block of one statement."""
    return f'''
    text = """
    def copy({head}):
        for i in range(8):
            with block("C", vi=S(8, i)):
                {statement}
    """
    '''


PARSE = "tw.parse(text)"
LLVM = """
pipeline = tw.Pipeline(tw.Target.host(), trace="none")
text = pipeline.run(library.add(4, 4), until="llvm").text
"""

EXAMPLES = (
    example(
        "P001",
        """Programs are written in Python's syntax, and this text is not. Line and column are those
        of Python's own parser.""",
        given='''
        text = """
        def copy(A: f32[8], C: f32[8])
            for i in range(8):
                with block("C", vi=S(8, i)):
                    C[vi] = A[vi]
        """
        ''',
        wrong=PARSE,
        right='tw.parse(text.replace("C: f32[8])", "C: f32[8]):"))',
    ),
    example(
        "P002",
        """The text of a program is one `def`, whose parameters are buffers with a type each.
        Nothing stands beside it, and there are no defaults, stars or decorators.""",
        given=_copy(head="A, C"),
        wrong=PARSE,
        right='tw.parse(text.replace("A, C", "A: f32[8], C: f32[8]"))',
    ),
    example(
        "P003",
        """The name is neither a buffer nor a variable in scope here. Loops and iterators are known
        inside of their body only, allocations from their line on.""",
        given=_copy("C[vi] = B[vi]"),
        wrong=PARSE,
        right='tw.parse(text.replace("B[vi]", "A[vi]"))',
    ),
    example(
        "P004",
        """The tensor IR has few statements: loops, blocks, stores, `if` and `alloc`. Updates are
        written out, and nothing is returned.""",
        given=_copy("C[vi] += A[vi]"),
        wrong=PARSE,
        right='tw.parse(text.replace("C[vi] += A[vi]", "C[vi] = C[vi] + A[vi]"))',
    ),
    example(
        "P005",
        """The tensor IR has arithmetic, comparisons, accesses by index and calls, but not the rest
        of Python's expressions. Powers are a function, and comparisons are not chained.""",
        given=_copy("C[vi] = A[vi] ** 2"),
        wrong=PARSE,
        right='tw.parse(text.replace("A[vi] ** 2", "A[vi] * A[vi]"))',
    ),
    example(
        "P006",
        """A word of the language is used with the wrong arguments. Loops, for one, take an extent
        and always begin at zero.""",
        given=_copy().replace("range(8)", "range(1, 8)"),
        wrong=PARSE,
        right='tw.parse(text.replace("range(1, 8)", "range(8)"))',
    ),
    example(
        "P007",
        """The type of a buffer is an element type and a shape: `f32[8, 16]`, or `f32[()]` for a
        scalar. Element types are written short: `f32`, `bf16`, `i8`, `bool`.""",
        given=_copy(head="A: float32[8], C: f32[8]"),
        wrong=PARSE,
        right='tw.parse(text.replace("float32", "f32"))',
    ),
    example(
        "P008",
        """The head of a block lists its iterators as `name=S(extent, binding)`, or with `R` for an
        iterator of a reduction.""",
        given=_copy().replace("vi=S(8, i)", "vi=i"),
        wrong=PARSE,
        right='tw.parse(text.replace("vi=i", "vi=S(8, i)"))',
    ),
    example(
        "P009",
        """A number with a type is a value of that type; this one is too large, or of another
        kind.""",
        given=_copy("C[vi] = i8(200)", head="C: i8[8]"),
        wrong=PARSE,
        right='tw.parse(text.replace("200", "100"))',
    ),
    example(
        "P010",
        """A loop is `range`, `parallel`, `vectorized` or `unrolled`, which says how it runs.""",
        given=_copy().replace("range(8)", "threads(8)"),
        wrong=PARSE,
        right='tw.parse(text.replace("threads(8)", "parallel(8)"))',
    ),
    example(
        "P011",
        """A name means one thing at a time: parameters, allocations, loops and iterators that are
        in scope together have different names.""",
        given=_copy().replace("for i", "for A").replace("(8, i)", "(8, A)"),
        wrong=PARSE,
        right='tw.parse(text.replace("for A", "for i").replace("S(8, A)", "S(8, i)"))',
    ),
    example(
        "P012",
        """Behind `@ layout(…)` stand the steps that make the stored shape of a buffer from its
        plain one, as the layout primitives record them.""",
        given=_copy(head="A: f32[2, 4] @ layout(Tile(0, 4)), C: f32[8]").replace(
            "A[vi]", "A[vi // 4, vi % 4]"
        ),
        wrong=PARSE,
        right='tw.parse(text.replace("Tile(0, 4)", "Split(0, 4)"))',
    ),
    example(
        "P201",
        """The first line of the LLVM stage is a comment that says what the kernel is called and
        which arrays it takes. Without it the text cannot become a kernel again.""",
        given=LLVM,
        wrong="""
        _, _, rest = text.partition("\\n")
        pipeline.resume("llvm", rest)
        """,
        right='pipeline.resume("llvm", text)',
    ),
    example(
        "P202",
        """LLVM text that was edited is not valid. Line and column are those of the text that was
        passed.""",
        given="""
        pipeline = tw.Pipeline(tw.Target.named("x86-64-v3"))
        text = "define i32 @seven() { ret i64 7 }"
        """,
        wrong='pipeline.resume("llvm", text, until="assembly")',
        right='pipeline.resume("llvm", text.replace("i64 7", "i32 7"), until="assembly")',
    ),
)
