"""Calibration of stated confidence as plain data, and in sentences what its figures mean."""

from dataclasses import asdict
from typing import Any

from services.statistics.calibration import BEYOND_CHANCE, MINIMUM_FOR_ECE, Calibration
from worker.pages.figures import percent

FIGURES = ("brier", "uncertainty", "resolution", "reliability", "within_bin")
ERRORS = ("ece", "ece_by_chance", "ece_by_chance_p95")


def source_of(name: str, found: Calibration | None) -> dict[str, Any]:
    """The JSON of one source; every figure of a source without labels is null."""
    if found is None:
        nothing = dict.fromkeys(("mean_forecast", "base_rate", *FIGURES, *ERRORS))
        return {"name": name, "n": 0, **nothing, "bins": []}
    errors = (
        (None, None, None)
        if found.error is None
        else (found.error.ece, found.error.by_chance, found.error.by_chance_p95)
    )
    return {
        "name": name,
        "n": found.n,
        "mean_forecast": found.mean_forecast,
        "base_rate": found.base_rate,
        **{figure: getattr(found, figure) for figure in FIGURES},
        **dict(zip(ERRORS, errors, strict=True)),
        "bins": [asdict(interval) for interval in found.bins],
    }


def meaning(found: Calibration | None) -> str:
    """What the figures say, with the figures."""
    if found is None:
        return "no label yet."
    return " ".join((_skill(found), _leaning(found), _error(found)))


def _skill(found: Calibration) -> str:
    if found.uncertainty == 0.0:
        return f"Nothing can be told apart: all {found.n:,} came out alike."
    against = (
        f"Brier {found.brier:.4f} against {found.uncertainty:.4f} of whoever says "
        f"{percent(found.base_rate)} every time"
    )
    if found.brier >= found.uncertainty:
        return f"No skill: {against}."
    if found.association < BEYOND_CHANCE:
        return f"No skill beyond chance: {against}."
    return f"Some skill: {against}."


def _leaning(found: Calibration) -> str:
    text = f"{percent(found.mean_forecast)} stated on average, {percent(found.base_rate)} came true"
    if abs(found.excess) < BEYOND_CHANCE:
        return f"Neither over- nor underconfident beyond chance: {text}."
    return f"{'Overconfident' if found.excess > 0 else 'Underconfident'}: {text}."


def _error(found: Calibration) -> str:
    error = found.error
    if error is None:
        return f"No calibration error below {MINIMUM_FOR_ECE} labels: chance alone would make it large."
    beyond = "beyond" if error.ece > error.by_chance_p95 else "within"
    return (
        f"Calibration error {error.ece:.3f}, {beyond} chance: a calibrated forecaster shows "
        f"{error.by_chance:.3f} on average, below {error.by_chance_p95:.3f} in 95 of 100 draws."
    )
