"""Where the signals of a run went: at how many closes each entry rule was true, and what became of each.

Signals that met a plan, and those that did not by reason, add up to the closes at which the rule was true.
A pure function of a run as it stands; it reads columns that are there and what the run logged, and simulates
nothing but the rules alone.
"""

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from schemas.playbook import Eligibility, PlaybookDefinition, PlaybookVersion
from schemas.settings import Settings
from schemas.vocabulary import DIRECTIONS, Direction, VersionState
from services.playbooks.registry import PlaybookRegistry
from services.playbooks.rendering import render_rules
from services.policy_loop.signal_log import JUDGE, SignalLog, Standing
from services.slow_loop.shadow_ledger import ShadowLedgers
from trading_core.features.nodes import VOLUME, Node
from trading_core.features.registry import resolve
from trading_core.market import Market
from trading_core.rules.grammar import parse

Rows = npt.NDArray[np.int64]
Reason = tuple[str, str]  # why a signal met no plan, and what exactly
HALTS = frozenset({"kill_switch", "trading_halted"})
MET, OTHER_SETUP = ("met", ""), ("plan_setup_not_true", "")


@dataclass(frozen=True)
class EntryRule:
    """One direction of a playbook version, and the rows at which it was the active one."""

    definition: PlaybookDefinition
    direction: Direction
    start: int
    stop: int

    @property
    def setup(self) -> str:
        """The condition, with the values of its parameters."""
        return render_rules(self.definition, self.direction).setup


@dataclass(frozen=True)
class SignalAccount:
    """The account of one run, of the rows before `done`."""

    settings: Settings
    market: Market
    registry: PlaybookRegistry
    log: SignalLog
    done: int

    def document(self) -> dict[str, Any]:
        """The `signals` part of the run's JSON document."""
        names = dict.fromkeys(version.definition.id for version in self.registry.history())
        return {
            "playbooks": [*(self._playbook(name) for name in sorted(names)), *self._own_plans(names)],
            "orders_refused": dict(self.log.refusals.most_common()),
        }

    def _playbook(self, name: str) -> dict[str, Any]:
        history = self.registry.history(name)
        rules = list(self._rules(history))
        sides = {side: self._count([rule for rule in rules if rule.direction == side]) for side in DIRECTIONS}
        declared: dict[str, Counter[Reason]] = {
            side: counts for side, counts in sides.items() if side in history[0].definition.rules
        }
        found = sum(sides.values(), Counter())
        return _account(name, found, declared) | {
            "never_true": None if found else self._why_never(rules),
            "rules_alone_trades": self._trades_alone(history[0].definition) if found else 0,
        }

    def _own_plans(self, playbooks: Container[str]) -> Iterator[dict[str, Any]]:
        """Of plans with their own rules, the closes at which the setup was true of one that was in force."""
        found: dict[str, dict[str, Counter[Reason]]] = {}
        for symbol, marks in sorted(self.log.marks.items()):
            s, ends = self.market.bars.symbols.index(symbol), [*(row for row, _ in marks[1:]), self.done]
            for (row, place), end in zip(marks, ends, strict=True):
                standing = self.log.standings[place]
                if standing.plan is None or standing.plan[0] in playbooks:
                    continue
                name, side = standing.plan
                fires = self.market.columns.boolean(standing.setup, s)[row : min(end, self.done)] == 1
                armed = {at for at, *owner in self.log.armed.get(symbol, ()) if owner == [name, side]}
                met = sum(int(row + at) in armed for at in np.flatnonzero(fires))
                missed = standing.held or "invalidation_true", ""
                counts = found.setdefault(name, {}).setdefault(side, Counter())
                counts.update({MET: met, missed: int(fires.sum()) - met})
        for name, sides in sorted(found.items()):
            counts = sum(sides.values(), Counter())
            never = None if counts else "not_in_force"
            yield _account(name, counts, sides) | {"never_true": never, "rules_alone_trades": None}

    def _rules(self, history: tuple[PlaybookVersion, ...]) -> Iterator[EntryRule]:
        """Entry rules with the rows at which they were active, history left out."""
        closes, first = self.market.bars.close_times[: self.done], self.log.first_row
        for number, version in enumerate(history):
            if version.state is not VersionState.ACTIVE:
                continue
            begun = 0 if number == 0 else int(np.searchsorted(closes, version.since, side="right"))
            left = [
                later.since
                for later in history[number + 1 :]
                if later.definition.content_hash == version.definition.content_hash
            ]
            ended = int(np.searchsorted(closes, left[0], side="right")) if left else self.done
            for direction in DIRECTIONS:
                if direction in version.definition.rules:
                    yield EntryRule(version.definition, direction, max(begun, first), ended)

    def _count(self, rules: list[EntryRule]) -> Counter[Reason]:
        counts: Counter[Reason] = Counter()
        for rule in rules:
            for s in range(len(self.market.bars.symbols)):
                rows = self._rows(rule, s)
                if rows.size:
                    counts.update(self._count_rows(rule, s, rows))
        return counts

    def _rows(self, rule: EntryRule, s: int) -> Rows:
        column = self.market.columns.boolean(rule.setup, s)
        return rule.start + np.flatnonzero(column[rule.start : rule.stop] == 1)

    def _count_rows(self, rule: EntryRule, s: int, rows: Rows) -> Counter[Reason]:
        symbol, log = self.market.bars.symbols[s], self.log
        armed = [
            row for row, *owner in log.armed.get(symbol, ()) if owner == [rule.definition.id, rule.direction]
        ]
        met = np.isin(rows, armed)
        counts = Counter({MET: int(met.sum())})
        rows = rows[~met]
        if (barred := self._why_barred(rule, symbol)) is not None:
            return counts + Counter({("not_eligible", barred): rows.size})
        cold, marks = ~self._is_warm[rows, s], log.marks.get(symbol, [])
        if rule.definition.eligibility[rule.direction].is_open and marks:
            cold &= rows < marks[0][0]
        counts["warming_up", "no_regime"] = int(cold.sum())
        rows = rows[~cold]
        begun = np.array([row for row, _ in marks], dtype=np.int64)
        places = np.array([-1, *(place for _, place in marks)])[np.searchsorted(begun, rows, side="right")]
        found, sizes = np.unique(places, return_counts=True)
        for place, count in zip(found.tolist(), sizes.tolist(), strict=True):
            standing = log.standings[place] if place >= 0 else Standing()
            reason = _why(rule, standing)
            if reason == OTHER_SETUP:
                fires = self.market.columns.boolean(standing.setup, s)[rows[places == place]] == 1
                counts["invalidation_true", ""] += int(fires.sum())
                count -= int(fires.sum())
            counts[reason] += count
        return +counts

    def _why_barred(self, rule: EntryRule, symbol: str) -> str | None:
        book, envelope = rule.definition, self.settings.envelope
        checks = {
            "enabled": book.enabled,
            "timeframes": not book.timeframes or self.market.bars.timeframe in book.timeframes,
            "eligibility": rule.direction in book.eligibility,
            "allowed_directions": rule.direction in envelope.allowed_directions,
            "allowed_playbooks": not envelope.allowed_playbooks or book.id in envelope.allowed_playbooks,
            "allowed_symbols": not envelope.allowed_symbols or symbol in envelope.allowed_symbols,
        }
        return next((name for name, holds in checks.items() if not holds), None)

    @cached_property
    def _is_warm(self) -> npt.NDArray[np.bool_]:
        """(T, S): where a regime is known, without which nothing is planned."""
        regimes = self.market.regimes
        known = (regimes.trend >= 0) & (regimes.volatility >= 0) & (regimes.structure >= 0)
        warm: npt.NDArray[np.bool_] = known & np.isfinite(regimes.fingerprint).all(axis=2)
        return warm

    def _why_never(self, rules: list[EntryRule]) -> str:
        """Why no entry rule of a playbook was true: no bar of the run, its volume, bars, or the market."""
        if self.log.first_row >= self.done:
            return "history"
        symbols = range(len(self.market.bars.symbols))
        features = {name for rule in rules for name in parse(rule.setup).features}
        volume = self.market.bars.volume[: self.done]
        if not (volume > 0.0).any() and any(_reads_volume(resolve(name).node) for name in features):
            return "volume_is_unknown" if np.isnan(volume).all() else "volume_is_zero"
        columns = self.market.columns
        known = any(
            (columns.boolean(rule.setup, s)[: self.done] >= 0).any() for rule in rules for s in symbols
        )
        return "false" if known else "unknown"

    def _trades_alone(self, definition: PlaybookDefinition) -> int:
        """Trades closed by the rules of a version alone, at one unit, see `ShadowLedger`."""
        ledgers = ShadowLedgers(self.market, self.settings.execution, self.settings.envelope)
        trades = 0
        for side in definition.eligibility:
            for engine in ledgers.engines(ledgers.open(definition, (side,), self.log.first_row)):
                while engine.t < self.done:
                    trades += len(engine.advance(self.done).trades)
        return trades


