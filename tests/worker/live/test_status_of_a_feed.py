"""When a feed counts as away: its file or all of its exchange, not one symbol."""

import pytest

from services.feeds.port import FeedAnomaly, FeedAnomalyKind
from worker.live.status import FeedLinks

LOST, BACK, STALE = FeedAnomalyKind.DISCONNECTED, FeedAnomalyKind.RECONNECTED, FeedAnomalyKind.STALE


@pytest.mark.parametrize(
    ("heard", "rows", "ok"),
    [
        ([], 0, True),
        ([(LOST, None)], 5, False),
        ([(LOST, None)], 6, False),  # a row that waited is no sign of a file
        ([(LOST, None), (BACK, None)], 5, True),
        ([(LOST, "rest")], 5, False),
        ([(LOST, "rest")], 6, True),
        ([(LOST, "rest"), (BACK, "rest")], 5, True),
        ([(STALE, None)], 5, True),
    ],
)
def test_feed_is_away_when_nothing_of_it_can_bring_bars(heard, rows, ok):
    links = FeedLinks()
    for kind, channel in heard:
        links.note_anomaly(FeedAnomaly(kind, None, None, {} if channel is None else {"channel": channel}), 5)
    assert links.ok(rows) is ok


def test_symbol_that_is_refused_leaves_the_others_their_feed():
    links = FeedLinks()
    links.note_anomaly(FeedAnomaly(LOST, "A", None, {"channel": "rest"}), 5)
    assert links.ok(5)
