"""Units (S8), their citations (S9, R11), the claims that they come from, and the links between them.

A unit's content never changes. Its status, trust and evidence change through events (R5).
"""

from __future__ import annotations

from mnemarch.errors import InvalidInput
from mnemarch.lazy import Any
from mnemarch.model.caller import Actor, Level, Scope, checked_id
from mnemarch.model.json_text import canonical_json
from mnemarch.model.stamps import datetime
from mnemarch.model.value import Frozen, Names, Record, member_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from mnemarch.model.event import Event


class Kind(Names):
    PROFILE = "profile"
    PREFERENCE = "preference"
    EPISODE = "episode"
    SEMANTIC = "semantic"
    FACT = "fact"
    SKILL = "skill"
    DECISION = "decision"
    EVIDENCE = "evidence"
    ANCHOR = "anchor"
    POLICY = "policy"
    CORE = "core"
    ITEM = "item"

    @classmethod
    def parse(cls, name: str) -> Kind:
        return member_of(cls, name, "kind of unit")


class Status(Names):
    HYPOTHESIS = "hypothesis"
    VERIFIED = "verified"
    PUBLISHED = "published"
    DEPRECATED = "deprecated"
    ARCHIVED = "archived"

    @classmethod
    def parse(cls, name: str) -> Status:
        return member_of(cls, name, "status")


LIVE = frozenset({Status.HYPOTHESIS, Status.VERIFIED, Status.PUBLISHED})
TRUSTED = frozenset({Status.VERIFIED, Status.PUBLISHED})


class Signal(Names):
    """The reasons that raise or lower confidence (G15, R7)."""

    TESTS_PASSED = "tests_passed"
    PR_MERGED = "pr_merged"
    HUMAN_APPROVED = "human_approved"
    REPEATED_SUCCESS = "repeated_success"
    TESTS_FAILED = "tests_failed"
    PR_REVERTED = "pr_reverted"
    HUMAN_REJECTED = "human_rejected"
    CONTRADICTED = "contradicted"


class DecayPolicy(Names):
    RECENCY_BIAS = "recency_bias"
    STABLE = "stable"
    MANUAL_ONLY = "manual_only"


class CitationKind(Names):
    COMMIT = "commit"
    LOG = "log"
    HUMAN = "human"
    TEST = "test"
    FILE = "file"
    SYMBOL = "symbol"


_CALLED = {kind: f"a {kind} citation" for kind in CitationKind}
# Citations of a working tree, which may change at any time.
OF_CODE = frozenset({CitationKind.FILE, CitationKind.SYMBOL})
# Citations of things that one branch may have and another may lack.
IN_TREES = OF_CODE | {CitationKind.COMMIT, CitationKind.TEST}


