"""Words that say little of what a text is about: one list, and the part of it that each reader leaves out."""

from __future__ import annotations

_DETERMINERS = "a an the this that these those"
_AUXILIARIES = "am is are be been being do does has have"
_PAST_AND_FUTURE = "was were did had will would"
_PREPOSITIONS = "in into from at for by as"
_PRONOUNS = (
    "i me myself we us ourselves you yourself he him himself she herself it its itself they them themselves i'm i've"
    " you're you've we're we've they're they've let's"
)
_FILLERS = "there here so very just also doing done having s t re ve ll d m"
# Frequent words that still tell whose, when, where, how much or whether it may be.
_FREQUENT = """
and or but if then than on onto to with without about over under up down out off my mine our ours your yours his her
hers their theirs who whom whose which what when where why how shall should can could may might must not no nor only own
same such too any all some both each few more most other because while during before after again further once i'll i'd
you'll you'd he's she's it's we'll they'll that's there's what's who's where's how's don't doesn't didn't isn't aren't
wasn't weren't hasn't haven't hadn't won't wouldn't can't couldn't shouldn't
"""
# What else a rewording may add or drop.
_OF_REWORDING = (
    "of it its we our you your they their he she i shall should to on with and or then so also now currently always"
    " please just only there here"
)


def _words(*lists: str) -> frozenset[str]:
    return frozenset(word for words in lists for word in words.split())


# What carries grammar alone: a skeleton goes without it.
LIGHT_WORDS = _words(_DETERMINERS, _AUXILIARIES, _PAST_AND_FUTURE, _PREPOSITIONS, "of")
# What tells nothing of whose, when, where, how much or whether it may be.
EMPTY_WORDS = _words(_DETERMINERS, _AUXILIARIES, _PRONOUNS, _FILLERS, "of")
# The closed classes of English: a search goes without them.
STOP_WORDS = EMPTY_WORDS | LIGHT_WORDS | _words(_FREQUENT)
# What a rewording may add or drop without saying anything else.
REWORDING_WORDS = (LIGHT_WORDS - {"am", "into"}) | _words(_OF_REWORDING)

# Korean particles that may come, go or stand for each other: topic and subject, object, possessive, politeness.
FREE_PARTICLES = (
    frozenset(["", "은", "는", "이", "가"]),
    frozenset(["", "을", "를"]),
    frozenset(["", "의"]),
    frozenset(["", "요", "좀"]),
)
