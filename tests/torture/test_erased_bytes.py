"""After an erasure not a byte of the content is left in any file, but in copies that were listed and kept (R16)."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing
from itertools import cycle

import pytest

import mnemarch
from fixtures.dialect import PrefixedStore
from mnemarch import Actor, Citation, Claim, Scope
from mnemarch.config import config_from
from mnemarch.stores.sqlite import SqliteStore
from mnemarch.wiring import parts

SCOPE = Scope(org="acme", project="shop", worktree="main", task="T-1")
SECRET = "The kaleidoscopic marmalade of Zanzibar ferments quietly"
WORDS = ("kaleidoscop", "marmalad", "zanzibar", "ferment")
KOREAN = "잔지바르의 만화경 마멀레이드는 조용히 발효된다"


def traces(folder, content, words):
    """The places of any form of the content in the files of the memory."""
    texts = [content, content.lower(), json.dumps(content)[1:-1], json.dumps(content, ensure_ascii=False)[1:-1], *words]
    forms = [content.encode("utf-16-le"), *(text.encode() for text in texts)]
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            low = data.lower()
            found += [(path.name, form.decode(errors="replace")[:40]) for form in forms if form in data or form in low]
    return found


def many(seat, count=300):
    seat.remember_many([Claim(content=f"Thing{n} weighs {n} grams", level="worktree") for n in range(count)])


def erase(memory, unit_id):
    return memory.seat(Actor.human("alice"), SCOPE).erase(unit_id, "privacy", copies=True)


STORES = ("sqlite", "third dialect")


@pytest.fixture(params=STORES)
def any_store(request, monkeypatch):
    """Every store with files that the contract suite knows; what is in memory alone leaves none."""
    store = PrefixedStore if request.param == "third dialect" else SqliteStore
    monkeypatch.setattr(parts.sqlite, "SqliteStore", store)
    return store


LIVES = {
    "fresh": lambda memory, seat, unit: None,
    "indexed": lambda memory, seat, unit: memory.reindex(),
    "indexed and searched": lambda memory, seat, unit: (memory.reindex(), seat.recall("kaleidoscopic marmalade")),
    "superseded": lambda memory, seat, unit: memory.seat(Actor.human("h"), SCOPE).supersede(
        seat.remember("Another thing altogether", level="worktree").unit.id, unit.id, "newer"
    ),
    "promoted": lambda memory, seat, unit: (
        memory.seat(Actor.human("h"), SCOPE).approve(unit.id),
        memory.seat(Actor.orchestrator("o"), SCOPE).promote(unit.id, to="project"),
        memory.reindex(),
    ),
    "quoted": lambda memory, seat, unit: [
        seat.log("note", f"{n}: {SECRET}!", data={"again": [SECRET] * 3}) for n in range(50)
    ],
    "in an episode": lambda memory, seat, unit: (seat.log("plan", SECRET), seat.verify(True), memory.reindex()),
    "contested": lambda memory, seat, unit: (
        seat.remember(SECRET.replace("quietly", "not quietly"), level="worktree"),
        memory.reindex(),
    ),
    "said by many": lambda memory, seat, unit: [
        memory.seat(Actor.agent(f"a{n}"), SCOPE).remember(SECRET, level="worktree") for n in range(20)
    ],
    "cited again and again": lambda memory, seat, unit: [
        seat.cite(unit.id, Citation.test(f"test_{n}")) for n in range(60)
    ],
    "in its key": lambda memory, seat, unit: (
        seat.log("note", SECRET, key=f"once: {SECRET}"),
        seat.remember(SECRET, level="worktree", key=SECRET),
    ),
    "in a graph": lambda memory, seat, unit: (
        seat.graph.upsert_query("s", f"Is it true that {SECRET}?"),
        seat.graph.finalize_session("s", checkpoint=True),
    ),
    "in core and working memory": lambda memory, seat, unit: (
        seat.core.core_memory_append("human", f"one: {SECRET}"),
        seat.core.core_memory_replace("human", "one", "another"),
        seat.working.add_hypothesis(SECRET),
        seat.working.consolidate(),
        memory.reindex(),
    ),
    "refused at project scope": lambda memory, seat, unit: seat.remember(f"Also: {SECRET}", level="project"),
}


@pytest.mark.parametrize(("life", "any_store"), [*zip(LIVES, cycle(STORES), strict=False)], indirect=["any_store"])
def test_r16_no_byte_of_erased_content_is_left(folder, life, any_store):
    with mnemarch.open(folder) as memory:
        assert type(memory._engine.store) is any_store
        seat = memory.seat(Actor.agent("a"), SCOPE)
        many(seat, 100)
        unit = seat.remember(SECRET, level="worktree").unit
        LIVES[life](memory, seat, unit)
        many(seat, 150)
        assert traces(folder, SECRET, WORDS)
        for other in seat.units(limit=1000):
            if other.id != unit.id and any(word in other.content.lower() for word in WORDS):
                erase(memory, other.id)
        erased = erase(memory, unit.id)
        assert erased.files >= 1
        assert traces(folder, SECRET, WORDS) == []
        assert memory.audit().ok
        assert memory.rebuild().same
        assert seat.recall("thing7 weighs").items[0].unit.content == "Thing7 weighs 7 grams"
    assert traces(folder, SECRET, WORDS) == []
    with mnemarch.open(folder) as memory:  # Last, since a question that nothing answers is kept.
        assert memory.seat(Actor.agent("a"), SCOPE).recall("kaleidoscopic marmalade Zanzibar").items == ()


@pytest.mark.parametrize("content", [KOREAN, 'Quoted "kaleidoscopic" marmalade\nof Zanzibar', "Zanzibar 🥭 marmalade"])
def test_r16_no_byte_is_left_in_any_script(folder, content):
    words = ("marmalad", "zanzibar") if content.isascii() or "🥭" in content else ("잔지바르", "마멀레이드")
    with mnemarch.open(folder) as memory:
        seat = memory.seat(Actor.agent("a"), SCOPE)
        many(seat, 100)
        unit = seat.remember(content, level="worktree").unit
        seat.log("note", content)
        memory.reindex()
        erase(memory, unit.id)
        assert traces(folder, content, words) == []


@pytest.mark.usefixtures("any_store")
def test_r16_only_copies_that_were_listed_still_have_it(folder):
    with mnemarch.open(folder) as memory:
        seat, person = memory.seat(Actor.agent("a"), SCOPE), memory.seat(Actor.human("alice"), SCOPE)
        many(seat, 100)
        unit = seat.remember(SECRET, level="worktree").unit
        seat.log("note", f"I heard: {SECRET}")
        seat.remember(f"People say that {SECRET}", level="worktree")
        memory.reindex()
        copies = person.erase(unit.id, "privacy").copies
        assert len(copies) == 2
        assert traces(folder, SECRET, WORDS)
        for copy in copies:
            person.erase(copy.id, "privacy")
        assert traces(folder, SECRET, WORDS) == []


@pytest.mark.parametrize("semantic", ["", "sentence"])
def test_r16_vectors_go_also_where_no_embedder_is_in_use(folder, semantic):
    """The file of an embedder that the configuration names no longer, and folders that an earlier version made."""
    vectors = folder / ".mnemarch" / "vectors"
    with mnemarch.open(folder, config=config_from({"recall": {"semantic": "sentence"}})) as memory:
        seat = memory.seat(Actor.agent("a"), SCOPE)
        unit, kept = (seat.remember(text, level="worktree").unit for text in (SECRET, "Deliveries come on Mondays"))
        memory.reindex()
    (vectors / "0f3a").mkdir()
    (vectors / "0f3a" / "vectors.bin").write_bytes(SECRET.encode())
    rows = "SELECT id, vector FROM vectors WHERE vector IS NOT NULL"
    with closing(sqlite3.connect(vectors / "vectors.db")) as file:
        before = dict(file.execute(rows))
    with mnemarch.open(folder, config=config_from({"recall": {"semantic": semantic}})) as memory:
        erase(memory, unit.id)
    with closing(sqlite3.connect(vectors / "vectors.db")) as file:
        assert dict(file.execute(rows)) == {kept.id: before[kept.id]}
    assert before[unit.id] not in (vectors / "vectors.db").read_bytes()
    assert traces(folder, SECRET, WORDS) == []


def test_r16_a_short_text_leaves_no_byte_either(folder):
    with mnemarch.open(folder) as memory:
        seat = memory.seat(Actor.agent("a"), SCOPE)
        many(seat, 200)
        unit = seat.remember("zqxjkvw", level="worktree").unit
        memory.reindex()
        many(seat, 250)
        erase(memory, unit.id)
        assert traces(folder, "zqxjkvw", ()) == []


def test_r16_another_process_that_has_the_memory_open_does_not_keep_it(worker, folder):
    with mnemarch.open(folder) as memory:
        seat = memory.seat(Actor.agent("a"), SCOPE)
        many(seat)
        unit = seat.remember(SECRET, level="worktree").unit
        memory.reindex()
        reader = worker("recall", folder, "kaleidoscopic marmalade")
        assert reader.line()["found"] == [SECRET]
        erase(memory, unit.id)
        many(seat, 320)
        assert reader.ask("thing310 weighs")["found"][0] == "Thing310 weighs 310 grams"
        assert traces(folder, SECRET, WORDS) == []
        assert reader.ask("kaleidoscopic marmalade")["found"] == []  # Last: a question that nothing answers is kept.
        reader.done()
        assert memory.audit().ok


def test_r16_a_copy_left_in_a_free_page_of_the_file_is_removed_too(folder):
    with mnemarch.open(folder) as memory:
        unit = memory.seat(Actor.agent("a"), SCOPE).remember(SECRET, level="worktree").unit
    path = folder / ".mnemarch" / "memory.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("PRAGMA secure_delete = OFF")
    other.execute("CREATE TABLE scratch (text)")
    other.executemany("INSERT INTO scratch VALUES (?)", [(SECRET,)] * 100)
    other.execute("DROP TABLE scratch")
    other.close()
    assert path.read_bytes().count(SECRET.encode()) > 50
    with mnemarch.open(folder) as memory:
        erase(memory, unit.id)
        assert traces(folder, SECRET, WORDS) == []
        assert memory.audit().ok


def test_r16_an_erasure_that_a_reader_held_up_can_be_finished(folder):
    config = config_from({"store": {"lock_wait_s_max": 0.3}})
    with mnemarch.open(folder, config=config) as memory:
        seat = memory.seat(Actor.agent("a"), SCOPE)
        unit = seat.remember(SECRET, level="worktree").unit
        holder = sqlite3.connect(folder / ".mnemarch" / "memory.db", isolation_level=None)
        holder.execute("BEGIN")
        holder.execute("SELECT count(*) FROM events").fetchone()
        for _ in range(3):  # However often: the text is known only the first time, and still there each time.
            with pytest.raises(mnemarch.StoreUnavailable) as caught:
                erase(memory, unit.id)
            assert caught.value.hint
            assert seat.get(unit.id).content == ""
            assert SECRET.encode() in (folder / ".mnemarch" / "memory.db-wal").read_bytes()
        holder.execute("ROLLBACK")
        holder.close()
        erase(memory, unit.id)
        assert traces(folder, SECRET, WORDS) == []
        assert memory.audit().ok


def test_r16_threads_may_go_on_writing_and_reading_while_one_erases(folder):
    with mnemarch.open(folder) as memory:
        seat = memory.seat(Actor.agent("a"), SCOPE)
        units = [seat.remember(f"{SECRET} number {n}", level="worktree").unit for n in range(6)]
        stop = threading.Event()
        troubles, receipts = [], []

        def write():
            receipts.append(seat.log("thought", "x" * 300))

        def again_and_again(act):
            try:
                while not stop.is_set():
                    act()
            except Exception as error:  # noqa: BLE001 - told to the test
                troubles.append(error)

        acts = [write, write, write, lambda: seat.recall("number", k=3)]
        threads = [threading.Thread(target=again_and_again, args=(act,)) for act in acts]
        for thread in threads:
            thread.start()
        try:
            for unit in units:
                erase(memory, unit.id)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert troubles == []
        assert traces(folder, SECRET, WORDS) == []
        assert memory.audit().ok
        events = {event.id for event in memory._engine.store.read(lambda reader: list(reader.events()))}
        assert {receipt.event_id for receipt in receipts} <= events
