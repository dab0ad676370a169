"""Model. Takes: plain values. Gives: the frozen values that all other parts exchange. Never: has side effects."""
