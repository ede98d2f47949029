"""Flat loops → LLVM IR → object code; the only layer that needs llvmlite."""
