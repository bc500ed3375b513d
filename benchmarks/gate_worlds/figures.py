"""Rates of rows with their standard errors, against their targets, as one document."""

from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

import numpy as np
from scipy.special import stdtrit

from benchmarks.gate_worlds.runs import Columns
from benchmarks.gate_worlds.table import FIVE_YEARS, NULL, Row, Target

QUANTITIES = frozenset({"blocks", "blocks to the detector", "half-width", "blocks after", "blocks until"})
DIFFERENCES = frozenset({"log return", "sharpe", "R", "fault"})  # of one run from another
SHARE = "share"
LEVEL = 0.95
ALLOWED_ERRORS = 2.0
DIGITS = 6


def figures_of(row: Row, columns: Columns) -> dict[str, Any]:
    """A row's rates and medians; a rate holds within two standard errors of its target."""
    targets = {target.rate: target for target in row.targets}
    rates, medians, differences = {}, {}, {}
    for name, column in columns.items():
        known = [value for value in column if value is not None]
        if name in QUANTITIES:
            medians[name] = round(median(known), DIGITS) if known else None
        elif name in DIFFERENCES:
            differences[name] = _difference(known, targets.get(name))
        else:
            rates[name] = _rate(known, targets.get(name))
    if SHARE in targets:
        differences[SHARE] = _share(differences["log return"], differences["fault"], targets[SHARE])
    return {
        "group": row.group,
        "measure": row.measure,
        "world": row.world.label,
        "held_out": row.held_out,
        "parameters": asdict(row.world),
        "runs": len(next(iter(columns.values()))),
        "rates": rates,
        "medians": medians,
        "differences": differences,
    }


def _rate(known: Sequence[float], target: Target | None) -> dict[str, Any]:
    n = len(known)
    rate = float(np.mean(known)) if n else None
    error = None if rate is None else float(np.sqrt(rate * (1.0 - rate) / n))
    found: dict[str, Any] = {"rate": _short(rate), "se": _short(error), "n": n}
    if target is not None:
        found |= {"target": target.bound, "at_least": target.at_least, "holds": _holds(rate, error, target)}
    return found


def _difference(known: Sequence[float], target: Target | None) -> dict[str, Any]:
    """Mean over runs and its interval by Student's t; a target has to lie below all of it."""
    n = len(known)
    found: dict[str, Any] = dict.fromkeys(("mean", "lower", "upper")) | {"n": n}
    if n:
        found["mean"] = _short(float(np.mean(known)))
    if n > 1:
        reach = float(stdtrit(n - 1, 0.5 + LEVEL / 2.0) * np.std(known, ddof=1) / np.sqrt(n))
        mean = float(np.mean(known))
        found |= {"lower": _short(mean - reach), "upper": _short(mean + reach)}
    if target is not None:
        holds = None if found["lower"] is None else bool(found["lower"] > target.bound)
        found |= {"target": target.bound, "at_least": True, "holds": holds}
    return found


def _share(gained: dict[str, Any], lost: dict[str, Any], target: Target) -> dict[str, Any]:
    """How much of what the fault costs the slow loop has won back, over all runs."""
    known = gained["mean"] is not None and bool(lost["mean"])
    share = _short(gained["mean"] / lost["mean"]) if known else None
    holds = None if share is None else share >= target.bound
    found = {"mean": share, "lower": None, "upper": None, "n": gained["n"]}
    return found | {"target": target.bound, "at_least": True, "holds": holds}


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
        "broken": [_name_row(row, name) for row in figures for name in broken(row)],
        "targets": sum(
            "target" in held_figure for row in figures for held_figure in held_figures(row).values()
        ),
        "rows": figures,
    }


def pool_documents(documents: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One document of the same rows with several seeds: rates over all their runs, medians of the medians."""
    rows = [_pool_rows(same) for same in zip(*(document["rows"] for document in documents), strict=True)]
    return documents[0] | {
        "runs": sum(document["runs"] for document in documents),
        "seeds": [document["seed"] for document in documents],
        "worst": _worst(rows),
        "broken": [_name_row(row, name) for row in rows for name in broken(row)],
        "rows": rows,
    }


def _pool_rows(same: Sequence[dict[str, Any]]) -> dict[str, Any]:
    first = same[0]
    medians = {name: [row["medians"][name] for row in same] for name in first["medians"]}
    return first | {
        "runs": sum(row["runs"] for row in same),
        "rates": {name: _pool_rates([row["rates"][name] for row in same]) for name in first["rates"]},
        "medians": {
            name: median([value for value in values if value is not None] or [0.0]) if any(values) else None
            for name, values in medians.items()
        },
    }


def _pool_rates(same: Sequence[dict[str, Any]]) -> dict[str, Any]:
    n = sum(rate["n"] for rate in same)
    share = sum(rate["rate"] * rate["n"] for rate in same if rate["n"]) / n if n else None
    error = None if share is None else float(np.sqrt(share * (1.0 - share) / n))
    pooled = same[0] | {"rate": _short(share), "se": _short(error), "n": n}
    if "target" in pooled:
        target = Target("", pooled["target"], at_least=pooled["at_least"])
        pooled["holds"] = _holds(share, error, target)
    return pooled


def broken(row: dict[str, Any]) -> list[str]:
    """Rates of a row that miss their target."""
    return [name for name, held_figure in held_figures(row).items() if held_figure.get("holds") is False]


def held_figures(row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The figures of a row that may have a target."""
    return {**row["rates"], **row["differences"]}


def _name_row(row: dict[str, Any], name: str) -> dict[str, Any]:
    return {"group": row["group"], "world": row["world"], "figure": name, **held_figures(row)[name]}


def _worst(figures: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """The world whose runs are flagged falsely most often, of those in which nothing is to be found."""
    nulls = [row for row in figures if row["group"] in (NULL, FIVE_YEARS)]
    if not nulls:
        return None
    return _name_row(max(nulls, key=lambda row: row["rates"]["any"]["rate"]), "any")
