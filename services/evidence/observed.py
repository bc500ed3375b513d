"""What a run saw beside its trades: bars in its snapshots, the account at each, and trials on paper.

An account figure is that of the newest snapshot within a time; a feature is that of the one snapshot that a
trade, or a symbol on a day, names. Where several would answer, nothing does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from schemas.claims import FactRow
from services.evidence.facts import ANY_TRIAL, Subject

RISK = {"equity": "equity", "cash": "cash", "drawdown": "drawdown", "exposure": "gross_exposure"}
SETTINGS = ("fee_bps", "slippage_bps", "risk_fraction")
ACCOUNT = ("equity", "cash", "drawdown", "max_drawdown", "exposure", "account_return", "start_cash")
# Question of the catalogue -> fields of a trial that answer it.
OF_A_TRIAL = {
    "trades": ("n",),
    "blocks": ("blocks",),
    "mean_r": ("mean_r", "mean_raw_r"),
    "e_value": ("e_value",),
    "e_gaining": ("e_value",),
    "e_needed": ("e_needed",),
    "parameter": ("value",),
}
# Question -> figure of the document of a run that is over.
AT_THE_END = {
    "account_return": ("net_return", "total_return"),
    "max_drawdown": ("max_drawdown",),
    "fees": ("fees",),
    "profit_factor": ("profit_factor",),
    "sharpe": ("sharpe",), "sortino": ("sortino",), "calmar": ("calmar",), "payoff": ("payoff",),
    "buy_and_hold": ("buy_and_hold_return",), "cagr": ("cagr",), "volatility": ("volatility",),
    "drawdown_days": ("drawdown_days",), "open_positions": ("open_positions",), "proposals": ("propose",),
    "sent_back": ("revise",), "let_pass": ("pass",), "stand_downs": ("stand_downs",),
    "evaluations": ("evaluations",),
}  # fmt: skip
Value = tuple[float, FactRow]


@dataclass(frozen=True)
class KnownSnapshot:
    """A bar with its features, and the account at its close; fractions of equity."""

    symbol: str
    label: int
    features: Mapping[str, float | None]
    account: Mapping[str, float]
    row: FactRow

    @classmethod
    def of(cls, told: Mapping[str, Any], row: FactRow) -> "KnownSnapshot":
        """A snapshot from its plain data."""
        account = {name: float(told["risk"][field]) for name, field in RISK.items()}
        features = {**told["features"], "close": told["close"]}
        return cls(told["symbol"], told["bar_label"], features, account, row)


@dataclass(frozen=True)
class KnownTrial:
    """What one trial on paper had shown last."""

    shown: Mapping[str, Any]
    row: FactRow


@dataclass(frozen=True)
class Observed:
    """Snapshots oldest first, trials of the newest row, and what a run that is over says of its account.

    Attributes:
        of_policy: the snapshot behind each policy, by policy id.
        cash: of the account at the start; None where it is not known.
        settings: of the run, by name of the question that each one answers.
        ended: figures of the document of the run, only as of its end.
        end_row: where the run ended.
    """

    snapshots: tuple[KnownSnapshot, ...] = ()
    of_policy: Mapping[str, KnownSnapshot] = field(default_factory=dict)
    trials: tuple[KnownTrial, ...] = ()
    cash: float | None = None
    settings: Mapping[str, float] = field(default_factory=dict)
    ended: Mapping[str, float] = field(default_factory=dict)
    end_row: FactRow = FactRow(seq=None, kind="run_finished")

    @cached_property
    def features(self) -> frozenset[str]:
        """Names of features that a snapshot has."""
        return frozenset(name for snapshot in self.snapshots for name in snapshot.features)

    def as_of(self, moment: int) -> "Observed":
        """What was seen by a moment in ns; of trials the newest row alone is known."""
        return Observed(
            tuple(item for item in self.snapshots if item.label <= moment),
            {name: item for name, item in self.of_policy.items() if item.label <= moment},
            cash=self.cash,
            settings=self.settings,
        )

    def of_account(self, question: str, subject: Subject) -> list[Value]:
        """Figures of the whole account; none of a part of it."""
        if not subject.fields <= {"period", "basis"}:
            return []
        if subject.period is None and question in AT_THE_END and self.ended:
            return [(self.ended[name], self.end_row) for name in AT_THE_END[question] if name in self.ended]
        if question in SETTINGS:
            value = self.settings.get(question)
            return [] if value is None else [(value, FactRow(seq=None, kind="genesis"))]
        if question == "start_cash":
            return [] if self.cash is None else [(float(self.cash), self.end_row)]
        if subject.period is None and question == "equity" and self.ended and self.cash is not None:
            return [(self.cash * (1.0 + self.ended["total_return"]), self.end_row)]
        seen = self._within(subject.period)
        if not seen:
            return []
        account = seen[-1].account
        if question == "account_return" and subject.period is None and self.cash is not None:
            return [(account["equity"] / self.cash - 1.0, seen[-1].row)]  # since the start, so of no period
        return [(account[question], seen[-1].row)] if question in account else []

    def of_bar(self, subject: Subject, policies: Sequence[str]) -> list[Value]:
        """A feature in the one snapshot that is meant; `policies` are those of the trades of the subject."""
        if subject.episode is not None or subject.order is not None:
            seen = [self.of_policy[name] for name in policies if name in self.of_policy]
        else:
            alone = subject.symbol is None and len(self.snapshots) == 1
            named = [item for item in self._within(subject.period) if alone or item.symbol == subject.symbol]
            seen = named if subject.period is not None else named[-1:]
        asked = str(subject.feature)
        names = {name for item in seen for name in item.features if name == asked or _is_of(name, asked)}
        if len(seen) != 1 or len(names) != 1:
            return []
        value = seen[0].features[names.pop()]
        return [] if value is None else [(value, seen[0].row)]

    def of_trial(self, question: str, subject: Subject) -> list[Value]:
        """What the trials of a subject had shown; none where several are meant."""
        found = [item for item in self.trials if _is_meant(item.shown, subject)]
        names = OF_A_TRIAL.get(question, ())
        shown = found[0].shown if len(found) == 1 else {}
        return [(float(shown[name]), found[0].row) for name in names if shown.get(name) is not None]

    def find_row(self, period: tuple[int, int], subject: Subject) -> FactRow | None:
        """The row of a snapshot within a time: of the account, or of a bar of the symbol that is named."""
        if not subject.fields <= {"symbol", "feature"}:
            return None
        named = (s.row for s in self._within(period) if subject.symbol in (None, s.symbol))
        return next(named, None)

    def _within(self, period: tuple[int, int] | None) -> Sequence[KnownSnapshot]:
        if period is None:
            return self.snapshots
        return [item for item in self.snapshots if period[0] <= item.label < period[1]]


def _is_of(name: str, family: str) -> bool:
    """Whether a feature is of a family with one length: `atr_14` of `atr`."""
    stem, _, length = name.rpartition("_")
    return stem == family and length.isdigit()


def _is_meant(shown: Mapping[str, Any], subject: Subject) -> bool:
    named = {"playbook_id": subject.playbook, "parameter": subject.parameter, "regime": subject.regime}
    if subject.trial not in (ANY_TRIAL, shown["kind"]):
        return False
    return all(asked in (None, shown.get(field)) for field, asked in named.items())
