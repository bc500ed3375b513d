"""Runs on bars that were made longer, and on weeks and months: what is traded, said, and played back."""

import pandas as pd
import pytest

import thinktwice as tt
from schemas.settings import Settings
from trading_core.accounting import bars_per_year
from trading_core.bars import COLUMNS
from trading_core.resampling import resample
from worker.feeds.opening import open_feed
from worker.feeds.sample_data import load_embedded_bars
from worker.feeds.selected_bars import describe, load_bars


def settings(**data):
    return Settings.model_validate({"data": data})


@pytest.mark.parametrize("timeframe", ["1w", "1M"])
def test_run_on_longer_bars_is_the_run_on_bars_that_were_longer(timeframe):
    with pytest.warns(UserWarning, match=f"the {timeframe} bar from 2013-.* is not complete and left out"):
        made = tt.backtest(resample=timeframe, symbols="AAPL")
    bars = resample(load_embedded_bars(), timeframe).select(("AAPL",))
    index = pd.to_datetime(bars.times, utc=True)
    frame = pd.DataFrame({name: getattr(bars, name)[:, 0] for name in COLUMNS}, index=index)
    given = tt.backtest(frame, symbols="AAPL")
    assert made.document["data"]["timeframe"] == timeframe
    assert made.document["data"]["sha256"] == given.document["data"]["sha256"]
    pd.testing.assert_frame_equal(made.equity, given.equity)
    assert made.verify()


def test_weekly_bars_are_not_stale_while_a_position_is_held():
    with pytest.warns(UserWarning, match="left out"):
        done = tt.backtest(resample="1w", end="2006-12-31")
    assert len(done.trades) > 3
    assert done.index.of_kind("policy_event")
    assert not [row for row in done.index.of_kind("policy_event") if "stale_data" in row.payload]


def test_figures_of_a_year_count_the_bars_of_a_year():
    bars = resample(load_embedded_bars(["IBM"]), "1w")
    assert bars_per_year(bars.close_times) == pytest.approx(52.2, abs=0.1)


def test_zone_and_longer_bars_are_part_of_the_configuration_where_they_are_set():
    assert Settings().config_hash == settings(zone="UTC").config_hash
    assert (
        len(
            {
                Settings().config_hash,
                settings(resample="1w").config_hash,
                settings(zone="Asia/Tokyo").config_hash,
            }
        )
        == 3
    )


def test_run_says_its_zone_where_it_is_not_utc():
    plain, tokyo = settings(), settings(zone="Asia/Tokyo")
    assert "zone" not in describe(load_bars(plain), plain)
    assert describe(load_bars(tokyo), tokyo)["zone"] == "Asia/Tokyo"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        (
            "zone",
            "Asia/Tokio",
            "'Asia/Tokio' is no time zone: give a name like UTC.*Did you mean 'Asia/Tokyo'",
        ),
        ("resample", "30min", "'30min' is not one of 1m, .*Did you mean '30m'"),
    ],
)
def test_zone_or_timeframe_that_is_none_names_the_nearest(name, value, words):
    with pytest.raises(tt.ConfigError, match=words):
        tt.settings(**{f"data__{name}": value})


@pytest.mark.parametrize("data", [{"resample": "1w"}, {"zone": "Asia/Tokyo"}, {"timeframe": "1M"}])
@pytest.mark.parametrize("feed", ["csv", "ccxt:binance"])
def test_live_feed_refuses_what_recorded_bars_can_do(data, feed, tmp_path):
    path = tmp_path / "bars.csv"
    path.write_text("time,open,high,low,close,volume\n")
    shown = settings(**({"symbols": ["BTC/USDT"], "timeframe": "1d"} | data))
    if feed == "csv":
        shown = shown.model_copy(update={"runtime": shown.runtime.model_copy(update={"data": str(path)})})
    with pytest.raises(tt.ConfigError, match=f"are for recorded bars: leave them out with --feed {feed}"):
        open_feed(feed, shown)


def test_growing_file_of_bars_within_a_day_is_followed_in_the_zone_of_its_exchange(tmp_path):
    path = tmp_path / "bars.csv"
    path.write_text("time,open,high,low,close,volume\n")
    data = {"symbols": ["AAPL"], "timeframe": "5m", "zone": "America/New_York"}
    feed = open_feed("csv", Settings.model_validate({"data": data, "runtime": {"data": str(path)}}))
    assert (feed.symbols, feed.timeframe) == (("AAPL",), "5m")


def test_growing_file_of_weeks_is_refused(tmp_path):
    path = tmp_path / "weeks.csv"
    rows = [f"{day}T00:00:00Z,1,1,1,1,1" for day in ("2024-01-01", "2024-01-08", "2024-01-15")]
    path.write_text("\n".join(["time,open,high,low,close,volume", *rows]) + "\n")
    shown = Settings.model_validate({"runtime": {"data": str(path)}})
    with pytest.raises(tt.ConfigError, match=r"^bars of 1w: those of 1w and 1M, .* or take --feed replay"):
        open_feed("csv", shown)
