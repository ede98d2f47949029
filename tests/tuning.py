"""States and events of a tuner that does nothing, for what shows them."""

from __future__ import annotations

from dataclasses import replace

from tilewright.tuning.events import Event, State, TaskState

CONV = TaskState("conv1 relu1", "contraction", 2, 0.6, 800e3, 500e3, 40, 2, 10**9)
PRODUCT = TaskState("fc", "contraction", 1, 0.3, 90e3, 90e3, 12, 1, 10**6, is_done=True)
COPY = TaskState("copy", "scattered", 3, 0.1, 2e3, 2e3)
STATE = State(
    "net.onnx",
    (COPY, CONV, PRODUCT),
    "loops",
    52,
    3,
    192.0,
    None,
    408.0,
    before_ms=2.0,
    now_ms=1.6,
    predicted_ms=1.5,
    peers_ms={"onnxruntime": 2.4},
)


def events(state: State = STATE) -> list[Event]:
    """A short search: it begins, three trials, a measurement of the model, the end."""
    start = replace(state, trials=0, failures=0, seconds=0.0, now_ms=None, predicted_ms=None)
    return [
        Event("begin", start),
        Event("trial", replace(state, trials=50), 1, "ok", "by evolution"),
        Event("trial", replace(state, trials=51), 1, "crash", "SIGILL"),
        Event("trial", state, 2, "build", "no \x1b[31mregisters"),
        Event("model", state),
        Event("end", state),
    ]


def many(count: int) -> State:
    """A model with so many tasks."""
    tasks = [replace(CONV, label=f"task {k}", share=1 / (k + 2)) for k in range(count)]
    return replace(STATE, tasks=tuple(tasks))
