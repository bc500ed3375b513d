"""A volume that the data do not have is unknown: in the bars, in rules, in the account, on paper and live."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thinktwice as tt
from schemas.errors import DataError
from schemas.settings import Settings
from tests.worker.live.paper_runs import read_requests, replayed, traded, waiting_feed
from tests.worker.shared_runs import embedded_bars, run_on
from trading_core.bars import BarSeries
from trading_core.features import compute
from trading_core.regime import regime_columns
from worker.feeds.files.files import load_bar_file
from worker.feeds.files.symbol_rows import Selection
from worker.runs.signal_lines import account_lines

NEVER = "it is unknown, and rules that read it are never true"
COLUMNS = ["open", "high", "low", "close"]


def bars_of(rows: int = 40, seed: int = 3) -> pd.DataFrame:
    close = 100.0 + np.random.default_rng(seed).uniform(-1.0, 1.0, rows).cumsum()
    opens = np.concatenate([[100.0], close[:-1]])
    prices = {"open": opens, "high": np.maximum(opens, close) + 0.5, "low": np.minimum(opens, close) - 0.5}
    index = pd.date_range("2024-01-01", periods=rows, freq="h", tz="UTC", name="time")
    return pd.DataFrame(prices | {"close": close, "volume": 5.0}, index=index)


def load(path: Path, **options: Any) -> tuple[BarSeries, list[str]]:
    notes: list[str] = []
    return load_bar_file(path, Selection(tell=notes.append, **options)), notes


def test_volume_that_a_file_or_a_frame_does_not_have_is_unknown_and_named(tmp_path: Path) -> None:
    frame = bars_of()
    frame[COLUMNS].to_csv(tmp_path / "a.csv")
    frame.assign(volume=np.nan).to_csv(tmp_path / "b.csv")
    frame.assign(volume=-np.array(np.nan)).to_parquet(tmp_path / "c.parquet")
    hashes = set()
    for name in ("a.csv", "b.csv", "c.parquet"):
        bars, notes = load(tmp_path / name, symbols=["X"])
        assert np.isnan(bars.volume).sum() == bars.bar_count == 40, name
        assert notes == [f"no volume of X: {NEVER}"] == list(bars.notes), name
        hashes.add(bars.sha256)
    assert len(hashes) == 1, "the hash knows one unknown volume, whatever its bits"
    frame.assign(volume=0.0).to_csv(tmp_path / "zero.csv")
    zero, notes = load(tmp_path / "zero.csv", symbols=["X"])
    assert notes == []
    assert zero.sha256 not in hashes


def test_volume_of_half_of_the_rows_is_taken_where_it_is(tmp_path: Path) -> None:
    frame = bars_of()
    frame.loc[frame.index[::2], "volume"] = np.nan
    frame.to_csv(tmp_path / "half.csv")
    bars, notes = load(tmp_path / "half.csv")
    assert notes == ["no volume at 20 of 40 bars of HALF: rules that read it are not true there"]
    assert np.array_equal(np.isnan(bars.volume[:, 0]), np.arange(40) % 2 == 0)
    total = compute(bars, ["volume_sma_5"])["volume_sma_5"][:, 0]
    assert np.array_equal(np.isfinite(total), (np.arange(40) % 2 == 1) & (np.arange(40) >= 9))
    longer, _ = load(tmp_path / "half.csv", longer="2h")
    assert np.isnan(longer.volume).all(), "a sum of which a part is unknown"
    frame.loc[frame.index[3], "volume"] = np.inf
    frame.to_csv(tmp_path / "half.csv")
    with pytest.raises(DataError, match="'volume' is infinite"):
        load(tmp_path / "half.csv")


def test_volume_of_one_of_two_files_is_unknown_of_that_symbol_alone(tmp_path: Path) -> None:
    bars_of().to_csv(tmp_path / "aaa.csv")
    bars_of(seed=4)[COLUMNS].to_csv(tmp_path / "bbb.csv")
    bars, notes = load(tmp_path)
    assert notes == [f"no volume of BBB: {NEVER}"]
    assert np.isnan(bars.volume).all(axis=0).tolist() == [False, True]
    assert load(tmp_path, symbols=["AAA"])[1] == []


def without_volume() -> BarSeries:
    bars = embedded_bars("2009-01-01", "2010-12-31").select(("AAPL",))
    return replace(bars, volume=np.full(bars.shape, np.nan))


def test_regime_of_bars_without_volume_is_that_of_prices_with_volume_in_the_middle() -> None:
    bars = without_volume()
    silent = regime_columns(bars)
    flat = regime_columns(replace(bars, volume=np.zeros(bars.shape)))
    for name in ("trend", "volatility", "structure", "fingerprint", "reason"):
        assert np.array_equal(getattr(silent, name), getattr(flat, name), equal_nan=True), name
    assert np.unique(silent.fingerprint[-100:, 0, 3]).tolist() == [0.5]


def test_run_on_a_frame_without_volume_trades_what_reads_none_and_says_why_the_other_did_not() -> None:
    levels = {"stop": "close - 2 * atr_14", "target": "close + 3 * atr_14"}
    books = [
        tt.Playbook("loud", long={"setup": "volume >= volume_sma_20", **levels}),
        tt.Playbook("plain", long={"setup": "close > sma_20", **levels}),
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = tt.backtest(bars_of(400)[COLUMNS], playbooks=books)
    assert f"no volume of BARS: {NEVER}" in [str(warning.message) for warning in caught]
    assert result.document["data"]["notes"] == [f"no volume of BARS: {NEVER}"]
    loud, plain = result.document["signals"]["playbooks"]
    assert (loud["never_true"], plain["never_true"]) == ("volume_is_unknown", None)
    assert set(result.trades["playbook_id"]) == {"plain"}
    assert account_lines(result.document)[0] == (
        "loud: entry rule true 0 times: its setup reads volume, and volume is unknown everywhere"
    )


def test_paper_on_bars_without_volume_has_the_head_of_the_backtest_and_verifies(tmp_path: Path) -> None:
    bars = without_volume()
    expected, outcome = run_on(bars), traded(tmp_path, Settings(), waiting_feed(bars))
    assert outcome.document is not None
    assert outcome.document["journal"]["head_hash"] == expected.document["journal"]["head_hash"]
    assert outcome.document["data"]["sha256"] == bars.sha256
    assert expected.of("episode")
    assert replayed(tmp_path, Settings()).ok

    async def first(store: Any) -> Any:
        record = await store.runs.find("latest")
        return [row async for row in store.trading.rows(record.run_id)][0]

    assert read_requests(tmp_path, first).bars["AAPL"].volume is None
