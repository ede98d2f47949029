"""Recipes: schedules by the structure of a block, with parameters from an analytic model."""
