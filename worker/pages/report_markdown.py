"""One high-level report as a Markdown page that a trader reads; the JSON beside it holds everything.

Whatever was written by a model or a strategist is text there and nothing else: no tag, link, picture or
heading of its own.
"""

import re
from collections.abc import Sequence
from html import escape
from typing import Any

from services.high_level.report_lines import interval_text
from services.model_calls.quoting import count_noun, visible
from services.slow_loop.evidence_rows import evidence_line
from worker.pages.figures import number, percent, r_multiple, shown_time
from worker.pages.forest_plot import shown_clusters
from worker.pages.rendering import change_words

CLUSTER_HEAD = (
    "playbook",
    "regime",
    "n",
    "mean R",
    "interval at every look",
    "t, one look",
    "claim",
    "leans to",
    "e-value",
    "detectable",
    "PSR",
    "DSR",
    "trades for PSR 0.95",
    "grade",
    "strongest action",
)
REGIME_HEAD = ("regime", "n", "mean R", "won", "failure modes seen twice or more")
DECAY_HEAD = ("playbook", "n", "mean R", "level", "highest", "limit", "alarm")
FIRE_HEAD = ("playbook", "side", "fires", "activated", "expired", "trades", "mean R")
EXPECTATION_HEAD = ("playbook", "n", "hold P50", "hold P90", "MAE of winners", "MFE", "off")
UNTRADED_HEAD = ("why not", "signals", "resolved on paper", "mean on paper")
GRID_HEAD = ("playbook", "parameter", "value", "n", "mean R", "leans to", "e-value")
ACTION_HEAD = ("at", "action", "playbook", "regime", "parameter", "value")
CHANGE_HEAD = ("action", "playbook", "regime", "change", "grade", "reason")
# What starts a heading, table, fence, rule, underlined heading or link target when it opens a line.
BLOCK = re.compile(r"^(\s*)(#|\||=|```|~~~|--|\*\s*\*|_\s*_|\[)", re.MULTILINE)
WAITING = re.compile(
    r"in a (day|week|month|quarter) that is not complete"
)  # as the journal has it of several
LINK = re.compile(r"\](?=[(\[:])")


def report_markdown(entry: dict[str, Any]) -> str:
    """The page of one journalled report `{report_id, report, verdict, evidence}`."""
    report = entry["report"]
    window = f"{shown_time(report['window_start'])} to {shown_time(report['window_end'])}"
    lines = [
        f"# Report {entry['report_id']}",
        "",
        f"Window {window}, {count_noun(report['n_episodes'], 'episode')}, "
        f"known at {shown_time(report['known_at'])}. "
        f"Recommended action: **{report['recommended_action']}**."
        + (" The sample is insufficient." if report["insufficient_sample"] else ""),
        "",
        _prose(report["narrative"]),
        "",
    ]
    lines += _bullets("Trades that do not count yet", entry.get("waiting", ()))
    lines += _section(
        "Clusters", CLUSTER_HEAD, [_cluster(cluster) for cluster in shown_clusters(report["clusters"])]
    )
    lines += _section(
        "Recommendations", CHANGE_HEAD, [_change(change) for change in report["recommendations"]]
    )
    lines += _section("Regimes", REGIME_HEAD, [_regime(row) for row in report["regime_cluster_summary"]])
    lines += _bullets("Drift", report["drift_findings"])
    lines += _section("E-detector", DECAY_HEAD, [_decay(row) for row in report.get("decay", ())])
    lines += _section("Entry rules", FIRE_HEAD, [_fires(row) for row in report.get("fire_quality", ())])
    checks = [_expectation(row) for row in report.get("expectations", ())]
    lines += _section("Expectations", EXPECTATION_HEAD, checks)
    lines += _bullets("Expectation misses", report["expectation_misses"])
    modes = [f"{mode}: {count}" for mode, count in sorted(report["failure_modes"].items())]
    lines += _bullets("Failure modes", modes)
    untraded = [_untraded(reason, row) for reason, row in sorted(report["untraded"].items())]
    lines += _section("Signals that were not traded", UNTRADED_HEAD, untraded)
    lines += _section("Grid values tried", GRID_HEAD, [_trial(row) for row in report["grid_trials"]])
    acted = [_action(row) for row in report.get("judge_history", ())]
    lines += _section("Actions of the judge inside the window", ACTION_HEAD, acted)
    lines += _bullets("Needs that the fast reflection deferred", report["deferred_seen"])
    lines += _verdict(entry["verdict"], entry.get("evidence", ()))
    return WAITING.sub(r"in \1s that do not count yet", "\n".join(lines).rstrip()) + "\n"


