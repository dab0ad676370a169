"""What a command is made of; which memory it works on, and from which seat; and the command that a verb makes.

Where is found by options, then MNEMARCH_* variables, then the repository around the current folder; who, in `trust`.
"""

from __future__ import annotations

import os
import sys

from mnemarch.checkout import SETTINGS, load
from mnemarch.code.home import FOLDER, home_of, repository_around
from mnemarch.errors import InvalidInput, NotFound
from mnemarch.interfaces.place import MAKE, is_folder, missing_files
from mnemarch.model.caller import Scope
from mnemarch.model.value import replace, value
from mnemarch.verbs.types import PROGRESS, SEAT, help_of
from mnemarch.wiring import open as open_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager
    from typing import Any

    from mnemarch.code.home import Home
    from mnemarch.config import Config
    from mnemarch.memory import Memory
    from mnemarch.model.caller import Actor
    from mnemarch.seat import Seat
    from mnemarch.verbs.types import Parameter, Verb

DONE, REFUSED, WRONG_USE, STORE_TROUBLE, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130
# The doctor leaves one unit in a place of its own.
_UNITS_OF_DOCTOR = 1
_NAMED_MAX = 3
_HOW_NAMED = "A project is named by its git remote, or else by its folder; if that changed"
# Verbs that make a memory where there is none; the others say that there is none.
_BEGIN_MEMORY = {
    *("seat.log", "seat.log_many", "seat.remember", "seat.remember_many", "seat.verify", "seat.fail"),
    *("seat.mark_stuck", "seat.clear_stuck", "decisions.add_evidence", "decisions.add_policy", "memory.import_"),
    *("seat.import_claims", "seat.ingest", "seat.ingest_many", "seat.ingest_file"),
    *("core.core_memory_append", "core.call"),
}
# What hooks ask in every repository: where there is no memory, it is answered as from an empty one.
_ASKED_BY_HOOKS = {"seat.recall", "seat.context", "seat.validate_approach", "seat.failed_approaches", "core.compiled"}
# Verbs whose command does more than the verb: it asks first, takes more options, or shows something else.
_SPECIAL = {
    *("seat.failed_approaches", "seat.units", "seat.validate", "seat.erase", "seat.undo", "seat.explain"),
    *("memory.doctor", "memory.rebuild", "memory.reindex", "memory.export", "memory.import_", "memory.backup"),
    *("seat.import_claims", "memory.maintain"),
    *("decisions.relate", "decisions.unrelate", "decisions.impact", "seat.events"),
}
# Verbs that show the log, the work or anything: `look` has their words.
_LOOKS = {
    *("seat.events", "seat.history", "seat.status", "seat.show"),
    *("seat.ingest", "seat.ingest_many", "seat.ingest_file", "seat.ingested"),
}
# What only people and orchestrators may read; and what reads, whatever its profile says.
_FOR_PEOPLE, _LOOKS_ON = {"seat.inbox"}, {"memory.doctor"}
# Which module has the words for a verb, by what the verb is on or by what it gives.
_WORDS = {"decisions": "decide", "core": "learned", "episodes": "learned", "rules": "rules"}
_WORDS |= {"Imported": "moving", "ImportedClaims": "moving"}
_WORDS |= {"Erased": "removal", "Undone": "removal", "Reflected": "learned", "Maintained": "learned"}
# What long work counts.
_COUNTED = {
    "seat.remember_many": ("remembering", "claims"),
    "memory.audit": ("auditing", "events"),
    "memory.rebuild": ("rebuilding", "events"),
    "memory.reindex": ("indexing", "units"),
    "memory.janitor": ("comparing with the code", "units"),
    "seat.reflect": ("reflecting", "lessons"),
    "memory.maintain": ("maintaining", "steps"),
    "memory.export": ("exporting", "events"),
    "memory.import_": ("importing", "events"),
    "seat.import_claims": ("importing", "claims"),
}
_EXIT_CODES: dict[str, Callable[[Any], int]] = {
    "Refused": lambda _: REFUSED,
    "ApproachValidation": lambda validation: DONE if validation.valid else REFUSED,
    "LoopVerdict": lambda verdict: REFUSED if verdict.type == "BLOCK" else DONE,
    "Promotion": lambda judged: REFUSED if judged.run and not judged.run.passed else exit_code_of(judged.loop),
    "LogCheck": lambda check: DONE if check.ok else STORE_TROUBLE,
    "ReceiptCheck": lambda check: DONE if check.ok else STORE_TROUBLE,
    "Rebuild": lambda rebuild: DONE if rebuild.same else STORE_TROUBLE,
    "Finding": lambda finding: DONE if finding.ok else STORE_TROUBLE,
    "Maintained": lambda night: DONE if night.ok else STORE_TROUBLE,
}


