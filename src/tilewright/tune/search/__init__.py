"""Search: which points of a space to measure next."""
