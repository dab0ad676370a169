"""Text without secrets: known kinds of keys, tokens and passwords are replaced by their kind."""

from __future__ import annotations

from functools import cache

from mnemarch.lazy import Lazy
from mnemarch.text.secret_names import assigned_secrets, is_secret_of
from mnemarch.text.secret_shapes import is_placeholder, looks_random, shapes_in
from mnemarch.text.secret_told import told_secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator
    from typing import Any
else:
    re = Lazy("re")

# No kind of secret is shorter.
SECRET_CHARS_MIN = 8
_PASSES_MAX = 16

# From, to, kind.
Span = tuple[int, int, str]


def redacted(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with each secret replaced by `[REDACTED:<kind>]`, and the kinds found."""
    if len(text) < SECRET_CHARS_MIN:
        return text, ()
    kinds: set[str] = set()
    # What one pass takes away can lay open what it hid, so a text that had a secret is read again; a bound keeps a
    # text that was made to unfold one secret a pass from costing the square of its length.
    for _ in range(_PASSES_MAX):
        spans = _spans(text)
        if not spans:
            break
        spans = _apart(spans)
        kinds.update(kind for _, _, kind in spans)
        text = _without(text, spans)
    return text, tuple(sorted(kinds)) if kinds else ()


def redacted_tree(obj: Any, found: set[str]) -> Any:
    """The same shape with every string in it redacted, keys too; the same object if nothing was found."""
    if isinstance(obj, str):
        text, kinds = redacted(obj)
        found.update(kinds)
        return text if kinds else obj
    if isinstance(obj, list | tuple):
        items = [redacted_tree(item, found) for item in obj]
        return obj if all(map(_is, items, obj)) else items
    if isinstance(obj, dict):
        return _redacted_dict(obj, found)
    return obj


def _is_clean(key: object, item: object) -> bool:
    """Whether an entry is two texts without a secret, as nearly all are."""
    if type(key) is not str or type(item) is not str:
        return False
    if len(key) >= SECRET_CHARS_MIN and _spans(key):
        return False
    return len(item) < SECRET_CHARS_MIN or not (is_secret_of(key, item) or _spans(item))


def _redacted_dict(obj: dict[Any, Any], found: set[str]) -> dict[Any, Any]:
    if all(map(_is_clean, obj, obj.values())):
        return obj
    result: dict[Any, Any] = {}
    changed = False
    for key, item in obj.items():
        if isinstance(key, str) and isinstance(item, str) and is_secret_of(key, item):
            found.add("assigned-secret")
            new_item: Any = "[REDACTED:assigned-secret]"
        else:
            new_item = redacted_tree(item, found)
        new_key = free_key = redacted_tree(key, found)
        # Two keys may have had one kind of secret each, and neither entry may be lost.
        number = 1
        while free_key in result or (free_key is not key and free_key in obj):
            number += 1
            free_key = f"{new_key}#{number}"
        result[free_key] = new_item
        changed |= free_key is not key or new_item is not item
    return result if changed else obj


def _is(left: object, right: object) -> bool:
    return left is right


def _spans(text: str) -> list[Span]:
    spans = shapes_in(text)
    if "-----BEGIN " in text:
        spans += _private_keys(text)
    if "://" in text and "@" in text:
        spans += _url_passwords(text)
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text.translate(_ascii_lower())
    spans += told_secrets(text, lowered)
    if "=" in text or ":" in text or "--" in text or "earer " in text:
        spans += _authorizations(text, lowered)
        spans += assigned_secrets(text, lowered)
    return spans


def _apart(spans: list[Span]) -> list[Span]:
    """The spans in order, those that overlap made one of the kind of the first."""
    apart: list[Span] = []
    for start, end, kind in sorted(spans, key=lambda span: span[0]):
        if apart and start < apart[-1][1]:
            first = apart[-1]
            apart[-1] = (first[0], max(first[1], end), first[2])
        else:
            apart.append((start, end, kind))
    return apart


def _without(text: str, spans: list[Span]) -> str:
    pieces, at = [], 0
    for start, end, kind in spans:
        pieces += [text[at:start], f"[REDACTED:{kind}]"]
        at = end
    return "".join((*pieces, text[at:]))


def _private_keys(text: str) -> Iterator[Span]:
    at = 0
    while begin := _key_begin().search(text, at):
        at = begin.end()
        # A header that is quoted in prose has no key after it.
        if _key_body().match(text, at):
            end = _key_end().search(text, at)
            at = end.end() if end else len(text)
            yield begin.start(), at, "private-key"


def _url_passwords(text: str) -> Iterator[Span]:
    for match in _url_password().finditer(text):
        if not is_placeholder(match[1]):
            yield *match.span(1), "url-password"


def _authorizations(text: str, lowered: str) -> Iterator[Span]:
    at = -1
    while (at := lowered.find("authorization", at + 1)) >= 0:
        match = _authorization().match(text, at)
        if match and looks_random(match[match.lastindex or 0]):
            yield *match.span(match.lastindex or 0), "bearer-token"
    at = -1
    while (at := lowered.find("bearer ", at + 1)) >= 0:
        match = _bearer().match(text, at)
        if match and any(map(str.isdigit, match[1])) and looks_random(match[1]):
            yield *match.span(1), "bearer-token"


@cache
def _ascii_lower() -> dict[int, int]:
    return {capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)}


@cache
def _key_begin() -> re.Pattern[str]:
    return re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")


@cache
def _key_body() -> re.Pattern[str]:
    return re.compile(r"[ \t]*(?:\\+[rn]|\r?\n|[A-Za-z0-9+/]{16})(?=[\s\S])")


@cache
def _key_end() -> re.Pattern[str]:
    return re.compile(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")


@cache
def _url_password() -> re.Pattern[str]:
    # The lengths are bounded so that a long run of marks costs no more than its length.
    return re.compile(r"""://[^\s:/?#@"'<>`]{0,128}:([^\s/"'<>`]{1,256})@""")


@cache
def _authorization() -> re.Pattern[str]:
    return re.compile(
        r"""authorization\\{0,2}["']?\s{0,4}[:=]\s{0,4}\\{0,2}["']?"""
        r"(?:(?:bearer|basic|token|apikey)\s{1,4}([A-Za-z0-9._~+/=-]{8,})|([A-Za-z0-9_~+=-]{20,}))",
        re.IGNORECASE,
    )


@cache
def _bearer() -> re.Pattern[str]:
    return re.compile(r"bearer\s{1,4}([A-Za-z0-9._~+/=-]{16,})", re.IGNORECASE)
