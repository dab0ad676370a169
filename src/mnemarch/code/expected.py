"""The content that claims rest on: what their tests compare with, kept as digests, and what they cite (R8, R20)."""

from __future__ import annotations

from itertools import chain

from mnemarch.code.tests import body_of, place_of
from mnemarch.code.worktree import content_hash
from mnemarch.model.citation import CitationKind
from mnemarch.model.testrun import meant, short_name
from mnemarch.model.unit import EXPECTED
from mnemarch.text.cache import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from mnemarch.code.worktree import WorkTree
    from mnemarch.model.unit import Claim, Proof, Unit

_ITEM_CHARS = 8
_IN_FILE = "@"
# Strings, numbers, and the words and operators of a comparison.
_COMPARED = (
    r"""'[^'\n]*'|"[^"\n]*"|`[^`\n]*`|\b\d[\w.]*|[=!<>]=+|[<>]|\b(?:not|raises|rejects|toThrow|assert\w+"""
    r"|[Tt]rue|[Ff]alse|[Nn]one|null)\b"
)
_VALUE, _WRITTEN_AS = r"[\d'\"`]", ("{}", "'{}'", '"{}"', "`{}`")


def expected_by(tree: WorkTree, test: str, path: str | None = None) -> frozenset[str]:
    """Digests of the numbers, strings and operators that the lines of a test compare with. Empty if unknown.

    `path` is the test's file. It is included if the test's name doesn't contain it.
    """
    is_named = bool(place_of(test).path)
    found = _compared_in(tree, test, path)
    where = [f"{_IN_FILE}{path}"] if found and path and not is_named and " " not in path else []
    return frozenset([*where, *map(_digest, found)])


def _compared_in(tree: WorkTree, test: str, path: str | None) -> list[str]:
    return pattern(_COMPARED).findall(body_of(tree, test, path))


def _digest(item: str) -> str:
    return content_hash(item)[:_ITEM_CHARS]


def still_expected(tree: WorkTree, proof: Proof | None) -> bool | None:
    """Whether the tests that verified a unit still contain every expected value of that time. None if unknown."""
    if proof is None or not proof.expects or proof.person is not None:
        return None
    then, now = _then_and_now(tree, proof.expects, proof.tests)
    return then.issubset(map(_digest, chain.from_iterable(now))) if all(now) else None


def _then_and_now(tree: WorkTree, expects: str, tests: Iterable[str]) -> tuple[frozenset[str], list[list[str]]]:
    """The digests of what tests compared with then, and for each of them what it compares with now."""
    items = frozenset(expects.split())
    files = [item for item in items if item.startswith(_IN_FILE)]
    now = []
    for name in meant(tests):
        paths = [None] if place_of(name).path else [file.removeprefix(_IN_FILE) for file in files]
        now.append([item for path in paths for item in _compared_in(tree, name, path)])
    return items.difference(files), now


def is_overtaken(tree: WorkTree, said: Unit | Claim) -> bool:
    """Whether the tests of a claim compared with its value when it was claimed, and compare with another one now.

    A test that was written or changed for the claim compares with the claim's value now.
    """
    expects = said.attributes.get(EXPECTED)
    then, now = _then_and_now(tree, str(expects), _tests_of(said)) if expects else (frozenset[str](), [])
    items = {_digest(item): item for item in chain.from_iterable(now)}
    new = {digest for digest, item in items.items() if digest not in then and pattern(_VALUE).match(item)}
    if not new or then <= items.keys():
        return False
    own = _digests_of_values(said)
    return own.isdisjoint(new) and not own.isdisjoint(then - items.keys())


def rest_on_two_contents(left: Unit, right: Unit) -> bool:
    """Whether two units rest on two contents of one code, and so never hold in one tree (R8).

    They cite a symbol or lines with different contents. Or one test compares with the value of each: a verified unit's
    at the time when it was verified, another's when it was claimed.
    """
    ours, theirs = _forms(left), _forms(right)
    if any(ours[name] != theirs[name] for name in ours.keys() & theirs.keys()):
        return True
    own, others = (frozenset(str(_expects(unit) or "").split()) for unit in (left, right))
    tests, other_tests = ({short_name(test) for test in _tests_of(unit)} for unit in (left, right))
    if own <= others or others <= own or tests.isdisjoint(other_tests):
        return False
    is_ours = not _digests_of_values(left).isdisjoint(own - others)
    return is_ours and not _digests_of_values(right).isdisjoint(others - own)


def _forms(unit: Unit) -> dict[str, tuple[str | None, ...]]:
    """The contents of the symbols and lines that a unit cites."""
    names = [item for item in unit.citations if item.kind is CitationKind.SYMBOL]
    lines = [item for item in unit.citations if item.kind is CitationKind.FILE and item.get("lines")]
    forms: dict[str, tuple[str | None, ...]] = {str(item): (item.get("sha256"),) for item in lines}
    return forms | {str(item): (item.get("signature"), item.get("value")) for item in names}


def _expects(unit: Unit) -> str | None:
    return unit.attributes.get(EXPECTED) if unit.proof is None else unit.proof.expects


def _tests_of(said: Unit | Claim) -> list[str]:
    return [citation.ref for citation in said.citations if citation.kind is CitationKind.TEST]


def _digests_of_values(said: Unit | Claim) -> frozenset[str]:
    """Digests of the values that a claim states, in the forms in which a test may compare with them."""
    from mnemarch.text.statements import statement

    values = statement(said.content).values
    words = {word for each in values for word in {*each.words, *f"{each.written} {each.written.lower()}".split()}}
    return frozenset(_digest(form.format(word)) for word in words for form in _WRITTEN_AS)
