"""A memory in files: what people see of it, what git does with it, and what happens when clones meet."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import tarfile
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from clones import WHERE, Clone, meet

import mnemarch
from mnemarch import Actor, Conflict, InvalidInput, NotAllowed, NotFound, Scope, StoreUnavailable, user
from mnemarch.model.unit import LinkType
from mnemarch.services.merging import Merging
from mnemarch.stores.files.folder import safe_name
from mnemarch.units.conflicts import link_units

REASON = {"type": "risk", "summary": "it is safer"}


@pytest.fixture
def ann(tmp_path, clock):
    first = Clone(tmp_path / "ann", clock)
    first.person.log("note", "the project begins")
    first.commit()
    yield first
    first.memory.close()


@pytest.fixture
def bob(ann, tmp_path, clock):
    second = Clone(tmp_path / "bob", clock, ann)
    yield second
    second.memory.close()


def remembered(clone, text):
    return clone.person.remember(text).unit


# Meeting


def test_two_clones_that_both_worked_merge_without_conflict_loss_or_duplicates(ann, bob):
    receipts = [clone.person.log("note", f"{clone.name} {n}") for n in range(5) for clone in (ann, bob)]
    remembered(ann, "The gateway is idempotent")
    remembered(bob, "Orders are numbered by day")
    meet(ann, bob)
    events = ann.events()
    assert len(events) == len({event.id for event in events}) == 1 + 10 + 2
    assert {event.stream.writer for event in events} == set(os.listdir(ann.folder / "log"))
    for clone in (ann, bob):
        assert all(clone.memory.verify_receipt(receipt).ok for receipt in receipts)
        found = clone.person.recall("how are orders numbered?").items
        assert found[0].unit.content == "Orders are numbered by day"


def test_r5_opposing_facts_of_two_clones_are_one_open_conflict_in_both(ann, bob):
    remembered(ann, "Checkout retries 3 times")
    remembered(bob, "Checkout retries 5 times")
    meet(ann, bob)
    (there,), (here,) = ann.person.conflicts(), bob.person.conflicts()
    assert there.id == here.id
    assert set(here.values) == {"3 times", "5 times"}
    ann.person.resolve(there.id, winner=there.units[0], reason="measured")
    meet(ann, bob)
    assert bob.person.conflicts() == []


@pytest.mark.parametrize(("before", "anns", "bobs"), [((3,), (5,), (7,)), ((), (3, 5), (7, 9)), ((), (3, 5), (3, 7))])
def test_r6_conflicts_that_two_clones_opened_on_one_subject_become_one(ann, bob, clock, before, anns, bobs):
    for number in before:
        remembered(ann, f"Checkout retries {number} times")
    meet(ann, bob)
    for clone, numbers in ((ann, anns), (bob, bobs)):
        for number in numbers:
            clock.advance(seconds=1)
            remembered(clone, f"Checkout retries {number} times")
        assert len(clone.person.conflicts()) == 1
    meet(ann, bob)
    (there,), (here,) = ann.person.conflicts(), bob.person.conflicts()
    assert there == here
    assert set(here.values) == {f"{number} times" for number in (*before, *anns, *bobs)}
    bob.person.resolve(here.id, winner=here.units[0], reason="measured")
    meet(ann, bob)
    assert ann.person.conflicts() == []


def test_r5_the_same_fact_of_two_clones_is_one_unit_with_two_voices(ann, bob):
    older, newer = remembered(ann, "The pool has ten connections"), remembered(bob, "the pool has ten connections.")
    meet(ann, bob)
    for clone in (ann, bob):
        unit = clone.person.get(min(older.id, newer.id))
        assert unit.live
        assert not clone.person.get(max(older.id, newer.id)).live
        assert {str(source.actor) for source in unit.provenance} == {"human:ann", "human:bob"}


@pytest.mark.parametrize("first", ["ann", "bob"])
def test_r5_a_unit_that_one_approves_and_another_rejects_stays_until_somebody_decides(ann, bob, first):
    unit = remembered(ann, "The cache is cleared at night")
    meet(ann, bob)
    for _ in range(3):  # The order of the two depends on how much each had done before.
        (ann if first == "bob" else bob).person.log("note", "more")
    ann.person.approve(unit.id)
    bob.person.reject(unit.id, "it is not")
    meet(ann, bob)
    for clone in (ann, bob):
        (dispute,) = clone.person.conflicts()
        assert dispute.units == (unit.id,)
        assert "human:ann approved it" in dispute.reason
        assert "human:bob rejected it" in dispute.reason
        assert clone.person.get(unit.id).live
    assert "mnemarch reject" in ann.person.inbox()[0].why
    ann.person.reject(unit.id, "bob is right")
    meet(ann, bob)
    assert bob.person.conflicts() == []
    assert not bob.person.get(unit.id).live


def test_r6_two_replacements_of_one_unit_are_a_conflict_between_the_two(ann, bob):
    old = remembered(ann, "Sessions live in Redis")
    meet(ann, bob)
    news = {clone: remembered(clone, f"Logins are checked by {clone.name}'s service") for clone in (ann, bob)}
    for clone, new in news.items():
        clone.person.supersede(new.id, old.id, "newer")
    meet(ann, bob)
    for clone in (ann, bob):
        (dispute,) = clone.person.conflicts()
        assert set(dispute.units) == {unit.id for unit in news.values()}
        assert clone.person.get(old.id).superseded_by in dispute.units


@pytest.mark.parametrize("first", ["ann", "bob"])
def test_r5_a_conflict_that_two_clones_decide_against_each_other_is_open_again(ann, bob, first):
    yes, no = remembered(ann, "Deploys must run on Mondays"), remembered(bob, "Deploys must not run on Mondays")
    meet(ann, bob)
    (dispute,) = ann.person.conflicts()
    for _ in range(3):
        (ann if first == "bob" else bob).person.log("note", "more")
    ann.person.resolve(dispute.id, winner=yes.id, reason="ann measured")
    bob.person.resolve(dispute.id, winner=no.id, reason="bob measured")
    meet(ann, bob)
    for clone in (ann, bob):
        (again,) = clone.person.conflicts()
        assert set(again.units) == {yes.id, no.id}
        assert "did the reverse" in again.reason
        assert clone.person.get(yes.id).live
        assert clone.person.get(no.id).live
    bob.person.resolve(again.id, winner=yes.id, reason="ann is right")
    meet(ann, bob)
    for clone in (ann, bob):
        assert clone.person.conflicts() == []
        assert [clone.person.get(unit.id).live for unit in (yes, no)] == [True, False]
        assert clone.memory.audit().ok


def test_d5_of_two_revisions_of_a_decision_one_is_in_force_and_the_other_contests_it(ann, bob, tmp_path):
    desk = ann.person.decisions
    evidence = desk.add_evidence("a load test")
    first = desk.commit(desk.propose("Use one queue", reason=REASON, evidence=[evidence.id]))
    meet(ann, bob)
    for clone in (ann, bob):
        desk = clone.person.decisions
        text = f"Use the queue of {clone.name}"
        desk.commit(desk.propose(text, reason=REASON, evidence=[evidence.id], revises=first.id))
    meet(ann, bob)
    for clone in (ann, bob):
        (active,) = clone.person.decisions.active("global")
        assert active.version == 2
        (dispute,) = clone.person.conflicts()
        assert active.id in dispute.units
        assert "--revises" in clone.person.inbox()[0].why
    # What merged clones did is copied as a whole, into files and into an embedded memory.
    for target in ("copy", f"file:{tmp_path}/copied"):
        mnemarch.copy(f"file:{bob.folder}", str(tmp_path / "copy") if target == "copy" else target)
    with mnemarch.open(tmp_path / "copy") as copied:
        assert copied.audit().ok
        assert copied.seat(Actor.human("ann"), WHERE).decisions.active("global") == [active]
    desk = bob.person.decisions
    desk.commit(desk.propose("Use two queues", reason=REASON, evidence=[evidence.id], revises=active.id))
    meet(ann, bob)
    (active,) = ann.person.decisions.active("global")
    assert (active.version, active.text) == (3, "Use two queues")


def test_one_key_of_two_clones_is_no_trouble_for_either(ann, bob):
    said = [clone.seat("agent:ci").log("note", f"build of {clone.name}", key="build-1") for clone in (ann, bob)]
    meet(ann, bob)
    assert {event.id for event in ann.events()} >= {receipt.event_id for receipt in said}
    assert ann.seat("agent:ci").recall("build") is not None


ACTS = ("remember", "log", "approve", "reject", "supersede", "erase", "recall", "resolve", "decide")


def act(clone, chance):
    """A random act of a person, which may be refused."""
    person = clone.person
    live = [unit for unit in person.units(limit=100) if unit.live]
    unit = chance.choice(live) if live else None
    try:
        match chance.choices(ACTS, (6, 3, 2, 2, 3, 2, 1, 2, 1))[0]:
            case "remember":
                person.remember(f"Service {chance.randrange(4)} retries {chance.randrange(6)} times")
            case "approve" if unit:
                person.approve(unit.id)
            case "reject" if unit:
                person.reject(unit.id, "no")
            case "supersede" if unit:
                person.supersede(chance.choice(live).id, unit.id, "newer")
            case "erase" if unit:
                person.erase(unit.id, "private")
            case "recall":
                person.recall("how often does service 1 retry?")
            case "resolve" if disputes := person.conflicts():
                person.resolve(disputes[0].id, winner=chance.choice(disputes[0].units), reason="so it is")
            case "decide":
                known = person.decisions.active("global")
                evidence = person.decisions.add_evidence(f"measured {chance.random()}")
                revises = known[0].id if known else None
                text = f"Use plan {chance.random()}"
                proposal = person.decisions.propose(text, reason=REASON, evidence=[evidence.id], revises=revises)
                person.decisions.commit(proposal)
            case _:
                person.log("note", f"{clone.name} {chance.random()}")
    except (Conflict, InvalidInput, NotAllowed, NotFound):
        pass


def test_a_link_that_a_merge_opens_is_known_by_the_id_that_it_is_stored_under(ann):
    one, other = remembered(ann, "Service 1 retries 2 times"), remembered(ann, "Service 9 keeps logs")
    engine = ann.memory._engine

    def work(transaction):
        act = Merging(engine.config, ann.clock)._act(transaction, WHERE)
        link = link_units(act, one.id, other.id, LinkType.SIMILAR_TO, 0.9, "alike")
        return transaction.link(link.id)

    assert engine.store.write(work) is not None


@pytest.mark.long
def test_random_merges_of_three_clones_lose_nothing_and_come_to_one_state(ann, bob, tmp_path, clock):
    chance = random.Random(7)
    cat = Clone(tmp_path / "cat", clock, ann)
    clones = (ann, bob, cat)
    for _ in range(200 if os.environ.get("MNEMARCH_TORTURE") == "full" else 6):
        for clone in clones:
            for _ in range(chance.randrange(4)):
                clock.advance(seconds=1)
                act(clone, chance)
        one, other = chance.sample(clones, 2)
        other.commit()
        one.pull(other)
        one.require_whole()
    acknowledged = {event.id for clone in clones for event in clone.events()}
    meet(*clones)
    assert acknowledged <= {event.id for event in ann.events()}
    cat.memory.close()


# Branches


def test_what_the_memory_knows_follows_the_checkout(ann):
    kept = remembered(ann, "Main knows this")
    ann.commit()
    before = ann.digest()
    ann.git("checkout", "-q", "HEAD~1")
    assert [event.payload["text"] for event in ann.events()] == ["the project begins"]
    assert ann.person.recall("what does main know?").items == ()
    ann.git("checkout", "-q", "main")
    assert ann.digest() == before
    assert ann.person.recall("what does main know?").items[0].unit.id == kept.id
    ann.require_whole()


def test_a_write_at_an_older_commit_stays_with_its_branch_and_merges_later(ann):
    remembered(ann, "Main knows this")
    ann.commit()
    ann.git("checkout", "-q", "-b", "side", "HEAD~1")
    remembered(ann, "Side knows that")
    ann.commit()
    ann.git("checkout", "-q", "main")
    assert [unit.content for unit in ann.person.units()] == ["Main knows this"]
    remembered(ann, "Main goes on")
    ann.commit()
    ann.git("merge", "-q", "--no-edit", "side")
    contents = {unit.content for unit in ann.person.units()}
    assert contents == {"Main knows this", "Side knows that", "Main goes on"}
    assert len(os.listdir(ann.folder / "log")) == 2, "who went on from an older commit is another writer"
    ann.require_whole()


def test_a_copied_folder_is_another_writer(ann, tmp_path, clock):
    shutil.copytree(ann.path, tmp_path / "copy", symlinks=True)
    ann.person.log("note", "here")
    with mnemarch.open(f"file://{tmp_path}/copy/memory", clock=clock) as copy:
        copy.seat(Actor.human("ann"), WHERE).log("note", "there")
    assert len(set(os.listdir(tmp_path / "copy/memory/log")) | set(os.listdir(ann.folder / "log"))) == 2


# Erasing


def test_r16_an_erased_text_is_in_no_file_of_any_clone_that_has_the_erasure(ann, bob):
    secret = remembered(ann, "The turquoise lighthouse has a spare key")
    ann.person.recall("turquoise lighthouse")
    meet(ann, bob)
    bob.person.recall("turquoise lighthouse")
    bob.memory.reindex()
    assert bob.files_with("turquoise")
    erased = ann.person.erase(secret.id, "private")
    assert "git's history" in erased.kept
    assert ann.files_with("turquoise") == []
    ann.commit()
    bob.pull(ann)
    assert [unit.content for unit in bob.person.units()] == [""]
    assert bob.files_with("turquoise") == []
    meet(ann, bob)
    for clone in (ann, bob):
        assert clone.files_with("turquoise") == []
        assert clone.person.recall("turquoise lighthouse").items == ()
    assert "turquoise" in ann.git("log", "-p"), "which is what the answer says"


def test_r16_an_erasure_that_the_indexing_thread_meets_first_leaves_no_byte(ann, bob):
    secret = remembered(ann, "The turquoise lighthouse has a spare key")
    meet(ann, bob)
    bob.memory.reindex()
    finder = bob.person._engine.finder
    waiting = []

    def index():
        finder._indexing = threading.current_thread()
        bob.memory.stats()
        waiting.append(finder._indexing)

    ann.person.erase(secret.id, "private")
    ann.commit()
    bob.pull(ann)
    thread = threading.Thread(target=index)
    thread.start()
    thread.join()
    assert waiting
    assert bob.files_with("turquoise") == []


def test_r16_an_erasure_that_could_not_be_passed_on_is_passed_on_again(ann, bob):
    secret = remembered(ann, "The turquoise lighthouse has a spare key")
    meet(ann, bob)
    store, told = bob.memory._engine.store, []

    def fails_once(ids):
        told.append(list(ids))
        if len(told) == 1:
            raise RuntimeError("interrupted")

    store.on_erased = fails_once
    ann.person.erase(secret.id, "private")
    ann.commit()
    bob.pull(ann)
    with pytest.raises(RuntimeError):
        bob.memory.stats()
    for text in ("Orders are numbered by day", "Parcels leave at noon"):
        remembered(bob, text)
    assert told == [[secret.id], [secret.id]]


def test_r16_an_erasure_and_a_change_of_the_same_unit_meet_and_nothing_comes_back(ann, bob):
    secret = remembered(ann, "The turquoise lighthouse has a spare key")
    meet(ann, bob)
    ann.person.erase(secret.id, "private")
    bob.person.approve(secret.id)
    remembered(bob, "Orders are numbered by day")
    meet(ann, bob)
    for clone in (ann, bob):
        assert clone.person.explain(secret.id).unit.content == ""
        assert clone.files_with("turquoise") == []


@pytest.mark.parametrize("decided", ["never", "before", "meanwhile"])
@pytest.mark.parametrize("erased", [0, 1])
def test_r16_either_side_of_a_conflict_that_a_merge_opened_can_be_erased(ann, bob, erased, decided):
    sides = [remembered(ann, "Checkout retries 3 times"), remembered(bob, "Checkout retries 5 times")]
    meet(ann, bob)
    (dispute,) = ann.person.conflicts()
    winner = sides[1 - erased].id
    if decided == "before":
        bob.person.resolve(dispute.id, winner=winner, reason="measured")
        meet(ann, bob)
    ann.person.erase(sides[erased].id, "private")
    if decided == "meanwhile":
        bob.person.resolve(dispute.id, winner=winner, reason="measured")
    meet(ann, bob)
    for clone in (ann, bob):
        assert clone.files_with(("3 times", "5 times")[erased]) == []
        assert clone.person.get(winner).live
        assert clone.person.conflicts() == []


@pytest.mark.parametrize("is_decided", [False, True])
def test_r16_the_conflict_of_two_replacements_outlives_what_they_replaced(ann, bob, is_decided):
    old = remembered(ann, "Sessions live in Redis")
    meet(ann, bob)
    news = {clone: remembered(clone, f"Logins are checked by {clone.name}'s service") for clone in (ann, bob)}
    for clone, new in news.items():
        clone.person.supersede(new.id, old.id, "newer")
    meet(ann, bob)
    (dispute,) = bob.person.conflicts()
    if is_decided:
        ann.person.resolve(dispute.id, winner=news[ann].id, reason="measured")
        meet(ann, bob)
    bob.person.erase(old.id, "private")
    bob.require_whole()
    meet(ann, bob)
    for clone in (ann, bob):
        assert [set(each.units) for each in clone.person.conflicts()] == [{unit.id for unit in news.values()}][
            is_decided:
        ]


def test_r16_what_two_clones_decided_against_each_other_stays_decided_when_one_side_is_erased(ann, bob):
    yes, no = remembered(ann, "Deploys must run on Mondays"), remembered(bob, "Deploys must not run on Mondays")
    meet(ann, bob)
    (dispute,) = ann.person.conflicts()
    ann.person.resolve(dispute.id, winner=yes.id, reason="ann measured")
    bob.person.resolve(dispute.id, winner=no.id, reason="bob measured")
    meet(ann, bob)
    (again,) = ann.person.conflicts()
    bob.person.resolve(again.id, winner=yes.id, reason="ann is right")
    meet(ann, bob)
    ann.person.erase(no.id, "private")
    ann.require_whole()
    meet(ann, bob)
    assert bob.person.get(yes.id).live


def test_r16_who_used_a_unit_while_another_clone_erased_it_leaves_no_trace_of_that(ann, bob):
    unit = remembered(ann, "The turquoise lighthouse has a spare key")
    meet(ann, bob)
    ann.person.erase(unit.id, "private")
    bob.person.recall("turquoise lighthouse")
    bob.seat("agent:b", worktree="main", task="T-2").use(unit.id)
    bob.commit()
    ann.pull(bob)
    ann.require_whole()


def test_an_erasure_that_fails_beside_other_writes_leaves_its_files_alone(ann):
    unit = remembered(ann, "The turquoise lighthouse has a spare key")
    store = ann.memory._engine.store
    (born,) = [event for event in ann.events() if event.subject == unit.id]
    begun, go_on = threading.Event(), threading.Event()

    def slow(_):
        begun.set()
        assert go_on.wait(30)

    def failing(transaction):
        transaction.erase_payload(born.id)
        raise ValueError

    def write(work):
        with suppress(ValueError):
            store.write(work)

    with ThreadPoolExecutor(3) as threads:
        threads.submit(write, slow)
        assert begun.wait(30)
        threads.map(write, (failing, lambda _: None))
        while len(store._jobs) < 2:  # Then the two share a transaction.
            threading.Event().wait(0.01)
        go_on.set()
    assert ann.files_with("turquoise")
    ann.require_whole()


# What people see


def test_a_person_reads_units_and_changes_in_plain_files(ann):
    ann.person.remember("결제는 세 번 재시도한다\n두 번째 줄")
    ann.commit()
    (page,) = (ann.folder / "units" / "shop").iterdir()
    head, _, text = page.read_text(encoding="utf-8").partition("---\n\n")
    assert head.startswith("---\nkind: fact\n")
    assert "by: human:ann\n" in head
    assert text == "결제는 세 번 재시도한다\n두 번째 줄\n"
    shown = ann.git("-c", "core.quotepath=off", "log", "-p", "-1")
    assert "+결제는 세 번 재시도한다\n" in shown
    assert '"type": "unit.remembered", "actor": "human:ann"' in shown
    assert ann.git("status", "--porcelain") == "", "what is made of the files is ignored"


@pytest.mark.parametrize("name", ["결제", "a/b", "../x", "A", "x" * 250, "con", "...", "e\u0301", "🧠"])
def test_a_project_of_any_name_has_a_folder_that_every_file_system_takes(tmp_path, clock, name):
    with mnemarch.open(f"file://{tmp_path}/memory", clock=clock) as memory:
        for project in {name, name.lower()}:
            assert memory.seat(Actor.human("h"), Scope(project=project)).remember("It has a folder").unit
    names = os.listdir(tmp_path / "memory" / "units")
    assert len({each.casefold() for each in names}) == len({name, name.lower()})
    assert all(len(each.encode()) < 200 and set(each).isdisjoint('/\\:*?"<>|\0') for each in names)
    assert safe_name(name) in names


# Whom to believe


def entry_lines(clone):
    (path,) = (clone.folder / "log").glob("*/*.jsonl")
    return path, path.read_text(encoding="utf-8").splitlines(keepends=True)


def test_r1_a_line_that_was_edited_by_hand_is_named_and_the_others_are_still_read(ann, bob):
    remembered(ann, "The gateway is idempotent")
    remembered(ann, "Orders are numbered by day")
    meet(ann, bob)
    remembered(bob, "Bob writes on")
    bob.memory.close()
    (path,) = [
        each
        for each in (bob.folder / "log").glob("*/*")
        if "gateway" not in each.name
        and "ann" in each.read_text(encoding="utf-8")
        and len(each.read_text(encoding="utf-8").splitlines()) > 2
    ]
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    lines[1] = lines[1].replace("human:ann", "human:eve")
    path.write_text("".join(lines), encoding="utf-8")
    with mnemarch.open(f"file://{bob.folder}", clock=bob.clock) as memory:
        check = memory.audit()
        assert not check.ok
        assert f"{path.relative_to(bob.folder)} line 2" in check.problem
        hints = [check.hint, *(finding.hint for finding in memory.doctor() if not finding.ok)]
        assert [hint for hint in hints if "git checkout" not in hint] == []
        assert [unit.content for unit in memory.seat(Actor.human("bob"), WHERE).units()] == ["Bob writes on"]
        bob.git("checkout", "-q", "--", str(path))
        assert memory.audit().ok
        assert len(memory.seat(Actor.human("bob"), WHERE).units()) == 3


def test_r1_a_payload_that_was_edited_by_hand_is_named(ann):
    unit = remembered(ann, "The gateway is idempotent")
    (path,) = [each for each in (ann.folder / "payloads").rglob("*.json") if "gateway" in each.read_text()]
    path.write_text(path.read_text().replace("idempotent", "impotent"))
    check = ann.memory.audit()
    assert not check.ok
    assert str(path.relative_to(ann.folder)) in check.problem
    assert ann.person.get(unit.id).content == "The gateway is idempotent"


def test_events_of_a_file_reach_no_further_than_those_of_an_import(ann, bob, tmp_path, clock):
    """Whoever can push can write what the program writes, but no project touches another's units."""
    other = ann.memory.seat(Actor.human("ann"), Scope(project="bank")).remember("The vault is in the cellar").unit
    meet(ann, bob)
    store = bob.memory._engine.store

    def forge(transaction):
        from mnemarch.log.act import Act
        from mnemarch.model.caller import Caller
        from mnemarch.model.event import EventType

        doer = Act(transaction, Caller(Actor.human("eve"), WHERE), clock(), bob.memory.config)
        doer.record(EventType.UNIT_ARCHIVED, {"set": {"status": "archived"}}, subject=other.id)

    store.write(forge)
    bob.commit()
    ann.pull(bob)
    there = ann.memory.seat(Actor.human("ann"), Scope(project="bank"))
    assert there.get(other.id).live
    check = ann.memory.audit()
    assert not check.ok
    assert "belongs to" in check.problem


