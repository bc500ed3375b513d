"""Is one thing more than another, or the most of all? Directions, grades, comparisons, extremes, ratios."""

from collections.abc import Iterator, Sequence

from schemas.fact_check import FactRow
from schemas.vocabulary import EvidenceGrade
from services.deliberation.check_portions import members_of
from services.deliberation.claim import Claim
from services.deliberation.held import UNREAD, Held, at_the_end, judge_claim, plainly, unknown
from services.deliberation.numerals import FLAT_R
from services.evidence.facts import Subject
from services.evidence.run_facts import Fact, RunFacts

OPEN = frozenset({"total_r", "mean_r"})  # asked where no measure is named: then both must say the same
DIFFER = "the total and the mean say different things"
# Question of a direction -> unit of its answer, in words.
SIGNED_UNITS = {
    "mean_r": "R a trade", "median_r": "R in the median", "total_r": "R in total", "pnl": " in money",
    "lower_r": "R at the lower edge", "upper_r": "R at the upper edge", "best_r": "R at best",
    "worst_r": "R at worst",
}  # fmt: skip
RATIO_SLACK = {"": 0.05, "about": 0.15, "under": 0.15, "over": 0.15}


def check_direction(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """Earned or lost, by the sign of the mean."""
    asked = [(question, at_the_end(facts.facts(question, subject))) for question in claim.questions]
    found = [(question, answers[0]) for question, answers in asked if answers]
    if not found:
        return unknown()
    question, fact = found[0]
    value = fact.value
    word = "gained" if value > 0 else "lost" if value < 0 else "earned nothing"
    true = abs(value) <= FLAT_R if claim.value == "flat" else claim.value == word
    return judge_claim(true != claim.negated, f"{word}: {value:+.2f}{SIGNED_UNITS[question]}", fact.rows)


def check_comparison(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """One value against another; of several measures that may be meant, each may be."""
    told: list[tuple[bool, float, float, tuple[FactRow, ...]]] = []
    for mine, theirs in _sides(claim, subject, facts):
        a, b = mine.value, theirs.value
        told.append((a > b if claim.relation == ">" else a < b, a, b, mine.rows + theirs.rows))
    if not told:
        return unknown()
    if set(claim.questions) >= OPEN and len({item[0] for item in told}) > 1:
        return unknown(DIFFER)
    first = next((item for item in told if item[0] != claim.negated), told[0])
    return judge_claim(
        first[0] != claim.negated, f"{plainly(first[1])} against {plainly(first[2])}", first[3]
    )


def _sides(claim: Claim, subject: Subject, facts: RunFacts) -> Iterator[tuple[Fact, Fact]]:
    """What is known of both, for each measure that may be meant and that both have."""
    other = claim.other or Subject()
    second = other if claim.filters.fields & other.fields else other.merge(claim.filters)
    for question in claim.questions:
        mine = at_the_end(facts.facts(question, subject.merge(claim.filters)))
        theirs = at_the_end(facts.facts(question, second))
        if mine and theirs:
            yield mine[0], theirs[0]


def check_ratio(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """How many times one value is of another."""
    factor, exact, bound = claim.value
    sides = _sides(claim, subject, facts)
    found = [
        (mine.value / theirs.value, mine.rows + theirs.rows) for mine, theirs in sides if theirs.value > 0
    ]
    if not found:
        return unknown()
    true = [item for item in found if _is_ratio(item[0], factor, exact, bound)]
    ratio, rows = (true or found)[0]
    return judge_claim(bool(true) != claim.negated, f"{ratio:.2f} times", rows)


def _is_ratio(ratio: float, factor: float, exact: str, bound: str) -> bool:
    if bound:
        return ratio > factor if bound == ">" else ratio < factor
    slack = factor * RATIO_SLACK[exact]
    if exact == "under":
        return factor - slack <= ratio <= factor * 1.02
    return factor * 0.98 <= ratio <= factor + slack if exact == "over" else abs(ratio - factor) <= slack


def check_extreme(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """The first, or second, of its kind by a measure; of several that may be meant, by any."""
    mine = getattr(subject, claim.domain, None) if claim.domain else None
    if mine is None:
        return unknown(UNREAD)
    within = subject.without(claim.domain, "basis")
    members = members_of(claim.domain, within, facts)
    if subject.basis is not None:
        members = [member.merge(Subject(basis=subject.basis)) for member in members]
    if len(members) < 2:
        return unknown()
    found: list[Held] = []
    for question in claim.questions:
        latest = _rank_members(claim, question, mine, members, facts)
        found += [] if latest is None else [latest]
    if set(claim.questions) >= OPEN and len({held.verdict for held in found}) > 1:
        return unknown(DIFFER)
    verified = (held for held in found if held.verdict == "verified")
    return next(verified, found[-1] if found else unknown())


def _rank_members(
    claim: Claim, question: str, mine: object, members: Sequence[Subject], facts: RunFacts
) -> Held | None:
    values = {}
    for member in members:
        found = at_the_end(facts.facts(question, member.merge(claim.filters)))
        if found:
            values[getattr(member, claim.domain)] = found[0]
    if len(values) < 2:
        return None
    sign = -1 if claim.value == "highest" else 1
    ordered = sorted({fact.value for fact in values.values()}, key=lambda value: sign * value)
    rank = int(claim.relation) - 1
    if rank >= len(ordered):
        return None
    first = sorted(str(name) for name, fact in values.items() if fact.value == ordered[rank])
    rows = next(fact.rows for fact in values.values() if fact.value == ordered[rank])
    told = f"{', '.join(first)}: {plainly(ordered[rank])}"
    return judge_claim((str(mine) in first) != claim.negated, told, rows, first)


def check_grade(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """The grade of a cluster."""
    cluster = facts.cluster(subject)
    if cluster is None:
        return _grade_of_the_run(claim, subject, facts)
    same = cluster.grade == claim.value
    return judge_claim(same != claim.negated, cluster.grade.value, (facts.report_row,))


def _grade_of_the_run(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """Where no cluster is named: false when no cluster has the grade, and else open which one is meant."""
    grades = facts.grades()
    if not grades or not subject.is_empty:
        return unknown()
    if claim.value == EvidenceGrade.INSUFFICIENT_SAMPLE and facts.report is not None:
        return judge_claim(
            facts.report.insufficient_sample != claim.negated, str(facts.report.insufficient_sample).lower()
        )
    if not any(found == claim.value for found in grades):
        return judge_claim(claim.negated, "no cluster", (facts.report_row,))
    return unknown(UNREAD)
