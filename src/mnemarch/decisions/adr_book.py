"""What a memory holds of decision records: the files it has read, and what was decided from each."""

from __future__ import annotations

from mnemarch.decisions.adr import is_name_of_record
from mnemarch.decisions.adr_matter import mark_in, matter_of, reason_of, record_of, said_in, text_of
from mnemarch.decisions.adr_read import read_adr
from mnemarch.decisions.adr_write import write_adr
from mnemarch.model.caller import Level
from mnemarch.model.decision import Decision, standing_of
from mnemarch.model.value import replace, value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from mnemarch.decisions.adr_record import AdrRecord
    from mnemarch.model.unit import Unit

_TAG, _FILE, _AFTER = "adr", "file:", "after:"


@value
class AdrFile:
    """A file with a record; `evidence` is the id of what holds it word for word, if anything does.

    A reading that decided nothing was kept `after` the decision, or the reading, that came last; "" if none did.
    """

    name: str
    text: str
    record: AdrRecord
    evidence: str = ""
    after: str | None = None


def tags_for(name: str, after: str | None = None) -> list[str]:
    """How the evidence is tagged that holds a file of this name, or a reading of it."""
    return [_TAG, _FILE + name] if after is None else [_TAG, _FILE + name, _AFTER + after]


if TYPE_CHECKING:
    # Decisions by what they may have in common with a file, and what that is of a file.
    Way = tuple[Mapping[object, Sequence[Decision]], Callable[[AdrFile], object]]


