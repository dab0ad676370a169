"""Habits of a project (M14, M15). Verified tasks vote in its log, and a clear majority becomes a preference."""

from __future__ import annotations

from collections import Counter
from math import sqrt

from mnemarch.code.symbols import SOURCE_CHARS_MAX, language_of
from mnemarch.lazy import Lazy
from mnemarch.model.caller import GATE, Caller, Level, Scope
from mnemarch.model.event import Event, EventType
from mnemarch.model.unit import KEPT_AS, LESSON, TRUSTED, Claim, Kind, Unit
from mnemarch.model.value import Frozen
from mnemarch.text.cache import pattern
from mnemarch.text.edits import Edit, netted
from mnemarch.text.words import entries, grouped, listed
from mnemarch.units.analysis import edits_told
from mnemarch.units.finding import refusal_to_repeat
from mnemarch.units.remember import record_unit
from mnemarch.units.status import change, retire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from typing import Any

    import ast_grep_py as ast_grep
    from ast_grep_py import SgNode

    from mnemarch.log.act import Act
    from mnemarch.stores.sql.reader import Reader

    # By the name of a vote: its choice for each topic, and the ids of the log entries behind it.
    Votes = dict[str, tuple[dict[str, str], list[str]]]
else:
    ast_grep = Lazy("ast_grep_py")

_UNITS_MAX = 5_000
# Only the newest votes count, since a habit may change.
_VOTES_MAX = 400
_ENTRIES_MAX = 20
_TOPIC = "habit"
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
_MIXED = "mixed"
_SEARCH_TOOLS = r"(?i)\b(rg|grep|ripgrep|find|fd|glob|search|\w+_search)\b"
_LONG_TASK_STEPS, _BATCH_CALLS, _MANY_FILES = 10, 3, 5


def keeper(caller: Caller) -> Caller:
    """The caller in whose name habits are kept: the gate, at the level of the project."""
    return Caller(GATE, caller.scope.at(Level.PROJECT), caller.session, caller.root)


def habits_in(reader: Reader, scope: Scope) -> dict[str, Unit]:
    """The habits of a project, by topic."""
    units = reader.units_in([scope.at(Level.PROJECT).key], kind=Kind.PREFERENCE, live=True, limit=_UNITS_MAX)
    return {str(unit.attributes[_TOPIC]): unit for unit in units if unit.is_derived and _TOPIC in unit.attributes}


def vote(act: Act, episode_id: str, votes: Sequence[tuple[dict[str, str], list[str]]]) -> list[Unit]:
    """Record the votes of a task, once. Returns the habits that changed."""
    key = f"habits:{episode_id}"
    if not votes or act.transaction.event_for_key(act.caller.scope_key, str(act.caller.actor), key) is not None:
        return []
    told = {"episode": episode_id, "votes": [each for each, _ in votes], "entries": [ids for _, ids in votes]}
    _note(act, f"What the patches of episode {episode_id} vote for.", told, key)
    return _recounted(act)


def resting_on(act: Act, covers: Callable[[Event], bool]) -> list[str]:
    """The names of the votes whose entries are all covered by `covers`."""
    names = []
    for name, (_, entry_ids) in _standing(act.transaction, act.caller.scope).items():
        entries = [event for id in entry_ids if (event := act.transaction.event(id)) is not None]
        if entries and all(map(covers, entries)):
            names.append(name)
    return names


def unfounded(act: Act, withdrawn: Collection[str]) -> list[Unit]:
    """The habits that would not be declared without these votes."""
    votes = _standing(act.transaction, act.caller.scope)
    supported = {pair for name in withdrawn for pair in votes[name][0].items()}
    tallied = tallies(each for name, (each, _) in votes.items() if name not in withdrawn)
    lost = supported - {(tally.topic, tally.choice) for tally in tallied if tally.is_declared}
    habits = habits_in(act.transaction, act.caller.scope).items() if lost else ()
    return [unit for topic, unit in habits if (topic, unit.attributes["choice"]) in lost]


def withdraw(act: Act, names: Sequence[str], why: str) -> str:
    """Withdraw votes. Returns the event id that `bring_back` takes."""
    event = _note(act, f"Votes withdrawn: {why}", {"withdrawn": list(names)})
    _recounted(act)
    return event.id


def bring_back(act: Act, withdrawal: str) -> int:
    """Revert a withdrawal of votes. Returns how many count again."""
    _note(act, "Votes count again.", {"reverts": withdrawal})
    _recounted(act)
    event = act.transaction.event(withdrawal)
    return len(event.payload["data"]["withdrawn"]) if event is not None and event.payload else 0


def _note(act: Act, text: str, data: dict[str, Any], key: str | None = None) -> Event:
    keeping = act.by(keeper(act.caller))
    payload = {"kind": "habits", "text": text, "data": data}
    return keeping.record(EventType.LOGGED, payload, subject=f"habits:{keeping.caller.scope_key}", key=key)[0]


