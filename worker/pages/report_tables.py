"""The tables of a report page: every number of the pictures, and what has no picture.

A column is a name and how a row fills it; every number is one of the report's own.
"""

from collections.abc import Callable, Sequence
from typing import Any
from xml.etree.ElementTree import Element

from worker.pages.figures import number, percent, r_multiple, shown_time
from worker.pages.forest_plot import shown_e
from worker.pages.layout import Cell, table, value
from worker.pages.markup import tag

Row = dict[str, Any]
Column = tuple[str, Callable[[Row], Cell]]


def r_of(field: str) -> Callable[[Row], Cell]:
    """An R multiple."""
    return lambda row: value(row.get(field), r_multiple(row.get(field)))


def edge_of(field: str) -> Callable[[Row], Cell]:
    """An edge of an interval in R; one that is missing is open, or there is no interval."""
    return lambda row: _no_edge(row) if row.get(field) is None else value(row[field], r_multiple(row[field]))


def _no_edge(row: Row) -> str:
    return "none" if row.get("interval_kind") == "none" else "open"


def figure_of(field: str, digits: int = 2) -> Callable[[Row], Cell]:
    """A number; whole ones without a fraction."""
    return lambda row: value(row.get(field), number(row.get(field), digits))


def share_of(field: str) -> Callable[[Row], Cell]:
    """A share in percent."""
    return lambda row: value(row.get(field), percent(row.get(field)))


def text_of(field: str, missing: str = "") -> Callable[[Row], Cell]:
    """A name or a reason."""
    return lambda row: str(row.get(field) or missing)


def made(caption: str, columns: Sequence[Column], rows: Sequence[Row], numbers: str) -> Element | None:
    """A table of rows; `numbers` names the columns that hold numbers, separated by commas."""
    head = [name for name, _ in columns]
    cells = [[fill(row) for _, fill in columns] for row in rows]
    return table(caption, head, cells, [name.strip() for name in numbers.split(",")])


def cluster_table(findings: Sequence[Row]) -> Element | None:
    """Clusters in the order of the picture."""
    columns: list[Column] = [
        ("playbook", text_of("playbook_id")),
        ("regime", text_of("regime", "all")),
        ("n", figure_of("n")),
        ("blocks", figure_of("blocks")),
        ("mean", r_of("mean_r")),
        ("from", edge_of("lower_r")),
        ("to", edge_of("upper_r")),
        ("t from", r_of("fixed_lower_r")),
        ("t to", r_of("fixed_upper_r")),
        ("reference", r_of("reference_r")),
        ("claim", text_of("claim", "-")),
        ("leans to", text_of("leaning", "-")),
        ("E", lambda row: value(row["e_value"], "-" if row["e_value"] is None else shown_e(row["e_value"]))),
        ("detectable", r_of("smallest_detectable_r")),
        ("PSR", figure_of("psr")),
        ("DSR", figure_of("dsr")),
        ("trades for PSR 0.95", figure_of("minimum_track_record", 0)),
        ("grade", text_of("grade")),
        ("at most", text_of("strongest_action")),
        ("reason", text_of("reason")),
    ]
    numbers = (
        "n, blocks, mean, from, to, t from, t to, reference, E, detectable, PSR, DSR, trades for PSR 0.95"
    )
    title = (
        "Clusters. From and to hold at every look; t (over blocks), PSR and DSR (deflated by the family) "
        "for one look, and no grade reads them"
    )
    return made(title, columns, findings, numbers)


def regime_table(rows: Sequence[Row]) -> Element | None:
    """Marginals per regime over all playbooks."""
    columns: list[Column] = [
        ("regime", text_of("regime")),
        ("n", figure_of("n")),
        ("mean", r_of("mean_r")),
        ("won", share_of("win_rate")),
        ("failure modes seen twice or more", lambda row: ", ".join(row["recurring"])),
    ]
    return made("Regimes over all playbooks; shown, not tested", columns, rows, "n, mean, won")


def recommendation_table(rows: Sequence[Row]) -> Element | None:
    """What is recommended, strongest first."""
    columns: list[Column] = [
        ("action", text_of("action")),
        ("for", lambda row: " in ".join(name for name in (row["playbook_id"], row["regime"]) if name)),
        ("change", lambda row: ", ".join(f"{key} {one}" for key, one in sorted(row["change"].items()))),
        ("grade", text_of("grade")),
        ("confidence", figure_of("confidence")),
        ("reason", text_of("reason")),
    ]
    return made("Strongest first; evidence for the judge, not a command", columns, rows, "confidence")


def decay_table(rows: Sequence[Row]) -> Element | None:
    """E-detector of every playbook in this report."""
    columns: list[Column] = [
        ("playbook", text_of("playbook_id")),
        ("n", figure_of("n")),
        ("mean", r_of("mean_r")),
        ("level", figure_of("level")),
        ("highest so far", figure_of("highest")),
        ("limit", figure_of("limit", 0)),
        ("alarm", lambda row: "yes" if row["alarmed"] else "no"),
    ]
    return made("E-detector, monitoring only", columns, rows, "n, mean, level, highest so far, limit")


