"""Finds the source of a test, the names in it and what it compares with, to tell which claims it shows (R8, R20)."""

from __future__ import annotations

import builtins
import os
from itertools import chain

from mnemarch.code import git
from mnemarch.code.symbols import Symbol, Symbols, agrees, language_of
from mnemarch.code.worktree import Check, WorkTree, content_hash, lines_of
from mnemarch.model.testrun import meant, short_name
from mnemarch.model.unit import EXPECTED, OF_CODE, Citation, CitationKind, Claim, Kind, Proof, Status, Unit
from mnemarch.model.value import Frozen
from mnemarch.policy.promotion import cited_names
from mnemarch.text.cache import pattern
from mnemarch.text.edits import NAMED
from mnemarch.text.words import Patterns, is_hangul, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mnemarch.code.codebase import Codebase

# Characters that may begin a line at a definition's own indentation without ending it.
_CLOSING = frozenset({"", ")", "]", "}"})
_GREPS_MAX, _RENAMES_MAX, _HASH_CHARS = 3, 8, 16
_ITEM_CHARS = 8
_IN_FILE = "@"
# A value in the forms in which a test may write it.
_WRITTEN_AS = ("{}", "'{}'", '"{}"', "`{}`")
_PATTERNS = Patterns("code", "test sources")
_SHARED_WORDS_MIN = 2
# Files that are known by the name of their folder.
_FOLDER_FILES = frozenset({"__init__", "__main__", "index", "mod", "lib", "main"})
_PREPARING = frozenset({"setUp", "setUpClass", "setup_method", "setup_class", "setup", "asyncSetUp"})
# Words that every test contains.
_COMMON = frozenset(listed("code", "tests"))


class Place(Frozen):
    """A parsed test name: its file, if the name has one, and the nested definitions that lead to the test."""

    path: str
    steps: tuple[str, ...]


def place_of(test: str) -> Place:
    """Parse a test name. `tests/test_a.py::TestX::test_b[1]` is `TestX`, `test_b` in tests/test_a.py."""
    path, *steps = _PATTERNS["step"].split(test)
    if language_of(path.strip()) is None:
        return Place("", tuple(_PATTERNS["identifier"].findall(test.partition("[")[0])))
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


def body_of(tree: WorkTree, test: str, path: str | None = None) -> str:
    """The lines of a test, found by indentation without a parser. Empty if unknown.

    `path` is the test's file, for a name that doesn't contain it.
    """
    place = place_of(test)
    path, steps = place.path or path, place.steps
    if not place.path:
        last = _PATTERNS["step"].split(test)[-1].strip()
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


def expected_by(tree: WorkTree, test: str, path: str | None = None) -> frozenset[str]:
    """Digests of the numbers, strings and operators that the lines of a test compare with. Empty if unknown.

    `path` is the test's file. It is included if the test's name doesn't contain it.
    """
    is_named = bool(place_of(test).path)
    compared = _compared_in(tree, test, path)
    where = [f"{_IN_FILE}{path}"] if compared and path and not is_named and " " not in path else []
    return frozenset([*where, *map(_digest, compared)])


def _compared_in(tree: WorkTree, test: str, path: str | None) -> list[str]:
    return _PATTERNS["compared"].findall(body_of(tree, test, path))


def _digest(item: str) -> str:
    return content_hash(item)[:_ITEM_CHARS]


def still_expected(tree: WorkTree, proof: Proof | None) -> bool | None:
    """Whether the tests that verified a unit still contain every expected value of that time. None if unknown."""
    if proof is None or not proof.expects or proof.person is not None:
        return None
    then, now = _then_and_now(tree, proof.expects, proof.tests)
    return then.issubset(map(_digest, chain.from_iterable(now))) if all(now) else None


def _then_and_now(tree: WorkTree, expects: str, tests: Iterable[str]) -> tuple[frozenset[str], list[list[str]]]:
    """The digests of what tests compared with then, and for each of them what it compares with now."""
    items = frozenset(expects.split())
    files = [item for item in items if item.startswith(_IN_FILE)]
    now = []
    for name in meant(tests):
        paths = [None] if place_of(name).path else [file.removeprefix(_IN_FILE) for file in files]
        now.append([item for path in paths for item in _compared_in(tree, name, path)])
    return items.difference(files), now


def is_overtaken(tree: WorkTree, claim: Unit | Claim) -> bool:
    """Whether the tests of a claim compared with its value when it was claimed, and compare with another one now.

    A test that was written or changed for the claim compares with the claim's value now.
    """
    expects = claim.attributes.get(EXPECTED)
    then, now = _then_and_now(tree, str(expects), cited_names(claim.citations)) if expects else (frozenset[str](), [])
    items = {_digest(item): item for item in chain.from_iterable(now)}
    new = {digest for digest, item in items.items() if digest not in then and _PATTERNS["value"].match(item)}
    if not new or then <= items.keys():
        return False
    own = _digests_of_values(claim)
    return own.isdisjoint(new) and not own.isdisjoint(then - items.keys())


