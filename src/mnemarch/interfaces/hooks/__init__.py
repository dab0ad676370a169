"""Hooks. Takes: what a coding agent's host says of one event. Gives: what the agent should know, in the host's words.

Never: fails, waits or asks.
"""
