"""Typed reads and writes of the log and its projections. Takes: an open connection. Gives: events, units, links.

They stand here once, over named queries in portable SQL. A dialect brings the connection and overrides queries by name.
Never: knows a rule of the domain.
"""
