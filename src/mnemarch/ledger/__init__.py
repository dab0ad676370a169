"""Ledger. Takes: acts. Gives: events in a hash chain and the projections that follow from them, in one transaction.
Never: decides what an act may do. It is the only way in: no other module appends an event or changes a projection."""
