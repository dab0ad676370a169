"""Loops. Takes: failures and approaches. Gives: whether a task goes round in circles. Never: stops anybody itself."""

from mnemon.loops.detector import CircularFixDetector

__all__ = ["CircularFixDetector"]
