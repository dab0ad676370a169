"""Stores. Takes: events and projection rows. Gives: them back, durable and consistent. Never: a rule of the domain."""
