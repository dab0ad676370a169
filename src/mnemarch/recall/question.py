"""A question as recall reads it: its words and their weight, whom and when it names, and what it is after. Pure."""

from __future__ import annotations

from mnemarch.lazy import Lazy
from mnemarch.recall.intent import GENERAL, intent_of
from mnemarch.text.tokens import query_tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from mnemarch.config import RecallRules
    from mnemarch.recall.intent import Intent
    from mnemarch.text import korean, questions
    from mnemarch.text.questions import Date
else:
    korean = Lazy("mnemarch.text.korean")
    questions = Lazy("mnemarch.text.questions")

_QUERY_CHARS_MAX = 8_192
# A Korean word is several tokens and any other word one: together they should weigh the same.
_BESIDE_HANGUL = 2.0
_OF_THE_FRAME = 0.25
_ASKER = frozenset(
    {"i", "my", "me", "mine", "we", "our", "us", "i'm", "i've", "i'd", "내", "나", "내가", "제가", "우리"}
)
_ASKED = frozenset({"you", "your", "너", "네가", "당신"})


class Question:
    """What is asked. `weights` holds each distinct token with what it counts beside the others."""

    __slots__ = ("dates", "intent", "speakers", "text", "weights")

    def __init__(self, text: str, rules: RecallRules) -> None:
        self.text = text = text[:_QUERY_CHARS_MAX]
        found = query_tokens(text)
        self.weights = _weighed(text, found, frame=rules.frame)
        self.speakers = _speakers(text) if rules.speakers else frozenset()
        self.dates: Sequence[Date] = questions.dates_in(text) if rules.dates and _may_name_a_date(text) else ()
        self.intent: Intent = intent_of(text) if rules.intent else GENERAL


def _weighed(text: str, found: list[str], *, frame: bool) -> dict[str, float]:
    hangul = any(map(_is_hangul, found))
    weights = {token: 1.0 if _is_hangul(token) or not hangul else _BESIDE_HANGUL for token in found}
    if frame and len(found) > 1 and not hangul:
        core = set(query_tokens(questions.without_frame(text)))
        if core:
            weights = {token: weight if token in core else _OF_THE_FRAME for token, weight in weights.items()}
    return weights


def _is_hangul(token: str) -> bool:
    return token[0] == "^" or "가" <= token[0] <= "힣"


def _speakers(text: str) -> frozenset[str]:
    """Whose turns the question may mean: anybody it names, the user if it says I, the assistant if it says you."""
    words = {word.strip(".,?!'\"()") for word in text.casefold().replace("\u2019", "'").split()}
    named = {word.removesuffix("'s") for word in words}
    if not text.isascii():
        named |= {korean.stem(word) for word in words if word and "가" <= word[0] <= "힣"}
    if words & _ASKER:
        named.add("user")
    if words & _ASKED:
        named.add("assistant")
    return frozenset(named)


def _may_name_a_date(text: str) -> bool:
    """A cheap look before the patterns are loaded: a year, the name of a month, or the Korean signs of either."""
    if "월" in text or "년" in text:
        return True
    words = (word.strip(".,?!'\"()") for word in text.casefold().split())
    return any(word[:2] in _CENTURIES or word.removesuffix("'s")[:3] in _MONTH_SIGNS for word in words)


_CENTURIES = frozenset({"19", "20"})
_MONTH_SIGNS = frozenset({"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"})
