"""Settings of a live run: its feed, and how it is operated. Parts of `runtime`, never hashed."""

from schemas.contract import Contract


class FeedSettings(Contract):
    """How bars are taken from a live source."""


class OperationsSettings(Contract):
    """Logs, metrics, health and notifications of a running process."""
