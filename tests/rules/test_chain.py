"""The hash chain: whatever is changed, removed, moved or added by hand is found and named (R1)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch import Actor, EventType, Scope
from mnemarch.log.audit import checked_chain
from mnemarch.log.chain import entry_hash, payload_hash
from mnemarch.model.caller import Stream
from mnemarch.model.value import replace
from mnemarch.stores.sqlite import InMemoryStore
from mnemarch.testing import recorded

SCOPES = (Scope(org="acme", project="shop", task="T-1"), Scope(org="acme", project="bank"), Scope(org="acme"))


def log(count=9):
    """Events of three streams, interleaved, and their heads."""
    store = InMemoryStore()
    store.write(
        lambda tx: [
            recorded(tx, scope=SCOPES[n % 3], payload={"n": n}, key=f"k-{n}", subject=f"u-{n}", session="s")
            for n in range(count)
        ]
    )
    events = store.read(lambda reader: list(reader.events()))
    heads = {event.stream: (event.seq, event.hash) for event in events}
    return events, heads


CHANGES = {
    "id": lambda event: "another",
    "stream": lambda event: Stream("acme", "elsewhere"),
    "seq": lambda event: event.seq + 1,
    "type": lambda event: EventType.UNIT_HELD,
    "actor": lambda event: Actor.human(event.actor.id),
    "scope": lambda event: Scope(org="acme", project="shop", task="T-2"),
    "session": lambda event: None,
    "subject": lambda event: "another",
    "key": lambda event: None,
    "occurred_at": lambda event: event.occurred_at + timedelta(microseconds=1),
    "recorded_at": lambda event: event.recorded_at - timedelta(microseconds=1),
    "body": lambda event: event.body.replace("n", "m"),
    "salt": lambda event: b"x" * 16,
    "payload_hash": lambda event: b"x" * 32,
    "hash": lambda event: b"x" * 32,
    "clock": lambda event: "[1,{}]",
}


def test_an_untouched_log_holds():
    events, heads = log()
    assert checked_chain(events, heads) == checked_chain(iter(events), heads)
    assert checked_chain(events, heads).ok
    assert checked_chain(events, heads).events == len(events)


def test_every_field_of_an_event_is_tried():
    events, _ = log()
    assert set(CHANGES) == set(type(events[0]).__match_args__) - {"position"}


@pytest.mark.parametrize("field", CHANGES)
def test_r1_a_change_of_any_field_of_any_event_is_found_and_named(field):
    events, heads = log()
    for place, event in enumerate(events):
        changed = replace(event, **{field: CHANGES[field](event)})
        found = checked_chain([*events[:place], changed, *events[place + 1 :]], heads)
        assert not found.ok, place
        named = {changed.id}
        if field in {"hash", "stream"}:
            # The entry itself can't tell; another of its stream can, or the head.
            named |= {other.id for other in events if other.stream == event.stream}
        assert found.first_broken in named, place
        assert found.problem


@given(st.data())
def test_r1_a_removed_event_is_found(data):
    events, heads = log()
    place = data.draw(st.integers(0, len(events) - 1))
    assert not checked_chain([*events[:place], *events[place + 1 :]], heads).ok


@given(st.data())
def test_r1_events_of_a_stream_that_changed_places_are_found(data):
    events, heads = log()
    first, second = data.draw(
        st.sampled_from([(a, b) for a in range(9) for b in range(a) if events[a].stream == events[b].stream])
    )
    events[first], events[second] = events[second], events[first]
    assert not checked_chain(events, heads).ok


def test_r1_a_tail_or_a_whole_stream_that_was_cut_off_is_found():
    events, heads = log()
    for left in (*(events[:end] for end in range(9)), [event for event in events if event.stream.project != "bank"]):
        found = checked_chain(left, heads)
        assert not found.ok
        assert found.problem


def test_r1_an_event_put_in_twice_or_forged_at_the_end_is_found():
    events, heads = log()
    assert not checked_chain([*events, events[-1]], heads).ok
    last = events[-1]
    forged = replace(last, seq=last.seq + 1, id="forged")
    forged = replace(forged, hash=entry_hash(last.hash, forged))
    assert not checked_chain([*events, forged], heads).ok


def emptied(places, vouched):
    """A log in which these places are empty, and an erasure at its end that says so of the vouched ones."""
    store = InMemoryStore()
    store.write(lambda tx: [recorded(tx, scope=SCOPES[n % 3], payload={"n": n}) for n in range(9)])
    ids = [event.id for event in store.read(lambda reader: list(reader.events()))]
    erasure = {"links": [], "units": [], "events": [ids[place] for place in vouched]}
    last = store.write(lambda tx: recorded(tx, scope=SCOPES[0], type=EventType.UNIT_ERASED, payload=erasure))
    ids.append(last.id)
    store.write(lambda tx: [tx.erase_payload(ids[place]) for place in places])
    return store.read(lambda reader: checked_chain(reader.events(), reader.heads())), ids


@given(st.sets(st.integers(0, 8)))
def test_r16_the_chain_holds_when_an_erasure_emptied_payloads(erased):
    assert emptied(erased, erased)[0].ok


@given(st.sets(st.integers(0, 8), min_size=1), st.sets(st.integers(0, 8)))
def test_r1_an_emptied_payload_that_no_erasure_vouches_for_is_found_and_named(erased, vouched):
    found, ids = emptied(erased, vouched)
    unvouched = sorted(erased - vouched)
    assert found.ok is (not unvouched)
    assert found.first_broken == (ids[unvouched[0]] if unvouched else None)


def test_r1_an_erasure_can_not_be_emptied_and_then_vouches_for_nothing():
    found, ids = emptied({2, 9}, {2})
    assert (found.ok, found.first_broken) == (False, ids[2])
    found, ids = emptied({9}, {2})
    assert (found.ok, found.first_broken) == (False, ids[9])


def test_r1_a_stream_without_a_head_is_found():
    events, heads = log()
    del heads[events[1].stream]
    found = checked_chain(events, heads)
    assert not found.ok
    assert found.first_broken == [event.id for event in events if event.stream == events[1].stream][-1]


def test_r16_an_erased_payload_can_not_be_put_back_changed():
    events, heads = log()
    forged = replace(events[0], body='{"n":99}')
    assert not checked_chain([forged, *events[1:]], heads).ok
    assert not checked_chain([replace(forged, salt=None), *events[1:]], heads).ok


@given(st.binary(min_size=16, max_size=16), st.binary(max_size=50), st.binary(max_size=50))
def test_a_payload_hash_tells_payloads_apart(salt, left, right):
    assert (payload_hash(salt, left) == payload_hash(salt, right)) is (left == right)


def test_r1_header_fields_do_not_run_into_each_other():
    events, _ = log(1)
    event = events[0]
    pairs = [
        (replace(event, session="a", subject="b"), replace(event, session="ab", subject="")),
        (replace(event, key=None), replace(event, key="null")),
        (replace(event, actor=Actor.agent("x")), replace(event, actor=Actor.human("x"))),
        (
            replace(event, scope=Scope(org="a", project="b", worktree="c")),
            replace(event, scope=Scope(org="a", project="b", task="c")),
        ),
    ]
    for left, right in pairs:
        assert entry_hash(b"", left) != entry_hash(b"", right)
    assert entry_hash(b"", event) != entry_hash(b"x", event)
