"""What tasks taught about a project: bug patterns, code patterns, habits, each with its counts (M13-M15)."""

from __future__ import annotations

from collections import Counter

from mnemarch.errors import NotFound
from mnemarch.learning.episodic import told_error
from mnemarch.learning.errors import KnownErrors, errors_of, seen_error
from mnemarch.learning.preferences import SAID, interaction_votes, style_votes, tallies
from mnemarch.model.caller import GATE, Caller, Level
from mnemarch.model.event import EventType
from mnemarch.model.search import Recalled
from mnemarch.model.unit import KEPT_AS, Claim, Kind
from mnemarch.policy.admission import checked_text
from mnemarch.policy.kinds import TIER_KEPT
from mnemarch.policy.labels import label_of
from mnemarch.units.gate import withheld_reason
from mnemarch.units.remember import record_unit
from mnemarch.units.same_text import refusal_to_repeat
from mnemarch.units.status import change, retire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from mnemarch.learning.code_rules import Learned
    from mnemarch.learning.preferences import Tally
    from mnemarch.log.act import Act, Log
    from mnemarch.model.citation import Citation
    from mnemarch.model.event import Event
    from mnemarch.model.outcome import Refused, Stored
    from mnemarch.model.unit import Unit
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.units.remember import Intake

_TEXT_BYTES_MAX = 1_048_576
_UNITS_MAX = 5_000
_ENTRIES_MAX = 1_000
# So many of the newest patches and tasks count: a habit may change.
_VOTES_MAX = 400
_TOPIC = "habit"


class SemanticMemoryManager:
    """What is known of a project from its tasks. What is derived is kept by the program, for the project (R2, R14)."""

    def __init__(self, log: Log, caller: Caller, intake: Intake) -> None:
        self._log = log
        self._caller = caller
        self._intake = intake

    # Bug patterns

    def add_bug_pattern(self, error: str, solution: str, *, citations: Sequence[Citation] = ()) -> Stored | Refused:
        """Claim how an error is mended; a fact like any other, which is also found by the error."""
        met = seen_error(checked_text(error, "The error", _TEXT_BYTES_MAX))
        mended = checked_text(solution, "The solution", self._log.config.limits.text_bytes_max)
        attributes = {"faults": [{"key": met.key, "line": met.line}], "solution": mended}
        content = f"“{met.line}”: {mended}"
        claim = Claim(content=content, kind=Kind.FACT, citations=tuple(citations), attributes=attributes)
        return self._intake.remember([claim])[0]

    def match_bug_pattern(self, error_type: str | None, error_message: str, top_k: int = 5) -> list[Recalled]:
        """The bug patterns of an error, the most alike first; none if no pattern is of it."""
        error = seen_error(checked_text(told_error(error_type, error_message), "The error", _TEXT_BYTES_MAX))
        keys, now = self._caller.visible_keys, self._log.clock()
        units = self._log.store.read(lambda reader: reader.units_in(keys, kind=Kind.FACT, live=True, limit=_UNITS_MAX))
        known = {unit.id: unit for unit in units if withheld_reason(unit, now, None) is None}
        alike = KnownErrors((unit.id, met) for unit in known.values() for met in errors_of(unit)).alike(error)
        return [
            Recalled(
                known[unit_id], score, TIER_KEPT, {"fingerprint": float(met.key == error.key)}, label_of(known[unit_id])
            )
            for unit_id, (score, met) in list(alike.items())[:top_k]
        ]

    # Code patterns

    def add_code_pattern(self, before: str, after: str, *, path: str = "", evidence: str | None = None) -> Learned:
        """Learn a code rule from a change; `seat.rules` has them all."""
        from mnemarch.learning.code_rules import CodeRules

        return CodeRules(self._log, self._caller).learn(before, after, path=path, evidence=evidence)

    # Habits

    def preferences(self) -> list[Unit]:
        """The habits that enough patches and tasks bear out."""
        return self._log.store.read(lambda reader: list(self._habits(reader).values()))

    def learn_from_episode(self, episode_id: str) -> list[Unit]:
        """Let a successful task vote on the project's habits, once; gives the habits that changed.

        Its edits vote on style, file by file, and its log on how the work went.
        """
        found = self._log.store.read(lambda reader: reader.unit(episode_id))
        if found is None or found.scope.key not in self._caller.visible_keys or found.kind is not Kind.EPISODE:
            raise NotFound(f"No episode {episode_id!r} here.", hint="`mnemarch episodes` lists them.")
        task_key = found.attributes.get("task_key")
        if not found.attributes.get("success") or not isinstance(task_key, str):
            return []
        entries = self._log.store.read(lambda reader: _entries(reader, task_key))
        votes = _votes(entries)
        if not votes:
            return []
        # The program's own, at project level: it is no step of the task.
        gate = Caller(GATE, self._caller.scope.at(Level.PROJECT), self._caller.session, self._caller.root)
        return self._log.act(gate, lambda act: self._learn(act, episode_id, votes, entries))

    def _learn(self, act: Act, episode_id: str, votes: list[dict[str, str]], entries: Sequence[Event]) -> list[Unit]:
        subject, key = f"habits:{act.caller.scope_key}", f"habits:{episode_id}"
        if act.transaction.event_for_key(act.caller.scope_key, str(act.caller.actor), key) is not None:
            return []
        data = {"episode": episode_id, "votes": votes, "entries": [event.id for event in entries[:20]]}
        payload = {"kind": "habits", "text": f"What the patches of episode {episode_id} vote for.", "data": data}
        act.record(EventType.LOGGED, payload, subject=subject, key=key)
        recorded = [event.payload or {} for event in act.transaction.events_of_subject(subject, last=_VOTES_MAX)]
        cast = [vote for payload in recorded for vote in payload.get("data", {}).get("votes", ())]
        known = self._habits(act.transaction)
        changed = [self._declare(act, tally, known.get(tally.topic)) for tally in tallies(cast[-_VOTES_MAX:])]
        return [unit for unit in changed if unit is not None]

    def _habits(self, reader: Reader) -> dict[str, Unit]:
        project = self._caller.scope.at(Level.PROJECT).key
        units = reader.units_in([project], kind=Kind.PREFERENCE, live=True, limit=_UNITS_MAX)
        return {
            str(unit.attributes[_TOPIC]): unit
            for unit in units
            if _TOPIC in unit.attributes and KEPT_AS in unit.attributes
        }

    def _declare(self, act: Act, tally: Tally, known: Unit | None) -> Unit | None:
        """The habit with its new counts; another choice takes its place once that is declared."""
        attributes: dict[str, Any] = {
            KEPT_AS: "lesson",
            "kept_by": f"{tally.votes} of {tally.of} votes",
            _TOPIC: tally.topic,
            "choice": tally.choice,
            "votes": tally.votes,
            "of": tally.of,
        }
        is_same = known is not None and known.attributes["choice"] == tally.choice
        if known is not None and is_same:
            # The text stays as it is, so that a person's no to it lasts.
            return change(act, EventType.UNIT_VALIDATED, known, {"set": {"attributes": attributes}})
        content = SAID.get((tally.topic, tally.choice), f"Code is searched with {tally.choice}.")
        claim = Claim(content=content, kind=Kind.PREFERENCE, level=Level.PROJECT, attributes=attributes)
        if not tally.is_declared or refusal_to_repeat(act, claim) is not None:
            return None
        event, _ = record_unit(act, claim, None)
        if known is not None:
            retire(act, known, str(event.subject), "patches now vote for another habit")
        return act.known_unit(event.subject)


