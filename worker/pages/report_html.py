"""One high-level report as a page that a browser opens without a network and without a script.

Every number comes from the report or from the reports before it; nothing is computed here. What models and
strategists wrote is quoted as text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element

from worker.pages.drift_plot import drift_plot
from worker.pages.expectation_plot import expectation_plot
from worker.pages.figures import percent, shown_time
from worker.pages.forest_plot import forest_plot, shown_clusters
from worker.pages.layout import Cell, bullets, folded, page, section, value
from worker.pages.markup import Child, fill, tag
from worker.pages.report_tables import (
    cluster_table,
    decay_table,
    expectation_table,
    failure_table,
    fire_table,
    grid_table,
    history_table,
    recommendation_table,
    regime_shift_table,
    regime_table,
    trial_table,
    untraded_table,
)

Entry = dict[str, Any]


@dataclass(frozen=True)
class Links:
    """Pages beside this one, by report id; None where there is none."""

    before: str | None = None
    after: str | None = None


def report_html(entry: Entry, earlier: Sequence[Entry] = (), links: Links | None = None) -> str:
    """The page of one journalled report `{report_id, report, verdict}`; the same input gives the same bytes.

    Args:
        entry: the report with the judge's verdict on it, None while there is none.
        earlier: the reports of the same run before it, oldest first: the drift over time.
        links: pages of the same folder to lead to; None for a page that stands alone.
    """
    report = entry["report"]
    reports = [*(one["report"] for one in earlier), report]
    parts: list[Child] = [
        None if links is None else _navigation(links),
        *_head(entry, report),
        section("Recommendations", recommendation_table(report["recommendations"])),
        _judge(entry["verdict"]),
        _clusters(report),
        _drift(report, reports),
        _expectations(report),
        _failures(report),
        _untraded(report),
        _trials(report),
        _history(report),
        _told(report),
        _provenance(entry, report),
    ]
    return page(f"Report {entry['report_id']}", *parts)


def _navigation(links: Links) -> Element:
    places = (("all reports", "index"), ("← before", links.before), ("after →", links.after))
    return tag("nav", *(tag("a", words, href=f"{name}.html") for words, name in places if name is not None))


def _head(entry: Entry, report: Entry) -> list[Child]:
    decision = "none yet" if entry["verdict"] is None else entry["verdict"]["decision"]
    window = f"{shown_time(report['window_start'])} to {shown_time(report['window_end'])}"
    cards = [
        _card("resolved trades", value(report["n_episodes"], f"{report['n_episodes']:,d}")),
        _card("recommended", report["recommended_action"], report["recommended_action"]),
        _card("judge", decision, decision),
    ]
    poor = "The sample is insufficient: no cluster has enough trades, and all below is monitoring only."
    return [
        tag("h1", f"High-level reflection {shown_time(report['known_at'])}"),
        tag("p", f"Trades of {window}. Known at {shown_time(report['known_at'])}.", class_="soft"),
        tag("dl", *cards, class_="verdict"),
        tag("p", poor) if report["insufficient_sample"] else None,
    ]


def _card(name: str, shown: Cell, kind: str | None = None) -> Element:
    return tag("div", tag("dt", name), tag("dd", shown), class_=kind)


def _judge(verdict: Entry | None) -> Element:
    if verdict is None:
        return section("Judge", tag("p", "No verdict yet."))
    actions = [f"{one['kind']} {one['playbook_id'] or ''}: {one['reason']}" for one in verdict["actions"]]
    refused = [f"refused ({one['code']}): {one['reason']}" for one in verdict["refused"]]
    said = tag("p", tag("strong", verdict["decision"]), f": {verdict['reason']}")
    return section("Judge", said, bullets([*actions, *refused]))


def _clusters(report: Entry) -> Element:
    found = shown_clusters(report["clusters"])
    if not found:
        return section("Clusters", tag("p", "No trade of a playbook version in force yet."))
    return section(
        "Clusters",
        tag(
            "p",
            "Mean R after costs of each playbook and of its regimes, with the interval that holds at every "
            "look at once; one that leaves the picture ends in an arrow. One that reaches a winsor bound is "
            "open on that side: too few blocks, or blocks whose means are clipped nearer; the reason of the "
            "grade says which. Colour and shape tell how much is shown.",
        ),
        forest_plot(found),
        folded("The same numbers as a table, with the reason of each grade", cluster_table(found)),
        folded("Regimes over all playbooks", regime_table(report["regime_cluster_summary"])),
    )


def _drift(report: Entry, reports: Sequence[Entry]) -> Element:
    rows = report.get("decay", ())
    return section(
        "Drift",
        tag("p", "Monitoring: an alarm counts only together with a significant loss."),
        drift_plot(reports) if rows else None,
        decay_table(rows),
        bullets(report["drift_findings"]),
        _regimes(report.get("regime_shift")),
        fire_table(report.get("fire_quality", ())),
    )


def _regimes(shift: Entry | None) -> Element | None:
    table = regime_shift_table(shift)
    if shift is None or table is None:
        return None
    seen = tag(
        "p", value(shift["windows"], f"{shift['windows']:,d}"), f" {shift['source']}; energy distance "
    )
    fill(seen, [value(shift["energy_distance"], f"{shift['energy_distance']:.3f}")])
    if shift["p_value"] is not None:
        fill(seen, [", p ", value(shift["p_value"], f"{shift['p_value']:.3f}")])
    return tag("div", table, seen)


def _expectations(report: Entry) -> Element | None:
    rows = report.get("expectations", ())
    if not rows:
        return None
    return section(
        "Holds and excursions against expectation",
        expectation_plot(rows),
        bullets(report["expectation_misses"]),
        folded("The same numbers as a table", expectation_table(rows)),
    )


def _failures(report: Entry) -> Element | None:
    modes = report["failure_modes"]
    if not modes:
        return None
    share = report.get("unclassified_share")
    told = (
        None
        if share is None
        else tag("p", "No predicate matches ", value(share, percent(share)), " of them.")
    )
    return section("How trades failed", failure_table(modes), told)


def _untraded(report: Entry) -> Element | None:
    if not report["untraded"]:
        return None
    return section(
        "Signals that were not traded",
        tag(
            "p",
            "What they would have brought on paper, after costs. Kept apart: no lesson is made of them, and "
            "no number above holds one.",
        ),
        untraded_table(report["untraded"]),
    )


def _trials(report: Entry) -> Element | None:
    if not report["grid_trials"] and not report["shadow_trials"]:
        return None
    return section("Tried and cut", grid_table(report["grid_trials"]), trial_table(report["shadow_trials"]))


def _history(report: Entry) -> Element | None:
    acted, deferred = report.get("judge_history", ()), report["deferred_seen"]
    if not acted and not deferred:
        return None
    needs = [tag("blockquote", text) for text in deferred]
    title = "Needs that the fast reflection deferred, in the words of whoever had them:"
    return section(
        "What came in with the trades",
        history_table(acted),
        tag("p", title) if needs else None,
        *needs,
    )


def _told(report: Entry) -> Element:
    by_model = report["meta"]["tier"] == "consolidated"
    author = (
        "A model retold the report; every number in its text was checked against the report."
        if by_model
        else "Written by rules from the numbers above."
    )
    return section("In words", tag("p", author, class_="soft"), tag("p", report["narrative"], class_="told"))


def _provenance(entry: Entry, report: Entry) -> Element:
    left_out = [f"{reason} {count:,d}" for reason, count in sorted(report["excluded"].items())]
    names = [
        ("report", entry["report_id"]),
        ("request", report["request_hash"]),
        ("prompt", report["prompt_hash"]),
        ("tested family", _family(report)),
        ("counted, not tested", ", ".join(left_out)),
    ]
    items = [tag("li", f"{name}: ", tag("code", text)) for name, text in names if text]
    return section("Where it comes from", tag("ul", *items, class_="soft"))


def _family(report: Entry) -> str:
    sizes = {(one["family_id"], one["family_size"]) for one in report["clusters"] if one["family_size"]}
    return ", ".join(f"{name} of {size}" for name, size in sorted(sizes))
