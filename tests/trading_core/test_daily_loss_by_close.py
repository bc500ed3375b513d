"""The day of the daily loss is the one in which a bar closes, whatever its label says."""

import numpy as np
import pandas as pd
import pytest

from schemas.settings import EnvelopeSettings
from tests.trading_core.engine_bench import engine_on, install, run_all
from trading_core.bars import BarSeries

HOUR = pd.Timedelta(hours=1)


def _bars(label: str) -> BarSeries:
    # Hourly bars from 20:00; the one that closes at midnight falls from 100 to 90.
    opens = pd.date_range("2024-01-01 18:00", periods=9, freq="h", tz="UTC")
    close = np.array([100.0] * 5 + [90.0] * 4)
    frame = pd.DataFrame(
        {"open": 100.0, "high": 100.5, "low": np.minimum(99.5, close), "close": close, "volume": 1.0},
        index=opens if label == "open" else opens + HOUR,
    )
    frame.loc[frame.index[6:], ["open", "high"]] = [90.0, 90.5]
    return BarSeries.from_frame(frame, timeframe="1h", label="open" if label == "open" else "close")


@pytest.mark.parametrize("label", ["open", "close"])
def test_daily_loss_at_the_close_of_a_day_belongs_to_that_day(label: str) -> None:
    bars = _bars(label)
    envelope = EnvelopeSettings(max_daily_loss=0.001, risk_fraction=0.02)
    engine = engine_on(bars, envelope=envelope)
    install(engine, setup=[1], activation=[2], stop=80.0, target=150.0)
    events = [event for step in run_all(engine) for event in step.events]
    midnight = pd.Timestamp("2024-01-02", tz="UTC")
    at = {str(event.kind): pd.Timestamp(event.known_at, tz="UTC") for event in events}
    assert at["envelope_breach"] == midnight, "the bar that closes at midnight ends its day"
    assert at["envelope_released"] == midnight + HOUR, "and the next bar begins another"
