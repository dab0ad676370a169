"""Edits JSON with comments with minimal changes of the text. Removing an insertion restores the text to the byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from mnemarch.model.value import Frozen

Path = tuple[str | int, ...]
Owned = Callable[[Path, Any], bool]

_SKIPPED = re.compile(r"(?:[\s\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_WORD = re.compile(r'[^\s{}\[\],:"/]+')
_INDENT = re.compile(r"\n([ \t]+)\S")
_DEPTH_MAX = 100
_CLOSES = {"{": "}", "[": "]"}


class Node(Frozen):
    """One JSON value and its place in the text. `items` are its members or elements."""

    value: Any
    start: int
    end: int
    items: tuple[Item, ...] = ()


class Item(Frozen):
    """A member or an element: its start (a member's is its key's), its node, and the place of the comma after it."""

    key: str | int
    start: int
    node: Node
    comma: int | None


def parsed(text: str) -> Node:
    """Parse a text. Raises ValueError with the number of the line that is no JSON."""
    node = _value(text, _skip(text, 0), 0)
    if _skip(text, node.end) != len(text):
        raise _wrong(text, _skip(text, node.end))
    return node


def _value(text: str, at: int, depth: int) -> Node:
    if text[at : at + 1] in _CLOSES and depth < _DEPTH_MAX:
        return _container(text, at, depth)
    token = _STRING.match(text, at) or _WORD.match(text, at)
    if token is None:
        raise _wrong(text, at)
    try:
        return Node(value=json.loads(token[0], strict=False), start=at, end=token.end())
    except ValueError:
        raise _wrong(text, at) from None


def _container(text: str, start: int, depth: int) -> Node:
    is_object, at = text[start] == "{", _skip(text, start + 1)
    items: list[Item] = []
    while text[at : at + 1] != _CLOSES[text[start]]:
        begin = at
        key: str | int = len(items)
        if items and items[-1].comma is None:
            raise _wrong(text, at)
        if is_object:
            name = _value(text, at, _DEPTH_MAX)
            at = _skip(text, name.end)
            if not isinstance(name.value, str) or text[at : at + 1] != ":":
                raise _wrong(text, at)
            key, at = name.value, _skip(text, at + 1)
        node = _value(text, at, depth + 1)
        at = _skip(text, node.end)
        comma = at if text[at : at + 1] == "," else None
        items.append(Item(key=key, start=begin, node=node, comma=comma))
        at = at if comma is None else _skip(text, at + 1)
    data = {item.key: item.node.value for item in items} if is_object else [item.node.value for item in items]
    return Node(value=data, start=start, end=at + 1, items=tuple(items))


def _skip(text: str, at: int) -> int:
    skipped = _SKIPPED.match(text, at)
    return skipped.end() if skipped else at


def _wrong(text: str, at: int) -> ValueError:
    return ValueError(f"line {text.count(chr(10), 0, at) + 1} is no JSON")


def _child(node: Node, key: str | int) -> Node | None:
    # Of two members with one name the last counts, as in the hosts' parsers.
    return next((item.node for item in reversed(node.items) if item.key == key), None)


def _at(node: Node, path: Path) -> Node | None:
    for key in path:
        child = _child(node, key)
        if child is None:
            return None
        node = child
    return node


def inserted(text: str, path: tuple[str, ...], content: Any, *, is_element: bool) -> str:
    """The text with a new member at `path`, or a new last element in the list there. Missing containers are added."""
    node = parsed(text)
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict):
            raise ValueError(f"{'.'.join(path[:depth]) or 'the whole'} is no object")
        child = _child(node, key)
        if child is None:
            content = [content] if is_element else content
            for inner in reversed(path[depth + 1 :]):
                content = {inner: content}
            return _put(text, node, content, f"{json.dumps(key)}: ")
        node = child
    if not isinstance(node.value, list):
        raise ValueError(f"{'.'.join(path)} is no list")
    return _put(text, node, content, "")


def _put(text: str, container: Node, content: Any, key: str) -> str:
    inner = text[container.start + 1 : container.end - 1]
    unit = match[1] if (match := _INDENT.search(text)) else "  "
    line = text[text.rfind("\n", 0, container.start) + 1 : container.start]
    margin = line[: len(line) - len(line.lstrip())]
    newline = "\r\n" if "\r\n" in text else "\n"
    last = container.items[-1] if container.items else None
    if last is not None and "\n" not in inner:
        head, tail, rendered = " ", "", json.dumps(content, ensure_ascii=False)
    else:
        lines = json.dumps(content, ensure_ascii=False, indent=unit).split("\n")
        rendered, head = f"{newline}{margin}{unit}".join(lines), f"{newline}{margin}{unit}"
        tail = "" if "\n" in inner else f"{newline}{margin}"
    # The new item goes after the last comment, which belongs to the item before.
    at = container.start + 1 + len(inner.rstrip())
    if last is not None and last.comma is not None:
        return f"{text[:at]}{head}{key}{rendered},{tail}{text[at:]}"
    comma_at = at if last is None else last.node.end
    comma = "" if last is None else ","
    return f"{text[:comma_at]}{comma}{text[comma_at:at]}{head}{key}{rendered}{tail}{text[at:]}"


def without(text: str, owned: Owned, before: str | None) -> str:
    """The text without owned items and without containers that become empty, except containers that `before` has."""
    original = None if before is None else parsed(before)
    while True:
        node = parsed(text)
        path = next(_owned_paths(node, (), owned), None)
        if path is None:
            return text
        while len(path) > 1 and (original is None or _at(original, path[:-1]) is None):
            parent = _at(node, path[:-1])
            if parent is None or len(parent.items) > 1:
                break
            path = path[:-1]
        blank = ""
        if original is not None and before is not None and (there := _at(original, path[:-1])) is not None:
            blank = before[there.start + 1 : there.end - 1]
        text = _cut(text, node, path, blank)


def _owned_paths(node: Node, path: Path, owned: Owned) -> Iterator[Path]:
    for number, item in reversed(list(enumerate(node.items))):
        here = (*path, number if isinstance(node.value, list) else item.key)
        if owned(here, item.node.value):
            yield here
        else:
            yield from _owned_paths(item.node, here, owned)


def _cut(text: str, root: Node, path: Path, blank: str) -> str:
    """The text without one item, the space before it and one comma. A container that becomes empty gets `blank`."""
    container = _at(root, path[:-1])
    assert container is not None
    number = next(n for n, item in reversed(list(enumerate(container.items))) if item.key == path[-1])
    item, previous = container.items[number], container.items[number - 1] if number else None
    start = len(text[: item.start].rstrip())
    if item.comma is not None:
        return text[:start] + text[item.node.end : item.comma] + text[item.comma + 1 :]
    if previous is not None:
        assert previous.comma is not None
        return text[: previous.comma] + text[previous.comma + 1 : start] + text[item.node.end :]
    inner = text[container.start + 1 : start] + text[item.node.end : container.end - 1]
    inner = blank if inner.strip() == blank.strip() else inner
    return text[: container.start + 1] + inner + text[container.end - 1 :]
