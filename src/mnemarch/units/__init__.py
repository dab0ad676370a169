"""Units. Takes: claims, evidence, and acts on units. Gives: units, or refusals with the rule that refused.

Never: searches; appends an event but through `Act.record`.
"""
