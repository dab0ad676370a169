"""The pieces of a statement, and the differences between two statements that forbid a merge (R6)."""

# ruff: noqa: RUF071 (what is compared is no path)
from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from os.path import commonprefix
from unicodedata import category

from mnemarch.model.value import Frozen
from mnemarch.text import english, korean
from mnemarch.text.cache import BoundedCache, cached, pattern
from mnemarch.text.canonical import compatible
from mnemarch.text.words import LIGHT_WORDS, comparison_signs, contradictory_groups, opposites

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable

# The type of a piece (number, negation, opposite, quoted, identifier or word), the key it is compared by, its form in a
# skeleton, its original text, and the Korean particle attached to it.
Piece = tuple[str, str, str, str, str]
_NOTHING: Piece = ("", "", "", "", "")

_HANGUL_WORDS = "[\u1100-\u11ff가-힣]+"
_EAST_ASIAN = "\u1100-\u11ff\u3040-\u9fff가-힣"
_SIGNS = {"+": "sum+", "-": "sum-"}
# Groups of opposites for the extent of a statement and not its subject. A skeleton leaves them out.
EXTENTS = frozenset({"always", "all", "everybody", "must", "sum"})
_NUMBER = (
    r"#?(?P<sign>[-+~^]?)(?P<money>[$€£¥₩]?)"
    r"(?P<body>0x[0-9a-fA-F]+|\d+(?:\.\d+)?[eE][-+]?\d+|\d+/\d+|[vV]?\d+(?:[.:,]\d+)*(?:\.[xX*])?|\.\d+)"
    r"(?P<suffix>%|[A-Za-zµμ]{0,12})"
)
_THOUSANDS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?"
_JOINTS = "([-+:~^#%.]+)"
# How many light words may be between a negation and the denied word.
_LIGHT_BETWEEN_MAX = 16
# A chunk with joining marks that is one identifier: a path, a flag, a dotted or snake_case name.
_IDENTIFIER = r"[_/\\@$]|^--?[^\W\d]|\w\.\w|::|\w\+\+$|^[a-zA-Z]#$|^#[^\W\d]|^\.[a-zA-Z]"
_COMPARED_CHARS_MAX = 4_096
# 지 않는다, 면 안 된다, 서는 안 된다.
_AFTER_WHAT_IS_DENIED = frozenset(f"{korean.DENYING_WHAT_IS_BEFORE}면으서선")


# Cached because a bulk write compares each text with the same few neighbours.
@cached(512)
def pieces(text: str, *, unquoted: bool = False) -> tuple[Piece, ...]:
    """The pieces in order. `unquoted` reads a quoted single identifier as if it had no quotes."""
    text = compatible(text)
    scan = _Scan(shouted=text.isascii() and text.isupper())
    for match in _lexemes(text.isascii()).finditer(text):
        scan.read(match.lastgroup, match[0], match.start(), unquoted=unquoted)
        scan.read_to = match.end()
    return tuple(scan.pieces)


