"""Tuning: what a search over points of recipes measures, learns and remembers.

`features/` says what a point or a lowered program is like, in numbers; `cost_model/` learns from
measurements which of them are fast; `measure/` builds candidates and runs them.
"""
