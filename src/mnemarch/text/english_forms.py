"""English for search: words that say nothing of what a text is about, and forms that no stemmer brings together."""

from __future__ import annotations

from functools import cache

# Closed classes only: articles, pronouns, auxiliaries, conjunctions, prepositions, question words and quantifiers.
_STOP_WORDS = """
a an the and or but if then than so as of at by for from in into on onto to with without about over under up down out
off i me my mine myself we us our ours ourselves you your yours yourself he him his himself she her hers herself it its
itself they them their theirs themselves this that these those there here who whom whose which what when where why how
am is are was were be been being do does did doing done have has had having will would shall should can could may might
must not no nor only own same such too very just also any all some both each few more most other because while during
before after again further once i'm i've i'll i'd you're you've you'll you'd he's she's it's we're we've we'll they're
they've they'll that's there's what's who's where's how's let's don't doesn't didn't isn't aren't wasn't weren't hasn't
haven't hadn't won't wouldn't can't couldn't shouldn't s t re ve ll d m
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

# Of these, what tells nothing of whose, when, where, how much or whether it may be.
_EMPTY_WORDS = """
a an the this that these those there here of so very just also i me myself we us ourselves you yourself he him himself
she herself it its itself they them themselves am is are be been being do does doing done have has having i'm i've
you're you've we're we've they're they've let's s t re ve ll d m
"""
EMPTY_WORDS = frozenset(_EMPTY_WORDS.split())

_VERBS = """
go: went gone goes | buy: bought | bring: brought | think: thought | teach: taught | catch: caught | seek: sought
fight: fought | feel: felt | keep: kept | sleep: slept | leave: left | meet: met | tell: told | sell: sold | say: said
pay: paid | make: made | hold: held | hear: heard | build: built | send: sent | spend: spent | lend: lent | lose: lost
win: won | begin: began begun | drink: drank drunk | sing: sang sung | swim: swam swum | ring: rang rung | run: ran
come: came | become: became | see: saw seen | give: gave given | take: took taken | write: wrote written
drive: drove driven | ride: rode ridden | rise: rose risen | choose: chose chosen | speak: spoke spoken
break: broke broken | wake: woke woken | steal: stole stolen | freeze: froze frozen | eat: ate eaten
fall: fell fallen | know: knew known | grow: grew grown | throw: threw thrown | fly: flew flown | draw: drew drawn
show: shown | wear: wore worn | tear: tore torn | bear: bore born | swear: swore sworn | hide: hid hidden
bite: bit bitten | forget: forgot forgotten | get: got gotten | stand: stood | understand: understood | find: found
lead: led | feed: fed | bleed: bled | sit: sat | shoot: shot | stick: stuck | strike: struck | hang: hung | dig: dug
shake: shook shaken | speed: sped | bend: bent | burn: burnt | learn: learnt | dream: dreamt | deal: dealt
mean: meant | slide: slid | spin: spun | sweep: swept | weep: wept | bind: bound | grind: ground | lay: laid | lie: lain
"""
_NOUNS = """
child: children | man: men | woman: women | person: people | foot: feet | tooth: teeth | mouse: mice | wife: wives
life: lives | knife: knives | shelf: shelves | half: halves | loaf: loaves
"""
_DEGREES = "good: better best | bad: worse worst"


@cache
def irregular_forms() -> dict[str, str]:
    """For each irregular form the word it is a form of."""
    entries = (_VERBS + _NOUNS + _DEGREES).replace("\n", "|").split("|")
    pairs = (entry.split(":") for entry in entries if ":" in entry)
    return {form: word.strip() for word, forms in pairs for form in forms.split()}
