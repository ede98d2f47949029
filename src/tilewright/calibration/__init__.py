"""Calibration: the machine model of the machine at hand, measured once and kept.

`with_machine_model(target)` is all that the rest of the compiler asks for. Small loops and small
tensor programs (`probes`), compiled by the compiler itself, take turns (`measure`); their best
times become figures (`figures`), rounded so that two calibrations of one machine agree (`grid`);
the model is kept in the user's data folder (`kept`).
"""

from tilewright.calibration.model import calibrated, with_machine_model

__all__ = ["calibrated", "with_machine_model"]
