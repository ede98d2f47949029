"""Tuning: searches measure points of recipes, learn which are fast, and remember.

    model → tasks → ( scheduler → search → measure → records ) … → the whole model

`api` is the face. `task` and `space` say what can be decided, `search/` what to try next,
`cost_model/` learns from `features/`, `measure/` builds and runs, `tuner` is the loop over all
tasks and `model_tuner` the stages of a model.
"""
