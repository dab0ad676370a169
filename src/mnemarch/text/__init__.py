"""Text. Takes: strings. Gives: canonical keys, search tokens, n-grams, differences that forbid a merge, text without secrets. Never: touches a clock, a file or a store."""  # noqa: E501
