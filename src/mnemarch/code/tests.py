"""Finds the source of a test and the names in it, to tell which claims it is about (R8, R20)."""

from __future__ import annotations

import builtins
import os

from mnemarch.code import git
from mnemarch.code.symbols import Symbol, Symbols, language_of
from mnemarch.code.worktree import Check, WorkTree, content_hash, lines_of
from mnemarch.model.testrun import meant, short_name
from mnemarch.model.unit import OF_CODE, Citation, CitationKind, Kind, Status, Unit
from mnemarch.model.value import Frozen
from mnemarch.policy.promotion import cited_names
from mnemarch.text.cache import pattern
from mnemarch.text.edits import NAMED
from mnemarch.text.words import Patterns, is_hangul, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mnemarch.code.codebase import Codebase

# Characters that may begin a line at a definition's own indentation without ending it.
_CLOSING = frozenset({"", ")", "]", "}"})
_GREPS_MAX, _RENAMES_MAX, _HASH_CHARS = 3, 8, 16
TEST_SOURCES = Patterns("code", "test sources")
_SHARED_WORDS_MIN = 2
# Files that are known by the name of their folder.
_FOLDER_FILES = frozenset({"__init__", "__main__", "index", "mod", "lib", "main"})
_PREPARING = frozenset({"setUp", "setUpClass", "setup_method", "setup_class", "setup", "asyncSetUp"})
# Words that every test contains.
COMMON = frozenset(listed("code", "tests"))


class Place(Frozen):
    """A parsed test name: its file, if the name has one, and the nested definitions that lead to the test."""

    path: str
    steps: tuple[str, ...]


def place_of(test: str) -> Place:
    """Parse a test name. `tests/test_a.py::TestX::test_b[1]` is `TestX`, `test_b` in tests/test_a.py."""
    path, *steps = TEST_SOURCES["step"].split(test)
    if language_of(path.strip()) is None:
        return Place("", tuple(TEST_SOURCES["identifier"].findall(test.partition("[")[0])))
    # Brackets contain parameters, with any characters.
    inside = "::".join(steps).partition("[")[0]
    return Place(path.strip(), tuple(step.strip() for step in inside.split("::") if step.strip()))


def is_missing(tree: WorkTree, test: str) -> bool:
    """Whether a tree lacks the test: its file, or in Python its function. False if unsure."""
    place = place_of(test)
    if not place.path:
        return False
    if not tree.has(place.path):
        return True
    if language_of(place.path) != "python" or not place.steps:
        return False  # In other languages a step may be a title built at run time.
    *classes, function = place.steps
    if tree.mentions(place.path, function) is not False:
        return False
    source = tree.read(place.path)
    inherits = classes and not isinstance(source, Check) and f"class {classes[-1]}(" in source.text
    return not inherits


def lacks_tests(tree: WorkTree, unit: Unit) -> bool:
    """Whether tests alone verified a unit and the tree has none of them. Episodes are never missing tests."""
    if unit.status is Status.HYPOTHESIS or unit.kind is Kind.EPISODE:
        return False
    tests, kinds = cited_names(unit.citations), {citation.kind for citation in unit.citations}
    is_alone = bool(tests) and CitationKind.HUMAN not in kinds
    return is_alone and all(is_missing(tree, test) for test in meant(tests))


def is_removed(root: str | None, test: str) -> bool:
    """Whether the working tree at a root lacks the test. False if there is no tree."""
    return root is not None and os.path.isdir(root) and is_missing(WorkTree(root), test)


def file_of(codebase: Codebase, test: str) -> str | None:
    """The file of a test, from the root: the file in its name, or else the only file with its function."""
    place = place_of(test)
    if place.path:
        return place.path if codebase.tree.has(place.path) else codebase.ending_with(place.path)
    for end in range(len(place.steps) - 1, 0, -1):
        module = "/".join(place.steps[:end]) + ".py"  # unittest's form: tests.test_a.TestX.test_b.
        if codebase.tree.has(module):
            return module
    title = short_name(test).rpartition(" > ")[2]  # JavaScript writes a title as one string.
    names = [*([title] if " " in title else []), *reversed(place.steps)]
    for number, name in enumerate(dict.fromkeys(names), start=1):
        listed = git.git(codebase.root, ["grep", "--untracked", "-lzwF", "-e", name, "--"]) or ""
        files = [path for path in listed.split("\0") if language_of(path) is not None]
        if files:
            hints = [step for step in place.steps if step != name]
            by_hints = {path: sum(hint in path for hint in hints) for path in files}
            best = [path for path in files if by_hints[path] == max(by_hints.values())]
            return best[0] if len(best) == 1 else None
        if number >= _GREPS_MAX:
            break
    return None


def edited_since(codebase: Codebase, tests: Mapping[str, float]) -> str | None:
    """A file with uncommitted edits that are newer than the time of one of its tests, or None."""
    times: dict[str, float] = {}
    for test, time in tests.items():
        path = place_of(test).path
        times[path] = min(time, times.get(path, time))
    head = codebase.head()
    for named in sorted(times.keys() - {""}):
        path = file_of(codebase, named) or ""
        try:
            is_newer = os.stat(os.path.join(codebase.root, path)).st_mtime > times[named] if path else False
        except OSError:
            continue
        if is_newer and (head is None or codebase.is_changed(path, head)):
            return path
    return None


