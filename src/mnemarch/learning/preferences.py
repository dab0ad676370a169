"""Reads votes on habits from the code that patches introduce and from the logs of tasks (M14, M15, R17)."""

from __future__ import annotations

from collections import Counter
from math import sqrt

from mnemarch.code.symbols import SOURCE_CHARS_MAX, language_of
from mnemarch.lazy import Lazy
from mnemarch.model.value import Frozen
from mnemarch.text.cache import pattern
from mnemarch.text.words import entries, grouped, listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import ast_grep_py as ast_grep
    from ast_grep_py import SgNode
else:
    ast_grep = Lazy("ast_grep_py")

_VOTES_MIN = 3
# Not every function needs a docstring, so this habit takes a larger share of the votes.
_SHARE_MIN = {"comment": 0.9}
_SHARE_MIN_USUAL = 0.8
# The lower bound of Wilson's interval at 90 % must be above one half.
_Z = 1.645
_SNAKE = r"_*[a-z0-9]+(_[a-z0-9]+)+"
_CAMEL = r"_*[a-z]+[a-z0-9]*([A-Z][a-z0-9]*)+"
# Names that a framework prescribes say nothing about the author's habits.
_LAID_DOWN = r"test_|visit_|do_[A-Z]|setUp|tearDown|maxDiff|asyncSetUp|runTest|__"
# Folders whose code uses the package from outside. Its imports say nothing about the package's habits.
_OUTSIDE = frozenset(listed("habits", "outside"))
_TEST = r"(?:^|[/\\_.])tests?(?:[/\\_.]|$)"
_TOPICS = ("naming", "comment", "style", "quotes", "imports", "assertions")
# A shorter function needs no docstring, so the lack of one is no vote.
_DOCUMENTED_LINES_MIN = 3
# By language: the kinds of nodes that declare a name, and the field with the name; empty if the node is the name.
_DECLARED = {
    language: dict(word.split(":") for word in words) for language, words in grouped("habits", "declaring").items()
}
# The kinds of nodes that contain names which no other node declares.
_HOLD_NAMES = frozenset(listed("habits", "holding names"))
# The kinds of nodes that have a body and are not functions.
_NO_FUNCTIONS = frozenset({"for_statement"})
_WRITTEN_AS = {"typescript": "TypeScript and JavaScript", "go": "Go", "java": "Java", "rust": "Rust"}
_DOC_COMMENT = {"typescript": "/**", "java": "/**", "rust": "///", "go": "//"}
# The choice of a vote for both ways.
MIXED = "mixed"
_SEARCH_TOOLS = r"(?i)\b(rg|grep|ripgrep|find|fd|glob|search|\w+_search)\b"
_LONG_TASK_STEPS, _BATCH_CALLS, _MANY_FILES = 10, 3, 5


def sentence_for(topic: str, choice: str) -> str:
    """The habit as a sentence, or "" for a choice that only counts against others."""
    if topic == "tool":
        return f"Code is searched with {choice}."
    name, _, language = topic.partition(":")
    said = dict(line.split(": ", 1) for line in entries("habits", "sentences")).get(f"{name} {choice}", "")
    return said.format(f" in {_WRITTEN_AS[language]}" if language else "")


class Tally(Frozen):
    """The votes on one topic: the leading choice, its votes, and all votes."""

    topic: str
    choice: str
    votes: int
    of: int

    @property
    def is_declared(self) -> bool:
        """Whether this is a habit and not chance: enough votes, a large share, and significantly more than half."""
        share, share_min = self.votes / self.of, _SHARE_MIN.get(self.topic.partition(":")[0], _SHARE_MIN_USUAL)
        is_clear = self.votes >= _VOTES_MIN and share >= share_min and _lower_bound(share, self.of) > 0.5
        return is_clear and bool(sentence_for(self.topic, self.choice))


def _lower_bound(share: float, count: int) -> float:
    spread = _Z * sqrt(share * (1 - share) / count + _Z * _Z / (4 * count * count))
    return (share + _Z * _Z / (2 * count) - spread) / (1 + _Z * _Z / count)


def tallies(votes: Iterable[Mapping[str, str]]) -> list[Tally]:
    """The tallies of the votes of many patches or tasks, by topic. A mixed vote supports no choice."""
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
    """The votes of a patch, by topic: the most frequent choice in the code that it introduces.

    The vote is "mixed" if there is a tie, or if the file mostly does otherwise. If the patch introduces nothing on a
    topic, the file votes as far as the patch shows it. On docstrings, only new functions vote.
    """
    written = language_of(path) if path else "python"
    language = "typescript" if written in {"javascript", "tsx"} else written
    if language not in _DECLARED or max(len(before), len(after)) > SOURCE_CHARS_MAX:
        return {}
    sides = [_Shown(text, language, written or "", path).by_topic for text in (before, after)]
    votes = {}
    for topic, shown in sides[1].items():
        introduced, around = _majority(_choices(shown - sides[0][topic])), _majority(_choices(shown))
        choice = introduced or ("" if topic == "comment" else around)
        if choice:
            votes[topic if language == "python" else f"{topic}:{language}"] = choice if around == choice else MIXED
    return votes


def interaction_votes(tools: Sequence[str], steps: int, files: int) -> dict[str, str]:
    """The votes of a task's log: its most used search tool, its way of working, and how many files it touched (M15)."""
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


