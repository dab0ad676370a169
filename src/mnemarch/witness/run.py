"""Runs a test command, shows its output as it comes, and makes its runner report each test."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import TextIO

from mnemarch.errors import Hint, InvalidInput
from mnemarch.model.testrun import TestRun
from mnemarch.witness import TestCommand, output, reports, runner_of

Sink = Callable[[bytes], None]

_CHUNK_BYTES = 65_536
_PRINTED_BYTES_MAX = 8 << 20
# How often to check for the end: a process that the tests left behind may keep the pipe open.
_POLL_S = 0.25
# After an interrupt, a runner has this long to print its results.
_FAREWELL_S = 10.0
_MODULE = "mnemarch_witness"
# The recorder is an installed plugin and not an option: a command with its own PYTHONPATH still runs, unrecorded.
_PLUGIN = {
    "METADATA": f"Metadata-Version: 2.1\nName: {_MODULE}\nVersion: 1\n",
    "entry_points.txt": f"[pytest11]\n{_MODULE} = {_MODULE}\n",
}
# Options that make a runner also write a report. They are not used if the command asks for its own report.
_REPORT_OPTIONS = {
    "jest": ("--json", "--outputFile={folder}/report.json"),
    "vitest": ("--reporter=default", "--reporter=json", "--outputFile.json={folder}/report.json"),
}
_OWN_REPORT = ("--json", "-json", "--reporter", "--outputFile")
# Only runners read these. FORCE_COLOR would reach the programs under test too, and change what they print.
_COLOURS = {"PY_COLORS": "1", "CARGO_TERM_COLOR": "always"}
_SCRIPT_RUNNERS = frozenset({"npm", "pnpm", "yarn"})


def run_tests(
    command: Sequence[str],
    *,
    root: str | None = None,
    cwd: str | None = None,
    configured: Sequence[str] = (),
    streams: tuple[TextIO, TextIO] | None = None,
) -> TestRun:
    """Run a test command, and show what it prints on `streams`: standard output and error by default.

    It runs in `cwd`; by default in the current folder if that is below `root`, else in `root`. Names of tests are
    relative to `root`. `configured` are commands that the project counts as tests.
    """
    test_command, line = runner_of(command, configured), " ".join(command)
    if test_command is None or not test_command.decides:
        why = (
            "is not a test command that Mnemarch knows" if test_command is None else "can succeed while its tests fail"
        )
        raise InvalidInput(f"`{line}` {why}, so it was not run.", hint=Hint("test command"))
    here = os.getcwd()
    top = root or cwd or here
    cwd = cwd or (top if reports.prefix_of(here, top).startswith("../") else here)
    base = os.path.join(cwd, test_command.folder)
    folder = tempfile.mkdtemp(prefix="mnemarch-")
    try:
        started, began = time.time() - 1, time.monotonic()  # A file system's clock may be coarser.
        exit_code, printed = _run(command, test_command, cwd, folder, streams or (sys.stdout, sys.stderr))
        duration_ms = int((time.monotonic() - began) * 1000)
        text = output.plain(printed.decode(errors="replace"))
        runner, results = reports.written_to(folder, top)
        results = results or reports.left_below(test_command.runner, base, top, started)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if not results:
        named, results = output.results_in(test_command, text, exit_code, reports.prefix_of(base, top))
        runner = runner or named
    return TestRun(
        runner=test_command.runner or runner,
        command=line,
        results=tuple(results),
        exit_code=exit_code,
        duration_ms=duration_ms,
        witnessed=True,
        output=output.tail(text),
    )


def _run(
    command: Sequence[str], test_command: TestCommand, cwd: str, folder: str, streams: tuple[TextIO, TextIO]
) -> tuple[int, bytes]:
    """The exit code of the command, and the end of what it printed."""
    argv, printed = _with_report(command, test_command, os.path.join(cwd, test_command.folder), folder), bytearray()
    is_json = test_command.runner == "go" and argv != list(command)
    translated = GoText(os.path.join(folder, "report.json")).text if is_json else None
    sinks = [_sink(streams[0], printed, translated), _sink(streams[1], printed)]
    try:
        process = subprocess.Popen(  # noqa: S603 - the caller's own test command
            argv,
            cwd=cwd,
            env=_environment(folder, has_colours=all(stream.isatty() for stream in streams)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,
        )
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InvalidInput(f"{command[0]!r} can't be started: {why}.", hint=Hint("test command")) from None
    with process:
        pipes = filter(None, (process.stdout, process.stderr))
        _watch(process, {pipe.fileno(): sink for pipe, sink in zip(pipes, sinks, strict=True)})
    return process.returncode, bytes(printed)


def _with_report(command: Sequence[str], test_command: TestCommand, base: str, folder: str) -> list[str]:
    """The command with options for a report. It stays as it is if it is inside a script or asks for its own report."""
    words, own = list(command), list(test_command.words)
    at, inner = len(words) - len(own), _script_of(own, base) or test_command
    if words[at:] != own or any(word.startswith(_OWN_REPORT) for word in (*own, *inner.words)):
        return words
    if test_command.runner == "go":
        at += own.index("test") + 1
        return [*words[:at], "-json", *words[at:]]
    if test_command.runner == "unittest" and words[at - 1 : at + 1] == ["-m", "unittest"]:
        return [*words[:at], _MODULE, *own[1:]]
    options = [option.format(folder=folder) for option in _REPORT_OPTIONS.get(inner.runner, ())]
    separator = ["--"] if options and own[0] == "npm" and "--" not in own else []
    return [*words, *separator, *options]


def _script_of(words: Sequence[str], base: str) -> TestCommand | None:
    """The test command behind `npm test`, if arguments of `npm test` reach the runner."""
    names = (word for word in words[1:] if word.partition(":")[0] in {"t", "test"})
    name = next(names, "") if words[0] in _SCRIPT_RUNNERS else ""
    try:
        with open(os.path.join(base, "package.json"), encoding="utf-8") as file:
            script = json.load(file)["scripts"]["test" if name == "t" else name]
        test_command = runner_of(script)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    is_last = test_command is not None and script.split()[-len(test_command.words) :] == list(test_command.words)
    return test_command if is_last else None


def place_recorder(folder: str) -> None:
    """Put the recorder into a folder. It works for a Python that looks for modules there."""
    about = os.path.join(folder, f"{_MODULE}-1.dist-info")
    os.makedirs(about, exist_ok=True)
    for name, text in _PLUGIN.items():
        with open(os.path.join(about, name), "w", encoding="utf-8") as file:
            file.write(text)
    shutil.copyfile(os.path.join(os.path.dirname(__file__), "recorder.py"), os.path.join(folder, f"{_MODULE}.py"))


def _environment(folder: str, *, has_colours: bool) -> dict[str, str]:
    """This process's environment, with the recorder on PYTHONPATH, so that it works through make, tox or a script.

    If the output is a terminal, variables ask for colours, since a runner prints none into a pipe.
    """
    place_recorder(folder)
    paths = [folder, *filter(None, [os.environ.get("PYTHONPATH")])]
    colours = _COLOURS if has_colours and "NO_COLOR" not in os.environ else {}
    environment = {**colours, **os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    if "PYTEST_DISABLE_PLUGIN_AUTOLOAD" in environment:
        environment["PYTEST_PLUGINS"] = ",".join(filter(None, [environment.get("PYTEST_PLUGINS"), _MODULE]))
    return environment


def _sink(stream: TextIO, printed: bytearray, translated: Callable[[bytes], bytes] | None = None) -> Sink:
    """A function that keeps each chunk and shows it at once. A closed output (`| head`) does not end the tests."""
    binary, decoder, is_read = getattr(stream, "buffer", None), codecs.getincrementaldecoder("utf-8")("replace"), True
    stream.flush()

    def take(chunk: bytes) -> None:
        nonlocal is_read
        shown = chunk if translated is None else translated(chunk)
        printed.extend(shown)
        if len(printed) > _PRINTED_BYTES_MAX:
            del printed[: _PRINTED_BYTES_MAX // 2]
        if not is_read:
            return
        try:
            if binary is not None:
                binary.write(shown)
            else:
                stream.write(decoder.decode(shown))
            stream.flush()
        except BrokenPipeError:
            is_read = False

    return take


def _watch(process: subprocess.Popen[bytes], sinks: dict[int, Sink]) -> None:
    """Pass on the output of the process until it ends. If we are stopped, stop it and all processes that it started."""
    try:
        with _stopped_by_signals():
            _pump(process, sinks)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        with contextlib.suppress(KeyboardInterrupt):
            _pump(process, sinks, time.monotonic() + _FAREWELL_S)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def _pump(process: subprocess.Popen[bytes], sinks: dict[int, Sink], deadline: float | None = None) -> None:
    with selectors.DefaultSelector() as selector:
        for reading in sinks:
            selector.register(reading, selectors.EVENT_READ)
        while selector.get_map() and (deadline is None or time.monotonic() < deadline):
            ready = selector.select(_POLL_S)
            if not ready and process.poll() is not None:
                break
            for key, _ in ready:
                chunk = os.read(key.fd, _CHUNK_BYTES)
                if chunk:
                    sinks[key.fd](chunk)
                else:
                    selector.unregister(key.fd)
    if deadline is None:
        process.wait()


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Turn signals that end this process into `SystemExit`. The tests' own process group doesn't get these signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class GoText:
    """Writes the events of `go test -json` to a report, and returns their text."""

    def __init__(self, report: str) -> None:
        self._report = report
        self._begun = b""

    def text(self, chunk: bytes) -> bytes:
        *lines, self._begun = (self._begun + chunk).split(b"\n")
        with open(self._report, "ab") as file:
            file.writelines(line + b"\n" for line in lines)
        return "".join(map(_shown, lines)).encode()


def _shown(line: bytes) -> str:
    """The text of one event, without lines about a test's progress. A line that is no event stays as it is."""
    try:
        printed = str(json.loads(line).get("Output", ""))
    except (ValueError, AttributeError, RecursionError):
        return line.decode(errors="replace") + "\n"
    return "" if printed.startswith("=== ") else printed