def body_of(tree: WorkTree, test: str, path: str | None = None) -> str:
    """The lines of a test, found by indentation without a parser. Empty if unknown.

    `path` is the test's file, for a name that doesn't contain it.
    """
    place = place_of(test)
    path, steps = place.path or path, place.steps
    if not place.path:
        last = TEST_SOURCES["step"].split(test)[-1].strip()
        steps = (last,) if " " in last else steps[-1:]  # A title, or a function below its modules and classes.
    body = tree.answer(path, ("test", steps), lambda text: _body_in(lines_of(text), steps)) if path and steps else ""
    return body if isinstance(body, str) else ""


def _body_in(lines: Sequence[str], steps: Sequence[str]) -> str:
    at = -1
    for step in steps:
        at = next((number for number in range(at + 1, len(lines)) if _begins(step, lines[number])), len(lines))
    if not 0 <= at < len(lines):
        return ""
    depth, last = _depth(lines[at]), at + 1
    while last < len(lines) and (_depth(lines[last]) > depth or lines[last][depth : depth + 1] in _CLOSING):
        last += 1
    return "\n".join(line.rstrip() for line in lines[at:last] if line.strip())


def body_hash(tree: WorkTree, test: str) -> str:
    """A hash of the test's lines. Empty if they are unknown."""
    body = body_of(tree, test)
    return content_hash(body)[:_HASH_CHARS] if body else ""


def called_in(body: str) -> frozenset[str]:
    """The functions that the lines of a test call, without builtins and common test functions."""
    return frozenset(TEST_SOURCES["called"].findall(body)) - COMMON - frozenset(dir(builtins))


def _begins(step: str, line: str) -> bool:
    """Whether a line begins the definition or the titled block with this name."""
    if step not in line:
        return False
    defined = pattern(NAMED).match(line.strip())
    return defined[1] == step if defined else any(f"{mark}{step}{mark}" in line for mark in "\"'`")


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def source_of(codebase: Codebase, test: str, path: str) -> str:
    """The source of a test in this file: its function, the parts of its file that it uses, and the imports of those.

    If the function can't be found, it is the whole file. Empty if the file can't be read.
    """
    source = codebase.tree.read(path)
    if isinstance(source, Check):
        return ""
    symbols = codebase.tree.symbols(path)
    start = [] if isinstance(symbols, Check) else _definitions_of(symbols, place_of(test).steps)
    if isinstance(symbols, Check) or not start:
        return source.text
    return "\n".join(_used(symbols, lines_of(source.text), start))


def names_in(text: str, path: str) -> frozenset[str]:
    """The identifiers, modules and files that a test in this file names. `text` is the test's source."""
    if not text:
        return frozenset()
    stem = TEST_SOURCES["affix of a test file"].sub("", path.rpartition("/")[2].rpartition(".")[0])
    return frozenset({stem, *_names(text)} - {""})


def is_about(names: frozenset[str], text: str, citations: Iterable[Citation]) -> bool:
    """Whether a test with these names is about a claim: the claim cites or names a file or symbol among them (R20).

    A claim in plain words names a symbol by its words: "Checkout retries three times" names `checkout` and
    `test_retry`, in Korean too. One shared word could be a coincidence, so two are required, and one of them must be a
    whole name.
    """
    for citation in citations:
        if citation.kind in OF_CODE:
            symbol = (citation.get("name") or "").rpartition(".")[2]
            if symbol in names or _is_file_named(citation.ref, names):
                return True
    for quoted, word, called in TEST_SOURCES["code word"].findall(text):
        last = TEST_SOURCES["separator"].split(quoted or word)[-1]
        is_code = quoted or called or TEST_SOURCES["like code"].search(word) is not None
        if is_code and last in names and last not in COMMON:
            return True
    telling = names - COMMON
    shared = telling_words(text) & telling_words(" ".join(telling)) - COMMON
    whole = telling_words(" ".join(name for name in telling if TEST_SOURCES["single word"].fullmatch(name)))
    return len(shared) >= _SHARED_WORDS_MIN and not shared.isdisjoint(whole)


def telling_words(text: str) -> set[str]:
    """The stems of a text's words. Korean words count by their English, since code rarely has Korean names."""
    from mnemarch.text import korean
    from mnemarch.text.tokens import telling_tokens

    words = korean.in_english(text).split()
    return {token for word in words for token in ([word] if is_hangul(word) else telling_tokens(word))}


def renamed_test(codebase: Codebase, test: str) -> str | None:
    """The new name of a missing test: in a renamed file, or as a test with the same body in its old file.

    If git sees no rename, the files that were added when the old file was deleted are searched.
    """
    place = place_of(test)
    head = codebase.head()
    if not place.path or not place.steps or head is None or not is_missing(codebase.tree, test):
        return None
    path = place.path if codebase.tree.has(place.path) else codebase.history.renamed(place.path, head)
    inside = test[len(place.path) :]
    if path is not None and not is_missing(codebase.tree, path + inside):
        return path + inside
    paths = [path] if path is not None else _added_when_gone(codebase, place.path, head)
    names = [name for each in paths if (name := _with_same_body(codebase, place, each, head)) is not None]
    return names[0] if len(names) == 1 else None


