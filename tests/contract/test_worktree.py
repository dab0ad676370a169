"""What a working tree says of citations, whatever lies in it (R11)."""

from __future__ import annotations

import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemarch import Citation, InvalidInput
from mnemarch.code import worktree
from mnemarch.code.citing import checked_in_tree
from mnemarch.code.symbols import symbols_of
from mnemarch.code.worktree import (
    FILE_BYTES_MAX,
    GONE,
    UNKNOWN,
    Check,
    Folder,
    Source,
    WorkTree,
    checked,
    content_hash,
    lines_hash,
    lines_of,
)
from mnemarch.model.value import replace

AUTH = "export class Auth {\n  login(user: string, password: string) { return 1; }\n}\nexport function start() { }\n"


@pytest.fixture
def parsed(monkeypatch):
    """The paths that were parsed."""
    paths = []
    monkeypatch.setattr(worktree, "symbols_of", lambda path, text: paths.append(path) or symbols_of(path, text))
    return paths


class Texts:
    """Sources in a dictionary, as the tree of a commit would be; a stamp is the text itself."""

    def __init__(self, **texts):
        self.texts = {name.replace("_", "."): text for name, text in texts.items()}
        self.reads = []

    def stamp(self, path):
        return self.texts.get(path)

    def load(self, paths):
        pass

    def read(self, path):
        self.reads.append(path)
        text = self.texts.get(path)
        return Check(GONE, f"{path} is not there") if text is None else Source(path, text, text)


@pytest.fixture
def root(tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tmp_path / "secret.py").write_text("def secret(): ...\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.py").write_text("def secret(): ...\n")
    return tree


def state_of(answer):
    return answer.state if isinstance(answer, Check) else answer.text


def linked_to(target):
    return lambda root: (root / "x.py").symlink_to(target)


def under_a_link_to(target):
    def make(root):
        (root / "sub").symlink_to(target)

    return make


def fifo(root):
    os.mkfifo(root / "x.py")


def a_socket(root):
    here = os.getcwd()
    os.chdir(root)  # a socket's path must be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("x.py")
    finally:
        os.chdir(here)


def written(content):
    return lambda root: (root / "x.py").write_bytes(content)


def a_loop(root):
    (root / "x.py").symlink_to("y.py")
    (root / "y.py").symlink_to("x.py")


ODD_FILES = {
    "absent": (lambda root: None, "x.py", GONE),
    "folder": (lambda root: (root / "x.py").mkdir(), "x.py", GONE),
    "the root": (lambda root: None, ".", GONE),
    "under a file": (written(b"1"), "x.py/y.py", GONE),
    "dangling link": (linked_to("gone.py"), "x.py", GONE),
    "long name": (lambda root: None, "x" * 5_000, GONE),
    "long path": (lambda root: None, "x/" * 5_000, GONE),
    "link outside": (linked_to("../secret.py"), "x.py", UNKNOWN),
    "absolute link": (linked_to("/etc/passwd"), "x.py", UNKNOWN),
    "dangling link outside": (linked_to("../gone.py"), "x.py", UNKNOWN),
    "folder link outside": (under_a_link_to("../outside"), "sub/secret.py", UNKNOWN),
    "link to the folder above": (under_a_link_to(".."), "sub/secret.py", UNKNOWN),
    "link to a device": (linked_to("/dev/zero"), "x.py", UNKNOWN),
    "loop": (a_loop, "x.py", UNKNOWN),
    "fifo": (fifo, "x.py", UNKNOWN),
    "socket": (a_socket, "x.py", UNKNOWN),
    "huge": (written(b"a" * (FILE_BYTES_MAX + 1)), "x.py", UNKNOWN),
    "binary": (written(b"def f(): ...\0"), "x.py", UNKNOWN),
    "latin-1": (written("café".encode("latin-1")), "x.py", UNKNOWN),
    "utf-16": (written("def f(): ...".encode("utf-16")), "x.py", UNKNOWN),
    "absolute path": (lambda root: None, "/etc/passwd", UNKNOWN),
    "above": (lambda root: None, "../secret.py", UNKNOWN),
    "through above": (lambda root: None, "../tree/x.py", UNKNOWN),
    "above in the middle": (lambda root: (root / "a").mkdir(), "a/../../secret.py", UNKNOWN),
    "nul": (lambda root: None, "x\0.py", UNKNOWN),
    "empty": (lambda root: None, "", UNKNOWN),
    "plain": (written("값 = 1\n".encode()), "x.py", "값 = 1\n"),
    "empty file": (written(b""), "x.py", ""),
    "of the largest size": (written(b"a" * FILE_BYTES_MAX), "x.py", "a" * FILE_BYTES_MAX),
    "dotted path": (written(b"1"), "./x.py", "1"),
    "two dots in a name": (lambda root: (root / "x..py").write_bytes(b"1"), "x..py", "1"),
    "link inside": (lambda root: (written(b"1")(root), (root / "y.py").symlink_to("x.py")), "y.py", "1"),
    "absolute link inside": (
        lambda root: (written(b"1")(root), (root / "y.py").symlink_to(root / "x.py")),
        "y.py",
        "1",
    ),
}


