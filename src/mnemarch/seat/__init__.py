"""Seat. Takes: who acts, and where. Gives: every verb of the memory, in the order of the data's path.

Never: does what a room or a service below can do.
"""

from mnemarch.seat.seat import Seat as Seat
