"""Scopes: addresses whose segments are only characters (G5, R3)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch import Actor, InvalidInput, Level, Scope
from mnemarch.testing import HOSTILE_NAMES

hostile = st.one_of(
    st.sampled_from(HOSTILE_NAMES),
    st.text(alphabet='a%_/:\\\'" -\0,[]"nul', min_size=1, max_size=6),
    st.text(min_size=1, max_size=8),
).filter(lambda text: text.strip() and not any("\ud800" <= character <= "\udfff" for character in text))


@st.composite
def scopes(draw):
    org = draw(hostile)
    project = draw(st.none() | hostile)
    worktree = draw(st.none() | hostile) if project else None
    task = draw(st.none() | hostile) if project else None
    return Scope(org=org, project=project, worktree=worktree, task=task)


@given(scopes(), scopes())
def test_r3_two_addresses_have_one_key_only_if_they_are_one(left, right):
    assert (left.key == right.key) is (left.segments == right.segments) is (left == right)


@given(scopes())
def test_r3_a_key_is_fixed_and_survives_a_round_trip(scope):
    assert Scope.of(scope.segments) == scope
    assert Scope.of(scope.segments).key == scope.key
    assert scope.key.isalnum()


def test_r3_segments_do_not_run_into_each_other():
    places = [
        Scope(org="a", project="b/c"),
        Scope(org="a/b", project="c"),
        Scope(org="a", project="b", worktree="c"),
        Scope(org="a", project="b", task="c"),
        Scope(org="a", project="b", worktree="c", task="c"),
        Scope(org='a", "b', project="c"),
        Scope(org="a", project="null"),
        Scope(org="a"),
    ]
    assert len({place.key for place in places}) == len(places)


@given(scopes(), scopes())
def test_r3_a_reader_never_sees_a_foreign_address(reader, unit):
    visible = unit.key in {seen.key for seen in reader.visible}
    ours, theirs = reader.segments, unit.segments
    prefix = all(there is None or there == here for here, there in zip(ours, theirs, strict=True))
    own = {
        Level.ORG: theirs == [ours[0], None, None, None],
        Level.PROJECT: ours[1] is not None and theirs == [*ours[:2], None, None],
        Level.WORKTREE: ours[2] is not None and theirs == [*ours[:3], None],
        Level.TASK: ours[3] is not None and theirs == ours,
    }
    assert visible is any(own.values())
    if visible:
        assert prefix


@given(scopes())
def test_r3_a_reader_sees_its_own_address_and_each_wider_one_narrowest_first(scope):
    visible = scope.visible
    assert visible[0] == scope
    assert visible[-1] == Scope(org=scope.org)
    assert [place.level for place in visible] == sorted({place.level for place in visible})
    assert len(visible) == sum(segment is not None for segment in scope.segments)


@given(scopes(), st.sampled_from(list(Level)))
def test_g5_an_address_is_cut_off_at_a_level_it_has_and_at_no_other(scope, level):
    segments = dict(zip((Level.ORG, Level.PROJECT, Level.WORKTREE, Level.TASK), scope.segments, strict=True))
    if segments[level] is None:
        with pytest.raises(InvalidInput) as caught:
            scope.at(level)
        assert caught.value.hint
        return
    cut = scope.at(level)
    assert cut.level is level
    assert cut.segments == [segment if at >= level else None for at, segment in segments.items()]
    assert cut in scope.visible


def test_g5_levels_are_ordered():
    assert [int(level) for level in (Level.TASK, Level.WORKTREE, Level.PROJECT, Level.ORG)] == [1, 2, 3, 4]
    assert Level.parse("Task") is Level.TASK
    assert [str(level) for level in Level] == ["task", "worktree", "project", "org"]


@pytest.mark.parametrize("name", ["", "tusk", 0, 5, -1, None, 1.5, [], "task "])
def test_an_unknown_level_is_refused(name):
    with pytest.raises(InvalidInput) as caught:
        Level.parse(name)
    assert caught.value.hint


@pytest.mark.parametrize(
    "segments",
    [
        {"org": ""},
        {"org": " "},
        {"org": None},
        {"org": "a", "project": ""},
        {"org": "a", "project": "\t\n"},
        {"org": "a", "project": 5},
        {"org": "a", "worktree": "w"},
        {"org": "a", "task": "t"},
        {"org": "a", "project": "p", "task": ""},
        {"org": "a", "project": "p", "worktree": b"w"},
        {"org": "a\ud800"},
        {"org": "a", "project": "p", "task": "\udfff"},
    ],
    ids=str,
)
def test_an_address_that_names_nothing_is_refused(segments):
    with pytest.raises(InvalidInput) as caught:
        Scope(**segments)
    assert caught.value.hint


@given(st.sampled_from(["agent", "orchestrator", "human", "system"]), hostile)
def test_an_actor_reads_back_as_it_is_written(kind, name):
    assert Actor.parse(str(Actor(kind, name))) == Actor(kind, name)


@pytest.mark.parametrize("text", ["", "agent", "agent:", "agent: ", "robot:x", ":x", "Agent:x", "agent:\ud800"])
def test_a_text_that_names_no_actor_is_refused(text):
    with pytest.raises(InvalidInput) as caught:
        Actor.parse(text)
    assert caught.value.hint
