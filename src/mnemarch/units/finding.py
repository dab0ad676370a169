"""Finds units by a partial id and by their text, and refuses texts that were rejected (R4, R5, R6).

A partial id is the beginning of an id, or of its last group, which is the part that gets printed.
"""

from __future__ import annotations

from mnemarch.errors import InvalidInput
from mnemarch.lazy import Lazy
from mnemarch.model.caller import ActorKind, Caller, Stream
from mnemarch.model.event import Event, EventType
from mnemarch.model.stamps import ID_CHARS
from mnemarch.model.unit import CitationKind, Claim, Kind, Status, Unit
from mnemarch.policy.kinds import kinds_where
from mnemarch.policy.promotion import Refusal
from mnemarch.text import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from mnemarch.log.act import Act
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.text import canonical, guarded
    from mnemarch.text import opposition as opposing
    from mnemarch.text import statements as stating

    KnownTexts = tuple[list[Unit], list[Unit]]
else:
    # A run of tests mostly compares no statements, and their words take a while to load.
    canonical = Lazy("mnemarch.text.canonical")
    guarded = Lazy("mnemarch.text.guarded")
    opposing = Lazy("mnemarch.text.opposition")
    stating = Lazy("mnemarch.text.statements")

RULE = "R5"
LEAVING = frozenset({EventType.UNIT_REJECTED, EventType.UNIT_ARCHIVED})
_VOUCHING = frozenset({EventType.UNIT_REMEMBERED, EventType.UNIT_MERGED, EventType.UNIT_CITED, EventType.UNIT_APPROVED})
_TOPIC_READ_MAX = 100
_CLAIMS = kinds_where(lambda rules: rules.disputes and rules.bucket is not None)
_PART_CHARS_MIN = 6
_CANDIDATES_MAX = 200
_LISTED_MAX = 5
_WORDS_CHARS_MAX = 60
_LAST_GROUP = 24
_OF_AN_ID = frozenset("0123456789abcdef-")


# By id


def is_whole(typed: str) -> bool:
    """Whether the text can't be a partial id: it is a whole id, or not an id at all."""
    return not _PART_CHARS_MIN <= len(typed) < ID_CHARS or not _OF_AN_ID.issuperset(typed.lower())


def unit_id(reader: Reader, caller: Caller, typed: str) -> str:
    """The whole id of the unit that a partial id names. If it names no unit, the text itself."""
    units = [] if is_whole(typed) else reader.units_named(typed.lower(), _CANDIDATES_MAX)
    return _one_of(typed, {unit.id: unit.content for unit in units if caller.may_read(unit.scope)})


def link_id(reader: Reader, caller: Caller, typed: str) -> str:
    """Like `unit_id`, for a conflict or a merge proposal."""
    links = [] if is_whole(typed) else reader.links_named(typed.lower(), _CANDIDATES_MAX)
    sides = reader.units({side for link in links for side in (link.source, link.target)})
    seen = {side for side, unit in sides.items() if caller.may_read(unit.scope)}
    return _one_of(typed, {link.id: link.note for link in links if {link.source, link.target} <= seen})


def event_id(reader: Reader, caller: Caller, typed: str) -> str:
    """Like `unit_id`, for an entry of the log."""
    events = [] if is_whole(typed) else reader.events_named(typed.lower(), _CANDIDATES_MAX)
    return _one_of(typed, {event.id: str(event.type) for event in events if caller.may_read(event.scope)})


def any_id(reader: Reader, caller: Caller, typed: str) -> str:
    """Like `unit_id`, for a unit, a conflict or an entry of the log, looked up in this order."""
    for look in (unit_id, link_id, event_id):
        whole = look(reader, caller, typed)
        if whole != typed:
            return whole
    return typed


