"""Log. Takes: what an act records. Gives: chained events and the projections that follow from them. Never: judges."""
