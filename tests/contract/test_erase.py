"""Erasure: the content is nowhere any more, and everything else is as it was (R16)."""

from __future__ import annotations

import json
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mnemarch
from mnemarch import Actor, Citation, EventType, InvalidInput, NotAllowed, NotFound, Refused, Scope, Status
from mnemarch.errors import StoreUnavailable
from mnemarch.model.testrun import Outcome, TestResult, TestRun
from mnemarch.text.guarded import pieces

SECRET = "The seaside house has a turquoise door"
WORD = "turquoise"


def everything_said(memory, seats, tmp_path):
    """All that can be read of a memory, as one text."""
    path = tmp_path / f"export-{memory.stats().events}-{id(memory)}.jsonl"
    if not path.exists():
        memory.export(path)
    told = [
        path.read_text(encoding="utf-8"),
        *memory._engine.store.read(lambda reader: [str(row) for row in reader.rows()]),
    ]
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
    erased = boss.erase(unit.id, "privacy", copies=True)
    assert unit.id in erased.units
    assert erased.events >= 4
    boss.erase(rival.id, "privacy", copies=True)
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
    assert episode in {copy.id for copy in seats.human().erase(unit.id, "privacy", dry_run=True).copies}
    erased = seats.human().erase(unit.id, "privacy", copies=True)
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
def test_r16_every_copy_of_an_erased_text_is_listed_and_goes_if_it_is_meant(memory, seats, tmp_path, shape, way):
    content = NASTY[shape]
    agent, human = seats.agent(), seats.human()
    unit = agent.remember(content).unit
    other = agent.remember("Delivery takes two days").unit
    if way == "reason of a rejection":
        human.reject(other.id, f"because {content}")
    else:
        QUOTED[way](agent, content)
    preview = human.erase(unit.id, "privacy", dry_run=True)
    assert (preview.units, preview.dry_run, human.get(unit.id)) == ((unit.id,), True, unit)
    human.erase(unit.id, "privacy", copies=[copy.id for copy in preview.copies])
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
    with pytest.raises(NotFound):
        seats.orchestrator().erase(narrow.id, "tidy", copies=[wide.id])
    assert seats.orchestrator().erase(narrow.id, "tidy", copies=True).copies == (), "not its to erase, so not listed"
    assert seats.human().get(wide.id) == wide


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
            for verb in ("log", "remember", "wide", "recall", "verify", "fail", "undo", "revert")
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
                case "reject" if one:
                    human.reject(one.id, f"because {text}")
                case "erase" if one:
                    human.erase(one.id, "private", copies=bool(number % 2))
                case "archive" | "revive" if one:
                    getattr(keeper, verb)(one.id, f"because {text}")
                case "supersede" if one:
                    human.supersede(two.id, one.id, f"because {text}")
                case "undo":
                    human.undo(f"agent:a{number % 2}", reason=f"because {text}")
                case "revert" if undone := human.events(types=["actor.undone"], limit=1):
                    human.revert(undone[0].id)
                case "resolve" if human.conflicts():
                    conflict = human.conflicts()[0]
                    human.resolve(conflict.id, winner=conflict.units[number % 2], reason=f"because {text}")
        except mnemarch.MnemarchError as error:
            assert error.hint, error  # noqa: PT017 - a refusal is a right answer here


@pytest.mark.long
@settings(max_examples=60)
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


