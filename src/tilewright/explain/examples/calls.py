"""C: calling a kernel."""

from __future__ import annotations

from tilewright.explain.example import example

__all__ = ["EXAMPLES"]

ADD = """
add = tw.build(library.add(4, 6))
x, y = np.ones((4, 6), np.float32), np.ones((4, 6), np.float32)
"""
SYMBOLIC = """
add = tw.build(library.add(tw.size("n"), 6))
x = np.ones((4, 6), np.float32)
"""
PACKED = """
s = tw.Schedule(library.matmul(4, 8, 8))
s.layout_reorder("B", [1, 0])
matmul = tw.build(library.matmul(4, 8, 8), trace=s.trace)
a, b = np.ones((4, 8), np.float32), np.ones((8, 8), np.float32)
"""
CALLBACK = """
import ctypes

from tilewright.abi import ParamSpec


def kernel(function, name):
    compiled = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)(function)
    address = ctypes.cast(compiled, ctypes.c_void_p).value
    params = (ParamSpec("y", tw.f32, (4,), is_output=True),)
    return tw.Kernel(address, params, name=name, keep_alive=compiled)


def call_inner(*_):
    try:
        inner(y)
    except tw.UserError as error:
        caught.append(error)
    return 0


y, caught = np.ones(4, np.float32), []
inner, outer = kernel(lambda *_: 0, "inner"), kernel(call_inner, "outer")
"""