class _Scan:
    """Reads one text from left to right. Units and number words change the number before them."""

    __slots__ = ("ended_at", "number_at", "number_end", "pieces", "read_to", "shouted", "spelled")

    def __init__(self, *, shouted: bool) -> None:
        self.pieces: list[Piece] = []
        self.shouted = shouted
        self.number_at = self.number_end = -1
        # The end of the last piece of a Hangul phrase. Text attached there is an ending.
        self.ended_at = -1
        # The end of the previous lexeme.
        self.read_to = 0
        self.spelled = 0

    def read(self, what: str | None, text: str, start: int, *, unquoted: bool) -> None:
        if what == "words":
            for word in text.split(" "):
                if not self.has_plain_word(word):
                    self.read_part(word, start)
                start += len(word) + 1
        elif what == "chunk":
            self.read_chunk(text, start)
        elif what == "quoted":
            inner = " ".join(text[1:-1].split())
            name = _identifier_in(inner) if unquoted else None
            if name is None:
                self.add("quoted", inner, '"', inner or text)
            else:
                self.add("identifier", name, "@", inner)
        elif what in {"tag", "called"}:
            self.add("identifier", text, "@", text if what == "tag" else text + "()")
        elif what == "operator":
            if text in comparison_signs():
                self.add_opposite(*comparison_signs()[text], text)
            elif text == "!":
                self.add_negation(text)
        elif what == "hangul":
            self.read_hangul(text, start)
        elif what == "han" or category(text)[0] != "P":
            self.add("word", text, text)

    def add(self, what: str, key: str, shape: str, written: str = "") -> None:
        self.pieces.append((what, key, shape, written or key, ""))

    def add_word(self, word: str, written: str = "") -> None:
        self.add("word", word, "" if word in LIGHT_WORDS else word, written)

    def add_negation(self, written: str) -> None:
        self.add("negation", "not", "", written)

    def add_negation_after(self, written: str) -> None:
        """Add a negation that denies the word before it, as in Korean: 허용하지 않는다 means 금지한다."""
        if not (self.pieces and self.turn_around(f"{self.pieces[-1][3]} {written}")):
            self.add_negation(written)

    def is_deniable(self) -> bool:
        """Whether the last piece has an opposite that means just its negation."""
        what, key, *_ = self.pieces[-1] if self.pieces else _NOTHING
        return what == "opposite" and key[:-1] in contradictory_groups()

    def turn_around(self, written: str) -> bool:
        """Replace the denied last piece by its opposite ("not allowed" is "forbidden"). False if it has none."""
        if not self.is_deniable():
            return False
        what, key, shape, *_ = self.pieces.pop()
        group, pole = key[:-1], key[-1]
        if pole == "+":
            self.add("negation", "un", "", written)
        elif self.pieces and self.pieces[-1][:2] == ("negation", "un"):
            self.pieces.pop()
        self.add(what, group + ("-" if pole == "+" else "+"), shape, written)
        return True

    def add_opposite(self, poles: tuple[str, ...], negates: bool, written: str) -> None:
        shape = "" if poles[0][:-1] in EXTENTS else "±" + poles[0][:-1]
        denied_at = self.denial() if len(poles) == 1 else -1
        if negates:
            self.add("negation", "un", "", written)
        for pole in poles:
            self.add("opposite", pole, shape, written)
            shape = ""
        if denied_at >= 0:
            negation = self.pieces[denied_at][3]
            if self.turn_around(negation if negation.endswith(written) else f"{negation} {written}"):
                # "never X" means "always not X".
                what, key, shape, as_written, particle = self.pieces[denied_at + 1]
                key = "always+" if key == "always-" else key
                self.pieces[denied_at + 1] = (what, key, shape, as_written, particle)
                del self.pieces[denied_at]

    def denial(self) -> int:
        """The index of a negation that denies the next word, with only light words after it. -1 if there is none."""
        for at in range(len(self.pieces) - 1, max(-1, len(self.pieces) - 1 - _LIGHT_BETWEEN_MAX), -1):
            what, key, shape, *_ = self.pieces[at]
            # An article, or the hyphen of non-blocking.
            is_light = (what == "word" and not shape) or key == "sum-"
            if key == "always-" and at and self.pieces[at - 1][1] == "un":  # never, which is two pieces
                return at - 1
            if not is_light:
                return at if (what, key) == ("negation", "not") else -1
        return -1

    def add_number(self, key: str, end: int, *, written: str = "", spelled: int = 0) -> None:
        self.number_at, self.number_end, self.spelled = len(self.pieces), end, spelled
        self.add("number", key, "#", written)

    def give_unit(self, unit: str, written: str) -> None:
        what, key, shape, before, particle = self.pieces[self.number_at]
        self.pieces[self.number_at] = (what, key + unit, shape, f"{before} {written}", particle)
        self.number_at = -1

    def read_chunk(self, chunk: str, start: int) -> None:
        bare = chunk.rstrip(".:-~^@$\\").lstrip(":")
        if bare == "%" and 0 <= self.number_at == len(self.pieces) - 1:
            self.give_unit(bare, chunk)
        elif chunk in _SIGNS:
            self.add_opposite((_SIGNS[chunk],), False, chunk)
        elif bare and not self.has_plain_word(bare) and not self.read_number(bare, start + len(chunk)):
            self.read_compound(bare, start + chunk.find(bare))

    def has_plain_word(self, text: str) -> bool:
        """Whether the text is a plain word, which is added. "Unleash" is a name unless it comes first."""
        is_name = text[0].isupper() and bool(self.pieces) and not self.shouted
        plain = (_plain_names if is_name else _plain_words)[text]
        if plain is not None:
            self.pieces.append(plain)
        return plain is not None

    def read_compound(self, bare: str, position: int) -> None:
        if bare.lower() not in {"e.g", "i.e"} and pattern(_IDENTIFIER).search(bare):
            self.add("identifier", bare, "@")
            return
        for part in pattern(_JOINTS).split(bare):
            # A hyphen may be a minus: a-b is not a+b. Other joints say nothing that the words beside them do not.
            if part in _SIGNS:
                self.add_opposite((_SIGNS[part],), False, part)
            elif part.strip("-+:~^#%."):
                self.read_part(part, position)
            position += len(part)

    def read_number(self, text: str, end: int) -> bool:
        match = pattern(_NUMBER).fullmatch(text)
        if match is None:
            return False
        body, suffix = match["body"], match["suffix"]
        if pattern(_THOUSANDS).fullmatch(body):
            body = body.replace(",", "")
        if body.startswith("."):
            body = "0" + body
        # Gb and GB are two units; gb is a careless GB.
        mixed = suffix.lower() != suffix != suffix.upper() and suffix.endswith("b")
        unit = suffix if mixed else english.UNITS.get(suffix.lower(), suffix)
        self.add_number(match["sign"] + match["money"] + body.lower() + unit, end, written=text)
        if suffix:
            self.number_at = -1
        return True

    def read_part(self, part: str, start: int) -> None:
        part = part.replace("’", "'").strip("'")
        part = part[:-2] if part.endswith("'s") else part
        if not part or (not part.isalpha() and self.read_number(part, start + len(part))):
            return
        word = part.casefold()
        if not word.replace("'", "").isalpha():
            self.add("identifier", part, "@")
        elif self.read_word(word, start):
            return
        elif not self.shouted and word not in english.SHOUTED and _is_name(part):
            self.add("identifier", part, "@")
        else:
            self.add_word(word, part)

    def read_word(self, word: str, start: int) -> bool:
        if self.number_at >= 0 and start - self.number_end <= 1:
            if word in english.UNITS:
                self.give_unit(english.UNITS[word], word)
                return True
            if self.read_spelled(word, start):
                return True
        before = self.pieces[-1] if self.pieces else _NOTHING
        if word in english.CONTRACTIONS:
            self.add_word(english.CONTRACTIONS[word])
            self.add_negation(word)
        elif word in opposites("english"):
            self.add_opposite(*opposites("english")[word], word)
            if word == "first":  # The opposite of last, and also what is not the second.
                self.add("number", "1th", "", word)
        elif word in english.NEGATIONS:
            self.add_negation(word)
        elif word in english.NUMBER_KEYS and not (word == "second" and before[1] in english.BEFORE_A_UNIT):
            self.add("number", english.NUMBER_KEYS[word], "#", word)
        elif word == "one" and before[3] == "no":
            return True
        elif word in english.NUMBERS or word in english.SCALES:
            number = english.NUMBERS.get(word) or english.SCALES.get(word, 0)
            self.add_number(str(number), start + len(word), written=word, spelled=number)
        else:
            return self.read_prefixed(word, start)
        return True

    def read_prefixed(self, word: str, start: int) -> bool:
        denied = english.unprefixed(word)
        if denied is None:
            return False
        self.add_negation(word)
        # A double prefix (ununiform) is read once, which bounds the recursion.
        if english.unprefixed(denied) is not None or not self.read_word(denied, start):
            self.add_word(denied)
        return True

    def read_spelled(self, word: str, start: int) -> bool:
        """Whether the word was added to the number before it: twenty-five, two hundred, 3 million."""
        key = self.pieces[self.number_at][1]
        if word in english.SCALES and key.isdigit():
            total = int(key) * english.SCALES[word] if len(key) < 20 else 0
        elif word in english.NUMBERS and self.spelled and _continues(self.spelled, english.NUMBERS[word]):
            total = self.spelled + english.NUMBERS[word]
        else:
            return False
        what, _, shape, before, particle = self.pieces[self.number_at]
        self.pieces[self.number_at] = (what, str(total), shape, f"{before} {word}", particle)
        self.number_end, self.spelled = start + len(word), total
        return True

    def read_hangul(self, phrase: str, start: int) -> None:
        at = 0
        if self.number_at >= 0 and start - self.number_end <= 1:
            unit = korean.unit_pattern().match(phrase)
            if unit and (start == self.number_end or korean.ends_a_word(unit["tail"])):
                self.give_unit(korean.UNITS[unit["unit"]], unit["unit"])
                at = unit.end("unit")
        tail = phrase[at:].partition(" ")[0]
        if self.pieces and (at or start == self.read_to or tail in korean.APART):
            at += self.read_particle(tail)
        self.ended_at = at or -1
        for match in korean.guarded_pattern().finditer(phrase, at):
            self.add_plain(phrase, at, match.start(), korean.reduction_before(match))
            self.read_korean(match)
            at = match.end()
        self.add_plain(phrase, at, len(phrase), korean.bare)

    def read_particle(self, tail: str) -> int:
        """The length of the particle attached to the last piece. Particles of place stay in the shape."""
        if tail not in korean.glued_particles():
            return 0
        what, key, shape, written, _ = self.pieces[-1]
        telling = "" if tail in korean.MARKERS or korean.is_copula(tail) else tail
        self.pieces[-1] = (what, key, shape + telling if shape else shape, written, tail)
        return len(tail)

    def read_korean(self, match: re.Match[str]) -> None:
        written = match[0].strip()
        if match["must"]:
            self.read_must(match, written)
        elif match["negation"]:
            add = self.add_negation_after if match[0][0] in korean.DENYING_WHAT_IS_BEFORE else self.add_negation
            add(written)
        elif match["opposite"]:
            if not (match[0] in korean.THERE_IS and self.read_there_is(match)):
                self.add_opposite(*opposites("korean", "korean words")[match["opposite"]], match[0])
        elif korean.ends_a_word(match["tail"]):
            particle = match["tail"] if match["tail"] in korean.glued_particles() else ""
            self.pieces.append(("number", korean.number_key(match), "#", match[0], particle))
        else:
            self.add_plain(match[0], 0, len(match[0]), korean.bare)
            return
        self.ended_at = match.end()

    def read_must(self, match: re.Match[str], written: str) -> None:
        """Add the obligation of a Korean phrase: must, must not, or need not."""
        if korean.is_barred(match) or match["spared"]:
            self.add_negation_after(written)
        if korean.is_obliged(match):
            self.add_opposite(("must+",), False, written)
        elif match["spared"] or match["free"]:
            self.add_opposite(("must-",), False, written)

    def read_there_is(self, match: re.Match[str]) -> bool:
        """Whether 있다 or 없다 only says yes or no to the opposite right before it: 필요가 없다 is 불필요하다."""
        between = match.string[max(0, self.ended_at) : match.start()].strip()
        if not self.is_deniable() or (between and not korean.is_ending(between)):
            return False
        return korean.THERE_IS[match[0]] or self.turn_around(f"{self.pieces[-1][3]} {match[0]}")

    def add_plain(self, phrase: str, start: int, end: int, reduce_last: Callable[[str], str]) -> None:
        """Add plain words. The last one may be a verb whose ending is in the next piece."""
        words = phrase[start:end].split()
        if words and start == self.ended_at and not phrase[start].isspace():
            is_adverb = words[0] in ("로", "으로") and self.pieces[-1][0] == "opposite"  # 자동으로 says 자동.
            del words[: is_adverb or korean.is_ending(words[0])]
        is_joined = bool(words) and not phrase[end - 1].isspace()
        for number, word in enumerate(words, start=1):
            reduce = reduce_last if is_joined and number == len(words) else korean.bare
            self.add("word", word, reduce(word))


