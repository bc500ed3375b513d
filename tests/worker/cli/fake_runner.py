"""A runner that takes the place of the backtest: a few rows a bar, decided by the bars and the seed alone."""

from collections.abc import Callable
from typing import Any

from schemas.errors import DataError
from schemas.settings import Settings
from schemas.trials import NO_TRIALS
from services.journal.writer import JournalWriter
from tests.services.high_level.builders import episode, playbook
from trading_core.bars import BarSeries
from worker.models import NO_OVERRIDES, Overrides
from worker.runs.progress import Progress
from worker.runs.trials import RunTrial

REPORT_ID = "ab" * 8
REPORT = {
    "window_start": 0, "window_end": 86400000000000, "n_episodes": 21, "known_at": 86400000000000,
    "recommended_action": "hold", "insufficient_sample": True, "sections": [],
    "narrative": "Nothing to change.",
    "clusters": [
        {
            "playbook_id": "trend_pullback", "regime": None, "timeframe": None, "n": 21, "counted": 21,
            "blocks": 9, "mean_r": 0.1, "reference_r": 0.0, "lower_r": -0.2, "upper_r": 0.4, "e_value": 1.5,
            "smallest_detectable_r": 0.6, "grade": "count_only", "strongest_action": "hold",
            "reason": "reference_not_excluded: 21 trades", "family_id": "f" * 16, "family_size": 5,
        },
    ],
    "regime_cluster_summary": [], "untraded": {}, "grid_trials": [], "shadow_trials": [], "excluded": {},
    "request_hash": "0" * 64, "prompt_hash": "1" * 64, "meta": {"tier": "deterministic"},
    "recommendations": [], "drift_findings": ["volume | drifts"], "expectation_misses": [],
    "failure_modes": {"chop": 2}, "deferred_seen": [],
}  # fmt: skip
FIGURES = {
    "total_return": 0.123, "sharpe": None, "max_drawdown": 0.02, "trades": 1, "win_rate": 1.0,
    "expectancy_r": 0.97,
}  # fmt: skip
VERDICT = {"decision": "hold", "reason": "monitoring only", "actions": [], "refused": []}
GROUP = {
    "trades": 1, "win_rate": 1.0, "expectancy_r": 0.97, "total_r": 0.97, "pnl": 97.0, "profit_factor": None,
    "average_hold_bars": 5.0,
}  # fmt: skip
EPISODE = episode(
    playbook("trend_pullback"), r=0.97, symbol="AAPL", timeframe="1d", regime="up/low", entry_label=0,
    exit_label=86_400_000_000_000, known_at=172_800_000_000_000, pnl=2.9, mae_r=-0.2, mfe_r=1.1, hold_bars=1,
)  # fmt: skip


class FakeOutcome:
    """What the fake gives back."""

    stale_positions = ()

    def __init__(self, settings: Settings, bars: BarSeries, journal: JournalWriter, errors: int) -> None:
        self.trades = [EPISODE]
        self.equity = (bars.close_times.tolist(), [100_000.0 + n for n in range(bars.shape[0])])
        self._document = document(settings, bars, journal, errors)

    def document(self, run_id: str, journal_url: str) -> dict[str, Any]:
        """The document, with the two values that only the store knows."""
        journal = self._document["journal"] | {"url": journal_url}
        return {"run_id": run_id} | self._document | {"journal": journal}


