"""A program that is run to its end: what it prints, and None where it fails or takes too long."""

from __future__ import annotations

import os
import sys
import time

import pytest

from mnemarch.code.git import output_of

ENVIRONMENT = dict(os.environ)
ECHO = "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read())"


def run(code: str, stdin: bytes = b"", wait_s_max: float = 60.0) -> bytes | None:
    return output_of([sys.executable, "-c", code], stdin, ENVIRONMENT, wait_s_max)


@pytest.mark.parametrize("size", [0, 1, 65_536, 3_000_000])
def test_any_size_goes_in_and_comes_out(size):
    assert run(ECHO, b"x" * size) == b"x" * size


def test_a_program_that_reads_before_it_prints_and_one_that_prints_before_it_reads_both_end():
    first_prints = "import sys; sys.stdout.buffer.write(b'y' * 300_000); sys.stdout.flush(); sys.stdin.buffer.read()"
    assert run(first_prints, b"x" * 300_000) == b"y" * 300_000


def test_a_program_that_reads_nothing_is_no_failure():
    assert run("print('done')", b"x" * 3_000_000) == b"done\n"


def test_a_program_that_fails_printed_nothing():
    assert run("print('half'); raise SystemExit(3)") is None


def test_what_a_program_says_of_its_errors_is_not_part_of_what_it_prints(capfd):
    assert run("import sys; print('told', file=sys.stderr); print('printed')") == b"printed\n"
    assert capfd.readouterr().err == ""


def test_a_program_that_takes_too_long_is_ended(tmp_path):
    trace = tmp_path / "pid"
    code = f"import os, time; open({str(trace)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    deadline = time.monotonic() + 60
    while not (trace.exists() and trace.read_text()):  # A busy machine may start it too late.
        assert run(code, wait_s_max=2.0) is None
        assert time.monotonic() < deadline
    with pytest.raises(ProcessLookupError):
        os.kill(int(trace.read_text()), 0)


def test_a_program_that_is_not_there_is_an_error_and_leaves_no_handle_open():
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    with pytest.raises(OSError):
        output_of(["mnemarch-no-such-program"], b"", ENVIRONMENT, 5.0)
    with pytest.raises(ValueError):
        output_of(["git", "a\0b"], b"", ENVIRONMENT, 5.0)
    assert run("print(1)") == b"1\n"
    assert (len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0) == before


def test_a_program_gets_its_streams_where_the_caller_has_closed_its_own():
    code = (
        "import os\n"
        "os.close(0); os.close(1)\n"
        "from mnemarch.code.git import output_of\n"
        f"printed = output_of([{sys.executable!r}, '-c', {ECHO!r}], b'in and out', dict(os.environ), 60.0)\n"
        "os._exit(0 if printed == b'in and out' else 1)\n"
    )
    assert run(code) is not None
