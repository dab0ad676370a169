"""Secrets that are told in a sentence: my password is …, the token for CI was …, 비밀번호는 …, API 키가 …입니다."""

from __future__ import annotations

from functools import cache

from mnemarch.lazy import Lazy
from mnemarch.text.secret_names import is_code, is_reference, is_secret_key
from mnemarch.text.secret_shapes import is_placeholder

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
else:
    re = Lazy("re")

_NAMES = ("passw", "passphrase", "passcode", "pw", "secret", "token", "key")
_KOREAN_NAMES = ("비밀번호", "비번", "패스워드", "암호", "토큰", "시크릿", "키")
_PASSWORDS = ("pass", "pw", "비밀번호", "비번", "패스", "암호")
_CHARS_MIN = 8
_RUN_MAX = 512
_DIGITS_OF_A_TOKEN_MIN = 16
# No English word is so long, and no secret without a digit is told from one otherwise.
_LETTERS_MIN = 24
# What a secret without quotes is made of.
_BARE = r"[!#-&(-+\--:=?-\[\]^_a-{}~]"
# What a sentence puts around a word: its own end, emphasis, brackets.
_AROUND = "!?.~…*_:;()[]{}"


def told_secrets(text: str, lowered: str) -> Iterator[tuple[int, int, str]]:
    """From, to and kind of each word that a sentence gives as a secret and that is no word of a language."""
    for name in _NAMES if text.isascii() else (*_NAMES, *_KOREAN_NAMES):
        at = lowered.find(name)
        while at >= 0:
            end = at + len(name)
            span = _word_after(text, lowered, at)
            if span is not None:
                yield *span, "assigned-secret"
                end = span[1]
            at = lowered.find(name, end)


def _word_after(text: str, lowered: str, at: int) -> tuple[int, int] | None:
    if lowered[at] in "k키" and not is_secret_key(lowered, at):
        return None
    said = _saying().match(lowered, at)
    found = _word().match(text, said.end()) if said else None
    if said is None or found is None:
        return None
    start, end = found.span(found.lastgroup or 0)
    runs_on = end - start >= _RUN_MAX
    end = end if runs_on else start + len(text[start:end].rstrip(")]}.:*"))
    is_password = lowered.startswith(_PASSWORDS, at)
    if said["toward"] and not (is_password and _is_changed(lowered, at, found.end())):
        return None
    if end - start < _CHARS_MIN or not _is_no_word(text[start:end], is_password):
        return None
    # Only a secret is followed to its end, or many names in one long run would each read all of it.
    rest = _rest().match(text, end) if runs_on else None
    return start, rest.end() if rest else end


def _is_changed(lowered: str, at: int, end: int) -> bool:
    """Whether the password is set to what follows; it may as well be sent there."""
    return lowered.startswith(("로", "으로"), end) or _changing().search(lowered, max(0, at - 40), at) is not None


def _is_no_word(content: str, is_password: bool) -> bool:
    """Whether it has the look of a secret. What follows `is` is mostly prose, so it takes more than after `=`."""
    if is_placeholder(content) or is_reference(content) or is_code(content, is_setting=False):
        return False
    core = content.strip(_AROUND)
    if core.isdigit():
        return len(core) >= (_CHARS_MIN if is_password else _DIGITS_OF_A_TOKEN_MIN)
    if core.isalpha():
        return len(core) >= _LETTERS_MIN and (core.islower() or core.isupper())
    if _measure().match(core) or _constant().fullmatch(core) or _email().fullmatch(core):
        return False
    if is_password:
        return _mixed_password().search(_term().sub("", core)) is not None and not _numbered().fullmatch(core)
    return _mixed().search(_term().sub("", core)) is not None and not _named().fullmatch(core)