def _entries(reader: Reader, task_key: str) -> list[Event]:
    """What the task logged since it last succeeded before this time, oldest first."""
    wanted = (EventType.LOGGED, EventType.TASK_VERIFIED)
    entries: list[Event] = []
    successes = 0
    for event in reader.events_back(task_key, types=wanted, limit=_ENTRIES_MAX):
        if event.type is EventType.LOGGED and event.payload:
            entries.append(event)
        elif (event.payload or {}).get("passed"):
            successes += 1
            if successes > 1:
                break
    return entries[::-1]


def _votes(entries: Sequence[Event]) -> list[dict[str, str]]:
    """One vote for each file and topic, and one of the task itself."""
    logged = [event.payload or {} for event in entries]
    by_file: dict[str, dict[str, Counter[str]]] = {}
    for entry in logged:
        data = entry.get("data") or {}
        before, after, path = (data.get(name) or "" for name in ("before", "after", "path"))
        if all(isinstance(text, str) for text in (before, after, path)) and after and path.endswith((".py", ".pyi")):
            for topic, choice in style_votes(before, after, path).items():
                by_file.setdefault(path, {}).setdefault(topic, Counter())[choice] += 1
    votes = [{topic: count.most_common(1)[0][0] for topic, count in topics.items()} for topics in by_file.values()]
    datas: list[dict[str, Any]] = [entry.get("data") or {} for entry in logged]
    tools = [str(data.get("tool") or data.get("command")) for data in datas if data.get("tool") or data.get("command")]
    files = {data["path"] for data in datas if isinstance(data.get("path"), str)}
    own = interaction_votes(tools, sum(entry.get("kind") == "step" for entry in logged) or len(logged), len(files))
    return [*votes, *([own] if own else [])]
