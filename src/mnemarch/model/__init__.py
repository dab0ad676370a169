"""Model. Takes: plain values. Gives: the frozen values that every other part speaks in. Never: does anything."""