def _one_of(typed: str, candidates: dict[str, str]) -> str:
    if len(candidates) < 2:
        return next(iter(candidates), typed)
    listed = [
        f"{id[_LAST_GROUP:]} ({words.in_a_line(text, _WORDS_CHARS_MAX)})"
        for id, text in list(candidates.items())[:_LISTED_MAX]
    ]
    more = f" and {len(candidates) - _LISTED_MAX} more" if len(candidates) > _LISTED_MAX else ""
    raise InvalidInput(f"{typed!r} could be {', '.join(listed)}{more}.", hint="Give more characters of one of these.")


# By text


def live_with_same_text(reader: Reader, scope_keys: Sequence[str], content: str) -> list[Unit]:
    """Live units of these scopes with this canonical text, oldest first."""
    return [unit for unit in _with_same_text(reader, scope_keys, content) if unit.live]


def past_with_same_text(reader: Reader, scope_keys: Sequence[str], content: str) -> list[Unit]:
    """Rejected, replaced and archived units of these scopes with this canonical text, oldest first."""
    return [unit for unit in _with_same_text(reader, scope_keys, content) if not unit.live]


def _with_same_text(reader: Reader, scope_keys: Sequence[str], content: str) -> list[Unit]:
    """Units with the same text. The text is compared too, because two texts may share a key by chance."""
    text = canonical.mergeable(content)
    units = reader.units_with_text(scope_keys, canonical.merge_key(content))
    return [unit for unit in units if canonical.mergeable(unit.content) == text]


def is_same(unit: Unit, kind: Kind, domain: str, content: str, attributes: Mapping[str, Any]) -> bool:
    """Whether a unit with the same text is the same unit. Evidence must match in every letter and tag (D1)."""
    if unit.kind is not kind or unit.domain != domain:
        return False
    return kind is not Kind.EVIDENCE or (unit.content == content and unit.attributes == attributes)


def twin_of(reader: Reader, unit: Unit, scope_key: str) -> Unit | None:
    """Another live unit of that scope with the same text, kind and domain."""
    for other in live_with_same_text(reader, [scope_key], unit.content):
        if other.id != unit.id and is_same(other, unit.kind, unit.domain, unit.content, unit.attributes):
            return other
    return None


# Rejected texts


def rejection_of(reader: Reader, unit: Unit) -> Event | None:
    """The rejection that archived a unit. None if it was archived for another reason."""
    if unit.status is not Status.ARCHIVED:
        return None
    left = [event for event in reader.events_of_subject(unit.id) if event.type in LEAVING]
    return left[-1] if left and left[-1].type is EventType.UNIT_REJECTED else None


def is_settled(act: Act, claim: Event) -> bool:
    """Whether a refused claim was accepted or declined in the inbox, and not reopened since."""
    return any("reopens" not in (event.payload or {}) for event in act.transaction.events_of_subject(claim.id, last=1))


def rejected_alike(reader: Reader, scope_keys: Sequence[str], said: Claim | Unit) -> list[tuple[Unit, Event]]:
    """The rejected units of these scopes with this text, each with its rejection."""
    units = [unit for unit in past_with_same_text(reader, scope_keys, said.content) if _says_it(unit, said)]
    return [(unit, event) for unit in units if (event := rejection_of(reader, unit)) is not None]


def is_reworded(left: str, right: str) -> bool:
    """Whether two texts differ only in words without meaning.

    Order, values, numbers, negations, opposites, limits, names and quoted strings all count as differences (R6).
    """
    ours, theirs = (
        (said.topic, [value.words for value in said.values], stating.limits(text))
        for said, text in ((stating.statement(left), left), (stating.statement(right), right))
    )
    return ours == theirs and not guarded.differences(left, right) and opposing.opposes(left, right) is None


