"""Recall. Takes: a question and who asks. Gives: units in order, with reasons, and what was withheld. Never: writes."""
