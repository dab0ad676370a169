"""What edits come to, and the name of what they are in."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.text.edits import Edit, as_code, enclosing_name, netted, sides_of, told_edit

PYTHON = """class Cart:
    def __init__(
        self, items
    ):
        self.items = items

    async def total(self):
        def price(item):
            return item.price
        if self.items:
            return sum(map(price, self.items))


TOTAL = 1
"""
TYPESCRIPT = """export class Cart {
  total() {
    return 1;
  }
}
export async function load(id) {
  return id;
}
"""
GO = "func (c *Cart) Total() int {\n\treturn 1\n}\n"
RUST = "impl Cart {\n    pub fn total(&self) -> i32 {\n        1\n    }\n}\n"


@pytest.mark.parametrize(
    ("source", "part", "name"),
    [
        (PYTHON, "self.items = items", "Cart.__init__"),
        (PYTHON, "        self.items = items\n\n", "Cart.__init__"),
        (PYTHON, "return sum(map(price", "Cart.total"),
        (PYTHON, "return item.price", "Cart.total.price"),
        (PYTHON, "async def total(self):", "Cart.total"),
        (PYTHON, "TOTAL = 1", ""),
        (PYTHON, "not there", ""),
        (PYTHON, "", ""),
        ("", "x", ""),
        (TYPESCRIPT, "return id", "load"),
        (TYPESCRIPT, "return 1", "Cart"),
        (GO, "return 1", "Total"),
        (RUST, "        1\n", "Cart.total"),
    ],
)
def test_an_edit_is_in_the_function_that_indentation_says(source, part, name):
    assert enclosing_name(source, part) == name


texts = st.text(st.sampled_from("ab\n `"), max_size=12)


@given(texts, st.lists(st.tuples(texts, texts), max_size=6))
def test_edits_that_follow_each_other_come_to_the_last_text(first, steps):
    """Each edit replaces the whole text by the next: all of them together are one, or none."""
    states = ["x" + first, *("x" + before + after for before, after in steps)]
    edits = [Edit((number,), "m.py", old, new) for number, (old, new) in enumerate(pairwise(states))]
    ends = [] if states[0] == states[-1] else [(states[0], states[-1])]
    assert [(edit.before, edit.after) for edit in netted(edits) if edit.changes] == ends


@given(st.text(max_size=300), st.text(max_size=300))
def test_an_edit_is_described_in_one_line_with_safe_quotes(before, after):
    told = told_edit(Edit((), "m.py", before, after))
    assert len(told.splitlines()) == 1
    assert told.count("`") % 2 == 0
    assert as_code(before).count("`") == 2


@pytest.mark.parametrize(
    ("first", "then", "told"),
    [
        (("f", "return 1", "return 2"), ("g", "return 2", "return 3"), ["return 2", "return 3"]),
        (("f", "return 1", "return 2"), ("f", "return 2", "return 3"), ["return 3"]),
        (("f", "return 1", "return 2"), ("", "return 2", "return 3"), ["return 3"]),
        (("Cart", "pass", "def f(self):\n    pass"), ("Cart.f", "pass", "go()"), ["def f(self):\n    go()"]),
        (("", "a = 1", "a = 2\nb = 2"), ("", "2", "3"), ["a = 2\nb = 2", "3"]),
    ],
)
def test_edits_of_two_places_of_a_file_are_two(first, then, told):
    edits = [Edit((number,), "m.py", *sides, name) for number, (name, *sides) in enumerate((first, then))]
    assert [edit.after for edit in netted(edits)] == told


PATCH = "*** Begin Patch\n*** Update File: {}\n@@\n-x = 1\n+x = 2\n*** Update File: {}\n@@\n-y = 1\n+y = 2\n"
SQL = "--- a/m.sql\n+++ b/m.sql\n@@ -1,2 +1,2 @@\n--- old comment\n+++ odd\n select 1\n"


@pytest.mark.parametrize(
    ("patch", "path", "sides"),
    [
        (PATCH.format("data.py", "a.py"), "a.py", ("y = 1\n", "y = 2\n")),
        (PATCH.format("a.py", "data.py"), "data.py", ("y = 1\n", "y = 2\n")),
        (PATCH.format("a.py", "src/a.py"), "src/a.py", ("y = 1\n", "y = 2\n")),
        (PATCH.format("./a.py", "b.py"), "src/a.py", ("x = 1\n", "x = 2\n")),
        (PATCH.format("a.py", "b.py"), "c.py", ("", "")),
        (SQL, "m.sql", ("-- old comment\nselect 1\n", "++ odd\nselect 1\n")),
        ("*** Update File: m.sql\n@@\n--- old\n+++ new\n", "m.sql", ("-- old\n", "++ new\n")),
    ],
)
def test_a_patch_has_the_lines_of_its_own_file_whatever_they_begin_with(patch, path, sides):
    assert sides_of(patch, path) == sides


@pytest.mark.parametrize(
    ("before", "after", "text", "stands"),
    [
        ("x = 1\n", "x = 2\n", "y = 0\nx = 2\n", True),
        ("x = 1\n", "x = 2\n", "x = 1\n", False),
        ("x = 1\n", "x = 2\n", "x = 1\nif y:\n    x = 2\n", False),
        ("x = 1\n", "x = {'a':1,}\n", 'x = {"a": 1}\n', True),
        ("f(1)\n", "f(1, 2)\n", "f(\n    1,\n    2,\n)\n", True),
        ("d\n", "a = 1\nb = 2\nc = 3\n", "a = 1\nc = 3\n", True),
        ("d\n", "a = 1\nb = 2\nc = 3\n", "c = 3\n", False),
        ("", "a = 1\nb = 2\nc = 3\n", "a = 1\nc = 3\n", False),
        ("", "a = 1\nb = [2]\n", "a = 1\nb = [\n    2,\n]\n", True),
        ("x = 1\n", "", "y = 0\n", True),
        ("x = 1\n", "", "y = 0\nx = 1\n", False),
        ("t = 1", "t = 10", "t = 10\n", True),
        ("t = 1", "t = 10", "t = 1\n", False),
        ("k = ''\n", "k = '[REDACTED:aws-key]'\n", "k = 'AKIA'\n", True),
    ],
)
def test_an_edit_stands_in_a_file_that_has_its_text_however_it_is_formatted(before, after, text, stands):
    assert Edit((), "m.py", before, after).stands_in(text) is stands
