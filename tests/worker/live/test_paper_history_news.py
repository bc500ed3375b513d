"""What is wrong with a file at the start of a process: journalled once, as of when it was seen."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from schemas.errors import FeedError
from schemas.settings import Settings
from tests.worker.live.paper_runs import replayed, rows_stored, traded
from worker.feeds.csv.shape import settled_shape
from worker.feeds.csv.tail import CsvTailFeed

HOUR_NS = 3_600 * 10**9
LAST = 1_700_006_400 * 10**9  # label of the last whole bar of the file
NOW = LAST + HOUR_NS + HOUR_NS // 2
SETTINGS = Settings()


def written(path: Path) -> Path:
    """A file with a line that cannot be read before 60 bars, a changed one among them, and a running one."""
    lines = ["time,symbol,open,high,low,close,volume", "yesterday,A,1,1,1,1,1"]
    for number in range(-59, 2):
        price = 100.0 + number % 7
        lines += [f"{(LAST + number * HOUR_NS) // 10**9},A,{price},{price + 2},{price - 2},{price + 1},10"]
    lines.insert(30, lines[29].replace(",10", ",11"))
    path.write_text("\n".join(lines) + "\n", "utf-8")
    os.utime(path, ns=(NOW, NOW))
    return path


def feed_of(path: Path, error: FeedError | None = None) -> CsvTailFeed:
    """A feed that begins half an hour after the last whole bar, and ends, or fails, at its second look."""

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(0)
        if seconds > 0.0 and error is not None:
            raise error
        if seconds > 0.0:
            await feed.close()

    shape = settled_shape(path, timeframe="1h")
    feed = CsvTailFeed(shape, SETTINGS.runtime.feed, wall=lambda: NOW, steady=lambda: NOW, sleep=sleep)
    return feed


def test_feed_anomaly_seen_while_history_is_played_is_stamped_with_when_it_was_seen(tmp_path: Path) -> None:
    traded(tmp_path, SETTINGS, feed_of(written(tmp_path / "bars.csv")))
    found = rows_stored(tmp_path, "latest", "feed_anomaly")
    shown = [(json.loads(row.payload)["anomaly"], row.known_at) for row in found]
    seen = LAST + HOUR_NS  # the close of the newest bar at that time
    assert shown == [(kind, seen) for kind in ("invalid", "unclosed", "conflict")]
    assert replayed(tmp_path, SETTINGS).ok


def test_bar_that_changes_between_two_processes_is_journalled_once_as_a_conflict(tmp_path: Path) -> None:
    path = written(tmp_path / "bars.csv")
    whole = path.read_text("utf-8")
    row = next(line for line in whole.splitlines() if line.startswith(str((LAST - HOUR_NS) // 10**9)))
    changed = whole.replace(row, f"{row}9")
    kinds = []
    for text in (whole, changed, changed):
        path.write_text(text, "utf-8")
        os.utime(path, ns=(NOW, NOW))
        with pytest.raises(FeedError, match="enough"):
            traded(tmp_path, SETTINGS, feed_of(path, FeedError("enough", retryable=True)))
        found = [json.loads(row.payload) for row in rows_stored(tmp_path, "latest", "feed_anomaly")]
        kinds.append(
            [
                (payload["anomaly"], payload["bar_label"])
                for payload in found
                if payload["anomaly"] == "conflict"
            ]
        )
    before = ("conflict", kinds[0][0][1])
    assert kinds == [[before], [before, ("conflict", LAST - HOUR_NS)], [before, ("conflict", LAST - HOUR_NS)]]
    assert replayed(tmp_path, SETTINGS).ok