def _dedented(source: str) -> str:
    """A part of a file without its common margin. `textwrap.dedent` would load `re`, which slows a hook."""
    lines = source.splitlines()
    margin = min((line[: -len(line.lstrip())] for line in lines if line.strip()), key=len, default="")
    return "\n".join(line.removeprefix(margin) for line in lines)


class _Shown:
    """The choices in a text by topic, as counted pairs of an item and its choice. The text may be a part of a file."""

    def __init__(self, source: str, language: str, written: str, path: str) -> None:
        self._language, self._has_types = language, written not in {"javascript", "go", "java", "rust"}
        self._own = set(path.replace("\\", "/").split("/")[:-1])
        self._is_test = pattern(_TEST).search(path) is not None
        self.by_topic: dict[str, Counter[tuple[str, str]]] = {topic: Counter() for topic in _TOPICS}
        waiting = [ast_grep.SgRoot(_dedented(source), language).root()]
        while waiting:
            node = waiting.pop()
            # Code inside an f-string has to use the other quotes.
            waiting += node.children() if node.kind() != "interpolation" else []
            for topic, what, choice in self._told_by(node):
                self.by_topic[topic][what, choice] += 1
        # A name counts once, however often it is assigned.
        self.by_topic["naming"] = Counter(dict.fromkeys(self.by_topic["naming"], 1))

    def _told_by(self, node: SgNode) -> Iterator[tuple[str, str, str]]:
        kind, text = node.kind(), ""
        if kind in _DECLARED[self._language]:
            field = _DECLARED[self._language][kind]
            named = node.field(field) if field else node
            text = named.text() if named is not None else ""
        elif kind == "identifier" and (parent := node.parent()) is not None and parent.kind() in _HOLD_NAMES:
            text = node.text()
        for name in pattern(r"\w+").findall(text):
            # An exported name of Go begins with a capital.
            yield from _cased(name[:1].lower() + name[1:] if self._language == "go" else name)
        if text and node.field("body") is not None and kind not in _NO_FUNCTIONS:
            if not pattern(_LAID_DOWN).match(text):
                yield from self._told_by_function(node, text)
        elif kind == "string":
            yield from _quoted(node.text())
        elif kind == "import_from_statement" and _OUTSIDE.isdisjoint(self._own):
            module = node.field("module_name")
            first = module.text().partition(".")[0] if module is not None else ""
            if not first or first in self._own:  # An import of its own package, named like a folder of the path.
                yield "imports", node.text(), "absolute" if first else "relative"
        elif self._is_test and kind == "assert_statement":
            yield "assertions", node.text(), "assert"
        elif self._is_test and kind == "call" and node.text().startswith("self.assert"):
            yield "assertions", node.text(), "unittest"

    def _told_by_function(self, function: SgNode, name: str) -> Iterator[tuple[str, str, str]]:
        """The choices of a function: doc comment and type hints. Absence counts only where they could be expected."""
        body, parameters = function.field("body"), function.field("parameters")
        lines = body.range().end.line - body.range().start.line + 1 if body is not None else 0
        word = "docstring" if self._language == "python" else "doc_comment"
        if self._is_documented(function):
            yield "comment", name, word
        elif lines >= _DOCUMENTED_LINES_MIN:
            yield "comment", name, f"no_{word}"
        declared = [each for each in parameters.children() if each.is_named()] if parameters is not None else []
        if not self._has_types:
            return  # In the other languages types are required, or there are none.
        if function.field("return_type") is not None or any(each.field("type") is not None for each in declared):
            yield "style", name, "type_hints"
        elif any(each.text() not in {"self", "cls"} for each in declared):
            yield "style", name, "no_type_hints"

    def _is_documented(self, function: SgNode) -> bool:
        if self._language == "python":
            body = function.field("body")
            first = next((each for each in body.children() if each.is_named()), None) if body is not None else None
            inner = first.children()[:1] if first is not None and first.kind() == "expression_statement" else []
            return bool(inner) and inner[0].kind() == "string"
        parent = function.parent()
        outer = parent if parent is not None and parent.kind() == "export_statement" else function
        above = outer.prev()
        while above is not None and above.kind() == "attribute_item":
            above = above.prev()
        is_near = above is not None and above.range().end.line >= outer.range().start.line - 1
        return above is not None and is_near and above.text().startswith(_DOC_COMMENT[self._language])


def _cased(name: str) -> Iterator[tuple[str, str, str]]:
    """The naming choice of a name. A name of one word shows none."""
    if not pattern(_LAID_DOWN).match(name):
        if pattern(_SNAKE).fullmatch(name):
            yield "naming", name, "snake_case"
        elif pattern(_CAMEL).fullmatch(name):
            yield "naming", name, "camelCase"


def _quoted(written: str) -> Iterator[tuple[str, str, str]]:
    """The quoting choice of a string. A string that contains quotes, or has triple quotes, shows none."""
    plain = written.lstrip("rbuRBU")
    if plain[:1] in {"'", '"'} and plain[:3] not in {"'''", '"""'} and not set(plain[1:-1]) & {"'", '"'}:
        yield "quotes", plain[1:-1], "single" if plain[0] == "'" else "double"
