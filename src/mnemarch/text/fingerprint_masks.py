"""What stays of a message when its values go: the words that somebody wrote into the program."""

from __future__ import annotations

from functools import cache

from mnemarch.lazy import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
else:
    re = Lazy("re")

MASK = "*"
# No message needs more to be known, and no pattern sees a longer line.
LINE_CHARS_MAX = 1_000
# Brackets in brackets are looked into so often; deeper ones stay as they are.
_DEPTH_MAX = 4
_TOP_DOMAINS = frozenset({"com", "net", "org", "edu", "gov", "info", "io", "dev", "local", "internal", "lan", "corp"})


def skeleton(message: str) -> str:
    """The message without dates, numbers, ids, paths, hosts, quoted and assigned values."""
    line = _quoted().sub(_unquoted, cut(message))
    line = _moments().sub(MASK, line)
    line = _settings().sub(r"\1=*", line)
    line = _addresses().sub(MASK, line)
    line = _amounts().sub(MASK, line)
    line = _words().sub(_masked_word, line)
    line = _people().sub(r"\1 *", line)
    return _collapsed(line)


def cut(line: str) -> str:
    """The line up to the last whole word that counts."""
    if len(line) <= LINE_CHARS_MAX:
        return line
    head, _, rest = line[: LINE_CHARS_MAX + 1].rpartition(" ")
    return head or rest


def code_skeleton(source: str) -> str:
    """A line of source code without its numbers and the content of its strings."""
    line = _literals().sub(lambda literal: "0" if literal[0][0].isdigit() else "''", source[:LINE_CHARS_MAX])
    return " ".join(line.split())


def base_name(path: str) -> str:
    """The last part of a path; `*` if a program made it up for this run."""
    name = path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    return MASK if _made_up_name().match(name) else name


def is_library(path: str) -> bool:
    """Whether the code there belongs to the language or to a dependency."""
    return _library().search(path.replace("\\", "/")) is not None


def is_source(path: str) -> bool:
    """Whether it ends like a file that somebody writes."""
    return _file_ending().search(path) is not None


def _unquoted(match: re.Match[str]) -> str:
    verb = _http_verb().match(match[0][1:])
    return f"{verb[0]}{MASK}" if verb else MASK


def _masked_word(match: re.Match[str]) -> str:
    word, colon, _ = match[0].partition(":")
    bare = word.rstrip(".-")
    if _is_host(bare, has_port=bool(colon)):
        return MASK
    is_called = match.string.startswith("(", match.end())
    if _is_value(bare) and not (is_called and bare.isidentifier()):
        word = MASK + word[len(bare) :]
    return f"{word}:{MASK}" if colon else word


def _is_value(word: str) -> bool:
    return _digit().search(word) is not None or _is_path(word) or _letters_of_hex().fullmatch(word) is not None


def _is_path(word: str) -> bool:
    # One slash may stand for "or": read/write.
    slashes = word.count("/")
    return "\\" in word or slashes > 1 or (slashes == 1 and word[:1] in "/~.")


def _is_host(word: str, *, has_port: bool) -> bool:
    labels = word.split(".")
    if len(labels) < 2 or word != word.lower() or not all(labels) or is_source(word):
        return False
    return has_port or labels[-1] in _TOP_DOMAINS or (len(labels) > 2 and len(labels[-1]) == 2)


def _collapsed(line: str) -> str:
    """Runs of values are one value, and a bracket that holds nothing else says nothing."""
    line = _particle().sub("", line)
    for _ in range(_DEPTH_MAX):
        before = line
        line = _run_of_values().sub(MASK, _empty_bracket().sub(" ", _shown_object().sub(MASK, line)))
        if line == before:
            break
    return " ".join(line.split()).strip(" .,;:-")


@cache
def _moments() -> re.Pattern[str]:
    day = r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}"
    month = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}"
    clock = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?"
    named = rf"(?:{day},?\s{{1,2}})?(?:{month}\s{{1,2}}\d{{1,2}}|\d{{1,2}}[\s-]{month})(?:[,\s-]{{1,2}}\d{{4}})?"
    numbered = r"\d{1,4}(?P<between>[-/.])\d{1,2}(?P=between)\d{1,4}"
    zone = r"(?:Z|\s?[+-]\d{2}:?\d{2}|\s(?:[ECMPW]?[DEMPSU][SU]?T|UTC|GMT))?"
    return re.compile(
        rf"(?<![\w.-])(?:{named}|{numbered})(?:[\s:T]{{1,2}}{clock})?{zone}(?:\s\d{{4}})?(?!\w|\.\w)", re.IGNORECASE
    )