EXAMPLES = (
    example(
        "C001",
        """A kernel takes all its arrays, or the inputs only: outputs are then made and returned.
        The call has neither number.""",
        given=ADD,
        wrong="add(x)",
        right="z = add(x, y)",
    ),
    example(
        "C002",
        """The value is not an array whose memory the kernel could use. Lists and numbers are
        refused, because their element type would be a guess; arrays of other libraries are fine as
        long as they are in the memory of this process.""",
        given="add = tw.build(library.add(1, 3))",
        wrong="add([[1.0, 2.0, 3.0]], [[1.0, 1.0, 1.0]])",
        right="""
        x = np.asarray([[1.0, 2.0, 3.0]], dtype=np.float32)
        add(x, x)
        """,
    ),
    example(
        "C003",
        """The array has another element type than the kernel was compiled for. Kernels convert no
        values, because that would cost time and precision unseen.""",
        given=ADD,
        wrong="add(x, y.astype(np.float64))",
        right="add(x, y.astype(np.float32))",
    ),
    example(
        "C004",
        """The array has more or fewer dimensions than the parameter.""",
        given=ADD,
        wrong="add(x, y.reshape(24))",
        right="add(x, y.reshape(4, 6))",
    ),
    example(
        "C005",
        """A dimension of the array differs from the number that the kernel was compiled for. Build
        the program with `tw.size` in its place for a kernel that takes any.""",
        given=ADD,
        wrong="add(x[:2], y[:2])",
        right="""
        add = tw.build(library.add(tw.size("n"), 6))
        add(x[:2], y[:2])
        """,
    ),
    example(
        "C006",
        """A symbolic size has one value in a call, and two arrays tell different ones. The text
        says which arrays. A model runs with sizes that differ though they have one name, unless
        something relies on their being equal, or there is no model to compile another version of:
        a compiled file has none.""",
        given=SYMBOLIC,
        wrong="add(x, x[:3])",
        right="add(x[:3], x[:3])",
    ),
    example(
        "C007",
        """An array that the kernel should write to is read-only. Views of constants and of mapped
        files often are.""",
        given=ADD + "z = np.empty((4, 6), np.float32)",
        wrong="""
        z.flags.writeable = False
        add(x, y, z)
        """,
        right="add(x, y, z)",
    ),
    example(
        "C008",
        """The kernel writes its outputs in plain order, the last dimension running fastest, and
        this array lies in memory in another way. Inputs are copied into plain order; an output in a
        copy would be lost.""",
        given=ADD,
        wrong="""
        z = np.empty((6, 4), np.float32).T
        add(x, y, z)
        """,
        right="""
        z = np.empty((6, 4), np.float32).T
        z[...] = add(x, y)
        """,
    ),
    example(
        "C009",
        """An output shares memory with another array of the call, and the kernel may write it
        before it has read that. Give the output memory of its own.""",
        given=ADD,
        wrong="add(x, y, x)",
        right="x[...] = add(x, y)",
    ),
    example(
        "C010",
        """The kernel has no parameter of this name that could still be passed: it does not exist,
        was passed already, or is bound to an array.""",
        given=ADD,
        wrong="add(x, b=y)",
        right="add(x, B=y)",
    ),
    example(
        "C011",
        """The kernel should make an output, but no input tells how large. Pass the output.""",
        given='''
        program = tw.parse(
            """
            def count(C: i64[n]):
                for i in range(n):
                    with block("C", vi=S(n, i)):
                        C[vi] = vi
            """
        )
        count = tw.build(program)
        ''',
        wrong="count()",
        right="count(np.empty(4, np.int64))",
    ),
    example(
        "C012",
        """An array was packed for another kernel, which stores this parameter in another way. Pack
        it with the kernel that it is passed to.""",
        given=f"""{PACKED}plain = tw.build(library.matmul(4, 8, 8), trace="none")
packed = matmul.pack("B", b)
""",
        wrong="plain(a, packed)",
        right="matmul(a, packed)",
    ),
    example(
        "C013",
        """The code of the kernel has returned an error. Kernels that tilewright compiles never do;
        this one was edited as LLVM text, or written by hand.""",
        given="""
        pipeline = tw.Pipeline(tw.Target.host(), trace="none")
        text = pipeline.run(library.add(4, 6), until="llvm").text
        x = np.ones((4, 6), np.float32)
        """,
        wrong="""
        kernel = pipeline.resume("llvm", text.replace("ret i32 0", "ret i32 7")).value
        kernel(x, x)
        """,
        right="""
        kernel = pipeline.resume("llvm", text).value
        kernel(x, x)
        """,
    ),
    example(
        "C014",
        """The system refuses to start as many threads as the kernel was built for; a limit on
        processes or memory is the usual reason. Build for fewer threads, or raise the limit.""",
        given="""
        import resource

        s = tw.Schedule(library.add(1000, 6))
        s.parallel("i")
        many, few = (tw.build(library.add(1000, 6), threads=n, trace=s.trace) for n in (1000, 2))
        x = np.ones((1000, 6), np.float32)
        with open("/proc/self/statm") as memory:
            used = int(memory.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20), resource.RLIM_INFINITY))
        """,
        wrong="many(x, x)",
        right="few(x, x)",
        alone=True,
    ),
    example(
        "C015",
        """A kernel was called while another one runs in the same thread, which only a callback from
        hand-written code can do. The threads are busy with the outer one; let it return first.""",
        given=CALLBACK,
        wrong="""
        outer(y.copy())
        raise caught[0]
        """,
        right="inner(y)",
    ),
    example(
        "C016",
        """There is not enough memory for the intermediate buffers of the kernel. Bring producers
        and consumers together with `compute_at`: lowering then keeps only the part that is in
        use.""",
        given="""
        A = tw.placeholder("A", (8,))
        B = tw.compute("B", (1 << 57,), lambda i: A[i % 8])
        C = tw.compute("C", (8,), lambda i: B[i])
        program = tw.func("column", [A], [C])
        a = np.ones(8, np.float32)
        """,
        wrong='tw.build(program, trace="none")(a)',
        right="""
        s = tw.Schedule(program)
        s.compute_inline("B")
        tw.build(program, trace=s.trace)(a)
        """,
    ),
    example(
        "C017",
        """The kernel reads this parameter as a plain array, so there is nothing to pack. Pass the
        array itself.""",
        given=PACKED,
        wrong='matmul(matmul.pack("A", a), b)',
        right='matmul(a, matmul.pack("B", b))',
    ),
    example(
        "C018",
        """The schedule stores several arrays in one piece (`layout_store_at`), so they are packed
        or bound together. A call takes them apart, as the program was written.""",
        given="""
        program = library.matmul(4, 8, 8, bias=True)
        s = tw.Schedule(program)
        s.layout_store_at("B", "D", 0)
        dense = tw.build(program, trace=s.trace)
        b, d = np.ones((8, 8), np.float32), np.ones(8, np.float32)
        """,
        wrong='dense.pack("B", b)',
        right='dense.pack("B", b, D=d)',
    ),
    example(
        "C019",
        """The kernel writes this output in a packed form, which a call turns into a plain array at
        the end. A bound output has no such end: bind a packed array and unpack it when it is
        wanted.""",
        given="""
        program = library.transpose(4, 8)
        s = tw.Schedule(program)
        s.layout_reorder("Y", [1, 0])
        transpose = tw.build(program, trace=s.trace)
        y = np.empty((8, 4), np.float32)
        """,
        wrong="transpose.bind(Y=y)",
        right="""
        packed = transpose.pack("Y", y)
        transpose.bind(Y=packed)
        """,
    ),
    example(
        "C020",
        """A size is zero in this call, yet an output has elements. What a fold of nothing is,
        the kernel does not say; if all outputs are without elements, a call is fine and does
        nothing.""",
        given="""
        total = tw.build(library.total(tw.size("n"), 6))
        x = np.ones((4, 6), np.float32)
        """,
        wrong="total(x[:0])",
        right="total(x)",
    ),
)
