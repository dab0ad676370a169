"""What a patch votes for, and when votes are a habit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.learning.habits import Tally, interaction_votes, style_votes, tallies


@pytest.mark.parametrize(
    ("before", "after", "votes"),
    [
        ("", "def load_all(x): 0\n", {"naming": "snake_case", "style": "no_type_hints"}),
        ("", "def f():\n    a\n    b\n    c\n", {"comment": "no_docstring"}),
        ("def f():\n    a\n    b\n    c\n", "def f():\n    a\n    b\n    d\n", {}),
        ("", "def f(self): 0\n", {}),
        ("", 'def loadAll(x: int): """Do."""', {"naming": "camelCase", "comment": "docstring", "style": "type_hints"}),
        ("x = 1\n", "x = 'a'\n", {"quotes": "single"}),
        ("x = 1\n", 'x = "it\'s"\ny = "a"\n', {"quotes": "double"}),
        ("", "from .a import b\n", {"imports": "relative"}),
        ("", "from shop.a import b\nfrom os.path import join\n", {"imports": "absolute"}),
        ("", "assert x\n", {}),
        ("loadAll = 1\n", "loadAll = 2\n", {"naming": "camelCase"}),
        ("loadAll = saveAll = 1\n", "loadAll = saveAll = 1\nlast_one = 2\n", {"naming": "mixed"}),
        ("", "x = f'a{b}' + \"c\"\r\ny = \"d\"\n", {"quotes": "double"}),
        ("", "def setUp(self): pass\n", {"style": ""}),
        ("    if a_b:\n", "    if a_b and other_thing:\n", {}),
        ("        x_y = 1\n", "        x_y = 1\n        long_name = 2\n", {"naming": "snake_case"}),
        ("", "a_b = cD = 1\n", {"naming": "mixed"}),
        ("def (", "x_y = 1", {"naming": "snake_case"}),
        ("", "for a_b in c:\n    with d as e_f:\n        g_h = i = {j_k for j_k in l}\n", {"naming": "snake_case"}),
        ("", "def f(a_b, *, cD=1, **eF): ...\n", {"naming": "camelCase", "style": "no_type_hints"}),
    ],
)  # fmt: skip
def test_a_patch_votes_by_what_it_introduces(before, after, votes):
    assert style_votes(before, after, "src/shop/a_b.py") == {topic: choice for topic, choice in votes.items() if choice}


@pytest.mark.parametrize(
    ("path", "code", "votes"),
    [
        ("shop/tests/cart.py", "assert x\n", {"assertions": "assert"}),
        ("shop/test_cart.py", "self.assertEqual(x, 1)\n", {"assertions": "unittest"}),
        ("shop/latest/cart.py", "assert x\n", {}),
        ("shop/examples/cart.py", "from shop import cart\n", {}),
    ],
)
def test_a_file_votes_only_on_what_its_place_lets_it_choose(path, code, votes):
    assert style_votes("", code, path) == votes


@pytest.mark.parametrize(
    ("path", "code", "votes"),
    [
        ("a.ts", "/** */\nexport function f(x: int) {\n  a;\n}\n", {"comment": "doc_comment", "style": "type_hints"}),
        ("a.ts", "function f(x) {\n  a;\n  b;\n}\n", {"comment": "no_doc_comment", "style": "no_type_hints"}),
        ("a.js", "function f(x) { return 'a' }\n", {"quotes": "single"}),
        ("a.rs", "/// Sum.\n#[inline]\nfn f(x: u8) -> u8 { x }\n", {"comment": "doc_comment"}),
        ("A.java", "class A {\n  /** Sum. */\n  int f(int x) { return x; }\n}\n", {"comment": "doc_comment"}),
        ("a.go", "// F sums.\nfunc F(x int) int { return x }\n", {"comment": "doc_comment"}),
        ("a.go", "// Of the file.\n\nfunc F(x int) int {\n\ta()\n\tb()\n}\n", {"comment": "no_doc_comment"}),
        ("a.md", "# load_all\n", {}),
    ],
)  # fmt: skip
def test_other_languages_vote_on_what_they_leave_open(path, code, votes):
    language = {"ts": "typescript", "js": "typescript", "rs": "rust", "java": "java", "go": "go"}.get(path[2:], "")
    assert style_votes("", code, path) == {f"{topic}:{language}": choice for topic, choice in votes.items()}


def test_an_underscore_in_a_path_says_nothing():
    assert style_votes("", "pass\n", "src/my_project/my_module.py") == {}


@pytest.mark.parametrize(
    ("votes", "of", "declared"),
    [(2, 2, 0), (3, 3, 1), (3, 4, 0), (10, 11, 1), (7, 10, 0), (80, 100, 1), (70, 100, 0)],
)
def test_a_habit_needs_enough_votes_and_a_clear_majority(votes, of, declared):
    assert Tally("naming", "snake_case", votes, of).is_declared == bool(declared)


def test_mixed_votes_count_against_every_choice():
    (tally,) = tallies([{"naming": "camelCase"}] * 3 + [{"naming": "mixed"}] * 4)
    assert (tally.choice, tally.votes, tally.of, tally.is_declared) == ("camelCase", 3, 7, False)
    (tally,) = tallies([{"naming": "mixed"}] * 9)
    assert not tally.is_declared


@given(st.lists(st.sampled_from(["a", "b", "c", "mixed"]), min_size=1))
def test_two_choices_are_never_both_declared(choices):
    (tally,) = tallies({"t": choice} for choice in choices)
    assert tally.of == len(choices)
    assert not tally.is_declared or tally.votes > tally.of / 2


def test_how_a_task_went_votes_too():
    tools = ["rg -n retry", "rg x", "grep y", "edit"]
    assert interaction_votes(tools, 12, 6) == {"tool": "rg", "interaction": "incremental", "organization": "multi_file"}
    assert interaction_votes(tools * 10, 11, 0)["interaction"] == "batch"
    assert interaction_votes([], 3, 0) == {}
