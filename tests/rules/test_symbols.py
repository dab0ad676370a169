"""What sources define, which values their constants have, and which changes to them matter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fixtures.cases import cases
from mnemarch.code.symbols import SOURCE_CHARS_MAX, Symbols, agrees, find, language_of, symbols_of

# Of each language a source, what it defines, changes that concern nobody who calls it, and changes that a caller of the
# named symbol must know.
SOURCES: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {}
UNNOTICED: list[tuple[str, str, str]] = []
NOTICED: list[tuple[str, str, str, str]] = []
for file in sorted((Path(__file__).parents[1] / "fixtures" / "sources").glob("*.txt")):
    source, *tables = file.read_text(encoding="utf-8").split("\n==== ")
    defined, same, other = ([json.loads(line) for line in table.splitlines()[1:]] for table in tables)
    SOURCES[file.stem] = f"{source}\n", {name: (kind, signature) for name, kind, signature in defined}
    UNNOTICED += [(file.stem, *change) for change in same]
    NOTICED += [(file.stem, *change) for change in other]


def of(path: str, text: str) -> Symbols:
    found = symbols_of(path, text)
    assert found is not None
    return found


def signatures(path: str, text: str) -> dict[str, str]:
    return {name: symbol.signature for name, symbol in of(path, text).items()}


@pytest.mark.parametrize("path", SOURCES)
def test_a_source_defines_these(path: str) -> None:
    text, expected = SOURCES[path]
    found = of(path, text)
    assert not found.broken
    assert {name: (found[name].kind, found[name].signature) for name in expected if name in found} == expected


@pytest.mark.parametrize("path", SOURCES)
def test_what_is_local_to_a_function_is_no_symbol(path: str) -> None:
    assert not [name for name in of(path, SOURCES[path][0]) if name.rpartition(".")[2].lower() in {"local", "limit_"}]


@pytest.mark.parametrize("path", SOURCES)
def test_a_symbol_knows_its_lines(path: str) -> None:
    text, expected = SOURCES[path]
    lines = text.split("\n")
    for name in expected:
        symbol = of(path, text)[name]
        assert 1 <= symbol.first <= symbol.last <= len(lines)
        word = name.rpartition(".")[2].strip("?=~")
        if not word.startswith("operator"):
            assert word in "\n".join(lines[symbol.first - 1 : symbol.last])


@pytest.mark.parametrize(("path", "old", "new"), UNNOTICED)
def test_layout_bodies_comments_and_who_may_see_it_are_no_change(path: str, old: str, new: str) -> None:
    text = SOURCES[path][0]
    assert old in text
    before, after = signatures(path, text), signatures(path, text.replace(old, new))
    assert {name: after.get(name) for name in SOURCES[path][1]} == {name: before[name] for name in SOURCES[path][1]}


@pytest.mark.parametrize(("path", "old", "new", "name"), NOTICED)
def test_what_changes_a_call_changes_the_signature(path: str, old: str, new: str, name: str) -> None:
    text = SOURCES[path][0]
    assert old in text
    before, after = of(path, text)[name], of(path, text.replace(old, new))[name]
    assert set(before.signature.split("\n")) != set(after.signature.split("\n"))
    if "\n" not in before.signature:
        assert not agrees(before.signature, after.signature)


@pytest.mark.parametrize("path", SOURCES)
def test_what_is_removed_is_no_longer_defined(path: str) -> None:
    text, expected = SOURCES[path]
    for name in expected:
        word = name.rpartition(".")[2]
        assert name not in of(path, text.replace(word, f"not_{word.strip('~?=')}"))


SPACED = dict(cases("symbols", "white space never matters"))
white = st.sampled_from([" ", "\n", "\n\n   ", "\t", "  \n\t "])


@given(st.sampled_from(sorted(SPACED)), st.lists(white, min_size=12, max_size=12))
def test_white_space_never_matters(path: str, spaces: list[str]) -> None:
    first, *parts = SPACED[path].split("␣")
    text = first + "".join(space + part for space, part in zip(spaces, parts, strict=False))
    assert signatures(path, text) == signatures(path, SPACED[path].replace("␣", " "))
    assert any("ogin(" in signature for signature in signatures(path, text).values())


names = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True).filter(
    lambda name: not __import__("keyword").iskeyword(name)
)
types = st.sampled_from(
    ["int", "str | None", "dict[str, int]", "a.B", "Callable[[int], str]", "Literal['a']", '"Late"']
)


@given(st.lists(st.tuples(names, st.none() | types, st.booleans()), unique_by=lambda item: item[0], max_size=5), names)
def test_a_python_signature_is_the_same_in_a_broken_file(
    parameters: list[tuple[str, str | None, bool]], name: str
) -> None:
    given_ = [f"{item}{f': {kind}' if kind else ''}{' = 1' if default else ''}" for item, kind, default in parameters]
    source = f"def {name}(*, {', '.join(given_)}) -> int:  # {name}\n    return 1\n" if given_ else f"def {name}(): ..."
    whole, broken = of("a.py", source), of("a.py", f"{source}\n\n)\n")
    assert broken.broken
    assert not whole.broken
    assert whole[name].signature == broken[name].signature != ""


@given(
    st.sampled_from(sorted(SOURCES)),
    st.text(alphabet="(){}[]<>:;,.=*&'\"`/#\\ \n\tabdefclass 0é가🧠\x00\ud800", max_size=60),
)
def test_any_text_gives_symbols_or_none(path: str, text: str) -> None:
    found = symbols_of(path, text)
    assert found is None or all(name == symbol.name for name, symbol in found.items())


@settings(max_examples=60)
@given(st.sampled_from(sorted(SOURCES)), st.integers(0, 2_000), st.integers(0, 200))
def test_a_source_with_a_hole_never_fails(path: str, start: int, length: int) -> None:
    text = SOURCES[path][0]
    assert symbols_of(path, text[:start] + text[start + length :]) is not None


@pytest.mark.parametrize(("path", "text", "kept"), cases("symbols", "what stands before an error is still found"))
def test_what_stands_before_an_error_is_still_found(path: str, text: str, kept: str) -> None:
    found = of(path, text)
    assert found.broken
    assert find(found, kept)


@pytest.mark.parametrize("opening", ["(", "{", "[", "a<", "if x:\n ", "class A {", "f(a=[", "x = not "])
@pytest.mark.parametrize("path", ["a.py", "a.ts", "a.cpp", "a.kt"])
def test_deep_nesting_is_survived(path: str, opening: str) -> None:
    found = symbols_of(path, f"{opening * 3_000}\n")
    assert found is None or found.broken or not found


def test_a_type_that_goes_very_deep_is_cut() -> None:
    depth = 300
    found = of("a.ts", f"function login(user: {'A<' * depth}B{'>' * depth}) {{ }}")
    assert 0 < len(found["login"].signature) < depth


def test_a_text_that_is_too_long_or_in_no_language_is_not_parsed() -> None:
    assert symbols_of("a.py", "x = 1\n" * (SOURCE_CHARS_MAX // 6 + 1)) is None
    assert symbols_of("a.txt", "def login(): ...") is None


def test_a_definition_ends_on_its_own_last_line() -> None:
    macro, function = of("a.c", SOURCES["a.c"][0])["MAX"], of("a.c", "int f(int a) {\n  return a;\n}\n")["f"]
    assert (macro.first, macro.last) == (2, 2)
    assert (function.first, function.last) == (1, 3)


def test_a_byte_order_mark_is_no_error() -> None:
    assert list(of("a.py", "\ufeffimport os\n")) == ["os"]


@pytest.mark.parametrize(("path", "language"), cases("symbols", "the language is told by the ending"))
def test_the_language_is_told_by_the_ending(path: str, language: str | None) -> None:
    assert language_of(path) == language


AUTH = of(
    "a.py",
    "class Auth:\n  def login(self): ...\n  def save(self): ...\n"
    "class User:\n  def save(self): ...\n  def Save(self): ...\ndef start(): ...\ndef login(): ...\n",
)


@pytest.mark.parametrize(("name", "found"), cases("symbols", "a name is found however it is written"))
def test_a_name_is_found_however_it_is_written(name: str, found: list[str]) -> None:
    assert [symbol.name for symbol in find(AUTH, name)] == found


@pytest.mark.parametrize(
    ("path", "text", "signature"),
    [
        ("a.ts", "function f(a: number = 3, b = { c: 1 }) {}", "f(a: number = 3, b = { c: 1 })"),
        ("a.py", "def f(a=[1, 2,\n  3]): ...", "f(a = [1, 2, 3])"),
        ("a.py", "def f(a=1_000, b=lambda x : x): ...", "f(a = 1_000, b = lambda x: x)"),
    ],
)
def test_a_default_value_is_part_of_a_signature(path: str, text: str, signature: str) -> None:
    assert of(path, text)["f"].signature == signature


def test_what_is_only_imported_yields_to_what_is_defined() -> None:
    found = of("a.py", "from x import login\nclass Auth:\n  def login(self): ...\n")
    assert [symbol.name for symbol in find(found, "login")] == ["Auth.login"]
    assert [symbol.kind for symbol in find(of("a.py", "from x import login"), "login")] == ["import"]


@pytest.mark.parametrize(
    ("cited", "current", "same"), cases("symbols", "one of several signatures or values is enough")
)
def test_one_of_several_signatures_or_values_is_enough(cited: str, current: str, same: bool) -> None:
    assert agrees(cited, current) is same


@given(st.text(max_size=40) | st.sampled_from(sorted(AUTH)))
def test_any_name_can_be_looked_for(name: str) -> None:
    found = {symbol.name for symbol in find(AUTH, name)}
    assert found == {name} if name in AUTH else found <= set(AUTH)


# Values of constants


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [*cases("symbol_values", "the value of a constant"), ("a.py", "X = 0x" + "f" * 9_000, "…")],
)
def test_the_value_of_a_constant(path, text, value):
    found = symbols_of(path, text)
    assert found["X"].value == value
