"""Builds the PolicySnapshot of a boundary from the engine, the regime columns, memory and expectations.

It reads rows up to the decision bar only and passes the clock to every reader. Whoever gets the snapshot sees
nothing else of the market.
"""

from collections.abc import Iterable, Sequence
from math import isfinite
from types import MappingProxyType

import numpy as np

from schemas.background import SymbolPosition
from schemas.errors import ConfigError, RuleError
from schemas.playbook import PlaybookDefinition
from schemas.policy import FrozenPolicy
from schemas.reasons import REASON
from schemas.regime import RegimeView
from schemas.snapshot import DataWindow, PolicySnapshot, PositionView, RiskState, SetupCount
from services.claims.subjects import names_for_claims
from services.playbooks.rendering import lookback_of, render_rules, rule_texts
from services.policy_checks.reasons import ALL, ARGUING, REGIME
from services.policy_loop.background import SHOWN_BARS
from services.policy_loop.staleness import AccountState
from services.ports import ExpectationReader, MemoryReader, PlaybookReader
from trading_core.kernel.state_machine import STATES
from trading_core.market import Market
from trading_core.regime import regime_view
from trading_core.rules.columns import RuleColumns
from trading_core.rules.grammar import parse
from trading_core.trigger_engine import Boundary, TriggerEngine

MOST_OTHERS = 30
RAW = ("open", "high", "low", "close", "volume")


