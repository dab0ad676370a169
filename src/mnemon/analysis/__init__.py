"""Analysis. Takes: what a task logged. Gives: what can be learnt from it. Never: a source of truth: it is derived (R14)."""
