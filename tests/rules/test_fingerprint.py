"""Fingerprints of errors: one for one fault, whatever changes from run to run; another for another fault."""

from __future__ import annotations

import random
import re
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.cases import cases
from fixtures.steps import steps
from mnemarch.text import FINGERPRINT_VERSION
from mnemarch.text.faults import LINE_CHARS_MAX
from mnemarch.text.fingerprint import CORE_CHARS_MAX, Fingerprint, fingerprint, telling_line

Faults = dict[str, tuple[str, ...]]
FIXTURES = Path(__file__).parents[1] / "fixtures"
# Each fault as two runs show it: other lines, addresses, folders, times, values. No two of a language are the same.

ALL: dict[str, Faults] = {}
for file in sorted((FIXTURES / "faults").glob("*.txt")):
    ALL[file.stem] = {}
    for part in file.read_text(encoding="utf-8").split("#### ")[1:]:
        fault, _, output = part.partition("\n")
        ALL[file.stem][fault] = (*ALL[file.stem].get(fault, ()), output)

LOCALES: Faults = {name: tuple(runs) for name, *runs in cases("fingerprint", "locales")}

LINES: Faults = {name: tuple(runs) for name, *runs in cases("fingerprint", "lines")}

ALL |= {"locales": LOCALES, "lines": LINES}
FAULTS = [pytest.param(runs, id=f"{group}: {name}") for group, faults in ALL.items() for name, runs in faults.items()]


@pytest.mark.parametrize("runs", [fault for fault in FAULTS if len(fault.values[0]) > 1])  # type: ignore[arg-type]
def test_one_fault_has_one_fingerprint(runs: tuple[str, ...]) -> None:
    assert len({fingerprint(run) for run in runs}) == 1, [fingerprint(run).core for run in runs]


def test_no_two_faults_have_the_same_fingerprint() -> None:
    known: dict[str, str] = {}
    for group, faults in ALL.items():
        for name, runs in faults.items():
            found = fingerprint(runs[0])
            assert known.setdefault(found.hash, f"{group}: {name}") == f"{group}: {name}", found.core


@pytest.mark.parametrize(("group", "name", "kind"), cases("fingerprint", "the kind is the type of the error"))
def test_the_kind_is_the_type_of_the_error(group: str, name: str, kind: str) -> None:
    assert {fingerprint(run).kind for run in ALL[group][name]} == {kind}


@pytest.mark.parametrize(("group", "name", "core"), cases("fingerprint", "a person can read the core"))
def test_a_person_can_read_the_core(group: str, name: str, core: str) -> None:
    assert fingerprint(ALL[group][name][0]).core == core


@pytest.mark.parametrize("runs", FAULTS)
def test_how_the_output_was_taken_does_not_matter(runs: tuple[str, ...]) -> None:
    plain = runs[0]
    coloured = "\n".join(f"\x1b[1;31m{line}\x1b[0m" if line.strip() else line for line in plain.split("\n"))
    stamped = "\n".join(f"2024-05-06T07:08:09.1234567Z {line}" for line in plain.split("\n"))
    contained = "\n".join(f"web_1  | {line}" for line in plain.split("\n"))
    ways = {
        "colours": coloured,
        "line ends": plain.replace("\n", "\r\n"),
        "trailing space": plain.replace("\n", "   \n"),
        "blank lines around": f"\n\n{plain}\n\n",
        "stamps": stamped,
        "container": contained,
    }
    expected = fingerprint(plain)
    assert {way: fingerprint(text).core for way, text in ways.items()} == dict.fromkeys(ways, expected.core)


def test_a_prompt_and_a_command_above_do_not_matter() -> None:
    assert len(ALL["python"]) >= 10
    for runs in ALL["python"].values():
        assert fingerprint(f"ann@web1:~/shop$ python -m shop\n{runs[0]}") == fingerprint(runs[0])


REAL = {
    file.stem: [part.partition("\n")[::2] for part in file.read_text(encoding="utf-8").split("#### ")[1:]]
    for file in sorted((FIXTURES / "errors").glob("*.txt"))
}