def test_r16_copies_are_listed_and_stay_unless_they_are_meant(memory, seats, tmp_path):
    unit = seats.agent().remember("The door is turquoise", level="worktree").unit
    own = seats.agent("coder-2").remember("The door is turquoise, the roof is not", level="worktree").unit
    elsewhere = seats.agent(worktree="w2").remember("Note to self: THE DOOR is turquoise!").unit
    note = seats.agent(task="T-2").log("note", "He said: the door is turquoise.").event_id
    other_topic = seats.agent(task="T-2").log("note", "The door is turquoiseish").event_id
    left = seats.human().erase(unit.id, "privacy").copies
    assert {(copy.id, copy.what, copy.scope.worktree, str(copy.actor)) for copy in left} == {
        (own.id, "fact", "main", "agent:coder-2"),
        (elsewhere.id, "fact", "w2", "agent:coder-1"),
        (note, "logged", "main", "agent:coder-1"),
    }
    assert (seats.agent().get(unit.id).content, seats.agent().get(own.id)) == ("", own)
    assert memory.rebuild().same
    again = seats.agent().remember("The door is turquoise", level="worktree").unit
    chosen = seats.human().erase(again.id, "privacy", copies=[elsewhere.id])
    assert set(chosen.units) == {again.id, elsewhere.id}
    assert {copy.id for copy in chosen.copies} == {own.id, note}
    assert seats.human().erase(own.id, "privacy").copies == (), "what holds a part of it is no copy"
    kept = [event.id for event in seats.events() if event.type is EventType.LOGGED and not event.erased]
    assert kept == [note, other_topic]


@pytest.mark.parametrize("text", ["retrying", "재시도", "retry again", "fact", "plan", "shop", "text"])
def test_r16_a_short_text_is_copied_only_where_it_is_all_that_is_said(memory, seats, text):
    entry = seats.agent().log("plan", text).event_id
    same = seats.agent(task="T-2").log("note", f"{text.upper()}!").event_id
    for n in range(20):
        seats.agent(task=f"T-{n}").log("plan", f"{text} the upload for the {n}th time")
        seats.agent(task=f"T-{n}").fail(f"TimeoutError: {text} {n} failed", approach=f"{text} with a longer timeout")
        seats.agent(task=f"T-{n}").remember(f"Upload {n} goes on {text} in shop")
    before = {event.id: event.body for event in seats.events()}
    erased = seats.human().erase(entry, "asked for")
    assert (erased.units, erased.events, [copy.id for copy in erased.copies]) == ((), 1, [same])
    changed = [id for id, body in before.items() if body != {each.id: each.body for each in seats.events()}[id]]
    assert changed == [entry]
    assert memory.audit().ok


def test_r16_what_cites_an_entry_and_repeats_it_goes_with_it(memory, seats, tmp_path):
    agent, human = seats.agent(), seats.human()
    entry = agent.log("thought", SECRET, key=SECRET).event_id
    quote = agent.remember(f"It is known that {SECRET}", citations=[Citation.log(entry)]).unit
    agent.log("note", f"as {entry} says: {SECRET}")
    other = agent.remember("The door was painted in May", citations=[Citation.log(entry)]).unit
    evidence = human.decisions.add_evidence(f"Seen: {SECRET}")
    proposal = human.decisions.propose(
        f"Since {SECRET}, paint the roof too", reason={"type": "ux", "summary": "it fits"}, evidence=[evidence.id]
    )
    decision = human.decisions.commit(proposal)
    erased = human.erase(entry, "privacy")
    assert (erased.units, erased.events) == ((quote.id,), 3)
    assert {copy.id for copy in erased.copies} == {evidence.id, decision.id}, "what somebody decided is a copy"
    assert agent.get(other.id).content == other.content
    human.erase(evidence.id, "privacy")
    human.erase(decision.id, "privacy")
    assert WORD not in everything_said(memory, seats, tmp_path)
    assert memory.rebuild().same


def test_r16_an_episode_that_kept_only_the_beginning_of_an_entry_goes_too(memory, seats, tmp_path):
    agent = seats.agent()
    agent.log("plan", "Paint it")
    entry = agent.log("error", f"{SECRET} {'and so on ' * 50}").event_id
    agent.log("result", "Painted")
    episode = agent.verify(False).episode_id
    assert seats.human().erase(entry, "privacy").units == (episode,)
    assert WORD not in everything_said(memory, seats, tmp_path)


def test_r16_an_episode_that_kept_one_line_of_an_error_goes_with_it(memory, seats, tmp_path):
    agent = seats.agent()
    trace = "\n".join(["Traceback (most recent call last):", *["  File x"] * 40, f"ValueError: {SECRET}"])
    entry = agent.fail(trace, approach="paint it").receipt.event_id
    episode = agent.verify(False).episode_id
    assert seats.human().erase(entry, "privacy").units == (episode,)
    assert WORD not in everything_said(memory, seats, tmp_path)


