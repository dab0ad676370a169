"""Answers questions: checks them, finds binding and matching units, and records what was handed out."""

from __future__ import annotations

from mnemarch.errors import Hint, InvalidInput
from mnemarch.log.act import without_secrets
from mnemarch.model.caller import Caller, checked_id
from mnemarch.model.event import EventType
from mnemarch.model.search import UNRECORDED, Found, Pack, Recalled
from mnemarch.model.value import replace
from mnemarch.policy.admission import checked_count, checked_list, checked_share
from mnemarch.policy.kinds import TIER_NORMAL
from mnemarch.policy.trust import aged
from mnemarch.recall.answer import Recall
from mnemarch.recall.candidates import replaced_drafts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from datetime import datetime
    from typing import Any

    from mnemarch.code.codebase import CodeView
    from mnemarch.log.act import Act
    from mnemarch.model.decision import Loaded
    from mnemarch.model.unit import Kind, Unit
    from mnemarch.recall.index import Newest
    from mnemarch.services.engine import Engine
    from mnemarch.stores.sql.reader import Reader

_TOKENS_MAX = 10_000_000
# The least tokens of an item with its header, as a rule. It bounds how many items are searched for.
_TOKENS_OF_AN_ITEM = 40
_ITEMS_MIN = 8
_QUERY_CHARS_MAX = 500
# An answer must share this many telling words, or synonyms, with its question, if the question has as many.
_SHARED_WORDS_MIN = 2
# With this fit, the best item needs to share only one.
_SURE_FIT = 0.8
# Items with less than this share of the best similarity are dropped, if the reader did not ask a question.
_OF_BEST_MIN = 0.6
_DECIDED = ("decision", "evidence")


