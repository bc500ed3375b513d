"""Worlds in which it is known whether a search over 200 sets found anything, and how often it is called real.

`python -m benchmarks.sweep_worlds 100` walks without an edge, and as many with one planted in 3 of 200 sets:
+.25 R a trade, about 150 trades in the half that is chosen on and 150 in the half that is looked at. A set
enters at times of its own; a planted one at times some of which were picked for what follows.
"""

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from trading_core.bars import COLUMNS, BarSeries
from trading_core.research.simulation import simulate
from trading_core.research.sweep import run_sets
from worker.studies.sweep.worth import Looking, Worth, worth_of

Planted = tuple[npt.NDArray[np.float64], float]  # R of a trade by its row, and the share that is picked
SETS, PLANTED, ROWS, SPACING, HELD = 200, 3, 6_400, 21, 12
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
    close = 100.0 * np.exp(np.cumsum(draw.normal(0.0, 0.008, ROWS)))
    opened = np.concatenate([[100.0], close[:-1]])
    wide = np.abs(draw.normal(0.0, 0.003, (2, ROWS)))
    high, low = np.maximum(opened, close) * (1.0 + wide[0]), np.minimum(opened, close) * (1.0 - wide[1])
    extra = {f"c{k}": _entries(draw, planted.get(k)) for k in range(SETS)}
    columns = dict(zip(COLUMNS, (opened, high, low, close, np.ones(ROWS)), strict=True))
    arrays: dict[str, Any] = {
        name: np.ascontiguousarray(values[:, np.newaxis]) for name, values in columns.items()
    }
    times = 1_577_836_800_000_000_000 + np.arange(ROWS) * 3_600_000_000_000
    present = np.ones((ROWS, 1), dtype=np.bool_)
    return BarSeries(
        times=times, symbols=("X",), timeframe="1h", label="open", present=present,
        extra=dict(sorted(extra.items())),
        **arrays,
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


def main(count: int) -> None:
    """Print how often each kind of world is called real, with the standard error of the rate."""
    for name, world in (("null", null_world), ("planted", planted_world)):
        found = [sweep_world(world(seed), seed) for seed in range(count)]
        rate = sum(worth.verdict == "real" for worth in found) / count
        error = (rate * (1.0 - rate) / count) ** 0.5
        parts = {
            "spa": np.mean([worth.spa_p is not None and worth.spa_p <= 0.05 for worth in found]),
            "pbo": np.mean([worth.pbo is not None and worth.pbo < 0.5 for worth in found]),
            "out": np.mean([(worth.out_of_sample or 0.0) > 0.0 for worth in found]),
        }
        shown = ", ".join(f"{part} {100 * value:.0f} %" for part, value in parts.items())
        sys.stdout.write(f"{name}: real {100 * rate:.1f} % ({100 * error:.1f}) of {count}; alone {shown}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
