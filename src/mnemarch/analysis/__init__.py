"""Analysis. Takes: what a task logged. Gives: what can be learnt from it. Never: is a source of truth (R14)."""