def _plain_name(text: str) -> Piece | None:
    """The piece of a plain word or name, as a scan gives it. None for other texts."""
    word = text.lower()
    is_plain = text.isalpha() and text.isascii() and not _is_name(text) and word not in english.guarded()
    return ("word", word, "" if word in LIGHT_WORDS else word, text, "") if is_plain else None


def _plain_word(text: str) -> Piece | None:
    return _plain_name(text) if english.unprefixed(text.lower()) is None else None


_plain_names = BoundedCache(8192, _plain_name)
_plain_words = BoundedCache(8192, _plain_word)


def _continues(number: int, more: int) -> bool:
    return (number % 100 == 0 and 0 < more < 100) or (number % 100 >= 20 and number % 10 == 0 and 0 < more < 10)


def _is_name(part: str) -> bool:
    return len(part) > 1 and part[1:] != part[1:].lower()


def _identifier_in(text: str) -> str | None:
    """The identifier, if the text is a single identifier."""
    only = pieces(text)[0] if len(pieces(text)) == 1 else _NOTHING
    return only[1] if only[0] == "identifier" and only[3] == text else None


@cache
def _lexemes(is_ascii: bool) -> re.Pattern[str]:
    """The pattern of lexemes. The one for ASCII texts finds the same in them, and compiles faster."""
    letter, alpha, quoted, han, flags = r"\w", "[A-Za-z]", "", "", "(?a)"
    if not is_ascii:
        letter, alpha, flags = f"[^\\W{_EAST_ASIAN}]", r"[^\W\d_]", ""
        quoted = r"|“[^“”]+”|‘[^‘’]+’(?!\w)|「[^「」]+」|『[^『』]+』|«[^«»]+»|‹[^‹›]+›|《[^《》]+》|〈[^〈〉]+〉"
        han = r"|(?P<han>[\u3040-\u9fff]+)"
    return pattern(
        # Words between spaces, as most are: the other alternatives would read them letter by letter.
        rf"""{flags}(?P<words>[A-Za-z]++(?= |\Z)(?: [A-Za-z]++(?= |\Z))*+)"""
        rf"""|(?P<quoted>"[^"\n]+"|`[^`\n]+`|(?<!\w)'[^'\n]+'(?!\w){quoted})"""
        r"|(?P<tag></?[A-Za-z][\w.:-]*/?>)"
        # A call without arguments, or with names. "option(s)" and "Redis (cache)" are no calls.
        r"|(?P<called>(?<![\w.:/-])[A-Za-z_][A-Za-z0-9_]*+(?=\((?:\)|(?![sS]\))[A-Za-z]\)|\w+(?:, ?\w+)+\))))"
        r"|(?P<operator>[-=]>|<-|[<>]=?|[!=]==?|[≠≤≥]|(?<!\w)!(?=[\w(]))"
        rf"|(?P<chunk>(?:{letter}++|[./\\@+$~#%:^€£¥₩]++|-(?!>)|(?<=\d),(?=\d)|(?<={alpha})['’](?={alpha}))+)"
        rf"|(?P<hangul>{_HANGUL_WORDS}(?: {_HANGUL_WORDS})*)"
        rf"{han}"
        r"|(?P<other>[^\s\w])"
    )