def test_r16_the_claim_that_waited_and_the_twin_that_was_folded_in_go_with_the_unit(memory, seats, tmp_path):
    human = seats.human()
    assert isinstance(seats.orchestrator().remember(SECRET, level="project", citations=[Citation.test("t")]), Refused)
    narrow = seats.agent(worktree="w2").remember(SECRET, level="worktree").unit
    (unit,) = seats.saw("t").units
    human_there = seats.human(worktree="w2")
    human_there.approve(narrow.id)
    assert human_there.promote(narrow.id, to="project").unit.id == unit.id
    erased = human.erase(unit.id, "privacy")
    assert set(erased.units) == {unit.id, narrow.id}
    assert erased.copies == ()
    assert WORD not in everything_said(memory, seats, tmp_path)


def test_r16_an_erasure_says_nothing_of_what_the_caller_can_not_see(memory, seats):
    stranger = seats.agent(project="bank")
    stranger.remember(SECRET)
    theirs = stranger.log("note", f"He said: {SECRET}").event_id
    lead = seats.human()
    mine, alone = seats.agent().log("note", SECRET).event_id, seats.agent().log("note", SECRET[::-1]).event_id
    answers = [lead.erase(id, "privacy", dry_run=True) for id in (mine, alone)]
    assert answers[0] == answers[1]
    refusals = []
    for id in (theirs, "0" * 8 + theirs[8:]):
        with pytest.raises(NotFound) as refused:
            lead.erase(id, "privacy")
        refusals.append((refused.value.message.replace(id, "ID"), refused.value.hint))
    assert refusals[0] == refusals[1]
    assert lead.erase(mine, "privacy", copies=True).copies == ()
    assert any(SECRET in (event.body or "") for event in seats.events()), "theirs"


def test_r16_a_log_entry_is_erased_and_an_interrupted_erasure_is_finished(memory, seats, tmp_path, monkeypatch):
    agent, human = seats.agent(), seats.human()
    entry = agent.log("thought", f"My word is {SECRET}").event_id
    agent.log("note", f"He said: My word is {SECRET}.")
    kept = agent.log("note", "Innocent entry").event_id
    episode = agent.verify(False).episode_id

    def busy(*_):
        raise StoreUnavailable("Another process is indexing.")

    with monkeypatch.context() as patched:
        patched.setattr(memory._engine.finder, "index_patiently", busy)
        with pytest.raises(StoreUnavailable):
            human.erase(entry, "privacy", copies=True)
    assert WORD not in everything_said(memory, seats, tmp_path)
    assert next(event for event in seats.events() if event.id == kept).payload["text"] == "Innocent entry"
    assert memory.audit().ok
    assert memory.rebuild().same
    again = human.erase(entry, "privacy")
    assert (again.units, again.events) == ((episode,), 0), "so that its vectors go too"


def test_r16_erasing_a_log_entry_takes_the_permission_to_erase_in_its_scope(memory, seats):
    entry = seats.agent().log("thought", SECRET).event_id
    with pytest.raises(NotAllowed):
        seats.agent().erase(entry, "tidy")
    with pytest.raises(NotFound):
        seats.human(project="bank", task="T-1").erase(entry, "tidy")
    unit = seats.agent().remember("Delivery takes two days").unit
    (born,) = seats.agent().history(unit.id)
    with pytest.raises(InvalidInput, match="not an entry of the log") as refused:
        seats.human(task="T-1").erase(born.id, "tidy")
    assert unit.id in refused.value.hint
    assert any((event.payload or {}).get("text") == SECRET for event in seats.events())
    with pytest.raises(NotFound) as elsewhere:
        seats.human(worktree=None, task=None).erase(entry, "tidy")
    assert "T-1" in elsewhere.value.hint, "people may inspect what lies below"


def test_r16_an_episode_that_kept_the_beginning_of_a_long_entry_goes_with_it(seats):
    agent = seats.agent()
    entry = agent.log("note", "Zanzibar customer " + "abcdefghi " * 500)
    agent.verify(True)
    seats.human().erase(entry.event_id, "private", copies=True)
    assert not any("Zanzibar" in (event.body or "") for event in agent.events())


