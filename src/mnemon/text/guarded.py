"""The pieces of a statement that must not differ between two texts that are taken for one."""

from __future__ import annotations

import re
from functools import cache
from unicodedata import category

from mnemon.text import english, korean
from mnemon.text.canonical import compatible
from mnemon.text.kept import kept

# What it is (number, negation, opposite, quoted, identifier or word), what it is compared by, what stands for it in a
# skeleton, and how it was written.
Piece = tuple[str, str, str, str]

_HANGUL_WORDS = "[\u1100-\u11ff가-힣]+"
_EAST_ASIAN = "\u1100-\u11ff\u3040-\u9fff가-힣"


# A bulk write compares each text with the same few neighbours again and again.
@kept(512)
def pieces(text: str, *, unquoted: bool = False) -> tuple[Piece, ...]:
    """The pieces in order; `unquoted` reads a quoted single identifier as if it had no quotes."""
    text = compatible(text)
    scan = _Scan(shouted=text.isupper())
    for match in _lexemes(text.isascii()).finditer(text):
        scan.read(match, unquoted=unquoted)
    return tuple(scan.found)


class _Scan:
    """A reading of one text from left to right; units and number words change the number before them."""

    __slots__ = ("found", "number_at", "number_end", "shouted", "spelled")

    def __init__(self, *, shouted: bool) -> None:
        self.found: list[Piece] = []
        self.shouted = shouted
        self.number_at = self.number_end = -1
        self.spelled = 0

    def read(self, match: re.Match[str], *, unquoted: bool) -> None:
        what, text = match.lastgroup, match[0]
        if what == "quoted":
            inner = " ".join(text[1:-1].split())
            if unquoted and _is_identifier(inner):
                self.add("identifier", inner, "@")
            else:
                self.add("quoted", inner, '"')
        elif what == "operator":
            self.read_operator(text)
        elif what == "chunk":
            self.read_chunk(text, match.start(), match.end())
        elif what == "hangul":
            self.read_hangul(text, match.start())
        elif category(text)[0] != "P":
            self.add("word", text, text)

    def add(self, what: str, key: str, shape: str, written: str = "") -> None:
        self.found.append((what, key, shape, written or key))

    def add_negation(self, written: str) -> None:
        # "do not retry" is the opposite of "retry", so the empty "do" goes with the "not".
        if self.found and self.found[-1][1] in {"do", "does", "did"}:
            self.found[-1] = (*self.found[-1][:2], "", self.found[-1][3])
        self.add("negation", "not", "", written)

    def add_opposite(self, poles: tuple[str, ...], negates: bool, written: str) -> None:
        shape = "" if poles[0].startswith("always") else "±" + poles[0][:-1]
        if negates:
            self.add("negation", "un", "", written)
        for pole in poles:
            self.add("opposite", pole, shape, written)
            shape = ""

    def add_number(self, key: str, end: int, *, written: str = "", spelled: int = 0) -> None:
        self.number_at, self.number_end, self.spelled = len(self.found), end, spelled
        self.add("number", key, "#", written)

    def give_unit(self, unit: str, written: str) -> None:
        what, key, shape, before = self.found[self.number_at]
        self.found[self.number_at] = (what, key + unit, shape, f"{before} {written}")
        self.number_at = -1

    def read_operator(self, text: str) -> None:
        if text in _COMPARISONS:
            poles, negates = _COMPARISONS[text]
            self.add_opposite(poles, negates, text)
        elif text == "!":
            self.add_negation(text)

    def read_chunk(self, chunk: str, start: int, end: int) -> None:
        bare = chunk.rstrip(".:-~^@$\\").lstrip(":")
        if bare.isalpha() and bare.isascii() and not _is_name(bare):
            word = bare.lower()
            if word not in english.guarded():  # Nearly every word: nothing below would say anything else of it.
                self.add("word", word, word)
                return
        if self.read_number(bare, end) or not bare:
            return
        if _is_whole(bare):
            self.add("identifier", bare, "@")
            return
        position = start
        for part in _joints().split(bare):
            position = chunk.find(part, position - start) + start
            self.read_part(part, position)
            position += len(part)

    def read_number(self, text: str, end: int) -> bool:
        match = _number().fullmatch(text)
        if match is None:
            return False
        body, suffix = match["body"], match["suffix"]
        if _thousands().fullmatch(body):
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
        if not part or self.read_number(part, start + len(part)):
            return
        word = part.casefold()
        if not word.replace("'", "").isalpha():
            self.add("identifier", part, "@")
        elif self.read_word(word, start):
            return
        elif not self.shouted and word not in english.SHOUTED and _is_name(part):
            self.add("identifier", part, "@")
        else:
            self.add("word", word, word)

    def read_word(self, word: str, start: int) -> bool:
        if self.number_at >= 0 and start - self.number_end <= 1:
            if word in english.UNITS:
                self.give_unit(english.UNITS[word], word)
                return True
            if self.read_spelled(word, start):
                return True
        if word in english.CONTRACTIONS:
            self.add("word", english.CONTRACTIONS[word], english.CONTRACTIONS[word])
            self.add_negation(word)
        elif word in english.opposites():
            poles, negates = english.opposites()[word]
            self.add_opposite(poles, negates, word)
        elif word in english.NEGATIONS:
            self.add_negation(word)
        elif word in english.ORDINALS:
            self.add("number", f"{english.ORDINALS[word]}th", "#", word)
        elif word == "one" and self.found and self.found[-1][3] == "no":
            return True
        elif word in english.NUMBERS:
            number = english.NUMBERS[word]
            self.add_number(str(number), start + len(word), written=word, spelled=number)
        elif word in english.SCALES:
            number = english.SCALES[word]
            self.add_number(str(number), start + len(word), written=word, spelled=number)
        else:
            return False
        return True

    def read_spelled(self, word: str, start: int) -> bool:
        """Whether the word went into the number before it: twenty-five, two hundred, 3 million."""
        key = self.found[self.number_at][1]
        if word in english.SCALES and key.isdigit():
            total = int(key) * english.SCALES[word] if len(key) < 20 else 0
        elif word in english.NUMBERS and self.spelled and _continues(self.spelled, english.NUMBERS[word]):
            total = self.spelled + english.NUMBERS[word]
        else:
            return False
        what, _, shape, before = self.found[self.number_at]
        self.found[self.number_at] = (what, str(total), shape, f"{before} {word}")
        self.number_end, self.spelled = start + len(word), total
        return True

    def read_hangul(self, phrase: str, start: int) -> None:
        at = 0
        if self.number_at >= 0 and start - self.number_end <= 1:
            unit = korean.unit_pattern().match(phrase)
            if unit and (start == self.number_end or korean.ends_a_word(unit["tail"])):
                self.give_unit(korean.UNITS[unit["unit"]], unit["unit"])
                at = unit.end("unit")
        for match in korean.guarded_pattern().finditer(phrase, at):
            self.add_plain(phrase[at : match.start()])
            self.read_korean(match)
            at = match.end()
        self.add_plain(phrase[at:])

    def read_korean(self, match: re.Match[str]) -> None:
        if match["negation"]:
            self.add("negation", "not", "", match[0].strip())
        elif match["opposite"]:
            poles, negates = korean.opposites()[match["opposite"]]
            self.add_opposite(poles, negates, match[0])
        elif korean.ends_a_word(match["tail"]):
            self.add("number", korean.number_key(match), "#", match[0])
        else:
            self.add_plain(match[0])

    def add_plain(self, text: str) -> None:
        for word in text.split():
            stem = korean.predicate_pattern().sub(lambda match: "하" if match[1] else "되", word)
            self.add("word", word, stem)


