"""The choice of layouts and algorithms over a whole graph."""