def test_the_memory_of_a_clone_is_read_only_after_a_yes(cli, tmp_path):
    cli.repository()
    (cli.home / "mnemarch.toml").write_text('[store]\nurl = "file:memory"\n')
    user.accept(str(cli.home / "mnemarch.toml"), (cli.home / "mnemarch.toml").read_bytes())
    cli.ok("remember", "Checkout retries three times", "--actor", "human:ada")
    assert list((cli.home / "memory" / "units").rglob("*.md"))
    assert not (cli.home / ".mnemarch").exists()
    cli.repository()
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--template=", cli.home, clone], check=True)
    cli.monkeypatch.chdir(clone)
    refused = cli("recall", "checkout", "--store", f"file://{clone}/memory")
    assert refused.exit_code == 3
    assert "was not made by you on this machine" in refused.err
    assert f"mnemarch trust --store file://{clone}/memory" in refused.err
    shown = cli("trust", "--show")
    assert "store.url" in shown.out
    assert "everybody who can write there" in shown.out
    assert cli("trust", "--yes").exit_code == 0
    assert "Checkout retries three times" in cli("recall", "checkout").out
    assert cli("log").exit_code == 0
    assert not (clone / ".mnemarch").exists()


def test_every_command_names_the_folder_of_the_files_and_no_server(cli):
    cli.repository()
    (cli.home / "mnemarch.toml").write_text('[store]\nurl = "file:memory"\n')
    # What a clone's settings name waits for a yes, and that is what to do: another memory is not.
    absent = cli("status", "--store", "file:mistyped")
    assert (absent.exit_code, (cli.home / "mistyped").exists()) == (2, False)
    absent = cli("status")
    assert "accept it with mnemarch trust" in absent.err
    assert "mnemarch init" not in absent.err
    assert "until it changes" in cli("trust", "--yes").out
    installed = cli("install", "claude-code")
    assert "PostgreSQL" not in installed.out
    place = str(cli.home / "memory")
    for said in (installed.out, cli("init").out):
        assert f"{place}\n" in said or f"{place} (" in said
    tried = next(line for line in cli("doctor").out.splitlines() if "Claude Code" in line)
    assert "pass on what the memory knows" in tried


