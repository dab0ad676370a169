"""Core memory (M19): short sections that stand in every prompt, and the five tools by which an agent keeps them.

A section consists of entries, and each entry is a unit with its author. So concurrent appends both stay, one entry can
be erased, and undoing an actor removes only its own entries. An agent writes for its worktree, a person for the project
(R20).
"""

from __future__ import annotations

import json
from functools import cache
from math import log as logarithm
from pathlib import Path

from mnemarch.errors import Conflict, Hint, InvalidInput, MnemarchError, NotAllowed, StoreError
from mnemarch.learning.analyst import misfit
from mnemarch.model.caller import ActorKind, Caller, Level
from mnemarch.model.event import EventType
from mnemarch.model.outcome import Refused, Stored
from mnemarch.model.stamps import datetime, short_id
from mnemarch.model.unit import TRUSTED, Citation, Claim, Kind, Status, Unit
from mnemarch.model.value import Frozen, replace
from mnemarch.policy.admission import checked_count, checked_text, default_level, typed_methods
from mnemarch.policy.permissions import Deed
from mnemarch.policy.promotion import refusal_to_write
from mnemarch.policy.trust import label_of
from mnemarch.text.prompt import entry, fenced, without_fenced
from mnemarch.text.secrets import redacted
from mnemarch.text.tokens import query_tokens, telling_tokens
from mnemarch.units.finding import refusal_to_repeat
from mnemarch.units.remember import record_unit
from mnemarch.units.status import change, proof_of, retire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Protocol

    from mnemarch.log.act import Act, Log
    from mnemarch.model.search import Found, Recalled
    from mnemarch.stores.sql.reader import Reader

    class Archive(Protocol):
        """The part of a seat that the tools need to store and search memories."""

        def remember(self, content: str) -> Stored | Refused: ...
        def recall(self, query: str, k: int) -> Found: ...

    # The text of a new entry, "" for none, and the entries that it replaces.
    Edit = tuple[str, Sequence[Unit]]

# The persona section belongs to one agent. The task section is kept at the level of the task.
_OWN, _OF_THE_TASK = "persona", "task"
_REMOVED = "(removed)"
_ENTRIES_MAX = 10_000
_HISTORY_MAX = 1_000
_PAGE_MAX = 1_000
_PAGE_ITEMS = 5
# The kinds of log entries that are turns of a conversation.
_TURNS = frozenset({"user", "assistant", "system", "human", "prompt", "message", "question", "answer", "reply"})
# The newest entries of each scope that a search reads.
_SEARCHED_MAX = 20_000
_SHOWN_CHARS_MAX = 2_000


class CoreSection(Frozen):
    """A section as a seat sees it. `version` is the number of its last change in the log. `room` is how many characters
    this seat can add."""

    name: str
    text: str
    version: int
    room: int
    entries: tuple[Unit, ...] = ()


class Turn(Frozen):
    """One turn of a conversation. `score` says how well it matches the question."""

    id: str
    kind: str
    actor: str
    text: str
    at: datetime
    score: float = 0.0


