"""What a block is like: its structure, its footprint. Analyses read programs and change nothing."""
