"""HTTP. Takes: requests with a token. Gives: the verbs that the token allows; the log as a stream. Never: has rules of
its own.
"""
