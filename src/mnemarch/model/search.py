"""The sketch of a unit that search ranks by, its BM25 score, and the answers of recall."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import log
from sys import intern

from mnemarch.model.unit import Searchable, Unit
from mnemarch.model.value import Frozen

# Sums of what neighbours share and of what strangers share in the sessions of a project, and the number of pairs.
Sums = tuple[float, float, int]

_BETWEEN = "\x1f"


class Sketch:
    """What ranking knows of a unit without loading it: its words, its place in a conversation, its time and importance.

    It is a plain class, since hundreds are made for each question. In `words`, each distinct word has a space on both
    sides, and a repeated word is followed by a colon and its count: " retry :3 pool  timeout ". So one string search
    counts a word. Names made of these words follow them and don't count in `length`. `signs` encodes the kind of turn
    (see `text/conversation.py`).
    """

    __slots__ = (
        *("id", "importance", "kind", "length", "occurred_at", "scope_key", "session", "signs"),
        *("speaker", "state", "turn", "words"),
    )

    def __init__(
        self, unit: Searchable, speaker: str, words: list[str], signs: str = "", names: Sequence[str] = ()
    ) -> None:
        self.id = unit.id
        self.scope_key = unit.scope_key
        self.state = unit.state
        self.kind = unit.kind
        self.session = unit.session or ""
        self.turn = unit.turn
        self.occurred_at = unit.occurred_at
        self.importance = unit.importance
        self.speaker = speaker
        self.signs = signs
        self.length = len(words)
        words = [*words, *names]
        counted = dict.fromkeys(words, 0)
        if len(counted) == len(words):
            self.words = f" {'  '.join(words)} " if words else ""
            return
        for word in words:
            counted[word] += 1
        self.words = "".join([f" {word} " if count == 1 else f" {word} :{count}" for word, count in counted.items()])

    @property
    def place(self) -> str:
        return place(self.session, self.turn)

    def count(self, needle: str) -> int:
        """How often a word occurs. The needle is the word with a space on both sides."""
        _, found, after = self.words.partition(needle)
        return int(after[1:].partition(" ")[0]) if after[:1] == ":" else int(found == needle)

    def distinct(self) -> list[str]:
        """Each word once."""
        return [part for part in self.words.split() if part[0] != ":"]

    def counted(self) -> Iterator[tuple[str, int]]:
        """Each distinct word and how often it occurs."""
        parts = self.words.split()
        for word, after in zip(parts, [*parts[1:], ""], strict=False):
            if word[0] != ":":
                yield word, int(after[1:]) if after[:1] == ":" else 1

    def to_line(self) -> str:
        """The stored form."""
        texts = (self.id, self.scope_key, self.state, self.kind, self.session, self.speaker, self.signs)
        numbers = (self.turn, self.occurred_at, self.importance, self.length)
        return _BETWEEN.join([*[text.replace(_BETWEEN, "") for text in texts], *map(repr, numbers), self.words])

    @classmethod
    def from_line(cls, line: str) -> Sketch:
        made = cls.__new__(cls)
        made.id, made.scope_key, made.state, made.kind, made.session, made.speaker, made.signs, *rest = line.split(
            _BETWEEN
        )
        # Sketches are cached by the thousand, and many share these.
        made.scope_key, made.session, made.speaker = intern(made.scope_key), intern(made.session), intern(made.speaker)
        turn, occurred_at, importance, length, made.words = rest
        made.turn = int(turn)
        made.occurred_at = int(occurred_at)
        made.importance = float(importance)
        made.length = int(length)
        return made


_K1, _B = 1.2, 0.75


def rarity(seen: int, documents: int) -> float:
    """The inverse document frequency of a word that occurs in `seen` of `documents` texts."""
    return log(1 + (documents - seen + 0.5) / (seen + 0.5))


def bm25(sketch: Sketch, weights: Mapping[str, float], mean_length: float) -> float:
    """The Okapi BM25 score of a text for a question of weighted words."""
    damping = _K1 * (1 - _B + _B * sketch.length / mean_length)
    total = 0.0
    for word, weight in weights.items():
        count = sketch.count(f" {word} ")
        if count:
            total += weight * count * (_K1 + 1) / (count + damping)
    return total


def place(session: str, turn: int) -> str:
    """The name of a turn of a session."""
    return f"{turn}@{session}"


class Recalled(Frozen):
    """One unit that recall handed out, with its score, the reasons, its label, and notes on its evidence.

    `elsewhere`: the tests that verified it are not in the reader's tree, or expect something else there.
    """

    unit: Unit
    score: float
    tier: int
    why: Mapping[str, float]
    label: str
    notes: tuple[str, ...] = ()
    elsewhere: bool = False


class Withheld(Frozen):
    """One unit that matched but was not handed out, and the reason."""

    unit_id: str
    reason: str


# The beginning of a note that says that an answer was not recorded.
UNRECORDED = "Not recorded"


class Found(Frozen):
    """The answer to a recall: the binding units, which hold for every question, and the units found (R10).

    `unlisted` counts the binding units beyond the limit of `binding`. `notes` are remarks on the answer itself. `fit`
    is the likelihood, from 0 to 1, that anything in memory answers the question.
    """

    items: tuple[Recalled, ...]
    withheld: tuple[Withheld, ...]
    intent: str
    notes: tuple[str, ...] = ()
    binding: tuple[Recalled, ...] = ()
    unlisted: int = 0
    fit: float = 0.0


class Pack(Frozen):
    """One text for a model within a token budget, the units in it (`binding`, then `items`), and those left out."""

    text: str
    items: tuple[Recalled, ...]
    left_out: tuple[Withheld, ...]
    withheld: tuple[Withheld, ...]
    tokens: int
    budget: int
    notes: tuple[str, ...] = ()
    binding: tuple[Recalled, ...] = ()