class Book:
    """Decisions and the files that they were made from, all as one seat sees them.

    A decision was made from a file that it cites if it says what the file says: another may cite the same file and
    decide something else. What a file said last is what was decided from it, or a reading that was kept once nothing
    was left to do about it. Other evidence of a file says nothing: its decision may have been refused, or never begun.
    """

    def __init__(self, evidence: Iterable[Unit], decisions: Iterable[Unit]) -> None:
        kept = sorted((unit for unit in evidence if unit.live), key=_by_id)
        self.seen = list(_files_in(kept))
        self.decisions = [Decision(unit) for unit in sorted(decisions, key=_by_id) if standing_of(unit) is not None]
        self._ids = {one.id: one for one in self.decisions}
        self._versions: dict[str, list[Decision]] = {}
        for one in sorted(self.decisions, key=lambda one: one.version):
            self._versions.setdefault(one.root_id, []).append(one)
        self._kept = {unit.id for unit in kept}
        self._evidence = {(file.name, file.text): file.evidence for file in self.seen}
        self._files: dict[str, list[AdrFile]] = {}
        self._named: dict[str, Decision] = {}
        self._last: dict[str, tuple[str, AdrFile]] = {}
        self._follow()

    def _follow(self) -> None:
        """Every decision from a file and every reading, in the order of time: which file is which decision's by now."""
        files = {file.evidence: file for file in self.seen}
        about = dict(self._ids)
        turns: list[tuple[str, Decision | AdrFile]] = [(one.id, one) for one in self.decisions]
        turns += [(file.evidence, file) for file in self.seen if file.after is not None]
        for at, turn in sorted(turns, key=lambda each: each[0]):
            if isinstance(turn, Decision):
                cited = (files[each] for each in turn.evidence if each in files)
                made_from = next((file for file in cited if text_of(file.record) == turn.text), None)
                if made_from is not None:
                    self._made(turn, made_from)
            else:
                self._last[turn.name] = (at, turn)
                old = files.get(turn.after or "")
                if old is not None and old.name != turn.name and old.name not in self._named:
                    self._last.pop(old.name, None)
                decision = about.get(turn.after or "")
                if decision is not None:
                    about[at] = decision
                    self._became(decision, turn)

    def _made(self, decision: Decision, file: AdrFile) -> None:
        """A decision from a file, which may have another name by now: so if a version before was made from it."""
        before = self._files.get(decision.unit.supersedes or "", [])
        now = before[-1].name if any(each.evidence == file.evidence for each in before) else file.name
        self._files[decision.id] = [replace(file, name=now)]
        self._named[now] = decision
        if decision.reason == reason_of(file.record):  # Who decides the same for a reason of their own read no file.
            self._last[now] = (decision.id, file)

    def _became(self, decision: Decision, file: AdrFile) -> None:
        files = self._files.setdefault(decision.id, [])
        if files and files[-1].name != file.name and self._named.get(files[-1].name) is decision:
            del self._named[files[-1].name]
            self._last.pop(files[-1].name, None)
        files.append(file)
        self._named[file.name] = decision

    def source_of(self, decision: Decision) -> AdrFile | None:
        """The file that a decision was made from, as it was read last; while it is in force, as it still says that."""
        files = self._files.get(decision.id, ())
        if len(files) > 1 and decision.is_active:
            matter = matter_of(files[0].record)
            return next(file for file in reversed(files) if matter_of(file.record) == matter)
        return files[-1] if files else None

    def evidence_of(self, name: str, text: str) -> str:
        """The evidence that holds exactly this file; "" if none does."""
        return self._evidence.get((name, text), "")

    def is_decided(self, name: str) -> bool:
        """Whether anything was decided from the file that has this name by now."""
        return name in self._named

    def undecided(self) -> Iterator[AdrFile]:
        """The files that nothing was decided from, as they were read last."""
        return (file for name, (_, file) in self._last.items() if name not in self._named)

    def is_read(self, file: AdrFile) -> bool:
        """Whether this is, to the letter, what the file of that name said last."""
        return file.name in self._last and self._last[file.name][1].text == file.text

    def is_news(self, file: AdrFile, known: Decision | None) -> bool:
        """Whether a file says what it did not say last; if it was never read, what its decision does not say."""
        last = self._last_of(file, known)[1]
        if last is not None:
            return said_in(last.record) != said_in(file.record)
        return known is None or not self.says(known, file)

    def read_at(self, file: AdrFile, known: Decision | None = None) -> str:
        """The id of what came last of a file: what was decided from it, or a reading."""
        return max(self._last_of(file, known)[0], known.id if known is not None else "")

    def _last_of(self, file: AdrFile, known: Decision | None) -> tuple[str, AdrFile | None]:
        source = self.source_of(known) if known is not None else None
        return self._last.get(file.name) or self._last.get(source.name if source is not None else "") or ("", None)

    def is_own(self, file: AdrFile) -> bool:
        """Whether a file was exported from here and says what it said then: it is no evidence of anything."""
        marked = self._ids.get(mark_in(file.record) or "")
        return marked is not None and file.name not in self._last and self.says(marked, file)

    def versions(self, decision: Decision) -> Sequence[Decision]:
        """Every version of a decision, the first first."""
        return self._versions[decision.root_id]

    def known(self, files: Mapping[str, AdrFile]) -> dict[str, Decision]:
        """What was decided from each file before.

        By its name, by its mark or, of what no other file here stands for, by what the two have in common: of records
        whose file was renamed, and of decisions that no file is known of.
        """
        found: dict[str, Decision] = {}
        taken: set[str] = set()
        for alike, common in self._ways(files):
            for file in files.values() if alike else ():
                free = (
                    [one for one in alike.get(common(file), ()) if one.id not in taken]
                    if file.name not in found
                    else ()
                )
                if free:
                    found[file.name] = free[-1]
                    taken.add(free[-1].id)
        return found

    def _ways(self, files: Mapping[str, AdrFile]) -> Iterator[Way]:
        yield {name: [one] for name, one in self._named.items()}, lambda file: file.name
        yield self._marked(files), lambda file: mark_in(file.record)
        gone = [(self._files[one.id][-1], one) for name, one in self._named.items() if name not in files]
        for common in (_text, _matter, _title, _all_but_title):
            yield _grouped((common(file), one) for file, one in gone), common
        loose = [one for one in self.decisions if one.id not in self._files]
        yield _grouped((one.text, one) for one in loose), lambda file: text_of(file.record)
        bare = (one for one in loose if not self._kept.intersection(one.evidence))
        yield _grouped((one.text.partition("\n")[0].casefold(), one) for one in bare), _title

    def _marked(self, files: Mapping[str, AdrFile]) -> dict[object, Sequence[Decision]]:
        """Decisions by the mark of their files: that of the first version stays when the file is edited."""
        marked: dict[object, Sequence[Decision]] = {one.id: [one] for one in self.decisions}
        for name, one in self._named.items():
            mark = mark_in(self._files[one.id][-1].record)
            if mark is not None:
                marked[mark] = [one] if name not in files else []
        return marked

    def former(self, files: Mapping[str, AdrFile], known: Mapping[str, Decision]) -> dict[str, AdrFile]:
        """What the files were, decided or not, when they had another name."""
        sources = {name: self.source_of(one) for name, one in known.items()}
        found = {name: source for name, source in sources.items() if source is not None and source.name != name}
        gone = [file for file in self.undecided() if file.name not in files]
        new = [file for file in files.values() if file.name not in known and file.name not in self._last]
        for common in (_matter, _title):
            for file in new if gone else ():
                old = next((each for each in gone if common(each) == common(file)), None)
                if old is not None and file.name not in found:
                    found[file.name] = old
                    gone.remove(old)
        return found

    def gone(self, names: Collection[str], known: Collection[Decision]) -> list[tuple[str, Decision]]:
        """What is in force of files that are no longer there under any name."""
        ids = {one.id for one in known}
        return [
            (name, one)
            for name, one in sorted(self._named.items())
            if name not in names and one.id not in ids and one.is_active
        ]

    def says(self, decision: Decision, file: AdrFile) -> bool:
        """Whether a file says what a decision says."""
        files = self._files.get(decision.id)
        if files:
            return matter_of(files[0].record) == matter_of(file.record)
        if (decision.text, decision.reason) == (text_of(file.record), reason_of(file.record)):
            return True
        written = write_adr(record_of(decision, file.record.number, file.record.form))
        return matter_of(read_adr(written)) == matter_of(file.record)


