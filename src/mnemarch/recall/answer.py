"""One recall from question to answer: candidates, order, what the gate lets through, and what was withheld and why."""

from __future__ import annotations

from mnemarch.errors import StoreUnavailable
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
from mnemarch.policy.kinds import KINDS
from mnemarch.policy.trust import confidence_at, label_of
from mnemarch.recall.handout import (
    because,
    binding_items,
    firmest_first,
    followed,
    is_in_sight,
    is_repeated,
    reranked,
    winners_first,
    without_records,
    without_spare_hypotheses,
)
from mnemarch.recall.question import Question
from mnemarch.recall.scores import HOPS, SELF_CONTAINED, fit_of, in_order, judged, ranked, without_question
from mnemarch.text.conversation import project_key
from mnemarch.units.gate import Gate, red_among

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from datetime import datetime
    from typing import Any

    from mnemarch.code.codebase import CodeView
    from mnemarch.config import RecallRules
    from mnemarch.model.caller import Caller
    from mnemarch.model.decision import Loaded
    from mnemarch.model.search import Sketch
    from mnemarch.model.testrun import TestRecord
    from mnemarch.model.unit import Unit
    from mnemarch.policy.trust import TrustRules
    from mnemarch.ports import Reranker, Store
    from mnemarch.recall.candidates import Finder
    from mnemarch.recall.index import Newest
    from mnemarch.recall.scores import Relevance
    from mnemarch.stores.sql.reader import Reader

_WITHHELD_MAX = 8
_NEAREST_MAX = 50
_GLOBAL = "global"
# How many candidates behind the first `k` are read too: trust can still move them to the front.
_SURER_MAX = 8


