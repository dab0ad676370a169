"""The write pipeline (M2, R22): logs each entry, and turns entries that pass the filter into claims."""

from __future__ import annotations

from contextlib import suppress

from mnemarch.errors import Conflict, InvalidInput
from mnemarch.learning import classify
from mnemarch.learning.classify import Bucket, Classified, Classifier, MemoryEvent
from mnemarch.log.act import Act, Entry, Log, append, read_entry, receipt_for
from mnemarch.model.caller import ActorKind, Caller
from mnemarch.model.event import Event, EventType, Receipt
from mnemarch.model.outcome import Ingested, Refused, Stored
from mnemarch.model.stamps import micros, timedelta
from mnemarch.model.unit import Citation, CitationKind, Claim
from mnemarch.model.value import Frozen, replace
from mnemarch.policy.admission import checked_key
from mnemarch.policy.kinds import KINDS
from mnemarch.text.prompt import without_fenced
from mnemarch.units.finding import live_with_same_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from mnemarch.stores.sql.reader import Reader
    from mnemarch.units.remember import Intake

RULES_FILE = "rules-file"
# The key in an entry's data for the pipeline's classification.
INGEST = "ingest"
WAITING = "over the rate limit; the next ingest reads it"
_LOG_ONLY = "a machine wrote it; it stays in the log for the episode of its task"
_NOT_A_PERSONS_WORD = "a person vouches for their own statements only, and this"
_SYLLABLE_CHARS = 2.5
_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)
_TAKEN_UP_MAX = 500
# A unit with this many citations of log entries gets no more.
_CITED_MAX = 20
# The first kind of each bucket is what its texts become.
_KIND_OF = {rules.bucket: kind for kind, rules in reversed(KINDS.items()) if rules.bucket is not None}


def pre_filter(text: str, chars_min: int) -> str:
    """The reason for leaving a text out before classification, or "" (R22)."""
    own = without_fenced(text).strip()
    if not own:
        return "only recalled memory"
    if classify.is_courtesy(own):
        return "an acknowledgement or a greeting"
    syllables = sum("가" <= char <= "힣" for char in own[:chars_min])
    if len(own) < chars_min and len(own) - syllables + _SYLLABLE_CHARS * syllables < chars_min:
        return f"shorter than {chars_min} characters"
    return ""


class _Draft(Frozen):
    """An entry ready for the log: its redacted payload, and its classification by the rules."""

    entry: Entry
    payload: dict[str, Any]
    redacted: tuple[str, ...]
    event: MemoryEvent
    classified: Classified
    is_filtered: bool = False


class _Logged(Frozen):
    """An entry in the log. `is_known`: it was there before. `is_deferred`: it was logged unclassified."""

    id: str
    receipt: Receipt
    draft: _Draft
    is_known: bool = False
    is_waiting: bool = False
    is_deferred: bool = False


