"""ONNX models become graphs; one module for each family of operators."""

from tilewright.frontend.onnx.importer import Imported, import_model, read_model

__all__ = ["Imported", "import_model", "read_model"]
