"""What the top of a run's page says, from the document of the run: cards, warnings, tables of groups."""

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from schemas.canonical import content_id
from schemas.playbook import LONGEST_HORIZON, Expectation, PlaybookVersion
from schemas.trials import TrialLedger
from services.model_calls.quoting import count_noun
from worker.pages.figures import DASH, counts, number, percent, r_multiple, shown_time
from worker.pages.run_picture import DAY_NS, RunPicture

Card = tuple[str, str, str]  # name, value, what it means
MOST_DOUBTS = 8


def _whole(value: float | None) -> str:
    return number(value, 0)


def _interval(value: tuple[float, float] | None) -> str:
    return DASH if value is None else f"{number(value[0])} to {number(value[1])}"


Figure = tuple[str, str, Callable[[Any], str], str]  # key, name, how it is shown, what it means
FIGURES: Mapping[str, tuple[Figure, ...]] = {
    "Result": (
        ("total_return", "return", percent, "last equity over starting cash, less one"),
        ("cagr", "CAGR", percent, "compound growth a year"),
        ("sharpe", "Sharpe", number, "mean over standard deviation of returns, a year; no risk-free rate"),
        ("sharpe_interval", "Sharpe, 95 %", _interval, "where the true one lies, 19 times of 20"),
        ("sortino", "Sortino", number, "as Sharpe, over losses alone"),
        ("calmar", "Calmar", number, "growth a year over the largest drawdown"),
    ),
    "What the account risked": (
        ("risk_per_trade", "risked a trade, at most", percent, "share of equity lost where the stop is hit"),
        ("exposure", "in the market", percent, "share of bars at whose close a position was open"),
        ("mean_exposure", "invested, on average", percent, "positions over equity, mean of all closes"),
        ("max_drawdown", "largest drawdown", percent, "largest fall from a peak of equity"),
        ("drawdown_days", "days under water", _whole, "longest time from a peak until it was reached again"),
        ("volatility", "volatility", percent, "standard deviation of returns, a year"),
    ),
    "Beside buy and hold": (
        ("buy_and_hold_return", "buy and hold", percent, "equal money in each symbol from its first bar"),
        ("buy_and_hold_drawdown", "its drawdown", percent, "largest fall of buy and hold from a peak"),
        ("buy_and_hold_sharpe", "its Sharpe", number, "of buy and hold"),
        ("exposed_hold_return", "at the run's exposure", percent, "buy and hold with as much invested"),
        ("exposed_hold_drawdown", "its drawdown", percent, "largest fall of that one"),
        ("beta", "beta", number, "how much of a move of buy and hold the run made"),
        ("alpha", "alpha a year", percent, "return that beta does not explain"),
        ("alpha_t", "t of alpha", number, "beyond 2 either way it is hardly chance"),
    ),
    "Trades": (
        ("trades", "trades", number, "closed positions"),
        ("win_rate", "won", percent, "share of trades with R above zero"),
        ("expectancy_r", "expectancy", r_multiple, "mean of a trade, in multiples of what it risked"),
        ("profit_factor", "profit factor", number, "money of the winners over that of the losers"),
        ("payoff", "payoff", number, "mean winner over mean loser"),
        ("average_hold_bars", "bars held", number, "from entry to exit, on average"),
        ("best_r", "best trade", r_multiple, ""),
        ("worst_r", "worst trade", r_multiple, ""),
    ),
    "Costs": (
        ("turnover", "turnover", number, "money bought and sold a year, over mean equity"),
        ("fees", "fees and carry", number, "of all fills, and funding and borrow"),
        ("break_even_cost_bps", "break-even cost a side, bps", number, "at which the trades earn nothing"),
        ("model_cost", "models", number, "what calls of language models cost"),
        ("net_return", "return after models", percent, "the return less what models cost"),
    ),
}
FEW_LINES = 4
OF_MODELS = ("model_cost", "net_return")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
CONTENTS = {
    "summary": "summary", "course": "equity", "falls": "drawdowns", "months": "months", "chart": "candles",
    "ledger": "trades", "excursion": "R", "hold": "holds", "groups": "groups", "reflections": "reflections",
    "gate": "gate", "versions": "playbooks", "models": "models", "origin": "origin",
}  # fmt: skip
OF_TRADES = ("excursion", "hold", "groups")
PART = ("total_return", "sharpe", "max_drawdown", "trades", "win_rate", "expectancy_r")
GROUPS = (
    ("by_direction", "direction"),
    ("by_playbook", "playbook"),
    ("by_symbol", "symbol"),
    ("by_regime", "regime"),
    ("by_exit", "exit reason"),
)


