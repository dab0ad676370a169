"""Writes decision records: a new one for a decision without a file, or a changed status in an existing one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from unicodedata import category, normalize

from mnemarch.interfaces.adr.record import MARK, digest_of, read_record, titled
from mnemarch.model.decision import Decision

# Some encrypted file systems allow 143 bytes in a file's name.
_SLUG_BYTES_MAX = 120
_KOREAN = {"accepted": "승인됨", "deprecated": "폐기됨", "superseded": "대체됨"}
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")
# The text before the status on its line, by the status's place.
_BEFORE_STATUS = {"section": re.compile(r"[ \t]*(?:[*+-][ \t]+)?"), "front": re.compile(r"[^:]*:[ \t]*")}
_BEFORE_STATUS["head"] = re.compile(r"[^:：]*[:：][*_]*[ \t]*")


def file_name(number: int, title: str) -> str:
    """The file name of a record: 0012-kebab-case-of-title.md, in the title's own script."""
    plain = normalize("NFC", normalize("NFKC", title).lower())
    letters = "".join(each if each.isalnum() or category(each)[0] == "M" else " " for each in plain)
    slug = "-".join(letters.split()).encode()[:_SLUG_BYTES_MAX].decode(errors="ignore").strip("-")
    return f"{number:04}-{slug or 'decision'}.md"


def reference(number: int | None, title: str, name: str) -> str:
    """A Markdown link to a record."""
    label = re.sub(r"[][\\]", "", title if number is None else f"{number}. {title}")
    return f"[{label}]({name.replace(' ', '%20')})"


def new_record(decision: Decision, number: int, supersedes: Sequence[str] = ()) -> str:
    """A decision as a record in Nygard's form. Reading the record gives the same decision.

    A comment in it has the id of the decision's first version, a digest of the file, and strength and domain.
    """
    text = decision.text.strip()
    first, _, rest = text.partition("\n")
    title, rest = titled(first), rest.strip()
    is_joined_again = rest and f"{title}\n\n{rest}" == text and titled(rest) != title
    remark = f"<!-- mnemarch: {decision.root_id} -->"
    blocks = [f"# {number}. {title}", remark, f"Date: {decision.unit.occurred_at:%Y-%m-%d}"]
    blocks += [
        "## Status",
        "Accepted" if decision.is_active else "Deprecated",
        *(f"Supersedes {link}" for link in supersedes),
    ]
    blocks += ["## Context", _quoted_if_needed(decision.reason.summary)]
    blocks += ["## Decision", _quoted_if_needed(rest if is_joined_again else text)]
    blocks += ["## Consequences", _quoted_if_needed(decision.reason.tradeoff or "")]
    record = "\n\n".join(filter(None, blocks)) + "\n"
    mark = f"<!-- mnemarch: {decision.root_id} {digest_of(record)} {decision.strength} {decision.unit.domain} -->"
    if MARK.fullmatch(mark) is None:  # The name of the domain can't stand in a comment.
        mark = f"<!-- mnemarch: {decision.root_id} {digest_of(record)} -->"
    return record.replace(remark, mark, 1)


def _quoted_if_needed(text: str) -> str:
    """The text, as a quotation if it would break the record's outline, for example by a heading."""
    record = read_record(f"# T\n\n## Context\n\n{text}\n\n## Decision\n\nend\n")
    if not text or (record.context, record.decision) == (text.rstrip(), "end"):
        return text
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def with_status(text: str, status: str, by: str = "") -> str | None:
    """The text with another status: `status`, or "superseded by" the link in `by`. Every other line stays.

    Returns None if the status can't be changed in place.
    """
    record, status = read_record(text), "superseded" if by else status
    lines = _LINE.findall(text.removeprefix("\ufeff"))
    if not 0 <= record.status_at < len(lines):
        return None
    line, ending = lines[record.status_at]
    words = f"superseded by {by}" if by else status
    if record.status_in == "title":
        line += (ending or "\n") * 2 + f"Status: {words.capitalize() if not by else words}"
    else:
        before = _BEFORE_STATUS[record.status_in].match(line)
        start = before[0] if before else ""
        if re.search("[가-힣]", line[len(start) :]):
            words = f"{by}에 의해 {_KOREAN[status]}" if by else _KOREAN[status]
        elif line[len(start) :][:1].isupper():
            words = words[0].upper() + words[1:]
        line = start + (f'"{words}"' if record.status_in == "front" and by else words)
    lines[record.status_at] = (line, ending)
    new = text[: text.startswith("\ufeff")] + "".join(each + end for each, end in lines)
    back = read_record(new)
    return new if (back.status, back.content) == (status, record.content) else None
