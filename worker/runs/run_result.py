"""What a run gives back: the JSON document of the contract, the trades and the equity curve."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from agents.judge_reply import count_opinions
from schemas.canonical import ns_to_datetime
from schemas.episode import Episode
from schemas.playbook import PlaybookVersion
from schemas.settings import ExecutionSettings
from schemas.tick_validation import TickValidationResult
from schemas.vocabulary import TickEventKind
from services.deliberation.counters import texts_document
from services.feeds.port import LEAVES_OUT, FeedAnomalyKind
from services.playbooks.rendering import lookback_of
from services.policy_loop.invariant_context import cost_bps
from services.statistics.blocks import Floats
from trading_core.accounting import (
    FloatArray,
    cagr,
    calmar,
    drawdown_days,
    exposed_curve,
    exposure_share,
    hold_curve,
    max_drawdown,
    sharpe,
    sortino,
    volatility,
)
from trading_core.bars import BarSeries
from trading_core.features.registry import resolve
from trading_core.regime import FEATURES_READ
from trading_core.robust_errors import market_line, sharpe_interval
from trading_core.trade_figures import (
    GROUPS,
    average_hold_bars,
    break_even_cost_bps,
    expectancy_r,
    group_trades,
    payoff,
    profit_factor,
    turnover,
    win_rate,
)
from worker.feeds.doubts import doubt_documents
from worker.runs.contamination import contamination, headline
from worker.runs.course import Course, stale_positions
from worker.runs.signals import SignalAccount
from worker.runs.why_no_trade import RunCounts, why_no_trade
from worker.session import Session, Timing


def performance(
    course: Course,
    gross: FloatArray,
    execution: ExecutionSettings,
    *,
    books: Any,
    model_cost: float,
    risk: float | None,
) -> dict[str, Any]:
    """Figures of a finished run.

    `gross` (T,) is exposure in quote currency at each close, `books` the portfolio record of the engine at
    its end, `risk` the share of equity that a trade may lose at its stop.
    """
    trades, curve, times = course.trades, course.curve, course.times
    cash, share = float(curve[0]), _mean_exposure(gross, curve[1:])
    hold = hold_curve(course.bars, cash, cost_bps(execution) * 1e-4)
    exposed = exposed_curve(hold, share or 0.0)
    return {
        "total_return": float(curve[-1]) / cash - 1.0,
        "model_cost": model_cost,
        "net_return": (float(curve[-1]) - model_cost) / cash - 1.0,
        "buy_and_hold_return": float(hold[-1]) / cash - 1.0,
        "buy_and_hold_sharpe": _finite(sharpe(hold, times)),
        "buy_and_hold_drawdown": _finite(max_drawdown(hold)),
        "exposed_hold_return": _finite(float(exposed[-1]) / cash - 1.0),
        "exposed_hold_drawdown": _finite(max_drawdown(exposed)),
        "sharpe": sharpe(curve, times),
        "max_drawdown": max_drawdown(curve),
        "trades": len(trades),
        "win_rate": win_rate(trades),
        "expectancy_r": expectancy_r(trades),
        "fees": float(books["fees"]),
        "exposure": exposure_share(gross),
        "mean_exposure": share,
        "risk_per_trade": risk,
        "exit_reasons": dict(sorted(Counter(str(trade.exit_reason) for trade in trades).items())),
        **_of_curve(course, hold),
        "profit_factor": profit_factor(trades),
        "payoff": payoff(trades),
        "average_hold_bars": average_hold_bars(trades),
        "best_r": max((trade.r for trade in trades), default=None),
        "worst_r": min((trade.r for trade in trades), default=None),
        "turnover": _finite(turnover(trades, curve, times)),
        "break_even_cost_bps": break_even_cost_bps(
            trades, cost_bps(execution) - execution.fee_bps, float(books["carry"])
        ),
        **{name: group_trades(trades, name_of) for name, name_of in GROUPS.items()},
    }


def _mean_exposure(gross: FloatArray, equity: FloatArray) -> float | None:
    there = equity > 0.0
    return _finite(float(np.mean(gross[there] / equity[there]))) if there.any() else None


def _of_curve(course: Course, hold: FloatArray) -> dict[str, Any]:
    curve, times = course.curve, course.times
    interval = sharpe_interval(curve, times)
    line = market_line(curve, hold, times)
    return {
        "cagr": cagr(curve, times),
        "volatility": _finite(volatility(curve, times)),
        "sortino": _finite(sortino(curve, times)),
        "calmar": _finite(calmar(curve, times)),
        "sharpe_interval": None if interval is None else list(interval),
        "drawdown_days": drawdown_days(curve, times),
        "beta": None if line is None else _finite(line.beta),
        "alpha": None if line is None else _finite(line.alpha),
        "alpha_t": None if line is None else _finite(line.alpha_t),
    }


def _finite(value: float | None) -> float | None:
    """A figure of prices that overflow says nothing."""
    return value if value is not None and isfinite(value) else None


class RunResult:
    """Result of one run; `document` is what `--json` prints."""

    def __init__(self, session: Session, timing: Timing) -> None:
        self.session = session
        self._timing = timing

    @cached_property
    def bars(self) -> BarSeries:
        """The bars that were traded: without those left out, and those that a run did not come to."""
        bars, done = self.session.bars, self.session.engine.t
        return bars if done >= bars.shape[0] else bars.select(end_ns=int(bars.times[done - 1]))

    @property
    def trades(self) -> list[Episode]:
        """Closed positions in order of exit."""
        return self.session.slow_loop.facts.episodes

    @property
    def versions(self) -> tuple[PlaybookVersion, ...]:
        """Every state that a playbook version took, in order."""
        return self.session.books.registry.history()

    @property
    def equity(self) -> tuple[list[int], list[float]]:
        """Close times (ns) and equity at them."""
        return self.bars.close_times.tolist(), self._so_far(self.session.engine.equity).tolist()

    @property
    def gross(self) -> list[float]:
        """Gross exposure in quote currency at every close."""
        values: list[float] = self._so_far(self.session.engine.gross).tolist()
        return values

    @property
    def stale_positions(self) -> list[str]:
        """Open positions whose symbols had no bar in the block of the last one, and what waits for them."""
        bars, state = self.bars, self.session.engine.state
        entered = {}
        for s in np.flatnonzero(state["direction"]).tolist():
            held = self.session.slow_loop.facts.run_state.held[bars.symbols[s]]
            entered[held.symbol] = held.playbook_id, str(held.side), int(bars.times[state["entry_t"][s]])
        return stale_positions(bars, self.session.settings, entered)

    def _so_far(self, values: Floats) -> Floats:
        return values[: self.bars.shape[0]]

    def document(self, run_id: str, journal_url: str) -> dict[str, Any]:
        """The JSON document: fractions, not percent; drawdown positive; undefined is None."""
        with np.errstate(over="ignore", invalid="ignore"):  # prices of 1e300 have no variance in float64
            return self._document(run_id, journal_url)

    def _document(self, run_id: str, journal_url: str) -> dict[str, Any]:
        session = self.session
        policy, slow = session.policy_loop.counters, session.slow_loop.counters
        seen = contamination(session.settings, self.course, session.models.account.answered)
        return {
            "run_id": run_id,
            "config_hash": session.settings.config_hash,
            "reflection": session.settings.reflection.mode,
            "ended_early": session.ended_early,
            "why_no_trade": why_no_trade(self._facts(run_id)),
            "signals": self.signals,
            "data": self._data(),
            "headline": headline(seen),
            "performance": self._performance(),
            "contamination": seen,
            "ledger": session.ledger.document(),
            "tick_validation": tick_validation(session).payload(),
            "strategist": {"name": session.settings.policy_loop.strategist, **policy.strategist()},
            "policy_loop": policy.document(),
            "model": session.models.account.document(),
            "memory": session.experience.memory.document(),
            "episodes": len(session.slow_loop.facts.episodes),
            "high_level": slow.document() | {"on_trial": list(session.slow_loop.on_trial())},
            "judge": {
                "boundary": dict(sorted(policy.decisions.items())),
                "replans": dict(sorted(slow.replans.items())),
                "actions": dict(sorted(slow.applied.items())),
                "refused": dict(sorted(slow.refused.items())),
                **count_opinions(slow.opinions),
            },
            "plans": session.slow_loop.plans.document(),
            "deliberation": texts_document((policy.texts, slow.texts)),
            "playbooks": {"versions": session.books.lifecycle.counts()},
            "journal": {
                "url": journal_url,
                "events": session.journal.events,
                "head_hash": session.journal.head_hash,
            },
            "open_positions": session.open_positions(),
            "timing": self._timings(),
            "errors": policy.errors + slow.errors,
        }

    @cached_property
    def signals(self) -> dict[str, Any]:
        """Closes at which entry rules were true, and what became of each."""
        session = self.session
        log, done = session.policy_loop.signals, session.engine.t
        return SignalAccount(session.settings, session.market, session.books.registry, log, done).document()

    def _facts(self, run_id: str) -> RunCounts:
        session, events = self.session, tick_validation(self.session).events
        unasking = session.books.reader.eligible(None, session.bars.timeframe)
        longest = max(resolve(name).lookback for name in FEATURES_READ)
        policy, parts = session.policy_loop.counters, self.signals["playbooks"]
        if session.has_own_strategist:
            parts = [part for part in parts if part["playbook"] in policy.proposed]
        return RunCounts(
            run_id=run_id,
            traded=bool(self.trades or session.open_positions() or events.get(TickEventKind.ENTRY_FILLED)),
            bars=dict(zip(session.bars.symbols, session.engine.state["own"].tolist(), strict=True)),
            needed_bars=1 + min([longest, *(lookback_of(book, side) for book, side in unasking)]),
            signals={**self.signals, "playbooks": parts},
            policy=policy,
            events=events,
            has_own_strategist=session.has_own_strategist,
            entries_blocked=session.journal.counts["entries_blocked"],
        )

    def _data(self) -> dict[str, Any]:
        bars, data = self.bars, self.session.settings.data
        sifted = self.session.anomalies[FeedAnomalyKind.IMPLAUSIBLE] > 0
        return {
            "symbols": list(bars.symbols),
            "timeframe": bars.timeframe,
            "bars": bars.bar_count,
            "start": ns_to_datetime(int(bars.times[0])).isoformat(),
            "end": ns_to_datetime(int(bars.times[-1])).isoformat(),
            "sha256": self.session.bars.sha256,
            "left_out": count_left_out(self.session),
            "notes": list(bars.notes),
            "doubts": doubt_documents(bars, data, sifted=sifted),
        }

    @property
    def course(self) -> Course:
        """Trades, and the equity curve with the cash one bar before the first close."""
        equity, cash = self._so_far(self.session.engine.equity), self.session.settings.account.cash
        return Course.of_closes(self.bars, self.trades, equity, cash)

    def _performance(self) -> dict[str, Any]:
        session, envelope = self.session, self.session.settings.envelope
        questions = [version.definition.risk_fraction for version in self.versions]
        risks = [share if share <= envelope.risk_cap else envelope.risk_fraction for share in questions]
        return performance(
            self.course,
            self._so_far(session.engine.gross),
            session.settings.execution,
            books=session.engine.portfolio[0],
            model_cost=session.models.account.cost,
            risk=max(risks, default=None),
        )

    def _timings(self) -> dict[str, float | None]:
        engine_s = self._timing.engine_s
        return asdict(self._timing) | {"bars_per_s": self.bars.bar_count / engine_s if engine_s > 0 else None}


def count_left_out(session: Session) -> dict[str, int]:
    """Reasons with counts; a reason that did not occur is left out.

    `absent` are holes within the bars of a symbol, at labels where another has a bar.
    """
    found = {str(kind): session.anomalies[kind] for kind in LEAVES_OUT if session.anomalies[kind]}
    holes = _holes(session.bars, session.doubted)
    return found | ({"absent": holes} if holes else {})


def _holes(bars: BarSeries, doubted: Sequence[tuple[int, str]]) -> int:
    """Holes that hold no bar in doubt: that one is counted as such."""
    holes = np.zeros(bars.shape, dtype=np.bool_)
    for s in range(len(bars.symbols)):
        rows = np.flatnonzero(bars.present[:, s])
        if rows.size:
            holes[rows[0] : rows[-1] + 1, s] = ~bars.present[rows[0] : rows[-1] + 1, s]
    for label, symbol in doubted:
        row = int(np.searchsorted(bars.times, label))
        if symbol in bars.symbols and row < bars.shape[0] and bars.times[row] == label:
            holes[row, bars.symbols.index(symbol)] = False
    return int(holes.sum())


def tick_validation(session: Session) -> TickValidationResult:
    """Counters of the tick path; the guard's three are zero or something tried."""
    counts, attempts = session.journal.counts, session.guard.attempts
    return TickValidationResult(
        bars_validated=session.bars_validated,
        events={str(kind): counts[kind] for kind in sorted(TickEventKind) if counts[kind]},
        llm_calls=attempts["llm_calls"],
        memory_reads=attempts["memory_reads"],
        policy_writes=attempts["policy_writes"],
    )
