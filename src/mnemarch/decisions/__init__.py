"""Decisions. Takes: proposals with reason and evidence. Gives: versions, order, impact. Never: judges by texts."""

from mnemarch.decisions.decisions import Decisions

__all__ = ["Decisions"]