def test_a_yes_to_a_folder_of_files_can_be_taken_back(cli, tmp_path):
    cli.repository()
    settings = cli.home / "mnemarch.toml"
    settings.write_text('[store]\nurl = "file:memory"\n')
    user.accept(str(settings), settings.read_bytes())
    cli.ok("remember", "Checkout retries three times", "--actor", "human:ada")
    shutil.rmtree(cli.home / "memory" / ".local")
    assert "memory, with everything that is added later" in cli("trust", "--yes").out
    assert "Checkout retries" in cli("recall", "checkout").out  # From now on the folder is known as this user's.
    assert "revoked  2" in cli("trust", "--revoke").out
    assert "everybody who can write there" in cli("trust", "--show").out
    refused = cli("recall", "checkout", "--store", "file:memory")
    assert (refused.exit_code, "was not made by you" in refused.err) == (3, True)
    assert cli("trust", "--yes", "--store", "file:memory").exit_code == 0
    assert "Checkout retries" in cli("recall", "checkout", "--store", "file:memory").out
    assert "revoked  2" in cli("trust", "--revoke", "--store", "file:memory").out


def test_what_was_remembered_before_a_yes_can_be_taken_along(cli):
    cli.repository()
    (cli.home / "mnemarch.toml").write_text('[store]\nurl = "file:memory"\n')
    cli.ok("remember", "Checkout retries three times", "--actor", "human:ada")
    said = cli("trust", "--yes").out
    assert "Checkout retries" not in cli("recall", "checkout").out
    typed = [part.split()[1:] for part in said.replace("\n", ";").split(";") if part.strip().startswith("mnemarch ")]
    assert [words[0] for words in typed] == ["copy", "export", "import"]
    for words in typed:
        assert cli(*words, "--actor", "human:ada").exit_code == 0
    assert "Checkout retries" in cli("recall", "checkout").out


