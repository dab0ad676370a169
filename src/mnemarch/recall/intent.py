"""What a question is after (M5): by rules, in English and Korean. A hint for ranking, never a filter. Pure."""

from __future__ import annotations

from mnemarch.model.value import value
from mnemarch.policy.kinds import kinds_where


@value
class Intent:
    """A name, and the kinds of unit that it prefers."""

    name: str
    kinds: frozenset[str]


def _intent(name: str) -> Intent:
    return Intent(name, kinds_where(lambda rules: name in rules.intents))


PROFILE = _intent("PROFILE")
PREFERENCE = _intent("PREFERENCE")
RECALL = _intent("RECALL")
KNOWLEDGE = _intent("KNOWLEDGE")
DEBUG = _intent("DEBUG")
# No kind is preferred: all buckets count alike.
GENERAL = _intent("GENERAL")

# The first that fits, from the most telling signs to the least: English, then Korean.
_DEBUG = (
    "error|exception|traceback|stack trace|crash|fails|failing|failed|bug|broken|debug|doesn't work|not working"
    "|timed out|segfault|panic",
    "오류|에러|예외|버그|실패|디버|안 돼|안돼|안 되|고장|죽는|멈추|터지|깨지",
)
_PREFERENCE = (
    "prefer|favorite|favourite|like to use|style|convention|habit|usually use",
    "선호|좋아하|취향|스타일|관례|습관|즐겨",
)
_PROFILE = (
    "who am i |my name |my role|tech stack|which stack|what stack|about me |my team",
    "내 이름|제 이름|내 역할|기술 스택|우리 팀은|나는 누구",
)
_RECALL = (
    "last time|did we |did i |have we |have i |what happened|when did|remember when|previously|earlier|yesterday"
    "|last week|history of|how did",
    "지난번|저번|어제|언제|했었|했던|기억나|이전에|예전에|지난주|무슨 일",
)
_KNOWLEDGE = (
    "what is|what are|what does|how does|how do|how to|why|which|where is|explain|difference between|what's",
    "무엇|뭐|무슨|어떻게|왜|어디|어느|설명|차이|방법|이란|이유",
)
_SIGNS = ((DEBUG, _DEBUG), (PREFERENCE, _PREFERENCE), (PROFILE, _PROFILE), (RECALL, _RECALL), (KNOWLEDGE, _KNOWLEDGE))


def intent_of(text: str) -> Intent:
    """The intent of a question; GENERAL if nothing tells."""
    lowered = " ".join(word.strip(".,?!") for word in text[:2_000].casefold().split())
    # At the beginning of a word; with a plural or an ending it is the same sign.
    spaced = f" {lowered} "
    for intent, (english, korean) in _SIGNS:
        if any(f" {sign}" in spaced for sign in english.split("|")):
            return intent
        if not lowered.isascii() and any(sign in lowered for sign in korean.split("|")):
            return intent
    return GENERAL
