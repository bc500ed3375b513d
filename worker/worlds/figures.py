"""Rates of rows with their standard errors, against their targets: the document of `thinktwice worlds`."""

from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

import numpy as np

from worker.worlds.runs import Columns
from worker.worlds.table import FIVE_YEARS, NULL, Row, Target

QUANTITIES = frozenset({"blocks", "blocks to the detector", "half-width"})
ALLOWED_ERRORS = 2.0
DIGITS = 6


def figures_of(row: Row, columns: Columns) -> dict[str, Any]:
    """A row's rates and medians; a rate holds within two standard errors of its target."""
    targets = {target.rate: target for target in row.targets}
    rates, medians = {}, {}
    for name, column in columns.items():
        known = [value for value in column if value is not None]
        if name in QUANTITIES:
            medians[name] = round(median(known), DIGITS) if known else None
        else:
            rates[name] = _rate(known, targets.get(name))
    return {
        "group": row.group,
        "measure": row.measure,
        "world": row.world.label,
        "held_out": row.held_out,
        "parameters": asdict(row.world),
        "runs": len(next(iter(columns.values()))),
        "rates": rates,
        "medians": medians,
    }


def _rate(known: Sequence[float], target: Target | None) -> dict[str, Any]:
    n = len(known)
    rate = float(np.mean(known)) if n else None
    error = None if rate is None else float(np.sqrt(rate * (1.0 - rate) / n))
    found: dict[str, Any] = {"rate": _short(rate), "se": _short(error), "n": n}
    if target is not None:
        found |= {"target": target.bound, "at_least": target.at_least, "holds": _holds(rate, error, target)}
    return found


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, DIGITS)


def _holds(rate: float | None, error: float | None, target: Target) -> bool | None:
    if rate is None or error is None:
        return None
    reach = ALLOWED_ERRORS * error + 10.0**-DIGITS
    return rate >= target.bound - reach if target.at_least else rate <= target.bound + reach


def document_of(
    rows: Sequence[Row], found: Sequence[Columns], runs: int, seed: int, gate: str
) -> dict[str, Any]:
    """Everything, the worst first: the null world that is flagged most, and targets that do not hold."""
    figures = [figures_of(row, columns) for row, columns in zip(rows, found, strict=True)]
    return {
        "runs": runs,
        "seed": seed,
        "gate": gate,
        "worst": _worst(figures),
        "broken": [_named(row, name) for row in figures for name in broken(row)],
        "targets": sum(1 for row in figures for rate in row["rates"].values() if "target" in rate),
        "rows": figures,
    }


def broken(row: dict[str, Any]) -> list[str]:
    """Rates of a row that miss their target."""
    return [name for name, rate in row["rates"].items() if rate.get("holds") is False]


def _named(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {"group": row["group"], "world": row["world"], "rate": name, **row["rates"][name]}


def _worst(figures: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The world whose runs are flagged falsely most often, of those in which nothing is to be found."""
    nulls = [row for row in figures if row["group"] in (NULL, FIVE_YEARS)]
    if not nulls:
        return None
    return _named(max(nulls, key=lambda row: row["rates"]["any"]["rate"]), "any")
