"""The seat's systems, the ingestion of texts, and the experience of earlier tasks that is added to answers."""

from __future__ import annotations

import os

from mnemarch.errors import InvalidInput, NotFound
from mnemarch.files import path_inside
from mnemarch.lazy import Lazy
from mnemarch.log.act import Entry
from mnemarch.model.stamps import blake2b
from mnemarch.model.unit import FAULT, Unit
from mnemarch.model.value import replace
from mnemarch.seat.units import UnitVerbs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime
    from typing import Any

    from mnemarch.code.codebase import Codebase
    from mnemarch.decisions.decisions import Decisions
    from mnemarch.graph.orchestrator import MemoryOrchestrator
    from mnemarch.learning import knowledge as learning
    from mnemarch.learning.classify import Classifier
    from mnemarch.learning.code_rules import CodeRules
    from mnemarch.learning.episodic import EpisodicMemoryManager
    from mnemarch.loops.detector import CircularFixDetector
    from mnemarch.model.outcome import Ingested, LoopVerdict, Promotion
    from mnemarch.model.search import Recalled
    from mnemarch.model.upkeep import ImportedClaims
    from mnemarch.services import analysis
    from mnemarch.services.items import Items
    from mnemarch.stores.sql.reader import Reader
else:
    # A failed run teaches nothing yet.
    learning = Lazy("mnemarch.learning.knowledge")
    analysis = Lazy("mnemarch.services.analysis")

# The data of an entry that is only logged for now. The next ingest by the same actor in the same scope judges it.
DEFERRED = {"ingest": {"waiting": True}}
_MET_MAX = 40


