"""Sketches of made-up units, and conversations to judge them by."""

from __future__ import annotations

from random import Random

from mnemarch.model.json_text import canonical_json
from mnemarch.model.search import Sketch
from mnemarch.model.unit import Searchable
from mnemarch.text.conversation import sketched

# 2026-03-01T12:00:00Z
NOON = 1_772_366_400_000_000


def session_key(name, project="shop", org="acme"):
    return canonical_json([org, project, name])


def searchable(content, id="u-1", *, session=None, turn=0, **fields):
    given = {
        "scope_key": "here",
        "state": "draft",
        "kind": "fact",
        "domain": "global",
        "occurred_at": NOON,
        "importance": 0.5,
        "changed_at": 1,
    }
    return Searchable(id=id, session=session, turn=turn, content=content, **(given | fields))


def sketch(content, id="u-1", **fields) -> Sketch:
    return sketched(searchable(content, id, **fields))


def said(*contents, session="s-1", start=1, **fields):
    """The turns of a session, with ids that say where they stand."""
    return [
        sketch(content, f"{session}.{turn}", session=session_key(session), turn=turn, **fields)
        for turn, content in enumerate(contents, start)
    ]


def talk(turns, seed=0):
    """What is said in a conversation that changes its topic every five turns."""
    chance = Random(seed)
    common = [f"plain{number}" for number in range(40)]
    contents = []
    while len(contents) < turns:
        topic = [f"topic{chance.randrange(10**6)}" for _ in range(8)]
        contents += [" ".join(chance.sample(topic, 4) + chance.sample(common, 4)) for _ in range(5)]
    return contents[:turns]


def conversation(contents, project="shop", seed=0, session_turns=30):
    """The contents as sketches, in sessions of so many turns."""
    return [
        sketch(
            content,
            f"{project}-{seed}-{number}",
            session=session_key(f"{seed}-{number // session_turns}", project),
            turn=number % session_turns + 1,
        )
        for number, content in enumerate(contents)
    ]