class Pipeline:
    """The pipeline of one caller. The `classifier` is asked after logging, about entries that pass the pre-filter."""

    def __init__(self, log: Log, caller: Caller, intake: Intake, classifier: Classifier | None = None) -> None:
        self._log, self._caller, self._intake = log, caller, intake
        self._classifier = classifier

    def ingest(self, entries: Iterable[Entry]) -> list[Ingested]:
        """Log the entries and claim those that pass, and also entries that waited for the rate limit.

        Without entries, everything that waits is processed, however old, and its outcomes are returned.
        """
        drafts = [self._draft(entry) for entry in entries]
        logged, is_over = self._log.act(self._caller, lambda act: self._append(act, drafts))
        # Over the limit, older entries have to wait too.
        waiting = [] if is_over else self._waiting(_DAY if drafts else None)
        outcomes = self._claimed([*waiting, *(each for each in logged if not each.is_known)])

        def known(reader: Reader) -> dict[str, Ingested]:
            return {each.id: _known(reader, each) for each in logged if each.id not in outcomes}

        outcomes |= self._log.store.read(known)
        if not drafts:
            return list(outcomes.values())
        return [outcomes[each.id] for each in logged]

    def _draft(self, entry: Entry) -> _Draft:
        payload, redacted = read_entry(entry, self._log.config.limits.text_bytes_max)
        return self._judged(entry, payload, redacted)

    def _judged(self, entry: Entry, payload: dict[str, Any], redacted: tuple[str, ...]) -> _Draft:
        event = MemoryEvent(payload["text"], payload["kind"], payload.get("data") or {})
        left_out = pre_filter(event.text, self._log.config.learning.text_chars_min)
        if left_out:
            return _Draft(entry, payload, redacted, event, Classified(Bucket.LEFT_OUT, 1.0, left_out), is_filtered=True)
        by_rules = classify.RuleBasedClassifier().classify(replace(event, text=without_fenced(event.text)))
        return _Draft(entry, payload, redacted, event, by_rules)

    def _append(self, act: Act, drafts: Sequence[_Draft]) -> tuple[list[_Logged], bool]:
        """Log all entries. Returns them, and whether one is over the limit. A batch counts like single entries."""
        since, caller = micros(act.now - _MINUTE), act.caller
        session = next((draft.entry.session for draft in drafts), None) or caller.session
        limit = act.config.learning.entries_per_minute_max
        lately = act.transaction.ingested_since(caller.scope_key, str(caller.actor), session, since)
        logged: list[_Logged] = []
        for draft in drafts:
            logged.append(self._logged(act, draft, is_over=lately >= limit))
            lately += not logged[-1].is_known
        return logged, bool(drafts) and lately > limit

    def _logged(self, act: Act, draft: _Draft, *, is_over: bool) -> _Logged:
        entry, payload = draft.entry, draft.payload
        key = None if entry.key is None else checked_key(entry.key)
        earlier = key and act.transaction.event_for_key(act.caller.scope_key, str(act.caller.actor), key)
        if earlier:
            if (earlier.payload or {}).get("text") != payload["text"]:
                raise Conflict(
                    f"This key already stands for event {earlier.id}, whose content differs or was erased.",
                    hint="Use a new key for a new entry; nothing was stored.",
                )
            return _Logged(earlier.id, receipt_for(earlier, duplicate=True), draft, is_known=True)
        classified = draft.classified
        judged = {
            "bucket": str(classified.bucket),
            "importance": classify.importance_of(draft.event.text, classified),
            "why": classified.why,
        }
        is_waiting = is_over and classified.bucket is not Bucket.LEFT_OUT
        data = {**draft.event.data, INGEST: judged | ({"waiting": True} if is_waiting else {})}
        receipt = append(act, entry, payload | {"data": data}, draft.redacted)
        return _Logged(receipt.event_id, receipt, draft, is_waiting=is_waiting)

    def _waiting(self, age_max: timedelta | None) -> list[_Logged]:
        caller = self._caller
        since = 0 if age_max is None else micros(self._log.clock() - age_max)
        read = self._log.store.read
        events = read(lambda reader: reader.waiting_entries(caller.scope_key, str(caller.actor), since, _TAKEN_UP_MAX))
        return [self._read_back(event) for event in events]

    def _claimed(self, logged: Sequence[_Logged]) -> dict[str, Ingested]:
        """Turn logged entries into claims. An entry without a claim gets a reason."""
        judged = [(each, self._classified(each)) for each in logged]
        drafts = self._log.store.read(lambda reader: [self._claim(reader, *pair) for pair in judged])
        stored = iter(self._intake.remember([draft for draft in drafts if isinstance(draft, Claim)]))
        return {
            each.id: _ingested(each, classified, next(stored) if isinstance(draft, Claim) else draft)
            for (each, classified), draft in zip(judged, drafts, strict=True)
        }

    def _classified(self, logged: _Logged) -> Classified:
        """Classify by the other classifier if there is one, else by the rules. Log what the other leaves out."""
        by_rules, event = logged.draft.classified, logged.draft.event
        if self._classifier is None or logged.is_waiting or logged.draft.is_filtered:
            classified = by_rules
        else:
            classified = self._classifier.classify(replace(event, text=without_fenced(event.text)))
        is_news = by_rules.bucket is not Bucket.LEFT_OUT or logged.is_deferred
        if classified.bucket is Bucket.LEFT_OUT and is_news:
            data = {"entry": logged.id, "bucket": str(classified.bucket)}
            note = Entry(kind="classified", text=classified.why, data=data, key=_outcome_key(logged.id))
            ready = read_entry(note, self._log.config.limits.text_bytes_max)
            self._log.act(self._caller, lambda act: append(act, note, *ready))
        return classified

    def _claim(self, reader: Reader, logged: _Logged, classified: Classified) -> Claim | str:
        """The claim for an entry, or the reason why there is none."""
        event, entry = logged.draft.event, logged.draft.entry
        is_asked = classified.why in {classify.ASKED, classify.CONSIDERED}
        if classified.bucket is Bucket.LEFT_OUT or logged.is_waiting:
            return WAITING if logged.is_waiting else classified.why
        if classify.is_log_only(event.source):
            return _LOG_ONLY
        if self._caller.actor.kind is ActorKind.HUMAN and (is_asked or classify.is_others_words(event.source)):
            return f"{_NOT_A_PERSONS_WORD} {classified.why if is_asked else 'is none'}"
        content = classify.without_telling(without_fenced(event.text).strip())
        if classified.bucket is Bucket.PREFERENCE:
            content = classify.standing_wishes(content) or content
        elif classified.bucket is not Bucket.EPISODIC and event.source == "user":
            content = classify.without_requests(content)
        importance = classify.importance_of(event.text, classified)
        return Claim(
            content=content,
            kind=_KIND_OF[str(classified.bucket)],
            # A question or consideration concerns its task only.
            level=self._caller.scope.level if is_asked else None,
            citations=self._citations(reader, logged, content),
            importance=importance,
            occurred_at=entry.occurred_at,
            session=entry.session,
            key=_outcome_key(logged.id),
            # Retention judges questions by this number (G24, R22).
            attributes={"reward": importance} if is_asked else {},
        )

    def _citations(self, reader: Reader, logged: _Logged, content: str) -> tuple[Citation, ...]:
        """The entry, and the lines of the file it came from. An echo of what recall handed out cites nothing (R6)."""
        event, caller = logged.draft.event, self._caller
        for unit in live_with_same_text(reader, caller.visible_keys, content):
            use = reader.use(unit.id, caller.scope_key)
            is_echo = use is not None and use.handed and classify.is_others_words(event.source)
            if is_echo or sum(item.kind is CitationKind.LOG for item in unit.citations) >= _CITED_MAX:
                return ()
        cited = [Citation.log(logged.id)]
        path, lines = event.data.get("file"), event.data.get("lines")
        if event.source == RULES_FILE and isinstance(path, str) and isinstance(lines, list):
            with suppress(InvalidInput):  # The lines of a waiting entry may have left the file meanwhile.
                cited.append(self._intake.completed(Citation.file(path, tuple(lines))))
        return tuple(cited)

    def _read_back(self, event: Event) -> _Logged:
        """Read an entry back from the log; one that was logged unclassified is classified by the rules now."""
        payload = dict(event.payload or {})
        payload["data"] = dict(payload.get("data") or {})
        judged = payload["data"].pop(INGEST)
        entry = Entry(kind=payload["kind"], text=payload["text"], occurred_at=event.occurred_at, session=event.session)
        if "bucket" not in judged:
            return _Logged(event.id, receipt_for(event), self._judged(entry, payload, ()), is_deferred=True)
        classified = Classified(Bucket(judged["bucket"]), 1.0, judged["why"])
        draft = _Draft(entry, payload, (), MemoryEvent(entry.text, entry.kind, payload["data"]), classified)
        return _Logged(event.id, receipt_for(event), draft)


