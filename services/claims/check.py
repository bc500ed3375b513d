"""Is a claim so? Looked up in the facts of a run; what is not so is refused with what is.

Comparisons, places, bounds and signs are of figures as they are shown, so that no sentence says more than its
figures do.
"""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import singledispatch
from typing import Any

from schemas.claims import (
    AdviceClaim,
    Claim,
    CompareClaim,
    EveryClaim,
    FactRow,
    GradeClaim,
    MeasureName,
    Of,
    RankClaim,
    ShareClaim,
    SignClaim,
    ValueClaim,
)
from services.claims.measures import MEASURES, Figure, name_measure, rows_of
from services.claims.subjects import NotInRun, members_of, merge, subject_of
from services.claims.words import words_of
from services.evidence.run_facts import RunFacts

Rows = tuple[FactRow, ...]


@dataclass(frozen=True)
class ClaimResult:
    """A claim that is so: its figures in the order of its words, their rows, and the trades behind them."""

    figures: tuple[Figure, ...]
    rows: Rows
    trades: int | None = None


@dataclass(frozen=True)
class Refusal:
    """A claim that is not so; `so` is what is, in words. `known` is false where the run has no answer."""

    so: str
    known: bool = True


def check(claim: Claim, facts: RunFacts) -> ClaimResult | Refusal:
    """What the run says of a claim as of `facts.known_at`."""
    try:
        return _check(claim, facts)
    except NotInRun as error:
        return Refusal(str(error), known=False)


@singledispatch
def _check(claim: Any, facts: RunFacts) -> ClaimResult | Refusal:
    raise TypeError(f"no check for {type(claim).__name__}")


def _figure(measure: MeasureName, of: Of, facts: RunFacts) -> tuple[Figure, Rows]:
    """The figure of a subject.

    Raises:
        NotInRun: there is none.
    """
    found = MEASURES[measure].figure(facts, subject_of(of, facts))
    if found is None:
        raise NotInRun(f"the run does not have {name_measure(measure, of)}")
    return found


def _describe_figure(measure: MeasureName, of: Of, figure: Figure) -> str:
    return f"{name_measure(measure, of)} is {figure.text}"


@_check.register
def _(claim: ValueClaim, facts: RunFacts) -> ClaimResult | Refusal:
    figure, rows = _figure(claim.measure, claim.of, facts)
    if claim.stated is not None and not figure.is_stated_by(claim.stated):
        return Refusal(_describe_figure(claim.measure, claim.of, figure))
    counted = len(facts.trades(subject_of(claim.of, facts))) if MEASURES[claim.measure].of_trades else None
    return ClaimResult((figure,), rows, counted)


@_check.register
def _(claim: ShareClaim, facts: RunFacts) -> ClaimResult | Refusal:
    whole = facts.trades(subject_of(claim.whole, facts))
    part = facts.trades(subject_of(merge(claim.whole, claim.part), facts))
    if not whole:
        raise NotInRun(f"no trades of {words_of(claim.whole)} are known")
    count, share = Figure(len(part), "count", 0), Figure(len(part) / len(whole), "share", 1)
    stated = claim.stated
    if stated is not None:
        holds = share.is_stated_by(stated[:-1]) if stated.endswith("%") else count.is_stated_by(stated)
        if not holds:
            return Refusal(f"{count.text} of {len(whole):,} trades are {words_of(claim.part)} ({share.text})")
    return ClaimResult((count, Figure(len(whole), "count", 0), share), rows_of(part) or rows_of(whole))


RELATIONS: dict[str, Callable[[Decimal, Decimal], bool]] = {
    "more": lambda left, right: left > right,
    "less": lambda left, right: left < right,
    "same": lambda left, right: left == right,
    "above": lambda value, bound: value > bound,
    "below": lambda value, bound: value < bound,
    "positive": lambda value, zero: value > zero,
    "negative": lambda value, zero: value < zero,
    "zero": lambda value, zero: value == zero,
}


@_check.register
def _(claim: CompareClaim, facts: RunFacts) -> ClaimResult | Refusal:
    left, rows = _figure(claim.measure, claim.left, facts)
    right, others = _figure(claim.measure, claim.right, facts)
    if not RELATIONS[claim.relation](left.shown, right.shown):
        so = _describe_figure(claim.measure, claim.left, left)
        return Refusal(f"{so}, that of {words_of(claim.right)} {right.text}")
    return ClaimResult((left, right), rows + others)