@pytest.mark.parametrize("case", ODD_FILES)
def test_only_plain_texts_inside_of_the_tree_are_read(root, case):
    make, path, expected = ODD_FILES[case]
    make(root)
    for answer in (Folder(str(root)).read(path), WorkTree(str(root)).read(path)):
        assert state_of(answer) == expected
        if isinstance(answer, Check):
            assert answer.reason
    tree = WorkTree(str(root))
    state = {GONE: "gone", UNKNOWN: "unknown"}.get(expected, "holds")
    if path.strip():
        found = checked(tree, Citation.file(path))
        assert found.state == state
        assert bool(found.reason) == (state != "holds")
        assert checked(tree, Citation.symbol(path, "nothing")).state == {"holds": "gone"}.get(state, state)


@pytest.mark.parametrize("case", [case for case, (_, _, expected) in ODD_FILES.items() if expected in {GONE, UNKNOWN}])
def test_what_can_t_be_read_can_t_be_cited(root, case):
    make, path, _ = ODD_FILES[case]
    make(root)
    for citation in (lambda: Citation.file(path), lambda: Citation.symbol(path, "secret")):
        with pytest.raises(InvalidInput) as caught:
            checked_in_tree(citation(), str(root))
        assert caught.value.hint


@pytest.mark.parametrize("make", [fifo, a_socket, linked_to("/dev/zero"), lambda root: (root / "x.py").mkdir()])
def test_what_is_no_plain_file_is_not_even_opened(root, monkeypatch, make):
    make(root)
    opened, really = [], os.open
    monkeypatch.setattr(os, "open", lambda path, *rest, **more: (opened.append(path), really(path, *rest, **more))[1])
    assert isinstance(Folder(str(root)).read("x.py"), Check)
    assert [path for path in opened if path != str(root)] == []


def test_a_file_changed_a_moment_ago_is_not_relied_on(root, monkeypatch):
    (root / "x.py").write_text("1\n")
    folder = Folder(str(root))
    assert folder.read("x.py").stamp is None
    later_ns = time.time_ns() + 60 * 10**9
    monkeypatch.setattr(time, "time_ns", lambda: later_ns)
    assert folder.read("x.py").stamp == folder.stamp("x.py") is not None


def test_a_link_that_appears_after_the_look_is_not_followed(root, monkeypatch):
    (root / "sub").mkdir()
    (root / "sub" / "secret.py").write_text("inside\n")
    resolved = os.path.realpath

    def swapped(path, **options):
        answer = resolved(path, **options)
        if path.endswith("secret.py"):
            (root / "sub").rename(root / "was")
            (root / "sub").symlink_to(root.parent / "outside")
        return answer

    monkeypatch.setattr(os.path, "realpath", swapped)
    assert isinstance(Folder(str(root)).read("sub/secret.py"), Check)


def test_a_tree_that_is_gone_contradicts_nothing(root):
    (root / "x.py").write_text("1\n")
    citation = checked_in_tree(Citation.file("x.py"), str(root))
    root.rename(root.parent / "moved")
    assert checked(WorkTree(str(root)), citation).state == "unknown"


def test_a_tree_may_be_reached_through_a_link(root, tmp_path):
    (root / "x.py").write_text("1\n")
    (tmp_path / "alias").symlink_to(root)
    assert WorkTree(str(tmp_path / "alias")).read("x.py").text == "1\n"


