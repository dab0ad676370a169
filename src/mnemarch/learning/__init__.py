"""Learning. Takes: patches, what was said, logs. Gives: code rules tried on code, buckets, what a model says of a task.
Never: changes a file, or says what is true.
"""

from __future__ import annotations

from mnemarch.lazy import names_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.learning.analyst import LLMClassifier as LLMClassifier
    from mnemarch.learning.classify import Bucket as Bucket
    from mnemarch.learning.classify import Classified as Classified
    from mnemarch.learning.classify import Classifier as Classifier
    from mnemarch.learning.classify import HybridClassifier as HybridClassifier
    from mnemarch.learning.classify import MemoryEvent as MemoryEvent
    from mnemarch.learning.errors import EpisodeCluster as EpisodeCluster
    from mnemarch.learning.errors import EpisodeClusterer as EpisodeClusterer

_HOME_OF = {
    "Bucket": "mnemarch.learning.classify",
    "Classified": "mnemarch.learning.classify",
    "Classifier": "mnemarch.learning.classify",
    "EpisodeCluster": "mnemarch.learning.errors",
    "EpisodeClusterer": "mnemarch.learning.errors",
    "HybridClassifier": "mnemarch.learning.classify",
    "LLMClassifier": "mnemarch.learning.analyst",
    "MemoryEvent": "mnemarch.learning.classify",
}

__all__ = sorted(_HOME_OF)

__getattr__, __dir__ = names_of(globals(), _HOME_OF)
