"""Habits of a project (M14, M15). Verified tasks vote in its log, and a clear majority becomes a preference."""

from __future__ import annotations

from collections import Counter

from mnemarch.learning.preferences import Tally, interaction_votes, sentence_for, style_votes, tallies
from mnemarch.model.caller import GATE, Caller, Level, Scope
from mnemarch.model.event import Event, EventType
from mnemarch.model.unit import KEPT_AS, LESSON, TRUSTED, Claim, Kind, Unit
from mnemarch.text.edits import Edit, netted
from mnemarch.units.analysis import edits_told
from mnemarch.units.finding import refusal_to_repeat
from mnemarch.units.remember import record_unit
from mnemarch.units.status import change, retire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from typing import Any

    from mnemarch.log.act import Act
    from mnemarch.stores.sql.reader import Reader

    # By the name of a vote: its choice for each topic, and the ids of the log entries behind it.
    Votes = dict[str, tuple[dict[str, str], list[str]]]

_UNITS_MAX = 5_000
# Only the newest votes count, since a habit may change.
_VOTES_MAX = 400
_ENTRIES_MAX = 20
_TOPIC = "habit"


def keeper(caller: Caller) -> Caller:
    """The caller in whose name habits are kept: the gate, at the level of the project."""
    return Caller(GATE, caller.scope.at(Level.PROJECT), caller.session, caller.root)


def habits_in(reader: Reader, scope: Scope) -> dict[str, Unit]:
    """The habits of a project, by topic."""
    units = reader.units_in([scope.at(Level.PROJECT).key], kind=Kind.PREFERENCE, live=True, limit=_UNITS_MAX)
    return {str(unit.attributes[_TOPIC]): unit for unit in units if unit.is_derived and _TOPIC in unit.attributes}


def vote(act: Act, episode_id: str, votes: Sequence[tuple[dict[str, str], list[str]]]) -> list[Unit]:
    """Record the votes of a task, once. Returns the habits that changed."""
    key = f"habits:{episode_id}"
    if not votes or act.transaction.event_for_key(act.caller.scope_key, str(act.caller.actor), key) is not None:
        return []
    told = {"episode": episode_id, "votes": [each for each, _ in votes], "entries": [ids for _, ids in votes]}
    _note(act, f"What the patches of episode {episode_id} vote for.", told, key)
    return _recounted(act)


def resting_on(act: Act, covers: Callable[[Event], bool]) -> list[str]:
    """The names of the votes whose entries are all covered by `covers`."""
    names = []
    for name, (_, entry_ids) in _standing(act.transaction, act.caller.scope).items():
        entries = [event for id in entry_ids if (event := act.transaction.event(id)) is not None]
        if entries and all(map(covers, entries)):
            names.append(name)
    return names


def unfounded(act: Act, withdrawn: Collection[str]) -> list[Unit]:
    """The habits that would not be declared without these votes."""
    votes = _standing(act.transaction, act.caller.scope)
    supported = {pair for name in withdrawn for pair in votes[name][0].items()}
    tallied = tallies(each for name, (each, _) in votes.items() if name not in withdrawn)
    lost = supported - {(tally.topic, tally.choice) for tally in tallied if tally.is_declared}
    habits = habits_in(act.transaction, act.caller.scope).items() if lost else ()
    return [unit for topic, unit in habits if (topic, unit.attributes["choice"]) in lost]


def withdraw(act: Act, names: Sequence[str], why: str) -> str:
    """Withdraw votes. Returns the event id that `bring_back` takes."""
    event = _note(act, f"Votes withdrawn: {why}", {"withdrawn": list(names)})
    _recounted(act)
    return event.id


def bring_back(act: Act, withdrawal: str) -> int:
    """Revert a withdrawal of votes. Returns how many count again."""
    _note(act, "Votes count again.", {"reverts": withdrawal})
    _recounted(act)
    event = act.transaction.event(withdrawal)
    return len(event.payload["data"]["withdrawn"]) if event is not None and event.payload else 0


def _note(act: Act, text: str, data: dict[str, Any], key: str | None = None) -> Event:
    keeping = act.by(keeper(act.caller))
    payload = {"kind": "habits", "text": text, "data": data}
    return keeping.record(EventType.LOGGED, payload, subject=f"habits:{keeping.caller.scope_key}", key=key)[0]


