"""Cost models: which of many points or programs are fast, learned from those that were measured.

`model` is the interface, with the analytic order as the model that needs no measurement; `boosted`
learns trees, `joined` adds what many tasks have taught to what the task itself does; `files` keeps
models as JSON; `metrics` says how good an order is.
"""
