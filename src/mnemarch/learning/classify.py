"""Which bucket a text belongs to (M1, M2): by rules, by another classifier, or by both."""

from __future__ import annotations

from mnemarch.errors import MnemarchError
from mnemarch.model.closed import Names
from mnemarch.model.value import value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol
else:
    Protocol = object  # `typing` is slow to import, and a hook classifies each prompt.


class Bucket(Names):
    """The five buckets of M1, and what is not remembered: a question, a request for now, an acknowledgement."""

    PROFILE = "PROFILE"
    PREFERENCE = "PREFERENCE"
    EPISODIC = "EPISODIC"
    SEMANTIC = "SEMANTIC"
    FACT = "FACT"
    LEFT_OUT = "LEFT_OUT"


@value
class MemoryEvent:
    """Something that was said or happened. `source` is what it came from: user, assistant, tool, commit, ..."""

    text: str
    source: str = "user"
    data: Mapping[str, Any] = {}


@value
class Classified:
    """The bucket of an event, how sure that is (0 to 1), and why in a few words."""

    bucket: Bucket
    confidence: float
    why: str


class Classifier(Protocol):
    """Says which bucket an event belongs to. It may raise `MnemarchError` (`AnalystFailed`, say) when it can't."""

    def classify(self, event: MemoryEvent) -> Classified: ...


class HybridClassifier:
    """Asks the rules first and another classifier when they are unsure; if that one fails, the rules stand."""

    def __init__(self, rules: Classifier, other: Classifier, *, sure_min: float = 0.7) -> None:
        self._rules, self._other, self._sure_min = rules, other, sure_min

    def classify(self, event: MemoryEvent) -> Classified:
        by_rules = self._rules.classify(event)
        if by_rules.confidence >= self._sure_min:
            return by_rules
        try:
            return self._other.classify(event)
        except MnemarchError as error:
            why = f"{by_rules.why}; the other classifier failed: {error.message}"
            return Classified(by_rules.bucket, by_rules.confidence, why)
