"""Reads what a test expects, to tell whether it still shows a claim, or says something else (R2, R20)."""

from __future__ import annotations

import builtins
from itertools import chain

from mnemarch.code.symbols import agrees
from mnemarch.code.tests import COMMON, TEST_SOURCES, body_of, place_of, telling_words
from mnemarch.code.worktree import WorkTree, content_hash
from mnemarch.model.testrun import meant, short_name
from mnemarch.model.unit import EXPECTED, CitationKind, Claim, Proof, Unit
from mnemarch.model.value import Frozen
from mnemarch.policy.promotion import cited_names
from mnemarch.text.words import kinds_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

_ITEM_CHARS = 8
_IN_FILE = "@"
# A value in the forms in which a test may write it.
_WRITTEN_AS = ("{}", "'{}'", '"{}"', "`{}`")
# A longer line is data, or was written by a program.
_LINE_CHARS_MAX = 400
# Counts that many tests compare with, whatever they are about.
_PLAIN_NUMBERS = frozenset({"0", "1"})
_CONSTANTS = {"null": "none", "nil": "none", "undefined": "none"}


class Expectations(Frozen):
    """What the source of a test expects.

    - `values`: each line that compares a thing with a constant, the thing, and the constant;
    - `errors`: the errors that the test expects, if it expects nothing else. "" stands for any error;
    - `text`: the source of the test and of what it uses in its file.
    """

    values: tuple[tuple[str, str, str], ...] = ()
    errors: tuple[str, ...] = ()
    text: str = ""

    @property
    def is_single(self) -> bool:
        return len(self.values) == 1


def expectations_in(body: str, text: str) -> Expectations:
    """What a test with these lines expects. `text` has the lines and what they use in their file."""
    values, errors, is_only_error = [], [], True
    for line in (line for line in body.split("\n") if len(line) <= _LINE_CHARS_MAX):
        if TEST_SOURCES["raising"].search(line):
            error = TEST_SOURCES["error name"].search(line)
            errors.append(error[0] if error else "")
        elif TEST_SOURCES["asserting"].search(line):
            is_only_error = False
            equal = None if TEST_SOURCES["denying"].search(line) else TEST_SOURCES["equal"].search(line)
            if equal:
                thing, constant = (part for part in equal.groups() if part is not None)
                if TEST_SOURCES["constant"].fullmatch(thing):
                    thing, constant = constant, thing
                values.append((line, thing.strip(), constant))
    return Expectations(values=tuple(values), errors=tuple(errors) if is_only_error else (), text=text)


def other_value(claim: str, test: str, expected: Expectations) -> str:
    """What a test expects in place of what a claim says. Empty if it doesn't, or if that is not sure.

    It is sure if the test compares what the claim is about with a constant, and the claim's value is nowhere in the
    test. Results that are computed from an example say nothing about the claim's value.
    """
    if not (expected.values or expected.errors) or TEST_SOURCES["denial"].search(claim):
        return ""
    words, name = telling_words(claim) - COMMON, short_name(test)
    if expected.errors:
        return _other_error(claim, expected) if words & telling_words(f"{name} {expected.text}") else ""
    answered = [constant for line, _, constant in expected.values if TEST_SOURCES["result"].search(line)]
    about = [
        (thing, constant)
        for line, thing, constant in expected.values
        if constant not in answered
        and words & (telling_words(f"{line} {name}" if expected.is_single else line) - COMMON)
    ]
    plain = [constant for thing, constant in about if TEST_SOURCES["plain thing"].fullmatch(thing)]
    return (
        _other_number(claim, plain, expected)
        or _other_answer(claim, answered, expected.text)
        or _other_name(claim, plain, expected.text)
        or _other_constant(claim, [constant for _, constant in about], expected.text)
    )


def _other_number(claim: str, constants: Iterable[str], expected: Expectations) -> str:
    """A number among the constants, if the claim states another, which the test does not contain in any unit.

    A test with further numbers computes its result from them, which says nothing about the claim's number.
    """
    from mnemarch.text.statements import magnitudes, parts_of

    found, slots, _ = parts_of(claim)
    numbers = [piece[1] for start, end in slots.items() for piece in found[start:end] if piece[0] == "number"]
    if not numbers or _PLAIN_NUMBERS.issuperset(numbers):
        return ""
    compared = {_number(constant) for _, thing, constant in expected.values if constant[0].isdigit()}
    written = _numbers_in(expected.text)
    stated = {each for piece in found if piece[0] == "number" for each in magnitudes(piece[1])}
    if not stated.isdisjoint(written) or not written <= compared | {0, 1}:
        return ""
    return next((each for each in constants if each[0].isdigit() and each not in _PLAIN_NUMBERS), "")


def _numbers_in(text: str) -> set[float]:
    return set(map(_number, TEST_SOURCES["number"].findall(text)))


def _number(written: str) -> float:
    match = TEST_SOURCES["number"].match(written)
    return float(match[0].replace("_", "")) if match else 0.0


def _other_answer(claim: str, constants: Iterable[str], text: str) -> str:
    """The HTTP status that the test expects, if the claim says that another is answered."""
    if not TEST_SOURCES["answering"].search(claim):
        return ""
    stated = {float(each) for each in TEST_SOURCES["status"].findall(claim)}
    return next(iter(constants), "") if stated and stated.isdisjoint(_numbers_in(text)) else ""


