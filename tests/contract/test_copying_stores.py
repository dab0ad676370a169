"""A copy goes from any store to any other, also of a log that clones of a folder of files wrote together."""

from __future__ import annotations

import shutil
from contextlib import closing, suppress

import pytest

import mnemarch
from fixtures import postgres
from mnemarch import Actor, NotFound, Scope, user
from mnemarch.log import transfer
from mnemarch.log.projection import digest

WHERE = Scope(project="shop", worktree="main", task="T-1")
KINDS = ("sqlite", "files", "postgres")
SECRET = "turquoise heron"


def state(memory):
    def work(reader):
        events = {(event.stream, event.id, event.seq, event.clock, event.body, event.hash) for event in reader.events()}
        return events, reader.heads(), digest(reader)

    return memory._engine.store.read(work)


@pytest.fixture
def address(tmp_path, monkeypatch):
    """Where a store of a kind is to be made."""
    made = []
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def new(kind, name):
        if kind == "postgres":
            made.append(postgres.new_schema(postgres.server_url()))
            return made[-1]
        return f"file://{tmp_path}/{name}" if kind == "files" else str(tmp_path / name)

    yield new
    for url in made:
        postgres.drop_schema(url)


def decide(person, text):
    known = person.decisions.active("global")
    evidence = person.decisions.add_evidence(f"measured for {text}")
    reason = {"type": "risk", "summary": "it is safer"}
    revises = known[0].id if known else None
    person.decisions.commit(person.decisions.propose(text, reason=reason, evidence=[evidence.id], revises=revises))


def give(path, there):
    """What a merge by git comes to: each file of the log is one writer's, and what was erased is erased."""
    if ".local" in path.parts or not path.is_file():
        return
    is_news = not there.exists() or path.read_bytes().startswith((there.read_bytes(), b"erased"))
    if is_news and not (there.exists() and there.read_bytes() == path.read_bytes()):
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, there)


class Clones:
    """Two folders of files with one log. What each has written meanwhile, the other is given by `meet`."""

    def __init__(self, path, clock):
        self.folders = [path / "ann", path / "bob"]
        with closing(mnemarch.open(f"file://{self.folders[0]}", clock=clock)) as first:
            person = first.seat(Actor.human("ada"), WHERE)
            agent = first.seat(Actor.agent("a"), WHERE)
            self.disputed = [agent.remember(f"Queue {number} is drained at night").unit.id for number in range(2)]
            self.secret = person.remember(f"The hint is {SECRET}", level="project").unit.id
            person.remember("결제는 세 번 재시도한다", level="project")
            person.remember("Names are in English", level="org")
            decide(person, "Use hono")
        shutil.copytree(*self.folders, ignore=shutil.ignore_patterns(".local"))
        user.accept(str(self.folders[1]), b"file:")
        self.memories = [mnemarch.open(f"file://{folder}", clock=clock) for folder in self.folders]
        self.people = [memory.seat(Actor.human("ada"), WHERE) for memory in self.memories]

    def differ(self, number):
        ann, bob = self.people
        ann.log("thought", "one more")  # So her time is later, and what he does comes first.
        ann.approve(self.disputed[number])
        bob.reject(self.disputed[number], "it is not")
        for person, name in ((ann, "koa"), (bob, "express")):
            decide(person, f"Use {name} {number}")

    def meet(self):
        for _ in range(2):
            for source, target in (self.folders, self.folders[::-1]):
                for path in source.rglob("*"):
                    give(path, target / path.relative_to(source))
            for memory in self.memories:
                state(memory)

    def close(self):
        for memory in self.memories:
            memory.close()


@pytest.fixture
def clones(tmp_path, clock):
    with closing(Clones(tmp_path, clock)) as made:
        made.differ(0)
        made.meet()
        made.people[0].erase(made.secret, "personal")
        yield made


@pytest.mark.parametrize("kind_to", KINDS)
@pytest.mark.parametrize("kind_from", KINDS)
def test_a_log_of_several_writers_is_the_same_in_any_store(
    clones, address, clock, tmp_path, monkeypatch, kind_from, kind_to
):
    source = clones.memories[0]
    if kind_from != "files":
        source = mnemarch.open(address(kind_from, "source"), clock=clock)
        clones.memories[0].copy_to(source)
        # The store goes on by itself, after its writers.
        person = source.seat(Actor.human("ada"), WHERE)
        person.approve(clones.disputed[1])
        person.remember("Written after the copy", level="project")
    monkeypatch.setattr(transfer, "_PAGE", 5)
    named = address(kind_to, "target")

    def interrupt(copied):
        if copied >= 10:
            raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        mnemarch.copy(source, named, progress=interrupt)
    done = mnemarch.copy(source, named)
    assert done.skipped >= 10
    assert done.streams >= 2
    if kind_to == "files":
        shutil.rmtree(tmp_path / "target" / ".local")  # The files alone say the same.
        user.accept(str(tmp_path / "target"), b"file:")
    with closing(source), mnemarch.open(named, clock=clock) as target:
        assert state(target) == state(source)
        assert target.audit(full=True).ok
        assert target.rebuild().same
        assert mnemarch.copy(source, target).events == 0
        seat = target.seat(Actor.agent("a"), WHERE)
        assert "결제는 세 번 재시도한다" in [item.unit.content for item in seat.recall("결제 재시도").items]
        assert seat.get(clones.disputed[0]).live
        assert not target._engine.store.read(lambda reader: list(reader.events_containing(SECRET)))
        target.seat(Actor.human("ada"), WHERE).remember("It goes on", level="project")
        assert target.audit(full=True).ok
    if kind_to != "postgres":
        files = [path for path in (tmp_path / "target").rglob("*") if path.is_file()]
        assert files
        assert not any(SECRET.encode() in path.read_bytes() for path in files)


def test_a_source_in_files_is_named_as_such_and_not_made(clones, tmp_path):
    with pytest.raises(NotFound, match="no memory"):
        mnemarch.copy(f"file://{tmp_path}/nothing", tmp_path / "target")
    with pytest.raises(NotFound) as refused:
        mnemarch.copy(clones.folders[0], tmp_path / "target")
    assert f"file://{clones.folders[0]}" in refused.value.hint
    assert not (tmp_path / "nothing").exists()
    assert not (tmp_path / "target").exists()


def test_interrupted_after_any_entry_of_several_writers_it_goes_on(clones, address, clock, monkeypatch):
    monkeypatch.setattr(transfer, "_PAGE", 1)
    source, steps = clones.memories[0], 0

    def interrupt(_):
        raise KeyboardInterrupt

    with mnemarch.open(address("sqlite", "target"), clock=clock) as target:
        while target.stats().events < source.stats().events:
            with suppress(KeyboardInterrupt):
                source.copy_to(target, progress=interrupt)
            steps += 1
            assert target.stats().events == steps
        assert source.copy_to(target).events == 0
        assert state(target) == state(source)


@pytest.mark.parametrize("kind", KINDS)
def test_what_another_clone_did_before_comes_before_in_a_copy_that_goes_on(clones, address, kind, clock):
    """A pull puts entries between those that were copied already."""
    source, named = clones.memories[0], address(kind, "target")
    clones.differ(1)
    mnemarch.copy(source, named)
    clones.meet()
    mnemarch.copy(source, named)
    with mnemarch.open(named, clock=clock) as target:
        assert state(target) == state(source)
        assert target.audit(full=True).ok
