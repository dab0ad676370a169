"""Decisions. Takes: proposals with reason and evidence. Gives: versions, order, impact. Never: judges by texts.

`Decisions` is imported on first use, because a recall needs only `loading`.
"""

from mnemarch.lazy import names_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.decisions.decisions import Decisions

__all__ = ["Decisions"]

__getattr__, __dir__ = names_of(globals(), {"Decisions": "mnemarch.decisions.decisions"})
