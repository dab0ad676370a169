"""References to files, lines and symbols, as people and tools write them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.cases import cases
from mnemarch.code.citing import Reference, paths_in_data, references_in

FOUND = {
    text: [(path, name, lines and tuple(lines)) for path, name, lines in found]
    for text, found in cases("references", "found")
}

NONE = cases("references", "none")


def shown(text: str, **options: int) -> list[tuple[str, str | None, tuple[int, int] | None]]:
    return [(item.path, item.name, item.lines) for item in references_in(text, **options)]


@pytest.mark.parametrize("text", FOUND)
def test_a_text_refers_to_these(text: str) -> None:
    assert shown(text) == FOUND[text]


@pytest.mark.parametrize("text", NONE)
def test_these_refer_to_no_file(text: str) -> None:
    assert references_in(text) == []


@given(
    st.sampled_from(sorted(text for text in FOUND if "diff" not in text and "+++" not in text and "---" not in text)),
    st.sampled_from(["", "We saw that ", "어제 ", "- ", "> ", "1. ", "error: ", "(see ", "\n\n", "\t"]),
    st.sampled_from(["", " and more.", " 그리고 끝", "\n", ")", "\nnext line", " …"]),
)
def test_a_reference_survives_what_stands_around_it(text: str, before: str, after: str) -> None:
    assert shown(before + text + after) == FOUND[text]


@given(st.lists(st.sampled_from(sorted(FOUND)), min_size=1, max_size=6))
def test_references_come_in_order_and_once(texts: list[str]) -> None:
    expected = list(dict.fromkeys(item for text in texts for item in FOUND[text]))
    assert shown("\n\n".join(texts)) == expected
    assert shown("\n\n".join(texts), limit=2) == expected[:2]


NOISE = st.text(max_size=20) | st.text(alphabet="a/.:\\#L1-`'\"()[]의py ts@\n =", max_size=40)


@given(st.lists(NOISE | st.sampled_from(sorted(FOUND)), max_size=9).map("".join))
def test_any_text_gives_references_with_a_path(text: str) -> None:
    found = references_in(text)
    assert found == references_in(text)
    assert len(set(found)) == len(found)
    for item in found:
        assert item.path
        assert "\\" not in item.path
        assert item.lines is None or 1 <= item.lines[0] <= item.lines[1]


def test_there_are_never_more_than_asked_for() -> None:
    assert len(references_in(" ".join(f"src/x{number}.py" for number in range(100)))) == 32
    assert references_in("src/x.py", limit=0) == []


def test_a_long_text_is_read_up_to_a_bound() -> None:
    filler = "word " * 100_000
    assert references_in(f"src/x.py {filler} src/y.py") == [Reference("src/x.py")]
    assert references_in("x" * 100_000 + ".py and a.py") == [Reference("a.py")]


DATA = {
    "tool": "Edit",
    "input": {
        "file_path": "a/b.py",
        "filePath": r"w\x.ts",
        "old": "c/d.py",
        "edits": [{"path": "e.go"}, {"Path": "f.rs"}],
        "files": ["g.c", {"name": "no.c", "filename": "h.rb"}, 3, None],
    },
    "link": {"path": "https://x.com/y.py"},
    "path": "a/b.py",
    "paths": [["deep.py"]],
    "file": "",
    "filename": "two\nlines.py",
}


def test_the_paths_of_a_tool_s_data() -> None:
    assert paths_in_data(DATA) == ["a/b.py", "w/x.ts", "e.go", "f.rs", "g.c", "h.rb", "deep.py"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["path", "files", "x", ""]), inner),
    max_leaves=20,
)


@given(json_values)
def test_any_data_gives_distinct_texts_of_it(data: object) -> None:
    found = paths_in_data(data)
    assert len(set(found)) == len(found)
    texts = json.dumps(data, ensure_ascii=False).replace("\\\\", "/")
    assert all(json.dumps(path, ensure_ascii=False)[1:-1] in texts for path in found)


def test_data_is_read_up_to_a_bound() -> None:
    deep: object = {"path": "x.py"}
    for _ in range(5_000):
        deep = [deep]
    assert paths_in_data(deep) == []
    assert len(paths_in_data({"files": [f"{number}.py" for number in range(1_000)]})) == 64
    assert paths_in_data({"path": "x" * 2_000}) == []
