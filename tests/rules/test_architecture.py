"""The house stays in order: small modules, short functions, a card per folder, and a map that equals the tree.

Raising a number here takes a record in docs/decisions/.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "mnemarch"
MODULES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = sorted({path.parent for path in MODULES} - {PACKAGE})
MODULE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
# Ceilings that only go down; record 19 names where they are heading.
CODE_LINES_MAX = 44_519
MODULES_MAX = 219
TEST_LINES_MAX = 39_265
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def lines_of(node: ast.expr | ast.stmt) -> set[int]:
    return set(range(node.lineno, node.end_lineno + 1))


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def code_lines(path: Path) -> int:
    """Lines that hold code: no blank line, no comment, no docstring."""
    written = enumerate(map(str.strip, path.read_text(encoding="utf-8").splitlines()), start=1)
    lines, documented = {number for number, text in written if text and text[0] != "#"}, set()
    for node in nodes_of(path):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            documented |= lines_of(node.body[0])
        elif isinstance(node, ast.Constant | ast.JoinedStr) and node.lineno != node.end_lineno:
            lines |= lines_of(node)  # A blank line in a text is code.
    return len(lines - documented)


def named(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def test_the_counter_counts_code_only(tmp_path):
    path = tmp_path / "a.py"
    path.write_text('"""Doc."""\n\n# note\nX = """a\nb"""\n\n\ndef f():\n    """Doc\n    more."""\n    return 1\n')
    assert code_lines(path) == 4


def test_a_module_is_small_and_its_functions_are_short():
    for path in MODULES:
        assert code_lines(path) <= MODULE_LINES_MAX, path
        for node in nodes_of(path):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = node.end_lineno - node.lineno + 1
                assert lines <= FUNCTION_LINES_MAX, f"{named(path)}: {node.name} has {lines} lines"


def test_the_whole_is_small():
    assert sum(map(code_lines, MODULES)) <= CODE_LINES_MAX
    assert len(MODULES) <= MODULES_MAX
    assert sum(map(code_lines, (ROOT / "tests").rglob("*.py"))) <= TEST_LINES_MAX


def test_a_folder_has_a_card():
    for folder in FOLDERS:
        card = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
        assert all(word in (card or "") for word in ("Takes:", "Gives:", "Never:")), named(folder)


def test_the_map_names_every_folder_and_no_other():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    table = text.partition("## The folders")[2].partition("\n## ")[0]
    listed = re.findall(r"^\| `([\w/]+)/` \|", table, re.MULTILINE)
    assert listed == sorted(listed)
    assert listed == [named(folder) for folder in FOLDERS]
