"""Services. Takes: an engine and a caller. Gives: what needs several rooms at once: an answer, an erasure, the inbox.

Never: has a rule that a room below could have.
"""
