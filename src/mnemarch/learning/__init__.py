"""Learning. Takes: patches, what agents did and said, logs of tasks. Gives: code rules, claims in buckets, lessons,
working and core memory, what a model says of a task. Never: changes a file, or says what is true.
"""

from __future__ import annotations

from mnemarch.lazy import names_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mnemarch.learning.analyst import LLMClassifier as LLMClassifier
    from mnemarch.learning.categories import pattern_category as pattern_category
    from mnemarch.learning.classify import Bucket as Bucket
    from mnemarch.learning.classify import Classified as Classified
    from mnemarch.learning.classify import Classifier as Classifier
    from mnemarch.learning.classify import HybridClassifier as HybridClassifier
    from mnemarch.learning.classify import MemoryEvent as MemoryEvent
    from mnemarch.learning.classify import RuleBasedClassifier as RuleBasedClassifier
    from mnemarch.learning.code_rules import CodeRules as CodeRules
    from mnemarch.learning.code_rules import cleanup_weak_rules as cleanup_weak_rules
    from mnemarch.learning.code_rules import merge_duplicate_rules as merge_duplicate_rules
    from mnemarch.learning.code_rules import reinforce_rule as reinforce_rule
    from mnemarch.learning.core import CoreMemory as CoreMemory
    from mnemarch.learning.detect import detect_code_rules_from_patch as detect_code_rules_from_patch
    from mnemarch.learning.detect import learn_code_rules as learn_code_rules
    from mnemarch.learning.episodic import EpisodicMemoryManager as EpisodicMemoryManager
    from mnemarch.learning.errors import EpisodeCluster as EpisodeCluster
    from mnemarch.learning.errors import EpisodeClusterer as EpisodeClusterer
    from mnemarch.learning.knowledge import SemanticMemoryManager as SemanticMemoryManager
    from mnemarch.learning.rule import CodeRule as CodeRule
    from mnemarch.learning.rule import apply_rules as apply_rules
    from mnemarch.learning.working import WorkingMemoryManager as WorkingMemoryManager

_NAMES_IN = {
    "analyst": "LLMClassifier",
    "categories": "pattern_category",
    "classify": "Bucket Classified Classifier HybridClassifier MemoryEvent RuleBasedClassifier",
    "code_rules": "CodeRules cleanup_weak_rules merge_duplicate_rules reinforce_rule",
    "core": "CoreMemory",
    "detect": "detect_code_rules_from_patch learn_code_rules",
    "episodic": "EpisodicMemoryManager",
    "errors": "EpisodeCluster EpisodeClusterer",
    "knowledge": "SemanticMemoryManager",
    "rule": "CodeRule apply_rules",
    "working": "WorkingMemoryManager",
}
_HOME_OF = {name: f"mnemarch.learning.{module}" for module, names in _NAMES_IN.items() for name in names.split()}

__all__ = sorted(_HOME_OF)

__getattr__, __dir__ = names_of(globals(), _HOME_OF)