@typed_methods
class CoreMemory:
    """The core memory of one seat, its tools for a model, and what the model is told."""

    def __init__(self, log: Log, caller: Caller, archive: Archive) -> None:
        self._log = log
        self._caller = caller
        self._archive = archive
        self._rules = log.config.core

    # Reading

    def sections(self) -> list[CoreSection]:
        """Every section with its text, in the order of the configuration."""
        units = self._log.store.read(self._live)
        return [self._section(name, units) for name in self._rules.sections]

    def compiled(self) -> str:
        """Every section as one text for a prompt, fenced as data, with labels that say how far to believe it."""
        entries = []
        for section in self.sections():
            texts: dict[str, list[str]] = {} if section.entries else {"empty": []}
            for each in section.entries:
                texts.setdefault(label_of(each), []).append(each.content)
            for label, said in texts.items():
                head = f"[CORE {section.name}] {label}, {section.room:,} characters left"
                entries.append(entry(head, "\n".join(said)) if said else head)
        return fenced(entries)

    def history(self, section: str) -> list[Unit]:
        """Every entry that the section ever had, oldest first. Removals are included, erased entries are not."""
        name, keys = self._known(section), self._caller.visible_keys
        units = self._log.store.read(lambda reader: reader.units_in(keys, kind=Kind.CORE, limit=_HISTORY_MAX))
        return sorted((unit for unit in units if self._is_mine(unit) and _is_in(name, unit)), key=_version)

    def _live(self, reader: Reader) -> list[Unit]:
        """The live entries of all sections, ordered by level, widest first, and then by place."""
        live = reader.units_in(self._caller.visible_keys, kind=Kind.CORE, live=True, limit=_ENTRIES_MAX)
        mine = [unit for unit in live if self._is_mine(unit)]
        return sorted(mine, key=lambda unit: (-unit.level, unit.attributes.get("place", 0), unit.id))

    def _is_mine(self, unit: Unit) -> bool:
        return unit.attributes.get("owner") in {None, str(self._caller.actor)}

    def _section(self, name: str, units: Sequence[Unit]) -> CoreSection:
        named = [unit for unit in units if _is_in(name, unit)]
        entries = tuple(unit for unit in named if not _is_removal(unit))
        return CoreSection(
            name=name,
            text=_said(entries),
            version=max(map(_version, named), default=0),
            room=max(0, self._rules.chars_max - len(_said(self._written_here(name, named)))),
            entries=entries,
        )

    def _written_here(self, name: str, units: Sequence[Unit]) -> list[Unit]:
        """The entries and the last removal of a section, at the address where this seat writes."""
        scope, level, owner = self._caller.scope, self._level(name), self._owner(name)
        key = scope.at(level).key if level >= scope.level else None
        there = [unit for unit in units if unit.scope.key == key and unit.attributes.get("owner") == owner]
        return [unit for unit in there if _is_in(name, unit)]

    def _level(self, name: str) -> Level:
        return Level.TASK if name == _OF_THE_TASK else default_level(self._caller.actor, self._caller.scope)

    def _owner(self, name: str) -> str | None:
        is_own = name == _OWN and self._caller.actor.kind is not ActorKind.HUMAN
        return str(self._caller.actor) if is_own else None

    def _known(self, section: str) -> str:
        if section not in self._rules.sections:
            known = ", ".join(self._rules.sections)
            raise InvalidInput(f"Core memory has no section {section!r}.", hint=f"Use one of: {known}.")
        return section

    # Changing

    def core_memory_append(self, section: str, content: str, *, expected_version: int | None = None) -> CoreSection:
        """Add a text to a section. A text that is already an entry is not added again."""
        text = self._cleaned(checked_text(content, "The content", self._log.config.limits.text_bytes_max)).strip()
        if not text:
            raise InvalidInput("This text only repeats recalled memory.", hint="State only what is new.")

        def appended(part: Sequence[Unit]) -> Edit | None:
            return None if any(unit.content == text for unit in part) else (text, ())

        return self._changed(section, appended, expected_version)

    def core_memory_replace(
        self, section: str, old: str, new: str, *, expected_version: int | None = None
    ) -> CoreSection:
        """Replace a text, which must occur exactly once in the section. An empty `new` removes it."""
        checked_text(old, "The old text", self._log.config.limits.text_bytes_max)
        if new:
            new = self._cleaned(checked_text(new, "The new text", self._log.config.limits.text_bytes_max))

        def replaced(part: Sequence[Unit]) -> Edit:
            return _replaced(section, [unit for unit in part if self._may_change(unit)], old, new)

        return self._changed(section, replaced, expected_version)

    def _may_change(self, unit: Unit) -> bool:
        """Whether this actor may change an entry. A trusted entry takes the right to supersede (R4)."""
        allows = self._log.config.policy.allows
        return unit.status not in TRUSTED or allows(self._caller.actor.kind, Deed.SUPERSEDE, unit.level)

    @staticmethod
    def _cleaned(text: str) -> str:
        return redacted(without_fenced(text))[0]

    def _changed(
        self, section: str, edited: Callable[[Sequence[Unit]], Edit | None], expected_version: int | None
    ) -> CoreSection:
        """Make one change. It is decided inside the transaction, so no concurrent change is lost."""
        name = self._known(section)

        def work(act: Act) -> CoreSection:
            units = self._live(act.transaction)
            before = self._section(name, units)
            if expected_version is not None and expected_version != before.version:
                raise Conflict(
                    f"Section {name} is at version {before.version}, not {expected_version}.",
                    hint="Read it again, then decide again.",
                    expected_version=expected_version,
                    actual_version=before.version,
                    current=before,
                )
            here = self._written_here(name, units)
            part = [unit for unit in here if not _is_removal(unit)]
            edit = edited(part)
            if edit is None:
                return before
            self._require_room(name, part, *edit)
            self._write(act, name, *edit, [unit for unit in here if _is_removal(unit)])
            return self._section(name, self._live(act.transaction))

        return self._log.act(self._caller, work)

    def _require_room(self, name: str, part: Sequence[Unit], text: str, replaced: Sequence[Unit]) -> None:
        chars_max, chars = self._rules.chars_max, len(_said(part))
        gone = {unit.id for unit in replaced}
        rest = _said([unit for unit in part if unit.id not in gone])
        needed = len("\n".join(filter(None, [rest, text])))
        if needed > max(chars, chars_max):
            raise InvalidInput(
                f"Section {name} holds {chars_max:,} characters and has {max(0, chars_max - chars):,} left;"
                f" this needs {needed - chars:,}.",
                hint="Shorten it, shorten an entry with core_memory_replace, or keep it with archival_memory_insert.",
            )

    def _write(self, act: Act, name: str, text: str, replaced: Sequence[Unit], removals: Sequence[Unit]) -> None:
        """Record a new entry, or a removal, and retire the entries that it replaces."""
        actor, level = self._caller.actor, self._level(name)
        scope = self._caller.scope.at(level)
        number = act.transaction.next_number(self._caller.stream)
        about = {"section": name, "number": number, "owner": self._owner(name), "removal": not text or None}
        about["place"] = replaced[0].attributes.get("place", number) if replaced else number
        is_person = actor.kind is ActorKind.HUMAN
        claim = Claim(
            content=text or _REMOVED,
            kind=Kind.CORE,
            level=level,
            citations=(Citation.human(actor.id),) if is_person else (),
            attributes={key: item for key, item in about.items() if item is not None},
        )
        proof = proof_of(act, claim, scope, {})
        status = Status.HYPOTHESIS if proof is None else Status.VERIFIED
        refusal = refusal_to_write(actor, level, status, act.config.policy)
        hint = None if refusal is None or level < Level.PROJECT else Hint("name the level", level=Level.WORKTREE)
        if refusal is None and text and not is_person:
            refusal = refusal_to_repeat(act, claim)
        if refusal is not None:
            why = f"{actor} may not write this in section {name}: {refusal.reason}"
            raise NotAllowed(why, rule=refusal.rule, hint=hint or refusal.hint)
        event, _ = record_unit(act, claim, proof)
        unit = act.known_unit(event.subject)
        for old in (*replaced, *removals):
            retire(act, old, unit.id, f"section {name} changed")
        if replaced:
            first = replaced[0].id
            change(act, EventType.UNIT_SUPERSEDING, unit, {"old": first, "set": {"supersedes": first}})

    # Searching

    def archival_memory_insert(self, content: str) -> Stored | Refused:
        """Remember a text through the gate. It can be searched, but does not stand in every prompt."""
        return self._archive.remember(content)

    def archival_memory_search(self, query: str, page: int = 0) -> list[Recalled]:
        """A page of matching units, best first."""
        start = checked_count(page, "page", _PAGE_MAX) * _PAGE_ITEMS
        return list(self._archive.recall(query, start + _PAGE_ITEMS).items[start:])

    def conversation_search(self, query: str, page: int = 0) -> list[Turn]:
        """A page of matching turns of the seat's session, best first. Turns with equal scores are newest first.

        Only the newest 20,000 entries of each scope are read. Without a session, the turns of all its scopes count.
        """
        start = checked_count(page, "page", _PAGE_MAX) * _PAGE_ITEMS
        turns = self._log.store.read(self._turns)
        wanted = query_tokens(query)
        if wanted:
            turns = _ranked(turns, wanted)
        return turns[start : start + _PAGE_ITEMS]

    def _turns(self, reader: Reader) -> list[Turn]:
        """The turns of the conversation, the newest first."""
        pages = [
            reader.events_back(key, types=[EventType.LOGGED], limit=_SEARCHED_MAX) for key in self._caller.visible_keys
        ]
        said = sorted((event for page in pages for event in page), key=lambda event: event.position, reverse=True)
        turns = []
        for event in said:
            payload = event.payload if self._caller.session in {None, event.session} else None
            if payload is not None and payload["kind"].lower() in _TURNS:
                text = without_fenced(payload["text"])
                turns.append(Turn(event.id, payload["kind"], str(event.actor), text, event.occurred_at))
        return turns

    # For a model

    def tools(self, style: str = "openai") -> list[dict[str, Any]]:
        """The JSON schemas of the five tools for OpenAI-style or Anthropic-style tool calling."""
        return schemas(style, self._rules.sections)

    def call(self, name: str, arguments: Mapping[str, Any] | str) -> str:
        """Run a model's tool call and return the text for the model. That text also reports the model's mistakes."""
        try:
            checked = checked_arguments(name, arguments)
            return _told(name, getattr(self, name), checked)
        except StoreError:
            raise  # The model can't do anything about it.
        except MnemarchError as error:
            return f"Not done. {error}"


