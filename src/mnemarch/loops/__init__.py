"""Loops. Takes: failures and approaches. Gives: whether a task goes round in circles. Never: stops anybody itself."""

from mnemarch.loops.detector import CircularFixDetector
from mnemarch.model.outcome import ApproachValidation, FailedApproach, LoopVerdict, Verdict

__all__ = ["ApproachValidation", "CircularFixDetector", "FailedApproach", "LoopVerdict", "Verdict"]
