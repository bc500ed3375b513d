"""How loud each event of a running process is logged, whichever command runs it; the rest is at INFO."""

import logging

WARNINGS = (
    "lease_lost",
    "look_failed",
    "look_missed",
    "request_not_answered",
    "safe_mode",
    "savepoint_not_stored",
    "savepoint_not_used",
    "slot_failed",
    "start_notes_failed",
    "store_away",
    "waker_silent",
)
LEVELS = dict.fromkeys(WARNINGS, logging.WARNING) | {"worker_died": logging.ERROR}


def level_of(event: str) -> int:
    """The level of an event by its name."""
    return LEVELS.get(event, logging.INFO)
