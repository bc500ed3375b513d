"""What the top of a run's page says, from the document of the run: cards, warnings, tables of groups."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from schemas.canonical import content_id
from schemas.playbook import PlaybookVersion
from schemas.trials import TrialLedger
from services.model_calls.quoting import count_noun
from worker.pages.figures import DASH, counts, number, percent, r_multiple, shown_time
from worker.pages.run_picture import RunPicture

Card = tuple[str, str]


def _whole(value: float | None) -> str:
    return number(value, 0)


def _interval(value: tuple[float, float] | None) -> str:
    return DASH if value is None else f"{number(value[0])} to {number(value[1])}"


FIGURES: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("total_return", "return", percent),
    ("cagr", "CAGR", percent),
    ("volatility", "volatility", percent),
    ("sharpe", "Sharpe", number),
    ("sharpe_interval", "Sharpe, 95 %", _interval),
    ("sortino", "Sortino", number),
    ("calmar", "Calmar", number),
    ("max_drawdown", "largest drawdown", percent),
    ("drawdown_days", "days under water", _whole),
    ("trades", "trades", number),
    ("win_rate", "won", percent),
    ("expectancy_r", "expectancy", r_multiple),
    ("profit_factor", "profit factor", number),
    ("payoff", "payoff", number),
    ("average_hold_bars", "bars held", number),
    ("best_r", "best trade", r_multiple),
    ("worst_r", "worst trade", r_multiple),
    ("exposure", "in the market", percent),
    ("turnover", "turnover", number),
    ("fees", "fees and carry", number),
    ("model_cost", "models", number),
    ("net_return", "return after models", percent),
    ("buy_and_hold_return", "buy and hold", percent),
    ("beta", "beta", number),
    ("alpha", "alpha a year", percent),
    ("alpha_t", "t of alpha", number),
    ("break_even_cost_bps", "break-even cost a side, bps", number),
)
PART = ("total_return", "sharpe", "max_drawdown", "trades", "win_rate", "expectancy_r")
GROUPS = (
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
    def told(self) -> str:
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
        lines = [self.unfinished, early, *self._picture.account, *self._picture.stale]
        if document["reflection"] == "off":
            lines.append("Reflection is off: no proposal was reflected and no report was written.")
        if document["data"]["left_out"]:
            lines.append(f"bars left out: {counts(document['data']['left_out'])}")
        if document["errors"]:
            lines.append(f"errors: {document['errors']:,}")
        lines.append(TrialLedger.of_document(document.get("ledger", {})).line())
        return [line for line in lines if line]

    @property
    def whole_stands(self) -> bool:
        """Whether the figures of the whole run may be its headline."""
        found = self._document["headline"]
        return found is not None and found["window"] == "whole"

    @property
    def cards(self) -> list[Card]:
        """The figures of the whole run."""
        performance = self._document["performance"]
        return [(name, shown(performance[key])) for key, name, shown in FIGURES if key in performance]

    @property
    def parts(self) -> list[tuple[str, list[Card]]]:
        """Figures before and after the last day that a model may have read about."""
        found, names = self._document["contamination"], {key: (name, shown) for key, name, shown in FIGURES}
        return [
            (
                f"{title} ({count_noun(found[f'bars_{side}'], 'bar')})",
                [(names[key][0], names[key][1](found[side][key])) for key in PART],
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
            prior = expected[name]
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
            ("calls", f"{model['calls']:,}"),
            ("requests", f"{model['requests']:,}"),
            ("tokens", counts(model["tokens"])),
            ("ended", counts(model["outcomes"])),
            ("not asked", counts(model["cut_overs"])),
            ("refused by a limit", counts(model["refused"])),
            ("texts failed", f"{texts['statuses']['failed']:,} of {texts['total_requests']:,}"),
            ("the judge's model was asked", f"{judge['asked']:,} of {judge['to_ask']:,}"),
            ("cost in the account's currency", number(model["cost"])),
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
