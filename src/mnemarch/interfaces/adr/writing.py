"""Writes decision records: a new one from a decision, or a status and links put into the text of an old one."""

from __future__ import annotations

import re
from unicodedata import category, normalize

from mnemarch.interfaces.adr.phrases import is_only_status, role_of, status_of
from mnemarch.interfaces.adr.record import read_record, titled
from mnemarch.model.caller import Level

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mnemarch.interfaces.adr.record import Record
    from mnemarch.model.decision import Decision

    # A relation such as "superseded_by", and a Markdown link to the other record.
    Mention = tuple[str, str]

FORMS = ("nygard", "madr")
# Some encrypted file systems stop at 143 bytes.
_SLUG_BYTES_MAX = 120
_KOREAN = {"accepted": "승인됨", "deprecated": "폐기됨", "superseded": "대체됨"}
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_BULLET = re.compile(r"[ \t]*[*+-][ \t]+")
_HANGUL = re.compile("[가-힣]")


def file_name(number: int, title: str) -> str:
    """0012-kebab-case-of-title.md, in whatever script the title is written."""
    plain = normalize("NFC", normalize("NFKC", title).lower())
    letters = "".join(each if each.isalnum() or category(each)[0] == "M" else " " for each in plain)
    slug = "-".join(letters.split()).encode()[:_SLUG_BYTES_MAX].decode(errors="ignore").strip("-")
    return f"{number:04}-{slug or 'decision'}.md"


def reference(label: str, name: str) -> str:
    """A Markdown link to a record."""
    target = f"<{name}>" if re.search(r"[ ()]", name) else name
    escaped = re.sub(r"[][\\]", r"\\\g<0>", label)
    return f"[{escaped}]({target})"


# A new record


def new_record(decision: Decision, number: int | None, form: str, status: str, mentions: Sequence[Mention] = ()) -> str:
    """A decision as a record of that form, from which the same decision can be read."""
    title, body = _title_and_body(decision.text.strip())
    replaced_by = [link for relation, link in mentions if relation == "superseded_by"]
    others = [_sentence(mention) for mention in mentions if mention[0] != "superseded_by"]
    status = f"superseded by {', '.join(replaced_by)}" if replaced_by else status
    level = decision.unit.level
    mark = decision.id if level >= Level.PROJECT else f"{decision.id} {level}"
    remark = f"<!-- mnemarch: {mark} -->"
    date = f"{decision.unit.occurred_at:%Y-%m-%d}"
    context, cost = _quoted_if_needed(decision.reason.summary), _quoted_if_needed(decision.reason.tradeoff or "")
    if form == "madr":
        front = [f"status: {_yaml(status)}", f"date: {date}", f"decision-makers: {decision.unit.author}"]
        blocks = ["\n".join(["---", *front, "---"]), f"# {title}", remark]
        blocks += ["## Context and Problem Statement", context, "## Decision Outcome", body]
        blocks += ["### Consequences", cost] if cost else []
        blocks += ["## More Information", "\n".join(f"* {line}" for line in others)] if others else []
    else:
        counted = title if number is None else f"{number}. {title}"
        blocks = [f"# {counted}", remark, f"Date: {date}", "## Status", _capital(status), *others]
        blocks += ["## Context", context, "## Decision", body, "## Consequences", cost]
    return "\n\n".join(filter(None, blocks)) + "\n"


def _title_and_body(text: str) -> tuple[str, str]:
    """The first line as the title and the rest below it, or all of it where a reader could not join the two again."""
    first, _, rest = text.partition("\n")
    title, rest = titled(first), rest.strip()
    is_joined_again = f"{title}\n\n{rest}" == text and titled(rest.partition("\n")[0]) != title
    return title, _quoted_if_needed(rest if rest and is_joined_again else text)


def _quoted_if_needed(text: str) -> str:
    """A text that would break the outline of a record, say by a heading, becomes a quotation."""
    record = read_record(f"# T\n\n## Context\n\n{text}\n\n## Decision\n\nend\n")
    if not text or (record.context, record.decision) == (text.rstrip(), "end"):
        return text
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


# An old record


def restated(text: str, status: str, mentions: Sequence[Mention]) -> str | None:
    """The text with this status and these links besides its own; every other line stays. None if it can't be done."""
    record = read_record(text)
    lines = _LINE.findall(text.removeprefix("\ufeff"))
    edit = _Edit(record, status, mentions)
    for change in (edit.in_section, edit.in_front_matter, edit.in_head, edit.below_head):
        if change():
            break
    new = text[: text.startswith("\ufeff")] + edit.applied(lines)
    back = read_record(new)
    added = {link.relation for link in back.links if link not in record.links}
    is_told = back.status == status and added >= {relation for relation, _ in mentions}
    return new if is_told and back.content == record.content else None


