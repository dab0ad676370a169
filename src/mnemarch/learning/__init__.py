"""Learning. Takes: patches, what agents did and said, logs of tasks. Gives: code rules, claims in buckets, lessons,
working and core memory, what a model says of a task. Never: changes a file, or says what is true.

Type checkers read these names in `__init__.pyi`, which a test generates from this list.
"""

from __future__ import annotations

from mnemarch.lazy import names_of

_NAMES_IN = {
    "analyst": "LLMClassifier",
    "classify": "Bucket Classified Classifier HybridClassifier MemoryEvent RuleBasedClassifier",
    "code_rules": "CodeRules cleanup_weak_rules merge_duplicate_rules reinforce_rule",
    "core": "CoreMemory",
    "detect": "detect_code_rules_from_patch",
    "episodic": "EpisodicMemoryManager",
    "errors": "EpisodeCluster EpisodeClusterer",
    "knowledge": "SemanticMemoryManager",
    "patches": "pattern_category",
    "rule": "CodeRule apply_rules",
    "working": "WorkingMemoryManager",
}
_HOME_OF = {name: f"mnemarch.learning.{module}" for module, names in _NAMES_IN.items() for name in names.split()}

__all__ = sorted(_HOME_OF)

__getattr__, __dir__ = names_of(globals(), _HOME_OF)
