"""What a constant is given is what it means: which values are told, and which are not."""

from __future__ import annotations

import pytest

from mnemarch.code.symbols import symbols_of


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        ("a.py", "X = 3", "3"),
        ("a.py", "X: int = -3", "-3"),
        ("a.py", "X = 60*60  # an hour", "60 * 60"),
        ("a.py", 'X = "strict"', "'strict'"),
        ("a.py", "X = Y = None", "None"),
        ("a.py", "X = (1, 2)", "(1, 2)"),
        ("a.py", "if a:\n    X = 1\nelse:\n    X = 2", "1\n2"),
        ("a.py", "X = int(os.environ['X'])", "…"),
        ("a.py", "X = {'a': 1}", "…"),
        ("a.py", "X = 'long'\\\n    'er'", "…"),
        ("a.py", "X = 0x" + "f" * 9_000, "…"),
        ("a.py", "X: int", ""),
        ("a.py", "X = ...", ""),
        ("a.py", "X, Y = 1, 2", ""),
        ("a.py", "X = 3\ndef broken(:", "3"),
        ("a.js", "export const X = 3;", "3"),
        ("a.js", "const X = 'a'", '"a"'),
        ("a.js", "const X = `a${b}`", "…"),
        ("a.ts", "export const X: number = 3;", "3"),
        ("a.go", "package a\nconst X = 3\n", "3"),
        ("a.rs", "pub const X: u32 = 3;", "3"),
        ("a.c", "#define X 3\n", "3"),
        ("a.c", "const int X = 3;", "3"),
        ("a.rb", "X = 3\n", "3"),
        ("a.kt", "const val X = 3\n", "3"),
        ("a.php", "<?php const X = 3;", "3"),
        ("a.swift", "let X = 3\n", "3"),
    ],
)
def test_the_value_of_a_constant(path, text, value):
    found = symbols_of(path, text)
    assert found["X"].value == value
