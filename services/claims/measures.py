"""The table of measures: what each is called, its unit, the digits it is shown with, and where it is read.

A figure of trades is that of all trades of a subject; what the gate says of a cluster has names of its own,
since its means are winsorised and of complete blocks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from schemas.claims import WHOLE, FactRow, Of
from schemas.slow_reflection import HighLevelReflectionReport
from services.claims.words import words_of
from services.evidence.catalogue import CATALOGUE
from services.evidence.facts import Subject, Unit
from services.evidence.observed import Value
from services.evidence.run_facts import Reading, RunFacts
from services.evidence.selection import KnownEpisode

Reader = Callable[[RunFacts, Subject], Reading | None]
HALF = Decimal("0.5")
NOISE = Decimal("1e-9")  # of binary fractions, in units of the last digit
MOST_ROWS = 8
COUNTED = ("trades ", "winning ", "losing ", "longs", "shorts")  # a subject that says what is counted
SCALE: dict[Unit, Decimal] = {"share": Decimal(100)}
SUFFIX: dict[Unit, str] = {"r": "R", "share": " %", "bars": " bars", "bps": " bp"}


@dataclass(frozen=True)
class Figure:
    """A value as it is shown: rounded to `digits` in its unit. R carries its sign."""

    value: float
    unit: Unit
    digits: int

    @property
    def exact(self) -> Decimal:
        """In the unit that is shown, unrounded."""
        return Decimal(self.value) * SCALE.get(self.unit, Decimal(1))

    @property
    def shown(self) -> Decimal:
        """In the unit that is shown, rounded; zero has no sign."""
        rounded = round(Decimal(f"{float(self.exact):.15g}"), self.digits)
        return rounded if rounded else abs(rounded)

    @property
    def text(self) -> str:
        """With its unit, such as `+0.19R`, `43.1 %`, `1,512 days`."""
        return f"{self.shown:{'+' if self.unit == 'r' and self.shown else ''},f}{SUFFIX.get(self.unit, '')}"

    def is_stated_by(self, stated: str) -> bool:
        """Whether it rounds to a number with that number's digits; of two equally near ones, to either.

        A stated zero holds where zero is shown, however many digits it has.
        """
        number = Decimal(stated)
        if not number:
            return not self.shown
        unit = Decimal(1).scaleb(int(number.as_tuple().exponent))
        return abs(self.exact - number) <= unit * (HALF + NOISE)


@dataclass(frozen=True)
class Measure:
    """One measure.

    Attributes:
        noun: as in "the mean R of AAPL".
        digits: behind the point.
        read: its value for a subject, with rows; None where there is none.
        of_trades: whether it is told with the number of trades.
        signed: whether it may be lost, so that its sign says something.
    """

    noun: str
    unit: Unit
    digits: int
    read: Reader
    of_trades: bool = False
    signed: bool = False

    def figure(self, facts: RunFacts, subject: Subject) -> tuple[Figure, tuple[FactRow, ...]] | None:
        """The figure of a subject with its rows; None where there is none."""
        found = self.read(facts, subject)
        return None if found is None else (Figure(found[0], self.unit, self.digits), found[1])


def rows_of(trades: Sequence[KnownEpisode]) -> tuple[FactRow, ...]:
    """Rows of trades: all of a few, the first and the last of many."""
    rows = tuple(known.row for known in trades)
    return rows if len(rows) <= MOST_ROWS else (rows[0], rows[-1])


def _read_trades(name: str) -> Reader:
    def read(facts: RunFacts, subject: Subject) -> Reading | None:
        if (name, subject) not in facts.figures:
            facts.figures[name, subject] = _figure_of(name, facts, subject)
        return facts.figures[name, subject]

    return read


def _figure_of(name: str, facts: RunFacts, subject: Subject) -> Reading | None:
    trades = facts.trades(subject)
    if not facts.episodes and facts.report is not None and facts.report.n_episodes:
        return None  # of a report alone: its trades are not at hand
    if not trades:
        return (0.0, ()) if OF_TRADES[name]["unit"] == "count" else None
    value = CATALOGUE[name]([known.episode for known in trades])
    return None if value is None else (value, rows_of(trades))


def _read_cluster(field: str) -> Reader:
    def read(facts: RunFacts, subject: Subject) -> Reading | None:
        found = facts.cluster(subject)
        value = None if found is None else getattr(found, field)
        return None if value is None else (float(value), (facts.report_row,))

    return read


def _read_run(name: str) -> Reader:
    return lambda facts, subject: _with_rows(facts.of_run(name, subject))


def _read_close(facts: RunFacts, subject: Subject) -> Reading | None:
    return _with_rows(facts.observed.close(subject))


def _with_rows(found: Value | None) -> Reading | None:
    return None if found is None else (found[0], (found[1],))


def _read_report(value_of: Callable[[HighLevelReflectionReport], float | None]) -> Reader:
    def read(facts: RunFacts, subject: Subject) -> Reading | None:
        value = None if facts.report is None or not subject.is_empty else value_of(facts.report)
        return None if value is None else (float(value), (facts.report_row,))

    return read


def _trades(noun: str, unit: Unit, digits: int, *, signed: bool = False) -> dict[str, Any]:
    return {"noun": noun, "unit": unit, "digits": digits, "of_trades": unit != "count", "signed": signed}


OF_TRADES: dict[str, dict[str, Any]] = {
    "trades": _trades("number of trades", "count", 0),
    "winners": _trades("number of winners", "count", 0),
    "losers": _trades("number of losers", "count", 0),
    "longs": _trades("number of longs", "count", 0),
    "shorts": _trades("number of shorts", "count", 0),
    "win_rate": _trades("share of winners", "share", 1),
    "loss_rate": _trades("share of losers", "share", 1),
    "mean_r": _trades("mean R", "r", 2, signed=True),
    "median_r": _trades("median R", "r", 2, signed=True),
    "total_r": _trades("total R", "r", 1, signed=True),
    "best_r": _trades("best R", "r", 2, signed=True),
    "worst_r": _trades("worst R", "r", 2, signed=True),
    "profit_factor": _trades("profit factor in R", "score", 2),
    "hold_mean": _trades("mean hold", "bars", 1),
    "hold_p50": _trades("median hold", "bars", 1),
    "hold_max": _trades("longest hold", "bars", 0),
    "hold_min": _trades("shortest hold", "bars", 0),
    "mean_mae": _trades("mean adverse excursion", "r", 2),
    "mean_mfe": _trades("mean favourable excursion", "r", 2),
    "worst_mae": _trades("largest adverse excursion", "r", 2),
    "best_mfe": _trades("largest favourable excursion", "r", 2),
    "mfe_p50": _trades("median favourable excursion", "r", 2),
    "pnl": _trades("profit after costs", "money", 2, signed=True),
    "gross_pnl": _trades("profit before costs", "money", 2, signed=True),
    "mean_pnl": _trades("mean profit", "money", 2, signed=True),
    "best_pnl": _trades("best profit", "money", 2, signed=True),
    "worst_pnl": _trades("worst profit", "money", 2, signed=True),
    "fees": _trades("sum of fees", "money", 2),
    "mean_fees": _trades("mean fee", "money", 2),
}
CLUSTER, RUN = _read_cluster, _read_run
MEASURES: dict[str, Measure] = {
    **{name: Measure(read=_read_trades(name), **shown) for name, shown in OF_TRADES.items()},
    "gate_trades": Measure("number of graded trades", "count", 0, CLUSTER("n")),
    "blocks": Measure("number of complete blocks", "count", 0, CLUSTER("blocks")),
    "gate_mean_r": Measure("mean R of the gate", "r", 2, CLUSTER("mean_r"), signed=True),
    "lower_r": Measure("lower end of the interval", "r", 2, CLUSTER("lower_r"), signed=True),
    "upper_r": Measure("upper end of the interval", "r", 2, CLUSTER("upper_r"), signed=True),
    "e_value": Measure("e-value", "score", 2, CLUSTER("e_value")),
    "detectable_r": Measure("smallest detectable effect", "r", 2, CLUSTER("smallest_detectable_r")),
    "hold_p90": Measure("hold at P90", "bars", 1, CLUSTER("hold_p90_bars")),
    "mae_p80": Measure("adverse excursion at P80", "r", 2, CLUSTER("mae_p80_r")),
    "psr": Measure("PSR", "score", 2, CLUSTER("psr")),
    "dsr": Measure("DSR", "score", 2, CLUSTER("dsr")),
    "track_record": Measure("minimum track record", "count", 0, CLUSTER("minimum_track_record")),
    "expected_hold_p50": Measure("expected median hold", "bars", 1, RUN("expected_hold_p50")),
    "expected_hold_p90": Measure("expected hold at P90", "bars", 1, RUN("expected_hold_p90")),
    "expected_mae_p80": Measure("expected adverse excursion at P80", "r", 2, RUN("expected_mae_p80")),
    "expected_mfe_p50": Measure("expected favourable excursion", "r", 2, RUN("expected_mfe_p50")),
    "equity": Measure("equity", "money", 2, RUN("equity")),
    "cash": Measure("cash", "money", 2, RUN("cash")),
    "drawdown": Measure("present drawdown", "share", 1, RUN("drawdown")),
    "max_drawdown": Measure("largest drawdown", "share", 1, RUN("max_drawdown")),
    "exposure": Measure("gross exposure", "share", 1, RUN("exposure")),
    "volatility": Measure("volatility", "share", 1, RUN("volatility")),
    "account_return": Measure("return", "share", 1, RUN("account_return"), signed=True),
    "buy_and_hold": Measure("return of buy and hold", "share", 1, RUN("buy_and_hold"), signed=True),
    "cagr": Measure("CAGR", "share", 1, RUN("cagr"), signed=True),
    "sharpe": Measure("Sharpe ratio", "score", 2, RUN("sharpe"), signed=True),
    "sortino": Measure("Sortino ratio", "score", 2, RUN("sortino"), signed=True),
    "calmar": Measure("Calmar ratio", "score", 2, RUN("calmar"), signed=True),
    "drawdown_days": Measure("number of days under water", "count", 0, RUN("drawdown_days")),
    "open_positions": Measure("number of open positions", "count", 0, RUN("open_positions")),
    "evaluations": Measure("number of evaluations", "count", 0, RUN("evaluations")),
    "proposals": Measure("number of proposals", "count", 0, RUN("proposals")),
    "sent_back": Measure("number of proposals sent back", "count", 0, RUN("sent_back")),
    "stand_downs": Measure("number of stand-downs", "count", 0, RUN("stand_downs")),
    "reports": Measure("number of reports", "count", 0, RUN("reports")),
    "recommendations": Measure("number of recommendations", "count", 0, RUN("recommendations")),
    "fee_bps": Measure("fee of a side", "bps", 1, RUN("fee_bps")),
    "slippage_bps": Measure("slippage of a side", "bps", 1, RUN("slippage_bps")),
    "close": Measure("newest close", "price", 2, _read_close),
    "report_trades": Measure(
        "number of trades of the report", "count", 0, _read_report(lambda report: report.n_episodes)
    ),
    "expectation_misses": Measure(
        "number of playbooks off their expectation",
        "count",
        0,
        _read_report(lambda report: sum(bool(check.missed) for check in report.expectations)),
    ),
    "decay_alarms": Measure(
        "number of decay alarms",
        "count",
        0,
        _read_report(lambda report: sum(level.alarmed for level in report.decay)),
    ),
    "regime_shift_p": Measure(
        "p-value of the regime shift",
        "score",
        2,
        _read_report(lambda report: report.regime_shift.p_value if report.regime_shift else None),
    ),
    "unclassified_share": Measure(
        "share of losers without a failure mode",
        "share",
        1,
        _read_report(lambda report: report.unclassified_share),
    ),
}


def name_measure(name: str, of: Of) -> str:
    """What is measured, in words: "the mean R of AAPL"; of the whole run nothing is said."""
    noun, words = MEASURES[name].noun, words_of(of)
    if of == WHOLE:
        return f"the {noun}"
    if name not in OF_TRADES and of == Of(period=of.period):
        return f"the {noun} in {words.removeprefix('trades in ')}"
    if name == "trades" and words.startswith(COUNTED):
        return f"the number of {words}"
    return f"the {noun} of {words}"
