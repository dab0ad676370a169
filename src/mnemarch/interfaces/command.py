"""A command, its answer, the commands of verbs, and a call, which finds the memory, the seat and the actor (R4).

Options decide the actor and the place, then MNEMARCH_* variables. Without them, the place is the repository around the
current folder, and the actor is the coding agent or the person that typed the command.
"""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext, redirect_stdout
from functools import cached_property

from mnemarch import user
from mnemarch.checkout import FILE_SCHEME, SETTINGS, file_folder, load
from mnemarch.code.home import FOLDER, Home, home_of, repository_around
from mnemarch.errors import InvalidInput, NotAllowed, NotFound
from mnemarch.lazy import loaded
from mnemarch.memory import Memory, worktree_in
from mnemarch.model.caller import Actor, ActorKind, Scope
from mnemarch.model.value import Frozen, replace
from mnemarch.policy.admission import checked_name
from mnemarch.policy.permissions import require_outsider
from mnemarch.verbs.types import DURATION, FLAG, PROGRESS, SEAT, Parameter, Verb
from mnemarch.wiring import current_folder
from mnemarch.wiring import open as open_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from mnemarch.config import Config
    from mnemarch.seat import Seat

_NO_CI = ("", "0", "false")
DONE, REFUSED, WRONG_USE, STORE_TROUBLE, BUG, INTERRUPTED = 0, 1, 2, 3, 70, 130
# The doctor's own unit, in a scope of its own, does not count as content.
_UNITS_OF_DOCTOR = 1
_YES = frozenset({"y", "yes", "ok", "예", "네"})
_NAMED_MAX = 3
_HOW_TO_MAKE = "mnemarch init creates one, and so does the first mnemarch log or remember."
_HOW_NAMED = "A project is named after its git remote, or else after its folder. If that changed"
# Verbs that create a missing memory. Other verbs report that there is none.
_BEGIN_MEMORY = {
    *("seat.log", "seat.log_many", "seat.remember", "seat.remember_many", "seat.verify", "seat.fail"),
    *("seat.mark_stuck", "seat.clear_stuck", "decisions.add_evidence", "decisions.add_policy", "memory.import_"),
    *("seat.import_claims", "seat.ingest", "seat.ingest_many", "seat.ingest_file"),
    *("core.core_memory_append", "core.call"),
}
# Verbs that hooks call in every repository. Without a memory, they are answered as from an empty one.
_ASKED_BY_HOOKS = {"seat.recall", "seat.context", "seat.validate_approach", "seat.failed_approaches", "core.compiled"}
# A reading verb that still needs a confirmed actor; and a verb that only reads despite its profile.
_FOR_PEOPLE, _LOOKS_ON = {"seat.inbox"}, {"memory.doctor"}
# The module with the text for a verb, by the verb's owner, name or return annotation. The default is `text`.
_WORDS = {"decisions": "decide", "core": "work_text", "episodes": "work_text", "rules": "rules", "memory": "operate"}
_WORDS |= dict.fromkeys(("list[Event]", "Overview", "Explanation | Dispute | Event"), "work_text")
_WORDS |= dict.fromkeys(("Promotion", "ApproachValidation", "LoopVerdict", "Ingested", "list[Ingested]"), "work_text")
_WORDS |= dict.fromkeys(("list[FailedApproach]", "seat.mark_stuck", "seat.clear_stuck"), "work_text")
_WORDS |= dict.fromkeys(("Erased", "Undone", "Reflected", "ImportedClaims"), "operate")
_EXIT_CODES: dict[str, Callable[[Any], int]] = {
    "Refused": lambda _: REFUSED,
    "ApproachValidation": lambda validation: DONE if validation.valid else REFUSED,
    "LoopVerdict": lambda verdict: REFUSED if verdict.type == "BLOCK" else DONE,
    "Promotion": lambda judged: REFUSED if judged.run and not judged.run.passed else exit_code_of(judged.loop),
    "Rebuild": lambda rebuild: DONE if rebuild.same else STORE_TROUBLE,
    **dict.fromkeys(
        ("LogCheck", "ReceiptCheck", "Finding", "Maintained"), lambda check: DONE if check.ok else STORE_TROUBLE
    ),
}
_MORE_OPTIONS = {
    "seat.events": (Parameter("follow", FLAG, "show new entries as they come, until Ctrl-C", False),),
    **dict.fromkeys(
        ("seat.erase", "seat.undo"), (Parameter("yes", FLAG, "don't ask; needed without a terminal", False),)
    ),
    "memory.maintain": (Parameter("every", DURATION, "repeat at this interval (6h, 30m, 1d), until Ctrl-C", None),),
}


