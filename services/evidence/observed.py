"""What a run saw beside its trades: bars in its snapshots, and the account at each.

An account figure is that of the newest snapshot within a time; a close is that of the newest snapshot of a
symbol, or of the one within a time. Where several would answer, nothing does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.claims import FactRow
from services.evidence.facts import Subject

RISK = {"equity": "equity", "cash": "cash", "drawdown": "drawdown", "exposure": "gross_exposure"}
SETTINGS = ("fee_bps", "slippage_bps")
# Question -> figure of the document of a run that is over.
AT_THE_END = {
    "account_return": "net_return", "max_drawdown": "max_drawdown", "buy_and_hold": "buy_and_hold_return",
    "cagr": "cagr", "volatility": "volatility", "sharpe": "sharpe", "sortino": "sortino", "calmar": "calmar",
    "drawdown_days": "drawdown_days", "open_positions": "open_positions", "proposals": "propose",
    "sent_back": "revise", "stand_downs": "stand_downs", "evaluations": "evaluations",
}  # fmt: skip
Value = tuple[float, FactRow]
DAY_NS = 86_400 * 1_000_000_000


@dataclass(frozen=True)
class KnownSnapshot:
    """The close of a bar, and the account then; fractions of equity."""

    symbol: str
    label: int
    close: float
    account: Mapping[str, float]
    row: FactRow

    @classmethod
    def of(cls, payload: Mapping[str, Any], row: FactRow) -> "KnownSnapshot":
        """A snapshot from its plain data."""
        account = {name: float(payload["risk"][field]) for name, field in RISK.items()}
        return cls(payload["symbol"], payload["bar_label"], float(payload["close"]), account, row)


@dataclass(frozen=True)
class Observed:
    """Snapshots oldest first, and what a run that is over says of its account.

    Attributes:
        cash: of the account at the start; None where it is not known.
        settings: of the run, by name of the question that each one answers.
        ended: figures of the document of the run, only as of its end.
        end_row: where the run ended.
    """

    snapshots: tuple[KnownSnapshot, ...] = ()
    cash: float | None = None
    settings: Mapping[str, float] = field(default_factory=dict)
    ended: Mapping[str, float] = field(default_factory=dict)
    end_row: FactRow = FactRow(seq=None, kind="run_finished")

    def of_account(self, question: str, subject: Subject) -> Value | None:
        """A figure of the whole account; None of a part of it, and of a time in which it has many values."""
        if not subject.fields <= {"period"}:
            return None
        if subject.period is not None and subject.period[1] - subject.period[0] > DAY_NS:
            return None
        if question in SETTINGS:
            value = self.settings.get(question)
            return None if value is None else (value, FactRow(seq=None, kind="genesis"))
        if subject.period is None and self.ended:
            if question in AT_THE_END:
                value = self.ended.get(AT_THE_END[question])
                return None if value is None else (value, self.end_row)
            if question == "equity" and self.cash is not None:
                return self.cash * (1.0 + self.ended["total_return"]), self.end_row
        seen = self._within(subject.period)
        if not seen:
            return None
        account, row = seen[-1].account, seen[-1].row
        if question == "account_return" and subject.period is None and self.cash is not None:
            return account["equity"] / self.cash - 1.0, row  # since the start, so of no period
        return (account[question], row) if question in account else None

    def close(self, subject: Subject) -> Value | None:
        """The close of a symbol: the newest one, or the only one within a time."""
        if subject.symbol is None or not subject.fields <= {"symbol", "period"}:
            return None
        named = [item for item in self._within(subject.period) if item.symbol == subject.symbol]
        seen = named if subject.period is not None else named[-1:]
        return (seen[0].close, seen[0].row) if len(seen) == 1 else None

    def _within(self, period: tuple[int, int] | None) -> Sequence[KnownSnapshot]:
        if period is None:
            return self.snapshots
        return [item for item in self.snapshots if period[0] <= item.label < period[1]]
