"""What a memory holds of decision records: the files it has seen, and what was decided from each."""

from __future__ import annotations

from mnemon.decisions.adr import is_name_of_record, read_adr, write_adr
from mnemon.decisions.adr_matter import mark_in, matter_of, record_of, text_of
from mnemon.model.decision import Decision, standing_of
from mnemon.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from mnemon.decisions.adr import AdrRecord
    from mnemon.decisions.adr_matter import Matter
    from mnemon.model.unit import Unit

_TAG, _FILE = "adr", "file:"


@value
class AdrFile:
    """A file with a record; `evidence` is the id of what holds it word for word, if anything does."""

    name: str
    text: str
    record: AdrRecord
    evidence: str = ""


def tags_for(name: str) -> list[str]:
    """How the evidence is tagged that holds a file of this name."""
    return [_TAG, _FILE + name]


class Book:
    """Decisions and the files that they were made from, all as one seat sees them.

    A decision was made from a file that it cites, or that such a file became, if it says what the file says: another
    may cite the same file and decide something else.
    """

    def __init__(self, evidence: Iterable[Unit], decisions: Iterable[Unit]) -> None:
        self.seen = list(_files_in(evidence))
        self.decisions = [Decision(unit) for unit in sorted(decisions, key=_by_id) if standing_of(unit) is not None]
        self._ids = {one.id: one for one in self.decisions}
        self._versions: dict[str, list[Decision]] = {}
        for one in sorted(self.decisions, key=lambda one: one.version):
            self._versions.setdefault(one.root_id, []).append(one)
        self._sources = self._all_sources()
        self._of_name: dict[str, list[Decision]] = {}
        self._of_text: dict[str, list[Decision]] = {}
        for decision in self.decisions:
            for file in self._sources.get(decision.id, ()):
                self._of_name.setdefault(file.name, []).append(decision)
                self._of_text.setdefault(file.text, []).append(decision)
        self._evidence = {(file.name, file.text): file.evidence for file in self.seen}
        self._last = self._last_seen()

    def _all_sources(self) -> dict[str, list[AdrFile]]:
        """The files that a decision was made from, the newest last.

        One that it cites and that says the same; and those that decide what this one decides, if they have its name, or
        one that no other decision cites: what the file became.
        """
        known = {file.evidence: file for file in self.seen}
        roots: dict[str, set[str]] = {}
        for one in self.decisions:
            for each in one.evidence:
                if each in known:
                    roots.setdefault(known[each].name, set()).add(one.root_id)
        matters = {file.evidence: matter_of(file.record) for file in self.seen}
        alike: dict[Matter, list[AdrFile]] = {}
        for file in self.seen:
            alike.setdefault(matters[file.evidence], []).append(file)
        sources = {}
        for one in self.decisions:
            cited = [known[each] for each in one.evidence if each in known and text_of(known[each].record) == one.text]
            if cited:
                sources[one.id] = [
                    file
                    for file in alike[matters[cited[0].evidence]]
                    if file.name == cited[0].name or roots.get(file.name, set()) <= {one.root_id}
                ]
        return sources

    def _last_seen(self) -> dict[str, str]:
        """The text that each file had when last read: an older one may have come back, and been decided again."""
        read = [(file.evidence, file) for file in self.seen]
        known = {file.evidence: file for file in self.seen}
        for one in self.decisions:
            if self.source_of(one) is not None:
                read += [(one.id, known[each]) for each in one.evidence if each in known]
        return {file.name: file.text for _, file in sorted(read, key=lambda each: each[0])}

    def source_of(self, decision: Decision) -> AdrFile | None:
        """The file that a decision was made from, as it was seen last."""
        found = self._sources.get(decision.id)
        return found[-1] if found else None

    def evidence_of(self, name: str, text: str) -> str:
        """The evidence that holds exactly this file; "" if none does."""
        return self._evidence.get((name, text), "")

    def is_decided(self, name: str) -> bool:
        """Whether anything was decided from a file of this name."""
        return name in self._of_name

    def is_seen(self, name: str) -> bool:
        """Whether a file of this name was read before."""
        return name in self._last

    def is_news(self, file: AdrFile) -> bool:
        """Whether a file says something else than when it was last read."""
        return self._last.get(file.name) != file.text

    def is_own(self, file: AdrFile) -> bool:
        """Whether a file was exported from here and says what it said then: it is no evidence of anything."""
        marked = self._ids.get(mark_in(file.record) or "")
        return marked is not None and not self.is_seen(file.name) and self.says(marked, file)

    def versions(self, decision: Decision) -> Sequence[Decision]:
        """Every version of a decision, the first first."""
        return self._versions[decision.root_id]

    def known(self, files: Mapping[str, AdrFile]) -> dict[str, Decision]:
        """What was decided from each file before: by its name, by its mark or, if it was renamed, by its text."""
        found: dict[str, Decision] = {}
        taken: set[str] = set()
        for candidates in (self._by_name, self._by_mark, self._by_text):
            for file in files.values():
                free = [one for one in candidates(file, files) if one.id not in taken]
                if free and file.name not in found:
                    found[file.name] = free[-1]
                    taken.add(free[-1].id)
        return found

    def _by_name(self, file: AdrFile, files: Mapping[str, AdrFile]) -> Sequence[Decision]:  # noqa: ARG002
        return self._of_name.get(file.name, ())

    def _by_mark(self, file: AdrFile, files: Mapping[str, AdrFile]) -> Sequence[Decision]:  # noqa: ARG002
        marked = self._ids.get(mark_in(file.record) or "")
        return () if marked is None else (marked,)

    def _by_text(self, file: AdrFile, files: Mapping[str, AdrFile]) -> Sequence[Decision]:
        """A file whose like is still in the folder is a copy, and no renamed one."""
        alike = self._of_text.get(file.text, ())
        return [one for one in alike if not any(each.name in files for each in self._sources[one.id])]

    def says(self, decision: Decision, file: AdrFile) -> bool:
        """Whether a file says what a decision says."""
        source = self.source_of(decision)
        if source is not None:
            return matter_of(source.record) == matter_of(file.record)
        written = write_adr(record_of(decision, file.record.number, file.record.form))
        return matter_of(read_adr(written)) == matter_of(file.record)


def _files_in(evidence: Iterable[Unit]) -> Iterator[AdrFile]:
    for unit in sorted(evidence, key=_by_id):
        name = _name_in(unit.attributes.get("tags")) if unit.live else None
        if name is not None:
            yield AdrFile(name=name, text=unit.content, record=read_adr(unit.content, name), evidence=unit.id)


def _name_in(tags: object) -> str | None:
    """The name that the tags give a file, if they do, and if a file may have it: anybody can tag evidence."""
    if not isinstance(tags, list | tuple) or _TAG not in tags:
        return None
    for tag in tags:
        if isinstance(tag, str) and tag.startswith(_FILE):
            name = tag.removeprefix(_FILE).replace("\\", "/").rpartition("/")[2]
            return name if name.isprintable() and name[:1] not in {"", "."} and is_name_of_record(name) else None
    return None


def _by_id(unit: Unit) -> str:
    return unit.id