class SnapshotBuilder:
    """Builder of one run.

    Args:
        engine: state, bars and portfolio.
        market: where regimes and features stand; its clock refuses anything later than the decision bar.
        definitions: playbooks; a snapshot holds the features that their rules read.
        memory, expectations, playbooks: readers.
        reads: features, or rules, that plans of an own strategist read.
    """

    def __init__(
        self,
        engine: TriggerEngine,
        market: Market,
        definitions: Sequence[PlaybookDefinition],
        memory: MemoryReader,
        expectations: ExpectationReader,
        playbooks: PlaybookReader,
        reads: Sequence[str] = (),
    ) -> None:
        self._engine = engine
        self._market = market
        names = load_columns(market.columns, definitions, reads)
        symbols, features = range(len(market.bars.symbols)), market.columns.features
        self._places = [{name: features.place(name, s).index for name in names} for s in symbols]
        self._memory = memory
        self._expectations = expectations
        self._playbooks = playbooks
        self._first_rows: dict[int, int] = {}
        self._regime_seen: dict[int, tuple[int, RegimeView | None]] = {}  # latest, by symbol

    def regime(self, t: int, s: int) -> RegimeView | None:
        """Regime of symbol `s` at row `t`, None while warming up; final once the row is there."""
        row, view = self._regime_seen.get(s, (-1, None))
        if row != t:
            view = regime_view(self._market.regimes, t, s)
            self._regime_seen[s] = t, view
        return view

    def is_warm(self, t: int, s: int) -> bool:
        """Whether a plan can be made: the regime is known, or rules that ask for none have their bars."""
        if self.regime(t, s) is not None:
            return True
        own = int(self._engine.state[s]["own"])
        found = self._playbooks.eligible(None, self._engine.bars.timeframe)
        return any(lookback_of(playbook, direction) < own for playbook, direction in found)

    def build(
        self,
        boundary: Boundary,
        policy: FrozenPolicy | None,
        opened_by: FrozenPolicy | None,
        setups: tuple[SetupCount, ...],
    ) -> PolicySnapshot:
        """The snapshot of one boundary.

        Args:
            boundary: the boundary.
            policy: the policy in force, if any.
            opened_by: the policy that opened the position, if any.
            setups: what became of the plans so far.
        """
        t, s = boundary.t, boundary.s
        bars, state = self._engine.bars, self._engine.state[s]
        now = int(bars.close_times[t])
        self._market.clock.check(now)
        names = (*boundary.events, *boundary.overrides)
        return PolicySnapshot.trust(
            symbol=bars.symbols[s],
            timeframe=bars.timeframe,
            bar_label=int(bars.times[t]),
            ts_event=now,
            known_at=now,
            close=float(state["last_close"]),
            events=tuple(str(name) for name in names),
            state=boundary.state,
            regime=self.regime(t, s),
            features=MappingProxyType(self._feature_values(t, s)),
            position=self._position(s, opened_by),
            active_policy_id=None if policy is None else policy.policy_id,
            risk=self.risk(),
            base_rates=self._memory.base_rates(now),
            expectations=(
                *(self._expectations.summary(known.definition, now) for known in self._playbooks.active()),
                *self._expectations.own(now),
            ),
            setups=setups,
            data_window=DataWindow.trust(
                first_label=int(bars.times[self._first_row(s)]),
                last_label=int(bars.times[t]),
                bars=int(state["own"]),
            ),
            staleness_bars=int(state["gap"]),
        )

    def account_state(self, s: int) -> AccountState:
        """What an answer about symbol `s` must still find as it is after the last validated bar."""
        state, regime = self._engine.state[s], self.regime(self.last_row(s), s)
        direction = int(state["direction"])
        side = "long" if direction > 0 else "short"
        position = (side, int(state["entry_t"]), float(state["quantity"])) if direction else None
        return AccountState(
            row=self._engine.t - 1,
            state=STATES[int(state["state"])],
            position=position,
            regime=None if regime is None else regime.labels.key,
            halted=self._engine.is_halted(),
            kill_switch=self._kill_switch,
        )

    def others(self, s: int) -> tuple[SymbolPosition, ...]:
        """The other symbols, those with a position first; at most `MOST_OTHERS`."""
        held: list[SymbolPosition] = []
        flat: list[SymbolPosition] = []
        equity, state = float(self._engine.portfolio[0]["equity"]), self._engine.state
        for other, name in enumerate(self._engine.bars.symbols):
            if other == s or not self._engine.bars.present[: self._engine.t, other].any():
                continue
            direction = int(state["direction"][other])
            size = direction * float(state["quantity"][other]) * float(state["last_close"][other])
            regime = self.regime(self.last_row(other), other)
            (held if direction else flat).append(
                SymbolPosition(
                    symbol=name,
                    regime=None if regime is None else f"{regime.labels.key}/{regime.labels.structure}",
                    position=None if direction == 0 else "long" if direction > 0 else "short",
                    exposure=size / equity if direction else 0.0,
                )
            )
        return (*held, *flat)[:MOST_OTHERS]

    def _feature_values(self, t: int, s: int) -> dict[str, float | None]:
        bars, features = self._engine.bars, self._market.columns.features
        values = {name: float(getattr(bars, name)[t, s]) for name in RAW}
        places = self._places[s]
        if t >= features.bank.first:
            values |= zip(places, features.bank.numbers[list(places.values()), t].tolist(), strict=True)
        else:  # the symbol has had no bar for long
            values |= {name: float(features.column(name, s)[t]) for name in places}
        return {name: value if isfinite(value) else None for name, value in values.items()}

    def last_row(self, s: int) -> int:
        """The last validated row in which the symbol has a bar."""
        last, present = self._engine.t - 1, self._engine.bars.present
        if present[last, s]:  # mostly; a search reads every row before it
            return last
        return last - int(np.argmax(present[last::-1, s]))

    def _first_row(self, s: int) -> int:
        """Row of the symbol's first bar; it has one by the time it is asked for."""
        if s not in self._first_rows:
            self._first_rows[s] = int(np.argmax(self._engine.bars.present[:, s]))
        return self._first_rows[s]

    def _position(self, s: int, opened_by: FrozenPolicy | None) -> PositionView | None:
        state = self._engine.state[s]
        direction = int(state["direction"])
        if direction == 0 or opened_by is None:
            return None
        risk, entry = float(state["risk"]), float(state["entry_price"])
        reached = sorted(direction * (float(state[name]) - entry) / risk for name in ("lowest", "highest"))
        return PositionView.trust(
            direction="long" if direction > 0 else "short",
            quantity=float(state["quantity"]),
            entry_price=entry,
            entry_label=int(self._engine.bars.times[int(state["entry_t"])]),
            stop=float(state["stop"]),
            target=float(state["target"]),
            bars_held=int(state["own"] - state["entry_own"]),
            r_now=(float(state["last_close"]) - entry) * direction / risk,
            mae_r=reached[0],
            mfe_r=reached[1],
            playbook_id=opened_by.playbook_id,
            policy_id=opened_by.policy_id,
            thesis=opened_by.proposal.thesis,
        )

    def risk(self) -> RiskState:
        """The portfolio as the envelope sees it after the last validated bar, which left some of it."""
        port = self._engine.portfolio[0]
        equity = float(port["equity"])
        return RiskState.trust(
            equity=equity,
            cash=float(port["cash"]),
            gross_exposure=float(port["gross"]) / equity,
            drawdown=_fall(float(port["peak"]), equity),
            daily_loss=_fall(float(port["day_start"]), equity),
            risk_fraction=float(self._engine.parameters["max_risk"][0]),
            halted=self._engine.is_halted(),
            kill_switch=self._kill_switch,
        )

    @property
    def _kill_switch(self) -> bool:
        return bool(self._engine.portfolio[0]["kill"] == 1)