class Answering:
    """Answers one caller's questions."""

    def __init__(self, engine: Engine, caller: Caller) -> None:
        self._engine = engine
        self._caller = caller

    def recall(self, query: str, k: int, **where: Any) -> Found:
        """The `k` best units for a question. `where` has the other parameters of `Seat.recall`."""
        found, handed_before = self._found(query, k, **where)
        notes = self._record(query, (*found.binding, *found.items), handed_before, has_floor=bool(where.get("floor")))
        if found.unlisted:
            domain = f" --domain {where['domain']}" if where["domain"] else ""
            more = f"{found.unlisted} more binding decisions are not listed. See them: mnemarch decisions load{domain}"
            notes = (more, *notes)
        return replace(found, notes=(*found.notes, *notes))

    def context(
        self,
        query: str,
        tokens: int,
        count: Callable[[str], int] | None,
        *,
        without: Collection[str] = (),
        **where: Any,
    ) -> Pack:
        """Like `recall`, as one text that fits a budget of tokens. Units in `without` are left out."""
        from mnemarch.recall.context import packed
        from mnemarch.text.prompt import estimated_tokens
        from mnemarch.text.tokens import query_tokens

        checked_count(tokens, "tokens", _TOKENS_MAX)
        k = min(self._engine.config.recall.k_max, _ITEMS_MIN + tokens // _TOKENS_OF_AN_ITEM)
        found, handed_before = self._found(query, k, **where)
        has_floor = bool(where.get("floor"))
        if not query.strip() and where["kinds"] is None:
            found = self._for_nothing_asked(found)
        if without or has_floor:
            found = _limited(found, query, without, sure=has_floor, session=self._caller.session)
        pack = packed(found, tokens, count or estimated_tokens, where["domain"], query_tokens(query))
        notes = self._record(query, (*pack.binding, *pack.items), handed_before, has_floor=has_floor)
        return replace(pack, notes=(*found.notes, *notes))

    def _for_nothing_asked(self, found: Found) -> Found:
        """The answer to an empty question: without other tasks' episodes, and without decisions, which bind anyway."""
        own = self._caller.scope_key
        items = [item for item in found.items if item.unit.attributes.get("task_key", own) == own]
        return replace(found, items=tuple(item for item in items if item.unit.kind not in _DECIDED))

    def handed_out(self, units: Sequence[Unit]) -> list[Recalled]:
        """The units that may be handed out here, as items of an answer."""
        from mnemarch.policy.kinds import TIER_FOUND
        from mnemarch.policy.trust import label_of
        from mnemarch.units.gate import Gate

        gate = Gate(self._engine.log.clock(), None, self._code_view(None, None), self._caller.actor)

        def read(reader: Reader) -> tuple[list[Recalled], set[str]]:
            gate.reader = reader
            admitted = gate.admitted(units, {})
            items = [Recalled(unit, 0.0, TIER_FOUND, {}, label_of(unit), notes) for unit, notes in admitted]
            return items, reader.noted_uses([unit.id for unit, _ in admitted], self._caller.scope_key)

        items, handed_before = self._engine.store.read(read)
        self._record("", items, handed_before, has_floor=False)
        return items

    def _found(
        self,
        query: str,
        k: int,
        *,
        kinds: Sequence[Kind | str] | None,
        domain: str | None,
        at_commit: str | None,
        as_of: datetime | None,
        floor: float | str = 0.0,
    ) -> tuple[Found, set[str]]:
        """The answer and the ids of units handed out before. It has what binds if it is about now and every kind."""
        from mnemarch.model.stamps import checked_instant
        from mnemarch.model.unit import Kind

        if not isinstance(query, str):
            raise InvalidInput(f"A query is text, not {type(query).__name__}.", hint=Hint("ask a question"))
        engine, now = self._engine, self._engine.log.clock()
        checked_count(k, "k", engine.config.recall.k_max)
        domain = None if domain is None else checked_id(domain, "a domain")
        code = self._code_view(at_commit, as_of)

        def known_first(reader: Reader) -> tuple[Newest | None, bool, tuple[Sequence[Loaded], int], frozenset[str]]:
            is_now = kinds is None and as_of is None and at_commit is None
            binding = self._binding(reader, domain) if is_now else ((), 0)
            is_drafts = code is not None and as_of is None
            drafts = replaced_drafts(reader, self._caller, engine.config.recall, k) if is_drafts else frozenset[str]()
            has_graph = next(reader.events_of_subject(self._caller.graph_subject(), last=1), None) is not None
            return engine.finder.newest(reader), has_graph, binding, drafts

        newest, has_graph, binding, drafts = engine.store.read(lambda reader: reader.together(known_first))
        recall = Recall(
            engine.store,
            engine.finder,
            self._caller,
            query,
            k,
            kinds=[Kind.parse(kind) for kind in checked_list(kinds or (), "kinds")],
            domain=domain,
            as_of=None if as_of is None else checked_instant(as_of, "as_of"),
            now=now,
            rules=engine.config.recall,
            trust=engine.config.trust,
            binding=binding,
            drafts=drafts,
            code=code,
            floor=engine.config.recall.floor if floor == "auto" else checked_share(floor, "floor"),
            reranker=engine.reranker,
            nominate=self._nominated if has_graph and as_of is None and at_commit is None else None,
        )
        found = recall.answer(newest)
        if recall.gate.unsettled and at_commit is None:
            engine.sweep_in_background(self._caller, recall.gate.unsettled)
        rules = engine.config.trust
        parts = [
            tuple(replace(item, unit=aged(item.unit, now, rules)) for item in part)
            for part in (found.binding, found.items)
        ]
        return replace(found, binding=parts[0], items=parts[1]), recall.handed_before

    def _binding(self, reader: Reader, domain: str | None) -> tuple[Sequence[Loaded], int]:
        from mnemarch.decisions.loading import binding

        return binding(reader, self._caller, domain, self._touched, self._engine.config.recall.binding_max)

    def _touched(self) -> Collection[str]:
        """The changed files in the caller's working tree."""
        from mnemarch.code import git

        return () if self._caller.root is None else git.touched(self._caller.root)

    def _code_view(self, at_commit: str | None, as_of: datetime | None) -> Callable[[], CodeView] | None:
        """A function that opens the caller's view of the code, or None without a working tree."""
        root, project = self._caller.root, self._caller.scope.project
        codebase = self._engine.codebase
        if at_commit is not None:
            from mnemarch.code.citing import checked_in_tree
            from mnemarch.model.unit import Citation

            commit = checked_in_tree(Citation.commit(at_commit), root).ref
            return None if root is None else lambda: codebase(root).view_at(project, commit)
        # The code at an earlier moment was another commit. With `as_of`, only time decides.
        return None if root is None else lambda: codebase(root).view(project, by_commit=as_of is None)

    def _nominated(self, text: str) -> dict[str, float]:
        """The units that the caller's graph suggests for a question, each with the similarity of its question."""
        return self._engine.graph(self._caller).nominated(self._caller.session, text)

    def _record(
        self, query: str, items: Sequence[Recalled], handed_before: set[str], *, has_floor: bool
    ) -> tuple[str, ...]:
        """Record the units that were handed out. They count as reuse, and identify echoes later (R2, R6).

        An unanswered question is recorded too, so that the inbox can show what others know about it (R20). With a
        floor it is not recorded, because then any prompt is sent as a question.
        """
        unit_ids = [id for id in dict.fromkeys(item.unit.id for item in items) if id not in handed_before]
        if not unit_ids and (items or has_floor or not query.strip()):
            return ()
        clean, _ = without_secrets(query[:_QUERY_CHARS_MAX])
        payload = {"units": unit_ids, "query": clean}
        is_late = False

        def record(act: Act) -> None:
            units = act.transaction.units(unit_ids).values() if is_late else ()
            if any(unit.erased_at for unit in units):
                return  # A question is erased with the units that answered it (R16).
            act.append(EventType.RECALLED, payload)

        trouble = self._engine.log.act_soon(self._caller, record)
        is_late = True
        if not trouble:
            return ()
        until = "" if not self._engine.store.writable else " yet, unless this process writes again"
        return (f"{UNRECORDED}{until}, so it counts as no use of what was found: {trouble}",)


def _limited(found: Found, query: str, without: Collection[str], *, sure: bool, session: str | None) -> Found:
    """The answer without units that the reader knows. With `sure`, also without own units and weak matches.

    Own units are those of this session. The best item may match by its meaning alone, for instance in another
    language, and by one word if the fit is high: the floor has judged it already.
    """
    from mnemarch.text.everyday import widened
    from mnemarch.text.tokens import query_tokens, telling_tokens

    asked = dict.fromkeys(query_tokens(query), 1.0) if sure else {}
    wider = widened(query, asked) if asked else {}
    words = {word: word for word in asked} | {other: word for other, (word, _) in wider.items()}
    shared_min = min(_SHARED_WORDS_MIN, len(asked))
    # Episodes are long, so their similarity is not compared with that of facts.
    near = [(item.why.get("similarity", 0.0), item.unit.kind) for item in found.items if sure]
    closest = max((similarity for similarity, _ in near), default=0.0)
    closest_fact = max((similarity for similarity, kind in near if kind != "episode"), default=0.0)

    def is_news(item: Recalled) -> bool:
        is_own = sure and session is not None and item.unit.session == session and item.unit.kind != "decision"
        is_sure = item is found.items[0] and (item.why.get("meaning", 0.0) > 0.0 or found.fit >= _SURE_FIT)
        if item.why.get("similarity", 0.0) < _OF_BEST_MIN * (closest if item.unit.kind == "episode" else closest_fact):
            return False
        shared = {words[token] for token in telling_tokens(item.unit.content) if token in words}
        return not is_own and (is_sure or len(shared) >= shared_min)

    binding, items = ([item for item in part if item.unit.id not in without] for part in (found.binding, found.items))
    if sure:
        # A normal decision is only shown if the question is about it. Then it is among the items.
        binding = [item for item in binding if item.tier < TIER_NORMAL]
    unlisted = 0 if without or sure else found.unlisted
    return replace(found, binding=tuple(binding), items=tuple(filter(is_news, items)), unlisted=unlisted)