def _continues(number: int, more: int) -> bool:
    return (number % 100 == 0 and 0 < more < 100) or (number % 100 >= 20 and number % 10 == 0 and 0 < more < 10)


def _is_whole(chunk: str) -> bool:
    """Whether a chunk with joining marks is one identifier: a path, a flag, a dotted or snake_case name."""
    return chunk.lower() not in {"e.g", "i.e"} and _whole().search(chunk) is not None


def _is_name(part: str) -> bool:
    return len(part) > 1 and part[1:] != part[1:].lower()


def _is_identifier(text: str) -> bool:
    found = pieces(text)
    return len(found) == 1 and found[0][0] == "identifier" and found[0][1] == text


_COMPARISONS: dict[str, tuple[tuple[str, ...], bool]] = {
    "<": (("than-", "closed-"), False),
    ">": (("than+", "closed-"), False),
    "<=": (("than-", "closed+"), False),
    "≤": (("than-", "closed+"), False),
    ">=": (("than+", "closed+"), False),
    "≥": (("than+", "closed+"), False),
    "==": (("same+",), False),
    "===": (("same+",), False),
    "!=": (("same-",), True),
    "!==": (("same-",), True),
    "≠": (("same-",), True),
}


@cache
def _lexemes(is_ascii: bool) -> re.Pattern[str]:
    """The ASCII one finds the same in ASCII, at a fraction of the cost to compile it."""
    letter, alpha, quoted = r"\w", "[A-Za-z]", ""
    if not is_ascii:
        letter, alpha = f"[^\\W{_EAST_ASIAN}]", r"[^\W\d_]"
        quoted = r"|“[^“”]+”|‘[^‘’]+’(?!\w)|「[^「」]+」|『[^『』]+』"
    return re.compile(
        rf"""(?P<quoted>"[^"\n]+"|`[^`\n]+`|(?<!\w)'[^'\n]+'(?!\w){quoted})"""
        r"|(?P<operator>[-=]>|<-|[<>]=?|[!=]==?|[≠≤≥]|(?<!\w)!(?=[\w(]))"
        rf"|(?P<chunk>(?:{letter}|[./\\@+$~#%:^€£¥₩]|-(?!>)|(?<=\d),(?=\d)|(?<={alpha})['’](?={alpha}))+)"
        rf"|(?P<hangul>{_HANGUL_WORDS}(?: {_HANGUL_WORDS})*)"
        r"|(?P<other>[^\s\w])",
        re.ASCII if is_ascii else 0,
    )


@cache
def _number() -> re.Pattern[str]:
    return re.compile(
        r"#?(?P<sign>[-+~^]?)(?P<money>[$€£¥₩]?)"
        r"(?P<body>0x[0-9a-fA-F]+|\d+(?:\.\d+)?[eE][-+]?\d+|\d+/\d+|[vV]?\d+(?:[.:,]\d+)*(?:\.[xX*])?|\.\d+)"
        r"(?P<suffix>%|[A-Za-zµμ]{0,12})"
    )


@cache
def _joints() -> re.Pattern[str]:
    return re.compile("[-+:~^#%.]+")


@cache
def _thousands() -> re.Pattern[str]:
    return re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")


@cache
def _whole() -> re.Pattern[str]:
    return re.compile(r"[_/\\@$]|^--?[^\W\d]|\w\.\w|::|\w\+\+$|^[a-zA-Z]#$|^\.[a-zA-Z]")
