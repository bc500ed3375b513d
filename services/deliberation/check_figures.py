"""Does a figure equal a stored value at the decimals it is given with? Shares, intervals, differences."""

import re
from dataclasses import replace

from schemas.slow_reflection import ClusterFinding
from services.deliberation.claim import Claim
from services.deliberation.held import (
    UNREAD,
    Held,
    at_the_end,
    judge_claim,
    plainly,
    rows_of,
    unknown,
    write_fact,
)
from services.deliberation.numerals import NEARNESS, Figure, unit_of
from services.evidence.catalogue import CATALOGUE
from services.evidence.facts import Subject
from services.evidence.run_facts import Fact, RunFacts

SLACK = 0.5000001  # of the last digit: a stored value may be rounded already
ROUNDING = 2.0  # digits of the last place that "about" allows
EXACTLY = 1e-9  # a parameter is what its file says, and never rounded
WITHOUT_SIGN = frozenset(
    {"mae_p80", "mean_mae", "worst_mae", "worst_r", "worst_pnl", "drawdown", "max_drawdown"}
)
OF_UNIT = {"r": {"r"}, "bps": {"bps"}, "share": {"share", "score"}, "money": {"money", "price"}}
# What says that a sentence is of a report: its name, its moment, or what nothing but a report states.
NAMES_A_REPORT = re.compile(
    r"\breport\w*|\bas (?:of|at|known)\b|\bknown (?:at|on)\b|\bblocks?\b|\be-?values?\b|\bgrade[sd]?\b"
    r"|\bintervals?\b|\bcount_only\b|\bsuggestive\b|\binsufficient_sample\b",
    re.I,
)
BESIDE = frozenset({"over", "under"})  # no further beyond a bound than that
# Counts of trades, which go on behind the report.
COUNTED = frozenset(
    name for name, asked in CATALOGUE.items() if asked.unit == "count" and asked.episodes is not None
) | {"failures"}


