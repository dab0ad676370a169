"""Nobody waits for the reading of a text: what follows from a text alone is computed before the store is locked."""

from __future__ import annotations

import os
import sys

import pytest

import mnemarch
from mnemarch import Citation, Claim
from mnemarch.text import cache

# So much of a text may be read under the lock: a reason, a statement that is compared, a name.
CHARS_MAX = 8_192
TEXT = os.path.dirname(cache.__file__)
# These look a text up, walk a payload whose texts were scanned before, or see that a text is too long for them.
LOOKING_UP = {"redacted", "redacted_tree", "_redacted_dict", "_is_clean_entry", "_is_named_secret", "_has_secret"}
LOOKING_UP |= {"_name_of", "canonical_key", "hashed", "statement", "breaks"}
# The names that are looked for are the graph's own, which the transaction has just read.
OF_THE_GRAPH = {
    *("found_in", "_level", "_folded", "composed", "__init__", "_may_begin", "_is_spelled", "_is_ended"),
    "_may_end",
}


class Probe:
    """Notes each function of `text/` that gets a long text while a store is locked."""

    def __init__(self, store) -> None:
        self.seen: set[str] = set()
        self.acts = 0
        write = store.write

        def probed(work, **options):
            def profiled(transaction):
                self.acts += 1
                before = sys.getprofile()
                sys.setprofile(self.note)
                try:
                    return work(transaction)
                finally:
                    sys.setprofile(before)

            return write(profiled, **options)

        store.write = probed

    def note(self, frame, event, _argument) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(TEXT) or code.co_name in LOOKING_UP | OF_THE_GRAPH:
            return
        taken = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]
        if any(isinstance(text, str) and len(text) > CHARS_MAX for text in taken):
            self.seen.add(f"{os.path.basename(code.co_filename)}:{code.co_name}")


TEXTS = {
    "hyphens": "a-" * 32_000,
    "words": "the API keeps `user_id` and not 3 things " * 1_500,
    "Korean": "캐시를 켜지 않는다 " * 2_200,
    "a secret": "password=hunter2hunter2 and so on " * 1_200,
}
CHANGES = {
    "log": lambda seats, text: seats.agent().log("thought", text, data={"more": [text]}),
    "log_many": lambda seats, text: seats.agent().log_many([("thought", text), ("thought", f"x {text}")]),
    "remember": lambda seats, text: [seats.agent().remember(each) for each in (text, text, f"not {text}")],
    "remember_many": lambda seats, text: seats.agent().remember_many(Claim(content=f"{n} {text}") for n in range(4)),
    "refused": lambda seats, text: seats.agent().remember(text, level="project"),
    "fail": lambda seats, text: [seats.agent().fail(text, approach=text[:4000]) for _ in range(2)],
    "verify": lambda seats, text: seats.agent().verify(passed=False, error=text, approach=text[:4000]),
    "gate": lambda seats, text: _judged(seats, text),
    "decide": lambda seats, text: _decided(seats.human(), text),
    "policy": lambda seats, text: seats.human().decisions.add_policy(text, level="project"),
    "ask": lambda seats, text: _asked(seats.agent(), text),
    "recall": lambda seats, text: seats.agent().recall(text),
    "approve": lambda seats, text: seats.human().approve(seats.agent().remember(text).unit.id),
    "supersede": lambda seats, text: seats.human().supersede(
        *(seats.human().remember(each).unit.id for each in (f"x {text}", text)), "it changed"
    ),
}


def _judged(seats, text):
    seats.agent().remember(f"local {text}", citations=[Citation.test("test_retry")])
    seats.agent().remember(text, level="project", citations=[Citation.test("test_retry")])
    cache.forget_texts()
    seats.saw("test_retry")


def _decided(seat, text):
    reason = {"type": "other", "summary": "it is simple"}
    for content in (text, f"not {text}"):
        seat.decisions.commit(
            seat.decisions.propose(content, reason=reason, snapshots=[text], strength="lock", level="project"),
            override="it is so",
        )


def _asked(seat, text):
    question = seat.graph.upsert_query("s", text)
    seat.graph.record_answer("s", question, text)
    seat.graph.record_feedback("s", question, "up", text)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_no_long_text_is_read_while_the_store_is_locked(seats, change, text):
    probe = Probe(seats.memory._engine.store)
    change(seats, text)
    assert probe.acts
    assert probe.seen == set()


def test_an_import_reads_its_texts_before_the_store_is_locked(seats, tmp_path):
    for text in TEXTS.values():
        seats.agent().remember(text)
    seats.memory.export(str(tmp_path / "log.jsonl"))
    cache.forget_texts()
    with mnemarch.open(":memory:") as other:
        probe = Probe(other._engine.store)
        other.import_(str(tmp_path / "log.jsonl"))
    assert probe.acts
    assert probe.seen == set()


def test_the_probe_sees_what_is_read_in_a_transaction(seats):
    store = seats.memory._engine.store
    probe = Probe(store)
    from mnemarch.text.tokens import tokens

    store.write(lambda transaction: tokens("a " * CHARS_MAX))
    assert "tokens.py:tokens" in probe.seen
