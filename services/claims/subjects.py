"""What a claim is of: its names held against the run, as a subject."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from schemas.canonical import datetime_to_ns
from schemas.claims import Dimension, Of
from schemas.errors import nearest
from schemas.vocabulary import REGIMES
from services.evidence.facts import Subject, period_of
from services.evidence.observed import DAY_NS
from services.evidence.run_facts import RunFacts, moment_of


class NotInRun(ValueError):
    """A claim names what the run has not; the text says what it has."""


def subject_of(of: Of, facts: RunFacts) -> Subject:
    """The subject of the catalogue.

    Raises:
        NotInRun: a playbook, symbol or regime that the run has not, or a period that is none.
    """
    for name, known in (
        ("playbook", facts.playbook_ids),
        ("symbol", facts.symbols),
        ("regime", regimes(facts)),
    ):
        value = getattr(of, name)
        if value is not None and value not in known:
            raise NotInRun(f"the run has no {name} {value!r}.{nearest(value, known)}")
    named: dict[str, Any] = {name: value for name, value in of.payload().items() if value is not None}
    if of.period is not None:
        named["period"] = read_period(of.period)
    return Subject(**named)


def regimes(facts: RunFacts) -> tuple[str, ...]:
    """Every regime that its trades or its newest report name, in order of name."""
    of_trades = {str(member.regime) for member in facts.members("regime")}
    clusters = () if facts.report is None else facts.report.clusters
    return tuple(sorted(of_trades | {finding.regime for finding in clusters if finding.regime}))


def names_for_claims(playbooks: Iterable[str], symbols: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The names that a claim on a run may have in each field, for the form of a model's reply."""
    return {"playbook": tuple(sorted(playbooks)), "symbol": tuple(sorted(symbols)), "regime": REGIMES}


def members_of(by: Dimension, within: Of, facts: RunFacts) -> dict[str, Of]:
    """Each value of a dimension that the trades of a subject have, in order of name.

    Raises:
        NotInRun: as `subject_of`, or years of a period that holds a part of one.
    """
    subject = subject_of(within, facts)
    if by == "year":
        years = sorted({moment_of(known.episode.entry_label).year for known in facts.trades(subject)})
        cut = [year for year in years if subject.period and not _holds(subject.period, period_of(year))]
        if cut:
            raise NotInRun(f"the period {within.period!r} does not hold the whole of {cut[0]}")
        return {str(year): within.model_copy(update={"period": f"{year:04}"}) for year in years}
    if by == "outcome":
        outcomes = ("lost", "won") if within.outcome is None else (within.outcome,)
        found = [name for name in outcomes if facts.trades(subject.having("outcome", name))]
    else:
        found = [str(getattr(member, by)) for member in facts.members(by, subject)]
    return {name: Of.model_validate({**within.payload(), by: name}) for name in found}


def read_period(text: str) -> tuple[int, int]:
    """A period from its first ns to the first one after it.

    Raises:
        NotInRun: no calendar has it, or it ends before it begins.
    """
    first, _, last = text.partition("/")
    try:
        start, end = _span(first)[0], _span(last or first)[1]
    except ValueError as error:
        raise NotInRun(f"{text!r} is no period: {error}") from error
    if start >= end:
        raise NotInRun(f"the period {text!r} ends before it begins")
    return start, end


def _holds(whole: tuple[int, int], part: tuple[int, int]) -> bool:
    return whole[0] <= part[0] and part[1] <= whole[1]


def _span(text: str) -> tuple[int, int]:
    """A year, a month or a day, in ns: from its first moment to the first one after it."""
    parts = [int(part) for part in text.split("-")]
    if len(parts) < 3:
        return period_of(*parts)
    start = datetime_to_ns(datetime.fromisoformat(f"{text}T00:00:00+00:00"))
    return start, start + DAY_NS


def merge(whole: Of, part: Of) -> Of:
    """The part of a whole that another subject names.

    Raises:
        NotInRun: both name a field and differ in it, so that the part lies outside.
    """
    held, narrowed = whole.payload(), {k: v for k, v in part.payload().items() if v is not None}
    for name, value in narrowed.items():
        inside = name == "period" and held[name] and _holds(read_period(held[name]), read_period(value))
        if held[name] is not None and held[name] != value and not inside:
            raise NotInRun(f"{name} {value!r} lies outside of {name} {held[name]!r}")
    return Of.model_validate(held | narrowed)