class Recall:
    """One question of one caller at one moment.

    The candidates come from the index and its tail. One read of the store gives the rows of units, their links, the
    targets of anchors and the units handed out before. The caller has already read `binding` (the binding units and
    their full number) and `drafts` (the result of `replaced_drafts`). Search counts these drafts as past, but they may
    still be valid where this reader is.
    """

    def __init__(
        self,
        store: Store,
        finder: Finder,
        caller: Caller,
        query: str,
        k: int,
        *,
        kinds: Sequence[Kind],
        domain: str | None,
        as_of: datetime | None,
        now: datetime,
        rules: RecallRules,
        trust: TrustRules,
        binding: tuple[Sequence[Loaded], int] = ((), 0),
        drafts: frozenset[str] = frozenset(),
        code: Callable[[], CodeView] | None = None,
        floor: float = 0.0,
        reranker: Reranker | None = None,
        nominate: Callable[[str], dict[str, float]] | None = None,
    ) -> None:
        self._store, self._finder = store, finder
        self._caller = caller
        self._question = Question(query, rules)
        self._k = k
        self._binding, self._binding_count = binding
        self._drafts = drafts
        self._visible = caller.visible_keys
        self._as_of, self._now = as_of, now
        self._rules, self._trust = rules, trust
        self._weights: dict[str, float] = {}
        self._has_code = code is not None
        self._floor, self._fit = floor, 0.0
        self._nominate = nominate
        self._reranker = reranker
        self._notes: list[str] = []
        self._kinds = list(dict.fromkeys(kinds))
        self._within: dict[str, Any] = {
            "kinds": [name for kind in self._kinds for name in search_kinds(str(kind))],
            "domains": list(dict.fromkeys([domain, _GLOBAL])) if domain else [],
        }
        self.gate = Gate(now, as_of, code, caller.actor)
        # The units of the answer that the caller's task was handed before.
        self.handed_before: set[str] = set()
        # The units that were read (None: no unit has the id), and the ids whose conflicts were looked up.
        self._read: dict[str, Unit | None] = {}
        self._asked_of: set[str] = set()
        self._contested: set[str] = set()
        self._tests: list[TestRecord] = []
        self._red: set[str] = set()

    def answer(self, newest: Newest | None = None) -> Found:
        """The units that bind this caller and the answer to the query. `newest` is the result of `Finder.newest`."""
        self._finder.catch_up(newest)
        scope = self._caller.scope
        coherence = self._finder.coherence(project_key(scope.org, scope.project))
        # In conversations neighbouring turns count for each other, so more candidates are needed.
        least = self._rules.candidates_min if coherence else self._rules.candidates_min // 2
        limit = max(least, self._k * self._rules.candidates_per_item) if self._k else 0
        if not self._question.weights and not self._floor:
            return self._store.read(lambda reader: self._newest(reader, limit))
        ordered, past = self._ordered(coherence, limit)
        floor = self._floor or (self._rules.floor if ordered else 0.0)
        if self._fit < floor:
            note = f"Nothing in memory is likely to answer this: {self._fit:.2f}, and the floor is {floor:g}."
            self._notes.append(note)
        if self._fit < self._floor:
            ordered = []
        elif self._reranker is not None:
            best = [relevance.sketch.id for relevance in ordered[: self._rules.rerank_max]]
            units = self._store.read(lambda reader: reader.units(best))
            seen = {unit_id: unit.content for unit_id, unit in units.items() if is_in_sight(unit, self._visible)}
            self._notes += reranked(self._reranker, self._question.text, ordered, seen)
            ordered = ranked(ordered, micros(self._now), self._rules)
        return self._store.read(lambda reader: self._best(reader, ordered, past))

    # Finding and ordering candidates

    def _ordered(self, coherence: float, limit: int) -> tuple[list[Relevance], list[str]]:
        """The candidates in order, and the ids of past units that match."""
        question = self._question
        terms = self._finder.terms(question.weights, self._visible, spelling=self._rules.spelling, wider=question.wider)
        self._weights = {word: term.asked_weight for term in terms for word in term.words}
        candidates, past = self._by_words(self._weights, limit)
        noise = self._add_near_in_meaning(question.text, candidates)
        nominated = self._add_nominated(question.text, candidates)
        around = self._around(candidates) if coherence and self._rules.neighbours else []
        meanings = self._meanings(question.text, [*candidates, *around]) if noise is not None else {}
        caller = self._caller
        session = caller.session and canonical_json([caller.scope.org, caller.scope.project, caller.session])
        relevances = judged(
            question,
            terms,
            candidates,
            around,
            meanings=meanings,
            noise=noise or 0.0,
            nominated=nominated,
            coherence=coherence,
            own_session=session if self._rules.own_session else None,
            rules=self._rules,
        )
        ordered = ranked(relevances, micros(self._now), self._rules)
        self._fit = fit_of(ordered, terms, self._finder.documents_in(self._visible), meanings, noise or 0.0)
        return ordered, [sketch.id for sketch in past]

    def _by_words(self, weights: dict[str, float], limit: int) -> tuple[list[Sketch], list[Sketch]]:
        """The candidates that share words with the question, and the past units that do."""

        def best(state: str, limit: int) -> list[Sketch]:
            scored = self._finder.best(weights, self._visible, states=[state], limit=limit, **self._within)
            return [sketch for _, sketch in scored]

        # Each state is searched on its own, so that many hypotheses can't crowd out trusted units (R2).
        candidates = best(TRUSTED_STATE, limit) + best(DRAFT_STATE, limit)
        drafts = self._drafts
        past = best(PAST_STATE, limit if self._as_of or drafts else _WITHHELD_MAX)
        # A unit that a commit replaced may still be valid where this reader is.
        replaced = best(REPLACED_STATE, limit if self._as_of or self._has_code else _WITHHELD_MAX)
        if drafts:
            replaced += [sketch for sketch in past if sketch.id in drafts]
            past = [sketch for sketch in past if sketch.id not in drafts][:_WITHHELD_MAX]
        if self._as_of:
            candidates += past
        if self._as_of or self._has_code:
            candidates += replaced
        else:
            past += replaced
        return candidates, past

    def _add_near_in_meaning(self, text: str, candidates: list[Sketch]) -> float | None:
        """Add units nearer in meaning than unrelated texts are. Returns the cosine of those, or None without a model.

        If the vectors are not ready or the model does not answer, recall uses words alone and notes it.
        """
        try:
            near = self._finder.nearest(text, self._visible, states=LIVE_STATES, limit=_NEAREST_MAX, **self._within)
            noise = self._finder.noise_for(text) if near else None
        except StoreUnavailable as error:
            self._notes.append(f"Searched by words alone: {error.message}")
            return None
        self._add([unit_id for unit_id, cosine in near.items() if cosine > (noise or 0.0)], candidates)
        return noise

    def _meanings(self, text: str, sketches: Sequence[Sketch]) -> dict[str, float]:
        """The candidates' cosines with the question. Empty, with a note, if the vector server went away."""
        try:
            return self._finder.similarities(text, sketches)
        except StoreUnavailable as error:
            self._notes.append(f"Ranked by words alone: {error.message}")
            return {}

    def _add_nominated(self, text: str, candidates: list[Sketch]) -> dict[str, float]:
        """Add units that answered similar questions. Returns the similarity of the questions by unit."""
        nominated = self._nominate(text) if self._nominate is not None else {}
        if not any(self._within.values()):
            self._add(nominated, candidates)
        return nominated

    def _add(self, unit_ids: Iterable[str], candidates: list[Sketch]) -> None:
        known = {sketch.id for sketch in candidates}
        if others := [unit_id for unit_id in unit_ids if unit_id not in known]:
            candidates += self._finder.of(others, self._visible, states=LIVE_STATES)

    def _around(self, candidates: Sequence[Sketch]) -> list[Sketch]:
        """The best candidates' neighbours: the answer may be next to a turn that repeats the question's words."""
        if any(self._within.values()):
            return []
        leaning = [sketch for sketch in candidates[: self._rules.expanded_max] if sketch.length <= SELF_CONTAINED]
        known = {sketch.id for sketch in candidates}
        states = [*LIVE_STATES, REPLACED_STATE, PAST_STATE] if self._as_of else LIVE_STATES
        around = self._finder.around(leaning, HOPS, self._visible, states=states)
        return [sketch for sketch in around if sketch.id not in known]

    # Choosing the units to hand out

    def _best(self, reader: Reader, ordered: Sequence[Relevance], past: Sequence[str]) -> Found:
        """The first `k` candidates that may be handed out."""
        self.gate.reader = reader
        best = [candidate.sketch.id for candidate in ordered[: self._k + _SURER_MAX]] if self._k else []
        # One round trip for everything that most answers need.
        reader.together(lambda reader: self._read_first(reader, best, past))
        items: list[Recalled] = []
        repeated: list[Recalled] = []
        first_with_words: dict[str, Recalled] = {}
        withheld: dict[str, str] = {}
        for candidates, units in self._batches(reader, ordered):
            for unit, notes in self.gate.admitted(units, withheld):
                candidate = candidates[unit.id]
                item = Recalled(unit, candidate.score, candidate.tier, candidate.why, label="", notes=notes)
                first = first_with_words.setdefault(candidate.sketch.words, item)
                if self._rules.distinct and is_repeated(first, item):
                    repeated.append(item)
                elif len(items) < self._k:
                    items.append(item)
            if self._rules.distinct:
                items = without_records(items, self._question.weights, withheld)
            if len(items) >= self._k:
                break
        items += repeated[: self._k - len(items)]
        items.sort(key=lambda item: (item.tier, item.unit.id in self.gate.elsewhere))
        return self._answered(reader, items, withheld, past)

    def _read_first(self, reader: Reader, unit_ids: Sequence[str], past: Sequence[str]) -> None:
        self._read = {}
        self._units(reader, [*unit_ids, *past])
        self._note(reader, [*unit_ids, *(loaded.unit.id for loaded in self._binding)])

    def _units(self, reader: Reader, unit_ids: Sequence[str]) -> dict[str, Unit]:
        new = [unit_id for unit_id in unit_ids if unit_id not in self._read]
        if new:
            self._read |= dict.fromkeys(new) | reader.units(new)
        return {unit_id: unit for unit_id in unit_ids if (unit := self._read[unit_id]) is not None}

    def _note(self, reader: Reader, unit_ids: Sequence[str]) -> None:
        """Look up which units are contested, their test outcomes here, and which this task was handed before."""
        scope, stream = self._caller.scope, self._caller.stream
        self._contested = reader.contested(unit_ids, self._visible)
        may_be_sure = any((unit := self._read.get(id)) is None or unit.status != Status.HYPOTHESIS for id in unit_ids)
        self._tests = reader.tests_behind(stream, scope.worktree, unit_ids) if scope.worktree and may_be_sure else []
        self.handed_before = reader.noted_uses(unit_ids, self._caller.scope_key)
        self._asked_of = set(unit_ids)

    def _batches(
        self, reader: Reader, ordered: Sequence[Relevance]
    ) -> Iterator[tuple[dict[str, Relevance], list[Unit]]]:
        """The candidates by id and their visible units, `k` at a time. The first batch is nearly always enough.

        Each read fetches as many rows as all reads before it, so the number of reads grows with the logarithm. Within
        one read, the more trusted of two equal answers comes first (R7).
        """
        k, read = self._k, 0
        while k and read < len(ordered):
            some = ordered[read : read + max(k + _SURER_MAX, read)]
            read += len(some)
            units = self._units(reader, [candidate.sketch.id for candidate in some])
            for candidate in some:
                if candidate.sketch.id in units:
                    candidate.trust(confidence_at(units[candidate.sketch.id].trust, self._now, self._trust))
            some = in_order(some)
            for start in range(0, len(some), k):
                batch = {candidate.sketch.id: candidate for candidate in some[start : start + k]}
                yield batch, [units[id] for id in batch if id in units and is_in_sight(units[id], self._visible)]

    def _newest(self, reader: Reader, limit: int) -> Found:
        """The newest units, for a question without words."""
        self.gate.reader = reader
        newest = (unit for unit in self._newest_units(reader, limit) if KINDS[unit.kind].is_searched)
        units = sorted((unit for unit in newest if is_in_sight(unit, self._visible)), key=lambda unit: unit.id)[::-1]
        withheld: dict[str, str] = {}
        items = [
            replace(without_question(unit, self._now, self._rules, self._trust), notes=notes)
            for unit, notes in self.gate.admitted(units, withheld)
        ]
        items = items[:limit]
        items.sort(key=lambda item: (item.tier, item.unit.id in self.gate.elsewhere, -item.score, item.unit.id))
        live = {unit.id for unit in units if unit.live}
        withheld = {unit_id: reason for unit_id, reason in withheld.items() if unit_id in live}
        return self._answered(reader, items[: self._k], withheld, ())

    def _newest_units(self, reader: Reader, limit: int) -> Iterator[Unit]:
        kinds: list[Kind | None] = [*self._kinds]
        for kind in kinds or [None]:
            for domain in self._within["domains"] or [None]:
                where: dict[str, Any] = {"kind": kind, "domain": domain, "limit": limit}
                yield from reader.units_in(self._visible, live=True, **where)
                if self._as_of:
                    yield from reader.units_in(self._visible, status=Status.DEPRECATED, **where)
                elif self._has_code:
                    replaced = reader.units_replaced(self._visible, **where)
                    yield from (unit for unit in replaced if unit.superseded_from in LIVE)

    # The answer

    def _answered(self, reader: Reader, items: list[Recalled], withheld: dict[str, str], past: Sequence[str]) -> Found:
        items = followed(reader, items, self._visible, self._kinds, self.gate.admitted, withheld)[: self._k]
        known = {item.unit.id for item in items}
        self._explain_past(reader, [unit_id for unit_id in past if unit_id not in known], withheld)
        items = firmest_first(without_spare_hypotheses(items, withheld))
        bound: Sequence[Recalled] = ()
        if self._binding:
            domains, limit = self._within["domains"] or [_GLOBAL], self._rules.binding_max
            bound = binding_items(
                reader, self._finder, self._binding, self._weights, self._visible, domains=domains, limit=limit
            )
        ids = list(dict.fromkeys(item.unit.id for item in (*bound, *items)))
        if not self._asked_of.issuperset(ids):
            reader.together(lambda reader: self._note(reader, ids))
        contested = self._contested.intersection(ids)
        self.handed_before = self.handed_before.intersection(ids)
        if self._tests:
            self._red = red_among([item.unit for item in (*bound, *items)], self._tests, self._caller.scope)
        if self._red:
            # Within a tier, units whose tests fail here come last (R8).
            items.sort(key=lambda item: (item.tier, item.unit.id in self._red))
        if contested:
            items = winners_first(reader, items, contested & {item.unit.id for item in items})
        return Found(
            items=tuple(self._labelled(item, contested) for item in items),
            withheld=tuple(Withheld(unit_id=id, reason=reason) for id, reason in withheld.items())[:_WITHHELD_MAX],
            intent=self._question.intent.name,
            notes=(*self._notes, *(self._finder.notes if self._question.weights else ())),
            binding=tuple(self._labelled(item, contested) for item in bound),
            unlisted=max(0, self._binding_count - len(bound)),
            fit=self._fit,
        )

    def _labelled(self, item: Recalled, contested: Collection[str]) -> Recalled:
        unit_id, changed = item.unit.id, self.gate.elsewhere.get(item.unit.id)
        here = "fails here" if unit_id in self._red else "not here" if changed else ""
        label = label_of(item.unit, is_contested=unit_id in contested, is_elsewhere=changed is False, here=here)
        notes = (*item.notes, *because(item.unit, self._question.weights, asks_why=self._question.asks_why))
        return replace(item, label=label, elsewhere=changed is not None, notes=notes)

    def _explain_past(self, reader: Reader, unit_ids: Sequence[str], withheld: dict[str, str]) -> None:
        """Add to `withheld` why matching past units are withheld."""
        for unit_id, unit in self._units(reader, unit_ids).items():
            # A task's newest episode contains the earlier ones, so those need no explanation.
            is_account = unit.kind is Kind.EPISODE and unit.superseded_by is not None
            if unit.scope.key in self._visible and unit_id not in withheld and not is_account:
                reason = self.gate.past_reason(unit)
                if reason is not None:
                    withheld[unit_id] = reason