def _is_in(section: str, unit: Unit) -> bool:
    return unit.attributes.get("section") == section


def _version(unit: Unit) -> int:
    return int(unit.attributes.get("number", 0))


def _is_removal(unit: Unit) -> bool:
    return "removal" in unit.attributes


def _said(units: Sequence[Unit]) -> str:
    return "\n".join(unit.content for unit in units if not _is_removal(unit))


def _replaced(section: str, part: Sequence[Unit], old: str, new: str) -> Edit:
    """The edit that replaces one text: the new content, and the entries that it replaces."""
    whole = _said(part)
    if old not in whole:  # A text that was copied from a prompt has indented lines.
        old = "\n".join(line.removeprefix("  ") for line in old.split("\n"))
    places = [at for at in range(len(whole)) if whole.startswith(old, at)]
    if len(places) != 1:
        count = f"the text {old!r:.80} {len(places)} times, not once" if places else f"no text {old!r:.80}"
        raise InvalidInput(
            f"Section {section}, as far as you may change it, has {count}.",
            hint="Quote more of the text around it." if places else f"It says: {whole or 'nothing'}",
        )
    [begin], start = places, 0
    touched: dict[int, Unit] = {}
    for unit in part:
        end = start + len(unit.content)
        if start <= begin + len(old) and begin <= end:
            touched[start] = unit
        start = end + 1
    said, at = _said(list(touched.values())), begin - min(touched)
    return (said[:at] + new + said[at + len(old) :]).strip(), list(touched.values())