class Answer(Frozen):
    """The result of a command: `data` for programs, `text` for people. `text` is called only if a person reads it.

    `aside` is a remark about the answer. It goes to stderr, so that it reaches no pipe and no prompt.
    """

    data: Any
    text: Callable[[], str]
    exit_code: int = DONE
    aside: Callable[[], str] | None = None
    is_printed: bool = False


class Command(Frozen):
    """One command: its function and its parameters. `help.txt` has its description and examples.

    A command that `begins_memory` creates a memory if there is none. One that `only_reads` never asks for a name.
    """

    run: Callable[[Call], Answer]
    takes: tuple[Parameter, ...] = ()
    begins_memory: bool = False
    only_reads: bool = False
    description: str = ""
    examples: tuple[str, ...] = ()


class Call:
    """One command as it was typed. It opens its memory and its seat at their first use.

    `options` has all its parameters, `arguments` those that were typed. `places` has the options for the actor and
    the place, and whether to answer in JSON.
    """

    def __init__(
        self,
        options: Any,
        arguments: dict[str, Any],
        *,
        places: Any,
        begins_memory: bool = False,
        only_reads: bool = False,
    ) -> None:
        self.options = options
        self.arguments = arguments
        self.places = places
        self.begins_memory = begins_memory
        self._only_reads = only_reads
        self._memory: Memory | None = None

    @cached_property
    def home(self) -> Home:
        """The repository around --root or the current folder; without a repository, the folder of --store."""
        folder = os.path.abspath(self.store) if self.store is not None and _is_folder(self.store) else ""
        home = home_of(self._folder_here(), memory_in=os.path.realpath(folder) if folder else "")
        is_named = not folder or self.places.root or repository_around(home.root)
        home = home if is_named else home_of(folder)
        return replace(home, folder=folder) if folder else home

    @property
    def url(self) -> str:
        """The memory's address, or "" if the memory is in .mnemarch/ of its folder."""
        store = self.store
        return load(self.home.folder).store.url if store is None or _is_folder(store) else store

    @property
    def address(self) -> str:
        """The folder of the files, or the server's address without its password; "" for a memory in .mnemarch/."""
        from mnemarch.interfaces.text import without_password

        if self.url.startswith(FILE_SCHEME):
            return file_folder(self.url, self.home.folder if self.store is None else os.getcwd())
        return without_password(self.url)

    @property
    def is_on_server(self) -> bool:
        """Whether the memory is on a server. Hooks then have to ask `mnemarch serve`."""
        return bool(self.url) and not self.url.startswith(FILE_SCHEME)

    @property
    def memory(self) -> Memory:
        if self._memory is None:
            missing = None if self.begins_memory else self._absent()
            if missing is not None:
                raise missing
            # The folder is passed on: finding it again would ask git twice in a linked worktree.
            self._memory = open_memory(self.store or self.home.folder)
            noted(self._memory.config)
        return self._memory

    @cached_property
    def actor(self) -> Actor:
        """The actor of --actor, else the coding agent that started this process, else the person at the terminal."""
        return _actor_of(self._setting("actor"), may_ask=not self._only_reads)

    @cached_property
    def seat(self) -> Seat:
        # The actor is checked first, so that no memory is created for somebody who may not act.
        actor, home, memory = self.actor, self.home, self.memory
        segments: dict[str, Any] = {"project": memory.config.project or home.project}
        segments["worktree"] = worktree_in(memory, home)
        session = self._setting("session")
        if actor.kind is ActorKind.AGENT and user.host() is not None:
            from mnemarch.code.git import task_branch

            # A coding agent's shell works in the agent's own task, under the name that its hooks use.
            session = session or user.session()
            segments["task"] = task_branch(home.root) or session
        named = {name: self._setting(name) for name in ("org", "project", "worktree", "task")}
        scope = Scope(**segments | {name: segment for name, segment in named.items() if segment is not None})
        return memory.seat(actor, scope, session=session, root=home.root)

    def answer_from_nothing(self) -> str:
        """Open an empty memory that is not stored if there is no memory; returns a remark about that, else "".

        Hooks ask in every repository and must not fail there. If somebody names a missing memory, that is an error.
        """
        missing = self._absent() if self.store is None else None
        if missing is None:
            return ""
        self._memory = open_memory(":memory:", config=noted(load(self.home.folder)))
        return f"{missing.message} {missing.hint}"

    def empty_scope_hint(self) -> list[str]:
        """A note if the memory has units but this seat sees none: the project may have been renamed."""
        if self.seat.units(limit=1):
            return []
        former = self._former_name()
        units = 0 if self.is_on_server else self.memory.stats().units  # On a server the other units belong to others.
        if not former and units <= _UNITS_OF_DOCTOR:
            return []
        held = f'units of project "{former}", the name of this folder' if former else f"{units:,} units"
        return [
            f"Nothing can be seen from {self.seat.scope}, but this memory holds {held}. {_HOW_NAMED},"
            f' put the old name into mnemarch.toml: project = "{former or "NAME"}".'
        ]

    @property
    def is_absent(self) -> bool:
        """Whether there is no memory here yet."""
        return self._memory is None and self.store is None and self._absent() is not None

    def open(self) -> None:
        """Open the memory now, for the calls that follow."""
        self._memory = self.memory

    def again(self, arguments: dict[str, Any], session: str | None, task: str | None) -> Call:
        """Another call on the same memory, by default in this conversation and task."""
        from types import SimpleNamespace

        places = vars(self.places) | {
            "session": self._setting("session") or session,
            "task": self._setting("task") or task,
        }
        other = Call(
            SimpleNamespace(**arguments), arguments, places=SimpleNamespace(**places), begins_memory=self.begins_memory
        )
        other.home, other._memory, other.actor = self.home, self._memory, self.actor
        return other

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()

    def _setting(self, name: str) -> str | None:
        """The option's value, else the variable's. An empty variable counts as absent."""
        typed: str | None = getattr(self.places, name)
        return typed if typed is not None else os.environ.get(f"MNEMARCH_{name.upper()}") or None

    @property
    def store(self) -> str | None:
        return self._setting("store")

    def _folder_here(self) -> str:
        root = self.places.root
        if root is not None:
            if not os.path.isdir(root):
                raise InvalidInput(f"--root {root!r} is not a folder.", hint="Give the root of a working tree.")
            return str(root)
        return current_folder()

    def _absent(self) -> NotFound | None:
        """The error that there is no memory, or None if there is one."""
        if self.store is not None and not _is_folder(self.store):
            return _missing_files(self.store, os.getcwd())
        try:
            os.stat(os.path.join(self.home.folder, FOLDER, "memory.db"))
        except FileNotFoundError:
            config = load(self.home.folder)
            if config.store.url:
                return _missing_files(config.store.url, self.home.folder)
            waits = any(setting.startswith("store.url ") for setting in config.ignored)
            hint = f"{SETTINGS} names one; accept it with mnemarch trust." if waits else _HOW_TO_MAKE
            if self.store is not None:
                hint = f"Check --store, or MNEMARCH_STORE. To make one there: mnemarch init --store {self.store}"
            return NotFound(f"There is no memory in {self.home.folder}.", hint=hint)
        except OSError:
            pass  # The file may exist all the same; opening the memory reports what is wrong.
        return None

    def _former_name(self) -> str:
        """The folder's name if units are stored under it, else "". A project has this name until it has a remote."""
        name, seat = os.path.basename(self.home.folder), self.seat
        if not name.strip() or name == seat.scope.project:
            return ""
        there = self.memory.seat(seat.actor, replace(seat.scope, project=name, task=None))
        return name if any(unit.scope.project == name for unit in there.units(limit=100)) else ""


