"""One recall from question to answer: candidates, order, what may be handed out, and what was withheld."""

from __future__ import annotations

from mnemarch.errors import StoreUnavailable
from mnemarch.lazy import Lazy
from mnemarch.model.caller import Level
from mnemarch.model.json_text import canonical_json
from mnemarch.model.search import Found, Recalled, Withheld
from mnemarch.model.stamps import micros
from mnemarch.model.unit import (
    DRAFT_STATE,
    LIVE,
    LIVE_STATES,
    PAST_STATE,
    REPLACED_STATE,
    TRUSTED_STATE,
    Kind,
    Status,
    search_kinds,
)
from mnemarch.model.value import replace
from mnemarch.recall.question import Question
from mnemarch.recall.relevance import HOPS, SELF_CONTAINED, judged
from mnemarch.recall.scores import label, ranked, withheld_reason, without_question
from mnemarch.text.coherence import project_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime
    from typing import Any

    from mnemarch.code.view import CodeCheck, CodeView
    from mnemarch.config import RecallRules
    from mnemarch.model.caller import Presence
    from mnemarch.model.search import Sketch
    from mnemarch.model.unit import Unit
    from mnemarch.ports import Store
    from mnemarch.recall import anchors
    from mnemarch.recall.finder import Finder
    from mnemarch.recall.scores import Ranked
    from mnemarch.stores.sql.reader import Reader
    from mnemarch.text import canonical
else:
    anchors = Lazy("mnemarch.recall.anchors")
    canonical = Lazy("mnemarch.text.canonical")

_WITHHELD_MAX = 8
_NEAREST_MAX = 50
_GLOBAL = "global"
_CONTRADICTS = "contradicts"