def _cluster(cluster: dict[str, Any]) -> list[str]:
    interval = interval_text(cluster["lower_r"], cluster["upper_r"], cluster.get("interval_kind", ""))
    fixed = cluster.get("fixed_lower_r"), cluster.get("fixed_upper_r")
    return [
        cluster["playbook_id"],
        cluster["regime"] or "all",
        str(cluster["n"]),
        r_multiple(cluster["mean_r"]),
        interval,
        interval_text(*fixed) if None not in fixed else "-",
        cluster.get("claim") or "-",
        cluster.get("leaning") or "-",
        number(cluster["e_value"]),
        r_multiple(cluster["smallest_detectable_r"]),
        number(cluster.get("psr")),
        number(cluster.get("dsr")),
        number(cluster.get("minimum_track_record"), 0),
        cluster["grade"],
        cluster["strongest_action"],
    ]


def _regime(row: dict[str, Any]) -> list[str]:
    recurring = ", ".join(row["recurring"])
    return [row["regime"], str(row["n"]), r_multiple(row["mean_r"]), percent(row["win_rate"]), recurring]


def _decay(row: dict[str, Any]) -> list[str]:
    levels = [number(row[name]) for name in ("level", "highest", "limit")]
    alarm = "yes" if row["alarmed"] else "no"
    return [row["playbook_id"], str(row["n"]), r_multiple(row["mean_r"]), *levels, alarm]


def _fires(row: dict[str, Any]) -> list[str]:
    """The window before, then this one."""
    before, now = row["before"], row["now"]
    return [
        row["playbook_id"],
        row["direction"],
        f"{before['armed']} to {now['armed']}",
        f"{percent(before['activation_share'])} to {percent(now['activation_share'])}",
        f"{percent(before['expiry_share'])} to {percent(now['expiry_share'])}",
        f"{before['trades']} to {now['trades']}",
        f"{r_multiple(before['mean_r'])} to {r_multiple(now['mean_r'])}",
    ]


def _expectation(row: dict[str, Any]) -> list[str]:
    return [
        row["playbook_id"],
        str(row["n"]),
        f"{row['hold_p50_bars']:g} for {row['expected_hold_p50_bars']:g}",
        f"{row['hold_p90_bars']:g} for {row['expected_hold_p90_bars']:g}",
        f"{r_multiple(row['winner_mae_p80_r'])} for {r_multiple(row['expected_winner_mae_p80_r'])}",
        f"{r_multiple(row['mfe_p50_r'])} for {r_multiple(row['expected_mfe_p50_r'])}",
        ", ".join(row["missed"]),
    ]


def _untraded(reason: str, row: dict[str, Any]) -> list[str]:
    return [reason, str(row["n"]), str(row["resolved"]), r_multiple(row["mean_counterfactual_r"])]


def _trial(row: dict[str, Any]) -> list[str]:
    tried = [row["playbook_id"], row["parameter"], f"{row['value']:g}", str(row["n"])]
    return [*tried, r_multiple(row["mean_r"]), row.get("leaning") or "-", number(row["e_value"])]


def _action(row: dict[str, Any]) -> list[str]:
    names = [row[name] or "" for name in ("kind", "playbook_id", "regime", "parameter")]
    return [shown_time(row["at"]), *names, "" if row["value"] is None else f"{row['value']:g}"]


def _change(change: dict[str, Any]) -> list[str]:
    return [
        change["action"],
        change["playbook_id"] or "",
        change["regime"] or "",
        change_words(change["change"]),
        change["grade"],
        change["reason"],
    ]


def _verdict(verdict: dict[str, Any] | None, evidence: Sequence[dict[str, Any]]) -> list[str]:
    if verdict is None:
        return ["## Judge", "", "No verdict yet."]
    lines = ["## Judge", "", f"**{verdict['decision']}**: {_line(verdict['reason'])}", ""]
    lines += [
        f"- {action['kind']} {action['playbook_id'] or ''}: {_line(action['reason'])}"
        for action in verdict["actions"]
    ]
    lines += [f"- refused ({refused['code']}): {_line(refused['reason'])}" for refused in verdict["refused"]]
    return lines + [f"- {_line(evidence_line(read))}" for read in evidence]


def _section(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    if not rows:
        return []
    table = [head, ["---"] * len(head), *rows]
    return [f"## {title}", "", *("| " + " | ".join(map(_cell, row)) + " |" for row in table), ""]


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")


def _prose(text: str) -> str:
    """Paragraphs and lists of foreign words."""
    return BLOCK.sub(r"\1\\\2", _harmless(visible(text, lines=True)))


def _line(text: str) -> str:
    """Foreign words within a line."""
    return _harmless(visible(_one_line(text)))


def _one_line(text: str) -> str:
    return text.replace("\n", " ")


def _harmless(text: str) -> str:
    # A backslash comes first: one of the text's own would take the effect of those that follow.
    return LINK.sub(r"\\]", escape(text.replace("\\", "\\\\"), quote=False))


def _bullets(title: str, items: Sequence[str]) -> list[str]:
    return [f"## {title}", "", *(f"- {_prose(_one_line(item))}" for item in items), ""] if items else []