def _is_folder(store: str) -> bool:
    """Whether --store names a folder with .mnemarch/ in it, and no address."""
    return store != ":memory:" and ":/" not in store and not store.startswith(FILE_SCHEME)


def _missing_files(url: str, base: str) -> NotFound | None:
    """The error that a memory in files has no folder, or None if it has one."""
    folder = file_folder(url, base) if url.startswith(FILE_SCHEME) else ""
    is_missing = folder and not os.path.isdir(folder)
    return NotFound(f"There is no memory in {folder}.", hint=_HOW_TO_MAKE) if is_missing else None


def noted(config: Config) -> Config:
    """The settings, unchanged; warns on stderr about settings of the repository that are ignored."""
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
    """Whether the stream is a terminal; a closed one is not."""
    try:
        return stream is not None and bool(stream.isatty())  # type: ignore[attr-defined]
    except ValueError:
        return False


# The actor


def _actor_of(named: str | None, *, may_ask: bool = True) -> Actor:
    """The actor. Raises if this process may not act under that name; a person confirms theirs once (R4)."""
    host = user.host()
    if named is None:
        if host is not None:
            return Actor.agent(host)
        person = _person(may_ask=may_ask) if is_interactive() else None
        return Actor.agent("cli") if person is None else Actor.human(person)
    actor = Actor.parse(named)
    require_outsider(actor)
    if actor.kind is ActorKind.HUMAN:
        _require_person(actor, host)
    elif actor.kind is ActorKind.ORCHESTRATOR and not user.may_orchestrate(actor.id, host):
        from mnemarch.interfaces.text import clean

        whose = "" if host is None else f" for {host}, which started this process"
        line = actor.id if host is None else f"{actor.id} @{host}"
        raise NotAllowed(
            f"{actor} is not named in your own configuration{whose} (rule R4: only a person names orchestrators).",
            rule="R4",
            hint=f"A person adds this line to {user.path_of('orchestrators')}: {clean(line)}",
        )
    return actor


