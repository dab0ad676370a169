"""What a constant is given is what it means: which values are told, and which are not."""

from __future__ import annotations

import pytest

from fixtures.cases import cases
from mnemarch.code.symbols import symbols_of


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [*cases("symbol_values", "the value of a constant"), ("a.py", "X = 0x" + "f" * 9_000, "…")],
)
def test_the_value_of_a_constant(path, text, value):
    found = symbols_of(path, text)
    assert found["X"].value == value
