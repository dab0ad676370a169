"""Witness. Takes: a command that tests, a report that a runner wrote, or what it printed. Gives: a run of tests, with
the outcome of each. Never: reads or writes the memory, or runs a command that it doesn't know as one that tests."""
