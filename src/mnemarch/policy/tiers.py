"""The loading order (D15, R10) as numbers: what is loaded, recalled and packed stands in one order."""

from __future__ import annotations

TIER_POLICY, TIER_STRUCTURE, TIER_GLOBAL_AXIS, TIER_AXIS, TIER_LOCK, TIER_NORMAL = range(1, 7)
# What anchors lead to, and what search found; behind it what nobody vouches for (R2).
TIER_FOUND, TIER_HYPOTHESIS = 7, 8
