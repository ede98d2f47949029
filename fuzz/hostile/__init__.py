"""Hostile files: damaged and malicious models, artefacts and cache entries."""

from fuzz.hostile.run import main

__all__ = ["main"]
