"""Witness. Takes: a command that tests, a report that a runner wrote, or what it printed. Gives: a run of tests, with
the outcome of each. Never: reads or writes the memory, or runs a command that it doesn't know as one that tests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from mnemarch.model.value import Frozen, replace
from mnemarch.text.cache import pattern
from mnemarch.text.words import entries, grouped, listed

_WHOLE_RUNS = entries("runners", "whole runs")
_WRAPPERS = grouped("runners", "wrappers")
# Options with which no runner runs tests.
_NO_RUN = frozenset(listed("runners", "no run"))
_VERSION = "0123456789."
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
# Characters that have a meaning for a shell.
_SHELL_MARKS = frozenset("'\"\\();<>|&")
# Options of pytest that leave no test out and take no separate value.
_HARMLESS_OPTION = (
    r"-[qvsxl]+|-r\w+|--(?:tb|color|durations|maxfail|verbosity|capture)=\S+|--(?:quiet|verbose|no-header)"
)


# Which commands run tests, and by which runner: a table, the project's own commands, and a little shell


class TestCommand(Frozen):
    """A command that runs tests.

    `words` are the runner's own words. `folder` is where a `cd` before it leads, or an option such as `make -C`.
    `named` is its name in the configuration. `decides` says whether its exit code tells how the tests went, unlike
    that of `pytest || true`.
    """

    __test__ = False

    runner: str
    words: tuple[str, ...]
    folder: str = ""
    named: str = ""
    decides: bool = True


def runner_of(command: str | Sequence[str], configured: Sequence[str] = ()) -> TestCommand | None:
    """The test command in `command`, which is one line for a shell or a list of words. None if there is none.

    `configured` are the first words of commands that the project counts as tests.
    """
    words = command if isinstance(command, str) else _script_in(command)
    if not isinstance(words, str):
        return _recognised(list(words), configured)
    steps, folder = list(_steps(words)), ""
    for step, _ in steps:
        if step[:1] == ["cd"] and len(step) == 2:
            folder = os.path.join(folder, step[1])
        recognised = _recognised(step, configured)
        if recognised is not None:
            decides = all(operator in {"&&", ""} for _, operator in steps)
            folder = os.path.normpath(os.path.join(folder, recognised.folder))
            return replace(recognised, folder=folder, decides=decides)
    return None


def selected(test_command: TestCommand, names: Iterable[str], folder: str, root: str) -> list[str]:
    """The tests among `names` that this pytest command runs in this folder. Empty if an option may leave some out."""
    words = test_command.words[1:]
    options = [word for word in words if word[:1] == "-"]
    if test_command.runner != "pytest" or not all(map(pattern(_HARMLESS_OPTION).fullmatch, options)):
        return []
    named = [word for word in words if word[:1] != "-"] or ["."]
    places = [os.path.normpath(os.path.join(folder, word)) for word in named]
    return [name for name in names if _is_selected(os.path.join(root, name), places)]


def _is_selected(test: str, places: Sequence[str]) -> bool:
    """Whether a test is below one of these places, and the file in its name defines it.

    A name without a function stands for a file that could not be loaded.
    """
    path, _, inside = test.partition("::")
    function = inside.rpartition("::")[2].partition("[")[0]
    if not any(test == place or test.startswith((f"{place}/", f"{place}::")) for place in places):
        return False
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return not inside or f"def {function}(" in file.read()
    except OSError:
        return False


def _script_in(words: Sequence[str]) -> str | Sequence[str]:
    """The script that a shell is started with; the words themselves if this starts no shell."""
    if len(words) == 3 and os.path.basename(words[0]) in _SHELLS and pattern(r"-[a-z]*c").fullmatch(words[1]):
        return words[2]
    return words


def _tokens(script: str) -> list[str]:
    if script.isascii() and not set(script) & _SHELL_MARKS:  # True of most commands, so `shlex` is rarely loaded.
        return script.split()
    from shlex import shlex

    lexer = shlex(script, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


def _steps(script: str) -> Iterator[tuple[list[str], str]]:
    """The simple commands of a script, each with the operator after it. Redirections are left out."""
    try:
        tokens = _tokens(script.strip().replace("\n", " ; "))
    except ValueError:
        return
    step: list[str] = []
    skipped = False
    for token in tokens:
        if skipped:
            skipped = False
        elif set(token) <= set("<>&") and set(token) & set("<>"):
            skipped = True
            if step and step[-1].isdigit():
                step.pop()
        elif set(token) <= set("();|&"):
            yield step, token
            step = []
        else:
            step.append(token)
    yield step, ""


def _recognised(words: list[str], configured: Sequence[str]) -> TestCommand | None:
    for named in configured:
        own = named.split()
        if own and words[: len(own)] == own:
            recognised = _recognised(words, ())
            return TestCommand("" if recognised is None else recognised.runner, tuple(words), named=named)
    own = _without_wrappers(words)
    if not own or not _NO_RUN.isdisjoint(own):
        return None
    line = " ".join([os.path.basename(own[0]), *("_".join(word.split()) for word in own[1:])])
    program, _, _ = line.partition(" ")
    for row in entries("runners", "runners"):
        runner, _, call = row.partition(":")
        programs, _, rest = call.partition(" => ")
        if program in programs.split():
            match = pattern(rf" {rest}(?= |$)" if rest else "").match(line, len(program))
            if match is not None:
                return TestCommand(runner, tuple(own), folder=match.groupdict().get("folder") or "")
    whole = next((name for name in _WHOLE_RUNS if f"{line} ".startswith(f"{name} ")), "")
    return TestCommand("", tuple(own), named=whole) if whole else None


def _without_wrappers(words: list[str]) -> list[str]:
    """The command without its wrappers: `uv run --extra dev python -m pytest -q` is `pytest -q`."""
    while words:
        variable, equals, _ = words[0].partition("=")
        if equals and variable.replace("_", "a").isalnum():
            words = words[1:]
            continue
        program = os.path.basename(words[0])
        if program.rstrip(_VERSION) in {"python", "pypy"}:
            program = "python"
        wrapper = next((name for name in (" ".join([program, *words[1:2]]), program) if name in _WRAPPERS), None)
        inner = [] if wrapper is None else words[len(wrapper.split()) :]
        valued = _WRAPPERS.get(wrapper or "", ())
        while inner and inner[0] != "-m" and (inner[0][:1] == "-" or _is_amount(inner[0])):
            inner = inner[2:] if inner[0] in valued else inner[1:]
        # `yarn` and `pnpm` may run a script of the project instead of a program.
        is_script = wrapper in {"pnpm", "yarn"} and (not inner or inner[0].partition(":")[0] in {"run", "test", "t"})
        if wrapper is None or is_script:
            return words
        words = inner[1:] if inner[:1] == ["-m"] else inner
    return words


def _is_amount(word: str) -> bool:
    """Whether this is a number, or a time such as `30s`."""
    digits = word[:-1] if word.endswith(("s", "m", "h", "d")) else word
    return bool(digits) and not digits.strip(_VERSION)
