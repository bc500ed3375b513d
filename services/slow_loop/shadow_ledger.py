"""Ledgers of playbook versions that trade beside the account.

A playbook version traded on paper beside the account, by the same kernel on the same bars.

Its policy never ends and re-arms whenever its setup is true in an eligible regime; no policy loop, no
envelope, one unit per trade, so that R is all it yields. Shadow trials, disabled cells and grid values are
all answered here, and only from bars at or before the clock.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
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
from trading_core.bars import BarSeries
from trading_core.features.columns import FeatureColumns
from trading_core.kernel.fresh import parameter_record
from trading_core.kernel.records import TRADE
from trading_core.market import Market
from trading_core.policy_orders import PolicyOrders
from trading_core.regime import BANDS, STRUCTURES, TRENDS, regime_view
from trading_core.rule_bank import EngineColumns
from trading_core.rules.columns import RuleColumns
from trading_core.rules.orders import SymbolColumns, compile_orders
from trading_core.tick_events import PolicyTag, TickEventDecoder
from trading_core.tick_guard import TickGuard
from trading_core.trigger_engine import TriggerEngine

UNLIMITED_CASH = 1e9
Searched = dict[str, tuple["ShadowLedger", list[Trades]]]  # by hash of the version with a value


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
        self._bare: tuple[TriggerEngine, dict[str, Any]] | None = (
            None  # and how it stood before its first bar
        )
        self._searched: dict[
            str, tuple[tuple[str, int], Searched]
        ] = {}  # by playbook: which version, from where

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
        engines, rows = [], slice(0, self.market.bars.shape[0])
        for direction in self._list_sides(ledger):
            engine = self._new_engine()
            engine.t = ledger.start_row
            for s, orders in self._orders(ledger, direction, engine.columns, rows):
                engine.install(s, orders)
            engines.append(engine)
        return engines

    def trade_on(self, ledger: "ShadowLedger", start: int, stop: int) -> list[npt.NDArray[Any]]:
        """TRADE records of the rows `start` to `stop`; the ledger stands behind them then.

        One engine serves all, and columns are made of these rows alone: a grid has many values.
        """
        rows, length = slice(start, stop), self.market.bars.shape[0]
        if self._bare is None or self._bare[0].equity.size != length:
            engine = self._new_engine(_RowBank(length, rows))
            self._bare = engine, engine.snapshot()
        (engine, fresh), trades = self._bare, []
        for direction in self._list_sides(ledger):
            bank, stood = _RowBank(length, rows), ledger.stood.get(direction)
            engine.restore({**(stood or fresh), "columns": bank})
            engine.t = start
            for s, orders in self._orders(ledger, direction, bank, rows):
                if stood is None:
                    engine.install(s, orders)
            while engine.t < stop:
                trades.append(engine.advance(stop).trades)
            ledger.stood[direction] = {**engine.snapshot(), "columns": None}
        return trades

    def evaluate(
        self, definition: PlaybookDefinition, parameter: str, value: float, start_ns: int, end_ns: int
    ) -> Trades:
        """Trades of a parameter value on the bars of a window that may teach, by exit.

        Only bars that close at or before `end_ns` count; the clock refuses an `end_ns` in the future. What an
        earlier search of the same window has traded is not traded again.
        """
        self.market.clock.check(end_ns)
        changed = definition.parameters[parameter].model_copy(update={"value": value})
        variant = definition.model_copy(update={"parameters": {**definition.parameters, parameter: changed}})
        closes = self.market.bars.close_times
        start = int(np.searchsorted(closes, start_ns, side="left"))
        stop = int(np.searchsorted(closes, end_ns, side="right"))
        window = definition.content_hash, start
        if self._searched.get(definition.id, (None,))[0] != window:
            self._searched[definition.id] = window, {}
        new: tuple[ShadowLedger, list[Trades]] = self.open(variant, tuple(variant.rules), start), []
        ledger, seen = self._searched[definition.id][1].setdefault(variant.content_hash, new)
        found, times = ledger.resolve_learnable(stop), self.market.bars.times
        seen.append(Trades(times[found["entry_t"]], times[found["exit_t"]], found["r"]))
        exits = np.concatenate([trades.exit_ns for trades in seen])
        count = int(np.searchsorted(exits, end_ns, side="right"))
        entries, r = (
            np.concatenate([getattr(trades, name) for trades in seen])[:count] for name in ("entry_ns", "r")
        )
        return Trades(entries, exits[:count], r)

    def _list_sides(self, ledger: "ShadowLedger") -> list[Direction]:
        return [side for side in ledger.directions if side in self._envelope.allowed_directions]

    def _new_engine(self, columns: EngineColumns | None = None) -> TriggerEngine:
        bars = self.market.bars
        parameters = parameter_record(
            self._execution, None, heartbeat=0, emit_events=False, fixed_quantity=1.0
        )
        parameters["cooldown"] = self._envelope.cooldown_bars
        flags = np.zeros(bars.shape, dtype=np.uint8)
        return TriggerEngine(
            bars,
            flags,
            parameters,
            UNLIMITED_CASH,
            TickGuard(),
            TickEventDecoder(bars, "", "shadow"),
            columns=columns,
        )

    def _eligible(
        self, eligibility: Eligibility, regime_key: str | None, rows: slice
    ) -> npt.NDArray[np.bool_]:
        """Bool (n, S): where the regime allows the playbook; a given cell counts even while it is banned."""
        regimes = self.market.regimes
        trend = np.isin(regimes.trend[rows], [TRENDS.index(label) for label in eligibility.trend])
        band = np.isin(regimes.volatility[rows], [BANDS.index(label) for label in eligibility.volatility])
        structures = [STRUCTURES.index(label) for label in eligibility.structure]
        allowed = trend & band & np.isin(regimes.structure[rows], structures)
        allowed |= eligibility.is_open and regime_key is None
        if regime_key is not None:
            return allowed & self._in_cell(regime_key, rows)
        for key in eligibility.banned:
            allowed &= ~self._in_cell(key, rows)
        return allowed

    def _in_cell(self, key: str, rows: slice) -> npt.NDArray[np.bool_]:
        trend, band = key.split("/")
        cell: npt.NDArray[np.bool_] = self.market.regimes.trend[rows] == TRENDS.index(Trend(trend))
        cell &= self.market.regimes.volatility[rows] == BANDS.index(VolatilityBand(band))
        return cell

    def _orders(
        self, ledger: "ShadowLedger", direction: Direction, bank: EngineColumns, rows: slice
    ) -> Iterator[tuple[int, PolicyOrders]]:
        """Orders of each symbol that is traded, whose rules stand in `bank` for these rows."""
        bars, definition = self.market.bars, ledger.definition
        rules = render_rules(definition, direction)
        columns = _RowsOfRules(bars, self.market.columns.features, rows)
        eligible = self._eligible(definition.eligibility[direction], ledger.regime_key, rows)
        allowed = self._envelope.allowed_symbols or bars.symbols
        for s in [s for s, symbol in enumerate(bars.symbols) if symbol in allowed]:
            setup = (columns.boolean(rules.setup, s) == 1) & eligible[:, s]
            yield (
                s,
                compile_orders(
                    rules,
                    definition,
                    SymbolColumns(columns, bank, s),
                    tag=PolicyTag(definition.content_hash[:16], definition.id),
                    direction=direction,
                    window=definition.activation_window_bars,
                    horizon=definition.horizon_bars,
                    risk_fraction=definition.risk_fraction,
                    setup=bank.truth(("eligible setup", s), setup.astype(np.int8)),
                    never_ends=True,
                ),
            )


class _RowsOfRules(RuleColumns):
    """Rules over a few rows, equal to those of their columns, which are not made: nobody else reads them."""

    def __init__(self, bars: BarSeries, features: FeatureColumns, rows: slice) -> None:
        super().__init__(bars, features)
        self._rows = rows

    def boolean(self, text: str, s: int) -> npt.NDArray[np.int8]:
        """A condition: int8 (n,)."""
        return self.window(text, s, self._rows.start, self._rows.stop)

    def number(self, text: str, s: int) -> npt.NDArray[np.float64]:
        """A level: float64 (n,)."""
        return self.window(text, s, self._rows.start, self._rows.stop)


class _RowBank:
    """Columns of a few rows, where an engine looks for them; the other cells hold anything."""

    def __init__(self, length: int, rows: slice) -> None:
        self._length, self._rows = length, rows
        self._truths: dict[tuple[str, int], npt.NDArray[np.int8]] = {}
        self._numbers: dict[tuple[str, int], npt.NDArray[np.float64]] = {}

    @cached_property
    def truths(self) -> npt.NDArray[np.int8]:
        """Boolean columns (K, T)."""
        return self._table(self._truths, np.int8)

    @cached_property
    def numbers(self) -> npt.NDArray[np.float64]:
        """Price columns (K, T)."""
        return self._table(self._numbers, np.float64)

    def truth(self, key: tuple[str, int], column: npt.NDArray[np.int8]) -> int:
        """Index of the boolean column of a rule text and symbol."""
        self._truths.setdefault(key, column)
        return list(self._truths).index(key)

    def number(self, key: tuple[str, int], column: npt.NDArray[np.float64]) -> int:
        """Index of the price column of a rule text and symbol."""
        self._numbers.setdefault(key, column)
        return list(self._numbers).index(key)

    def copy(self) -> "_RowBank":
        """Itself: it is written once."""
        return self

    def _table(self, columns: Mapping[Any, npt.NDArray[Any]], dtype: Any) -> npt.NDArray[Any]:
        table = np.empty((len(columns), self._length), dtype)
        for k, column in enumerate(columns.values()):
            table[k, self._rows] = column
        return table


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
    REBUILT = frozenset({"_owner", "_engines", "_rows", "stood", "episodes"})  # episodes come out again

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
        self.stood: dict[Direction, dict[str, Any]] = {}  # of whoever asks for figures alone

    def advance(self, until: int) -> tuple[Episode, ...]:
        """Validate bars up to row `until` (exclusive); the newly resolved episodes, by exit, then symbol."""
        new = tuple(self._episode(trade) for trade in self._advance(until))
        self.episodes += new
        return new

    def resolve_learnable(self, until: int) -> npt.NDArray[Any]:
        """As `advance`, for who asks for figures alone: TRADE records that may teach, no episode made.

        A ledger is asked in one of the two ways; asked in this one it keeps where it stands and no columns.
        """
        start, self._done = max(self._done, self.start_row), max(self._done, until)
        traded = self._owner.trade_on(self, start, until) if start < until else []
        trades, bars, zones = _by_exit(traded), self._owner.market.bars, self._owner.zones
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
        traded = []
        for engine in self._engines:
            while engine.t < until:
                traded.append(engine.advance(until).trades)
        return _by_exit(traded)

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


def _by_exit(traded: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    new = np.concatenate([trades for trades in traded if trades.size] or [np.empty(0, dtype=TRADE)])
    return new[np.lexsort((new["entry_t"], -new["direction"], new["s"], new["exit_t"]))]
