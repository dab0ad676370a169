"""Text. Takes: strings. Gives: canonical keys, search tokens, differences that forbid a merge, text without secrets.

Also fingerprints of errors and plans to compare.
Never: touches a clock or a store, or reads a file but its own tables in data/.
"""

# Fingerprints made by other rules cannot be compared: a change of meaning raises the version. What reads errors is not
# loaded to compare it.
FINGERPRINT_VERSION = 3
