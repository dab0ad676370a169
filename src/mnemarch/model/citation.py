"""Citations, the evidence of a unit: a commit, a log entry, a person, a test, a file or a symbol (S9, R11)."""

from __future__ import annotations

from mnemarch.errors import InvalidInput
from mnemarch.lazy import Any
from mnemarch.model.caller import checked_id
from mnemarch.model.value import Names, Record, member_of


class CitationKind(Names):
    COMMIT = "commit"
    LOG = "log"
    HUMAN = "human"
    TEST = "test"
    FILE = "file"
    SYMBOL = "symbol"


_CALLED = {kind: f"a {kind} citation" for kind in CitationKind}
# Citations of a working tree, which may change at any time.
OF_CODE = frozenset({CitationKind.FILE, CitationKind.SYMBOL})
# Citations of things that one branch may have and another may lack.
IN_TREES = OF_CODE | {CitationKind.COMMIT, CitationKind.TEST}


class Citation(Record):
    """One piece of evidence. `ref` is its target, and `detail` holds further fields of its kind.

    The stored form keeps the detail in a mapping of its own, so that it can't overwrite the kind or the reference.
    """

    kind: CitationKind
    ref: str
    detail: tuple[tuple[str, str], ...] = ()

    def __check__(self) -> None:
        if type(self.kind) is not CitationKind:
            object.__setattr__(self, "kind", member_of(CitationKind, self.kind, "kind of citation"))
        checked_id(self.ref, _CALLED[self.kind])

    @classmethod
    def commit(cls, hash: str, repo: str = "") -> Citation:
        """Cite a commit of the seat's repository."""
        return cls(CitationKind.COMMIT, hash, (("repo", repo),) if repo else ())

    @classmethod
    def log(cls, id: str) -> Citation:
        """Cite an event of the log by its id."""
        return cls(CitationKind.LOG, id)

    @classmethod
    def human(cls, user_id: str) -> Citation:
        """Cite a person's confirmation. Only that person can make this citation."""
        return cls(CitationKind.HUMAN, user_id)

    @classmethod
    def test(cls, name: str, outcome: str = "pass") -> Citation:
        """Cite a test. It counts once a verification has recorded that test as passed."""
        if outcome != "pass":
            raise InvalidInput(f"A test citation needs outcome 'pass', not {outcome!r}.", hint="Cite a passing test.")
        return cls(CitationKind.TEST, name)

    @classmethod
    def file(cls, path: str, lines: tuple[int, int] | None = None) -> Citation:
        """Cite a file of the working tree, or some lines of it (first, last)."""
        if lines is None:
            return cls(CitationKind.FILE, path)
        ends: Any = lines
        is_pair = isinstance(ends, tuple | list) and len(ends) == 2 and all(type(end) is int for end in ends)
        if not is_pair or not 1 <= lines[0] <= lines[1]:
            raise InvalidInput(f"Lines {lines!r} are no range.", hint="Give (first, last), counted from 1.")
        return cls(CitationKind.FILE, path, (("lines", f"{lines[0]}-{lines[1]}"),))

    @classmethod
    def symbol(cls, path: str, name: str) -> Citation:
        """Cite a function, class or other name in a file of the working tree."""
        return cls(CitationKind.SYMBOL, path, (("name", checked_id(name, "a symbol's name")),))

    @classmethod
    def parse(cls, text: str) -> Citation:
        """Parse `kind:rest` from the command line, for example `test:tests/test_a.py::test_b`.

        Common variants are accepted: `a.py#name` and `a.py:name` for a symbol, `a.py:1-9` for lines.
        """
        kind, _, rest = text.partition(":")
        if kind == CitationKind.SYMBOL:
            sign = next((each for each in ("::", "#", ":") if each in rest), "")
            path, _, name = rest.partition(sign) if sign else ("", "", "")
            if path and name:
                return cls.symbol(path, name)
            rest = ""
        if kind == CitationKind.FILE:
            path, _, span = rest.rpartition("#L" if "#L" in rest else ":")
            ends = span.replace("L", "").split("-")
            if path and all(end.isascii() and end.isdigit() for end in ends):
                return cls.file(path, (int(ends[0]), int(ends[-1])))
            return cls.file(rest)
        if kind not in set(CitationKind) or not rest:
            raise InvalidInput(
                f"{text!r} is no citation.",
                hint="Write commit:HASH, log:ID, human:NAME, test:NAME, file:PATH[#L1-L9] or symbol:PATH::NAME.",
            )
        return cls(CitationKind(kind), rest)

    def get(self, name: str) -> str | None:
        return dict(self.detail).get(name)

    def __str__(self) -> str:
        if self.kind is CitationKind.SYMBOL:
            return f"symbol:{self.ref}::{self.get('name')}"
        lines = self.get("lines")
        return f"{self.kind}:{self.ref}" + (f"#L{lines.replace('-', '-L')}" if lines else "")