def _other_name(claim: str, constants: Iterable[str], text: str) -> str:
    """A name among the constants of the same kind as one in the claim (Redis, Postgres), which the text lacks."""
    from mnemarch.text.korean import in_english
    from mnemarch.text.statements import kinds_in, parts_of

    found, slots, _ = parts_of(claim)
    stated = [found[start:end] for start, end in slots.items()]
    kinds = {kind for slot in stated for kind in kinds_in(slot)}
    names = telling_words(in_english(" ".join(piece[3] for slot in stated for piece in slot)))
    if not kinds or any(name in text.lower() for name in names):
        return ""
    return next((each for each in constants if kinds & kinds_of(each.strip("\"'`").lower())), "")


def _other_constant(claim: str, constants: Iterable[str], text: str) -> str:
    """The one constant (None, True or False) that the test expects, if the claim says that another is returned."""
    if not TEST_SOURCES["returning"].search(claim):
        return ""
    expected = {_constant(each): each for each in constants if TEST_SOURCES["truth"].fullmatch(each)}
    stated = {_constant(each) for each in TEST_SOURCES["truth"].findall(claim)}
    written = {_constant(each) for each in TEST_SOURCES["truth"].findall(text)}
    is_other = len(expected) == len(stated) == 1 and stated.isdisjoint(written)
    return next(iter(expected.values())) if is_other else ""


def _constant(written: str) -> str:
    return _CONSTANTS.get(written.lower(), written.lower())


def _other_error(claim: str, expected: Expectations) -> str:
    """The error that the test expects, if the claim says that something is returned, or names an unrelated error."""
    stated = TEST_SOURCES["error name"].findall(claim)
    if not stated:
        is_returned = TEST_SOURCES["returning"].search(claim) and not TEST_SOURCES["failing"].search(claim)
        return (expected.errors[0] or "an error") if is_returned else ""
    known = [getattr(builtins, name, None) for name in (*stated, *expected.errors)]
    if not all(isinstance(each, type) and issubclass(each, BaseException) for each in known):
        return ""  # Errors of the program may derive from each other.
    said, seen = known[: len(stated)], known[len(stated) :]
    is_related = any(issubclass(a, b) or issubclass(b, a) for a in said for b in seen)  # type: ignore[arg-type]
    return "" if is_related else expected.errors[0]


def expected_by(tree: WorkTree, test: str, path: str | None = None) -> frozenset[str]:
    """Digests of the numbers, strings and operators that the lines of a test compare with. Empty if unknown.

    `path` is the test's file. It is included if the test's name doesn't contain it.
    """
    is_named = bool(place_of(test).path)
    compared = _compared_in(tree, test, path)
    where = [f"{_IN_FILE}{path}"] if compared and path and not is_named and " " not in path else []
    return frozenset([*where, *map(_digest, compared)])


def _compared_in(tree: WorkTree, test: str, path: str | None) -> list[str]:
    return TEST_SOURCES["compared"].findall(body_of(tree, test, path))


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


def is_overtaken(tree: WorkTree, claim: Unit | Claim) -> bool:
    """Whether the tests of a claim compared with its value when it was claimed, and compare with another one now.

    A test that was written or changed for the claim compares with the claim's value now.
    """
    expects = claim.attributes.get(EXPECTED)
    then, now = _then_and_now(tree, str(expects), cited_names(claim.citations)) if expects else (frozenset[str](), [])
    items = {_digest(item): item for item in chain.from_iterable(now)}
    new = {digest for digest, item in items.items() if digest not in then and TEST_SOURCES["value"].match(item)}
    if not new or then <= items.keys():
        return False
    own = _digests_of_values(claim)
    return own.isdisjoint(new) and not own.isdisjoint(then - items.keys())


def rest_on_two_contents(left: Unit, right: Unit) -> bool:
    """Whether two units rest on two contents of one code, and so never hold in one tree (R8).

    They cite a symbol or lines with different contents. Or one test compares with the value of each: a verified unit's
    at the time when it was verified, another's when it was claimed.
    """
    ours, theirs = _forms(left), _forms(right)
    if not all(all(map(agrees, ours[name], theirs[name])) for name in ours.keys() & theirs.keys()):
        return True
    own, others = (frozenset(str(_expects(unit) or "").split()) for unit in (left, right))
    tests, other_tests = ({short_name(test) for test in cited_names(unit.citations)} for unit in (left, right))
    if own <= others or others <= own or tests.isdisjoint(other_tests):
        return False
    is_ours = not _digests_of_values(left).isdisjoint(own - others)
    return is_ours and not _digests_of_values(right).isdisjoint(others - own)


def _forms(unit: Unit) -> dict[str, tuple[str, ...]]:
    """The contents of the symbols and lines that a unit cites. Empty where the code could not be read."""
    names = [item for item in unit.citations if item.kind is CitationKind.SYMBOL]
    lines = [item for item in unit.citations if item.kind is CitationKind.FILE and item.get("lines")]
    forms: dict[str, tuple[str, ...]] = {str(item): (item.get("sha256") or "",) for item in lines}
    return forms | {str(item): (item.get("signature") or "", item.get("value") or "") for item in names}


def _expects(unit: Unit) -> str | None:
    return unit.attributes.get(EXPECTED) if unit.proof is None else unit.proof.expects


def _digests_of_values(claim: Unit | Claim) -> frozenset[str]:
    """Digests of the values that a claim states, in the forms in which a test may compare with them."""
    from mnemarch.text.statements import statement

    values = statement(claim.content).values
    words = {word for each in values for word in {*each.words, *f"{each.written} {each.written.lower()}".split()}}
    return frozenset(_digest(form.format(word)) for word in words for form in _WRITTEN_AS)