def rest_on_two_contents(left: Unit, right: Unit) -> bool:
    """Whether two units rest on two contents of one code, and so never hold in one tree (R8).

    They cite a symbol or lines with different contents. Or one test compares with the value of each: a verified unit's
    at the time when it was verified, another's when it was claimed.
    """
    ours, theirs = _forms(left), _forms(right)
    if not all(all(map(agrees, ours[name], theirs[name])) for name in ours.keys() & theirs.keys()):
        return True
    own, others = (frozenset(str(_expects(unit) or "").split()) for unit in (left, right))
    tests, other_tests = ({short_name(test) for test in cited_names(unit.citations)} for unit in (left, right))
    if own <= others or others <= own or tests.isdisjoint(other_tests):
        return False
    is_ours = not _digests_of_values(left).isdisjoint(own - others)
    return is_ours and not _digests_of_values(right).isdisjoint(others - own)


def _forms(unit: Unit) -> dict[str, tuple[str, ...]]:
    """The contents of the symbols and lines that a unit cites. Empty where the code could not be read."""
    names = [item for item in unit.citations if item.kind is CitationKind.SYMBOL]
    lines = [item for item in unit.citations if item.kind is CitationKind.FILE and item.get("lines")]
    forms: dict[str, tuple[str, ...]] = {str(item): (item.get("sha256") or "",) for item in lines}
    return forms | {str(item): (item.get("signature") or "", item.get("value") or "") for item in names}


def _expects(unit: Unit) -> str | None:
    return unit.attributes.get(EXPECTED) if unit.proof is None else unit.proof.expects


def _digests_of_values(claim: Unit | Claim) -> frozenset[str]:
    """Digests of the values that a claim states, in the forms in which a test may compare with them."""
    from mnemarch.text.statements import statement

    values = statement(claim.content).values
    words = {word for each in values for word in {*each.words, *f"{each.written} {each.written.lower()}".split()}}
    return frozenset(_digest(form.format(word)) for word in words for form in _WRITTEN_AS)


def called_in(body: str) -> frozenset[str]:
    """The functions that the lines of a test call, without builtins and common test functions."""
    return frozenset(_PATTERNS["called"].findall(body)) - _COMMON - frozenset(dir(builtins))


def _begins(step: str, line: str) -> bool:
    """Whether a line begins the definition or the titled block with this name."""
    if step not in line:
        return False
    defined = pattern(NAMED).match(line.strip())
    return defined[1] == step if defined else any(f"{mark}{step}{mark}" in line for mark in "\"'`")


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def names_in_test(codebase: Codebase, test: str) -> frozenset[str]:
    """The identifiers, modules and files that a test's source names.

    The source is the test's function, the parts of its file that it uses, and the imports that those use. If the
    function can't be found, it is the whole file. Empty if the test's file is unknown.
    """
    path = file_of(codebase, test)
    source = codebase.tree.read(path) if path is not None else None
    if path is None or source is None or isinstance(source, Check):
        return frozenset()
    symbols, lines = codebase.tree.symbols(path), lines_of(source.text)
    steps = place_of(test).steps
    start = [] if isinstance(symbols, Check) else _definitions_of(symbols, steps)
    if isinstance(symbols, Check) or not start:
        text = source.text
    else:
        text = "\n".join(_used(symbols, lines, start))
    stem = _PATTERNS["affix of a test file"].sub("", path.rpartition("/")[2].rpartition(".")[0])
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
    for quoted, word, called in _PATTERNS["code word"].findall(text):
        last = _PATTERNS["separator"].split(quoted or word)[-1]
        is_code = quoted or called or _PATTERNS["like code"].search(word) is not None
        if is_code and last in names and last not in _COMMON:
            return True
    telling = names - _COMMON
    shared = _telling_words(text) & _telling_words(" ".join(telling)) - _COMMON
    whole = _telling_words(" ".join(name for name in telling if _PATTERNS["single word"].fullmatch(name)))
    return len(shared) >= _SHARED_WORDS_MIN and not shared.isdisjoint(whole)


def _telling_words(text: str) -> set[str]:
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
            while first > 1 and lines[first - 2].strip() and first - 1 not in ends:
                first -= 1
            text = "\n".join(lines[first - 1 : symbol.last])
        texts.append(text)
        waiting += [symbols[name] for name in _names(text) if name in symbols]
    if not any(symbol.kind == "import" for symbol in symbols.values()):
        # In a language whose imports are no definitions, all imports count.
        texts += [line for line in lines if _PATTERNS["import"].match(line.strip())]
    return texts


def _one_import(symbols: Symbols, lines: list[str], symbol: Symbol) -> str:
    """The import of one name: `from shop import (a, b)` without the other names."""
    text = "\n".join(lines[symbol.first - 1 : symbol.last])
    others = {
        other.name
        for other in symbols.values()
        if other.kind == "import" and other.first == symbol.first and other.name != symbol.name
    }
    return " ".join(name for name in _PATTERNS["any name"].findall(text) if name not in others)


def _names(text: str) -> set[str]:
    return {*_PATTERNS["identifier"].findall(text), *_PATTERNS["compound"].findall(text)}


def _is_file_named(path: str, names: frozenset[str]) -> bool:
    folder, _, file = path.rpartition("/")
    stem = file.rpartition(".")[0] or file
    if stem in _FOLDER_FILES and folder:
        return folder.rpartition("/")[2] in names
    return file in names or stem in names
