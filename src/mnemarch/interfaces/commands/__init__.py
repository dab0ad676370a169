"""Commands. Takes: parsed arguments. Gives: an answer, as data and as text. Never: prints it."""