@pytest.mark.parametrize("tool", REAL)
def test_real_output_of_a_tool_has_one_fingerprint_for_each_fault(tool: str) -> None:
    """Every fault was run twice: in another folder, its lines shifted, and later."""
    cores: dict[str, set[str]] = {}
    for fault, output in REAL[tool]:
        cores.setdefault(fault, set()).add(fingerprint(output).core)
    assert all(len(found) == 1 for found in cores.values()), cores
    assert len(set.union(*cores.values())) == len(cores), cores


def test_tools_agree_on_what_python_says() -> None:
    by_tool = {
        tool: {fingerprint(output).hash for fault, output in runs if fault == "module alpha is missing"}
        for tool, runs in REAL.items()
        if tool in {"python", "pytest", "unittest"}
    }
    assert len(set.union(*by_tool.values())) == 1


@pytest.mark.parametrize(
    ("tool", "start"),
    [
        ("python", r"[\w.]+(?:Error|Exception): "),
        ("node", r"\w*Error: "),
        ("go", r"panic: "),
        ("java", r"(?:Caused by: |Exception in thread \S+ )java\."),
        ("cargo", r"error\[E\d+\]: (?!mismatched)"),
    ],
)
def test_a_trace_and_its_bare_error_line_are_one_error(tool: str, start: str) -> None:
    compared = 0
    for _, output in REAL[tool]:
        bare = [line for line in output.splitlines() if re.match(start, line)]
        if bare:
            assert fingerprint(bare[-1]) == fingerprint(output)
            compared += 1
    assert compared > 2


def test_the_hash_is_that_of_the_core() -> None:
    found = fingerprint(ALL["python"]["raised in a library"][0])
    assert found.hash == sha256(found.core.encode()).hexdigest()
    assert FINGERPRINT_VERSION == 4


@pytest.mark.parametrize(
    ("above", "frame", "named"),
    [
        (
            "✖ totals are summed (3.554935ms)",
            "TestContext.<anonymous> (file:///x/{}.test.mjs:2:42)",
            "totals are summed",
        ),
        ("", "checkTotal (file:///home/x/{}.mjs:2:31)", "cart.mjs"),
        ("", "Object.<anonymous> (C:\\x\\{}.test.ts:4:8)", "cart.test.ts"),
    ],
)
def test_an_assertion_of_javascript_is_that_of_its_test_or_its_file(above: str, frame: str, named: str) -> None:
    """Its message is that of any other comparison."""

    def printed(title: str, values: str, name: str, line: int) -> str:
        frames = [frame.format(name).replace(":2:", f":{line}:"), "Test.run (node:internal/test_runner/test:796:25)"]
        told = ["AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:", "", values, ""]
        return "\n".join(
            [title, *told, *(f"    at {each}" for each in frames), "    at run (/x/node_modules/a.js:4:8)"]
        )

    one = fingerprint(printed(above, "3 !== 5", "cart", 2))
    assert one.core == f"AssertionError in {named}: Expected values to be strictly equal"
    assert one == fingerprint(printed(above.replace("3.55", "8.1"), "4 !== 7", "cart", 9))
    assert one != fingerprint(printed(above.replace("totals", "mails"), "3 !== 5", "mail", 2))


def test_what_pytest_adds_to_a_comparison_is_not_the_fault() -> None:
    """The empty line under an assertion parts it from its explanation, which is nearly the same for every test."""
    output = """
____________________________ test_{name} ____________________________
    def test_{name}():
>       assert pay() == [1, 2, 4]
E       assert [1, 2, 3] == [1, 2, 4]
E
E         At index 2 diff: 3 != 4
E         Use -v to get more diff

test_shop.py:3: AssertionError
"""
    first, second = (output.format(name=name) for name in ("first", "second"))
    assert fingerprint(first) != fingerprint(second)
    assert telling_line(first) == "assert [1, 2, 3] == [1, 2, 4]"


def test_a_type_inside_a_line_is_the_kind_too() -> None:
    assert fingerprint("worker 3 died: ValueError: bad row").kind == "ValueError"


