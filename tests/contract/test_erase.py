"""Erasure: the content is nowhere any more, and everything else is as it was (R16)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemarch
from mnemarch import Actor, Citation, EventType, InvalidInput, NotAllowed, NotFound, Scope, Status
from mnemarch.text.guarded import pieces

SECRET = "The seaside house has a turquoise door"
WORD = "turquoise"


def everything_said(memory, seats, tmp_path):
    """All that can be read of a memory, as one text."""
    path = tmp_path / f"export-{memory.stats().events}-{id(memory)}.jsonl"
    if not path.exists():
        memory.export(path)
    told = [path.read_text(encoding="utf-8"), *memory._engine.store.read(lambda reader: list(reader.rows()))]
    for scope in {event.scope for event in seats.events()}:
        seat = memory.seat(Actor.human("alice"), scope)
        for unit in seat.units(limit=1000):
            told += [repr(seat.get(unit.id)), repr(seat.history(unit.id)), repr(seat.explain(unit.id))]
        told += [repr(seat.conflicts()), repr(seat.proposals()), repr(seat.recall(f"seaside house {WORD} door", k=50))]
    return "\n".join(told)


def test_r16_erased_content_is_nowhere_and_the_chain_and_the_state_hold(memory, seats, tmp_path):
    agent, boss, human = seats.agent(), seats.orchestrator(), seats.human()
    unit = agent.remember(SECRET, level="worktree", attributes={"quote": SECRET}).unit
    seats.agent("coder-2").remember(SECRET.upper(), level="worktree")
    rival = agent.remember("The seaside house has no turquoise door", level="worktree").unit
    agent.log("note", f"I learned that {SECRET}, today", data={"deep": [{"x": SECRET}]})
    agent.log("plan", "Innocent entry")
    other = agent.remember("Delivery takes two days", level="worktree").unit
    human.approve(other.id)
    human.reject(other.id, f"because {SECRET}")
    agent.recall("seaside house")
    assert agent.remember(f"Wide: {SECRET}", level="project").rule == "G23"
    erased = boss.erase(unit.id, "privacy")
    assert unit.id in erased.units
    assert erased.events >= 4
    boss.erase(rival.id, "privacy")
    assert WORD not in everything_said(memory, seats, tmp_path).lower()
    assert memory.audit().ok
    assert memory.rebuild().same
    gone = agent.get(unit.id)
    assert (gone.content, gone.status, gone.citations, gone.provenance) == ("", Status.ARCHIVED, (), ())
    kept = agent.get(other.id)
    assert (kept.content, kept.status) == ("Delivery takes two days", Status.ARCHIVED)
    texts = [event.payload["text"] for event in seats.events() if event.payload and event.type is EventType.LOGGED]
    assert texts == ["Innocent entry"]
    assert agent.recall("seaside house").items == ()


def test_r16_an_episode_that_quotes_the_content_goes_too(memory, seats, tmp_path):
    agent = seats.agent()
    unit = agent.remember(SECRET).unit
    agent.log("plan", SECRET)
    agent.log("error", f"Failed: {SECRET}")
    episode = agent.verify(False).episode_id
    innocent = seats.agent(task="T-2").verify(False).episode_id
    erased = seats.human().erase(unit.id, "privacy")
    assert set(erased.units) == {unit.id, episode}
    assert agent.get(episode).content == ""
    assert agent.get(innocent).content
    assert WORD not in everything_said(memory, seats, tmp_path)
    assert memory.rebuild().same
    assert memory.audit().ok


NASTY = {
    "quotes": 'The "turquoise" door of the seaside house',
    "backslash": "C:\\turquoise\\door of the house",
    "newline": "The turquoise\ndoor of the house",
    "tab": "The turquoise\tdoor of the house",
    "nul": "The turquoise\x00door of the house",
    "korean": "바닷가 집의 turquoise 문은 파랗다",
    "emoji": "The turquoise 🚪 of the house",
    "separator": "The turquoise\u2028door of the house",
    "sql": "100% of turquoise_doors",
}


QUOTED = {
    "log": lambda agent, text: agent.log("note", f"seen: {text}"),
    "json in a log": lambda agent, text: agent.log(
        "tool", "output", data={"stdout": json.dumps({"answer": text}, ensure_ascii=False)}
    ),
    "episode input": lambda agent, text: (
        agent.log("plan", "Start", data={"context": {"said": text}}),
        agent.verify(True),
    ),
    "episode output": lambda agent, text: (
        agent.log("plan", "Start"),
        agent.log("result", "End", data={"said": text}),
        agent.verify(True),
    ),
    "analysis": lambda agent, text: agent.verify(
        True, analysis={"critique": "fine", "result": {"said": [text]}, "key_decisions": [text]}
    ),
    "refused claim": lambda agent, text: agent.remember(f"Wide: {text}", level="project"),
    "test name": lambda agent, text: agent.verify(True, tests=[f"test[{text}]"]),
    "reason": lambda agent, text: agent.mark_stuck(f"because {text}"),
}


@pytest.mark.parametrize("shape", NASTY)
@pytest.mark.parametrize("way", [*QUOTED, "reason of a rejection"])
def test_r16_every_quote_of_an_erased_text_is_erased(memory, seats, tmp_path, shape, way):
    content = NASTY[shape]
    agent, human = seats.agent(), seats.human()
    unit = agent.remember(content).unit
    other = agent.remember("Delivery takes two days").unit
    if way == "reason of a rejection":
        human.reject(other.id, f"because {content}")
    else:
        QUOTED[way](agent, content)
    human.erase(unit.id, "privacy")
    assert WORD not in everything_said(memory, seats, tmp_path)
    assert memory.audit().ok
    assert memory.rebuild().same


def test_r16_another_projects_identical_text_stays(memory, seats):
    stranger = seats.agent(project="bank")
    theirs = stranger.remember(SECRET).unit
    stranger.log("note", SECRET)
    ours = seats.agent().remember(SECRET).unit
    seats.human().erase(ours.id, "privacy")
    assert stranger.get(theirs.id) == theirs
    assert [item.unit.id for item in stranger.recall("seaside house").items] == [theirs.id]
    assert len([event for event in seats.events() if event.stream.project == "bank" and not event.erased]) >= 2
    assert memory.rebuild().same


def test_r16_erasing_again_is_harmless(memory, seats):
    unit = seats.agent().remember(SECRET).unit
    seats.human().erase(unit.id, "privacy")
    before = [str(event.type) for event in seats.events()]
    assert seats.human().erase(unit.id, "privacy").units == (unit.id,)
    assert [str(event.type) for event in seats.events()] == before


def test_r16_an_erased_unit_cannot_be_changed(seats):
    unit = seats.agent().remember(SECRET).unit
    seats.human().erase(unit.id, "privacy")
    for call in (
        lambda: seats.human().approve(unit.id),
        lambda: seats.human().revive(unit.id, "why"),
        lambda: seats.agent().cite(unit.id, Citation.test("t")),
        lambda: seats.agent().use(unit.id),
    ):
        with pytest.raises(mnemarch.NotFound):
            call()


def test_r16_a_second_erasure_that_empties_the_first_keeps_the_state_reproducible(memory, seats):
    """The second erasure takes out the payload of the first, which alone said what else was gone."""
    agent, human = seats.agent(), seats.human()
    first = agent.remember(SECRET).unit
    agent.log("plan", SECRET)
    agent.verify(False)
    agent.recall("seaside house")
    other = agent.remember("Delivery takes two days and three nights").unit
    human.reject(other.id, f"because {SECRET}")
    human.erase(first.id, "privacy")
    human.erase(other.id, "privacy")
    rebuilt = memory.rebuild()
    assert rebuilt.same
    assert agent.get(first.id).content == ""


def test_r4_an_orchestrator_does_not_reach_an_org_unit_by_erasing_a_narrower_one(memory, seats):
    wide = seats.vouched(f"Policy of all: {SECRET} and stays locked", level="org").unit
    narrow = seats.agent().remember(SECRET, level="task").unit
    with pytest.raises(InvalidInput, match=wide.id):
        seats.orchestrator().erase(narrow.id, "tidy")
    with pytest.raises(NotAllowed):
        seats.orchestrator().erase(narrow.id, "tidy", quoting=True)
    assert seats.human().get(wide.id) == wide
    assert seats.agent().get(narrow.id) == narrow


def test_r16_the_reason_must_not_quote_the_erased_text(memory, seats):
    unit = seats.agent().remember(SECRET).unit
    for reason in (SECRET, f"Remove '{SECRET}' please"):
        with pytest.raises(InvalidInput):
            seats.human().erase(unit.id, reason)
    assert seats.agent().get(unit.id) == unit


def test_r16_erased_text_can_be_remembered_anew(seats):
    unit = seats.agent().remember(SECRET, key="k").unit
    seats.human().erase(unit.id, "privacy")
    again = seats.agent().remember(SECRET)
    assert not again.merged
    assert again.unit.id != unit.id
    assert seats.agent().recall("seaside house").items[0].unit.id == again.unit.id


# A random life


texts = st.sampled_from(
    [
        "Checkout retries 3 times",
        "Checkout retries 5 times",
        "Checkout retries 3 times and then it stops",
        "Delivery takes two days",
        "Delivery does not take two days",
    ]
)
steps = st.lists(
    st.one_of(
        *(
            st.tuples(st.just(verb), texts, st.integers(0, 3))
            for verb in ("log", "remember", "wide", "recall", "verify", "fail")
        ),
        st.tuples(
            st.sampled_from(
                ["use", "approve", "reject", "archive", "revive", "erase", "promote", "supersede", "cite", "resolve"]
            ),
            texts,
            st.integers(0, 9),
        ),
    ),
    max_size=25,
)


def live(memory, story):
    """Whatever these verbs answer, each happens wholly or not at all."""
    for verb, text, number in story:
        scope = Scope(org="o", project="p", worktree="w", task=f"t{number % 3}")
        agent, human = memory.seat(Actor.agent(f"a{number % 2}"), scope), memory.seat(Actor.human("h"), scope)
        keeper = memory.seat(Actor.human("keeper"), scope)
        units = agent.units(limit=100)
        one = units[number % len(units)] if units else None
        two = units[(number + 1) % len(units)] if units else None
        try:
            match verb:
                case "log":
                    agent.log("plan", text)
                case "remember":
                    agent.remember(text, level="worktree" if number % 2 else "task")
                case "wide":
                    human.remember(text, level="project", citations=[Citation.human("h")])
                case "recall":
                    agent.recall(text)
                case "verify" | "fail":
                    agent.verify(verb == "verify", tests=["t"])
                case "cite" if one:
                    agent.cite(one.id, Citation.test("t"))
                case "use" if one:
                    agent.use(one.id)
                case "approve" if one:
                    human.approve(one.id)
                case "promote" if one:
                    human.promote(one.id, to="project")
                case "reject" | "erase" if one:
                    getattr(human, verb)(one.id, f"because {text}")
                case "archive" | "revive" if one:
                    getattr(keeper, verb)(one.id, f"because {text}")
                case "supersede" if one:
                    human.supersede(two.id, one.id, f"because {text}")
                case "resolve" if human.conflicts():
                    conflict = human.conflicts()[0]
                    human.resolve(conflict.id, winner=conflict.units[number % 2], reason=f"because {text}")
        except mnemarch.MnemarchError as error:
            assert error.hint, error  # noqa: PT017 - a refusal is a right answer here


@pytest.mark.long
@settings(max_examples=150)
@given(steps)
def test_r1_after_any_story_the_log_alone_gives_the_same_state(story):
    with mnemarch.open(":memory:") as memory:
        live(memory, story)
        assert memory.audit().ok
        rebuilt = memory.rebuild()
        assert rebuilt.same
        assert memory.rebuild().digest_after == rebuilt.digest_before


@settings(max_examples=10)
@given(steps)
def test_r1_after_any_story_the_log_alone_gives_the_same_state_on_disk(tmp_path_factory, story):
    with mnemarch.open(tmp_path_factory.mktemp("life")) as memory:
        live(memory, story)
        assert memory.audit().ok
        assert memory.rebuild().same


def test_erasing_clears_the_caches_of_the_erased_text(memory, seats):
    unit = seats.agent().remember(SECRET).unit
    assert pieces.cache_info().currsize > 0
    seats.human().erase(unit.id, "private")
    assert pieces.cache_info().currsize == 0


def test_r16_units_that_quote_the_text_are_erased_only_with_quoting(memory, seats, tmp_path):
    unit = seats.agent().remember("The door is turquoise", level="worktree").unit
    own = seats.agent("coder-2").remember("The door is turquoise, the roof is not", level="worktree").unit
    elsewhere = seats.agent(worktree="w2").remember("Note to self: The door is turquoise")
    with pytest.raises(InvalidInput, match=own.id) as refused:
        seats.human().erase(unit.id, "privacy")
    assert "2 other unit(s)" in refused.value.message
    assert elsewhere.unit.id not in refused.value.message, "what this seat does not see is counted, not named"
    assert "quoting" in refused.value.hint
    assert seats.agent().get(unit.id) == unit
    erased = seats.human().erase(unit.id, "privacy", quoting=True)
    assert set(erased.units) == {unit.id, own.id, elsewhere.unit.id}
    assert WORD not in everything_said(memory, seats, tmp_path)
    assert memory.rebuild().same
    assert memory.audit().ok


def test_r16_the_same_statement_of_others_is_the_content(memory, seats, tmp_path):
    unit = seats.agent().remember(SECRET, level="task").unit
    wider = seats.agent().remember(SECRET.upper() + "!", level="worktree").unit
    erased = seats.human().erase(unit.id, "privacy")
    assert unit.id in erased.units
    if wider.id not in erased.units:  # Other letters are other bytes; it can be erased by itself.
        seats.human().erase(wider.id, "privacy")
    assert WORD not in everything_said(memory, seats, tmp_path).lower()


def test_r16_a_log_entry_is_erased_with_its_quotes(memory, seats, tmp_path):
    agent = seats.agent()
    entry = agent.log("thought", f"My word is {SECRET}").event_id
    agent.log("note", f"He said: My word is {SECRET}.")
    kept = agent.log("note", "Innocent entry").event_id
    agent.verify(False)
    erased = seats.human(task="T-1").erase(entry, "privacy")
    assert erased.events >= 2
    assert WORD not in everything_said(memory, seats, tmp_path)
    assert next(event for event in seats.events() if event.id == kept).payload["text"] == "Innocent entry"
    assert memory.audit().ok
    assert memory.rebuild().same
    with pytest.raises(InvalidInput, match="erased already"):
        seats.human(task="T-1").erase(entry, "privacy")


def test_r16_erasing_a_log_entry_takes_the_permission_to_erase_in_its_scope(memory, seats):
    entry = seats.agent().log("thought", SECRET).event_id
    with pytest.raises(NotAllowed):
        seats.agent().erase(entry, "tidy")
    for stranger in (seats.human(task="T-2"), seats.human(project="bank", task="T-1")):
        with pytest.raises(NotFound):
            stranger.erase(entry, "tidy")
    verified = seats.agent().verify(True)
    other = next(event.id for event in seats.events() if event.type is EventType.TASK_VERIFIED)
    assert verified
    with pytest.raises(InvalidInput, match="not an entry of the log"):
        seats.human(task="T-1").erase(other, "tidy")
    assert any((event.payload or {}).get("text") == SECRET for event in seats.events())
