"""Knowledge about a project from its tasks: bug patterns, code patterns and habits, with counts (M13-M15)."""

from __future__ import annotations

from mnemarch.errors import NotFound
from mnemarch.lazy import Lazy
from mnemarch.learning import errors as telling
from mnemarch.learning import habits
from mnemarch.learning.episodic import told_error
from mnemarch.learning.errors import KnownErrors, errors_of, faults_in, seen_error
from mnemarch.model.caller import GATE, Caller, Level
from mnemarch.model.event import Event, EventType
from mnemarch.model.search import Recalled
from mnemarch.model.unit import FAULT, KEPT_AS, LESSON, TRUSTED, Citation, Claim, Kind, Unit
from mnemarch.policy.admission import checked_text, typed_methods
from mnemarch.policy.kinds import TIER_KEPT
from mnemarch.policy.trust import label_of
from mnemarch.text.words import counted
from mnemarch.units.analysis import is_worth_repeating
from mnemarch.units.finding import rejection_of
from mnemarch.units.gate import withheld_reason
from mnemarch.units.remember import Intake, record_unit
from mnemarch.units.scene import newest_first
from mnemarch.units.status import change, retire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from mnemarch.learning import code_rules
    from mnemarch.learning.code_rules import Learned
    from mnemarch.log.act import Act, Log
    from mnemarch.model.outcome import Refused, Stored
    from mnemarch.stores.sql.reader import Reader
else:
    # Loaded late: it is slow to load, and most verifications don't need it.
    code_rules = Lazy("mnemarch.learning.code_rules")

_TEXT_BYTES_MAX = 1_048_576
_UNITS_MAX = 5_000
_ENTRIES_MAX = 1_000
_EPISODES_MAX = 1_000
_OF_FAULT_MAX = _READ_AT_ONCE_MAX = 200
_CITED_MAX = 20
_EDITS_READ = "edits-read"
_IMPORTANCE = 0.6
_RECALLED = (Kind.FACT, Kind.SEMANTIC, Kind.PREFERENCE, Kind.SKILL)


