"""Text. Takes: strings. Gives: canonical keys, search tokens, differences that forbid a merge, text without secrets.

Also fingerprints of errors and plans to compare.
Never: touches a clock or a store, or reads a file but its own tables in data/.
"""
