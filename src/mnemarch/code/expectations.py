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
from mnemarch.text.cache import pattern
from mnemarch.text.words import listed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_ITEM_CHARS = 8
_IN_FILE = "@"
# A value in the forms in which a test may write it.
_WRITTEN_AS = ("{}", "'{}'", '"{}"', "`{}`")
# A longer line is data, or was written by a program.
_LINE_CHARS_MAX = 400
# Counts that many tests compare with, whatever they are about.
_PLAIN_NUMBERS = frozenset({0.0, 1.0})
# Numbers in a claim that are no value of a test: "one" is often a pronoun, and a year the time of the claim.
_NOT_TOLD = _PLAIN_NUMBERS.union(map(float, range(1990, 2100)))
# The share of a claim's words that must be in the compared line, or in the test's name.
_SHARED_MIN, _SHARED_KOREAN_MIN = 2 / 3, 1 / 2
_NAME_CHARS_MIN = 3
# Words around a number that say little of what is counted.
_AMOUNT_WORDS = frozenset(listed("code", "amounts"))


class Expectations(Frozen):
    """What the source of a test expects.

    - `values`: each line that compares a thing with a constant, the thing, and the constant;
    - `errors`: the errors that the test expects, if it expects nothing else. "" stands for any error;
    - `text`: the source of the test and of what it uses in its file.
    """

    values: tuple[tuple[str, str, str], ...] = ()
    errors: tuple[str, ...] = ()
    text: str = ""


