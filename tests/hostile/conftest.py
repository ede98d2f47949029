"""Models here are many and small, and made of the same kernels."""

from __future__ import annotations

import pytest

from tests.shared_kernels import shared_kernels

_shared = pytest.fixture(autouse=True, scope="module")(shared_kernels)