@cache
def _quoted() -> re.Pattern[str]:
    # Each stops at the next mark of its own, so that a thousand openings are read once. An apostrophe inside a word
    # is none.
    return re.compile(
        r"\"[^\"]*\"|(?<![A-Za-z0-9])'[^']*'(?![A-Za-z0-9])|`[^`']*[`']|“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»|»[^«»]*«"
        r"|‹[^‹›]*›|「[^「」]*」|『[^『』]*』|‘[^‘’]*’(?![A-Za-z])"
    )


@cache
def _http_verb() -> re.Pattern[str]:
    return re.compile(r"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|CONNECT|TRACE) (?=\S)")


@cache
def _settings() -> re.Pattern[str]:
    value, apart = r"[^\s,;()\[\]]+", r"\s{1,2}[^\s,;()\[\]=]+(?=[,;)\]]|$)"
    return re.compile(rf"(?<![\w=.-])([A-Za-z_][\w.-]{{0,60}})\s?=(?!=)(?:{value}|{apart})?")


@cache
def _addresses() -> re.Pattern[str]:
    return re.compile(
        r"(?<![a-z0-9])[a-z][a-z0-9+.-]{1,20}://[^\s,;)\]>]+"
        r"|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}"
        r"|(?<![a-z])[a-z]:[\\/][^\s,;:)\]>]*"
        r"|\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b"
        r"|(?<![\w:])(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{1,4}\b"
        r"|@[0-9a-f]{4,16}\b",
        re.IGNORECASE,
    )


@cache
def _amounts() -> re.Pattern[str]:
    unit = "(?:[kmgtp]i?)?(?:b|bytes?|bits?)|[mµun]?s|[mun]?secs?|seconds?|minutes?|mins?|hours?|hrs?|days?"
    unit += "|[kmg]?hz|%|°?[cf]"
    return re.compile(rf"(?<![\w.-])[<>~+-]?\d[\d.,]*\s?(?:{unit})(?![\w%])", re.IGNORECASE)


@cache
def _words() -> re.Pattern[str]:
    return re.compile(r"[\w@#%$+~./\\-]+(?::\d+)?")


@cache
def _digit() -> re.Pattern[str]:
    return re.compile(r"\d")


@cache
def _file_ending() -> re.Pattern[str]:
    code = (
        "cc?|cpp|cs|css|exs?|go|h|hpp|hs|html|java|[cm]?jsx?|kt|lua|ml|php|pl|py|rb|rs|scala|sh|sql|swift|[cm]?tsx?|vue"
    )
    return re.compile(rf"\.(?:{code}|cfg|class|conf|dll|gz|ini|jar|json|log|md|so|toml|txt|xml|ya?ml)\Z", re.IGNORECASE)


@cache
def _letters_of_hex() -> re.Pattern[str]:
    return re.compile(r"[a-f]{8,}|[A-F]{8,}")


@cache
def _people() -> re.Pattern[str]:
    named = r"(?:for|of|by|as|from|invalid|illegal|unknown) user(?= [\w.@$-])|for(?= [\w.@$-]{1,64} from \*)"
    return re.compile(rf"\b({named}) [\w.@$-]+", re.IGNORECASE)


@cache
def _particle() -> re.Pattern[str]:
    # Which of two Korean particles follows depends on how the value ends.
    return re.compile(r"(?<=\*)(?:은|는|이|가|을|를|과|와|으로|로)(?:\((?:은|는|이|가|을|를|과|와|로)\))?(?=\s|$)")


@cache
def _empty_bracket() -> re.Pattern[str]:
    return re.compile(r"\([\s*,:]*\)")


@cache
def _shown_object() -> re.Pattern[str]:
    return re.compile(r"(?<=\w)\{[^{}]*\}")


@cache
def _run_of_values() -> re.Pattern[str]:
    return re.compile(r"[\[{<]\s?\*?\s?[\]}>]|[<>~]?\*(?:(?:[\s,:;/|#+-]{0,3}|,?\s(?:and|or)\s)\*)+|[<>~]\*")


@cache
def _literals() -> re.Pattern[str]:
    return re.compile(r"\"[^\"]*\"|'[^']*'|(?<![A-Za-z_0-9])\d[\w.]*")


@cache
def _made_up_name() -> re.Pattern[str]:
    return re.compile(r"(?:tmp[\w-]{6,}|[0-9a-f-]{6,}|\d+|<ipython-input-.*)(?:\.\w{1,5}|>)?\Z")


@cache
def _library() -> re.Pattern[str]:
    return re.compile(
        r"(?:site|dist)-packages/|/lib(?:64)?/python\d|/python[\d.]*/lib/|/Lib/|<frozen |node_modules/|^node:"
        r"|^internal/|/rustc/|\.cargo/registry/|/go/(?:src|pkg/mod)/|/gems/|/vendor/",
    )
