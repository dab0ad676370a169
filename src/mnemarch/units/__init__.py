"""Units. Takes: claims, verifications and acts on units. Gives: units, or refusals with their rule. Never: searches."""
