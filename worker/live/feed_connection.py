"""Whether a feed can bring bars, as far as it told of its connections; no clock, only what was heard."""

from services.feeds.port import FeedAnomaly, FeedAnomalyKind

LINK_KINDS = (FeedAnomalyKind.DISCONNECTED, FeedAnomalyKind.RECONNECTED)
SOCKET, REST = "websocket", "rest"  # channels of an exchange; a file has none


class FeedLinks:
    """The connections of one feed: each up, or lost after so many rows."""

    def __init__(self) -> None:
        self._lost_after: dict[str | None, int | None] = {}

    def heard(self, anomaly: FeedAnomaly, rows: int) -> None:
        """A connection of the whole feed went, or came back; of a single symbol its staleness tells."""
        if anomaly.symbol is None and anomaly.kind in LINK_KINDS:
            lost = anomaly.kind is FeedAnomalyKind.DISCONNECTED
            self._lost_after[anomaly.detail.get("channel")] = rows if lost else None

    def ok(self, rows: int) -> bool:
        """Whether bars can come, when so many rows have come.

        Without its websocket an exchange is asked by REST. With REST lost a websocket may bring bars: one
        that came back does; of one that was never told of, a row since then is the proof.
        """
        lost = {channel: after for channel, after in self._lost_after.items() if after is not None}
        if not lost or set(lost) == {SOCKET}:
            return True
        return set(lost) == {REST} and (SOCKET in self._lost_after or rows > lost[REST])
