"""Verbs. Takes: nothing. Gives: the verbs of a memory, a seat and its decisions, one row each. Never: does one."""

from __future__ import annotations

from mnemarch.verbs.decisions import DECISIONS
from mnemarch.verbs.path import GATE, LOOPS, RECALL, STAGE
from mnemarch.verbs.units import KNOWLEDGE, OPERATE

# In the order of the data's path.
SECTIONS = {
    "stage: append freely": STAGE,
    "loops: whether a task goes round in circles": LOOPS,
    "gate: verification is what raises": GATE,
    "knowledge: the life of a unit": KNOWLEDGE,
    "decisions: versioned, ranked, with their blast radius": DECISIONS,
    "recall": RECALL,
    "operate": OPERATE,
}
VERBS = tuple(verb for verbs in SECTIONS.values() for verb in verbs)