def _standing(reader: Reader, scope: Scope) -> Votes:
    """The newest votes that are not withdrawn, oldest first."""
    votes: Votes = {}
    withdrawn: dict[str, list[str]] = {}
    for event in reader.events_of_subject(f"habits:{scope.at(Level.PROJECT).key}", last=_VOTES_MAX):
        data = (event.payload or {}).get("data") or {}
        cast = zip(data.get("votes", ()), data.get("entries", ()), strict=False)
        votes |= {f"{event.id}:{at}": each for at, each in enumerate(cast)}
        withdrawn[event.id] = data.get("withdrawn", [])
        withdrawn.pop(data.get("reverts", ""), None)
    gone = {name for names in withdrawn.values() for name in names}
    return {name: votes[name] for name in [name for name in votes if name not in gone][-_VOTES_MAX:]}


def _recounted(act: Act) -> list[Unit]:
    """Recount the votes and update the habits. Returns those that changed."""
    known = habits_in(act.transaction, act.caller.scope)
    tallied = tallies(each for each, _ in _standing(act.transaction, act.caller.scope).values())
    changed = [_declared(act.by(keeper(act.caller)), tally, known.get(tally.topic)) for tally in tallied]
    return [unit for unit in changed if unit is not None]


def _declared(act: Act, tally: Tally, known: Unit | None) -> Unit | None:
    """The habit of a topic, if it is new or has new counts. A habit without its majority is archived or superseded."""
    attributes: dict[str, Any] = {
        KEPT_AS: LESSON,
        "kept_by": f"{tally.votes} of {tally.of} votes",
        _TOPIC: tally.topic,
        "choice": tally.choice,
        "votes": tally.votes,
        "of": tally.of,
    }
    is_same = known is not None and known.attributes["choice"] == tally.choice and 2 * tally.votes > tally.of
    if known is not None and is_same:
        if known.attributes == attributes:
            return None
        # The text stays the same, so that a person's rejection of it still applies.
        return change(act, EventType.UNIT_VALIDATED, known, {"set": {"attributes": attributes}})
    if known is not None and known.status in TRUSTED:
        return None  # It is trusted, so counts alone don't replace it.
    if known is not None and not tally.is_declared:
        from mnemarch.units.undo import retire as archive

        archive(act, known, "patches no longer bear it out")
    content = sentence_for(tally.topic, tally.choice)
    claim = Claim(content=content, kind=Kind.PREFERENCE, level=Level.PROJECT, attributes=attributes)
    if not tally.is_declared or refusal_to_repeat(act, claim) is not None:
        return None
    event, _ = record_unit(act, claim, None)
    if known is not None:
        retire(act, known, str(event.subject), "patches now vote for another habit")
    return act.known_unit(event.subject)


def edits_in(entries: Iterable[Event]) -> list[Edit]:
    """The net edits of the entries. Entries with a patch are skipped, since a patch shows only parts of the file.

    Intermediate edits that did not last are left out: they are no habit.
    """
    whole = (event for event in entries if "patch" not in ((event.payload or {}).get("data") or {}))
    return [edit for edit in netted(edits_told(whole)) if edit.changes and edit.after]


def votes_of(entries: Sequence[Event]) -> list[tuple[dict[str, str], list[str]]]:
    """The votes of a task: one for each edited file, and one for the task itself. Each comes with its entries."""
    by_file: dict[str, tuple[dict[str, Counter[str]], list[str]]] = {}
    for edit in edits_in(entries):
        topics, ids = by_file.setdefault(edit.path, ({}, []))
        ids.append(edit.sources[-1].id)
        for topic, choice in style_votes(edit.before, edit.after, edit.path).items():
            topics.setdefault(topic, Counter())[choice] += 1
    votes = [
        ({topic: count.most_common(1)[0][0] for topic, count in topics.items()}, ids[-_ENTRIES_MAX:])
        for topics, ids in by_file.values()
    ]
    datas: list[dict[str, Any]] = [(event.payload or {}).get("data") or {} for event in entries]
    tools = [str(data.get("tool") or data.get("command")) for data in datas if data.get("tool") or data.get("command")]
    files = {data["path"] for data in datas if isinstance(data.get("path"), str)}
    steps = sum((event.payload or {}).get("kind") == "step" for event in entries)
    own = interaction_votes(tools, steps or len(entries), len(files)), [event.id for event in entries[-_ENTRIES_MAX:]]
    return [each for each in (*votes, own) if each[0]]