def check_figure(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """A number against every answer to its questions."""
    if not claim.questions:
        return unknown(UNREAD)
    held: Figure = claim.value
    found = [fact for question in claim.questions for fact in _answers(question, held, subject, facts)]
    if not found:
        return unknown()
    if claim.questions == ("e_value",) and claim.relation != "=":
        found = found[:1]  # a bound is of what the cluster leans to, not of the other side
    if COUNTED.issuperset(claim.questions) and not NAMES_A_REPORT.search(claim.sentence.text):
        found = [*at_the_end(found)]
    return judged_figure(claim, held, found)


def judged_figure(claim: Claim, held: Figure, found: list[Fact]) -> Held:
    """The verdict on a figure whose answers are known."""
    share = unit_of(held) == "share"
    same = [fact for fact in found if is_so(held, fact, share, claim.relation, claim.questions)]
    told = [write_fact(fact, held, share) for fact in found]
    if claim.negated and same:
        return Held("contradicted", told[0], same[0].rows)
    if claim.negated:
        return Held("unverifiable" if claim.relation == "=" else "verified", told[0], found[0].rows)
    rows = same[0].rows if same else found[0].rows
    return judge_claim(bool(same), told[found.index(same[0])] if same else told[0], rows, told)


def _answers(question: str, held: Figure, subject: Subject, facts: RunFacts) -> tuple[Fact, ...]:
    """Facts in the unit of the figure."""
    if question not in CATALOGUE:
        return ()
    found = facts.facts(question, subject)
    unit = unit_of(held)
    if unit in OF_UNIT:
        return tuple(fact for fact in found if fact.unit in OF_UNIT[unit])
    return found if unit != "other" else ()


def is_so(held: Figure, fact: Fact, share: bool, relation: str, questions: tuple[str, ...]) -> bool:
    """Whether a fact is what a figure says of it."""
    value = fact.value * 100.0 if share and fact.unit == "share" else fact.value
    said = held.value
    if WITHOUT_SIGN & set(questions) and (not held.sign or said > 0 > value and "worst" not in questions[0]):
        value, said = abs(value), abs(said)
    near = abs(said - value) <= (EXACTLY if questions == ("parameter",) else held.step * SLACK)
    if near and held.sign == "+" and value < 0 and said == 0:
        near = False
    if relation in (">", "<"):
        beyond = value > said if relation == ">" else value < said
        return beyond and (held.exact not in BESIDE or _is_loosely(held.exact, said, value, held.step))
    if relation == ">=":
        return near or value >= said
    return near or _is_loosely(held.exact, said, value, held.step)


def _is_loosely(exact: str, said: float, value: float, step: float) -> bool:
    """Whether a value is as near as "about", "almost" and "just over" allow."""
    margin = abs(said) * NEARNESS.get(exact, 0.0)
    if exact == "about":
        return abs(said - value) <= min(margin, ROUNDING * step)
    size, target = abs(value), abs(said)
    under = exact == "under" and target - margin <= size <= target
    return value * said >= 0 and (under or exact == "over" and target <= size <= target + margin)


def check_share(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """Percent of the trades of a subject that are of a kind; of its losers, for a way to fail."""
    plain = subject.without(*claim.filters.fields)
    part = facts.trades(plain.merge(claim.filters))
    wholes = [facts.trades(plain)]
    if claim.questions == ("failure_share",):
        losers = facts.trades(plain.without("failure_mode").merge(Subject(outcome="lost")))
        classed = [known for known in losers if known.episode.failure_mode is not None]
        wholes = [classed, losers, *wholes]
    found = [Fact(len(part) / len(whole), "share", rows_of(part or whole)) for whole in wholes if whole]
    return judged_figure(claim, claim.value, found) if found else unknown()


def check_interval(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """Two edges against those of the cluster."""
    cluster = facts.cluster(subject)
    if cluster is None:
        return unknown()
    fixed = (cluster.fixed_lower_r, cluster.fixed_upper_r)
    pairs = [(cluster.lower_r, cluster.upper_r), *([fixed] if fixed != (None, None) else [])]
    true = any(all(map(_same_edge, claim.value, pair)) for pair in pairs)
    told = [f"[{', '.join('open' if edge is None else f'{edge:+.2f}' for edge in pair)}]" for pair in pairs]
    return judge_claim(true != claim.negated, told[0], (facts.report_row,), told)


def _same_edge(said: Figure | None, edge: float | None) -> bool:
    if said is None or edge is None:
        return said is None and edge is None
    return abs(said.value - edge) <= said.step * SLACK


def check_zero(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """Whether an interval holds zero, or on which side of it it lies."""
    cluster = facts.cluster(subject)
    if cluster is None or cluster.lower_r is None and cluster.upper_r is None:
        return unknown()
    told = next(name for name in ("above", "below", "spans") if beside_zero(cluster, name))
    return judge_claim(
        beside_zero(cluster, claim.value) != claim.negated, f"{told} zero", (facts.report_row,)
    )


def beside_zero(cluster: ClusterFinding, said: str) -> bool:
    """Whether an interval excludes zero, holds it, or lies above or below it."""
    above = cluster.lower_r is not None and cluster.lower_r > 0
    below = cluster.upper_r is not None and cluster.upper_r < 0
    return {"spans": not above and not below, "excludes": above or below, "above": above, "below": below}[
        said
    ]


def check_difference(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """How much more or less one subject has than another."""
    other = claim.other or Subject()
    found = []
    for question in claim.questions:
        mine = at_the_end(facts.facts(question, subject.merge(claim.filters)))
        theirs = at_the_end(facts.facts(question, other.merge(claim.filters)))
        found += [
            Fact(a.value - b.value, a.unit, a.rows + b.rows)
            for a, b in zip(mine[-1:], theirs[-1:], strict=False)
        ]
    if not found:
        return unknown()
    less = claim.relation == "<"
    turned = [replace(fact, value=-fact.value) if less else fact for fact in found]
    held = replace(claim.value, value=abs(claim.value.value), sign="")
    same = [fact for fact in turned if is_so(held, fact, False, "=", claim.questions)]
    return judge_claim(bool(same) != claim.negated, plainly(turned[0].value), turned[0].rows)
