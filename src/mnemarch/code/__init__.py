"""Code. Takes: a working tree. Gives: what it holds and which project it belongs to. Never: reads outside the tree."""
