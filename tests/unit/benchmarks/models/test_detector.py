"""The detector: maps of predictions at three scales, with sane values."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="the detector is a torch module")

from benchmarks.models.torch_detector import BOXES, CLASSES, Detector  # noqa: E402
from benchmarks.models.torch_modules import seeded  # noqa: E402


def test_every_cell_has_predictions_at_three_scales():
    detector = seeded(lambda: Detector(8), 8, 3, 128, 128)
    maps = detector(torch.randn(1, 3, 64, 96))
    filters = BOXES * (5 + CLASSES)
    assert [tuple(part.shape) for part in maps] == [
        (1, filters, 8, 12),
        (1, filters, 4, 6),
        (1, filters, 2, 3),
    ]
    for part in maps:
        assert 0.05 < part.std() < 20
