"""Claims on their way in: checked, completed from the working tree and the log, then remembered batch by batch."""

from __future__ import annotations

from mnemarch.errors import InvalidInput
from mnemarch.model.citation import OF_CODE, CitationKind
from mnemarch.model.value import replace
from mnemarch.policy.admission import checked_claim
from mnemarch.text.fence import has_fence, ids_in, without_fenced
from mnemarch.units.remember import remember
from mnemarch.units.status import check_citations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mnemarch.code.codebase import Codebase
    from mnemarch.log.act import Ledger
    from mnemarch.model.caller import Presence
    from mnemarch.model.citation import Citation
    from mnemarch.model.outcome import Refused, Stored
    from mnemarch.model.unit import Claim
    from mnemarch.ports import Reader


class Intake:
    """Takes the claims of one caller. `codebase` is the caller's working tree, if there is one."""

    def __init__(self, log: Ledger, caller: Presence, codebase: Codebase | None) -> None:
        self._log = log
        self._caller = caller
        self._codebase = codebase

    def remember(
        self, claims: Iterable[Claim], progress: Callable[[int], None] | None = None
    ) -> list[Stored | Refused]:
        """Store claims in order, a few hundred to a transaction. All are checked before the first is stored."""
        checked = [self._checked(claim) for claim in claims]
        self._check_citations(checked)
        complete = [self._with_named_code(claim) for claim in checked]
        size = max(1, self._log.config.limits.batch_max)
        outcomes: list[Stored | Refused] = []
        for start in range(0, len(complete), size):
            batch = complete[start : start + size]
            outcomes += self._log.act(self._caller, lambda act, batch=batch: [remember(act, claim) for claim in batch])  # type: ignore[misc]
            if progress is not None:
                progress(len(outcomes))
        return outcomes

    def completed(self, citation: Citation) -> Citation:
        """The citation as the working tree completes it; refused if what it points to is not there."""
        from mnemarch.code.tree import checked_in_tree

        if self._codebase is None or citation.kind not in OF_CODE:
            return checked_in_tree(citation, self._caller.root)
        return checked_in_tree(citation, self._caller.root, self._codebase.tree)

    def _checked(self, claim: Claim) -> Claim:
        checked = checked_claim(claim, self._caller.scope, self._log.config.limits.text_bytes_max)
        if has_fence(checked.content):
            checked = replace(checked, content=self._without_recalled(checked.content))
        return replace(checked, citations=tuple(map(self.completed, checked.citations)), seen=())

    def _check_citations(self, claims: list[Claim]) -> None:
        def work(reader: Reader) -> None:
            for claim in claims:
                check_citations(reader, self._caller, claim.citations)

        self._log.store.read(work)

    def _with_named_code(self, claim: Claim) -> Claim:
        """The claim with the code that its text, and the events it cites, name in the working tree."""
        logged = [item.ref for item in claim.citations if item.kind is CitationKind.LOG]
        # The name of a file nearly always has a dot inside; a text without one needs no further look.
        if self._codebase is None or not (logged or "." in claim.content.rstrip(".\n ").replace(". ", " ")):
            return claim
        from mnemarch.code.sightings import sightings

        events = self._log.store.read(lambda reader: [reader.event(event_id) for event_id in logged])
        data = [(event.payload or {}).get("data") for event in events if event is not None]
        return replace(claim, seen=sightings(self._codebase, claim.content, data))

    def _without_recalled(self, content: str) -> str:
        """A claim without the recalled text in it; if there is nothing else, the first recalled unit's text (R6)."""
        own = without_fenced(content).strip()
        if own:
            return own
        units = self._log.store.read(lambda reader: reader.units(ids_in(content)))
        for unit_id in ids_in(content):
            unit = units.get(unit_id)
            if unit is not None and unit.live and unit.scope.key in self._caller.visible_keys:
                return str(unit.content)
        raise InvalidInput("This is only recalled memory, which is not stored again.", hint="Say what is new in it.")
