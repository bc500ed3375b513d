"""An ablation as an HTML page and as Markdown: its answers, each difference drawn, what they rest on.

Every number comes from the document of `thinktwice ablate`; nothing is computed here.
"""

from typing import Any
from xml.etree.ElementTree import Element

from services.high_level.report_lines import interval_text
from services.model_calls.quoting import count_noun
from worker.pages.figures import DASH, percent, r_multiple
from worker.pages.rendering import render, render_markdown
from worker.pages.shapes import Child, figure, line, marker, picture, spanning, text, ticks_below, write

WIDTH, ROW, TOP, BOTTOM = 940.0, 30.0, 26.0, 30.0
LEFT, RIGHT, FIGURES = 330.0, 740.0, 932.0
MARKS = {"higher": "mark fine", "lower": "mark missed", "unknown": "mark insufficient_sample"}
SPANS = {"higher": "span fine", "lower": "span missed", "unknown": "interval insufficient_sample"}


def ablation_html(document: dict[str, Any]) -> str:
    """The page; the same document gives the same bytes."""
    return render(
        "ablation.html",
        "Worth of each tier",
        plot=write(_plot(document)),
        arm_head=", ".join([*ARM_HEAD[:2], *(f"{name} #" for name in ARM_HEAD[2:])]),
        paper_head=", ".join([PAPER_HEAD[0], *(f"{name} #" for name in PAPER_HEAD[1:5]), *PAPER_HEAD[5:]]),
        **_describe(document),
    )


def ablation_markdown(document: dict[str, Any]) -> str:
    """The page of one document of `thinktwice ablate`."""
    heads = {"ARM_HEAD": list(ARM_HEAD), "PAPER_HEAD": list(PAPER_HEAD)}
    return render_markdown("ablation.md", **heads, **_describe(document))


def _describe(document: dict[str, Any]) -> dict[str, Any]:
    return {
        "document": document,
        "bars": count_noun(document["data"]["bars"], "bar"),
        "how_told": how_told(document),
        "tiers": [
            (f"{tier['tier'].capitalize()}: {tier['answer'] or tier['reason']}", tier_lines(tier))
            for tier in document["tiers"]
        ],
        "arms": [arm_row(arm) for arm in document["arms"]],
        "rates_told": rates_told(document) if document["random_veto"]["seeds"] else "",
        "ledger": [paper_row(row) for row in document["shadow_ledger"]],
    }


def tier_lines(tier: dict[str, Any]) -> list[str]:
    """What is told of a tier: its worth, that against the coin, and what each side held."""
    return [words for words in (_worth_line(tier), _chance_line(tier), _exposure_line(tier)) if words]


def _plot(document: dict[str, Any]) -> Element:
    rows: list[tuple[str, dict[str, Any]]] = []
    for tier in document["tiers"]:
        for name, found in ((tier["tier"], tier["difference"]), ("against a coin", tier["against_chance"])):
            if found is not None and found["per_year"]["lower"] is not None:
                rows.append((name, found))
    edges = [100 * found["per_year"][name] for _, found in rows for name in ("lower", "upper")]
    scale = spanning([*edges, 0.0], LEFT, RIGHT)
    foot = TOP + ROW * len(rows) + 4
    ticks = ticks_below(scale, TOP - 6, foot, 15, lambda tick: f"{tick:+g} %" if tick else "0")
    shapes: list[Child] = [text(FIGURES, 14, "% of equity a year", "head", "end"), *ticks]
    shapes.append(line(scale(0.0), TOP - 6, scale(0.0), foot, "reference"))
    for position, (name, found) in enumerate(rows):
        y = TOP + ROW * (position + 0.5)
        mean, lower, upper = (100 * found["per_year"][edge] for edge in ("mean", "lower", "upper"))
        whole = name != "against a coin"
        shapes += [
            text(10 if whole else 26, y + 4, name, "name whole" if whole else "name"),
            line(scale(lower), y, scale(upper), y, SPANS[found["answer"]]),
            marker("circle", scale(mean), y, MARKS[found["answer"]]),
            figure(FIGURES, y + 4, mean, f"{mean:+.2f} [{lower:+.2f}, {upper:+.2f}]"),
        ]
    words = "Difference that each tier made, with its interval"
    return picture(WIDTH, foot + BOTTOM, words, f"{len(rows)} rows; what has bounds, as below", *shapes)