@pytest.mark.parametrize("text", ["", " ", "\n\n\t\r\n", "\x1b[0m"])
def test_silence_has_a_fingerprint_of_its_own(text: str) -> None:
    assert fingerprint(text) == fingerprint("")
    assert fingerprint(text) != fingerprint("0")
    assert fingerprint(text).kind == ""


def test_several_failures_are_a_set() -> None:
    lines = [f"FAILED tests/test_{name}.py::test_{name} - KeyError: '{name}'" for name in "abcdef"]
    shuffled = random.Random(7).sample(lines, len(lines)) + lines[:2]
    assert fingerprint("\n".join(lines)) == fingerprint("\n".join(shuffled))
    assert fingerprint("\n".join(lines)) != fingerprint("\n".join(lines[1:]))


def test_a_long_core_is_cut_and_still_tells_what_was_cut() -> None:
    lines = [f"FAILED tests/test_a.py::test_{name} - KeyError: 'something_quite_long_{name}'" for name in "abcdefghij"]
    whole, without_last = fingerprint("\n".join(lines)), fingerprint("\n".join(lines[:-1]))
    assert len(whole.core) <= CORE_CHARS_MAX
    assert whole.core[:200] == without_last.core[:200]
    assert whole != without_last


def test_a_file_made_for_one_run_has_no_name() -> None:
    shown = '  File "/tmp/{}", line 3\n    if f(\n        ^\nSyntaxError: invalid syntax\n'
    assert fingerprint(shown.format("tmpab12cd9x.py")) == fingerprint(shown.format("tmpzz88qqxy.py"))


def test_another_frame_between_does_not_matter() -> None:
    direct, by_way = (
        ALL["python"]["raised in a library"][0],
        ALL["python"]["raised in a library"][0].replace(
            "    body = client.get(url)\n",
            '    body = client.get(url)\n  File "/home/ann/shop/retry.py", line 3, in again\n    return f(*args)\n',
        ),
    )
    assert direct != by_way
    assert fingerprint(direct) == fingerprint(by_way)


numbers = st.integers(0, 10**12).map(str)
addresses = st.integers(0, 2**48).map(hex)
uuids = st.uuids().map(str)
folders = st.lists(st.from_regex(r"[a-z][a-z0-9_-]{0,8}", fullmatch=True), min_size=1, max_size=4).map("/".join)
paths = st.builds(
    "/tmp/{}/{}.{}".format, folders, st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.sampled_from(["py", "txt", "so"])
)
timings = st.builds(
    "{} {}".format, st.decimals(0, 9999, places=2), st.sampled_from(["ms", "s", "seconds", "min", "KB", "MB", "%"])
)
quoted = st.builds(
    "{0[0]}{1} said{0[1]}".format,
    st.sampled_from(["''", '""', "``", "“”", "„“", "«»", "「」", "‘’"]),
    st.text(
        st.characters(blacklist_categories=["Cc", "Cs", "Zl", "Zp"], blacklist_characters="'\"`“”„«»「」‘’"),
        max_size=30,
    ),
)
hosts = st.builds(
    "{}.example.{}:{}".format,
    st.from_regex(r"[a-z]{1,8}", fullmatch=True),
    st.sampled_from(["com", "org"]),
    st.integers(1, 65535),
)
values = numbers | addresses | uuids | paths | timings | quoted | hosts


@given(values, values, values, values)
def test_values_of_any_kind_do_not_matter_in_a_line(a: str, b: str, c: str, d: str) -> None:
    line = "cannot move {} into store because {} is held by others"
    assert fingerprint(line.format(a, b)) == fingerprint(line.format(c, d))


@given(st.integers(1, 9999), st.integers(1, 9999), folders, folders, values, values)
def test_values_of_any_kind_do_not_matter_in_a_traceback(m: int, n: int, one: str, two: str, a: str, b: str) -> None:
    shown = (
        'Traceback (most recent call last):\n  File "/{}/shop/store.py", line {}, in move\n'
        "    raise StoreBroken(item)\nshop.StoreBroken: cannot move {} into store\n"
    )
    assert fingerprint(shown.format(one, m, a)) == fingerprint(shown.format(two, n, b))


