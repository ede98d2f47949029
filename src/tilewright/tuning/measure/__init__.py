"""Measuring: candidates are built, run beside a reference kernel and compared with its results."""
