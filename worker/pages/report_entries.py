"""The reports of a run out of its journal: each with the verdict on it and what was read for it."""

from collections.abc import Iterable, Mapping
from typing import Any

from services.journal.chain import JournalRow
from services.slow_loop.evidence_rows import CALL, PLAN, told_evidence
from services.statistics.calendar_units import unit_numbers, unit_starts
from worker.pages.figures import shown_time

REPORT, VERDICT = "high_level_report", "replan_verdict"
ENTRY, EXIT = "entry_filled", "exit_filled"
ENTRY_KINDS = frozenset({REPORT, VERDICT, PLAN, CALL, ENTRY, EXIT})


def report_entries(rows: Iterable[tuple[JournalRow, Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Every report among rows with their payloads, in order.

    `verdict` is the judge's on it, null while there is none, `evidence` what was read for it, `waiting` why
    trades of it do not count yet, a sentence for each playbook.
    """
    reports: dict[str, dict[str, Any]] = {}
    held: dict[str | None, Mapping[str, Any]] = {}
    read: list[tuple[str, Mapping[str, Any]]] = []
    for row, payload in rows:
        kind = row.kind
        read.append((kind, payload))
        if kind == ENTRY:
            held[row.symbol] = payload
        elif kind == EXIT:
            held.pop(row.symbol, None)
        elif kind == REPORT:
            waiting = [_why(found, held) for found in payload["report"]["clusters"] if _waits(found)]
            reports[payload["report_id"]] = {**payload, "verdict": None, "waiting": waiting}
        elif kind == VERDICT and payload["report_id"] in reports:
            reports[payload["report_id"]]["verdict"] = payload["verdict"]
    evidence = told_evidence(read)
    return [entry | {"evidence": evidence.get(name, [])} for name, entry in reports.items()]


def stated(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a report: an entry without the words that only a page says."""
    return {name: value for name, value in entry.items() if name != "waiting"}


def _waits(cluster: Mapping[str, Any]) -> bool:
    """Whether a whole playbook has trades that do not count yet."""
    whole = cluster["regime"] is None and cluster.get("timeframe") is None
    return whole and cluster.get("counted", cluster["n"]) < cluster["n"]  # older journals count nothing


def _why(cluster: Mapping[str, Any], held: Mapping[str | None, Mapping[str, Any]]) -> str:
    name, unit = cluster["playbook_id"], cluster["unit"]
    told = (
        f"{cluster['n'] - cluster['counted']} of {cluster['n']} trades of {name} do not count yet: a {unit} "
        f"of entries counts once it is over, its positions are closed, and every {unit} before it counts."
    )
    opened = {symbol: entry for symbol, entry in held.items() if entry["playbook_id"] == name}
    if not opened:
        return told
    symbol, entry = min(opened.items(), key=lambda item: (item[1]["bar_label"], item[0]))
    begins = int(unit_starts(unit_numbers(entry["bar_label"], unit), unit))
    since = shown_time(entry["bar_label"])
    return (
        f"{told} Its position {entry['direction']} {symbol} is open since {since}: no trade entered from "
        f"{shown_time(begins)} on counts before that one is closed."
    )
