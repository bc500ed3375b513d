"""The tables of a report, each declared once by its columns: pages of HTML and Markdown show the same cells.

A number keeps its unrounded value beside its words; what a report does not have is a dash.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from services.high_level.measured_rates import OPINION_TEXT, proven_text
from worker.pages.figures import DASH, number, percent, r_multiple, shown_time
from worker.pages.forest_plot import shown_e
from worker.pages.rendering import change_words

Row = Mapping[str, Any]
Read = str | Callable[[Row], Any]  # a field, or what is read of a row
Words = Callable[[Any], str]


@dataclass(frozen=True)
class TableFigure:
    """A number and its words; None is a dash."""

    value: float | None
    words: str


@dataclass(frozen=True)
class Column:
    """One column: its head, what it reads of a row, and the words of its numbers; text has none."""

    head: str
    read: Read
    words: Words | None = None

    @property
    def kind(self) -> str:
        """The class of its cells in a page; empty for plain text."""
        return "reason" if self.head == "reason" else "" if self.words is None else "number"

    def cell(self, row: Row) -> str | tuple[TableFigure, ...]:
        """Text, or the numbers of a cell: one, or that of the window before and that of this one."""
        found = row.get(self.read) if isinstance(self.read, str) else self.read(row)
        if self.words is None or isinstance(found, str):
            return "" if found is None else str(found)
        values = found if isinstance(found, tuple) else (found,)
        return tuple(TableFigure(value, DASH if value is None else self.words(value)) for value in values)

    def text(self, row: Row) -> str:
        """The cell as text."""
        found = self.cell(row)
        return found if isinstance(found, str) else " to ".join(shown.words for shown in found)


@dataclass(frozen=True)
class PageTable:
    """Rows under their columns; `caption` says what a reader has to know of all of them."""

    caption: str
    columns: Sequence[Column]
    rows: Sequence[Row]


def columns(*given: tuple[str, Read] | tuple[str, Read, Words]) -> tuple[Column, ...]:
    """Columns, each by head, what it reads, and the words of numbers."""
    return tuple(Column(*column) for column in given)


def either(field: str, word: str) -> Callable[[Row], Any]:
    """A field, or a word where it is empty."""
    return lambda row: row.get(field) or word


def edge(field: str) -> Callable[[Row], Any]:
    """An end of an interval; where it is none it is open, unless there is no interval at all."""
    return lambda row: (
        row[field] if row[field] is not None else "none" if row.get("interval_kind") == "none" else "open"
    )


def pair(field: str) -> Callable[[Row], Any]:
    """A figure of the window before, and that of this one."""
    return lambda row: (row["before"][field], row["now"][field])


def opinion_words(row: Row) -> str:
    """The second opinion on a playbook, or a dash."""
    found = row.get("second_opinion")
    return DASH if not found else f"{found['claim']}, look {found['look']} of {found['looks']}"


def rates_of(clusters: Sequence[Row]) -> list[str]:
    """How often what these clusters claim is false, as measured; nothing where they claim nothing."""
    sizes = [row["family_size"] for row in clusters if row.get("claim")]
    found = [proven_text(max(sizes))] if sizes else []
    if any(row.get("second_opinion") for row in clusters):
        found.append(f"of the second opinion, {OPINION_TEXT}")
    return found


whole = partial(number, digits=0)
PLAYBOOK, REGIME, MEAN = ("playbook", "playbook_id"), ("regime", either("regime", "all")), ("mean", "mean_r")
RECOMMENDATIONS = columns(
    ("action", "action"),
    ("for", lambda row: " in ".join(filter(None, (row["playbook_id"], row["regime"])))),
    ("change", lambda row: change_words(row["change"])), ("grade", "grade"),
    ("confidence", "confidence", number), ("reason", "reason"),
)  # fmt: skip
CLUSTERS = columns(
    PLAYBOOK, REGIME, ("n", "n", number), ("blocks", "blocks", number), (*MEAN, r_multiple),
    ("from", edge("lower_r"), r_multiple), ("to", edge("upper_r"), r_multiple),
    ("t from", "fixed_lower_r", r_multiple), ("t to", "fixed_upper_r", r_multiple),
    ("reference", "reference_r", r_multiple), ("claim", either("claim", DASH)),
    ("leans to", either("leaning", DASH)), ("E", "e_value", shown_e),
    ("shrunken", "shrunken_mean", r_multiple), ("90 % from", "shrunken_lower", r_multiple),
    ("90 % to", "shrunken_upper", r_multiple), ("second opinion", opinion_words),
    ("until proven", "to_prove"),
    ("detectable", "smallest_detectable_r", r_multiple), ("PSR", "psr", number), ("DSR", "dsr", number),
    ("blocks for PSR 0.95", "minimum_track_record", whole), ("grade", "grade"),
    ("at most", "strongest_action"), ("reason", "reason"),
)  # fmt: skip
CAPTION = (
    "Clusters. From and to hold at every look; t, PSR and DSR (deflated by what was tried) are over sums of "
    "blocks, for one look, and no grade reads them"
)
POOLED = columns(
    PLAYBOOK, ("regime", "regime"), ("timeframe", "timeframe"), ("symbol", "symbol"), ("n", "n", number),
    (*MEAN, r_multiple), ("shrunken", "shrunken_mean", r_multiple),
    ("90 % from", "shrunken_lower", r_multiple), ("90 % to", "shrunken_upper", r_multiple),
)  # fmt: skip
OF_A_RUN = (
    "playbook", "regime", "n", "blocks", "mean", "from", "to", "E", "shrunken", "second opinion",
    "until proven", "grade", "at most", "reason",
)  # fmt: skip
REGIMES = columns(
    ("regime", "regime"), ("n", "n", number), (*MEAN, r_multiple), ("won", "win_rate", percent),
    ("failure modes seen twice or more", lambda row: ", ".join(row["recurring"])),
)  # fmt: skip
DECAY = columns(
    PLAYBOOK, ("n", "n", number), (*MEAN, r_multiple), ("level", "level", number),
    ("highest so far", "highest", number), ("limit", "limit", whole),
    ("alarm", lambda row: "yes" if row["alarmed"] else "no"),
)  # fmt: skip
RANKS = columns(("rank", "rank"), ("older half", "older", number), ("newer half", "newer", number))
FIRES = columns(
    PLAYBOOK, ("side", "direction"), ("fires", pair("armed"), number),
    ("activated", pair("activated"), number), ("share", pair("activation_share"), percent),
    ("expired", pair("expired"), number), ("share", pair("expiry_share"), percent),
    ("trades", pair("trades"), number), ("mean", pair("mean_r"), r_multiple),
)  # fmt: skip
EXPECTATIONS = columns(
    PLAYBOOK, ("n", "n", number),
    ("hold P50", "hold_p50_bars", number), ("expected P50", "expected_hold_p50_bars", number),
    ("hold P90", "hold_p90_bars", number), ("expected P90", "expected_hold_p90_bars", number),
    ("z", "hold_calibration_z", number),
    ("MAE", "winner_mae_p80_r", r_multiple), ("expected MAE", "expected_winner_mae_p80_r", r_multiple),
    ("MFE", "mfe_p50_r", r_multiple), ("expected MFE", "expected_mfe_p50_r", r_multiple),
    ("off", lambda row: ", ".join(row["missed"])), ("from", "source"),
)  # fmt: skip
FAILURES = columns(("mode", "mode"), ("losers", "losers", number))
UNTRADED = columns(
    ("why not", "why"), ("signals", "n", number), ("resolved on paper", "resolved", number),
    ("mean on paper", "mean_counterfactual_r", r_multiple),
)  # fmt: skip
GRID = columns(
    PLAYBOOK, ("parameter", "parameter"), ("value", "value", number), ("n", "n", number),
    (*MEAN, r_multiple), ("leans to", either("leaning", DASH)), ("E", "e_value", shown_e),
)  # fmt: skip
TRIALS = columns(
    PLAYBOOK, ("version", "version", number), ("kind", "kind"), ("regime", "regime"),
    ("parameter", "parameter"), ("value", "value", number), ("paper trades", "n", number),
    ("blocks", "blocks", number), ("blocks left", "blocks_left", number), (*MEAN, r_multiple),
    ("in force, same bars", "incumbent_r", r_multiple), ("E above", "e_value", number),
    ("E to be active", "e_needed", number), ("E below", "e_value_below", number),
)  # fmt: skip
ON_TRIAL = "On trial: what is traded on paper, with risk cuts; it stands beside what is in force"
ACTIONS = columns(
    ("at", lambda row: shown_time(row["at"])), ("action", "kind"), PLAYBOOK, ("regime", "regime"),
    ("parameter", "parameter"), ("value", "value", number), ("verdict", "verdict_id"),
)  # fmt: skip


def report_tables(report: Row, clusters: Sequence[Row]) -> dict[str, PageTable]:
    """Every table of a report by its name; `clusters` are those that are shown."""
    modes = sorted(report.get("failure_modes", {}).items(), key=lambda item: (-item[1], item[0]))
    shift, untraded = report.get("regime_shift") or {}, report.get("untraded", {})
    older, newer = shift.get("older", {}), shift.get("newer", {})
    found: dict[str, tuple[str, Sequence[Column], Iterable[Row]]] = {
        "recommendations": ("Strongest first; evidence for the judge, not a command", RECOMMENDATIONS,
                            report.get("recommendations", ())),
        "clusters": ("; ".join((CAPTION, *rates_of(clusters))), CLUSTERS, clusters),
        "pooled": ("Means alone, and drawn towards each other with a band of 90 %",
                   POOLED, report.get("shrunken_means", ())),
        "regimes": ("Regimes over all playbooks; shown, not tested", REGIMES,
                    report.get("regime_cluster_summary", ())),
        "decay": ("E-detector, monitoring only", DECAY, report.get("decay", ())),
        "ranks": ("Regime fingerprints, mean ranks", RANKS,
                  ({"rank": name, "older": older[name], "newer": newer[name]} for name in sorted(older))),
        "fires": ("Entry rules, the window before → this window", FIRES, report.get("fire_quality", ())),
        "expectations": ("Hold in bars, MAE of winners (P80) and MFE (median)", EXPECTATIONS,
                         report.get("expectations", ())),
        "failures": ("Failure modes of losing trades", FAILURES,
                     ({"mode": mode, "losers": count} for mode, count in modes)),
        "untraded": ("Signals since the report before", UNTRADED,
                     ({"why": name, **untraded[name]} for name in sorted(untraded))),
        "grid": ("Every value tried joined the tested family", GRID, report.get("grid_trials", ())),
        "trials": (ON_TRIAL, TRIALS, report.get("shadow_trials", ())),
        "actions": ("Actions of the judge inside the window", ACTIONS, report.get("judge_history", ())),
    }  # fmt: skip
    return {name: PageTable(caption, given, tuple(rows)) for name, (caption, given, rows) in found.items()}


def clusters_of_run(clusters: Sequence[Row]) -> PageTable:
    """The clusters of the newest report, for the page of a run: fewer columns."""
    shown = [column for column in CLUSTERS if column.head in OF_A_RUN]
    return PageTable(
        "; ".join(("Clusters; from and to hold at every look", *rates_of(clusters))), shown, clusters
    )


def trials_of_run(trials: Sequence[Row]) -> PageTable:
    """What was on trial at the end of a run."""
    return PageTable(ON_TRIAL, TRIALS, trials)
