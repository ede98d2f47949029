"""Random models that must mean the same to tilewright, onnxruntime and the ONNX reference."""
