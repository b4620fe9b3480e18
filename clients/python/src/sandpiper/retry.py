"""When, and how soon, a session tries again."""

from __future__ import annotations

import random

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0

#: Reasons of docs/errors.md that pass: a node that stops, a handoff that has not finished, a store that is busy.
RETRYABLE_REASONS = frozenset(
    {
        "handoff_under_way",
        "no_node",
        "node_stopping",
        "node_unreachable",
        "owner_unreachable",
        "quiesced",
        "sandbox_moved",
        "sandbox_stopped",
        "store_contended",
        "store_timeout",
        "store_unreachable",
    }
)


def pause_before(attempt: int) -> float:
    """Seconds before an attempt; they double, with jitter, so that clients of a restarted node do not return together."""
    return float(min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt) * random.uniform(0.5, 1.0))