def _figures(
    claim: RankClaim | EveryClaim, left_out: tuple[str, ...], facts: RunFacts
) -> dict[str, tuple[Figure, Rows]]:
    """The figure of each member of a dimension that has trades, but for those that are left out.

    Raises:
        NotInRun: one that is left out is none of them, or named twice; or another one has no figure.
    """
    members = members_of(claim.by, claim.within, facts)
    for place, name in enumerate(left_out):
        if name not in members:
            raise NotInRun(f"no trades of {claim.by} {name!r} in {words_of(claim.within)} are known")
        if name in left_out[:place]:
            raise NotInRun(f"{claim.by} {name!r} is left out twice")
    return {name: _figure(claim.measure, of, facts) for name, of in members.items() if name not in left_out}


@_check.register
def _(claim: RankClaim, facts: RunFacts) -> ClaimResult | Refusal:
    found = _figures(claim, claim.without, facts)
    if claim.who not in found:
        raise NotInRun(f"{claim.by} {claim.who!r} is not ranked among {', '.join(found) or 'no trades'}")
    sign = -1 if claim.counted_from == "highest" else 1
    own = sign * found[claim.who][0].shown
    before = sum(sign * figure.shown < own for figure, _ in found.values())
    level = sum(sign * figure.shown == own for figure, _ in found.values())
    if before != claim.place - 1 or level != 1:
        order = sorted(found, key=lambda name: (sign * found[name][0].shown, name))
        listed = ", ".join(
            f"{name} {found[name][0].text}" for name in order[: max(claim.place, before + level)]
        )
        return Refusal(f"{MEASURES[claim.measure].noun} from the {claim.counted_from}: {listed}")
    return ClaimResult((found[claim.who][0],), found[claim.who][1])


@_check.register
def _(claim: EveryClaim, facts: RunFacts) -> ClaimResult | Refusal:
    figures = _figures(claim, claim.but, facts)
    if not figures:
        raise NotInRun(f"nothing is left of the trades of {words_of(claim.within)}")
    holds, bound = RELATIONS[claim.relation], Decimal(claim.bound)
    wrong = [
        f"{name} {figure.text}" for name, (figure, _) in figures.items() if not holds(figure.shown, bound)
    ]
    members = members_of(claim.by, claim.within, facts)
    for name in claim.but:
        found = MEASURES[claim.measure].figure(facts, subject_of(members[name], facts))
        if found is not None and holds(found[0].shown, bound):
            wrong.append(f"{name} {found[0].text}")
    if wrong:
        return Refusal(f"{MEASURES[claim.measure].noun}: {', '.join(wrong)}")
    rows = tuple(dict.fromkeys(row for _, held in figures.values() for row in held))
    return ClaimResult(tuple(figure for figure, _ in figures.values()), rows)


@_check.register
def _(claim: SignClaim, facts: RunFacts) -> ClaimResult | Refusal:
    if not MEASURES[claim.measure].signed:
        raise NotInRun(f"the {MEASURES[claim.measure].noun} has no sign to speak of")
    figure, rows = _figure(claim.measure, claim.of, facts)
    if not RELATIONS[claim.sign](figure.shown, Decimal(0)):
        return Refusal(_describe_figure(claim.measure, claim.of, figure))
    return ClaimResult((figure,), rows)


@_check.register
def _(claim: GradeClaim, facts: RunFacts) -> ClaimResult | Refusal:
    found = facts.cluster(subject_of(claim.of, facts))
    if found is None:
        raise NotInRun(f"no report has graded {words_of(claim.of)}")
    if found.grade is not claim.grade:
        return Refusal(f"{words_of(claim.of)} is {found.grade}")
    return ClaimResult((), (facts.report_row,))


@_check.register
def _(claim: AdviceClaim, facts: RunFacts) -> ClaimResult | Refusal:
    subject = subject_of(claim.of, facts)
    if facts.report is None or not subject.fields <= {"playbook", "regime"}:
        raise NotInRun(f"no report advises on {words_of(claim.of)}")
    if subject.is_empty:
        advised = {facts.report.recommended_action}
    else:
        named = (item for item in facts.report.recommendations if item.playbook_id == subject.playbook)
        advised = {item.action for item in named if item.regime == subject.regime}
    if claim.action not in advised:
        return Refusal(f"advised for {words_of(claim.of)}: {', '.join(sorted(advised)) or 'nothing'}")
    return ClaimResult((), (facts.report_row,))