def _known(reader: Reader, logged: _Logged) -> Ingested:
    """The outcome of an entry that was in the log before."""
    event = reader.event(logged.id)
    assert event is not None
    return replace(outcome_of(reader, event), receipt=logged.receipt)


def outcome_of(reader: Reader, entry: Event) -> Ingested:
    """The outcome of any entry of the log."""
    judged = ((entry.payload or {}).get("data") or {}).get(INGEST) or {}
    bucket, importance = str(judged.get("bucket", "")), float(judged.get("importance", 0.0))
    outcome = reader.event_for_key(entry.scope.key, str(entry.actor), _outcome_key(entry.id))
    payload = (outcome and outcome.payload) or {}
    unit = None
    if outcome is None:
        reason = WAITING if judged.get("waiting") else str(judged.get("why", ""))
    elif outcome.type is EventType.LOGGED:
        bucket, reason = str(Bucket.LEFT_OUT), str(payload.get("text", ""))
    elif outcome.type is EventType.CLAIM_REFUSED:
        reason = f"{payload.get('reason', 'it was erased')} ({payload.get('rule', 'R16')})"
    else:
        unit, reason = reader.unit(outcome.subject or ""), str(judged.get("why", ""))
    return Ingested(receipt_for(entry), unit, bucket, importance, reason)


def _ingested(logged: _Logged, classified: Classified, outcome: Stored | Refused | str) -> Ingested:
    unit, reason = None, classified.why
    if isinstance(outcome, Refused):
        reason = f"{outcome.reason} ({outcome.rule})"
    elif isinstance(outcome, str):
        reason = outcome
    else:
        unit = outcome.unit
    importance = classify.importance_of(logged.draft.event.text, classified)
    return Ingested(logged.receipt, unit, str(classified.bucket), importance, reason)


def _outcome_key(entry_id: str) -> str:
    """The idempotency key of an entry's outcome, in the stored form, so that a query can build it."""
    return f"key:{entry_id.replace('-', '')}"
