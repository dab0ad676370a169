"""Seat. Takes: who acts, and where. Gives: every verb of the memory, in the order of the data's path.

Never: does the work of a folder or a service below.
"""

from mnemarch.seat.seat import Seat as Seat
