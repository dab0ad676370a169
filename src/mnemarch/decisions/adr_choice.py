"""What a decision record says about a choice: the items of its lists, the option that was chosen, and the reason."""

from __future__ import annotations

from functools import cache

from mnemarch.decisions.adr_outline import outside, without_comments
from mnemarch.lazy import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
else:
    re = Lazy("re")

_QUOTES = {'"': '"', "“": "”", "'": "'", "‘": "’", "`": "`", "「": "」", "«": "»"}


def items_in(text: str) -> tuple[str, ...]:
    """The items of the lists at the outer level of a text, each the first paragraph of its item in one line."""
    items: list[list[str]] = []
    is_open, outer = False, 0
    lines = text.split("\n")
    for index in outside(lines)[0]:
        line = without_comments(lines[index])
        mark = _bullet().match(line)
        indent = len(line) - len(line.lstrip())
        if mark and (not items or indent <= outer + 1):
            outer = indent
            items.append([line[mark.end() :]])
            is_open = True
        elif mark or not line.strip():
            is_open = False
        elif is_open:
            items[-1].append(line)
    joined = (" ".join(" ".join(item).split()) for item in items)
    return tuple(item for item in joined if item)


def chosen_in(decision: str) -> tuple[str, str]:
    """The option that was chosen and the reason: Chosen option: "X", because Y."""
    mark = _chosen().search(decision)
    if mark is None:
        return "", ""
    paragraph, _, after = decision[mark.end() :].partition("\n\n")
    reason = _because().search(paragraph)
    if reason is None:
        return _unquoted(paragraph, whole=False), ""
    because = paragraph[reason.end() :].strip(" \t\n:：") or after.strip()
    if not any(map(_bullet().match, because.split("\n"))):
        because = " ".join(because.split())
    if because.endswith(".") and not because.endswith(".."):
        because = because[:-1]
    return _unquoted(paragraph[: reason.start()], whole=True), because


def _unquoted(text: str, *, whole: bool) -> str:
    text = " ".join(text.split()).rstrip(" ,;:—–-")
    if text.count("**") % 2:
        text = text.partition("**")[0]
    elif text.startswith("**"):
        text = text[2:].partition("**")[0]
    text = text.rstrip(" ,;")
    closing = _QUOTES.get(text[:1])
    if closing:
        inside = text[1:].rstrip(" .")
        if inside.endswith(closing) and (whole or closing not in inside[:-1]):
            return inside[:-1].strip()
        end = re.search(rf"{re.escape(closing)}(?=[\s,.;:)*]|$)", text[1:])
        return (text[1 : end.start() + 1] if end else text[1:]).strip()
    return text if whole else text.partition(". ")[0].removesuffix(".")


@cache
def _bullet() -> re.Pattern[str]:
    return re.compile(r"[ \t]*(?:[*+-]|[0-9]{1,9}[.)])(?:[ \t]+|$)")


@cache
def _chosen() -> re.Pattern[str]:
    return re.compile(
        r"^[ \t>*_+-]*(?:the )?(?:(?:chosen|selected) (?:option|alternative|solution)"
        r"|선택(?:한|된)? ?(?:옵션|대안|선택지|방안|안)?)[*_]{0,3}[ \t]*[:：](?:[*_]{1,3}(?=\s))?",
        re.IGNORECASE | re.MULTILINE,
    )


@cache
def _because() -> re.Pattern[str]:
    return re.compile(r"(?<!\w)because(?!\w)|왜냐하면|이유[ \t]?[:：]", re.IGNORECASE)
