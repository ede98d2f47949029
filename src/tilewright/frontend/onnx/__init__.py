"""ONNX models become graphs; one module for each family of operators."""

from tilewright.frontend.onnx.imported import Imported
from tilewright.frontend.onnx.model import import_model
from tilewright.frontend.onnx.read import external_files, read_model

__all__ = ["Imported", "external_files", "import_model", "read_model"]
