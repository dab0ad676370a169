"""Learning. Takes: what tasks did. Gives: what it teaches, with what it came from. Never: says what is true."""
