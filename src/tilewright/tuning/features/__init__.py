"""What programs are like, in numbers of fixed length.

`points` looks at decisions of a recipe and needs no program; `loops` and `stores` look at lowered
loops (`nests` finds them).
"""
