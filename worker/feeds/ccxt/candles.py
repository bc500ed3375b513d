"""CandleBook: which candles of one symbol, as a websocket shows them, are bars that can be handed over.

An exchange sends the running candle over and over. It is a bar when a newer one has begun on the same
connection and it was seen from its beginning; of all others the exchange has to be asked. Pure.
"""

from collections.abc import Iterable

from trading_core.live.growing_bars import Bar
from worker.feeds.ccxt.exchange import Candle

MOST_KNOWN = 128


class CandleBook:
    """The candles of one symbol on one connection."""

    def __init__(self) -> None:
        self._known: dict[int, Bar] = {}
        self._joined: int | None = None
        self.newest: int | None = None

    def rejoin(self) -> None:
        """A connection begins: what is known of unfinished candles is forgotten."""
        self._known, self._joined, self.newest = {}, None, None

    def observe(self, candles: Iterable[Candle]) -> list[Candle]:
        """Note the newest candles, also those that were noted before.

        Returns:
            Those that are new or have changed; none of the first of a connection, which may repeat history.
        """
        changed = [one for one in candles if self._known.get(one.label) != one.bar]
        if not changed:
            return []
        first = self._joined is None
        self._known |= dict(changed)
        self.newest = max(self._known)
        if first:
            self._joined = self.newest
        while len(self._known) > MOST_KNOWN:
            del self._known[min(self._known)]
        return [] if first else changed

    def has(self, label: int) -> bool:
        """Whether the candle came on this connection."""
        return label in self._known

    def final(self, after: int | None = None) -> list[Candle]:
        """The candles for which the websocket alone vouches, in order; `after`: only those behind a label."""
        if self._joined is None or self.newest is None:
            return []
        first = self._joined if after is None else max(self._joined, after)
        labels = sorted(label for label in self._known if first < label < self.newest)
        return [Candle(label, self._known[label]) for label in labels]
