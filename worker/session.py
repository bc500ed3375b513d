"""One trading session: the engine with both loops, stepped from boundary to boundary.

The same step serves backtest, replay and paper trading on a feed that waits; a runner only decides where bars
come from and when to flush. On a feed that runs on, `worker.live` takes the step apart.
"""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, ClassVar

from schemas.canonical import ns_to_datetime
from schemas.episode import Episode
from schemas.settings import Settings
from schemas.state import PART, Stateful
from schemas.trials import NO_TRIALS, TrialLedger
from services.context import RunContext
from services.evidence_tools.evidence_buffer import EvidenceBuffer
from services.feeds.port import CONFLICTING, FeedAnomalyKind
from services.journal.parking import ParkingJournal
from services.journal.writer import JournalWriter
from services.memory.episode_builder import EpisodeContext, build_episode
from services.memory.experience import Experience
from services.playbooks.assembly import RunPlaybooks
from services.policy_loop.records import tick_event
from services.policy_loop_service import PolicyLoopService
from services.slow_loop.loop_rows import journal_version
from services.slow_loop_service import SlowLoopService
from trading_core.bars import BarSeries
from trading_core.clock import SimulatedClock
from trading_core.live.growing_bars import GrowingBars
from trading_core.live.step import LiveStep
from trading_core.market import Market
from trading_core.tick_guard import TickGuard
from trading_core.trigger_engine import Advance, TriggerEngine
from worker.models import RunModels

SCHEMA_VERSION = 1

ACCOUNT_GONE, MODEL_LOST = "account_gone", "model_lost"  # why a run ends early


@dataclass
class Timing:
    """Wall seconds of one run, telemetry: `engine_s` excludes `compile_s`, `total_s` includes everything."""

    compile_s: float = 0.0
    engine_s: float = 0.0
    policy_s: float = 0.0
    slow_s: float = 0.0
    total_s: float = 0.0


