"""Habits read from what patches introduce and how tasks went: one vote for each patch and topic (M14, M15, R17)."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from math import sqrt
from textwrap import dedent

from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Function = ast.FunctionDef | ast.AsyncFunctionDef

_VOTES_MIN = 3
_SHARE_MIN = 0.7
# The lower bound of Wilson's interval at 90 % must be above one half.
_Z = 1.645
_SNAKE = re.compile(r"_*[a-z0-9]+(_[a-z0-9]+)+")
_CAMEL = re.compile(r"_*[a-z]+[a-z0-9]*([A-Z][a-z0-9]*)+")
# Names that a framework lays down say nothing of who writes them.
_LAID_DOWN = re.compile(r"test_|visit_|do_[A-Z]|setUp|tearDown|maxDiff|asyncSetUp|runTest|__")
_SEARCH_TOOLS = re.compile(r"\b(rg|grep|ripgrep|find|fd|glob|search|\w+_search)\b", re.IGNORECASE)
_LONG_TASK_STEPS, _BATCH_CALLS, _MANY_FILES = 10, 3, 5

# What is said of each habit once it is declared.
SAID = {
    ("naming", "snake_case"): "Names of functions and variables are written in snake_case.",
    ("naming", "camelCase"): "Names of functions and variables are written in camelCase.",
    ("comment", "docstring"): "New functions get a docstring.",
    ("comment", "no_docstring"): "New functions get no docstring.",
    ("style", "type_hints"): "New functions get type hints.",
    ("style", "no_type_hints"): "New functions get no type hints.",
    ("quotes", "single"): "Strings are written in single quotes.",
    ("quotes", "double"): "Strings are written in double quotes.",
    ("imports", "absolute"): "The project's own modules are imported by their absolute names.",
    ("imports", "relative"): "The project's own modules are imported by relative names.",
    ("assertions", "assert"): "Tests use plain assert statements.",
    ("assertions", "unittest"): "Tests use the assert methods of unittest.",
    ("interaction", "batch"): "Tasks are worked on in batches: more than three tool calls to a step.",
    ("interaction", "incremental"): "Tasks are worked on step by step: at most three tool calls to a step.",
    ("organization", "multi_file"): "A task touches more than five files.",
    ("organization", "few_files"): "A task touches at most five files.",
}


@value
class Tally:
    """The votes on one topic, and what the most say."""

    topic: str
    choice: str
    votes: int
    of: int

    @property
    def is_declared(self) -> bool:
        """Whether it is more than chance: enough votes, most of them alike, and surely more than half."""
        share = self.votes / self.of
        return self.votes >= _VOTES_MIN and share >= _SHARE_MIN and _lower_bound(share, self.of) > 0.5


def _lower_bound(share: float, count: int) -> float:
    spread = _Z * sqrt(share * (1 - share) / count + _Z * _Z / (4 * count * count))
    return (share + _Z * _Z / (2 * count) - spread) / (1 + _Z * _Z / count)


def tallies(votes: Iterable[Mapping[str, str]]) -> list[Tally]:
    """The votes of many patches or tasks, topic by topic."""
    counts: dict[str, Counter[str]] = {}
    for vote in votes:
        for topic, choice in vote.items():
            counts.setdefault(topic, Counter())[choice] += 1
    return [Tally(topic, *count.most_common(1)[0], count.total()) for topic, count in sorted(counts.items())]


def style_votes(before: str, after: str, path: str = "") -> dict[str, str]:
    """What a Python patch votes for, by the majority of what it introduces; a tie is no vote."""
    trees = [_tree(text) for text in _completed(before, after)]
    if len(trees) != 2 or None in trees:
        return {}
    old, new = trees
    assert old is not None
    assert new is not None
    known = {function.name for function in _functions(old)}
    functions = [each for each in _functions(new) if each.name not in known and not _LAID_DOWN.match(each.name)]
    asserted = _added(_assertions(old), _assertions(new))
    imported = _added(_imports(old, path), _imports(new, path))
    ballots = {
        "naming": Counter(map(_case, set(_names(new)) - set(_names(old)))),
        "comment": Counter("docstring" if ast.get_docstring(each) else "no_docstring" for each in functions),
        "style": Counter("type_hints" if _is_typed(each) else "no_type_hints" for each in functions),
        "quotes": Counter(choice for _, choice in _added(_strings(before), _strings(after))),
        "imports": Counter(choice for _, choice in imported),
        "assertions": Counter(choice for _, choice in asserted),
    }
    return {topic: choice for topic, ballot in ballots.items() if (choice := _majority(ballot))}


def interaction_votes(tools: Sequence[str], steps: int, files: int) -> dict[str, str]:
    """What a task's log votes for: the search tool it used most, how it went on, how many files it touched (M15)."""
    searched = Counter(match[0].lower() for match in map(_SEARCH_TOOLS.search, tools) if match)
    votes = {"tool": choice} if (choice := _majority(searched)) else {}
    if steps > _LONG_TASK_STEPS:
        votes["interaction"] = "batch" if len(tools) / steps > _BATCH_CALLS else "incremental"
    return votes | ({"organization": "multi_file" if files > _MANY_FILES else "few_files"} if files else {})


