"""Decisions. Takes: proposals with reason and evidence. Gives: versions, order, impact. Never: compares texts."""

from mnemon.decisions.decisions import Decisions

__all__ = ["Decisions"]