def _fall(start: float, equity: float) -> float:
    """Share of `start` that is lost; of a start without equity nothing can be."""
    return max(0.0, 1.0 - equity / start) if start > 0.0 else 0.0


def load_columns(
    columns: RuleColumns, definitions: Sequence[PlaybookDefinition], reads: Sequence[str] = ()
) -> tuple[str, ...]:
    """Make every column that a rule of a playbook for these bars needs; the names of the features read.

    Any other rule is computed where it is needed; of `reads`, features or rules, the features are read too.

    Raises:
        ConfigError: a rule reads what the bars do not have; names playbook and rule.
    """
    bars = columns.bars
    for definition in _of_timeframe(definitions, bars.timeframe):
        for direction in definition.rules:
            for role, text in rule_texts(render_rules(definition, direction)).items():
                try:
                    columns.features.check(sorted(parse(text).features))
                except RuleError as error:
                    place = f"playbook {definition.id!r}, rules.{direction}.{role}"
                    raise ConfigError(f"{place}: {error}") from error
    try:
        further = {name for text in reads for name in parse(text).features} - set(RAW)
        columns.features.check(sorted(further))
    except RuleError as error:
        raise ConfigError(f"reads of the strategist: {error}") from error
    names = columns.features.load(tuple(sorted({*feature_names(definitions, bars.timeframe), *further})))
    columns.load(playbook_rules(definitions, bars.timeframe))
    return names


def feature_names(definitions: Sequence[PlaybookDefinition], timeframe: str) -> tuple[str, ...]:
    """Every feature that some rule of some playbook for this timeframe reads, sorted."""
    names = {name for text in playbook_rules(definitions, timeframe) for name in parse(text).features}
    return tuple(sorted(names - {"open", "high", "low", "close", "volume"}))


def names_for_replies(
    definitions: Sequence[PlaybookDefinition], symbols: Iterable[str], timeframe: str
) -> dict[str, tuple[str, ...]]:
    """The names of a run that a model's reply may hold: by field of a claim, and for reasons."""
    own = {name for definition in definitions for name in (definition.id, *definition.parameters)}
    bars = map(str, range(SHOWN_BARS))
    reasons = {*RAW, *feature_names(definitions, timeframe), ALL, *REGIME, *ARGUING, *bars, *own}
    claims = names_for_claims((item.id for item in definitions), symbols)
    return claims | {REASON: tuple(sorted(reasons))}


def playbook_rules(definitions: Sequence[PlaybookDefinition], timeframe: str) -> tuple[str, ...]:
    """Every rule of every playbook for this timeframe, each once, in the order of the files."""
    texts: dict[str, None] = {}
    for definition in _of_timeframe(definitions, timeframe):
        for direction in definition.rules:
            texts.update(dict.fromkeys(rule_texts(render_rules(definition, direction)).values()))
    return tuple(texts)


def _of_timeframe(definitions: Sequence[PlaybookDefinition], timeframe: str) -> list[PlaybookDefinition]:
    return [each for each in definitions if not each.timeframes or timeframe in each.timeframes]
