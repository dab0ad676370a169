"""Imports beside a change: which names a text imports, and the text with some more and some fewer of them."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mnemarch.learning.trees import Node, Tree


def import_lines(statement: str) -> list[str]:
    """A statement as one line for each name that it imports; of a language without such lists, as it is."""
    plain = re.sub(r"#.*|[()\\]", "", statement) if re.match(r"from\s|import\s+[\w.]+(\s|,|$)", statement) else ""
    head, word, names = plain.partition("import ")
    if not word or '"' in plain or "{" in plain or ";" in plain:
        return [statement]
    return [f"{head}{word}{' '.join(name.split())}" for name in names.split(",") if name.strip()]


def statements_of(tree: Tree) -> list[Node]:
    """The import statements at the top of a text."""
    return [node for node in tree.root.children if node.kind in tree.kinds.imports]


def imports_of(tree: Tree) -> list[str]:
    return [line for node in statements_of(tree) for line in import_lines(tree.text_of(node))]


def imported_name(line: str) -> str:
    """The name by which a line's import is used."""
    return re.findall(r"\w+|$", line)[-2] if re.search(r"\w", line) else ""


def origins_of(tree: Tree, words: Iterable[str]) -> list[str]:
    """The imports that these words come from."""
    wanted = set(words)
    lines = imports_of(tree)
    return [line for line in lines if imported_name(line) in wanted or set(re.findall(r"\w+", line)[1:2]) & wanted]


def with_imports(tree: Tree, needed: Iterable[str], unneeded: Iterable[str]) -> str:
    """The text with the imports that it needs and lacks, and without those that nothing uses any more."""
    statements = statements_of(tree)
    rest = _cut(tree.source, [(node.start, node.end, "") for node in statements])
    gone = {line for line in unneeded if not re.search(rf"(?<![\w.]){imported_name(line)}\b", rest)}
    present = set(imports_of(tree))
    missing = [line for line in dict.fromkeys(needed) if line not in present]
    edits: list[tuple[int, int, str]] = []
    for node in statements:
        lines = import_lines(tree.text_of(node))
        left = [line for line in lines if line not in gone]
        if len(left) == len(lines):
            continue
        new = [_joined(left)] if left else missing
        missing = missing if left else []
        end = node.end + (not new and tree.source[node.end : node.end + 1] == "\n")
        edits.append((node.start, end, "\n".join(new)))
    at = _place(tree)
    edits += [(at, at, "".join(f"{line}\n" for line in missing))]
    return _cut(tree.source, edits)


def _joined(lines: Sequence[str]) -> str:
    head, word, _ = lines[0].partition("import ")
    return head + word + ", ".join(line.removeprefix(head + word) for line in lines)


def _place(tree: Tree) -> int:
    """The beginning of the first line that is no documentation and none of the imports that must come first."""
    for number, node in enumerate(tree.root.children):
        first = node.children[0] if node.children else node
        is_text = number == 0 and first.kind in tree.kinds.strings
        if not is_text and node.kind not in tree.kinds.headers and node.start >= len(tree.prefix):
            return tree.source.rfind("\n", 0, node.start) + 1
    return len(tree.prefix)


def _cut(text: str, edits: list[tuple[int, int, str]]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text
