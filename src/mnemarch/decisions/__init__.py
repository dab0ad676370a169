"""Decisions. Takes: proposals with reason and evidence. Gives: versions, order, impact. Never: judges by texts."""

from mnemarch.decisions.decisions import Decisions
from mnemarch.model.decision import (
    AnchorKind,
    Decision,
    DecisionProposal,
    GuardianVerdict,
    Impact,
    ImpactNode,
    Loaded,
    Reason,
    Relation,
    RelationType,
    Strength,
)

__all__ = [
    "AnchorKind",
    "Decision",
    "DecisionProposal",
    "Decisions",
    "GuardianVerdict",
    "Impact",
    "ImpactNode",
    "Loaded",
    "Reason",
    "Relation",
    "RelationType",
    "Strength",
]