class Systems(UnitVerbs):
    """The part of a seat beyond units: the write pipeline (M2), and one property for each system."""

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
        """Log a text, and claim it if it is a fact, a preference, a lesson, history, or about a person."""
        entry = Entry(kind=source, text=text, data=data, key=key, occurred_at=occurred_at, session=session)
        return self.ingest_many([entry], classifier=classifier)[0]

    def ingest_many(
        self,
        entries: Iterable[Entry | Mapping[str, Any] | tuple[str, str]],
        *,
        classifier: Classifier | None = None,
    ) -> list[Ingested]:
        """Ingest several entries of one session, in the form that `log_many` takes. Their kind is the source.

        Without entries, it processes the logged entries that wait because of the rate limit, and returns the results.
        """
        from mnemarch.learning.pipeline import Pipeline

        self._engine.has_new_units = True
        pipeline = Pipeline(self._engine.log, self.caller, self._intake(), classifier or self._configured_classifier())
        return pipeline.ingest(map(Entry.of, entries))

    def _configured_classifier(self) -> Classifier | None:
        """The classifier that asks a model beside the rules, or None if the configuration asks for rules alone."""
        model = self._engine.analyst
        if model is None or self._engine.config.learning.classifier == "rules":
            return None
        from mnemarch.learning.analyst import LLMClassifier
        from mnemarch.learning.classify import HybridClassifier, RuleBasedClassifier
        from mnemarch.services.analysis import MeteredModel

        asked = MeteredModel(self._engine, model, self.scope, "classify", patient=False)
        return HybridClassifier(RuleBasedClassifier(), LLMClassifier(asked))

    def ingest_file(self, path: str | os.PathLike[str]) -> list[Ingested]:
        """Ingest a rules file (CLAUDE.md, AGENTS.md). Each bullet becomes an entry that cites its lines."""
        from mnemarch.importers import rules_in

        file, limit = os.fspath(path), self._engine.config.limits.data_bytes_max
        try:
            with open(file, encoding="utf-8") as opened:
                text = opened.read(limit + 1)
        except OSError as error:
            raise InvalidInput(f"{file!r} can't be read: {error.strerror}.", hint="Give a Markdown file.") from None
        except UnicodeDecodeError:
            raise InvalidInput(f"{file!r} is not a UTF-8 text.", hint="Give a Markdown file.") from None
        if len(text) > limit:
            raise InvalidInput(f"{file!r} has more than {limit:,} characters.", hint="Split it.")
        rules = rules_in(text)
        if not rules:
            raise InvalidInput(f"{file!r} has no bullet.", hint="Write each rule as a line that begins with `- `.")
        place = path_inside(file, self.caller.root)
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
        """Import another memory's content as claims, which are labelled as imported until a person confirms them.

        `format` is one of `mnemarch.importers.FORMATS`, or "mnemarch". It may be left out if the files show it. With
        `strict`, nothing is imported if any part can't be read. `Memory.import_` restores your own memory.
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
            told = f"{len(source.problems):,} items can't be read; the first is at {first.place}: {first.says}"
            raise InvalidInput(f"{told}. Nothing was imported.", hint="Correct them, or leave out --strict.")
        done = importer.run(notes, source.problems, format=name, name=source.name, dry_run=dry_run, progress=progress)
        # Set only after success. If the import is interrupted, the next process indexes the units.
        self._engine.has_new_units = not dry_run or self._engine.has_new_units
        return done

    def ingested(self, entry_id: str) -> Ingested:
        """The result of an ingested entry: its bucket, its unit, or the reason why it has none."""
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

    # The systems, one property each

    @property
    def loops(self) -> CircularFixDetector:
        """Loop detection for this seat's task."""
        from mnemarch.loops.detector import CircularFixDetector

        return CircularFixDetector(self._engine.log, self.caller)

    @property
    def decisions(self) -> Decisions:
        """The decisions: their reasons, whether they still hold, and the impact of changing them."""
        from mnemarch.decisions.decisions import Decisions

        return Decisions(self._engine.log, self.caller, self._intake())

    @property
    def graph(self) -> MemoryOrchestrator:
        """The graphs of this actor's questions and findings, one for each session, stored in the log (A1)."""
        return self._engine.graph(self.caller)

    @property
    def items(self) -> Items:
        """Keys and values in namespaces below this seat's project, for agent frameworks."""
        from mnemarch.services.items import Items

        return Items(self._engine, self.caller)

    @property
    def rules(self) -> CodeRules:
        """The code rules that patches taught this project."""
        from mnemarch.learning.code_rules import CodeRules

        return CodeRules(self._engine.log, self.caller)

    @property
    def episodes(self) -> EpisodicMemoryManager:
        """The episodes of earlier tasks, found by the errors that they met or by their subject."""
        from mnemarch.learning.episodic import EpisodicMemoryManager

        engine, root = self._engine, self.caller.root
        code = None if root is None else lambda: engine.codebase(root).view(self.scope.project, by_commit=True)
        return EpisodicMemoryManager(engine.log, self.caller, self._intake(), code=code, caches=engine.episodes)

    @property
    def knowledge(self) -> learning.SemanticMemoryManager:
        """The knowledge that tasks taught about the project: bug patterns, code patterns, habits."""
        return learning.SemanticMemoryManager(self._engine.log, self.caller, self._intake(), self._recalled)

    def _recalled(self, query: str, k: int, kinds: Sequence[str]) -> Sequence[Recalled]:
        from mnemarch.services.recall import Answering  # A verification learns, and asks nothing.

        answering = Answering(self._engine, self.caller)
        return answering.recall(query, k, kinds=kinds, domain=None, at_commit=None, as_of=None).items

    def about(self, paths: Sequence[str]) -> list[Recalled]:
        """Warnings for a change of these files: locks, bug patterns and lessons. Paths are relative to the root."""
        from mnemarch.decisions.loading import spoken_of
        from mnemarch.policy.admission import checked_list

        named = [str(path) for path in checked_list(paths, "paths")]
        units = self._engine.store.read(lambda reader: spoken_of(reader, self.caller, named))
        if not units:
            return []
        from mnemarch.services.recall import Answering

        return Answering(self._engine, self.caller).handed_out(units)

    def awaited_tests(self) -> list[str]:
        """The tests that would verify claims in this seat's scopes, and the tests that failed in this task."""
        failed = [name for attempt in self.loops.failures() for name in attempt.tests]
        cited = self._engine.store.read(lambda reader: reader.tests_cited(self.caller.visible_keys))
        return list(dict.fromkeys((*cited, *failed)))

    def consolidate(self) -> Promotion | None:
        """Store the episode of the task's last verification, if that was left for later, and learn from it."""
        from mnemarch.units.episode import consolidate

        told = consolidate(self._engine.log, self.caller)
        self._engine.has_new_units = True
        return None if told is None else self._learned_from(told, (), self._codebase())

    def _learned_from(self, judged: Promotion, met: Sequence[Unit], codebase: Codebase | None) -> Promotion:
        """The answer of a verification, after its follow-up: an analysis, learning from a success, a reflection.

        Without an episode, the answer only gains how the same error ended in other tasks; `met` are the units about it.
        """
        if not judged.episode_id:
            return replace(judged, loop=judged.loop and self._with_earlier(judged.loop, None, met))
        from mnemarch.learning.reflection import reflect_if_due, seen_before_reflecting

        task = self.caller.scope_key
        episode, entries, seen, loop = self._engine.store.read(
            lambda reader: reader.together(
                lambda reader: (
                    reader.unit(judged.episode_id),
                    learning.entries_of(reader, task) if judged.passed else [],
                    seen_before_reflecting(reader, self.caller, self._engine.config.reflection),
                    judged.loop and self._with_earlier(judged.loop, reader, met),
                )
            )
        )
        assert episode is not None
        if judged.passed:
            judged = analysis.followed_up(self._engine, self.caller, judged, episode)
        if loop is not None:
            judged = replace(judged, loop=loop)
        elif judged.passed and judged.episode_id == episode.id:
            learning.learn_from_task(self._engine.log, self.caller, episode, entries)
        elif judged.passed:
            self.knowledge.learn_from_episode(judged.episode_id, code=False)
        reflect_if_due(self._engine.log, self.caller, codebase, seen)
        return judged

    def _met(self, reader: Reader, verdict: LoopVerdict) -> list[Unit]:
        """The newest units about the verdict's error."""
        fault = verdict.details["error_hash"]
        return reader.newest_citing(self.caller.visible_keys, FAULT, fault, _MET_MAX, live=True)

    def _with_earlier(
        self, verdict: LoopVerdict, reader: Reader | None = None, met: Sequence[Unit] | None = None
    ) -> LoopVerdict:
        """The verdict, with how the same error ended in other tasks."""
        if reader is None:
            return self._engine.store.read(lambda reader: self._with_earlier(verdict, reader, met))
        met, own = self._met(reader, verdict) if met is None else met, self.caller.scope_key
        if all(unit.attributes.get("task_key") == own for unit in met):
            return verdict  # The common case. It avoids loading the search for episodes.
        return replace(verdict, seen_before=self.episodes.last_time(verdict.details["error_hash"], reader, met))


def _entry(rule: str, lines: tuple[int, int], file: str, place: str | None) -> Entry:
    from mnemarch.learning.pipeline import RULES_FILE

    named = {"file": place, "lines": list(lines)} if place else {"outside": os.path.basename(file)}
    digest = blake2b(f"{place or file}\n{rule}".encode(), digest_size=16).hexdigest()
    return Entry(kind=RULES_FILE, text=rule, data=named, key=f"rule:{digest}")
