"""Embedding. Takes: text. Gives: vectors that carry the name of what made them. Never: decides a duplicate by itself."""
