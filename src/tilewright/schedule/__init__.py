"""Schedules: programs transformed by small, checked, recorded steps."""

from tilewright.schedule import primitives as _primitives  # noqa: F401  (registers them)
from tilewright.schedule.primitive import PRIMITIVES
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace import Step, Trace

__all__ = ["PRIMITIVES", "Schedule", "Step", "Trace"]
