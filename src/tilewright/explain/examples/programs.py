"""Programs and calls that examples of several families begin with."""

__all__ = [
    "CHAIN",
    "COMPUTED",
    "MATMUL",
    "MATMUL_RELU",
    "MODEL",
    "PIPELINE",
    "SCHEDULE",
    "SHARED",
    "WINDOW",
]

MATMUL = "s = tw.Schedule(library.matmul(4, 6, 8))"
MATMUL_RELU = "s = tw.Schedule(library.matmul(4, 6, 8, relu=True))"
CHAIN = """
A = tw.placeholder("A", (8,))
B = tw.compute("B", (8,), lambda i: A[i] * 2.0)
C = tw.compute("C", (8,), lambda i: B[i] + 1.0)
s = tw.Schedule(tw.func("chain", [A], [C]))
"""
SHARED = """
A = tw.placeholder("A", (8,))
B = tw.compute("B", (8,), lambda i: A[i] * 2.0)
C = tw.compute("C", (8,), lambda i: B[i] + 1.0)
D = tw.compute("D", (8,), lambda i: B[i] * C[i])
s = tw.Schedule(tw.func("shared", [A], [D]))
"""
WINDOW = """
A = tw.placeholder("A", (9,))
B = tw.compute("B", (9,), lambda i: A[i] * 2.0)
C = tw.compute("C", (8,), lambda i: B[i] + B[i + 1])
s = tw.Schedule(tw.func("window", [A], [C]))
"""
COMPUTED = """
A = tw.placeholder("A", (8,))
C = tw.compute("C", (8,), lambda i: A[i] * 2.0)
"""
SCHEDULE = "tw.Schedule(tw.parse(text))"
PIPELINE = 'pipeline = tw.Pipeline(tw.Target.named("x86-64-v3"))'
MODEL = """
from onnx import TensorProto, helper

x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 8])
y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 8])
relu = helper.make_node("Relu", ["x"], ["y"], name="relu")
graph = helper.make_graph([relu], "small", [x], [y])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
"""
