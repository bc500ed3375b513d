"""How often two logs of the same dates are told apart, in pairs and apart.

Run it by `python -m benchmarks.paired_logs RUNS`. Each log has 200 trades, three a week on the same days; R
is a t with three degrees of freedom at sd 1, and one log makes .2R more a trade. `apart` is Welch's t on the
two lists, as one compares logs without their dates.
"""

import sys

import numpy as np
from scipy.stats import ttest_ind

from services.statistics.paired import compare_pairs

TRADES, MORE, A_WEEK = 200, 0.2, 3
RHOS = (0.0, 0.5, 0.8)


def rates(rho: float, more: float, runs: int, seed: int = 1) -> tuple[float, float]:
    """Share of runs in which the difference is found in pairs, and apart, in either direction."""
    found = [_one(np.random.default_rng([seed, run]), rho, more, run) for run in range(runs)]
    paired, apart = np.mean(found, axis=0)
    return float(paired), float(apart)


def _one(draw: np.random.Generator, rho: float, more: float, seed: int) -> tuple[bool, bool]:
    shared, own, other = draw.standard_t(3, size=(3, TRADES)) / np.sqrt(3.0)
    first = np.sqrt(rho) * shared + np.sqrt(1.0 - rho) * own + more
    second = np.sqrt(rho) * shared + np.sqrt(1.0 - rho) * other
    starts = np.arange(0, TRADES, A_WEEK)
    blocks = np.add.reduceat(first - second, starts)
    paired = compare_pairs({"pair": lambda unit: blocks}, "quarter", seed)["pair"].answer != "unknown"
    return paired, bool(ttest_ind(first, second, equal_var=False).pvalue < 0.05)


def main(runs: int) -> None:
    """Print a row for each correlation."""
    print(f"{TRADES} trades, {runs} runs: found in pairs, apart; nothing there, in pairs, apart")
    for rho in RHOS:
        shown = [*rates(rho, MORE, runs), *rates(rho, 0.0, runs)]
        print(f"rho {rho:.1f}: " + "  ".join(f"{share:.1%}" for share in shown))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