class RunSummary:
    """Everything is text for the template; computes nothing that the document has."""

    def __init__(self, picture: RunPicture) -> None:
        self._picture, self._document = picture, picture.document

    @property
    def shown(self) -> str:
        """What was traded, in one line."""
        data = self._document["data"]
        bars = count_noun(data["bars"], "bar")
        return f"{data['timeframe']}, {data['start'][:10]} to {data['end'][:10]}, {bars}"

    @property
    def unfinished(self) -> str | None:
        """That the run did not come to its end, and until when its figures go."""
        if self._picture.status == "finished":
            return None
        end = shown_time(int(self._picture.bars.close_times[-1]))
        return f"This run was not finished ({self._picture.status}): everything here is as of {end}."

    @cached_property
    def notices(self) -> list[str]:
        """What a reader has to know before the figures."""
        document = self._document
        early = (document.get("ended_early") or {}).get("message")
        lines = [self.unfinished, early, *self._picture.notices]
        if document["reflection"] == "off":
            lines.append("Reflection is off: no proposal was reflected and no report was written.")
        if document["data"]["left_out"]:
            lines.append(f"bars left out: {counts(document['data']['left_out'])}")
        lines += [doubt["text"] for doubt in document["data"].get("doubts", ())[:MOST_DOUBTS]]
        lines += document["data"].get("notes", ())[:MOST_DOUBTS]
        if document["errors"]:
            lines.append(f"errors: {document['errors']:,}")
        lines.append(TrialLedger.of_document(document["ledger"]).line())
        return [line for line in lines if line]

    @property
    def signals(self) -> tuple[str, list[str], bool] | None:
        """What became of the signals: a line, those by playbook, and whether they are few enough to see."""
        account = list(self._picture.account)
        if not account:
            return None
        return account[-1], account[:-1], len(account) <= FEW_LINES

    @property
    def whole_stands(self) -> bool:
        """Whether the figures of the whole run may be its headline."""
        found = self._document["headline"]
        return found is not None and found["window"] == "whole"

    @property
    def cards(self) -> list[tuple[str, list[Card]]]:
        """The figures of the whole run by group; of one that held nothing those that are something."""
        found = self._document["performance"]
        left_out = {key for key in OF_MODELS if not found.get("model_cost")}
        if not (found["trades"] or found["exposure"]):
            left_out = {key for key, value in found.items() if not value}
        cells = {
            title: [
                (name, shown(found[key]), term)
                for key, name, shown, term in figures
                if key in found and key not in left_out
            ]
            for title, figures in FIGURES.items()
        }
        return [(title, group) for title, group in cells.items() if group]

    @property
    def contents(self) -> list[tuple[str, str]]:
        """Places of the page with their names, in order."""
        absent = () if self._picture.episodes else OF_TRADES
        return [(place, name) for place, name in CONTENTS.items() if place not in absent]

    @property
    def months(self) -> tuple[str, ...]:
        """Names of the calendar months."""
        return MONTHS

    @property
    def falls(self) -> list[list[str]]:
        """The deepest drawdowns: depth, peak, lowest close, recovery and days between."""
        now = int(self._picture.times[-1])
        return [
            [
                percent(fall.depth),
                shown_time(fall.start),
                shown_time(fall.lowest),
                "not yet" if fall.end is None else shown_time(fall.end),
                number(((now if fall.end is None else fall.end) - fall.start) / DAY_NS, 0),
            ]
            for fall in self._picture.falls
        ]

    @property
    def parts(self) -> list[tuple[str, list[Card]]]:
        """Figures before and after the last day that a model may have read about."""
        found = self._document["contamination"]
        names = {figure[0]: figure for figures in FIGURES.values() for figure in figures}
        return [
            (
                f"{title} ({count_noun(found[f'bars_{side}'], 'bar')})",
                [(names[key][1], names[key][2](found[side][key]), names[key][3]) for key in PART],
            )
            for side, title in (
                ("after", f"After {found['cutoff']}"),
                ("before", f"To {found['cutoff']}, contaminated"),
            )
            if found[f"bars_{side}"] and found["cutoff"] is not None
        ]

    @property
    def groups(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Rows of each grouping of the trades that the document has."""
        performance = self._document["performance"]
        return [(name, performance[key]) for key, name in GROUPS if performance.get(key)]

    @property
    def holds(self) -> Iterator[list[str]]:
        """By playbook: trades, and bars held against what its newest version expects."""
        expected = {
            version.definition.id: version.definition.expectation for version in self._picture.versions
        }
        held: dict[str, list[int]] = {}
        for trade in self._picture.episodes:
            held.setdefault(trade.playbook_id, []).append(trade.hold_bars)
        for name, bars in sorted(held.items()):
            half, most = (float(value) for value in np.quantile(bars, (0.5, 0.9)))
            prior = expected.get(name, Expectation.by_default(LONGEST_HORIZON))
            figures = (half, prior.hold_p50_bars, most, prior.hold_p90_bars)
            yield [name, f"{len(bars):,}", *(number(float(figure), 1) for figure in figures)]

    @property
    def versions(self) -> list[list[str]]:
        """Every state that a playbook version took."""
        return [_version(version) for version in self._picture.versions]

    @property
    def model(self) -> list[Card]:
        """What models were asked and what it cost; empty where none was."""
        model = self._document["model"]
        if not model["calls"] and not model["cut_overs"]:
            return []
        judge, texts = self._document["judge"], self._document["deliberation"]
        return [
            ("calls", f"{model['calls']:,}", ""),
            ("requests", f"{model['requests']:,}", ""),
            ("tokens", counts(model["tokens"]), ""),
            ("ended", counts(model["outcomes"]), "answers by how they ended"),
            ("not asked", counts(model["cut_overs"]), "questions that rules answered, by reason"),
            ("refused by a limit", counts(model["refused"]), ""),
            ("texts failed", f"{texts['statuses']['failed']:,} of {texts['total_requests']:,}", ""),
            ("the judge's model was asked", f"{judge['asked']:,} of {judge['to_ask']:,}", ""),
            ("cost in the account's currency", number(model["cost"]), ""),
        ]


def _version(version: PlaybookVersion) -> list[str]:
    made = version.definition
    until = "" if version.expires_at is None else shown_time(version.expires_at)
    return [
        made.id,
        str(made.version),
        made.title,
        version.state,
        shown_time(version.since),
        until,
        version.reason,
        content_id(made.payload())[:16],
    ]
