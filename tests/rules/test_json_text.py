"""Reading and writing JSON by the C half of `json` alone is the same as by the whole."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch.errors import InvalidInput
from mnemarch.model.json_text import canonical_json, from_json, json_needles, kept_json, to_json

_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_trees = st.recursive(_scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


@given(_trees)
def test_to_json_writes_what_json_dumps_writes(tree: object) -> None:
    assert to_json(tree) == json.dumps(tree)
    assert from_json(to_json(tree)) == tree


@given(_trees.filter(lambda tree: "inf" not in repr(tree)))
def test_the_canonical_form_is_sorted_and_compact(tree: object) -> None:
    assert canonical_json(tree) == json.dumps(tree, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


@given(st.lists(st.text() | st.none()))
def test_kept_json_is_a_compact_array(names: list[str | None]) -> None:
    assert kept_json(*names) == json.dumps(names, separators=(",", ":"))


@given(st.text(alphabet='{}[]",:0123456789.eE+-tfn \n\tNaIuly\\u0041\ufeff', max_size=24))
def test_any_text_is_read_or_refused_as_json_does(text: str) -> None:
    try:
        wanted = repr(json.loads(text))
    except ValueError:
        wanted = "refused"
    try:
        found = repr(from_json(text))
    except ValueError:
        found = "refused"
    assert found == wanted


def test_space_around_a_value_and_constants_are_read() -> None:
    assert from_json(' {"a": [1, 2.5]}\n') == {"a": [1, 2.5]}
    assert math.isnan(from_json("[NaN]")[0])
    assert from_json("[-Infinity, Infinity]") == [-math.inf, math.inf]


@pytest.mark.parametrize("content", [{"a": object()}, [math.nan], {"b": {1, 2}}, [math.inf]])
def test_a_value_that_is_no_json_is_refused_and_leaves_no_state_behind(content: object) -> None:
    for _ in range(2):
        with pytest.raises(InvalidInput, match="can't be stored as JSON"):
            canonical_json(content)
    assert canonical_json([content is None]) == "[false]"


def test_a_circular_list_is_refused_and_can_be_written_once_it_is_not() -> None:
    circle: list[object] = [1]
    circle.append(circle)
    with pytest.raises(InvalidInput, match="Circular"):
        canonical_json(circle)
    circle.pop()
    assert canonical_json(circle) == "[1]"


@given(st.text())
def test_needles_are_the_text_as_it_stands_inside_json(text: str) -> None:
    assert json.dumps(text, ensure_ascii=False)[1:-1] in json_needles(text)
    assert json.dumps(json.dumps(text)[1:-1], ensure_ascii=False)[1:-1] in json_needles(text)


def test_a_cold_recall_compiles_no_pattern(tmp_path: object) -> None:
    """`re` and what it takes are a sixth of a cold start; a plain question over a plain memory does without."""
    code = (
        "import sys, mnemarch\n"
        "from mnemarch import Actor, Scope\n"
        f"memory = mnemarch.open({str(tmp_path)!r})\n"
        "seat = memory.seat(Actor.agent('a'), Scope(project='p', task='t'))\n"
        "seat.log('thought', 'the pool of checkout is too small')\n"
        "assert seat.recall('which pool is too small').items == ()\n"
        "print([name for name in ('re', 'json', 'enum', 'threading', 'dataclasses', 'typing') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
