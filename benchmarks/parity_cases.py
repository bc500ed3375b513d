"""The bars and settings of the parity tests, and the recorded trade lists of the peers.

A recording holds no bars: they come from the embedded data or from a seed, and their hash is checked. Read
by `benchmarks.parity`, which writes the recordings, and by the tests, which need no peer.
"""

import csv
import gzip
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.crossing import BRACKET, Switches
from benchmarks.peer_runs import Peer, trade_table
from benchmarks.peer_settings import BACKTESTING, BACKTRADER, NAUTILUS, TICK, VECTORBT
from benchmarks.walks import walk
from trading_core.bars import BarSeries
from worker.feeds.sample_data import load_embedded_bars

DATA = Path(__file__).resolve().parents[1] / "tests" / "trading_core" / "parity" / "data"

# Makers pay less here, so that the split shows.
PEERS = {
    BACKTESTING.name: BACKTESTING,
    BACKTRADER.name: BACKTRADER,
    VECTORBT.name: VECTORBT,
    NAUTILUS.name: replace(NAUTILUS, switches={**NAUTILUS.switches, "maker_fee_bps": 2.0}),
}


@dataclass(frozen=True)
class Case:
    """Bars of one test: embedded ones of a symbol, or a seeded walk."""

    name: str
    symbol: str = ""
    seed: int = 0
    count: int = 0
    tick: float = 0.0

    def bars(self) -> BarSeries:
        """The bars, made anew."""
        if self.symbol:
            return load_embedded_bars([self.symbol])
        return walk(self.seed, self.count, tick=self.tick)


EMBEDDED = tuple(Case(f"embedded-{name}", symbol=name) for name in ("AAPL", "FB", "GOOG", "IBM", "MSFT"))
WALKS = tuple(
    Case(f"walk-{seed}", seed=seed, count=count)
    for seed, count in ((11, 100_000), (12, 100_000), (13, 50_000), (14, 10_000), (15, 10_000))
)
TICK_WALKS = tuple(
    Case(f"tick-walk-{seed}", seed=seed, count=count, tick=TICK)
    for seed, count in ((21, 50_000), (22, 20_000), (23, 10_000))
)
CASES: Mapping[str, tuple[Case, ...]] = {
    BACKTESTING.name: EMBEDDED + WALKS,
    BACKTRADER.name: EMBEDDED + WALKS[:1],
    VECTORBT.name: EMBEDDED + WALKS[:1],
    NAUTILUS.name: TICK_WALKS,
}


def settings_of(peer: Peer) -> dict[str, Any]:
    """What both sides were told: the bracket and the switches of this engine."""
    return {**BRACKET, **peer.switches}


@dataclass(frozen=True)
class Recording:
    """The trade lists of one peer by case name, and what was known about each case."""

    about: dict[str, Any]
    trades: dict[str, pd.DataFrame]

    @property
    def switches(self) -> Switches:
        """Arguments of `simulate`."""
        return {name: value for name, value in self.about["settings"].items() if name not in BRACKET}


def write_recording(peer: Peer, recording: Recording, folder: Path = DATA) -> list[Path]:
    """Two files, the same bytes for the same trades."""
    folder.mkdir(parents=True, exist_ok=True)
    about, lists = folder / f"{peer.name}.json", folder / f"{peer.name}.csv.gz"
    about.write_text(json.dumps(recording.about, indent=2, sort_keys=True) + "\n", "utf-8")
    text = io.StringIO()
    pd.concat([part.assign(case=name) for name, part in recording.trades.items()]).to_csv(text, index=False)
    lists.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    return [about, lists]


def read_recording(name: str, folder: Path = DATA) -> Recording:
    """The recorded trades of a peer; floats come back to the last bit."""
    about = json.loads((folder / f"{name}.json").read_text("utf-8"))
    lines = gzip.decompress((folder / f"{name}.csv.gz").read_bytes()).decode().splitlines()
    parts: dict[str, list[list[float]]] = {case["name"]: [] for case in about["cases"]}
    for *numbers, case in csv.reader(lines[1:]):
        parts[case].append([float(number) for number in numbers])
    return Recording(about, {case: trade_table(rows) for case, rows in parts.items()})
