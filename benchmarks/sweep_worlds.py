"""Worlds in which it is known whether a search over 200 sets found anything, and how often it is called real.

`python -m benchmarks.sweep_worlds 100` walks without an edge, and as many with one planted in 3 of 200 sets:
+.25 R a trade, about 150 trades in the half that is chosen on and 150 in the half that is looked at. A set
enters at times of its own; a planted one at times some of which were picked for what follows. Then as many
short walks of days under 9 crossings of moving averages, which are few trades: with a near stop and a far
target, and the other way round, where a loss that has not come yet looks like an edge.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from trading_core.bars import COLUMNS, BarSeries
from trading_core.research.simulation import simulate
from trading_core.research.sweep import run_sets
from worker.studies.sweep.worth import Looking, Worth, worth_of

Planted = tuple[npt.NDArray[np.float64], float]  # R of a trade by its row, and the share that is picked
SETS, PLANTED, ROWS, SPACING, HELD = 200, 3, 6_400, 21, 12
DAYS, CROSSED = 1_260, list(product((5, 10, 20), (30, 50, 100)))
FEW = {
    "few trades": {"stop_pct": 0.02, "target_pct": 0.04},
    "rare losses": {"stop_pct": 0.06, "target_pct": 0.01},
}
TERMS = {"stop_pct": 0.02, "target_pct": 0.02, "time_stop_bars": HELD, "fee_bps": 0.0, "slippage_bps": 0.0}


def null_world(seed: int) -> BarSeries:
    """Bars of a walk; column x.c3 says when set 3 enters, by chance."""
    return _world(np.random.default_rng(seed), {})


def planted_world(seed: int, edge: float = 0.25) -> BarSeries:
    """The same with sets that earn `edge` R a trade on average, the numbers 0 to `PLANTED` - 1."""
    draw = np.random.default_rng(seed)
    bare = _world(draw, {})
    outcomes = np.full(ROWS, np.nan)
    for first in range(HELD + 2):  # far enough apart that each is traded
        truths = np.zeros((ROWS, 1), dtype=np.bool_)
        truths[first :: HELD + 2] = True
        traded = simulate(bare, truths, **TERMS).records
        outcomes[traded["entry_t"] - 1] = traded["r"]
    plain, picked = (np.mean([choice(outcomes[slot]) for slot in _slots()]) for choice in (np.mean, _winning))
    share = (edge - plain) / (picked - plain)
    return _world(np.random.default_rng(seed), {k: (outcomes, share) for k in range(PLANTED)})


def _slots() -> list[slice]:
    """Rows at one of which every set enters once; trades of two slots cannot meet."""
    return [slice(start, start + SPACING - HELD) for start in range(5, ROWS - 2 * SPACING, SPACING)]


def _winning(r: npt.NDArray[np.float64]) -> float:
    """Mean R of the rows of a slot that win; of all where none does."""
    return float(r[r > 0.0].mean() if (r > 0.0).any() else r.mean())


def _world(draw: np.random.Generator, planted: Mapping[int, Planted]) -> BarSeries:
    prices = _prices(draw, ROWS, 0.008)
    return _bars(prices, "1h", {f"c{k}": _entries(draw, planted.get(k)) for k in range(SETS)})


def _prices(draw: np.random.Generator, rows: int, spread: float) -> tuple[npt.NDArray[np.float64], ...]:
    """Open, high, low and close of a walk of Gaussian steps."""
    close = 100.0 * np.exp(np.cumsum(draw.normal(0.0, spread, rows)))
    opened = np.concatenate([[100.0], close[:-1]])
    wide = np.abs(draw.normal(0.0, 0.003, (2, rows)))
    return (
        opened,
        np.maximum(opened, close) * (1.0 + wide[0]),
        np.minimum(opened, close) * (1.0 - wide[1]),
        close,
    )


def _bars(prices: Sequence[Any], timeframe: str, extra: Mapping[str, Any]) -> BarSeries:
    rows = len(prices[0])
    columns = dict(zip(COLUMNS, (*prices, np.ones(rows)), strict=True))
    arrays: dict[str, Any] = {
        name: np.ascontiguousarray(values[:, np.newaxis]) for name, values in columns.items()
    }
    step = 3_600_000_000_000 * (24 if timeframe == "1d" else 1)
    return BarSeries(
        times=1_577_836_800_000_000_000 + np.arange(rows) * step, symbols=("X",), timeframe=timeframe,
        label="open", present=np.ones((rows, 1), dtype=np.bool_), extra=dict(sorted(extra.items())), **arrays,
    )  # fmt: skip


def _entries(draw: np.random.Generator, planted: Planted | None) -> npt.NDArray[np.float64]:
    """float64 (T, 1): 1 where the set enters, about every `SPACING` bars."""
    found = np.zeros(ROWS)
    for slot in _slots():
        rows = np.arange(slot.start, slot.stop)
        if planted is not None and draw.random() < planted[1]:
            better = rows[planted[0][rows] > 0.0]
            rows = better if better.size else rows
        found[draw.choice(rows)] = 1.0
    return found[:, np.newaxis]


def sweep_world(bars: BarSeries, seed: int) -> Worth:
    """What a sweep over the 200 sets of a world says it is worth; one fold, half of the bars to choose on."""
    rows = run_sets(bars, [{"entry": f"x.c{k} > 0", **TERMS} for k in range(SETS)])
    return worth_of(bars, rows, Looking(folds=1, seed=seed))


def sweep_days(seed: int, terms: Mapping[str, float]) -> Worth:
    """What a sweep over nine crossings says on `DAYS` days of a walk without an edge, as a user calls it."""
    bars = _bars(_prices(np.random.default_rng(seed), DAYS, 0.01), "1d", {})
    sets = [{"entry": f"crosses_above(sma_{fast}, sma_{slow})", **terms} for fast, slow in CROSSED]
    return worth_of(bars, run_sets(bars, sets), Looking(seed=seed))


def main(count: int) -> None:
    """Print how often each kind of world is called real, with the standard error of the rate."""
    kinds: dict[str, Callable[[int], Worth]] = {
        "null": lambda seed: sweep_world(null_world(seed), seed),
        "planted": lambda seed: sweep_world(planted_world(seed), seed),
        **{name: partial(sweep_days, terms=terms) for name, terms in FEW.items()},
    }
    for name, world in kinds.items():
        found = [world(seed) for seed in range(count)]
        rate = sum(worth.verdict == "real" for worth in found) / count
        error = (rate * (1.0 - rate) / count) ** 0.5
        parts = {
            "spa": np.mean([worth.spa_p is not None and worth.spa_p <= 0.05 for worth in found]),
            "pbo": np.mean([worth.pbo is not None and worth.pbo < 0.5 for worth in found]),
            "out": np.mean(
                [worth.out_of_sample_p is not None and worth.out_of_sample_p <= 0.05 for worth in found]
            ),
        }
        shown = ", ".join(f"{part} {100 * value:.0f} %" for part, value in parts.items())
        sys.stdout.write(f"{name}: real {100 * rate:.1f} % ({100 * error:.1f}) of {count}; alone {shown}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
