"""What a run gives back: the JSON document of the contract, the trades and the equity curve."""

from collections import Counter
from typing import Any

import numpy as np

from schemas.canonical import ns_to_datetime
from schemas.episode import Episode
from schemas.playbook import PlaybookVersion
from schemas.vocabulary import TickEventKind
from services.deliberation.counters import texts_document
from services.policy_loop.invariant_context import cost_bps
from services.statistics.quantiles import quantiles
from trading_core.accounting import buy_and_hold_return, exposure_share, max_drawdown, sharpe
from trading_core.bars import BarSeries
from trading_core.features.registry import resolve
from trading_core.kernel.records import REFUSALS
from trading_core.regime import FEATURES_READ
from worker.runs.contamination import Course, contamination, headline
from worker.runs.left_out import left_out
from worker.runs.why_no_trade import RunFacts, why_no_trade
from worker.session import Session, Timing


class RunResult:
    """Result of one run; `document` is what `--json` prints."""

    def __init__(self, session: Session, timing: Timing) -> None:
        self.session = session
        self._timing = timing

    @property
    def bars(self) -> BarSeries:
        """The bars that were traded: without those left out."""
        return self.session.bars

    @property
    def trades(self) -> list[Episode]:
        """Closed positions in order of exit."""
        return self.session.slow_loop.facts.episodes

    @property
    def versions(self) -> tuple[PlaybookVersion, ...]:
        """Every state that a playbook version took, in order."""
        return self.session.registry.history()

    @property
    def equity(self) -> tuple[list[int], list[float]]:
        """Close times (ns) and equity at them."""
        return self.session.bars.close_times.tolist(), self.session.engine.equity.tolist()

    @property
    def gross(self) -> list[float]:
        """Gross exposure in quote currency at every close."""
        values: list[float] = self.session.engine.gross.tolist()
        return values

    def document(self, run_id: str, journal_url: str) -> dict[str, Any]:
        """The JSON document: fractions, not percent; drawdown positive; undefined is None."""
        with np.errstate(over="ignore", invalid="ignore"):  # prices of 1e300 have no variance in float64
            return self._document(run_id, journal_url)

    def _document(self, run_id: str, journal_url: str) -> dict[str, Any]:
        session = self.session
        policy, slow = session.policy_loop.counters, session.slow_loop.counters
        seen = contamination(session.settings, self._course(), session.model_account.answered)
        return {
            "run_id": run_id,
            "config_hash": session.settings.config_hash,
            "reflection": session.settings.reflection.mode,
            "why_no_trade": why_no_trade(self._facts(run_id)),
            "data": self._data(),
            "headline": headline(seen),
            "performance": self._performance(),
            "contamination": seen,
            "ledger": session.ledger.document(),
            "tick_validation": session.tick_validation().payload(),
            "strategist": {
                "name": session.settings.policy_loop.strategist,
                "answers": dict(sorted(policy.sources.items())),
                "fallbacks": dict(sorted(policy.fallbacks.items())),
            },
            "policy_loop": policy.document(),
            "model": session.model_account.document(),
            "memory": session.memory.document(),
            "episodes": len(session.slow_loop.facts.episodes),
            "high_level": {
                "runs": slow.runs,
                "skips": dict(sorted(slow.skips.items())),
                "reports": slow.reports,
                "findings": dict(sorted(slow.findings.items())),
                "recommendations": dict(sorted(slow.recommendations.items())),
                "latency_ms": quantiles(slow.run_ms),
            },
            "judge": {
                "boundary": dict(sorted(policy.decisions.items())),
                "replans": dict(sorted(slow.replans.items())),
                "actions": dict(sorted(slow.applied.items())),
                "refused": dict(sorted(slow.refused.items())),
            },
            "plans": session.slow_loop.plans.document(),
            "deliberation": texts_document((policy.texts, slow.texts)),
            "playbooks": {"versions": session.lifecycle.counts()},
            "journal": {
                "url": journal_url,
                "events": session.journal.events,
                "head_hash": session.journal.head_hash,
            },
            "open_positions": session.open_positions(),
            "timing": self._timings(),
            "errors": policy.errors + slow.errors,
        }

    def _facts(self, run_id: str) -> RunFacts:
        session, envelope = self.session, self.session.settings.envelope
        engine, events = session.engine, session.tick_validation().events
        refused = dict(zip(REFUSALS, engine.portfolio["refused"][0].tolist(), strict=False))
        return RunFacts(
            run_id=run_id,
            traded=bool(self.trades or session.open_positions() or events.get(TickEventKind.ENTRY_FILLED)),
            timeframe=session.bars.timeframe,
            bars=dict(zip(session.bars.symbols, engine.state["own"].tolist(), strict=True)),
            needed_bars=1 + max(resolve(name).lookback for name in FEATURES_READ),
            policy=session.policy_loop.counters,
            events=events,
            refused=refused,
            entries_blocked=session.journal.counts["entries_blocked"],
            kill_switch=bool(envelope.kill_switch or engine.portfolio["kill"][0] == 1),
            directions=envelope.allowed_directions,
            allowed=envelope.allowed_playbooks,
            playbooks=tuple(version.definition for version in session.registry.reader().active()),
        )

    def _data(self) -> dict[str, Any]:
        bars = self.session.bars
        return {
            "symbols": list(bars.symbols),
            "timeframe": bars.timeframe,
            "bars": bars.bar_count,
            "start": ns_to_datetime(int(bars.times[0])).isoformat(),
            "end": ns_to_datetime(int(bars.times[-1])).isoformat(),
            "sha256": bars.sha256,
            "left_out": left_out(self.session),
        }

    def _course(self) -> Course:
        """Trades, and the equity curve with the cash one bar before the first close."""
        bars = self.session.bars
        spacing = (bars.close_times[-1] - bars.close_times[0]) // max(1, bars.shape[0] - 1)
        times = np.concatenate([[bars.close_times[0] - spacing], bars.close_times])
        curve = np.concatenate([[self.session.settings.account.cash], self.session.engine.equity])
        return Course(bars, self.trades, curve, times)

    def _performance(self) -> dict[str, Any]:
        session = self.session
        bars, engine = session.bars, session.engine
        cash = session.settings.account.cash
        course = self._course()
        curve, times = course.curve, course.times
        r = np.array([episode.r for episode in self.trades])
        cost = cost_bps(session.settings.execution) * 1e-4
        return {
            "total_return": float(curve[-1]) / cash - 1.0,
            "model_cost": session.model_account.cost,
            "net_return": (float(curve[-1]) - session.model_account.cost) / cash - 1.0,
            "buy_and_hold_return": buy_and_hold_return(bars, cost),
            "sharpe": sharpe(curve, times),
            "max_drawdown": max_drawdown(curve),
            "trades": len(self.trades),
            "win_rate": float(np.mean(r > 0.0)) if r.size else None,
            "expectancy_r": float(np.mean(r)) if r.size else None,
            "fees": float(engine.portfolio["fees"][0]),
            "exposure": exposure_share(engine.gross),
            "exit_reasons": dict(sorted(Counter(str(trade.exit_reason) for trade in self.trades).items())),
        }

    def _timings(self) -> dict[str, float | None]:
        timing = self._timing
        return {
            "compile_s": timing.compile_s,
            "engine_s": timing.engine_s,
            "policy_s": timing.policy_s,
            "slow_s": timing.slow_s,
            "total_s": timing.total_s,
            "bars_per_s": self.session.bars.bar_count / timing.engine_s if timing.engine_s > 0 else None,
        }