def _account(name: str, found: Counter[Reason], sides: Mapping[str, Counter[Reason]]) -> dict[str, Any]:
    because: dict[str, dict[str, int]] = {}
    for (reason, detail), count in found.most_common():
        if detail:
            because.setdefault(reason, {})[detail] = count
    parts = {side: _part(counts) for side, counts in sorted(sides.items())}
    return {"playbook": name, **_part(found), "because": because, "directions": parts}


def _part(counts: Counter[Reason]) -> dict[str, Any]:
    """Closes at which a rule was true, those that met a plan, and the others by reason, most first."""
    not_met: Counter[str] = Counter()
    for (reason, _), count in counts.items():
        not_met[reason] += count
    met = not_met.pop("met", 0)
    ordered = sorted(not_met.items(), key=lambda item: (-item[1], item[0]))
    return {"entry_rule_true": counts.total(), "met": met, "not_met": {name: n for name, n in ordered if n}}


def _why(rule: EntryRule, standing: Standing) -> Reason:
    own = rule.definition.id, rule.direction
    if standing.held:
        return standing.held, ""
    if standing.plan == own:
        return OTHER_SETUP
    codes = {(playbook, direction): code for playbook, direction, code in standing.refused}
    if (code := codes.get(own)) is not None:
        if code in HALTS:
            return "blocked", code
        return (code, "") if code == JUDGE else ("sent_back", code)
    if standing.regime and (label := _outside(rule.definition.eligibility[rule.direction], standing.regime)):
        return "not_eligible", label
    if standing.plan is not None:
        return "other_plan", " ".join(standing.plan)
    return "no_policy", standing.ended or "no_evaluation"


def _reads_volume(node: Node) -> bool:
    return node == VOLUME or any(_reads_volume(part) for part in node.inputs)


def _outside(eligibility: Eligibility, regime: str) -> str | None:
    """The first label of a regime that an entry rule is not eligible in; None: it is."""
    trend, volatility, structure = regime.split("/")
    axes = {"trend": trend, "volatility": volatility, "structure": structure}
    barred = (f"{axis} {label}" for axis, label in axes.items() if label not in getattr(eligibility, axis))
    banned = f"{trend}/{volatility}"
    return next(barred, f"banned {banned}" if banned in eligibility.banned else None)
