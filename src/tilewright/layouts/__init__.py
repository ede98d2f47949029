"""Algorithms and layouts, chosen together for all layers of a graph."""