class Citation(Record):
    """One piece of evidence. `ref` is its target, and `detail` holds further fields of its kind.

    The stored form keeps the detail in a mapping of its own, so that it can't overwrite the kind or the reference.
    """

    kind: CitationKind
    ref: str
    detail: tuple[tuple[str, str], ...] = ()

    def __check__(self) -> None:
        if type(self.kind) is not CitationKind:
            object.__setattr__(self, "kind", member_of(CitationKind, self.kind, "kind of citation"))
        checked_id(self.ref, _CALLED[self.kind])

    @classmethod
    def commit(cls, hash: str, repo: str = "") -> Citation:
        """Cite a commit of the seat's repository."""
        return cls(CitationKind.COMMIT, hash, (("repo", repo),) if repo else ())

    @classmethod
    def log(cls, id: str) -> Citation:
        """Cite an event of the log by its id."""
        return cls(CitationKind.LOG, id)

    @classmethod
    def human(cls, user_id: str) -> Citation:
        """Cite a person's confirmation. Only that person can make this citation."""
        return cls(CitationKind.HUMAN, user_id)

    @classmethod
    def test(cls, name: str, outcome: str = "pass") -> Citation:
        """Cite a test. It counts once a verification has recorded that test as passed."""
        if outcome != "pass":
            raise InvalidInput(f"A test citation needs outcome 'pass', not {outcome!r}.", hint="Cite a passing test.")
        return cls(CitationKind.TEST, name)

    @classmethod
    def file(cls, path: str, lines: tuple[int, int] | None = None) -> Citation:
        """Cite a file of the working tree, or some lines of it (first, last)."""
        if lines is None:
            return cls(CitationKind.FILE, path)
        ends: Any = lines
        is_pair = isinstance(ends, tuple | list) and len(ends) == 2 and all(type(end) is int for end in ends)
        if not is_pair or not 1 <= lines[0] <= lines[1]:
            raise InvalidInput(f"Lines {lines!r} are not a range.", hint="Give (first, last), counted from 1.")
        return cls(CitationKind.FILE, path, (("lines", f"{lines[0]}-{lines[1]}"),))

    @classmethod
    def symbol(cls, path: str, name: str) -> Citation:
        """Cite a function, class or other name in a file of the working tree."""
        return cls(CitationKind.SYMBOL, path, (("name", checked_id(name, "a symbol's name")),))

    @classmethod
    def parse(cls, text: str) -> Citation:
        """Parse `kind:rest` from the command line, for example `test:tests/test_a.py::test_b`.

        Common variants are accepted: `a.py#name` and `a.py:name` for a symbol, `a.py:1-9` for lines.
        """
        kind, _, rest = text.partition(":")
        if kind == CitationKind.SYMBOL:
            sign = next((each for each in ("::", "#", ":") if each in rest), "")
            path, _, name = rest.partition(sign) if sign else ("", "", "")
            if path and name:
                return cls.symbol(path, name)
            rest = ""
        if kind == CitationKind.FILE:
            path, _, span = rest.rpartition("#L" if "#L" in rest else ":")
            ends = span.replace("L", "").split("-")
            if path and all(end.isascii() and end.isdigit() for end in ends):
                return cls.file(path, (int(ends[0]), int(ends[-1])))
            return cls.file(rest)
        if kind not in set(CitationKind) or not rest:
            raise InvalidInput(
                f"{text!r} is not a citation.",
                hint="Write commit:HASH, log:ID, human:NAME, test:NAME, file:PATH[#L1-L9] or symbol:PATH::NAME.",
            )
        return cls(CitationKind(kind), rest)

    def get(self, name: str) -> str | None:
        return dict(self.detail).get(name)

    def __str__(self) -> str:
        if self.kind is CitationKind.SYMBOL:
            return f"symbol:{self.ref}::{self.get('name')}"
        lines = self.get("lines")
        return f"{self.kind}:{self.ref}" + (f"#L{lines.replace('-', '-L')}" if lines else "")


class Trust(Record):
    """A unit's confidence (G14) as of `last_validated_at`, or of `since` before any validation. It decays (R7)."""

    json_names = (
        ("decay_policy", "decay"),
        ("validation_source", "source"),
        ("last_validated_at", "validated_at"),
        ("validation_count", "count"),
    )

    confidence: float
    since: datetime
    decay_policy: DecayPolicy = DecayPolicy.STABLE
    validation_source: Signal | None = None
    last_validated_at: datetime | None = None
    validation_count: int = 0


class Proof(Record):
    """What verified a unit (R2, R21): tests and persons as citations, whether this program saw it, where and when.

    `about`: a test seen passing is about the claim, so it holds for the project (R20). `flaky`: one of the tests passes
    and fails on the same code. `until`: the time when the test was removed. `expects`: digests of the values that the
    tests compare with. They show whether a test has come to expect something else.
    """

    json_optional = frozenset({"expects"})

    by: tuple[str, ...]
    witnessed: bool
    at: datetime
    about: bool = False
    worktree: str | None = None
    flaky: bool = False
    until: datetime | None = None
    expects: str | None = None

    @property
    def tests(self) -> tuple[str, ...]:
        return tuple(name.removeprefix("test:") for name in self.by if name.startswith("test:"))

    @property
    def carries(self) -> bool:
        """Whether it is good enough for the whole project: a person's word, or a witnessed test about the claim."""
        return self.person is not None or (self.witnessed and self.about)

    @property
    def person(self) -> str | None:
        """The person who vouched for it, if any."""
        return next((name.removeprefix("human:") for name in self.by if name.startswith("human:")), None)


