"""Secrets that are known by the name they are assigned to: password=…, "api_key": "…", 비밀번호: …"""

from __future__ import annotations

from functools import cache, lru_cache

from mnemarch.lazy import Lazy
from mnemarch.text.secret_shapes import is_placeholder, looks_random

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
else:
    re = Lazy("re")

# What makes a key a secret: what it is the key to.
_KEYS = ("api", "access", "private", "secret", "encryption", "signing", "master", "auth", "account", "shared")
_KOREAN_KEYS = ("액세스", "엑세스", "접근", "비밀", "시크릿", "개인", "인증", "암호화", "서명", "마스터", "서비스")
_SECRET_KEYS = (*_KEYS, *_KOREAN_KEYS)
# A keyword, and what must come before it for it to be a secret's name; nothing if it is one by itself.
_KEYWORDS: dict[str, tuple[str, ...]] = {
    "pass": (),
    "pw": (),
    "secret": (),
    "token": (),
    "auth": (),
    "key": _SECRET_KEYS,
}
_KOREAN_KEYWORDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(["비밀번호", "비번", "패스워드", "암호", "토큰", "시크릿"], ()),
    "키": _SECRET_KEYS,
}
_CHARS_MIN = 8
# `auth` names methods and modes as often as secrets.
_AUTH_CHARS_MIN = 16
_RUN_MAX = 512


def assigned_secrets(text: str, lowered: str) -> Iterator[tuple[int, int, str]]:
    """From, to and kind of each value that is assigned to the name of a secret and looks like one."""
    has_flags = "--" in text
    keywords = _KEYWORDS if text.isascii() else _KEYWORDS | _KOREAN_KEYWORDS
    for keyword, before in keywords.items():
        at = lowered.find(keyword)
        while at >= 0:
            end = at + len(keyword)
            # In prose the next word follows; that is most of what a keyword in an ordinary text costs.
            is_prose = lowered[end : end + 1] == " " and lowered[end + 1 : end + 2] not in "=: \t" and not has_flags
            if not is_prose and (not before or _follows(lowered, at, before)):
                span = _value_after(text, lowered, at)
                if span:
                    yield span
                    end = span[1]
            at = lowered.find(keyword, end)


def is_secret_key(lowered: str, at: int) -> bool:
    """Whether the word `key` there stands after what makes it a secret."""
    return _follows(lowered, at, _SECRET_KEYS)


def _follows(lowered: str, at: int, before: tuple[str, ...]) -> bool:
    return lowered[max(0, at - 12) : at].rstrip("_- ").endswith(before)


def is_secret_of(name: str, content: str) -> bool:
    """Whether an entry of that name with that content holds a secret."""
    # Read as the JSON it may have come from, so that one set of rules decides.
    if len(content) < _CHARS_MIN or len(name) > 128 or not _names_a_secret(name):
        return False
    if '"' in content or "\n" in content:
        return False
    text = f'"{name}": "{content}"'
    lowered = text.lower()
    return len(lowered) == len(text) and any(
        end == len(text) - 1 and start == len(name) + 5 for start, end, _ in assigned_secrets(text, lowered)
    )


@lru_cache(maxsize=1024)
def _names_a_secret(name: str) -> bool:
    lowered = name.lower()
    return any(keyword in lowered for keyword in (*_KEYWORDS, *_KOREAN_KEYWORDS))


def _value_after(text: str, lowered: str, at: int) -> tuple[int, int, str] | None:
    name = _name().match(lowered, at)
    if name is None or (lowered.startswith("auth", at) and text[max(0, at - 1) : at].isalpha()):
        return None
    assigned: str | None = name["assigned"]
    if assigned is None and not _flag().search(text, max(0, at - 40), at):
        return None
    found = _value().match(text, name.end())
    if found is None:
        return None
    is_password = lowered.startswith(("pass", "pw", "비밀번호", "비번", "패스", "암호"), at)
    chars_min = _AUTH_CHARS_MIN if lowered.startswith("auth", at) and name.end() - at < 8 else _CHARS_MIN
    start, end = found.span(found.lastgroup or 0)
    if found.lastgroup != "bare":
        is_secret = _is_quoted_secret(text[start:end], is_password)
    else:
        runs_on = end - start >= _RUN_MAX
        end = end if runs_on else start + len(text[start:end].rstrip(")]}.:"))
        is_setting = assigned == "=" and text[end : end + 1] not in {",", ")"}
        is_secret = _is_bare_secret(text[start:end], is_password, is_setting, shouted=text[at : at + 3].isupper())
        # Only a secret is followed to its end, or many names in one long run would each read all of it.
        rest = _rest().match(text, end) if is_secret and runs_on else None
        end = rest.end() if rest else end
    return (start, end, _kind(lowered, at, text[start:end])) if is_secret and end - start >= chars_min else None


def _kind(lowered: str, at: int, content: str) -> str:
    named_for_aws = "aws" in lowered[max(0, at - 24) : at + 8] or "secret" in lowered[max(0, at - 16) : at + 8]
    is_key = len(content) == 40 and _aws_secret().fullmatch(content) and not _hex().fullmatch(content)
    return "aws-secret-key" if named_for_aws and is_key else "assigned-secret"


