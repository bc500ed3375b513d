"""Which part of a run its language models may have read about, and which numbers may stand at the top.

The last day that any model in use may know divides the bars; figures before and after it stand apart, and no
headline comes from the part before. A run by rules alone has no such part: its playbooks and rules are
written by hand from general principles, never fitted to the embedded bars. A run whose questions were
anonymised has its headline whole, and says so. Nothing here decides anything.
"""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import numpy as np

from agents.model_seats import models_in_use
from schemas.canonical import datetime_to_ns
from schemas.episode import Episode
from schemas.model_table import Cutoff, cutoffs
from schemas.settings import Settings
from schemas.settings.providers import model_name
from trading_core.accounting import max_drawdown, sharpe
from trading_core.bars import BarSeries
from worker.runs.course import Course

Label = Literal["clean", "anonymised", "contaminated", "mixed", "unknown"]
WHOLE: tuple[Label, ...] = ("clean", "anonymised")


def contamination(
    settings: Settings, course: Course, answered: Collection[str] | None = None
) -> dict[str, Any]:
    """The `contamination` part of a run's document; a model that never `answered` put nothing into it."""
    questions = tuple(dict.fromkeys(model_name(word).name for word in models_in_use(settings)))
    spoke = questions if answered is None else tuple(model for model in questions if model in answered)
    models = cutoffs(spoke, settings.llm.knowledge_cutoff)
    known = [request.date for request in models if request.date is not None]
    row, label = _divide(models, course.bars)
    if settings.llm.anonymise and label != "clean":
        row, label = 0, "anonymised"  # they may have read about the window, and were not told that it is this
    before = int(course.bars.present[:row].sum())
    return {
        "label": label,
        "reason": _reason(label, models),
        "cutoff": max(known).isoformat() if known and len(known) == len(models) else None,
        "models": [
            {
                "model": request.model,
                "cutoff": None if request.date is None else request.date.isoformat(),
                "kind": request.kind,
                "source": request.source,
            }
            for request in models
        ],
        "bars_before": before,
        "bars_after": course.bars.bar_count - before,
        "before": _figures(course, 0, row),
        "after": _figures(course, row, course.bars.shape[0]),
    }


def headline(found: dict[str, Any]) -> dict[str, Any] | None:
    """The figures that may stand at the top; None when the models may have read about all of the window."""
    if found["label"] in ("contaminated", "unknown"):
        return None
    figures: dict[str, Any] = found["after"]
    return {"window": "whole" if found["label"] in WHOLE else "after_cutoff"} | figures


def _divide(models: Sequence[Cutoff], bars: BarSeries) -> tuple[int, Label]:
    """First row after the cutoff, and the label; a bar belongs to the side on which it closes."""
    if not models:
        return 0, "clean"
    days = [request.date for request in models if request.date is not None]
    if len(days) < len(models):
        return bars.shape[0], "unknown"
    over = datetime.combine(max(days) + timedelta(days=1), datetime.min.time(), tzinfo=UTC)
    row = int(np.searchsorted(bars.close_times, datetime_to_ns(over), side="right"))
    if row == 0:
        return row, "clean"
    return row, "contaminated" if row == bars.shape[0] else "mixed"


def _reason(label: Label, models: Sequence[Cutoff]) -> str | None:
    """Why there is no headline, why it is not the whole run or is it all the same; None for a clean run."""
    if label == "clean":
        return None
    if label == "anonymised":
        return "no question named a symbol, a day or a price (llm.anonymise)"
    if label == "unknown":
        names = ", ".join(request.model for request in models if request.date is None)
        return f"no knowledge cutoff is known for {names}: set llm.knowledge_cutoff"
    last = max(
        (request for request in models if request.date is not None),
        key=lambda model: (str(model.date), model.model),
    )
    text = f"{last.model} may know what happened until {last.date} ({last.kind})"
    return f"{text}: {'all' if label == 'contaminated' else 'part'} of the window lies before"


def _figures(course: Course, first: int, end: int) -> dict[str, Any]:
    """Figures of rows first..end; a trade belongs to the part in which it was entered."""
    trades = [trade for trade in course.trades if first <= _row(course.bars, trade) < end]
    r = np.array([trade.r for trade in trades])
    curve, times = course.curve[first : end + 1], course.times[first : end + 1]
    empty = end <= first
    return {
        "total_return": None if empty else float(curve[-1] / curve[0]) - 1.0,
        "sharpe": None if empty else sharpe(curve, times),
        "max_drawdown": None if empty else max_drawdown(curve),
        "trades": len(trades),
        "win_rate": float(np.mean(r > 0.0)) if r.size else None,
        "expectancy_r": float(np.mean(r)) if r.size else None,
    }


def _row(bars: BarSeries, trade: Episode) -> int:
    return int(np.searchsorted(bars.times, trade.entry_label))
