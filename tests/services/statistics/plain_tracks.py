"""Figures of drawn clusters, printed: run in a process of its own, where no compiler is loaded."""

import sys

import numpy as np

from services.statistics import lazy_kernels
from services.statistics.blocks import Trades
from services.statistics.track import Bounds, Track

DAY = 86_400_000_000_000
END = 10**19 // 2


def drawn(trades: int, a_week: int) -> Trades:
    rng = np.random.default_rng([trades, a_week])
    entries = np.sort(rng.integers(0, trades * 7 // a_week + 1, trades)).astype(np.int64) * DAY
    return Trades(entries, entries + DAY, rng.normal(0.2, 1.2, trades).round(3))


def figures() -> list[str]:
    found = []
    for trades in (1, 2, 5, 12, 25, 60, 120):
        for a_week in (1, 2, 6):
            for strict in (False, True):
                bounds = Bounds(-3.0, 4.0, most_trades=3, strict=strict)
                track = Track(drawn(trades, a_week), "week", 0.0, bounds)
                sample = track.at(END)
                last = sample.blocks
                shown = [sample, track.interval(last), track.decay.tolist()]
                shown += [track.stakes(claim, last) for claim in (0, 1)]
                shown += [track.log_e_at(np.array([END], dtype=np.int64)).tolist()]
                found.append(repr(shown))
    return found


if __name__ == "__main__":
    lazy_kernels.MANY = 10**9
    print("\n".join(figures()))
    print("numba" in sys.modules)
