"""What a patch votes for, and when votes are a habit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.learning.preferences import Tally, interaction_votes, style_votes, tallies


@pytest.mark.parametrize(
    ("before", "after", "votes"),
    [
        ("", "def load_all(x): 0\n", {"naming": "snake_case", "comment": "no_docstring", "style": "no_type_hints"}),
        ("", 'def loadAll(x: int): """Do."""', {"naming": "camelCase", "comment": "docstring", "style": "type_hints"}),
        ("x = 1\n", "x = 'a'\n", {"quotes": "single"}),
        ("x = 1\n", 'x = "it\'s"\ny = "a"\n', {"quotes": "double"}),
        ("", "from .a import b\n", {"imports": "relative"}),
        ("", "from shop.a import b\nfrom os.path import join\n", {"imports": "absolute"}),
        ("", "assert x\n", {"assertions": "assert"}),
        ("", "self.assertEqual(x, 1)\n", {"assertions": "unittest"}),
        ("loadAll = 1\n", "loadAll = 2\n", {}),
        ("", "def setUp(self): pass\n", {"style": ""}),
        ("    if a_b:\n", "    if a_b and other_thing:\n", {}),
        ("        x_y = 1\n", "        x_y = 1\n        long_name = 2\n", {"naming": "snake_case"}),
        ("", "a_b = cD = 1\n", {}),
        ("def (", "x_y = 1", {}),
    ],
)  # fmt: skip
def test_a_patch_votes_by_what_it_introduces(before, after, votes):
    assert style_votes(before, after, "src/shop/a_b.py") == {topic: choice for topic, choice in votes.items() if choice}


def test_an_underscore_in_a_path_says_nothing():
    assert style_votes("", "pass\n", "src/my_project/my_module.py") == {}


@pytest.mark.parametrize(
    ("votes", "of", "declared"), [(2, 2, 0), (3, 3, 1), (3, 4, 0), (10, 11, 1), (7, 10, 0), (70, 100, 1), (60, 100, 0)]
)
def test_a_habit_needs_enough_votes_and_a_clear_majority(votes, of, declared):
    assert Tally("naming", "snake_case", votes, of).is_declared == bool(declared)


@given(st.lists(st.sampled_from(["a", "b", "c"]), min_size=1))
def test_two_choices_are_never_both_declared(choices):
    (tally,) = tallies({"t": choice} for choice in choices)
    assert tally.of == len(choices)
    assert not tally.is_declared or tally.votes > tally.of / 2


def test_how_a_task_went_votes_too():
    tools = ["rg -n retry", "rg x", "grep y", "edit"]
    assert interaction_votes(tools, 12, 6) == {"tool": "rg", "interaction": "incremental", "organization": "multi_file"}
    assert interaction_votes(tools * 10, 11, 0)["interaction"] == "batch"
    assert interaction_votes([], 3, 0) == {}
