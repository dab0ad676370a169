"""Secrets that are known by the name they are assigned to: password=…, "api_key": "…", 비밀번호: …"""

from __future__ import annotations

import re
from functools import cache

from mnemon.text.secret_shapes import is_placeholder, looks_random

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# A keyword, and what must come before it for it to be a secret's name; None if it is one by itself.
_KEYWORDS: dict[str, tuple[str, ...] | None] = {
    "passw": None,
    "passphrase": None,
    "pwd": None,
    "secret": None,
    "token": None,
    "key": ("api", "access", "private", "secret", "encryption", "signing", "master", "auth", "account", "shared"),
    "auth": None,
    "비밀번호": None,
    "패스워드": None,
    "암호": None,
    "토큰": None,
}
_WORD_MIN = 8
_RUN_MAX = 2048


def assigned_secrets(text: str, lowered: str) -> Iterator[tuple[int, int, str]]:
    """From, to and kind of each value that is assigned to the name of a secret and looks like one."""
    for keyword, before in _KEYWORDS.items():
        at = lowered.find(keyword)
        while at >= 0:
            end = at + len(keyword)
            if before is None or lowered[max(0, at - 12) : at].rstrip("_- ").endswith(before):
                span = _value_after(text, lowered, at, end)
                if span:
                    yield span
                    end = span[1]
            at = lowered.find(keyword, end)


def is_secret_of(name: str, content: str) -> bool:
    """Whether an entry of that name with that content holds a secret."""
    # Read as the JSON it may have come from, so that one set of rules decides.
    if len(content) < _WORD_MIN or len(name) > 128 or '"' in content or "\n" in content:
        return False
    text = f'"{name}": "{content}"'
    lowered = text.lower()
    return len(lowered) == len(text) and any(
        end == len(text) - 1 and start == len(name) + 5 for start, end, _ in assigned_secrets(text, lowered)
    )


def _value_after(text: str, lowered: str, at: int, end: int) -> tuple[int, int, str] | None:
    if lowered.startswith("auth", at) and text[at - 1 : at].isalpha() and at:
        return None
    name = _name().match(text, at)
    if name is None:
        return None
    is_flag = name["assigned"] is None
    if is_flag and not _flag().search(text, max(0, at - 40), at):
        return None
    found = _value().match(text, name.end())
    if found is None:
        return None
    is_password = lowered.startswith(("passw", "passp", "pwd", "비", "패", "암"), at)
    quoted = found["quoted"]
    if quoted is not None:
        return _span(found, "quoted", _kind(lowered, at, quoted)) if _is_quoted_secret(quoted, is_password) else None
    start, stop = found.span("bare")
    if stop - start == _RUN_MAX:
        stop = _rest().match(text, stop).end()  # type: ignore[union-attr]
    stop -= len(text[start:stop]) - len(text[start:stop].rstrip(")]}.:!?*"))
    bare = text[start:stop]
    glued = not is_flag and name["assigned"].strip() == name["assigned"] == "=" and text[stop : stop + 1] not in {",", ")"}
    if not _is_bare_secret(bare, is_password, glued=glued):
        return None
    return start, stop, _kind(lowered, at, bare)


def _span(match: re.Match[str], group: str, kind: str) -> tuple[int, int, str]:
    return match.start(group), match.end(group), kind


def _kind(lowered: str, at: int, content: str) -> str:
    named_for_aws = "aws" in lowered[max(0, at - 24) : at + 8] or "secret" in lowered[max(0, at - 16) : at + 8]
    is_key = len(content) == 40 and _aws_secret().fullmatch(content) and not _hex().fullmatch(content)
    return "aws-secret-key" if named_for_aws and is_key else "assigned-secret"


def _is_quoted_secret(content: str, is_password: bool) -> bool:
    if len(content) < _WORD_MIN or is_placeholder(content) or _is_reference(content) or not content.isascii():
        return False
    # In quotes a password may be a plain word; a token of words ("session-token") is a name.
    return is_password or (looks_random(content) and not _words().fullmatch(content))


def _is_bare_secret(content: str, is_password: bool, *, glued: bool) -> bool:
    if len(content) < _WORD_MIN or is_placeholder(content) or _is_reference(content) or _is_code(content):
        return False
    if is_password:
        # Outside quotes a plain word is a secret only where nothing but a setting is written so: DB_PASSWORD=word.
        return glued or content.isdigit() or _mixed().search(content) is not None
    return _mixed().search(content) is not None and not _type_name().fullmatch(content)


def _is_reference(content: str) -> bool:
    """Whether it says where the secret is: a path, an address, an environment variable."""
    return _reference().match(content) is not None or _file().fullmatch(content) is not None


def _is_code(content: str) -> bool:
    return _call().match(content) is not None or _dotted().fullmatch(content) is not None or (
        _words().fullmatch(content) is not None and "_" in content
    )


@cache
def _name() -> re.Pattern[str]:
    # The rest of the name, its closing quote, and the sign of assignment; or a space, after a flag.
    return re.compile(
        r"(?:passw(?:or)?d|passphrase|pwd|secret|token|key|auth|비밀번호|패스워드|암호|토큰)"
        r"(?:[_-]?(?:access|key|token|secret|base|value|string|hash|admin|root|user|db|b64|base64|hex|[0-9]{1,2}))"
        r"""{0,3}s?(?:\\{0,3}["'`])?(?:(?P<assigned>[ \t]{0,8}(?:=>|:=|=(?!=)|:(?!:))[ \t]{0,8})|[ ](?=\S))""",
        re.IGNORECASE,
    )


@cache
def _flag() -> re.Pattern[str]:
    return re.compile(r"(?<!\S)--[A-Za-z-]{0,36}\Z")


@cache
def _value() -> re.Pattern[str]:
    return re.compile(
        r"""(?:\\{0,3}(?P<mark>["'`])(?P<quoted>[^"'`\s\\]{8,2048})\\{0,3}(?P=mark)"""
        rf"""|(?P<bare>[!#-&(-+\--:=?-\[\]-_a-~]{{1,{_RUN_MAX}}}))"""
    )


@cache
def _rest() -> re.Pattern[str]:
    return re.compile(r"""[^\s"'`,;<>\\|&]*""")


@cache
def _mixed() -> re.Pattern[str]:
    return re.compile(r"(?=[^a-zA-Z]*[a-zA-Z])(?=[^0-9!@#$%^&*+=?~]*[0-9!@#$%^&*+=?~])")


@cache
def _words() -> re.Pattern[str]:
    return re.compile(r"[A-Za-z]+\d{0,2}(?:[_.:-][A-Za-z]+\d{0,2})*")


@cache
def _type_name() -> re.Pattern[str]:
    return re.compile(r"[A-Z][A-Za-z]*(?:8|16|32|64|128|256|512)[A-Za-z]*")


@cache
def _reference() -> re.Pattern[str]:
    return re.compile(
        r"[A-Za-z][A-Za-z0-9+.-]{1,20}://|\.{0,2}/|~/|[A-Za-z]:\\|[a-z_.-]+/[a-z_.-]+\d{0,3}(?:/[a-z_.-]+\d{0,3})*\Z"
        r"|(?:process\.env|os\.environ|os\.getenv|env|secrets|vars?|config|settings|self|this|arn|vault|op|ref|file)[.:(\[]",
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