class Difference(Frozen):
    """One guarded piece that two texts do not share: a number, negation, quoted string or identifier."""

    what: str
    left: str
    right: str


def differences(a: str, b: str) -> tuple[Difference, ...]:
    """The differences between two statements that forbid a merge. Empty if there are none (R6).

    Long texts are not parsed: they differ unless they are equal.
    """
    if max(len(a), len(b)) > _COMPARED_CHARS_MAX:
        return () if a == b else (Difference("length", f"{len(a)} characters", f"{len(b)} characters"),)
    guarded = _differences(pieces(a), pieces(b))
    # Quotes around an identifier make no difference: `foo_bar` and foo_bar are the same.
    if any(each.what == "quoted" for each in guarded) and not _differences(
        pieces(a, unquoted=True), pieces(b, unquoted=True)
    ):
        return ()
    return guarded


def polarity(left: Sequence[Piece], right: Sequence[Piece]) -> list[tuple[str, str]]:
    """The words in which one statement denies the other.

    Two denials cancel out: lock it before the import, unlock it after the import.
    """
    opposites = tuple(_of_opposites(left, right))
    negations = tuple(_of_negations(left, right, opposes=bool(opposites)))
    denied = (*negations, *opposites)
    # Opposites that only give the extent of a denial are not counted: 항상 비운다, 절대 비우지 않는다.
    of_extent = len(tuple(_of_opposites(left, right, EXTENTS))) if negations else 0
    if (len(denied) - of_extent) % 2 == 0:
        return []
    return [(part.left, part.right) for part in denied]


