"""References to files, lines and symbols, as people and tools write them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.cases import cases
from mnemarch.code.references import Reference, paths_in_data, references_in

FOUND = {
    "auth.ts:login": [("auth.ts", "login", None)],
    "src/x.py::f": [("src/x.py", "f", None)],
    "src/x.py::Class::method": [("src/x.py", "Class.method", None)],
    "src/x.py:Class.method": [("src/x.py", "Class.method", None)],
    "src/x.rb#login": [("src/x.rb", "login", None)],
    "tests/test_a.py::test_b[param]": [("tests/test_a.py", "test_b", None)],
    "src/x.py:120": [("src/x.py", None, (120, 120))],
    "src/x.py:120-140": [("src/x.py", None, (120, 140))],
    "src/x.py:140-120": [("src/x.py", None, (140, 140))],
    "src/x.py#L10-L20": [("src/x.py", None, (10, 20))],
    "src/x.py#L10": [("src/x.py", None, (10, 10))],
    "src/lib.rs:10:5": [("src/lib.rs", None, (10, 10))],
    "src/a.ts(10,5): error TS2304": [("src/a.ts", None, (10, 10))],
    'File "src/x.py", line 10, in f': [("src/x.py", "f", (10, 10))],
    'File "src/x.py", line 10, in <module>': [("src/x.py", None, (10, 10))],
    "at login (src/auth.ts:10:5)": [("src/auth.ts", "login", (10, 10))],
    "at async Object.login (src/auth.ts:10:5)": [("src/auth.ts", "login", (10, 10))],
    "at Object.<anonymous> (src/auth.ts:10:5)": [("src/auth.ts", None, (10, 10))],
    "at com.shop.Auth.login(Auth.java:42)": [("Auth.java", "Auth.login", (42, 42))],
    "app/x.rb:10:in `login'": [("app/x.rb", "login", (10, 10))],
    "app/x.rb:10:in 'Auth#login'": [("app/x.rb", "Auth.login", (10, 10))],
    "error[E0308]: mismatched types --> src/main.rs:5:9": [("src/main.rs", None, (5, 5))],
    "src/x.py:10: error: bad type": [("src/x.py", None, (10, 10))],
    "src/x.py:10:def login(self):": [("src/x.py", None, (10, 10))],
    "src/x.py:def login(self):": [("src/x.py", None, None)],
    r"src\win\a.cs:12": [("src/win/a.cs", None, (12, 12))],
    r"C:\Users\me\a.py": [("C:/Users/me/a.py", None, None)],
    "/home/me/p/src/x.py:3": [("/home/me/p/src/x.py", None, (3, 3))],
    "`login` in src/auth.ts": [("src/auth.ts", "login", None)],
    "`login()` and `logout` in `src/auth.ts`": [("src/auth.ts", "login", None), ("src/auth.ts", "logout", None)],
    "`Auth::login` (src/auth.rs)": [("src/auth.rs", "Auth.login", None)],
    "src/auth.ts: `login`": [("src/auth.ts", "login", None)],
    "src/auth.ts's `login()` retries": [("src/auth.ts", "login", None)],
    "src/auth.ts의 `login()`": [("src/auth.ts", "login", None)],
    "`src/auth.ts`의 `login()`을 고쳤다": [("src/auth.ts", "login", None)],
    "src/auth.ts에서 `login`을 부른다": [("src/auth.ts", "login", None)],
    "src/auth.ts:login()을 고쳤다": [("src/auth.ts", "login", None)],
    "src/auth.ts::login은 느리다": [("src/auth.ts", "login", None)],
    "src/auth.ts를 고쳤다": [("src/auth.ts", None, None)],
    "src/auth.ts:12에서 멈춘다": [("src/auth.ts", None, (12, 12))],
    "문서/설계.md를 보라": [("문서/설계.md", None, None)],
    "+++ b/src/x.py": [("src/x.py", None, None)],
    "--- a/src/x.py": [("src/x.py", None, None)],
    "diff --git a/src/x.py b/src/y.py": [("src/x.py", None, None), ("src/y.py", None, None)],
    "open a/b.py": [("a/b.py", None, None)],
    "[the code](src/auth.ts#L3)": [("src/auth.ts", None, (3, 3))],
    "[`login`](src/auth.ts)": [("src/auth.ts", "login", None)],
    "See src/x.py. Then src/y.py, and (src/z.py).": [
        ("src/x.py", None, None),
        ("src/y.py", None, None),
        ("src/z.py", None, None),
    ],
    "./src/x.py ../y.py": [("src/x.py", None, None), ("../y.py", None, None)],
    "@src/z.ts --file=src/q.go HEAD:src/h.rb": [
        ("src/z.ts", None, None),
        ("src/q.go", None, None),
        ("src/h.rb", None, None),
    ],
    "src/index.d.ts a.test.tsx x.py.": [
        ("src/index.d.ts", None, None),
        ("a.test.tsx", None, None),
        ("x.py", None, None),
    ],
    "node_modules/@types/node/fs.d.ts": [("node_modules/@types/node/fs.d.ts", None, None)],
    "Makefile을 고침": [("Makefile", None, None)],
    "web.js/src/x.js": [("web.js/src/x.js", None, None)],
    "docker/Dockerfile": [("docker/Dockerfile", None, None)],
    "README.md#install": [("README.md", None, None)],
    "config.yaml:timeout": [("config.yaml", "timeout", None)],
    "x.py:0": [("x.py", None, None)],
    "x.py and again x.py": [("x.py", None, None)],
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
