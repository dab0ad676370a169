"""The tables in text/data: every section can be read, and every pattern in them compiles."""

from __future__ import annotations

from pathlib import Path

import pytest

import mnemarch.text
from mnemarch.text.statements import topic_key
from mnemarch.text.words import Patterns, entries, grouped, listed, opposites

DATA = Path(mnemarch.text.__file__).parent / "data"
SECTIONS = [
    (path.stem, line.strip("[]"))
    for path in sorted(DATA.glob("*.txt"))
    for line in path.read_text(encoding="utf-8").splitlines()
    if line.startswith("[")
]
OF_PATTERNS = [
    (file, section)
    for file, section in SECTIONS
    if all(" => " in line for line in entries(file, section)) and file != "secrets"
] + [("secrets", section) for section in ("places", "no secrets", "signs")]


def test_no_section_is_there_twice_or_empty() -> None:
    assert len(SECTIONS) > 50
    assert len(set(SECTIONS)) == len(SECTIONS)
    assert [section for section in SECTIONS if not entries(*section)] == []


@pytest.mark.parametrize(("file", "section"), OF_PATTERNS)
def test_every_pattern_compiles(file: str, section: str) -> None:
    of_file = [name for named, name in OF_PATTERNS if named == file]
    table = Patterns(file, *of_file[: of_file.index(section) + 1])
    for name in table.sources:
        assert table[name].pattern == table.sources[name]
        # A reference to a pattern that is not there, or comes later, would be left version_key.
        assert "(?&" not in table.sources[name]


def test_an_indented_line_continues_the_group_before_it() -> None:
    assert grouped("english", "denied")["dis"][-1] == "trusted"
    assert "trusted" not in grouped("english", "denied")


def test_words_of_a_list_may_stand_on_several_lines() -> None:
    assert {"zero", "nineteen"} <= set(listed("english", "numbers"))


def test_a_word_inflects_and_negates_as_it_is_marked() -> None:
    english = opposites("english")
    assert english["denied"] == (("allow-",), True)
    assert english["permitting"] == (("allow+",), False)
    assert "deny*" not in english


@pytest.mark.parametrize(("file", "section"), OF_PATTERNS)
def test_a_pattern_is_named_once(file, section):
    """A second line of one name would take the place of the first."""
    names = [line.partition(" => ")[0] for line in entries(file, section)]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("owns", ["is responsible for", "is in charge of", "is the owner of", "has the final say on"])
def test_who_owns_a_thing_is_told_in_several_words(owns):
    assert topic_key(f"Mina {owns} the deploy script") == topic_key("Joon owns the deploy script")