words = st.lists(st.sampled_from(["cannot", "open", "read", "store", "index", "row", "held"]), min_size=1, max_size=8)


@given(words, numbers)
def test_other_words_are_another_fault(words: list[str], number: str) -> None:
    said = " ".join(words)
    assert fingerprint(f"{said} {number}") == fingerprint(f"{said} 1")
    assert fingerprint(f"{said} never {number}") != fingerprint(f"{said} {number}")


@given(st.text(max_size=400))
def test_any_text_has_a_fingerprint_and_always_the_same(text: str) -> None:
    found = fingerprint(text)
    assert found == fingerprint(text)
    assert re.fullmatch("[0-9a-f]{64}", found.hash)
    assert 0 < len(found.core) <= CORE_CHARS_MAX
    assert isinstance(found, Fingerprint)


def test_a_broken_surrogate_is_no_obstacle() -> None:
    assert fingerprint("cannot read \udcff row") != fingerprint("cannot write \udcff row")


SHORT = cases("fingerprint", "short")
SHORT += [
    *("a=", "a:1 ", "/", "\\", "=", "*", "*,", "::", "() ", "\u0301", "a.Error", "in user ", "for a from "),
    *('File "',),
]
SHORT += ["FAILED a.py::b[", "property x object ", "cannot use a as a ", "<locals>.", "mon jan 1 ", '{"msg":"a', "a\\"]
LINES_OF_TOOLS = cases("fingerprint", "lines of tools")
LINES_OF_TOOLS += [
    "x.py:1: error: a\n",
    "panic: a\n",
    "--- FAIL: TestA\n",
    "error: a\n",
    "thread 'a' panicked at b.rs:1:1\n",
]


@pytest.mark.parametrize("piece", [*SHORT, *LINES_OF_TOOLS])
def test_four_times_the_text_is_some_four_times_the_work(piece: str) -> None:
    rows = [f"{piece * (300 // len(piece))}{row % 7}\n" for row in range(80)]
    fingerprint("".join(rows))
    small = steps(lambda: fingerprint("".join(rows[:20])))
    large = steps(lambda: fingerprint("".join(rows)))
    assert large <= 6 * small + 500


@pytest.mark.parametrize("piece", SHORT)
def test_no_pattern_sees_more_than_the_head_of_a_line(piece: str) -> None:
    """With the test above: the work for a line is bounded, and the work for lines grows with their number."""
    line = piece * (1_000_000 // len(piece))
    assert fingerprint(line) == fingerprint(line[: LINE_CHARS_MAX + 1])


@pytest.mark.long
@pytest.mark.parametrize("piece", [*LINES_OF_TOOLS, "\x1b[", "\x1b]", "\x1b[31m", "\r", "a\n\n"])
def test_a_megabyte_of_lines_is_read(piece: str) -> None:
    assert fingerprint(piece * (1_000_000 // len(piece))).hash


@pytest.mark.parametrize(("left", "right"), [("1", "137"), ("/tmp/a", "'x'"), ("deadbeef", "...")])
def test_outputs_that_are_nothing_but_values_are_told_apart(left, right):
    assert fingerprint(left).hash != fingerprint(right).hash
    assert fingerprint(left) == fingerprint(f"  {left}\n")


def test_the_line_that_people_read_is_the_assertion_and_not_what_explains_it():
    output = """>       assert add(1, 2) == 3
E       assert -1 == 3
E        +  where -1 = add(1, 2)

test_calc.py:4: AssertionError
"""
    assert telling_line(output) == "assert -1 == 3"
    # What a runner reports of a test has no margin.
    assert telling_line("assert 5 == 3\n +  where 5 = pay.TRIES") == "assert 5 == 3"


@pytest.mark.parametrize("group", ["pytest", "python"])
def test_the_line_that_people_read_of_a_syntax_error_is_its_message(group):
    faults = [name for name in ALL[group] if "parse" in name or "syntax error" in name]
    assert faults
    assert all(telling_line(ALL[group][name][0]).startswith("SyntaxError: ") for name in faults)
