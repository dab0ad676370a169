"""Habits read from what patches introduce and how tasks went: one vote for each patch and topic (M14, M15, R17)."""

from __future__ import annotations

from collections import Counter
from math import sqrt

from mnemarch.code.symbols import language_of
from mnemarch.lazy import Lazy
from mnemarch.model.value import value
from mnemarch.text.cache import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ast
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ast_grep_py import SgNode

    Function = ast.FunctionDef | ast.AsyncFunctionDef
else:
    ast = Lazy("ast")

_VOTES_MIN = 3
# Whether a function needs a docstring depends on the function, so that habit must have hardly an exception.
_SHARE_MIN = {"comment": 0.9}
_SHARE_MIN_USUAL = 0.8
# The lower bound of Wilson's interval at 90 % must be above one half.
_Z = 1.645
_SNAKE = r"_*[a-z0-9]+(_[a-z0-9]+)+"
_CAMEL = r"_*[a-z]+[a-z0-9]*([A-Z][a-z0-9]*)+"
# Names that a framework lays down say nothing of who writes them.
_LAID_DOWN = r"test_|visit_|do_[A-Z]|setUp|tearDown|maxDiff|asyncSetUp|runTest|__"
# What stands there uses the package from outside: how it imports it says nothing of the package.
_OUTSIDE = frozenset(
    {"benchmark", "benchmarks", "demo", "demos", "doc", "docs", "example", "examples", "scripts"}
    | {"test", "testing", "tests"}
)
_TEST = r"(?:^|[/\\_.])tests?(?:[/\\_.]|$)"
_TOPICS = ("naming", "comment", "style", "quotes", "imports", "assertions")
# A shorter function needs no docstring: that it has none says nothing.
_DOCUMENTED_LINES_MIN = 3
# Of other languages than Python: what declares a name, and the field that holds it.
_DECLARED = {
    "typescript": {
        "function_declaration": "name",
        "method_definition": "name",
        "variable_declarator": "name",
        "required_parameter": "pattern",
        "optional_parameter": "pattern",
    },
    "go": {
        "function_declaration": "name",
        "method_declaration": "name",
        "parameter_declaration": "name",
        "var_spec": "name",
        "short_var_declaration": "left",
    },
    "java": {"method_declaration": "name", "formal_parameter": "name", "variable_declarator": "name"},
    "rust": {"function_item": "name", "let_declaration": "pattern", "parameter": "pattern"},
}
_WRITTEN_AS = {"typescript": "TypeScript and JavaScript", "go": "Go", "java": "Java", "rust": "Rust"}
_DOC_COMMENT = {"typescript": "/**", "java": "/**", "rust": "///", "go": "//"}
# What is done both ways.
MIXED = "mixed"
_SEARCH_TOOLS = r"(?i)\b(rg|grep|ripgrep|find|fd|glob|search|\w+_search)\b"
_LONG_TASK_STEPS, _BATCH_CALLS, _MANY_FILES = 10, 3, 5

# What is said of each habit once it is declared, and of which language if it is not Python. That functions get no
# docstring is said of nobody: it counts against those who write them.
_SAID = {
    ("naming", "snake_case"): "Names of functions and variables{} are written in snake_case.",
    ("naming", "camelCase"): "Names of functions and variables{} are written in camelCase.",
    ("comment", "docstring"): "New functions{} get a docstring.",
    ("comment", "doc_comment"): "New functions{} get a doc comment.",
    ("style", "type_hints"): "New functions{} get type hints.",
    ("style", "no_type_hints"): "New functions{} get no type hints.",
    ("quotes", "single"): "Strings{} are written in single quotes.",
    ("quotes", "double"): "Strings{} are written in double quotes.",
    ("imports", "absolute"): "The project's own modules are imported by their absolute names.",
    ("imports", "relative"): "The project's own modules are imported by relative names.",
    ("assertions", "assert"): "Tests use plain assert statements.",
    ("assertions", "unittest"): "Tests use the assert methods of unittest.",
    ("interaction", "batch"): "Tasks are worked on in batches: more than three tool calls to a step.",
    ("interaction", "incremental"): "Tasks are worked on step by step: at most three tool calls to a step.",
    ("organization", "multi_file"): "A task touches more than five files.",
}


def sentence_for(topic: str, choice: str) -> str:
    """The habit in words, or "" for what only counts against others."""
    if topic == "tool":
        return f"Code is searched with {choice}."
    name, _, language = topic.partition(":")
    return _SAID.get((name, choice), "").format(f" in {_WRITTEN_AS[language]}" if language else "")


