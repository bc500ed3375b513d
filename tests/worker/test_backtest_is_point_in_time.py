"""Change the future, keep the past; and the same run twice gives the same bytes."""

import numpy as np

from schemas.settings import Settings
from tests.worker.shared_runs import Run, embedded_bars, run_on, slice_run
from trading_core.bars import COLUMNS, BarSeries

CUT = "2005-01-03"


def _known_until(run: Run, moment: int) -> list[tuple[str, str, str]]:
    return [(row.kind, row.payload, row.hash) for row in run.rows if row.known_at <= moment]


def _moment() -> int:
    return int(np.datetime64(CUT, "ns").astype(np.int64))


def _changed(bars: BarSeries, moment: int) -> BarSeries:
    """The same bars up to `moment`; after it other prices and other volumes."""
    rng = np.random.default_rng(1)
    later = bars.close_times > moment
    factor = np.where(
        later[:, None], np.exp(np.cumsum(later[:, None] * rng.normal(0, 0.03, bars.shape), axis=0)), 1.0
    )
    prices = [np.ascontiguousarray(part * factor) for part in (bars.open, bars.high, bars.low, bars.close)]
    volume = np.ascontiguousarray(
        np.where(later[:, None], bars.volume * rng.uniform(0.2, 5.0, bars.shape), bars.volume)
    )
    columns = dict(zip(COLUMNS, (*prices, volume), strict=True))
    return BarSeries(
        bars.times, bars.symbols, bars.timeframe, bars.label,
        present=bars.present, zone=bars.zone, **columns,
    )  # fmt: skip


def test_backtest_perturbed_future_leaves_everything_known_before_byte_equal() -> None:
    before = slice_run()
    after = run_on(_changed(embedded_bars("2003-01-01", "2005-10-31"), _moment()))
    past = _known_until(before, _moment())
    assert past == _known_until(after, _moment())
    kinds = {kind for kind, _, _ in past}
    assert {
        "policy_frozen",
        "policy_reflection",
        "boundary_verdict",
        "episode",
        "slow_skip",
        "high_level_report",
    } <= kinds
    assert before.rows[-1].hash != after.rows[-1].hash


def test_backtest_that_ends_earlier_shares_the_rows_of_the_longer_one() -> None:
    shorter = run_on(embedded_bars("2003-01-01", CUT))
    longer = slice_run()
    own = [row for row in shorter.rows if not row.kind.startswith("run_")]
    assert len(own) > 1_000
    assert [row.hash for row in own] == [row.hash for row in longer.rows[: len(own)]]


def test_backtest_repeated_gives_the_same_head_hash() -> None:
    again = run_on(embedded_bars("2003-01-01", "2005-10-31"))
    assert again.document["journal"]["head_hash"] == slice_run().document["journal"]["head_hash"]
    assert again.document["performance"] == slice_run().document["performance"]


def test_backtest_other_configuration_gives_another_head_hash() -> None:
    other = run_on(embedded_bars("2003-01-01", "2003-06-30"), Settings(seed=1))
    same = run_on(embedded_bars("2003-01-01", "2003-06-30"), Settings(seed=0))
    assert other.document["config_hash"] != same.document["config_hash"]
    assert other.document["journal"]["head_hash"] != same.document["journal"]["head_hash"]
