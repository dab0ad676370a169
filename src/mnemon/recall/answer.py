"""One recall from question to answer: candidates, what may be handed out, order, and what was withheld."""

from __future__ import annotations

from mnemon.model.found import Found, Withheld
from mnemon.model.link import LinkType
from mnemon.model.unit import DRAFT_STATE, PAST_STATE, TRUSTED_STATE, Kind
from mnemon.model.value import replace
from mnemon.recall.finder import Candidate
from mnemon.recall.scores import label, ranked, withheld_reason
from mnemon.text.tokens import query_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from typing import Any

    from mnemon.config import RecallRules
    from mnemon.model.found import Recalled
    from mnemon.model.presence import Presence
    from mnemon.model.unit import Unit
    from mnemon.ports import Reader, Store
    from mnemon.recall.finder import Finder

_WITHHELD_MAX = 8
_GLOBAL = "global"


def answer(
    store: Store,
    finder: Finder,
    presence: Presence,
    query: str,
    *,
    k: int,
    kinds: Sequence[Kind],
    domain: str | None,
    as_of: datetime | None,
    now: datetime,
    rules: RecallRules,
) -> Found:
    """What this seat may be told about the query at this moment (or as of an earlier one)."""
    visible = presence.visible_keys
    words = query_tokens(query)
    limit = max(rules.candidates_min, k * rules.candidates_per_item) if k else 0
    within: dict[str, Any] = {
        "kinds": list(dict.fromkeys(map(str, kinds))),
        "domains": list(dict.fromkeys([domain, _GLOBAL])) if domain else [],
    }
    if words:
        # Each on its own: however many hypotheses match, they can't crowd out what is trusted (R2).
        trusted = finder.candidates(words, visible, states=[TRUSTED_STATE], limit=limit, **within)
        drafts = finder.candidates(words, visible, states=[DRAFT_STATE], limit=limit, **within)
        past_max = limit if as_of else _WITHHELD_MAX
        past = finder.candidates(words, visible, states=[PAST_STATE], limit=past_max, **within)
        candidates = [*trusted, *drafts]
    else:
        candidates, past = _newest(store, visible, within, limit), []
    allowed: list[Candidate] = []
    withheld: list[Withheld] = []
    for candidate in (*candidates, *past):
        unit = candidate.unit
        if unit.scope.key not in visible:
            continue
        reason = withheld_reason(unit, now, as_of)
        if reason is None:
            allowed.append(candidate)
        else:
            withheld.append(Withheld(unit_id=unit.id, reason=reason))
    items = store.read(lambda reader: _labelled(reader, visible, ranked(allowed, now=now, rules=rules, k=k)))
    return Found(items=tuple(items), withheld=tuple(withheld[:_WITHHELD_MAX]), intent="GENERAL")


def _labelled(reader: Reader, visible: Sequence[str], items: Sequence[Recalled]) -> list[Recalled]:
    """Say of each item how far it may be believed, and whether another contradicts it."""
    return [replace(item, label=label(item.unit, _contested(reader, visible, item.unit.id))) for item in items]


def _contested(reader: Reader, visible: Sequence[str], unit_id: str) -> bool:
    """Whether a live unit that this reader can see contradicts it, undecided."""
    for link in reader.links_of(unit_id):
        if link.open and link.type is LinkType.CONTRADICTS:
            other = reader.unit(link.target if link.source == unit_id else link.source)
            if other is not None and other.live and other.scope.key in visible:
                return True
    return False


def _newest(store: Store, visible: Sequence[str], within: dict[str, list[str]], limit: int) -> list[Candidate]:
    """With nothing to search for, what is newest."""

    def look(reader: Reader) -> list[Unit]:
        found: list[Unit] = []
        kinds: list[Kind | None] = [Kind(kind) for kind in within["kinds"]]
        domains: list[str | None] = [*within["domains"]]
        for kind in kinds or [None]:
            for domain in domains or [None]:
                found += reader.units_in(visible, kind=kind, domain=domain, live=True, limit=limit)
        return found

    newest = sorted(store.read(look), key=lambda unit: unit.id, reverse=True)[:limit]
    return [Candidate(unit=unit, lexical=0.0) for unit in newest]
