"""Learning. Takes: what agents did and said. Gives: working memory, core memory and their tools for a model.
Never: says what is true.
"""

from __future__ import annotations

from mnemarch.lazy import names_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.learning.core import CoreMemory as CoreMemory
    from mnemarch.learning.working import WorkingMemoryManager as WorkingMemoryManager

_HOME_OF = {
    "CoreMemory": "mnemarch.learning.core",
    "WorkingMemoryManager": "mnemarch.learning.working",
}

__all__ = sorted(_HOME_OF)

__getattr__, __dir__ = names_of(globals(), _HOME_OF)