def _added_when_gone(codebase: Codebase, path: str, head: str) -> list[str]:
    gone = git.git(codebase.root, ["log", "-1", "--format=%H", "--diff-filter=D", head, "--", path])
    asked = ["diff-tree", "-r", "-z", "--no-commit-id", "--name-only", "--diff-filter=A", gone or head]
    added = (git.git(codebase.root, asked) or "").split("\0")
    return [each for each in added if language_of(each) == language_of(path) and codebase.tree.has(each)][:_RENAMES_MAX]


def _with_same_body(codebase: Codebase, place: Place, path: str, head: str) -> str | None:
    """The only test of a file whose body equals the old test's last committed body."""
    name = "::".join(place.steps)
    # Parents of the last commits that changed a line with the test's name.
    asked = ["log", f"-{_RENAMES_MAX}", "--format=%P", "--no-textconv", f"-G{place.steps[-1]}", head, "--", place.path]
    commits = [head, *(row.split()[0] for row in (git.git(codebase.root, asked) or "").split("\n") if row)]
    trees = map(codebase.tree_at, commits)
    old = next((tree for tree in trees if not is_missing(tree, f"{place.path}::{name}")), None)
    if old is None:
        return None
    was = old.symbols(place.path)
    now = codebase.tree.symbols(path)
    if isinstance(was, Check) or isinstance(now, Check) or (gone := was.get(name.replace("::", "."))) is None:
        return None
    body = _body(old, place.path, gone)
    same = [
        symbol.name
        for symbol in now.values()
        if symbol.kind == gone.kind
        and (symbol.name == gone.name or symbol.name not in was)
        and _body(codebase.tree, path, symbol) == body
    ]
    return f"{path}::{same[0].replace('.', '::')}" if body and len(same) == 1 else None


def _body(tree: WorkTree, path: str, symbol: Symbol) -> str:
    source = tree.read(path)
    lines = [] if isinstance(source, Check) else lines_of(source.text)[symbol.first : symbol.last]
    return "\n".join(line.strip() for line in lines if line.strip())


def _definitions_of(symbols: Symbols, steps: Sequence[str]) -> list[Symbol]:
    """The definitions that a test's steps lead to, with their setup functions."""
    for depth in range(len(steps), 0, -1):
        name = ".".join(steps[:depth]) if ".".join(steps[:depth]) in symbols else steps[depth - 1]
        ends = [symbol for key, symbol in symbols.items() if key == name or key.endswith(f".{name}")]
        if ends:
            around = ends[0].name.rpartition(".")[0]
            prepared = [item for key in sorted(_PREPARING) if (item := symbols.get(f"{around}.{key}")) is not None]
            return [*ends, *prepared]
    return []


def _used(symbols: Symbols, lines: list[str], start: Sequence[Symbol]) -> list[str]:
    """The source of these definitions and of everything in the file that they use, imports included."""
    ends = {symbol.last for symbol in symbols.values()}
    texts: list[str] = []
    seen: set[str] = set()
    waiting = list(start)
    while waiting:
        symbol = waiting.pop()
        if symbol.name in seen:
            continue
        seen.add(symbol.name)
        first = symbol.first
        if symbol.kind == "import":
            text = _one_import(symbols, lines, symbol)
        else:
            # Include the decorators above the definition.
            while first > 1 and first - 1 not in ends and _is_beside(lines[first - 2], lines[first - 1]):
                first -= 1
            text = "\n".join(lines[first - 1 : symbol.last])
        texts.append(text)
        waiting += [symbols[name] for name in _names(text) if name in symbols]
    if not any(symbol.kind == "import" for symbol in symbols.values()):
        # In a language whose imports are no definitions, all imports count.
        texts += [line for line in lines if TEST_SOURCES["import"].match(line.strip())]
    return texts


def _is_beside(line: str, below: str) -> bool:
    """Whether a line above a definition is a decorator of it, and not the beginning of its class."""
    return bool(line.strip()) and _depth(line) >= _depth(below)


def _one_import(symbols: Symbols, lines: list[str], symbol: Symbol) -> str:
    """The import of one name: `from shop import (a, b)` without the other names."""
    text = "\n".join(lines[symbol.first - 1 : symbol.last])
    others = {
        other.name
        for other in symbols.values()
        if other.kind == "import" and other.first == symbol.first and other.name != symbol.name
    }
    return " ".join(name for name in TEST_SOURCES["any name"].findall(text) if name not in others)


def _names(text: str) -> set[str]:
    return {*TEST_SOURCES["identifier"].findall(text), *TEST_SOURCES["compound"].findall(text)}


def _is_file_named(path: str, names: frozenset[str]) -> bool:
    folder, _, file = path.rpartition("/")
    stem = file.rpartition(".")[0] or file
    if stem in _FOLDER_FILES and folder:
        return folder.rpartition("/")[2] in names
    return file in names or stem in names