UNPRIVILEGED = """
import os, sys
from mnemarch.code.worktree import Folder
if os.getuid() == 0:  # after the import: nobody may perhaps not read this Python
    try:
        os.setgid(65534)
        os.setuid(65534)
    except OSError:
        sys.exit("no other user to be")
for path in ("x.py", "shut/x.py"):
    answer = Folder(sys.argv[1]).read(path)
    print(answer.state, "may not be read" in answer.reason)
"""


def test_what_may_not_be_read_is_not_taken_for_missing():
    # Not below pytest's own folder, which only its user may enter.
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "shut").mkdir()
        for path in ("x.py", "shut/x.py"):
            (root / path).write_text("1\n")
        (root / "x.py").chmod(0)
        (root / "shut").chmod(0)
        root.chmod(0o755)
        done = subprocess.run(
            [sys.executable, "-c", UNPRIVILEGED, folder], capture_output=True, text=True, check=False, timeout=60
        )
        (root / "shut").chmod(0o700)
    if "no other user to be" in done.stderr:
        pytest.skip("this user may not become another")
    assert done.stdout.split() == [UNKNOWN, "True"] * 2


def test_a_file_is_parsed_once_and_again_when_it_changes(root, parsed):
    tree = WorkTree(str(root))
    (root / "a.ts").write_text(AUTH)
    for _ in range(5):
        assert "Auth.login" in tree.symbols("a.ts")
    assert parsed == ["a.ts"]
    (root / "a.ts").write_text(AUTH.replace("login", "enter"))  # as long, and perhaps in the same tick of the clock
    assert "Auth.enter" in tree.symbols("a.ts")
    assert parsed == ["a.ts", "a.ts"]
    os.utime(root / "a.ts", (1, 1))
    assert "Auth.enter" in tree.symbols("a.ts")
    assert parsed == ["a.ts", "a.ts"]
    (root / "a.ts").unlink()
    assert tree.symbols("a.ts").state == GONE


def test_what_was_replaced_with_its_old_times_is_noticed(root):
    tree = WorkTree(str(root))
    (root / "a.ts").write_text(AUTH)
    os.utime(root / "a.ts", (1_000, 1_000))
    assert "Auth.login" in tree.symbols("a.ts")
    (root / "b.ts").write_text(AUTH.replace("login", "enter"))
    os.utime(root / "b.ts", (1_000, 1_000))
    (root / "b.ts").replace(root / "a.ts")
    assert "Auth.enter" in tree.symbols("a.ts")


def test_what_has_not_changed_is_not_even_read():
    texts = Texts(a_ts=AUTH, b_py="x = 1\n")
    tree = WorkTree(texts)
    for _ in range(3):
        tree.symbols("a.ts")
        tree.content_hash("b.py")
        tree.holds_lines("a.ts", 1, 1, "0")
    assert texts.reads == ["a.ts", "b.py"]


def test_many_threads_parse_once(parsed):
    tree = WorkTree(Texts(a_ts=AUTH))
    tree.read("a.ts")
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: tree.symbols("a.ts"), range(64)))
    assert len(parsed) == 1
    assert all(item is found[0] for item in found)


def test_only_so_many_files_and_characters_are_kept(monkeypatch):
    monkeypatch.setattr(worktree, "_FILES_MAX", 3)
    monkeypatch.setattr(worktree, "_CHARS_MAX", 400)
    texts = Texts(**{f"f{number}_py": f"x{number} = 1\n" for number in range(6)}, big_py="y = 1\n" * 100)
    tree = WorkTree(texts)
    for number in (0, 1, 2, 0, 3, 0):
        tree.read(f"f{number}.py")
    assert texts.reads == ["f0.py", "f1.py", "f2.py", "f3.py"]  # f1, used longest ago, made room
    tree.read("f1.py")
    assert texts.reads[4:] == ["f1.py"]
    tree.read("big.py")
    tree.read("big.py")
    assert texts.reads[5:] == ["big.py"]  # larger than all that is kept, it is kept alone
    tree.read("f1.py")
    tree.read("big.py")
    assert texts.reads[6:] == ["f1.py", "big.py"]


def test_there_is_no_end_to_what_may_be_asked_of_one_file(parsed):
    tree = WorkTree(Texts(a_ts=AUTH))
    for number in range(500):
        assert tree.holds_lines("a.ts", 1, 1, f"{number:064}") is None
        assert "start" in tree.symbols("a.ts")
    assert parsed == ["a.ts"]
    assert len(tree._files["a.ts"].answers) <= 64