def is_interactive() -> bool:
    return at_terminal(sys.stdin) and at_terminal(sys.stdout)


def _require_person(actor: Actor, host: str | None) -> None:
    if host is not None:
        raise NotAllowed(
            f"{actor} can't act here: {host} started this process (rule R4: agents don't act as people).",
            rule="R4",
            hint="A person must type this in a terminal of their own.",
        )
    confirmed = _person(actor.id) if is_interactive() else user.person()
    if confirmed is None:
        raise NotAllowed(
            f"{actor} is not confirmed (rule R4: a person says once, at a terminal, who they are).",
            rule="R4",
            hint="Type mnemarch init in a terminal.",
        )
    if actor.id != confirmed:
        raise NotAllowed(
            f"{actor} is not the user of this computer, {confirmed} (rule R4: nobody acts as another person).",
            rule="R4",
            hint=f"Leave out --actor. If the name is wrong, correct it in {user.path_of('person')}.",
        )


def _person(proposal: str | None = None, *, may_ask: bool = True) -> str | None:
    """The name of the person who uses this computer, or None if unknown. It is asked for once and stored."""
    name = user.person()
    if name is not None or not may_ask or os.environ.get("CI", "") not in _NO_CI:
        return name
    from mnemarch.interfaces.text import answer_to, clean, quoted

    proposal = proposal or _proposed_name()
    answer = answer_to(f"What is your name? Your word counts as evidence, so Mnemarch asks once. [{clean(proposal)}] ")
    if not answer:
        raise InvalidInput("No name was given.", hint="Answer with a name, or add --actor agent:NAME.")
    # "yes" accepts the name in brackets.
    typed = "" if answer.strip().casefold() in _YES else answer.strip()
    if typed and not user.is_name(typed):
        print(
            f"note: {quoted(typed)} is not a name, so this acts as agent:cli. To give your name: mnemarch init",
            file=sys.stderr,
        )
        return None
    name = checked_name(typed or proposal, "a name")
    if not user.keep_person(name):
        print(f"note: {user.path_of('person')} can't be written, so the next command asks again", file=sys.stderr)
    return name


def _proposed_name() -> str:
    """The user's name in git's global configuration (never the repository's), else their login."""
    from mnemarch.code.git import git

    for setting in ("user.name", "user.email"):
        name = git(os.path.expanduser("~"), ["config", "--global", "--get", setting])
        if name:
            return name
    from getpass import getuser

    try:
        return getuser()
    except (KeyError, OSError):  # In a container only the user's number may be known.
        return f"uid-{os.getuid()}"


# The commands of verbs. Some do more than their verb: they ask, check or reshape the answer


def exit_code_of(result: Any) -> int:
    """The exit code for a result; for several results the highest."""
    if isinstance(result, list | tuple):
        return max(map(exit_code_of, result), default=DONE)
    code = _EXIT_CODES.get(type(result).__name__)
    return DONE if code is None else code(result)


def command_for(verb: Verb) -> Command:
    """The command of a verb."""
    takes = tuple(parameter for parameter in verb.takes if parameter.offered and parameter.type.read is not None)
    takes += _MORE_OPTIONS.get(verb.name, ())

    def run(call: Call) -> Answer:
        return _RUNS.get(verb.name, answered)(verb, call)

    begins, reads = verb.name in _BEGIN_MEMORY, verb.profile == "read" and verb.name not in _FOR_PEOPLE
    return Command(run, takes, begins, reads or verb.name in _LOOKS_ON)


def bound(verb: Verb, place: Any, arguments: Mapping[str, Any]) -> Callable[..., Any]:
    """The verb as a function, bound to the place's memory or seat and to those arguments that it takes."""
    owner, _, name = verb.name.partition(".")
    mine = {parameter.name: arguments[parameter.name] for parameter in verb.takes if parameter.name in arguments}
    mine |= {parameter.name: place.seat for parameter in verb.takes if parameter.type is SEAT}
    target = place.memory if owner == "memory" else place.seat if owner == "seat" else getattr(place.seat, owner)
    return lambda **more: getattr(target, name)(**mine, **more)


