"""Is so much of a whole what a text says it is? Trades of a kind, parts of a result, members of a kind."""

from schemas.vocabulary import EvidenceGrade
from services.deliberation.check_figures import beside_zero, check_share, is_so
from services.deliberation.claim import Claim
from services.deliberation.held import Held, judge_claim, plainly, rows_of, unknown
from services.deliberation.numerals import unit_of
from services.evidence.catalogue import CATALOGUE
from services.evidence.facts import Subject
from services.evidence.run_facts import Fact, KnownEpisode, RunFacts

FEWEST_MEMBERS = 2


def check_portion(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """Trades of a kind among the trades of a subject; where a total is given, it must be theirs."""
    plain = subject.without(*(claim.filters.fields - {"period"}))
    for field in claim.filters.fields & subject.fields:
        if getattr(subject, field) != getattr(claim.filters, field):
            plain = subject
    whole = facts.trades(plain)
    part = facts.trades(plain.merge(claim.filters))
    if claim.filters.fields & plain.fields or plain.order is not None:  # the rank is one within the whole
        part = [known for known in whole if known in part]
    if not whole or claim.portion is None:
        return unknown()
    true = claim.portion.holds(len(part), len(whole)) and _is_total(claim, plain, facts)
    return judge_claim(true != claim.negated, f"{len(part)} of {len(whole)} trades", rows_of(part or whole))


def _is_total(claim: Claim, whole: Subject, facts: RunFacts) -> bool:
    """Whether the total that a claim gives is one that the run has of the whole."""
    if claim.value is None:
        return True
    return any(claim.value.value == fact.value for fact in facts.facts("trades", whole))


def check_unanswered(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """That a graded cluster has no answer to a question: "nothing detectable yet"."""
    if facts.cluster(subject) is None:
        return unknown()
    found = [fact for question in claim.questions for fact in facts.facts(question, subject)]
    told = plainly(found[0].value) if found else "none"
    return judge_claim((not found) != claim.negated, told, (facts.report_row,))


def check_absent(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """No trade of a subject."""
    chosen = facts.trades(subject)
    return judge_claim((not chosen) != claim.negated, f"{len(chosen)} trades", rows_of(chosen))


def check_part(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """What a subject's trades, or its result, are of those of the run."""
    held = [_part_of(claim, question, subject, facts) for question in claim.questions]
    return next((item for item in held if item.verdict == "verified"), held[0])


def _part_of(claim: Claim, question: str, subject: Subject, facts: RunFacts) -> Held:
    mine = _sum_of(question, subject.merge(claim.filters), facts)
    whole = _sum_of(question, claim.filters, facts)
    portion = claim.portion
    if whole is None or mine is None or not whole.value or portion is None:
        return unknown()
    told = f"{mine.value:.6g} of {whole.value:.6g}"
    if portion.count is not None:
        true = portion.count == mine.value and _is_total(claim, claim.filters, facts)
    else:
        true = portion.low <= mine.value / whole.value <= portion.high
    return judge_claim(true != claim.negated, told, mine.rows or whole.rows)


def _sum_of(question: str, subject: Subject, facts: RunFacts) -> Fact | None:
    """The plain sum of the trades, which comes behind what a report states."""
    found = facts.facts(question, subject)
    return found[-1] if found else None


def check_members(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """How many playbooks, symbols, regimes or clusters are so."""
    if claim.portion is None:
        return unknown()
    if isinstance(claim.value, tuple) and str(claim.value[0]).startswith("grade"):
        return _of_grades(claim, str(claim.value[1]), subject, facts)
    within = subject.without(claim.domain, "basis") if subject.fields - {claim.domain} else Subject()
    left_out = None if claim.other is None else within.merge(claim.other)
    members = [item for item in members_of(claim.domain, within, facts) if item != left_out]
    if isinstance(claim.value, tuple) and claim.value[0] == "zero":
        tests = [_by_zero(member, str(claim.value[1]), facts) for member in members]
    elif isinstance(claim.value, tuple):
        gained = claim.value[1] == "gained"
        tests = [_by_mean(member, gained, facts) for member in members]
    else:
        tests = [_by_figure(member, claim, facts) for member in members]
    known = [test for test in tests if test is not None]
    if not known or len(members) < FEWEST_MEMBERS or subject.order is not None:
        return unknown()
    count = sum(known)
    rows = tuple(row for member in members[:1] for row in rows_of(facts.trades(member)))
    true = claim.portion.holds(count, len(known))
    return judge_claim(true != claim.negated, f"{count} of {len(known)}", rows or (facts.report_row,))


def _by_zero(member: Subject, said: str, facts: RunFacts) -> bool | None:
    cluster = facts.cluster(member)
    return None if cluster is None else beside_zero(cluster, said)


def _by_mean(member: Subject, gained: bool, facts: RunFacts) -> bool | None:
    found = facts.facts("mean_r", member)
    if not found:
        return None
    return found[0].value > 0 if gained else found[0].value < 0


def _by_figure(member: Subject, claim: Claim, facts: RunFacts) -> bool | None:
    """Whether an answer of a member is on the side of a figure."""
    if not CATALOGUE.keys() >= set(claim.questions):
        held = check_share(claim, member, facts)
        return None if held.verdict == "unverifiable" else held.verdict == "verified"
    found = [
        fact for question in claim.questions for fact in facts.facts(question, member.merge(claim.filters))
    ]
    if not found:
        return None
    share = unit_of(claim.value) == "share"
    return any(is_so(claim.value, fact, share, claim.relation, claim.questions) for fact in found[:1])


def members_of(domain: str, within: Subject, facts: RunFacts) -> list[Subject]:
    """All members of a kind that traded."""
    if domain == "period":
        return facts.years(within)
    if domain == "cluster":
        return facts.graded_subjects() if within.is_empty else []
    return [] if domain == "" else facts.members(domain, within)


def _of_grades(claim: Claim, grade: str, subject: Subject, facts: RunFacts) -> Held:
    cluster = facts.cluster(subject)
    grades: tuple[EvidenceGrade, ...] = ()
    if subject.fields == {"playbook"} and claim.domain == "regime":
        of_regimes = [
            item for item in facts.graded_subjects() if item.playbook == subject.playbook and item.regime
        ]
        grades = tuple(found.grade for item in of_regimes if (found := facts.cluster(item)) is not None)
    elif cluster is not None and claim.domain in ("cluster", "playbook"):
        grades = (cluster.grade,)
    elif subject.is_empty and claim.domain in ("cluster", "playbook", "regime"):
        grades = facts.grades(of_playbooks=claim.domain == "playbook")
    if not grades or claim.portion is None:
        return unknown()
    order = list(EvidenceGrade)
    above = claim.value[0] == "grade_above"
    least = order.index(EvidenceGrade(grade))
    count = sum(order.index(found) > least if above else found == grade for found in grades)
    true = claim.portion.holds(count, len(grades))
    return judge_claim(true != claim.negated, f"{count} of {len(grades)} clusters", (facts.report_row,))


def check_is_of(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """Whether the one trade that is meant is of a playbook, a symbol, a side or a day."""
    chosen = facts.trades(subject)
    if not chosen:
        return unknown()
    told = claim.filters
    true = any(_has(known, told, facts) for known in chosen)
    episode = chosen[-1].episode
    found = f"{episode.playbook_id}, {episode.symbol}, {episode.direction}, {episode.regime}"
    return judge_claim(true != claim.negated, found, rows_of(chosen))


def _has(known: KnownEpisode, told: Subject, facts: RunFacts) -> bool:
    variants = [told]
    if told.period is not None:
        variants.append(told.merge(Subject(basis="exit" if told.basis != "exit" else "entry")))
    return any(known in facts.trades(variant) for variant in variants)