def _standing(reader: Reader, scope: Scope) -> Votes:
    """The newest votes that are not withdrawn, oldest first."""
    votes: Votes = {}
    withdrawn: dict[str, list[str]] = {}
    for event in reader.events_of_subject(f"habits:{scope.at(Level.PROJECT).key}", last=_VOTES_MAX):
        data = (event.payload or {}).get("data") or {}
        cast = zip(data.get("votes", ()), data.get("entries", ()), strict=False)
        votes |= {f"{event.id}:{at}": each for at, each in enumerate(cast)}
        withdrawn[event.id] = data.get("withdrawn", [])
        withdrawn.pop(data.get("reverts", ""), None)
    gone = {name for names in withdrawn.values() for name in names}
    return {name: votes[name] for name in [name for name in votes if name not in gone][-_VOTES_MAX:]}


def _recounted(act: Act) -> list[Unit]:
    """Recount the votes and update the habits. Returns those that changed."""
    known = habits_in(act.transaction, act.caller.scope)
    tallied = tallies(each for each, _ in _standing(act.transaction, act.caller.scope).values())
    changed = [_declared(act.by(keeper(act.caller)), tally, known.get(tally.topic)) for tally in tallied]
    return [unit for unit in changed if unit is not None]


def _declared(act: Act, tally: Tally, known: Unit | None) -> Unit | None:
    """The habit of a topic, if it is new or has new counts. A habit without its majority is archived or superseded."""
    attributes: dict[str, Any] = {
        KEPT_AS: LESSON,
        "kept_by": f"{tally.votes} of {tally.of} votes",
        _TOPIC: tally.topic,
        "choice": tally.choice,
        "votes": tally.votes,
        "of": tally.of,
    }
    is_same = known is not None and known.attributes["choice"] == tally.choice and 2 * tally.votes > tally.of
    if known is not None and is_same:
        if known.attributes == attributes:
            return None
        # The text stays the same, so that a person's rejection of it still applies.
        return change(act, EventType.UNIT_VALIDATED, known, {"set": {"attributes": attributes}})
    if known is not None and known.status in TRUSTED:
        return None  # It is trusted, so counts alone don't replace it.
    if known is not None and not tally.is_declared:
        from mnemarch.units.undo import retire as archive

        archive(act, known, "patches no longer bear it out")
    content = sentence_for(tally.topic, tally.choice)
    claim = Claim(content=content, kind=Kind.PREFERENCE, level=Level.PROJECT, attributes=attributes)
    if not tally.is_declared or refusal_to_repeat(act, claim) is not None:
        return None
    event, _ = record_unit(act, claim, None)
    if known is not None:
        retire(act, known, str(event.subject), "patches now vote for another habit")
    return act.known_unit(event.subject)


def edits_in(entries: Iterable[Event]) -> list[Edit]:
    """The net edits of the entries. Entries with a patch are skipped, since a patch shows only parts of the file.

    Intermediate edits that did not last are left out: they are no habit.
    """
    whole = (event for event in entries if "patch" not in ((event.payload or {}).get("data") or {}))
    return [edit for edit in netted(edits_told(whole)) if edit.changes and edit.after]


def votes_of(entries: Sequence[Event]) -> list[tuple[dict[str, str], list[str]]]:
    """The votes of a task: one for each edited file, and one for the task itself. Each comes with its entries."""
    by_file: dict[str, tuple[dict[str, Counter[str]], list[str]]] = {}
    for edit in edits_in(entries):
        topics, ids = by_file.setdefault(edit.path, ({}, []))
        ids.append(edit.sources[-1].id)
        for topic, choice in style_votes(edit.before, edit.after, edit.path).items():
            topics.setdefault(topic, Counter())[choice] += 1
    votes = [
        ({topic: count.most_common(1)[0][0] for topic, count in topics.items()}, ids[-_ENTRIES_MAX:])
        for topics, ids in by_file.values()
    ]
    datas: list[dict[str, Any]] = [(event.payload or {}).get("data") or {} for event in entries]
    tools = [str(data.get("tool") or data.get("command")) for data in datas if data.get("tool") or data.get("command")]
    files = {data["path"] for data in datas if isinstance(data.get("path"), str)}
    steps = sum((event.payload or {}).get("kind") == "step" for event in entries)
    own = interaction_votes(tools, steps or len(entries), len(files)), [event.id for event in entries[-_ENTRIES_MAX:]]
    return [each for each in (*votes, own) if each[0]]


# Votes, read from the code that patches introduce and from the logs of tasks (R17)


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
        topic: max(count.items(), key=lambda each: (each[0] != _MIXED, each[1])) for topic, count in counts.items()
    }
    return [
        Tally(topic, choice, 0 if choice == _MIXED else votes_for, counts[topic].total())
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
            votes[topic if language == "python" else f"{topic}:{language}"] = choice if around == choice else _MIXED
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
    return first if count > second else _MIXED if count else ""


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
