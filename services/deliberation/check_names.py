"""Does the run know a name, and did anything of it happen on a day?"""

from datetime import datetime

from schemas.errors import nearest
from services.deliberation.claim import Claim
from services.deliberation.held import Held, judge_claim, rows_of, unknown
from services.deliberation.report_records import STRUCTURAL
from services.evidence.facts import Subject
from services.evidence.run_facts import RunFacts, moment_of

SHOWN = 5


def check_name(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """A playbook, a symbol, a regime, an id, or a word that is spelt like one."""
    kind, name = claim.value
    if kind in ("playbook", "symbol"):
        rows = rows_of(facts.trades(Subject().having(kind, name)))
        return Held("verified", name, rows or (() if kind == "symbol" else (facts.report_row,)))
    if kind == "regime":
        return _regime(name, facts)
    if kind == "id":
        return _id(name, facts)
    if kind == "capitals":
        return Held("unverifiable", "no symbol of the run", (), facts.symbols)
    like = nearest(name, sorted(facts.names)).strip()
    options = [word for word in facts.playbook_ids if word in like] or list(facts.playbook_ids)
    return Held("contradicted", "no name of the run", (), options)


def _regime(name: str, facts: RunFacts) -> Held:
    """A regime in which something was traded, or that a cluster of the report has."""
    chosen = facts.trades(Subject(regime=name))
    if chosen:
        return Held("verified", name, rows_of(chosen))
    known = [str(member.regime) for member in facts.members("regime")]
    return Held("verified" if not known else "unverifiable", "no trades in it", (), known)


def _id(name: str, facts: RunFacts) -> Held:
    rows = {known: row for known, row in facts.ids.items() if known.startswith(name)}
    if len(rows) == 1:
        return next(Held("verified", known, (row,)) for known, row in rows.items())
    return Held("contradicted", "no id of the run") if not rows else Held("unverifiable", f"{len(rows)} ids")


def check_advice(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """What the report recommends, for a playbook or at all."""
    if facts.report is None:
        return unknown()
    if subject.is_empty and claim.value != "structural":
        action = facts.report.recommended_action.value
        return judge_claim((claim.value == action) != claim.negated, action, (facts.report_row,))
    told = [
        item.action.value
        for item in facts.report.recommendations
        if subject.playbook in (None, item.playbook_id) and subject.fields <= {"playbook"}
    ]
    if not told:
        return unknown()
    asked = STRUCTURAL if claim.value == "structural" else {claim.value}
    true = not asked.isdisjoint(told)
    return judge_claim(true != claim.negated, ", ".join(told[:SHOWN]), (facts.report_row,))


def check_day(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """A day on which something of a subject happened, or an edge of the window."""
    if claim.questions:
        return _edge(claim, facts)
    start, following = claim.value
    report = facts.report
    if start > facts.known_at:
        return Held("contradicted", "after the moment of the text")
    edges = {facts.known_at} if report is None else {facts.known_at, report.known_at}
    for known in facts.trades(subject):
        moments = (known.episode.entry_label, known.episode.exit_label, known.episode.known_at)
        if any(start <= moment < following for moment in moments):
            return Held("verified", known.episode.episode_id, (known.row,))
    seen = facts.observed.find_row(claim.value, subject)
    if seen is not None:
        return Held("verified", "a bar was seen", (seen,))
    if report is not None and subject.is_empty:
        edges |= {_ns(report.window_start), _ns(report.window_end)}
    if facts.first_label is not None:
        edges.add(facts.first_label)
    if any(start <= edge < following for edge in edges):
        return Held("verified", "an edge of the window", (facts.report_row,))
    return Held("contradicted", "nothing of the run happened on it")


def _edge(claim: Claim, facts: RunFacts) -> Held:
    """Whether the report was known, or its window or the run begins or ends, within a time."""
    start, following = claim.value
    edges = list[int]()
    if facts.report is not None:
        report = facts.report
        told = {"known_at": report.known_at, "window_start": _ns(report.window_start)}
        told["window_end"] = _ns(report.window_end)
        edges += [told[name] for name in claim.questions]
    if facts.first_label is not None and "window_start" in claim.questions:
        edges.append(facts.first_label)
    if "window_end" in claim.questions and facts.observed.snapshots:
        edges += [facts.observed.snapshots[-1].label, facts.known_at]
    if not edges:
        return unknown()
    true = any(start <= edge < following for edge in edges)
    shown = tuple(dict.fromkeys(f"{moment_of(edge):%Y-%m-%d}" for edge in edges))
    return judge_claim(true != claim.negated, ", ".join(shown), (facts.report_row,), shown)


def _ns(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000_000


def check_version(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """Whether a version of a playbook is, or was, in a state, and since when."""
    number, state, period, is_now = claim.value
    known = [item for item in facts.versions if subject.playbook in (None, item.playbook)]
    own = [item for item in known if item.version == number]
    active = [item for item in facts.playbooks if subject.playbook in (None, item.id)]
    if not known:
        rows = tuple(item.row for item in active if item.version == number)
        return Held("verified", str(number), rows) if rows and state in (None, "active") else unknown()
    if not own:
        return judge_claim(claim.negated, ", ".join(sorted({str(item.version) for item in known})))
    chosen = own[-1:] if is_now else own
    fits = [
        item
        for item in chosen
        if state in (None, item.state) and (period is None or period[0] <= item.since < period[1])
    ]
    told = "; ".join(f"{item.state} since {moment_of(item.since):%Y-%m-%d}" for item in own)
    return judge_claim(bool(fits) != claim.negated, told, tuple(item.row for item in own))


def check_period(claim: Claim, subject: Subject, facts: RunFacts) -> Held:
    """A time within that of the run's trades."""
    if claim.questions:
        return _edge(claim, facts)
    if not subject.is_empty:
        start, following = claim.value
        chosen = [
            known
            for known in facts.trades(subject)
            if any(start <= at < following for at in (known.episode.entry_label, known.episode.exit_label))
        ]
        return judge_claim(bool(chosen), f"{len(chosen)} trades in it", rows_of(chosen))
    labels = [known.episode.entry_label for known in facts.trades(subject)]
    labels += [] if facts.first_label is None else [facts.first_label]
    if facts.report is not None:
        labels.append(_ns(facts.report.window_start))
    if not labels:
        return unknown()
    first, last = moment_of(min(labels)).year, moment_of(facts.known_at).year
    start, following = claim.value
    held = following > min(labels) and start <= facts.known_at
    begins = moment_of(start).year if start else first
    return judge_claim(held and first <= begins <= last, f"{first} to {last}")
