"""Interfaces. Takes: what a person or a program types. Gives: one verb of a seat or a memory, its answer, an exit code.
Never: rules of its own."""