@cache
def _saying() -> re.Pattern[str]:
    """The rest of the name, what it is for, and the words or signs that say what it is. In lower case."""
    name = "passw(?:or)?d|passphrase|passcode|(?<![a-z])pwd?|secret|token|key"
    korean_name = "비밀번호|비번|패스워드|암호|토큰|시크릿|키"
    aside = r"[ ]?\([^()\n]{1,30}\)"
    purpose = r"[ ](?:for|of|to|on|in|at|from|we|i|you|he|she|they|that)(?:[ ][\w'’./-]{1,24}){1,5}?"
    adverb = "now|still|just|currently|always|set|changed|reset|rotated"
    be = rf"(?:{purpose})?[ ](?:is|was|are|were|be|has[ ]been)(?:[ ](?:{adverb})){{0,2}}(?:[ ](?:to|as))?(?=[ :=])"
    particle = r"[은는이가도](?:[ ](?:현재|지금|이제|아직|여전히|계속|그냥))?"
    toward = r"(?P<toward>[을를]|[ ]to(?=[ ]))"
    sign = rf"[ ]?(?:->|→|：)|{aside}[ ]?[:=]"
    return re.compile(
        rf"(?:{name}|{korean_name})(?:[ _]?(?:값|value|string))?s?"
        rf"(?:{sign}|(?:{aside})?(?:{particle}|{be}|['’]s(?=[ ])|{toward})[ ]?[:=]?)[ \t]{{0,4}}"
    )


@cache
def _changing() -> re.Pattern[str]:
    return re.compile(r"(?:set|chang|rotat|updat)\w*(?:[ ][\w'’-]+){0,3}[ ]?\Z")


@cache
def _word() -> re.Pattern[str]:
    quoted = rf"""["'`](?P<quoted>[^"'`\s\\]{{{_CHARS_MIN},{_RUN_MAX}}})["'`]"""
    bare = rf"(?P<bare>{_BARE}{{{_CHARS_MIN},{_RUN_MAX}}})"
    return re.compile(rf"[“‘「『]?(?:{quoted}|{bare})")


@cache
def _rest() -> re.Pattern[str]:
    return re.compile(rf"{_BARE}*")


@cache
def _term() -> re.Pattern[str]:
    """Words of the trade that have digits in them: they are prose, alone and in compounds (sha256-hashed)."""
    hashes = "(?:hmac)?(?:sha|md|blake|argon|bcrypt|scrypt|pbkdf|hkdf)"
    ciphers = "aes|des|rsa|dsa|[hrep]s|ed|secp|curve|chacha|poly"
    others = "base|utf|rfc|oauth|ipv|http|tls|u?int|float|python|node|java|gpt|x|v|s"
    return re.compile(
        rf"(?<![A-Za-z0-9])(?:(?:{hashes}|{ciphers}|{others})-?\d+(?:url|id|[dik])?|k8s|2fa|(?:cl|[opr])\d+k)"
        r"(?![A-Za-z0-9])",
        re.IGNORECASE,
    )


@cache
def _measure() -> re.Pattern[str]:
    """Numbers that say how much, how long, when or which one: 32-byte, 3600seconds, 3rd-party, 2024-01-31."""
    units = "bits?|bytes?|chars?|characters?|digits?|letters?|words?|tokens?|hours?|hrs?|min(?:ute)?s?|sec(?:ond)?s?|ms"
    units += "|days?|weeks?|months?|years?|times?|[kmg]i?b|percent"
    return re.compile(
        rf"\d+[-_]?(?:{units})(?![A-Za-z0-9])|\d{{1,3}}-[a-z]+(?:-[a-z]+)*\Z|\d[a-z]{{2}}-[a-z]+|v?\d+(?:[.:/-]\d+)+"
        r"|[A-Z]{2,10}[-#]\d+\Z",
        re.IGNORECASE,
    )


@cache
def _constant() -> re.Pattern[str]:
    return re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")


@cache
def _email() -> re.Pattern[str]:
    return re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+")


@cache
def _named() -> re.Pattern[str]:
    """A name with a number to it: token2, ci-token-3, invalid:401."""
    return re.compile(r"[A-Za-z]+\d{0,2}(?:[-_.:/#@+][A-Za-z]+\d{0,2}|[-_.:/#]\d{1,5})*")


@cache
def _numbered() -> re.Pattern[str]:
    return re.compile(r"[A-Za-z]+[:/#]\d{1,5}")


@cache
def _mixed() -> re.Pattern[str]:
    return re.compile(r"[A-Za-z][^A-Za-z0-9]*[0-9]|[0-9][^A-Za-z0-9]*[A-Za-z]")


@cache
def _mixed_password() -> re.Pattern[str]:
    return re.compile(r"[A-Za-z][^A-Za-z0-9]*[0-9]|[0-9][^A-Za-z0-9]*[A-Za-z]|[A-Za-z][!@#$%^]+[A-Za-z]")
