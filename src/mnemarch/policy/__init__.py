"""Policy. Takes: values. Gives: permissions, confidence, promotions and retention. Never: I/O or a clock."""
