"""Gate. Takes: what a verified task staged. Gives: units, or refusals with the rule that refused. Never: searches."""
