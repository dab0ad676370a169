"""Learning. Takes: patches. Gives: code rules, tried on their own patches and on code that nobody complained of.
Never: changes a file, or says what is true.
"""

from __future__ import annotations

from mnemarch.lazy import names_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.learning.episodic import EpisodicMemoryManager as EpisodicMemoryManager
    from mnemarch.learning.errors import EpisodeCluster as EpisodeCluster
    from mnemarch.learning.errors import EpisodeClusterer as EpisodeClusterer

_HOME_OF = {
    "EpisodeCluster": "mnemarch.learning.errors",
    "EpisodeClusterer": "mnemarch.learning.errors",
    "EpisodicMemoryManager": "mnemarch.learning.episodic",
}

__all__ = sorted(_HOME_OF)

__getattr__, __dir__ = names_of(globals(), _HOME_OF)