def cited(citation, **texts):
    return checked_in_tree(citation, "nowhere", WorkTree(Texts(**texts)))


def now(citation, **texts):
    return checked(WorkTree(Texts(**texts)), citation)


FIVE = "one\ntwo\nthree\nfour\nfive\n"


def test_lines_that_stand_hold():
    citation = cited(Citation.file("a.md", (2, 3)), a_md=FIVE)
    assert citation.get("sha256") == lines_hash(["two", "three"])
    assert now(citation, a_md=FIVE) == Check("holds")
    assert now(citation, a_md=FIVE.replace("\n", "\r\n").replace("five", "FIVE")) == Check("holds")


def test_lines_that_moved_hold_and_say_where_they_are():
    citation = cited(Citation.file("a.md", (2, 3)), a_md=FIVE)
    moved = now(citation, a_md="zero\nzero\n" + FIVE)
    assert moved == Check("holds", "a.md: lines 2-3 are now 4-5")
    assert now(citation, a_md="two\nthree\n") == Check("holds", "a.md: lines 2-3 are now 1-2")
    nearest = "two\nthree\n" + "-\n" * 9 + "two\nthree\n-\n"
    far = replace(citation, detail=(("lines", "11-12"), ("sha256", citation.get("sha256"))))
    assert now(far, a_md=nearest) == Check("holds", "a.md: lines 11-12 are now 12-13")


def test_changed_lines_are_distinguished_from_a_file_that_is_gone():
    citation = cited(Citation.file("a.md", (2, 3)), a_md=FIVE)
    for text in (FIVE.replace("three", "THREE"), FIVE.replace("two\n", "two\n\n"), "two\n", "", "three\ntwo\n"):
        changed = now(citation, a_md=text)
        assert changed.state == "changed"
        assert "2-3" in changed.reason
    assert now(citation).state == "gone"


def test_lines_are_counted_as_editors_count_them():
    text = "one\x0c\u2028still one\ntwo\rthree\r\nfour"
    assert lines_of(text) == ["one\x0c\u2028still one", "two", "three", "four"]
    assert lines_of("") == []
    assert lines_of("\n") == [""]
    with pytest.raises(InvalidInput):
        cited(Citation.file("a.md", (4, 5)), a_md=text)


def test_moved_lines_are_looked_for_within_bounds():
    citation = Citation.file("a.md", (1, 40_000))
    citation = replace(citation, detail=(*citation.detail, ("sha256", "0" * 64)))
    assert now(citation, a_md="x\n" * 100_000).state == "unknown"
    assert now(citation, a_md="x\n" * 40_000).state == "changed"


@given(st.lists(st.sampled_from(["a", "b", "", "c d"]), min_size=1, max_size=12), st.data())
def test_lines_hold_wherever_the_file_has_them(lines, data):
    first = data.draw(st.integers(1, len(lines)))
    last = data.draw(st.integers(first, len(lines)))
    citation = cited(Citation.file("a.md", (first, last)), a_md="\n".join(lines) + "\n")
    others = data.draw(st.lists(st.sampled_from(["a", "b", "", "c d", "e"]), max_size=12))
    stretch = lines[first - 1 : last]
    has = any(others[at : at + len(stretch)] == stretch for at in range(len(others) - len(stretch) + 1))
    assert (now(citation, a_md="".join(f"{line}\n" for line in others)).state == "holds") == has


def test_a_whole_file_holds_while_it_is_there_and_says_that_it_changed():
    citation = cited(Citation.file("a.md"), a_md=FIVE)
    assert citation.get("sha256") == content_hash(FIVE)
    assert now(citation, a_md=FIVE) == Check("holds")
    changed = now(citation, a_md=FIVE + "six\n")
    assert changed.state == "holds"
    assert "changed" in changed.reason
    assert now(citation).state == "gone"
    assert now(Citation.file("a.md"), a_md=FIVE) == Check("holds")


def test_a_symbol_is_cited_by_its_whole_name_with_its_signature():
    citation = cited(Citation.symbol("a.ts", "login"), a_ts=AUTH)
    assert citation.get("name") == "Auth.login"
    assert citation.get("signature") == "login(user: string, password: string)"
    assert Citation.from_json(citation.to_json()) == citation