@value
class Answer:
    """What a command found out: `data` for programs, `text` for people, made only if a person reads it.

    `aside` is about the answer and no part of it: people get it on stderr, so that it is in no pipe and no prompt.
    """

    data: Any
    text: Callable[[], str]
    exit_code: int = DONE
    aside: Callable[[], str] | None = None
    is_printed: bool = False


@value
class Command:
    """One command: what its help says, what it takes, and what it does.

    Only one that `begins_memory` makes a memory where there is none. One that `only_reads` asks nobody who they are.
    """

    description: str
    examples: tuple[str, ...]
    run: Callable[[Call], Answer]
    takes: tuple[Parameter, ...] = ()
    begins_memory: bool = False
    only_reads: bool = False


class Call:
    """One command as it was typed. The memory and the seat it leads to are opened when first asked for.

    `options` has all its parameters, `given` those that were typed, `places` who and where, and whether to answer in
    JSON.
    """

    def __init__(
        self, options: Any, given: dict[str, Any], *, places: Any, begins_memory: bool = False, only_reads: bool = False
    ) -> None:
        self.options = options
        self.given = given
        self.places = places
        self.begins_memory = begins_memory
        self._only_reads = only_reads
        self._home: Home | None = None
        self._memory: Memory | None = None
        self._actor: Actor | None = None
        self._seat: Seat | None = None

    @property
    def home(self) -> Home:
        """The repository around --root or the current folder; without one, --store's folder names it."""
        if self._home is None:
            self._home = home_of(self._folder_here())
            if self.store is not None and is_folder(self.store):
                folder, is_named = os.path.abspath(self.store), self.places.root or repository_around(self._home.root)
                self._home = replace(self._home if is_named else home_of(folder), folder=folder)
        return self._home

    @property
    def url(self) -> str:
        """The address of a memory that is in no folder."""
        store = self.store
        return load(self.home.folder).store.url if store is None or is_folder(store) else store

    @property
    def memory(self) -> Memory:
        if self._memory is None:
            missing = None if self.begins_memory else self._absent()
            if missing is not None:
                raise missing
            # The folder is named, not left to be found again: for a linked worktree that would ask git twice.
            self._memory = open_memory(self.store or self.home.folder)
            noted(self._memory.config)
        return self._memory

    @property
    def actor(self) -> Actor:
        """Who acts, by --actor, the coding agent around this process, or the person at the terminal."""
        if self._actor is None:
            from mnemarch.interfaces.trust import actor_of

            self._actor = actor_of(self._setting("actor"), may_ask=not self._only_reads)
        return self._actor

    @property
    def seat(self) -> Seat:
        if self._seat is None:
            # Who it is comes first: no memory is made for somebody who is not who they say.
            actor, home, memory = self.actor, self.home, self.memory
            segments: dict[str, Any] = {"project": memory.config.project or home.project, "worktree": home.worktree}
            named = {name: self._setting(name) for name in ("org", "project", "worktree", "task")}
            scope = Scope(**segments | {name: segment for name, segment in named.items() if segment is not None})
            self._seat = memory.seat(actor, scope, session=self._setting("session"), root=home.root)
        return self._seat

    def answer_from_nothing(self) -> str:
        """Where there is no memory yet, answer from an empty one that leaves no trace; gives what to say about it.

        For what hooks ask in every repository, which must not fail there. A store that was named and is not there is
        a mistake all the same.
        """
        missing = self._absent() if self.places.store is None else None
        if missing is None:
            return ""
        self._memory = open_memory(":memory:", config=noted(load(self.home.folder)))
        return f"{missing.message} {missing.hint}"

    def empty_scope_hint(self) -> list[str]:
        """A note if the memory has units and this seat sees none: its project may have had another name."""
        units = 0 if self.seat.units(limit=1) else self.memory.stats().units
        if units <= _UNITS_OF_DOCTOR:
            return []
        former = self._former_name()
        named = f', and project "{former}", which is how this folder is called, has some' if former else ""
        return [
            f"Nothing can be seen from {self.seat.scope}, but this memory holds {units:,} units{named}. {_HOW_NAMED},"
            f' put the old name into mnemarch.toml: project = "{former or "NAME"}".'
        ]

    @property
    def is_absent(self) -> bool:
        """Whether there is no memory here yet."""
        return self._memory is None and self.places.store is None and self._absent() is not None

    def open(self) -> None:
        """Open the memory now, for the calls that follow."""
        self._memory = self.memory

    def again(self, given: dict[str, Any], session: str | None, task: str | None) -> Call:
        """A further question to the same memory, of this conversation and task where nothing else was said."""
        from types import SimpleNamespace

        places = vars(self.places) | {
            "session": self._setting("session") or session,
            "task": self._setting("task") or task,
        }
        other = Call(
            SimpleNamespace(**given), given, places=SimpleNamespace(**places), begins_memory=self.begins_memory
        )
        other._home, other._memory, other._actor = self.home, self._memory, self.actor
        return other

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()

    def _setting(self, name: str) -> str | None:
        """What the command line says, else the environment; a variable that is set to nothing is not set."""
        typed: str | None = getattr(self.places, name)
        return typed if typed is not None else os.environ.get(f"MNEMARCH_{name.upper()}") or None

    @property
    def store(self) -> str | None:
        return self._setting("store")

    def _folder_here(self) -> str:
        root = self.places.root
        if root is not None:
            if not os.path.isdir(root):
                raise InvalidInput(f"--root {root!r} is no folder.", hint="Give the root of a working tree.")
            return str(root)
        try:
            return os.getcwd()
        except FileNotFoundError:
            raise InvalidInput("The current folder no longer exists.", hint="Change to another folder.") from None

    def _absent(self) -> NotFound | None:
        """That there is no memory, if so: what only reads makes none."""
        if self.store is not None and not is_folder(self.store):
            return missing_files(self.store, os.getcwd())
        try:
            os.stat(os.path.join(self.home.folder, FOLDER, "memory.db"))
        except FileNotFoundError:
            config = load(self.home.folder)
            if config.store.url:
                return missing_files(config.store.url, self.home.folder)
            waits = any(setting.startswith("store.url ") for setting in config.ignored)
            hint = f"{SETTINGS} names one; accept it with mnemarch trust." if waits else MAKE
            return NotFound(f"There is no memory in {self.home.folder}.", hint=hint)
        except OSError:
            pass  # It is there, or something else is: opening says what.
        return None

    def _former_name(self) -> str:
        """The folder's name, if there is knowledge under it: what a project was called before it had a remote."""
        name, seat = os.path.basename(self.home.folder), self.seat
        if not name.strip() or name == seat.scope.project:
            return ""
        there = self.memory.seat(seat.actor, replace(seat.scope, project=name, task=None))
        return name if any(unit.scope.project == name for unit in there.units(limit=100)) else ""


