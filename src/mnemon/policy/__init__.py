"""Policy. Takes: values. Gives: what is allowed, how sure something is, what may be promoted or pruned. Never: I/O or a clock."""
