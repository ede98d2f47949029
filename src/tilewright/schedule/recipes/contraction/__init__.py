"""Contractions: a register tile of sums, walked over the reduction, inside blocks for the caches.

    for block of rows, panel of columns:                  (fused, parallel)
        for tile of rows:
            sums = 0                                      (registers: tile_rows × tile_columns)
            for k: sums += left[rows, k] · right[k, columns]
            out = epilogue(sums)

A long reduction is cut: partial sums of each cut stay in registers and are added to memory once. A
constant right operand is packed ahead of time so that a panel is one stream; one that comes with
the call may be packed panel by panel. The recipe is `recipe.CONTRACTION`.
"""
