"""One question, one answer: a bar's interval against a no-learn zone, for plan, episode and citation."""

from typing import Any, Literal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from schemas.no_learn import NoLearnZone
from services.memory.episode_builder import EpisodeContext, build_episode
from services.policy_checks.invariants import check_invariants
from tests.services.policy_checks.plans import DAY, NOW, changed, codes, right_request
from trading_core.bars import BarSeries

Label = Literal["open", "close"]
HOUR = DAY // 24
SECOND = 1_000_000_000
SPLIT = NOW - 10 * DAY  # 00:00 of 2009-12-22
SPLIT_DAYS = [
    pytest.param(SPLIT + DAY, id="to the next midnight"),
    pytest.param(SPLIT + DAY - SECOND, id="to the last second"),
]
CONTEXT = EpisodeContext("p", 1, "0" * 64, "0" * 16, "up/mid", "neutral", (0.5,) * 5, 0.4, "live")


def zone(start: int, end: int, **more: Any) -> NoLearnZone:
    return NoLearnZone(start=start, end=end, reason="xyzzy", **more)


def plan_is_caught(found: NoLearnZone, opened: int, timeframe: str = "1d", label: Label = "open") -> bool:
    """Whether the plan of a bar that opens then is found fault with."""
    length = DAY if timeframe == "1d" else HOUR
    close = opened + length
    bar_label = opened if label == "open" else close
    window = {"first_label": opened - 99 * DAY, "last_label": bar_label, "bars": 3}
    changes = {
        "ts_event": close, "known_at": close, "bar_label": bar_label,
        "timeframe": timeframe, **{f"data_window.{name}": value for name, value in window.items()},
    }  # fmt: skip
    spoiled = {f"snapshot.{name}": value for name, value in changes.items()}
    request = changed(right_request(), spoiled | {"invariants.no_learn_zones": (found,), "memory": None})
    reply = codes(check_invariants(request))
    assert reply in ([], ["no_learn_zone_active"])
    return bool(reply)


def episode_is_caught(
    found: NoLearnZone, first: int, last: int, timeframe: str = "1d", label: Label = "open"
) -> bool:
    """Whether a trade from the bar that opens at `first` to the one that opens at `last` teaches nothing."""
    length = DAY if timeframe == "1d" else HOUR
    opens = np.arange(first, last + 1, length) + (0 if label == "open" else length)
    if opens.size == 1:
        opens = np.append(opens, opens + length)
    index = pd.DatetimeIndex(opens, tz="UTC")
    frame = pd.DataFrame(dict.fromkeys(("open", "high", "low", "close", "volume"), 1.0), index=index)
    bars = BarSeries.from_frame(frame, timeframe=timeframe, label=label, symbol="AAA")
    names = ("entry_price", "exit_price", "quantity", "fees", "pnl", "r", "bars_held", "reason")
    trade = dict.fromkeys(names, 1) | {"s": 0, "direction": 1, "mae_r": 0, "mfe_r": 0, "entry_t": 0}
    return build_episode(trade | {"exit_t": (last - first) // length}, bars, CONTEXT, (found,)).no_learn


def citation_is_caught(found: NoLearnZone, day: int) -> bool:
    text = f"An uptrend and a dip, as on {pd.Timestamp(day).date()}."
    request = changed(
        right_request(), {"invariants.no_learn_zones": (found,), "proposal.rationale": text, "memory": None}
    )
    return "no_learn_zone_cited" in codes(check_invariants(request))


@pytest.mark.parametrize("label", ["open", "close"])
@pytest.mark.parametrize("end", SPLIT_DAYS)
@pytest.mark.parametrize(("days", "caught"), [(-1, False), (0, True), (1, False)])
def test_no_learn_zone_of_a_split_day_catches_exactly_its_daily_bar(end, days, caught, label):
    found, opened = zone(SPLIT, end), SPLIT + days * DAY
    assert plan_is_caught(found, opened, label=label) is caught
    assert episode_is_caught(found, opened, opened, label=label) is caught
    assert citation_is_caught(found, opened) is caught


@pytest.mark.parametrize("label", ["open", "close"])
@pytest.mark.parametrize(
    ("first", "last", "caught"), [(-3, 3, True), (-3, -1, False), (1, 4, False), (-2, 0, True)]
)
def test_no_learn_zone_inside_a_trade_is_seen_and_one_beside_it_is_not(first, last, caught, label):
    found = zone(SPLIT, SPLIT + DAY)
    assert episode_is_caught(found, SPLIT + first * DAY, SPLIT + last * DAY, label=label) is caught


@pytest.mark.parametrize("label", ["open", "close"])
@pytest.mark.parametrize(("hours", "caught"), [(-1, False), (0, True), (1, True), (2, False)])
def test_no_learn_zone_on_intraday_bars_catches_the_bars_that_share_a_moment_with_it(hours, caught, label):
    halt = zone(SPLIT + HOUR // 2, SPLIT + HOUR + 1)
    opened = SPLIT + hours * HOUR
    assert plan_is_caught(halt, opened, "1h", label) is caught
    assert episode_is_caught(halt, opened, opened, "1h", label) is caught


@pytest.mark.parametrize(
    ("start", "end", "caught"),
    [
        (10, 10, True),
        (9, 9, False),
        (20, 20, False),
        (19, 19, True),
        (20, 30, False),
        (0, 10, False),
        (0, 11, True),
    ],
)
def test_no_learn_zone_touches_at_its_edges(start, end, caught):
    assert zone(start, end).touches("AAA", 10, 20) is caught


def test_no_learn_zone_of_another_symbol_touches_nothing():
    assert not zone(0, 100, symbol="BBB").touches("AAA", 10, 20)
    assert zone(0, 100, symbol="AAA").touches("AAA", 10, 20)


def test_no_learn_zone_that_ends_before_it_starts_is_refused():
    with pytest.raises(ValidationError, match="must not end before it starts, got 2 to 1"):
        zone(2, 1)


@given(start=st.integers(-60, 60), length=st.integers(0, 60), day=st.integers(-2, 2))
def test_no_learn_zone_gives_plan_episode_and_citation_the_same_answer(start, length, day):
    found = zone(SPLIT + start * HOUR, SPLIT + (start + length) * HOUR)
    opened = SPLIT + day * DAY
    answer = found.touches("AAA", opened, opened + DAY)
    assert plan_is_caught(found, opened) is answer
    assert episode_is_caught(found, opened, opened) is answer
    assert citation_is_caught(found, opened) is answer
