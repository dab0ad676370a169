"""The log. Takes: acts. Gives: events in a hash chain, and the projections that follow, in one transaction.

Never: judges what an act may do.
"""