@value
class Tally:
    """The votes on one topic, and what the most say."""

    topic: str
    choice: str
    votes: int
    of: int

    @property
    def is_declared(self) -> bool:
        """Whether it is more than chance: enough votes, nearly all of them alike, and surely more than half."""
        share, share_min = self.votes / self.of, _SHARE_MIN.get(self.topic.partition(":")[0], _SHARE_MIN_USUAL)
        is_clear = self.votes >= _VOTES_MIN and share >= share_min and _lower_bound(share, self.of) > 0.5
        return is_clear and bool(sentence_for(self.topic, self.choice))


def _lower_bound(share: float, count: int) -> float:
    spread = _Z * sqrt(share * (1 - share) / count + _Z * _Z / (4 * count * count))
    return (share + _Z * _Z / (2 * count) - spread) / (1 + _Z * _Z / count)


def tallies(votes: Iterable[Mapping[str, str]]) -> list[Tally]:
    """The votes of many patches or tasks, topic by topic; one that is mixed is for no choice."""
    counts: dict[str, Counter[str]] = {}
    for vote in votes:
        for topic, choice in vote.items():
            counts.setdefault(topic, Counter())[choice] += 1
    firsts = {
        topic: max(count.items(), key=lambda each: (each[0] != MIXED, each[1])) for topic, count in counts.items()
    }
    return [
        Tally(topic, choice, 0 if choice == MIXED else votes_for, counts[topic].total())
        for topic, (choice, votes_for) in sorted(firsts.items())
    ]


def style_votes(before: str, after: str, path: str = "") -> dict[str, str]:
    """What a patch votes for, topic by topic: the majority of what it introduces.

    Where that is not what the rest of the file does, or is a tie, the vote is "mixed". A topic on which it introduces
    nothing gets the vote of the file, as far as the patch shows it; whether new functions get a docstring, only new
    ones tell.
    """
    written = language_of(path) if path else "python"
    language = "typescript" if written in {"javascript", "tsx"} else written
    if language == "python":
        sides = [_shown(text, path) for text in _completed(before, after)]
    elif language in _DECLARED:
        sides = [_shown_elsewhere(text, language, written or "") for text in _completed(before, after, language)]
    else:
        return {}
    if len(sides) != 2 or sides[0] is None or sides[1] is None:
        return {}
    votes = {}
    for topic, shown in sides[1].items():
        introduced, around = _majority(_choices(shown - sides[0][topic])), _majority(_choices(shown))
        choice = introduced or ("" if topic == "comment" else around)
        if choice:
            votes[topic if language == "python" else f"{topic}:{language}"] = choice if around == choice else MIXED
    return votes


def interaction_votes(tools: Sequence[str], steps: int, files: int) -> dict[str, str]:
    """What a task's log votes for: the search tool it used most, how it went on, how many files it touched (M15)."""
    searched = Counter(match[0].lower() for match in map(pattern(_SEARCH_TOOLS).search, tools) if match)
    votes = {"tool": choice} if (choice := _majority(searched)) else {}
    if steps > _LONG_TASK_STEPS:
        votes["interaction"] = "batch" if len(tools) / steps > _BATCH_CALLS else "incremental"
    return votes | ({"organization": "multi_file" if files > _MANY_FILES else "few_files"} if files else {})


