"""Embedding. Takes: text. Gives: vectors that carry the name of their maker. Never: decides a duplicate by itself."""
