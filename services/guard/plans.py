"""An order held against bars, as the fast reflection holds a plan: its levels are a plan's own rules.

Only bars that have closed by the time of the check are read. Settled orders of a strategy are its memory and
its expectation; an order without a stop is no plan, so the reflection says nothing of it.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from schemas.episode import Episode
from schemas.errors import DataError, nearest
from schemas.guard import BarFacts, GuardSettings, Order
from schemas.reflection import Finding, InvariantContext, PolicyLevelReflectionRequest
from schemas.regime import UNKNOWN as NO_REGIME
from schemas.regime import RegimeLabels, RegimeView
from schemas.snapshot import DataWindow, PolicySnapshot, RiskState
from schemas.timeframes import DAY_S, TIMEFRAME_SECONDS
from schemas.vocabulary import CheckName, ExitReason, PolicyEventKind, PolicyState
from services.guard.ledger import NS, CheckedOrder, Ledger
from services.guard.limits import OrderContext, bound
from services.guard.order_plan import plan_of, playbook_id
from services.memory.episode_memory import EpisodeMemory
from services.model_calls.language_model import LanguageModel
from services.playbooks.expectations import ExpectationBook
from services.playbooks.own_plans import own_playbook
from services.policy_checks.findings import own_findings
from services.policy_level_reflection_service import PolicyLevelReflectionService
from services.policy_loop.invariant_context import cost_bps
from trading_core.bars import BarSeries
from trading_core.clock import SimulatedClock
from trading_core.regime import RegimeTracker, regime_view
from trading_core.tick_guard import TickGuard

READ = 500  # closed bars that a check reads
ATR_BARS = 14
WEEK_NS = 7 * 86_400 * NS


def read_bars(bars: BarSeries, symbol: str, now: int) -> tuple[BarSeries, BarFacts]:
    """The last bars of a symbol that have closed by now, and what they say.

    Raises:
        DataError: they are bars of another symbol, or none has closed.
    """
    if symbol not in bars.symbols:
        guess = nearest(symbol, bars.symbols)
        raise DataError(
            f"bars are of {', '.join(bars.symbols)}, the order is of {symbol!r}: hand over its bars.{guess}"
        )
    s = bars.symbols.index(symbol)
    rows = np.flatnonzero(bars.present[:, s] & (bars.close_times <= now))
    if rows.size == 0:
        raise DataError(f"bars of {symbol!r}: none has closed by now: check the zone of their times")
    missed = _count_missed(bars.close_times[rows], bars.bar_ns, now)
    if rows.size != bars.shape[0] or len(bars.symbols) > 1 or rows.size > READ:
        bars = bars.take(rows[-READ:], np.array([s], dtype=np.int64))
    return bars, _read_facts(bars, missed)


def _read_facts(bars: BarSeries, missed: int | None) -> BarFacts:
    high, low, close = bars.high[:, 0], bars.low[:, 0], bars.close[:, 0]
    before = close[:-1]
    ranges = np.maximum(high[1:], before) - np.minimum(low[1:], before)
    atr, earlier = (
        float(part.mean()) if part.size == ATR_BARS else None
        for part in (ranges[-ATR_BARS:], ranges[-ATR_BARS - 1 : -1])
    )
    follows = bars.shape[0] > 1 and int(bars.times[-1] - bars.times[-2]) <= bars.bar_ns
    jump = abs(float(close[-1] - before[-1])) / earlier if earlier and follows else None
    return BarFacts(
        bars=bars.sha256,
        timeframe=bars.timeframe,
        label=int(bars.times[-1]),
        known_at=int(bars.close_times[-1]),
        close=float(close[-1]),
        atr=atr or None,
        jump=jump,
        missed=missed,
        regime=_regime(bars),
    )


def _count_missed(closes: npt.NDArray[np.int64], bar_ns: int, now: int) -> int | None:
    """Bars that should have closed since the last: as many as in the same stretch of the week before.

    Bars of less than a week do not say when their market is shut, so they tell of half a week or more alone.
    """
    last = int(closes[-1])
    missed = (now - last) // bar_ns
    if bar_ns >= WEEK_NS or not missed:
        return missed
    if last - int(closes[0]) < WEEK_NS:
        return missed if now - last > WEEK_NS // 2 else None
    weeks, rest = divmod(now - last, WEEK_NS)
    start = last - WEEK_NS
    return int(weeks * (closes > start).sum() + ((closes > start) & (closes <= start + rest)).sum())


@lru_cache(maxsize=64)
def _regime(bars: BarSeries) -> RegimeView | None:
    return regime_view(RegimeTracker(bars).columns, bars.shape[0] - 1, 0)


def warm_up(settings: GuardSettings, bars: BarSeries) -> None:
    """Load what a check of bars runs, or compile it where it was not made ready."""
    now, order = int(bars.close_times[-1]), Order(symbol=bars.symbols[0], side="buy", quantity=1.0, stop=1e-6)
    closed, facts = read_bars(bars, order.symbol, now)
    seen = OrderContext(order, None, settings, facts, Ledger(), now)
    asyncio.run(OrderReflection(settings).reflect(seen, closed, ""))


class OrderReflection:
    """The fast reflection on orders, with what was settled as its memory.

    Args:
        settings: of the guard.
        critics: asked between rules and the second reader.
        model: the second reader, where the reflection has one.
    """

    def __init__(
        self,
        settings: GuardSettings,
        critics: Sequence[Callable[[OrderContext], Any]] = (),
        model: LanguageModel | None = None,
    ) -> None:
        self._settings, self._known = settings, 0
        self._clock = SimulatedClock()
        self._memory = EpisodeMemory(settings.memory, self._clock, TickGuard())
        self._expectations = ExpectationBook(self._clock)
        self._critics, self._seen = tuple(critics), list[OrderContext]()
        self._service = PolicyLevelReflectionService(
            settings.reflection, memory=self._memory.reader(), model=model,
            critics=[self._ask_critics] if critics else (),
        )  # fmt: skip

    async def reflect(
        self, seen: OrderContext, bars: BarSeries, why: str
    ) -> tuple[tuple[Finding, ...], list[str]]:
        """Findings on an order with a stop, and checks for which nothing is known."""
        self._seen[:] = [seen]
        self._learn(seen.ledger)
        snapshot = self._snapshot(seen, bars)
        self._clock.advance(max(self._clock.now, snapshot.known_at))
        proposal = plan_of(seen.order, snapshot.close, why)
        settings, execution = self._settings.reflection, self._settings.execution
        request = PolicyLevelReflectionRequest(
            snapshot=snapshot,
            proposal=proposal,
            playbook=own_playbook(proposal),
            state=snapshot.state,
            invariants=InvariantContext(
                max_risk_fraction=1.0,
                min_reward_to_risk=settings.min_reward_to_risk,
                cost_bps_per_side=cost_bps(execution),
                spread_bps=execution.spread_bps,
                tick_size=execution.tick_size,
                no_learn_zones=self._settings.envelope.no_learn_zones,
            ),
        )
        result = await self._service.reflect(request, source=PolicyEventKind.HEARTBEAT)
        own = [known for known in snapshot.expectations if known.playbook_id == proposal.playbook_id]
        resting = () if own else (CheckName.MEMORY, CheckName.EXPECTATION)  # on nothing: no order was settled
        found = (
            self._with_target(finding, seen.order, snapshot.close)
            for finding in result.findings
            if finding.check not in resting
        )
        return tuple(found), [*map(str, resting)]

    def _with_target(self, found: Finding, order: Order, close: float) -> Finding:
        """Of too little reward for the risk, the target that pays enough: an order has no such field."""
        if found.code != "reward_to_risk_too_low" or order.stop is None:
            return found
        entry = close if (proposal := plan_of(order, close)).entry is None else float(proposal.entry)
        costs = 2.0 * entry * cost_bps(self._settings.execution) * 1e-4
        reward = self._settings.reflection.min_reward_to_risk * (abs(entry - order.stop) + costs) + costs
        return found.model_copy(
            update={"remedy": bound("target", order.sign > 0, entry + order.sign * reward)}
        )

    def _ask_critics(self, _request: PolicyLevelReflectionRequest) -> Sequence[Finding]:
        return own_findings(self._critics, self._seen[-1])

    def _learn(self, ledger: Ledger) -> None:
        """Take in what was settled since the last check."""
        for settled in list(ledger.settled.values())[self._known :]:
            episode = episode_of(ledger.orders[settled["verdict_id"]], settled)
            if episode is not None:
                self._memory.add(episode)
                self._expectations.record(episode)
        self._known = len(ledger.settled)

    def _snapshot(self, seen: OrderContext, bars: BarSeries) -> PolicySnapshot:
        now, last = int(bars.close_times[-1]), bars.shape[0] - 1
        window = DataWindow(first_label=int(bars.times[0]), last_label=int(bars.times[-1]), bars=last + 1)
        self._clock.advance(max(self._clock.now, now))
        equity = 1.0 if seen.account is None else seen.account.equity
        row = {
            name: float(getattr(bars, name)[last, 0]) for name in ("open", "high", "low", "close", "volume")
        }
        return PolicySnapshot(
            symbol=bars.symbols[0],
            timeframe=bars.timeframe,
            bar_label=int(bars.times[-1]),
            ts_event=now,
            known_at=now,
            close=row["close"],
            events=(PolicyEventKind.HEARTBEAT.value,),
            state=PolicyState.IDLE,
            regime=None if seen.facts is None else seen.facts.regime,
            features={name: value if np.isfinite(value) else None for name, value in row.items()},
            position=None,
            active_policy_id=None,
            risk=RiskState(
                equity=equity, cash=equity, gross_exposure=0.0, drawdown=0.0, daily_loss=0.0,
                risk_fraction=self._settings.envelope.risk_fraction, halted=False, kill_switch=False,
            ),
            base_rates=self._memory.reader(counted=False).base_rates(now),
            expectations=self._expectations.own(now),
            data_window=window,
            staleness_bars=0,
        )  # fmt: skip


def episode_of(checked: CheckedOrder, settled: Mapping[str, Any]) -> Episode | None:
    """A settled order as a resolved trade; None where it opened nothing, or has no R or no price."""
    order, facts, quantity = checked.order, checked.facts, checked.quantity
    price, r, closed_at = checked.price, settled["r"], settled["closed_at"]
    if not checked.opens or r is None or price is None or quantity is None:
        return None
    regime = None if facts is None else facts["regime"]
    labels = None if regime is None else RegimeLabels.model_validate(regime["labels"])
    bar_ns = NS * (TIMEFRAME_SECONDS[facts["timeframe"]] if facts else DAY_S)
    return Episode(
        episode_id=checked.id,
        symbol=order.symbol,
        timeframe=facts["timeframe"] if facts else "1d",
        playbook_id=playbook_id(order.strategy),
        playbook_version=1,
        playbook_hash="",
        policy_id=checked.id,
        direction=order.direction,
        regime=NO_REGIME if labels is None else labels.key,
        structure=NO_REGIME if labels is None else labels.structure,
        fingerprint=() if regime is None else tuple(regime["fingerprint"]),
        conviction=order.conviction or 0.0,
        entry_label=facts["label"] if facts else checked.at,
        exit_label=closed_at,
        known_at=closed_at,
        entry_price=price,
        exit_price=price + order.sign * r * abs(price - (order.stop or price)),
        quantity=quantity,
        fees=0.0,
        pnl=settled["pnl"] if settled["pnl"] is not None else r * (checked.risk or 0.0),
        r=r,
        mae_r=min(0.0, r),
        mfe_r=max(0.0, r),
        hold_bars=max(0, (closed_at - checked.at) // bar_ns),
        exit_reason=ExitReason.EXIT_RULE,
    )
