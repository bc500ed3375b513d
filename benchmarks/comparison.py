"""Compares two trade lists trade by trade: which trades both have, and what the others look like."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

KEYS = ["symbol", "entry_bar"]
PRICES = ["entry_price", "exit_price"]


@dataclass(frozen=True)
class Comparison:
    """Counts of two lists, and the rows that are not in both.

    Attributes:
        ours: trades of the first list.
        theirs: trades of the second.
        equal: trades with the same symbol, bars and prices in both.
        differing: one row per trade that is not: our columns, and theirs with the suffix `_theirs`; the
            columns of a list without such a trade are NaN.
    """

    ours: int
    theirs: int
    equal: int
    differing: pd.DataFrame

    @property
    def share(self) -> float:
        """Equal trades over those of the longer list; 1 when both are empty."""
        longer = max(self.ours, self.theirs)
        return self.equal / longer if longer else 1.0


def compare(ours: pd.DataFrame, theirs: pd.DataFrame, relative: float = 1e-9) -> Comparison:
    """Match trades by symbol and entry bar; prices may differ by `relative` of their size."""
    both = ours.merge(theirs, how="outer", on=KEYS, suffixes=("", "_theirs"), indicator=True)
    same = (both["_merge"] == "both") & (both["exit_bar"] == both["exit_bar_theirs"])
    for name in PRICES:
        gap = (both[name] - both[f"{name}_theirs"]).abs()
        same &= gap <= relative * both[name].abs()
    differing = both[~same].drop(columns="_merge").reset_index(drop=True)
    return Comparison(len(ours), len(theirs), int(np.count_nonzero(same)), differing)