@typed_methods
class SemanticMemoryManager:
    """Knowledge about a project from its tasks. Derived units are the program's, for the project (R2, R14)."""

    def __init__(self, log: Log, caller: Caller, intake: Intake, recall: Callable[..., Any] | None = None) -> None:
        self._log = log
        self._caller = caller
        self._intake = intake
        self._recall = recall

    # Bug patterns

    def add_bug_pattern(self, error: str, solution: str, *, citations: Sequence[Citation] = ()) -> Stored | Refused:
        """Claim how an error is fixed. The claim is an ordinary fact that can also be found by the error."""
        met = seen_error(checked_text(error, "The error", _TEXT_BYTES_MAX))
        mended = checked_text(solution, "The solution", self._log.config.limits.text_bytes_max)
        attributes = {"faults": [{"key": met.key, "line": met.line}], "solution": mended}
        content = f"“{met.line}”: {mended}"
        claim = Claim(content=content, kind=Kind.FACT, citations=tuple(citations), attributes=attributes)
        return self._intake.remember([claim])[0]

    def match_bug_pattern(self, error_type: str | None, error_message: str, top_k: int = 5) -> list[Recalled]:
        """The bug patterns of an error or a similar one, most similar first."""
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

    def get_relevant_knowledge(self, query: str, k: int = 8) -> list[Recalled]:
        """The project's facts, lessons, habits and skills about a question, as recall ranks them."""
        return [] if self._recall is None else list(self._recall(query, k, _RECALLED))

    # Code patterns

    def add_code_pattern(self, before: str, after: str, *, path: str = "", evidence: str | None = None) -> Learned:
        """Learn code rules from a change. `seat.rules` lists all rules."""
        return code_rules.CodeRules(self._log, self._caller).learn(before, after, path=path, evidence=evidence)

    # From episodes

    def preferences(self) -> list[Unit]:
        """The habits that the votes of patches and tasks support."""
        return self._log.store.read(lambda reader: list(habits.habits_in(reader, self._caller.scope).values()))

    def learn_from_episode(self, episode_id: str, *, code: bool = True) -> list[Unit]:
        """Learn from a successful task, once. Returns the habits and bug patterns that changed.

        Its edits and its log vote on habits. The fixes of its errors become bug patterns. Its edits teach code rules,
        unless `code` is False: that takes seconds in a new process.
        """
        episode = self._log.store.read(lambda reader: reader.unit(episode_id))
        if episode is None or episode.scope.key not in self._caller.visible_keys or episode.kind is not Kind.EPISODE:
            raise NotFound(f"No episode {episode_id!r} here.", hint="`mnemarch episodes` lists them.")
        learned = learn_from_task(self._log, self._caller, episode, self._entries(episode))
        if code and has_succeeded(episode):
            self._learn_code(episode)
        return learned

    def _entries(self, episode: Unit) -> list[Event]:
        return self._log.store.read(lambda reader: entries_of(reader, str(episode.attributes.get("task_key", ""))))

    def learn_from_edits(self) -> list[int]:
        """Learn code rules from successful tasks whose edits were not read yet.

        Returns the number of new rules for each task.
        """
        project = self._caller.scope.at(Level.PROJECT)

        def unread(reader: Reader) -> list[Unit]:
            episodes = reader.units_in([project.key], kind=Kind.EPISODE, live=True, limit=_EPISODES_MAX)
            return [
                unit
                for unit in episodes
                if unit.attributes.get("success") is True
                and unit.attributes.get("patches")
                and reader.event_for_key(project.key, str(GATE), f"{_EDITS_READ}:{unit.id}") is None
            ]

        newest = self._log.store.read(unread)[:_READ_AT_ONCE_MAX]
        return [self._learn_code(episode) for episode in reversed(newest)]

    def _learn_code(self, episode: Unit) -> int:
        count, standing = 0, episode.attributes.get("standing")
        # Without a working tree it is unknown whether the edits are in the files, so they are not witnessed.
        is_witnessed = standing is not None and bool(episode.attributes.get("witnessed"))
        for edit in habits.edits_in(self._entries(episode)):
            event = edit.sources[-1]
            if standing is not None and event.id not in standing:
                continue
            # The rule is learned in the name of the edit's author, so undoing the author removes it.
            author = Caller(event.actor, event.scope, event.session, self._caller.root)
            rules = code_rules.CodeRules(self._log, author, is_witnessed=is_witnessed)
            count += len(rules.learn(edit.before, edit.after, path=edit.path, evidence=event.id).new)
        payload = {
            "kind": _EDITS_READ,
            "text": f"The edits of episode {episode.id} were read: {counted(count, 'new rule')}.",
        }
        key = f"{_EDITS_READ}:{episode.id}"

        def note(act: Act) -> None:
            if act.transaction.event_for_key(act.caller.scope_key, str(act.caller.actor), key) is None:
                act.record(EventType.LOGGED, payload, key=key)

        self._log.act(habits.keeper(self._caller), note)
        return count


def has_succeeded(episode: Unit) -> bool:
    return episode.attributes.get("success") is True and "task_key" in episode.attributes


def learn_from_task(log: Log, caller: Caller, episode: Unit, entries: Sequence[Event]) -> list[Unit]:
    """Record the votes and the bug patterns of a successful task. Returns the units that changed."""
    if not has_succeeded(episode):
        return []
    votes, patterns = habits.votes_of(entries), _bug_patterns(episode)
    if not votes and not patterns:
        return []

    def work(act: Act) -> list[Unit]:
        kept = [unit for pattern in patterns for unit in _kept_pattern(act, pattern)]
        return [*habits.vote(act, episode.id, votes), *kept]

    return log.act(habits.keeper(caller), work, together=True)


