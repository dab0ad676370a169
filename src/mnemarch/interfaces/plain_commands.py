"""Commands that are not verbs: `help`, `init`, `trust`, `demo` and `hook`."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress

from mnemarch import checkout, user
from mnemarch.checkout import Foreign, load
from mnemarch.code.home import FOLDER, repository_around
from mnemarch.errors import InvalidInput, NotAllowed
from mnemarch.interfaces import cli
from mnemarch.interfaces.command import DONE, REFUSED, Answer, Call, Command, is_interactive
from mnemarch.interfaces.text import clean, fields, is_confirmed
from mnemarch.model.caller import Actor
from mnemarch.verbs import SECTIONS
from mnemarch.verbs.types import FLAG, PATH, REQUIRED, WORDS, Parameter, help_of, help_texts
from mnemarch.wiring import open_for_hooks

_WIDTH_MAX = 118
_COLUMN = 26


def _init(call: Call) -> Answer:
    from mnemarch.text.words import counted

    place = call.address or os.path.join(call.home.folder, FOLDER)
    known = bool(call.url) or os.path.exists(os.path.join(place, "memory.db"))
    seat = call.seat
    # On a server, other projects have events too, and only an operator may count them.
    events = None if call.is_on_server else call.memory.stats().events
    if call.is_on_server:
        from mnemarch.interfaces.hooks import prepare

        prepare(call.home.folder)
    notes = call.empty_scope_hint()
    made = {
        "memory": place,
        "new": not known,
        "events": events,
        "org": seat.scope.org,
        "project": seat.scope.project,
        "worktree": seat.scope.worktree,
        "root": call.home.root,
        "actor": seat.actor,
        "notes": notes,
    }

    def text() -> str:
        ignored = "; git ignores it" if not call.url and repository_around(call.home.root) else ""
        summary = {
            "memory": place if events is None else f"{place} ({counted(events, 'event') if known else 'new'}{ignored})",
            "project": seat.scope.project,
            "worktree": seat.scope.worktree or "none: this repository is bare",
            "you": seat.actor,
        }
        named = f" --actor {shlex.quote(str(seat.actor))}" if call.places.actor else ""
        remarks = [f"note: {clean(note)}" for note in notes]
        steps = [f"  {step}" for step in _next_steps(seat.actor, named)]
        return "\n".join([fields(summary.items()), *remarks, "", "next", *steps])

    return Answer(data=made, text=text)


def _next_steps(actor: Actor, named: str) -> list[str]:
    """Example commands for the actor. A person decides and states what holds for the project; agents do the rest.

    `named` is the --actor option as it was typed, or "".
    """
    agent = f"--task T-1{' --actor agent:coder-1' if actor.kind in {'human', 'system'} else named}"
    by_agents = [
        ("note anything", f'mnemarch log thought "..." {agent}'),
        ("tell others", f'mnemarch remember "..." --cite test:NAME {agent}'),
        ("let your tests verify it", f"mnemarch verify {agent} -- pytest"),
    ]
    if actor.kind == "human":
        steps = [
            ("tell everybody", f'mnemarch remember "..."{named}'),
            ("record a decision", f'mnemarch decide "..." --type risk --reason "..." --snapshot "..."{named}'),
            *((f"an agent: {what}", step) for what, step in by_agents),
            ("what waits for you", f"mnemarch inbox{named}"),
        ]
    else:
        steps = by_agents
    steps.append(("in the next task", f'mnemarch recall "..."{named}'))
    return [line for what, step in steps for line in (f"# {what}", step)]


def _trust(call: Call) -> Answer:
    folder = call.home.folder
    if call.options.revoke:
        places = [os.path.join(folder, name) for name in (checkout.SETTINGS, FOLDER)]
        url = call.store or checkout.file_url(folder)
        if url.startswith(checkout.FILE_SCHEME):
            places.append(checkout.file_folder(url, folder if call.store is None else os.getcwd()))
        count = sum(map(_revoked, places))
        return Answer({"revoked": count}, lambda: f"revoked  {count} that you had accepted in {folder}")
    waiting = checkout.waiting(folder, call.store)
    shown = "\n".join(map(_described, waiting)) or f"Nothing in {folder} waits for your yes."
    data = {"waiting": [{"path": one.path, "why": one.why} for one in waiting], "accepted": False}
    if call.options.show or not waiting:
        return Answer(data, lambda: shown)
    _require_user(call.options.yes)
    if not call.options.yes and not is_confirmed(f"{shown}\nAccept it?"):
        return Answer(data, lambda: "Nothing was accepted.", REFUSED)
    for one in waiting:
        user.accept(one.path, one.content)
    lines = [*map(_accepted, waiting), *_left_behind(folder)]
    return Answer(data | {"accepted": True}, lambda: "\n".join(lines))


def _revoked(path: str) -> int:
    """Revoke every acceptance of this path, and the mark of the user's own work there. Returns the number revoked."""
    count = user.revoke(path)
    if count:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.remove(os.path.join(path, checkout.LOCAL, checkout.MAKER))
    return count