def test_an_empty_memory_is_not_offered_for_copying(cli):
    cli.repository()
    cli.begun()
    (cli.home / "mnemarch.toml").write_text('[store]\nurl = "file:memory"\n')
    assert "To bring it along" not in cli("trust", "--yes").out


def test_the_doctor_leaves_nothing_for_git_and_counts_as_no_project(ann, bob):
    for _ in range(2):
        assert all(finding.ok for finding in ann.memory.doctor())
        assert ann.git("status", "--porcelain") == ""
        remembered(ann, "The gateway is idempotent")
        remembered(bob, "Orders are numbered by day")
        bob.commit()
        ann.pull(bob)  # All files are read anew, and the doctor's traces are gone with what was read before.
        ann.require_whole()
    assert len(os.listdir(ann.folder / "log")) == 2, "no third writer"
    assert ann.memory.stats().projects == 1


@pytest.mark.parametrize("url", ["file://", "file:", "file://host/x", "file:///", "qdrant://x"])
def test_an_address_that_is_no_folder_is_refused(url):
    with pytest.raises(InvalidInput):
        mnemarch.open(url)


def test_a_linked_or_committed_local_folder_is_never_used(ann, bob, tmp_path):
    bob.memory.close()
    shutil.rmtree(bob.folder / ".local")
    (tmp_path / "trap").mkdir()
    (bob.folder / ".local").symlink_to(tmp_path / "trap")
    with pytest.raises(StoreUnavailable):
        mnemarch.open(f"file://{bob.folder}")
    assert os.listdir(tmp_path / "trap") == []


