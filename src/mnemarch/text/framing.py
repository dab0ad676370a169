"""The frame of a question: words that say how something is asked and not what is asked for."""

from __future__ import annotations

from functools import cache

from mnemarch.lazy import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
else:
    re = Lazy("re")

_NUMBER = (
    r"(?:\d+|an?|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:a )?few|(?:a )?couple(?: of)?"
    r"|several|many)"
)
_SPAN = (
    r"(?:seconds?|minutes?|hours?|days?|nights?|mornings?|evenings?|afternoons?|weeks?|weekends?|months?|years?"
    r"|quarters?|decades?|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|spring|summer|autumn|fall|winter)"
)
# What has to be in the question for a frame to be there, and the frame. Each is compiled when it is first needed.
_FRAMES = (
    (
        "how many|how much|how long|how often|how far|how old|how soon",
        rf"how (?:many|much|long|often|far|old|soon)\b(?: (?:more|less|different|total|times?|{_SPAN}))*",
    ),
    (
        " ago| before| after| earlier| later| between| passed",
        rf"{_NUMBER} {_SPAN} (?:ago|before|after|earlier|later|between|passed|had passed|have passed)",
    ),
    (
        "last |past |previous |next |this |these |coming |recent |latest ",
        rf"(?:last|past|previous|next|this|these|coming|recent|latest) (?:{_NUMBER} )?{_SPAN}",
    ),
    (
        "start of|beginning of|end of|middle of",
        r"(?:the )?(?:start|beginning|end|middle) of the (?:day|week|month|year)",
    ),
    (
        "yesterday|today|tonight|tomorrow|lately|nowadays|right now",
        r"(?:yesterday|today|tonight|tomorrow|lately|nowadays|right now)",
    ),
    ("recently|currently|previously|so far|at the moment", r"(?:recently|currently|previously|so far|at the moment)"),
    (
        "total|number of|amount of|combined|altogether|overall",
        r"(?:in total|total number of|(?:number|amount) of|total|combined|altogether|overall)",
    ),
    (
        "the order|the name|the date|the time|the reason|the type|the kind|the sort",
        r"(?:what|which) (?:is|are|was|were) the (?:order|name|date|time|reason|type|kind|sort)s? "
        r"(?:of|when|on which|at which|for)",
    ),
    (
        "name of|names of|kind of|kinds of|type of|types of|sort of|sorts of|order of",
        r"(?:names?|kinds?|types?|sorts?|order) of",
    ),
    (
        "what kind|what type|what sort|what time|what date|what day|what month|what year|what name|which kind"
        "|which type|which sort|which time|which date|which day|which month|which year|which name",
        r"(?:what|which) (?:kind|type|sort|time|date|day|month|year|name)s?",
    ),
    (
        " to latest| to earliest| to last| to newest| to oldest",
        r"(?:from )?(?:earliest to latest|latest to earliest|first to last|oldest to newest|newest to oldest)",
    ),
    ("different", "different"),
    (
        "can you|could you|would you|will you",
        r"(?:can|could|would|will) you (?:please )?(?:also )?"
        r"(?:tell|remind|recommend|suggest|give|show|help|explain|clarify|find|list|share)\b(?: me)?",
    ),
    ("tell me|remind me|show me|give me", r"(?:please )?(?:tell|remind|show|give) me"),
    (
        "suggestion|tips|advice|ideas|recommendation",
        r"(?:any|some|other) (?:suggestions?|tips|advice|ideas|recommendations?)",
    ),
    (
        "i mentioned|i said|i told|i was wonder|i wonder|i remember|i recall|i wanted",
        r"i (?:mentioned|said|told you|was wondering|wonder|remember|recall|wanted to (?:know|ask|clarify))",
    ),
    (
        "going back|going through|looking back|looking through",
        r"(?:i was |i'm |i am )?(?:going|looking) (?:back|through)(?: at| to| over)?",
    ),
    (
        "conversation|chat|discussion|talk|session|message",
        r"(?:(?:our|your|the|my) )?(?:previous|last|earlier|past) "
        r"(?:conversation|chat|discussion|talk|session|message)s?",
    ),
    (
        " mention| describe| say| share| tell| talk about",
        r"(?:did|does|do|has|have|is|was|were|are|had) (?!(?:the|an?|our|my|your|this|that) )(?:\w+ ){1,4}?"
        r"(?:mention|describe|say|share|tell|talk about)",
    ),
)


def without_frame(question: str) -> str:
    """What is left of an English question without its frame: "how many times did we deploy" asks for deploying."""
    lowered = question.lower()
    if len(lowered) != len(question):
        return question
    spans = [
        match.span()
        for number, (signs, _) in enumerate(_FRAMES)
        if any(sign in lowered for sign in signs.split("|"))
        for match in _frame(number).finditer(lowered)
    ]
    kept = list(question)
    for start, end in spans:
        kept[start:end] = " " * (end - start)
    return "".join(kept)


@cache
def _frame(number: int) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{_FRAMES[number][1]})\b")
