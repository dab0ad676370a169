"""What edits come to, and the name of what they are in."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.text.edits import as_code, enclosing_name, netted, told_edit

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
    edits = [(number, old, new, "m.py") for number, (old, new) in enumerate(pairwise(states))]
    ends = [] if states[0] == states[-1] else [(states[0], states[-1])]
    assert [(before, after) for _, before, after, _ in netted(edits)] == ends


@given(st.text(max_size=300), st.text(max_size=300))
def test_an_edit_is_told_in_a_line_whose_quotes_nothing_ends(before, after):
    told = told_edit("m.py", before, after)
    assert len(told.splitlines()) == 1
    assert told.count("`") % 2 == 0
    assert as_code(before).count("`") == 2