def entries_of(reader: Reader, task_key: str) -> list[Event]:
    """The task's log entries since the success before its newest one, oldest first."""
    wanted = (EventType.LOGGED, EventType.TASK_VERIFIED)
    entries: list[Event] = []
    successes = 0
    for event in newest_first(reader, task_key, wanted, _ENTRIES_MAX):
        if event.type is EventType.LOGGED and event.payload:
            entries.append(event)
        elif (event.payload or {}).get("passed"):
            successes += 1
            if successes > 1:
                break
    return entries[::-1]


def _bug_patterns(episode: Unit) -> list[Claim]:
    """The bug patterns of a successful task: how its last error and the errors of its tests were fixed, where known.

    A task whose success was only reported gives none (R21).
    """
    if not episode.attributes.get("witnessed"):
        return []
    passed = episode.attributes.get("tests") or ()
    # An error whose test did not run again may still be there.
    faults = [fault for fault in faults_in(episode) if fault.get("test") in (None, *passed)]
    met = {fault.get("key"): fault for fault in faults if fault.get("test") or fault is faults[-1]}
    return [claim for fault in met.values() if (claim := _bug_pattern(episode, fault)) is not None]


def _bug_pattern(episode: Unit, fault: Mapping[str, Any]) -> Claim | None:
    said, then = telling.what_it_said(episode, fault["key"]), telling.texts(fault.get("then"))
    between = [f"`{telling.quoted(step)}`" for step in then[:-1] if is_worth_repeating(step)]
    failed, worked = (f"`{telling.quoted(text)}`" for text in (str(fault.get("command")), "".join(then[-1:])))
    if said:
        solution = f"what worked, as it was said: “{telling.quoted(said)}”."
    elif between:
        solution = f"it was gone after {', '.join(between)}."
    elif then and failed != worked:
        solution = f"{failed} failed, and {worked} worked."
    else:
        return None
    return Claim(
        content=f"“{telling.quoted(str(fault['line']))}”: {solution}",
        kind=Kind.FACT,
        level=Level.PROJECT,
        citations=(Citation.log(episode.provenance[0].event_id),),
        importance=_IMPORTANCE,
        attributes={
            KEPT_AS: LESSON,
            "kept_by": "1 episode",
            "faults": [{"key": fault["key"], "line": fault["line"]}],
            "solution": said or solution,
            "episodes": [episode.id],
            "tasks": [episode.attributes.get("task_key")],
        },
    )


def _kept_pattern(act: Act, claim: Claim) -> list[Unit]:
    """Store a bug pattern, or count it for a known one with the same solution. Returns the unit that changed, if any.

    A new solution supersedes an unverified pattern of a single task. It is kept beside any other known pattern.
    """
    attributes = dict(claim.attributes)
    cited = act.transaction.newest_citing([act.caller.scope_key], FAULT, attributes["faults"][0]["key"], _OF_FAULT_MAX)
    of_fault = [unit for unit in cited if unit.kind is Kind.FACT and unit.is_derived]
    same = [unit for unit in of_fault if telling.is_same(unit.attributes["solution"], attributes["solution"])]
    live = [unit for unit in of_fault if unit.live]
    known = next((unit for unit in live if unit in same), live[0] if live else None)
    if any(attributes["tasks"][0] in unit.attributes["tasks"] for unit in live) or any(
        rejection_of(act.transaction, unit) is not None for unit in same if not unit.live
    ):
        return []
    if known is not None and known in same:
        lists = {name: [*known.attributes[name], *attributes[name]] for name in ("episodes", "tasks")}
        counts = {**known.attributes, **lists, "kept_by": counted(len(lists["tasks"]), "episode")}
        payload: dict[str, Any] = {"set": {"attributes": counts}}
        if len(known.citations) < _CITED_MAX:
            payload["cite"] = [item.to_json() for item in claim.citations]
        return [change(act, EventType.UNIT_VALIDATED, known, payload)]
    event, _ = record_unit(act, claim, None)
    if known is not None and known.status not in TRUSTED and len(known.attributes["tasks"]) == 1:
        retire(act, known, str(event.subject), "another way worked since")
    return [act.known_unit(event.subject)]