def _left_behind(folder: str) -> list[str]:
    """Advice on moving the units of the folder's own memory, if the accepted settings name another memory."""
    place, config = os.path.join(folder, FOLDER), load(folder)
    if not config.store.url or not os.path.exists(os.path.join(place, "memory.db")):
        return []
    with open_for_hooks(folder, config) as before:
        if not before.stats().events:
            return []
    return [
        f"{place} holds what was remembered before, and is no longer searched. To bring it along:",
        f"  mnemarch copy {folder} ../before; mnemarch export ../before.jsonl --store ../before",
        "  mnemarch import ../before.jsonl",
    ]


def _accepted(one: Foreign) -> str:
    is_for_good = one.content == checkout.FILE_SCHEME.encode()
    return f"accepted  {one.path}, {'with everything that is added later' if is_for_good else 'until it changes'}"


def _require_user(is_confirmed: bool) -> None:
    host = user.host()
    if host is not None:
        raise NotAllowed(
            f"{host} started this process, and only a person accepts what came with a checkout (rule R4).",
            rule="R4",
            hint="A person must type this in a terminal of their own: mnemarch trust",
        )
    if not is_confirmed and not is_interactive():
        raise InvalidInput("Nobody is at a terminal to confirm it.", hint="To confirm, add --yes.")


def _described(foreign: Foreign) -> str:
    return "\n".join([foreign.path, *(f"  {clean(line)}" for line in foreign.why.splitlines())])


def _demo(call: Call) -> Answer:
    from mnemarch.interfaces.demo import run

    folder = os.path.realpath(call.options.keep) if call.options.keep else None
    proofs, unit_id = run(keep=folder, fast=call.options.fast, aside=call.places.json)
    is_proven = all(proof.ok for proof in proofs)
    return Answer(
        data={"ok": is_proven, "folder": folder, "proofs": proofs},
        text=lambda: _after_demo(folder, unit_id),
        exit_code=DONE if is_proven else REFUSED,
    )


def _after_demo(folder: str | None, unit_id: str) -> str:
    from shutil import which

    # `make demo` runs in a virtual environment that is not on the shell's PATH.
    beside = os.path.relpath(os.path.join(os.path.dirname(sys.executable), "mnemarch"))
    mnemarch = "mnemarch" if which("mnemarch") or not os.path.exists(beside) else shlex.quote(beside)
    there = f" --store {shlex.quote(folder)}" if folder else ""
    steps = ["demo --keep shop-demo", "init", "--help"]
    if folder is not None:
        steps = ["units", f"explain {unit_id}", 'recall "what happens when a payment times out?"']
    return "\n".join(["try next", *(f"  {mnemarch} {step}{there}" for step in steps)])


def _hook(call: Call) -> Answer:
    from mnemarch.interfaces.hooks import run

    run(["--host", call.options.host] if call.options.host else [], is_timed=False)
    return Answer(None, lambda: "", is_printed=True)


# `help` and --help


def sections() -> dict[str, dict[str, str]]:
    """The summary of each command's first word, by section, in the order of the data's path."""
    listed: dict[str, dict[str, str]] = {}
    texts = help_texts()
    for section, verbs in SECTIONS.items():
        names = [*cli.PLAIN_COMMANDS.get(section, {}), *filter(None, map(cli.command_of, verbs))]
        listed[section] = {
            word: texts[f"group {word}"][0] if f"group {word}" in texts else _summary(name)
            for name in names
            if "--" not in name and (word := name.split()[0])
        }
    return listed


def _summary(name: str) -> str:
    """The first sentence of a command's description."""
    says = cli.command_named(name).description
    ends = [at + 1 for end in (". ", "? ") if (at := says.find(end)) >= 0]
    return says[: min(ends, default=len(says))]


def help_for(name: str) -> str:
    """The text of `mnemarch NAME --help`."""
    if f"group {name}" in help_texts():
        return _help_of_group(name)
    command = cli.command_named(name)
    words = [
        f"[{cli.shown_name(word)}]"
        if word.piped or word.default is not REQUIRED
        else cli.shown_name(word) + "..." * word.many
        for word in command.takes
        if cli.is_word(word)
    ]
    lines = [f"usage: mnemarch {' '.join([name, *words])} [options]", "", _wrapped(command.description), ""]
    lines += map(_option, (*command.takes, cli.JSON))
    lines += ["", "who and where (how they are found: mnemarch --help)", *map(_option, cli.places_of(command))]
    forms = [_row(form.removeprefix(f"{name} "), _summary(form)) for form in _forms(name)]
    examples = [f"  {example}" for example in examples_of(name, command)]
    return "\n".join([*lines, *(["", "also", *forms] if forms else []), "", "examples", *examples])


