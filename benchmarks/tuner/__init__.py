"""Benchmarks of the tuner: `python -m benchmarks tuner --help`."""
