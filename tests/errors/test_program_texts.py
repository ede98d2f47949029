"""The texts of errors about programs: an example for each code of `P0…`, `V0…`, `V1…`, `V2…`."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.unit.tensor.test_interpret import MISUSE
from tests.unit.tensor.test_parser import BAD
from tests.unit.tensor.test_validate import ILLEGAL
from tests.unit.tensor.test_verify import ILL_FORMED, NOT_LOWERED
from tilewright.errors import CODES, TilewrightError
from tilewright.tensor.interpret import interpret
from tilewright.tensor.parser import parse
from tilewright.tensor.validate import validate
from tilewright.tensor.verify import Level, verify

EXAMPLES: dict[str, Callable[[], object]] = {}
for _code, _text in BAD.values():
    EXAMPLES.setdefault(_code, lambda text=_text: parse(text))
for _code, _func in ILL_FORMED.values():
    EXAMPLES.setdefault(_code, lambda func=_func: verify(func))
for _code, _func in NOT_LOWERED.values():
    EXAMPLES.setdefault(_code, lambda func=_func: verify(func, Level.LOWERED))
for _code, _text in ILLEGAL.values():
    EXAMPLES.setdefault(_code, lambda text=_text: validate(parse(text)))
for _code, _func, _arrays in MISUSE.values():
    EXAMPLES.setdefault(
        _code,
        lambda func=_func, arrays=_arrays: interpret(
            parse(func) if isinstance(func, str) else func, arrays
        ),
    )

ELSEWHERE = {"V105"}  # needs a program that no text describes: tests/unit/tensor/test_validate.py


def test_every_code_has_an_example():
    ours = {code for code in CODES if code[:2] in ("P0", "V0", "V1", "V2")}
    assert ours - ELSEWHERE == EXAMPLES.keys()


@pytest.mark.parametrize("code", sorted(EXAMPLES))
def test_text(code, golden):
    with pytest.raises(TilewrightError) as caught:
        EXAMPLES[code]()
    assert golden == caught.value
