"""Verbs. Takes: nothing. Gives: every public verb, with its parameters, result, profile and words. Never: does one."""

from __future__ import annotations

from mnemarch.verbs.path import GATE, LOOPS, RECALL, STAGE
from mnemarch.verbs.systems import DECISIONS, DETECTOR, GRAPH
from mnemarch.verbs.units import KNOWLEDGE, OPERATE

# In the order of the data's path.
SECTIONS = {
    "stage: append freely": STAGE,
    "loops: whether a task goes round in circles": (*LOOPS, *DETECTOR),
    "gate: verification is what raises": GATE,
    "knowledge: the life of a unit": KNOWLEDGE,
    "decisions: versioned, ranked, with their blast radius": DECISIONS,
    "recall": RECALL,
    "graph: what was asked and what helped": GRAPH,
    "operate": OPERATE,
}
VERBS = tuple(verb for verbs in SECTIONS.values() for verb in verbs)