Part = dict[str, Any]
ARM_HEAD = (
    "arm", "run", "return", "trades", "mean R", "drawdown", "in market", "mean gross", "sent back",
    "of own bases",
)  # fmt: skip
PAPER_HEAD = ("plans that were", "plans", "trades", "mean", "interval", "on the whole")
_PAPER = {"won": "would have won", "lost": "would have lost", "unknown": "unknown"}


def arm_row(one: Part) -> list[str]:
    """One arm; the random veto by its first seed."""
    run = one["run"]
    if run is None:
        return [one["arm"], one["status"], *([DASH] * (len(ARM_HEAD) - 2))]
    return [
        one["arm"] if run["seed"] is None else f"{one['arm']}, seed {run['seed']}",
        run["run_id"],
        percent(run["net_return"]),
        f"{run['trades']:,}",
        r_multiple(run["expectancy_r"]),
        percent(run["max_drawdown"]),
        percent(run["exposure"]["bars"]),
        percent(run["exposure"]["gross"]),
        f"{run['sent_back']['proposals']:,}",
        *(f"{run['sent_back'][kind]:,}" for kind in ("own_bases", "not_offered")),
    ]


def _worth_line(tier: Part) -> str:
    if tier["difference"] is None:
        return ""
    found = tier["difference"]
    blocks = f"{found['differing']:,} of {found['blocks']:,} {found['unit']}s differ"
    reason = f"; {tier['reason']}" if tier["reason"] else ""
    return f"{tier['with']} less {tier['without']}: {_yearly(found)}; {blocks}{reason}"


def _chance_line(tier: Part) -> str:
    found = tier["against_chance"]
    if found is None:
        return ""
    return (
        f"{tier['with']} less a random veto at the same rate: {_yearly(found)}; "
        f"it returned more than {found['beaten']} of {found['seeds']} seeds"
    )


def _exposure_line(tier: Part) -> str:
    shown = tier["exposure"]
    if shown is None:
        return ""
    sides = [(tier["with"], shown["with"]), (tier["without"], shown["without"])]
    sides += [("random veto", shown["random_veto"])] if shown["random_veto"] is not None else []
    parts = (
        f"{name} {percent(side['bars'])} of bars, gross {percent(side['gross'])}" for name, side in sides
    )
    return f"in the market: {'; '.join(parts)}"


def paper_row(group: Part) -> list[str]:
    """One group of the shadow ledger."""
    return [
        group["reason"],
        f"{group['plans']:,}",
        f"{group['n']:,}",
        r_multiple(group["mean_r"]),
        interval_text(group["lower_r"], group["upper_r"]),
        _PAPER[group["answer"]],
    ]


def how_told(document: Part) -> str:
    """What the answers rest on, in one line."""
    tested = sum(
        (tier["difference"] is not None) + (tier["against_chance"] is not None) for tier in document["tiers"]
    )
    return (
        f"Returns after costs in each {document['unit']}, paired on the same bars; {tested} comparisons "
        f"share a level of {percent(document['alpha'], 0)} (Holm). Unknown means that the interval holds 0."
    )


def rates_told(document: Part) -> str:
    """How often the coin vetoed."""
    rounds = document["random_veto"]["rates"]
    shares = ", ".join(percent(vetoed["revise"] + vetoed["block"]) for vetoed in rounds)
    return f"The coin refused {shares} of the plans of rounds 1 to {len(rounds)}, as the fast reflection did."


def _yearly(found: Part) -> str:
    year = found["per_year"]
    if year["lower"] is None:
        return f"{100 * year['mean']:+.2f} % a year, without bounds"
    mean, lower, upper = (f"{100 * year[name]:+.2f}" for name in ("mean", "lower", "upper"))
    return f"{mean} % a year [{lower}, {upper}]"