def performed(verb: Verb, call: Call) -> Any:
    """Run the verb with the call's arguments, with a progress counter if it takes one."""
    act = bound(verb, call, call.arguments)
    counting = next((parameter.says for parameter in verb.takes if parameter.type is PROGRESS), None)
    if counting is None:
        return act()
    from mnemarch.interfaces.text import Counter

    with Counter(*(counting or "working steps").rsplit(" ", 1)) as progress:
        return act(progress=progress)


def answered(verb: Verb, call: Call) -> Answer:
    """Run the verb and make its answer."""
    nothing_here = call.answer_from_nothing() if verb.name in _ASKED_BY_HOOKS else ""
    # With --json, output during the work (of tests, for example) goes to stderr.
    with redirect_stdout(sys.stderr) if call.places.json else nullcontext():
        result = performed(verb, call)
    is_search = verb.gives in {"Found", "Pack"}
    if is_search and not (result.items or result.withheld or result.binding):
        notes = [nothing_here] if nothing_here else call.empty_scope_hint()
        result = replace(result, notes=(*result.notes, *notes))

    def aside() -> str:
        if is_search:
            return text_of(f"about {verb.gives}", result, call)
        is_empty = isinstance(result, list | tuple) and not result
        return nothing_here or "".join(f"note: {note}" for note in (call.empty_scope_hint() if is_empty else ()))

    return Answer(result, lambda: text_of(verb.name, result, call, verb.gives), exit_code_of(result), aside)


def text_of(name: str, result: Any, call: Call, gives: str = "") -> str:
    """The text of a result for people: by its verb, else by its type, else field by field."""
    if isinstance(result, list | tuple) and not result and call.arguments.get("limit") == 0:
        return "None were asked for."
    module = _WORDS.get(name.partition(".")[0]) or _WORDS.get(gives) or _WORDS.get(name) or "text"
    texts: Mapping[str, Callable[[Any, Call], str]] = loaded(f"mnemarch.interfaces.{module}").TEXTS
    drawn = texts.get(name) or texts.get(gives)
    if drawn is not None:
        return drawn(result, call)
    from mnemarch.interfaces.text import fields
    from mnemarch.verbs.types import to_json

    form = to_json(result)
    return fields(form.items() if isinstance(form, dict) else [(name, form)])


def shaped(verb: Verb, call: Call, data: Any, exit_code: int = 0) -> Answer:
    return Answer(data, lambda: text_of(verb.name, data, call, verb.gives), exit_code)


def _attempts(verb: Verb, call: Call) -> Answer:
    answer = answered(verb, call)
    data = {"stuck": call.seat.loops.stuck_reason(), "failed": answer.data}
    return Answer(data, lambda: text_of(verb.name, data, call, verb.gives), aside=answer.aside)


def _units(verb: Verb, call: Call) -> Answer:
    if call.options.after is not None:
        call.seat.get(call.options.after)  # Raises for an unknown unit, which would give the first page again.
    return answered(verb, call)


def _of(module: str, name: str) -> Callable[[Verb, Call], Answer]:
    """A function of another module in this package, loaded at the call."""
    return lambda verb, call: getattr(loaded(f"mnemarch.interfaces.{module}"), name)(verb, call)


_RUNS = {
    "seat.events": _of("work_text", "read_log"),
    "seat.failed_approaches": _attempts,
    "seat.explain": _of("work_text", "explained"),
    "seat.units": _units,
    "seat.validate": lambda verb, call: shaped(
        verb, call, {"unit_id": call.options.unit_id, "confidence": performed(verb, call)}
    ),
    "seat.erase": _of("operate", "asked"),
    "seat.undo": _of("operate", "asked"),
    "memory.doctor": _of("operate", "doctor"),
    "memory.rebuild": _of("operate", "rebuilt"),
    "memory.reindex": lambda verb, call: shaped(verb, call, {"documents": performed(verb, call)}),
    "memory.export": _of("operate", "exported"),
    "memory.import_": _of("operate", "imported"),
    "seat.import_claims": _of("operate", "imported"),
    "memory.backup": _of("operate", "backed_up"),
    "memory.maintain": _of("operate", "maintained"),
    "decisions.relate": _of("decide", "related"),
    "decisions.unrelate": _of("decide", "related"),
}
