"""Architecture decision records in Markdown: read, written, named, and told from other files."""

from __future__ import annotations

from functools import cache
from unicodedata import category, normalize

from mnemarch.decisions.adr_read import read_adr
from mnemarch.decisions.adr_record import AdrLink, AdrRecord
from mnemarch.decisions.adr_write import write_adr
from mnemarch.lazy import Lazy

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
else:
    re = Lazy("re")

__all__ = [
    "AdrLink",
    "AdrRecord",
    "file_name",
    "is_adr",
    "is_name_of_record",
    "read_adr",
    "record_in",
    "write_adr",
]

# Some encrypted file systems stop at 143 bytes; 40 Korean syllables are a long title.
_SLUG_BYTES_MAX = 120
_DIGITS_MAX = 12
# Windows opens a device for these, whatever the ending.
_DEVICES = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{digit}" for port in ("com", "lpt") for digit in range(10))]
)


def file_name(record: AdrRecord) -> str:
    """The name of the record's file: 0012-kebab-case-of-title.md, in whatever script the title is written."""
    slug = _slug(record.title) or "decision"
    if record.number is not None:
        return f"{str(abs(record.number)).zfill(4)[:_DIGITS_MAX]}-{slug}.md"
    return f"decision-{slug}.md" if slug in _DEVICES else f"{slug}.md"


def is_adr(text: str, name: str) -> bool:
    """Whether a file is a decision record, and not a README, an index or a template."""
    return record_in(text, name) is not None


def record_in(text: str, name: str) -> AdrRecord | None:
    """The record that a file is, if it is one."""
    if not is_name_of_record(name):
        return None
    record = read_adr(text, name)
    if _placeholder().fullmatch(record.title):
        return None
    if record.form != "other" or (record.decision and (record.context or record.consequences or record.status)):
        return record
    numbered_alike = record.number is not None and record.number == read_adr("", name).number == read_adr(text).number
    return record if numbered_alike else None


def is_name_of_record(name: str) -> bool:
    """Whether a file may be a record by its name."""
    base = name.replace("\\", "/").rpartition("/")[2]
    stem, dot, ending = base.rpartition(".")
    if dot and ending.casefold() not in {"md", "markdown"}:
        return False
    return _no_record().fullmatch(stem if dot else base) is None


def _slug(title: str) -> str:
    """Letters, digits and the marks that belong to them, in small letters, with single hyphens between the words."""
    plain = normalize("NFC", normalize("NFKC", title[: 4 * _SLUG_BYTES_MAX]).lower())
    kept = "".join(each if each.isalnum() or category(each)[0] == "M" else " " for each in plain)
    slug = "-".join(kept.split())
    return slug.encode()[:_SLUG_BYTES_MAX].decode(errors="ignore").strip("-")


@cache
def _no_record() -> re.Pattern[str]:
    kind = r"(?:m?adrs?|nygard|decisions?|records?|architecture|[0-9x]+)"
    what = r"(?:templates?|템플릿|readme|index|toc|table-of-contents|summary|changelog|contributing|license|목차)"
    more = r"(?:m?adr|nygard|minimal|bare|short|long|full|[a-z]{2}|[a-z]{2}-[a-z]{2}|[0-9.]+)"
    return re.compile(rf"[_.]*(?:{kind}[-_ ])*{what}(?:[-_. ]{more})*", re.IGNORECASE)


@cache
def _placeholder() -> re.Pattern[str]:
    return re.compile(
        r"[{<\[][^{}<>\[\]]*[}>\]]|(?:NUMBER\. )?title|(?:m?adr|decision record) ?template|title of .*|short title.*",
        re.IGNORECASE,
    )