def test_r16_a_text_of_another_org_that_names_the_id_is_left_alone(seats):
    text = "The vault code of the blue house is in the garden"
    entry = seats.agent().log("note", text)
    there = seats.agent(org="zorg", project="other")
    theirs = there.log("note", text, data={"see": entry.event_id})
    erased = seats.human().erase(entry.event_id, "private", copies=True)
    assert (erased.units, erased.events) == ((), 1)
    assert there.show(theirs.event_id).payload["text"] == text


def test_r16_a_word_that_another_cites_does_not_take_their_sentence(seats):
    entry = seats.agent().log("note", "deploy")
    other = seats.agent("other").remember(
        "We deploy the whole shop on Mondays after the standup", citations=[Citation.log(entry.event_id)]
    )
    seats.human().erase(entry.event_id, "private")
    assert seats.agent("other").get(other.unit.id).content


@pytest.mark.parametrize(
    "text",
    [
        "Der Schlüssel läge im Büro",
        "Ключ лежит в кабинете",
        "관리자 열쇠는 서랍에 있다",
        "Ça gît à Épée",
        "El niño comió",
    ],
)
def test_r16_copies_in_another_case_or_normal_form_are_listed(seats, text):
    unit = seats.human().remember(text, level="project").unit
    forms = [normalize(form, case) for form in ("NFC", "NFD") for case in (text, text.upper(), text.lower())]
    entries = {seats.agent().log("note", f"{form} 1", data={"n": n}).event_id for n, form in enumerate(set(forms))}
    decomposed = seats.human().remember(normalize("NFD", f"{text} 2"), level="project").unit
    assert {copy.id for copy in seats.human().erase(unit.id, "private", dry_run=True).copies} >= entries
    copies = {copy.id for copy in seats.human().erase(decomposed.id, "private", dry_run=True).copies}
    assert unit.id not in copies


def test_r16_an_erasure_leaves_the_checkpoints_of_other_projects_alone(tmp_path):
    with mnemarch.open(tmp_path) as memory:
        texts = {}
        for project in ("shop", "bank"):
            seat = memory.seat(Actor.human("alice"), Scope(project=project))
            seat.graph.upsert_query("s", SECRET)
            texts[project] = seat.graph.finalize_session("s", checkpoint_name=project).checkpoint
        seat = memory.seat(Actor.human("alice"), Scope(project="shop"))
        unit = seat.remember(SECRET).unit
        erased = seat.erase(unit.id, "private")
    said = {project: WORD in Path(path).read_text(encoding="utf-8") for project, path in texts.items()}
    assert said == {"shop": False, "bank": True}
    assert erased.files


def test_an_erased_run_of_tests_leaves_its_tests_as_they_stand(memory, seats):
    def ran(outcome, output=""):
        results = (TestResult("tests/test_cart.py::test_total", outcome),)
        return TestRun("pytest", "pytest", results, int(outcome is Outcome.FAIL), witnessed=True, output=output)

    agent = seats.agent()
    entry = agent.log("edit", SECRET)
    agent.verify(run=ran(Outcome.FAIL, f"assert {SECRET}"))
    claim = agent.remember("The total is right", citations=[Citation.test("tests/test_cart.py::test_total")]).unit
    agent.verify(run=ran(Outcome.PASS))
    assert agent.get(claim.id).status is Status.VERIFIED
    before = [(test.passed, test.greened_by) for test in rows(memory, agent)]
    seats.orchestrator(worktree="main", task="T-1").erase(entry.event_id, "privacy", copies=True)
    assert [(test.passed, test.greened_by) for test in rows(memory, agent)] == before
    assert all(passed and greened for passed, greened in before), "it failed first, and passed then"
    assert memory.audit().ok
    assert memory.rebuild().same
    assert [(test.passed, test.greened_by) for test in rows(memory, agent)] == before


def rows(memory, seat):
    name = "tests/test_cart.py::test_total"
    return memory._engine.store.read(lambda reader: reader.tests(seat.caller.stream, [name]))
