"""Passes over graphs, one file each; the ordered list is in `pipeline.py` of this folder."""