def noted(config: Config) -> Config:
    """The same settings; what of the repository's was left out of them is said on stderr."""
    if config.ignored:
        names = [setting.partition(" = ")[0] for setting in config.ignored]
        others = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
        print(
            f"note: {SETTINGS} asks for {', '.join(names[:_NAMED_MAX])}{others}, which is ignored until you accept it:"
            " mnemarch trust --show, then mnemarch trust",
            file=sys.stderr,
        )
    return config


def at_terminal(stream: object) -> bool:
    """Whether a person is at this end; a stream that was closed has nobody."""
    try:
        return stream is not None and bool(stream.isatty())  # type: ignore[attr-defined]
    except ValueError:
        return False


# The command of a verb


def exit_code_of(result: Any) -> int:
    """What a result means to a shell; of several the worst."""
    if isinstance(result, list | tuple):
        return max(map(exit_code_of, result), default=DONE)
    code = _EXIT_CODES.get(type(result).__name__)
    return DONE if code is None else code(result)


def command_for(verb: Verb) -> Command:
    """The command of a verb."""
    takes = tuple(parameter for parameter in verb.takes if parameter.offered and parameter.type.read is not None)

    def run(call: Call) -> Answer:
        if verb.name not in _SPECIAL:
            return answered(verb, call)
        from mnemarch.interfaces.by_hand import RUNS

        return RUNS[verb.name](verb, call)

    if verb.name in _SPECIAL:
        from mnemarch.interfaces.by_hand import MORE_OPTIONS

        takes += MORE_OPTIONS.get(verb.name, ())
    begins, reads = verb.name in _BEGIN_MEMORY, verb.profile == "read" and verb.name not in _FOR_PEOPLE
    return Command(*help_of(verb.name), run, takes, begins_memory=begins, only_reads=reads or verb.name in _LOOKS_ON)