def _differences(left: Sequence[Piece], right: Sequence[Piece]) -> tuple[Difference, ...]:
    opposites = tuple(_of_opposites(left, right))
    return (
        *_of_sequence("number", left, right),
        *_of_negations(left, right, opposes=bool(opposites)),
        *opposites,
        *_of_sequence("quoted", left, right),
        *_of_sequence("identifier", left, right),
    )


def _of_sequence(what: str, left: Sequence[Piece], right: Sequence[Piece]) -> Iterator[Difference]:
    """The difference in pieces of one type. Order matters: "from 3 to 5" is not "from 5 to 3"."""
    ours = [piece for piece in left if piece[0] == what]
    theirs = [piece for piece in right if piece[0] == what]
    keys, other_keys = [piece[1] for piece in ours], [piece[1] for piece in theirs]
    if keys != other_keys:
        head = len(commonprefix([keys, other_keys]))
        tail = len(commonprefix([keys[head:][::-1], other_keys[head:][::-1]]))
        yield Difference(what, _written(ours[head : len(ours) - tail]), _written(theirs[head : len(theirs) - tail]))


def _of_negations(left: Sequence[Piece], right: Sequence[Piece], *, opposes: bool) -> Iterator[Difference]:
    """The difference in the number of negations. `opposes` leaves out prefixes: their words count as opposites."""
    ours = [piece for piece in left if piece[0] == "negation" and not (opposes and piece[1] == "un")]
    theirs = [piece for piece in right if piece[0] == "negation" and not (opposes and piece[1] == "un")]
    if len(ours) != len(theirs) or (ours and _moved(left, right)):
        yield Difference("negation", _written(ours), _written(theirs))


