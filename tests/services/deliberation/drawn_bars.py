"""Five symbols of dependent, fat-tailed daily bars, 2011 to 2017, behind the run that `whole_drawn` keeps.

`python -m tests.services.deliberation.drawn_bars FILE` writes them.
"""

import datetime as dt
import sys
from pathlib import Path

import numpy as np

SEED = 350172
SYMBOLS = ("QVLT", "HELIO", "NRDX", "TIN3", "PAMPA")
BETAS = np.array([1.2, 0.8, 0.6, 0.3, -0.4])
SCALES = np.array([0.014, 0.020, 0.010, 0.012, 0.017])
FIRST_PRICES = np.array([41.0, 8.5, 126.0, 22.4, 63.0])
FIRST, LAST = dt.date(2011, 1, 3), dt.date(2017, 12, 29)


def drawn_bars() -> str:
    """The bars as CSV."""
    rng = np.random.default_rng(SEED)
    days = [FIRST + dt.timedelta(days=n) for n in range((LAST - FIRST).days + 1)]
    count = len(SYMBOLS)
    price, own, common = FIRST_PRICES, np.ones(count), 1.0
    drift, shock = np.zeros(count), np.zeros(count)
    rows = ["date,symbol,open,high,low,close,volume"]
    for day in (day for day in days if day.weekday() < 5):
        factor = common * rng.standard_t(4) / np.sqrt(2)
        common = np.sqrt(0.05 + 0.10 * factor * factor + 0.85 * common**2)
        drift = 0.985 * drift + 0.03 * rng.standard_normal(count)
        shocks = own * rng.standard_t(3.5, count) / np.sqrt(3.5 / 1.5)
        returns = SCALES * (0.06 + drift * 0.8 + 0.08 * shock + 0.45 * BETAS * factor + 0.9 * shocks)
        returns = np.clip(returns, -0.25, 0.25)
        shock = shocks
        own = np.sqrt(0.06 + 0.12 * np.minimum(shocks * shocks, 12) + 0.82 * own**2)
        gap = returns * rng.uniform(0.0, 0.5, count)
        opened, closed = price * np.exp(gap), price * np.exp(returns)
        wicks = SCALES * np.abs(rng.standard_normal((2, count))) * 0.45 * np.maximum(own, 0.4)
        high = np.maximum(opened, closed) * np.exp(wicks[0])
        low = np.minimum(opened, closed) * np.exp(-wicks[1])
        volume = np.round(2e5 * np.exp(0.5 * rng.standard_normal(count)) * (1 + 18 * np.abs(returns)))
        for bar in zip(SYMBOLS, opened, high, low, closed, volume, strict=True):
            rows.append("{},{},{:.4f},{:.4f},{:.4f},{:.4f},{:.0f}".format(day, *bar))
        price = closed
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(drawn_bars())
