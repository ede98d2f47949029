"""TVM MetaSchedule as a rival of the tuner: `python -m benchmarks tuner rivals`.

`forms` are the layouts that it is tried in, `programs` workloads as it has them, `search` is the
process that tunes one, `timed` starts it and ends it when its time is over, `found` reads what it
has written until then. `benchmarks/engines/tvm.py` runs the best of that. Only `programs`, `search`
and the engine need TVM.
"""
