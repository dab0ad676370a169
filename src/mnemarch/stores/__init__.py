"""Stores. Takes: events and rows. Gives: them back, durable and consistent; a search index made from them.

Never: knows a rule of the domain.
"""
