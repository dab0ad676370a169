"""The verbs by which what was said comes in: it goes to the log, and what is worth knowing becomes a claim."""

from __future__ import annotations

import os

from mnemarch.errors import InvalidInput, NotFound
from mnemarch.log.act import Entry
from mnemarch.model.stamps import blake2b
from mnemarch.seat.units import UnitVerbs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from datetime import datetime
    from typing import Any

    from mnemarch.learning.classify import Classifier
    from mnemarch.model.outcome import Ingested
    from mnemarch.model.upkeep import ImportedClaims
    from mnemarch.stores.sql.reader import Reader


# The data of an entry that is only logged now: the next ingest by the same actor in the same place judges it.
DEFERRED = {"ingest": {"waiting": True}}


class IngestVerbs(UnitVerbs):
    """The write pipeline of a seat (M2)."""

    def ingest(
        self,
        text: str,
        *,
        source: str = "user",
        data: Mapping[str, Any] | None = None,
        key: str | None = None,
        occurred_at: datetime | None = None,
        session: str | None = None,
        classifier: Classifier | None = None,
    ) -> Ingested:
        """Log what was said, and claim it if it is a fact, a preference, a lesson, history or about somebody."""
        entry = Entry(kind=source, text=text, data=data, key=key, occurred_at=occurred_at, session=session)
        return self.ingest_many([entry], classifier=classifier)[0]

    def ingest_many(
        self,
        entries: Iterable[Entry | Mapping[str, Any] | tuple[str, str]],
        *,
        classifier: Classifier | None = None,
    ) -> list[Ingested]:
        """The same for several entries of one session, as `log_many` takes them: their kind is the source.

        Without an entry it takes up what waits in the log for the rate limit, and gives what came of it.
        """
        from mnemarch.learning.pipeline import Pipeline

        self._engine.has_new_units = True
        pipeline = Pipeline(self._engine.log, self.caller, self._intake(), classifier or self._configured_classifier())
        return pipeline.ingest(map(Entry.of, entries))

    def _configured_classifier(self) -> Classifier | None:
        """Who is asked beside the rules: a model, if the configuration says so and names one."""
        model = self._engine.analyst
        if model is None or self._engine.config.learning.classifier == "rules":
            return None
        from mnemarch.learning.analyst import LLMClassifier
        from mnemarch.learning.classify import HybridClassifier, RuleBasedClassifier
        from mnemarch.services.analysis import MeteredModel

        asked = MeteredModel(self._engine, model, self.scope, "classify", patient=False)
        return HybridClassifier(RuleBasedClassifier(), LLMClassifier(asked))

    def ingest_file(self, path: str | os.PathLike[str]) -> list[Ingested]:
        """Ingest a rules file (CLAUDE.md, AGENTS.md): each bullet is an entry that cites its lines."""
        from mnemarch.importers.markdown import rules_in

        file, limit = os.fspath(path), self._engine.config.limits.data_bytes_max
        try:
            with open(file, encoding="utf-8") as opened:
                text = opened.read(limit + 1)
        except OSError as error:
            raise InvalidInput(f"{file!r} can't be read: {error.strerror}.", hint="Give a Markdown file.") from None
        except UnicodeDecodeError:
            raise InvalidInput(f"{file!r} is no text in UTF-8.", hint="Give a Markdown file.") from None
        if len(text) > limit:
            raise InvalidInput(f"{file!r} has more than {limit:,} characters.", hint="Split it.")
        rules = rules_in(text)
        if not rules:
            raise InvalidInput(f"{file!r} has no bullet.", hint="Write each rule as a line that begins with `- `.")
        place = self._place(file)
        return self.ingest_many([_entry(rule, lines, file, place) for rule, lines in rules])

    def import_claims(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        only: str | None = None,
        *,
        dry_run: bool = False,
        strict: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> ImportedClaims:
        """Take what another memory knew as claims, labelled as imported until a person confirms them.

        `format` is one of `mnemarch.importers.FORMATS`, or "mnemarch"; it is found where it can only be one. `strict`
        takes nothing if anything can't be read. Your own memory comes back by `Memory.import_`.
        """
        from mnemarch import importers
        from mnemarch.importers.source import Source
        from mnemarch.units.imports import Importer, exported_notes

        importer = Importer(self._engine.log, self.caller, self._intake())
        source = Source(os.path.expanduser(os.fspath(path)), self.caller.root)
        try:
            name = format or importers.format_of(source.path)
            if name == importers.EXPORT:
                notes = exported_notes(source.path, self._engine.config.limits.data_bytes_max)
            else:
                notes = importers.notes_in(source, name, only)
        except OSError as error:
            hint = "Give a file, or a folder, that can be read."
            raise InvalidInput(f"{source.path!r} can't be read: {error.strerror or error}.", hint=hint) from None
        if strict and source.problems:
            first = source.problems[0]
            told = f"{len(source.problems):,} things can't be read; the first at {first.place}: {first.says}"
            raise InvalidInput(f"{told}. Nothing was imported.", hint="Mend them, or leave --strict out.")
        done = importer.run(notes, source.problems, format=name, name=source.name, dry_run=dry_run, progress=progress)
        # Whoever interrupts it wants to leave: what came so far is indexed by the next process.
        self._engine.has_new_units = not dry_run or self._engine.has_new_units
        return done

    def ingested(self, entry_id: str) -> Ingested:
        """What became of an entry that was ingested: its bucket, its unit, and why it became none."""
        from mnemarch.learning.pipeline import INGEST, outcome_of
        from mnemarch.model.event import Event
        from mnemarch.services import overview

        def work(reader: Reader) -> Ingested:
            entry = overview.named(reader, self.caller, entry_id)
            data = (entry.payload or {}).get("data") if isinstance(entry, Event) else None
            if not isinstance(entry, Event) or INGEST not in (data or {}):
                raise NotFound(f"No entry {entry_id!r} that was ingested.", hint="Give the id that ingest printed.")
            return outcome_of(reader, entry)

        return self._read(work)

    def _place(self, file: str) -> str | None:
        """The file's path in the working tree, or None if it is outside."""
        root = self.caller.root
        inside = None if root is None else os.path.relpath(os.path.realpath(file), os.path.realpath(root))
        return None if inside is None or inside.startswith(os.pardir) else inside.replace(os.sep, "/")


def _entry(rule: str, lines: tuple[int, int], file: str, place: str | None) -> Entry:
    from mnemarch.learning.pipeline import RULES_FILE

    named = {"file": place, "lines": list(lines)} if place else {"outside": os.path.basename(file)}
    digest = blake2b(f"{place or file}\n{rule}".encode(), digest_size=16).hexdigest()
    return Entry(kind=RULES_FILE, text=rule, data=named, key=f"rule:{digest}")