def bound(verb: Verb, place: Any, given: Mapping[str, Any]) -> Callable[..., Any]:
    """The verb on the memory or the seat of a place, with those of its parameters that were given."""
    owner, _, name = verb.name.partition(".")
    mine = {parameter.name: given[parameter.name] for parameter in verb.takes if parameter.name in given}
    mine |= {parameter.name: place.seat for parameter in verb.takes if parameter.type is SEAT}
    target = place.memory if owner == "memory" else place.seat if owner == "seat" else getattr(place.seat, owner)
    return lambda **more: getattr(target, name)(**mine, **more)


def performed(verb: Verb, call: Call) -> Any:
    """The verb, done with what was typed."""
    act = bound(verb, call, call.given)
    if all(parameter.type is not PROGRESS for parameter in verb.takes):
        return act()
    from mnemarch.interfaces.show import Counter

    with Counter(*_COUNTED.get(verb.name, (f"{verb.name.partition('.')[2]} goes on", "done"))) as progress:
        return act(progress=progress)


def answered(verb: Verb, call: Call) -> Answer:
    """The verb's answer."""
    nothing_here = call.answer_from_nothing() if verb.name in _ASKED_BY_HOOKS else ""
    with _only_the_answer_on_stdout(call):
        result = performed(verb, call)
    if verb.gives in {"Found", "Pack"}:
        result = _with_notes(result, call, nothing_here)

    def aside() -> str:
        return text_of(f"about {verb.gives}", result, call) if verb.gives in {"Found", "Pack"} else nothing_here

    return Answer(result, lambda: text_of(verb.name, result, call, verb.gives), exit_code_of(result), aside)


def _only_the_answer_on_stdout(call: Call) -> AbstractContextManager[object]:
    """With --json, what a verb shows while it works (the output of tests) goes to stderr."""
    from contextlib import nullcontext, redirect_stdout

    return redirect_stdout(sys.stderr) if call.places.json else nullcontext()


def _with_notes(result: Any, call: Call, nothing_here: str) -> Any:
    """Where nothing was found, say whether there is no memory, or one of other projects only."""
    if result.items or result.withheld or result.binding:
        return result
    return replace(result, notes=(*result.notes, *([nothing_here] if nothing_here else call.empty_scope_hint())))


def text_of(name: str, result: Any, call: Call, gives: str = "") -> str:
    """How a result looks in a terminal: by its verb, else by its type, else field by field."""
    from importlib import import_module

    owner = name.partition(".")[0]
    module = _WORDS.get(owner) or _WORDS.get(gives) or ("look" if name in _LOOKS else "text")
    texts: Mapping[str, Callable[[Any, Call], str]] = import_module(f"mnemarch.interfaces.{module}").TEXTS
    drawn = texts.get(name) or texts.get(gives)
    if drawn is not None:
        return drawn(result, call)
    from mnemarch.interfaces.show import fields
    from mnemarch.verbs.wire import to_json

    form = to_json(result)
    return fields(form.items() if isinstance(form, dict) else [(name, form)])