class Recall:
    """One question of one reader at one moment."""

    def __init__(
        self,
        store: Store,
        finder: Finder,
        presence: Presence,
        *,
        kinds: Sequence[Kind],
        domain: str | None,
        as_of: datetime | None,
        now: datetime,
        rules: RecallRules,
        code: Callable[[], CodeView] | None = None,
        nominate: Callable[[str], dict[str, float]] | None = None,
    ) -> None:
        self._store = store
        self._finder = finder
        self._presence = presence
        self._as_of = as_of
        self._now = now
        self._rules = rules
        self._visible = presence.visible_keys
        self._code = code
        self._nominate = nominate
        self._view: CodeView | None = None
        self._code_checks: dict[str, CodeCheck] = {}
        self._intent = ""
        self._notes: list[str] = []
        # What this reader's code no longer bears out, or only under another name.
        self.unsettled: list[Unit] = []
        self._kinds = list(dict.fromkeys(kinds))
        self._in_domain = domain is not None
        self._within: dict[str, Any] = {
            "kinds": [name for kind in dict.fromkeys(kinds) for name in search_kinds(str(kind))],
            "domains": list(dict.fromkeys([domain, _GLOBAL])) if domain else [],
        }

    def answer(self, query: str, k: int) -> Found:
        """What this seat may be told about the query."""
        question = Question(query, self._rules)
        self._finder.catch_up()
        scope = self._presence.scope
        coherence = self._finder.coherence(project_key(scope.org, scope.project))
        # Where turns speak for each other, more of them have a say.
        least = self._rules.candidates_min if coherence else self._rules.candidates_min // 2
        limit = max(least, k * self._rules.candidates_per_item) if k else 0
        self._intent = question.intent.name
        if not question.weights:
            return self._newest(limit, k)
        ordered, past = self._ordered(question, coherence, limit)
        return self._handed_out(ordered, past, k)

    # Which, and in what order

    def _ordered(self, question: Question, coherence: float, limit: int) -> tuple[list[Ranked], list[str]]:
        """The candidates in order, and what is past and would have matched."""
        terms = self._finder.terms(question.weights, self._visible, spelling=self._rules.spelling)
        near = self._nearest(question.text)
        weights = {word: term.given for term in terms for word in term.words}
        # Each on its own: however many hypotheses match, they can't crowd out what is trusted (R2).
        found = self._best(weights, TRUSTED_STATE, limit) + self._best(weights, DRAFT_STATE, limit)
        drafts = self._replaced_drafts(limit)
        past = self._best(weights, PAST_STATE, limit if self._as_of or drafts else _WITHHELD_MAX)
        # What a commit replaced may still hold where this reader is.
        replaced = self._best(weights, REPLACED_STATE, limit if self._as_of or self._code else _WITHHELD_MAX)
        if drafts:
            replaced += [sketch for sketch in past if sketch.id in drafts]
            past = [sketch for sketch in past if sketch.id not in drafts][:_WITHHELD_MAX]
        if self._as_of:
            found += past
        if self._as_of or self._code:
            found += replaced
        else:
            past += replaced
        meanings = near and self._with_meaning(question.text, found, near)
        nominated = self._with_nominated(question.text, found) if self._nominate else {}
        presence = self._presence
        around = self._around(found) if coherence and self._rules.neighbours else []
        session = presence.session and canonical_json([presence.scope.org, presence.scope.project, presence.session])
        relevances = judged(
            question,
            terms,
            found,
            around,
            meanings=meanings,
            nominated=nominated,
            coherence=coherence,
            own_session=session if self._rules.own_session else None,
            rules=self._rules,
        )
        return ranked(relevances, micros(self._now), self._rules, in_domain=self._in_domain), [
            sketch.id for sketch in past
        ]

    def _replaced_drafts(self, limit: int) -> frozenset[str]:
        """The hypotheses that a commit replaced. Search has them among what is past; there are few of them, and only
        where hypotheses are told (R2)."""
        scopes = [scope.key for scope in self._presence.scope.visible if scope.level < Level.PROJECT]
        if not self._code or self._as_of or not scopes or not limit:
            return frozenset()
        found = self._store.read(lambda reader: reader.units_replaced(scopes, kind=None, domain=None, limit=limit))
        return frozenset(unit.id for unit in found if unit.superseded_from is Status.HYPOTHESIS)

    def _best(self, weights: dict[str, float], state: str, limit: int) -> list[Sketch]:
        found = self._finder.best(weights, self._visible, states=[state], limit=limit, **self._within)
        return [sketch for _, sketch in found]

    def _nearest(self, text: str) -> dict[str, float]:
        """What is near in meaning; a model that does not answer leaves recall to the words, and is told."""
        try:
            return self._finder.nearest(text, self._visible, states=LIVE_STATES, limit=_NEAREST_MAX, **self._within)
        except StoreUnavailable as error:
            self._notes.append(f"Searched by words alone: {error.message}")
            return {}

    def _with_meaning(self, text: str, found: list[Sketch], near: dict[str, float]) -> dict[str, float]:
        """How near each candidate is in meaning; what is near and shares no word is added to the candidates."""
        known = {sketch.id for sketch in found}
        others = [unit_id for unit_id in near if unit_id not in known]
        found += self._finder.of(others, self._visible, states=LIVE_STATES)
        return self._finder.similarities(text, found)

    def _with_nominated(self, text: str, found: list[Sketch]) -> dict[str, float]:
        """What answered a question like this one, and how alike the two are; it is added to the candidates."""
        nominated = self._nominate(text) if self._nominate is not None else {}
        known = {sketch.id for sketch in found}
        others = [unit_id for unit_id in nominated if unit_id not in known]
        if others and not any(self._within.values()):
            found += self._finder.of(others, self._visible, states=LIVE_STATES)
        return nominated

    def _around(self, found: Sequence[Sketch]) -> list[Sketch]:
        """The neighbours of the best, where the answer may stand that does not repeat the question's words."""
        if self._within["kinds"] or self._within["domains"]:
            return []
        leaning = [sketch for sketch in found[: self._rules.expanded_max] if sketch.length <= SELF_CONTAINED]
        known = {sketch.id for sketch in found}
        states = [*LIVE_STATES, REPLACED_STATE, PAST_STATE] if self._as_of else LIVE_STATES
        around = self._finder.around(leaning, HOPS, self._visible, states=states)
        return [sketch for sketch in around if sketch.id not in known]

    def _newest(self, limit: int, k: int) -> Found:
        """With nothing to search for, what is newest."""
        found = self._store.read(lambda reader: self._newest_units(reader, limit))
        self._look_at_code(found)
        items = []
        withheld: dict[str, str] = {}
        for unit in sorted(found, key=lambda unit: unit.id, reverse=True):
            reason, notes, shown = self._judged(unit)
            if reason is not None:
                if unit.live:
                    withheld[unit.id] = reason
            else:
                items.append(
                    replace(without_question(shown, self._now, self._rules, in_domain=self._in_domain), notes=notes)
                )
        items = sorted(items[:limit], key=lambda item: (item.tier, -item.score, item.unit.id))
        items = self._followed(items[:k], withheld)[:k]
        return self._store.read(lambda reader: self._answered(reader, items, withheld, ()))

    def _newest_units(self, reader: Reader, limit: int) -> list[Unit]:
        found: list[Unit] = []
        replaced: list[Unit] = []
        kinds: list[Kind | None] = [*self._kinds]
        for kind in kinds or [None]:
            for domain in self._within["domains"] or [None]:
                found += reader.units_in(self._visible, kind=kind, domain=domain, live=True, limit=limit)
                if self._as_of:
                    past = Status.DEPRECATED
                    found += reader.units_in(self._visible, kind=kind, domain=domain, status=past, limit=limit)
                elif self._code:
                    replaced += reader.units_replaced(self._visible, kind=kind, domain=domain, limit=limit)
        return found + [unit for unit in replaced if _is_replaced(unit)]

    # What may be handed out

    def _handed_out(self, ordered: Sequence[Ranked], past: Sequence[str], k: int) -> Found:
        """The first `k` that may be handed out, and of those that may not, why."""
        items: list[Recalled] = []
        again: list[Recalled] = []
        told: dict[str, Recalled] = {}
        withheld: dict[str, str] = {}
        for start in range(0, len(ordered) if k else 0, k or 1):
            # As many at a time as are wanted: nearly always the first few will do.
            for candidate, unit in self._read(ordered[start : start + k]):
                reason, notes, shown = self._judged(unit)
                if reason is not None:
                    withheld[unit.id] = reason
                    continue
                item = Recalled(
                    unit=shown, score=candidate.score, tier=candidate.tier, why=candidate.why, label="", notes=notes
                )
                if self._rules.distinct and _says_the_same(told.setdefault(candidate.words, item), item):
                    again.append(item)
                elif len(items) < k:
                    items.append(item)
            if len(items) >= k:
                break
        items = sorted([*items, *again[: k - len(items)]], key=lambda item: item.tier)
        items = self._followed(items, withheld)[:k]
        return self._store.read(lambda reader: self._answered(reader, items, withheld, past))

    def _followed(self, items: list[Recalled], withheld: dict[str, str]) -> list[Recalled]:
        """The items with what their anchors lead to, through the same gate (D19); most answers hold no anchor."""
        if not any(item.unit.kind is Kind.ANCHOR for item in items):
            return items
        known = {item.unit.id for item in items}
        found = self._store.read(lambda reader: reader.units(anchors.wanted(items)))
        originals = anchors.originals(found, self._visible)
        new = [unit for unit in originals.values() if unit.id not in known and unit.kind in (self._kinds or Kind)]
        led = [
            anchors.led_to(unit, notes, items, self._within["domains"]) for unit, notes in self.admitted(new, withheld)
        ]
        return anchors.merged([anchors.noted(item, originals, withheld) for item in items], led)

    def admitted(self, units: Sequence[Unit], withheld: dict[str, str]) -> list[tuple[Unit, tuple[str, ...]]]:
        """Those that may be handed out, as they stand here, with what their reader should know; others are withheld."""
        self._look_at_code(units)
        passed = []
        for unit in units:
            reason, notes, shown = self._judged(unit)
            if reason is None:
                passed.append((shown, notes))
            else:
                withheld[unit.id] = reason
        return passed

    def _read(self, candidates: Sequence[Ranked]) -> list[tuple[Ranked, Unit]]:
        """Some candidates with their units, as far as this reader may see them; what the code says is asked at once."""
        found = self._store.read(lambda reader: reader.units([candidate.id for candidate in candidates]))
        units = {unit_id: unit for unit_id, unit in found.items() if unit.scope.key in self._visible}
        self._look_at_code(units.values())
        return [(candidate, units[candidate.id]) for candidate in candidates if candidate.id in units]

    def _look_at_code(self, units: Iterable[Unit]) -> None:
        """Ask what the code says of those that it can contradict; where there are none, it need not be looked at."""
        bound = [unit for unit in units if unit.is_bound_to_code] if self._code is not None else []
        if bound and self._code is not None:
            # One view for the whole recall, so that its patience is one too.
            self._view = self._view or self._code()
        self._code_checks = self._view.checks(bound) if bound and self._view is not None else {}

    def _judged(self, unit: Unit) -> tuple[str | None, tuple[str, ...], Unit]:
        """Why the unit is withheld, if it is; what its reader should know; and the unit as it stands here."""
        check = self._code_checks.get(unit.id)
        if check is None:
            return withheld_reason(unit, self._now, self._as_of), (), unit
        elsewhere = check.replaced_elsewhere
        reason = withheld_reason(unit, self._now, self._as_of, replaced_elsewhere=elsewhere) or check.reason
        if reason is check.reason and (check.is_stale or check.moves):
            self.unsettled.append(unit)
        if elsewhere and unit.status is Status.DEPRECATED:
            unit = replace(unit, status=unit.superseded_from or Status.VERIFIED)
        return reason, check.notes, unit

    def _answered(
        self, reader: Reader, items: Sequence[Recalled], withheld: dict[str, str], past: Sequence[str]
    ) -> Found:
        handed = {item.unit.id for item in items}
        for unit_id, unit in reader.units([unit_id for unit_id in past if unit_id not in handed]).items():
            if unit.scope.key in self._visible and unit_id not in withheld:
                reason = withheld_reason(unit, self._now, self._as_of)
                if reason is not None:
                    withheld[unit_id] = reason
        return Found(
            items=tuple(self._labelled(reader, items)),
            withheld=tuple(Withheld(unit_id=unit_id, reason=reason) for unit_id, reason in withheld.items())[
                :_WITHHELD_MAX
            ],
            intent=self._intent,
            notes=tuple(self._notes),
        )

    def _labelled(self, reader: Reader, items: Sequence[Recalled]) -> list[Recalled]:
        """Say how far each item may be believed, and whether a live unit that this reader sees contradicts it."""
        return [replace(item, label=label(item.unit, self._contested(reader, item.unit.id))) for item in items]

    def _contested(self, reader: Reader, unit_id: str) -> bool:
        for link in reader.links_of(unit_id):
            if link.open and link.type == _CONTRADICTS:
                other = reader.unit(link.target if link.source == unit_id else link.source)
                if other is not None and other.live and other.scope.key in self._visible:
                    return True
        return False


def _is_replaced(unit: Unit) -> bool:
    """Whether it may still hold where the commit that replaced it is not: it is known as what it stood before."""
    return unit.superseded_from in LIVE


def _says_the_same(told: Recalled, item: Recalled) -> bool:
    """Whether a better item already says the very same, as another kind of unit or at another level.

    What is merely alike stays: two wordings may be two voices, and a difference of one word may be the point.
    """
    return told is not item and canonical.canonical(told.unit.content) == canonical.canonical(item.unit.content)