def expectation_table(rows: Sequence[Row]) -> Element | None:
    """Holds and excursions beside what the files expect."""
    columns: list[Column] = [
        ("playbook", text_of("playbook_id")),
        ("n", figure_of("n")),
        ("hold P50", figure_of("hold_p50_bars")),
        ("expected P50", figure_of("expected_hold_p50_bars")),
        ("hold P90", figure_of("hold_p90_bars")),
        ("expected P90", figure_of("expected_hold_p90_bars")),
        ("z", figure_of("hold_calibration_z")),
        ("MAE", r_of("winner_mae_p80_r")),
        ("expected MAE", r_of("expected_winner_mae_p80_r")),
        ("MFE", r_of("mfe_p50_r")),
        ("expected MFE", r_of("expected_mfe_p50_r")),
        ("off", lambda row: ", ".join(row["missed"])),
        ("from", text_of("source")),
    ]
    numbers = "n, hold P50, expected P50, hold P90, expected P90, z, MAE, expected MAE, MFE, expected MFE"
    return made("Hold in bars, MAE of winners (P80) and MFE (median)", columns, rows, numbers)


def fire_table(rows: Sequence[Row]) -> Element | None:
    """Entry rules in this window and in the one before."""

    def both(*shown: Callable[[Row], Cell]) -> Callable[[Row], Cell]:
        return lambda row: tag("span", *_window(row["before"], shown), " → ", *_window(row["now"], shown))

    columns: list[Column] = [
        ("playbook", text_of("playbook_id")),
        ("side", text_of("direction")),
        ("fires", both(figure_of("armed"))),
        ("activated", both(figure_of("activated"), share_of("activation_share"))),
        ("expired", both(figure_of("expired"), share_of("expiry_share"))),
        ("trades", both(figure_of("trades"))),
        ("mean", both(r_of("mean_r"))),
    ]
    return made(
        "Entry rules, the window before → this window",
        columns,
        rows,
        "fires, activated, expired, trades, mean",
    )


def _window(counts: Row, shown: Sequence[Callable[[Row], Cell]]) -> list[Cell]:
    """A number, and its share in brackets where there is one."""
    first, *rest = [one(counts) for one in shown]
    return [first, *(piece for one in rest for piece in (" (", one, ")"))]


def regime_shift_table(shift: Row | None) -> Element | None:
    """Mean ranks of the older and of the newer half of the fingerprints."""
    if not shift or shift["energy_distance"] is None:
        return None
    columns: list[Column] = [
        ("rank", text_of("rank")),
        ("older half", figure_of("older")),
        ("newer half", figure_of("newer")),
    ]
    rows = [
        {"rank": name, "older": old, "newer": shift["newer"][name]} for name, old in shift["older"].items()
    ]
    return made("Regime fingerprints, mean ranks", columns, sorted(rows, key=_rank), "older half, newer half")


def _rank(row: Row) -> str:
    return str(row["rank"])


def failure_table(modes: dict[str, int]) -> Element | None:
    """Failure modes of losers, most frequent first."""
    ordered = sorted(modes.items(), key=lambda item: (-item[1], item[0]))
    rows = [{"mode": mode, "losers": count} for mode, count in ordered]
    columns: list[Column] = [("mode", text_of("mode")), ("losers", figure_of("losers"))]
    return made("Failure modes of losing trades", columns, rows, "losers")


def untraded_table(summary: dict[str, Row]) -> Element | None:
    """Signals that never became a position."""
    columns: list[Column] = [
        ("why not", text_of("why not")),
        ("signals", figure_of("n")),
        ("resolved on paper", figure_of("resolved")),
        ("mean on paper", r_of("mean_counterfactual_r")),
    ]
    rows = [{"why not": reason, **one} for reason, one in sorted(summary.items())]
    return made("Signals since the report before", columns, rows, "signals, resolved on paper, mean on paper")


def grid_table(rows: Sequence[Row]) -> Element | None:
    """Grid values that were tried."""
    columns: list[Column] = [
        ("playbook", text_of("playbook_id")),
        ("parameter", text_of("parameter")),
        ("value", figure_of("value")),
        ("n", figure_of("n")),
        ("mean", r_of("mean_r")),
        ("leans to", text_of("leaning", "-")),
        ("E", lambda row: value(row["e_value"], "-" if row["e_value"] is None else shown_e(row["e_value"]))),
    ]
    return made("Every value tried joined the tested family", columns, rows, "value, n, mean, E")


def history_table(rows: Sequence[Row]) -> Element | None:
    """Actions of the judge inside the window, oldest first."""
    columns: list[Column] = [
        ("at", lambda row: shown_time(row["at"])),
        ("action", text_of("kind")),
        ("playbook", text_of("playbook_id")),
        ("regime", text_of("regime")),
        ("parameter", text_of("parameter")),
        ("value", figure_of("value")),
        ("verdict", lambda row: tag("code", row["verdict_id"])),
    ]
    return made("Actions of the judge inside the window", columns, rows, "value")


def trial_table(rows: Sequence[Row]) -> Element | None:
    """What trades on paper beside the account, what is refuted, and risk cuts by the trades since."""
    columns: list[Column] = [
        ("playbook", text_of("playbook_id")),
        ("version", figure_of("version")),
        ("kind", text_of("kind")),
        ("regime", text_of("regime")),
        ("n", figure_of("n")),
        ("blocks", figure_of("blocks")),
        ("mean", r_of("mean_r")),
        ("E above", figure_of("e_value")),
        ("E to be active", figure_of("e_needed")),
        ("E below", figure_of("e_value_below")),
    ]
    return made(
        "Trials and risk cuts", columns, rows, "version, n, blocks, mean, E above, E to be active, E below"
    )