def _ranked(turns: Sequence[Turn], wanted: Sequence[str]) -> list[Turn]:
    """The turns that contain one of these tokens, scored by how many and how rare they are. Ties keep their order."""
    has = [(turn, set(wanted).intersection(telling_tokens(turn.text))) for turn in turns]
    seen = {token: sum(token in tokens for _, tokens in has) for token in wanted}
    weights = {token: logarithm(1 + len(turns) / count) for token, count in seen.items() if count}
    scored = [replace(turn, score=sum(weights[token] for token in tokens)) for turn, tokens in has if tokens]
    return sorted(scored, key=lambda turn: -turn.score)


# The tools as a model sees them: schemas, checks of the arguments, and answers


@cache
def tool_table() -> dict[str, dict[str, Any]]:
    """The five tools by name, each with its description and its parameters."""
    listed = json.loads(Path(__file__).with_name("core_tools.json").read_text(encoding="utf-8"))
    return {tool["name"]: tool for tool in listed}


def schemas(style: str, sections: Sequence[str]) -> list[dict[str, Any]]:
    """The schema of every tool, in one style of tool calling."""
    if style not in _STYLES:
        raise InvalidInput(f"{style!r} is not a style of tool calling.", hint=f"Use one of: {', '.join(_STYLES)}.")
    return [
        _STYLES[style](tool["name"], tool["description"], _schema(tool, sections)) for tool in tool_table().values()
    ]