class Provenance(Record):
    """One source of a unit: the actor, the scope, the time, and the event that proves it."""

    json_names = (("event_id", "event"),)

    actor: Actor
    scope: Scope
    event_id: str
    at: datetime
    session: str | None = None

    @property
    def voice(self) -> tuple[Actor, Scope, str | None]:
        """Sources with the same actor, scope and session count as one voice."""
        return self.actor, self.scope, self.session

    @classmethod
    def of(cls, event: Event) -> Provenance:
        return cls(actor=event.actor, scope=event.scope, event_id=event.id, at=event.recorded_at, session=event.session)


class Unit(Record):
    """One remembered statement, as of `version`."""

    json_optional = frozenset({"superseded_from", "proof", "fell_from"})

    id: str
    kind: Kind
    content: str
    scope: Scope
    domain: str
    status: Status
    trust: Trust
    importance: float
    citations: tuple[Citation, ...]
    provenance: tuple[Provenance, ...]
    occurred_at: datetime
    recorded_at: datetime
    version: int = 1
    mentions: int = 1
    uses: int = 0
    valid_to: datetime | None = None
    valid_from_commit: str | None = None
    valid_to_commit: str | None = None
    supersedes: str | None = None
    superseded_by: str | None = None
    contradiction_note: str | None = None
    archived_from: Status | None = None
    archive_reason: str | None = None
    erased_at: datetime | None = None
    superseded_from: Status | None = None
    # What verified it, and its status before all tests of that proof failed.
    proof: Proof | None = None
    fell_from: Status | None = None
    attributes: Mapping[str, Any] = {}

    @property
    def level(self) -> Level:
        return self.scope.level

    @property
    def confidence(self) -> float:
        return self.trust.confidence

    @property
    def author(self) -> Actor | None:
        return self.provenance[0].actor if self.provenance else None

    @property
    def session(self) -> str | None:
        return self.provenance[0].session if self.provenance else None

    @property
    def session_key(self) -> str | None:
        """A key of the session that is unique across projects. Session ids are unique only within a project."""
        if self.session is None:
            return None
        scope = self.provenance[0].scope
        return canonical_json([scope.org, scope.project, self.session])

    @property
    def live(self) -> bool:
        return self.status in LIVE

    @property
    def is_derived(self) -> bool:
        """Whether the program derived it from tasks: a lesson, a habit, a bug pattern."""
        return self.attributes.get(KEPT_AS) == LESSON

    @property
    def keys(self) -> set[tuple[str, str]]:
        """The keys by which the store finds it, as (kind, reference): its citations, and the faults that it met."""
        faults: Any = self.attributes.get("faults")
        stored = [fault.get("key") for fault in faults if isinstance(fault, dict)] if isinstance(faults, list) else []
        cited = {(str(citation.kind), citation.ref) for citation in self.citations}
        return cited | {(FAULT, key) for key in stored if isinstance(key, str)}

    @property
    def is_bound_to_code(self) -> bool:
        """Whether it may hold in one tree but not in another: it rests on a file, a symbol, a commit or a test."""
        if self.valid_from_commit or self.valid_to_commit:
            return True
        return any(citation.kind in IN_TREES for citation in self.citations)

    def valid_at(self, moment: datetime) -> bool:
        """Whether it was valid at `moment`, by time alone (R8)."""
        return self.occurred_at <= moment and (self.valid_to is None or moment < self.valid_to)


# The states of units in search. Trusted units are handed out before drafts. A replaced unit was trusted until a commit
# replaced it, and still holds in trees without that commit. A past unit is never handed out, only explained.
TRUSTED_STATE, DRAFT_STATE, REPLACED_STATE, PAST_STATE = "trusted", "draft", "replaced", "past"
LIVE_STATES = (TRUSTED_STATE, DRAFT_STATE)