class FakeRunner:
    """A `BacktestRunner` with switches for what can go wrong.

    Attributes:
        errors: number of `error` rows it records.
        fail_at: bar at which it gives up with a DataError.
        at_bar: called at every bar, for example to send a signal.
        drift: added to every payload; another value plays another version of the program.
        dangling: whether the verdict names a report that is not there.
        note: said in every row of a bar, and by every error.
    """

    def __init__(
        self,
        *,
        errors: int = 0,
        fail_at: int | None = None,
        at_bar: Callable[[int], None] | None = None,
        drift: int = 0,
        dangling: bool = False,
        note: str = "",
    ) -> None:
        self.errors, self.fail_at, self.at_bar, self.drift = errors, fail_at, at_bar, drift
        self.verdict_on = "none" if dangling else REPORT_ID
        self.note = note

    async def __call__(
        self,
        settings: Settings,
        bars: BarSeries,
        journal: JournalWriter,
        *,
        definitions: Any = None,
        progress: Progress | None = None,
        trial: RunTrial | None = None,
        until: int | None = None,
        own: Overrides = NO_OVERRIDES,
    ) -> FakeOutcome:
        """Record a genesis row, two rows a bar and a last one."""
        first, last = int(bars.close_times[0]), int(bars.close_times[-1])
        journal.append(
            "genesis", ts_event=first, known_at=first, payload={"config_hash": settings.config_hash}
        )
        for t in range(bars.shape[0]):
            self._bar(t, settings, bars, journal)
            await journal.checkpoint()
            if progress is not None:
                progress(t + 1, bars.shape[0])
        payloads: dict[str, dict[str, Any]] = {
            "high_level_request": {"request_hash": "0" * 64, "request": {"episode_ids": []}},
            "high_level_report": {"report_id": REPORT_ID, "request_hash": "0" * 64, "report": REPORT},
            "replan_verdict": {"verdict_id": "cd" * 8, "report_id": self.verdict_on, "verdict": VERDICT},
            "run_finished": {"bars": bars.bar_count, "end": last, "open_positions": []},
        }
        for kind, payload in payloads.items():
            journal.append(kind, ts_event=last, known_at=last, payload=payload)
        return FakeOutcome(settings, bars, journal, self.errors)

    def _bar(self, t: int, settings: Settings, bars: BarSeries, journal: JournalWriter) -> None:
        if self.at_bar is not None:
            self.at_bar(t)
        if t == self.fail_at:
            raise DataError(f"bar {t} cannot be used: correct it")
        close, known_at = float(bars.close[t, 0]), int(bars.close_times[t])
        known = {"close": close, "seed": settings.seed, "drift": self.drift, "bar_label": int(bars.times[t])}
        payload = known | ({"note": self.note} if self.note else {})
        for kind in ("state_transition", "policy_event"):
            journal.append(
                kind, ts_event=known_at, known_at=known_at, symbol=bars.symbols[0], payload=payload,
                telemetry={"latency_ms": 0.5},
            )  # fmt: skip
        if t < self.errors:
            message = f"no level at bar {t}{self.note}"
            error = {"where": "policy_loop", "type": "ValueError", "message": message}
            journal.append("error", ts_event=known_at, known_at=known_at, payload=error)