def expectations_in(body: str, text: str) -> Expectations:
    """What a test with these lines expects. `text` has the lines and what they use in their file."""
    values, errors, is_only_error = [], [], True
    for line in [" ".join(line.split()) for line in body.split("\n") if len(line) <= _LINE_CHARS_MAX]:
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

    It is sure only if the claim plainly says one value, and the test compares the same thing with another one. To hold
    back a true claim is worse than to let a false one pass, which cites its test for everybody to read.
    """
    if not (expected.values or expected.errors) or TEST_SOURCES["denial"].search(claim):
        return ""
    if expected.errors:
        return _other_error(claim, expected.errors)
    return _other_number(claim, test, expected) or _other_status(claim, expected) or _other_constant(claim, expected)


def _other_number(claim: str, test: str, expected: Expectations) -> str:
    """The number that the test compares with, if the claim's only number is another one in every unit.

    A test with further numbers, or that compares what it made itself, shows an example of a rule.
    """
    from mnemarch.text.statements import magnitudes, parts_of

    found, slots, _ = parts_of(claim)
    numbers = [at for at, piece in enumerate(found) if piece[0] == "number"]
    is_value = len(numbers) == 1 and any(start <= numbers[0] < end for start, end in slots.items())
    if not is_value or TEST_SOURCES["limit"].search(claim):
        return ""
    amount, said = found[numbers[0]][1], found[numbers[0]][3]
    stated, written = magnitudes(amount), _numbers_in(expected.text)
    compared = {_number(constant) for _, _, constant in expected.values if constant[0].isdigit()}
    is_computed = not written <= compared | _PLAIN_NUMBERS
    if is_computed or not stated or stated & _NOT_TOLD or not stated.isdisjoint(written):
        return ""
    words = telling_words(claim) - COMMON - _AMOUNT_WORDS - telling_words(said)
    # Korean words are compared by their English, where one word has several.
    least = _SHARED_MIN if claim.isascii() else _SHARED_KOREAN_MIN
    for line, thing, constant in expected.values:
        shared = words & telling_words(f"{line} {short_name(test)}")
        is_about = _names(claim, thing) or (words and len(shared) >= least * len(words))
        is_example = _is_made_in(thing, expected.text)
        if is_about and not is_example and _is_comparable(claim, amount, stated, thing, constant):
            return constant
    return ""


def _names(claim: str, thing: str) -> bool:
    """Whether a claim names the compared thing as code does: `retry_2`, `maxRetries`, `TRIES`."""
    names = [name for name in TEST_SOURCES["identifier"].findall(thing) if len(name) >= _NAME_CHARS_MIN]
    as_code = [name for name in names if name.isupper() or TEST_SOURCES["like code"].search(name)]
    return any(pattern(rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9_])").search(claim) for name in as_code)


def _is_comparable(claim: str, amount: str, stated: Iterable[float], thing: str, constant: str) -> bool:
    """Whether a thing that equals this constant can't have a claim's amount. `stated` are its numbers in each unit."""
    from mnemarch.text.statements import dimension_of

    if not (TEST_SOURCES["plain thing"].fullmatch(thing) and TEST_SOURCES["decimal"].fullmatch(constant)):
        return False
    number, dimension = _number(constant), dimension_of(amount)
    if dimension == "time" and not TEST_SOURCES["of time"].search(thing):
        return False  # Retries for 30 seconds, and three of them.
    if number in _PLAIN_NUMBERS or (number > 1 if dimension == "share" else "." in constant and "." not in amount):
        return False
    claimed, compared = (TEST_SOURCES["of retries"].search(text) is not None for text in (claim, thing))
    attempts = claimed - compared  # Three retries are four attempts.
    # As it is; as a share, cents, bits or bytes; and what a share leaves: 15 % off is a factor of 0.85.
    forms = ((each, each + attempts, each * 100, each / 100, each * 8, each / 8) for each in stated)
    left = ((1 - each, 1 - each / 100) for each in stated)
    return all(number not in each for each in (*forms, *left))


def _numbers_in(text: str) -> set[float]:
    return set(map(_number, TEST_SOURCES["number"].findall(text)))


def _number(written: str) -> float:
    match = TEST_SOURCES["number"].match(written)
    return float(match[0].replace("_", "")) if match else 0.0


def _is_made_in(thing: str, text: str) -> bool:
    """Whether a test makes the thing that it compares, or is given it: a variable, or a parameter."""
    match = TEST_SOURCES["first name"].search(thing)
    if match is None:
        return False
    name = rf"\b{match[1]}\b"
    return pattern(rf"{name}\s*(?::?=(?!=)|\bin\b)|\bdef \w+\([^)]*{name}|\bas {name}").search(text) is not None


def _other_status(claim: str, expected: Expectations) -> str:
    """The HTTP status that the test compares with, if the claim says that another one is answered."""
    if not TEST_SOURCES["answering"].search(claim) or TEST_SOURCES["condition"].search(claim):
        return ""
    stated = {float(each) for each in TEST_SOURCES["status"].findall(claim)}
    if len(stated) != 1 or not stated.isdisjoint(_numbers_in(expected.text)):
        return ""
    compared = (constant for _, thing, constant in expected.values if TEST_SOURCES["status code"].search(thing))
    return next((each for each in compared if TEST_SOURCES["status"].fullmatch(each)), "")


def _other_constant(claim: str, expected: Expectations) -> str:
    """The constant (None, True or False) that the test compares with, if the claim says that another is returned."""
    stated = _returned(claim)
    compared = {_constant(each): each for *_, each in expected.values if TEST_SOURCES["truth"].fullmatch(each)}
    written = {_constant(each) for each in TEST_SOURCES["truth"].findall(expected.text)}
    return next(iter(compared.values())) if stated and len(compared) == 1 and stated not in written else ""


def _returned(claim: str) -> str:
    """The constant that is always returned, as the claim says. Empty for a claim with a condition."""
    returned = None if TEST_SOURCES["condition"].search(claim) else TEST_SOURCES["returning"].search(claim)
    return _constant(next(filter(None, returned.groups()))) if returned else ""


def _constant(written: str) -> str:
    return written.lower() if written.lower() in ("true", "false") else "none"


def _other_error(claim: str, errors: Sequence[str]) -> str:
    """The error that the test expects, if the claim says that something is returned, or names an unrelated error."""
    if not TEST_SOURCES["error name"].search(claim):
        is_returned = TEST_SOURCES["returning"].search(claim) and not TEST_SOURCES["failing"].search(claim)
        return (errors[0] or "an error") if is_returned else ""
    raised = TEST_SOURCES["raised"].search(claim)
    names = [*TEST_SOURCES["error name"].findall(claim), *errors]
    known = [getattr(builtins, name, None) for name in names]
    if not raised or len(names) != 2 or not all(isinstance(each, type) for each in known):
        return ""  # Errors of the program may derive from each other.
    said, seen = known
    return "" if issubclass(said, seen) or issubclass(seen, said) else errors[0]  # type: ignore[arg-type]


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