def _schema(tool: Mapping[str, Any], sections: Sequence[str] = ()) -> dict[str, Any]:
    allowed = {"section": {"enum": list(sections)}} if sections else {}
    return {
        "type": "object",
        "properties": {name: field | allowed.get(name, {}) for name, field in tool["parameters"].items()},
        "required": list(tool["required"]),
        "additionalProperties": False,
    }


_STYLES: dict[str, Callable[[str, str, dict[str, Any]], dict[str, Any]]] = {
    "openai": lambda name, says, schema: {
        "type": "function",
        "function": {"name": name, "description": says, "parameters": schema},
    },
    "anthropic": lambda name, says, schema: {"name": name, "description": says, "input_schema": schema},
}


def checked_arguments(name: str, arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """The arguments of a tool call, checked against its schema. OpenAI's clients pass JSON as text."""
    tool = tool_table().get(name)
    if tool is None:
        raise InvalidInput(f"There is no tool {name!r}.", hint=f"Call one of: {', '.join(tool_table())}.")
    hint = f"Call {name} with {', '.join(tool['parameters'])}."
    given: Any = arguments
    if isinstance(arguments, str):
        try:
            given = json.loads(arguments)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"The arguments of {name} are not JSON: {error}.", hint=hint) from None
    if problem := misfit(given, _schema(tool), name):
        raise InvalidInput(f"{problem}.", hint=hint)
    return dict(given)


def _told(name: str, tool: Callable[..., Any], arguments: Mapping[str, Any]) -> str:
    """Call a tool and return the answer for the model."""
    page = arguments.get("page", 0)
    match name:
        case "core_memory_append" | "core_memory_replace":
            section: CoreSection = tool(**arguments)
            return f"Done. Section {section.name} has {section.room:,} characters left."
        case "archival_memory_insert":
            return _kept(tool(**arguments))
        case "archival_memory_search":
            found: Sequence[Recalled] = tool(**arguments)
            return _page([(f"{item.label} {short_id(item.unit.id)}", item.unit.content) for item in found], page)
    turns: Sequence[Turn] = tool(**arguments)
    return _page([(f"[{turn.kind.upper()}] {turn.at:%Y-%m-%d %H:%M} {turn.actor}", turn.text) for turn in turns], page)


def _kept(outcome: Stored | Refused) -> str:
    if isinstance(outcome, Refused):
        return f"Not kept. {outcome.reason}"
    said = "Known already" if outcome.merged else "Kept"
    opposed = [f"It contradicts something known: {each.reason}." for each in outcome.conflicts]
    return " ".join([f"{said} as {short_id(outcome.unit.id)}.", *opposed])


def _page(results: Sequence[tuple[str, str]], page: int) -> str:
    """A page of results, fenced as data."""
    if not results:
        return "Nothing more." if page else "Nothing found. Try other words."
    entries = [entry(head, text[:_SHOWN_CHARS_MAX] + "…" * (len(text) > _SHOWN_CHARS_MAX)) for head, text in results]
    return fenced(entries) + f"\nFor more, ask for page {page + 1}." * (len(results) == _PAGE_ITEMS)