def _choices(shown: Counter[tuple[str, str]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for (_, choice), count in shown.items():
        counts[choice] += count
    return counts


def _majority(ballot: Counter[str]) -> str:
    (first, count), (_, second) = [*ballot.most_common(2), ("", 0), ("", 0)][:2]
    return first if count > second else MIXED if count else ""


def _completed(before: str, after: str, language: str = "python") -> list[str]:
    """Both sides as code that parses: an edit is often a part of a file."""
    from textwrap import dedent

    plain = [dedent(before), dedent(after)]
    if language == "python" and all(_tree(text) is not None for text in plain):
        return plain
    from mnemarch.learning.trees import fragments

    return [tree.source for tree in fragments([before, after], language)]


def _tree(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _shown(source: str, path: str) -> dict[str, Counter[tuple[str, str]]] | None:
    """What a text shows on each topic, as pairs of what it is and how it is done; None if it does not parse."""
    tree = _tree(source)
    if tree is None:
        return None
    own, is_test = set(path.replace("\\", "/").split("/")[:-1]), pattern(_TEST).search(path) is not None
    is_outside = not _OUTSIDE.isdisjoint(own)
    lines = source.encode().replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    shown: dict[str, Counter[tuple[str, str]]] = {topic: Counter() for topic in _TOPICS}
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside.update(map(id, node.values))  # Their places in the text are not told before Python 3.12.
        for topic, what, choice in _told_by(node, lines, own, is_test=is_test):
            if id(node) not in inside and not (is_outside and topic == "imports"):
                shown[topic][what, choice] += 1
    # A name counts once, however often it is assigned.
    shown["naming"] = Counter(dict.fromkeys(shown["naming"], 1))
    return shown


def _told_by(node: ast.AST, lines: Sequence[bytes], own: set[str], *, is_test: bool) -> Iterator[tuple[str, str, str]]:
    """What one node shows: topic, what it is, and how it is done."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            if not pattern(_LAID_DOWN).match(name):
                yield from _told_by_function(node)
            yield from _cased(name)
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield from _cased(name)
        case ast.Constant(value=str() | bytes()):
            yield from _quoted(node, lines)
        # Those of the own package: relative ones, and those whose first name is a folder of the path.
        case ast.ImportFrom(module=module, level=level) if level or (module or "").partition(".")[0] in own:
            yield "imports", ast.dump(node), "relative" if level else "absolute"
        case ast.Assert() if is_test:
            yield "assertions", ast.dump(node), "assert"
        case ast.Call(func=ast.Attribute(attr=name, value=ast.Name(id="self"))) if is_test and name[:6] == "assert":
            yield "assertions", ast.dump(node), "unittest"


def _cased(name: str) -> Iterator[tuple[str, str, str]]:
    """Only a name of several words tells how words are joined."""
    if not pattern(_LAID_DOWN).match(name):
        if pattern(_SNAKE).fullmatch(name):
            yield "naming", name, "snake_case"
        elif pattern(_CAMEL).fullmatch(name):
            yield "naming", name, "camelCase"


def _quoted(node: ast.Constant, lines: Sequence[bytes]) -> Iterator[tuple[str, str, str]]:
    """Only a plain string without quotes inside could be written either way."""
    written = b"".join(lines[node.lineno - 1 : node.lineno])[node.col_offset :].lstrip(b"rbuRBU")
    inner = node.value if isinstance(node.value, str) else repr(node.value)[2:-1]
    is_plain = written[:1] in b"'\"" and written[:3] not in {b"'''", b'"""'} and not set(inner) & {"'", '"'}
    if is_plain and written:
        yield "quotes", inner, "single" if written[:1] == b"'" else "double"


def _told_by_function(function: Function) -> Iterator[tuple[str, str, str]]:
    """Its docstring and its type hints. That one is absent says something only where it could be expected."""
    lines = (function.end_lineno or 0) - function.body[0].lineno + 1
    if ast.get_docstring(function):
        yield "comment", function.name, "docstring"
    elif lines >= _DOCUMENTED_LINES_MIN:
        yield "comment", function.name, "no_docstring"
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    if function.returns is not None or any(parameter.annotation for parameter in parameters):
        yield "style", function.name, "type_hints"
    elif any(parameter.arg not in {"self", "cls"} for parameter in parameters):
        yield "style", function.name, "no_type_hints"


def _shown_elsewhere(source: str, language: str, written: str) -> dict[str, Counter[tuple[str, str]]]:
    """What a text in another language than Python shows: names, quotes, doc comments, and types if it has them."""
    from ast_grep_py import SgRoot

    shown: dict[str, Counter[tuple[str, str]]] = {topic: Counter() for topic in _TOPICS}
    waiting = [SgRoot(source, language).root()]
    while waiting:
        node = waiting.pop()
        waiting += node.children()
        field = _DECLARED[language].get(node.kind())
        names = node.field(field) if field else None
        for name in pattern(r"\w+").findall(names.text()) if names is not None else ():
            # An exported name of Go begins with a capital.
            for _, what, choice in _cased(name[:1].lower() + name[1:] if language == "go" else name):
                shown["naming"][what, choice] = 1
        if names is not None and node.field("body") is not None:
            for topic, choice in _told_by_body(node, language, written):
                shown[topic][names.text(), choice] += 1
        if language == "typescript" and node.kind() == "string" and not set(node.text()[1:-1]) & {"'", '"'}:
            shown["quotes"][node.text()[1:-1], "single" if node.text()[0] == "'" else "double"] += 1
    return shown


def _told_by_body(function: SgNode, language: str, written: str) -> Iterator[tuple[str, str]]:
    body, parent = function.field("body"), function.parent()
    outer = parent if parent is not None and parent.kind() == "export_statement" else function
    above = outer.prev()
    while above is not None and above.kind() == "attribute_item":
        above = above.prev()
    start, end = function.range().start.line, function.range().end.line
    is_near = above is not None and above.range().end.line >= outer.range().start.line - 1
    if above is not None and is_near and above.text().startswith(_DOC_COMMENT[language]):
        yield "comment", "doc_comment"
    elif body is not None and end - start - 1 >= _DOCUMENTED_LINES_MIN:
        yield "comment", "no_doc_comment"
    parameters = function.field("parameters")
    declared = [each for each in parameters.children() if each.is_named()] if parameters is not None else []
    if written not in {"typescript", "tsx"}:
        return  # Others have types without a choice, or none at all.
    if function.field("return_type") is not None or any(each.field("type") is not None for each in declared):
        yield "style", "type_hints"
    elif declared:
        yield "style", "no_type_hints"
