"""The version of the package, for all that is written down with it."""

__all__ = ["__version__"]

__version__ = "0.1.0"
