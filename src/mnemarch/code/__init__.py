"""Code. Takes: a folder, and citations of files, lines, symbols and commits. Gives: where the folder belongs, and
whether what is cited still holds there. Never: changes a repository, fetches from a remote, or runs what a
repository's settings name."""