def _text(file: AdrFile) -> object:
    return file.text


def _matter(file: AdrFile) -> object:
    return matter_of(file.record)


def _title(file: AdrFile) -> object:
    return file.record.title.casefold()


def _all_but_title(file: AdrFile) -> object:
    _, *rest = matter_of(file.record)
    return tuple(rest) if file.record.decision else ""


def _grouped(pairs: Iterable[tuple[object, Decision]]) -> dict[object, Sequence[Decision]]:
    """Decisions by what they have in common, if anything; what is in force comes last."""
    groups: dict[object, list[Decision]] = {}
    for common, one in sorted(pairs, key=lambda pair: (pair[1].is_active, pair[1].id)):
        if common:
            groups.setdefault(common, []).append(one)
    return dict(groups)


def _files_in(evidence: Iterable[Unit]) -> Iterator[AdrFile]:
    for unit in evidence:
        tags = unit.attributes.get("tags")
        # Below the project anybody may keep what they like.
        name = _name_in(tags) if unit.level >= Level.PROJECT else None
        if name is not None:
            after = _tagged(tags, _AFTER)
            yield AdrFile(
                name=name, text=unit.content, record=read_adr(unit.content, name), evidence=unit.id, after=after
            )


def _name_in(tags: object) -> str | None:
    """The name that the tags give a file, if they do, and if a file may have it: anybody can tag evidence."""
    told = _tagged(tags, _FILE)
    name = "" if told is None else told.replace("\\", "/").rpartition("/")[2]
    return name if name.isprintable() and name[:1] not in {"", "."} and is_name_of_record(name) else None


def _tagged(tags: object, prefix: str) -> str | None:
    if not isinstance(tags, list | tuple) or _TAG not in tags:
        return None
    return next((tag.removeprefix(prefix) for tag in tags if isinstance(tag, str) and tag.startswith(prefix)), None)


def _by_id(unit: Unit) -> str:
    return unit.id