def _moved(left: Sequence[Piece], right: Sequence[Piece]) -> bool:
    """Whether the same words negate something else: tabs, not spaces; spaces, not tabs."""
    if sorted(piece[1] for piece in left) != sorted(piece[1] for piece in right):
        return False
    return _negated(left) != _negated(right)


def _negated(side: Sequence[Piece]) -> list[str]:
    """The piece that each negation denies: the next one, or the previous one as in 남기지 않는다."""
    at_negations = [at for at, piece in enumerate(side) if piece[0] == "negation"]
    neighbours = [at + (-1 if side[at][3][:1] in _AFTER_WHAT_IS_DENIED else 1) for at in at_negations]
    return [side[at][1] for at in neighbours if 0 <= at < len(side)]


def _of_opposites(
    left: Sequence[Piece], right: Sequence[Piece], among: frozenset[str] | None = None
) -> Iterator[Difference]:
    """The opposites of which each text has more of another pole, or which the texts have in a different order."""
    groups = dict.fromkeys(piece[1][:-1] for piece in left if piece[0] == "opposite")
    if among is not None:
        groups = {group: None for group in groups if group in among}
    reported: set[tuple[str, str]] = set()
    for group in groups:
        ours = [piece for piece in left if piece[0] == "opposite" and piece[1][:-1] == group]
        theirs = [piece for piece in right if piece[0] == "opposite" and piece[1][:-1] == group]
        if not _oppose([piece[1][-1] for piece in ours], [piece[1][-1] for piece in theirs]):
            continue
        words = (_written(ours), _written(theirs))
        if words not in reported:
            reported.add(words)
            yield Difference("negation", *words)


def _oppose(ours: list[str], theirs: list[str]) -> bool:
    more_plus = ours.count("+") - theirs.count("+")
    more_minus = ours.count("-") - theirs.count("-")
    return more_plus * more_minus < 0 or (more_plus == more_minus == 0 and ours != theirs)


def _written(pieces: Sequence[Piece]) -> str:
    return ", ".join(piece[3] for piece in pieces)