@dataclass
class Session(Stateful):
    """Everything one run consists of, wired by `bootstrap`."""

    STATE: ClassVar = {
        "books": PART,  # first: episodes are remembered under the rules of their version
        "journal": PART,
        "guard": PART,
        "clock": PART,
        "experience": PART,
        "policy_loop": PART,
        "slow_loop": PART,
        "models": PART,
        "bars_validated": int,
        "anomalies": Counter[str],
        "doubted": list[tuple[int, str]],
    }
    REBUILT = frozenset(
        {"context", "market", "engine", "live", "events", "ledger", "kept", "columns_wired"}
        | {"stops_without_model", "has_own_strategist"}
    )

    context: RunContext
    market: Market
    journal: JournalWriter
    events: ParkingJournal
    engine: TriggerEngine
    experience: Experience
    books: RunPlaybooks
    policy_loop: PolicyLoopService
    slow_loop: SlowLoopService
    models: RunModels
    ledger: TrialLedger = NO_TRIALS
    kept: EvidenceBuffer | None = None  # what the judge's tools read; None where it is asked without them
    bars_validated: int = 0
    columns_wired: int = 0  # columns that every session of these settings has made before its first row
    has_own_strategist: bool = False  # then playbooks that its plans do not name say nothing of the run
    stops_without_model: bool = False  # where its server turns questions away for good
    anomalies: Counter[str] = field(default_factory=Counter)
    doubted: list[tuple[int, str]] = field(default_factory=list)  # label and symbol of each bar in doubt

    def __post_init__(self) -> None:
        """Bars that grow are taken row by row."""
        grows = isinstance(self.bars, GrowingBars)
        windows = self.settings.envelope.no_trade_windows
        self.live = LiveStep(self.market, self.engine, windows) if grows else None

    @property
    def settings(self) -> Settings:
        """The resolved configuration."""
        return self.context.settings

    @property
    def guard(self) -> TickGuard:
        """Of the tick path."""
        return self.context.guard

    @property
    def bars(self) -> BarSeries:
        """The bars of the run, or those so far."""
        return self.market.bars

    @property
    def clock(self) -> SimulatedClock:
        """The time up to which bars are known."""
        return self.market.clock

    def remember(self, episode: Episode) -> None:
        """An episode joins the experience and the evidence of the slow loop."""
        self.experience.add(episode)
        self.slow_loop.facts.remember(episode)

    def begin(self) -> None:
        """Write the first event and the playbook versions that came in files."""
        first = int(self.bars.times[0])
        self.listen()
        self.journal.append(
            "genesis",
            ts_event=first,
            known_at=first,
            payload={
                "config_hash": self.settings.config_hash,
                "schema_versions": {"contracts": SCHEMA_VERSION, "journal": SCHEMA_VERSION},
                "symbols": list(self.bars.symbols),
                "timeframe": self.bars.timeframe,
                "label": self.bars.label,
                "seed": self.settings.seed,
                **({} if self.ledger.shown is None else {"ledger": self.ledger.payload()}),
            },
        )
        for version in self.books.reader.active():
            journal_version(self.journal, version, max(first, version.since))

    def listen(self) -> None:
        """Let slow loop and judge read the journal; the last wire, of a session that begins or goes on."""
        others = () if self.kept is None else (self.kept.add,)
        self.journal.read_by(self.slow_loop.facts.add, self.policy_loop.signals.add, *others)

    async def step(self, timing: Timing, *, history: bool = False, end: int | None = None) -> None:
        """Validate bars to the next boundary or slot, then episodes, policy loop and slow loop.

        That order holds in every runner. On `history` nothing is decided. No bar from row `end` on is looked
        at.
        """
        step = self.validate(timing, end)
        started = time.perf_counter()
        await self._decide(step, history=history)
        timing.policy_s += time.perf_counter() - started
        self.slow_loop.plans.expire(self.clock.now)
        await self.reflect_slowly(step, timing)

    async def _decide(self, step: Advance, *, history: bool) -> None:
        """Evaluate the boundaries of a row in turn; each has looked before anything is decided on the row."""
        opened = []
        for boundary in step.boundaries:
            with self.events.parking() as rows:
                opened.append((self.policy_loop.open(boundary, history=history), rows))
        due = [evaluation for evaluation, _ in opened if evaluation is not None]
        async with self.models.account.early.asking(due) as wait_for:
            for evaluation, rows in opened:
                self.events.deliver(rows, self.clock.now)
                if evaluation is None:
                    continue
                await wait_for(evaluation)
                self.models.account.open_event(self.bars.symbols[evaluation.boundary.s])
                await self.policy_loop.think(evaluation)
                self.policy_loop.close(evaluation)

    def validate(self, timing: Timing, end: int | None = None) -> Advance:
        """Validate bars to the next boundary or slot and record what happened, at once."""
        engine, started = self.engine, time.perf_counter()
        rows = self.bars.shape[0] if end is None else end
        self.policy_loop.signals.begin()
        step = engine.advance(min(rows, self.slow_loop.next_row(engine.t) + 1 if self.learning else rows))
        timing.engine_s += time.perf_counter() - started
        self.clock.advance(int(self.bars.close_times[step.t - 1]))
        self._record(step)
        return step

    async def reflect_slowly(self, step: Advance, timing: Timing) -> None:
        """Let the slow loop look, if the step ended at a boundary or a slot.

        Where else a step ends depends on how many bars there were to validate, and decides nothing.
        """
        row = step.t - 1
        if self.learning and (step.boundaries or self.slow_loop.slot_closed_by(row)):
            self.models.account.open_event()
            await self.slow_loop.on_row(row)
            timing.slow_s = self.slow_loop.counters.seconds

    def keep_trials(self) -> None:
        """Where reports come from elsewhere: end what a slot or a deadline that is over by now ends."""
        self.slow_loop.plans.expire(self.clock.now)
        if self.learning:
            self.slow_loop.keep_trials(self.engine.t - 1)

    @property
    def learning(self) -> bool:
        """Whether there is a slow loop at all."""
        return self.settings.reflection.mode != "off"

    def note_anomaly(self, payload: dict[str, Any], measured: dict[str, Any] | None = None) -> None:
        """Journal what was wrong with the feed; conflicting data is an override of its symbol.

        Args:
            payload: as `FeedAnomaly.payload` gives it.
            measured: what stands beside the hash.
        """
        now, symbol = self.clock.now, payload["symbol"]
        self.journal.append(
            "feed_anomaly", ts_event=now, known_at=now, symbol=symbol, payload=payload, telemetry=measured
        )
        self.anomalies[payload["anomaly"]] += 1
        if payload["anomaly"] == FeedAnomalyKind.IMPLAUSIBLE:
            self.doubted.append((payload["bar_label"], symbol))
        if payload["anomaly"] in CONFLICTING and symbol in self.bars.symbols:
            self.engine.doubt_data(self.bars.symbols.index(symbol))

    def _record(self, step: Advance) -> None:
        self.bars_validated += step.bars_validated
        self.policy_loop.signals.observe(step)
        for event in step.events:
            tick_event(self.journal, event)
            self.policy_loop.observe(event)
        for trade in step.trades:
            self._resolve(trade)

    def _resolve(self, trade: Any) -> None:
        policy = self.policy_loop.policies[self.engine.tag(int(trade["policy"])).policy_id]
        context = EpisodeContext.of_policy(policy, self.policy_loop.structures[policy.policy_id])
        episode = build_episode(trade, self.bars, context, self.settings.envelope.no_learn_zones)
        self.journal.append(
            "episode",
            ts_event=episode.known_at,
            known_at=episode.known_at,
            symbol=episode.symbol,
            payload={"episode_id": episode.episode_id, "episode": episode},
        )
        self.experience.add(episode)

    def finish(self) -> None:
        """Write the last event: what depends on the end of the input, and the positions that stay open."""
        row, early = self.engine.t - 1, self.ended_early
        known, end = int(self.bars.close_times[row]), int(self.bars.times[row])
        found = {"bars": self.bars_validated, "end": end, "open_positions": self.open_positions()}
        payload = found | ({} if early is None else {"ended_early": early["reason"]})
        self.journal.append("run_finished", ts_event=known, known_at=known, payload=payload)

    @property
    def ended_early(self) -> dict[str, str] | None:
        """Why a run is over although its bars may not be: `reason`, and one line; None of any other run."""
        lost = self.models.account.lost if self.stops_without_model else None
        if not self.engine.account_gone and lost is None:
            return None
        row, left = self.engine.t - 1, self.bars.shape[0] - self.engine.t
        closed = ns_to_datetime(int(self.bars.close_times[row])).isoformat()
        ends = f"the run ends there{f', {left:,} rows of bars before their end' if left else ''}"
        if self.engine.account_gone:
            gone = f"its equity is {self.engine.equity[row]:,.2f} at the close of {closed}"
            wish = "lower envelope.risk_fraction or envelope.max_gross_exposure"
            return {"reason": ACCOUNT_GONE, "message": f"the account is gone: {gone}, and {ends}; {wish}"}
        wish = "llm.on_lost = 'rules' lets the rules go on alone"
        return {"reason": MODEL_LOST, "message": f"the model is lost at {closed} and {ends}: {lost}; {wish}"}

    def open_positions(self) -> list[dict[str, Any]]:
        """Positions open at the end, marked to the last close; neither trades nor episodes."""
        found = []
        for s, state in enumerate(self.engine.state):
            direction = int(state["direction"])
            if direction == 0:
                continue
            quantity, mark = float(state["quantity"]), float(state["last_close"])
            found.append(
                {
                    "symbol": self.bars.symbols[s],
                    "direction": "long" if direction > 0 else "short",
                    "quantity": quantity,
                    "entry_price": float(state["entry_price"]),
                    "mark": mark,
                    "unrealised_pnl": direction * quantity * (mark - float(state["entry_price"])),
                    "stop": float(state["stop"]),
                    "target": float(state["target"]),
                }
            )
        return found