def document(settings: Settings, bars: BarSeries, journal: JournalWriter, errors: int) -> dict[str, Any]:
    """A document with every key of the contract."""
    latency = {"p50": 0.4, "p95": 1.2, "p99": None}
    return {
        "config_hash": settings.config_hash, "reflection": settings.reflection.mode,
        "data": {
            "symbols": list(bars.symbols), "timeframe": bars.timeframe, "bars": bars.bar_count,
            "start": "2000-03-01T00:00:00+00:00", "end": "2000-03-31T00:00:00+00:00", "sha256": bars.sha256,
            "left_out": {},
        },
        "ledger": NO_TRIALS.document(), "ended_early": None, "why_no_trade": [],
        "signals": {"playbooks": [], "orders_refused": {}}, "headline": {"window": "whole"} | FIGURES,
        "contamination": {
            "label": "clean", "reason": None, "cutoff": None, "models": [], "bars_before": 0,
            "bars_after": bars.bar_count, "before": dict.fromkeys(FIGURES) | {"trades": 0},
            "after": FIGURES,
        },
        "performance": {
            "total_return": 0.123, "model_cost": 0.0, "net_return": 0.123, "buy_and_hold_return": -0.05,
            "buy_and_hold_sharpe": None, "buy_and_hold_drawdown": 0.1, "exposed_hold_return": -0.01,
            "exposed_hold_drawdown": 0.02, "mean_exposure": 0.2, "risk_per_trade": 0.005, "sharpe": None,
            "max_drawdown": 0.02, "trades": 1, "win_rate": 1.0, "expectancy_r": 0.97, "fees": 12.5,
            "exposure": 0.5, "cagr": 0.3, "volatility": 0.1, "sharpe_interval": None, "sortino": None,
            "calmar": 15.0, "drawdown_days": 4.0, "profit_factor": None, "payoff": None,
            "average_hold_bars": 5.0, "best_r": 0.97, "worst_r": 0.97, "beta": None, "alpha": None,
            "alpha_t": None, "turnover": 2.0, "break_even_cost_bps": 35.0,
            "by_direction": [GROUP | {"name": "long"}], "by_playbook": [GROUP | {"name": "trend_pullback"}],
            "by_symbol": [GROUP | {"name": "AAPL"}], "by_regime": [GROUP | {"name": "up/low"}],
            "by_exit": [GROUP | {"name": "target"}],
        },
        "tick_validation": {
            "bars_validated": bars.bar_count, "events": {"state_transition": 3}, "llm_calls": 0,
            "memory_reads": 0, "policy_writes": 0,
        },
        "model": {
            "calls": 0, "requests": 0, "outcomes": {}, "cut_overs": {}, "seats": [],
            "refused": {"text": 0, "evidence": 0, "decision": 0}, "breaker_opened": 0,
            "tokens": {"input": 0, "output": 0, "cache_write": 0, "cache_read": 0}, "estimated_calls": 0,
            "unused_early": {"calls": 0, "usd": 0.0}, "forecast": None, "usd": 0.0, "cost": 0.0,
            "latency_ms": {"p50": None, "p95": None, "p99": None},
        },
        "strategist": {
            "name": settings.policy_loop.strategist, "answers": {"rules": 3}, "fallbacks": {},
        },
        "policy_loop": {
            "events": {"heartbeat": 4, "regime_change": 7}, "skips": {"hold_lock": 2}, "overrides": {},
            "evaluations": 3, "frozen": 1, "stand_downs": 1, "revisions": 1,
            "finding_codes": {"stop_too_tight": 1}, "sent_back_for": {"stop_too_tight": 1},
            "sent_back_own": 0, "passed_over": {"stop_too_tight": 2},
            "reader": {"asked": 0, "nothing_to_decide": 0, "unused": {}},
            "reflections": {"pass": 1, "revise": 1, "block": 0, "error": 0, "degraded": 0},
            "amendments": {"pass": 1, "revise": 0, "block": 0, "disabled": 0},
            "invocations": {"ran": 2, "degraded": 0, "skipped": 1, "disabled": 0, "error": 0},
            "degraded_share": 0.0, "budget_held_share": 1.0, "latency_ms": latency,
            "reflection_latency_ms": latency,
        },
        "memory": {
            "reads": 2, "reused": 1, "over_budget": 0, "degraded": 0, "latency_ms": latency,
        },
        "episodes": 1,
        "high_level": {
            "runs": 1, "skips": {"insufficient_episodes": 9},
            "reports": [{"report_id": REPORT_ID, "n_episodes": 21}], "findings": {"count_only": 1},
            "recommendations": {}, "latency_ms": latency, "on_trial": [],
        },
        "judge": {
            "boundary": {"approve": 1}, "replans": {"hold": 1}, "opinions": {}, "to_ask": 0, "asked": 0,
            "not_asked": {},
        },
        "deliberation": {"total_requests": 0, "statuses": {"failed": 0}},
        "playbooks": {"versions": {"active": 4}},
        "journal": {"url": "", "events": journal.events, "head_hash": journal.head_hash},
        "open_positions": [],
        "timing": {
            "compile_s": 0.0, "engine_s": 0.1, "policy_s": 0.1, "slow_s": 0.1, "total_s": 0.4,
            "bars_per_s": 5000.0,
        },
        "errors": errors,
    }  # fmt: skip