def _help_of_group(word: str) -> str:
    names = [name for name in cli.command_names() if name.startswith(f"{word} ") and "--" not in name]
    rows = [_row(name, _summary(name)) for name in names]
    usage = f"usage: mnemarch {word} [SUBCOMMAND] ...   (default: {names[0].split()[1]})"
    return "\n".join([usage, "", *rows, "", f"Options and examples: mnemarch {names[0]} --help"])


def _option(parameter: Parameter) -> str:
    flags = cli.flags_of(parameter)
    value = "" if parameter.type is FLAG else cli.shown_name(parameter)
    says = [parameter.says] if parameter.says else []
    if cli.is_text(parameter):
        says.append("- or nothing reads standard input" if parameter.piped else "- reads standard input")
    says += ["repeatable"] if parameter.many and flags[:1] not in [[], ["--"]] else []
    return _row(f"{' or '.join(flags)} {value}".strip(), "; ".join(says))


def _row(name: str, says: str) -> str:
    from textwrap import wrap

    first, *others = wrap(says, max(_width() - _COLUMN, 30)) or [""]
    head = f"  {name:<{_COLUMN - 4}}  " if len(name) <= _COLUMN - 4 else f"  {name}\n{'':<{_COLUMN}}"
    return "\n".join([f"{head}{first}".rstrip(), *(f"{'':<{_COLUMN}}{line}" for line in others)])


def _wrapped(text: str) -> str:
    from textwrap import fill

    return fill(text, _width())


def _width() -> int:
    from shutil import get_terminal_size

    return min(get_terminal_size((_WIDTH_MAX, 0)).columns, _WIDTH_MAX)


def overview() -> str:
    """The text of `mnemarch --help`."""
    lines = ["usage: mnemarch [--json] [who and where] COMMAND ...", ""]
    lines += ["A governed memory that coding agents share.", "", "start here"]
    lines += [f"  {step}" for step in help_texts()["first steps"]] + [""]
    for section, names in sections().items():
        lines += [section, *(f"  {name:<16}{says}" for name, says in names.items()), ""]
    lines += ["options, before or after the command", *map(_option, (cli.JSON, *cli.PLACES))]
    lines += [_row("--version", "the version"), _row("COMMAND --help", "what a command takes, with examples"), ""]
    lines += [_wrapped(help_of("who and where")[0]), "", _wrapped(help_of("exit codes")[0])]
    return "\n".join(lines)


def where_it_belongs(name: str, option: str) -> str:
    """A hint for an unknown argument: quote the text, use another form of the command, put a command after `--`."""
    words = [parameter for parameter in cli.command_named(name).takes if cli.is_word(parameter)]
    if option[0] != "-" and words and cli.is_text(words[-1]):
        return f'Put a text of several words in quotes: mnemarch {name} "..."'
    for form in _forms(name):
        if any(option in cli.flags_of(parameter) for parameter in cli.command_named(form).takes):
            return f"{option} goes with: mnemarch {form}"
    if any("--" in cli.flags_of(parameter) for parameter in cli.command_named(name).takes):
        return f"A command goes after --, for example: {examples_of(name, cli.command_named(name))[0]}"
    return f"For example: {examples_of(name, cli.command_named(name))[0]}   (all it takes: mnemarch {name} --help)"


def _forms(name: str) -> list[str]:
    """The full names of a command's other forms, each chosen by an option."""
    return [other for other in cli.command_names() if other.startswith(f"{name} --")]


def examples_of(name: str, command: Command) -> tuple[str, ...]:
    """The written examples, or one made from the required parameters."""
    if command.examples:
        return command.examples
    required = [parameter for parameter in command.takes if parameter.default is REQUIRED]
    samples = [(*cli.flags_of(each), each.type.sample or cli.shown_name(each)) for each in required]
    return (" ".join(["mnemarch", name, *(part for sample in samples for part in sample)]),)


_HOST = Parameter("host", WORDS, "claude-code, codex, copilot, gemini, opencode, cursor or vscode", None)
COMMANDS = {
    "demo": Command(
        _demo,
        (
            Parameter("keep", PATH, "keep the memory in this new folder", None, metavar="DIR"),
            Parameter("fast", FLAG, "no pauses, and fewer log entries", False),
        ),
    ),
    "init": Command(_init, begins_memory=True),
    "trust": Command(
        _trust,
        (
            Parameter("show", FLAG, "only show what you would accept", False),
            Parameter("revoke", FLAG, "forget what you accepted here", False),
            Parameter("yes", FLAG, "don't ask; needed without a terminal", False),
        ),
    ),
    "hook": Command(_hook, (_HOST,)),
}
