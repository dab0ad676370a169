"""How well recall finds: real sets that nobody here wrote, one table, one picture."""
