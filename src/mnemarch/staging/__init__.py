"""Staging. Takes: whatever an agent thinks, sees or does. Gives: receipts. Never: judges what it is given."""