def rewordings_of(act: Act, unit: Unit) -> list[Unit]:
    """Live units that say the same as this one, where it or the caller is, and that no person vouches for."""
    keys = dict.fromkeys([*act.caller.visible_keys, *(at.key for at in unit.scope.visible)])
    if unit.kind not in _CLAIMS:
        return []
    near = act.transaction.units_of_topic([*keys], stating.topic_key(unit.content), _TOPIC_READ_MAX)
    near = [other for other in near if other.kind in _CLAIMS and is_reworded(other.content, unit.content)]
    by_persons = {other.id for other in near for citation in other.citations if citation.kind is CitationKind.HUMAN}
    return [other for other in near if other.id != unit.id and other.id not in by_persons]


def rejected_with(act: Act, unit: Unit) -> list[Unit]:
    """The units that were rejected because a person rejected this one, which says the same."""
    near = act.transaction.rejected_of_topic(act.caller.stream, stating.topic_key(unit.content), _TOPIC_READ_MAX)
    rejections = [(other, rejection_of(act.transaction, other)) for other in near]
    return [other for other, event in rejections if event and (event.payload or {}).get("along_with") == unit.id]


def read_before_repeating(reader: Reader, stream: Stream, content: str) -> KnownTexts:
    """The units of a project and its org with this text, and rejected units of the same topic."""
    return (
        reader.units_saying(stream, canonical.merge_key(content)),
        reader.rejected_of_topic(stream, stating.topic_key(content), _TOPIC_READ_MAX),
    )


def refusal_to_repeat(
    act: Act, said: Claim | Unit, unit_id: str | None = None, *, known_texts: KnownTexts | None = None
) -> Refusal | None:
    """The refusal of a text that was rejected, or None. A person's later claim or approval lifts the rejection (R4).

    A person's rejection holds in the whole project, also for nearly the same words. Another actor's rejection holds
    only for the same words, where that unit is visible. `unit_id` is the unit with this text, if there is one.
    `known_texts` is the result of `read_before_repeating`, if it was called already.
    """
    reader, stream, visible = act.transaction, act.caller.stream, act.caller.visible_keys
    saying, near = known_texts or read_before_repeating(reader, stream, said.content)
    if not (saying or near):
        return None
    text, topic = canonical.mergeable(said.content), stating.topic_key(said.content)
    same = [unit for unit in saying if canonical.mergeable(unit.content) == text]
    near = [unit for unit in near if is_reworded(unit.content, said.content)]
    for unit in {unit.id: unit for unit in (*same, *near)}.values():
        rejection = rejection_of(reader, unit) if _says_it(unit, said) else None
        is_here = unit in same and unit.scope.key in visible
        if rejection is None or not (is_here or rejection.actor.kind is ActorKind.HUMAN):
            continue
        live = reader.units_of_topic(visible, topic, _TOPIC_READ_MAX)
        voices = [unit_id, *(other.id for other in live if is_reworded(other.content, said.content))]
        if not any(_is_vouched_for(reader, voice, rejection) for voice in voices if voice is not None):
            why = (rejection.payload or {}).get("reason", "the reason was erased")
            what = "this" if unit in same else "nearly the same"
            return Refusal(
                RULE,
                f"{rejection.actor} rejected {what} on {rejection.recorded_at:%Y-%m-%d} as unit {unit.id}: {why}.",
                f"If it is true after all, a person can approve unit {unit.id}.",
                unit.id,
            )
    return None


def _says_it(unit: Unit, said: Claim | Unit) -> bool:
    """Whether a unit with this text states the same. Kind and domain don't matter, except for evidence (D1)."""
    assert isinstance(said.kind, Kind)
    if Kind.EVIDENCE in {unit.kind, said.kind}:
        return is_same(unit, said.kind, said.domain, said.content, said.attributes)
    return True


def _is_vouched_for(reader: Reader, unit_id: str, rejection: Event) -> bool:
    """Whether a person claimed, cited or approved the unit after that rejection."""
    return any(
        event.type in _VOUCHING and event.actor.kind is ActorKind.HUMAN
        for event in reader.events_of_subject(unit_id, after=rejection.position)
    )