# Trouble


def test_a_folder_that_was_moved_away_is_noticed_and_no_other_is_made(ann, tmp_path):
    ann.folder.rename(tmp_path / "elsewhere")
    with pytest.raises(StoreUnavailable):
        ann.person.log("note", "where am I?")
    assert not ann.folder.exists()
    with mnemarch.open(f"file://{tmp_path}/elsewhere") as memory:
        assert memory.audit().ok


def test_a_full_disk_leaves_everything_as_it_was(ann):
    before = ann.events()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000, limits[1]))
    try:
        with pytest.raises(StoreUnavailable):
            ann.person.log("note", "x" * 2_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert ann.events() == before
    ann.person.log("note", "there is room again")
    ann.require_whole()


def test_an_export_of_one_memory_in_files_is_the_same_in_another(ann, bob, tmp_path, clock):
    remembered(ann, "Checkout retries 3 times")
    remembered(bob, "Checkout retries 5 times")
    meet(ann, bob)
    ann.memory.export(tmp_path / "all.jsonl")
    with mnemarch.open(f"file://{tmp_path}/new", clock=clock) as new:
        assert new.import_(tmp_path / "all.jsonl").events == len(ann.events())
        assert new.audit().ok
        assert [each.units for each in new.seat(Actor.human("ann"), WHERE).conflicts()] == [
            each.units for each in ann.person.conflicts()
        ]
        new.seat(Actor.human("ann"), WHERE).log("note", "life goes on")
        assert new.rebuild().same


@pytest.mark.parametrize("store", ["sqlite", "files"])
def test_a_longer_export_of_several_writers_goes_on_where_the_first_ended(ann, bob, tmp_path, clock, store):
    old = remembered(ann, "Checkout retries 3 times")
    meet(ann, bob)
    # Both replace one unit, and neither knows of the other: told apart only by what came before.
    for clone, text in ((ann, "Checkout retries 4 times"), (bob, "Checkout retries 5 times")):
        clone.person.supersede(remembered(clone, text).id, old.id, "measured")
    ann.memory.export(tmp_path / "first.jsonl")
    meet(ann, bob)
    (dispute,) = ann.person.conflicts()
    ann.person.resolve(dispute.id, winner=dispute.units[0], reason="measured")
    ann.memory.export(tmp_path / "second.jsonl")
    place = tmp_path / "new" if store == "sqlite" else f"file://{tmp_path}/new"
    with mnemarch.open(place, clock=clock) as new:
        new.import_(tmp_path / "first.jsonl")
        assert new.import_(tmp_path / "second.jsonl").events
        assert new.audit(full=True).ok
        assert new.rebuild().same
        assert new.seat(Actor.human("ann"), WHERE).get(dispute.units[0]).live
        assert not new.seat(Actor.human("ann"), WHERE).get(dispute.units[1]).live


def test_what_another_store_exported_comes_before_what_is_written_here(tmp_path, clock):
    with mnemarch.open(":memory:", clock=clock) as source:
        source.seat(Actor.human("h"), WHERE).remember("Checkout retries 3 times")
        source.export(tmp_path / "all.jsonl")
    with mnemarch.open(f"file://{tmp_path}/files", clock=clock) as target:
        seat = target.seat(Actor.human("h"), WHERE)
        seat.log("note", "before the import")
        assert target.import_(tmp_path / "all.jsonl").events
        assert target.audit().ok
        assert [unit.content for unit in seat.units()] == ["Checkout retries 3 times"]
        seat.remember("Orders are numbered by day")
        assert target.rebuild().same
        assert target.audit().ok


def test_a_restored_export_brings_an_erasure_of_what_was_also_said_here(tmp_path, clock):
    with (
        mnemarch.open(f"file://{tmp_path}/source", clock=clock) as old,
        mnemarch.open(f"file://{tmp_path}/target", clock=clock) as new,
    ):
        theirs, ours = (memory.seat(Actor.human("h"), WHERE) for memory in (old, new))
        stated = theirs.remember("Checkout retries 3 times").unit.id
        old.export(tmp_path / "before.jsonl")
        new.import_(tmp_path / "before.jsonl")
        ours.archive(stated, "not sure")
        theirs.erase(stated, "private")
        old.export(tmp_path / "after.jsonl")
        assert new.import_(tmp_path / "after.jsonl").events
        assert not ours.get(stated).content


@pytest.mark.parametrize(("source", "target"), [("sqlite", "files"), ("files", "sqlite"), ("files", "files")])
def test_an_export_that_was_imported_as_claims_and_then_restored_leaves_each_text_once(tmp_path, clock, source, target):
    export = tmp_path / "all.jsonl"
    with mnemarch.open(f"{'file://' if source == 'files' else ''}{tmp_path}/source", clock=clock) as old:
        seat = old.seat(Actor.human("h"), WHERE)
        stated = [seat.remember(text).unit.id for text in ("Checkout retries 3 times", "주문 번호는 날짜로 시작한다")]
        old.export(export)
    with mnemarch.open(f"{'file://' if target == 'files' else ''}{tmp_path}/target", clock=clock) as new:
        seat = new.seat(Actor.human("h"), WHERE)
        assert seat.import_claims(export).units == 2
        assert new.import_(export).events == 2
        assert sorted(unit.id for unit in seat.units() if unit.live) == sorted(stated)
        assert not seat.inbox()
        assert new.rebuild().same
        assert new.audit(full=True).ok
        # A memory that has seen both goes on as one.
        assert seat.remember("Checkout retries 3 times").unit.id == stated[0]
        assert not new.import_(export).events


def test_a_backup_is_an_archive_of_the_files(ann, tmp_path):
    ann.memory.backup(tmp_path / "backup.tar")
    with tarfile.open(tmp_path / "backup.tar") as archive:
        names = archive.getnames()
    assert "./README.md" in names
    assert any(name.startswith("./log/") for name in names)
    assert not any(".local" in name for name in names)


def test_a_line_that_a_killed_process_left_torn_is_cut_off(ann):
    path, lines = entry_lines(ann)
    ann.memory.close()
    with open(path, "a", encoding="utf-8") as file:
        file.write(lines[0][:40])
    with mnemarch.open(f"file://{ann.folder}", clock=ann.clock) as memory:
        memory.seat(Actor.human("ann"), WHERE).log("note", "it goes on")
        assert memory.audit().ok
    assert [json.loads(line)["seq"] for line in path.read_text().splitlines()] == [1, 2]
