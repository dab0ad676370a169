"""Which verbs can be asked over a network, under which address, and by whom."""

from __future__ import annotations

from functools import cache

from mnemarch.verbs import VERBS
from mnemarch.verbs.types import COMMAND, PATH, REQUIRED, SEAT, Parameter, Verb

# The operator's verbs reach every project of a memory, so they need the widest profile; these two tell nothing of any.
_HARMLESS = frozenset({"memory.now", "memory.verify_receipt"})


def offered(verb: Verb) -> list[Parameter]:
    """The parameters that can come over a network: no file and no command of the machine that serves."""
    return [each for each in verb.takes if each.type.read is not None and each.type not in (PATH, COMMAND)]


@cache
def served() -> dict[str, Verb]:
    """The verbs that need no other, by name."""
    return {verb.name: verb for verb in VERBS if verb.profile and _is_complete(verb)}


def _is_complete(verb: Verb) -> bool:
    sent = {each.name for each in offered(verb)}
    return all(each.name in sent or each.default is not REQUIRED or each.type is SEAT for each in verb.takes)


def profile_of(verb: Verb) -> str:
    """The narrowest profile that may ask it."""
    return "admin" if verb.name.startswith("memory.") and verb.name not in _HARMLESS else verb.profile


def path_of(verb: Verb) -> str:
    return f"/v1/{verb.name.replace('.', '/')}"
