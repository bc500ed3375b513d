"""Settings of a live run: its feed, and how it is operated. Parts of `runtime`, never hashed."""

from schemas.contract import Contract
from schemas.exchange_settings import ExchangeSettings


class FeedSettings(Contract):
    """How bars are taken from a live source."""

    exchange: ExchangeSettings = ExchangeSettings()


class OperationsSettings(Contract):
    """Logs, metrics, health and notifications of a running process."""
