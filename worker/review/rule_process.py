"""The process in which a rule is tried: a line with the request, then one that lets it trade.

Each has one line as its answer. Nothing but answers reaches its standard output.
"""

import json
import os
import sys
from typing import IO, Any

import numpy as np

from schemas.errors import ConfigError, RuleError
from schemas.settings import Settings
from trading_core.bars import BarSeries
from trading_core.research.simulation import SimulationResult, simulate
from trading_core.rules.columns import rule_of_kind
from worker.feeds.selected_bars import load_bars


def main() -> None:
    """Answer the two lines."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    request = json.loads(sys.stdin.readline())
    settings = Settings.model_validate(request["settings"])
    bars = known_bars(load_bars(settings), request)
    if bars is None:
        _say(answers, {"broke": True})
        return
    try:
        rule_of_kind(request["rule"]["entry"], "boolean")
        _say(answers, describe_bars(bars))
        sys.stdin.readline()
        _say(answers, trade_rule(bars, request["rule"], settings))
    except (RuleError, ConfigError) as error:
        _say(answers, {"refusal": str(error)})


def known_bars(bars: BarSeries, request: dict[str, Any]) -> BarSeries | None:
    """The newest bars that had closed by the moment; None where none had, or the run had others."""
    if bars.sha256 != request["sha256"]:
        return None
    count = int(np.searchsorted(bars.close_times, request["until"], side="right"))
    if count == 0:
        return None
    symbol = request["rule"]["symbol"]
    chosen = bars.select(None if symbol is None else (symbol,), end_ns=int(bars.times[count - 1]))
    rows = max(1, int(request["most"]) // len(chosen.symbols))
    return chosen if len(chosen.times) <= rows else chosen.select(start_ns=int(chosen.times[-rows]))


def describe_bars(bars: BarSeries) -> dict[str, Any]:
    """What the ledger of trials keeps of the bars."""
    return {
        "data": bars.select(end_ns=int(bars.times[0])).sha256,
        "timeframe": bars.timeframe,
        "symbols": list(bars.symbols),
        "first_bar": int(bars.times[0]),
        "last_bar": int(bars.times[-1]),
        "bars": bars.bar_count,
    }


def trade_rule(bars: BarSeries, rule: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """What the rule traded, after the run's fees and slippage."""
    terms = {name: value for name, value in rule.items() if name != "symbol"}
    costs = {name: getattr(settings.execution, name) for name in ("fee_bps", "slippage_bps")}
    return figures(simulate(bars, **terms, **costs))


def figures(done: SimulationResult) -> dict[str, Any]:
    """Counts and means of the trades; means are None without one."""
    trades = done.trades
    r = trades["r"].to_numpy()
    reasons = trades["exit_reason"].value_counts().to_dict()
    return {
        "trades": len(r),
        "win_rate": float((r > 0).mean()) if len(r) else None,
        "mean_r": round(float(r.mean()), 9) if len(r) else None,
        "total_r": round(float(r.sum()), 9) if len(r) else None,
        "exit_reasons": {str(reason): int(count) for reason, count in sorted(reasons.items())},
        "refused": done.refused,
    }


def _say(answers: IO[str], answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer, allow_nan=False) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
