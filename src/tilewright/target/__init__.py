"""Hardware as data: what a machine can do, found out, given by name, or measured."""

from tilewright.target.description import Bandwidth, Cache, Core, Measured, Rate, Target
from tilewright.target.machine import Level, MachineModel
from tilewright.target.named import names

__all__ = [
    "Bandwidth",
    "Cache",
    "Core",
    "Level",
    "MachineModel",
    "Measured",
    "Rate",
    "Target",
    "names",
]
