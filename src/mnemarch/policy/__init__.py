"""Policy. Takes: values. Gives: what is allowed, how sure a thing is, what may rise or go. Never: I/O or a clock."""
