"""What tests say about expected failures: the error code, always."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tilewright.errors import TilewrightError


@contextmanager
def raises_code(
    code: str, *, text: str = "", facts: dict[str, Any] | None = None
) -> Iterator[pytest.ExceptionInfo[TilewrightError]]:
    """The block must fail with this error code; `text` and `facts` are checked when given.

    Rendering is part of the check: an error whose text cannot be made fails the test.
    """
    with pytest.raises(TilewrightError) as caught:
        yield caught
    error = caught.value
    rendered = str(error)
    assert error.code.id == code, f"expected {code}, raised:\n{rendered}"
    assert text in rendered, f"expected {text!r} in:\n{rendered}"
    for label, value in (facts or {}).items():
        assert error.facts.get(label) == value, f"fact {label!r} of:\n{rendered}"
