"""How the figures of an ablation read, for the terminal and for its pages alike: from the document alone."""

from typing import Any

from services.high_level.report_lines import interval_text
from worker.pages.figures import DASH, percent, r_multiple

Part = dict[str, Any]
ARM_HEAD = ("arm", "run", "return", "trades", "mean R", "drawdown", "in market", "mean gross")
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
    ]


def worth_line(tier: Part) -> str:
    """The difference that the tier made, and why the answer is what it is; empty when it was not run."""
    if tier["difference"] is None:
        return ""
    found = tier["difference"]
    blocks = f"{found['differing']:,} of {found['blocks']:,} {found['unit']}s differ"
    reason = f"; {tier['reason']}" if tier["reason"] else ""
    return f"{tier['with']} less {tier['without']}: {_yearly(found)}; {blocks}{reason}"


def chance_line(tier: Part) -> str:
    """The difference to the coin; empty where no coin was thrown."""
    found = tier["against_chance"]
    if found is None:
        return ""
    return (
        f"{tier['with']} less a random veto at the same rate: {_yearly(found)}; "
        f"it returned more than {found['beaten']} of {found['seeds']} seeds"
    )


def exposure_line(tier: Part) -> str:
    """How much of the market each side held."""
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
