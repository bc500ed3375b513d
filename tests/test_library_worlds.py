"""Bars, threads and interruptions as a notebook has them: what is taken, refused and left behind."""

import asyncio
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thinktwice as tt
from tests.test_library import frame_of
from tests.worker.shared_runs import embedded_bars
from thinktwice.inputs import bars_of

START, END = "2003-01-01", "2003-12-31"


@pytest.fixture(autouse=True)
def listens_to_ctrl_c():
    """A process that was started in the background ignores the signal, and its tests would wait for ever."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def frame():
    return frame_of(embedded_bars(START, END), "AAPL")


@pytest.fixture(scope="module")
def several():
    bars = embedded_bars(START, END)
    return {name: frame_of(bars, name) for name in ("AAPL", "IBM", "MSFT")}


@pytest.fixture(scope="module")
def straight(frame):
    """The run on the frame as it is."""
    return tt.backtest(frame, symbols="AAPL")


def text_index(frame):
    return frame.set_axis(frame.index.strftime("%Y-%m-%dT%H:%M:%SZ"))


SHAPES: dict[str, Any] = {
    "periods": (
        lambda item: item.tz_localize(None).set_axis(item.index.tz_localize(None).to_period("D")),
        {"tz": "UTC"},
    ),
    "times as text": (text_index, {}),
    "epoch seconds": (
        lambda item: item.set_axis(item.index.astype("datetime64[s, UTC]").astype("int64")),
        {},
    ),
    "index that a column repeats": (lambda item: item.assign(time=item.index), {}),
    "numbers as objects": (lambda item: item.astype(object), {}),
    "numbers as text": (lambda item: item.astype(str), {}),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_index_and_numbers_of_any_kind_are_the_same_bars(shape, frame, straight):
    made, more = SHAPES[shape]
    assert tt.backtest(made(frame), symbols="AAPL", **more).head_hash == straight.head_hash


def test_symbols_in_a_level_of_the_index_and_as_downloads_have_them_are_the_same_bars(several):
    long = pd.concat([item.assign(symbol=name) for name, item in several.items()])
    levels = long.set_index("symbol", append=True)
    download = pd.concat(several, axis=1).swaplevel(axis=1).rename(columns=str.capitalize, level=0)
    download = download.sort_index(axis=1).rename_axis(columns=["Price", "Ticker"], index="Date")
    hashes = {tt.backtest(given).head_hash for given in (long, levels, levels.swaplevel(), download)}
    assert len(hashes) == 1


@pytest.mark.parametrize(
    ("spoil", "quoted"),
    [
        (
            lambda item: pd.concat([item.iloc[3:], item.iloc[:3]]),
            r"row \d+: .* comes before that of DataFrame row \d+: sort it, df.sort_index\(\)",
        ),
        (
            lambda item: pd.concat([item, item.iloc[[-1]] * 1.01]),
            r"row \d+: .* repeats that of .*: remove one of the two rows",
        ),
        (lambda item: item.reset_index(drop=True), "no time column among .* name it time"),
        (
            lambda bar: bar.assign(close=bar["close"].where(bar.index != bar.index[3])),
            "row 3: 'close' is empty or NaN",
        ),
    ],
)
def test_frame_that_cannot_be_used_says_what_to_do(spoil, quoted, frame):
    with pytest.raises(tt.DataError, match=quoted):
        tt.backtest(spoil(frame), symbols="AAPL")


@pytest.mark.parametrize(
    ("turned", "shown"),
    [
        (lambda item: item[::-1], "rows are sorted by time"),
        (lambda item: item[::-1].rename_axis("Date").reset_index(), "rows are sorted by time"),
        (lambda item: pd.concat([item, item.iloc[[-1]]]), "1 row stood twice"),
    ],
)
def test_frame_that_is_turned_or_repeats_a_row_is_read_with_a_warning(turned, shown, frame, straight):
    with pytest.warns(UserWarning, match=shown):
        read = tt.backtest(turned(frame), symbols="AAPL")
    assert read.document["performance"] == straight.document["performance"]


def test_textbook_playbooks_trade_or_say_what_sent_them_back():
    rsi = tt.Playbook(
        "rsi2",
        long={
            "setup": "rsi_2 < 10 and close > sma_200",
            "stop": "close - 2 * atr_14",
            "target": "close + 2 * atr_14",
            "invalidation": "rsi_2 > 70",
        },
        horizon_bars=5,
    )
    donchian = tt.Playbook(
        "donchian",
        long={
            "setup": "close > highest_20",
            "stop": "close - 2 * atr_20",
            "target": "close + 6 * atr_20",
            "invalidation": "close < lowest_10",
        },
        horizon_bars=60,
    )
    for playbook in (rsi, donchian):
        result = tt.backtest(
            playbooks=playbook, symbols=["AAPL", "IBM"], start="2000-03-01", end="2004-12-31"
        )
        assert result.summary["trades"] > 0, playbook.id
        assert not {"horizon_too_short", "horizon_too_long"} & set(result.findings["code"])
        assert "sent back: target_beyond_mfe" not in repr(result), "a prior that nobody wrote refuses nothing"


def test_two_runs_at_once_in_threads_are_each_its_own(several, straight):
    with ThreadPoolExecutor(2) as pool:
        runs = [pool.submit(tt.backtest, several[name], symbols=name) for name in ("AAPL", "IBM", "AAPL")]
        first, second, third = (run.result().head_hash for run in runs)
    assert first == third == straight.head_hash
    assert second == tt.backtest(several["IBM"], symbols="IBM").head_hash


def interrupted_at(bar):
    """Progress that sends Ctrl-C at a bar, and the bars that were seen."""
    seen: list[int] = []

    def progress(done, total):
        seen.append(done)
        if done == bar:
            signal.raise_signal(signal.SIGINT) if threading.current_thread() is threading.main_thread() else (
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            )

    return progress, seen


def test_ctrl_c_in_a_script_ends_the_run_at_the_next_bar(frame):
    progress, seen = interrupted_at(20)
    with pytest.raises(KeyboardInterrupt):
        tt.backtest(frame, symbols="AAPL", progress=progress)
    assert seen[-1] == 20
    assert not [
        thread for thread in threading.enumerate() if thread.is_alive() and thread.name == "thinktwice"
    ]


def test_ctrl_c_in_a_notebook_ends_the_run_and_its_thread():
    progress, seen = interrupted_at(20)

    async def cell():
        # As a kernel has it: the handler raises in the main thread.
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                tt.backtest(progress=progress)
        finally:
            signal.signal(signal.SIGINT, handler)

    asyncio.run(cell())
    assert 20 <= seen[-1] < 2_000
    assert not [
        thread for thread in threading.enumerate() if thread.is_alive() and thread.name == "thinktwice"
    ]


def test_ctrl_c_in_a_program_with_a_loop_of_its_own_ends_the_run_and_its_thread():
    progress, seen = interrupted_at(20)

    async def main():
        return tt.backtest(progress=progress)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert 20 <= seen[-1] < 2_000
    assert not [
        thread for thread in threading.enumerate() if thread.is_alive() and thread.name == "thinktwice"
    ]


def test_ctrl_c_ends_a_run_in_a_child_of_a_task_group_and_its_thread():
    progress, seen = interrupted_at(20)

    async def child():
        tt.backtest(progress=progress)

    async def main():
        async with asyncio.TaskGroup() as group:
            group.create_task(child())

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert 20 <= seen[-1] < 2_000
    assert not [
        thread for thread in threading.enumerate() if thread.is_alive() and thread.name == "thinktwice"
    ]


def test_ctrl_c_while_a_child_of_a_task_group_still_reads_its_bars_ends_the_run(monkeypatch):
    seen = list[int]()

    def interrupted(given, shown):
        signal.raise_signal(signal.SIGINT)
        return bars_of(given, shown)

    monkeypatch.setattr("thinktwice.backtesting.bars_of", interrupted)

    async def child():
        tt.backtest(progress=lambda done, total: seen.append(done))

    async def main():
        async with asyncio.TaskGroup() as group:
            group.create_task(child())

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
    assert not seen or seen[-1] < 2_000
    assert not [
        thread for thread in threading.enumerate() if thread.is_alive() and thread.name == "thinktwice"
    ]


def test_strategist_that_hangs_is_ended_by_ctrl_c(frame):
    class Hangs:
        async def answer(self, snapshot, revision):
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(3_600)

    with pytest.raises(KeyboardInterrupt):
        tt.backtest(frame, symbols="AAPL", strategist=Hangs())


def test_two_hundred_thousand_rows_are_taken():
    rng, rows = np.random.default_rng(7), 200_000
    close = 100 * np.exp(np.cumsum(rng.normal(0, 0.0005, rows)))
    opened = np.r_[100.0, close[:-1]]
    bars = pd.DataFrame(
        {
            "open": opened,
            "high": np.maximum(opened, close) * 1.0005,
            "low": np.minimum(opened, close) * 0.9995,
            "close": close,
            "volume": 1_000.0,
        },
        index=pd.date_range("2020-01-01", periods=rows, freq="min", tz="UTC"),
    )
    result = tt.simulate(bars, "close > highest_20", symbols="X")
    assert len(result.equity) == rows
