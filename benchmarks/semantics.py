"""How much each assumption about fills changes: the table of docs/explanation/other-engines.md.

One seeded walk, the one strategy, the defaults of `simulate`; then one setting at a time. No timing in here:
the same table comes out on every machine.
"""

import sys
from functools import cache

import pandas as pd

from benchmarks.comparison import compare
from benchmarks.crossing import Switches, simulate_trades
from benchmarks.walks import walk
from tools.docs_pages import table
from trading_core.bars import BarSeries

SEED, BARS = 1, 100_000
CASH: Switches = {"cash": 1e9}
ALTERNATIVES: tuple[Switches, ...] = (
    {"fill": "close"},
    {"level_base": "fill"},
    {"entry_bar_exits": False},
    {"both_hit": "target"},
    {"both_hit": "ohlc"},
    {"both_hit": "near"},
    {"both_hit": "color"},
    {"gap": "level"},
    {"time_exit": "after_stops"},
    {"time_exit": "close"},
    {"reentry": False},
    {"fee_rounding": 0.01},
    {"maker_fee_bps": 2.0},
)
HEAD = ("setting", "trades", "other bars or prices", "other profit", "profit of all trades")


def settings_table() -> str:
    """One line an alternative, the defaults first."""
    base = _trades(frozenset())
    title = f"defaults ({BARS:,} bars, seed {SEED})"
    lines: list[tuple[str, ...]] = [(title, f"{len(base):,}", "", "", f"{base['pnl'].sum():.2f}")]
    lines += [_line(base, switches) for switches in ALTERNATIVES]
    return table(HEAD, lines)


@cache
def _bars() -> BarSeries:
    return walk(SEED, BARS)


@cache
def _trades(switches: frozenset[tuple[str, object]]) -> pd.DataFrame:
    return simulate_trades(_bars(), {**CASH, **dict(switches)})


def _line(base: pd.DataFrame, switches: Switches) -> tuple[str, ...]:
    found = _trades(frozenset(switches.items()))
    moved = compare(base, found, relative=1e-9).differing
    both = base.merge(found, on=["symbol", "entry_bar"], suffixes=("", "_other"))
    unequal = (both["pnl"] - both["pnl_other"]).abs() > 1e-9
    return (
        ", ".join(f"`{name}={value!r}`" for name, value in switches.items()),
        f"{len(found):,}",
        f"{len(moved):,}",
        f"{int(unequal.sum()) + len(base) + len(found) - 2 * len(both):,}",
        f"{found['pnl'].sum():.2f}",
    )


if __name__ == "__main__":
    sys.stdout.write(settings_table() + "\n")
