# mypy: ignore-errors
"""The performance figures of given equity curves by empyrical-reloaded."""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import empyrical
import numpy as np
import pandas as pd


def figures(equity, per_year):
    """Figures of one curve; the library works on returns and is told the bars per year."""
    returns = pd.Series(np.diff(equity) / equity[:-1])
    return {
        "sharpe": float(empyrical.sharpe_ratio(returns, annualization=per_year)),
        "sortino": float(empyrical.sortino_ratio(returns, annualization=per_year)),
        "volatility": float(empyrical.annual_volatility(returns, annualization=per_year)),
        "cagr": float(empyrical.cagr(returns, annualization=per_year)),
        "calmar": float(empyrical.calmar_ratio(returns, annualization=per_year)),
        "max_drawdown": -float(empyrical.max_drawdown(returns)),
    }


def main():
    """Read the curves named on the command line; write the figures beside them."""
    source, out = map(Path, sys.argv[1:3])
    with np.load(source) as found:
        pairs = zip(found["equity"], found["per_year"], strict=True)
        answers = [figures(equity, float(per_year)) for equity, per_year in pairs]
    about = {"figures": answers, "version": version("empyrical-reloaded"), "python": sys.version.split()[0]}
    out.write_text(json.dumps(about), "utf-8")


if __name__ == "__main__":
    main()
