"""Text. Takes: strings. Gives: canonical keys, search tokens, differences that forbid a merge, text without secrets.

Also fingerprints of errors and plans to compare.
Never: touches a clock or a store, or reads a file but its own tables in data/.
"""

# Fingerprints of different versions can't be compared: a change of meaning raises the version. It is defined here, so
# that a comparison of versions need not load the readers of errors.
FINGERPRINT_VERSION = 4