def _majority(ballot: Counter[str]) -> str:
    del ballot[""]
    (first, count), (_, second) = [*ballot.most_common(2), ("", 0), ("", 0)][:2]
    return first if count > second else ""


def _completed(before: str, after: str) -> list[str]:
    """Both sides as code that parses: an edit is often a part of a file."""
    plain = [dedent(before), dedent(after)]
    if all(_tree(text) is not None for text in plain):
        return plain
    from mnemarch.learning.trees import fragments

    return [tree.source for tree in fragments([before, after], "python")]


def _tree(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _functions(tree: ast.Module) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def _names(tree: ast.Module) -> Iterator[str]:
    """What the code itself names: functions, parameters, variables and attributes that it assigns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def _case(name: str) -> str:
    """Only a name of several words tells how words are joined."""
    if _LAID_DOWN.match(name):
        return ""
    return "snake_case" if _SNAKE.fullmatch(name) else "camelCase" if _CAMEL.fullmatch(name) else ""


def _is_typed(function: Function) -> bool:
    arguments = function.args
    given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return function.returns is not None or any(argument.annotation for argument in given)


def _added(old: Iterable[tuple[str, str]], new: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    return (Counter(new) - Counter(old)).elements()


def _strings(source: str) -> list[tuple[str, str]]:
    """The plain strings without quotes inside, which could be written either way."""
    strings = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            bare = token.string.lstrip("rbuRBU")
            if token.type == tokenize.STRING and bare[:3] not in {'"""', "'''"} and not set(bare[1:-1]) & {"'", '"'}:
                strings.append((token.string, "single" if bare[0] == "'" else "double"))
    except (tokenize.TokenError, SyntaxError):
        pass  # A part of a file: what came before the break counts.
    return strings


def _imports(tree: ast.Module, path: str) -> list[tuple[str, str]]:
    """The imports of the own package: relative ones, and those whose first name is a folder of the path."""
    own = set(path.replace("\\", "/").split("/")[:-1])
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    relative = [(ast.dump(node), "relative") for node in nodes if node.level]
    named = [node for node in nodes if not node.level and (node.module or "").partition(".")[0] in own]
    return relative + [(ast.dump(node), "absolute") for node in named]


def _assertions(tree: ast.Module) -> list[tuple[str, str]]:
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    methods = [each for each in calls if isinstance(each, ast.Attribute) and each.attr.startswith("assert")]
    own = [each for each in methods if isinstance(each.value, ast.Name) and each.value.id == "self"]
    plain = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    return [(ast.dump(node), "assert") for node in plain] + [(ast.dump(node), "unittest") for node in own]