def _is_quoted_secret(content: str, is_password: bool) -> bool:
    if is_placeholder(content) or is_reference(content) or not content.isascii():
        return False
    # In quotes a password may be a plain word; a token of words ("session-token") is a name.
    return is_password or (looks_random(content) and not _words().fullmatch(content))


def _is_bare_secret(content: str, is_password: bool, is_setting: bool, *, shouted: bool) -> bool:
    if is_placeholder(content) or is_reference(content) or is_code(content, is_setting and shouted):
        return False
    if is_password:
        # Outside quotes a plain word is a secret only where nothing but a setting is written so: DB_PASSWORD=word.
        return is_setting or content.isdigit() or _mixed().match(content) is not None
    named = _type_name().fullmatch(content) or _email().fullmatch(content) or _hyphenated().fullmatch(content)
    return _mixed().match(content) is not None and not named


def is_reference(content: str) -> bool:
    """Whether it says where the secret is: a path, an address, an environment variable."""
    return _reference().match(content) is not None or _file().fullmatch(content) is not None


def is_code(content: str, is_setting: bool) -> bool:
    if _call().match(content) or _dotted().fullmatch(content):
        return True
    return not is_setting and "_" in content and _words().fullmatch(content) is not None


@cache
def _name() -> re.Pattern[str]:
    # The rest of the name, its closing quote, and the sign of assignment; or a space, after a flag. In lower case.
    return re.compile(
        r"(?:pass(?:w(?:or)?d|phrase|code)|pwd|(?<![a-z])pw|secret|token|key|auth|비밀번호|비번|패스워드|암호|토큰|시크릿|키)"
        r"(?:[_-]?(?:access|key|token|secret|base|value|string|hash|admin|root|user|db|b64|hex|[0-9]{1,2})){0,3}+s?"
        r"""(?:\\{0,3}["'`])?(?:(?P<assigned>[ \t]{0,8}(?:=>|:=|=(?!=)|:(?!:))[ \t]{0,8})|[ ](?=\S))"""
    )


@cache
def _flag() -> re.Pattern[str]:
    return re.compile(r"(?<!\S)--[A-Za-z-]{0,36}\Z")


@cache
def _value() -> re.Pattern[str]:
    quoted = "|".join(
        rf"{mark}(?P<{name}>[^{mark}\s\\]{{8,}}+)\\{{0,3}}{mark}"
        for name, mark in (("double", '"'), ("single", "'"), ("back", "`"))
    )
    # Outside quotes an equals sign is padding at the end or the next assignment.
    bare = rf"[!#-%(-+\--:?-\[\]^_a-{{}}~]{{6,{_RUN_MAX}}}+(?:={{1,2}}(?=[\s,;&)\]}}]|\Z))?"
    return re.compile(rf"[bBfFrRuU]{{0,2}}\\{{0,3}}(?:{quoted})|(?P<bare>{bare})")


@cache
def _rest() -> re.Pattern[str]:
    return re.compile(r"""[^\s"'`,;<>\\|&]*""")


@cache
def _mixed() -> re.Pattern[str]:
    return re.compile(r"(?=[^a-zA-Z]*[a-zA-Z])(?=[^0-9!@#$%^&*+=?~]*[0-9!@#$%^&*+=?~])")


@cache
def _words() -> re.Pattern[str]:
    return re.compile(r"[A-Za-z]+\d{0,2}(?:[_.:-](?:[A-Za-z]+\d{0,2}|\d{1,2}))*")


@cache
def _hyphenated() -> re.Pattern[str]:
    return re.compile(r"[A-Za-z]+\d{0,2}(?:[.:-][A-Za-z]+\d{0,2})+|v?\d+(?:\.\d+)+\S*")


@cache
def _email() -> re.Pattern[str]:
    return re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+")


@cache
def _type_name() -> re.Pattern[str]:
    return re.compile(r"[A-Z][A-Za-z]*(?:8|16|32|64|128|256|512)[A-Za-z]*")


@cache
def _reference() -> re.Pattern[str]:
    return re.compile(
        r"[A-Za-z][A-Za-z0-9+.-]{1,20}://|\.{0,2}/|~/|[A-Za-z]:\\|[a-z_.-]+/[a-z_.-]+\d{0,3}(?:/[a-z_.-]+\d{0,3})*\Z"
        r"|(?:process\.env|os\.environ|os\.getenv|env|secrets|vars?|config|settings|self|this|arn|vault|op|ref|file)[.:(\[]|(?i:ctrl|alt|shift|cmd|meta)[+-]",
    )


@cache
def _file() -> re.Pattern[str]:
    endings = "pem|key|crt|cer|p12|json|ya?ml|tsx?|jsx?|py|env|txt|toml|cfg|ini|conf|go|rs|java|kt|md|lock|db|sh|rb|php"
    return re.compile(rf"[\w./@-]{{1,200}}\.(?:{endings})")


@cache
def _call() -> re.Pattern[str]:
    return re.compile(r"[A-Za-z_$][\w$.]*[(\[{]|[(\[{]")


@cache
def _dotted() -> re.Pattern[str]:
    return re.compile(r"[A-Za-z_]\w*(?:\??\.[A-Za-z_]\w*)+")


@cache
def _aws_secret() -> re.Pattern[str]:
    return re.compile(r"[A-Za-z0-9/+=]{40}")


@cache
def _hex() -> re.Pattern[str]:
    return re.compile(r"[0-9a-fA-F]+")
