"""Text. Takes: strings. Gives: canonical keys, search tokens, differences that forbid a merge, text without secrets.

Never: touches a clock, a file or a store.
"""
