"""Who may do what, at which level: the table of G23 and R4, written out by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.cases import cases
from mnemarch import ActorKind, InvalidInput, Level, can_write
from mnemarch.policy.permissions import DEFAULT_TABLE, Deed, Policy, policy_from

A, O, H, S = "agent", "orchestrator", "human", "system"  # noqa: E741 - a table of letters
LEVELS = ("task", "worktree", "project", "org")
# deed: who at task, worktree, project, org
TABLE = {
    "write": ({A, O}, {A, O}, {O, H}, {H, S}),  # G23
    "archive": ({H, S}, {H, S}, {H, S}, {H, S}),  # R4 from here on
    "decay": ({H, S}, {H, S}, {H, S}, {H, S}),
    "prune": ({H, S}, {H, S}, {H, S}, {H, S}),
    "decide": ({H, O}, {H, O}, {H, O}, {H}),
    "approve": ({H, O}, {H, O}, {H, O}, {H}),
    "reject": ({H, O}, {H, O}, {H, O}, {H}),
    "annotate": ({H, O}, {H, O}, {H, O}, {H}),
    "supersede": ({H, O}, {H, O}, {H, O}, {H}),
    "erase": ({H, O}, {H, O}, {H, O}, {H}),
    "cite": ({A, O, H, S}, {A, O, H, S}, {A, O, H, S}, {A, O, H, S}),
    "use": ({A, O, H, S}, {A, O, H, S}, {A, O, H, S}, {A, O, H, S}),
    "resolve": ({H, O}, {H, O}, {H, O}, {H}),
    "revive": ({H, O, S}, {H, O, S}, {H, O, S}, {H, S}),
    "validate": ({H, O}, {H, O}, {H, O}, {H}),
    "unblock": ({H, O}, {H, O}, {H, O}, {H}),
    "undo": ({H, O}, {H, O}, {H, O}, {H}),
}
ROWS = {
    (deed, level, kind): kind in who
    for deed, cells in TABLE.items()
    for level, who in zip(LEVELS, cells, strict=True)
    for kind in (A, O, H, S)
}


def ruled(policy):
    """What a policy says of every row."""
    return {
        (deed, level, kind): policy.allows(ActorKind(kind), Deed(deed), Level.parse(level))
        for deed, level, kind in ROWS
    }


def test_the_table_above_rules_on_every_deed():
    assert set(TABLE) == {str(deed) for deed in Deed}
    assert set(DEFAULT_TABLE) == set(Deed)


def test_g23_r4_every_row_of_the_table():
    assert ruled(Policy()) == ROWS


def test_g22_can_write_follows_the_table():
    for (deed, level, kind), allowed in ROWS.items():
        if deed == "write":
            assert can_write(kind, level) is can_write(ActorKind(kind), Level.parse(level)) is allowed


@given(st.one_of(st.text(), st.none(), st.integers(5), st.lists(st.text()), st.floats(5)))
def test_g22_an_unknown_actor_or_level_may_write_nothing(unknown):
    if unknown not in list(ActorKind):
        assert can_write(unknown, "task") is False
    if not (isinstance(unknown, str) and unknown.lower() in LEVELS):
        assert can_write("agent", unknown) is False


def test_g23_project_and_org_ask_for_validation():
    policy = Policy()
    assert [policy.requires_validation(Level.parse(level)) for level in LEVELS] == [False, False, True, True]


@st.composite
def wishes(draw):
    """Some cells of the table, each with the kinds of actor wanted there."""
    cells = draw(
        st.dictionaries(
            st.tuples(st.sampled_from(list(TABLE)), st.sampled_from(LEVELS)),
            st.sets(st.sampled_from((A, O, H, S))),
            max_size=6,
        )
    )
    settings = {}
    for (deed, level), kinds in cells.items():
        settings.setdefault(deed, {})[level] = sorted(kinds)
    return cells, settings


@given(wishes(), st.booleans())
def test_r4_a_project_can_tighten_the_policy_and_loosens_it_only_when_it_says_unsafe(wish, unsafe):
    cells, settings = wish
    loosens = any(kinds - TABLE[deed][LEVELS.index(level)] for (deed, level), kinds in cells.items())
    given_settings = settings | ({"allow_unsafe": True} if unsafe else {})
    if loosens and not unsafe:
        with pytest.raises(InvalidInput) as caught:
            policy_from(given_settings)
        assert caught.value.hint
        return
    wished = {row: row[2] in cells[row[:2]] for row in ROWS if row[:2] in cells}
    assert ruled(policy_from(given_settings)) == ROWS | wished


def test_a_changed_policy_leaves_the_default_alone():
    policy_from({"write": {"task": []}, "allow_unsafe": True, "erase": {"org": ["agent"]}})
    assert ruled(Policy()) == ROWS


@pytest.mark.parametrize("levels", [["project"], ["org"], []])
def test_r4_dropping_validation_is_loosening(levels):
    with pytest.raises(InvalidInput):
        policy_from({"requires_validation": levels})
    policy = policy_from({"requires_validation": levels, "allow_unsafe": True})
    assert [level for level in LEVELS if policy.requires_validation(Level.parse(level))] == levels


def test_r4_asking_for_validation_at_more_levels_is_tightening():
    policy = policy_from({"requires_validation": ["task", "worktree", "project", "org"]})
    assert all(policy.requires_validation(level) for level in Level)


@pytest.mark.parametrize("saying", ["true", "yes", 1, "false", None, []])
def test_r4_only_a_plain_true_allows_an_unsafe_policy(saying):
    with pytest.raises(InvalidInput):
        policy_from({"write": {"org": ["agent"]}, "allow_unsafe": saying})


@pytest.mark.parametrize(
    "settings",
    cases("permissions", "an unknown policy setting is refused with a hint"),
    ids=str,
)
def test_an_unknown_policy_setting_is_refused_with_a_hint(settings):
    with pytest.raises(InvalidInput) as caught:
        policy_from(settings)
    assert caught.value.hint
