"""Ledgers of playbook versions that trade beside the account.

A playbook version traded on paper beside the account, by the same kernel on the same bars.

Its policy never ends and re-arms whenever its setup is true in an eligible regime; no policy loop, no
envelope, one unit per trade, so that R is all it yields. Shadow trials, disabled cells and grid values are
all answered here, and only from bars at or before the clock.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from schemas.episode import Episode
from schemas.playbook import Eligibility, PlaybookDefinition
from schemas.regime import UNKNOWN
from schemas.settings import EnvelopeSettings, ExecutionSettings
from schemas.state import Stateful, demand_fields, read_as
from schemas.vocabulary import Direction, Trend, VolatilityBand
from services.memory.episode_builder import EpisodeContext, build_episode
from services.playbooks.rendering import render_rules
from services.statistics.blocks import Trades
from trading_core.features.columns import FeatureColumns
from trading_core.kernel.fresh import parameter_record
from trading_core.kernel.records import TRADE
from trading_core.market import Market
from trading_core.policy_orders import PolicyOrders
from trading_core.regime import BANDS, STRUCTURES, TRENDS, regime_view
from trading_core.rules.columns import RuleColumns
from trading_core.rules.orders import SymbolColumns, compile_orders
from trading_core.tick_events import PolicyTag, TickEventDecoder
from trading_core.tick_guard import TickGuard
from trading_core.trigger_engine import TriggerEngine

UNLIMITED_CASH = 1e9


class ShadowLedgers:
    """Maker of shadow ledgers over the bars of one run; also the grid evaluator of the slow loop."""

    def __init__(
        self,
        market: Market,
        execution: ExecutionSettings,
        envelope: EnvelopeSettings,
    ) -> None:
        self.market = market
        self._execution = execution.for_one_unit
        self.zones = envelope.no_learn_zones
        self._envelope = envelope

    def open(
        self,
        definition: PlaybookDefinition,
        directions: Sequence[Direction],
        start_row: int,
        regime_key: str | None = None,
    ) -> "ShadowLedger":
        """A ledger that trades `definition` from row `start_row` on.

        It trades in one regime cell only when a key is given.
        """
        return ShadowLedger(self, definition, tuple(directions), start_row, regime_key)

    def reopen(self, state: Mapping[str, Any]) -> "ShadowLedger":
        """The ledger that wrote a state.

        Raises:
            ValueError: it is the state of no ledger.
        """
        demand_fields("ShadowLedger", state, ShadowLedger.STATE)
        ledger = self.open(read_as(PlaybookDefinition, state["definition"]), (), 0)
        ledger.restore(state)
        return ledger

    def engines(self, ledger: "ShadowLedger") -> list[TriggerEngine]:
        """The engines of a ledger over the bars that are there."""
        features = self.market.columns.features.whole
        return [
            self._engine(ledger.definition, direction, ledger.start_row, ledger.regime_key, features)
            for direction in ledger.directions
            if direction in self._envelope.allowed_directions
        ]

    def evaluate(
        self, definition: PlaybookDefinition, parameter: str, value: float, start_ns: int, end_ns: int
    ) -> Trades:
        """Trades of a parameter value on the bars of a window that may teach, by exit.

        Only bars that close at or before `end_ns` count; the clock refuses an `end_ns` in the future.
        """
        self.market.clock.check(end_ns)
        changed = definition.parameters[parameter].model_copy(update={"value": value})
        variant = definition.model_copy(update={"parameters": {**definition.parameters, parameter: changed}})
        closes = self.market.bars.close_times
        start = int(np.searchsorted(closes, start_ns, side="left"))
        stop = int(np.searchsorted(closes, end_ns, side="right"))
        found = self.open(variant, tuple(variant.rules), start).resolve_learnable(stop)
        times = self.market.bars.times
        return Trades(times[found["entry_t"]], times[found["exit_t"]], found["r"])

    def _engine(
        self,
        definition: PlaybookDefinition,
        direction: Direction,
        start_row: int,
        regime_key: str | None,
        features: FeatureColumns,
    ) -> TriggerEngine:
        bars = self.market.bars
        rows, symbols = bars.shape
        parameters = parameter_record(
            self._execution, None, heartbeat=0, emit_events=False, fixed_quantity=1.0
        )
        parameters["cooldown"] = self._envelope.cooldown_bars
        flags = np.zeros((rows, symbols), dtype=np.uint8)
        decoder = TickEventDecoder(bars, definition.content_hash, "shadow")
        engine = TriggerEngine(bars, flags, parameters, UNLIMITED_CASH, TickGuard(), decoder)
        engine.t = start_row
        eligible = self._eligible(definition.eligibility[direction], regime_key)
        allowed = self._envelope.allowed_symbols or bars.symbols
        for s in range(symbols):
            if bars.symbols[s] in allowed:
                with features.borrow() as lent:  # the engine has copies
                    columns = RuleColumns(bars, lent)
                    orders = self._orders(definition, direction, s, engine, eligible[:, s], columns)
                engine.install(s, orders)
        return engine

    def _eligible(self, eligibility: Eligibility, regime_key: str | None) -> npt.NDArray[np.bool_]:
        """Bool (T, S): where the regime allows the playbook; a given cell counts even while it is banned."""
        regimes = self.market.regimes
        trend = np.isin(regimes.trend, [TRENDS.index(label) for label in eligibility.trend])
        band = np.isin(regimes.volatility, [BANDS.index(label) for label in eligibility.volatility])
        structure = np.isin(regimes.structure, [STRUCTURES.index(label) for label in eligibility.structure])
        allowed = (trend & band & structure) | (eligibility.is_open and regime_key is None)
        if regime_key is not None:
            return allowed & self._in_cell(regime_key)
        for key in eligibility.banned:
            allowed &= ~self._in_cell(key)
        return allowed

    def _in_cell(self, key: str) -> npt.NDArray[np.bool_]:
        trend, band = key.split("/")
        cell: npt.NDArray[np.bool_] = self.market.regimes.trend == TRENDS.index(Trend(trend))
        cell &= self.market.regimes.volatility == BANDS.index(VolatilityBand(band))
        return cell

    def _orders(
        self,
        definition: PlaybookDefinition,
        direction: Direction,
        s: int,
        engine: TriggerEngine,
        eligible: npt.NDArray[np.bool_],
        columns: RuleColumns,
    ) -> PolicyOrders:
        rules = render_rules(definition, direction)
        setup = (columns.boolean(rules.setup, s) == 1) & eligible
        return compile_orders(
            rules,
            definition,
            SymbolColumns(columns, engine.columns, s),
            tag=PolicyTag(definition.content_hash[:16], definition.id),
            direction=direction,
            window=definition.activation_window_bars,
            horizon=definition.horizon_bars,
            risk_fraction=definition.risk_fraction,
            setup=engine.columns.truth(("eligible setup", s), setup.astype(np.int8)),
            never_ends=True,
        )


class ShadowLedger(Stateful):
    """One playbook version traded on paper; advanced block by block as time goes on.

    Its engines are made when they are needed, over the bars that are there; a live run gains bars, and then
    they are made anew and brought to where they stood.

    Args:
        owner: maker.
        definition: what trades.
        directions: in which it trades.
        start_row: the first row that it trades.
        regime_key: the one regime cell in which it trades; None: wherever it is eligible.
    """

    STATE: ClassVar = {
        "definition": PlaybookDefinition,
        "directions": tuple[Direction, ...],
        "start_row": int,
        "regime_key": str | None,
        "_done": int,
    }
    REBUILT = frozenset({"_owner", "_engines", "_rows", "episodes"})  # episodes come out again

    def __init__(
        self,
        owner: ShadowLedgers,
        definition: PlaybookDefinition,
        directions: tuple[Direction, ...],
        start_row: int,
        regime_key: str | None,
    ) -> None:
        self._owner = owner
        self._engines: list[TriggerEngine] = []
        self._rows = 0
        self._done = 0
        self.definition = definition
        self.directions = directions
        self.start_row = start_row
        self.regime_key = regime_key
        self.episodes: list[Episode] = []

    def advance(self, until: int) -> tuple[Episode, ...]:
        """Validate bars up to row `until` (exclusive); the newly resolved episodes, by exit, then symbol."""
        new = tuple(self._episode(trade) for trade in self._advance(until))
        self.episodes += new
        return new

    def resolve_learnable(self, until: int) -> npt.NDArray[Any]:
        """As `advance`, for who asks for figures alone: TRADE records that may teach, no episode made.

        A ledger is asked in one of the two ways.
        """
        trades, bars, zones = self._advance(until), self._owner.market.bars, self._owner.zones
        if not zones:
            return trades
        kept = [
            not any(
                zone.touches(
                    bars.symbols[trade["s"]],
                    bars.open_of(int(trade["entry_t"])),
                    int(bars.close_times[trade["exit_t"]]),
                )
                for zone in zones
            )
            for trade in trades
        ]
        return trades[np.array(kept, dtype=np.bool_)]

    def _advance(self, until: int) -> npt.NDArray[Any]:
        self._follow()
        self._done = max(self._done, until)
        return self._resolve(until)

    def _resolve(self, until: int) -> npt.NDArray[Any]:
        parts = [np.empty(0, dtype=TRADE)]
        for engine in self._engines:
            while engine.t < until:
                parts.append(engine.advance(until).trades)
        new = np.concatenate(parts)
        return new[np.lexsort((new["entry_t"], -new["direction"], new["s"], new["exit_t"]))]

    @property
    def open_since(self) -> int | None:
        """Earliest entry among the ledger's open positions, label in ns; None when it is flat."""
        rows = [int(row) for engine in self._engines for row in engine.open_entry_rows()]
        return int(self._owner.market.bars.times[min(rows)]) if rows else None

    def _follow(self) -> None:
        """Stand on the bars that are there: what was traded before comes out again and is known."""
        rows = self._owner.market.bars.shape[0]
        if rows == self._rows:
            return
        restored, self._rows, self._engines = not self._rows, rows, self._owner.engines(self)
        if restored:
            self.episodes = [self._episode(trade) for trade in self._resolve(self._done)]
        for engine in self._engines:
            while engine.t < self._done:
                engine.advance(self._done)

    def _episode(self, trade: Any) -> Episode:
        definition = self.definition
        view = regime_view(self._owner.market.regimes, int(trade["signal_t"]), int(trade["s"]))
        context = EpisodeContext(
            playbook_id=definition.id,
            playbook_version=definition.version,
            playbook_hash=definition.content_hash,
            policy_id=definition.content_hash[:16],
            regime=UNKNOWN if view is None else view.labels.key,
            structure=UNKNOWN if view is None else str(view.labels.structure),
            fingerprint=() if view is None else view.fingerprint,
            conviction=definition.expectation.hit_rate,
            ledger="shadow",
        )
        return build_episode(trade, self._owner.market.bars, context, self._owner.zones)