def search_state(status: Status, superseded_from: Status | None, valid_to_commit: str | None) -> str:
    if status in TRUSTED:
        return TRUSTED_STATE
    if status in LIVE:
        return DRAFT_STATE
    still_somewhere = status is Status.DEPRECATED and superseded_from in TRUSTED and valid_to_commit is not None
    return REPLACED_STATE if still_somewhere else PAST_STATE


def search_kind(kind: str, attributes: Mapping[str, Any]) -> str:
    """The kind as the search index stores it, with the strength of a decision.

    A suffix marks units that the program keeps without a verification, to tell them from mere claims (R2).
    """
    if kind == "decision" and "root" in attributes:
        return f"{kind}.{attributes['strength']}"
    return f"{kind}.kept" if "kept_as" in attributes else kind


def search_text(kind: str, content: str, attributes: Mapping[str, Any]) -> str:
    """The text by which search finds a unit. A committed decision is found by its reason too."""
    if kind != "decision" or "root" not in attributes:
        return content
    reason = attributes["reason"]
    return "\n".join(filter(None, (content, reason["summary"], reason["tradeoff"])))


def search_kinds(kind: str) -> list[str]:
    """All forms in which the search index may store a kind of unit."""
    return [kind, *(f"{kind}.{more}" for more in (("axis", "lock", "normal") if kind == "decision" else ("kept",)))]


class Searchable(Frozen):
    """The fields of a unit that search needs. `content` is empty if it was erased.

    `turn` counts from 1 in the unit's session, and is 0 without a session.
    """

    id: str
    scope_key: str
    state: str
    kind: str
    domain: str
    session: str | None
    turn: int
    content: str
    occurred_at: int
    importance: float
    changed_at: int


class Claim(Record):
    """One statement for `remember`, before the gate has judged it.

    Unset fields are taken from the seat or the configuration.
    """

    json_names = (("key", None),)

    content: str
    kind: Kind | str = Kind.FACT
    level: Level | str | None = None
    domain: str = "global"
    citations: tuple[Citation, ...] | list[Citation] = ()
    importance: float = 0.5
    occurred_at: datetime | None = None
    session: str | None = None
    key: str | None = None
    decay_policy: DecayPolicy | str | None = None
    attributes: Mapping[str, Any] = {}
    # The files and symbols of the working tree that the text mentions. The seat fills it in.
    seen: tuple[Citation, ...] = ()


def waiting_key(refusal_id: str) -> str:
    """The idempotency key for repeating a claim that was refused only for lack of validation."""
    return f"waiting:{refusal_id}"


class LinkType(Names):
    SIMILAR_TO = "similar_to"
    DUPLICATES = "duplicates"
    CONTRADICTS = "contradicts"


# The beginning of a conflict's note if its source was to replace a unit that was already replaced.
REPLACEMENT = "replacement"


class Link(Record):
    """The link `source type target`. An `open` link waits for a decision; `winner` and `decision` record it.

    A conflict may have more units than these two. If it was decided without a winner, all of them are valid.
    """

    id: str
    type: LinkType
    source: str
    target: str
    weight: float
    note: str
    at: datetime
    open: bool = False
    winner: str | None = None
    decision: str | None = None

    def is_late_replacement(self, unit_id: str) -> bool:
        """Whether the unit was to replace a unit that the target had already replaced (R5)."""
        return self.source == unit_id and self.note.startswith(REPLACEMENT)


class Use(Frozen):
    """What one task did with one unit: it received it, or marked it as used, and credited or blamed it (R2)."""

    unit_id: str
    task_key: str
    handed: bool = False
    used: bool = False
    credited: bool = False
    blamed: bool = False


# The attribute of units that the program keeps for the project without a verification (R2, R20), and its values.
KEPT_AS = "kept_as"
OBSERVED, ACCEPTED, IMPORTED, LESSON, REPEATED = "observed", "accepted", "imported", "lesson", "repeated"
DISTRUSTED = "distrusted"
# The attribute of a claim that holds digests of what its tests compared with when it was claimed.
EXPECTED = "tests_expected"
# A kind of key beside the kinds of citations: the fingerprint of an error that an episode met.
FAULT = "fault"

trust_to_json = Trust.to_json