class _Edit:
    """The lines that are replaced, and those that are put in after a line."""

    def __init__(self, record: Record, status: str, mentions: Sequence[Mention]) -> None:
        self._record = record
        self._status = status
        replacing = [link for relation, link in mentions if status == "superseded" and relation == "superseded_by"]
        self._by = ", ".join(replacing)
        self._others = [mention for mention in mentions if mention[1] not in replacing]
        self._replaced: dict[int, str] = {}
        self._inserted: dict[int, list[str]] = {}

    def _words(self, before: str) -> str:
        """The new status in the language of the line that told the old one; nothing if it stays."""
        if self._status == self._record.status and not self._by:
            return ""
        if _HANGUL.search(before):
            return f"{self._by}에 의해 대체됨" if self._by else _KOREAN.get(self._status, self._status)
        return f"superseded by {self._by}" if self._by else self._status

    def in_section(self) -> bool:
        record = self._record
        section = next((one for one in record.sections if one.role == "status" and one.leads), None)
        if section is None:
            return False
        used = [at for at in range(section.body, section.end) if record.lines[at].strip()]
        last = used[-1] if used else section.body - 1
        words = _capital(self._words(record.lines[used[0]] if used else ""))
        old = [
            line.at
            for line in record.told
            if line.role == "status"
            and status_of(line) == record.status
            and (record.status == "superseded" or is_only_status(line))
        ]
        said = [words] if words else []
        if words and old:
            self._replaced[old[-1]] = _bullet(record.lines[old[-1]]) + said.pop()
        said += map(_sentence, self._others)
        bullet = _bullet(record.lines[last])
        self._inserted[last] = [bullet + line for line in said] if bullet else _paragraphs(said)
        return True

    def in_front_matter(self) -> bool:
        at = next((at for at, key, _ in self._record.front if role_of(key) == "status"), None)
        if at is None:
            return False
        line = self._record.lines[at]
        if words := self._words(line):
            self._replaced[at] = f"{line.partition(':')[0]}: {_yaml(words)}"
        links: dict[str, list[str]] = {}
        for relation, link in self._others:
            links.setdefault(relation.replace("_", "-"), []).append(link)
        self._inserted[at] = [f"{key}: {_yaml(', '.join(each))}" for key, each in links.items()]
        return True

    def in_head(self) -> bool:
        told = self._record.status_line()
        if told is None:
            return False
        at, line = told.at, self._record.lines[told.at]
        key, old = re.split(r"(?<=[:：])", line, maxsplit=1)
        marks = re.match(r"[*_]*[ \t]*", old)
        start = key + (marks[0] if marks else "")
        if words := self._words(old):
            self._replaced[at] = start + (_capital(words) if line[len(start) :][:1].isupper() else words)
        bullet = _bullet(line)
        said = [f"{bullet}{_named(relation)}: {link}" for relation, link in self._others]
        is_alone = not bullet and not (self._record.lines[at + 1 : at + 2] or [""])[0].strip()
        self._inserted[at] = _paragraphs(said) if is_alone else said
        return True

    def below_head(self) -> bool:
        said = [f"Status: {_capital(words)}"] if (words := self._words("")) else []
        said += map(_sentence, self._others)
        used = [at for at in range(self._record.head_end) if self._record.lines[at].strip()]
        self._inserted[used[-1] if used else 0] = _paragraphs(said)
        return True

    def applied(self, lines: Sequence[str]) -> str:
        """The lines, each with the ending it had; a new one has the ending of the first."""
        ending = next((line[len(line.rstrip("\r\n")) :] for line in lines if line[-1] in "\r\n"), "\n")
        text = []
        for at, line in enumerate(lines):
            bare, new = line.rstrip("\r\n"), self._inserted.get(at, [])
            text.append(self._replaced.get(at, bare) + (line[len(bare) :] or (ending if new else "")))
            text += [each + ending for each in new]
        return "".join(text)


def _named(relation: str) -> str:
    return relation.replace("_", " ").capitalize()


def _sentence(mention: Mention) -> str:
    return f"{_named(mention[0])} {mention[1]}"


def _paragraphs(lines: Iterable[str]) -> list[str]:
    return [each for line in lines for each in ("", line)]


def _bullet(line: str) -> str:
    bullet = _BULLET.match(line)
    return bullet[0] if bullet else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _yaml(text: str) -> str:
    """A value of front matter, in quotes where YAML would read something else."""
    if text[0] in "[{\"'&*!|>%@`#" or ": " in text or " #" in text:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return text