def test_a_symbol_holds_while_its_signature_does():
    citation = cited(Citation.symbol("a.ts", "Auth::login"), a_ts=AUTH)
    assert now(citation, a_ts=AUTH) == Check("holds")
    assert now(citation, a_ts="// more\n" + AUTH.replace("return 1", "return 2")) == Check("holds")
    changed = now(citation, a_ts=AUTH.replace(", password: string", ""))
    assert changed.state == "changed"
    assert changed.reason == "a.ts: login(user: string, password: string) is now login(user: string)"
    renamed = now(citation, a_ts=AUTH.replace("login", "enter"))
    assert renamed == Check("gone", "a.ts no longer defines Auth.login")
    assert now(citation) == Check("gone", "a.ts is not there")


def test_an_unchanged_file_is_not_parsed_for_its_symbols(parsed):
    citation = cited(Citation.symbol("a.ts", "login"), a_ts=AUTH)
    parsed.clear()
    assert checked(WorkTree(Texts(a_ts=AUTH)), citation) == Check("holds")
    assert parsed == []
    assert checked(WorkTree(Texts(a_ts=AUTH + "\n")), citation) == Check("holds")
    assert parsed == ["a.ts"]


def test_an_old_citation_without_a_signature_holds_while_the_name_is_defined():
    old = Citation.symbol("a.ts", "login")
    assert now(old, a_ts=AUTH.replace(", password: string", "")) == Check("holds")
    assert now(old, a_ts="// login was here\n").state == "gone"


def test_one_overload_that_stays_is_enough():
    two = "class A { void f(int a) {} void f(String a) {} }"
    citation = cited(Citation.symbol("A.java", "f"), A_java=two)
    assert now(citation, A_java=two.replace("void f(int a) {}", "")) == Check("holds")
    assert now(citation, A_java="class A { void f(long a) {} }").state == "changed"


def test_a_name_that_can_mean_several_must_be_said_in_full():
    two = "class A:\n  def save(self): ...\nclass B:\n  def save(self): ...\n"
    with pytest.raises(InvalidInput, match=r"A\.save") as caught:
        cited(Citation.symbol("a.py", "save"), a_py=two)
    assert "A.save" in caught.value.hint
    assert cited(Citation.symbol("a.py", "B.save"), a_py=two).get("name") == "B.save"


def test_a_name_that_is_only_mentioned_is_not_cited():
    with pytest.raises(InvalidInput):
        cited(Citation.symbol("a.py", "login"), a_py="# login\nlogin()\n")


def test_a_half_written_file_does_not_make_its_symbols_stale():
    citation = cited(Citation.symbol("a.py", "login"), a_py="def login(user): ...\n")
    half = now(citation, a_py="def start(a:\n  pass\n\ndef login(user): pass\n")
    assert half.state == "unknown"
    assert "syntax" in half.reason
    assert now(citation, a_py="def start(a:\n  pass\n").state == "gone"


def test_where_there_is_no_grammar_the_word_counts():
    citation = cited(Citation.symbol("run.sh", "deploy"), run_sh="deploy() { true; }\n")
    assert citation.get("signature") is None
    assert now(citation, run_sh="function deploy { false; }\n") == Check("holds")
    assert now(citation, run_sh="redeploy() { true; }\n").state == "gone"
    with pytest.raises(InvalidInput):
        cited(Citation.symbol("run.sh", "deploy"), run_sh="redeploy\n")


def test_a_signature_that_would_be_redacted_is_not_kept():
    text = 'export const connect = (url: "postgres://u:hunter2hunter2@h/db") => 1;\n'
    citation = cited(Citation.symbol("a.ts", "connect"), a_ts=text)
    assert citation.get("signature") is None
    assert now(citation, a_ts=text + "\n") == Check("holds")


@pytest.mark.parametrize("lines", ["", "-", "0-1", "2-1", "a-b", "1", "²-³", "1-2-3"])
def test_a_damaged_citation_is_unknown(lines):
    citation = replace(Citation.file("a.md"), detail=(("lines", lines), ("sha256", "0")))
    assert now(citation, a_md=FIVE).state == "unknown"
    assert now(replace(Citation.symbol("a.py", "x"), detail=()), a_py="x = 1\n").state == "gone"


def test_other_citations_are_not_the_tree_s():
    for citation in (Citation.test("t"), Citation.human("h"), Citation.log("l"), Citation.commit("c")):
        assert now(citation).state == "unknown"
