"""A copy is the same log in another store of any kind, wherever it was interrupted, and says so if that is so."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path

import pytest

import mnemarch
from fixtures import postgres
from mnemarch import Actor, Claim, Conflict, InvalidInput, NotFound, Scope, StoreCorrupt, user
from mnemarch.log import transfer
from mnemarch.log.projection import digest

RECORDED = Path(__file__).parent.parent / "fixtures" / "log.jsonl"
SHOP, BANK = (Scope(org="acme", project=name, worktree="main", task="T-1") for name in ("shop", "bank"))
WHERE = Scope(project="shop", worktree="main", task="T-1")
KINDS = ("sqlite", "files", "postgres")
SECRET = "turquoise heron"


def state(memory):
    """Everything that a copy has to have: each event to the byte, the ends of streams, and what is made of them."""
    fields = ["id", "seq", "type", "actor", "scope", "session", "subject", "key", "clock"]
    fields += ["body", "salt", "payload_hash", "hash"]

    def work(reader):
        events = {(str(event.stream), *(str(getattr(event, name)) for name in fields)) for event in reader.events()}
        return events, reader.heads(), digest(reader)

    return memory._engine.store.read(work)


@pytest.fixture
def source(tmp_path, clock):
    """Two projects and their org, with every kind of event, something that was erased, and Korean text."""
    with mnemarch.open(tmp_path / "source", clock=clock) as memory:
        memory.import_(RECORDED)
        for scope in (SHOP, BANK):
            person = memory.seat(Actor.human("ada"), scope)
            person.remember("Names are in English", level="org")
            person.remember("결제는 세 번 재시도한다", level="project")
        yield memory


@pytest.fixture
def target(tmp_path, clock):
    with mnemarch.open(tmp_path / "target", clock=clock) as memory:
        yield memory


@pytest.fixture
def small_pages(monkeypatch):
    monkeypatch.setattr(transfer, "_PAGE", 7)


def test_a_copy_has_every_event_and_the_same_projections(source, target):
    done = source.copy_to(target)
    assert state(target) == state(source)
    assert (done.events, done.skipped, done.behind) == (source.stats().events, 0, 0)
    assert target.audit(full=True).ok
    assert target.rebuild().same


def test_a_copy_goes_to_postgresql_and_back(source, target, postgres_url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    there = mnemarch.copy(source, postgres_url)
    back = mnemarch.copy(postgres_url, target)
    assert there.events == back.events == source.stats().events
    assert state(target) == state(source)
    shop = target.seat(Actor.agent("a"), SHOP)
    assert "결제는 세 번 재시도한다" in [item.unit.content for item in shop.recall("결제 재시도").items]


def test_receipts_hold_in_the_copy(source, target):
    receipt = source.seat(Actor.agent("a"), SHOP).log("thought", "the gateway is slow")
    source.copy_to(target)
    assert target.verify_receipt(receipt).ok


def test_what_was_erased_stays_erased_and_what_is_erased_meanwhile_goes(source, target, tmp_path):
    person = source.seat(Actor.human("ada"), SHOP)
    gone = person.remember("The password hint is turquoise heron", level="project").unit.id
    source.copy_to(target)
    assert target.seat(Actor.human("ada"), SHOP).get(gone).content
    person.erase(gone, "personal")
    assert source.copy_to(target).events == 1
    assert state(target) == state(source)
    target.close()
    files = [file for file in (tmp_path / "target").rglob("*") if file.is_file()]
    assert files
    assert not any(b"turquoise heron" in file.read_bytes() for file in files)


def test_a_copy_of_a_copy_and_a_second_copy_add_nothing_twice(source, target):
    source.copy_to(target)
    again = source.copy_to(target)
    assert (again.events, again.skipped) == (0, source.stats().events)
    source.seat(Actor.agent("a"), BANK).log("thought", "one more")
    assert source.copy_to(target).events == 1
    assert state(target) == state(source)


@pytest.mark.usefixtures("small_pages")
def test_interrupted_anywhere_it_goes_on_where_it_stopped(source, target):
    rounds = 0
    while target.stats().events < source.stats().events:
        before = target.stats().events

        def interrupt(copied):
            if copied >= 20:
                raise KeyboardInterrupt

        with suppress(KeyboardInterrupt):
            source.copy_to(target, progress=interrupt)
        assert target.stats().events > before
        rounds += 1
    assert rounds > 2
    assert source.copy_to(target).events == 0
    assert state(target) == state(source)


def test_a_killed_copy_goes_on_where_it_stopped(source, tmp_path):
    script = (
        "import mnemarch, os, sys\nfrom mnemarch.log import transfer\ntransfer._PAGE = 7\n"
        "mnemarch.copy(sys.argv[1], sys.argv[2], progress=lambda done: done > 30 and os.kill(os.getpid(), 9))\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "source"), str(tmp_path / "other")]
    assert subprocess.run(command, check=False).returncode == -9
    done = mnemarch.copy(source, tmp_path / "other")
    assert done.skipped > 30
    with mnemarch.open(tmp_path / "other") as other:
        assert state(other) == state(source)


@pytest.mark.usefixtures("small_pages")
def test_whoever_writes_to_the_source_meanwhile_is_in_the_copy_or_said_to_be_missing(source, target):
    writer = source.seat(Actor.agent("a"), SHOP)
    before = source.stats().events

    def write(_):
        writer.log("thought", "written while it is copied")

    done = source.copy_to(target, progress=write)
    assert target.audit().ok
    assert target.stats().events == done.events > before
    assert target.stats().events + done.behind == source.stats().events
    source.copy_to(target)
    assert state(target) == state(source)


def test_a_target_with_something_else_is_refused_and_left_as_it_is(source, target):
    target.seat(Actor.agent("a"), SHOP).log("thought", "mine")
    before = state(target)
    with pytest.raises(Conflict, match="has something else"):
        source.copy_to(target)
    assert state(target) == before


def test_a_target_that_went_its_own_way_is_refused(source, target):
    source.copy_to(target)
    for memory in (source, target):
        memory.seat(Actor.agent("a"), SHOP).log("thought", "after the copy")
    before = state(target)
    with pytest.raises(Conflict, match="has something else"):
        source.copy_to(target)
    assert state(target) == before


@pytest.mark.usefixtures("small_pages")
def test_somebody_who_writes_to_the_target_meanwhile_is_noticed(source, target):
    stranger = target.seat(Actor.agent("b"), Scope(org="other", project="else"))
    with pytest.raises(Conflict, match="wrote to the target"):
        source.copy_to(target, progress=lambda _: stranger.log("thought", "here I am"))


def test_a_copy_onto_itself_is_refused_and_one_onto_a_backup_of_it_is_not(source, tmp_path):
    with pytest.raises(InvalidInput, match="the same store"):
        source.copy_to(source)
    (tmp_path / "link").symlink_to(tmp_path / "source")
    with pytest.raises(InvalidInput, match="the same store"):
        mnemarch.copy(source, tmp_path / "link")
    (tmp_path / "kept" / ".mnemarch").mkdir(parents=True)
    source.backup(tmp_path / "kept" / ".mnemarch" / "memory.db")
    source.seat(Actor.agent("a"), SHOP).log("thought", "after the backup")
    assert mnemarch.copy(source, tmp_path / "kept").events == 1


@pytest.mark.usefixtures("small_pages")
def test_a_damaged_entry_of_the_source_is_named_and_not_copied(source, target):
    def spoil(transaction):
        (event,) = transaction.events(after=40, limit=1)
        transaction._execute("UPDATE events SET body = '{}' WHERE id = :id", {"id": event.id})
        return event

    event = source._engine.store.write(spoil)
    with pytest.raises(StoreCorrupt, match=f"#{event.seq} of the source: its payload was changed"):
        source.copy_to(target)
    assert target.audit().ok


def test_a_folder_is_the_memory_in_it_whatever_store_its_settings_name(tmp_path):
    with mnemarch.open(tmp_path / "a") as memory:
        memory.seat(Actor.agent("a"), SHOP).log("thought", "local")
    (tmp_path / "a" / "mnemarch.toml").write_text('[store]\nurl = "postgresql://nobody@nowhere.invalid/x"\n')
    assert mnemarch.copy(tmp_path / "a", tmp_path / "b").events == 1


@pytest.mark.parametrize(("name", "error"), [("nothing", NotFound), ("empty", InvalidInput)])
def test_a_source_that_holds_nothing_is_refused(tmp_path, name, error):
    mnemarch.open(tmp_path / "empty").close()
    with pytest.raises(error):
        mnemarch.copy(tmp_path / name, tmp_path / "target")
    assert not (tmp_path / "nothing").exists()


def test_rows_of_the_source_that_its_log_does_not_say_are_not_called_verified(source, target):
    def spoil(transaction):
        transaction._execute("UPDATE units SET body = replace(body, 'English', 'Latin')", {})

    source._engine.store.write(spoil)
    with pytest.raises(StoreCorrupt, match="differ from its log") as refused:
        source.copy_to(target)
    assert "rebuild" in refused.value.hint
    assert target.audit(full=True).ok
    source.rebuild()
    source.copy_to(target)
    assert state(target) == state(source)


@pytest.mark.usefixtures("small_pages")
def test_writers_of_other_projects_who_were_behind_are_not_passed_by(postgres_url, target, tmp_path, monkeypatch):
    """In PostgreSQL each project has its own positions: an entry of a slow one comes before others that were read."""
    monkeypatch.chdir(tmp_path)
    with mnemarch.open(postgres_url) as source:
        quick, slow = (source.seat(Actor.human("ada"), scope) for scope in (SHOP, BANK))
        for number in range(30):
            quick.log("thought", f"quick {number}")
        slow.log("thought", "slow")

        def write(_):
            slow.remember("Names are in English", level="org", key="one")
            quick.log("thought", "written while it is copied")

        source.copy_to(target, progress=write)
        source.copy_to(target)
        assert state(target) == state(source)


def test_a_copy_looks_for_no_duplicates_in_its_target(tmp_path, clock, monkeypatch):
    """Closing a memory does, and links what it finds; in a target that would be the beginning of another log."""
    looked = []
    with mnemarch.open(tmp_path / "a", clock=clock) as source:
        seat = source.seat(Actor.agent("a"), SHOP)
        seat.remember_many([Claim(content=f"Queue {number} is drained at night") for number in range(70)])
        monkeypatch.setattr("mnemarch.recall.candidates.Finder.link_duplicates", lambda finder: looked.append(finder))
        mnemarch.copy(source, tmp_path / "b")
        assert looked == []
    with mnemarch.open(tmp_path / "b", clock=clock) as target:
        assert target.stats().unindexed == 0


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
    """The result of a merge by git: each file of the log has one writer, and erased payloads stay erased."""
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
def test_a_resumed_copy_puts_earlier_acts_of_another_clone_first(clones, address, kind, clock):
    """A pull puts entries between those that were copied already."""
    source, named = clones.memories[0], address(kind, "target")
    clones.differ(1)
    mnemarch.copy(source, named)
    clones.meet()
    mnemarch.copy(source, named)
    with mnemarch.open(named, clock=clock) as target:
        assert state(target) == state(source)
        assert target.audit(full=True).ok
