"""Text without secrets: each key, token and password is replaced by its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from operator import is_

from mnemarch.lazy import Any
from mnemarch.model.stamps import blake2b
from mnemarch.text.cache import BoundedCache, cached, pattern
from mnemarch.text.words import Patterns, entries, listed

# The minimum length of a text with a secret (비번 0000), of a token or key, and of a password.
_TEXT_CHARS_MIN = 7
SECRET_CHARS_MIN = 8
PASSWORD_CHARS_MIN = 4
_PASSES_MAX = 16
# `auth` names methods and modes as often as secrets.
_AUTH_CHARS_MIN = 16
_TOKEN_DIGITS_MIN = 16
# English words are shorter than this. Only length distinguishes a secret without digits from a word.
_LETTERS_MIN = 24
# Punctuation that a sentence puts around a word: its end, emphasis, brackets.
_AROUND = "!?.~…*_:;()[]{}"

# Only secrets are read beyond this length. Otherwise many names in one long run would each read all of it.
_RUN_CHARS_MAX = 512

_ASSIGNED_NAMES = listed("secrets", "assigned names")
_TOLD_NAMES = listed("secrets", "told names")
_KOREAN_NAMES = listed("secrets", "korean names")
_PASSWORDS = tuple(listed("secrets", "passwords"))
_KEYS = listed("secrets", "keys")
_SECRET_KEYS = tuple(listed("secrets", "secret keys"))
_PLACES = Patterns("secrets", "places")
_NO_SECRETS = Patterns("secrets", "no secrets")
_SIGNS = Patterns("secrets", "signs")

# From, to, kind.
Span = tuple[int, int, str]

# A text is scanned before its transaction, and again inside as part of its event. This cache answers the second scan,
# for long texts by their digest. It also has the names of fields and kinds, which are in every event.
_clean_texts: dict[str | bytes, None] = BoundedCache(8192)
_REMEMBERED_CHARS_MAX = 256


def redacted(text: str) -> tuple[str, tuple[str, ...]]:
    """The text with each secret replaced by `[REDACTED:<kind>]`, and the kinds that were replaced."""
    if len(text) < _TEXT_CHARS_MIN or _name_of(text) in _clean_texts:
        return text, ()
    kinds: set[str] = set()
    # Removing a secret can reveal another one, so a text with a secret is scanned again. The bound keeps a text that is
    # built to reveal one secret per pass from costing the square of its length.
    for _ in range(_PASSES_MAX):
        spans = _spans(text)
        if not spans:
            _clean_texts[_name_of(text)] = None
            break
        spans = _merged(spans)
        kinds.update(kind for _, _, kind in spans)
        text = _replaced(text, spans)
    return text, tuple(sorted(kinds)) if kinds else ()


def redacted_tree(tree: Any, kinds: set[str]) -> Any:
    """The tree with every string and key redacted; the same object if it has no secret. Adds the kinds to `kinds`."""
    if isinstance(tree, str):
        text, text_kinds = redacted(tree)
        kinds.update(text_kinds)
        return text
    if isinstance(tree, list | tuple):
        items = [redacted_tree(item, kinds) for item in tree]
        return tree if all(map(is_, items, tree)) else items
    if isinstance(tree, dict):
        return _redacted_dict(tree, kinds)
    return tree


def _redacted_dict(tree: dict[Any, Any], kinds: set[str]) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    changed = False
    for key, item in tree.items():
        if _is_clean_entry(key, item):
            result[key] = item
            continue
        if isinstance(key, str) and isinstance(item, str) and _is_named_secret(key, item):
            kinds.add("assigned-secret")
            new_item: Any = "[REDACTED:assigned-secret]"
        else:
            new_item = redacted_tree(item, kinds)
        new_key = free_key = redacted_tree(key, kinds)
        # Two redacted keys may be equal, and neither entry may be lost.
        number = 1
        while free_key in result or (free_key is not key and free_key in tree):
            number += 1
            free_key = f"{new_key}#{number}"
        result[free_key] = new_item
        changed |= free_key is not key or new_item is not item
    return result if changed else tree


def _is_clean_entry(key: object, item: object) -> bool:
    """Whether the key is a text and the value a text or empty, both without a secret, as nearly always."""
    if type(key) is not str or _has_secret(key):
        return False
    if type(item) is not str:
        return not item
    return len(item) < PASSWORD_CHARS_MIN or not (_is_named_secret(key, item) or _has_secret(item))


@cached(1024)
def _names_a_secret(name: str) -> bool:
    lowered = name.lower()
    return any(keyword in lowered for keyword in _ASSIGNED_NAMES + _KOREAN_NAMES)


def _is_named_secret(name: str, content: str) -> bool:
    """Whether an entry with this name holds a secret. It is checked in its JSON form."""
    if len(content) < PASSWORD_CHARS_MIN or len(name) > 128 or not _names_a_secret(name):
        return False
    if '"' in content or "\n" in content:
        return False
    text = f'"{name}": "{content}"'
    lowered = text.lower()
    value_span = (len(name) + 5, len(text) - 1)
    return len(lowered) == len(text) and any(span[:2] == value_span for span in _assigned_secrets(text, lowered))


def _has_secret(text: str) -> bool:
    return text not in _clean_texts and bool(redacted(text)[1])


def _name_of(text: str) -> str | bytes:
    if len(text) <= _REMEMBERED_CHARS_MAX:
        return text
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=32).digest()


def _spans(text: str) -> list[Span]:
    spans = list(_known_shapes(text))
    if "-----BEGIN " in text:
        spans += _private_keys(text)
    if "://" in text and "@" in text:
        passwords = _PLACES["login"].finditer(text)
        spans += [(*match.span(1), "url-password") for match in passwords if not _is_placeholder(match[1])]
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text.translate({capital: capital + 32 for capital in range(ord("A"), ord("Z") + 1)})
    spans += _after_names(text, lowered, _TOLD_NAMES, _told_value)
    if "=" in text or ":" in text or "--" in text or "earer " in text:
        spans += _authorizations(text, lowered)
        spans += _assigned_secrets(text, lowered)
    return spans


def _merged(spans: list[Span]) -> list[Span]:
    """The spans in order, those that overlap made one of the kind of the first."""
    merged: list[Span] = []
    for start, end, kind in sorted(spans, key=lambda span: span[0]):
        if merged and start < merged[-1][1]:
            first = merged[-1]
            merged[-1] = (first[0], max(first[1], end), first[2])
        else:
            merged.append((start, end, kind))
    return merged


def _replaced(text: str, spans: list[Span]) -> str:
    pieces, at = [], 0
    for start, end, kind in spans:
        pieces += [text[at:start], f"[REDACTED:{kind}]"]
        at = end
    return "".join((*pieces, text[at:]))


def _known_shapes(text: str) -> Iterator[Span]:
    # Most texts hold no sign of any shape, and many no mark that most signs hold.
    rows = [row for mark, signs in _shapes().items() if mark in text for sign, row in signs if sign in text]
    for kind, shape in dict.fromkeys(rows):
        for match in pattern(shape).finditer(text):
            # A shape may be what a command's option holds: a variable, a mask, or what was redacted before.
            if kind != "command-password" or not _is_placeholder(match[match.lastindex or 0]):
                yield *match.span(match.lastindex or 0), kind


@cache
def _shapes() -> dict[str, list[tuple[str, tuple[str, str]]]]:
    """The signs of secrets that are known by their shape, by a mark they hold; each with the kind and its pattern."""
    table: dict[str, list[tuple[str, tuple[str, str]]]] = {"_": [], "-": [], ".": [], "": []}
    for section, form in (("shapes", "(?<![A-Za-z0-9])(?:{})"), ("named shapes", "{}")):
        for line in entries("secrets", section):
            head, _, shape = line.partition(" => ")
            kind, _, signs = head.partition(": ")
            for sign in signs.split():
                mark = next(mark for mark in table if mark in sign)
                table[mark].append((sign, (kind, form.replace("{}", shape))))
    return table


def _private_keys(text: str) -> Iterator[Span]:
    at = 0
    while begin := _PLACES["private key"].search(text, at):
        at = begin.end()
        if _PLACES["private key body"].match(text, at):
            end = _PLACES["private key end"].search(text, at)
            at = end.end() if end else len(text)
            yield begin.start(), at, "private-key"


def _authorizations(text: str, lowered: str) -> Iterator[Span]:
    for word, name in (("authorization", "authorization"), ("bearer ", "bearer")):
        at = -1
        while (at := lowered.find(word, at + 1)) >= 0:
            match = _PLACES[name].match(text, at)
            if match and _looks_random(match[match.lastindex or 0]):
                yield *match.span(match.lastindex or 0), "bearer-token"


def _assigned_secrets(text: str, lowered: str) -> Iterator[Span]:
    return _after_names(text, lowered, _ASSIGNED_NAMES, _assigned_value)


def _after_names(
    text: str, lowered: str, names: list[str], value_after: Callable[[str, str, int, str], Span | None]
) -> Iterator[Span]:
    """The secret values that follow the name of a secret."""
    for name in names if text.isascii() else names + _KOREAN_NAMES:
        at = lowered.find(name)
        while at >= 0:
            end = at + len(name)
            if name not in _KEYS or lowered[max(0, at - 12) : at].rstrip("_- ").endswith(_SECRET_KEYS):
                span = value_after(text, lowered, at, name)
                if span is not None:
                    yield span
                    end = span[1]
            at = lowered.find(name, end)


def _assigned_value(text: str, lowered: str, at: int, name: str) -> Span | None:
    """The value after `password=`, `"api_key": `, `--token `, if it looks like a secret."""
    end = at + len(name)
    # In prose a word follows the name, so most names in ordinary texts need no pattern.
    if (
        lowered[end : end + 1] == " "
        and lowered[end + 1 : end + 2] not in "=: \t"
        and "--" not in text[max(0, at - 40) : at]
    ):
        return None
    assignment = _PLACES["assignment"].match(lowered, at)
    if assignment is None or (name == "auth" and text[max(0, at - 1) : at].isalpha()):
        return None
    assigned: str | None = assignment["assigned"]
    if assigned is None and not _PLACES["flag"].search(text, max(0, at - 40), at):
        return None
    value = _PLACES["assigned value"].match(text, assignment.end())
    if value is None:
        return None
    is_password = name.startswith(_PASSWORDS)
    start, end = value.span(value.lastgroup or 0)
    if value.lastgroup != "bare":
        is_secret = _is_quoted_secret(text[start:end], is_password)
    else:
        end = _trimmed_end(text, start, end, ")]}.:")
        is_shouted = text[at : at + 3].isupper()
        is_sign = assigned is not None and (assigned.strip() == "=" or is_shouted)
        is_setting = is_sign and text[end : end + 1] not in {",", ")"}
        is_secret = _is_bare_secret(text[start:end], is_password, is_setting, shouted=is_shouted)
        if is_secret:
            end = _whole_end(text, start, end, "rest of assigned value")
    chars_min = PASSWORD_CHARS_MIN if is_password else SECRET_CHARS_MIN
    if name == "auth" and assignment.end() - at < 8:
        chars_min = _AUTH_CHARS_MIN
    if not is_secret or end - start < chars_min:
        return None
    is_aws = "aws" in lowered[max(0, at - 24) : at + 8] or "secret" in lowered[max(0, at - 16) : at + 8]
    if is_aws and end - start == 40 and _SIGNS["aws form"].fullmatch(text, start, end):
        return start, end, "aws-secret-key"
    return start, end, "assigned-secret"


def _told_value(text: str, lowered: str, at: int, name: str) -> Span | None:
    """The word after `password is`, `the token for CI was`, `비밀번호는`, if it is no natural word."""
    telling = _PLACES["telling"].match(lowered, at)
    value = _PLACES["told value"].match(text, telling.end()) if telling else None
    if telling is None or value is None:
        return None
    start, end = value.span(value.lastgroup or 0)
    end = _trimmed_end(text, start, end, ")]}.:*")
    is_password = name.startswith(_PASSWORDS)
    if telling["toward"]:
        # A password "set to" a value is a secret. A password "sent to" somebody is not.
        is_set = _PLACES["set to" if telling["toward"] != "로" else "used as"].match(lowered, value.end())
        is_changed = is_set or _PLACES["changing"].search(lowered, max(0, at - 40), at)
        if not is_changed or not (is_password or (is_set and is_set["changed"])):
            return None
    content = text[start:end]
    if telling["direct"] and not (is_password and _SIGNS["plain password"].fullmatch(content.rstrip(_AROUND))):
        return None
    is_quoted = value.lastgroup == "quoted" and is_password
    if len(content) < (PASSWORD_CHARS_MIN if is_password else SECRET_CHARS_MIN):
        return None
    if not (_is_quoted_secret(content, is_password) if is_quoted else _is_told_secret(content, is_password)):
        return None
    return start, _whole_end(text, start, end, "rest of told value"), "assigned-secret"


def _trimmed_end(text: str, start: int, end: int, marks: str) -> int:
    is_cut = end - start >= _RUN_CHARS_MAX
    return end if is_cut else start + len(text[start:end].rstrip(marks))


def _whole_end(text: str, start: int, end: int, rest: str) -> int:
    """The end of a secret that is longer than the longest run read of a value."""
    match = _PLACES[rest].match(text, end) if end - start >= _RUN_CHARS_MAX else None
    return match.end() if match else end


def _is_quoted_secret(content: str, is_password: bool) -> bool:
    if _is_placeholder(content) or _is_reference(content) or not content.isascii():
        return False
    # A quoted password may be a plain word. A quoted token of words ("session-token") is a name.
    return is_password or (_looks_random(content) and not _NO_SECRETS["words"].fullmatch(content))


def _is_bare_secret(content: str, is_password: bool, is_setting: bool, *, shouted: bool) -> bool:
    if _is_placeholder(content) or _is_reference(content) or _is_code(content, is_setting and shouted):
        return False
    is_mixed = _SIGNS["letter and digit or sign"].match(content) is not None
    if is_password:
        # An unquoted plain word is a secret only in the form of a setting: DB_PASSWORD=word.
        return is_setting or content.isdigit() or is_mixed
    names = ("type", "email", "hyphenated words")
    return is_mixed and not any(_NO_SECRETS[name].fullmatch(content) for name in names)


def _is_told_secret(content: str, is_password: bool) -> bool:
    """Whether the value looks like a secret. Prose follows `is` more often than `=`, so this check is stricter."""
    if _is_placeholder(content) or _is_reference(content) or _is_code(content, is_setting=False):
        return False
    core = content.strip(_AROUND)
    if core.isdigit():
        return len(core) >= (SECRET_CHARS_MIN if is_password else _TOKEN_DIGITS_MIN)
    if core.isalpha():
        return len(core) >= _LETTERS_MIN and (core.islower() or core.isupper())
    names = ("constant", "email", "numbered word" if is_password else "numbered name")
    if _NO_SECRETS["measure"].match(core) or any(_NO_SECRETS[name].fullmatch(core) for name in names):
        return False
    without_terms = _NO_SECRETS["term"].sub("", core)
    if _SIGNS["letter next to digit"].search(without_terms):
        return True
    return is_password and _SIGNS["sign between letters"].search(without_terms) is not None


def _looks_random(secret: str) -> bool:
    """Whether the value is no word or placeholder: it has digits and letters, or capitals after its first letter."""
    if _is_placeholder(secret):
        return False
    has_both = _SIGNS["digit"].search(secret) is not None and _SIGNS["letter"].search(secret) is not None
    return has_both or secret[1:] != secret[1:].lower() or "=" in secret


def _is_placeholder(content: str) -> bool:
    return _NO_SECRETS["placeholder"].match(content) is not None


def _is_reference(content: str) -> bool:
    return _NO_SECRETS["reference"].match(content) is not None or _NO_SECRETS["file"].fullmatch(content) is not None


def _is_code(content: str, is_setting: bool) -> bool:
    if _NO_SECRETS["call"].match(content) or _NO_SECRETS["dotted name"].fullmatch(content):
        return True
    return not is_setting and "_" in content and _NO_SECRETS["words"].fullmatch(content) is not None
