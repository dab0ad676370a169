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

_HOME_OF = {
    "Bucket": "mnemarch.learning.classify",
    "Classified": "mnemarch.learning.classify",
    "Classifier": "mnemarch.learning.classify",
    "CodeRule": "mnemarch.learning.rule",
    "CodeRules": "mnemarch.learning.code_rules",
    "CoreMemory": "mnemarch.learning.core",
    "HybridClassifier": "mnemarch.learning.classify",
    "MemoryEvent": "mnemarch.learning.classify",
    "RuleBasedClassifier": "mnemarch.learning.classify",
    "WorkingMemoryManager": "mnemarch.learning.working",
    "EpisodeCluster": "mnemarch.learning.errors",
    "EpisodeClusterer": "mnemarch.learning.errors",
    "LLMClassifier": "mnemarch.learning.analyst",
    "apply_rules": "mnemarch.learning.rule",
    "cleanup_weak_rules": "mnemarch.learning.code_rules",
    "detect_code_rules_from_patch": "mnemarch.learning.detect",
    "learn_code_rules": "mnemarch.learning.detect",
    "merge_duplicate_rules": "mnemarch.learning.code_rules",
    "pattern_category": "mnemarch.learning.categories",
    "reinforce_rule": "mnemarch.learning.code_rules",
    "EpisodicMemoryManager": "mnemarch.learning.episodic",
    "SemanticMemoryManager": "mnemarch.learning.knowledge",
}

__all__ = sorted(_HOME_OF)

__getattr__, __dir__ = names_of(globals(), _HOME_OF)
